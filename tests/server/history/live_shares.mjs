/** Links that show a kept chat to who has no key: what they show and what they do not, who may make and
 * take them back, and that nothing else comes within reach. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JSON_TYPE, request, runTests, startServer, test } from '../client.mjs';

const KEYS = ['first-key-of-the-test', 'second-key-of-the-test'];
const dir = mkdtempSync(join(tmpdir(), 'parley-shares-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const options = ['--key', KEYS[0], '--key', KEYS[1], '--history', join(dir, 'chats')];
let server = await startServer(options);
await server.ready();

const auth = (key) => ({ Authorization: `Bearer ${KEYS[key]}` });
/** key -1: none. */
const call = (method, path, value, key = 0) =>
    request(server, { method, path, headers: { ...(value ? JSON_TYPE : {}), ...(key < 0 ? {} : auth(key)) }, body: value && JSON.stringify(value) });
const put = (id, value, key) => call('PUT', `/v1/history/chats/${id}`, value, key);
const share = (value, key) => call('POST', '/v1/history/shares', value, key);
const look = (token, rest = '') => call('GET', `/v1/shared/${token}${rest}`, undefined, -1);
const message = (id, text, parent = null, more = {}) => ({ id, parent, role: parent ? 'assistant' : 'user', text, ...more });
const missing = async (reply) => {
    assert.equal(reply.status, 404, reply.text);
    assert.equal(reply.json().error.code, 'share_not_found');
};

async function keep(text, key = 0) {
    const form = `--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n${text}\r\n--b--\r\n`;
    const file = await request(server, { method: 'POST', path: '/v1/files', headers: { ...auth(key), 'Content-Type': 'multipart/form-data; boundary=b' }, body: form });
    const kept = await call('POST', '/v1/history/files', { file_id: file.json().id }, key);
    assert.equal(kept.json().sha256, createHash('sha256').update(text).digest('hex'));
    return kept.json().sha256;
}

const shown = await keep('the shown image');
const hidden = await keep('the image of another branch');
const foreign = await keep('the image of another key', 1);
const image = (sha256, more) => ({ id: 'a', kind: 'image', name: 'a.png', mime: 'image/png', width: 2, height: 3, bytes: 15, sha256, ...more });
const made = await put('c_1', {
    revision: 0, title: 'Sheep 🐑', head: 'm_2', options: { systemPrompt: 'a secret of the settings' },
    messages: [
        message('m_1', 'How many?', null, { status: 'done', created: 5, attachments: [image(shown, { note: 'a secret note' })] }),
        message('m_2', 'Two.', 'm_1', { status: 'done', model: 'qwen', reasoning: 'a secret thought', responseId: 'resp_secret', tools: [{ name: 'secret_tool' }], sources: 'secret' }),
        message('m_3', 'a secret of the other branch', null, { attachments: [image(hidden)] }),
    ],
});
assert.equal(made.status, 200, made.text);
await put('c_2', { revision: 0, title: 'secret chat', head: 'x', messages: [message('x', 'a secret')] });
await put('c_3', { revision: 0, title: 'of another key', head: 'x', messages: [message('x', 'y', null, { attachments: [image(foreign)] })] }, 1);

test('a link shows its branch to who has no key, with its files, and no more', async () => {
    const reply = await share({ chat: 'c_1', head: 'm_2' });
    assert.equal(reply.status, 200, reply.text);
    const { token, chat, head, title, expires, object } = reply.json();
    assert.match(token, /^[0-9a-f]{32}$/);
    assert.deepEqual([object, chat, head, title, expires], ['share', 'c_1', 'm_2', 'Sheep 🐑', null]);
    const seen = await look(token);
    assert.equal(seen.status, 200, seen.text);
    assert.match(seen.headers['cache-control'], /no-store/);
    assert.match(seen.headers['x-robots-tag'], /noindex/);
    assert.equal(seen.headers['referrer-policy'], 'no-referrer');
    assert.doesNotMatch(seen.text, /secret|c_1|revision|options/);
    const { messages, ...rest } = seen.json();
    assert.deepEqual({ title: rest.title, expires: rest.expires, object: rest.object }, { title: 'Sheep 🐑', expires: null, object: 'shared.chat' });
    assert.deepEqual(messages, [
        { text: 'How many?', id: 'm_1', role: 'user', status: 'done', created: 5, attachments: [{ kind: 'image', name: 'a.png', mime: 'image/png', width: 2, height: 3, bytes: 15, sha256: shown }] },
        { text: 'Two.', id: 'm_2', parent: 'm_1', role: 'assistant', status: 'done', model: 'qwen' },
    ]);
    const file = await look(token, `/files/${shown}`);
    assert.equal(file.text, 'the shown image');
    assert.match(file.headers['content-disposition'], /^attachment/);
    assert.equal(file.headers['content-type'], 'application/octet-stream');
    assert.match(file.headers['x-robots-tag'], /noindex/);
    for (const other of [hidden, foreign, 'x', '0'.repeat(64)]) await missing(await look(token, `/files/${other}`));
    assert.equal((await call('HEAD', `/v1/shared/${token}`, undefined, -1)).status, 200);
});

test('with a link alone nothing else is reached, by no path', async () => {
    const { token } = (await share({ chat: 'c_1' })).json();
    for (const path of ['/v1/history/shares', '/v1/history/chats', '/v1/history/chats/c_1', '/v1/history/chats/c_2', `/v1/history/files/${shown}`, '/v1/history/export', `/v1/history/shares/${token}`]) {
        assert.ok([401, 405].includes((await call('GET', path, undefined, -1)).status), path);
    }
    assert.equal((await call('DELETE', `/v1/history/shares/${token}`, undefined, -1)).status, 401);
    assert.equal((await call('POST', '/v1/history/shares', { chat: 'c_1' }, -1)).status, 401);
    const asKey = await request(server, { method: 'GET', path: '/v1/history/chats', headers: { Authorization: `Bearer ${token}` } });
    assert.equal(asKey.status, 401);
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) assert.equal((await call(method, `/v1/shared/${token}`, method === 'DELETE' ? undefined : {}, -1)).status, 405, method);
    const tricks = ['', 'x', token.slice(1), `${token}0`, token.toUpperCase() === token ? 'y' : token.toUpperCase(), `${token}%00`, `${token}'--`, '%25', '*', `..%2fhistory%2fchats`, '../history/chats', `${token}/../../history/chats`, `${token}/files/..%2f..`, `${token}/files/`, `${token}/files/${shown}/x`, `x/files/${shown}`, `/files/${shown}`];
    for (const trick of tricks) {
        const reply = await look(trick);
        assert.ok([400, 401, 404].includes(reply.status), `${trick}: ${reply.status}`);
        assert.doesNotMatch(reply.text, /Sheep|Two\.|secret chat/);
    }
    // A chat of its own: a key sees and takes back its own links alone, and shares its own chats.
    assert.equal((await share({ chat: 'c_1' }, 1)).json().error.code, 'chat_not_found');
    await missing(await call('DELETE', `/v1/history/shares/${token}`, undefined, 1));
    assert.deepEqual((await call('GET', '/v1/history/shares', undefined, 1)).json().data, []);
    assert.equal((await look(token)).status, 200);
});

test('what is written later is not shown; what changes or is deleted is', async () => {
    const { token } = (await share({ chat: 'c_1', head: 'm_2' })).json();
    const { revision } = (await call('GET', '/v1/history/chats/c_1')).json();
    await put('c_1', { revision, title: 'New name', head: 'm_4', messages: [message('m_4', 'later', 'm_2'), message('m_1', '', null, { erased: true })] });
    const { title, messages } = (await look(token)).json();
    assert.equal(title, 'New name');
    assert.deepEqual(messages.map(({ id, text }) => [id, text]), [['m_1', ''], ['m_2', 'Two.']]);
    await missing(await look(token, `/files/${shown}`)); // it went with its message
});

test('taken back, expired, with its chat deleted: it is gone', async () => {
    const [one, two, three] = await Promise.all([share({ chat: 'c_1' }), share({ chat: 'c_1', expires_in: 1 }), share({ chat: 'c_2', expires_in: 86400 })].map(async (reply) => (await reply).json()));
    assert.ok(three.expires > Date.now() + 80_000_000);
    assert.ok((await call('GET', '/v1/history/shares')).json().data.some(({ token }) => token === one.token));
    assert.deepEqual((await call('DELETE', `/v1/history/shares/${one.token}`)).json(), { token: one.token, object: 'share', deleted: true });
    await missing(await look(one.token));
    await missing(await call('DELETE', `/v1/history/shares/${one.token}`));
    while ((await look(two.token)).status === 200) await new Promise((resolve) => setTimeout(resolve, 50));
    assert.ok(Date.now() >= two.expires);
    assert.ok(!(await call('GET', '/v1/history/shares')).json().data.some(({ token }) => token === two.token));
    await call('DELETE', '/v1/history/chats/c_2');
    await missing(await look(three.token));
});

test('it outlives the server; a bad request is named', async () => {
    const { token } = (await share({ chat: 'c_1' })).json();
    await server.stop();
    server = await startServer(options);
    await server.ready();
    assert.equal((await look(token)).json().title, 'New name');
    for (const [body, param] of [[{ chat: 'c_1', expires_in: 0 }, 'expires_in'], [{ chat: 'c_1', expires_in: 1e9 }, 'expires_in'], [{ chat: 'c_1', expires_in: 'x' }, 'expires_in'], [{ chat: 'c_1', head: 'nowhere' }, 'head']]) {
        const reply = await share(body);
        assert.equal(reply.status, 400, reply.text);
        assert.equal(reply.json().error.param, param);
    }
    for (const body of [{}, [], { chat: 7 }, { chat: 'none' }]) assert.equal((await share(body)).status, 404);
});

test('a key may have so many links', async () => {
    for (let i = 0; i < 1000; i += 40) {
        const replies = await Promise.all(Array.from({ length: 40 }, () => share({ chat: 'c_3' }, 1)));
        assert.ok(replies.every(({ status }) => status === 200));
    }
    assert.equal((await share({ chat: 'c_3' }, 1)).json().error.code, 'too_many_shares');
    assert.equal((await call('GET', '/v1/history/shares', undefined, 1)).json().data.length, 1000);
});

test('without --history there are none; the server ends cleanly', async () => {
    const off = await startServer(['--key', KEYS[0]]);
    await off.ready();
    assert.equal((await request(off, { method: 'GET', path: `/v1/shared/${'0'.repeat(32)}` })).json().error.code, 'history_off');
    assert.equal(await off.stop(), 0);
    assert.equal(await server.stop(), 0);
});

await runTests();
