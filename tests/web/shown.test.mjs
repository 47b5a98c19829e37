/** What elements of the page show and do, as the files in shown/ say (shown.mjs). */
import { Node, done, withoutBrowser } from './made_up_lit.mjs';
import { chatOf, hears, kept, madeUp, presses, time, wire, written } from './shown.mjs';

const { settingsDialog, ownOptions } = await withoutBrowser('views/settings-dialog.js');
const { imageDialog, keysDialog, modelDialog, openDialog } = await withoutBrowser('views/dialogs.js');
for (const name of ['model-list', 'sidebar', 'prompts', 'hub-models', 'tools-menu', 'tool-offers', 'message', 'video-strip', 'viewer', 'welcome', 'server-status', 'share', 'shared-page', 'clip', 'code-block']) await withoutBrowser(`views/${name}.js`);

/* ---- settings ---- */

const actions = madeUp('page', {}, ['onPart', 'onMarkdown', 'onKey', 'onExport', 'onImport', 'onIntroduction', 'onPrompts', 'onPresets', 'onRemoveAll']);
const acts = (more) => ({ ...actions, tools: false, ...more });
const defaults = { temperature: 0.7, top_p: 0.949999988079071, top_k: -1, max_tokens: 2e9, repetition_penalty: 1, min_p: 0 };
written('settings', [
    { says: 'of a chat without options', render: () => settingsDialog(chatOf(), defaults, 'chat', acts({ onMarkdown: undefined })) },
    { says: 'of a chat with some', presses: /New chats begin|as Markdown|Ctrl|keydown/, render: () => settingsDialog(chatOf([], { current: { options: { temperature: 0.2, seed: 5, systemPrompt: 'Be brief.', schema: '{}' } } }), null, 'chat', acts({ tools: true })) },
    { says: 'new chats', presses: /change/, typed: ['{', ' a\n', ''], render: () => settingsDialog(chatOf([], { kept: { newChat: { stop: 'a', temperature: 1 } } }), defaults, 'new', acts()) },
    { says: 'the browser', render: () => settingsDialog(chatOf([], { list: [{}], kept: { language: 'de' } }), null, 'browser', acts()) },
    { says: 'the browser whose key is refused', presses: /^$/, render: () => settingsDialog(chatOf([], { connection: wire({}, { state: 'unauthorised', key: 'k' }), stored: { used: 2048, most: 4096 }, history: { remote: true } }), null, 'browser', acts()) },
    { says: 'the browser that keeps nothing', presses: /^$/, render: () => settingsDialog(chatOf([], { connection: wire({}, { state: 'unauthorised' }), stored: null }), null, 'browser', acts()) },
    { says: 'a browser with voices that can tell', presses: /change input (Mark|Notify)/, render: () => {
        Object.assign(globalThis, { Notification: class { static requestPermission() { done.push('asks whether it may tell'); } }, SpeechRecognition: class {}, speechSynthesis: {}, SpeechSynthesisUtterance: class {} });
        const shown = settingsDialog(chatOf([], { list: [{}] }), null, 'browser', acts());
        for (const name of ['SpeechRecognition', 'speechSynthesis', 'SpeechSynthesisUtterance']) delete globalThis[name];
        return shown;
    } },
    { says: 'a browser with half of them, and that may not tell', presses: /^$/, render: () => {
        Object.assign(globalThis, { Notification: class {}, isSecureContext: false, webkitSpeechRecognition: class {}, speechSynthesis: {} });
        const shown = settingsDialog(chatOf([], { list: [{}] }), null, 'browser', acts());
        globalThis.isSecureContext = true;
        for (const name of ['Notification', 'webkitSpeechRecognition', 'speechSynthesis']) delete globalThis[name];
        return shown;
    } },
    { says: 'values of a model that are odd', presses: /^$/, render: () => settingsDialog(chatOf(), { temperature: '0.5', max_tokens: 1e9, top_p: 0, top_k: 100000, min_p: 0.123456 }, 'new', acts()) },
    { says: 'what a chat has of its own, in words', render: () => ownOptions({ temperature: 0, model: 'm', beside: 'n', systemPrompt: 'x', tools: {}, stop: 'a' }).join('|') + ownOptions().length },
]);

/* ---- dialogs ---- */

const model = { name: 'Seedling', context: 4096, parameters: 25e6, bytes: 50e6, modalities: ['text', 'image'], thinking: true, thinkingKnown: true, server: 'Parley 1', vision: true, video: true };
const image = (id, more) => ({ id, kind: 'image', name: `${id}.png`, mime: 'image/png', width: 40, height: 20, bytes: 2048, blob: new Blob(['x']), ...more });
written('dialogs', [
    { says: 'the model', render: () => modelDialog(model, wire()) },
    { says: 'a model of which little is known', render: () => modelDialog({ name: 'X', bytes: 1024, thinkingKnown: true, server: '' }, wire({}, { state: 'fallback' })) },
    { says: 'a model of which nothing is known', render: () => modelDialog({ name: 'X' }, wire({}, { state: 'open', server: { state: 'loading', progress: 0.5 } })) },
    { says: 'the keys', render: keysDialog },
    { says: 'an image', render: () => imageDialog({ items: [image('a'), image('b')], at: 1 }) },
    { says: 'no image', render: () => imageDialog(null) },
    { says: 'opened', render: () => '', found: () => ({ '#there': new Node('there', { open: false }), '#open': new Node('open', { open: true }), '#nobody': null }), does: { 'one that is there': () => openDialog('there'), 'one that is open': () => openDialog('open'), 'none': () => openDialog('nobody') } },
    { says: 'of which little is known, least of all', render: () => modelDialog({ name: 'M', context: 1, bytes: 2048, thinkingKnown: true }, wire()) },
]);

/* ---- models ---- */

const models = [
    { id: 'a', status: { value: 'loaded' }, meta: { size: 2048, n_ctx: 8, n_ctx_train: 9 }, architecture: { input_modalities: ['text', 'image', 'video'] } },
    { id: 'b', status: { value: 'loaded', current: false }, meta: { n_ctx_train: 9 }, architecture: { input_modalities: ['text', 'image'] } },
    { id: 'c', status: { value: 'unloaded' }, architecture: { input_modalities: ['text'] } },
    { id: 'd', status: { value: 'failed', error: 'It is damaged.' } },
    { id: 'gpu/e', upstream: 'gpu' },
    { id: 'f' },
];
const ofModels = (list, hub, server = null, more = {}) => () => ({
    chat: chatOf([], { loadedModel: 'gpu/e', ...more }),
    connection: wire({ 'v1/models': [{ data: list }], props: [{ hub }], 'models/load': [{ error: { message: 'No room.' } }, 500], 'models/unload': [{}] }, { server }),
});
written('models', [
    { says: 'one alone', element: 'model-list', given: ofModels(models.slice(0, 1)) },
    { says: 'five, one of them next', element: 'model-list', given: ofModels(models.slice(0, 5), 'no', { state: 'ready', next_model: 'c' }, { current: { options: { model: 'a', beside: 'b' } } }) },
    { says: 'five in a menu that is open', element: 'model-list', presses: /^$/, found: { 'is :popover-open': true }, given: ofModels(models.slice(0, 5)), does: {
        'one is being loaded': (view) => ((view.connection.server = { state: 'loading', next_model: 'c', progress: 0.25 }), view.connection.dispatchEvent(new Event('state'))),
        'the same is said again': async (view) => { for (let i = 0; i < 2; i += 1) view.connection.dispatchEvent(new Event('state')); },
        'the chat has another model': (view) => ((view.chat.current.options = { model: 'b' }), view.chat.dispatchEvent(new Event('options'))),
        'a list of one': (view) => void (view.models = models.slice(0, 1)),
    } },
    { says: 'in a menu, which is opened and closed', element: 'model-list', presses: /^$/, given: ofModels(models.slice(0, 5)), does: { 'it opens': hears('toggle', { newState: 'open' }), 'it closes': hears('toggle', { newState: 'closed' }) } },
    { says: 'in a menu that is closed', element: 'model-list', presses: /^$/, given: ofModels(models.slice(0, 5)), does: { 'one is being loaded': (view) => ((view.connection.server = { state: 'loading', next_model: 'c' }), view.connection.dispatchEvent(new Event('state'))) } },
    { says: 'six, one being loaded, and a hub with a key', element: 'model-list', presses: /input|details|hub|progress/, typed: ['D', 'x'], given: ofModels(models, 'key', { state: 'loading', next_model: 'c', progress: 0.25 }, { loadedModel: 'a' }), events: { use: { detail: 'x' } } },
    { says: 'searched', element: 'model-list', presses: /keydown/, given: ofModels(models, 'yes', { state: 'loading', next_model: 'c' }), after: (view) => void (view.query = 'D') },
    { says: 'while one is asked for, and none has the name', element: 'model-list', presses: /^$/, given: ofModels(models), after: (view) => Object.assign(view, { query: 'q', wanted: 'a' }) },
    { says: 'while one is asked for', element: 'model-list', presses: /^$/, given: ofModels(models), after: (view) => Object.assign(view, { wanted: 'c' }) },
    { says: 'of a server that is away', element: 'model-list', given: () => ({ chat: chatOf(), connection: wire({ 'v1/models': [{}, 500] }) }), after: (view) => void (view.models = models.slice(2, 4)) },
    { says: 'to answer again', element: 'model-choice', given: () => ({ ...ofModels(models)(), chat: chatOf([], { connection: wire({ 'v1/models': [{ data: models }] }) }), message: { id: 'm2', modelId: 'b' }, busy: false }) },
    { says: 'to answer again while an answer is written', element: 'model-choice', given: () => ({ chat: chatOf([], { connection: wire({ 'v1/models': [{ data: models.slice(0, 2) }] }) }), message: { id: 'm2' }, busy: true }) },
    { says: 'to answer again, where there is no other', element: 'model-choice', given: () => ({ chat: chatOf([], { connection: wire({ 'v1/models': [{ data: [models[0], models[3]] }] }) }), message: { id: 'm2', modelId: 'a' }, busy: false }) },
    { says: 'to answer again, as the server is away', element: 'model-choice', given: () => ({ chat: chatOf(), message: { id: 'm2', modelId: 'x' }, busy: false }) },
    { says: 'to answer again, as it refuses', element: 'model-choice', given: () => ({ chat: chatOf([], { connection: wire({ 'v1/models': [{ data: models }, 500] }) }), message: { id: 'm2', modelId: 'x' }, busy: false }) },
    { says: 'to answer again, where there is one', element: 'model-choice', given: () => ({ chat: chatOf([], { connection: wire({ 'v1/models': [{ data: [models[0]] }] }) }), message: { id: 'm2', modelId: 'x' }, busy: false }) },
]);

const job = (more) => ({ model: 'o/m', action: 'pull', state: 'running', bytes: 0, total: 0, n_files: 0, n_done: 0, rate: 0, files: [], ...more });
const hub = (jobs, list = []) => ({ endpoint: 'https://hub.example', jobs, models: list });
const ofHub = (said, more = {}) => () => ({ connection: wire({ 'v1/hub': [said], 'v1/hub/pull': [{}], 'v1/hub/offer': [{}], 'v1/hub/inspect': [{}], 'v1/hub/remove': [{ error: { message: 'It is in use.' } }, 409], 'v1/hub/cancel': [{}], ...more.replies }), open: true, needsKey: false, models: [], ...more.given });
written('hub', [
    { says: 'before it answers', element: 'hub-models', given: ofHub(null, { replies: { 'v1/hub': [{ error: { message: 'No.' } }, 403] } }) },
    { says: 'of which something ends', element: 'hub-models', presses: /^$/, given: () => { let n = 0; return ofHub(null, { replies: { 'v1/hub': () => [hub([job({ state: ['running', 'running', 'done', 'failed'][Math.min(n, 3)] }), job({ model: 'o/n', state: n++ > 3 ? 'done' : 'running' })])] } })(); }, does: { 'a second later': async () => { for (let i = 0; i < 6; i += 1) (await time.pass(500), done.push(`${(i + 1) / 2} s`)); }, 'it is closed meanwhile': (view) => ((view.open = false), time.pass(3000)) } },
    { says: 'that is away as something is asked for', element: 'hub-models', presses: /click button/, given: ofHub(hub([], [{ name: 'o/b', bytes: 1024, complete: true, loaded: false }]), { replies: { 'v1/hub/inspect': undefined, 'v1/hub/offer': undefined } }) },
    { says: 'that is away', element: 'hub-models', given: ofHub(null, { replies: { 'v1/hub': undefined } }) },
    { says: 'closed', element: 'hub-models', given: ofHub(hub([]), { given: { open: false } }) },
    { says: 'with a key', element: 'hub-models', given: ofHub(hub([]), { given: { needsKey: true } }) },
    { says: 'empty', element: 'hub-models', typed: ['', ' o/n '], given: ofHub(hub([])) },
    { says: 'with a name that is written', element: 'hub-models', given: ofHub(hub([])), after: (view) => void (view.name = ' o/m ') },
    { says: 'models', element: 'hub-models', presses: /click/, given: ofHub(hub([], [{ name: 'o/a', bytes: 2048, complete: true, loaded: true }, { name: 'o/b', bytes: 1024, complete: true, loaded: false }, { name: 'o/c', bytes: 1, complete: false, loaded: false }])) },
    { says: 'one that is to be removed', element: 'hub-models', presses: /emove/, given: ofHub(hub([], [{ name: 'o/b', bytes: 1024, complete: true, loaded: false }])), after: (view) => void (view.doomed = 'o/b') },
    { says: 'jobs', element: 'hub-models', presses: /click/, given: ofHub(hub([
        job(), job({ model: 'o/n', bytes: 1024, total: 4096, n_files: 1, rate: 1024 }), job({ model: 'o/p', bytes: 1024, total: 2048, n_files: 3, n_done: 1, rate: 1024, files: [{ name: 'x' }] }),
        job({ model: 'o/q', n_files: 2, files: [{ checking: true }] }), job({ model: 'o/r', n_files: 2, files: [{ wait: 'waits for a lock' }] }), job({ model: 'o/s', state: 'failed', message: 'No room.' }),
        job({ model: 'o/t', action: 'inspect', state: 'done', text: 'It holds x.' }), job({ model: 'o/u', action: 'inspect' }), job({ model: 'o/v', action: 'remove' }), job({ model: 'o/w', state: 'done' }),
    ], [{ name: 'o/n', bytes: 1, complete: false }, { name: 'o/s', bytes: 1, complete: false }])) },
]);

/* ---- the list of chats ---- */

const { now: midnight } = time;
const day = 86_400_000;
const entry = (id, title, text, before, place) => ({ id, title, text: `${title} ${text}`, updated: midnight() - before, ...(place ? { place } : {}) });
const chats = [
    entry('c1', 'Sheep', 'Where are they? They are on the hill over there, behind the old house of stone.', 0),
    entry('c2', 'Second', 'words', day, { pinned: true }), entry('c3', 'Third', 'words', 1), entry('c9', 'Third, too', 'words', day), entry('c4', 'Fourth', 'words', day + 1), entry('c10', 'Fourth, too', 'words', 7 * day),
    entry('c5', 'Fifth', 'words', 7 * day + 1), entry('c6', 'In B', 'words', 0, { folder: 'B' }), entry('c7', 'In A', 'words', 0, { folder: 'A' }), entry('c8', 'Away', 'words', 0, { archived: true }),
];
const ofList = (list, more = {}) => () => ({ chat: chatOf([], { list, unread: new Set(['c3']), isRunning: (id) => id === 'c1', ...more }) });
const search = (query) => (view) => Object.assign(view, { query });
written('sidebar', [
    { says: 'empty, kept in the browser', element: 'chat-sidebar', given: ofList([]) },
    { says: 'empty, kept on the server', element: 'chat-sidebar', presses: /^$/, given: ofList([], { history: { remote: true } }) },
    { says: 'empty, kept nowhere', element: 'chat-sidebar', presses: /^$/, given: ofList([], { history: { available: false } }) },
    { says: 'all kinds', element: 'chat-sidebar', typed: ['sh', ''], presses: /^(?!(click|dblclick|beforetoggle).*(c4|Fourth|Fifth|Third|Away|In B|folder B))/, given: ofList(chats) },
    { says: 'the menu of one', element: 'chat-sidebar', presses: /(?=click|submit)(?!.*(More|Hide|Parley|New chat|<a))/, given: ofList(chats.slice(0, 2).concat(chats[7]), { history: { remote: true } }), after: (view) => void (view.menuOf = 'c1') },
    { says: 'the menu of one that is pinned, archived and in a folder', element: 'chat-sidebar', presses: /pin|archive|click button (A|B)$/i, given: ofList([entry('c1', 'X', '', 0, { pinned: true, archived: true, folder: 'A' }), chats[7]]), after: (view) => void (view.menuOf = 'c1') },
    { says: 'some that are chosen', element: 'chat-sidebar', presses: /chosen|change|click button (All|None|Done|A|B)$|submit/i, given: ofList(chats), after: (view) => void (view.chosen = new Set(['c1', 'c8'])) },
    { says: 'none that is chosen', element: 'chat-sidebar', presses: /All/, given: ofList(chats.slice(0, 2)), after: (view) => void (view.chosen = new Set()) },
    { says: 'all of which are chosen', element: 'chat-sidebar', presses: /None/, given: ofList(chats.slice(0, 2)), after: (view) => void (view.chosen = new Set(['c1', 'c2'])) },
    { says: 'one that is renamed', element: 'chat-sidebar', presses: /New name/, typed: ['', 'Sheep', ' typed '], given: ofList(chats.slice(0, 2)), after: (view) => void (view.renaming = 'c1') },
    { says: 'a folder that is renamed', element: 'chat-sidebar', presses: /New name|submit/, typed: ['', 'A', ' typed '], given: ofList(chats), after: (view) => void (view.renaming = 'folder A') },
    { says: 'searched: words in a sentence', element: 'chat-sidebar', presses: /keydown/, given: ofList(chats), after: search('hill') },
    { says: 'searched: two words, far behind the beginning of their sentence', element: 'chat-sidebar', presses: /^$/, given: ofList(chats), after: search('STONE  house') },
    { says: 'searched: in the title alone', element: 'chat-sidebar', presses: /^$/, given: ofList(chats), after: search('shee') },
    { says: 'searched: letters that are longer in lower case', element: 'chat-sidebar', presses: /^$/, given: ofList([entry('c1', 'İstanbul', 'sheep are there', 0), entry('c2', 'A sheep', 'A sheepdog', 0)]), after: search('sheep') },
    { says: 'searched: words that begin alike', element: 'chat-sidebar', presses: /^$/, given: ofList([entry('c2', 'Sheepdogs', 'The sheep and the sheepdog.', 0), entry('c3', 'X', `${'x'.repeat(60)}sheep sheepdog`, 0), entry('c4', 'Y', `One. Two! ${'word '.repeat(12)}sheep sheepdog ends. ${'More words. '.repeat(20)}`, 0)]), after: search('sheep sheepdog') },
    { says: 'what is renamed elsewhere', element: 'chat-sidebar', presses: /^$/, given: ofList(chats.slice(0, 2).concat(chats[7])), after: (view) => void (view.renaming = 'c1'), does: {
        'its end, as nothing has the focus': (view) => ((document.activeElement = document.body), presses('keydown input New name', { key: 'Escape' })(view)), 'its end, as another has it': (view) => ((document.activeElement = new Node('another')), presses('keydown input New name', { key: 'Escape' })(view)),
        'a slow search': async (view) => ((view.chat.history.search = () => new Promise((resolve) => setTimeout(() => resolve(new Map([['c1', 'late']])), 50))), presses('input input Search', { target: { value: 'one' } })(view), presses('input input Search', { target: { value: 'two' } })(view), (view.chat.history.search = null), presses('input input Search', { target: { value: 'three' } })(view), time.pass(60)),
    } },
    { says: 'searched: none', element: 'chat-sidebar', presses: /^$/, given: ofList(chats), after: search('nothing') },
    { says: 'searched by the server', element: 'chat-sidebar', presses: /input/, typed: ['far', ' '], given: ofList(chats, { history: { search: async (query) => (query === 'far' ? new Map([['c3', 'It is far away. And near.']]) : null) } }), after: (view) => Object.assign(view, { query: 'far', found: new Map([['c3', 'It is far away. And near.'], ['c4', '']]) }) },
    { says: 'searched by the server, which is away', element: 'chat-sidebar', presses: /input/, typed: ['far'], given: ofList(chats.slice(0, 1), { history: { search: async () => { throw new Error('away'); } } }) },
    { says: 'that the server does not have yet, or alone', element: 'chat-sidebar', presses: /Move|Not now/, given: ofList(chats.slice(0, 1), { history: { waiting: new Set(['c1', 'c2']), trouble: 'It is away.', movable: 3 } }) },
]);

/* ---- prompts ---- */

const prompts = [{ id: 'p1', name: 'Sum up', text: 'Sum up {{what}}.' }, { id: 'p2', name: 'Translate', text: 'Into English:' }, { id: 's1', name: 'Brief', text: 'Be brief.', system: true }];
const stored = { 'parley.prompts': prompts };
/** While the browser keeps nothing more. */
const full = async (act) => {
    const { set } = kept;
    kept.set = () => { throw new Error('QuotaExceededError'); };
    await act();
    kept.set = set;
};
written('prompts', [
    { says: 'the menu', element: 'prompt-menu', stored, given: () => ({ query: '' }) },
    { says: 'the menu with a word', element: 'prompt-menu', stored, presses: /^$/, given: () => ({ query: 'tra' }) },
    { says: 'the menu without one of this name', element: 'prompt-menu', stored, given: () => ({ query: 'q' }) },
    { says: 'the menu beside a field', element: 'prompt-menu', stored, presses: /^$/, found: { '[aria-selected=true]': new Node('the chosen one') }, given: () => ({ query: '', field: new Node('the field') }), does: Object.fromEntries([...['ArrowDown', 'ArrowUp', 'Enter', 'Tab', 'x'].map((key) => [key, (view) => void done.push(`for the menu: ${view.key({ key })}`)]), ['Shift+Enter', (view) => void done.push(`for the menu: ${view.key({ key: 'Enter', shiftKey: true })}`)], ['down twice', (view) => (view.key({ key: 'ArrowDown' }), view.key({ key: 'ArrowDown' }))], ['down and chosen', (view) => (view.key({ key: 'ArrowDown' }), view.key({ key: 'Enter' }))]]) },
    { says: 'the menu of none, beside a field', element: 'prompt-menu', stored, presses: /^$/, given: () => ({ query: 'q', field: new Node('the field') }), does: { 'Enter': (view) => void done.push(`for the menu: ${view.key({ key: 'Enter' })}`) } },
    { says: 'the menu of nine', element: 'prompt-menu', stored: { 'parley.prompts': Array.from({ length: 9 }, (_, i) => ({ id: `${i}`, name: `N${i}`, text: 'x' })) }, presses: /^$/, given: () => ({ query: '' }) },
    { says: 'presets without any', element: 'prompt-presets', given: () => ({ text: '', choose: () => {} }) },
    { says: 'presets', element: 'prompt-presets', stored, given: () => ({ text: 'Be brief.', choose: (text) => void done.push(`chooses ${text}`) }) },
    { says: 'presets and one that is new', element: 'prompt-presets', stored, given: () => ({ text: 'Be very long and friendly, please.', choose: () => {} }), presses: /Keep|Edit/, kept: 'parley.prompts' },
    { says: 'the library, empty', element: 'prompt-library', given: () => ({}) },
    { says: 'the library', element: 'prompt-library', stored, given: () => ({}), kept: 'parley.prompts' },
    { says: 'the library while one is changed', element: 'prompt-library', stored, presses: /form|Cancel/, given: () => ({}), after: (view) => void (view.editing = prompts[1]), kept: 'parley.prompts' },
    { says: 'the library where there is no room', element: 'prompt-library', stored, presses: /^$/, given: () => ({}), does: {
        'one is kept': (view) => ((view.editing = prompts[1]), full(() => presses('submit')(view))), 'one is deleted': (view) => full(() => presses('click button Delete Translate')(view)), 'and taken back': async (view) => (await presses('click button Delete Translate')(view), full(() => presses('click button Undo')(view))),
        'one that is gone is deleted': (view) => presses('click button Delete Translate', { get target() { return void kept.set('parley.prompts', '[]'); } })(view), 'one without a name is kept': (view) => ((view.editing = prompts[1]), (Node.found['typed name'] = ' '), presses('submit')(view)), 'one without words is kept': (view) => ((view.editing = prompts[1]), (Node.found['typed text'] = ' '), presses('submit')(view)),
        'another key in its form': (view) => ((view.editing = prompts[1]), presses('keydown form', { key: 'x' })(view)),
    }, kept: 'parley.prompts' },
    { says: 'the library while a system prompt is made', element: 'prompt-library', stored, presses: /form|Cancel/, given: () => ({}), after: (view) => void (view.editing = { system: true }), kept: 'parley.prompts' },
    { says: 'the library behind a deletion', element: 'prompt-library', stored: { 'parley.prompts': [prompts[0], prompts[2]] }, presses: /Undo/, given: () => ({}), after: (view) => void (view.gone = { prompt: prompts[1], at: 1 }), kept: 'parley.prompts' },
]);
