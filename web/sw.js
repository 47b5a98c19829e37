/**
 * The service worker: keeps the page itself, so that it opens while the server is away, and takes
 * what other programs share with it. The network comes first, so an updated server is never hidden
 * by what was kept; requests to the API are not touched. Registered by js/start.js where the page is
 * secure (HTTPS or this device).
 */
const SHELL = 'parley-shell';
/** What was shared, until the page takes it; see js/state/shared.js. */
const SHARED = 'parley-shared';
/** Fetched by the page when it needs them: without a server it is too late. */
const ON_DEMAND = [
    'vendor/highlight.js', 'vendor/temml.js', 'js/views/viewer.js', 'js/views/clip.js', 'js/views/model-list.js', 'js/views/prompts.js', 'js/views/voice.js', 'js/protocol/upload.js', 'js/protocol/sha256.js', 'js/state/prompts.js', 'js/state/shared.js',
    'css/tools.css', 'js/views/tool-view.js', 'js/views/tools-menu.js', 'js/views/tool-offers.js', 'js/state/tools.js', 'js/state/transfer.js', 'js/state/import_others.js', 'js/documents/zip.js', 'js/state/history_server.js', 'js/state/offline_copy.js',
];
const NAME_HEADER = 'X-Name';

/** The address inside the page's folder: '' is the page. @param {string} url */
const pathOf = (url) => new URL(url).pathname.slice(new URL(self.registration.scope).pathname.length);
const isShell = (path) => /^(index\.html|icon\.svg|manifest\.webmanifest|(css|js|languages|vendor)\/.+)?$/.test(path);
/** All addresses of the page are one. @param {string} path */
const keyOf = (path) => new URL(path === 'index.html' ? '' : path, self.registration.scope).href;

/** @param {string} path @param {Response} reply */
async function keep(path, reply) {
    const cache = await caches.open(SHELL);
    const kept = await cache.match(keyOf(path));
    const tag = reply.headers.get('ETag');
    if (!tag || kept?.headers.get('ETag') !== tag) await cache.put(keyOf(path), reply);
}

/** What cannot be had now is kept when it is fetched next. @param {string[]} paths */
async function keepAll(paths) {
    await Promise.all(paths.map(async (path) => {
        const reply = await fetch(keyOf(path)).catch(() => null);
        if (reply?.ok) await keep(path, reply);
    }));
}

async function install() {
    const page = await (await fetch(keyOf(''))).text();
    const named = [...page.matchAll(/(?:href|src)="([^"#:]+)"/g)].map(([, path]) => path);
    await keepAll(['', ...named.filter(isShell), ...ON_DEMAND]);
    await self.skipWaiting();
}

/** @param {FetchEvent} event @param {string} path */
async function answer(event, path) {
    const kept = () => caches.open(SHELL).then((cache) => cache.match(keyOf(path)));
    try {
        const reply = await fetch(event.request);
        if (reply.status >= 500) return (await kept()) ?? reply;
        if (reply.ok && !reply.redirected) {
            event.waitUntil(keep(path, reply.clone()));
            if (!path) event.waitUntil(keepAll(ON_DEMAND));
        }
        return reply;
    } catch {
        return (await kept()) ?? Response.error();
    }
}

/** Puts what is shared where the page finds it, and opens the page. @param {Request} request */
async function share(request) {
    const data = await request.formData();
    const cache = await caches.open(SHARED);
    const text = ['title', 'text', 'url'].map((name) => String(data.get(name) ?? '')).filter(Boolean);
    await cache.put(keyOf('shared/text'), new Response([...new Set(text)].join('\n')));
    for (const [i, file] of data.getAll('files').entries()) {
        await cache.put(keyOf(`shared/${i}`), new Response(file, { headers: { [NAME_HEADER]: encodeURIComponent(file.name), 'Content-Type': file.type } }));
    }
    return Response.redirect(keyOf('?shared'), 303);
}

self.addEventListener('install', (event) => event.waitUntil(install()));
self.addEventListener('activate', (event) => event.waitUntil(self.clients.claim()));
self.addEventListener('fetch', (event) => {
    const { method, url } = event.request;
    if (!url.startsWith(self.registration.scope)) return;
    const path = pathOf(url);
    if (method === 'POST' && path === 'share') event.respondWith(share(event.request));
    else if (method === 'GET' && isShell(path)) event.respondWith(answer(event, path));
});
