/**
 * Sparse prefill in the whole program: who gets it, what usage and timings say, and what a draft model
 * that cannot be used leaves: a server that serves.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { PROGRAM, post, request, runTests, startServer, test } from '../client.mjs';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const model = `${root}tests/data/tiny`;
const program = (...more) =>
    startServer(['serve', '-m', model, '--chat-template-file', `${root}tools/seedling/chat_template.jinja`, '--port', '0', '-c', '1024', '-t', '1',
        '-b', '64', '--temp', '0', '--compute', 'exact', '--cache-ram', '16', '--log-level', 'warn', ...more]);

const long = 'the red bird and the blue house stand near the green tree by the sea '.repeat(12);
const messages = [{ role: 'user', content: `${long}. What colour is the house?` }];

async function ask(server, path, body) {
    const reply = await post(server, path, body);
    assert.equal(reply.status, 200, reply.text);
    return reply.json();
}

const chat = (server, more = {}) => ask(server, '/v1/chat/completions', { messages, max_tokens: 16, ...more });

/** What must hold of every sparse reply: how many tokens there were and were read. */
function checkCounts(promptTokens, details, timings) {
    assert.ok(details.sparse_tokens > 100, JSON.stringify(details));
    assert.ok(details.sparse_kept_tokens < details.sparse_tokens / 2, JSON.stringify(details));
    assert.equal(timings.sparse_n, details.sparse_tokens);
    assert.equal(timings.sparse_kept_n, details.sparse_kept_tokens);
    assert.equal(timings.prompt_n, details.sparse_kept_tokens);
    assert.equal(promptTokens, details.cached_tokens + details.sparse_tokens);
}

for (const [name, draft] of [['a draft model', ['--draft-model', model]], ['the words of the question', []]]) {
    test(`judged by ${name}`, async () => {
        const server = await program(...draft, '--spec-prefill', '--spec-prefill-threshold', '150', '--spec-prefill-keep', '0.25');
        try {
            const { usage, timings, choices } = await chat(server);
            checkCounts(usage.prompt_tokens, usage.prompt_tokens_details, timings);
            const again = await chat(server);
            assert.equal(again.usage.prompt_tokens_details.sparse_tokens, usage.prompt_tokens_details.sparse_tokens); // nothing of it was cached
            assert.equal(again.choices[0].message.content, choices[0].message.content);
            const response = await ask(server, '/v1/responses', { input: messages[0].content, max_output_tokens: 8 });
            checkCounts(response.usage.input_tokens, response.usage.input_tokens_details, response.timings);
            const message = await ask(server, '/v1/messages', { messages, max_tokens: 8 });
            assert.ok(message.usage.input_tokens > 150);
            const short = await chat(server, { messages: [{ role: 'user', content: 'hello' }] });
            assert.deepEqual(Object.keys(short.usage.prompt_tokens_details), ['cached_tokens']);
            assert.equal('sparse_n' in short.timings, false);
            const { totals } = (await request(server, { path: '/v1/status' })).json();
            assert.ok(totals.prompt_tokens >= 2 * usage.prompt_tokens, JSON.stringify(totals)); // what was not read counts, too
        } finally {
            await server.stop();
        }
        assert.equal(server.err, '');
    });
}

for (const [name, draft, sentence] of [
    ['another vocabulary', `${root}assets/seedling`, /--draft-model cannot be used, prompts are computed whole: the draft model .*seedling has a vocabulary of \d+ tokens, the model one of \d+/],
    ['no model', '/nonexistent', /--draft-model cannot be used, prompts are computed whole: .*\/nonexistent/],
]) {
    test(`a draft model with ${name} is said, and the server serves`, async () => {
        const plain = await program();
        const server = await program('--draft-model', draft, '--spec-prefill', '--spec-prefill-threshold', '150');
        try {
            const { usage, choices } = await chat(server);
            assert.deepEqual(Object.keys(usage.prompt_tokens_details), ['cached_tokens']);
            assert.equal(choices[0].message.content, (await chat(plain)).choices[0].message.content);
        } finally {
            await server.stop();
            await plain.stop();
        }
        assert.match(server.err, sentence);
        assert.match(server.err, /request \d+: the prompt is computed whole: the draft model could not be used/);
    });
}

test('a threshold over the context is said, and the server serves', async () => {
    const server = await program('--spec-prefill', '--spec-prefill-threshold', '5000');
    try {
        assert.deepEqual(Object.keys((await chat(server)).usage.prompt_tokens_details), ['cached_tokens']);
    } finally {
        await server.stop();
    }
    assert.match(server.err, /--spec-prefill-threshold is 5000 and the context holds 1024 tokens/);
});

test('shares that are none', () => {
    for (const share of ['0', '1.5', '-1', 'half']) {
        const { status, stderr } = spawnSync(PROGRAM, ['serve', '-m', model, '--port', '0', '--spec-prefill-keep', share], { encoding: 'utf8', timeout: 120000 });
        assert.match(stderr, /--spec-prefill-keep is ".*"; it takes a number from 0\.001 to 1/);
        assert.equal(status, 2);
    }
});

await runTests();
