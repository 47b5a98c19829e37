/** Long conversations through the official clients and the whole program with Seedling: what the model was given instead
 * of them. Where it answers the shorter conversation, sent as it is, in the same words and with the same tokens, that is
 * what it read. */
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { runTests, startServer, test } from '../client.mjs';

const server = await startServer(['serve', '--port', '0', '-c', '8192', '-t', '1', '--temp', '0', '--log-level', 'error']);
await server.ready();
const openai = new OpenAI({ baseURL: `http://127.0.0.1:${server.port}/v1`, apiKey: 'none', maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: `http://127.0.0.1:${server.port}`, apiKey: 'none', maxRetries: 0 });
const TURNS = Array.from({ length: 40 }, (_, i) => [{ role: 'user', content: `What is ${i} plus 5? ${'Please take your time. '.repeat(4)}` }, { role: 'assistant', content: `${i} + 5 = ${i + 5}` }]).flat();
const SYSTEM = { role: 'developer', content: 'You are Seedling.' }, last = { role: 'user', content: 'What is 7 plus 5?' };

test('Responses: the summary, the system\'s words and the last question are what the model reads', async () => {
    const input = [SYSTEM, ...TURNS, last], context_management = [{ type: 'compaction', compact_threshold: 1000 }];
    const counted = async (items) => (await openai.responses.inputTokens.count({ model: 'any', input: items })).input_tokens;
    assert.ok(await counted(input) > 1000);
    const whole = await openai.responses.create({ model: 'any', input, context_management });
    const [summary, message] = whole.output;
    assert.deepEqual(whole.output.map((item) => item.type), ['compaction', 'message']);
    assert.ok(Buffer.from(summary.encrypted_content, 'base64').toString().length > 0);
    const short = [SYSTEM, summary, last], plain = await openai.responses.create({ model: 'any', input: short });
    assert.equal(message.content[0].text, plain.output_text);
    assert.ok(plain.usage.input_tokens < 1000);
    const asked = await openai.responses.compact({ model: 'any', input: [SYSTEM, ...TURNS, last] });
    assert.equal(whole.usage.input_tokens, asked.usage.input_tokens + plain.usage.input_tokens, 'both rounds are counted');
    const next = await openai.responses.create({ model: 'any', input: 'What is 1 plus 2?', previous_response_id: whole.id });
    assert.equal(next.usage.input_tokens, await counted([SYSTEM, last, summary, message, { role: 'user', content: 'What is 1 plus 2?' }]), 'what was summed up is gone, the question is not');
    assert.equal(next.usage.input_tokens, await counted([SYSTEM, ...TURNS, last, summary, message, { role: 'user', content: 'What is 1 plus 2?' }]));
    const kept = await counted([{ role: 'user', content: 'x '.repeat(300) }, summary, last]);
    assert.ok(kept < await counted([{ role: 'user', content: 'x '.repeat(300) }, last]) - 200, 'before a new question it stands for all');
});

test('Messages: results of tools that went are as if a short note had stood in their place', async () => {
    const tools = [{ name: 'look', description: 'Looks something up.', input_schema: { type: 'object', properties: { what: { type: 'string' } } } }];
    const result = (i, content) => [{ role: 'user', content: `Look up thing ${i}.` }, { role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${i}`, name: 'look', input: { what: `thing ${i}` } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: `toolu_${i}`, content }] }, { role: 'assistant', content: `It is thing ${i}.` }];
    const talk = (note) => [...[1, 2, 3, 4].flatMap((i) => result(i, i <= 2 && note ? note : `${i}: ${'many words about it. '.repeat(60)}`)), { role: 'user', content: 'What is 7 plus 5?' }];
    const body = (messages, more) => ({ model: 'any', max_tokens: 60, tools, messages, ...more });
    const edits = [{ type: 'clear_tool_uses_20250919', trigger: { type: 'input_tokens', value: 500 }, keep: { type: 'tool_uses', value: 2 } }];
    const ask = (more) => anthropic.beta.messages.create({ ...body(talk(), more), betas: ['context-management-2025-06-27'] });
    const cleared = await ask({ context_management: { edits } }), full = await ask({});
    const [edit] = cleared.context_management.applied_edits;
    assert.equal(edit.cleared_tool_uses, 2);
    const tokens = (reply) => reply.usage.input_tokens + reply.usage.cache_read_input_tokens;
    assert.equal(edit.cleared_input_tokens, tokens(full) - tokens(cleared));
    const note = '[this result was left out to save room]';
    const plain = await anthropic.messages.create(body(talk(note)));
    assert.equal(tokens(cleared), tokens(plain));
    assert.deepEqual(cleared.content, plain.content);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
