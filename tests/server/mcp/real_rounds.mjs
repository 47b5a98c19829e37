/** The rounds of an answer by a model of another server, which says what a test wants: calls beside each other, calls
 * of what does not exist, the client's own beside the server's, and too many rounds. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually, events, post, request, runTests, startServer, test } from '../client.mjs';
import { startUpstream } from '../upstream/fake_upstream.mjs';

const ROUNDS = 2;
const calculate = (expression) => ({ name: 'calculate', args: JSON.stringify({ expression }) });
const upstream = await startUpstream({ model: 'm' });
const here = fileURLToPath(new URL('.', import.meta.url));
const fake = spawn(process.execPath, [join(here, 'fake_mcp.mjs'), 'http'], { stdio: ['ignore', 'pipe', 'inherit'] });
const port = await new Promise((resolve) => fake.stdout.once('data', (data) => resolve(Number(data))));
const folder = mkdtempSync(join(tmpdir(), 'parley-rounds-'));
process.on('exit', () => {
    fake.kill();
    rmSync(folder, { recursive: true });
});
writeFileSync(join(folder, 'mcp.json'), JSON.stringify({ mcpServers: { pictures: { url: `http://127.0.0.1:${port}/pictures`, approval: 'never' } } }));
const server = await startServer(['serve', '--port', '0', '--upstream', `up=${upstream.url}`, '--mcp-config', join(folder, 'mcp.json'), '--tools', 'calculator,time', '--mcp-rounds', String(ROUNDS)]);
await eventually(async () => (await request(server, { path: '/v1/models' })).json().data.length, 1);
await eventually(async () => (await request(server, { path: '/v1/mcp' })).json().data.every(({ state }) => state === 'ready'), true);

const TOOLS = [{ type: 'mcp', server_label: 'calculator', require_approval: 'never' }];
const OWN = { type: 'function', name: 'open_door', parameters: { type: 'object', properties: {} } };

/** What a response has in it when the model says these rounds; upstream.requests has what the model was given. */
async function respond(rounds, more = {}) {
    let i = 0;
    upstream.requests.length = 0;
    upstream.answer = () => rounds[Math.min(i++, rounds.length - 1)];
    const reply = await post(server, '/v1/responses', { model: 'up/m', input: 'Go.', tools: TOOLS, ...more });
    assert.equal(reply.status, 200, reply.text);
    return more.stream ? reply.text : reply.json().output.filter(({ type }) => type !== 'mcp_list_tools');
}
/** The results that the model was given last, in their order. */
const results = () => upstream.requests.at(-1).body.messages.filter(({ role }) => role === 'tool').map(({ content }) => (typeof content === 'string' ? content : content[0].text));

test('several calls of a round run, and go back in their order', async () => {
    const output = await respond([{ calls: ['1+1', '2+2', '1/0', '3+3'].map(calculate) }, { content: 'Done.' }]);
    assert.deepEqual(output.map(({ type }) => type), ['mcp_call', 'mcp_call', 'mcp_call', 'mcp_call', 'message']);
    assert.deepEqual(output.slice(0, 4).map((one) => one.output), ['2', '4', null, '6']);
    assert.ok(output[2].error);
    assert.equal(upstream.requests.length, 2);
    const asked = upstream.requests[1].body.messages.flatMap((m) => m.tool_calls ?? []);
    assert.deepEqual(asked.map((one) => JSON.parse(one.function.arguments).expression), ['1+1', '2+2', '1/0', '3+3']);
    const given = upstream.requests[1].body.messages.filter(({ role }) => role === 'tool');
    assert.deepEqual(new Set(given.map((m) => m.tool_call_id)), new Set(asked.map((one) => one.id)));
    assert.deepEqual(results().filter((text) => !text.startsWith('Error')).sort(), ['2', '4', '6']);
});

test('a chat tells each call in its deltas, when it begins and when it has its result, and all of them in the message', async () => {
    const rounds = [{ calls: [calculate('6*7')] }, { content: 'It is 42.' }];
    const ask = async (more) => {
        let i = 0;
        upstream.answer = () => rounds[Math.min(i++, rounds.length - 1)];
        const reply = await post(server, '/v1/chat/completions', { model: 'up/m', messages: [{ role: 'user', content: 'Go.' }], tools: TOOLS, ...more });
        assert.equal(reply.status, 200, reply.text);
        return reply;
    };
    const { message } = (await ask({})).json().choices[0];
    assert.deepEqual([message.content, message.mcp_calls.map(({ name, output }) => [name, output])], ['It is 42.', [['calculate', '42']]]);
    const deltas = events((await ask({ stream: true })).text).filter((one) => one !== '[DONE]').map((one) => JSON.parse(one).choices[0]?.delta ?? {});
    const told = deltas.flatMap((delta) => delta.mcp_calls ?? []);
    assert.deepEqual(told.map(({ name, output }) => [name, output ?? null]), [['calculate', null], ['calculate', '42']]);
    assert.equal(new Set(told.map(({ id }) => id)).size, 1);
    assert.equal(deltas.map((delta) => delta.content ?? '').join(''), 'It is 42.');
});

test('a tool that does not exist: the model is told what there is, and goes on', async () => {
    const output = await respond([{ calls: [{ name: 'compute', args: '{"expression":"6*7"}' }] }, { calls: [calculate('6*7')] }, { content: 'It is 42.' }]);
    assert.deepEqual(output.map(({ type, name, output }) => [type, name, output]), [['mcp_call', 'compute', null], ['mcp_call', 'calculate', '42'], ['message', undefined, undefined]]);
    assert.match(output[0].error, /there is no tool compute; there are: calculate$/);
    assert.match(results()[0], /^Error: there is no tool compute/);
    const both = await respond([{ calls: [{ name: 'x'.repeat(200), args: 'not json' }] }, { content: 'Sorry.' }], { tools: [...TOOLS, OWN] });
    assert.match(both[0].error, /there are: calculate, open_door$/);
    assert.equal(both.at(-1).content[0].text, 'Sorry.');
});

test('arguments that are no object: the model is told, now and in the next turn', async () => {
    for (const args of ['not json', '[1]', '{"expression":"1', '']) {
        const output = await respond([{ calls: [{ name: 'calculate', args }] }, { calls: [calculate('2+3')] }, { content: 'Five.' }]);
        assert.deepEqual(output.map((one) => one.output ?? one.content?.[0].text ?? null), [null, '5', 'Five.'], args);
        assert.ok(output[0].error);
        const next = await respond([{ content: 'Yes.' }], { input: [{ role: 'user', content: 'Go.' }, ...output, { role: 'user', content: 'Sure?' }] });
        assert.equal(next.at(-1).content[0].text, 'Yes.');
        assert.deepEqual(results().length, 2);
    }
});

test('the client\'s tools beside the server\'s: these run, and the client is asked for its own', async () => {
    const output = await respond([{ calls: [calculate('40+2'), { name: 'open_door', args: '{}' }] }, { content: 'Never said.' }], { tools: [...TOOLS, OWN] });
    assert.equal(upstream.requests.length, 1);
    assert.equal(output.find(({ type }) => type === 'mcp_call').output, '42');
    const own = output.find(({ type }) => type === 'function_call');
    assert.equal(own.name, 'open_door');
    await respond([{ content: 'It is open, and it is 42.' }], { tools: [...TOOLS, OWN], input: [{ role: 'user', content: 'Go.' }, ...output, { type: 'function_call_output', call_id: own.call_id, output: 'opened' }] });
    assert.deepEqual(results().sort(), ['42', 'opened']);
});

test('too many rounds: the model is told, and the answer ends', async () => {
    const output = await respond([{ calls: [calculate('1+1')] }]);
    const calls = output.filter(({ type }) => type === 'mcp_call');
    assert.deepEqual(calls.slice(0, ROUNDS).map((one) => one.output), Array(ROUNDS).fill('2'));
    assert.match(calls.at(-1).error, /no more calls of tools/);
    assert.ok(upstream.requests.length <= ROUNDS + 2, `${upstream.requests.length} rounds`);
    const text = await respond([{ calls: [calculate('1+1')] }], { stream: true });
    assert.equal(JSON.parse(events(text).findLast((line) => line !== '[DONE]')).type, 'response.completed');
});

test('pictures of a result go to the other server', async () => {
    const show = (...names) => ({ calls: [{ name: 'show', args: JSON.stringify({ names }) }] });
    const tools = [{ type: 'mcp', server_label: 'pictures' }];
    const given = () => upstream.requests.at(-1).body.messages.flatMap(({ content }) => (Array.isArray(content) ? content : [])).filter(({ type }) => type === 'image_url').map(({ image_url }) => image_url.url);
    const picture = (name) => readFileSync(join(here, '../../../assets/samples', name)).toString('base64');
    const output = await respond([show('color.png', 'arrow.png'), { content: 'Two.' }], { tools });
    assert.equal(output.at(-1).content[0].text, 'Two.');
    assert.deepEqual(given(), [picture('color.png'), picture('arrow.png')].map((data) => `data:image/png;base64,${data}`));
    const half = await respond([show('damaged', 'arrow.png'), { content: 'One.' }], { tools });
    assert.equal(half.at(-1).content[0].text, 'One.');
    assert.deepEqual(given(), [`data:image/png;base64,${picture('arrow.png')}`]);
    assert.match(JSON.stringify(upstream.requests.at(-1).body.messages), /an image is left out: it cannot be read/);
});

process.on('exit', () => server.child.kill());
await runTests();
