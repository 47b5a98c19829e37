/** Values between commas, semicolons, tabs or bars, as a table. */
import { table } from './writer.js';

const SEPARATORS = [',', ';', '\t', '|'];
const LOOK_AT = 20_000;

/** Quoted values may hold separators, line ends and doubled quotes. @param {string} text @param {string} separator */
export function parseCsv(text, separator) {
    /** @type {string[][]} */
    const rows = [];
    let row = [];
    let at = 0;
    while (at < text.length) {
        let value = '';
        if (text[at] === '"') {
            let end = at + 1;
            for (;;) {
                const quote = text.indexOf('"', end);
                value += text.slice(end, quote < 0 ? text.length : quote);
                if (quote < 0) end = text.length;
                else if (text[quote + 1] === '"') {
                    value += '"';
                    end = quote + 2;
                    continue;
                } else end = quote + 1;
                break;
            }
            at = end;
        }
        const from = at;
        while (at < text.length && text[at] !== separator && text[at] !== '\n') at += 1;
        value += text.slice(from, at);
        row.push(value);
        if (at >= text.length || text[at] === '\n') {
            rows.push(row);
            row = [];
        }
        at += 1;
    }
    if (row.length) rows.push([...row, '']);
    return rows.filter((cells) => cells.length > 1 || cells[0]);
}

/** @param {string} text @returns {string|null} null: it is no table, whatever its name says */
export function csvTable(text) {
    const lines = text.replace(/\r\n?/g, '\n');
    const said = /^sep=(.)\n/i.exec(lines);
    const body = said ? lines.slice(said[0].length) : lines;
    const head = body.slice(0, LOOK_AT);
    const sample = head.length < body.length ? head.slice(0, head.lastIndexOf('\n') + 1) : head;
    // The separator that cuts the most rows into equally many values.
    const score = (separator) => {
        const rows = parseCsv(sample, separator);
        const width = rows[0]?.length ?? 0;
        return width < 2 ? 0 : rows.filter((row) => row.length === width).length / rows.length + width / 1_000;
    };
    const separator = said?.[1] ?? SEPARATORS.reduce((best, one) => (score(one) > score(best) ? one : best));
    if (score(separator) < 0.5) return null;
    return table(parseCsv(body, separator));
}
