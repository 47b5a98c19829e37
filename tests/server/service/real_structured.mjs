/**
 * Answers whose form is given, by the whole program with Seedling: json_object and json_schema in
 * both APIs; the same with and without drafts, alone and beside others, streaming and not;
 * reasoning, tools, cut answers, refused schemas.
 */
import assert from 'node:assert/strict';
import { events, joinChat, post, runTests, startServer, test } from '../client.mjs';

const server = await startServer(['serve', '--port', '0', '-c', '2048', '-t', '1', '--cache-ram', '16', '--log-level', 'error']);

const SCHEMA = {
    type: 'object',
    properties: {
        title: { type: 'string', maxLength: 12 },
        size: { enum: ['small', 'large'] },
        count: { type: 'integer', minimum: 3, maximum: 40 },
        tags: { type: 'array', items: { type: 'string', pattern: '^[a-z]{1,6}$' }, minItems: 1, maxItems: 2 },
        inner: { $ref: '#/$defs/point' },
    },
    required: ['title', 'size', 'count', 'tags', 'inner'],
    additionalProperties: false,
    $defs: { point: { type: 'object', properties: { x: { type: 'number', minimum: -1, maximum: 1 }, on: { type: ['boolean', 'null'] } }, required: ['x', 'on'], additionalProperties: false } },
};
const format = (schema) => ({ type: 'json_schema', json_schema: { name: 'thing', strict: true, schema } });

function check(text) {
    const value = JSON.parse(text);
    assert.deepEqual(Object.keys(value), ['title', 'size', 'count', 'tags', 'inner'], text);
    assert.ok([...value.title].length <= 12, text);
    assert.ok(['small', 'large'].includes(value.size), text);
    assert.ok(Number.isInteger(value.count) && value.count >= 3 && value.count <= 40, text);
    assert.ok(value.tags.length >= 1 && value.tags.length <= 2 && value.tags.every((tag) => /^[a-z]{1,6}$/.test(tag)), text);
    assert.deepEqual(Object.keys(value.inner), ['x', 'on'], text);
    assert.ok(Math.abs(value.inner.x) <= 1 && (value.inner.on === null || typeof value.inner.on === 'boolean'), text);
}

const PROMPTS = ['Describe a house as JSON.', 'Say hello and nothing else. No JSON!', '}}}}]]]]"""'];

async function ask(content, more = {}) {
    const reply = await post(server, '/v1/chat/completions',
        { messages: [{ role: 'user', content }], max_tokens: 300, temperature: 0, enable_thinking: false, response_format: format(SCHEMA), ...more });
    assert.equal(reply.status, 200, reply.text);
    return more.stream ? joinChat(reply.text) : reply.json().choices[0];
}

test('greedy, sampled and penalised answers have the form, the same with and without drafts', async () => {
    const ways = [{}, { temperature: 1.5, seed: 7 },
        { temperature: 0.8, top_p: 0.9, top_k: 20, seed: 1, presence_penalty: 1, repeat_penalty: 1.2, logprobs: true, logit_bias: { 5: 100, 90: -100 } }];
    for (const [i, content] of PROMPTS.entries()) {
        const way = ways[i % ways.length];
        const answer = await ask(content, way);
        if (answer.finish_reason === 'stop') check(answer.message.content);
        else assert.equal(answer.finish_reason, 'length');
        assert.equal((await ask(content, { ...way, mtp: false })).message.content, answer.message.content);
    }
});

test('several at once, streaming', async () => {
    const alone = [];
    for (const content of PROMPTS) alone.push((await ask(content)).message.content);
    const together = await Promise.all(PROMPTS.map((content) => ask(content, { stream: true })));
    assert.deepEqual(together.map((answer) => answer.content), alone);
    alone.forEach(check);
});

test('any object', async () => {
    const answer = await ask('What is the capital of Sri Lanka? Answer as JSON.', { response_format: { type: 'json_object' } });
    assert.equal(answer.finish_reason, 'stop');
    const value = JSON.parse(answer.message.content);
    assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value));
});

test('the form begins behind the reasoning', async () => {
    const { message } = await ask('Describe a ship as JSON.', { enable_thinking: true });
    assert.ok(message.reasoning_content.length > 0);
    check(message.content);
});

test('an answer that is cut says so', async () => {
    const answer = await ask(PROMPTS[0], { max_tokens: 4 });
    assert.equal(answer.finish_reason, 'length');
    assert.ok(answer.message.content.startsWith('{'));
});

test('a stop string ends it early', async () => {
    const answer = await ask(PROMPTS[0], { stop: '"size"' });
    assert.equal(answer.finish_reason, 'stop');
    assert.ok(answer.message.content.startsWith('{') && !answer.message.content.includes('size'));
});

test('Responses, whole and streaming', async () => {
    const body = { input: 'Describe a tree.', max_output_tokens: 400, temperature: 0, reasoning: { effort: 'none' },
        text: { format: { type: 'json_schema', name: 'thing', schema: SCHEMA, strict: true } } };
    const whole = (await post(server, '/v1/responses', body)).json();
    const text = whole.output.at(-1).content[0].text;
    check(text);
    const streamed = events((await post(server, '/v1/responses', { ...body, stream: true })).text).map((line) => JSON.parse(line));
    assert.equal(streamed.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join(''), text);
});

test('with tools an answer is either of both', async () => {
    const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } } }];
    const { message } = await ask('What is the weather in Paris?', { tools });
    if (message.tool_calls) return;
    if (!message.content.startsWith('<tool_call>')) check(message.content);
});

test('schemas that cannot be enforced are refused by name', async () => {
    const refused = [[{ type: 'object', properties: { a: { not: {} } } }, 'response_format.json_schema.schema.properties.a.not'],
        [{ type: 'string', pattern: '(' }, 'response_format.json_schema.schema.pattern'],
        [false, 'response_format.json_schema.schema'],
        [{ $ref: '#/nowhere' }, 'response_format.json_schema.schema.$ref']];
    for (const [schema, param] of refused) {
        const reply = await post(server, '/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }], response_format: format(schema) });
        assert.equal(reply.status, 400, reply.text);
        assert.equal(reply.json().error.param, param);
    }
    const reply = await post(server, '/v1/responses', { input: 'x', text: { format: { type: 'json_schema', name: 'x', schema: { if: {} } } } });
    assert.equal(reply.json().error.param, 'text.format.schema.if');
});

test('the server ends in order', async () => assert.equal(await server.stop(), 0));

await runTests();
