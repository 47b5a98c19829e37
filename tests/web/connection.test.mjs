/** The protocol client without a browser: when it opens, waits, leaves, goes over HTTP, and what a run hears, in time that
 * is made up. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { makeFetch, makeSockets, makeStream, makeTime, reply } from './made_up.mjs';
import { Connection } from '../../web/js/protocol/connection.js';

const time = makeTime();
const sockets = makeSockets();
const net = makeFetch();
const away = () => {
    throw new TypeError('fetch failed');
};

/** A connection that has been started, its states, and what the page's window hears. */
async function started(options = {}) {
    sockets.length = 0;
    net.requests.length = 0;
    net.answer = away;
    time.random = 0.5;
    const heard = { window: {}, document: {} };
    globalThis.addEventListener = (name, fn) => (heard.window[name] = fn);
    globalThis.document = { hidden: false, addEventListener: (name, fn) => (heard.document[name] = fn) };
    const connection = new Connection({ base: 'http://host:8080/', ...options });
    const states = [];
    connection.addEventListener('state', () => states.at(-1) !== connection.state && states.push(connection.state));
    connection.start();
    await time.settle();
    return { connection, states, heard, socket: sockets[0] };
}
async function opened(session = {}, options = {}) {
    const all = await started(options);
    all.socket.greet({ server: { state: 'ready' }, ...session });
    await time.settle();
    return all;
}
/** The same where WebSockets are blocked and HTTP works. */
async function blocked() {
    const all = await started();
    net.answer = () => reply({ data: [] });
    sockets[0].end();
    await time.pass(500);
    sockets[1].end();
    await time.settle();
    assert.equal(all.connection.state, 'fallback');
    net.requests.length = 0;
    return all;
}
/** Asks something. */
function ask(connection, body = { input: 'Hi' }, id = 'one') {
    const events = [];
    const run = connection.generate(body, (event) => events.push(event), id);
    return { run, events, news: () => events.splice(0) };
}

test('the socket is opened where the page is, with the key among its protocols', async () => {
    const { connection, socket } = await started();
    assert.deepEqual([socket.url, socket.protocols], ['ws://host:8080/v1/responses', ['parley.v1']]);
    assert.equal(connection.state, 'connecting');
    connection.stop();
    const other = await started({ base: 'https://host/chat/', key: 'k1' });
    assert.deepEqual([other.socket.url, other.socket.protocols], ['wss://host/chat/v1/responses', ['parley.v1', 'openai-insecure-api-key.k1']]);
    other.connection.stop();
});

test('a greeting opens it: what it says is kept, and pings begin', async () => {
    const { connection, states, socket } = await opened({ limits: { max_uploads: 2 } });
    assert.deepEqual(states, ['open']);
    assert.deepEqual([connection.session.limits, connection.server], [{ max_uploads: 2 }, { state: 'ready' }]);
    assert.deepEqual(socket.sent, [{ type: 'ping', event_id: 'ping', t: time.now() }]);
    await time.pass(19_999);
    assert.equal(socket.sent.length, 1);
    await time.pass(1);
    assert.equal(socket.sent.length, 2);
    connection.stop();
    assert.deepEqual([connection.state, socket.closedWith], ['stopped', 1000]);
    await time.pass(100_000);
    assert.equal(sockets.length, 1, 'who has left does not come back');
    connection.retryNow();
    assert.equal(sockets.length, 1);
});

test('a socket without a greeting is left after eight seconds, one with a greeting is not', async () => {
    const { connection, socket } = await started();
    await time.pass(7_999);
    assert.equal(socket.closedWith, undefined);
    await time.pass(1);
    assert.equal(socket.closedWith, 'no code');
    assert.equal(connection.state, 'retrying');
    connection.stop();
    const good = await opened();
    await time.pass(8_000);
    assert.equal(good.socket.closedWith, undefined);
    good.connection.stop();
});

test('tries come later and later, up to a quarter of a minute, each at its own time', async () => {
    const { connection } = await started();
    for (const [i, wait] of [500, 1000, 2000, 4000, 8000, 15_000, 15_000].entries()) {
        sockets.at(-1).end();
        await time.settle();
        assert.equal(connection.retryAt - time.now(), wait);
        await time.pass(wait - 1);
        assert.equal(sockets.length, i + 1);
        await time.pass(1);
        assert.equal(sockets.length, i + 2);
    }
    for (const [random, wait] of [[0, 10_500], [1, 19_500]]) {
        time.random = random;
        sockets.at(-1).end();
        await time.settle();
        assert.equal(Math.round(connection.retryAt - time.now()), wait);
        await time.pass(wait);
    }
    sockets.at(-1).greet();
    time.random = 0.5;
    sockets.at(-1).end();
    assert.equal(connection.retryAt - time.now(), 500, 'one that was open begins anew');
    const before = sockets.length;
    connection.retryNow();
    assert.equal(sockets.length, before + 1);
    connection.retryNow();
    assert.equal(sockets.length, before + 1, 'one try at a time');
    await time.pass(7_000);
    assert.equal(sockets.length, before + 1, 'the timer of the other try is gone');
    connection.stop();
});

test('a browser that refuses to make a socket counts as a failure', async () => {
    const { WebSocket } = globalThis;
    globalThis.WebSocket = class {
        constructor() {
            throw new Error('refused');
        }
    };
    const { connection } = await started();
    assert.deepEqual([connection.state, connection.failures, connection.socket], ['retrying', 1, null]);
    globalThis.WebSocket = WebSocket;
    await time.pass(500);
    assert.equal(sockets.length, 1);
    connection.stop();
});

test('two failures ask over HTTP why: a key, a model that loads, no server', async () => {
    for (const [status, state] of [[401, 'unauthorised'], [403, 'unauthorised'], [503, 'loading'], [500, 'retrying'], [404, 'retrying'], [0, 'retrying']]) {
        const { connection } = await started({ key: 'k' });
        net.answer = () => (status ? reply({}, status) : away());
        sockets[0].end();
        await time.settle();
        assert.deepEqual([net.requests.length, connection.state], [0, 'retrying']);
        await time.pass(500);
        sockets[1].end();
        await time.settle();
        const [{ path, method, cache, headers, credentials }] = net.requests;
        assert.deepEqual([path, method, cache, headers, credentials], ['/v1/models', 'GET', 'no-store', { authorization: 'Bearer k' }, 'same-origin']);
        assert.equal(connection.state, state, `${status}`);
        connection.stop();
    }
});

test('where HTTP works and sockets do not, it goes over HTTP, and tries a socket twice a minute', async () => {
    const { connection, states } = await blocked();
    assert.deepEqual(states.slice(-2), ['retrying', 'fallback']);
    assert.equal(connection.retryAt - time.now() <= 1000, true);
    await time.pass(1_000);
    assert.deepEqual([sockets.length, connection.state], [3, 'fallback'], 'trying does not show');
    sockets[2].end();
    await time.settle();
    assert.equal(connection.retryAt - time.now(), 30_000);
    await time.pass(29_999);
    assert.equal(sockets.length, 3);
    await time.pass(1);
    assert.equal(sockets.length, 4);
    net.answer = away; // the server is away altogether
    sockets[3].end();
    await time.settle();
    assert.equal(connection.state, 'retrying');
    assert.equal(connection.retryAt - time.now() < 30_000, true);
    connection.retryNow();
    sockets.at(-1).greet();
    assert.equal(connection.state, 'open');
    connection.stop();
});

test('where a socket was open before, five failures are needed', async () => {
    const { connection } = await opened();
    net.answer = () => reply({});
    for (let i = 1; i <= 5; i += 1) {
        sockets.at(-1).end();
        await time.settle();
        assert.equal(connection.state, i < 5 ? 'retrying' : 'fallback', `${i}`);
        if (i < 5) await time.pass(connection.retryAt - time.now());
    }
    connection.stop();
});

test('a socket that is silent to pings for 45 seconds is left, if it ever answered one', async () => {
    const quiet = await opened();
    await time.pass(100_000);
    assert.equal(sockets.length, 1);
    quiet.connection.stop();
    const { connection, socket } = await opened();
    socket.hear({ type: 'pong' });
    socket.die();
    await time.pass(40_000);
    assert.equal(sockets.length, 1);
    await time.pass(20_000);
    assert.deepEqual([sockets.length, socket.closedWith], [2, 'no code']);
    socket.hear({ type: 'session.created' });
    socket.end();
    assert.equal(connection.state, 'connecting', 'what an old socket says is not heard');
    connection.stop();
});

test('woken up, it asks whether the socket lives, and leaves it after four seconds of silence', async () => {
    for (const wake of ['online', 'pageshow', 'visibilitychange', 'sleep']) {
        const { connection, socket, heard } = await opened();
        socket.hear({ type: 'pong' });
        socket.sent.length = 0;
        const call = async () => {
            if (wake === 'sleep') {
                time.sleep(13_000);
                await time.pass(1_500);
            } else (heard.window[wake] ?? heard.document[wake])();
        };
        await call();
        assert.equal(socket.sent.filter(({ type }) => type === 'ping').length >= 1, true, wake);
        await time.pass(1);
        socket.hear({ type: 'pong' });
        await time.pass(5_000);
        assert.equal(sockets.length, 1, 'it has answered');
        await call();
        await time.pass(wake === 'sleep' ? 1_000 : 3_999);
        assert.equal(sockets.length, 1);
        await time.pass(4_000);
        assert.equal(sockets.length, 2, wake);
        connection.stop();
    }
    const { connection, socket, heard } = await opened();
    socket.hear({ type: 'pong' });
    socket.sent.length = 0;
    globalThis.document.hidden = true;
    heard.document.visibilitychange();
    assert.deepEqual(socket.sent, [], 'a page that is hidden does not wake');
    let told = 0;
    connection.addEventListener('state', () => (told += 1));
    heard.window.offline();
    assert.equal(told, 1);
    await time.pass(30_000);
    assert.equal(socket.sent.length, 1, 'time that passes is no sleep');
    connection.stop();
});

test('a page that was late four times over has not slept; woken up twice, the second time counts', async () => {
    const { connection, socket, heard } = await opened();
    socket.hear({ type: 'pong' });
    socket.sent.length = 0;
    time.sleep(12_000);
    await time.pass(0);
    assert.equal(socket.sent.length, 0);
    heard.window.online();
    await time.pass(3_000);
    heard.window.online();
    await time.pass(3_900);
    assert.equal(sockets.length, 1);
    await time.pass(200);
    assert.equal(sockets.length, 2);
    connection.stop();
});

test('while it is away nothing is pinged, and only sockets that fail are counted', async () => {
    const { connection, socket } = await opened();
    socket.hear({ type: 'pong' });
    socket.end();
    for (let ended = 1; ended < 12; ended += 1) {
        assert.equal(connection.failures, ended);
        await time.pass(connection.retryAt - time.now());
        assert.equal(sockets.length, ended + 1);
        sockets.at(-1).end();
    }
    connection.stop();
});

test('woken up while it waits for the next try, it tries at once', async () => {
    const { connection, socket, heard } = await started();
    socket.end();
    heard.window.online();
    assert.equal(sockets.length, 2);
    connection.stop();
});

test('another key opens another socket; refused again, it is known at once why', async () => {
    const { connection, socket } = await opened();
    connection.setKey('');
    assert.equal(sockets.length, 1, 'the same key changes nothing');
    connection.setKey('new');
    assert.deepEqual([socket.closedWith, sockets[1].protocols.at(-1)], [1000, 'openai-insecure-api-key.new']);
    net.answer = () => reply({}, 401);
    sockets[1].end();
    await time.settle();
    assert.equal(connection.state, 'unauthorised');
    connection.setKey('good');
    assert.equal(sockets.length, 3, 'without waiting');
    connection.stop();
    const quiet = await opened();
    quiet.socket.hear({ type: 'pong' });
    await time.pass(55_000);
    quiet.connection.setKey('other');
    await time.pass(6_000);
    assert.equal(sockets.length, 2, 'the new one is not blamed for the silence of the old one');
    quiet.connection.stop();
    const alone = await opened();
    alone.connection.setKey('other');
    sockets[1].end();
    await time.settle();
    assert.equal(alone.connection.retryAt - time.now(), 1000, 'where nobody answers, it waits as after two tries');
    alone.connection.stop();
});

test('a question is one message, with its names; what the body says of leaving counts', async () => {
    const { connection, socket } = await opened();
    socket.news();
    const { events } = ask(connection, { input: 'Hi', model: 'm' });
    assert.deepEqual(socket.news(), [{ on_disconnect: 'continue', input: 'Hi', model: 'm', type: 'response.create', event_id: 'e_one', stream_id: 's_one' }]);
    assert.deepEqual(events, []);
    ask(connection, { on_disconnect: 'cancel', type: 'x', stream_id: 'y' }, 'two');
    assert.deepEqual(socket.news(), [{ on_disconnect: 'cancel', type: 'response.create', event_id: 'e_two', stream_id: 's_two' }]);
    connection.stop();
});

test('a question that the server does not take yet waits, and is sent when it does', async () => {
    for (const state of ['loading', 'draining']) {
        const { connection, socket } = await opened({ server: { state } });
        const { events } = ask(connection);
        assert.deepEqual([events, socket.news()], [[{ kind: 'waiting' }], []], state);
        let told = 0;
        connection.addEventListener('state', () => (told += 1));
        socket.hear({ type: 'session.updated', server: { state: 'ready' }, limits: { max_uploads: 1 } });
        assert.deepEqual([socket.news().length, connection.server, connection.session.limits.max_uploads, told], [1, { state: 'ready' }, 1, 1], state);
        connection.stop();
    }
    const { connection, socket } = await started();
    const { events } = ask(connection);
    assert.deepEqual(events, [{ kind: 'waiting' }]);
    socket.greet({ server: { state: 'ready' } });
    assert.equal(socket.news()[0].type, 'response.create');
    connection.stop();
});

test('what the server says of itself is put together; a model that has come is asked for a new greeting', async () => {
    const { connection, socket } = await opened({ server: { state: 'loading', version: '1' } });
    let told = 0;
    connection.addEventListener('state', () => (told += 1));
    socket.hear({ type: 'server.status', state: 'loading', next_model: 'm', progress: 0.5 });
    assert.deepEqual([connection.server.version, connection.server.progress, connection.server.next_model, told, sockets.length], ['1', 0.5, 'm', 1, 1]);
    socket.hear({ type: 'server.status', state: 'ready' });
    assert.deepEqual([connection.server.next_model, sockets.length, socket.closedWith], [undefined, 2, 1000]);
    sockets[1].greet({ server: { state: 'ready' } });
    sockets[1].hear({ type: 'server.status', state: 'ready', load: 1 });
    assert.equal(sockets.length, 2, 'it was ready before');
    connection.stop();
});

test('what is no event is not heard; news of chats and uploads go to who listens', async () => {
    const { connection, socket } = await opened();
    const heard = [];
    for (const name of ['history', 'upload']) connection.addEventListener(name, ({ detail }) => heard.push([name, detail.type, detail.id ?? 0]));
    for (const odd of ['{', '1', 'null', '{}', '{"type":7}', '"x"']) socket.hear(odd);
    socket.onmessage({ data: new ArrayBuffer(4) });
    socket.hear({ type: 'history.changed', id: 1 });
    socket.hear({ type: 'upload.ack', id: 2 });
    socket.hear({ type: 'error', upload_id: 'up', id: 3 });
    socket.hear({ type: 'error', error: { event_id: 'u_1' }, id: 4 });
    assert.deepEqual(heard, [['history', 'history.changed', 1], ['upload', 'upload.ack', 2], ['upload', 'error', 3], ['upload', 'error', 4]]);
    socket.news();
    connection.sendMessage({ type: 'upload.cancel' });
    connection.sendBinary(new Uint8Array([1, 2]));
    assert.deepEqual(socket.sent, [{ type: 'upload.cancel' }, new Uint8Array([1, 2])]);
    socket.readyState = 2;
    connection.sendMessage({ type: 'upload.cancel' });
    connection.sendBinary(new Uint8Array(1));
    assert.equal(socket.sent.length, 2, 'a socket that closes takes nothing');
    connection.stop();
});

test('each event of an answer, as the page hears it', async () => {
    const { connection, socket } = await opened();
    const { run, news } = ask(connection);
    const hear = (event) => {
        socket.hear({ response_id: 'r', stream_id: 's_one', ...event });
        return news();
    };
    assert.deepEqual(hear({ type: 'response.created', sequence_number: 0 }), [{ kind: 'started', responseId: 'r' }]);
    assert.deepEqual(hear({ type: 'response.queued', queue_position: 3, eta_ms: 9 }), [{ kind: 'queued', position: 3, etaMs: 9 }]);
    assert.deepEqual(hear({ type: 'response.queued' }), [{ kind: 'queued', position: 0, etaMs: undefined }]);
    assert.deepEqual(hear({ type: 'response.progress', phase: 'prefill', processed: 5, total: 9, unit: 'tokens', eta_ms: 7, cached: 2 }), [
        { kind: 'progress', phase: 'prefill', processed: 5, total: 9, unit: 'tokens', etaMs: 7, cached: 2 },
    ]);
    assert.deepEqual(hear({ type: 'response.progress', phase: 'x' }), [{ kind: 'progress', phase: 'x', processed: 0, total: 0, unit: undefined, etaMs: undefined, cached: undefined }]);
    assert.deepEqual(hear({ type: 'response.reasoning_text.delta', delta: 'hm' }), [{ kind: 'reasoning', delta: 'hm' }]);
    assert.deepEqual(hear({ type: 'response.output_text.delta', delta: 'yes', sequence_number: 4 }), [{ kind: 'text', delta: 'yes' }]);
    assert.deepEqual(hear({ type: 'response.output_text.delta', delta: 'yes', sequence_number: 4 }), [], 'the same again');
    assert.deepEqual(hear({ type: 'response.output_text.delta', delta: 'no', sequence_number: 3 }), [], 'an older one');
    assert.deepEqual(hear({ type: 'response.output_text.delta' }), [{ kind: 'text', delta: '' }]);
    assert.deepEqual(hear({ type: 'response.output_item.added', item: { type: 'message' } }), []);
    assert.deepEqual(hear({ type: 'response.output_item.added', item: { type: 'function_call', id: 'i', call_id: 'c', name: 'f', arguments: '{}' } }), [
        { kind: 'tool', id: 'i', callId: 'c', name: 'f', arguments: '{}' },
    ]);
    const call = { type: 'mcp_call', id: 'i', name: 'f', arguments: '{}', server_label: 's', approval_request_id: 'a' };
    const base = { kind: 'tool', id: 'i', callId: undefined, name: 'f', arguments: '{}', server: 's', approvalId: 'a' };
    assert.deepEqual(hear({ type: 'response.output_item.added', item: { ...call, status: 'in_progress' } }), [base]);
    assert.deepEqual(hear({ type: 'response.output_item.done', item: { ...call, status: 'completed', output: 'o', duration_ms: 5 } }), [{ ...base, output: 'o', failed: false, ms: 5, images: undefined }]);
    assert.deepEqual(hear({ type: 'response.output_item.done', item: { ...call, approval_request_id: null, status: 'failed', error: 'e' } }), [
        { ...base, approvalId: undefined, output: 'e', failed: true, ms: undefined, images: undefined },
    ]);
    assert.deepEqual(hear({ type: 'response.output_item.done', item: { type: 'mcp_approval_request', id: 'q', name: 'f', server_label: 's' } }), [
        { kind: 'tool', id: 'q', callId: undefined, name: 'f', arguments: '', server: 's', approvalId: 'q' },
    ]);
    for (const [status, failed] of [['completed', false], ['failed', true], ['incomplete', true]]) {
        assert.deepEqual(hear({ type: 'response.output_item.done', item: { type: 'function_call_output', call_id: 'c', output: { a: 1 }, status } }), [
            { kind: 'tool-output', callId: 'c', output: '{"a":1}', failed },
        ]);
    }
    assert.deepEqual(hear({ type: 'response.function_call_arguments.delta', item_id: 'i', delta: '{' }), [{ kind: 'tool-arguments', id: 'i', delta: '{' }]);
    assert.deepEqual(hear({ type: 'response.mcp_call.progress', item_id: 'i', progress: 0.5, message: 'half' }), [{ kind: 'tool', id: 'i', progress: 0.5, note: 'half' }]);
    assert.deepEqual(hear({ type: 'response.stats', timings: { a: 1 }, context: { b: 2 } }), [{ kind: 'stats', timings: { a: 1 }, context: { b: 2 } }]);
    assert.deepEqual(hear({ type: 'response.stats' }), [{ kind: 'stats', timings: {}, context: undefined }]);
    const output = [{ type: 'message', content: [{ type: 'output_text', text: 'all' }] }];
    assert.deepEqual(hear({ type: 'response.snapshot', sequence_number: 2, response: { id: 'r', status: 'in_progress', output } }), [{ kind: 'reset', text: 'all', reasoning: '', tools: [] }]);
    assert.equal(run.lastSeq, 2, 'a snapshot begins anew');
    assert.deepEqual(hear({ type: 'response.new_kind', sequence_number: 5 }), []);
    const end = { kind: 'end', status: 'incomplete', reason: 'length', error: undefined, timings: { t: 1 }, usage: { u: 1 }, model: 'm' };
    assert.deepEqual(
        hear({ type: 'response.incomplete', response: { id: 'r', status: 'incomplete', incomplete_details: { reason: 'length' }, timings: { t: 1 }, usage: { u: 1 }, model: 'm' } }),
        [end],
    );
    assert.deepEqual([hear({ type: 'response.output_text.delta', delta: 'late' }), run.done, connection.runs.size], [[], true, 0], 'nothing comes behind an end');
    connection.stop();
});

test('how an answer ends', async () => {
    const { connection, socket } = await opened();
    const ended = (event) => {
        const { events } = ask(connection, {}, 'e');
        socket.hear({ stream_id: 's_e', ...event });
        return events.filter(({ kind }) => kind === 'end').map(({ status, error }) => [status, error]);
    };
    assert.deepEqual(ended({ type: 'response.completed' }), [['completed', undefined]]);
    assert.deepEqual(ended({ type: 'response.completed', response: { status: 'cancelled' } }), [['cancelled', undefined]]);
    assert.deepEqual(ended({ type: 'response.failed', response: { error: { code: 'c', message: 'm' } } }), [['failed', { code: 'c', message: 'm' }]]);
    assert.deepEqual(ended({ type: 'response.failed', response: { error: { type: 't' } } }), [['failed', { code: 't', message: '' }]]);
    assert.deepEqual(ended({ type: 'response.failed', response: { error: {} } }), [['failed', { code: 'server_error', message: '' }]]);
    assert.deepEqual(ended({ type: 'error', status: 400, error: { code: 'c', message: 'm' } }), [['failed', { code: 'c', message: 'm', status: 400 }]]);
    assert.deepEqual(ended({ type: 'error', code: 'd' }), [['failed', { code: 'd', message: '', status: undefined }]]);
    for (const status of ['completed', 'incomplete', 'cancelled', 'failed']) {
        assert.deepEqual(ended({ type: 'response.snapshot', response: { status } }), [[status, undefined]]);
    }
    assert.deepEqual(ended({ type: 'response.snapshot', response: { status: 'in_progress' } }), []);
    connection.stop();
});

test('whose event it is', async () => {
    const { connection, socket } = await opened();
    const a = ask(connection, {}, 'a');
    const b = ask(connection, {}, 'b');
    const texts = () => [a, b].map(({ news }) => news().filter(({ kind }) => kind === 'text').map(({ delta }) => delta).join(''));
    socket.hear({ type: 'response.created', stream_id: 's_a', response: { id: 'ra' } });
    socket.hear({ type: 'response.output_text.delta', response_id: 'ra', delta: '1' });
    socket.hear({ type: 'response.output_text.delta', stream_id: 's_b', delta: '2' });
    socket.hear({ type: 'response.output_text.delta', delta: '3' });
    assert.deepEqual(texts(), ['1', '23'], 'one that names nothing is of the only one without an id');
    socket.hear({ type: 'response.created', stream_id: 's_b', response: { id: 'rb' } });
    socket.hear({ type: 'response.output_text.delta', response_id: 'rb', delta: '3' });
    assert.deepEqual(texts(), ['', '3']);
    socket.hear({ type: 'response.output_text.delta', stream_id: 's_c', delta: '4' });
    const c = ask(connection, {}, 'c2');
    socket.hear({ type: 'response.output_text.delta', delta: '5' });
    assert.deepEqual(texts(), ['', ''], 'and of nobody where there are two');
    socket.hear({ type: 'error', error: { event_id: 'e_x', code: 'x' } });
    socket.hear({ type: 'error', error: { event_id: 'e_b', code: 'x' } });
    assert.deepEqual([a.run.done, b.run.done, c.run.done], [false, true, false]);
    socket.hear({ type: 'error', event_id: 'e_y', error: { code: 'x' } });
    assert.equal(c.run.done, false, 'an error that names another is not its');
    socket.hear({ type: 'error', error: { code: 'x' } });
    assert.deepEqual([a.run.done, c.run.done], [false, true]);
    connection.stop();
});

test('an answer whose socket goes is taken up again where it was', async () => {
    const { connection, socket } = await opened();
    const { news, run } = ask(connection);
    socket.hear({ type: 'response.output_text.delta', stream_id: 's_one', response_id: 'r', sequence_number: 7, delta: 'a' });
    news();
    socket.end();
    assert.deepEqual(news(), [{ kind: 'lost' }]);
    await time.pass(500);
    sockets[1].end();
    await time.pass(1_000);
    assert.deepEqual(news(), [], 'lost is said once');
    sockets[2].greet({ server: { state: 'loading' } });
    assert.deepEqual(sockets[2].news(), [{ type: 'response.resume', event_id: 'e_one', stream_id: 's_one', response_id: 'r', starting_after: 7 }]);
    sockets[2].hear({ type: 'response.output_text.delta', response_id: 'r', sequence_number: 7, delta: 'a' });
    sockets[2].hear({ type: 'response.output_text.delta', response_id: 'r', sequence_number: 8, delta: 'b' });
    assert.deepEqual(news(), [{ kind: 'resumed' }, { kind: 'text', delta: 'b' }]);
    await time.pass(130_000);
    assert.deepEqual([news(), run.done], [[], false], 'it is not lost any more');
    connection.stop();
});

test('one that cannot be taken up for two minutes has failed; one that was never sent waits', async () => {
    const { connection, socket } = await opened();
    const { news } = ask(connection);
    socket.end();
    const waits = ask(connection, {}, 'two');
    assert.deepEqual([news(), waits.news()], [[{ kind: 'lost' }], [{ kind: 'waiting' }]]);
    const lost = time.now();
    while (time.now() - lost < 119_000) {
        await time.pass(500);
        if (sockets.at(-1).readyState === 0) sockets.at(-1).end();
    }
    assert.deepEqual(news(), []);
    await time.pass(2_000);
    assert.deepEqual(news(), [{ kind: 'end', status: 'failed', error: { code: 'connection_lost', message: 'The server could not be reached again.', status: undefined } }]);
    assert.equal(waits.run.done, false);
    connection.stop();
});

test('an answer of a page that was reloaded is attached to, all of it', async () => {
    const { connection, socket } = await opened();
    const events = [];
    const run = connection.resume('r9', (event) => events.push(event));
    const [message] = socket.news();
    assert.deepEqual([message.type, message.response_id, message.starting_after, events], ['response.resume', 'r9', -1, [{ kind: 'waiting' }]]);
    socket.hear({ type: 'response.output_text.delta', response_id: 'r9', sequence_number: 0, delta: 'a' });
    assert.deepEqual(events.slice(1), [{ kind: 'text', delta: 'a' }]);
    await time.pass(130_000);
    assert.equal(run.done, false);
    connection.stop();
    const closed = await started();
    const late = [];
    closed.connection.resume('r9', (event) => late.push(event));
    await time.pass(122_000);
    assert.equal(late.at(-1).error?.code, 'connection_lost');
    closed.connection.stop();
});

test('cancelling: by its name, by its id, before it was sent, and without an answer of the server', async () => {
    const { connection, socket } = await opened();
    socket.news();
    const a = ask(connection, {}, 'a');
    socket.news();
    a.run.cancel();
    a.run.cancel();
    assert.deepEqual([socket.news(), a.news()], [[{ type: 'response.cancel', stream_id: 's_a' }], []]);
    await time.pass(3_999);
    assert.equal(a.run.done, false);
    await time.pass(1);
    assert.deepEqual(a.news(), [{ kind: 'end', status: 'cancelled' }]);
    a.run.cancel();
    const b = ask(connection, {}, 'b');
    socket.hear({ type: 'response.created', stream_id: 's_b', response_id: 'rb' });
    socket.news();
    b.run.cancel();
    assert.deepEqual(socket.news(), [{ type: 'response.cancel', response_id: 'rb' }]);
    socket.hear({ type: 'response.incomplete', response: { id: 'rb', status: 'cancelled' } });
    assert.equal(b.news().at(-1).status, 'cancelled');
    await time.pass(4_000);
    assert.deepEqual(b.news(), [], 'one end');
    const c = ask(connection, {}, 'c');
    socket.hear({ type: 'response.created', stream_id: 's_c', response_id: 'rc' });
    socket.end();
    c.run.cancel();
    assert.equal(c.news().at(-1).kind, 'end', 'without a socket it ends at once');
    await time.pass(500);
    sockets.at(-1).greet({ server: { state: 'ready' } });
    assert.deepEqual(sockets.at(-1).news(), [{ type: 'response.cancel', response_id: 'rc' }], 'and the server is told as soon as there is one');
    sockets.at(-1).end();
    await time.pass(500);
    sockets.at(-1).greet();
    assert.deepEqual(sockets.at(-1).news(), [], 'once');
    connection.stop();
    const closed = await started();
    const d = ask(closed.connection, {}, 'd');
    d.run.cancel();
    assert.equal(d.news().at(-1).status, 'cancelled');
    closed.socket.greet({ server: { state: 'ready' } });
    assert.deepEqual(closed.socket.news(), [], 'what was never sent is not sent');
    closed.connection.stop();
});

test('what is cancelled while the socket is away is cancelled over HTTP where sockets do not come back, once', async () => {
    const { connection, socket } = await opened();
    const { run } = ask(connection, {}, 'a');
    socket.hear({ type: 'response.created', stream_id: 's_a', response_id: 'ra' });
    net.answer = () => reply({ data: [] });
    socket.end();
    run.cancel();
    const cancelled = () => net.requests.filter(({ path, method }) => path === '/v1/responses/ra/cancel' && method === 'POST').length;
    for (let i = 0; i < 20 && connection.state !== 'fallback'; i += 1) {
        await time.pass(20_000);
        if (connection.state !== 'fallback') sockets.at(-1).end();
        await time.settle();
    }
    assert.deepEqual([connection.state, cancelled()], ['fallback', 1]);
    const before = sockets.length;
    for (let i = 0; i < 60 && sockets.length === before; i += 1) await time.pass(10_000);
    sockets.at(-1).greet({ server: { state: 'ready' } });
    assert.deepEqual([connection.state, sockets.at(-1).news(), cancelled()], ['open', [], 1]);
    connection.stop();
});

test('a question too large for a frame goes over HTTP', async () => {
    const { connection, socket } = await opened({ limits: { max_text_frame: 1000 } });
    socket.news();
    const stream = makeStream();
    net.answer = () => stream.response;
    const length = (n) => JSON.stringify({ on_disconnect: 'continue', input: 'x'.repeat(n), type: 'response.create', event_id: 'e_one', stream_id: 's_one' }).length;
    const most = Math.floor(1000 / 1.02) - length(0);
    ask(connection, { input: 'x'.repeat(most) });
    assert.deepEqual([socket.news().length, net.requests.length], [1, 0]);
    const { news } = ask(connection, { input: 'x'.repeat(most + 1) });
    assert.deepEqual([socket.news().length, net.requests.length], [0, 1]);
    stream.say({ type: 'response.created', response: { id: 'r' }, sequence_number: 0 });
    await time.settle();
    assert.deepEqual(news(), [{ kind: 'started', responseId: 'r' }]);
    socket.end();
    assert.deepEqual(news(), [], 'its request does not care for the socket');
    stream.say({ type: 'response.completed', response: { id: 'r', status: 'completed' }, sequence_number: 1 });
    await time.settle();
    assert.equal(news()[0].status, 'completed');
    connection.stop();
});

test('a server that names no limit of its frames takes a mebibyte', async () => {
    const { connection, socket } = await opened();
    net.answer = () => reply({ error: { code: 'no' } }, 400);
    socket.news();
    ask(connection, { input: 'x'.repeat(1_000_000) }, 'a');
    assert.deepEqual([socket.news().length, net.requests.length], [1, 0]);
    ask(connection, { input: 'x'.repeat(1_050_000) }, 'b');
    assert.deepEqual([socket.news().length, net.requests.length], [0, 1]);
    connection.stop();
});

test('what waits is asked for as soon as it goes over HTTP; woken up, what waits for its next try is asked for once', async () => {
    const { connection, heard } = await started();
    const first = ask(connection, {}, 'a');
    const streams = [makeStream(), makeStream(), makeStream()];
    const asked = () => net.requests.filter((one) => one.path.startsWith('/v1/resp'));
    net.answer = ({ path }) => (path === '/v1/models' ? reply({}) : path.endsWith('/cancel') ? reply({}) : streams[asked().length - 1].response);
    sockets[0].end();
    await time.pass(500);
    sockets[1].end();
    await time.settle();
    assert.deepEqual([connection.state, asked().length], ['fallback', 1]);
    streams[0].say({ type: 'response.created', response: { id: 'r' }, sequence_number: 0 });
    await time.settle();
    streams[0].end();
    await time.settle();
    assert.deepEqual(first.news().map(({ kind }) => kind).slice(-2), ['started', 'lost'], 'a stream that just ends is cut, too');
    heard.window.online();
    await time.settle();
    assert.deepEqual([asked().length, first.news()], [2, [{ kind: 'resumed' }]]);
    await time.pass(2_000);
    assert.equal(asked().length, 2, 'not once more by its timer');
    streams[1].end();
    await time.settle();
    first.run.cancel();
    assert.equal(net.requests.at(-1).path, '/v1/responses/r/cancel', 'also between two requests');
    await time.pass(4_000);
    assert.equal(first.news().at(-1).status, 'cancelled');
    const { length } = asked();
    await time.pass(20_000);
    assert.equal(asked().length, length, 'what has ended is not asked for again');
    connection.stop();
});

test('a request that is cancelled while it waits for its next try is not made', async () => {
    const { connection } = await blocked();
    net.answer = ({ path }) => (path === '/v1/models' ? reply({}) : reply('Bad', 503));
    const { run } = ask(connection);
    await time.settle();
    run.cancel();
    await time.pass(5_000);
    assert.equal(net.requests.filter(({ path }) => path === '/v1/responses').length, 1);
    connection.stop();
});

test('a large question of an open socket is cancelled the way it went, and its request is closed at its end', async () => {
    const { connection, socket } = await opened({ limits: { max_text_frame: 100 } });
    const stream = makeStream();
    net.answer = ({ path }) => (path.endsWith('/cancel') ? reply({}) : stream.response);
    const { run } = ask(connection, { input: 'x'.repeat(200) });
    await time.settle();
    const { signal } = net.requests[0];
    stream.say({ type: 'response.created', response: { id: 'r' }, sequence_number: 0 });
    await time.settle();
    socket.news();
    run.cancel();
    assert.deepEqual([net.requests.at(-1).path, socket.news(), signal.aborted], ['/v1/responses/r/cancel', [], false]);
    stream.say({ type: 'response.completed', response: { id: 'r', status: 'cancelled' }, sequence_number: 1 });
    await time.settle();
    assert.deepEqual([run.done, signal.aborted], [true, true]);
    connection.stop();
});

test('over HTTP: the request, its events, a stream that is cut, and the rest of it', async () => {
    const { connection } = await blocked();
    const streams = [makeStream(), makeStream()];
    net.answer = ({ path }) => (path === '/v1/models' ? reply({}) : streams[net.requests.filter((one) => one.path.startsWith('/v1/resp')).length - 1].response);
    const { news, run } = ask(connection, { input: 'Hi' });
    const [{ path, method, headers, body }] = net.requests;
    assert.deepEqual([path, method, headers], ['/v1/responses', 'POST', { 'content-type': 'application/json', 'idempotency-key': 'e_one' }]);
    assert.deepEqual(body, { input: 'Hi', store: true, stream: true, return_progress: true });
    assert.deepEqual(news(), [{ kind: 'waiting' }]);
    await time.settle();
    streams[0].say({ type: 'response.created', response: { id: 'r' }, sequence_number: 0 });
    streams[0].say({ type: 'response.output_text.delta', delta: 'a', sequence_number: 4 });
    await time.settle();
    assert.deepEqual(news(), [{ kind: 'started', responseId: 'r' }, { kind: 'text', delta: 'a' }]);
    streams[0].cut();
    await time.settle();
    assert.deepEqual([news(), net.requests.length], [[{ kind: 'lost' }], 2], 'and it is asked whether the server lives');
    await time.pass(499);
    assert.equal(net.requests.length, 2);
    await time.pass(1);
    const rest = net.requests[2];
    assert.deepEqual([rest.path, rest.method, rest.cache], ['/v1/responses/r?stream=true&starting_after=4', 'GET', 'no-store']);
    assert.deepEqual(news(), [{ kind: 'resumed' }]);
    streams[1].say({ type: 'response.completed', response: { id: 'r', status: 'completed' }, sequence_number: 5 });
    await time.settle();
    assert.deepEqual([news()[0].status, run.done, run.abort], ['completed', true, null]);
    await time.pass(60_000);
    assert.equal(net.requests.filter((one) => one.path.startsWith('/v1/resp')).length, 2, 'what has ended is not asked for');
    connection.stop();
});

test('over HTTP: which refusals are tried again, and which are the end', async () => {
    const tried = [[503, { code: 'model_loading' }], [503, { code: 'server_draining' }], [502, null], [503, null], [504, null], [409, { code: 'idempotency_key_reused' }], [0, null]];
    for (const [status, error] of tried) {
        const { connection } = await blocked();
        net.answer = ({ path }) => (path === '/v1/models' ? reply({}) : status ? reply(error ? { error } : 'Bad', status) : away());
        const { run, news } = ask(connection, {}, 'k');
        await time.settle();
        const label = `${status} ${error?.code}`;
        assert.deepEqual([run.done, run.sent], [false, error?.code === 'idempotency_key_reused' || !status], label);
        assert.deepEqual([...new Set(news().map(({ kind }) => kind))], ['waiting'], label);
        await time.pass(500);
        const asked = net.requests.filter(({ path }) => path === '/v1/responses');
        assert.deepEqual([asked.length, run.tries], [2, 2], label);
        assert.equal(asked[0].headers['idempotency-key'] === asked[1].headers['idempotency-key'], error?.code !== 'idempotency_key_reused', label);
        await time.pass(999);
        assert.equal(net.requests.filter(({ path }) => path === '/v1/responses').length, 2, 'later and later');
        connection.stop();
        run.emit({ kind: 'end', status: 'cancelled' });
    }
    for (const [status, error, code, message] of [[400, { code: 'bad', message: 'No.' }, 'bad', 'No.'], [500, { type: 'server_error' }, 'server_error', ''], [418, null, 'http_418', '']]) {
        const { connection } = await blocked();
        net.answer = () => reply(error ? { error } : 'Bad', status);
        const { news } = ask(connection);
        await time.settle();
        assert.deepEqual(news().at(-1), { kind: 'end', status: 'failed', error: { code, message, status } });
        connection.stop();
    }
});

test('over HTTP: cancelling with an id, and before there is one', async () => {
    const { connection } = await blocked();
    const stream = makeStream();
    net.answer = ({ path }) => (path.endsWith('/cancel') ? reply({}) : stream.response);
    const { run, news } = ask(connection);
    await time.settle();
    run.cancel();
    assert.equal(news().at(-1).status, 'cancelled');
    stream.say({ type: 'response.created', response: { id: 'r' }, sequence_number: 0 });
    await time.settle();
    assert.deepEqual([net.requests.at(-1).path, net.requests.at(-1).method], ['/v1/responses/r/cancel', 'POST'], 'as soon as its name is known');
    connection.stop();
    const other = await blocked();
    const second = makeStream();
    net.answer = ({ path }) => (path.endsWith('/cancel') ? reply({}) : second.response);
    const named = ask(other.connection);
    await time.settle();
    second.say({ type: 'response.created', response: { id: 'q' }, sequence_number: 0 });
    await time.settle();
    const { signal } = net.requests.at(-1);
    named.run.cancel();
    assert.equal(net.requests.at(-1).path, '/v1/responses/q/cancel');
    assert.equal(named.run.done, false, 'the server may still say how it ended');
    await time.pass(4_000);
    assert.deepEqual([named.news().at(-1).status, signal.aborted], ['cancelled', true]);
    other.connection.stop();
});

test('requests of the page itself carry the key and what they are given', async () => {
    const { connection } = await opened();
    net.answer = () => reply({});
    await connection.fetch('v1/files', { method: 'POST', headers: { 'X-A': 'b' } });
    connection.key = 'k';
    await connection.fetch('v1/files');
    const [first, second] = net.requests;
    assert.deepEqual([first.path, first.method, first.headers, first.credentials], ['/v1/files', 'POST', { 'x-a': 'b' }, 'same-origin']);
    assert.deepEqual([second.headers, second.method], [{ authorization: 'Bearer k' }, 'GET']);
    connection.stop();
});
