/** Responses as the official clients use them: item references, conversations, background, what a response
 * says of its request, and every field of it that the Open Responses specification names. */
import assert from 'node:assert/strict';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';
import { eventually, runTests, startServer, test } from '../client.mjs';

const server = await startServer(['--key', 'secret', '--key', 'foreign', '--tool-call-parser', 'hermes']);
await server.ready();
const options = { baseURL: `http://127.0.0.1:${server.port}/v1`, apiKey: 'secret', maxRetries: 0 };
const client = new OpenAI(options);
const foreign = new OpenAI({ ...options, apiKey: 'foreign' });
const create = (body) => client.responses.create({ model: 'fake', ...body });
const CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Köln"}}\n</tool_call>';
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [{ type: 'function', name: 'get_weather', parameters }];

/** The resource of the Open Responses specification, as it has to be in every reply and event. */
const Part = z.union([z.object({ type: z.literal('output_text'), text: z.string(), annotations: z.array(z.any()), logprobs: z.array(z.any()) }), z.object({ type: z.literal('reasoning_text'), text: z.string() }), z.object({ type: z.literal('summary_text'), text: z.string() })]);
const status = z.enum(['in_progress', 'completed', 'incomplete']);
const Item = z.discriminatedUnion('type', [
    z.object({ type: z.literal('message'), id: z.string(), status, role: z.literal('assistant'), content: z.array(Part) }),
    z.object({ type: z.literal('function_call'), id: z.string(), call_id: z.string(), name: z.string(), arguments: z.string(), status }),
    z.object({ type: z.literal('reasoning'), id: z.string(), summary: z.array(Part), content: z.array(Part).optional(), encrypted_content: z.string().optional() }),
]);
const Resource = z.object({
    id: z.string(), object: z.literal('response'), created_at: z.number().int(), completed_at: z.number().int().nullable(), status: z.string(),
    incomplete_details: z.object({ reason: z.string() }).nullable(), model: z.string(), previous_response_id: z.string().nullable(),
    instructions: z.string().nullable(), output: z.array(Item), error: z.object({ code: z.string(), message: z.string() }).nullable(),
    tools: z.array(z.object({ type: z.literal('function'), name: z.string(), description: z.string().nullable(), parameters: z.any(), strict: z.boolean().nullable() })),
    tool_choice: z.union([z.enum(['none', 'auto', 'required']), z.object({ type: z.string() })]), truncation: z.enum(['auto', 'disabled']),
    parallel_tool_calls: z.boolean(), text: z.object({ format: z.object({ type: z.string() }) }), top_p: z.number(), presence_penalty: z.number(),
    frequency_penalty: z.number(), top_logprobs: z.number().int(), temperature: z.number(),
    reasoning: z.object({ effort: z.string().nullable(), summary: z.string().nullable() }).nullable(),
    usage: z.object({ input_tokens: z.number().int(), output_tokens: z.number().int(), total_tokens: z.number().int(), input_tokens_details: z.object({ cached_tokens: z.number().int() }), output_tokens_details: z.object({ reasoning_tokens: z.number().int() }) }).nullable(),
    max_output_tokens: z.number().int().nullable(), max_tool_calls: z.number().int().nullable(), store: z.boolean(), background: z.boolean(),
    service_tier: z.string(), metadata: z.record(z.string(), z.any()), safety_identifier: z.string().nullable(), prompt_cache_key: z.string().nullable(),
});
const heart = `data:image/png;base64,${Buffer.from('\x89PNG some pixels IEND\0\0\0\0', 'latin1').toString('base64')}`;

for (const [name, input, more, type] of [
    ['a text', [{ type: 'message', role: 'user', content: 'Say hello.' }], {}, 'message'],
    ['a system prompt', [{ type: 'message', role: 'system', content: 'Be a pirate.' }, { type: 'message', role: 'user', content: 'Say hello.' }], {}, 'message'],
    ['a tool', [{ type: 'message', role: 'user', content: `!raw ${CALL}` }], { tools }, 'function_call'],
    ['an image', [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'what?' }, { type: 'input_image', image_url: heart }] }], {}, 'message'],
    ['several turns', [{ type: 'message', role: 'user', content: 'I am Alice.' }, { type: 'message', role: 'assistant', content: 'Hello!' }, { type: 'message', role: 'user', content: 'Who am I?' }], {}, 'message'],
    ['phases', [{ type: 'message', role: 'assistant', phase: 'commentary', content: 'Let me see.' }, { type: 'message', role: 'assistant', phase: 'final_answer', content: 'Four.' }, { type: 'message', role: 'user', content: 'Repeat it.' }], {}, 'message'],
    ['thoughts', [{ type: 'message', role: 'user', content: '!think hello' }], {}, 'reasoning'],
]) {
    test(`${name}: every field is there, whole and streamed`, async () => {
        const whole = await create({ input, ...more });
        const events = [];
        for await (const event of await create({ input, ...more, stream: true })) events.push(event);
        for (const response of [whole, ...events.filter((event) => event.response).map((event) => event.response)]) {
            const read = Resource.safeParse(response);
            assert.ok(read.success, `${read.error}`);
        }
        assert.equal(whole.status, 'completed');
        assert.ok(whole.output.some((item) => item.type === type));
        assert.equal(events.at(-1).type, 'response.completed');
        assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, i) => i));
        if (type === 'function_call') {
            for (const kind of ['response.function_call_arguments.delta', 'response.function_call_arguments.done']) assert.ok(events.some((event) => event.type === kind), kind);
            for (const kind of ['response.output_item.added', 'response.output_item.done']) assert.ok(events.some((event) => event.type === kind && event.item.type === type), kind);
        }
    });
}

test('what was asked for is said again', async () => {
    const asked = { instructions: 'be kind', temperature: 0.5, top_p: 0.9, metadata: { a: 'b' }, truncation: 'auto', max_output_tokens: 99, prompt_cache_key: 'k', safety_identifier: 's',
        text: { format: { type: 'json_schema', name: 'x', schema: { type: 'object' } } }, tool_choice: 'auto', parallel_tool_calls: false, store: false, reasoning: { effort: 'max' } };
    const said = await create({ input: '!raw {}', ...asked });
    for (const [name, value] of Object.entries(asked)) {
        if (name === 'reasoning') assert.equal(said.reasoning.effort, 'max');
        else assert.deepEqual(said[name], value, name);
    }
});

test('an item is named by its id, its own key alone finds it', async () => {
    const first = await create({ input: 'one' });
    const references = [{ role: 'user', content: 'one' }, { type: 'item_reference', id: first.output[0].id }, { role: 'user', content: '!recall two' }];
    assert.equal((await create({ input: references })).output_text, 'You said: two user:one assistant:You said: one user:two');
    for (const [one, input] of [[foreign, references], [client, [{ type: 'item_reference', id: 'msg_none' }]]]) {
        const error = await one.responses.create({ model: 'fake', input }).catch((e) => e);
        assert.deepEqual([error.status, error.code], [404, 'item_not_found']);
    }
});

test('the AI SDK\'s default provider: a second turn, a loop of tools', async () => {
    const model = createOpenAI(options).responses('fake');
    const first = await generateText({ model, prompt: 'one', maxRetries: 0 });
    const messages = [{ role: 'user', content: 'one' }, ...first.response.messages, { role: 'user', content: '!recall two' }];
    assert.match((await generateText({ model, messages, maxRetries: 0 })).text, /user:one assistant:You said: one user:two/);
    const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: ({ city }) => `sunny in ${city}` });
    const result = streamText({ model, tools: { get_weather: weather }, stopWhen: stepCountIs(3), prompt: `!raw ${CALL}`, maxRetries: 0 });
    assert.equal(await result.text, 'You said: sunny in Köln');
    const stateless = { openai: { store: false, include: ['reasoning.encrypted_content'] } };
    const thought = await generateText({ model, prompt: '!think one', maxRetries: 0, providerOptions: stateless });
    const again = await generateText({ model, messages: [{ role: 'user', content: 'one' }, ...thought.response.messages, { role: 'user', content: 'two' }], maxRetries: 0, providerOptions: stateless });
    assert.equal(again.text, 'You said: two');
});

test('reasoning.encrypted_content comes and goes', async () => {
    const first = await create({ input: '!think one', include: ['reasoning.encrypted_content'], store: false, reasoning: { summary: 'auto' } });
    const thought = first.output.find((item) => item.type === 'reasoning');
    assert.ok(thought.encrypted_content.length > 0);
    const input = [{ role: 'user', content: 'one' }, { type: 'reasoning', id: thought.id, summary: [], encrypted_content: thought.encrypted_content }, ...first.output.slice(1), { role: 'user', content: 'two' }];
    assert.equal((await create({ input, store: false })).output_text, 'You said: two');
});

test('truncation "auto" leaves out the oldest turns', async () => {
    const turns = Array.from({ length: 40 }, (_, i) => [{ role: 'user', content: `${i} ${'x'.repeat(1000)}` }, { role: 'assistant', content: 'ok' }]).flat();
    const input = [{ role: 'system', content: 'stay' }, ...turns, { role: 'user', content: '!recall last' }];
    await assert.rejects(create({ input }), OpenAI.BadRequestError);
    const text = (await create({ input, truncation: 'auto', max_output_tokens: 30000 })).output_text;
    assert.match(text, /system:stay user:\d+ x/);
    assert.ok(!text.includes('user:0 x') && text.includes('user:39 x'));
    await assert.rejects(create({ input: 'x'.repeat(30000), truncation: 'auto' }), OpenAI.BadRequestError);
});

test('input_items, and a response that is deleted', async () => {
    const first = await create({ input: 'one' });
    const second = await create({ input: [{ role: 'user', content: 'two' }, { role: 'user', content: 'three' }], previous_response_id: first.id });
    const listed = [];
    for await (const item of client.responses.inputItems.list(second.id, { order: 'asc', limit: 2 })) listed.push(item);
    assert.deepEqual(listed.map((item) => item.content[0].text), ['one', 'You said: one', 'two', 'three']);
    assert.equal(new Set(listed.map((item) => item.id)).size, 4);
    const newest = await client.responses.inputItems.list(second.id, { limit: 1 });
    assert.equal(newest.data[0].content[0].text, 'three');
    await assert.rejects(foreign.responses.inputItems.list(second.id), OpenAI.NotFoundError);
    await assert.rejects(foreign.responses.delete(second.id), OpenAI.NotFoundError);
    await client.responses.delete(second.id);
    await assert.rejects(client.responses.retrieve(second.id), OpenAI.NotFoundError);
    await assert.rejects(client.responses.inputItems.list(second.id), OpenAI.NotFoundError);
    await assert.rejects(client.responses.delete(second.id), OpenAI.NotFoundError);
    await assert.rejects(create({ input: 'x', previous_response_id: second.id }), OpenAI.BadRequestError);
});

test('background: poll, cancel, follow from a number', async () => {
    const begun = await create({ input: '!len=200 !delay=10', background: true });
    assert.equal(begun.status, 'queued');
    assert.equal(begun.background, true);
    await eventually(async () => (await client.responses.retrieve(begun.id)).status, 'completed');
    assert.equal((await client.responses.retrieve(begun.id)).output_text.length, 200);
    const long = await create({ input: '!len=8000 !delay=30', background: true });
    assert.equal((await client.responses.cancel(long.id)).id, long.id);
    await eventually(async () => (await client.responses.retrieve(long.id)).status, 'cancelled');
    const stream = await create({ input: '!len=300 !delay=10', background: true, stream: true });
    let id = null;
    let seen = -1;
    for await (const event of stream) {
        id = event.response?.id ?? id;
        seen = event.sequence_number;
        if (event.type === 'response.output_text.delta') break;
    }
    stream.controller.abort();
    const rest = [];
    for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: seen })) rest.push(event);
    assert.equal(rest[0].sequence_number, seen + 1);
    assert.equal(rest.at(-1).type, 'response.completed');
    await assert.rejects(create({ input: 'x', background: true, store: false }), OpenAI.BadRequestError);
    const failed = await create({ input: '!fail now', background: true });
    await eventually(async () => (await client.responses.retrieve(failed.id)).status, 'failed');
});

test('what cannot be followed is refused by name', async () => {
    const refused = async (call, param, code) => {
        const error = await call.then(() => null, (caught) => caught);
        assert.deepEqual([error?.status, error?.param, error?.code], [code === 'item_not_found' ? 404 : 400, param, code], `${param}: ${error}`);
    };
    const pairs = (n, key = 'k', value = 'v') => Object.fromEntries(Array.from({ length: n }, (_, i) => [`${key}${i}`, value]));
    const messages = [{ role: 'user', content: 'x' }];
    for (const metadata of [pairs(17), pairs(1, 'k'.repeat(64)), pairs(1, 'k', 'v'.repeat(513)), { k: 7 }, []]) {
        await refused(create({ input: 'x', metadata }), 'metadata', 'invalid_value');
        await refused(client.chat.completions.create({ model: 'fake', messages, metadata }), 'metadata', 'invalid_value');
        await refused(client.conversations.create({ metadata }), 'metadata', 'invalid_value');
    }
    const most = { ...pairs(15), ['ü'.repeat(64)]: 'ä'.repeat(512) };
    assert.deepEqual((await create({ input: 'x', metadata: most })).metadata, most);
    assert.ok(await client.chat.completions.create({ model: 'fake', messages, metadata: most }));
    await refused(create({ input: 'x', n: 2 }), 'n', 'not_supported');
    assert.ok(await create({ input: 'x', n: 1 }));
    await refused(create({ input: 7 }), 'input', 'invalid_type');
    await refused(create({ input: 'x', max_tool_calls: 0 }), 'max_tool_calls', 'invalid_value');
    await refused(create({ input: [{ type: 'item_reference' }] }), 'input[0].id', 'item_not_found');
    await refused(client.conversations.create({ items: [{ role: 'user', content: 'x' }, { type: 'web_search_call' }] }), 'items[1]', 'unsupported_item_type');
    const talk = await client.conversations.create();
    await refused(client.conversations.update(talk.id, {}), 'metadata', 'missing_field');
    await refused(client.conversations.items.create(talk.id, {}), 'items', 'invalid_type');
    await refused(client.chat.completions.create({ model: 'fake', messages: 'x' }), 'messages', 'invalid_type');
});

test('compaction: the item stands for the conversation, but for what the system says', async () => {
    const first = await create({ input: 'one' });
    const compacted = await client.responses.compact({ model: 'fake', previous_response_id: first.id, input: [{ role: 'user', content: 'two' }, { role: 'assistant', content: 'a long answer' }] });
    assert.equal(compacted.object, 'response.compaction');
    assert.deepEqual(compacted.output.map((item) => [item.type, item.content?.[0].text]), [['message', 'one'], ['message', 'two'], ['compaction', undefined]]);
    assert.ok(compacted.usage.input_tokens > 0 && compacted.usage.output_tokens > 0);
    const summary = Buffer.from(compacted.output[2].encrypted_content, 'base64').toString();
    assert.match(summary, /^You said: Sum up this conversation/);
    const input = [{ role: 'developer', content: 'be brief' }, ...compacted.output, { role: 'user', content: '!recall three' }];
    const next = await create({ input });
    assert.equal(next.output_text, `You said: three system:be brief user:This is a summary of the conversation so far:\n\n${summary} user:three`);
    const on = await create({ input: '!recall four', previous_response_id: next.id });
    assert.ok(!on.output_text.includes('user:one'), 'it stands for it in later turns, too');
    const again = await client.responses.compact({ model: 'fake', input: [...input, { role: 'assistant', content: 'x' }] });
    assert.equal(again.output.filter((item) => item.type === 'compaction').length, 1);
    assert.equal((await client.responses.compact({ model: 'fake', input: 'alone' })).output.length, 2);
    for (const body of [{}, { input: [] }, { input: 7 }, { input: 'x', conversation: 'conv_1' }, { input: 'x', stream: true }, { model: undefined, input: 'x' }]) await assert.rejects(client.responses.compact({ model: 'fake', ...body }), OpenAI.BadRequestError, JSON.stringify(body));
    for (const encrypted_content of ['', 'of another server', '////', undefined]) await assert.rejects(create({ input: [{ type: 'compaction', encrypted_content }, { role: 'user', content: 'x' }] }), OpenAI.BadRequestError);
    await assert.rejects(client.responses.compact({ model: 'fake', previous_response_id: 'resp_x' }), OpenAI.BadRequestError);
    await assert.rejects(foreign.responses.compact({ model: 'fake', previous_response_id: first.id }), OpenAI.BadRequestError);
});

test('context_management: a conversation that is too long is summed up on the way', async () => {
    const long = 'x'.repeat(1200), context_management = [{ type: 'compaction', compact_threshold: 1000 }];
    const input = [{ role: 'developer', content: 'be brief' }, { role: 'user', content: `one ${long}` }, { role: 'assistant', content: 'two' }, { role: 'user', content: '!recall three' }];
    const short = await create({ input: '!recall one', context_management });
    assert.deepEqual(short.output.map((item) => item.type), ['message']);
    const alone = await create({ input: [{ role: 'user', content: long }], context_management });
    assert.deepEqual(alone.output.map((item) => item.type), ['message'], 'there is nothing to sum up');
    const whole = await create({ input, context_management });
    assert.deepEqual(whole.output.map((item) => item.type), ['compaction', 'message']);
    const summary = Buffer.from(whole.output[0].encrypted_content, 'base64').toString();
    assert.match(summary, /^You said: Sum up this conversation/);
    assert.equal(whole.output_text, `You said: three system:be brief user:This is a summary of the conversation so far:\n\n${summary} user:three`);
    const plain = await create({ input });
    assert.ok(whole.usage.output_tokens > plain.usage.output_tokens - long.length, 'the summary counts');
    assert.ok(whole.usage.input_tokens > plain.usage.input_tokens);
    const stream = await client.responses.create({ model: 'fake', input, context_management, stream: true });
    const types = [];
    let last;
    for await (const event of stream) {
        types.push(event.type);
        last = event;
    }
    assert.equal(last.type, 'response.completed');
    assert.deepEqual(last.response.output.map((item) => item.type), ['compaction', 'message']);
    assert.ok(types.indexOf('response.output_item.done') < types.indexOf('response.output_text.delta'));
    for (const next of [{ input: '!recall four', previous_response_id: whole.id }, { input: [...input, ...whole.output, { role: 'user', content: '!recall four' }] }]) {
        const on = await create({ ...next, context_management });
        assert.deepEqual(on.output.map((item) => item.type), ['message'], 'it is short again');
        assert.ok(!on.output_text.includes('x'.repeat(100)));
        assert.ok(on.output_text.includes(summary));
    }
    const background = await create({ input, context_management, background: true });
    let polled;
    do polled = await client.responses.retrieve(background.id); while (['queued', 'in_progress'].includes(polled.status));
    assert.deepEqual(polled.output.map((item) => item.type), ['compaction', 'message']);
    assert.equal((await client.responses.inputTokens.count({ model: 'fake', input, context_management })).input_tokens, plain.usage.input_tokens);
    for (const [given, said] of [[[{ type: 'x' }], /type may be compaction/], [[...context_management, ...context_management], /one entry/], [{ type: 'compaction' }, /one entry/], [[{ type: 'compaction', compact_threshold: 10 }], /at least 1000/], [[{ type: 'compaction', compact_threshold: 'x' }], /at least 1000/]]) {
        await assert.rejects(create({ input: 'x', context_management: given }), said, JSON.stringify(given));
    }
    const usual = await create({ input, context_management: [{ type: 'compaction' }] });
    assert.deepEqual(usual.output.map((item) => item.type), ['message']);
});

test('a conversation: its responses, its items, its end', async () => {
    const talk = await client.conversations.create({ metadata: { topic: 'x' }, items: [{ type: 'message', role: 'user', content: 'zero' }] });
    assert.equal((await client.conversations.retrieve(talk.id)).metadata.topic, 'x');
    const first = await create({ input: 'one', conversation: talk.id });
    assert.equal(first.conversation.id, talk.id);
    const second = await create({ input: '!recall two', conversation: { id: talk.id } });
    assert.equal(second.output_text, 'You said: two user:zero user:one assistant:You said: one user:two');
    const added = await client.conversations.items.create(talk.id, { items: [{ type: 'message', role: 'user', content: 'three' }] });
    assert.equal(added.data.length, 1);
    const items = [];
    for await (const item of client.conversations.items.list(talk.id, { order: 'asc', limit: 2 })) items.push(item);
    assert.equal(items.length, 6);
    assert.equal((await client.conversations.items.retrieve(items[0].id, { conversation_id: talk.id })).id, items[0].id);
    await client.conversations.items.delete(items[0].id, { conversation_id: talk.id });
    await assert.rejects(client.conversations.items.retrieve(items[0].id, { conversation_id: talk.id }), OpenAI.NotFoundError);
    assert.equal((await client.conversations.update(talk.id, { metadata: { topic: 'y' } })).metadata.topic, 'y');
    await assert.rejects(foreign.conversations.retrieve(talk.id), OpenAI.NotFoundError);
    await assert.rejects(create({ input: 'x', conversation: talk.id, previous_response_id: second.id }), OpenAI.BadRequestError);
    assert.equal((await client.conversations.delete(talk.id)).deleted, true);
    await assert.rejects(client.conversations.retrieve(talk.id), OpenAI.NotFoundError);
    await assert.rejects(create({ input: 'x', conversation: talk.id }), OpenAI.NotFoundError);
    await assert.rejects(client.conversations.create({ metadata: 'x' }), OpenAI.BadRequestError);
    assert.match((await client.conversations.create({})).id, /^conv_/);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
