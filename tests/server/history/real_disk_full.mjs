/**
 * A full disk, against the real program: what needs room is refused with 507 and a name, chats and
 * files can be deleted all the same, that gives room back, and the server goes on. Once on a small
 * file system of its own, once where no file may grow beyond a limit (and SIGXFSZ would end a
 * program that does not heed it).
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JSON_TYPE, request, runTests, startServer, test } from '../client.mjs';

const timeout = 120_000;
const dir = mkdtempSync(join(tmpdir(), 'parley-full-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));

/** Text that the search index cannot shorten. */
function noise(n, seed) {
    let text = '';
    for (let x = seed * 7919 + 1; text.length < n; ) {
        x = (x * 48271) % 2147483647;
        text += x.toString(36) + ' ';
    }
    return text;
}

const put = (server, id, n, seed) =>
    request(server, {
        timeout, method: 'PUT', path: `/v1/history/chats/${id}`, headers: JSON_TYPE,
        body: JSON.stringify({ revision: 0, title: id, messages: [{ id: 'm', parent: null, role: 'user', text: noise(n, seed) }] }),
    });
const remove = (server, path) => request(server, { timeout, method: 'DELETE', path });
const chats = async (server) => (await request(server, { timeout, path: '/v1/history/chats?limit=100' })).json().data.map(({ id }) => id);

function upload(server, n) {
    const head = '--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n';
    const data = Buffer.alloc(n, Math.random().toString());
    return request(server, {
        timeout, method: 'POST', path: '/v1/files', headers: { 'Content-Type': 'multipart/form-data; boundary=b' },
        body: Buffer.concat([Buffer.from(head), data, Buffer.from('\r\n--b--\r\n')]),
    });
}

async function answers(server) {
    assert.equal((await request(server, { timeout, path: '/health' })).status, 200);
    const reply = await request(server, {
        timeout, method: 'POST', path: '/v1/chat/completions', headers: JSON_TYPE,
        body: JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], max_tokens: 2 }),
    });
    assert.equal(reply.status, 200);
}

/** Writes chats of n characters until there is no room; their ids. */
async function fillWithChats(server, name, n, most) {
    const kept = [];
    for (let i = 0; i < most; i++) {
        const reply = await put(server, `${name}${i}`, n, i);
        if (reply.status !== 200) {
            assert.equal(reply.status, 507, reply.text);
            assert.match(reply.json().error.code, /^history_(full|storage_failed)$/);
            assert.match(reply.json().error.message, /full|may not grow/);
            return kept;
        }
        kept.push(`${name}${i}`);
    }
    assert.fail('the disk never became full');
}

async function deleteAll(server) {
    for (const id of await chats(server)) {
        const reply = await remove(server, `/v1/history/chats/${id}`);
        assert.equal(reply.status, 200, `${id}: ${reply.text}`);
    }
    assert.deepEqual(await chats(server), []);
}

const LIMITED = ['bash', '-c', 'ulimit -f 2048; exec "$@"', 'limited'];

test('files that may not grow: refused, deleted, the server goes on', async () => {
    const server = await startServer(['serve', '--port', '0', '--history', join(dir, 'limited'), '--upload-dir', dir], {}, LIMITED);
    await server.ready();
    const big = await upload(server, 3 << 20);
    assert.equal(big.status, 507, big.text);
    assert.equal(big.json().error.code, 'upload_storage_failed');
    assert.equal((await upload(server, 1 << 20)).status, 200);
    for (const round of ['a', 'b']) {
        const kept = await fillWithChats(server, round, 20_000, 400);
        assert.ok(kept.length > 3);
        assert.deepEqual((await chats(server)).sort(), [...kept].sort());
        await deleteAll(server);
    }
    assert.equal((await put(server, 'again', 20_000, 1)).status, 200);
    await answers(server);
    assert.equal(await server.stop(), 0);
});

const MOUNTED = ['unshare', '-rm', 'bash', '-c', 'mount -t tmpfs -o size=24m,mode=700 none "$0" && exec "$@"', join(dir, 'small')];
mkdirSync(join(dir, 'small'));
const canMount = spawnSync(MOUNTED[0], [...MOUNTED.slice(1), 'true']).status === 0;

test('a full file system: refused, deleted, given back', async () => {
    if (!canMount) {
        console.log('     left out: no small file system can be mounted here (unshare -rm)');
        return;
    }
    const small = join(dir, 'small');
    const server = await startServer(['serve', '--port', '0', '--history', join(small, 'history'), '--upload-dir', small], {}, MOUNTED);
    await server.ready();
    for (const round of ['a', 'b']) {
        const kept = await fillWithChats(server, round, 400_000, 200);
        assert.ok(kept.length > 1);
        const files = [];
        for (let n = 4 << 20; n >= 4096; n >>= 1) { // and the last corner with files
            for (let reply; (reply = await upload(server, n)).status === 200; ) files.push(reply.json().id);
        }
        const refused = await upload(server, 1 << 20);
        assert.equal(refused.status, 507, refused.text);
        assert.equal(refused.json().error.code, 'upload_storage_failed');
        assert.equal((await put(server, 'more', 100_000, 99)).status, 507);
        await answers(server);
        await deleteAll(server);
        assert.equal((await put(server, 'more', 50_000, 99)).status, 200, 'what was deleted gives room');
        await deleteAll(server);
        for (const id of files) assert.equal((await remove(server, `/v1/files/${id}`)).status, 200);
    }
    const export_ = await request(server, { timeout, path: '/v1/history/export' });
    assert.equal(export_.status, 200);
    assert.equal(await server.stop(), 0);
});

test('the folder is whole afterwards', async () => {
    const server = await startServer(['serve', '--port', '0', '--history', join(dir, 'limited')]);
    await server.ready();
    assert.deepEqual(await chats(server), ['again']);
    assert.equal(await server.stop(), 0);
});

await runTests();
