/** Switching between real checkpoints: the answers of each are those of a server that never had
 * another, and nothing that one computed is used for the other. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, post, request, runTests, startServer, test } from '../client.mjs';

const tiny = fileURLToPath(new URL('../../data/tiny', import.meta.url));
const template = fileURLToPath(new URL('../../../tools/seedling/chat_template.jinja', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'parley-switch-'));
process.on('exit', () => rmSync(root, { recursive: true, force: true }));
const env = { PARLEY_CONFIG: 'none', XDG_CACHE_HOME: join(root, '.cache') };

/* The same checkpoint twice, in two precisions, one of them without vision. */
mkdirSync(join(root, 'full'));
for (const file of ['config.json', 'generation_config.json', 'processor_config.json', 'model.safetensors', 'model-mtp.safetensors', 'tokenizer.json', 'tokenizer_config.json']) {
    symlinkSync(join(tiny, file), join(root, 'full', file));
}
symlinkSync(template, join(root, 'full', 'chat_template.jinja'));
assert.equal(spawnSync(join(dirname(PROGRAM), 'make_gguf'), [tiny, join(root, 'rough.gguf'), 'q4_0']).status, 0);
renameSync(join(root, 'mmproj-rough.gguf'), join(root, '.eyes'));

const start = async (name, ...more) => {
    const server = await startServer(['serve', '-m', name, '--models-dir', root, '--port', '0', '--threads', '1', '-c', '512', ...more], env);
    await server.ready();
    return server;
};
const prompt = 'A long enough beginning of a prompt that another answer may use again. '.repeat(6);
const ask = async (server, model) => {
    const reply = await post(server, '/v1/completions', { model, prompt, max_tokens: 24, temperature: 0, logprobs: 1 });
    assert.equal(reply.status, 200, reply.text);
    const { choices, usage } = reply.json();
    return { text: choices[0].text, logprobs: JSON.stringify(choices[0].logprobs), cached: usage.prompt_tokens_details?.cached_tokens ?? 0 };
};

test('each answers as it does alone, and nothing of the other is used', async () => {
    const alone = {};
    for (const name of ['full', 'rough']) {
        const server = await start(name);
        alone[name] = await ask(server, name);
        assert.ok((await ask(server, name)).cached > 0, 'the second time finds the prompt');
        assert.equal(await server.stop(), 0);
    }
    assert.notEqual(alone.full.logprobs, alone.rough.logprobs);
    const server = await start('full');
    for (const name of ['full', 'rough', 'full', 'rough']) {
        const { text, logprobs, cached } = await ask(server, name);
        assert.deepEqual([text, logprobs, cached], [alone[name].text, alone[name].logprobs, 0], name);
    }
    const status = (await request(server, { path: '/v1/status' })).json();
    assert.equal(status.model.id, 'rough');
    assert.equal(status.totals.requests, 1, 'the counters are those of the loaded model');
    assert.equal(await server.stop(), 0);
});

test('an image is refused by a model without vision and seen by the other', async () => {
    const server = await start('rough');
    const url = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC';
    const look = (model) =>
        post(server, '/v1/chat/completions', { model, max_tokens: 4, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] });
    assert.equal((await look('rough')).status, 400);
    assert.equal((await look('full')).status, 200);
    assert.equal((await request(server, { path: '/props' })).json().modalities.vision, true);
    assert.equal((await look('rough')).status, 400);
    assert.equal(await server.stop(), 0);
});

const statusOf = async (server) => (await request(server, { path: '/v1/status' })).json();
const residents = async (server) => (await statusOf(server)).residents.map(({ id }) => id);
const load = async (server, model) => assert.equal((await post(server, '/models/load', { model })).status, 200, model);

test('two in memory: each answers as alone and keeps its cached prompts', async () => {
    const server = await start('full', '--models-max', '2');
    const first = { full: await ask(server, 'full'), rough: await ask(server, 'rough') };
    for (const name of ['full', 'rough', 'full']) {
        const again = await ask(server, name);
        assert.equal(again.text, first[name].text, name);
        assert.ok(again.cached > 0, `${name} has kept what it computed`);
    }
    assert.deepEqual(await residents(server), ['rough']);
    const list = (await request(server, { path: '/v1/models' })).json().data.map(({ id, status }) => [id, status.value, status.current]);
    assert.deepEqual(list.slice(0, 2), [['full', 'loaded', true], ['rough', 'loaded', false]]);
    assert.match((await request(server, { path: '/metrics' })).text, /^parley_models_resident 2$/m);
    assert.deepEqual((await request(server, { path: '/api/ps' })).json().models.map(({ name }) => name), ['full', 'rough']);

    /* A running answer finishes before the other model's turn. */
    const [long, short] = await Promise.all([
        post(server, '/v1/completions', { model: 'full', prompt, max_tokens: 150, temperature: 0, ignore_eos: true }),
        post(server, '/v1/completions', { model: 'rough', prompt, max_tokens: 4, temperature: 0 }),
    ]);
    assert.deepEqual([long.status, short.status], [200, 200]);
    assert.equal(long.json().usage.completion_tokens, 150);

    const unload = (model) => post(server, '/models/unload', { model });
    const { model } = await statusOf(server);
    assert.equal((await unload(model.id)).json().error.code, 'model_in_use');
    const other = model.id === 'full' ? 'rough' : 'full';
    assert.equal((await unload(other)).status, 200);
    assert.deepEqual(await residents(server), []);
    assert.equal((await unload('neither')).status, 404);
    assert.equal((await unload('')).status, 400);
    assert.equal((await ask(server, other)).text, first[other].text);
    assert.equal(await server.stop(), 0);
});

test('what was used longest ago leaves, but for the pinned, the idle, and where memory is short', async () => {
    mkdirSync(join(root, 'third'));
    for (const file of readdirSync(join(root, 'full'))) {
        symlinkSync(readlinkSync(join(root, 'full', file)), join(root, 'third', file));
    }
    const server = await start('full', '--models-max', '2');
    for (const name of ['rough', 'full', 'third']) {
        await load(server, name);
    }
    assert.deepEqual(await residents(server), ['full'], 'rough was used longest ago');
    assert.equal(await server.stop(), 0);

    const pinned = await start('full', '--models-max', '2', '--pin', 'full', '--idle-unload', '1');
    for (const name of ['rough', 'third']) {
        await load(pinned, name);
    }
    assert.deepEqual(await residents(pinned), ['full'], 'it is pinned');
    await load(pinned, 'full');
    for (const end = Date.now() + 60_000; (await residents(pinned)).length > 0; await new Promise((r) => setTimeout(r, 100))) {
        assert.ok(Date.now() < end, 'the idle one leaves');
    }
    assert.equal((await statusOf(pinned)).model.id, 'full');
    assert.equal(await pinned.stop(), 0);

    const plain = ['--cache-ram', '8', '--vision-cache', '0'];
    const full = await start('full', '--pin', 'full', ...plain);
    const { weight_bytes, state_bytes } = (await statusOf(full)).memory;
    const refused = await post(full, '/models/load', { model: 'rough' });
    assert.deepEqual([refused.status, refused.json().error.code], [503, 'models_pinned']);
    assert.ok((await ask(full, 'full')).text);
    assert.equal(await full.stop(), 0);

    const short = await start('full', '--models-max', '3', '--mem-limit', String(513 + Math.ceil((weight_bytes + state_bytes) / 2 ** 20)), ...plain);
    await load(short, 'rough');
    assert.deepEqual(await residents(short), [], 'there is no room for both');
    await load(short, 'full');
    assert.equal((await statusOf(short)).model.id, 'full');
    assert.equal(await short.stop(), 0);
    rmSync(join(root, 'third'), { recursive: true });
    for (const [words, said] of [[['--pin', 'nobody', '--models-dir', root], /nobody/], [['--models-max', '2'], /--models-dir/]]) {
        const { status, stderr } = spawnSync(PROGRAM, ['serve', '-m', join(root, 'full'), '--port', '0', ...words], { env: { ...process.env, ...env }, encoding: 'utf8' });
        assert.equal(status, 2, stderr);
        assert.match(stderr, said);
    }
});

await runTests();
