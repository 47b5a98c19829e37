/** The states of the page and what it says in each, the server's own page, and what a person may
 * choose. */
import assert from 'node:assert/strict';
import test, { after, afterEach, before, beforeEach } from 'node:test';
import { becomes, lastAnswer, launch, openChat, openSettings, send, until } from './helpers.mjs';
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

const trouble = (page, text) => page.locator('.trouble', { hasText: text }).waitFor();

test('loading has a bar, a question waits for it; draining says so, and what is sent waits for the next server', async () => {
    server.options.state = 'loading';
    const { port } = new URL(server.url);
    const { page, done } = await openChat(browser, server.url);
    await trouble(page, 'The model is being loaded');
    server.send({ type: 'server.status', state: 'loading', progress: 0.4 });
    await until(() => page.locator('.trouble progress').evaluate((bar) => bar.value === 0.4), 'the bar');
    await send(page, 'say early');
    await page.locator('.working-text', { hasText: 'Waiting for the server' }).waitFor();
    assert.equal(server.requests.length, 0);
    server.options.state = 'ready';
    server.send({ type: 'server.status', state: 'ready', progress: 1 });
    await becomes(() => lastAnswer(page), 'early');
    server.send({ type: 'server.status', state: 'draining' });
    await trouble(page, 'about to stop or restart');
    await send(page, 'say late');
    await page.locator('.working-text', { hasText: 'Waiting for the server' }).waitFor();
    await server.close();
    await page.evaluate(() => {
        window.heard = [];
        const region = document.getElementById('live-status');
        new MutationObserver(() => window.heard.push(region.textContent)).observe(region, { childList: true });
    });
    await trouble(page, /Next try in \d+ s/);
    server = await startMock({ port: Number(port), version: '0.2.0' });
    await page.getByRole('button', { name: 'Try now' }).click({ timeout: 2000 }).catch(() => {}); // the page's own try may have been faster
    await becomes(() => lastAnswer(page), 'late');
    await until(() => page.evaluate(() => window.heard.includes('Connected again.')));
    await page.getByText('The server was updated.').waitFor();
    await becomes(() => page.getByRole('button', { name: 'Reload' }).count(), 1);
    await done();
});

test('offline: the page says so, chats can be read, and the question goes out afterwards', async () => {
    const { page, context, done } = await openChat(browser, server.url);
    await send(page, 'say before');
    await lastAnswer(page);
    await context.setOffline(true);
    server.drop();
    await trouble(page, 'This device is offline');
    await send(page, 'say after');
    await page.locator('.working-text', { hasText: 'Waiting for the server' }).waitFor();
    await page.getByRole('link', { name: 'New chat' }).click();
    await page.locator('.entry a').click();
    await page.locator('.answer', { hasText: 'before' }).waitFor();
    await context.setOffline(false);
    await until(async () => (await lastAnswer(page)) === 'after', 'the answer');
    await done();
});

test('a wrong key is told from a missing one', async () => {
    server.options.key = 'right';
    const { page, done } = await openChat(browser, server.url);
    await trouble(page, 'The server asks for an API key');
    await page.getByRole('button', { name: 'Enter it' }).click();
    await until(() => page.evaluate(() => document.activeElement?.id === 'api-key'), 'the field to have the focus');
    await page.keyboard.type('wro');
    await page.evaluate(() => {
        const app = document.querySelector('parley-app');
        app.requestUpdate();
        return app.updateComplete;
    });
    await page.keyboard.type('ng');
    await becomes(() => page.getByLabel('API key').inputValue(), 'wrong', 'rendering takes nothing away');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Escape');
    await trouble(page, 'does not accept this API key');
    await done();
});

test('a browser without room says so, once, and saves again when there is some', async () => {
    const { page, done } = await openChat(browser, server.url);
    await page.evaluate(() => {
        const put = IDBObjectStore.prototype.put;
        IDBObjectStore.prototype.put = function (...args) {
            if (window.roomy) return put.apply(this, args);
            throw new DOMException('full', 'QuotaExceededError');
        };
    });
    await send(page, 'say one');
    await lastAnswer(page);
    await page.locator('.notice', { hasText: 'no more room' }).waitFor();
    assert.equal(await page.locator('.entry').count(), 0);
    await page.evaluate(() => (window.roomy = true));
    await send(page, 'say two');
    await becomes(() => lastAnswer(page), 'two');
    await page.locator('.entry').waitFor();
    await page.reload();
    await becomes(() => lastAnswer(page), 'two');
    await done();
});

test('the server status: charts grow, a request is listed and can be stopped', async () => {
    server.options.holdAfter = 20;
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'long');
    await page.locator('.answer').getByText('word19').first().waitFor();
    await page.locator('.model-button').click();
    await page.getByRole('button', { name: 'Server status' }).click();
    const dialog = page.locator('dialog#status');
    await until(async () => (await dialog.locator('.chart polyline').count()) === 3, 'three charts');
    const points = () => dialog.locator('.chart polyline').first().evaluate((line) => line.points.length);
    const first = await points();
    await until(async () => (await points()) > first, 'the chart to grow');
    const words = await dialog.innerText();
    assert.match(words, /1 run, 0 wait/);
    assert.match(words, /answering · \d+ tokens · 42\.5 tokens\/s/);
    assert.match(words, /Kernels\s+avx2/);
    assert.match(words, /Drafts kept\s+75 % of 200/);
    await dialog.getByRole('button', { name: 'Stop' }).click();
    await until(() => server.cancels.length === 1, 'the request to be stopped');
    await dialog.getByText('Nothing runs or waits').waitFor();
    await page.keyboard.press('Escape');
    const asked = await page.evaluate(() => performance.getEntriesByName(new URL('v1/status', document.baseURI).href).length);
    await page.getByText('You stopped this answer.').waitFor();
    assert.ok(asked >= 2);
    await done();
});

test('sampling belongs to the chat, the model’s own values are shown, and new chats can begin like one', async () => {
    const { page, done } = await openChat(browser, server.url);
    const settings = async (work) => {
        await page.keyboard.press('Control+,');
        await page.locator('dialog#settings[open]').waitFor();
        await work();
        await page.keyboard.press('Escape');
        await until(async () => (await page.locator('dialog[open]').count()) === 0, 'the dialog to close');
    };
    const field = (name) => page.getByLabel(name, { exact: true });
    await settings(async () => {
        // The server is asked for them when the dialog opens.
        await until(async () => (await field('Temperature').getAttribute('placeholder')) === '0.3 (model)', "the model's own values");
        assert.equal(await field('Max tokens').getAttribute('placeholder'), '2048 (model)');
        await field('Temperature').fill('9');
        await page.getByText('More sampling').click();
        await becomes(() => field('Top k').getAttribute('placeholder'), '20 (model)');
        await field('Top k').fill('5');
        await field('Seed').fill('7');
        await field('System prompt').fill('Be brief.');
        await field('Top p').focus();
    });
    await send(page, 'say first');
    await lastAnswer(page);
    const { temperature, top_k, seed, instructions } = server.requests[0].body;
    assert.deepEqual({ temperature, top_k, seed, instructions }, { temperature: 2, top_k: 5, seed: 7, instructions: 'Be brief.' });
    await page.keyboard.press('Control+Shift+O');
    await send(page, 'say second');
    await lastAnswer(page);
    assert.equal(server.requests[1].body.temperature, undefined);
    await page.locator('.entry', { hasText: 'say first' }).locator('a').click();
    await page.locator('.answer', { hasText: 'first' }).waitFor();
    await page.reload();
    await page.locator('.answer', { hasText: 'first' }).waitFor();
    await settings(async () => {
        assert.equal(await field('Temperature').inputValue(), '2');
        await page.getByRole('button', { name: 'New chats begin like this one' }).click();
    });
    await page.keyboard.press('Control+Shift+O');
    await send(page, 'say third');
    await lastAnswer(page);
    assert.equal(server.requests[2].body.seed, 7);
    await done();
});

test('the introduction: what the model can do; it is closed, opens on request, and follows the model', async () => {
    const { page, done } = await openChat(browser, server.url);
    const introduction = page.locator('.introduction');
    await introduction.locator('summary').waitFor();
    assert.equal(await introduction.getByText('Drawn shapes').isVisible(), false);
    await introduction.locator('summary').click();
    await introduction.getByText('Drawn shapes').waitFor();
    await becomes(() => introduction.innerText(), /It can[\s\S]+It cannot[\s\S]+Photographs[\s\S]+parley -m DIR/);
    await page.getByRole('button', { name: 'Got it' }).click();
    await becomes(() => introduction.getByText('Drawn shapes').isVisible(), false);
    Object.assign(server.options, { model: 'qwen3.5-9b', modalities: ['text'] });
    await page.reload();
    await introduction.getByText('What Qwen3.5-9b can do').waitFor();
    await becomes(() => introduction.getByText('See images').isVisible(), false);
    await introduction.locator('summary').click();
    await introduction.getByText('See images or videos.').waitFor();
    await becomes(() => page.locator('.sample').count(), 3);
    await becomes(() => page.locator('.sample img').count(), 0);
    await page.locator('.sample').nth(1).click();
    await becomes(() => lastAnswer(page), /Capital of Australia/);
    await openSettings(page, 'This browser');
    await page.getByRole('button', { name: 'Show the introduction' }).click();
    await introduction.getByText('See images or videos.').waitFor();
    await done();
});

test('shortcuts: search, settings, delete; none works behind a dialog', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say apple');
    await lastAnswer(page);
    await page.keyboard.press('Control+b');
    await page.keyboard.press('Control+k');
    await until(() => page.evaluate(() => document.activeElement?.matches('.search input')), 'the search to have the focus');
    await page.keyboard.type('pear');
    await page.getByText('No chat has these words.').waitFor();
    await page.keyboard.press('Control+/');
    await becomes(() => page.locator('dialog#keys').innerText(), /Search the chats/);
    await page.keyboard.press('Control+Shift+O');
    await becomes(() => page.locator('.answer').count(), 1);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+Shift+Backspace');
    await page.locator('chat-welcome').waitFor();
    await page.getByText('“say apple” deleted.').waitFor();
    await done();
});

test('text size, staying put, less motion, and right-to-left text', async () => {
    server.options.delayMs = 1;
    const { page, done } = await openChat(browser, server.url, { reducedMotion: 'no-preference' });
    await openSettings(page, 'This browser');
    const size = () => page.evaluate(() => parseFloat(getComputedStyle(document.documentElement).fontSize));
    await becomes(() => size(), 16);
    await page.getByText('Larger', { exact: true }).click();
    await becomes(() => size(), 22.4);
    await page.getByText('Small', { exact: true }).click();
    await becomes(() => size(), 14.08);
    await page.getByText('Stay', { exact: true }).click();
    await page.keyboard.press('Escape');
    await send(page, 'long');
    await becomes(() => lastAnswer(page), /word399/);
    await until(() => page.locator('.transcript').evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight > 200), 'it stayed');
    await page.getByRole('button', { name: 'Latest' }).click();
    const animated = () => page.evaluate(() => getComputedStyle(document.querySelector('.send')).transitionDuration);
    assert.notEqual(await animated(), '0s');
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await becomes(() => animated(), '0s');
    await send(page, 'say שלום לכולם\n\n- אחת\n\nand English again');
    await lastAnswer(page);
    const directions = await page.locator('.answer').last().locator('.prose > *').evaluateAll((all) => all.map((e) => getComputedStyle(e).direction));
    assert.deepEqual(directions, ['rtl', 'rtl', 'ltr']);
    await done();
});
