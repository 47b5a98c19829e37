/**
 * What standing in front of another server costs: first token and processor time beside the same stream without Parley,
 * and the memory of many streams at once. The other server is a double that streams at a set rate.
 *
 *     node bench/upstream.mjs build/parley [rounds]
 *
 * Prints the first token in turns (direct, through Parley), the share of a core at 1,000 tokens a second through one
 * connection, over HTTP and over a WebSocket, and bytes a stream of 500 at once.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, request, Agent } from 'node:http';
import { Socket } from '../tests/server/client.mjs';

const PROGRAM = process.argv[2], ROUNDS = Number(process.argv[3] ?? 200), STREAMS = 500;
const agent = new Agent({ keepAlive: true, maxSockets: 2000 });

/** A stream of n tokens, one every ms; 0: all at once. */
const source = createServer((req, res) => {
    let text = '';
    req.on('data', (data) => (text += data));
    req.on('end', async () => {
        res.setHeader('Content-Type', req.method === 'GET' ? 'application/json' : 'text/event-stream');
        if (req.method === 'GET') return res.end('{"object":"list","data":[{"id":"m","owned_by":"vllm"}]}');
        const { messages } = JSON.parse(text);
        const [n, ms] = messages.at(-1).content.split(' ').map(Number);
        const chunk = (delta, finish = null) => `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
        res.write(chunk({ role: 'assistant', content: '' }));
        const from = performance.now();
        for (let i = 0; i < n; i++) {
            while (ms && performance.now() - from < i * ms) await new Promise((resolve) => setTimeout(resolve, 1));
            res.write(chunk({ content: ' token' }));
        }
        res.end(`${chunk({}, 'stop')}data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 3, completion_tokens: n, total_tokens: n + 3 } })}\n\ndata: [DONE]\n\n`);
    });
});
await new Promise((resolve) => source.listen(0, '127.0.0.1', resolve));
const direct = source.address().port;
const child = spawn(PROGRAM, ['--port', '0', '--upstream', `x=http://127.0.0.1:${direct}`, '--max-conns', '2000', '--max-conns-per-ip', '2000'], { stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, PARLEY_CONFIG: 'none' } });
const front = await new Promise((resolve) => child.stdout.on('data', (data) => /:(\d+)\//.exec(data) && resolve(Number(/:(\d+)\//.exec(data)[1]))));
process.on('exit', () => child.kill('SIGKILL'));

/** Streams an answer; ms to the first token and to the end, and the tokens that came. */
function ask(port, words) {
    return new Promise((resolve, reject) => {
        const body = JSON.stringify({ model: port === direct ? 'm' : 'x/m', stream: true, messages: [{ role: 'user', content: words }] });
        const from = performance.now();
        let first = 0, tokens = 0, rest = '';
        const req = request({ port, host: '127.0.0.1', path: '/v1/chat/completions', method: 'POST', agent, headers: { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) } }, (res) => {
            res.setEncoding('utf8');
            res.on('data', (data) => {
                const n = `${rest}${data}`.split(' token').length - 1;
                rest = data.slice(-6);
                if (n && !first) first = performance.now() - from;
                tokens += n;
            });
            res.on('end', () => (res.statusCode === 200 ? resolve({ first, all: performance.now() - from, tokens }) : reject(new Error(`status ${res.statusCode}`))));
        });
        req.on('error', reject);
        req.end(body);
    });
}
/** Streams an answer of n tokens over a WebSocket; ms to its end, and the tokens that came. */
async function askSocket(words, n) {
    const socket = await Socket.open({ port: front }, { protocols: 'parley.v1' });
    const from = performance.now();
    socket.send({ type: 'response.create', model: 'x/m', input: words, stream_id: 'a' });
    await socket.wait('response.completed', 60000);
    const all = performance.now() - from;
    const tokens = socket.messages.filter((m) => m.type === 'response.output_text.delta').map((m) => m.delta).join('').split(' token').length - 1;
    socket.destroy();
    if (tokens !== n) throw new Error(`${tokens} tokens of ${n}`);
    return { all, tokens };
}
const share = (list, part) => list.sort((a, b) => a - b)[Math.floor(list.length * part)].toFixed(2);
const cpu = () => readdirSync(`/proc/${child.pid}/task`).reduce((s, t) => s + Number(readFileSync(`/proc/${child.pid}/task/${t}/schedstat`, 'utf8').split(' ')[0]), 0) / 1e9;
const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))[1]) * 1024;

for (let i = 0; i < 100 && !(await fetch(`http://127.0.0.1:${front}/v1/models`).then((r) => r.text())).includes('x/m'); i++) await new Promise((resolve) => setTimeout(resolve, 50));
const times = { direct: [], parley: [], more: [] };
for (let i = 0; i < ROUNDS + 20; i++) {
    const a = (await ask(direct, '4 0')).first, b = (await ask(front, '4 0')).first;
    if (i >= 20) { times.direct.push(a); times.parley.push(b); times.more.push(b - a); }
}
const ms = (list) => `${share(list, 0.5)} ms in the middle, ${share(list, 0.9)} in 9 of 10`;
console.log(`first token, ${ROUNDS} in turns: direct ${ms(times.direct)}; through Parley ${ms(times.parley)}; more ${ms(times.more)}`);

const idle = cpu(), idleAt = performance.now();
await new Promise((resolve) => setTimeout(resolve, 3000));
const base = (cpu() - idle) / ((performance.now() - idleAt) / 1000);
for (const [name, flow] of [['HTTP', () => ask(front, '15000 1')], ['a WebSocket', () => askSocket('15000 1', 15000)]]) {
    const before = cpu(), { all, tokens } = await flow();
    console.log(`${(1000 * tokens / all).toFixed(0)} tokens/s through one connection over ${name}: ${(100 * ((cpu() - before) / (all / 1000) - base)).toFixed(2)} % of a core (${(100 * base).toFixed(2)} % without)`);
}

const empty = rss();
const streams = [];
while (streams.length < STREAMS) { // as bodies are read, so that none is refused
    streams.push(ask(front, '300 100'));
    await new Promise((resolve) => setTimeout(resolve, 4));
}
const all = Promise.all(streams);
await new Promise((resolve) => setTimeout(resolve, 2000));
const full = rss(), status = await fetch(`http://127.0.0.1:${front}/v1/status`).then((r) => r.json());
const ended = await all;
console.log(`${status.upstreams[0].replicas[0].running} streams at once on one thread: ${((full - empty) / STREAMS / 1024).toFixed(1)} KiB a stream; ${ended.filter((one) => one.tokens === 300).length} of ${STREAMS} whole`);
process.exit(0);
