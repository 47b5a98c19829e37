/** Switching between real checkpoints: the answers of each are those of a server that never had
 * another, and nothing that one computed is used for the other. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
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

const start = async (name) => {
    const server = await startServer(['serve', '-m', name, '--models-dir', root, '--port', '0', '--threads', '1', '-c', '512'], env);
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

await runTests();
