/**
 * The server is killed (SIGKILL) again and again while four clients write chats and wait for each
 * acknowledgement. After every start each acknowledged message is there, letter by letter, and
 * nothing is torn. PARLEY_KILLS: how often.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JSON_TYPE, eventually, request, runTests, sleep, startServer, test } from '../client.mjs';

const KILLS = Number(process.env.PARLEY_KILLS ?? 8);
const CLIENTS = 4;
const timeout = 120_000; // a machine that stalls for a while is no lost reply
const dir = mkdtempSync(join(tmpdir(), 'parley-crash-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));

const textOf = (client, n, version) => `client ${client} message ${n} version ${version} ${'ä"\n'.repeat((n * 37 + version * 91) % 500)}`;

/** What a client knows: the versions of its messages that were acknowledged, and the write that was
 * not (yet). */
const clients = Array.from({ length: CLIENTS }, () => ({ revision: 0, kept: [], pending: null }));

/** One write: a new message, or an answer that has grown. False once the server is gone. */
async function write(server, i) {
    const client = clients[i];
    const n = client.kept.length && Math.random() < 0.5 ? client.kept.length - 1 : client.kept.length;
    const version = (client.kept[n] ?? -1) + 1;
    client.pending = { n, version };
    const message = { id: `m${n}`, parent: n ? `m${n - 1}` : null, role: 'user', text: textOf(i, n, version) };
    const reply = await request(server, {
        timeout, method: 'PUT', path: `/v1/history/chats/c${i}`, headers: JSON_TYPE, body: JSON.stringify({ revision: client.revision, messages: [message] }),
    });
    if (reply.status !== 200) {
        assert.equal(reply.status, 0, reply.text);
        return false;
    }
    client.revision = reply.json().revision;
    client.kept[n] = version;
    client.pending = null;
    return true;
}

/** Reads a client's chat: all that was acknowledged, and at most the one write whose reply never
 * came. */
async function check(server, i) {
    const client = clients[i];
    const reply = await request(server, { timeout, path: `/v1/history/chats/c${i}` });
    if (reply.status === 404) {
        assert.equal(client.kept.length, 0);
        return;
    }
    const chat = reply.json();
    client.revision = chat.revision;
    for (const [n, { id, text }] of chat.messages.entries()) {
        assert.equal(id, `m${n}`);
        if (client.pending?.n === n && text === textOf(i, n, client.pending.version)) client.kept[n] = client.pending.version;
        assert.equal(text, textOf(i, n, client.kept[n]), `chat ${i}, message ${n}`);
    }
    assert.equal(chat.messages.length, client.kept.length);
    client.pending = null;
}

test('what was acknowledged survives being killed', async () => {
    let n_written = 0;
    for (let kill = 0; kill <= KILLS; kill += 1) {
        const server = await startServer(['--history', dir]); // refuses a damaged database
        for (let i = 0; i < CLIENTS; i += 1) await check(server, i);
        if (kill === KILLS) {
            assert.equal(await server.stop(), 0);
            break;
        }
        const before = n_written;
        const writers = clients.map(async (_, i) => {
            while (await write(server, i)) n_written += 1;
        });
        await eventually(() => n_written > before, true, timeout);
        await sleep(Math.random() * 120);
        server.child.kill('SIGKILL');
        await Promise.all([...writers, server.exited]);
    }
    assert.ok(n_written >= KILLS, `${n_written} writes in all`);
    console.log(`${KILLS} kills, ${n_written} acknowledged writes`);
});

await runTests();
