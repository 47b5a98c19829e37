/** Several answers to one request (n): whole and streamed, in chats and completions, with calls, thoughts,
 * stop strings and logprobs; usage, failures, cancels, limits, other servers. */
import assert from 'node:assert/strict';
import { chat, eventually, events, metric, post, request, runTests, startServer, test } from '../client.mjs';
import { startUpstream } from '../upstream/fake_upstream.mjs';

const far = await startUpstream({ engine: 'vllm', model: 'far' });
const server = await startServer(['--upstream', `gpu=${far.url}`, '--tool-call-parser', 'hermes']);
await server.ready();

const ask = async (content, more = {}, status = 200) => {
    const reply = await chat(server, content, more);
    assert.equal(reply.status, status, reply.text);
    return reply.json();
};
/** The chunks of a stream, and what each choice says in them. */
const stream = async (content, more) => {
    const texts = events((await chat(server, content, { stream: true, ...more })).text);
    assert.equal(texts.pop(), '[DONE]');
    const chunks = texts.map((text) => JSON.parse(text));
    assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
    const choices = [];
    for (const { choices: [choice] } of chunks) {
        if (!choice) continue;
        const one = choices[choice.index] ??= { content: '', reasoning: '', calls: [], ends: [], roles: 0, logprobs: [] };
        assert.equal(one.ends.length, 0, 'nothing comes behind the end of a choice');
        one.content += choice.delta.content ?? '';
        one.reasoning += choice.delta.reasoning_content ?? '';
        one.roles += choice.delta.role ? 1 : 0;
        one.logprobs.push(...choice.logprobs?.content ?? []);
        for (const call of choice.delta.tool_calls ?? []) {
            const known = one.calls[call.index] ??= { name: call.function.name, arguments: '' };
            known.arguments += call.function.arguments;
        }
        if (choice.finish_reason) one.ends.push(choice.finish_reason);
    }
    return { choices, chunks };
};

test('a whole chat has n choices, the prompt counts once', async () => {
    const one = await ask('!choice');
    const all = await ask('!choice', { n: 4, logprobs: true, top_logprobs: 1 });
    assert.deepEqual(all.choices.map((c) => [c.index, c.message.content, c.finish_reason]),
        [0, 1, 2, 3].map((i) => [i, `You said: ${i || ''}`, 'stop']));
    for (const choice of all.choices) assert.equal(choice.logprobs.content.length, choice.message.content.length);
    assert.equal(all.usage.prompt_tokens, one.usage.prompt_tokens);
    assert.equal(all.usage.completion_tokens, 4 * one.usage.completion_tokens + 3);
    assert.equal(all.usage.total_tokens, all.usage.prompt_tokens + all.usage.completion_tokens);
    assert.equal((await ask('!choice', { n: 1 })).choices.length, 1);
    assert.equal((await ask('!choice', { n: null })).choices.length, 1);
});

test('a stream has a first chunk, text and an end for each choice', async () => {
    const { choices, chunks } = await stream('!choice !think !delay=2', { n: 3, stream_options: { include_usage: true } });
    assert.equal(choices.length, 3);
    const whole = await ask('!choice !think !delay=2', { n: 3 });
    for (const [i, one] of choices.entries()) {
        assert.equal(one.content, whole.choices[i].message.content);
        assert.equal(one.reasoning, whole.choices[i].message.reasoning_content);
        assert.equal(one.roles, 1);
        assert.deepEqual(one.ends, ['stop']);
    }
    assert.deepEqual(chunks.at(-1).choices, []);
    assert.deepEqual(chunks.at(-1).usage, whole.usage);
    /* They run side by side: the second has begun before the first has ended. */
    const order = chunks.flatMap((chunk) => chunk.choices.map((c) => c.index));
    assert.ok(order.indexOf(1) < order.lastIndexOf(0));
});

test('calls, lengths and stop strings are of each choice', async () => {
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: { q: { type: 'string' } } } } }];
    const call = '!raw <tool_call>\n{"name": "look", "arguments": {"q": "x"}}\n</tool_call>';
    const whole = await ask(call, { n: 2, tools });
    assert.deepEqual(whole.choices.map((c) => [c.finish_reason, c.message.tool_calls.length]), [['tool_calls', 1], ['tool_calls', 1]]);
    assert.notEqual(whole.choices[0].message.tool_calls[0].id, whole.choices[1].message.tool_calls[0].id);
    const { choices } = await stream(call, { n: 2, tools });
    for (const one of choices) assert.deepEqual([one.calls, one.ends], [[{ name: 'look', arguments: '{"q": "x"}' }], ['tool_calls']]);
    const cut = await ask('!len=50', { n: 2, max_tokens: 5 });
    assert.deepEqual(cut.choices.map((c) => c.finish_reason), ['length', 'length']);
    const stopped = await ask('a !choice', { n: 3, stop: ['a 2'] }); /* the third alone says it */
    assert.deepEqual(stopped.choices.map((c) => c.message.content), ['You said: a ', 'You said: a 1', 'You said: ']);
});

test('completions', async () => {
    const body = { prompt: 'Say !choice', n: 3, best_of: 3, logprobs: 0 };
    const whole = (await post(server, '/v1/completions', body)).json();
    assert.deepEqual(whole.choices.map((c) => [c.index, c.text]), [0, 1, 2].map((i) => [i, `Say !choice${i || ''}`]));
    for (const choice of whole.choices) assert.equal(choice.logprobs.tokens.length, choice.text.length);
    const list = events((await post(server, '/v1/completions', { ...body, stream: true })).text);
    assert.equal(list.pop(), '[DONE]');
    const texts = ['', '', ''];
    for (const { choices: [choice] } of list.map((text) => JSON.parse(text))) texts[choice.index] += choice.text;
    assert.deepEqual(texts, whole.choices.map((c) => c.text));
    const ranked = await post(server, '/v1/completions', { prompt: 'a', n: 2, best_of: 4 });
    assert.equal(ranked.status, 400);
    assert.match(ranked.json().error.message, /not ranked/);
});

test('a failure of one is that of all', async () => {
    const failed = await ask('!fail', { n: 3 }, 500);
    assert.ok(failed.error.message);
    const texts = events((await chat(server, '!fail', { n: 3, stream: true })).text);
    assert.ok(JSON.parse(texts.at(-1)).error, texts.at(-1));
    assert.ok(!texts.includes('[DONE]'));
    await eventually(() => metric(server, 'parley_requests_running'), 0);
});

test('a client that leaves stops all of them; a cancel by name, too', async () => {
    const gone = new AbortController();
    const reply = fetch(`http://127.0.0.1:${server.port}/v1/chat/completions`, {
        method: 'POST', signal: gone.signal, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ messages: [{ role: 'user', content: '!len=4000 !delay=20' }], n: 4 }),
    }).catch((error) => error.name);
    await eventually(() => metric(server, 'parley_requests_running'), 4);
    gone.abort();
    assert.equal(await reply, 'AbortError');
    await eventually(() => metric(server, 'parley_requests_running'), 0);
    const second = chat(server, '!len=4000 !delay=20', { n: 3 });
    await eventually(() => metric(server, 'parley_requests_running'), 3);
    const { running } = (await request(server, { path: '/v1/status' })).json();
    await post(server, `/v1/requests/${running[0].id}/cancel`, {});
    assert.equal((await second).status, 503);
    await eventually(() => metric(server, 'parley_requests_running'), 0);
});

test('the same key gets the same choices again', async () => {
    const headers = { 'Idempotency-Key': 'choices-1' };
    const body = { messages: [{ role: 'user', content: '!choice' }], n: 3 };
    const first = await post(server, '/v1/chat/completions', body, headers);
    const again = await post(server, '/v1/chat/completions', body, headers);
    assert.equal(first.json().choices.length, 3);
    assert.equal(again.text, first.text);
});

test('limits', async () => {
    for (const n of [0, 9, 1.5, '2']) assert.equal((await ask('a', { n }, 400)).error.param, 'n');
    const small = await startServer(['--queue', '2']);
    await small.ready();
    const reply = await chat(small, 'a', { n: 8 });
    assert.equal(reply.status, 429, reply.text);
    await small.stop();
});

test('a model of another server is asked once for each choice', async () => {
    let n = 0;
    far.answer = (body) => ({ content: `seed ${body.seed}, ${body.n ?? 1} of ${++n > 0}`, prompt: 10, completion: 4 });
    await eventually(async () => (await request(server, { path: '/v1/models' })).text.includes('gpu/far'), true);
    const whole = await ask('Hi', { model: 'gpu/far', n: 3, seed: 7 });
    assert.deepEqual(whole.choices.map((c) => c.message.content).sort(), [7, 8, 9].map((seed) => `seed ${seed}, 1 of true`));
    assert.deepEqual([whole.usage.prompt_tokens, whole.usage.completion_tokens], [10, 12]);
    far.answer = (body, res) => { res.statusCode = 400; res.end('{"error":{"message":"no such thing"}}'); };
    assert.match((await ask('Hi', { model: 'gpu/far', n: 3 }, 400)).error.message, /no such thing/);
});

test('the server ends cleanly', async () => {
    await far.close();
    assert.equal(await server.stop(), 0);
});

await runTests();
