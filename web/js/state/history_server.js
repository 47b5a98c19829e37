/**
 * Chats that the server keeps (`--history`), with the verbs of History. A write sends what changed
 * since the last one, with the revision it stands on; where another device was faster, its changes
 * are taken in first: messages are only ever added, so nothing is overwritten. What cannot be sent
 * waits in IndexedDB (the outbox) and goes when the server is back; a copy there can be read
 * meanwhile.
 *
 *     const history = await new ServerHistory(chat, local, outbox).begin();   // by openHistory, and only fetched then
 */
import { t } from '../language.js';
import { summaryOf } from './history.js';
import { changesOf, hasNews, noteKept, takeIn, unknown } from './merge.js';
import { OfflineCopy } from './offline_copy.js';
import { readPlace } from './store.js';

/** @typedef {import('./store.js').Conversation} Conversation */
/** @typedef {import('./history.js').History} History */
/** @typedef {import('./merge.js').Known} Known */

const CHAT_MS = 20_000;
const FILE_MS = 600_000;
const RETRY_MS = 10_000;
const LOOK_MS = 150;
const TRIES = 6;
const PAGE = 500;
const REMOVED_KEY = 'parley.removed';

export class ServerHistory {
    /** @param {import('./chat.js').Chat} chat @param {History} local @param {History} outbox */
    constructor(chat, local, outbox) {
        Object.assign(this, { chat, local, outbox });
        this.available = this.remote = true;
        /** What the server has of each conversation, as the holder of that object knows it.
         * @type {WeakMap<Conversation, Known>} */
        this.known = new WeakMap();
        /** Reads and writes under way, by chat.
         * @type {Map<string, {key: any, done: Promise<any>}[]>} */
        this.writes = new Map();
        /** Chats that changed elsewhere, with their revisions there.
         * @type {Map<string|null, number>} */
        this.news = new Map();
        /** Chats in the outbox, and those of them that the server does not have as they are. */
        this.stored = new Set();
        this.waiting = new Set();
        this.trouble = '';
        /** Chats of this browser that could be moved to the server. */
        this.movable = 0;
        /** @type {(import('./history.js').Summary & {revision: number})[]} */
        this.summaries = [];
    }

    async begin() {
        this.copy = await OfflineCopy.open();
        for (const { id } of await this.outbox.list()) this.stored.add(id), this.waiting.add(id);
        if (!this.chat.settings.get('declinedMove')) this.movable = (await this.local.list()).length;
        const { connection } = this.chat;
        connection.addEventListener('state', () => this.flush());
        connection.addEventListener('history', ({ detail }) => {
            this.news.set(detail.id, detail.deleted ? Infinity : detail.revision);
            this.#lookSoon();
        });
        addEventListener('focus', () => {
            this.news.set(null, Infinity);
            this.#lookSoon();
        });
        this.outbox.runs = this.chat.runs;
        this.outbox.listen(([id]) => this.#stored(id));
        this.flush();
        return this;
    }

    /** Another tab of this browser put a chat into the outbox, or took it out. @param {string} id */
    async #stored(id) {
        const [entry] = await this.outbox.list([], [id]);
        entry ? this.stored.add(id) : this.stored.delete(id);
        entry?.waits ? this.waiting.add(id) : this.waiting.delete(id);
        const live = this.chat.live.get(id);
        if (live && !entry) live.queue = [];
        if (entry?.waits) this.#flushLater();
        this.chat.refresh([id]);
    }

    /** Looks at what was heard of, unless it was this device's own doing. */
    #lookSoon() {
        clearTimeout(this.looking);
        this.looking = setTimeout(() => {
            const isNew = ([id, revision]) => !(revision <= this.known.get(this.chat.live.get(id))?.revision);
            const news = [...this.news].filter(isNew);
            this.news = new Map(news.filter(([id]) => this.writes.has(id)));
            if (this.news.size) this.#lookSoon();
            if (this.news.size < news.length) this.chat.refresh();
        }, LOOK_MS);
    }

    /** @param {string} path @param {string} [method] @param {any} [body] */
    async #call(path, method = 'GET', body, ms = CHAT_MS) {
        const headers = body ? { 'Content-Type': 'application/json' } : {};
        const signal = AbortSignal.timeout(ms);
        const reply = await this.chat.connection.fetch(`v1/history/${path}`, { method, headers, signal, body: body && JSON.stringify(body) });
        if (reply.ok) return reply;
        const { error } = await reply.json().catch(() => ({}));
        throw Object.assign(new Error(error?.message), { status: reply.status, code: error?.code });
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
                for (const { id, title, updated, revision, place } of page.data) all.push({ id, title: title || t`New chat`, updated, revision, text: title, ...(place ? { place: readPlace(place) } : {}) });
                after = page.next;
            }
            this.summaries = all;
            this.copy.putList(all);
        } catch {
            // Away: what was known of it.
            if (!this.summaries.length) this.summaries = await this.copy.list();
        }
        const waiting = (await this.outbox.list()).filter(({ id }) => this.waiting.has(id));
        const gone = removed();
        const others = this.summaries.filter(({ id }) => !(id in gone) && !waiting.some((one) => one.id === id));
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
        this.known.set(conversation, { ...unknown(), ...base });
        try {
            await this.#pull(conversation);
            this.copy.put(conversation);
        } catch (error) {
            if (!error.status && !conversation.head) return this.#loadCopy(id);
        }
        return conversation.head ? conversation : null;
    }

    /** What this browser saw of a chat last; what the server has beyond it is taken in when it is back.
     * @param {string} id @returns {Promise<Conversation|null>} */
    async #loadCopy(id) {
        const conversation = await this.copy.get(id);
        if (!conversation) return null;
        const seen = unknown();
        const changes = changesOf(conversation, seen) ?? { fields: [], messages: [] };
        noteKept(seen, changes, 0);
        this.known.set(conversation, seen);
        return conversation;
    }

    /** Takes in what other devices changed; null if they deleted it.
     * @param {Conversation} conversation @returns {Promise<string[]|null>} */
    async refresh(conversation) {
        const { id } = conversation;
        const known = this.known.get(conversation);
        if (!known || this.writes.has(id)) return [];
        const stored = this.stored.has(id) ? ((await this.outbox.refresh(conversation, known)) ?? []) : [];
        if (this.waiting.has(id)) return stored;
        const pulled = await this.#inTurn(id, () => this.#pull(conversation)).catch((error) => (error.status === 404 && !hasNews(conversation, known) ? null : []));
        return pulled && [...stored, ...pulled];
    }

    /** See History.isAhead. @param {Conversation} conversation */
    isAhead(conversation) {
        return hasNews(conversation, this.known.get(conversation) ?? unknown());
    }

    /** @param {Conversation} conversation @returns {Promise<string[]>} messages that are new or other than before */
    async #pull(conversation) {
        const known = /** @type {Known} */ (this.known.get(conversation));
        const path = `chats/${conversation.id}?since=`;
        let theirs = await this.#json(path + known.revision);
        const changed = takeIn(conversation, known, apart(theirs), this.chat.runs);
        if (known.messages.size > theirs.n_messages) {
            // It was deleted in between, and made anew with less.
            theirs = await this.#json(`${path}0`);
            known.messages.clear();
            changed.push(...takeIn(conversation, known, apart(theirs), this.chat.runs));
        }
        await Promise.all(changed.flatMap((id) => conversation.messages[id].attachments ?? []).map((one) => this.#loadFile(one)));
        return changed;
    }

    async #loadFile(attachment) {
        if (attachment.blob) return;
        if (!attachment.sha256) {
            attachment.missing = true; // it was missing where it was written, too
            return;
        }
        try {
            const blob = await (await this.#call(`files/${attachment.sha256}`, 'GET', undefined, FILE_MS)).blob();
            attachment.blob = new Blob([blob], { type: attachment.mime });
        } catch {
            attachment.missing = true;
        }
    }

    // ---- writing ----

    /** One after the other for a chat; what waits under the same key is done once. */
    #inTurn(id, work, key = {}) {
        const turns = this.writes.get(id) ?? [];
        const last = turns.at(-1);
        if (turns.length > 1 && last?.key === key) return last.done;
        const done = (last?.done ?? Promise.resolve()).then(work, work).finally(() => {
            turns.shift();
            if (!turns.length) this.writes.delete(id);
        });
        turns.push({ key, done });
        this.writes.set(id, turns);
        return done;
    }

    /** @param {Conversation} conversation @returns {Promise<import('./history.js').Saved>} */
    async save(conversation) {
        if (!conversation.head) return forget(conversation.id), { summary: this.summaries.find(({ id }) => id === conversation.id), changed: [] };
        const changed = await this.#inTurn(conversation.id, () => this.#send(conversation), conversation);
        return { summary: changed && summaryOf(conversation), changed: changed ?? [] };
    }

    /** @param {Conversation} conversation @returns {Promise<string[]|null>} what other devices changed; null: they deleted it */
    async #send(conversation) {
        const { id } = conversation;
        /** @type {string[]|null} */
        let changed = [];
        forget(id);
        try {
            if (!/^(open|fallback|loading)$/.test(this.chat.connection.state)) throw new Error();
            if (this.stored.has(id)) changed = (await this.outbox.refresh(conversation, this.known.get(conversation) ?? unknown())) ?? [];
            await this.#keepFiles(conversation);
            changed = await this.#put(conversation, changed);
            this.waiting.delete(id);
            // Questions that wait belong to this browser: two devices would ask them twice.
            if (changed && conversation.queue?.length) await this.#store(conversation, false);
            else if (this.stored.delete(id) && !(await this.outbox.remove(conversation))) this.#stored(id); // another tab was there
        } catch (error) {
            await this.#store(conversation, true);
            this.waiting.add(id);
            this.#failed(error);
        }
        if (!this.waiting.size) this.trouble = '';
        this.chat.dispatchEvent(new Event('list'));
        return changed;
    }

    /** @param {any} error */
    #failed(error) {
        this.trouble = (error.status && error.message) || t`The server is away.`;
        this.#flushLater();
    }

    #flushLater() {
        clearTimeout(this.retry);
        this.retry = setTimeout(() => this.flush(), RETRY_MS);
    }

    /** @param {Conversation} conversation @param {boolean} waits whether the server lacks something of it */
    async #store(conversation, waits) {
        const { revision, fields } = this.known.get(conversation) ?? unknown();
        if (!this.outbox.available) throw new Error();
        const { summary } = await this.outbox.save(conversation, { revision, fields, waits });
        if (!summary) {
            // Another tab took it out.
            this.outbox.known.delete(conversation);
            await this.outbox.save(conversation, { revision, fields, waits });
        }
        this.stored.add(conversation.id);
    }

    /** @param {Conversation} conversation @param {string[]} taken @returns {Promise<string[]|null>} see #send */
    async #put(conversation, taken) {
        const { id, created } = conversation;
        for (let tries = 1; ; tries += 1) {
            const known = this.known.get(conversation) ?? unknown();
            this.known.set(conversation, known);
            const changes = changesOf(conversation, known);
            if (!changes) return taken;
            const { updated } = conversation;
            const fields = together(Object.fromEntries(changes.fields.map(([name, value]) => [name, JSON.parse(value)])), conversation);
            const messages = changes.messages.map(([, text]) => JSON.parse(text));
            try {
                const { revision } = await this.#json(`chats/${id}`, 'PUT', { revision: known.revision, created, updated, ...fields, messages });
                noteKept(known, changes, revision);
                if (Object.values(conversation.messages).every(({ status }) => status !== 'streaming')) this.copy.put(conversation);
                return taken;
            } catch (error) {
                if (tries === TRIES) throw error;
                if (error.status === 409) taken = [...taken, ...(await this.#pull(conversation).catch(() => []))];
                else if (error.code === 'file_not_found') await this.#keepFiles(conversation, true);
                else if (error.code !== 'chat_not_found') throw error;
                else if (!hasNews(conversation, known)) return null;
                // Deleted elsewhere while it is being written here: made anew.
                else this.known.delete(conversation);
            }
        }
    }

    /**
     * Sends the files of a chat that the server does not keep yet.
     * @param {Conversation} conversation @param {boolean} [again] it may have lost those that it kept
     */
    async #keepFiles(conversation, again = false) {
        const files = /** @type {any[]} */ (Object.values(conversation.messages).flatMap(({ attachments = [] }) => attachments));
        for (const one of again ? files : []) {
            await this.#loadFile(one);
            if (one.missing) delete one.sha256;
        }
        const fresh = files.filter((one) => one.blob && (again || !one.sha256));
        if (fresh.length) await this.#store(conversation, false); // this may take long
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

    /** @param {Conversation} conversation @returns {Promise<boolean>} whether it is deleted, or will be; see History.remove */
    async remove(conversation) {
        const { id } = conversation;
        const known = this.known.get(conversation) ?? this.summaries.find((one) => one.id === id);
        keepRemoved({ ...removed(), [id]: known?.revision ?? 0 });
        const before = Object.keys(conversation.messages).length;
        if (!conversation.head) return this.#flushLater(), true; // it could not be read, so it could not be made anew
        return this.#inTurn(id, async () => {
            while (!(await this.#removeThere(id))) {
                // Changed meanwhile. What others wrote stays; what only grew or ended does not.
                const isThere = await this.#pull(conversation).then(() => true, (error) => error.status !== 404);
                if (Object.keys(conversation.messages).length > before) return false;
                if (!isThere) break;
                keepRemoved({ ...removed(), [id]: this.known.get(conversation)?.revision ?? 0 });
            }
            this.known.delete(conversation);
            this.waiting.delete(id);
            if (this.stored.delete(id)) await this.outbox.remove(conversation);
            return true;
        });
    }

    /** @param {string} id @returns {Promise<boolean>} false: another device changed it, and it stays */
    async #removeThere(id) {
        const revision = removed()[id];
        if (revision === undefined) return true; // another tab was faster
        try {
            await this.#call(`chats/${id}${revision === null ? '' : `?revision=${revision}`}`, 'DELETE');
        } catch (error) {
            if (error.status === 409) return forget(id), false;
            if (error.status !== 404) return this.#failed(error), true;
        }
        forget(id);
        return true;
    }

    /** See History.takeQueued. @param {Conversation} conversation @param {string} entry */
    takeQueued(conversation, entry) {
        return this.outbox.takeQueued(conversation, entry);
    }

    /** Sends what waits. */
    async flush() {
        if (!/^(open|fallback)$/.test(this.chat.connection.state)) return;
        for (const id of Object.keys(removed())) if (!this.writes.has(id) && !(await this.#removeThere(id))) this.chat.refresh();
        for (const id of [...this.waiting]) {
            const conversation = this.chat.live.get(id) ?? (await this.load(id));
            if (conversation && this.waiting.has(id)) await this.save(conversation);
        }
    }

    /** Brings the chats of this browser to the server. */
    async move() {
        for (const { id } of await this.local.list()) {
            const conversation = await this.local.load(id);
            if (!conversation) continue;
            await this.save(conversation);
            if (!this.waiting.has(id)) await this.local.remove(conversation);
        }
        this.movable = (await this.local.list()).length;
        await this.chat.refresh();
    }
}

/** The server keeps the place of a chat among its options. @param {any} theirs */
function apart({ options: { place, ...options } = /** @type {any} */ ({}), ...rest }) {
    return { ...rest, options, place: readPlace(place) };
}

/** @param {any} fields that changed @param {Conversation} conversation */
function together({ place, options, ...rest }, conversation) {
    if (!place && !options) return rest;
    const all = { ...(options ?? conversation.options) };
    const where = place ?? conversation.place ?? {};
    return { ...rest, options: Object.keys(where).length ? { ...all, place: where } : all };
}

/** Chats whose deletion the server was not told yet, with the revision they had.
 * @returns {Record<string, number|null>} */
function removed() {
    try {
        const kept = JSON.parse(localStorage.getItem(REMOVED_KEY) ?? '{}');
        return Array.isArray(kept) ? Object.fromEntries(kept.map((id) => [id, null])) : kept; // the first form had no revisions
    } catch {
        return {};
    }
}

function keepRemoved(chats) {
    try {
        localStorage.setItem(REMOVED_KEY, JSON.stringify(chats));
    } catch {
        // No storage: it holds until the page is closed.
    }
}

/** @param {string} id of a chat that is deleted there, or stays */
function forget(id) {
    const { [id]: gone, ...rest } = removed();
    if (gone !== undefined) keepRemoved(rest);
}
