/** What leaves the machine is said: models of other servers in the menu, the composer, the answer's route. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch, openChat, send, until } from './helpers.mjs';
import { startUpstream } from '../server/upstream/fake_upstream.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const program = process.env.PARLEY_BIN ?? join(root, 'build/parley');
const skip = existsSync(program) ? false : `there is no ${program}`;

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

async function startParley(args) {
    const child = spawn(program, ['--port', '0', ...args], { env: { ...process.env, PARLEY_CONFIG: 'none' }, stdio: ['ignore', 'pipe', 'ignore'] });
    const url = await new Promise((resolve) => child.stdout.on('data', (data) => /http:\S+/.exec(data) && resolve(/http:\S+/.exec(data)[0])));
    return { url, close: () => child.kill('SIGKILL') };
}

const RULE = 'when prompt_tokens > 60 use gpu/org/big';
const start = async (t, args) => {
    const gpu = await startUpstream({ engine: 'vllm', model: 'org/big', answer: () => ({ content: 'From afar.' }) });
    const parley = await startParley([...args, '--upstream', `gpu=${gpu.url}`]);
    t.after(() => (parley.close(), gpu.close()));
    for (let i = 0; i < 200 && !(await (await fetch(`${parley.url}v1/models`)).text()).includes('gpu/org/big'); i++) await new Promise((resolve) => setTimeout(resolve, 50));
    return { gpu, parley, ...(await openChat(browser, parley.url)) };
};
const long = 'Count the words of this sentence again and again. '.repeat(12);

test('a rule: the composer says what may leave, the answer what has left, a switch keeps it here', { skip }, async (t) => {
    const { gpu, page, done } = await start(t, ['-m', join(root, 'assets/seedling'), '--route', RULE]);
    const note = page.locator('.leaves').filter({ hasText: 'May go to another server' });
    await note.waitFor();
    await send(page, 'What is 7 plus 5?');
    await until(async () => (await page.locator('.answer .speed').count()) === 1);
    assert.deepEqual([gpu.requests.length, await page.locator('.from').count()], [0, 0]);
    await send(page, long);
    const from = page.locator('.from');
    await from.waitFor();
    assert.deepEqual([await from.innerText(), await from.getAttribute('title'), gpu.requests.length], ['gpu', RULE, 1]);
    assert.match(await page.locator('.answer').last().innerText(), /^gpu\/org\/big/);
    await page.getByRole('button', { name: 'Keep here' }).click();
    await page.getByText('Stays on this server.').waitFor();
    await send(page, `${long} Please.`);
    await until(async () => (await page.locator('.answer .speed').count()) === 3);
    assert.deepEqual([gpu.requests.length, await from.count()], [1, 1]);
    await done();
});

test('a model of another server is chosen in the menu, and left again', { skip }, async (t) => {
    const { gpu, page, done } = await start(t, ['-m', join(root, 'assets/seedling')]);
    assert.equal(await page.locator('.leaves').count(), 0);
    const menu = async () => { await page.locator('.model-button').click(); return page.getByRole('region', { name: 'Models' }); };
    const list = await menu();
    await list.getByText('on gpu').waitFor();
    await list.getByText('Models of gpu are on another server').waitFor();
    await list.getByRole('button', { name: 'gpu/org/big answers in this chat' }).click();
    await page.keyboard.press('Escape');
    await page.getByText('Goes to gpu, another server.').waitFor();
    await page.locator('.model-name', { hasText: 'gpu/org/big' }).waitFor();
    assert.equal(await page.locator('.model-server').count(), 1);
    await send(page, 'What is 7 plus 5?');
    await page.locator('.from').waitFor();
    assert.deepEqual([gpu.requests.length, gpu.requests[0].body.model], [1, 'org/big']);
    await page.reload();
    await page.getByText('Goes to gpu, another server.').waitFor();
    await (await menu()).getByRole('button', { name: 'gpu/org/big answers in this chat' }).click();
    await page.keyboard.press('Escape');
    await until(async () => (await page.locator('.leaves').count()) === 0);
    await send(page, 'What is 7 plus 5?');
    await until(async () => (await page.locator('.answer .speed').count()) === 2);
    assert.equal(gpu.requests.length, 1);
    await done();
});

test('without a model here: all of it goes there, and videos have their strip', { skip }, async (t) => {
    const { gpu, page, done } = await start(t, []);
    await page.getByText('Goes to gpu, another server.').waitFor();
    await page.locator('.composer input[type=file]').first().setInputFiles(join(root, 'assets/samples/color-changes.webm'));
    await page.locator('video-strip').waitFor();
    await send(page, 'What happens?');
    await page.locator('.from').waitFor();
    assert.match(gpu.requests[0].body.messages[0].content.find((part) => part.type === 'video_url').video_url.url, /^data:video/);
    await done();
});
