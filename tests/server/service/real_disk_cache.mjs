/**
 * --cache-disk against the real program: a conversation goes on after a restart, a key has its own
 * alone, a folder that cannot be used costs nothing but the cache, a full disk neither, and a server
 * that is killed while it writes leaves no wrong answer and nothing that grows. PARLEY_KILLS: at how
 * many points of writing it is killed (8).
 */
import assert from 'node:assert/strict';
import { chmodSync, closeSync, mkdtempSync, openSync, readdirSync, rmSync, statSync, truncateSync, watch, writeFileSync, writeSync } from 'node:fs';
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
    assert.ok((await entries(server, by(keys[0]))).every((one) => one.where === 'disk' && one.last_used > 1.7e9 && one.last_used <= Date.now() / 1000));
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

test('a prompt with a name: saved, loaded, shown and forgotten by its own key', async () => {
    const folder = join(dir, 'named');
    const start = (...more) => program(['--cache-disk', folder, '--cache-disk-mib', '8', '--api-key', keys.join(','), ...more]);
    const own = by(keys[0]), other = by(keys[1]);
    const to = (server, method, name, headers = own, body = undefined) =>
        request(server, { method, path: `/v1/cache/${name}`, headers: { 'Content-Type': 'application/json', ...headers }, body: body ? JSON.stringify(body) : method === 'POST' ? '' : undefined });
    const chatOf = (seed) => ({ messages: [user(question(seed))] });
    let server = await start();
    const saved = await to(server, 'POST', 'one', own, chatOf(40));
    assert.equal(saved.status, 200, saved.text);
    const entry = saved.json();
    assert.deepEqual([entry.object, entry.name, entry.where, entry.cached_tokens], ['cache.entry', 'one', 'disk', 0]);
    assert.ok(entry.tokens > 50 && entry.computed_tokens >= entry.tokens && entry.bytes > 0, saved.text);
    assert.ok((await to(server, 'POST', 'one', own, chatOf(40))).json().cached_tokens >= entry.tokens - 1, 'saved again it is only looked up');
    assert.equal((await to(server, 'POST', 'a-text', own, { prompt: question(41) })).status, 200);
    assert.deepEqual((await entries(server, own)).filter((one) => one.name).map((one) => one.name).sort(), ['a-text', 'one']);
    assert.equal((await to(server, 'GET', 'one')).json().tokens, entry.tokens);
    for (const name of ['.hidden', 'a%20b', 'a*', 'x'.repeat(65)]) {
        assert.equal((await to(server, 'POST', name, own, chatOf(40))).json().error.param, 'name', name);
        assert.equal((await to(server, 'GET', name)).status, 400, name);
    }
    for (const [method, name] of [['GET', 'one'], ['DELETE', 'one'], ['POST', 'one/load']]) {
        const reply = await to(server, method, name, other);
        assert.equal(reply.status, 404, `${method} ${name} by another key`);
        assert.equal(reply.json().error.code, 'cache_entry_not_found');
    }
    assert.equal((await to(server, 'POST', 'two', own, { messages: 3 })).json().error.param, 'messages');
    assert.equal((await to(server, 'POST', 'two', own, {})).status, 400);
    assert.equal((await to(server, 'GET', 'two')).status, 404);
    const talk = [user(question(40)), { role: 'assistant', content: 'Yes.' }, user('And then?')];
    const expected = await ask(server, talk, own, { cache_prompt: false });
    assert.equal(await server.stop(), 0);

    server = await start();
    for (let seed = 100; seed < 130; seed++) await ask(server, [user(question(seed))], other); // more than the folder holds
    await eventually(async () => (await status(server, own)).cache.disk.bytes > 3 << 20, true);
    const loaded = await to(server, 'POST', 'one/load');
    assert.equal(loaded.status, 200, loaded.text);
    assert.deepEqual([loaded.json().where, loaded.json().cached_tokens, loaded.json().computed_tokens], ['memory', entry.tokens, 0]);
    assert.ok((await entries(server, own)).some((one) => one.where === 'memory' && one.tokens === entry.tokens));
    const again = await ask(server, talk, own);
    assert.equal(again.text, expected.text);
    assert.ok(again.cached >= entry.tokens, `${again.cached} of ${entry.tokens}`);
    assert.equal((await ask(server, talk, other)).cached, 0);

    assert.equal((await to(server, 'POST', 'one', own, chatOf(42))).status, 200, 'the name goes to another prompt');
    assert.equal((await entries(server, own)).filter((one) => one.name === 'one').length, 1);
    const removed = await to(server, 'DELETE', 'one');
    assert.equal(removed.json().deleted, true);
    assert.equal((await to(server, 'GET', 'one')).status, 404);
    assert.equal((await ask(server, chatOf(42).messages, own)).cached, 0, 'not in memory either');

    const file = files(folder).find((name) => name.endsWith('.name')).replace('.name', '.entry');
    truncateSync(join(folder, file), 500);
    const torn = await to(server, 'POST', 'a-text/load');
    assert.equal(torn.status, 404, torn.text);
    assert.equal(torn.json().error.code, 'cache_entry_not_found');
    assert.equal((await to(server, 'GET', 'a-text')).status, 404);
    for (let seed = 60; seed < 90; seed++) { // half of the folder is for names
        const reply = await to(server, 'POST', `n${seed}`, own, chatOf(seed));
        if (reply.status !== 200) {
            assert.equal(reply.status, 507, reply.text);
            assert.equal(reply.json().error.code, 'cache_storage_failed');
            break;
        }
        assert.ok(seed < 89, 'some do not fit');
    }
    assert.ok((await ask(server, [user(question(1))], own)).text.length > 0);
    assert.equal(await server.stop(), 0);
    assert.ok(bytes(folder) <= 8 << 20);

    server = await program([]);
    for (const [method, name] of [['GET', 'one'], ['DELETE', 'one'], ['POST', 'one'], ['POST', 'one/load']]) {
        const reply = await to(server, method, name, {}, method === 'POST' ? chatOf(1) : undefined);
        assert.equal(reply.status, 400);
        assert.match(reply.json().error.message, /start the server with --cache-disk/);
    }
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

test('a folder that a newer version has written: neither used nor touched', async () => {
    const folder = join(dir, 'newer');
    const first = await program(['--cache-disk', folder]);
    await ask(first, [user(question(3))]);
    assert.equal(await first.stop(), 0);
    const names = files(folder);
    for (const name of names) {
        const file = openSync(join(folder, name), 'r+');
        writeSync(file, Buffer.from([99, 0, 0, 0]), 0, 4, 8); /* the version stands behind eight bytes */
        closeSync(file);
    }
    const second = await program(['--cache-disk', folder, '--cache-disk-mib', '64']);
    assert.match(second.err, /[1-9]\d* prompts in .*newer are of a newer version: they are neither used nor counted/);
    assert.equal((await status(second)).cache.disk.entries, 0);
    assert.equal((await ask(second, [user(question(4))])).cached, 0);
    assert.equal(await second.stop(), 0);
    for (const name of names) assert.ok(files(folder).includes(name), `${name} is still there`);
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
