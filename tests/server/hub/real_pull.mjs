/** parley pull, list, remove, and -m with the name of a model of a hub, against a hub of our own. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROGRAM, chat, eventually, request, runTests, startServer, test } from '../client.mjs';
import { gitHash, pointer, sha256, startHub } from './hub.mjs';

const folder = mkdtempSync(join(tmpdir(), 'parley-pull-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PARLEY_|HF_|HUGGING)/.test(name)));
const SEEDLING = new URL('../../../assets/seedling/', import.meta.url).pathname;
const KEY = 'hf_a_key_of_the_tests';

let caches = 0;
const freshCache = () => join(folder, `cache-${caches++}`);
const environment = (hub, cache) => ({ ...clean, PARLEY_CONFIG: 'none', HOME: folder, HF_ENDPOINT: hub.url, HF_HUB_CACHE: cache });

/** Runs the program to its end. */
function parley(args, env) {
    const child = spawn(PROGRAM, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const run = { child, out: '', err: '' };
    child.stdout.on('data', (data) => (run.out += data));
    child.stderr.on('data', (data) => (run.err += data));
    return new Promise((resolve) => child.on('close', (code, signal) => resolve({ ...run, code: code ?? signal })));
}

/** One line that begins with the program's name; exit code not 0. */
async function refused(args, env, sentence, code) {
    const run = await parley(args, env);
    assert.match(run.err, sentence);
    assert.equal(run.err.trim().split('\n').filter((line) => line.startsWith('parley:')).length, 1, run.err);
    assert.equal(run.out, '');
    if (code !== undefined) assert.equal(run.code, code, run.err);
    else assert.notEqual(run.code, 0);
    return run;
}

/** What is in the cache: every blob under its final name is whole, and nothing lies elsewhere. */
function checkCache(cache) {
    const found = [];
    for (const repo of existsSync(cache) ? readdirSync(cache) : []) {
        if (repo === '.locks') continue;
        assert.match(repo, /^models--/);
        const blobs = join(cache, repo, 'blobs');
        for (const name of existsSync(blobs) ? readdirSync(blobs) : []) {
            const data = readFileSync(join(blobs, name));
            if (name.endsWith('.incomplete')) continue;
            assert.equal(name.length === 64 ? sha256(data) : gitHash(data), name, 'a blob that is not what its name says');
            found.push(name);
        }
    }
    return found;
}

const bytes = (n, seed) => {
    const data = Buffer.alloc(n);
    for (let i = 0, x = seed; i < n; i++) data[i] = (x = (x * 1103515245 + 12345) & 0x7fffffff) >> 16;
    return data;
};

const text = (value) => Buffer.from(value);
const length = (n, size = 8) => {
    const b = Buffer.alloc(size);
    b.writeUIntLE(n, 0, 6 < size ? 6 : size);
    return b;
};
/** The beginning of a GGUF file, then bytes. */
const gguf = (architecture, n, seed, { types = [], vocabulary = 0 } = {}) => {
    const word = (s) => Buffer.concat([length(s.length), text(s)]);
    const head = [text('GGUF'), length(3, 4), length(types.length), length(vocabulary ? 3 : 2)];
    head.push(word('general.quantized_by'), length(8, 4), word('us'), word('general.architecture'), length(8, 4), word(architecture));
    if (vocabulary) head.push(word('tokenizer.ggml.tokens'), length(9, 4), length(8, 4), length(vocabulary), ...Array.from({ length: vocabulary }, (_, i) => word(`token ${i}`)));
    let offset = 0; // tensors of 256 numbers each; blocks of 256 or of 32
    for (const [i, type] of types.entries()) {
        head.push(word(`blk.${i}.ffn_up.weight`), length(1, 4), length(256), length(type, 4), length(offset));
        offset += Math.ceil({ 2: 144, 16: 66, 18: 98 }[type] / 32) * 32;
    }
    const written = head.reduce((sum, b) => sum + b.length, 0);
    return Buffer.concat([...head, Buffer.alloc(types.length ? -written & 31 : 0), bytes(offset + n, seed)]);
};

const CONFIG = readFileSync(join(SEEDLING, 'config.json'));
const small = (seed = 1) => ({
    'config.json': CONFIG,
    'tokenizer.json': bytes(9000, seed + 1),
    'tokenizer_config.json': text('{}'),
    'README.md': text('not for us'),
    'onnx/model.onnx': bytes(5000, seed + 2),
    'consolidated.safetensors': bytes(5000, seed + 3),
    'model-00001-of-00002.safetensors': bytes(300000, seed + 4),
    'model-00002-of-00002.safetensors': bytes(200000, seed + 5),
    'model.safetensors.index.json': text('{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}'),
});
const NEEDED = ['config.json', 'model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors', 'model.safetensors.index.json', 'tokenizer.json', 'tokenizer_config.json'];

const hub = await startHub();
const secret = await startHub({ key: KEY });
process.on('exit', () => {
    hub.stop();
    secret.stop();
});

test('the real thing: pulled, listed, inspected, asked, served in its sandbox, removed', async () => {
    const cache = freshCache();
    const env = environment(hub, cache);
    const files = Object.fromEntries(readdirSync(SEEDLING).map((name) => [name, readFileSync(join(SEEDLING, name))]));
    const commit = hub.add('parley/Seedling', files);
    const pulled = await parley(['pull', 'parley/Seedling'], env);
    assert.equal(pulled.code, 0, pulled.err);
    const snapshot = join(cache, 'models--parley--Seedling/snapshots', commit);
    assert.equal(pulled.out.trim(), snapshot);
    assert.equal(readFileSync(join(cache, 'models--parley--Seedling/refs/main'), 'utf8'), commit);
    assert.ok(!pulled.err.includes('\x1b'), 'no escapes where there is no terminal');
    assert.ok(!existsSync(join(snapshot, 'README.md')));
    assert.equal(readlinkSync(join(snapshot, 'model.safetensors')), `../../blobs/${sha256(files['model.safetensors'])}`);
    checkCache(cache);

    const n = hub.requests.length;
    assert.equal((await parley(['pull', 'parley/Seedling'], env)).code, 0);
    assert.deepEqual(hub.requests.slice(n).map((r) => r.path.replace(/^.*\//, '')), ['main?blobs=true', 'config.json'], 'nothing twice');

    assert.match((await parley(['list'], env)).out, /^parley\/Seedling +0\.05 GB\n$/);
    assert.equal(JSON.parse((await parley(['list', '--json'], env)).out)[0].path, snapshot);
    assert.equal(JSON.parse((await parley(['inspect', 'parley/Seedling', '--json'], env)).out).vision, 'yes');
    const answer = await parley(['run', '-q', '-m', 'parley/Seedling', '--n-predict', '8', '--temp', '0', 'What is 7 plus 5?'], env);
    assert.equal(answer.code, 0, answer.err);
    assert.match(answer.out, /12/);

    const server = await startServer(['-m', 'parley/Seedling', '--port', '0'], env);
    await server.ready();
    assert.equal(JSON.parse((await request(server, { path: '/v1/models' })).body).data[0].id, 'parley/Seedling');
    assert.equal((await chat(server, 'What is 7 plus 5?', { max_tokens: 4 })).status, 200);
    assert.equal(await server.stop(), 0);

    assert.match((await parley(['remove', 'parley/Seedling'], env)).out, /0\.05 GB are free again/);
    assert.deepEqual(readdirSync(cache).filter((name) => name !== '.locks'), []);
    await refused(['run', '-m', 'parley/Seedling', 'x'], env, /there is no model parley\/Seedling, neither as a path nor in .*parley pull/, 3);
});

test('by HTTP, for who sits at this machine: what failed is said, one in memory stays, jobs end with the server', async () => {
    const env = environment(secret, freshCache());
    const files = Object.fromEntries(readdirSync(SEEDLING).map((name) => [name, readFileSync(join(SEEDLING, name))]));
    secret.add('org/open', files, { isPrivate: false });
    secret.add('org/private', small(70));
    const server = await startServer(['--port', '0'], env);
    await server.ready();
    const order = async (what, model, headers = {}) => (await request(server, { method: 'POST', path: `/v1/hub/${what}`, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify({ model }) })).status;
    const look = async () => JSON.parse((await request(server, { path: '/v1/hub' })).body);
    const job = async (model) => (await look()).jobs.find((one) => one.model === model);
    assert.equal(await order('pull', 'org/open', { 'X-Forwarded-For': '192.0.2.1' }), 403);
    assert.equal(await order('pull', 'org/open', { Host: '192.0.2.7' }), 403);
    for (const bad of ['../../etc', 'x', 'org/name; true', '', 7]) assert.equal(await order('pull', bad), 400, String(bad));
    assert.equal(await order('dance', 'org/open'), 404);
    assert.equal(await order('cancel', 'org/open'), 404);
    assert.equal(await order('offer', 'org/open'), 404);
    assert.equal(await order('pull', 'org/private'), 200);
    await eventually(async () => (await job('org/private')).state, 'failed');
    assert.match((await job('org/private')).message, /private.*HF_TOKEN/);
    assert.equal(await order('pull', 'org/open'), 200);
    await eventually(async () => (await job('org/open')).state, 'done');
    await eventually(async () => (await look()).models.map(({ name, complete, offered }) => [name, complete, offered].join()).join(), 'org/open,true,true');
    checkCache(env.HF_HUB_CACHE);
    assert.equal((await chat(server, 'What is 7 plus 5?', { model: 'org/open', max_tokens: 4 })).status, 200);
    assert.equal(await order('remove', 'org/open'), 409, 'it is in memory');
    secret.add('org/slow', { ...small(80), 'model-00001-of-00002.safetensors': bytes(400000, 81) }, { isPrivate: false });
    secret.fault('model-00001-of-00002.safetensors', { holdAt: 100000, always: true });
    assert.equal(await order('pull', 'org/slow'), 200);
    assert.equal(await order('pull', 'org/slow'), 409);
    await eventually(async () => (await job('org/slow')).bytes > 100000, true);
    assert.equal(await server.stop(), 0);
    secret.fault('model-00001-of-00002.safetensors');
    const again = await startServer(['--port', '0', '--no-hub'], env);
    await again.ready();
    assert.equal((await request(again, { path: '/v1/hub' })).status, 404);
    assert.equal(await again.stop(), 0);
});

test('only what Parley needs, of the index, of any revision; --pull fetches', async () => {
    const cache = freshCache();
    const env = environment(hub, cache);
    const commit = hub.add('org/sharded', small());
    const run = await parley(['pull', 'org/sharded@v1/b'], env);
    assert.equal(run.code, 0, run.err);
    assert.deepEqual(readdirSync(join(cache, 'models--org--sharded/snapshots', commit)).sort(), NEEDED);
    assert.equal(readFileSync(join(cache, 'models--org--sharded/refs/v1/b'), 'utf8'), commit);
    assert.equal((await parley(['pull', `org/sharded@${commit}`], env)).code, 0);
    assert.match((await parley(['list'], env)).out, new RegExp(`^org/sharded@${commit} `));
    const other = freshCache();
    await parley(['inspect', '--pull', 'org/sharded'], environment(hub, other));
    assert.equal(checkCache(other).length, 6, 'as --pull says, whatever inspect thinks of it');
});

test('the key goes to the hub alone; private and gated models, missing ones', async () => {
    const cache = freshCache();
    const env = environment(secret, cache);
    secret.add('org/private', small());
    secret.add('org/gated', small(), { isGated: true });
    await refused(['pull', 'org/private'], env, /org\/private: the model is private, or there is no such model: set HF_TOKEN/, 3);
    await refused(['pull', 'org/gated'], env, /gated: accept its terms/, 3);
    await refused(['pull', 'org/private'], { ...env, HF_TOKEN: 'wrong' }, /the hub refuses the key of HF_TOKEN/);
    await refused(['pull', 'org/private'], { ...env, HF_TOKEN: 'two words' }, /HF_TOKEN is not a key/, 2);
    secret.requests.length = 0;
    const run = await parley(['pull', 'org/private'], { ...env, HF_TOKEN: KEY });
    assert.equal(run.code, 0, run.err);
    assert.ok(secret.requests.some((r) => r.where === 'store'));
    for (const r of secret.requests) assert.equal(r.key, r.where === 'hub' ? `Bearer ${KEY}` : undefined, r.path);
    mkdirSync(join(folder, 'home'), { recursive: true });
    writeFileSync(join(folder, 'home/token'), `${KEY}\n`);
    const home = { ...env, HF_HOME: join(folder, 'home') };
    delete home.HF_HUB_CACHE;
    assert.equal((await parley(['pull', 'org/private'], home)).code, 0, 'the key of the file, the cache of HF_HOME');
    assert.ok(existsSync(join(folder, 'home/hub/models--org--private')));
    await refused(['pull', 'org/none'], { ...env, HF_TOKEN: KEY }, /there is no such model or revision on the hub/, 3);
    await refused(['pull', 'org/private@v9'], { ...env, HF_TOKEN: KEY }, /no such revision/, 3);
    secret.add('org/old', {}, { moved: 'org/private' });
    assert.equal((await parley(['pull', 'org/old'], { ...environment(secret, freshCache()), HF_TOKEN: KEY })).code, 0, 'a renamed repository');
});

test('GGUF: the named quantization, its parts, a vision tower; the list when it is unknown', async () => {
    const cache = freshCache();
    const env = environment(hub, cache);
    const parts = { 'Q8_0/M-Q8_0-00001-of-00002.gguf': gguf('qwen3vl', 5000, 1), 'Q8_0/M-Q8_0-00002-of-00002.gguf': gguf('qwen3vl', 4000, 2) };
    hub.add('org/M-GGUF', {
        'README.md': text('x'),
        'M-Q4_K_M.gguf': gguf('qwen3vl', 9000, 3),
        'M-UD-Q4_K_XL.gguf': gguf('qwen3vl', 9100, 4),
        ...parts,
        'mmproj-F32.gguf': gguf('clip', 8000, 5),
        'mmproj-BF16.gguf': gguf('clip', 7000, 6),
        'imatrix_unsloth.gguf': gguf('x', 5000, 7),
    });
    const names = (dir) => readdirSync(dir).sort();
    const run = await parley(['pull', 'org/M-GGUF'], env);
    assert.equal(run.code, 0, run.err);
    const snapshot = run.out.trim().replace(/\/[^/]*$/, '');
    assert.deepEqual(names(snapshot), ['M-Q4_K_M.gguf', 'mmproj-BF16.gguf']);
    await refused(['pull', 'org/M-GGUF:Q5_K_M'], env, /there is no quantization Q5_K_M; there are: Q4_K_M \(0\.0 GB\), UD-Q4_K_XL \(0\.0 GB\), Q8_0 \(0\.0 GB\)$/m, 3);
    assert.match((await parley(['pull', 'org/M-GGUF:q8_0'], env)).out, /snapshots\/[0-9a-f]+\/Q8_0\/M-Q8_0-00001-of-00002\.gguf\n/);
    assert.deepEqual(names(join(snapshot, 'Q8_0')), Object.keys(parts).map((path) => path.slice(5)));
    assert.match((await parley(['pull', 'org/M-GGUF:Q4_K_XL'], env)).out, /M-UD-Q4_K_XL\.gguf\n/);
    assert.deepEqual((await parley(['list'], env)).out.split('\n').map((line) => line.split(' ')[0]), ['org/M-GGUF:Q4_K_M', 'org/M-GGUF:Q8_0', 'org/M-GGUF:UD-Q4_K_XL', '']);
    assert.equal((await parley(['remove', 'org/M-GGUF:Q8_0'], env)).code, 0);
    assert.equal(checkCache(cache).length, 3, 'two models and the tower');
    assert.deepEqual(names(join(snapshot, 'Q8_0')), []);
    assert.equal((await parley(['remove', 'org/M-GGUF:Q4_K_M'], env)).code, 0);
    assert.equal((await parley(['remove', 'org/M-GGUF:UD-Q4_K_XL'], env)).code, 0);
    assert.deepEqual(readdirSync(cache).filter((name) => name !== '.locks'), [], 'with the last model the tower goes');
    hub.add('org/two', { 'a-Q5_K_M.gguf': gguf('qwen3', 5000, 1), 'a-Q6_K.gguf': gguf('qwen3', 5000, 2) });
    await refused(['pull', 'org/two'], env, /name one of its quantizations, as in ORG\/NAME:Q5_K_M; there are: Q5_K_M .*, Q6_K/);
});

test('what Parley cannot run is refused before a weight is fetched', async () => {
    const cache = freshCache();
    const env = environment(hub, cache);
    hub.add('org/other', { ...small(), 'config.json': text('{"model_type":"mamba9"}') });
    hub.add('org/packed', { ...small(), 'config.json': text(JSON.stringify({ ...JSON.parse(CONFIG), quantization_config: { quant_method: 'gptq' } })) });
    hub.add('org/gguf', { 'a-Q8_0.gguf': gguf('rwkv7', 90000, 1) });
    hub.add('org/no-tokenizer', { 'config.json': CONFIG, 'model.safetensors': bytes(9000, 1) });
    hub.add('org/nothing', { 'pytorch_model.bin': bytes(9000, 1), 'config.json': CONFIG });
    hub.requests.length = 0;
    await refused(['pull', 'org/other'], env, /org\/other: .*model_type "mamba9" is not supported; this version runs/, 3);
    await refused(['pull', 'org/packed'], env, /weights packed by "gptq" are not supported/, 3);
    await refused(['pull', 'org/gguf'], env, /general\.architecture is "rwkv7"/, 3);
    await refused(['pull', 'org/no-tokenizer'], env, /it has no tokenizer\.json/, 3);
    await refused(['pull', 'org/nothing'], env, /there is no model in it that Parley reads/, 3);
    assert.deepEqual(hub.requests.filter((r) => r.path.includes('safetensors') && !r.path.includes('index')), []);
    assert.deepEqual(hub.requests.filter((r) => r.where === 'store').map((r) => r.range), ['bytes=0-65535']);
    assert.ok(!existsSync(cache), 'and nothing is left');

    // The types of tensors stand behind the vocabulary, in each part by itself; no more of a file is read.
    hub.requests.length = 0;
    hub.add('org/types', { 'a-IQ2_XXS.gguf': gguf('qwen3', 90000, 1, { types: [2, 2, 16], vocabulary: 20000 }), 'a-Q4_0.gguf': gguf('qwen3', 90000, 1, { types: [2, 2], vocabulary: 20000 }) });
    hub.add('org/parts', { 'a-00001-of-00002.gguf': gguf('qwen3', 3 << 20, 2, { types: [2] }), 'a-00002-of-00002.gguf': gguf('qwen3', 9000, 3, { types: [18] }) });
    hub.add('org/cut', { 'a-Q4_0.gguf': gguf('qwen3', 0, 1, { types: [2, 2], vocabulary: 20000 }).subarray(0, -100) });
    await refused(['pull', 'org/types:IQ2_XXS'], env, /org\/types:IQ2_XXS: .*tensor blk\.2\.ffn_up\.weight is of type IQ2_XXS, which is not supported; take a file with Q8_0/, 3);
    assert.deepEqual(hub.requests.filter((r) => r.where === 'store').map((r) => r.range), ['bytes=0-65535', 'bytes=0-1048575']);
    await refused(['pull', 'org/parts'], env, /tensor blk\.0\.ffn_up\.weight is of type IQ3_XXS/, 3);
    await refused(['pull', 'org/cut'], env, /tensor blk\.1\.ffn_up\.weight: its 144 bytes at offset 160 pass the end of the file/, 3);
    assert.ok(!existsSync(cache), 'nothing of these either');
    const good = await parley(['pull', 'org/types'], env);
    assert.notEqual(good.code, 0, 'it is to be named');
    const named = await parley(['pull', 'org/types:Q4_0'], env);
    assert.equal(named.code, 0, named.err);
    hub.requests.length = 0;
    assert.equal((await parley(['pull', 'org/types:Q4_0'], env)).code, 0);
    assert.deepEqual(hub.requests.map((r) => r.where), ['hub'], 'what is there is not looked at again');
});

test('transfers that break go on; waiting as the hub asks; nothing wrong gets a name', async () => {
    const shard = 'model-00001-of-00002.safetensors';
    const env = () => environment(hub, freshCache());
    const pull = async (name, faults, more = {}) => {
        hub.add(name, small(), more);
        for (const [file, list] of Object.entries(faults)) hub.fault(file, ...[list].flat());
        hub.requests.length = 0;
        const e = env();
        const run = await parley(['pull', name], e);
        checkCache(e.HF_HUB_CACHE);
        for (const file of Object.keys(faults)) hub.fault(file);
        run.ranges = hub.requests.filter((r) => r.path.includes(shard) && r.where === 'store').map((r) => r.range);
        run.cache = e.HF_HUB_CACHE;
        return run;
    };
    let run = await pull('org/cut', { [shard]: [{ cutAt: 100000 }, { cutAt: 50000 }] });
    assert.equal(run.code, 0, run.err);
    assert.deepEqual(run.ranges, [undefined, 'bytes=100000-', 'bytes=150000-']);
    run = await pull('org/no-ranges', { [shard]: [{ cutAt: 100000 }, { noRange: true }] });
    assert.equal(run.code, 0, run.err);
    run = await pull('org/other-range', { [shard]: [{ cutAt: 100000 }, { shift: 1 }] });
    assert.equal(run.code, 0, run.err);
    run = await pull('org/spoilt-once', { [shard]: { spoil: true } });
    assert.equal(run.code, 0, run.err);
    assert.deepEqual(run.ranges, [undefined, undefined], 'begun anew');
    run = await pull('org/spoilt', { [shard]: { spoil: true, always: true } });
    assert.equal(run.code, 3);
    assert.match(run.err, /what came is not the file that the hub lists: its hash is another one/);
    assert.equal((await parley(['list'], environment(hub, run.cache))).out.match(/not whole/g)?.length, 1);
    await refused(['run', '-m', 'org/spoilt', 'x'], environment(hub, run.cache), /there is no model org\/spoilt/);
    run = await pull('org/changed', { [shard]: { instead: bytes(310000, 77), always: true } });
    assert.match(run.err, /larger than the hub lists it: it changed meanwhile/);
    run = await pull('org/shorter', { [shard]: { instead: bytes(1000, 77), always: true } });
    assert.match(run.err, /1000 bytes came; the hub lists it with 300000/);
    run = await pull('org/pointer', { [shard]: { instead: pointer(bytes(300000, 5)), always: true } });
    assert.match(run.err, /the hub sent the pointer of Git LFS in place of the file/);
    run = await pull('org/busy', { [shard]: [{ status: 503 }, { status: 429, headers: { 'Retry-After': '1' } }], list: { status: 500 } });
    assert.equal(run.code, 0, run.err);
    run = await pull('org/come-later', { [shard]: { status: 429, headers: { 'Retry-After': '7200' } } });
    assert.match(run.err, /the hub asks to come back in 120 minutes \(429\)/);
    run = await pull('org/expired', { [shard]: { status: 403 } });
    assert.equal(run.code, 0, 'an address of the store that holds no longer: the hub is asked anew');
    run = await pull('org/gone', { 'tokenizer_config.json': { status: 404, always: true } });
    assert.match(run.err, /tokenizer_config\.json is listed, but is not on the hub/);
    run = await pull('org/itself', {}, { servesItself: true });
    assert.equal(run.code, 0, run.err);
});

test('names that lead elsewhere are refused, and links that lie there are not followed', async () => {
    const cache = freshCache();
    const env = environment(hub, cache);
    for (const name of ['../evil', '/etc/evil', 'a/../../evil', 'a//b', 'a/./b', 'a\\b', 'a\u0001b', '..', '', 'x'.repeat(600)]) {
        hub.add('org/evil', small(), { extra: [{ rfilename: name, size: 1, blobId: gitHash(text('x')) }] });
        await refused(['pull', 'org/evil'], env, /leads out of the model's folder or cannot be one|the hub does not say/);
    }
    for (const listed of [{ lfs: { sha256: '../../../evil', size: 300000 } }, { lfs: { sha256: 'AB'.repeat(32), size: 300000 } }, { lfs: { size: 5, sha256: null } }, { lfs: null, blobId: '../x' }, { lfs: { sha256: 'a'.repeat(64), size: -1 } }]) {
        hub.add('org/evil', small(), { listed: { 'model-00001-of-00002.safetensors': listed } });
        await refused(['pull', 'org/evil'], env, /the hub does not say the size and the hash of model-00001/);
    }
    for (const list of ['', '[]', 'null', '{"sha":"../../x","siblings":[]}', '{"sha":"abcdef0123","siblings":{}}', '<html>']) {
        hub.fault('list', { text: list || ' ' });
        await refused(['pull', 'org/evil'], env, /what answers there is not a hub of models/);
    }
    hub.fault('list');
    assert.ok(!existsSync(cache));
    for (const name of ['evil', '../evil', 'a/b/c', '/a/b', 'a/..', 'a/b:', 'a/b@', 'a/b@../x', 'a/b@/x', 'a--b/c', 'a/b:x/y', '-a/b', 'a b/c', '']) {
        await refused(['pull', '--', name], env, /is not the name of a model/, 2);
    }
    const commit = hub.add('org/nested', { 'config.json': text('{}'), 'sub/a-Q8_0.gguf': gguf('qwen3', 5000, 1) });
    const snapshot = join(cache, 'models--org--nested/snapshots', commit);
    mkdirSync(snapshot, { recursive: true });
    mkdirSync(join(folder, 'elsewhere'));
    symlinkSync(join(folder, 'elsewhere'), join(snapshot, 'sub'));
    await refused(['pull', 'org/nested'], env, /sub\/a-Q8_0\.gguf: (Not a directory|Too many levels of symbolic links)/);
    assert.deepEqual(readdirSync(join(folder, 'elsewhere')), []);
});

test('no network, no space, no permission, another program at it, offline', async () => {
    const port = await new Promise((resolve) => {
        const server = createServer().listen(0, '127.0.0.1', () => {
            const { port: free } = server.address();
            server.close(() => resolve(free));
        });
    });
    const env = environment(hub, freshCache());
    await refused(['pull', 'org/a'], { ...env, HF_ENDPOINT: `http://127.0.0.1:${port}` }, /cannot be reached .*; is the network there\?/);
    await refused(['pull', 'org/a'], { ...env, HF_ENDPOINT: 'ftp://x' }, /HF_ENDPOINT is not an address/, 2);
    await refused(['pull', 'org/a'], { ...env, HF_HUB_OFFLINE: '1' }, /HF_HUB_OFFLINE is set, so nothing is fetched/);
    hub.add('org/huge', small(), { listed: { 'model-00001-of-00002.safetensors': { lfs: { sha256: 'ab'.repeat(32), size: 2 ** 49 } } } });
    await refused(['pull', 'org/huge'], env, /there is not enough space: 562949\.\d+ GB are to be fetched/);
    writeFileSync(join(folder, 'a-file'), '');
    await refused(['pull', 'org/huge'], { ...env, HF_HUB_CACHE: join(folder, 'a-file') }, /a-file\/models--org--huge\/blobs: Not a directory; HF_HOME names another place/);
    // Where nobody may make a folder, not even root.
    await refused(['pull', 'org/huge'], { ...env, HF_HUB_CACHE: '/sys/models' }, /models--org--huge\/blobs: (Operation not permitted|Permission denied|Read-only file system)/);
    /* So few files that the first program is at all of them: the second would wait for the hub with one of its own. */
    const names = ['config.json', 'tokenizer.json', 'model.safetensors'];
    hub.add('org/slow', { 'config.json': small()['config.json'], 'tokenizer.json': small()['tokenizer.json'], 'model.safetensors': bytes(300000, 9) });
    let letGo;
    hub.held = new Promise((resolve) => (letGo = resolve));
    hub.requests.length = 0;
    const first = parley(['pull', 'org/slow'], env);
    await eventually(() => names.every((name) => hub.requests.some(({ path }) => path.includes('/resolve/') && path.endsWith(name))), true);
    await refused(['pull', 'org/slow'], env, /another program is fetching .* now; try again/);
    letGo();
    hub.held = null;
    assert.equal((await first).code, 0);
});

test('bars on a terminal of 80 and 30 columns, a sentence where it is narrower', async () => {
    hub.add('org/bars', small());
    Object.assign(hub, { delayMs: 30, pieceBytes: 1 << 14 });
    for (const columns of [80, 30, 12]) {
        const child = spawn('script', ['-qec', `stty cols ${columns}; exec '${PROGRAM}' pull org/bars`, '/dev/null'], { env: environment(hub, freshCache()), stdio: ['ignore', 'pipe', 'pipe'] });
        let said = '';
        child.stdout.on('data', (data) => (said += data));
        assert.equal(await new Promise((resolve) => child.on('close', resolve)), 0, said);
        const drawn = said.split('\r\x1b[K').slice(1).map((rest) => rest.split(/[\r\n]/)[0]);
        assert.ok(drawn.every((line) => line.length < columns), drawn.join('\n'));
        assert.equal(/the terminal is too narrow for bars/.test(said), columns < 20, said);
        assert.equal(said.includes('\x1b'), columns >= 20, 'no escapes where nothing is drawn');
        if (columns === 80) assert.match(drawn.join('\n'), /del-00001-of-00002 \[[#.]{11}\] +\d+ % of 300 kB/);
        if (columns === 30) assert.match(drawn.join('\n'), /^ *\d+ % (\d+:\d\d )?.*-0000[12]-of-00002$/m);
    }
    Object.assign(hub, { delayMs: 0, pieceBytes: 1 << 16 });
});

await runTests();
