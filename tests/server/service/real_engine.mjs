/**
 * The whole program on a small checkpoint: clients that vanish at random places, what the cache
 * shares and with whom, what /v1/status says of it.
 */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { IS_SANITIZED, Socket, eventually, metric, post, rawSocket, request, runTests, sleep, startServer, test } from '../client.mjs';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const program = (...more) =>
    startServer(['serve', '-m', `${root}tests/data/tiny`, '--chat-template-file', `${root}tools/seedling/chat_template.jinja`,
        '--port', '0', '-c', '1024', '-t', '1', '-b', '64', '--temp', '0', '--cache-ram', '16', '--queue', '100', '--log-level', 'error', ...more]);

const keys = ['the-first-key-of-two', 'the-second-key-of-two'];
const server = await program();
const guarded = await program('--api-key', keys.join(','));

const status = async () => (await request(server, { path: '/v1/status' })).json();
const ask = async (target, messages, more = {}, headers = {}) => {
    const reply = await post(target, '/v1/chat/completions', { messages, max_tokens: 24, ...more }, headers);
    assert.equal(reply.status, 200, reply.text);
    return reply.json();
};
const canary = async () => (await ask(server, [{ role: 'user', content: 'The canary sings at night.' }])).choices[0].message;

const words = (n) => Array.from({ length: n }, () => `w${Math.floor(Math.random() * 100)}`).join(' ');

/** One client that asks for a long answer and is gone before it has it. */
async function vanish(i) {
    const content = words(Math.floor(Math.random() * 250));
    const gone = () => sleep(Math.random() * 40);
    if (i % 5 === 4) {
        const ws = await Socket.open(server, { protocols: i % 2 ? 'parley.v1' : undefined });
        ws.send({ type: 'response.create', input: content, max_output_tokens: 800, on_disconnect: 'cancel' });
        await gone();
        ws.destroy();
        return;
    }
    const raw = rawSocket(server);
    const body = JSON.stringify({ messages: [{ role: 'user', content }], max_tokens: 800, stream: i % 2 === 0 });
    raw.send(`POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await gone();
    if (i % 3 === 0) raw.socket.resetAndDestroy();
    else raw.socket.destroy();
}

/** Milliseconds until nothing runs or waits. */
async function untilIdle() {
    const start = performance.now();
    for (;;) {
        const { queue, running, waiting } = await status();
        if (queue.running + queue.waiting + running.length + waiting.length === 0) return performance.now() - start;
        assert.ok(performance.now() - start < 60000, 'the slots stay busy');
        await sleep(2);
    }
}

test('clients that vanish free their slots and change no other answer', async () => {
    const alone = await canary();
    const took = [];
    let before = 0;
    for (let burst = 0; burst < 40; burst++) {
        const beside = canary();
        await Promise.all(Array.from({ length: 10 }, (_, i) => vanish(burst * 10 + i)));
        assert.deepEqual(await beside, alone);
        took.push(await untilIdle());
        if (burst === 19) before = (await status()).memory.rss_bytes;
    }
    assert.deepEqual(await canary(), alone);
    const grown = ((await status()).memory.rss_bytes - before) / 1024;
    took.sort((a, b) => a - b);
    const [median, slowest] = [took[took.length / 2], took.at(-1)];
    console.log(`     idle after ${median.toFixed(0)} ms, at most ${slowest.toFixed(0)} ms; ${grown.toFixed(0)} KiB more memory`);
    /* On a slow machine most are gone before the engine has heard of them. */
    assert.ok(await metric(server, 'parley_request_success_total{finished_reason="cancelled"}') > 0);
    if (!IS_SANITIZED) assert.ok(grown < 8192, `${grown} KiB`);
});

test('requests are stopped by the id of the list', async () => {
    const replies = Array.from({ length: 6 }, () => post(server, '/v1/chat/completions', { messages: [{ role: 'user', content: words(200) }], max_tokens: 800, logit_bias: {} }));
    let stopped = 0;
    for (let idle = 0; idle < 5; ) {
        const s = await status();
        for (const r of [...s.running, ...s.waiting]) {
            assert.ok(['prepare', 'queued', 'prefill', 'decode'].includes(r.phase));
            assert.ok(r.processed <= r.total && r.tokens <= r.max_tokens);
            stopped += (await request(server, { method: 'DELETE', path: `/v1/requests/${r.id}` })).status === 200;
        }
        idle += s.running.length + s.waiting.length === 0;
    }
    for (const reply of await Promise.all(replies)) assert.ok([200, 503].includes(reply.status));
    assert.ok(stopped > 0);
});

const talk = [
    { role: 'system', content: 'You know the word canary-81 and tell nobody.' },
    { role: 'user', content: 'Tell me about the first thing, with many words.' },
];
const later = [...talk, { role: 'assistant', content: 'The first thing is round and red.' }, { role: 'user', content: 'And the second?' }];

test('a later turn takes up what is cached, of its own key only', async () => {
    const by = (key) => ({ Authorization: `Bearer ${key}` });
    const cached = (answer) => {
        const { usage, timings } = answer;
        assert.equal(usage.prompt_tokens_details.cached_tokens, timings.cache_n);
        assert.equal(usage.prompt_tokens, timings.prompt_n + timings.cache_n);
        return timings.cache_n;
    };
    const first = await ask(guarded, talk, {}, by(keys[0]));
    assert.equal(cached(first), 0);
    const second = await ask(guarded, later, {}, by(keys[0]));
    assert.ok(cached(second) > 0);
    const foreign = await ask(guarded, later, {}, by(keys[1]));
    assert.equal(cached(foreign), 0);
    const off = await ask(guarded, later, { cache_prompt: false }, by(keys[0]));
    assert.equal(cached(off), 0);
    const plain = await ask(guarded, later, { mtp: false }, { 'X-API-Key': keys[0] });
    assert.ok(cached(plain) >= cached(second));
    assert.equal(plain.timings.draft_n, 0);
    for (const answer of [foreign, off, plain]) assert.deepEqual(answer.choices[0].message, second.choices[0].message);
    const response = (await post(guarded, '/v1/responses', { input: later, max_output_tokens: 4 }, by(keys[1]))).json();
    assert.ok(response.usage.input_tokens_details.cached_tokens > 0);
    assert.equal(response.usage.input_tokens, second.usage.prompt_tokens);

    const s = (await request(guarded, { path: '/v1/status', headers: by(keys[0]) })).json();
    assert.ok(s.cache.entries > 0 && s.cache.bytes > 0 && s.cache.hits >= 3);
    assert.equal(s.cache.hit_rate, Number((s.cache.hits / s.cache.queries).toFixed(4)));
    assert.ok(s.mtp.available && s.mtp.drafted > 0 && s.mtp.accepted <= s.mtp.drafted);
    const forget = async (key) => assert.equal((await request(guarded, { method: 'DELETE', path: '/v1/cache', headers: by(key) })).status, 200);
    await forget(keys[0]);
    assert.ok(cached(await ask(guarded, later, {}, by(keys[1]))) > 0, 'what another key clears is its own');
    assert.equal(cached(await ask(guarded, later, {}, by(keys[0]))), 0);
    for (const key of keys) await forget(key);
    await eventually(async () => {
        const left = (await request(guarded, { path: '/v1/status', headers: by(keys[0]) })).json().cache;
        return left.entries + left.bytes;
    }, 0);
    assert.equal(cached(await ask(guarded, later, {}, by(keys[0]))), 0);
});

test('64 streams on 4 slots', async () => {
    const said = (i) => [{ role: 'user', content: `Stream ${i} says ${i * 7919}.` }];
    const alone = [];
    for (let i = 0; i < 64; i++) alone.push((await ask(server, said(i), { cache_prompt: false })).choices[0].message.content);
    const together = await Promise.all(alone.map((_, i) => post(server, '/v1/responses', { input: said(i), max_output_tokens: 24, stream: true })));
    for (const [i, reply] of together.entries()) {
        assert.equal(reply.status, 200, reply.text);
        const last = JSON.parse(reply.text.trim().split('\n').at(-1).slice(6));
        const text = last.response.output.filter((o) => o.type === 'message').map((o) => o.content[0].text).join('');
        assert.equal(text, alone[i]);
    }
});

test('nothing is left behind', async () => {
    await untilIdle();
    assert.equal(await server.stop(), 0);
    assert.equal(await guarded.stop(), 0);
});

await runTests();
