/** What elements of the page show and do, as the files in shown/ say (shown.mjs). */
import { Node, withoutBrowser } from './made_up_lit.mjs';
import { chatOf, madeUp, time, wire, written } from './shown.mjs';

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
    { says: 'in a menu that is closed', element: 'model-list', presses: /^$/, given: ofModels(models.slice(0, 5)), does: { 'one is being loaded': (view) => ((view.connection.server = { state: 'loading', next_model: 'c' }), view.connection.dispatchEvent(new Event('state'))) } },
    { says: 'six, one being loaded, and a hub with a key', element: 'model-list', presses: /input|details|hub|progress/, typed: ['D', 'x'], given: ofModels(models, 'key', { state: 'loading', next_model: 'c', progress: 0.25 }, { loadedModel: 'a' }), events: { use: { detail: 'x' } } },
    { says: 'searched', element: 'model-list', presses: /keydown/, given: ofModels(models, 'yes', { state: 'loading', next_model: 'c' }), after: (view) => void (view.query = 'D') },
    { says: 'while one is asked for, and none has the name', element: 'model-list', presses: /^$/, given: ofModels(models), after: (view) => Object.assign(view, { query: 'q', wanted: 'a' }) },
    { says: 'while one is asked for', element: 'model-list', presses: /^$/, given: ofModels(models), after: (view) => Object.assign(view, { wanted: 'c' }) },
    { says: 'of a server that is away', element: 'model-list', given: () => ({ chat: chatOf(), connection: wire({ 'v1/models': [{}, 500] }) }), after: (view) => void (view.models = models.slice(2, 4)) },
    { says: 'to answer again', element: 'model-choice', given: () => ({ ...ofModels(models)(), chat: chatOf([], { connection: wire({ 'v1/models': [{ data: models }] }) }), message: { id: 'm2', modelId: 'b' }, busy: false }) },
    { says: 'to answer again while an answer is written', element: 'model-choice', given: () => ({ chat: chatOf([], { connection: wire({ 'v1/models': [{ data: models.slice(0, 2) }] }) }), message: { id: 'm2' }, busy: true }) },
    { says: 'to answer again, where there is no other', element: 'model-choice', given: () => ({ chat: chatOf([], { connection: wire({ 'v1/models': [{ data: [models[0], models[3]] }] }) }), message: { id: 'm2', modelId: 'a' }, busy: false }) },
    { says: 'to answer again, where there is one', element: 'model-choice', given: () => ({ chat: chatOf([], { connection: wire({ 'v1/models': [{ data: [models[0]] }] }) }), message: { id: 'm2', modelId: 'x' }, busy: false }) },
]);

const job = (more) => ({ model: 'o/m', action: 'pull', state: 'running', bytes: 0, total: 0, n_files: 0, n_done: 0, rate: 0, files: [], ...more });
const hub = (jobs, list = []) => ({ endpoint: 'https://hub.example', jobs, models: list });
const ofHub = (said, more = {}) => () => ({ connection: wire({ 'v1/hub': [said], 'v1/hub/pull': [{}], 'v1/hub/offer': [{}], 'v1/hub/inspect': [{}], 'v1/hub/remove': [{ error: { message: 'It is in use.' } }, 409], 'v1/hub/cancel': [{}], ...more.replies }), open: true, needsKey: false, models: [], ...more.given });
written('hub', [
    { says: 'before it answers', element: 'hub-models', given: ofHub(null, { replies: { 'v1/hub': [{ error: { message: 'No.' } }, 403] } }) },
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
    { says: 'searched: none', element: 'chat-sidebar', presses: /^$/, given: ofList(chats), after: search('nothing') },
    { says: 'searched by the server', element: 'chat-sidebar', presses: /input/, typed: ['far', ' '], given: ofList(chats, { history: { search: async (query) => (query === 'far' ? new Map([['c3', 'It is far away. And near.']]) : null) } }), after: (view) => Object.assign(view, { query: 'far', found: new Map([['c3', 'It is far away. And near.'], ['c4', '']]) }) },
    { says: 'searched by the server, which is away', element: 'chat-sidebar', presses: /input/, typed: ['far'], given: ofList(chats.slice(0, 1), { history: { search: async () => { throw new Error('away'); } } }) },
    { says: 'that the server does not have yet, or alone', element: 'chat-sidebar', presses: /Move|Not now/, given: ofList(chats.slice(0, 1), { history: { waiting: new Set(['c1', 'c2']), trouble: 'It is away.', movable: 3 } }) },
]);

/* ---- prompts ---- */

const prompts = [{ id: 'p1', name: 'Sum up', text: 'Sum up {{what}}.' }, { id: 'p2', name: 'Translate', text: 'Into English:' }, { id: 's1', name: 'Brief', text: 'Be brief.', system: true }];
const stored = { 'parley.prompts': prompts };
written('prompts', [
    { says: 'the menu', element: 'prompt-menu', stored, given: () => ({ query: '' }) },
    { says: 'the menu with a word', element: 'prompt-menu', stored, presses: /^$/, given: () => ({ query: 'tra' }) },
    { says: 'the menu without one of this name', element: 'prompt-menu', stored, given: () => ({ query: 'q' }) },
    { says: 'presets without any', element: 'prompt-presets', given: () => ({ text: '', choose: () => {} }) },
    { says: 'presets', element: 'prompt-presets', stored, given: () => ({ text: 'Be brief.', choose: (text) => console.log(text) }), presses: /^$/ },
    { says: 'presets and one that is new', element: 'prompt-presets', stored, given: () => ({ text: 'Be very long and friendly, please.', choose: () => {} }), presses: /Keep|Edit/, kept: 'parley.prompts' },
    { says: 'the library, empty', element: 'prompt-library', given: () => ({}) },
    { says: 'the library', element: 'prompt-library', stored, given: () => ({}), kept: 'parley.prompts' },
    { says: 'the library while one is changed', element: 'prompt-library', stored, presses: /form|Cancel/, given: () => ({}), after: (view) => void (view.editing = prompts[1]), kept: 'parley.prompts' },
    { says: 'the library while a system prompt is made', element: 'prompt-library', stored, presses: /form|Cancel/, given: () => ({}), after: (view) => void (view.editing = { system: true }), kept: 'parley.prompts' },
    { says: 'the library behind a deletion', element: 'prompt-library', stored: { 'parley.prompts': [prompts[0], prompts[2]] }, presses: /Undo/, given: () => ({}), after: (view) => void (view.gone = { prompt: prompts[1], at: 1 }), kept: 'parley.prompts' },
]);
