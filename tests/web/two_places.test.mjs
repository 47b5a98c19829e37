/** Two tabs of one browser, and two browsers whose chats the server keeps: one truth. */
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { becomes, lastAnswer, launch, ofChat, openChat, send, until, watch } from './helpers.mjs';
import { startMock } from './mock_server.mjs';
import { FORMS, begun, play, skip, startServer } from './two_places.mjs';

const OPERATIONS = 60;
let browser;
let server;
before(async () => {
    browser = await launch();
});
after(() => browser.close());

for (const [form, { name }] of Object.entries(FORMS)) {
    test(`${OPERATIONS} random operations in ${name}: nothing is lost, both end the same`, { skip }, async () => {
        const { done } = await play({ form: /** @type {keyof typeof FORMS} */ (form), operations: OPERATIONS, seed: 5, log: console.log });
        assert.ok(Object.keys(done).length > 8, JSON.stringify(done));
    });
}

for (const history of [false, true]) {
    test(`what is done in the moment of a reload is kept${history ? ' by the server' : ''}`, { skip }, async (t) => {
        const server = await startServer(history);
        t.after(() => server.stop());
        const { page, done } = await openChat(browser, server.url);
        await begun(page);
        /** Does it, and is gone before anything can be written. */
        const atOnce = async (work) => {
            const loaded = page.waitForEvent('load');
            await page.evaluate(`{ const { chat } = document.querySelector('parley-app'); ${work}; location.reload(); }`).catch(() => {});
            await loaded;
            await begun(page);
        };
        const first = () => page.evaluate(async () => (await document.querySelector('parley-app').chat.all())[0] ?? null);
        const isSo = (condition, what) => until(async () => condition(await first()), what);
        await atOnce("chat.send('hello', [])");
        await isSo((chat) => chat?.title === 'hello', 'the question');
        await openFirst(page);
        await lastAnswer(page);
        await isSo((chat) => Object.values(chat.messages).every(({ status }) => status === 'done'), 'the answer');
        await atOnce("chat.editAnswer(chat.current.head, 'in other words')");
        await isSo((chat) => chat.messages[chat.head].text === 'in other words', 'the words');
        await openFirst(page);
        await atOnce('chat.erase(chat.current.head)');
        await isSo((chat) => Object.values(chat.messages).some(({ erased }) => erased), 'the deleted message');
        await openFirst(page);
        await atOnce("chat.setOption('temperature', 0.25)");
        await isSo((chat) => chat.options?.temperature === 0.25, 'the option');
        // These are done to a chat that is not open: it has to be read first.
        await page.goto(`${server.url}#/`);
        await atOnce("chat.newChat(); chat.rename(chat.list[0].id, 'Named')");
        await isSo((chat) => chat.title === 'Named', 'the name');
        await atOnce("chat.newChat(); chat.setPlace(chat.list[0].id, { folder: 'Work' })");
        await isSo((chat) => chat.place?.folder === 'Work', 'the folder');
        await atOnce('chat.newChat(); chat.remove(chat.list[0].id)');
        await isSo((chat) => !chat, 'the deletion');
        const isTakenUp = () => !Object.keys(localStorage).some((key) => key.startsWith('parley.unsaved.'));
        await until(() => page.evaluate(isTakenUp), 'no note of it'); // it is done a moment before its note is gone
        await done();
    });
}

/** Two tabs of a fresh browser. @param {any} [options] of the server */
async function twoTabs(options) {
    server = await startMock(options);
    const first = await openChat(browser, server.url);
    const page = await first.context.newPage();
    watch(page, server.url, first.faults);
    await page.goto(server.url);
    await page.locator('chat-composer textarea').waitFor();
    const done = async () => {
        await first.done();
        await server.close();
    };
    return { a: first.page, b: page, context: first.context, done };
}

const openFirst = async (page) => {
    await page.locator('.entry a').first().click();
    await page.locator('chat-message').first().waitFor();
};
const questions = (page) => page.locator('chat-message .question .bubble').allTextContents();
const titles = (page) => page.locator('.chat-list .entry-title').allInnerTexts();
const isSaid = (page, text) => until(async () => (await page.locator('chat-message .answer').last().innerText()).includes(text), `“${text}” to be shown`);

test('an answer shows in both tabs as it comes, either stops it, and both questions stay', async () => {
    const { a, b, done } = await twoTabs({ holdAfter: 20 });
    await send(a, 'long');
    await until(async () => (await titles(b)).length === 1, 'the chat in the other list');
    await openFirst(b);
    await isSaid(b, 'word15');
    assert.equal(await b.getByRole('button', { name: 'Stop' }).count(), 1);
    await b.getByRole('button', { name: 'Stop' }).click();
    for (const page of [a, b]) await page.getByText('You stopped this answer.').waitFor();
    assert.equal(server.requests.length, 1);

    // What is asked behind a running answer waits once, and is asked once.
    server.options.holdAfter = 5;
    await send(a, 'long two');
    await until(async () => (await questions(b)).length === 2, 'the second question there');
    await b.getByLabel('Your message').fill('say after');
    await b.getByLabel('Your message').press('Enter');
    await until(async () => (await a.getByText('say after').count()) > 0, 'the waiting question here');
    server.options.holdAfter = Infinity;
    for (const page of [a, b]) await isSaid(page, 'after');
    assert.deepEqual(server.requests.map(({ body }) => body.input.at(-1).content.at(-1).text), ['long', 'long two', 'say after']);
    for (const page of [a, b]) assert.deepEqual(await questions(page), ['long', 'long two', 'say after']);
    await done();
});

test('the tab that asked is closed while the answer comes: the other one keeps all of it', async () => {
    const { a, b, done } = await twoTabs({ holdAfter: 20 });
    await send(a, 'long');
    await until(async () => (await titles(b)).length === 1, 'the chat in the other list');
    await openFirst(b);
    await isSaid(b, 'word15');
    await a.close();
    server.options.holdAfter = Infinity;
    const whole = await lastAnswer(b);
    assert.match(whole, /word249/);
    await b.reload();
    await becomes(() => lastAnswer(b), whole);
    assert.equal(server.requests.length, 1);
    await done();
});

test('a question that could not be sent yet is asked by one tab only', async () => {
    const { a, b, done } = await twoTabs();
    server.drop();
    server.options.upgrade = false;
    server.options.state = 'loading';
    await a.evaluate(() => document.querySelector('parley-app').chat.send('say once', []));
    await until(async () => (await titles(b)).length === 1, 'the chat in the other list');
    await openFirst(b);
    server.options.state = 'ready';
    server.options.upgrade = true;
    for (const page of [a, b]) await page.evaluate(() => document.querySelector('parley-app').chat.connection.retryNow());
    for (const page of [a, b]) await isSaid(page, 'once');
    assert.equal(server.requests.length, 1);
    await done();
});

test('names, deletions and their undo show in both tabs; a deleted chat comes back with its image', async () => {
    const { a, b, done } = await twoTabs();
    await a.getByLabel('Add images').setInputFiles(new URL('fixtures/outlines.png', import.meta.url).pathname);
    await a.locator('.tray .thumb img').waitFor();
    await send(a, 'say look');
    await lastAnswer(a);
    await until(async () => (await titles(b)).join() === 'say look', 'the chat there');
    await openFirst(b);
    await a.evaluate(() => { const { chat } = document.querySelector('parley-app'); return chat.rename(chat.current.id, 'Common'); });
    await until(async () => (await titles(b)).join() === 'Common' && (await b.title()) === 'Common · Parley', 'the new name');
    await a.locator('.entry').hover();
    await ofChat(a, 'Delete', 'Common');
    await b.getByText('This chat was deleted elsewhere.').waitFor();
    await becomes(() => titles(b), []);
    await a.getByRole('button', { name: 'Undo' }).click();
    await until(async () => (await titles(b)).join() === 'Common', 'the chat to come back');
    await b.reload();
    await openFirst(b);
    await until(() => b.locator('chat-message img').evaluateAll((list) => list.length === 1 && list[0].naturalWidth > 0), 'the image');
    await done();
});

test('a deletion is taken back also where another tab finished it', async () => {
    const { a, b, done } = await twoTabs();
    await send(a, 'say one');
    await lastAnswer(a);
    await until(async () => (await titles(b)).length === 1, 'the chat there');
    await openFirst(b);
    await a.evaluate(() => {
        const { chat } = document.querySelector('parley-app');
        const { history } = chat;
        const held = new Promise((resolve) => (window.goOn = resolve));
        history.remove = (conversation) => held.then(() => Object.getPrototypeOf(history).remove.call(history, conversation));
        chat.addEventListener('notice', ({ detail }) => (window.undo ??= detail.undo));
        window.removal = chat.remove(chat.current.id);
    });
    await send(b, 'say two');
    await lastAnswer(b);
    await a.evaluate(() => (window.goOn(), window.removal));
    await a.getByText('stays: it was written to elsewhere').waitFor();
    await b.evaluate(() => { const { chat } = document.querySelector('parley-app'); return chat.remove(chat.current.id); });
    await until(async () => (await titles(a)).length === 0, 'the chat to go');
    await a.evaluate(() => window.undo());
    for (const page of [a, b]) {
        await until(async () => (await titles(page)).join() === 'say one', 'the chat to come back');
        await openFirst(page);
        assert.deepEqual(await questions(page), ['say one', 'say two']);
    }
    await done();
});

test('drafts of one tab do not take those of another away', async () => {
    const { a, b, context, done } = await twoTabs();
    for (const words of ['say one', 'say two']) {
        await send(a, words);
        await lastAnswer(a);
        await a.keyboard.press('Control+Shift+O');
        await a.locator('chat-welcome').waitFor();
    }
    await a.locator('.entry a', { hasText: 'say one' }).click();
    await b.locator('.entry a', { hasText: 'say two' }).click();
    for (const page of [a, b]) await page.locator('chat-message').first().waitFor();
    await a.getByLabel('Your message').fill('draft of one');
    await b.getByLabel('Your message').fill('draft of two');
    const page = await context.newPage();
    await page.goto(server.url);
    for (const name of ['one', 'two']) {
        await page.locator('.entry a', { hasText: `say ${name}` }).click();
        await until(async () => (await page.getByLabel('Your message').inputValue()) === `draft of ${name}`, `the draft of ${name}`);
    }
    await done();
});

test('chats of the first form, one record each, are taken over whole', async () => {
    server = await startMock();
    const { page, done } = await openChat(browser, server.url);
    await page.goto(new URL('css/base.css', server.url).href); // the page itself would lose its database while it writes
    await page.evaluate(async () => {
        const wait = (request) => new Promise((resolve, reject) => {
            request.onsuccess = () => resolve(request.result);
            request.onerror = () => reject(request.error);
            request.onblocked = () => reject(new Error('blocked'));
        });
        await wait(indexedDB.deleteDatabase('parley'));
        const request = indexedDB.open('parley', 1);
        request.onupgradeneeded = () => ['conversations', 'summaries', 'media'].forEach((name) => request.result.createObjectStore(name, { keyPath: 'id' }));
        const db = await wait(request);
        const transaction = db.transaction(['conversations', 'summaries', 'media'], 'readwrite');
        const file = { id: 'a_1', kind: 'text', name: 'notes.txt', mime: 'text/plain', width: 0, height: 0, bytes: 5 };
        for (const n of [1, 2]) {
            transaction.objectStore('summaries').put({ id: `c_${n}`, title: `Old ${n}`, updated: n, text: `old ${n}` });
            transaction.objectStore('conversations').put({
                id: `c_${n}`, title: `Old ${n}`, created: 1, updated: n, head: `m_${n}b`, options: n === 1 ? { temperature: 0.5 } : undefined,
                queue: n === 1 ? [{ text: 'it waits', attachments: [] }] : undefined,
                messages: Object.fromEntries([
                    { id: `m_${n}a`, parent: null, role: 'user', text: `asked ${n}`, status: 'done', created: 1, attachments: n === 1 ? [file] : undefined },
                    { id: `m_${n}b`, parent: `m_${n}a`, role: 'assistant', text: `answered ${n}`, status: 'done', created: 2 },
                    { id: `m_${n}c`, parent: `m_${n}a`, role: 'assistant', text: `otherwise ${n}`, status: 'stopped', created: 3 },
                ].map((message) => [message.id, message])),
            });
        }
        transaction.objectStore('media').put({ id: 'a_1', conversation: 'c_1', blob: new Blob(['bytes'], { type: 'text/plain' }) });
        await new Promise((resolve) => (transaction.oncomplete = resolve));
        db.close();
    });
    await page.goto(server.url);
    await until(async () => (await titles(page)).join() === 'Old 2,Old 1', 'the old chats');
    const chats = await page.evaluate(async () => {
        const all = await document.querySelector('parley-app').chat.all();
        return Promise.all(all.map(async (one) => ({ ...one, file: await one.messages.m_1a?.attachments[0].blob.text() })));
    });
    for (const { id, head, options, queue = [], messages, file } of chats) {
        const n = Number(id.slice(2));
        assert.deepEqual([head, options, queue.map(({ text }) => text), file], [`m_${n}b`, n === 1 ? { temperature: 0.5 } : {}, n === 1 ? ['it waits'] : [], n === 1 ? 'bytes' : undefined]);
        assert.deepEqual(Object.values(messages).map(({ id: name, parent, text, status }) => [name, parent, text, status]), [
            [`m_${n}a`, null, `asked ${n}`, 'done'], [`m_${n}b`, `m_${n}a`, `answered ${n}`, 'done'], [`m_${n}c`, `m_${n}a`, `otherwise ${n}`, 'stopped'],
        ]);
    }
    await page.locator('.entry a', { hasText: 'Old 2' }).click();
    await send(page, 'say on');
    await isSaid(page, 'on');
    await done();
    await server.close();
});
