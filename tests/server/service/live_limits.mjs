/** The limits of docs/limits.md that no other test goes beyond, and that the page names flags and
 * tests that exist. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Socket, chat, eventually, joinChat, metric, parseReply, post, rawSocket, request, runTests, sleep, startServer, takeProcessor, test } from '../client.mjs';

const root = new URL('../../../', import.meta.url);
const read = (path) => readFileSync(new URL(path, root), 'utf8');

test('docs/limits.md names flags and tests that exist', () => {
    const flags = new Set([...read('docs/options.md').matchAll(/`(?:-\w+`, `)*(--[a-z-]+)/g)].map(([, flag]) => flag));
    assert.ok(flags.size > 40);
    const rows = read('docs/limits.md').split('\n').filter((line) => line.startsWith('|')).slice(2);
    assert.ok(rows.length > 25);
    for (const row of rows) {
        const cells = row.split('|').slice(1, -1).map((cell) => cell.trim());
        assert.equal(cells.length, 5, row);
        for (const [flag] of cells[2].matchAll(/--[a-z-]+/g)) assert.ok(flags.has(flag), `${flag} is no option: ${row}`);
        const tests = [...cells[4].matchAll(/`([\w./]+)`/g)].map(([, path]) => path);
        assert.ok(tests.length > 0, `no test: ${row}`);
        for (const path of tests) assert.ok(existsSync(new URL(`tests/${path}`, root)), `${path}: ${row}`);
    }
});

test('connections, of one address and of all', async () => {
    for (const flag of ['--max-conns', '--max-conns-per-ip']) {
        const server = await startServer([flag, '3', '--header-timeout', '60']);
        const open = Array.from({ length: 3 }, () => rawSocket(server));
        const head = `GET /health HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`;
        for (const raw of open) { // each has its answer, so all are counted
            raw.send(head);
            assert.ok(await raw.until((d) => parseReply(d) !== null));
        }
        const more = rawSocket(server);
        more.send(head);
        assert.ok(await more.untilClosed(10000), `${flag}: the fourth is closed`);
        assert.equal(more.data.length, 0);
        open[0].socket.destroy();
        await eventually(async () => (await request(server, { path: '/health' })).status !== 0, true, 10000);
        open.forEach((raw) => raw.socket.destroy());
        assert.equal(await server.stop(), 0);
    }
});

test('the head of a request', async () => {
    const server = await startServer(['--max-header', '2048']);
    await server.ready();
    const reply = await request(server, { path: '/health', headers: { Cookie: 'x'.repeat(1500) } });
    assert.equal(reply.status, 200);
    const large = await request(server, { path: '/health', headers: { Cookie: 'x'.repeat(3000) } });
    assert.equal(large.status, 431);
    assert.equal(large.json().error.code, 'header_too_large');
    assert.equal((await request(server, { path: '/health' })).status, 200);
    assert.equal(await server.stop(), 0);
});

const LONG = '!delay=50 !len=19000'; // minutes

test('the time to wait for a turn', async () => {
    const server = await startServer(['--queue-timeout', '1']);
    await server.ready();
    const running = await Promise.all(Array.from({ length: 4 }, async () => {
        const ws = await Socket.open(server);
        ws.send({ type: 'response.create', input: LONG });
        await ws.wait('response.output_text.delta', 60000);
        return ws;
    }));
    const [whole, streamed] = await Promise.all([chat(server, 'late'), chat(server, 'late', { stream: true })]);
    assert.equal(whole.status, 503);
    assert.equal(whole.json().error.code, 'queue_timeout');
    assert.ok(Number(whole.headers['retry-after']) > 0);
    assert.match(streamed.text, /"code":"queue_timeout"/);
    running.forEach((ws) => ws.destroy());
    await eventually(() => metric(server, 'parley_requests_running'), 0, 20000);
    assert.equal((await chat(server, 'ping')).status, 200);
    assert.equal(await server.stop(), 0);
});

test('the time of an answer', async () => {
    const server = await startServer(['--request-timeout', '1']);
    await server.ready();
    const ws = await Socket.open(server);
    ws.send({ type: 'response.create', input: LONG });
    const message = { max_tokens: 19000, stream: true, messages: [{ role: 'user', content: LONG }] };
    const [streamed, whole, messages] = await Promise.all([chat(server, LONG, { stream: true }), chat(server, LONG), post(server, '/v1/messages', message)]);
    const failed = await ws.wait('response.failed', 60000);
    assert.equal(failed.response.error.code, 'request_timeout');
    assert.equal(streamed.status, 200);
    const joined = joinChat(streamed.text);
    assert.equal(joined.done, 0);
    assert.equal(joined.chunks.at(-1).error.code, 'request_timeout');
    assert.equal(whole.status, 504);
    assert.equal(whole.json().error.code, 'request_timeout');
    assert.match(messages.text, /event: error\ndata: .*--request-timeout/);
    await eventually(() => metric(server, 'parley_requests_running'), 0, 20000);
    assert.equal((await chat(server, 'ping')).status, 200);
    ws.destroy();
    assert.equal(await server.stop(), 0);
});

test('the time that a request gives its answer', async () => {
    const server = await startServer();
    await server.ready();
    const message = { max_tokens: 19000, timeout: 0.5, messages: [{ role: 'user', content: LONG }] };
    const response = post(server, '/v1/responses', { input: LONG, timeout: 0.5 });
    const replies = await Promise.all([chat(server, LONG, { timeout: 0.5 }), post(server, '/v1/messages', message)]);
    assert.equal((await response).json().error.code, 'request_timeout');
    for (const reply of replies) assert.equal(reply.status, 504, reply.text);
    assert.match(replies[0].json().error.message, /timeout/);
    assert.equal((await chat(server, 'ping', { timeout: 1e5 })).status, 200);
    assert.equal(await server.stop(), 0);
});

test('a computation that stalls', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-stuck-'));
    const until = join(folder, 'goes-on');
    const server = await startServer(['--step-timeout', '1'], { FAKE_STUCK_UNTIL: until });
    await server.ready();
    const watcher = await Socket.open(server, { protocols: 'parley.v1' });
    const slow = await Socket.open(server);
    slow.send({ type: 'response.create', input: LONG });
    await slow.wait('response.output_text.delta', 60000);
    const stream = rawSocket(server);
    const body = JSON.stringify({ messages: [{ role: 'user', content: LONG }], stream: true });
    stream.send(`POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await stream.until((d) => d.includes('"content"'), 60000);
    const whole = await chat(server, '!len=100 !stuck');
    assert.equal(whole.status, 504);
    assert.equal(whole.json().error.code, 'step_timeout');
    assert.ok(await stream.until((d) => d.includes('"code":"step_timeout"') && d.includes('\r\n0\r\n'), 20000), 'the stream ends with its error');
    assert.ok(!stream.data.includes('[DONE]'));
    assert.equal((await slow.wait('response.failed', 20000)).response.error.code, 'step_timeout');

    assert.ok(await watcher.wait((m) => m.type === 'server.status' && m.state === 'stalled', 20000));
    const health = await request(server, { path: '/health' });
    assert.equal(health.status, 503);
    assert.match(health.text, /A computation is stalled/);
    assert.equal((await request(server, { path: '/v1/status' })).json().state, 'stalled');
    const refused = await chat(server, 'ping');
    assert.equal(refused.status, 503);
    assert.equal(refused.json().error.code, 'engine_stalled');
    assert.ok(Number(refused.headers['retry-after']) > 0);

    writeFileSync(until, '');
    await eventually(async () => (await request(server, { path: '/health' })).status, 200, 30000);
    assert.ok(await watcher.wait((m) => m.type === 'server.status' && m.state !== 'stalled', 20000));
    await eventually(() => metric(server, 'parley_requests_running'), 0, 20000);
    assert.equal((await chat(server, 'ping')).json().choices[0].message.content, 'You said: ping');
    for (const ws of [watcher, slow]) ws.destroy();
    stream.socket.destroy();
    rmSync(until);
    assert.equal((await chat(server, '!len=100 !stuck')).status, 504);
    assert.equal(await server.stop(), 1, 'it ends although nobody can wait for that thread');
    rmSync(folder, { recursive: true });
});

test('a preparation that stalls', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-stuck-'));
    const until = join(folder, 'goes-on');
    const server = await startServer(['--step-timeout', '1'], { FAKE_STUCK_UNTIL: until });
    await server.ready();
    const watcher = await Socket.open(server, { protocols: 'parley.v1' });
    const stuck = Array.from({ length: 4 }, (_, i) => chat(server, `!stallprep ${i}`)); // more than there are turns
    assert.ok(await watcher.wait((m) => m.type === 'server.status' && m.state === 'stalled', 20000));
    const health = await request(server, { path: '/health' });
    assert.equal(health.status, 503);
    assert.match(health.text, /The preparation of requests stalls/);
    const { state, preparation } = (await request(server, { path: '/v1/status' })).json();
    assert.deepEqual([state, preparation.stalled], ['stalled', true]);
    assert.ok(preparation.silent_ms > 1000 && preparation.oldest_ms >= preparation.silent_ms, JSON.stringify(preparation));
    const refused = await chat(server, 'ping');
    assert.deepEqual([refused.status, refused.json().error.code], [503, 'preparation_stalled']);
    assert.ok(Number(refused.headers['retry-after']) > 0);

    writeFileSync(until, '');
    for (const reply of await Promise.all(stuck)) assert.equal(reply.status, 200, reply.text);
    await eventually(async () => (await request(server, { path: '/health' })).status, 200, 30000);
    assert.ok(await watcher.wait((m) => m.type === 'server.status' && m.state !== 'stalled', 20000));
    assert.equal((await chat(server, 'ping')).status, 200);
    watcher.destroy();
    assert.equal(await server.stop(), 0);
    rmSync(folder, { recursive: true });
});

test('how much a request may hold', async () => {
    const server = await startServer(['--max-message', '30000', '--max-images', '2']);
    await server.ready();
    const many = (n, item) => Array.from({ length: n }, () => item);
    const user = { role: 'user', content: 'a' };
    const part = { type: 'text', text: 'a' };
    const png = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47]), Buffer.alloc(50), Buffer.from('IEND\0\0\0\0')]);
    const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } };
    const tool = (i) => ({ type: 'function', function: { name: `f${i}` } });
    const bias = (n) => Object.fromEntries(many(n, 0).map((_, i) => [i % 256, 1]));
    const cases = [
        [{ messages: many(1024, user) }, 200], [{ messages: many(1025, user) }, 400, 'messages'],
        [{ messages: [{ role: 'user', content: many(256, part) }] }, 200], [{ messages: [{ role: 'user', content: many(257, part) }] }, 400, 'messages[0].content'],
        [{ messages: [user], stop: many(16, 'x') }, 200], [{ messages: [user], stop: many(17, 'x') }, 400, 'stop'],
        [{ messages: [user], stop: 'x'.repeat(256) }, 200], [{ messages: [user], stop: 'x'.repeat(257) }, 400, 'stop'],
        [{ messages: [user], logprobs: true, top_logprobs: 20 }, 200], [{ messages: [user], logprobs: true, top_logprobs: 21 }, 400, 'top_logprobs'],
        [{ messages: [user], logit_bias: bias(256) }, 200],
        [{ messages: [user], tools: many(512, 0).map((_, i) => tool(i)) }, 200], [{ messages: [user], tools: many(513, 0).map((_, i) => tool(i)) }, 400, 'tools'],
        [{ messages: [user], n: 9 }, 400, 'n'],
        [{ messages: [{ role: 'user', content: many(2, image) }] }, 200],
        [{ messages: [{ role: 'user', content: many(3, image) }] }, 400, 'messages[0].content[2].image_url'],
    ];
    for (const [body, status, param] of cases) {
        const reply = await post(server, '/v1/chat/completions', body);
        assert.equal(reply.status, status, `${JSON.stringify(body).slice(0, 80)}: ${reply.text.slice(0, 200)}`);
        if (param) assert.equal(reply.json().error.param, param);
    }
    const long = (more) => post(server, '/v1/chat/completions', { messages: [{ role: 'user', content: [{ type: 'text', text: 'x'.repeat(4 << 20) }, ...more] }] });
    const text = await long([]);
    assert.deepEqual([text.status, text.json().error.code], [413, 'body_too_large']);
    assert.equal((await long([image])).json().error.code, 'context_length_exceeded', 'with an image it may be longer');
    const ws = await Socket.open(server);
    ws.raw.send(Socket.frame(1, 'x'.repeat(30001)));
    assert.equal(await ws.closed(), 1009);
    assert.equal(await server.stop(), 0);
});

test('a socket that does not read what it asks for', async () => {
    const server = await startServer(['--max-ws-queue', '100000']);
    await server.ready();
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    await ws.wait('session.created');
    ws.raw.socket.pause();
    const ping = JSON.stringify({ type: 'ping', t: 'x'.repeat(8000) });
    for (let i = 0; i < 4000; i++) ws.send(ping); // 32 MB, more than the kernel holds for it
    await eventually(() => ws.raw.socket.writableLength, 0, 60000);
    ws.raw.socket.resume();
    assert.equal(await ws.closed(60000), 1008);
    assert.equal(await server.stop(), 0);
});

test('a socket that answers no ping', async () => {
    const server = await startServer(['--ws-ping', '1']); // and dropped after another second
    await server.ready();
    const [deaf, alive] = [await Socket.open(server), await Socket.open(server)];
    deaf.send({ type: 'response.create', input: LONG });
    await deaf.wait('response.output_text.delta', 60000);
    const answering = alive.wait('never', 120000); // it answers pings while it waits
    assert.ok(await deaf.raw.untilClosed(60000), 'who answers no ping is gone'); // nothing reads its frames meanwhile
    await eventually(() => metric(server, 'parley_requests_running'), 0, 20000);
    assert.equal(alive.raw.closed, false);
    alive.destroy();
    await answering;
    assert.equal(await server.stop(), 0);
});

test('a pong that came while the server had no processor is not late', async () => {
    const server = await startServer(['--ws-ping', '3']);
    await server.ready();
    const ws = await Socket.open(server);
    assert.ok(await ws.raw.until((d) => d.includes(0x89), 30000), 'a ping');
    const crowd = await takeProcessor(server, 3500, () => ws.raw.send(Socket.frame(10, ''))); // longer than a pong may take
    ws.send({ type: 'response.create', input: 'hi' });
    assert.ok(await ws.wait('response.completed'));
    ws.destroy();
    crowd.forEach((raw) => raw.socket.destroy());
    assert.equal(await server.stop(), 0);
});

test('a preparation does not stall while the server has no processor', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'parley-stuck-'));
    const until = join(folder, 'goes-on');
    const server = await startServer(['--step-timeout', '5'], { FAKE_STUCK_UNTIL: until });
    await server.ready();
    const watcher = await Socket.open(server, { protocols: 'parley.v1' });
    const silent = Array.from({ length: 4 }, (_, i) => chat(server, `!stallprep ${i}`)); // more than there are turns
    await eventually(async () => (await request(server, { path: '/v1/status' })).json().preparation.silent_ms > 0, true);
    process.kill(server.child.pid, 'SIGSTOP');
    await sleep(6000);
    process.kill(server.child.pid, 'SIGCONT');
    assert.equal((await request(server, { path: '/health' })).status, 200);
    writeFileSync(until, '');
    for (const reply of await Promise.all(silent)) assert.equal(reply.status, 200, reply.text);
    assert.doesNotMatch(server.err, /the preparation of requests stalls/);
    watcher.destroy();
    assert.equal(await server.stop(), 0);
    rmSync(folder, { recursive: true });
});

test('without a descriptor a connection is told so', async () => {
    const server = await startServer(['--max-conns-per-ip', '1000'], {}, ['bash', '-c', 'ulimit -n 128; exec "$@"', 'limited']);
    await server.ready();
    const head = `GET /health HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`;
    const crowd = Array.from({ length: 150 }, () => rawSocket(server));
    crowd.forEach((raw) => raw.send(head));
    await Promise.all(crowd.map((raw) => raw.until((d) => parseReply(d) !== null, 30000)));
    const replies = crowd.map((raw) => parseReply(raw.data));
    const refused = replies.filter((reply) => reply?.status === 503);
    assert.ok(refused.length > 20, String(refused.length));
    for (const reply of replies) assert.ok(reply && [200, 503].includes(reply.status), 'a reply');
    assert.equal(JSON.parse(refused[0].body).error.code, 'no_descriptors');
    assert.ok(Number(refused[0].headers['retry-after']) > 0);
    crowd.forEach((raw) => raw.socket.destroy());
    await eventually(async () => (await request(server, { path: '/health' })).status, 200, 10000);
    assert.equal(await server.stop(), 0);
});

test('a body that drips', async () => {
    const server = await startServer(['--min-body-rate', '100000']);
    await server.ready();
    const raw = rawSocket(server);
    raw.send(`POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`);
    const drip = setInterval(() => raw.send(' '), 100);
    assert.ok(await raw.until((d) => parseReply(d) !== null, 50000), 'long before --body-timeout');
    clearInterval(drip);
    assert.equal(parseReply(raw.data).status, 408);
    assert.match(parseReply(raw.data).body.toString(), /body_timeout/);
    raw.socket.destroy();
    assert.equal(await server.stop(), 0);
});

test('--on-disconnect finish: an answer goes on when its client leaves, unless the request says otherwise', async () => {
    const server = await startServer(['--on-disconnect', 'finish']);
    await server.ready();
    const body = JSON.stringify({ messages: [{ role: 'user', content: '!len=44 !delay=20' }], stream: true });
    const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    const raw = rawSocket(server);
    raw.send(head + body);
    await raw.until((d) => d.includes('"content"'));
    raw.socket.destroy();
    const cancelling = await Socket.open(server);
    cancelling.send({ type: 'response.create', input: LONG, on_disconnect: 'cancel' });
    await cancelling.wait('response.output_text.delta', 60000);
    cancelling.destroy();
    await eventually(() => metric(server, 'parley_requests_running'), 0, 20000);
    await eventually(() => / chat 200 .* gen=44 /.test(server.err), true, 20000);
    assert.equal(await server.stop(), 0);
});

test('no prompt and no answer in the log', async () => {
    const server = await startServer();
    await server.ready();
    const secret = 'zanzibar-7719';
    await chat(server, secret);
    await chat(server, `${secret} !fail`, { stream: true });
    await chat(server, secret, { temperature: 'x', stop: secret });
    await post(server, '/v1/chat/completions', `{"messages": "${secret}`);
    await post(server, '/tokenize', { content: secret });
    const ws = await Socket.open(server);
    ws.send({ type: 'response.create', input: secret });
    await ws.wait('response.completed');
    ws.raw.send(Socket.frame(1, Buffer.concat([Buffer.from(secret), Buffer.from([0xff])])));
    await ws.closed();
    assert.equal(await server.stop(), 0);
    assert.match(server.err, /req=/);
    assert.ok(!server.err.includes('zanzibar'), server.err);
});

await runTests(4);
