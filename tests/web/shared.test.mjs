/** A chat behind a link: made and taken back in the page, read by who has no key and nothing of it. */
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { becomes, checkLooks, lastAnswer, launch, ofChat, openChat, send, until, watch } from './helpers.mjs';
import { begun, skip, startServer } from './two_places.mjs';

const KEY = 'the-key-of-this-test';
let browser;
let server;
before(async () => {
    if (skip) return;
    browser = await launch();
    server = await startServer(true, ['--key', KEY]);
});
after(async () => {
    await browser?.close();
    await server?.stop();
});

/** The page with its key; the requests of it that were refused for their first, keyless moment do not count. */
async function withKey(options) {
    const opened = await openChat(browser, server.url, options);
    await opened.page.evaluate((apiKey) => localStorage.setItem('parley.settings', JSON.stringify({ apiKey })), KEY);
    await opened.page.reload();
    await begun(opened.page);
    return opened;
}

test('a link is made by keys alone, and shows the chat with its image, and nothing else, to who has no key', { skip }, async () => {
    const { page, context } = await withKey();
    await page.getByLabel('Add images').setInputFiles(new URL('fixtures/outlines.png', import.meta.url).pathname);
    await page.locator('.tray .thumb img').waitFor();
    await send(page, 'what is **shown**?');
    await lastAnswer(page);
    await until(() => page.evaluate(() => !document.querySelector('parley-app').chat.history.writes.size), 'the chat to be kept');
    await page.locator('.entry').hover();
    await ofChat(page, 'Share a link', 'what is **shown**?');
    const dialog = page.getByRole('dialog', { name: 'Share a link' });
    const make = dialog.getByRole('button', { name: 'Make a link' });
    await until(() => make.isEnabled(), 'the links that there are');
    await make.focus();
    await page.keyboard.press('Enter');
    const field = dialog.getByRole('textbox', { name: 'Link' });
    await field.waitFor();
    const url = await field.inputValue();
    assert.match(url, /\/shared\.html#[0-9a-f]{32}$/);
    await dialog.getByText('Made on').waitFor();
    await checkLooks(page, 'links to a chat');
    await page.keyboard.press('Escape');
    await until(async () => (await page.locator('#share').count()) === 0, 'the dialog to go');
    await send(page, 'said later');
    await lastAnswer(page);

    // Somebody else: another browser, without the key.
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
        const other = await browser.newContext({ colorScheme, ...(colorScheme === 'dark' ? { viewport: { width: 390, height: 844 } } : {}) });
        const reader = await other.newPage();
        const faults = [];
        const asked = [];
        watch(reader, server.url, faults);
        reader.on('request', (request) => asked.push([new URL(request.url()).pathname, request.headers().authorization]));
        await reader.goto(url);
        await reader.locator('.bubble', { hasText: 'what is **shown**?' }).waitFor();
        await until(() => reader.locator('img').evaluateAll((all) => all.length === 1 && all[0].naturalWidth > 0), 'the image');
        assert.ok((await reader.locator('.answer .prose').innerText()).length > 0);
        assert.equal(await reader.getByText('said later').count(), 0);
        assert.equal(await reader.locator('textarea, input, form').count(), 0);
        assert.ok(await reader.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
        await checkLooks(reader, 'a shared chat');
        const token = url.split('#')[1];
        assert.ok(asked.every(([path, key]) => !key && (!path.startsWith('/v1/') || path.startsWith(`/v1/shared/${token}`))), JSON.stringify(asked));
        assert.equal(await reader.evaluate(() => localStorage.length + document.cookie.length), 0);
        assert.equal(await reader.locator('meta[name=robots]').getAttribute('content'), 'noindex, nofollow');
        await reader.getByRole('button', { name: 'Show outlines.png large' }).focus();
        await reader.keyboard.press('Enter');
        await reader.locator('dialog#image[open] img').waitFor();
        await reader.keyboard.press('Escape');
        assert.deepEqual(faults, []);
        await other.close();
    }

    // Taken back it shows nothing, and says so.
    await ofChat(page, 'Share a link', 'what is **shown**?');
    const takeBack = dialog.getByRole('button', { name: 'Take back' });
    await until(() => takeBack.isEnabled(), 'the link');
    await takeBack.focus();
    await page.keyboard.press('Enter');
    await until(async () => (await field.count()) === 0, 'the link to go');
    const reader = await browser.newPage();
    await reader.goto(url);
    await reader.getByText('There is no such link').waitFor();
    assert.equal(await reader.getByRole('button', { name: 'Try again' }).count(), 0);
    assert.equal(await reader.locator('.bubble').count(), 0);
    await reader.close();
    await context.close();
});

test('what models write does nothing on that page either; a server that is away is said, and asked again', { skip }, async () => {
    const page = await browser.newPage();
    const bad = '<img src=x onerror="hit=1"><script>hit=1</script> [x](javascript:hit=1) ![x](http://127.0.0.1:9/x.png)\n\n```html\n<b>shown</b>\n```';
    const chat = { object: 'shared.chat', title: '<b>hit</b>', created: Date.now(), expires: Date.now() + 86_400_000, messages: [
        { id: 'a', role: 'user', text: bad, attachments: [{ kind: 'image', name: 'gone.png', mime: 'image/png', width: 2, height: 2, bytes: 2, sha256: '0'.repeat(64) }] },
        { id: 'b', parent: 'a', role: 'assistant', text: bad }, { id: 'c', parent: 'b', role: 'user', text: '', erased: true },
    ] };
    let away = true;
    let busy = true;
    await page.route('**/v1/shared/**', (route) => (away ? route.abort() : busy ? route.fulfill({ status: 503, json: { error: { message: 'The server is busy.' } } }) : route.request().url().includes('/files/') ? route.fulfill({ status: 404, json: {} }) : route.fulfill({ json: chat })));
    await page.goto(`${server.url}shared.html#${'0'.repeat(32)}`);
    await page.getByText('The server cannot be reached.').waitFor();
    away = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('The server is busy.').waitFor();
    busy = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: '<b>hit</b>' }).waitFor();
    await page.getByText('The link ends on').waitFor();
    await page.getByText('gone.png is no longer kept').waitFor();
    assert.equal(await page.locator('.question').count(), 1, 'a deleted message is not there');
    assert.equal(await page.locator('img, a[href^="javascript"]').count(), 0);
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.frameLocator('.preview-frame iframe').getByText('shown').waitFor();
    await page.keyboard.press('Escape');
    await until(async () => (await page.locator('iframe').count()) === 0, 'the preview to close');
    await becomes(() => page.evaluate(() => window.hit), undefined);
    await page.close();
});
