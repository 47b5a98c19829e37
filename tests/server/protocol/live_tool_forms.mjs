/** Calls and reasoning of other families through the server: harmony, Gemma 4 and Mistral, streamed and
 * whole, in chat, Messages and Responses. */
import assert from 'node:assert/strict';
import { chat, events, joinChat, post, runTests, startServer, test } from '../client.mjs';

const parameters = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } };
const tools = [{ type: 'function', function: { name: 'get_weather', parameters } }];
const ARGUMENTS = { city: 'Köln "am" Rhein', days: 3 };
const JSON_ARGUMENTS = JSON.stringify(ARGUMENTS);

const FORMS = [
    { tool: 'openai', reasoning: 'openai_gptoss',
        said: `<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>${JSON_ARGUMENTS}<|call|>` },
    { tool: 'gemma4', reasoning: 'gemma4',
        said: '<|channel>thought\nLet me see.<channel|>I look.<|tool_call>call:get_weather{city:<|"|>Köln "am" Rhein<|"|>,days:3}<tool_call|>' },
    { tool: 'mistral', reasoning: 'mistral', said: `[THINK]Let me see.[/THINK]I look.[TOOL_CALLS]get_weather[ARGS]${JSON_ARGUMENTS}` },
];

for (const { tool, reasoning, said } of FORMS) {
    test(`${tool}: chat, whole and streamed`, async () => {
        const server = await startServer(['--tool-call-parser', tool, '--reasoning-parser', reasoning]);
        await server.ready();
        const reply = (await chat(server, `!raw ${said}`, { tools })).json().choices[0];
        assert.equal(reply.finish_reason, 'tool_calls');
        assert.equal(reply.message.content, 'I look.');
        assert.equal(reply.message.reasoning_content, 'Let me see.');
        assert.deepEqual(JSON.parse(reply.message.tool_calls[0].function.arguments), ARGUMENTS);
        const stream = await chat(server, `!raw ${said}`, { tools, stream: true });
        const { chunks, reasoning: thoughts } = joinChat(stream.text);
        const parts = chunks.flatMap((chunk) => chunk.choices ?? []).flatMap(({ delta }) => delta.tool_calls ?? []);
        assert.equal(thoughts, 'Let me see.');
        assert.equal(parts[0].function.name, 'get_weather');
        assert.deepEqual(JSON.parse(parts.map((part) => part.function.arguments).join('')), ARGUMENTS);

        const message = (await post(server, '/v1/messages', { model: 'fake', max_tokens: 3000, thinking: { type: 'enabled', budget_tokens: 2000 }, messages: [{ role: 'user', content: `!raw ${said}` }],
            tools: [{ name: 'get_weather', input_schema: parameters }] })).json();
        assert.equal(message.stop_reason, 'tool_use');
        const use = message.content.find((block) => block.type === 'tool_use');
        assert.deepEqual([use.name, use.input], ['get_weather', ARGUMENTS]);
        assert.equal(message.content.find((block) => block.type === 'text').text, 'I look.');

        const body = { model: 'fake', input: `!raw ${said}`, tools: [{ type: 'function', name: 'get_weather', parameters }] };
        const response = (await post(server, '/v1/responses', body)).json();
        const item = response.output.find((one) => one.type === 'function_call');
        assert.deepEqual([item.name, JSON.parse(item.arguments)], ['get_weather', ARGUMENTS]);
        assert.ok(response.output.some((one) => one.type === 'reasoning'));
        const streamed = events((await post(server, '/v1/responses', { ...body, stream: true })).text);
        const deltas = streamed.map((line) => JSON.parse(line)).filter((event) => event.type === 'response.function_call_arguments.delta');
        assert.deepEqual(JSON.parse(deltas.map((event) => event.delta).join('')), ARGUMENTS);
        assert.equal(await server.stop(), 0);
    });
}

await runTests();
