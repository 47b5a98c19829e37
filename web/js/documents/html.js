/** The words of a web page or a book's chapter, with headings, lists, tables and code. */
import { oneLine, table } from './writer.js';

const BLOCKS = /^(address|article|aside|blockquote|body|center|dd|details|dialog|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|p|pre|section|summary|table|tbody|td|tfoot|th|thead|tr|ul)$/;
const SILENT = /^(script|style|head|template|noscript|iframe|object|audio|video|canvas|rt|rp|title|link|meta)$/;

/** @param {Element} body @param {(words: string) => void} say takes each block
 * @param {import('./writer.js').Writer} out */
export function htmlText(body, say, out) {
    /** Words that stand between blocks. */
    let loose = '';
    const flush = () => {
        const words = tidy(loose);
        loose = '';
        if (words) say(words);
    };
    for (const node of body.childNodes) {
        const element = node.nodeType === 1 ? /** @type {Element} */ (node) : null;
        if (!element || !isBlock(element)) {
            loose += inline(node, out);
            continue;
        }
        flush();
        block(element, say, out);
    }
    flush();
}

/** @param {Element} node */
function isBlock(node) {
    return BLOCKS.test(node.localName) || [...node.children].some(isBlock);
}

/** @param {string} text */
function tidy(text) {
    return text.split('\n').map((line) => line.trim()).join('\n').trim();
}

/** @param {Element} node @param {import('./writer.js').Writer} out @param {string} [between] */
function whole(node, out, between = '\n') {
    /** @type {string[]} */
    const words = [];
    htmlText(node, (text) => words.push(text), out);
    return words.join(between);
}

/** @param {Element} node @param {(words: string) => void} say @param {import('./writer.js').Writer} out */
function block(node, say, out) {
    const name = node.localName;
    if (SILENT.test(name) || node.hasAttribute('hidden')) return;
    if (/^h[1-6]$/.test(name)) {
        const words = oneLine(whole(node, out, ' '));
        if (words) say(`${'#'.repeat(Number(name[1]))} ${words}`);
    } else if (name === 'pre') {
        say(`\`\`\`\n${(node.textContent ?? '').replace(/^\n|\s+$/g, '')}\n\`\`\``);
    } else if (name === 'ul' || name === 'ol') {
        say(list(node, out));
    } else if (name === 'blockquote') {
        const words = whole(node, out, '\n\n');
        if (words) say(words.split('\n').map((line) => `> ${line}`.trimEnd()).join('\n'));
    } else if (name === 'table') {
        addTable(/** @type {HTMLTableElement} */ (node), say, out);
    } else if (name !== 'hr') {
        htmlText(node, say, out);
    }
}

/** @param {Element} node @param {import('./writer.js').Writer} out @returns {string} */
function list(node, out) {
    let count = Number(node.getAttribute('start') ?? 1) - 1;
    return [...node.children]
        .map((item) => {
            if (/^[uo]l$/.test(item.localName)) return list(item, out).replace(/^/gm, '  ');
            if (item.localName !== 'li') return '';
            count += 1;
            const lines = [];
            htmlText(item, (words) => lines.push(words), out);
            // Lists inside came as blocks of their own: one step further in.
            const [first = '', ...rest] = lines.join('\n').split('\n');
            return [`${node.localName === 'ol' ? `${count}.` : '-'} ${first}`, ...rest.map((line) => `  ${line}`)].join('\n');
        })
        .filter(Boolean)
        .join('\n');
}

/** @param {HTMLTableElement} node @param {(words: string) => void} say @param {import('./writer.js').Writer} out */
function addTable(node, say, out) {
    const rows = [...node.rows].map((row) => [...row.cells].flatMap((one) => [one, ...Array(Math.max(0, Math.min(64, one.colSpan) - 1)).fill(null)]));
    if (node.caption) say(whole(node.caption, out, ' '));
    // A table of one column is a frame around its text.
    if (rows.every((row) => row.length < 2)) for (const one of rows.flat()) htmlText(one, say, out);
    else say(table(rows.map((row) => row.map((one) => (one ? whole(one, out) : '')))));
}

/** @param {Node} node @param {import('./writer.js').Writer} out @returns {string} */
function inline(node, out) {
    if (node.nodeType === 3) return (node.textContent ?? '').replace(/\s+/g, ' ');
    if (node.nodeType !== 1) return '';
    const element = /** @type {Element} */ (node);
    const name = element.localName;
    if (SILENT.test(name) || element.hasAttribute('hidden')) return '';
    if (name === 'br') return '\n';
    if (name === 'img' || name === 'svg' || name === 'image') {
        out.leave('image');
        const alt = element.getAttribute('alt');
        return alt ? `[image: ${alt}]` : '';
    }
    if (name === 'math') return element.querySelector('annotation')?.textContent || element.getAttribute('alttext') || element.textContent || '';
    const words = [...element.childNodes].map((one) => inline(one, out)).join('');
    if (!words.trim()) return words;
    if (name === 'a' && /noteref/.test(element.getAttribute('epub:type') ?? element.getAttribute('role') ?? '')) return `[^${words.trim().replace(/^\^/, '')}]`;
    if (name === 'sup' && words.startsWith('[^')) return words;
    if (name === 'sup') return `^${words.trim()}`;
    if (name === 'sub') return `_${words.trim()}`;
    if (name === 'del' || name === 's') return `~~${words}~~`;
    if (name === 'code') return `\`${words}\``;
    const target = name === 'a' ? (element.getAttribute('href') ?? '') : '';
    return /^https?:/.test(target) && !words.includes(target) ? `[${words.trim()}](${target})` : words;
}
