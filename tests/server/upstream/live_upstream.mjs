/** Other servers behind this one: their models, answers in every dialect, errors, cancelling, keys. */
import assert from 'node:assert/strict';
import { Socket, chat, eventually, events, joinChat, post, rawSocket, request, runTests, sleep, startServer, test } from '../client.mjs';
import { startUpstream, wire } from './fake_upstream.mjs';

const gpu = await startUpstream({ engine: 'vllm', model: 'org/big' });
process.env.GPU_KEY = 'sk-upstream-secret-0123456789';
const server = await startServer(['--upstream', `gpu=${gpu.url}`, '--upstream-key', 'gpu=GPU_KEY', '--upstream-model', 'big=gpu/org/big', '--key', 'client-key-0123456789', '--tool-call-parser', 'hermes']);
const AUTH = { Authorization: 'Bearer client-key-0123456789' };
const ask = (more = {}, content = 'Hi') => chat(server, content, { model: 'gpu/org/big', ...more }).then((r) => r);
const auth = (path, body, headers = {}) => post(server, path, body, { ...AUTH, ...headers });
const chatTo = (model, more = {}, content = 'Hi') => auth('/v1/chat/completions', { model, messages: [{ role: 'user', content }], ...more });
const listed = async (to = server) => (await request(to, { path: '/v1/models', headers: AUTH })).json().data.map((m) => m.id);
await server.ready();
await eventually(async () => (await listed()).includes('gpu/org/big'), true);

test('the models of another server are listed, with their aliases', async () => {
    const list = await listed();
    assert.ok(list.includes('gpu/org/big') && list.includes('big'), list.join());
    const one = (await request(server, { path: '/v1/models/big', headers: AUTH })).json();
    assert.deepEqual([one.id, one.root, one.upstream, one.meta.n_ctx], ['big', 'gpu/org/big', 'gpu', 4096]);
});

test('chat completions: whole, as a stream, with usage and cached tokens', async () => {
    gpu.answer = () => ({ reasoning: 'Let me see.', content: 'It is 12.', prompt: 40, cached: 32, completion: 9 });
    const whole = await chatTo('gpu/org/big');
    assert.equal(whole.status, 200, whole.text);
    const body = whole.json();
    assert.equal(body.model, 'gpu/org/big');
    assert.equal(body.choices[0].message.content, 'It is 12.');
    assert.equal(body.choices[0].message.reasoning_content, 'Let me see.');
    assert.equal(body.choices[0].finish_reason, 'stop');
    assert.deepEqual([body.usage.prompt_tokens, body.usage.completion_tokens, body.usage.prompt_tokens_details.cached_tokens], [40, 9, 32]);
    const stream = await chatTo('big', { stream: true, stream_options: { include_usage: true } });
    const joined = joinChat(stream.text);
    assert.deepEqual([joined.content, joined.reasoning, joined.finish, joined.done], ['It is 12.', 'Let me see.', ['stop'], 1]);
    assert.equal(joined.chunks.at(-1).usage.prompt_tokens, 40);
    const sent = gpu.requests.at(-1).body;
    assert.deepEqual([sent.model, sent.stream, sent.stream_options.include_usage, sent.messages], ['org/big', true, true, [{ role: 'user', content: 'Hi' }]]);
});

test('completions', async () => {
    gpu.answer = (body, res) => {
        res.setHeader('Content-Type', 'text/event-stream');
        for (const text of ['once ', 'more']) res.write(`data: ${JSON.stringify({ object: 'text_completion', choices: [{ index: 0, text, finish_reason: null }] })}\n\n`);
        res.end(`data: ${JSON.stringify({ choices: [{ index: 0, text: '', finish_reason: 'length' }] })}\n\ndata: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } })}\n\ndata: [DONE]\n\n`);
    };
    const body = (await auth('/v1/completions', { model: 'big', prompt: 'Say it', max_tokens: 2 })).json();
    assert.deepEqual([body.choices[0].text, body.choices[0].finish_reason, body.usage.total_tokens], ['once more', 'length', 5]);
    assert.deepEqual([gpu.requests.at(-1).path, gpu.requests.at(-1).body.prompt, gpu.requests.at(-1).body.max_tokens], ['/v1/completions', 'Say it', 2]);
});

test('Responses over HTTP and WebSocket, previous_response_id, Messages', async () => {
    gpu.answer = (body) => ({ content: `${body.messages.length} messages` });
    const first = (await auth('/v1/responses', { model: 'gpu/org/big', input: 'One', store: true })).json();
    assert.equal(first.output[0].content[0].text, '1 messages');
    const second = (await auth('/v1/responses', { model: 'gpu/org/big', input: 'Two', previous_response_id: first.id })).json();
    assert.equal(second.output[0].content[0].text, '3 messages');
    const ws = await Socket.open(server, { protocols: 'parley.v1', headers: AUTH });
    ws.send({ type: 'response.create', model: 'big', input: 'Three', stream_id: 'a' });
    const done = await ws.wait('response.completed');
    assert.equal(done.response.output[0].content[0].text, '1 messages');
    ws.send({ type: 'response.resume', response_id: done.response.id, starting_after: 0 });
    assert.ok(await ws.wait((m) => m.type === 'response.output_text.done'));
    ws.destroy();
    const message = (await auth('/v1/messages', { model: 'big', max_tokens: 10, system: 'Be short.', messages: [{ role: 'user', content: 'Hi' }] })).json();
    assert.deepEqual([message.content[0].text, message.stop_reason], ['2 messages', 'end_turn']);
});

test('tools in two rounds, forced calls, a schema', async () => {
    const tools = [{ type: 'function', function: { name: 'add', parameters: { type: 'object', properties: { a: { type: 'integer' } } } } }];
    gpu.answer = (body) => (body.messages.at(-1).role === 'tool' ? { content: `The result is ${body.messages.at(-1).content}.` } : { content: 'I add.', calls: [{ name: 'add', args: '{"a": 7}' }] });
    const one = (await chatTo('big', { tools, tool_choice: { type: 'function', function: { name: 'add' } } })).json().choices[0];
    assert.deepEqual([one.finish_reason, one.message.tool_calls[0].function.name, JSON.parse(one.message.tool_calls[0].function.arguments)], ['tool_calls', 'add', { a: 7 }]);
    assert.deepEqual(gpu.requests.at(-1).body.tool_choice, { type: 'function', function: { name: 'add' } });
    assert.deepEqual(gpu.requests.at(-1).body.tools, tools);
    const two = (await auth('/v1/chat/completions', { model: 'big', tools, messages: [{ role: 'user', content: 'Hi' }, one.message, { role: 'tool', tool_call_id: one.message.tool_calls[0].id, content: '12' }] })).json();
    assert.equal(two.choices[0].message.content, 'The result is 12.');
    const sent = gpu.requests.at(-1).body.messages;
    assert.equal(sent[1].tool_calls[0].id, sent[2].tool_call_id);
    gpu.answer = () => ({ content: '{"x": 1}' });
    const schema = { type: 'object', properties: { x: { type: 'integer' } } };
    const formed = await chatTo('big', { response_format: { type: 'json_schema', json_schema: { name: 'n', strict: true, schema } } });
    assert.equal(formed.json().choices[0].message.content, '{"x": 1}');
    assert.deepEqual(gpu.requests.at(-1).body.response_format, { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } });
    const n = gpu.requests.length;
    const smuggled = await chatTo('big', { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: '{}}},"model":"other","x":{"y":{"z":{}' } } });
    assert.deepEqual([smuggled.status, smuggled.json().error.param], [400, 'response_format.json_schema.schema']);
    assert.equal(gpu.requests.length, n, 'a text is no schema, and is not sent');
});

test('unknown models are 404, local ones unharmed', async () => {
    const unknown = await chatTo('gpu/none');
    assert.equal(unknown.status, 404);
    assert.equal(unknown.json().error.code, 'model_not_found');
    assert.equal((await chatTo('default', {}, 'echo')).json().choices[0].message.content, 'You said: echo');
});

test('errors before the stream keep their status, errors in it end it', async () => {
    for (const [status, expected, code] of [[400, 400, 'upstream_refused'], [422, 400, 'upstream_refused'], [401, 502, 'upstream_refused'], [429, 429, 'upstream_busy'], [500, 502, 'upstream_failed'], [302, 502, 'upstream_redirects']]) {
        for (const stream of [false, true]) {
            gpu.answer = (body, res, req) => {
                res.writeHead(status, { 'Content-Type': 'application/json', ...(status === 302 ? { Location: 'http://127.0.0.1:1/' } : {}) });
                res.end(JSON.stringify({ error: { message: `no: ${req.headers.authorization}`, type: 'x', code: status } }));
            };
            const reply = await chatTo('big', { stream });
            assert.equal(reply.status, expected, `${status}: ${reply.text}`);
            assert.equal(reply.json().error.code, code, reply.text);
            assert.match(reply.json().error.message, /gpu/);
            assert.ok(!reply.text.includes('sk-upstream'), reply.text);
        }
    }
    gpu.answer = (body, res) => {
        res.setHeader('Content-Type', 'text/event-stream');
        res.end(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'a' } }] })}\n\ndata: {"error": {"object": "error", "message": "out of pages", "code": 500}}\n\n`);
    };
    const stream = await chatTo('big', { stream: true });
    assert.equal(stream.status, 200);
    assert.match(stream.text, /"content":"a"/);
    assert.match(stream.text, /gpu failed \(500\): out of pages/);
    const flat = { object: 'error', message: 'the grammar is broken', type: 'BadRequestError', param: null, code: 400 };
    gpu.answer = (body, res) => { res.writeHead(400, { 'Content-Type': 'application/json' }); res.end(JSON.stringify(flat)); };
    assert.deepEqual([(await chatTo('big')).status, /gpu: the grammar is broken/.test((await chatTo('big')).text)], [400, true]);
    gpu.answer = (body, res) => { res.setHeader('Content-Type', 'text/event-stream'); res.end(`data: ${JSON.stringify(flat)}\n\ndata: [DONE]\n\n`); };
    assert.match((await chatTo('big', { stream: true })).text, /gpu: the grammar is broken/);
    gpu.answer = (body, res) => { res.writeHead(400); res.end(JSON.stringify({ error: { message: "This model's maximum context length is 4096 tokens.", code: 400 } })); };
    assert.equal((await chatTo('big')).json().error.code, 'context_length_exceeded');
});

test('what a server breaks is a clear error', async () => {
    const delta = (content, finish_reason = null) => `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`;
    const done = 'data: [DONE]\n\n';
    const cases = {
        truncated: [delta('a'), /in the middle/],
        'no reason': [delta('a') + done, /in the middle/],
        'broken JSON': ['data: {"choices": [\n\n', /broken JSON/],
        'no JSON': ['data: hello\n\n', /broken JSON/],
        'two reasons': [delta('a', 'stop') + delta('', 'length') + done, /twice, and differently/],
        'text behind the end': [delta('a', 'stop') + delta('b') + done, /behind the end/],
        abort: [delta('a', 'abort') + done, /given up/],
        'an unknown reason': [delta('a', 'tired') + done, /not known here/],
        'a list': ['data: []\n\n', /something else/],
        'mixed calls': [`data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '{' } }] } }] })}\n\n`, /mixes up/],
    };
    for (const [name, [text, pattern]] of Object.entries(cases)) {
        gpu.answer = (body, res) => { res.setHeader('Content-Type', 'text/event-stream'); res.end(text); };
        const whole = await chatTo('big');
        assert.equal(whole.status, 502, `${name}: ${whole.text}`);
        assert.match(whole.json().error.message, pattern, name);
        const stream = await chatTo('big', { stream: true });
        assert.match(stream.text, pattern, name);
        assert.ok(!stream.text.includes('[DONE]') || /error/.test(stream.text), name);
    }
    for (const lie of [10, 100000]) { // the wrong content length
        gpu.answer = (body, res) => { res.socket.end(`HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: ${lie}\r\n\r\n${delta('abc')}${delta('', 'stop').slice(0, 20)}`); };
        const reply = await chatTo('big');
        assert.equal(reply.status, 502, `${lie}: ${reply.text}`);
    }
    gpu.answer = (body, res) => { res.setHeader('Content-Type', 'text/html'); res.end('<html>'); };
    assert.equal((await chatTo('big')).status, 502);
    gpu.answer = async (body, res) => { // a stutter is none: byte by byte, with comments between
        res.setHeader('Content-Type', 'text/event-stream');
        for (const c of `: hm\n\n${delta('äöü')}:\n\n${delta('', 'stop')}${done}`) { res.write(Buffer.from(c)); if (c === '{') await sleep(2); }
        res.end();
    };
    assert.equal((await chatTo('big')).json().choices[0].message.content, 'äöü');
});

test('content_filter and length', async () => {
    gpu.answer = () => ({ content: 'Half', finish: 'content_filter' });
    assert.equal((await chatTo('big')).json().choices[0].finish_reason, 'content_filter');
    const response = (await auth('/v1/responses', { model: 'big', input: 'x' })).json();
    assert.deepEqual([response.status, response.incomplete_details.reason], ['incomplete', 'content_filter']);
    assert.equal((await auth('/v1/messages', { model: 'big', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] })).json().stop_reason, 'refusal');
    gpu.answer = () => ({ content: 'Half', finish: 'length' });
    assert.equal((await chatTo('big')).json().choices[0].finish_reason, 'length');
});

test('logprobs', async () => {
    gpu.answer = () => ({ content: 'ab', logprobs: [{ token: 'ab', logprob: -0.5, bytes: [97, 98], top_logprobs: [{ token: 'ab', logprob: -0.5, bytes: [97, 98] }] }] });
    const choice = (await chatTo('big', { logprobs: true, top_logprobs: 1 })).json().choices[0];
    assert.deepEqual(choice.logprobs.content, [{ token: 'ab', logprob: -0.5, bytes: [97, 98], top_logprobs: [{ token: 'ab', logprob: -0.5, bytes: [97, 98] }] }]);
});

const endless = (body, res) => {
    res.setHeader('Content-Type', 'text/event-stream');
    const timer = setInterval(() => res.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'on ' } }] })}\n\n`), 10);
    res.on('close', () => clearInterval(timer));
};

test('a client that leaves, or cancels, closes the request upstream', async () => {
    gpu.answer = endless;
    const body = JSON.stringify({ model: 'big', stream: true, messages: [{ role: 'user', content: 'x' }] });
    const raw = rawSocket(server);
    raw.send(`POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${AUTH.Authorization}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    assert.ok(await raw.until((d) => d.includes('on ')));
    gpu.closed = 0;
    raw.socket.destroy();
    await eventually(() => gpu.closed > 0, true); // by itself it never ends
    const ws = await Socket.open(server, { protocols: 'parley.v1', headers: AUTH });
    ws.send({ type: 'response.create', model: 'big', input: 'x', stream_id: 'a' });
    await ws.wait('response.output_text.delta');
    gpu.closed = 0;
    ws.send({ type: 'response.cancel' });
    const end = await ws.wait((m) => ['response.cancelled', 'response.incomplete', 'response.done'].includes(m.type));
    assert.ok(end, JSON.stringify(ws.messages.slice(-2)));
    await eventually(() => gpu.closed > 0, true);
    ws.destroy();
});

test('stop strings and one call end the answer here too', async () => {
    gpu.answer = endless;
    gpu.closed = 0;
    const reply = (await chatTo('big', { stop: ['on on on'] })).json();
    assert.deepEqual([reply.choices[0].message.content, reply.choices[0].finish_reason], ['', 'stop']);
    await eventually(() => gpu.closed > 0, true);
});

test('keys stay apart', async () => {
    gpu.answer = () => ({ content: 'Hello.' });
    await chatTo('big', {}, 'x');
    for (const seen of gpu.seen) {
        assert.equal(seen.headers.authorization, 'Bearer sk-upstream-secret-0123456789');
        assert.ok(!JSON.stringify(seen).includes('client-key'));
    }
    for (const path of ['/v1/status', '/metrics', '/v1/models', '/props']) assert.ok(!(await request(server, { path, headers: AUTH })).text.includes('sk-upstream'), path);
    assert.ok(!server.err.includes('sk-upstream') && !server.err.includes('client-key'));
});

test('sampling, thinking and structured output, as each engine names them', async () => {
    const fields = { temperature: 0.5, top_p: 0.9, top_k: 0, min_p: 0.1, repetition_penalty: 1.5, presence_penalty: 0.5, seed: 7, max_tokens: 9, stop: 'x', chat_template_kwargs: { enable_thinking: false, lang: 'de' } };
    const sent = { vllm: { repetition_penalty: 1.5, top_k: -1 }, sglang: { repetition_penalty: 1.5, top_k: -1 }, llamacpp: { repeat_penalty: 1.5, top_k: 0 } };
    const forms = {
        vllm: { structured_outputs: { choice: ['a', 'b.c'] } },
        sglang: { regex: '(a|b\\.c)' },
        llamacpp: { grammar: 'root ::= "a" | "b.c"' },
    };
    for (const engine of Object.keys(sent)) {
        const other = await startUpstream({ engine, model: 'm' });
        const front = await startServer(['--upstream', `x=${other.url}`]);
        await eventually(async () => (await listed(front)).includes('x/m'), true);
        const to = async (more) => { const r = await post(front, '/v1/chat/completions', { model: 'x/m', messages: [{ role: 'user', content: 'Hi' }], ...more }); return { ...r, sent: other.requests.at(-1)?.body }; };
        const one = (await to(fields)).sent;
        for (const [name, value] of Object.entries({ temperature: 0.5, top_p: 0.9, min_p: 0.1, presence_penalty: 0.5, seed: 7, max_tokens: 9, stop: ['x'], chat_template_kwargs: { enable_thinking: false, lang: 'de' }, ...sent[engine] })) assert.deepEqual(one[name], value, `${engine} ${name}`);
        for (const asked of [{ guided_choice: ['a', 'b.c'] }, { structured_outputs: { choice: ['a', 'b.c'] } }]) {
            const got = (await to(asked)).sent;
            for (const [name, value] of Object.entries(forms[engine])) assert.deepEqual(got[name], value, engine);
        }
        const schema = { type: 'object' };
        for (const asked of [{ guided_json: schema }, { structured_outputs: { json: schema } }, { json_schema: JSON.stringify(schema) }]) assert.deepEqual((await to(asked)).sent.response_format.json_schema.schema, schema);
        const effort = (await to({ reasoning_effort: 'low' })).sent;
        assert.equal(engine === 'llamacpp' ? effort.chat_template_kwargs.reasoning_effort : effort.reasoning_effort, 'low');
        const budget = await to({ reasoning_budget: 99 });
        if (engine === 'vllm') assert.equal(budget.sent.thinking_token_budget, 99);
        else if (engine === 'llamacpp') assert.equal(budget.sent.reasoning_budget_tokens, 99);
        else assert.deepEqual([budget.status, budget.json().error.param], [400, 'reasoning_budget']);
        const pattern = await to({ guided_regex: 'a+' });
        assert.equal(pattern.status, engine === 'llamacpp' ? 400 : 200, pattern.text);
        assert.equal((await to({ guided_choice: 'a' })).status, 400);
        assert.equal(await front.stop(), 0);
        await other.close();
    }
});

test('images go as data URIs; a model that cannot see is not asked', async () => {
    gpu.answer = () => ({ content: 'A dot.' });
    const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.from('IEND')]);
    const parts = [{ type: 'text', text: 'What?' }, { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } }];
    assert.equal((await auth('/v1/chat/completions', { model: 'big', messages: [{ role: 'user', content: parts }] })).status, 200);
    assert.deepEqual(gpu.requests.at(-1).body.messages[0].content, parts);
    gpu.models = [{ id: 'org/big', owned_by: 'vllm', architecture: { input_modalities: ['text'] } }];
    const blind = await startServer(['--upstream', `gpu=${gpu.url}`]);
    await eventually(async () => (await listed(blind)).includes('gpu/org/big'), true);
    const n = gpu.requests.length;
    const reply = await post(blind, '/v1/chat/completions', { model: 'gpu/org/big', messages: [{ role: 'user', content: parts }] });
    assert.deepEqual([reply.status, gpu.requests.length], [400, n], reply.text);
    gpu.models = undefined;
    assert.equal(await blind.stop(), 0);
});

test('rules send requests elsewhere; local: true and --local-only forbid it; the answer says where it was made', async () => {
    gpu.answer = () => ({ content: 'From afar.' });
    const front = await startServer(['--upstream', `gpu=${gpu.url}`, '--upstream-model', 'big=gpu/org/big', '--route', 'when prompt_tokens > 100 use big,when media and queue > -0 use big'.replace('-0', '1000')]);
    await front.ready();
    await eventually(async () => (await listed(front)).includes('big'), true);
    const long = 'word '.repeat(200);
    const far = (await chat(front, long)).json();
    assert.deepEqual([far.choices[0].message.content, far.model, far.timings.server], ['From afar.', 'gpu/org/big', 'gpu']);
    const near = (await chat(front, 'short')).json();
    assert.deepEqual([near.choices[0].message.content, near.timings.server], ['You said: short', null]);
    assert.match((await chat(front, long, { local: true })).json().choices[0].message.content, /^You said: word/);
    const forbidden = await chat(front, 'x', { model: 'big', local: true });
    assert.deepEqual([forbidden.status, forbidden.json().error.code], [400, 'leaves_machine']);
    assert.equal((await chat(front, 'x', { local: 'yes' })).status, 400);
    const response = (await post(front, '/v1/responses', { input: long })).json();
    assert.deepEqual([response.model, response.timings.server], ['gpu/org/big', 'gpu']);
    const status = (await request(front, { path: '/v1/status' })).json();
    assert.equal(status.upstreams[0].replicas[0].sent, 2);
    assert.match(front.err, /server=gpu/);
    assert.equal(await front.stop(), 0);
    const closed = await startServer(['--upstream', `gpu=${gpu.url}`, '--local-only', 'on', '--upstream-model', 'big=gpu/org/big', '--route', 'when prompt_tokens > 100 use big']);
    await closed.ready();
    await eventually(async () => (await listed(closed)).includes('big'), true);
    const n = gpu.requests.length;
    assert.equal((await chat(closed, 'x', { model: 'big' })).json().error.code, 'leaves_machine');
    assert.match((await chat(closed, long)).json().choices[0].message.content, /^You said: word/);
    assert.equal(gpu.requests.length, n);
    assert.equal(await closed.stop(), 0);
    const lost = await startServer(['--upstream', 'gone=http://127.0.0.1:1', '--route', 'when prompt_tokens > 100 use gone/m']);
    await lost.ready();
    assert.match((await chat(lost, long)).json().choices[0].message.content, /^You said: word/);
    assert.equal(await lost.stop(), 0);
});

test('rules by the key of a client, by what the context here holds, by exact tokens', async () => {
    gpu.answer = () => ({ content: 'From afar.' });
    const keys = ['first-key-0123456789', 'second-key-0123456789'];
    const front = await startServer(['--upstream', `gpu=${gpu.url}`, '--upstream-model', 'big=gpu/org/big', '--key', keys[0], '--key', keys[1], '--route', 'when key 2 and prompt_tokens > 300 use big, when prompt_tokens > context use gpu/org/big']);
    await front.ready();
    const as = (key, content, path = '/v1/chat/completions') => post(front, path, { model: 'default', max_tokens: 16, messages: [{ role: 'user', content }] }, { Authorization: `Bearer ${key}` });
    await eventually(async () => (await request(front, { path: '/v1/models', headers: { Authorization: `Bearer ${keys[0]}` } })).json().data.length, 3);
    const text = (n) => 'x'.repeat(n); // a token each in the double of the engine
    for (const [key, n, rule] of [[0, 1000, undefined], [1, 200, undefined], [1, 1000, 'when key 2 and prompt_tokens > 300 use big'], [0, 30000, 'when prompt_tokens > context use gpu/org/big']]) {
        const reply = await as(keys[key], text(n));
        assert.equal(reply.status, 200, reply.text);
        const { timings } = reply.json();
        assert.deepEqual([timings.server, timings.rule], [rule ? 'gpu' : null, rule], `key ${key + 1}, ${n} tokens`);
    }
    const message = (await as(keys[1], text(1000), '/v1/messages')).json();
    assert.deepEqual([message.model, message.timings.server, message.timings.rule], ['gpu/org/big', 'gpu', 'when key 2 and prompt_tokens > 300 use big']);
    assert.match(front.err, /server=gpu rule="when key 2 and prompt_tokens > 300 use big"/);
    const metrics = (await request(front, { path: '/metrics', headers: { Authorization: `Bearer ${keys[0]}` } })).text;
    assert.match(metrics, /^parley_upstream_ruled_total\{upstream="gpu",[^}]*\} 3$/m);
    assert.equal(await front.stop(), 0);
});

test('upstreams alone: no model is loaded, the first of theirs is the default', async () => {
    gpu.answer = () => ({ content: 'From afar.' });
    const alone = await startServer(['--no-model', 'on', '--upstream', `gpu=${gpu.url}`]);
    await alone.ready();
    await eventually(async () => (await listed(alone)).length, 1);
    assert.equal((await chat(alone, 'Hi')).json().choices[0].message.content, 'From afar.');
    assert.equal((await chat(alone, 'Hi', { model: 'default' })).status, 200);
    assert.equal((await chat(alone, 'Hi', { model: 'other' })).status, 404);
    for (const path of ['/v1/status', '/health', '/metrics', '/v1/models', '/slots', '/props']) assert.equal((await request(alone, { path })).status, 200, path);
    const ws = await Socket.open(alone, { protocols: 'parley.v1' });
    ws.send({ type: 'response.create', input: 'x', stream_id: 'a' });
    assert.equal((await ws.wait('response.completed')).response.output[0].content[0].text, 'From afar.');
    assert.equal((await post(alone, '/tokenize', { content: 'x' })).status, 400);
    ws.destroy();
    assert.equal(await alone.stop(), 0);
});

test('a server that is down at the start is listed so, and tried again; one that dies is named', async () => {
    const first = await startUpstream({ engine: 'sglang', model: 'm' });
    const { port } = first;
    await first.close();
    const front = await startServer(['--upstream', `late=http://127.0.0.1:${port}`]);
    await front.ready();
    const early = await post(front, '/v1/chat/completions', { model: 'late/m', messages: [{ role: 'user', content: 'x' }] });
    assert.deepEqual([early.status, /late cannot be reached/.test(early.text)], [502, true], early.text);
    const status = (await request(front, { path: '/v1/status' })).json();
    assert.equal(status.upstreams[0].name, 'late');
    const back = await startUpstream({ engine: 'sglang', model: 'm', port });
    await eventually(async () => (await listed(front)).includes('late/m'), true);
    const ask = () => post(front, '/v1/chat/completions', { model: 'late/m', messages: [{ role: 'user', content: 'x' }] });
    assert.equal((await ask()).status, 200);
    back.answer = (body, res) => { res.setHeader('Content-Type', 'text/event-stream'); res.write('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'); setTimeout(() => back.close(), 50); };
    const killed = await ask();
    assert.deepEqual([killed.status, /late has ended/.test(killed.text)], [502, true], killed.text);
    const gone = await ask();
    assert.deepEqual([gone.status, /late cannot be reached/.test(gone.text)], [502, true], gone.text);
    assert.equal((await chat(front, 'echo')).json().choices[0].message.content, 'You said: echo');
    assert.equal(await front.stop(), 0);
});

test('a silent server is given up', async () => {
    gpu.answer = () => undefined;
    const front = await startServer(['--upstream', `gpu=${gpu.url}`, '--upstream-timeout', '1']);
    await eventually(async () => (await listed(front)).includes('gpu/org/big'), true);
    const reply = await post(front, '/v1/chat/completions', { model: 'gpu/org/big', messages: [{ role: 'user', content: 'x' }] });
    assert.deepEqual([reply.status, /said nothing for 1 s/.test(reply.text)], [504, true], reply.text);
    assert.equal(await front.stop(), 0);
});

test('wrong options are clear sentences', async () => {
    for (const [args, pattern] of [
        [['--upstream', 'gpu=10.0.0.5:8000'], /no scheme/],
        [['--upstream', 'http://10.0.0.5'], /a name is missing/],
        [['--upstream', 'a b=http://x'], /name/],
        [['--upstream', 'a=http://x,a=http://y'], /given twice/],
        [['--upstream', 'a=http://u:p@x'], /without a user/],
        [['--upstream', 'a=http://x,http://x/'], /twice/],
        [['--upstream', 'a=http://x', '--upstream-key', 'a=NO_SUCH_KEY'], /NO_SUCH_KEY .* is empty or not set/],
        [['--upstream', 'a=http://x', '--upstream-key', 'b=HOME'], /no --upstream has the name b/],
        [['--upstream', 'a=http://x', '--upstream-model', 'm=b/x'], /no --upstream has the name b/],
        [['--upstream', 'a=http://x', '--upstream-model', 'm=a/x,m=a/y'], /given twice/],
        [['--upstream', 'a=http://x', '--upstream-ca', '/nowhere'], /cannot be read/],
        [['--upstream', 'a=http://x', '--route', 'when prompt_tokens > many use a/m'], /is no rule/],
        [['--upstream', 'a=http://x', '--route', 'when media use b/m'], /b\/m is neither/],
        [['--upstream', 'a=http://x', '--route', 'when key 0 use a/m'], /is no rule/],
        [['--upstream', 'a=http://x', '--route', 'when prompt_tokens > use a/m'], /is no rule/],
        [['--upstream', 'a=http://x', '--upstream-model', 'default=a/m'], /default is the name of whatever answers/],
        [['--upstream', 'a=http://x', '--upstream-video', 'a=film'], /neither auto, url, frames nor none/],
        [['--upstream', 'a=http://x', '--upstream-video', 'b=url'], /no --upstream has the name b/],
        [['--upstream', 'a=http://x', '--upstream-pixels', 'a=12'], /no number from 1024/],
    ]) {
        const failed = await startServer(args).catch((e) => e);
        assert.match(failed.message ?? 'it started', pattern);
    }
});

test('the same stream in every form gives the same events as the local engine', async () => {
    const call = (name, args) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;
    const contents = [
        { content: 'Hello.' },
        { reasoning: 'Let me think.', content: 'It is 12.' },
        { content: '' },
        { content: 'Ünïcödé 你好 🙂 done.' },
        { content: 'I call.', calls: [{ name: 'add', args: '{"a": 7, "b": 5}' }] },
        { calls: [{ name: 'add', args: '{"a": 1}' }, { name: 'look', args: '{"q": "x \\"y\\" z"}' }] },
        { reasoning: 'I need a tool.', calls: [{ name: 'look', args: '{"q": "日本"}' }] },
        { reasoning: 'First.\n\nSecond.', content: 'A list:\n\n- one\n- two\n' },
        { content: '```c\nint x = 1;\n```\n\nThat is code.' },
        { reasoning: 'Hm.', content: 'Done.', calls: [{ name: 'add', args: '{}' }] },
    ];
    const tools = ['add', 'look'].map((name) => ({ type: 'function', function: { name, parameters: { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' }, q: { type: 'string' } } } } }));
    const shape = (text) => { // what a client gathers, without ids, times and where text was cut
        const out = [];
        for (const line of events(text)) {
            if (line === '[DONE]') { out.push('done'); continue; }
            for (const c of JSON.parse(line).choices ?? []) {
                for (const name of ['reasoning_content', 'content']) {
                    if (!c.delta[name]) continue;
                    if (out.at(-1)?.[0] === name) out.at(-1)[1] += c.delta[name];
                    else out.push([name, c.delta[name]]);
                }
                for (const t of c.delta.tool_calls ?? []) {
                    if (t.function.name) out.push(['call', t.index, t.function.name, '']);
                    if (t.function.arguments) out.at(-1)[3] += t.function.arguments;
                }
                if (c.finish_reason) out.push(c.finish_reason);
            }
        }
        return out.map((one) => (one[0] === 'call' ? [...one.slice(0, 3), JSON.parse(one[3])] : one));
    };
    const types = (text) => events(text).map((line) => JSON.parse(line)).filter((e) => e.type).map((e) => e.type).filter((t, i, all) => t !== all[i - 1] || !t.endsWith('.delta'));
    let n = 0;
    for (const answer of contents) {
        const raw = `!raw ${answer.reasoning ? `<think>\n${answer.reasoning}\n</think>\n\n` : ''}${answer.content ?? ''}${answer.content && answer.calls ? '\n\n' : ''}${(answer.calls ?? []).map((c) => call(c.name, c.args)).join('\n')}`;
        const local = shape((await chatTo('default', { stream: true, tools }, raw)).text);
        const localTypes = types((await auth('/v1/responses', { model: 'default', stream: true, input: raw, tools: tools.map((t) => ({ type: 'function', ...t.function })) })).text);
        for (const engine of ['vllm', 'vllm-new', 'sglang', 'sglang-new', 'llamacpp', 'inline', 'whole', 'hosted']) {
            gpu.answer = (body, res) => {
                res.setHeader('Content-Type', engine === 'whole' ? 'application/json' : 'text/event-stream');
                res.end(wire(engine, 'org/big', { ...answer, cut: 1 + (n % 7) }));
            };
            const remote = shape((await chatTo('big', { stream: true, tools })).text);
            assert.deepEqual(remote, local, `${engine}: ${raw}`);
            const remoteTypes = types((await auth('/v1/responses', { model: 'big', stream: true, input: 'x', tools: tools.map((t) => ({ type: 'function', ...t.function })) })).text);
            assert.deepEqual(remoteTypes, localTypes, `${engine}: ${raw}`);
            n++;
        }
    }
    assert.equal(n, 80);
});

test('it ends cleanly while an answer runs', async () => {
    gpu.answer = endless;
    const pending = chatTo('big', { stream: true });
    await eventually(async () => (await request(server, { path: '/v1/status', headers: AUTH })).json().running.length > 0, true);
    server.child.kill('SIGTERM');
    await sleep(100);
    await gpu.close();
    await pending;
    assert.equal(await server.exited, 0);
});

await runTests();
