/**
 * Requests that are made to be slow, sent to the whole program by several clients at a time, some
 * of whom leave: others are answered in time, beyond a limit its name is said, and the end comes
 * within the drain time.
 *
 *     node tests/server/service/real_attacks.mjs PROGRAM         also with another build, to compare: PARLEY_ATTACKS=show
 */
import assert from 'node:assert/strict';
import { eventually, post, rawSocket, request, runTests, sleep, startServer, test } from '../client.mjs';

/** Far above what it takes on a busy machine, far below what each attack takes where nothing bounds it. */
const OTHERS_MS = 30000;
const ATTACKERS = 10;
const shows = process.env.PARLEY_ATTACKS === 'show';

const range = (n, make) => Array.from({ length: n }, (_, i) => make(i));
const properties = (n, make) => Object.fromEntries(range(n, (i) => [`property_${i}`, make(i)]));
const user = (content, more = {}) => ({ messages: [{ role: 'user', content }], max_tokens: 2, enable_thinking: false, ...more });
const schema = (value) => user('hi', { response_format: { type: 'json_schema', json_schema: { name: 'thing', schema: value } } });
const tool = (parameters) => user('hi', { tools: [{ type: 'function', function: { name: 'f', parameters } }] });

function chain(n, link) {
    const $defs = Object.fromEntries(range(n, (i) => [`d${i}`, link(`#/$defs/d${i + 1}`)]));
    $defs[`d${n}`] = { type: 'string' };
    return { $defs, $ref: '#/$defs/d0' };
}

/** Cycles whose lengths have no common divisor: their product is what there is to tell apart. */
function cycles(lengths) {
    const $defs = {};
    for (const n of lengths) for (let i = 0; i < n; i++) $defs[`c${n}_${i}`] = { properties: { next: { $ref: `#/$defs/c${n}_${(i + 1) % n}` } } };
    return { $defs, allOf: lengths.map((n) => ({ $ref: `#/$defs/c${n}_0` })) };
}

/* The status that each must have, and what its error names; 200 too: limits keep nobody from what
 * is merely large. */
const ATTACKS = {
    'an enum of 200,000 texts': [400, /more than 20000 states/, () => schema({ enum: range(200000, (i) => `v${i}`) })],
    'an enum of 100,000 numbers': [400, /50000 nodes/, () => schema({ enum: range(100000, (i) => i), minimum: 5 })],
    'enums that are compared': [200, null, () => schema({ allOf: range(4, (k) => ({ enum: range(5000, (i) => `v${(i * 7 + k) % 5000}`) })) })],
    'an enum beside a pattern': [200, null, () => schema({ enum: range(5000, (i) => `v${i}`), pattern: '^v([0-9]{1,200}){1,3}$' })],
    '2,000 texts of 1 KB': [400, /more than 20000 states/, () => schema({ enum: range(2000, (i) => `${i}`.padEnd(1000, 'abcdefghij')) })],
    'oneOf of 2,000 enums': [200, null, () => schema({ oneOf: range(2000, (i) => ({ enum: range(20, (k) => `e${i}_${k}`) })) })],
    'oneOf of 1,500 objects': [200, null, () => schema({ oneOf: range(1500, (i) => ({ type: 'object', properties: { kind: { const: `k${i}` } }, required: ['kind'] })) })],
    '4,500 properties': [200, null, () => schema({ type: 'object', properties: properties(4500, () => ({ type: 'string' })), required: range(4500, (i) => `property_${i}`) })],
    'objects that are open': [400, /150000000 steps/, () => schema({ type: 'object', properties: properties(300, (i) => ({ type: 'object', properties: properties(90, (k) => ({ type: 'integer', minimum: i * 100 + k })), additionalProperties: true })) })],
    'counted groups': [400, /more than 20000 states/, () => schema({ type: 'string', pattern: '^((a{50}){50}){50}$' })],
    'a long memory': [400, /more than 20000 states/, () => schema({ type: 'string', pattern: '(.*a.{14}|b.{12})' })],
    'many patterns': [400, /150000000 steps/, () => schema({ type: 'array', items: { anyOf: range(1900, (i) => ({ type: 'string', pattern: `^a{${i % 100}}[a-z]*${i}$` })) } })],
    'references of references': [200, null, () => schema(chain(40, ($ref) => ({ allOf: [{ $ref }, { $ref }] })))],
    'choices of choices': [400, /2000/, () => schema(chain(40, ($ref) => ({ anyOf: [{ $ref }, { $ref, title: 'x' }] })))],
    'cycles of references': [400, /32 MiB|150000000 steps/, () => schema(cycles([2, 3, 5, 7, 11, 13, 17, 19, 23]))],
    'a product of choices': [400, /2000/, () => schema({ allOf: range(20, (i) => ({ anyOf: range(20, (k) => ({ properties: { [`p${i}`]: { const: k } } })) })) })],
    'a tool whose references have no end': [200, null, () => tool({ $defs: { x: { anyOf: range(10, () => ({ $ref: '#/$defs/x' })) } }, type: 'object', properties: properties(50, () => ({ $ref: '#/$defs/x' })) })],
    'readings at once': [400, /4096 at once/, () => schema({ type: 'object', properties: properties(4500, () => ({ type: 'string' })) })],
    '250,000 members': [200, null, () => user('hi', Object.fromEntries(range(250000, (i) => [`x${i}`, 1])))],
    'a text of 4 MB': [400, /context/, () => user('<|'.repeat(2000000))],
};

const start = () => startServer(['serve', '--port', '0', '-c', '2048', '-t', '1', '--cache-ram', '16', '--queue', '32', '--drain-timeout', '5', '--log-level', 'error']);

/** Sends a body and leaves after `ms`. */
async function sendAndLeave(server, body, ms) {
    const raw = rawSocket(server);
    raw.send(`POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`);
    raw.send(body);
    await raw.untilClosed(ms);
    raw.socket.destroy();
}

/** How long one who does nothing wrong waits. A refusal is no answer. */
async function ask(server) {
    const began = Date.now();
    const reply = await Promise.race([post(server, '/v1/chat/completions', user('Hello')), sleep(60000)]);
    return { ms: Date.now() - began, status: reply?.status ?? 0, text: reply?.text };
}

/** Clients of whom some wait and some leave, again and again; the times of three questions
 * meanwhile. */
async function attack(server, body) {
    let goesOn = true;
    const attackers = range(ATTACKERS, async (i) => {
        while (goesOn) await sendAndLeave(server, body, i % 2 ? 300 : 1500);
    });
    await sleep(300);
    const answers = [];
    for (let i = 0; i < 3; i++) answers.push(await ask(server));
    const health = await request(server, { path: '/health' });
    goesOn = false;
    await Promise.all(attackers);
    return { answers, health };
}

test('each is answered, or refused with its limit', async () => {
    const server = await start();
    await server.ready();
    for (const [name, [status, limit, make]] of shows ? [] : Object.entries(ATTACKS)) {
        const reply = await post(server, '/v1/chat/completions', make());
        assert.equal(reply.status, status, `${name}: ${reply.text.slice(0, 300)}`);
        if (limit) assert.match(reply.json().error.message, limit, name);
    }
    /* The last one has its reply a little before its thread is done. */
    if (!shows) {
        await eventually(async () => {
            const { begun, waiting, oldest_ms, stalled } = (await request(server, { path: '/v1/status' })).json().preparation;
            return JSON.stringify([begun, waiting, oldest_ms, stalled]);
        }, '[0,0,0,false]');
    }
    assert.equal(await server.stop(), 0);
});

/** Ends the server while `body` is being prepared for four clients; how long it took, and the exit
 * code. */
async function endDuring(server, body) {
    const late = range(4, () => sendAndLeave(server, body, 60000));
    await sleep(300);
    const began = Date.now();
    const code = await Promise.race([server.stop(), sleep(60000)]);
    if (code === undefined) server.child.kill('SIGKILL');
    await Promise.all(late);
    return { code, ms: Date.now() - began };
}

let server;
for (const [name, [, , make]] of Object.entries(ATTACKS)) {
    test(`others are answered during: ${name}`, async () => {
        server ??= await start();
        await server.ready();
        const body = JSON.stringify(make());
        const { answers, health } = await attack(server, body);
        if (shows) {
            const { code, ms } = await endDuring(server, body);
            console.log(`${name}: others ${answers.map((a) => `${a.status} ${a.ms} ms`).join(', ')}; end ${code ?? 'none'} after ${ms} ms`);
            server = undefined;
            return;
        }
        for (const { status, text } of answers) assert.equal(status, 200, text);
        const slowest = Math.max(...answers.map(({ ms }) => ms));
        console.log(`     the slowest answer of others: ${slowest} ms`);
        assert.ok(slowest <= OTHERS_MS, `the slowest answer took ${slowest} ms`);
        assert.equal(health.status, 200);
    });
}

test('the end comes within the drain time', async () => {
    if (shows) return;
    const { code, ms } = await endDuring(server, JSON.stringify(ATTACKS['an enum of 200,000 texts'][2]()));
    console.log(`     the end: ${ms} ms`);
    assert.equal(code, 0);
    assert.ok(ms < 30000, `the end took ${ms} ms`);
});

await runTests();
