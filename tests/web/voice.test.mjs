/** Dictation and reading aloud, with engines of a browser that are made of JavaScript; and without. */
import assert from 'node:assert/strict';
import test, { after, before, beforeEach, afterEach } from 'node:test';
import { becomes, lastAnswer, launch, openChat, openSettings, send, until } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

let browser;
let server;
before(async () => (browser = await launch()));
after(() => browser.close());
beforeEach(async () => (server = await startMock({ delayMs: 0 })));
afterEach(() => server.close());

/** Runs in the page, before its own scripts. */
function engines() {
    window.spoken = [];
    window.SpeechRecognition = class {
        start() {
            window.engine = this;
        }
        stop() {
            this.onend();
        }
    };
    window.SpeechSynthesisUtterance = class {
        constructor(text) {
            this.text = text;
        }
    };
    Object.defineProperty(window, 'speechSynthesis', { value: {
        speak: (one) => (window.spoken.push(one.text), setTimeout(() => !window.holds && one.onend(), 1)),
        cancel: () => (window.cancelled = true),
    } });
}
function none() {
    for (const name of ['SpeechRecognition', 'webkitSpeechRecognition', 'speechSynthesis', 'SpeechSynthesisUtterance']) delete window[name];
}
const begin = async (script) => {
    const chat = await openChat(browser, server.url);
    await chat.context.addInitScript(script);
    await chat.page.reload();
    await chat.page.locator('chat-composer textarea').waitFor();
    return chat;
};

test('what is said goes to the caret, and what stops the engine is told', async () => {
    const { page, done } = await begin(engines);
    const field = page.getByLabel('Your message');
    await field.fill('Please. Thank you.');
    await field.evaluate((one) => one.setSelectionRange(7, 7));
    const button = page.getByRole('button', { name: 'Dictate' });
    await button.press('Enter');
    await until(async () => (await button.getAttribute('aria-pressed')) === 'true', 'it to listen');
    const hear = (text, isFinal) => page.evaluate(([transcript, isFinal]) => window.engine.onresult({ resultIndex: 0, results: [Object.assign([{ transcript }], { isFinal })] }), [text, isFinal]);
    await hear('say', false);
    assert.equal(await field.inputValue(), 'Please. say Thank you.');
    await hear('say hello', true);
    await hear('there', false);
    assert.equal(await field.inputValue(), 'Please. say hello there Thank you.');
    await button.press('Enter');
    await until(async () => (await button.getAttribute('aria-pressed')) === 'false', 'it to end');
    await button.press('Enter');
    await page.waitForFunction(() => document.querySelector('[aria-label=Dictate][aria-pressed=true]'));
    await page.evaluate(() => (window.engine.onerror({ error: 'not-allowed' }), window.engine.onend()));
    await page.getByText('may not use the microphone').waitFor();
    await done();
});

test('an answer is read aloud, sentence by sentence, without its code, until it is stopped', async () => {
    const { page, done } = await begin(engines);
    await send(page, 'say One **word**. And `two`.\n\n```js\nlet secret = 1;\n```\n\nThe end.');
    await lastAnswer(page);
    const menu = page.getByRole('button', { name: 'More about this answer' });
    await menu.press('Enter');
    await page.getByRole('button', { name: 'Read aloud' }).press('Enter');
    await until(() => page.evaluate(() => window.spoken.length === 2), 'both pieces');
    await becomes(() => page.evaluate(() => window.spoken), ['One word. And two.', 'The end.']);
    await page.evaluate(() => (window.holds = true));
    await menu.press('Enter');
    await page.getByRole('button', { name: 'Read aloud' }).press('Enter');
    await until(() => page.evaluate(() => window.spoken.length === 3), 'the first piece again');
    await page.evaluate(() => (window.cancelled = false));
    await menu.press('Enter');
    await page.getByRole('button', { name: 'Stop reading' }).press('Enter');
    await becomes(() => page.evaluate(() => window.cancelled), true);
    await menu.press('Enter');
    await page.getByRole('button', { name: 'Read aloud' }).waitFor();
    await done();
});

test('a browser without engines says so', async () => {
    const { page, done } = await begin(none);
    assert.equal(await page.getByRole('button', { name: 'Dictate' }).count(), 0);
    await openSettings(page, 'This browser');
    await page.getByText('This browser cannot take dictation. It cannot read answers aloud.').waitFor();
    await page.keyboard.press('Escape');
    await send(page, 'say one');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'More about this answer' }).click();
    await becomes(() => page.getByRole('button', { name: 'This browser cannot read aloud' }).isDisabled(), true);
    await done();
});
