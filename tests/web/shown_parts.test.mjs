/** What elements that stand in a conversation, or are fetched for one, show and do, as the files in shown/ say (shown.mjs). */
import { Node, done, elementOf, flat, heard, withoutBrowser } from './made_up_lit.mjs';
import { chatOf, hears, listeners, presses, time, wire, written } from './shown.mjs';
import { html } from '../../web/vendor/lit.js';
import library from '../../web/vendor/highlight.js';

for (const name of ['viewer', 'video-strip', 'clip', 'code-block', 'share', 'shared-page', 'server-status', 'welcome', 'preview']) await withoutBrowser(`views/${name}.js`);
const { highlighted, loadHighlighter } = await withoutBrowser('views/highlight.js');
await loadHighlighter(); // what is fetched when it is first needed is there

const image = (id, more) => ({ id, kind: 'image', name: `${id}.png`, mime: 'image/png', width: 40, height: 20, bytes: 2048, blob: new Blob(['x']), ...more });
const text = (id, more) => image(id, { kind: 'text', name: `${id}.txt`, mime: 'text/plain', width: 0, height: 0, blob: new Blob([`words of ${id}`]), ...more });
const video = (id, more) => image(id, { kind: 'video', name: `${id}.mp4`, mime: 'video/mp4', width: 64, height: 32, seconds: 10, ...more });
const model = { name: 'Seedling', vision: true, video: true, thinking: true, tools: true, maxImages: 16, rates: { fps: 2, min_frames: 4, max_frames: 256 } };

/* ---- files, large ---- */

const longText = Array.from({ length: 60_000 }, (_, i) => `line ${i}`).join('\n');
const viewed = (items, at, more) => () => ({ items, at, ...more });
const three = [image('a'), text('t', { note: 'page 1' }), image('b', { width: 800, height: 600 })];
const keyed = (name, more = {}) => [`key ${name}`, () => listeners.keydown({ key: name, preventDefault: () => done.push('not what the browser does'), ...more })];
const opened = () => ({ '^dialog': new Node('dialog', { open: true }), img: new Node('img', { clientWidth: 400 }) });
written('viewer', [
    { says: 'an image of three', element: 'media-viewer', found: opened, given: viewed(three, 0), does: Object.fromEntries(['ArrowLeft', 'ArrowRight', '+', '=', '-', '0', 'x'].map((name) => keyed(name))) },
    { says: 'the last image', element: 'media-viewer', found: opened, presses: /large|Zoom|Next|wheel/, events: { wheel: { ctrlKey: true, deltaY: -1 } }, given: viewed(three, 2), does: Object.fromEntries([keyed('ArrowLeft'), keyed('ArrowRight'), keyed('ArrowLeft', { ctrlKey: true })]) },
    { says: 'an image that is large', element: 'media-viewer', found: opened, presses: /./, events: { wheel: { ctrlKey: true, deltaY: 1 } }, given: viewed(three.slice(0, 1), 0), after: (view) => void (view.zoom = 2), does: Object.fromEntries(['ArrowLeft', '-', '+', '0'].map((name) => keyed(name))) },
    { says: 'an image without a size', element: 'media-viewer', found: opened, presses: /Zoom|large/, given: viewed([image('a', { width: 0, height: 0 })], 0) },
    { says: 'an image that is shown small', element: 'media-viewer', found: opened, presses: /Zoom|click img/, given: viewed([image('a', { width: 800, height: 600 })], 0) },
    { says: 'an image that is shown nearly whole', element: 'media-viewer', found: opened, presses: /click img/, given: viewed([image('a', { width: 404, height: 600 })], 0) },
    { says: 'an image at its largest', element: 'media-viewer', presses: /Zoom|wheel/, events: { wheel: { deltaY: 1 } }, given: viewed(three.slice(0, 1), 0), after: (view) => void (view.zoom = 8) },
    { says: 'an image at its smallest', element: 'media-viewer', presses: /Zoom/, given: viewed(three.slice(0, 1), 0), after: (view) => void (view.zoom = 0.1) },
    { says: 'an image in a dialog that is closed', element: 'media-viewer', presses: /Zoom in/, found: () => ({ '^dialog': new Node('dialog', { open: false }), img: null }), given: viewed(three, 0), does: Object.fromEntries([keyed('ArrowRight')]) },
    { says: 'a text', element: 'media-viewer', presses: /wheel|Download/, found: opened, events: { wheel: { ctrlKey: true, deltaY: -1 } }, given: viewed(three, 1), does: Object.fromEntries(['+', 'ArrowRight'].map((name) => keyed(name))) },
    { says: 'a place in a text', element: 'media-viewer', presses: /^$/, given: viewed(three, 1, { mark: { at: 6, end: 9 } }), does: { 'stepped on': (view) => view.willUpdate(new Map([['at', 1]])) } },
    { says: 'long texts, where they are cut', render: () => [[0, 9], [longText.length, 9], [30_000, 9], ['line 40000'], ['line 13000'], ['line 14000'], ['line 59990']].map(([at, n]) => {
        const from = typeof at === 'string' ? longText.indexOf(at) : at;
        const view = Object.assign(new (elementOf('media-viewer'))(), { items: [text('l')], at: 0, text: n && !from ? longText.slice(0, 300_000) : longText, mark: n && !(from % 10) ? null : { at: from, end: from + 11 } });
        const [, pre] = /<pre[^>]*>(.*)<\/pre>/s.exec(flat(view.render(), []));
        return `<p>${pre.length} letters: ${pre.slice(0, 30)} … ${/.{30}<mark>.*?<\/mark>.{30}/s.exec(pre)?.[0] ?? 'no mark'} … ${pre.slice(-30)}</p>`;
    }) },
    { says: 'nothing', element: 'media-viewer', given: viewed([], 0) },
]);
const canvases = () => ['1', '2.5'].map((time) => new Node(`canvas ${time}`, { dataset: { time }, height: 54, getContext: (kind) => ({ drawImage: (from, ...place) => done.push(`canvas ${time} has ${from.called} in ${kind} at ${place}`) }) }));
const fires = async (type) => {
    for (const one of heard.filter((one) => one.type === type)) one.fn();
};
const player = (more) => new Node('video', { currentTime: 0, paused: false, requestFullscreen: async () => done.push('fills the screen'), play: async () => done.push('video.play'), ...more });
const strip = (more, rates = { fps: 2, min_frames: 4, max_frames: 16 }) => () => ({ attachment: video('v', more), rates });
/** As if all frames of the video had been drawn. */
const drawn = (view) => {
    for (const canvas of Node.found['all canvas']) canvas.dataset.drawn = canvas.dataset.time;
    view.updated(new Map([['attachment', 1]]));
};
written('videos', [
    { says: 'a strip', element: 'video-strip', typed: ['0', '2000', '9950', '1e9', ''], given: strip() },
    { says: 'a strip with a choice', element: 'video-strip', typed: ['0', '2950', '1e9'], given: strip({ video: { start_ms: 2000, end_ms: 3000, fps: 4, max_frames: 8 } }), after: (view) => void (view.opened = true) },
    { says: 'a strip of a long video', element: 'video-strip', presses: /^$/, given: strip({ seconds: 65.27 }, { fps: 2, min_frames: 4, max_frames: 100, temporal: 2, patch: 16, merge: 2, min_pixels: 1, max_pixels: 1e6 }), after: (view) => void (view.opened = true) },
    { says: 'a strip of a video whose length is not known', element: 'video-strip', given: strip({ seconds: 0 }) },
    { says: 'a strip of a video that is not looked into', element: 'video-strip', given: strip({ seconds: undefined }) },
    { says: 'a strip that is drawn', element: 'video-strip', presses: /^$/, found: () => ({ 'all canvas': canvases(), 'new video': new Node('the video', { videoWidth: 64, videoHeight: 32 }) }), given: strip(), does: {
        'picture by picture': async (view) => { for (const type of ['loadeddata', 'seeked', 'seeked', 'seeked']) (done.push(type), await fires(type), await time.settle()); }, 'a picture that comes late': async (view) => { for (const ms of [1999, 1, 1999, 1, 2000]) (await time.pass(ms), done.push(`${ms} ms later`)); },
        'a frame that is told': async (view) => (Object.assign(Node.found['new video'], { requestVideoFrameCallback: (fn) => void (done.push('waits for a frame'), setTimeout(fn, 5)) }), await fires('loadeddata'), await time.settle(), await fires('seeked'), await time.pass(4), done.push('4 ms later'), time.pass(1)),
        'another one, meanwhile': async (view) => ((view.round += 1), await fires('loadeddata'), time.settle()), 'the same one again': async (view) => (view.updated(new Map([['attachment', 1]])), done.push('which was not begun'), await fires('loadeddata'), time.settle()), 'another video': async (view) => ((view.attachment = video('w')), await time.settle(), view.updated(new Map([['attachment', 1]]))),
    } },
    { says: 'a strip that was drawn', element: 'video-strip', presses: /^$/, found: () => ({ 'all canvas': canvases(), 'new video': new Node('the video', { videoWidth: 64, videoHeight: 32 }) }), given: strip(), does: { 'of the same video': drawn, 'of another': (view) => ((view.attachment = video('w')), drawn(view)) } },
    { says: 'a strip of a video without pictures', element: 'video-strip', presses: /^$/, found: () => ({ 'all canvas': canvases(), 'new video': new Node('the video', { videoWidth: 0 }) }), given: strip({}, { fps: 2, min_frames: 4, max_frames: 256, patch: 16, merge: 2, temporal: 2, min_pixels: 1, max_pixels: 1e6 }), does: { 'it is loaded': () => fires('loadeddata') } },
    { says: 'a strip of many frames', element: 'video-strip', presses: /^$/, given: strip({ seconds: 49 }, { fps: 1, min_frames: 4, max_frames: 256 }), after: (view) => void (view.opened = true), begins: false },
    { says: 'a video that can fill the screen', element: 'video-clip', presses: /^$/, found: () => ({ video: player() }), given: () => (Object.assign(document, { fullscreenEnabled: true }), { video: video('v') }), does: {
        'it does, and no more': async (view) => (presses('click button Show v.mp4')(view), (document.fullscreenElement = view.player), view.player.dispatchEvent(new Event('fullscreenchange')), (document.fullscreenElement = null), view.player.dispatchEvent(new Event('fullscreenchange')), view.player.dispatchEvent(new Event('fullscreenchange'))), 'it may not': async (view) => (Object.assign(view.player, { requestFullscreen: () => Promise.reject(new TypeError('no')) }), presses('click button Show v.mp4')(view)),
    } },
    { says: 'a video that is high', element: 'video-clip', presses: /^$/, found: () => ({ video: player() }), given: () => (Object.assign(document, { fullscreenEnabled: false }), { video: video('v', { width: 30, height: 60 }) }) },
    { says: 'a video of no length', element: 'video-clip', presses: /^$/, found: () => ({ video: player() }), given: () => ({ video: video('v', { seconds: undefined, height: 0 }) }) },
    { says: 'a video that has ended', element: 'video-clip', presses: /click/, found: () => ({ video: player({ ended: true, paused: true }) }), given: () => ({ video: video('v', { width: 0 }), from: 500 }) },
    { says: 'a video', element: 'video-clip', typed: ['2500'], found: () => ({ video: new Node('video', { currentTime: 2, paused: true, play: async () => done.push('video.play') }) }), begins: false, given: () => ({ video: video('v', { width: 0 }) }) },
    { says: 'a part of a video that plays', element: 'video-clip', presses: /timeupdate|click/, found: () => ({ video: new Node('video', { currentTime: 3, paused: false }) }), given: () => ({ video: video('v', { width: 0 }), from: 1000, to: 3000, section: 'from 0:01 to 0:03' }), after: (view) => Object.assign(view, { at: 2500, playing: true }) },
    { says: 'a part of a video at its end', element: 'video-clip', presses: /timeupdate|click/, found: () => ({ video: new Node('video', { currentTime: 2.95, paused: true, play: async () => done.push('video.play') }) }), given: () => ({ video: video('v', { width: 0 }), from: 1000, to: 3000, section: 'from 0:01 to 0:03' }) },
    { says: 'a part of a video near its end', element: 'video-clip', presses: /timeupdate|click/, found: () => ({ video: new Node('video', { currentTime: 2.9, paused: true, play: async () => done.push('video.play') }) }), given: () => ({ video: video('v', { width: 0 }), from: 1000, to: 3000, section: 'x' }) },
    { says: 'the rest of a video', element: 'video-clip', presses: /^$/, given: () => ({ video: video('v', { width: 0 }), from: 1000, section: 'from 0:01' }) },
    { says: 'a video that cannot be played', element: 'video-clip', given: () => ({ video: video('v', { width: 0 }) }), after: (view) => void (view.broken = true) },
]);
/** Copied without the clipboard: whether the old way works, null: it fails. */
const noCopy = (works) => async (view) => {
    const { clipboard } = navigator;
    Object.assign(navigator, { clipboard: works === false ? undefined : { writeText: async () => { throw new Error('no focus'); } } });
    Object.assign(document, { execCommand: (name) => (done.push(`the page is to ${name}`), works ?? (() => { throw new Error(); })()), activeElement: new Node('what had the focus') });
    await presses('click button Copy')(view);
    await time.settle();
    done.push(`it says ${view.copied}`);
    Object.assign(navigator, { clipboard });
    document.activeElement = null;
    await time.pass(1999);
    done.push(`still ${view.copied}`);
    await time.pass(1);
};
const code = (language, more) => () => ({ code: 'let a = 1;', language, open: false, ...more });
written('code', [
    { says: 'of a language', element: 'code-block', given: code('python'), waits: 2000 },
    { says: 'of no language', element: 'code-block', presses: /Save/, given: code('') },
    { says: 'of an odd language', element: 'code-block', presses: /Save/, given: code('../x') },
    { says: 'of other languages', render: () => ['sh', 'zsh', 'console', 'svg', 'html', 'c++', 'c#', 'odd', '', 'json'].map((language) => [language, highlighted('<a b="1">// x\n$ ls "a" 1', language)]).concat([['60,000 letters', highlighted(' '.repeat(60_000), 'json')?.length], ['one more', highlighted(' '.repeat(60_001), 'json')], ['a word of 1,000 letters', highlighted(`let ${'x'.repeat(1000)}`, 'js')?.length], ['of one more', highlighted(`let ${'x'.repeat(1001)} = 1`, 'js')], ['script and style', highlighted('<script>let a = 1</script><style>p { color: red }</style>', 'html')], ['a script in no language', highlighted('<script>zzz</script>', 'html')], ['js', highlighted('let a = `${b + 1}`; f(`x`); class A { static b() {} }', 'js')]]).map(([language, shown]) => html`<p>${language}: ${shown === null ? 'plain' : shown}</p>`) },
    { says: 'that is copied where that is not allowed', element: 'code-block', presses: /^$/, given: code('c'), does: { 'by neither way': noCopy(false), 'by the old way': noCopy(true), 'by the old way, in a dialog': (view) => ((Node.found['dialog[open]'] = new Node('a dialog')), noCopy(true)(view)), 'which fails': noCopy(null) } },
    { says: 'that the library fails at', render: () => { const { highlight } = library; library.highlight = () => { throw new Error('of the library'); }; const shown = highlighted('let a', 'js'); library.highlight = highlight; return `${shown}`; } },
    { says: 'of a language with another name', element: 'code-block', presses: /Save/, given: code('go') },
    { says: 'that can be shown', element: 'code-block', presses: /Preview/, given: code('HTML') },
    { says: 'that is copied', element: 'code-block', presses: /Wrap/, given: code('c'), after: (view) => Object.assign(view, { copied: 'Copied', wrapped: true }) },
    { says: 'that is being written', element: 'code-block', given: code('svg', { open: true }) },
    { says: 'whose language is told late', element: 'code-block', presses: /^$/, given: code('c'), does: { 'it is JavaScript': (view) => void (view.language = 'js') } },
]);

/* ---- pages that are fetched ---- */

const link = (token, more) => ({ token, chat: 'c1', created: Date.UTC(2026, 0, 1), expires: Date.UTC(2026, 0, 8), ...more });
const shares = (said, more) => () => {
    const chat = chatOf([{ id: 'm1', role: 'user', text: 'q' }], { connection: wire(said, more) });
    return { chat, conversation: chat.current };
};
const listed = { 'POST v1/history/shares': [link('t4')], 'v1/history/shares': [{ data: [link('t1'), link('t2', { chat: 'c2' }), link('t3', { expires: null })] }] };
written('links', [
    { says: 'two', element: 'share-links', found: { 'typed days': '7' }, given: shares({ ...listed, 'v1/history/shares/t1': [{}] }) },
    { says: 'made without an end, and not taken back', element: 'share-links', presses: /submit|Take/, found: { 'typed days': '0' }, given: shares({ ...listed, 'v1/history/shares/t3': [{ error: { message: 'Too late.' } }, 409] }, { key: 'k' }) },
    { says: 'of a page of this machine', element: 'share-links', presses: /^$/, given: () => ((location.hostname = 'localhost'), shares({ ...listed }, { key: 'k' })()) },
    { says: 'of a page of another', element: 'share-links', presses: /^$/, given: () => ((location.hostname = 'localhosts'), shares({ ...listed }, { key: 'k' })()) },
    { says: 'none, as the server is away', element: 'share-links', given: () => ((location.hostname = 'host'), shares({})()) },
]);
const shared = { title: 'Title', created: Date.UTC(2026, 0, 1), expires: null, messages: [{ role: 'user', text: 'Q', attachments: [image('a', { blob: null, sha256: 'a' }), image('none', { blob: null }), text('t', { blob: null, sha256: 't' }), video('v', { blob: null, sha256: 'v' }), image('b', { blob: null, sha256: 'b' })] }, { role: 'assistant', text: '**A**', model: 'Small' }, { role: 'assistant', text: 'B' }, { role: 'user', text: '', erased: true }, { role: 'user', text: '' }] };
const behind = (said, status = 200) => () => {
    globalThis.location.hash = '#t/1';
    globalThis.fetch = async (url, init) => {
        done.push(`asks ${url} ${init?.cache ?? ''}`);
        if (/files\/b/.test(url)) throw new TypeError('network');
        if (/files/.test(url)) return new Response('x', { status: 200 });
        if (!status) throw new TypeError('network');
        return new Response(JSON.stringify(said), { status });
    };
    return {};
};
written('shared', [
    { says: 'a chat', element: 'shared-chat', given: behind(shared), does: { 'another link': () => listeners.hashchange(), 'another link, which is on its way': () => { globalThis.fetch = () => new Promise(() => {}); listeners.hashchange(); } } },
    { says: 'a chat without a title that ends', element: 'shared-chat', presses: /^$/, given: behind({ ...shared, title: '', expires: Date.UTC(2026, 0, 8), messages: [] }) },
    { says: 'before it is there', element: 'shared-chat', presses: /^$/, given: () => (behind(shared)(), (globalThis.fetch = () => new Promise(() => {})), {}) },
    { says: 'whose files are on their way', element: 'shared-chat', presses: /^$/, given: () => { behind(shared)(); const { fetch } = globalThis; globalThis.fetch = (url, init) => (/files/.test(url) ? new Promise(() => {}) : fetch(url, init)); return {}; } },
    { says: 'none', element: 'shared-chat', given: behind({ error: { message: 'x' } }, 404) },
    { says: 'a link that is none', element: 'shared-chat', given: behind({ error: { message: 'x' } }, 400) },
    { says: 'a server that is busy', element: 'shared-chat', given: behind({ error: { message: 'Busy.' } }, 429), does: { 'another link, which is there': () => { behind(shared)(); listeners.hashchange(); } } },
    { says: 'a server that is away', element: 'shared-chat', given: behind({}, 0) },
]);
const status = (more) => ({
    state: 'ready', uptime_s: 5, version: '9', model: { compute: 'avx2' }, queue: { running: 1, waiting: 2, slots: 4 }, running: [], waiting: [],
    totals: { requests: 1, generated_tokens: 10, prompt_tokens: 20, predicted_per_second: 0, prompt_per_second: 0, vision_encodes: 0 }, cache: { queries: 0 }, mtp: { drafted: 0 }, memory: { rss_bytes: 1024, weight_bytes: 2048 }, ...more,
});
const running = { id: 'q1', route: 'text', phase: 'decode', tokens: 1, total: 9, processed: 3, tokens_per_second: 2, elapsed_ms: 1000 };
const busy = { state: 'odd', uptime_s: 6, running: [running, { ...running, id: 'q2', phase: 'odd', route: 'media' }], waiting: [{ ...running, id: 'q3', phase: 'prefill', route: 'media', tokens_per_second: 0 }], totals: { requests: 2, generated_tokens: 19, prompt_tokens: 1e7, predicted_per_second: 3, prompt_per_second: 100, vision_encodes: 5 }, cache: { queries: 4, hit_rate: 0.5, bytes: 1024, disk: { entries: 3, bytes: 1024, limit: 2048, hits: 1 } }, mtp: { drafted: 10, acceptance_rate: 0.7 } };
const ofStatus = (...list) => () => {
    let at = 0;
    return { connection: wire({ 'v1/status': () => list[Math.min(at++, list.length - 1)], 'v1/requests/q1/cancel': [{}], 'v1/requests/q2/cancel': [{}], 'v1/requests/q3/cancel': [{}] }) };
};
const seen = () => ({ '^dialog': new Node('dialog', { open: true }) });
const awake = (ms) => async () => {
    document.hidden = false;
    await time.pass(ms);
    document.hidden = true;
};
const { rateBetween } = await withoutBrowser('views/server-status.js');
const { abilities } = await withoutBrowser('views/welcome.js');
const at = (uptime_s, tokens, total = 10) => status({ uptime_s, running: tokens.map((one) => ({ tokens: one })), totals: { generated_tokens: total } });
written('status', [
    { says: 'tokens a second between two readings', render: () => [[at(3, []), at(1, [])], [at(3, [4, 2]), at(1, [])], [at(3, []), at(1, [4])], [at(3, [4]), at(3, [])], [at(5, [], 30), at(1, [4])]].map(([now, before]) => ` ${rateBetween(now, before)}`).join() },
    { says: 'in a dialog that is closed', element: 'server-status', found: () => ({ '^dialog': new Node('dialog', { open: false }) }), given: ofStatus([status()]), after: awake(3000) },
    { says: 'in a page that nobody sees', element: 'server-status', found: seen, given: ofStatus([status()]) },
    { says: 'while nothing runs', element: 'server-status', found: seen, given: ofStatus([status()]), after: awake(1000) },
    { says: 'while something runs', element: 'server-status', found: seen, given: ofStatus([status()], [status(busy)]), after: awake(2000) },
    { says: 'of a server that does something odd', element: 'server-status', presses: /^$/, found: seen, given: ofStatus([status({ running: [{ ...running, phase: 'odd', total: 0 }], waiting: [{ ...running, phase: 'prefill', total: 0, tokens: 2 }, { ...running, phase: 'prefill', total: 1, processed: 0 }] })]), after: awake(1000), does: { 'its dialog is opened': hears('toggle', { newState: 'open' }) } },
    { says: 'of another process', element: 'server-status', presses: /^$/, found: seen, given: ofStatus([status(busy)], [status()]), after: awake(2000) },
    { says: 'of a server that refuses', element: 'server-status', found: seen, given: ofStatus([{}, 401]), after: awake(1000) },
    { says: 'of a server that fails later', element: 'server-status', presses: /^$/, found: seen, given: ofStatus([status()], [{}, 500]), after: awake(2000) },
]);
const samples = [{ files: [], title: 'Sum', question: 'Sum?', thinking: true }, { files: [], question: 'Talk?' }, { files: ['a.png'], question: 'What?', title: 'Image' }, { files: ['v.mp4'], poster: 'v.png', question: 'Video?' }, { question: 'bad' }, { files: [] }];
const greeted = (more, said = [samples]) => () => {
    globalThis.fetch = async (url) => {
        done.push(`asks ${url}`);
        if (!said.length) throw new TypeError('network');
        return /json/.test(url) ? new Response(JSON.stringify(said[0]), { status: said[1] ?? 200 }) : new Response('x', { status: /v\.mp4/.test(url) ? 404 : 200, headers: { 'Content-Type': 'image/png' } });
    };
    return { chat: chatOf(), model: { ...model, modalities: ['text', 'images'], context: 4096, thinkingKnown: true, ...more }, open: true };
};
written('welcome', [
    { says: 'what models can and cannot', render: () => [{ name: 'Seedling' }, { name: 'x seedling' }, { name: 'x' }, { name: 'x', vision: true }, { name: 'x', vision: true, video: true }, { name: 'x', video: true }, { name: 'x', vision: true, thinking: true, context: 1000 }, { name: 'x', context: 32_768 }].map((one) => `<p>${JSON.stringify(one)}</p>${JSON.stringify(abilities(one))}`).join('') },
    { says: 'of a model that sees', element: 'chat-welcome', given: greeted({}) },
    { says: 'on a phone', element: 'chat-welcome', presses: /click button (Image|Video|What|Sum)/, given: () => ((matchMedia('(pointer: coarse)').matches = true), greeted({}, [[samples[2], samples[3], samples[0], { ...samples[3], title: 'Film' }]])()) },
    { says: 'of a model that reads', element: 'chat-welcome', presses: /^$/, given: () => ((matchMedia('(pointer: coarse)').matches = false), greeted({ vision: false, video: false, thinking: false })()) },
    { says: 'of a model that sees images', element: 'chat-welcome', presses: /toggle/, given: greeted({ video: false, tools: false, thinkingKnown: false, context: 0 }, [[], 404]), after: (view) => void (view.open = false) },
    { says: 'of a server that is away', element: 'chat-welcome', presses: /^$/, given: greeted({}, []) },
]);
