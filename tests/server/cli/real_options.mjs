/** Options that the model or another option contradicts: the program ends with exit code 2 and
 * names them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, runTests, test } from '../client.mjs';

const model = fileURLToPath(new URL('../../data/tiny', import.meta.url));

const refused = (args, sentence) =>
    test(args.join(' '), () => {
        const [command, ...options] = args;
        const { status, stderr } = spawnSync(PROGRAM, [command, '-m', model, ...options], { encoding: 'utf8', timeout: 120000 });
        assert.match(stderr, sentence);
        assert.equal(status, 2, stderr);
    });

refused(['serve', '--port', '0', '--ctx-size', '16000000'], /--ctx-size is 16000000; this model takes 256 to \d+/);
refused(['bench', '--ctx-size', '16000000'], /--ctx-size is 16000000; this model takes 256 to \d+/);
refused(['serve', '--parallel', '0'], /--parallel is "0"; it takes a number from 1 to 32/);
refused(['serve', '--api-key', 'a-key-of-enough-letters', '--api-key-file', '/nowhere'], /--api-key and --api-key-file are both given/);
refused(['serve', '--cache-type', 'q5'], /--cache-type is "q5"; it takes f32, bf16, f16, q8 or q4/);
refused(['serve', '--host', '0.0.0.0', '--port', '0'], /everybody who reaches this machine could use this server/);
refused(['serve', '--api-key', 'fifteen-letters'], /shorter than 16 characters/);
for (const [flag, range] of [['max-conns', '1 to 100000'], ['max-conns-per-ip', '1 to 100000'], ['header-timeout', '1 to 3600'], ['body-timeout', '1 to 3600'],
    ['queue-timeout', '1 to 86400'], ['request-timeout', '1 to 864000'], ['keepalive', '1 to 3600'], ['step-timeout', '1 to 86400'], ['ws-ping', '1 to 3600'], ['max-ws-queue', '64 to 1048576'], ['max-header', '2 to 16']]) {
    refused(['serve', `--${flag}`, '0'], new RegExp(`--${flag} is "0"; it takes a number from ${range}`));
}

refused(['serve', '--host', '127.0.0.1,0.0.0.0', '--port', '0'], /--host 0\.0\.0\.0 overlaps another --host/);
refused(['serve', '--host', 'localhost', '--host', '127.0.0.1', '--port', '0'], /--host 127\.0\.0\.1 overlaps another --host/);

test('a key file that everybody can read is warned of', () => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-keys-'));
    const file = join(folder, 'keys');
    writeFileSync(file, 'a-key-of-enough-letters\n');
    for (const [mode, warns] of [[0o604, true], [0o640, false]]) {
        chmodSync(file, mode);
        const { stderr } = spawnSync(PROGRAM, ['serve', '-m', model, '--port', '0', '--ctx-size', '16000000', '--api-key-file', file], { encoding: 'utf8', timeout: 120000 });
        assert.equal(/keys holds API keys, and every user of this machine can read it: chmod 600/.test(stderr), warns, stderr);
    }
    rmSync(folder, { recursive: true });
});

test('--quantize-vision follows --quantize, but not where all is exact', () => {
    const cache = mkdtempSync(join(tmpdir(), 'parley-blocks-'));
    const sets = (...args) => {
        const { status, stderr } = spawnSync(PROGRAM, ['serve', '--check', '-m', model, '--log-level', 'info', ...args],
            { encoding: 'utf8', timeout: 120000, env: { ...process.env, XDG_CACHE_HOME: cache } });
        assert.equal(status, 0, stderr);
        return stderr.match(/\d+ matrices in blocks/g)?.length ?? 0;
    };
    assert.equal(sets(), 0);
    assert.equal(sets('--quantize', 'q8'), 2);
    assert.equal(sets('--quantize', 'q8', '--quantize-vision', 'none'), 1);
    assert.equal(sets('--quantize-vision', 'q8'), 1);
    assert.equal(sets('--quantize', 'q8', '--compute', 'exact'), 1);
    assert.equal(sets('--compute', 'exact', '--quantize-vision', 'q8'), 1);
    rmSync(cache, { recursive: true });
});

test('--mem-limit', () => {
    const check = (...args) => spawnSync(PROGRAM, ['serve', '--check', '-m', model, '--log-level', 'info', ...args], { encoding: 'utf8', timeout: 120000 });
    const small = check('--mem-limit', '700');
    assert.equal(small.status, 0, small.stderr);
    const [, weights, states, requests, sum] = /memory: (\d+) MiB of weights, (\d+) MiB of states and caches, (\d+) MiB for requests: at most (\d+) MiB/.exec(small.stderr).map(Number);
    assert.ok(requests >= 512, small.stderr); // what the others leave
    assert.ok(sum <= 700 && Math.abs(sum - weights - states - requests) <= 2, small.stderr);
    for (const [args, sentence] of [
        [['--mem-limit', '100'], /--mem-limit is 100 MiB; \d+ MiB of weights and 512 MiB for requests do not fit/],
        [['--mem-limit', '700', '--cache-ram', '400'], /MiB are left of --mem-limit/],
    ]) {
        const { status, stderr } = check(...args);
        assert.match(stderr, sentence);
        assert.equal(status, 4, 'exit code of too little memory');
    }
});

test('--max-image-pixels', () => {
    const image = fileURLToPath(new URL('../../../assets/samples/color.png', import.meta.url));
    const run = (pixels) => spawnSync(PROGRAM, ['run', '-n', '1', '--image', image, '--max-image-pixels', pixels, 'what?'], { encoding: 'utf8', timeout: 120000 });
    assert.equal(run('1000000').status, 0);
    const { status, stderr } = run('256');
    assert.notEqual(status, 0);
    assert.match(stderr, /the image is 320 x 240 pixels; that is more than/);
});

await runTests();
