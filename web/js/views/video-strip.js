/**
 * <video-strip>: an attached video as one strip whose two handles choose the part that is sent;
 * behind "Frames" those that the model will see, with their times, and how many they shall be. The
 * choice is kept in `attachment.video` and sent with the video.
 */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { plural, t } from '../language.js';
import { urlOf } from '../state/attachments.js';
import { clock } from '../state/times.js';
import { videoTokens, frameTimes } from '../state/video-plan.js';

const RATES = [0.5, 1, 2, 4, 8];
const COUNTS = [4, 8, 16, 32, 64, 128];
/** More frames than these are counted but not drawn. */
const DRAWN_MAX = 48;
const SEEK_WAIT_MS = 2_000;
const HEIGHT = 54;
/** Pictures of the whole video in the strip. */
const OVERVIEW = 10;

class VideoStrip extends LitElement {
    static properties = {
        attachment: { attribute: false },
        rates: { attribute: false },
        times: { state: true },
        opened: { state: true },
    };

    constructor() {
        super();
        /** @type {import('../state/store.js').Attachment} */
        this.attachment = /** @type {any} */ (null);
        this.rates = { fps: 2, min_frames: 4, max_frames: 768 };
        /** @type {number[]} */
        this.times = [];
        /** Whether the frames are shown. */
        this.opened = false;
        this.round = 0;
    }

    createRenderRoot() {
        return this;
    }

    get seconds() {
        return this.attachment.seconds ?? 0;
    }

    get chosen() {
        return this.attachment.video ?? {};
    }

    willUpdate(changed) {
        if (changed.has('attachment') || changed.has('rates')) this.#plan();
    }

    updated(changed) {
        const whole = this.seconds * 1000;
        const { start_ms: start = 0, end_ms: end = whole } = this.chosen;
        const part = (ms) => `${(100 * ms) / whole}%`;
        const place = (name, left, right) => Object.assign(this.querySelector(name)?.style ?? {}, { left, right });
        place('.strip-off.before', '0', part(whole - start));
        place('.strip-off.after', part(end), '0');
        place('.strip-on', part(start), part(whole - end));
        if (changed.has('attachment') || (this.opened && (changed.has('times') || changed.has('opened')))) this.#draw();
    }

    disconnectedCallback() {
        super.disconnectedCallback();
        this.round++;
    }

    #plan() {
        this.times = frameTimes(this.seconds, this.chosen, this.rates);
    }

    /** Draws the frames one after the other; a newer choice ends it. */
    async #draw() {
        const round = ++this.round;
        const video = document.createElement('video');
        video.muted = true;
        video.preload = 'auto';
        const next = (name) =>
            new Promise((resolve) => {
                video.addEventListener(name, resolve, { once: true });
                video.addEventListener('error', resolve, { once: true });
                setTimeout(resolve, SEEK_WAIT_MS);
            });
        // TRAP: `seeked` may come while the frame before it is still the one that would be drawn.
        const presented = () =>
            new Promise((resolve) => {
                video.requestVideoFrameCallback?.(resolve) ?? resolve(undefined);
                setTimeout(resolve, SEEK_WAIT_MS);
            });
        // What was drawn for another choice would stand over the wrong time.
        if (this.drawnOf !== this.attachment) for (const canvas of this.querySelectorAll('canvas')) delete canvas.dataset.drawn;
        this.drawnOf = this.attachment;
        const fresh = [...this.querySelectorAll('canvas')].filter((one) => one.dataset.drawn !== one.dataset.time);
        for (const canvas of fresh) canvas.width = canvas.height;
        const loaded = next('loadeddata');
        video.src = urlOf(/** @type {Blob} */ (this.attachment.blob));
        await loaded;
        for (const canvas of fresh) {
            if (round !== this.round || !video.videoWidth) break;
            const seeked = Promise.all([next('seeked'), presented()]);
            video.currentTime = Number(canvas.dataset.time);
            await seeked;
            canvas.height = HEIGHT * 2;
            canvas.width = Math.round((canvas.height * video.videoWidth) / video.videoHeight);
            canvas.getContext('2d')?.drawImage(video, 0, 0, canvas.width, canvas.height);
            canvas.dataset.drawn = canvas.dataset.time;
        }
        video.removeAttribute('src');
        video.load();
    }

    /** @param {Record<string, number|undefined>} change */
    #choose(change) {
        const video = { ...this.chosen, ...change };
        for (const key of Object.keys(video)) if (video[key] === undefined) delete video[key];
        this.attachment.video = video;
        this.#plan();
        this.dispatchEvent(new CustomEvent('video-chosen', { bubbles: true }));
    }

    /** @param {Event} event @param {boolean} isStart */
    #trim(event, isStart) {
        const value = Number(/** @type {HTMLInputElement} */ (event.target).value);
        const whole = Math.floor(this.seconds * 10) * 100;
        const { start_ms: start = 0, end_ms: end = whole } = this.chosen;
        if (isStart) this.#choose({ start_ms: value > 0 ? Math.min(value, end - 100) : undefined });
        else this.#choose({ end_ms: value < whole ? Math.max(value, start + 100) : undefined });
    }

    render() {
        const { seconds, name, width, height } = this.attachment;
        if (!seconds) return nothing;
        const whole = Math.floor(seconds * 10) * 100;
        const { fps, max_frames: most, start_ms: start = 0, end_ms: end = whole } = this.chosen;
        const tokens = videoTokens(width, height, this.times.length, this.rates);
        const step = Math.max(1, Math.ceil(this.times.length / DRAWN_MAX));
        const shown = this.times.filter((_, i) => i % step === 0);
        const handle = (value, isStart) => html`<input type="range" min="0" max=${whole} step="100" .value=${String(value)}
            aria-label=${isStart ? t`Start of ${name}` : t`End of ${name}`} aria-valuetext=${clock(value)} @input=${(event) => this.#trim(event, isStart)} />`;
        const choice = (label, name, value, usual, options) => html`<label>${label}
            <select @change=${(event) => this.#choose({ [name]: Number(event.target.value) || undefined })}>
                <option value="" ?selected=${!value}>${t`as the model likes (${usual})`}</option>
                ${options.map((option) => html`<option value=${option} ?selected=${value === option}>${option}</option>`)}
            </select></label>`;
        const overview = Array.from({ length: OVERVIEW }, (_, i) => ((i + 0.5) * seconds) / OVERVIEW);
        return html`<section class="video-strip" aria-label=${t`What is shown of ${name}`}>
            <div class="strip">
                <ol aria-hidden="true">${overview.map((time) => html`<li><canvas data-time=${time} height=${HEIGHT} width=${HEIGHT}></canvas></li>`)}</ol>
                <span class="strip-off before"></span><span class="strip-off after"></span><span class="strip-on"></span>
                ${handle(start, true)} ${handle(end, false)}
            </div>
            <p class="strip-words">
                <span class="range">${clock(start)} – ${clock(end)}</span>
                <span class="estimate">${tokens
                    ? plural(this.times.length, 'The model sees about {0} frame, {1} tokens.', 'The model sees about {0} frames, {1} tokens.', tokens)
                    : plural(this.times.length, 'The model sees about {0} frame.', 'The model sees about {0} frames.')}</span>
            </p>
            <details .open=${this.opened} @toggle=${(event) => (this.opened = event.target.open)}>
                <summary>${t`Frames`}</summary>
                ${this.opened
                    ? html`<ol class="video-frames" aria-label=${plural(this.times.length, '{0} frame', '{0} frames')} tabindex="0">
                          ${shown.map((time) => html`<li><canvas data-time=${time} height=${HEIGHT} width=${HEIGHT}></canvas><span>${clock(time * 1000)}</span></li>`)}
                      </ol>`
                    : nothing}
                <div class="video-choice">
                    ${choice(t`Frames a second`, 'fps', fps, this.rates.fps, RATES)}
                    ${choice(t`At most`, 'max_frames', most, this.rates.max_frames, COUNTS.filter((n) => n < this.rates.max_frames))}
                </div>
            </details>
        </section>`;
    }
}

customElements.define('video-strip', VideoStrip);
