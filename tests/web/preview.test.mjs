/** The preview of HTML, SVG and diagrams: what it shows, and that nothing gets out of it. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:http';
import test, { after, before } from 'node:test';
import { diagrams, escapes } from './escapes.mjs';
import { DESKTOP, PHONE, becomes, checkLooks, checkScreen, lastAnswer, launch, openChat, send, until } from './helpers.mjs';
import { startMock } from './mock_server.mjs';
import { NAUGHTY } from './naughty.mjs';

let browser;
let server;
before(async () => {
    browser = await launch();
    const clock = '```html\n<button id="b" onclick="this.textContent=\'pressed\'">Press</button>\n```';
    server = await startMock({ delayMs: 0, scripted: { 'A button': `say ${clock}`, 'A diagram': 'say ```mermaid\nflowchart LR\n  A[Ask] --> B{Is it **clear**?}\n  B -->|yes| C[Answer]\n```', 'A wrong diagram': 'say ```mermaid\nflowchart LR\n  A[Ask --> (\n```', 'A circle': 'say ```svg\n<svg viewBox="0 0 10 10"><circle cx="5" cy="5" r="4" fill="red"/></svg>\n```' } });
});
after(async () => {
    await browser.close();
    await server.close();
});
/** Frames that try their way at the same time. */
const AT_ONCE = 10;
const frame = (page) => page.frameLocator('.preview-frame iframe');

test('HTML and SVG are shown as they look, with their source, their versions and by keys alone', async () => {
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'A button');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'Preview' }).focus();
    await page.keyboard.press('Enter');
    await frame(page).getByRole('button', { name: 'Press' }).click();
    await frame(page).getByRole('button', { name: 'pressed' }).waitFor();
    await page.getByRole('button', { name: 'Begin again' }).click();
    await frame(page).getByRole('button', { name: 'Press' }).waitFor();
    await page.getByRole('button', { name: 'Source' }).click();
    await page.locator('.preview code-block', { hasText: 'onclick' }).waitFor();
    await becomes(() => page.locator('.preview').getByRole('button', { name: 'Preview' }).count(), 0, 'it is shown already');
    await checkLooks(page, 'a preview with its source');
    await page.getByRole('button', { name: 'Full screen' }).click();
    await until(() => page.evaluate(() => document.fullscreenElement?.className === 'preview-frame'), 'the frame to fill the screen');
    await page.evaluate(() => document.exitFullscreen());
    await page.keyboard.press('Escape');
    await becomes(() => page.locator('iframe').count(), 0, 'nothing runs on unseen');
    await send(page, 'A circle');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'Preview' }).last().click();
    await frame(page).locator('circle').waitFor();
    await page.getByRole('button', { name: 'Earlier version' }).click();
    await frame(page).getByRole('button', { name: 'Press' }).waitFor();
    await becomes(() => page.getByText('1/2').count(), 1);
    await page.keyboard.press('Escape');
    await done();
});

for (const language of ['html', 'mermaid']) test(`nothing gets out of ${language}: more than 60 ways, and the naughty strings`, async (t) => {
    let heard = 0;
    // A browser may connect ahead of a navigation that it then refuses; nothing is asked for.
    const elsewhere = createServer((request, reply) => {
        heard += 1;
        reply.end('hit');
    });
    await new Promise((resolve) => elsewhere.listen(0, '127.0.0.1', () => resolve(undefined)));
    t.after(() => elsewhere.close());
    // WebRTC speaks UDP.
    const udp = createSocket('udp4').on('message', () => (heard += 1));
    await new Promise((resolve) => udp.bind(/** @type {any} */ (elsewhere.address()).port, () => resolve(undefined)));
    t.after(() => udp.close());
    const E = `http://127.0.0.1:${/** @type {any} */ (elsewhere.address()).port}/`;
    const context = await browser.newContext({ acceptDownloads: true });
    const page = await context.newPage();
    const seen = [];
    page.on('popup', () => seen.push('popup'));
    page.on('dialog', (dialog) => (seen.push('dialog'), dialog.dismiss()));
    page.on('download', () => seen.push('download'));
    await page.goto(server.url);
    await page.waitForLoadState('networkidle'); // what the page asks for at its start is no way out
    const ways = language === 'html' ? [...escapes(E, server.url), NAUGHTY.join('\n')] : [...diagrams(E, server.url), naughtyDiagram()];
    assert.ok(escapes(E, server.url).length > 60);
    await page.evaluate(async () => {
        await import(new URL('js/views/preview.js', document.baseURI).href);
        addEventListener('message', ({ data }) => /hit/.test(JSON.stringify(data)) && (window.hit = data));
    });
    const requests = [];
    page.on('request', (request) => !request.url().endsWith('/preview.html') && !/^(data|blob|about):/.test(request.url()) && requests.push(request.url()));
    const tried = async (codes) => {
        await page.evaluate(async ([language, ...codes]) => {
            window.all = codes.map((code) => Object.assign(document.createElement('code-preview'), { versions: [{ language, code }], at: 0 }));
            document.body.append(...window.all);
            for (const one of window.all) while (one.waiting !== false) await new Promise((resolve) => setTimeout(resolve, 5));
        }, [language, ...codes]);
        if (language === 'mermaid') drawn += await press(page, codes.length);
        await page.waitForTimeout(250);
        await page.evaluate(() => window.all.forEach((one) => one.remove()));
        const { hit, hash, title, storage } = await page.evaluate(() => ({ hit: window.hit, hash: location.hash, title: document.title, storage: JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie }));
        const isSame = page.url().startsWith(server.url) && !page.url().startsWith(E);
        // What goes elsewhere the server there counts; the chat's own must not be asked for anything.
        const out = requests.splice(0).filter((url) => url.startsWith(server.url) && /hit|\/v1\//.test(url));
        const got = [hit, /hit/.test(hash), title.includes('hit'), /hit/.test(storage), !isSame, ...seen.splice(0), heard].filter(Boolean);
        heard = 0;
        if (hit !== undefined) await page.evaluate(() => delete window.hit);
        return got.length || out.length ? `${codes.map((code) => code.slice(0, 160)).join('\n')} -> ${JSON.stringify([got, out])}` : '';
    };
    let drawn = 0;
    const escaped = [];
    for (let i = 0; i < ways.length; i += AT_ONCE) escaped.push(await tried(ways.slice(i, i + AT_ONCE)));
    await page.waitForTimeout(500);
    assert.deepEqual(escaped.filter(Boolean), []);
    assert.equal(heard, 0);
    if (language === 'mermaid') assert.ok(drawn > ways.length * 0.8, `only ${drawn} of ${ways.length} diagrams were drawn, and so tried`);
    // The trap works: the page itself, without the frame, does get there.
    await fetch(E);
    assert.equal(heard, 1);
    await context.close();
});

/** Every naughty string in a node of its own. */
function naughtyDiagram() {
    const label = (text) => text.replace(/[\s\0]+/g, ' ').replaceAll('#', '#35;').replaceAll('"', '#quot;').slice(0, 200);
    return `flowchart TD\n${NAUGHTY.map((text, i) => `N${i}["${label(text)}"]`).join('\n')}`;
}

/** Waits until each frame shows its diagram, or why it has none, and clicks all of it.
 * @param {any} page @param {number} count of frames @returns {Promise<number>} how many diagrams there are */
async function press(page, count) {
    let drawn = 0;
    for (let i = 0; i < count; i += 1) {
        const one = page.locator('.preview-frame iframe').nth(i).contentFrame();
        await one.locator('main > svg, main > h1').first().waitFor({ state: 'attached', timeout: 60_000 });
        drawn += await one.locator('main > svg').count();
        await one.locator('main').evaluate((main) => main.querySelectorAll('svg a, .clickable, [onclick], .task, .actor').forEach((part) => part.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))));
    }
    return drawn;
}

test('a diagram is drawn in the colours of the page; a wrong one says what is wrong; without its library it says so', async () => {
    for (const colorScheme of ['light', 'dark']) {
        const { page, done } = await openChat(browser, server.url, { colorScheme });
        await send(page, 'A diagram');
        await lastAnswer(page);
        await page.getByRole('button', { name: 'Preview' }).focus();
        await page.keyboard.press('Enter');
        await frame(page).locator('main > svg .node').nth(2).waitFor();
        await becomes(() => frame(page).locator('main').innerText(), /Ask[^]*clear[^]*Answer/);
        await becomes(() => frame(page).locator('html').evaluate((html) => getComputedStyle(html).backgroundColor), colorScheme === 'dark' ? 'rgb(31, 32, 32)' : 'rgb(255, 255, 255)');
        await page.getByRole('button', { name: 'Source' }).click();
        await page.locator('.preview code-block', { hasText: 'flowchart LR' }).waitFor();
        for (const size of [PHONE, DESKTOP]) {
            await page.setViewportSize(size);
            await checkScreen(page, `a diagram, ${colorScheme}, ${size.width}`);
        }
        await page.keyboard.press('Escape');
        await send(page, 'A wrong diagram');
        await lastAnswer(page);
        await page.getByRole('button', { name: 'Preview' }).last().click();
        await frame(page).getByRole('heading', { name: 'This diagram cannot be drawn.' }).waitFor();
        await becomes(() => frame(page).locator('pre').innerText(), /line 2/);
        await page.getByRole('button', { name: 'Earlier version' }).click();
        await frame(page).locator('main > svg').waitFor();
        await done();
    }
    const { page } = await openChat(browser, server.url);
    await page.route('**/vendor/mermaid.js', (route) => route.fulfill({ status: 503 }));
    await send(page, 'A diagram');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByText('The server cannot be reached for this part of the page.').waitFor();
    await page.unroute('**/vendor/mermaid.js');
    await page.getByRole('button', { name: 'Begin again' }).click();
    await frame(page).locator('main > svg').waitFor();
    await page.context().close();
});

test('the frame\'s page alone shows nothing, whoever opens it', async () => {
    const page = await browser.newPage();
    const reply = await page.goto(new URL('preview.html', server.url).href);
    assert.match(reply.headers()['content-security-policy'], /^sandbox allow-scripts; default-src 'none'/);
    await page.evaluate(() => postMessage('<b>hit</b>', '*'));
    await page.waitForTimeout(100);
    assert.equal(await page.locator('b').count(), 0);
    await page.close();
});
