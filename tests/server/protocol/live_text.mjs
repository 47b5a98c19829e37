/** Raw completions, what programs ask about text, places, and reading a response again from a
 * number on. */
import assert from 'node:assert/strict';
import { eventually, events, post, request, runTests, startServer, test } from '../client.mjs';

const server = await startServer();
await server.ready();

const ask = async (path, body, status = 200) => {
    const reply = await post(server, path, JSON.stringify(body));
    assert.equal(reply.status, status, `${path}: ${reply.text}`);
    return reply.json();
};

test('tokens of a text and back', async () => {
    assert.deepEqual(await ask('/tokenize', { content: 'aé' }), { tokens: [97, 195, 169] });
    assert.deepEqual(await ask('/tokenize', { content: '' }), { tokens: [] });
    /* A token that is a part of a character is shown as its bytes. */
    assert.deepEqual(await ask('/tokenize', { content: 'aé', with_pieces: true }), {
        tokens: [{ id: 97, piece: 'a' }, { id: 195, piece: [195] }, { id: 169, piece: [169] }],
    });
    assert.deepEqual(await ask('/detokenize', { tokens: [97, 195, 169] }), { content: 'aé' });
    assert.deepEqual(await ask('/detokenize', { tokens: [] }), { content: '' });
    for (const [path, body, param] of [
        ['/tokenize', {}, 'content'],
        ['/tokenize', { content: 3 }, 'content'],
        ['/tokenize', { content: 'a', with_pieces: 'yes' }, 'with_pieces'],
        ['/detokenize', {}, 'tokens'],
        ['/detokenize', { tokens: [1, -1] }, 'tokens'],
        ['/detokenize', { tokens: [1e9] }, 'tokens'],
        ['/detokenize', { tokens: ['a'] }, 'tokens'],
    ]) assert.equal((await ask(path, body, 400)).error.param, param, JSON.stringify(body));
});

test('the prompt of a chat, and how many tokens a request has', async () => {
    const messages = [{ role: 'user', content: 'Hello' }];
    assert.deepEqual(await ask('/apply-template', { messages }), { prompt: '[1 messages]' });
    const whole = await ask('/v1/chat/completions', { messages });
    const counted = await ask('/v1/chat/completions/input_tokens', { messages });
    assert.deepEqual(counted, { object: 'response.input_tokens', input_tokens: whole.usage.prompt_tokens });
    assert.deepEqual(await ask('/v1/responses/input_tokens', { input: 'Hello' }), counted);
    const { usage } = await ask('/v1/responses', { input: 'Hello' });
    assert.equal(usage.input_tokens, whole.usage.prompt_tokens);
    assert.equal(usage.output_tokens, whole.usage.completion_tokens);
    assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
    assert.equal((await ask('/v1/chat/completions/input_tokens', { messages: [] }, 400)).error.param, 'messages');
});

test('a raw prompt is continued: whole, streamed, with its echo, with logprobs', async () => {
    const whole = await ask('/v1/completions', { prompt: 'Once upon a time', max_tokens: 4 });
    assert.equal(whole.object, 'text_completion');
    assert.match(whole.id, /^cmpl-/);
    assert.deepEqual(whole.choices, [{ index: 0, text: 'Once', logprobs: null, finish_reason: 'stop' }]);
    assert.deepEqual([whole.usage.prompt_tokens, whole.usage.completion_tokens], [16, 4]);
    for (const prompt of [['Once upon a time'], [...Buffer.from('Once upon a time')]]) {
        assert.equal((await ask('/v1/completions', { prompt, max_tokens: 4 })).choices[0].text, 'Once');
    }
    const echoed = await ask('/v1/completions', { prompt: 'Once upon', max_tokens: 4, echo: true });
    assert.equal(echoed.choices[0].text, 'Once uponOnce');
    const stopped = await ask('/v1/completions', { prompt: 'Once upon a time', stop: ' a' });
    assert.deepEqual([stopped.choices[0].text, stopped.choices[0].finish_reason], ['Once upon', 'stop']);

    const stream = await post(server, '/v1/completions',
        JSON.stringify({ prompt: 'Once upon a time', stream: true, echo: true, stream_options: { include_usage: true } }));
    const chunks = events(stream.text);
    assert.equal(chunks.pop(), '[DONE]');
    const parsed = chunks.map((chunk) => JSON.parse(chunk));
    assert.equal(parsed.flatMap((chunk) => chunk.choices.map((choice) => choice.text)).join(''), 'Once upon a timeOnce upon a time');
    assert.deepEqual(parsed.at(-1).choices, []);
    assert.equal(parsed.at(-1).usage.completion_tokens, 16);
    assert.equal(parsed.at(-2).choices[0].finish_reason, 'stop');

    const { tokens, token_logprobs: values, top_logprobs: tops } =
        (await ask('/v1/completions', { prompt: 'abc', logprobs: 2 })).choices[0].logprobs;
    assert.deepEqual(tokens, ['a', 'b', 'c']);
    assert.ok(values.every((value) => value <= 0));
    assert.ok(tops.every((top) => Object.keys(top).length >= 1));
    const bytes = (await ask('/v1/completions', { prompt: 'aé?', logprobs: 1 })).choices[0].logprobs;
    assert.deepEqual(bytes.text_offset, [0, 1, 2, 2], 'in characters: the second byte of one begins none');
});

test('logprobs of a response are those of the chat, whole and streamed', async () => {
    const wanted = (await ask('/v1/chat/completions', { messages: [{ role: 'user', content: 'é?' }], logprobs: true, top_logprobs: 1 })).choices[0].logprobs.content;
    assert.equal(wanted.length, Buffer.byteLength('You said: é?'));
    const body = { input: 'é?', include: ['message.output_text.logprobs'], top_logprobs: 1 };
    const whole = (await ask('/v1/responses', body)).output[0].content[0];
    assert.deepEqual(whole.logprobs, wanted);
    const list = events((await post(server, '/v1/responses', { ...body, stream: true })).text).map((text) => JSON.parse(text));
    const of = (type) => list.filter((event) => event.type === `response.${type}`);
    assert.deepEqual(of('output_text.delta').flatMap((event) => event.logprobs), wanted);
    assert.deepEqual(of('output_text.done')[0].logprobs, wanted);
    assert.deepEqual(of('content_part.done')[0].part.logprobs, wanted);
    assert.deepEqual((await ask('/v1/responses', { input: 'é?' })).output[0].content[0].logprobs, []);
    assert.equal((await ask('/v1/responses', { input: 'a', top_logprobs: 1 }, 400)).error.param, 'top_logprobs');
});

test('options of the prompt cache: what happens anyway, and nothing else', async () => {
    for (const [path, body] of [['/v1/responses', { input: 'a' }], ['/v1/chat/completions', { messages: [{ role: 'user', content: 'a' }] }], ['/v1/completions', { prompt: 'a' }]]) {
        const prompt_cache_options = { mode: 'implicit', ttl: '30m', prewarm: false, comparison_response_id: null };
        await ask(path, { ...body, prompt_cache_key: 'k', prompt_cache_retention: '24h', prompt_cache_options });
        for (const [name, value] of [['mode', 'explicit'], ['ttl', '12h'], ['prewarm', true], ['prewarm', 1], ['comparison_response_id', 'resp_1']]) {
            assert.equal((await ask(path, { ...body, prompt_cache_options: { [name]: value } }, 400)).error.param, name);
        }
        assert.equal((await ask(path, { ...body, prompt_cache_options: 'x' }, 400)).error.param, 'prompt_cache_options');
        assert.equal((await ask(path, { ...body, prompt_cache_retention: '7d' }, 400)).error.param, 'prompt_cache_retention');
    }
});

test('the options of the text are echoed', async () => {
    const text = { format: { type: 'json_object' }, verbosity: 'low' };
    assert.deepEqual((await ask('/v1/responses', { input: '!raw {}', text })).text, text);
    assert.deepEqual((await ask('/v1/responses', { input: 'a' })).text, { format: { type: 'text' } });
    assert.equal((await ask('/v1/responses', { input: 'a', text: 'b' }, 400)).error.param, 'text');
});

test('wrong fields of a completion are named', async () => {
    for (const [body, param] of [
        [{}, 'prompt'], [{ prompt: 3 }, 'prompt'], [{ prompt: [1, 'a'] }, 'prompt'],
        [{ prompt: 'a', n: 9 }, 'n'], [{ prompt: 'a', best_of: 2 }, 'best_of'], [{ prompt: 'a', logprobs: 6 }, 'logprobs'],
        [{ prompt: 'a', suffix: 'b' }, 'suffix'], [{ prompt: [97], echo: true }, 'echo'], [{ prompt: 'a', temperature: -1 }, 'temperature'],
    ]) {
        const reply = await post(server, '/v1/completions', JSON.stringify(body));
        assert.ok(reply.status === 400 || reply.status === 501, reply.text);
        assert.equal(reply.json().error.param, param, JSON.stringify(body));
    }
});

test('places', async () => {
    const slots = async () => (await request(server, { path: '/slots' })).json().map((slot) => `${slot.id} ${slot.is_processing}`).join();
    await eventually(slots, '0 false,1 false,2 false,3 false'); /* an answer's place is free a moment after its end */
    assert.equal((await request(server, { path: '/slots?fail_on_no_slot=1' })).status, 200);
});

test('with return_progress a response also tells what a socket hears, and its stream begins before its media are read', async () => {
    const ask = async (input, more) => {
        const reply = await post(server, '/v1/responses', JSON.stringify({ input, stream: true, store: true, ...more }));
        assert.equal(reply.status, more.status ?? 200, reply.text);
        return events(reply.text).map((text) => JSON.parse(text));
    };
    const told = await ask('!phases !delay=40 !len=90', { return_progress: true });
    const progress = told.filter(({ type }) => type === 'response.progress');
    assert.ok(progress.some(({ phase }) => phase === 'prefill'), JSON.stringify(progress));
    assert.ok(told.some(({ type, timings }) => type === 'response.stats' && timings.predicted_n > 0));
    const numbered = told.filter(({ sequence_number }) => sequence_number !== undefined);
    assert.deepEqual(numbered.map(({ sequence_number }) => sequence_number), numbered.map((_, i) => i));
    assert.equal(told.at(-1).type, 'response.completed');
    assert.ok((await ask('!phases !len=90', {})).every(({ sequence_number }) => sequence_number !== undefined));
    // What is damaged is told as an event here, and as a status to everybody else.
    const image = [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,AAAA' }] }];
    const failed = await ask(image, { return_progress: true });
    assert.deepEqual(failed.map(({ type }) => type), ['response.created', 'response.failed']);
    assert.equal(failed[1].response.error.code, 'image_parse_error');
    await ask(image, { status: 400 });
    assert.equal((await post(server, '/v1/responses', JSON.stringify({ input: 'x', return_progress: 3 }))).json().error.param, 'return_progress');
    // Asked for again while its media are still read, it is the same response.
    const body = JSON.stringify({ input: '!slowprep hello', stream: true, return_progress: true });
    const same = await Promise.all([1, 2].map(() => post(server, '/v1/responses', body, { 'Idempotency-Key': 'slow' })));
    const ids = same.map(({ text }) => events(text).map((one) => JSON.parse(one)).filter(({ type }) => /created|completed/.test(type)).map(({ response }) => response.id));
    assert.equal(new Set(ids.flat()).size, 1, JSON.stringify(ids));
    assert.deepEqual(ids.map(({ length }) => length), [2, 2]);
});

test('a response is read again from every number on', async () => {
    const first = await post(server, '/v1/responses', JSON.stringify({ input: 'Hello there', stream: true }));
    const all = events(first.text).map((text) => JSON.parse(text));
    const { id } = all[0].response;
    for (let after = -1; after < all.length; after++) {
        const again = await request(server, { path: `/v1/responses/${id}?stream=true&starting_after=${after}` });
        assert.equal(again.status, 200);
        assert.match(again.headers['content-type'], /^text\/event-stream/);
        assert.deepEqual(events(again.text).map((text) => JSON.parse(text)), all.slice(after + 1));
    }
    assert.equal((await request(server, { path: '/v1/responses/resp_none?stream=true' })).status, 404);
    assert.equal(await server.stop(), 0);
});

await runTests();
