/** The server as a service: log files and their rotation, keys that change, who may reach it
 * without a key. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, Socket, eventually as within, post, request, runTests, startServer, test } from '../client.mjs';

/* The machine may be busy. */
const eventually = (get, expected, ms = 30000) => within(get, expected, ms);

const model = fileURLToPath(new URL('../../data/tiny', import.meta.url));
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
    assert.match(gone.stderr, new RegExp(`parley: 127\\.0\\.0\\.1 port ${port}: no server answers there \\(Connection refused\\)`));

    const socket = join(folder, 'health.sock');
    const child = spawn(PROGRAM, ['serve', '-m', model, '--threads', '1', '--host', `unix:${socket}`], { env: { ...process.env, ...env }, stdio: 'ignore' });
    const exited = new Promise((resolve) => child.on('exit', resolve));
    await eventually(async () => run(['health', '--host', `unix:${socket}`]).status, 0, 60000);
    assert.match(run(['health', '--host', `unix:${socket}x`]).stderr, /health\.sockx: no server answers there \(No such file or directory\)/);
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

test('below a prefix, without metrics and slots, for one model by its name', async () => {
    const server = await start(['--api-prefix', '/ai/chat', '--no-metrics', '--no-slots', '--strict-model', '--alias', 'mine']);
    await eventually(async () => (await request(server, { path: '/ai/chat/health' })).status, 200, 60000);
    const get = (path) => request(server, { path });
    assert.equal((await get('/health')).status, 404);
    assert.equal((await get('/ai/chatter/health')).status, 404);
    assert.equal((await get('/ai/chat/v1/models')).json().data[0].id, 'mine');
    for (const path of ['/ai/chat/metrics', '/ai/chat/slots']) assert.equal((await get(path)).status, 404, path);
    const bare = await get('/ai/chat');
    assert.equal(bare.status, 308);
    assert.equal(bare.headers.location, '/ai/chat/');
    assert.match((await get('/ai/chat/')).headers['content-type'], /^text\/html/);
    const ws = await Socket.open(server, { protocols: 'parley.v1', path: '/ai/chat/v1/responses' });
    assert.equal(ws.refused, undefined);
    ws.destroy();
    assert.equal((await Socket.open(server, { protocols: 'parley.v1' })).refused.status, 404);

    const ask = (model) => post(server, '/ai/chat/v1/completions', { prompt: 'hello', max_tokens: 1, model });
    assert.equal((await ask('mine')).status, 200);
    assert.equal((await ask(undefined)).status, 200);
    const foreign = await ask('theirs');
    assert.equal(foreign.status, 404);
    assert.deepEqual([foreign.json().error.param, foreign.json().error.code], ['model', 'model_not_found']);
    assert.equal(run(['health', '--port', String(server.port), '--api-prefix', '/ai/chat']).status, 0);
    assert.equal(run(['health', '--port', String(server.port)]).status, 1);
    assert.equal(await server.stop(), 0);
    for (const bad of ['ai', '/', '/ai/', '', '/a b', '/a?b']) {
        const { status, stderr } = run(['serve', '-m', model, '--api-prefix', bad]);
        assert.equal(status, 2, bad);
        assert.match(stderr, /it takes a path such as \/parley/);
    }
});

test('what the chat template hears if a request does not say', async () => {
    const template = join(folder, 'template.jinja');
    writeFileSync(template, "{{ messages[0].content }} {{ enable_thinking is defined and enable_thinking }} {{ mood | default('none') }}");
    const prompts = async (args) => {
        const server = await start(['--chat-template-file', template, ...args]);
        await server.ready();
        const bodies = [{}, { enable_thinking: true }, { enable_thinking: false }, { chat_template_kwargs: { mood: 'sad' } }];
        const replies = [];
        for (const body of bodies) replies.push((await post(server, '/apply-template', { messages: [{ role: 'user', content: 'a' }], ...body })).json().prompt);
        assert.equal(await server.stop(), 0);
        return replies;
    };
    assert.deepEqual(await prompts([]), ['a False none', 'a True none', 'a False none', 'a False sad']);
    assert.deepEqual(await prompts(['--reasoning', 'on']), ['a True none', 'a True none', 'a False none', 'a True sad']);
    assert.deepEqual(await prompts(['--reasoning', 'off', '--chat-template-kwargs', '{"mood":"glad"}']), ['a False glad', 'a True glad', 'a False glad', 'a False sad']);
    assert.deepEqual(await prompts(['--chat-template-kwargs', '{"enable_thinking":true}']), ['a True none', 'a True none', 'a False none', 'a True sad']);
    for (const bad of ['[]', '{', 'x', '']) {
        const { status, stderr } = run(['serve', '-m', model, '--chat-template-kwargs', bad]);
        assert.equal(status, 2, bad);
        assert.match(stderr, /--chat-template-kwargs is not a JSON object/);
    }
});

test('--access-log: a line for every reply, with the id that the client was given', async () => {
    const server = await start(['--access-log', '--log-format', 'json']);
    await eventually(async () => (await request(server, { path: '/health' })).status, 200);
    const found = await request(server, { path: '/v1/models?x=hidden' });
    const lost = await request(server, { method: 'DELETE', path: '/nowhere%0aINFO' });
    const wrong = await post(server, '/v1/completions', { prompt: 7 });
    const streamed = await post(server, '/v1/completions', { prompt: 'hidden', max_tokens: 1, stream: true });
    assert.equal(await server.stop(), 0);
    const messages = server.err.trim().split('\n').map((line) => JSON.parse(line).message);
    assert.ok(messages.some((m) => /^text: \d+ %$/.test(m)), 'stages of loading');
    for (const [reply, what] of [[found, 'GET /v1/models 200'], [lost, 'DELETE /nowhere%0aINFO 404'], [wrong, 'POST /v1/completions 400'], [streamed, 'POST /v1/completions 200']]) {
        const lines = messages.filter((m) => m.startsWith(`req=${reply.headers['x-request-id']} ${what.split(' ')[0]} `));
        assert.equal(lines.length, 1, what);
        assert.match(lines[0], new RegExp(`${what} [0-9.]+ ms$`));
    }
    assert.ok(!messages.join('\n').includes('hidden'));
});

test('lines of one request carry the id that the client was given', async () => {
    const template = join(folder, 'any.jinja');
    writeFileSync(template, '{{ messages[0].content }}');
    const server = await start(['--access-log', '--log-format', 'json', '--log-level', 'debug', '--chat-template-file', template]);
    await eventually(async () => (await request(server, { path: '/health' })).status, 200);
    const body = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 1 };
    const whole = await post(server, '/v1/chat/completions', body);
    const streamed = await post(server, '/v1/messages', { ...body, stream: true });
    const refused = await post(server, '/v1/responses', { input: 'hi', temperature: 'hot' });
    const socket = await Socket.open(server);
    socket.send({ type: 'response.create', input: 'hi', max_output_tokens: 1 });
    const { response } = await socket.wait('response.incomplete');
    socket.destroy();
    assert.equal(await server.stop(), 0);
    const lines = server.err.trim().split('\n').map((line) => JSON.parse(line));
    const told = (id) => lines.filter((line) => line.message.includes(id)).map((line) => {
        assert.equal(line.req, id, JSON.stringify(line));
        return `${line.area} ${line.message.split(' ')[1]}`;
    }).sort();
    assert.deepEqual(told(whole.headers['x-request-id']), ['eng begins', 'prep prepared', 'srv POST', 'srv chat']);
    assert.deepEqual(told(streamed.headers['x-request-id']), ['eng begins', 'prep prepared', 'srv POST', 'srv message']);
    assert.deepEqual(told(refused.headers['x-request-id']), ['srv POST', 'srv response']);
    assert.deepEqual(told(response.id), ['eng begins', 'prep prepared', 'srv response']);
});

test('who shares the prompts that were read', async () => {
    const keys = join(folder, 'two-keys');
    writeFileSync(keys, `${FIRST}\n${SECOND}\n`);
    const prompt = 'a prompt that is long enough to be kept '.repeat(20);
    const cached = async (...args) => {
        const server = await start(['--api-key-file', keys, ...args]);
        await eventually(async () => (await request(server, { path: '/health' })).status, 200);
        const found = [];
        for (const key of [FIRST, FIRST, SECOND]) {
            const reply = await post(server, '/v1/completions', { prompt, max_tokens: 1 }, { Authorization: `Bearer ${key}` });
            found.push(reply.json().usage.prompt_tokens_details.cached_tokens > 0);
        }
        assert.equal(await server.stop(), 0);
        return found;
    };
    assert.deepEqual(await cached(), [false, true, false]);
    assert.deepEqual(await cached('--cache-scope', 'all'), [false, true, true]);
    assert.deepEqual(await cached('--cache-scope', 'none'), [false, false, false]);
});

await runTests();
