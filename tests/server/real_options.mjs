/** Options that the model or another option contradicts: the program ends with exit code 2 and names them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { PROGRAM, runTests, test } from './client.mjs';

const model = fileURLToPath(new URL('../data/tiny', import.meta.url));

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
refused(['serve', '--cache-type', 'q5'], /--cache-type is "q5"; it takes f32, bf16, f16 or q8/);

await runTests();
