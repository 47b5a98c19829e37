/** axe finds nothing serious on any screen, in light and dark, on a desktop and a phone. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test, { after, before } from 'node:test';
import { AxeBuilder } from '@axe-core/playwright';
import { SAMPLES, lastAnswer, launch, openChat, send } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

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

async function check(page, screen) {
    // Frames of the audit would be blocked by the page's own policy; the page has none.
    const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
    const bad = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    assert.deepEqual(
        bad.map(({ id, nodes }) => `${screen}: ${id}: ${nodes.map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).slice(0, 4).join(' | ')}`),
        [],
    );
}

for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    for (const phone of [false, true]) {
        test(`${colorScheme}, ${phone ? 'phone' : 'desktop'}`, async () => {
            const { page, done } = await openChat(browser, server.url, { colorScheme, phone });
            Object.assign(server.options, { holdAfter: Infinity, progressMs: 0 });
            await page.locator('.sample').nth(2).waitFor();
            await check(page, 'welcome');
            await page.getByLabel('Add pictures').setInputFiles(join(SAMPLES, 'outlines.png'));
            await page.locator('.tray .thumb img').waitFor();
            await page.getByRole('button', { name: 'Think', exact: true }).click();
            await check(page, 'picture attached');
            await send(page, 'fixture markdown.md');
            await lastAnswer(page);
            await page.locator('pre .tok-keyword').first().waitFor();
            await page.locator('.thinking summary').click();
            await check(page, 'answer');
            server.options.holdAfter = 3;
            server.options.progressMs = 0;
            await send(page, 'long');
            await page.getByText('word2').waitFor();
            await check(page, 'streaming');
            await page.getByRole('button', { name: 'Stop the answer' }).click();
            await lastAnswer(page);
            server.options.holdAfter = Infinity;
            await send(page, 'error queue_full');
            await page.locator('.failure').last().waitFor();
            await check(page, 'error');
            await page.getByRole('button', { name: 'Settings' }).click();
            await check(page, 'settings');
            await page.keyboard.press('Escape');
            await page.locator('.model-button').click();
            await check(page, 'model');
            await page.keyboard.press('Escape');
            await page.getByRole('button', { name: 'Show outlines.png large' }).click();
            await check(page, 'picture');
            await page.keyboard.press('Escape');
            if (phone) {
                await page.getByRole('button', { name: 'Show the list of chats' }).click();
                await page.locator('.entry').first().waitFor();
                await check(page, 'list of chats');
            }
            await done();
        });
    }
}

test('forced colours and a large text leave everything reachable', async () => {
    const { page, done } = await openChat(browser, server.url, { forcedColors: 'active', phone: true });
    await page.evaluate(() => (document.documentElement.style.fontSize = '200%'));
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(overflow <= 0, `overflow ${overflow}`);
    await done();
});
