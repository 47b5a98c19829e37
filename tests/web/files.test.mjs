/** Files that are added, without a browser: images that are sent as they are or drawn anew, videos, and PDFs as text or as images
 * of their pages. What opens, draws and plays them is made up. */
import assert from 'node:assert/strict';
import { register } from 'node:module';
import test from 'node:test';
import { makeTime } from './made_up.mjs';
import { documentOf, readFiles, readPdf } from '../../web/js/state/attachments.js';
import { openPdf } from '../../web/js/documents/pdf.js';

// The library of PDFs is one that this test answers for.
const library = 'export const GlobalWorkerOptions = {}; export const getDocument = (given) => globalThis.pdfLibrary(given, GlobalWorkerOptions);';
register(`data:text/javascript,${encodeURIComponent(`export const resolve = (name, context, next) => (name.endsWith('/vendor/pdf.js') ? { url: 'data:text/javascript,${encodeURIComponent(library)}', shortCircuit: true } : next(name, context));`)}`);

const time = makeTime();
const LIMITS = { vision: true, video: true, maxImages: 9, already: 0, modelName: 'Small', maxPixels: 400 };
/** A file that begins so; a large one only says that it is. */
function file(name, head, { type = '', size = head.length } = {}) {
    const made = new File([Buffer.from(head.padEnd(Math.min(size, 100), '.'), 'latin1')], name, { type });
    return size > 100 ? Object.defineProperty(made, 'size', { value: size }) : made;
}
const PNG = '\x89PNG\r\n';

/** What is drawn and opened, in words. */
const done = [];
let bitmap = { width: 40, height: 20, close: () => done.push('closed') };
let shot = (type) => new Blob(['drawing'], { type });
globalThis.createImageBitmap = /** @type {any} */ (async (blob, options) => {
    done.push(`opened ${blob.type} ${options.imageOrientation}`);
    if (!bitmap) throw new Error('damaged');
    return bitmap;
});
const canvas = () => {
    const context = { fillRect: (...at) => done.push(`filled ${context.fillStyle} ${at}`), drawImage: (_, ...at) => done.push(`drawn ${at} ${context.imageSmoothingQuality ?? ''}`.trim()) };
    return { name: 'canvas', getContext: () => context, toBlob(took, type, quality) { done.push(`encoded ${this.width}x${this.height} ${type} ${quality ?? ''}`.trim()); took(shot(type)); } };
};
let video;
globalThis.document = /** @type {any} */ ({ createElement: (name) => (name === 'canvas' ? canvas() : video) });
let svg = { naturalWidth: 30, naturalHeight: 10 };
globalThis.Image = /** @type {any} */ (class {
    async decode() {
        if (!svg) throw new Error('damaged');
        Object.assign(this, svg);
    }
});
let urls = 0;
Object.assign(URL, { createObjectURL: (blob) => `blob:${(urls += 1)} ${blob.type}`, revokeObjectURL: (url) => done.push(`revoked ${url}`) });

/** What becomes of one file. */
async function add(one, limits = {}) {
    done.length = 0;
    const { attachments: [got], refused } = await readFiles([one], { ...LIMITS, ...limits });
    return got ?? refused[0];
}
const words = ({ kind, name, mime, width, height, bytes, blob, note = '' }) => [kind, name, mime, `${width}x${height}`, bytes, blob.type, note].join('|');

test('images that models read go as they are, with the type that they have', async () => {
    for (const [head, mime] of [[PNG, 'image/png'], ['\xff\xd8\xff', 'image/jpeg'], ['GIF89a', 'image/gif'], ['RIFF....WEBP', 'image/webp'], ['BM', 'image/bmp']]) {
        const right = file('a', head, { type: mime, size: 20 });
        const same = await add(right, { maxPixels: 800 });
        assert.deepEqual([words(same), same.blob === right, done], [`image|a|${mime}|40x20|20|${mime}|`, true, [`opened ${mime} from-image`, 'closed']], mime);
        const wrong = await add(file('a', head, { type: 'text/plain', size: 20 }), { maxPixels: 800 });
        assert.deepEqual([words(wrong), wrong.blob.size, done[0]], [`image|a|${mime}|40x20|20|${mime}|`, 20, `opened ${mime} from-image`]);
    }
    assert.equal((await add(file('', PNG), { maxPixels: 800 })).name, 'image');
});

test('larger ones are made smaller: as PNG what was one, on white as JPEG what was not', async () => {
    const small = await add(file('a.png', PNG, { size: 20 }), { maxPixels: 200 });
    assert.deepEqual([words(small), done.slice(1)], ['image|a.png|image/png|20x10|7|image/png|made smaller from 40 × 20', ['drawn 0,0,20,10 high', 'encoded 20x10 image/png 0.92', 'closed']]);
    const photo = await add(file('a.jpg', '\xff\xd8\xff'), { maxPixels: 200 });
    assert.deepEqual([words(photo), done.slice(1)], ['image|a.jpg|image/jpeg|20x10|7|image/jpeg|made smaller from 40 × 20', ['filled #fff 0,0,20,10', 'drawn 0,0,20,10 high', 'encoded 20x10 image/jpeg 0.92', 'closed']]);
    const tiny = await add(file('a.png', PNG), { maxPixels: 1 });
    assert.equal(`${tiny.width}x${tiny.height}`, '1x1');
    bitmap = { ...bitmap, width: 4096, height: 1024 };
    assert.equal((await add(file('a.png', PNG), { maxPixels: undefined })).note, undefined, 'four megapixels are no large image');
    bitmap = { ...bitmap, height: 1025 };
    assert.equal((await add(file('a.png', PNG), { maxPixels: undefined })).note, 'made smaller from 4096 × 1025');
    bitmap = { ...bitmap, width: 40, height: 20 };
    for (const [head, mime] of [['II*\0', 'image/tiff'], ['....ftypavif', 'image/avif'], ['....ftypheic', 'image/heic'], ['\xff\x0a', 'image/jxl']]) {
        const drawn = await add(file('a', head), { maxPixels: 800 });
        assert.deepEqual([words(drawn), done[0]], ['image|a|image/jpeg|40x20|7|image/jpeg|', `opened ${mime} from-image`]);
    }
    const { close, ...open } = bitmap;
    bitmap = /** @type {any} */ (open);
    assert.equal((await add(file('a.png', PNG), { maxPixels: 800 })).width, 40, 'what cannot be closed need not be');
    bitmap = { ...bitmap, close };
    const before = shot;
    shot = /** @type {any} */ (() => null);
    assert.equal(await add(file('a.png', PNG), { maxPixels: 200 }), 'a.png could not be made smaller.');
    shot = before;
});

test('a drawing is drawn with its longer side at 1024, on white', async () => {
    const drawn = await add(file('a.svg', '<svg/>'), { maxPixels: undefined });
    assert.deepEqual([words(drawn), done], ['image|a.svg|image/png|1024x341|7|image/png|', ['filled #fff 0,0,1024,341', 'drawn 0,0,1024,341', `revoked blob:${urls} image/svg+xml`, 'drawn 0,0,1024,341 high', 'encoded 1024x341 image/png 0.92']]);
    svg = { naturalWidth: 0, naturalHeight: 0 };
    assert.equal(words(await add(file('a.svg', '<svg/>'), { maxPixels: undefined })).split('|')[3], '1024x1024');
    svg = { naturalWidth: 1, naturalHeight: 5000 };
    assert.equal(words(await add(file('a.svg', '<svg/>'), { maxPixels: undefined })).split('|')[3], '1x1024');
    svg = null;
    assert.deepEqual([await add(file('a.svg', '<svg/>')), await add(file('', '<svg/>')), done], ['a.svg is damaged: it cannot be drawn.', 'The drawing is damaged: it cannot be drawn.', [`revoked blob:${urls} image/svg+xml`]]);
});

test('what cannot be opened is refused, with a way out where it is the browser that cannot', async () => {
    const before = bitmap;
    bitmap = null;
    assert.equal(await add(file('a.png', PNG)), 'a.png is damaged: it cannot be opened.');
    assert.equal(await add(file('a.heic', '....ftypheic')), 'This browser cannot open HEIC images. Save a.heic as PNG or JPEG and add it again.');
    assert.equal(await add(file('', '\xff\xd8\xff')), 'The image is damaged: it cannot be opened.');
    bitmap = before;
    assert.equal(await add(file('a.png', PNG, { size: (64 << 20) + 1 })), 'a.png has 64.0 MiB; at most 64.0 MiB can be sent.');
    assert.equal(await add(file('a.png', PNG, { size: 65 << 20 }), { maxBytes: 80 << 20 }), 'a.png has 65.0 MiB; at most 64.0 MiB can be sent.');
});

test('a video goes as it is, with its size and length as far as the browser knows them within three seconds', async () => {
    const MP4 = '....ftypisom';
    const added = (one, known, limits) => {
        video = { videoWidth: 320, videoHeight: 240, duration: 12.5 };
        const adding = add(one, limits);
        const settled = time.until(() => video.src || video.isOver).then(() => known(video));
        return Promise.all([adding, settled]).then(([got]) => got);
    };
    const typed = file('a.mp4', MP4, { type: 'video/mp4', size: 100 });
    const one = await added(typed, (it) => it.onloadedmetadata());
    assert.deepEqual([words(one), one.seconds, one.blob === typed, video.preload, video.muted, video.src], ['video|a.mp4|video/mp4|320x240|100|video/mp4|', 12.5, true, 'metadata', true, `blob:${urls} video/mp4`]);
    const wrong = await added(file('', MP4, { size: 100 }), (it) => it.onloadedmetadata());
    assert.deepEqual([wrong.name, wrong.blob.type, wrong.blob.size], ['video', 'video/mp4', 100]);
    const unknown = await added(file('a.mkv', '\x1aE\xdf\xa3matroska'), (it) => {
        Object.assign(it, { videoWidth: 0, videoHeight: 0, duration: NaN });
        it.onerror();
    });
    assert.deepEqual([words(unknown).split('|')[3], 'seconds' in unknown, unknown.mime], ['0x0', false, 'video/x-matroska']);
    let isThere = false;
    const slow = added(file('a.mp4', MP4), () => {}).then(() => (isThere = true));
    await time.until(() => video.src);
    await time.pass(2_990);
    assert.equal(isThere, false);
    await time.pass(20);
    await slow;
    const large = await added(file('a.mp4', MP4, { type: 'video/mp4', size: 65 << 20 }), (it) => it.onloadedmetadata(), { maxBytes: 80 << 20 });
    assert.equal(large.bytes, 65 << 20, 'it is never held whole');
    assert.equal(await add(file('a.mp4', MP4), { video: false }), 'Small cannot read videos, so a.mp4 was not added.');
});

// ---- PDFs ----

const calls = [];
/** A document with these pages: texts, or null for one of an image. */
function pdfOf(pages, { width = 600, height = 800, fault } = /** @type {any} */ ({})) {
    globalThis.pdfLibrary = ({ data, ...options }, worker) => {
        calls.push(['opened', data.length, options, worker.workerPort?.address]);
        const page = (number) => ({
            getTextContent: async () => ({ items: (pages[number - 1] ?? '').split('\n').map((str, i, all) => ({ str, hasEOL: i < all.length - 1 })) }),
            getViewport: ({ scale }) => ({ width: width * scale, height: height * scale }),
            render: ({ viewport, canvas: target, intent }) => (calls.push(['drawn', number, target.width, target.height, Math.round(viewport.width), intent]), { promise: Promise.resolve() }),
            cleanup: () => calls.push(['left', number]),
        });
        return { promise: fault ? Promise.reject(fault) : Promise.resolve({ numPages: pages.length, getPage: async (number) => page(number) }), destroy: () => calls.push(['closed']) };
    };
    calls.length = 0;
    return file('a.pdf', '%PDF-1.7', { size: 50 });
}
const PAGE = 'More than forty letters make a page that has a text.';

test('what reads PDFs is asked for again where it could not be loaded', async () => {
    globalThis.Worker = /** @type {any} */ (class { constructor() { throw new Error('no worker'); } });
    await assert.rejects(openPdf(pdfOf([PAGE])), { message: 'What reads PDF documents could not be loaded, so a.pdf was not added. Try again.' });
    const asked = [];
    globalThis.trustedTypes = { createPolicy: (name, { createScriptURL }) => ({ createScriptURL: (url) => (asked.push(name), createScriptURL(url)) }) };
    globalThis.Worker = /** @type {any} */ (class {
        constructor(address, { type }) {
            this.address = `${String(address).split('/').at(-1)} ${type}`;
        }
    });
    const pdf = await openPdf(pdfOf([PAGE, PAGE]));
    assert.deepEqual([pdf.pages, asked, calls], [2, ['pdf-worker'], [['opened', 50, { useWasm: false, isEvalSupported: false, useSystemFonts: true, stopAtErrors: false, verbosity: 0 }, 'pdf-worker.js module']]]);
    await openPdf(pdfOf([PAGE]));
    assert.equal(asked.length, 1, 'one worker for all');
    for (const [name, told] of [['PasswordException', 'a.pdf is locked with a password. Save a copy without it and add that.'], ['other', 'a.pdf is damaged: it cannot be opened. Print it to a new PDF and add that.']]) {
        await assert.rejects(openPdf(pdfOf([], { fault: Object.assign(new Error(), { name }) })), { message: told });
        assert.deepEqual(calls.at(-1), ['closed']);
    }
});

test('a PDF is its text, page by page, where there are forty letters a page', async () => {
    const one = await add(pdfOf([`One\n${PAGE}\0 `, PAGE]));
    const text = await one.blob.text();
    assert.deepEqual([text, words(one)], [`--- Page 1 of 2 ---\nOne\n${PAGE}\n\n--- Page 2 of 2 ---\n${PAGE}`, `text|a.pdf|text/plain|0x0|${text.length}|text/plain|text of 2 pages`]);
    assert.deepEqual([calls.slice(1), documentOf(one).name], [[['left', 1], ['left', 2], ['closed']], 'a.pdf']);
    const { attachments: [whole], refused } = await readFiles([pdfOf([PAGE])], LIMITS);
    assert.deepEqual([whole.note, refused], ['text of 1 page', []]);
    assert.equal((await add(pdfOf([PAGE, '', PAGE]))).note, 'text of 3 pages, 1 of them without any');
    const letters = (n) => 'x y '.repeat(n / 2).trim();
    assert.equal((await add(pdfOf([letters(40)]))).kind, 'text');
    assert.equal((await add(pdfOf([letters(38)]))).kind, 'image', 'too few: they are on images');
    assert.equal((await add(pdfOf([letters(80), 'x']))).kind, 'text', 'on average');
    assert.equal((await add(pdfOf([letters(78), 'x']))).kind, 'image');
    assert.equal((await add(pdfOf([letters(40), '', '']))).kind, 'text', 'pages without any do not count');
});

test('of a PDF that is too long the first pages are read, and that is said', async () => {
    done.length = 0;
    const most = 'x'.repeat(4_000_000);
    const { attachments: [cut], refused } = await readFiles([pdfOf([most, most, 'y'])], LIMITS);
    assert.deepEqual([cut.note, refused], ['text of 2 pages', ['Only the first 2 of 3 pages of a.pdf were added: more is too long.']]);
    const many = Array.from({ length: 2_001 }, () => PAGE);
    assert.equal((await add(pdfOf(many))).note, 'text of 2\u202f000 pages');
    pdfOf([PAGE]);
    assert.equal(await add(file('b.pdf', '%PDF-', { size: (64 << 20) + 1 })), 'b.pdf has 64.0 MiB; at most 64.0 MiB can be added.');
    assert.equal((await add(file('b.pdf', '%PDF-', { size: 64 << 20 }))).kind, 'text');
    const late = (n) => add(new File([' '.repeat(n), '%PDF-'], 'c.pdf', { type: 'image/x' }));
    assert.deepEqual([(await late(1019)).kind, typeof (await late(1020))], ['text', 'string'], 'a mark behind the first 1024 bytes is none');
});

test('a PDF without text is images of its pages, as many as there is room for', async () => {
    done.length = 0;
    const { attachments, refused } = await readFiles([file('n.txt', 'note'), pdfOf(Array(10).fill(''), { width: 600, height: 800 })], { ...LIMITS, maxImages: 4, already: 1, maxPixels: 480_000 });
    assert.deepEqual(attachments.slice(1).map(words), [1, 2].map((i) => `image|a, page ${i}|image/png|600x800|7|image/png|`));
    assert.deepEqual([refused, calls.at(-1)], [['Only the first 2 of 10 pages of a.pdf were added: one message takes at most 4 files.'], ['closed']]);
    assert.deepEqual(calls.filter(([what]) => what === 'drawn'), [['drawn', 1, 600, 800, 600, 'print'], ['drawn', 2, 600, 800, 600, 'print']]);
    assert.ok(calls.filter(([what]) => what === 'left').length === 12);
    assert.deepEqual((await readFiles([pdfOf(['', ''])], { ...LIMITS, maxImages: 2 })).refused, []);
    const fine = await add(pdfOf([''], { width: 300, height: 400 }), { maxPixels: undefined });
    assert.equal(words(fine).split('|')[3], '1200x1600', 'large enough for small print, and no larger');
    const thin = await add(pdfOf([''], { width: 1, height: 4_000_000 }), { maxPixels: 100 });
    assert.equal(thin.width, 1);
    assert.equal(await add(pdfOf(['']), { vision: false }), 'a.pdf holds no text but images of pages, and Small reads text only. Let a program recognise its text first.');
    assert.deepEqual(calls.at(-1), ['closed']);
    const asked = [];
    const some = await readPdf(pdfOf([PAGE, PAGE, PAGE, PAGE]), LIMITS, 2, asked, '4, 2-3');
    assert.deepEqual([some.map(({ name }) => name), asked], [['a, page 4', 'a, page 2'], ['Only the first 2 of 3 pages of a.pdf were added: one message takes at most 9 files.']]);
    await assert.rejects(readPdf(pdfOf([PAGE]), LIMITS, 2, [], '2'), /names no pages of a\.pdf: write numbers from 1 to 1/);
    assert.deepEqual(calls.at(-1), ['closed']);
});
