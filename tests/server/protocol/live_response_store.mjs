/** Conversations that go on from a response (previous_response_id). */
import assert from 'node:assert/strict';
import { Socket, post, request, runTests, startServer, test } from '../client.mjs';

const KEYS = ['first-key-0123456789', 'second-key-0123456789'];
const server = await startServer(['--tool-call-parser', 'hermes', ...KEYS.flatMap((key) => ['--key', key])]);
const auth = (i) => ({ Authorization: `Bearer ${KEYS[i]}` });
await server.ready();

const ask = (body, key = 0) => post(server, '/v1/responses', body, auth(key));
const textOf = (response) => response.output.find((item) => item.type === 'message').content[0].text;
const PNG = `data:image/png;base64,${Buffer.from([0x89, 0x50, 0x4e, 0x47, ...Buffer.alloc(8), ...Buffer.from('IEND'), 0, 0, 0, 0]).toString('base64')}`;

async function checkUnknown(id, key = 0) {
    const reply = await ask({ input: 'and on', previous_response_id: id }, key);
    assert.equal(reply.status, 400);
    assert.equal(reply.json().error.code, 'previous_response_not_found');
    assert.equal(reply.json().error.param, 'previous_response_id');
}

test('a conversation goes on, without the instructions of before', async () => {
    const first = (await ask({ input: 'one', instructions: 'be brief' })).json();
    assert.equal(first.previous_response_id, null);
    assert.equal(first.store, true);
    const second = (await ask({ input: [{ role: 'user', content: '!think two' }], previous_response_id: first.id })).json();
    assert.equal(second.previous_response_id, first.id);
    const third = (await ask({ input: '!recall three', instructions: 'be kind', previous_response_id: second.id })).json();
    assert.equal(textOf(third), 'You said: three system:be kind user:one assistant:You said: one user:two assistant:You said: two user:three');
    const other = (await ask({ input: '!recall other', previous_response_id: first.id })).json();
    assert.equal(textOf(other), 'You said: other user:one assistant:You said: one user:other');
});

test('over a socket, streamed, and across both', async () => {
    const ws = await Socket.open(server, { protocols: 'parley.v1', headers: auth(0) });
    ws.send({ type: 'response.create', input: 'one' });
    const { response: first } = await ws.wait('response.completed');
    ws.send({ type: 'response.create', input: '!recall two', previous_response_id: first.id });
    const { response: second } = await ws.wait('response.completed');
    assert.equal(textOf(second), 'You said: two user:one assistant:You said: one user:two');
    const reply = await ask({ input: '!recall three', previous_response_id: first.id, stream: true });
    assert.ok(reply.text.includes('You said: three user:one assistant:You said: one user:three'));
    ws.send({ type: 'response.create', input: 'x', previous_response_id: 'resp_x', event_id: 'e' });
    const fault = await ws.wait('error');
    assert.equal(fault.status, 400);
    assert.equal(fault.error.code, 'previous_response_not_found');
    assert.equal(fault.error.event_id, 'e');
    ws.destroy();
});

test('a plain socket goes on from its last answer that is not stored, and from no other', async () => {
    const socket = (protocols) => Socket.open(server, { protocols, headers: auth(0) });
    const turn = async (ws, input, previous_response_id, more = {}) => {
        ws.send({ type: 'response.create', store: false, input, previous_response_id, ...more });
        const end = await ws.wait((message) => ['response.completed', 'error'].includes(message.type));
        return end.response ?? end.error.code;
    };
    const ws = await socket();
    const first = await turn(ws, 'one');
    assert.equal(first.store, false);
    const second = await turn(ws, '!recall two', first.id);
    assert.equal(textOf(second), 'You said: two user:one assistant:You said: one user:two');
    assert.equal(await turn(ws, 'x', first.id), 'previous_response_not_found', 'the last one alone');
    assert.equal(textOf(await turn(ws, '!recall three', null, { input: [{ type: 'item_reference', id: second.output.at(-1).id }, { role: 'user', content: '!recall three' }] })),
        'You said: three assistant:You said: two user:one assistant:You said: one user:two user:three');
    const last = await turn(ws, 'four');
    await checkUnknown(last.id);
    await checkUnknown(last.id, 1);
    for (const other of [await socket(), await socket('parley.v1')]) {
        assert.equal(await turn(other, 'x', last.id), 'previous_response_not_found');
        other.destroy();
    }
    assert.equal(await turn(ws, [{ type: 'function_call_output', call_id: 'call_none', output: 'x' }], last.id), 'invalid_value');
    assert.equal(await turn(ws, 'five', last.id), 'previous_response_not_found', 'a failed answer ends it');
    assert.equal(textOf(await turn(ws, '!recall six')), 'You said: six user:six', 'the socket goes on');
    const kept = await turn(ws, 'seven', null, { store: true });
    assert.equal((await ask({ input: 'on', previous_response_id: kept.id })).status, 200);
    ws.destroy();
});

test('a long conversation is summed up on the way over a socket, too, and goes on', async () => {
    const ids = [];
    for (const protocols of [undefined, 'parley.v1']) {
        const ws = await Socket.open(server, { protocols, headers: auth(0) });
        const input = [{ role: 'user', content: 'x'.repeat(1200) }, { role: 'assistant', content: 'a' }, { role: 'user', content: 'two' }];
        const context_management = [{ type: 'compaction', compact_threshold: 1000 }];
        ws.send({ type: 'response.create', input, context_management });
        const { response: first } = await ws.wait('response.completed');
        assert.deepEqual(first.output.map((item) => item.type), ['compaction', 'message']);
        ids.push(...first.output.map((item) => item.id));
        assert.ok(ws.messages.some((m) => m.type === 'response.output_item.done' && m.item.type === 'compaction'));
        ws.send({ type: 'response.create', input: '!recall three', previous_response_id: first.id });
        const { response: second } = await ws.wait('response.completed');
        assert.ok(!textOf(second).includes('xxxx'), 'what was summed up is not sent again');
        ws.destroy();
    }
    for (const [i, id] of ids.entries()) assert.match(id, i % 2 ? /^msg_\w{16,}$/ : /^cmp_\w{16,}$/);
    assert.equal(new Set(ids).size, 4, 'each has an id of its own');
});

test('images and tool calls are part of it', async () => {
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
    const image = [{ role: 'user', content: [{ type: 'input_image', image_url: PNG }, { type: 'input_text', text: 'see' }] }];
    const first = (await ask({ input: image })).json();
    const second = (await ask({ input: '!recall on', previous_response_id: first.id })).json();
    assert.equal(textOf(second), '[image] You said: on user:[image]see assistant:[image] You said: see user:on');
    const called = (await ask({ input: '!raw <tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>', tools })).json();
    const call = called.output.find((item) => item.type === 'function_call');
    assert.ok(call, JSON.stringify(called.output));
    const output = [{ type: 'function_call_output', call_id: call.call_id, output: '!recall a tree' }];
    const seen = (await ask({ input: output, tools, previous_response_id: called.id })).json();
    assert.match(textOf(seen), /assistant: tool:a tree$/);
});

test('a cut answer is kept as far as it went; what failed or was not stored is not', async () => {
    const cut = (await ask({ input: 'abcdefgh', max_output_tokens: 8 })).json();
    assert.equal(cut.status, 'incomplete');
    const on = (await ask({ input: '!recall on', previous_response_id: cut.id })).json();
    assert.equal(textOf(on), 'You said: on user:abcdefgh assistant:You said user:on');
    const private_ = (await ask({ input: 'one', store: false })).json().id;
    await checkUnknown(private_);
    for (const path of [`/v1/responses/${private_}`, `/v1/responses/${private_}?stream=true`]) {
        const read = await request(server, { path, headers: auth(0) });
        assert.deepEqual([read.status, read.json().error.code], [404, 'response_not_found']);
    }
    assert.equal((await request(server, { path: `/v1/responses/${cut.id}`, headers: auth(0) })).status, 200);
    for (const [query, expected] of [['stream=maybe', 400], ['xstream=true', 200], ['a=1%26stream=true', 200]]) {
        const read = await request(server, { path: `/v1/responses/${cut.id}?${query}`, headers: auth(0) });
        assert.equal(read.status, expected, query);
        assert.match(read.headers['content-type'], /json/, query);
    }
    await checkUnknown((await ask({ input: '!fail one two three' })).json().id);
    await checkUnknown('resp_unknown');
    assert.equal((await ask({ input: 'x', previous_response_id: 7 })).json().error.param, 'previous_response_id');
});

test('another key does not find it', async () => {
    const first = (await ask({ input: 'mine' })).json();
    await checkUnknown(first.id, 1);
    assert.equal((await ask({ input: 'and on', previous_response_id: first.id })).status, 200);
});

test('a conversation above the bound is not kept', async () => {
    const large = `data:image/png;base64,${Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47]), Buffer.alloc(13 << 20), Buffer.from('IEND\0\0\0\0')]).toString('base64')}`;
    const first = await ask({ input: [{ role: 'user', content: [{ type: 'input_image', image_url: large }] }] });
    assert.equal(first.status, 200);
    await checkUnknown(first.json().id);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
