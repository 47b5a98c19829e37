/** Videos in the chat: what they will cost before they are sent, the server's progress, and times
 * that seek them. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { videoTokens, frameTimes } from '../../web/js/state/video-plan.js';
import { markTimes, splitTimes } from '../../web/js/state/times.js';
import { becomes, lastAnswer, launch, openChat, openSettings, send, until } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

const VIDEO = join(fileURLToPath(import.meta.url), '../../../assets/samples/color-changes.webm');
const QWEN = { fps: 2, min_frames: 4, max_frames: 256, patch_size: 16, merge_size: 2, temporal_patch_size: 2, min_pixels: 4096, max_pixels: 25165824 };

let browser;
before(async () => {
    browser = await launch();
});
after(() => browser.close());

test('times are found in the ways that answers write them', () => {
    const seconds = (text) => splitTimes(text).filter((piece) => typeof piece !== 'string').map((piece) => piece.seconds);
    assert.deepEqual(seconds('At 0:12 it turns, at <12.5 seconds> it stops, after 3 s or 4.25 seconds it is gone.'), [12, 12.5, 3, 4.25]);
    assert.deepEqual(seconds('1:02:03 and 61:00; 2s'), [3723, 3660, 2]);
    assert.deepEqual(seconds('The 1990s, 3 spoons, 16:9:4:1, v1.2s, 12:75, 5 seconds-hand'), [5]);
    const marked = (text, length) => markTimes([{ type: 'text', text }], length)[0].tokens?.filter((one) => one.type === 'time').map((one) => one.seconds) ?? [];
    assert.deepEqual(marked('John 3:16 at 0:03', 12.5), [3], 'what lies behind the end is no time of the video');
    assert.deepEqual(marked('it ends at 0:12', 12.5), [12]);
    assert.deepEqual(marked('John 3:16', 12.5), []);
    assert.equal(splitTimes('from 0:01 to <2.0 seconds>.').map((piece) => piece.text ?? piece).join(''), 'from 0:01 to <2.0 seconds>.');
});

test('the tokens of a video are what the processor would make of it', () => {
    const grid = (width, height, n) => videoTokens(width, height, n, QWEN) / Math.ceil(n / 2) - 8;
    assert.equal(grid(1920, 1080, 16), (928 / 32) * (1664 / 32));
    assert.equal(grid(1920, 1080, 7), (1088 / 32) * (1920 / 32));
    assert.equal(grid(1920, 1080, 768), (128 / 32) * (224 / 32));
    assert.equal(grid(640, 480, 5), (480 / 32) * (640 / 32));
    assert.equal(videoTokens(640, 480, 4, { fps: 2 }), null);
    assert.equal(frameTimes(4, { fps: 1 }, QWEN).length, 4);
    const gemma = { fps: 2, min_frames: 1, max_frames: 256, num_frames: 6, fills_budget: true, patch_size: 16, merge_size: 3, temporal_patch_size: 1, max_pixels: 70 * 48 * 48 };
    assert.equal(videoTokens(96, 64, 6, gemma), 6 * (60 + 8)); // as the reference has it: 10 x 6 rows a frame
    assert.deepEqual(frameTimes(3, {}, gemma), [0, 0.5, 1, 1.5, 2, 2.5]);
    assert.equal(frameTimes(3, { fps: 1 }, gemma).length, 3);
});

const videos = { modalities: ['text', 'image', 'video'], video: QWEN, delayMs: 0 };
const times = 'It is blue. At 0:01 nothing moves; the change comes at <2.5 seconds>, not after **3 s**. `0:02` is code.';

/** The dark page is for looking at alone: PARLEY_SHOTS=DIR keeps images of all four. */
const shots = process.env.PARLEY_SHOTS;
const views = [false, true].flatMap((phone) => (shots ? ['light', 'dark'] : ['light']).map((colorScheme) => ({ phone, colorScheme })));
for (const view of /** @type {{phone: boolean, colorScheme: 'light'|'dark'}[]} */ (views)) {
    const name = `${view.colorScheme}-${view.phone ? 'phone' : 'desktop'}`;
    test(`what a video will cost, and a time in an answer shows it there: ${name}`, async () => {
        const server = await startMock({ ...videos, scripted: { 'When does it change?': `say ${times}` } });
        const { page, done } = await openChat(browser, server.url, view);
        const shot = (what) => shots && page.screenshot({ path: join(shots, `${what}-${name}.png`) });
        const buttons = page.locator('.answer .time');
        await page.locator('.dot.good').waitFor();
        await send(page, `say ${times}`);
        await lastAnswer(page);
        await becomes(() => buttons.count(), 0); // no video was sent: words are words
        await page.locator('chat-composer input[multiple]').setInputFiles(VIDEO);
        const estimate = page.locator('video-strip .estimate');
        await estimate.waitFor();
        assert.match(await estimate.innerText(), /about 8 frames, 224 tokens/);
        await page.locator('video-strip summary').click();
        await page.getByLabel('Frames a second').selectOption('4');
        await until(async () => /about 16 frames, 448 tokens/.test(await estimate.innerText()), 'another rate to cost more');
        await page.getByLabel('At most').selectOption('8');
        await until(async () => /about 8 frames, 224 tokens/.test(await estimate.innerText()), 'fewer frames to cost less');
        await shot('video-strip');
        // Another video begins with the rate of the settings.
        await openSettings(page, 'This browser');
        await page.getByRole('group', { name: 'Frames a second of videos' }).getByText('4', { exact: true }).click();
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: /^Remove/ }).click();
        await page.locator('chat-composer input[multiple]').setInputFiles(VIDEO);
        await until(async () => (await estimate.count()) && /about 16 frames, 448 tokens/.test(await estimate.innerText()), 'the rate of the settings');
        await send(page, 'When does it change?');
        await until(() => buttons.count().then((n) => n === 3), 'the times of the answer');
        await becomes(() => buttons.allInnerTexts(), ['0:01', '<2.5 seconds>', '3 s']);
        await lastAnswer(page);
        const place = () => page.locator('video.image').evaluate((video) => video.currentTime);
        for (const [i, seconds] of [1, 2.5, 3].entries()) {
            await buttons.nth(i).click();
            await until(async () => Math.abs((await place()) - seconds) < 0.01, `the video at ${seconds} s`);
        }
        await shot('video-answer');
        await done();
        await server.close();
    });
}

test('what the server does with a video is told as it goes', async () => {
    const server = await startMock({ ...videos, progressMs: 60_000 });
    const { page, done } = await openChat(browser, server.url);
    await page.locator('.dot.good').waitFor();
    await page.locator('chat-composer input[multiple]').setInputFiles(VIDEO);
    await page.locator('video-strip .estimate').waitFor();
    await send(page, 'say done');
    const tell = (phase, processed, total, eta_ms) =>
        server.send({ type: 'response.progress', phase, processed, total, eta_ms, stream_id: server.requests.at(-1).body.stream_id });
    const told = (text) => page.locator('.working-text', { hasText: text }).waitFor();
    await until(() => server.requests.length === 1, 'the question to be sent');
    tell('media_decode', 3, 8);
    await told('Opening the video · frame 3 of 8');
    tell('vision_encode', 2, 4, 4_000);
    await told('Encoding the video · 50 % · about 4 s left');
    tell('prefill', 96, 224, 3_000);
    await told('Reading the conversation · 96 of 224 tokens · about 3 s left');
    await page.getByRole('button', { name: 'Stop the answer' }).click();
    await done();
    await server.close();
});
