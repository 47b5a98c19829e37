/** Models below a folder: the list, switching by a request or by hand, who waits for whom, and
 * loading that fails. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Socket, chat, eventually as within, post, request, runTests, startServer, test } from '../client.mjs';

/* The machine may be busy. */
const eventually = (get, expected, ms = 30000) => within(get, expected, ms);

const tiny = fileURLToPath(new URL('../../data/tiny', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'parley-models-'));
process.on('exit', () => rmSync(root, { recursive: true, force: true }));

/** A folder whose header is that of a real checkpoint; `signs` are files that the double looks
 * at. */
function addModel(name, ...signs) {
    const folder = join(root, name);
    mkdirSync(folder, { recursive: true });
    for (const file of ['config.json', 'model.safetensors', 'tokenizer.json']) symlinkSync(join(tiny, file), join(folder, file));
    for (const sign of signs) writeFileSync(join(folder, sign), '');
}
addModel('ash');
addModel('birch', 'blind');
addModel('org/cedar');
addModel('damaged', 'corrupt');
addModel('huge', 'refuse');
mkdirSync(join(root, 'bare'));
writeFileSync(join(root, 'bare', 'config.json'), '{');

const start = async (args = [], env = {}) => {
    const server = await startServer(['--model', join(root, 'ash'), '--models-dir', root, ...args], env);
    await server.ready();
    return server;
};
const list = async (server) => (await request(server, { path: '/v1/models' })).json().data;
const states = async (server) => (await list(server)).map((one) => `${one.id} ${one.status.value}`).join(', ');
const which = async (server, model, more = {}) => {
    const reply = await chat(server, '!which', { model, ...more });
    assert.equal(reply.status, 200, reply.text);
    return /model=(\S+)/.exec(reply.json().choices[0].message.content)[1];
};
const open = (server) => Socket.open(server, { protocols: 'parley.v1' });
const waiting = async (server) => (await request(server, { path: '/v1/status' })).json().waiting;
const sign = (model, name) => writeFileSync(join(root, model, name), '');
const unsign = (model, name) => rmSync(join(root, model, name));

/** An answer that runs until it is told to stop. */
async function holdLoaded(server) {
    const socket = await open(server);
    socket.send({ type: 'response.create', model: 'ash', input: '!len=20000 !delay=50' });
    await socket.wait('response.output_text.delta');
    return {
        socket,
        end: async () => {
            socket.send({ type: 'response.cancel' });
            assert.ok(await socket.wait('response.incomplete'));
            socket.destroy();
        },
    };
}

test('the list has every model, the loaded one first, and hides where they are', async () => {
    const server = await start();
    assert.equal(await states(server), 'ash loaded, bare failed, birch unloaded, damaged unloaded, huge unloaded, org/cedar unloaded');
    const [ash, bare, birch] = await list(server);
    assert.equal(ash.meta.n_ctx, 20000);
    assert.match(bare.status.error, /^bare\/config\.json: /);
    assert.deepEqual(birch.architecture.input_modalities[0], 'text');
    assert.ok(birch.meta.size > 1e6 && birch.meta.n_ctx_train === 32768);
    assert.ok(!JSON.stringify(await list(server)).includes(root));
    for (const path of ['/v1/models/org/cedar', '/v1/models/org%2Fcedar']) {
        const one = await request(server, { path });
        assert.equal(one.status, 200, path);
        assert.equal(one.json().id, 'org/cedar');
    }
    for (const name of ['nothing', '..', '../ash', '%2e%2e%2fash', '/etc', `${root}/ash`, 'org', 'org/../ash']) {
        if (!name.startsWith('org/')) assert.equal((await request(server, { path: `/v1/models/${name}` })).status, 404, name); /* paths are resolved */
        assert.equal(await which(server, name), 'ash', 'a name that is in no list means the loaded model');
    }
    addModel('dogwood');
    await eventually(async () => (await states(server)).includes('dogwood unloaded'), true);
    assert.equal(await server.stop(), 0);
});

test('a request loads the model that it names; open sockets hear of it', async () => {
    const server = await start();
    const socket = await open(server);
    const hello = await socket.wait('session.created');
    assert.equal(hello.session.model, 'ash');
    assert.ok(hello.capabilities.modalities.includes('image'));
    sign('birch', 'slow');
    const asked = which(server, 'birch');
    const next = await socket.wait((m) => m.type === 'server.status' && m.state === 'loading' && m.progress === 0.5);
    assert.equal(next.next_model, 'birch');
    assert.equal((await request(server, { path: '/health' })).status, 503);
    assert.ok((await states(server)).includes('birch loading'));
    unsign('birch', 'slow');
    assert.equal(await asked, 'birch');
    const updated = await socket.wait('session.updated');
    assert.equal(updated.session.model, 'birch');
    assert.deepEqual(updated.capabilities.modalities, ['text']);
    assert.ok(updated.limits.n_ctx > 0);
    assert.ok(await socket.wait((m) => m.type === 'server.status' && m.state === 'ready' && m.model === 'birch'));
    assert.match(await states(server), /^birch loaded, ash unloaded, /);
    assert.equal((await request(server, { path: '/props' })).json().model_alias, 'birch');
    assert.equal((await request(server, { path: '/props' })).json().modalities.vision, false);
    assert.equal(await which(server), 'birch', 'who names none gets the loaded one');
    const reply = await post(server, '/v1/responses', { model: 'org/cedar', input: '!which' });
    assert.match(reply.text, /model=cedar/);
    assert.equal(reply.json().model, 'org/cedar');
    socket.send({ type: 'response.create', model: 'ash', input: '!which', event_id: 'e1' });
    assert.match(JSON.stringify(await socket.wait('response.completed')), /model=ash/);
    socket.destroy();
    assert.equal(await server.stop(), 0);
});

test('answers that run end first, and nothing overtakes who waits', async () => {
    const server = await start();
    const [whole, after] = await Promise.all([chat(server, '!len=400 !delay=2', { model: 'ash' }), chat(server, '!which', { model: 'birch' })]);
    assert.equal(whole.json().choices[0].message.content.length, 400);
    assert.match(after.text, /model=birch/);
    assert.equal(await which(server, 'ash'), 'ash');
    const order = [];
    const ask = (name, content, model) => chat(server, content, { model }).then((reply) => {
        order.push(name);
        return reply;
    });
    const { socket, end } = await holdLoaded(server);
    const other = ask('other', '!which', 'birch');
    await eventually(async () => (await waiting(server)).filter(({ phase }) => phase === 'queued').length, 1);
    const later = ask('later', '!which', 'ash');
    await eventually(async () => (await waiting(server)).length, 2);
    const any = ask('any', '!which');
    await eventually(async () => (await waiting(server)).length, 3);
    const seen = socket.messages.length;
    assert.ok(await socket.wait((m) => m.type === 'response.output_text.delta' && socket.messages.indexOf(m) >= seen), 'it goes on');
    assert.deepEqual(order, []);
    await end();
    assert.match((await other).text, /model=birch/);
    assert.match((await any).text, /model=birch/);
    assert.match((await later).text, /model=ash/);
    assert.equal(order.at(-1), 'later');
    assert.equal(await server.stop(), 0);
});

test('a plain socket gets its answers in order, whatever models they are of', async () => {
    const server = await start();
    const socket = await Socket.open(server);
    const models = ['birch', 'ash', 'birch', 'org/cedar'];
    for (const model of models) socket.send({ type: 'response.create', model, input: '!which' });
    for (const model of models) {
        const done = await socket.wait('response.completed');
        assert.match(JSON.stringify(done), new RegExp(`model=${model.split('/').pop()}`));
    }
    socket.destroy();
    assert.equal(await server.stop(), 0);
});

test('a model that cannot be loaded costs its request an error, and the one before stays', async () => {
    const server = await start();
    const socket = await open(server);
    await socket.wait('session.created');
    for (const [name, reason, state] of [['damaged', 'norm.weight is damaged', 'failed'], ['huge', 'not enough memory', 'unloaded']]) {
        const [failed, well] = await Promise.all([chat(server, 'hello', { model: name }), chat(server, '!which')]);
        assert.equal(failed.status, 503);
        assert.equal(failed.json().error.code, 'model_load_failed');
        assert.ok(failed.json().error.message.includes(reason) && !failed.text.includes(root), failed.text);
        assert.match(well.text, /model=ash/);
        assert.ok((await states(server)).includes(`${name} ${state}`), await states(server));
        assert.equal(await which(server, 'ash'), 'ash');
    }
    socket.send({ type: 'response.create', model: 'damaged', input: 'hello', event_id: 'e7' });
    assert.equal((await socket.wait('error')).error.event_id, 'e7');
    socket.send({ type: 'response.create', model: 'huge', input: 'hello', event_id: 'e8', stream_id: 'lane' });
    const error = await socket.wait('error');
    assert.deepEqual([error.error.event_id, error.stream_id, error.error.code], ['e8', 'lane', 'model_load_failed']);
    rmSync(join(root, 'huge', 'refuse'));
    assert.equal(await which(server, 'huge'), 'huge', 'memory may be there later');
    writeFileSync(join(root, 'huge', 'refuse'), '');
    socket.destroy();
    assert.equal(await server.stop(), 0);
});

test('without any model the server says so, and takes one that can be loaded', async () => {
    const server = await start();
    writeFileSync(join(root, 'ash', 'refuse'), '');
    assert.equal((await chat(server, 'hello', { model: 'huge' })).status, 503);
    const health = await request(server, { path: '/health' });
    assert.equal(health.status, 503);
    assert.match(health.text, /No model is loaded/);
    assert.equal((await request(server, { path: '/v1/status' })).json().state, 'empty');
    assert.equal((await chat(server, 'hello')).json().error.code, 'no_model');
    assert.equal((await chat(server, 'hello', { model: 'ash' })).status, 503);
    assert.ok(!(await states(server)).includes(' loaded'));
    assert.equal(await which(server, 'birch'), 'birch');
    rmSync(join(root, 'ash', 'refuse'));
    assert.equal(await which(server, 'ash'), 'ash');
    assert.equal((await request(server, { path: '/health' })).status, 200);
    assert.equal(await server.stop(), 0);
});

test('loading by hand', async () => {
    const server = await start(['--alias', 'house', '--model', `${root}/org/../ash`]);
    assert.match(await states(server), /^house loaded, bare failed, birch/);
    const load = (model) => post(server, '/models/load', { model });
    assert.deepEqual((await load('birch')).json(), { success: true, model: 'birch' });
    assert.match(await states(server), /^birch loaded, house unloaded/);
    assert.deepEqual((await load('birch')).json(), { success: true, model: 'birch' });
    assert.equal((await load('damaged')).json().error.code, 'model_load_failed');
    assert.equal((await load('nothing')).status, 404);
    assert.equal((await load('../ash')).status, 404);
    assert.equal((await load(undefined)).json().error.code, 'missing_field');
    assert.equal((await post(server, '/models/load', '[')).status, 400);
    assert.deepEqual((await load('ash')).json(), { success: true, model: 'house' });
    assert.equal(await which(server, 'house'), 'ash');
    assert.equal(await server.stop(), 0);
});

test('who waits can be cancelled, may leave, and is bounded', async () => {
    const server = await start(['--queue', '3']);
    const { end } = await holdLoaded(server);
    const first = chat(server, 'hello', { model: 'birch' });
    await eventually(async () => (await waiting(server)).map(({ phase }) => phase).join(), 'queued'); // once its model is known
    const [{ id }] = await waiting(server);
    assert.equal((await post(server, `/v1/requests/${id}/cancel`, {})).status, 200);
    assert.equal((await first).status, 503);
    const gone = await open(server);
    gone.send({ type: 'response.create', model: 'birch', input: 'hello' });
    await eventually(async () => (await waiting(server)).filter(({ phase }) => phase === 'queued').length, 1);
    gone.destroy();
    await eventually(async () => (await waiting(server)).length, 0);
    const all = [1, 2, 3].map(() => chat(server, '!which', { model: 'birch' }));
    await eventually(async () => (await waiting(server)).length, 3);
    for (const model of ['birch', 'ash', undefined]) assert.equal((await chat(server, 'hello', { model })).status, 429);
    assert.equal((await post(server, '/models/load', { model: 'birch' })).status, 429);
    await end();
    for (const reply of await Promise.all(all)) assert.match(reply.text, /model=birch/);
    assert.equal(await server.stop(), 0);
});

test('a body that waits for its model is parsed once, and what a large one takes meanwhile is its bytes', async () => {
    const server = await start();
    const { end } = await holdLoaded(server);
    const taken = async () => (await request(server, { path: '/v1/status' })).json().memory.request_bytes;
    const before = await taken();
    for (const [bytes, least, most] of [[500000, 1.5, 9], [3000000, 1, 1.01]]) {
        const reply = chat(server, '!which', { model: 'birch', note: { text: 'x'.repeat(bytes) } });
        await eventually(async () => (await waiting(server)).map(({ phase }) => phase).join(), 'queued');
        const held = (await taken()) - before;
        assert.ok(held >= least * bytes && held <= most * bytes, `${held} for ${bytes}`);
        const [{ id }] = await waiting(server);
        assert.equal((await post(server, `/v1/requests/${id}/cancel`, {})).status, 200);
        assert.equal((await reply).status, 503);
        assert.equal(await taken(), before);
    }
    const all = [500000, 3000000].map((bytes) => chat(server, '!which', { model: 'birch', note: { text: 'x'.repeat(bytes) } }));
    await eventually(async () => (await waiting(server)).filter(({ phase }) => phase === 'queued').length, 2);
    await end();
    for (const reply of await Promise.all(all)) assert.match(reply.text, /model=birch/);
    assert.equal(await server.stop(), 0);
});

test('who waits too long is told so', async () => {
    const server = await start(['--queue-timeout', '2']);
    const { end } = await holdLoaded(server);
    assert.equal((await chat(server, 'hello', { model: 'birch' })).json().error.code, 'queue_timeout');
    await end();
    assert.equal(await which(server, 'ash'), 'ash');
    assert.equal(await server.stop(), 0);
});

test('a server that is told to end while it loads ends', async () => {
    const server = await start();
    sign('birch', 'slow');
    const reply = chat(server, 'hello', { model: 'birch' });
    await eventually(async () => (await states(server)).includes('birch loading'), true);
    const stopped = server.stop();
    assert.equal((await reply).json().error.code, 'server_draining');
    unsign('birch', 'slow');
    assert.equal(await stopped, 0);
});

test('switched off, strict, and without a folder', async () => {
    const off = await start(['--model-switch', 'off']);
    assert.equal((await chat(off, 'hello', { model: 'birch' })).json().error.code, 'model_not_loaded');
    assert.equal((await post(off, '/models/load', { model: 'birch' })).json().error.code, 'model_not_loaded');
    assert.equal(await which(off, 'gpt-4'), 'ash');
    assert.equal(await off.stop(), 0);
    const strict = await start(['--strict-model', 'on']);
    assert.equal((await chat(strict, 'hello', { model: 'gpt-4' })).json().error.code, 'model_not_found');
    for (const name of ['ash', 'default', join(root, 'ash'), '']) assert.equal(await which(strict, name), 'ash', name);
    assert.equal(await which(strict, 'org/cedar'), 'cedar');
    assert.equal(await which(strict, 'default'), 'cedar', 'what is loaded');
    assert.equal(await strict.stop(), 0);
    const named = await startServer(['--model', join(root, 'ash'), '--alias', 'the one', '--strict-model', 'on']);
    await named.ready();
    for (const name of ['the one', 'ash', 'default', join(root, 'ash')]) assert.equal(await which(named, name), 'ash', name);
    assert.equal((await chat(named, 'hello', { model: 'birch' })).json().error.code, 'model_not_found');
    assert.equal(await named.stop(), 0);
    const alone = await startServer(['--model', join(root, 'ash')]);
    await alone.ready();
    assert.equal(await states(alone), 'ash loaded');
    assert.equal(await which(alone, 'birch'), 'ash');
    assert.equal((await post(alone, '/models/load', { model: 'birch' })).status, 404);
    assert.equal((await post(alone, '/models/load', { model: 'ash' })).status, 200);
    assert.equal(await alone.stop(), 0);
    const missing = await startServer(['--models-dir', join(root, 'nowhere')]).catch((error) => error);
    assert.match(missing.message, /there is no such folder/);
});

await runTests();
