/** What another program shared with the page: sw.js has put it aside, and the page takes it once. */
const SHARED = 'parley-shared';
const NAME_HEADER = 'X-Name';

/** @returns {Promise<{text: string, files: File[]}>} */
export async function takeShared() {
    const cache = await caches.open(SHARED);
    const taken = { text: '', files: /** @type {File[]} */ ([]) };
    for (const request of await cache.keys()) {
        const reply = await cache.match(request);
        await cache.delete(request);
        if (!reply) continue;
        if (request.url.endsWith('/text')) taken.text = await reply.text();
        else taken.files.push(new File([await reply.blob()], decodeURIComponent(reply.headers.get(NAME_HEADER) ?? 'file'), { type: reply.headers.get('Content-Type') ?? '' }));
    }
    return taken;
}
