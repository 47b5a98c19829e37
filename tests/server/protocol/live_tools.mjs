/** Tool calls through the server: both forms, streamed and whole, chat and Responses, cut, stopped
 * and mistaken. */
import assert from 'node:assert/strict';
import { Socket, chat, events, joinChat, post, runTests, startServer, test } from '../client.mjs';

const server = await startServer();
await server.ready();

const tool = (name, properties = {}) => ({ type: 'function', function: { name, parameters: { type: 'object', properties } } });
const tools = [tool('get_weather', { city: { type: 'string' }, days: { type: 'integer' } }), tool('now')];
const flat = tools.map(({ type, function: f }) => ({ type, ...f }));
const call = (name, values = {}) =>
    `<tool_call>\n<function=${name}>\n${Object.entries(values).map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`).join('')}</function>\n</tool_call>`;
const WEATHER = call('get_weather', { city: 'Köln "am" Rhein\n<b>', days: 3 });
const ARGUMENTS = { city: 'Köln "am" Rhein\n<b>', days: 3 };

/** The message that the deltas of a streamed chat make. */
function assemble(text) {
    const { chunks, finish } = joinChat(text);
    const message = { content: '', calls: [], finish: finish[0] };
    for (const { delta } of chunks.flatMap((chunk) => chunk.choices ?? [])) {
        message.content += delta.content ?? '';
        for (const part of delta.tool_calls ?? []) {
            if (part.id) {
                assert.equal(part.index, message.calls.length);
                assert.equal(part.type, 'function');
                message.calls.push({ id: part.id, name: part.function.name, pieces: 0, text: '' });
            }
            message.calls[part.index].text += part.function.arguments;
            message.calls[part.index].pieces++;
        }
    }
    return message;
}

test('a call in a whole chat', async () => {
    const reply = (await chat(server, `!raw ${WEATHER}`, { tools })).json();
    const { message, finish_reason: finish } = reply.choices[0];
    assert.equal(finish, 'tool_calls');
    assert.equal(message.content, null);
    assert.equal(message.tool_calls.length, 1);
    assert.match(message.tool_calls[0].id, /^call_[0-9a-f]{32}$/);
    assert.equal(message.tool_calls[0].function.name, 'get_weather');
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), ARGUMENTS);
});

test('text, thoughts and two calls, streamed as whole', async () => {
    const said = `!think !raw I look. ${call('now')}\n${WEATHER}\n\nDone.`;
    const whole = (await chat(server, said, { tools })).json().choices[0].message;
    assert.equal(whole.reasoning_content, 'Let me think.');
    assert.equal(whole.content, 'I look.\n\nDone.');
    assert.deepEqual(whole.tool_calls.map((c) => c.function.name), ['now', 'get_weather']);
    const stream = await chat(server, said, { tools, stream: true });
    const message = assemble(stream.text);
    assert.equal(joinChat(stream.text).reasoning, 'Let me think.');
    assert.equal(message.content, whole.content);
    assert.equal(message.finish, 'tool_calls');
    assert.deepEqual(message.calls.map((c) => [c.name, c.text]), whole.tool_calls.map((c) => [c.function.name, c.function.arguments]));
});

test('arguments are streamed as they come', async () => {
    const text = 'word '.repeat(60);
    const stream = await chat(server, `!delay=5 !raw ${call('get_weather', { city: text })}`, { tools, stream: true });
    const { calls } = assemble(stream.text);
    assert.ok(calls[0].pieces > 5, `${calls[0].pieces} pieces`);
    assert.deepEqual(JSON.parse(calls[0].text), { city: text });
});

test('parallel_tool_calls: false ends the answer behind the first call', async () => {
    const reply = (await chat(server, `!raw ${call('now')}\n${call('now')}\nmore`, { tools, parallel_tool_calls: false })).json();
    assert.equal(reply.choices[0].message.tool_calls.length, 1);
    assert.equal(reply.choices[0].message.content, null);
    assert.equal(reply.choices[0].finish_reason, 'tool_calls');
});

test('without tools, with tool_choice none, in code and in prose a call is text', async () => {
    for (const more of [{}, { tools, tool_choice: 'none' }]) {
        const { message, finish_reason: finish } = (await chat(server, `!raw ${call('now')}`, more)).json().choices[0];
        assert.equal(message.content, call('now'));
        assert.equal(message.tool_calls, undefined);
        assert.equal(finish, 'stop');
    }
    const code = `Like this:\n\`\`\`\n${call('now')}\n\`\`\`\nor so ${call('now')}`;
    assert.equal((await chat(server, `!raw ${code}`, { tools })).json().choices[0].message.content, code);
});

test('an answer cut inside a call keeps it incomplete', async () => {
    const text = call('get_weather', { city: 'a long name of a city' });
    const max = text.indexOf('of a');
    const { message, finish_reason: finish } = (await chat(server, `!raw ${text}`, { tools, max_tokens: max })).json().choices[0];
    assert.equal(finish, 'length');
    assert.equal(message.tool_calls[0].function.arguments, '{"city":"a long name ');
    const response = (await post(server, '/v1/responses', { input: `!raw ${text}`, tools: flat, max_output_tokens: max })).json();
    assert.equal(response.status, 'incomplete');
    assert.equal(response.output[0].status, 'incomplete');
    assert.equal(response.output[0].arguments, '{"city":"a long name ');
});

test('stop strings hold for the text, not for arguments', async () => {
    const more = { tools, stop: ['STOP'] };
    const inside = (await chat(server, `!raw ${call('get_weather', { city: 'STOP it' })}`, more)).json().choices[0];
    assert.deepEqual(JSON.parse(inside.message.tool_calls[0].function.arguments), { city: 'STOP it' });
    const before = (await chat(server, `!raw Hm ST\n${call('now')}`, more)).json().choices[0];
    assert.equal(before.message.content, 'Hm ST');
    assert.equal(before.message.tool_calls.length, 1);
    const stopped = (await chat(server, `!raw Hm STOP\n${call('now')}`, more)).json().choices[0];
    assert.equal(stopped.message.tool_calls, undefined);
    assert.equal(stopped.finish_reason, 'stop');
});

test('stop strings may lie in the white space in front of a call', async () => {
    for (const [before, stop, shown] of [['Hm.\n\n', '\n\n', 'Hm.'], ['Hm. \n', '\n', 'Hm. '], ['Hm.\n', 'm.\n', 'H'], ['\n', '\n', '']]) {
        const said = `!raw ${before}${call('now')}`;
        const whole = (await chat(server, said, { tools, stop })).json().choices[0];
        assert.deepEqual([whole.message.content ?? '', whole.message.tool_calls, whole.finish_reason], [shown, undefined, 'stop']);
        const streamed = assemble((await chat(server, said, { tools, stop, stream: true })).text);
        assert.deepEqual(streamed, { content: shown, calls: [], finish: 'stop' });
    }
    /* the beginning of one that does not come is not shown either */
    const open = (await chat(server, `!raw Hm.\n${call('now')}`, { tools, stop: ['\n\n', '.\nx'] })).json().choices[0];
    assert.equal(open.message.content, 'Hm.');
    assert.equal(open.message.tool_calls.length, 1);
});

test('Responses: items and events', async () => {
    const input = `!think !raw I look.\n${WEATHER}\n${call('now')}`;
    const whole = (await post(server, '/v1/responses', { input, tools: flat, tool_choice: 'auto' })).json();
    assert.deepEqual(whole.output.map((item) => item.type), ['reasoning', 'message', 'function_call', 'function_call']);
    assert.equal(whole.status, 'completed');
    /* what was left out of a tool is said, as the specification has it */
    assert.deepEqual(whole.tools, flat.map((tool) => ({ ...tool, description: tool.description ?? null, strict: tool.strict ?? null })));
    const [, , first, second] = whole.output;
    assert.deepEqual(JSON.parse(first.arguments), ARGUMENTS);
    assert.match(first.id, /^fc_/);
    assert.match(first.call_id, /^call_/);
    assert.equal(second.arguments, '{}');
    const list = events((await post(server, '/v1/responses', { input, tools: flat, stream: true })).text).map((line) => JSON.parse(line));
    list.forEach((event, i) => assert.equal(event.sequence_number, i));
    const final = list.at(-1).response;
    assert.equal(list.at(-1).type, 'response.completed');
    for (const [index, item] of final.output.entries()) {
        const own = list.filter((event) => event.output_index === index);
        assert.equal(own[0].type, 'response.output_item.added');
        assert.equal(own[0].item.id, item.id);
        assert.equal(own.at(-1).type, 'response.output_item.done');
        assert.deepEqual(own.at(-1).item, item);
        if (item.type !== 'function_call') continue;
        assert.deepEqual(own[0].item, { ...item, status: 'in_progress', arguments: '' });
        const deltas = own.filter((event) => event.type === 'response.function_call_arguments.delta');
        assert.equal(deltas.map((event) => event.delta).join(''), item.arguments);
        const [done] = own.filter((event) => event.type === 'response.function_call_arguments.done');
        assert.deepEqual([done.arguments, done.name, done.item_id], [item.arguments, item.name, item.id]);
    }
});

test('a call over a WebSocket', async () => {
    const socket = await Socket.open(server);
    socket.send({ type: 'response.create', input: `!raw ${WEATHER}`, tools: flat });
    const done = await socket.wait('response.completed');
    assert.deepEqual(JSON.parse(done.response.output[0].arguments), ARGUMENTS);
    assert.ok(socket.messages.some((m) => m.type === 'response.function_call_arguments.delta'));
    socket.destroy();
});

test('reasoning as a summary, if that is asked for', async () => {
    const body = { input: '!think hello', reasoning: { effort: 'low', summary: 'auto' } };
    const list = events((await post(server, '/v1/responses', { ...body, stream: true })).text).map((line) => JSON.parse(line));
    const final = list.at(-1).response;
    assert.deepEqual(final.reasoning, body.reasoning);
    assert.deepEqual(final.output[0].summary, [{ type: 'summary_text', text: 'Let me think.' }]);
    assert.deepEqual(final.output[0].content, []);
    assert.equal(list.filter((event) => event.type === 'response.reasoning_summary_text.delta').map((event) => event.delta).join(''), 'Let me think.');
    assert.ok(list.some((event) => event.type === 'response.reasoning_summary_part.done' && event.summary_index === 0));
    assert.ok(!list.some((event) => event.type.startsWith('response.reasoning_text')));
    assert.equal((await post(server, '/v1/responses', { ...body, reasoning: { summary: 'long' } })).json().error.param, 'reasoning.summary');
});

test('the tools of a request are checked', async () => {
    const bad = async (more) => (await chat(server, 'hello', more)).json().error;
    assert.equal((await bad({ tools: 5 })).param, 'tools');
    assert.equal((await bad({ tools: [{ type: 'web_search' }] })).param, 'tools[0]');
    assert.equal((await bad({ tools: [tool('two words')] })).param, 'tools[0].function');
    assert.match((await bad({ tools: [tool('a'), tool('a')] })).message, /tools\[1\].*name a/);
    assert.equal((await bad({ tools, parallel_tool_calls: 'no' })).param, 'parallel_tool_calls');
    assert.equal((await bad({ tools, tool_choice: 'sometimes' })).param, 'tool_choice');
});

test('another form by option', async () => {
    const other = await startServer(['--tool-call-parser', 'hermes']);
    await other.ready();
    const text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Köln", "days": 3}}\n</tool_call>';
    const { message } = (await chat(other, `!raw ${text}`, { tools })).json().choices[0];
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { city: 'Köln', days: 3 });
    assert.equal(await other.stop(), 0);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
