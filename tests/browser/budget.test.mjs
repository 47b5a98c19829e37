/** Sizes, times, and that the vendored files are the pinned ones. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { lastAnswer, launch, openChat, send } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

const WEB = join(dirname(fileURLToPath(import.meta.url)), '../../web');
const BUDGET = 150 * 1024;

function files(folder) {
    return readdirSync(folder).flatMap((name) => {
        const path = join(folder, name);
        return statSync(path).isDirectory() ? files(path) : [path];
    });
}

test('page and libraries fit in 150 KB gzip, what is loaded on demand aside', () => {
    const counted = files(WEB).filter((path) => !/samples|licenses|SHA256SUMS|(temml|pdf|pdf-worker)\.js$/.test(relative(WEB, path)));
    const total = counted.reduce((sum, path) => sum + gzipSync(readFileSync(path), { level: 9 }).length, 0);
    console.log(`page and libraries: ${(total / 1024).toFixed(1)} KB gzip in ${counted.length} files`);
    assert.ok(total <= BUDGET, `${total} bytes`);
});

test('vendored files are what their checksums say, with their licences', () => {
    const sums = readFileSync(join(WEB, 'vendor/SHA256SUMS'), 'utf8').trim().split('\n');
    assert.equal(sums.length, 6);
    for (const line of sums) {
        const [sum, name] = line.split(/\s+/);
        assert.equal(createHash('sha256').update(readFileSync(join(WEB, 'vendor', name))).digest('hex'), sum, name);
    }
    assert.ok(readdirSync(join(WEB, 'vendor/licenses')).length >= 5);
});

test('no page file makes HTML from text', () => {
    for (const path of files(join(WEB, 'js'))) {
        const source = readFileSync(path, 'utf8');
        assert.doesNotMatch(source, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|unsafeHTML|eval\(|new Function/, path);
        assert.doesNotMatch(source, /crypto\.(randomUUID|subtle)/, path);
        assert.doesNotMatch(source, /(?:import|fetch|src=)\s*\(?["'](?:https?:)?\/\//, path);
    }
});

test('every module of the page is fetched ahead', () => {
    const page = readFileSync(join(WEB, 'index.html'), 'utf8');
    for (const name of readdirSync(join(WEB, 'js'))) assert.ok(page.includes(`"js/${name}"`), `${name} has no modulepreload`);
});

test('first paint and a long conversation: figures, and only what is in view is built', async () => {
    const browser = await launch();
    const server = await startMock();
    const { page, done } = await openChat(browser, server.url);
    const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
    console.log(`first paint: ${Math.round(paint)} ms`);
    assert.ok(paint > 0);
    const id = await page.evaluate(async () => {
        const base = document.baseURI;
        const { History } = await import(new URL('js/history.js', base).href);
        const { addMessage, newConversation } = await import(new URL('js/store.js', base).href);
        const conversation = newConversation();
        for (let i = 0; i < 1000; i += 1) {
            addMessage(conversation, { role: 'user', parent: conversation.head, text: `Question ${i}` });
            addMessage(conversation, { role: 'assistant', parent: conversation.head, text: `Answer **${i}**\n\n- one\n- two\n\n\`\`\`js\nlet x = ${i};\n\`\`\`` });
        }
        await (await History.open()).save(conversation);
        return conversation.id;
    });
    const ms = await page.evaluate(async (id) => {
        const started = performance.now();
        location.hash = `#/c/${id}`;
        while (!document.body.textContent.includes('Answer 999')) await new Promise((resolve) => requestAnimationFrame(resolve));
        return performance.now() - started;
    }, id);
    console.log(`2,000 messages opened in ${Math.round(ms)} ms`);
    assert.ok((await page.locator('chat-message').count()) <= 200);
    await page.getByRole('button', { name: /Show \d+ earlier/ }).click();
    await done();
    await browser.close();
    await server.close();
});

test('an answer of 30 KB as it streams: how much of a core the page takes', async () => {
    const browser = await launch();
    const text = Array.from({ length: 150 }, (_, i) => `Paragraph ${i} with **bold**, \`code\` and a [link](https://example.org/${i}); then some words that make it as long as paragraphs of answers are, which is about two hundred letters.`).join('\n\n');
    const server = await startMock({ delayMs: 33, scripted: { go: `say ${text.slice(0, 30_000)}` }, words: 32 });
    const { page, context, done } = await openChat(browser, server.url);
    const session = await context.newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    const busy = async () => (await session.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value;
    const [before, begun] = [await busy(), performance.now()];
    await send(page, 'go');
    await lastAnswer(page);
    const seconds = (performance.now() - begun) / 1000;
    const share = (100 * ((await busy()) - before)) / seconds;
    console.log(`30 KB in ${seconds.toFixed(1)} s (${Math.round(30 / seconds)} KB/s): ${share.toFixed(1)} % of a core`);
    assert.ok((await lastAnswer(page)).length > 20_000);
    await done();
    await browser.close();
    await server.close();
});
