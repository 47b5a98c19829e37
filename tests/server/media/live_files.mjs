/** Uploaded files over HTTP: forms, parts, lists, deleting, limits, who may see what, and what
 * chats do with them. */
import assert from 'node:assert/strict';
import http from 'node:http';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JSON_TYPE, eventually, metric, parseReply, post, rawSocket, request, runTests, startServer, test } from '../client.mjs';

const KEYS = ['first-key-of-the-test', 'second-key-of-the-test'];
const MIB = 1 << 20;
const dir = mkdtempSync(join(tmpdir(), 'parley-files-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const server = await startServer([
    ...['--key', KEYS[0], '--key', KEYS[1], '--upload-dir', dir],
    ...['--max-upload', String(6 * MIB), '--upload-quota', String(16 * MIB), '--max-body', String(MIB)],
]);
await server.ready();

const auth = (key = 0) => ({ Authorization: `Bearer ${KEYS[key]}` });
const sha256 = (data) => createHash('sha256').update(data).digest('hex');
const get = (path, key = 0, more = {}) => request(server, { path, headers: auth(key), ...more });
const remove = (id, key = 0) => get(`/v1/files/${id}`, key, { method: 'DELETE' });
const postJson = (path, value, key = 0) => post(server, path, value, auth(key));
const PNG = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n....', 'latin1'), Buffer.from('IEND....')]);
/** Bytes that hold every trap for a reader of forms, different for every seed. */
const noise = (n, seed = 1) => {
    const data = Buffer.alloc(n);
    for (let i = 0, x = seed; i < n; i++) {
        x = (Math.imul(x, 1103515245) + 12345) >>> 0;
        data[i] = x >>> 16;
    }
    return data;
};

const BOUNDARY = '----form-of-the-test';
const field = (head, data) =>
    Buffer.concat([Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`), Buffer.from(data), Buffer.from('\r\n')]);
const FORM_TYPE = { 'Content-Type': `multipart/form-data; boundary=${BOUNDARY}` };
const END = Buffer.from(`--${BOUNDARY}--\r\n`);
const form = (data, { name = 'a.png', file = 'file', purpose = 'vision', more = [] } = {}) =>
    Buffer.concat([
        ...(purpose ? [field('name="purpose"', purpose)] : []),
        ...more,
        field(`name="${file}"; filename="${name}"\r\nContent-Type: image/png`, data),
        END,
    ]);
const postForm = (path, body, key = 0, headers = {}) => request(server, { method: 'POST', path, headers: { ...FORM_TYPE, ...auth(key), ...headers }, body });
/** The same in chunks: its length is told by nobody. */
const postChunked = (path, body, key = 0) => new Promise((resolve, reject) => {
    const sent = http.request({ port: server.port, method: 'POST', path, headers: { ...FORM_TYPE, ...auth(key) } }, (reply) => {
        const pieces = [];
        reply.on('data', (piece) => pieces.push(piece));
        reply.on('end', () => resolve({ status: reply.statusCode, text: String(Buffer.concat(pieces)), json: () => JSON.parse(Buffer.concat(pieces)) }));
    });
    sent.on('error', reject);
    for (let i = 0; i < body.length; i += 100003) sent.write(body.subarray(i, i + 100003));
    sent.end();
});
const upload = (data, key = 0, options = {}) => postForm('/v1/files', form(data, options), key);
const usage = async () => (await get('/v1/status')).json().uploads;
const noFiles = async () => (await usage()).bytes === 0;

test('a file comes back as it went', async () => {
    const data = Buffer.concat([noise(300000), Buffer.from(`\r\n--${BOUNDARY.slice(0, 9)}\r\n\r\n--`), noise(777)]);
    const reply = await upload(data, 0, { name: 'ä "b".png' .replaceAll('"', '%22') });
    assert.equal(reply.status, 200, reply.text);
    const file = reply.json();
    assert.match(file.id, /^file_[0-9a-f]{32}$/);
    assert.equal(file.object, 'file');
    assert.equal(file.bytes, data.length);
    assert.equal(file.sha256, sha256(data));
    assert.equal(file.purpose, 'vision');
    assert.ok(file.expires_at > file.created_at);
    assert.deepEqual((await get(`/v1/files/${file.id}`)).json(), file);
    const content = await get(`/v1/files/${file.id}/content`);
    assert.ok(content.body.equals(data));
    assert.equal(content.headers['content-length'], String(data.length));
    assert.equal(content.headers['content-type'], 'application/octet-stream');
    assert.match(content.headers['content-disposition'], /^attachment; filename\*=UTF-8''%C3%A4/);
    const head = await get(`/v1/files/${file.id}/content`, 0, { method: 'HEAD' });
    assert.equal(head.headers['content-length'], String(data.length));
    assert.deepEqual((await remove(file.id)).json(), { id: file.id, object: 'file', type: 'file_deleted', deleted: true });
    assert.equal((await get(`/v1/files/${file.id}`)).status, 404);
    assert.equal((await remove(file.id)).json().error.code, 'file_not_found');
    assert.ok(await noFiles());
});

test('lists, equal contents, and files of another key', async () => {
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push((await upload(noise(1000, i), 0, { purpose: i ? 'vision' : 'user_data' })).json().id);
    const twin = (await upload(noise(1000, 1))).json();
    const foreign = (await upload(noise(1000, 1), 1)).json();
    assert.notEqual(twin.id, ids[1]);
    assert.equal((await usage()).files, 4);
    assert.equal((await usage()).bytes, 3000); // the twin took nothing, and the other key's copy is not ours
    const list = async (query = '', key = 0) => (await get(`/v1/files${query}`, key)).json();
    assert.deepEqual((await list()).data.map((f) => f.id), [...ids, twin.id].reverse());
    assert.deepEqual((await list('?order=asc')).data.map((f) => f.id), [...ids, twin.id]);
    assert.deepEqual((await list('', 1)).data.map((f) => f.id), [foreign.id]);
    assert.deepEqual((await list('?purpose=user_data')).data.map((f) => f.id), [ids[0]]);
    const first = await list('?order=asc&limit=2');
    assert.equal(first.has_more, true);
    const rest = await list(`?limit=2&after=${ids[1]}&order=asc`);
    assert.deepEqual(rest.data.map((f) => f.id), [ids[2], twin.id]);
    assert.equal(rest.has_more, false);
    for (const [query, param] of [['limit=abc', 'limit'], ['limit=0', 'limit'], ['limit=10001', 'limit'], ['limit=', 'limit'], ['limit=1%262', 'limit'], ['order=zzz', 'order'],
        [`purpose=${'x'.repeat(200)}`, 'purpose'], [`after=${foreign.id}`, 'after'], ['after=file_none', 'after']]) {
        const reply = await get(`/v1/files?${query}`);
        assert.equal(reply.status, 400, query);
        assert.deepEqual([reply.json().error.code, reply.json().error.param], ['invalid_value', param], query);
    }
    assert.equal((await list('?xlimit=1&order=desc')).data.length, 4);
    for (const path of [`/v1/files/${ids[0]}`, `/v1/files/${ids[0]}/content`]) assert.equal((await get(path, 1)).status, 404);
    assert.equal((await remove(ids[0], 1)).status, 404);
    assert.equal((await request(server, { path: '/v1/files' })).status, 401);
    await remove(ids[1]);
    assert.ok((await get(`/v1/files/${twin.id}/content`)).body.equals(noise(1000, 1)));
    for (const id of [ids[0], ids[2], twin.id]) await remove(id);
    await remove(foreign.id, 1);
    assert.ok(await noFiles());
});

test('forms that are refused leave nothing behind', async () => {
    const good = form(PNG);
    const cases = [
        [form(PNG, { file: 'other' }), 400, 'missing_field'],
        [form(PNG, { purpose: 'Not A Word' }), 400, 'invalid_value'],
        [form(PNG, { more: [field('name="file"; filename="b"', 'x')] }), 400, 'invalid_value'],
        [form(PNG, { more: [field('name="long"', 'x'.repeat(5000))] }), 400, 'invalid_value'],
        [form(PNG, { more: [field('nothing', 'x')] }), 400, 'invalid_multipart'],
        [form(PNG, { more: [field('name="expires_after[seconds]"', 'soon')] }), 400, 'invalid_value'],
        [good.subarray(0, good.length - 4), 400, 'invalid_multipart'],
        [Buffer.from('no form at all'), 400, 'invalid_multipart'],
        [Buffer.concat([Buffer.from(`--${BOUNDARY}\r\n`), Buffer.from('x: y\r\n'.repeat(3000))]), 400, 'invalid_multipart'],
        [form(noise(6 * MIB + 1)), 413, 'upload_too_large'],
    ];
    for (const [body, status, code, how] of [...cases.map((row) => [...row, postForm]), ...cases.map((row) => [...row, postChunked])]) {
        const reply = await how('/v1/files', body);
        assert.equal(reply.status, status, `${code}: ${reply.text}`);
        assert.equal(reply.json().error.code, code, reply.text);
        assert.ok(await noFiles(), code);
    }
    assert.equal((await postForm('/v1/files', good, 0, JSON_TYPE)).status, 415);
    assert.equal((await postForm('/v1/files', good, 0, { 'Content-Type': 'multipart/form-data' })).status, 415);
    assert.equal((await post(server, '/v1/files', 'x', { ...FORM_TYPE })).status, 401);
    // refused by its length, before it is sent
    const raw = rawSocket(server);
    raw.send(`POST /v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${KEYS[0]}\r\nContent-Type: ${FORM_TYPE['Content-Type']}\r\nContent-Length: 99999999999\r\n\r\n`);
    await raw.until((d) => parseReply(d) !== null);
    assert.equal(parseReply(raw.data).status, 413);
    raw.socket.destroy();
    const short = await upload(PNG, 0, { more: [field('name="expires_after[seconds]"', '1')] });
    assert.equal(short.status, 200);
    await eventually(noFiles, true); // it has expired
    assert.deepEqual(readdirSync(dir), []);
});

test('a client that leaves in the middle leaves nothing', async () => {
    const body = form(noise(2 * MIB));
    for (let i = 0; i < 20; i++) {
        const raw = rawSocket(server);
        raw.send(`POST /v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${KEYS[0]}\r\nContent-Type: ${FORM_TYPE['Content-Type']}\r\nContent-Length: ${body.length}\r\n\r\n`);
        raw.send(body.subarray(0, 1 + ((i * 7919 * 13) % (body.length - 1))));
        if (i % 2) await eventually(noFiles, false);
        raw.socket.destroy();
    }
    await eventually(noFiles, true);
});

test('the quota holds for what is there and what is on its way', async () => {
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push((await upload(noise(5 * MIB, i))).json().id);
    const full = await upload(noise(2 * MIB, 9));
    assert.equal(full.status, 413);
    assert.equal(full.json().error.code, 'upload_quota_exceeded');
    assert.equal((await postChunked('/v1/files', form(noise(2 * MIB, 9)))).json().error.code, 'upload_quota_exceeded');
    assert.equal((await postJson('/v1/uploads', { filename: 'x', bytes: 2 * MIB, purpose: 'vision', mime_type: 'video/mp4' })).json().error.code, 'upload_quota_exceeded');
    await remove(ids[0]);
    const pending = (await postJson('/v1/uploads', { filename: 'x', bytes: 5 * MIB, purpose: 'vision', mime_type: 'video/mp4' })).json();
    assert.equal((await upload(noise(2 * MIB, 9))).status, 413); // set aside
    const other = await upload(noise(2 * MIB, 9), 1); // another key has room of its own
    assert.equal(other.status, 200);
    await remove(other.json().id, 1);
    assert.equal((await postJson(`/v1/uploads/${pending.id}/cancel`, {})).json().status, 'cancelled');
    const fits = await upload(noise(2 * MIB, 9));
    assert.equal(fits.status, 200);
    for (const id of [...ids.slice(1), fits.json().id]) await remove(id);
    assert.ok(await noFiles());
});

test('an upload in parts, put together in the order asked for', async () => {
    const parts = [noise(MIB + 17, 1), noise(3, 2), noise(2 * MIB, 3)];
    const whole = Buffer.concat(parts);
    const begin = async (more = {}) =>
        (await postJson('/v1/uploads', { filename: 'video.mp4', bytes: whole.length, purpose: 'vision', mime_type: 'video/mp4', ...more })).json();
    const partOf = (id, data, key = 0) => postForm(`/v1/uploads/${id}/parts`, form(data, { file: 'data', purpose: '' }), key);
    const up = await begin();
    assert.equal(up.object, 'upload');
    assert.equal(up.status, 'pending');
    const order = [2, 0, 1]; // of arrival
    const ids = [];
    await Promise.all(order.map(async (i) => (ids[i] = (await partOf(up.id, parts[i])).json().id)));
    assert.equal((await partOf(up.id, Buffer.from('more'))).json().error.code, 'upload_too_large');
    assert.equal((await partOf(up.id, PNG, 1)).json().error.code, 'upload_not_found');
    const complete = (id, partIds, more = {}, key = 0) => postJson(`/v1/uploads/${id}/complete`, { part_ids: partIds, ...more }, key);
    assert.equal((await complete(up.id, ids.slice(1))).json().error.code, 'upload_incomplete');
    assert.equal((await complete(up.id, [...ids, 'part_x'])).json().error.code, 'upload_part_not_found');
    assert.equal((await complete(up.id, 'x')).json().error.code, 'invalid_type');
    assert.equal((await complete(up.id, ids, {}, 1)).json().error.code, 'upload_not_found');
    assert.equal((await complete(up.id, ids, { sha256: sha256('other') })).json().error.code, 'upload_hash_mismatch');
    const done = (await complete(up.id, ids, { sha256: sha256(whole) })).json();
    assert.equal(done.status, 'completed');
    assert.equal(done.file.sha256, sha256(whole));
    assert.ok((await get(`/v1/files/${done.file.id}/content`)).body.equals(whole));
    assert.deepEqual((await complete(up.id, ids)).json().file, done.file); // asked again
    assert.equal((await usage()).bytes, whole.length);
    assert.equal((await partOf(up.id, PNG)).json().error.code, 'upload_not_pending');
    await remove(done.file.id);
    const left = await begin();
    await partOf(left.id, parts[0]);
    assert.equal((await postJson(`/v1/uploads/${left.id}/cancel`, {})).status, 200);
    assert.equal((await postJson(`/v1/uploads/${left.id}/cancel`, {})).status, 404);
    for (const [more, code] of [[{ bytes: 0 }, 'invalid_value'], [{ bytes: 'x' }, 'invalid_value'], [{ bytes: 7 * MIB }, 'upload_too_large'], [{ sha256: 'xy' }, 'invalid_value'], [{ bytes: null }, 'missing_field']]) {
        assert.equal((await begin(more)).error.code, code);
    }
    assert.ok(await noFiles());
});

test('chats take uploaded images by their id', async () => {
    const id = (await upload(PNG)).json().id;
    const notImage = (await upload(Buffer.from('just a text'))).json().id;
    const ask = (part, key = 0) => postJson('/v1/chat/completions', { messages: [{ role: 'user', content: [part, { type: 'text', text: 'hi' }] }] }, key);
    const respond = (part, key = 0) => postJson('/v1/responses', { input: [{ role: 'user', content: [part, { type: 'input_text', text: 'hi' }] }] }, key);
    for (const part of [
        { type: 'image_url', image_url: { url: `upload:${id}` } },
        { type: 'image_url', image_url: { file_id: id } },
        { type: 'input_image', file_id: id },
        { type: 'file', file: { file_id: id } },
        { type: 'file', file: { file_data: `data:image/png;base64,${PNG.toString('base64')}` } },
    ]) {
        const reply = await ask(part);
        assert.equal(reply.json().choices?.[0].message.content, '[image] You said: hi', reply.text);
    }
    for (const part of [{ type: 'input_image', file_id: id }, { type: 'input_file', file_id: id }, { type: 'input_image', image_url: `upload:${id}` }]) {
        assert.match((await respond(part)).text, /\[image\] You said: hi/);
    }
    for (const [part, code, param] of [
        [{ type: 'image_url', image_url: { url: 'upload:file_0' } }, 'file_not_found', 'messages[0].content[0].image_url'],
        [{ type: 'input_image', file_id: 'file_0' }, 'file_not_found', 'messages[0].content[0].file_id'],
        [{ type: 'file', file: { file_id: 'file_0' } }, 'file_not_found', 'messages[0].content[0].file.file_id'],
        [{ type: 'file', file: { file_id: notImage } }, 'unsupported_file', 'messages[0].content[0].file.file_id'],
        [{ type: 'file', file: {} }, 'unsupported_file', 'messages[0].content[0].file.file_data'],
        [{ type: 'input_image', file_id: notImage }, 'image_parse_error', 'messages[0].content[0].file_id'],
    ]) {
        const { error } = (await ask(part)).json();
        assert.equal(error.code, code);
        assert.equal(error.param, param);
    }
    assert.equal((await ask({ type: 'input_image', file_id: id }, 1)).json().error.code, 'file_not_found'); // another key
    assert.equal((await respond({ type: 'input_image', file_id: id }, 1)).json().error.code, 'file_not_found');
    assert.ok((await metric(server, 'parley_upload_bytes_total', auth())) > PNG.length);
    await remove(id);
    assert.equal((await ask({ type: 'input_image', file_id: id })).json().error.code, 'file_not_found');
    await remove(notImage);
});

test('a large file passes through little memory', async () => {
    /* AddressSanitizer would keep what was freed. */
    const small = await startServer(['--upload-dir', dir], { ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:quarantine_size_mb=1` });
    await small.ready();
    const size = 192 * MIB;
    const rss = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${small.child.pid}/status`, 'utf8'))[1]) * 1024;
    const before = rss();
    const [start, end] = [form(''), Buffer.alloc(0)];
    const tail = Buffer.concat([Buffer.from('\r\n'), END]);
    const head = start.subarray(0, start.length - tail.length);
    const raw = rawSocket(small);
    raw.send(`POST /v1/files HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: ${FORM_TYPE['Content-Type']}\r\nContent-Length: ${head.length + size + tail.length + end.length}\r\n\r\n`);
    raw.send(head);
    const piece = noise(MIB);
    for (let i = 0; i < size / MIB; i++) {
        if (!raw.send(piece)) await new Promise((resolve) => raw.socket.once('drain', resolve));
    }
    raw.send(tail);
    await raw.until((d) => parseReply(d) !== null, 60000);
    const reply = parseReply(raw.data);
    assert.equal(reply.status, 200, reply.body.toString());
    raw.socket.destroy();
    const grown = rss() - before;
    assert.ok(grown < 24 * MIB, `${grown} bytes more`);
    assert.deepEqual(readdirSync(dir), []);
    small.child.kill('SIGKILL'); // however it ends, no file stays
    await small.exited;
    assert.deepEqual(readdirSync(dir), []);
});

test('the end', async () => {
    await upload(noise(1000));
    assert.equal(await server.stop(), 0);
    assert.ok(existsSync(dir));
    assert.deepEqual(readdirSync(dir), []);
});

await runTests();
