/** The official Ollama client, unchanged, against the server. */
import assert from 'node:assert/strict';
import { Ollama } from 'ollama';
import { runTests, startServer, test } from '../client.mjs';

const server = await startServer(['--tool-call-parser', 'hermes']);
await server.ready();
const client = new Ollama({ host: `http://127.0.0.1:${server.port}` });
const messages = [{ role: 'user', content: 'hello wörld' }];
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'of a city', parameters: { type: 'object', properties: { city: { type: 'string' } } } } }];
const CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Köln"}}\n</tool_call>';

test('a chat, whole and streamed, with thoughts', async () => {
    const whole = await client.chat({ model: 'fake', messages });
    assert.equal(whole.message.content, 'You said: hello wörld');
    assert.deepEqual([whole.done, whole.done_reason, whole.model, whole.eval_count > 0, whole.prompt_eval_count > 0], [true, 'stop', 'fake', true, true]);
    let [text, thoughts, last] = ['', '', null];
    for await (const part of await client.chat({ model: 'fake', messages: [{ role: 'user', content: '!think hello' }], think: true, stream: true })) {
        text += part.message.content;
        thoughts += part.message.thinking ?? '';
        last = part;
    }
    assert.deepEqual([text, thoughts, last.done], ['You said: hello', 'Let me think.', true]);
    const cut = await client.chat({ model: 'fake', messages, options: { num_predict: 5, temperature: 0, seed: 1, num_ctx: 2048 } });
    assert.deepEqual([cut.done_reason, cut.eval_count], ['length', 5]);
});

test('tools: the call, its result, the answer', async () => {
    const asked = [{ role: 'user', content: `!raw I look. ${CALL}` }];
    const whole = await client.chat({ model: 'fake', messages: asked, tools });
    let calls = [];
    for await (const part of await client.chat({ model: 'fake', messages: asked, tools, stream: true })) calls = calls.concat(part.message.tool_calls ?? []);
    for (const list of [whole.message.tool_calls, calls]) assert.deepEqual(list, [{ function: { name: 'get_weather', arguments: { city: 'Köln' } } }]);
    const next = await client.chat({ model: 'fake', messages: [...asked, whole.message, { role: 'tool', tool_name: 'get_weather', content: 'sunny' }], tools });
    assert.equal(next.message.content, 'You said: sunny');
});

test('generate, with a system text, an image and a form', async () => {
    const image = Buffer.from('\x89PNG some pixels IEND\0\0\0\0', 'latin1').toString('base64');
    assert.equal((await client.generate({ model: 'fake', prompt: 'what?', images: [image] })).response, '[image] You said: what?');
    let text = '';
    for await (const part of await client.generate({ model: 'fake', system: 'be kind', prompt: '!recall hello', stream: true })) text += part.response;
    assert.equal(text, 'You said: hello system:be kind user:hello');
    assert.deepEqual(JSON.parse((await client.generate({ model: 'fake', prompt: '!raw {"n":7}', format: { type: 'object' } })).response), { n: 7 });
});

test('a request that asks nothing loads the model, and says nothing', async () => {
    const loads = [client.generate({ model: 'fake', prompt: '' }), client.generate({ model: 'fake', keep_alive: 0 }), client.chat({ model: 'fake', messages: [] })];
    for (const reply of await Promise.all(loads)) {
        assert.deepEqual([reply.response ?? reply.message.content, reply.done, reply.done_reason, reply.eval_count], ['', true, 'load', 0]);
    }
});

test('models and the version', async () => {
    const { models } = await client.list();
    assert.deepEqual([models[0].name, models[0].model], ['fake', 'fake']);
    assert.ok((await client.show({ model: 'fake' })).capabilities.includes('completion'));
    assert.equal((await client.ps()).models.length, 1);
    assert.match((await client.version()).version, /^\d/);
    await assert.rejects(client.show({ model: 'other' }), /no such model/);
});

test('errors are words', async () => {
    await assert.rejects(client.chat({ model: 'fake', messages: 'x' }), /messages must be a list/);
    await assert.rejects(client.chat({ model: 'fake', messages, options: { mirostat: 2 } }), /mirostat is not supported/);
    await assert.rejects(client.chat({ model: 'fake', messages, logprobs: true }), /logprobs is not supported/);
    await assert.rejects(client.chat({ model: 'fake', messages, options: { temperature: 9 } }), /temperature/);
    await assert.rejects(client.generate({ model: 'fake', prompt: 'x', raw: true }), /raw is not supported/);
    await assert.rejects(client.embed({ model: 'fake', input: [] }), /input/);
    const { embeddings } = await client.embed({ model: 'fake', input: ['ab', 'c'] });
    assert.deepEqual(embeddings.map((v) => v.length), [4, 4]);
    assert.equal((await client.embeddings({ model: 'fake', prompt: 'ab' })).embedding.length, 4);
    await assert.rejects(client.chat({ model: 'fake', messages: [{ role: 'user', content: '!fail now' }] }));
    await assert.rejects(async () => {
        for await (const part of await client.chat({ model: 'fake', messages: [{ role: 'user', content: '!fail now' }], stream: true })) assert.ok(part);
    });
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
