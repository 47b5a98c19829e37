/**
 * Three real Parleys behind one address: how many second turns find their conversation in the prefix cache, also while one
 * of the three is killed and comes back.
 *
 *     build/random_model --shape seedling --layers 4 DIR
 *     node bench/replicas.mjs build/parley DIR parley|haproxy|blind [users] [tokens] [at once] [balance factor]
 *
 * parley: a Parley with --upstream in front; haproxy: HAProxy with packaging/haproxy.cfg, perhaps with another
 * hash-balance-factor; blind: each request goes to one of them by chance. Prints a row a turn; a hit is a prompt of which all but
 * what is new was cached. Users take their turns in one order, so many at a time. About 3 GiB.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, post, request, sleep, startServer } from '../tests/server/client.mjs';

const [MODEL, KIND = 'parley', USERS = 60, TOKENS = 8000, AT_ONCE = 6, FACTOR] = process.argv.slice(3);
const NEW_TOKENS = 200; // at most so many of a later turn are new
const folder = mkdtempSync(join(tmpdir(), 'parley-replicas-'));
const freePort = () => new Promise((resolve) => { const s = createServer().listen(0, '127.0.0.1', () => { const { port } = s.address(); s.close(() => resolve(port)); }); });
const ports = [await freePort(), await freePort(), await freePort()];
const start = async (port) => {
    const server = await startServer(['-m', MODEL, '--port', String(port), '-t', '1', '-c', '16384', '--parallel', '4', '--cache-ram', '800', '--drain-timeout', '5'], { PARLEY_CONFIG: 'none' });
    await server.ready();
    return server;
};
const parleys = [];
for (const port of ports) parleys.push(await start(port));
const id = (await request(parleys[0], { path: '/v1/models' })).json().data[0].id;

let model = 'default', proxy, target;
if (KIND === 'parley') {
    const front = await startServer(['--port', '0', '--upstream', `gpu=${ports.map((p) => `http://127.0.0.1:${p}`).join(',')}`], { PARLEY_CONFIG: 'none' });
    await eventually(async () => (await request(front, { path: '/v1/status' })).json().upstreams[0].replicas.map((r) => r.state).join(), 'up,up,up');
    [model, proxy, target] = [`gpu/${id}`, front.child, () => front.port];
} else if (KIND === 'haproxy') {
    const port = await freePort(), file = join(folder, 'haproxy.cfg');
    let text = readFileSync(new URL('../packaging/haproxy.cfg', import.meta.url), 'utf8').replace('bind :8080', `bind 127.0.0.1:${port}`);
    if (FACTOR) text = text.replace(/hash-balance-factor \d+/, `hash-balance-factor ${FACTOR}`);
    ports.forEach((p, i) => { text = text.replace(`127.0.0.1:808${i + 1}`, `127.0.0.1:${p}`); });
    writeFileSync(file, text);
    proxy = spawn('haproxy', ['-f', file, '-db'], { stdio: 'ignore' });
    target = () => port;
    await eventually(async () => (await request({ port }, { path: '/health' })).status, 200);
    await sleep(2500); // its checks
} else {
    target = () => ports[Math.floor(Math.random() * ports.length)];
}

const WORDS = ['river', 'stone', 'green', 'seven', 'paper', 'light', 'house', 'table'];
const text = (user, n) => Array.from({ length: n }, (_, i) => WORDS[(i * 7 + user * 3 + (i >> 3) * (user + 1)) % 8]).join(' ');
const perWord = (await post(parleys[0], '/tokenize', { content: text(0, 800) })).json().tokens.length / 800;
const chats = Array.from({ length: USERS }, (_, user) => [{ role: 'user', content: `I am user ${user}. ${text(user, Math.round(TOKENS / perWord))} What is 7 plus 5?` }]);

/** One user's next turn. Not answered: why, and whether its answer had begun. */
async function turn(user) {
    const from = performance.now();
    const body = { model, messages: chats[user], max_tokens: 8, temperature: 0, stream: true, stream_options: { include_usage: true } };
    let seen = '', first = 0, begun = false;
    try {
        const reply = await fetch(`http://127.0.0.1:${target()}/v1/chat/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Affinity': `user-${user}` }, body: JSON.stringify(body) });
        if (reply.status !== 200) return { user, why: `${reply.status} ${await reply.text()}` };
        begun = true;
        const decoder = new TextDecoder();
        for await (const piece of reply.body) {
            seen += decoder.decode(piece, { stream: true });
            if (!first && /"(content|reasoning_content)":"[^"]/.test(seen)) first = performance.now() - from;
        }
    } catch (e) {
        return { user, begun, why: String(e.cause ?? e) };
    }
    const events = seen.split('\n').filter((line) => line.startsWith('data: {')).map((line) => JSON.parse(line.slice(6)));
    const error = events.find((e) => e.error)?.error, usage = events.find((e) => e.usage?.prompt_tokens)?.usage;
    if (error || !usage) return { user, begun, why: error?.message ?? 'no end' };
    const content = events.map((e) => e.choices?.[0]?.delta?.content ?? '').join('');
    chats[user].push({ role: 'assistant', content }, { role: 'user', content: `And ${user} plus 4?` });
    const prompt = usage.prompt_tokens, cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    return { user, prompt, ms: first, hit: cached > prompt - NEW_TOKENS };
}

async function round(name, during) {
    const order = chats.map((_, i) => i), seen = [], from = performance.now();
    const worker = async () => { while (order.length) seen.push(await turn(order.shift())); };
    await Promise.all([...Array.from({ length: AT_ONCE }, worker), during?.()]);
    const ok = seen.filter((s) => s.prompt), hits = ok.filter((s) => s.hit), failed = seen.filter((s) => !s.prompt);
    const ms = hits.map((s) => s.ms).sort((a, b) => a - b);
    console.log(`${name}: ${ok.length} of ${USERS} answered, ${hits.length} hits (${(100 * hits.length / USERS).toFixed(1)} %), prompts of ${ok[0]?.prompt} tokens; first token of hits ${ms[ms.length >> 1]?.toFixed(0) ?? '-'} ms in the middle, ${ms[Math.floor(ms.length * 0.9)]?.toFixed(0) ?? '-'} in 9 of 10; ${((performance.now() - from) / 1000).toFixed(0)} s`);
    for (const one of failed) console.log(`    user ${one.user}, ${one.begun ? 'had begun' : 'NOT BEGUN'}: ${one.why}`);
}

await round('turn 1');
await round('turn 2');
if (KIND !== 'blind') {
    await round('turn 3');
    await round('turn 4, one is killed', async () => { await sleep(300); parleys[1].child.kill('SIGKILL'); });
    await round('turn 5, with two');
    parleys[1] = await start(ports[1]);
    await sleep(3000); // it is found again
    await round('turn 6, it is back');
    await round('turn 7');
}
proxy?.kill('SIGTERM');
for (const parley of parleys) await parley.stop();
rmSync(folder, { recursive: true });
process.exit(0);
