/** Chats that the server keeps, without a browser: what is sent and when, what comes back, and what waits while the server is
 * away. The server, the databases of the devices and the time are made up. */
import assert from 'node:assert/strict';
import test, { beforeEach } from 'node:test';
import { makeStorage, makeTime } from './made_up.mjs';
import { makeDevice } from './made_up_database.mjs';
import { History, openHistory } from '../../web/js/state/history.js';
import { ServerHistory } from '../../web/js/state/history_server.js';
import { addMessage, newConversation, shownPath } from '../../web/js/state/store.js';

const time = makeTime();
const stored = new Map();
globalThis.localStorage = makeStorage(stored);
AbortSignal.timeout = /** @type {any} */ ((ms) => ({ ms }));
const onFocus = [];
globalThis.addEventListener = /** @type {any} */ ((name, fn) => name === 'focus' && onFocus.push(fn));
const quiet = async () => {
    for (let i = 0; i < 20; i += 1) await time.settle();
};

/** As docs/api.md has it; `asked` has every request in words, `refuses` may answer one in its place. */
class Server {
    chats = new Map();
    files = new Map();
    asked = [];
    limits = new Set();
    revision = 0;
    enabled = true;
    page = 500;
    async fetch(path, { method = 'GET', body, signal, headers } = /** @type {any} */ ({})) {
        const given = typeof body === 'string' ? JSON.parse(body) : body;
        const name = path.replace('v1/history/', '');
        this.asked.push(`${method} ${name}`);
        this.bodies = { ...this.bodies, [method]: given };
        if (signal) this.limits.add(`${name.split('/')[0].split('?')[0]} ${method} ${signal.ms}`);
        assert.equal(headers?.['Content-Type'], typeof body === 'string' ? 'application/json' : undefined);
        if (this.away) throw new TypeError('network');
        const [answer, status = 200] = this.refuses?.(method, name, given) ?? this.#answer(method, name, given);
        return new Response(answer instanceof Blob ? answer : JSON.stringify(answer), { status });
    }
    #error = (status, code) => [{ error: { code, message: `Said: ${code}` } }, status];
    #answer(method, name, given) {
        const [room, id] = name.split(/[/?]/);
        const query = new URLSearchParams(name.split('?')[1]);
        if (name === 'v1/history') return [{ enabled: this.enabled }];
        if (name === 'v1/files') return [{ id: `up-${given.get('file').name}` }];
        if (room === 'files') {
            if (method === 'GET') return this.files.has(id) ? [this.files.get(id)] : this.#error(404, 'file_not_found');
            this.files.set(`sha-${given.file_id}`, new Blob([`bytes of ${given.file_id}`]));
            return [{ sha256: `sha-${given.file_id}` }];
        }
        if (room === 'search') return [{ data: [...this.chats.values()].filter(({ title }) => title.includes(given.query)) }];
        if (room === 'chats' && name.includes('?limit')) {
            const all = [...this.chats.values()];
            const from = all.findIndex((one) => one.id === query.get('after')) + 1;
            const data = all.slice(from, from + this.page).map(({ options, ...one }) => ({ ...one, place: options?.place }));
            return [{ data, next: from + this.page < all.length ? data.at(-1).id : null }];
        }
        const chat = this.chats.get(id);
        if (method === 'GET') return chat ? [{ ...chat, n_messages: chat.messages.length, messages: chat.messages.filter((one) => one.at > Number(query.get('since'))).map(({ at, ...one }) => one) }] : this.#error(404, 'chat_not_found');
        if (method === 'DELETE') {
            if (!chat) return this.#error(404, 'chat_not_found');
            if (query.has('revision') && Number(query.get('revision')) !== chat.revision) return this.#error(409, 'revision_conflict');
            return this.chats.delete(id), [{}];
        }
        if (!chat && given.revision) return this.#error(404, 'chat_not_found');
        if (chat && given.revision !== chat.revision) return this.#error(409, 'revision_conflict');
        const missing = given.messages.some(({ attachments = [] }) => attachments.some(({ sha256 }) => sha256 && !this.files.has(sha256)));
        return missing ? this.#error(400, 'file_not_found') : [this.write(id, given)];
    }
    /** A device writes to it. */
    write(id, { messages, revision, ...fields }) {
        const chat = this.chats.get(id) ?? { id, title: '', head: null, options: {}, messages: [] };
        Object.assign(chat, fields, { revision: (this.revision += 1) });
        for (const one of messages) chat.messages = [...chat.messages.filter((other) => other.id !== one.id), { ...one, at: this.revision }];
        this.chats.set(id, chat);
        return { revision: this.revision };
    }
    news = () => this.asked.splice(0);
}

class Chat extends EventTarget {
    runs = new Map();
    live = new Map();
    choices = {};
    refreshed = [];
    lists = 0;
    settings = { get: (name) => this.choices[name] };
    uploads = { urlOf: async ({ url = 'data:x' }) => url };
    constructor(server) {
        super();
        this.connection = Object.assign(new EventTarget(), { state: 'open', fetch: (...call) => server.fetch(...call) });
        this.addEventListener('list', () => (this.lists += 1));
    }
    refresh = async (ids) => void this.refreshed.push(ids ?? 'all');
    become(state) {
        this.connection.state = state;
        this.connection.dispatchEvent(new Event('state'));
    }
    hear = (detail) => this.connection.dispatchEvent(new CustomEvent('history', { detail }));
}

const opened = [];
beforeEach(() => {
    for (const { connection } of opened.splice(0)) connection.state = 'closed'; // they share the time and the storage
    stored.clear();
});

/** A device that keeps its chats on the server. */
async function open(server = new Server(), { device = makeDevice(), choices = {}, state = 'open' } = {}) {
    device.here();
    const chat = Object.assign(new Chat(server), { choices });
    chat.connection.state = state;
    opened.push(chat);
    const [local, outbox] = [await History.open('parley'), await History.open('parley-outbox')];
    const history = await new ServerHistory(/** @type {any} */ (chat), local, outbox).begin();
    await quiet();
    server.news();
    return { server, device, chat, history, local, outbox };
}
const texts = (chat) => chat && shownPath(chat).map(({ text }) => text);
const asks = (chat, text, more = {}) => addMessage(chat, { role: 'user', parent: chat.head, text, ...more });
function talk(text = 'What is it?', options = undefined) {
    const chat = newConversation(options);
    asks(chat, text);
    return chat;
}
const file = (more = {}) => ({ id: 'f', name: 'n.txt', kind: 'text', mime: 'text/plain', bytes: 3, blob: new Blob(['abc']), ...more });
const inOutbox = ({ device }) => device.kept('parley-outbox', 'summaries').map(([, { title, waits }]) => `${title} ${waits}`);

// ---- which place ----

test('the server is asked whether it keeps chats; while it cannot be asked, what it said last holds', async () => {
    const server = new Server();
    makeDevice().here();
    const chat = new Chat(server);
    const which = async () => {
        const history = await openHistory(/** @type {any} */ (chat));
        await quiet();
        return [history.remote ?? false, history.unsure ?? null];
    };
    server.away = true;
    assert.deepEqual(await which(), [false, true], 'never heard of');
    server.away = false;
    server.refuses = () => [{}, 401];
    assert.deepEqual(await which(), [false, true], 'without a key');
    server.refuses = () => [{}, 404];
    assert.deepEqual(await which(), [false, false], 'it has no such thing');
    server.refuses = () => [new Blob(['{'])];
    assert.deepEqual(await which(), [false, false], 'no answer that can be read');
    server.refuses = null;
    server.enabled = false;
    assert.deepEqual(await which(), [false, false]);
    server.enabled = true;
    assert.deepEqual(await which(), [true, null]);
    server.away = true;
    assert.deepEqual(await which(), [true, null], 'it kept them when it was heard last');
    server.away = false;
    server.refuses = () => [{}, 503];
    assert.deepEqual(await which(), [false, true], 'it is there, and does not say');
    server.refuses = null;
    server.enabled = false;
    await which();
    server.away = true;
    assert.deepEqual(await which(), [false, true]);
    globalThis.localStorage = makeStorage(/** @type {any} */ ({ get: () => { throw new Error(); }, set: () => { throw new Error(); } }));
    assert.deepEqual(await which(), [false, true], 'no storage');
    globalThis.localStorage = makeStorage(stored);
});

test('a browser that keeps its chats hears of its other tabs, and knows of its answers', async () => {
    const server = Object.assign(new Server(), { enabled: false });
    makeDevice().here();
    const chat = new Chat(server);
    const [here, other] = [await openHistory(/** @type {any} */ (chat)), await openHistory(/** @type {any} */ (new Chat(server)))];
    const one = talk();
    await other.save(one);
    await quiet();
    assert.deepEqual([chat.refreshed, here.runs === chat.runs], [[[one.id]], true]);
});

// ---- the list ----

test('the list: every page of it, what it is called, where it stands, and the latest first', async () => {
    const { server, history } = await open();
    server.page = 2;
    for (const [id, title, updated, place] of [['a', '', 3, undefined], ['b', 'B', 9, { folder: 'F', odd: 1 }], ['c', 'C', 5, undefined]]) server.write(id, { title, updated, options: place && { place }, messages: [] });
    assert.deepEqual(await history.list(), [
        { id: 'b', title: 'B', updated: 9, revision: 2, text: 'B', place: { folder: 'F' } }, { id: 'c', title: 'C', updated: 5, revision: 3, text: 'C' },
        { id: 'a', title: 'New chat', updated: 3, revision: 1, text: '' },
    ]);
    assert.deepEqual(server.news(), ['GET chats?limit=500', 'GET chats?limit=500&after=b']);
    assert.deepEqual([...await history.search('B')], ['b']);
    assert.deepEqual([server.news(), server.bodies.POST, [...server.limits]], [['POST search'], { query: 'B' }, ['chats GET 20000', 'search POST 20000']]);
    server.refuses = () => [{ error: { message: 'No.', code: 'c' } }, 500];
    await assert.rejects(history.search('B'), { message: 'No.', status: 500, code: 'c' });
    server.refuses = () => [new Blob(['<']), 502];
    await assert.rejects(history.search('B'), { message: '', status: 502 });
});

test('while the server is away the list is as it was seen last, also after a reload, without what is gone there', async () => {
    const server = new Server();
    const device = makeDevice();
    const one = await open(server, { device });
    for (const id of ['a', 'b']) server.write(id, { title: id, created: 1, updated: 1, head: `m${id}`, messages: [{ id: `m${id}`, parent: null, role: 'user', text: id, status: 'done', created: 1 }] });
    await one.history.list();
    for (const id of ['a', 'b']) assert.deepEqual(texts(await one.history.load(id)), [id]);
    await quiet();
    server.chats.delete('b');
    server.write('new', { title: 'new', updated: 7, messages: [] });
    await one.history.list();
    await quiet();
    server.away = true;
    assert.deepEqual((await one.history.list()).map(({ id }) => id), ['new', 'a']);
    const again = await open(server, { device, state: 'reconnecting' });
    assert.deepEqual((await again.history.list()).map(({ id, text }) => [id, text]), [['new', 'new'], ['a', 'a\na']]);
    assert.deepEqual(texts(await again.history.load('a')), ['a']);
    assert.deepEqual([await again.history.load('b'), await again.history.load('new')], [null, null], 'gone there; never read');
});

test('a copy that an older page wrote is read; without a database there is none, and nothing fails', async () => {
    const server = new Server();
    const device = makeDevice();
    await new Promise((resolve) => {
        const request = device.indexedDB.open('parley-copy', 1);
        request.onupgradeneeded = () => {
            request.result.createObjectStore('chats', { keyPath: 'id' }).put({ id: 'a', title: 'A', created: 1, updated: 1, head: 'm', messages: { m: { id: 'm', parent: null, role: 'user', text: 'old', status: 'done', created: 1 } } });
            request.result.createObjectStore('list').put([{ id: 'b', title: 'B', updated: 5, text: 'B' }], 'all');
        };
        request.onsuccess = resolve;
    });
    const { history, chat } = await open(server, { device, state: 'reconnecting' });
    server.away = true;
    assert.deepEqual([texts(await history.load('a')), (await history.list()).map(({ id }) => id)], [['old'], ['b', 'a']]);
    const copy = await history.load('a');
    assert.equal(history.isAhead(copy), false);
    server.write('a', { title: 'A', updated: 9, head: 'n', messages: [copy.messages.m, { id: 'n', parent: 'm', role: 'user', text: 'new', status: 'done', created: 2 }] });
    Object.assign(server, { away: false, asked: [] });
    assert.deepEqual([await history.refresh(copy), texts(copy), server.asked], [['n'], ['old', 'new'], ['GET chats/a?since=0']], 'back again');
    server.away = true;
    device.broken = 'chats';
    assert.equal(await history.copy.put({ id: 'x', messages: {} }), null, 'no room');
    device.broken = 'parley-copy';
    const bare = await open(server, { device, state: 'reconnecting' });
    assert.deepEqual([bare.history.copy.db, await bare.history.load('a'), await bare.history.list()], [null, null, []]);
    assert.deepEqual([chat.connection.state, await bare.history.copy.get('a')], ['reconnecting', null]);
});

// ---- reading ----

test('a chat as the server has it: its files, its place, its options, and nothing where there is none', async () => {
    const { server, history } = await open();
    server.files.set('s1', new Blob(['xyz']));
    const message = (id, parent, more) => ({ id, parent, role: 'user', text: id, status: 'done', created: 1, ...more });
    server.write('a', { title: 'A', created: 2, updated: 3, head: 'm2', options: { seed: 7, place: { pinned: true } }, messages: [message('m1', null, { attachments: [{ ...file({ blob: undefined }), sha256: 's1' }, { id: 'g', name: 'gone', sha256: 'no' }] }), message('m2', 'm1')] });
    const chat = await history.load('a');
    const [whole, gone] = chat.messages.m1.attachments;
    assert.deepEqual([chat.title, chat.created, chat.updated, texts(chat), chat.options, chat.place], ['A', 2, 3, ['m1', 'm2'], { seed: 7 }, { pinned: true }]);
    assert.deepEqual([await whole.blob.text(), whole.blob.type, whole.missing, gone.missing, gone.blob], ['xyz', 'text/plain', undefined, true, undefined]);
    assert.deepEqual([server.news(), [...server.limits]], [['GET chats/a?since=0', 'GET files/s1', 'GET files/no'], ['chats GET 20000', 'files GET 600000']]);
    assert.equal(await history.load('none'), null);
    assert.equal(history.isAhead(chat), false);
    server.news();
    server.write('a', { updated: 4, head: 'm3', messages: [message('m3', 'm2')] });
    assert.deepEqual([await history.refresh(chat), texts(chat), server.news()], [['m3'], ['m1', 'm2', 'm3'], ['GET chats/a?since=1']]);
    assert.deepEqual([await history.refresh(chat), await history.refresh(talk()), server.news().length], [[], [], 1], 'of an unknown one nothing is asked');
    server.away = true;
    assert.deepEqual(await history.refresh(chat), []);
    server.away = false;
    server.chats.delete('a');
    server.revision = 0; // it counts anew
    server.write('a', { updated: 9, head: 'm9', messages: [message('m9', null)] });
    assert.deepEqual([await history.refresh(chat), texts(chat), server.news().slice(-2)], [['m9'], ['m9'], ['GET chats/a?since=2', 'GET chats/a?since=0']]);
    assert.deepEqual([await history.refresh(chat), server.news()], [[], ['GET chats/a?since=1']], 'what it was before is forgotten');
    server.write('b', { title: 'B', created: 1, updated: 1, head: 'n1', messages: [message('n1', null)] });
    const other = await history.load('b');
    server.chats.delete('b');
    asks(other, 'mine');
    assert.deepEqual([history.isAhead(other), await history.refresh(other)], [true, []], 'it has news, so it lives on');
    delete other.messages[other.head];
    assert.equal(await history.refresh(other), null, 'deleted elsewhere');
    server.refuses = () => [{}, 500];
    assert.deepEqual(await history.refresh(chat), []);
});

// ---- writing ----

test('what changed goes to the server, once, on what it stands on', async () => {
    const { server, history, chat: page, ...device } = await open();
    const chat = talk('Hi', { seed: 7 });
    const saved = await history.save(chat);
    assert.deepEqual([saved.summary.title, saved.changed, server.news(), page.lists], ['Hi', [], [`PUT chats/${chat.id}`], 1]);
    const { messages, ...fields } = server.bodies.PUT;
    assert.deepEqual([fields, messages.map(({ text }) => text)], [{ revision: 0, created: chat.created, updated: chat.updated, title: 'Hi', head: chat.head, options: { seed: 7 } }, ['Hi']]);
    await history.save(chat);
    assert.deepEqual(server.news(), [], 'nothing new');
    chat.place = { folder: 'F' };
    asks(chat, 'And?');
    await history.save(chat);
    const body = server.bodies.PUT;
    assert.deepEqual([body.revision, body.options, body.messages.map(({ text }) => text), 'title' in body, body.head === chat.head], [1, { seed: 7, place: { folder: 'F' } }, ['And?'], false, true]);
    chat.options = { seed: 8 };
    await history.save(chat);
    assert.deepEqual(server.bodies.PUT.options, { seed: 8, place: { folder: 'F' } });
    chat.place = {};
    await history.save(chat);
    assert.deepEqual([server.bodies.PUT.options, 'place' in server.bodies.PUT], [{ seed: 8 }, false]);
    chat.title = 'T';
    await history.save(chat);
    assert.deepEqual(['options' in server.bodies.PUT, server.bodies.PUT.title], [false, 'T']);
    assert.deepEqual([inOutbox(device), history.trouble, history.waiting.size], [[], '', 0]);
    stored.set('parley.removed', JSON.stringify({ [chat.id]: 1, other: 2 }));
    await history.save(chat);
    assert.equal(stored.get('parley.removed'), '{"other":2}', 'who writes it again takes the deletion back');
    const empty = newConversation();
    stored.set('parley.removed', JSON.stringify({ [empty.id]: 1, other: 2 }));
    history.summaries = [{ id: empty.id, title: 'E' }];
    assert.deepEqual(await history.save(empty), { summary: { id: empty.id, title: 'E' }, changed: [] });
    assert.equal(stored.get('parley.removed'), '{"other":2}', 'it is not deleted any more');
});

test('what the server has is copied for reading without it, once no answer in it is on its way', async () => {
    const { server, history, device } = await open();
    const copies = () => device.kept('parley-copy', 'chats').map(([, { messages }]) => Object.values(messages).map(({ text }) => text).join());
    const chat = talk('Q');
    const answer = addMessage(chat, { role: 'assistant', parent: chat.head, text: 'Half', status: 'streaming' });
    await history.save(chat);
    await quiet();
    assert.deepEqual([copies(), server.news().length], [[], 1]);
    Object.assign(answer, { text: 'Whole', status: 'done' });
    await history.save(chat);
    await quiet();
    assert.deepEqual(copies(), ['Q,Whole']);
});

test('two devices write: what the other wrote is taken in first, and nothing is lost', async () => {
    const one = await open();
    const two = await open(one.server);
    const chat = talk('Q');
    await one.history.save(chat);
    const there = await two.history.load(chat.id);
    asks(there, 'theirs');
    await two.history.save(there);
    chat.title = 'Mine';
    addMessage(chat, { role: 'assistant', parent: Object.keys(chat.messages)[0], text: 'mine' });
    one.server.news();
    const { changed } = await one.history.save(chat);
    assert.deepEqual([changed, one.server.news()], [[there.head], [`PUT chats/${chat.id}`, `GET chats/${chat.id}?since=1`, `PUT chats/${chat.id}`]]);
    await two.history.refresh(there);
    for (const c of [chat, there]) assert.deepEqual([c.title, Object.values(c.messages).map(({ text }) => text).sort()], ['Mine', ['Q', 'mine', 'theirs']]);
    // It changes faster than anybody can write.
    let puts = 0;
    one.server.refuses = (method) => (method === 'PUT' ? ((puts += 1), [{ error: { code: 'revision_conflict', message: 'Busy.' } }, 409]) : null);
    asks(chat, 'more');
    await one.history.save(chat);
    assert.deepEqual([puts, one.history.trouble, one.history.waiting.has(chat.id), inOutbox(one)], [6, 'Busy.', true, ['Mine true']]);
});

test('a chat that was deleted elsewhere goes, unless it has news: then it is made again', async () => {
    const { server, history } = await open();
    const chat = talk('Q');
    await history.save(chat);
    server.chats.clear();
    chat.title = 'Named';
    assert.deepEqual(await history.save(chat), { summary: null, changed: [] });
    asks(chat, 'more');
    server.news();
    assert.equal((await history.save(chat)).summary.title, 'Named');
    assert.deepEqual([server.news(), server.bodies.PUT.revision, texts(await history.load(chat.id))], [[`PUT chats/${chat.id}`, `PUT chats/${chat.id}`], 0, ['Q', 'more']]);
    server.refuses = (method) => (method === 'PUT' ? [{ error: { code: 'quota', message: 'Full.' } }, 413] : null);
    asks(chat, 'too much');
    server.news();
    await history.save(chat);
    assert.deepEqual([server.news(), history.trouble, history.waiting.has(chat.id)], [[`PUT chats/${chat.id}`], 'Full.', true], 'not tried again at once');
    server.refuses = null;
    await time.pass(9_990);
    assert.deepEqual(server.news(), []);
    await time.pass(20);
    await quiet();
    assert.deepEqual([history.trouble, history.waiting.size], ['', 0]);
});

test('files of a chat: sent once, by the upload where they have one, and again where the server lost them', async () => {
    const { server, history, ...device } = await open();
    const chat = newConversation();
    const plain = file();
    asks(chat, 'Q', { attachments: [plain, file({ id: 'v', url: 'upload:file-7' }), file({ id: 'gone', blob: undefined, sha256: 'lost', missing: true }), file({ id: 'never', blob: undefined })] });
    server.files.set('lost', new Blob(['old']));
    let between;
    server.refuses = (method, name) => (name === 'v1/files' ? ((between = inOutbox(device)), null) : null);
    await history.save(chat);
    assert.deepEqual(server.news(), ['POST v1/files', 'POST files', 'POST files', `PUT chats/${chat.id}`]);
    assert.deepEqual(chat.messages[chat.head].attachments.map(({ sha256 }) => sha256), ['sha-up-n.txt', 'sha-file-7', 'lost', undefined]);
    assert.deepEqual([between, inOutbox(device)], [['Q false'], []], 'kept here while they are on their way');
    assert.ok(server.limits.has('files POST 600000'));
    asks(chat, 'more');
    await history.save(chat);
    assert.deepEqual(server.news(), [`PUT chats/${chat.id}`]);
    server.files.clear();
    server.refuses = null;
    chat.messages[Object.keys(chat.messages)[0]].text = 'other';
    server.refuses = (method) => (method === 'PUT' && !server.files.size ? [{ error: { code: 'file_not_found' } }, 400] : null);
    await history.save(chat);
    assert.deepEqual(server.news(), [`PUT chats/${chat.id}`, 'GET files/lost', 'POST v1/files', 'POST files', 'POST files', `PUT chats/${chat.id}`]);
    const [, , lost, never] = chat.messages[Object.keys(chat.messages)[0]].attachments;
    assert.deepEqual([lost.missing, 'sha256' in lost], [true, false], 'nobody has it any more');
    assert.deepEqual([never.missing, 'sha256' in never], [true, false], 'the server never had it, and is not asked');
    server.refuses = (method, name) => (name === 'v1/files' ? [{}, 413] : null);
    asks(chat, 'third', { attachments: [file({ id: 'h' })] });
    await history.save(chat);
    assert.deepEqual([history.trouble, history.waiting.has(chat.id), inOutbox(device)], ['The server is away.', true, ['Q true']]);
});

test('while the server is away chats wait in the browser, are read and written there, and go when it is back', async () => {
    const server = new Server();
    const device = makeDevice();
    const one = await open(server, { device });
    const chat = talk('Q', { seed: 7 });
    await one.history.save(chat);
    await quiet();
    server.news();
    one.chat.become('reconnecting');
    asks(chat, 'offline');
    assert.deepEqual((await one.history.save(chat)).summary.id, chat.id);
    assert.deepEqual([server.news(), inOutbox({ device }), one.history.trouble], [[], ['Q true'], 'The server is away.']);
    assert.deepEqual([await one.history.refresh(chat), server.news()], [[], []], 'what waits is not asked for');
    const list = await one.history.list();
    assert.deepEqual(list.map(({ title, text }) => [title, text]), [['Q', 'Q\nQ\noffline']], 'once, as it is here');

    // The page is loaded again.
    server.away = true;
    const two = await open(server, { device, state: 'reconnecting' });
    const again = await two.history.load(chat.id);
    assert.deepEqual([texts(again), two.history.isAhead(again), 'base' in again], [['Q', 'offline'], true, false]);
    asks(again, 'twice');
    await two.history.save(again);
    server.away = false;
    two.chat.live.set(chat.id, again);
    server.news();
    two.chat.become('loading');
    await quiet();
    assert.deepEqual(server.news(), [], 'a server that loads a model gets new ones only');
    await two.history.save(talk('new'));
    assert.equal(server.news().length, 1);
    two.chat.become('open');
    await quiet();
    assert.deepEqual([server.news().at(-1), server.bodies.PUT.revision, server.bodies.PUT.messages.map(({ text }) => text)], [`PUT chats/${chat.id}`, 1, ['Q', 'offline', 'twice']]);
    assert.deepEqual([inOutbox({ device }), two.history.waiting.size, two.history.trouble], [[], 0, '']);
    two.chat.become('fallback');
    asks(again, 'by HTTP');
    await two.history.save(again);
    assert.equal(server.news().length, 1);
});

test('a chat that waits and is not open is read and sent, too; the server is asked again every ten seconds', async () => {
    const server = new Server();
    const device = makeDevice();
    const one = await open(server, { device });
    server.away = true;
    const chat = talk('waits');
    await one.history.save(chat);
    await time.pass(10_010);
    await quiet();
    assert.deepEqual(server.news().filter((line) => line.startsWith('PUT')).length, 2, 'tried again');
    server.away = false;
    const two = await open(server, { device });
    assert.deepEqual([server.chats.get(chat.id)?.title, two.history.waiting.size, inOutbox({ device })], ['waits', 0, []]);
    two.history.waiting.add('nobody');
    await two.history.flush(); // one that is gone meanwhile
});

test('questions that wait belong to this browser; another tab may take them, and hears of it', async () => {
    const device = makeDevice();
    const one = await open(new Server(), { device });
    const two = await open(one.server, { device });
    const chat = talk('Q');
    chat.queue = [{ id: 'q1', text: 'next', attachments: [] }];
    await one.history.save(chat);
    assert.deepEqual([inOutbox({ device }), one.history.waiting.size, 'queue' in one.server.bodies.PUT], [['Q false'], 0, false]);
    await quiet();
    assert.deepEqual([two.chat.refreshed, two.history.stored.has(chat.id), two.history.waiting.size], [[[chat.id]], true, 0]);
    const there = await two.history.load(chat.id);
    two.chat.live.set(chat.id, there);
    assert.deepEqual(there.queue.map(({ text }) => text), ['next']);
    assert.deepEqual([await two.history.takeQueued(there, 'q1'), await one.history.takeQueued(chat, 'q1')], [true, false]);
    chat.queue.push({ id: 'q2', text: 'after', attachments: [] });
    await one.history.save(chat);
    await two.history.refresh(there);
    assert.deepEqual([chat.queue, there.queue].map((queue) => queue.map(({ text }) => text)), [['after'], ['after']]);
    chat.queue = [];
    await one.history.save(chat);
    await quiet();
    assert.deepEqual([inOutbox({ device }), there.queue, two.history.stored.size, two.history.waiting.size], [[], [], 0, 0]);
});

test('what waits for the server in one tab, the other sends as well', async () => {
    const device = makeDevice();
    const one = await open(new Server(), { device });
    const two = await open(one.server, { device });
    const chat = talk('Q');
    one.server.away = true;
    asks(chat, 'offline');
    await one.history.save(chat);
    await quiet();
    assert.ok(two.history.waiting.has(chat.id));
    clearTimeout(one.history.retry);
    one.server.away = false;
    one.server.news();
    await time.pass(10_010);
    await quiet();
    assert.deepEqual([one.server.news().filter((line) => line.startsWith('PUT')).length, inOutbox({ device })], [1, []]);
    // What the other has taken out meanwhile is put there again.
    one.chat.become('reconnecting');
    asks(chat, 'more');
    await one.history.save(chat);
    await quiet();
    await two.history.flush();
    assert.deepEqual(inOutbox({ device }), []);
    chat.title = 'Named';
    await one.history.save(chat);
    assert.deepEqual(inOutbox({ device }), ['Named true']);
});

test('writes of a chat follow each other; of those that wait for their turn one is enough', async () => {
    const { server, history, chat: page } = await open();
    const chat = talk('a');
    await history.save(chat);
    server.news();
    asks(chat, 'b');
    const first = history.save(chat);
    asks(chat, 'c');
    const others = [history.save(chat), history.save(chat), history.save(chat)];
    assert.deepEqual([history.writes.get(chat.id).length, await history.refresh(chat)], [2, []], 'what is being written is not read');
    await Promise.all([first, ...others]);
    assert.deepEqual([server.news().every((line) => line === `PUT chats/${chat.id}`), history.writes.size, server.chats.get(chat.id).messages.map(({ text }) => text)], [true, 0, ['a', 'b', 'c']]);
    page.live.set(chat.id, chat);
});

test('where there is no room in the browser either, it is said', async () => {
    const { server, history, device } = await open();
    server.away = true;
    device.broken = 'chats';
    await assert.rejects(history.save(talk()), { message: 'no room' });
    history.outbox = new History(null);
    await assert.rejects(history.save(talk()));
});

// ---- deleting ----

test('a chat is deleted as it is known; what others wrote to it meanwhile stays, and is taken in', async () => {
    const one = await open();
    const { server, history } = one;
    const [chat, grown] = [talk('Q'), talk('G')];
    for (const c of [chat, grown]) await history.save(c);
    server.news();
    assert.equal(await history.remove(chat), true);
    assert.deepEqual([server.news(), server.chats.has(chat.id), stored.get('parley.removed'), history.known.has(chat)], [[`DELETE chats/${chat.id}?revision=1`], false, '{}', false]);
    assert.equal(await history.remove(chat), true, 'a second time');
    server.news();
    const never = talk('never kept');
    assert.deepEqual([await history.remove(never), server.news()], [true, [`DELETE chats/${never.id}?revision=0`]]);
    const there = await (await open(server)).history.load(grown.id);
    server.write(grown.id, { title: 'renamed', messages: [] });
    server.write(grown.id, { head: 'x', messages: [{ id: 'x', parent: there.head, role: 'user', text: 'theirs', status: 'done', created: 9 }] });
    server.news();
    assert.equal(await history.remove(grown), false);
    assert.deepEqual([server.news(), texts(grown), stored.get('parley.removed')], [[`DELETE chats/${grown.id}?revision=2`, `GET chats/${grown.id}?since=2`], ['G', 'theirs'], '{}']);
    server.write(grown.id, { title: 'only named', messages: [] });
    assert.equal(await history.remove(grown), true, 'what only got a name goes');
    assert.deepEqual(server.news(), [`DELETE chats/${grown.id}?revision=4`, `GET chats/${grown.id}?since=4`, `DELETE chats/${grown.id}?revision=5`]);
    // Deleted there while it was changed there.
    const third = talk('T');
    await history.save(third);
    server.news();
    server.refuses = (method) => (method === 'DELETE' ? [{}, 409] : null);
    server.chats.delete(third.id);
    assert.deepEqual([await history.remove(third), server.news().length], [true, 2]);
    // Changed there, and this page never saw it.
    const unseen = talk('U');
    let n = 0;
    server.refuses = () => [{}, (n += 1) === 1 ? 409 : 404];
    assert.deepEqual([await history.remove(unseen), server.news()], [true, [`DELETE chats/${unseen.id}?revision=0`, `DELETE chats/${unseen.id}?revision=0`]]);
});

test('a deletion that the server was not told of is told when it is back, and the list is without the chat', async () => {
    const server = new Server();
    const device = makeDevice();
    const { history, chat: page } = await open(server, { device });
    const [chat, other] = [talk('Q'), talk('O')];
    for (const c of [chat, other]) await history.save(c);
    await history.list();
    server.away = true;
    asks(chat, 'offline');
    await history.save(chat);
    assert.equal(await history.remove(chat), true);
    assert.deepEqual([history.trouble, inOutbox({ device }), JSON.parse(stored.get('parley.removed')), (await history.list()).map(({ title }) => title)], ['The server is away.', [], { [chat.id]: 1 }, ['O']]);
    server.away = false;
    server.news();
    await time.pass(10_010);
    await quiet();
    assert.deepEqual([server.news(), server.chats.has(chat.id), stored.get('parley.removed')], [[`DELETE chats/${chat.id}?revision=1`], false, '{}']);
    // Meanwhile it was changed there: it stays, and the list has it again.
    stored.set('parley.removed', JSON.stringify({ [other.id]: 1 }));
    page.refreshed.length = 0;
    await history.flush();
    assert.deepEqual([page.refreshed, server.chats.has(other.id), stored.get('parley.removed')], [['all'], true, '{}']);
    // The first form of the note had no revisions.
    stored.set('parley.removed', JSON.stringify([other.id]));
    server.news();
    await history.flush();
    assert.deepEqual([server.news(), server.chats.size], [[`DELETE chats/${other.id}`], 0]);
    // Another tab tells the server meanwhile.
    stored.set('parley.removed', JSON.stringify({ a: 1, b: 1 }));
    server.refuses = () => (stored.set('parley.removed', '{}'), null);
    page.refreshed.length = 0;
    await history.flush();
    assert.deepEqual([server.news(), page.refreshed], [['DELETE chats/a?revision=1'], []]);
    server.refuses = null;
    stored.set('parley.removed', '{');
    await history.flush();
    assert.deepEqual(server.news(), []);
    // One that could not be read: by what the list says of it, and later.
    server.write('u', { title: 'U', updated: 1, messages: [] });
    await history.list();
    server.news();
    assert.equal(await history.remove({ ...newConversation(), id: 'u' }), true);
    assert.deepEqual([server.news(), JSON.parse(stored.get('parley.removed'))], [[], { u: server.revision }]);
    await time.pass(10_010);
    await quiet();
    assert.deepEqual(server.news(), [`DELETE chats/u?revision=${server.revision}`]);
});

// ---- news ----

test('what other devices do is looked at a little later, unless it was this one’s own doing', async () => {
    const { server, history, chat: page } = await open();
    const chat = talk('Q');
    await history.save(chat);
    page.live.set(chat.id, chat);
    const { revision } = history.known.get(chat);
    page.hear({ id: chat.id, revision });
    await time.pass(200);
    assert.deepEqual(page.refreshed, [], 'its own');
    page.hear({ id: chat.id, revision: revision + 1 });
    page.hear({ id: 'other', revision: 1 });
    await time.pass(100);
    page.hear({ id: 'other', revision: 2 });
    await time.pass(149);
    assert.deepEqual(page.refreshed, []);
    await time.pass(1);
    assert.deepEqual(page.refreshed, ['all'], 'once for all of it');
    await time.pass(1000);
    page.hear({ id: chat.id, revision: 0, deleted: true });
    await time.pass(160);
    assert.equal(page.refreshed.length, 2);
    onFocus.at(-1)();
    await time.pass(160);
    assert.equal(page.refreshed.length, 3, 'the window is looked at again');
    // While it is being written here, it is looked at behind that.
    let go;
    const put = server.fetch;
    server.fetch = async function (...call) {
        await new Promise((resolve) => (go = resolve));
        return put.apply(this, call);
    };
    asks(chat, 'more');
    const saving = history.save(chat);
    await quiet();
    page.hear({ id: chat.id, revision: 99 });
    await time.pass(160);
    assert.equal(page.refreshed.length, 3);
    go();
    await saving;
    await time.pass(160);
    assert.equal(page.refreshed.length, 4);
});

// ---- moving ----

test('chats of this browser are offered to the server, and go there with their files', async () => {
    const server = new Server();
    const device = makeDevice().here();
    const local = await History.open('parley');
    const [chat, other] = [newConversation({ seed: 1 }), talk('O')];
    asks(chat, 'L', { attachments: [file()] });
    for (const c of [chat, other]) await local.save(c);
    assert.equal((await open(server, { device, choices: { declinedMove: true } })).history.movable, 0);
    const { history, chat: page } = await open(server, { device });
    assert.equal(history.movable, 2);
    server.refuses = (method, name, given) => (method === 'PUT' && given.title === 'O' ? [{}, 500] : null);
    await history.move();
    assert.deepEqual([history.movable, (await local.list()).map(({ title }) => title), page.refreshed.at(-1)], [1, ['O'], 'all']);
    assert.deepEqual([server.chats.get(chat.id).messages[0].attachments[0].sha256, server.chats.get(chat.id).options], ['sha-up-n.txt', { seed: 1 }]);
});
