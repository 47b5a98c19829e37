/** Parley as the client that the published conformance suite of MCP looks at: it starts the program with the server whose
 * address it gets, and has it do what the scenario is about. The suite calls it; see real_conformance.mjs.
 *
 *     node conformance_client.mjs PARLEY URL
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { post, request, sleep, startServer } from '../client.mjs';

const scenario = process.env.MCP_CONFORMANCE_SCENARIO, context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const folder = mkdtempSync(join(tmpdir(), 'parley-conformance-'));
process.on('exit', () => rmSync(folder, { recursive: true }));
const file = join(folder, 'mcp.json');
writeFileSync(file, JSON.stringify({ mcpServers: { it: { url: process.argv[3] } } }));
const model = fileURLToPath(new URL('../../../assets/seedling', import.meta.url));
const server = await startServer(['serve', '-m', model, '--port', '0', '-c', '2048', '-t', '1', '--log-level', 'error', '--mcp-config', file]);
await server.ready();

let it;
for (let i = 0; i < 1000 && it?.state !== 'ready'; i++) {
    [it] = (await request(server, { path: '/v1/mcp' })).json().data;
    await sleep(20);
}
console.log(`${it.state} ${it.protocol} ${it.error ?? ''}: ${it.tools.map((one) => one.name).join()}`);

/** Runs one call without the model's wish: as a person allows one that was asked for. */
async function call(name, args) {
    const reply = await post(server, '/v1/responses', {
        input: [{ role: 'user', content: 'Go.' }, { type: 'mcp_approval_request', id: 'mcpr_1', server_label: 'it', name, arguments: JSON.stringify(args) },
            { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true }],
        tools: [{ type: 'mcp', server_label: 'it', allowed_tools: [name] }], tool_choice: 'none', max_output_tokens: 4, truncation: 'auto' });
    console.log(reply.status === 200 ? JSON.stringify(reply.json().output.find((one) => one.type === 'mcp_call')) : reply.text);
}

const ARGUMENTS = { add_numbers: { a: 5, b: 3 }, json_schema_echo: {} };
const calls = context.toolCalls ?? it.tools.map(({ name, input_schema }) => ({ name, arguments: ARGUMENTS[name] ?? Object.fromEntries((input_schema.required ?? []).map((key) => [key, 'x'])) }));
for (const one of calls) {
    if (scenario === 'json-schema-2020-12-preservation') { /* the schema of the first, as it was read, is what the second gets */
        one.arguments = { schema: it.tools[0].input_schema };
    }
    await call(one.name, one.arguments);
}
for (const { uri } of it.resources) await post(server, '/v1/mcp/it/resources/read', { uri });
for (const { name } of it.prompts) await post(server, '/v1/mcp/it/prompts/get', { name });
await server.stop();
process.exit(0); // timers of requests that have long ended would hold it
