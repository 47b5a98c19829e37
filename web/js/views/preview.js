/**
 * <code-preview>: HTML or SVG that a model wrote, shown in a sandboxed frame (preview.html) beside
 * its source, with the versions that the chat has of it. In a dialog; loaded with the first one.
 *
 * The frame has an origin of its own, and its policy and that of this page let it reach nothing: no
 * network, no storage, no other page. What it sends is not listened to, but for one word when it is
 * there.
 */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { t } from '../language.js';
import { icon } from './icons.js';
import { download } from '../util.js';

const FENCE = /^ {0,3}(`{3,}|~{3,}) *([\w+-]+)[^\n]*\n([\s\S]*?)^ {0,3}\1[`~]* *$/gm;

/** Whether code of a language can be shown. @param {string} language */
export const isShown = (language) => /^(html?|svg|xhtml)$/i.test(language);

/** All that can be shown of a chat, oldest first. @param {import('../state/store.js').Conversation} conversation
 * @returns {{language: string, code: string}[]} */
export function versionsOf(conversation) {
    const messages = Object.values(conversation.messages).filter(({ role }) => role === 'assistant').sort((a, b) => a.created - b.created);
    return messages.flatMap(({ text }) => [...text.matchAll(FENCE)].map(([, , language, code]) => ({ language, code: code.replace(/\n$/, '') }))).filter(({ language }) => isShown(language));
}

/** The page that is shown. @param {{language: string, code: string}} version */
function pageOf({ language, code }) {
    // An image alone stands in the middle, as large as it is.
    if (!/^svg$/i.test(language)) return code;
    return `<!doctype html><meta charset="utf-8"><style>html,body{height:100%;margin:0}body{display:grid;place-items:center}svg{max-width:100%;max-height:100%}</style>${code}`;
}

class CodePreview extends LitElement {
    static properties = {
        versions: { attribute: false },
        at: { attribute: false },
        source: { state: true },
    };

    constructor() {
        super();
        /** @type {{language: string, code: string}[]} */
        this.versions = [];
        this.at = 0;
        /** Whether the source stands beside it. */
        this.source = false;
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
        frame.src = new URL('preview.html', document.baseURI).href;
        place.replaceChildren(frame);
    }

    /** The frame is there. It is told once; whatever else it says is nothing to this page.
     * @param {MessageEvent} event */
    #heard(event) {
        const frame = this.querySelector('iframe');
        if (!this.waiting || !frame || event.source !== frame.contentWindow || event.data !== 'ready') return;
        this.waiting = false;
        frame.contentWindow?.postMessage(pageOf(this.versions[this.at]), '*');
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
                ${button('download', t`Save as a file`, () => download(`preview.${/^svg$/i.test(version.language) ? 'svg' : 'html'}`, new Blob([version.code], { type: 'text/plain' })))}
                <form method="dialog"><button class="quiet icon-only" aria-label=${t`Close`} title=${t`Close (Esc)`}>${icon('close')}</button></form>
            </header>
            <div class="preview ${this.source ? 'with-source' : ''}">
                <div class="preview-frame"></div>
                ${this.source ? html`<code-block .code=${version.code} .language=${version.language.toLowerCase()}></code-block>` : nothing}
            </div>`;
    }
}
customElements.define('code-preview', CodePreview);
