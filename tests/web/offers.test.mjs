/**
 * What the servers of a chat offer besides tools, in the menu beside the field: resources become files,
 * prompts ask for their arguments. And tools where the server keeps the chats, and while it is away.
 * The real server, the trained model, an MCP server of fixtures/mcp_tools.mjs. Skipped where the program
 * or the model is absent.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SAMPLES, checkScreen, lastAnswer, launch, openChat, send, until } from './helpers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const program = process.env.PARLEY_BIN ?? join(root, 'build/parley');
const model = join(root, 'assets/seedling');
const skip = !existsSync(program) ? `there is no ${program}` : !existsSync(join(model, 'config.json')) ? 'there is no model' : false;

let browser;
let server;
let url;
const folder = mkdtempSync(join(tmpdir(), 'parley-offers-'));

/** @param {string} [port] the same again after a stop */
async function start(port = '0') {
    let log = '';
    server = spawn(program, ['serve', '-m', model, '--port', port, '--alias', 'seedling', '--temp', '0', '--history', join(folder, 'history'), '--mcp-config', join(folder, 'mcp.json'), '--tools', 'calculator']);
    for (const stream of [server.stdout, server.stderr]) stream.on('data', (data) => (log += data));
    await until(() => (url = /http:\/\/[\d.]+:\d+\//.exec(log)?.[0]), () => `the server to be ready: ${log}`, 60_000);
    await until(async () => (await (await fetch(`${url}v1/mcp`)).json()).data.every(({ state }) => state === 'ready'), 'the tools');
}
async function stop() {
    server.kill('SIGTERM');
    await new Promise((resolve) => server.on('exit', resolve));
}
before(async () => {
    if (skip) return;
    writeFileSync(join(folder, 'mcp.json'), JSON.stringify({ mcpServers: { library: { command: process.execPath, args: [join(SAMPLES, 'mcp_tools.mjs'), 'library'], approval: 'never' } } }));
    browser = await launch();
    await start();
});
after(async () => {
    if (!skip) {
        await browser.close();
        await stop();
    }
    rmSync(folder, { recursive: true });
});

const field = (page) => page.getByLabel('Your message');
const offers = (page) => page.locator('#offers');
const offer = (page, text) => offers(page).locator('.offer', { hasText: text });
const call = (page) => page.locator('tool-call').last();

/** A chat that has this server's tools. */
async function openWith(label, options = {}) {
    const opened = await openChat(browser, url, options);
    const { page } = opened;
    await page.locator('[popovertarget=tools]').click();
    await page.locator('#tools .tool-server').filter({ has: page.locator('strong', { hasText: label }) }).getByRole('checkbox').first().click();
    await page.keyboard.press('Escape');
    return opened;
}
const open = (page) => page.getByRole('button', { name: 'Add from a server' }).click();

test('resources become files of the message; what cannot be one is refused in words', { skip }, async () => {
    const { page, done } = await openChat(browser, url);
    assert.equal(await page.getByRole('button', { name: 'Add from a server' }).count(), 0, 'a chat without servers has none');
    await done();
    const { page: with_, done: end } = await openWith('library');
    await open(with_);
    await offer(with_, 'Notes of May').click();
    await with_.getByRole('button', { name: 'Open may.md' }).waitFor();
    assert.equal(await offers(with_).isVisible(), false);
    await open(with_);
    await offer(with_, 'A dot').click();
    await with_.getByRole('button', { name: 'Show A dot large' }).waitFor();
    await open(with_);
    await offer(with_, 'Bytes').click();
    await with_.locator('.refused', { hasText: /Bytes|bytes/ }).waitFor();
    assert.equal(await with_.locator('.thumb').count(), 2);
    await send(with_, 'What is it?');
    await lastAnswer(with_);
    assert.equal(await with_.locator('.failure').count(), 0);
    const sent = await with_.evaluate(() => {
        const { chat } = /** @type {any} */ (document.querySelector('parley-app'));
        return Object.values(chat.current.messages).find(({ role }) => role === 'user').attachments.map(({ kind, name, mime, width, bytes }) => [kind, name, mime, width, bytes]);
    });
    assert.deepEqual(sent.map((one) => one.slice(0, 4)), [['text', 'may.md', 'text/plain', 0], ['image', 'A dot', 'image/png', 24]]);
    await end();
});

test('a prompt asks for its arguments and goes into the field, with the keyboard alone', { skip }, async () => {
    const { page, done } = await openWith('library');
    await field(page).fill('Before.');
    await page.getByRole('button', { name: 'Add from a server' }).focus();
    await page.keyboard.press('Enter');
    await offer(page, 'greet').waitFor();
    await page.waitForFunction(() => document.activeElement?.matches('#offers .offer'));
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement?.matches('#offers input'));
    await page.keyboard.press('Enter');
    assert.equal(await offers(page).isVisible(), true, 'who is needed');
    await page.keyboard.type('Ada');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement?.matches('textarea'));
    assert.equal(await field(page).inputValue(), 'Before.\n\nGreet Ada warmly.');
    await field(page).fill('');
    await open(page);
    await offer(page, 'greet').click();
    await offers(page).getByLabel('who').fill('Bob');
    await offers(page).getByRole('button', { name: 'Back' }).click();
    await offer(page, 'greet').click();
    await offers(page).getByLabel('who').fill('Bob');
    await offers(page).getByLabel('how').fill('coldly');
    await offers(page).getByRole('button', { name: 'Insert' }).click();
    await page.waitForFunction(() => document.querySelector('textarea').value === 'Greet Bob coldly.');
    await done();
});

test('a prompt of several messages: the last question goes into the field, the rest into the chat', { skip }, async () => {
    const { page, done } = await openWith('library');
    await open(page);
    await offer(page, 'broken').click();
    await offers(page).getByText('the shelf is empty').waitFor();
    await offer(page, 'talk').click();
    await page.locator('chat-message', { hasText: 'It is 4.' }).waitFor();
    await page.locator('.thumb img').waitFor();
    assert.equal(await field(page).inputValue(), 'And what is this?');
    assert.equal(await page.locator('chat-message').count(), 2);
    await page.getByRole('button', { name: 'Send' }).click();
    await page.waitForFunction(() => document.querySelectorAll('chat-message').length === 4);
    await lastAnswer(page);
    assert.equal(await page.locator('.failure').count(), 0);
    await done();
});

test('a chat that the server keeps: calls and results after a reload, and in a second browser', { skip }, async () => {
    const { page, done } = await openWith('calculator');
    await send(page, 'Calculate 123 + 45.');
    assert.match(await lastAnswer(page), /168/);
    const { hash } = new URL(page.url());
    const isDone = async (one) => {
        await call(one).locator('summary', { hasText: 'done' }).click();
        assert.match(await call(one).locator('code-block').innerText(), /168/);
        await one.locator('.own-options', { hasText: 'Tools' }).waitFor();
    };
    const keptAnswer = async () => (await fetch(`${url}v1/history/chats/${hash.split('/').at(-1)}`)).text();
    await until(async () => (await keptAnswer()).includes('168'), 'the answer to be kept');
    await page.reload();
    await isDone(page);
    const second = await openChat(browser, `${url}${hash}`);
    await isDone(second.page);
    await send(second.page, 'Calculate 1234 + 5678.');
    await second.page.waitForFunction(() => document.querySelectorAll('chat-message .answer').length === 2);
    assert.match(await lastAnswer(second.page), /6912/);
    await page.locator('chat-message .answer').nth(1).waitFor();
    await page.locator('tool-call').nth(1).locator('summary', { hasText: 'done' }).waitFor();
    await second.done();
    await done();
});

test('while the server is away: said in the menus, nothing is lost, and it goes on', { skip }, async () => {
    const { page, done } = await openWith('library');
    await send(page, 'Calculate 17 + 25.');
    assert.match(await lastAnswer(page), /42/);
    await field(page).fill('A draft');
    const port = new URL(url).port;
    await stop();
    await open(page);
    await page.locator('.refused, #offers').getByText('The server cannot be reached for this part of the page.').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('[popovertarget=tools]').click();
    await page.locator('#tools').getByText('The server cannot be reached for this part of the page.').waitFor();
    await page.keyboard.press('Escape');
    assert.equal(await field(page).inputValue(), 'A draft');
    await call(page).locator('summary', { hasText: 'done' }).waitFor();
    await start(port);
    await open(page);
    await offer(page, 'Notes of May').click();
    await page.getByRole('button', { name: 'Open may.md' }).waitFor();
    assert.equal(await field(page).inputValue(), 'A draft');
    await done();
});

// PARLEY_SHOTS=FOLDER keeps screenshots, then of all four looks.
for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    for (const phone of process.env.PARLEY_SHOTS ? [false, true] : [colorScheme === 'light']) {
        test(`axe finds nothing serious in the menu and its form: ${colorScheme}, ${phone ? 'phone' : 'desktop'}`, { skip }, async () => {
            const { page, done } = await openWith('library', { colorScheme, phone });
            const shot = (name) => process.env.PARLEY_SHOTS && page.screenshot({ path: join(process.env.PARLEY_SHOTS, `offers-${name}-${colorScheme}-${phone ? 'phone' : 'desktop'}.png`) });
            await open(page);
            await offer(page, 'broken').click();
            await offers(page).getByText('the shelf is empty').waitFor();
            await checkScreen(page, 'the menu');
            await shot('menu');
            await offer(page, 'greet').click();
            await offers(page).getByLabel('who').waitFor();
            await checkScreen(page, 'the form');
            await shot('form');
            await done();
        });
    }
}
