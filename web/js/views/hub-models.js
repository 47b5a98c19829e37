/**
 * <hub-models>: models of a hub, in the menu of models: fetched with progress, those that are on the server's machine, what
 * one of them holds, removed. For who may, as /props says; the server does it, so that it goes on when the page is closed.
 * Fetched when it is opened first.
 */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { plural, t } from '../language.js';
import { icon } from './icons.js';
import { formatBytes, formatDuration } from '../util.js';

const style = document.createElement('link');
style.rel = 'stylesheet';
style.href = new URL('../../css/hub.css', import.meta.url).href;
document.head.append(style);

const LOOK_MS = 500;
/** How the name of a model is written. */
const NAME = 'ORG/NAME:QUANT';

class HubModels extends LitElement {
    static properties = { connection: { attribute: false }, needsKey: { attribute: false }, open: { attribute: false }, models: { attribute: false }, hub: { state: true }, problem: { state: true }, doomed: { state: true }, name: { state: true } };

    constructor() {
        super();
        /** @type {import('../protocol/connection.js').Connection} */
        this.connection = /** @type {any} */ (null);
        this.needsKey = false;
        this.open = false;
        /** @type {any[]} those of the server; when they change, what is said of them here may have */
        this.models = [];
        /** @type {any} what GET v1/hub says */
        this.hub = null;
        this.problem = '';
        /** the model whose removal is to be confirmed */
        this.doomed = '';
        this.name = '';
        /** the admin's, kept in this page alone */
        this.key = '';
    }

    createRenderRoot() {
        return this;
    }

    updated(changed) {
        if ((changed.has('open') || changed.has('models')) && this.open && (!this.needsKey || this.key)) this.#look();
    }

    disconnectedCallback() {
        super.disconnectedCallback();
        clearTimeout(this.timer);
    }

    /** @param {string} path @param {RequestInit} [init] */
    async #ask(path, init = {}) {
        const headers = { ...init.headers, ...(this.key ? { 'X-Api-Key': this.key } : {}) };
        const reply = await this.connection.fetch(path, { cache: 'no-store', ...init, headers });
        const said = await reply.json();
        if (!reply.ok) throw new Error(said.error.message);
        return said;
    }

    /** What there is now, and again while something is being done. */
    async #look() {
        clearTimeout(this.timer);
        try {
            const before = this.hub?.jobs ?? [];
            this.hub = await this.#ask('v1/hub');
            const ended = this.hub.jobs.some((one) => one.state === 'done' && before.some((job) => job.model === one.model && job.state === 'running'));
            if (ended) this.dispatchEvent(new CustomEvent('changed'));
            if (this.open && this.hub.jobs.some(({ state }) => state === 'running')) this.timer = setTimeout(() => this.#look(), LOOK_MS);
        } catch (error) {
            this.problem = error instanceof TypeError ? t`The server does not answer.` : error.message;
        }
    }

    /** @param {'pull'|'cancel'|'remove'|'inspect'|'offer'} what @param {string} model */
    async #order(what, model) {
        this.problem = this.doomed = '';
        try {
            await this.#ask(`v1/hub/${what}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ model }) });
            if (what === 'pull') this.name = '';
            if (what === 'offer') this.dispatchEvent(new CustomEvent('use', { detail: model }));
            await this.#look();
        } catch (error) {
            this.problem = error instanceof TypeError ? t`The server does not answer.` : error.message;
        }
    }

    /** @param {SubmitEvent} event */
    #fetch(event) {
        event.preventDefault();
        const name = this.name.trim();
        if (name) this.#order('pull', name);
    }

    /** @param {SubmitEvent} event */
    #takeKey(event) {
        event.preventDefault();
        this.key = /** @type {any} */ (event.target).elements.key.value.trim();
        this.problem = '';
        if (this.key) this.#look();
    }

    render() {
        const problem = html`<p class="note bad" role="status">${this.problem}</p>`;
        if (this.needsKey && !this.hub)
            return html`<form class="hub-form" @submit=${this.#takeKey}>
                    <input type="password" name="key" autocomplete="off" aria-label=${t`Key of the admin`} placeholder=${t`Key of the admin`} />
                    <button class="quiet small">${t`Go on`}</button>
                </form>
                ${problem}`;
        if (!this.hub) return html`<p class="note" role="status">${this.problem || t`Asking the server…`}</p>`;
        const { models } = this.hub;
        const jobs = this.hub.jobs.filter(({ state, action }) => state !== 'done' || action === 'inspect'); // the others show in the list
        const running = new Set(jobs.filter(({ state }) => state === 'running').map(({ model }) => model));
        return html`<form class="hub-form" @submit=${this.#fetch}>
                <input type="text" spellcheck="false" autocomplete="off" autocapitalize="off" aria-label=${t`Model to fetch`} placeholder=${NAME} .value=${this.name}
                    @input=${(event) => (this.name = event.target.value)} />
                <button class="quiet small" ?disabled=${!this.name.trim()}>${icon('download')}${t`Fetch`}</button>
            </form>
            ${problem}
            <ul class="models">${jobs.map((one) => this.#job(one))}</ul>
            <ul class="models">${models.filter(({ name }) => !running.has(name)).map((one) => this.#model(one))}</ul>
            ${models.length || jobs.length ? nothing : html`<p class="note">${t`No model of ${new URL(this.hub.endpoint).host} is on the server's machine yet.`}</p>`}`;
    }

    #job(one) {
        const { model } = one;
        const close = (words, label) => html`<button type="button" class="quiet small" aria-label=${label} @click=${() => this.#order('cancel', model)}>${words}</button>`;
        if (one.state === 'failed')
            return html`<li><span class="model-words"><strong>${model}</strong><small class="bad" role="status">${one.message}</small></span>${close(t`Close`, t`Close the message about ${model}`)}</li>`;
        if (one.action === 'inspect')
            return html`<li><span class="model-words"><strong>${model}</strong></span>${one.text ? close(t`Close`, t`Close what ${model} holds`) : nothing}
                ${one.text ? html`<pre class="hub-text" tabindex="0" aria-label=${t`What ${model} holds`}>${one.text}</pre>` : html`<small role="status">${t`Looking…`}</small>`}</li>`;
        return html`<li>
            <span class="model-words"><strong>${model}</strong><small>${progressWords(one)}</small></span>
            ${one.action === 'pull' ? close(t`Cancel`, t`Stop fetching ${model}`) : nothing}
            <progress max=${one.total || 1} .value=${one.bytes ?? 0} aria-label=${t`${model} is being fetched`}></progress>
        </li>`;
    }

    #model({ name, bytes, complete, loaded }) {
        const doomed = this.doomed === name;
        const choice = (words, label, act) => html`<button type="button" class="quiet small" aria-label=${label} @click=${act}>${words}</button>`;
        return html`<li>
            <span class="model-words"><strong>${name}</strong><small>${[formatBytes(bytes), complete ? '' : t`not whole`, loaded ? t`in memory` : ''].filter(Boolean).join(' · ')}</small></span>
            <span class="model-choices">
                ${complete
                    ? html`${loaded ? nothing : choice(t`Use`, t`Use ${name}`, () => this.#order('offer', name))}
                      ${choice(t`Inspect`, t`Inspect ${name}`, () => this.#order('inspect', name))}`
                    : choice(t`Go on`, t`Go on with ${name}`, () => this.#order('pull', name))}
                ${loaded
                    ? nothing
                    : doomed
                      ? html`${choice(t`Remove for good`, t`Remove ${name} for good`, () => this.#order('remove', name))}
                        ${choice(t`Do not remove`, t`Do not remove ${name}`, () => (this.doomed = ''))}`
                      : choice(t`Remove`, t`Remove ${name}`, () => (this.doomed = name))}
            </span>
        </li>`;
    }
}
customElements.define('hub-models', HubModels);

/** "1.2 GiB of 3.4 GiB · 35 MiB a second · about 1 min left · 2 of 5 files" */
function progressWords(one) {
    if (!one.n_files) return one.action === 'remove' ? t`Being removed` : t`Asking the hub…`;
    const waits = one.files.find(({ wait }) => wait)?.wait;
    const left = one.rate > 0 && one.total > one.bytes ? ((one.total - one.bytes) / one.rate) * 1000 : 0;
    return [
        t`${formatBytes(one.bytes)} of ${formatBytes(one.total)}`,
        one.n_files > 1 ? plural(one.n_files, '{1} of one file', '{1} of {0} files', one.n_done) : '',
        waits ||
            (one.files.some(({ checking }) => checking)
                ? t`checking what is there`
                : one.rate > 0
                  ? `${t`${formatBytes(one.rate)} a second`}${left > 1500 ? ` · ${t`about ${formatDuration(Math.ceil(left / 1000) * 1000)} left`}` : ''}`
                  : ''),
    ].filter(Boolean).join(' · ');
}
