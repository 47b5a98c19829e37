/** What elements show and do where a part of the page cannot be fetched, and formulas, as shown/away.txt says (shown.mjs). They stand
 * alone as every module that is loaded behind `register` takes longer than the others wait. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { register } from 'node:module';
import test from 'node:test';
import vm from 'node:vm';
import { Node, done, elementOf, flat, withoutBrowser } from './made_up_lit.mjs';
import { chatOf, madeUp, presses, time, wire, written } from './shown.mjs';

// What is fetched later is not there. In place of the library of formulas is one that notes what it is asked; the page begins with one that is empty.
const AWAY = ['server-status', 'prompts', 'share', 'preview', 'viewer', 'voice', 'tool-view', 'tools-menu', 'tool-offers', 'model-list', 'hub-models', 'video-strip', 'clip', 'transfer', 'shared', 'pdf'].map((name) => `/${name}.js`);
const formulas = `data:text/javascript,${encodeURIComponent('export default { render: (...given) => globalThis.drawsFormula(...given) };')}`;
const page = `data:text/javascript,${encodeURIComponent('globalThis.pageBegins();')}`;
register(`data:text/javascript,${encodeURIComponent(`
    const away = ${JSON.stringify(AWAY)};
    export const resolve = (name, context, next) => {
        if (name.endsWith('temml.js')) return { url: ${JSON.stringify(formulas)}, shortCircuit: true };
        if (name.endsWith('views/app.js') && context.parentURL.includes('start.js')) return { url: ${JSON.stringify(page)}, shortCircuit: true };
        const part = away.find((one) => name.endsWith(one));
        if (part && !/shown_away|made_up_lit/.test(context.parentURL)) {
            const words = context.parentURL.replace(/.*[/]/, '') + ' asks for ' + part.slice(1);
            return { url: 'data:text/javascript,' + encodeURIComponent('globalThis.fetched.add("' + words + '"); throw new Error("away");'), shortCircuit: true };
        }
        return next(name, context);
    };`)}`);
/** What asked for what. @type {Set<string>} */
const fetched = (globalThis.fetched = new Set());
for (const name of ['app', 'message', 'composer', 'math-view', 'shared-page', 'model-list']) await withoutBrowser(`views/${name}.js`);

/** Something is asked for, and said behind it. @param {(view: any) => any} act */
const inVain = (act) => async (view) => {
    await act(view);
    await time.until(() => done.some((line) => /^tells|^the window/.test(line)) || view.notice || view.refused?.length || view.problem);
};
const event = (type, detail) => (view) => presses(type, { detail })(view);
const session = { capabilities: { modalities: ['text'] } };
const ofPage = () => {
    Object.assign(location, { search: '', hash: '#/' });
    const chat = chatOf([{ id: 'm1', role: 'user', text: 'Q' }], { start: async () => {}, open: async () => true, read: async () => chat.current, all: async () => [], modelOf: () => '', draft: { text: '', attachments: [] }, connection: wire({}, { session }), list: [{}] });
    return { chat, settings: Object.assign(new EventTarget(), chat.settings) };
};
const found = () => ({ 'chat-composer': madeUp('field', { updateComplete: Promise.resolve() }, ['focusField', 'restore', 'add']), 'dialog[open]': null, '.renaming': null, '.earlier': null, '.quote': null });
const ofField = () => ({ chat: chatOf([], { current: { options: { tools: {} } } }), settings: { get: (name) => ({ imageSize: 1 << 20 })[name], set() {} }, model: { name: 'M', vision: true, video: true, tools: true, maxImages: 4 }, queue: [] });
written('away', [
    { says: 'parts of the page', element: 'parley-app', brief: true, presses: /^$/, found, given: ofPage, after: (view) => void (view.part = 'browser'), does: Object.fromEntries(Object.entries({
        'the server\'s status': presses('click button Server status'), 'prompts': event('edit-prompts'), 'an image': event('show-image', { items: [], image: null }), 'code': event('show-preview', { code: 'x', language: 'html' }), 'a link': event('take-chat', { id: 'c1', kind: 'share' }), 'a chat as a file': event('take-chat', { id: 'c1', kind: 'json' }),
        'all chats as a file': presses('click button Export all'), 'chats of a file': presses('accept=".json,', { target: new Node('the file', { files: [new File(['x'], 'a.json')] }) }), 'the models': presses('beforetoggle div', { newState: 'open', currentTarget: new Node('menu') }),
    }).map(([says, act]) => [says, inVain(act)])) },
    { says: 'opened as others share something', element: 'parley-app', brief: true, presses: /^$/, found, given: () => Object.assign(ofPage(), void (location.search = '?shared')), after: async (view) => (await time.until(() => view.notice), void done.push(view.notice.text)) },
    { says: 'what is said is not dictated, what is offered not shown', element: 'chat-composer', brief: true, presses: /^$/, found: () => ({ textarea: new Node('textarea', { value: '/' }) }), given: () => (Object.assign(globalThis, { SpeechRecognition: class {} }), ofField()), does: {
        'dictation': inVain(presses('click button Dictate')), 'what servers offer': inVain(presses('beforetoggle div Add from a server', { newState: 'open', currentTarget: new Node('menu') })), 'tools': async (view) => (presses('beforetoggle div Tools', { newState: 'open', currentTarget: new Node('menu') })(view), time.settle()), 'a slash': async (view) => (presses('input textarea')(view), time.settle()),
        'a document is added': inVain((view) => view.add([new File(['%PDF-1.7'], 'a.pdf', { type: 'application/pdf' })])),
    } },
    { says: 'what is not read aloud', element: 'chat-message', brief: true, presses: /^$/, given: () => { const chat = chatOf([{ id: 'm1', role: 'assistant', text: 'A' }]); Object.assign(globalThis, { speechSynthesis: {}, SpeechSynthesisUtterance: class {} }); return { chat, message: chat.current.messages.m1, siblings: [] }; }, does: { 'its words': inVain(presses('click button Read aloud')) } },
]);

test('what is fetched when it is needed', async () => {
    const chat = chatOf([{ id: 'm1', role: 'user', text: 'Q', attachments: [{ id: 'v', kind: 'video', name: 'v', bytes: 1, blob: new Blob() }] }, { id: 'm2', role: 'assistant', text: 'A', tools: [{ id: 't', name: 'f', at: 0 }] }], { connection: wire({ 'v1/models': [{ data: [] }], props: [{ hub: 'yes' }] }) });
    const { m1, m2 } = chat.current.messages;
    const make = (name, fields) => Object.assign(new (elementOf(name))(), fields);
    flat(make('chat-message', { chat, message: m1, siblings: [m1] }).render());
    const answer = make('chat-message', { chat, message: m2, siblings: [m2] });
    presses('beforetoggle div More', { newState: 'open', currentTarget: new Node('menu') })(answer);
    make('chat-composer', { attachments: m1.attachments }).willUpdate();
    flat(make('shared-chat', { chat: { messages: [{ role: 'user', text: '', attachments: m1.attachments }] } }).render());
    const app = make('parley-app', { ...ofPage(), tools: true });
    presses('click button Settings')(app);
    presses('beforetoggle div Presets', { newState: 'open', currentTarget: new Node('menu') })(app);
    const list = make('model-list', { chat, connection: chat.connection, hub: 'yes' });
    await presses('toggle details', { target: { open: true } })(list);
    const all = [
        'app.js asks for model-list.js', 'app.js asks for preview.js', 'app.js asks for prompts.js', 'app.js asks for server-status.js', 'app.js asks for share.js', 'app.js asks for shared.js', 'app.js asks for tools-menu.js', 'app.js asks for transfer.js', 'app.js asks for viewer.js', 'attachments.js asks for pdf.js',
        'composer.js asks for prompts.js', 'composer.js asks for tool-offers.js', 'composer.js asks for tools-menu.js', 'composer.js asks for video-strip.js', 'composer.js asks for voice.js', 'message.js asks for clip.js', 'message.js asks for model-list.js', 'message.js asks for tool-view.js', 'message.js asks for voice.js',
        'model-list.js asks for hub-models.js', 'shared-page.js asks for clip.js',
    ];
    await time.until(() => all.every((one) => fetched.has(one)) && list.problem);
    assert.deepEqual([...fetched].sort(), all);
    assert.equal(list.problem, 'The server does not answer.');
});

/* ---- formulas ---- */

const formula = (tex, display = false) => () => ({ tex, display });
/** What the library makes of a formula: the place it draws in has it. @param {any} math */
const library = (math) => () => (globalThis.drawsFormula = (tex, place, options) => {
    done.push(`draws ${tex.slice(0, 20)} ${JSON.stringify(options)}`);
    if (!math) throw new Error('no formula');
    place.querySelector = () => math.node;
});
const host = (more = {}) => () => (library({ node: new Node('the formula') })(), { ':first-child': new Node('its place'), ...more });
test('the library of formulas comes with the first one', async () => {
    const view = Object.assign(new (elementOf('math-view'))(), formula('a^2')());
    globalThis.drawsFormula = () => done.push('draws');
    done.length = 0;
    assert.equal(flat(view.render()), '<span class="math-inline"><code>a^2</code></span>');
    view.updated();
    assert.deepEqual(done, []);
    await import('../../web/vendor/temml.js');
    await time.settle();
    assert.deepEqual(done, ['is drawn anew']);
});
written('formulas', [
    { says: 'in a line', element: 'math-view', presses: /^$/, found: host(), given: formula('a^2') },
    { says: 'of its own', element: 'math-view', presses: /^$/, found: host(), given: formula('b', true) },
    { says: 'that cannot be read', element: 'math-view', presses: /^$/, found: () => (library(null)(), {}), given: formula('\\') },
    { says: 'that becomes nothing', element: 'math-view', presses: /^$/, found: () => (library({ node: null })(), {}), given: formula('{}') },
    { says: 'of 10,000 letters', element: 'math-view', brief: true, presses: /^$/, found: host(), given: formula('x'.repeat(10_000)) },
    { says: 'of one more', element: 'math-view', brief: true, presses: /^$/, found: host(), given: formula('x'.repeat(10_001)) },
]);

/* ---- what comes first ---- */

const source = (name) => readFileSync(new URL(`../../web/js/${name}`, import.meta.url), 'utf8');

test('language, theme and text size are there before the first frame', () => {
    /** What the document is like, of what is kept and what the browser prefers. */
    const first = (kept, languages) => {
        const [root, added] = [{ dataset: {} }, []];
        const document = { documentElement: root, createElement: (name) => ({ name }), head: { append: (node) => added.push(node) } };
        const getItem = (name) => {
            assert.equal(name, 'parley.settings');
            if (kept === 'forbidden') throw new Error();
            return kept;
        };
        vm.runInNewContext(source('first-frame.js'), { document, localStorage: { getItem }, navigator: { languages }, JSON, Object }, { filename: new URL('../../web/js/first-frame.js', import.meta.url).href });
        return JSON.parse(JSON.stringify([root, added]));
    };
    const loads = (language) => [{ name: 'link', rel: 'preload', as: 'fetch', crossOrigin: 'anonymous', href: `languages/${language}.json` }];
    assert.deepEqual(first(null, ['en-GB']), [{ dataset: {}, lang: 'en', dir: 'ltr' }, []]);
    assert.deepEqual(first('{', ['xx', 'fr-CA', 'de']), [{ dataset: {}, lang: 'fr', dir: 'ltr' }, loads('fr')]);
    assert.deepEqual(first('forbidden', ['xx']), [{ dataset: {}, lang: 'en', dir: 'ltr' }, []]);
    assert.deepEqual(first('{"theme":"dark","textSize":"large","language":"ar"}', ['de']), [{ dataset: { theme: 'dark', text: 'large' }, lang: 'ar', dir: 'rtl' }, loads('ar')]);
    for (const language of ['de', 'fr', 'es', 'zh', 'ja']) assert.deepEqual(first('{}', [`${language}-XX`]), [{ dataset: {}, lang: language, dir: 'ltr' }, loads(language)]);
});

test('the page begins once, behind its first frame, and is kept where that is allowed', async () => {
    const asked = [];
    let begun = 0;
    globalThis.pageBegins = () => (begun += 1);
    Object.assign(navigator, { serviceWorker: { register: async (address) => (asked.push(address), Promise.reject(new Error('no'))) } });
    Object.assign(globalThis, { trustedTypes: { createPolicy: (name, { createScriptURL }) => ({ createScriptURL: () => `${name}: ${createScriptURL()}` }) } });
    const address = new URL('../../web/sw.js', import.meta.url).href;
    time.begin();
    const start = (n) => import(`../../web/js/start.js?${n}`);
    await start(1);
    await time.pass(15);
    assert.equal(begun, 0, 'a frame comes first');
    await time.pass(1);
    await time.until(() => asked.length);
    await time.pass(200);
    assert.deepEqual([begun, asked.splice(0)], [1, [`service-worker: ${address}`]]);
    delete globalThis.trustedTypes;
    globalThis.requestAnimationFrame = () => {}; // a hidden tab
    await start(2);
    await time.pass(149);
    assert.equal(asked.length, 0);
    await time.pass(1);
    await time.until(() => asked.length);
    assert.deepEqual(asked.splice(0), [address]);
    delete navigator.serviceWorker;
    await start(3);
    await time.pass(150);
    for (let i = 0; i < 5; i += 1) await time.settle();
    assert.deepEqual(asked, []);
});
