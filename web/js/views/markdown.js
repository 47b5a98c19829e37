/**
 * Markdown to Lit templates. Nothing here makes HTML from text: the lexer's tokens become
 * templates, raw HTML is shown as the text it is, links go to http, https and mailto alone, and
 * images from elsewhere are never loaded.
 *
 *     const state = new MarkdownState();
 *     const blocks = state.update(text, finished);   // cheap: only what follows the last closed block is lexed again
 *     html`${blocks.map(block => renderBlock(block))}`
 */
import { Marked } from '../../vendor/marked.js';
import { t } from '../language.js';
import { html, nothing } from '../../vendor/lit.js';
import { icon } from './icons.js';
import { markTimes } from '../state/times.js';
import './code-block.js';
import './math-view.js';

/** A paragraph longer than this is shown as plain text: the lexer's expressions are slow on huge
 * lines. */
const MAX_LEXED_BLOCK = 200_000;

// A block begins at the beginning of a line: `start` is asked about what follows a first letter.
const mathBlock = {
    name: 'mathBlock',
    level: 'block',
    start: (src) => src.match(/\n {0,3}(?:\$\$|\\\[)/)?.index,
    tokenizer(src) {
        const match = /^ {0,3}(?:\$\$((?:(?!\$\$)[\s\S])+?)\$\$|\\\[((?:(?!\\\])[\s\S])+?)\\\])[ \t]*(?:\n|$)/.exec(src);
        return match ? { type: 'mathBlock', raw: match[0], tex: (match[1] ?? match[2]).trim() } : undefined;
    },
};

const mathInline = {
    name: 'mathInline',
    level: 'inline',
    start: (src) => src.match(/\$|\\\(|\\\[/)?.index,
    tokenizer(src) {
        // A single $ needs no space inside and no digit after, so that prices stay prices.
        const match =
            /^\$\$([^$]+?)\$\$/.exec(src) ??
            /^\$(?![\s$])((?:\\.|[^$\\\n])*?(?:\\.|[^\s$\\]))\$(?!\d)/.exec(src) ??
            /^\\\(([\s\S]+?)\\\)/.exec(src) ??
            /^\\\[([\s\S]+?)\\\]/.exec(src);
        if (!match) return undefined;
        return { type: 'mathInline', raw: match[0], tex: match[1].trim(), display: /^(\$\$|\\\[)/.test(match[0]) };
    },
};

/** Where the element that `src` opens ends: just behind its closing tag, code fences and inner
 * elements skipped; the whole text where none comes. @param {string} src */
function detailsEnd(src) {
    let depth = 0;
    let fence = '';
    for (const line of src.matchAll(/[^\n]*(?:\n|$)/g)) {
        const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line[0])?.[1] ?? '';
        if (fence) {
            if (mark.startsWith(fence)) fence = '';
            continue;
        }
        if (mark) {
            fence = mark;
            continue;
        }
        for (const tag of line[0].matchAll(/<(\/?)details\b[^>]*>/gi)) {
            depth += tag[1] ? -1 : 1;
            if (depth === 0) return line.index + tag.index + tag[0].length;
        }
        if (!line[0]) break;
    }
    return src.length;
}

/** <details> with its <summary>; inside is Markdown again. */
const details = {
    name: 'details',
    level: 'block',
    start: (src) => src.match(/\n {0,3}<details\b/i)?.index,
    tokenizer(src) {
        const open = /^ {0,3}<details\b[^>]*>/i.exec(src);
        if (!open) return undefined;
        const end = detailsEnd(src);
        const rest = /^[ \t]*\n?/.exec(src.slice(end))?.[0] ?? '';
        const inner = src.slice(open[0].length, end).replace(/<\/details\s*>$/i, '');
        const summary = /^\s*<summary\b[^>]*>([\s\S]*?)<\/summary\s*>/i.exec(inner);
        return {
            type: 'details',
            raw: src.slice(0, end) + rest,
            shown: /\sopen\b/i.test(open[0]),
            summary: this.lexer.inlineTokens((summary?.[1] ?? t`Details`).trim(), []),
            tokens: this.lexer.blockTokens(inner.slice(summary?.[0].length ?? 0).replace(/^\s*\n/, ''), []),
        };
    },
};

/** `[^1]: words`, with the indented lines that follow. */
const footnote = {
    name: 'footnote',
    level: 'block',
    start: (src) => src.match(/\n {0,3}\[\^[^\]\s]+\]:/)?.index,
    tokenizer(src) {
        const match = /^ {0,3}\[\^([^\]\s]+)\]:[ \t]*([^\n]*(?:\n(?:[ \t]*\n)*(?: {4}|\t)[^\n]*)*)(?:\n|$)/.exec(src);
        if (!match) return undefined;
        const text = match[2].replace(/\n(?: {4}|\t)/g, '\n');
        return { type: 'footnote', raw: match[0], label: match[1], tokens: this.lexer.blockTokens(text, []) };
    },
};

const footnoteRef = {
    name: 'footnoteRef',
    level: 'inline',
    start: (src) => src.match(/\[\^[^\]\s]+\]/)?.index,
    tokenizer(src) {
        const match = /^\[\^([^\]\s]+)\](?!\()/.exec(src);
        return match ? { type: 'footnoteRef', raw: match[0], label: match[1] } : undefined;
    },
};

// A single newline is a break, as in poems, addresses and logs: models write paragraphs as one
// line.
const marked = new Marked({ gfm: true, breaks: true, extensions: undefined });
marked.use({ extensions: [mathBlock, mathInline, details, footnote, footnoteRef] });

/** @param {string} text @returns {any[]} tokens */
export function lex(text) {
    if (text.length > MAX_LEXED_BLOCK && !text.includes('\n\n', text.length - MAX_LEXED_BLOCK)) {
        return [{ type: 'plain', raw: text, text }];
    }
    return marked.lexer(text);
}

/** `[name]: address`, for links elsewhere in the text. */
const DEFINITION = /^ {0,3}\[[^\]^\n][^\]\n]*\]:/m;

/** Lexes a growing text; closed blocks are kept, only the open tail is lexed again. */
export class MarkdownState {
    /** @param {number} [videoLength] seconds: times in the text up to there are to be buttons */
    constructor(videoLength = 0) {
        this.videoLength = videoLength;
        this.source = '';
        /** Length of the text that the closed blocks cover. */
        this.closedLength = 0;
        /** @type {any[]} */
        this.closed = [];
        /** @type {any[]} */
        this.blocks = [];
        this.finished = false;
    }

    /** @param {string} text @param {boolean} finished @returns {any[]} block tokens; a closed one has the same identity */
    update(text, finished) {
        if (text === this.source && finished === this.finished) return this.blocks;
        // The last block of a finished text may grow again: an answer that is continued. And what links are named by may stand
        // anywhere.
        if (this.finished || !text.startsWith(this.source.slice(0, this.closedLength)) || (finished && DEFINITION.test(text))) {
            this.closed = [];
            this.closedLength = 0;
        }
        this.source = text;
        this.finished = finished;
        const tail = this.#marked(lex(text.slice(this.closedLength)));
        if (!finished) {
            // All but the last two tokens cannot change any more (a list may still grow over a
            // blank line).
            let last = tail.length - 1;
            while (last > 0 && tail[last].type === 'space') last -= 1;
            for (let i = 0; i < last; i += 1) {
                this.closed.push(tail[i]);
                this.closedLength += tail[i].raw.length;
            }
            const open = tail.slice(last);
            if (open[0]) mend(open[0]);
            this.#marked(open);
            this.blocks = [...this.closed, ...open];
        } else {
            this.closed.push(...tail);
            this.closedLength = text.length;
            this.blocks = [...this.closed];
        }
        return this.blocks;
    }

    /** @param {any[]} tokens */
    #marked(tokens) {
        return this.videoLength > 0 ? markTimes(tokens, this.videoLength) : tokens;
    }
}

/** Closes what an unfinished paragraph left open, so that half a bold word does not show its
 * stars. */
function mend(token) {
    if (token.type === 'code') token.open = true;
    if (token.type !== 'paragraph' || token.raw.length > 20_000) return;
    let text = token.raw;
    const ticks = (text.match(/`/g) ?? []).length;
    if (ticks % 2 === 1) text += '`';
    else {
        text = text.replace(/(\*\*|__|\*|~~)$/, '');
        if ((text.match(/\*\*/g) ?? []).length % 2 === 1) text += '**';
        // A link whose address is still coming shows its words only.
        text = text.replace(/!?\[([^\]\n]*)\]\([^)\s]*$/, '$1');
    }
    if (text !== token.raw) token.tokens = marked.lexer(text)[0]?.tokens ?? token.tokens;
}

const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/** The direction of a block by its first letter; dir="auto" does not look into parts that have a
 * direction of their own. */
function direction(text) {
    const letter = /\p{L}/u.exec(text.slice(0, 500));
    return letter && RIGHT_TO_LEFT.test(letter[0]) ? 'rtl' : 'ltr';
}

/** @param {any} token @returns {any} a template */
export function renderBlock(token) {
    switch (token.type) {
        case 'heading':
            return heading(token);
        case 'paragraph':
            return html`<p dir="auto">${inline(token.tokens)}</p>`;
        case 'text':
            return token.tokens ? html`<p dir="auto">${inline(token.tokens)}</p>` : html`<p dir="auto">${token.text}</p>`;
        case 'code':
            return html`<code-block
                .code=${token.text}
                .language=${(token.lang ?? '').trim().split(/\s+/)[0].toLowerCase()}
                .open=${!!token.open}
            ></code-block>`;
        case 'list':
            return list(token);
        case 'details':
            return html`<details class="folded" ?open=${token.shown}>
                <summary>${inline(token.summary)}</summary>
                <div>${token.tokens.map(renderBlock)}</div>
            </details>`;
        case 'footnote':
            return html`<aside class="footnote" data-footnote=${token.label} tabindex="-1" aria-label=${t`Footnote ${token.label}`}>
                <button type="button" class="footnote-back" data-footnote-back=${token.label} aria-label=${t`Back to the text`}>${token.label}</button>
                <div>${token.tokens.map(renderBlock)}</div>
            </aside>`;
        case 'blockquote':
            if (ALERT.test(token.raw)) return alert(token);
            return html`<blockquote dir=${direction(token.raw)}>${token.tokens.map(renderBlock)}</blockquote>`;
        case 'table':
            return table(token);
        case 'hr':
            return html`<hr />`;
        case 'mathBlock':
            return html`<math-view .tex=${token.tex} .display=${true}></math-view>`;
        case 'html':
            return html`<p class="raw" dir="auto">${token.text.trimEnd()}</p>`;
        case 'plain':
            return html`<p class="raw" dir="auto">${token.text}</p>`;
        default:
            return nothing; // space, link definitions
    }
}

// The page's own headings end at level 2, so an answer's begin at 3.
function heading(token) {
    const content = inline(inOneLine(token.tokens));
    switch (Math.min(6, token.depth + 2)) {
        case 3:
            return html`<h3 dir="auto">${content}</h3>`;
        case 4:
            return html`<h4 dir="auto">${content}</h4>`;
        case 5:
            return html`<h5 dir="auto">${content}</h5>`;
        default:
            return html`<h6 dir="auto">${content}</h6>`;
    }
}

/** A heading of several lines is one. @param {any[]} tokens @returns {any[]} */
function inOneLine(tokens) {
    return tokens.map((token) => {
        if (token.type === 'br' && /^ ?\n/.test(token.raw)) return { type: 'text', text: ' ' };
        return token.tokens ? { ...token, tokens: inOneLine(token.tokens) } : token;
    });
}

function list(token) {
    const items = token.items.map((item) => {
        const tokens = item.tokens.filter((part) => part.type !== 'checkbox');
        const content = tokens.map((part) =>
            part.type === 'text' ? (part.tokens ? inline(part.tokens) : part.text) : renderBlock(part),
        );
        if (!item.task) return html`<li dir="auto">${content}</li>`;
        return html`<li class="task" dir="auto">
            <span class="box" role="img" aria-label=${item.checked ? t`done` : t`not done`}
                >${item.checked ? icon('check') : nothing}</span
            >
            <div>${content}</div>
        </li>`;
    });
    if (!token.ordered) return html`<ul dir=${direction(token.raw)}>${items}</ul>`;
    return html`<ol dir=${direction(token.raw)} start=${token.start}>${items}</ol>`;
}

/** GitHub's notes: a quote that begins with [!NOTE] and the like. */
const ALERT = /^ {0,3}> ?\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \t]*(?:\n|$)/i;

function alert(token) {
    const kind = (ALERT.exec(token.raw)?.[1] ?? 'note').toLowerCase();
    const inner = lex(token.text.replace(/^\s*\[![a-z]+\][ \t]*\n?/i, ''));
    return html`<div class="alert alert-${kind}" role="note" dir=${direction(token.raw.replace(ALERT, ''))}>
        <p class="alert-title">${icon(kind === 'note' || kind === 'tip' ? 'info' : 'warning')}${kind[0].toUpperCase()}${kind.slice(1)}</p>
        ${inner.map(renderBlock)}
    </div>`;
}

function table(token) {
    const cell = (content, i) => ({ content, align: token.align[i] ?? '' });
    return html`<div class="scroll-x" tabindex="0" dir=${direction(token.raw)} role="region" aria-label=${t`Table`}>
        <table>
            <thead>
                <tr>
                    ${token.header.map((head, i) => {
                        const { content, align } = cell(inline(head.tokens), i);
                        return html`<th scope="col" dir="auto" class=${align || nothing}>${content}</th>`;
                    })}
                </tr>
            </thead>
            <tbody>
                ${token.rows.map(
                    (row) =>
                        html`<tr>
                            ${row.map((data, i) => {
                                const { content, align } = cell(inline(data.tokens), i);
                                return html`<td dir="auto" class=${align || nothing}>${content}</td>`;
                            })}
                        </tr>`,
                )}
            </tbody>
        </table>
    </div>`;
}

/** HTML that does what it says: a break, and these elements, without any attribute. */
const BREAK = /^<br\s*\/?>$/i;
/** @type {Record<string, (content: any) => any>} */
const ELEMENTS = {
    sub: (content) => html`<sub>${content}</sub>`,
    sup: (content) => html`<sup>${content}</sup>`,
    kbd: (content) => html`<kbd>${content}</kbd>`,
    mark: (content) => html`<mark>${content}</mark>`,
    ins: (content) => html`<ins>${content}</ins>`,
    u: (content) => html`<u>${content}</u>`,
    s: (content) => html`<s>${content}</s>`,
    del: (content) => html`<del>${content}</del>`,
    b: (content) => html`<strong>${content}</strong>`,
    strong: (content) => html`<strong>${content}</strong>`,
    i: (content) => html`<em>${content}</em>`,
    em: (content) => html`<em>${content}</em>`,
    small: (content) => html`<small>${content}</small>`,
    code: (content) => html`<code>${content}</code>`,
};
const TAG = /^<(\/?)([a-z]+)(?:\s[^>]*)?>$/i;

/** The name of the element that an HTML token opens (or, with `closing`, closes), if it is one of
 * ours. @param {any} token */
function elementName(token, closing = false) {
    const match = token.type === 'html' ? TAG.exec(token.raw) : null;
    const name = match?.[2].toLowerCase() ?? '';
    return match && !!match[1] === closing && Object.hasOwn(ELEMENTS, name) ? name : '';
}

/** Where the element that tokens[at] opens is closed, or -1. @param {any[]} tokens @param {number} at */
function closingTag(tokens, at) {
    const name = elementName(tokens[at]);
    let depth = 0;
    for (let i = at; i < tokens.length; i += 1) {
        if (elementName(tokens[i]) === name) depth += 1;
        if (elementName(tokens[i], true) === name && (depth -= 1) === 0) return i;
    }
    return -1;
}

/** @param {any[]|undefined} tokens @returns {any} */
export function inline(tokens) {
    const all = tokens ?? [];
    const out = [];
    for (let i = 0; i < all.length; i += 1) {
        const end = elementName(all[i]) ? closingTag(all, i) : -1;
        if (end > i) {
            out.push(ELEMENTS[elementName(all[i])](inline(all.slice(i + 1, end))));
            i = end;
        } else {
            out.push(inlineToken(all[i], all[i - 1]));
        }
    }
    return out;
}

/** @param {any} token @param {any} before the one in front of it, if any */
function inlineToken(token, before) {
    switch (token.type) {
        case 'strong':
            return html`<strong>${inline(token.tokens)}</strong>`;
        case 'em':
            return html`<em>${inline(token.tokens)}</em>`;
        case 'del':
            return html`<del>${inline(token.tokens)}</del>`;
        case 'codespan':
            return html`<code>${token.text}</code>`;
        case 'br':
            return BREAK.test(before?.raw) ? nothing : html`<br />`;
        case 'time':
            return html`<button type="button" class="time" data-seconds=${token.seconds} title=${t`Show the video at this time`}>${token.text}</button>`;
        case 'link':
            return link(token);
        case 'image':
            return image(token);
        case 'mathInline':
            return html`<math-view .tex=${token.tex} .display=${token.display}></math-view>`;
        case 'footnoteRef':
            return html`<sup class="footnote-ref"><button type="button" data-footnote-ref=${token.label} aria-label=${t`Footnote ${token.label}`}>${token.label}</button></sup>`;
        case 'html':
            return BREAK.test(token.raw) ? html`<br />` : token.raw;
        case 'escape':
            return token.text;
        case 'checkbox':
            return nothing;
        default:
            return token.tokens ? inline(token.tokens) : (token.text ?? token.raw);
    }
}

/** The address if it is one that a page may link to, else null. @param {string} href */
export function safeHref(href) {
    try {
        const url = new URL(href);
        return /^(https?|mailto):$/.test(url.protocol) ? url.href : null;
    } catch {
        return null; // relative addresses mean nothing in an answer
    }
}

function link(token) {
    const href = safeHref(token.href);
    const content = inline(token.tokens);
    if (!href) return html`${content}`;
    return html`<a href=${href} target="_blank" rel="noopener noreferrer">${content}</a>`;
}

function image(token) {
    const href = safeHref(token.href);
    const words = token.text || t`image`;
    if (/^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/.test(token.href)) {
        return html`<img class="inline-image" src=${token.href} alt=${words} />`;
    }
    if (!href) return html`<span class="chip">${words}</span>`;
    return html`<a class="chip" href=${href} target="_blank" rel="noopener noreferrer" title=${t`Opens ${href}`}
        >${t`Image not loaded: ${words}`} (${new URL(href).hostname})</a
    >`;
}
