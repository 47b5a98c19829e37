/** Workbooks of Excel: every sheet as tables of what its cells show. Formulas are not computed: their
 * last result is read; macros are never looked at. */
import { t } from '../language.js';
import { partOf, relations } from './ooxml.js';
import { MAX_PART } from './zip.js';
import { tables } from './writer.js';
import { attr, below, kid, kids, readXml } from './xml.js';

const MAX_COLUMNS = 1_000;
const DAY_MS = 86_400_000;
/** A sheet is parsed up to this many bytes, which is about 400,000 cells. */
const SHEET_BYTES = 24 << 20;

/**
 * @param {import('./zip.js').Zip} zip @param {string} part @param {Element} root
 * @param {import('./writer.js').Writer} out
 */
export async function readXlsx(zip, part, root, out) {
    const named = await relations(zip, part);
    const strings = await stringsOf(zip, partOf(named, 'sharedStrings'));
    const formats = await formatsOf(zip, partOf(named, 'styles'));
    const from1904 = /^(1|true)$/.test(attr(kid(root, 'workbookPr'), 'date1904'));
    const sheets = kids(kid(root, 'sheets'), 'sheet').map((one) => ({
        name: one.getAttribute('name') ?? '',
        hidden: /hidden/i.test(one.getAttribute('state') ?? ''),
        target: named.get(attr(one, 'id'))?.target ?? '',
    }));
    for (const { name, hidden, target } of sheets) {
        if (out.full) break;
        out.add(`--- Sheet ${name}${hidden ? ' (hidden)' : ''} ---`);
        if (!zip.has(target)) continue;
        const { rows, cut } = await rowsOf(zip, target, strings, formats, from1904, out);
        for (const block of tables(rows)) {
            out.add(block);
            await out.breathe();
        }
        if (cut) out.leave(t`rest of sheet ${name}`);
        for (const note of await notesOf(zip, target)) out.add(note);
    }
}

/** @param {Element} node with runs of text @returns {string} without what tells how it is pronounced */
function words(node) {
    return [...node.children].map((one) => (one.localName === 't' ? one.textContent : one.localName === 'r' ? words(one) : '')).join('');
}

/** @param {import('./zip.js').Zip} zip @param {string|undefined} part */
async function stringsOf(zip, part) {
    return part && zip.has(part) ? kids(await readXml(zip, part), 'si').map(words) : [];
}

/** @param {import('./zip.js').Zip} zip @param {string|undefined} part
 * @returns {Promise<string[]>} the format of each style, as Excel writes it */
async function formatsOf(zip, part) {
    if (!part || !zip.has(part)) return [];
    const root = await readXml(zip, part);
    const own = new Map(kids(kid(root, 'numFmts'), 'numFmt').map((one) => [Number(one.getAttribute('numFmtId')), one.getAttribute('formatCode') ?? '']));
    return kids(kid(root, 'cellXfs'), 'xf').map((one) => {
        const id = Number(one.getAttribute('numFmtId'));
        return own.get(id) ?? builtIn(id);
    });
}

/** Formats that every program knows by number. @param {number} id */
function builtIn(id) {
    if (id === 9 || id === 10) return '0%';
    if ((id >= 14 && id <= 17) || (id >= 27 && id <= 36) || (id >= 50 && id <= 58)) return 'yyyy-mm-dd';
    if ((id >= 18 && id <= 21) || id === 45 || id === 47) return 'hh:mm';
    if (id === 46) return '[h]:mm';
    return id === 22 ? 'yyyy-mm-dd hh:mm' : '';
}

/**
 * A number as a sheet shows it: dates and times in words of ISO 8601, percentages, currencies; the
 * digits are all there, however few are shown.
 * @param {string} value @param {string} format @param {boolean} from1904
 */
export function shown(value, format, from1904) {
    const number = Number(value);
    if (!value.trim() || !Number.isFinite(number)) return value;
    const [first] = format.split(';');
    const letters = first.replace(/"[^"]*"|\\.|_.|\*.|\[(?!(h+|m+|s+)\])[^\]]*\]/gi, '');
    const isTime = /[hs]/i.test(letters);
    const isDate = /[yd]/i.test(letters) || (/m/i.test(letters) && !isTime);
    if (/general/i.test(letters) || (!isDate && !isTime)) {
        const exact = (n) => String(Number(n.toPrecision(15)));
        if (letters.includes('%')) return `${exact(Number((number * 100).toPrecision(13)))}%`;
        const sign = /\[\$([^\]-]+)/.exec(first)?.[1] ?? /[€$£¥₹₽₩]/.exec(first.replace(/\[[^\]]*\]/g, ''))?.[0];
        return sign ? `${exact(number)} ${sign.trim()}` : exact(number);
    }
    if (/\[[hms]+\]/i.test(letters)) {
        const seconds = Math.round(Math.abs(number) * 86_400);
        const two = (n) => String(n).padStart(2, '0');
        return `${number < 0 ? '-' : ''}${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
    }
    // Excel has a 29 February 1900: days before it are one off.
    const days = number + (from1904 ? 1462 : number < 60 ? 1 : 0);
    const at = new Date(Math.round((days - 25_569) * 86_400) * 1000);
    if (number < 0 || Number.isNaN(at.getTime()) || Math.abs(at.getTime()) > DAY_MS * 3_000_000) return value;
    const iso = at.toISOString();
    const time = iso.slice(11, iso.slice(17, 19) === '00' ? 16 : 19);
    return [isDate && iso.slice(0, 10), isTime && time].filter(Boolean).join(' ');
}

/** "AB" of "AB12" as a number from 0; -1 without letters. @param {string} reference */
function columnOf(reference) {
    let column = 0;
    for (const letter of /^[A-Z]{1,3}/.exec(reference)?.[0] ?? '') column = column * 26 + letter.charCodeAt(0) - 64;
    return column - 1;
}

/**
 * @param {import('./zip.js').Zip} zip @param {string} part @param {string[]} strings @param {string[]} formats
 * @param {boolean} from1904 @param {import('./writer.js').Writer} out
 * @returns {Promise<{rows: Map<number, string[]>, cut: boolean}>} rows by number
 */
async function rowsOf(zip, part, strings, formats, from1904, out) {
    const { bytes, cut } = await zip.part(part, { most: Math.min(SHEET_BYTES, MAX_PART), cut: true });
    const root = await readXml(zip, part, cut ? closed(bytes) : bytes);
    /** @type {Map<number, string[]>} */
    const rows = new Map();
    let number = 0;
    let letters = 0;
    for (const row of kids(kid(root, 'sheetData'), 'row')) {
        number = Number(row.getAttribute('r')) || number + 1;
        /** @type {string[]} */
        const cells = [];
        let column = -1;
        for (const one of kids(row, 'c')) {
            const at = columnOf(one.getAttribute('r') ?? '');
            column = at >= 0 ? at : column + 1;
            if (column >= MAX_COLUMNS) break;
            cells[column] = cellText(one, strings, formats, from1904);
            letters += cells[column].length + 3;
        }
        // A row without gaps: what is missing is empty.
        rows.set(number, Array.from(cells, (text) => text ?? ''));
        if (letters > 2 * 8_000_000) break;
        await out.breathe();
        if (out.full) break;
    }
    return { rows, cut };
}

/** A sheet that was cut, closed behind its last whole row. @param {Uint8Array} bytes */
function closed(bytes) {
    const text = new TextDecoder().decode(bytes);
    const root = /<((?:[\w.-]+:)?)worksheet[\s>]/.exec(text)?.[1] ?? '';
    const end = `</${root}row>`;
    return new TextEncoder().encode(`${text.slice(0, text.lastIndexOf(end) + end.length)}</${root}sheetData></${root}worksheet>`);
}

/** @param {Element} cell @param {string[]} strings @param {string[]} formats @param {boolean} from1904 */
function cellText(cell, strings, formats, from1904) {
    const value = kid(cell, 'v')?.textContent ?? '';
    switch (cell.getAttribute('t')) {
        case 's':
            return strings[Number(value)] ?? '';
        case 'inlineStr': {
            const inline = kid(cell, 'is');
            return inline ? words(inline) : '';
        }
        case 'b':
            return value === '1' ? 'TRUE' : 'FALSE';
        case 'str':
        case 'e':
        case 'd':
            return value;
    }
    const formula = kid(cell, 'f')?.textContent;
    if (!value && formula) return `=${formula}`; // never computed by who wrote the file
    return shown(value, formats[Number(cell.getAttribute('s') ?? 0)] ?? '', from1904);
}

/** Comments of a sheet. @param {import('./zip.js').Zip} zip @param {string} part */
async function notesOf(zip, part) {
    const name = partOf(await relations(zip, part), 'comments');
    if (!name || !zip.has(name)) return [];
    return below(await readXml(zip, name), 'comment').map((one) => `Comment on ${one.getAttribute('ref')}: ${kid(one, 'text') ? words(/** @type {Element} */ (kid(one, 'text'))).trim() : ''}`);
}
