/** Tools and thinking with Seedling, the model that comes with the program: a whole loop of call,
 * result and answer; a
 *  budget for thoughts, the same with and without drafts, alone and beside others. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { Socket, joinChat, post, runTests, startServer, test } from '../client.mjs';

const model = fileURLToPath(new URL('../../../assets/seedling', import.meta.url));
const server = await startServer(['serve', '-m', model, '--port', '0', '-c', '16384', '-t', '1', '--temp', '0', '--cache-ram', '32', '--log-level', 'error']);
await server.ready();

const tool = (name, description, properties) => ({ type: 'function', function: { name, description, parameters: { type: 'object', properties, required: Object.keys(properties) } } });
const tools = [
    tool('get_weather', 'Get the current weather of a city', { city: { type: 'string', description: 'The city' } }),
    tool('set_timer', 'Set a timer', { minutes: { type: 'integer' } }),
    tool('set_light', 'Switch a light', { room: { type: 'string' }, on: { type: 'boolean' } }),
];
const ask = async (content, more = {}) => {
    const messages = Array.isArray(content) ? content : [{ role: 'user', content }];
    const reply = await post(server, '/v1/chat/completions', { messages, max_tokens: 120, ...more });
    assert.equal(reply.status, 200, reply.text);
    return more.stream ? joinChat(reply.text) : reply.json();
};

test('a loop: question, call, result, answer', async () => {
    const messages = [{ role: 'user', content: 'What is the weather in Paris?' }];
    const first = (await ask(messages, { tools })).choices[0];
    assert.equal(first.finish_reason, 'tool_calls');
    const [call] = first.message.tool_calls;
    assert.equal(call.function.name, 'get_weather');
    assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Paris' });
    messages.push(first.message, { role: 'tool', tool_call_id: call.id, content: '{"temperature": 18, "condition": "sunny"}' });
    const second = (await ask(messages, { tools })).choices[0];
    assert.equal(second.finish_reason, 'stop');
    assert.match(second.message.content, /sunny/);
});

test('values have the types of the schema, streamed as whole, thinking or not', async () => {
    for (const [question, name, values] of [['Set a timer for 12 minutes.', 'set_timer', { minutes: 12 }], ['Turn off the light in the kitchen.', 'set_light', { room: 'kitchen', on: false }]]) {
        for (const more of [{}, { enable_thinking: true }, { parallel_tool_calls: false }]) {
            const { message } = (await ask(question, { tools, ...more })).choices[0];
            assert.equal(message.tool_calls[0].function.name, name);
            assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), values);
            const { chunks, finish, reasoning } = await ask(question, { tools, stream: true, ...more });
            const parts = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
            assert.equal(parts.map((part) => part.function.arguments).join(''), message.tool_calls[0].function.arguments);
            assert.deepEqual(finish, ['tool_calls']);
            assert.equal(reasoning, message.reasoning_content ?? '');
        }
    }
});

const THINK = { tools, enable_thinking: true };

test('a budget closes the thoughts, and the answer goes on', async () => {
    const free = (await ask('Set a timer for 12 minutes.', THINK)).choices[0].message.reasoning_content;
    for (const budget of [0, 1, 3]) {
        const { choices, usage } = await ask('Set a timer for 12 minutes.', { ...THINK, reasoning_budget: budget });
        const thought = choices[0].message.reasoning_content ?? '';
        assert.ok(free.startsWith(thought), thought);
        assert.equal(thought === '', budget === 0);
        assert.equal(usage.completion_tokens_details.reasoning_tokens, budget + 2, 'the closing line break and marker count');
        assert.ok(choices[0].message.tool_calls?.length === 1 || choices[0].message.content);
    }
    const high = await ask('Set a timer for 12 minutes.', { tools, reasoning_effort: 'high' });
    assert.equal(high.choices[0].message.reasoning_content, free);
    const none = await ask('Set a timer for 12 minutes.', { tools, reasoning_effort: 'none' });
    assert.equal(none.choices[0].message.reasoning_content, undefined);
});

test('a budget changes nothing with drafts, in a batch, from the cache', async () => {
    const questions = ['What is the weather in Rome?', 'Set a timer for 7 minutes.', 'Turn on the light in the garden.', 'What is 2 plus 3?'];
    const bodies = questions.flatMap((question) => [2, 4, 300].map((budget) => [question, { ...THINK, reasoning_budget: budget }]));
    const text = ({ choices, usage }) => JSON.stringify([choices[0].message, usage.completion_tokens, usage.completion_tokens_details]).replaceAll(/call_[0-9a-f]+/g, 'call');
    const plain = [];
    for (const [question, more] of bodies) plain.push(text(await ask(question, { ...more, mtp: false, cache_prompt: false })));
    const drafted = await Promise.all(bodies.map(([question, more]) => ask(question, more)));
    assert.deepEqual(drafted.map(text), plain);
});

test('a control closes the thoughts like a budget', async () => {
    const { tokens } = (await post(server, '/tokenize', { content: '<|im_end|><|endoftext|>' })).json();
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    const question = { type: 'response.create', input: 'Set a timer for 12 minutes.', max_output_tokens: 60, enable_thinking: true, stream_id: 'lane' };
    const create = async (more) => {
        ws.send({ ...question, ...more });
        return (await ws.wait('response.created')).response.id;
    };
    const output = async (id) => {
        const { response } = await ws.wait((m) => /completed|incomplete$/.test(m.type) && m.response_id === id, 60000);
        return response.output.map(({ type, content }) => [type, content?.[0].text]);
    };
    /* The first does not end by itself in seconds, so what stands behind it in the lane waits when the control
     * comes. */
    const first = await create({ max_output_tokens: 16000, logit_bias: Object.fromEntries(tokens.map((id) => [id, -100])) });
    const told = await create({});
    const budgeted = await create({ reasoning_budget: 0 });
    const free = await create({});
    ws.send({ type: 'response.control', response_id: told, action: 'reasoning_end' });
    ws.send({ type: 'response.cancel', response_id: first });
    const expected = await output(budgeted);
    assert.deepEqual(await output(told), expected);
    assert.notDeepEqual(await output(free), expected);
    ws.destroy();
});

test('an answer cut while it thinks says so', async () => {
    const { choices } = await ask('What is the weather in Rome?', { ...THINK, max_tokens: 4 });
    assert.equal(choices[0].finish_reason, 'length');
    assert.equal(choices[0].message.content, '');
    assert.ok(choices[0].message.reasoning_content);
    const response = (await post(server, '/v1/responses', { input: 'What is the weather in Rome?', enable_thinking: true, max_output_tokens: 4 })).json();
    assert.deepEqual(response.incomplete_details, { reason: 'max_output_tokens' });
    assert.deepEqual(response.output.map((item) => [item.type, item.status]), [['reasoning', 'incomplete']]);
});

test('a call that is asked for comes, behind the thoughts', async () => {
    const question = 'Hi there';
    for (const more of [{}, { enable_thinking: true }, { enable_thinking: true, reasoning_budget: 2 }, { mtp: false }]) {
        const any = (await ask(question, { tools, tool_choice: 'required', parallel_tool_calls: false, ...more })).choices[0];
        assert.equal(any.finish_reason, 'tool_calls');
        assert.equal(any.message.tool_calls.length, 1);
        assert.equal(Boolean(any.message.reasoning_content), Boolean(more.enable_thinking));
        const one = (await ask(question, { tools, tool_choice: { type: 'function', function: { name: 'set_light' } }, ...more })).choices[0].message;
        assert.deepEqual(one.tool_calls.map((call) => call.function.name), ['set_light']);
        const values = JSON.parse(one.tool_calls[0].function.arguments);
        assert.deepEqual(Object.keys(values), ['room', 'on']);
        assert.equal(typeof values.on, 'boolean');
    }
    const flat = tools.map(({ function: f }) => ({ type: 'function', ...f }));
    const response = (await post(server, '/v1/responses', { input: question, tools: flat, tool_choice: { type: 'function', name: 'set_timer' }, max_output_tokens: 120 })).json();
    assert.deepEqual(response.output.map((item) => [item.type, item.name]), [['function_call', 'set_timer']]);
    const allowed = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'set_light' }] };
    const limited = (await post(server, '/v1/responses', { input: 'Set a timer of five minutes', tools: flat, tool_choice: allowed, parallel_tool_calls: false, max_output_tokens: 120 })).json();
    assert.deepEqual(limited.output.map((item) => [item.type, item.name]), [['function_call', 'set_light']]);
    for (const choice of ['sometimes', { type: 'function', function: { name: 'fly' } }]) {
        const reply = await post(server, '/v1/chat/completions', { messages: [{ role: 'user', content: question }], tools, tool_choice: choice });
        assert.equal(reply.status, 400);
        assert.equal(reply.json().error.param, 'tool_choice');
    }
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
