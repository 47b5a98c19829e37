/** Videos go to the server in chunks: progress, a cut connection, the same video again, a wrong
 * step. Real server and model. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Sha256 } from '../../web/js/protocol/sha256.js';
import { becomes, lastAnswer, launch, openChat, send, until } from './helpers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const program = process.env.PARLEY_BIN ?? join(root, 'build/parley');
const model = join(root, 'assets/seedling');
const skip = !existsSync(program) ? `there is no ${program}` : !existsSync(join(model, 'config.json')) ? 'there is no model' : false;
const MIB = 1 << 20;

/** A video of 8 MiB: a small one and a box behind it that no player looks at. */
const video = () => {
    const box = Buffer.alloc(8 * MIB, 'padding ');
    box.writeUInt32BE(box.length);
    box.write('free', 4);
    return Buffer.concat([readFileSync(join(root, 'assets/samples/ball-moves.mp4')), box]);
};

let browser;
let server;
let url;
let log = '';
before(async () => {
    if (skip) return;
    browser = await launch();
    server = spawn(program, ['serve', '-m', model, '--port', '0', '--temp', '0']);
    for (const stream of [server.stdout, server.stderr]) stream.on('data', (data) => (log += data));
    await until(() => (url = /http:\/\/[\d.]+:\d+\//.exec(log)?.[0]), `the server to be ready: ${log}`, 60_000);
});
after(async () => {
    if (skip) return;
    await browser.close();
    server.kill('SIGTERM');
    await new Promise((resolve) => server.on('exit', resolve));
});

/**
 * A wire to the server that breaks again and again: each WebSocket through it dies, whatever is
 * under way, after so many bytes from the page. @param {number[]} lengths
 */
async function openWire(lengths) {
    const left = [...lengths];
    const wire = createServer((client) => {
        const server = connect(Number(new URL(url).port), '127.0.0.1');
        const end = () => [client, server].forEach((one) => one.destroy());
        let room = Infinity;
        client.on('data', (data) => {
            if (left.length && /^GET .*\r\n[^]*Upgrade: websocket/i.test(data.toString('latin1', 0, 1000))) room = left.shift();
            server.write(data.subarray(0, Math.max(0, room)));
            room -= data.length;
            if (room <= 0) end();
        });
        server.on('data', (data) => client.write(data));
        for (const one of [client, server]) one.on('close', end).on('error', end);
    });
    wire.unref(); // a test that fails leaves it open
    await new Promise((resolve) => wire.listen(0, '127.0.0.1', () => resolve(undefined)));
    const { port } = /** @type {import('node:net').AddressInfo} */ (wire.address());
    return { at: `http://127.0.0.1:${port}/`, left, close: () => wire.close() };
}

/** A chat whose sockets count the bytes of chunks, and of which one is cut after `cut` of them. */
async function openCounting(cut = Infinity, at = url) {
    const chat = await openChat(browser, at);
    await chat.page.locator('.dot.good').waitFor();
    await chat.page.evaluate((limit) => {
        const plain = WebSocket.prototype.send;
        window.sent = { bytes: 0, cuts: 0 };
        WebSocket.prototype.send = function (data) {
            plain.call(this, data);
            if (typeof data === 'string') return;
            window.sent.bytes += data.byteLength;
            if (window.sent.bytes <= limit || window.sent.cuts) return;
            window.sent.cuts += 1;
            this.close();
        };
    }, cut);
    const add = (data, name = 'ball.mp4') =>
        chat.page.locator('chat-composer input[multiple]').setInputFiles({ name, mimeType: 'video/mp4', buffer: data });
    return { ...chat, add, sent: () => chat.page.evaluate(() => window.sent) };
}
const files = async () => (await (await fetch(`${url}v1/files`)).json()).data;

test('SHA-256 piece by piece', () => {
    for (const n of [0, 1, 55, 56, 63, 64, 65, 119, 120, 1000]) {
        const data = Uint8Array.from({ length: n }, (_, i) => i * 7);
        const sha = new Sha256();
        for (let i = 0; i < n; i += 37) sha.update(data.subarray(i, i + 37));
        assert.equal(sha.hex(), createHash('sha256').update(data).digest('hex'));
    }
});

test('an upload over 20 cuts at random points: nothing lost, nothing twice; the second time nothing is sent', { skip }, async () => {
    // The same numbers every time, so that a failure can be looked at.
    let seed = 7;
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    // Some in the middle of the greeting or of a chunk's head, most in a chunk, some behind
    // several.
    const wire = await openWire(Array.from({ length: 20 }, (_, i) => Math.round(i % 4 ? random() * 600_000 : 500 + random() * 1_500)));
    const { page, add, sent, done } = await openCounting(Infinity, wire.at);
    await page.evaluate(() => {
        const { connection } = document.querySelector('parley-app').chat;
        connection.addEventListener('state', () => connection.state === 'retrying' && connection.retryNow());
    });
    await add(video());
    await send(page, 'Which way does the circle move?');
    await becomes(() => lastAnswer(page), /right/);
    assert.deepEqual(wire.left, [], 'every cut was made');
    await until(async () => (await sent()).bytes > video().length);
    const [file, ...others] = await files();
    assert.deepEqual([file.bytes, file.mime_type, others.length], [video().length, 'video/mp4', 0]);
    const kept = Buffer.from(await (await fetch(`${url}v1/files/${file.id}/content`)).arrayBuffer());
    assert.ok(kept.equals(video()), 'the server has the same bytes');
    await done();
    wire.close();

    const again = await openCounting();
    await again.add(video());
    await send(again.page, 'What happens in the video?');
    await becomes(() => lastAnswer(again.page), /circle/);
    await becomes(async () => (await again.sent()).bytes, 0);
    await again.done();
    const { vision_cache: cache, uploads } = await (await fetch(`${url}v1/status`)).json();
    assert.ok(cache.hits >= 1);
    assert.equal(uploads.bytes, video().length);
});

test('without a socket a video goes in parts; those that fail on the way go again', { skip }, async () => {
    const chat = await openChat(browser, url);
    await chat.context.addInitScript(() => {
        window.WebSocket = class {
            constructor() {
                throw new Error('blocked');
            }
        };
    });
    await chat.page.reload();
    // Nor is the part of the page that sends it there at once.
    await chat.page.route('**/protocol/upload.js', (route) => route.abort(), { times: 1 });
    let n = 0;
    await chat.page.route('**/parts', async (route) => {
        n += 1;
        if (n === 4) await route.fetch(); // it arrives, its reply does not
        if (n === 2 || n === 4) await route.abort();
        else await route.continue();
    });
    const other = video();
    other.write('other', other.length - 8);
    await chat.page.locator('chat-composer input[multiple]').setInputFiles({ name: 'other.mp4', mimeType: 'video/mp4', buffer: other });
    await chat.page.locator('.thumb progress').waitFor();
    await send(chat.page, 'Which way does the circle move?');
    await becomes(() => lastAnswer(chat.page), /right/);
    assert.equal(n, 6 + Math.ceil(other.length / (2 * MIB)), 'until the server has one part too many, then all of them anew');
    const file = (await files()).find((one) => one.filename === 'other.mp4');
    assert.equal(file.mime_type, 'video/mp4');
    assert.ok(Buffer.from(await (await fetch(`${url}v1/files/${file.id}/content`)).arrayBuffer()).equals(other), 'the server has the same bytes');
    assert.equal((await fetch(`${url}v1/files/${file.id}`, { method: 'DELETE' })).status, 200);
    await chat.done();
});

test('a video that is taken away again is not sent on', { skip }, async () => {
    const { page, add, done } = await openCounting(1);
    const other = Buffer.concat([video(), Buffer.from([0, 0, 0, 9, 0x66, 0x72, 0x65, 0x65, 1])]);
    await add(other);
    await page.locator('.thumb progress').waitFor();
    await page.getByRole('button', { name: 'Remove ball.mp4' }).click();
    await until(async () => (await (await fetch(`${url}v1/status`)).json()).uploads.bytes === video().length, 'the upload to be given up');
    await until(async () => (await files()).every((file) => file.bytes === video().length));
    await done();
});
