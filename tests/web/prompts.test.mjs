/** Prompts that are used again, behind a slash in the empty field, and system prompts to choose from. */
import assert from 'node:assert/strict';
import test, { after, before, beforeEach, afterEach } from 'node:test';
import { AxeBuilder } from '@axe-core/playwright';
import { becomes, lastAnswer, launch, openChat, openSettings, send, until } from './helpers.mjs';
import { startMock } from './mock_server.mjs';
import { findPrompts, nextBlank } from '../../web/js/state/prompts.js';

let browser;
let server;
before(async () => (browser = await launch()));
after(() => browser.close());
beforeEach(async () => (server = await startMock({ delayMs: 0 })));
afterEach(() => server.close());

const field = (page) => page.getByLabel('Your message');
const audit = async (page, screen) => {
    const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
    assert.deepEqual(violations.filter(({ impact }) => /serious|critical/.test(impact)).map(({ id, nodes }) => `${screen}: ${id}: ${nodes.map(({ target }) => target.join(' ')).slice(0, 3)}`), []);
};

test('prompts are found by the words of their names; the places to fill in one after the other', () => {
    const prompts = ['Better wording', 'Explain code', 'Code review'].map((name, i) => ({ id: String(i), name, text: 'x' }));
    const names = (query) => findPrompts(prompts, query).map(({ name }) => name);
    assert.deepEqual(names('code'), ['Code review', 'Explain code']);
    assert.deepEqual(names('CODE ex'), ['Explain code']);
    assert.deepEqual(names('usr/bin'), []);
    assert.deepEqual(names(''), prompts.map(({ name }) => name));
    assert.deepEqual([nextBlank('a {{b}} {{c d}}'), nextBlank('a {{b}} {{c d}}', 7), nextBlank('{{}} {{a\nb}} {c}')], [[2, 7], [8, 15], null]);
});

test('a slash offers prompts, keys choose one, and Tab goes from place to place', async () => {
    const { page, done } = await openChat(browser, server.url);
    await field(page).focus();
    await page.keyboard.type('/');
    const options = page.getByRole('option');
    await options.first().waitFor();
    assert.equal(await options.count(), 4, 'system prompts are not among them');
    await audit(page, 'the menu of prompts');
    await page.keyboard.press('ArrowDown');
    await until(async () => (await field(page).getAttribute('aria-activedescendant')) === 'prompt-1', 'the second to be chosen');
    await becomes(() => options.nth(1).getAttribute('aria-selected'), 'true');
    await page.keyboard.type('transl');
    await until(async () => (await options.count()) === 1, 'one to be found');
    await page.keyboard.press('Enter');
    await becomes(() => field(page).inputValue(), 'Translate this into {{language}}:\n\n{{text}}');
    await page.keyboard.type('French');
    await page.keyboard.press('Tab');
    await page.keyboard.type('say good morning');
    await becomes(() => field(page).inputValue(), 'Translate this into French:\n\nsay good morning');
    await becomes(() => page.locator('prompt-menu').count(), 0);
    await becomes(() => field(page).getAttribute('aria-activedescendant'), null);
    await field(page).fill('');

    // Escape leaves a slash a slash, and a running answer goes on; what no prompt is named is sent.
    server.options.holdAfter = 3;
    await send(page, 'long');
    await page.keyboard.type('/');
    await options.first().waitFor();
    await page.keyboard.press('Escape');
    await until(async () => (await page.locator('prompt-menu').count()) === 0, 'the menu to close');
    await becomes(() => page.getByRole('button', { name: 'Stop the answer' }).count(), 1);
    server.options.holdAfter = Infinity;
    await lastAnswer(page);
    await field(page).fill('');
    await page.keyboard.type('/etc/hosts');
    await page.getByText('No prompt has this name.').waitFor();
    await page.keyboard.press('Enter');
    await until(() => server.requests.length === 2, 'the question');
    assert.equal(server.requests[1].body.input.at(-1).content[0].text, '/etc/hosts');
    await done();
});

test('prompts are written, changed, deleted and taken back by keys, for all tabs and days', async () => {
    const { page, context, done } = await openChat(browser, server.url);
    await field(page).focus();
    await page.keyboard.type('/');
    await page.getByRole('button', { name: 'Edit prompts' }).click();
    await page.getByRole('button', { name: 'New prompt' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.type('Say it');
    await page.keyboard.press('Tab');
    await page.keyboard.type('say {{word}}');
    await audit(page, 'a new prompt');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Edit Say it' }).waitFor();
    await page.getByRole('button', { name: 'Edit Say it' }).press('Enter');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('Say so');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Delete Translate' }).press('Enter');
    await page.getByText('“Translate” deleted.').waitFor();
    await page.keyboard.press('Enter'); // the focus is on Undo
    await page.getByRole('button', { name: 'Edit Translate' }).waitFor();
    await page.getByRole('button', { name: 'Delete Summarise' }).click();
    await page.getByRole('button', { name: 'Edit Say so' }).press('Enter');
    await page.keyboard.press('Escape');
    await becomes(() => page.locator('#prompts').isVisible(), true, 'Escape closes the form alone');
    await page.keyboard.press('Escape');
    const other = await context.newPage();
    await other.goto(server.url);
    await field(other).focus();
    await field(other).fill(''); // the slash is still its draft
    await other.keyboard.type('/s');
    await until(async () => (await other.getByRole('option').count()) > 0, 'the prompts there');
    await becomes(() => other.getByRole('option').locator('strong').allTextContents(), ['Say so', 'Translate']);
    await other.keyboard.press('Enter');
    await other.keyboard.type('hello');
    await other.keyboard.press('Enter');
    await becomes(() => lastAnswer(other), 'hello');
    await done();
});

test('a system prompt is chosen for a chat, and one that was written is kept for others', async () => {
    const { page, done } = await openChat(browser, server.url);
    await openSettings(page, 'This chat');
    await page.getByRole('button', { name: 'Presets' }).press('Enter');
    await page.getByRole('button', { name: 'Teacher' }).waitFor();
    await audit(page, 'system prompts');
    await page.getByRole('button', { name: 'Teacher' }).press('Enter');
    await until(async () => /patient teacher/.test(await page.getByLabel('System prompt', { exact: true }).inputValue()), 'the text in its field');
    await page.getByLabel('System prompt', { exact: true }).fill('Answer like a pirate of old.');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Keep this one' }).click();
    await openSettings(page, 'New chats');
    await page.getByRole('button', { name: 'Presets' }).click();
    await page.getByRole('button', { name: 'Answer like a pirate' }).click();
    await until(async () => (await page.getByLabel('System prompt', { exact: true }).inputValue()) === 'Answer like a pirate of old.', 'the same for new chats');
    await page.keyboard.press('Escape');
    await send(page, 'say ahoy');
    await lastAnswer(page);
    assert.equal(server.requests[0].body.instructions, 'Answer like a pirate of old.');
    await done();
});
