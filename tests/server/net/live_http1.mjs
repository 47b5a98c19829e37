/**
 * HTTP/1.1 on the wire: the cases of h1spec (its names), with what comes behind a fragment too,
 * bodies in chunks, and requests that follow each other on one connection.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parseReply, rawSocket, runTests, sleep, startServer, takeProcessor, test } from '../client.mjs';

const server = await startServer(['--allow-host', 'example.com', '--max-body', '20000', '--header-timeout', '60']);
await server.ready();

const WAIT = 'wait';
const PATIENCE = 60000;
const HEAD = 'GET /health HTTP/1.1\r\nHost: example.com\r\n';
const TOKENIZE = 'POST /tokenize HTTP/1.1\r\nHost: example.com\r\nContent-Type: application/json\r\n';
const CHAT = 'POST /v1/chat/completions HTTP/1.1\r\nHost: example.com\r\nContent-Type: application/json\r\n';
const BODY = '{"content":"hello"}';
const chunk = (text) => `${text.length.toString(16)}\r\n${text}\r\n`;
const chunked = (text) => `${chunk(text)}0\r\n\r\n`;

const FRAGMENTS = [
    ['Fragmented method', 'G'],
    ['Fragmented URL 1', 'GET '],
    ['Fragmented URL 2', 'GET /health'],
    ['Fragmented URL 3', 'GET /health '],
    ['Fragmented HTTP version', 'GET /health HTTP'],
    ['Fragmented request line', 'GET /health HTTP/1.1'],
    ['Fragmented request line newline 1', 'GET /health HTTP/1.1\r'],
    ['Fragmented request line newline 2', 'GET /health HTTP/1.1\r\n'],
    ['Fragmented field name', 'GET /health HTTP/1.1\r\nHos'],
    ['Fragmented field value 1', 'GET /health HTTP/1.1\r\nHost:'],
    ['Fragmented field value 2', 'GET /health HTTP/1.1\r\nHost: '],
    ['Fragmented field value 3', 'GET /health HTTP/1.1\r\nHost: example.com'],
    ['Fragmented field value 4', 'GET /health HTTP/1.1\r\nHost: example.com\r'],
    ['Fragmented request', HEAD],
    ['Fragmented request termination', `${HEAD}\r`],
];

const WHOLE = [
    ['Request without HTTP version', 'GET /health \r\n\r\n', 400],
    ['Request with Expect header', `${HEAD}Expect: 100-continue\r\n\r\n`, 200],
    ['Valid GET request', `${HEAD}\r\n`, 200],
    ['Valid GET request with edge cases', 'GET /health HTTP/1.1\r\nhoSt:\texample.com \t\r\nempty:\r\n\r\n', 200],
    ['Invalid header characters', `${HEAD}X-Invalid[]: test\r\n\r\n`, 400],
    ['Missing Host header', 'GET /health HTTP/1.1\r\nContent-Length: 5\r\n\r\n', 400],
    ['Multiple Host headers', `${HEAD}Host: example.org\r\n\r\n`, 400],
    ['Overflowing negative Content-Length header', `${HEAD}Content-Length: -123456789123456789123456789\r\n\r\n`, 400],
    ['Negative Content-Length header', `${HEAD}Content-Length: -1234\r\n\r\n`, 400],
    ['Non-numeric Content-Length header', `${HEAD}Content-Length: abc\r\n\r\n`, 400],
    ['Empty header value', `${HEAD}X-Empty-Header: \r\n\r\n`, 200],
    ['Header containing invalid control character', `${HEAD}X-Bad-Control-Char: test\x07\r\n\r\n`, 400],
    ['Invalid HTTP version', 'GET /health HTTP/9.9\r\nHost: example.com\r\n\r\n', 505],
    ['Invalid prefix of request', 'Extra lineGET /health HTTP/1.1\r\nHost: example.com\r\n\r\n', 400],
    ['Invalid line ending', `${HEAD}\rSome-Header: Test\r\n\r\n`, 400],
    ['Valid POST request with body', `${TOKENIZE}Content-Length: ${BODY.length}\r\n\r\n${BODY}`, 200],
    ['Chunked Transfer-Encoding', `${TOKENIZE}Transfer-Encoding: chunked\r\n\r\n${chunked(BODY)}`, 200],
    ['Conflicting Transfer-Encoding and Content-Length', `${HEAD}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n`, 400],
];

/** Sends the pieces; the status of the reply, 0 if the server hangs up without one, WAIT if it says
 * nothing. */
async function status(pieces, ms = PATIENCE) {
    const raw = rawSocket(server);
    for (const piece of pieces) raw.send(Buffer.from(piece, 'latin1'));
    await raw.until((d) => parseReply(d) !== null, ms);
    const reply = parseReply(raw.data);
    raw.socket.destroy();
    return { status: reply ? reply.status : raw.closed ? 0 : WAIT, reply };
}

test('there are 33 cases', () => assert.equal(FRAGMENTS.length + WHOLE.length, 33));

test('what is not whole is waited for', async () => {
    await Promise.all(FRAGMENTS.map(async ([name, text]) => {
        const raw = rawSocket(server);
        raw.send(text);
        await raw.until((d) => d.length > 0, 300);
        assert.equal(raw.data.length, 0, name);
        assert.ok(!raw.closed, name);
        raw.send(`${HEAD}\r\n`.slice(text.length));
        await raw.until((d) => parseReply(d) !== null, PATIENCE);
        assert.equal(parseReply(raw.data)?.status, 200, name);
        raw.socket.destroy();
    }));
});

test('what is whole is answered', async () => {
    for (const [name, text, expected] of WHOLE) {
        assert.equal((await status([text])).status, expected, name);
    }
});

test('more heads that are malformed', async () => {
    const cases = [
        ['GET /health HTTP/1.11\r\nHost: example.com\r\n\r\n', 505],
        ['GET /health HTTP/2.0\r\nHost: example.com\r\n\r\n', 505],
        ['GET /health http/1.1\r\nHost: example.com\r\n\r\n', 505],
        [`${HEAD}User-Agent: a\x07b\r\n\r\n`, 400],
        [`${HEAD}Cookie: a\x7fb\r\n\r\n`, 400],
        [`${HEAD}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: a\x01b\r\n\r\n`, 400],
        ['GET /v1/responses HTTP/9.9\r\nHost: example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n', 505],
        ['GET /health HTTP/1.1\nHost: example.com\n\n', 400],
        [`${HEAD}A: b\n\r\n`, 400],
        [`${HEAD}A: b\r\n\n`, 400],
        [`${HEAD}A: b\r\n folded\r\n\r\n`, 400],
        [`${HEAD}A : b\r\n\r\n`, 400],
        [`${HEAD}: b\r\n\r\n`, 400],
        [`${HEAD}no colon\r\n\r\n`, 400],
        [`${HEAD}X-\xe4: b\r\n\r\n`, 400],
        [`${HEAD}A: \0\r\n\r\n`, 400],
        ['GET health HTTP/1.1\r\nHost: example.com\r\n\r\n', 400],
        ['GET  /health HTTP/1.1\r\nHost: example.com\r\n\r\n', 400],
        ['GET /health  HTTP/1.1\r\nHost: example.com\r\n\r\n', 400],
        ['G[T /health HTTP/1.1\r\nHost: example.com\r\n\r\n', 400],
        ['BREW /health HTTP/1.1\r\nHost: example.com\r\n\r\n', 501],
        ['CONNECT example.com:80 HTTP/1.1\r\nHost: example.com\r\n\r\n', 400],
        [`GET /health?${'x'.repeat(600)} HTTP/1.1\r\nHost: example.com\r\n\r\n`, 414],
        [`${HEAD}Cookie: ${'x'.repeat(8192)}\r\n\r\n`, 431],
        [`${HEAD}Cookie: ${'x'.repeat(8192)}`, 431],
        ['\x16\x03\x01\x02\x00\x01', 400],
        [`GET /v1/responses HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n`, 400],
        [`GET /v1/responses HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`, 400],
        [`${HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 501],
        [`${TOKENIZE}Transfer-Encoding: gzip, chunked\r\n\r\n`, 501],
        [`${TOKENIZE}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`, 501],
        [`${TOKENIZE}Transfer-Encoding: identity\r\n\r\n`, 501],
        [`${TOKENIZE}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${chunked(BODY)}`, 400],
        [`${TOKENIZE.replace('1.1', '1.0')}Transfer-Encoding: chunked\r\n\r\n${chunked(BODY)}`, 400],
    ];
    for (const [text, expected] of cases) {
        const { status: got, reply } = await status([text]);
        assert.equal(got, expected, text);
        assert.ok(JSON.parse(reply.body).error.message);
        assert.equal(reply.headers.connection, 'close');
    }
});

test('what follows a refused head is no request', async () => {
    const inner = `${HEAD}\r\n`;
    const length = `Content-Length: ${inner.length}\r\n`;
    const heads = [
        [`${TOKENIZE}Host: other.example\r\n${length}`, 400],
        [`POST /tokenize HTTP/1.1\r\n${length}`, 400],
        [`${TOKENIZE.replace('/tokenize', '/tokenize?a=%zz')}${length}`, 400],
        [`${TOKENIZE.replace('/tokenize', `/tokenize?${'x'.repeat(600)}`)}${length}`, 414],
        [`${TOKENIZE.replace('POST', 'BREW')}${length}`, 501],
        [`${TOKENIZE}Content-Length: 99999999999\r\n`, 413],
    ];
    for (const [head, expected] of heads) {
        const raw = rawSocket(server);
        raw.send(`${head}\r\n${inner}${inner}`);
        assert.ok(await raw.until(() => raw.closed, PATIENCE) || raw.closed, head);
        const reply = parseReply(raw.data);
        assert.equal(reply.status, expected, head);
        assert.equal(raw.data.length, reply.used, `one reply to ${head}`);
    }
});

test('a head that fills what a head may have without an end', async () => {
    const most = 8192;
    const start = `${HEAD}Cookie: `;
    const full = `${start}${'x'.repeat(most - start.length)}`;
    const raw = rawSocket(server);
    raw.send(full.slice(0, -1));
    await raw.until((d) => d.length > 0, 300);
    assert.equal(raw.data.length, 0, 'one byte less may still end');
    raw.send('x');
    await raw.until((d) => parseReply(d) !== null, PATIENCE);
    assert.equal(parseReply(raw.data)?.status, 431);
    raw.socket.destroy();
    assert.equal((await status([`${full.slice(0, -4)}\r\n\r\n`])).status, 200, 'one that ends with its last byte');
});

/** Sends the text on one connection, in one piece or cut in two; every reply that comes until there
 * are n. */
async function replies(text, n, cut = 0) {
    const raw = rawSocket(server);
    raw.socket.setNoDelay(true);
    const found = [];
    const all = (data) => {
        found.length = 0;
        for (let rest = data, reply = parseReply(rest); reply && found.length < n; reply = parseReply(rest)) {
            found.push(reply);
            rest = rest.subarray(reply.used);
        }
        return found.length === n;
    };
    raw.send(Buffer.from(text.slice(0, cut), 'latin1'));
    if (cut) await sleep(10);
    raw.send(Buffer.from(text.slice(cut), 'latin1'));
    await raw.until(all, PATIENCE);
    raw.socket.destroy();
    return found;
}

test('every head is read alike, whatever came before it', async () => {
    const good = `${HEAD}\r\n`;
    const first = [good, `${TOKENIZE}Content-Length: ${BODY.length}\r\n\r\n${BODY}`, `${TOKENIZE}Transfer-Encoding: chunked\r\n\r\n${chunked(BODY)}`,
        `${HEAD}Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n`, `\r\n\r\n${good}`, 'GET http://example.com/health HTTP/1.1\r\nHost: other.example\r\n\r\n'];
    for (const text of first) {
        assert.deepEqual((await replies(`${text}${good}`, 2)).map((r) => r.status), [200, 200], text);
        assert.deepEqual((await replies(`${text}${HEAD}X-Invalid[]: test\r\n\r\n`, 2)).map((r) => r.status), [200, 400], text);
        assert.deepEqual((await replies(`${text}${HEAD}X: ${'x'.repeat(9000)}`, 2)).map((r) => r.status), [200, 431], text);
    }
});

test('requests that follow each other, cut anywhere', async () => {
    const text = `${TOKENIZE}Content-Length: ${BODY.length}\r\n\r\n${BODY}GET /health HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n`;
    const cuts = Array.from({ length: text.length }, (_, i) => i);
    const tryCut = async (cut) => assert.deepEqual((await replies(text, 2, cut)).map((r) => r.status), [200, 200], `cut at ${cut}`);
    while (cuts.length > 0) await Promise.all(cuts.splice(0, 8).map(tryCut)); // fewer than the queue holds
});

test('much may be sent ahead: it waits outside', async () => {
    const n = 3000; // 135 KB
    const slow = JSON.stringify({ messages: [{ role: 'user', content: '!delay=100 !len=40' }] });
    const text = `${TOKENIZE.replace('/tokenize', '/v1/chat/completions')}Content-Length: ${slow.length}\r\n\r\n${slow}${`${HEAD}\r\n`.repeat(n)}`;
    const before = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))[1]);
    assert.deepEqual((await replies(text, n + 1)).map((r) => r.status), Array(n + 1).fill(200));
    const after = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))[1]);
    assert.ok(after - before < 20000, `${before} KiB, ${after} KiB`);
});

const CHUNKED = `${TOKENIZE}Transfer-Encoding: chunked\r\n`;

test('a body in chunks, cut anywhere', async () => {
    const body = `${chunk(BODY.slice(0, 7))}${chunk(BODY.slice(7)).replace('\r\n', ';name="value"\r\n')}000\r\nExpires: never\r\n\r\n`;
    const cuts = Array.from({ length: body.length + 1 }, (_, i) => i);
    const tryCut = async (cut) => {
        const raw = rawSocket(server);
        raw.socket.setNoDelay(true);
        raw.send(`${CHUNKED}\r\n${body.slice(0, cut)}`);
        await sleep(10);
        raw.send(body.slice(cut));
        await raw.until((d) => parseReply(d) !== null, PATIENCE);
        const reply = parseReply(raw.data);
        assert.equal(reply?.status, 200, `cut at ${cut}`);
        assert.equal(JSON.parse(reply.body).tokens.length, 5);
        raw.socket.destroy();
    };
    while (cuts.length > 0) await Promise.all(cuts.splice(0, 8).map(tryCut)); // fewer than the queue holds
});

test('chunks that are none', async () => {
    const cases = [
        ['x\r\n', 400], ['\r\n', 400], ['5\nhello\r\n', 400], ['-5\r\n', 400], ['+5\r\n', 400], ['0x5\r\nhello\r\n', 400], [' 5\r\n', 400],
        ['5 \r\n', 400], ['5\r\nhelloX', 400], ['5\r\nhello\n', 400], ['ffffffffffffffff\r\n', 400], [`5;${'x'.repeat(9000)}`, 400],
        [`0\r\n${'x: y\r\n'.repeat(3000)}`, 400], ['0\r\n\n', 400], ['0\r\n\rx', 400], ['5\r\x00', 400],
        [chunked('x'.repeat(20001)), 413], [chunked('{'), 400], ['0\r\n\r\n', 400],
        ['fffffffffffffff\r\n' + 'x'.repeat(30000), 413],
    ];
    for (const [body, expected] of cases) {
        const { status: got, reply } = await status([`${CHUNKED}\r\n${body}`]);
        assert.equal(got, expected, body.slice(0, 40));
        assert.ok(JSON.parse(reply.body).error.code);
    }
    assert.equal((await status([`${CHUNKED}\r\n${chunked(`{"content":"${'x'.repeat(19900)}"}`)}`])).status, 200);
});

test('Expect: 100-continue before chunks', async () => {
    const raw = rawSocket(server);
    raw.send(`${CHUNKED}Expect: 100-continue\r\n\r\n`);
    assert.ok(await raw.until((d) => d.includes('100 Continue\r\n\r\n')));
    raw.data = Buffer.alloc(0);
    raw.send(chunked(BODY));
    await raw.until((d) => parseReply(d) !== null, PATIENCE);
    assert.equal(parseReply(raw.data).status, 200);
    raw.socket.destroy();
});

test('time-outs: of a head, of chunks, but not of the answer', async () => {
    const hasty = await startServer(['--allow-host', 'example.com', '--body-timeout', '2', '--header-timeout', '2']);
    await hasty.ready();
    const silent = rawSocket(hasty);
    const later = rawSocket(hasty); // a head behind a request
    later.send(`${HEAD}\r\n${HEAD}`);
    const head = rawSocket(hasty);
    head.send('GET /health HTTP/1.1\r\nX: ');
    const drip = rawSocket(hasty);
    drip.send(`${CHUNKED}\r\n4000\r\n`);
    const timer = setInterval(() => [head, drip].forEach((raw) => raw.send('y')), 100);
    const slow = JSON.stringify({ messages: [{ role: 'user', content: '!delay=100 !len=120' }] }); // 3 s; between pieces of a body there may be 2
    const answer = rawSocket(hasty);
    answer.send(`${CHUNKED.replace('/tokenize', '/v1/chat/completions')}\r\n${chunked(slow)}`);
    assert.ok(await silent.untilClosed(PATIENCE));
    assert.ok(await later.untilClosed(PATIENCE));
    const first = parseReply(later.data);
    assert.equal(first?.status, 200);
    assert.equal(parseReply(later.data.subarray(first.used))?.status, 408);
    assert.ok(await head.untilClosed(PATIENCE));
    assert.equal(silent.data.length, 0);
    assert.equal(parseReply(head.data)?.status, 408);
    assert.match(parseReply(head.data).body.toString(), /header_timeout/);
    await drip.until((d) => parseReply(d) !== null, PATIENCE);
    assert.equal(parseReply(drip.data)?.status, 408);
    clearInterval(timer);
    drip.socket.destroy();
    await answer.until((d) => parseReply(d) !== null, PATIENCE);
    assert.equal(parseReply(answer.data)?.status, 200);
    assert.equal(await hasty.stop(), 0);
});

test('what came while the server had no processor is not late', async () => {
    const hasty = await startServer(['--allow-host', 'example.com', '--body-timeout', '1', '--header-timeout', '1']);
    await hasty.ready();
    const fresh = rawSocket(hasty);
    const head = rawSocket(hasty);
    const body = rawSocket(hasty);
    const chunks = chunked(BODY);
    head.send(HEAD);
    body.send(`${CHUNKED}Expect: 100-continue\r\n\r\n`);
    assert.ok(await body.until((d) => d.includes('100 Continue\r\n\r\n'))); // the others came before it
    body.data = Buffer.alloc(0);
    body.send(chunks.slice(0, 5));
    const crowd = await takeProcessor(hasty, 2000, () => { // longer than a head and a body may take
        fresh.send(`${HEAD}\r\n`);
        head.send('\r\n');
        body.send(chunks.slice(5));
    });
    for (const [name, raw] of Object.entries({ fresh, head, body })) {
        await raw.until((d) => parseReply(d) !== null, PATIENCE);
        assert.equal(parseReply(raw.data)?.status, 200, name);
        raw.socket.destroy();
    }
    crowd.forEach((raw) => raw.socket.destroy());
    assert.equal(await hasty.stop(), 0);
});

test('a query is cut before it is decoded, and a bad escape is 400', async () => {
    for (const [query, expected] of [['a=%zz', 400], ['a=%', 400], ['a=%0a', 400], ['a=%41', 200], ['stream=%74rue', 200]]) {
        assert.equal((await status([`GET /health?${query} HTTP/1.1\r\nHost: example.com\r\n\r\n`])).status, expected, query);
    }
    const slots = async (query) => (await status([`GET /slots?${query} HTTP/1.1\r\nHost: example.com\r\n\r\n`])).status;
    const busy = Array.from({ length: 4 }, () => {
        const raw = rawSocket(server);
        const body = JSON.stringify({ messages: [{ role: 'user', content: '!len=4000 !delay=50' }] });
        raw.send(`${CHAT}Content-Length: ${body.length}\r\n\r\n${body}`);
        return raw;
    });
    while ((await slots('fail_on_no_slot=1')) !== 503) await sleep(20);
    for (const query of ['xfail_on_no_slot=1', 'a=1%26fail_on_no_slot=1', 'fail_on_no_slot=10']) assert.equal(await slots(query), 200, query);
    assert.equal(await slots('a=b&fail%5fon_no_slot=1'), 503);
    for (const raw of busy) raw.socket.destroy();
});

test('a client that closes its side after the request gets its reply', async () => {
    const half = async (text) => {
        const raw = rawSocket(server);
        raw.socket.end(text);
        await raw.until((d) => parseReply(d.subarray(d.indexOf('HTTP/1.1 100') === 0 ? 25 : 0)) !== null, PATIENCE);
        const interim = raw.data.indexOf('HTTP/1.1 100 Continue\r\n\r\n') === 0;
        return { ...parseReply(raw.data.subarray(interim ? 25 : 0)), interim };
    };
    const ask = (content, more = {}) => {
        const body = JSON.stringify({ messages: [{ role: 'user', content }], ...more });
        return `${CHAT}Content-Length: ${body.length}\r\n\r\n${body}`;
    };
    assert.equal((await half(`${HEAD}\r\n`)).status, 200);
    assert.equal((await half('GET /nothing HTTP/1.1\r\nHost: example.com\r\n\r\n')).status, 404);
    assert.equal((await half('GET /health HTTP/9.9\r\n\r\n')).status, 505);
    assert.equal((await half(ask('hello'))).status, 200);
    const slow = await half(ask('!len=100 !delay=60')); // long enough that the server asks whether it is there
    assert.equal(slow.status, 200);
    assert.ok(slow.interim, 'an interim response in front');
    const stream = await half(ask('!len=100 !delay=60', { stream: true }));
    assert.ok(stream.body.includes('data: [DONE]'));
});

test('a client that leaves is noticed while nothing is read', async () => {
    const running = async () => JSON.parse((await status(['GET /v1/status HTTP/1.1\r\nHost: example.com\r\n\r\n'])).reply.body).queue.running;
    for (const stream of [false, true]) {
        const raw = rawSocket(server);
        const body = JSON.stringify({ messages: [{ role: 'user', content: '!len=4000 !delay=500' }], stream });
        raw.send(`${CHAT}Content-Length: ${body.length}\r\n\r\n${body}`);
        while ((await running()) === 0) await sleep(20);
        raw.socket.destroy();
        const end = Date.now() + 20000;
        while ((await running()) > 0) {
            assert.ok(Date.now() < end, `${stream}: still running`);
            await sleep(50);
        }
    }
});

test('the server ends', async () => assert.equal(await server.stop(), 0));

await runTests();
