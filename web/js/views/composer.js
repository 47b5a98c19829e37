/** <chat-composer>: the text field with its images, the send button that becomes a stop button, and
 * the switches. */
import { LitElement, html, nothing } from '../../vendor/lit.js';
import { listed, plural, t } from '../language.js';
import { accepted, documentOf, filesOf, readFiles, readPdf, urlOf } from '../state/attachments.js';
import { icon } from './icons.js';
import { menuButton } from './menu.js';
import { canDictate, formatBytes, formatCount, formatDuration, isTouchDevice } from '../util.js';

/** @typedef {import('../state/store.js').Attachment} Attachment */

/** Longer pasted text becomes a file, so that the field stays usable. */
const LONG_PASTE = 8_000;
const COUNT_MS = 400;

class ChatComposer extends LitElement {
    static properties = {
        chat: { attribute: false },
        settings: { attribute: false },
        busy: { attribute: false },
        model: { attribute: false },
        queue: { attribute: false },
        attachments: { state: true },
        reading: { state: true },
        refused: { state: true },
        empty: { state: true },
        tokens: { state: true },
        slash: { state: true },
        dictating: { state: true },
    };

    constructor() {
        super();
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        /** @type {import('../state/settings.js').Settings} */
        this.settings = /** @type {any} */ (null);
        this.busy = false;
        /** @type {{name: string, vision: boolean, video: boolean, thinking: boolean, maxImages: number, maxBytes?: number, rates: any}} */
        this.model = /** @type {any} */ (null);
        /** @type {Attachment[]} */
        this.attachments = [];
        /** Messages that wait for the running answer.
         * @type {{text: string, attachments: Attachment[]}[]} */
        this.queue = [];
        this.reading = 0;
        /** @type {string[]} */
        this.refused = [];
        this.empty = true;
        /** Of what is being written; 0: not known. */
        this.tokens = 0;
        /** What follows a slash at the start of the field, while prompts are offered. @type {string|null} */
        this.slash = null;
        /** What ends the dictation, while it runs. @type {(() => void)|null} */
        this.dictating = null;
        /** prompts.js, once it is fetched. @type {any} */
        this.prompts = null;
    }

    createRenderRoot() {
        return this;
    }

    firstUpdated() {
        this.chat.uploads.addEventListener('change', () => this.requestUpdate());
    }

    willUpdate() {
        if (this.attachments.some(({ kind }) => kind === 'video')) import('./video-strip.js').catch(() => {}); // without it the video goes whole
    }

    get field() {
        return /** @type {HTMLTextAreaElement} */ (this.querySelector('textarea'));
    }

    async focusField() {
        await this.updateComplete;
        this.field?.focus();
    }

    /** Puts a quotation before what is being written. @param {string} text */
    quote(text) {
        const { field } = this;
        const quoted = text.split('\n').map((line) => `> ${line}`.trimEnd()).join('\n');
        field.value = `${field.value ? `${field.value.trimEnd()}\n\n` : ''}${quoted}\n\n`;
        this.#input();
        this.focusField();
        field.setSelectionRange(field.value.length, field.value.length);
        field.scrollTop = field.scrollHeight;
    }

    /** Shows what was being written in another chat.
     * @param {{text: string, attachments: Attachment[]}} [draft] */
    restore({ text, attachments } = { text: '', attachments: [] }) {
        if (this.field) this.field.value = text;
        this.attachments = attachments;
        this.refused = [];
        this.slash = null;
        this.empty = !text.trim();
        this.#countSoon();
        this.#grow();
    }

    updated(changed) {
        if (changed.get('attachments') !== undefined) this.#keepDraft();
    }

    #keepDraft() {
        this.chat.keepDraft(this.field.value, this.attachments);
    }

    /** @param {Iterable<File>} files */
    async add(files) {
        const list = [...files];
        if (!list.length) return;
        this.reading += list.length;
        this.refused = [];
        try {
            const { attachments, refused } = await readFiles(list, this.#limits(this.attachments.length));
            const fps = this.settings.get('videoRate');
            for (const one of attachments) if (fps && one.kind === 'video') one.video = { fps };
            this.attachments = [...this.attachments, ...attachments];
            for (const one of attachments) this.chat.uploads.start(one);
            this.refused = refused;
            if (attachments.length) this.focusField();
        } finally {
            this.reading -= list.length;
        }
    }

    /** @param {number} already how many files there are */
    #limits(already) {
        const { vision, video, maxImages, maxBytes, name } = this.model;
        return { vision, video, maxImages, maxBytes, already, modelName: name, maxPixels: this.settings.get('imageSize') };
    }

    /** Adds pages of a document as images. @param {Attachment} text @param {string} wanted "1-3, 7" */
    async #asImages(text, wanted) {
        /** @type {string[]} */
        const refused = [];
        this.reading += 1;
        try {
            const limits = this.#limits(this.attachments.length);
            const pages = await readPdf(/** @type {File} */ (documentOf(text)), limits, limits.maxImages - limits.already, refused, wanted);
            this.attachments = [...this.attachments, ...pages];
        } catch (error) {
            refused.push(error.message);
        } finally {
            this.reading -= 1;
            this.refused = refused;
        }
    }

    /** @param {Event} event in the row of a document @param {Attachment} text */
    #addPages(event, text) {
        const field = /** @type {Element} */ (event.target).closest('.document')?.querySelector('input');
        if (!field || this.reading) return;
        if (field.value.trim()) this.#asImages(text, field.value);
        else field.focus();
    }

    /** Enter adds the pages and sends nothing. @param {KeyboardEvent} event @param {Attachment} text */
    #pagesKey(event, text) {
        if (event.key !== 'Enter') return;
        event.preventDefault();
        this.#addPages(event, text);
    }

    render() {
        const thinking = this.settings.get('thinking');
        const adding = !this.model.vision ? t`Add text files` : this.model.video ? t`Add images, videos or text` : t`Add images or text`;
        const nothingToSend = this.empty && !this.attachments.length;
        return html`<form class="composer" @submit=${this.#submit} @paste=${this.#paste}>
            ${this.refused.length
                ? html`<div class="refused" role="alert">
                      ${icon('warning')}
                      <ul>${this.refused.map((text) => html`<li>${text}</li>`)}</ul>
                      <button type="button" class="quiet icon-only" aria-label=${t`Close this message`}
                          @click=${() => (this.refused = [])}>${icon('close')}</button>
                  </div>`
                : nothing}
            ${this.queue.length && !this.busy
                ? html`<p class="queue-why">${this.queue.length === 1 ? t`Not sent: the answer before it did not end, or the page was closed.` : t`Not sent: the answer before them did not end, or the page was closed.`}</p>`
                : nothing}
            ${this.queue.length
                ? html`<ol class="queue" aria-label=${this.busy ? t`Sent after this answer` : t`Not sent yet`}>
                      ${this.queue.map(
                          (entry) => html`<li>
                              <span>${entry.text || entry.attachments[0]?.name}</span>
                              ${this.busy
                                  ? nothing
                                  : html`<button type="button" class="quiet small" @click=${() => this.chat.sendQueued(entry)}>${t`Send`}</button>`}
                              <button type="button" class="quiet small" @click=${() => this.#takeBack(entry)}>${t`Edit`}</button>
                              <button type="button" class="quiet icon-only small" aria-label=${t`Do not send this`}
                                  @click=${() => this.chat.unqueue(entry)}>${icon('close')}</button>
                          </li>`,
                      )}
                  </ol>`
                : nothing}
            ${this.attachments.length || this.reading
                ? html`<ul class="tray" aria-label=${t`Files to send`}>
                      ${this.attachments.map((image) => this.#thumbnail(image))}
                      ${this.reading ? html`<li class="thumb loading" aria-label=${t`Opening a file`}></li>` : nothing}
                  </ul>`
                : nothing}
            ${this.model.vision
                ? this.attachments.filter(documentOf).map(
                      (one) => html`<div class="document">
                          <span>${one.name}: ${one.note}</span>
                          <input type="text" placeholder="1-3, 7" aria-label=${t`Pages of ${one.name}`} @keydown=${(event) => this.#pagesKey(event, one)} />
                          <button type="button" class="quiet small" ?disabled=${this.reading > 0} @click=${(event) => this.#addPages(event, one)}>
                              ${icon('image')}<span>${t`Add pages as images`}</span>
                          </button>
                      </div>`,
                  )
                : nothing}
            ${this.attachments
                .filter((one) => one.kind === 'video' && one.seconds)
                .map((one) => html`<video-strip .attachment=${one} .rates=${this.model.rates} @video-chosen=${() => this.#keepDraft()}></video-strip>`)}
            ${this.slash === null
                ? nothing
                : html`<prompt-menu class="prompt-menu" .query=${this.slash} .field=${this.field} @prompt-chosen=${this.#usePrompt}></prompt-menu>`}
            <textarea
                rows="1"
                dir="auto"
                aria-label=${t`Your message`}
                aria-autocomplete="list"
                placeholder=${this.model.vision ? this.model.video ? t`Ask something, or add an image or a video` : t`Ask something, or add an image` : t`Ask something`}
                enterkeyhint=${isTouchDevice() ? 'enter' : 'send'}
                @input=${this.#input}
                @keydown=${this.#key}
            ></textarea>
            ${this.#leaving()}
            <div class="composer-row">
                <label class="button quiet icon-only" title=${adding}>
                    ${icon('clip')}
                    <input
                        type="file"
                        class="offscreen"
                        accept=${accepted(this.model)}
                        multiple
                        aria-label=${adding}
                        @change=${this.#chosen}
                    />
                </label>
                ${this.chat.current.options?.tools
                    ? menuButton({
                          id: 'offers', label: t`Add from a server`, face: icon('plus'), onOpen: () => import('./tool-offers.js').catch(() => (this.refused = [t`The server cannot be reached for this part of the page. Try again when it is back.`])),
                          content: html`<tool-offers .chat=${this.chat} .composer=${this}></tool-offers>`,
                      })
                    : nothing}
                ${this.model.vision && isTouchDevice()
                    ? html`<label class="button quiet icon-only" title=${t`Take a photo`}>
                          ${icon('camera')}
                          <input type="file" class="offscreen" accept="image/*" capture="environment" aria-label=${t`Take a photo`} @change=${this.#chosen} />
                      </label>`
                    : nothing}
                ${this.model.thinking
                    ? html`<button type="button" class="switch" aria-pressed=${thinking}
                          title=${t`Let the model think before it answers`}
                          @click=${() => this.settings.set('thinking', !thinking)}>
                          ${icon('thought')}${t`Think`}
                      </button>`
                    : nothing}
                ${canDictate()
                    ? html`<button type="button" class="quiet icon-only" aria-label=${t`Dictate`} title=${t`Dictate: the browser's own engine listens`} aria-pressed=${!!this.dictating}
                          @click=${this.#dictate}>${icon('mic')}</button>`
                    : nothing}
                ${this.model.tools
                    ? menuButton({
                          id: 'tools', label: t`Tools`, look: `quiet icon-only${this.chat.current.options?.tools ? ' on' : ''}`, face: icon('tool'), onOpen: () => import('./tools-menu.js').catch(() => {}),
                          content: html`<tools-menu .chat=${this.chat} .composer=${this}></tools-menu>`,
                      })
                    : nothing}
                <span class="spacer"></span>
                ${this.tokens ? html`<span class="tokens">${plural(this.tokens, '{0} token', '{0} tokens')}</span>` : nothing}
                ${this.busy
                    ? html`<button type="button" class="send stop" aria-label=${t`Stop the answer`} title=${t`Stop (Esc)`}
                          @click=${() => this.chat.stop()}>${icon('stop')}</button>`
                    : nothing}
                ${this.busy && nothingToSend
                    ? nothing
                    : html`<button type="submit" class="send" aria-label=${this.busy ? t`Send after this answer` : t`Send`} title=${this.busy ? t`Send after this answer` : t`Send (Enter)`}
                          ?disabled=${nothingToSend || this.reading > 0}>${icon('send')}</button>`}
            </div>
        </form>`;
    }

    /** Whether what is sent leaves the server that this page is from. */
    #leaving() {
        const { upstreams = [], routes } = this.model;
        if (upstreams.length) return html`<p class="note leaves">${icon('leaves')}<span>${t`Goes to ${listed(upstreams)}, another server.`}</span></p>`;
        if (!routes?.length) return nothing;
        const stays = this.settings.get('staysHere');
        return html`<p class="note leaves">${icon('leaves')}<span title=${routes.join('\n')}>${stays ? t`Stays on this server.` : t`May go to another server, by its rules.`}</span>
            <button type="button" class="switch" aria-pressed=${stays} title=${t`Send nothing to other servers`}
                @click=${() => this.settings.set('staysHere', !stays)}>${t`Keep here`}</button></p>`;
    }

    /** @param {Attachment} image */
    #thumbnail(image) {
        const way = this.chat.uploads.progressOf(image);
        const pixels = image.width ? `${image.width} × ${image.height}, ` : '';
        const size = `${pixels}${formatBytes(image.bytes)}`;
        const title = `${image.name} · ${size}${image.note ? ` · ${image.note}` : ''}`;
        return html`<li class="thumb" title=${title}>
            ${image.kind === 'text'
                ? html`<button type="button" class="open file-thumb" aria-label=${t`Open ${image.name}`} @click=${() => this.#show(image)}>${icon('file')}<span>${image.name}</span></button>`
                : image.kind === 'video'
                ? html`<video src=${urlOf(/** @type {Blob} */ (image.blob))} muted preload="metadata" aria-label=${image.name}></video>
                      <span class="video">${image.seconds ? formatDuration(image.seconds * 1000) : t`video`}</span>`
                : html`<button type="button" class="open" aria-label=${t`Show ${image.name} large`} @click=${() => this.#show(image)}><img src=${urlOf(/** @type {Blob} */ (image.blob))} alt=${image.name} /></button>`}
            ${way && way.phase !== 'done'
                ? html`<progress max=${way.total} .value=${way.done} aria-label=${t`Sending ${image.name}`}></progress>`
                : nothing}
            <button type="button" aria-label=${t`Remove ${image.name}`} title=${t`Remove`}
                @click=${() => this.#remove(image)}>${icon('close')}</button>
        </li>`;
    }

    /** @param {Attachment} image */
    #show(image) {
        const items = this.attachments.filter(({ kind }) => kind !== 'video');
        this.dispatchEvent(new CustomEvent('show-image', { bubbles: true, detail: { image, items } }));
    }

    /** @param {Attachment} image */
    #remove(image) {
        this.chat.uploads.cancel(image);
        this.attachments = this.attachments.filter((other) => other !== image);
        this.focusField();
    }

    /** Takes a queued message back into the field. */
    #takeBack(entry) {
        this.chat.unqueue(entry);
        this.restore({ text: entry.text, attachments: entry.attachments });
        this.focusField();
    }

    /** @param {Event} event */
    #chosen(event) {
        const input = /** @type {HTMLInputElement} */ (event.target);
        this.add(input.files ?? []);
        input.value = '';
    }

    /** @param {ClipboardEvent} event */
    #paste(event) {
        const files = filesOf(event.clipboardData);
        const text = event.clipboardData?.getData('text/plain') ?? '';
        if (text.length > LONG_PASTE) files.push(new File([text], 'pasted.txt', { type: 'text/plain' }));
        if (!files.length) return;
        // Words that came with an image go into the field, as the browser puts them there.
        if (!text || text.length > LONG_PASTE) event.preventDefault();
        this.add(files);
    }

    #input() {
        const { value } = this.field;
        this.empty = !value.trim();
        this.#offerPrompts(/^\/[^\n]*$/.test(value) ? value.slice(1) : null);
        this.#countSoon();
        this.#keepDraft();
        this.#grow();
    }

    /** What is said goes to the caret, sentence by sentence. */
    async #dictate() {
        if (this.dictating) return this.dictating();
        const voice = await import('./voice.js').catch(() => null);
        if (!voice) return void (this.refused = [t`The server cannot be reached for this part of the page. Try again when it is back.`]);
        const { field } = this;
        let [start, end] = [field.selectionStart, field.selectionEnd];
        this.dictating = voice.dictate({
            words: (text, isFinal) => {
                const space = start > 0 && !/\s$/.test(field.value.slice(0, start)) ? ' ' : '';
                const said = space + text.trim();
                field.setRangeText(said, start, end, 'end');
                end = start + said.length;
                if (isFinal) start = end;
                this.#input();
            },
            ended: (problem) => {
                this.dictating = null;
                if (problem) this.refused = [problem];
                this.focusField();
            },
        });
    }

    /** @param {string|null} slash */
    async #offerPrompts(slash) {
        this.slash = slash;
        if (slash === null || this.prompts) return;
        // Without it a slash is a slash.
        this.prompts = await import('./prompts.js').catch(() => null);
    }

    /** A prompt goes into the field, with its first place to fill in selected. @param {CustomEvent} event */
    #usePrompt({ detail: text }) {
        this.field.value = text;
        this.#input();
        this.slash = null;
        this.focusField();
        if (!this.#nextBlank(0)) this.field.setSelectionRange(text.length, text.length);
    }

    /** @param {number} from @returns {boolean} whether there is one */
    #nextBlank(from) {
        const found = this.prompts?.nextBlank(this.field.value, from);
        if (found) this.field.setSelectionRange(found[0], found[1]);
        return !!found;
    }

    /** Asks the server how many tokens the words are, once they stay for a moment. */
    #countSoon() {
        clearTimeout(this.counting);
        if (this.empty) this.tokens = 0;
        else this.counting = setTimeout(() => this.#count(this.field.value.trim()), COUNT_MS);
    }

    /** @param {string} content */
    async #count(content) {
        try {
            const tokens = await this.chat.count(content);
            if (content === this.field.value.trim()) this.tokens = tokens;
        } catch {
            this.tokens = 0; // away: nothing is said
        }
    }

    #grow() {
        const field = this.field;
        if (!field || CSS.supports('field-sizing', 'content')) return;
        field.style.height = 'auto';
        field.style.height = `${field.scrollHeight}px`;
    }

    /** @param {KeyboardEvent} event */
    #key(event) {
        if (this.slash !== null && !event.isComposing) {
            const menu = /** @type {any} */ (this.querySelector('prompt-menu'));
            const closes = event.key === 'Escape';
            if (closes) this.slash = null;
            if (closes || menu?.key?.(event)) {
                event.preventDefault();
                event.stopPropagation();
                return;
            }
        }
        if (event.key === 'Tab' && !event.shiftKey && this.#nextBlank(this.field.selectionEnd)) return event.preventDefault();
        if (event.key === 'ArrowUp' && !this.field.value && !this.attachments.length) {
            event.preventDefault();
            this.dispatchEvent(new CustomEvent('edit-last', { bubbles: true }));
            return;
        }
        // An input method uses Enter to take a suggestion.
        if (event.key !== 'Enter' || event.isComposing || event.keyCode === 229) return;
        const sends = this.settings.get('enterSends') && !isTouchDevice();
        const withControl = event.ctrlKey || event.metaKey;
        if (event.shiftKey || (!sends && !withControl)) return;
        this.#submit(event);
    }

    /** @param {Event} event */
    #submit(event) {
        event.preventDefault();
        const text = this.field.value.trim();
        if ((!text && !this.attachments.length) || this.reading) return;
        const attachments = this.attachments;
        this.dictating?.();
        this.restore();
        // Nothing overtakes what waits.
        if (this.busy || this.queue.length) this.chat.enqueue(text, attachments);
        else this.chat.send(text, attachments);
    }
}
customElements.define('chat-composer', ChatComposer);
