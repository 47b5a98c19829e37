/** Clients that do not read what they asked for: each is held for a stated time, and slow but
 * honest ones are not cut. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Socket, chat, eventually, joinChat, metric, parseReply, rawSocket, request, runTests, sleep, startServer, test } from '../client.mjs';

const folder = mkdtempSync(join(tmpdir(), 'parley-unread-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const LARGE = { messages: [{ role: 'user', content: '!len=100000 !fast' }], max_tokens: 100000, logprobs: true, top_logprobs: 1 };
const FILE_BYTES = 24 << 20;

function ask(server, path, body, method = 'POST') {
    const text = body ? JSON.stringify(body) : '';
    const raw = rawSocket(server);
    raw.send(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
    return raw;
}

/** Reads the head and nothing more. */
async function stopReading(raw) {
    await raw.until((d) => d.length > 0, 60000);
    raw.socket.pause();
}

async function upload(server) {
    const data = Buffer.alloc(FILE_BYTES, 'x');
    const head = '--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n';
    const body = Buffer.concat([Buffer.from(head), data, Buffer.from('\r\n--b--\r\n')]);
    const reply = await request(server, { method: 'POST', path: '/v1/files', headers: { 'Content-Type': 'multipart/form-data; boundary=b' }, body });
    assert.equal(reply.status, 200, reply.text);
    return reply.json().id;
}

/** One of each: a stream, a whole reply, a download, a socket that shows signs of life but does not
 * read. */
async function openUnread(server, id) {
    const http = [ask(server, '/v1/chat/completions', { ...LARGE, stream: true }), ask(server, '/v1/chat/completions', LARGE), ask(server, `/v1/files/${id}/content`, null, 'GET')];
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    ws.send({ type: 'response.create', input: '!len=100000 !fast', max_output_tokens: 100000, include: ['message.output_text.logprobs'], top_logprobs: 1 });
    await Promise.all([...http, ws.raw].map(stopReading));
    const beat = setInterval(() => ws.raw.send(Socket.frame(10, 'alive')), 100);
    ws.raw.socket.on('close', () => clearInterval(beat));
    return [...http, ws.raw];
}

test('what is not read is hung up, and makes room for others', async () => {
    const server = await startServer(['--send-timeout', '2', '--max-ws-queue', '1000000000', '--event-log', '100000000', '--max-conns-per-ip', '16', '--upload-dir', folder]);
    await server.ready();
    const id = await upload(server);
    const unread = (await Promise.all([1, 2, 3].map(() => openUnread(server, id)))).flat();
    const hungUp = () => (server.err.match(/does not read what is sent to it/g) ?? []).length;
    await eventually(hungUp, 12, 120000);
    assert.equal((await chat(server, 'hi')).status, 200);
    assert.equal(await metric(server, 'parley_connections'), 1);
    for (const raw of unread) raw.socket.destroy();
    assert.equal(await server.stop(), 0);
});

test('who reads slowly, has nothing to read, or reads late but in time stays', async () => {
    const server = await startServer(['--send-timeout', '2', '--max-ws-queue', '1000000000', '--upload-dir', folder, '--send-rate', '100000']);
    await server.ready();
    const id = await upload(server);
    const slow = ask(server, `/v1/files/${id}/content`, null, 'GET'); // reads for a tenth of the time, far above the rate
    const breath = setInterval(async () => {
        slow.socket.resume();
        await sleep(40);
        slow.socket.pause();
    }, 400);
    const idle = chat(server, '!delay=2500 hi there', { stream: true }); // longer between its events than the time to read
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    assert.ok(await ws.wait('session.created'));
    await sleep(7000);
    assert.equal(slow.closed, false);
    clearInterval(breath);
    slow.socket.resume();
    assert.ok(await slow.until((d) => d.length > FILE_BYTES && parseReply(d) !== null, 60000));
    assert.equal(parseReply(slow.data).body.length, FILE_BYTES);
    assert.equal(joinChat((await idle).text).done, 1);
    ws.send({ type: 'ping', t: 1 });
    assert.ok(await ws.wait('pong'));
    assert.ok(!/does not read/.test(server.err), server.err);
    ws.destroy();
    slow.socket.destroy();
    assert.equal(await server.stop(), 0);
});

test('a drip below the rate is cut', async () => {
    const server = await startServer(['--send-timeout', '2', '--send-rate', '50000000', '--upload-dir', folder]);
    await server.ready();
    const raw = ask(server, `/v1/files/${await upload(server)}/content`, null, 'GET');
    let seen = 0;
    raw.socket.removeAllListeners('data');
    raw.socket.on('readable', () => {});
    const drip = setInterval(() => (seen += raw.socket.read(16384)?.length ?? 0), 50);
    await eventually(() => /does not read/.test(server.err), true, 60000);
    clearInterval(drip);
    assert.ok(seen > 0);
    raw.socket.destroy();
    assert.equal(await server.stop(), 0);
});

await runTests();
