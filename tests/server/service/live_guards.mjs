/** What a hostile or clumsy client may do to HTTP: each gets its status, and the next request
 * works. */
import assert from 'node:assert/strict';
import { JSON_TYPE, Socket, chat, eventually, metric, parseReply, post, rawSocket, request, runTests, sleep, startServer, test } from '../client.mjs';

const server = await startServer(['--max-body', '300000', '--body-timeout', '2', '--allow-host', 'chat.example']);
await server.ready();
const host = `127.0.0.1:${server.port}`;

async function stillServes() {
    assert.equal((await chat(server, 'ping')).json().choices[0].message.content, 'You said: ping');
}

function wholeReplies(data) {
    const replies = [];
    for (let rest = data, reply = parseReply(rest); reply; reply = parseReply(rest)) {
        replies.push({ ...reply, text: reply.body.toString() });
        rest = rest.subarray(reply.used);
    }
    return replies;
}

/** Sends raw bytes; the replies that come until there are n, the connection ends, or ms are over. */
async function exchange(text, n = 1, ms = 60000) {
    const raw = rawSocket(server);
    raw.send(text);
    await raw.until((data) => wholeReplies(data).length >= n, ms);
    raw.socket.destroy();
    return { replies: wholeReplies(raw.data), closed: raw.closed };
}

const get = (path, ...lines) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${lines.map((l) => `${l}\r\n`).join('')}\r\n`;
const BODY = JSON.stringify({ messages: [{ role: 'user', content: 'hi' }] });
const postHead = (...lines) =>
    `POST /v1/chat/completions HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n${lines.map((l) => `${l}\r\n`).join('')}\r\n`;

test('an unknown Upgrade is ignored, also behind another request', async () => {
    for (const upgrade of ['foo/1', 'websocketx', 'h3', 'TLS/1.0, HTTP/1.1']) {
        const { replies } = await exchange(get('/health') + get('/health', `Upgrade: ${upgrade}`, 'Connection: Upgrade'), 2);
        assert.deepEqual(replies.map((r) => r.status), [200, 200]);
    }
    await stillServes();
});

test('h2c is ignored, and its preface is refused', async () => {
    const { replies } = await exchange(get('/health', 'Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA'));
    assert.equal(replies.length, 1);
    assert.equal(replies[0].status, 200);
    assert.equal(replies[0].text, '{"status":"ok"}');
    await exchange('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0');
    await stillServes();
});

test('bytes behind a body wait for its reply, without spinning', async () => {
    const body = JSON.stringify({ messages: [{ role: 'user', content: '!delay=100 !len=4000' }] });
    const cpu = async () => metric(server, 'process_cpu_seconds_total');
    const before = await metric(server, 'parley_engine_steps_total');
    const start = await cpu(), begun = performance.now();
    for (const extra of ['\n', `${postHead('Content-Length: 2')}{}`, get('/health')]) {
        const { replies, closed } = await exchange(`${postHead(`Content-Length: ${body.length}`)}${body}${extra}`, 1, 700);
        assert.equal(replies.length, 0);
        assert.ok(!closed);
    }
    assert.ok((await cpu()) - start < (performance.now() - begun) / 2000, 'the loop does not spin');
    await eventually(() => metric(server, 'parley_requests_running'), 0, 20000);
    assert.ok((await metric(server, 'parley_engine_steps_total')) - before < 1500, 'the answers are cancelled: whole they take 3,000');
    await stillServes();
});

test('bodies of unknown or impossible length', async () => {
    const cases = [
        [postHead(), 411],
        [postHead('Content-Length: -1') + 'x', 400],
        [postHead('Content-Length: 5x') + 'hello', 400],
        [postHead('Content-Length: 5, 5') + 'hello', 400],
        [postHead('Content-Length: 5', 'Content-Length: 7') + 'hello', 400],
        [postHead('Content-Length: +5') + 'hello', 400],
        [postHead('Content-Length: 99999999999999999999') + 'x', 400],
        [postHead('Content-Length: 300001') + 'x', 413],
        [postHead('Content-Length: 999999999999') + 'x', 413],
    ];
    for (const [text, status] of cases) {
        const { replies } = await exchange(text, 2); // the connection ends behind the first
        assert.equal(replies[0]?.status, status, text.slice(0, 200));
        assert.ok(JSON.parse(replies[0].text).error.message);
        assert.equal(replies.length, 1);
    }
    await stillServes();
});

test('a refusal reaches a client that is still sending', async () => {
    const raw = rawSocket(server);
    raw.send(postHead('Content-Length: 5000000'));
    for (let i = 0; i < 50; i++) raw.send(Buffer.alloc(100000, 0x20));
    await raw.until((d) => parseReply(d) !== null, 60000);
    assert.equal(parseReply(raw.data)?.status, 413);
    raw.socket.destroy();
    await stillServes();
});

test('clients that leave while their queries wait', async () => {
    const send = (path, body) => {
        const raw = rawSocket(server);
        const text = JSON.stringify(body);
        raw.send(`POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
        return raw;
    };
    const slow = Array.from({ length: 4 }, () => send('/v1/chat/completions', { messages: [{ role: 'user', content: '!slowprep' }] }));
    await sleep(50);
    const queries = Array.from({ length: 20 }, () => send('/tokenize', { content: 'x'.repeat(50) }));
    await sleep(30);
    for (const raw of queries) raw.socket.destroy();
    for (const raw of slow) await raw.until((d) => parseReply(d) !== null, 60000);
    for (const raw of slow) raw.socket.destroy();
    await stillServes();
});

test('Expect: 100-continue', async () => {
    const raw = rawSocket(server);
    raw.send(postHead(`Content-Length: ${BODY.length}`, 'Expect: 100-continue', 'Connection: close'));
    assert.ok(await raw.until((d) => d.includes('100 Continue\r\n\r\n'), 60000));
    raw.data = Buffer.alloc(0);
    raw.send(BODY);
    await raw.until((d) => parseReply(d) !== null);
    assert.equal(parseReply(raw.data).status, 200);
    raw.socket.destroy();
});

test('Host: exactly one, and one that is served', async () => {
    const line = 'GET /health HTTP/1.1\r\n';
    const cases = [
        [`${line}\r\n`, 400],
        [`${line}Host:\r\n\r\n`, 400],
        [`${line}Host: ${host}\r\nHost: ${host}\r\n\r\n`, 400],
        [`${line}Host: evil.example\r\n\r\n`, 421],
        [`${line}Host: :11434\r\n\r\n`, 421],
        [`${line}Host: 127.0.0.1.evil.example\r\n\r\n`, 421],
        [`${line}Host: localhost.evil.example\r\n\r\n`, 421],
        [`${line}Host: localhost:abc\r\n\r\n`, 421],
        [`${line}Host: LOCALHOST:1\r\n\r\n`, 200],
        [`${line}Host: app.localhost\r\n\r\n`, 200],
        [`${line}Host: 192.168.1.5:8080\r\n\r\n`, 200],
        [`${line}Host: [::1]:8080\r\n\r\n`, 200],
        [`${line}Host: chat.example\r\n\r\n`, 200],
    ];
    for (const [text, status] of cases) {
        assert.equal((await exchange(text)).replies[0]?.status, status, text);
    }
});

test('Origin and cross-site requests', async () => {
    const cases = [
        [{ Origin: 'http://evil.example' }, 403],
        [{ Origin: 'null' }, 403],
        [{ Origin: `http://${host}` }, 200],
        [{ Origin: `https://${host}` }, 200],
        [{ Origin: `http://${host}.evil.example` }, 403],
        [{ Origin: 'http://127.0.0.1' }, 403],
        [{ 'Sec-Fetch-Site': 'cross-site' }, 403],
        [{ 'Sec-Fetch-Site': 'same-origin' }, 200],
    ];
    for (const [headers, status] of cases) {
        const reply = await post(server, '/v1/chat/completions', BODY, headers);
        assert.equal(reply.status, status, JSON.stringify(headers));
        assert.equal(reply.headers['access-control-allow-origin'], undefined);
    }
    const form = await post(server, '/v1/chat/completions', BODY, { 'Content-Type': 'text/plain' });
    assert.equal(form.status, 415);
});

test('a dripping body is cut, a slow but whole one is not', async () => {
    const raw = rawSocket(server);
    raw.send(postHead('Content-Length: 1000'));
    const timer = setInterval(() => raw.send(' '), 100);
    await raw.until((d) => parseReply(d) !== null, 60000);
    clearInterval(timer);
    assert.equal(parseReply(raw.data)?.status, 408);
    assert.ok(await raw.untilClosed(60000));
    const slow = rawSocket(server);
    slow.send(postHead(`Content-Length: ${BODY.length}`, 'Connection: close'));
    for (const char of BODY.match(/.{1,8}/g)) {
        slow.send(char);
        await sleep(10); // all of them are far below --body-timeout, also on a busy machine
    }
    await slow.until((d) => parseReply(d) !== null);
    assert.equal(parseReply(slow.data).status, 200);
    slow.socket.destroy();
});

test('bodies that are not what they say', async () => {
    const cases = [
        ['{', 'invalid_json'],
        ['', 'invalid_json'],
        ['[]', 'invalid_type'],
        ['nonsense', 'invalid_json'],
        [`${BODY}x`, 'invalid_json'],
        [Buffer.from('{"messages":[{"role":"user","content":"\xff\xfe"}]}', 'latin1'), 'invalid_json'],
        ['{"messages":[{"role":"user","content":"\\ud800"}]}', 'invalid_json'],
        ['['.repeat(100000), 'invalid_json'],
        ['{"a":'.repeat(65) + '1' + '}'.repeat(65), 'invalid_json'],
    ];
    for (const [body, code] of cases) {
        const reply = await post(server, '/v1/chat/completions', body);
        assert.equal(reply.status, 400, String(body).slice(0, 80));
        assert.equal(reply.json().error.code, code);
        assert.equal(reply.json().error.type, 'invalid_request_error');
    }
    await stillServes();
});

const image = (url) => [{ type: 'image_url', image_url: { url } }, { type: 'text', text: 'what?' }];
const dataUri = (data) => `data:image/png;base64,${Buffer.from(data).toString('base64')}`;

test('images that are none', async () => {
    const good = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47]), Buffer.alloc(50), Buffer.from('IEND\0\0\0\0')]);
    assert.equal((await chat(server, image(dataUri(good)))).json().timings.route, 'media');
    assert.equal((await chat(server, image(good.toString('base64')))).status, 200);
    const cases = [
        [dataUri('just text'), 'image_parse_error'],
        [dataUri(good.subarray(0, 30)), 'image_parse_error'],
        [dataUri(''), 'image_parse_error'],
        ['data:image/png;base64', 'image_parse_error'],
        ['data:image/png,abcd', 'image_parse_error'],
        ['data:image/png;base64,a', 'image_parse_error'],
        ['data:image/png;base64,ab=c', 'image_parse_error'],
        ['data:image/png;base64,YR==', 'image_parse_error'],
        ['', 'image_parse_error'],
        ['http://127.0.0.1/x.png', 'remote_media_disabled'],
        ['https://example.com/x.png', 'remote_media_disabled'],
        ['file:///etc/passwd', 'remote_media_disabled'],
        ['ftp://x/y', 'remote_media_disabled'],
    ];
    for (const [url, code] of cases) {
        const reply = await chat(server, image(url));
        assert.equal(reply.status, 400, url);
        assert.equal(reply.json().error.code, code, url);
        assert.match(reply.json().error.param, /^messages\[0\]\.content\[0\]/);
        assert.doesNotMatch(reply.text, /0x[0-9a-f]{6}|\/work|libpng/);
    }
    const many = Array.from({ length: 17 }, () => image(dataUri(good))[0]);
    assert.equal((await chat(server, many)).json().error.code, 'too_many_images');
    const missing = await chat(server, [{ type: 'image_url', image_url: null }]);
    assert.equal(missing.json().error.code, 'invalid_type');
    const video = await chat(server, [{ type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA' } }]);
    assert.equal(video.json().error.code, 'video_not_supported');
    const upload = await chat(server, image('upload:file_abc'));
    assert.equal(upload.status, 404);
    await stillServes();
});

test('a prompt over the context names both numbers', async () => {
    const reply = await chat(server, 'x'.repeat(25000));
    const { error } = reply.json();
    assert.equal(reply.status, 400);
    assert.equal(error.code, 'context_length_exceeded');
    assert.equal(error.type, 'exceed_context_size_error');
    assert.equal(error.n_prompt_tokens, 25000);
    assert.equal(error.n_ctx, 20000);
});

test('paths, methods and HEAD', async () => {
    const cases = [
        ['GET', '/v1/unknown', 404], ['POST', '/v1/models', 405], ['DELETE', '/health', 405], ['PUT', '/', 405],
        ['POST', '/v1/status', 405], ['GET', '/v1/requests/req_1', 405], ['GET', '/v1/requests/req_1/cancel', 405], ['PUT', '/v1/cache', 405],
        ['DELETE', '/v1/requests/req_999', 404], ['DELETE', '/v1/requests/', 404], ['HEAD', '/v1/status', 200], ['DELETE', '/v1/status', 405],
        ['GET', '/v1/chat/completions', 405], ['GET', '/no-such-page', 404], ['GET', '/../../etc/passwd', 404],
        ['GET', '/%2e%2e/%2e%2e/etc/passwd', 404], ['GET', '/%00a', 404],
        ['GET', '/v1/models/none', 404], ['GET', '/v1/responses/resp_x', 404], ['HEAD', '/health', 200],
        ['HEAD', '/', 200], ['OPTIONS', '/v1/chat/completions', 204], ['GET', '/v1/responses', 405],
    ];
    for (const [method, path, status] of cases) {
        const reply = await request(server, { method, path, body: method === 'GET' || method === 'HEAD' || method === 'OPTIONS' ? undefined : '' });
        assert.equal(reply.status, status, `${method} ${path}`);
        if (status === 405) assert.ok(reply.headers.allow.length > 2);
        if (status === 404 && path.startsWith('/v1/')) assert.ok(reply.json().error.message);
        assert.ok(reply.headers['x-request-id']);
        if (method === 'HEAD') assert.equal(reply.body.length, 0);
    }
    const nul = await request(server, { path: '/index.html%00.js' });
    assert.equal(nul.status, 404);
    await exchange('BREW / HTTP/1.1\r\nHost: x\r\n\r\n');
    await exchange('\0\0\0\0\r\n\r\n');
    await exchange(`GET / HTTP/1.1\r\nHost: ${host}\r\nX: ${'y'.repeat(20000)}\r\n\r\n`);
    await exchange(`GET /${'a'.repeat(5000)} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await stillServes();
});

test('keep-alive carries many requests, pipelined ones in order', async () => {
    const { replies } = await exchange(get('/health') + get('/v1/models') + get('/nothing') + get('/health'), 4);
    assert.deepEqual(replies.map((r) => r.status), [200, 200, 404, 200]);
    const raw = rawSocket(server);
    for (let i = 0; i < 20; i++) {
        raw.data = Buffer.alloc(0);
        raw.send(postHead(`Content-Length: ${BODY.length}`) + BODY);
        await raw.until((d) => parseReply(d) !== null);
        assert.equal(parseReply(raw.data).status, 200);
    }
    raw.socket.destroy();
    const old = rawSocket(server);
    old.send(`GET /health HTTP/1.0\r\nHost: ${host}\r\n\r\n`);
    assert.ok(await old.untilClosed(60000), 'HTTP/1.0 closes');
    assert.equal(parseReply(old.data).status, 200);
});

test('every field with wrong types and ranges is 400 naming it', async () => {
    const wrong = {
        temperature: [-1, 2.1, 1e308, 'x', [], {}, true], top_p: [-0.1, 1.1, 'x', []], min_p: [-1, 2, 'x'],
        top_k: [-2, 1.5, 1e9, 'x', []], presence_penalty: [-3, 3, 'x'], frequency_penalty: [-3, 3, []],
        repeat_penalty: [0, -1, 11, 'x'], repetition_penalty: [0, 'x'], seed: [1.5, 'x', [], 1e30],
        max_tokens: [0, -1, 1.5, 1e10, 'x', []], max_completion_tokens: [0, -5, 'x'], n_predict: [-2, 'x'],
        n: [0, 9, 1.5, 'x'], stream: ['x', 1, []], logprobs: [1, 'x'], top_logprobs: [-1, 21, 'x', 5],
        stop: [1, '', [''], ['x', 3], Array(17).fill('x'), 'x'.repeat(257)],
        logit_bias: [[], 'x', { a: 1 }, { 1: 'x' }, { 1: 101 }, { 99999: 1 }, { '-1': 1 }],
        messages: [null, [], {}, 'x', [1], [{}], [{ role: 'x', content: 'y' }], [{ role: 'user' }], [{ role: 'user', content: 1 }], [{ role: 'user', content: [1] }]],
        stream_options: ['x', 1], response_format: ['x', { type: 'y' }, { type: 'json_schema' }, { type: 'json_schema', json_schema: 1 }, { type: 'json_schema', json_schema: { name: 'a b', schema: {} } }],
        tools: ['x', [1], [{ type: 'function' }]], tool_choice: ['required', 'x'], chat_template_kwargs: ['x', []],
        mtp: ['x', 1, []], cache_prompt: ['x', 0, {}], parley: ['x', 1, []], reasoning_effort: ['x', 1], model: [1, [], 'x'.repeat(600)],
    };
    for (const [field, values] of Object.entries(wrong)) {
        for (const value of values) {
            const reply = await chat(server, 'hi', { [field]: value });
            assert.equal(reply.status, 400, `${field}: ${JSON.stringify(value)?.slice(0, 60)}`);
            assert.ok(reply.json().error.param.startsWith(field), `${field} in ${reply.text}`);
        }
    }
    const right = { temperature: 0, top_p: 1, min_p: 0, top_k: -1, presence_penalty: -2, frequency_penalty: 2, repeat_penalty: 1.1,
        seed: -1, max_tokens: 50, n: 1, stop: null, logit_bias: { 5: -100 }, user: 'u', metadata: { a: 'b' }, store: false,
        reasoning_effort: 'none', unknown_field: [1, { a: 2 }], parallel_tool_calls: true, response_format: { type: 'text' }, logprobs: null };
    assert.equal((await chat(server, 'hi', right)).status, 200);
});

test('nothing is left behind', async () => {
    await eventually(() => metric(server, 'parley_answers_open'), 0, 60000);
    await eventually(() => metric(server, 'parley_requests_running'), 0);
    await eventually(() => metric(server, 'parley_connections'), 1, 60000);
    assert.equal(await server.stop(), 0);
});

await runTests();
