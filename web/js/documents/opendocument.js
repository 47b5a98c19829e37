/** OpenDocument texts, sheets and presentations, as LibreOffice writes them. */
import { oneLine, table, tables } from './writer.js';
import { locked } from './zip.js';
import { attr, below, kid, kids, readXml } from './xml.js';

/** Cells and rows say how often they come; a sheet is filled to its last row that way. */
const MAX_REPEAT = 1_000;
const MAX_SPACES = 200;

/** @param {import('./zip.js').Zip} zip @param {import('./writer.js').Writer} out */
export async function readOpenDocument(zip, out) {
    if (zip.has('META-INF/manifest.xml') && below(await readXml(zip, 'META-INF/manifest.xml'), 'encryption-data').length) throw locked(zip.file);
    const root = await readXml(zip, 'content.xml');
    const styles = zip.has('styles.xml') ? await readXml(zip, 'styles.xml') : undefined;
    const text = new OpenText(out, listsOf(root, styles), raisedIn(root, styles));
    const body = kid(root, 'body');
    const sheets = kids(kid(body, 'spreadsheet'), 'table');
    const slides = kids(kid(body, 'presentation') ?? kid(body, 'drawing'), 'page');
    for (const sheet of sheets) {
        if (out.full) break;
        out.add(`--- Sheet ${attr(sheet, 'name')} ---`);
        for (const block of tables(text.rows(sheet))) out.add(block);
        await out.breathe();
    }
    for (const [i, slide] of slides.entries()) {
        if (out.full) break;
        out.add(`--- Slide ${i + 1} of ${slides.length} ---`);
        text.slide(slide);
        await out.breathe();
    }
    for (const one of kid(body, 'text')?.children ?? []) {
        if (out.full) break;
        text.block(one, (words) => out.add(words));
        await out.breathe();
    }
    for (const note of text.notes) out.add(note);
}

/** Which levels of which lists are numbered. @param {(Element|undefined)[]} roots
 * @returns {Map<string, Set<number>>} by name */
function listsOf(...roots) {
    const styles = roots.flatMap((root) => (root ? below(root, 'list-style') : []));
    return new Map(styles.map((style) => [attr(style, 'name'), new Set(kids(style, 'list-level-style-number').filter((one) => attr(one, 'num-format')).map((one) => Number(attr(one, 'level'))))]));
}

/** Styles of letters that stand high or low, with their mark. @param {(Element|undefined)[]} roots
 * @returns {Map<string, string>} */
function raisedIn(...roots) {
    const places = roots.flatMap((root) => (root ? below(root, 'text-properties') : [])).filter((one) => attr(one, 'text-position'));
    return new Map(places.map((one) => {
        const [place] = attr(one, 'text-position').split(' ');
        const low = place === 'sub' || place.startsWith('-');
        return [attr(one.parentElement, 'name'), /^0%?$/.test(place) ? '' : low ? '_' : '^'];
    }));
}

class OpenText {
    /** @param {import('./writer.js').Writer} out @param {Map<string, Set<number>>} lists @param {Map<string, string>} raised */
    constructor(out, lists, raised) {
        this.raised = raised;
        this.out = out;
        this.lists = lists;
        /** Footnotes and comments, said at the end. @type {string[]} */
        this.notes = [];
        /** Text boxes of the paragraph that is read. @type {Element[]} */
        this.boxes = [];
    }

    /** @param {Element} node @param {(words: string) => void} say */
    block(node, say) {
        switch (node.localName) {
            case 'h':
            case 'p': {
                const words = this.inline(node).trim();
                const level = node.localName === 'h' ? Math.min(6, Number(attr(node, 'outline-level') || 1)) : attr(node, 'style-name') === 'Title' ? 1 : 0;
                const boxes = this.boxes.splice(0);
                if (words) say(level ? `${'#'.repeat(level)} ${oneLine(words)}` : words);
                for (const box of boxes) this.#blocks(box, say);
                break;
            }
            case 'list': {
                const words = this.#list(node, attr(node, 'style-name'), 1);
                if (words) say(words);
                break;
            }
            case 'table': {
                const rows = [...this.rows(node).values()];
                if (rows.every((row) => row.length < 2)) for (const one of below(node, 'table-cell').filter((cell) => tableOf(cell) === node)) this.#blocks(one, say);
                else say(table(rows));
                break;
            }
            case 'frame':
                this.#frame(node);
                for (const box of this.boxes.splice(0)) this.#blocks(box, say);
                break;
            case 'tracked-changes':
            case 'sequence-decls':
            case 'forms':
            case 'notes':
                break; // deleted text, and what is no text
            default:
                this.#blocks(node, say); // a section, an index
        }
    }

    /** @param {Element} node @param {(words: string) => void} say */
    #blocks(node, say) {
        for (const one of [...node.children]) this.block(one, say);
    }

    /** All words of a cell, a note or a shape. @param {Element} node @param {string} between */
    whole(node, between = '\n') {
        /** @type {string[]} */
        const words = [];
        this.#blocks(node, (text) => words.push(text));
        return words.join(between);
    }

    /** @param {Element} node @param {string} style @param {number} level @returns {string} */
    #list(node, style, level) {
        const numbered = this.lists.get(style)?.has(level);
        let count = 0;
        const lines = [];
        for (const item of [...kids(node, 'list-header'), ...kids(node, 'list-item')]) {
            count += 1;
            let lead = `${'  '.repeat(level - 1)}${numbered ? `${count}.` : '-'} `;
            for (const one of item.children) {
                if (one.localName === 'list') {
                    lines.push(this.#list(one, attr(one, 'style-name') || style, level + 1));
                    continue;
                }
                this.block(one, (words) => {
                    lines.push(words.startsWith('#') ? words : lead + words);
                    lead = '  '.repeat(level);
                });
            }
        }
        return lines.filter(Boolean).join('\n');
    }

    /** Rows of a table by their number. @param {Element} node @returns {Map<number, string[]>} */
    rows(node) {
        /** @type {Map<number, string[]>} */
        const rows = new Map();
        let number = 0;
        for (const row of below(node, 'table-row').filter((one) => tableOf(one) === node)) {
            const cells = [...row.children].filter((one) => /^(covered-)?table-cell$/.test(one.localName)).flatMap((one) => {
                const words = one.localName === 'table-cell' ? this.whole(one) : '';
                const times = Number(attr(one, 'number-columns-repeated') || 1);
                return Array(Math.min(words || times < 64 ? times : 64, MAX_REPEAT)).fill(words);
            });
            while (cells.length && !cells[cells.length - 1]) cells.pop();
            const times = Number(attr(row, 'number-rows-repeated') || 1);
            for (let i = 0; i < Math.min(cells.length ? times : 0, MAX_REPEAT); i += 1) rows.set(number + i, cells);
            number += times;
        }
        return rows;
    }

    /** @param {Element} page */
    slide(page) {
        const shapes = [...page.children].flatMap((one) => (one.localName === 'g' ? below(one, 'frame').concat(below(one, 'custom-shape')) : [one]));
        const isTitle = (one) => attr(one, 'class') === 'title';
        for (const one of [...shapes.filter(isTitle), ...shapes.filter((one) => !isTitle(one))]) {
            if (/^(header|footer|date-time|page-number)$/.test(attr(one, 'class'))) continue;
            if (one.localName === 'notes') {
                const words = kids(one, 'frame').filter((frame) => attr(frame, 'class') === 'notes').map((frame) => this.#inFrame(frame, '\n')).join('\n');
                if (words) this.out.add(`Notes: ${words}`);
            } else if (one.localName === 'frame') {
                const words = this.#inFrame(one, isTitle(one) ? ' ' : '\n\n');
                if (words) this.out.add(isTitle(one) ? `## ${oneLine(words)}` : words);
            } else {
                this.out.add(this.whole(one));
            }
        }
    }

    /** @param {Element} frame @param {string} between */
    #inFrame(frame, between) {
        const inside = kid(frame, 'table');
        if (inside) return table([...this.rows(inside).values()]);
        this.#frame(frame);
        return this.boxes.splice(0).map((box) => this.whole(box, between)).join('\n');
    }

    /** Its words come behind the paragraph, its images are counted. @param {Element} frame */
    #frame(frame) {
        const box = kid(frame, 'text-box');
        if (box) this.boxes.push(box);
        else if (kid(frame, 'image')) this.out.leave('image');
        else if (kid(frame, 'object')) this.out.leave('embedded object');
    }

    /** @param {Element} node @returns {string} */
    inline(node) {
        let words = '';
        for (const one of node.childNodes) {
            // Line ends and indents of the file are no words; s, tab and line-break are.
            if (one.nodeType === Node.TEXT_NODE) words += (one.textContent ?? '').replace(/\s+/g, ' ');
            else if (one.nodeType === Node.ELEMENT_NODE) words += this.#part(/** @type {Element} */ (one));
        }
        return words;
    }

    /** @param {Element} node @returns {string} */
    #part(node) {
        switch (node.localName) {
            case 's':
                return ' '.repeat(Math.min(MAX_SPACES, Number(attr(node, 'c') || 1)));
            case 'tab':
                return '\t';
            case 'line-break':
                return '\n';
            case 'a': {
                const words = this.inline(node);
                const target = attr(node, 'href');
                return /^[a-z][a-z0-9+.-]*:/i.test(target) && words && !words.includes(target) ? `[${words}](${target})` : words;
            }
            case 'note': {
                const body = kid(node, 'note-body');
                const mark = `^${attr(node, 'note-class') === 'endnote' ? 'e' : ''}${kid(node, 'note-citation')?.textContent ?? ''}`;
                if (body) this.notes.push(`[${mark}]: ${this.whole(body, ' ')}`);
                return `[${mark}]`;
            }
            case 'annotation':
                this.notes.push(`[comment]: ${this.whole(node, ' ')}`);
                return '';
            case 'span': {
                const words = this.inline(node);
                return words.trim() && !words.startsWith('[^') ? (this.raised.get(attr(node, 'style-name')) ?? '') + words : words;
            }
            case 'creator':
            case 'date':
                return '';
            case 'frame': {
                this.#frame(node);
                const alt = kid(node, 'desc')?.textContent;
                return alt ? `[image: ${alt}]` : '';
            }
            case 'ruby':
                return kid(node, 'ruby-base') ? this.inline(/** @type {Element} */ (kid(node, 'ruby-base'))) : '';
            default:
                return this.inline(node);
        }
    }
}

/** The table that a row or a cell belongs to: one may hold others. @param {Element} row */
function tableOf(row) {
    let node = row.parentElement;
    while (node && node.localName !== 'table') node = node.parentElement;
    return node;
}
