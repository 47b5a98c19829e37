/** <code-block>: a fence with its language, colours once it is closed, and buttons to copy and to
 * keep it. */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { t } from '../language.js';
import { icon } from './icons.js';
import { highlighted, loadHighlighter } from './highlight.js';
import { copyText, download } from '../util.js';

/** Whether code of a language can be shown as it looks. @param {string} language */
export const isShown = (language) => /^(html?|svg|xhtml|mermaid)$/i.test(language);
const EXTENSIONS = {
    python: 'py', javascript: 'js', typescript: 'ts', rust: 'rs', bash: 'sh', shell: 'sh', markdown: 'md', mermaid: 'mmd', ruby: 'rb',
    cpp: 'cpp', csharp: 'cs', kotlin: 'kt', text: 'txt', '': 'txt',
};

class CodeBlock extends LitElement {
    static properties = {
        code: { attribute: false },
        language: { attribute: false },
        open: { attribute: false },
        copied: { state: true },
        wrapped: { state: true },
    };

    constructor() {
        super();
        this.code = '';
        this.language = '';
        this.open = false;
        this.copied = '';
        this.wrapped = false;
    }

    createRenderRoot() {
        return this;
    }

    willUpdate() {
        if (!this.open && this.language) loadHighlighter()?.then(() => this.requestUpdate());
    }

    render() {
        // While it streams it stays plain: colouring at every step costs more than it shows.
        const colours = this.open ? null : this.#colours();
        return html`<figure class="code">
            <figcaption>
                <span class="code-language">${this.language || 'text'}</span>
                <button type="button" class="quiet small" @click=${() => (this.wrapped = !this.wrapped)}
                    aria-pressed=${this.wrapped}>${t`Wrap`}</button>
                ${this.open
                    ? nothing
                    : html`<button type="button" class="quiet small" aria-label=${t`Save this code`}
                          title=${t`Save as a file`} @click=${this.#download}>
                          ${icon('download')}<span class="wide-only">${t`Save`}</span>
                      </button>`}
                ${!this.open && isShown(this.language)
                    ? html`<button type="button" class="quiet small as-it-looks" @click=${() => this.dispatchEvent(new CustomEvent('show-preview', { bubbles: true, detail: { code: this.code, language: this.language } }))}>
                          ${icon('play')}<span>${t`Preview`}</span>
                      </button>`
                    : nothing}
                <button type="button" class="quiet small copy" @click=${this.#copy}>
                    ${icon(this.copied === t`Copied` ? 'check' : 'copy')}<span>${this.copied || t`Copy`}</span>
                </button>
            </figcaption>
            <pre tabindex="0" dir="ltr" class=${this.wrapped ? 'wrapped' : ''}><code>${colours ?? this.code}</code></pre>
        </figure>`;
    }

    #colours() {
        if (this.memo?.code !== this.code || this.memo.language !== this.language || !this.memo.result) {
            this.memo = { code: this.code, language: this.language, result: highlighted(this.code, this.language) };
        }
        return this.memo.result;
    }

    async #copy() {
        this.copied = (await copyText(this.code)) ? t`Copied` : t`Not allowed`;
        setTimeout(() => (this.copied = ''), 2_000);
    }

    #download() {
        const extension = EXTENSIONS[this.language] ?? (/^[a-z0-9]{1,8}$/.test(this.language) ? this.language : 'txt');
        download(`code.${extension}`, new Blob([this.code], { type: 'text/plain' }));
    }
}
customElements.define('code-block', CodeBlock);
