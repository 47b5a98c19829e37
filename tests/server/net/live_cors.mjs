/** Pages of other origins: those in --allowed-origins may read every answer, others none. */
import assert from 'node:assert/strict';
import { events, parseReply, post, rawSocket, request, runTests, startServer, test } from '../client.mjs';

const PAGE = 'https://chat.example:8443';
const KEY = 'sk-0123456789abcdef';
const server = await startServer(['--allow-origin', PAGE, '--allow-origin', 'null', '--key', KEY, '--max-body', '300000']);
await server.ready();
const auth = { Authorization: `Bearer ${KEY}` };
const ask = { messages: [{ role: 'user', content: 'ping' }] };

/** What every reply to a page of `origin` must have. */
function isOpen(reply, origin = PAGE) {
    assert.equal(reply.headers['access-control-allow-origin'], origin);
    assert.match(reply.headers.vary, /\bOrigin\b/);
    assert.match(reply.headers['access-control-expose-headers'], /Retry-After.*x-request-id.*ETag/i);
    assert.equal(reply.headers['access-control-allow-credentials'], undefined);
}

function isClosed(reply) {
    for (const name of Object.keys(reply.headers)) assert.doesNotMatch(name, /^access-control-/);
}

const preflight = (path, headers = {}) =>
    request(server, { method: 'OPTIONS', path, headers: { Origin: PAGE, 'Access-Control-Request-Method': 'POST', ...headers } });

test('preflights need no key, on any path', async () => {
    for (const path of ['/v1/chat/completions', '/v1/files/file-1/content', '/v1/messages', '/nowhere', '/health']) {
        const asked = 'authorization, content-type, x-stainless-retry-count, x-stainless-helper-method, x-custom';
        const reply = await preflight(path, { 'Access-Control-Request-Headers': asked });
        assert.equal(reply.status, 204, path);
        isOpen(reply);
        const allowed = reply.headers['access-control-allow-headers'].toLowerCase().split(/, */);
        for (const name of [...asked.split(', '), 'idempotency-key', 'x-api-key', 'anthropic-version']) assert.ok(allowed.includes(name), name);
        for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) assert.ok(reply.headers['access-control-allow-methods'].split(', ').includes(method));
        assert.ok(Number(reply.headers['access-control-max-age']) > 0);
        assert.equal(reply.headers['access-control-allow-private-network'], undefined);
    }
    const near = await preflight('/v1/models', { 'Access-Control-Request-Private-Network': 'true' });
    assert.equal(near.headers['access-control-allow-private-network'], 'true');
    const long = await preflight('/v1/models', { 'Access-Control-Request-Headers': 'x-a, '.repeat(200) + 'x-b' });
    assert.equal(long.status, 204);
    assert.match(long.headers['access-control-allow-headers'], /^Authorization, .*OpenAI-Project$/);
});

test('every kind of answer', async () => {
    const from = { Origin: PAGE };
    const whole = await post(server, '/v1/chat/completions', ask, { ...from, ...auth });
    assert.equal(whole.status, 200);
    isOpen(whole);
    const stream = await post(server, '/v1/chat/completions', { ...ask, stream: true }, { ...from, ...auth });
    assert.match(stream.headers['content-type'], /event-stream/);
    assert.ok(events(stream.body.toString()).length > 1);
    isOpen(stream);
    const cases = [
        [401, () => post(server, '/v1/chat/completions', ask, from)],
        [400, () => post(server, '/v1/chat/completions', { messages: 7 }, { ...from, ...auth })],
        [404, () => request(server, { path: '/nowhere', headers: { ...from, ...auth } })],
        [405, () => request(server, { method: 'DELETE', path: '/v1/models', headers: { ...from, ...auth } })],
        [411, () => request(server, { method: 'POST', path: '/v1/messages', headers: { ...from, ...auth, 'Content-Type': 'application/json' } })],
        [413, () => post(server, '/v1/chat/completions', 'x'.repeat(400000), { ...from, ...auth })],
        [414, () => request(server, { path: `/v1/models?${'q'.repeat(5000)}`, headers: { ...from, ...auth } })],
        [415, () => request(server, { method: 'POST', path: '/v1/chat/completions', headers: { ...from, ...auth, 'Content-Type': 'text/plain' }, body: 'x' })],
        [421, () => request(server, { path: '/v1/models', headers: { ...from, Host: 'rebound.example' } })],
        [200, () => request(server, { path: '/health', headers: from })],
        [200, () => request(server, { path: '/v1/models', headers: { ...from, ...auth } })],
        [204, () => request(server, { method: 'OPTIONS', path: '/v1/models', headers: from })],
    ];
    for (const [status, send] of cases) {
        const reply = await send();
        assert.equal(reply.status, status);
        isOpen(reply);
    }
    const page = await request(server, { path: '/', headers: from });
    isOpen(page);
    const fresh = await request(server, { path: '/', headers: { ...from, 'If-None-Match': page.headers.etag ?? 'none' } });
    isOpen(fresh);
    isOpen(await request(server, { path: '/health', headers: { Origin: 'null' } }), 'null');
});

test('a file comes back whole, for its page', async () => {
    const parts = '--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello\r\n--b--\r\n';
    const sent = await request(server, { method: 'POST', path: '/v1/files', headers: { Origin: PAGE, ...auth, 'Content-Type': 'multipart/form-data; boundary=b' }, body: parts });
    isOpen(sent);
    if (sent.status !== 200) return; // a double without a place for files refuses, and its page reads why
    const got = await request(server, { path: `/v1/files/${JSON.parse(sent.body).id}/content`, headers: { Origin: PAGE, ...auth } });
    assert.equal(got.body.toString(), 'hello');
    isOpen(got);
});

test('other origins get nothing', async () => {
    for (const origin of ['https://evil.example', `${PAGE}.evil.example`, 'https://chat.example', 'http://chat.example:8443', `${PAGE}, ${PAGE}`, '*']) {
        const asked = await preflight('/v1/chat/completions', { Origin: origin });
        assert.equal(asked.status, 403, origin);
        isClosed(asked);
        const reply = await post(server, '/v1/chat/completions', ask, { Origin: origin, ...auth });
        assert.equal(reply.status, 403, origin);
        isClosed(reply);
    }
    const own = await request(server, { path: '/health', headers: { Origin: `http://127.0.0.1:${server.port}` } });
    assert.equal(own.status, 200);
    isClosed(own);
    assert.match(own.headers.vary, /\bOrigin\b/);
    isClosed(await request(server, { path: '/health' }));
});

test('each request on a connection is judged by its own origin', async () => {
    const raw = rawSocket(server);
    for (const origin of [PAGE, null, PAGE, 'https://evil.example']) {
        raw.data = Buffer.alloc(0);
        raw.send(`GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n${origin ? `Origin: ${origin}\r\n` : ''}\r\n`);
        await raw.until((data) => parseReply(data) !== null, 60000);
        (origin === PAGE ? isOpen : isClosed)(parseReply(raw.data));
    }
    raw.socket.destroy();
});

test('the end', async () => {
    assert.equal(await server.stop(), 0);
});

await runTests();
