/** The page in other languages: the files hold what the sources say and nothing else, every text goes
 * through them, and the document says its language and direction. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SAMPLES, lastAnswer, launch, openChat, send } from './helpers.mjs';
import { startMock } from './mock_server.mjs';
import { scripts, templates, textsOf } from './texts.mjs';

const WEB = join(dirname(fileURLToPath(import.meta.url)), '../../web');
const LANGUAGES = ['ar', 'de', 'es', 'fr', 'ja', 'zh'];
const read = (language) => JSON.parse(readFileSync(join(WEB, `languages/${language}.json`), 'utf8'));
const places = (text) => [...text.matchAll(/\{\d\}|\{\{/g)].map(([one]) => one).sort();
/** The forms that a language has for whole numbers. */
const formsOf = (language) => {
    const rules = new Intl.PluralRules(language);
    return [...new Set(Array.from({ length: 201 }, (_, n) => rules.select(n)).concat('other'))].sort();
};

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

test('every language has every text, each with its values and its plural forms, and none that is not used', () => {
    const texts = textsOf(WEB);
    assert.ok(texts.size > 500);
    assert.deepEqual(readdirSync(join(WEB, 'languages')).sort(), LANGUAGES.map((one) => `${one}.json`));
    for (const language of LANGUAGES) {
        const messages = read(language);
        assert.deepEqual([...texts.keys()].filter((text) => !(text in messages)), [], `not translated: ${language}`);
        assert.deepEqual(Object.keys(messages).filter((text) => !texts.has(text)), [], `not used: ${language}`);
        for (const [text, { plural }] of texts) {
            const message = messages[text];
            assert.equal(typeof message, plural ? 'object' : 'string', `${language}: ${text}`);
            if (!plural) {
                assert.deepEqual(places(message), places(text), `${language}: ${text}`);
                assert.ok(message.trim(), `${language}: ${text}`);
                continue;
            }
            assert.deepEqual(Object.keys(message).sort(), formsOf(language), `${language}: ${text}`);
            for (const [form, words] of Object.entries(message)) {
                assert.ok(words.trim() && places(words).every((one) => places(text).includes(one)), `${language}: ${form}: ${text}`);
                // Where a form is of one number alone, that may be a word; every other value is there.
                const left = /^(zero|one|two)$/.test(form) ? places(text).filter((one) => one !== '{0}') : places(text);
                if (!/^zero$/.test(form)) assert.ok(left.every((one) => words.includes(one)), `${language}: ${form}: ${text}`);
            }
        }
    }
});

test('first-frame.js, the settings and the files know the same languages', async () => {
    const source = readFileSync(join(WEB, 'js/first-frame.js'), 'utf8');
    const known = [.../known = \[(.*)\]/.exec(source)[1].matchAll(/'(\w+)'/g)].map(([, one]) => one);
    const { LANGUAGES: named } = await import(join(WEB, 'js/language.js'));
    assert.deepEqual(known, Object.keys(named));
    assert.deepEqual(known.filter((one) => one !== 'en').sort(), LANGUAGES);
});

test('no words stand in a template as they are', () => {
    for (const file of scripts(join(WEB, 'js'))) {
        for (const { tag, pieces } of templates(readFileSync(file, 'utf8'))) {
            if (tag !== 'html') continue;
            const source = pieces.join('\u0000').replace(/<!--.*?-->/gs, '');
            const attributes = [...source.matchAll(/\s(aria-label|title|placeholder|alt|label)="([^"]*)"/g)].map(([, , words]) => words);
            const shown = source.replace(/<(code|kbd)\b[^>]*>[^<]*/g, '').replace(/=\u0000/g, '=""').replace(/<[^>]*>/g, '\n');
            for (const words of [shown, ...attributes]) {
                assert.doesNotMatch(words.replace(/\bParley\b|&\w+;/g, ''), /[A-Za-z]{2,}/, `${file}: ${words.trim()}`);
            }
        }
    }
});

/** What is seen or heard on the page and did not come from the file of the language.
 * @param {import('playwright-core').Page} page @returns {Promise<string[]>} */
const notTranslated = (page) =>
    page.evaluate(() => {
        const own = 'code, kbd, pre, .prose, .bubble, option[lang], .model-name, .models strong, .sample-question, .entry > a, #live-answer, h2.who, .file-thumb, textarea, dd, script, style';
        const rest = (text) => {
            let words = text;
            for (let before = ''; before !== words; ) [before, words] = [words, words.replace(/⟦[^⟦⟧]*⟧/g, '')];
            return words.replace(/\b(hello|Parley|JSON|Markdown|[KMG]iB|MP|Ctrl|Shift|Enter|Esc)\b/g, '');
        };
        const found = [];
        const note = (text) => /[A-Za-z]{2,}/.test(rest(text ?? '')) && found.push(text.trim());
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
        for (let node = walk.nextNode(); node; node = walk.nextNode()) {
            const element = node.nodeType === 3 ? node.parentElement : node;
            if (element.closest(own) || !element.checkVisibility({ visibilityProperty: true })) continue;
            if (node.nodeType === 3) note(node.data);
            else for (const name of ['aria-label', 'title', 'placeholder', 'alt', 'aria-valuetext']) note(element.getAttribute(name));
        }
        return [...new Set(found)];
    });

test('all that is shown comes from the file of the language', async () => {
    const { page, done } = await openChat(browser, server.url, { locale: 'de-AT' });
    const marked = (text) => `⟦${text}⟧`;
    const messages = Object.fromEntries([...textsOf(WEB)].map(([text, { plural }]) => [text, plural ? { one: marked(text), other: marked(text) } : marked(text)]));
    await page.route('**/languages/de.json', (route) => route.fulfill({ json: messages }));
    await page.reload();
    await page.locator('.sample').nth(2).waitFor();
    await page.locator('.introduction summary').click();
    const model = 'Seedling';
    const check = async (screen) => {
        const left = (await notTranslated(page)).filter((text) => !new RegExp(`^(${model}|outlines\\.png.*)$`, 'i').test(text.replace(/⟦|⟧/g, '')));
        assert.deepEqual(left, [], screen);
    };
    await check('welcome');
    await page.locator('chat-composer input[multiple]').setInputFiles(join(SAMPLES, 'outlines.png'));
    await page.locator('.tray .thumb img').waitFor();
    await page.locator('chat-composer textarea').fill('hello');
    await page.locator('button.send').click();
    await lastAnswer(page);
    await page.locator('.answer .actions [popovertarget]').click();
    await check('an answer and its menu');
    await page.keyboard.press('Escape');
    await page.locator('.entry [popovertarget]').first().click();
    await check('the menu of a chat');
    await page.keyboard.press('Escape');
    await page.locator('[popovertarget="model-menu"]').click();
    await page.locator('model-list .models, model-list .note').first().waitFor();
    await check('the models');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+,');
    for (const part of ['chat', 'new', 'browser']) {
        await page.locator(`#tab-${part}`).click();
        for (const one of await page.locator('#settings details:not([open]) > summary').all()) await one.click();
        await check(`settings: ${part}`);
    }
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+/');
    await check('the keys');
    await done();
});

test('the language is the browser\'s, or the chosen one; the document says it, and numbers are written as it does', async () => {
    const { page, done } = await openChat(browser, server.url, { locale: 'ar-EG' });
    const root = () => page.evaluate(() => [document.documentElement.lang, document.documentElement.dir]);
    assert.deepEqual(await root(), ['ar', 'rtl']);
    const ar = read('ar');
    await page.getByLabel(ar['Your message']).waitFor();
    // The list of chats is at the right, where reading begins.
    const sidebar = await page.locator('.sidebar').boundingBox();
    assert.ok(sidebar.x > 600, `the list of chats begins at ${sidebar.x}`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await page.keyboard.press('Control+,');
    await page.locator('#tab-browser').click();
    const loaded = page.waitForEvent('load');
    await page.locator('#language').selectOption('de');
    await loaded;
    await page.getByLabel(read('de')['Your message']).waitFor();
    assert.deepEqual(await root(), ['de', 'ltr']);
    const written = await page.evaluate(async () => {
        const { formatBytes, formatCount, formatDuration, formatRate } = await import(new URL('js/util.js', document.baseURI).href);
        const { formatPercent, listed, plural } = await import(new URL('js/language.js', document.baseURI).href);
        return [formatBytes(1536), formatCount(32768), formatDuration(1234), formatRate(12.34), formatPercent(0.456), listed(['a', 'b', 'c']), plural(1, '{0} chat deleted.', '{0} chats deleted.'), plural(1234, '{0} chat deleted.', '{0} chats deleted.')];
    });
    assert.deepEqual(written.map((one) => one.replaceAll('\u00a0', ' ')), ['1,5 KiB', '32.768', '1,2 s', '12,3', '46 %', 'a, b und c', '1 Chat gelöscht.', '1.234 Chats gelöscht.']);
    await done();
});

test('a language file that cannot be had leaves the page in English', async () => {
    const { page, done, faults } = await openChat(browser, server.url, { locale: 'fr-CA' });
    await page.getByLabel(read('fr')['Your message']).waitFor();
    await page.route('**/languages/fr.json', (route) => route.abort());
    await page.reload();
    await page.getByLabel('Your message').waitFor();
    await send(page, 'hello');
    await lastAnswer(page);
    faults.length = 0; // the request that failed is one
    await done();
});
