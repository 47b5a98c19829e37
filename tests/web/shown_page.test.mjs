/** What the page as a whole shows and does, as the files in shown/ say (shown.mjs). */
import { Node, done, elementOf, flat, withoutBrowser } from './made_up_lit.mjs';
import { chatOf, hears, listeners, madeUp, media, presses, time, wire, written } from './shown.mjs';

for (const name of ['app', 'preview', 'viewer', 'share', 'server-status', 'prompts', 'model-list', 'tools-menu', 'hub-models', 'tool-offers']) await withoutBrowser(`views/${name}.js`);
for (const name of ['transfer', 'attachments', 'shared']) await withoutBrowser(`state/${name}.js`);
const { versionsOf } = await withoutBrowser('views/preview.js');
const { menuButton } = await withoutBrowser('views/menu.js');
const NARROW = media['(max-width: 760px), (max-width: 950px) and (max-height: 480px)'];

/* ---- menus ---- */

const pressed = (keyName, at) => () => {
    const parts = ['first', 'second', 'third'].map((name) => new Node(name));
    document.activeElement = parts[at];
    return { 'all button, a, input, summary': [new Node('disabled', { disabled: true }), ...parts] };
};
const menu = (says, found, more) => ({ says, found, render: () => menuButton({ id: 'x', label: 'Label', face: 'Face', content: 'Content', ...more }), presses: /menu|keydown|toggle|click/ });
const way = (...selectors) => selectors.map((name) => ({ matches: (asked) => asked.split(', ').includes(name) }));
/** A click in a menu on what stands in nodes of these selectors. */
const clicked = (...selectors) => (_, handlers) => {
    const currentTarget = new Node('menu');
    handlers.at(-1)({ currentTarget, composedPath: () => [...way(...selectors), currentTarget, ...way('button')] });
};
const opens = (rectangle, screen) => (_, handlers) => {
    const was = [globalThis.innerWidth, globalThis.innerHeight];
    Object.assign(globalThis, screen);
    Node.found.rectangle = rectangle;
    handlers[0]({ newState: 'open', currentTarget: new Node('menu') });
    Object.assign(globalThis, { innerWidth: was[0], innerHeight: was[1] });
};
written('menus', [
    { ...menu('the focus on the first', pressed('', 0)), does: {
        'a click on a button': clicked('span', 'button'), 'a click on a link': clicked('a'), 'a click on words': clicked('p'), 'a click on what stays': clicked('button', '[data-stays]'), 'a click beside them': clicked(),
        'opened at the left': opens({ left: 0, right: 100, top: 10, bottom: 50 }), 'opened at the right': opens({ left: 1000, right: 1190, top: 10, bottom: 50 }), 'opened at the bottom': opens({ left: 0, right: 100, top: 700, bottom: 740 }),
        'opened in the middle': opens({ left: 550, right: 650, top: 380, bottom: 420 }), 'opened on a phone': opens({ left: 100, right: 300, top: 10, bottom: 50 }, { innerWidth: 519 }), 'opened on a narrow screen': opens({ left: 100, right: 300, top: 10, bottom: 50 }, { innerWidth: 520 }),
    } },
    menu('the focus on the last', pressed('', 2), { title: 'Title', look: 'plain' }),
    menu('the focus elsewhere', () => ({ ...pressed('', 9)() }), { onOpen: () => done.push('opened') }),
    menu('nothing in it', {}),
]);

/* ---- previews ---- */

const versions = [{ language: 'html', code: '<p>one' }, { language: 'svg', code: '<svg/>' }, { language: 'Mermaid', code: 'graph </script>' }];
const gets = (page, to) => done.push(`the frame gets ${JSON.stringify(page).slice(0, 3000)} for ${to}`);
const frame = { word: 'the frame', postMessage: gets };
const previewed = (at) => () => ((globalThis.fetch = fetching), { versions, at });
const framed = () => ({ iframe: new Node('iframe', { contentWindow: frame }) });
const fetching = async (url) => (done.push(`asks ${String(url).replace(/.*web/, '')}`), mermaidStatus ? new Response('the library', { status: mermaidStatus }) : Promise.reject(new TypeError('network')));
let mermaidStatus = 200;
const says = (data, source = frame) => async () => {
    await listeners.message({ data, source });
};
/** What the frame of a diagram does with its page, where the library draws it so. @param {() => Promise<any>} render */
const draws = (render) => async () => {
    let page;
    await listeners.message({ data: 'ready', source: frame, ...void (frame.postMessage = (given) => (page = given)) });
    await time.settle();
    const [, , script] = /** @type {any} */ (page.split('<script>').map((part) => part.split('</script>')[0]).slice(1));
    const main = new Node('main', { appendChild: (node) => (done.push(`main gets ${node.called}`), node) });
    const mermaid = { initialize: (given) => done.push(`the library begins with ${JSON.stringify(given)}`), render: async (name, code) => (done.push(`it draws ${name}: ${code}`), render()) };
    await new Function('mermaid', 'document', `return ${script}`)(mermaid, { querySelector: () => main, createElement: (name) => new Node(name), createRange: () => ({ createContextualFragment: (svg) => `as nodes ${svg}` }) });
    frame.postMessage = gets;
};
written('previews', [
    { says: 'the first of three', element: 'code-preview', found: framed, given: previewed(0), does: { 'its frame is ready': says('ready'), 'its frame says something else': says('other'), 'another frame is ready': says('ready', {}) } },
    { says: 'a drawing', element: 'code-preview', found: framed, given: previewed(1), does: { 'its frame is ready': says('ready'), 'it says so twice': async () => (await says('ready')(), await says('ready')()) } },
    { says: 'a diagram that cannot be had', element: 'code-preview', found: framed, given: () => ((mermaidStatus = 404), previewed(2)()), does: { 'its frame is ready': says('ready') } },
    { says: 'a diagram', element: 'code-preview', found: framed, given: () => ((mermaidStatus = 200), (document.documentElement.dataset = { theme: 'dark' }), previewed(2)()), does: { 'its frame is ready': says('ready'), 'the frame draws it': draws(async () => ({ svg: '<svg>' })), 'it cannot be drawn': draws(() => Promise.reject(new Error('a bad line'))), 'it cannot, without words': draws(() => Promise.reject('no')) } },
    { says: 'a diagram, as the system is dark', element: 'code-preview', presses: /^$/, found: framed, given: () => ((media['(prefers-color-scheme: dark)'] ??= {}).matches = true, (document.documentElement.dataset = {}), previewed(2)()), does: { 'its frame is ready': says('ready') } },
    { says: 'that can fill the screen', element: 'code-preview', presses: /Full/, found: () => ({ '.preview-frame': new Node('the place', { requestFullscreen: async () => done.push('fills the screen') }) }), given: () => ((media['(prefers-color-scheme: dark)'] = null), Object.assign(document, { fullscreenEnabled: true }), previewed(1)()) },
    { says: 'a diagram on paper', element: 'code-preview', presses: /^$/, found: framed, given: () => (Object.assign(document, { fullscreenEnabled: false }), (document.documentElement.dataset = { theme: 'light' }), previewed(2)()), does: { 'its frame is ready': says('ready') } },
    { says: 'its source', element: 'code-preview', presses: /Source/, found: () => ({ '.preview-frame': null }), given: previewed(1), after: (view) => Object.assign(view, { source: true, away: true }) },
    { says: 'all that can be shown', render: () => JSON.stringify(versionsOf({ messages: { b: { role: 'assistant', created: 2, text: '```svg\n<svg/>\n```\n~~~ html x\n<p>\n\n~~~' }, q: { role: 'user', created: 0, text: '```html\nq\n```' }, a: { role: 'assistant', created: 1, text: '```mermaid\ngraph\n```\n```c\nint a;\n```' } } })) },
    { says: 'one alone', element: 'code-preview', presses: /Source|Save/, given: () => ({ versions: versions.slice(0, 1), at: 0 }) },
    { says: 'none', element: 'code-preview', given: () => ({ versions: [], at: 0 }) },
]);

/* ---- the page ---- */

const session = { routes: [], server: { name: 'parley', version: '9' }, limits: { n_ctx: 100, max_images: 4, max_upload_bytes: 9 }, capabilities: { modalities: ['text', 'image', 'video'], thinking: true, video: { fps: 1 } } };
const asked = (id, more) => ({ id, role: 'user', text: 'Q', ...more });
const replies = { 'v1/models': [{ data: [{ id: 'seedling', meta: { n_params: 5, size: 6, n_ctx: 50 } }, { id: 'gpu/x', upstream: 'gpu' }] }], props: [{ default_generation_settings: { params: { temperature: 1 } }, mcp_servers: 1 }] };
const ofPage = (messages = [], more = {}) => () => {
    const { wired, hash = '#/', search = '', narrow = false, ...rest } = more;
    NARROW.matches = narrow;
    document.activeElement = null;
    Object.assign(location, { search, hash });
    const chat = chatOf(messages, {
        start: async () => void done.push('chat.start'), open: async (id) => Boolean(done.push(`chat.open ${id}`)) && id !== 'none', read: async (id) => (id === 'none' ? null : { ...chat.current, id }), all: async () => [], add: async (list) => void done.push(`chat.add ${list.length}`),
        modelOf: () => 'seedling', loadedModel: 'seedling', busy: false, draft: { text: 'draft', attachments: [] }, connection: wire(replies, { session, ...wired }), ...rest,
    });
    const settings = Object.assign(new EventTarget(), chat.settings);
    return { chat, settings };
};
const composer = () => madeUp('field', { updateComplete: Promise.resolve() }, ['focusField', 'restore', 'requestUpdate', 'quote', 'add']);
const parts = (more) => () => ({ 'chat-composer': composer(), 'dialog[open]': null, 'dialog[open], :popover-open': null, '.renaming': null, '.earlier': null, '.quote': null, '.transcript': new Node('transcript', { scrollHeight: 500, scrollTop: 100, clientHeight: 100, firstElementChild: null }), ...more });
const key = (name) => () => listeners.keydown({ key: name.split('+').at(-1), ctrlKey: /Ctrl/.test(name), metaKey: /Meta/.test(name), shiftKey: /Shift/.test(name), preventDefault: () => done.push('not what the browser does') });
/** Something is selected: in a text, around elements, or elsewhere. */
const selects = (node, isCollapsed = false) => async () => {
    const { getSelection: real } = globalThis;
    globalThis.getSelection = () => ({ isCollapsed, rangeCount: 1, anchorNode: null, toString: () => ' some words ', getRangeAt: () => ({ commonAncestorContainer: node, getBoundingClientRect: () => ({ right: 50, bottom: 60 }) }) });
    document.dispatchEvent(new Event('selectionchange'));
    await time.pass(250);
    globalThis.getSelection = real;
};
/** It scrolls while words are selected; what of it was quoted before. */
const scrolls = (quote) => async (view) => {
    const { getSelection: real } = globalThis;
    globalThis.getSelection = () => ({ isCollapsed: false, rangeCount: 1, anchorNode: null, toString: () => 'words', getRangeAt: () => ({ commonAncestorContainer: { nodeType: 1, ...inText }, getBoundingClientRect: () => ({ right: 7, bottom: 8 }) }) });
    view.quote = quote;
    await hears('scroll')(view);
    globalThis.getSelection = real;
};
const inText = { closest: (selector) => /\.prose/.test(selector) };
const KEYS = ['Escape', 'Ctrl+Shift+O', 'Meta+b', 'Ctrl+Shift+b', 'Ctrl+/', 'Ctrl+,', 'Ctrl+k', 'Ctrl+Shift+K', 'Ctrl+Shift+q', 'Ctrl+Shift+Backspace', 'Shift+o', 'b'];
const keys = (...names) => Object.fromEntries(names.map((name) => [`key ${name}`, key(name)]));
const tells = (type, detail) => (view) => view.chat.dispatchEvent(new CustomEvent(type, { detail }));
const drag = (type, types = ['Files']) => () => listeners[type]({ dataTransfer: { types, files: ['a file'] }, preventDefault: () => done.push('not what the browser does') });
/** The handler of the page's own element for an event. */
function handlerOf(view, type) {
    const { strings, values } = view.render();
    const at = strings.findIndex((text) => text.endsWith(`@${type}=`));
    return (detail) => values[at].call(view, { detail });
}
/** A dialog is closed. @param {string} id @param {(view: any) => void} before @param {boolean} hasFocus */
const closes = (id, before, hasFocus = false) => async (view) => {
    before(view);
    await hears('close', { target: new Node('a dialog', { id, contains: () => hasFocus }) })(view);
    await time.pass(20);
};
/** Somebody looks at the page again. */
const looks = (before) => async (view) => {
    before(view);
    document.hidden = false;
    await hears('visibilitychange')(view);
    document.hidden = true;
};
/** An answer ends, unseen, where that is to be told. */
const ends = (more, permission = 'granted', fails = false) => async (view) => {
    view.settings.get = (name) => name === 'notify';
    if (permission) {
        globalThis.Notification = class {
            static permission = permission;
            constructor(...given) {
                if (fails) throw new TypeError('Illegal constructor');
                done.push(`tells the system ${given.map((one) => JSON.stringify(one)).join(' ')}`);
                setTimeout(() => (this.onclick(), done.push('pressed')), 5);
            }
            close() {
                done.push('it is told no more');
            }
        };
    }
    Object.assign(globalThis, { focus: () => done.push('the window has the focus') });
    tells('finished', { id: 'm2', text: `${'x'.repeat(119)}yz`, ...more })(view);
    await time.pass(5);
    delete globalThis.Notification;
};
/** News of an answer, of which there is such progress. */
const hearsOf = (more, progress) => (view) => {
    Object.assign(view.chat.current.messages.m2, more);
    if (progress) view.chat.progress.set('m2', progress);
    return tells('message', 'm2')(view);
};
const endsAt = (more) => async (view) => {
    tells('finished', { ...view.chat.current.messages.m2, ...more })(view);
    await time.pass(149);
    done.push('150 ms later');
    await time.pass(1);
};
const sharesNow = (view) => handlerOf(view, 'take-chat')({ id: 'c1', kind: 'share' });
let above = 0;
globalThis.caches = { open: async () => ({ keys: async () => [{ url: 'http://host/shared/0' }], delete: async () => true, match: async () => new Response('x', { headers: { 'X-Name': 'a%20b.txt', 'Content-Type': 'text/plain' } }) }) };
/** A file is chosen, which holds these chats, where the others are already. @param {string[]|null} chats by their only question */
const brings = (chats, known = []) => async (view) => {
    const ofText = (text) => ({ messages: { m1: { id: 'm1', role: 'user', text, created: 1 } } });
    const handlers = [];
    view.part = 'browser';
    const [, at] = /accept="\.json,[^>]*@change="(\d+)"/.exec(flat(view.render(), handlers));
    const target = { files: [new File([JSON.stringify({ format: 'parley-chats', version: 1, chats: chats?.map((text) => ({ messages: Object.values(ofText(text).messages) })) })], 'a.json')], value: 'a.json' };
    view.part = 'chat';
    view.chat.all = async () => known.map(ofText);
    await handlers[at]({ target });
    done.push(`the field has "${target.value}"`);
};
written('page', [
    { says: 'empty', element: 'parley-app', presses: /^(click|chosen|toggle|edit-last).*(To the message|aside|scrim|Show the list|About|status$|Temporary|New chat|Keyboard|Settings$|chat-composer)/, found: parts(), given: ofPage(), does: {
        ...keys(...KEYS), 'another chat by its address': () => ((location.hash = '#/c/c9'), listeners.hashchange()), 'a chat that is not there': () => ((location.hash = '#/c/none'), listeners.hashchange()),
        'a file comes over it': drag('dragenter'), 'words come over it': drag('dragenter', ['text/plain']), 'a file stays over it': drag('dragover'), 'a file is dropped': async () => (drag('dragenter')(), drag('drop')()), 'words are dropped': drag('drop', []),
        'a file came and went': async () => (drag('dragenter')(), drag('dragenter')(), drag('dragleave')(), done.push('not yet'), drag('dragleave')(), drag('dragleave')()), 'before it is printed': () => listeners.beforeprint(), 'after it was printed': (view) => ((view.shown = 3), listeners.afterprint()),
        'words are selected': selects({ nodeType: 3, parentElement: inText }), 'an element is selected': selects({ nodeType: 1, ...inText, parentElement: null }), 'something else is selected': selects({ nodeType: 3, parentElement: { closest: () => null } }), 'nothing is selected': selects({ nodeType: 3, parentElement: inText }, true),
        'a notice': tells('notice', { text: 'Gone.', action: 'Undo', undo: () => done.push('undone') }), 'another conversation': (view) => ((view.chat.current = { ...view.chat.current, id: 'c2', head: 'm9', title: 'Other' }), tells('conversation')(view)), 'news': tells('news'),
        'an answer ended, unseen': (view) => ((document.hidden = true), tells('finished', { id: 'm2', status: 'done', text: 'x' })(view)), 'an answer ended, seen': (view) => ((document.hidden = false), tells('finished', { id: 'm2', status: 'done', text: 'x' })(view), (document.hidden = true)),
        'the settings changed': (view) => view.settings.dispatchEvent(new Event('change')), 'a sample': (view) => handlerOf(view, 'send-sample')({ files: [], text: 'Q', thinking: undefined }), 'a sample with thoughts': (view) => handlerOf(view, 'send-sample')({ files: [], text: 'Q', thinking: false }),
        'chats as Markdown': (view) => handlerOf(view, 'take-chat')({ id: 'c1', kind: 'markdown' }), 'chats as JSON': (view) => handlerOf(view, 'take-chat')({ id: 'c1', kind: 'json' }), 'chats on paper': async (view) => (handlerOf(view, 'take-chat')({ id: 'c1', kind: 'print' }), time.pass(20)), 'none on paper': (view) => handlerOf(view, 'take-chat')({ id: 'none', kind: 'print' }), 'none': (view) => handlerOf(view, 'take-chat')({ id: 'none', kind: 'json' }),
        'prompts': (view) => handlerOf(view, 'edit-prompts')(), 'the list': (view) => handlerOf(view, 'toggle-sidebar')(), 'the search is left': (view) => handlerOf(view, 'left-search')(),
        'code': (view) => handlerOf(view, 'show-preview')({ code: '<p>', language: 'html' }),
        'the settings are closed': closes('settings', (view) => (view.enteringKey = true)), 'the preview is closed': closes('preview', (view) => (view.preview = { versions: [], at: 0 })), 'a dialog is closed, the focus in it': closes('other', () => (document.activeElement = new Node('inside')), true),
        'a dialog is closed, the focus elsewhere': closes('other', () => (document.activeElement = new Node('elsewhere'))), 'a dialog is closed, the focus nowhere': closes('other', () => (document.activeElement = document.body)),
        'it scrolls, as words are selected': scrolls(null), 'it scrolls, as words are quoted': scrolls({ text: 'x', right: 1, bottom: 2 }), 'a sample that cannot be sent': (view) => handlerOf(view, 'send-sample')({ files: [new File([new Uint8Array([0, 1, 2])], 'a.bin'), new File([new Uint8Array([0, 1, 2])], 'b.bin')], text: 'Q' }),
        'another conversation, by no address': (view) => ((location.hash = ''), (view.chat.current = { ...view.chat.current, head: null }), tells('conversation')(view)), 'an empty conversation, by another address': (view) => ((location.hash = '#/c/c9'), (view.chat.current = { ...view.chat.current, head: null }), tells('conversation')(view)),
        'somebody looks again': looks((view) => (view.unseen = true)), 'somebody looks again, at nothing new': looks(() => {}), 'nobody looks': async (view) => ((view.unseen = true), hears('visibilitychange')(view)),
        'an answer ended, and it is told': ends({ status: 'done' }), 'an answer failed, and it is told': ends({ status: 'failed' }), 'an answer ended, and it may not be told': ends({}, 'denied'), 'an answer ended, and it cannot be told': ends({}, 'granted', true), 'an answer ended, and nothing can be told': ends({}, null),
        'a notice, for six seconds': async (view) => (tells('notice', { text: 'x' })(view), await time.pass(5999), done.push(`it says ${view.notice?.text}`), await time.pass(1)), 'a second notice': async (view) => (tells('notice', { text: 'x' })(view), await time.pass(5000), tells('notice', { text: 'y' })(view), await time.pass(5999)),
        'the facts cannot be had': (view) => ((view.chat.connection.fetch = async () => ({ ok: false })), tells('connection')(view)), 'the values cannot be had': (view) => ((view.chat.connection.fetch = async (path) => ({ ok: path !== 'props', json: async () => ({}) })), tells('connection')(view)), 'the facts are asked for in vain': (view) => ((view.chat.connection.fetch = async () => { throw new TypeError('network'); }), tells('connection')(view)),
    } },
    { says: 'a link to it', element: 'parley-app', presses: /^$/, found: parts({ 'link[href="css/shared.css"]': null, 'new link': new Node('the style'), 'new dialog': new Node('the dialog', { _$litPart$: { _$AI: (value) => done.push(`it shows ${flat(value)}`) } }) }), given: ofPage(), does: {
        'is made': async (view) => (sharesNow(view), await time.settle(), done.push('as the style is there'), Node.found['new link'].onload(), await time.settle(), done.push('and closed'), Node.found['new dialog'].onclose(), await time.pass(0)),
        'is made without a style': async (view) => (sharesNow(view), await time.settle(), Node.found['new link'].onerror(), time.settle()),
        'is made again': async (view) => (delete Node.found['link[href="css/shared.css"]'], sharesNow(view), time.settle()),
    } },
    { says: 'of a chat without a title', element: 'parley-app', presses: /^$/, found: parts(), given: ofPage([], { current: { title: '' } }), does: { 'news': tells('news'), 'as JSON': (view) => handlerOf(view, 'take-chat')({ id: 'c1', kind: 'json' }) } },
    { says: 'of a chat whose title has signs', element: 'parley-app', presses: /^$/, found: parts(), given: ofPage([], { current: { title: ' A/b: c-d "5"! ' } }), does: { 'as JSON': (view) => handlerOf(view, 'take-chat')({ id: 'c1', kind: 'json' }) } },
    { says: 'opened as others share something', element: 'parley-app', presses: /^$/, found: parts(), given: ofPage([], { search: '?shared', draft: { text: 'said\n', attachments: [] } }) },
    { says: 'a chat that the server keeps is not there', element: 'parley-app', presses: /^$/, found: parts(), given: ofPage([], { hash: '#/c/none', history: { remote: true } }) },
    { says: 'while a dialog is open', element: 'parley-app', presses: /^$/, found: parts({ 'dialog[open]': new Node('a dialog'), 'dialog[open], :popover-open': new Node('a dialog') }), given: ofPage([], { busy: true }), does: keys(...KEYS) },
    { says: 'while something is renamed', element: 'parley-app', presses: /^$/, found: parts({ '.renaming': new Node('the name'), 'all chat-message': ['m1', 'm2'].map((id) => madeUp(id, {}, ['requestUpdate'])) }), given: ofPage(), does: { 'another conversation': tells('conversation') } },
    { says: 'its settings', element: 'parley-app', presses: /API|api-key|click button (Export|Prompts|Show the intro|Delete all|This one)|click button New chats$|keydown div Settings of/, keys: ['ArrowRight'], found: parts(), given: ofPage([asked('m1')], { kept: { apiKey: 'k' }, list: [{}] }), after: (view) => void (view.part = 'browser'), does: { 'a key is written': presses('id="api-key"', { target: new Node('the key', { value: ' k ' }) }) } },
    { says: 'its settings of the chat', element: 'parley-app', presses: /click button (This one)|toggle div Presets|edit-prompts/, found: parts(), given: ofPage([asked('m1')]) },
    { says: 'a place to quote from', element: 'parley-app', presses: /^pointerdown/, found: parts({ '.quote': new Node('the quotation', { offsetWidth: 40, offsetHeight: 20 }) }), given: ofPage(), does: Object.fromEntries([[500, 400], [5, -20], [1300, 900], [48, 2], [1192, 774]].map(([right, bottom]) => [`at ${right}, ${bottom}`, (view) => void (view.quote = { text: 'x', right, bottom })])) },
    { says: 'with what is above', element: 'parley-app', presses: /Show/, found: parts({ '.earlier': new Node('earlier'), 'chat-message': new Node('the first', { isConnected: true, getBoundingClientRect: () => ({ top: (above += 100) }) }) }), given: ofPage(Array.from({ length: 30 }, (_, i) => asked(`m${i}`))), after: (view) => void (view.shown = 1), does: { 'it comes near': hears('change', [{ isIntersecting: true }]) } },
    { says: 'chats of a file', element: 'parley-app', presses: /^$/, found: parts(), given: ofPage(), until: ({ notice }) => notice, does: {
        'one': brings(['a']), 'two, and one that was here': brings(['a', 'b', 'c'], ['c']), 'one, and two that were here': brings(['a', 'b', 'c'], ['b', 'c', 'd']), 'two that were here': brings(['a', 'b'], ['a', 'b']), 'none': brings(null),
    } },
    { says: 'on a phone', element: 'parley-app', presses: /^(click|chosen) .*(aside|scrim|Show the list)/, found: parts(), given: ofPage([], { narrow: true, current: { temporary: true } }), after: (view) => void (view.drawer = true), does: keys('Escape', 'Ctrl+b', 'Ctrl+k') },
    { says: 'with a conversation', element: 'parley-app', presses: /^click button (Latest|Show|Undo|Close this|Quote|Settings of)|own-options/, found: parts(), given: ofPage([asked('m1'), { id: 'm2', role: 'assistant', text: 'A\n```html\n<p>\n```', created: 1, context: { used: 81 } }], { busy: true, current: { options: { temperature: 0.5, beside: 'gpu/x' } } }), after: (view) => Object.assign(view, { pinned: false, shown: 1, notice: { text: 'Gone.', action: 'Undo', undo: () => done.push('undone') }, quote: { text: 'said', right: 5, bottom: 5 }, dragging: true }), does: {
        ...keys('Escape', 'Ctrl+Shift+Q'), 'code that is there': (view) => handlerOf(view, 'show-preview')({ code: '<p>', language: 'html' }), 'code that is not there': (view) => handlerOf(view, 'show-preview')({ code: '<b>', language: 'html' }),
        'an image': (view) => handlerOf(view, 'show-image')({ image: 1, items: [{ id: 'v', kind: 'video', blob: new Blob() }, { id: 'i', kind: 'image', blob: new Blob() }, { id: 'j', kind: 'image' }] }),
    } },
    { says: 'what is heard of an answer', element: 'parley-app', presses: /^$/, found: parts({ 'all chat-message[data-id="m2"] .answer > .prose': [{ innerText: ' One ' }, { innerText: 'two' }] }), given: ofPage([asked('m1'), { id: 'm2', role: 'assistant', text: '*One*', status: 'streaming' }]), does: {
        'it begins': hearsOf({ text: '' }), 'it has begun': hearsOf({ text: '' }, { kind: 'started' }), 'it is read': hearsOf({ text: '' }, { kind: 'progress', phase: 'prefill', processed: 1, total: 4 }), 'it thinks': hearsOf({ text: '', reasoning: 'Hm' }), 'it is written': hearsOf({}), 'it is not the one': hearsOf({ status: 'done' }), 'it is of another chat': tells('message', 'm9'),
        'seven seconds of it': async (view) => { for (const ms of [0, 6999, 1]) (await time.pass(ms), done.push(`${ms} ms later`), hearsOf({})(view)); },
        'it ends': endsAt({ status: 'done' }), 'it is stopped': endsAt({ status: 'stopped' }), 'it fails': endsAt({ status: 'failed', error: { code: 'server_error', message: 'No.' } }), 'it ends, of another chat': endsAt({ id: 'm9', status: 'done' }), 'it ends, and is not shown': async (view) => (delete Node.found['all chat-message[data-id="m2"] .answer > .prose'], endsAt({ status: 'done' })(view)),
        'it ends, and the next begins': async (view) => (hearsOf({})(view), await endsAt({ status: 'done' })(view), hearsOf({})(view)),
    } },
    { says: 'a context that is half full', element: 'parley-app', presses: /^$/, found: parts(), given: ofPage([asked('m1', { context: { used: 50 } })]) },
    { says: 'a context that is less than half full', element: 'parley-app', presses: /^$/, found: parts(), given: ofPage([asked('m1', { context: { used: 49 } })]) },
    { says: 'more than fits', element: 'parley-app', presses: /^$/, found: parts(), given: ofPage([asked('m1', { context: { used: 500 } })]), after: (view) => void (view.preview = { versions: [{ language: 'html', code: 'x' }], at: 0 }) },
    { says: 'a key is needed', element: 'parley-app', presses: /Enter it/, found: parts(), given: ofPage([], { wired: { state: 'unauthorised' } }), does: { 'the key is right': (view) => ((view.enteringKey = true), (view.chat.connection.state = 'open'), tells('connection')(view)) } },
    { says: 'the server is away', element: 'parley-app', presses: /Try now/, found: parts(), given: ofPage([], { wired: { state: 'retrying', failures: 3, retryAt: performance.now() + 4500, session: null } }), does: { 'it is back': (view) => (tells('connection')(view), (view.chat.connection.state = 'open'), tells('connection')(view)) } },
    { says: 'another model is loaded', element: 'parley-app', presses: /^$/, found: parts(), given: ofPage([], { modelOf: () => 'gpu/x', wired: { server: { state: 'loading', progress: 0.25 } } }), does: { 'the server was updated': (view) => ((view.version = '8'), tells('connection')(view)) } },
    { says: 'models of which other things are known', render: () => [
        [{}, {}], [{ meta: { n_ctx_train: 7 } }, { session: { limits: { n_ctx: 9 }, server: { name: undefined } } }], [{ upstream: 'gpu', meta: { n_ctx: 5 } }, { session }], [{ architecture: { input_modalities: ['text', 'audio'] } }, { session: null }], [{ upstream: 'gpu', meta: { n_ctx_train: 6 }, architecture: { input_modalities: ['image'] } }, { session }],
    ].map(([listed, more]) => {
        const view = Object.create(elementOf('parley-app').prototype, { chat: { value: chatOf([], { modelOf: () => (more.session === null ? '' : 'm'), loadedModel: 'm', connection: wire({}, more), current: { options: { beside: 'b' } }, models: [{ id: 'b', upstream: 'tpu' }] }) } });
        return `<p>${JSON.stringify(Object.assign(view, { httpModel: listed, tools: false }).model)}</p>`;
    }) },
]);
