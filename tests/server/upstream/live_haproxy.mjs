/** Several Parleys behind Debian's HAProxy with packaging/haproxy.cfg. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Socket, eventually, request, runTests, startServer, test } from '../client.mjs';

if (spawnSync('haproxy', ['-v']).error) {
    console.log('skipped: haproxy is not installed (apt-get install haproxy)');
    process.exit(77);
}

const freePort = () => new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
        const { port } = server.address();
        server.close(() => resolve(port));
    });
});
const folder = mkdtempSync(join(tmpdir(), 'parley-haproxy-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const parleys = await Promise.all(['one', 'two', 'three'].map(() => startServer(['--drain', '5'])));
await Promise.all(parleys.map((p) => p.ready()));
const port = await freePort();
const stats = join(folder, 'stats');
let text = readFileSync(new URL('../../../packaging/haproxy.cfg', import.meta.url), 'utf8')
    .replace('bind :8080', `bind 127.0.0.1:${port}`)
    .replace('global\n', `global\n    stats socket ${stats}\n`);
parleys.forEach((p, i) => { text = text.replace(`127.0.0.1:808${i + 1}`, `127.0.0.1:${p.port}`); });
writeFileSync(join(folder, 'haproxy.cfg'), text);
const proxy = spawn('haproxy', ['-f', join(folder, 'haproxy.cfg'), '-db'], { stdio: ['ignore', 'ignore', 'inherit'] });
process.on('exit', () => proxy.kill('SIGKILL'));
const front = { port };
await eventually(async () => (await request(front, { path: '/health' })).status, 200);

const count = (text) => Number(/^parley_requests_total\{endpoint="chat[^"]*",status="200"\} (\d+)/m.exec(text)?.[1] ?? 0);
const counts = () => Promise.all(parleys.map(async (p) => count((await request(p, { path: '/metrics' })).text)));
const ask = (headers) => request(front, { method: 'POST', path: '/v1/chat/completions', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }] }) });

/** What HAProxy says of its servers, a line each. */
const state = () => new Promise((resolve, reject) => {
    let said = '';
    net.connect(stats, function () { this.end('show stat\n'); })
        .on('data', (data) => { said += data; }).on('end', () => resolve(said.split('\n').map((line) => line.split(',')))).on('error', reject);
});

/** HAProxy counts a request until it has closed it, a moment after its client has the whole answer; with one request
 * too many on a server its next one goes elsewhere, as the bound wants. */
const idle = () => eventually(async () => (await state()).find(([name, server]) => name === 'parleys' && server === 'BACKEND')[4], '0');

/** Which of them answered what was asked in between. */
async function where(run) {
    const before = await counts();
    await run();
    return (await counts()).map((n, i) => n - before[i]);
}

test('users spread, each stays with one Parley', async () => {
    const homes = new Set();
    for (let user = 0; user < 12; user++) {
        const n = await where(async () => {
            for (let i = 0; i < 3; i++) {
                assert.equal((await ask({ 'X-Affinity': `user-${user}` })).status, 200);
                await idle();
            }
        });
        assert.deepEqual(n.filter((x) => x > 0), [3], `user ${user}: ${n}`);
        homes.add(n.findIndex((x) => x > 0));
    }
    assert.equal(homes.size, 3);
});

test('a browser comes back by its cookie, over WebSocket too', async () => {
    const page = await request(front, { path: '/', headers: { 'X-Affinity': 'someone' } });
    const cookie = /PARLEY=(\w+)/.exec(page.headers['set-cookie'])[0];
    const home = ['one', 'two', 'three'].indexOf(cookie.slice(7));
    const n = await where(async () => {
        for (const user of ['a', 'b', 'c']) assert.equal((await ask({ 'X-Affinity': user, Cookie: cookie })).status, 200);
    });
    assert.equal(n[home], 3);
    const ws = await Socket.open(front, { protocols: 'parley.v1', headers: { Cookie: cookie } });
    ws.send({ type: 'response.create', input: 'x', stream_id: 'a' });
    assert.ok(await ws.wait('response.completed'));
    assert.match((await request(parleys[home], { path: '/metrics' })).text, /^parley_ws_connections 1$/m);
    ws.destroy();
});

test('one that is told to stop gets nothing new, and what it has begun is finished', async () => {
    const user = { 'X-Affinity': 'drained' };
    const n = await where(() => ask(user));
    const home = n.findIndex((x) => x > 0);
    const pending = request(front, { method: 'POST', path: '/v1/chat/completions', headers: { 'Content-Type': 'application/json', ...user }, body: JSON.stringify({ messages: [{ role: 'user', content: '!delay=100 !len=60 go' }] }) });
    await eventually(async () => (await request(parleys[home], { path: '/v1/status' })).json().running.length, 1);
    parleys[home].child.kill('SIGTERM');
    for (let i = 0; i < 12; i++) assert.equal((await ask({ 'X-Affinity': `drained` })).status, 200);
    assert.equal((await pending).status, 200);
    assert.equal(await parleys[home].exited, 0);
    parleys.splice(home, 1);
});

test('a long request whose Parley dies before it answers is answered by another', async () => {
    const body = JSON.stringify({ messages: [{ role: 'system', content: 'x'.repeat(18000) }, { role: 'user', content: '!delay=100 !len=30 go' }] });
    const pending = request(front, { method: 'POST', path: '/v1/chat/completions', headers: { 'Content-Type': 'application/json', 'X-Affinity': 'killed' }, body });
    const running = async () => Promise.all(parleys.map(async (p) => (await request(p, { path: '/v1/status' })).json().running.length));
    await eventually(async () => (await running()).includes(1), true);
    const home = (await running()).indexOf(1);
    parleys[home].child.kill('SIGKILL');
    const reply = await pending;
    assert.equal(reply.status, 200, reply.text);
    parleys.splice(home, 1);
});

test('the rest end well', async () => {
    for (const p of parleys) assert.equal(await p.stop(), 0);
});

await runTests();
