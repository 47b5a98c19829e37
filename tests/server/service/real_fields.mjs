/** Fields and options of other servers with the real engine: how large images and videos are shown,
 *  the cache, the names of the model, and what is said of options that do nothing. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chat, events, post, runTests, startServer, test } from '../client.mjs';

const file = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const model = file('assets/seedling');
const image = `data:image/png;base64,${readFileSync(file('assets/samples/describe.png')).toString('base64')}`;
const video = `data:video/mp4;base64,${readFileSync(file('assets/samples/ball-moves.mp4')).toString('base64')}`;
const start = async (...more) => {
    const server = await startServer(['serve', '-m', model, '--port', '0', '-c', '4096', '-t', '1', '--temp', '0', '-n', '2', ...more]);
    await server.ready();
    return server;
};
const server = await start('--cache-ram', '32', '--enable-mtp', '--enable-prefix-cache', '--prefill-step-size', '256', '--tool-call-parser', 'qwen3_coder',
    '--continuous-batching', '--mem-fraction', '0.8', '--reasoning-parser', 'qwen3', '--enable-auto-tool-choice', '--max-model-len', '2048');

const prompt = async (part, more = {}) => {
    const reply = await post(server, '/v1/chat/completions', { max_tokens: 2, messages: [{ role: 'user', content: [part, { type: 'text', text: 'What is it?' }] }], ...more });
    assert.equal(reply.status, 200, reply.text);
    return reply.json().usage.prompt_tokens;
};

test('completions tell the logprobs of their prompt: as the answer to each of its beginnings would, in any company', async () => {
    const ids = (await post(server, '/tokenize', { content: 'The sun is warm, and the sea is deep; ask me about three red circles and a blue box. '.repeat(16) })).json().tokens;
    const complete = async (body) => {
        const reply = await post(server, '/v1/completions', { temperature: 0, ...body });
        assert.equal(reply.status, 200, reply.text);
        return reply.json();
    };
    /* keys and values of eight bits: the last one can be another, where blocks of the delta rule begin elsewhere */
    const near = (a, b, what) => assert.ok(a === b || Math.abs(a - b) < 0.03, `${what}: ${a} ${b}`);
    const same = (a, b) => {
        assert.deepEqual(a.tokens, b.tokens);
        a.token_logprobs.forEach((one, i) => near(one, b.token_logprobs[i], i));
    };
    const whole = (await complete({ prompt: ids, echo: true, logprobs: 5, max_tokens: 0 })), [{ text, logprobs, finish_reason }] = whole.choices;
    assert.equal(logprobs.tokens.length, ids.length);
    assert.equal(text, logprobs.tokens.join(''));
    assert.deepEqual(logprobs.text_offset, logprobs.tokens.map((_, i) => [...logprobs.tokens.slice(0, i).join('')].length));
    assert.deepEqual([logprobs.token_logprobs[0], logprobs.top_logprobs[0], finish_reason, whole.usage.completion_tokens], [null, null, 'length', 0]);
    for (const k of [1, 2, 14, 15, 16, 17, 100, 255, 256, 257, ids.length - 1]) { // among them where chunks and events end
        assert.ok(k < ids.length);
        const [{ logprobs: next }] = (await complete({ prompt: ids.slice(0, k), logprobs: 5, max_tokens: 1, min_tokens: 1, cache_prompt: false })).choices;
        for (const [token, value] of Object.entries(next.top_logprobs[0])) near(logprobs.top_logprobs[k][token], value, `${k} ${token}`);
    }
    const asked = [{ prompt: text }, { prompt: [text, text], n: 2 }, { prompt: text, max_tokens: 3 }, { prompt: ids, cache_prompt: false }].map((body) => complete({ echo: true, logprobs: 1, max_tokens: 0, ...body }));
    for (const { choices } of await Promise.all(asked)) {
        for (const one of choices) {
            const { tokens, token_logprobs } = one.logprobs;
            same({ tokens: tokens.slice(0, ids.length), token_logprobs: token_logprobs.slice(0, ids.length) }, logprobs);
            assert.ok(one.text.startsWith(text));
        }
    }
    const seen = events((await post(server, '/v1/completions', { prompt: text, echo: true, logprobs: 1, max_tokens: 2, temperature: 0, stream: true })).text).filter((one) => one !== '[DONE]').map((one) => JSON.parse(one).choices[0]).filter(Boolean);
    assert.ok(seen.map((one) => one.text).join('').startsWith(text));
    same({ tokens: seen.flatMap((one) => one.logprobs?.tokens ?? []).slice(0, ids.length), token_logprobs: seen.flatMap((one) => one.logprobs?.token_logprobs ?? []).slice(0, ids.length) }, logprobs);
    const [plain] = (await complete({ prompt: text, echo: true, max_tokens: 0 })).choices;
    assert.deepEqual([plain.text, plain.logprobs], [text, null]);
    for (const body of [{ prompt: ids, echo: true }, { prompt: text, echo: true, logprobs: 6 }, { prompt: text, max_tokens: -1 }]) assert.equal((await post(server, '/v1/completions', body)).status, 400);
    assert.equal((await post(server, '/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }], max_tokens: 0 })).status, 400);
});

test('the size of an image is the one that is asked for, cached or not', async () => {
    const part = { type: 'image_url', image_url: { url: image } };
    const usual = await prompt(part), small = await prompt(part, { max_pixels: 4096 }), large = await prompt(part, { min_pixels: 400000 });
    assert.ok(small < usual && usual < large, `${small} ${usual} ${large}`);
    assert.equal(await prompt({ ...part, max_pixels: 4096 }), small);
    assert.equal(await prompt({ type: 'image_url', image_url: { url: image, max_pixels: 4096 } }), small);
    assert.equal(await prompt(part, { mm_processor_kwargs: { max_pixels: 4096 } }), small);
    assert.equal(await prompt(part), usual);
    const responses = await post(server, '/v1/responses', { max_output_tokens: 2, max_pixels: 4096, input: [{ role: 'user', content: [{ type: 'input_image', image_url: image }, { type: 'input_text', text: 'What is it?' }] }] });
    assert.equal(responses.json().usage.input_tokens, small);
    const messages = await post(server, '/v1/messages', { max_tokens: 2, max_pixels: 4096, use_cache: false, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: image.split(',')[1] } }, { type: 'text', text: 'What is it?' }] }] });
    assert.equal(messages.json().usage.input_tokens, small);
    const huge = await post(server, '/v1/chat/completions', { max_tokens: 2, min_pixels: 67108864, messages: [{ role: 'user', content: [part] }] });
    assert.equal(huge.json().error.code, 'context_length_exceeded');
});

test('so are the rate, the number and the size of frames', async () => {
    const part = { type: 'video_url', video_url: { url: video } };
    const usual = await prompt(part), few = await prompt(part, { video_max_frames: 4 }), slow = await prompt(part, { video_fps: 0.5 });
    assert.ok(few < usual && slow < usual, `${few} ${slow} ${usual}`);
    assert.equal(await prompt(part, { mm_processor_kwargs: { max_frames: 4 } }), few);
    assert.ok(await prompt(part, { max_pixels: 16384 }) < usual);
    assert.equal(await prompt(part), usual);
});

test('tokens of a pair of frames', async () => {
    const part = { type: 'video_url', video_url: { url: video } };
    const usual = await prompt(part), small = await prompt({ ...part, pair_tokens: 4 });
    assert.ok(small < usual, `${small} ${usual}`);
    assert.equal(await prompt(part, { mm_processor_kwargs: { pair_tokens: 4 } }), small);
    assert.equal(await prompt(part), usual);
});

test('min_tokens and ignore_eos', async () => {
    const answer = async (more) => (await chat(server, 'What is 7 plus 5?', { max_tokens: 60, ...more })).json();
    const tokens = (reply) => reply.usage.completion_tokens;
    const usual = await answer({});
    assert.ok(usual.choices[0].finish_reason === 'stop' && tokens(usual) < 40, JSON.stringify(usual.choices));
    const long = await answer({ min_tokens: 40 }), plain = await answer({ min_tokens: 40, mtp: false, use_cache: false });
    assert.ok(tokens(long) >= 40, JSON.stringify(long.choices));
    assert.deepEqual(plain.choices, long.choices);
    const full = await answer({ ignore_eos: true });
    assert.equal(full.choices[0].finish_reason, 'length');
    assert.equal(tokens(full), 60);
    assert.equal((await answer({ ignore_eos: true, stop: full.choices[0].message.content.slice(-8, -2) })).choices[0].finish_reason, 'stop');
    assert.equal((await answer({ min_tokens: 61 })).error.param, 'min_tokens');
    const form = await answer({ ignore_eos: true, response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { enum: [12] } } } });
    assert.equal(form.choices[0].message.content, '12');
    assert.equal(form.choices[0].finish_reason, 'stop');
});

test('what would change an answer and cannot is refused, in every dialect', async () => {
    const user = { role: 'user', content: 'hi' };
    for (const [path, body] of [['/v1/chat/completions', { messages: [user] }], ['/v1/completions', { prompt: 'hi' }], ['/v1/responses', { input: 'hi' }], ['/v1/messages', { max_tokens: 2, messages: [user] }]]) {
        const refused = await post(server, path, { ...body, typical_p: 0.5 });
        assert.equal(refused.status, 400, path);
        assert.match(refused.json().error.message, /typical_p is not supported/);
        assert.equal((await post(server, path, { ...body, typical_p: 1, repeat_last_n: 64 })).status, 200, path);
    }
    const json = await post(server, '/v1/messages', { max_tokens: 20, messages: [user], output_config: { format: { type: 'json_schema', schema: { enum: ['yes'] } } } });
    assert.equal(json.json().content[0].text, '"yes"');
});

test('use_cache', async () => {
    const cached = async (more) => (await chat(server, 'Tell me all of it. '.repeat(30), more)).json().usage.prompt_tokens_details.cached_tokens;
    assert.equal(await cached({ use_cache: false }), 0);
    assert.equal(await cached({}), 0);
    assert.ok(await cached({}) > 0);
    assert.equal(await cached({ use_cache: false }), 0);
});

test('options of other servers: what they mean, and a line for those that mean nothing', async () => {
    const log = server.err;
    for (const name of ['continuous-batching', 'mem-fraction', 'enable-auto-tool-choice']) assert.match(log, new RegExp(`--${name} does nothing here: `));
    assert.ok(!log.includes('--mtp does nothing'));
    assert.match(log, /tool calls: qwen3_xml/);
    assert.equal(await server.stop(), 0);
});

test('strict names of the model; no prefix cache', async () => {
    const strict = await start('--strict-model', '--served-model-name', 'my model', '--no-enable-prefix-cache');
    for (const name of ['my model', 'seedling', model, 'default']) assert.equal((await chat(strict, 'hi', { model: name })).status, 200, name);
    for (const name of ['gpt-4', 'my', `${model}/`, '/nowhere']) assert.equal((await chat(strict, 'hi', { model: name })).json().error.code, 'model_not_found', name);
    assert.equal((await chat(strict, 'hi '.repeat(50))).json().usage.prompt_tokens_details?.cached_tokens ?? 0, 0);
    assert.equal((await chat(strict, 'hi '.repeat(50))).json().usage.prompt_tokens_details?.cached_tokens ?? 0, 0);
    assert.equal(await strict.stop(), 0);
});

await runTests();
