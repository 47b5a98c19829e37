/** Jupyter notebooks: their cells with what they put out; images are left out. Nothing is run. */

/** Colours and the like of a terminal. */
const TERMINAL = /\x1b\[[0-9;?]*[A-Za-z]/g;

/** @param {unknown} text lines, or one text */
const joined = (text) => (Array.isArray(text) ? text.join('') : typeof text === 'string' ? text : '');

/** @param {string} text @param {string} [language] */
function fenced(text, language = '') {
    const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
    return `${fence}${language}\n${text.replace(/\n+$/, '')}\n${fence}`;
}

/** @param {string} text @returns {any} the notebook; null: it is none */
export function notebookOf(text) {
    if (!/^\s*\{/.test(text) || !text.includes('"nbformat"')) return null;
    try {
        const notebook = JSON.parse(text);
        const cells = notebook.cells ?? notebook.worksheets?.flatMap((sheet) => sheet.cells ?? []);
        return Array.isArray(cells) ? { ...notebook, cells } : null;
    } catch {
        return null;
    }
}

/** @param {any} notebook @param {import('./writer.js').Writer} out */
export async function readNotebook(notebook, out) {
    const { metadata = {}, cells } = notebook;
    const language = String(metadata.language_info?.name ?? metadata.kernelspec?.language ?? 'python');
    for (const [i, cell] of cells.entries()) {
        if (out.full) break;
        out.add(`--- Cell ${i + 1} of ${cells.length} ---`);
        const source = joined(cell?.source ?? cell?.input);
        if (cell?.cell_type === 'heading') out.add(`${'#'.repeat(Math.min(6, Number(cell.level) || 1))} ${source}`);
        else if (cell?.cell_type !== 'code') out.add(source);
        else if (source) out.add(fenced(source, language));
        for (const output of Array.isArray(cell?.outputs) ? cell.outputs : []) addOutput(output ?? {}, out);
        await out.breathe();
    }
}

/** @param {any} output @param {import('./writer.js').Writer} out */
function addOutput(output, out) {
    const data = output.data ?? output;
    const kinds = Object.keys(data);
    if (kinds.some((kind) => /^image\/|^(png|jpeg|svg)$/.test(kind))) out.leave('image');
    const words = joined(output.traceback?.join?.('\n') ?? output.text ?? data['text/markdown'] ?? data['text/plain'] ?? data['text/latex']).replace(TERMINAL, '');
    if (words.trim()) out.add(`Output:\n\n${fenced(words)}`);
}
