/**
 * Images of the page in its states, for the documentation and for looking at.
 *
 *     node screenshots.mjs               the small set that docs/screenshots/ keeps
 *     node screenshots.mjs --all DIR     every state, light and dark, desktop and phone
 */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SAMPLES, launch, ofChat, openChat, lastAnswer, send, until } from './helpers.mjs';
import { textPdf } from './make_pdf.mjs';
import { startMock } from './mock_server.mjs';
import { savePng } from './small_png.mjs';

const all = process.argv[2] === '--all';
const out = all ? process.argv[3] : join(dirname(fileURLToPath(import.meta.url)), '../../docs/screenshots');
/** What the documentation keeps: every state once, the look of the page in both colours and
 * widths. */
const KEPT = new Set([
    'welcome-light-desktop', 'welcome-dark-phone', 'image-light-desktop', 'image-dark-phone', 'markdown-dark-desktop',
    'markdown-light-desktop', 'progress-light-phone', 'error-light-desktop', 'settings-dark-desktop', 'introduction-light-phone',
    'stopped-light-desktop', 'tool-dark-desktop', 'document-light-phone', 'queue-light-desktop', 'editing-light-phone', 'status-light-desktop',
    'model-light-phone', 'keys-light-phone', 'list-light-phone', 'deleted-light-desktop', 'loading-light-phone',
    'draining-light-desktop', 'disconnected-light-phone', 'offline-light-phone', 'key-light-phone', 'refused-dark-desktop', 'wide-light-phone', 'rtl-light-phone',
]);
const SCRIPT = {
    'How do I count the red shapes?': 'fixture markdown.md',
    'Summarise the whole book.': 'error context_length_exceeded',
    'What is the weather in Ulm?': 'tool It is clear in Ulm, and 21 degrees warm.',
    'Tell me a long story.': 'long',
    'Draw a red circle.': 'say ```svg\n<svg viewBox="0 0 10 10" width="300"><circle cx="5" cy="5" r="4" fill="#c33" /></svg>\n```',
    'What about wide things?': `say A word: ${'wide'.repeat(60)}\n\n| ${'column | '.repeat(12)}\n|${'---|'.repeat(12)}\n| ${'value | '.repeat(12)}\n\n\`\`\`c\nint ${'long_name_'.repeat(12)} = 1;\n\`\`\``,
    'שאלה': 'say שלום! זו תשובה בעברית.\n\n- אחת\n- שתיים\n\nAnd one line in English.',
};
const MODELS = ['qwen3.5-2b', 'qwen3.5-9b', 'blind'].map((id, i) => ({ id, meta: { size: [2e9, 9e9, 4e8][i] }, architecture: { input_modalities: i < 2 ? ['text', 'image', 'video'] : ['text'] }, status: { value: 'unloaded' } }));
const VIDEO = join(dirname(fileURLToPath(import.meta.url)), '../../assets/samples/ball-moves.mp4');
mkdirSync(out, { recursive: true });

const browser = await launch();
let bytes = 0;
for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    for (const phone of [false, true]) {
        let server = await startMock({ delayMs: 0, scripted: SCRIPT, models: MODELS, modalities: ['text', 'image', 'video'], video: { fps: 2, min_frames: 4, max_frames: 256 } });
        const { page, context } = await openChat(browser, server.url, { colorScheme, phone });
        const shot = async (state) => {
            const name = `${state}-${colorScheme}-${phone ? 'phone' : 'desktop'}`;
            if (!all && !KEPT.has(name)) return;
            await page.waitForTimeout(350);
            bytes += savePng(join(out, `${name}.png`), await page.screenshot());
        };
        const attach = async (...names) => {
            await page.locator('chat-composer input[multiple]').setInputFiles(names.map((name) => join(SAMPLES, name)));
            await page.locator('.tray .thumb img').nth(names.length - 1).waitFor();
        };
        const newChat = async () => {
            await page.keyboard.press('Control+Shift+O');
            await page.locator('chat-welcome').waitFor();
        };
        const top = () => page.locator('.transcript').evaluate((element) => (element.scrollTop = 0));
        await page.locator('.sample img').first().waitFor();
        await shot('welcome');
        await page.locator('.introduction summary').click();
        await page.locator('.transcript').evaluate((element) => (element.scrollTop = element.scrollHeight));
        await shot('introduction');
        await page.getByRole('button', { name: 'Got it' }).click();
        await top();

        await page.getByRole('button', { name: 'Think', exact: true }).click();
        await attach('shapes.jpg');
        await page.getByLabel('Your message').fill('Describe the image.');
        await shot('attached');
        await page.getByRole('button', { name: 'Send' }).click();
        await lastAnswer(page);
        await page.locator('.thinking summary').click();
        await shot('image');
        await page.locator('.thinking summary').click();
        await page.getByRole('button', { name: 'More about this answer' }).click();
        await shot('more');
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: 'Show shapes.jpg large' }).click();
        await page.locator('media-viewer img').waitFor();
        await shot('viewer');
        await page.keyboard.press('Escape');
        if (!phone) await page.locator('.question').hover();
        await page.getByRole('button', { name: 'Edit the question' }).click();
        await shot('editing');
        await page.getByRole('button', { name: 'Cancel' }).click();

        Object.assign(server.options, { progressMs: 60_000 });
        await attach('outlines.png', 'bars.jpg');
        await send(page, 'Which of the two is a chart?');
        await page.locator('.working progress').waitFor();
        server.send({ type: 'response.progress', phase: 'vision_encode', processed: 62, total: 100, eta_ms: 4200, stream_id: server.requests.at(-1).body.stream_id });
        await shot('progress');
        Object.assign(server.options, { progressMs: 0, holdAfter: 40 });
        await page.getByRole('button', { name: 'Stop the answer' }).click();
        await page.getByText('You stopped this answer.').waitFor();

        await newChat();
        await page.getByRole('button', { name: 'Think', exact: true }).click();
        await send(page, 'Tell me a long story.');
        await page.locator('.answer').getByText('word39').first().waitFor();
        await page.getByLabel('Your message').fill('And then?');
        await page.getByRole('button', { name: 'Send after this answer' }).click();
        await page.getByLabel('Your message').fill('Who was it?');
        await shot('queue');
        await page.locator('.model-button').click();
        await page.getByRole('button', { name: 'Server status' }).click();
        await until(() => page.locator('.chart polyline').first().evaluate((line) => line.points.length > 8), 'the charts');
        await shot('status');
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: 'Stop the answer' }).click();
        await page.getByText('You stopped this answer.').waitFor();
        await page.locator('.queue').getByRole('button', { name: 'Do not send this' }).click();
        await page.getByLabel('Your message').fill('');
        await shot('stopped');
        server.options.holdAfter = Infinity;

        await newChat();
        await page.locator('.model-button').click();
        await page.getByRole('button', { name: 'qwen3.5-9b answers beside' }).click();
        await shot('models');
        await page.keyboard.press('Escape');
        await send(page, 'Tell me about owls.');
        await page.locator('.pair .answer[aria-busy=false]').nth(1).waitFor();
        await shot('pair');
        await newChat();
        await send(page, 'What is the weather in Ulm?');
        await lastAnswer(page);
        await page.locator('.tool summary').click();
        await shot('tool');
        await newChat();
        await send(page, 'Draw a red circle.');
        await lastAnswer(page);
        await page.getByRole('button', { name: 'Preview' }).click();
        await page.frameLocator('.preview-frame iframe').locator('circle').waitFor();
        await page.getByRole('button', { name: 'Source' }).click();
        await shot('preview');
        await page.keyboard.press('Escape');
        await page.locator('chat-composer input[multiple]').setInputFiles(VIDEO);
        await until(() => page.locator('.strip canvas').evaluateAll((all) => all.length > 0 && all.every((one) => one.dataset.drawn)), 'the strip');
        await shot('strip');
        await send(page, 'say It moves to the right until 0:03.');
        await lastAnswer(page);
        await shot('clip');
        await newChat();
        await send(page, 'What about wide things?');
        await lastAnswer(page);
        await shot('wide');
        await newChat();
        await send(page, 'שאלה');
        await lastAnswer(page);
        await shot('rtl');

        await newChat();
        await page.locator('chat-composer input[multiple]').setInputFiles({
            name: 'report.pdf', mimeType: 'application/pdf', buffer: textPdf([['A page with letters enough to count as text, and then some more.']]),
        });
        await page.getByRole('button', { name: 'Add pages as images' }).waitFor();
        await shot('document');
        await page.getByRole('button', { name: 'Remove report.pdf' }).click();
        await page.locator('chat-composer input[multiple]').setInputFiles({ name: 'song.mp3', mimeType: 'audio/mpeg', buffer: Buffer.from('ID3') });
        await page.locator('.refused').waitFor();
        await shot('refused');
        await page.getByRole('button', { name: 'Close this message' }).click();

        await send(page, 'How do I count the red shapes?');
        await lastAnswer(page);
        await page.locator('pre .tok-keyword').first().waitFor();
        await page.locator('math').nth(1).waitFor();
        await top();
        await shot('markdown');
        await page.locator('.transcript').evaluate((element) => (element.scrollTop = element.scrollHeight));
        await shot('markdown-end');

        await newChat();
        await page.getByLabel('Your message').fill('/');
        await page.getByRole('option').first().waitFor();
        await shot('slash');
        await page.getByRole('button', { name: 'Edit prompts' }).click();
        await page.getByRole('button', { name: 'Edit Translate' }).click();
        await shot('prompts');
        await page.keyboard.press('Escape');
        await page.keyboard.press('Escape');
        await page.getByLabel('Your message').fill('');
        await send(page, 'Summarise the whole book.');
        await page.locator('.failure').waitFor();
        await shot('error');
        await page.getByRole('button', { name: 'Settings' }).click();
        await shot('settings');
        await page.getByRole('tab', { name: 'This browser' }).click();
        await shot('settings-browser');
        await page.keyboard.press('Escape');
        await page.locator('.model-button').click();
        await page.getByRole('button', { name: 'Use blind' }).waitFor();
        await shot('model');
        await page.keyboard.press('Escape');
        await page.keyboard.press('Control+/');
        await shot('keys');
        await page.keyboard.press('Escape');
        if (phone) {
            await page.getByRole('button', { name: 'Show the list of chats' }).click();
            await page.locator('.entry').first().waitFor();
            await shot('list');
            await page.mouse.click(380, 400);
        }
        if (phone) await page.getByRole('button', { name: 'Show the list of chats' }).click();
        await page.evaluate(async () => {
            const { chat } = document.querySelector('parley-app');
            const [one, two, three, four] = chat.list.map(({ id }) => id);
            await chat.setPlace(one, { pinned: true });
            for (const id of [two, three]) await chat.setPlace(id, { folder: 'Work' });
            await chat.setPlace(four, { archived: true });
        });
        await shot('order');
        await page.locator('.entry-buttons button').first().click();
        await shot('chat-menu');
        await page.keyboard.press('Escape');
        await ofChat(page, 'Delete');
        if (phone) await page.mouse.click(380, 400);
        await shot('deleted');
        server.send({ type: 'server.status', state: 'draining' });
        await page.locator('.trouble.busy').waitFor();
        await shot('draining');
        server.options.state = 'loading';
        server.send({ type: 'server.status', state: 'loading', progress: 0.62 });
        await page.locator('.trouble progress').waitFor();
        await shot('loading');
        const { port } = new URL(server.url);
        await server.close();
        await page.locator('.trouble.bad').waitFor();
        await shot('disconnected');
        await context.setOffline(true);
        await page.locator('.trouble', { hasText: 'offline' }).waitFor();
        await shot('offline');
        await context.setOffline(false);
        server = await startMock({ port: Number(port), key: 'secret' });
        await page.locator('.trouble', { hasText: 'API key' }).waitFor();
        await shot('key');
        await server.close();
        await context.close();
    }
}
await browser.close();
console.log(`screenshots are in ${out}, ${Math.round(bytes / 1024)} KB`);
