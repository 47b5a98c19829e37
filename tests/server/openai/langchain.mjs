/** LangChain's client (`@langchain/openai`), unchanged: chats whole and streamed, through chat completions and through
 * Responses, thoughts' tokens, tools and their results, images, objects in each of its ways, completions, embeddings,
 * errors and abort. */
import assert from 'node:assert/strict';
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { ChatOpenAI, OpenAI, OpenAIEmbeddings } from '@langchain/openai';
import { z } from 'zod';
import { eventually, metric, runTests, startServer, test } from '../client.mjs';

const KEY = 'a-key-for-the-chain';
const server = await startServer(['--key', KEY]);
await server.ready();
const common = { model: 'fake', apiKey: KEY, maxRetries: 0, configuration: { baseURL: `http://127.0.0.1:${server.port}/v1` } };
const WAYS = [['chat completions', new ChatOpenAI(common)], ['Responses', new ChatOpenAI({ ...common, useResponsesApi: true })]];
const CALL = '<tool_call>\n<function=get_weather>\n<parameter=city>\nKöln "am" Rhein\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>';
const PNG = `data:image/png;base64,${Buffer.from('\x89PNG some pixels IEND\0\0\0\0', 'latin1').toString('base64')}`;
const INPUT = { city: 'Köln "am" Rhein', days: 3 };
const weather = tool(({ city }) => `sunny in ${city}`, { name: 'get_weather', description: 'The weather', schema: z.object({ city: z.string(), days: z.number().int() }) });

for (const [way, model] of WAYS) {
    test(`${way}: a chat, whole, streamed and in a batch`, async () => {
        const said = await model.invoke([new SystemMessage('be kind'), new HumanMessage('!recall hello wörld')]);
        assert.equal(said.text, 'You said: hello wörld system:be kind user:hello wörld');
        const { input_tokens, output_tokens, total_tokens } = said.usage_metadata;
        assert.ok(input_tokens > 0 && output_tokens > 0);
        assert.equal(total_tokens, input_tokens + output_tokens);
        let whole = null;
        for await (const piece of await model.stream('!think one two three')) whole = whole ? whole.concat(piece) : piece;
        assert.equal(whole.text, 'You said: one two three');
        assert.ok(whole.usage_metadata.output_token_details.reasoning > 0);
        assert.deepEqual((await model.batch(['a', 'b', 'c'])).map((message) => message.text), ['You said: a', 'You said: b', 'You said: c']);
    });

    test(`${way}: a tool is called, and its result answered; whole and streamed`, async () => {
        const bound = model.bindTools([weather]);
        const question = new HumanMessage(`!raw I look.\n${CALL}`);
        const asked = await bound.invoke([question]);
        assert.deepEqual(asked.tool_calls.map(({ name, args, type }) => ({ name, args, type })), [{ name: 'get_weather', args: INPUT, type: 'tool_call' }]);
        assert.deepEqual(asked.invalid_tool_calls, []);
        const result = await weather.invoke(asked.tool_calls[0]);
        assert.ok(ToolMessage.isInstance(result));
        assert.equal((await bound.invoke([question, asked, result])).text, 'You said: sunny in Köln "am" Rhein');
        let whole = null;
        for await (const piece of await bound.stream([question])) whole = whole ? whole.concat(piece) : piece;
        assert.deepEqual(whole.tool_calls.map(({ name, args }) => ({ name, args })), [{ name: 'get_weather', args: INPUT }]);
        assert.match(whole.text, /^I look\.\n*$/);
        assert.equal((await bound.invoke([question, whole, await weather.invoke(whole.tool_calls[0])])).text, 'You said: sunny in Köln "am" Rhein');
    });

    test(`${way}: an image`, async () => {
        const parts = [{ type: 'text', text: 'what?' }, { type: 'image_url', image_url: { url: PNG } }];
        assert.equal((await model.invoke([new HumanMessage({ content: parts })])).text, '[image] You said: what?');
        const standard = [{ type: 'text', text: 'what?' }, { type: 'image', source_type: 'base64', mime_type: 'image/png', data: PNG.split(',')[1] }];
        assert.equal((await model.invoke([new HumanMessage({ content: standard })])).text, '[image] You said: what?');
    });

    test(`${way}: objects, by a schema, by a call and as JSON`, async () => {
        const schema = z.object({ n: z.number(), name: z.string() });
        for (const method of ['jsonSchema', 'jsonMode']) {
            assert.deepEqual(await model.withStructuredOutput(schema, { method }).invoke('!raw {"n":7,"name":"x"}'), { n: 7, name: 'x' });
        }
        const call = '<tool_call>\n<function=extract>\n<parameter=n>\n7\n</parameter>\n<parameter=name>\nx\n</parameter>\n</function>\n</tool_call>';
        const extract = model.withStructuredOutput(schema, { method: 'functionCalling', name: 'extract', includeRaw: true });
        const { parsed, raw } = await extract.invoke(`!raw ${call}`);
        assert.deepEqual(parsed, { n: 7, name: 'x' });
        assert.ok(AIMessage.isInstance(raw));
    });

    test(`${way}: errors and abort`, async () => {
        const useResponsesApi = way === 'Responses';
        const wild = new ChatOpenAI({ ...common, temperature: 9, useResponsesApi });
        assert.equal((await wild.invoke('x').catch((error) => error)).status, 400);
        const stranger = new ChatOpenAI({ ...common, apiKey: 'wrong', useResponsesApi });
        assert.equal((await stranger.invoke('x').catch((error) => error)).status, 401);
        const abort = new AbortController();
        const stream = await model.stream('!endless', { signal: abort.signal });
        await assert.rejects(async () => {
            for await (const piece of stream) if (piece.text) abort.abort();
        });
        await eventually(async () => metric(server, 'parley_requests_running', { Authorization: `Bearer ${KEY}` }), 0);
    });
}

test('a conversation that the server keeps goes on', async () => {
    const model = new ChatOpenAI({ ...common, useResponsesApi: true });
    const first = await model.invoke('one');
    assert.match(first.response_metadata.id, /^resp_/);
    const second = await model.invoke('!recall two', { previous_response_id: first.response_metadata.id });
    assert.equal(second.text, 'You said: two user:one assistant:You said: one user:two');
});

test('several answers, their tokens, completions', async () => {
    const many = await new ChatOpenAI({ ...common, n: 3, logprobs: true, topLogprobs: 2 }).generate([[new HumanMessage('x')]]);
    assert.equal(many.generations[0].length, 3);
    const [{ message }] = many.generations[0];
    assert.equal(message.response_metadata.logprobs.content.map((token) => token.token).join(''), message.text);
    const plain = new OpenAI(common);
    assert.equal(typeof await plain.invoke('Once'), 'string');
    let text = '';
    for await (const piece of await plain.stream('Once')) text += piece;
    assert.equal(text, await plain.invoke('Once'));
});

test('embeddings, one and many', async () => {
    const embeddings = new OpenAIEmbeddings(common);
    const one = await embeddings.embedQuery('hello');
    assert.ok(one.length > 0 && one.every(Number.isFinite));
    const many = await embeddings.embedDocuments(['hello', 'something else']);
    assert.deepEqual(many[0], one);
    assert.notDeepEqual(many[1], one);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
