/** The sandbox of the server: who has taken it over (escape.c, preloaded) gains no file, program,
 * connection or process, in any of its threads; and everything that the server does still works. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, chat, eventually, post, request, runTests, startServer, test } from '../client.mjs';

const escape = join(dirname(PROGRAM), 'escape.so');
const says = spawnSync(PROGRAM, ['doctor'], { encoding: 'utf8' }).stdout;
if (!/Landlock [4-9].*seccomp there/.test(says) || /has a sanitizer/.test(says)) {
    console.log(`skipped: ${says.replaceAll('\n', ' ')}`);
    process.exit(77);
}
assert.ok(existsSync(escape), `${escape} is not built`);
const file = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'parley-sandbox-'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
for (const name of ['home', 'own', 'tmp', 'keys']) mkdirSync(join(dir, name));
writeFileSync(join(dir, 'home/secret'), 'precious');
writeFileSync(join(dir, 'keys/file'), 'a-key-of-enough-letters\n', { mode: 0o600 });
const auth = { Authorization: 'Bearer a-key-of-enough-letters' };

const listener = net.createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
await new Promise((resolve) => listener.on('listening', resolve));
const other = spawn('sleep', ['600']);
process.on('exit', () => other.kill());
const env = {
    HOME: join(dir, 'home'), XDG_CACHE_HOME: join(dir, 'own'), TMPDIR: join(dir, 'tmp'), LD_PRELOAD: escape, ESCAPE_READ: join(dir, 'home/secret'),
    ESCAPE_WRITE: join(dir, 'home/new'), ESCAPE_OWN: join(dir, `tmp/parley-${process.getuid()}`), ESCAPE_PORT: String(listener.address().port), ESCAPE_PID: String(other.pid),
};
const start = async (...more) => {
    const server = await startServer(['serve', '--port', '0', '--threads', '1', '--api-key-file', join(dir, 'keys/file'), '--history', join(dir, 'own/history'), '--cache-disk', join(dir, 'own/cache'), ...more], env);
    await server.ready();
    return server;
};

/** What came of each attempt, made in this thread; the main one without a number. */
async function attempts(server, thread = server.child.pid) {
    const from = server.err.length;
    // kill(1) reaches the main thread; another one needs tgkill, which Python has by its number.
    const sent = spawnSync('python3', ['-c', `import ctypes; assert ctypes.CDLL(None).syscall(${process.arch === 'arm64' ? 131 : 234}, ${server.child.pid}, ${thread}, 10) == 0`]);
    assert.equal(sent.status, 0, String(sent.stderr));
    await eventually(() => server.err.slice(from).includes('escape end done'), true, 30000);
    return Object.fromEntries([...server.err.slice(from).matchAll(/^escape (\S+) (\S+)$/gm)].map((m) => [m[1], m[2]]));
}

const HELD = {
    read: 'EACCES', 'read-home': 'EACCES', 'read-passwd': 'EACCES', 'read-process': 'EACCES', write: 'EACCES', truncate: 'EACCES', own: 'done', 'own-status': 'done', shell: 'EACCES',
    execveat: 'EPERM', ptrace: 'EPERM', 'memory-of-another': 'EPERM', socket: 'EPERM', connect: 'EPERM', datagram: 'EPERM', unix: 'EPERM', end: 'done',
};

test('whoever has taken it over gains nothing, in any thread', async () => {
    const server = await start();
    const threads = readdirSync(`/proc/${server.child.pid}/task`).map(Number);
    assert.ok(threads.length > 3);
    for (const thread of threads) {
        const { loader, process: signal, 'named-memory': memory, ...got } = await attempts(server, thread);
        assert.deepEqual(got, HELD, `thread ${thread}`);
        if (/yes {2}sending signals/.test(says)) assert.equal(signal, 'EPERM');
        assert.ok(memory === 'EPERM' || memory === 'done');
        assert.ok(loader !== undefined);
    }
    assert.equal(readFileSync(join(dir, 'home/secret'), 'utf8'), 'precious');
    assert.ok(!existsSync(join(dir, 'home/new')));
    assert.ok(!/srv sandbox:/.test(server.err), server.err);
    assert.equal((await request(server, { path: '/health' })).status, 200, 'and it serves on');
    assert.equal(await server.stop(), 0);
});

test('everything goes on: answers, videos, uploads, history, keys that are replaced, the status', async () => {
    const server = await start();
    const said = await chat(server, 'What is 7 plus 5?', { max_tokens: 8 });
    assert.equal(said.status, 401);
    const ask = (content) => post(server, '/v1/chat/completions', { messages: [{ role: 'user', content }], max_tokens: 4 }, auth);
    assert.equal((await ask('What is 7 plus 5?')).status, 200);
    const video = `data:video/mp4;base64,${readFileSync(file('assets/samples/ball-moves.mp4')).toString('base64')}`;
    const seen = await ask([{ type: 'video_url', video_url: { url: video } }, { type: 'text', text: 'What happens?' }]);
    assert.equal(seen.status, 200, seen.text);
    const form = '--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhello\r\n--b--\r\n';
    assert.equal((await post(server, '/v1/files', form, { ...auth, 'Content-Type': 'multipart/form-data; boundary=b' })).status, 200);
    const kept = await request(server, { method: 'PUT', path: '/v1/history/chats/c1', headers: { ...auth, 'Content-Type': 'application/json' }, body: '{"revision":0,"messages":[{"id":"m","parent":null,"role":"user","text":"x"}]}' });
    assert.equal(kept.status, 200, kept.text);
    const status = (await request(server, { path: '/v1/status', headers: auth })).json();
    assert.ok(status.memory.rss_bytes > 1e6);
    writeFileSync(join(dir, 'keys/new'), 'another-key-of-enough-letters\n', { mode: 0o600 });
    spawnSync('mv', [join(dir, 'keys/new'), join(dir, 'keys/file')]);
    server.child.kill('SIGHUP');
    await eventually(async () => (await request(server, { path: '/v1/models', headers: { Authorization: 'Bearer another-key-of-enough-letters' } })).status, 200, 10000);
    assert.equal(await server.stop(), 0);
    writeFileSync(join(dir, 'keys/file'), 'a-key-of-enough-letters\n', { mode: 0o600 });
});

test('a model that is a file in a home opens itself and its kind, and not the home', async () => {
    const made = spawnSync(join(dirname(PROGRAM), 'make_gguf'), [file('tests/data/tiny'), join(dir, 'home/tiny.gguf')], { encoding: 'utf8' });
    assert.equal(made.status, 0, made.stderr);
    env.ESCAPE_WRITE = join(dir, 'tmp/new'); // uploads have a folder of their own in there
    const server = await start('-m', join(dir, 'home/tiny.gguf'));
    const [model] = (await request(server, { path: '/v1/models', headers: auth })).json().data;
    assert.ok(existsSync(join(dir, 'home/mmproj-tiny.gguf')) && model, 'its vision tower lies beside it');
    const props = (await request(server, { path: '/props', headers: auth })).json();
    assert.equal(props.modalities.vision, true, 'and was found');
    const { read, write } = await attempts(server);
    assert.deepEqual([read, write], ['EACCES', 'EACCES']);
    assert.equal(await server.stop(), 0);
});

test('--no-sandbox says so', async () => {
    const server = await start('--no-sandbox');
    assert.match(server.err, /--no-sandbox: whoever takes this process over has all that its user has/);
    const { read, socket, shell } = await attempts(server);
    assert.deepEqual([read, socket, shell], ['done', 'done', 'done']);
    assert.equal(await server.stop(), 0);
    listener.close();
    other.kill();
});

await runTests();
