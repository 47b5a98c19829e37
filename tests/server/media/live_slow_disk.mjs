/** Uploads while the disk does not answer: the server goes on, nothing is acknowledged that is not
 * written, nothing more is read than may wait, and everything arrives when the disk is back. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Socket, chat, eventually, parseReply, post, rawSocket, request, runTests, sleep, startServer, test } from '../client.mjs';

const MIB = 1 << 20;
const KIB = 1 << 10;
const WAITING = 512 * KIB; // LIMIT_UPLOAD_WAITING
const WINDOW = MIB;
const dir = mkdtempSync(join(tmpdir(), 'parley-slow-disk-'));
const stop = join(dir, 'stop');
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const server = await startServer(['--upload-dir', dir, '--max-upload', String(200 * MIB), '--upload-quota', String(500 * MIB)], { PARLEY_TEST_DISK_STOP: stop });
await server.ready();

const sha256 = (data) => createHash('sha256').update(data).digest('hex');
const status = async () => (await request(server, { path: '/v1/status' })).json();
const reserved = async () => (await status()).memory.request_bytes;
const stopDisk = () => writeFileSync(stop, '');
const startDisk = () => rmSync(stop);
const remove = (id) => request(server, { path: `/v1/files/${id}`, method: 'DELETE' });

const BOUNDARY = 'form-of-the-test';
const form = (data, field = 'file') =>
    Buffer.concat([Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="${field}"; filename="a"\r\n\r\n`), data, Buffer.from(`\r\n--${BOUNDARY}--\r\n`)]);
const head = (path, length) =>
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\nContent-Length: ${length}\r\n\r\n`;
function begin(path, body) {
    const raw = rawSocket(server);
    raw.send(head(path, body.length));
    raw.send(body);
    raw.reply = async () => {
        assert.ok(await raw.until((d) => parseReply(d) !== null, 60000));
        const reply = parseReply(raw.data);
        raw.socket.destroy();
        return { ...reply, json: JSON.parse(reply.body.toString()) };
    };
    return raw;
}

/** A server whose loop waits for the disk answers none of these. */
async function isAlive() {
    assert.equal((await request(server, { path: '/health' })).status, 200);
    const reply = await chat(server, 'hello');
    assert.equal(reply.status, 200, reply.text);
}

function chunk(handle, offset, data) {
    const start = Buffer.alloc(16);
    start[0] = start[1] = 1;
    start.writeUInt32LE(handle, 4);
    start.writeBigUInt64LE(BigInt(offset), 8);
    return Socket.frame(2, Buffer.concat([start, data]));
}

async function open() {
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    await ws.wait('session.created');
    return ws;
}

async function create(ws, data) {
    ws.send({ type: 'upload.create', filename: 'a', bytes: data.length, purpose: 'vision', mime_type: 'video/mp4' });
    return (await ws.wait('upload.created')).upload;
}

test('a form: the server goes on and reads no more than may wait', async () => {
    const data = randomBytes(100 * MIB);
    stopDisk();
    const upload = begin('/v1/files', form(data));
    await eventually(async () => (await reserved()) > WAITING / 2, true);
    await isAlive();
    assert.ok((await reserved()) < 2 * WAITING);
    assert.ok(upload.socket.writableLength > 0); // the client waits
    assert.equal(upload.data.length, 0);
    startDisk();
    const { status: code, json } = await upload.reply();
    assert.equal(code, 200);
    assert.equal(json.bytes, data.length);
    assert.equal(json.sha256, sha256(data));
    await eventually(reserved, 0);
    await remove(json.id);
});

test('a small form is answered when it is written', async () => {
    const data = randomBytes(1000);
    stopDisk();
    const upload = begin('/v1/files', form(data));
    await eventually(async () => (await reserved()) > 0, true);
    await isAlive();
    assert.equal(upload.data.length, 0);
    startDisk();
    const { json } = await upload.reply();
    assert.equal(json.sha256, sha256(data));
    await remove(json.id);
});

test('parts, and putting them together', async () => {
    const parts = [randomBytes(5 * MIB), randomBytes(3)];
    const whole = Buffer.concat(parts);
    const up = (await post(server, '/v1/uploads', { filename: 'a', bytes: whole.length, purpose: 'vision' })).json();
    const ids = [];
    for (const part of parts) ids.push((await begin(`/v1/uploads/${up.id}/parts`, form(part, 'data')).reply()).json.id);
    stopDisk();
    const done = post(server, `/v1/uploads/${up.id}/complete`, { part_ids: ids });
    await eventually(async () => (await status()).uploads.bytes, 2 * whole.length);
    await isAlive();
    startDisk();
    assert.equal((await done).json().file.sha256, sha256(whole));
    await remove((await done).json().file.id);

    const other = (await post(server, '/v1/uploads', { filename: 'a', bytes: 5 * MIB, purpose: 'vision' })).json();
    const part = (await begin(`/v1/uploads/${other.id}/parts`, form(parts[0], 'data')).reply()).json.id;
    stopDisk();
    const ends = post(server, `/v1/uploads/${other.id}/complete`, { part_ids: [part] });
    await eventually(async () => (await status()).uploads.bytes, 10 * MIB);
    assert.equal((await post(server, `/v1/uploads/${other.id}/cancel`, {})).json().status, 'cancelled');
    assert.equal((await ends).json().error.code, 'cancelled'); // who waited for the end hears of it
    await eventually(async () => (await status()).uploads.bytes, 0);
    startDisk();
});

test('chunks are acknowledged when they are written, and not before', async () => {
    const data = randomBytes(WINDOW);
    const ws = await open();
    const up = await create(ws, data);
    stopDisk();
    for (let at = 0; at < data.length; at += 64 * KIB) ws.raw.send(chunk(up.handle, at, data.subarray(at, at + 64 * KIB)));
    await eventually(async () => (await reserved()) > WAITING / 2, true);
    await isAlive();
    // more than two of the server's ticks, in which it acknowledges what is new
    assert.equal(await ws.wait((m) => m.type === 'upload.ack' && m.received > 0, 600), null);
    assert.ok((await reserved()) < 2 * WAITING);
    // On another socket, whose client knows nothing of the first. What that one sent beside is no upload of its own any more.
    const other = await open();
    other.send({ type: 'upload.resume', upload_id: up.id });
    assert.equal((await other.wait('upload.ack')).received, 0);
    startDisk();
    assert.ok(await other.wait((m) => m.type === 'upload.ack' && m.received > 0)); // how much of it was read depends on the kernel
    other.destroy();
    ws.destroy();
    const last = await open();
    last.send({ type: 'upload.resume', upload_id: up.id });
    const { received } = await last.wait('upload.ack');
    for (let at = received; at < data.length; at += 256 * KIB) last.raw.send(chunk(up.handle, at, data.subarray(at, at + 256 * KIB)));
    last.send({ type: 'upload.complete', upload_id: up.id, sha256: sha256(data) });
    const { file_id: id } = await last.wait('upload.completed');
    assert.ok((await request(server, { path: `/v1/files/${id}/content` })).body.equals(data));
    await remove(id);
    last.destroy();
});

test('everybody who asks for the end is answered once', async () => {
    const data = randomBytes(1000);
    const ws = await open();
    const up = await create(ws, data);
    stopDisk();
    ws.raw.send(chunk(up.handle, 0, data));
    for (const id of ['a', 'b']) ws.send({ type: 'upload.complete', upload_id: up.id, event_id: id });
    ws.send({ type: 'upload.cancel', upload_id: up.id, event_id: 'c' }); // too late
    ws.send({ type: 'ping', t: 1 });
    await ws.wait('pong');
    assert.equal(ws.messages.filter((m) => m.type === 'upload.completed').length, 0);
    startDisk();
    for (const id of ['a', 'b', 'c']) assert.equal((await ws.wait((m) => m.type === 'upload.completed' && m.event_id === id)).upload.received, 1000);
    const wrong = await create(ws, data);
    stopDisk();
    ws.raw.send(chunk(wrong.handle, 0, data));
    for (const id of ['d', 'e']) ws.send({ type: 'upload.complete', upload_id: wrong.id, event_id: id, sha256: sha256('other') });
    ws.send({ type: 'ping', t: 2 });
    await ws.wait('pong');
    startDisk();
    const failed = await ws.wait('upload.failed');
    assert.equal(failed.event_id, 'd');
    assert.equal(failed.error.code, 'upload_hash_mismatch');
    assert.equal((await ws.wait((m) => m.error?.event_id === 'e')).error.code, 'upload_not_found');
    ws.destroy();
});

test('clients that leave take their bytes with them', async () => {
    const before = (await status()).uploads;
    stopDisk();
    for (let i = 0; i < 5; i++) {
        const raw = begin('/v1/files', form(Buffer.alloc(32 * MIB))); // more than the kernel keeps on its way
        await eventually(async () => (await reserved()) > WAITING / 2, true);
        raw.socket.destroy();
    }
    await isAlive();
    startDisk();
    await eventually(reserved, 0);
    assert.equal((await status()).uploads.files, before.files);
});

test('the end of the server waits for what is being written', async () => {
    const data = randomBytes(1000);
    stopDisk();
    const upload = begin('/v1/files', form(data));
    await eventually(async () => (await reserved()) > 0, true);
    const ended = server.stop();
    await sleep(200);
    startDisk();
    assert.equal((await upload.reply()).json.sha256, sha256(data));
    assert.equal(await ended, 0);
});

await runTests();
