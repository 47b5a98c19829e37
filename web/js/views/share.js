/** Links that show a chat to who has no key: the dialog that makes them, shows them and takes them
 * back. Fetched when it is asked for, where the server keeps the chats. */
import { LitElement, html, nothing, render } from '../../vendor/lit.js';
import { formatDay, t } from '../language.js';
import { copyText } from '../util.js';
import { backdrop, head } from './dialogs.js';

const DAY_S = 86_400;
const LOCAL = /^(localhost|127\.|\[::1\])/;

/** Opens the dialog for a chat. @param {HTMLElement} app that it stands in @param {import('../state/chat.js').Chat} chat
 * @param {import('../state/store.js').Conversation} conversation */
export async function openShare(app, chat, conversation) {
    if (!document.querySelector('link[href="css/shared.css"]')) {
        const style = Object.assign(document.createElement('link'), { rel: 'stylesheet', href: 'css/shared.css' });
        await new Promise((resolve) => {
            style.onload = style.onerror = resolve;
            document.head.append(style);
        });
    }
    const dialog = Object.assign(document.createElement('dialog'), { id: 'share', onclick: backdrop, onclose: () => setTimeout(() => dialog.remove()) });
    dialog.setAttribute('aria-label', t`Share a link`);
    render(html`${head(t`Share a link`)}<share-links class="dialog-body" .chat=${chat} .conversation=${conversation}></share-links>`, dialog);
    app.append(dialog);
    dialog.showModal();
}

class ShareLinks extends LitElement {
    static properties = {
        chat: { attribute: false },
        conversation: { attribute: false },
        links: { state: true },
        trouble: { state: true },
        copied: { state: true },
        busy: { state: true },
    };

    constructor() {
        super();
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        /** @type {import('../state/store.js').Conversation} */
        this.conversation = /** @type {any} */ (null);
        /** Of this chat, the latest first; null: not known yet. @type {any[]|null} */
        this.links = null;
        this.trouble = '';
        /** The link that was copied last. */
        this.copied = '';
        this.busy = false;
    }

    createRenderRoot() {
        return this;
    }

    connectedCallback() {
        super.connectedCallback();
        this.classList.add('share-links');
        this.#do(async () => {
            const { data } = await this.#call('');
            this.links = data.filter(({ chat }) => chat === this.conversation.id);
        });
    }

    /** @param {string} path @param {string} [method] @param {any} [body] */
    async #call(path, method = 'GET', body) {
        const reply = await this.chat.connection.fetch(`v1/history/shares${path}`, { method, ...(body ? { body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } } : {}) });
        const given = await reply.json();
        if (!reply.ok) throw new Error(given.error.message);
        return given;
    }

    /** @param {() => Promise<void>} work */
    async #do(work) {
        Object.assign(this, { busy: true, trouble: '' });
        try {
            await work();
        } catch (error) {
            this.trouble = error instanceof TypeError ? t`The server cannot be reached. Try again when it is back.` : error.message;
        }
        this.busy = false;
    }

    /** @param {SubmitEvent} event */
    #make(event) {
        event.preventDefault();
        const days = Number(new FormData(/** @type {HTMLFormElement} */ (event.target)).get('days'));
        this.#do(async () => {
            const { id, head: last } = this.conversation;
            await this.chat.history.save(this.conversation); // what is not there yet cannot be shown
            const link = await this.#call('', 'POST', { chat: id, head: last, expires_in: days ? days * DAY_S : null });
            this.links = [link, ...(this.links ?? [])];
            await this.updateComplete;
            this.querySelector('input')?.select();
        });
    }

    /** @param {string} token */
    async #takeBack(token) {
        await this.#do(async () => {
            await this.#call(`/${token}`, 'DELETE');
            this.links = (this.links ?? []).filter((one) => one.token !== token);
        });
        await this.updateComplete; // until then nothing of the form can have the focus
        if (!this.trouble) /** @type {HTMLElement|null} */ (this.querySelector('.new-link button'))?.focus();
    }

    /** @param {string} url */
    async #copy(url) {
        this.copied = (await copyText(url)) ? url : '';
    }

    #link({ token, created, expires }) {
        const url = new URL(`shared.html#${token}`, document.baseURI).href;
        return html`<li>
            <input readonly aria-label=${t`Link`} dir="ltr" .value=${url} @focus=${(event) => event.target.select()} />
            <button type="button" class="plain" @click=${() => this.#copy(url)}>${this.copied === url ? t`Copied` : t`Copy`}</button>
            <button type="button" class="quiet" ?disabled=${this.busy} @click=${() => this.#takeBack(token)}>${t`Take back`}</button>
            <small>${expires ? t`Made on ${formatDay(created)}, ends on ${formatDay(expires)}.` : t`Made on ${formatDay(created)}, has no end.`}</small>
        </li>`;
    }

    render() {
        const choices = [[1, t`After a day`], [7, t`After a week`], [30, t`After 30 days`], [0, t`Never`]];
        return html`<p>${t`Who has the link can read this chat up to its last message, with its files, without a key. What is written later is not shown; what you delete is gone there, too. Thoughts, tool calls and settings are not shown.`}</p>
            ${this.chat.connection.key ? nothing : html`<p class="note">${t`This server asks for no key: whoever reaches it can open every chat, with or without a link.`}</p>`}
            ${LOCAL.test(location.hostname) ? html`<p class="note">${t`This page was opened as ${location.host}. Others need the name of this machine in its place.`}</p>` : nothing}
            <form class="new-link" @submit=${this.#make}>
                <label>${t`The link ends`}<select name="days">${choices.map(([days, words]) => html`<option value=${days} ?selected=${days === 30}>${words}</option>`)}</select></label>
                <button type="submit" class="primary" ?disabled=${this.busy}>${t`Make a link`}</button>
            </form>
            ${this.trouble ? html`<p role="alert">${this.trouble}</p>` : nothing}
            <ul aria-label=${t`Links to this chat`}>${(this.links ?? []).map((one) => this.#link(one))}</ul>`;
    }
}
customElements.define('share-links', ShareLinks);
