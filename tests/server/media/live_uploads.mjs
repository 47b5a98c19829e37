/** Uploads over the WebSocket: chunks, acknowledgements, every error, and connections that are lost
 * at any byte. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Socket, eventually, request, runTests, startServer, test } from '../client.mjs';

const KEYS = ['first-key-of-the-test', 'second-key-of-the-test'];
const MIB = 1 << 20;
const dir = mkdtempSync(join(tmpdir(), 'parley-uploads-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const server = await startServer([...['--key', KEYS[0], '--key', KEYS[1], '--upload-dir', dir], ...['--max-upload', String(4 * MIB), '--upload-quota', String(9 * MIB)]]);
await server.ready();

const auth = (key = 0) => ({ Authorization: `Bearer ${KEYS[key]}` });
const sha256 = (data) => createHash('sha256').update(data).digest('hex');
const get = (path, key = 0, more = {}) => request(server, { path, headers: auth(key), ...more });
const remove = (id) => get(`/v1/files/${id}`, 0, { method: 'DELETE' });
const stored = async (key = 0) => (await get('/v1/status', key)).json().uploads.bytes;
const content = async (id) => (await get(`/v1/files/${id}/content`)).body;

/** Random numbers that are the same in every run. */
let state = 12345;
const draw = (n) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % n;
};
const noise = (n) => {
    const data = Buffer.alloc(n);
    for (let i = 0; i < n; i++) data[i] = draw(256);
    return data;
};

async function open(key = 0) {
    const ws = await Socket.open(server, { protocols: 'parley.v1', headers: auth(key) });
    ws.limits = (await ws.wait('session.created')).limits;
    return ws;
}

function chunk(handle, offset, data, { version = 1, kind = 1, flags = 0 } = {}) {
    const head = Buffer.alloc(16);
    head[0] = version;
    head[1] = kind;
    head.writeUInt16LE(flags, 2);
    head.writeUInt32LE(handle, 4);
    head.writeBigUInt64LE(BigInt(offset), 8);
    return Socket.frame(2, Buffer.concat([head, data]));
}

const create = async (ws, data, more = {}) => {
    ws.send({ type: 'upload.create', event_id: 'create', filename: 'video.mp4', bytes: data.length, mime_type: 'video/mp4', purpose: 'vision', ...more });
    return ws.wait((m) => m.type === 'upload.created' || m.type === 'upload.completed' || (m.type === 'error' && m.error.event_id === 'create'));
};

/** Sends data from `offset` on, in pieces of at most `size`, never more than the window ahead of
 * what is acknowledged. */
async function send(ws, upload, data, offset = 0, size = ws.limits.chunk_size) {
    let acked = offset;
    for (let at = offset; at < data.length; at += size) {
        while (at + size - acked > upload.window) {
            const ack = await ws.wait((m) => m.type === 'upload.ack' && m.upload_id === upload.id);
            assert.ok(ack && ack.received >= acked);
            acked = ack.received;
        }
        const end = Math.min(at + size, data.length);
        ws.raw.send(chunk(upload.handle, at, data.subarray(at, end), { flags: end === data.length ? 1 : 0 }));
    }
    await ws.wait((m) => m.type === 'upload.ack' && m.upload_id === upload.id && m.received === data.length);
}

const finish = async (ws, upload, more = {}) => {
    ws.send({ type: 'upload.complete', event_id: 'end', upload_id: upload.id, ...more });
    return ws.wait((m) => ['upload.completed', 'upload.failed', 'error'].includes(m.type) && (m.event_id ?? m.error?.event_id) === 'end');
};

test('a file goes up in chunks, and the same one again at once', async () => {
    const ws = await open();
    assert.deepEqual(
        [ws.limits.chunk_size, ws.limits.upload_window, ws.limits.max_upload_bytes],
        [256 * 1024, MIB, 4 * MIB],
    );
    assert.ok(ws.limits.max_uploads > 1);
    const data = noise(3 * MIB + 77);
    const { upload } = await create(ws, data, { sha256: sha256(data) });
    assert.equal(upload.status, 'pending');
    assert.equal(upload.received, 0);
    assert.ok(upload.expires_at * 1000 > Date.now());
    await send(ws, upload, data);
    const done = await finish(ws, upload, { sha256: sha256(data) });
    assert.equal(done.type, 'upload.completed');
    assert.equal(done.upload.status, 'completed');
    assert.equal(done.deduplicated, false);
    assert.ok((await content(done.file_id)).equals(data));
    const again = await create(ws, data, { sha256: sha256(data) });
    assert.equal(again.type, 'upload.completed');
    assert.equal(again.deduplicated, true);
    assert.equal(await stored(), data.length);
    // who does not say the hash sends it, but it is kept once
    const { upload: second } = await create(ws, data.subarray(0, 1000));
    await send(ws, second, data.subarray(0, 1000), 0, 100);
    const other = await finish(ws, second);
    const { upload: third } = await create(ws, data.subarray(0, 1000));
    await send(ws, third, data.subarray(0, 1000), 0, 333);
    const twin = await finish(ws, third);
    assert.equal(twin.deduplicated, true);
    assert.equal(await stored(), data.length + 1000);
    // another key knows nothing of it
    const stranger = await open(1);
    assert.equal((await create(stranger, data, { sha256: sha256(data) })).type, 'upload.created');
    stranger.destroy();
    for (const id of [done.file_id, again.file_id, other.file_id, twin.file_id]) assert.equal((await remove(id)).status, 200);
    ws.destroy();
});

test('a file that cannot be looked at is there all the same, without a preview', async () => {
    const ws = await open();
    for (const [data, media] of [[Buffer.from('\x89PNG\r\n\x1a\n....X', 'latin1'), { kind: 'image', mime_type: 'image/png' }],
        [Buffer.from('plain text'), { kind: 'other', mime_type: 'application/octet-stream' }]]) {
        const { upload } = await create(ws, data);
        await send(ws, upload, data, 0, data.length);
        const done = await finish(ws, upload);
        assert.deepEqual(done.media, media);
        assert.equal((await remove(done.file_id)).status, 200);
    }
    /* More at once than are looked at: all are there, in any order, and those that were looked at
     * say so. */
    const many = Array.from({ length: 24 }, (_, i) => Buffer.from(`\x89PNG\r\n\x1a\n....${i}`, 'latin1'));
    const uploads = [];
    for (const data of many) {
        const { upload } = await create(ws, data);
        await send(ws, upload, data, 0, data.length);
        uploads.push(upload);
    }
    for (const { id } of uploads) ws.send({ type: 'upload.complete', upload_id: id });
    for (const { id } of uploads) {
        const done = await ws.wait((m) => m.type === 'upload.completed' && m.upload.id === id);
        assert.equal(done.media.mime_type, 'image/png');
        if (done.media.width) assert.equal((await ws.wait((m) => m.type === 'media.preview' && m.file_id === done.file_id)).thumbs.length, 1);
        assert.equal((await remove(done.file_id)).status, 200);
    }
    assert.equal(ws.messages.filter((m) => m.type === 'error').length, 0);
    ws.destroy();
});

test('the image that went up is what a response sees', async () => {
    const ws = await open();
    const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n....', 'latin1'), Buffer.from('IEND....')]);
    const { upload } = await create(ws, png);
    await send(ws, upload, png, 0, 5);
    const done = await finish(ws, upload);
    assert.deepEqual(done.media, { kind: 'image', mime_type: 'image/png', width: 40, height: 30 });
    const preview = await ws.wait('media.preview');
    assert.deepEqual({ ...preview }, { type: 'media.preview', file_id: done.file_id, sampled_frames: 1, est_tokens: 14,
        thumbs: [{ t_ms: 0, width: 40, height: 30, data_uri: `data:image/jpeg;base64,${Buffer.from('thumb').toString('base64')}` }] });
    ws.send({ type: 'response.create', input: [{ role: 'user', content: [{ type: 'input_image', file_id: done.file_id }, { type: 'input_text', text: 'hi' }] }] });
    const reply = await ws.wait('response.completed');
    assert.equal(reply.response.output[0].content[0].text, '[image] You said: hi');
    await remove(done.file_id);
    ws.send({ type: 'response.create', input: [{ role: 'user', content: [{ type: 'input_image', file_id: done.file_id }] }] });
    assert.equal((await ws.wait('error')).error.code, 'file_not_found');
    ws.destroy();
});

test('several at once, mixed', async () => {
    const ws = await open();
    const files = [noise(400000), noise(300001), noise(1)];
    const uploads = [];
    for (const data of files) uploads.push((await create(ws, data)).upload);
    await Promise.all(files.map((data, i) => send(ws, uploads[i], data, 0, 40000)));
    for (const [i, data] of files.entries()) {
        const done = await finish(ws, uploads[i], { sha256: sha256(data) });
        assert.ok((await content(done.file_id)).equals(data));
        await remove(done.file_id);
    }
    ws.destroy();
});

test('every wrong step is named, and the socket stays', async () => {
    const ws = await open();
    const data = noise(1000);
    for (const [more, code, status] of [
        [{ bytes: 0 }, 'invalid_value', 400],
        [{ bytes: undefined }, 'missing_field', 400],
        [{ bytes: -5 }, 'invalid_value', 400],
        [{ bytes: 4 * MIB + 1 }, 'upload_too_large', 413],
        [{ sha256: 'zz' }, 'invalid_value', 400],
        [{ purpose: 'a b' }, 'invalid_value', 400],
    ]) {
        const reply = await create(ws, data, more);
        assert.equal(reply.type, 'error');
        assert.equal(reply.error.code, code);
        assert.equal(reply.status, status);
    }
    for (const verb of ['complete', 'cancel', 'resume']) {
        ws.send({ type: `upload.${verb}`, upload_id: 'upload_0', event_id: verb });
        const reply = await ws.wait((m) => m.error?.event_id === verb);
        assert.equal(reply.error.code, 'upload_not_found');
        assert.equal(reply.status, 404);
    }
    ws.raw.send(chunk(999, 0, data));
    ws.raw.send(chunk(999, 1000, data)); // said once
    assert.equal((await ws.wait('error')).error.code, 'upload_not_found');
    for (const bad of [chunk(1, 0, data, { version: 2 }), chunk(1, 0, data, { kind: 9 }), Socket.frame(2, 'abc'), chunk(1, 0, Buffer.alloc(0))]) {
        ws.raw.send(bad);
        assert.equal((await ws.wait('error')).error.code, 'invalid_event');
    }

    const { upload } = await create(ws, data, { sha256: sha256('other') });
    const early = await finish(ws, upload);
    assert.equal(early.error.code, 'upload_incomplete');
    ws.raw.send(chunk(upload.handle, 0, data.subarray(0, 100)));
    ws.raw.send(chunk(upload.handle, 500, data.subarray(500))); // a gap
    ws.raw.send(chunk(upload.handle, 600, data.subarray(600)));
    const gap = await ws.wait('error');
    assert.equal(gap.error.code, 'upload_offset_mismatch');
    assert.equal(gap.error.expected, 100);
    assert.equal(gap.upload_id, upload.id);
    ws.raw.send(chunk(upload.handle, 50, data.subarray(50, 200))); // partly known
    ws.raw.send(chunk(upload.handle, 0, data.subarray(0, 200))); // wholly known: acknowledged again
    assert.equal((await ws.wait((m) => m.type === 'upload.ack' && m.received === 200)).handle, upload.handle);
    await send(ws, upload, data, 200);
    const wrong = await finish(ws, upload);
    assert.equal(wrong.type, 'upload.failed');
    assert.equal(wrong.error.code, 'upload_hash_mismatch');
    assert.equal((await finish(ws, upload)).error.code, 'upload_not_found');

    const { upload: long } = await create(ws, data);
    ws.raw.send(chunk(long.handle, 900, noise(101)));
    const failed = await ws.wait('upload.failed');
    assert.equal(failed.upload_id, long.id);
    assert.equal(failed.error.code, 'upload_too_large');
    const { upload: far } = await create(ws, data);
    ws.raw.send(chunk(far.handle, 2n ** 64n - 10n, noise(20))); // wraps around
    assert.equal((await ws.wait('upload.failed')).error.code, 'upload_too_large');

    const { upload: left } = await create(ws, data);
    ws.raw.send(chunk(left.handle, 0, data.subarray(0, 100)));
    ws.send({ type: 'upload.cancel', upload_id: left.id });
    const cancelled = await ws.wait('upload.failed');
    assert.equal(cancelled.error.code, 'cancelled');
    ws.send({ type: 'ping', t: 7 });
    assert.equal((await ws.wait('pong')).t, 7);
    ws.raw.send(chunk(1, 0, Buffer.alloc(300000)));
    assert.equal(await ws.closed(), 1009);
    ws.destroy();
    await eventually(stored, 0);
});

test('the quota counts what is announced, for each key', async () => {
    assert.equal(await stored(1), 3 * MIB + 77); // set aside by the uploads of other tests
    const ws = await open();
    const first = (await create(ws, { length: 4 * MIB })).upload;
    const { upload } = await create(ws, { length: 4 * MIB });
    const full = await create(ws, { length: 4 * MIB });
    assert.equal(full.error.code, 'upload_quota_exceeded');
    assert.equal(full.status, 413);
    for (const { id } of [first, upload]) ws.send({ type: 'upload.cancel', upload_id: id });
    await ws.wait('upload.failed');
    await ws.wait('upload.failed');
    assert.equal(await stored(), 0);
    const many = [];
    for (;;) {
        const reply = await create(ws, { length: 1 });
        if (reply.type === 'error') {
            assert.equal(reply.error.code, 'too_many_uploads');
            assert.equal(reply.status, 429);
            break;
        }
        many.push(reply.upload.id);
    }
    assert.equal(many.length, ws.limits.max_uploads);
    for (const id of many) ws.send({ type: 'upload.cancel', upload_id: id });
    await eventually(stored, 0);
    ws.destroy();
});

test('a connection lost at any byte, and taken up by another', async () => {
    const data = noise(100000);
    let ws = await open();
    const { upload } = await create(ws, data, { sha256: sha256(data) });
    let received = 0;
    for (let losses = 0; received < data.length; losses++) {
        const frames = Buffer.concat(
            [...Array(30).keys()].map((i) => received + i * 500).filter((at) => at < data.length).map((at) => chunk(upload.handle, at, data.subarray(at, at + 500))),
        );
        const cut = frames.subarray(0, 1 + draw(frames.length + 1000)); // inside a frame, mostly
        await new Promise((resolve) => ws.raw.socket.write(cut, resolve));
        ws.raw.socket[losses % 2 ? 'destroy' : 'end']();
        ws = await open();
        ws.send({ type: 'upload.resume', upload_id: upload.id });
        const ack = await ws.wait('upload.ack');
        assert.equal(ack.upload_id, upload.id);
        assert.equal(ack.handle, upload.handle);
        assert.ok(ack.received >= received && ack.received <= data.length);
        received = ack.received;
        assert.ok(losses < 200);
    }
    // even the last reply may be lost
    ws.send({ type: 'upload.complete', upload_id: upload.id });
    await eventually(async () => (await get('/v1/files')).json().data.length, 1);
    ws.destroy();
    ws = await open();
    ws.send({ type: 'upload.resume', upload_id: upload.id });
    const done = await ws.wait('upload.completed');
    assert.ok((await content(done.file_id)).equals(data));
    assert.equal((await finish(ws, upload)).file_id, done.file_id);
    // a frame of the socket that lost it counts no more, and neither does another key
    const stranger = await open(1);
    stranger.send({ type: 'upload.resume', upload_id: upload.id });
    assert.equal((await stranger.wait('error')).error.code, 'upload_not_found');
    stranger.destroy();
    await remove(done.file_id);
    ws.destroy();
});

test('a strict socket takes no binary frames', async () => {
    const ws = await Socket.open(server, { headers: auth() });
    ws.send({ type: 'upload.create', filename: 'x', bytes: 1, mime_type: 'image/png' });
    ws.raw.send(chunk(1, 0, Buffer.from('x')));
    assert.equal(await ws.closed(), 1003);
    ws.destroy();
});

test('the end leaves nothing', async () => {
    const ws = await open();
    const { upload } = await create(ws, { length: 1000 });
    ws.raw.send(chunk(upload.handle, 0, noise(500)));
    assert.deepEqual(readdirSync(dir), []);
    assert.equal(await server.stop(), 0);
    assert.deepEqual(readdirSync(dir), []);
});

await runTests();
