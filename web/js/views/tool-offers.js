/**
 * <tool-offers>: what the servers of a chat offer besides tools: resources, which become files of the
 * field, and prompts, whose arguments are asked for and whose messages go into the field and the chat.
 * Fetched when its menu opens.
 */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { t } from '../language.js';
import { addMessage } from '../state/store.js';
import { blobOf, readServers } from '../state/tools.js';
import { icon } from './icons.js';
import './tool-view.js';

/** @typedef {{name: string, title?: string, description?: string, arguments?: {name: string, description?: string, required?: boolean}[]}} Prompt */
/** @typedef {{uri: string, name?: string, title?: string, description?: string, mimeType?: string}} Resource */

class ToolOffers extends LitElement {
    static properties = { chat: { attribute: false }, composer: { attribute: false }, servers: { state: true }, asked: { state: true }, busy: { state: true }, problem: { state: true } };

    constructor() {
        super();
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        /** The field that the menu stands beside. @type {any} */
        this.composer = null;
        /** @type {import('../state/tools.js').Server[]|null} */
        this.servers = null;
        /** The prompt whose arguments are asked for. @type {{label: string, prompt: Prompt}|null} */
        this.asked = null;
        this.busy = false;
        this.problem = '';
    }

    createRenderRoot() {
        return this;
    }

    firstUpdated() {
        this.closest('[popover]')?.addEventListener('toggle', (event) => /** @type {any} */ (event).newState === 'open' && this.#begin());
        this.#begin();
    }

    async #begin() {
        this.asked = null;
        this.problem = '';
        try {
            const chosen = this.chat.current.options?.tools ?? {};
            this.servers = (await readServers(this.chat)).filter(({ server_label: label }) => label in chosen);
        } catch {
            this.problem = t`The server cannot be reached for this part of the page. Try again when it is back.`;
        }
        await this.updateComplete;
        const opener = this.closest('[popover]')?.previousElementSibling; // has the focus where the menu was empty as it opened
        if ([opener, document.body].includes(document.activeElement) || this.contains(document.activeElement)) this.#first();
    }

    #first() {
        /** @type {HTMLElement|null} */ (this.querySelector('input, button'))?.focus();
    }

    /** Asks the server for one of them, and takes what comes. @param {string} label @param {string} path
     * @param {any} body @param {(result: any) => void|Promise<void>} take */
    async #read(label, path, body, take) {
        if (this.busy) return;
        this.busy = true;
        this.problem = '';
        try {
            const reply = await this.chat.connection.fetch(`v1/mcp/${label}/${path}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
            const said = await reply.json().catch(() => null);
            if (!reply.ok) throw new Error(said?.error?.message ?? t`The server does not answer.`);
            /** @type {any} */ (this.closest('[popover]'))?.hidePopover();
            await take(said.result);
            this.composer.focusField();
        } catch (error) {
            this.problem = error instanceof TypeError ? t`The server cannot be reached for this part of the page. Try again when it is back.` : error.message;
        } finally {
            this.busy = false;
        }
    }

    /** @param {string} label @param {Resource} resource */
    #attach(label, resource) {
        const { uri, name, title } = resource;
        return this.#read(label, 'resources/read', { uri }, ({ contents = [] }) => this.composer.add(contents.map((one) => fileOf(one, title || name))));
    }

    /** @param {string} label @param {Prompt} prompt */
    async #choose(label, prompt) {
        if (!prompt.arguments?.length) return this.#insert(label, prompt, {});
        this.asked = { label, prompt };
        this.problem = '';
        await this.updateComplete;
        this.#first();
    }

    #filled() {
        const { label, prompt } = /** @type {any} */ (this.asked);
        const fields = /** @type {HTMLInputElement[]} */ ([...this.querySelectorAll('input')]);
        const missing = fields.find(({ required, value }) => required && !value.trim());
        if (missing) return missing.reportValidity();
        return this.#insert(label, prompt, Object.fromEntries(fields.filter(({ value }) => value).map(({ name, value }) => [name, value])));
    }

    /** The last question goes into the field, what comes before it into the chat.
     * @param {string} label @param {Prompt} prompt @param {Record<string, string>} values */
    #insert(label, { name }, values) {
        return this.#read(label, 'prompts/get', { name, arguments: values }, async ({ messages = [] }) => {
            const { chat, composer } = this;
            const [before, files] = [[], []];
            let question = '';
            for (const { role, content } of messages) {
                const parts = [content].flat();
                const text = parts.map(textOf).filter(Boolean).join('\n\n');
                files.push(...parts.filter((one) => !textOf(one)).map((one) => fileOf(one.resource ?? one, one.name)));
                const last = before.at(-1);
                if (text && last?.role === role) last.text += `\n\n${text}`;
                else if (text) before.push({ role: role === 'assistant' ? 'assistant' : 'user', text });
            }
            if (before.at(-1)?.role === 'user') question = before.pop().text;
            if (before.length && composer.busy) question = [...before.splice(0).map(({ text }) => text), question].filter(Boolean).join('\n\n');
            for (const one of before) addMessage(chat.current, { ...one, parent: chat.current.head });
            if (before.length) {
                chat.tell('conversation');
                await chat.save(chat.current);
            }
            const { field } = composer;
            field.value = [field.value.trimEnd(), question].filter(Boolean).join('\n\n');
            field.dispatchEvent(new Event('input', { bubbles: true }));
            await composer.add(files);
        });
    }

    render() {
        return html`<div data-stays aria-busy=${this.busy}>
            ${this.asked ? this.#form(this.asked) : this.#lists()}
            ${this.problem ? html`<p class="note bad" role="alert">${icon('warning')}<span dir="auto">${this.problem}</span></p>` : nothing}
        </div>`;
    }

    #lists() {
        const { servers } = this;
        if (!servers) return this.problem ? nothing : html`<p class="note">${t`Loading…`}</p>`;
        const offering = servers.filter(({ resources, prompts }) => resources.length + prompts.length);
        if (!offering.length) return html`<p class="note">${t`The servers of this chat offer no files and no prompts.`}</p>`;
        return offering.map(
            ({ server_label: label, resources, prompts }) => html`<h3>${label}</h3>
                ${prompts.map((one) => this.#row('quote', one, () => this.#choose(label, one)))}
                ${resources.map((one) => this.#row(/^image\//.test(one.mimeType ?? '') ? 'image' : 'file', one, () => this.#attach(label, one)))}`,
        );
    }

    /** @param {any} face @param {any} one @param {() => void} act */
    #row(face, { name, title, description, uri = '' }, act) {
        const more = description || uri;
        return html`<button type="button" class="quiet offer" title=${uri} ?disabled=${this.busy} @click=${act}>
            ${icon(face)}<span><strong dir="auto">${title || name || uri}</strong>${more ? html`<small dir="auto">${more}</small>` : nothing}</span>
        </button>`;
    }

    /** @param {{label: string, prompt: Prompt}} asked */
    #form({ prompt: { name, title, description, arguments: wanted = [] } }) {
        const key = (event) => {
            if (event.key !== 'Enter' || event.isComposing) return;
            event.preventDefault();
            this.#filled();
        };
        return html`<h3 dir="auto">${title || name}</h3>
            ${description ? html`<p class="note" dir="auto">${description}</p>` : nothing}
            ${wanted.filter((one) => one?.name).map(
                (one) => html`<label class="field offer-field"><span dir="auto">${one.name}${one.required ? nothing : html` <small>${t`may stay empty`}</small>`}</span>
                    <input type="text" dir="auto" name=${one.name} ?required=${one.required} @keydown=${key} />
                    ${one.description ? html`<small dir="auto">${one.description}</small>` : nothing}</label>`,
            )}
            <p class="tool-buttons">
                <button type="button" class="primary" ?disabled=${this.busy} @click=${this.#filled}>${t`Insert`}</button>
                <button type="button" @click=${this.#begin}>${t`Back`}</button>
            </p>`;
    }
}
customElements.define('tool-offers', ToolOffers);

/** The words of a part of a message; '' where it is a file. @param {any} part */
function textOf({ type, text, uri, name }) {
    return type === 'text' ? text ?? '' : type === 'resource_link' ? `${name ?? ''} ${uri ?? ''}`.trim() : '';
}

/** What a resource or a part holds, as a file for the field. @param {any} content @param {string} [name] */
function fileOf({ uri = '', mimeType, text, blob, data }, name) {
    const last = decodeURI(safe(uri)).split(/[?#]/)[0].split('/').findLast(Boolean);
    const mime = mimeType || (text === undefined ? 'application/octet-stream' : 'text/plain');
    const called = last && /\.\w+$/.test(last) ? last : name || last || t`image`;
    return new File([text ?? blobOf(blob ?? data ?? '', mime)], called, { type: mime });
}

/** An address whose escapes can be read. @param {string} uri */
function safe(uri) {
    try {
        decodeURI(uri);
        return uri;
    } catch {
        return uri.replaceAll('%', '_');
    }
}
