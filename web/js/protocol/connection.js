/**
 * The protocol client: WebSocket `parley.v1` first, server-sent events when the upgrade fails (a
 * proxy that does not let WebSockets through). Both bring the same numbered events, so nothing
 * above this file knows which one runs, and an answer may begin over the one and go on over the
 * other.
 *
 *     const connection = new Connection();
 *     connection.addEventListener('state', () => show(connection.state));
 *     connection.start();
 *     const run = connection.generate(body, event => ...);   // event.kind: see RunEvent
 *     run.cancel();
 *
 * A run outlives its connection: after a drop it attaches again with its response's id and the last
 * sequence number, so that nothing is lost and nothing comes twice. One that has no id yet is asked
 * for again under the same name.
 */
import { newId } from '../util.js';

/**
 * @typedef {{kind: 'waiting'} | {kind: 'queued', position: number, etaMs?: number} |
 *   {kind: 'started', responseId: string} | {kind: 'progress', phase: string, processed: number,
 *   total: number, unit?: string, etaMs?: number, cached?: number} | {kind: 'reasoning', delta:
 *   string} | {kind: 'text', delta: string} | {kind: 'reset', text: string, reasoning: string,
 *   tools: Partial<import('../state/store.js').ToolCall>[]} |
 *   ({kind: 'tool', images?: string[]} & Partial<import('../state/store.js').ToolCall>) | {kind:
 *   'tool-arguments', id: string, delta: string} | {kind: 'tool-output', callId: string, output:
 *   string, failed: boolean} | {kind: 'stats', timings: object, context?: object} | {kind: 'lost'}
 *   | {kind: 'resumed'} | {kind: 'end', status: 'completed'|'incomplete'|'cancelled'|'failed',
 *   reason?: string, error?: RunError,
 *    timings?: object, usage?: object, model?: string}} RunEvent
 * @typedef {{code: string, message: string, status?: number}} RunError
 * @typedef {'connecting'|'open'|'retrying'|'fallback'|'loading'|'unauthorised'|'stopped'} ConnectionState
 */

const BACKOFF_FIRST_MS = 500;
const BACKOFF_MAX_MS = 15_000;
const GREETING_MS = 8_000;
const PING_MS = 20_000;
const SILENCE_MS = 45_000;
/** After a sleep, in another network or in a tab that comes back, the socket may be dead without
 * saying so. */
const PROBE_MS = 4_000;
const WATCH_MS = 3_000;
const LOST_MAX_MS = 120_000;
const CANCEL_WAIT_MS = 4_000;
const FALLBACK_RETRY_MS = 30_000;
/** So many attempts in a row must fail while HTTP works: then WebSockets are blocked. Where one was
 * open, the network is just bad. */
const BLOCKED = 2;
const BLOCKED_AFTER_OPEN = 5;
const DEFAULT_TEXT_FRAME = 1 << 20;

/** How long to wait before the next try, behind so many that failed. @param {number} failures */
function backoff(failures) {
    return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** failures) * (0.7 + 0.6 * Math.random());
}

/** One answer on its way. Made by Connection.generate and Connection.resume. */
export class Run {
    /**
     * @param {Connection} connection @param {object|null} body @param {(event: RunEvent) => void} sink
     * @param {string} [id] the same one makes it the same question to the server
     */
    constructor(connection, body, sink, id = newId()) {
        this.connection = connection;
        this.body = body;
        this.sink = sink;
        this.streamId = `s_${id}`;
        this.eventId = `e_${id}`;
        /** @type {string|null} */
        this.responseId = null;
        this.lastSeq = -1;
        this.done = false;
        this.sent = false;
        this.lostAt = 0;
        /** While a request of it is open over HTTP. @type {AbortController|null} */
        this.abort = null;
        /** How often in a row HTTP failed it. */
        this.tries = 0;
        this.retryTimer = undefined;
        this.cancelled = false;
    }

    /** Stops the answer; an `end` event with status `cancelled` follows at the latest after a few
     * seconds. */
    cancel() {
        if (this.done || this.cancelled) return;
        this.cancelled = true;
        this.connection.cancelRun(this);
    }

    /** @param {RunEvent} event */
    emit(event) {
        if (this.done) return;
        if (event.kind === 'end') {
            this.done = true;
            this.connection.runs.delete(this);
            clearTimeout(this.retryTimer);
        }
        this.sink(event);
    }

    /** @param {string} code @param {string} message @param {number} [status] */
    fail(code, message, status) {
        this.emit({ kind: 'end', status: 'failed', error: { code, message, status } });
    }
}

export class Connection extends EventTarget {
    /** @param {{base?: string, key?: string}} [options] */
    constructor({ base = document.baseURI, key = '' } = {}) {
        super();
        this.base = base;
        this.key = key;
        /** @type {ConnectionState} */
        this.state = 'connecting';
        /** @type {any} */
        this.session = null;
        /** @type {any} what server.status said last */
        this.server = null;
        /** @type {Set<Run>} */
        this.runs = new Set();
        /** When the next attempt is due (performance.now), for a countdown. */
        this.retryAt = 0;
        /** @type {WebSocket|null} */
        this.socket = null;
        this.failures = 0;
        this.retryTimer = undefined;
        this.pingTimer = undefined;
        this.lastHeard = 0;
        this.hearsPongs = false;
        this.probeTimer = undefined;
        /** Responses to cancel as soon as there is a socket. @type {Set<string>} */
        this.lateCancels = new Set();
    }

    start() {
        addEventListener('online', () => this.wake());
        addEventListener('pageshow', () => this.wake());
        addEventListener('offline', () => this.dispatchEvent(new Event('state')));
        document.addEventListener('visibilitychange', () => {
            if (!document.hidden) this.wake();
        });
        let seen = Date.now();
        setInterval(() => {
            const now = Date.now();
            if (now - seen > 4 * WATCH_MS) this.wake(); // the device slept
            seen = now;
        }, WATCH_MS);
        this.#open();
    }

    /** Leaves for good (tests, page unload). */
    stop() {
        clearTimeout(this.retryTimer);
        this.#setState('stopped');
        this.socket?.close(1000);
    }

    /** Uses another API key from now on. @param {string} key */
    setKey(key) {
        if (key === this.key) return;
        this.key = key;
        // Refused once is refused: the next failure asks why.
        this.failures = BLOCKED - 1;
        if (this.socket) this.#reopen();
        else this.retryNow();
    }

    /** Tries again at once if it is waiting for its next attempt. */
    retryNow() {
        if (this.socket || this.state === 'stopped') return;
        clearTimeout(this.retryTimer);
        this.#open();
    }

    /** Makes sure at once that the connection is alive: leaves a socket that says nothing to a
     * ping. */
    wake() {
        if (this.state !== 'open') {
            this.retryNow();
            if (this.state === 'fallback') this.#attachAll();
            return;
        }
        const { socket, lastHeard } = this;
        this.#ping();
        clearTimeout(this.probeTimer);
        this.probeTimer = setTimeout(() => {
            if (this.hearsPongs && this.socket === socket && this.lastHeard === lastHeard) this.#leave();
        }, PROBE_MS);
    }

    /** @param {string} path @param {RequestInit} [init] */
    fetch(path, init = {}) {
        const headers = new Headers(init.headers);
        if (this.key) headers.set('Authorization', `Bearer ${this.key}`);
        return fetch(new URL(path, this.base), { ...init, headers, credentials: 'same-origin' });
    }

    /**
     * Asks for an answer. `body` is a Responses request without `stream`.
     * @param {object} body @param {(event: RunEvent) => void} sink @param {string} [id] see Run
     */
    generate(body, sink, id) {
        const run = new Run(this, body, sink, id);
        this.runs.add(run);
        if (!this.#takes) run.emit({ kind: 'waiting' });
        this.#attach(run);
        return run;
    }

    /** Asks for a run, or for the rest of it, on the way there is; without one it waits.
     * @param {Run} run */
    #attach(run) {
        clearTimeout(run.retryTimer);
        if (this.state === 'fallback') this.#overHttp(run);
        else if (this.state === 'open' && run.responseId) this.#sendResume(run);
        else if (this.#takes) this.#sendCreate(run);
    }

    #attachAll() {
        // One with an open request goes over HTTP and does not care.
        for (const run of [...this.runs]) if (!run.abort) this.#attach(run);
    }

    /** Whether the server takes new questions now; if not, they wait here until it does. */
    get #takes() {
        return this.state === 'open' && !/^(loading|draining)$/.test(this.server?.state);
    }

    /**
     * Attaches to an answer that was asked for before (by a page that was reloaded); all of it is
     * sent again.
     * @param {string} responseId @param {(event: RunEvent) => void} sink
     */
    resume(responseId, sink) {
        const run = new Run(this, null, sink);
        run.responseId = responseId;
        run.sent = true;
        this.runs.add(run);
        run.emit({ kind: 'waiting' });
        this.#attach(run);
        if (this.state !== 'open') this.#expireLost(run);
        return run;
    }

    /** @param {Run} run */
    cancelRun(run) {
        const { responseId } = run;
        if (responseId && (run.abort || this.state === 'fallback')) this.#cancelOverHttp(responseId);
        else if (!run.abort && run.sent && this.state === 'open') {
            this.#send({ type: 'response.cancel', ...(responseId ? { response_id: responseId } : { stream_id: run.streamId }) });
        } else {
            // Over HTTP its name is still to come: see #take.
            if (responseId) this.lateCancels.add(responseId);
            run.emit({ kind: 'end', status: 'cancelled' });
        }
        setTimeout(() => {
            run.emit({ kind: 'end', status: 'cancelled' });
            if (responseId) run.abort?.abort();
        }, CANCEL_WAIT_MS);
    }

    /** @param {string} responseId */
    #cancelOverHttp(responseId) {
        this.fetch(`v1/responses/${responseId}/cancel`, { method: 'POST' }).catch(() => {});
    }

    // ---- the socket ----

    #open() {
        const url = new URL('v1/responses', this.base);
        url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
        const protocols = ['parley.v1'];
        if (this.key) protocols.push(`openai-insecure-api-key.${this.key}`);
        if (this.state !== 'fallback') this.#setState('connecting');
        let socket;
        try {
            socket = new WebSocket(url, protocols);
        } catch {
            this.#closed(null);
            return;
        }
        this.socket = socket;
        const greeting = setTimeout(() => socket.close(), GREETING_MS);
        socket.onmessage = (message) => {
            if (this.socket !== socket || typeof message.data !== 'string') return;
            this.lastHeard = performance.now();
            let event;
            try {
                event = JSON.parse(message.data);
            } catch {
                return;
            }
            if (event?.type === 'session.created') {
                clearTimeout(greeting);
                this.#opened(event);
            } else if (event && typeof event.type === 'string') {
                this.#receive(event);
            }
        };
        socket.onclose = () => {
            clearTimeout(greeting);
            this.#closed(socket);
        };
    }

    /** @param {any} greeting */
    #opened(greeting) {
        this.failures = 0;
        this.session = greeting;
        this.server = greeting.server ?? null;
        clearInterval(this.pingTimer);
        this.pingTimer = setInterval(() => this.#ping(), PING_MS);
        this.#ping();
        this.#setState('open');
        for (const id of this.lateCancels) this.#send({ type: 'response.cancel', response_id: id });
        this.lateCancels.clear();
        this.#attachAll();
    }

    #reopen() {
        const socket = this.socket;
        this.socket = null;
        socket?.close(1000);
        clearInterval(this.pingTimer);
        this.#open();
    }

    #ping() {
        if (this.hearsPongs && performance.now() - this.lastHeard > SILENCE_MS) this.#leave();
        else this.#send({ type: 'ping', event_id: 'ping', t: Date.now() });
    }

    /** A dead socket may take minutes to say so: leaves it, and opens another one. */
    #leave() {
        const socket = this.socket;
        this.#closed(socket);
        socket?.close();
        this.retryNow();
    }

    /** @param {WebSocket|null} socket */
    #closed(socket) {
        if (socket && this.socket !== socket) return;
        this.socket = null;
        clearInterval(this.pingTimer);
        if (this.state === 'stopped') return;
        const wasOpen = this.state === 'open';
        if (wasOpen) this.failures = 0;
        this.failures += 1;
        for (const run of this.runs) {
            if (run.abort) continue;
            if (!run.lostAt) run.emit({ kind: run.sent ? 'lost' : 'waiting' });
            this.#expireLost(run);
        }
        if (this.failures >= BLOCKED) this.#probe();
        this.#openLater();
        if (this.state !== 'fallback') this.#setState('retrying');
    }

    #openLater() {
        const wait = this.state === 'fallback' ? FALLBACK_RETRY_MS : backoff(this.failures - 1);
        this.retryAt = performance.now() + wait;
        clearTimeout(this.retryTimer);
        this.retryTimer = setTimeout(() => this.#open(), wait);
    }

    /** Gives up on a run that could not be attached again for a long time. @param {Run} run */
    #expireLost(run) {
        if (run.lostAt || !run.sent) return;
        run.lostAt = performance.now();
        const check = () => {
            if (run.done || !run.lostAt) return;
            if (performance.now() - run.lostAt >= LOST_MAX_MS) {
                run.fail('connection_lost', 'The server could not be reached again.');
            } else setTimeout(check, 1_000);
        };
        setTimeout(check, 1_000);
    }

    /** The socket keeps failing: is the server away, loading, asking for a key, or is it just the
     * WebSocket? */
    async #probe() {
        let status = 0;
        try {
            status = (await this.fetch('v1/models', { cache: 'no-store' })).status;
        } catch {
            status = 0;
        }
        const { state } = this;
        if (state === 'open' || state === 'stopped') return;
        if (status === 401 || status === 403) this.#setState('unauthorised');
        else if (status === 503) this.#setState('loading');
        else if (status < 200 || status >= 300) {
            if (state === 'fallback') this.#setState('retrying');
        } else if (state !== 'fallback' && this.failures >= (this.session ? BLOCKED_AFTER_OPEN : BLOCKED)) {
            this.#setState('fallback');
            for (const id of this.lateCancels) this.#cancelOverHttp(id);
            this.lateCancels.clear();
            this.#attachAll();
        }
        if (state === 'fallback' && this.state !== state && !this.socket) this.#openLater();
    }

    /** Says something that is no run: uploads. @param {object} message */
    sendMessage(message) {
        this.#send(message);
    }

    /** @param {Uint8Array} data */
    sendBinary(data) {
        if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(data);
    }

    /** @param {object} message */
    #send(message) {
        if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
    }

    /** @param {Run} run */
    #sendCreate(run) {
        const text = JSON.stringify({
            on_disconnect: 'continue',
            ...run.body,
            type: 'response.create',
            event_id: run.eventId,
            stream_id: run.streamId,
        });
        const limit = this.session?.limits?.max_text_frame ?? DEFAULT_TEXT_FRAME;
        if (text.length * 1.02 > limit) {
            // Many images: the HTTP body may be larger than a frame.
            this.#overHttp(run);
            return;
        }
        run.sent = true;
        this.socket?.send(text);
    }

    /** @param {Run} run */
    #sendResume(run) {
        this.#send({
            type: 'response.resume',
            event_id: run.eventId,
            stream_id: run.streamId,
            response_id: run.responseId,
            starting_after: run.lastSeq,
        });
    }

    /** @param {any} event @returns {Run|undefined} */
    #runOf(event) {
        const responseId = event.response_id ?? event.response?.id;
        const eventId = event.error?.event_id ?? event.event_id;
        for (const run of this.runs) {
            if (event.stream_id && event.stream_id === run.streamId) return run;
            if (responseId && responseId === run.responseId) return run;
            if (event.type === 'error' && eventId && eventId === run.eventId) return run;
        }
        // A server that names nothing can only mean the one that waits.
        const open = [...this.runs].filter((run) => run.sent && !run.abort && !run.responseId);
        const names = event.stream_id || (event.type === 'error' && eventId);
        return !names && open.length === 1 ? open[0] : undefined;
    }

    /** @param {any} event */
    #receive(event) {
        if (event.type === 'pong') {
            this.hearsPongs = true;
            return;
        }
        if (event.type === 'server.status') {
            const loaded = this.server?.state === 'loading' && event.state !== 'loading';
            this.server = { ...this.server, next_model: undefined, ...event };
            // Only a greeting says what the model can do, and this one came before the model was
            // there.
            if (loaded) this.#reopen();
            this.dispatchEvent(new Event('state'));
            return;
        }
        if (event.type === 'session.updated') {
            this.session = event;
            this.server = event.server;
            this.#attachAll(); // what was asked meanwhile
            this.dispatchEvent(new Event('state'));
            return;
        }
        if (event.type === 'history.changed') {
            this.dispatchEvent(new CustomEvent('history', { detail: event }));
            return;
        }
        const ofUpload = event.type.startsWith('upload.') || event.upload_id || event.error?.event_id?.startsWith('u_');
        if (ofUpload) {
            this.dispatchEvent(new CustomEvent('upload', { detail: event }));
            return;
        }
        const run = this.#runOf(event);
        if (run) this.#take(run, event);
    }

    /** @param {Run} run */
    #found(run) {
        if (!run.lostAt) return;
        run.lostAt = 0;
        run.emit({ kind: 'resumed' });
    }

    /** An event of a run, over the socket or over HTTP. @param {Run} run @param {any} event */
    #take(run, event) {
        this.#found(run);
        const responseId = event.response_id ?? event.response?.id;
        if (responseId && !run.responseId) {
            run.responseId = responseId;
            if (run.cancelled && run.abort) this.#cancelOverHttp(responseId);
            run.emit({ kind: 'started', responseId });
        }
        if (typeof event.sequence_number === 'number' && event.type !== 'error') {
            if (event.type !== 'response.snapshot' && event.sequence_number <= run.lastSeq) return;
            run.lastSeq = event.sequence_number;
        }
        translate(event, run);
    }

    /** @param {ConnectionState} state */
    #setState(state) {
        if (this.state === state) return;
        this.state = state;
        this.dispatchEvent(new Event('state'));
    }

    // ---- HTTP ----

    /**
     * Asks for a run, or for what of it has not come yet, and reads its events. What is cut goes on
     * by itself.
     * @param {Run} run
     */
    async #overHttp(run) {
        run.sent = true;
        const abort = (run.abort = new AbortController());
        const isLost = await this.#readOverHttp(run, abort.signal).catch(() => true);
        run.abort = null;
        abort.abort();
        if (!isLost || run.done) return;
        if (!run.lostAt) run.emit({ kind: run.responseId ? 'lost' : 'waiting' });
        this.#expireLost(run);
        run.retryTimer = setTimeout(() => this.#attach(run), backoff(run.tries++));
        if (this.state === 'fallback') this.#probe(); // is it this answer, or the whole server?
    }

    /** @param {Run} run @param {AbortSignal} signal @returns {Promise<boolean>} whether it is to be asked for again */
    async #readOverHttp(run, signal) {
        const reply = run.responseId
            ? await this.fetch(`v1/responses/${run.responseId}?stream=true&starting_after=${run.lastSeq}`, { signal, cache: 'no-store' })
            : await this.fetch('v1/responses', {
                  method: 'POST',
                  headers: { 'Content-Type': 'application/json', 'Idempotency-Key': run.eventId },
                  body: JSON.stringify({ ...run.body, store: true, stream: true, return_progress: true }),
                  signal,
              });
        if (!reply.ok || !reply.body) {
            const error = (await reply.json().catch(() => null))?.error;
            const code = error?.code ?? error?.type ?? `http_${reply.status}`;
            // Nothing runs yet, or a proxy could not reach the server.
            if (/^(model_loading|server_draining|http_50[234])$/.test(code)) {
                run.sent = !!run.responseId;
                return true;
            }
            if (code === 'idempotency_key_reused') {
                run.eventId = newId('e_'); // after a reload it is asked with other words
                return true;
            }
            run.fail(code, error?.message ?? '', reply.status);
            return false;
        }
        this.#found(run);
        await readEventStream(reply.body, (data) => {
            run.tries = 0;
            this.#take(run, JSON.parse(data));
            return run.done;
        });
        return true;
    }
}

/**
 * One event of the WebSocket protocol to a RunEvent. Unknown types are ignored, as the protocol
 * demands.
 * @param {any} event @param {Run} run
 */
function translate(event, run) {
    switch (event.type) {
        case 'response.queued':
            run.emit({ kind: 'queued', position: event.queue_position ?? 0, etaMs: event.eta_ms });
            break;
        case 'response.progress':
            run.emit({
                kind: 'progress',
                phase: event.phase,
                processed: event.processed ?? 0,
                total: event.total ?? 0,
                unit: event.unit,
                etaMs: event.eta_ms,
                cached: event.cached,
            });
            break;
        case 'response.reasoning_text.delta':
            run.emit({ kind: 'reasoning', delta: event.delta ?? '' });
            break;
        case 'response.output_text.delta':
            run.emit({ kind: 'text', delta: event.delta ?? '' });
            break;
        case 'response.output_item.added':
        case 'response.output_item.done':
            if (isCall(event.item)) run.emit({ kind: 'tool', ...toolOf(event.item) });
            else if (event.item?.type === 'function_call_output') run.emit(outputOf(event.item));
            break;
        case 'response.function_call_arguments.delta':
            run.emit({ kind: 'tool-arguments', id: event.item_id, delta: event.delta ?? '' });
            break;
        case 'response.mcp_call.progress':
            run.emit({ kind: 'tool', id: event.item_id, progress: event.progress, note: event.message });
            break;
        case 'response.stats':
            run.emit({ kind: 'stats', timings: event.timings ?? {}, context: event.context });
            break;
        case 'response.snapshot':
            run.emit({ kind: 'reset', ...outputText(event.response) });
            if (/^(completed|incomplete|cancelled|failed)$/.test(event.response?.status)) {
                run.emit(endOf(event.response));
            }
            break;
        case 'response.completed':
        case 'response.incomplete':
        case 'response.failed':
            run.emit(endOf({ status: event.type.slice('response.'.length), ...event.response }));
            break;
        case 'error': {
            const error = event.error ?? event;
            run.fail(error.code ?? error.type ?? 'server_error', error.message ?? '', event.status);
            break;
        }
    }
}

/** @param {any} response @returns {RunEvent} */
function endOf(response) {
    const error = response.error;
    return {
        kind: 'end',
        status: response.status ?? 'completed',
        reason: response.incomplete_details?.reason,
        error: error ? { code: error.code ?? error.type ?? 'server_error', message: error.message ?? '' } : undefined,
        timings: response.timings,
        usage: response.usage,
        model: response.model,
    };
}

const isCall = (item) => /^(function_call|mcp_call|mcp_approval_request)$/.test(item?.type);

/** @param {any} item a call of a tool, by the program that asked or by the server, or one that a person is asked about */
function toolOf(item) {
    const { id = item.call_id ?? '', name = '', arguments: given = '', server_label: server, status } = item;
    const call = { id, callId: item.call_id, name, arguments: given };
    if (!server) return call;
    if (item.type !== 'mcp_call') return { ...call, server, approvalId: id };
    const run = { ...call, server, approvalId: item.approval_request_id ?? undefined };
    if (status === 'in_progress') return run;
    return { ...run, output: item.output ?? item.error ?? '', failed: status === 'failed', ms: item.duration_ms, images: item.images };
}

/** @param {any} item of type function_call_output @returns {RunEvent} */
function outputOf(item) {
    const { output = '' } = item;
    return {
        kind: 'tool-output',
        callId: item.call_id ?? '',
        output: typeof output === 'string' ? output : JSON.stringify(output),
        failed: item.status === 'failed' || item.status === 'incomplete',
    };
}

/** All text, reasoning and tool calls of a response object. @param {any} response */
export function outputText(response) {
    let text = '';
    let reasoning = '';
    const tools = [];
    for (const item of response?.output ?? []) {
        if (isCall(item)) tools.push({ ...toolOf(item), at: text.length });
        else if (item.type === 'function_call_output') {
            const { callId, output, failed } = /** @type {any} */ (outputOf(item));
            const tool = tools.find((one) => one.callId === callId);
            if (tool) Object.assign(tool, { output, failed });
        }
        for (const part of item.content ?? []) {
            if (item.type === 'reasoning') reasoning += part.text ?? '';
            else if (part.type === 'output_text') text += part.text ?? '';
        }
    }
    return { text, reasoning, tools };
}

/**
 * Feeds every `data:` line of an event stream to `onData`, until it returns true or the stream
 * ends.
 * @param {ReadableStream<Uint8Array>} body @param {(data: string) => boolean} onData
 */
export async function readEventStream(body, onData) {
    const reader = body.getReader();
    const decoder = new TextDecoder();
    let rest = '';
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        rest += decoder.decode(value, { stream: true });
        let end;
        while ((end = rest.indexOf('\n')) >= 0) {
            const line = rest.slice(0, end).replace(/\r$/, '');
            rest = rest.slice(end + 1);
            if (line.startsWith('data:') && onData(line.slice(5).trimStart())) return;
        }
    }
}
