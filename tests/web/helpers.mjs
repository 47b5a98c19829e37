/** What the browser tests share: Chromium, a page that notes every fault, and the ways a person
 * acts on it. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { AxeBuilder } from '@axe-core/playwright';
import { chromium } from 'playwright-core';
import { noteCoverage } from './coverage.mjs';
import { slowDown } from './slow.mjs';

const here = dirname(fileURLToPath(import.meta.url));
export const SAMPLES = join(here, 'fixtures');
/** How long a test waits for anything: nobody waits that long unless it is broken or the machine is
 * very busy. */
const PATIENCE_MS = Number(process.env.PARLEY_PATIENCE_MS ?? 120_000);
const SLOW_MS = Number(process.env.PARLEY_SLOW ?? 0);
export const DESKTOP = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

export async function launch() {
    // The shell opens a page for half of the processor's time: the whole program draws tabs and menus of its own, too.
    const shell = '/usr/bin/chromium-headless-shell';
    const browser = await chromium.launch({
        executablePath: process.env.PARLEY_CHROMIUM ?? (existsSync(shell) ? shell : '/usr/bin/chromium'),
        args: [
            '--no-sandbox', '--disable-gpu', '--in-process-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
            '--disable-component-update', '--disable-sync',
        ],
    });
    if (process.env.PARLEY_COVERAGE) noteCoverage(browser, process.env.PARLEY_COVERAGE);
    return SLOW_MS ? slowDown(browser, SLOW_MS) : browser;
}

/**
 * A fresh browser profile with the chat open. Faults are gathered in `faults`: script errors,
 * policy violations and requests to anywhere but the server; `done()` asserts that there are none
 * and closes it.
 *
 * @param {import('playwright-core').Browser} browser @param {string} url
 * @param {import('playwright-core').BrowserContextOptions & {phone?: boolean}} [options]
 */
export async function openChat(browser, url, { phone = false, ...options } = {}) {
    const context = await browser.newContext({
        viewport: phone ? PHONE : DESKTOP,
        hasTouch: phone,
        isMobile: phone,
        reducedMotion: 'reduce',
        serviceWorkers: 'block', // it would fetch the whole page again for each test
        ...options,
    });
    context.setDefaultTimeout(PATIENCE_MS);
    const faults = [];
    await context.addInitScript(() => {
        document.addEventListener('securitypolicyviolation', (event) =>
            console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`),
        );
    });
    const page = await context.newPage();
    watch(page, url.split('#')[0], faults);
    const reload = page.reload.bind(page);
    page.reload = async (how) => {
        const reply = await reload(how);
        if (!how?.waitUntil) await settled(page); // who names a moment means that one
        return reply;
    };
    await page.goto(url);
    await settled(page);
    const done = async () => {
        assert.deepEqual(faults, []);
        await context.close();
    };
    return { page, context, faults, done };
}

/** Waits until the page knows what its server is, or that there is none: which files it takes hangs on that.
 * @param {import('playwright-core').Page} page */
export async function settled(page) {
    await page.locator('chat-composer textarea').waitFor();
    await page.waitForFunction(() => document.querySelector('parley-app').chat.connection.state !== 'connecting');
}

/** @param {import('playwright-core').Page} page @param {string} url @param {string[]} faults */
export function watch(page, url, faults) {
    page.on('pageerror', (error) => faults.push(`script error: ${error.stack}`));
    page.on('console', (message) => {
        const text = message.text();
        if (message.type() !== 'error' || /Failed to load resource|WebSocket connection|net::ERR_/.test(text)) return;
        faults.push(`console: ${text}`);
    });
    page.on('request', (request) => {
        const target = request.url();
        if (!target.startsWith(url) && !/^(data|blob):/.test(target)) faults.push(`request left the page: ${target}`);
    });
    page.on('popup', () => faults.push('a window was opened'));
    page.on('dialog', (dialog) => {
        faults.push(`a dialog was opened: ${dialog.message()}`);
        dialog.dismiss();
    });
}

/** @param {import('playwright-core').Page} page @param {string} text */
export async function send(page, text) {
    await page.getByLabel('Your message').fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
}

/** The last answer's text, once it is finished. @param {import('playwright-core').Page} page */
export async function lastAnswer(page) {
    const answer = page.locator('chat-message .answer').last();
    await page.waitForFunction(() => {
        const all = document.querySelectorAll('chat-message .answer');
        return all.length > 0 && all[all.length - 1].getAttribute('aria-busy') === 'false';
    });
    return (await answer.locator('> .prose').innerText()).trim();
}

/** Waits until the server's state satisfies a condition. @param {() => any} condition
 * @param {string|(() => string)} what is waited for; said when it does not come */
export async function until(condition, what = 'condition', ms = PATIENCE_MS) {
    const end = Date.now() + ms;
    while (!(await condition())) {
        if (Date.now() > end) throw new Error(`timed out waiting for ${typeof what === 'function' ? what() : what}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

/** Waits until what the page shows is what is expected, a value or a pattern; what it shows instead is said.
 * @param {() => any} get @param {any} expected @param {string} [what] */
export async function becomes(get, expected, what, ms = PATIENCE_MS) {
    for (const end = Date.now() + ms; ; ) {
        const value = await get();
        const isThere = expected instanceof RegExp ? expected.test(value) : isDeepStrictEqual(value, expected);
        if (!isThere && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 20));
        else if (expected instanceof RegExp) return assert.match(value, expected, what);
        else return assert.deepEqual(value, expected, what);
    }
}

/** Does something from the menu of a chat in the list. @param {import('playwright-core').Page} page
 * @param {string} verb @param {string} [title] of the chat; the first without */
export async function ofChat(page, verb, title = '') {
    await page.getByRole('button', { name: `More about ${title}` }).and(page.locator('.entry-buttons button')).first().click();
    await page.locator('.menu:popover-open').getByText(verb, { exact: true }).click();
}

/** Waits until what was just done is written down, however long that takes. @param {import('playwright-core').Page} page */
export async function written(page) {
    await page.waitForTimeout(500); // what is done often is written a little later
    await until(() => page.evaluate(() => document.querySelector('parley-app').chat.saving.size === 0), 'the chat to be written');
}

/** Opens a part of the settings. @param {import('playwright-core').Page} page
 * @param {'This chat'|'New chats'|'This browser'} part */
export async function openSettings(page, part) {
    if (!(await page.locator('#settings').isVisible())) await page.getByRole('button', { name: 'Settings', exact: true }).click();
    await page.getByRole('tab', { name: part }).click();
}

/** Drops or pastes files: builds a DataTransfer in the page, as a real drop cannot be made from
 * outside. */
export async function transfer(page, selector, type, files) {
    await page.evaluate(
        ({ selector, type, files }) => {
            const data = new DataTransfer();
            for (const { name, mime, base64 } of files) {
                const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
                data.items.add(new File([bytes], name, { type: mime }));
            }
            const target = document.querySelector(selector);
            const event =
                type === 'paste'
                    ? new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })
                    : new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true });
            target.dispatchEvent(event);
        },
        { selector, type, files },
    );
}

/** Runs in the page: puts a conversation of n messages into the history. */
export async function keepLong(n = 2000) {
    const base = document.baseURI;
    const { History } = await import(new URL('js/state/history.js', base).href);
    const { addMessage, newConversation } = await import(new URL('js/state/store.js', base).href);
    const conversation = newConversation();
    for (let i = 0; i < n / 2; i += 1) {
        addMessage(conversation, { role: 'user', parent: conversation.head, text: `Question ${i}` });
        addMessage(conversation, { role: 'assistant', parent: conversation.head, text: `Answer **${i}**\n\n- one\n- two\n\n\`\`\`js\nlet x = ${i};\n\`\`\`` });
    }
    await (await History.open()).save(conversation);
    return conversation.id;
}

/** The same in four looks: light and dark, desktop and phone. @param {import('playwright-core').Page} page @param {string} screen */
export async function checkLooks(page, screen) {
    for (const colorScheme of /** @type {const} */ (['dark', 'light'])) {
        await page.emulateMedia({ colorScheme });
        for (const [name, size] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
            await page.setViewportSize(size);
            await checkScreen(page, `${screen}, ${colorScheme}, ${name}`, colorScheme === 'dark' ? COLOURS : undefined);
        }
    }
}

/** Rules of axe that look at colours: in other colours of the same page the rest of them find the same. */
export const COLOURS = ['color-contrast', 'link-in-text-block'];

/** axe finds nothing serious. @param {import('playwright-core').Page} page @param {string} screen what it is, for the message
 * @param {string[]} [rules] these alone */
export async function checkScreen(page, screen, rules) {
    // Frames of the audit would be blocked by the page's own policy; the page has none.
    const audit = new AxeBuilder({ page }).setLegacyMode(true);
    const { violations } = await (rules ? audit.withRules(rules) : audit).analyze();
    const bad = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    assert.deepEqual(
        bad.map(({ id, nodes }) => `${screen}: ${id}: ${nodes.map((node) => node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).slice(0, 4).join(' | ')}`),
        [],
    );
}
