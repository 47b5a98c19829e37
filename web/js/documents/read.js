/**
 * A file as the text that a model reads, whatever its name says: Word, Excel, PowerPoint,
 * OpenDocument, EPUB, Jupyter, CSV, or plain text in any encoding. Nothing of a document is run.
 *
 *     const { text, note, plain } = await readDocument(file);   // throws a Refusal
 */
import { plural, t } from '../language.js';
import { csvTable } from './csv.js';
import { decodeText } from './encoding.js';
import { readDocx } from './docx.js';
import { readEpub } from './epub.js';
import { notebookOf, readNotebook } from './notebook.js';
import { partOf, relations } from './ooxml.js';
import { readOpenDocument } from './opendocument.js';
import { readPptx } from './pptx.js';
import { MAX_LETTERS, Writer } from './writer.js';
import { readXlsx } from './xlsx.js';
import { readXml } from './xml.js';
import { Zip, damaged, locked } from './zip.js';
import { Refusal, formatBytes, formatCount } from '../util.js';

const MAX_FILE_BYTES = 64 << 20;
const MAX_PLAIN_BYTES = 16 << 20;
/** What of a document is no text, in words. @type {Record<string, (n: number) => string>} */
const LEFT = {
    image: (n) => plural(n, '{0} image', '{0} images'),
    'embedded object': (n) => plural(n, '{0} embedded object', '{0} embedded objects'),
    'macro project': (n) => plural(n, '{0} macro project', '{0} macro projects'),
};
const READABLE = t`DOCX, XLSX, PPTX, ODT, ODS, ODP, EPUB, PDF, notebooks, CSV and text files`;

/**
 * @param {File} file
 * @returns {Promise<{text: string, note: string, plain: boolean}>} note: what was read and what was
 *   left out, '' if there is nothing to say; plain: the text is the file, byte for byte
 * @throws {Refusal}
 */
export async function readDocument(file) {
    const head = new Uint8Array(await file.slice(0, 8).arrayBuffer());
    const starts = (...bytes) => bytes.every((byte, i) => head[i] === byte);
    const most = starts(0x50, 0x4b) ? MAX_FILE_BYTES : MAX_PLAIN_BYTES;
    if (starts(0xd0, 0xcf, 0x11, 0xe0)) throw await oldOffice(file);
    if (file.size > most) throw new Refusal(t`${file.name} has ${formatBytes(file.size)}; at most ${formatBytes(most)} can be added. Save a part of it and add that.`);
    const out = new Writer();
    if (starts(0x50, 0x4b, 3, 4) || starts(0x50, 0x4b, 5, 6) || starts(0x50, 0x4b, 0x30, 0x30)) {
        const zip = await Zip.open(file);
        try {
            await readZip(zip, out);
        } catch (error) {
            if (error instanceof Refusal) throw error;
            throw damaged(file, t`it cannot be read`);
        }
        if (zip.names(/vbaproject\.bin$/i).length) out.leave('macro project', 1);
        return finished(file, out, '');
    }
    return readPlain(file, out);
}

/** @param {File} file @param {Writer} out */
async function readPlain(file, out) {
    const { text, encoding } = decodeText(new Uint8Array(await file.arrayBuffer()));
    if (text === null) throw new Refusal(t`${file.name} is neither an image nor text. ${READABLE} can be added.`);
    if (text.startsWith('{\\rtf')) throw new Refusal(t`${file.name} is in RTF, which is not read. Save it as DOCX or as plain text and add that.`);
    const note = encoding === 'utf-8' ? '' : t`read as ${encoding}`;
    const notebook = notebookOf(text);
    if (notebook) {
        await readNotebook(notebook, out);
        return finished(file, out, note);
    }
    const rows = /\.(csv|tsv|tab)$/i.test(file.name) || /^text\/(csv|tab-separated-values)/.test(file.type) ? csvTable(text) : null;
    const words = rows ?? text;
    const cut = words.length > MAX_LETTERS;
    return {
        text: cut ? words.slice(0, MAX_LETTERS) : words,
        note: [note, cut ? t`only the first ${formatCount(MAX_LETTERS)} letters` : ''].filter(Boolean).join(', '),
        plain: !note && !cut && rows === null,
    };
}

/** @param {Zip} zip @param {Writer} out */
async function readZip(zip, out) {
    const { file } = zip;
    if (zip.has('META-INF/container.xml')) return readEpub(zip, out);
    if (zip.has('content.xml') && zip.has('META-INF/manifest.xml')) return readOpenDocument(zip, out);
    if (!zip.has('[Content_Types].xml')) {
        throw new Refusal(t`${file.name} is an archive of ${formatCount(zip.entries.size)} files, not a document. Unpack it and add the files that you want to ask about.`);
    }
    const main = partOf(await relations(zip, ''), 'officeDocument') ?? '';
    if (!main) throw damaged(file, t`what it is made of is not said`);
    if (/\.bin$/i.test(main)) throw new Refusal(t`${file.name} is a binary workbook, which is not read. Save it as XLSX and add that.`);
    const root = await readXml(zip, main);
    if (root.localName === 'document') return readDocx(zip, main, root, out);
    if (root.localName === 'workbook') return readXlsx(zip, main, root, out);
    if (root.localName === 'presentation') return readPptx(zip, main, root, out);
    throw new Refusal(t`${file.name} is an Office document of a kind that is not read. ${READABLE} can be added.`);
}

/** Word, Excel and PowerPoint of before 2007, and what later ones lock. @param {File} file */
async function oldOffice(file) {
    const bytes = new Uint8Array(await file.slice(0, 1 << 20).arrayBuffer());
    const names = new TextDecoder('utf-16le').decode(bytes);
    if (names.includes('EncryptedPackage')) return locked(file);
    const next = names.includes('WordDocument') ? 'DOCX' : names.includes('PowerPoint Document') ? 'PPTX' : names.includes('Workbook') ? 'XLSX' : 'DOCX, XLSX or PPTX';
    return new Refusal(t`${file.name} is in a format of before 2007, which is not read. Save it as ${next} and add that.`);
}

/** @param {File} file @param {Writer} out @param {string} note */
function finished(file, out, note) {
    if (!out.text.replace(/^--- .* ---$/gm, '').trim()) {
        const images = out.left.get('image');
        throw new Refusal(
            images
                ? plural(images, '{1} holds {0} image but no text. Save it as PDF and add that.', '{1} holds {0} images but no text. Save it as PDF and add that.', file.name)
                : t`${file.name} holds no text.`,
        );
    }
    const left = [...out.left].map(([what, n]) => LEFT[what]?.(n) ?? what);
    const notes = [note, out.full ? t`only its beginning: the rest is too long` : '', left.length ? t`without ${left.join(', ')}` : ''];
    return { text: out.text, note: notes.filter(Boolean).join(', '), plain: false };
}
