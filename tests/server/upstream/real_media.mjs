/** Images and videos on their way to other servers: the real program, without a model of its own. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { deflateSync, crc32 } from 'node:zlib';
import { Socket, eventually, post, request, runTests, startServer, test } from '../client.mjs';
import { startUpstream } from './fake_upstream.mjs';

const sample = (name) => readFileSync(new URL(`../../../assets/samples/${name}`, import.meta.url));
const uri = (mime, data) => `data:${mime};base64,${data.toString('base64')}`;

/** A black PNG. */
function png(width, height) {
    const chunk = (type, data) => {
        const body = Buffer.concat([Buffer.from(type), data]), out = Buffer.alloc(8);
        out.writeUInt32BE(data.length, 0);
        out.writeUInt32BE(crc32(body), 4);
        return Buffer.concat([out.subarray(0, 4), body, out.subarray(4)]);
    };
    const head = Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 8, 2, 0, 0, 0]);
    head.writeUInt32BE(width, 0);
    head.writeUInt32BE(height, 4);
    return Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), chunk('IHDR', head), chunk('IDAT', deflateSync(Buffer.alloc((width * 3 + 1) * height))), chunk('IEND', Buffer.alloc(0))]);
}

/** Width and height of a data URI with a JPEG. */
function jpegSize(url) {
    assert.match(url, /^data:image\/jpeg;base64,/);
    const data = Buffer.from(url.split(',')[1], 'base64');
    let at = 2;
    while ((data[at + 1] & 0xfc) !== 0xc0 || data[at + 1] === 0xc4) at += 2 + data.readUInt16BE(at + 2);
    return { width: data.readUInt16BE(at + 7), height: data.readUInt16BE(at + 5) };
}

const names = { vllm: 'v', sglang: 's', llamacpp: 'l', hosted: 'h', parley: 'p' };
const fakes = {};
for (const engine of Object.keys(names)) fakes[engine] = await startUpstream({ engine: engine === 'parley' ? 'vllm' : engine, model: 'm', answer: () => ({ content: 'Seen.' }) });
fakes.parley.models = [{ id: 'm', owned_by: 'parley', architecture: { input_modalities: ['text', 'image', 'video'] } }];
const blind = await startUpstream({ engine: 'vllm', model: 'm' });
blind.models = [{ id: 'm', owned_by: 'vllm', architecture: { input_modalities: ['text'] } }];
const urls = [...Object.entries(names).map(([engine, name]) => `${name}=${fakes[engine].url}`), `u=${fakes.vllm.url}`, `n=${fakes.sglang.url}`, `blind=${blind.url}`].join(',');
const server = await startServer(['--upstream', urls, '--upstream-video', 'u=frames,n=none', '--upstream-pixels', 'h=10000']);
await eventually(async () => (await request(server, { path: '/v1/models' })).json().data.length, 8);

/** Sends parts to a server; what it was sent, or the error. */
async function send(name, parts, more = {}) {
    const fake = name === 'u' ? fakes.vllm : name === 'n' ? fakes.sglang : name === 'blind' ? blind : fakes[Object.keys(names).find((e) => names[e] === name)];
    const n = fake.requests.length;
    const reply = await post(server, '/v1/chat/completions', { model: `${name}/m`, messages: [{ role: 'user', content: [{ type: 'text', text: 'What?' }, ...parts] }], ...more });
    if (reply.status !== 200) {
        assert.equal(fake.requests.length, n, 'it was sent all the same');
        return { status: reply.status, error: reply.json().error };
    }
    const { body } = fake.requests.at(-1);
    return { status: 200, body, parts: body.messages[0].content.slice(1) };
}
const must = async (...args) => { const r = await send(...args); assert.equal(r.status, 200, JSON.stringify(r.error)); return r; };
const image = (mime, data, more = {}) => ({ type: 'image_url', image_url: { url: uri(mime, data) }, ...more });
const video = (name, mime, more = {}) => ({ type: 'video_url', video_url: { url: uri(mime, sample(name)), ...more } });
const frames = (parts) => parts.filter((p) => p.type === 'image_url');

test('images that fit go as they are; others become a JPEG of the size that the server takes', async () => {
    const small = sample('color.png'), photo = sample('read-text.jpg');
    assert.deepEqual((await must('v', [image('image/png', small)])).parts, [image('image/png', small)]);
    assert.deepEqual((await must('l', [image('image/jpeg', photo)])).parts, [image('image/jpeg', photo)]);
    const large = (await must('v', [image('image/png', png(4000, 3000))])).parts[0].image_url.url;
    const size = jpegSize(large);
    assert.ok(size.width * size.height <= 4 << 20 && size.width * size.height > 3.9e6, JSON.stringify(size));
    assert.ok(Math.abs(size.width / size.height - 4 / 3) < 0.01);
    const option = jpegSize((await must('h', [image('image/png', png(400, 300))])).parts[0].image_url.url);
    assert.ok(option.width * option.height <= 10000);
    const asked = jpegSize((await must('v', [image('image/png', png(400, 300), { max_pixels: 5000 })])).parts[0].image_url.url);
    assert.ok(asked.width * asked.height <= 5000);
    const enlarged = jpegSize((await must('v', [image('image/png', png(40, 30), { min_pixels: 50000 })])).parts[0].image_url.url);
    assert.ok(enlarged.width * enlarged.height >= 50000);
    assert.ok((await must('p', [image('image/png', png(4000, 3000))])).parts[0].image_url.url.startsWith('data:image/png'));
});

test('a photograph that lies on its side is turned; formats that an engine cannot read are written anew', async () => {
    const photo = sample('read-text.jpg');
    const exif = Buffer.from('ffe1001c457869660000' + '49492a0008000000' + '0100' + '120103000100000006000000', 'hex');
    const turned = Buffer.concat([photo.subarray(0, 2), Buffer.concat([exif, Buffer.alloc(0)]), photo.subarray(2)]);
    turned.writeUInt16BE(exif.length - 2, 4);
    const before = jpegSize(uri('image/jpeg', photo)), after = jpegSize((await must('v', [image('image/jpeg', turned)])).parts[0].image_url.url);
    assert.deepEqual(after, { width: before.height, height: before.width });
    const gif = Buffer.from('R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs=', 'base64');
    assert.ok((await must('v', [image('image/gif', gif)])).parts[0].image_url.url.startsWith('data:image/gif'));
    assert.ok((await must('l', [image('image/gif', gif)])).parts[0].image_url.url.startsWith('data:image/jpeg'));
});

test('videos go as they are where the engine takes them, with its own words for the settings', async () => {
    const plain = (await send('v', [video('ball-moves.mp4', 'video/mp4')]));
    assert.deepEqual([plain.parts, plain.body.media_io_kwargs], [[video('ball-moves.mp4', 'video/mp4')], undefined]);
    assert.deepEqual((await send('v', [video('counting.avi', 'video/avi', { num_frames: 6 })])).body.media_io_kwargs, { video: { num_frames: 6 } });
    assert.deepEqual((await send('v', [video('ball-moves.mp4', 'video/mp4')], { video_fps: 1, video_max_frames: 9 })).body.media_io_kwargs, { video: { fps: 1, num_frames: 9 } });
    const sg = (await must('s', [video('star-appears.mkv', 'video/webm', { fps: 1.5, max_frames: 12 })])).parts[0].video_url;
    assert.deepEqual([sg.url.slice(0, 29), sg.fps, sg.max_frames], ['data:video/x-matroska;base64,', 1.5, 12]);
    const p = (await must('p', [video('ball-moves.mp4', 'video/mp4', { num_frames: 6, start_ms: 500, end_ms: 1500, max_pixels: 90000 })])).parts[0].video_url;
    assert.deepEqual([p.num_frames, p.start_ms, p.end_ms, p.max_pixels], [6, 500, 1500, 90000]);
});

test('else they are decoded here and go as images with their times', async () => {
    for (const [name, settings] of [['l', {}], ['h', {}], ['u', {}], ['v', { start_ms: 500 }], ['s', { num_frames: 5 }]]) {
        const { parts } = await send(name, [video('ball-moves.mp4', 'video/mp4', settings)]);
        assert.match(parts[0].text, /^A video of \d+\.\d seconds as \d+ images/, name);
        const times = parts.slice(1).filter((x) => x.type === 'text').map((x) => parseFloat(x.text));
        assert.equal(times.length, frames(parts).length);
        assert.ok(times.every((t, i) => i === 0 || t > times[i - 1]), times.join());
        assert.ok(times[0] >= (settings.start_ms ?? 0) / 1000);
        assert.equal(frames(parts).length, Number(/as (\d+) images/.exec(parts[0].text)[1]));
        if (settings.num_frames) assert.equal(frames(parts).length, 5);
        for (const f of frames(parts)) jpegSize(f.image_url.url);
    }
    const list = { type: 'video', video: [1, 2, 3, 4].map(() => uri('image/png', sample('color.png'))), fps: 2 };
    const { parts } = await send('v', [list]);
    assert.deepEqual(parts.filter((x) => x.type === 'text').slice(1).map((x) => x.text), ['0.0 seconds:', '0.5 seconds:', '1.0 seconds:', '1.5 seconds:']);
});

test('what the model cannot see, and what is no image or video, is refused before it is sent', async () => {
    const refused = async (name, part, code, pattern) => {
        const r = await send(name, [part]);
        assert.deepEqual([r.status, r.error?.code], [400, code], JSON.stringify(r.error));
        assert.match(r.error.message, pattern);
        assert.match(r.error.param, /^messages\[0\]\.content\[1\]/);
    };
    await refused('blind', image('image/png', sample('color.png')), 'image_not_supported', /cannot read images/);
    await refused('blind', video('ball-moves.mp4', 'video/mp4'), 'video_not_supported', /cannot read videos/);
    await refused('n', video('ball-moves.mp4', 'video/mp4'), 'video_not_supported', /cannot read videos/);
    await refused('v', image('image/png', Buffer.from('no image at all')), 'unsupported_image_media_type', /image/);
    await refused('v', { type: 'video_url', video_url: { url: uri('video/mp4', Buffer.from('no video at all')) } }, 'unsupported_video_media_type', /video/);
    await refused('l', { type: 'video_url', video_url: { url: uri('video/mp4', sample('ball-moves.mp4').subarray(0, 3000)) } }, 'video_parse_error', /video/);
});

test('an uploaded video is previewed without a model, and goes where its message goes', async () => {
    const form = new FormData();
    form.append('purpose', 'user_data');
    form.append('file', new Blob([sample('ball-moves.mp4')], { type: 'video/mp4' }), 'ball.mp4');
    const stored = await (await fetch(`http://127.0.0.1:${server.port}/v1/files`, { method: 'POST', body: form })).json();
    const native = (await must('v', [{ type: 'video_url', file_id: stored.id }])).parts[0];
    assert.equal(native.video_url.url, uri('video/mp4', sample('ball-moves.mp4')));
    assert.ok(frames((await must('l', [{ type: 'video_url', file_id: stored.id }])).parts).length >= 4);
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    const data = sample('ball-moves.mp4'), head = Buffer.alloc(16);
    ws.send({ type: 'upload.create', filename: 'ball.mp4', bytes: data.length, purpose: 'vision' });
    const { upload } = await ws.wait('upload.created');
    head.writeUInt8(1, 0);
    head.writeUInt8(1, 1);
    head.writeUInt32LE(upload.handle, 4);
    ws.raw.send(Socket.frame(2, Buffer.concat([head, data])));
    ws.send({ type: 'upload.complete', upload_id: upload.id });
    const { media } = await ws.wait('upload.completed');
    assert.deepEqual([media.width > 0, media.frames > 0], [true, true]);
    const { thumbs, sampled_frames: sampled } = await ws.wait('media.preview');
    assert.ok(thumbs.length > 1 && sampled >= thumbs.length);
    ws.destroy();
});

test('they end', async () => {
    assert.equal(await server.stop(), 0);
    for (const fake of [...Object.values(fakes), blind]) await fake.close();
});

await runTests();
