/** Films go to the server in chunks: progress, a cut connection, the same film again, a wrong step. Real server and model. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Sha256 } from '../../web/js/sha256.js';
import { lastAnswer, launch, openChat, send, until } from './helpers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const program = process.env.PARLEY_BIN ?? join(root, 'build/parley');
const model = join(root, 'assets/seedling');
const skip = !existsSync(program) ? `there is no ${program}` : !existsSync(join(model, 'config.json')) ? 'there is no model' : false;
const MIB = 1 << 20;

/** A film of 3 MiB: a small one and a box behind it that no player looks at. */
const film = () => {
    const box = Buffer.alloc(3 * MIB, 'padding ');
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

/** A chat whose sockets count the bytes of chunks, and of which one is cut after `cut` of them. */
async function openCounting(cut = Infinity) {
    const chat = await openChat(browser, url);
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
        chat.page.locator('chat-composer input[type=file]').setInputFiles({ name, mimeType: 'video/mp4', buffer: data });
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

test('a film goes up in chunks, over a cut connection, and the second time not at all', { skip }, async () => {
    const { page, add, sent, done } = await openCounting(1.5 * MIB);
    await add(film());
    await send(page, 'Which way does the circle move?');
    assert.match(await lastAnswer(page), /right/);
    const way = await sent();
    assert.equal(way.cuts, 1);
    assert.ok(way.bytes >= film().length && way.bytes < film().length + 1.5 * MIB, `${way.bytes} bytes`);
    assert.ok((await files()).every((file) => file.bytes === film().length && file.mime_type === 'video/mp4'));
    await done();

    const again = await openCounting();
    await again.add(film());
    await send(again.page, 'What happens in the video?');
    assert.match(await lastAnswer(again.page), /circle/);
    assert.equal((await again.sent()).bytes, 0);
    await again.done();
    const { vision_cache: cache, uploads } = await (await fetch(`${url}v1/status`)).json();
    assert.ok(cache.hits >= 1);
    assert.equal(uploads.bytes, film().length);
});

test('a film that is taken away again is not sent on', { skip }, async () => {
    const { page, add, done } = await openCounting(1);
    const other = Buffer.concat([film(), Buffer.from([0, 0, 0, 9, 0x66, 0x72, 0x65, 0x65, 1])]);
    await add(other);
    await page.locator('.thumb progress').waitFor();
    await page.getByRole('button', { name: 'Remove ball.mp4' }).click();
    await until(async () => (await (await fetch(`${url}v1/status`)).json()).uploads.bytes === film().length, 'the upload to be given up');
    assert.ok((await files()).every((file) => file.bytes === film().length));
    await done();
});
