/**
 * parley pull killed (SIGKILL) again and again while it fetches one large file: it goes on where it was, nothing has its
 * final name before it is whole, and the end is what the hub has.
 *
 *     node tests/server/hub/real_resume.mjs build/parley                  a sample: 24 MB, 4 points
 *     node tests/server/hub/real_resume.mjs build/parley 2000000000 20    2 GB, 20 points, 40 kills: a minute (62 s), 4 GB of memory and disk
 *
 * At each point it is killed twice: when exactly so many bytes are there, and at any moment on the way to the next point,
 * which may be while it checks what lies there.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createReadStream, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROGRAM, eventually, runTests, sleep, test } from '../client.mjs';
import { sha256, startHub } from './hub.mjs';

const BYTES = Number(process.argv[3] ?? 24_000_000), POINTS = Number(process.argv[4] ?? 4);
const WAIT_MS = 600_000;
const folder = mkdtempSync(join(tmpdir(), 'parley-resume-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/** A GGUF file of one value, then bytes that differ from place to place, most of them never touched. */
function largeFile() {
    const head = Buffer.from('GGUF\x03\0\0\0' + '\0'.repeat(8) + '\x01' + '\0'.repeat(7) + '\x14' + '\0'.repeat(7) + 'general.architecture\x08\0\0\0\x05' + '\0'.repeat(7) + 'qwen3', 'latin1');
    const data = Buffer.alloc(BYTES);
    head.copy(data);
    for (let at = 1 << 20; at + 8 < BYTES; at += 1 << 20) data.writeDoubleLE(at, at);
    return data;
}

const hashOf = (path) =>
    new Promise((resolve) => {
        const hash = createHash('sha256');
        createReadStream(path).on('data', (data) => hash.update(data)).on('end', () => resolve(hash.digest('hex')));
    });

test(`${BYTES} bytes, killed at ${POINTS} points`, async () => {
    const hub = await startHub();
    hub.pieceBytes = 1 << 20;
    const data = largeFile();
    hub.add('org/large', { 'a-Q8_0.gguf': data });
    const cache = join(folder, 'cache'), blobs = join(cache, 'models--org--large/blobs'), part = join(blobs, `${sha256(data)}.incomplete`);
    const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PARLEY_|HF_|HUGGING)/.test(name)));
    const env = { ...clean, PARLEY_CONFIG: 'none', HOME: folder, HF_ENDPOINT: hub.url, HF_HUB_CACHE: cache };
    const sizeNow = () => (existsSync(part) ? statSync(part).size : 0);
    const start = () => {
        const child = spawn(PROGRAM, ['pull', 'org/large'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
        const run = { child, err: '' };
        child.stderr.on('data', (text) => (run.err += text));
        run.end = new Promise((resolve) => child.on('close', (code, signal) => resolve(code ?? signal)));
        return run;
    };
    const kill = async (run, before) => {
        run.child.kill('SIGKILL');
        assert.equal(await run.end, 'SIGKILL', run.err);
        if (existsSync(blobs)) assert.ok(readdirSync(blobs).every((name) => name.endsWith('.incomplete')), 'no final name yet');
        assert.ok(sizeNow() >= before, `nothing is lost: ${sizeNow()} of ${before}`);
    };
    let sent = 0;
    for (let i = 1; i <= POINTS; i++) {
        const point = Math.floor((BYTES * i) / (POINTS + 1)) + i; // never at the edge of a piece
        hub.fault('a-Q8_0.gguf', { holdAt: point, always: true });
        let before = sizeNow();
        const some = start();
        await sleep((i * 97) % Math.max(60, BYTES / 2e6));
        await kill(some, before);
        before = sizeNow();
        hub.requests.length = 0;
        const run = start();
        await eventually(sizeNow, point, WAIT_MS);
        // It goes on where it was. Where all was there already, its request comes after that; one of the killed program may come late.
        const ranges = () => hub.requests.filter((r) => r.where === 'store' && r.range !== 'bytes=0-65535').map((r) => String(r.range));
        await eventually(() => ranges().includes(before ? `bytes=${before}-` : 'undefined'), true);
        await kill(run, before);
        assert.ok(ranges().length <= 2, ranges().join());
        sent = point;
    }
    hub.fault('a-Q8_0.gguf');
    hub.requests.length = 0;
    const last = start();
    assert.equal(await last.end, 0, last.err);
    assert.ok(hub.requests.some((r) => r.range === `bytes=${sent}-`));
    assert.deepEqual(readdirSync(blobs), [sha256(data)]);
    assert.equal(await hashOf(join(blobs, sha256(data))), sha256(data));
    hub.stop();
});

await runTests();
