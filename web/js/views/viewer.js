/** <media-viewer>: the images and text files of a chat, large: zoom, step, download. In a dialog;
 * loaded with the first that is opened. */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { formatPercent, t } from '../language.js';
import { icon } from './icons.js';
import { urlOf } from '../state/attachments.js';
import { download, formatBytes } from '../util.js';

const ZOOMS = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8];
/** More letters of a text are not laid out. */
const TEXT_MAX = 300_000;

class MediaViewer extends LitElement {
    static properties = {
        items: { attribute: false },
        at: { attribute: false },
        mark: { attribute: false },
        zoom: { state: true },
        text: { state: true },
    };

    constructor() {
        super();
        /** @type {import('../state/store.js').Attachment[]} */
        this.items = [];
        this.at = 0;
        /** A place in the text that is shown first, in letters. @type {{at: number, end: number}|null} */
        this.mark = null;
        /** 0: as large as there is room. */
        this.zoom = 0;
        this.text = '';
        this.key = (event) => this.#key(event);
    }

    createRenderRoot() {
        return this;
    }

    connectedCallback() {
        super.connectedCallback();
        addEventListener('keydown', this.key);
    }

    disconnectedCallback() {
        super.disconnectedCallback();
        removeEventListener('keydown', this.key);
    }

    willUpdate(changed) {
        if (changed.has('at') && !changed.has('items')) this.mark = null; // stepped on
        if (!changed.has('items') && !changed.has('at')) return;
        this.zoom = 0;
        this.text = '';
        const { item } = this;
        if (item?.kind !== 'text') return;
        item.blob?.text().then((text) => item === this.item && (this.text = text));
    }

    updated(changed) {
        if (changed.has('text')) this.querySelector('mark')?.scrollIntoView({ block: 'center' });
        const image = this.querySelector('img');
        if (!image) return;
        image.style.width = this.zoom ? `${this.item.width * this.zoom}px` : '';
        image.style.height = this.zoom ? `${this.item.height * this.zoom}px` : '';
    }

    get item() {
        return this.items[this.at];
    }

    render() {
        const { item } = this;
        if (!item) return nothing;
        const isText = item.kind === 'text';
        const facts = [isText ? '' : `${item.width} × ${item.height}`, formatBytes(item.bytes), item.note].filter(Boolean).join(' · ');
        const button = (name, label, click, off = false) => html`<button type="button" class="quiet icon-only" aria-label=${label} title=${label}
            ?disabled=${off} @click=${click}>${icon(name)}</button>`;
        return html`<header class="viewer-bar">
                <h2>${item.name}<small>${facts}</small></h2>
                ${isText
                    ? nothing
                    : html`${button('minus', t`Zoom out`, () => this.#step(-1), this.scale <= ZOOMS[0])}
                          <button type="button" class="quiet viewer-zoom" aria-label=${t`Whole image`} title=${t`Whole image (0)`} @click=${() => (this.zoom = 0)}>
                              ${this.zoom ? formatPercent(this.zoom) : t`Fit`}
                          </button>
                          ${button('plus', t`Zoom in`, () => this.#step(1), this.scale >= ZOOMS[ZOOMS.length - 1])}`}
                ${button('download', t`Download ${item.name}`, () => download(item.name, /** @type {Blob} */ (item.blob)))}
                <form method="dialog"><button class="quiet icon-only" aria-label=${t`Close`} title=${t`Close (Esc)`}>${icon('close')}</button></form>
            </header>
            <div class="stage" tabindex="0" role="group" aria-label=${item.name} @wheel=${this.#wheel}>
                ${isText
                    ? this.#words()
                    : html`<img class=${this.zoom ? 'large' : 'whole'} src=${urlOf(/** @type {Blob} */ (item.blob))} alt=${item.name} @click=${this.#clicked} />`}
            </div>
            ${this.items.length > 1
                ? html`<div class="viewer-steps">
                      ${button('left', t`Previous`, () => this.#go(-1), this.at === 0)}
                      <span aria-label=${t`${this.at + 1} of ${this.items.length}`}>${this.at + 1} / ${this.items.length}</span>
                      ${button('right', t`Next`, () => this.#go(1), this.at === this.items.length - 1)}
                  </div>`
                : nothing}`;
    }

    /** A text, or what of a long one stands around the place that is shown. */
    #words() {
        const { text, mark } = this;
        const from = mark && mark.at > TEXT_MAX / 2 ? text.lastIndexOf('\n', mark.at - TEXT_MAX / 2) + 1 : 0;
        const end = Math.min(text.length, from + TEXT_MAX);
        const [before, after] = [from ? '…\n' : '', end < text.length ? '\n…' : ''];
        return html`<pre dir="auto">${before}${mark
            ? html`${text.slice(from, mark.at)}<mark>${text.slice(mark.at, mark.end).trimEnd()}</mark>${text.slice(mark.at + text.slice(mark.at, mark.end).trimEnd().length, end)}`
            : text.slice(from, end)}${after}</pre>`;
    }

    /** How large the image is shown, 1: a pixel a pixel. */
    get scale() {
        const image = this.querySelector('img');
        return this.zoom || (image?.clientWidth ?? 0) / (this.item?.width || 1) || 1;
    }

    /** @param {number} step */
    #step(step) {
        const { scale } = this;
        const next = step > 0 ? ZOOMS.find((one) => one > scale * 1.01) : ZOOMS.findLast((one) => one < scale * 0.99);
        if (next) this.zoom = next;
    }

    /** @param {number} step */
    #go(step) {
        this.at = Math.min(this.items.length - 1, Math.max(0, this.at + step));
    }

    #clicked() {
        if (this.zoom) this.zoom = 0;
        else this.zoom = this.scale < 0.99 ? 1 : 2;
    }

    /** @param {WheelEvent} event */
    #wheel(event) {
        if (!event.ctrlKey || this.item.kind === 'text') return;
        event.preventDefault();
        this.#step(event.deltaY < 0 ? 1 : -1);
    }

    /** @param {KeyboardEvent} event */
    #key(event) {
        if (!this.closest('dialog')?.open || event.ctrlKey || event.metaKey || event.altKey) return;
        const isImage = this.item?.kind !== 'text';
        if (event.key === 'ArrowLeft' && !this.zoom) this.#go(-1);
        else if (event.key === 'ArrowRight' && !this.zoom) this.#go(1);
        else if (isImage && (event.key === '+' || event.key === '=')) this.#step(1);
        else if (isImage && event.key === '-') this.#step(-1);
        else if (isImage && event.key === '0') this.zoom = 0;
        else return;
        event.preventDefault();
    }
}
customElements.define('media-viewer', MediaViewer);
