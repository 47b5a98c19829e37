/** XML and XHTML parts by the browser's own parser. What comes of it is never shown: it has no
 * window, fetches nothing, runs nothing, and only its words are taken. */
import { t } from '../language.js';
import { damaged } from './zip.js';

/** The page's policy lets no plain string into a parser; these are inert. */
const policy = globalThis.trustedTypes?.createPolicy('document-reader', { createHTML: (text) => text });

/** @param {Uint8Array} bytes */
function decodeXml(bytes) {
    const head = String.fromCharCode(...bytes.subarray(0, 200));
    const said = /^\s*<\?xml[^>]*encoding\s*=\s*["']([\w.-]+)["']/.exec(head.replace(/^\xef\xbb\xbf|\0/g, ''))?.[1] ?? 'utf-8';
    const marked = { '\xff\xfe': 'utf-16le', '\xfe\xff': 'utf-16be', '<\0': 'utf-16le', '\0<': 'utf-16be' }[head.slice(0, 2)];
    try {
        return new TextDecoder(marked ?? (/^utf-?16/i.test(said) ? 'utf-8' : said)).decode(bytes);
    } catch {
        return new TextDecoder().decode(bytes); // an encoding that nobody knows
    }
}

/**
 * @param {import('./zip.js').Zip} zip @param {string} name @param {Uint8Array} [given] its bytes, where they are at hand
 * @returns {Promise<Element>} the root
 */
export async function readXml(zip, name, given) {
    const text = decodeXml(given ?? (await zip.bytes(name)));
    // No format read here defines entities; one that does is made to grow.
    const root = /<!ENTITY/i.test(text) ? null : parse(text, 'application/xml').documentElement;
    if (!root || root.localName === 'parsererror' || root.getElementsByTagName('parsererror').length) throw damaged(zip.file, t`its part ${name} cannot be read`);
    return root;
}

/** A part of a book: XHTML, or what passes for it. @param {import('./zip.js').Zip} zip @param {string} name */
export async function readHtml(zip, name) {
    return parse(withoutStyles(decodeXml(await zip.bytes(name))), 'text/html').body;
}

/** Styles do nothing here, but the page's policy would complain of each. @param {string} text */
function withoutStyles(text) {
    const parts = [];
    let at = 0;
    for (let from; (from = text.indexOf('<style', at)) >= 0; ) {
        parts.push(text.slice(at, from));
        const end = text.indexOf('</style', from);
        at = end < 0 ? text.length : end;
    }
    parts.push(text.slice(at));
    return parts.join('').replace(/<[a-z][^<>]*>/gi, (tag) => tag.replace(/\sstyle\s*=\s*("[^"]*"|'[^']*')/gi, ''));
}

/** @param {string} text @param {DOMParserSupportedType} type */
function parse(text, type) {
    return new DOMParser().parseFromString(/** @type {any} */ (policy ? policy.createHTML(text) : text), type);
}

/** Children by their local name: prefixes are any program's own choice.
 * @param {Element|undefined|null} node @param {string} name @returns {Element[]} */
export function kids(node, name) {
    return node ? [...node.children].filter((one) => one.localName === name) : [];
}

/** The first child along a path. @param {Element|undefined|null} node @param {string[]} path
 * @returns {Element|undefined} */
export function kid(node, ...path) {
    let at = node ?? undefined;
    for (const name of path) at = at && [...at.children].find((one) => one.localName === name);
    return at;
}

/** @param {Element|Document} node @param {string} name @returns {Element[]} all below, in order */
export function below(node, name) {
    return [...node.getElementsByTagNameNS('*', name)];
}

/** @param {Element|undefined|null} node @param {string} name without its prefix @returns {string} '' without one */
export function attr(node, name) {
    if (!node) return '';
    for (const one of node.attributes) if (one.localName === name) return one.value;
    return '';
}
