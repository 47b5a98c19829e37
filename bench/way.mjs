/**
 * The way of a request inside the server, against another build of it: processor time of the loop
 * thread for a request, and the time from the last byte of the body to the engine's inbox.
 *
 *     node bench/way.mjs build/parley BASE/build/parley [-m DIR] [--rounds 30] [--only NAME] [--json]
 *
 * Both servers run side by side and take turns, so what else the machine does hits both; each
 * computes with one thread, so that the others have a core. The bodies
 * are a text of 1 KiB, one of 64 KiB, and a history of about 8,000 tokens of which all but the last
 * message is in the prefix cache. The texts are the manual's own, so that words come again as they do
 * in prose.
 *
 * Both times are told from outside, so that any build can be measured. The inbox: the reply says how
 * long the first token took from there (timings.ttft_ms), so it is the time to that token, which the
 * client sees, less what the reply says; getting the token to the client, a tenth of a millisecond, is
 * part of it. The loop thread: its processor time from the kernel. Medians, and the quickest tenth,
 * to which other programs have added least. Node built-ins only; Linux.
 */
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';

import { startServer } from '../tests/server/client.mjs';

const option = (name, otherwise) => {
    const at = process.argv.indexOf(name);
    return at > 0 ? process.argv[at + 1] : otherwise;
};
const rounds = Number(option('--rounds', 30));
const model = option('-m', 'assets/seedling');
const at = (numbers, share) => [...numbers].sort((a, b) => a - b)[Math.floor((numbers.length - 1) * share)];

/** CPU time of the main thread, which is the loop, in ms. */
function loopMs(pid) {
    const text = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8');
    return Number(text.split(' ')[0]) / 1e6;
}

/** Sends a body; resolves to the ms from then to the engine's inbox. */
function ask(server, path, body, agent) {
    return new Promise((resolve, reject) => {
        const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
        const request = http.request({ host: '127.0.0.1', port: server.port, path, method: 'POST', headers, agent });
        const sent = performance.now();
        let text = '', ms = null;
        request.on('error', reject);
        request.on('response', (reply) => {
            reply.on('data', (data) => {
                text += data;
                const timings = /"ttft_ms":([0-9.]+)/.exec(text);
                ms ??= timings && performance.now() - sent - Number(timings[1]);
            });
            reply.on('end', () => (reply.statusCode === 200 && ms !== null ? resolve(ms) : reject(new Error(`${reply.statusCode}: ${text}`))));
        });
        request.end(body);
    });
}

const manual = ['api', 'architecture', 'limits', 'performance', 'adding-a-model'].map((name) => readFileSync(fileURLToPath(new URL(`../docs/${name}.md`, import.meta.url)), 'utf8')).join('\n');
const chat = (messages) => JSON.stringify({ stream: true, max_tokens: 1, temperature: 0, timings_per_token: true, messages });
let asked = 0;
const text = (bytes) => `${++asked} ${manual}`.slice(0, bytes);
const history = Array.from({ length: 40 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `${i} ${manual.slice(i * 500, i * 500 + 500)}` }));
/* The texts are in a field that no answer is made from, so that computing them takes no time. */
const KINDS = {
    '1 KiB': () => JSON.stringify({ ...JSON.parse(chat([{ role: 'user', content: 'hi' }])), user: text(1024) }),
    '64 KiB': () => JSON.stringify({ ...JSON.parse(chat([{ role: 'user', content: 'hi' }])), metadata: { text: text(65536) } }),
    '8,000 tokens': () => chat([...history, { role: 'user', content: `and ${++asked}?` }]),
};

async function measure({ server, agent }, make) {
    const before = loopMs(server.child.pid);
    const inbox = await ask(server, '/v1/chat/completions', make(), agent);
    return { inbox, loop: loopMs(server.child.pid) - before };
}

const programs = process.argv.slice(2, 4);
const servers = [];
for (const program of programs) {
    /* the second program in place of the first, which the harness names */
    const wrapper = program === programs[0] ? [] : ['sh', '-c', 'shift; exec "$0" "$@"', program];
    const server = await startServer(['serve', '-m', model, '--port', '0', '--ctx-size', '16384', '--parallel', '1', '--threads', '1', '--log-level', 'warn'], {}, wrapper);
    await server.ready();
    servers.push({ server, agent: new http.Agent({ keepAlive: true, maxSockets: 1 }) });
}
const report = {};
for (const [name, make] of Object.entries(KINDS)) {
    if (option('--only', name) !== name) continue;
    const results = servers.map(() => []);
    for (let i = 0; i < rounds + 2; i++) {
        for (const [k, one] of servers.entries()) {
            const result = await measure(one, make);
            if (i >= 2) results[k].push(result); // the first ones fill the cache
        }
    }
    report[name] = {};
    for (const what of ['inbox', 'loop']) {
        const [now, then] = results.map((list) => list.map((r) => r[what]));
        report[name][what] = { median: [at(now, 0.5), at(then, 0.5)], tenth: [at(now, 0.1), at(then, 0.1)] };
    }
}
if (process.argv.includes('--json')) {
    console.log(JSON.stringify(report));
} else {
    console.log('                                median, ms    before  ratio   quickest tenth    before  ratio');
    for (const [name, { inbox, loop }] of Object.entries(report)) {
        for (const [what, { median, tenth }] of [['to the inbox', inbox], ['loop thread', loop]]) {
            const show = ([now, then], width) => `${now.toFixed(3).padStart(width)} ${then.toFixed(3).padStart(9)} ${(then / now).toFixed(2).padStart(6)}`;
            console.log(`${name.padEnd(14)} ${what.padEnd(14)} ${show(median, 12)} ${show(tenth, 16)}`);
        }
    }
}
for (const { server, agent } of servers) {
    agent.destroy();
    await server.stop();
}
