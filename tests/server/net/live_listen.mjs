/** Where the server listens: several addresses, a socket file, sockets that the service manager
 * opened; and how it ends. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROGRAM, Socket, chat, eventually as within, joinChat, metric, parseReply, rawSocket, runTests, sleep, startServer, test } from '../client.mjs';

/* The machine may be busy. */
const eventually = (get, expected, ms = 30000) => within(get, expected, ms);

const folder = mkdtempSync(join(tmpdir(), 'parley-listen-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const hasV6 = await new Promise((resolve) => {
    const probe = net.createServer().listen(0, '::1', () => probe.close(() => resolve(true)));
    probe.on('error', () => resolve(false));
});

/** The status of GET path at {host, port} or {socketPath}; an error's code if there is no reply. */
const get = (where, path = '/health') =>
    new Promise((resolve) => {
        const call = http.get({ ...where, path, agent: false, timeout: 10000 }, (reply) => {
            reply.resume();
            reply.on('end', () => resolve(reply.statusCode));
        });
        call.on('error', (error) => resolve(error.code));
    });

test('several addresses have one port', async () => {
    const hosts = hasV6 ? ['127.0.0.1', '::1', '127.0.0.2'] : ['127.0.0.1', '127.0.0.2'];
    const server = await startServer(hosts.flatMap((host) => ['--host', host]));
    await server.ready();
    for (const host of hosts) assert.equal(await get({ host, port: server.port }), 200, host);
    assert.equal(await get({ host: '127.0.0.3', port: server.port }), 'ECONNREFUSED');
    const second = await startServer(['--host', '127.0.0.3', '--host', '127.0.0.2', '--port', String(server.port)]).catch((error) => error);
    assert.match(second.message, new RegExp(`port ${server.port} is in use; try --port ${server.port + 1}`));
    assert.equal(await server.stop(), 0);
});

test('an address that is none of this machine, and too many', async () => {
    const foreign = await startServer(['--host', '192.0.2.1']).catch((error) => error);
    assert.match(foreign.message, /192\.0\.2\.1 is not an address of this machine/);
    const many = await startServer(Array.from({ length: 9 }, () => ['--host', '127.0.0.1']).flat()).catch((error) => error);
    assert.match(many.message, /--host takes 1 to 8 addresses/);
});

test('a socket file: HTTP, streams, WebSockets; gone at the end; a stale one is replaced, one in use is not', async () => {
    const socketPath = join(folder, 'parley.sock');
    const args = ['--host', `unix:${socketPath}`];
    const server = await startServer(args);
    await eventually(() => get({ socketPath }), 200);
    await eventually(() => /^Parley is ready: unix:\S*parley\.sock  model /m.test(server.out), true);
    const body = JSON.stringify({ stream: true, messages: [{ role: 'user', content: 'hello' }] });
    const text = await new Promise((resolve, reject) => {
        const call = http.request({ socketPath, method: 'POST', path: '/v1/chat/completions', agent: false, headers: { 'Content-Type': 'application/json' } }, (reply) => {
            let all = '';
            reply.on('data', (piece) => (all += piece));
            reply.on('end', () => resolve(all));
        });
        call.on('error', reject);
        call.end(body);
    });
    assert.equal(joinChat(text).content, 'You said: hello');
    assert.equal(await new Promise((resolve) => {
        const call = http.request({ socketPath, path: '/v1/responses', agent: false, headers: { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==' } });
        call.on('upgrade', (reply, socket) => resolve(socket.destroy() && reply.statusCode));
        call.on('response', (reply) => resolve(reply.statusCode));
        call.end();
    }), 101);

    const second = await startServer(args).catch((error) => error);
    assert.match(second.message, /parley\.sock is in use/);
    assert.equal(await get({ socketPath }), 200, 'the first server has kept it');
    server.child.kill('SIGKILL');
    await server.exited;
    assert.ok(existsSync(socketPath));
    const third = await startServer(args);
    await eventually(() => get({ socketPath }), 200);
    assert.equal(await third.stop(), 0);
    assert.ok(!existsSync(socketPath));

    writeFileSync(socketPath, 'precious');
    const other = await startServer(args).catch((error) => error);
    assert.match(other.message, /parley\.sock is in use/);
    assert.ok(existsSync(socketPath), 'what is no socket stays');
    for (const bad of ['unix:relative', 'unix:', `unix:/${'x'.repeat(200)}`, 'unix:/nowhere/at/all']) {
        const refused = await startServer(['--host', bad]).catch((error) => error);
        assert.match(refused.message, /unix: needs a path from the root|cannot listen on/);
    }
});

test('sockets that the service manager opened', async () => {
    const manager = net.createServer();
    await new Promise((resolve) => manager.listen(0, '127.0.0.1', resolve));
    const { port } = manager.address();
    const activate = (script, fds) => {
        const child = spawn('sh', ['-c', script, 'sh', PROGRAM], { stdio: ['ignore', 'pipe', 'pipe', ...fds] });
        const said = { child, out: '', err: '', code: new Promise((resolve) => child.on('exit', resolve)) };
        child.stdout.on('data', (data) => (said.out += data));
        child.stderr.on('data', (data) => (said.err += data));
        return said;
    };
    const server = activate('LISTEN_FDS=1 LISTEN_PID=$$ exec "$1"', [manager._handle.fd]);
    await eventually(async () => server.out.startsWith(`port ${port}\n`), true, 20000);
    manager.close(); /* before anybody connects: from here on only the server takes connections from it */
    await eventually(() => get({ host: '127.0.0.1', port }), 200, 20000);
    server.child.kill('SIGTERM');
    assert.equal(await server.code, 0);

    const broken = activate('LISTEN_FDS=1 LISTEN_PID=$$ exec "$1"', ['ignore']);
    assert.equal(await broken.code, 2);
    assert.match(broken.err, /no listening stream socket/);
    const foreign = activate('LISTEN_FDS=1 LISTEN_PID=1 exec "$1"', ['ignore']);
    await eventually(async () => /^port [1-9]/.test(foreign.out), true, 20000);
    foreign.child.kill('SIGTERM');
    assert.equal(await foreign.code, 0);
});

test('while it drains nobody new gets in, and /health says so to who is in', async () => {
    const server = await startServer(['--drain', '60']);
    await server.ready();
    const old = rawSocket(server);
    const ask = async () => {
        old.data = Buffer.alloc(0);
        old.send(`GET /health HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`);
        assert.ok(await old.until((d) => parseReply(d) !== null));
        return parseReply(old.data).status;
    };
    assert.equal(await ask(), 200);
    const running = http.request({ host: '127.0.0.1', port: server.port, method: 'POST', path: '/v1/chat/completions', agent: false, headers: { 'Content-Type': 'application/json' } });
    running.on('error', () => {});
    running.end(JSON.stringify({ stream: true, messages: [{ role: 'user', content: '!delay=50 !len=100000' }] }));
    await eventually(() => metric(server, 'parley_requests_running'), 1);
    server.child.kill('SIGTERM');
    await eventually(ask, 503);
    await eventually(() => get({ host: '127.0.0.1', port: server.port }), 'ECONNREFUSED');
    old.data = Buffer.alloc(0);
    old.send(`GET /v1/status HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`);
    assert.ok(await old.until((d) => parseReply(d) !== null));
    assert.equal(JSON.parse(parseReply(old.data).body).state, 'draining');
    running.destroy(); /* the only one that is waited for */
    assert.equal(await server.exited, 0);
});

test('a drain time of 0 cuts what runs; sockets are closed with 1001', async () => {
    const server = await startServer(['--drain', '0']);
    await server.ready();
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    const long = chat(server, '!delay=50 !len=100000', { stream: true });
    await eventually(() => metric(server, 'parley_requests_running'), 1);
    server.child.kill('SIGINT');
    assert.equal(await ws.closed(), 1001);
    assert.equal(await server.exited, 0);
    assert.ok(!(await long).text.includes('[DONE]'));
});

test('the second signal ends it at once', async () => {
    const server = await startServer(['--drain', '600']);
    await server.ready();
    const long = chat(server, '!delay=50 !len=100000', { stream: true });
    await eventually(() => metric(server, 'parley_requests_running'), 1);
    server.child.kill('SIGTERM');
    await eventually(() => get({ host: '127.0.0.1', port: server.port }), 'ECONNREFUSED');
    await sleep(50);
    assert.equal(server.child.exitCode, null);
    server.child.kill('SIGINT');
    assert.equal(await server.exited, 130);
    await long;
});

await runTests();
