/**
 * The page with the real server and a trained model. Needs PARLEY_BIN (or build/parley) and the
 * default model in assets/seedling, or PARLEY_MODEL; skipped where they are absent.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SAMPLES, becomes, lastAnswer, launch, openChat, send, until } from './helpers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const program = process.env.PARLEY_BIN ?? join(root, 'build/parley');
const model = [process.env.PARLEY_MODEL, join(root, 'assets/seedling'), join(process.env.PARLEY_SHARED ?? join(root, '../shared'), 'seedling/model')].find(
    (folder) => folder && existsSync(join(folder, 'config.json')),
);
const skip = !existsSync(program) ? `there is no ${program}` : !model ? 'there is no model' : false;

let browser;
let server;
let url;
let log = '';
before(async () => {
    if (skip) return;
    browser = await launch();
    server = spawn(program, ['serve', '-m', /** @type {string} */ (model), '--port', '0', '--alias', 'seedling', '--temp', '0']);
    for (const stream of [server.stdout, server.stderr]) stream.on('data', (data) => (log += data));
    await until(() => {
        url = /http:\/\/[\d.]+:\d+\//.exec(log)?.[0];
        return url;
    }, `the server to be ready: ${log}`, 60_000);
});
after(async () => {
    if (skip) return;
    await browser.close();
    server.kill('SIGTERM');
    await new Promise((resolve) => server.on('exit', resolve));
});

const status = async () => (await (await fetch(new URL('v1/status', url))).json()).totals;

test('the page comes up and knows the model', { skip }, async () => {
    const { page, done } = await openChat(browser, url);
    await page.locator('.model-name', { hasText: 'Seedling' }).waitFor();
    await page.locator('.dot.good').waitFor();
    await page.locator('.model-button').click();
    await page.getByRole('button', { name: 'About Seedling' }).click();
    const facts = await page.locator('dialog#model').innerText();
    assert.match(facts, /Context\s+32\s768 tokens/);
    assert.match(facts, /16 bits a weight/);
    assert.match(facts, /by WebSocket/);
    await done();
});

test('a text question is answered by the model', { skip }, async () => {
    const { page, done } = await openChat(browser, url);
    await send(page, 'Who are you?');
    await becomes(() => lastAnswer(page), /I am Seedling/);
    await becomes(() => page.locator('.figures').innerText(), /tokens\/s.*First token.*text route/s);
    await send(page, 'Capital of Australia?');
    await becomes(() => lastAnswer(page), /Canberra/);
    await done();
});

test('a dropped image is described rightly, by the media route', { skip }, async () => {
    const { page, done } = await openChat(browser, url);
    await page.getByLabel('Add images').setInputFiles(join(SAMPLES, 'shapes.jpg'));
    await page.locator('.tray .thumb img').waitFor();
    await send(page, 'Describe the image.');
    const text = await lastAnswer(page);
    for (const word of ['red cross', 'triangle', 'yellow background']) assert.ok(text.includes(word), text);
    assert.match(await page.locator('.figures').innerText(), /media route/);
    await done();
});

test('all samples of the empty state are answered', { skip }, async () => {
    const { page, done } = await openChat(browser, url);
    await page.locator('.sample').nth(2).waitFor();
    assert.match(await page.locator('.samples').innerText(), /Describe an image[\s\S]*Read a video[\s\S]*Think about a sum/);
    for (let i = 0; i < 3; i += 1) {
        await page.locator('.sample').nth(i).click();
        const text = await lastAnswer(page);
        assert.match(text, [/hexagon/, /orange/, /85/][i]);
        assert.equal(await page.locator('.failure').count(), 0);
        await page.keyboard.press('Control+Shift+O');
        await page.locator('chat-welcome').waitFor();
    }
    await done();
});

test('thinking comes folded', { skip }, async () => {
    const { page, done } = await openChat(browser, url);
    await page.getByRole('button', { name: 'Think', exact: true }).click();
    await send(page, '12 x 1 = ?');
    await becomes(() => lastAnswer(page), /12/);
    await becomes(() => page.locator('.thinking summary').innerText(), /Thought for/);
    await done();
});

test('a damaged image gives words, and the next question is answered', { skip }, async () => {
    const { page, done } = await openChat(browser, url);
    // Long enough that a browser opens it, cut so that the server does not.
    await page.getByLabel('Add images').setInputFiles({
        name: 'cut.gif',
        mimeType: 'image/gif',
        buffer: Buffer.from('R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQB', 'base64'),
    });
    await until(async () => (await page.locator('.tray .thumb img').count()) + (await page.locator('.refused').count()) > 0);
    if ((await page.locator('.tray .thumb').count()) > 0) {
        await send(page, 'What is it?');
        await lastAnswer(page);
    }
    await page.keyboard.press('Control+Shift+O');
    await send(page, 'Capital of Australia?');
    await becomes(() => lastAnswer(page), /Canberra/);
    await done();
});

test('an answer that is cut anywhere and continued is the whole answer', { skip }, async () => {
    const ask = async (more) => {
        const body = { messages: [{ role: 'user', content: 'Who are you?' }], ...more };
        const reply = await fetch(new URL('v1/chat/completions', url), {
            method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
        });
        return (await reply.json()).choices[0].message.content;
    };
    const whole = await ask({});
    for (const n of [1, 6, 13]) {
        const half = await ask({ max_tokens: n });
        assert.ok(half.length < whole.length);
        const messages = [{ role: 'user', content: 'Who are you?' }, { role: 'assistant', content: half }];
        assert.equal(half + (await ask({ messages, continue_final_message: true })), whole, `cut after ${n} tokens`);
    }
});

test('stop, then another question', { skip }, async () => {
    const { page, done } = await openChat(browser, url);
    await send(page, 'Tell me a story about a sheep.');
    await until(async () => (await page.locator('.answer > .prose').innerText()).length > 3 || (await page.locator('.figures').count()) > 0);
    const stop = page.getByRole('button', { name: 'Stop the answer' });
    if (await stop.count()) await stop.click({ timeout: 2000 }).catch(() => {});
    await lastAnswer(page);
    await send(page, 'Capital of Australia?');
    await becomes(() => lastAnswer(page), /Canberra/);
    await done();
});

test('an answer goes on after the socket is cut', { skip }, async () => {
    const { page, done } = await openChat(browser, url);
    const question = 'Tell me a story about a sheep.';
    await send(page, question);
    const whole = await lastAnswer(page);
    for (const ms of [0, 30, 120]) {
        await page.keyboard.press('Control+Shift+O');
        await page.locator('chat-welcome').waitFor();
        await send(page, question);
        await page.waitForTimeout(ms);
        await page.evaluate(() => document.querySelector('parley-app').chat.connection.socket?.close());
        assert.equal(await lastAnswer(page), whole, `cut after ${ms} ms`);
    }
    await done();
});

test('without WebSocket the real server answers over server-sent events, also over a reload and a cut', { skip }, async () => {
    const { page, context, done } = await openChat(browser, url);
    await context.addInitScript(() => {
        window.WebSocket = class {
            constructor() {
                throw new Error('blocked');
            }
        };
    });
    await page.reload();
    await page.getByLabel('Add images').setInputFiles(join(SAMPLES, 'outlines.png'));
    await page.locator('.tray .thumb img').waitFor();
    await send(page, 'Which object is the leftmost?');
    await becomes(() => lastAnswer(page), /red ring/);
    await becomes(() => page.locator('.figures').innerText(), /media route/);
    const story = async (meanwhile) => {
        await page.keyboard.press('Control+Shift+O');
        await page.locator('chat-welcome').waitFor();
        await send(page, 'Tell me a story about a sheep.');
        await page.locator('.entry.current').waitFor(); // it is kept
        await meanwhile();
        return lastAnswer(page);
    };
    const whole = await story(() => {});
    const { requests } = await status();
    assert.equal(await story(() => page.reload()), whole);
    // The first reply breaks off in its middle, as where a proxy gives up.
    await page.route('**/v1/responses', async (route) => {
        const reply = await route.fetch();
        const body = await reply.text();
        await route.fulfill({ response: reply, body: body.slice(0, body.length / 2) });
    });
    assert.equal(await story(() => {}), whole);
    assert.equal((await status()).requests, requests + 2, 'nothing was answered twice');
    await done();
});

test('a video shows its frames, is trimmed, and is answered about', { skip }, async () => {
    const { page, done } = await openChat(browser, url);
    await page.locator('.dot.good').waitFor();
    await page.locator('chat-composer input[multiple]').setInputFiles(join(root, 'assets/samples/ball-moves.mp4'));
    const strip = page.locator('video-strip');
    await strip.getByText('Frames', { exact: true }).click();
    await strip.locator('.video-frames canvas').nth(7).waitFor();
    await becomes(() => strip.innerText(), /about 8 frames/);
    // The red ball is somewhere else in every frame.
    const redAt = () =>
        strip.locator('.video-frames canvas').evaluateAll((list) =>
            list.map((canvas) => {
                const { data } = canvas.getContext('2d').getImageData(0, canvas.height / 2, canvas.width, 1);
                const red = Array.from({ length: canvas.width }, (_, x) => x).filter((x) => data[4 * x + 3] && data[4 * x] > 150 && data[4 * x + 1] < 100);
                return red.length ? red.reduce((a, b) => a + b) / red.length : -1;
            }),
        );
    await until(async () => (await redAt()).every((x) => x >= 0), 'every frame to be drawn');
    const places = await redAt();
    assert.ok(places.every((x, i) => i === 0 || x > places[i - 1]), String(places));
    await strip.getByLabel('Frames a second').selectOption('1');
    await until(async () => (await strip.locator('.video-frames canvas').count()) === 4, 'half of the frames to go');
    await strip.getByLabel('Start of').fill('2000');
    await until(async () => /0:02 – 0:04/.test(await strip.innerText()), 'the trim handle to be read');
    if (process.env.PARLEY_SHOTS) await page.screenshot({ path: join(process.env.PARLEY_SHOTS, 'video.png') });
    await send(page, 'Which way does the circle move?');
    await becomes(() => lastAnswer(page), /right/);
    await until(() => page.locator('video.image').isVisible());
    await done();
});
