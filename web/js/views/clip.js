/** <video-clip>: a video that was sent. It has one size from the start, and its controls stand under
 * the picture. */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { t } from '../language.js';
import { icon } from './icons.js';
import { urlOf } from '../state/attachments.js';
import { clock } from '../state/times.js';

class VideoClip extends LitElement {
    static properties = {
        video: { attribute: false },
        from: { attribute: false },
        to: { attribute: false },
        section: { attribute: false },
        at: { state: true },
        playing: { state: true },
        broken: { state: true },
    };

    constructor() {
        super();
        /** @type {import('../state/store.js').Attachment} */
        this.video = /** @type {any} */ (null);
        /** Milliseconds of the part that was sent. */
        this.from = 0;
        /** @type {number|undefined} */
        this.to = undefined;
        /** It in words. Not `part`: every element has that, and it would be set before this class is there. */
        this.section = '';
        this.at = 0;
        this.playing = false;
        this.broken = false;
    }

    createRenderRoot() {
        return this;
    }

    updated(changed) {
        const { width, height } = this.video;
        if (!changed.has('video') || !width || !height || this.broken) return;
        this.player.style.aspectRatio = `${width} / ${height}`;
        /** @type {HTMLElement} */ (this.firstElementChild).style.width = `min(24rem, ${(16 * width) / height}rem, 100%)`;
    }

    get player() {
        return /** @type {HTMLVideoElement} */ (this.querySelector('video'));
    }

    render() {
        const { name, blob, seconds = 0 } = this.video;
        const { from, to = seconds * 1000, section } = this;
        if (this.broken) return html`<div class="image missing">${icon('play')}<span>${t`${name} cannot be played here`}</span></div>`;
        const label = section ? `${name}, ${section}` : name;
        return html`<figure class="clip">
            <video class="image" src="${urlOf(/** @type {Blob} */ (blob))}${section ? `#t=${from / 1000}${this.to ? `,${this.to / 1000}` : ''}` : ''}"
                muted playsinline preload="metadata" tabindex="-1" aria-label=${label}
                @timeupdate=${this.#moved} @seeked=${this.#moved} @play=${this.#moved} @pause=${this.#moved} @loadedmetadata=${this.#moved}
                @click=${this.#toggle} @error=${() => (this.broken = true)}></video>
            <div class="clip-bar">
                <button type="button" class="quiet icon-only small" aria-label=${this.playing ? t`Pause ${name}` : t`Play ${name}`} @click=${this.#toggle}>
                    ${icon(this.playing ? 'pause' : 'play')}
                </button>
                <input type="range" min=${from} max=${to || 1} step="any" .value=${String(this.at)} aria-label=${t`Position in ${name}`}
                    aria-valuetext=${t`${clock(this.at)} of ${clock(to)}`} @input=${this.#seek} />
                <span class="clip-time">${clock(Math.floor(this.at / 1000) * 1000)} / ${clock(to)}</span>
                ${document.fullscreenEnabled
                    ? html`<button type="button" class="quiet icon-only small" aria-label=${t`Show ${name} in full screen`} title=${t`Full screen`} @click=${this.#whole}>${icon('expand')}</button>`
                    : nothing}
            </div>
            ${section ? html`<figcaption class="video-part">${section}</figcaption>` : nothing}
        </figure>`;
    }

    #moved() {
        const { currentTime, paused } = this.player;
        this.at = currentTime * 1000;
        this.playing = !paused;
        // The end of the part that was sent.
        if (paused || !this.to || this.at < this.to) return;
        this.player.pause();
        this.player.currentTime = this.to / 1000;
    }

    #toggle() {
        const { player } = this;
        if (!player.paused) return player.pause();
        if (player.ended || (this.to && player.currentTime * 1000 >= this.to - 50)) player.currentTime = this.from / 1000;
        return player.play().catch(() => {}); // the element says so by its error
    }

    /** @param {Event} event */
    #seek(event) {
        this.player.currentTime = Number(/** @type {HTMLInputElement} */ (event.target).value) / 1000;
    }

    /** In full screen the browser's own controls are there. */
    #whole() {
        const { player } = this;
        const change = () => {
            player.controls = document.fullscreenElement === player;
            if (!player.controls) player.removeEventListener('fullscreenchange', change);
        };
        player.addEventListener('fullscreenchange', change);
        player.requestFullscreen().catch(() => {});
    }
}
customElements.define('video-clip', VideoClip);
