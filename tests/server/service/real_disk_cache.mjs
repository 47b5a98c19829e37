/**
 * --cache-disk against the real program: a conversation goes on after a restart, a key has its own
 * alone, a folder that cannot be used costs nothing but the cache, a full disk neither, and a server
 * that is killed while it writes leaves no wrong answer and nothing that grows. PARLEY_KILLS: at how
 * many points of writing it is killed (8).
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually, metric, post, request, runTests, startServer, test } from '../client.mjs';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'parley-disk-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));

const keys = ['the-first-key-of-two', 'the-second-key-of-two'];
const by = (key) => ({ Authorization: `Bearer ${key}` });
const program = (more, wrapper) =>
    startServer(['serve', '-m', `${root}tests/data/tiny`, '--chat-template-file', `${root}tools/seedling/chat_template.jinja`,
        '--port', '0', '-c', '2048', '-t', '1', '--temp', '0', '--cache-ram', '32', '--log-level', 'warn', ...more], {}, wrapper);

/** A question of about n words that is like no other of another seed. */
const question = (seed, n = 80) => Array.from({ length: n }, (_, i) => `word${(seed * 31 + i * i * (seed + 3)) % 97}`).join(' ');
const ask = async (server, messages, headers = {}, more = {}) => {
    const reply = await post(server, '/v1/chat/completions', { messages, max_tokens: 12, ...more }, headers);
    assert.equal(reply.status, 200, reply.text);
    const { choices, usage } = reply.json();
    return { text: choices[0].message.content, cached: usage.prompt_tokens_details.cached_tokens, prompt: usage.prompt_tokens };
};
const user = (content) => ({ role: 'user', content });
const status = async (server, headers) => (await request(server, { path: '/v1/status', headers })).json();
const entries = async (server, headers) => (await request(server, { path: '/v1/cache', headers })).json().data;
const files = (folder) => readdirSync(folder).filter((name) => /^[0-9a-f]{64}/.test(name));
const bytes = (folder) => files(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);

test('a conversation goes on after a restart, for its own key alone', async () => {
    const folder = join(dir, 'keys');
    const start = () => program(['--cache-disk', folder, '--cache-disk-mib', '64', '--api-key', keys.join(',')]);
    let server = await start();
    const first = await ask(server, [user(question(1))], by(keys[0]));
    const talk = [user(question(1)), { role: 'assistant', content: first.text }, user('And then?')];
    const expected = await ask(server, talk, by(keys[0]), { cache_prompt: false });
    assert.equal(first.cached, 0);
    assert.ok((await entries(server, by(keys[0]))).some((one) => one.where === 'memory' && one.tokens > 50 && one.bytes > 0));
    assert.deepEqual(await entries(server, by(keys[1])), []);
    assert.equal(await server.stop(), 0);
    for (const name of files(folder)) assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600);
    assert.equal(statSync(folder).mode & 0o777, 0o700);

    server = await start();
    assert.ok((await entries(server, by(keys[0]))).every((one) => one.where === 'disk' && one.last_used > 1.7e9));
    assert.equal((await ask(server, talk, by(keys[1]))).cached, 0, "another key's");
    const again = await ask(server, talk, by(keys[0]));
    assert.equal(again.text, expected.text);
    assert.ok(again.cached > 50, `${again.cached} cached`);
    const { cache } = await status(server, by(keys[0]));
    assert.equal(cache.disk.hits, 1);
    assert.equal(cache.disk.errors, 0);
    assert.equal(cache.disk.limit, 64 << 20);
    assert.ok(cache.disk.entries > 0 && cache.disk.bytes > 0);
    assert.equal(await metric(server, 'parley_disk_cache_hits_total', by(keys[0])), 1);

    assert.equal((await request(server, { method: 'DELETE', path: '/v1/cache', headers: by(keys[1]) })).status, 200);
    assert.deepEqual(await entries(server, by(keys[1])), []);
    assert.ok((await ask(server, talk, by(keys[0]))).cached > 50, 'what another key clears is its own');
    assert.equal((await ask(server, talk, by(keys[1]))).cached, 0);
    await request(server, { method: 'DELETE', path: '/v1/cache', headers: by(keys[0]) });
    assert.equal(await server.stop(), 0);
    server = await start();
    assert.deepEqual(await entries(server, by(keys[0])), []);
    assert.ok((await ask(server, talk, by(keys[1]))).cached > 50);
    assert.equal(await server.stop(), 0);
});

test('two servers on one folder, and folders that cannot be used', async () => {
    const folder = join(dir, 'shared');
    const first = await program(['--cache-disk', folder]);
    const second = await program(['--cache-disk', folder]);
    assert.match(second.err, /--cache-disk is not used: another server uses the folder/);
    assert.equal((await status(second)).cache.disk, null);
    for (const server of [first, second]) assert.equal((await ask(server, [user('hi')])).cached, 0);
    assert.equal(await second.stop(), 0);
    assert.equal(await first.stop(), 0);

    writeFileSync(join(dir, 'file'), '');
    for (const bad of [join(dir, 'file'), '/proc/parley', join(dir, 'no', 'where')]) {
        const server = await program(['--cache-disk', bad]);
        assert.match(server.err, /--cache-disk is not used: the folder .* cannot be/);
        await ask(server, [user('hi')]);
        assert.equal(await server.stop(), 0);
    }
    if (process.getuid() !== 0) {
        chmodSync(folder, 0o500);
        const server = await program(['--cache-disk', folder]);
        assert.match(server.err, /--cache-disk is not used: the folder .* cannot be written to/);
        assert.equal(await server.stop(), 0);
        chmodSync(folder, 0o700);
    }
});

test('a full disk fails no request', async () => {
    const folder = join(dir, 'full');
    const server = await program(['--cache-disk', folder], ['bash', '-c', 'ulimit -f 8; exec "$@"', 'sh']);
    const expected = await ask(server, [user(question(5))], {}, { cache_prompt: false });
    assert.equal((await ask(server, [user(question(5))])).text, expected.text);
    await eventually(async () => (await status(server)).cache.disk.errors > 0, true);
    assert.equal((await ask(server, [user(question(5))])).text, expected.text);
    assert.equal(await server.stop(), 0);
    assert.match(server.err, /a prompt is not kept: .* was not written: File too large/);
    assert.equal(files(folder).filter((name) => name.endsWith('.tmp')).length, 0);
});

test('prompts that are computed before the server is ready', async () => {
    const folder = join(dir, 'warm');
    const file = join(dir, 'warm.jsonl');
    const system = { role: 'system', content: question(7) };
    writeFileSync(file, [
        JSON.stringify({ messages: [system, user('hi')], tools: [] }), '',
        JSON.stringify([user(question(8))]), '{"messages": 3}', '17', JSON.stringify(question(9)),
    ].join('\n'));
    for (const rest of [[], ['--api-key', keys.join(',')]]) {
        const server = await program(['--warm-prompts', file, '--cache-disk', folder, ...rest]);
        await server.ready();
        assert.match(server.err, /prompt 3 of .* is left out: messages/);
        assert.match(server.err, /prompt 4 of .* is left out: it is neither a request, nor messages, nor a text/);
        for (const key of rest.length ? keys : ['none']) {
            assert.ok((await ask(server, [system, user('And you?')], by(key))).cached > 50);
            assert.ok((await ask(server, [user(question(8))], by(key))).cached > 50);
            const { usage } = (await post(server, '/v1/completions', { prompt: question(9), max_tokens: 1 }, by(key))).json();
            assert.ok(usage.prompt_tokens_details.cached_tokens > 50);
        }
        assert.equal(await server.stop(), 0);
    }
    writeFileSync(file, JSON.stringify([[user(question(8))]], null, 1)); // an array over several lines
    const server = await program(['--warm-prompts', file]);
    await server.ready();
    assert.ok((await ask(server, [user(question(8))])).cached > 50);
    assert.equal(await server.stop(), 0);
    const without = await program(['--warm-prompts', join(dir, 'nowhere')]);
    await without.ready();
    assert.match(without.err, /--warm-prompts .*nowhere is not used/);
    await ask(without, [user('hi')]);
    assert.equal(await without.stop(), 0);
});

/** Resolves when something has happened n times in the folder. */
function events(folder, n) {
    return new Promise((resolve) => {
        let seen = 0;
        const watcher = watch(folder, () => {
            if (++seen >= n) {
                watcher.close();
                resolve();
            }
        });
    });
}

test('killed while it writes', async () => {
    const folder = join(dir, 'killed');
    const limit = 8;
    const start = () => program(['--cache-disk', folder, '--cache-disk-mib', String(limit)]);
    const kills = Number(process.env.PARLEY_KILLS ?? 8);
    const expected = [];
    const plain = await program([]);
    for (let seed = 0; seed < 4; seed++) expected.push((await ask(plain, [user(question(seed, 150))], {}, { cache_prompt: false })).text);
    assert.equal(await plain.stop(), 0);

    const first = await start();
    assert.equal(await first.stop(), 0);
    let hits = 0;
    for (let kill = 0; kill < kills; kill++) {
        const server = await start();
        assert.equal(files(folder).filter((name) => name.endsWith('.tmp')).length, 0, 'leftovers are removed at the start');
        for (let seed = 0; seed < 4; seed++) {
            const answer = await ask(server, [user(question(seed, 150))]);
            assert.equal(answer.text, expected[seed]);
            hits += answer.cached > 50;
        }
        assert.equal((await status(server)).cache.disk.errors, 0);
        const reached = events(folder, 1 + ((kill * 7) % 23));
        let isDead = false;
        const asking = (async () => {
            for (let i = 0; !isDead; i++) await ask(server, [user(question(1000 + 50 * kill + i, 150))]);
        })().catch(() => {});
        await reached;
        isDead = true;
        server.child.kill('SIGKILL');
        await Promise.all([asking, server.exited]);
        assert.ok(bytes(folder) <= limit << 20, `${bytes(folder)} bytes in the folder`);
    }
    assert.ok(hits > 0);
    const last = await start();
    assert.equal(await last.stop(), 0);
    assert.ok(bytes(folder) <= limit << 20);
    console.log(`     ${kills} kills, ${hits} prompts read back, ${bytes(folder)} bytes at the end`);
});

runTests();
