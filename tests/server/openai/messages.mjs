/** The official Anthropic client, unchanged, against the server: messages, streams, tools,
 * counting, errors. */
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { runTests, startServer, test } from '../client.mjs';

const server = await startServer(['--key', 'secret']);
await server.ready();
const client = new Anthropic({ baseURL: `http://127.0.0.1:${server.port}`, apiKey: 'secret', maxRetries: 0 });
const user = (content) => ({ role: 'user', content });
const body = (said, more = {}) => ({ model: 'fake', max_tokens: 1000, messages: [user(said)], ...more });
const tools = [{ name: 'get_weather', description: 'of a city', input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } }];
const CALL = '<tool_call>\n<function=get_weather>\n<parameter=city>\nKöln\n</parameter>\n</function>\n</tool_call>';

test('messages, whole and streaming', async () => {
    const whole = await client.messages.create(body('hello wörld', { system: 'be kind' }));
    assert.deepEqual(whole.content, [{ type: 'text', text: 'You said: hello wörld' }]);
    assert.equal(whole.stop_reason, 'end_turn');
    assert.match(whole._request_id, /^req_/);
    const pieces = [];
    const stream = client.messages.stream(body('!think hello', { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 2000 })).on('text', (piece) => pieces.push(piece));
    const final = await stream.finalMessage();
    assert.deepEqual(final.content.map((block) => block.thinking ?? block.text), ['Let me think.', 'You said: hello']);
    assert.equal(pieces.join(''), 'You said: hello');
    assert.equal(final.usage.cache_read_input_tokens, 3);
});

test('a loop of tools, whole and streaming', async () => {
    const asked = body(`!raw I look. ${CALL}`, { tools });
    const whole = await client.messages.create(asked);
    const streamed = await client.messages.stream(asked).finalMessage();
    for (const message of [whole, streamed]) {
        assert.equal(message.stop_reason, 'tool_use');
        const call = message.content.find((block) => block.type === 'tool_use');
        assert.deepEqual(call.input, { city: 'Köln' });
        const results = user([{ type: 'tool_result', tool_use_id: call.id, content: 'sunny' }]);
        const { role, content } = message;
        const next = await client.messages.create({ ...asked, messages: [...asked.messages, { role, content }, results] });
        assert.equal(next.content[0].text, 'You said: sunny');
    }
});

test('counting, and errors as the client\'s classes', async () => {
    assert.equal((await client.messages.countTokens({ model: 'fake', messages: [user('hello')] })).input_tokens, 9);
    const bad = await client.messages.create(body('x', { temperature: 7 })).catch((error) => error);
    assert.ok(bad instanceof Anthropic.BadRequestError);
    assert.equal(bad.error.error.type, 'invalid_request_error');
    await assert.rejects(client.messages.create(body('!fail now')), Anthropic.InternalServerError);
    await assert.rejects(client.messages.stream(body('!fail now')).finalMessage(), Anthropic.APIError);
    await assert.rejects(client.withOptions({ apiKey: 'other' }).messages.create(body('x')), Anthropic.AuthenticationError);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
