/**
 * Chats that the server keeps (`--history`), with the verbs of History. A write sends what changed since the last one, with
 * the revision it stands on; where another device was faster, its changes are taken in first: messages are only ever added,
 * so nothing is overwritten. What cannot be sent waits in IndexedDB (the outbox) and goes when the server is back.
 *
 *     const history = await new ServerHistory(chat, local, outbox).begin();   // by openHistory, and only fetched then
 */
import { summaryOf } from './history.js';

/** @typedef {import('./store.js').Conversation} Conversation */
/** @typedef {import('./store.js').Message} Message */
/** @typedef {import('./history.js').History} History */
/**
 * What the server has of a chat, each value as JSON. settled: answers that another device has seen end.
 * @typedef {{revision: number, fields: Record<string, string>, messages: Map<string, string>, settled: Set<string>}} Known
 */

const CHAT_MS = 20_000;
const FILE_MS = 600_000;
const RETRY_MS = 10_000;
const TRIES = 6;
const PAGE = 500;
const REMOVED_KEY = 'parley.removed';
const NOTHING = { title: '""', head: 'null', options: '{}' };

export class ServerHistory {
    /** @param {import('./chat.js').Chat} chat @param {History} local @param {History} outbox */
    constructor(chat, local, outbox) {
        Object.assign(this, { chat, local, outbox });
        this.available = this.remote = true;
        /** @type {Map<string, Known>} */
        this.known = new Map();
        /** Writes under way, by chat. @type {Map<string, {now: Promise<any>, next?: Promise<any>}>} */
        this.writes = new Map();
        /** Chats in the outbox, and those of them that the server does not have as they are. */
        this.stored = new Set();
        this.waiting = new Set();
        this.trouble = '';
        /** Chats of this browser that could be moved to the server. */
        this.movable = 0;
        this.summaries = [];
    }

    async begin() {
        for (const { id } of await this.outbox.list()) this.stored.add(id), this.waiting.add(id);
        if (!this.chat.settings.get('declinedMove')) this.movable = (await this.local.list()).length;
        const { connection } = this.chat;
        connection.addEventListener('state', () => this.flush());
        connection.addEventListener('history', ({ detail }) => {
            const isNews = detail.deleted || !(detail.revision <= this.known.get(detail.id)?.revision);
            if (isNews && !this.writes.has(detail.id)) this.#lookSoon();
        });
        addEventListener('focus', () => this.#lookSoon());
        this.flush();
        return this;
    }

    #lookSoon() {
        clearTimeout(this.looking);
        this.looking = setTimeout(() => this.chat.refresh(), 150);
    }

    /** @param {string} path @param {string} [method] @param {any} [body] */
    async #call(path, method = 'GET', body, ms = CHAT_MS) {
        const headers = body ? { 'Content-Type': 'application/json' } : {};
        const signal = AbortSignal.timeout(ms);
        const reply = await this.chat.connection.fetch(`v1/history/${path}`, { method, headers, signal, body: body && JSON.stringify(body) });
        if (reply.ok) return reply;
        const { error } = await reply.json().catch(() => ({}));
        throw Object.assign(new Error(error?.message), { status: reply.status });
    }

    async #json(...call) {
        return (await this.#call(...call)).json();
    }

    // ---- reading ----

    async list() {
        try {
            const all = [];
            for (let after = ''; after !== null; ) {
                const page = await this.#json(`chats?limit=${PAGE}${after && `&after=${after}`}`);
                for (const { id, title, updated } of page.data) all.push({ id, title: title || 'New chat', updated, text: title.toLowerCase() });
                after = page.next;
            }
            this.summaries = all;
        } catch {
            // Away: what was known of it.
        }
        const waiting = (await this.outbox.list()).filter(({ id }) => this.waiting.has(id));
        const gone = removedIds();
        const others = this.summaries.filter(({ id }) => !gone.includes(id) && !waiting.some((one) => one.id === id));
        return [...waiting, ...others].sort((a, b) => b.updated - a.updated);
    }

    /** Chats that have all these words. @param {string} query @returns {Promise<Set<string>>} */
    async search(query) {
        const { data } = await this.#json('search', 'POST', { query });
        return new Set(data.map(({ id }) => id));
    }

    /** @param {string} id @returns {Promise<Conversation|null>} */
    async load(id) {
        /** @type {any} */
        const conversation = (this.stored.has(id) && (await this.outbox.load(id))) || { id, title: '', created: 0, updated: 0, head: null, messages: {} };
        const { base } = conversation;
        delete conversation.base;
        this.known.set(id, { ...unknown(), ...base });
        await this.#pull(conversation).catch(() => {});
        return conversation.head ? conversation : null;
    }

    /** Takes in what other devices changed; null if they deleted it. @param {Conversation} conversation @returns {Promise<string[]|null>} */
    async refresh(conversation) {
        const { id } = conversation;
        if (this.waiting.has(id) || this.writes.has(id) || !this.known.has(id)) return [];
        return this.#inTurn(id, () => this.#pull(conversation)).catch((error) => (error.status === 404 ? null : []));
    }

    /** @param {Conversation} conversation @returns {Promise<string[]>} messages that are new or other than before */
    async #pull(conversation) {
        const known = /** @type {Known} */ (this.known.get(conversation.id));
        const theirs = await this.#json(`chats/${conversation.id}?since=${known.revision}`);
        const changed = [];
        for (const message of theirs.messages) {
            const mine = conversation.messages[message.id];
            const runs = !!mine && this.chat.runs.has(mine.id);
            if (message.status !== 'streaming') known.settled.add(message.id);
            // Changed here too, or still coming: this one stands, and goes there with the next write.
            if (runs || (mine && mine.status !== 'streaming' && known.messages.get(mine.id) !== textOf(mine))) continue;
            message.attachments = message.attachments?.map((one) => mine?.attachments?.find(({ id, blob }) => blob && id === one.id) ?? one);
            for (const name of Object.keys(mine ?? {})) delete mine[name];
            conversation.messages[message.id] = Object.assign(mine ?? {}, message);
            changed.push(message.id);
        }
        for (const name of Object.keys(NOTHING)) {
            if (JSON.stringify(fieldsOf(conversation)[name]) === known.fields[name]) conversation[name] = theirs[name];
            known.fields = { ...known.fields, [name]: JSON.stringify(theirs[name]) };
        }
        conversation.created ||= theirs.created;
        conversation.updated = Math.max(conversation.updated, theirs.updated);
        known.revision = theirs.revision;
        await Promise.all(changed.flatMap((id) => conversation.messages[id].attachments ?? []).map((one) => this.#loadFile(one)));
        for (const id of changed) known.messages.set(id, textOf(conversation.messages[id]));
        return changed;
    }

    async #loadFile(attachment) {
        if (attachment.blob) return;
        try {
            const blob = await (await this.#call(`files/${attachment.sha256}`, 'GET', undefined, FILE_MS)).blob();
            attachment.blob = new Blob([blob], { type: attachment.mime });
        } catch {
            attachment.missing = true;
        }
    }

    // ---- writing ----

    /** One write of a chat at a time; what changes meanwhile goes with the next. */
    #inTurn(id, write) {
        const start = () => {
            const done = () => {
                if (!entry.next) this.writes.delete(id);
            };
            const entry = { now: write().finally(done) };
            this.writes.set(id, entry);
            return entry.now;
        };
        const entry = this.writes.get(id);
        return entry ? (entry.next ??= entry.now.then(start, start)) : start();
    }

    /** @param {Conversation} conversation */
    async save(conversation) {
        await this.#inTurn(conversation.id, () => this.#send(conversation));
        return summaryOf(conversation);
    }

    /** @param {Conversation} conversation */
    async #send(conversation) {
        const { id } = conversation;
        try {
            if (!/^(open|fallback|loading)$/.test(this.chat.connection.state)) throw new Error();
            await this.#keepFiles(conversation);
            await this.#put(conversation);
            this.waiting.delete(id);
            // Questions that wait belong to this browser: two devices would ask them twice.
            if (conversation.queue?.length) await this.#store(conversation);
            else if (this.stored.delete(id)) await this.outbox.remove(id);
        } catch (error) {
            await this.#store(conversation);
            this.waiting.add(id);
            this.#failed(error);
        }
        if (!this.waiting.size) this.trouble = '';
        this.chat.dispatchEvent(new Event('list'));
    }

    /** @param {any} error */
    #failed(error) {
        this.trouble = (error.status && error.message) || 'The server is away.';
        clearTimeout(this.retry);
        this.retry = setTimeout(() => this.flush(), RETRY_MS);
    }

    /** @param {Conversation} conversation */
    async #store(conversation) {
        const { revision, fields } = this.known.get(conversation.id) ?? unknown();
        if (!this.outbox.available) throw new Error();
        await this.outbox.save(/** @type {any} */ ({ ...conversation, base: { revision, fields } }));
        this.stored.add(conversation.id);
    }

    /** @param {Conversation} conversation */
    async #put(conversation) {
        const { id } = conversation;
        for (let tries = 1; ; tries += 1) {
            const known = this.known.get(id) ?? unknown();
            this.known.set(id, known);
            const fields = Object.entries(fieldsOf(conversation)).filter(([name, value]) => JSON.stringify(value) !== known.fields[name]);
            // An answer that several devices follow is not unfinished by the slower one.
            const follows = ({ id, status, before }) => status === 'streaming' && !before && known.settled.has(id);
            const own = Object.values(conversation.messages).filter((message) => !follows(message));
            const texts = own.map((message) => [message.id, textOf(message)]);
            const changed = texts.filter(([messageId, text]) => known.messages.get(messageId) !== text);
            if (!fields.length && !changed.length) return;
            const { created, updated } = conversation;
            const messages = changed.map(([, text]) => JSON.parse(text));
            const body = { revision: known.revision, created, updated, ...Object.fromEntries(fields), messages };
            try {
                known.revision = (await this.#json(`chats/${id}`, 'PUT', body)).revision;
                for (const [name, value] of fields) known.fields = { ...known.fields, [name]: JSON.stringify(value) };
                for (const [messageId, text] of changed) known.messages.set(messageId, text);
                return;
            } catch (error) {
                if (tries === TRIES || (error.status !== 409 && error.status !== 404)) throw error;
                // Deleted elsewhere while it is being written here: made anew.
                if (error.status === 404) this.known.delete(id);
                else await this.#pull(conversation);
            }
        }
    }

    /** Sends the files of a chat that the server does not keep yet. @param {Conversation} conversation */
    async #keepFiles(conversation) {
        const files = Object.values(conversation.messages).flatMap(({ attachments = [] }) => attachments);
        const fresh = /** @type {any[]} */ (files.filter((one) => one.blob && !one.sha256));
        if (fresh.length) await this.#store(conversation); // this may take long
        for (const one of fresh) {
            const url = await this.chat.uploads.urlOf(one);
            const file_id = url.startsWith('upload:') ? url.slice(7) : await this.#upload(one);
            one.sha256 = (await this.#json('files', 'POST', { file_id }, FILE_MS)).sha256;
        }
    }

    async #upload({ blob, name }) {
        const form = new FormData();
        form.append('file', blob, name);
        const reply = await this.chat.connection.fetch('v1/files', { method: 'POST', body: form });
        if (!reply.ok) throw new Error();
        return (await reply.json()).id;
    }

    /** @param {string} id */
    async remove(id) {
        this.known.delete(id);
        this.waiting.delete(id);
        if (this.stored.delete(id)) await this.outbox.remove(id);
        keepRemoved([...removedIds(), id]);
        await this.#removeThere(id);
    }

    async #removeThere(id) {
        try {
            await this.#call(`chats/${id}`, 'DELETE');
        } catch (error) {
            if (error.status !== 404) return this.#failed(error);
        }
        keepRemoved(removedIds().filter((other) => other !== id));
    }

    /** Sends what waits. */
    async flush() {
        if (!/^(open|fallback)$/.test(this.chat.connection.state)) return;
        for (const id of removedIds()) await this.#removeThere(id);
        for (const id of [...this.waiting]) {
            const conversation = this.chat.live.get(id) ?? (await this.load(id));
            if (conversation && this.waiting.has(id)) await this.save(conversation);
        }
    }

    /** Brings the chats of this browser to the server. */
    async move() {
        for (const { id } of await this.local.list()) {
            const conversation = await this.local.load(id);
            if (conversation) await this.save(conversation);
            if (!this.waiting.has(id)) await this.local.remove(id);
        }
        this.movable = (await this.local.list()).length;
        await this.chat.refresh();
    }
}

/** @returns {Known} of a chat that the server does not have */
const unknown = () => ({ revision: 0, fields: NOTHING, messages: new Map(), settled: new Set() });
const fieldsOf = ({ title, head, options = {} }) => ({ title, head, options });

/** A message as the server keeps it. @param {Message} message */
function textOf(message) {
    const attachments = message.attachments?.map(({ blob, missing, ...rest }) => (missing && !(/** @type {any} */ (rest).sha256) ? { ...rest, missing } : rest));
    return JSON.stringify({ ...message, attachments });
}

/** Chats whose deletion the server was not told yet. @returns {string[]} */
function removedIds() {
    try {
        return JSON.parse(localStorage.getItem(REMOVED_KEY) ?? '[]');
    } catch {
        return [];
    }
}

function keepRemoved(ids) {
    try {
        localStorage.setItem(REMOVED_KEY, JSON.stringify([...new Set(ids)]));
    } catch {
        // No storage: it holds until the page is closed.
    }
}
