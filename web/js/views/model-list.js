/**
 * <model-list>: the models of the server, in the menu under the model's name: the current one is
 * marked, and those that stay in memory, which can be unloaded; those that cannot be loaded are folded at the end. Loaded when the menu opens first; what
 * is on its way shows in the page's own bar, too.
 */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { listed, plural, t } from '../language.js';
import { icon } from './icons.js';
import { formatBytes, formatCount } from '../util.js';

/** From so many models on there is a search. */
const SEARCH_FROM = 6;

class ModelList extends LitElement {
    static properties = { chat: { attribute: false }, connection: { attribute: false }, models: { state: true }, wanted: { state: true }, problem: { state: true }, query: { state: true }, hub: { state: true }, hubOpen: { state: true } };

    constructor() {
        super();
        /** whether this page may manage models of a hub: 'yes', 'key' (with the admin's), 'no' */
        this.hub = 'no';
        this.hubOpen = false;
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        /** @type {import('../protocol/connection.js').Connection} */
        this.connection = /** @type {any} */ (null);
        /** @type {any[]} */
        this.models = [];
        this.wanted = '';
        this.problem = '';
        this.query = '';
    }

    createRenderRoot() {
        return this;
    }

    firstUpdated() {
        this.closest('[popover]')?.addEventListener('toggle', (event) => /** @type {any} */ (event).newState === 'open' && this.#ask());
        this.connection.addEventListener('state', () => this.#heard());
        for (const type of ['options', 'conversation']) this.chat.addEventListener(type, () => this.requestUpdate());
        this.#ask();
    }

    /** The server's state changed; what is loaded may have. */
    #heard() {
        const { state, model } = this.connection.server ?? {};
        const heard = `${state} ${model}`;
        if (heard !== this.heard && this.closest('[popover]')?.matches(':popover-open')) this.#ask();
        this.heard = heard;
        this.requestUpdate();
    }

    async #ask() {
        try {
            const reply = await this.connection.fetch('v1/models', { cache: 'no-store' });
            if (reply.ok) this.models = this.chat.models = (await reply.json()).data;
            const props = await this.connection.fetch('props');
            if (props.ok) this.hub = (await props.json()).hub ?? 'no';
        } catch {
            // The connection's own state says so already.
        }
    }

    /** Which model answers in this chat alone, or beside its own. @param {'model'|'beside'} which @param {string} model */
    #ofChat(which, model) {
        const { options = {} } = this.chat.current;
        this.chat.setOption(which, options[which] === model ? undefined : model);
    }

    /** Loads a model, or takes one out of memory that does not answer now. @param {string} model @param {'load'|'unload'} what */
    async #load(model, what = 'load') {
        this.wanted = what === 'load' ? model : '';
        this.problem = '';
        try {
            const reply = await this.connection.fetch(`models/${what}`, {
                method: 'POST',
                headers: { 'Content-Type': 'application/json' },
                body: JSON.stringify({ model }),
            });
            if (!reply.ok) this.problem = (await reply.json()).error.message;
        } catch {
            this.problem = t`The server does not answer.`;
        }
        this.wanted = '';
        this.#ask();
    }

    render() {
        return html`${this.models.length < 2 ? html`<p class="note">${t`Other models, with checkpoints in DIR:`} <code>parley --models-dir DIR</code></p>` : this.#list()}
            ${this.#ofHub()}
            <p class="note bad" role="status">${this.problem}</p>`;
    }

    /** Fetched when it is opened. */
    #ofHub() {
        if (this.hub === 'no') return nothing;
        const opened = (event) => {
            this.hubOpen = event.target.open;
            if (this.hubOpen) import('./hub-models.js').catch(() => (this.problem = t`The server does not answer.`));
        };
        return html`<details class="hub" data-stays @toggle=${opened}>
            <summary>${t`Models of a hub`}</summary>
            <hub-models .connection=${this.connection} .needsKey=${this.hub === 'key'} .open=${this.hubOpen} .models=${this.models} @changed=${() => this.#ask()} @use=${(event) => this.#load(event.detail)}></hub-models>
        </details>`;
    }

    #list() {
        const words = this.query.toLowerCase();
        const found = this.models.filter(({ id }) => id.toLowerCase().includes(words));
        const broken = found.filter(({ status }) => status?.value === 'failed');
        const usable = found.filter((one) => !broken.includes(one));
        const servers = [...new Set(usable.map(({ upstream }) => upstream).filter(Boolean))];
        return html`<section aria-label=${t`Models`} data-stays>
            ${this.models.length >= SEARCH_FROM
                ? html`<input type="search" class="model-search" placeholder=${t`Search models`} aria-label=${t`Search models`} .value=${this.query}
                      @input=${(event) => (this.query = event.target.value)} @keydown=${this.#searchKey} />`
                : nothing}
            <ul class="models">${usable.map((one) => this.#row(one))}</ul>
            ${servers.length ? html`<p class="note">${icon('leaves')}${t`Models of ${listed(servers)} are on another server: what you ask them leaves this one.`}</p>` : nothing}
            ${found.length ? nothing : html`<p class="note">${t`No model has this name.`}</p>`}
            ${broken.length
                ? html`<details ?open=${!!words}>
                      <summary>${plural(broken.length, 'One cannot be loaded', '{0} cannot be loaded')}</summary>
                      <ul class="models">${broken.map((one) => this.#row(one))}</ul>
                  </details>`
                : nothing}
        </section>`;
    }

    /** Escape empties the search first. @param {KeyboardEvent} event */
    #searchKey(event) {
        if (event.key !== 'Escape' || !this.query) return;
        event.preventDefault();
        this.query = '';
    }

    #row(one) {
        const { server } = this.connection;
        const isNext = this.wanted === one.id || server?.next_model === one.id;
        const isLoading = isNext && server?.state === 'loading';
        const isCurrent = one.upstream ? one.id === this.chat.loadedModel : one.status?.value === 'loaded' && one.status.current !== false;
        const isResident = !isCurrent && !one.upstream && one.status?.value === 'loaded';
        return html`<li class=${isCurrent ? 'current' : ''} aria-current=${isCurrent ? 'true' : nothing}>
            ${isCurrent ? icon('check') : nothing}
            <span class="model-words"><strong>${one.id}</strong>${describe(one, isResident)}</span>
            ${isLoading
                ? html`<progress max="1" .value=${server.progress ?? 0} aria-label=${t`${one.id} is being loaded`}></progress>`
                : isNext
                  ? html`<span class="note">${t`when answers end`}</span>`
                  : isCurrent
                    ? html`<span class="note">${t`in use`}</span>`
                    : one.upstream || one.status?.value === 'failed'
                      ? nothing
                      : html`<button type="button" class="quiet small" ?disabled=${!!this.wanted} aria-label=${t`Use ${one.id}`}
                            @click=${() => this.#load(one.id)}>${t`Use`}</button>`}
            ${one.status?.value === 'failed' ? nothing : this.#choices(one.id, isResident)}
        </li>`;
    }

    /** @param {string} id @param {boolean} isResident it may be unloaded */
    #choices(id, isResident) {
        const { model, beside } = this.chat.current.options ?? {};
        const choice = (which, isOn, words, label) => html`<button type="button" class="switch small" aria-pressed=${isOn} aria-label=${label} @click=${() => this.#ofChat(which, id)}>${words}</button>`;
        return html`<span class="model-choices">
            ${choice('model', model === id, t`In this chat`, t`${id} answers in this chat`)} ${choice('beside', beside === id, t`Beside`, t`${id} answers beside`)}
            ${isResident
                ? html`<button type="button" class="quiet small" ?disabled=${!!this.wanted} aria-label=${t`Unload ${id}`} @click=${() => this.#load(id, 'unload')}>${t`Unload`}</button>`
                : nothing}
        </span>`;
    }
}
customElements.define('model-list', ModelList);

/** <model-choice>: the models that can answer a question again, beside the answer there is. */
class ModelChoice extends LitElement {
    static properties = { chat: { attribute: false }, message: { attribute: false }, busy: { attribute: false }, models: { state: true } };

    constructor() {
        super();
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        /** @type {import('../state/store.js').Message} */
        this.message = /** @type {any} */ (null);
        this.busy = false;
        /** @type {any[]} */
        this.models = [];
    }

    createRenderRoot() {
        return this;
    }

    async firstUpdated() {
        try {
            const reply = await this.chat.connection.fetch('v1/models');
            if (reply.ok) this.models = (await reply.json()).data;
        } catch {
            // The connection's own state says so already.
        }
    }

    render() {
        const usable = this.models.filter(({ id, status }) => status?.value !== 'failed' && id !== this.message.modelId);
        if (this.models.length < 2 || !usable.length) return nothing;
        return html`<h3>${t`Answer again beside this`}</h3>
            ${usable.map(({ id }) => html`<button type="button" class="quiet" ?disabled=${this.busy} @click=${() => this.chat.regenerate(this.message.id, id)}>${icon('again')}<span>${id}</span></button>`)}
            <hr />`;
    }
}
customElements.define('model-choice', ModelChoice);

/** @param {string[]} modalities */
function readsWords(modalities) {
    if (!modalities.includes('image')) return t`text only`;
    return listed([t`images`, ...(modalities.includes('video') ? [t`videos`] : [])]);
}

/** @param {any} one @param {boolean} isResident in memory, though another one is in use */
function describe(one, isResident) {
    if (one.status?.error) return html`<small>${one.status.error}</small>`;
    const context = one.meta?.n_ctx ?? one.meta?.n_ctx_train;
    const words = [
        one.upstream ? t`on ${one.upstream}` : '',
        one.meta?.size ? formatBytes(one.meta.size) : '',
        one.architecture ? readsWords(one.architecture.input_modalities) : '',
        context ? plural(context, '{0} token', '{0} tokens') : '',
        isResident ? t`in memory` : '',
    ].filter(Boolean);
    return words.length ? html`<small>${words.join(' · ')}</small>` : nothing;
}
