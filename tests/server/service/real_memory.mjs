/**
 * --mem-limit is kept: attacks on the memory of the real server, and the peak of its resident
 * memory (VmHWM of the server and of the process that decodes) under each. As a test it runs a
 * sample at two limits; for all attacks, a server each, or all of them on one server at once:
 *
 *     node tests/server/service/real_memory.mjs build/parley all 600 900 2000
 *     node tests/server/service/real_memory.mjs build/parley together 600 900 2000
 */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { crc32, deflateSync } from 'node:zlib';
import { JSON_TYPE, PROGRAM, Socket, parseReply, rawSocket, request, runTests, sleep, startServer, test } from '../client.mjs';

const all = process.argv[3] === 'all';
const together = process.argv[3] === 'together';
if (/\/[at]san\//.test(PROGRAM)) {
    console.log('skipped: a sanitizer takes memory of its own');
    process.exit(77);
}
const MIB = 1 << 20;
const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');

/* The default model makes images small, so that many fit its context and all are decoded; the same
 * with the processor's limits of a released one keeps them at 16 megapixels, which the context does
 * not hold. */
const small = join(root, 'assets', 'seedling');
const dir = mkdtempSync(join(tmpdir(), 'parley-memory-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
cpSync(small, dir, { recursive: true });
for (const name of ['preprocessor_config.json', 'processor_config.json']) {
    const text = readFileSync(join(dir, name), 'utf8').replaceAll(/"longest_edge": *\d+/g, '"longest_edge": 16777216');
    writeFileSync(join(dir, name), text);
}

/* ---- files ---- */

function crc(data) {
    if (crc32) return crc32(data);
    let c = ~0;
    for (const byte of data) {
        c ^= byte;
        for (let k = 0; k < 8; k++) c = (c >>> 1) ^ (c & 1 ? 0xedb88320 : 0);
    }
    return ~c >>> 0;
}

/** A PNG of one colour; other seeds give other files. */
function png(width, height, seed = 0) {
    const chunk = (type, data) => {
        const out = Buffer.alloc(12 + data.length);
        out.writeUInt32BE(data.length);
        out.write(type, 4, 'latin1');
        data.copy(out, 8);
        out.writeUInt32BE(crc(out.subarray(4, 8 + data.length)), 8 + data.length);
        return out;
    };
    const head = Buffer.alloc(13);
    head.writeUInt32BE(width, 0);
    head.writeUInt32BE(height, 4);
    head.set([8, 2, 0, 0, 0], 8);
    const raw = Buffer.alloc((3 * width + 1) * height);
    raw[1] = seed & 255;
    raw[2] = seed >> 8;
    const parts = [Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head), chunk('IDAT', deflateSync(raw)), chunk('IEND', Buffer.alloc(0))];
    return Buffer.concat(parts);
}

/** A TIFF of 64 bits a pixel, in deflated rows. */
function tiff(width, height) {
    const rows = deflateSync(Buffer.alloc(8 * width * height), { level: 1 });
    const tags = [
        [256, 4, 1, width],
        [257, 4, 1, height],
        [258, 3, 4, 8],
        [259, 3, 1, 8],
        [262, 3, 1, 2],
        [273, 4, 1, 16],
        [277, 3, 1, 4],
        [278, 4, 1, height],
        [279, 4, 1, rows.length],
    ];
    const at = 16 + rows.length + (rows.length & 1);
    const out = Buffer.alloc(at + 2 + 12 * tags.length + 4);
    out.write('II*\0', 'latin1');
    out.writeUInt32LE(at, 4);
    for (let i = 0; i < 4; i++) out.writeUInt16LE(16, 8 + 2 * i);
    rows.copy(out, 16);
    out.writeUInt16LE(tags.length, at);
    tags.forEach(([tag, type, n, value], i) => {
        const p = at + 2 + 12 * i;
        out.writeUInt16LE(tag, p);
        out.writeUInt16LE(type, p + 2);
        out.writeUInt32LE(n, p + 4);
        out.writeUInt32LE(value, p + 8);
    });
    return out;
}

/** A lossless WebP of one colour in a few dozen bytes: five codes of one symbol each. */
function webp(width, height) {
    const bits = [];
    const put = (value, n) => {
        for (let i = 0; i < n; i++) bits.push((value >> i) & 1);
    };
    put(0x2f, 8);
    put(width - 1, 14);
    put(height - 1, 14);
    put(0, 1 + 3); // no alpha, version
    put(0, 1 + 1 + 1); // no transform, no colour cache, no meta codes
    for (let code = 0; code < 5; code++) {
        put(1, 1); // simple
        put(0, 1); // of one symbol
        put(0, 1); // which has one bit
        put(0, 1);
    }
    const data = Buffer.alloc(Math.ceil(bits.length / 8) + 8);
    bits.forEach((bit, i) => (data[i >> 3] |= bit << (i & 7)));
    const padded = data.length + (data.length & 1);
    const out = Buffer.alloc(20 + padded);
    out.write('RIFF', 'latin1');
    out.writeUInt32LE(12 + padded, 4);
    out.write('WEBPVP8L', 8, 'latin1');
    out.writeUInt32LE(data.length, 16);
    data.copy(out, 20);
    return out;
}

/* ---- what is measured ---- */

const number = (text, name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024;

function children(pid) {
    const found = [];
    for (const task of readdirSync(`/proc/${pid}/task`)) {
        try {
            found.push(...readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean));
        } catch {
            // the thread has ended
        }
    }
    return found;
}

/** Watches a server and what it starts: the most that they had together, or the server alone. */
function watch(pid) {
    const seen = { server: 0, workers: 0, both: 0 };
    const look = () => {
        try {
            const status = readFileSync(`/proc/${pid}/status`, 'utf8');
            seen.server = number(status, 'VmHWM');
            let sum = 0;
            for (const child of children(pid)) {
                try {
                    sum += number(readFileSync(`/proc/${child}/status`, 'utf8'), 'VmRSS');
                } catch {
                    // it has ended
                }
            }
            seen.workers = Math.max(seen.workers, sum);
            seen.both = Math.max(seen.both, seen.server, sum + number(status, 'VmRSS'));
        } catch {
            // the server has ended
        }
    };
    const timer = setInterval(look, 10);
    return () => {
        look();
        clearInterval(timer);
        return { server: seen.server / MIB, workers: seen.workers / MIB, peak: seen.both / MIB };
    };
}

/* ---- attacks: each gives the statuses that it was answered with ---- */

const uri = (data, mime = 'image/png') => `data:${mime};base64,${data.toString('base64')}`;
const image = (data, mime) => ({ type: 'image_url', image_url: { url: uri(data, mime) } });
const ask = (server, body) =>
    request(server, { method: 'POST', path: '/v1/chat/completions', headers: JSON_TYPE, body, timeout: 120000 }).then(
        (r) => r.status,
        () => 0,
    );
const chatBody = (content, more = {}) => JSON.stringify({ messages: [{ role: 'user', content }], max_tokens: 2, ...more });
const many = (n, run) => Promise.all(Array.from({ length: n }, (_, i) => run(i)));

let flat = null;
const flatImages = () => (flat ??= Array.from({ length: 8 }, (_, i) => png(4096, 4096, i + 1)));
const eight = () => chatBody(flatImages().map((p) => image(p)));

const attacks = {
    'eight images of 4096 x 4096': async (server) => [await ask(server, eight())],
    'the same, 16 at once': (server) => many(16, () => ask(server, eight())),
    '64 requests of one such image': (server) => many(64, (i) => ask(server, chatBody([image(flatImages()[i % 8])]))),
    '64 requests of an image of 2048 x 2048': (server) => many(64, (i) => ask(server, chatBody([image(png(2048, 2048, i))]))),
    'WebP of 8000 x 8000': (server) => many(4, () => ask(server, chatBody([image(webp(8000, 8000), 'image/webp')]))),
    'WebP of 4096 x 4096': (server) => many(8, () => ask(server, chatBody([image(webp(4096, 4096), 'image/webp')]))),
    'TIFF of 7000 x 7000 x 64 bits': (server) => many(4, () => ask(server, chatBody([image(tiff(7000, 7000), 'image/tiff')]))),
    'a list of two million numbers': (server) => {
        const body = `{"messages":[{"role":"user","content":"x"}],"max_tokens":2,"x":[0${',0'.repeat(1900000)}]}`;
        return many(12, () => ask(server, body));
    },
    'an image of 45 MB that is none': (server) => {
        const body = chatBody([image(Buffer.concat([flatImages()[0].subarray(0, 100), Buffer.alloc(45 * MIB, 7)]))]);
        return many(8, () => ask(server, body));
    },
    'a text of 4 MB': (server) => {
        const body = chatBody('some words, and some more. '.repeat(150000));
        return many(16, () => ask(server, body));
    },
    'a text of 40 MB beside an image': (server) => {
        const body = chatBody([image(png(64, 64)), { type: 'text', text: 'some words, and some more. '.repeat(1500000) }]);
        return many(4, () => ask(server, body));
    },
    'bodies of 60 MB that do not end': async (server) => {
        const piece = Buffer.alloc(15 * MIB, 32);
        const sockets = await many(16, async () => {
            const raw = rawSocket(server);
            raw.socket.on('error', () => {});
            const head = `Host: 127.0.0.1:${server.port}\r\nContent-Type: application/json\r\nContent-Length: ${60 * MIB + 1}`;
            raw.send(`POST /v1/chat/completions HTTP/1.1\r\n${head}\r\n\r\n`);
            for (let k = 0; k < 4; k++) raw.socket.write(piece);
            return raw;
        });
        for (let i = 0; i < 40; i++) {
            if (sockets.every((raw) => raw.socket.writableLength === 0 || raw.closed)) break;
            await sleep(100);
        }
        const found = sockets.map((raw) => parseReply(raw.data)?.status ?? 200); // 200: it waits for the rest
        for (const raw of sockets) raw.socket.destroy();
        return found;
    },
    'uploads with previews, beside inline images': async (server) => {
        const inline = many(8, (i) => ask(server, chatBody([image(flatImages()[i])])));
        const found = await many(6, async (k) => {
            const ws = await Socket.open(server, { protocols: 'parley.v1' });
            const { limits } = await ws.wait('session.created');
            const data = k % 2 ? webp(4000 + k, 4000) : png(4000, 4000, 100 + k);
            const type = k % 2 ? 'webp' : 'png';
            ws.send({ type: 'upload.create', event_id: 'c', filename: `a.${type}`, bytes: data.length, mime_type: `image/${type}`, purpose: 'vision' });
            const made = await ws.wait('upload.created');
            if (!made) return 0;
            for (let at = 0; at < data.length; at += limits.chunk_size) {
                const head = Buffer.alloc(16);
                head.set([1, 1]);
                head.writeUInt32LE(made.upload.handle ?? made.handle, 4);
                head.writeBigUInt64LE(BigInt(at), 8);
                ws.raw.send(Socket.frame(2, Buffer.concat([head, data.subarray(at, at + limits.chunk_size)])));
            }
            ws.send({ type: 'upload.complete', upload_id: made.upload.id ?? made.upload_id });
            const done = await ws.wait((m) => m.type === 'upload.completed' || m.type === 'error', 30000);
            ws.destroy();
            return done?.type === 'upload.completed' ? 200 : 400;
        });
        return [...found, ...(await inline)];
    },
};

/** Starts a server, attacks it with one after the other, and sees that it still answers. With
 * atOnce all come together, and somebody else asks meanwhile. */
async function attack(limit, names, model, atOnce = false) {
    const room = ['--ctx-size', '2560', '--parallel', '2', '--cache-ram', '8', '--vision-cache', '4'];
    const options = ['--port', '0', '--model', model, ...(model === small ? room : []), '--mem-limit', String(limit), '--threads', '1'];
    const server = await startServer(['serve', ...options]);
    await server.ready();
    const stop = watch(server.child.pid);
    const statuses = {};
    const run = async (name) => {
        for (const status of await attacks[name](server)) statuses[status] = (statuses[status] ?? 0) + 1;
    };
    let during = 0; // answers of somebody else meanwhile
    if (atOnce) {
        let isOver = false;
        const other = (async () => {
            while (!isOver) during += (await ask(server, chatBody('hello'))) === 200;
        })();
        await Promise.all(names.map(run));
        isOver = true;
        await other;
    } else for (const name of names) await run(name);
    const after = await ask(server, chatBody('hello'));
    const seen = stop();
    assert.equal(await server.stop(), 0);
    return { ...seen, statuses, during, after };
}

const limits = process.argv.slice(4).map(Number);
if (together) {
    for (const limit of limits) {
        const r = await attack(limit, Object.keys(attacks), small, true);
        const parts = `${r.server.toFixed(0)} + ${r.workers.toFixed(0)}`;
        console.log(`${limit} | ${r.peak.toFixed(0)} MiB (${parts}) | ${(r.peak / limit).toFixed(2)} | ${JSON.stringify(r.statuses)} | ${r.during} other answers meanwhile | ${r.after}`);
    }
} else if (all) {
    const wanted = process.env.ATTACK ? Object.keys(attacks).filter((name) => name.includes(process.env.ATTACK)) : Object.keys(attacks);
    for (const name of wanted) {
        for (const limit of limits.length ? limits : [600, 900, 2000]) {
            for (const model of /eight/.test(name) ? [small, dir] : [small]) {
                const what = `${name}${model === dir ? ' (not made smaller)' : ''} | ${limit}`;
                const r = await attack(limit, [name], model).catch((e) => ({ error: e.message }));
                if (r.error) console.log(`${what} | ${r.error.slice(0, 200)}`);
                else {
                    const ratio = (r.peak / limit).toFixed(2);
                    const parts = `${r.server.toFixed(0)} + ${r.workers.toFixed(0)}`;
                    console.log(`${what} | ${r.peak.toFixed(0)} MiB (${parts}) | ${ratio} | ${JSON.stringify(r.statuses)} | ${r.after}`);
                }
            }
        }
    }
} else {
    const sample = ['eight images of 4096 x 4096', 'WebP of 4096 x 4096', 'a list of two million numbers'];
    for (const limit of [600, 900]) {
        test(`the peak stays within 1.15 times --mem-limit ${limit}`, async () => {
            for (const model of [small, dir]) {
                const r = await attack(limit, model === small ? sample : sample.slice(0, 1), model);
                console.log(`${limit} MiB: ${r.server.toFixed(0)} of the server + ${r.workers.toFixed(0)} elsewhere, ${JSON.stringify(r.statuses)}`);
                assert.ok(r.peak <= 1.15 * limit, `the peak is ${r.peak.toFixed(0)} MiB`);
                assert.equal(r.after, 200);
                for (const status of Object.keys(r.statuses)) assert.ok(['200', '400', '413', '429'].includes(status), status);
            }
        });
    }
    test('a request that is refused gives its images back at once, though its response is kept', async () => {
        const options = ['--port', '0', '--model', small, '--parallel', '1', '--queue', '1', '--threads', '1'];
        const server = await startServer(['serve', ...options]);
        await server.ready();
        const ws = await Socket.open(server, { protocols: 'parley.v1' });
        await ws.wait('session.created');
        const n = 12;
        for (let i = 0; i < n; i++) {
            const content = [{ type: 'input_image', image_url: uri(png(512, 512, i)) }, { type: 'input_text', text: 'x' }];
            ws.send({ type: 'response.create', stream_id: `lane-${i}`, input: [{ role: 'user', content }], max_output_tokens: 3000, ignore_eos: true });
            await sleep(20);
        }
        let refused = 0;
        while (refused < n - 4 && (await ws.wait((m) => m.type === 'response.failed' || m.type === 'error', 20000))) refused++;
        const { memory } = (await request(server, { path: '/v1/status' })).json();
        assert.ok(refused >= n - 4, `${refused} were refused`);
        assert.ok(memory.request_bytes < 4 * 24 * MIB, `${memory.request_bytes} bytes are still reserved`);
        ws.destroy();
        assert.equal(await server.stop(), 0);
    });
    await runTests();
}
