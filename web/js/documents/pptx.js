/** Presentations of PowerPoint: slide by slide, with title, lists, tables, charts and notes. */
import { chart, chosen, formula, partOf, relations } from './ooxml.js';
import { oneLine, table } from './writer.js';
import { attr, below, kid, kids, readXml } from './xml.js';

/**
 * @param {import('./zip.js').Zip} zip @param {string} part @param {Element} root
 * @param {import('./writer.js').Writer} out
 */
export async function readPptx(zip, part, root, out) {
    const named = await relations(zip, part);
    const slides = kids(kid(root, 'sldIdLst'), 'sldId').flatMap((one) => {
        // Both ids of a slide are called id; the one of the relation has a prefix.
        const id = [...one.attributes].find(({ localName, prefix }) => localName === 'id' && prefix)?.value ?? '';
        return named.get(id)?.target ?? [];
    });
    for (const [i, name] of slides.entries()) {
        if (out.full) break;
        const slide = await readXml(zip, name);
        const own = await relations(zip, name);
        out.add(`--- Slide ${i + 1} of ${slides.length}${slide.getAttribute('show') === '0' ? ' (hidden)' : ''} ---`);
        const shapes = shapesOf(kid(slide, 'cSld', 'spTree'));
        const titles = shapes.filter((one) => isTitle(kindOf(one)));
        for (const one of [...titles, ...shapes.filter((one) => !titles.includes(one))]) await addShape(zip, own, one, out);
        const notes = partOf(own, 'notesSlide');
        if (notes && zip.has(notes)) {
            const said = shapesOf(kid(await readXml(zip, notes), 'cSld', 'spTree')).filter((one) => kindOf(one) === 'body');
            const words = said.map((one) => paragraphs(kid(one, 'txBody'), false)).join('\n').trim();
            if (words) out.add(`Notes: ${words}`);
        }
        await out.breathe();
    }
}

/** Shapes, those in groups too. @param {Element|undefined} node @returns {Element[]} */
function shapesOf(node) {
    return [...(node?.children ?? [])].flatMap((one) => {
        if (one.localName === 'grpSp') return shapesOf(one);
        if (one.localName === 'AlternateContent') return shapesOf(chosen(one));
        return /^(sp|graphicFrame|pic)$/.test(one.localName) ? [one] : [];
    });
}

/** What a shape is for: title, body, ... @param {Element} shape */
function kindOf(shape) {
    const holder = kid(shape, 'nvSpPr', 'nvPr', 'ph');
    return holder ? holder.getAttribute('type') || 'body' : '';
}

/** @param {string} kind of a shape */
const isTitle = (kind) => kind === 'title' || kind === 'ctrTitle';

/** @param {import('./zip.js').Zip} zip @param {Map<string, any>} named @param {Element} shape
 * @param {import('./writer.js').Writer} out */
async function addShape(zip, named, shape, out) {
    if (shape.localName === 'pic') {
        const alt = attr(kid(shape, 'nvPicPr', 'cNvPr'), 'descr');
        out.leave('image');
        if (alt) out.add(`[image: ${alt}]`);
        return;
    }
    if (shape.localName === 'graphicFrame') {
        const data = kid(shape, 'graphic', 'graphicData');
        const rows = kids(kid(data, 'tbl'), 'tr').map((row) => kids(row, 'tc').map((one) => (/^(1|true)$/.test(one.getAttribute('vMerge') ?? one.getAttribute('hMerge') ?? '') ? '' : paragraphs(kid(one, 'txBody'), false))));
        if (rows.length) out.add(table(rows));
        out.add(await chart(zip, named.get(attr(kid(data, 'chart'), 'id'))?.target));
        const drawn = named.get(attr(kid(data, 'relIds'), 'dm'))?.target;
        if (drawn && zip.has(drawn)) out.add(below(await readXml(zip, drawn), 't').map((one) => `- ${one.textContent}`).join('\n'));
        return;
    }
    const kind = kindOf(shape);
    if (/^(sldNum|dt|ftr|hdr|sldImg)$/.test(kind)) return;
    const words = paragraphs(kid(shape, 'txBody'), kind !== '' && !isTitle(kind));
    if (words) out.add(isTitle(kind) ? `## ${oneLine(words)}` : words);
}

/** @param {Element|undefined} body @param {boolean} asList where there are several */
function paragraphs(body, asList) {
    const list = kids(body, 'p').map((one) => ({ level: Number(attr(kid(one, 'pPr'), 'lvl') || 0), words: line(one).trim() })).filter(({ words }) => words);
    const isList = asList && (list.length > 1 || list.some(({ level }) => level > 0));
    return list.map(({ level, words }) => (isList ? `${'  '.repeat(Math.min(9, level))}- ${words}` : words)).join('\n');
}

/** @param {Element} node @returns {string} */
function line(node) {
    return [...node.children]
        .map((one) => {
            if (one.localName === 'r' || one.localName === 'fld') {
                const raised = Number(attr(kid(one, 'rPr'), 'baseline'));
                return (raised > 0 ? '^' : raised < 0 ? '_' : '') + (kid(one, 't')?.textContent ?? '');
            }
            if (one.localName === 'br') return '\n';
            if (one.localName === 'AlternateContent') return chosen(one) ? line(/** @type {Element} */ (chosen(one))) : '';
            if (one.localName === 'm') return [...one.children].map(formula).join('');
            return '';
        })
        .join('');
}
