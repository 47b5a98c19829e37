/** The page without its server: opened from what the service worker kept, with the chats readable;
 * and what other programs share with it. */
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { lastAnswer, launch, openChat, send, until } from './helpers.mjs';
import { startMock } from './mock_server.mjs';
import { begun, skip, startServer } from './two_places.mjs';

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

/** A page whose shell is kept. */
async function kept(url) {
    const chat = await openChat(browser, url, { serviceWorkers: 'allow' });
    await chat.page.evaluate(() => navigator.serviceWorker.ready);
    await chat.page.waitForFunction(() => navigator.serviceWorker.controller);
    return chat;
}

test('without the server the page opens, and the chats of this browser are read', async () => {
    const server = await startMock({ delayMs: 0, scripted: { 'Show code': 'fixture markdown.md' } });
    const { page, done } = await kept(server.url);
    await send(page, 'Show code');
    await lastAnswer(page);
    await page.locator('pre .tok-keyword').first().waitFor();
    await page.locator('math').first().waitFor({ state: 'attached' }); // all that the answer needs was fetched once
    const { hash } = new URL(page.url());
    await server.close();
    await page.reload();
    await page.locator('.entry-title', { hasText: 'Show code' }).waitFor();
    await page.locator('.answer h3, .answer h2, .answer table').first().waitFor();
    await page.locator('pre .tok-keyword').first().waitFor();
    await page.locator('math').first().waitFor({ state: 'attached' });
    await page.locator('.trouble').waitFor();
    assert.equal(new URL(page.url()).hash, hash);
    await page.getByLabel('Your message').fill('/');
    await page.getByRole('option').first().waitFor();
    await done();
});

test('a page of an updated server is the new one; what fails there is what was kept', async () => {
    const server = await startMock({ delayMs: 0 });
    const { page, context, done } = await kept(server.url);
    const { port } = new URL(server.url);
    await server.close();
    const { createServer } = await import('node:http');
    let status = 200;
    const other = createServer((request, reply) => {
        reply.writeHead(request.url === '/' ? status : 404, { 'Content-Type': 'text/html' });
        reply.end(status === 200 ? '<title>New</title>' : 'Bad gateway');
    });
    await new Promise((resolve) => other.listen(Number(port), '127.0.0.1', () => resolve(undefined)));
    const second = await context.newPage();
    await second.goto(server.url);
    assert.equal(await second.title(), 'New');
    status = 502;
    await second.goto(server.url);
    assert.equal(await second.title(), 'New', 'what was kept last');
    await second.close();
    await page.close();
    other.closeAllConnections();
    other.close();
    await done();
});

test('chats that the server keeps are read without it, as they were seen last', { skip }, async () => {
    const server = await startServer(true);
    const { page, done } = await kept(server.url);
    await begun(page);
    await send(page, 'hello');
    await lastAnswer(page);
    await until(() => page.evaluate(async () => {
        const { history, current } = document.querySelector('parley-app').chat;
        return (await history.copy.get(current.id))?.messages[current.head]?.status === 'done';
    }), 'the copy');
    await server.stop();
    await page.reload();
    await page.locator('.entry-title', { hasText: 'hello' }).waitFor();
    await page.locator('.answer', { hasText: 'You said: hello' }).waitFor();
    await done();
});

test('what is shared with the page goes into its field, once', async () => {
    const server = await startMock({ delayMs: 0 });
    const { page, done } = await kept(server.url);
    const manifest = await (await fetch(new URL('manifest.webmanifest', server.url))).json();
    const { action, params } = manifest.share_target;
    await page.evaluate(async ({ address, names }) => {
        const form = new FormData();
        form.append(names.title, 'A page');
        form.append(names.url, 'https://example.org/');
        form.append(names.files[0].name, new File(['some words'], 'nötes.txt', { type: 'text/plain' }));
        await fetch(address, { method: 'POST', body: form, redirect: 'manual' });
    }, { address: action, names: params });
    await page.goto(`${server.url}?shared`);
    await page.getByRole('button', { name: 'Open nötes.txt' }).waitFor();
    assert.equal(await page.getByLabel('Your message').inputValue(), 'A page\nhttps://example.org/');
    assert.equal(page.url(), server.url);
    await page.goto(`${server.url}?shared`);
    await page.locator('chat-composer textarea').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Open nötes.txt' }).count(), 0);
    await done();
    await server.close();
});
