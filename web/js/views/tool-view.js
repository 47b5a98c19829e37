/**
 * <tool-call>: a call of a tool as a person reads it: what was asked for, how it goes, what came of
 * it; and where it is asked about, the answer to that. Fetched with the first call, with its styles.
 */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { t } from '../language.js';
import { callAgain, decide } from '../state/tools.js';
import { isAsked } from '../state/store.js';
import { urlOf } from '../state/attachments.js';
import { formatDuration } from '../util.js';
import './code-block.js';
import { icon } from './icons.js';

/** @typedef {import('../state/store.js').ToolCall} ToolCall */

const SHORT = 60; // longer values get a line of their own
const TICK_MS = 1_000;

const style = document.createElement('link');
style.rel = 'stylesheet';
style.href = new URL('../../css/tools.css', import.meta.url).href;
document.head.append(style);

/** "get_weather" -> "get weather". @param {string} name */
const spoken = (name) => name.replace(/[_-]+/g, ' ').trim() || t`a tool`;

/** The arguments as name and value, or null where they are not (yet) an object.
 * @param {string} text */
function fields(text) {
    try {
        const value = JSON.parse(text || '{}');
        return value && typeof value === 'object' && !Array.isArray(value) ? Object.entries(value) : null;
    } catch {
        return null;
    }
}

/** What cannot be seen, or turns the direction of writing, is written out: nobody allows what he
 * cannot read. @param {string} text */
const seen = (text) => text.replace(/[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu, (c) => (/[\n\t]/.test(c) ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`));

/** @param {any} value */
const plain = (value) => seen(typeof value === 'string' ? value : JSON.stringify(value, null, 1));

/** A result that is JSON is indented, anything else stands as it came. @param {string} text */
function result(text) {
    try {
        const value = JSON.parse(text);
        if (value && typeof value === 'object') return { code: JSON.stringify(value, null, 2), language: 'json' };
    } catch {
        // It is plain text.
    }
    return { code: text, language: '' };
}

class ToolCallView extends LitElement {
    static properties = { chat: { attribute: false }, message: { attribute: false }, tool: { attribute: false }, busy: { attribute: false } };

    constructor() {
        super();
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        /** @type {import('../state/store.js').Message} */
        this.message = /** @type {any} */ (null);
        /** @type {ToolCall} */
        this.tool = /** @type {any} */ (null);
        this.busy = false;
        this.timer = 0;
    }

    createRenderRoot() {
        return this;
    }

    disconnectedCallback() {
        super.disconnectedCallback();
        clearInterval(this.timer);
        this.timer = 0;
    }

    /** Whether the server runs it now. */
    get #runs() {
        const { server, output } = this.tool;
        return !!server && output === undefined && this.message.status === 'streaming' && !isAsked(this.tool) && this.tool.allowed !== false;
    }

    updated() {
        if (!this.#runs) clearInterval(this.timer);
        if (this.#runs !== !!this.timer) this.timer = this.#runs ? window.setInterval(() => this.requestUpdate(), TICK_MS) : 0;
    }

    #state() {
        const { output, failed, server, allowed, begun = Date.now(), ms } = this.tool;
        const streaming = this.message.status === 'streaming';
        if (output !== undefined) return `${failed ? t`failed` : t`done`}${ms === undefined ? '' : ` · ${formatDuration(ms)}`}`;
        if (isAsked(this.tool)) return t`asks first`;
        if (allowed === false) return t`refused`;
        if (this.#runs) return `${t`at work`} · ${formatDuration(Math.max(0, Date.now() - begun))}`;
        return streaming ? t`at work` : server ? t`stopped` : t`asked for`;
    }

    render() {
        const { name, server, output, failed, arguments: text, progress, note } = this.tool;
        const given = fields(text);
        const asked = isAsked(this.tool) && this.message.status !== 'streaming';
        const orphan = output === undefined && !server && this.message.status !== 'streaming';
        const out = output === undefined ? null : result(output);
        return html`<details class="tool ${failed ? 'failed' : ''}" ?open=${asked || orphan}>
                <summary>
                    ${icon(failed ? 'warning' : 'tool')}<span>${spoken(name)}${server ? html` <small>${server}</small>` : nothing}</span>
                    <span class="tool-state">${this.#state()}</span>${icon('down')}
                </summary>
                ${asked ? html`<p role="alert">${t`The model wants to call ${name} of ${server}. Nothing runs before you allow it.`}</p>` : nothing}
                ${given?.length
                    ? html`<dl>
                          ${given.map(([key, value]) => {
                              const words = plain(value);
                              return html`<div class=${words.length > SHORT ? 'long' : ''}><dt>${spoken(seen(key))}</dt><dd dir="auto">${words}</dd></div>`;
                          })}
                      </dl>`
                    : given
                      ? nothing
                      : html`<p class="raw">${seen(text)}</p>`}
                ${asked ? this.#question() : nothing}
                ${out
                    ? html`<p class="note">${t`What came of it`}</p>
                          <code-block .code=${out.code} .language=${out.language}></code-block>`
                    : orphan
                      ? html`<p class="note">${t`No tool of this server answers to this name; the program that asked is to run it.`}</p>`
                      : nothing}
                ${failed && server && this.message.status !== 'streaming'
                    ? html`<p class="tool-buttons"><button type="button" class="plain small" ?disabled=${this.busy} @click=${() => callAgain(this.chat, this.message, this.tool)}>
                          ${icon('again')}${t`Try this call again`}</button></p>`
                    : nothing}
            </details>
            ${this.#runs && progress !== undefined
                ? html`<div class="tool-progress"><progress max="1" .value=${progress} aria-label=${note || t`Progress of ${spoken(name)}`}></progress>${note ? html`<span>${note}</span>` : nothing}</div>`
                : nothing}
            ${this.#images()}`;
    }

    #question() {
        const say = (allowed, always = false) => () => {
            decide(this.chat, this.message, this.tool, allowed, always);
            this.querySelector('summary')?.focus(); // the buttons go
        };
        const early = this.message.status === 'streaming'; // the answer has not ended yet: a word now would be lost
        return html`<p class="tool-buttons">
            <button type="button" class="primary" ?disabled=${early} @click=${say(true)}>${t`Allow once`}</button>
            <button type="button" class="plain" ?disabled=${early} @click=${say(true, true)}>${t`Always in this chat`}</button>
            <button type="button" class="plain" ?disabled=${early} @click=${say(false)}>${t`Refuse`}</button>
        </p>`;
    }

    #images() {
        const images = (this.message.attachments ?? []).filter(({ tool }) => tool === this.tool.id);
        if (!images.length) return nothing;
        const open = (image) => this.dispatchEvent(new CustomEvent('show-image', { detail: { image, items: images }, bubbles: true }));
        return html`<div class="images tool-images">
            ${images.map((image) =>
                image.blob
                    ? html`<button type="button" class="image" aria-label=${t`Show ${image.name} large`} @click=${() => open(image)}><img src=${urlOf(image.blob)} alt=${image.name} /></button>`
                    : html`<div class="image missing">${icon('image')}<span>${t`${image.name} is no longer kept`}</span></div>`,
            )}
        </div>`;
    }
}
customElements.define('tool-call', ToolCallView);
