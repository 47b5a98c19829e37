/**
 * What a reader writes to: blocks of text with a blank line between them, up to a limit of letters
 * and of time, and a tally of what was left out.
 */

/** Letters of a document: more than the longest novels have. */
export const MAX_LETTERS = 8_000_000;
const MAX_MS = 30_000;
const TURN_MS = 40;

export class Writer {
    constructor() {
        /** @type {string[]} */
        this.blocks = [];
        this.letters = 0;
        /** Whether the last block is an item of a list. */
        this.tight = false;
        /** The limit was reached: what follows is left out. */
        this.full = false;
        /** What was left out, and how often. @type {Map<string, number>} */
        this.left = new Map();
        this.begun = this.turn = performance.now();
    }

    /** @param {string} block @param {boolean} [tight] an item of a list: no blank line before the next one */
    add(block, tight = false) {
        // Indents at the beginning are kept, line ends and blanks around are not.
        const lines = block.replace(/[\0-\x08\x0b-\x1f]/g, '').split('\n').map((one) => one.trimEnd());
        const text = lines.join('\n').replace(/\n{3,}/g, '\n\n').replace(/^\n+|\n+$/g, '');
        if (!text || this.full) return;
        const room = MAX_LETTERS - this.letters;
        this.full = text.length > room;
        const words = this.full ? text.slice(0, room) : text;
        if (tight && this.tight) this.blocks[this.blocks.length - 1] += `\n${words}`;
        else this.blocks.push(words);
        this.tight = tight;
        this.letters += Math.min(room, text.length) + 2;
    }

    /** Something of the document that is no text. @param {string} what in the singular @param {number} [n] */
    leave(what, n = 1) {
        this.left.set(what, (this.left.get(what) ?? 0) + n);
    }

    /** Lets the page go on now and then, and ends what takes too long. */
    async breathe() {
        const now = performance.now();
        if (now - this.begun > MAX_MS) this.full = true;
        if (now - this.turn < TURN_MS) return;
        await new Promise((resolve) => setTimeout(resolve));
        this.turn = performance.now();
    }

    get text() {
        return this.blocks.join('\n\n');
    }
}

/** The lines of a text as one. No pattern here looks for blanks before something: in a long run of
 * them that takes the square of its length.
 * @param {string} text @param {string} [between] */
export function oneLine(text, between = ' ') {
    return text.split('\n').map((one) => one.trim()).filter(Boolean).join(between);
}

/** @param {string} text one cell */
function cell(text) {
    return oneLine(text.replaceAll('|', '\\|'), '<br>');
}

/** Rows of cells as a Markdown table; empty rows and columns at the edges are left out.
 * @param {string[][]} rows */
export function table(rows) {
    const full = rows.filter((row) => row.some((one) => one?.trim()));
    if (!full.length) return '';
    let first = Infinity;
    let end = 0;
    for (const row of full) {
        row.forEach((one, i) => {
            if (!one?.trim()) return;
            first = Math.min(first, i);
            end = Math.max(end, i + 1);
        });
    }
    const line = (row) => `| ${Array.from({ length: end - first }, (_, i) => cell(row[first + i] ?? '')).join(' | ')} |`;
    const [head, ...rest] = full;
    return [line(head), `|${' --- |'.repeat(end - first)}`, ...rest.map(line)].join('\n');
}

/** Rows of a sheet, by their number, as tables: an empty row ends one.
 * @param {Map<number, string[]>} rows */
export function tables(rows) {
    const blocks = [];
    let last = -1;
    for (const [number, row] of rows) {
        if (!row.some((one) => one?.trim())) continue;
        if (number === last + 1 && blocks.length) blocks[blocks.length - 1].push(row);
        else blocks.push([row]);
        last = number;
    }
    return blocks.map(table);
}
