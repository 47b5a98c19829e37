/**
 * Chats of the server as this browser saw them last, whole and with their files, to be read while
 * the server is away. Written when a chat is read or has come to rest; nothing is merged here: the
 * server knows better. Without IndexedDB there is no copy.
 *
 *     const copy = await OfflineCopy.open();
 *     copy.put(conversation);   const conversation = await copy.get(id);
 */
import { summaryOf } from './history.js';

const NAME = 'parley-copy';

/** @param {IDBRequest} request @returns {Promise<any>} */
const result = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
});

export class OfflineCopy {
    /** @param {IDBDatabase|null} db */
    constructor(db) {
        this.db = db;
    }

    static async open() {
        try {
            const request = indexedDB.open(NAME, 1);
            request.onupgradeneeded = () => {
                request.result.createObjectStore('chats', { keyPath: 'id' });
                request.result.createObjectStore('list');
            };
            return new OfflineCopy(await result(request));
        } catch {
            return new OfflineCopy(null);
        }
    }

    /** @param {string} name @param {(store: IDBObjectStore) => IDBRequest} work @param {IDBTransactionMode} [mode] */
    async #do(name, work, mode = 'readwrite') {
        try {
            return this.db && (await result(work(this.db.transaction(name, mode).objectStore(name))));
        } catch {
            return null; // no room: there is no copy then
        }
    }

    /** @param {import('./store.js').Conversation} conversation */
    put({ id, title, created, updated, head, messages, options, place }) {
        return this.#do('chats', (store) => store.put({ id, title, created, updated, head, messages, options, place }));
    }

    /** @param {string} id @returns {Promise<import('./store.js').Conversation|null>} */
    async get(id) {
        return (await this.#do('chats', (store) => store.get(id), 'readonly')) ?? null;
    }

    /** The list as the server gave it last. @param {any[]} summaries */
    async putList(summaries) {
        await this.#do('list', (store) => store.put(summaries, 'all'));
        const there = new Set(summaries.map(({ id }) => id));
        for (const id of (await this.#do('chats', (store) => store.getAllKeys(), 'readonly')) ?? []) if (!there.has(id)) await this.#do('chats', (store) => store.delete(id));
    }

    /** The list, with what was written since it was read. @returns {Promise<any[]>} */
    async list() {
        const list = (await this.#do('list', (store) => store.get('all'), 'readonly')) ?? [];
        const chats = ((await this.#do('chats', (store) => store.getAll(), 'readonly')) ?? []).map(summaryOf);
        return [...chats, ...list.filter(({ id }) => !chats.some((one) => one.id === id))];
    }
}
