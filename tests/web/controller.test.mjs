/** The controller of the chats without a browser: what each verb does to the chats, to where they are kept and to what the
 * views hear. The server and the keeper are made up. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { makeStorage, makeTime } from './made_up.mjs';
import { Chat } from '../../web/js/state/chat.js';
import { readDrafts } from '../../web/js/state/drafts.js';
import { Settings } from '../../web/js/state/settings.js';
import { throttleFrames } from '../../web/js/util.js';
import { noteUnsaved, takeUpUnsaved } from '../../web/js/state/unsaved.js';

const time = makeTime();
const kept = new Map();
globalThis.localStorage = makeStorage(kept);
globalThis.document = { hidden: true, baseURI: 'http://host/' };
globalThis.navigator ??= /** @type {any} */ ({});
const window = {};
globalThis.addEventListener = (name, fn) => (window[name] = fn);

class Server extends EventTarget {
    state = 'open';
    session = { session: { model: 'small' }, limits: { n_ctx: 100 } };
    server = null;
    asked = [];
    runs = [];
    answer = () => [{}, 200];
    start() {
        this.started = true;
    }
    async fetch(path, init) {
        this.asked.push({ path, ...init, body: init?.body && JSON.parse(init.body) });
        const [body, status] = this.answer(path);
        return new Response(JSON.stringify(body), { status });
    }
    #run(fields, sink) {
        const run = { ...fields, sink, done: false, cancels: 0, cancel: () => (run.cancels += 1), end: (status = 'completed') => sink({ kind: 'end', status }) };
        this.runs.push(run);
        return run;
    }
    generate(body, sink, askId) {
        return this.#run({ body, askId }, sink);
    }
    resume(responseId, sink) {
        return this.#run({ responseId }, sink);
    }
    become(state) {
        this.state = state;
        this.dispatchEvent(new Event('state'));
    }
}

/** Where chats are kept: what others do to them, tests do by hand. */
class Keeper {
    chats = new Map();
    known = new Map();
    available = true;
    saves = [];
    lists = [];
    async list(before = [], ids) {
        this.lists.push(ids);
        if (this.fails) throw new Error('away');
        const all = [...this.chats.values()].map(summary).sort((a, b) => b.updated - a.updated);
        return ids ? [...all.filter(({ id }) => ids.includes(id)), ...before.filter(({ id }) => !ids.includes(id))] : all;
    }
    async load(id) {
        return this.unreadable ? null : structuredClone(this.chats.get(id) ?? null);
    }
    async save(conversation) {
        this.saves.push(conversation.id);
        if (this.error) throw this.error;
        this.chats.set(conversation.id, structuredClone(conversation));
        return { summary: summary(conversation), changed: [] };
    }
    async refresh(conversation) {
        return this.changed?.get(conversation.id) ?? [];
    }
    async remove(conversation) {
        if (this.refuses) return false;
        return this.chats.delete(conversation.id), true;
    }
    isAhead = () => !!this.ahead;
    takeQueued = async ({ messages }, id) => !!messages && /^q_/.test(id) && !this.othersTook;
}
const summary = ({ id, title, updated, place }) => ({ id, title, updated, text: title, ...(place ? { place } : {}) });

async function open() {
    kept.clear();
    const [server, keeper, settings] = [new Server(), new Keeper(), new Settings()];
    const chat = new Chat({ connection: /** @type {any} */ (server), settings, openHistory: async () => keeper });
    const heard = [];
    for (const name of ['conversation', 'message', 'list', 'connection', 'notice', 'finished', 'options', 'news']) {
        chat.addEventListener(name, ({ detail }) => heard.push([name, detail]));
    }
    await chat.start();
    const notices = () => heard.filter(([name]) => name === 'notice').map(([, detail]) => detail);
    const told = () => heard.splice(0).map(([name]) => name);
    return { chat, server, keeper, settings, heard, notices, told };
}
/** With a chat of one question and its answer, which is kept. */
async function withChat(question = 'Question?', text = 'Answer.') {
    const all = await open();
    all.chat.send(question, []);
    await time.settle();
    const [run] = all.server.runs.splice(0);
    run.sink({ kind: 'text', delta: text });
    run.end();
    await time.settle();
    const { current } = all.chat;
    const answer = current.messages[current.head];
    all.told();
    return { ...all, current, answer, question: current.messages[answer.parent] };
}
const texts = ({ messages }) => Object.values(messages).map(({ text }) => text);

test('a question makes a chat, and the chat is kept and listed', async () => {
    const { chat, server, keeper, current, answer, question } = await withChat();
    assert.deepEqual([server.started, chat.current === current, texts(current)], [true, true, ['Question?', 'Answer.']]);
    assert.deepEqual([answer.status, answer.model, answer.modelId, question.attachments], ['done', 'Small', 'small', undefined]);
    assert.deepEqual([chat.list.map(({ id }) => id), keeper.chats.has(current.id), chat.saving.size], [[current.id], true, 0]);
    assert.equal(chat.live.get(current.id), current);
});

test('what each verb tells the views', async () => {
    const verbs = {
        newChat: ['conversation'], open: ['conversation', 'news'], send: ['conversation', 'list', 'message', 'news'], rename: ['list', 'news'], setPlace: ['list', 'news'],
        remove: ['conversation', 'list', 'notice'], removeAll: ['conversation', 'list', 'notice'], branchInto: ['conversation', 'list', 'news'], erase: ['conversation', 'list', 'news', 'notice'],
        askStored: ['options'], setOption: ['list', 'news', 'options'], setNewOption: [], editAnswer: ['conversation', 'list', 'news'], apart: ['conversation', 'list', 'news'],
        show: ['conversation', 'list', 'news'], unqueue: ['list', 'news'], enqueue: ['conversation', 'list', 'message', 'news'], editQuestion: ['conversation', 'list', 'message', 'news'], regenerate: ['conversation', 'list', 'message', 'news'], refresh: ['list', 'news'], setTemporary: ['conversation'],
    };
    for (const [verb, expected] of Object.entries(verbs)) {
        const { chat, current, answer, question, keeper, told } = await withChat();
        await time.pass(100);
        if (/open|Temporary/.test(verb)) chat.newChat();
        chat.keepDraft('half', []);
        told();
        const saves = keeper.saves.length;
        const given = { send: ['More', []], rename: [current.id, 'N'], setPlace: [current.id, { pinned: true }], removeAll: [[current.id]], branchInto: [answer.id], erase: [answer.id], setOption: ['seed', 3], setNewOption: ['seed', 3], editAnswer: [answer.id, 'x'], apart: [Object.assign(answer, { beside: 'x' })], editQuestion: [question.id, 'x', []], regenerate: [answer.id], refresh: [[current.id]], setTemporary: [true], show: [answer], enqueue: ['x', []], unqueue: [{ id: 'q_none' }] };
        await chat[verb](...(given[verb] ?? [current.id]));
        await time.settle();
        assert.deepEqual([...new Set(told())].sort(), expected, verb);
        assert.equal(keeper.saves.length > saves, expected.includes('news') && !/open|refresh/.test(verb), `${verb} is kept`);
        assert.equal(chat.drafts.size, /send|enqueue/.test(verb) ? 0 : 1, `${verb} and what is being written`);
    }
    const { chat, told } = await open();
    chat.setTemporary(true);
    chat.send('Q', []);
    await time.settle();
    told();
    await chat.rename(chat.current.id, 'Named');
    assert.deepEqual([told(), chat.current.title], [['news'], 'Named'], 'of a chat that is kept nowhere, too');
    assert.equal(chat.progress.get(chat.current.head).kind, 'waiting');
});

test('what waits is listed at once, and what was being written waits with it; the list is told when it is there', async () => {
    const { heard } = await open();
    assert.ok(heard.some(([name]) => name === 'list'));
    const { chat, told } = await withChat();
    chat.send('More', []);
    await time.settle();
    chat.keepDraft('next', []);
    told();
    chat.enqueue('next', []);
    assert.deepEqual([told(), chat.drafts.size, chat.queue.length], [['list'], 0, 1]);
});

test('a chat that is left is not in memory any more, the one that is opened is', async () => {
    const { chat, server, current } = await withChat();
    chat.newChat();
    chat.send('Second', []);
    await time.settle();
    server.runs.splice(0)[0].end();
    await time.settle();
    const second = chat.current;
    await chat.open(current.id);
    assert.deepEqual([[...chat.live.keys()], chat.live.get(current.id) === chat.current], [[current.id], true]);
    assert.deepEqual((await chat.all()).map(({ id }) => id).sort(), [current.id, second.id].sort());
});

test('what was written elsewhere is among all chats, too', async () => {
    const { chat, keeper, current } = await withChat();
    keeper.chats.set('c_new', { ...structuredClone(current), id: 'c_new' });
    assert.deepEqual((await chat.all()).map(({ id }) => id).sort(), ['c_new', current.id].sort());
});

test('a deletion that is taken back while it is under way ends first; a chat that stays is written again', async () => {
    const { chat, keeper, current } = await withChat();
    let gone, undo;
    keeper.remove = ({ id }) => new Promise((resolve) => (gone = () => resolve(keeper.chats.delete(id))));
    const removing = chat.remove(current.id, (fn) => (undo = fn));
    await time.settle();
    const undone = undo();
    await time.settle();
    assert.equal(keeper.chats.has(current.id), true);
    gone();
    await Promise.all([removing, undone]);
    assert.deepEqual([keeper.chats.has(current.id), chat.list.map(({ id }) => id)], [true, [current.id]]);
    keeper.remove = async () => false;
    await chat.remove(current.id, () => {});
    keeper.saves.length = 0;
    await chat.save(current);
    assert.deepEqual(keeper.saves, [current.id]);
    keeper.save = async () => ({ summary: null, changed: [] });
    keeper.ahead = true;
    await chat.save(current);
    assert.deepEqual(chat.list, [], 'what was deleted elsewhere is not listed');
});

test('a chat that is deleted while it is being written is not listed again', async () => {
    const { chat, keeper, current } = await withChat();
    let written;
    const { save } = keeper;
    keeper.save = (conversation) => new Promise((resolve) => (written = () => resolve(save.call(keeper, conversation))));
    const saving = chat.save(current);
    await time.settle();
    await chat.remove(current.id, () => {});
    written();
    await saving;
    assert.deepEqual(chat.list, []);
});

test('a new chat is another one, with the options of new chats; an empty one stays', async () => {
    const { chat, settings, current, told } = await withChat();
    settings.set('newChat', { seed: 3 });
    chat.newChat();
    assert.deepEqual([chat.current === current, chat.current.options, told(), chat.live.has(current.id)], [false, { seed: 3 }, ['conversation'], false]);
    const empty = chat.current;
    chat.newChat();
    assert.deepEqual([chat.current === empty, told()], [true, []]);
});

test('a chat is opened from where it is kept, or from memory while it answers', async () => {
    const { chat, server, current, told } = await withChat();
    assert.equal(await chat.open(current.id), true);
    assert.deepEqual(told(), [], 'it is shown already');
    chat.newChat();
    assert.equal(await chat.open('nobody'), false);
    chat.unread.add(current.id);
    told();
    assert.equal(await chat.open(current.id), true);
    assert.deepEqual(told(), ['conversation', 'news']);
    assert.deepEqual([chat.current === current, chat.current.id, chat.unread.size, texts(chat.current)], [false, current.id, 0, ['Question?', 'Answer.']]);
    chat.send('More', []);
    await time.settle();
    const running = chat.current;
    assert.deepEqual([chat.busy, chat.isRunning(running.id), chat.isRunning('nobody')], [true, true, false]);
    chat.newChat();
    assert.deepEqual([chat.busy, chat.isRunning(running.id), chat.live.get(running.id) === running], [false, true, true]);
    assert.equal(await chat.read(running.id), running);
    server.runs[0].end();
    await time.settle();
    assert.deepEqual([chat.unread.has(running.id), chat.live.has(running.id), chat.isRunning(running.id)], [true, false, false]);
});

test('what was being answered when the page went is picked up when its chat is opened', async () => {
    const { chat, server, keeper, current, answer } = await withChat();
    chat.newChat();
    Object.assign(keeper.chats.get(current.id).messages[answer.id], { status: 'streaming', responseId: 'r7' });
    await chat.open(current.id);
    await time.settle();
    assert.deepEqual(server.runs.map(({ responseId }) => responseId), ['r7']);
});

test('deleting a chat, taking it back, and what somebody wrote to meanwhile', async () => {
    const { chat, keeper, current, notices, server } = await withChat();
    chat.rename(current.id, 'Name');
    await time.settle();
    chat.send('More', []);
    await time.settle();
    await chat.remove('nobody');
    assert.deepEqual([notices(), chat.list.length], [[], 1]);
    await chat.remove(current.id);
    assert.deepEqual([chat.list, keeper.chats.size, chat.current.id !== current.id, server.runs[0].cancels, chat.live.size], [[], 0, true, 1, 0]);
    const [notice] = notices();
    assert.deepEqual([notice.text, notice.action, notice.lastsMs], ['“Name” deleted.', 'Undo', 8_000]);
    await chat.save(current);
    assert.equal(keeper.chats.size, 0, 'it is not written again');
    keeper.known.set(current, 1);
    await notice.undo();
    assert.deepEqual([chat.list.map(({ title }) => title), keeper.chats.size, keeper.known.has(current)], [['Name'], 1, false]);
    keeper.refuses = true;
    await chat.remove(current.id);
    assert.match(notices().at(-1).text, /“Name” stays/);
    assert.deepEqual([chat.list.length, chat.intents.size], [1, 0]);
    keeper.refuses = false;
    const { remove } = keeper;
    keeper.remove = async () => { throw new Error('no room'); };
    await chat.remove(current.id);
    assert.match(notices().at(-1).text, /“Name” stays/, 'what fails has not deleted it');
    keeper.remove = remove;
    let undo;
    await chat.remove(current.id, (fn) => (undo = fn));
    assert.equal(notices().length, 5, 'who takes the undo has a notice of its own');
    await undo();
    assert.equal(chat.list.length, 1);
});

test('all chats at once, and back', async () => {
    const { chat, notices, current } = await withChat();
    chat.newChat();
    chat.send('Second', []);
    await time.settle();
    assert.equal(chat.list.length, 2);
    await chat.removeAll([current.id]);
    assert.deepEqual([notices().at(-1).text, chat.list.length], ['1 chat deleted.', 1]);
    await notices().at(-1).undo();
    await chat.removeAll();
    assert.deepEqual([notices().at(-1).text, notices().at(-1).action, notices().at(-1).lastsMs, chat.list], ['2 chats deleted.', 'Undo', 8_000, []]);
    await notices().at(-1).undo();
    assert.equal(chat.list.length, 2);
});

test('names, places and folders', async () => {
    const { chat, keeper, current, notices, told } = await withChat();
    await chat.rename(current.id, '  ');
    assert.equal(current.title, 'Question?', 'its first words are its name until then');
    await chat.rename(current.id, ' Name ');
    assert.deepEqual([current.title, keeper.chats.get(current.id).title, told().includes('news')], ['Name', 'Name', true]);
    await chat.setPlace(current.id, { folder: 'F', pinned: true });
    assert.deepEqual([current.place, chat.list[0].place], [{ folder: 'F', pinned: true }, { folder: 'F', pinned: true }]);
    await chat.renameFolder('other', 'G');
    assert.equal(current.place.folder, 'F');
    await chat.renameFolder('F', ' G ');
    assert.deepEqual(current.place, { folder: 'G', pinned: true });
    await chat.renameFolder('G', '');
    assert.deepEqual(current.place, { pinned: true });
    chat.newChat();
    keeper.unreadable = true;
    await chat.rename(current.id, 'New');
    await chat.setPlace(current.id, { archived: true });
    assert.equal(notices().filter(({ text }) => /cannot be read now/.test(text)).length, 2);
    assert.equal(keeper.chats.get(current.id).title, 'Name');
});

test('a title by the model: what it is asked, and what is no title', async () => {
    const { chat, server, current, notices } = await withChat('Q'.repeat(2000), 'A.');
    const says = async (content, status = 200) => {
        server.answer = () => [status === 200 ? { choices: [{ message: { content } }] } : { error: { message: content } }, status];
        await chat.nameByModel(current.id);
        return current.title;
    };
    assert.equal(await says('"**A fine title.**"\nMore'), 'A fine title');
    const { path, method, headers, body } = server.asked.at(-1);
    assert.deepEqual([path, method, headers], ['v1/chat/completions', 'POST', { 'Content-Type': 'application/json' }]);
    assert.deepEqual({ ...body, messages: 0 }, { model: 'small', messages: 0, max_tokens: 24, temperature: 0, chat_template_kwargs: { enable_thinking: false } });
    assert.match(body.messages[0].content, /^Question: Q{1000}\n\nAnswer: A\.\n\nGive this conversation a title/);
    assert.equal(await says('one two three four five six seven eight nine'), 'one two three four five six seven eight nine');
    assert.equal(await says('one two three four five six seven eight nine ten'), 'one two three four five six seven eight nine');
    assert.equal(notices().at(-1).text, 'No title was made. The model gave no title.');
    assert.equal((await says('x'.repeat(100))).length, 80);
    await says(' "" ');
    assert.match(notices().at(-1).text, /gave no title/);
    await says('Busy.', 500);
    assert.equal(notices().at(-1).text, 'No title was made. Busy.');
    const before = notices().length;
    server.answer = () => {
        current.title = 'Mine';
        return [{ choices: [{ message: { content: 'Its' } }] }, 200];
    };
    await chat.nameByModel(current.id);
    assert.deepEqual([current.title, notices().length], ['Mine', before], 'who named it meanwhile knows better');
    await chat.nameByModel('nobody');
    assert.equal(notices().length, before);
});

test('a temporary chat is kept nowhere; only an empty one becomes one', async () => {
    const { chat, keeper, told } = await open();
    told();
    chat.setTemporary(true);
    assert.deepEqual([chat.current.temporary, told()], [true, ['conversation']]);
    chat.send('Hi', []);
    await time.settle();
    assert.deepEqual([keeper.saves, chat.list], [[], []]);
    chat.setTemporary(false);
    assert.equal(chat.current.temporary, true);
});

test('a branch goes on as a chat of its own', async () => {
    const { chat, keeper, current, question } = await withChat();
    await chat.branchInto(question.id);
    assert.deepEqual([texts(chat.current), chat.current.id !== current.id, keeper.chats.size, chat.live.has(current.id), chat.live.has(chat.current.id)], [['Question?'], true, 2, false, true]);
});

test('deleting a message and taking it back; not while it is answered', async () => {
    const { chat, keeper, current, answer, heard, notices, told } = await withChat();
    chat.erase('nobody');
    assert.deepEqual(told(), []);
    chat.erase(answer.id);
    await time.settle();
    assert.deepEqual([texts(keeper.chats.get(current.id)), heard.some(([name]) => name === 'conversation')], [['Question?', ''], true]);
    const { text, action, undo, lastsMs } = notices().at(-1);
    assert.deepEqual([text, action, lastsMs], ['Message deleted.', 'Undo', 8_000]);
    undo();
    await time.settle();
    assert.deepEqual(texts(keeper.chats.get(current.id)), ['Question?', 'Answer.']);
    chat.send('More', []);
    await time.settle();
    const before = notices().length;
    chat.erase(answer.id);
    assert.equal(notices().length, before);
});

test('how much room the chats take', async () => {
    const { chat, server, keeper } = await open();
    Object.defineProperty(navigator, 'storage', { configurable: true, value: { estimate: async () => ({ usage: 0, quota: 9 }) } });
    await chat.askStored();
    assert.deepEqual(chat.stored, { used: 0, most: 9 });
    navigator.storage.estimate = async () => ({});
    await chat.askStored();
    assert.equal(chat.stored, null);
    Object.assign(keeper, { remote: true });
    server.answer = () => [{ bytes: 5, quota: 7 }, 200];
    await chat.askStored();
    assert.deepEqual([chat.stored, server.asked.at(-1).path], [{ used: 5, most: 7 }, 'v1/history']);
    server.answer = () => {
        throw new Error('away');
    };
    await chat.askStored();
    assert.equal(chat.stored, null);
    delete navigator.storage;
});

test('chats that come from a file are kept, and all of them can be had', async () => {
    const { chat, keeper, current, answer, told } = await withChat();
    const other = { ...structuredClone(current), id: 'other', title: 'Other', updated: current.updated + 5 };
    await chat.add([other]);
    assert.deepEqual(chat.list.map(({ id }) => id), ['other', current.id], 'the newest first');
    assert.deepEqual((await chat.all()).map(({ id }) => id).sort(), ['other', current.id].sort());
    told();
    await chat.save(current);
    assert.deepEqual([chat.list.map(({ id }) => id), told()], [['other', current.id], ['news', 'list']], 'each at its place, once');
    const { save } = keeper;
    keeper.save = async () => ({ summary: summary(current), changed: [answer.id] });
    await chat.save(current);
    assert.deepEqual(told(), ['message', 'news', 'list'], 'what others wrote is shown');
    keeper.save = async () => ({ summary: null, changed: [] });
    await chat.save(current);
    assert.deepEqual([chat.list.map(({ id }) => id), chat.current === current], [['other'], false], 'it was deleted elsewhere');
    keeper.save = save;
});

test('a chat that cannot be kept is said once, until one can', async () => {
    const { chat, keeper, current, notices } = await withChat();
    keeper.error = new Error('no');
    await chat.save(current);
    await chat.save(current);
    assert.deepEqual(notices().map(({ text, lastsMs }) => [text.slice(0, 22), lastsMs]), [['This chat could not be', 60_000]]);
    keeper.error = null;
    await chat.save(current);
    keeper.error = Object.assign(new Error('full'), { name: 'QuotaExceededError' });
    await chat.save(current);
    assert.match(notices().at(-1).text, /no more room/);
    assert.deepEqual([notices().length, chat.saving.size], [2, 0]);
});

test('a write is known until the last of several has ended', async () => {
    const { chat, keeper, current } = await withChat();
    const ends = [];
    keeper.save = () => new Promise((resolve) => ends.push(() => resolve({ summary: summary(current), changed: [] })));
    const both = [chat.save(current), chat.save(current)];
    await time.settle();
    assert.equal(chat.saving.get(current), 2);
    ends[0]();
    await both[0];
    assert.equal(chat.saving.get(current), 1);
    ends[1]();
    await both[1];
    assert.equal(chat.saving.has(current), false);
});

test('what others changed is shown, what they deleted goes', async () => {
    const { chat, keeper, current, answer, heard, notices, server } = await withChat();
    keeper.changed = new Map([[current.id, [answer.id]]]);
    Object.assign(answer, { status: 'streaming', responseId: 'r1' });
    keeper.chats.set('other', { ...structuredClone(current), id: 'other', title: 'Other', updated: 1e15 });
    await chat.refresh(['other']);
    assert.deepEqual([chat.list.map(({ id }) => id), heard.some(([name]) => name === 'news')], [['other', current.id], false], 'this one was not named');
    await chat.refresh();
    assert.deepEqual([heard.some(([name]) => name === 'news'), heard.some(([name, detail]) => name === 'message' && detail === answer.id)], [true, true]);
    await time.settle();
    assert.deepEqual(server.runs.map(({ responseId }) => responseId), ['r1'], 'an answer that comes elsewhere is followed');
    assert.deepEqual(keeper.lists.slice(-2), [['other'], undefined]);
    chat.took(current, [answer.id]);
    await time.settle();
    assert.equal(server.runs.length, 1, 'once');
    keeper.ahead = true;
    chat.took(current, null);
    assert.equal(chat.current, current, 'what was written to since stays');
    keeper.ahead = false;
    chat.took(current, null);
    assert.deepEqual([chat.current === current, notices().at(-1).text, server.runs[0].cancels, chat.live.has(current.id)], [false, 'This chat was deleted elsewhere.', 1, false]);
    const before = heard.length;
    chat.took(current, [answer.id]);
    assert.equal(heard.length, before, 'it is not heard of again');
    keeper.fails = true;
    await chat.refresh();
    assert.equal(heard.at(-1)[0], 'list');
});

test('questions that wait: one after the other, taken back, and not where another tab was faster', async () => {
    const { chat, server, keeper, current } = await withChat();
    chat.send('First', []);
    await time.settle();
    chat.enqueue('Second', []);
    chat.enqueue('Third', [{ id: 'f', kind: 'text', name: 'n' }]);
    assert.deepEqual(chat.queue.map(({ text }) => text), ['Second', 'Third']);
    assert.match(chat.queue[0].id, /^q_/);
    chat.unqueue(chat.queue[0]);
    assert.deepEqual([chat.queue.map(({ text }) => text), server.runs.length], [['Third'], 1]);
    chat.unqueue(chat.queue[0]);
    assert.equal('queue' in current, false);
    chat.enqueue('Fourth', []);
    server.runs[0].end();
    await time.settle();
    assert.deepEqual([chat.queue, server.runs.length, texts(current).includes('Fourth')], [[], 2, true]);
    keeper.othersTook = true;
    chat.enqueue('Fifth', []);
    server.runs[1].end();
    await time.settle();
    assert.equal(server.runs.length, 2);
    chat.unqueue(chat.queue[0]);
    keeper.othersTook = false;
    chat.enqueue('Sixth', []);
    await time.settle();
    assert.deepEqual([server.runs.length, chat.queue], [3, []], 'without an answer under way it is asked at once');
});

test('drafts are of their chat, an empty one of none; they go with what is sent', async () => {
    const { chat, current } = await withChat();
    chat.keepDraft('words', []);
    assert.deepEqual([chat.draft, readDrafts()], [{ text: 'words', attachments: [] }, { [current.id]: 'words' }]);
    chat.newChat();
    assert.equal(chat.draft, undefined);
    chat.keepDraft('', [{ id: 'f' }]);
    assert.deepEqual([chat.drafts.has('new'), chat.draft.attachments.length], [true, 1]);
    chat.keepDraft('', []);
    assert.equal(chat.draft, undefined);
    chat.keepDraft('x', []);
    chat.send('x', []);
    assert.equal(chat.drafts.has('new'), false);
    assert.deepEqual(readDrafts(), { [current.id]: 'words' });
});

test('other words for an answer and for a question, other answers, and which one is shown', async () => {
    const { chat, server, keeper, current, answer, question } = await withChat();
    chat.editAnswer(question.id, 'no');
    chat.editQuestion(answer.id, 'no', []);
    assert.equal(texts(current).length, 2);
    chat.editAnswer(answer.id, 'Mine');
    const mine = current.messages[current.head];
    assert.deepEqual([mine.text, mine.parent, mine.role, mine.model, mine.status], ['Mine', question.id, 'assistant', 'Small', 'done']);
    await time.settle();
    assert.equal(keeper.chats.get(current.id).head, mine.id);
    chat.show(answer);
    assert.equal(current.head, answer.id);
    await time.settle();
    assert.equal(keeper.chats.get(current.id).head, answer.id);
    chat.editQuestion(question.id, 'Other?', [{ id: 'f', kind: 'text', name: 'n', missing: true }]);
    await time.until(() => server.runs.length); // what reads documents is loaded
    const other = current.messages[current.messages[current.head].parent];
    assert.deepEqual([other.text, other.parent, other.attachments.length, server.runs.length], ['Other?', null, 1, 1]);
    server.runs[0].end('cancelled');
    chat.regenerate('nobody');
    chat.show(answer);
    chat.regenerate(answer.id);
    await time.settle();
    assert.deepEqual([server.runs.length, current.messages[current.head].parent, current.messages[current.head].beside], [2, question.id, undefined]);
    server.runs[1].end();
    chat.show(answer);
    chat.regenerate(answer.id, 'org/large');
    await time.settle();
    const beside = Object.values(current.messages).find((one) => one.beside === answer.id);
    assert.deepEqual([current.head, beside.model, server.runs[2].body.model], [answer.id, 'org/large', 'org/large']);
    server.runs[2].end();
    chat.apart(answer);
    assert.equal('beside' in beside, false);
});

test('a question in a chat with a second model has two answers; the first is gone on with', async () => {
    const { chat, server, current } = await withChat();
    chat.setOption('beside', 'org/two');
    chat.send('Both?', [], { thinking: true });
    await time.settle();
    assert.deepEqual(server.runs.map(({ body }) => [body.model, body.chat_template_kwargs.enable_thinking]), [['small', true], ['org/two', true]]);
    const first = current.messages[current.head];
    assert.equal(Object.values(current.messages).find(({ modelId }) => modelId === 'org/two').beside, first.id);
    chat.stop();
    assert.deepEqual(server.runs.map(({ cancels }) => cancels), [1, 1]);
});

test('going on with an answer that was stopped', async () => {
    const { chat, server, current, answer } = await withChat();
    chat.continueAnswer(answer.id);
    chat.continueAnswer('nobody');
    await time.settle();
    assert.equal(server.runs.length, 0, 'it has ended well');
    answer.status = 'stopped';
    chat.continueAnswer(answer.id);
    await time.settle();
    const [run] = server.runs;
    assert.deepEqual([run.body.continue_final_message, run.body.input.length, answer.status], [true, 2, 'streaming']);
    run.sink({ kind: 'text', delta: ' More.' });
    run.end();
    assert.deepEqual([answer.text, answer.status, current.head], ['Answer. More.', 'done', answer.id]);
});

test('stopped before anything was asked for, it is not asked for', async () => {
    const { chat, server, current } = await withChat();
    chat.send('More', []);
    chat.stop();
    await time.settle();
    assert.deepEqual([server.runs.length, current.messages[current.head].status, chat.busy], [0, 'stopped', false]);
});

test('an answer that another tab is about to ask for is left to it', async () => {
    const { chat, server, keeper, current, answer } = await withChat();
    let letGo;
    const other = new Promise((resolve) => (letGo = resolve));
    let isHeld = true;
    Object.defineProperty(navigator, 'locks', {
        configurable: true,
        value: { request: async (name, how, work = how) => (how.ifAvailable ? work(isHeld ? null : { name }) : isHeld ? other.then(() => work({ name })) : work({ name })) },
    });
    try {
        chat.newChat();
        Object.assign(keeper.chats.get(current.id).messages[answer.id], { status: 'streaming', text: '', created: time.now() });
        await chat.open(current.id);
        await time.settle();
        assert.equal(server.runs.length, 0);
        keeper.refresh = async (conversation) => Object.assign(conversation.messages[answer.id], { status: 'done', text: 'Theirs.' }) && [answer.id];
        letGo();
        await time.settle();
        assert.deepEqual([server.runs.length, texts(chat.current)], [0, ['Question?', 'Theirs.']]);
        isHeld = false;
        chat.newChat();
        keeper.refresh = async () => [];
        await chat.open(current.id);
        await time.settle();
        assert.equal(server.runs.length, 1, 'where nobody is about to, it is asked again');
    } finally {
        delete navigator.locks;
    }
});

test('options of a chat and of new ones', async () => {
    const { chat, settings, keeper, current, told } = await withChat();
    chat.setOption('seed', 5);
    await time.settle();
    assert.deepEqual([current.options, keeper.chats.get(current.id).options, told().includes('options'), settings.get('newChat')], [{ seed: 5 }, { seed: 5 }, true, {}]);
    chat.setNewOption('seed', 6);
    assert.deepEqual([settings.get('newChat'), current.options], [{ seed: 6 }, { seed: 5 }]);
    chat.keepOptions();
    assert.deepEqual(settings.get('newChat'), { seed: 5 });
    chat.setOption('seed', '');
    assert.deepEqual(current.options, {});
    chat.newChat();
    told();
    const saves = keeper.saves.length;
    chat.setNewOption('temperature', 0);
    assert.deepEqual([chat.current.options, told()], [{ seed: 5, temperature: 0 }, ['options']], 'an empty chat is a new one');
    chat.setOption('model', 'm');
    chat.setNewOption('seed', undefined);
    assert.deepEqual([chat.current.options, settings.get('newChat'), keeper.saves.length], [{ seed: 5, temperature: 0, model: 'm' }, { temperature: 0 }, saves], 'but not one that was set by hand');
});

test('which model answers, and how much it reads', async () => {
    const { chat, server } = await open();
    const { session } = server;
    chat.httpModel = { id: 'http', meta: { n_ctx: 5, n_ctx_train: 6 } };
    assert.deepEqual([chat.loadedModel, chat.context], ['small', 100]);
    server.server = { next_model: 'next' };
    assert.equal(chat.loadedModel, 'next');
    server.server = null;
    server.session = null;
    assert.deepEqual([chat.loadedModel, chat.context], ['http', 5]);
    chat.httpModel = { id: 'http', meta: { n_ctx_train: 6 } };
    assert.equal(chat.context, 6);
    chat.httpModel = undefined;
    assert.deepEqual([chat.loadedModel, chat.context], ['', undefined]);
    server.session = session;
    assert.deepEqual([chat.modelOf(), chat.modelOf({ options: { model: 'own' } })], ['small', 'own']);
    server.answer = () => [{ tokens: [1, 2, 3] }, 200];
    assert.equal(await chat.count('abc'), 3);
    assert.deepEqual([server.asked.at(-1).path, server.asked.at(-1).method, server.asked.at(-1).body], ['tokenize', 'POST', { content: 'abc', parse_special: false }]);
    server.answer = () => [{}, 500];
    await assert.rejects(chat.count('abc'), /does not count tokens/);
});

test('where chats are kept is asked again once the server can be asked', async () => {
    const { chat, server, keeper, told } = await open();
    const lists = keeper.lists.length;
    told();
    server.become('open');
    await time.settle();
    assert.deepEqual([keeper.lists.length, told()], [lists, ['connection']]);
    keeper.unsure = true;
    server.become('retrying');
    await time.settle();
    assert.equal(keeper.lists.length, lists);
    for (const state of ['open', 'fallback']) {
        keeper.unsure = true;
        server.become(state);
        await time.settle();
        assert.equal(keeper.unsure, false, state);
    }
    assert.equal(keeper.lists.length, lists + 2);
});

test('a page that goes away notes what it was writing, and the next one takes it up', async () => {
    const { chat, keeper, current, answer } = await withChat();
    const saved = keeper.save;
    keeper.save = () => new Promise(() => {});
    chat.editAnswer(answer.id, 'Changed.');
    chat.setPlace(current.id, { pinned: true });
    await time.settle();
    window.pagehide();
    const notes = [...kept].filter(([key]) => key.startsWith('parley.unsaved.')).map(([, note]) => JSON.parse(note));
    assert.deepEqual(notes.map((note) => Object.keys(note).sort().join()), ['created,id,news,updated', 'id,place']);
    const next = new Chat({ connection: /** @type {any} */ (new Server()), settings: new Settings(), openHistory: async () => keeper });
    keeper.save = saved;
    await next.start();
    const back = keeper.chats.get(current.id);
    assert.deepEqual([texts(back), back.place], [['Question?', 'Answer.', 'Changed.'], { pinned: true }]);
    assert.deepEqual([...kept.keys()].filter((key) => key.startsWith('parley.unsaved.')), [], 'once');
});

test('a damaged note is left alone', async () => {
    const { chat } = await open();
    kept.set('parley.unsaved.1', '{');
    await takeUpUnsaved(chat);
    assert.equal(kept.get('parley.unsaved.1'), '{');
});

test('notes: a deleted chat, a name, and a chat that cannot be read now', async () => {
    const { chat, keeper, server, current } = await withChat();
    const note = (value) => kept.set(`parley.unsaved.${kept.size}`, JSON.stringify(value));
    const left = () => [...kept.keys()].filter((key) => key.startsWith('parley.unsaved.')).length;
    note({ id: current.id, title: 'Noted' });
    note({ id: current.id, removed: current.updated - 1 });
    note({ id: 'nobody', title: 'x' });
    note({ id: current.id, updated: current.updated + 5, news: { isNew: false, whole: false, fields: [['options', '{"seed":9}', '{}']], messages: [] } });
    await takeUpUnsaved(chat);
    assert.deepEqual([current.options, keeper.chats.get(current.id).options], [{ seed: 9 }, { seed: 9 }]);
    assert.deepEqual([current.title, keeper.chats.size, left()], ['Noted', 1, 0], 'it was written to since, so it is not deleted');
    note({ id: current.id, removed: 1e15 });
    await takeUpUnsaved(chat);
    assert.deepEqual([keeper.chats.size, left()], [0, 0]);
    keeper.remote = true;
    server.state = 'retrying';
    note({ id: 'away', title: 'x' });
    await takeUpUnsaved(chat);
    assert.equal(left(), 1, 'it may be there');
    server.state = 'fallback';
    await takeUpUnsaved(chat);
    assert.equal(left(), 0);
    note({ id: 'made', created: 1, updated: 2, news: { isNew: true, whole: { fields: { title: '"Again"', head: '"m1"' }, messages: [['m1', '{"id":"m1","role":"user","parent":null,"text":"Q","status":"done","created":1}']] }, fields: [], messages: [] } });
    await takeUpUnsaved(chat);
    assert.deepEqual([texts(keeper.chats.get('made')), keeper.chats.get('made').title, left()], [['Q'], 'Again', 0], 'one that is gone is made again of what is whole');
    note({ id: 'half', created: 1, updated: 2, news: { isNew: true, whole: false, fields: [], messages: [] } });
    await takeUpUnsaved(chat);
    assert.deepEqual([keeper.chats.has('half'), left()], [false, 0]);
    chat.saving.set({ ...current, id: 'gone' }, 1);
    chat.removed.add([...chat.saving.keys()][0]);
    noteUnsaved(chat);
    assert.equal(left(), 0, 'what was deleted is not noted');
});

test('what is drawn again while it is drawn comes after the shortest time, and the last call is not lost', async () => {
    let runs = 0;
    const draw = throttleFrames(() => {
        runs += 1;
        if (runs === 1) draw();
    }, 50);
    draw();
    draw();
    await time.pass(1);
    assert.equal(runs, 1);
    await time.pass(48);
    assert.equal(runs, 1);
    await time.pass(2);
    assert.equal(runs, 2);
    await time.pass(1000);
    assert.equal(runs, 2);
});

test('what is dear to draw comes as rarely as a sixteenth of the time allows, four times a second at least', async () => {
    for (const [cost, wait] of [[0, 50], [2, 50], [10, 160], [15, 240], [100, 250]]) {
        let runs = 0;
        const draw = throttleFrames(() => {
            runs += 1;
            time.sleep(cost);
        }, 50);
        draw();
        for (let i = 0; i < 2; i += 1) await time.pass(0); // drawn, and how long that took
        draw();
        await time.pass(wait - cost - 1);
        assert.equal(runs, 1, `${cost} ms`);
        await time.pass(1);
        assert.equal(runs, 2, `${cost} ms`);
    }
    const frames = [];
    globalThis.requestAnimationFrame = /** @type {any} */ ((fn) => frames.push(fn));
    globalThis.document.hidden = false;
    let runs = 0;
    throttleFrames(() => (runs += 1), 50)();
    await time.pass(100);
    assert.deepEqual([runs, frames.length], [0, 1], 'a page that is seen draws with its frames');
    frames[0]();
    assert.equal(runs, 1);
    globalThis.document.hidden = true;
});
