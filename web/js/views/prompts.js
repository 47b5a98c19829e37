/**
 * Prompts that are used again: <prompt-menu> above the field after a `/`, <prompt-presets> for the
 * system prompt of a chat, <prompt-library> to change them. Fetched when one of them is first asked
 * for.
 */
import { LitElement, html, nothing, repeat } from '../../vendor/lit.js';
import { t } from '../language.js';
import { icon } from './icons.js';
import { findPrompts, makePrompt, readPrompts, writePrompts } from '../state/prompts.js';

export { nextBlank } from '../state/prompts.js';

/** @typedef {import('../state/prompts.js').Prompt} Prompt */

const SHOWN = 8;

/** As the field's listbox: the field keeps the focus and gives its keys to `key`. */
class PromptMenu extends LitElement {
    static properties = { query: { attribute: false }, field: { attribute: false }, at: { state: true } };

    constructor() {
        super();
        this.query = '';
        this.at = 0;
        /** @type {HTMLTextAreaElement|null} */
        this.field = null;
        /** @type {Prompt[]} */
        this.found = [];
    }

    createRenderRoot() {
        return this;
    }

    willUpdate(changed) {
        if (!changed.has('query')) return;
        this.found = findPrompts(readPrompts().filter(({ system }) => !system), this.query).slice(0, SHOWN);
        this.at = 0;
    }

    updated() {
        const { field, found, at } = this;
        field?.setAttribute('aria-controls', 'prompt-list');
        if (found.length) field?.setAttribute('aria-activedescendant', `prompt-${at}`);
        else field?.removeAttribute('aria-activedescendant');
        this.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
    }

    disconnectedCallback() {
        super.disconnectedCallback();
        for (const name of ['aria-controls', 'aria-activedescendant']) this.field?.removeAttribute(name);
    }

    /** Takes a key of the field. @param {KeyboardEvent} event @returns {boolean} whether it was for the menu */
    key({ key, shiftKey }) {
        const { found, at } = this;
        if (!found.length || shiftKey) return false;
        if (key === 'ArrowDown' || key === 'ArrowUp') this.at = (at + (key === 'ArrowDown' ? 1 : -1) + found.length) % found.length;
        else if (key === 'Enter' || key === 'Tab') this.#choose(found[at]);
        else return false;
        return true;
    }

    /** @param {Prompt} prompt */
    #choose(prompt) {
        this.dispatchEvent(new CustomEvent('prompt-chosen', { detail: prompt.text }));
    }

    render() {
        return html`<ul id="prompt-list" role="listbox" aria-label=${t`Prompts`}>
                ${this.found.map(
                    (one, i) => html`<li id="prompt-${i}" role="option" aria-selected=${i === this.at} @pointerdown=${(event) => event.preventDefault()}
                        @click=${() => this.#choose(one)}>
                        <strong>${one.name}</strong><small>${one.text}</small>
                    </li>`,
                )}
            </ul>
            <p class="prompt-foot">
                ${this.found.length ? nothing : html`<span role="status">${t`No prompt has this name.`}</span>`}
                <button type="button" class="quiet small" @click=${() => this.dispatchEvent(new CustomEvent('edit-prompts', { bubbles: true }))}>${icon('edit')}${t`Edit prompts`}</button>
            </p>`;
    }
}
customElements.define('prompt-menu', PromptMenu);

/** System prompts to choose from, in a menu; and the one that is written as a new one. */
class PromptPresets extends LitElement {
    static properties = { text: { attribute: false }, choose: { attribute: false } };

    constructor() {
        super();
        /** The chat's own system prompt. */
        this.text = '';
        /** @type {(text: string) => void} */
        this.choose = () => {};
    }

    createRenderRoot() {
        return this;
    }

    firstUpdated() {
        this.closest('[popover]')?.addEventListener('toggle', () => this.requestUpdate());
    }

    render() {
        const presets = readPrompts().filter(({ system }) => system);
        const isNew = this.text && !presets.some(({ text }) => text === this.text);
        return html`${presets.map(
                (one) => html`<button type="button" class="quiet" aria-pressed=${one.text === this.text} @click=${() => this.choose(one.text)}>
                    ${icon(one.text === this.text ? 'check' : 'thought')}<span>${one.name}</span></button>`,
            )}
            ${presets.length ? nothing : html`<p class="note">${t`There are none yet.`}</p>`}
            <hr />
            ${isNew ? html`<button type="button" class="quiet" @click=${this.#keep}>${icon('plus')}<span>${t`Keep this one`}</span></button>` : nothing}
            <button type="button" class="quiet" @click=${() => this.dispatchEvent(new CustomEvent('edit-prompts', { bubbles: true }))}>${icon('edit')}<span>${t`Edit`}</span></button>`;
    }

    #keep() {
        const name = this.text.split(/\s+/).slice(0, 4).join(' ');
        writePrompts([...readPrompts(), makePrompt({ name, text: this.text, system: true })]);
    }
}
customElements.define('prompt-presets', PromptPresets);

class PromptLibrary extends LitElement {
    static properties = { editing: { state: true }, gone: { state: true }, problem: { state: true } };

    constructor() {
        super();
        /** What is being edited; without an id it is new. @type {Partial<Prompt>|null} */
        this.editing = null;
        /** What was deleted last. @type {{prompt: Prompt, at: number}|null} */
        this.gone = null;
        this.problem = '';
    }

    createRenderRoot() {
        return this;
    }

    firstUpdated() {
        addEventListener('storage', () => this.requestUpdate());
    }

    render() {
        const all = readPrompts();
        const group = (system, title, hint) => html`<section>
            <h3>${title}</h3>
            <p class="note">${hint}</p>
            <ul class="prompts">${repeat(all.filter((one) => !!one.system === system), ({ id }) => id, (one) => this.#row(one))}</ul>
            <button type="button" class="plain add-prompt" data-new=${system ? 'system' : 'prompt'} @click=${() => this.#edit({ system })}>${icon('plus')}${system ? t`New system prompt` : t`New prompt`}</button>
            ${this.editing && !this.editing.id && !!this.editing.system === system ? this.#form() : nothing}
        </section>`;
        return html`<div class="dialog-body">
            <p class="note" role="status">${this.problem}${this.gone ? html`${t`“${this.gone.prompt.name}” deleted.`} <button type="button" class="plain small" @click=${this.#undo}>${t`Undo`}</button>` : nothing}</p>
            ${group(false, t`Prompts`, t`Write / in the empty field to use one. What stands in {{two braces}} is filled in; Tab goes to the next.`)}
            ${group(true, t`System prompts`, t`Chosen in the settings of a chat, or of new chats.`)}
        </div>`;
    }

    /** @param {Prompt} one */
    #row(one) {
        if (this.editing?.id === one.id) return html`<li>${this.#form()}</li>`;
        return html`<li class="prompt">
            <span><strong>${one.name}</strong><small>${one.text}</small></span>
            <button type="button" class="quiet icon-only" data-edit=${one.id} aria-label=${t`Edit ${one.name}`} title=${t`Edit`} @click=${() => this.#edit(one)}>${icon('edit')}</button>
            <button type="button" class="quiet icon-only" aria-label=${t`Delete ${one.name}`} title=${t`Delete`} @click=${() => this.#remove(one)}>${icon('trash')}</button>
        </li>`;
    }

    #form() {
        const { name = '', text = '' } = this.editing ?? {};
        return html`<form class="prompt-form" @submit=${this.#keep} @keydown=${this.#formKey}>
            <label class="field"><span>${t`Name`}</span><input name="name" maxlength="80" required .value=${name} /></label>
            <label class="field"><span>${t`Text`}</span><textarea name="text" rows="4" dir="auto" required .value=${text}></textarea></label>
            <div class="editor-buttons">
                <button type="button" class="plain" @click=${() => this.#end()}>${t`Cancel`}</button>
                <button type="submit" class="primary">${t`Keep`}</button>
            </div>
        </form>`;
    }

    /** @param {Partial<Prompt>} prompt */
    async #edit(prompt) {
        this.editing = prompt;
        await this.updateComplete;
        this.querySelector('input')?.focus();
    }

    /** Back to where it was opened. */
    async #end() {
        const { id, system } = this.editing ?? {};
        this.editing = null;
        await this.updateComplete;
        /** @type {HTMLElement|null} */ (this.querySelector(id ? `[data-edit="${id}"]` : `[data-new=${system ? 'system' : 'prompt'}]`))?.focus();
    }

    /** @param {KeyboardEvent} event */
    #formKey(event) {
        if (event.key !== 'Escape') return;
        event.preventDefault(); // the dialog stays
        this.#end();
    }

    /** @param {SubmitEvent} event */
    #keep(event) {
        event.preventDefault();
        const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
        const { id, system } = /** @type {Partial<Prompt>} */ (this.editing);
        const given = { name: String(data.get('name')), text: String(data.get('text')), ...(system ? { system } : {}) };
        if (!given.name.trim() || !given.text.trim()) return;
        const all = readPrompts();
        this.problem = writePrompts(id ? all.map((one) => (one.id === id ? { ...given, id } : one)) : [...all, makePrompt(given)]);
        if (!this.problem) this.#end();
    }

    /** @param {Prompt} prompt */
    async #remove(prompt) {
        const all = readPrompts();
        const at = all.findIndex(({ id }) => id === prompt.id);
        this.problem = writePrompts(all.filter(({ id }) => id !== prompt.id));
        this.gone = this.problem || at < 0 ? null : { prompt, at };
        await this.updateComplete;
        this.querySelector('button')?.focus();
    }

    async #undo() {
        if (!this.gone) return;
        const { prompt, at } = this.gone;
        const all = readPrompts();
        this.problem = writePrompts([...all.slice(0, at), prompt, ...all.slice(at)]);
        this.gone = null;
        await this.updateComplete;
        /** @type {HTMLElement|null} */ (this.querySelector(`[data-edit="${prompt.id}"]`))?.focus();
    }
}
customElements.define('prompt-library', PromptLibrary);
