/** What the formats of Office Open XML share: parts that name others, formulas, charts. */
import { attr, below, kid, kids, readXml } from './xml.js';
import { table } from './writer.js';

/** @typedef {import('./zip.js').Zip} Zip */

/** @param {string} base a part @param {string} target as it stands in it */
export function resolve(base, target) {
    const path = target.startsWith('/') ? [] : base.split('/').slice(0, -1);
    for (const step of target.split('/')) {
        if (step === '..') path.pop();
        else if (step && step !== '.') path.push(step);
    }
    return path.join('/');
}

/**
 * The parts that a part names. @param {Zip} zip @param {string} part '' for the whole document
 * @returns {Promise<Map<string, {target: string, type: string, external: boolean}>>} by id; type: the
 *   last word of it
 */
export async function relations(zip, part) {
    const at = part.lastIndexOf('/') + 1;
    const name = `${part.slice(0, at)}_rels/${part.slice(at)}.rels`;
    if (!zip.has(name)) return new Map();
    return new Map(
        kids(await readXml(zip, name), 'Relationship').map((one) => {
            const external = one.getAttribute('TargetMode') === 'External';
            const target = one.getAttribute('Target') ?? '';
            return [one.getAttribute('Id') ?? '', { target: external ? target : resolve(part, target), type: (one.getAttribute('Type') ?? '').split('/').at(-1) ?? '', external }];
        }),
    );
}

/** The first part of a type that a part names. @param {Map<string, {target: string, type: string}>} named
 * @param {string} type */
export function partOf(named, type) {
    return [...named.values()].find((one) => one.type === type)?.target;
}

/** Of two ways to write one thing the one meant for newer programs.
 * @param {Element} node mc:AlternateContent @returns {Element|undefined} */
export function chosen(node) {
    return kid(node, 'Choice') ?? kid(node, 'Fallback');
}

/** A formula in a line. @param {Element} node an element of OMML @returns {string} */
export function formula(node) {
    const part = (name) => kids(node, name).map(formula).join('');
    const whole = (text) => (/^[\p{L}\p{N}.]*$/u.test(text) ? text : `(${text})`);
    const each = () => [...node.children].map(formula).join('');
    switch (node.localName) {
        case 't':
            return node.textContent ?? '';
        case 'f':
            return `${whole(part('num'))}/${whole(part('den'))}`;
        case 'sSup':
            return `${part('e')}^${whole(part('sup'))}`;
        case 'sSub':
            return `${part('e')}_${whole(part('sub'))}`;
        case 'sSubSup':
            return `${part('e')}_${whole(part('sub'))}^${whole(part('sup'))}`;
        case 'rad':
            return part('deg') ? `root(${part('deg')}, ${part('e')})` : `sqrt(${part('e')})`;
        case 'nary': {
            const sign = attr(kid(node, 'naryPr', 'chr'), 'val') || '∫';
            const [from, to] = [part('sub'), part('sup')];
            return `${sign}${from && `_${whole(from)}`}${to && `^${whole(to)}`} ${part('e')}`;
        }
        case 'd': {
            const { begChr = '(', endChr = ')' } = Object.fromEntries([...(kid(node, 'dPr')?.children ?? [])].map((one) => [one.localName, attr(one, 'val')]));
            return `${begChr}${kids(node, 'e').map(formula).join(', ')}${endChr}`;
        }
        case 'm':
            return `[${kids(node, 'mr').map((row) => kids(row, 'e').map(formula).join(', ')).join('; ')}]`;
        case 'rPr':
        case 'ctrlPr':
            return '';
        default:
            return each();
    }
}

/** The numbers that a chart was drawn from, as a table. @param {Zip} zip @param {string|undefined} part */
export async function chart(zip, part) {
    if (!part || !zip.has(part)) return '';
    const root = await readXml(zip, part);
    const title = below(root, 'title')[0];
    const words = title && kid(title, 'tx') ? below(title, 't').map((one) => one.textContent).join('') : '';
    const points = (node) => {
        const list = [];
        for (const one of node ? below(node, 'pt') : []) list[Math.min(10_000, Number(one.getAttribute('idx')))] = kid(one, 'v')?.textContent ?? '';
        return list;
    };
    const series = below(root, 'ser').map((one) => ({
        name: points(kid(one, 'tx'))[0] ?? kid(one, 'tx', 'v')?.textContent ?? '',
        names: points(kid(one, 'cat') ?? kid(one, 'xVal')),
        values: points(kid(one, 'val') ?? kid(one, 'yVal')),
    }));
    if (!series.length) return '';
    const length = Math.max(...series.map(({ values }) => values.length));
    const rows = Array.from({ length }, (_, i) => [series[0].names[i] ?? String(i + 1), ...series.map(({ values }) => values[i] ?? '')]);
    return `Chart${words ? `: ${words}` : ''}\n\n${table([['', ...series.map(({ name }) => name)], ...rows])}`;
}
