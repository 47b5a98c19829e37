/**
 * What the live tests need: starts the server double, speaks raw HTTP and WebSocket over plain
 * sockets, checks. Node built-ins only.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import net from 'node:net';

export const PROGRAM = process.argv[2];
/** With a sanitizer everything takes several times as long; what is only more of the same is done less often. */
export const IS_SANITIZED = /\/[at]san\//.test(PROGRAM);

/**
 * Starts the program; resolves when it listens. `stop()` resolves with the exit code. `wrapper`: a
 * command that runs what follows it, such as one that sets a limit first.
 */
export async function startServer(args = [], env = {}, wrapper = []) {
    const [program, ...words] = [...wrapper, PROGRAM, ...args];
    const child = spawn(program, words, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const server = { child, port: 0, out: '', err: '', exited: null };
    server.exited = new Promise((resolve) => child.on('exit', (code, signal) => resolve(code ?? signal)));
    child.stderr.on('data', (data) => (server.err += data));
    await new Promise((resolve, reject) => {
        child.stdout.on('data', (data) => {
            server.out += data;
            const match = /^(?:port |Parley is ready: http:\/\/[^/]*:)(\d+)/m.exec(server.out);
            if (match) {
                server.port = Number(match[1]);
                resolve();
            }
        });
        child.on('exit', () => reject(new Error(`the server ended: ${server.err}`)));
    });
    server.ready = async () => {
        for (let i = 0; i < 1000; i++) {
            if ((await request(server, { path: '/health' })).status === 200) return;
            await sleep(10);
        }
        throw new Error('the server does not become ready');
    };
    server.stop = async () => {
        child.kill('SIGTERM');
        const code = await server.exited;
        assert.ok(!/Sanitizer|runtime error/.test(server.err), server.err.slice(-4000));
        return code;
    };
    return server;
}

/** Numbers from 0 up to 1, the same ones for a seed (mulberry32). */
export function makeRandom(seed) {
    let state = seed;
    return () => {
        state = (state + 0x6d2b79f5) | 0;
        let t = Math.imul(state ^ (state >>> 15), 1 | state);
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
        return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A plain socket that gathers what it receives. */
export function rawSocket(server) {
    const socket = net.connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    const raw = { socket, data: Buffer.alloc(0), closed: false, waiters: [] };
    const notify = () => raw.waiters.splice(0).forEach((wake) => wake());
    socket.on('data', (data) => {
        raw.data = Buffer.concat([raw.data, data]);
        notify();
    });
    socket.on('end', () => {
        raw.closed = true;
        socket.end();
        notify();
    });
    socket.on('close', () => {
        raw.closed = true;
        notify();
    });
    socket.on('error', () => {});
    raw.send = (data) => socket.write(data);
    /** Waits until test(data) is true or the socket closes; false on timeout. */
    raw.until = async (test, ms = 60000) => {
        const end = Date.now() + ms;
        while (!test(raw.data)) {
            if (raw.closed || Date.now() > end) return test(raw.data);
            await new Promise((resolve) => {
                const timer = setTimeout(resolve, end - Date.now());
                raw.waiters.push(() => resolve(clearTimeout(timer)));
            });
        }
        return true;
    };
    raw.untilClosed = (ms) => raw.until(() => raw.closed, ms);
    return raw;
}

/** Stops the server in the middle of its work, not as it waits for sockets, and lets it go on after some time. `meanwhile`
 * is what comes while it has no processor. The sockets that give it work, which are the caller's to destroy. */
export async function takeProcessor(server, ms, meanwhile) {
    const head = `GET /health HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\n\r\n`;
    const crowd = Array.from({ length: 20 }, () => rawSocket(server));
    crowd.forEach((raw) => raw.send(head.repeat(1300)));
    await Promise.any(crowd.map((raw) => raw.until((d) => d.length > 0)));
    process.kill(server.child.pid, 'SIGSTOP');
    meanwhile();
    await sleep(ms);
    process.kill(server.child.pid, 'SIGCONT');
    return crowd;
}

/** Parses one reply at the start of `data`; null if it is not whole. */
export function parseReply(data, isHead = false) {
    const end = data.indexOf('\r\n\r\n');
    if (end < 0) return null;
    const lines = data.subarray(0, end).toString('latin1').split('\r\n');
    const status = Number(lines[0].split(' ')[1]);
    const headers = {};
    for (const line of lines.slice(1)) {
        const colon = line.indexOf(':');
        headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    let rest = data.subarray(end + 4);
    if (headers['transfer-encoding'] === 'chunked') {
        const pieces = [];
        let used = 0;
        for (;;) {
            const eol = rest.indexOf('\r\n', used);
            if (eol < 0) return null;
            const size = parseInt(rest.subarray(used, eol).toString('latin1'), 16);
            if (rest.length < eol + 2 + size + 2) return null;
            if (size === 0) return { status, headers, body: Buffer.concat(pieces), used: end + 4 + eol + 4 };
            pieces.push(rest.subarray(eol + 2, eol + 2 + size));
            used = eol + 2 + size + 2;
        }
    }
    const length = isHead ? 0 : Number(headers['content-length'] ?? 0);
    if (rest.length < length) return null;
    return { status, headers, body: rest.subarray(0, length), used: end + 4 + length };
}

/** One request on a connection of its own. `raw` text replaces the head. */
export async function request(server, { method = 'GET', path = '/', headers = {}, body, raw, timeout = 120000 } = {}) {
    const socket = rawSocket(server);
    const data = body === undefined ? null : Buffer.isBuffer(body) ? body : Buffer.from(body);
    let head = raw;
    if (head === undefined) {
        const all = { Host: `127.0.0.1:${server.port}`, Connection: 'close', ...headers };
        if (data) all['Content-Length'] = data.length;
        head = `${method} ${path} HTTP/1.1\r\n`;
        for (const [name, value] of Object.entries(all)) if (value !== null) head += `${name}: ${value}\r\n`;
        head += '\r\n';
    }
    socket.send(head);
    if (data) socket.send(data);
    await socket.until((d) => parseReply(d, method === 'HEAD') !== null, timeout);
    const reply = parseReply(socket.data, method === 'HEAD');
    socket.socket.destroy();
    if (!reply) return { status: 0, headers: {}, body: Buffer.alloc(0), text: '', closed: socket.closed };
    reply.text = reply.body.toString('utf8');
    reply.json = () => JSON.parse(reply.text);
    return reply;
}

export const JSON_TYPE = { 'Content-Type': 'application/json' };

export function post(server, path, value, headers = {}) {
    const body = typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value);
    return request(server, { method: 'POST', path, headers: { ...JSON_TYPE, ...headers }, body });
}

export const chat = (server, content, more = {}) =>
    post(server, '/v1/chat/completions', { messages: [{ role: 'user', content }], ...more });

/** The data of server-sent events. */
export function events(text) {
    return text
        .split('\n\n')
        .map((block) => block.split('\n').find((line) => line.startsWith('data: '))?.slice(6))
        .filter((line) => line !== undefined);
}

/** The text and reasoning of a streamed chat. */
export function joinChat(text) {
    const list = events(text);
    const chunks = list.filter((line) => line !== '[DONE]').map((line) => JSON.parse(line));
    const deltas = chunks.flatMap((chunk) => chunk.choices ?? []).map((choice) => choice.delta);
    return {
        chunks,
        done: list.filter((line) => line === '[DONE]').length,
        content: deltas.map((delta) => delta.content ?? '').join(''),
        reasoning: deltas.map((delta) => delta.reasoning_content ?? '').join(''),
        finish: chunks.flatMap((chunk) => chunk.choices ?? []).map((c) => c.finish_reason).filter(Boolean),
    };
}

/** A WebSocket client that can also break the rules. */
export class Socket {
    constructor(raw) {
        this.raw = raw;
        this.messages = [];
        this.closeCode = 0;
        this.closeReason = '';
        this.rest = Buffer.alloc(0);
        this.fragments = [];
        this.pongs = 0;
    }

    /** Resolves with an open socket, or with {refused: reply}. */
    static async open(server, { protocols, headers = {}, path = '/v1/responses', timeout = 60000 } = {}) {
        const raw = rawSocket(server);
        const key = randomBytes(16).toString('base64');
        const all = {
            Host: `127.0.0.1:${server.port}`,
            Upgrade: 'websocket',
            Connection: 'Upgrade',
            'Sec-WebSocket-Key': key,
            'Sec-WebSocket-Version': '13',
            ...(protocols ? { 'Sec-WebSocket-Protocol': protocols } : {}),
            ...headers,
        };
        let head = `GET ${path} HTTP/1.1\r\n`;
        for (const [name, value] of Object.entries(all)) if (value !== null) head += `${name}: ${value}\r\n`;
        raw.send(`${head}\r\n`);
        await raw.until((d) => d.includes('\r\n\r\n'), timeout);
        const reply = parseReply(raw.data);
        if (!reply || reply.status !== 101) {
            await raw.until((d) => parseReply(d) !== null, 2000);
            const whole = parseReply(raw.data);
            raw.socket.destroy();
            return { refused: whole ? { ...whole, text: whole.body.toString() } : { status: 0 } };
        }
        const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
        assert.equal(reply.headers['sec-websocket-accept'], accept);
        const socket = new Socket(raw);
        socket.protocol = reply.headers['sec-websocket-protocol'];
        raw.data = raw.data.subarray(reply.used);
        return socket;
    }

    static frame(opcode, payload, { masked = true, fin = true } = {}) {
        const data = Buffer.from(payload);
        const head = [(fin ? 0x80 : 0) | opcode];
        const bit = masked ? 0x80 : 0;
        if (data.length < 126) head.push(bit | data.length);
        else if (data.length < 65536) head.push(bit | 126, data.length >> 8, data.length & 255);
        else {
            const long = Buffer.alloc(8);
            long.writeBigUInt64BE(BigInt(data.length));
            head.push(bit | 127, ...long);
        }
        if (!masked) return Buffer.concat([Buffer.from(head), data]);
        const mask = randomBytes(4);
        const out = Buffer.from(data);
        for (let i = 0; i < out.length; i++) out[i] ^= mask[i & 3];
        return Buffer.concat([Buffer.from(head), mask, out]);
    }

    send(value) {
        this.raw.send(Socket.frame(1, typeof value === 'string' ? value : JSON.stringify(value)));
    }

    /** Takes whole frames out of what was received. */
    #digest() {
        this.rest = Buffer.concat([this.rest, this.raw.data]);
        this.raw.data = Buffer.alloc(0);
        for (;;) {
            const d = this.rest;
            if (d.length < 2) return;
            let length = d[1] & 127;
            let at = 2;
            if (length === 126) {
                if (d.length < 4) return;
                length = d.readUInt16BE(2);
                at = 4;
            } else if (length === 127) {
                if (d.length < 10) return;
                length = Number(d.readBigUInt64BE(2));
                at = 10;
            }
            if (d.length < at + length) return;
            const payload = d.subarray(at, at + length);
            const opcode = d[0] & 15;
            if (opcode === 8) {
                this.closeCode = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
                this.closeReason = payload.subarray(2).toString();
            } else if (opcode === 9) this.raw.send(Socket.frame(10, payload));
            else if (opcode === 10) this.pongs++;
            else {
                this.fragments.push(payload);
                if (d[0] & 0x80) {
                    this.messages.push(JSON.parse(Buffer.concat(this.fragments).toString()));
                    this.fragments = [];
                }
            }
            this.rest = d.subarray(at + length);
        }
    }

    /** Waits for a message that fits and returns it; all before it stay in `messages`. */
    async wait(test, ms = 60000) {
        const wanted = typeof test === 'string' ? (m) => m.type === test : test;
        const end = Date.now() + ms;
        for (;;) {
            this.#digest();
            const found = this.messages.find((m) => !m.taken && wanted(m));
            if (found) {
                Object.defineProperty(found, 'taken', { value: true });
                return found;
            }
            if (this.raw.closed || this.closeCode || Date.now() > end) return null;
            await this.raw.until((d) => d.length > 0, Math.max(1, end - Date.now()));
        }
    }

    /** Waits for the end; returns the close code (0: none was sent). */
    async closed(ms = 30000) {
        const end = Date.now() + ms;
        while (!this.closeCode && !this.raw.closed && Date.now() < end) {
            await this.raw.until((d) => d.length > 0, 100);
            this.#digest();
        }
        this.#digest();
        return this.closeCode;
    }

    destroy() {
        this.raw.socket.destroy();
    }
}

const tests = [];
export const test = (name, run) => tests.push({ name, run });

async function passes({ name, run }) {
    try {
        await run();
        console.log(`ok   ${name}`);
        return true;
    } catch (error) {
        console.log(`FAIL ${name}\n${error.stack}`);
        return false;
    }
}

/** Runs the tests; the exit code says whether all passed. beside: so many at a time, for tests that wait for clocks
 * and share no server. */
export async function runTests(beside = 1) {
    let failed = 0;
    const only = process.argv[3];
    const left = tests.filter(({ name }) => !only || name.includes(only));
    const work = async () => {
        for (let next = left.shift(); next; next = left.shift()) if (!(await passes(next))) failed++;
    };
    await Promise.all(Array.from({ length: beside }, work));
    process.exit(failed ? 1 : 0);
}

/** A gauge of /metrics. */
export async function metric(server, name, headers = {}) {
    const text = (await request(server, { path: '/metrics', headers })).text;
    const line = text.split('\n').find((l) => l.startsWith(`${name} `));
    return line ? Number(line.split(' ')[1]) : NaN;
}

/** Waits until the value is reached. */
export async function eventually(get, expected, ms = 60000) {
    const end = performance.now() + ms;
    for (;;) {
        const value = await get();
        if (value === expected) return;
        if (performance.now() > end) assert.equal(value, expected);
        await sleep(20);
    }
}
