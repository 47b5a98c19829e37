/**
 * Videos through the real server with the default model: right answers, every way to send one, and
 * what happens when the process that reads one crashes, stalls, or is no longer wanted.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, Socket, eventually, runTests, sleep, test } from '../client.mjs';

if (/\/tsan\//.test(PROGRAM)) {
    console.log('skipped: under TSan a video is not read within the limits that this test sets');
    process.exit(77);
}

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');

/** A server of its own with the default model: its process and address. */
async function serve(...options) {
    const child = spawn(PROGRAM, ['serve', '--port', '0', ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
    process.on('exit', () => child.kill('SIGKILL'));
    let said = '';
    const base = await new Promise((resolve, reject) => {
        const listen = (data) => {
            said += data;
            const match = /http:\/\/127\.0\.0\.1:\d+/.exec(said);
            if (match) resolve(match[0]);
        };
        child.stdout.on('data', listen);
        child.stderr.on('data', listen);
        child.on('exit', () => reject(new Error(`the server ended: ${said}`)));
    });
    for (let i = 0; i < 1000 && (await fetch(`${base}/health`)).status !== 200; i++) await sleep(20);
    return { child, base };
}
const { child, base } = await serve();

const sample = (name) => readFileSync(join(root, 'assets', 'samples', name));
const trap = (name) => readFileSync(join(root, 'tests', 'data', 'videos', name));
const uri = (data) => `data:video/mp4;base64,${Buffer.from(data).toString('base64')}`;
const video = (data, more = {}) => ({ type: 'video_url', video_url: { url: uri(data) }, ...more });

async function ask(part, question, { signal, to = base } = {}) {
    const body = { temperature: 0, max_tokens: 60, messages: [{ role: 'user', content: [part, { type: 'text', text: question }] }] };
    const reply = await fetch(`${to}/v1/chat/completions`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), signal });
    const json = await reply.json();
    return { status: reply.status, text: json.choices?.[0].message.content, error: json.error, json };
}

/** The process that reads a video at this moment, or 0. */
function worker(server = child) {
    for (const task of readdirSync(`/proc/${server.pid}/task`)) {
        let pids = [];
        try {
            pids = readFileSync(`/proc/${server.pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean);
        } catch {
            continue; // the thread has ended
        }
        for (const pid of pids) {
            try {
                if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('video-worker')) return Number(pid);
            } catch {
                // it has ended
            }
        }
    }
    return 0;
}
async function nextWorker(server = child) {
    for (const end = Date.now() + 60_000; Date.now() < end; ) {
        const pid = worker(server);
        if (pid) return pid;
        await sleep(1);
    }
    throw new Error('no process reads the video');
}
async function stillWatches() {
    const { text } = await ask(video(sample('ball-moves.mp4')), 'Which way does the circle move?');
    assert.match(text, /right/);
}

test('videos are offered, and questions about them answered', async () => {
    const props = await (await fetch(`${base}/props`)).json();
    assert.equal(props.modalities.video, true);
    assert.equal(props.video.patch_size * props.video.merge_size, 32);
    assert.ok(props.video.max_pixels > props.video.min_pixels && props.video.max_frames <= 256);
    const samples = JSON.parse(readFileSync(join(root, 'assets', 'samples', 'samples.json'), 'utf8')).filter((s) => s.kind === 'video');
    assert.ok(samples.length >= 6);
    for (const s of samples) {
        const { status, text, json } = await ask(video(sample(s.files[0])), s.question);
        assert.equal(status, 200);
        for (const part of s.expected) assert.ok(text.toLowerCase().includes(part), `${s.question} ${text}`);
        assert.equal(json.timings.n_videos, 1);
        assert.equal(json.timings.route, 'media');
    }
});

test('other ways to send a video', async () => {
    const data = sample('ball-moves.mp4').toString('base64');
    for (const part of [{ type: 'input_video', input_video: { data } }, { type: 'video', video: uri(sample('ball-moves.mp4')) }]) {
        assert.match((await ask(part, 'Which way does the circle move?')).text, /right/);
    }
    const short = await ask(video(sample('ball-moves.mp4'), { num_frames: 4 }), 'What happens?');
    const long = await ask(video(sample('ball-moves.mp4'), { num_frames: 12 }), 'What happens?');
    assert.ok(long.json.usage.prompt_tokens > 2 * short.json.usage.prompt_tokens);
    const image = `data:image/png;base64,${sample('color.png').toString('base64')}`;
    assert.equal((await ask({ type: 'video', video: [image, image, image, image], fps: 1 }, 'What happens?')).status, 200);
});

test('what is no video, or only a part of one', async () => {
    const whole = trap('h264_faststart.mp4');
    const cases = [
        ['#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n', 'unsupported_video_media_type'],
        ["ffconcat version 1.0\nfile '/etc/passwd'\n", 'unsupported_video_media_type'],
        ['<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"></MPD>', 'unsupported_video_media_type'],
        ['v=0\no=- 0 0 IN IP4 127.0.0.1\nm=video 5004 RTP/AVP 96\n', 'unsupported_video_media_type'],
        ['a text file', 'unsupported_video_media_type'],
        [whole.subarray(0, whole.length / 2), 'video_parse_error'],
        [trap('ffv1.mkv'), 'unsupported_video_media_type'],
    ];
    for (const [data, code] of cases) {
        const { status, error } = await ask(video(data), '?');
        assert.equal(status, 400);
        assert.equal(error.code, code);
        assert.equal(error.param, 'messages[0].content[0].video_url');
        assert.doesNotMatch(error.message, /0x|\/etc|libav|ffmpeg/);
    }
    assert.equal((await ask(video(whole, { start_ms: 60000 }), '?')).error.code, 'video_range');
    await stillWatches();
});

test('a crash while a video is read', async () => {
    for (const signal of ['SIGSEGV', 'SIGKILL', 'SIGABRT']) {
        const answer = ask(video(trap('h264_hour.mp4')), '?');
        process.kill(await nextWorker(), signal);
        const { status, error } = await answer;
        assert.equal(status, 400);
        assert.equal(error.code, 'video_parse_error');
        await stillWatches();
    }
});

test('a reader that stalls is given up, and others go on meanwhile', async () => {
    const answer = ask(video(trap('h264_hour.mp4')), '?');
    process.kill(await nextWorker(), 'SIGSTOP');
    await stillWatches();
    const { status, error } = await answer;
    assert.equal(status, 504);
    assert.equal(error.code, 'video_timeout');
    await eventually(() => worker(), 0);
});

test('nobody waits any more: the process goes', async () => {
    const control = new AbortController();
    const answer = ask(video(trap('h264_hour.mp4')), '?', { signal: control.signal }).catch(() => null);
    process.kill(await nextWorker(), 'SIGSTOP');
    control.abort();
    await answer;
    await eventually(() => worker(), 0);
    await stillWatches();
});

test('texts are answered while two videos with large frames are read', async () => {
    const patient = await serve('--max-video-time', '3600', '--ws-ping', '3600');
    const begin = async () => {
        const ws = await Socket.open({ port: new URL(patient.base).port }, { protocols: 'parley.v1' });
        ws.send({ type: 'response.create', max_output_tokens: 8, input: [{ role: 'user', content: [video(trap('h264_large.mp4'), { num_frames: 90 }), { type: 'input_text', text: '?' }] }] });
        return ws;
    };
    /** Another frame is read, of what was sent after this. */
    const goesOn = async (ws) => {
        await sleep(0);
        ws.messages.length = 0;
        const event = await ws.wait((m) => m.type === 'response.progress' || /^response.(completed|incomplete|failed)$|^error$/.test(m.type), 600_000);
        assert.equal(event.phase, 'media_decode', JSON.stringify(event));
    };
    const videos = [await begin(), await begin()];
    await Promise.all(videos.map(goesOn));
    for (let i = 0; i < 3; i++) {
        const { status, text } = await ask({ type: 'text', text: 'Hello!' }, '', { to: patient.base });
        assert.equal(status, 200);
        assert.ok(text.length > 0);
        await Promise.all(videos.map(goesOn));
    }
    const ends = await Promise.all(videos.map((ws) => ws.wait((m) => /^response.(completed|incomplete|failed)$|^error$/.test(m.type), 600_000)));
    for (const end of ends) assert.match(end?.type ?? 'no end', /completed|incomplete/);
    videos.forEach((ws) => ws.destroy());
    patient.child.kill('SIGTERM');
});

test('no descriptor is left behind', async () => {
    const count = () => readdirSync(`/proc/${child.pid}/fd`).length;
    await stillWatches();
    await sleep(300);
    const before = count();
    for (let i = 0; i < 5; i++) await ask(video(trap('vp9.webm')), '?');
    await eventually(() => count() <= before + 2, true);
});

test('every limit on videos is an option with an error of its own', async () => {
    const small = await serve('--max-video-mib', '1', '--max-video-pixels', '6144', '--max-video-duration', '10',
        '--max-video-frames', '4', '--max-video-time', '1'); // 192 x 32 pixels are 6144
    const watch = (data, more) => ask(video(data, more), '?', { to: small.base });
    assert.equal((await watch(trap('vp9.webm'))).status, 200);
    const stuffing = Buffer.alloc(2 << 20);
    stuffing.writeUInt32BE(stuffing.length);
    stuffing.write('free', 4);
    const cases = [
        [Buffer.concat([trap('h264_faststart.mp4'), stuffing]), {}, /more bytes/],
        [trap('h264_size_change.mp4'), {}, /larger frames/],
        [trap('h264_hour.mp4'), {}, /longer duration/],
        [trap('vp9.webm'), { num_frames: 5 }, /at most 4/],
    ];
    for (const [data, more, message] of cases) {
        const { status, error } = await watch(data, more);
        assert.equal(status, 400);
        assert.equal(error.code, 'video_too_large');
        assert.match(error.message, message);
    }
    const slow = watch(trap('vp9.webm'), { start_ms: 10 });
    process.kill(await nextWorker(small.child), 'SIGSTOP');
    const { status, error } = await slow;
    assert.equal(status, 504);
    assert.equal(error.code, 'video_timeout');
    assert.equal(error.type, 'timeout_error');
    assert.equal((await watch(trap('vp9.webm'))).status, 200);
    small.child.kill('SIGTERM');
});

test('images that move: GIF, PNG and WebP', async () => {
    for (const name of ['gif.gif', 'apng.png', 'webp.webp']) {
        const { status, json } = await ask(video(trap(name)), '?');
        assert.equal(status, 200);
        assert.equal(json.timings.n_videos, 1);
    }
});

test('the command line reads a video, and tells on a terminal how far it is', () => {
    const inTerminal = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)';
    const command = [PROGRAM, 'run', '--temp', '0', '--video', join(root, 'assets', 'samples', 'ball-moves.mp4'), 'Which way does the circle move?'];
    const piped = spawnSync(command[0], command.slice(1), { encoding: 'utf8' });
    assert.match(piped.stdout, /right/);
    assert.doesNotMatch(piped.stderr, /media_decode/);
    const shown = spawnSync('python3', ['-c', inTerminal, ...command], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
    assert.match(shown.stdout, /media_decode 1\/8[^]*media_decode 8\/8[^]*vision_encode[^]*right/);
    const small = spawnSync(command[0], ['run', '--max-video-duration', '1', ...command.slice(2)], { encoding: 'utf8' });
    assert.equal(small.status, 1);
    assert.match(small.stderr, /longer duration/);
});

test('the server ends', async () => {
    const ended = new Promise((resolve) => child.on('exit', resolve));
    child.kill('SIGTERM');
    assert.equal(await ended, 0);
});

await runTests();
