/**
 * Conversations in IndexedDB, the same for all tabs of a browser. A message is a record of its own,
 * and each write is one transaction that takes in first what other tabs wrote (merge.js), so that
 * no tab overwrites another; the others hear of it over a channel. Files lie in a store of their
 * own, written once and deleted with the last message that names them. Where there is no IndexedDB
 * (private windows of some browsers) everything works but nothing is kept.
 *
 *     const history = await History.open();
 *     history.listen((ids) => ...);                        // chats that another tab wrote or deleted
 *     const { summary, changed } = await history.save(conversation);
 *     const list = await history.list();                   // newest first, without messages
 *     const conversation = await history.load(id);
 *     const changed = await history.refresh(conversation);
 *
 * Another place to keep chats is a class with the same verbs and `available`, given to Chat as
 * `openHistory`; what a chat is, store.js says. history_server.js is one, fetched where the server
 * says that it keeps chats.
 *
 * @typedef {import('./store.js').Conversation} Conversation
 * @typedef {import('./merge.js').Known} Known
 * @typedef {{id: string, title: string, updated: number, text: string, place?: import('./store.js').Place}} Summary  text: what is searched
 * @typedef {{summary: Summary|null, changed: string[]}} Saved
 *   summary: null for a chat that was deleted elsewhere and has nothing new; changed: messages that
 *   others wrote
 */
import { t } from '../language.js';
import { NOTHING, bare, changesOf, copyOf, hasNews, noteKept, takeIn, unknown } from './merge.js';
import { attachmentsOf } from './store.js';
import { newId } from '../util.js';

const NAME = 'parley';
const VERSION = 2;
const SEARCH_TEXT_MAX = 20_000;
const STORES = ['chats', 'messages', 'summaries', 'media', 'counter'];
const FIELDS = { ...NOTHING, queue: '[]' };

/** @template T @param {IDBRequest<T>} request @returns {Promise<T>} */
function result(request) {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
}

/** @param {IDBTransaction} transaction @returns {Promise<void>} */
function finished(transaction) {
    return new Promise((resolve, reject) => {
        transaction.oncomplete = () => resolve();
        transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
}

/** All messages of a chat, or those behind a revision. @param {string} id
 * @param {number} [revision] */
const newer = (id, revision = 0) => IDBKeyRange.bound([id, revision], [id, Infinity], true);

export class History {
    /** @param {IDBDatabase|null} db @param {string} [name] */
    constructor(db, name = NAME) {
        this.db = db;
        /** What is kept of each conversation, as the holder of that object knows it.
         * @type {WeakMap<Conversation, Known>} */
        this.known = new WeakMap();
        /** @type {Map<string, {cancel: () => void}>} answers that are coming in this tab */
        this.runs = new Map();
        this.channel = db && new BroadcastChannel(name);
    }

    static async open(name = NAME) {
        try {
            const request = indexedDB.open(name, VERSION);
            request.onupgradeneeded = ({ oldVersion }) => {
                const { result: db, transaction } = request;
                if (oldVersion < 1) {
                    db.createObjectStore('summaries', { keyPath: 'id' });
                    db.createObjectStore('media', { keyPath: 'id' });
                }
                db.createObjectStore('chats', { keyPath: 'id' });
                db.createObjectStore('messages', { keyPath: ['chat', 'id'] }).createIndex('newer', ['chat', 'revision']);
                db.createObjectStore('counter').put(1, 'revision');
                if (oldVersion === 1) splitChats(db, /** @type {IDBTransaction} */ (transaction));
            };
            const db = await result(request);
            db.onversionchange = () => db.close();
            return new History(db, name);
        } catch {
            return new History(null);
        }
    }

    get available() {
        return this.db !== null;
    }

    /** @param {(ids: string[]) => void} heard */
    listen(heard) {
        if (this.channel) this.channel.onmessage = ({ data }) => heard([data]);
    }

    /** The chats; given `before` and `ids`, that list with these anew. @param {Summary[]} [before]
     * @param {string[]} [ids] @returns {Promise<Summary[]>} */
    async list(before = [], ids) {
        if (!this.db) return before;
        const summaries = this.db.transaction('summaries').objectStore('summaries');
        const fresh = ids ? await Promise.all(ids.map((id) => result(summaries.get(id)))) : await result(summaries.getAll());
        const others = ids ? before.filter(({ id }) => !ids.includes(id)) : [];
        return [...fresh.filter(Boolean), ...others].sort((a, b) => b.updated - a.updated);
    }

    /**
     * One transaction: all of what `work` does, or nothing of it.
     * @template T @param {(stores: Record<string, IDBObjectStore>) => Promise<T>} work @param {IDBTransactionMode} mode @returns {Promise<T>}
     */
    async #inOne(work, mode = 'readwrite') {
        const transaction = /** @type {IDBDatabase} */ (this.db).transaction(STORES, mode);
        const end = finished(transaction);
        end.catch(() => {}); // thrown below
        try {
            const done = await work(Object.fromEntries(STORES.map((name) => [name, transaction.objectStore(name)])));
            await end;
            return done;
        } catch (error) {
            if (!transaction.error) {
                try {
                    transaction.abort();
                } catch {
                    // It is over already.
                }
            }
            throw transaction.error ?? error;
        }
    }

    /** Takes in what others wrote. @param {Conversation} conversation @param {Known} known
     * @param {any} chat its record */
    async #take(stores, conversation, known, chat) {
        if (chat.revision <= known.revision) return [];
        const read = async (revision) => {
            const records = await result(stores.messages.index('newer').getAll(newer(chat.id, revision)));
            const theirs = { ...chat, messages: records.map(({ message }) => message) };
            const here = new Map(attachmentsOf(conversation).filter(({ blob }) => blob).map((one) => [one.id, one.blob]));
            await Promise.all([...theirs.messages, ...theirs.queue].flatMap(({ attachments = [] }) => attachments).map(async (one) => {
                const blob = here.get(one.id) ?? (await result(stores.media.get(one.id)))?.blob;
                if (blob) Object.assign(one, { blob }), known.files.add(one.id);
                else one.missing = true;
            }));
            return takeIn(conversation, known, theirs, this.runs);
        };
        const changed = await read(known.revision);
        if (known.messages.size <= chat.n_messages) return changed;
        // It was deleted in between, and made anew with less.
        known.messages.clear();
        return [...changed, ...(await read(0))];
    }

    /**
     * Writes what changed. @param {Conversation} conversation
     * @param {{revision: number, fields: Record<string, string>, waits: boolean}} [base]
     *   what the server has of a chat that is kept here until it has all of it
     * @returns {Promise<Saved>}
     */
    async save(conversation, base) {
        if (!this.db) return { summary: summaryOf(conversation), changed: [] };
        const { id } = conversation;
        let known;
        const saved = await this.#inOne(async (stores) => {
            const chat = await result(stores.chats.get(id));
            // Not before: what a write of this tab that has just ended wrote is not from elsewhere.
            known = copyOf(this.known.get(conversation) ?? unknown({ ...FIELDS, ...base?.fields }));
            if (!chat && known.revision && !hasNews(conversation, known)) return { summary: null, changed: [] };
            if (!chat) known = unknown(FIELDS);
            const changed = chat ? await this.#take(stores, conversation, known, chat) : [];
            const changes = changesOf(conversation, known);
            const summary = summaryOf(conversation);
            if (chat && !changes && !base) return { summary, changed };
            await this.#write(stores, conversation, known, changes ?? { fields: [], messages: [] }, base);
            stores.summaries.put({ ...summary, ...(base ? { waits: base.waits } : {}) });
            return { summary, changed };
        });
        if (saved.summary) {
            this.known.set(conversation, known);
            this.channel?.postMessage(id);
        }
        return saved;
    }

    /** One counter for all chats: a revision never comes again, also of a chat that was deleted and
     * made anew. */
    async #nextRevision({ counter }) {
        const revision = (await result(counter.get('revision'))) + 1;
        counter.put(revision, 'revision');
        return revision;
    }

    async #write(stores, conversation, known, changes, base) {
        const { id, title, created, updated, head, options = {}, place = {}, queue = [] } = conversation;
        const revision = await this.#nextRevision(stores);
        for (const [messageId, text] of changes.messages) stores.messages.put({ chat: id, id: messageId, revision, message: JSON.parse(text) });
        const files = attachmentsOf(conversation);
        for (const { id: file, blob } of files) if (blob && !known.files.has(file)) stores.media.put({ id: file, blob }), known.files.add(file);
        const named = new Set(files.map((one) => one.id));
        for (const file of known.files) if (!named.has(file)) stores.media.delete(file), known.files.delete(file);
        noteKept(known, changes, revision);
        const n_messages = known.messages.size;
        stores.chats.put({ id, title, created, updated, head, options, place, queue: queue.map(bare), revision, n_messages, ...(base ? { base } : {}) });
    }

    /**
     * Takes in what other tabs wrote. @param {Conversation} conversation
     * @param {{fields: Record<string, string>}} [base] see save
     * @returns {Promise<string[]|null>} messages that are new or other than before; null: the chat was deleted
     */
    async refresh(conversation, base) {
        if (!this.db || !(base || this.known.has(conversation))) return [];
        return this.#inOne(async (stores) => {
            const chat = await result(stores.chats.get(conversation.id));
            const known = this.known.get(conversation) ?? unknown({ ...FIELDS, ...base?.fields });
            if (!chat) return hasNews(conversation, known) ? [] : null;
            this.known.set(conversation, known);
            return this.#take(stores, conversation, known, chat);
        }, 'readonly');
    }

    /** Whether a chat has messages that are still to be kept. @param {Conversation} conversation */
    isAhead(conversation) {
        return hasNews(conversation, this.known.get(conversation) ?? unknown(FIELDS));
    }

    /** @param {string} id @returns {Promise<Conversation|null>} */
    async load(id) {
        if (!this.db) return null;
        return this.#inOne(async (stores) => {
            const chat = await result(stores.chats.get(id));
            if (!chat) return null;
            /** @type {Conversation} */
            const conversation = { id, title: '', created: 0, updated: 0, head: null, messages: {}, ...(chat.base ? { base: chat.base } : {}) };
            const known = unknown(FIELDS);
            await this.#take(stores, conversation, known, chat);
            this.known.set(conversation, known);
            return conversation;
        }, 'readonly');
    }

    /**
     * Deletes a chat, unless somebody wrote to it meanwhile: that is taken in. What is given stays
     * whole in memory, so that saving it brings it back.
     * @param {Conversation} conversation @returns {Promise<boolean>} whether it is deleted
     */
    async remove(conversation) {
        if (!this.db) return true;
        const { id } = conversation;
        const before = sizeOf(conversation);
        const done = await this.#inOne(async (stores) => {
            const chat = await result(stores.chats.get(id));
            const known = this.known.get(conversation) ?? unknown(FIELDS);
            if (!chat) return true;
            await this.#take(stores, conversation, known, chat);
            if (sizeOf(conversation) > before) return false;
            stores.chats.delete(id);
            stores.summaries.delete(id);
            stores.messages.delete(IDBKeyRange.bound([id], [id, []]));
            for (const file of known.files) stores.media.delete(file);
            return true;
        });
        if (done) this.known.delete(conversation);
        this.channel?.postMessage(id);
        return done;
    }

    /** Takes a question from those that wait; false if another tab was faster.
     * @param {Conversation} conversation @param {string} entry its id */
    async takeQueued(conversation, entry) {
        if (!this.db || !this.known.has(conversation)) return true;
        return this.#inOne(async (stores) => {
            const chat = await result(stores.chats.get(conversation.id));
            const queue = chat?.queue.filter(({ id }) => id !== entry);
            if (!chat || queue.length === chat.queue.length) return false;
            stores.chats.put({ ...chat, queue, revision: await this.#nextRevision(stores) });
            return true;
        });
    }
}

/** Messages and waiting questions are only ever added by others.
 * @param {Conversation} conversation */
const sizeOf = ({ messages, queue = [] }) => Object.keys(messages).length + queue.length;

/** What the first form kept as one record each. @param {IDBDatabase} db
 * @param {IDBTransaction} transaction */
function splitChats(db, transaction) {
    transaction.objectStore('conversations').openCursor().onsuccess = ({ target }) => {
        const { result: cursor } = /** @type {IDBRequest<IDBCursorWithValue|null>} */ (target);
        if (!cursor) return db.deleteObjectStore('conversations');
        const { messages, queue = [], options = {}, ...chat } = cursor.value;
        const list = Object.values(messages);
        const waiting = queue.map((one) => ({ id: newId('q_'), ...one }));
        transaction.objectStore('chats').put({ ...chat, options, queue: waiting, revision: 1, n_messages: list.length });
        for (const message of list) transaction.objectStore('messages').put({ chat: chat.id, id: message.id, revision: 1, message });
        cursor.continue();
    };
}

const KEPT_KEY = 'parley.kept';

/** Whether the server kept the chats when it was heard last. @param {boolean} [now] what it says */
function keptBefore(now) {
    try {
        if (now !== undefined) localStorage.setItem(KEPT_KEY, String(now));
        return localStorage.getItem(KEPT_KEY) === 'true';
    } catch {
        return false;
    }
}

/** Where chats are kept: by the server, or here. @param {import('./chat.js').Chat} chat
 * @returns {Promise<any>} */
export async function openHistory(chat) {
    const local = await History.open();
    const reply = await chat.connection.fetch('v1/history').catch(() => null);
    const isKept = reply?.ok ? !!(await reply.json().catch(() => ({}))).enabled : !reply && keptBefore();
    if (reply?.ok) keptBefore(isKept);
    if (isKept) {
        const { ServerHistory } = await import('./history_server.js');
        return new ServerHistory(chat, local, await History.open('parley-outbox')).begin();
    }
    local.runs = chat.runs;
    local.listen((ids) => chat.refresh(ids));
    // Without a key, or without the server, it is not known yet.
    return Object.assign(local, { unsure: !reply || (!reply.ok && reply.status !== 404) });
}

/** @param {Conversation} conversation @returns {Summary} */
export function summaryOf(conversation) {
    let text = conversation.title;
    for (const message of Object.values(conversation.messages)) {
        if (text.length > SEARCH_TEXT_MAX) break;
        text += `\n${message.text}`;
    }
    return {
        id: conversation.id,
        title: conversation.title || t`New chat`,
        updated: conversation.updated,
        text: text.slice(0, SEARCH_TEXT_MAX),
        ...(conversation.place && Object.keys(conversation.place).length ? { place: conversation.place } : {}),
    };
}
