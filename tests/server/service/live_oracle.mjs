/**
 * The promises of the event protocol over random conversations: numbers without gaps, deltas that
 * make up the final text, one end, lanes that do not mix, the identical rest after a socket was
 * cut, and a snapshot where the log is gone. The seed is fixed; ORACLE_SEED changes it.
 */
import assert from 'node:assert/strict';
import { Socket, runTests, startServer, test } from '../client.mjs';

const N_CONVERSATIONS = 200;
const N_SOCKETS = 8;
const LANES = ['a', 'b', 'c'];
const WAIT_MS = 60000; // a machine may be busy
const SEED = Number(process.env.ORACLE_SEED ?? 1);

const server = await startServer(['--tool-call-parser', 'hermes']);
await server.ready();
console.log(`seed ${SEED}`);

/** Numbers below n, the same ones for a seed (xorshift). */
function makeRandom(seed) {
    let x = (seed * 2654435761 + 88675123) >>> 0 || 1;
    return (n) => {
        x ^= x << 13;
        x ^= x >>> 17;
        x ^= x << 5;
        x >>>= 0;
        return x % n;
    };
}

const WORDS = ['hello', 'wörld', '😀', 'tree', '中文', 'a "quote"', 'back\\slash', 'line\nbreak', 'x'.repeat(40)];
const CALL = '!raw <tool_call>\n{"name": "look", "arguments": {"at": "tree"}}\n</tool_call>';
const TOOLS = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } }];

/** One request, and what must come of it. The mark makes its text its own. */
function randomRequest(random, mark) {
    const words = Array.from({ length: 1 + random(8) }, () => WORDS[random(WORDS.length)]);
    const said = `${mark} ${words.join(' ')}`;
    const steer = ['', '!think ', '!queued ', '!phases ', '!think !phases '][random(5)] + (random(4) ? '' : '!delay=1 ');
    const kind = random(10);
    if (kind === 0) return { body: { input: `${steer}!fail ${said}` }, status: 'failed' };
    if (kind === 1) return { body: { input: `${steer}${said}`, max_output_tokens: 4 + random(10) }, status: 'incomplete' };
    if (kind === 2) return { body: { input: CALL, tools: TOOLS }, status: 'completed', call: '{"at": "tree"}' };
    if (kind === 3) return { body: { input: '!len=8000 !delay=50' }, status: 'cancelled', cancel: true };
    return { body: { input: `${steer}${said}` }, status: 'completed', text: `You said: ${said}` };
}

const numbered = (messages, id) => messages.filter((m) => m.response_id === id && m.sequence_number !== undefined);
const isTerminal = (m) => /^response\.(completed|incomplete|failed)$/.test(m.type);
const joined = (list, type, index) => list.filter((m) => m.type === type && m.output_index === index).map((m) => m.delta).join('');

/** What holds for the events of every response, from number 0 on. Returns the response. */
function checkEvents(list) {
    list.forEach((m, i) => assert.equal(m.sequence_number, i));
    assert.equal(list.filter(isTerminal).length, 1);
    assert.ok(isTerminal(list.at(-1)));
    assert.equal(list[0].type, 'response.created');
    assert.equal(new Set(list.map((m) => m.stream_id)).size, 1);
    const { response } = list.at(-1);
    assert.equal(response.id, list[0].response_id);
    const done = list.filter((m) => m.type === 'response.output_item.done').map((m) => m.item);
    assert.equal(list.filter((m) => m.type === 'response.output_item.added').length, response.output.length);
    assert.equal(done.length, response.output.length);
    response.output.forEach((item, i) => {
        const isCall = item.type === 'function_call';
        const name = isCall ? 'function_call_arguments' : item.type === 'reasoning' ? 'reasoning_text' : 'output_text';
        const text = joined(list, `response.${name}.delta`, i);
        const end = list.filter((m) => m.type === `response.${name}.done` && m.output_index === i);
        assert.equal(end.length, 1);
        assert.equal(isCall ? end[0].arguments : end[0].text, text);
        assert.equal(isCall ? item.arguments : item.content[0].text, text);
        assert.deepEqual({ ...done[i], status: '' }, { ...item, status: '' });
    });
    return response;
}

function checkOutcome(response, wanted) {
    assert.equal(response.status, wanted.status);
    const message = response.output.find((item) => item.type === 'message');
    if (wanted.text) assert.equal(message.content[0].text, wanted.text);
    if (wanted.call) assert.equal(response.output.find((item) => item.type === 'function_call').arguments, wanted.call);
}

/** Inside a lane no answer says anything before the one in front of it has ended, but that it
 * exists. */
function checkLane(messages, lane) {
    const isEarly = (m) => m.type === 'response.created' || m.type === 'response.queued';
    const own = messages.filter((m) => m.stream_id === lane && m.sequence_number !== undefined && !isEarly(m));
    const runs = own.map((m) => m.response_id).filter((id, i, all) => id !== all[i - 1]);
    assert.equal(runs.length, new Set(runs).size, `answers mix in the lane ${lane}`);
}

async function openExtended(to = server) {
    const ws = await Socket.open(to, { protocols: 'parley.v1' });
    assert.ok(await ws.wait('session.created', WAIT_MS));
    return ws;
}

/** Sends a conversation's requests in random lanes of one socket and checks every answer; adds
 * their events to `all`. */
async function converse(ws, random, mark, all) {
    ws.messages.length = 0;
    const wanted = [];
    const n = 1 + random(3);
    for (let i = 0; i < n; i++) {
        const one = randomRequest(random, `${mark}.${i}`);
        one.lane = `${LANES[random(LANES.length)]}_${mark}`;
        one.body.metadata = { place: `${mark}.${i}` };
        ws.send({ type: 'response.create', stream_id: one.lane, ...one.body });
        wanted.push(one);
    }
    const ids = [];
    for (const [i, one] of wanted.entries()) {
        const created = await ws.wait((m) => m.type === 'response.created' && m.response.metadata.place === `${mark}.${i}`, WAIT_MS);
        assert.ok(created, 'response.created');
        assert.equal(created.stream_id, one.lane);
        if (one.cancel) ws.send({ type: 'response.cancel', response_id: created.response_id });
        ids.push(created.response_id);
    }
    for (const [i, one] of wanted.entries()) {
        assert.ok(await ws.wait((m) => isTerminal(m) && m.response_id === ids[i], WAIT_MS), 'a terminal event');
        const list = numbered(ws.messages, ids[i]);
        checkOutcome(checkEvents(list), one);
        assert.ok(list.every((m) => m.stream_id === one.lane));
        all.push(list);
    }
    for (const lane of new Set(wanted.map((one) => one.lane))) checkLane(ws.messages, lane);
    for (const m of ws.messages) {
        assert.ok(!m.response_id || ids.includes(m.response_id), 'an event of somebody else');
        assert.notEqual(m.type, 'error', JSON.stringify(m));
    }
}

const answers = []; // the events of every response

test(`${N_CONVERSATIONS} random conversations keep the promises`, async () => {
    await Promise.all(Array.from({ length: N_SOCKETS }, async (_, k) => {
        const ws = await openExtended();
        for (let i = k; i < N_CONVERSATIONS; i += N_SOCKETS) await converse(ws, makeRandom(SEED * 1000 + i), `c${i}`, answers);
        ws.destroy();
    }));
    assert.ok(answers.length >= N_CONVERSATIONS);
});

/** The rest of a response, read by a socket of its own. */
async function readRest(id, after) {
    const ws = await openExtended();
    ws.send({ type: 'response.resume', response_id: id, starting_after: after });
    assert.ok(await ws.wait(isTerminal, WAIT_MS), 'a terminal event');
    ws.destroy();
    return numbered(ws.messages, id);
}

test('a socket that is cut at any event resumes to the identical rest', async () => {
    await Promise.all(Array.from({ length: 12 }, async (_, k) => {
        const ws = await openExtended();
        ws.send({ type: 'response.create', input: `!think !delay=4 cut at event ${k} ${WORDS.join(' ')}` });
        assert.ok(await ws.wait((m) => m.sequence_number === k, WAIT_MS));
        const id = ws.messages.find((m) => m.response_id).response_id;
        ws.destroy(); // while it is being answered
        const seen = numbered(ws.messages, id);
        const rest = isTerminal(seen.at(-1)) ? [] : await readRest(id, seen.at(-1).sequence_number);
        checkEvents([...seen, ...rest]);
        assert.deepEqual(await readRest(id, -1), [...seen, ...rest]);
    }));
    await Promise.all(answers.slice(-3).map(async (list) => {
        for (let k = -1; k < list.length - 1; k++) assert.deepEqual(await readRest(list[0].response_id, k), list.slice(k + 1));
    }));
});

test('a reader whose place in the log is gone gets a snapshot, and the rest behind it', async () => {
    const small = await startServer(['--event-log', '24576']);
    await small.ready();
    const ws = await openExtended(small);
    /* the first two events do not fit the log together; the last ones do */
    ws.send({ type: 'response.create', input: '!think !len=8000 !delay=50', instructions: 'x'.repeat(15000) });
    assert.ok(await ws.wait('response.output_text.delta', WAIT_MS));
    const id = ws.messages.find((m) => m.response_id).response_id;
    const late = await openExtended(small);
    late.send({ type: 'response.resume', response_id: id, starting_after: -1 });
    const snapshot = await late.wait('response.snapshot', WAIT_MS);
    assert.ok(await late.wait('response.output_text.delta', WAIT_MS));
    ws.send({ type: 'response.cancel', response_id: id });
    const end = await late.wait(isTerminal, WAIT_MS);
    const [first, ...rest] = late.messages.filter((m) => m.sequence_number !== undefined);
    assert.equal(first, snapshot);
    rest.forEach((m, i) => assert.equal(m.sequence_number, snapshot.sequence_number + 1 + i));
    assert.equal(rest.at(-1), end);
    for (const [i, item] of end.response.output.entries()) {
        const name = item.type === 'reasoning' ? 'reasoning_text' : 'output_text';
        const before = snapshot.response.output[i]?.content[0].text ?? '';
        assert.equal(before + joined(rest, `response.${name}.delta`, i), item.content[0].text);
    }
    ws.destroy();
    late.destroy();
    assert.equal(await small.stop(), 0);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
