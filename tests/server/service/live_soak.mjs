/**
 * A long run of everything at once: texts whole and streamed in each dialect, several answers,
 * images, videos, kept answers, sockets that are cut and resume, uploads, history, clients that leave,
 * other models, and bad input. What each must bring is known: the double says what it was told, the
 * program itself says the same as the first time. At the end nothing runs and nothing is left, and
 * in a long run the memory of the second half is that of the first.
 *
 *     node tests/server/service/live_soak.mjs build/parley_fake       PARLEY_REQUESTS=1000000 for the whole
 *     node tests/server/service/live_soak.mjs build/parley            with Seedling, its images and videos
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, Socket, eventually, joinChat, makeRandom, runTests, startServer, test } from '../client.mjs';

const REQUESTS = Number(process.env.PARLEY_REQUESTS ?? 4000);
const SEED = Number(process.env.PARLEY_SEED ?? Date.now() % 1e6);
const CLIENTS = 12;
const LONG = 100_000; // a run whose memory says something
const BAD_SHARE = Number(process.env.PARLEY_BAD_SHARE ?? 0.04);
const root = fileURLToPath(new URL('../../..', import.meta.url));
const isDouble = PROGRAM.endsWith('parley_fake');
const dir = mkdtempSync(join(tmpdir(), 'parley-soak-'));
mkdirSync(join(dir, 'files'));
process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
const own = isDouble ? [] : ['serve', '-m', join(root, 'assets/seedling'), '--port', '0', '-c', '2048', '--cache-ram', '64', '--mem-limit', '1500'];
/* A long run may get no processor for minutes, as other programs do: neither side gives up on the other for that. */
const PATIENCE = 600_000;
const patient = ['--header-timeout', '--body-timeout', '--send-timeout', '--step-timeout', '--ws-ping'].flatMap((name) => [name, '3600']);
const server = await startServer([...own, '--history', join(dir, 'history'), '--upload-dir', join(dir, 'files'), '--queue', '64', '--min-body-rate', '0', ...patient], { PARLEY_CONFIG: 'none' });
process.on('exit', () => server.child.kill('SIGKILL'));
await server.ready();
console.log(`seed ${SEED}`);

const random = makeRandom(SEED);
const pick = (list) => list[Math.floor(random() * list.length)];
const sha256 = (data) => createHash('sha256').update(data).digest('hex');

/* ---- asking ---- */

const keeping = new http.Agent({ keepAlive: true, maxSockets: CLIENTS });
let asked = 0;
let n_again = 0;

/**
 * A connection that nothing is asked on is closed after a while, which may cross the next request: that is sent
 * again (RFC 9112, 9.3.1), on a new connection, so that a second time is an error. Were it answered twice, what
 * follows would be wrong. leaveAt: hang up once the reply has so many bytes.
 */
async function send(method, path, value, more) {
    asked += 1;
    try {
        return await sendOnce(method, path, value, more);
    } catch (error) {
        if (!error.wasIdle) throw error;
        n_again += 1;
        return sendOnce(method, path, value, { ...more, agent: false });
    }
}

function sendOnce(method, path, value, { headers = {}, leaveAt, agent = keeping } = {}) {
    const body = value === undefined ? undefined : Buffer.isBuffer(value) || typeof value === 'string' ? value : JSON.stringify(value);
    return new Promise((resolve, reject) => {
        const all = { ...(body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }), ...headers };
        const out = http.request({ host: '127.0.0.1', port: server.port, method, path, headers: all, agent }, (reply) => {
            const parts = [];
            let n = 0;
            reply.on('data', (data) => {
                parts.push(data);
                n += data.length;
                if (n >= leaveAt) {
                    resolve({ status: reply.statusCode, left: true });
                    out.destroy();
                }
            });
            reply.on('end', () => {
                const data = Buffer.concat(parts);
                resolve({ status: reply.statusCode, body: data, text: data.toString(), json: () => JSON.parse(data.toString()) });
            });
            reply.on('error', () => {});
        });
        out.on('error', (error) => (leaveAt === undefined ? reject(Object.assign(error, { wasIdle: out.reusedSocket && error.code === 'ECONNRESET' && !out.res })) : resolve({ left: true })));
        out.end(body);
    });
}

async function good(method, path, value, more) {
    const reply = await send(method, path, value, more);
    assert.equal(reply.status, 200, `${method} ${path}: ${reply.text}`);
    return reply;
}

/* ---- what must come ---- */

const WORDS = ['hello', 'wörld', 'tree', '中文', '"quoted"', 'back\\slash', 'house', '128', 'red', 'x'.repeat(30)];
const known = new Map(); // question: answer
let marks = 0;

/** A question of one's own for the double; one of a few for a model. */
function question() {
    return isDouble ? `${marks++} ${Array.from({ length: 1 + Math.floor(random() * 8) }, () => pick(WORDS)).join(' ')}` : pick(['Hello!', 'What is 12 plus 7?', 'Name three colors.', 'Who are you?', 'Write a poem about rain.', 'What can you do?']);
}

function checkAnswer(text, asks) {
    const wanted = known.get(asks) ?? (isDouble && typeof asks === 'string' ? `You said: ${asks}` : text);
    if (!isDouble || typeof asks !== 'string') known.set(asks, wanted);
    assert.equal(text, wanted);
}

const most = isDouble ? 1000 : 100; // tokens of an answer
const common = { temperature: 0, max_tokens: most, ...(isDouble ? {} : { enable_thinking: false }) };
const chatOf = (content, more = {}) => ({ messages: [{ role: 'user', content }], ...common, ...more });

const samples = JSON.parse(readFileSync(join(root, 'assets/samples/samples.json'), 'utf8'));
const media = [...new Set(JSON.stringify(samples).match(/[\w-]+\.(png|jpg|mp4|webm|avi)/g))]
    .map((name) => ({ name, data: readFileSync(join(root, 'assets/samples', name)), isVideo: /mp4|webm|avi/.test(name) }))
    .filter((one) => !isDouble || /png$/.test(one.name)) // the double reads these alone
    .map((one) => ({
        ...one,
        part: one.isVideo
            ? { type: 'video_url', video_url: { url: `data:video/${one.name.split('.')[1]};base64,${one.data.toString('base64')}` } }
            : { type: 'image_url', image_url: { url: `data:image/${one.name.split('.')[1].replace('jpg', 'jpeg')};base64,${one.data.toString('base64')}` } },
    }));
assert.ok(media.length > 0);

async function upload(data) {
    const form = Buffer.concat([Buffer.from('--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'), data, Buffer.from('\r\n--b--\r\n')]);
    return (await good('POST', '/v1/files', form, { headers: { 'Content-Type': 'multipart/form-data; boundary=b' } })).json();
}

const chats = Array.from({ length: CLIENTS }, () => ({ revision: 0, messages: [] })); // the history, each client's own

const KINDS = {
    async whole() {
        const asks = question();
        checkAnswer((await good('POST', '/v1/chat/completions', chatOf(asks))).json().choices[0].message.content, asks);
    },
    async streamed() {
        const asks = question();
        const reply = joinChat((await good('POST', '/v1/chat/completions', chatOf(asks, { stream: true }))).text);
        assert.equal(reply.done, 1);
        checkAnswer(reply.content, asks);
    },
    async messages() {
        const asks = question();
        const { content } = (await good('POST', '/v1/messages', { max_tokens: most, temperature: 0, messages: [{ role: 'user', content: asks }], ...(isDouble ? {} : { thinking: { type: 'disabled' } }) })).json();
        checkAnswer(content.find((one) => one.type === 'text').text, asks);
    },
    async several() {
        const asks = question();
        for (const choice of (await good('POST', '/v1/chat/completions', chatOf(asks, { n: 3 }))).json().choices) checkAnswer(choice.message.content, asks);
    },
    async kept() {
        const asks = question();
        const made = (await good('POST', '/v1/responses', { input: asks, temperature: 0, max_output_tokens: most, store: true, ...(isDouble ? {} : { reasoning: { effort: 'none' } }) })).json();
        const again = (await good('GET', `/v1/responses/${made.id}`)).json();
        for (const one of [made, again]) checkAnswer(one.output.find((item) => item.type === 'message').content[0].text, asks);
        await good('DELETE', `/v1/responses/${made.id}`);
        assert.equal((await send('GET', `/v1/responses/${made.id}`)).status, 404);
    },
    async seen() {
        const one = pick(media);
        const key = `${one.name} seen`;
        const asks = isDouble ? [one.part, { type: 'text', text: 'What is this?' }] : [one.part, { type: 'text', text: one.isVideo ? 'Describe the video.' : 'Describe the image.' }];
        const text = (await good('POST', '/v1/chat/completions', chatOf(asks))).json().choices[0].message.content;
        if (!known.has(key)) known.set(key, text);
        assert.equal(text, known.get(key));
    },
    async left() {
        await send('POST', '/v1/chat/completions', chatOf(isDouble ? '!len=4000 !delay=2 long' : 'Tell me a story.', { stream: true }), { leaveAt: 1 + Math.floor(random() * 2000) });
    },
    async resumed() {
        asked += 2;
        const asks = question();
        const ws = await Socket.open(server, { protocols: 'parley.v1', timeout: PATIENCE });
        assert.ok(await ws.wait('session.created', PATIENCE));
        ws.send({ type: 'response.create', input: asks, temperature: 0, max_output_tokens: most, ...(isDouble ? {} : { reasoning: { effort: 'none' } }) });
        const first = await ws.wait('response.created', PATIENCE);
        const isEnd = (m) => m.type === 'response.completed' || m.type === 'response.incomplete';
        const at = Math.floor(random() * 4);
        const seen = await ws.wait((m) => m.sequence_number >= at, PATIENCE);
        ws.destroy();
        const other = await Socket.open(server, { protocols: 'parley.v1', timeout: PATIENCE });
        assert.ok(await other.wait('session.created', PATIENCE));
        other.send({ type: 'response.resume', response_id: first.response_id, starting_after: -1 });
        const end = await other.wait(isEnd, PATIENCE);
        assert.ok(end && seen);
        const text = other.messages.filter((m) => m.type === 'response.output_text.delta').map((m) => m.delta).join('');
        other.destroy();
        assert.equal(text, end.response.output.find((item) => item.type === 'message').content[0].text);
        checkAnswer(text, asks);
    },
    async uploaded() {
        const data = Buffer.alloc(1 + Math.floor(random() * 60000), `${marks++} ${random()}`);
        const { id } = await upload(data);
        assert.ok((await good('GET', `/v1/files/${id}/content`)).body.equals(data));
        await good('DELETE', `/v1/files/${id}`);
        assert.equal((await send('GET', `/v1/files/${id}`)).status, 404);
    },
    async written(i) {
        const chat = chats[i];
        const path = `/v1/history/chats/c${i}_${chat.round ?? 0}`;
        const n = chat.messages.length;
        const message = { id: `m${n}`, parent: n ? `m${n - 1}` : null, role: n % 2 ? 'assistant' : 'user', text: question().repeat(20) };
        chat.revision = (await good('PUT', path, { revision: chat.revision, messages: [message] })).json().revision;
        chat.messages.push(message.text);
        if (n < 19) return;
        assert.deepEqual((await good('GET', path)).json().messages.map((one) => one.text), chat.messages);
        assert.ok([200, 204].includes((await send('DELETE', `${path}?revision=${chat.revision}`, undefined, { headers: { 'If-Match': String(chat.revision) } })).status));
        chats[i] = { revision: 0, messages: [], round: (chat.round ?? 0) + 1 };
    },
    async status() {
        const { memory } = (await good('GET', '/v1/status')).json();
        assert.ok(memory.request_bytes >= 0);
        assert.match((await good('GET', '/metrics')).text, /^parley_/m);
    },
};
const WEIGHTS = { whole: 30, streamed: 15, messages: 10, several: 4, kept: 6, seen: 5, left: 5, resumed: 5, uploaded: 4, written: 8, status: 2 };
const order = Object.entries(WEIGHTS).flatMap(([name, weight]) => Array(weight).fill(name));

/* ---- bad input ---- */

const WRONG = {
    temperature: ['warm', -1, [], {}, 1e9], top_p: ['x', 7, -0.1, []], max_tokens: ['many', -1, 1.5, {}], n: [0, 99, 'x', 1.5], messages: [null, {}, [], 'text', [5], [{}], [{ role: 'king', content: 'x' }], [{ role: 'user', content: 5 }]],
    stop: [5, {}, [5]], stream: ['yes', 1, {}], seed: ['x', 1.5, {}], logprobs: ['x', 5], top_logprobs: ['x', -1, 999], presence_penalty: ['x', 9], frequency_penalty: ['x', -9], response_format: ['x', 5, { type: 'poem' }, { type: 'json_schema' }, ...(isDouble ? [] : [{ type: 'json_schema', json_schema: { name: 'x', schema: { type: 'unicorn' } } }])],
    tools: ['x', [5], [{ type: 'spanner' }], [{ type: 'function', function: {} }]], tool_choice: [{ type: 'function', function: { name: 'nobody' } }, 'sometimes'], logit_bias: ['x', { a: 'b' }], stream_options: ['x'],
};
const MALFORMED = ['', '{', '[]', 'null', '5', '"x"', '{"messages": [}', '{"a": 1,}', '{"messages": [{"role": "user", "content": "\\ud800"}', `${'['.repeat(5000)}`, '{"messages": [{"role": "user", "content": "\x01"}]}', Buffer.from('{"messages": [{"role": "user", "content": "\xff\xfe"}]}', 'latin1')];
const DAMAGED = ['data:image/png;base64,AAAA', 'data:image/png;base64,!!!!', 'data:text/plain;base64,AAAA', 'file:///etc/passwd', 'http://', 'nonsense', `data:image/png;base64,${media.find((one) => !one.isVideo).data.subarray(0, 90).toString('base64')}`];
const id = () => Math.floor(random() * 1e9).toString(36);
const BAD = [
    [400, () => {
        const field = pick(Object.keys(WRONG));
        return ['POST', '/v1/chat/completions', { ...chatOf(question()), [field]: pick(WRONG[field]) }];
    }],
    [400, () => ['POST', pick(['/v1/chat/completions', '/v1/messages', '/v1/responses', '/v1/completions']), pick(MALFORMED)]],
    [400, () => ['POST', '/v1/chat/completions', chatOf([{ type: 'image_url', image_url: { url: pick(DAMAGED) } }])]],
    [400, () => ['POST', '/v1/chat/completions', chatOf(pick(WORDS).repeat(20000))]],
    [400, () => ['POST', '/v1/messages', pick([{}, { max_tokens: 5 }, { max_tokens: -1, messages: [{ role: 'user', content: 'x' }] }, { max_tokens: 5, messages: 'x' }])]],
    [404, () => [pick(['GET', 'DELETE']), pick([`/v1/files/file_${id()}`, `/v1/responses/resp_${id()}`])]],
    [404, () => ['GET', pick([`/v1/${id()}/${id()}`, `/v1/history/files/${id()}`, `/v1/history/chats/none_${id()}`])]],
    [405, () => [pick(['PUT', 'DELETE', 'PATCH']), pick(['/v1/chat/completions', '/v1/messages', '/health'])]],
    [400, () => ['POST', '/v1/uploads', pick([{}, { bytes: 'x' }, { bytes: -1, filename: 'a', purpose: 'vision' }])]],
    [400, () => ['PUT', `/v1/history/chats/bad_${id()}`, pick([{}, { revision: 'x' }, { revision: 0, messages: 'x' }, { revision: 0, messages: [{}] }, '{'])]],
];
let n_bad = 0;

async function bad() {
    const [status, make] = pick(BAD);
    const [method, path, value] = make();
    const reply = await send(method, path, value);
    assert.equal(reply.status, status, `${method} ${path} ${String(typeof value === 'object' && !Buffer.isBuffer(value) ? JSON.stringify(value) : value).slice(0, 300)}: ${reply.text}`);
    assert.ok(reply.json().error.message.length > 10, reply.text);
    n_bad += 1;
}

/* ---- the run ---- */

const rss = () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))[1]) / 1024;
const mean = (list) => list.reduce((sum, one) => sum + one, 0) / list.length;

test(`${REQUESTS} requests of all kinds`, async () => {
    const memory = []; // [requests, MiB]
    const counts = {};
    const begin = Date.now();
    let failed = null;
    async function client(i) {
        while (asked < REQUESTS && !failed) {
            const name = random() < BAD_SHARE ? 'bad' : pick(order);
            try {
                await (name === 'bad' ? bad() : KINDS[name](i));
            } catch (error) {
                failed ??= Object.assign(error, { stack: `${name}, after ${asked} requests: ${error.stack}` });
            }
            counts[name] = (counts[name] ?? 0) + 1;
            if (asked - (memory.at(-1)?.[0] ?? 0) < REQUESTS / 200) continue;
            memory.push([asked, rss()]);
            if (REQUESTS >= LONG && memory.length % 20 === 0) console.log(`${asked} requests, ${rss().toFixed(1)} MiB resident, ${Math.round((Date.now() - begin) / 1000)} s`);
        }
    }
    await Promise.all(chats.map((_, i) => client(i)));
    const half = (from, to) => mean(memory.filter(([n]) => n > from * asked && n <= to * asked).map(([, mib]) => mib));
    const first = half(0.1, 0.5);
    const second = half(0.5, 1);
    console.log(`${asked} requests in ${Math.round((Date.now() - begin) / 1000)} s: ${Object.entries(counts).map(([name, n]) => `${name} ${n}`).join(', ')}`);
    const tenths = memory.filter((_, i) => i % Math.ceil(memory.length / 10) === 0).map(([, mib]) => mib.toFixed(1));
    console.log(`resident, MiB: ${tenths.join(' ')}`);
    console.log(`resident: ${first.toFixed(1)} MiB in the first half, ${second.toFixed(1)} in the second (${(second / first).toFixed(4)})`);
    console.log(`${n_again} sent again, as their connection had just been closed`);
    if (failed) throw failed;
    assert.ok(n_bad > 0 && n_again <= 10 + asked / 10_000);
    if (REQUESTS >= LONG) assert.ok(second < 1.02 * first);
});

test('nothing runs on, nothing is left', async () => {
    await eventually(async () => {
        const { memory, uploads } = (await good('GET', '/v1/status')).json();
        return [memory.request_bytes, uploads.bytes].join();
    }, '0,0', PATIENCE);
    keeping.destroy();
    assert.equal(await server.stop(), 0);
});

await runTests();
