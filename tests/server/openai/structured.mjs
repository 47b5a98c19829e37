/** The official client's helpers for structured output against the whole program with Seedling. */
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { runTests, startServer, test } from '../client.mjs';

const server = await startServer(['serve', '--port', '0', '-c', '2048', '-t', '1', '--log-level', 'error']);
const client = new OpenAI({ baseURL: `http://127.0.0.1:${server.port}/v1`, apiKey: 'none', maxRetries: 0 });

const Step = z.object({ explanation: z.string().max(24), output: z.number().int().min(0).max(99) });
const Reasoning = z.object({
    steps: z.array(Step).min(1).max(2),
    answer: z.enum(['yes', 'no']),
    note: z.union([z.string().max(8), z.null()]),
    mode: z.discriminatedUnion('kind', [z.object({ kind: z.literal('fast') }), z.object({ kind: z.literal('slow'), wait: z.boolean() })]),
});
const messages = [{ role: 'user', content: 'Is 7 a prime number?' }];

test('chat.completions.parse', async () => {
    const completion = await client.chat.completions.parse({ model: 'any', messages, max_tokens: 400, temperature: 0,
        response_format: zodResponseFormat(Reasoning, 'reasoning') });
    const { parsed } = completion.choices[0].message;
    assert.deepEqual(Reasoning.parse(parsed), parsed);
});

test('chat.completions.stream', async () => {
    const stream = client.chat.completions.stream({ model: 'any', messages, max_tokens: 400, temperature: 0.7, seed: 2,
        response_format: zodResponseFormat(Reasoning, 'reasoning') });
    const { parsed } = (await stream.finalChatCompletion()).choices[0].message;
    assert.deepEqual(Reasoning.parse(parsed), parsed);
});

test('responses.parse', async () => {
    const response = await client.responses.parse({ model: 'any', input: 'Is 8 a prime number?', max_output_tokens: 400, temperature: 0,
        text: { format: zodTextFormat(Reasoning, 'reasoning') } });
    assert.deepEqual(Reasoning.parse(response.output_parsed), response.output_parsed);
});

test('a cut answer is told', async () => {
    await assert.rejects(client.chat.completions.parse({ model: 'any', messages, max_tokens: 3, response_format: zodResponseFormat(Reasoning, 'reasoning') }),
        OpenAI.LengthFinishReasonError);
});

test('the server ends in order', async () => assert.equal(await server.stop(), 0));

await runTests();
