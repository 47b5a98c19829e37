/** The official Anthropic client, unchanged, against the server: messages, streams, tools,
 * counting, errors. */
import assert from 'node:assert/strict';
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic, { toFile } from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { runTests, startServer, test } from '../client.mjs';

const server = await startServer(['--key', 'secret', '--key', 'foreign']);
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

test('context_management: results of tools and thoughts are left out, and it is told', async () => {
    const turn = (i, name = 'get_weather') => [
        { role: 'assistant', content: [{ type: 'thinking', thinking: `thought ${i}`, signature: 'x' }, { type: 'tool_use', id: `toolu_${i}`, name, input: { city: `city ${i}` } }] },
        user([{ type: 'tool_result', tool_use_id: `toolu_${i}`, content: `result ${i} ${'x'.repeat(500)}` }])];
    const messages = [user('go'), ...turn(1), ...turn(2, 'other'), ...turn(3), { role: 'assistant', content: 'so' }, user('!recall now')];
    const ask = (edits, more = {}) => ({ model: 'fake', max_tokens: 4000, betas: ['context-management-2025-06-27'], messages, tools: [...tools, { ...tools[0], name: 'other' }], context_management: { edits }, ...more });
    const said = (reply) => reply.content.map((block) => block.text ?? '').join('');
    const uses = { type: 'clear_tool_uses_20250919' }, thoughts = { type: 'clear_thinking_20251015' };
    const whole = await client.beta.messages.create(ask([]));
    assert.deepEqual(whole.context_management, { applied_edits: [] });
    assert.match(said(whole), /result 1 x+.*result 2 x+.*result 3 x+/);
    const kept = { ...uses, trigger: { type: 'tool_uses', value: 2 }, keep: { type: 'tool_uses', value: 1 } };
    const cleared = await client.beta.messages.create(ask([kept]));
    const [edit] = cleared.context_management.applied_edits;
    assert.equal(edit.type, uses.type);
    assert.equal(edit.cleared_tool_uses, 2);
    assert.equal(edit.cleared_input_tokens, whole.usage.input_tokens - cleared.usage.input_tokens);
    assert.doesNotMatch(said(cleared), /result [12] x/);
    assert.match(said(cleared), /left out to save room.*left out to save room.*result 3 x/);
    const streamed = await client.beta.messages.stream(ask([kept])).finalMessage();
    assert.deepEqual(streamed.context_management, cleared.context_management);
    const spared = await client.beta.messages.create(ask([{ ...kept, exclude_tools: ['other'] }]));
    assert.equal(spared.context_management.applied_edits[0].cleared_tool_uses, 1);
    assert.match(said(spared), /result 2 x/);
    const counted = await client.beta.messages.countTokens({ ...ask([kept]), max_tokens: undefined });
    assert.equal(counted.context_management.original_input_tokens - counted.input_tokens, edit.cleared_input_tokens);
    for (const [one, n] of [[uses, 0], [{ ...uses, trigger: { type: 'input_tokens', value: 100 } }, 0], [{ ...kept, clear_at_least: { type: 'input_tokens', value: 1e6 } }, 0], [{ ...uses, trigger: { type: 'input_tokens', value: 100 }, keep: { type: 'tool_uses', value: 0 }, clear_tool_inputs: true }, 1]]) {
        assert.equal((await client.beta.messages.create(ask([one]))).context_management.applied_edits.length, n, JSON.stringify(one));
    }
    const both = await client.beta.messages.create(ask([{ ...thoughts, keep: { type: 'thinking_turns', value: 1 } }, kept]));
    assert.deepEqual(both.context_management.applied_edits.map((one) => one.type), [uses.type], 'all thoughts are of one turn');
    const later = await client.beta.messages.create(ask([thoughts], { messages: [...messages, { role: 'assistant', content: [{ type: 'thinking', thinking: 'newer', signature: 'x' }, { type: 'text', text: 'y' }] }, user('!recall again')] }));
    assert.equal(later.context_management.applied_edits[0].cleared_thinking_turns, 1);
    for (const edits of [[{ type: 'compact_20260112' }], [{ type: 'x' }], [uses, thoughts], [uses, uses], [{ ...uses, keep: { type: 'x', value: 1 } }], [{ ...uses, exclude_tools: 'other' }], [{ ...thoughts, keep: 7 }], 'x']) {
        await assert.rejects(client.beta.messages.create(ask(edits)), /context_management/, JSON.stringify(edits));
    }
});

test('a thread holds the conversation: send, stream, a lost one is replayed', async () => {
    const thread = client.beta.messages.thread({ model: 'fake', max_tokens: 1000, system: 'be kind', tools });
    const first = await thread.send(user(`!raw I look. ${CALL}`));
    const call = first.content.find((block) => block.type === 'tool_use');
    assert.equal(thread.previousMessageId, first.id);
    const second = await thread.send(user([{ type: 'tool_result', tool_use_id: call.id, content: 'sunny' }]));
    assert.equal(second.content[0].text, 'You said: sunny');
    assert.equal((await thread.stream(user('go on')).finalMessage()).content[0].text, 'You said: go on');
    assert.equal(thread.messages.length, 6);
    const plain = client.beta.messages.thread({ model: 'fake', max_tokens: 1000, system: 'be kind' });
    await plain.send(user('one'));
    await plain.stream(user('two')).finalMessage();
    const told = (await plain.send(user('!recall three'))).content[0].text;
    for (const words of ['system:be kind', 'user:one', 'assistant:You said: one', 'user:two', 'assistant:You said: two']) assert.ok(told.includes(words), told);
    const again = await client.beta.messages.create({ ...body('x', { system: 'other' }), thread: { type: 'continue', previous_message_id: plain.previousMessageId } }).catch((e) => e);
    assert.equal(again.status, 400);
    const lost = await client.beta.messages.create({ ...body('x'), thread: { type: 'continue', previous_message_id: 'msg_none' }, betas: ['message-threads-2026-08-12'] }).catch((e) => e);
    assert.ok(lost instanceof Anthropic.NotFoundError, String(lost));
    assert.equal(lost.error.error.details.error_code, 'thread_not_found');
    const other = new Anthropic({ baseURL: client.baseURL, apiKey: 'foreign', maxRetries: 0 });
    const foreign = await other.beta.messages.create({ ...body('x'), thread: { type: 'continue', previous_message_id: first.id } }).catch((e) => e);
    assert.equal(foreign.status, 404);
});

for (const stream of [false, true]) {
    test(`toolRunner runs the loop, stream: ${stream}`, async () => {
        const seen = [];
        const weather = betaTool({ name: 'get_weather', description: 'of a city', inputSchema: tools[0].input_schema, run: ({ city }) => (seen.push(city), `sunny in ${city}`) });
        const runner = client.beta.messages.toolRunner({ ...body(`!raw ${CALL}`), tools: [weather], stream });
        const final = await runner.runUntilDone();
        assert.equal(final.content[0].text, 'You said: sunny in Köln');
        assert.deepEqual(seen, ['Köln']);
    });
}

test('an answer of a form: messages.parse, output_config and output_format', async () => {
    const format = { type: 'json_schema', schema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false } };
    const said = body('!raw {"n":7}', { output_config: { format } });
    assert.deepEqual((await client.messages.parse({ ...said, output_config: { format: { ...format, parse: JSON.parse } } })).parsed_output, { n: 7 });
    for (const more of [{ output_config: { format: { type: 'xml' } } }, { output_format: { type: 'json_schema' } }, { output_config: { effort: 'huge' } }]) {
        const bad = await client.messages.create(body('x', more)).catch((error) => error);
        assert.equal(bad.status, 400, JSON.stringify(more));
    }
    assert.equal((await client.messages.create(body('hi', { output_config: { effort: 'max' }, thinking: { type: 'adaptive' } }))).content[0].text, 'You said: hi');
});

test('documents of text, search results, and a text file', async () => {
    const file = await client.beta.files.upload({ file: await toFile(Buffer.from('words of a file'), 'words.txt', { type: 'text/plain' }) });
    const told = await client.messages.create(body([
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a document' }, title: 'The "title"', context: 'old' },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'one' }, { type: 'text', text: 'two' }] } },
        { type: 'document', source: { type: 'file', file_id: file.id } },
        { type: 'search_result', source: 'https://example.com/a', title: 'Found', content: [{ type: 'text', text: 'a result' }] },
        { type: 'text', text: '!recall the question' },
    ]));
    const text = told.content[0].text;
    for (const words of ['<document title="The \\"title\\"" context="old">\na document\n</document>', 'one\ntwo', 'words of a file', '<search_result title="Found" source="https://example.com/a">\na result', 'the question']) {
        assert.ok(text.includes(words), `${words} in ${text}`);
    }
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 'found it' }] }] };
    const call = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'x' } }] };
    const last = await client.messages.create({ model: 'fake', max_tokens: 100, tools, messages: [user('a'), call, user([result])] });
    assert.match(last.content[0].text, /found it/);
    for (const source of [{ type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' }, { type: 'url', url: 'https://example.com/a.pdf' }]) {
        const bad = await client.messages.create(body([{ type: 'document', source }])).catch((error) => error);
        assert.equal(bad.status, 400);
        assert.match(bad.message, /only documents of text/);
    }
    const cited = await client.messages.create(body([{ type: 'search_result', source: 's', title: 't', content: [{ type: 'text', text: 'a' }], citations: { enabled: true } }])).catch((error) => error);
    assert.match(cited.message, /citations/);
});

test('the first event has the tokens of the input, a thought its signature', async () => {
    const events = [];
    const stream = client.messages.stream(body('!think hello', { thinking: { type: 'adaptive' } })).on('streamEvent', (event) => events.push(event));
    const final = await stream.finalMessage();
    assert.deepEqual(events[0].message.usage.input_tokens, final.usage.input_tokens);
    assert.deepEqual(events[0].message.usage.cache_read_input_tokens, final.usage.cache_read_input_tokens);
    const thought = final.content.find((block) => block.type === 'thinking');
    assert.ok(thought.signature.length > 0);
    assert.equal(events.filter((event) => event.delta?.type === 'signature_delta').length, 1);
});

test('models, files and errors in this client\'s shapes', async () => {
    const models = [];
    for await (const model of client.models.list()) models.push(model);
    assert.deepEqual([models[0].id, models[0].type, models[0].display_name], ['fake', 'model', 'fake']);
    assert.ok(Date.parse(models[0].created_at) > 0);
    assert.ok((await client.models.retrieve('fake')).max_input_tokens > 0);
    const lost = await client.models.retrieve('other').catch((error) => error);
    assert.ok(lost instanceof Anthropic.NotFoundError);
    assert.equal(lost.error.error.type, 'not_found_error');
    const folder = mkdtempSync(join(tmpdir(), 'parley-'));
    const path = join(folder, 'a.txt');
    const words = 'many words '.repeat(200000);
    writeFileSync(path, words);
    const file = await client.beta.files.upload({ file: createReadStream(path) });
    rmSync(folder, { recursive: true });
    assert.deepEqual([file.type, file.filename, file.size_bytes], ['file', 'a.txt', words.length]);
    assert.ok(Date.parse(file.created_at) > 0);
    assert.equal((await client.beta.files.retrieveMetadata(file.id)).id, file.id);
    assert.equal(await (await client.beta.files.download(file.id)).text(), words);
    const ids = [];
    for await (const each of client.beta.files.list({ limit: 1 })) ids.push(each.id);
    assert.ok(ids.includes(file.id) && ids.length === new Set(ids).size && ids.length >= 2);
    assert.equal((await client.beta.files.delete(file.id)).type, 'file_deleted');
    const gone = await client.beta.files.retrieveMetadata(file.id).catch((error) => error);
    assert.equal(gone.error.type, 'error');
    const batches = await client.messages.batches.list().then(() => null, (error) => error);
    assert.equal(batches.error.type, 'error');
    for (const more of [{ container: 'c' }]) {
        const bad = await client.beta.messages.create(body('x', more)).catch((error) => error);
        assert.equal(bad.status, 400, JSON.stringify(more));
    }
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
