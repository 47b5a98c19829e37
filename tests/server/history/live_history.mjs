/** Kept chats over HTTP: writing with revisions, lists, search, files, export and import, keys,
 * notices, a full history. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JSON_TYPE, Socket, post, request, runTests, startServer, test } from '../client.mjs';

const KEYS = ['first-key-of-the-test', 'second-key-of-the-test'];
const dir = mkdtempSync(join(tmpdir(), 'parley-history-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const options = ['--key', KEYS[0], '--key', KEYS[1], '--history', join(dir, 'chats')];
let server = await startServer(options);
await server.ready();

const auth = (key = 0) => ({ Authorization: `Bearer ${KEYS[key]}` });
const call = (method, path, value, key = 0, headers = {}) =>
    request(server, {
        method, path: `/v1/history${path}`, headers: { ...(value ? JSON_TYPE : {}), ...auth(key), ...headers },
        body: value && JSON.stringify(value),
    });
const get = (path, key) => call('GET', path, undefined, key);
const put = (id, value, key) => call('PUT', `/chats/${id}`, value, key);
const message = (id, text, parent = null, more = {}) => ({ id, parent, role: parent ? 'assistant' : 'user', text, ...more });
const chat = (title, ...messages) => ({ revision: 0, title, head: messages.at(-1)?.id, messages });

/** Sends a file to the history; resolves with its hash. */
async function keep(data, key = 0) {
    const form = Buffer.concat([
        Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n'), data, Buffer.from('\r\n--b--\r\n'),
    ]);
    const file = await request(server, {
        method: 'POST', path: '/v1/files', headers: { ...auth(key), 'Content-Type': 'multipart/form-data; boundary=b' }, body: form,
    });
    const kept = await call('POST', '/files', { file_id: file.json().id }, key);
    assert.equal(kept.status, 200, kept.text);
    assert.equal(kept.json().sha256, createHash('sha256').update(data).digest('hex'));
    return kept.json().sha256;
}

test('a chat comes back as it went, whole or in part', async () => {
    const given = {
        ...chat('Sheep 🐑', message('m_1', 'line\n"two"\u2028'), message('m_2', 'an answer', 'm_1', { status: 'done', timings: { x: 1.25e-7 } })),
        created: 1111, updated: 2222, options: { temperature: 0.5 },
    };
    const made = await put('c_1', given);
    assert.equal(made.status, 200, made.text);
    const first = made.json().revision;
    const kept = (await get('/chats/c_1')).json();
    for (const name of ['title', 'created', 'updated', 'head', 'options', 'messages']) assert.deepEqual(kept[name], given[name], name);
    assert.equal(kept.revision, first);
    const second = (await put('c_1', { revision: first, messages: [message('m_3', 'another', 'm_1')] })).json().revision;
    const newer = (await get(`/chats/c_1?since=${first}`)).json();
    assert.deepEqual(newer.messages.map(({ id }) => id), ['m_3']);
    assert.equal(newer.revision, second);
    assert.equal((await get('/chats/c_1')).json().messages.length, 3);
    const head = await call('HEAD', '/chats/c_1');
    assert.equal(head.status, 200);
});

test('the list says where a chat stands, where its options say it as an object', async () => {
    const place = { folder: 'Ünder "work"', pinned: true };
    await put('c_place', { ...chat('placed', message('a', 'x')), options: { temperature: 1, place } });
    await put('c_word', { ...chat('no place', message('a', 'x')), options: { place: 'somewhere' } });
    const listed = (await get('/chats')).json().data;
    assert.deepEqual(listed.find(({ id }) => id === 'c_place').place, place);
    assert.equal('place' in listed.find(({ id }) => id === 'c_word'), false);
    assert.deepEqual((await get('/chats/c_place')).json().options, { temperature: 1, place });
    for (const id of ['c_place', 'c_word']) await call('DELETE', `/chats/${id}`);
});

test('two devices do not overwrite each other', async () => {
    const { revision } = (await put('c_two', chat('two', message('a', 'x')))).json();
    const replies = await Promise.all(['left', 'right'].map((title) => put('c_two', { revision, title })));
    assert.deepEqual(replies.map((reply) => reply.status).sort(), [200, 409]);
    const { error } = replies.find((reply) => reply.status === 409).json();
    assert.equal(error.code, 'revision_conflict');
    assert.equal(error.revision, (await get('/chats/c_two')).json().revision);
    assert.equal((await put('c_two', { revision: error.revision, title: 'both' })).status, 200);
    assert.equal((await put('c_two', { revision: 0 })).status, 409);
    assert.equal((await put('c_none', { revision: 5 })).json().error.code, 'chat_not_found');
});

test('a deletion yields to what was written since', async () => {
    const { revision } = (await put('c_gone', chat('gone', message('a', 'x')))).json();
    const later = (await put('c_gone', { revision, messages: [message('b', 'written elsewhere', 'a')] })).json().revision;
    const refused = await call('DELETE', `/chats/c_gone?revision=${revision}`);
    assert.equal(refused.status, 409, refused.text);
    assert.equal(refused.json().error.code, 'revision_conflict');
    assert.equal(refused.json().error.revision, later);
    assert.equal((await get('/chats/c_gone')).json().messages.length, 2);
    assert.equal((await call('DELETE', '/chats/c_gone?revision=x')).json().error.param, 'revision');
    assert.equal((await call('DELETE', `/chats/c_gone?revision=${later}`)).status, 200);
    assert.equal((await get('/chats/c_gone')).status, 404);
});

test('lists in pages, the latest first; search; deleting', async () => {
    for (let i = 0; i < 5; i += 1) await put(`c_p${i}`, { ...chat(`page ${i}`, message('a', `wool number ${i}`)), updated: 4e12 + i }, 1);
    const seen = [];
    for (let after = ''; after !== null; ) {
        const page = (await get(`/chats?limit=2${after && `&after=${after}`}`, 1)).json();
        seen.push(...page.data.map(({ id }) => id));
        after = page.next;
    }
    assert.deepEqual(seen, ['c_p4', 'c_p3', 'c_p2', 'c_p1', 'c_p0']);
    const search = async (query) => (await call('POST', '/search', { query }, 1)).json().data.map(({ id }) => id);
    assert.deepEqual(await search('WOOL 3'), ['c_p3']);
    assert.deepEqual(await search('umber page'), seen);
    assert.deepEqual(await search('"; DROP TABLE chats'), []);
    assert.deepEqual((await call('DELETE', '/chats/c_p3', undefined, 1)).json(), { id: 'c_p3', object: 'chat', deleted: true });
    assert.equal((await get('/chats/c_p3', 1)).status, 404);
    assert.deepEqual(await search('number 3'), []);
    for (const path of ['/chats?limit=0', '/chats?limit=x', '/chats?limit=501', '/chats?after=7', '/chats/c_1?since=-1']) {
        assert.equal((await get(path)).status, 400, path);
    }
});

test('each key sees its own chats and files alone', async () => {
    const hash = await keep(Buffer.from('secret image'));
    await put('c_mine', chat('mine', message('a', 'hidden words', null, { attachments: [{ id: 'x', sha256: hash }] })));
    assert.equal((await get('/chats/c_mine', 1)).status, 404);
    assert.equal((await get(`/files/${hash}`, 1)).status, 404);
    assert.equal((await call('DELETE', '/chats/c_mine', undefined, 1)).status, 404);
    assert.deepEqual((await call('POST', '/search', { query: 'hidden' }, 1)).json().data, []);
    assert.ok(!(await get('/export', 1)).text.includes('hidden'));
    assert.equal((await get('/chats', 7)).status, 401);
});

test('attached files', async () => {
    const data = Buffer.from(Array.from({ length: 100000 }, (_, i) => (i * i) & 255));
    const hash = await keep(data);
    const attachments = [{ id: 'x', kind: 'image', mime: 'image/png', sha256: hash }, { id: 'y', missing: true }];
    assert.equal((await put('c_f', chat('f', message('a', 'look', null, { attachments })))).status, 200);
    assert.deepEqual((await get('/chats/c_f')).json().messages[0].attachments, attachments);
    const file = await get(`/files/${hash}`);
    assert.ok(file.body.equals(data));
    assert.equal(file.headers['content-type'], 'application/octet-stream');
    assert.match(file.headers['content-disposition'], /^attachment/);
    const unknown = [{ sha256: '0'.repeat(64) }];
    const refused = await put('c_g', chat('g', message('a', '', null, { attachments: unknown })));
    assert.equal(refused.json().error.code, 'file_not_found');
    assert.equal((await get('/chats/c_g')).status, 404);
    assert.equal((await call('POST', '/files', { file_id: 'file_none' })).json().error.code, 'file_not_found');
    assert.equal((await call('POST', '/files', {})).json().error.param, 'file_id');
});

test('export, and import of it for another key', async () => {
    const all = (await get('/export')).json();
    assert.equal(all.format, 'parley-chats');
    const list = (await get('/chats')).json().data;
    assert.deepEqual(all.chats.map(({ id }) => id), list.map(({ id }) => id));
    const before = (await get('/chats', 1)).json().data.length;
    const reply = await call('POST', '/import', all, 1);
    assert.deepEqual(reply.json(), { object: 'history.import', chats: list.length });
    const copies = (await get('/chats', 1)).json().data;
    assert.equal(copies.length, before + list.length);
    const copy = copies.find(({ title }) => title === 'f');
    const messages = async (id, key) => (await get(`/chats/${id}`, key)).json().messages;
    assert.deepEqual(await messages(copy.id, 1), await messages('c_f', 0));
    const { sha256 } = (await messages(copy.id, 1))[0].attachments[0];
    assert.equal((await get(`/files/${sha256}`, 1)).body.length, 100000);
    assert.equal((await call('POST', '/import', { format: 'x' })).status, 400);
});

test('open pages of the key hear of every change', async () => {
    const open = (key) => Socket.open(server, { protocols: 'parley.v1', headers: auth(key) });
    const [mine, theirs] = [await open(0), await open(1)];
    assert.equal((await mine.wait('session.created')).capabilities.history, true);
    const { revision } = (await put('c_heard', chat('heard'))).json();
    const heard = await mine.wait('history.changed');
    assert.deepEqual(heard, { type: 'history.changed', id: 'c_heard', revision, deleted: false });
    await call('DELETE', '/chats/c_heard');
    assert.equal((await mine.wait((m) => m.type === 'history.changed' && m.deleted)).id, 'c_heard');
    await put('c_theirs', chat('theirs'), 1);
    assert.equal((await theirs.wait('history.changed')).id, 'c_theirs');
    mine.destroy();
    theirs.destroy();
});

test('the guards stand before the history too', async () => {
    const evil = { Origin: 'http://evil.example', ...auth() };
    for (const [method, path] of [['GET', '/chats'], ['PUT', '/chats/c_1'], ['DELETE', '/chats/c_1'], ['POST', '/import']]) {
        assert.equal((await request(server, { method, path: `/v1/history${path}`, headers: { ...evil, ...JSON_TYPE }, body: method[0] === 'P' ? '{}' : undefined })).status, 403, method);
    }
    assert.equal((await request(server, { path: '/v1/history/chats', headers: { Host: 'evil.example', ...auth() } })).status, 421);
    assert.equal((await request(server, { path: '/v1/history/chats' })).status, 401);
    const plain = { ...auth(), 'Content-Type': 'text/plain' };
    assert.equal((await request(server, { method: 'PUT', path: '/v1/history/chats/x', headers: plain, body: '{}' })).status, 415);
    assert.equal((await call('PATCH', '/chats/c_1', {})).status, 405);
    assert.equal((await request(server, { method: 'PUT', path: '/v1/history/chats/x', headers: { ...auth(), ...JSON_TYPE }, body: '{' })).json().error.code, 'invalid_json');
    assert.equal((await put('a.b', { revision: 0 })).status, 400);
    assert.equal((await get(`/files/..%2f..%2flock`)).status, 404);
});

test('everything is there after a restart; a second server is told the folder is taken', async () => {
    const before = (await get('/export')).text;
    await assert.rejects(startServer(options), /another Parley keeps its history/);
    assert.equal(await server.stop(), 0);
    server = await startServer(options);
    assert.equal((await get('/export')).text, before);
});

test('a full history: 507, nothing lost, and room after deleting', async () => {
    const small = await startServer(['--history', join(dir, 'small'), '--history-quota', String(1 << 20)]);
    const write = (n, revision, text) =>
        request(small, {
            method: 'PUT', path: '/v1/history/chats/c', headers: JSON_TYPE,
            body: JSON.stringify({ revision, messages: [{ id: `m${n}`, role: 'user', text }] }),
        });
    let revision = 0;
    let n = 0;
    let reply;
    for (; ; n += 1) {
        reply = await write(n, revision, Array.from({ length: 5000 }, (_, i) => ((i * i + n) % 7919).toString(36)).join(' '));
        if (reply.status !== 200) break;
        revision = reply.json().revision;
    }
    assert.equal(reply.status, 507);
    assert.equal(reply.json().error.code, 'history_full');
    assert.match(reply.json().error.message, /delete chats/);
    const kept = (await request(small, { path: '/v1/history/chats/c' })).json();
    assert.equal(kept.messages.length, n);
    assert.equal(kept.revision, revision);
    assert.equal((await request(small, { method: 'DELETE', path: '/v1/history/chats/c' })).status, 200);
    assert.equal((await write(0, 0, 'again')).status, 200);
    await small.stop();
});

test('without --history the server says so', async () => {
    const plain = await startServer([]);
    await plain.ready();
    assert.deepEqual((await request(plain, { path: '/v1/history' })).json(), { object: 'history', enabled: false });
    assert.equal((await request(plain, { path: '/v1/history/chats' })).json().error.code, 'history_off');
    assert.equal((await post(plain, '/v1/history/search', { query: 'x' })).status, 404);
    assert.equal((await request(plain, { path: '/props' })).json().history, false);
    await plain.stop();
    assert.equal((await request(server, { path: '/props', headers: auth() })).json().history, true);
    const info = (await get('')).json();
    assert.ok(info.chats === 4 && info.bytes > 100000 && info.quota > 1e9, JSON.stringify(info));
});

test('the server ends cleanly', async () => {
    assert.equal(await server.stop(), 0);
});

await runTests();
