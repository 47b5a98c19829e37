/** Images and videos by their address through the whole program: the same prompt, cache and answer
 * as sent along; a video that is
 *  too large is cut off on its way. And what a client hears of those that it uploads. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, Socket, post, runTests, startServer, test } from '../client.mjs';

if (/\/tsan\//.test(PROGRAM)) {
    console.log('skipped: under TSan a video is not read within its limits');
    process.exit(77);
}

const root = fileURLToPath(new URL('../../../', import.meta.url));
const sample = (name) => readFileSync(join(root, 'assets', 'samples', name));
const FILES = { '/photo.jpg': sample('read-text.jpg'), '/video.mp4': sample('ball-moves.mp4') };

let sent = 0;
const origin = http.createServer((request, reply) => {
    if (request.url === '/old/video.mp4') reply.writeHead(301, { location: '/video.mp4' }).end();
    else if (FILES[request.url]) reply.end(FILES[request.url]); /* without a type */
    else if (request.url === '/text.mp4') reply.writeHead(200, { 'content-type': 'video/mp4' }).end('#EXTM3U\nfile:///etc/passwd\n');
    else {
        const more = () => {
            while (!reply.destroyed && sent < 2 ** 28 && reply.write(Buffer.alloc(65536))) sent += 65536;
        };
        reply.on('drain', more);
        more();
    }
});
await new Promise((resolve) => origin.listen(0, '127.0.0.1', resolve));
const here = `http://127.0.0.1:${origin.address().port}`;

const folder = mkdtempSync(join(tmpdir(), 'parley-remote-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const [name, data] of Object.entries(FILES)) writeFileSync(join(folder, name), data);

const server = await startServer(['serve', '-m', `${root}assets/seedling`, '--port', '0', '-t', '1', '--temp', '0', '--log-level', 'error',
    '--media-domains', 'example.org,127.0.0.1', '--media-path', folder, '--max-video-mib', '2', '--cache-ram', '0']);
await server.ready();

const ask = async (kind, url) => {
    const content = [{ type: kind, [kind]: { url } }, { type: 'text', text: 'What is it?' }];
    return post(server, '/v1/chat/completions', { messages: [{ role: 'user', content }], max_tokens: 20 });
};
const answer = async (kind, url) => {
    const reply = await ask(kind, url);
    assert.equal(reply.status, 200, reply.text);
    const { choices, usage, timings } = reply.json();
    return { text: choices[0].message.content, tokens: usage.prompt_tokens, cached: timings.n_media_cached };
};

for (const [kind, type, name] of [['image_url', 'image/jpeg', '/photo.jpg'], ['video_url', 'video/mp4', '/video.mp4']]) {
    test(`${kind}: fetched, read below the folder, sent along`, async () => {
        const first = await answer(kind, here + name);
        assert.ok(first.text.length > 0 && first.tokens > 20);
        assert.equal(first.cached, 0);
        for (const url of [here + name, `file://${folder}${name}`, `file://${name.slice(1)}`, `data:${type};base64,${FILES[name].toString('base64')}`]) {
            assert.deepEqual(await answer(kind, url), { ...first, cached: 1 }, url.slice(0, 40));
        }
    });
}

/** Uploads over a socket; what it is, and the preview. */
async function look(ws, data) {
    ws.send({ type: 'upload.create', filename: 'x', bytes: data.length, purpose: 'vision' });
    const { upload } = await ws.wait('upload.created');
    const head = Buffer.alloc(16);
    head.writeUInt8(1, 0);
    head.writeUInt8(1, 1);
    head.writeUInt32LE(upload.handle, 4);
    ws.raw.send(Socket.frame(2, Buffer.concat([head, data])));
    ws.send({ type: 'upload.complete', upload_id: upload.id });
    const done = await ws.wait('upload.completed');
    return { done, preview: await ws.wait((m) => m.type === 'media.preview' && m.file_id === done.file_id, 30000) };
}

test('what was uploaded is described and shown', async () => {
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    const image = await look(ws, FILES['/photo.jpg']);
    const { width, height } = image.done.media;
    assert.ok(width > 100 && height > 100);
    assert.equal(image.preview.sampled_frames, 1);
    assert.equal(image.preview.thumbs.length, 1);
    const video = await look(ws, FILES['/video.mp4']);
    /* On a machine that is very busy the facts may come too late to be told. */
    if (video.done.media.width) {
        assert.deepEqual(Object.keys(video.done.media), ['kind', 'mime_type', 'width', 'height', 'duration_ms', 'fps', 'frames', 'codec', 'has_audio']);
        assert.equal(video.done.media.codec, 'H.264');
        assert.equal(video.done.media.has_audio, false);
        assert.ok(Math.abs((video.done.media.frames / video.done.media.fps) * 1000 - video.done.media.duration_ms) < 100);
    }
    assert.ok(video.preview.thumbs.length > 1 && video.preview.thumbs.length <= 8);
    assert.ok(video.preview.sampled_frames >= video.preview.thumbs.length);
    for (const thumb of [...image.preview.thumbs, ...video.preview.thumbs]) {
        const jpeg = Buffer.from(thumb.data_uri.replace('data:image/jpeg;base64,', ''), 'base64');
        assert.equal(jpeg.readUInt32BE(0) >>> 8, 0xffd8ff);
        assert.equal(jpeg.readUInt16BE(jpeg.length - 2), 0xffd9);
        assert.ok(thumb.width <= 160 && thumb.height <= 160 && jpeg.length < 20000);
    }
    const times = video.preview.thumbs.map((thumb) => thumb.t_ms);
    assert.deepEqual(times, [...new Set(times)].sort((a, b) => a - b));
    for (const [kind, seen] of [['image_url', image], ['video_url', video]]) {
        const words = (await ask(kind, `upload:${seen.done.file_id}`)).json().usage.prompt_tokens;
        const bare = (await post(server, '/v1/chat/completions/input_tokens', { messages: [{ role: 'user', content: 'What is it?' }] })).json().input_tokens;
        const real = words - bare;
        assert.ok(Math.abs(seen.preview.est_tokens - real) <= real / 10 + 2, `${kind}: ${seen.preview.est_tokens} of ${real}`);
    }
    ws.destroy();
});

test('a video behind a redirect, one that is none, one that is too large', async () => {
    assert.equal((await answer('video_url', `${here}/old/video.mp4`)).cached, 1);
    assert.equal((await ask('video_url', `${here}/text.mp4`)).json().error.code, 'unsupported_video_media_type');
    const large = await ask('video_url', `${here}/endless`);
    assert.equal(large.json().error.code, 'video_too_large', large.text);
    assert.ok(sent < 2 ** 26, `the rest is not taken: ${sent}`);
    assert.equal(await server.stop(), 0);
    origin.closeAllConnections();
    origin.close();
});

await runTests();
