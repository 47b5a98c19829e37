/** The official openai client, unchanged, against the server: chat, Responses over HTTP and
 * WebSocket, errors, cancel. */
import assert from 'node:assert/strict';
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI, { toFile } from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { eventually, metric, runTests, sleep, startServer, test } from '../client.mjs';

const server = await startServer();
await server.ready();
const client = new OpenAI({ baseURL: `http://127.0.0.1:${server.port}/v1`, apiKey: 'none', maxRetries: 0 });
const messages = [{ role: 'user', content: 'hello wörld' }];
const PNG = `data:image/png;base64,${Buffer.from('\x89PNG some pixels IEND\0\0\0\0', 'latin1').toString('base64')}`;

test('models', async () => {
    const list = await client.models.list();
    assert.equal(list.data[0].id, 'fake');
    assert.equal((await client.models.retrieve('fake')).object, 'model');
    await assert.rejects(client.models.retrieve('other'), OpenAI.NotFoundError);
});

test('chat, whole and streaming', async () => {
    const whole = await client.chat.completions.create({ model: 'fake', messages });
    assert.equal(whole.choices[0].message.content, 'You said: hello wörld');
    assert.equal(whole.choices[0].finish_reason, 'stop');
    const stream = await client.chat.completions.create({ model: 'fake', messages, stream: true, stream_options: { include_usage: true } });
    let text = '';
    let usage = null;
    for await (const chunk of stream) {
        text += chunk.choices[0]?.delta?.content ?? '';
        usage = chunk.usage ?? usage;
    }
    assert.equal(text, 'You said: hello wörld');
    assert.equal(usage.total_tokens, whole.usage.total_tokens);
    const helper = client.chat.completions.stream({ model: 'fake', messages });
    assert.equal(await helper.finalContent(), 'You said: hello wörld');
});

test('an image', async () => {
    const reply = await client.chat.completions.create({
        model: 'fake',
        messages: [{ role: 'user', content: [{ type: 'text', text: 'what?' }, { type: 'image_url', image_url: { url: PNG, detail: 'high' } }] }],
    });
    assert.equal(reply.choices[0].message.content, '[image] You said: what?');
    assert.equal(reply.timings.route, 'media');
});

test('errors become the client\'s error classes', async () => {
    const create = (body) => client.chat.completions.create({ model: 'fake', messages, ...body });
    const bad = await create({ temperature: 7 }).catch((error) => error);
    assert.ok(bad instanceof OpenAI.BadRequestError);
    assert.equal(bad.param, 'temperature');
    assert.equal(bad.code, 'invalid_value');
    assert.equal(bad.type, 'invalid_request_error');
    assert.match(bad.requestID, /^req_/);
    const long = await create({ messages: [{ role: 'user', content: 'x'.repeat(30000) }] }).catch((error) => error);
    assert.equal(long.code, 'context_length_exceeded');
    await assert.rejects(create({ messages: [{ role: 'user', content: '!fail now' }] }), OpenAI.InternalServerError);
    const stream = await create({ messages: [{ role: 'user', content: '!fail now' }], stream: true });
    await assert.rejects(async () => {
        for await (const chunk of stream) assert.ok(chunk);
    });
});

test('what is not offered is no failure of the server', async () => {
    for (const call of [() => client.moderations.create({ input: 'a' }), () => client.images.generate({ prompt: 'a' }), () => client.fineTuning.jobs.list()]) {
        const error = await call().then(() => null, (e) => e);
        assert.ok(error.status >= 400 && error.status < 500, String(error));
    }
});

test('embeddings, in base64 as the client asks and as numbers; several choices and prompts', async () => {
    const size = Math.hypot(2, 3, 4);
    for (const encoding_format of [undefined, 'float', 'base64']) {
        const { data, usage } = await client.embeddings.create({ model: 'fake', input: ['ab', 'abc'], encoding_format });
        const first = encoding_format === 'base64' ? [...new Float32Array(Uint8Array.from(Buffer.from(data[0].embedding, 'base64')).buffer)] : data[0].embedding;
        first.forEach((x, i) => assert.ok(Math.abs(x - [2, 3, 4, 0][i] / size) < 1e-6));
        assert.deepEqual([data.length, usage.total_tokens], [2, 5]);
    }
    const { choices } = await client.chat.completions.create({ model: 'fake', messages: [{ role: 'user', content: '!choice' }], n: 4 });
    assert.deepEqual(choices.map((c) => c.message.content), ['You said: ', 'You said: 1', 'You said: 2', 'You said: 3']);
    const helper = client.chat.completions.stream({ model: 'fake', messages: [{ role: 'user', content: '!choice' }], n: 2 });
    assert.deepEqual((await helper.finalChatCompletion()).choices.map((c) => c.message.content), ['You said: ', 'You said: 1']);
    assert.deepEqual((await client.completions.create({ model: 'fake', prompt: ['a', 'b'] })).choices.map((c) => c.text), ['a', 'b']);
});

test('effort "max", a role without content, logprobs.refusal', async () => {
    assert.equal((await client.chat.completions.create({ model: 'fake', messages, reasoning_effort: 'max' })).choices[0].finish_reason, 'stop');
    const stream = await client.chat.completions.create({ model: 'fake', messages, stream: true, logprobs: true, top_logprobs: 1 });
    const deltas = [];
    let probs = null;
    for await (const chunk of stream) {
        deltas.push(chunk.choices[0].delta);
        probs = chunk.choices[0].logprobs ?? probs;
    }
    assert.deepEqual(deltas[0], { role: 'assistant', content: null });
    assert.equal(probs.refusal, null);
    const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };
    const calls = await client.chat.completions.create({ model: 'fake', messages: [{ role: 'user', content: '!raw <tool_call>\n<function=f>\n</function>\n</tool_call>' }], tools: [tool], stream: true });
    for await (const chunk of calls) assert.ok(!chunk.choices[0].delta.content && chunk.choices[0].delta.content !== '');
});

test('abort frees the slot', async () => {
    const stream = await client.chat.completions.create({ model: 'fake', messages: [{ role: 'user', content: '!len=8000 !delay=30' }], stream: true });
    for await (const chunk of stream) {
        if (chunk.choices[0].delta.content) break;
    }
    stream.controller.abort();
    await eventually(() => metric(server, 'parley_requests_running'), 0, 20000); // by itself it would take 60 s
});

test('Responses over HTTP', async () => {
    const whole = await client.responses.create({ model: 'fake', input: 'hello !think', instructions: 'be kind' });
    assert.equal(whole.output_text, 'You said: hello ');
    assert.equal(whole.output[0].type, 'reasoning');
    assert.equal(whole.status, 'completed');
    const stream = client.responses.stream({ model: 'fake', input: [{ role: 'user', content: [{ type: 'input_text', text: 'hi' }, { type: 'input_image', image_url: PNG, detail: 'auto' }] }] });
    let text = '';
    stream.on('response.output_text.delta', (event) => (text += event.delta));
    const final = await stream.finalResponse();
    assert.equal(final.output[0].content[0].text, '[image] You said: hi');
    assert.equal(text, '[image] You said: hi');
    const long = await client.responses.create({ model: 'fake', input: '!len=8000 !delay=30', store: true, stream: true });
    for await (const event of long) {
        if (event.type === 'response.created') await client.responses.cancel(event.response.id);
        if (event.type === 'response.incomplete') text = event.response.status;
    }
    assert.equal(text, 'cancelled');
    const kept = await client.responses.create({ model: 'fake', input: 'keep me', store: true });
    assert.equal((await client.responses.retrieve(kept.id)).output[0].content[0].text, 'You said: keep me');
});

test('Responses over a WebSocket', async () => {
    const socket = new ResponsesWS(client);
    const events = [];
    socket.on('event', (event) => events.push(event));
    socket.on('error', (error) => events.push({ type: 'error', error }));
    await new Promise((resolve) => socket.socket.once('open', resolve));
    socket.send({ type: 'response.create', model: 'fake', input: 'over the socket' });
    await eventually(async () => events.at(-1)?.type, 'response.completed');
    assert.equal(events[0].type, 'response.created');
    assert.equal(events.filter((event) => event.type === 'response.output_text.delta').map((event) => event.delta).join(''), 'You said: over the socket');
    socket.send({ type: 'response.create', model: 'fake', input: 'bad', temperature: 9 });
    await eventually(async () => events.at(-1)?.type, 'error');
    socket.close();
    await sleep(50);
});

test('a file as a read stream, which has no length', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-'));
    const path = join(folder, 'image.png');
    const png = Buffer.concat([Buffer.from(PNG.split(',')[1], 'base64').subarray(0, 16), Buffer.alloc(3000000, 'x'), Buffer.from('IEND\0\0\0\0', 'latin1')]);
    writeFileSync(path, png);
    const file = await client.files.create({ file: createReadStream(path), purpose: 'vision' });
    rmSync(folder, { recursive: true });
    assert.deepEqual([file.filename, file.bytes], ['image.png', png.length]);
    assert.ok(Buffer.from(await (await client.files.content(file.id)).arrayBuffer()).equals(png));
    await client.files.delete(file.id);
});

test('files and uploads', async () => {
    const png = Buffer.from(PNG.split(',')[1], 'base64');
    const file = await client.files.create({ file: await toFile(png, 'image.png', { type: 'image/png' }), purpose: 'vision' });
    assert.equal(file.object, 'file');
    assert.equal(file.filename, 'image.png');
    assert.equal(file.bytes, png.length);
    assert.equal((await client.files.retrieve(file.id)).id, file.id);
    assert.ok(Buffer.from(await (await client.files.content(file.id)).arrayBuffer()).equals(png));
    const reply = await client.responses.create({ model: 'fake', input: [{ role: 'user', content: [{ type: 'input_image', file_id: file.id, detail: 'auto' }, { type: 'input_text', text: 'what?' }] }] });
    assert.equal(reply.output_text, '[image] You said: what?');

    const half = png.length >> 1;
    const upload = await client.uploads.create({ filename: 'again.png', bytes: png.length, mime_type: 'image/png', purpose: 'vision' });
    const ids = [];
    for (const part of [png.subarray(half), png.subarray(0, half)]) {
        ids.unshift((await client.uploads.parts.create(upload.id, { data: await toFile(part, 'part') })).id);
    }
    const done = await client.uploads.complete(upload.id, { part_ids: ids });
    assert.equal(done.status, 'completed');
    const chat = await client.chat.completions.create({ model: 'fake', messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: `upload:${done.file.id}` } }, { type: 'text', text: 'and?' }] }] });
    assert.equal(chat.choices[0].message.content, '[image] You said: and?');

    const listed = [];
    for await (const one of client.files.list({ limit: 1 })) listed.push(one.id);
    assert.deepEqual(listed, [done.file.id, file.id]);
    for (const id of listed) assert.equal((await client.files.delete(id)).deleted, true);
    await assert.rejects(client.files.retrieve(file.id), OpenAI.NotFoundError);
    const given = await client.uploads.create({ filename: 'x', bytes: 10, mime_type: 'image/png', purpose: 'vision' });
    assert.equal((await client.uploads.cancel(given.id)).status, 'cancelled');
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
