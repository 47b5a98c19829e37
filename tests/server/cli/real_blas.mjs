/** Which kernels OpenBLAS is started with, and what is said of it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PROGRAM, runTests, test } from '../client.mjs';

const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PARLEY_|OPENBLAS_)/.test(name)));
const doctor = spawnSync(PROGRAM, ['doctor'], { encoding: 'utf8', env: clean }).stdout;
if (/has a sanitizer/.test(doctor) || !/\bavx2\b/.test(readFileSync('/proc/cpuinfo', 'utf8'))) {
    console.log('skipped: nothing can be preloaded under a sanitizer, and only processors with AVX2 are told');
    process.exit(77);
}
const old = join(dirname(PROGRAM), 'old_blas.so');
assert.ok(existsSync(old), `${old} is not built`);

/** What `parley serve --check` says of the computing. */
function check(args, env) {
    const run = spawnSync(PROGRAM, ['serve', '--check', ...args], { encoding: 'utf8', env: { ...clean, PARLEY_CONFIG: 'none', ...env } });
    assert.equal(run.status, 0, run.stderr);
    return run.stdout + run.stderr;
}

test('products of prompts: our own tiles, or OpenBLAS where exactness is asked for, and it is said', () => {
    assert.match(check([], {}), /prompts and images by own kernels/);
    assert.match(check(['--cpu', 'avx2', '--compute', 'exact'], {}), /avx2, \d+ threads?, float products of prompts and images by OpenBLAS (?!Prescott)\w+/);
});

test('an OpenBLAS that does not know the processor is started again with the right kernels', () => {
    const exact = ['--cpu', 'avx2', '--compute', 'exact'];
    assert.match(check(exact, { LD_PRELOAD: old }), /by OpenBLAS (Haswell|Zen|SkylakeX)\b/);
    assert.match(check(exact, { LD_PRELOAD: old, OPENBLAS_CORETYPE: 'Haswell' }), /by OpenBLAS (Haswell|Zen)\b/);
    assert.match(check(exact, { OPENBLAS_CORETYPE: 'Prescott' }), /by OpenBLAS Prescott\b/, 'what is set stays');
});

await runTests();
