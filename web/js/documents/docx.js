/** Text documents of Word: headings, numbered paragraphs, lists, tables, notes, comments. Deleted and
 * hidden text is left out, as a reader of the document does not see it either. */
import { chart, chosen, formula, partOf, relations } from './ooxml.js';
import { table } from './writer.js';
import { attr, below, kid, kids, readXml } from './xml.js';

/** @typedef {{level: number, num?: {id: string, level: number}, based: string}} Style */

/**
 * @param {import('./zip.js').Zip} zip @param {string} part @param {Element} root
 * @param {import('./writer.js').Writer} out
 */
export async function readDocx(zip, part, root, out) {
    const named = await relations(zip, part);
    const open = async (type) => {
        const name = partOf(named, type);
        return name && zip.has(name) ? readXml(zip, name) : undefined;
    };
    const text = new WordText(named, out, stylesOf(await open('styles')), new Numbers(await open('numbering')));
    for (const block of blocksOf(kid(root, 'body'))) {
        if (out.full) break;
        text.block(block, (words, tight) => out.add(words, tight));
        await out.breathe();
    }
    for (const name of text.charts) out.add(await chart(zip, name));
    for (const [type, item, mark] of [['footnotes', 'footnote', '^'], ['endnotes', 'endnote', '^e'], ['comments', 'comment', 'comment ']]) {
        for (const note of kids(await open(type), item)) {
            if (!/^(separator|continuation)/.test(attr(note, 'type'))) out.add(`[${mark}${attr(note, 'id')}]: ${text.whole(note, ' ')}`);
        }
    }
}

/** @param {Element|undefined} root of styles.xml @returns {Map<string, Style>} */
function stylesOf(root) {
    /** @type {Map<string, Style>} */
    const styles = new Map();
    for (const style of kids(root, 'style')) {
        const name = attr(kid(style, 'name'), 'val');
        const outline = attr(kid(style, 'pPr', 'outlineLvl'), 'val');
        const level = /^title$/i.test(name) ? 1 : Number(/^heading (\d)/i.exec(name)?.[1] ?? (outline && Number(outline) < 9 ? Number(outline) + 1 : 0));
        styles.set(attr(style, 'styleId'), { level, num: numberOf(kid(style, 'pPr')), based: attr(kid(style, 'basedOn'), 'val') });
    }
    return styles;
}

/** @param {Element|undefined} properties of a paragraph or a style */
function numberOf(properties) {
    const node = kid(properties, 'numPr');
    return node && { id: attr(kid(node, 'numId'), 'val'), level: Number(attr(kid(node, 'ilvl'), 'val') || 0) };
}

const ROMAN = [[1000, 'm'], [900, 'cm'], [500, 'd'], [400, 'cd'], [100, 'c'], [90, 'xc'], [50, 'l'], [40, 'xl'], [10, 'x'], [9, 'ix'], [5, 'v'], [4, 'iv'], [1, 'i']];

/** @param {number} n @param {string} format as numFmt names it */
function written(n, format) {
    let roman = '';
    let rest = n;
    if (/Roman$/.test(format)) for (const [value, sign] of /** @type {[number, string][]} */ (ROMAN)) for (; rest >= value && roman.length < 20; rest -= value) roman += sign;
    switch (format) {
        case 'lowerRoman':
            return roman;
        case 'upperRoman':
            return roman.toUpperCase();
        case 'lowerLetter':
        case 'upperLetter': {
            const letter = String.fromCharCode((format === 'lowerLetter' ? 97 : 65) + ((n - 1) % 26)).repeat(Math.min(9, Math.floor((n - 1) / 26) + 1));
            return letter;
        }
        default:
            return String(n);
    }
}

/** Counts numbered paragraphs as Word does, so that "see 4.2" can be found. */
class Numbers {
    /** @param {Element|undefined} root of numbering.xml */
    constructor(root) {
        this.kinds = new Map(kids(root, 'abstractNum').map((one) => [attr(one, 'abstractNumId'), kids(one, 'lvl')]));
        this.kindOf = new Map(kids(root, 'num').map((one) => [attr(one, 'numId'), attr(kid(one, 'abstractNumId'), 'val')]));
        /** @type {Map<string, number[]>} */
        this.counts = new Map();
    }

    /** What stands before a paragraph: "- ", "4.2 ", ''. @param {{id: string, level: number}} num */
    next({ id, level }) {
        const kind = this.kindOf.get(id) ?? '';
        const levels = this.kinds.get(kind) ?? [];
        const of = (i) => levels.find((one) => attr(one, 'ilvl') === String(i));
        const format = attr(kid(of(level), 'numFmt'), 'val');
        if (!of(level) || format === 'none') return '';
        if (format === 'bullet') return '- ';
        const counts = this.counts.get(kind) ?? [];
        this.counts.set(kind, counts);
        const start = (i) => Number(attr(kid(of(i), 'start'), 'val') || 1);
        counts[level] = (counts[level] ?? start(level) - 1) + 1;
        counts.length = level + 1; // deeper ones begin anew
        const shape = attr(kid(of(level), 'lvlText'), 'val');
        const words = shape.replace(/%(\d)/g, (_, i) => written(counts[i - 1] ?? start(i - 1), attr(kid(of(i - 1), 'numFmt'), 'val')));
        return words ? `${words} ` : '';
    }
}

/** Paragraphs and tables, whatever they are wrapped in. @param {Element|undefined} node @returns {Element[]} */
function blocksOf(node) {
    return [...(node?.children ?? [])].flatMap((one) => {
        if (one.localName === 'p' || one.localName === 'tbl') return [one];
        if (one.localName === 'AlternateContent') return blocksOf(chosen(one));
        return /^(sdt|sdtContent|customXml|ins|moveTo|smartTag|txbxContent)$/.test(one.localName) ? blocksOf(one) : [];
    });
}

/** Rows or cells, whatever they are wrapped in. @param {Element} node @param {string} name @returns {Element[]} */
function wrapped(node, name) {
    return [...node.children].flatMap((one) => (one.localName === name ? [one] : /^(sdt|sdtContent|customXml|ins)$/.test(one.localName) ? wrapped(one, name) : []));
}

class WordText {
    /** @param {Map<string, any>} named @param {import('./writer.js').Writer} out @param {Map<string, Style>} styles @param {Numbers} numbers */
    constructor(named, out, styles, numbers) {
        this.named = named;
        this.out = out;
        this.styles = styles;
        this.numbers = numbers;
        /** @type {string[]} */
        this.charts = [];
        /** Text boxes of the paragraph that is read. @type {Element[]} */
        this.boxes = [];
    }

    /** @param {Element} node @param {(words: string, tight?: boolean) => void} say tight: an item of a list */
    block(node, say) {
        if (node.localName === 'tbl') {
            this.#table(node, say);
            return;
        }
        const words = this.inline(node).trim();
        const boxes = this.boxes.splice(0);
        if (words) {
            const lead = this.#lead(kid(node, 'pPr'));
            say(lead + words, /\S/.test(lead) && !lead.startsWith('#'));
        }
        for (const box of boxes) for (const one of blocksOf(box)) this.block(one, say);
    }

    /** All words of a cell or a note. @param {Element} node @param {string} between */
    whole(node, between = '\n') {
        /** @type {string[]} */
        const words = [];
        for (const one of blocksOf(node)) this.block(one, (text) => words.push(text));
        return words.join(between);
    }

    /** @param {Element|undefined} properties of a paragraph */
    #lead(properties) {
        const outline = attr(kid(properties, 'outlineLvl'), 'val');
        let level = outline && Number(outline) < 9 ? Number(outline) + 1 : 0;
        let num = numberOf(properties);
        // What a style leaves open is as in the one it is based on.
        let style = this.styles.get(attr(kid(properties, 'pStyle'), 'val'));
        for (let steps = 0; style && steps < 20; steps += 1) {
            level ||= style.level;
            num ??= style.num;
            style = this.styles.get(style.based);
        }
        const number = num && num.id !== '0' ? this.numbers.next(num) : '';
        if (level) return `${'#'.repeat(Math.min(6, level))} ${number === '- ' ? '' : number}`;
        return num && number ? '  '.repeat(num.level) + number : '';
    }

    /** @param {Element} node @param {(words: string) => void} say */
    #table(node, say) {
        const rows = wrapped(node, 'tr').filter((row) => !kid(row, 'trPr', 'del'));
        const cells = rows.map((row) => wrapped(row, 'tc'));
        // A table of one column is a frame around its text.
        if (cells.every((row) => row.length < 2)) {
            for (const one of cells.flat()) for (const block of blocksOf(one)) this.block(block, say);
            return;
        }
        const words = cells.map((row) =>
            row.flatMap((one) => {
                const merge = kid(one, 'tcPr', 'vMerge');
                const span = Math.min(64, Number(attr(kid(one, 'tcPr', 'gridSpan'), 'val') || 1));
                return [merge && attr(merge, 'val') !== 'restart' ? '' : this.whole(one), ...Array(Math.max(0, span - 1)).fill('')];
            }),
        );
        say(table(words));
    }

    /** @param {Element} node @returns {string} */
    inline(node) {
        return [...node.children].map((one) => this.#part(one)).join('');
    }

    /** @param {Element} node @returns {string} */
    #part(node) {
        switch (node.localName) {
            case 'r':
                return this.#run(node);
            case 'hyperlink': {
                const { target, external } = this.named.get(attr(node, 'id')) ?? {};
                const words = this.inline(node);
                return external && words && !words.includes(target) ? `[${words}](${target})` : words;
            }
            case 'oMath':
                return formula(node);
            case 'oMathPara':
                return kids(node, 'oMath').map(formula).join('\n');
            case 'AlternateContent': {
                const way = chosen(node);
                return way ? this.inline(way) : '';
            }
            case 'ins':
            case 'moveTo':
            case 'sdt':
            case 'sdtContent':
            case 'smartTag':
            case 'fldSimple':
            case 'customXml':
            case 'dir':
            case 'bdo':
                return this.inline(node);
            default:
                return ''; // deleted text, properties, marks
        }
    }

    /** @param {Element} run @returns {string} */
    #run(run) {
        const off = (one) => one && !/^(0|false|off)$/.test(attr(one, 'val'));
        if (off(kid(run, 'rPr', 'vanish'))) return '';
        const words = [...run.children].map((one) => this.#piece(one)).join('');
        const raised = { superscript: '^', subscript: '_' }[attr(kid(run, 'rPr', 'vertAlign'), 'val')];
        if (raised && words.trim() && !words.startsWith('[')) return raised + words;
        return words.trim() && off(kid(run, 'rPr', 'strike')) ? `~~${words}~~` : words;
    }

    /** @param {Element} one @returns {string} */
    #piece(one) {
        switch (one.localName) {
            case 't':
                return one.textContent ?? '';
            case 'tab':
            case 'ptab':
                return '\t';
            case 'br':
            case 'cr':
                return '\n';
            case 'noBreakHyphen':
                return '‑';
            case 'footnoteReference':
                return `[^${attr(one, 'id')}]`;
            case 'endnoteReference':
                return `[^e${attr(one, 'id')}]`;
            case 'commentReference':
                return `[comment ${attr(one, 'id')}]`;
            case 'ruby':
                return kid(one, 'rubyBase') ? this.inline(/** @type {Element} */ (kid(one, 'rubyBase'))) : '';
            case 'AlternateContent':
                return [...(chosen(one)?.children ?? [])].map((inner) => this.#piece(inner)).join('');
            case 'drawing':
            case 'pict':
            case 'object':
                return this.#drawn(one);
            default:
                return '';
        }
    }

    /** Words in a drawing; its images are counted. @param {Element} node */
    #drawn(node) {
        const boxes = below(node, 'txbxContent');
        this.boxes.push(...boxes.filter((box) => !boxes.some((outer) => outer !== box && outer.contains(box)))); // an inner one comes with its own
        for (const one of below(node, 'chart')) this.charts.push(this.named.get(attr(one, 'id'))?.target ?? '');
        const n = below(node, 'blip').length + below(node, 'imagedata').length;
        if (!n) return '';
        this.out.leave('image', n);
        const alt = below(node, 'docPr').map((one) => one.getAttribute('descr')).find(Boolean);
        return alt ? `[image: ${alt}]` : '';
    }
}
