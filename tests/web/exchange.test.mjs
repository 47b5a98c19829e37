/** What comes into chats from elsewhere, without a browser: files of chats, the same chat in two places, tools of the server,
 * and numbers as they are written. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { formatDay, formatNumber, formatPercent, listed, plural, t } from '../../web/js/language.js';
import { readDrafts, writeDraft } from '../../web/js/state/drafts.js';
import { NOTHING, applyNews, changesOf, copyOf, hasNews, madeAgain, newsOf, noteKept, takeIn, unknown } from '../../web/js/state/merge.js';
import { Settings } from '../../web/js/state/settings.js';
import { addMessage, newConversation, shownPath } from '../../web/js/state/store.js';
import { callAgain, choiceWith, decide, takeImages, toolFields } from '../../web/js/state/tools.js';
import { fromJson, notThere, toJson } from '../../web/js/state/transfer.js';
import { formatBytes, formatCount, formatDuration, formatRate, newId } from '../../web/js/util.js';

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
    let full = false;
    globalThis.localStorage = /** @type {any} */ ({ getItem: (key) => store.get(key) ?? null, setItem: (key, value) => { if (full) throw new Error('full'); store.set(key, value); } });
    const settings = new Settings();
    let changes = 0;
    settings.addEventListener('change', () => (changes += 1));
    assert.deepEqual([settings.get('theme'), settings.get('enterSends'), settings.get('newChat')], ['system', true, {}]);
    settings.set('theme', 'dark');
    assert.deepEqual([changes, new Settings().get('theme'), new Settings().get('follow')], [1, 'dark', true]);
    writeDraft('a', 'one');
    writeDraft('b', 'x'.repeat(20_001));
    assert.deepEqual([readDrafts().a, readDrafts().b.length], ['one', 20_000]);
    writeDraft('a', '');
    assert.deepEqual(Object.keys(readDrafts()), ['b']);
    for (let i = 0; i < 50; i += 1) writeDraft(`n${i}`, 'x');
    assert.deepEqual([Object.keys(readDrafts()).length, 'b' in readDrafts(), 'n49' in readDrafts()], [50, false, true]);
    store.set('parley.drafts', '{"a":7,"b":"x"}');
    assert.deepEqual(readDrafts(), { b: 'x' });
    store.set('parley.drafts', '{');
    store.set('parley.settings', '{');
    assert.deepEqual([readDrafts(), new Settings().get('theme')], [{}, 'system']);
    full = true;
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
