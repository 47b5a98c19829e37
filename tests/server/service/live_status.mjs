/** What runs and how to stop it: /v1/status, cancel by id, clearing the cache, whose request is
 * whose, switches. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { JSON_TYPE, Socket, chat, eventually, events, joinChat, metric, post, request, runTests, sleep, startServer, test } from '../client.mjs';

const server = await startServer(['--queue', '100']);
await server.ready();

const status = async (target = server, headers = {}) => {
    const reply = await request(target, { path: '/v1/status', headers });
    assert.equal(reply.status, 200);
    return reply.json();
};
const cancel = (target, id, headers = {}) => post(target, `/v1/requests/${id}/cancel`, '', headers);
const remove = (target, path, headers = {}) => request(target, { method: 'DELETE', path, headers });

test('an idle server', async () => {
    const s = await status();
    assert.equal(s.state, 'ready');
    assert.ok(s.uptime_s >= 0 && s.uptime_s < 600);
    assert.equal(s.model.id, 'fake');
    assert.equal(s.model.n_ctx, 20000);
    assert.deepEqual(s.queue, { running: 0, waiting: 0, slots: 4 });
    assert.deepEqual([s.running, s.waiting], [[], []]);
    assert.deepEqual(s.vision_cache, { entries: 2, bytes: 5000, hits: 1, hit_rate: 1 });
    assert.deepEqual(s.cache, { entries: 3, bytes: 3000, queries: 8, hits: 6, hit_rate: 0.75, disk: null });
    assert.deepEqual(s.mtp, { available: false, drafted: 40, accepted: 30, acceptance_rate: 0.75, parked_steps: 2 });
    assert.deepEqual(s.prompt_lookup, { drafted: 20, accepted: 15, acceptance_rate: 0.75 });
    assert.ok(s.memory.rss_bytes > 1e6);
    assert.equal(s.memory.cache_type, 'f16');
    assert.ok(s.memory.available_bytes > 1 << 20 && s.memory.available_bytes < totalmem(), s.memory.available_bytes);
    assert.equal(await metric(server, 'parley_memory_available_bytes') > 1 << 20, true);
    assert.equal(await metric(server, 'parley_request_memory_limit_bytes'), s.memory.request_limit);
    assert.equal(await metric(server, 'parley_request_memory_bytes'), s.memory.request_bytes);
    assert.equal(await metric(server, 'parley_kept_memory_bytes'), s.memory.kept_bytes);
    for (const name of ['peak_bytes', 'waits_total', 'refusals_total']) assert.ok((await metric(server, `parley_request_memory_${name}`)) >= 0, name);
});

test('requests one after the other are prepared by the same thread', async () => {
    const threads = () => readdirSync(`/proc/${server.child.pid}/task`).length;
    const before = threads();
    for (let i = 0; i < 12; i++) assert.equal((await chat(server, 'hi')).status, 200);
    assert.ok(threads() <= before + 2, `${threads()} threads, ${before} before`); // the last one may not have ended its job
});

test('what runs, what waits, what is being prepared', async () => {
    const long = Array.from({ length: 5 }, () => chat(server, '!len=8000 !delay=20 !phases', { max_tokens: 8000, stream: true }));
    await eventually(async () => (await status()).running.filter((r) => r.tokens > 0).length, 4);
    const preparing = chat(server, '!slowprep hi');
    await eventually(async () => (await status()).waiting.map((r) => r.phase).sort().join(), 'media_decode,queued');
    const s = await status();
    assert.equal(s.queue.running, 4);
    for (const r of s.running) {
        assert.match(r.id, /^req_\d+$/);
        assert.equal(r.kind, 'chat');
        assert.equal(r.phase, 'decode');
        assert.equal(r.route, 'text');
        assert.equal(r.cached_tokens, 3);
        assert.ok(r.prompt_tokens > 3 && r.tokens > 0 && r.tokens_per_second > 0);
        assert.deepEqual([r.processed, r.total, r.max_tokens], [128, 128, 8000]);
    }
    /* By POST and by DELETE; what waits, what runs and what is being prepared; a second time it is
     * gone. */
    const ids = [...s.waiting, ...s.running].map((r) => r.id);
    for (const [i, id] of ids.entries()) {
        const reply = i % 2 ? await cancel(server, id) : await remove(server, `/v1/requests/${id}`);
        assert.equal(reply.status, 200, reply.text);
        assert.deepEqual(reply.json(), { id, object: 'request', cancelled: true });
    }
    await eventually(async () => (await status()).queue.running, 0, 20000); // by themselves they would take 40 s
    for (const reply of await Promise.all(long)) assert.equal(JSON.parse(events(reply.text).at(-1)).error.code, 'cancelled');
    assert.equal((await preparing).status, 503);
    for (const id of [...ids, 'req_0', 'req_', 'req_x', 'chatcmpl-none', 'x']) {
        const again = await cancel(server, id);
        assert.equal(again.status, 404, id);
        assert.equal(again.json().error.code, 'request_not_found');
    }
    assert.equal(await metric(server, 'parley_answers_open'), 0);
});

test('cancel by the id of a chat or a response, over HTTP and the WebSocket', async () => {
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    ws.send({ type: 'response.create', input: '!len=8000 !delay=20', max_output_tokens: 8000 });
    const { response } = await ws.wait('response.created');
    assert.ok(await ws.wait('response.output_text.delta'));
    assert.equal((await cancel(server, response.id)).status, 200);
    assert.equal((await ws.wait('response.incomplete')).response.status, 'cancelled');
    assert.equal((await cancel(server, response.id)).status, 404, 'it is over');
    ws.destroy();
});

test('cached tokens are told', async () => {
    const whole = (await chat(server, 'hello')).json();
    assert.equal(whole.usage.prompt_tokens_details.cached_tokens, 3);
    assert.equal(whole.usage.prompt_tokens, whole.timings.prompt_n + whole.timings.cache_n);
    const parts = joinChat((await chat(server, '!phases hello', { stream: true, return_progress: true, stream_options: { include_usage: true } })).text);
    assert.equal(parts.chunks.at(-1).usage.prompt_tokens_details.cached_tokens, 3);
    assert.equal(parts.chunks.find((c) => c.prompt_progress).prompt_progress.cache, 3);
    const response = (await post(server, '/v1/responses', { input: 'hello' })).json();
    assert.equal(response.usage.input_tokens_details.cached_tokens, 3);
});

test('switches: mtp, prompt_lookup and cache_prompt', async () => {
    const said = async (more) => (await chat(server, '!who', more)).json().choices[0].message.content;
    assert.match(await said({}), /mtp=1 cache=1$/);
    assert.match(await said({ mtp: false }), /mtp=0 cache=1$/);
    assert.match(await said({ cache_prompt: false }), /mtp=1 cache=0$/);
    assert.match(await said({ prompt_lookup: false }), /mtp=1 cache=1 lookup=0$/);
    assert.match(await said({ mtp: true, parley: { cache_prompt: false } }), /mtp=1 cache=0$/);
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    ws.send({ type: 'response.create', input: '!who', parley: { mtp: false } });
    assert.match((await ws.wait('response.completed')).response.output.at(-1).content[0].text, /mtp=0 cache=1$/);
    ws.destroy();
});

test('the cache is cleared', async () => {
    const reply = await remove(server, '/v1/cache');
    assert.equal(reply.status, 200);
    assert.deepEqual(reply.json(), { object: 'cache', cleared: true });
    const { cache } = await status();
    assert.deepEqual([cache.entries, cache.bytes], [0, 0]);
});

test('a key is compared whole', async () => {
    const key = 'the-one-key-that-is-known';
    const digest = (text) => createHash('sha256').update(text).digest();
    const known = digest(key);
    const guarded = await startServer(['--key', key]);
    while ((await request(guarded, { path: '/health' })).status !== 200) await sleep(10);
    const status = async (word) => (await request(guarded, { path: '/v1/models', headers: { Authorization: `Bearer ${word}` } })).status;
    assert.equal(await status(key), 200);
    // Keys whose digests agree with the known one in their first, or in their last, two bytes.
    for (const agrees of [(d) => d[0] === known[0] && d[1] === known[1], (d) => d[30] === known[30] && d[31] === known[31]]) {
        let i = 0;
        while (!agrees(digest(`a-key-that-is-not-${i}`))) i += 1;
        assert.equal(await status(`a-key-that-is-not-${i}`), 401);
    }
    assert.equal(await guarded.stop(), 0);
});

test('a key sees and stops its own requests only', async () => {
    const [a, b] = ['first-long-secret-key', 'second-long-secret-key'];
    const guarded = await startServer(['--key', a, '--key', b]);
    while ((await request(guarded, { path: '/health' })).status !== 200) await sleep(10);
    const by = (key) => ({ Authorization: `Bearer ${key}` });
    const who = async (headers) => (await post(guarded, '/v1/chat/completions', { messages: [{ role: 'user', content: '!who' }] }, headers)).json().choices[0].message.content.match(/scope=(\w+)/)[1];
    const scopes = [await who(by(a)), await who({ 'X-API-Key': a }), await who(by(b))];
    assert.equal(scopes[0], scopes[1]);
    assert.notEqual(scopes[0], scopes[2]);
    assert.ok(scopes.every((scope) => scope !== '0'.repeat(16)));
    const ws = await Socket.open(guarded, { protocols: `parley.v1, openai-insecure-api-key.${b}` });
    ws.send({ type: 'response.create', input: '!who', stream_id: 'w' });
    assert.equal((await ws.wait('response.completed')).response.output.at(-1).content[0].text.match(/scope=(\w+)/)[1], scopes[2]);
    ws.send({ type: 'response.create', input: '!len=8000 !delay=20', max_output_tokens: 8000 });
    const { response } = await ws.wait((m) => m.type === 'response.created' && m.response.status !== 'completed');
    await eventually(async () => (await status(guarded, by(b))).running.length, 1);
    const [mine, theirs] = [await status(guarded, by(b)), await status(guarded, by(a))];
    assert.equal(theirs.queue.running, 1, 'counts are for everybody');
    assert.deepEqual([...theirs.running, ...theirs.waiting], [], 'requests are not');
    const { id } = mine.running[0];
    for (const foreign of [id, response.id]) assert.equal((await cancel(guarded, foreign, by(a))).status, 404);
    assert.equal((await post(guarded, `/v1/responses/${response.id}/cancel`, '', by(a))).status, 404);
    assert.equal((await request(guarded, { path: `/v1/responses/${response.id}`, headers: by(a) })).status, 404);
    for (const [method, path] of [['GET', '/v1/status'], ['POST', `/v1/requests/${id}/cancel`], ['DELETE', `/v1/requests/${id}`], ['DELETE', '/v1/cache']]) {
        const reply = await request(guarded, { method, path, headers: JSON_TYPE, body: method === 'POST' ? '' : undefined });
        assert.equal(reply.status, 401, `${method} ${path}`);
    }
    assert.equal((await status(guarded, by(b))).running.length, 1, 'it still runs');
    assert.equal((await remove(guarded, `/v1/requests/${id}`, by(b))).status, 200);
    assert.equal((await ws.wait('response.incomplete')).response.status, 'cancelled');
    ws.destroy();
    assert.equal(await guarded.stop(), 0);
});

test('a control ends the thoughts, and the answer follows', async () => {
    const control = (body, headers = {}) => post(server, '/v1/chat/completions/control', body, headers);
    const thinking = chat(server, 'the answer !delay=30 !think=6000', { max_tokens: 8000 });
    await eventually(async () => (await status()).running.filter((r) => r.tokens > 0).length, 1);
    const [{ id }] = (await status()).running;
    for (const [body, code, param, number] of [
        [{ id, action: 'stop' }, 'invalid_value', 'action', 400], [{ id }, 'missing_field', 'action', 400], [{ id, action: 1 }, 'missing_field', 'action', 400],
        [{ action: 'reasoning_end' }, 'missing_field', 'id', 400], [[], 'missing_field', 'id', 400], ['{', 'invalid_json', null, 400],
        [{ id: 'chatcmpl-none', action: 'reasoning_end' }, 'request_not_found', 'id', 404]]) {
        const reply = await control(body);
        assert.equal(reply.status, number, reply.text);
        assert.equal(reply.json().error.code, code);
        assert.equal(reply.json().error.param, param);
    }
    for (let times = 0; times < 2; times++) {
        const reply = await control({ id, action: 'reasoning_end' });
        assert.deepEqual(reply.json(), { id, object: 'request.control', action: 'reasoning_end', success: true });
    }
    const { choices } = (await thinking).json();
    assert.match(choices[0].message.reasoning_content, /^Let me think\.\.*$/);
    assert.ok(choices[0].message.reasoning_content.length < 5000, 'without the control they are 6000 characters');
    assert.equal(choices[0].message.content, 'You said: the answer ');
    assert.equal((await control({ id, action: 'reasoning_end' })).status, 404, 'it is over');
});

test('while the model loads', async () => {
    const loading = await startServer([], { FAKE_LOAD_MS: '1000' });
    const s = await status(loading);
    assert.equal(s.state, 'loading');
    assert.equal(s.model, null);
    assert.equal((await remove(loading, '/v1/cache')).status, 503);
    assert.equal((await cancel(loading, 'req_1')).status, 404);
    assert.equal(await loading.stop(), 0);
});

test('every route that needs the model says that it loads, and answers afterwards', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'parley-slow-'));
    writeFileSync(join(dir, 'slow'), '');
    const loading = await startServer(['--model', dir]);
    const messages = [{ role: 'user', content: 'hi' }];
    const bodies = { chat: { messages }, messages: { messages, max_tokens: 4 }, input: { input: 'hi' }, prompt: { prompt: 'hi' }, content: { content: 'hi' } };
    for (const [path, body] of [
        ['/v1/models'], ['/models'], ['/v1/models/fake'], ['/props'], ['/slots'], ['/api/tags'], ['/v1/cache'],
        ['/v1/chat/completions', bodies.chat], ['/v1/chat/completions/input_tokens', bodies.chat], ['/v1/completions', bodies.prompt], ['/v1/responses', bodies.input],
        ['/v1/responses/input_tokens', bodies.input], ['/v1/messages', bodies.messages], ['/v1/messages/count_tokens', bodies.messages], ['/api/chat', bodies.chat],
        ['/api/generate', bodies.prompt], ['/tokenize', bodies.content], ['/detokenize', { tokens: [1] }], ['/apply-template', bodies.chat], ['/v1/embeddings', bodies.input],
        ['/v1/rerank', { query: 'a', documents: ['b'] }],
    ]) {
        const reply = await (body ? post(loading, path, body) : request(loading, { path }));
        assert.equal(reply.status, 503, `${path}: ${reply.text}`);
        assert.match(reply.text, /Loading model/, path);
    }
    rmSync(dir, { recursive: true });
    await loading.ready();
    assert.equal((await request(loading, { path: '/v1/models' })).json().data.length, 1);
    assert.equal(await loading.stop(), 0);
});

test('nothing is left behind', async () => {
    await eventually(() => metric(server, 'parley_answers_open'), 0);
    assert.equal(await server.stop(), 0);
});

await runTests();
