/** What a bad network, a restart, a proxy or a missing key do to an answer. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test, { after, afterEach, before, beforeEach } from 'node:test';
import { SAMPLES, becomes, lastAnswer, launch, openChat, send, until } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

let browser;
let server;
before(async () => {
    browser = await launch();
});
after(() => browser.close());
beforeEach(async () => {
    server = await startMock();
});
afterEach(() => server.close());

const LONG = Array.from({ length: 400 }, (_, i) => `word${i}`);
const words = (text) => text.split(/[\s.]+/).filter(Boolean);

/** Points of an answer of 400 words, the same every time, so that a failure can be looked at.
 * @param {number} seed */
function randomCuts(seed, answers, each) {
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    const cuts = Array.from({ length: answers }, () => Array.from({ length: each }, () => Math.floor(random() * 399)).sort((a, b) => a - b));
    cuts[0][0] = 0; // before the first word
    cuts.at(-1)[each - 1] = 399; // before the last
    return cuts;
}

/** Asks for the long answer once for each list of points, and cuts the connection at each of
 * them. */
async function cutAt(page, cuts) {
    for (const points of cuts) {
        server.options.replayAll = points === cuts[1]; // then what comes twice is seen by its number
        const at = (point) => Object.assign(server.options, { holdAfter: point || 1, hold: point === 0 });
        const sent = server.requests.length;
        at(points[0]);
        await send(page, 'long');
        await until(() => server.requests.length === sent + 1, 'the question');
        for (const [i, point] of points.entries()) {
            const prose = page.locator('.answer > .prose').last();
            if (point) await until(async () => words(await prose.innerText()).length >= point, `word ${point}`);
            server.drop();
            at(points[i + 1] ?? Infinity);
        }
        assert.deepEqual(words(await lastAnswer(page)), LONG, `cut at ${points}`);
    }
    // One whose name had not come yet is asked for again, in the same name.
    assert.equal(server.begun(), cuts.length, 'no question was answered twice');
}

test('20 cuts at random points of answers: nothing lost, nothing twice', async () => {
    server.options.delayMs = 1;
    const { page, done } = await openChat(browser, server.url);
    await cutAt(page, randomCuts(20, 4, 5));
    await done();
});

test('the same over server-sent events', async () => {
    Object.assign(server.options, { delayMs: 1, upgrade: false });
    const { page, done } = await openChat(browser, server.url);
    await cutAt(page, randomCuts(41, 4, 3));
    assert.ok(server.requests.every(({ transport }) => transport === 'http'));
    // Cut before the first byte came, it is asked for again, and answered once.
    server.options.mute = true;
    const sent = server.requests.length;
    await send(page, 'say only once');
    await until(() => server.requests.length === sent + 1, 'the question');
    server.drop();
    await until(() => server.requests.length === sent + 2, 'the question again');
    server.options.mute = false;
    assert.equal(await lastAnswer(page), 'only once');
    assert.equal(server.begun(), 5);
    await done();
});

for (const [how, upgrade] of /** @type {const} */ ([['over a WebSocket', true], ['over server-sent events', false]])) test(`an answer survives a reload, ${how}`, async () => {
    Object.assign(server.options, { delayMs: 10, upgrade });
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'long');
    await page.locator('.answer').getByText('word40').first().waitFor();
    const kept = () => page.evaluate(async () => {
        const { History } = await import(new URL('js/state/history.js', document.baseURI).href);
        return JSON.stringify((await (await History.open()).list())[0] ?? '');
    });
    await until(async () => /word4/.test(await kept()), 'the half answer to be kept');
    await page.reload();
    assert.deepEqual(words(await lastAnswer(page)), LONG);
    assert.equal(server.requests.length, 1);
    await done();
});

test('after a sleep the dead socket is left at once, and the answer goes on', async () => {
    server.options.holdAfter = 20;
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'long');
    await page.locator('.answer').getByText('word19').first().waitFor();
    server.freeze();
    server.options.holdAfter = Infinity;
    await page.evaluate(() => {
        // What notices silence after a minute would help too: not here.
        clearInterval(document.querySelector('parley-app').chat.connection.pingTimer);
        const now = Date.now;
        Date.now = () => now() + 3_600_000;
    });
    assert.deepEqual(words(await lastAnswer(page)), LONG);
    assert.equal(server.requests.length, 1);
    await done();
});

test('a question that was not sent yet goes out after a reload, once', async () => {
    server.options.state = 'loading';
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say hello');
    await page.locator('.working-text', { hasText: 'Waiting for the server' }).waitFor();
    await until(() => page.evaluate(async () => {
        const { History } = await import(new URL('js/state/history.js', document.baseURI).href);
        return (await (await History.open()).list()).length === 1;
    }), 'the chat to be kept');
    await page.reload();
    await page.locator('.working-text', { hasText: 'Waiting for the server' }).waitFor();
    server.options.state = 'ready';
    server.send({ type: 'server.status', state: 'ready', progress: 1 });
    await becomes(() => lastAnswer(page), 'hello');
    assert.equal(server.requests.length, 1);
    await done();
});

test('a server that forgot the answer: what was said stays, with words', async () => {
    server.options.holdAfter = 20;
    server.options.forget = true;
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'long');
    await page.locator('.answer').getByText('word19').first().waitFor();
    server.drop();
    await page.locator('.failure').waitFor();
    assert.match(await page.locator('.failure').innerText(), /no longer has the rest/);
    assert.match(await lastAnswer(page), /^word0 /);
    await done();
});

test('without WebSocket it falls back to server-sent events by itself', async () => {
    server.options.upgrade = false;
    const { page, done } = await openChat(browser, server.url);
    await page.getByLabel('Add images').setInputFiles(join(SAMPLES, 'outlines.png'));
    await page.locator('.tray .thumb img').waitFor();
    await page.getByRole('button', { name: 'Think', exact: true }).click();
    await send(page, 'What is it?');
    await becomes(() => lastAnswer(page), /three objects/);
    assert.equal(server.requests.length, 1);
    assert.equal(server.requests[0].transport, 'http');
    assert.match(server.requests[0].body.input[0].content[0].image_url, /^data:image\/png/);
    assert.match(await page.locator('.thinking summary').innerText(), /Thought for/);
    assert.match(await page.locator('.figures').innerText(), /89\.3 tokens\/s.*media route/s);
    server.options.holdAfter = 6;
    await send(page, 'long');
    await page.locator('.answer').getByText('word5').first().waitFor();
    await page.getByRole('button', { name: 'Stop the answer' }).click();
    await page.getByText('You stopped this answer.').waitFor();
    await until(() => server.cancels.length === 1, 'the server to be told');
    await send(page, 'error context_length_exceeded');
    await page.getByText('longer than the model can read').first().waitFor();
    await done();
});

test('a message larger than a frame goes over HTTP', async () => {
    server.options.maxTextFrame = 2000;
    const { page, done } = await openChat(browser, server.url);
    await page.getByLabel('Add images').setInputFiles(join(SAMPLES, 'outlines.png'));
    await page.locator('.tray .thumb img').waitFor();
    await send(page, 'What is it?');
    await becomes(() => lastAnswer(page), /three objects/);
    assert.equal(server.requests[0].transport, 'http');
    await done();
});

test('a server that is away: the page says so, and sends when it is back', async () => {
    const { port } = new URL(server.url);
    const { page, done } = await openChat(browser, server.url);
    await server.close();
    await page.locator('.trouble').waitFor();
    assert.match(await page.locator('.trouble').innerText(), /cannot be reached/);
    await send(page, 'say hello');
    await page.locator('.working-text').filter({ hasText: 'Waiting for the server' }).waitFor();
    const failures = () => page.evaluate(() => document.querySelector('parley-app').chat.connection.failures);
    const before = await failures();
    await until(async () => (await failures()) > before, 'another try');
    assert.equal(await page.locator('.working-text').innerText(), 'Waiting for the server', 'nothing was sent yet, so nothing is lost');
    // Nothing but the button tries again from here on.
    await page.waitForFunction(() => {
        const { connection } = document.querySelector('parley-app').chat;
        if (connection.state !== 'retrying' || connection.socket) return false;
        clearTimeout(connection.retryTimer);
        connection.wake = () => {};
        return true;
    });
    server = await startMock({ port: Number(port) });
    await page.getByRole('button', { name: 'Try now' }).click();
    await becomes(() => lastAnswer(page), 'hello');
    await becomes(() => page.locator('.trouble').count(), 0);
    await done();
});

test('a server that asks for a key', async () => {
    server.options.key = 'secret';
    const { page, done } = await openChat(browser, server.url);
    await page.getByRole('button', { name: 'Enter it' }).click();
    await page.getByLabel('API key').fill('secret');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Escape');
    await send(page, 'say open');
    await becomes(() => lastAnswer(page), 'open');
    await done();
});

test('a server that loads its model says how far it is', async () => {
    server.options.state = 'loading';
    const { page, done } = await openChat(browser, server.url);
    await page.locator('.model-state', { hasText: 'Loading 100 %' }).waitFor();
    server.send({ type: 'server.status', state: 'loading', progress: 0.4 });
    await page.locator('.model-state', { hasText: 'Loading 40 %' }).waitFor();
    server.options.state = 'ready';
    server.send({ type: 'server.status', state: 'ready', progress: 1 });
    await until(async () => !(await page.locator('.model-state').innerText()));
    await done();
});

test('what a model can do is asked again once it is loaded', async () => {
    Object.assign(server.options, { state: 'loading', thinkingCapability: false });
    const { page, done } = await openChat(browser, server.url);
    await page.locator('.model-state', { hasText: 'Loading' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Think', exact: true }).count(), 0);
    Object.assign(server.options, { state: 'ready', thinkingCapability: true });
    server.options.state = 'ready';
    server.send({ type: 'server.status', state: 'ready', progress: 1 });
    await page.getByRole('button', { name: 'Think', exact: true }).waitFor();
    await done();
});

test('unknown events and fields are ignored', async () => {
    const { page, done } = await openChat(browser, server.url);
    server.options.holdAfter = 1;
    await send(page, 'say still fine');
    await until(() => server.requests.length === 1);
    server.send({ type: 'response.new_kind', response_id: 'x', anything: [1] });
    server.send({ type: 'mystery' });
    server.send([1, 2]);
    server.options.holdAfter = Infinity;
    await becomes(() => lastAnswer(page), 'still fine');
    await done();
});

test('an answer that goes on in the moment in which its chat is written goes on', async () => {
    const { page, done } = await openChat(browser, server.url);
    const status = await page.evaluate(async () => {
        const load = (name) => import(new URL(`js/state/${name}.js`, document.baseURI).href);
        const [{ History }, { addMessage, newConversation }] = await Promise.all(['history', 'store'].map(load));
        const history = await History.open('moment');
        const chat = newConversation();
        const { id: parent } = addMessage(chat, { role: 'user', parent: null, text: 'Go.' });
        const answer = addMessage(chat, { role: 'assistant', parent, text: '', status: 'done' });
        await history.save(chat);
        const { put } = IDBObjectStore.prototype;
        const second = new Promise((resolve) => {
            IDBObjectStore.prototype.put = function (...args) {
                if (this.name === 'summaries') {
                    IDBObjectStore.prototype.put = put;
                    queueMicrotask(() => {
                        answer.status = 'streaming'; // after it was written, before that is heard of
                        resolve(history.save(chat));
                    });
                }
                return put.apply(this, args);
            };
        });
        answer.text = 'asks';
        await history.save(chat);
        await second;
        return answer.status;
    });
    assert.equal(status, 'streaming');
    await done();
});
