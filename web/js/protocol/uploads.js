/**
 * Videos and large images on their way to the server, as the page sees them. How they go there,
 * upload.js, is fetched with the first.
 *
 *     const uploads = new Uploads(connection);
 *     uploads.addEventListener('change', () => show(uploads.progressOf(attachment)));
 *     uploads.start(attachment);                     // early, while the question is being written
 *     const url = await uploads.urlOf(attachment);   // "upload:file_...", or a data: URL for what is small
 *     uploads.cancel(attachment);
 */
import { blobToDataUri } from '../util.js';

/** @typedef {import('../state/store.js').Attachment} Attachment */
/** @typedef {{phase: 'checking'|'sending'|'done'|'failed', done: number, total: number}} UploadProgress */

const LARGE = 1 << 20;
const RETRY_MS = 1000;

export class Uploads extends EventTarget {
    /** @type {import('./upload.js').Uploader|null} */
    #uploader = null;
    /** Taken away again before there was an uploader. @type {WeakSet<Blob>} */
    #unwanted = new WeakSet();

    /** @param {import('./connection.js').Connection} connection */
    constructor(connection) {
        super();
        this.connection = connection;
    }

    /** @param {Attachment} attachment */
    #wants({ kind, blob }) {
        const { state, session } = this.connection;
        const possible = state === 'fallback' || session?.limits?.max_uploads > 0;
        return possible && !!blob && (kind === 'video' || (kind === 'image' && blob.size > LARGE));
    }

    /** While the server is away, its part of the page is waited for, as the upload would be. */
    async #load() {
        while (!this.#uploader) {
            const part = await import('./upload.js').catch(() => new Promise((resolve) => setTimeout(resolve, RETRY_MS)));
            if (part) this.#uploader ??= new part.Uploader(this.connection, () => this.dispatchEvent(new Event('change')));
        }
        return this.#uploader;
    }

    /** @param {Attachment} attachment @returns {Promise<string>} its id */
    async #file(attachment) {
        const blob = /** @type {Blob} */ (attachment.blob);
        this.#unwanted.delete(blob);
        const uploader = await this.#load();
        if (this.#unwanted.has(blob)) throw Object.assign(new Error(), { code: 'cancelled' });
        return uploader.file(attachment);
    }

    /** Begins early; what fails now is tried again when it is asked for.
     * @param {Attachment} attachment */
    start(attachment) {
        if (this.#wants(attachment)) this.#file(attachment).catch(() => {});
    }

    /** Where the model finds it. @param {Attachment} attachment @returns {Promise<string>} */
    async urlOf(attachment) {
        return this.#wants(attachment) ? `upload:${await this.#file(attachment)}` : blobToDataUri(/** @type {Blob} */ (attachment.blob));
    }

    /** @param {Attachment} attachment @returns {UploadProgress|null} null: nothing is on its way */
    progressOf(attachment) {
        return this.#uploader?.progressOf(attachment) ?? null;
    }

    /** @param {Attachment} attachment */
    cancel(attachment) {
        if (this.#uploader) this.#uploader.cancel(attachment);
        else if (attachment.blob) this.#unwanted.add(attachment.blob);
    }
}
