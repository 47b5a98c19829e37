/** Prompts of conversations that grow: they begin as before, whatever is appended, and the prefix
 *  cache finds them; late system messages, a client's billing header, tools for a template that
 *  knows none, and the options that turn this off. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { post, runTests, startServer, test } from '../client.mjs';

const model = fileURLToPath(new URL('../../../assets/seedling', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'parley-prompts-'));
const plain = join(folder, 'plain.jinja');
writeFileSync(plain, "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");

const start = (...more) => startServer(['serve', '-m', model, '--port', '0', '-c', '2048', '-t', '1', '--temp', '0', '--log-level', 'error', ...more]);
const stable = await start('--cache-ram', '32');
const published = await start('--cache-ram', '32', '--template-history', 'published', '--late-system', 'hoist');
const toolless = await start('--cache-ram', '0', '--chat-template-file', plain);
for (const server of [stable, published, toolless]) await server.ready();

const tools = [{ type: 'function', function: { name: 'get_weather', description: 'Get the weather of a city', parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } } }];
const rendered = async (server, messages, more = {}) => {
    const reply = await post(server, '/apply-template', { messages, ...more });
    assert.equal(reply.status, 200, reply.text);
    return reply.json().prompt;
};
const called = [
    { role: 'system', content: 'You are kind.' }, { role: 'user', content: 'What is the weather in Paris? '.repeat(20) },
    { role: 'assistant', content: '', reasoning_content: 'The tool knows.', tool_calls: [{ id: 'c1', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Paris"}' } }] },
    { role: 'tool', tool_call_id: 'c1', content: '18 degrees' },
];
const asked = [...called, { role: 'assistant', content: 'It is warm.', reasoning_content: 'I am done.' }, { role: 'user', content: 'And in Rome?' }];

test('a new question leaves the calls before it as they were', async () => {
    for (const enable_thinking of [false, true]) {
        const more = { tools, enable_thinking };
        const [before, after] = [await rendered(stable, called, more), await rendered(stable, asked, more)];
        const history = before.slice(0, before.lastIndexOf('<|im_start|>assistant'));
        assert.ok(after.startsWith(history));
        assert.ok(history.includes('The tool knows.') && !after.includes('I am done.'));
        const old = await rendered(published, asked, more);
        assert.ok(!old.startsWith(history) && !old.includes('The tool knows.'));
    }
});

test('the cache has nearly all of the earlier prompt, and the answer is the same', async () => {
    const more = { tools, enable_thinking: true, max_tokens: 8 };
    const first = (await post(stable, '/v1/chat/completions', { messages: called, ...more })).json();
    const second = (await post(stable, '/v1/chat/completions', { messages: asked, ...more })).json();
    assert.ok(second.usage.prompt_tokens_details.cached_tokens >= 0.95 * first.usage.prompt_tokens, JSON.stringify(second.usage));
    const cold = (await post(stable, '/v1/chat/completions', { messages: asked, ...more, cache_prompt: false })).json();
    assert.deepEqual(second.choices, cold.choices);
});

test('a late system message stays where it is, in the turn of the user', async () => {
    const late = [...asked, { role: 'assistant', content: 'Sunny.' }, { role: 'developer', content: 'Be brief.' }, { role: 'user', content: 'Thanks.' }];
    const text = await rendered(stable, late, { tools });
    assert.ok(text.startsWith((await rendered(stable, asked, { tools })).split('<|im_start|>assistant').slice(0, -1).join('<|im_start|>assistant')));
    assert.ok(text.includes('<|im_start|>user\nBe brief.\n\nThanks.<|im_end|>'));
    assert.equal(text.split('<|im_start|>system').length, 2);
    assert.ok((await rendered(published, late, { tools })).includes('You are kind.\n\nBe brief.'));
});

test("Claude Code's billing header is neither read nor counted", async () => {
    const body = (cch, messages) => ({ max_tokens: 8, system: [{ type: 'text', text: `x-anthropic-billing-header: cc_version=2.1.${cch}; cch=${cch};` }, { type: 'text', text: 'You are an agent. '.repeat(40) }], messages });
    const question = { role: 'user', content: 'hello' };
    const first = (await post(stable, '/v1/messages', body('0a1', [question]))).json();
    const next = [question, { role: 'assistant', content: first.content }, { role: 'user', content: 'and now?' }];
    const second = (await post(stable, '/v1/messages', body('f71', next))).json();
    assert.ok(second.usage.cache_read_input_tokens >= 0.95 * first.usage.input_tokens, JSON.stringify(second.usage));
    const count = async (value) => (await post(stable, '/v1/messages/count_tokens', value)).json().input_tokens;
    const bare = body('0a1', [question]);
    const counted = await count(bare);
    bare.system.shift();
    assert.equal(counted, await count(bare));
    const one = { ...bare, system: `x-anthropic-billing-header: cch=1;\n${bare.system[0].text}` };
    assert.equal(await count(one), counted);
});

test('tools reach a model whose template knows none, and its calls come back', async () => {
    const text = await rendered(toolless, called, { tools });
    assert.ok(text.startsWith('<|im_start|>system\nYou are kind.\n\n# Tools'));
    assert.ok(text.includes('"name":"get_weather"'));
    assert.ok(text.includes('<tool_call>\n{"name": "get_weather", "arguments": {"city":"Paris"}}\n</tool_call><|im_end|>'));
    assert.ok(text.includes('<|im_start|>user\n<tool_response>\n18 degrees\n</tool_response><|im_end|>'));
    const reply = (await post(toolless, '/v1/chat/completions', { messages: called.slice(0, 2), tools, tool_choice: 'required', max_tokens: 60 })).json();
    assert.equal(reply.choices[0].message.tool_calls[0].function.name, 'get_weather');
    const bare = await rendered(toolless, [{ role: 'user', content: 'hi' }]);
    assert.equal(bare, '<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n');
});

test('the servers end', async () => {
    for (const server of [stable, published, toolless]) assert.equal(await server.stop(), 0);
    rmSync(folder, { recursive: true });
});

await runTests();
