/** Small things that stand in a user's way when they are wrong: focus, keys, names, what is pasted. */
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { titleOf } from '../../web/js/state/store.js';
import { decodeText } from '../../web/js/documents/encoding.js';
import { formatBytes } from '../../web/js/util.js';
import { becomes, lastAnswer, launch, ofChat, openChat, send, until } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

const VIDEO = join(dirname(fileURLToPath(import.meta.url)), '../../assets/samples/color-changes.webm');
let browser;
let server;
before(async () => {
    browser = await launch();
    server = await startMock({ delayMs: 0 });
});
after(async () => {
    await browser.close();
    await server.close();
});

const active = (page) => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.localName);

test('Escape in the search field empties it, and no answer stops', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say first');
    await lastAnswer(page);
    server.options.holdAfter = 3;
    await send(page, 'say one two three four five');
    await page.getByRole('button', { name: 'Stop the answer' }).waitFor();
    const search = page.getByLabel('Search chats');
    await search.fill('first');
    await search.press('Escape');
    await becomes(() => search.inputValue(), '');
    await search.press('Escape');
    await becomes(() => active(page), 'Your message');
    await becomes(() => page.locator('.answer').last().getAttribute('aria-busy'), 'true');
    await page.keyboard.press('Escape');
    await page.getByText('You stopped this answer.').waitFor();
    server.options.holdAfter = Infinity;
    await done();
});

test('a wrong key says so where it is typed, the right one closes the dialog', async () => {
    server.options.key = 'the-right-key';
    const { page, done } = await openChat(browser, server.url);
    await page.getByRole('button', { name: 'Enter it' }).click();
    const field = page.getByLabel('API key');
    await becomes(() => field.evaluate((one) => one === document.activeElement), true);
    await field.fill('a-wrong-key');
    await field.press('Enter');
    await page.locator('#settings').getByText('The server does not accept this API key.').waitFor();
    await becomes(() => field.getAttribute('aria-invalid'), 'true');
    await field.fill('the-right-key');
    await field.press('Enter');
    await page.getByText('The server accepts this API key.').waitFor();
    await becomes(() => page.locator('dialog[open]').count(), 0);
    await send(page, 'say hello');
    await becomes(() => lastAnswer(page), 'hello');
    server.options.key = '';
    await done();
});

test('the focus has a place after dialogs, edits and new names', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say hello');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'Edit the answer' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await until(async () => (await active(page)) === 'Edit the answer', 'the button again');
    await page.getByRole('button', { name: 'Edit the question' }).click();
    await page.keyboard.press('Escape');
    await until(async () => (await active(page)) === 'Edit the question', 'the button again');
    await page.getByRole('button', { name: 'Edit the answer' }).click();
    await page.getByRole('button', { name: 'Keep' }).click();
    await until(async () => (await active(page)) !== 'body', 'some place');
    await ofChat(page, 'Rename', 'say hello');
    await page.keyboard.type('Another name');
    await page.keyboard.press('Enter');
    await until(async () => (await page.evaluate(() => document.activeElement?.textContent?.trim())) === 'Another name', 'its line');
    await page.keyboard.press('Control+/');
    await page.locator('#keys').waitFor();
    await page.evaluate(() => document.querySelector('.chat-list')?.remove()); // what had the focus is gone
    await page.keyboard.press('Escape');
    await until(async () => (await active(page)) !== 'body', 'some place');
    await done();
});

test('a double click renames a chat that is not open; a new chat begins while the list is hidden', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say older');
    await lastAnswer(page);
    await page.getByRole('link', { name: 'New chat' }).first().click();
    await send(page, 'say newer');
    await lastAnswer(page);
    await page.locator('.entry a', { hasText: 'say older' }).dblclick();
    await page.getByLabel('New name').waitFor();
    await page.waitForTimeout(300); // the chat opens meanwhile
    await page.getByLabel('New name').fill('renamed');
    await page.keyboard.press('Enter');
    await page.locator('.entry a', { hasText: 'renamed' }).waitFor();
    await page.keyboard.press('Control+b');
    await page.locator('.top').getByRole('link', { name: 'New chat' }).click();
    await becomes(() => page.locator('chat-message').count(), 0);
    await done();
});

test('pasted words and images both stay', async () => {
    const { page, done } = await openChat(browser, server.url);
    await page.evaluate(() => {
        const data = new DataTransfer();
        data.setData('text/plain', 'some words');
        const canvas = document.createElement('canvas');
        canvas.width = canvas.height = 40;
        const bytes = Uint8Array.from(atob(canvas.toDataURL('image/png').split(',')[1]), (c) => c.charCodeAt(0));
        data.items.add(new File([bytes], 'shot.png', { type: 'image/png' }));
        const event = new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true });
        window.prevented = !document.querySelector('chat-composer textarea').dispatchEvent(event);
    });
    await page.locator('.tray .thumb img').waitFor();
    assert.equal(await page.evaluate(() => window.prevented), false, 'the browser puts the words into the field');
    await done();
});

test('what waited before a crash says why, and nothing overtakes it', async () => {
    const { page, context, done } = await openChat(browser, server.url);
    server.options.holdAfter = 3;
    await send(page, 'say one two three four five');
    await page.getByRole('button', { name: 'Stop the answer' }).waitFor();
    await page.getByLabel('Your message').fill('say waited');
    await page.getByRole('button', { name: 'Send after this answer' }).click();
    await page.locator('.queue li').waitFor();
    await page.getByRole('button', { name: 'Stop the answer' }).click();
    server.options.holdAfter = Infinity;
    await page.reload();
    await page.getByText('Not sent: the answer before it did not end').waitFor();
    await page.getByLabel('Your message').fill('say later');
    await page.getByLabel('Your message').press('Enter');
    await until(async () => (await page.locator('.answer').count()) === 3, 'both answers');
    await becomes(() => lastAnswer(page), 'later');
    await becomes(async () => (await page.locator('.bubble').allInnerTexts()).slice(1), ['say waited', 'say later']);
    await becomes(() => page.locator('.queue').count(), 0);
    await done();
    await context.close();
});

test('a trimmed video is shown trimmed', async () => {
    server.options.modalities = ['text', 'image', 'video'];
    const { page, done } = await openChat(browser, server.url);
    await page.locator('chat-composer input[multiple]').setInputFiles(VIDEO);
    await page.locator('.tray video').waitFor();
    await page.evaluate(() => (document.querySelector('chat-composer').attachments[0].video = { start_ms: 1000, end_ms: 2500 }));
    await send(page, 'say seen');
    await lastAnswer(page);
    const video = page.locator('.question video');
    assert.match(await video.getAttribute('src'), /#t=1,2\.5$/);
    assert.match(await page.locator('.question').innerText(), /from 0:01 to 0:02\.5/);
    server.options.modalities = ['text', 'image'];
    await done();
});

test('titles, sizes, whole numbers, encodings', async () => {
    const title = (text) => titleOf(/** @type {any} */ ({ text }));
    assert.equal(title('```js\nlet x = 1;\n```\nWhat is it?'), 'let x = 1;');
    assert.equal(title('---\n# A heading\ntext'), 'A heading');
    assert.equal(title('> - quoted'), '- quoted');
    assert.equal(title('***'), '***');
    assert.equal(formatBytes(1536), '1.5 KiB');
    assert.equal(formatBytes(400_000_000), '381.5 MiB');
    assert.deepEqual(decodeText(Uint8Array.from([0x63, 0x61, 0x66, 0xe9, 0x0a])), { text: 'café\n', encoding: 'windows-1252' });
    assert.deepEqual(decodeText(Uint8Array.from([0xff, 0xfe, 0x41, 0, 0xe9, 0])), { text: 'Aé', encoding: 'utf-16le' });
    assert.deepEqual(decodeText(new TextEncoder().encode('naïve ✓')), { text: 'naïve ✓', encoding: 'utf-8' });
    for (const bytes of [[0x41, 0, 0x42], [0x7f, 0x45, 0x4c, 0x46, 2, 1], [0xe9, 0x81, 0x8d, 0x00]]) assert.equal(decodeText(Uint8Array.from(bytes)).text, null);
    const { page, done } = await openChat(browser, server.url);
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByLabel('Max tokens').fill('12.6');
    await page.keyboard.press('Tab');
    await becomes(() => page.getByLabel('Max tokens').inputValue(), '13');
    await done();
});
