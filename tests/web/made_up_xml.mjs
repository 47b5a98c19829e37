/** As much of DOMParser as the readers of documents use, so that they run without a browser: well-formed XML, and HTML that is
 * nearly so. What is read with it is read with a browser's own, too: documents.test.mjs.
 *
 *     useMadeUpParser();
 */
const ENTITIES = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'", nbsp: '\u00a0' };
const VOID = /^(br|img|hr|meta|link|input|col)$/;

const decoded = (text) => text.replace(/&(?:#x([\da-f]+)|#(\d+)|(\w+));/gi, (whole, hex, number, name) =>
    (hex || number ? String.fromCodePoint(hex ? parseInt(hex, 16) : Number(number)) : (ENTITIES[name] ?? whole)));
const split = (name) => (name.includes(':') ? [name.slice(0, name.indexOf(':')), name.slice(name.indexOf(':') + 1)] : [null, name]);

class Text {
    nodeType = 3;
    constructor(text) {
        this.textContent = text;
    }
}

class Element {
    nodeType = 1;
    childNodes = [];
    parentElement = null;
    constructor(name, attributes = '') {
        [this.prefix, this.localName] = split(name);
        this.attributes = [...attributes.matchAll(/([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')|([\w:.-]+)/g)].map(([, given, double, single, alone]) => {
            const [prefix, localName] = split(given ?? alone);
            return { name: given ?? alone, prefix, localName, value: decoded((double ?? single ?? '').replace(/\s/g, ' ')) };
        });
    }
    append(node) {
        node.parentElement = this;
        this.childNodes.push(node);
        return node;
    }
    get children() {
        return this.childNodes.filter(({ nodeType }) => nodeType === 1);
    }
    get textContent() {
        return this.childNodes.map(({ textContent }) => textContent).join('');
    }
    get #all() {
        return this.children.flatMap((one) => [one, ...one.getElementsByTagName('*')]);
    }
    getAttribute(name) {
        return this.attributes.find((one) => one.name === name)?.value ?? null;
    }
    hasAttribute = (name) => this.getAttribute(name) !== null;
    getElementsByTagName = (name) => this.#all.filter((one) => name === '*' || one.localName === name);
    getElementsByTagNameNS = (_, name) => this.getElementsByTagName(name);
    querySelector = (name) => this.getElementsByTagName(name)[0] ?? null;
    contains = (other) => other === this || this.#all.includes(other);
    // Of an HTML table.
    get rows() {
        const parts = (name) => this.children.filter(({ localName }) => localName === name).flatMap(({ children }) => children);
        return [...parts('thead'), ...this.children.flatMap((one) => (one.localName === 'tbody' ? one.children : one)), ...parts('tfoot')].filter(({ localName }) => localName === 'tr');
    }
    get cells() {
        return this.children.filter(({ localName }) => /^t[dh]$/.test(localName));
    }
    get colSpan() {
        return Number(this.getAttribute('colspan') ?? 1);
    }
    get caption() {
        return this.children.find(({ localName }) => localName === 'caption') ?? null;
    }
}

/** @returns {Element|null} what holds the root; null: it is not well-formed */
function read(text, isHtml) {
    const top = new Element('#document');
    let at = top;
    const tokens = /<!--[^]*?-->|<!\[CDATA\[([^]*?)\]\]>|<\?[^]*?\?>|<!DOCTYPE[^>]*>|<\/([\w:.-]+)\s*>|<([\w:.-]+)((?:\s+[\w:.-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'))?)*)\s*(\/?)>|([^<]+)/giy;
    let end = 0;
    for (const [whole, data, close, open, attributes, isEmpty, words] of text.matchAll(tokens)) {
        end += whole.length;
        if (data !== undefined) at.append(new Text(data));
        else if (words !== undefined) at.append(new Text(decoded(words)));
        else if (close) {
            const name = split(close)[1];
            if (isHtml && at.localName !== name) continue; // an end of nothing
            if (at.localName !== name || at === top) return null;
            at = at.parentElement;
        } else if (open) {
            const one = at.append(new Element(open, attributes));
            if (!isEmpty && !(isHtml && VOID.test(open))) at = one;
        }
    }
    return end === text.length && at === top ? top : null;
}

class MadeUpParser {
    parseFromString(text, type) {
        const isHtml = type === 'text/html';
        const top = read(text.replace(/^\ufeff/, ''), isHtml);
        const root = top?.children[0] ?? new Element('parsererror');
        if (!isHtml) return { documentElement: root };
        const body = top?.getElementsByTagName('body')[0] ?? top;
        return { body: body ?? new Element('body') };
    }
}

export function useMadeUpParser() {
    Object.assign(globalThis, { DOMParser: MadeUpParser, Node: { ELEMENT_NODE: 1, TEXT_NODE: 3 } });
}
