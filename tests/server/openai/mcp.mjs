/** The official clients and tools that run on the server: the whole program with Seedling and the calculator. */
import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { runTests, startServer, test } from '../client.mjs';

const server = await startServer(['serve', '--port', '0', '-c', '4096', '-t', '1', '--temp', '0', '--log-level', 'error', '--tools', 'calculator,time']);
await server.ready();
const openai = new OpenAI({ baseURL: `http://127.0.0.1:${server.port}/v1`, apiKey: 'none', maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: `http://127.0.0.1:${server.port}`, apiKey: 'none', maxRetries: 0 });
const tools = [{ type: 'mcp', server_label: 'calculator', require_approval: 'never' }];
const input = 'Calculate 17 * 23.';

test('responses.create with an MCP tool, whole and streamed', async () => {
    const whole = await openai.responses.create({ model: 'any', input, tools });
    const made = whole.output.find((one) => one.type === 'mcp_call');
    assert.deepEqual([made.server_label, made.name, made.output, made.error], ['calculator', 'calculate', '391', null]);
    assert.equal(whole.output[0].type, 'mcp_list_tools');
    assert.match(whole.output_text, /391/);
    const seen = [];
    for await (const event of await openai.responses.create({ model: 'any', input, tools, stream: true })) seen.push(event.type);
    assert.ok(seen.includes('response.mcp_call.completed') && seen.at(-1) === 'response.completed', seen.join());
});

test('responses.create: asked for approval, and given', async () => {
    const asking = [{ ...tools[0], require_approval: 'always' }];
    const first = await openai.responses.create({ model: 'any', input, tools: asking });
    const wish = first.output.find((one) => one.type === 'mcp_approval_request');
    const last = await openai.responses.create({ model: 'any', previous_response_id: first.id, tools: asking,
        input: [{ type: 'mcp_approval_response', approval_request_id: wish.id, approve: true }] });
    assert.equal(last.output.find((one) => one.type === 'mcp_call').output, '391');
});

test('beta.messages.create with mcp_servers, with and without a toolset', async () => {
    const ask = (more) => anthropic.beta.messages.create({ model: 'any', max_tokens: 200, messages: [{ role: 'user', content: input }], betas: ['mcp-client-2025-11-20'], ...more });
    const mcp_servers = [{ type: 'url', name: 'calculator' }];
    for (const toolset of [undefined, {}, { configs: { calculate: { enabled: true } }, default_config: { enabled: false } }]) {
        const set = toolset && { tools: [{ type: 'mcp_toolset', mcp_server_name: 'calculator', ...toolset }] };
        const { content } = await ask({ mcp_servers, ...set });
        assert.deepEqual(content.map((one) => one.type), ['mcp_tool_use', 'mcp_tool_result', 'text'], JSON.stringify(toolset));
        assert.deepEqual([content[0].server_name, content[1].content[0].text], ['calculator', '391']);
    }
    const off = await ask({ mcp_servers, tools: [{ type: 'mcp_toolset', mcp_server_name: 'calculator', configs: { calculate: { enabled: false } } }] });
    assert.equal(off.content.some((one) => one.type === 'mcp_tool_use'), false);
    for (const [more, word] of [
        [{ mcp_servers: [{ type: 'url', name: 'calculator', url: 'https://example.com/mcp' }] }, /only the MCP servers of its configuration/],
        [{ mcp_servers: [{ type: 'url', name: 'calculator', authorization_token: 'x' }] }, /configuration alone/],
        [{ mcp_servers: [{ type: 'url', name: 'other', url: 'https://example.com/mcp' }] }, /there is no MCP server/],
        [{ mcp_servers: [{ type: 'url' }] }, /needs a name/],
        [{ mcp_servers: [...mcp_servers, ...mcp_servers] }, /needs a name of its own/],
        [{ tools: [{ type: 'mcp_toolset', mcp_server_name: 'calculator' }] }, /must be that of a server in mcp_servers/],
    ]) {
        const error = await ask(more).catch((one) => one);
        assert.equal(error.status, 400, JSON.stringify(more));
        assert.match(error.message, word);
    }
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
