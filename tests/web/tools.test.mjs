/**
 * Tools that the server runs, on the page: the real server, the trained model, the calculator and
 * MCP servers of fixtures/mcp_tools.mjs. PARLEY_SUMS=40 asks so many sums. Skipped where the program
 * or the model is absent.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SAMPLES, becomes, checkScreen, lastAnswer, launch, openChat, openSettings, send, until, written } from './helpers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const program = process.env.PARLEY_BIN ?? join(root, 'build/parley');
const model = join(root, 'assets/seedling');
const skip = !existsSync(program) ? `there is no ${program}` : !existsSync(join(model, 'config.json')) ? 'there is no model' : false;
const SUMS = Number(process.env.PARLEY_SUMS ?? 3);

let browser;
let server;
let url;
const folder = mkdtempSync(join(tmpdir(), 'parley-tools-'));

/** The program, its address, and what ends it. */
async function start(...args) {
    const child = spawn(program, ['serve', '-m', model, '--port', '0', '--alias', 'seedling', '--temp', '0', '--mcp-config', join(folder, 'mcp.json'), '--tools', 'calculator', ...args]);
    const ended = new Promise((resolve) => child.on('exit', resolve));
    let log = '';
    let address;
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (log += data));
    await until(() => (address = /http:\/\/[\d.]+:\d+\//.exec(log)?.[0]), `the server to be ready: ${log}`, 60_000);
    return { url: address, stop: () => (child.kill('SIGTERM'), ended) };
}

before(async () => {
    if (skip) return;
    const kinds = ['plain', 'slow', 'failing', 'picture'].map((kind) => [kind, { command: process.execPath, args: [join(SAMPLES, 'mcp_tools.mjs'), kind], approval: kind === 'plain' ? 'always' : 'never' }]);
    const mcpServers = { ...Object.fromEntries(kinds), absent: { command: '/no/such/program' } };
    writeFileSync(join(folder, 'mcp.json'), JSON.stringify({ mcpServers }));
    browser = await launch();
    server = await start();
    url = server.url;
});
after(async () => {
    rmSync(folder, { recursive: true });
    if (skip) return;
    await browser.close();
    await server.stop();
});

const toolsButton = (page) => page.locator('[popovertarget=tools]');

/** Turns a server on, or off, for the shown chat. */
async function choose(page, ...labels) {
    await toolsButton(page).click();
    for (const label of labels) await page.locator('#tools .tool-server').filter({ has: page.locator('strong', { hasText: label }) }).getByRole('checkbox').first().click();
    await page.keyboard.press('Escape');
}

async function openWith(label) {
    const opened = await openChat(browser, url);
    await choose(opened.page, label);
    return opened;
}

/** Another chat, with this server. */
async function another(page, label) {
    await page.getByRole('link', { name: 'New chat' }).first().click();
    await page.locator('chat-welcome').waitFor();
    await choose(page, label);
}

const call = (page, i = -1) => page.locator('tool-call').nth(i);

test('which servers there are, what is wrong with one, on and off for each chat', { skip }, async () => {
    const { page, done } = await openChat(browser, url);
    await toolsButton(page).waitFor();
    await openSettings(page, 'This chat');
    const choice = page.locator('#settings tool-choice');
    await choice.getByText('cannot run /no/such/program').waitFor();
    const absent = choice.locator('.tool-server', { hasText: 'absent' });
    assert.equal(await absent.getByRole('checkbox').isDisabled(), true);
    await absent.getByRole('button', { name: 'Try again' }).click();
    await absent.getByText('cannot be used').waitFor();
    const calculator = choice.locator('.tool-server', { hasText: 'calculator' });
    await calculator.getByText('Tools of calculator').click();
    await becomes(() => calculator.innerText(), /Calculates an arithmetic expression[\s\S]*says it only reads · runs without asking/);
    await calculator.getByRole('checkbox').first().check();
    await page.keyboard.press('Escape');
    await page.locator('.own-options', { hasText: 'Tools' }).waitFor();
    await send(page, 'Calculate 123 + 45.');
    await becomes(() => lastAnswer(page), /168/);
    await written(page);
    await page.reload();
    await page.locator('.own-options', { hasText: 'Tools' }).waitFor();
    await becomes(() => call(page).locator('summary').innerText(), /calculate\s+calculator\s+done/);
    await choose(page, 'calculator');
    await page.locator('.own-options', { hasText: 'Tools' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'New chat' }).first().click();
    await becomes(() => page.locator('.own-options').count(), 0, 'another chat has none');
    await done();
});

test(`${SUMS} sums are right, and what the tool brought is folded`, { skip }, async () => {
    const { page, done } = await openWith('calculator');
    let right = 0;
    for (let i = 0; i < SUMS; i += 1) {
        const [a, b] = [100 + i * 37, 11 + i * 13];
        if (i) await another(page, 'calculator');
        await send(page, `Calculate ${a} + ${b}.`);
        const said = await lastAnswer(page);
        await call(page).locator('summary', { hasText: 'done' }).waitFor();
        assert.equal(await call(page).locator('details').getAttribute('open'), null);
        await call(page).locator('summary').click();
        const brought = await call(page).locator('code-block').innerText();
        if (said.replace(/[,. ]/g, '').includes(String(a + b)) && brought.includes(String(a + b))) right += 1;
    }
    console.log(`# ${right} of ${SUMS} sums`);
    assert.equal(right, SUMS);
    await done();
});

test('a call is asked about: once, refused, always; with arguments that can be read', { skip }, async () => {
    const { page, done } = await openWith('plain');
    await send(page, 'Calculate 17 + 25.');
    await call(page).getByText('Nothing runs before you allow it.').waitFor();
    await becomes(() => page.locator('tool-call').count(), 1);
    await becomes(() => call(page).innerText(), /asks first[\s\S]*expression\s+17 \+ 25/);
    await written(page);
    await page.reload(); // the question is still there
    await call(page).getByRole('button', { name: 'Allow once' }).click();
    await becomes(() => lastAnswer(page), /42/);
    await call(page).locator('summary', { hasText: 'done' }).waitFor();
    await becomes(() => page.locator('tool-call').count(), 1);
    await becomes(() => page.locator('chat-message .answer').count(), 1, 'the answer goes on in place');

    await another(page, 'plain');
    await send(page, 'Calculate 30 + 12.');
    await call(page).getByRole('button', { name: 'Refuse' }).click();
    await lastAnswer(page);
    await call(page).locator('summary', { hasText: 'refused' }).waitFor();
    assert.equal(await call(page).locator('code-block').count(), 0);

    await another(page, 'plain');
    await send(page, 'Calculate 40 + 12.');
    await call(page).getByRole('button', { name: 'Always in this chat' }).click();
    await becomes(() => lastAnswer(page), /52/);
    await page.getByRole('button', { name: 'Answer again' }).click();
    await page.getByLabel('Answer 2 of 2').waitFor();
    await becomes(() => lastAnswer(page), /52/);
    await becomes(() => call(page).locator('summary').innerText(), /done/);
    await toolsButton(page).click();
    const plain = page.locator('#tools .tool-server', { hasText: 'plain' });
    await plain.getByText('Tools of plain').click();
    await becomes(() => plain.innerText(), /runs without asking in this chat/);
    await done();
});

test('a call shows how it goes, survives a reload, and is stopped', { skip }, async () => {
    const { page, done } = await openWith('slow');
    await send(page, 'Calculate 17 + 25.');
    await call(page).locator('summary', { hasText: 'at work' }).waitFor();
    await call(page).locator('.tool-progress', { hasText: 'still adding' }).waitFor();
    await call(page).locator('summary', { hasText: /at work · 1/ }).waitFor();
    await written(page);
    await page.reload();
    await call(page).locator('.tool-progress', { hasText: 'still adding' }).waitFor();
    await page.getByRole('button', { name: 'Stop the answer' }).click();
    await page.getByText('You stopped this answer.').waitFor();
    await becomes(() => call(page).locator('summary').innerText(), /stopped|failed/);
    await written(page);
    await page.reload();
    await page.getByText('You stopped this answer.').waitFor();
    await call(page).locator('summary').waitFor();
    await done();
});

test('a call that failed is tried again as another version', { skip }, async () => {
    const { page, done } = await openWith('failing');
    await send(page, 'Calculate 17 + 25.');
    await lastAnswer(page);
    await call(page, 0).locator('summary', { hasText: 'failed' }).click();
    await becomes(() => call(page, 0).innerText(), /out of ink/);
    await call(page, 0).getByRole('button', { name: 'Try this call again' }).click();
    await page.getByLabel('Answer 2 of 2').waitFor();
    await lastAnswer(page);
    await call(page, 0).locator('summary', { hasText: 'done' }).click();
    await becomes(() => call(page, 0).locator('code-block').innerText(), /42/);
    await page.getByRole('button', { name: 'Earlier answer' }).click();
    await call(page, 0).locator('summary', { hasText: 'failed' }).waitFor();
    await done();
});

test('an image of a result is shown, kept, goes along, and goes out with the chat', { skip }, async () => {
    const { page, done } = await openWith('picture');
    await send(page, 'Calculate 17 + 25.');
    await lastAnswer(page);
    const image = call(page, 0).locator('.tool-images img');
    const isThere = () => image.evaluate((one) => /** @type {HTMLImageElement} */ (one).decode().then(() => [one.naturalWidth, one.naturalHeight]));
    assert.deepEqual(await isThere(), [24, 16]);
    await written(page);
    await page.reload();
    await image.waitFor();
    await becomes(() => isThere(), [24, 16]);
    const input = await page.evaluate(async () => {
        const { toInput, shownPath } = await import(new URL('js/state/store.js', document.baseURI).href);
        const { blobToDataUri } = await import(new URL('js/util.js', document.baseURI).href);
        const { chat } = /** @type {any} */ (document.querySelector('parley-app'));
        return toInput(shownPath(chat.current), ({ blob }) => blobToDataUri(blob));
    });
    const item = input.find(({ type }) => type === 'mcp_call');
    assert.equal(item.server_label, 'picture');
    assert.match(item.images[0], /^data:image\/png;base64,iVBOR/);
    await send(page, 'Thanks.');
    await page.waitForFunction(() => document.querySelectorAll('chat-message .answer').length === 2);
    await lastAnswer(page);
    assert.equal(await page.locator('.failure').count(), 0);
    await openSettings(page, 'This browser');
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export all' }).click()]);
    const [chat] = JSON.parse(readFileSync(await file.path(), 'utf8')).chats;
    const answer = chat.messages.find(({ tools }) => tools);
    assert.equal(answer.attachments[0].tool, answer.tools[0].id);
    const [again, before] = await page.evaluate(async (text) => {
        const { fromJson } = await import(new URL('js/state/transfer.js', document.baseURI).href);
        const { chat } = /** @type {any} */ (document.querySelector('parley-app'));
        const called = ({ messages, options }) => [options, Object.values(messages).filter(({ tools }) => tools).map(({ tools, attachments }) => [tools[0].server, tools[0].output, tools[0].id === attachments[0].tool, attachments[0].blob.size])];
        return [fromJson(text)[0], chat.current].map((one) => JSON.stringify(called(one)));
    }, readFileSync(await file.path(), 'utf8'));
    assert.deepEqual(again, before, 'and comes in again');
    await done();
});

test('with --history another device has the calls, too; without the server both read them', { skip }, async () => {
    const keeper = await start('--history', join(folder, 'history'));
    const device = async () => {
        const opened = await openChat(browser, keeper.url, { serviceWorkers: 'allow' });
        await opened.page.evaluate(() => navigator.serviceWorker.ready);
        await opened.page.waitForFunction(() => navigator.serviceWorker.controller);
        return opened;
    };
    const first = await device();
    await choose(first.page, 'picture');
    await send(first.page, 'Calculate 17 + 25.');
    await lastAnswer(first.page);
    await written(first.page);
    const chats = async (path = '') => (await fetch(new URL(`v1/history/chats${path}`, keeper.url))).json();
    await until(async () => {
        const [chat] = (await chats()).data;
        return chat && (await chats(`/${chat.id}`)).messages.at(-1).status === 'done';
    }, 'the chat to be kept');
    const second = await device();
    await second.page.locator('.chat-list .entry-title').first().click();
    const shown = async ({ page }) => {
        await call(page, 0).locator('summary', { hasText: 'done' }).waitFor();
        const image = call(page, 0).locator('.tool-images img');
        await image.waitFor();
        await becomes(() => image.evaluate((one) => /** @type {HTMLImageElement} */ (one).decode().then(() => [one.naturalWidth, one.naturalHeight])), [24, 16]);
    };
    await shown(second);
    await written(second.page);
    await keeper.stop();
    for (const one of [first, second]) {
        await one.page.reload();
        await one.page.locator('.trouble').waitFor();
        await shown(one);
        await call(one.page, 0).locator('summary').click();
        await becomes(() => call(one.page, 0).innerText(), /calculate[\s\S]*picture/);
        await one.done();
    }
});

// PARLEY_SHOTS=FOLDER keeps screenshots, then of all four looks.
for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    for (const phone of process.env.PARLEY_SHOTS ? [false, true] : [colorScheme === 'dark']) {
        test(`axe finds nothing serious in calls, the menu and the settings: ${colorScheme}, ${phone ? 'phone' : 'desktop'}`, { skip }, async () => {
            const { page, done } = await openChat(browser, url, { colorScheme, phone });
            const shot = (name) => process.env.PARLEY_SHOTS && page.screenshot({ path: join(process.env.PARLEY_SHOTS, `tools-${name}-${colorScheme}-${phone ? 'phone' : 'desktop'}.png`) });
            await choose(page, 'plain', 'picture');
            await choose(page, 'plain');
            await send(page, 'Calculate 17 + 25.');
            await lastAnswer(page);
            await call(page).locator('summary').click();
            await call(page).locator('.tool-images img').waitFor();
            await checkScreen(page, 'a call with an image');
            await shot('done');
            await choose(page, 'picture', 'plain');
            await page.getByRole('button', { name: 'Answer again' }).click();
            await call(page).getByRole('button', { name: 'Allow once' }).waitFor();
            await checkScreen(page, 'a call that is asked about');
            await shot('asks');
            await toolsButton(page).click();
            await page.locator('#tools').getByText('Tools of plain').click();
            await page.locator('#tools').getByText('cannot run /no/such/program').waitFor();
            await checkScreen(page, 'the menu');
            await shot('menu');
            await page.keyboard.press('Escape');
            await openSettings(page, 'This chat');
            await page.locator('#settings').getByText('cannot run /no/such/program').waitFor();
            await page.locator('#settings tool-choice').scrollIntoViewIfNeeded();
            await checkScreen(page, 'the settings');
            await shot('settings');
            await done();
        });
    }
}
