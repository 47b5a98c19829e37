/**
 * PDF documents: their text, or their pages as images. The library comes with the first document;
 * it draws in a worker of its own and runs no script of the document.
 *
 *     const pdf = await openPdf(file);
 *     const { text } = await pdf.text();          // '' where the pages are images
 *     const blob = await pdf.page(1, maxPixels);
 *     pdf.close();
 */
import { t } from '../language.js';
import { MAX_LETTERS } from './writer.js';
import { Refusal, formatCount } from '../util.js';

/** A page with fewer letters than this on average has images of text instead of text. */
const LETTERS_OF_A_PAGE = 40;
/** Pages are looked through for text up to this one. */
const MAX_PAGES = 2_000;
/** How large a page is drawn: enough to read small print, few enough tokens. */
const PAGE_PIXELS = 1_200 * 1_600;

/** @type {Promise<any>|null} */
let loading = null;

async function load() {
    const library = await import('../../vendor/pdf.js');
    const url = new URL('../../vendor/pdf-worker.js', import.meta.url).href;
    // The page's policy takes no plain string as a script's address; this one is ours.
    const policy = globalThis.trustedTypes?.createPolicy('pdf-worker', { createScriptURL: (address) => address });
    library.GlobalWorkerOptions.workerPort = new Worker(policy ? policy.createScriptURL(url) : url, { type: 'module' });
    return library;
}

/** @param {File} file @throws {Refusal} */
export async function openPdf(file) {
    loading ??= load();
    let library;
    try {
        library = await loading;
    } catch {
        loading = null; // the network may be back next time
        throw new Refusal(t`What reads PDF documents could not be loaded, so ${file.name} was not added. Try again.`);
    }
    const task = library.getDocument({
        data: new Uint8Array(await file.arrayBuffer()), useWasm: false, isEvalSupported: false, useSystemFonts: true,
        stopAtErrors: false, verbosity: 0,
    });
    try {
        return new Pdf(await task.promise, task);
    } catch (error) {
        task.destroy();
        throw new Refusal(
            error?.name === 'PasswordException'
                ? t`${file.name} is locked with a password. Save a copy without it and add that.`
                : t`${file.name} is damaged: it cannot be opened. Print it to a new PDF and add that.`,
        );
    }
}

class Pdf {
    constructor(document, task) {
        this.document = document;
        this.task = task;
        this.pages = document.numPages;
    }

    /** @returns {Promise<{text: string, pages: number, blank: number}>} pages: how many of them it holds; blank: how
     *   many of those have no text */
    async text() {
        const parts = [];
        let [letters, length, pages, blank] = [0, 0, 0, 0];
        for (let i = 1; i <= Math.min(this.pages, MAX_PAGES); i += 1) {
            const page = await this.document.getPage(i);
            const { items } = await page.getTextContent();
            const words = items.map((item) => (item.str ?? '') + (item.hasEOL ? '\n' : '')).join('').replaceAll('\0', '').trim();
            page.cleanup();
            length += words.length;
            if (length > MAX_LETTERS) break;
            letters += words.replace(/\s+/g, '').length;
            pages = i;
            if (!words) blank += 1;
            parts.push(`--- Page ${i} of ${formatCount(this.pages)} ---\n${words}`);
        }
        const isText = letters >= LETTERS_OF_A_PAGE * Math.max(1, pages - blank) && letters > 0;
        return isText ? { text: parts.join('\n\n'), pages, blank } : { text: '', pages: 0, blank: 0 };
    }

    /** One page as an image. @param {number} number from 1 @param {number} maxPixels */
    async page(number, maxPixels) {
        const page = await this.document.getPage(number);
        const { width, height } = page.getViewport({ scale: 1 });
        const scale = Math.sqrt(Math.min(maxPixels, PAGE_PIXELS) / (width * height));
        const viewport = page.getViewport({ scale });
        const canvas = document.createElement('canvas');
        canvas.width = Math.max(1, Math.round(viewport.width));
        canvas.height = Math.max(1, Math.round(viewport.height));
        // "print" does not wait for animation frames, which a hidden tab does not get.
        await page.render({ canvas, viewport, intent: 'print' }).promise;
        page.cleanup();
        const blob = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
        return { blob: /** @type {Blob} */ (blob), width: canvas.width, height: canvas.height };
    }

    close() {
        this.task.destroy();
    }
}
