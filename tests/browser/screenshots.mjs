/**
 * Pictures of the page in its states, for the documentation and for looking at.
 *
 *     node screenshots.mjs               the small set that docs/screenshots/ keeps
 *     node screenshots.mjs --all DIR     every state, light and dark, desktop and phone
 */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SAMPLES, launch, openChat, lastAnswer, send } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

const all = process.argv[2] === '--all';
const out = all ? process.argv[3] : join(dirname(fileURLToPath(import.meta.url)), '../../docs/screenshots');
/** What the documentation keeps. */
const KEPT = new Set([
    'welcome-light-desktop', 'welcome-dark-phone', 'picture-light-desktop', 'picture-dark-phone', 'markdown-dark-desktop',
    'markdown-light-desktop', 'progress-light-phone', 'error-light-desktop', 'settings-dark-desktop',
]);
const SCRIPT = {
    'How do I count the red shapes?': 'fixture markdown.md',
    'Summarise the whole book.': 'error context_length_exceeded',
};
mkdirSync(out, { recursive: true });

const browser = await launch();
for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    for (const phone of [false, true]) {
        const server = await startMock({ delayMs: 0, scripted: SCRIPT });
        const { page, context } = await openChat(browser, server.url, { colorScheme, phone });
        const shot = async (state) => {
            const name = `${state}-${colorScheme}-${phone ? 'phone' : 'desktop'}`;
            if (!all && !KEPT.has(name)) return;
            await page.waitForTimeout(350);
            await page.screenshot({ path: join(out, `${name}.png`) });
        };
        const attach = async (...names) => {
            await page.getByLabel('Add pictures').setInputFiles(names.map((name) => join(SAMPLES, name)));
            await page.locator('.tray .thumb img').nth(names.length - 1).waitFor();
        };
        await page.locator('.sample img').first().waitFor();
        await shot('welcome');

        await page.getByRole('button', { name: 'Think', exact: true }).click();
        await attach('shapes.jpg');
        await page.getByLabel('Your message').fill('Describe the image.');
        await shot('attached');
        await page.getByRole('button', { name: 'Send' }).click();
        await lastAnswer(page);
        await page.locator('.thinking summary').click();
        await shot('picture');
        await page.locator('.thinking summary').click();

        Object.assign(server.options, { progressMs: 60_000 });
        await attach('outlines.png', 'bars.jpg');
        await send(page, 'Which of the two is a chart?');
        await page.locator('.working progress').waitFor();
        server.send({ type: 'response.progress', phase: 'vision_encode', processed: 62, total: 100, eta_ms: 4200, stream_id: server.requests.at(-1).body.stream_id });
        await shot('progress');
        await page.getByRole('button', { name: 'Stop the answer' }).click();
        await page.getByText('You stopped this answer.').waitFor();
        await shot('stopped');
        Object.assign(server.options, { progressMs: 0 });

        await page.keyboard.press('Control+Shift+O');
        await page.locator('chat-welcome').waitFor();
        await page.getByRole('button', { name: 'Think', exact: true }).click();
        await send(page, 'How do I count the red shapes?');
        await lastAnswer(page);
        await page.locator('pre .tok-keyword').first().waitFor();
        await page.locator('math').nth(1).waitFor();
        await page.locator('.transcript').evaluate((element) => (element.scrollTop = 0));
        await shot('markdown');
        await page.locator('.transcript').evaluate((element) => (element.scrollTop = element.scrollHeight));
        await shot('markdown-end');

        await page.keyboard.press('Control+Shift+O');
        await send(page, 'Summarise the whole book.');
        await page.locator('.failure').waitFor();
        await shot('error');
        await page.getByRole('button', { name: 'Settings' }).click();
        await shot('settings');
        await page.keyboard.press('Escape');
        await page.locator('.model-button').click();
        await shot('model');
        await page.keyboard.press('Escape');
        if (phone) {
            await page.getByRole('button', { name: 'Show the list of chats' }).click();
            await page.locator('.entry').first().waitFor();
            await shot('list');
            await page.mouse.click(380, 400);
        }
        await page.locator('.entry').first().evaluate((entry) => entry.querySelector('button[title=Delete]').click());
        await shot('deleted');
        await server.close();
        await page.locator('.trouble').waitFor();
        await shot('disconnected');
        await context.close();
    }
}
await browser.close();
console.log(`screenshots are in ${out}`);
