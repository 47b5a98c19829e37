/** What comes into chats from elsewhere, without a browser: files of chats, the same chat in two places, tools of the server,
 * and numbers as they are written. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { formatDay, formatNumber, formatPercent, listed, plural, t } from '../../web/js/language.js';
import { readDrafts, writeDraft } from '../../web/js/state/drafts.js';
import { NOTHING, applyNews, changesOf, copyOf, hasNews, madeAgain, newsOf, noteKept, takeIn, unknown } from '../../web/js/state/merge.js';
import { findPrompts, makePrompt, nextBlank, readPrompts, writePrompts } from '../../web/js/state/prompts.js';
import { Settings } from '../../web/js/state/settings.js';
import { addMessage, newConversation, shownPath } from '../../web/js/state/store.js';
import { callAgain, choiceWith, decide, takeImages, toolFields } from '../../web/js/state/tools.js';
import { fromJson, notThere, toJson } from '../../web/js/state/transfer.js';
import { frameTimes, videoTokens } from '../../web/js/state/video-plan.js';
import { copyText, download, formatBytes, formatCount, formatDuration, formatRate, isTouchDevice, newId } from '../../web/js/util.js';
import { makeStorage } from './made_up.mjs';

function small() {
    const chat = newConversation({ seed: 7 });
    const q = addMessage(chat, { role: 'user', parent: null, text: 'What is it?' });
    const a = addMessage(chat, { role: 'assistant', parent: q.id, text: 'A cross.' });
    return { chat, q, a };
}
const texts = (chat) => shownPath(chat).map(({ text }) => text);

// ---- files ----

test('chats to a file and back: all of it, with new ids', async () => {
    const { chat, q, a } = small();
    Object.assign(chat, { place: { folder: 'F', pinned: true }, title: 'T' });
    Object.assign(a, { reasoning: 'hm', reasoningMs: 3, model: 'M', created: 7, status: 'cut', tools: [{ id: '1', callId: 'c', name: 'f', arguments: '{}', output: 'o', failed: true, server: 's', approvalId: 'p', allowed: false, ms: 4, at: 2 }] });
    const b = addMessage(chat, { role: 'assistant', parent: q.id, text: '', erased: true });
    Object.assign(chat, { created: 5, updated: 6, head: a.id });
    const [back] = fromJson(await toJson([chat]));
    assert.deepEqual([back.title, back.place, back.created, back.updated, back.options, texts(back)], ['T', { folder: 'F', pinned: true }, 5, 6, { seed: 7 }, ['What is it?', 'A cross.']]);
    const answer = back.messages[back.head];
    assert.deepEqual([answer.reasoning, answer.reasoningMs, answer.model, answer.created, answer.status, answer.tools], ['hm', 3, 'M', 7, 'cut', a.tools]);
    assert.ok(Object.values(back.messages).some(({ erased }) => erased) && Object.keys(back.messages).length === 3);
    assert.ok(back.id !== chat.id && ![q, a, b].some(({ id }) => id in back.messages));
});

test('what a file says wrongly is left out or mended', () => {
    const read = (chat) => fromJson(JSON.stringify({ format: 'parley-chats', chats: [chat] }))[0];
    const one = { id: 'x', role: 'user', text: 'Hi' };
    const chat = read({ title: 7, created: -1, options: { seed: 'x', temperature: 9, model: 'm' }, messages: [one, { id: 'y', role: 'system', text: 'no' }, { id: 'z', role: 'assistant', parent: 'nobody', text: 7, status: 'streaming', reasoningMs: 'x', model: 'n'.repeat(300), tools: [null] }], head: 'y' });
    const [, last] = Object.values(chat.messages);
    assert.deepEqual([chat.title, chat.options, 'place' in chat, Object.keys(chat.messages).length, chat.head === last.id], ['', { model: 'm' }, false, 2, true]);
    assert.ok(Math.abs(chat.created - Date.now()) < 60_000);
    assert.deepEqual([last.parent, last.text, last.status, 'reasoningMs' in last, last.model.length, last.tools], [null, '', 'stopped', false, 100, [{ id: '', callId: '', name: '', arguments: '', at: 0 }]]);
    assert.equal(read({ messages: [one], title: 'x'.repeat(300) }).title.length, 200);
    assert.equal(read({ messages: [] }), undefined, 'a chat without messages is none');
    assert.deepEqual(read({ messages: [one], options: { place: { folder: 'S' } } }).place, { folder: 'S' }, 'as the server exports it');
    const files = read({ messages: [{ ...one, attachments: [{ kind: 'text', name: '', data: 'data:text/plain;base64,YWJj', width: -1 }, { kind: 'odd', name: 'n', data: 'data:text/html,x', mime: 'm' }] }] }).messages;
    const [whole, gone] = Object.values(files)[0].attachments;
    assert.deepEqual([whole.kind, whole.name, whole.mime, whole.bytes, whole.width, whole.blob.size, whole.missing], ['text', 'file', 'text/plain', 3, 0, 3, undefined]);
    assert.deepEqual([gone.kind, gone.name, gone.mime, gone.missing, gone.blob], ['image', 'n', 'm', true, undefined]);
    assert.throws(() => fromJson('{'), /This file is not JSON/);
    assert.throws(() => fromJson('{"a":1}'), /holds no exported chats/);
});

test('times of other pages: seconds, or milliseconds where they are too large for that', () => {
    const of = (at) => fromJson(JSON.stringify({ title: 'T', create_time: at, mapping: { a: { id: 'a', message: { author: { role: 'user' }, content: { parts: ['Q'] } } } }, current_node: 'a' }))[0].created;
    assert.deepEqual([of(1_700_000_000.4), of(1e11), of(100_000_000_001), of(1_700_000_000_000)], [1_700_000_000_400, 1e14, 100_000_000_001, 1_700_000_000_000]);
});

test('files go along in a file of chats, and what is missing is missing there, too', async () => {
    globalThis.FileReader = /** @type {any} */ (class {
        async readAsDataURL(blob) {
            this.result = `data:${blob.type};base64,${Buffer.from(await blob.arrayBuffer()).toString('base64')}`;
            this.onload();
        }
    });
    const { chat, q } = small();
    q.attachments = [{ id: 'f', kind: 'text', name: 'n', mime: 'text/plain', bytes: 3, blob: new Blob(['abc'], { type: 'text/plain' }) }, { id: 'g', name: 'gone', missing: true }];
    const [{ messages: [first, second] }] = JSON.parse(await toJson([chat])).chats;
    assert.deepEqual([first.attachments, 'attachments' in second], [[{ id: 'f', kind: 'text', name: 'n', mime: 'text/plain', bytes: 3, data: 'data:text/plain;base64,YWJj' }, { id: 'g', name: 'gone', missing: true }], false]);
});

test('a file of chats says what it is, and is laid out for reading', async () => {
    const { chat } = small();
    const text = await toJson([chat]);
    assert.deepEqual([JSON.parse(text).format, JSON.parse(text).version, JSON.parse(text).chats.length], ['parley-chats', 1, 1]);
    assert.match(text, /^\{\n "format": "parley-chats",\n "version": 1,\n "chats": \[\n  \{/);
});

test('what is there already does not come in again', () => {
    const { chat, a } = small();
    const copy = (more) => ({ ...structuredClone(chat), ...more });
    const longer = copy();
    addMessage(longer, { role: 'user', parent: a.id, text: 'Sure?' });
    assert.deepEqual(notThere([copy()], [chat]), []);
    assert.deepEqual(notThere([copy()], [longer]), [], 'it was gone on with since');
    assert.deepEqual(notThere([longer], [chat]), [longer], 'the file has more');
    assert.deepEqual(notThere([copy({ id: 'a' }), copy({ id: 'b' })], []).map(({ id }) => id), ['a'], 'twice in one file');
    const other = copy();
    other.messages[a.id].text = 'A star.';
    assert.deepEqual(notThere([other], [chat]), [other]);
    for (const [name, value] of [['role', 'user'], ['reasoning', 'hm'], ['created', 5]]) {
        const changed = copy();
        changed.messages[a.id][name] = value;
        assert.deepEqual(notThere([changed], [chat]), [changed], name);
    }
});

// ---- one chat in two places ----

/** What is kept of a chat, as a store gives it. */
const kept = (chat, revision, ids = Object.keys(chat.messages)) => structuredClone({ ...chat, revision, n_messages: Object.keys(chat.messages).length, messages: ids.map((id) => chat.messages[id]) });

test('changes are what is new or other than it is kept, parents first', () => {
    const { chat, q, a } = small();
    const known = unknown();
    const first = changesOf(chat, known);
    assert.deepEqual([first.fields.map(([name]) => name), first.messages.map(([id]) => id)], [['title', 'head', 'options'], [q.id, a.id]]);
    assert.ok(hasNews(chat, known));
    noteKept(known, first, 3);
    assert.deepEqual([changesOf(chat, known), hasNews(chat, known), known.revision], [null, false, 3]);
    const before = copyOf(known);
    chat.place = { pinned: true };
    a.text = 'A star.';
    const second = changesOf(chat, known);
    assert.deepEqual([second.fields, second.messages.map(([id]) => id), hasNews(chat, known)], [[['place', '{"pinned":true}']], [a.id], false]);
    noteKept(known, second, 4);
    assert.ok(changesOf(chat, before) && !changesOf(chat, known), 'a copy is its own');
    chat.queue = [{ id: 'w', text: 'x' }];
    assert.equal(hasNews(chat, known), true);
    // A child that was added before its parent is written behind it.
    const turned = { ...chat, messages: { [a.id]: a, [q.id]: q } };
    assert.deepEqual(changesOf(turned, unknown()).messages.map(([id]) => id), [q.id, a.id]);
    // An answer that ended elsewhere is not made unfinished again.
    known.ended.set(a.id, 'ask');
    Object.assign(a, { status: 'streaming', askId: 'ask' });
    assert.deepEqual(changesOf(chat, known), null);
    a.askId = 'another';
    assert.equal(changesOf(chat, known).messages.length, 1);
});

test('what others wrote is taken in; what was changed here too stands', () => {
    const { chat, q, a } = small();
    const known = unknown({ ...NOTHING, queue: '[]' });
    noteKept(known, changesOf(chat, known), 1);
    const theirs = structuredClone(chat);
    const c = addMessage(theirs, { role: 'user', parent: a.id, text: 'Sure?' });
    Object.assign(theirs, { title: 'Theirs', updated: chat.updated + 9, queue: [{ id: 'w', text: 'waits' }] });
    theirs.messages[a.id].text = 'A star.';
    chat.title = 'Mine';
    assert.deepEqual(takeIn(chat, known, kept(theirs, 2, [a.id, c.id])), [a.id, c.id]);
    assert.deepEqual([chat.title, chat.messages[a.id].text, chat.head, chat.updated, chat.queue.length, known.revision], ['Mine', 'A star.', c.id, theirs.updated, 1, 2]);
    assert.equal(chat.messages[a.id], a, 'the object stays the same');
    assert.deepEqual(changesOf(chat, known).fields, [['title', '"Mine"']]);
    a.text = 'Mine, too';
    theirs.messages[a.id].text = 'Other';
    assert.deepEqual(takeIn(chat, known, kept(theirs, 3, [a.id])), []);
    assert.deepEqual([a.text, changesOf(chat, known).messages.map(([id]) => id)], ['Mine, too', [a.id]]);
    // What waits: nobody brings back what another took.
    chat.queue.push({ id: 'v', text: 'mine' });
    takeIn(chat, known, { ...kept(theirs, 4, []), queue: [] });
    assert.deepEqual(chat.queue.map(({ id }) => id), ['v']);
    // An answer that comes here is not overwritten, and stopped where another stopped it.
    let stopped = 0;
    Object.assign(q, { status: 'streaming', askId: 'k' });
    const runs = new Map([[q.id, { cancel: () => (stopped += 1) }]]);
    takeIn(chat, known, { ...kept(theirs, 5, []), messages: [{ ...q, status: 'stopped', text: 'cut' }] }, runs);
    assert.deepEqual([stopped, q.text], [1, 'What is it?']);
    takeIn(chat, known, { ...kept(theirs, 6, []), messages: [{ ...q, status: 'stopped', askId: 'old' }] }, runs);
    assert.equal(stopped, 1);
});

test('files: their bytes stay here, each with its own; what is missing is said only where nobody has it', () => {
    const { chat, q } = small();
    const file = (id, more = {}) => ({ id, name: id, kind: 'text', mime: '', bytes: 1, ...more });
    q.attachments = [file('f', { blob: new Blob(['f']) }), file('g', { blob: new Blob(['g']) }), file('m', { missing: true }), file('s', { missing: true, sha256: 'x' })];
    const known = unknown();
    const changes = changesOf(chat, known);
    const written = JSON.parse(changes.messages[0][1]).attachments;
    assert.deepEqual(written, [file('f'), file('g'), file('m', { missing: true }), file('s', { sha256: 'x' })]);
    noteKept(known, changes, 1);
    const [f, g] = q.attachments;
    const theirs = { ...kept({ ...chat, messages: {} }, 2), n_messages: 2, messages: [{ ...q, text: 'Other', attachments: [file('g', { sha256: 'g1' }), file('f', { sha256: 'f1' }), file('new')] }] };
    assert.deepEqual(takeIn(chat, known, theirs), [q.id]);
    assert.deepEqual(q.attachments.map(({ id, sha256 }) => [id, sha256]), [['g', 'g1'], ['f', 'f1'], ['new', undefined]]);
    assert.ok(q.attachments[0] === g && q.attachments[1] === f && g.blob.size === 1, 'the objects stay, with their bytes');
    const news = { fields: [], messages: [[q.id, JSON.stringify({ ...q, text: 'Mine', attachments: [file('f'), file('z')] }), JSON.stringify({ ...q, attachments: [file('g', { sha256: 'g1' }), file('f', { sha256: 'f1' }), file('new')] })]] };
    applyNews(chat, news);
    assert.deepEqual(chat.messages[q.id].attachments.map(({ id, blob, missing }) => [id, blob === f.blob, missing]), [['f', true, undefined], ['z', false, true]]);
});

test('an answer that ended elsewhere is known to have ended, under the name it was asked for by', () => {
    const { chat, a } = small();
    const known = unknown();
    Object.assign(a, { status: 'streaming', askId: 'k' });
    noteKept(known, changesOf(chat, known), 1);
    const runs = new Map([[a.id, { cancel() {} }]]);
    takeIn(chat, known, { ...kept(chat, 2, []), messages: [{ ...structuredClone(a), status: 'done', text: 'Whole' }] }, runs);
    assert.deepEqual([[...known.ended], JSON.parse(known.messages.get(a.id)).text, a.text], [[[a.id, 'k']], 'Whole', 'A cross.']);
    assert.equal(changesOf(chat, known), null, 'it is not made unfinished again');
    assert.equal(known.messages.size, 2);
});

test('what a page had no time to write is done afterwards, where nobody changed it since', () => {
    const { chat, q, a } = small();
    const known = unknown({ ...NOTHING, queue: '[]' });
    noteKept(known, changesOf(chat, known), 1);
    const there = structuredClone(chat);
    chat.title = 'Named';
    a.text = 'A star.';
    const b = addMessage(chat, { role: 'user', parent: a.id, text: 'Sure?' });
    const news = JSON.parse(JSON.stringify(newsOf(chat, known)));
    assert.deepEqual([news.isNew, news.fields.map(([name]) => name), news.messages.map(([id]) => id), news.whole.messages.length], [false, ['title', 'head'], [a.id, b.id], 2]);
    const untouched = structuredClone(there);
    applyNews(untouched, news);
    assert.deepEqual([untouched.title, texts(untouched)], ['Named', ['What is it?', 'A star.', 'Sure?']]);
    there.title = 'Theirs';
    there.messages[a.id].text = 'theirs';
    applyNews(there, news);
    assert.deepEqual([there.title, texts(there)], ['Theirs', ['What is it?', 'theirs', 'Sure?']]);
    const again = madeAgain({ ...newConversation(), messages: {} }, news.whole);
    assert.deepEqual([again.title, Object.keys(again.messages)], ['What is it?', [q.id, a.id]]);
    const withFile = { fields: {}, messages: [['x', JSON.stringify({ id: 'x', attachments: [{ id: 'f' }] })], ['y', '{"id":"y"}']] };
    assert.deepEqual(madeAgain({ messages: {} }, withFile).messages, { x: { id: 'x', attachments: [{ id: 'f', missing: true }] }, y: { id: 'y' } }, 'its files are not there');
    assert.equal(newsOf(chat, unknown()).isNew, true);
});

// ---- tools ----

test('the tools of a chat in a request: what is not there is left out, and the answer says so', async () => {
    const server = (server_label, state, names = [], error = null) => ({ server_label, state, error, tools: names.map((name) => ({ name })) });
    const data = [server('up', 'ready', ['a', 'b']), server('soon', 'connecting'), server('gone', 'down', [], 'it ended')];
    const chat = (ok) => ({ connection: { fetch: async () => ({ ok, json: async () => ({ data }) }) } });
    const answer = {};
    const choice = { up: { only: ['a', 'c'], always: ['b', 'c'] }, soon: { only: ['x'] }, gone: {}, none: {} };
    assert.deepEqual(await toolFields(chat(true), choice, answer), { tools: [
        { type: 'mcp', server_label: 'up', allowed_tools: ['a'], require_approval: { never: { tool_names: ['b'] } } },
        { type: 'mcp', server_label: 'soon', allowed_tools: ['x'] }] });
    assert.deepEqual(answer.without, [{ server: 'gone', why: 'it ended' }, { server: 'none', why: 'this server has none of this name' }]);
    const blind = {};
    assert.equal((await toolFields(chat(false), choice, blind)).tools.length, 4, 'the server that answers knows better');
    assert.equal(blind.without, undefined);
    assert.deepEqual(await toolFields(chat(true), { none: {} }, {}), {});
    assert.deepEqual(choiceWith(undefined, 'a', {}), { a: {} });
    assert.deepEqual(choiceWith({ a: { only: ['x'] }, b: {} }, 'a', { always: ['y'] }), { a: { only: ['x'], always: ['y'] }, b: {} });
    assert.deepEqual(choiceWith({ a: { only: ['x'] } }, 'a', { only: undefined }), { a: {} });
    assert.deepEqual([choiceWith({ a: {}, b: {} }, 'a', undefined), choiceWith({ a: {} }, 'a', undefined)], [{ b: {} }, undefined]);
});

test("a person's word about calls, and a call once more", () => {
    const { chat: current, a } = small();
    const said = [];
    const chat = { current, save: () => said.push('save'), tell: () => said.push('tell'), setOption: (name, value) => said.push([name, value]), answers: { goOn: (_, message) => said.push(['goOn', message]) } };
    const call = (id, name, more = {}) => ({ id, server: 's', name, arguments: '{}', approvalId: `p${id}`, at: 2, ...more });
    a.tools = [call('1', 'f'), call('2', 'f'), call('3', 'g'), call('4', 'f', { output: 'done' })];
    decide(chat, a, a.tools[0], false);
    assert.deepEqual([a.tools.map(({ allowed }) => allowed), said], [[false, undefined, undefined, undefined], ['save', 'tell']]);
    a.tools[0].allowed = undefined;
    decide(chat, a, a.tools[0], true, true);
    assert.deepEqual(a.tools.map(({ allowed }) => allowed), [true, true, undefined, undefined]);
    assert.deepEqual(said[2], ['tools', { s: { always: ['f'] } }]);
    decide(chat, a, a.tools[2], true);
    assert.deepEqual(said.at(-1), ['goOn', a]);
    a.attachments = [{ id: 'x', tool: '1' }, { id: 'y', tool: '3' }];
    callAgain(chat, a, a.tools[2]);
    const again = current.messages[current.head];
    assert.deepEqual([again.parent, again.text, again.tools.map(({ name }) => name), again.attachments.length, said.at(-1)[1]], [a.parent, 'A ', ['f', 'f', 'g'], 1, again]);
    const last = again.tools[2];
    assert.ok(last.allowed && last.approvalId === last.id && last.id !== '3' && last.output === undefined);
    takeImages(a, '3', ['data:image/png;base64,YWJj', 'data:;base64,']);
    assert.deepEqual(a.attachments.map(({ tool, bytes, mime, name }) => [tool, bytes, mime, name]), [['1', undefined, undefined, undefined], ['3', 3, 'image/png', 'Image 1 of the result'], ['3', 0, '', 'Image 2 of the result']]);
});

// ---- this browser ----

test('settings and drafts are kept, and work where nothing can be kept', () => {
    const store = new Map();
    globalThis.localStorage = makeStorage(store);
    const { now } = Date;
    let ms = 0;
    Date.now = () => (ms += 1);
    const settings = new Settings();
    let changes = 0;
    settings.addEventListener('change', () => (changes += 1));
    assert.deepEqual(settings.values, {
        theme: 'system', language: '', textSize: 'normal', thinking: false, enterSends: true, follow: true, imageSize: 4_194_304, videoRate: 0, staysHere: false, newChat: {}, apiKey: '', sidebar: true,
        introduction: false, notify: false, declinedMove: false,
    });
    settings.set('theme', 'dark');
    assert.deepEqual([changes, new Settings().get('theme'), new Settings().get('follow')], [1, 'dark', true]);
    writeDraft('a', 'one');
    writeDraft('b', 'x'.repeat(20_001));
    assert.deepEqual([readDrafts().a, readDrafts().b.length], ['one', 20_000]);
    writeDraft('a', '');
    assert.deepEqual(Object.keys(readDrafts()), ['b']);
    for (let i = 0; i < 50; i += 1) writeDraft(`n${i}`, 'x');
    assert.deepEqual([Object.keys(readDrafts()).length, 'b' in readDrafts(), 'n49' in readDrafts()], [50, false, true]);
    store.set('parley.draft.broken', '{');
    assert.deepEqual([Object.keys(readDrafts()).length, 'broken' in readDrafts()], [50, false]);
    writeDraft('last', 'x');
    assert.deepEqual([Object.keys(readDrafts()).length, store.has('parley.draft.broken')], [50, false], 'what cannot be read goes first');
    store.clear();
    store.set('parley.drafts', '{"a":7,"b":"x"}');
    assert.deepEqual([readDrafts(), readDrafts(), store.has('parley.drafts')], [{ b: 'x' }, { b: 'x' }, false], 'those of an older version');
    const seen = new Map(store);
    writeDraft('a', 'of one tab');
    globalThis.localStorage = makeStorage(seen); // as another tab sees them for a moment
    writeDraft('b', 'of another');
    for (const [key, value] of seen) if (value !== store.get(key)) assert.equal(key, 'parley.draft.b');
    globalThis.localStorage = makeStorage(store);
    for (const odd of ['{', '7', '{}', 'null']) store.set('parley.draft.c', odd) && assert.deepEqual(Object.keys(readDrafts()), ['a', 'b'], odd);
    store.clear();
    store.set('parley.drafts', '{');
    store.set('parley.settings', '{');
    assert.deepEqual([readDrafts(), new Settings().get('theme')], [{}, 'system']);
    globalThis.localStorage = new Proxy({}, { get() { throw new Error('forbidden'); }, ownKeys() { throw new Error('forbidden'); } });
    assert.deepEqual([readDrafts(), new Settings().get('theme')], [{}, 'system'], 'where there is no storage');
    globalThis.localStorage = makeStorage(store);
    globalThis.localStorage.setItem = () => {
        throw new Error('full');
    };
    Date.now = now;
    settings.set('theme', 'light');
    writeDraft('c', 'x');
    assert.equal(settings.get('theme'), 'light');
    delete globalThis.localStorage;
});

test('numbers as the page writes them', () => {
    assert.deepEqual([0, 1023, 1024, 10_239, 10_240, 1 << 20, 5 * 2 ** 29, 2 ** 30].map(formatBytes), ['0 B', '1023 B', '1.0 KiB', '10.0 KiB', '10 KiB', '1.0 MiB', '2.5 GiB', '1.0 GiB']);
    assert.deepEqual([0, 4, 99, 100, 1234, 9_999, 10_000, 59_499, 60_000, 95_000].map(formatDuration), ['1 ms', '4 ms', '99 ms', '0.1 s', '1.2 s', '10 s', '10 s', '59 s', '1 min 0 s', '1 min 35 s']);
    assert.deepEqual([999, 32_768, 999_999, 1e6, 25_318_088, 1e9, 12e9].map(formatCount), ['999', '32\u202f768', '999\u202f999', '1.0 M', '25 M', '1.0 B', '12 B']);
    assert.deepEqual([0.456, 9.99, 10, 99.94, 100, 1234.5].map(formatRate), ['0.46', '9.99', '10.0', '99.9', '100', '1\u202f235']);
    assert.deepEqual([plural(1, '{0} image', '{0} images'), plural(0, '{0} image', '{0} images'), plural(1234, '{0} of {1}', '{0} of {1}', 'x')], ['1 image', '0 images', '1\u202f234 of x']);
    assert.deepEqual([t`no values`, t`${1234} of ${'a'} and ${0}`, formatPercent(0.456), listed(['a', 'b', 'c']), formatDay(Date.UTC(2026, 11, 1, 12)), formatNumber(1234.5)], ['no values', '1\u202f234 of a and 0', '46 %', 'a, b and c', '1 December 2026', '1\u202f234.5']);
    assert.match(newId('m_'), /^m_[\w-]{22}$/);
    assert.notEqual(newId(), newId());
});

test('another language: its own words and forms, and English where it has none or cannot be had', async () => {
    const { document, fetch } = globalThis;
    const asked = [];
    const load = async (lang, reply) => {
        globalThis.document = /** @type {any} */ ({ documentElement: { lang } });
        globalThis.fetch = /** @type {any} */ (async (url) => (asked.push(String(url).split('/').slice(-2).join('/')), reply()));
        return import(`../../web/js/language.js?${asked.length}`).finally(() => Object.assign(globalThis, { document, fetch }));
    };
    const words = { 'Delete {0}?': '{0} löschen?', '{0} chats': { one: '{0} Chat', other: '{0} Chats' }, '{0} files': { other: '{0} Dateien' }, Plain: 'Schlicht' };
    const de = await load('de', () => new Response(JSON.stringify(words)));
    assert.deepEqual([de.t`Delete ${'x'}?`, de.t`Delete ${1234.5}?`, de.t`Keep ${'x'}`, de.translated('Plain'), de.translated('Fancy')], ['x löschen?', '1.234,5 löschen?', 'Keep x', 'Schlicht', 'Fancy']);
    assert.deepEqual([1, 2].map((n) => de.plural(n, '{0} chat', '{0} chats')), ['1 Chat', '2 Chats']);
    assert.deepEqual([de.plural(1, '{0} file', '{0} files'), de.plural(1, '{0} dog', '{0} dogs'), de.plural(2, '{0} dog', '{0} dogs')], ['1 Dateien', '1 dog', '2 dogs']);
    assert.deepEqual([de.locale, de.formatPercent(0.5), de.formatDay(0), de.listed(['a', 'b', 'c'])], ['de', '50\u00a0%', '1. Januar 1970', 'a, b und c']);
    const ar = await load('ar', () => new Response('{'));
    assert.deepEqual([ar.locale, ar.t`Delete ${12}?`], ['ar-u-nu-latn', 'Delete 12?']);
    const zh = await load('zh', () => { throw new TypeError('network'); });
    assert.deepEqual([zh.locale, zh.plural(3, '{0} chat', '{0} chats'), asked], ['zh-Hans', '3 chats', ['languages/de.json', 'languages/ar.json', 'languages/zh.json']]);
    const en = await load('', () => assert.fail('English needs no file'));
    assert.deepEqual([en.t`Delete ${1234}?`, en.plural(1, '{0} chat', '{0} chats'), en.formatPercent(0.456)], ['Delete 1\u202f234?', '1 chat', '46 %']);
});

test('copying: by the clipboard where it is allowed, else the old way, inside a dialog that is open', async () => {
    const { document, window, navigator } = globalThis;
    const calls = [];
    const node = (name) => ({ name, append: (one) => calls.push(`${name} gets ${one.name} ${one.value}`), focus: () => calls.push(`${name} has the focus`) });
    let dialog = null;
    let command = () => true;
    const set = (clipboard, isSecureContext) => {
        Object.defineProperty(globalThis, 'navigator', { configurable: true, value: { clipboard } });
        globalThis.window = /** @type {any} */ ({ isSecureContext });
    };
    globalThis.document = /** @type {any} */ ({
        createElement: (name) => Object.assign(node(name), { setAttribute: (...given) => calls.push(given.join('=')), select: () => calls.push('selected'), remove: () => calls.push('removed') }),
        querySelector: (what) => (what === 'dialog[open]' ? dialog : assert.fail(what)), body: node('body'), activeElement: node('field'), execCommand: (what) => (calls.push(what), command()),
    });
    const copied = async () => [await copyText('abc'), calls.splice(0).filter((one) => !one.startsWith('aria')).join(', ')];
    const old = (where) => `${where} gets textarea abc, selected, copy, removed, field has the focus`;
    try {
        set({ writeText: async (text) => calls.push(`wrote ${text}`) }, true);
        assert.deepEqual(await copied(), [true, 'wrote abc']);
        set({ writeText: async () => assert.fail('it is not secure') }, false);
        assert.deepEqual(await copied(), [true, old('body')]);
        set({ writeText: async () => { throw new Error('refused'); } }, true);
        dialog = node('dialog');
        assert.deepEqual(await copied(), [true, old('dialog')]);
        set(undefined, true);
        command = () => false;
        assert.deepEqual(await copied(), [false, old('dialog')]);
        command = () => { throw new Error('no'); };
        assert.deepEqual(await copied(), [false, old('dialog')]);
    } finally {
        Object.assign(globalThis, { document, window });
        Object.defineProperty(globalThis, 'navigator', { configurable: true, value: navigator });
    }
});

test('a file is offered under its name, and its address lives for a minute', () => {
    const { document, setTimeout } = globalThis;
    const { createObjectURL, revokeObjectURL } = URL;
    const calls = [];
    const blob = new Blob(['x']);
    globalThis.document = /** @type {any} */ ({ createElement: (name) => ({ name, click() { calls.push([this.name, this.href, this.download]); } }) });
    globalThis.setTimeout = /** @type {any} */ ((fn, ms) => (calls.push(ms), fn()));
    Object.assign(URL, { createObjectURL: (given) => (given === blob ? 'blob:1' : 'wrong'), revokeObjectURL: (url) => calls.push(`revoked ${url}`) });
    try {
        download('a.txt', blob);
        assert.deepEqual(calls, [['a', 'blob:1', 'a.txt'], 60_000, 'revoked blob:1']);
    } finally {
        Object.assign(globalThis, { document, setTimeout });
        Object.assign(URL, { createObjectURL, revokeObjectURL });
    }
});

// ---- prompts and videos ----

test('prompts: kept as they are read, found by their words, with places to fill in', () => {
    const kept = new Map();
    globalThis.localStorage = /** @type {any} */ ({ getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) });
    assert.deepEqual(readPrompts().map(({ system }) => !!system), [false, false, false, false, true, true, true]);
    const made = makePrompt({ name: ` ${'n'.repeat(90)}`, text: ` ${'t'.repeat(20_001)} `, system: /** @type {any} */ (1) });
    assert.match(made.id, /^p_.{22}$/);
    assert.deepEqual([made.name.length, made.text.length, 'system' in made], [80, 20_000, false]);
    assert.equal(writePrompts([{ id: 'a', name: ' Mail to {{who}}', text: 'Dear', system: true }, { id: '', name: 'My mail', text: 'x' }, { id: 'c', name: '', text: 'x' }, { id: 'd', name: 'x', text: '' }]), '');
    const back = readPrompts();
    assert.deepEqual(back[0], { id: 'a', name: 'Mail to {{who}}', text: 'Dear', system: true });
    assert.deepEqual([back.length, back[1].name, /^p_/.test(back[1].id)], [2, 'My mail', true]);
    assert.deepEqual(findPrompts(back, ' mail').map(({ name }) => name), ['Mail to {{who}}', 'My mail']);
    assert.deepEqual(findPrompts([...back].reverse(), 'MAIL').map(({ name }) => name), ['Mail to {{who}}', 'My mail'], 'those that begin with it first');
    assert.deepEqual(findPrompts(back, 'mail my').map(({ name }) => name), ['My mail'], 'all words');
    assert.equal(findPrompts(back, '').length, 2);
    const many = (n) => Array.from({ length: n }, (_, i) => ({ id: `${i}`, name: 'n', text: 't' }));
    assert.equal(writePrompts(many(501)), 'There may be 500 prompts.');
    assert.equal(readPrompts().length, 2);
    assert.equal(writePrompts(many(500)), '');
    for (const odd of ['{', '{}', '7']) {
        kept.set('parley.prompts', odd);
        assert.equal(readPrompts().length, 7, odd);
    }
    globalThis.localStorage.setItem = () => {
        throw new Error('full');
    };
    assert.equal(writePrompts(back), 'This browser has no room for it.');
    Reflect.deleteProperty(globalThis, 'localStorage');
    assert.equal(readPrompts().length, 7);
    assert.deepEqual([nextBlank('a {{b}} c {{d e}}'), nextBlank('a {{b}} c {{d e}}', 3), nextBlank('{{}} {{a\nb}} {a}'), nextBlank(`{{${'x'.repeat(61)}}}`)], [[2, 7], [10, 17], null, null]);
    assert.deepEqual(nextBlank(`{{${'x'.repeat(60)}}}`), [0, 64]);
});

test('which frames of a video are read', () => {
    const model = { fps: 2, min_frames: 4, max_frames: 768 };
    const rounded = (...given) => frameTimes(...given).map((s) => Number(s.toFixed(3)));
    assert.deepEqual(rounded(3, {}, model), [0, 0.592, 1.184, 1.776, 2.368, 2.96], 'evenly from the first to the last');
    assert.deepEqual(rounded(1, {}, model), [0, 0.32, 0.64, 0.96], 'at least so many');
    assert.equal(frameTimes(1000, {}, model).length, 768);
    assert.equal(frameTimes(1000, { max_frames: 900 }, model).length, 768);
    assert.equal(frameTimes(1000, { max_frames: 10 }, model).length, 10);
    assert.deepEqual(rounded(10, { start_ms: 2000, end_ms: 4000, fps: 2.5 }, model), [2, 2.49, 2.98, 3.47, 3.96]);
    assert.deepEqual(rounded(10, { start_ms: 9500, end_ms: 60_000, fps: 1 }, { ...model, min_frames: 1 }), [9.5]);
    assert.deepEqual(rounded(10, { start_ms: 9000, fps: 1 }, { ...model, min_frames: 1 }), [9]);
    assert.deepEqual(rounded(8, {}, { ...model, num_frames: 4 }), [0, 2, 4, 6], 'a model that takes a number of frames takes them from the beginning of each part');
    assert.deepEqual(rounded(8, { fps: 1 }, { ...model, num_frames: 4 }), [0, 1, 2, 3, 4, 5, 6, 7]);
});

test('about how many tokens the frames of a video take', () => {
    const model = { patch_size: 16, merge_size: 2, temporal_patch_size: 2, min_pixels: 4096, max_pixels: 25_165_824 };
    assert.equal(videoTokens(320, 240, 4, model), 2 * (10 * 8 + 8), 'half of a side goes to the even one: 240 is 7.5 times 32');
    assert.equal(videoTokens(320, 176, 4, model), 2 * (10 * 6 + 8), '5.5 is 6');
    assert.equal(videoTokens(320, 144, 4, model), 2 * (10 * 4 + 8), '4.5 is 4');
    assert.equal(videoTokens(320, 240, 5, model), 3 * (80 + 8));
    assert.equal(videoTokens(320, 240, 1, model), 80 + 8, 'one frame is a pair');
    assert.equal(videoTokens(10, 10, 2, model), 2 * 2 + 8, 'a small one is made larger');
    assert.equal(videoTokens(1920, 1080, 64, model), 32 * (26 * 14 + 8), 'a large one smaller');
    for (const nothing of [[0, 240, 4], [320, 0, 4], [320, 240, 0]]) assert.equal(videoTokens(...nothing, model), null);
    assert.equal(videoTokens(320, 240, 4, {}), null);
    const filling = { ...model, max_pixels: 32 * 32 * 70, fills_budget: true };
    assert.equal(videoTokens(320, 240, 4, filling), 4 * (9 * 7 + 8));
    assert.equal(videoTokens(10_000, 10, 4, filling), 4 * (70 + 8), 'never more than the budget');
    assert.equal(videoTokens(2000, 40, 1, filling), 59 + 8, 'a narrow one is one token high');
});

test('a device for fingers is one that has no finer pointer', () => {
    for (const [coarse, fine, touches] of [[true, false, true], [true, true, false], [false, true, false], [false, false, false]]) {
        globalThis.matchMedia = /** @type {any} */ ((query) => ({ matches: query === '(pointer: coarse)' ? coarse : query === '(any-pointer: fine)' ? fine : null }));
        assert.equal(isTouchDevice(), touches, `${coarse} ${fine}`);
    }
});
