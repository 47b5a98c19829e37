/** Replicas of one server: conversations go back to where they were, replicas come and go. */
import assert from 'node:assert/strict';
import { eventually, post, request, runTests, sleep, startServer, test } from '../client.mjs';
import { startUpstream, wire } from './fake_upstream.mjs';

/** Where it is not null, requests are held until so many are there, however slow the machine is.
 * @type {{left: number, all: Promise<void>, done: () => void} | null} */
let crowd = null;

/** A replica that remembers what it was asked, as a prefix cache does, and says how much it knew. */
async function startReplica(name, port = 0) {
    const known = new Set();
    const fake = await startUpstream({ engine: 'vllm', model: 'm', port });
    fake.name = name;
    fake.answer = async (body, res) => {
        const said = body.messages.filter((m) => m.role === 'user').map((m) => m.content);
        const before = JSON.stringify(said.slice(0, -1));
        const hit = said.length > 1 && known.has(before);
        known.add(JSON.stringify(said));
        if (crowd && --crowd.left === 0) crowd.done();
        await (crowd?.all ?? sleep(5));
        if (fake.broken) { res.writeHead(503); res.end('{}'); return; }
        res.setHeader('Content-Type', 'text/event-stream');
        res.end(wire('vllm', 'm', { content: JSON.stringify({ name: fake.name, hit, turn: said.length }) }));
    };
    return fake;
}

const replicas = await Promise.all(['a', 'b', 'c'].map((name) => startReplica(name)));
const server = await startServer(['--upstream', `gpu=${replicas.map((r) => r.url).join(',')}`]);
const states = async () => (await request(server, { path: '/v1/status' })).json().upstreams[0].replicas.map((r) => r.state).join();
await eventually(states, 'up,up,up');

const LONG = 'What was said before. '.repeat(1500); // 8k tokens
const turn = async (chat, n) => {
    chat.push({ role: 'user', content: `${n} ${LONG}` });
    const reply = await post(server, '/v1/chat/completions', { model: 'gpu/m', messages: chat });
    assert.equal(reply.status, 200, reply.text);
    const content = reply.json().choices[0].message.content;
    chat.push({ role: 'assistant', content });
    return JSON.parse(content);
};

/** Every user's next turn, 20 at a time, in an order of its own. */
async function round(chats, n) {
    const order = chats.map((_, i) => (i * 7 + n * 13) % chats.length);
    const seen = [];
    const worker = async () => {
        while (order.length) seen.push(await turn(chats[order.pop()], n));
    };
    await Promise.all(Array.from({ length: 20 }, worker));
    return seen;
}

test('60 conversations of 8k tokens stay where they are, and spread', async () => {
    const chats = Array.from({ length: 60 }, (_, i) => [{ role: 'system', content: 'The same for all.' }, { role: 'user', content: `user ${i}` }, { role: 'assistant', content: 'Hi.' }]);
    const first = await round(chats, 1);
    for (const name of 'abc') {
        const n = first.filter((s) => s.name === name).length;
        assert.ok(n >= 12 && n <= 28, `${name}: ${n}`);
    }
    const hits = [];
    for (const n of [2, 3]) hits.push(...(await round(chats, n)));
    const share = hits.filter((s) => s.hit).length / hits.length;
    assert.ok(share >= 0.95, `${(share * 100).toFixed(1)} %`);
    console.log(`     hits of later turns: ${(share * 100).toFixed(1)} %`);
});

test('a replica that dies loses nothing that had not begun; one that returns is used again', async () => {
    const chats = Array.from({ length: 60 }, (_, i) => [{ role: 'user', content: `second ${i}` }, { role: 'assistant', content: 'Hi.' }]);
    await round(chats, 1);
    const { port } = replicas[1];
    const pending = round(chats, 2); // each of them is answered with 200
    await replicas[1].close();
    const seen = await pending;
    assert.ok(seen.length === 60);
    await eventually(states, 'up,down,up');
    const third = await round(chats, 3);
    assert.ok(third.every((s) => s.name !== 'b'));
    replicas[1] = await startReplica('b', port);
    await eventually(states, 'up,up,up');
    const fresh = await round(Array.from({ length: 30 }, (_, i) => [{ role: 'user', content: `third ${i}` }]), 1);
    assert.ok(fresh.some((s) => s.name === 'b'));
    const fourth = await round(chats, 4); // the one that is back takes a part of the load
    assert.ok(fourth.filter((s) => s.hit).length >= 40, `${fourth.filter((s) => s.hit).length} of 60`);
});

test('the most loaded gives way', async () => {
    const chat = [{ role: 'user', content: 'loaded' }, { role: 'assistant', content: 'Hi.' }];
    const home = (await turn(chat, 1)).name;
    let done = () => {};
    const all = new Promise((resolve) => { done = resolve; });
    crowd = { left: 36, all, done };
    const forks = await Promise.all(Array.from({ length: 36 }, (_, i) => turn([...chat], `fork ${i}`)));
    crowd = null;
    const there = forks.filter((s) => s.name === home).length;
    assert.ok(there >= 12 && there <= 16, `${there} of 36 at home`); // 1.25 times a third, or three more
});

test('busy replicas pass a request on; one whose answers fail rests', async () => {
    replicas[0].broken = true;
    for (let i = 0; i < 12; i++) {
        const reply = await post(server, '/v1/chat/completions', { model: 'gpu/m', messages: [{ role: 'user', content: `x${i}` }] });
        assert.equal(reply.status, 200, reply.text);
    }
    replicas[0].broken = false;
});

test('metrics of each', async () => {
    const text = (await request(server, { path: '/metrics' })).text;
    for (const name of ['up', 'running', 'requests_total', 'followed_total', 'failed_total']) assert.equal(text.match(new RegExp(`^parley_upstream_${name}\\{upstream="gpu",replica="http`, 'gm'))?.length, 3, name);
    assert.equal(await server.stop(), 0);
    for (const r of replicas) await r.close();
});

await runTests();
