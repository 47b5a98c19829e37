/**
 * <model-list>: the models that the server can load instead, in the dialog about the model. Loaded
 * when that dialog opens first; what is on its way shows in the page's own bar, too.
 */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { formatBytes, formatCount } from '../util.js';

class ModelList extends LitElement {
    static properties = { connection: { attribute: false }, models: { state: true }, wanted: { state: true }, problem: { state: true } };

    constructor() {
        super();
        /** @type {import('../protocol/connection.js').Connection} */
        this.connection = /** @type {any} */ (null);
        /** @type {any[]} */
        this.models = [];
        this.wanted = '';
        this.problem = '';
    }

    createRenderRoot() {
        return this;
    }

    firstUpdated() {
        this.closest('dialog')?.addEventListener('toggle', (event) => /** @type {any} */ (event).newState === 'open' && this.#ask());
        this.connection.addEventListener('state', () => this.#heard());
        this.#ask();
    }

    /** The server's state changed; what is loaded may have. */
    #heard() {
        const { state, model } = this.connection.server ?? {};
        const heard = `${state} ${model}`;
        if (heard !== this.heard && this.closest('dialog')?.open) this.#ask();
        this.heard = heard;
        this.requestUpdate();
    }

    async #ask() {
        try {
            const reply = await this.connection.fetch('v1/models', { cache: 'no-store' });
            if (reply.ok) this.models = (await reply.json()).data;
        } catch {
            // The connection's own state says so already.
        }
    }

    /** @param {string} model */
    async #load(model) {
        this.wanted = model;
        this.problem = '';
        try {
            const reply = await this.connection.fetch('models/load', {
                method: 'POST',
                headers: { 'Content-Type': 'application/json' },
                body: JSON.stringify({ model }),
            });
            if (!reply.ok) this.problem = (await reply.json()).error.message;
        } catch {
            this.problem = 'The server does not answer.';
        }
        this.wanted = '';
        this.#ask();
    }

    render() {
        if (this.models.length < 2) return html`<p class="note">Other models: <code>parley --models-dir DIR</code>, where DIR holds checkpoints.</p>`;
        return html`<section aria-label="Models">
            <h3>Models</h3>
            <ul class="jobs">
                ${this.models.map((one) => this.#row(one))}
            </ul>
            <p class="note" role="status">${this.problem}</p>
        </section>`;
    }

    #row(one) {
        const { server } = this.connection;
        const isNext = this.wanted === one.id || server?.next_model === one.id;
        const isLoading = isNext && server?.state === 'loading';
        return html`<li>
            <span class="job-words">${one.id}${describe(one)}</span>
            ${isLoading
                ? html`<progress max="1" .value=${server.progress ?? 0} aria-label="${one.id} is being loaded"></progress>`
                : isNext
                  ? html`<span class="note">when answers end</span>`
                  : one.status?.value === 'loaded'
                    ? html`<span class="note">in use</span>`
                    : one.status?.value === 'failed'
                      ? nothing
                      : html`<button type="button" class="quiet small" ?disabled=${!!this.wanted} aria-label="Use ${one.id}"
                            @click=${() => this.#load(one.id)}>Use</button>`}
        </li>`;
    }
}
customElements.define('model-list', ModelList);

/** @param {any} one */
function describe(one) {
    if (one.status?.error) return html`<small class="note"> cannot be loaded: ${one.status.error}</small>`;
    const context = one.meta?.n_ctx ?? one.meta?.n_ctx_train;
    const words = [
        one.meta?.size ? formatBytes(one.meta.size) : '',
        one.architecture ? (one.architecture.input_modalities.includes('image') ? 'sees images' : 'text only') : '',
        context ? `${formatCount(context)} tokens` : '',
    ].filter(Boolean);
    return words.length ? html`<small class="note"> ${words.join(' · ')}</small>` : nothing;
}
