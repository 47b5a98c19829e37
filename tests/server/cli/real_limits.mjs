/** Every limit that is an option, on the program that people run: what is at the limit passes, what is beyond it gets
 * its answer. The option is turned into bytes and seconds once, and a wrong factor there shows only here. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Socket, chat, eventually, metric, parseReply, post, rawSocket, request, runTests, startServer, test } from '../client.mjs';

const KIB = 1 << 10, MIB = 1 << 20;
const sample = (name) => readFileSync(new URL(`../../../assets/samples/${name}`, import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'parley-limits-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

async function withServer(args, run) {
    const server = await startServer(['--port', '0', ...args]);
    await server.ready();
    await run(server);
    assert.equal(await server.stop(), 0);
}

const code = (reply) => reply.json().error?.code;

/** A body of exactly n bytes that is no JSON: who reads it says 400. */
const junk = (server, n) => post(server, '/v1/chat/completions', Buffer.alloc(n, '['));

function form(bytes) {
    const edge = 'edge';
    const head = `--${edge}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n` +
        `--${edge}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n`;
    return {
        headers: { 'Content-Type': `multipart/form-data; boundary=${edge}` },
        body: Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n--${edge}--\r\n`)]),
    };
}
const upload = (server, n) => request(server, { method: 'POST', path: '/v1/files', ...form(Buffer.alloc(n, n % 251)) });

test('bodies, messages, heads and uploads', () => withServer(
    ['--max-body', '1', '--max-ws-message', '1', '--max-header', '2', '--max-upload', '1', '--upload-quota', '2', '--upload-dir', folder,
        '--upload-expire', '7'],
    async (server) => {
        assert.equal((await junk(server, MIB)).status, 400);
        const large = await junk(server, MIB + 1);
        assert.equal(large.status, 413);
        assert.equal(code(large), 'body_too_large');

        const ws = await Socket.open(server);
        ws.send(' '.repeat(MIB - 10) + '{}');
        assert.ok(await ws.wait('error'));
        ws.send(' '.repeat(MIB) + '{}');
        assert.equal(await ws.closed(), 1009);

        const withCookie = (n) => request(server, { path: '/health', headers: { Cookie: 'x'.repeat(n) } });
        assert.equal((await withCookie(2 * KIB - 200)).status, 200);
        assert.equal((await withCookie(2 * KIB)).status, 431);

        const first = await upload(server, MIB);
        assert.equal(first.status, 200, first.text);
        const { created_at, expires_at } = first.json();
        assert.ok(Math.abs(expires_at - created_at - 7 * 60) <= 2, first.text);
        assert.equal(code(await upload(server, MIB + 1)), 'upload_too_large');
        assert.equal((await upload(server, MIB - 1)).status, 200);
        assert.equal(code(await upload(server, 9000)), 'upload_quota_exceeded');
    }));

test('connections', () => withServer(['--max-conns', '6', '--max-conns-per-ip', '4', '--host', '0.0.0.0', '--insecure-no-key'], async (server) => {
    const head = `GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
    const open = [];
    /** Whether a connection from that address is served. */
    const served = (localAddress) => new Promise((resolve) => {
        const socket = net.connect({ port: server.port, host: '127.0.0.1', localAddress });
        open.push(socket);
        socket.on('connect', () => socket.write(head));
        socket.once('data', () => resolve(true));
        socket.once('close', () => resolve(false));
        socket.on('error', () => resolve(false));
    });
    for (let i = 0; i < 4; i++) assert.ok(await served('127.0.0.1'));
    assert.equal(await served('127.0.0.1'), false);
    for (let i = 0; i < 2; i++) assert.ok(await served('127.0.0.2'));
    assert.equal(await served('127.0.0.3'), false);
    open.forEach((socket) => socket.destroy());
}));

const image = (name) => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${sample(name).toString('base64')}` } });
const video = (name) => ({ type: 'video_url', video_url: { url: `data:video/mp4;base64,${sample(name).toString('base64')}` } });
const shown = (server, ...parts) => chat(server, [...parts, { type: 'text', text: 'What is it?' }], { max_tokens: 2 });

/** An answer that does not end by itself: the tokens that end one are forbidden. */
const ends = JSON.parse(readFileSync(new URL('../../../assets/seedling/generation_config.json', import.meta.url))).eos_token_id;
const endless = (server) =>
    chat(server, 'Tell me a story.', { max_tokens: 30000, logit_bias: Object.fromEntries(ends.map((id) => [id, -100])) });

test('images, videos and tokens', () => withServer(
    ['--max-images', '2', '--max-image-pixels', String(320 * 240), '--max-video-duration', '3', '--n-predict', '3', '--ctx-size', '512',
        '--cache-ram', '33', '--cache-disk', folder, '--cache-disk-mib', '77'],
    async (server) => {
        const small = image('color.png'); // 320 x 240
        assert.equal((await shown(server, small, small)).status, 200);
        assert.equal(code(await shown(server, small, small, small)), 'too_many_images');
        assert.equal(code(await shown(server, image('arrow.png'))), 'image_too_large'); // 300 x 300
        assert.equal(code(await shown(server, video('ball-moves.mp4'))), 'video_too_large');

        const short = (await chat(server, 'Count to twenty.')).json();
        assert.equal(short.usage.completion_tokens, 3);
        assert.equal(short.usage.total_tokens, short.usage.prompt_tokens + 3);
        assert.equal(short.choices[0].finish_reason, 'length');
        const long = await chat(server, 'one two '.repeat(400));
        assert.equal(code(long), 'context_length_exceeded');
        assert.match(long.json().error.message, /\b512\b/);

        const { cache } = (await request(server, { path: '/v1/status' })).json();
        assert.equal(cache.disk.limit, 77 * MIB);
        assert.match(server.err, /\b33 MiB of cached prompts/);
    }));

test('what a video may be', async () => {
    const frames = (reply) => reply.json().usage.prompt_tokens;
    const ball = video('ball-moves.mp4'); // 240 x 180, 4 s
    await withServer(['--max-video-duration', '4', '--max-video-pixels', String(240 * 180), '--max-video-frames', '4'], async (server) => {
        const few = await shown(server, ball);
        assert.equal(few.status, 200, few.text);
        await withServer([], async (other) => assert.ok(frames(await shown(other, ball)) > frames(few)));
    });
    await withServer(['--max-video-pixels', String(240 * 180 - 1)], async (server) => {
        assert.equal(code(await shown(server, ball)), 'video_too_large');
    });
});

test('large videos, kept chats, pings and the end', async () => {
    const args = ['--max-video-mib', '1', '--history', join(folder, 'chats'), '--history-quota', '9', '--ws-ping', '1', '--drain-timeout', '1'];
    const begun = performance.now();
    const server = await startServer(['--port', '0', ...args]);
    await server.ready();
    const start = performance.now() - begun; // how slow this machine is
    /** The sample, made n bytes long with a box that players skip. */
    const padded = (n) => {
        const clip = sample('ball-moves.mp4');
        const free = Buffer.alloc(n - clip.length);
        free.writeUInt32BE(free.length, 0);
        free.write('free', 4);
        return { type: 'video_url', video_url: { url: `data:video/mp4;base64,${Buffer.concat([clip, free]).toString('base64')}` } };
    };
    assert.equal((await shown(server, padded(MIB))).status, 200);
    assert.equal(code(await shown(server, padded(MIB + 1))), 'video_too_large');
    assert.equal((await request(server, { path: '/v1/history' })).json().quota, 9 * MIB);

    const ws = await Socket.open(server);
    assert.ok(await ws.raw.until((d) => d.includes(0x89), 9000)); // ten times as long would not be over by now
    ws.destroy();
    const running = endless(server);
    await eventually(() => metric(server, 'parley_requests_running'), 1);
    const before = performance.now();
    assert.equal(await server.stop(), 0);
    assert.ok(performance.now() - before < 8000 + 3 * start);
    assert.notEqual((await running).status, 200);
});

test('turns and times', () => withServer(
    ['--parallel', '1', '--queue', '1', '--queue-timeout', '2', '--request-timeout', '6', '--header-timeout', '1', '--body-timeout', '1',
        '--min-body-rate', '64', '--keepalive', '1', '--ctx-size', '32768', '--drain-timeout', '1'],
    async (server) => {
        const slowHead = rawSocket(server), slowBody = rawSocket(server);
        slowHead.send('GET / HTTP/1.1\r\n');
        slowBody.send('POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{');
        const running = endless(server);
        await eventually(() => metric(server, 'parley_requests_running'), 1);
        const waiting = endless(server);
        await eventually(() => metric(server, 'parley_requests_waiting'), 1);
        const refused = await endless(server);
        assert.equal(refused.status, 429);
        assert.equal(code(await waiting), 'queue_timeout');
        assert.equal(code(await running), 'request_timeout');
        // Ten times as long would not be over by now.
        assert.ok(await slowHead.untilClosed(4000));
        assert.ok(await slowBody.until((d) => parseReply(d)?.status === 408, 4000));
    }));

runTests();
