/** Chats in the browser's database, its module alone: two holders of one chat, as two tabs are. */
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { launch, openChat } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

let browser;
let server;
before(async () => {
    browser = await launch();
    server = await startMock();
});
after(() => Promise.all([browser.close(), server.close()]));

/** Runs `work` in a page, which gets two histories of a database of its own and a chat of one question with a file. */
async function inPage(work) {
    const { page, done } = await openChat(browser, server.url);
    const seen = await page.evaluate(`(async () => {
        const { History } = await import('./js/state/history.js');
        const store = await import('./js/state/store.js');
        const name = 'test-' + Math.random();
        const [one, other] = [await History.open(name), await History.open(name)];
        const chat = store.newConversation({ seed: 7 });
        const file = { id: 'f', name: 'n.txt', kind: 'text', bytes: 3, blob: new Blob(['abc']) };
        const question = store.addMessage(chat, { role: 'user', parent: null, text: 'What is it?', attachments: [file] });
        const texts = (c) => c && store.shownPath(c).map(({ text }) => text);
        const done = await (${work})({ one, other, chat, question, store, texts, History });
        one.db.close(), other.db.close();
        indexedDB.deleteDatabase(name);
        return done;
    })()`);
    await done();
    return seen;
}

test('a chat is kept whole, and what has not changed is not written again', async () => {
    const seen = await inPage(async ({ one, other, chat, question, store, texts }) => {
        const first = await one.save(chat);
        const again = await one.save(chat);
        const there = await other.load(chat.id);
        const fileText = await there.messages[question.id].attachments[0].blob.text();
        const answer = store.addMessage(chat, { role: 'assistant', parent: question.id, text: 'A cross.' });
        chat.place = { folder: 'F' };
        await one.save(chat);
        const changed = await other.refresh(there);
        return { first, again, fileText, changed, answer: answer.id, texts: texts(there), options: there.options, place: there.place, title: there.title,
            list: await one.list(), one: await one.list([{ id: 'x', updated: 1 }, { id: chat.id, updated: 0 }], [chat.id]), unknown: await one.load('no'), id: chat.id, ahead: [one.isAhead(chat), one.isAhead(store.branchOf(chat, answer.id))], available: one.available };
    });
    assert.deepEqual([seen.first.summary.title, seen.first.summary.text, seen.first.changed, seen.again.changed], ['What is it?', 'What is it?\nWhat is it?', [], []]);
    assert.deepEqual([seen.fileText, seen.changed, seen.texts, seen.options, seen.place, seen.title], ['abc', [seen.answer], ['What is it?', 'A cross.'], { seed: 7 }, { folder: 'F' }, 'What is it?']);
    assert.deepEqual(seen.list.map(({ id, place }) => [id, place]), [[seen.id, { folder: 'F' }]]);
    assert.deepEqual(seen.one.map(({ id }) => id), [seen.id, 'x']);
    assert.deepEqual([seen.unknown, seen.ahead, seen.available], [null, [false, true], true]);
});

test('a deleted chat is gone, and saving what is still in memory brings all of it back', async () => {
    const seen = await inPage(async ({ one, other, chat, question, store, texts }) => {
        store.addMessage(chat, { role: 'assistant', parent: question.id, text: 'A cross.' });
        await one.save(chat);
        const there = await other.load(chat.id);
        const removed = await one.remove(chat);
        const gone = [await one.load(chat.id), (await one.list()).length, await other.refresh(there), (await other.save(there)).summary];
        const back = await one.save(chat);
        const whole = await other.load(chat.id);
        return { removed, gone, back: back.summary?.title, texts: texts(whole), file: await whole.messages[question.id].attachments[0].blob.text(), twice: [await one.remove(chat), await one.remove(chat)] };
    });
    assert.deepEqual(seen, { removed: true, gone: [null, 0, null, null], back: 'What is it?', texts: ['What is it?', 'A cross.'], file: 'abc', twice: [true, true] });
});

test('a deletion yields to what was written meanwhile, which is taken in', async () => {
    const seen = await inPage(async ({ one, other, chat, question, store, texts }) => {
        await one.save(chat);
        const there = await other.load(chat.id);
        store.addMessage(there, { role: 'assistant', parent: question.id, text: 'A star.' });
        await other.save(there);
        const removed = await one.remove(chat);
        store.addMessage(there, { role: 'user', parent: there.head, text: 'Sure?' });
        await other.save(there);
        const changed = await one.refresh(chat); // it is still known here
        return { removed, texts: texts(chat), changed: changed.length, second: await one.remove(chat) };
    });
    assert.deepEqual(seen, { removed: false, texts: ['What is it?', 'A star.', 'Sure?'], changed: 1, second: true });
});

test('both write: nothing is lost, a deleted chat with news is made again', async () => {
    const seen = await inPage(async ({ one, other, chat, question, store, texts }) => {
        await one.save(chat);
        const there = await other.load(chat.id);
        store.addMessage(there, { role: 'assistant', parent: question.id, text: 'theirs' });
        await other.save(there);
        chat.title = 'Named';
        store.addMessage(chat, { role: 'assistant', parent: question.id, text: 'mine' });
        const saved = await one.save(chat);
        await other.refresh(there);
        const both = [chat, there].map((c) => Object.values(c.messages).map(({ text }) => text).sort());
        await one.remove(chat);
        store.addMessage(there, { role: 'user', parent: there.head, text: 'more' });
        const again = await other.save(there);
        return { both, changed: saved.changed.length, titles: [chat.title, there.title], again: again.summary?.title, kept: Object.keys((await one.load(chat.id)).messages).length, file: (await one.load(chat.id)).messages[question.id].attachments[0].missing ?? false };
    });
    const all = ['What is it?', 'mine', 'theirs'];
    assert.deepEqual(seen, { both: [all, all], changed: 1, titles: ['Named', 'Named'], again: 'Named', kept: 4, file: false });
});

test('one of two takes a question that waits; a file goes with the last message that names it', async () => {
    const seen = await inPage(async ({ one, other, chat, question, texts }) => {
        chat.queue = [{ id: 'q1', text: 'next', attachments: [] }];
        const before = await one.takeQueued(chat, 'q1'); // not kept yet: nobody else has it
        await one.save(chat);
        const there = await other.load(chat.id);
        const taken = [await one.takeQueued(chat, 'q1'), await other.takeQueued(there, 'q1'), await one.takeQueued(chat, 'none')];
        await other.refresh(there);
        const media = () => new Promise((resolve) => { one.db.transaction('media').objectStore('media').getAllKeys().onsuccess = ({ target }) => resolve(target.result); });
        const kept = await media();
        delete chat.messages[question.id].attachments;
        await one.save(chat);
        return { before, taken, queue: there.queue, kept, left: await media(), texts: texts(chat) };
    });
    assert.deepEqual(seen, { before: true, taken: [true, false, false], queue: [], kept: ['f'], left: [], texts: ['What is it?'] });
});

test('others hear of what is written and deleted; without a database everything works and nothing is kept', async () => {
    const seen = await inPage(async ({ one, other, chat, question, store, History }) => {
        const heard = [];
        other.listen((ids) => heard.push(...ids));
        await one.save(chat);
        await one.remove(chat);
        while (heard.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
        const none = new History(null);
        return { heard, id: chat.id, none: [none.available, (await none.save(chat)).summary.id, await none.load(chat.id), await none.list([1]), await none.refresh(chat), await none.remove(chat), await none.takeQueued(chat, 'q')] };
    });
    assert.deepEqual(seen, { heard: [seen.id, seen.id], id: seen.id, none: [false, seen.id, null, [1], [], true, true] });
});
