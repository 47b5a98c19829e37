/** The conversation itself, against the test double. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { after, before, beforeEach } from 'node:test';
import { SAMPLES, becomes, lastAnswer, launch, ofChat, openChat, openSettings, send, transfer, until, written } from './helpers.mjs';
import { lockedPdf, scannedPdf, textPdf } from './make_pdf.mjs';
import { startMock } from './mock_server.mjs';

let browser;
let server;
before(async () => {
    browser = await launch();
    server = await startMock();
});
after(async () => {
    await browser.close();
    await server.close();
});
beforeEach(() => {
    Object.assign(server.options, { delayMs: 4, progressMs: 0, hold: false, holdAfter: Infinity, modalities: ['text', 'image'], key: '', nContext: 32768 });
    server.requests.length = server.cancels.length = 0;
});

const png = async () => ({
    name: 'outlines.png', mime: 'image/png', base64: (await readFile(join(SAMPLES, 'outlines.png'))).toString('base64'),
});

test('a question streams an answer, with its figures', async () => {
    Object.assign(server.options, { holdAfter: 2, nContext: 160 });
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say one two three four');
    const prose = page.locator('.answer > .prose');
    await until(async () => (await prose.innerText()).trim() === 'one two', 'half the answer');
    assert.equal(await page.getByRole('button', { name: 'Stop the answer' }).count(), 1);
    server.options.holdAfter = Infinity;
    assert.equal(await lastAnswer(page), 'one two three four');
    const figures = await page.locator('.figures').innerText();
    assert.match(figures, /89\.3 tokens\/s/);
    assert.match(figures, /First token[\s\S]*after 84 ms/);
    assert.match(figures, /text route/);
    assert.match(figures, /33 % remembered/);
    assert.doesNotMatch(figures, /of the prompt read/);
    server.options.timings = { sparse_n: 128, sparse_kept_n: 64 };
    await send(page, 'say five');
    await becomes(() => lastAnswer(page), 'five');
    await becomes(() => page.locator('.figures').last().innerText(), /20 % remembered.*50 % of the prompt read/s);
    server.options.timings = {};
    // While it goes on: the speed, and how full the context is.
    server.options.holdAfter = 40;
    await send(page, 'long');
    await page.locator('.working-text', { hasText: '89.3 tokens/s' }).waitFor();
    await becomes(() => page.locator('.context').innerText(), /Context\s+85 %, nearly full: a new chat has room/);
    await page.getByRole('button', { name: 'Stop the answer' }).click();
    await page.getByText('You stopped this answer.').waitFor();
    await done();
});

test('the whole conversation goes along with the next question', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say alpha');
    await lastAnswer(page);
    await send(page, 'say beta');
    await until(() => server.requests.length === 2);
    const { input } = server.requests[1].body;
    assert.deepEqual(input.map((item) => [item.role, item.content[0].text]), [['user', 'say alpha'], ['assistant', 'alpha'], ['user', 'say beta']]);
    assert.equal(await lastAnswer(page), 'beta');
    await done();
});

test('an image by file dialog: thumbnail, removal, and it is sent byte for byte', async () => {
    const { page, done } = await openChat(browser, server.url);
    await page.getByLabel('Add images').setInputFiles([join(SAMPLES, 'outlines.png'), join(SAMPLES, 'bars.jpg')]);
    await page.locator('.tray .thumb img').nth(1).waitFor();
    await page.getByRole('button', { name: 'Remove bars.jpg' }).click();
    await becomes(() => page.locator('.tray .thumb').count(), 1);
    await send(page, 'What is it?');
    await becomes(() => lastAnswer(page), /three objects/);
    const part = server.requests[0].body.input[0].content[0];
    assert.equal(part.type, 'input_image');
    assert.equal(part.image_url, `data:image/png;base64,${(await png()).base64}`);
    assert.equal(await page.locator('.question .image img').count(), 1);
    assert.match(await page.locator('.figures').innerText(), /media route/);
    await done();
});

test('an image by drop, with an overlay while it hovers', async () => {
    const { page, done } = await openChat(browser, server.url);
    const files = [await png()];
    await transfer(page, 'main', 'dragenter', files);
    await page.getByText('Drop images anywhere').waitFor();
    await transfer(page, 'main', 'drop', files);
    await page.locator('.tray .thumb img').waitFor();
    await becomes(() => page.getByText('Drop images anywhere').count(), 0);
    await page.getByRole('button', { name: 'Send' }).click();
    await becomes(() => lastAnswer(page), /three objects/);
    await done();
});

test('an image by paste, and it opens large', async () => {
    const { page, done } = await openChat(browser, server.url);
    await transfer(page, 'chat-composer textarea', 'paste', [await png()]);
    await page.locator('.tray .thumb img').waitFor();
    await send(page, 'What is it?');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'Show outlines.png large' }).click();
    await page.locator('dialog.viewer[open] img').waitFor();
    await page.keyboard.press('Escape');
    await becomes(() => page.locator('dialog[open]').count(), 0);
    await done();
});

test('a large image is made smaller before it is sent', async () => {
    const { page, done } = await openChat(browser, server.url);
    const base64 = await page.evaluate(async () => {
        const canvas = new OffscreenCanvas(4000, 3000);
        canvas.getContext('2d').fillRect(100, 100, 500, 500);
        const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/png' })).arrayBuffer());
        let text = '';
        for (const byte of bytes) text += String.fromCharCode(byte);
        return btoa(text);
    });
    await transfer(page, 'main', 'drop', [{ name: 'big.png', mime: 'image/png', base64 }]);
    const thumb = page.locator('.tray .thumb');
    await thumb.first().locator('img').waitFor();
    assert.match(await thumb.first().getAttribute('title'), /2365 × 1774.*made smaller from 4000 × 3000/);
    await openSettings(page, 'This browser');
    await page.getByText('1 MP', { exact: true }).click();
    await page.keyboard.press('Escape');
    await transfer(page, 'main', 'drop', [{ name: 'big.png', mime: 'image/png', base64 }]);
    await thumb.nth(1).locator('img').waitFor();
    await becomes(() => thumb.nth(1).getAttribute('title'), /1182 × 887.*made smaller/);
    await done();
});

test('what is not an image is refused in words, before sending', async () => {
    const { page, done } = await openChat(browser, server.url);
    const text = Buffer.from('hello').toString('base64');
    await transfer(page, 'main', 'drop', [
        { name: 'notes.png', mime: 'image/png', base64: text },
        { name: 'empty.png', mime: 'image/png', base64: '' },
        { name: 'cut.png', mime: 'image/png', base64: (await png()).base64.slice(0, 80) },
    ]);
    const refused = page.locator('.refused');
    await refused.waitFor();
    const words = await refused.innerText();
    assert.match(words, /notes\.png is of a kind that cannot be read\. PNG.* PDF, Office documents and text files can be added/);
    assert.match(words, /empty\.png is empty/);
    assert.match(words, /cut\.png is damaged/);
    await done();
});

test('a video goes along where the model can watch it, and is refused where not', async () => {
    // The smallest thing that looks like WebM: the browser cannot play it, and it is sent all the
    // same.
    const video = { name: 'video.webm', mime: 'video/webm', base64: Buffer.from('\x1aE\xdf\xa3\x01\0\0\0webm', 'latin1').toString('base64') };
    const { page, done } = await openChat(browser, server.url);
    await transfer(page, 'main', 'drop', [video]);
    await becomes(() => page.locator('.refused').innerText(), /Seedling cannot read videos/);
    server.options.modalities = ['text', 'image', 'video'];
    await page.reload();
    await page.getByLabel('Add images, videos or text').waitFor({ state: 'attached' });
    await transfer(page, 'main', 'drop', [video]);
    await page.locator('.tray .thumb video').waitFor();
    await send(page, 'What happens?');
    await lastAnswer(page);
    assert.deepEqual(server.requests[0].body.input[0].content[0], { type: 'input_video', video_url: `data:video/webm;base64,${video.base64}` });
    await done();
});

test('a model without vision refuses images', async () => {
    server.options.modalities = ['text'];
    const { page, done } = await openChat(browser, server.url);
    await page.getByPlaceholder('Ask something', { exact: true }).waitFor();
    await transfer(page, 'main', 'drop', [await png()]);
    await becomes(() => page.locator('.refused').innerText(), /Seedling reads text only/);
    await done();
});

test('stop ends the answer and keeps what was said', async () => {
    server.options.delayMs = 20;
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'long');
    await page.locator('.answer').getByText('word5').first().waitFor();
    await page.getByRole('button', { name: 'Stop the answer' }).click();
    await becomes(() => lastAnswer(page), /^word0 word1/);
    await becomes(() => page.getByText('You stopped this answer.').count(), 1);
    assert.equal(server.cancels.length, 1);
    await send(page, 'say after');
    await becomes(() => lastAnswer(page), 'after');
    await done();
});

test('Escape stops too', async () => {
    server.options.delayMs = 20;
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'long');
    await page.locator('.answer').getByText('word5').first().waitFor();
    await page.keyboard.press('Escape');
    await page.getByText('You stopped this answer.').waitFor();
    await done();
});

test('thinking is folded away with its duration', async () => {
    const { page, done } = await openChat(browser, server.url);
    await page.getByRole('button', { name: 'Think', exact: true }).click();
    await send(page, 'say done');
    await becomes(() => lastAnswer(page), 'done');
    assert.equal(server.requests[0].body.chat_template_kwargs.enable_thinking, true);
    const summary = page.locator('.thinking summary');
    assert.match(await summary.innerText(), /Thought for \d+(\.\d+)? m?s/);
    assert.equal(await page.locator('.thought').isVisible(), false);
    await summary.click();
    await becomes(() => page.locator('.thought').innerText(), /a cross at the left/);
    await done();
});

test('progress has a bar and words for every phase', async () => {
    server.options.progressMs = 600_000; // the test tells the phases itself
    const { page, done } = await openChat(browser, server.url);
    await page.getByLabel('Add images').setInputFiles(join(SAMPLES, 'outlines.png'));
    await page.locator('.tray .thumb img').waitFor();
    await send(page, 'What is it?');
    await until(() => server.requests.length === 1, 'the question');
    const told = async (phase, processed, total, hasText) => {
        server.send({ type: 'response.progress', phase, processed, total, stream_id: server.requests[0].body.stream_id });
        await page.locator('.working-text', { hasText }).waitFor();
    };
    server.send({ type: 'response.queued', queue_position: 3, stream_id: server.requests[0].body.stream_id });
    await page.locator('.working-text', { hasText: 'In the queue · 3 before you' }).waitFor();
    await told('media_decode', 1, 1, 'Opening the image');
    await told('vision_encode', 6, 10, 'Encoding the image · 60 %');
    await told('prefill', 60, 300, 'Reading the conversation · 60 of 300 tokens');
    assert.equal(await page.locator('.working progress').evaluate((bar) => bar.value), 0.2);
    await page.getByRole('button', { name: 'Stop the answer' }).click();
    await page.getByText('You stopped this answer.').waitFor();
    await becomes(() => page.locator('.working').count(), 0);
    await done();
});

test('an error says what happened and what to do', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'error context_length_exceeded');
    const failure = page.locator('.failure');
    await failure.waitFor();
    const words = await failure.innerText();
    assert.match(words, /longer than the model can read/);
    assert.match(words, /Start a new chat/);
    assert.match(words, /Told to fail\./);
    assert.equal(await failure.getByRole('button', { name: 'Try again' }).count(), 1);
    await send(page, 'say still here');
    await becomes(() => lastAnswer(page), 'still here');
    await done();
});

test('new chat, history, search, rename, delete and undo', async () => {
    const { page, done } = await openChat(browser, server.url);
    for (const word of ['apple', 'banana', 'cherry', 'damson']) {
        await send(page, `say ${word}`);
        await becomes(() => lastAnswer(page), word);
        await page.getByRole('link', { name: 'New chat' }).click();
        await page.locator('chat-welcome').waitFor();
    }
    const list = page.locator('.entry');
    assert.equal(await list.count(), 4);
    await page.getByLabel('Search chats').fill('banana');
    await becomes(() => list.count(), 1);
    await list.locator('a').click();
    await page.locator('.answer').getByText('banana').waitFor();
    await page.getByLabel('Search chats').fill('');
    await list.filter({ hasText: 'say apple' }).hover();
    await ofChat(page, 'Rename', 'say apple');
    await page.getByLabel('New name').fill('Fruit');
    await page.keyboard.press('Enter');
    await list.filter({ hasText: 'Fruit' }).waitFor();
    await list.filter({ hasText: 'say banana' }).hover();
    await ofChat(page, 'Delete', 'say banana');
    await page.locator('chat-welcome').waitFor();
    await becomes(() => list.count(), 3);
    await page.getByRole('button', { name: 'Undo' }).click();
    await list.filter({ hasText: 'say banana' }).waitFor();
    await page.reload();
    await becomes(() => list.count().then(() => list.nth(3).waitFor().then(() => list.count())), 4);
    await done();
});

test('a deleted answer comes back, here and for good', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say pear');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'More about this answer' }).click();
    await page.getByRole('button', { name: 'Delete this answer' }).click();
    await becomes(() => page.locator('.answer').getByText('pear').count(), 0);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.locator('.answer').getByText('pear').waitFor();
    await written(page);
    await page.reload();
    await page.locator('.answer').getByText('pear').waitFor();
    await done();
});

test('a chat with its image survives a reload', async () => {
    const { page, done } = await openChat(browser, server.url);
    await page.getByLabel('Add images').setInputFiles(join(SAMPLES, 'outlines.png'));
    await page.locator('.tray .thumb img').waitFor();
    await send(page, 'What is it?');
    const text = await lastAnswer(page);
    assert.match(page.url(), /#\/c\/c_/);
    await page.reload();
    await becomes(() => lastAnswer(page), text);
    const width = await page.locator('.question .image img').evaluate(async (image) => {
        await image.decode();
        return image.naturalWidth;
    });
    assert.equal(width, 400);
    await send(page, 'say again');
    await until(() => server.requests.length === 2);
    assert.match(server.requests[1].body.input[0].content[0].image_url, /^data:image\/png;base64,iVBOR/);
    await lastAnswer(page);
    await page.locator('.question').first().hover();
    await page.getByRole('button', { name: 'Edit the question' }).first().click();
    await page.getByRole('checkbox', { name: 'outlines.png' }).uncheck();
    await page.getByRole('button', { name: 'Ask again' }).click();
    await until(() => server.requests.length === 3);
    assert.deepEqual(server.requests[2].body.input.map((item) => item.content.map((part) => part.type)), [['input_text']]);
    await page.getByRole('button', { name: 'Earlier question' }).click();
    await page.evaluate(() => {
        const { chat } = document.querySelector('parley-app');
        const message = Object.values(chat.current.messages).find((one) => one.attachments);
        message.attachments[0].blob = new Blob(['no image'], { type: 'image/png' });
        chat.show(message);
    });
    await page.getByText('outlines.png cannot be shown: the file is damaged').waitFor();
    await done();
});

test('another answer stands beside the first, and an edited question starts a branch', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say first');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'Answer again' }).click();
    await page.getByText('2/2').waitFor();
    await becomes(() => lastAnswer(page), 'first');
    await page.getByRole('button', { name: 'Earlier answer' }).click();
    await page.getByText('1/2').waitFor();
    await page.locator('.question').hover();
    await page.getByRole('button', { name: 'Edit the question' }).click();
    await page.getByLabel('The question').fill('say second');
    await page.getByRole('button', { name: 'Ask again' }).click();
    await page.locator('.answer').getByText('second').waitFor();
    await page.getByRole('button', { name: 'Earlier question' }).click();
    await page.locator('.answer').getByText('first', { exact: true }).waitFor();
    await done();
});

test('the keyboard alone is enough', async () => {
    const { page, done } = await openChat(browser, server.url);
    await until(() => page.evaluate(() => document.activeElement?.tagName === 'TEXTAREA'), 'the field to have the focus');
    await page.keyboard.type('say line one');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('and two');
    await page.keyboard.press('Enter');
    await becomes(() => lastAnswer(page), /line one\s+and two/);
    const reached = new Set();
    await page.keyboard.press('Control+Shift+O');
    await page.locator('chat-welcome').waitFor();
    for (let i = 0; i < 40; i += 1) {
        await page.keyboard.press('Tab');
        reached.add(
            await page.evaluate(() => {
                const element = document.activeElement;
                const box = element?.closest('label, button, a, textarea, input')?.getBoundingClientRect();
                const name = element?.getAttribute('aria-label') || element?.textContent?.trim().replace(/\s+/g, ' ');
                return box && box.width > 0 ? name : `hidden: ${name}`;
            }),
        );
    }
    for (const name of ['New chat', 'Settings', 'Add images', 'Think', 'More about say line one', 'About the model']) {
        const found = [...reached].some((text) => text?.includes(name === 'About the model' ? 'Seedling' : name));
        assert.ok(found, `${name} is not reached by Tab: ${[...reached].join(' | ')}`);
    }
    await page.keyboard.press('Control+/');
    await page.locator('dialog#keys[open]').waitFor();
    await page.keyboard.press('Escape');
    await becomes(() => page.locator('dialog[open]').count(), 0);
    await done();
});

test('a screen reader hears a finished answer once, and no single words', async () => {
    server.options.delayMs = 15;
    const { page, done } = await openChat(browser, server.url);
    await page.evaluate(() => {
        window.heard = [];
        for (const id of ['live-status', 'live-answer', 'live-alert']) {
            const region = document.getElementById(id);
            new MutationObserver(() => window.heard.push([id, region.textContent])).observe(region, { childList: true, characterData: true, subtree: true });
        }
    });
    await send(page, 'say **one** two three four five six seven eight nine ten');
    await lastAnswer(page);
    await until(() => page.evaluate(() => window.heard.some(([id]) => id === 'live-answer')), 'the answer to be said');
    const heard = await page.evaluate(() => window.heard);
    assert.deepEqual(heard.filter(([id]) => id === 'live-answer'), [['live-answer', 'one two three four five six seven eight nine ten']]);
    assert.ok(heard.filter(([id, text]) => id === 'live-status' && text).length <= 2);
    // A stopped answer, and the rest of it: each is said once, as a whole.
    const spoken = () => page.evaluate(() => window.heard.filter(([id]) => id === 'live-answer').map(([, text]) => text));
    server.options.holdAfter = 2;
    await send(page, 'say a b c d');
    await page.locator('.answer').last().getByText('a b').waitFor();
    await page.keyboard.press('Escape');
    await until(async () => (await spoken()).at(-1) === 'Stopped. a b', 'the stopped answer to be said');
    server.options.holdAfter = Infinity;
    await page.getByRole('button', { name: 'Continue' }).click();
    await until(async () => (await spoken()).at(-1) === 'a b c d', 'the rest to be said');
    await becomes(async () => (await spoken()).length, 3);
    await becomes(() => page.locator('[role=log]').getAttribute('aria-label'), 'Conversation');
    await becomes(() => page.locator('.answer > .prose').first().getAttribute('aria-live'), 'off');
    await send(page, 'error server_error');
    await until(async () => /went wrong/.test(await page.locator('#live-alert').innerText()));
    await done();
});

test('the page follows the end only while the reader is there', async () => {
    server.options.delayMs = 4;
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'long');
    await page.locator('.answer').getByText('word150').first().waitFor();
    const scroller = page.locator('.transcript');
    const distance = () => scroller.evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight);
    // The text grows between a rendering and the scroll that follows it.
    await until(async () => (await distance()) <= 40, 'the page to follow');
    await scroller.hover();
    await page.mouse.wheel(0, -300);
    const top = await scroller.evaluate((e) => e.scrollTop);
    await page.locator('.answer').getByText('word300').first().waitFor();
    const later = await scroller.evaluate((e) => e.scrollTop);
    assert.ok(Math.abs(later - top) < 310 && (await distance()) > 200, 'it stays where the reader went');
    await page.getByRole('button', { name: 'Latest' }).click();
    await until(async () => (await distance()) <= 40, 'the button to go to the end');
    await lastAnswer(page);
    await done();
});

test('copy works without a secure context', async () => {
    const { page, done } = await openChat(browser, server.url);
    await page.evaluate(() => {
        Object.defineProperty(window, 'isSecureContext', { value: false });
        document.addEventListener('copy', () => (window.copied = document.activeElement.value));
    });
    await send(page, 'say take this');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'Copy the answer' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    await becomes(() => page.evaluate(() => window.copied), 'take this');
    await done();
});

test('the samples send their image', async () => {
    const { page, done } = await openChat(browser, server.url);
    const samples = page.locator('.sample');
    await samples.nth(2).waitFor();
    assert.equal(await samples.count(), 3);
    await samples.first().click();
    await becomes(() => lastAnswer(page), /three objects/);
    assert.match(server.requests[0].body.input[0].content[0].image_url, /^data:image\/png;base64,/);
    await done();
});

test('settings: theme, system prompt and sampling', async () => {
    const { page, done } = await openChat(browser, server.url);
    await openSettings(page, 'This browser');
    await page.getByText('Dark', { exact: true }).click();
    await becomes(() => page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(21, 23, 26)');
    await openSettings(page, 'This chat');
    await page.getByLabel('System prompt').fill('Be brief.');
    await page.getByLabel('Temperature').fill('0');
    await page.getByLabel('Max tokens').fill('64');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await send(page, 'say x');
    await lastAnswer(page);
    const { body } = server.requests[0];
    assert.equal(body.instructions, 'Be brief.');
    assert.equal(body.temperature, 0);
    assert.equal(body.max_output_tokens, 64);
    // Dark from the first frame on, before any module runs.
    /** @type {() => void} */
    let release = () => {};
    const gate = new Promise((resolve) => (release = () => resolve(undefined)));
    await page.route('**/js/views/app.js', (route) => gate.then(() => route.continue()));
    await page.reload({ waitUntil: 'load' });
    await becomes(() => page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(21, 23, 26)');
    await becomes(() => page.locator('parley-app').innerHTML(), '');
    release();
    await page.getByLabel('Your message').waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    await done();
});

test('a question asked during an answer waits, can be taken back, and goes out after it', async () => {
    server.options.holdAfter = 1;
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say one and');
    await page.locator('.answer').getByText('one').waitFor();
    const field = page.getByLabel('Your message');
    await field.fill(`say two ${'and more '.repeat(40)}`);
    await field.press('Enter');
    await until(() => page.locator('.composer').evaluate((box) => [...box.querySelectorAll('*')].every((part) => part.classList.contains('offscreen') || part.getBoundingClientRect().right <= box.getBoundingClientRect().right)));
    await field.fill('say three');
    await page.getByRole('button', { name: 'Send after this answer' }).click();
    await becomes(() => page.locator('.queue li').count(), 2);
    await page.locator('.queue li').first().getByRole('button', { name: 'Edit' }).click();
    await becomes(() => field.inputValue(), /^say two and more/);
    await becomes(() => page.locator('.queue li').count(), 1);
    await page.getByLabel('Add images').setInputFiles(join(SAMPLES, 'outlines.png'));
    await page.locator('.tray .thumb img').waitFor();
    await field.fill('What is it?');
    await field.press('Enter');
    await page.locator('.queue li').nth(1).waitFor();
    await written(page);
    await page.reload();
    await page.locator('.queue li').nth(1).waitFor();
    assert.equal(server.requests.length, 1);
    assert.equal(server.requests[0].body.store, false);
    server.options.holdAfter = Infinity;
    await page.locator('.answer').getByText('three objects').waitFor();
    assert.equal(await page.locator('.queue li').count(), 0);
    assert.deepEqual(server.requests[1].body.input.map((item) => item.content[0].text), ['say one and', 'one and', 'say three']);
    assert.match(server.requests[2].body.input.at(-1).content[0].image_url, /^data:image\/png;base64,iVBOR/);
    await lastAnswer(page);
    // Behind an answer that was stopped it waits until it is sent by hand.
    server.options.holdAfter = 1;
    await send(page, 'say four and');
    await page.locator('.answer').getByText('four').waitFor();
    await field.fill('say five');
    await field.press('Enter');
    await page.keyboard.press('Escape');
    await page.getByText('You stopped this answer.').waitFor();
    server.options.holdAfter = Infinity;
    await page.locator('.queue').getByRole('button', { name: 'Send', exact: true }).click();
    await page.locator('.answer').getByText('five').waitFor();
    await becomes(() => page.locator('.queue li').count(), 0);
    await done();
});

test('the file of a waiting question is freed with it, and kept again when it is taken back and sent', async () => {
    server.options.holdAfter = 1;
    const { page, done } = await openChat(browser, server.url);
    const stored = () => page.evaluate(() => new Promise((resolve) => {
        indexedDB.open('parley').onsuccess = ({ target }) => {
            target.result.transaction('media').objectStore('media').count().onsuccess = (event) => (target.result.close(), resolve(event.target.result));
        };
    }));
    const wait = async () => {
        await page.getByLabel('Add images').setInputFiles(join(SAMPLES, 'outlines.png'));
        await page.locator('.tray .thumb img').waitFor();
        await page.getByRole('button', { name: 'Send after this answer' }).click();
        await until(async () => (await stored()) === 1, 'the file to be kept');
    };
    await send(page, 'say one and');
    await page.locator('.answer').getByText('one').waitFor();
    await wait();
    await page.getByRole('button', { name: 'Do not send this' }).click();
    await until(async () => (await stored()) === 0, 'the file to be freed');
    await wait();
    await page.locator('.queue').getByRole('button', { name: 'Edit' }).click();
    await until(async () => (await stored()) === 0, 'the file to be freed');
    server.options.holdAfter = Infinity;
    await page.locator('.answer').getByText('one and').waitFor();
    await page.getByLabel('Your message').fill('What is it?');
    await page.getByRole('button', { name: 'Send', exact: true }).click();
    await becomes(() => lastAnswer(page), /three objects/);
    await page.reload();
    await lastAnswer(page);
    await becomes(() => page.locator('.question .image img').evaluate((image) => image.decode().then(() => image.naturalWidth)), 400);
    await done();
});

test('two chats answer at once, and the list marks the one that runs', async () => {
    server.options.delayMs = 10;
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'long');
    await page.locator('.answer').getByText('word5').first().waitFor();
    await page.keyboard.press('Control+Shift+O');
    await page.locator('chat-welcome').waitFor();
    await send(page, 'say meanwhile');
    await becomes(() => lastAnswer(page), 'meanwhile');
    await page.locator('.entry', { hasText: 'long' }).locator('.running').waitFor();
    await page.locator('.entry', { hasText: 'long' }).getByLabel('New answer').waitFor();
    await page.locator('.entry', { hasText: 'long' }).locator('a').click();
    await page.locator('.bubble', { hasText: 'long' }).waitFor();
    await becomes(() => lastAnswer(page), /^word0 [\s\S]*word399$/);
    await becomes(() => page.getByLabel('New answer').count(), 0);
    await done();
});

test('what is being written is kept for each chat, and over a reload', async () => {
    const { page, done } = await openChat(browser, server.url);
    const field = page.getByLabel('Your message');
    await send(page, 'say alpha');
    await lastAnswer(page);
    await field.fill('half a thought');
    await page.getByRole('link', { name: 'New chat' }).click();
    await page.locator('chat-welcome').waitFor();
    await becomes(() => field.inputValue(), '');
    await field.fill('another');
    await page.locator('.entry a').click();
    await until(async () => (await field.inputValue()) === 'half a thought', 'the first draft');
    await page.reload();
    await until(async () => (await field.inputValue()) === 'half a thought', 'the draft after a reload');
    await page.getByRole('link', { name: 'New chat' }).click();
    await until(async () => (await field.inputValue()) === 'another', 'the other draft');
    await done();
});

test('text files and long pasted text go along as files', async () => {
    const { page, done } = await openChat(browser, server.url);
    await transfer(page, 'main', 'drop', [
        { name: 'notes.md', mime: 'text/markdown', base64: Buffer.from('# Notes\n```\nx\n```').toString('base64') },
        { name: 'bin.txt', mime: 'text/plain', base64: Buffer.from([0x7f, 0x45, 0, 1]).toString('base64') },
    ]);
    await page.locator('.tray .file-thumb').waitFor();
    assert.match(await page.locator('.refused').innerText(), /bin\.txt is neither an image nor text/);
    await page.evaluate(() => {
        const data = new DataTransfer();
        data.setData('text/plain', 'word '.repeat(2000));
        document.querySelector('chat-composer textarea').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
    });
    await page.locator('.file-thumb', { hasText: 'pasted.txt' }).waitFor();
    await send(page, 'say read');
    await becomes(() => lastAnswer(page), 'read');
    const { content } = server.requests[0].body.input[0];
    assert.equal(content[0].text, 'File notes.md:\n````\n# Notes\n```\nx\n```\n````');
    assert.match(content[1].text, /^File pasted\.txt:\n```\nword word/);
    assert.equal(content[2].text, 'say read');
    await done();
});

test('chats go out as JSON and Markdown and come back, and a wrong file is refused', async () => {
    const { page, done } = await openChat(browser, server.url);
    await page.getByLabel('Add images').setInputFiles(join(SAMPLES, 'outlines.png'));
    await page.locator('.tray .thumb img').waitFor();
    await send(page, 'What is it?');
    const text = await lastAnswer(page);
    await openSettings(page, 'This browser');
    const [json] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export all' }).click()]);
    await openSettings(page, 'This chat');
    const [markdown] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'This one as Markdown' }).click()]);
    assert.equal(markdown.suggestedFilename(), 'What is it.md');
    assert.match(await readFile(await markdown.path(), 'utf8'), /## You\n\n\*Image: outlines\.png\*\n\nWhat is it\?\n\n## Seedling/);
    await openSettings(page, 'This browser');
    await page.getByLabel('Import').setInputFiles({ name: 'x.json', mimeType: 'application/json', buffer: Buffer.from('{"a":1}') });
    await page.getByText('holds no exported chats').waitFor();
    const bring = async (words) => {
        await openSettings(page, 'This browser');
        await page.getByLabel('Import').setInputFiles(await json.path());
        await page.getByText(words).waitFor(); // not behind the dialog
        await becomes(() => page.locator('dialog[open]').count(), 0);
    };
    await bring('0 chats imported. 1 chat was here already.');
    assert.equal(await page.locator('.entry').count(), 1);
    await ofChat(page, 'Delete');
    await bring('1 chat imported.');
    await becomes(() => page.locator('.entry').count(), 1);
    await bring('0 chats imported. 1 chat was here already.');
    await page.locator('.entry a').click();
    await becomes(() => lastAnswer(page), text);
    await becomes(() => page.locator('.question .image img').evaluate((image) => image.decode().then(() => image.naturalWidth)), 400);
    await done();
});

test('an answer can be put in other words, and Up edits the last question', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say wrong');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'Edit the answer' }).click();
    await page.getByLabel('The answer').fill('right');
    await page.getByRole('button', { name: 'Keep' }).click();
    await page.getByText('2/2').waitFor();
    await becomes(() => lastAnswer(page), 'right');
    await send(page, 'say next');
    await lastAnswer(page);
    assert.equal(server.requests[1].body.input[1].content[0].text, 'right');
    await page.getByLabel('Your message').press('ArrowUp');
    await becomes(() => page.getByRole('textbox', { name: 'The question' }).inputValue(), 'say next');
    await done();
});

test('an answer that was cut or stopped is continued, in place', async () => {
    const { page, done } = await openChat(browser, server.url);
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByLabel('Max tokens').fill('3');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Escape');
    await send(page, 'say one two three four five');
    await page.getByText('reached its length limit').waitFor();
    await becomes(() => lastAnswer(page), 'one two three');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.locator('.answer').getByText('five').waitFor();
    await becomes(() => lastAnswer(page), 'one two three four five');
    const { body } = server.requests[1];
    assert.equal(body.continue_final_message, true);
    assert.deepEqual(body.input.at(-1), { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'one two three' }] });
    assert.equal(await page.locator('chat-message').count(), 2);
    assert.equal(await page.getByRole('button', { name: 'Continue' }).count(), 0);
    await done();
});

test('what is continued survives a lost connection and a reload: nothing lost, nothing twice', async () => {
    server.options.holdAfter = 50;
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'long');
    await page.locator('.answer').getByText('word49').first().waitFor();
    await page.getByRole('button', { name: 'Stop the answer' }).click();
    server.options.holdAfter = 100;
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.locator('.answer').getByText('word149').first().waitFor();
    server.drop();
    server.options.holdAfter = 200;
    await page.locator('.answer').getByText('word249').first().waitFor();
    await until(() => page.evaluate(async () => {
        const { History } = await import(new URL('js/state/history.js', document.baseURI).href);
        const history = await History.open();
        const [{ id }] = await history.list();
        return Object.values((await history.load(id)).messages).some(({ text, before }) => before && text.includes('word249'));
    }), 'the half answer to be kept');
    await page.reload();
    server.options.holdAfter = Infinity;
    await page.locator('.answer').getByText('word399').first().waitFor();
    assert.deepEqual((await lastAnswer(page)).split(/[\s.]+/).filter(Boolean), Array.from({ length: 400 }, (_, i) => `word${i}`));
    assert.equal(server.requests.length, 2);
    await done();
});

test('a tool call is shown with what it asked, what came of it, and goes along later', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'tool It is 21 degrees in Ulm.');
    await becomes(() => lastAnswer(page), 'It is 21 degrees in Ulm.');
    const tool = page.locator('.tool');
    await becomes(() => tool.locator('summary').innerText(), /get weather\s+done/);
    await tool.locator('summary').click();
    await becomes(() => tool.innerText(), /city\s+Ulm\s+days\s+2[\s\S]+degrees/);
    const again = await page.evaluate(async () => {
        const load = (name) => import(new URL(`js/${name}.js`, document.baseURI).href);
        const [{ fromJson, toJson }, { toMarkdown }] = await Promise.all(['state/transfer', 'state/store'].map(load));
        const { current } = document.querySelector('parley-app').chat;
        const [read] = fromJson(await toJson([current]));
        return [Object.values(read.messages)[1].tools, Object.values(current.messages)[1].tools, toMarkdown(current)];
    });
    assert.deepEqual(again[0], again[1]);
    assert.match(again[2], /\*Tool: get_weather \{"city":"Ulm","days":2\}\*/);
    await send(page, 'tool -');
    await page.locator('.tool').nth(1).getByText('asked for').waitFor();
    assert.deepEqual(server.requests[1].body.input.slice(1, 3), [
        { type: 'function_call', call_id: 'call_1', name: 'get_weather', arguments: '{"city":"Ulm","days":2}' },
        { type: 'function_call_output', call_id: 'call_1', output: '{"sky":"clear","degrees":21}' },
    ]);
    await done();
});

test('a PDF goes along as its text, or as images of its pages; a locked, a damaged or an unreadable one is refused in words', async () => {
    const { page, done } = await openChat(browser, server.url);
    const choose = (name, buffer) => page.locator('chat-composer input[multiple]').setInputFiles({ name, mimeType: 'application/pdf', buffer });
    const lines = ['The first line of the report says what it is about.', 'The second line says a little more than that.'];
    await choose('report.pdf', textPdf([lines, ['A second page, with enough letters on it to count as text.']]));
    await page.locator('.file-thumb', { hasText: 'report.pdf' }).waitFor();
    await send(page, 'say read');
    await becomes(() => lastAnswer(page), 'read');
    assert.equal(
        server.requests[0].body.input[0].content[0].text,
        `File report.pdf:\n\`\`\`\n--- Page 1 of 2 ---\n${lines.join('\n')}\n\n--- Page 2 of 2 ---\nA second page, with enough letters on it to count as text.\n\`\`\``,
    );
    await choose('report.pdf', textPdf([lines, lines]));
    await page.getByText('report.pdf: text of 2 pages').waitFor();
    const pages = page.getByLabel('Pages of report.pdf');
    await pages.fill('2-5');
    await pages.press('Enter');
    await page.getByText('“2-5” names no pages of report.pdf: write numbers from 1 to 2').waitFor();
    assert.equal(server.requests.length, 1, 'Enter there sends nothing');
    await pages.fill('1, 2');
    await page.getByRole('button', { name: 'Add pages as images' }).click();
    await page.locator('.tray .thumb img').nth(1).waitFor();
    await becomes(() => page.locator('.file-thumb').count(), 1, 'the text stays');
    const dark = await page.locator('.tray .thumb img').first().evaluate(async (image) => {
        await image.decode(); // it is there, and may not have been read yet
        const bitmap = await createImageBitmap(image);
        const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
        context.drawImage(bitmap, 0, 0);
        const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
        let n = 0;
        for (let i = 0; i < data.length; i += 4) n += data[i] < 100;
        return [bitmap.width, bitmap.height, n > 500 && n < data.length / 8];
    });
    assert.deepEqual(dark, [1200, 1600, true], 'a white page with dark letters');
    await page.getByRole('button', { name: 'Remove report.pdf' }).click();
    await page.getByRole('button', { name: 'Remove report, page 1' }).click();
    await page.getByRole('button', { name: 'Remove report, page 2' }).click();
    await choose('scan.pdf', scannedPdf(18));
    await page.locator('.tray .thumb img').nth(15).waitFor();
    await page.getByText('Only the first 16 of 18 pages of scan.pdf').waitFor();
    await send(page, 'What is it?');
    await becomes(() => lastAnswer(page), 'I see 16 images.');
    await choose('locked.pdf', lockedPdf());
    await page.getByText('locked.pdf is locked with a password').waitFor();
    await choose('broken.pdf', Buffer.from('%PDF-1.7\nnothing of the kind'));
    await page.getByText('broken.pdf is damaged').waitFor();
    server.options.modalities = ['text'];
    await page.reload();
    await page.getByPlaceholder('Ask something', { exact: true }).waitFor();
    await choose('scan.pdf', scannedPdf(1));
    await page.getByText('scan.pdf holds no text but images of pages, and Seedling reads text only').waitFor();
    await done();
});
