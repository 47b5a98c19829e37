/** The official client's loops around tools: calls of both APIs, whole and streamed, their results
 * sent back, and every class of error. */
import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import OpenAI from 'openai';
import { eventually, metric, runTests, startServer, test } from '../client.mjs';

const KEY = 'a-key-for-the-tools';
const server = await startServer(['--key', KEY, '--queue', '1']);
const options = { baseURL: `http://127.0.0.1:${server.port}/v1`, apiKey: KEY, maxRetries: 0 };
const client = new OpenAI(options);

const parameters = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } }, required: ['city'] };
const tools = [{ type: 'function', function: { name: 'get_weather', parameters } }];
const flat = [{ type: 'function', name: 'get_weather', parameters, strict: false }];
const ARGUMENTS = { city: 'Köln "am" Rhein', days: 3 };
const CALL = `<tool_call>\n<function=get_weather>\n<parameter=city>\n${ARGUMENTS.city}\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>`;
const ASK = `!raw I look.\n${CALL}\n${CALL}`;
const user = { role: 'user', content: ASK };
/** The double answers with what the tool said. */
const RESULT = 'sunny in Köln';

test('the server is up', () => server.ready());

test('chat: two calls, their results, the answer; whole', async () => {
    const first = (await client.chat.completions.create({ model: 'fake', messages: [user], tools })).choices[0];
    assert.equal(first.finish_reason, 'tool_calls');
    assert.equal(first.message.content, 'I look.');
    const calls = first.message.tool_calls;
    assert.deepEqual(calls.map((call) => [call.type, call.function.name, JSON.parse(call.function.arguments)]), Array(2).fill(['function', 'get_weather', ARGUMENTS]));
    assert.notEqual(calls[0].id, calls[1].id);
    const results = calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: RESULT }));
    const last = (await client.chat.completions.create({ model: 'fake', messages: [user, first.message, ...results], tools })).choices[0];
    assert.equal(last.finish_reason, 'stop');
    assert.equal(last.message.content, `You said: ${RESULT}`);
    await assert.rejects(client.chat.completions.create({ model: 'fake', messages: [user, first.message, { ...results[0], tool_call_id: 'call_other' }], tools }),
        OpenAI.BadRequestError);
});

test('chat: the helper puts the streamed calls together', async () => {
    const stream = client.chat.completions.stream({ model: 'fake', messages: [user], tools });
    const done = [];
    stream.on('tool_calls.function.arguments.done', (event) => done.push([event.index, event.name, JSON.parse(event.arguments)]));
    const { message, finish_reason: finish } = (await stream.finalChatCompletion()).choices[0];
    assert.equal(finish, 'tool_calls');
    assert.equal(message.content, 'I look.');
    assert.deepEqual(message.tool_calls.map((call) => JSON.parse(call.function.arguments)), [ARGUMENTS, ARGUMENTS]);
    assert.deepEqual(done, [[0, 'get_weather', ARGUMENTS], [1, 'get_weather', ARGUMENTS]]);
});

for (const stream of [false, true]) {
    test(`chat: runTools runs the whole loop, stream: ${stream}`, async () => {
        const seen = [];
        const run = { type: 'function', function: { name: 'get_weather', parameters, parse: JSON.parse, function: (args) => (seen.push(args), RESULT) } };
        const runner = client.chat.completions.runTools({ model: 'fake', messages: [user], tools: [run], stream });
        assert.equal(await runner.finalContent(), `You said: ${RESULT}`);
        assert.deepEqual(seen, [ARGUMENTS, ARGUMENTS]);
        assert.deepEqual(runner.messages.map((message) => message.role), ['user', 'assistant', 'tool', 'tool', 'assistant']);
    });
}

test('Responses: the loop, whole and streamed', async () => {
    const input = [user];
    const whole = await client.responses.create({ model: 'fake', input, tools: flat });
    const stream = client.responses.stream({ model: 'fake', input, tools: flat });
    let text = '';
    stream.on('response.function_call_arguments.delta', (event) => (text += event.output_index === 1 ? event.delta : ''));
    const streamed = await stream.finalResponse();
    for (const response of [whole, streamed]) {
        assert.equal(response.status, 'completed');
        assert.deepEqual(response.output.map((item) => item.type), ['message', 'function_call', 'function_call']);
        const calls = response.output.filter((item) => item.type === 'function_call');
        assert.deepEqual(calls.map((call) => [call.name, JSON.parse(call.arguments)]), Array(2).fill(['get_weather', ARGUMENTS]));
        /* what the client adds for itself stays here */
        const items = response.output.map(({ parsed_arguments, ...item }) => item);
        const results = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: RESULT }));
        const last = await client.responses.create({ model: 'fake', input: [...input, ...items, ...results], tools: flat });
        assert.equal(last.output_text, `You said: ${RESULT}`);
        assert.equal(last.output.length, 1);
    }
    assert.deepEqual(JSON.parse(text), ARGUMENTS);
});

test('every error has its class, whole and streamed, in both APIs', async () => {
    const APIS = [(one, more) => one.chat.completions.create({ model: 'fake', messages: [{ role: 'user', content: 'hello' }], ...more }),
        (one, more) => one.responses.create({ model: 'fake', input: 'hello', ...more })];
    for (const create of APIS) {
        for (const stream of [false, true]) {
            const fails = async (kind, code, more, other = client) => {
                const error = await create(other, { stream, ...more }).then(() => null, (e) => e);
                assert.ok(error instanceof kind, `${error?.constructor.name} instead of ${kind.name}: ${error}`);
                if (code) assert.equal(error.code, code);
                return error;
            };
            assert.equal((await fails(OpenAI.BadRequestError, 'invalid_value', { top_p: 2 })).param, 'top_p');
            assert.equal((await fails(OpenAI.BadRequestError, null, { tools: [{ type: 'web_search' }] })).param, 'tools[0]');
            assert.equal((await fails(OpenAI.AuthenticationError, 'invalid_api_key', {}, new OpenAI({ ...options, apiKey: 'wrong' }))).status, 401);
            await fails(OpenAI.NotFoundError, null, {}, new OpenAI({ ...options, baseURL: `${options.baseURL}/nowhere` }));
            const closed = await fails(OpenAI.APIConnectionError, null, {}, new OpenAI({ ...options, baseURL: 'http://127.0.0.1:1/v1' }));
            assert.equal(closed.status, undefined);
        }
    }
    await assert.rejects(client.models.retrieve('other'), OpenAI.NotFoundError);
    await assert.rejects(client.responses.retrieve('resp_other'), OpenAI.NotFoundError);
});

test('a full queue is a RateLimitError, and the next request works', async () => {
    const controller = new AbortController();
    setMaxListeners(0, controller.signal);
    const create = (content) => client.chat.completions.create({ model: 'fake', messages: [{ role: 'user', content }] }, { signal: controller.signal, maxRetries: 0 });
    /* each lasts until it is aborted; four run, one waits, the rest is refused */
    const ends = Array.from({ length: 16 }, () => create('!len=8000 !delay=30').then(() => null, (error) => error));
    const refused = await Promise.race(ends);
    assert.ok(refused instanceof OpenAI.RateLimitError, String(refused));
    assert.equal(refused.code, 'queue_full');
    assert.equal(refused.headers.get('retry-after'), '1');
    controller.abort();
    assert.ok((await Promise.all(ends)).some((error) => error instanceof OpenAI.APIUserAbortError));
    await eventually(() => metric(server, 'parley_answers_open', { Authorization: `Bearer ${KEY}` }), 0);
    const again = await client.chat.completions.create({ model: 'fake', messages: [{ role: 'user', content: 'hi' }] });
    assert.equal(again.choices[0].message.content, 'You said: hi');
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
