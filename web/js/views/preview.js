/**
 * <code-preview>: HTML, SVG or a Mermaid diagram that a model wrote, shown in a sandboxed frame (preview.html) beside
 * its source, with the versions that the chat has of it. In a dialog; loaded with the first one.
 *
 * The frame has an origin of its own, and its policy and that of this page let it reach nothing: no
 * network, no storage, no other page. What it sends is not listened to, but for one word when it is
 * there.
 */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { t } from '../language.js';
import { isShown } from './code-block.js';
import { icon } from './icons.js';
import { download } from '../util.js';

const FENCE = /^ {0,3}(`{3,}|~{3,}) *([\w+-]+)[^\n]*\n([\s\S]*?)^ {0,3}\1[`~]* *$/gm;

/** All that can be shown of a chat, oldest first. @param {import('../state/store.js').Conversation} conversation
 * @returns {{language: string, code: string}[]} */
export function versionsOf(conversation) {
    const messages = Object.values(conversation.messages).filter(({ role }) => role === 'assistant').sort((a, b) => a.created - b.created);
    return messages.flatMap(({ text }) => [...text.matchAll(FENCE)].map(([, , language, code]) => ({ language, code: code.replace(/\n$/, '') }))).filter(({ language }) => isShown(language));
}

/** Text that a script inside a page may have as it is. @param {any} value */
const literal = (value) => JSON.stringify(value).replaceAll('<', '\\u003c');

/** Draws a diagram; runs in the frame, behind mermaid itself.
 * @param {string} code @param {boolean} isDark @param {{what: string, next: string}} words */
async function draw(code, isDark, { what, next }) {
    mermaid.initialize({ securityLevel: 'strict', startOnLoad: false, suppressErrorRendering: true, layout: 'dagre', theme: isDark ? 'dark' : 'default' });
    const place = document.querySelector('main');
    try {
        const { svg } = await mermaid.render('diagram', code);
        place.append(document.createRange().createContextualFragment(svg)); // seen by the policy of preview.html
    } catch (error) {
        const add = (name, text) => Object.assign(place.appendChild(document.createElement(name)), { textContent: text });
        add('h1', what);
        add('p', next);
        add('pre', `${error?.message ?? error}`);
    }
}

/** The library, as text: the frame may fetch nothing. @type {Promise<string>|null} */
let library = null;

async function loadLibrary() {
    const reply = await fetch(new URL('../../vendor/mermaid.js', import.meta.url));
    if (!reply.ok) throw new Error();
    return reply.text();
}

/** @param {string} code */
async function diagramPage(code) {
    library ??= loadLibrary();
    const script = await library.catch((error) => {
        library = null; // the next one tries again
        throw error;
    });
    const { theme } = document.documentElement.dataset;
    const isDark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
    const [paper, ink] = isDark ? ['#1f2020', '#e6e6e6'] : ['#fff', '#222'];
    // The frame's policy has one maker of trusted texts, preview.html: the library shall not ask for another.
    const words = { what: t`This diagram cannot be drawn.`, next: t`“Source” shows what the model wrote. Send it this message to have it put right:` };
    return `<!doctype html><meta charset="utf-8"><style>html{color-scheme:${isDark ? 'dark' : 'light'};background:${paper};color:${ink};font:16px system-ui,sans-serif}body{margin:1rem}main>svg{display:block;margin:auto;max-width:100%}h1{font-size:1.1rem}pre{white-space:pre-wrap;overflow-wrap:anywhere}</style>
        <main></main><script>delete window.trustedTypes</script><script>${script.replaceAll('</script', '<\\/script')}</script><script>(${draw})(${literal(code)},${isDark},${literal(words)})</script>`;
}

/** The page that is shown. @param {{language: string, code: string}} version */
async function pageOf({ language, code }) {
    if (/^mermaid$/i.test(language)) return diagramPage(code);
    // An image alone stands in the middle, as large as it is.
    if (!/^svg$/i.test(language)) return code;
    return `<!doctype html><meta charset="utf-8"><style>html,body{height:100%;margin:0}body{display:grid;place-items:center}svg{max-width:100%;max-height:100%}</style>${code}`;
}

class CodePreview extends LitElement {
    static properties = {
        versions: { attribute: false },
        at: { attribute: false },
        source: { state: true },
        away: { state: true },
    };

    constructor() {
        super();
        /** @type {{language: string, code: string}[]} */
        this.versions = [];
        this.at = 0;
        /** Whether the source stands beside it. */
        this.source = false;
        /** Whether what draws it could not be had. */
        this.away = false;
        this.heard = (event) => this.#heard(event);
    }

    createRenderRoot() {
        return this;
    }

    connectedCallback() {
        super.connectedCallback();
        addEventListener('message', this.heard);
    }

    disconnectedCallback() {
        super.disconnectedCallback();
        removeEventListener('message', this.heard);
    }

    updated(changed) {
        if (changed.has('versions') || changed.has('at')) this.#show();
    }

    /** A fresh frame for each version: nothing of the one before is left in it. */
    #show() {
        const place = this.querySelector('.preview-frame');
        if (!place) return;
        const frame = document.createElement('iframe');
        frame.title = t`Preview`;
        frame.sandbox.add('allow-scripts');
        frame.referrerPolicy = 'no-referrer';
        frame.allow = '';
        this.waiting = true;
        this.away = false;
        frame.src = new URL('preview.html', document.baseURI).href;
        place.replaceChildren(frame);
    }

    /** The frame is there. It is told once; whatever else it says is nothing to this page.
     * @param {MessageEvent} event */
    async #heard(event) {
        const frame = this.querySelector('iframe');
        if (!this.waiting || !frame || event.source !== frame.contentWindow || event.data !== 'ready') return;
        this.waiting = false;
        const page = await pageOf(this.versions[this.at]).catch(() => null);
        if (page === null) this.away = true;
        else frame.contentWindow?.postMessage(page, '*'); // another version has a frame of its own
    }

    render() {
        const version = this.versions[this.at];
        if (!version) return nothing;
        const button = (name, label, click, off = false) => html`<button type="button" class="quiet icon-only" aria-label=${label} title=${label}
            ?disabled=${off} @click=${click}>${icon(name)}</button>`;
        return html`<header class="viewer-bar">
                <h2>${t`Preview`}<small>${t`Nothing in it reaches the network or this chat.`}</small></h2>
                ${this.versions.length > 1
                    ? html`${button('left', t`Earlier version`, () => (this.at -= 1), this.at === 0)}
                          <span aria-label=${t`Version ${this.at + 1} of ${this.versions.length}`}>${this.at + 1}/${this.versions.length}</span>
                          ${button('right', t`Later version`, () => (this.at += 1), this.at === this.versions.length - 1)}`
                    : nothing}
                <button type="button" class="quiet small" aria-pressed=${this.source} @click=${() => (this.source = !this.source)}>${t`Source`}</button>
                ${button('again', t`Begin again`, () => this.#show())}
                ${document.fullscreenEnabled ? button('expand', t`Full screen`, () => this.querySelector('.preview-frame')?.requestFullscreen().catch(() => {})) : nothing}
                ${button('download', t`Save as a file`, () => download(`preview.${{ svg: 'svg', mermaid: 'mmd' }[version.language.toLowerCase()] ?? 'html'}`, new Blob([version.code], { type: 'text/plain' })))}
                <form method="dialog"><button class="quiet icon-only" aria-label=${t`Close`} title=${t`Close (Esc)`}>${icon('close')}</button></form>
            </header>
            <div class="preview ${this.source ? 'with-source' : ''}">
                ${this.away ? html`<p class="preview-away" role="alert">${t`The server cannot be reached for this part of the page. Try again when it is back.`}</p>` : nothing}
                <div class="preview-frame" ?hidden=${this.away}></div>
                ${this.source ? html`<code-block .code=${version.code} .language=${version.language.toLowerCase()}></code-block>` : nothing}
            </div>`;
    }
}
customElements.define('code-preview', CodePreview);
