/**
 * Videos and large images on their way to the server: in chunks over the socket, taken up again
 * after a lost connection, and not at all if the server has the same bytes already; without a
 * socket in parts, a request each. Fetched with the first of them; the page calls uploads.js.
 */
import { Sha256 } from './sha256.js';
import { newId } from '../util.js';

/** @typedef {import('../state/store.js').Attachment} Attachment */
/** @typedef {import('./uploads.js').UploadProgress} UploadProgress */

const HASH_SLICE = 1 << 20;
const HEADER = 16;
const PART = 1 << 21;
const RETRY_MS = 1000;
const KNOWN_MAX_MS = 20 * 60_000;

class Lost extends Error {}

export class UploadError extends Error {
    /** @param {{code?: string|null, message?: string}} error */
    constructor({ code, message }) {
        super(message ?? '');
        this.code = code ?? 'server_error';
    }
}

/** One file; lives as long as its blob, so that a second question finds it. */
class Upload {
    /** @param {Uploader} owner @param {Attachment} attachment */
    constructor(owner, attachment) {
        this.owner = owner;
        this.connection = owner.connection;
        this.blob = /** @type {Blob} */ (attachment.blob);
        this.name = attachment.name;
        this.mime = attachment.mime;
        /** @type {UploadProgress} */
        this.progress = { phase: 'checking', done: 0, total: this.blob.size };
        this.hash = '';
        this.uploadId = '';
        /** What went without a socket.
         * @type {{id: string, ids: string[], isDoubtful?: boolean}|null} */
        this.parts = null;
        this.fileId = '';
        this.knownUntil = 0;
        /** The greeting of the connection it was seen on: after another one the server may be
         * another. */
        this.session = null;
        this.cancelled = false;
        /** @type {Promise<string>|null} */
        this.running = null;
        /** @type {{test: (event: any) => boolean, resolve: (event: any) => void, reject: (error: Error) => void}|null} */
        this.waiting = null;
        this.received = 0;
    }

    /** The file's id, once the server has it. @returns {Promise<string>} */
    file() {
        const known = this.fileId && this.session === this.connection.session && Date.now() < this.knownUntil;
        if (known) return Promise.resolve(this.fileId);
        this.running ??= this.#run().finally(() => (this.running = null));
        return this.running;
    }

    cancel() {
        this.cancelled = true;
        if (this.uploadId) this.owner.giveUp(this.uploadId);
        this.uploadId = '';
        this.#dropParts();
        this.waiting?.reject(new UploadError({ code: 'cancelled' }));
    }

    /** @param {UploadProgress['phase']} phase @param {number} done */
    #tell(phase, done) {
        this.progress = { phase, done, total: this.blob.size };
        this.owner.onChange();
    }

    #check() {
        if (this.cancelled) throw new UploadError({ code: 'cancelled' });
    }

    async #run() {
        this.cancelled = false;
        try {
            this.hash ||= await this.#digest();
            for (;;) {
                await this.owner.connected();
                this.#check();
                try {
                    this.fileId = this.connection.state === 'fallback' ? await this.#post() : await this.#send();
                    this.#tell('done', this.blob.size);
                    return this.fileId;
                } catch (error) {
                    if (!(error instanceof Lost)) throw error;
                }
            }
        } catch (error) {
            this.#tell('failed', 0);
            throw error;
        }
    }

    /** The SHA-256, a slice at a time: the page stays alive. */
    async #digest() {
        const sha = new Sha256();
        for (let at = 0; at < this.blob.size; at += HASH_SLICE) {
            this.#check();
            sha.update(new Uint8Array(await this.blob.slice(at, at + HASH_SLICE).arrayBuffer()));
            this.#tell('checking', at);
        }
        return sha.hex();
    }

    /** Waits for an event; fails with Lost when the socket goes.
     * @param {(event: any) => boolean} test */
    #expect(test) {
        if (this.isLost) return Promise.reject(new Lost());
        return new Promise((resolve, reject) => (this.waiting = { test, resolve, reject })).finally(() => (this.waiting = null));
    }

    /** @param {any} message @param {(event: any) => boolean} test */
    async #ask(message, test) {
        const eventId = newId('u_');
        const reply = this.#expect((event) => event.error?.event_id === eventId || event.event_id === eventId || test(event));
        this.connection.sendMessage({ ...message, event_id: eventId });
        const event = await reply;
        if (event.type === 'error' || event.type === 'upload.failed') throw new UploadError(event.error);
        return event;
    }

    /** @param {any} event */
    #completed(event) {
        this.session = this.connection.session;
        const left = (event.upload?.expires_at ?? 0) * 1000 - Date.now();
        this.knownUntil = Date.now() + Math.max(0, Math.min(KNOWN_MAX_MS, left / 3));
        this.uploadId = '';
        return event.file_id;
    }

    /** What the server has of it: an upload to go on with, or the finished file. */
    async #begin() {
        const own = (event) => !!this.uploadId && (event.upload_id ?? event.upload?.id) === this.uploadId;
        if (this.uploadId) {
            try {
                return await this.#ask({ type: 'upload.resume', upload_id: this.uploadId }, own);
            } catch (error) {
                if (error.code !== 'upload_not_found') throw error;
                this.uploadId = '';
            }
        }
        const { name: filename, mime: mime_type, hash: sha256 } = this;
        return this.#ask({ type: 'upload.create', filename, mime_type, sha256, bytes: this.blob.size, purpose: 'vision' }, own);
    }

    async #send() {
        this.isLost = false;
        const begun = await this.#begin();
        if (begun.type === 'upload.completed') return this.#completed(begun);
        const limits = this.connection.session?.limits ?? {};
        const size = begun.upload?.chunk_size ?? limits.chunk_size;
        const window = begun.upload?.window ?? limits.upload_window;
        const handle = begun.upload?.handle ?? begun.handle;
        this.uploadId = begun.upload?.id ?? begun.upload_id;
        this.received = begun.upload?.received ?? begun.received;
        let at = this.received;
        while (this.received < this.blob.size) {
            while (at < this.blob.size && at + size - this.received <= window) {
                const data = await this.blob.slice(at, at + size).arrayBuffer();
                this.#check();
                if (this.isLost) throw new Lost(); // while the file was read: the new socket knows no such handle
                this.connection.sendBinary(chunk(handle, at, data));
                at += data.byteLength;
            }
            const seen = this.received;
            if (at >= this.blob.size || at + size - seen > window) await this.#expect(() => this.received > seen || at > this.blob.size);
            this.#tell('sending', this.received);
        }
        const done = await this.#ask({ type: 'upload.complete', upload_id: this.uploadId, sha256: this.hash }, () => false);
        return this.#completed(done);
    }

    /** Without a socket: parts, a request each. What has arrived stays there when one is lost. */
    async #post() {
        const { name: filename, mime: mime_type, hash: sha256 } = this;
        this.parts ??= { id: (await this.#call('v1/uploads', { filename, mime_type, sha256, bytes: this.blob.size, purpose: 'vision' })).id, ids: [] };
        const { id, ids } = this.parts;
        try {
            for (let at = ids.length * PART; at < this.blob.size; at += PART) {
                this.#tell('sending', at);
                const form = new FormData();
                form.append('data', this.blob.slice(at, at + PART));
                ids.push((await this.#call(`v1/uploads/${id}/parts`, form)).id);
            }
            const { file } = await this.#call(`v1/uploads/${id}/complete`, { part_ids: ids, sha256 });
            this.parts = null;
            return this.#completed({ file_id: file.id, upload: file });
        } catch (error) {
            if (error instanceof Lost) {
                this.parts &&= { id, ids, isDoubtful: true };
                throw error;
            }
            // A part whose reply was lost may be there twice, and then there is no room for the
            // last ones.
            const isTwice = this.parts?.isDoubtful && error.code === 'upload_too_large';
            this.#dropParts();
            throw isTwice ? new Lost() : error;
        }
    }

    #dropParts() {
        if (this.parts) this.connection.fetch(`v1/uploads/${this.parts.id}/cancel`, { method: 'POST' }).catch(() => {});
        this.parts = null;
    }

    /** A request of an upload; Lost, a moment later, where none gets through. @param {string} path
     * @param {object|FormData} body */
    async #call(path, body) {
        const init = body instanceof FormData ? { body } : { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } };
        const reply = await this.connection.fetch(path, { method: 'POST', ...init }).catch(() => null);
        const answer = await reply?.json().catch(() => ({}));
        if (!reply) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        this.#check();
        if (!reply) throw new Lost();
        if (!reply.ok) throw new UploadError(answer.error ?? {});
        return answer;
    }

    /** @param {any} event of the connection @returns {boolean} whether it was waited for */
    take(event) {
        const own = this.uploadId && event.upload_id === this.uploadId;
        if (own && event.type === 'upload.ack') this.received = Math.max(this.received, event.received);
        if (!this.waiting) return false;
        if (own && event.type === 'error' && event.error?.code === 'upload_offset_mismatch') this.waiting.reject(new Lost());
        else if (own && event.type === 'upload.failed' && !event.event_id) this.waiting.reject(new UploadError(event.error));
        else if (this.waiting.test(event)) this.waiting.resolve(event);
        else return false;
        return true;
    }

    lost() {
        this.isLost = true;
        this.waiting?.reject(new Lost());
    }
}

/** A binary frame. @param {number} handle @param {number} offset @param {ArrayBuffer} data */
function chunk(handle, offset, data) {
    const frame = new Uint8Array(HEADER + data.byteLength);
    const view = new DataView(frame.buffer);
    view.setUint8(0, 1);
    view.setUint8(1, 1);
    view.setUint32(4, handle, true);
    view.setBigUint64(8, BigInt(offset), true);
    frame.set(new Uint8Array(data), HEADER);
    return frame;
}

/** All files on their way. */
export class Uploader {
    /** @param {import('./connection.js').Connection} connection @param {() => void} onChange the progress of one is another */
    constructor(connection, onChange) {
        this.connection = connection;
        this.onChange = onChange;
        /** @type {WeakMap<Blob, Upload>} */
        this.known = new WeakMap();
        /** Those on their way. @type {Set<Upload>} */
        this.active = new Set();
        /** Uploads to cancel as soon as there is a socket. @type {string[]} */
        this.unwanted = [];
        this.socket = connection.socket;
        connection.addEventListener('upload', (event) => {
            const { detail } = /** @type {CustomEvent} */ (event);
            const wanted = [...this.active].some((upload) => upload.take(detail));
            // Given up before it had a name.
            if (!wanted && detail.type === 'upload.created') this.giveUp(detail.upload.id);
        });
        connection.addEventListener('state', () => {
            if (connection.state === 'open') for (const id of this.unwanted.splice(0)) this.giveUp(id);
            if (connection.socket === this.socket && connection.state === 'open') return;
            this.socket = connection.socket;
            for (const upload of this.active) upload.lost();
        });
    }

    /** @param {string} uploadId */
    giveUp(uploadId) {
        if (this.connection.socket?.readyState === WebSocket.OPEN) this.connection.sendMessage({ type: 'upload.cancel', upload_id: uploadId });
        else this.unwanted.push(uploadId);
    }

    /** Resolves when something can be sent. @returns {Promise<void>} */
    connected() {
        const ready = () => this.connection.state === 'open' || this.connection.state === 'fallback';
        if (ready()) return Promise.resolve();
        return new Promise((resolve) => {
            const look = () => {
                if (!ready() && this.active.size) return;
                this.connection.removeEventListener('state', look);
                resolve();
            };
            this.connection.addEventListener('state', look);
        });
    }

    /** The file's id, once the server has it. @param {Attachment} attachment @returns {Promise<string>} */
    file(attachment) {
        const blob = /** @type {Blob} */ (attachment.blob);
        const upload = this.known.get(blob) ?? new Upload(this, attachment);
        this.known.set(blob, upload);
        this.active.add(upload);
        return upload.file().finally(() => this.active.delete(upload));
    }

    /** @param {Attachment} attachment @returns {UploadProgress|null} null: nothing is on its way */
    progressOf(attachment) {
        const upload = attachment.blob && this.known.get(attachment.blob);
        return upload?.running ? upload.progress : null;
    }

    /** @param {Attachment} attachment */
    cancel(attachment) {
        const upload = attachment.blob && this.known.get(attachment.blob);
        if (upload?.running) upload.cancel();
    }
}
