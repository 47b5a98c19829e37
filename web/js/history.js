/**
 * Conversations in IndexedDB. Files lie in a store of their own, written once, so that saving a growing answer stays
 * cheap, and deleted with the last message that names them. Where there is no IndexedDB (private windows of some browsers) everything works but nothing is kept.
 *
 *     const history = await History.open();
 *     await history.save(conversation);
 *     const list = await history.list();        // newest first, without messages
 *     const conversation = await history.load(id);
 *
 * Another place to keep chats is a class with the same five verbs and `available`, given to Chat as `openHistory`; what a
 * chat is, store.js says. history_server.js is one, fetched where the server says that it keeps chats.
 *
 * @typedef {import('./store.js').Conversation} Conversation
 * @typedef {{id: string, title: string, updated: number, text: string}} Summary  text: searched, lower case
 */
import { attachmentsOf } from './store.js';

const NAME = 'parley';
const VERSION = 1;
const SEARCH_TEXT_MAX = 20_000;

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

export class History {
    /** @param {IDBDatabase|null} db */
    constructor(db) {
        this.db = db;
        /** Files that are stored already, by conversation. @type {Map<string, Set<string>>} */
        this.storedMedia = new Map();
    }

    /** @param {string} id of a conversation */
    #mediaOf(id) {
        const known = this.storedMedia.get(id) ?? new Set();
        this.storedMedia.set(id, known);
        return known;
    }

    static async open(name = NAME) {
        try {
            const request = indexedDB.open(name, VERSION);
            request.onupgradeneeded = () => {
                request.result.createObjectStore('conversations', { keyPath: 'id' });
                request.result.createObjectStore('summaries', { keyPath: 'id' });
                request.result.createObjectStore('media', { keyPath: 'id' });
            };
            const db = await result(request);
            db.onversionchange = () => db.close();
            return new History(db);
        } catch {
            return new History(null);
        }
    }

    get available() {
        return this.db !== null;
    }

    /** @returns {Promise<Summary[]>} */
    async list() {
        if (!this.db) return [];
        const all = await result(this.db.transaction('summaries').objectStore('summaries').getAll());
        return all.sort((a, b) => b.updated - a.updated);
    }

    /** @param {Conversation} conversation @returns {Promise<Summary>} */
    async save(conversation) {
        const summary = summaryOf(conversation);
        if (!this.db) return summary;
        const transaction = this.db.transaction(['conversations', 'summaries', 'media'], 'readwrite');
        const known = this.#mediaOf(conversation.id);
        const files = attachmentsOf(conversation);
        const added = files.filter(({ id, blob }) => blob && !known.has(id));
        for (const { id, blob } of added) {
            transaction.objectStore('media').put({ id, conversation: conversation.id, blob });
            known.add(id);
        }
        const named = new Set(files.map(({ id }) => id));
        for (const id of known) if (!named.has(id)) transaction.objectStore('media').delete(id);
        const bare = (one) => (one.attachments ? { ...one, attachments: one.attachments.map(({ blob, ...rest }) => rest) } : one);
        const messages = Object.fromEntries(Object.values(conversation.messages).map((message) => [message.id, bare(message)]));
        const queue = conversation.queue?.map(bare);
        transaction.objectStore('conversations').put({ ...conversation, messages, ...(queue ? { queue } : {}) });
        transaction.objectStore('summaries').put(summary);
        try {
            await finished(transaction);
        } catch (error) {
            for (const { id } of added) known.delete(id);
            throw error;
        }
        for (const id of known) if (!named.has(id)) known.delete(id);
        return summary;
    }

    /** @param {string} id @returns {Promise<Conversation|null>} */
    async load(id) {
        if (!this.db) return null;
        const transaction = this.db.transaction(['conversations', 'media']);
        const conversation = await result(transaction.objectStore('conversations').get(id));
        if (!conversation) return null;
        await Promise.all(
            attachmentsOf(conversation).map(async (attachment) => {
                const media = await result(transaction.objectStore('media').get(attachment.id));
                if (media) {
                    attachment.blob = media.blob;
                    this.#mediaOf(id).add(attachment.id);
                } else attachment.missing = true;
            }),
        );
        return conversation;
    }

    /** @param {string} id */
    async remove(id) {
        const conversation = await this.load(id);
        if (!this.db || !conversation) return;
        const transaction = this.db.transaction(['conversations', 'summaries', 'media'], 'readwrite');
        transaction.objectStore('conversations').delete(id);
        transaction.objectStore('summaries').delete(id);
        for (const media of this.#mediaOf(id)) transaction.objectStore('media').delete(media);
        this.storedMedia.delete(id);
        await finished(transaction);
    }
}

/** Where chats are kept: by the server, or here. @param {import('./chat.js').Chat} chat @returns {Promise<any>} */
export async function openHistory(chat) {
    const local = await History.open();
    const reply = await chat.connection.fetch('v1/history').catch(() => null);
    if (reply?.ok && (await reply.json().catch(() => ({}))).enabled) {
        const { ServerHistory } = await import('./history_server.js');
        return new ServerHistory(chat, local, await History.open('parley-outbox')).begin();
    }
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
        title: conversation.title || 'New chat',
        updated: conversation.updated,
        text: text.slice(0, SEARCH_TEXT_MAX).toLowerCase(),
    };
}
