/**
 * A test double of the server: the same page, the same protocols, and faults on demand. Node
 * built-ins alone; the WebSocket frames are read and written by hand.
 *
 *     const server = await startMock({ ... });   // server.url, server.requests, server.drop(), server.close()
 *
 * What it answers follows from the last user text: `say X` repeats X, `long` streams many words,
 * `error CODE` fails, `tool X` calls a tool and then says X (`-`: gets no result and says nothing),
 * `fixture NAME` sends tests/web/fixtures/NAME. An answer that is to be continued
 *  gets the rest of its words. Options can change at any time through `server.options`.
 */
import { createServer } from 'node:http';
import { createHash, randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname, extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const WEB = join(here, '../../web');
const TYPES = {
    '.html': 'text/html; charset=utf-8', '.js': 'text/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8',
    '.json': 'application/json', '.svg': 'image/svg+xml', '.png': 'image/png', '.jpg': 'image/jpeg', '.txt': 'text/plain',
    '.woff2': 'font/woff2', '.webmanifest': 'application/manifest+json',
};
export const CSP =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src blob:; " +
    "connect-src 'self'; frame-src 'self'; font-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; " +
    "frame-ancestors 'none'; require-trusted-types-for 'script'";

/** As server/service/assets.c has it. */
export const PREVIEW_CSP =
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; media-src data:; " +
    "font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types default";

const DEFAULTS = {
    delayMs: 4, // between deltas
    words: 1, // in a delta
    progressMs: 0, // how long each phase lasts; 0: no progress events
    upgrade: true, // false: the upgrade is refused, as by a proxy
    model: 'seedling',
    models: [], // as /v1/models says them: what can be loaded instead
    holdLoad: false, // go on with that until it is false again
    version: '0.1.0',
    modalities: ['text', 'image'],
    thinkingCapability: true,
    video: undefined, // capabilities.video: how videos are sampled and sized
    key: '', // ask for this API key
    greet: true,
    state: 'ready',
    maxTextFrame: 64 << 20,
    replayAll: false, // send every event again to who comes back, whatever he has seen
    forget: false, // answer response.resume with response_not_found
    mute: false, // say nothing at all of an answer until it is false again
    hold: false, // stop before the first delta until `hold` is false again
    holdAfter: Infinity, // the same after this many deltas
    nContext: 32768,
    title: '"A title."', // what the model names a chat
    scripted: {}, // question -> the words that are answered to instead
};

/** @param {Partial<typeof DEFAULTS> & {port?: number}} [given] */
export async function startMock(given = {}) {
    const options = { ...DEFAULTS, ...given };
    const sockets = new Set();
    const responses = new Map();
    const requests = []; // {transport: 'ws' or 'http', body} of every question, as they came
    const cancels = [];
    const begun = Date.now();
    let closed = false;

    const http = createServer((request, reply) => {
        serve(request, reply).catch((error) => {
            reply.statusCode = 500;
            reply.end(String(error));
        });
    });

    async function serve(request, reply) {
        const url = new URL(request.url, 'http://x');
        reply.setHeader('Content-Security-Policy', url.pathname === '/preview.html' ? PREVIEW_CSP : CSP);
        reply.setHeader('X-Content-Type-Options', 'nosniff');
        const json = (status, body) => {
            reply.writeHead(status, { 'Content-Type': 'application/json' });
            reply.end(JSON.stringify(body));
        };
        if (url.pathname.startsWith('/v1/') && options.key && request.headers.authorization !== `Bearer ${options.key}`) {
            return json(401, { error: { message: 'Missing API key', type: 'authentication_error', code: 'invalid_api_key' } });
        }
        if (url.pathname === '/health') return json(200, { status: 'ok' });
        if (url.pathname === '/v1/models') {
            if (options.state === 'loading') return json(503, { error: { message: 'Loading model' } });
            return json(200, {
                object: 'list',
                data: [{
                    id: options.model, object: 'model', created: 0, owned_by: 'parley',
                    meta: { n_ctx: options.nContext, n_params: 25318088, size: 50636176 },
                    architecture: { input_modalities: options.modalities, output_modalities: ['text'] },
                    status: { value: 'loaded' },
                }, ...options.models.filter((one) => one.id !== options.model)],
            });
        }
        if (url.pathname === '/models/load') return load(request, json);
        if (url.pathname === '/v1/chat/completions') return json(200, { choices: [{ message: { role: 'assistant', content: options.title } }] });
        if (url.pathname === '/tokenize') {
            let text = '';
            for await (const piece of request) text += piece;
            return json(200, { tokens: JSON.parse(text).content.split(/\s+/).map((_, i) => i) });
        }
        if (url.pathname === '/props') {
            return json(200, { default_generation_settings: { n_ctx: options.nContext, params: { temperature: 0.3, top_p: 0.8, min_p: 0, top_k: 20, max_tokens: 2048, repetition_penalty: 1 } } });
        }
        if (url.pathname === '/v1/status') return json(200, status());
        const cancelled = /^\/v1\/requests\/([\w-]+)\/cancel$/.exec(url.pathname)?.[1];
        if (cancelled) {
            for (const one of responses.values()) if (one.id === cancelled) one.cancelled = true;
            cancels.push(cancelled);
            return json(200, { id: cancelled, cancelled: true });
        }
        const [, named, verb] = /^\/v1\/responses(?:\/([\w-]+)(\/cancel)?)?$/.exec(url.pathname) ?? [];
        if (named) {
            const response = options.forget ? null : responses.get(named);
            if (!response) return json(404, { error: { type: 'not_found_error', code: 'response_not_found', message: 'No such response' } });
            if (!verb) return stream(response, reply, Number(url.searchParams.get('starting_after') ?? -1));
            cancels.push(named);
            response.cancelled = true;
            return json(200, { id: named });
        }
        if (url.pathname === '/v1/responses' && request.method === 'POST') return ask(request, reply, json);
        if (url.pathname.startsWith('/v1/')) return json(404, { error: { message: 'not found' } });
        const path = normalize(url.pathname === '/' ? '/index.html' : decodeURIComponent(url.pathname));
        try {
            const data = await readFile(join(WEB, path));
            reply.writeHead(200, { 'Content-Type': TYPES[extname(path)] ?? 'application/octet-stream', 'Cache-Control': 'no-cache' });
            reply.end(data);
        } catch {
            reply.writeHead(404);
            reply.end();
        }
    }

    /** As /v1/status: three numbers that grow are enough for a chart. */
    function status() {
        const running = [...responses.values()].filter((one) => !one.over).map((one) => ({
            id: one.id, kind: 'response', phase: 'decode', route: 'text', processed: 96, total: 96, prompt_tokens: 96, cached_tokens: 0,
            tokens: one.log.length, max_tokens: 2048, tokens_per_second: 42.5, elapsed_ms: 1500,
        }));
        const seconds = (Date.now() - begun) / 1000;
        return {
            object: 'status', state: options.state, version: options.version, uptime_s: seconds,
            model: { id: options.model, compute: 'avx2', n_ctx: options.nContext, n_params: 25318088 },
            memory: { rss_bytes: 310e6 + 4e6 * Math.sin(seconds), weight_bytes: 49053728, state_bytes: 2e8 },
            queue: { running: running.length, waiting: 0, slots: 4 }, running, waiting: [],
            totals: { requests: requests.length, prompt_tokens: 960, cached_tokens: 400, generated_tokens: Math.round(700 * seconds + 300 * Math.sin(seconds)), steps: 900, vision_encodes: 3, prompt_per_second: 512, predicted_per_second: 88.1 },
            cache: { entries: 4, bytes: 12e6, queries: 10, hits: 7, hit_rate: 0.7 },
            mtp: { available: true, drafted: 200, accepted: 150, acceptance_rate: 0.75, parked_steps: 0 },
        };
    }

    // ---- what is answered ----

    async function plan(question, images, thinking) {
        const text = options.scripted[question] ?? question;
        const result = { reasoning: '', text: '', error: null, tool: false };
        const word = (name) => text.toLowerCase().startsWith(`${name} `) ? text.slice(name.length + 1) : null;
        if (thinking) result.reasoning = 'I look at the shapes one after the other: a cross at the left, two triangles at the top right.';
        if (word('error') !== null) result.error = { code: word('error').trim(), message: 'Told to fail.' };
        else if (word('fixture') !== null) result.text = await readFile(join(here, 'fixtures', word('fixture').trim()), 'utf8');
        else if (word('say') !== null) result.text = word('say');
        else if (word('tool') !== null) Object.assign(result, { tool: true, text: word('tool') === '-' ? '' : word('tool') });
        else if (/^long/i.test(text)) {
            for (let i = 0; i < 400; i += 1) result.text += `word${i}${i % 12 === 11 ? '.\n\n' : ' '}`;
        } else if (images) result.text = images > 1 ? `I see ${images} images.` : 'The image shows three objects on a yellow background: a red cross, a blue outlined triangle and a gray triangle.';
        else result.text = `You said: ${text}`;
        return result;
    }

    /** Takes away what was said already. */
    function goOn(answer, text, reasoning) {
        answer.text = answer.text.slice(text.length);
        answer.reasoning = text ? '' : answer.reasoning.slice(reasoning.length);
    }

    const pieces = (text) => {
        const words = text.match(/\s*\S+\s*?|\s+/g) ?? [];
        return options.words === 1 ? words : words.flatMap((_, i) => (i % options.words ? [] : words.slice(i, i + options.words).join('')));
    };
    const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    async function held(count) {
        while (!closed && ((options.hold && count === 0) || count >= options.holdAfter)) await sleep(20);
    }

    function timings(n, images) {
        return {
            route: images ? 'media' : 'text', prompt_n: 64, cache_n: 32, prompt_ms: 42, predicted_n: n, predicted_ms: n * 11.2,
            predicted_per_second: 89.3, ttft_ms: images ? 310 : 84, media_ms: images ? 12 : 0, vision_ms: images ? 180 : 0,
            draft_n: 0, draft_n_accepted: 0, ...options.timings,
        };
    }

    // ---- responses over HTTP: the same log, read by another kind of client ----

    /** What `create` and `drop` see of an HTTP client.
     * @param {import('node:http').ServerResponse} reply */
    function httpClient(reply) {
        const client = {
            socket: reply.socket,
            send(event) {
                if (!reply.headersSent) reply.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
                reply.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
                if (/^response\.(completed|incomplete|failed)$/.test(event.type)) reply.end();
            },
        };
        sockets.add(client);
        reply.on('close', () => sockets.delete(client));
        return client;
    }

    async function ask(request, reply, json) {
        let raw = '';
        for await (const chunk of request) raw += chunk;
        const body = JSON.parse(raw);
        const client = httpClient(reply);
        const toStream = client.send;
        client.send = (event) => (event.type === 'error' && !reply.headersSent ? json(event.status, { error: event.error }) : toStream(event));
        create(client, { ...body, event_id: request.headers['idempotency-key'] }, { transport: 'http', body });
    }

    function stream(response, reply, after) {
        const client = httpClient(reply);
        for (const logged of response.log) if (options.replayAll || logged.sequence_number > after) client.send(logged);
        reply.flushHeaders();
        response.clients.add(client);
    }

    // ---- WebSocket ----

    http.on('upgrade', (request, socket) => {
        const protocols = (request.headers['sec-websocket-protocol'] ?? '').split(/,\s*/);
        const key = protocols.find((name) => name.startsWith('openai-insecure-api-key.'))?.slice(24);
        if (!options.upgrade || (options.key && key !== options.key)) {
            socket.end('HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n');
            return;
        }
        const accept = createHash('sha1')
            .update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
            .digest('base64');
        socket.write(
            `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n` +
                'Sec-WebSocket-Protocol: parley.v1\r\n\r\n',
        );
        const client = { socket, frozen: false, send: (event) => !client.frozen && socket.writable && socket.write(frame(JSON.stringify(event))) };
        sockets.add(client);
        socket.on('close', () => sockets.delete(client));
        socket.on('error', () => sockets.delete(client));
        let buffer = Buffer.alloc(0);
        const parts = [];
        socket.on('data', (data) => {
            if (client.frozen) return;
            buffer = Buffer.concat([buffer, data]);
            for (let message; (message = unframe(buffer)); ) {
                buffer = buffer.subarray(message.size);
                if (message.opcode === 8) socket.end(frame('', 8));
                else if (message.opcode <= 1) {
                    parts.push(message.data); // Chromium splits what is larger than its buffer
                    if (message.final) receive(client, JSON.parse(Buffer.concat(parts.splice(0)).toString()));
                }
            }
        });
        if (options.greet) client.send(session('session.created'));
    });

    const session = (type) => ({
        type,
        event_id: randomUUID(),
        session: { id: randomUUID(), protocol: 'parley.v1', model: options.model, created_at: 0 },
        server: { name: 'parley', version: options.version, state: options.state, progress: 1 },
        capabilities: { modalities: options.modalities, image_types: ['image/png', 'image/jpeg'], video_types: [], video: options.video, tools: true, thinking: options.thinkingCapability },
        limits: { max_text_frame: options.maxTextFrame, max_images: 16, n_ctx: options.nContext, log_ttl_s: 300, ping_ms: 20000 },
    });

    /** POST /models/load: another model takes the place of the loaded one; one that has no
     * architecture cannot be loaded. */
    async function load(request, json) {
        let body = '';
        for await (const data of request) body += data;
        const name = JSON.parse(body).model;
        const wanted = options.models.find((one) => one.id === name);
        const send = (event) => sockets.forEach((client) => client.send(event));
        send({ type: 'server.status', state: 'loading', progress: 0.25, next_model: name });
        while (options.holdLoad && !closed) await new Promise((resolve) => setTimeout(resolve, 10));
        if (wanted.architecture) Object.assign(options, { model: name, modalities: wanted.architecture.input_modalities });
        send(session('session.updated'));
        send({ type: 'server.status', state: 'ready', progress: 1, model: options.model });
        return wanted.architecture ? json(200, { success: true, model: name }) : json(503, { error: { code: 'model_load_failed', message: `${name} cannot be loaded: there is not enough memory` } });
    }

    function receive(client, event) {
        if (event.type === 'ping') client.send({ type: 'pong', t: event.t });
        else if (event.type === 'response.create') create(client, event);
        else if (event.type === 'response.cancel') {
            cancels.push(event.response_id ?? event.stream_id);
            const response = responses.get(event.response_id) ?? [...responses.values()].find((one) => one.stream === event.stream_id);
            if (response) response.cancelled = true;
        } else if (event.type === 'response.resume') {
            const response = responses.get(event.response_id);
            if (!response || options.forget) {
                client.send({ type: 'error', status: 404, response_id: event.response_id, error: { type: 'not_found_error', code: 'response_not_found', message: 'No such response', event_id: event.event_id } });
                return;
            }
            response.stream = event.stream_id;
            for (const logged of response.log) {
                if (options.replayAll || logged.sequence_number > event.starting_after) client.send({ ...logged, stream_id: event.stream_id });
            }
            response.clients.add(client);
        } else client.send({ type: 'error', status: 400, error: { code: 'invalid_event', message: `Unknown type ${event.type}`, event_id: event.event_id } });
    }

    async function create(client, event, request = { transport: 'ws', body: event }) {
        requests.push(request);
        const known = [...responses.values()].find((one) => one.eventId === event.event_id);
        if (known) {
            for (const logged of known.log) client.send(logged);
            known.clients.add(client);
            return;
        }
        const id = `resp_${randomUUID()}`;
        const response = { id, eventId: event.event_id, stream: event.stream_id, log: [], clients: new Set([client]), cancelled: false };
        responses.set(id, response);
        let seq = 0;
        const emit = (fields, ephemeral = false) => {
            const full = { ...fields, response_id: id, stream_id: response.stream };
            if (!ephemeral) {
                full.sequence_number = seq;
                seq += 1;
                response.log.push(full);
            }
            for (const one of response.clients) if (sockets.has(one)) one.send(full);
        };
        const last = event.input.findLast((one) => one.role === 'user').content;
        const text = last.findLast((part) => part.type === 'input_text')?.text ?? '';
        const images = last.filter((part) => /^input_(image|video)$/.test(part.type)).length;
        const answer = await plan(text, images, event.chat_template_kwargs?.enable_thinking);
        while (options.mute && !closed) await sleep(20);
        if (event.continue_final_message) {
            const said = event.input.at(-1);
            if (said.type === 'reasoning') goOn(answer, '', said.content[0].text);
            else goOn(answer, said.content[0].text, '');
        }
        if (answer.error) {
            response.over = true;
            client.send({ type: 'error', status: 400, stream_id: event.stream_id, response_id: id, error: { ...answer.error, type: 'invalid_request_error', event_id: event.event_id } });
            return;
        }
        emit({ type: 'response.created', response: { id, status: 'in_progress' } });
        if (options.progressMs) {
            const phases = images ? [['media_decode', images], ['vision_encode', 10], ['prefill', 300]] : [['prefill', 300]];
            for (const [phase, total] of phases) {
                for (let step = 0; step <= 10 && !response.cancelled && !closed; step += 1) {
                    emit({ type: 'response.progress', phase, processed: Math.round((total * step) / 10), total, unit: 'tokens', elapsed_ms: 0, eta_ms: ((10 - step) * options.progressMs) / 10 }, true);
                    const end = Date.now() + options.progressMs / 10;
                    while (!response.cancelled && !closed && Date.now() < end) await sleep(Math.min(20, options.progressMs / 10));
                }
            }
        }
        const item = { item_id: 'item_1', output_index: 0, content_index: 0 };
        let said = '';
        let count = 0;
        for (const piece of pieces(answer.reasoning)) {
            if (response.cancelled) break;
            emit({ type: 'response.reasoning_text.delta', ...item, delta: piece });
            await sleep(options.delayMs);
        }
        if (answer.tool) {
            const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'get_weather' };
            emit({ type: 'response.output_item.added', output_index: 0, item: { ...call, arguments: '', status: 'in_progress' } });
            for (const delta of ['{"city":', '"Ulm","days":2}']) emit({ type: 'response.function_call_arguments.delta', item_id: 'fc_1', output_index: 0, delta });
            emit({ type: 'response.output_item.done', output_index: 0, item: { ...call, arguments: '{"city":"Ulm","days":2}', status: 'completed' } });
            if (answer.text) emit({ type: 'response.output_item.done', output_index: 1, item: { type: 'function_call_output', call_id: 'call_1', output: '{"sky":"clear","degrees":21}', status: 'completed' } });
        }
        for (const piece of pieces(answer.text)) {
            if (count >= event.max_output_tokens) break;
            while (!response.cancelled && !closed && ((options.hold && count === 0) || count >= options.holdAfter)) await sleep(20);
            if (response.cancelled || closed) break;
            said += piece;
            emit({ type: 'response.output_text.delta', ...item, delta: piece, logprobs: [] });
            count += 1;
            if (count % 40 === 0) emit({ type: 'response.stats', timings: timings(count, images), context: { n_ctx: options.nContext, used: 96 + count } }, true);
            await sleep(options.delayMs);
        }
        response.over = true;
        const cut = !response.cancelled && count >= event.max_output_tokens;
        const status = response.cancelled ? 'cancelled' : cut ? 'incomplete' : 'completed';
        const reason = response.cancelled ? 'cancelled' : 'max_output_tokens';
        emit({
            type: status === 'completed' ? 'response.completed' : 'response.incomplete',
            response: {
                id, status, output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: said }] }],
                usage: { input_tokens: 96, output_tokens: count, total_tokens: 96 + count }, timings: timings(count, images),
                ...(status === 'completed' ? {} : { incomplete_details: { reason } }),
            },
        });
    }

    await new Promise((resolve) => http.listen(given.port ?? 0, '127.0.0.1', () => resolve(undefined)));
    http.unref(); // a test that failed before close() ends, too
    const { port } = /** @type {import('node:net').AddressInfo} */ (http.address());
    return {
        url: `http://127.0.0.1:${port}/`,
        options,
        requests,
        cancels,
        /** How many answers were begun. */
        begun: () => responses.size,
        sockets,
        /** Cuts every WebSocket, as a lost network does. */
        drop() {
            for (const { socket } of sockets) socket.destroy();
        },
        /** Every open WebSocket goes dead without a word, as over the sleep of a device. */
        freeze() {
            for (const client of sockets) client.frozen = true;
        },
        send(event) {
            for (const client of sockets) client.send(event);
        },
        close() {
            closed = true;
            for (const { socket } of sockets) socket.destroy();
            http.closeAllConnections();
            return new Promise((resolve) => http.close(resolve));
        },
    };
}

/** @param {string} text @param {number} [opcode] */
function frame(text, opcode = 1) {
    const data = Buffer.from(text);
    let head;
    if (data.length < 126) head = Buffer.from([0x80 | opcode, data.length]);
    else if (data.length < 65536) {
        head = Buffer.alloc(4);
        head.writeUInt16BE(data.length, 2);
        head[0] = 0x80 | opcode;
        head[1] = 126;
    } else {
        head = Buffer.alloc(10);
        head.writeBigUInt64BE(BigInt(data.length), 2);
        head[0] = 0x80 | opcode;
        head[1] = 127;
    }
    return Buffer.concat([head, data]);
}

/** One whole client frame at the start of the buffer, or null. */
function unframe(buffer) {
    if (buffer.length < 2) return null;
    let length = buffer[1] & 127;
    let at = 2;
    if (length === 126) {
        if (buffer.length < 4) return null;
        length = buffer.readUInt16BE(2);
        at = 4;
    } else if (length === 127) {
        if (buffer.length < 10) return null;
        length = Number(buffer.readBigUInt64BE(2));
        at = 10;
    }
    const masked = (buffer[1] & 128) !== 0;
    const size = at + (masked ? 4 : 0) + length;
    if (buffer.length < size) return null;
    const data = Buffer.from(buffer.subarray(size - length, size));
    if (masked) for (let i = 0; i < length; i += 1) data[i] ^= buffer[at + (i % 4)];
    return { size, opcode: buffer[0] & 15, final: buffer[0] >= 128, data };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const server = await startMock({ port: Number(process.argv[2] ?? 8090), progressMs: 800, delayMs: 30 });
    console.log(server.url);
}
