/**
 * The framing of WebSockets: the 301 cases of Autobahn's groups 1 to 7, 9 and 10, under its
 * numbers, against an echo behind the server's own sockets' layer (net_echo). Groups 12 and 13 are
 * about compression, which is off. Group 9 sends less than there.
 *
 *     node ws_conformance.mjs NET_ECHO [NUMBER]       all, or those whose number begins so
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { parseReply, rawSocket, startServer } from '../client.mjs';

const PATIENCE = 60000;
const AT_ONCE = 16;

/** What libwebsockets 4.1.6 does otherwise. It answers one ping of those that wait, which RFC 6455
 * (5.5.3) allows; the cases ask for all. */
const LIBRARY = { '2.10': 'one pong for pings in a row', '2.11': 'one pong for pings in a row' };

const server = await startServer();
const TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10, MORE = 0;
const bytes = (hex) => Buffer.from(hex.replaceAll(' ', ''), 'hex');
const text = (data) => ['text', Buffer.from(data)];
const binary = (data) => ['binary', Buffer.from(data)];
const pong = (data) => ['pong', Buffer.from(data)];

function frame(opcode, payload = '', { fin = true, rsv = 0 } = {}) {
    const data = Buffer.from(payload);
    const n = data.length;
    const head = Buffer.alloc(n < 126 ? 2 : n < 65536 ? 4 : 10);
    head[0] = (fin ? 0x80 : 0) | (rsv << 4) | opcode;
    head[1] = 0x80 | (n < 126 ? n : n < 65536 ? 126 : 127);
    if (head.length === 4) head.writeUInt16BE(n, 2);
    if (head.length === 10) head.writeBigUInt64BE(BigInt(n), 2);
    const mask = randomBytes(4);
    const out = Buffer.allocUnsafe(n);
    for (let i = 0; i < n; i++) out[i] = data[i] ^ mask[i & 3];
    return Buffer.concat([head, mask, out]);
}

const closeBody = (code, reason = '') => Buffer.concat([Buffer.from([code >> 8, code & 255]), Buffer.from(reason)]);

/** A message in frames of `size` bytes. */
function fragments(opcode, data, size) {
    const out = [];
    for (let at = 0; at < data.length; at += size) {
        out.push(frame(at ? MORE : opcode, data.subarray(at, at + size), { fin: at + size >= data.length }));
    }
    return Buffer.concat(out);
}

class Client {
    static async open() {
        const client = new Client();
        const key = randomBytes(16).toString('base64');
        const raw = rawSocket(server);
        client.raw = raw;
        client.events = []; // [kind, data], as they came
        client.closeCode = null; // of the server's close frame
        client.unsound = null; // what the server did wrong in framing
        raw.socket.setNoDelay(true);
        raw.send(`GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\n`
            + 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: parley.v1\r\n\r\n');
        await raw.until((d) => d.includes('\r\n\r\n'), PATIENCE);
        const reply = parseReply(raw.data);
        assert.equal(reply?.status, 101);
        const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
        assert.equal(reply.headers['sec-websocket-accept'], accept);
        raw.data = raw.data.subarray(reply.used);
        return client;
    }

    /** Takes whole frames out of what came; the server's must be unmasked, plain and whole. */
    digest() {
        for (let d = this.raw.data; d.length >= 2; d = this.raw.data) {
            const size = d[1] & 127;
            const at = size < 126 ? 2 : size === 126 ? 4 : 10;
            if (d.length < at) return;
            const n = size < 126 ? size : size === 126 ? d.readUInt16BE(2) : Number(d.readBigUInt64BE(2));
            if (d.length < at + n) return;
            const data = d.subarray(at, at + n);
            this.raw.data = d.subarray(at + n);
            const opcode = d[0] & 15;
            if (d[1] & 0x80 || d[0] & 0x70 || this.closeCode !== null) this.unsound = d.subarray(0, at).toString('hex');
            if (opcode === TEXT && d[0] & 0x80) {
                const kind = String.fromCharCode(data[0]);
                this.events.push(kind === 'T' ? text(data.subarray(1)) : binary(bytes(data.subarray(1).toString())));
            } else if (opcode === PONG) this.events.push(pong(data));
            else if (opcode === CLOSE) {
                this.closeCode = n >= 2 ? data.readUInt16BE(0) : 1005;
                this.raw.socket.end(frame(CLOSE, data.subarray(0, 2))); // the library waits 5 s for an end, if it was at odds with the frame's head
            } else this.unsound = d.subarray(0, at).toString('hex');
        }
    }

    /** Waits for the test to hold; false if the connection ends or time is up. */
    async until(test, ms = PATIENCE) {
        const end = Date.now() + ms;
        for (;;) {
            this.digest();
            if (test()) return true;
            if (this.raw.closed || Date.now() >= end) return false;
            const seen = this.raw.data.length;
            await this.raw.until((d) => d.length > seen, end - Date.now());
        }
    }

    /** Sends frames, in pieces of `chop` bytes. */
    async send(data, chop = 0) {
        const all = Array.isArray(data) ? Buffer.concat(data) : data;
        if (!chop) return this.raw.send(all);
        for (let at = 0; at < all.length && !this.raw.closed; at += chop) {
            this.raw.send(all.subarray(at, at + chop));
            if (at % (64 * chop) === 0) await new Promise(setImmediate);
        }
    }

    async ended() {
        await this.until(() => false);
        assert.ok(this.raw.closed, 'the server ends the connection');
        assert.equal(this.unsound, null, 'frames of the server');
    }

    /** The server has answered with exactly these, and closes as asked. */
    async answers(...expected) {
        await this.until(() => this.events.length >= expected.length || this.closeCode !== null);
        this.raw.send(frame(CLOSE, closeBody(1000)));
        await this.ended();
        assert.deepEqual(this.events, expected);
        assert.equal(this.closeCode, 1000);
    }

    /** The server ends the connection, with one of these codes or without a word, after these
     * answers or some of the first of them. */
    async fails(codes, ...before) {
        await this.ended();
        assert.deepEqual(this.events, before.slice(0, this.events.length));
        assert.ok([codes, null].flat().includes(this.closeCode), `closed with ${this.closeCode}, not ${codes}`);
    }

    /** The server answers a close frame with one of these codes. */
    async closes(...codes) {
        await this.ended();
        assert.deepEqual(this.events, []);
        assert.ok(codes.includes(this.closeCode), `closed with ${this.closeCode}, not ${codes}`);
    }
}

const cases = new Map();
const add = (number, run) => {
    assert.ok(!cases.has(number), number);
    cases.set(number, run);
};
/** Sends, in pieces or not, and expects answers or a failure. */
const echoes = (number, data, chop, ...expected) => add(number, async (c) => {
    await c.send(data, chop);
    await c.answers(...expected);
});
const refused = (number, codes, data, chop = 0, ...before) => add(number, async (c) => {
    await c.send(data, chop);
    await c.fails(codes, ...before);
});

/* 1: lengths */
[0, 125, 126, 127, 128, 65535, 65536, 65536].forEach((n, i) => {
    const stars = Buffer.alloc(n, '*');
    const high = Buffer.alloc(n, 0xfe);
    echoes(`1.1.${i + 1}`, frame(TEXT, stars), i === 7 ? 997 : 0, text(stars));
    echoes(`1.2.${i + 1}`, frame(BINARY, high), i === 7 ? 997 : 0, binary(high));
});

/* 2: pings */
const OCTETS = bytes('00 ff fe fd fc fb 00 ff');
const PING125 = Buffer.alloc(125, 0xfe);
const PINGS = Array.from({ length: 10 }, (_, i) => `payload-${i}`);
echoes('2.1', frame(PING), 0, pong(''));
echoes('2.2', frame(PING, 'Hello, world!'), 0, pong('Hello, world!'));
echoes('2.3', frame(PING, OCTETS), 0, pong(OCTETS));
echoes('2.4', frame(PING, PING125), 0, pong(PING125));
refused('2.5', 1002, frame(PING, Buffer.alloc(126, 0xfe)));
echoes('2.6', frame(PING, PING125), 1, pong(PING125));
echoes('2.7', frame(PONG), 0);
echoes('2.8', frame(PONG, 'unsolicited pong payload'), 0);
echoes('2.9', [frame(PONG, 'unsolicited pong payload'), frame(PING, 'ping payload')], 0, pong('ping payload'));
for (const [number, chop] of [['2.10', 0], ['2.11', 1]]) {
    add(number, async (c) => {
        await c.send(PINGS.map((payload) => frame(PING, payload)), chop);
        await c.until(() => c.events.length > 0);
        c.raw.send(frame(CLOSE, closeBody(1000)));
        await c.ended();
        const own = c.events.map(([kind, data]) => (kind === 'pong' ? PINGS.indexOf(data.toString()) : -1));
        assert.ok(own.length > 0 && own.every((at, i) => at >= 0 && (i === 0 || at > own[i - 1])), 'pongs of these pings, in order');
        assert.equal(c.closeCode, 1000);
    });
}

/* 3: reserved bits */
const HELLO = 'Hello, world!';
refused('3.1', 1002, frame(TEXT, HELLO, { rsv: 1 }));
refused('3.2', 1002, [frame(TEXT, HELLO), frame(TEXT, HELLO, { rsv: 2 }), frame(PING)], 0, text(HELLO));
add('3.3', async (c) => {
    c.raw.send(frame(TEXT, HELLO));
    await c.until(() => c.events.length > 0);
    c.raw.send(frame(TEXT, HELLO, { rsv: 3 }));
    c.raw.send(frame(PING));
    await c.fails(1002, text(HELLO));
    assert.equal(c.events.length, 1);
});
refused('3.4', 1002, [frame(TEXT, HELLO), frame(TEXT, HELLO, { rsv: 4 }), frame(PING)], 1, text(HELLO));
refused('3.5', 1002, frame(BINARY, OCTETS, { rsv: 5 }));
refused('3.6', 1002, frame(PING, HELLO, { rsv: 6 }));
refused('3.7', 1002, frame(CLOSE, '', { rsv: 7 }));

/* 4: reserved opcodes */
[3, 11].forEach((first, i) => {
    const group = `4.${i + 1}`;
    refused(`${group}.1`, 1002, frame(first));
    refused(`${group}.2`, 1002, frame(first + 1, 'reserved opcode payload'));
    refused(`${group}.3`, 1002, [frame(TEXT, HELLO), frame(first + 2), frame(PING)], 0, text(HELLO));
    refused(`${group}.4`, 1002, [frame(TEXT, HELLO), frame(first + 3, HELLO), frame(PING)], 0, text(HELLO));
    refused(`${group}.5`, 1002, [frame(TEXT, HELLO), frame(first + 4, HELLO), frame(PING)], 1, text(HELLO));
});

/* 5: fragments */
const open = { fin: false };
const START = frame.bind(null, TEXT, 'fragment1', open);
const LAST = frame.bind(null, MORE, 'fragment2');
const BOTH = text('fragment1fragment2');
/** The same frames sent whole, frame by frame, and byte by byte. */
function threeWays(first, frames, then) {
    add(`5.${first}`, async (c) => (await c.send(frames.map((f) => f())), then(c)));
    add(`5.${first + 1}`, async (c) => {
        for (const f of frames) await c.send(f(), 4096);
        return then(c);
    });
    add(`5.${first + 2}`, async (c) => (await c.send(frames.map((f) => f()), 1), then(c)));
}
refused('5.1', 1002, [frame(PING, 'fragment1', open), LAST()]);
refused('5.2', 1002, [frame(PONG, 'fragment1', open), LAST()]);
threeWays(3, [START, LAST], (c) => c.answers(BOTH));
threeWays(6, [START, () => frame(PING, 'ping payload'), LAST], (c) => c.answers(pong('ping payload'), BOTH));
for (const [first, fin] of [[9, true], [12, false]]) {
    threeWays(first, [() => frame(MORE, 'non-continuation payload', { fin }), () => frame(TEXT, HELLO)], (c) => c.fails(1002));
}
refused('5.15', 1002, [START(), LAST(), frame(MORE, 'fragment3', open), frame(TEXT, 'fragment4')], 0, BOTH);
for (const [number, fin] of [['5.16', false], ['5.17', true]]) {
    const once = [frame(MORE, 'fragment1', { fin }), frame(TEXT, 'fragment2', open), frame(MORE, 'fragment3')];
    refused(number, 1002, [...once, ...once]);
}
refused('5.18', 1002, [START(), frame(TEXT, 'fragment2')]);
for (const [number, chop] of [['5.19', 0], ['5.20', 4096]]) {
    add(number, async (c) => {
        await c.send([START(), frame(MORE, 'fragment2', open), frame(PING, 'pongme 1!')], chop);
        assert.ok(await c.until(() => c.events.length > 0), 'a pong between the fragments');
        await c.send([frame(MORE, 'fragment3', open), frame(MORE, 'fragment4', open), frame(PING, 'pongme 2!'), frame(MORE, 'fragment5')], chop);
        await c.answers(pong('pongme 1!'), pong('pongme 2!'), text('fragment1fragment2fragment3fragment4fragment5'));
    });
}

/* 6: UTF-8 */
const KOSME = bytes('ce ba e1 bd b9 cf 83 ce bc ce b5');
const UMLAUTS = Buffer.from('Hello-µ@ßöäüàá-UTF-8!!');
const SURROGATE = Buffer.concat([KOSME, bytes('ed a0 80'), Buffer.from('edited')]);
const TOO_HIGH = Buffer.concat([KOSME, bytes('f4 90 80 80'), Buffer.from('edited')]);
echoes('6.1.1', frame(TEXT), 0, text(''));
echoes('6.1.2', [frame(TEXT, '', open), frame(MORE, '', open), frame(MORE)], 0, text(''));
echoes('6.1.3', [frame(TEXT, '', open), frame(MORE, 'middle frame payload', open), frame(MORE)], 0, text('middle frame payload'));
echoes('6.2.1', frame(TEXT, UMLAUTS), 0, text(UMLAUTS));
echoes('6.2.2', fragments(TEXT, UMLAUTS, Buffer.byteLength('Hello-µ@ßöä')), 0, text(UMLAUTS));
echoes('6.2.3', fragments(TEXT, UMLAUTS, 1), 0, text(UMLAUTS));
echoes('6.2.4', fragments(TEXT, KOSME, 1), 0, text(KOSME));
refused('6.3.1', 1007, frame(TEXT, SURROGATE));
refused('6.3.2', 1007, fragments(TEXT, SURROGATE, 1));
/* The connection fails at the byte that makes the text invalid, or at the end of its frame. */
for (const [number, cuts] of [['6.4.1', [11, 15]], ['6.4.2', [12, 13]]]) {
    add(number, async (c) => {
        c.raw.send(frame(TEXT, TOO_HIGH.subarray(0, cuts[0]), open));
        c.raw.send(frame(PING)); // its pong tells that the frame was read, and nothing was wrong with it
        await c.until(() => c.events.length > 0);
        c.raw.send(frame(MORE, TOO_HIGH.subarray(...cuts), open));
        await c.fails(1007, pong(''));
    });
}
for (const [number, cuts] of [['6.4.3', [11, 15]], ['6.4.4', [12, 13]]]) {
    add(number, async (c) => {
        const whole = frame(TEXT, TOO_HIGH);
        const head = whole.length - TOO_HIGH.length;
        c.raw.send(whole.subarray(0, head + cuts[0]));
        await c.until(() => c.closeCode !== null, 100);
        assert.equal(c.closeCode, null);
        c.raw.send(whole.subarray(head + cuts[0], head + cuts[1]));
        await c.until(() => c.closeCode !== null, 100);
        c.raw.send(whole.subarray(head + cuts[1]));
        await c.fails(1007);
    });
}

const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const point = (code) => Buffer.from(String.fromCodePoint(code)).toString('hex');
const CUT = ['c0', 'e080', 'f08080', 'f8808080', 'fc80808080', 'df', 'efbf', 'f7bfbf', 'fbbfbfbf', 'fdbfbfbfbf'];
const lonely = (from, to) => range(from, to - 1).map((byte) => `${byte.toString(16)}20`).join('');
/** 6.5 to 6.23: sequences in hexadecimal; those in front of the bar are valid. Where both kinds
 * mix, + marks the valid ones. */
const SEQUENCES = [
    ['+hello$world', '+hello¢world', '+hello€world', '+hello\u{24b62}world'].map((s) => `+${Buffer.from(s.slice(1)).toString('hex')}`)
        .concat(`+${KOSME.toString('hex')}`),
    range(1, 11).map((n) => `${[2, 5, 7, 9, 11].includes(n) ? '+' : ''}${KOSME.subarray(0, n).toString('hex')}`),
    ['+00', '+c280', '+e0a080', '+f0908080'],
    ['f888808080', 'fc8480808080'],
    ['+7f', '+dfbf', '+efbfbf', '+f48fbfbf'],
    ['f7bfbfbf', 'fbbfbfbfbf', 'fdbfbfbfbfbf'],
    ['+ed9fbf', '+ee8080', '+efbfbd', '+f48fbfbf', 'f4908080'],
    ['80', 'bf', '80bf', '80bf80', '80bf80bf', '80bf80bf80', '80bf80bf80bf', range(0x80, 0xbe).map((b) => b.toString(16)).join('')],
    [lonely(0xc0, 0xdf), lonely(0xe0, 0xef), lonely(0xf0, 0xf7), lonely(0xf8, 0xfb), lonely(0xfc, 0xfd)],
    CUT,
    [CUT.join('')],
    ['fe', 'ff', 'fefeffff'],
    ['c0af', 'e080af', 'f08080af', 'f8808080af', 'fc80808080af'],
    ['c1bf', 'e09fbf', 'f08fbfbf', 'f887bfbfbf', 'fc83bfbfbfbf'],
    ['c080', 'e08080', 'f0808080', 'f880808080', 'fc8080808080'],
    ['eda080', 'edadbf', 'edae80', 'edafbf', 'edb080', 'edbe80', 'edbfbf'],
    ['eda080', 'edadbf', 'edae80', 'edafbf'].flatMap((high) => [`${high}edb080`, `${high}edbfbf`]),
    ['+efbfbe', '+efbfbf', ...range(1, 16).flatMap((plane) => [0xfffe, 0xffff].map((low) => `+${point(plane * 0x10000 + low)}`))],
    range(0xfff9, 0xffff).map((code) => `+${point(code)}`),
];
SEQUENCES.forEach((list, i) => list.forEach((entry, k) => {
    const number = `6.${i + 5}.${k + 1}`;
    const data = bytes(entry.replace('+', ''));
    if (entry.startsWith('+')) echoes(number, frame(TEXT, data), 0, text(data));
    else refused(number, 1007, frame(TEXT, data));
}));

/* 7: closing */
echoes('7.1.1', frame(TEXT, 'Hello World!'), 0, text('Hello World!'));
/** Closes with `data`, then sends more, which must have no answer. */
const closes = (number, codes, data, after = []) => add(number, async (c) => {
    c.raw.send(Buffer.concat([data, ...after]));
    await c.closes(...[codes].flat());
});
const NORMAL = frame(CLOSE, closeBody(1000));
closes('7.1.2', 1000, NORMAL, [frame(CLOSE)]);
closes('7.1.3', 1000, NORMAL, [frame(PING)]);
closes('7.1.4', 1000, NORMAL, [frame(TEXT, 'Hello World!')]);
closes('7.1.5', 1000, Buffer.concat([START(), NORMAL]), [LAST()]);
const LARGE = Buffer.alloc(256 << 10, 'BAsd7&jh23');
refused('7.1.6', 1000, [frame(TEXT, LARGE), frame(TEXT, 'Hello World!'), NORMAL, frame(PING)], 0, text(LARGE), text('Hello World!'));
closes('7.3.1', [1000, 1005], frame(CLOSE));
closes('7.3.2', [1002, 1005, null], frame(CLOSE, 'a'));
closes('7.3.3', 1000, NORMAL);
closes('7.3.4', 1000, frame(CLOSE, closeBody(1000, 'Hello World!')));
closes('7.3.5', 1000, frame(CLOSE, closeBody(1000, '*'.repeat(123))));
closes('7.3.6', [1002, null], frame(CLOSE, closeBody(1000, '*'.repeat(124))));
add('7.5.1', async (c) => {
    c.raw.send(frame(CLOSE, Buffer.concat([closeBody(1000), SURROGATE])));
    await c.fails([1002, 1007, null]);
});
[1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999].forEach((code, i) => {
    closes(`7.7.${i + 1}`, [1000, code], frame(CLOSE, closeBody(code)));
});
[0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999].forEach((code, i) => closes(`7.9.${i + 1}`, [1002, null], frame(CLOSE, closeBody(code))));
[5000, 65535].forEach((code, i) => closes(`7.13.${i + 1}`, [1000, 1002, code, null], frame(CLOSE, closeBody(code))));

/* 9: size and number, a sixteenth of what Autobahn sends, and a tenth of the messages */
const KINDS = [[TEXT, text, '*'], [BINARY, binary, 0xfe]];
KINDS.forEach(([opcode, kind, fill], i) => {
    [4, 16, 64, 256, 512, 1024].forEach((kib, k) => {
        const data = Buffer.alloc(kib << 10, fill);
        echoes(`9.${1 + i}.${k + 1}`, frame(opcode, data), 0, kind(data));
    });
    [64, 256, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10].forEach((size, k) => {
        const data = Buffer.alloc(256 << 10, fill);
        echoes(`9.${3 + i}.${k + 1}`, fragments(opcode, data, size), 0, kind(data));
    });
    [64, 128, 256, 512, 1024, 2048].forEach((chop, k) => {
        const data = Buffer.alloc(64 << 10, fill);
        echoes(`9.${5 + i}.${k + 1}`, frame(opcode, data), chop, kind(data));
    });
    [0, 16, 64, 256, 1024, 4096].forEach((size, k) => {
        const data = Buffer.alloc(size, fill);
        add(`9.${7 + i}.${k + 1}`, async (c) => {
            for (let n = 0; n < 100; n++) {
                c.raw.send(frame(opcode, data));
                assert.ok(await c.until(() => c.events.length > n));
            }
            await c.answers(...Array.from({ length: 100 }, () => kind(data)));
        });
    });
});

/* 10: frames of 1300 bytes */
const STARS = Buffer.alloc(65536, '*');
echoes('10.1.1', fragments(TEXT, STARS, 1300), 0, text(STARS));

async function runCase(number, run) {
    const client = await Client.open();
    try {
        await run(client);
        return true;
    } catch (error) {
        console.log(`FAIL ${number}: ${error.message.slice(0, 400)}`);
        return false;
    } finally {
        client.raw.socket.destroy();
    }
}

assert.equal(cases.size, 301);
const chosen = [...cases].filter(([number]) => number.startsWith(process.argv[3] ?? ''));
const count = chosen.length;
let passed = 0;
await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let next = chosen.shift(); next; next = chosen.shift()) {
        const isGood = await runCase(...next);
        passed += isGood;
    }
}));
const code = await server.stop();
console.log(`${passed} of ${count} cases as expected, ${Object.keys(LIBRARY).join(' and ')} as the library has them; the server ended with ${code}`);
process.exit(passed === count && code === 0 ? 0 : 1);
