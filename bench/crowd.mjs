/**
 * What a crowd of bad clients costs the others: 500 connections that say nothing, 500 that send a
 * byte a second, 500 that ask for a large file and never read it. Who is hung up comes back at
 * once. Beside each crowd, and without one right before it, good clients ask for short answers.
 *
 *     node bench/crowd.mjs build/parley [--crowd 500] [--asks 60] [--rounds 5] [--only KIND]
 *
 * Prints the 95th percentile of the good clients' whole answers with each crowd, that without, and
 * the median over the rounds of the ratio of both. The crowd has a thread of its own. Node
 * built-ins only.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

/* ---- the crowd ---- */

const HEAD = 'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n';
const CROWDS = {
    silent: () => {},
    /* The head drips, too; it is sent again from its beginning by who comes back. */
    dripping: (socket) => {
        let i = 0;
        const timer = setInterval(() => socket.write(i < HEAD.length ? HEAD[i++] : ' '), 1000);
        socket.on('close', () => clearInterval(timer));
    },
    unread: (socket, path) => {
        socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
        socket.pause();
    },
};

function runCrowd({ port, kind, n, path }) {
    let n_back = 0;
    let n_open = 0;
    function join() {
        const socket = net.connect({ port, host: '127.0.0.1' }, () => {
            n_open += 1;
            CROWDS[kind](socket, path);
            if (n_open === n) parentPort.postMessage('all are there');
        });
        socket.on('error', () => {});
        socket.on('close', () => {
            n_open -= 1;
            n_back += 1;
            setTimeout(join, 100);
        });
    }
    for (let i = 0; i < n; i++) join();
    parentPort.on('message', () => {
        parentPort.postMessage({ n_back, n_open });
        process.exit();
    });
}

/* ---- the others ---- */

function option(name, otherwise) {
    const at = process.argv.indexOf(name);
    return at > 0 ? Number(process.argv[at + 1]) : otherwise;
}
const quantile = (numbers, q) => [...numbers].sort((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * q))];
const CLIENTS = 2;

async function main() {
    const { JSON_TYPE, request, startServer } = await import('../tests/server/client.mjs');
    const [n, asks, rounds] = [option('--crowd', 500), option('--asks', 60), option('--rounds', 5)];
    const dir = mkdtempSync(join(tmpdir(), 'parley-crowd-'));
    process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
    const limits = ['--max-conns', String(n + 100), '--max-conns-per-ip', String(n + 100)];
    const server = await startServer(['serve', '-m', 'assets/seedling', '--port', '0', '--upload-dir', dir, ...limits], { PARLEY_CONFIG: 'none' });
    process.on('exit', () => server.child.kill('SIGKILL'));
    await server.ready();

    const form = Buffer.concat([Buffer.from('--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'), Buffer.alloc(24 << 20, 'x'), Buffer.from('\r\n--b--\r\n')]);
    const file = (await request(server, { method: 'POST', path: '/v1/files', headers: { 'Content-Type': 'multipart/form-data; boundary=b' }, body: form })).json();

    let asked = 0;
    async function measure() {
        const times = [];
        async function client() {
            while (times.length < asks) {
                const body = JSON.stringify({ messages: [{ role: 'user', content: `What is ${asked++ % 90} plus 7?` }], temperature: 0, max_tokens: 12, enable_thinking: false });
                const begin = performance.now();
                const reply = await request(server, { method: 'POST', path: '/v1/chat/completions', headers: JSON_TYPE, body });
                if (reply.status !== 200) throw new Error(`status ${reply.status}: ${reply.text}`);
                times.push(performance.now() - begin);
            }
        }
        await Promise.all(Array.from({ length: CLIENTS }, client));
        return quantile(times, 0.95);
    }

    async function measureBeside(kind) {
        const crowd = new Worker(new URL(import.meta.url), { workerData: { port: server.port, kind, n, path: `/v1/files/${file.id}/content` } });
        const said = () => new Promise((resolve) => crowd.once('message', resolve));
        await said();
        const time = await measure();
        const left = said();
        crowd.postMessage('leave');
        const { n_back, n_open } = await left;
        if (n_open < n / 2) throw new Error(`${kind}: only ${n_open} of ${n} are there at the end`);
        return { time, n_back };
    }

    await measure(); // the first answers touch all weights
    console.log(`95th percentile of ${asks} answers to ${CLIENTS} clients, ${rounds} rounds, ${n} bad connections`);
    const at = process.argv.indexOf('--only');
    for (const kind of at > 0 ? [process.argv[at + 1]] : Object.keys(CROWDS)) {
        const rows = [];
        for (let i = 0; i < rounds; i++) {
            const alone = await measure();
            const { time, n_back } = await measureBeside(kind);
            rows.push({ alone, time, n_back, ratio: time / alone });
        }
        const median = (key) => quantile(rows.map((row) => row[key]), 0.5);
        console.log(`${kind.padEnd(9)} ${median('time').toFixed(1)} ms, without ${median('alone').toFixed(1)} ms: ${median('ratio').toFixed(2)}x (${rows.map((row) => row.ratio.toFixed(2)).join(' ')}); ${median('n_back')} came back in a round`);
    }
    await server.stop();
    process.exit();
}

await (isMainThread ? main() : runCrowd(workerData));
