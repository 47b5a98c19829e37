/** The WebSocket protocol: greeting, answers, cancel, resume, lanes, faults. */
import assert from 'node:assert/strict';
import { Socket, eventually, metric, request, runTests, sleep, startServer, test } from '../client.mjs';

const server = await startServer(['--max-message', '200000']);
await server.ready();

const create = (input, more = {}) => ({ type: 'response.create', input, ...more });
const TERMINAL = /^response\.(completed|incomplete|failed)$/;
const isTerminal = (m) => TERMINAL.test(m.type);

async function openExtended() {
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    assert.equal(ws.protocol, 'parley.v1');
    await ws.wait('session.created');
    return ws;
}

/** The rules that hold for the numbered events of any response. */
function checkOracle(list) {
    const numbered = list.filter((m) => m.sequence_number !== undefined);
    numbered.forEach((m, i) => assert.equal(m.sequence_number, numbered[0].sequence_number + i));
    assert.equal(numbered.filter(isTerminal).length, 1);
    assert.ok(isTerminal(numbered.at(-1)));
    const text = numbered.filter((m) => m.type === 'response.output_text.delta').map((m) => m.delta).join('');
    const reasoning = numbered.filter((m) => m.type === 'response.reasoning_text.delta').map((m) => m.delta).join('');
    const done = numbered.find((m) => m.type === 'response.output_text.done');
    if (done) assert.equal(done.text, text);
    const { response } = numbered.at(-1);
    const message = response.output.find((item) => item.type === 'message');
    if (message) assert.equal(message.content[0].text, text);
    return { text, reasoning, response };
}

test('a strict socket answers without greeting or extensions', async () => {
    const ws = await Socket.open(server);
    assert.equal(ws.protocol, undefined);
    ws.send(create('hello wörld 😀 !think', { model: 'any' }));
    await ws.wait('response.completed');
    const { text, reasoning, response } = checkOracle(ws.messages);
    assert.equal(text, 'You said: hello wörld 😀 ');
    assert.equal(reasoning, 'Let me think.');
    assert.equal(response.status, 'completed');
    assert.equal(response.usage.output_tokens, response.timings.predicted_n);
    assert.equal(response.timings.route, 'text');
    const types = new Set(ws.messages.map((m) => m.type));
    for (const type of ['session.created', 'server.status', 'response.progress', 'response.stats']) {
        assert.ok(!types.has(type), type);
    }
    assert.deepEqual(ws.messages.slice(0, 2).map((m) => m.type), ['response.created', 'response.in_progress']);
    ws.destroy();
});

test('parley.v1 greets, shows its state and progress, answers pings', async () => {
    const ws = await Socket.open(server, { protocols: 'parley.v1, other' });
    const hello = await ws.wait('session.created');
    assert.equal(hello.session.protocol, 'parley.v1');
    assert.equal(hello.session.model, 'fake');
    assert.equal(hello.server.state, 'ready');
    assert.equal(hello.capabilities.tools, true);
    assert.equal(hello.limits.max_text_frame, 200000);
    assert.ok(hello.capabilities.modalities.includes('image'));
    const status = await ws.wait('server.status');
    assert.equal(status.state, 'ready');
    ws.send({ type: 'ping', t: 17, event_id: 'p1' });
    const pong = await ws.wait('pong');
    assert.equal(pong.t, 17);
    ws.send(create('!phases !delay=20 !len=200', { event_id: 'e1', stream_id: 's1' }));
    const progress = await ws.wait('response.progress');
    assert.equal(progress.stream_id, 's1');
    assert.ok(['vision_encode', 'prefill'].includes(progress.phase));
    const stats = await ws.wait('response.stats');
    assert.ok(stats.timings.predicted_n > 0);
    assert.equal(stats.context.n_ctx, 20000);
    await ws.wait('response.completed');
    const { text } = checkOracle(ws.messages);
    assert.equal(text.length, 200);
    assert.ok(ws.messages.filter((m) => m.type === 'response.output_text.delta').length < 40);
    ws.send({ type: 'some.future.event' });
    ws.send({ type: 'ping', t: 'still here' });
    assert.equal((await ws.wait((m) => m.type === 'pong' && m.t === 'still here')).t, 'still here');
    ws.destroy();
});

test('a place in the queue is shown', async () => {
    const ws = await openExtended();
    ws.send(create('!queued hi'));
    const queued = await ws.wait('response.queued');
    assert.equal(queued.queue_position, 1);
    assert.equal(queued.response.status, 'queued');
    await ws.wait('response.completed');
    checkOracle(ws.messages.filter((m) => m.response_id));
    ws.destroy();
});

test('cancel by id, by lane, alone, finished and unknown', async () => {
    const ws = await openExtended();
    for (const how of ['id', 'lane', 'alone']) {
        ws.send(create('!len=5000 !delay=10', { stream_id: how }));
        const created = await ws.wait((m) => m.type === 'response.created' && m.stream_id === how);
        await ws.wait((m) => m.type === 'response.output_text.delta' && m.stream_id === how);
        const target = { id: { response_id: created.response.id }, lane: { stream_id: how }, alone: {} }[how];
        ws.send({ type: 'response.cancel', ...target });
        const end = await ws.wait((m) => isTerminal(m) && m.stream_id === how);
        assert.equal(end.type, 'response.incomplete');
        assert.equal(end.response.status, 'cancelled');
        checkOracle(ws.messages.filter((m) => m.stream_id === how));
        ws.send({ type: 'response.cancel', response_id: created.response.id });
    }
    ws.send({ type: 'response.cancel', response_id: 'resp_nothing', event_id: 'c9' });
    const error = await ws.wait('error');
    assert.equal(error.error.code, 'response_not_found');
    assert.equal(error.error.event_id, 'c9');
    ws.send({ type: 'response.cancel' });
    assert.equal((await ws.wait('error')).error.code, 'invalid_event');
    await eventually(() => metric(server, 'parley_requests_running'), 0);
    ws.destroy();
});

test('cancel while media are decoded', async () => {
    const ws = await openExtended();
    ws.send(create('!slowprep hi'));
    const created = await ws.wait('response.created');
    const progress = await ws.wait('response.progress');
    assert.equal(progress.phase, 'media_decode');
    assert.equal(progress.unit, 'frames');
    ws.send({ type: 'response.cancel', response_id: created.response.id });
    const end = await ws.wait(isTerminal);
    assert.equal(end.response.status, 'cancelled');
    ws.destroy();
});

test('a control ends the thoughts of the response it names', async () => {
    const ws = await openExtended();
    ws.send(create('one !delay=30 !think=6000', { stream_id: 'a', max_output_tokens: 8000 }));
    ws.send(create('two !delay=1 !think=400', { stream_id: 'b' }));
    const created = await ws.wait((m) => m.type === 'response.created' && m.stream_id === 'a');
    await ws.wait((m) => m.type === 'response.reasoning_text.delta' && m.stream_id === 'a');
    const control = { type: 'response.control', response_id: created.response.id, action: 'reasoning_end' };
    ws.send({ ...control, action: 'nonsense', event_id: 'c1' });
    const refused = await ws.wait('error');
    assert.deepEqual([refused.status, refused.error.code, refused.error.param, refused.error.event_id], [400, 'invalid_value', 'action', 'c1']);
    ws.send({ ...control, response_id: 'resp_nothing' });
    assert.equal((await ws.wait('error')).error.code, 'response_not_found');
    ws.send(control);
    ws.send(control);
    for (const [lane, text] of [['a', 'You said: one '], ['b', 'You said: two ']]) {
        await ws.wait((m) => m.type === 'response.completed' && m.stream_id === lane);
        const answer = checkOracle(ws.messages.filter((m) => m.stream_id === lane));
        assert.equal(answer.text, text);
        assert.ok(lane === 'a' ? answer.reasoning.length < 5000 : answer.reasoning.length > 400, lane);
    }
    ws.send(control); /* it has ended: nothing happens */
    ws.send({ type: 'ping', t: 'after' });
    await ws.wait('pong');
    assert.equal(await ws.wait('error', 1), null);
    ws.destroy();
});

test('a strict socket knows no control', async () => {
    const ws = await Socket.open(server);
    ws.send({ type: 'response.control', response_id: 'resp_nothing', action: 'reasoning_end' });
    ws.send(create('!len=5'));
    await ws.wait('response.completed');
    assert.equal(ws.messages.filter((m) => m.type === 'error').length, 0);
    ws.destroy();
});

test('resume at every event gives the identical rest', async () => {
    const ws = await openExtended();
    ws.send(create('!delay=3 !think resume me please, this is a longer text'));
    await ws.wait('response.completed');
    const all = ws.messages.filter((m) => m.sequence_number !== undefined);
    const id = all[0].response_id;
    const other = await openExtended();
    for (let k = -1; k < all.length; k++) {
        other.messages.length = 0;
        other.send({ type: 'response.resume', response_id: id, starting_after: k });
        if (k < all.length - 1) await other.wait('response.completed');
        else {
            other.send({ type: 'ping', t: k }); // nothing comes, and what is answered later is there
            assert.ok(await other.wait('pong'));
        }
        const rest = other.messages.filter((m) => m.sequence_number !== undefined);
        assert.deepEqual(rest, all.slice(k + 1));
    }
    other.send({ type: 'response.resume', response_id: 'resp_none', event_id: 'r1' });
    assert.equal((await other.wait('error')).error.code, 'response_not_found');
    other.send({ type: 'response.resume', response_id: id, starting_after: 100000 });
    assert.equal((await other.wait('error')).error.code, 'invalid_event');
    ws.destroy();
    other.destroy();
});

test('an answer goes on without its socket and is picked up again', async () => {
    const ws = await openExtended();
    ws.send(create('!len=400 !delay=5'));
    const created = await ws.wait('response.created');
    await ws.wait('response.output_text.delta');
    ws.destroy();
    const other = await openExtended();
    other.send({ type: 'response.resume', response_id: created.response.id, starting_after: 0 });
    await other.wait('response.completed');
    const rest = other.messages.filter((m) => m.sequence_number !== undefined);
    assert.equal(rest[0].sequence_number, 1);
    assert.equal(checkOracle(rest).text.length, 400);
    const reply = await request(server, { path: `/v1/responses/${created.response.id}` });
    assert.equal(reply.json().status, 'completed');
    other.destroy();
});

test('a create that is sent again attaches to its response', async () => {
    const first = await openExtended();
    const message = create('!delay=1 once and only once', { event_id: 'again', stream_id: 's' });
    first.send(message);
    const created = await first.wait('response.created');
    const large = create([{ role: 'user', content: `!len=20 ${'y'.repeat(18000)}` }], { event_id: 'large' }); // not parsed by the loop
    first.send(large);
    const { response_id: largeId } = await first.wait((m) => m.type === 'response.completed' && !m.stream_id);
    first.destroy();
    const second = await openExtended();
    second.send(message);
    const { response } = await second.wait('response.completed');
    assert.equal(response.id, created.response.id);
    const events = second.messages.filter((m) => m.sequence_number !== undefined);
    assert.equal(events[0].sequence_number, 0);
    assert.equal(checkOracle(events).text, 'You said: once and only once');
    second.send(large);
    assert.equal((await second.wait('response.completed')).response_id, largeId);
    second.send(create('something else', { event_id: 'again', stream_id: 's' }));
    const other = await second.wait('response.completed');
    assert.notEqual(other.response_id, created.response.id);
    assert.equal(other.response.output[0].content[0].text, 'You said: something else');
    second.destroy();
});

test('an answer ends with its socket where asked, and on a strict socket', async () => {
    const strict = await Socket.open(server);
    strict.send(create('!len=8000 !delay=50'));
    const ws = await openExtended();
    ws.send(create('!len=8000 !delay=50', { on_disconnect: 'cancel' }));
    await strict.wait('response.output_text.delta');
    await ws.wait('response.output_text.delta');
    assert.equal(await metric(server, 'parley_requests_running'), 2);
    strict.destroy();
    ws.destroy();
    await eventually(() => metric(server, 'parley_requests_running'), 0, 20000); // by themselves they would take 25 s
});

test('lanes run side by side, and one behind the other inside', async () => {
    const ws = await openExtended();
    for (const [lane, text] of [['a', 'a1'], ['b', 'b1'], ['a', 'a2'], ['b', 'b2']]) {
        ws.send(create(`!delay=5 ${text} ${'x'.repeat(60)}`, { stream_id: lane }));
    }
    for (let i = 0; i < 4; i++) await ws.wait('response.completed');
    for (const lane of ['a', 'b']) {
        const own = ws.messages.filter((m) => m.stream_id === lane && m.sequence_number !== undefined);
        const answers = new Map();
        for (const id of new Set(own.map((m) => m.response_id))) {
            answers.set(checkOracle(own.filter((m) => m.response_id === id)).text.slice(10, 12), id);
        }
        const ids = [answers.get(`${lane}1`), answers.get(`${lane}2`)];
        assert.ok(ids[0] && ids[1]);
        const firstEnd = own.findIndex((m) => isTerminal(m) && m.response_id === ids[0]);
        const secondText = own.findIndex((m) => m.type === 'response.output_text.delta' && m.response_id === ids[1]);
        assert.ok(firstEnd < secondText, 'the second waits for the first');
    }
    ws.destroy();
});

/** The places of these responses in the order in which their events came, each run of one response
 * counted once. */
function runsOf(ws, ids, early = []) {
    const list = ws.messages.filter((m) => m.sequence_number !== undefined && !early.includes(m.type));
    return list.map((m) => ids.indexOf(m.response_id)).filter((place, i, all) => place !== all[i - 1]);
}

test('the events of a lane never mix', async () => {
    const sent = ['one', 'two', 'three'];
    for (const protocols of ['parley.v1', undefined]) {
        const ws = await Socket.open(server, { protocols });
        for (const input of sent) ws.send(create(`!think ${input} ${'x'.repeat(200)}`, { metadata: { input } }));
        const ids = [];
        for (const input of sent) ids.push((await ws.wait((m) => m.type === 'response.created' && m.response.metadata.input === input, 60000)).response.id);
        for (const id of ids) await ws.wait((m) => m.type === 'response.completed' && m.response.id === id, 60000);
        const early = protocols ? ['response.created', 'response.queued'] : [];
        assert.deepEqual(runsOf(ws, ids, early), [0, 1, 2]);
        ws.destroy();
        if (!protocols) continue;
        const late = await openExtended(); // all are over, and read at once
        late.raw.send(Buffer.concat(ids.map((id) => Socket.frame(1, JSON.stringify({ type: 'response.resume', response_id: id })))));
        for (const id of ids) await late.wait((m) => m.type === 'response.completed' && m.response.id === id, 60000);
        assert.deepEqual(runsOf(late, ids, early), [0, 1, 2]);
        late.destroy();
    }
});

test('tokens are counted beside answers, and in front of none', async () => {
    const ws = await openExtended();
    ws.send(create('!len=8000 !delay=50', { on_disconnect: 'cancel' }));
    await ws.wait('response.output_text.delta', 60000);
    ws.send({ type: 'input_tokens.count', event_id: 'count me', input: 'hello' });
    assert.deepEqual({ ...(await ws.wait('input_tokens', 60000)) }, { type: 'input_tokens', event_id: 'count me', n_ctx: 20000, object: 'response.input_tokens', input_tokens: 9 });
    ws.send({ type: 'input_tokens.count', event_id: 'not me', input: 7 });
    const { error } = await ws.wait('error', 60000);
    assert.deepEqual([error.param, error.event_id], ['input', 'not me']);
    ws.send({ type: 'input_tokens.count', input: '!slowprep x' }); // does not count as an answer to cancel
    ws.send({ type: 'response.cancel' });
    assert.equal((await ws.wait('response.incomplete', 60000)).response.status, 'cancelled');
    ws.destroy();
    await eventually(() => metric(server, 'parley_answers_open'), 0, 60000);
});

test('faults of a message keep the socket', async () => {
    const ws = await openExtended();
    const cases = [
        ['{not json', 'invalid_event', null],
        ['[1]', 'invalid_event', 'type'],
        ['{"no":"type"}', 'invalid_event', 'type'],
        [create(undefined, { event_id: 'x' }), 'missing_field', 'input'],
        [create('hi', { temperature: 9 }), 'invalid_value', 'temperature'],
        [create('hi', { stream_id: 'no spaces allowed' }), 'invalid_value', 'stream_id'],
        [create('hi', { previous_response_id: 'resp_x' }), 'previous_response_not_found', 'previous_response_id'],
        [create('x'.repeat(20001)), 'context_length_exceeded', null],
        [create([{ role: 'user', content: [{ type: 'input_image', image_url: 'http://169.254.169.254/x.png' }] }]),
            'remote_media_disabled', 'input[0].content[0].image_url'],
        [create([{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64,@@@@' }] }]),
            'image_parse_error', 'input[0].content[0].image_url'],
    ];
    for (const [message, code, param] of cases) {
        ws.messages.length = 0;
        ws.send(message);
        const fault = await ws.wait((m) => m.type === 'error' || m.type === 'response.failed');
        const error = fault.error ?? fault.response.error;
        assert.equal(error.code, code);
        assert.equal(error.param ?? null, param);
        if (message.event_id) assert.equal(error.event_id, message.event_id);
    }
    ws.messages.length = 0;
    ws.send(create([{ role: 'user', content: [{ type: 'input_image', image_url: `data:image/png;base64,${btoa('no image')}` }] }]));
    const failed = await ws.wait('response.failed');
    assert.equal(failed.response.status, 'failed');
    assert.equal(failed.response.error.code, 'image_parse_error');
    checkOracle(ws.messages.filter((m) => m.response_id));
    ws.send(create('!fail some words'));
    const broken = await ws.wait('response.failed');
    assert.ok(!JSON.stringify(broken).includes('deadbeef'), 'inner texts stay inside');
    ws.send(create('and on'));
    assert.equal((await ws.wait('response.completed')).response.status, 'completed');
    ws.destroy();
});

test('too many responses on one socket', async () => {
    const ws = await openExtended();
    for (let i = 0; i < 12; i++) {
        ws.send(create('!len=3000 !delay=20', { stream_id: `l${i}`, event_id: `e${i}`, on_disconnect: 'cancel' }));
    }
    const error = await ws.wait('error');
    assert.equal(error.error.code, 'websocket_stream_limit_reached');
    assert.match(error.stream_id, /^l\d+$/);
    ws.destroy();
    await eventually(() => metric(server, 'parley_answers_open'), 0);
    await eventually(() => metric(server, 'parley_requests_running'), 0);
});

test('a slow reader loses nothing and holds up nobody', async () => {
    const ws = await openExtended();
    ws.raw.socket.pause();
    ws.send(create('!len=60000 !fast', { max_output_tokens: 60000 }));
    const other = await openExtended();
    for (let i = 0; i < 5; i++) {
        other.send(create(`quick ${i}`));
        assert.ok(await other.wait('response.completed'));
    }
    await sleep(500);
    ws.raw.socket.resume();
    await ws.wait('response.completed', 60000);
    assert.equal(checkOracle(ws.messages.filter((m) => m.response_id)).text.length, 60000);
    ws.destroy();
    other.destroy();
});

test('a message that there is no memory for now ends the socket with 1013, not as too large', async () => {
    const own = await startServer(['--max-message', '200000', '--max-body', '200000']);
    await own.ready();
    const sockets = [];
    for (let i = 0; i < 8; i++) {
        const ws = await Socket.open(own, { protocols: 'parley.v1' });
        ws.raw.send(Socket.frame(1, 'x'.repeat(190000), { fin: false }));
        sockets.push(ws);
    }
    for (const ws of sockets) ws.closed(120000); // reads what comes
    await eventually(() => sockets.filter((ws) => ws.closeCode === 1013).length >= 2, true);
    for (const ws of sockets) if (!ws.closeCode) ws.raw.send(Socket.frame(9, 'ping'));
    // All others go on; how many there are depends on how many grew at the same moment.
    await eventually(() => sockets.every((ws) => (ws.closeCode ? ws.closeCode === 1013 : ws.pongs === 1)), true);
    const n = sockets.filter((ws) => !ws.closeCode).length;
    assert.ok(n >= 4 && n <= 6, String(sockets.map((ws) => ws.closeCode)));
    for (const ws of sockets) ws.destroy();
    assert.equal(await own.stop(), 0);
});

test('broken frames: unmasked, too large, binary, bad UTF-8, fragments, pings', async () => {
    const large = await openExtended();
    large.raw.send(Socket.frame(1, 'x'.repeat(200001)));
    assert.equal(await large.closed(), 1009);
    const pieces = await openExtended();
    for (let i = 0; i < 5; i++) {
        pieces.raw.send(Socket.frame(i ? 0 : 1, 'x'.repeat(50000), { fin: false }));
    }
    assert.equal(await pieces.closed(), 1009);
    const claim = await openExtended();
    claim.raw.send(Buffer.from([0x81, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6]));
    assert.ok([1002, 1009].includes(await claim.closed()));
    const binary = await Socket.open(server); // the extensions have binary frames, see live_uploads
    binary.raw.send(Socket.frame(2, 'abc'));
    assert.equal(await binary.closed(), 1003);
    const utf8 = await openExtended();
    utf8.raw.send(Socket.frame(1, Buffer.from([0x7b, 0xc3, 0x28, 0x7d])));
    assert.equal(await utf8.closed(), 1007);
    const unmasked = await openExtended();
    unmasked.raw.send(Socket.frame(1, '{"type":"ping"}', { masked: false })); // tolerated by the library
    await sleep(50);
    unmasked.destroy();
    const fine = await openExtended();
    const text = JSON.stringify(create('in pieces'));
    for (let i = 0; i < text.length; i++) {
        fine.raw.send(Socket.frame(i ? 0 : 1, text[i], { fin: i === text.length - 1 }));
        if (i === 5) fine.raw.send(Socket.frame(9, 'ping'));
    }
    await fine.wait('response.completed');
    assert.equal(fine.pongs, 1);
    fine.raw.send(Socket.frame(8, Buffer.from([0x03, 0xe8])));
    assert.equal(await fine.closed(), 1000);
});

test('large messages reach the prep workers', async () => {
    const ws = await openExtended();
    const png = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47]), Buffer.alloc(100000), Buffer.from('IEND\0\0\0\0')]);
    ws.send(create([{ role: 'user', content: [
        { type: 'input_image', image_url: `data:image/png;base64,${png.toString('base64')}` },
        { type: 'input_text', text: 'what is it?' },
    ] }]));
    const done = await ws.wait('response.completed');
    assert.equal(done.response.timings.route, 'media');
    assert.equal(done.response.timings.n_images, 1);
    assert.equal(checkOracle(ws.messages.filter((m) => m.response_id)).text, '[image] You said: what is it?');
    ws.send({ type: 'ping', padding: 'x'.repeat(20000) });
    assert.equal((await ws.wait('error')).error.code, 'invalid_event');
    ws.destroy();
});

test('refused upgrades get a status', async () => {
    const host = `127.0.0.1:${server.port}`;
    const cases = [
        [{ headers: { Origin: 'http://evil.example' } }, 403],
        [{ headers: { Origin: 'null' } }, 403],
        [{ headers: { Origin: `http://127.0.0.1:${server.port + 1}` } }, 403],
        [{ headers: { Origin: `http://${host}.evil.example` } }, 403],
        [{ headers: { Origin: `http://${'a'.repeat(600)}` } }, 403],
        [{ headers: { Host: 'evil.example' } }, 421],
        [{ headers: { Host: ':80' } }, 421],
        [{ path: '/v1/other' }, 404],
        [{ protocols: 'chat' }, 400],
        [{ protocols: `parley.v1, ${'x'.repeat(200)}` }, 400],
        [{ headers: { 'Sec-Fetch-Site': 'cross-site' } }, 403],
    ];
    for (const [options, status] of cases) {
        const ws = await Socket.open(server, options);
        assert.equal(ws.refused?.status, status, JSON.stringify(options));
        assert.ok(JSON.parse(ws.refused.text).error.message);
    }
    const same = await Socket.open(server, { headers: { Origin: `http://${host}` } });
    assert.equal(same.refused, undefined);
    same.destroy();
});

test('the server ends cleanly and says so', async () => {
    const ws = await openExtended();
    ws.send(create('!len=100 !delay=10'));
    await ws.wait('response.output_text.delta');
    server.child.kill('SIGTERM');
    const status = await ws.wait((m) => m.type === 'server.status' && m.state === 'draining');
    assert.ok(status);
    assert.ok(await ws.wait('response.completed'), 'the running answer is finished');
    assert.equal(await ws.closed(), 1001);
    assert.equal(await server.exited, 0, server.err.slice(-3000));
    assert.ok(!/Sanitizer|runtime error/.test(server.err), server.err.slice(-4000));
});

await runTests();
