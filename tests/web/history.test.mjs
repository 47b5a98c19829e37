/**
 * Chats that the server keeps, in the page and the real server (with the double of the engine in
 * it): what one device writes another one sees, and nothing is lost when either goes away. Needs
 * build/parley_fake beside PARLEY_BIN.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SAMPLES, becomes, lastAnswer, launch, ofChat, openChat, send, until } from './helpers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const program = join(dirname(process.env.PARLEY_BIN ?? join(root, 'build/parley')), 'parley_fake');
const skip = existsSync(program) ? false : `there is no ${program}`;
const folder = mkdtempSync(join(tmpdir(), 'parley-history-'));
let browser;
const running = new Set();

/** Starts the server; `args` beside the folder of the page. */
async function start(...args) {
    const child = spawn(program, ['--ui-dir', join(root, 'web'), ...args]);
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (out += data));
    await until(() => /port (\d+)/.test(out), 'the server to listen');
    const port = /port (\d+)/.exec(out)[1];
    running.add(child);
    const exited = new Promise((resolve) => child.on('exit', resolve));
    const stop = (signal) => (child.kill(signal), exited);
    return { url: `http://127.0.0.1:${port}/`, port, stop };
}

/** A server with a history of its own. */
const startFresh = (name) => start('--history', join(folder, name));

before(async () => {
    if (!skip) browser = await launch();
});
after(async () => {
    await browser?.close();
    for (const child of running) child.kill('SIGKILL'); // of tests that failed
    rmSync(folder, { recursive: true, force: true });
});

const entries = (page) => page.locator('.chat-list .entry-title').allInnerTexts();
const questions = (page) => page.locator('chat-message .question').allInnerTexts();
const kept = async (url, path = 'chats') => (await fetch(new URL(`v1/history/${path}`, url))).json();
const firstKept = async (url) => kept(url, `chats/${(await kept(url)).data[0].id}`);
/** Until the last message of the only chat is kept as it ended. */
const untilKept = (url, n) =>
    until(async () => {
        const [chat] = (await kept(url)).data;
        if (chat?.n_messages !== n) return false;
        return (await kept(url, `chats/${chat.id}`)).messages.at(-1).status === 'done';
    }, `${n} messages to be kept`);

test('a second device sees the chat, follows it, and answers in it', { skip }, async () => {
    const server = await startFresh('two');
    const first = await openChat(browser, server.url);
    await first.page.getByLabel('Add images').setInputFiles(join(SAMPLES, 'outlines.png'));
    await first.page.locator('.tray .thumb img').waitFor();
    await send(first.page, 'hello from one');
    await becomes(() => lastAnswer(first.page), /hello from one/);
    await untilKept(server.url, 2);

    const second = await openChat(browser, server.url);
    await second.page.locator('.entry-title', { hasText: 'hello from one' }).click();
    await becomes(() => lastAnswer(second.page), /hello from one/);
    await until(() => second.page.locator('chat-message img').evaluateAll((list) => list.length === 1 && list[0].naturalWidth > 0), 'the image');
    await send(second.page, 'and from two');
    await becomes(() => lastAnswer(second.page), /and from two/);

    // The first one hears of it without being touched.
    await until(async () => (await questions(first.page)).length === 2, 'the other question');
    await until(async () => (await first.page.locator('chat-message .answer').last().innerText()).includes('and from two'), 'the other answer');
    await send(first.page, 'one again');
    await untilKept(server.url, 6);
    await until(async () => (await questions(second.page)).length === 3, 'the third question');

    // Renamed there, deleted here: with undo, and for good.
    await second.page.locator('.entry').hover();
    await ofChat(second.page, 'Rename');
    await second.page.getByLabel('New name').fill('Common');
    await second.page.keyboard.press('Enter');
    await until(async () => (await entries(first.page))[0] === 'Common', 'the new name');
    await first.page.locator('.entry').hover();
    await ofChat(first.page, 'Delete', 'Common');
    await first.page.getByRole('button', { name: 'Undo' }).click();
    await until(async () => (await entries(first.page)).length === 1, 'the chat to come back');
    await becomes(async () => (await kept(server.url)).data.length, 1);
    await first.page.locator('.entry').hover();
    await ofChat(first.page, 'Delete', 'Common');
    await until(async () => (await kept(server.url)).data.length === 0, 'the chat to be deleted');
    await until(async () => (await entries(second.page)).length === 0, 'the other list');
    await second.page.locator('chat-welcome').waitFor();
    await first.done();
    await second.done();
    await server.stop();
});

test('an answer that is written while the page is reloaded is whole, here and on a second device', { skip }, async () => {
    const server = await startFresh('reload');
    const { page, done } = await openChat(browser, server.url);
    await send(page, '!len=120 !delay=60 abcdefghij');
    await until(async () => (await page.locator('.answer > .prose').innerText()).length > 8, 'some of the answer');
    await until(async () => (await kept(server.url)).data.length === 1, 'the chat to be kept');
    await page.reload();
    const other = await openChat(browser, server.url);
    await other.page.locator('.entry a').click();
    const whole = await lastAnswer(page);
    await becomes(() => lastAnswer(other.page), whole);
    await untilKept(server.url, 2);
    const { text } = (await firstKept(server.url)).messages[1];
    assert.equal(text.length, 120);
    assert.equal(text.trim(), whole);
    await other.done();
    await done();
    await server.stop();
});

test('a search finds words that this device has not read', { skip }, async () => {
    const server = await startFresh('search');
    const { page, done } = await openChat(browser, server.url);
    for (const words of ['first of all\nmeadow', 'second\nmountain']) {
        await send(page, words);
        await lastAnswer(page);
        await page.keyboard.press('Control+Shift+O');
        await page.locator('chat-welcome').waitFor();
    }
    await until(async () => (await kept(server.url)).data.length === 2, 'both chats');
    const other = await openChat(browser, server.url);
    await until(async () => (await entries(other.page)).length === 2, 'the list');
    await other.page.getByLabel('Search chats').fill('ountai');
    await until(async () => (await entries(other.page)).join() === 'second', 'the search');
    await other.page.getByLabel('Search chats').fill('nowhere');
    await until(async () => (await entries(other.page)).length === 0, 'nothing to be found');
    await other.done();
    await done();
    await server.stop();
});

test('while the server is away chats wait in the browser, which says so; then they go there', { skip }, async () => {
    let server = await startFresh('away');
    const { port } = server;
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'before');
    await lastAnswer(page);
    await untilKept(server.url, 2);
    await server.stop('SIGKILL');
    await page.locator('.entry').hover();
    await ofChat(page, 'Rename');
    await page.getByLabel('New name').fill('Renamed while away');
    await page.keyboard.press('Enter');
    await page.getByText(/The server is away\. One chat waits in this browser/).waitFor();
    server = await start('--history', join(folder, 'away'), '--port', port);
    await until(async () => (await kept(server.url)).data[0].title === 'Renamed while away', 'the new name to arrive');
    await until(async () => (await page.getByText(/waits in this browser/).count()) === 0, 'the words to go');
    assert.equal((await firstKept(server.url)).messages.length, 2);

    // Also if the page is opened anew in between, and another device has gone on meanwhile.
    await page.route('**/v1/history/chats/*', (route) => (route.request().method() === 'PUT' ? route.abort() : route.continue()));
    await send(page, 'kept here first');
    await lastAnswer(page);
    await page.getByText(/One chat waits in this browser/).waitFor();
    const other = await openChat(browser, server.url);
    await other.page.locator('.entry a').click();
    await other.page.locator('.bubble').first().waitFor();
    await send(other.page, 'from elsewhere');
    await lastAnswer(other.page);
    await untilKept(server.url, 4);
    await page.unroute('**/v1/history/chats/*');
    await page.reload();
    await untilKept(server.url, 6);
    const texts = (await firstKept(server.url)).messages.map(({ text }) => text);
    for (const text of ['before', 'kept here first', 'from elsewhere']) assert.ok(texts.includes(text), text);
    await other.done();
    await done();
    await server.stop();
});

test('a full history is said, the chat stays in the browser, and goes there once there is room', { skip }, async () => {
    const server = await start('--history', join(folder, 'full'), '--history-quota', String(400_000));
    const fill = async (n, words) =>
        fetch(new URL(`v1/history/chats/filler${n}`, server.url), {
            method: 'PUT', headers: { 'Content-Type': 'application/json' },
            body: JSON.stringify({ revision: 0, title: 'filler', messages: [{ id: 'm', role: 'user', text: Array.from({ length: words }, (_, i) => ((i * i * 31 + n) % 99991).toString(36)).join(' ') }] }),
        });
    let n = 0;
    for (const words of [6000, 600, 60, 6]) while ((await fill(n, words)).status === 200) n += 1; // until a small chat does not fit, either
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'no room');
    await becomes(() => lastAnswer(page), /no room/);
    await page.getByText(/history may take .* delete chats/).waitFor();
    for (let i = 0; i < n; i += 1) await fetch(new URL(`v1/history/chats/filler${i}`, server.url), { method: 'DELETE' });
    await page.reload();
    await until(async () => (await kept(server.url)).data.some(({ title }) => title === 'no room'), 'the chat to arrive');
    await becomes(() => lastAnswer(page), /no room/);
    await done();
    await server.stop();
});

test('chats of before move to the server, once and with their images', { skip }, async () => {
    const plain = await start();
    const { page, done } = await openChat(browser, plain.url);
    await page.getByLabel('Add images').setInputFiles(join(SAMPLES, 'outlines.png'));
    await page.locator('.tray .thumb img').waitFor();
    await send(page, 'an old chat');
    await lastAnswer(page);
    await plain.stop();
    const server = await start('--history', join(folder, 'moved'), '--port', plain.port);
    await page.goto(server.url);
    await page.getByRole('button', { name: 'Move to the server' }).click();
    await until(async () => (await kept(server.url)).data.length === 1, 'the chat to be moved');
    await until(async () => (await page.getByRole('button', { name: 'Move to the server' }).count()) === 0, 'the offer to go');
    const [image] = (await firstKept(server.url)).messages[0].attachments;
    assert.match(image.sha256, /^[0-9a-f]{64}$/);
    await page.reload();
    await until(async () => (await entries(page)).length === 1, 'the list');
    await becomes(() => page.getByRole('button', { name: 'Move to the server' }).count(), 0);
    await page.locator('.entry a').click();
    await until(() => page.locator('chat-message img').evaluateAll((list) => list.length === 1 && list[0].naturalWidth > 0), 'the image');
    await done();
    await server.stop();
});
