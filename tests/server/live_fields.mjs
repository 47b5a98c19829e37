/** Every number of a request at and beyond its limits, and of other types: accepted, or refused by name; never an error of the server. */
import assert from 'node:assert/strict';
import { chat, post, runTests, startServer, test } from './client.mjs';

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
    real('logit_bias', -100, 100, { body: (value) => `"logit_bias":{"65":${value}}`, nullIsBad: true }),
];
const LENGTH = [whole('max_tokens', 1, INT32_MAX), whole('max_completion_tokens', 1, INT32_MAX), whole('n_predict', -1, INT32_MAX), whole('n', 1, 1)];
const THINKING = [whole('reasoning_budget', -1, INT32_MAX), whole('thinking_budget', -1, INT32_MAX)];
const FILMS = inside('mm_processor_kwargs', [real('fps', 0.001, 240), whole('num_frames', 1, 768), whole('min_frames', 1, 768), whole('max_frames', 1, 768)]);

const ROUTES = [
    { path: '/v1/chat/completions', start: '"logprobs":true,"messages":[{"role":"user","content":"hello"}]',
        fields: [...SAMPLING, ...LENGTH, ...THINKING, ...FILMS, whole('top_logprobs', 0, 20)] },
    { path: '/v1/completions', start: '"prompt":"hello"', fields: [...SAMPLING, ...LENGTH, whole('logprobs', 0, 5), whole('best_of', 1, 1)] },
    { path: '/v1/responses', start: '"input":"hello"', fields: [...SAMPLING, ...THINKING, ...FILMS, whole('max_output_tokens', 1, INT32_MAX)] },
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

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
