/** Anthropic's Messages: whole, streamed, with thoughts, images and tools, stopped, counted, and
 * their errors. */
import assert from 'node:assert/strict';
import { events, post, request, runTests, startServer, test } from '../client.mjs';

const server = await startServer();
const locked = await startServer(['--key', 'secret', '--keepalive', '1']);
await server.ready();
await locked.ready();

const user = (content) => ({ role: 'user', content });
const assistant = (content) => ({ role: 'assistant', content });
const text = (words) => ({ type: 'text', text: words });
const body = (said, more = {}) => ({ model: 'fake', max_tokens: 1000, messages: [user(said)], ...more });

/* Begun here, looked at further down: it takes its time. */
const slow = post(locked, '/v1/messages', body('!delay=2500 hello', { stream: true, max_tokens: 4 }), { 'X-API-Key': 'secret' });

async function ask(value, status = 200, path = '/v1/messages') {
    const reply = await post(server, path, value);
    assert.equal(reply.status, status, `${JSON.stringify(value).slice(0, 300)}: ${reply.text}`);
    return reply.json();
}

/** The message that the events of a stream make; checks their order. */
function assemble(stream) {
    const list = events(stream).map((line) => JSON.parse(line));
    const names = [...stream.matchAll(/^event: (.*)$/gm)].map((match) => match[1]);
    assert.deepEqual(names, list.map((event) => event.type));
    assert.equal(list[0].type, 'message_start');
    assert.deepEqual(names.slice(-2), ['message_delta', 'message_stop']);
    const message = list[0].message;
    let open = -1;
    for (const event of list.slice(1, -2)) {
        if (event.type === 'content_block_start') {
            assert.equal(open, -1);
            assert.equal(event.index, message.content.length);
            open = event.index;
            message.content.push({ ...event.content_block, json: '', deltas: 0 });
            continue;
        }
        assert.equal(event.index, open);
        if (event.type === 'content_block_stop') {
            open = -1;
            continue;
        }
        assert.equal(event.type, 'content_block_delta');
        const block = message.content[open];
        block.deltas++;
        if (event.delta.type === 'text_delta') block.text += event.delta.text;
        else if (event.delta.type === 'thinking_delta') block.thinking += event.delta.thinking;
        else if (event.delta.type === 'signature_delta') block.signature += event.delta.signature;
        else if (event.delta.type === 'input_json_delta') block.json += event.delta.partial_json;
        else assert.fail(event.delta.type);
    }
    assert.equal(open, -1);
    for (const block of message.content) if (block.type === 'tool_use') block.input = JSON.parse(block.json);
    return { ...message, ...list.at(-2).delta, usage: list.at(-2).usage };
}

/** Blocks without what differs between two answers. */
const plain = (content) => content.map(({ type, text: words, thinking, name, input }) => ({ type, text: words, thinking, name, input }));

/** Asks twice, whole and streamed; both must say the same. */
async function both(value) {
    const whole = await ask(value);
    const reply = await post(server, '/v1/messages', { ...value, stream: true });
    assert.match(reply.headers['content-type'], /^text\/event-stream/);
    const streamed = assemble(reply.text);
    assert.deepEqual(plain(streamed.content), plain(whole.content));
    for (const name of ['type', 'role', 'model', 'stop_reason', 'stop_sequence']) assert.equal(streamed[name], whole[name], name);
    assert.deepEqual(streamed.usage, whole.usage);
    return { whole, streamed };
}

test('a text', async () => {
    const { whole } = await both(body('hello wörld'));
    assert.match(whole.id, /^msg_[0-9a-f]+$/);
    assert.deepEqual(whole, {
        id: whole.id,
        type: 'message',
        role: 'assistant',
        model: 'fake',
        content: [text('You said: hello wörld')],
        stop_reason: 'end_turn',
        stop_sequence: null,
        /* 12 bytes and 4, three of them from the cache */
        usage: { input_tokens: 13, cache_creation_input_tokens: 0, cache_read_input_tokens: 3, output_tokens: 22, output_tokens_details: { thinking_tokens: 0 } },
    });
    const blocks = await ask(body([text('one'), { ...text('two'), cache_control: { type: 'ephemeral' } }], { system: [text('be'), text('kind')] }));
    assert.deepEqual(blocks.content, [text('You said: two')]);
    assert.equal(blocks.usage.input_tokens + blocks.usage.cache_read_input_tokens, 'onetwobekind'.length + 4);
    assert.deepEqual((await ask(body('x', { system: 'be kind' }))).content, [text('You said: x')]);
});

test('why it stopped', async () => {
    const { whole: stopped } = await both(body('one two three', { stop_sequences: ['three', ' two'] }));
    assert.deepEqual([stopped.content[0].text, stopped.stop_reason, stopped.stop_sequence], ['You said: one', 'stop_sequence', ' two']);
    const { whole: cut } = await both(body('hello', { max_tokens: 8 }));
    assert.deepEqual([cut.content[0].text, cut.stop_reason, cut.usage.output_tokens], ['You said', 'max_tokens', 8]);
});

test('an answer that the client began', async () => {
    for (const begun of ['I', [text('I')]]) {
        await both({ ...body(''), messages: [user('hello'), assistant(begun)], system: 'be kind' });
    }
    const empty = await ask({ ...body(''), messages: [user('hello'), assistant([])] }, 400);
    assert.match(empty.error.message, /assistant's words/);
});

test('thoughts, when they are asked for', async () => {
    const { whole } = await both(body('!think hi', { thinking: { type: 'enabled', budget_tokens: 1024 } }));
    assert.deepEqual(whole.content, [{ type: 'thinking', thinking: 'Let me think.', signature: whole.id.slice(4) }, text('You said: hi')]);
    for (const more of [{}, { thinking: { type: 'disabled' } }]) {
        assert.deepEqual((await ask(body('hi', more))).content, [text('You said: hi')]);
    }
});

test('images', async () => {
    const data = Buffer.from('\x89PNG some pixels IEND\0\0\0\0', 'latin1').toString('base64');
    for (const source of [{ type: 'base64', media_type: 'image/png', data }, { type: 'url', url: `data:image/png;base64,${data}` }]) {
        assert.deepEqual((await ask(body([{ type: 'image', source }, text('what?')]))).content, [text('[image] You said: what?')]);
    }
    const remote = await ask(body([{ type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } }]), 400);
    assert.match(remote.error.message, /not fetched/);
});

const tools = [
    { name: 'get_weather', description: 'of a city', input_schema: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } } },
    { name: 'now', input_schema: { type: 'object', properties: {} }, type: 'custom' },
];
const call = (name, values = {}) =>
    `<tool_call>\n<function=${name}>\n${Object.entries(values).map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`).join('')}</function>\n</tool_call>`;
const VALUES = { city: 'Köln "am" Rhein\n<b>', days: 3 };

test('tool calls and their results', async () => {
    const said = `!think !raw I look. ${call('now')}\n${call('get_weather', VALUES)}`;
    const { whole } = await both(body(said, { tools, thinking: { type: 'enabled', budget_tokens: 2000 } }));
    assert.deepEqual(whole.content.map((block) => block.type), ['thinking', 'text', 'tool_use', 'tool_use']);
    assert.deepEqual(whole.content.slice(2).map((block) => [block.name, block.input]), [['now', {}], ['get_weather', VALUES]]);
    assert.ok(whole.content.slice(2).every((block) => /^toolu_[0-9a-f]+$/.test(block.id)));
    assert.equal(whole.stop_reason, 'tool_use');

    const results = whole.content.slice(2).map(({ id }, i) => ({ type: 'tool_result', tool_use_id: id, content: i ? [text('sunny')] : '12:00' }));
    const history = [user('how is it?'), assistant(whole.content)];
    const next = await ask({ ...body(''), tools, messages: [...history, user(results)] });
    assert.deepEqual(next.content, [text('You said: sunny')]);
    const asked = await ask({ ...body(''), tools, messages: [...history, user([...results, text('and now?')])] });
    assert.deepEqual(asked.content, [text('You said: and now?')]);
    const bare = [{ type: 'tool_use', id: 'a', name: 'now', input: {} }];
    await ask({ ...body(''), tools, messages: [user('x'), assistant(bare), user([{ type: 'tool_result', tool_use_id: 'a', is_error: true }])] });
    const unknown = await ask({ ...body(''), tools, messages: [...history, user([{ ...results[0], tool_use_id: 'other' }])] }, 400);
    assert.match(unknown.error.message, /other/);
});

test('which tools may be called', async () => {
    const twice = `!raw ${call('now')}\n${call('now')}`;
    for (const type of ['auto', 'any']) {
        const one = await ask(body(twice, { tools, tool_choice: { type, disable_parallel_tool_use: true } }));
        assert.deepEqual([one.content.length, one.stop_reason], [1, 'tool_use']);
        assert.equal((await ask(body(twice, { tools, tool_choice: { type } }))).content.length, 2);
    }
    assert.deepEqual((await ask(body(`!raw ${call('now')}`, { tools, tool_choice: { type: 'tool', name: 'now' } }))).content[0].name, 'now');
    const none = await ask(body(`!raw ${call('now')}`, { tools, tool_choice: { type: 'none' } }));
    assert.deepEqual([none.content, none.stop_reason], [[text(call('now'))], 'end_turn']);
});

test('a call that is cut', async () => {
    const cut = body(`!raw ${call('get_weather', VALUES)}`, { tools, max_tokens: 60 });
    const whole = await ask(cut);
    assert.deepEqual(whole.content.map((block) => [block.type, block.name, block.input]), [['tool_use', 'get_weather', {}]]);
    assert.equal(whole.stop_reason, 'max_tokens');
    const list = events((await post(server, '/v1/messages', { ...cut, stream: true })).text).map((line) => JSON.parse(line));
    const json = list.map((event) => event.delta?.partial_json ?? '').join('');
    assert.ok(JSON.stringify(VALUES).startsWith(json) && json.length > 0, json);
    assert.deepEqual(list.slice(-3).map((event) => event.type), ['content_block_stop', 'message_delta', 'message_stop']);
    assert.equal(list.at(-2).delta.stop_reason, 'max_tokens');
});

test('how many tokens a request has', async () => {
    const { max_tokens: _, ...value } = body('hello', { tools, tool_choice: { type: 'any' }, system: 'be kind' });
    const whole = await ask({ ...value, max_tokens: 10 });
    const counted = await ask(value, 200, '/v1/messages/count_tokens');
    assert.deepEqual(counted, { input_tokens: whole.usage.input_tokens + whole.usage.cache_read_input_tokens });
    assert.equal((await ask({ messages: [] }, 400, '/v1/messages/count_tokens')).type, 'error');
});

test('errors have Anthropic\'s form and name the place', async () => {
    const { max_tokens: _, ...endless } = body('x');
    for (const [value, place] of [
        [endless, 'max_tokens'],
        [body('x', { max_tokens: 0 }), 'max_tokens'],
        [body('x', { temperature: 7 }), 'temperature'],
        [body('x', { stream: 'yes' }), 'stream'],
        [body('x', { metadata: 'me' }), 'metadata'], [body('x', { n: 2 }), 'n'],
        [body('x', { stop_sequences: 'x' }), 'stop_sequences'],
        [body('x', { stop_sequences: [''] }), 'stop_sequences'],
        [body('x', { thinking: { type: 'maybe' } }), 'thinking'],
        [body('x', { thinking: { type: 'enabled', budget_tokens: 'many' } }), 'budget_tokens'],
        [body('x', { system: 3 }), 'system'],
        [body('x', { system: [{ type: 'image' }] }), 'system[0]'],
        [body('x', { tools: {} }), 'tools'],
        [body('x', { tools: [{ name: 'a' }] }), 'tools[0]'],
        [body('x', { tools: [tools[0], { type: 'web_search_20250305', name: 'web_search' }] }), 'tools[1]'],
        [body('x', { tools, tool_choice: { type: 'some' } }), 'tool_choice'],
        [body('x', { tools, tool_choice: { type: 'tool', name: 'other' } }), 'tool_choice'],
        [body('x', { tools, tool_choice: 'any' }), 'tool_choice'],
        [{ ...body('x'), messages: 'x' }, 'messages'],
        [{ ...body('x'), messages: [3] }, 'messages[0].role'],
        [{ ...body('x'), messages: [user('x'), { role: 'tool', content: 'x' }] }, 'messages[1].role'],
        [body(undefined), 'messages[0].content'],
        [body([3]), 'messages[0].content[0]'],
        [body([text('x'), { type: 'text' }]), 'messages[0].content[1]'],
        [body([{ type: 'document' }]), 'messages[0].content[0]'],
        [body([{ type: 'image', source: {} }]), 'messages[0].content[0]'],
        [body([{ type: 'tool_use', id: 'a', name: 'now', input: {} }]), 'messages[0].content[0]'],
        [body([{ type: 'tool_result' }]), 'messages[0].content[0]'],
        [{ ...body('x'), messages: [user('x'), assistant([{ type: 'tool_use', id: 'a', name: 'now', input: '{}' }])] }, 'messages[1].content[0]'],
    ]) {
        const { type, error, ...rest } = await ask(value, 400);
        assert.deepEqual([type, error.type, Object.keys(rest)], ['error', 'invalid_request_error', []]);
        assert.ok(error.message.includes(place), `${place}: ${error.message}`);
    }
    for (const value of ['{', '[]', '3']) assert.equal((await ask(value, 400)).error.type, 'invalid_request_error');
    assert.equal((await ask(body('x'.repeat(30000)), 400)).error.type, 'invalid_request_error');
    assert.equal((await ask(body('!fail now'), 500)).error.type, 'api_error');
    const form = await request(server, { method: 'POST', path: '/v1/messages', headers: { 'Content-Type': 'text/plain' }, body: 'x' });
    assert.deepEqual([form.status, form.json().type], [415, 'error']);
    const stream = events((await post(server, '/v1/messages', body('!fail now', { stream: true }))).text).map((line) => JSON.parse(line));
    assert.deepEqual([stream.at(-1).type, stream.at(-1).error.type], ['error', 'api_error']);
});

test('keys as Anthropic\'s clients send them, and pings in a silent stream', async () => {
    for (const path of ['/v1/messages', '/v1/messages/count_tokens']) {
        const refused = await post(locked, path, body('x'));
        assert.deepEqual([refused.status, refused.json().type, refused.json().error.type], [401, 'error', 'authentication_error']);
    }
    const reply = await slow;
    assert.equal(reply.status, 200);
    assert.equal(assemble(reply.text.replace(/event: ping\ndata: .*\n\n/g, '')).content[0].text, 'You ');
    assert.match(reply.text, /^event: ping\ndata: {"type":"ping"}$/m);
    assert.equal(await locked.stop(), 0);
});

test('of two edits of the context each is told, with what it left out', async () => {
    const call = (i) => [assistant([{ type: 'thinking', thinking: `thought ${i}`, signature: 'x' }, { type: 'tool_use', id: `toolu_${i}`, name: 'get_weather', input: { city: 'Rome' } }]), user([{ type: 'tool_result', tool_use_id: `toolu_${i}`, content: `result ${i} ${'x'.repeat(300)}` }])];
    const turn = (i) => [user(`question ${i}`), ...call(i), assistant([{ type: 'thinking', thinking: `so ${i}`, signature: 'x' }, text(`answer ${i}`)])];
    const edits = [{ type: 'clear_thinking_20251015', keep: { type: 'thinking_turns', value: 1 } }, { type: 'clear_tool_uses_20250919', trigger: { type: 'tool_uses', value: 2 }, keep: { type: 'tool_uses', value: 1 } }];
    const asked = { model: 'fake', max_tokens: 1000, tools, messages: [...turn(1), ...turn(2), ...turn(3), user('!recall now')] };
    const [whole, cut] = [await ask({ ...asked, context_management: { edits: [] } }), await ask({ ...asked, context_management: { edits } })];
    const told = cut.context_management.applied_edits;
    assert.deepEqual([whole.context_management.applied_edits, told.map((one) => one.type)], [[], edits.map((one) => one.type)]);
    assert.deepEqual([told[0].cleared_thinking_turns, told[1].cleared_tool_uses], [2, 2]);
    assert.equal(told[0].cleared_input_tokens + told[1].cleared_input_tokens, whole.usage.input_tokens - cut.usage.input_tokens);
    assert.doesNotMatch(JSON.stringify(cut.content), /result [12] x|thought [12]|so [12]/);
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
