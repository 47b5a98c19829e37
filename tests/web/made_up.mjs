/** What the page's own modules meet outside a browser, made up: time that passes when a test says so, sockets and replies.
 *
 *     const time = makeTime();
 *     await time.pass(8000);                       // runs what was due meanwhile, in its order
 *     const sockets = makeSockets();
 *     sockets.at(-1).greet({ server: { state: 'ready' } });
 *     const net = makeFetch((request) => reply({ data: [] }));
 *     globalThis.localStorage = makeStorage(new Map());
 */

/** localStorage over a map, its keys listed as browsers do. @param {Map<string, string>} kept */
export const makeStorage = (kept) => /** @type {any} */ (new Proxy({}, {
    get: (own, name) => own[name] ?? { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value), removeItem: (key) => void kept.delete(key) }[name],
    set: (own, name, value) => Boolean((own[name] = value)),
    ownKeys: () => [...kept.keys()],
    getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
}));

/** Timers and clocks. Math.random gives what `time.random` says. */
export function makeTime() {
    const { setImmediate: real } = globalThis;
    const timers = new Map();
    let now = Date.UTC(2026, 0, 2);
    let last = 0;
    const add = (fn, ms, every) => timers.set((last += 1), { fn, at: now + (ms || 0), every }) && last;
    globalThis.setTimeout = (fn, ms) => add(fn, ms, 0);
    globalThis.setInterval = (fn, ms) => add(fn, ms, ms);
    globalThis.clearTimeout = globalThis.clearInterval = (id) => timers.delete(id);
    Date.now = performance.now = () => now;
    /** What needs no time. */
    const settle = async () => {
        for (let i = 0; i < 8; i += 1) await new Promise((resolve) => real(resolve));
    };
    const time = {
        random: 0.5,
        now: () => now,
        settle,
        /** Waits for what takes real time: a module that is loaded, a file that is read. */
        async until(condition) {
            const end = process.hrtime.bigint() + 20_000_000_000n;
            while (!condition() && process.hrtime.bigint() < end) await settle();
        },
        async pass(ms) {
            const end = now + ms;
            for (;;) {
                await settle();
                const [id, due] = [...timers].sort(([, a], [, b]) => a.at - b.at)[0] ?? [];
                if (!due || due.at > end) break;
                now = Math.max(now, due.at);
                if (due.every) due.at = now + due.every;
                else timers.delete(id);
                due.fn();
            }
            now = Math.max(now, end); // what was run may have slept
            await settle();
        },
        /** The first moment again; nothing is due any more. */
        begin() {
            timers.clear();
            now = Date.UTC(2026, 0, 2);
        },
        /** The device sleeps: nothing runs meanwhile. */
        sleep: (ms) => (now += ms),
    };
    Math.random = () => time.random;
    return time;
}

/** Every WebSocket that is made from now on, in this order. What was sent through one is in `sent`, read. */
export function makeSockets() {
    const made = [];
    globalThis.WebSocket = class {
        static OPEN = 1;
        constructor(url, protocols) {
            Object.assign(this, { url: String(url), protocols, readyState: 0, sent: [] });
            made.push(this);
        }
        send(data) {
            this.sent.push(typeof data === 'string' ? JSON.parse(data) : data);
        }
        /** The page closes it. */
        close(code) {
            this.closedWith = code ?? 'no code';
            this.end();
        }
        /** It ends, whoever wanted that. */
        end() {
            if (this.readyState === 3) return;
            this.readyState = 3;
            this.onclose?.();
        }
        /** Nothing comes through any more, and nobody says so. */
        die() {
            this.close = (code) => (this.closedWith = code ?? 'no code');
        }
        hear(event) {
            this.onmessage?.({ data: typeof event === 'string' ? event : JSON.stringify(event) });
        }
        greet(session = {}) {
            this.readyState = 1;
            this.hear({ type: 'session.created', ...session });
        }
        /** What was sent since the last call, without pings. */
        news() {
            return this.sent.splice(0).filter((message) => message.type !== 'ping');
        }
    };
    return made;
}

export const reply = (body, status = 200) => new Response(typeof body === 'string' ? body : JSON.stringify(body), { status });

/** Every request from now on: {path, method, headers, body, cache, signal}; the answer to it comes from `answer`, which
 * may throw: then it does not get through. */
export function makeFetch(answer) {
    const net = { answer, requests: [] };
    globalThis.fetch = async (url, { headers, body, ...init } = {}) => {
        const { pathname, search } = new URL(url);
        const request = { path: pathname + search, method: 'GET', ...init, headers: Object.fromEntries(headers ?? []) };
        request.body = typeof body === 'string' ? JSON.parse(body) : body;
        net.requests.push(request);
        return net.answer(request);
    };
    return net;
}

/** An event stream that a test writes piece by piece. */
export function makeStream() {
    let out;
    const body = new ReadableStream({ start: (controller) => (out = controller) });
    return {
        response: new Response(body, { status: 200 }),
        say: (event) => out.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`)),
        end: () => out.close(),
        cut: () => out.error(new TypeError('network error')),
    };
}
