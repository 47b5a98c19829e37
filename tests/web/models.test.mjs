/** Several models: the list in the dialog, choosing another, one that cannot be loaded; with the
 * mock and with the program. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { becomes, checkLooks, checkScreen, lastAnswer, launch, openChat, send, until } from './helpers.mjs';
import { startHub } from '../server/hub/hub.mjs';
import { startMock } from './mock_server.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const program = process.env.PARLEY_BIN ?? join(root, 'build/parley');
const maker = join(dirname(program), 'make_gguf');
const skip = existsSync(program) && existsSync(maker) ? false : `there is no ${program} or ${maker}`;

const MODELS = [
    { id: 'blind', object: 'model', meta: { size: 4e8, n_ctx_train: 32768 }, architecture: { input_modalities: ['text'] }, status: { value: 'unloaded' } },
    { id: 'org/huge', object: 'model', meta: { size: 9e11 }, status: { value: 'unloaded' } },
    { id: 'torn', object: 'model', status: { value: 'failed', error: 'torn/model.safetensors: the file is shorter than its header says' } },
];

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

const openList = async (page) => {
    await page.locator('.model-button').click();
    await page.getByRole('region', { name: 'Models' }).waitFor();
};
const name = (page, text) => page.locator('.model-name', { hasText: text }).waitFor();

test('one model needs no list', async (t) => {
    const server = await startMock();
    t.after(() => server.close());
    const { page, done } = await openChat(browser, server.url);
    await page.locator('.model-button').click();
    await page.getByText('Other models').waitFor();
    await becomes(() => page.getByRole('region', { name: 'Models' }).count(), 0);
    await done();
});

test('another model is chosen, and the page is that of the new one', async (t) => {
    const server = await startMock({ models: MODELS });
    t.after(() => server.close());
    const { page, done } = await openChat(browser, server.url);
    await page.getByLabel('Add images').waitFor({ state: 'attached' });
    await openList(page);
    const list = page.getByRole('region', { name: 'Models' });
    assert.match(await list.innerText(), /seedling[\s\S]*in use[\s\S]*blind\s+381\.5 MiB · text only[\s\S]*One cannot be loaded$/);
    assert.equal(await list.locator('.current').innerText().then((text) => text.startsWith('seedling')), true);
    assert.equal(await list.getByText('the file is shorter').isVisible(), false);
    await list.getByText('One cannot be loaded').click();
    await list.getByText('torn/model.safetensors: the file is shorter').waitFor();
    await becomes(() => list.getByRole('button', { name: /^Use/ }).count(), 2);
    await list.getByRole('button', { name: 'Use blind' }).click();
    await list.getByText('in use').waitFor();
    await name(page, 'Blind');
    await page.keyboard.press('Escape');
    await becomes(() => page.getByLabel('Add images').count(), 0);
    await send(page, 'say changed');
    await becomes(() => lastAnswer(page), 'changed');
    assert.equal(server.requests.at(-1).body.model, 'blind');
    await done();
});

test('what is asked while another model loads is asked of that one; a failure is told', async (t) => {
    const server = await startMock({ models: MODELS, holdLoad: true });
    t.after(() => server.close());
    const { page, done } = await openChat(browser, server.url);
    await openList(page);
    await page.getByRole('button', { name: 'Use blind' }).click();
    await page.getByRole('progressbar', { name: 'blind is being loaded' }).waitFor();
    await page.keyboard.press('Escape');
    await send(page, 'say next');
    await page.getByText('say next').first().waitFor();
    assert.equal(server.requests.length, 0);
    server.options.holdLoad = false;
    assert.equal(await lastAnswer(page), 'next');
    assert.equal(server.requests.at(-1).body.model, 'blind');
    await openList(page);
    await page.getByRole('button', { name: 'Use org/huge' }).click();
    await page.getByText('org/huge cannot be loaded: there is not enough memory').waitFor();
    await name(page, 'Blind');
    await done();
});

test('the program switches between two checkpoints', { skip }, async (t) => {
    const tiny = join(root, 'tests/data/tiny');
    const folder = mkdtempSync(join(tmpdir(), 'parley-page-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    mkdirSync(join(folder, 'eyes'));
    for (const file of ['config.json', 'generation_config.json', 'processor_config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json']) symlinkSync(join(tiny, file), join(folder, 'eyes', file));
    symlinkSync(join(root, 'tools/seedling/chat_template.jinja'), join(folder, 'eyes/chat_template.jinja'));
    assert.equal(spawnSync(maker, [join(folder, 'eyes'), join(folder, 'rough.gguf'), 'q8_0']).status, 0);
    renameSync(join(folder, 'mmproj-rough.gguf'), join(folder, '.kept'));
    let log = '';
    const server = spawn(program, ['serve', '-m', 'eyes', '--models-dir', folder, '--models-max', '2', '--port', '0', '--threads', '1', '-n', '8'], { env: { ...process.env, PARLEY_CONFIG: 'none' } });
    const ended = new Promise((resolve) => server.on('exit', resolve));
    t.after(() => server.kill('SIGTERM') && ended);
    for (const stream of [server.stdout, server.stderr]) stream.on('data', (data) => (log += data));
    let url;
    await until(() => (url = /http:\/\/[\d.]+:\d+\//.exec(log)?.[0]), 'the server to be ready', 60_000);
    const { page, done } = await openChat(browser, url);
    const other = await openChat(browser, url);
    await name(page, 'Eyes');
    await page.getByLabel('Add images').waitFor({ state: 'attached' });
    await openList(page);
    await page.getByRole('button', { name: 'Use rough' }).click();
    await name(page, 'Rough');
    await name(other.page, 'Rough'); /* another open page hears of it */
    await page.getByLabel('Add images').waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await send(page, 'hello');
    await lastAnswer(page);
    await becomes(async () => (await (await fetch(new URL('v1/models', url))).json()).data[0].id, 'rough');
    await openList(page);
    await page.getByRole('button', { name: 'Use eyes' }).click();
    await name(page, 'Eyes');
    await page.getByLabel('Add images').waitFor({ state: 'attached' });
    /* The one before stays in memory until it is unloaded, here by the keyboard. */
    const list = page.getByRole('region', { name: 'Models' });
    await list.getByText('in memory').waitFor();
    await checkScreen(page, 'a model that stays in memory');
    await page.getByRole('button', { name: 'Unload rough' }).focus();
    await page.keyboard.press('Enter');
    await list.getByText('in memory').waitFor({ state: 'detached' });
    assert.deepEqual((await (await fetch(new URL('v1/models', url))).json()).data.map(({ id, status }) => [id, status.value]), [['eyes', 'loaded'], ['rough', 'unloaded']]);
    await other.done();
    await done();
});

const answers = (page) => page.locator('chat-message .answer');
const asked = (server) => server.requests.map(({ body }) => [body.model, body.input.at(-1).content.at(-1).text]);

test('a chat has its own model, whatever the server has loaded; other chats do not', async (t) => {
    const server = await startMock({ models: MODELS, delayMs: 0 });
    t.after(() => server.close());
    const { page, done } = await openChat(browser, server.url);
    await openList(page);
    await page.getByRole('button', { name: 'blind answers in this chat' }).press('Enter');
    await name(page, 'Blind');
    await page.keyboard.press('Escape');
    await page.getByText('Model blind').waitFor();
    await page.getByLabel('Add text files').waitFor({ state: 'attached' }); // it sees no images
    await send(page, 'say here');
    await lastAnswer(page);
    await becomes(() => page.locator('.answer .who').innerText(), 'Blind');
    await page.keyboard.press('Control+Shift+O');
    await name(page, 'Seedling');
    await send(page, 'say there');
    await lastAnswer(page);
    await page.locator('.entry a', { hasText: 'say here' }).click();
    await name(page, 'Blind');
    await page.reload();
    await name(page, 'Blind');
    await send(page, 'say again');
    await lastAnswer(page);
    assert.deepEqual(asked(server), [['blind', 'say here'], ['seedling', 'say there'], ['blind', 'say again']]);
    await openList(page);
    await page.getByRole('button', { name: 'blind answers in this chat' }).click();
    await name(page, 'Seedling');
    await done();
});

test('an answer again by another model stands beside the first, and either is gone on with', async (t) => {
    const server = await startMock({ models: MODELS, delayMs: 0 });
    t.after(() => server.close());
    const { page, done } = await openChat(browser, server.url);
    await send(page, 'say one');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'More about this answer' }).press('Enter');
    await page.getByRole('button', { name: 'blind', exact: true }).press('Enter');
    await until(async () => (await answers(page).count()) === 2, 'two answers');
    await lastAnswer(page);
    const boxes = await answers(page).evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
    assert.ok(Math.abs(boxes[0].top - boxes[1].top) < 2 && boxes[1].left >= boxes[0].right, JSON.stringify(boxes));
    assert.deepEqual(await page.locator('.answer .who').allInnerTexts(), ['Seedling', 'Blind']);
    await page.getByRole('button', { name: 'Go on with this one' }).press('Enter');
    await until(async () => (await page.locator('.pair > .half .who').innerText()) === 'Seedling', 'the other to be gone on with');
    await send(page, 'say two');
    await until(async () => (await answers(page).count()) === 3, 'the next answer');
    await lastAnswer(page);
    const path = await page.evaluate(() => {
        const { current } = document.querySelector('parley-app').chat;
        const models = [];
        for (let m = current.messages[current.head]; m; m = current.messages[m.parent]) models.unshift(m.modelId ?? m.text);
        return models;
    });
    assert.deepEqual(path, ['say one', 'blind', 'say two', 'seedling']);
    await page.reload();
    await until(async () => (await page.locator('.pair').count()) === 1, 'both to be there after a reload');
    await page.getByRole('button', { name: 'More about this answer' }).first().press('Enter');
    await page.getByRole('button', { name: 'Side by side no more' }).press('Enter');
    await until(async () => (await page.locator('.pair').count()) === 0 && (await answers(page).count()) === 2, 'one answer and its versions');
    await page.getByText('2/2').waitFor();
    await done();
});

test('two models answer each question, at the same time; stop stops both, and what waits waits for both', async (t) => {
    const server = await startMock({ models: MODELS, delayMs: 0, holdAfter: 3 });
    t.after(() => server.close());
    const { page, done } = await openChat(browser, server.url);
    await openList(page);
    await page.getByRole('button', { name: 'blind answers beside' }).click();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Beside blind' }).waitFor();
    await send(page, 'long');
    await until(async () => (await page.locator('.answer[aria-busy=true]').getByText('word2').count()) === 2, 'both to answer');
    assert.deepEqual(asked(server).map(([model]) => model), ['seedling', 'blind']);
    await page.getByRole('button', { name: 'Stop the answer' }).click();
    await until(async () => (await page.getByText('You stopped this answer.').count()) === 2, 'both to stop');
    server.options.holdAfter = 5;
    await send(page, 'long two');
    await until(async () => (await page.locator('.answer[aria-busy=true]').count()) === 2, 'both to answer');
    await page.getByLabel('Your message').fill('say after');
    await page.keyboard.press('Enter');
    server.options.holdAfter = Infinity;
    await until(() => server.requests.length === 6, 'the question that waited');
    await lastAnswer(page);
    assert.deepEqual(asked(server).slice(4), [['seedling', 'say after'], ['blind', 'say after']]);
    assert.equal(server.requests[4].body.input.length, 5, 'one branch goes along');
    await page.setViewportSize({ width: 390, height: 844 });
    const boxes = await answers(page).evaluateAll((all) => all.slice(-2).map((one) => one.getBoundingClientRect().toJSON()));
    assert.ok(boxes[1].top >= boxes[0].bottom && boxes[0].right <= 390, JSON.stringify(boxes));
    await done();
});

/** The program with a hub of our own, its cache in a folder of the test. */
async function serveWithHub(t, hub, ...options) {
    const folder = mkdtempSync(join(tmpdir(), 'parley-hub-'));
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PARLEY_|HF_|HUGGING)/.test(name)));
    const server = spawn(program, ['serve', '-m', join(root, 'assets/seedling'), '--port', '0', '--threads', '1', ...options], { env: { ...env, PARLEY_CONFIG: 'none', HF_ENDPOINT: hub.url, HF_HUB_CACHE: join(folder, 'cache') } });
    const ended = new Promise((resolve) => server.on('exit', resolve));
    t.after(async () => {
        server.kill('SIGTERM');
        await ended;
        rmSync(folder, { recursive: true, force: true });
    });
    let log = '', url;
    for (const stream of [server.stdout, server.stderr]) stream.on('data', (data) => (log += data));
    await until(() => (url = /http:\/\/[\d.]+:\d+\//.exec(log)?.[0]), 'the server to be ready', 60_000);
    return url;
}

test('models of a hub are fetched with progress, looked at, used and removed on the page', { skip: existsSync(program) ? false : `there is no ${program}` }, async (t) => {
    const tiny = join(root, 'tests/data/tiny');
    const files = Object.fromEntries(readdirSync(tiny).filter((file) => /\.(json|safetensors)$/.test(file)).map((file) => [file, readFileSync(join(tiny, file))]));
    files['chat_template.jinja'] = readFileSync(join(root, 'tools/seedling/chat_template.jinja'));
    const hub = await startHub();
    t.after(() => hub.stop());
    hub.add('org/tiny', files);
    hub.add('org/odd', { 'config.json': Buffer.from('{"architectures":["OddForCausalLM"],"model_type":"odd"}'), 'model.safetensors': Buffer.alloc(9000), 'tokenizer.json': Buffer.from('{}') });
    const url = await serveWithHub(t, hub);
    const { page, done } = await openChat(browser, url);
    await page.locator('.model-button').click();
    await page.getByText('Models of a hub').click();
    const part = page.locator('hub-models');
    await part.getByText(/No model of 127\.0\.0\.1:\d+ is on/).waitFor();

    /* What Parley does not run is said before a weight is fetched; what is no name, too. */
    const fetchModel = async (name) => {
        await part.getByLabel('Model to fetch').fill(name);
        await page.keyboard.press('Enter');
    };
    await fetchModel('org/odd');
    await part.getByRole('button', { name: 'Close the message about org/odd' }).waitFor();
    assert.match(await part.locator('.bad').allInnerTexts().then((all) => all.join('')), /odd/i);
    assert.equal(hub.requests.some(({ path }) => path.includes('safetensors')), false);
    await part.getByRole('button', { name: 'Close the message about org/odd' }).click();
    await fetchModel('nonsense');
    await part.getByText(/"nonsense" is not the name of a model/).waitFor();

    /* It stands half-way until the hub goes on; the page may be left meanwhile. */
    const size = files['model.safetensors'].length, half = size >> 1;
    hub.fault('model.safetensors', { holdAt: half, always: true });
    await fetchModel('org/tiny');
    const bar = part.getByRole('progressbar', { name: 'org/tiny is being fetched' });
    await until(async () => (await bar.evaluate((one) => one.value)) > half, 'half of it');
    await page.reload();
    await page.locator('.model-button').click();
    await page.getByText('Models of a hub').click();
    await bar.waitFor();
    await checkLooks(page, 'a model being fetched');
    await part.getByRole('button', { name: 'Stop fetching org/tiny' }).click();
    await part.getByText('not whole').waitFor();
    hub.fault('model.safetensors');
    hub.requests.length = 0;
    await part.getByRole('button', { name: 'Go on with org/tiny' }).click();
    await part.getByRole('button', { name: 'Use org/tiny' }).waitFor();
    assert.ok(hub.requests.some(({ range }) => range === `bytes=${half}-`), 'it went on where it was');
    await part.getByRole('button', { name: 'Inspect org/tiny' }).click();
    await part.getByLabel('What org/tiny holds').getByText(/qwen3_5/).waitFor();
    await checkScreen(page, 'what a model of a hub holds');
    await part.getByRole('button', { name: 'Close what org/tiny holds' }).click();

    await part.getByRole('button', { name: 'Use org/tiny' }).click();
    await name(page, 'Tiny');
    await becomes(() => part.getByRole('button', { name: 'Remove org/tiny' }).count(), 0); // it is in memory
    await page.getByRole('button', { name: 'Use seedling' }).click();
    await name(page, 'Seedling');
    await part.getByRole('button', { name: 'Remove org/tiny' }).click();
    await part.getByRole('button', { name: 'Remove org/tiny for good' }).click();
    await part.getByText(/No model of 127/).waitFor();
    await becomes(async () => (await (await fetch(new URL('v1/models', url))).json()).data.map(({ id }) => id), ['seedling']);
    await done();
});

test('elsewhere models of a hub need the key of the admin', { skip: existsSync(program) ? false : `there is no ${program}` }, async (t) => {
    const hub = await startHub();
    t.after(() => hub.stop());
    const key = 'a-key-of-the-admin-alone';
    const url = await serveWithHub(t, hub, '--admin-key', key);
    assert.equal((await fetch(new URL('v1/hub', url))).status, 403);
    const { page, done } = await openChat(browser, url);
    await page.locator('.model-button').click();
    await page.getByText('Models of a hub').click();
    await page.getByLabel('Key of the admin').fill(key);
    await page.keyboard.press('Enter');
    await page.getByLabel('Model to fetch').waitFor();
    await done();
});
