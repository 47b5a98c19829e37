/** Conversations of the API that the server keeps (--history): they survive restarts and kills, keys do not see
 * each other's, and what cannot be written is said before an answer is called finished. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JSON_TYPE, Socket, eventually, metric, request, runTests, sleep, startServer, test } from '../client.mjs';

const KEYS = ['first-key-of-the-test', 'second-key-of-the-test'];
const KILLS = Number(process.env.PARLEY_KILLS ?? 4);
const timeout = 120_000;
const dir = mkdtempSync(join(tmpdir(), 'parley-talks-'));
process.env.FAKE_STUCK_UNTIL = `${dir}.go`;
process.on('exit', () => [dir, `${dir}.go`].forEach((path) => rmSync(path, { recursive: true, force: true })));
const options = ['--key', KEYS[0], '--key', KEYS[1], '--history', dir];
let server = await startServer(options);
await server.ready();

const auth = (key = 0) => ({ Authorization: `Bearer ${KEYS[key]}` });
const call = (method, path, value, key) =>
    request(server, { timeout, method, path: `/v1/conversations${path}`, headers: { ...JSON_TYPE, ...auth(key) }, body: value && JSON.stringify(value) });
const respond = (body, key) => request(server, { timeout, method: 'POST', path: '/v1/responses', headers: { ...JSON_TYPE, ...auth(key) }, body: JSON.stringify(body) });
const textOf = (response) => response.output.find((item) => item.type === 'message').content[0].text;
const create = async (value = {}, key = 0) => {
    const reply = await call('POST', '', value, key);
    assert.equal(reply.status, 200, reply.text);
    return reply.json().id;
};
/** All of them, page by page. */
const itemsOf = async (id) => {
    const all = [];
    for (;;) {
        const reply = await call('GET', `/${id}/items?order=asc&limit=100${all.length ? `&after=${all.at(-1).id}` : ''}`);
        assert.equal(reply.status, 200, reply.text);
        all.push(...reply.json().data);
        if (!reply.json().has_more) return all;
    }
};
const say = (text) => ({ type: 'message', role: 'user', content: text });
const restart = async () => {
    assert.equal(await server.stop(), 0);
    server = await startServer(options);
    await server.ready();
};

test('a conversation goes on after a restart, whole, over HTTP and a socket', async () => {
    const id = await create({ metadata: { topic: 'sheep' }, items: [say('zero'), { ...say('ä"\n'), id: 'my own id' }] });
    const first = (await respond({ input: '!think one', conversation: id })).json();
    assert.equal(first.status, 'completed');
    await restart();
    assert.deepEqual((await call('GET', `/${id}`)).json().metadata, { topic: 'sheep' });
    const recalled = textOf((await respond({ input: '!recall two', conversation: { id } })).json());
    assert.equal(recalled, 'You said: two user:zero user:ä"\n user:one assistant:You said: one user:two');
    const ws = await Socket.open(server, { protocols: 'parley.v1', headers: auth() });
    ws.send({ type: 'response.create', input: 'three', conversation: id });
    await ws.wait('response.completed');
    ws.destroy();
    const streamed = await respond({ input: 'four', conversation: id, stream: true, store: false });
    assert.match(streamed.text, /response\.completed/);
    await restart();
    const items = await itemsOf(id);
    assert.deepEqual(items.map((item) => item.type), ['message', 'message', 'message', 'reasoning', ...Array(7).fill('message')]);
    assert.equal(new Set(items.map((item) => item.id)).size, items.length);
    const reference = await respond({ input: [{ type: 'item_reference', id: items[0].id }, say('!recall five')] });
    assert.equal(textOf(reference.json()), 'You said: five user:zero user:five');
});

test('items are added, read and deleted, and stay so', async () => {
    const id = await create();
    const added = await call('POST', `/${id}/items`, { items: [say('a'), say('b'), say('c')] });
    const [a, b, c] = added.json().data.map((item) => item.id);
    assert.equal((await call('GET', `/${id}/items/${b}`)).json().content[0].text, 'b');
    assert.equal((await call('DELETE', `/${id}/items/${b}`)).status, 200);
    assert.equal((await call('POST', `/${id}`, { metadata: { x: '1' } })).json().metadata.x, '1');
    await restart();
    assert.deepEqual((await itemsOf(id)).map((item) => item.id), [a, c]);
    assert.equal((await call('GET', `/${id}/items/${b}`)).json().error.code, 'item_not_found');
    assert.deepEqual((await call('GET', `/${id}`)).json().metadata, { x: '1' });
    assert.equal((await call('DELETE', `/${id}`)).json().deleted, true);
    for (const reply of [await call('GET', `/${id}`), await call('DELETE', `/${id}`), await call('POST', `/${id}/items`, { items: [say('d')] }), await respond({ input: 'x', conversation: id })]) {
        assert.equal(reply.status, 404, reply.text);
        assert.equal(reply.json().error.code, 'conversation_not_found');
    }
    const reference = await respond({ input: [{ type: 'item_reference', id: a }] });
    assert.equal(reference.json().error.code, 'item_not_found');
});

test('keys are apart', async () => {
    const id = await create({ items: [say('a secret')] });
    const [item] = await itemsOf(id);
    for (const [method, path, value] of [['GET', ''], ['POST', '', { metadata: {} }], ['DELETE', ''], ['GET', '/items'], ['POST', '/items', { items: [say('x')] }], ['GET', `/items/${item.id}`], ['DELETE', `/items/${item.id}`]]) {
        assert.equal((await call(method, `/${id}${path}`, value, 1)).status, 404, `${method} ${path}`);
    }
    assert.equal((await respond({ input: 'x', conversation: id }, 1)).status, 404);
    assert.equal((await respond({ input: [{ type: 'item_reference', id: item.id }] }, 1)).status, 404);
    assert.equal((await itemsOf(id)).length, 1);
});

test('wrong requests are refused and change nothing', async () => {
    const id = await create({ items: [say('a')] });
    for (const [path, value, param] of [['', { metadata: 'x' }, 'metadata'], ['', { metadata: { x: 'y'.repeat(20_000) } }, 'metadata'], [`/${id}/items`, { items: {} }, 'items'], [`/${id}/items`, { items: ['x'] }, 'items[0]'], [`/${id}`, [], null]]) {
        const reply = await call('POST', path, value);
        assert.equal(reply.status, 400, reply.text);
        assert.equal(reply.json().error.param, param);
    }
    for (const query of ['order=up', 'limit=0', 'limit=101', 'after=nothing']) assert.equal((await call('GET', `/${id}/items?${query}`)).status, 400, query);
    for (const name of ['x', 'conv_', `conv_${'a'.repeat(300)}`, "conv_'; DROP TABLE talks"]) assert.equal((await call('GET', `/${encodeURIComponent(name)}`)).status, 404, name);
    assert.equal((await itemsOf(id)).length, 1);
});

test('one that grows too large says so, and the answer has failed', async () => {
    const id = await create();
    let n = 0;
    const fill = async (size, least) => {
        while (size > least) { // items that are no part of the prompt
            const reply = await call('POST', `/${id}/items`, { items: [{ type: 'mcp_list_tools', tools: [], error: 'x'.repeat(size) }] });
            n += reply.status === 200;
            if (reply.status === 200) continue;
            assert.equal(reply.status, 413, reply.text);
            assert.equal(reply.json().error.code, 'conversation_too_large');
            size = Math.floor(size / 4);
        }
    };
    await fill(1000_000, 1000);
    assert.ok(n > 16);
    const refused = await respond({ input: 'hello '.repeat(400), conversation: id });
    assert.equal(refused.status, 413, refused.text.slice(0, 300));
    assert.equal(refused.json().error.code, 'conversation_too_large');
    n = (await itemsOf(id)).length;
    // The question has room, its answer has none.
    const said = await respond({ input: '!len=9000', conversation: id });
    assert.equal(said.status, 200, said.text.slice(0, 300));
    assert.equal(said.json().status, 'failed');
    assert.equal(said.json().error.code, 'conversation_too_large', said.text.slice(0, 300));
    assert.equal((await itemsOf(id)).length, n);
    const streamed = await respond({ input: '!len=9000', conversation: id, stream: true });
    assert.match(streamed.text, /event: response\.failed/);
    assert.doesNotMatch(streamed.text, /event: response\.completed/);
    assert.equal((await itemsOf(id)).length, n);
    // Both had room when it began, and others took that meanwhile.
    const overtaken = respond({ input: '!stuck !len=100', conversation: id });
    await eventually(async () => metric(server, 'parley_requests_running', auth()), 1);
    await fill(1000, 10);
    writeFileSync(process.env.FAKE_STUCK_UNTIL, '');
    const lost = (await overtaken).json();
    assert.equal(lost.status, 'failed');
    assert.equal(lost.error.code, 'conversation_too_large');
    assert.equal((await itemsOf(id)).length, n);
});

test(`what was acknowledged survives ${KILLS} kills`, async () => {
    const ids = await Promise.all([0, 1, 2].map(() => create()));
    const said = ids.map(() => []);
    const pending = ids.map(() => null);
    for (let kill = 0; kill <= KILLS; kill += 1) {
        for (const [i, id] of ids.entries()) {
            const kept = (await itemsOf(id)).filter((item) => item.role === 'user').map((item) => item.content[0].text);
            if (pending[i] && kept.length > said[i].length) said[i].push(pending[i]);
            assert.deepEqual(kept, said[i]);
        }
        if (kill === KILLS) break;
        let n = 0;
        const writers = ids.map(async (id, i) => {
            while (said[i].length < 200) {
                pending[i] = `${said[i].length}`;
                const reply = i === 0 ? await call('POST', `/${id}/items`, { items: [say(pending[i])] }) : await respond({ input: pending[i], conversation: id, stream: i === 2 });
                if (reply.status !== 200 || !(i === 2 ? reply.text.includes('event: response.completed') : i === 0 || reply.json().status === 'completed')) return;
                said[i].push(pending[i]);
                pending[i] = null;
                n += 1;
            }
        });
        await eventually(() => n > 8, true, timeout);
        await sleep(Math.random() * 60);
        server.child.kill('SIGKILL');
        await Promise.all([...writers, server.exited]);
        server = await startServer(options);
        await server.ready();
    }
    console.log(`${said.map((all) => all.length)} acknowledged`);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
