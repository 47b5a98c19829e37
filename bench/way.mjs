/**
 * The way of a request inside the server, against another build of it: processor time of the loop
 * thread for a request, and the time from the last byte of the body to the engine's inbox.
 *
 *     node bench/way.mjs build/parley BASE/build/parley [-m DIR] [--rounds 30] [--json]
 *
 * Both servers run side by side and take turns, so what else the machine does hits both. The bodies
 * are a text of 1 KiB, one of 64 KiB, and a history of about 8,000 tokens of which all but the last
 * message is in the prefix cache. The way to the inbox is told from outside, so that any build can be
 * measured: it is the time to the head of the stream, which is written when the engine has the
 * request. Node built-ins only; Linux.
 */
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { performance } from 'node:perf_hooks';

import { startServer } from '../tests/server/client.mjs';

const option = (name, otherwise) => {
    const at = process.argv.indexOf(name);
    return at > 0 ? process.argv[at + 1] : otherwise;
};
const rounds = Number(option('--rounds', 30));
const model = option('-m', 'assets/seedling');
/* The quickest tenth: what else the machine does can only add. */
const best = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 10)];

/** CPU time of the main thread, which is the loop, in ms. */
function loopMs(pid) {
    const text = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8');
    return Number(text.split(' ')[0]) / 1e6;
}

/** Sends a body and takes the reply; resolves to the ms from then to the head of the reply. */
function ask(server, path, body, agent) {
    return new Promise((resolve, reject) => {
        const headers = body ? { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) } : {};
        const request = http.request({ host: '127.0.0.1', port: server.port, path, method: body ? 'POST' : 'GET', headers, agent });
        const sent = performance.now();
        request.on('error', reject);
        request.on('response', (reply) => {
            const ms = performance.now() - sent;
            reply.resume();
            reply.on('end', () => (reply.statusCode === 200 ? resolve(ms) : reject(new Error(`${path}: ${reply.statusCode}`))));
        });
        request.end(body);
    });
}

const chat = (messages) => JSON.stringify({ stream: true, max_tokens: 1, temperature: 0, messages });
let asked = 0;
const text = (bytes) => `${++asked} ${'a red circle near the old house '.repeat(bytes / 32)}`.slice(0, bytes);
const history = Array.from({ length: 40 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: `${i} ${'seven birds over the green house '.repeat(32)}` }));
/* The texts are in a field that no answer is made from, so that computing them takes no time. */
const KINDS = {
    '1 KiB': () => JSON.stringify({ ...JSON.parse(chat([{ role: 'user', content: 'hi' }])), user: text(1024) }),
    '64 KiB': () => JSON.stringify({ ...JSON.parse(chat([{ role: 'user', content: 'hi' }])), metadata: { text: text(65536) } }),
    '8,000 tokens': () => chat([...history, { role: 'user', content: `and ${++asked}?` }]),
};

async function measure(server, make, agent) {
    const before = loopMs(server.child.pid);
    const ms = await ask(server, '/v1/chat/completions', make(), agent);
    const loop = loopMs(server.child.pid) - before;
    return { ms, loop };
}

const programs = process.argv.slice(2, 4);
const servers = [];
for (const program of programs) {
    /* the second program in place of the first, which the harness names */
    const wrapper = program === programs[0] ? [] : ['sh', '-c', 'shift; exec "$0" "$@"', program];
    const server = await startServer(['serve', '-m', model, '--port', '0', '--ctx-size', '16384', '--parallel', '1', '--log-level', 'warn'], {}, wrapper);
    await server.ready();
    servers.push({ server, agent: new http.Agent({ keepAlive: true, maxSockets: 1 }) });
}
const report = {};
for (const [name, make] of Object.entries(KINDS)) {
    const results = servers.map(() => []);
    for (let i = 0; i < rounds + 2; i++) {
        for (const [k, { server, agent }] of servers.entries()) {
            const result = await measure(server, make, agent);
            if (i >= 2) results[k].push(result); // the first ones fill the cache
        }
    }
    const [now, then] = results.map((list) => ({ inbox: best(list.map((r) => r.ms)), loop: best(list.map((r) => r.loop)) }));
    report[name] = { now, then };
}
if (process.argv.includes('--json')) {
    console.log(JSON.stringify(report));
} else {
    console.log('body           to the inbox, ms    before   ratio   loop thread, ms    before   ratio');
    for (const [name, { now, then }] of Object.entries(report)) {
        const ratio = (a, b) => (b / a).toFixed(2).padStart(7);
        console.log(`${name.padEnd(14)} ${now.inbox.toFixed(3).padStart(16)} ${then.inbox.toFixed(3).padStart(9)} ${ratio(now.inbox, then.inbox)} ` +
            `${now.loop.toFixed(3).padStart(17)} ${then.loop.toFixed(3).padStart(9)} ${ratio(now.loop, then.loop)}`);
    }
}
for (const { server, agent } of servers) {
    agent.destroy();
    await server.stop();
}
