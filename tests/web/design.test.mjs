/** How the page is laid out: what belongs together, what fits where, menus, the strip of a video,
 * images and files large. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PHONE, SAMPLES, becomes, lastAnswer, launch, openChat, openSettings, send, until } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

const VIDEO = join(fileURLToPath(import.meta.url), '../../../assets/samples/ball-moves.mp4');
const SEES = { modalities: ['text', 'image', 'video'], video: { fps: 2, min_frames: 4, max_frames: 256 }, delayMs: 0 };

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const begin = async (t, options, view) => {
    const server = await startMock({ delayMs: 0, ...options });
    t.after(() => server.close());
    return { server, ...(await openChat(browser, server.url, view)) };
};
const box = (locator) => locator.evaluate((one) => one.getBoundingClientRect().toJSON());

for (const [name, view] of Object.entries({
    'a desktop': {}, 'a phone upright': { phone: true }, 'a small phone': { phone: true, viewport: { width: 375, height: 667 } },
    'a phone on its side': { phone: true, viewport: { width: 844, height: 390 } },
})) {
    test(`the first visit is seen whole on ${name}, with large text too`, async (t) => {
        const { page, done } = await begin(t, SEES, view);
        await page.locator('.sample img').nth(1).waitFor();
        for (const size of ['normal', 'large', 'larger']) {
            await page.evaluate((text) => document.querySelector('parley-app').settings.set('textSize', text), size);
            const [needs, has] = await page.locator('.transcript').evaluate((one) => [one.scrollHeight, one.clientHeight]);
            assert.ok(needs <= has, `${size}: ${needs} of ${has}`);
            assert.ok(await page.locator('.introduction summary').isVisible());
        }
        assert.equal(await page.locator('.sample-play').count(), 1, 'a video is told from an image');
        await done();
    });
}

test('an answer stands nearer to its question than to the next one; its speed is seen, the rest is behind a button', async (t) => {
    const { page, done } = await begin(t);
    for (const text of ['say first', 'say second']) {
        await send(page, text);
        await lastAnswer(page);
    }
    const [one, two] = [await box(page.locator('.bubble').first()), await box(page.locator('.bubble').nth(1))];
    const answer = await box(page.locator('.answer').first());
    assert.ok(answer.top - one.bottom < (two.top - answer.bottom) / 2, `${answer.top - one.bottom} inside, ${two.top - answer.bottom} between`);
    assert.equal(await page.locator('.answer').first().getByText('89.3 tokens/s').count(), 2);
    assert.equal(await page.getByText('text route').first().isVisible(), false);
    const more = page.getByRole('button', { name: 'More about this answer' }).first();
    await more.focus();
    await page.keyboard.press('Enter');
    await page.getByText('text route').first().waitFor();
    await page.keyboard.press('Escape');
    await becomes(() => page.getByText('text route').first().isVisible(), false);
    await until(() => more.evaluate((button) => button === document.activeElement));
    await done();
});

test('the context has a meter from half of it on', async (t) => {
    const { server, page, done } = await begin(t, { nContext: 2000, words: 10 });
    await send(page, 'long');
    await lastAnswer(page);
    await becomes(() => page.locator('.context').count(), 0);
    server.options.nContext = 230;
    await page.reload();
    await page.locator('.context', { hasText: /5\d %|6\d %/ }).waitFor();
    await done();
});

test('a long question is folded, and opens', async (t) => {
    const { page, done } = await begin(t);
    await send(page, `say ${'one line of many\n'.repeat(40)}`);
    await lastAnswer(page);
    const height = () => box(page.locator('.bubble')).then((one) => one.height);
    const folded = await height();
    assert.ok(folded < 300, String(folded));
    await page.getByRole('button', { name: 'Show all' }).click();
    await until(async () => (await height()) > 600);
    await page.getByRole('button', { name: 'Show less' }).click();
    await becomes(() => height(), folded);
    await done();
});

test('the models are a menu: searched, with arrows, closed by Escape while an answer goes on', async (t) => {
    const models = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'].map((id) => ({ id, meta: { size: 1e9 }, architecture: { input_modalities: ['text', 'image'] }, status: { value: 'unloaded' } }));
    const { server, page, done } = await begin(t, { models, holdAfter: 2 });
    await send(page, 'long');
    await page.locator('.answer').getByText('word1').waitFor();
    await page.locator('.model-button').focus();
    await page.keyboard.press('Enter');
    const search = page.getByLabel('Search models');
    await search.fill('lph');
    await becomes(() => page.locator('.models li').count(), 1);
    await search.press('ArrowDown');
    await becomes(() => page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Use alpha');
    await page.keyboard.press('Escape');
    await becomes(() => page.locator('.model-menu').isVisible(), false);
    await until(() => page.getByRole('button', { name: 'Stop the answer' }).isVisible());
    server.options.holdAfter = Infinity;
    await lastAnswer(page);
    await done();
});

test('settings: of this chat, of new chats, of this browser; what a chat has of its own is seen', async (t) => {
    const { page, done } = await begin(t);
    await send(page, 'say one');
    await lastAnswer(page);
    await openSettings(page, 'New chats');
    await page.getByLabel('System prompt').fill('Be kind.');
    await page.getByLabel('Temperature').fill('0.5');
    await page.keyboard.press('Escape');
    await becomes(() => page.locator('.own-options').count(), 0, 'a chat that is there keeps its own');
    await page.keyboard.press('Control+Shift+O');
    await page.getByRole('button', { name: 'System prompt · Temperature 0.5' }).click();
    await becomes(() => page.getByLabel('System prompt').inputValue(), 'Be kind.');
    await becomes(() => page.getByRole('tab', { name: 'This chat' }).getAttribute('aria-selected'), 'true');
    await page.keyboard.press('Escape');
    await done();
});

test('a search shows its words in their sentence', async (t) => {
    const { page, done } = await begin(t);
    await send(page, 'say The ship left the harbour. A Pelican sat on the mast. Nobody saw it.');
    await lastAnswer(page);
    await page.getByLabel('Search chats').fill('pelican');
    const found = page.locator('.entry-found');
    await found.waitFor();
    assert.match(await found.innerText(), /^…?A Pelican sat on the mast\./);
    assert.deepEqual(await found.locator('mark').allInnerTexts().then((all) => all.slice(0, 1)), ['Pelican']);
    await page.getByLabel('Search chats').fill('ship');
    await page.locator('.entry-title mark', { hasText: 'ship' }).waitFor();
    await done();
});

test('images and text files open large: zoom, step, download, by keys too', async (t) => {
    const { page, done } = await begin(t);
    const files = page.locator('chat-composer input[multiple]');
    await files.setInputFiles([join(SAMPLES, 'outlines.png'), join(SAMPLES, 'bars.jpg')]);
    await page.locator('.tray .thumb img').nth(1).waitFor();
    await files.setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('first line\nsecond line') });
    await page.getByRole('button', { name: 'Open notes.txt' }).click();
    await page.locator('media-viewer pre', { hasText: 'second line' }).waitFor();
    await page.keyboard.press('Escape');
    await send(page, 'What are they?');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'Show outlines.png large' }).click();
    const image = page.locator('media-viewer img');
    await image.waitFor();
    const natural = await image.evaluate((one) => one.decode().then(() => one.naturalWidth));
    const width = () => image.evaluate((one) => one.clientWidth);
    const whole = await width();
    for (let i = 0; i < 12; i += 1) await page.keyboard.press('+');
    await until(async () => (await width()) === 8 * natural, 'the largest');
    await page.getByRole('button', { name: 'Whole image' }).click();
    await until(async () => (await width()) === whole, 'the whole image');
    await image.click();
    await until(async () => (await width()) !== whole, 'a click to zoom');
    await image.click();
    await until(async () => (await width()) === whole, 'a second click to leave it');
    // With Ctrl a wheel zooms the image, not the page.
    const wheel = (ctrlKey) => image.evaluate((one, key) => one.dispatchEvent(new WheelEvent('wheel', { ctrlKey: key, deltaY: -100, bubbles: true, cancelable: true })), ctrlKey);
    assert.deepEqual([await wheel(false), await width()], [true, whole]);
    assert.equal(await wheel(true), false);
    await until(async () => (await width()) > whole, 'a wheel to zoom');
    await page.keyboard.press('0');
    await page.keyboard.press('ArrowRight');
    await page.getByRole('heading', { name: 'bars.jpg' }).waitFor();
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download bars.jpg' }).click()]);
    assert.deepEqual(await readFile(await file.path()), await readFile(join(SAMPLES, 'bars.jpg')));
    await page.getByRole('button', { name: 'Next' }).click();
    await page.locator('media-viewer pre', { hasText: 'second line' }).waitFor();
    await becomes(() => page.getByText('3 / 3').count(), 1);
    await page.keyboard.press('Escape');
    await done();
});

test('a video: a strip with two handles, then one size from the start and controls under the picture', async (t) => {
    const { server, page, done } = await begin(t, SEES, { phone: true });
    await page.locator('chat-composer input[multiple]').setInputFiles(VIDEO);
    const strip = page.locator('video-strip');
    await strip.locator('.range', { hasText: '0:00 – 0:04' }).waitFor();
    assert.ok((await box(strip.locator('.strip'))).height <= 28, 'half as high on a phone');
    const drawn = () => strip.locator('.strip canvas').evaluateAll((all) => all.every((one) => one.dataset.drawn));
    await until(drawn, 'the pictures of the strip');
    await strip.getByLabel('Start of').focus();
    for (let i = 0; i < 12; i += 1) await page.keyboard.press('ArrowRight');
    await strip.getByLabel('End of').fill('3000');
    await strip.locator('.range', { hasText: '0:01.2 – 0:03' }).waitFor();
    const on = await box(strip.locator('.strip-on'));
    const all = await box(strip.locator('.strip'));
    assert.ok(Math.abs((on.left - all.left) / all.width - 0.3) < 0.02 && Math.abs((all.right - on.right) / all.width - 0.25) < 0.02);
    await send(page, 'say It moves.');
    const video = page.locator('video-clip video');
    const size = await box(video);
    await lastAnswer(page);
    const { input } = server.requests[0].body;
    assert.deepEqual([input[0].content[0].start_ms, input[0].content[0].end_ms], [1200, 3000]);
    await until(() => video.evaluate((one) => one.readyState > 0), 'the video to be there');
    const later = await box(video);
    assert.deepEqual([later.width, later.height], [size.width, size.height]);
    const bar = await box(page.locator('.clip-bar'));
    assert.ok(bar.top >= later.bottom - 1, 'the controls cover nothing');
    await page.getByRole('button', { name: 'Play ball-moves.mp4' }).click();
    await until(() => video.evaluate((one) => one.paused && Math.abs(one.currentTime - 3) < 0.3), 'it to end where the part ends');
    await page.getByLabel('Position in').fill('1500');
    await until(() => video.evaluate((one) => Math.abs(one.currentTime - 1.5) < 0.05), 'the place to be sought');
    await done();
});

test('a dialog on a phone is a sheet of its own, and a menu stays on the screen', async (t) => {
    const { page, done } = await begin(t, {}, { phone: true });
    await send(page, 'say one');
    await lastAnswer(page);
    await openSettings(page, 'This browser');
    await page.setViewportSize({ width: 1280, height: 800 }); // wide once, and narrow again: the list does not cover the page
    await page.locator('.with-sidebar').waitFor();
    await page.setViewportSize(PHONE);
    await page.locator('.with-sidebar').waitFor({ state: 'detached' });
    const { x, y, width, height } = await box(page.locator('#settings'));
    assert.deepEqual([x, y, width, height], [0, 0, 390, 844]);
    await page.keyboard.press('Escape');
    for (const name of ['More about this answer', 'Seedling']) {
        await page.getByRole('button', { name }).first().click();
        const menu = await box(page.locator('.menu:popover-open'));
        assert.ok(menu.left >= 0 && menu.right <= 390 && menu.top >= 0 && menu.bottom <= 844, JSON.stringify(menu));
        await page.keyboard.press('Escape');
    }
    await done();
});
