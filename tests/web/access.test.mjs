/** axe finds nothing serious on any screen, in light and dark, on a desktop and a phone. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { COLOURS, SAMPLES, becomes, checkScreen, lastAnswer, launch, openChat, openSettings, send, until } from './helpers.mjs';
import { textPdf } from './make_pdf.mjs';
import { startMock } from './mock_server.mjs';

/** @type {['light' | 'dark', boolean][]} */
const LOOKS = [['light', false], ['dark', true], ['light', true], ['dark', false]];
// Continuous integration takes one half a day; each half has both colour schemes, a desktop and a phone.
const half = 2 * (Math.floor(Date.now() / 86_400_000) % 2);
const looks = process.env.CI ? LOOKS.slice(half, half + 2) : LOOKS;

let browser;
let server;
before(async () => {
    browser = await launch();
    server = await startMock({ delayMs: 0, models: [{ id: 'blind', meta: { size: 4e8 }, status: { value: 'unloaded' } }, { id: 'torn', status: { value: 'failed', error: 'torn: cut short' } }] });
});
after(async () => {
    await browser.close();
    await server.close();
});

/** @param {'light'|'dark'} colorScheme */
const checkIn = (colorScheme) => (page, screen) => checkScreen(page, screen, colorScheme === 'dark' ? COLOURS : undefined);

for (const [colorScheme, phone] of looks) {
    test(`${colorScheme}, ${phone ? 'phone' : 'desktop'}`, async () => {
        const check = checkIn(colorScheme);
        const { page, done } = await openChat(browser, server.url, { colorScheme, phone });
        Object.assign(server.options, { holdAfter: Infinity, progressMs: 0, state: 'ready' });
        await page.locator('.sample').nth(2).waitFor();
        await page.locator('.introduction summary').click();
        await check(page, 'welcome, with the introduction');
        const files = page.locator('chat-composer input[multiple]');
        await files.setInputFiles(join(SAMPLES, 'outlines.png'));
        await page.locator('.tray .thumb img').waitFor();
        const camera = page.getByLabel('Take a photo');
        assert.equal(await camera.count(), phone ? 1 : 0);
        if (phone) assert.equal(await camera.getAttribute('capture'), 'environment');
        await files.setInputFiles({
            name: 'report.pdf', mimeType: 'application/pdf', buffer: textPdf([['A page with letters enough to count as text, and then some more.']]),
        });
        await page.getByRole('button', { name: 'Add pages as images' }).waitFor();
        await page.getByRole('button', { name: 'Think', exact: true }).click();
        await check(page, 'image and document attached');
        await send(page, 'fixture markdown.md');
        await lastAnswer(page);
        await page.locator('pre .tok-keyword').first().waitFor();
        await page.locator('.thinking summary').click();
        await send(page, 'tool It is warm.');
        await lastAnswer(page);
        await page.locator('.tool summary').click();
        await check(page, 'answers, thoughts and a tool');
        server.options.holdAfter = 3;
        await send(page, 'long');
        await page.locator('.answer').getByText('word2').first().waitFor();
        await page.getByLabel('Your message').fill('say later');
        await page.getByRole('button', { name: 'Send after this answer' }).click();
        server.send({ type: 'server.status', state: 'draining' });
        await page.locator('.trouble.busy').waitFor();
        await check(page, 'streaming, a queue, and a server that drains');
        server.send({ type: 'server.status', state: 'ready' });
        await page.locator('.queue').getByRole('button', { name: 'Do not send this' }).click();
        await page.getByRole('button', { name: 'Stop the answer' }).click();
        await page.getByRole('button', { name: 'Continue' }).waitFor();
        server.options.holdAfter = Infinity;
        await page.getByRole('button', { name: 'Edit the answer' }).last().click();
        await check(page, 'stopped, and being edited');
        await page.getByRole('button', { name: 'Cancel' }).click();
        await send(page, 'error queue_full');
        await page.locator('.failure').last().waitFor();
        server.options.upgrade = false;
        server.options.key = 'secret';
        server.drop();
        await page.locator('.trouble.bad', { hasText: 'API key' }).waitFor();
        await check(page, 'error, and a key that is missing');
        await page.getByRole('button', { name: 'Enter it' }).click();
        await check(page, 'settings of the browser');
        server.options.key = '';
        server.options.upgrade = true;
        await page.locator('#settings').waitFor({ state: 'hidden' }); // the server accepts what it is given
        await openSettings(page, 'New chats');
        await check(page, 'settings of new chats');
        await openSettings(page, 'This chat');
        await page.getByText('More sampling').click();
        await check(page, 'settings of the chat');
        await page.getByRole('button', { name: 'Presets' }).click();
        await page.locator('#presets button').first().waitFor();
        await check(page, 'presets');
        await page.keyboard.press('Escape');
        await page.keyboard.press('Escape');
        await page.locator('#settings').waitFor({ state: 'hidden' });
        await page.locator('.model-button').click();
        await page.getByRole('button', { name: 'Use blind' }).waitFor();
        await page.getByRole('button', { name: 'blind answers beside' }).click();
        await check(page, 'models');
        await page.getByRole('button', { name: 'About Seedling' }).click();
        await check(page, 'model');
        await page.keyboard.press('Escape');
        await page.locator('.model-button').click();
        await page.getByRole('button', { name: 'Server status' }).click();
        await page.locator('.chart polyline').first().waitFor();
        await check(page, 'what the server does');
        await page.keyboard.press('Escape');
        await page.getByLabel('Your message').fill('/');
        await page.getByRole('option').first().waitFor();
        await check(page, 'the menu of prompts');
        await page.getByRole('button', { name: 'Edit prompts' }).click();
        await page.getByRole('button', { name: 'Edit Translate' }).click();
        await check(page, 'prompts, one being edited');
        await page.keyboard.press('Escape');
        await page.keyboard.press('Escape');
        await page.getByLabel('Your message').fill('');
        await send(page, 'say both');
        await page.locator('.pair .answer[aria-busy=false]').nth(1).waitFor();
        await check(page, 'two answers side by side');
        await page.keyboard.press('Control+/');
        await check(page, 'keys');
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: 'More about this answer' }).first().click();
        await check(page, 'more about an answer');
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: 'Show outlines.png large' }).click();
        await page.locator('media-viewer img').waitFor();
        await check(page, 'image');
        await page.getByRole('button', { name: 'Next' }).click();
        await page.locator('media-viewer pre').waitFor();
        await check(page, 'text file');
        await page.keyboard.press('Escape');
        if (phone) {
            await page.getByRole('button', { name: 'Show the list of chats' }).click();
            await page.locator('.entry').first().waitFor();
            await check(page, 'list of chats');
        }
        await page.evaluate(() => {
            const { chat } = document.querySelector('parley-app');
            return chat.setPlace(chat.list[0].id, { folder: 'Work' });
        });
        await page.locator('.chat-list h3', { hasText: 'Work' }).waitFor();
        await page.locator('.entry-buttons button').first().click();
        await page.getByLabel('New folder').waitFor();
        await check(page, 'menu of a chat');
        await page.getByText('Choose several').click();
        await page.locator('.bulk').waitFor();
        await check(page, 'several chats chosen');
        await done();
    });
}

for (const [colorScheme, phone] of looks) {
    test(`sources of a document, and menus of folders, by keys alone: ${colorScheme}, ${phone ? 'phone' : 'desktop'}`, async () => {
        const check = checkIn(colorScheme);
        server.options.nContext = 3_000;
        const { page, done } = await openChat(browser, server.url, { colorScheme, phone });
        server.options.nContext = 32_768;
        const pages = Array.from({ length: 60 }, (_, i) => [`Page ${i + 1} speaks of the weather in general terms.`, ...Array(12).fill('It may rain, or it may not, as it did in other years.'), i === 40 ? 'The dam at Kestrel Lake was opened in August.' : 'Nothing else was noted.']);
        await page.locator('chat-composer input[multiple]').setInputFiles({ name: 'almanac.pdf', mimeType: 'application/pdf', buffer: textPdf(pages) });
        await page.locator('.file-thumb', { hasText: 'almanac.pdf' }).waitFor();
        await page.getByLabel('Your message').fill('When was the dam at Kestrel Lake opened?');
        await page.getByLabel('Your message').press('Control+Enter');
        await lastAnswer(page);
        const source = page.getByRole('region', { name: 'Sources' }).getByRole('button', { name: /page 41$/ });
        await source.waitFor();
        await check(page, 'an answer with its sources');
        await source.focus();
        await page.keyboard.press('Enter');
        await page.locator('media-viewer mark').waitFor();
        await check(page, 'a source, opened at its place');
        await page.keyboard.press('Escape');
        await until(() => source.evaluate((one) => one === document.activeElement), 'the focus to come back to the source');
        await page.evaluate(() => {
            const { chat } = document.querySelector('parley-app');
            return chat.setPlace(chat.list[0].id, { folder: 'Work' });
        });
        if (phone) {
            await page.getByRole('button', { name: 'Show the list of chats' }).focus();
            await page.keyboard.press('Enter');
        }
        await page.getByRole('button', { name: 'More about the folder Work' }).focus();
        await page.keyboard.press('Enter');
        await page.getByText('Take its chats out').waitFor();
        await check(page, 'menu of a folder');
        await page.getByText('Rename the folder').focus();
        await page.keyboard.press('Enter');
        await page.getByLabel('New name of the folder').waitFor();
        await check(page, 'a folder being renamed');
        await done();
    });
}

for (const phone of [false, true]) {
    test(`from right to left, ${phone ? 'phone' : 'desktop'}`, async () => {
        const check = checkIn('light');
        const { page, done } = await openChat(browser, server.url, { locale: 'ar', phone });
        await page.locator('.sample').nth(2).waitFor();
        await check(page, 'welcome');
        const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
        assert.ok(await fits());
        await page.locator('chat-composer textarea').fill('fixture markdown.md');
        await page.locator('button.send').click();
        await lastAnswer(page);
        await check(page, 'an answer');
        assert.ok(await fits());
        // Code begins at the left whatever the page does.
        assert.equal(await page.locator('pre').first().evaluate((one) => getComputedStyle(one).direction), 'ltr');
        await page.keyboard.press('Control+,');
        await page.locator('#tab-browser').click();
        await check(page, 'settings, with the languages');
        await page.keyboard.press('Escape');
        await page.locator('.model-button').click();
        await page.locator('model-list li').first().waitFor();
        await check(page, 'models');
        await done();
    });
}

test('forced colours and a large text leave everything reachable', async () => {
    const { page, done } = await openChat(browser, server.url, { forcedColors: 'active', phone: true });
    await page.evaluate(() => (document.documentElement.style.fontSize = '200%'));
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `overflow ${overflow}`);
    await done();
});

/** Presses Tab (or Shift+Tab) until the thing of that name has the focus. */
async function tabTo(page, name, key = 'Tab') {
    for (let i = 0; i < 120; i += 1) {
        await page.keyboard.press(key);
        const found = await page.evaluate((name) => {
            const element = document.activeElement;
            const words = element?.getAttribute('aria-label') || element?.labels?.[0]?.textContent || element?.textContent || '';
            return words.trim().replace(/\s+/g, ' ').includes(name) && element !== document.body;
        }, name);
        if (found) return;
    }
    assert.fail(`${name} is not reached by ${key}`);
}

test('without a mouse: stop, continue, edit, branches, settings, status, rename, delete, undo', async () => {
    Object.assign(server.options, { holdAfter: 3, delayMs: 0 });
    const { page, done } = await openChat(browser, server.url);
    const { keyboard } = page;
    await until(() => page.evaluate(() => document.activeElement?.tagName === 'TEXTAREA'), 'the field to have the focus');
    await keyboard.type('say one two three four');
    await keyboard.press('Enter');
    await page.getByText('one two three').last().waitFor();
    await keyboard.press('Escape');
    await page.getByText('You stopped this answer.').waitFor();
    server.options.holdAfter = Infinity;
    await tabTo(page, 'Continue', 'Shift+Tab');
    await keyboard.press('Enter');
    await until(async () => (await lastAnswer(page)) === 'one two three four', 'the rest');
    await tabTo(page, 'Edit the question', 'Shift+Tab');
    await keyboard.press('Space');
    await keyboard.type(' five');
    await keyboard.press('Control+Enter');
    await until(async () => (await lastAnswer(page)) === 'one two three four five', 'the other branch');
    await tabTo(page, 'Earlier question', 'Shift+Tab');
    await keyboard.press('Enter');
    await until(async () => (await lastAnswer(page)) === 'one two three four', 'the first branch');
    await keyboard.press('Control+,');
    await tabTo(page, 'This chat');
    await keyboard.press('ArrowLeft'); // around to the last
    await tabTo(page, 'System');
    await keyboard.press('ArrowRight');
    await keyboard.press('ArrowRight');
    await becomes(() => page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    await keyboard.press('Escape');
    await page.locator('.model-button').focus();
    await keyboard.press('Enter');
    await until(() => page.evaluate(() => document.activeElement?.textContent?.includes('About')), 'the menu to have the focus');
    await keyboard.press('ArrowDown');
    await keyboard.press('Enter');
    await page.locator('.chart').first().waitFor();
    await keyboard.press('Escape');
    await keyboard.press('Control+k');
    await tabTo(page, 'More about say one');
    await keyboard.press('Enter');
    await tabTo(page, 'Rename');
    await keyboard.press('Enter');
    await keyboard.type('Numbers');
    await keyboard.press('Enter');
    await page.locator('.entry', { hasText: 'Numbers' }).waitFor();
    await keyboard.press('Control+k');
    await tabTo(page, 'More about Numbers');
    await keyboard.press('Enter');
    await until(() => page.evaluate(() => !!document.activeElement?.closest('.menu:popover-open')), 'the menu to have the focus');
    await keyboard.press('ArrowUp');
    await keyboard.press('Enter');
    await page.locator('chat-welcome').waitFor();
    await tabTo(page, 'Undo', 'Shift+Tab');
    await keyboard.press('Enter');
    await page.locator('.entry', { hasText: 'Numbers' }).waitFor();
    await done();
});
