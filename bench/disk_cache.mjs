/**
 * What --cache-disk saves: the time until an answer begins, of a long conversation that no server
 * has seen and of the same one with another question after a restart, its files in the system's
 * memory and dropped from it.
 *
 *     node bench/disk_cache.mjs build/parley -m DIR [--words 4000] [--rounds 3]
 *
 * Node built-ins only. Files are dropped by dd (coreutils).
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';

import { post, request, startServer } from '../tests/server/client.mjs';

const option = (name, otherwise) => {
    const at = process.argv.indexOf(name);
    return at > 0 ? process.argv[at + 1] : otherwise;
};
const words = Number(option('--words', 4000));
const rounds = Number(option('--rounds', 3));
const folder = mkdtempSync(join(tmpdir(), 'parley-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const start = () =>
    startServer(['serve', '-m', option('-m', 'assets/seedling'), '--port', '0', '-c', option('-c', '12288'), '--temp', '0',
        '--parallel', '1', '--log-level', 'warn', '--cache-disk', folder]);

async function ask(server, messages) {
    const asked = performance.now();
    const reply = await post(server, '/v1/chat/completions', { messages, max_tokens: 1 }, { Connection: 'close' });
    const ms = performance.now() - asked;
    if (reply.status !== 200) throw new Error(reply.text);
    const { usage } = reply.json();
    return { ms, prompt: usage.prompt_tokens, cached: usage.prompt_tokens_details.cached_tokens };
}

const text = Array.from({ length: words }, (_, i) => ['red', 'circle', 'blue', 'star', 'birds', 'house'][(i * i + (i >> 3)) % 6]).join(' ');
const talk = (n) => [
    { role: 'user', content: text },
    { role: 'assistant', content: 'A house.' },
    { role: 'user', content: `And number ${n}?` },
];

let server = await start();
const cold = await ask(server, talk(0));
const stopping = performance.now();
await server.stop();
const names = readdirSync(folder);
const size = names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
console.log(`cold: ${cold.prompt} tokens, ${cold.ms.toFixed(0)} ms; ${names.length} files, ${(size / 2 ** 20).toFixed(0)} MiB, written within ${(performance.now() - stopping).toFixed(0)} ms of the end`);
for (const [how, drops] of [['files in memory', false], ['files dropped', true]]) {
    const times = [];
    let kept;
    for (let i = 0; i < rounds; i++) {
        if (drops) for (const name of readdirSync(folder)) spawnSync('dd', [`of=${join(folder, name)}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0', 'status=none']);
        server = await start();
        await request(server, { path: '/health' });
        kept = await ask(server, talk(1 + i + (drops ? rounds : 0)));
        times.push(kept.ms);
        await server.stop();
    }
    const median = times.sort((a, b) => a - b)[rounds >> 1];
    console.log(`restarted, ${how}: ${kept.cached} of ${kept.prompt} tokens cached, ${median.toFixed(0)} ms, ${(cold.ms / median).toFixed(1)}x shorter`);
}
