/**
 * What a power loss leaves of the history. A server writes chats and files while torture/disk_log.c
 * notes each call on its folder; then the disk is rebuilt as it may have been at POINTS moments of
 * that: what was synced, and of the rest any part, a write in any of its sectors. A server that
 * starts there has everything that was acknowledged by then, and nothing that nobody sent.
 * PARLEY_POINTS: how many moments; PARLEY_SEED repeats a run's choices of them.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { JSON_TYPE, PROGRAM, makeRandom, request, runTests, startServer, test } from '../client.mjs';

const POINTS = Number(process.env.PARLEY_POINTS ?? 12);
const SEED = Number(process.env.PARLEY_SEED ?? Date.now() % 1e6);
const WRITES = 60; // of each client
const CLIENTS = 3;
const SECTOR = 512;
const library = join(dirname(PROGRAM), 'disk_log.so');
if (!existsSync(library)) {
    console.log('skipped: nothing can be preloaded under a sanitizer');
    process.exit(77);
}
const top = mkdtempSync(join(tmpdir(), 'parley-power-'));
process.on('exit', () => rmSync(top, { recursive: true, force: true }));
const dir = join(top, 'written');
const logFile = join(top, 'log');
mkdirSync(dir);

const random = makeRandom(SEED);

/* ---- what is written ---- */

const textOf = (client, n, version) => `client ${client} message ${n} version ${version} ${'ä"\n'.repeat((n * 37 + version * 91) % 700)}`;
const fileOf = (client, n) => Buffer.alloc(3000 + ((n * 997) % 90000), `file ${client} ${n}\n`);
const sha256 = (data) => createHash('sha256').update(data).digest('hex');
/** What was acknowledged, and how long the log was then: a moment of the disk that has it. */
const acks = [];
const sent = Array.from({ length: CLIENTS }, () => []); // the newest version of each message

async function client(server, i) {
    let revision = 0;
    for (let k = 0, n = 0; k < WRITES; k += 1) {
        if (k % 10 === 9) {
            const data = fileOf(i, k);
            const form = Buffer.concat([Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'), data, Buffer.from('\r\n--b--\r\n')]);
            const up = await request(server, { method: 'POST', path: '/v1/files', headers: { 'Content-Type': 'multipart/form-data; boundary=b' }, body: form });
            const kept = await request(server, { method: 'POST', path: '/v1/history/files', headers: JSON_TYPE, body: JSON.stringify({ file_id: up.json().id }) });
            assert.equal(kept.status, 200, kept.text);
            acks.push({ at: statSync(logFile).size, i, file: sha256(data), bytes: data.length });
            continue;
        }
        n = n < sent[i].length && random() < 0.5 ? n : sent[i].length;
        sent[i][n] = (sent[i][n] ?? -1) + 1;
        const message = { id: `m${n}`, parent: n ? `m${n - 1}` : null, role: 'user', text: textOf(i, n, sent[i][n]) };
        const reply = await request(server, { method: 'PUT', path: `/v1/history/chats/c${i}`, headers: JSON_TYPE, body: JSON.stringify({ revision, messages: [message] }) });
        assert.equal(reply.status, 200, reply.text);
        revision = reply.json().revision;
        acks.push({ at: statSync(logFile).size, i, n, version: sent[i][n] });
    }
}

/* ---- what a disk keeps ---- */

function readLog() {
    const data = readFileSync(logFile);
    const records = [];
    for (let at = 0; at < data.length;) {
        const end = data.indexOf(10, at);
        const line = data.toString('utf8', at, end);
        const [kind, inode, a, b] = line.split(' ');
        const record = { kind, inode, end: end + 1 };
        if (kind === 'W') Object.assign(record, { offset: Number(a), data: data.subarray(end + 1, end + 1 + Number(b)), end: end + 1 + Number(b) });
        else if (kind === 'C' || kind === 'D') record.path = line.slice(3 + inode.length);
        else if (kind === 'U') record.path = line.slice(2);
        else if (kind === 'R') [record.path, record.to] = line.slice(2).split('\t');
        else if (kind !== 'S') record.length = Number(a);
        records.push(record);
        at = record.end;
    }
    return records;
}

function change(content, { kind, offset, data, length }, sectors) {
    const size = kind === 'W' ? Math.max(content.length, offset + data.length) : kind === 'G' ? Math.max(content.length, length) : length;
    const out = Buffer.alloc(size);
    content.copy(out);
    for (let from = 0; kind === 'W' && from < data.length;) {
        const to = Math.min(data.length, (Math.floor((offset + from) / SECTOR) + 1) * SECTOR - offset);
        if (random() < sectors) data.copy(out, offset + from, from, to);
        from = to;
    }
    return out;
}

/** Names are kept in order (a journal does that), bytes in any. */
function nameChange(names, r) {
    if (r.kind === 'C' || r.kind === 'D') names.set(r.path, { inode: r.inode, folder: r.kind === 'D' });
    else if (r.kind === 'U') names.delete(r.path);
    else {
        names.set(r.to, names.get(r.path));
        names.delete(r.path);
    }
}

/** Writes into `to` what the first n records may have left. */
function rebuild(records, n, root, to) {
    const kept = [0, 0.3, 0.8, 1][Math.floor(random() * 4)]; // of what was not synced
    const files = new Map(); // inode: { content, waiting: records }
    const folders = new Map([[root, { path: dir, waiting: [] }]]);
    const byPath = new Map([[dir, root]]);
    const names = new Map();
    const fileAt = (inode) => files.get(inode) ?? files.set(inode, { content: Buffer.alloc(0), waiting: [] }).get(inode);
    for (const r of records.slice(0, n)) {
        if (r.kind === 'S' && folders.has(r.inode)) folders.get(r.inode).waiting.splice(0).forEach((one) => nameChange(names, one));
        else if (r.kind === 'S') {
            const file = fileAt(r.inode);
            for (const one of file.waiting.splice(0)) file.content = change(file.content, one, 1);
        } else if ('WTG'.includes(r.kind)) fileAt(r.inode).waiting.push(r);
        else {
            if (r.kind === 'C') files.set(r.inode, { content: Buffer.alloc(0), waiting: [] });
            if (r.kind === 'D') {
                folders.set(r.inode, { path: r.path, waiting: [] });
                byPath.set(r.path, r.inode);
            }
            folders.get(byPath.get(dirname(r.path))).waiting.push(r);
        }
    }
    for (const { waiting } of folders.values()) waiting.slice(0, Math.round(waiting.length * (kept === 1 ? 1 : random() * kept))).forEach((one) => nameChange(names, one));
    for (const file of files.values()) {
        for (const one of file.waiting) if (random() < kept) file.content = change(file.content, one, kept);
    }
    mkdirSync(to);
    for (const [path, { folder }] of names) if (folder) mkdirSync(to + path.slice(dir.length), { recursive: true });
    for (const [path, { inode, folder }] of names) {
        if (!folder && !path.endsWith('-shm') && existsSync(dirname(to + path.slice(dir.length)))) writeFileSync(to + path.slice(dir.length), files.get(inode).content, { mode: 0o600 });
    }
}

async function check(server, at) {
    const known = acks.filter((ack) => ack.at <= at);
    for (let i = 0; i < CLIENTS; i += 1) {
        const versions = [];
        for (const ack of known) if (ack.i === i && ack.version !== undefined) versions[ack.n] = ack.version;
        const reply = await request(server, { path: `/v1/history/chats/c${i}` });
        const messages = reply.status === 404 ? [] : reply.json().messages;
        assert.ok(messages.length >= versions.length, `client ${i}: ${messages.length} messages, ${versions.length} were acknowledged`);
        for (const [n, { id, text }] of messages.entries()) {
            assert.equal(id, `m${n}`);
            const version = Number(/version (\d+)/.exec(text)[1]);
            assert.ok(version >= (versions[n] ?? 0) && version <= sent[i][n], `client ${i}, message ${n}: version ${version}`);
            assert.equal(text, textOf(i, n, version));
        }
        for (const ack of known) {
            if (ack.i !== i || !ack.file) continue;
            const file = await request(server, { path: `/v1/history/files/${ack.file}` });
            assert.equal(file.status, 200, ack.file);
            assert.equal(sha256(file.body), ack.file);
        }
    }
}

test('what was acknowledged survives a power loss', async () => {
    const root = String(statSync(dir).ino);
    const writer = await startServer(['--history', dir], { LD_PRELOAD: library, DISK_LOG: logFile, DISK_LOG_FOLDER: dir });
    await Promise.all(sent.map((_, i) => client(writer, i)));
    assert.equal(await writer.stop(), 0);
    const records = readLog();
    assert.ok(records.some((r) => r.kind === 'S'), 'the log has the calls');
    console.log(`seed ${SEED}: ${records.length} calls, ${acks.length} acknowledged`);
    for (let k = 0; k < POINTS; k += 1) {
        // Each part of the run has its moment, and so has its end.
        const n = k === POINTS - 1 ? records.length : Math.floor(((k + random()) / POINTS) * records.length);
        const to = join(top, `disk-${k}`);
        rebuild(records, n, root, to);
        let server;
        try {
            server = await startServer(['--history', to]);
            await check(server, n ? records[n - 1].end : 0);
            assert.equal(await server.stop(), 0);
        } catch (error) {
            console.log(`PARLEY_SEED=${SEED}, moment ${k}: ${n} of ${records.length} calls`);
            server?.child.kill('SIGKILL');
            throw error;
        }
        rmSync(to, { recursive: true });
    }
    console.log(`${POINTS} moments`);
});

await runTests();
