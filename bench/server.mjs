/**
 * What clients of the running program see: time to the first token, time between events with text,
 * tokens a second, with 1, 4 and 16 of them at once; and what lies between the engine's own time
 * and theirs.
 *
 *     node bench/server.mjs build/parley [-m DIR] [--words 200] [--tokens 128] [--rounds 3]
 *                           [--beside '--no-sandbox'] [--json]
 *
 * Each client asks its own question (no prefix is shared but the template's) over HTTP and reads
 * server-sent events. Numbers of clients take turns; medians over rounds are printed. With --beside
 * a second server that has these options takes turns with the first, and medians of the rounds'
 * ratios are printed, too. Node built-ins only.
 */
import http from 'node:http';
import { performance } from 'node:perf_hooks';

import { post, startServer } from '../tests/server/client.mjs';

const option = (name, otherwise) => {
    const at = process.argv.indexOf(name);
    return at > 0 ? process.argv[at + 1] : otherwise;
};
const words = Number(option('--words', 200));
const tokens = Number(option('--tokens', 128));
const rounds = Number(option('--rounds', 3));
const model = option('-m', 'assets/seedling');
const CLIENTS = [1, 4, 16];
const WORDS = ['red', 'circle', 'and', 'blue', 'square', 'near', 'green', 'star', 'seven', 'birds', 'over', 'house'];

/** The q-th part of numbers, 0 <= q <= 1. */
const quantile = (numbers, q) => [...numbers].sort((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * q))];

let asked = 0;
const endless = {}; // answers end by their length alone

function question() {
    let state = ++asked * 2654435761;
    const text = Array.from({ length: words }, () => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return WORDS[state % WORDS.length];
    });
    return `${asked}. ${text.join(' ')}. Tell me about it.`;
}

/** One answer: when it was asked for, when each event with text came, and what the server says of
 * it (times in ms). */
function ask(server) {
    const body = JSON.stringify({
        model: 'm',
        stream: true,
        stream_options: { include_usage: true },
        temperature: 0,
        max_tokens: tokens,
        logit_bias: endless,
        messages: [{ role: 'user', content: question() }],
    });
    return new Promise((resolve, reject) => {
        const answer = { asked: performance.now(), at: [], usage: null, timings: null };
        const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
        const request = http.request({ host: '127.0.0.1', port: server.port, path: '/v1/chat/completions', method: 'POST', headers, agent: false });
        request.on('error', reject);
        request.on('response', (reply) => {
            let rest = '';
            reply.setEncoding('utf8');
            reply.on('data', (data) => {
                const now = performance.now();
                const lines = (rest + data).split('\n');
                rest = lines.pop();
                for (const line of lines) {
                    if (!line.startsWith('data: {')) continue;
                    const event = JSON.parse(line.slice(6));
                    const delta = event.choices?.[0]?.delta;
                    if (delta?.content || delta?.reasoning_content) answer.at.push(now);
                    answer.usage = event.usage ?? answer.usage;
                    answer.timings = event.timings ?? answer.timings;
                }
            });
            reply.on('end', () => (reply.statusCode === 200 ? resolve(answer) : reject(new Error(`status ${reply.statusCode}`))));
        });
        request.end(body);
    });
}

function summary(answers) {
    const first = answers.map((a) => a.at[0] - a.asked);
    const gaps = answers.flatMap((a) => a.at.slice(1).map((t, i) => t - a.at[i]));
    const begin = Math.min(...answers.map((a) => a.at[0]));
    const end = Math.max(...answers.map((a) => a.at.at(-1)));
    const said = answers.reduce((n, a) => n + a.usage.completion_tokens, 0);
    return {
        ttft: quantile(first, 0.5),
        ttft95: quantile(first, 0.95),
        gap: quantile(gaps, 0.5),
        gap95: quantile(gaps, 0.95),
        rate: (said * 1000) / (end - begin),
    };
}

async function start(more) {
    const server = await startServer(['serve', '-m', model, '--port', '0', '--parallel', '16', '--queue', '64', '--no-mtp', ...more], { PARLEY_CONFIG: 'none' });
    await server.ready();
    return server;
}

const beside = option('--beside', '').split(' ').filter(Boolean);
const servers = [await start([])];
if (beside.length) servers.push(await start(beside));
const results = servers.map(() => new Map(CLIENTS.map((n) => [n, []])));
for (const end of ['<|im_end|>', '<|endoftext|>']) {
    const reply = await post(servers[0], '/tokenize', { content: end, parse_special: true });
    endless[JSON.parse(reply.body).tokens[0]] = -100;
}
for (const server of servers) await ask(server); // the first answer touches all weights
for (let round = 0; round < rounds; round++) {
    for (const n of CLIENTS) {
        const order = servers.map((_, i) => (i + round) % servers.length);
        for (const i of order) {
            const answers = await Promise.all(Array.from({ length: n }, () => ask(servers[i])));
            results[i].get(n).push(summary(answers));
        }
    }
}
for (const server of servers) await server.stop();

const rows = CLIENTS.map((n) => {
    const all = results[0].get(n);
    const median = (key) => quantile(all.map((r) => r[key]), 0.5);
    const ratio = (key, others) => Number(quantile(all.map((r, i) => r[key] / others[i][key]), 0.5).toFixed(3));
    return {
        clients: n,
        ...Object.fromEntries(['ttft', 'ttft95', 'gap', 'gap95', 'rate'].map((key) => [key, Number(median(key).toFixed(2))])),
        of_one: ratio('rate', results[0].get(1)),
        ...(beside.length && { of_beside: { ttft: ratio('ttft', results[1].get(n)), rate: ratio('rate', results[1].get(n)) } }),
    };
});
if (process.argv.includes('--json')) {
    console.log(JSON.stringify({ model, words, tokens, rounds, rows }, null, 1));
} else {
    console.log(`${model}: questions of ${words} words, ${tokens} tokens each, medians of ${rounds} rounds`);
    console.log('clients  first token ms (p95)     between events ms (p95)   tokens/s in all  of one');
    for (const r of rows) {
        const first = `${r.ttft} (${r.ttft95})`.padEnd(24);
        const gap = `${r.gap} (${r.gap95})`.padEnd(25);
        const other = r.of_beside ? `, of ${beside.join(' ')}: first token ${r.of_beside.ttft}x, tokens/s ${r.of_beside.rate}x` : '';
        console.log(`${String(r.clients).padStart(7)}  ${first} ${gap} ${String(r.rate).padStart(9)}        ${r.of_one.toFixed(2)}x${other}`);
    }
}
