/**
 * What the page costs: first paint from the real server, a long answer as it streams, a
 * conversation of 2,000 messages. Prints figures and asserts nothing; docs/performance.md keeps
 * them. Best on a machine that does nothing else.
 *
 *     node tests/web/measure.mjs [paint] [stream] [long]     all of them without a word
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { keepLong, launch, openChat, until } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const RUNS = 5;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const sorted = (values) => [...values].sort((a, b) => a - b);
const median = (values) => sorted(values)[values.length >> 1];
const show = (values, digits = 0) => `${median(values).toFixed(digits)} (${values.map((one) => one.toFixed(digits)).join(', ')})`;

/** From the start of the navigation, with an empty cache each time: the first words, and the field
 * to write in. */
async function paint() {
    const program = process.env.PARLEY_BIN ?? join(root, 'build/parley');
    const server = spawn(program, ['serve', '-m', join(root, 'assets/seedling'), '--port', '0']);
    let log = '';
    let url = '';
    for (const stream of [server.stdout, server.stderr]) stream.on('data', (data) => (log += data));
    await until(() => (url = /http:\/\/[\d.]+:\d+\//.exec(log)?.[0] ?? ''), `the server: ${log}`, 60_000);
    const browser = await launch();
    const first = [];
    const ready = [];
    for (let i = 0; i < RUNS; i += 1) {
        const context = await browser.newContext();
        const page = await context.newPage();
        // Noted in the page, so that waiting here costs nothing there.
        await page.addInitScript(() => {
            new MutationObserver((_, watch) => {
                if (!document.querySelector('chat-composer textarea')) return;
                window.ready = performance.now();
                watch.disconnect();
            }).observe(document, { childList: true, subtree: true });
        });
        await page.goto(url);
        await until(() => page.evaluate(() => !!window.ready && performance.getEntriesByType('paint').length > 1), 'the paint');
        first.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime));
        ready.push(await page.evaluate(() => window.ready));
        await context.close();
    }
    await browser.close();
    server.kill('SIGTERM');
    console.log(`first contentful paint: ${show(first)} ms; the field to write in: ${show(ready)} ms`);
}

/** Seconds of processor time of a process, and of its main thread, without a debugger that would
 * cost some itself. */
function processorTime(pid) {
    const of = (path) => Number(readFileSync(path, 'utf8').split(' ')[0]) / 1e9;
    const all = readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + of(`/proc/${pid}/task/${thread}/schedstat`), 0);
    return { all, main: of(`/proc/${pid}/task/${pid}/schedstat`) };
}

/** 30 KB at about 6.7 KB/s, which is 1,700 tokens/s, in a browser that nothing watches. */
async function stream() {
    const text = Array.from({ length: 150 }, (_, i) => `Paragraph ${i} with **bold**, \`code\` and a [link](https://example.org/${i}); then some words that make it as long as paragraphs of answers are, which is about two hundred letters.`).join('\n\n');
    const folder = mkdtempSync(join(tmpdir(), 'parley-measure-'));
    const main = [];
    const all = [];
    for (let i = 0; i < RUNS; i += 1) {
        const server = await startMock({ delayMs: 33, scripted: { go: `say ${text.slice(0, 30_000)}` }, words: 32 });
        const child = spawn(process.env.PARLEY_CHROMIUM ?? '/usr/bin/chromium', [
            '--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--window-size=1280,800',
            '--remote-debugging-port=0', `--user-data-dir=${join(folder, String(i))}`, server.url,
        ]);
        let log = '';
        child.stderr.on('data', (data) => (log += data));
        await until(() => /ws:\/\/\S+/.test(log), 'chromium');
        const browser = await chromium.connectOverCDP(/ws:\/\/([^/\s]+)/.exec(log)[0].replace('ws', 'http'));
        const [page] = browser.contexts()[0].pages();
        await page.locator('.dot.good').waitFor();
        await page.evaluate(() => setTimeout(() => /** @type {any} */ (document.querySelector('parley-app')).chat.send('go', []), 1_500));
        await browser.close(); // takes its leave of it: it goes on by itself
        await wait(1_000);
        const renderers = readdirSync('/proc').filter((pid) => {
            try {
                const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
                return words.includes("--type=renderer") && isChildOf(pid, child.pid);
            } catch {
                return false;
            }
        });
        const before = renderers.map(processorTime);
        await until(() => server.requests.length > 0, 'the question');
        const begun = performance.now();
        await wait(5_000);
        const seconds = (performance.now() - begun) / 1000;
        const shares = renderers.map((pid, at) => {
            const now = processorTime(pid);
            return { all: (100 * (now.all - before[at].all)) / seconds, main: (100 * (now.main - before[at].main)) / seconds };
        });
        const page_ = shares.reduce((a, b) => (a.all > b.all ? a : b));
        main.push(page_.main);
        all.push(page_.all);
        child.kill();
        await new Promise((resolve) => child.on('exit', resolve));
        await server.close();
    }
    rmSync(folder, { recursive: true, force: true });
    console.log(`30 KB in 5 s: main thread ${show(main, 1)} % of a core; all threads of the page with drawing in software ${show(all, 1)} %`);
}

function isChildOf(pid, ancestor) {
    for (let at = Number(pid); at > 1; ) {
        if (at === ancestor) return true;
        at = Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${at}/stat`, 'utf8'))?.[1] ?? 0);
    }
    return false;
}

/** A conversation of 2,000 messages: until its end is shown, and the frames while it is scrolled. */
async function long() {
    const browser = await launch();
    const server = await startMock();
    const { page, context, done } = await openChat(browser, server.url);
    const id = await page.evaluate(keepLong);
    const opened = [];
    for (let i = 0; i < RUNS; i += 1) {
        opened.push(
            await page.evaluate(async (id) => {
                location.hash = '#/';
                const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
                while (document.querySelector('.messages')) await frame();
                const begun = performance.now();
                location.hash = `#/c/${id}`;
                while (!document.querySelector('.transcript').textContent.includes('Answer 999')) await frame();
                await frame(); // painted
                return performance.now() - begun;
            }, id),
        );
    }
    const session = await context.newCDPSession(page);
    await page.evaluate(() => {
        window.frames_ = [];
        let last = performance.now();
        const tick = (now) => {
            window.frames_.push(now - last);
            last = now;
            requestAnimationFrame(tick);
        };
        requestAnimationFrame(tick);
    });
    await page.mouse.move(640, 400);
    await session.send('Input.synthesizeScrollGesture', { x: 640, y: 400, yDistance: 12_000, speed: 3_000, gestureSourceType: 'mouse' });
    const frames = (await page.evaluate(() => window.frames_)).slice(2);
    const over = frames.filter((ms) => ms > 25).length;
    console.log(
        `2,000 messages open in ${show(opened)} ms; scrolled by 12,000 px in ${frames.length} frames: ` +
            `median ${median(frames).toFixed(1)} ms, 95 of 100 under ${sorted(frames)[Math.floor(frames.length * 0.95)].toFixed(1)} ms, ${over} over 25 ms`,
    );
    await done();
    await browser.close();
    await server.close();
}

const wanted = process.argv.slice(2);
for (const [name, work] of Object.entries({ paint, stream, long })) {
    if (!wanted.length || wanted.includes(name)) await work();
}
