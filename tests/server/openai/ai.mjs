/** The Vercel `ai` package through its openai-compatible provider: texts, thoughts, an image, a
 * tool in a loop, an object, errors, abort. */
import assert from 'node:assert/strict';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, Output, generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { eventually, metric, runTests, startServer, test } from '../client.mjs';

const KEY = 'a-key-for-the-provider';
const server = await startServer(['--key', KEY]);
await server.ready();
const provider = createOpenAICompatible({ name: 'parley', baseURL: `http://127.0.0.1:${server.port}/v1`, apiKey: KEY, includeUsage: true, supportsStructuredOutputs: true });
const common = { model: provider('fake'), maxRetries: 0 };
const CALL = '<tool_call>\n<function=get_weather>\n<parameter=city>\nKöln "am" Rhein\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>';

test('a chat streams, with thoughts and usage', async () => {
    const result = streamText({ ...common, prompt: '!think hello wörld' });
    const pieces = [];
    for await (const piece of result.textStream) pieces.push(piece);
    assert.equal(pieces.join(''), 'You said: hello wörld');
    assert.equal(await result.reasoningText, 'Let me think.');
    assert.equal(await result.finishReason, 'stop');
    const usage = await result.usage;
    assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
    assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
    assert.equal(usage.inputTokenDetails.cacheReadTokens, 3);
    assert.equal((await generateText({ ...common, prompt: 'whole' })).text, 'You said: whole');
});

test('a chat with a tool streams: the call, its result, the answer', async () => {
    const seen = [];
    const tools = { get_weather: tool({
        inputSchema: z.object({ city: z.string(), days: z.number().int() }),
        execute: (input) => (seen.push(input), `sunny in ${input.city}`),
    }) };
    const result = streamText({ ...common, tools, stopWhen: stepCountIs(3), prompt: `!raw I look.\n${CALL}` });
    const parts = [];
    for await (const part of result.fullStream) parts.push(part);
    const typed = (type) => parts.filter((part) => part.type === type);
    assert.deepEqual(typed('error'), []);
    const input = { city: 'Köln "am" Rhein', days: 3 };
    assert.deepEqual(JSON.parse(typed('tool-input-delta').map((part) => part.delta).join('')), input);
    assert.deepEqual(typed('tool-call').map((part) => [part.toolName, part.input]), [['get_weather', input]]);
    assert.deepEqual(seen, [input]);
    assert.equal(typed('text-delta').map((part) => part.text).join(''), 'I look.You said: sunny in Köln "am" Rhein');
    assert.deepEqual((await result.steps).map((step) => step.finishReason), ['tool-calls', 'stop']);
    const whole = await generateText({ ...common, tools, stopWhen: stepCountIs(3), prompt: `!raw ${CALL}` });
    assert.equal(whole.text, 'You said: sunny in Köln "am" Rhein');
});

test('an image, and an object', async () => {
    const image = Buffer.from('\x89PNG some pixels IEND\0\0\0\0', 'latin1');
    const seen = await generateText({ ...common, messages: [{ role: 'user', content: [{ type: 'text', text: 'what?' }, { type: 'image', image, mediaType: 'image/png' }] }] });
    assert.equal(seen.text, '[image] You said: what?');
    const output = Output.object({ schema: z.object({ n: z.number() }) });
    assert.deepEqual((await generateText({ ...common, output, prompt: '!raw {"n":7}' })).output, { n: 7 });
});

test('errors are told, whole and streamed, and an abort frees the slot', async () => {
    const bad = await generateText({ ...common, prompt: 'x', topP: 7 }).catch((error) => error);
    assert.ok(APICallError.isInstance(bad), String(bad));
    assert.equal(bad.statusCode, 400);
    assert.match(bad.message, /top_p/);
    const errors = [];
    await streamText({ ...common, prompt: '!fail some words', onError: ({ error }) => errors.push(error) }).consumeStream();
    assert.equal(errors.length, 1);
    const controller = new AbortController();
    for await (const part of streamText({ ...common, prompt: '!len=8000 !delay=30', abortSignal: controller.signal }).fullStream) {
        if (part.type === 'text-delta') controller.abort();
    }
    await eventually(() => metric(server, 'parley_requests_running', { Authorization: `Bearer ${KEY}` }), 0);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
