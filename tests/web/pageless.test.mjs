/** Parts of the page that have no element of their own, without a browser: the service worker and what is shared with the page,
 * dictation and reading aloud, and following the end of an answer. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import vm from 'node:vm';
import { takeShared } from '../../web/js/state/shared.js';

const web = join(dirname(fileURLToPath(import.meta.url)), '../../web');
const SCOPE = 'http://host/chat/';

/** caches, as far as they are used. */
function makeCaches() {
    const all = new Map();
    const address = (request) => (typeof request === 'string' ? request : request.url);
    const cacheOf = (kept) => ({
        match: async (request) => kept.get(address(request))?.clone(),
        put: async (request, reply) => void kept.set(address(request), reply),
        delete: async (request) => kept.delete(address(request)),
        keys: async () => [...kept.keys()].map((url) => ({ url })),
    });
    return { all, open: async (name) => cacheOf(all.get(name) ?? all.set(name, new Map()).get(name)) };
}

/** The service worker, its events, and the network before it. */
function makeWorker() {
    const caches = makeCaches();
    const heard = {};
    const net = { asked: [], answer: () => new Response('', { status: 404 }) };
    const calls = [];
    const self = { registration: { scope: SCOPE }, addEventListener: (name, fn) => (heard[name] = fn), skipWaiting: async () => calls.push('skipped'), clients: { claim: async () => calls.push('claimed') } };
    const fetch = async (given) => {
        const url = typeof given === 'string' ? given : given.url;
        net.asked.push(url.replace(SCOPE, ''));
        return net.answer(url.replace(SCOPE, ''));
    };
    vm.runInNewContext(readFileSync(join(web, 'sw.js'), 'utf8'), { self, caches, fetch, URL, Response: Object.assign(function (...given) { return new Response(...given); }, { error: () => 'an error', redirect: (...given) => ['redirected', ...given] }), Set, Promise, String, encodeURIComponent }, { filename: pathToFileURL(join(web, 'sw.js')).href });
    /** What becomes of a request; undefined: the worker leaves it to the browser. */
    const ask = async (url, method = 'GET', more = {}) => {
        const waits = [];
        let answer;
        heard.fetch({ request: { url: new URL(url, SCOPE).href, method, ...more }, respondWith: (given) => (answer = given), waitUntil: (one) => waits.push(one) });
        const given = await answer;
        await Promise.all(waits);
        return given;
    };
    const kept = () => [...(caches.all.get('parley-shell')?.keys() ?? [])].map((url) => url.replace(SCOPE, '')).sort();
    const end = async (name) => {
        let waits;
        heard[name]({ waitUntil: (one) => (waits = one) });
        await waits;
    };
    return { ask, caches, calls, end, kept, net };
}

test('a worker that is installed keeps the page, what it names, and what is fetched later', async () => {
    const { calls, end, kept, net } = makeWorker();
    const page = '<link href="css/base.css"><link href="icon.svg"><script src="js/start.js"></script><a href="#x"></a><a href="https://x/y.js"></a><img src="samples/a.jpg">';
    net.answer = (path) => (path === 'js/views/voice.js' ? new Response('', { status: 404 }) : path === 'vendor/temml.js' ? Promise.reject(new TypeError('network')) : new Response(path === '' ? page : path));
    await end('install');
    const names = kept();
    assert.deepEqual(['', 'css/base.css', 'icon.svg', 'js/start.js'].filter((name) => !names.includes(name)), []);
    assert.deepEqual(['samples/a.jpg', 'js/views/voice.js', 'vendor/temml.js'].filter((name) => names.includes(name)), [], 'no part of the page; not had now');
    assert.ok(names.includes('vendor/highlight.js') && names.includes('js/state/offline_copy.js'));
    await end('activate');
    assert.deepEqual(calls, ['skipped', 'claimed']);
});

test('the network comes first; what was kept stands in for a server that is away or fails', async () => {
    const { ask, kept, net } = makeWorker();
    const text = async (given) => (given === 'an error' ? given : given?.text());
    net.answer = () => new Response('one', { headers: { ETag: 'a' } });
    assert.equal(await text(await ask('js/views/app.js')), 'one');
    assert.deepEqual(kept(), ['js/views/app.js']);
    net.answer = () => new Response('two', { headers: { ETag: 'b' } });
    assert.equal(await text(await ask('js/views/app.js')), 'two');
    net.answer = () => new Response('same mark, other words', { headers: { ETag: 'b' } });
    await ask('js/views/app.js');
    net.answer = () => Promise.reject(new TypeError('network'));
    assert.equal(await text(await ask('js/views/app.js')), 'two', 'what has the same mark is not kept again');
    assert.equal(await text(await ask('js/views/none.js')), 'an error');
    for (const status of [500, 502]) {
        net.answer = () => new Response('bad', { status });
        assert.equal(await text(await ask('js/views/app.js')), 'two');
        assert.equal(await text(await ask('js/views/none.js')), 'bad');
    }
    net.answer = () => new Response('gone', { status: 404 });
    assert.equal(await text(await ask('js/views/app.js')), 'gone');
    net.answer = () => Object.defineProperty(new Response('elsewhere'), 'redirected', { value: true });
    await ask('js/views/app.js');
    net.answer = () => Promise.reject(new TypeError('network'));
    assert.equal(await text(await ask('js/views/app.js')), 'two', 'neither is kept');
    net.answer = () => new Response('no mark');
    await ask('js/views/app.js');
    await ask('index.html');
    assert.deepEqual([kept().includes(''), kept().includes('index.html')], [true, false], 'all addresses of the page are one');
    net.asked.length = 0;
    await ask('');
    assert.ok(net.asked.length > 20, 'with the page comes what is fetched later');
});

test('requests of the API, of other places and of other kinds are left alone', async () => {
    const { ask, net } = makeWorker();
    net.answer = () => new Response('x');
    for (const [url, method] of [['v1/models'], ['js/'], ['samples/a.jpg'], ['http://host/other/js/a.js'], ['js/a.js', 'POST'], ['share'], ['v1/responses', 'POST']]) assert.equal(await ask(url, method), undefined, `${method} ${url}`);
    assert.deepEqual(net.asked, []);
    for (const url of ['index.html', 'icon.svg', 'manifest.webmanifest', 'css/a.css', 'languages/de.json', 'vendor/a.js', 'js/state/a.js?x=1']) assert.ok(await ask(url), url);
});

test('what other programs share waits for the page, which takes it once', async () => {
    const { ask, caches } = makeWorker();
    const share = (fields, files = []) => {
        const form = new FormData();
        for (const [name, value] of Object.entries(fields)) form.append(name, value);
        for (const one of files) form.append('files', one);
        return ask('share', 'POST', { formData: async () => form });
    };
    globalThis.caches = /** @type {any} */ (caches);
    assert.deepEqual(await share({ title: 'A page', text: 'A page', url: 'https://example.org/' }, [new File(['words'], 'nötes.txt', { type: 'text/plain' }), new File(['x'], 'b')]), ['redirected', `${SCOPE}?shared`, 303]);
    const { text, files } = await takeShared();
    assert.deepEqual([text, files.map(({ name, type }) => [name, type]), await files[0].text()], ['A page\nhttps://example.org/', [['nötes.txt', 'text/plain'], ['b', '']], 'words']);
    assert.deepEqual(await takeShared(), { text: '', files: [] }, 'once');
    await share({});
    assert.deepEqual(await takeShared(), { text: '', files: [] });
});

// ---- voice ----

const engines = [];
const spoken = [];
globalThis.window = /** @type {any} */ ({
    SpeechRecognition: class {
        constructor() {
            engines.push(this);
        }
        start = () => (this.state = 'started');
        stop = () => (this.state = 'stopped');
    },
});
Object.defineProperty(globalThis, 'navigator', { configurable: true, value: { language: 'de-CH' } });
globalThis.SpeechSynthesisUtterance = /** @type {any} */ (class {
    constructor(text) {
        this.text = text;
    }
});
globalThis.speechSynthesis = /** @type {any} */ ({ cancel: () => spoken.push('cancelled'), speak: (one) => spoken.push(one) });
const voice = await import('../../web/js/views/voice.js');

test('dictation: what is heard, sentence by sentence, and why it ended', () => {
    const heard = [];
    const stop = voice.dictate({ words: (...given) => heard.push(given), ended: (problem) => heard.push(problem) });
    const [engine] = engines;
    assert.deepEqual([engine.continuous, engine.interimResults, engine.lang, engine.state], [true, true, 'de-CH', 'started']);
    const result = (transcript, isFinal) => Object.assign([{ transcript }, { transcript: 'worse' }], { isFinal });
    engine.onresult({ resultIndex: 1, results: [result('old', true), result('two', true), result('thr', false)] });
    assert.deepEqual(heard.splice(0), [['two', true], ['thr', false]]);
    for (const [error, told] of [['no-speech', ''], ['aborted', ''], ['network', 'The speech engine of this browser cannot be reached.'], ['odd', 'The speech engine says: odd.']]) {
        engine.onerror({ error });
        engine.onend();
        assert.deepEqual(heard.splice(0), [told]);
    }
    stop();
    assert.equal(engine.state, 'stopped');
});

test('reading aloud: pieces that end with a sentence or at a space, one after the other, until it is stopped', () => {
    const long = 'word '.repeat(60).trim();
    assert.deepEqual(voice.piecesOf('One. Two!\n\nThree?'), ['One. Two!', 'Three?']);
    assert.deepEqual(voice.piecesOf(`${'x'.repeat(190)}. ${'y'.repeat(50)}.`).map((one) => one.length), [191, 51]);
    assert.deepEqual(voice.piecesOf(long).map((one) => one.length), [199, 99]);
    assert.deepEqual(voice.piecesOf('x'.repeat(450)).map((one) => one.length), [200, 200, 50]);
    assert.deepEqual(voice.piecesOf(`${'あ'.repeat(150)}。${'い'.repeat(100)}`).map((one) => one.length), [200, 51]);
    assert.deepEqual(voice.piecesOf(' \n'), []);
    let ended = 0;
    const stop = voice.read('One.\nTwo.\nThree.', () => (ended += 1));
    assert.deepEqual(spoken.map((one) => one.text ?? one), ['cancelled', 'One.']);
    spoken.at(-1).onend();
    assert.deepEqual([spoken.at(-1).text, ended], ['Two.', 0]);
    stop();
    assert.deepEqual([spoken.at(-1), ended], ['cancelled', 1]);
    spoken.length = 0;
    voice.read('One.\nTwo.', () => (ended += 1));
    spoken.at(-1).onerror();
    assert.equal(ended, 2);
    spoken.at(-1).onend();
    spoken.at(-1).onend();
    assert.equal(ended, 3, 'at its end');
    const block = (text) => ({ textContent: text });
    const removed = [];
    const answer = { cloneNode: (deep) => (assert.equal(deep, true), { querySelectorAll: (what) => (/code-block/.test(what) ? [{ remove: () => removed.push(what) }] : [{ children: [block(' One\n two '), block(' '), block(null)] }, { children: [block('three')] }]) }) };
    assert.deepEqual([voice.spokenOf(answer), removed.length], ['One two\nthree', 1]);
});

// ---- following ----

test('the page follows while the reader is at its end, and no reader is pulled away', async () => {
    const listeners = {};
    let selection = null;
    let grown;
    globalThis.document = /** @type {any} */ ({ addEventListener: (name, fn) => (listeners[name] = fn) });
    globalThis.getSelection = () => selection;
    const watched = [];
    globalThis.ResizeObserver = /** @type {any} */ (class {
        constructor(fn) {
            grown = fn;
        }
        observe = (one) => watched.push(one);
    });
    const { Follower } = await import('../../web/js/views/scroll.js');
    const scroller = { scrollHeight: 1000, clientHeight: 400, scrollTop: 600, firstElementChild: 'content', messages: true, addEventListener: (name, fn) => (listeners[name] = fn), contains: (node) => node === 'inside', querySelector: (what) => what === '.messages' && scroller.messages };
    const heard = [];
    let wanted = true;
    const follower = new Follower(/** @type {any} */ (scroller), (pinned) => heard.push(pinned), () => wanted);
    assert.deepEqual([follower.pinned, watched], [true, [scroller, 'content']]);
    scroller.scrollHeight = 1100;
    grown();
    assert.equal(scroller.scrollTop, 1100);
    scroller.messages = false;
    scroller.scrollHeight = 1200;
    grown();
    assert.equal(scroller.scrollTop, 1100, 'the empty state begins at its top');
    scroller.messages = true;
    const news = () => heard.splice(0);
    const back = () => {
        scroller.scrollTop = scroller.scrollHeight - scroller.clientHeight;
        listeners.scroll();
        assert.deepEqual(news(), [true]);
    };
    listeners.wheel({ deltaY: 1 });
    listeners.wheel({ deltaY: 0 });
    assert.deepEqual(news(), []);
    listeners.wheel({ deltaY: -1 });
    listeners.wheel({ deltaY: -1 });
    assert.deepEqual(news(), [false]);
    scroller.scrollHeight = 1300;
    grown();
    assert.equal(scroller.scrollTop, 1100, 'who has left is not pulled back');
    back();
    scroller.scrollTop = scroller.scrollHeight - scroller.clientHeight - 32;
    listeners.touchmove();
    assert.deepEqual(news(), [], 'within 32 px it is the end still');
    scroller.scrollTop -= 1;
    listeners.touchmove();
    assert.deepEqual(news(), [false]);
    back();
    for (const [key, tagName, leaves] of [['PageUp', 'DIV', true], ['Home', 'DIV', true], ['ArrowUp', 'DIV', true], ['PageDown', 'DIV', false], ['ArrowUp', 'TEXTAREA', false], ['Home', 'INPUT', false]]) {
        listeners.keydown({ key, target: { tagName } });
        assert.deepEqual(news(), leaves ? [false] : [], `${key} in ${tagName}`);
        if (leaves) back();
    }
    for (const [one, leaves] of [[null, false], [{ isCollapsed: true, anchorNode: 'inside' }, false], [{ isCollapsed: false, anchorNode: 'outside' }, false], [{ isCollapsed: false, anchorNode: 'inside' }, true]]) {
        selection = one;
        listeners.selectionchange();
        assert.deepEqual(news(), leaves ? [false] : []);
    }
    scroller.scrollTop = scroller.scrollHeight - scroller.clientHeight;
    listeners.scroll();
    assert.deepEqual(news(), [], 'who selects at the end is not held there');
    selection = null;
    back();
    scroller.scrollTop -= 100;
    listeners.scroll();
    assert.deepEqual(news(), [false], 'scrolled upwards');
    scroller.scrollTop += 50;
    listeners.scroll();
    assert.deepEqual(news(), []);
    follower.jump();
    assert.deepEqual([news(), scroller.scrollTop], [[true], scroller.scrollHeight]);
    listeners.scroll();
    scroller.scrollHeight += 500;
    listeners.scroll();
    assert.deepEqual(news(), [], 'text below is no scrolling upwards');
    scroller.scrollTop -= 1;
    listeners.scroll();
    assert.deepEqual(news(), [], 'nor is a rounded pixel');
    scroller.scrollTop -= 3;
    listeners.scroll();
    assert.deepEqual(news(), [false], 'a few are');
    follower.jump();
    scroller.scrollHeight += 500;
    listeners.scroll();
    news();
    wanted = false;
    grown();
    assert.deepEqual(news(), [false], 'who does not want it, and is not at the end');
    const lone = new Follower(/** @type {any} */ ({ ...scroller, firstElementChild: null }), () => {}, () => true);
    assert.deepEqual([watched.length, lone.pinned], [3, true]);
});
