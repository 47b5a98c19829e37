/**
 * From files to attachments: what is an image, decoding with EXIF, scaling down, re-encoding what
 * the server may not read. A file that cannot be used gives a sentence instead.
 *
 *     const { attachments, refused } = await readFiles(files, limits);
 */
import { plural, t } from '../language.js';
import { Refusal, formatBytes, newId } from '../util.js';

/** @typedef {import('./store.js').Attachment} Attachment */

/** Formats that travel as they are; the others are drawn once and sent as PNG or JPEG. */
const SENT_AS_IS = new Set(['image/png', 'image/jpeg', 'image/webp', 'image/gif', 'image/bmp']);
const MAX_PIXELS = 4 * 1024 * 1024;
const MAX_FILE_BYTES = 64 * 1024 * 1024;
const VIDEO_WAIT_MS = 3_000;
const SVG_SIDE = 1024;
const JPEG_QUALITY = 0.92;

/** What the file dialog offers. @param {{vision: boolean, video: boolean}} model */
export function accepted(model) {
    const videos = model.video ? ',video/mp4,video/webm,video/quicktime,.mkv' : '';
    return `${model.vision ? `image/*${videos},` : ''}.pdf,.docx,.xlsx,.pptx,.odt,.ods,.odp,.epub,.ipynb,.docm,.xlsm,.pptm,text/*,.md,.json,.c,.h,.py,.js,.ts,.rs,.go,.yaml,.toml,.csv,.tsv,.log`;
}

/**
 * @param {Iterable<File>} files
 * @param {{vision: boolean, video: boolean, maxImages: number, maxBytes?: number, already: number, maxPixels?: number,
 *   modelName: string}} limits
 * @returns {Promise<{attachments: Attachment[], refused: string[]}>}
 */
export async function readFiles(files, limits) {
    const attachments = [];
    const refused = [];
    for (const file of files) {
        const name = file.name || t`image`;
        if (limits.already + attachments.length >= limits.maxImages) {
            refused.push(t`${name} was not added: one message takes at most ${limits.maxImages}.`);
        } else {
            try {
                const room = limits.maxImages - limits.already - attachments.length;
                if (await isPdf(file)) attachments.push(...(await readPdf(file, limits, room, refused)));
                else attachments.push(await readFile(file, limits));
            } catch (error) {
                refused.push(error instanceof Refusal ? error.message : t`${name} could not be read.`);
            }
        }
    }
    return { attachments, refused };
}

/** @param {Blob} file */
async function isPdf(file) {
    return (await file.slice(0, 1024).text()).includes('%PDF-');
}

/** What reads documents comes with the first one. @param {File} file
 * @param {() => Promise<any>} load @throws {Refusal} */
async function reader(file, load) {
    return load().catch(() => {
        throw new Refusal(t`What reads documents could not be loaded, so ${file.name} was not added. Try again.`);
    });
}

/** @param {File} file @param {any} limits @returns {Promise<Attachment>} */
async function readFile(file, limits) {
    const name = file.name || t`image`;
    if (file.size === 0) throw new Refusal(t`${name} is empty.`);
    const mime = await sniff(file);
    if (!mime && mayBeDocument(file)) return readText(file);
    if (!limits.vision) throw new Refusal(t`${limits.modelName} reads text only, so ${name} was not added.`);
    if (!mime) {
        const images = `PNG, JPEG, WebP, GIF, AVIF, BMP, SVG${limits.video ? ', MP4, WebM' : ''}`;
        throw new Refusal(t`${name} is of a kind that cannot be read. ${images}, PDF, Office documents and text files can be added.`);
    }
    // A video goes in chunks and is never held whole; an image is decoded here first.
    const most = Math.min(mime.startsWith('video/') ? Infinity : MAX_FILE_BYTES, limits.maxBytes || MAX_FILE_BYTES);
    if (file.size > most) {
        throw new Refusal(t`${name} has ${formatBytes(file.size)}; at most ${formatBytes(most)} can be sent.`);
    }
    if (!mime.startsWith('video/')) return readImage(file, mime, limits.maxPixels ?? MAX_PIXELS);
    if (!limits.video) throw new Refusal(t`${limits.modelName} cannot read videos, so ${name} was not added.`);
    return readVideo(file, mime);
}

/** Documents whose text was added, so that their pages can be sent as images too.
 * @type {WeakMap<Blob, File>} */
const documents = new WeakMap();

/** The PDF behind a text. @param {Attachment} attachment */
export function documentOf(attachment) {
    return attachment.blob ? documents.get(attachment.blob) : undefined;
}

/**
 * A PDF as its text; as images of its pages where it has none, or of those that are asked for.
 * @param {File} file @param {any} limits @param {number} room how many images may be added
 * @param {string[]} refused @param {string} [wanted] pages, as "1-3, 7"
 * @returns {Promise<Attachment[]>}
 */
export async function readPdf(file, limits, room, refused, wanted = '') {
    if (file.size > MAX_FILE_BYTES) {
        throw new Refusal(t`${file.name} has ${formatBytes(file.size)}; at most ${formatBytes(MAX_FILE_BYTES)} can be added.`);
    }
    const { openPdf } = await reader(file, () => import('../documents/pdf.js'));
    const pdf = await openPdf(file);
    try {
        if (!wanted) {
            const { text, pages, blank } = await pdf.text();
            if (text) {
                if (pages < pdf.pages) refused.push(t`Only the first ${pages} of ${pdf.pages} pages of ${file.name} were added: more is too long.`);
                const blob = new Blob([text], { type: 'text/plain' });
                documents.set(blob, file);
                return [{
                    id: newId('a_'), kind: 'text', name: file.name, mime: 'text/plain', width: 0, height: 0, bytes: blob.size, blob,
                    note: blank
                        ? plural(pages, 'text of {0} page, {1} of them without any', 'text of {0} pages, {1} of them without any', blank)
                        : plural(pages, 'text of {0} page', 'text of {0} pages'),
                }];
            }
        }
        if (!limits.vision) {
            throw new Refusal(t`${file.name} holds no text but images of pages, and ${limits.modelName} reads text only. Let a program recognise its text first.`);
        }
        const pages = pagesIn(wanted, pdf.pages, file.name);
        const shown = pages.slice(0, room);
        if (shown.length < pages.length) refused.push(t`Only the first ${shown.length} of ${pages.length} pages of ${file.name} were added: one message takes at most ${limits.maxImages} files.`);
        const list = [];
        for (const i of shown) {
            const { blob, width, height } = await pdf.page(i, limits.maxPixels ?? MAX_PIXELS);
            const name = t`${file.name.replace(/\.pdf$/i, '')}, page ${i}`;
            list.push({ id: newId('a_'), kind: /** @type {const} */ ('image'), name, mime: 'image/png', width, height, bytes: blob.size, blob });
        }
        return list;
    } finally {
        pdf.close();
    }
}

/** The pages that "1-3, 7" names; '': all. @param {string} wanted @param {number} most @param {string} name of the file
 * @returns {number[]} @throws {Refusal} */
export function pagesIn(wanted, most, name) {
    if (!wanted) return Array.from({ length: most }, (_, i) => i + 1);
    const pages = new Set();
    for (const part of wanted.split(/[,;\s]+/).filter(Boolean)) {
        const [, from, to = from] = /^(\d{1,6})(?:[-–](\d{1,6}))?$/.exec(part) ?? [];
        const [first, last] = [Number(from), Number(to)];
        if (!(first >= 1 && first <= last && last <= most)) throw new Refusal(t`“${part}” names no pages of ${name}: write numbers from 1 to ${most}, as in 1-3, 7.`);
        for (let page = first; page <= last; page += 1) pages.add(page);
    }
    return [...pages];
}

/** What says that it is a sound or a font is not looked into. @param {File} file */
function mayBeDocument(file) {
    return !/^(image|audio|video|font)\//.test(file.type);
}

/** A document or a text file as its text. @param {File} file @returns {Promise<Attachment>} */
async function readText(file) {
    const { readDocument } = await reader(file, () => import('../documents/read.js'));
    const { text, note, plain } = await readDocument(file);
    const blob = plain ? file : new Blob([text], { type: 'text/plain' });
    return {
        id: newId('a_'), kind: 'text', name: file.name || 'text', mime: 'text/plain', width: 0, height: 0, bytes: blob.size, blob,
        ...(note ? { note } : {}),
    };
}

/**
 * A video goes as it is; the browser is asked for its size and length only, and may know neither.
 * @param {File} file @param {string} mime @returns {Promise<Attachment>}
 */
async function readVideo(file, mime) {
    const blob = file.type === mime ? file : file.slice(0, file.size, mime);
    const video = document.createElement('video');
    video.preload = 'metadata';
    video.muted = true;
    await new Promise((resolve) => {
        video.onloadedmetadata = video.onerror = resolve;
        setTimeout(resolve, VIDEO_WAIT_MS);
        video.src = urlOf(blob);
    });
    return {
        id: newId('a_'),
        kind: 'video',
        name: file.name || 'video',
        mime,
        width: video.videoWidth,
        height: video.videoHeight,
        ...(Number.isFinite(video.duration) ? { seconds: video.duration } : {}),
        bytes: file.size,
        blob,
    };
}

/** @param {File} file @param {string} mime @param {number} maxPixels @returns {Promise<Attachment>} */
async function readImage(file, mime, maxPixels) {
    const name = file.name || t`image`;
    const source = mime === 'image/svg+xml' ? await drawSvg(file) : await decode(file, mime);
    const { width, height } = source;
    const scale = Math.min(1, Math.sqrt(maxPixels / (width * height)));
    /** @type {Attachment} */
    const attachment = { id: newId('a_'), kind: 'image', name, mime, width, height, bytes: file.size, blob: file };
    if (scale < 1 || !SENT_AS_IS.has(mime)) {
        attachment.width = Math.max(1, Math.round(width * scale));
        attachment.height = Math.max(1, Math.round(height * scale));
        // PNG keeps drawings and screenshots exact; a scaled photograph is far smaller as JPEG.
        attachment.mime = mime === 'image/png' || mime === 'image/svg+xml' ? 'image/png' : 'image/jpeg';
        attachment.blob = await encode(source, attachment);
        attachment.bytes = attachment.blob.size;
        if (scale < 1) attachment.note = t`made smaller from ${String(width)} × ${String(height)}`;
    } else if (file.type !== mime) {
        attachment.blob = file.slice(0, file.size, mime);
    }
    if ('close' in source) source.close();
    return attachment;
}

/**
 * The type by magic bytes: a name or a declared type says nothing.
 * @param {Blob} file @returns {Promise<string|null>}
 */
export async function sniff(file) {
    const head = new Uint8Array(await file.slice(0, 512).arrayBuffer());
    const ascii = String.fromCharCode(...head);
    if (ascii.startsWith('\x89PNG\r\n')) return 'image/png';
    if (ascii.startsWith('\xff\xd8\xff')) return 'image/jpeg';
    if (ascii.startsWith('GIF8')) return 'image/gif';
    if (ascii.startsWith('RIFF') && ascii.slice(8, 12) === 'WEBP') return 'image/webp';
    if (ascii.startsWith('BM')) return 'image/bmp';
    if (ascii.startsWith('II*\0') || ascii.startsWith('MM\0*')) return 'image/tiff';
    if (ascii.slice(4, 8) === 'ftyp') {
        const brand = ascii.slice(8, 12);
        if (brand === 'avif' || brand === 'avis') return 'image/avif';
        if (/^(heic|heix|hevc|mif1|msf1)$/.test(brand)) return 'image/heic';
        return brand === 'qt  ' ? 'video/quicktime' : 'video/mp4';
    }
    if (ascii.startsWith('\x1aE\xdf\xa3')) return ascii.includes('webm') ? 'video/webm' : 'video/x-matroska';
    if (ascii.startsWith('\xff\x0a') || ascii.slice(4, 8) === 'JXL ') return 'image/jxl';
    if (/^\s*(<\?xml|<!--|<!DOCTYPE svg|<svg)/i.test(ascii) && /<svg/i.test(await file.slice(0, 4096).text())) {
        return 'image/svg+xml';
    }
    return null;
}

/** @param {File} file @param {string} mime */
async function decode(file, mime) {
    try {
        return await createImageBitmap(file.type === mime ? file : file.slice(0, file.size, mime), {
            imageOrientation: 'from-image',
        });
    } catch {
        const kind = mime.slice('image/'.length).toUpperCase();
        const name = file.name || t`The image`;
        throw new Refusal(
            SENT_AS_IS.has(mime)
                ? t`${name} is damaged: it cannot be opened.`
                : t`This browser cannot open ${kind} images. Save ${name} as PNG or JPEG and add it again.`,
        );
    }
}

/** Draws an SVG at a size worth looking at. @param {File} file
 * @returns {Promise<HTMLCanvasElement>} */
async function drawSvg(file) {
    const url = URL.createObjectURL(file.slice(0, file.size, 'image/svg+xml'));
    try {
        const image = new Image();
        image.src = url;
        await image.decode();
        const width = image.naturalWidth || SVG_SIDE;
        const height = image.naturalHeight || SVG_SIDE;
        const scale = SVG_SIDE / Math.max(width, height);
        const canvas = document.createElement('canvas');
        canvas.width = Math.max(1, Math.round(width * scale));
        canvas.height = Math.max(1, Math.round(height * scale));
        const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
        context.fillStyle = '#fff';
        context.fillRect(0, 0, canvas.width, canvas.height);
        context.drawImage(image, 0, 0, canvas.width, canvas.height);
        return canvas;
    } catch {
        throw new Refusal(t`${file.name || t`The drawing`} is damaged: it cannot be drawn.`);
    } finally {
        URL.revokeObjectURL(url);
    }
}

/** @param {CanvasImageSource} source @param {Attachment} target @returns {Promise<Blob>} */
function encode(source, { width, height, mime, name }) {
    const canvas = document.createElement('canvas');
    canvas.width = width;
    canvas.height = height;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    context.imageSmoothingQuality = 'high';
    if (mime === 'image/jpeg') {
        context.fillStyle = '#fff';
        context.fillRect(0, 0, width, height);
    }
    context.drawImage(source, 0, 0, width, height);
    return new Promise((resolve, reject) => {
        canvas.toBlob(
            (blob) => (blob ? resolve(blob) : reject(new Refusal(t`${name} could not be made smaller.`))),
            mime,
            JPEG_QUALITY,
        );
    });
}

/** Files of a paste or a drop, images from the clipboard included.
 * @param {DataTransfer|null} transfer */
export function filesOf(transfer) {
    return transfer ? [...transfer.files] : [];
}

const urls = new WeakMap();

/** An object URL for an image, made once. @param {Blob} blob */
export function urlOf(blob) {
    let url = urls.get(blob);
    if (!url) {
        url = URL.createObjectURL(blob);
        urls.set(blob, url);
    }
    return url;
}
