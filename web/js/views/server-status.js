/**
 * <server-status>: what the server does right now and did in the last minutes, from /v1/status,
 * asked every second while its dialog is open. Charts are plain lines: what happened is in the
 * numbers beside them.
 */
import { LitElement, html, nothing, svg } from '../../vendor/lit.js';
import { formatPercent, plural, t } from '../language.js';
import { formatBytes, formatCount, formatDuration, formatRate } from '../util.js';

const EVERY_MS = 1_000;
const KEPT = 180; // samples of a chart at most
const SPAN = 45; // and as many as fill its width at least

const STATES = { ready: t`ready`, loading: t`loading`, draining: t`draining` };
const PHASES = {
    prepare: t`being prepared`, media_decode: t`opening files`, queued: t`in the queue`, vision_encode: t`looking`,
    prefill: t`reading`, decode: t`answering`,
};

/**
 * Tokens a second between two readings. Finished requests count in `totals`, running ones in their
 * own line.
 * @param {any} now @param {any} before
 */
export function rateBetween(now, before) {
    const made = (status) => status.totals.generated_tokens + status.running.reduce((sum, one) => sum + one.tokens, 0);
    const seconds = now.uptime_s - before.uptime_s;
    return seconds > 0 ? Math.max(0, (made(now) - made(before)) / seconds) : 0;
}

class ServerStatus extends LitElement {
    static properties = { connection: { attribute: false }, status: { state: true }, problem: { state: true } };

    constructor() {
        super();
        /** @type {import('../protocol/connection.js').Connection} */
        this.connection = /** @type {any} */ (null);
        /** @type {any} */
        this.status = null;
        this.problem = '';
        /** @type {{rate: number, queue: number, memory: number}[]} */
        this.samples = [];
    }

    createRenderRoot() {
        return this;
    }

    connectedCallback() {
        super.connectedCallback();
        this.#ask(); // it comes when its dialog opens for the first time
        this.timer = setInterval(() => this.#ask(), EVERY_MS);
        this.closest('dialog')?.addEventListener('toggle', () => this.#ask());
    }

    disconnectedCallback() {
        super.disconnectedCallback();
        clearInterval(this.timer);
    }

    async #ask() {
        if (!this.closest('dialog')?.open || document.hidden || this.asking) return;
        this.asking = true;
        try {
            const reply = await this.connection.fetch('v1/status', { cache: 'no-store' });
            if (!reply.ok) throw new Error(String(reply.status));
            const status = await reply.json();
            // Another process counts from zero again.
            if (this.status && status.uptime_s < this.status.uptime_s) this.status = null;
            this.samples = [
                ...this.samples,
                {
                    rate: this.status ? rateBetween(status, this.status) : 0,
                    queue: status.queue.running + status.queue.waiting,
                    memory: status.memory.rss_bytes,
                },
            ].slice(-KEPT);
            this.status = status;
            this.problem = '';
        } catch (error) {
            this.problem = error.message === '401' ? t`The server shows this only to those who have its API key.` : t`The server does not answer.`;
        } finally {
            this.asking = false;
        }
    }

    render() {
        const s = this.status;
        if (!s) return html`<div class="dialog-body"><p class="note" role="status">${this.problem || t`Asking the server…`}</p></div>`;
        const { queue, totals, cache, mtp, memory } = s;
        const facts = [
            [t`State`, t`${STATES[s.state] ?? s.state}, for ${formatDuration(s.uptime_s * 1000)}`],
            [t`Version`, s.version],
            [t`Kernels`, s.model?.compute],
            [t`Answered`, plural(totals.requests, '{0} request, {1} tokens written, {2} read', '{0} requests, {1} tokens written, {2} read', formatCount(totals.generated_tokens), formatCount(totals.prompt_tokens))],
            [t`Speed on average`, totals.predicted_per_second > 0 ? t`${formatRate(totals.predicted_per_second)} tokens/s written, ${formatRate(totals.prompt_per_second)} read` : ''],
            [t`Images looked at`, totals.vision_encodes ? formatCount(totals.vision_encodes) : ''],
            [t`Remembered prompts`, cache.queries ? t`${formatPercent(cache.hit_rate)} found of ${formatCount(cache.queries)}, ${formatBytes(cache.bytes)}` : ''],
            [t`Prompts on disk`, cache.disk ? t`${formatCount(cache.disk.entries)}, ${formatBytes(cache.disk.bytes)} of ${formatBytes(cache.disk.limit)}, ${formatCount(cache.disk.hits)} read back` : ''],
            [t`Drafts kept`, mtp.drafted ? t`${formatPercent(mtp.acceptance_rate)} of ${formatCount(mtp.drafted)}` : ''],
            [t`Weights`, formatBytes(memory.weight_bytes)],
        ].filter(([, value]) => value);
        const last = this.samples.at(-1);
        return html`<div class="dialog-body">
            ${this.problem ? html`<p class="note" role="status">${this.problem}</p>` : nothing}
            <div class="charts">
                ${chart(t`Tokens a second`, this.samples.map((one) => one.rate), formatRate(last?.rate ?? 0))}
                ${chart(t`Requests`, this.samples.map((one) => one.queue), t`${queue.running} run, ${queue.waiting} wait`, queue.slots)}
                ${chart(t`Memory`, this.samples.map((one) => one.memory), formatBytes(memory.rss_bytes))}
            </div>
            <section aria-label=${t`Your requests`}>
                <h3>${t`Your requests`}</h3>
                ${s.running.length + s.waiting.length === 0
                    ? html`<p class="note">${t`Nothing runs or waits. ${queue.slots} can run side by side.`}</p>`
                    : html`<ul class="jobs">${[...s.running, ...s.waiting].map((one) => this.#job(one))}</ul>`}
            </section>
            <dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
        </div>`;
    }

    #job(one) {
        const reads = one.phase !== 'decode' && one.total > 0;
        return html`<li>
            <span class="job-words">
                ${one.route === 'media' ? t`${PHASES[one.phase] ?? one.phase}, with images` : (PHASES[one.phase] ?? one.phase)} ·
                ${reads ? t`${formatCount(one.processed)} of ${formatCount(one.total)}` : plural(one.tokens, '{0} token', '{0} tokens')}
                ${one.tokens_per_second > 0 ? `· ${t`${formatRate(one.tokens_per_second)} tokens/s`}` : ''} · ${formatDuration(one.elapsed_ms)}
            </span>
            <button type="button" class="quiet small" @click=${() => this.connection.fetch(`v1/requests/${one.id}/cancel`, { method: 'POST' })}>
                ${t`Stop`}
            </button>
        </li>`;
    }
}
customElements.define('server-status', ServerStatus);

const WIDTH = 180;
const HEIGHT = 48;

/** @param {string} name @param {number[]} values @param {string} now in words @param {number} [least] what the top stands for at least */
function chart(name, values, now, least = 0) {
    const top = Math.max(least, ...values, 1e-9);
    const span = Math.max(SPAN, values.length);
    const x = (i) => (WIDTH * (span - values.length + i)) / (span - 1);
    const y = (value) => HEIGHT - 2 - ((HEIGHT - 4) * value) / top;
    const points = values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`);
    return html`<figure class="chart">
        <figcaption><span>${name}</span><strong>${now}</strong></figcaption>
        <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" aria-hidden="true">
            ${points.length > 1
                ? svg`<path class="area" d="M${x(0).toFixed(1)},${HEIGHT} L${points.join(' ')} L${WIDTH},${HEIGHT}Z" /><polyline points=${points.join(' ')} />`
                : nothing}
        </svg>
    </figure>`;
}
