/**
 * No stream ends in silence: whatever is evicted, cut, cancelled or shut down, the last event says
 * how it ended.
 *
 *     node live_streams.mjs PROGRAM [NAME OF A TEST] [NUMBER OF STREAMS]
 *
 * The first test also runs against the program with a model: node live_streams.mjs build/parley
 * 'many streams' 2000
 */
import assert from 'node:assert/strict';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, Socket, chat, eventually, events, parseReply, post, rawSocket, request, runTests, sleep, startServer, test } from '../client.mjs';

const N = Number(process.argv[4] ?? 3000);
const KEYS = Array.from({ length: 4 }, (_, i) => `the-key-number-${i}-of-the-test`);
const IS_REAL = basename(PROGRAM) === 'parley';
const auth = (key) => ({ Authorization: `Bearer ${key}` });
const keyed = (key, name) => ({ ...auth(key), ...(name ? { 'Idempotency-Key': name } : {}) });

/** What only the end of a stream has. An error is an end, too, but is counted apart. */
const isEnded = (text) => /data: \[DONE\]\n\n$|event: message_stop\ndata: .*\n\n$|event: response\.(completed|incomplete|failed)\ndata: .*\n\n$/.test(text.slice(-200000));
const isError = (text) => /(^|\n\n)(event: error\n)?data: \{("error"|"type":"error").*\n\n$/.test(text.slice(-4000));

/** A connection that is kept for many requests, one behind the other. It is opened with the first:
 * one that asks for nothing is closed after --header-timeout. */
class Line {
    constructor(server) {
        this.server = server;
    }

    /** The status and the text of a streamed reply; *cut*: the connection ended in front of its
     * end. */
    async post(path, value, headers) {
        if (!this.raw || this.raw.closed) this.raw = rawSocket(this.server);
        const body = JSON.stringify(value);
        let head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${this.server.port}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`;
        for (const [name, text] of Object.entries(headers)) head += `${name}: ${text}\r\n`;
        this.raw.send(`${head}\r\n${body}`);
        const isWhole = (d) => d.includes('\r\n0\r\n\r\n') || (/^HTTP\/1.1 [345]/.test(d.subarray(0, 12)) && d.includes('\r\n\r\n') && d.at(-1) === 0x7d);
        const whole = await this.raw.until(isWhole, 120000);
        const data = this.raw.data.toString();
        const reply = whole ? parseReply(this.raw.data) : null;
        this.raw.data = Buffer.alloc(0);
        return { status: Number(data.slice(9, 12)), text: reply?.body.toString() ?? '', data, isCut: !reply };
    }
}

const PROTOCOLS = [
    ['/v1/chat/completions', (text) => ({ messages: [{ role: 'user', content: text }], max_tokens: 16 })],
    ['/v1/completions', (text) => ({ prompt: text, max_tokens: 16 })],
    ['/v1/messages', (text) => ({ messages: [{ role: 'user', content: text }], max_tokens: 16 })],
    ['/v1/responses', (text) => ({ input: text, max_output_tokens: 16 })],
];

test(`many streams: each of ${N} has its end`, async () => {
    const model = fileURLToPath(new URL('../../../assets/seedling', import.meta.url));
    const server = await startServer(IS_REAL ? ['serve', '-m', model, '--port', '0', ...KEYS.flatMap((key) => ['--api-key', key])] : KEYS.flatMap((key) => ['--key', key]), { PARLEY_CONFIG: 'none' });
    await server.ready();
    const seen = { ended: 0, errors: 0, silent: [], evicted: 0, repeats: 0, other: [] };
    let next = 0;
    const count = (i, reply) => {
        if (reply.status === 200 && isEnded(reply.text)) seen.ended++;
        else if (reply.status === 200 && isError(reply.text)) seen.errors++;
        else if (reply.status === 404 && /_evicted/.test(reply.data)) seen.evicted++;
        else if (reply.status === 200 || reply.isCut) seen.silent.push(`${i}: ${reply.data.slice(-400)}`);
        else seen.other.push(reply.data.slice(0, 400));
    };
    const work = async (worker) => {
        const line = new Line(server);
        const twin = new Line(server);
        while (next < N) {
            const i = next++;
            const [path, make] = PROTOCOLS[i % PROTOCOLS.length];
            const name = i % 4 === 3 || i % 10 < 5 ? `name ${i}` : null;
            const body = { ...make(`number ${i}`), stream: true };
            const headers = keyed(KEYS[(i + worker) % KEYS.length], name);
            if (name && i % 16 === 0 && next < N) { // two clients of one answer
                next++;
                seen.repeats++;
                const both = await Promise.all([line.post(path, body, headers), twin.post(path, body, headers)]);
                both.forEach((reply) => count(i, reply));
                if (both.every((reply) => reply.status === 200)) assert.equal(both[0].text, both[1].text);
            } else count(i, await line.post(path, body, headers));
        }
        line.raw?.socket.destroy();
        twin.raw?.socket.destroy();
    };
    const start = Date.now();
    await Promise.all(Array.from({ length: IS_REAL ? 6 : 16 }, (_, i) => work(i)));
    console.log(`     ${JSON.stringify({ ...seen, silent: seen.silent.length, other: seen.other.length, seconds: (Date.now() - start) / 1000 })}`);
    assert.deepEqual(seen.other, []);
    assert.deepEqual(seen.silent, []);
    assert.equal(seen.ended + seen.errors + seen.evicted, N);
    assert.equal(seen.errors, 0);
    assert.equal(await server.stop(), 0);
});

/* More than the kernel holds for a client that does not read. */
const LARGE = { input: '!len=60000 !fast', max_output_tokens: 60000, include: ['message.output_text.logprobs'], top_logprobs: 1, stream: true };
const httpHead = (server, path, body, more = '') =>
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n${more}\r\n${body}`;

async function flood(server, n, key, path = '/v1/chat/completions') {
    const make = PROTOCOLS.find(([p]) => p === path)[1];
    let next = 0;
    const work = async () => {
        const line = new Line(server);
        while (next < n) {
            const i = next++;
            const reply = await line.post(path, { ...make('hi'), stream: true }, keyed(key, `flood ${i}`));
            assert.ok(isEnded(reply.text), reply.data.slice(-300));
        }
        line.raw?.socket.destroy();
    };
    await Promise.all(Array.from({ length: 16 }, work));
}

test('what is being read stays, whatever else is asked for', async () => {
    const server = await startServer(['--key', KEYS[0], '--key', KEYS[1], '--event-log', '100000000', '--send-timeout', '600']);
    await server.ready();
    const raw = rawSocket(server);
    raw.send(httpHead(server, '/v1/responses', JSON.stringify(LARGE), `Authorization: Bearer ${KEYS[0]}\r\n`));
    assert.ok(await raw.until((d) => d.includes('response.created')));
    raw.socket.pause();
    const ws = await Socket.open(server, { headers: auth(KEYS[0]), protocols: 'parley.v1' });
    ws.send({ type: 'response.create', ...LARGE });
    assert.ok(await ws.wait('response.created'));
    ws.raw.socket.pause();
    await eventually(() => (server.err.match(/ response 200 /g) ?? []).length, 2);
    await flood(server, 600, KEYS[1]);
    await flood(server, 600, KEYS[0]);
    ws.raw.socket.resume();
    raw.socket.resume();
    assert.ok(await raw.until((d) => d.subarray(-5).toString() === '0\r\n\r\n'));
    assert.match(raw.data.toString('utf8'), /event: response\.completed\n/);
    assert.ok(await ws.wait('response.completed'));
    ws.destroy();
    raw.socket.destroy();
    assert.equal(await server.stop(), 0);
});

test('each key has its share, and what goes early is said', async () => {
    const server = await startServer(['--key', KEYS[0], '--key', KEYS[1]]);
    await server.ready();
    const chatBody = { messages: [{ role: 'user', content: 'hi' }], stream: true };
    const first = await post(server, '/v1/chat/completions', chatBody, keyed(KEYS[0], 'kept'));
    const responses = [];
    for (let i = 0; i < 20; i++) responses.push((await post(server, '/v1/responses', { input: 'hi' }, keyed(KEYS[0]))).json());
    const gone = (await post(server, '/v1/responses', { input: 'hi' }, keyed(KEYS[1]))).json();
    await flood(server, 2200, KEYS[1]);
    assert.equal((await post(server, '/v1/chat/completions', chatBody, keyed(KEYS[0], 'kept'))).text, first.text);
    for (const { id } of responses) assert.equal((await request(server, { path: `/v1/responses/${id}`, headers: auth(KEYS[0]) })).status, 200);

    const reply = await request(server, { path: `/v1/responses/${gone.id}`, headers: auth(KEYS[1]) });
    assert.deepEqual([reply.status, reply.json().error.code], [404, 'response_evicted']);
    assert.match(reply.json().error.message, /had to go early/);
    const again = await post(server, '/v1/chat/completions', { ...PROTOCOLS[0][1]('hi'), stream: true }, keyed(KEYS[1], 'flood 0'));
    assert.deepEqual([again.status, again.json().error.code], [404, 'idempotency_reply_evicted']);
    const other = await request(server, { path: `/v1/responses/${gone.id}`, headers: auth(KEYS[0]) });
    assert.equal(other.json().error.code, 'response_not_found');
    const ws = await Socket.open(server, { headers: auth(KEYS[1]), protocols: 'parley.v1' });
    ws.send({ type: 'response.resume', response_id: gone.id });
    assert.equal((await ws.wait('error')).error.code, 'response_evicted');
    ws.destroy();
    assert.equal(await server.stop(), 0);
});

test('what is kept is bounded in bytes', async () => {
    const server = await startServer();
    await server.ready();
    const ids = [];
    for (let i = 0; i < 9; i++) ids.push((await post(server, '/v1/responses', { ...LARGE, stream: false })).json().id);
    const found = await Promise.all(ids.map((id) => request(server, { path: `/v1/responses/${id}` })));
    assert.equal(found.at(-1).status, 200);
    assert.equal(found[0].json().error.code, 'response_evicted');
    assert.equal(await server.stop(), 0);
});

test('who comes late, or finds the log gone, reads the last event all the same', async () => {
    for (const bytes of ['200', '3000']) {
        const server = await startServer(['--event-log', bytes]);
        await server.ready();
        const first = await post(server, '/v1/responses', { input: '!len=4000', stream: true });
        const id = /"response_id":"(resp_\w+)"/.exec(first.text)[1];
        assert.ok(isEnded(first.text), first.text.slice(-300));
        for (const from of [-1, 2, 5]) {
            const late = await request(server, { path: `/v1/responses/${id}?stream=true&starting_after=${from}` });
            assert.ok(isEnded(late.text), late.text.slice(-300));
            const numbers = events(late.text).map((line) => JSON.parse(line).sequence_number);
            numbers.slice(1).forEach((n, i) => assert.equal(n, numbers[i] + 1));
        }
        const ws = await Socket.open(server, { protocols: 'parley.v1' });
        ws.send({ type: 'response.resume', response_id: id });
        const end = await ws.wait('response.completed');
        assert.equal(end.response.output[0].content[0].text.length, 4000);
        ws.destroy();
        assert.equal(await server.stop(), 0);
    }
});

test('who follows the answer of a client that leaves hears how it ends', async () => {
    const server = await startServer();
    await server.ready();
    for (const cancels of [false, true]) {
        const owner = rawSocket(server);
        owner.send(httpHead(server, '/v1/responses', JSON.stringify({ input: '!len=200 !delay=20', stream: true, ...(cancels ? { on_disconnect: 'cancel' } : {}) })));
        assert.ok(await owner.until((d) => /"response_id":"resp_\w+"/.test(d) && d.includes('output_text.delta')));
        const [, id] = /"response_id":"(resp_\w+)"/.exec(owner.data);
        const follower = rawSocket(server);
        follower.send(`GET /v1/responses/${id}?stream=true HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`);
        assert.ok(await follower.until((d) => d.includes('output_text.delta')));
        owner.socket.destroy();
        assert.ok(await follower.until((d) => d.includes('\r\n0\r\n\r\n')));
        assert.match(follower.data.toString(), cancels ? /event: response\.incomplete\n/ : /event: response\.completed\n/);
        follower.socket.destroy();
    }
    await eventually(async () => (await request(server, { path: '/v1/status' })).json().running.length, 0);
    assert.equal(await server.stop(), 0);
});

test('a socket that follows too many is told which response it will not hear of', async () => {
    const server = await startServer(['--drain', '0']);
    await server.ready();
    const others = await Promise.all([1, 2, 3, 4].map(() => Socket.open(server, { protocols: 'parley.v1' })));
    const ids = [];
    for (const ws of others) {
        for (let i = 0; i < 8; i++) ws.send({ type: 'response.create', stream_id: `lane${i}`, input: '!len=8000 !delay=100' });
        for (let i = 0; i < 8; i++) ids.push((await ws.wait('response.created')).response.id);
    }
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    for (const id of ids) ws.send({ type: 'response.resume', response_id: id });
    ws.send({ type: 'response.create', input: 'hi', event_id: 'one too many' });
    const error = await ws.wait('error');
    assert.deepEqual([error.error.code, error.error.event_id], ['websocket_stream_limit_reached', 'one too many']);
    for (const socket of [ws, ...others]) socket.destroy();
    assert.equal(await server.stop(), 0);
});

test('a stream that is not read ends with an error', async () => {
    const server = await startServer(['--max-ws-queue', '65536']);
    await server.ready();
    const raw = rawSocket(server);
    const body = { messages: [{ role: 'user', content: '!len=100000' }], max_tokens: 100000, logprobs: true, top_logprobs: 1, stream: true };
    raw.send(httpHead(server, '/v1/chat/completions', JSON.stringify(body)));
    await raw.until((d) => d.length > 0);
    raw.socket.pause();
    await eventually(() => /its stream is cut/.test(server.err), true);
    const unread = Number(/leaves (\d+) bytes unread/.exec(server.err)[1]);
    assert.ok(unread > 65536 && unread < 2 * 65536, String(unread));
    await eventually(async () => (await request(server, { path: '/v1/status' })).json().running.length, 0); // nobody wants it any more
    raw.socket.resume();
    assert.ok(await raw.until((d) => d.subarray(-5).toString() === '0\r\n\r\n'));
    const text = raw.data.toString().replace(/\r\n[0-9a-f]+\r\n/g, '');
    assert.match(text.slice(-2000), /\n\ndata: \{"error":\{.*"stream_not_read"/);
    for (const line of events(text.slice(text.indexOf('\r\n\r\n') + 4)).slice(1)) JSON.parse(line); // no event is cut short
    raw.socket.destroy();
    assert.equal(await server.stop(), 0);
});

test('the end of the server is said in every stream, in preparation too', async () => {
    const server = await startServer(['--drain', '1']);
    await server.ready();
    const long = '!len=8000 !delay=50';
    const streams = [
        chat(server, long, { stream: true }),
        post(server, '/v1/completions', { prompt: `${'x'.repeat(8000)}`, max_tokens: 8000, stream: true }),
        post(server, '/v1/messages', { messages: [{ role: 'user', content: long }], max_tokens: 8000, stream: true }),
        post(server, '/v1/responses', { input: long, stream: true }),
    ];
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    ws.send({ type: 'response.create', input: long });
    assert.ok(await ws.wait('response.created'));
    await eventually(async () => (await request(server, { path: '/v1/status' })).json().running.length >= 3, true);
    const many = Array.from({ length: 12 }, () => post(server, '/v1/responses', { input: `!slowprep ${long}`, stream: true, return_progress: true }));
    await sleep(300);
    server.child.kill('SIGTERM');
    for (const reply of await Promise.all(streams)) assert.ok(reply.status === 200 && (isEnded(reply.text) || isError(reply.text)), `${reply.status} ${reply.text.slice(-300)}`);
    for (const reply of await Promise.all(many)) assert.ok(reply.status === 503 || isEnded(reply.text), `${reply.status} ${reply.text.slice(-300)}`);
    assert.equal((await ws.wait('response.failed')).response.error.code, 'server_draining');
    assert.equal(await ws.closed(), 1001);
    assert.equal(await server.exited, 0);
});

await runTests();
