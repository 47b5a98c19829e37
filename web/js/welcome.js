/** <chat-welcome>: the empty state, with prompts that work with the loaded model. */
import { LitElement, html, nothing } from '../vendor/lit.js';
import { icon, logo } from './icons.js';
import { isTouchDevice } from './util.js';

class ChatWelcome extends LitElement {
    static properties = {
        chat: { attribute: false },
        model: { attribute: false },
        samples: { state: true },
    };

    constructor() {
        super();
        /** @type {import('./chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        this.model = { name: 'Model', vision: true };
        /** @type {{files: string[], title?: string, question: string, thinking?: boolean}[]} */
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
            this.samples = list.filter((sample) => typeof sample?.question === 'string' && Array.isArray(sample.files)).slice(0, 3);
        } catch {
            this.samples = []; // the page works without them
        }
    }

    render() {
        const seedling = /^seedling$/i.test(this.model.name);
        const samples = this.samples.filter((sample) => !sample.files.length || this.model.vision);
        return html`<div class="welcome">
            ${logo()}
            <h2>${this.model.vision ? 'Show me something' : 'Ask me something'}</h2>
            <p>
                ${this.model.vision
                    ? isTouchDevice()
                        ? 'Add a picture, or just ask.'
                        : 'Drop a picture anywhere, paste one, or just ask.'
                    : 'Write a question below.'}
                What you send stays between you and this server.
            </p>
            ${samples.length
                ? html`<ul class="samples">
                      ${samples.map(
                          (sample) => html`<li>
                              <button type="button" class="sample" @click=${() => this.#send(sample)}>
                                  <span class="sample-picture">
                                      ${sample.files.length
                                          ? html`<img src="samples/${sample.files[0]}" alt="" />`
                                          : icon('sum')}
                                  </span>
                                  <span class="sample-words">
                                      ${sample.title ? html`<span class="sample-title">${sample.title}</span>` : nothing}
                                      <span class="sample-question">${sample.question}</span>
                                  </span>
                              </button>
                          </li>`,
                      )}
                  </ul>`
                : nothing}
            ${seedling
                ? html`<p class="model-note">
                      Seedling is a very small demonstration model: it knows drawn shapes, printed numbers, small charts
                      and short English questions. For photographs, start the server with a real checkpoint:
                      <code>parley -m DIR</code>
                  </p>`
                : nothing}
        </div>`;
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
            this.#tell('notice', { text: 'The sample picture could not be loaded.' });
            return;
        }
        this.#tell('send-sample', { files, text: sample.question, thinking: sample.thinking });
    }

    #tell(type, detail) {
        this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true }));
    }
}
customElements.define('chat-welcome', ChatWelcome);
