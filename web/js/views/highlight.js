/**
 * Code colours. The library's token tree becomes Lit templates, so no HTML string is ever made. It
 * is loaded with the first code block.
 */
import { html } from '../../vendor/lit.js';

const MAX_CHARS = 60_000; // longer code stays plain: colouring it would block the page
const MAX_WORD = 1_000; // of a longer one, the library's patterns take the square of its length

const ALIASES = { sh: 'bash', zsh: 'bash', console: 'bash', html: 'xml', svg: 'xml', 'c++': 'cpp', 'c#': 'csharp' };

/** @type {any} */
let library = null;
/** @type {Promise<void>|null} */
let loading = null;

/** Loads the library; null if it is there already. */
export function loadHighlighter() {
    if (library) return null;
    loading ??= import('../../vendor/highlight.js').then((module) => {
        library = module.default;
    });
    return loading;
}

/**
 * @param {string} code @param {string} language as written after the fence
 * @returns {any} templates, or null if it stays plain (yet)
 */
export function highlighted(code, language) {
    if (!library || code.length > MAX_CHARS || code.split(/\W/).some((word) => word.length > MAX_WORD)) return null;
    const name = ALIASES[language] ?? language;
    if (!name || !library.getLanguage(name)) return null;
    try {
        // _emitter is the tree behind the library's HTML output; the vendored version is pinned.
        const tree = library.highlight(code, { language: name, ignoreIllegals: true })._emitter.root;
        return tree.children.map(node);
    } catch {
        return null;
    }
}

function node(item) {
    if (typeof item === 'string') return item;
    const children = item.children.map(node);
    if (!item.scope || item.scope.startsWith('language:')) return children;
    return html`<span class="tok-${item.scope.split('.')[0]}">${children}</span>`;
}
