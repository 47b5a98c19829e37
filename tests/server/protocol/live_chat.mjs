/** Chat Completions and everything around it: streaming, stop strings, cancelling, load, keys, the
 * page, start and end. */
import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { JSON_TYPE, Socket, chat, eventually, events, joinChat, metric, parseReply, post, rawSocket, request, runTests, sleep, startServer, test } from '../client.mjs';

const server = await startServer(['--keepalive', '1', '--queue', '100']);
await server.ready();

const stream = async (content, more = {}) => {
    const reply = await chat(server, content, { stream: true, ...more });
    assert.equal(reply.status, 200);
    assert.match(reply.headers['content-type'], /^text\/event-stream/);
    return joinChat(reply.text);
};

test('streamed and whole answers are the same', async () => {
    for (const text of ['plain', 'wörld 😀 日本語', '!think reasoning', '!think !len=300', '']) {
        const whole = (await chat(server, text)).json();
        const parts = await stream(text, { stream_options: { include_usage: true } });
        const { message } = whole.choices[0];
        assert.equal(parts.content, message.content);
        assert.equal(parts.reasoning, message.reasoning_content ?? '');
        assert.deepEqual(parts.finish, [whole.choices[0].finish_reason]);
        assert.equal(parts.done, 1);
        assert.deepEqual(parts.chunks[0].choices[0].delta, { role: 'assistant', content: null });
        const last = parts.chunks.at(-1);
        assert.deepEqual(last.choices, []);
        assert.deepEqual(last.usage, whole.usage);
        assert.ok(parts.chunks.slice(0, -1).every((chunk) => chunk.usage === null));
        assert.equal(new Set(parts.chunks.map((chunk) => chunk.id)).size, 1);
        assert.equal(parts.chunks.at(-2).timings.route, 'text');
        assert.equal(whole.object, 'chat.completion');
        assert.match(whole.id, /^chatcmpl-/);
        assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
    }
});

test('the model name is echoed, any is taken', async () => {
    assert.equal((await chat(server, 'hi', { model: 'gpt-x' })).json().model, 'gpt-x');
    assert.equal((await chat(server, 'hi')).json().model, 'fake');
});

test('stop strings at every place of the answer', async () => {
    const said = 'abc wörld abcd END more';
    const full = (await chat(server, said)).json().choices[0].message.content;
    for (let i = 0; i < full.length; i++) {
        for (const length of [1, 3, 7]) {
            const stop = full.slice(i, i + length);
            if (stop.length < length || stop.includes('\ufffd')) continue;
            const expected = full.slice(0, full.indexOf(stop));
            const whole = (await chat(server, said, { stop })).json();
            assert.equal(whole.choices[0].message.content, expected, JSON.stringify(stop));
            assert.equal(whole.choices[0].finish_reason, 'stop');
        }
    }
    for (const stop of [['END'], ['nope', 'wörld'], ['abcd', 'abc wx'], 'END more and more']) {
        const whole = (await chat(server, said, { stop })).json().choices[0].message.content;
        assert.equal((await stream(said, { stop })).content, whole);
    }
    const thinking = (await chat(server, '!think hi', { stop: 'think' })).json().choices[0].message;
    assert.equal(thinking.reasoning_content, 'Let me think.', 'reasoning is not searched');
    const long = await stream('!len=8000 !delay=5', { stop: 'abcdefghi', max_tokens: 9000 });
    assert.equal(long.content, '');
    await eventually(() => metric(server, 'parley_requests_running'), 0, 20000); // by themselves they would take 40 s or more
});

test('max_tokens, logprobs, progress, timings', async () => {
    const cut = (await chat(server, 'a longer text', { max_tokens: 5 })).json();
    assert.equal(cut.choices[0].finish_reason, 'length');
    assert.equal(cut.usage.completion_tokens, 5);
    const whole = (await chat(server, 'hi é', { logprobs: true, top_logprobs: 1 })).json();
    const { content } = whole.choices[0].logprobs;
    assert.equal(content.length, Buffer.byteLength(whole.choices[0].message.content));
    assert.equal(Buffer.from(content.flatMap((entry) => entry.bytes)).toString(), whole.choices[0].message.content);
    assert.equal(content[0].top_logprobs.length, 1);
    const parts = await stream('hi é', { logprobs: true });
    const entries = parts.chunks.flatMap((c) => c.choices).flatMap((c) => c.logprobs?.content ?? []);
    assert.equal(Buffer.from(entries.flatMap((entry) => entry.bytes)).toString(), parts.content);
    const progress = await stream('!phases hi', { return_progress: true, timings_per_token: true });
    assert.ok(progress.chunks.some((chunk) => chunk.prompt_progress?.total === 128));
    assert.ok(progress.chunks.some((chunk) => chunk.choices[0]?.delta.content && chunk.timings));
});

test('a failure in the middle', async () => {
    const whole = await chat(server, '!fail some words');
    assert.equal(whole.status, 500);
    assert.equal(whole.json().error.type, 'server_error');
    assert.doesNotMatch(whole.text, /deadbeef/);
    const reply = await chat(server, '!fail some words', { stream: true });
    const list = events(reply.text);
    assert.equal(JSON.parse(list.at(-1)).error.type, 'server_error');
    assert.ok(!list.includes('[DONE]'));
});

test('comments keep a silent stream alive', async () => {
    const reply = await chat(server, '!delay=2500 hello', { stream: true, max_tokens: 8 });
    assert.match(reply.text, /^:$/m);
    assert.equal(joinChat(reply.text).content, 'You said');
});

test('a client that leaves frees its slot, streaming or not, running or queued or preparing', async () => {
    for (const more of [{ stream: true }, {}]) {
        for (const text of ['!len=8000 !delay=30', '!slowprep hi']) {
            const clients = [];
            for (let i = 0; i < 10; i++) {
                const raw = rawSocket(server);
                const body = JSON.stringify({ messages: [{ role: 'user', content: text }], max_tokens: 8000, ...more });
                raw.send(`POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
                clients.push(raw);
            }
            await eventually(() => metric(server, 'parley_answers_open'), 10);
            for (const [i, raw] of clients.entries()) i % 2 ? raw.socket.destroy() : raw.socket.resetAndDestroy();
            await eventually(() => metric(server, 'parley_answers_open'), 0, 20000);
            await eventually(() => metric(server, 'parley_requests_running'), 0, 20000); // by themselves they would take 40 s or more
        }
    }
});

test('another model is refused where the server is strict', async () => {
    const strict = await startServer(['--strict-model', 'on']);
    await strict.ready();
    const messages = [{ role: 'user', content: 'hello' }];
    const bodies = [['/v1/chat/completions', { messages }], ['/v1/completions', { prompt: 'a' }], ['/v1/responses', { input: 'a' }], ['/v1/messages', { messages, max_tokens: 9 }]];
    for (const [path, body] of bodies) {
        for (const stream of [false, true]) {
            const refused = await post(strict, path, { ...body, stream, model: 'other' });
            assert.equal(refused.status, 404, path);
            assert.match(refused.text, /no such model/);
            assert.equal((await post(strict, path, { ...body, stream, model: 'fake' })).status, 200, path);
        }
    }
    assert.deepEqual((await chat(strict, 'a', { model: 'other' })).json().error.code, 'model_not_found');
    assert.equal((await chat(strict, 'a')).status, 200);
    const ws = await Socket.open(strict);
    ws.send({ type: 'response.create', input: 'a', model: 'other', event_id: 'e1' });
    assert.equal((await ws.wait('error', 60000)).error.event_id, 'e1');
    ws.send({ type: 'response.create', input: 'a', model: 'fake' });
    assert.ok(await ws.wait('response.completed', 60000));
    ws.destroy();
    assert.equal(await strict.stop(), 0);
});

test('thoughts stand in the field that the server was told', async () => {
    for (const [field, names] of [['content', ['reasoning_content']], ['reasoning', ['reasoning']], ['both', ['reasoning_content', 'reasoning']]]) {
        const other = await startServer(['--reasoning-field', field]);
        await other.ready();
        const { message } = (await chat(other, '!think hello')).json().choices[0];
        const { chunks } = joinChat((await chat(other, '!think hello', { stream: true })).text);
        const deltas = chunks.flatMap((chunk) => chunk.choices).map((choice) => choice.delta);
        for (const name of ['reasoning_content', 'reasoning']) {
            const wanted = names.includes(name) ? 'Let me think.' : undefined;
            assert.equal(message[name], wanted);
            assert.equal(deltas.map((delta) => delta[name] ?? '').join(''), wanted ?? '');
        }
        assert.equal(await other.stop(), 0);
    }
});

test('a slow reader is served whole and holds up nobody', async () => {
    const raw = rawSocket(server);
    const body = JSON.stringify({ messages: [{ role: 'user', content: '!len=100000 !fast' }], max_tokens: 100000, stream: true });
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`;
    raw.send(head + body);
    raw.socket.pause();
    await sleep(1500);
    assert.equal((await chat(server, 'others go on')).status, 200);
    raw.socket.resume();
    await raw.until((d) => parseReply(d) !== null, 200000);
    assert.equal(joinChat(parseReply(raw.data).body.toString()).content.length, 100000);
    raw.socket.destroy();
});

test('64 streams at once, none lost, none mixed', async () => {
    const one = async (i) => {
        const name = `canary${i}x${'y'.repeat(i)}`;
        const { content, done } = await stream(`${name} !delay=1`);
        assert.equal(content, `You said: ${name} `);
        assert.equal(done, 1);
    };
    await Promise.all(Array.from({ length: 64 }, (_, i) => one(i)));
    assert.equal(await metric(server, 'parley_answers_open'), 0);
});

test('a full queue is 429 with Retry-After', async () => {
    const replies = await Promise.all(Array.from({ length: 110 }, () => chat(server, '!len=40 !delay=20')));
    const refused = replies.filter((reply) => reply.status === 429);
    assert.ok(refused.length > 0);
    assert.ok(replies.every((reply) => reply.status === 200 || reply.status === 429));
    assert.equal(refused[0].headers['retry-after'], '1');
    assert.equal(refused[0].json().error.code, 'queue_full');
    assert.equal(refused[0].json().error.type, 'rate_limit_error');
});

test('messages reach the engine as they came, system messages too', async () => {
    const messages = [
        { role: 'user', content: 'one' }, { role: 'developer', content: 'be kind' },
        { role: 'system', content: [{ type: 'text', text: 'be brief' }] }, { role: 'user', content: 'two !recall' },
    ];
    const reply = (await post(server, '/v1/chat/completions', { messages })).json();
    assert.match(reply.choices[0].message.content, / user:one system:be kind system:be brief user:two/);
});

test('responses over HTTP: stream, whole, get', async () => {
    const whole = (await post(server, '/v1/responses', { input: 'hello', instructions: 'be kind', metadata: { a: '1' } })).json();
    assert.equal(whole.status, 'completed');
    assert.equal(whole.output[0].content[0].text, 'You said: hello');
    assert.deepEqual(whole.metadata, { a: '1' });
    const reply = await post(server, '/v1/responses', { input: [{ role: 'user', content: 'hello !think' }], stream: true });
    const list = events(reply.text).map((line) => JSON.parse(line));
    list.forEach((event, i) => assert.equal(event.sequence_number, i));
    assert.equal(list.at(-1).type, 'response.completed');
    assert.match(reply.text, /^event: response\.created$/m);
    const bad = await post(server, '/v1/responses', { input: 'hi', top_p: 3 });
    assert.equal(bad.status, 400);
    assert.equal(bad.json().error.param, 'top_p');
    const image = await post(server, '/v1/responses', { stream: true, input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,AAAA' }] }] });
    assert.equal(image.status, 400);
    assert.equal(image.json().error.code, 'image_parse_error');
});

test('the page: types, compression, caching, policy', async () => {
    const page = await request(server, { path: '/', headers: { 'Accept-Encoding': 'gzip' } });
    assert.equal(page.status, 200);
    assert.match(page.headers['content-type'], /^text\/html/);
    assert.equal(page.headers['content-encoding'], 'gzip');
    assert.match(gunzipSync(page.body).toString(), /<!doctype html>/i);
    const plain = await request(server, { path: '/index.html' });
    assert.deepEqual(plain.body, gunzipSync(page.body));
    assert.match(plain.headers['content-security-policy'], /default-src 'none'/);
    assert.match(plain.headers['content-security-policy'], /frame-ancestors 'none'/);
    assert.equal(plain.headers['x-content-type-options'], 'nosniff');
    assert.equal(plain.headers['cache-control'], 'no-cache');
    const same = await request(server, { path: '/', headers: { 'If-None-Match': plain.headers.etag } });
    assert.equal(same.status, 304);
    assert.equal(same.body.length, 0);
    const script = await request(server, { path: '/js/views/app.js' });
    assert.match(script.headers['content-type'], /^text\/javascript/);
    const head = await request(server, { method: 'HEAD', path: '/js/views/app.js' });
    assert.equal(head.headers['content-length'], String(script.body.length));
});

test('metrics read well', async () => {
    const reply = await request(server, { path: '/metrics' });
    assert.match(reply.headers['content-type'], /version=0\.0\.4/);
    for (const line of reply.text.trim().split('\n')) {
        assert.match(line, /^(# (HELP|TYPE) [a-z_0-9]+ .+|[a-z_0-9]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [-+0-9.e]+|.*\+Inf.*)$/);
    }
    assert.match(reply.text, /parley_requests_total\{endpoint="chat_completions",status="200"\} \d+/);
    assert.match(reply.text, /parley_requests_routed_total\{route="text"\} \d+/);
    assert.match(reply.text, /parley_time_to_first_token_seconds_count \d+/);
    for (const [name, value] of Object.entries({
        prefix_cache_queries_total: 8, prefix_cache_hits_total: 6, prefix_cache_bytes: 3000, prefix_cache_entries: 3,
        draft_tokens_total: 40, draft_tokens_accepted_total: 30, draft_parked_steps_total: 2,
        lookup_tokens_total: 20, lookup_tokens_accepted_total: 15,
    })) {
        assert.match(reply.text, new RegExp(`^parley_${name} ${value}$`, 'm'));
    }
});

test('an API key guards every route but the page and health', async () => {
    const key = 'a-long-secret-key';
    const guarded = await startServer(['--key', key, '--key', 'another-long-key']);
    const get = async (path, headers = {}) => (await request(guarded, { path, headers })).status;
    while ((await get('/health')) !== 200) await sleep(10);
    for (const path of ['/', '/health', '/v1/health', '/js/views/app.js']) assert.equal(await get(path), 200, path);
    for (const path of ['/v1/models', '/v1/models/fake', '/models', '/metrics', '/props', '/v1/responses/x', '/v1/status']) {
        assert.equal(await get(path), 401, path);
        assert.equal(await get(path, { Authorization: 'Bearer wrong' }), 401, path);
        assert.equal(await get(path, { Authorization: `Bearer ${key}x` }), 401, path);
        assert.equal(await get(path, { Authorization: 'Bearer ' }), 401, path);
        assert.notEqual(await get(path, { Authorization: `Bearer ${key}` }), 401, path);
        assert.notEqual(await get(path, { 'X-API-Key': 'another-long-key' }), 401, path);
    }
    for (const path of ['/v1/chat/completions', '/chat/completions', '/v1/responses', '/v1/responses/x/cancel', '/v1/requests/x/cancel']) {
        const reply = await post(guarded, path, {});
        assert.equal(reply.status, 401, path);
        assert.equal(reply.json().error.code, 'invalid_api_key');
        assert.equal(reply.headers['www-authenticate'], 'Bearer');
    }
    assert.equal((await Socket.open(guarded)).refused.status, 401);
    assert.equal((await Socket.open(guarded, { protocols: 'parley.v1, openai-insecure-api-key.wrong' })).refused.status, 401);
    const ws = await Socket.open(guarded, { protocols: `parley.v1, openai-insecure-api-key.${key}` });
    assert.equal(ws.protocol, 'parley.v1');
    ws.destroy();
    const bearer = await Socket.open(guarded, { headers: { Authorization: `Bearer ${key}` } });
    assert.equal(bearer.refused, undefined);
    bearer.destroy();
    assert.equal(await guarded.stop(), 0);
});

test('while the model loads', async () => {
    const loading = await startServer([], { FAKE_LOAD_MS: '1500' });
    const health = await request(loading, { path: '/health' });
    assert.equal(health.status, 503);
    assert.deepEqual(health.json().error, { code: 503, message: 'Loading model', type: 'unavailable_error' });
    assert.equal((await request(loading, { path: '/' })).status, 200);
    const reply = await chat(loading, 'hi');
    assert.equal(reply.status, 503);
    assert.equal(reply.json().error.type, 'unavailable_error');
    assert.equal(reply.headers['retry-after'], '5');
    const ws = await Socket.open(loading, { protocols: 'parley.v1' });
    assert.equal((await ws.wait('session.created')).server.state, 'loading');
    ws.send({ type: 'response.create', input: 'hi', event_id: 'early' });
    assert.equal((await ws.wait('error')).error.code, 'model_loading');
    await ws.wait((m) => m.type === 'server.status' && m.progress > 0.5);
    await ws.wait((m) => m.type === 'server.status' && m.state === 'ready');
    ws.send({ type: 'response.create', input: 'hi' });
    assert.ok(await ws.wait('response.completed'));
    ws.destroy();
    assert.match(loading.out, /^Parley is ready: http:\/\/127\.0\.0\.1:\d+\//m);
    assert.equal(await loading.stop(), 0);
    const killed = await startServer([], { FAKE_LOAD_MS: '800' });
    assert.equal(await killed.stop(), 0, 'stopping while loading');
});

test('exit codes: a broken model 3, a taken port 5, a bad address 2', async () => {
    const broken = await startServer([], { FAKE_LOAD_FAILS: 'corrupt' });
    assert.equal(await broken.exited, 3);
    assert.match(broken.err, /model\.safetensors: tensor norm\.weight is damaged/);
    const taken = await startServer(['--port', String(server.port)]).catch((error) => error);
    assert.match(taken.message, new RegExp(`port ${server.port} is in use; try --port ${server.port + 1}`));
    const bad = await startServer(['--host', 'no.such.host']).catch((error) => error);
    assert.match(bad.message, /is not an IP address/);
});

test('shutdown finishes what runs, cuts what is too long', async () => {
    const patient = await startServer(['--drain', '1']);
    await patient.ready();
    const short = chat(patient, '!delay=50 hello', { stream: true });
    const long = chat(patient, '!delay=50 !len=8000', { stream: true });
    await eventually(() => metric(patient, 'parley_requests_running'), 2);
    const start = Date.now();
    assert.equal(await patient.stop(), 0);
    assert.ok(Date.now() - start < 30000); // the long one would take 100 s
    assert.equal(joinChat((await short).text).content, 'You said: hello');
    await long;
});

test('nothing is left behind', async () => {
    await eventually(() => metric(server, 'parley_answers_open'), 0);
    await eventually(() => metric(server, 'parley_requests_running'), 0);
    assert.equal(await server.stop(), 0);
});

await runTests();
