/** The server as a service: log files and their rotation, keys that change, who may reach it without a key. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, eventually, request, runTests, startServer, test } from './client.mjs';

const model = fileURLToPath(new URL('../data/tiny', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'parley-service-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

const FIRST = 'the-first-key-of-enough-letters';
const SECOND = 'the-second-key-of-enough-letters';
const env = { PARLEY_CONFIG: 'none', JOURNAL_STREAM: '' };
const start = (args, more = {}) => startServer(['serve', '-m', model, '--port', '0', '--threads', '1', ...args], { ...env, ...more });
const models = (server, key) =>
    request(server, { path: '/v1/models', headers: key ? { Authorization: `Bearer ${key}` } : {} }).then((reply) => reply.status);

test('SIGHUP opens the log file again and reads the keys again', async () => {
    const log = join(folder, 'parley.log');
    const keys = join(folder, 'keys');
    writeFileSync(keys, `${FIRST}\n`);
    const server = await start(['--log-file', log, '--log-format', 'json', '--api-key-file', keys]);
    const lines = (path) => readFileSync(path, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
    assert.equal(await models(server, FIRST), 200);
    assert.equal(await models(server, SECOND), 401);
    assert.ok(lines(log).length > 0);
    assert.equal(server.err, '');

    renameSync(log, `${log}.1`);
    writeFileSync(keys, `${SECOND}\r\n\n`);
    server.child.kill('SIGHUP');
    await eventually(() => models(server, SECOND), 200);
    assert.equal(await models(server, FIRST), 401);
    assert.ok(lines(log).some((line) => line.level === 'info' && line.message.includes('reloaded')));

    for (const broken of ['', 'short\n']) {
        const before = lines(log).length;
        writeFileSync(keys, broken);
        server.child.kill('SIGHUP');
        await eventually(() => lines(log).slice(before).some((line) => line.level === 'error' && /keys stay as they were/.test(line.message)), true);
        assert.equal(await models(server, SECOND), 200);
        assert.equal(await models(server, undefined), 401);
    }
    assert.equal(await server.stop(), 0);
});

test('the key that systemd brings as a credential', async () => {
    const credentials = join(folder, 'credentials');
    mkdirSync(credentials);
    writeFileSync(join(credentials, 'api-key'), FIRST);
    const server = await start([], { CREDENTIALS_DIRECTORY: credentials });
    assert.equal(await models(server, FIRST), 200);
    assert.equal(await models(server, undefined), 401);
    assert.equal(await server.stop(), 0);
});

test('beyond this machine nobody listens without a key', async () => {
    const refused = (args, sentence) => {
        const { status, stderr } = spawnSync(PROGRAM, ['serve', '-m', model, '--port', '0', ...args], {
            encoding: 'utf8',
            env: { ...process.env, ...env },
            timeout: 60000,
        });
        assert.match(stderr, sentence);
        assert.equal(status, 2, stderr);
    };
    refused(['--host', '0.0.0.0'], /ask for a key with --api-key-file FILE, or say --insecure-no-key/);
    refused(['--host', '::', '--no-insecure-no-key'], /--insecure-no-key/);
    writeFileSync(join(folder, 'none'), '\n');
    refused(['--api-key-file', join(folder, 'none')], /none holds no API key/);
    const open = await start(['--host', '0.0.0.0', '--insecure-no-key']);
    assert.match(open.err, /WARN srv everybody who reaches this machine can use this server/);
    assert.equal(await open.stop(), 0);
    const closed = await start(['--host', '0.0.0.0', '--api-key', FIRST]);
    assert.match(closed.err, /WARN srv keys and conversations travel unencrypted/);
    assert.equal(await models(closed, FIRST), 200);
    assert.equal(await closed.stop(), 0);
});

const run = (args, more = {}) => spawnSync(PROGRAM, args, { encoding: 'utf8', env: { ...process.env, ...env, ...more }, timeout: 120000 });

test('parley health asks the server that the same options would start', async () => {
    const server = await start([]);
    await server.ready();
    const port = String(server.port);
    for (const [args, more] of [
        [['--port', port], {}],
        [[], { PARLEY_PORT: port }],
        [['--port', port, '--host', '0.0.0.0,::1'], {}],
    ]) {
        const { status, stdout, stderr } = run(['health', ...args], more);
        assert.deepEqual({ status, stdout, stderr }, { status: 0, stdout: 'ok\n', stderr: '' });
    }
    assert.equal(await server.stop(), 0);
    const gone = run(['health', '--port', port]);
    assert.equal(gone.status, 1);
    assert.match(gone.stderr, new RegExp(`parley: 127\\.0\\.0\\.1 port ${port}: Connection refused`));

    const socket = join(folder, 'health.sock');
    const child = spawn(PROGRAM, ['serve', '-m', model, '--threads', '1', '--host', `unix:${socket}`], { env: { ...process.env, ...env }, stdio: 'ignore' });
    const exited = new Promise((resolve) => child.on('exit', resolve));
    await eventually(async () => run(['health', '--host', `unix:${socket}`]).status, 0, 60000);
    assert.match(run(['health', '--host', `unix:${socket}x`]).stderr, /health\.sockx: No such file or directory/);
    child.kill('SIGTERM');
    assert.equal(await exited, 0);
});

test('--check loads the model, computes a token and ends', () => {
    const good = run(['--check', '-m', model, '--threads', '1']);
    assert.equal(good.status, 0, good.stderr);
    assert.match(good.stdout, /^ok: model tiny, context \d+, /);
    assert.equal(run(['--check', '-m', '/nowhere']).status, 3);
    assert.equal(run(['--check', '-m', model, '--ctx-size', '16000000']).status, 2);
});

await runTests();
