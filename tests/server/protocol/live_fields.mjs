/** Every number of a request at and beyond its limits, and of other types: accepted, or refused by
 * name; never an error of the server. */
import assert from 'node:assert/strict';
import { Socket, chat, post, request, runTests, startServer, test } from '../client.mjs';

const server = await startServer();
await server.ready();

const INT32_MAX = 2147483647;
const whole = (name, min, max, more) => ({ name, min, max, isWhole: true, ...more });
const real = (name, min, max, more) => ({ name, min, max, ...more });
/** Fields of an object in the body; the error names the whole path. */
const inside = (object, fields) => fields.map((field) => ({ ...field, body: (value) => `"${object}":{"${field.name}":${value}}`, name: `${object}.${field.name}` }));

const SAMPLING = [
    real('temperature', 0, 2), real('top_p', 0, 1), real('min_p', 0, 1), real('presence_penalty', -2, 2), real('frequency_penalty', -2, 2),
    real('repetition_penalty', 0.01, 10), real('repeat_penalty', 0.01, 10), whole('top_k', -1, 1000000),
    whole('seed', -(2n ** 63n), 2n ** 63n - 1n),
    real('specprefill_backbone_pct', 0, 1),
    real('logit_bias', -100, 100, { body: (value) => `"logit_bias":{"65":${value}}`, nullIsBad: true }),
];
const LENGTH = [whole('max_tokens', 1, INT32_MAX), whole('max_completion_tokens', 1, INT32_MAX), whole('n_predict', -1, INT32_MAX), whole('n', 1, 8)];
const THINKING = [whole('reasoning_budget', -1, INT32_MAX), whole('thinking_budget', -1, INT32_MAX), whole('thinking_token_budget', -1, INT32_MAX)];
const PIXELS = [whole('min_pixels', 1, 67108864), whole('max_pixels', 1, 67108864)];
const VIDEOS = [
    ...inside('mm_processor_kwargs', [real('fps', 0.001, 240), whole('num_frames', 1, 768), whole('min_frames', 1, 768), whole('max_frames', 1, 768), ...PIXELS]),
    real('video_fps', 0.001, 240), whole('video_max_frames', 1, 768), ...PIXELS,
];

const ROUTES = [
    { path: '/v1/chat/completions', start: '"logprobs":true,"messages":[{"role":"user","content":"hello"}]',
        fields: [...SAMPLING, ...LENGTH, ...THINKING, ...VIDEOS, whole('top_logprobs', 0, 20)] },
    { path: '/v1/completions', start: '"prompt":"hello"', fields: [...SAMPLING, ...LENGTH.slice(1), whole('max_tokens', 0, INT32_MAX), whole('logprobs', 0, 5), whole('best_of', 1, 1)] },
    { path: '/v1/responses', start: '"input":"hello"', fields: [...SAMPLING, ...THINKING, ...VIDEOS, whole('max_output_tokens', 1, INT32_MAX)] },
];

/** [JSON text, whether the field takes it] */
function cases({ min, max, isWhole, nullIsBad }) {
    const takes = (value) => value >= min && value <= max && (!isWhole || value !== 0.5);
    const beyond = typeof max === 'bigint' ? max + 1n : max + 1;
    const numbers = [-1, 0, 0.5, min, max, beyond, 1e308, -1e308].map((value) => [String(value), takes(value)]);
    return [...numbers, ['"1"', false], ['[1]', false], ['{}', false], ['true', false], ['null', !nullIsBad]];
}

for (const { path, start, fields } of ROUTES) {
    test(path, async () => {
        for (const field of fields) {
            for (const [value, isGood] of cases(field)) {
                const body = `{${start},${field.body ? field.body(value) : `"${field.name}":${value}`}}`;
                const reply = await post(server, path, body);
                assert.equal(reply.status, isGood ? 200 : 400, `${body}: ${reply.text}`);
                if (!isGood) assert.equal(reply.json().error.param, field.name, `${body}: ${reply.text}`);
            }
            assert.equal((await chat(server, 'ping')).json().choices[0].message.content, 'You said: ping');
        }
    });
}

/** Messages name the field in their sentence: Anthropic's errors have no param. */
test('/v1/messages', async () => {
    const fields = [real('temperature', 0, 2), real('top_p', 0, 1), whole('top_k', -1, 1000000), whole('seed', -(2n ** 63n), 2n ** 63n - 1n),
        whole('max_tokens', 1, INT32_MAX, { nullIsBad: true, isNeeded: true }),
        whole('budget_tokens', 1, INT32_MAX, { body: (value) => `"thinking":{"type":"enabled","budget_tokens":${value}}` })];
    for (const path of ['/v1/messages', '/v1/messages/count_tokens']) {
        for (const field of fields) {
            for (const [value, isGood] of cases(field)) {
                const rest = field.isNeeded ? '' : '"max_tokens":50,';
                const body = `{${rest}"messages":[{"role":"user","content":"hello"}],${field.body ? field.body(value) : `"${field.name}":${value}`}}`;
                const reply = await post(server, path, body);
                const isTaken = isGood || (path.endsWith('count_tokens') && field.isNeeded && value === 'null'); // it may be left out there
                assert.equal(reply.status, isTaken ? 200 : 400, `${path} ${body}: ${reply.text}`);
                if (!isTaken) assert.match(reply.json().error.message, new RegExp(field.name), body);
            }
        }
    }
});

/** What no number may be, wherever a whole one from 0 or 1 on is asked for. */
const NEVER = ['-1', '0.5', '1e308', '-1e308', '9007199254740993e40', '"1"', '[1]', '{}', 'true'];

test('/v1/uploads: bytes', async () => {
    for (const value of [...NEVER, '0', 'null']) {
        const reply = await post(server, '/v1/uploads', `{"filename":"a","bytes":${value}}`);
        assert.deepEqual([reply.status, reply.json().error?.param], [400, 'bytes'], value);
    }
    for (const [value, status] of [[1, 200], [2 ** 30, 200], [2 ** 30 + 1, 413], [Number.MAX_SAFE_INTEGER, 413]]) {
        const reply = await post(server, '/v1/uploads', { filename: 'a', bytes: value });
        assert.equal(reply.status, status, `${value}: ${reply.text}`);
        if (status === 200) assert.equal((await post(server, `/v1/uploads/${reply.json().id}/cancel`, '')).status, 200);
    }
});

test('/detokenize: tokens', async () => {
    for (const value of [...NEVER, 'null', '100000']) {
        const reply = await post(server, '/detokenize', `{"tokens":[65,${value}]}`);
        assert.deepEqual([reply.status, reply.json().error?.param], [400, 'tokens'], value);
    }
    assert.equal((await post(server, '/detokenize', '{"tokens":[65,0,255]}')).status, 200);
});

test('a prompt of tokens', async () => {
    for (const value of [...NEVER.filter((text) => text !== '[1]'), 'null']) {
        const reply = await post(server, '/v1/completions', `{"prompt":[65,${value}]}`);
        assert.equal(reply.status, 400, value);
        assert.match(reply.json().error.param, /^prompt/, value);
    }
    assert.equal((await post(server, '/v1/completions', '{"prompt":[65,66]}')).status, 200);
});

test('starting_after', async () => {
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    ws.send({ type: 'response.create', input: 'hello' });
    const { response_id: id } = await ws.wait('response.completed');
    for (const value of ['-2', '0.5', '1e308', '100000', '"1"', '[1]', '{}', 'true']) {
        ws.send(`{"type":"response.resume","response_id":"${id}","starting_after":${value}}`);
        const fault = await ws.wait('error');
        assert.deepEqual([fault.error.code, fault.error.param], ['invalid_event', 'starting_after'], value);
    }
    for (const value of ['-2', '1e308', '0.5', '%201', '+1', 'x', '', '2147483648', '9'.repeat(30)]) {
        const reply = await request(server, { path: `/v1/responses/${id}?stream=true&starting_after=${value}` });
        assert.deepEqual([reply.status, reply.json().error.param], [400, 'starting_after'], value);
    }
    for (const value of ['-1', '0', '3', '2147483647']) {
        assert.equal((await request(server, { path: `/v1/responses/${id}?stream=true&starting_after=${value}` })).status, 200, value);
    }
    ws.destroy();
    assert.equal((await chat(server, 'ping')).status, 200);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
