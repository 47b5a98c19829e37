/** IndexedDB and BroadcastChannel as far as the page uses them, in memory, so that what keeps chats runs without a browser.
 *
 *     const device = makeDevice();                         // a browser profile: its databases, by name
 *     device.here();                                       // from now on `indexedDB` and channels are those of this one
 *     device.broken = 'media';                             // writes to this store fail, and what else was in their transaction
 *
 * Transactions run one after the other, each until it has nothing more to do; values are copied in and out.
 */
const { setImmediate: later } = globalThis;

/** As IndexedDB orders keys: numbers, then texts, then lists. */
function compare(a, b) {
    const kind = (key) => (Array.isArray(key) ? 2 : typeof key === 'string' ? 1 : 0);
    if (kind(a) !== kind(b)) return kind(a) - kind(b);
    if (kind(a) < 2) return a < b ? -1 : Number(a > b);
    for (let i = 0; i < Math.min(a.length, b.length); i += 1) {
        const order = compare(a[i], b[i]);
        if (order) return order;
    }
    return a.length - b.length;
}

globalThis.IDBKeyRange = /** @type {any} */ ({
    bound: (low, high, isOpen = false) => ({
        has: (key) => (isOpen ? compare(key, low) > 0 : compare(key, low) >= 0) && compare(key, high) <= 0,
    }),
});

const keyAt = (path, value) => (Array.isArray(path) ? path.map((name) => value[name]) : value[path]);

class Store {
    constructor(transaction, kept) {
        Object.assign(this, { transaction, kept });
    }
    #ask(work) {
        return this.transaction.ask(work);
    }
    #write(work) {
        if (this.transaction.mode === 'readonly') throw new Error('a transaction that reads only');
        return this.#ask(() => {
            if (this.transaction.device.broken === this.kept.name) throw new Error('no room');
            return work(this.kept.records);
        });
    }
    #found(query, path) {
        const all = this.kept.records.map(([key, value]) => [path ? keyAt(path, value) : key, value]).sort(([a], [b]) => compare(a, b));
        return all.filter(([key]) => query === undefined || (query?.has ? query.has(key) : compare(key, query) === 0));
    }
    get = (key) => this.#ask(() => structuredClone(this.#found(key)[0]?.[1]));
    getAll = () => this.#ask(() => structuredClone(this.#found().map(([, value]) => value)));
    getAllKeys = () => this.#ask(() => this.#found().map(([key]) => key));
    put(value, given) {
        const key = this.kept.keyPath ? keyAt(this.kept.keyPath, value) : given;
        const copy = structuredClone(value);
        return this.#write((records) => {
            const at = records.findIndex(([other]) => compare(other, key) === 0);
            records.splice(at < 0 ? records.length : at, 1, [key, copy]);
        });
    }
    delete = (query) => this.#write((records) => {
        const gone = new Set(this.#found(query).map(([key]) => key));
        this.kept.records = records.filter(([key]) => !gone.has(key));
    });
    createIndex(name, path) {
        this.kept.indexes[name] = path;
    }
    index(name) {
        return { getAll: (query) => this.#ask(() => structuredClone(this.#found(query, this.kept.indexes[name]).map(([, value]) => value))) };
    }
    /** Only from the first to the last, and the last is behind the end. */
    openCursor() {
        const all = this.kept.records.map(([, value]) => structuredClone(value));
        const request = this.#ask(step);
        function step() {
            const [value] = all.splice(0, 1);
            return value && { value, continue: () => request.again(step) };
        }
        return request;
    }
}

class Transaction {
    queue = [];
    error = null;
    constructor(db, names, mode) {
        Object.assign(this, { db, names, mode, device: db.device });
        db.line = db.line.then(() => this.#run());
    }
    objectStore(name) {
        if (!this.db.stores[name] || (this.names && !this.names.includes(name))) throw new Error(`no store ${name} here`);
        return new Store(this, this.db.stores[name]);
    }
    ask(work) {
        if (this.over) throw new Error('this transaction is over');
        const request = { again: (step) => void this.queue.push([request, step]) };
        this.queue.push([request, work]);
        return request;
    }
    abort() {
        if (this.over) throw new Error('this transaction is over');
        this.#end(null, true); // by the page: there is no error then
    }
    #end(error, isAborted = !!error) {
        this.over = true;
        if (!isAborted) return void this.oncomplete?.();
        // Holders of a store have its object: what it held before is put back into that one.
        for (const [name, { records }] of Object.entries(this.before)) this.db.stores[name].records = records;
        this.error = error;
        this.onabort?.();
    }
    async #run() {
        await new Promise(later);
        this.before = structuredClone(this.db.stores);
        while (this.queue.length && !this.over) {
            const [request, work] = this.queue.shift();
            try {
                request.result = work();
            } catch (error) {
                request.error = error;
                request.onerror?.({ target: request });
                return this.#end(error);
            }
            request.onsuccess?.({ target: request });
            await new Promise(later);
        }
        if (!this.over) this.#end(null);
    }
}

class Database {
    stores = {};
    version = 0;
    line = Promise.resolve();
    constructor(device) {
        this.device = device;
    }
    createObjectStore(name, { keyPath } = /** @type {any} */ ({})) {
        if (this.stores[name]) throw new Error(`there is a store ${name}`);
        this.stores[name] = { name, keyPath, indexes: {}, records: [] };
        return new Store(this.upgrade, this.stores[name]);
    }
    deleteObjectStore(name) {
        delete this.stores[name];
    }
    transaction(names, mode = 'readonly') {
        if (!/^read(only|write)$/.test(mode)) throw new TypeError(mode);
        return new Transaction(this, [names].flat(), mode);
    }
    close() {
        this.closed = true;
    }
}

/** A browser profile. */
export function makeDevice() {
    const databases = new Map();
    const channels = new Set();
    class Channel {
        constructor(name) {
            this.name = name;
            channels.add(this);
        }
        postMessage(data) {
            for (const one of channels) if (one !== this && one.name === this.name) later(() => one.onmessage?.({ data }));
        }
    }
    const device = {
        broken: '',
        /** The records of a store, its keys and its values. */
        kept: (name, store) => databases.get(name).stores[store].records,
        indexedDB: {
            open(name, version) {
                const db = databases.get(name) ?? new Database(device);
                const request = { result: db };
                databases.set(name, db);
                later(() => {
                    const oldVersion = db.version;
                    if (device.broken === name) return void request.onerror?.();
                    if (oldVersion < version) {
                        db.version = version;
                        db.upgrade = request.transaction = new Transaction(db, null, 'versionchange');
                        request.onupgradeneeded?.({ oldVersion });
                    }
                    db.line.then(() => request.onsuccess?.());
                });
                return request;
            },
        },
        here() {
            Object.assign(globalThis, { indexedDB: device.indexedDB, BroadcastChannel: Channel });
            return device;
        },
    };
    return device;
}
