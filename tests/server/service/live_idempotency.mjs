/** Requests that are sent again with the same Idempotency-Key: one answer, whoever was cut off and
 * whenever. */
import assert from 'node:assert/strict';
import { eventually, events, joinChat, parseReply, post, rawSocket, request, runTests, startServer, test } from '../client.mjs';

const KEYS = ['the-key-of-alice-here', 'the-key-of-bob-is-here'];
const server = await startServer(['--key', KEYS[0], '--key', KEYS[1]]);
await server.ready();

const auth = (key = KEYS[0]) => ({ Authorization: `Bearer ${key}` });
const send = (name, path, body, key) => post(server, path, body, { ...auth(key), ...(name ? { 'Idempotency-Key': name } : {}) });
/** How many answers were begun. */
const begun = async () => (await request(server, { path: '/v1/status', headers: auth() })).json().totals.requests;
const said = (content) => [{ role: 'user', content }];

const PROTOCOLS = [
    ['/v1/chat/completions', (text, more) => ({ messages: said(text), ...more })],
    ['/v1/completions', (text, more) => ({ prompt: text, ...more })],
    ['/v1/messages', (text, more) => ({ messages: said(text), max_tokens: 9000, ...more })],
    ['/v1/responses', (text, more) => ({ input: text, ...more })],
];

for (const [path, make] of PROTOCOLS) {
    for (const stream of [false, true]) {
        test(`${path}, stream: ${stream}: again behind it, beside it, and after a cut`, async () => {
            const body = make(`!think hello ${path}`, { stream });
            const before = await begun();
            const first = await send(`a ${path} ${stream}`, path, body);
            assert.equal(first.status, 200, first.text);
            const again = await send(`a ${path} ${stream}`, path, body);
            assert.equal(again.text, first.text);
            assert.notEqual(again.headers['x-request-id'], first.headers['x-request-id']);
            assert.equal(await begun(), before + 1);

            const slow = make(`!delay=10 ${'some words '.repeat(8)}`, { stream });
            const both = await Promise.all([1, 2, 3].map(() => send(`b ${path} ${stream}`, path, slow)));
            assert.ok(both.every((reply) => reply.status === 200 && reply.text === both[0].text));
            assert.equal(await begun(), before + 2);

            const raw = rawSocket(server);
            const text = JSON.stringify(slow);
            raw.send(`POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nAuthorization: Bearer ${KEYS[0]}\r\nIdempotency-Key: c ${path} ${stream}\r\n` +
                `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
            if (stream) assert.ok(await raw.until((data) => data.includes('data: '), 60000));
            else await eventually(begun, before + 3, 60000);
            raw.socket.destroy();
            const rest = await send(`c ${path} ${stream}`, path, slow);
            assert.equal(rest.status, 200);
            assert.equal(await begun(), before + 3);
            if (stream && path === '/v1/chat/completions') {
                assert.equal(joinChat(rest.text).content, `You said: ${'some words '.repeat(8)}`);
                assert.equal(joinChat(rest.text).done, 1);
                const seen = raw.data.subarray(raw.data.indexOf('data: ')).toString().split('\r\n')[0];
                assert.ok(rest.text.startsWith(seen), 'the same from the first byte on');
            }
        });
    }
}

test('tool calls keep their ids', async () => {
    const tools = [{ type: 'function', function: { name: 'now' } }];
    const content = '!raw <tool_call>\n<function=now>\n</function>\n</tool_call>';
    for (const stream of [false, true]) {
        const [first, again] = [await send(`m ${stream}`, '/v1/chat/completions', { messages: said(content), tools, stream }), await send(`m ${stream}`, '/v1/chat/completions', { messages: said(content), tools, stream })];
        assert.match(first.text, /"call_\w{32}"/);
        assert.equal(again.text, first.text);
    }
});

test('without a key, or with another, each request has its own answer', async () => {
    const body = { messages: said('hello') };
    const before = await begun();
    const ids = [];
    for (const [name, key] of [[null], [null], ['d', KEYS[0]], ['d', KEYS[1]], ['e', KEYS[0]]]) ids.push((await send(name, '/v1/chat/completions', body, key)).json().id);
    assert.equal(new Set(ids).size, 5);
    assert.equal(await begun(), before + 5);
});

test('a key of another request is refused', async () => {
    const path = '/v1/chat/completions';
    assert.equal((await send('f', path, { messages: said('one') })).status, 200);
    for (const [where, body] of [[path, { messages: said('two') }], [path, { messages: said('one'), seed: 1 }], ['/v1/responses', { input: 'one' }]]) {
        const reply = await send('f', where, body);
        assert.equal(reply.status, 422);
        assert.equal(reply.json().error.code, 'idempotency_key_reused');
        assert.equal(reply.json().error.type, 'invalid_request_error');
    }
    for (const name of ['x'.repeat(256), 'x'.repeat(3000)]) assert.equal((await send(name, path, { messages: said('one') })).json().error.param, 'Idempotency-Key');
    assert.equal((await send('x'.repeat(255), path, { messages: said('one') })).status, 200);
});

test('what failed is tried again', async () => {
    const before = await begun();
    for (const stream of [false, true]) {
        const body = { messages: said('!fail some words'), stream };
        for (let i = 0; i < 2; i++) assert.match((await send(`g ${stream}`, '/v1/chat/completions', body)).text, /server_error/);
        const response = { input: '!fail some words', stream };
        for (let i = 0; i < 2; i++) assert.match((await send(`h ${stream}`, '/v1/responses', response)).text, /server_error/);
    }
    assert.equal(await begun(), before + 8);
    assert.equal((await send('i', '/v1/chat/completions', { messages: said('hi'), temperature: 7 })).status, 400);
    assert.equal((await send('i', '/v1/chat/completions', { messages: said('hi') })).status, 200);
});

test('a stream that is too long to be kept is not made twice', async () => {
    const small = await startServer(['--event-log', '1024']);
    await small.ready();
    const ask = (name, stream) => post(small, '/v1/chat/completions', { messages: said('!len=1000'), stream }, { 'Idempotency-Key': name });
    const first = await ask('j', true);
    assert.equal(joinChat(first.text).content.length, 1000);
    assert.equal(events(first.text).at(-1), '[DONE]');
    assert.equal((await ask('j', true)).json().error.code, 'idempotency_reply_gone');
    assert.equal((await request(small, { path: '/v1/status' })).json().totals.requests, 1);
    assert.equal((await ask('k', false)).text, (await ask('k', false)).text);
    assert.equal(await small.stop(), 0);
});

test('an answer whose client has left can be cancelled', async () => {
    const raw = rawSocket(server);
    const text = JSON.stringify({ messages: said('!len=8000 !delay=50'), stream: true });
    raw.send(`POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nAuthorization: Bearer ${KEYS[0]}\r\nIdempotency-Key: l\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
    assert.ok(await raw.until((data) => /"id":"chatcmpl-/.test(data), 60000));
    assert.equal(parseReply(raw.data), null);
    const [id] = /chatcmpl-\w+/.exec(raw.data);
    raw.socket.destroy();
    const running = async () => (await request(server, { path: '/v1/status', headers: auth() })).json().running.length;
    await eventually(running, 1, 60000); // it waits until its first token is there
    assert.equal((await request(server, { method: 'POST', path: `/v1/requests/${id}/cancel`, headers: auth(), body: '' })).status, 200);
    await eventually(running, 0, 60000);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
