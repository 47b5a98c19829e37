/**
 * <shared-chat>: the page behind a link to a chat (shared.html#TOKEN). Its messages, to read. It needs
 * no key, keeps nothing in the browser, and asks the server for this one chat alone.
 */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { formatDay, t } from '../language.js';
import { urlOf } from '../state/attachments.js';
import { formatBytes } from '../util.js';
import { imageDialog, openDialog } from './dialogs.js';
import { icon } from './icons.js';
import { MarkdownState, renderBlock } from './markdown.js';


class SharedChat extends LitElement {
    static properties = {
        chat: { state: true },
        trouble: { state: true },
        viewing: { state: true },
        preview: { state: true },
    };

    constructor() {
        super();
        /** What the server told; null: nothing yet. @type {any} */
        this.chat = null;
        /** Why there is nothing; '': it is on its way. */
        this.trouble = '';
        this.canRetry = false;
        this.viewing = null;
        /** @type {{versions: any[], at: number}|null} */
        this.preview = null;
    }

    createRenderRoot() {
        return this;
    }

    connectedCallback() {
        super.connectedCallback();
        addEventListener('hashchange', () => this.#load());
        this.addEventListener('show-preview', (event) => this.#showPreview(/** @type {CustomEvent} */ (event).detail));
        this.addEventListener('close', () => (this.preview = null), true); // nothing runs on unseen
        this.#load();
    }

    get #address() {
        return new URL(`v1/shared/${encodeURIComponent(location.hash.slice(1))}`, document.baseURI).href;
    }

    async #load() {
        Object.assign(this, { chat: null, trouble: '' });
        try {
            const reply = await fetch(this.#address, { cache: 'no-store' });
            this.canRetry = reply.status !== 404 && reply.status !== 400;
            if (!reply.ok) throw new Error(this.canRetry ? (await reply.json()).error.message : t`There is no such link: it was taken back, it has expired, or its chat was deleted.`);
            this.chat = await reply.json();
        } catch (error) {
            if (error instanceof TypeError) this.canRetry = true;
            this.trouble = error instanceof TypeError ? t`The server cannot be reached. Try again when it is back.` : error.message;
            return;
        }
        document.title = `${this.chat.title || t`Chat`} · Parley`;
        for (const { attachments = [] } of this.chat.messages) for (const one of attachments) this.#loadFile(one);
    }

    /** @param {any} file */
    async #loadFile(file) {
        const reply = file.sha256 && (await fetch(`${this.#address}/files/${file.sha256}`).catch(() => null));
        if (reply?.ok) file.blob = new Blob([await reply.arrayBuffer()], { type: file.mime });
        else file.missing = true;
        this.requestUpdate();
    }

    render() {
        if (this.trouble) {
            return html`<main class="column"><div class="shared-head"><h1>${t`This chat cannot be shown`}</h1><p role="alert">${this.trouble}</p></div>
                ${this.canRetry ? html`<p><button type="button" class="plain" @click=${() => this.#load()}>${t`Try again`}</button></p>` : nothing}</main>`;
        }
        if (!this.chat) return html`<main class="column" aria-busy="true"><p role="status">${t`Loading…`}</p></main>`;
        const { title, created, expires, messages } = this.chat;
        return html`<main class="column">
                <header class="shared-head">
                    <h1 dir="auto">${title || t`Chat`}</h1>
                    <p>${t`A chat that somebody shared on ${formatDay(created)}, to read. What was written later is not here.`}
                        ${expires ? t`The link ends on ${formatDay(expires)}.` : nothing}</p>
                </header>
                ${messages.filter(({ erased }) => !erased).map((message) => (message.role === 'user' ? this.#question(message) : this.#answer(message)))}
            </main>
            ${imageDialog(this.viewing)}
            <dialog id="preview" class="viewer" aria-label=${t`Preview`}>
                ${this.preview ? html`<code-preview .versions=${this.preview.versions} .at=${this.preview.at}></code-preview>` : nothing}
            </dialog>`;
    }

    #question({ text, attachments = [] }) {
        return html`<article class="question">
            <h2 class="offscreen">${t`Question`}</h2>
            ${attachments.length ? html`<div class="images">${attachments.map((one) => this.#file(one))}</div>` : nothing}
            ${text ? html`<div class="bubble" dir="auto">${text}</div>` : nothing}
        </article>`;
    }

    #answer(message) {
        message.view ??= new MarkdownState();
        return html`<article class="answer">
            <h2 class="who">${message.model ?? t`Answer`}</h2>
            <div class="prose">${message.view.update(message.text, true).map((token) => renderBlock(token))}</div>
        </article>`;
    }

    #file(file) {
        if (file.missing || file.broken) return html`<div class="image missing">${icon('image')}<span>${t`${file.name} is no longer kept`}</span></div>`;
        if (!file.blob) return html`<div class="image missing" aria-busy="true">${icon('image')}<span>${file.name}</span></div>`;
        if (file.kind === 'text') {
            return html`<button type="button" class="image file" aria-label=${t`Open ${file.name}`} @click=${() => this.#show(file)}>
                ${icon('file')}<span>${file.name}<small>${formatBytes(file.bytes)}</small></span></button>`;
        }
        if (file.kind === 'video') {
            import('./clip.js').catch(() => {}); // without it there is the name
            return html`<video-clip .video=${file}></video-clip>`;
        }
        const failed = () => {
            file.broken = true;
            this.requestUpdate();
        };
        return html`<button type="button" class="image" aria-label=${t`Show ${file.name} large`} @click=${() => this.#show(file)}>
            <img src=${urlOf(file.blob)} alt=${file.name} width=${file.width} height=${file.height} @error=${failed} />
        </button>`;
    }

    async #show(file) {
        await import('./viewer.js');
        const items = this.chat.messages.flatMap(({ attachments = [] }) => attachments).filter(({ blob, kind }) => blob && kind === file.kind);
        this.viewing = { items, at: items.indexOf(file) };
        await this.updateComplete;
        openDialog('image');
    }

    async #showPreview({ code, language }) {
        await import('./preview.js');
        this.preview = { versions: [{ code, language }], at: 0 };
        await this.updateComplete;
        openDialog('preview');
    }
}
customElements.define('shared-chat', SharedChat);
