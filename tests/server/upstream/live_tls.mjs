/** Other servers over TLS: certificates, HTTP/2 where it is offered, connections that are kept. The keys of `tls/` are
 * of this test alone. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createSecureServer } from 'node:http2';
import { fileURLToPath } from 'node:url';
import { eventually, events, post, request, runTests, startServer, test } from '../client.mjs';
import { startUpstream, wire } from './fake_upstream.mjs';

const path = (name) => fileURLToPath(new URL(`tls/${name}`, import.meta.url));
const identity = (name) => ({ cert: readFileSync(path(`${name}.pem`)), key: readFileSync(path(`${name}-key.pem`)) });

/** An engine behind TLS; `versions` are those of the requests, `connections` how many there were. */
async function startTls(name, two) {
    const fake = { versions: [], connections: 0 };
    const answer = (req, res) => {
        fake.versions.push(req.httpVersion);
        req.resume();
        req.on('end', () => {
            res.setHeader('Content-Type', req.method === 'GET' ? 'application/json' : 'text/event-stream');
            res.end(req.method === 'GET' ? JSON.stringify({ object: 'list', data: [{ id: 'm', owned_by: 'vllm' }] }) : wire('vllm', 'm', { content: 'Safe.' }));
        });
    };
    const server = two ? createSecureServer({ ...identity(name), allowHTTP1: true }, answer) : createServer(identity(name), answer);
    server.on('secureConnection', () => fake.connections++);
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    fake.url = `https://127.0.0.1:${server.address().port}`;
    fake.close = () => server.close();
    return fake;
}

const one = await startTls('server', false), two = await startTls('server', true), other = await startTls('other', true);
const plain = await startUpstream({ model: 'm' });
const ask = (server, name) => post(server, '/v1/chat/completions', { model: `${name}/m`, messages: [{ role: 'user', content: 'Hi' }], stream: true });
const state = async (server, name) => (await request(server, { path: '/v1/status' })).json().upstreams.find((u) => u.name === name).replicas[0];

test('a certificate that verifies: HTTP/2 where it is offered, and connections are kept', async () => {
    const server = await startServer(['--upstream', `one=${one.url},two=${two.url}`, '--upstream-ca', path('server.pem')]);
    await server.ready();
    for (const name of ['one', 'two']) await eventually(async () => (await state(server, name)).state, 'up');
    for (let i = 0; i < 10; i++) {
        for (const name of ['one', 'two']) {
            const reply = await ask(server, name);
            assert.equal(reply.status, 200, reply.text);
            assert.equal(events(reply.text).at(-1), '[DONE]');
        }
    }
    assert.deepEqual([...new Set(one.versions)], ['1.1']);
    assert.deepEqual([...new Set(two.versions)], ['2.0']);
    assert.ok(one.connections <= 2 && two.connections <= 2, `${one.connections} and ${two.connections} connections`);
    const many = await Promise.all(Array.from({ length: 20 }, () => ask(server, 'two')));
    assert.ok(many.every((reply) => reply.status === 200));
    assert.equal(await server.stop(), 0);
});

test('one that does not verify, or is of another name, or none at all, is a sentence', async () => {
    const secret = { KEY_OF_TLS: 'sk-never-sent-0123456789' };
    const unknown = await startServer(['--upstream', `one=${one.url}`, '--upstream-key', 'one=KEY_OF_TLS'], secret);
    const wrong = await startServer(['--upstream', `other=${other.url},plain=${plain.url.replace('http:', 'https:')}`, '--upstream-ca', path('other.pem')]);
    const before = one.versions.length;
    for (const [server, name, pattern] of [[unknown, 'one', /certificate does not verify \(--upstream-ca/], [wrong, 'other', /certificate does not verify/], [wrong, 'plain', /does not speak TLS/]]) {
        await server.ready();
        await eventually(async () => (await state(server, name)).state, 'down');
        assert.match((await state(server, name)).error, pattern);
        const reply = await ask(server, name);
        assert.deepEqual([reply.status, reply.json().error.code], [502, 'upstream_unreachable'], reply.text);
        assert.match(reply.text, pattern);
        assert.match(server.err, pattern);
    }
    assert.equal(one.versions.length, before, 'nothing was sent');
    for (const server of [unknown, wrong]) assert.equal(await server.stop(), 0);
});

test('a file that holds no certificate is refused at the start', async () => {
    const failed = await startServer(['--upstream', `one=${one.url}`, '--upstream-ca', fileURLToPath(import.meta.url)]).catch((e) => e);
    assert.match(failed.message ?? 'it started', /--upstream-ca: .* holds no certificate/);
    for (const fake of [one, two, other, plain]) fake.close();
});

await runTests();
