/** Chats in the browser's database, without a browser: how they lie there, what two tabs write beside each other, and what
 * stands when a write fails. kept.test.mjs has the same in a real database. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { makeDevice } from './made_up_database.mjs';
import { History, summaryOf } from '../../web/js/state/history.js';
import { addMessage, newConversation, shownPath } from '../../web/js/state/store.js';

const later = () => new Promise((resolve) => setImmediate(resolve));
const texts = (chat) => chat && shownPath(chat).map(({ text }) => text);
const file = (id = 'f') => ({ id, name: 'n.txt', kind: 'text', bytes: 3, blob: new Blob(['abc']) });

/** Two tabs, and a chat of one question with a file, which neither has kept yet. */
async function tabs() {
    const device = makeDevice().here();
    const [one, other] = [await History.open('x'), await History.open('x')];
    const heard = [];
    other.listen((ids) => heard.push(ids));
    const chat = newConversation({ seed: 7 });
    const question = addMessage(chat, { role: 'user', parent: null, text: 'What is it?', attachments: [file()] });
    const rows = (name) => device.kept('x', name).map(([, value]) => value);
    return { device, one, other, chat, question, heard, rows };
}

test('a chat lies there in parts: its head, its messages, its files, and what the list says of it', async () => {
    const { one, other, chat, question, rows } = await tabs();
    chat.place = { folder: 'F' };
    chat.queue = [{ id: 'q1', text: 'next', attachments: [file('g')] }];
    const { summary, changed } = await one.save(chat);
    assert.deepEqual([summary, changed], [{ id: chat.id, title: 'What is it?', updated: chat.updated, text: 'What is it?\nWhat is it?', place: { folder: 'F' } }, []]);
    const bare = ({ blob, ...rest }) => rest;
    assert.deepEqual(rows('chats'), [{ id: chat.id, title: 'What is it?', created: chat.created, updated: chat.updated, head: question.id, options: { seed: 7 }, place: { folder: 'F' }, queue: [{ id: 'q1', text: 'next', attachments: [bare(file('g'))] }], revision: 2, n_messages: 1 }]);
    assert.deepEqual(rows('messages'), [{ chat: chat.id, id: question.id, revision: 2, message: { ...question, attachments: [bare(file())] } }]);
    assert.deepEqual([rows('summaries'), rows('media').map(({ id }) => id), rows('counter')], [[summary], ['f', 'g'], [2]]);
    await one.save(chat);
    assert.deepEqual(rows('counter'), [2], 'what has not changed is not written');
    const answer = addMessage(chat, { role: 'assistant', parent: question.id, text: 'A cross.' });
    await one.save(chat);
    assert.deepEqual([rows('messages').map(({ id, revision }) => [id, revision]), rows('chats')[0].n_messages], [[[question.id, 2], [answer.id, 3]], 2]);
    const there = await other.load(chat.id);
    assert.deepEqual([texts(there), there.queue.map(({ text }) => text), there.options, there.place, there.created, there.updated], [['What is it?', 'A cross.'], ['next'], { seed: 7 }, { folder: 'F' }, chat.created, chat.updated]);
    assert.deepEqual(await Promise.all([there.messages[question.id].attachments[0], there.queue[0].attachments[0]].map(({ blob }) => blob.text())), ['abc', 'abc']);
    assert.deepEqual([one.available, await one.load('nobody'), other.isAhead(there)], [true, null, false]);
});

test('what a list searches is a chat’s title and words, at most 20,000 letters', () => {
    const chat = newConversation();
    assert.deepEqual(summaryOf(chat), { id: chat.id, title: 'New chat', updated: chat.updated, text: '' });
    const first = addMessage(chat, { role: 'user', parent: null, text: 'a'.repeat(15_000) });
    chat.title = 'T';
    chat.place = {};
    addMessage(chat, { role: 'assistant', parent: first.id, text: 'b'.repeat(10_000) });
    const { text, ...rest } = summaryOf(chat);
    assert.deepEqual([text.length, text.slice(0, 4), text.at(-1), 'place' in rest], [20_000, 'T\naa', 'b', false]);
    chat.title = 'x'.repeat(20_000);
    assert.equal(summaryOf(chat).text, chat.title);
});

test('the list: the latest first; of some chats anew, without those that are gone', async () => {
    const { one } = await tabs();
    for (const [id, updated] of [['a', 1], ['b', 3], ['c', 2]]) await one.save({ ...newConversation(), id, title: id, head: null, messages: {}, updated });
    assert.deepEqual((await one.list()).map(({ id }) => id), ['b', 'c', 'a']);
    const before = [{ id: 'gone', updated: 9 }, { id: 'a', title: 'old', updated: 8 }, { id: 'x', updated: 2.5 }];
    assert.deepEqual((await one.list(before, ['a', 'gone'])).map(({ id, title }) => [id, title]), [['x', undefined], ['a', 'a']]);
});

test('a tab takes in what another one wrote, before it writes and when it hears of it', async () => {
    const { one, other, chat, question, heard } = await tabs();
    await one.save(chat);
    await later();
    assert.deepEqual(heard.splice(0), [[chat.id]]);
    const there = await other.load(chat.id);
    const theirs = addMessage(there, { role: 'assistant', parent: question.id, text: 'theirs', attachments: [file('h')] });
    await other.save(there);
    chat.title = 'Mine';
    const mine = addMessage(chat, { role: 'assistant', parent: question.id, text: 'mine' });
    const { changed } = await one.save(chat);
    assert.deepEqual([changed, chat.messages[theirs.id].attachments[0].blob.size, chat.head, chat.title], [[theirs.id], 3, mine.id, 'Mine']);
    assert.deepEqual([await other.refresh(there), await other.refresh(there), there.title, there.head], [[mine.id], [], 'Mine', mine.id]);
    assert.deepEqual(await other.refresh(newConversation()), [], 'one that is not known');
    const blank = { ...newConversation(), id: chat.id, title: '' };
    assert.deepEqual([(await other.refresh(blank, { fields: {} })).length, Object.keys(blank.messages).length, await other.takeQueued(blank, 'none')], [3, 3, false], 'but it is from now on');
    const late = addMessage(there, { role: 'user', parent: mine.id, text: 'more' });
    assert.deepEqual([other.isAhead(there), one.isAhead(chat)], [true, false]);
    await other.save(there);
    assert.deepEqual(await one.refresh(chat), [late.id]);
});

test('a file of another tab that is not there any more is missing', async () => {
    const { device, one, other, chat, question } = await tabs();
    await one.save(chat);
    device.kept('x', 'media').length = 0;
    const [gone] = (await other.load(chat.id)).messages[question.id].attachments;
    assert.deepEqual([gone.missing, 'blob' in gone], [true, false]);
});

test('a file goes with the last message, or waiting question, that names it', async () => {
    const { one, chat, question, rows } = await tabs();
    chat.queue = [{ id: 'q1', text: 'next', attachments: [file('g')] }];
    await one.save(chat);
    const [before] = rows('media');
    delete chat.queue;
    await one.save(chat);
    assert.equal(rows('media')[0], before, 'it is written once');
    assert.deepEqual(rows('media').map(({ id }) => id), ['f']);
    question.attachments = [];
    await one.save(chat);
    assert.deepEqual(rows('media'), []);
});

test('a deleted chat is gone with its messages and files, and nothing of others goes', async () => {
    const { one, other, chat, heard, rows } = await tabs();
    const second = newConversation();
    addMessage(second, { role: 'user', parent: null, text: 'other', attachments: [file('g')] });
    await one.save(chat);
    await one.save(second);
    const there = await other.load(chat.id);
    await later();
    heard.length = 0;
    assert.equal(await one.remove(chat), true);
    assert.deepEqual(['chats', 'messages', 'summaries', 'media'].map((name) => rows(name).length), [1, 1, 1, 1]);
    await later();
    assert.deepEqual([heard, await other.refresh(there), (await other.save(there)).summary, await one.remove(chat)], [[[chat.id]], null, null, true]);
    assert.equal(rows('chats').length, 1, 'who only knew it does not make it again');
    await one.save(chat);
    assert.deepEqual([texts(await other.load(chat.id)), rows('media').length], [['What is it?'], 2], 'who has it whole may');
    await one.remove(chat);
    addMessage(there, { role: 'user', parent: there.head, text: 'news' });
    assert.deepEqual([await other.refresh(there), (await other.save(there)).summary.title, texts(await one.load(chat.id))], [[], 'What is it?', ['What is it?', 'news']]);
});

test('a deletion yields to messages, and to questions that wait, which were written meanwhile', async () => {
    const { one, other, chat, question } = await tabs();
    await one.save(chat);
    const there = await other.load(chat.id);
    there.title = 'only a name';
    await other.save(there);
    there.queue = [{ id: 'q1', text: 'next', attachments: [] }];
    await other.save(there);
    assert.deepEqual([await one.remove(chat), chat.queue.map(({ text }) => text), chat.title], [false, ['next'], 'only a name']);
    there.title = 'again';
    await other.save(there);
    assert.equal(await one.remove(chat), true, 'a name alone holds nothing');
    assert.equal(question.text, 'What is it?', 'it stays whole in memory');
});

test('a chat that was made anew with less is what it is then', async () => {
    const { one, other, chat, question } = await tabs();
    addMessage(chat, { role: 'assistant', parent: question.id, text: 'A cross.' });
    await one.save(chat);
    const there = await other.load(chat.id);
    await one.remove(chat);
    const anew = { ...newConversation(), id: chat.id };
    const only = addMessage(anew, { role: 'user', parent: null, text: 'anew' });
    await one.save(anew);
    assert.deepEqual([await other.refresh(there), texts(there)], [[only.id], ['anew']]);
    there.title = 'named';
    await other.save(there);
    assert.equal(Object.keys((await one.load(chat.id)).messages).length, 3, 'what this tab still has is written again');
});

test('of two tabs one takes a question that waits', async () => {
    const { one, other, chat } = await tabs();
    chat.queue = [{ id: 'q1', text: 'a', attachments: [] }, { id: 'q2', text: 'b', attachments: [] }];
    assert.equal(await one.takeQueued(chat, 'q1'), true, 'nobody else knows of it');
    await one.save(chat);
    const there = await other.load(chat.id);
    assert.deepEqual([await other.takeQueued(there, 'q1'), await one.takeQueued(chat, 'q1'), await one.takeQueued(chat, 'none')], [true, false, false]);
    await one.refresh(chat);
    assert.deepEqual(chat.queue.map(({ id }) => id), ['q2']);
    await one.remove(chat);
    assert.equal(await other.takeQueued(there, 'q2'), false, 'it is deleted');
});

test('a write that fails leaves everything as it was, and is made whole by the next', async () => {
    const { device, one, other, chat, heard, rows } = await tabs();
    device.broken = 'summaries';
    await assert.rejects(one.save(chat), { message: 'no room' });
    assert.deepEqual(['chats', 'messages', 'media', 'counter'].map((name) => rows(name).length), [0, 0, 0, 1]);
    assert.deepEqual([rows('counter'), one.isAhead(chat), heard], [[1], true, []]);
    device.broken = '';
    await one.save(chat);
    assert.deepEqual([texts(await other.load(chat.id)), rows('media').length], [['What is it?'], 1]);
    const mine = addMessage(chat, { role: 'user', parent: chat.head, text: 'more' });
    chat.options = { bad: () => {} }; // what no database takes, found behind the messages
    await assert.rejects(one.save(chat), /could not be cloned/);
    assert.deepEqual([rows('messages').length, rows('counter')], [1, [2]]);
    delete chat.options;
    await one.save(chat);
    assert.deepEqual(rows('messages').map(({ id }) => id).includes(mine.id), true);
    chat.messages = { get bad() { throw new Error('broken here'); } };
    await assert.rejects(one.save(chat), { message: 'broken here' });
    assert.deepEqual([rows('counter'), rows('chats').length], [[3], 1]);
});

test('chats that the first form kept as one record each are taken over, once', async () => {
    const device = makeDevice().here();
    await new Promise((resolve) => {
        const request = device.indexedDB.open('x', 1);
        request.onupgradeneeded = () => {
            const old = request.result.createObjectStore('conversations', { keyPath: 'id' });
            request.result.createObjectStore('summaries', { keyPath: 'id' }).put({ id: 'a', title: 'A', updated: 2, text: 'A' });
            request.result.createObjectStore('media', { keyPath: 'id' }).put({ id: 'f', blob: new Blob(['abc']) });
            const message = (id, parent, more) => ({ id, parent, role: 'user', text: id, status: 'done', created: 1, ...more });
            old.put({ id: 'a', title: 'A', created: 1, updated: 2, head: 'm2', messages: { m1: message('m1', null, { attachments: [{ id: 'f', name: 'n' }] }), m2: message('m2', 'm1') }, queue: [{ text: 'next', attachments: [] }] });
            old.put({ id: 'b', title: 'B', created: 1, updated: 1, head: 'm3', messages: { m3: message('m3', null) }, options: { seed: 1 } });
        };
        request.onsuccess = resolve;
    });
    const history = await History.open('x');
    const [a, b] = [await history.load('a'), await history.load('b')];
    assert.deepEqual([texts(a), await a.messages.m1.attachments[0].blob.text(), texts(b), b.options, (await history.list()).length], [['m1', 'm2'], 'abc', ['m3'], { seed: 1 }, 1]);
    assert.deepEqual([a.queue.length, a.queue[0].text, /^q_/.test(a.queue[0].id), b.queue], [1, 'next', true, []]);
    assert.equal(history.db.stores.conversations, undefined);
    assert.deepEqual([device.kept('x', 'chats').map(([, { revision, n_messages }]) => [revision, n_messages]), device.kept('x', 'messages').map(([, { chat, id, revision }]) => [chat, id, revision])], [[[1, 2], [1, 1]], [['a', 'm1', 1], ['a', 'm2', 1], ['b', 'm3', 1]]]);
    addMessage(a, { role: 'user', parent: 'm2', text: 'more' });
    await history.save(a);
    assert.deepEqual(texts(await (await History.open('x')).load('a')), ['m1', 'm2', 'more']);
});

test('a database of today is opened as it is, closed for a newer page, and done without where there is none', async () => {
    const device = makeDevice().here();
    await new Promise((resolve) => {
        const request = device.indexedDB.open('parley', 2);
        request.onupgradeneeded = () => {
            for (const [name, options] of [['summaries', { keyPath: 'id' }], ['media', { keyPath: 'id' }], ['chats', { keyPath: 'id' }], ['counter']]) request.result.createObjectStore(name, options);
            request.result.createObjectStore('messages', { keyPath: ['chat', 'id'] }).createIndex('newer', ['chat', 'revision']);
            request.result.transaction(['summaries'], 'readwrite').objectStore('summaries').put({ id: 'a', updated: 1 });
        };
        request.onsuccess = resolve;
    });
    const history = await History.open();
    assert.deepEqual((await history.list()).map(({ id }) => id), ['a']);
    history.db.onversionchange();
    assert.equal(history.db.closed, true);
    device.broken = 'y';
    const none = await History.open('y');
    const chat = newConversation();
    addMessage(chat, { role: 'user', parent: null, text: 'Q' });
    none.listen(() => {});
    assert.deepEqual([none.available, (await none.save(chat)).summary.title, (await none.save(chat)).changed, await none.load(chat.id), await none.list([1]), await none.refresh(chat), await none.remove(chat), await none.takeQueued(chat, 'q')], [false, 'Q', [], null, [1], [], true, true]);
});
