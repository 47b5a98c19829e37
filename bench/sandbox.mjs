/**
 * What the sandbox costs: two servers beside each other, one with `--no-sandbox`, answer the same short chats in turns,
 * a few on this one and a few on that one, whose order is drawn anew for each pair. What else the machine does meets both.
 * On which processor the threads of a server come to lie makes more of a difference than the sandbox: both compute with
 * one thread, and are started anew every few pairs.
 *
 *     node bench/sandbox.mjs build/parley [--starts 20] [--pairs 10] [--chats 4] [--seconds 80] [--null]
 *
 * Prints the ratio with : without of the least that a turn took in each start, its median over the starts, and where that lies with 95 %
 * confidence (bootstrap over the starts), for the time to the first token, the time of a chat, and the processor time of
 * the server. --null: both servers are without a sandbox, which tells what this cannot see. Node built-ins only.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { makeRandom, rawSocket, startServer } from '../tests/server/client.mjs';

function option(name, otherwise) {
    const at = process.argv.indexOf(name);
    return at > 0 ? Number(process.argv[at + 1]) : otherwise;
}
const [starts, pairs, chats, seconds] = [option('--starts', 20), option('--pairs', 10), option('--chats', 4), option('--seconds', 80)];
const random = makeRandom(1);
const running = new Set();
process.on('exit', () => running.forEach((server) => server.child.kill('SIGKILL')));
const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
const median = (numbers) => quantile(Float64Array.from(numbers).sort(), 0.5);

/** Processor time of a process in ms. */
function used(pid) {
    const threads = readdirSync(`/proc/${pid}/task`);
    return threads.reduce((sum, id) => sum + Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ')[0]), 0) / 1e6;
}

async function start(...more) {
    const server = await startServer(['serve', '-m', 'assets/seedling', '--port', '0', '--threads', '1', ...more], { PARLEY_CONFIG: 'none' });
    running.add(server);
    await server.ready();
    return server;
}

/** A streamed chat: [ms to its first token, ms to its end]. */
async function ask(server, n) {
    const body = JSON.stringify({ messages: [{ role: 'user', content: `What is ${n % 90} plus 7?` }], temperature: 0, max_tokens: 12, enable_thinking: false, stream: true });
    const begin = performance.now();
    const raw = rawSocket(server);
    raw.send(`POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await raw.until((data) => /"content":"[^"]/.test(data));
    const first = performance.now() - begin;
    if (!(await raw.until((data) => data.includes('[DONE]')))) throw new Error(`no whole answer: ${raw.data}`);
    raw.socket.destroy();
    return [first, performance.now() - begin];
}

/** What a few chats take: sums of ms. */
async function turn(server, at) {
    const before = used(server.child.pid);
    const sums = [0, 0, 0];
    for (let i = 0; i < chats; i++) {
        const [first, whole] = await ask(server, at * chats + i);
        sums[0] += first;
        sums[1] += whole;
    }
    sums[2] = used(server.child.pid) - before;
    return sums;
}

const isNull = process.argv.includes('--null');
const first = isNull ? ['--no-sandbox'] : [];
const rows = []; // of a start: the least that a turn of each took
for (const begin = performance.now(); rows.length < starts && performance.now() - begin < 1000 * seconds; ) {
    const servers = [];
    for (const which of random() < 0.5 ? [0, 1] : [1, 0]) servers[which] = await start(...(which ? ['--no-sandbox'] : first));
    for (const server of servers) await turn(server, 0); // the first answers touch all weights
    const least = [[Infinity, Infinity, Infinity], [Infinity, Infinity, Infinity]];
    for (let i = 0; i < pairs; i++) {
        for (const which of random() < 0.5 ? [0, 1] : [1, 0]) (await turn(servers[which], i)).forEach((ms, k) => (least[which][k] = Math.min(least[which][k], ms)));
    }
    rows.push(least);
    for (const server of servers) await server.stop();
    running.clear();
}
console.log(`${rows.length} starts of ${pairs} pairs of ${chats} chats, ${isNull ? 'both without the sandbox' : 'with the sandbox : without it'}`);
for (const [k, name] of ['first token', 'whole chat', 'processor time'].entries()) {
    const ratios = rows.map(([on, off]) => on[k] / off[k]);
    const drawn = Array.from({ length: 4000 }, () => median(ratios.map(() => ratios[Math.floor(random() * ratios.length)]))).sort((a, b) => a - b);
    console.log(`${name.padEnd(15)} ${(median(rows.map(([, off]) => off[k])) / chats).toFixed(2)} ms without, ${median(ratios).toFixed(4)} (${quantile(drawn, 0.025).toFixed(4)} to ${quantile(drawn, 0.975).toFixed(4)})`);
}
process.exit();
