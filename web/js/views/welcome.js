/** <chat-welcome>: the empty state, with prompts that work with the loaded model. */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { t, translated } from '../language.js';
import { icon, logo } from './icons.js';
import { formatCount, isTouchDevice } from '../util.js';

/** As many prompts as are offered. */
const SHOWN = 3;

/** @param {any} model @returns {{can: string[], cannot: string[]}} */
export function abilities(model) {
    const cannot = [t`Look things up: it knows what it learnt, and may be wrong.`, t`Hear, speak or draw.`];
    if (/^seedling$/i.test(model.name)) {
        // The default model, whose training is known.
        return {
            can: [
                t`Drawn shapes, their colours, places and numbers; printed words; small bar charts.`,
                t`Short drawn videos: what moves, appears or changes, and when.`,
                t`Questions about Parley itself; sums, spelling, short poems and stories, in English.`,
            ],
            cannot: [
                t`Photographs, handwriting, documents: it is a demonstration of 49 MB.`,
                t`Other languages, long conversations, free talk.`,
            ],
        };
    }
    const can = [t`Answer questions, write, explain, translate, read text files and code.`];
    if (model.vision) can.push(t`Look at images and pages, several at once.`);
    if (model.video) can.push(t`Watch videos, sampled at a few frames per second, without sound.`);
    if (model.thinking) can.push(t`Think before it answers, when you ask for it.`);
    if (model.context) can.push(t`Keep ${formatCount(model.context)} tokens in mind: about ${formatCount(Math.round((model.context * 0.7) / 100) * 100)} words.`);
    if (!model.vision) cannot.unshift(t`See images or videos.`);
    else if (!model.video) cannot.unshift(t`Watch videos.`);
    return { can, cannot };
}

class ChatWelcome extends LitElement {
    static properties = {
        chat: { attribute: false },
        model: { attribute: false },
        open: { attribute: false },
        samples: { state: true },
    };

    constructor() {
        super();
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        /** @type {any} */
        this.model = null;
        /** Whether the introduction is open. */
        this.open = false;
        /** A sample with a poster is a video.
         * @type {{files: string[], poster?: string, title?: string, question: string, thinking?: boolean}[]} */
        this.samples = [];
    }

    createRenderRoot() {
        return this;
    }

    async connectedCallback() {
        super.connectedCallback();
        try {
            const reply = await fetch(new URL('samples/samples.json', document.baseURI));
            const list = reply.ok ? await reply.json() : [];
            this.samples = list.filter((sample) => typeof sample?.question === 'string' && Array.isArray(sample.files));
        } catch {
            this.samples = []; // the page works without them
        }
    }

    render() {
        const samples = this.samples
            .filter((sample) => !sample.files.length || (sample.poster ? this.model.video : this.model.vision))
            .slice(0, SHOWN);
        return html`<div class="welcome">
            ${logo()}
            <h2>${this.model.vision ? t`Show me something` : t`Ask me something`}</h2>
            <p>
                ${this.model.vision
                    ? isTouchDevice()
                        ? t`Add an image, or just ask.`
                        : t`Drop an image anywhere, paste one, or just ask.`
                    : t`Write a question below.`}
                ${t`What you send goes to this server alone.`}
            </p>
            ${samples.length
                ? html`<ul class="samples">
                      ${samples.map(
                          (sample) => html`<li>
                              <button type="button" class="sample" @click=${() => this.#send(sample)}>
                                  <span class="sample-image">
                                      ${sample.files.length
                                          ? html`<img src="samples/${sample.poster ?? sample.files[0]}" alt="" />`
                                          : icon(sample.thinking ? 'sum' : 'thought')}
                                      ${sample.poster ? html`<span class="sample-play">${icon('play')}</span>` : nothing}
                                  </span>
                                  <span class="sample-words">
                                      ${sample.title ? html`<span class="sample-title">${translated(sample.title)}</span>` : nothing}
                                      <span class="sample-question">${sample.question}</span>
                                  </span>
                              </button>
                          </li>`,
                      )}
                  </ul>`
                : nothing}
            ${this.#introduction()}
        </div>`;
    }

    /** What the loaded model can and cannot do, and how to get a bigger one. */
    #introduction() {
        const { can, cannot } = abilities(this.model);
        const list = (words) => html`<ul>${words.map((text) => html`<li>${text}</li>`)}</ul>`;
        return html`<details class="introduction" .open=${this.open} @toggle=${this.#toggled}>
            <summary>${icon('info')}<span>${t`What ${this.model.name} can do`}</span>${icon('down')}</summary>
            <div class="introduction-lists">
                <section><h3>${t`It can`}</h3>${list(can)}</section>
                <section><h3>${t`It cannot`}</h3>${list(cannot)}</section>
            </div>
            <p>
                <strong>${t`A bigger one:`}</strong> ${t`stop the server and start it with a folder that holds a Qwen3.5 checkpoint. What it can do is read from there, and this page follows:`}
                <code>parley -m DIR</code>
            </p>
            <p class="introduction-end">
                <button type="button" class="plain" @click=${() => this.chat.settings.set('introduction', false)}>${t`Got it`}</button>
            </p>
        </details>`;
    }

    /** @param {Event} event */
    #toggled(event) {
        const { open } = /** @type {HTMLDetailsElement} */ (event.target);
        if (open === !this.open) this.chat.settings.set('introduction', open);
    }

    async #send(sample) {
        const files = [];
        try {
            for (const name of sample.files) {
                const reply = await fetch(new URL(`samples/${name}`, document.baseURI));
                if (!reply.ok) throw new Error(String(reply.status));
                const blob = await reply.blob();
                files.push(new File([blob], name, { type: blob.type }));
            }
        } catch {
            this.#tell('notice', { text: t`The sample image could not be loaded.` });
            return;
        }
        this.#tell('send-sample', { files, text: sample.question, thinking: sample.thinking });
    }

    #tell(type, detail) {
        this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true }));
    }
}
customElements.define('chat-welcome', ChatWelcome);
