/** <chat-message>: one question or answer, with its images, thinking, progress, figures and
 * actions. */
import { LitElement, guard, html, nothing, repeat } from '../../vendor/lit.js';
import { plural, t } from '../language.js';
import { icon } from './icons.js';
import { MarkdownState, renderBlock } from './markdown.js';
import { menuButton } from './menu.js';
import { urlOf } from '../state/attachments.js';
import { clock, seekVideo } from '../state/times.js';
import { canRead, copyText, formatBytes, formatCount, formatDuration, formatRate } from '../util.js';
import { besideOf, canContinue, pathTo } from '../state/store.js';
import { sourcesView } from './sources-view.js';
import { errorWords, figures, progressWords } from '../words.js';

/** @typedef {import('../state/store.js').Message} Message */

/** Seconds that a time in an answer may lie behind the end of a video: models round. */
const ROUNDED = 0.5;

/** Questions with more lines or letters are folded. */
const FOLD_LINES = 12;
const FOLD_LETTERS = 1_200;

/** @param {number} start @param {number|undefined} end in milliseconds */
function partWords(start, end) {
    return end ? t`from ${clock(start)} to ${clock(end)}` : t`from ${clock(start)}`;
}

/** @param {string} text */
function isLong(text) {
    return text.length > FOLD_LETTERS || text.split('\n', FOLD_LINES + 1).length > FOLD_LINES;
}

class ChatMessage extends LitElement {
    static properties = {
        message: { attribute: false },
        chat: { attribute: false },
        siblings: { attribute: false, hasChanged: (now, old) => now.length !== old?.length || now.some((one, i) => one !== old[i]) },
        last: { attribute: false },
        busy: { attribute: false },
        half: { attribute: false },
        quiet: { state: true },
        copied: { state: true },
        editing: { state: true },
        unfolded: { state: true },
    };

    constructor() {
        super();
        /** @type {Message} */
        this.message = /** @type {any} */ (null);
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        /** @type {Message[]} */
        this.siblings = [];
        this.last = false;
        /** Whether an answer of the conversation is on its way. */
        this.busy = false;
        /** Whether it stands beside the answer that is gone on with. */
        this.half = false;
        /** Whether the menu of the answer was opened. */
        this.asked = false;
        /** What ends the reading, while the answer is read aloud. @type {(() => void)|null} */
        this.quiet = null;
        this.copied = '';
        this.editing = false;
        /** Whether a long question is shown whole. */
        this.unfolded = false;
        /** Images that the browser cannot show. @type {Set<string>} */
        this.broken = new Set();
        /** One for each stretch of text between tool calls. @type {MarkdownState[]} */
        this.answers = [];
        this.thought = new MarkdownState();
        this.onMessage = (event) => {
            if (event.detail === this.message?.id) this.requestUpdate();
        };
    }

    createRenderRoot() {
        return this;
    }

    connectedCallback() {
        super.connectedCallback();
        this.chat.addEventListener('message', this.onMessage);
    }

    disconnectedCallback() {
        super.disconnectedCallback();
        this.quiet?.();
        this.chat.removeEventListener('message', this.onMessage);
    }

    render() {
        if (this.message.role === 'user') return this.#question();
        const other = this.half ? undefined : besideOf(this.siblings, this.message);
        if (!other) return this.#answer();
        const half = html`<chat-message class="half" data-id=${other.id} .chat=${this.chat} .message=${other} .siblings=${this.siblings} .half=${true} .busy=${this.busy}></chat-message>`;
        return html`<div class="pair">${this.message.beside === other.id ? [half, this.#answer()] : [this.#answer(), half]}</div>`;
    }

    // ---- a question ----

    #question() {
        const { id, text, attachments } = this.message;
        return html`<article class="question" aria-labelledby="who-${id}">
            <h2 class="offscreen" id="who-${id}">${t`You`}</h2>
            ${attachments?.length
                ? html`<div class="images">${attachments.map((image) => this.#image(image))}</div>`
                : nothing}
            ${this.editing ? this.#editor() : text ? this.#bubble(text) : nothing}
            ${this.editing
                ? nothing
                : html`<div class="actions">
                      ${this.#branches()}
                      ${text ? this.#copyButton(t`Copy the question`) : nothing}
                      <button type="button" class="quiet icon-only edit" @click=${() => this.#edit()}
                          aria-label=${t`Edit the question`} title=${t`Edit and ask again`} ?disabled=${this.busy}>
                          ${icon('edit')}
                      </button>
                      ${menuButton({ id: `more-${id}`, label: t`More about this question`, face: icon('more'), content: this.#verbs() })}
                  </div>`}
        </article>`;
    }

    #bubble(text) {
        if (!isLong(text)) return html`<div class="bubble" dir="auto">${text}</div>`;
        return html`<div class="bubble long ${this.unfolded ? '' : 'folded'}">
            <div dir="auto">${text}</div>
            <button type="button" class="quiet small" aria-expanded=${this.unfolded} @click=${() => (this.unfolded = !this.unfolded)}>
                ${this.unfolded ? t`Show less` : t`Show all`}
            </button>
        </div>`;
    }

    #image(image) {
        if (!image.blob || this.broken.has(image.id)) {
            const why = image.blob ? t`${image.name} cannot be shown: the file is damaged` : t`${image.name} is no longer kept`;
            return html`<div class="image missing">${icon('image')}<span>${why}</span></div>`;
        }
        if (image.kind === 'text') {
            return html`<button type="button" class="image file" aria-label=${t`Open ${image.name}`} @click=${() => this.#tell('show-image', { image })}>
                ${icon('file')}<span>${image.name}<small>${formatBytes(image.bytes)}</small></span>
            </button>`;
        }
        if (image.kind === 'video') {
            import('./clip.js').catch(() => {}); // fetched with the first video
            // What was cut off was not sent, and is not shown.
            const { start_ms: start = 0, end_ms: end } = image.video ?? {};
            const part = start || end ? partWords(start, end) : '';
            return html`<video-clip .video=${image} .from=${start} .to=${end} .section=${part}></video-clip>`;
        }
        return html`<button type="button" class="image" aria-label=${t`Show ${image.name} large`}
            @click=${() => this.#tell('show-image', { image })}>
            <img src=${urlOf(image.blob)} alt=${image.name} width=${image.width} height=${image.height}
                @error=${() => this.#cannotShow(image)} />
        </button>`;
    }

    #cannotShow(image) {
        this.broken.add(image.id);
        this.requestUpdate();
    }

    #editor() {
        const asked = this.message.role === 'user';
        return html`<form class="editor" @submit=${this.#saveEdit} @keydown=${this.#editorKey}>
            ${asked && this.message.attachments?.length
                ? html`<fieldset class="editor-files">
                      <legend>${t`Files to ask with`}</legend>
                      ${this.message.attachments.map(
                          (one) => html`<label><input type="checkbox" name="file" value=${one.id} checked /> ${one.name}</label>`,
                      )}
                  </fieldset>`
                : nothing}
            <textarea name="text" rows="3" aria-label=${asked ? t`The question` : t`The answer`} .value=${this.message.text}></textarea>
            <div class="editor-buttons">
                <button type="button" class="plain" @click=${() => this.#endEdit()}>${t`Cancel`}</button>
                <button type="submit" class="primary">${asked ? t`Ask again` : t`Keep`}</button>
            </div>
        </form>`;
    }

    async #edit() {
        this.editing = true;
        await this.updateComplete;
        const area = this.querySelector('textarea');
        area?.focus();
        area?.setSelectionRange(area.value.length, area.value.length);
    }

    /** Closes the editor; the focus goes back to where it was opened. */
    async #endEdit() {
        this.editing = false;
        await this.updateComplete;
        if (document.activeElement !== document.body) return;
        /** @type {HTMLElement|null} */ (this.querySelector('.actions .edit'))?.focus();
    }

    /** @param {KeyboardEvent} event */
    #editorKey(event) {
        if (event.key === 'Escape') {
            event.stopPropagation();
            this.#endEdit();
        } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
            /** @type {HTMLFormElement} */ (event.currentTarget).requestSubmit();
        }
    }

    /** @param {SubmitEvent} event */
    #saveEdit(event) {
        event.preventDefault();
        const text = /** @type {HTMLTextAreaElement} */ (this.querySelector('textarea')).value.trim();
        const chosen = new FormData(/** @type {HTMLFormElement} */ (event.target)).getAll('file');
        const attachments = (this.message.attachments ?? []).filter((one) => chosen.includes(one.id));
        if (!text && !attachments.length) return;
        this.#endEdit();
        if (this.message.role === 'user') this.chat.editQuestion(this.message.id, text, attachments);
        else this.chat.editAnswer(this.message.id, text);
    }

    // ---- an answer ----

    #answer() {
        const m = this.message;
        const streaming = m.status === 'streaming';
        return html`<article class="answer" aria-labelledby="who-${m.id}" aria-busy=${streaming} @click=${this.#answerClicked}>
            <h2 class="who" id="who-${m.id}">${m.model ?? t`Answer`}</h2>
            ${m.reasoning ? this.#thinking(streaming) : nothing}
            ${this.editing
                ? this.#editor()
                : this.#parts(streaming)}
            ${streaming ? this.#working() : this.editing ? nothing : this.#ending()}
        </article>`;
    }

    #thinking(streaming) {
        const m = this.message;
        const now = streaming && !m.text;
        const label = now
            ? t`Thinking…`
            : m.reasoningMs !== undefined
              ? t`Thought for ${formatDuration(m.reasoningMs)}`
              : t`Thoughts`;
        return html`<details class="thinking">
            <summary>${icon('thought')}<span>${label}</span>${icon('down')}</summary>
            <div class="prose thought" aria-live="off">
                ${this.thought.update(m.reasoning ?? '', !now).map((token) => renderBlock(token))}
            </div>
        </details>`;
    }

    /** The words, with the tool calls between them where they came. */
    #parts(streaming) {
        const { text, tools = [] } = this.message;
        if (tools.length) import('./tool-view.js').catch(() => {}); // fetched with the first call
        const cuts = [...new Set(tools.map((tool) => Math.min(tool.at, text.length)))].sort((a, b) => a - b);
        const ends = cuts.at(-1) === text.length ? cuts : [...cuts, text.length];
        return ends.map((end, i) => {
            const words = text.slice(ends[i - 1] ?? 0, end);
            const open = streaming && i === ends.length - 1;
            const state = (this.answers[i] ??= new MarkdownState(this.#videoLength()));
            return html`${words || !tools.length
                    ? html`<div class="prose" aria-live="off">
                          ${repeat(
                              state.update(words, !open),
                              (_, at) => at,
                              (token) => guard([token, token.open], () => renderBlock(token)),
                          )}
                      </div>`
                    : nothing}
                ${tools.filter((tool) => Math.min(tool.at, text.length) === end && cuts.includes(end)).map((tool) => html`<tool-call .chat=${this.chat} .message=${this.message} .tool=${{ ...tool }} .busy=${this.busy}></tool-call>`)}`;
        });
    }

    /** The question at or before this answer that a video was sent with, if any.
     * @returns {Message|undefined} */
    #videoQuestion() {
        const { messages } = this.chat.current;
        for (let m = messages[this.message.parent ?? '']; m; m = messages[m.parent ?? '']) {
            if (m.attachments?.some((one) => one.kind === 'video' && one.blob)) return m;
        }
        return undefined;
    }

    /** Seconds of the longest video that the question came with; 0: it came with none. */
    #videoLength() {
        const videos = this.#videoQuestion()?.attachments?.filter((one) => one.kind === 'video') ?? [];
        return Math.max(0, ...videos.map((one) => (one.seconds ? one.seconds + ROUNDED : Infinity)));
    }

    /** A click on a time shows the video there; one on a footnote's mark goes to the footnote, and
     * back. @param {MouseEvent} event */
    #answerClicked(event) {
        const target = /** @type {HTMLElement} */ (event.target);
        const mark = /** @type {HTMLElement|null} */ (target.closest?.('[data-footnote-ref], [data-footnote-back]'));
        if (mark) {
            const { footnoteRef, footnoteBack } = mark.dataset;
            const to = [...this.querySelectorAll(footnoteRef === undefined ? '[data-footnote-ref]' : '[data-footnote]')].find(
                (one) => /** @type {HTMLElement} */ (one).dataset[footnoteRef === undefined ? 'footnoteRef' : 'footnote'] === (footnoteRef ?? footnoteBack),
            );
            to?.scrollIntoView({ block: 'nearest' });
            /** @type {HTMLElement|undefined} */ (to)?.focus({ preventScroll: true });
            return;
        }
        const time = /** @type {HTMLElement} */ (event.target).closest?.('button.time');
        const question = time && this.#videoQuestion();
        if (!question) return;
        const shown = document.getElementById(`who-${question.id}`)?.closest('article');
        const videos = /** @type {HTMLVideoElement[]} */ ([...(shown?.querySelectorAll('video.image') ?? [])]);
        const seconds = Number(/** @type {HTMLElement} */ (time).dataset.seconds);
        const video = videos.find((one) => one.duration >= seconds) ?? videos[0];
        if (video) seekVideo(video, seconds);
    }

    #working() {
        const progress = this.chat.progress.get(this.message.id);
        if (!progress) {
            const rate = this.message.timings?.predicted_per_second;
            return html`<div class="working">
                <span class="dots ${this.message.text ? 'steady' : ''}" aria-hidden="true"><i></i><i></i><i></i></span>
                ${rate > 0 ? html`<span class="working-text">${t`${formatRate(rate)} tokens/s`}</span>` : nothing}
            </div>`;
        }
        const sent = this.chat.current.messages[this.message.parent ?? '']?.attachments ?? [];
        const { text, value } = progressWords(progress, sent.some((one) => one.kind === 'video') ? 'video' : 'image', sent.length > 1);
        return html`<div class="working">
            ${value === null
                ? html`<span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>`
                : html`<progress max="1" .value=${value} aria-label=${text}></progress>`}
            <span class="working-text">${text}</span>
        </div>`;
    }

    #ending() {
        const m = this.message;
        return html`${m.status === 'failed' ? this.#failure() : nothing}
            ${m.status === 'stopped' ? html`<p class="note">${t`You stopped this answer.`}</p>` : nothing}
            ${m.status === 'cut' ? html`<p class="note">${cutWords(m.reason)}</p>` : nothing}
            ${m.without?.map(({ server, why }) => html`<p class="note">${t`Without the tools of ${server}: ${why}`}</p>`)}
            ${m.sources ? sourcesView(m.sources, (source) => this.#openSource(source)) : nothing}
            <div class="actions">
                ${this.last && canContinue(m)
                    ? html`<button type="button" class="plain small continue" ?disabled=${this.busy}
                          @click=${() => this.chat.continueAnswer(m.id)}>${icon('play')}${t`Continue`}</button>`
                    : nothing}
                ${this.half
                    ? html`<button type="button" class="plain small continue" ?disabled=${this.busy} @click=${() => this.chat.show(m)}>${icon('play')}${t`Go on with this one`}</button>`
                    : this.#branches()}
                ${m.text ? this.#copyButton(t`Copy the answer`) : nothing}
                ${m.status === 'failed' || this.half
                    ? nothing
                    : html`<button type="button" class="quiet icon-only" aria-label=${t`Answer again`} title=${t`Answer again`}
                          ?disabled=${this.busy} @click=${() => this.chat.regenerate(m.id)}>
                          ${icon('again')}
                      </button>`}
                ${m.text && !this.half
                    ? html`<button type="button" class="quiet icon-only edit" aria-label=${t`Edit the answer`}
                          title=${t`Edit the answer`} ?disabled=${this.busy} @click=${() => this.#edit()}>
                          ${icon('edit')}
                      </button>`
                    : nothing}
                ${this.#speed()}
                ${m.timings?.server ? html`<span class="from" title=${m.timings.rule ?? t`Another server has answered`}>${icon('leaves')}${m.timings.server}</span>` : nothing}
            </div>`;
    }

    /** Opens a document at a place that was read for this answer.
     * @param {import('../state/sources.js').Sources['list'][0]} source */
    #openSource({ file, at, end }) {
        const files = pathTo(this.chat.current, this.message.id).flatMap(({ attachments = [] }) => attachments);
        const image = files.find(({ id, blob }) => id === file && blob);
        if (image) this.#tell('show-image', { image, items: [image], mark: { at, end } });
    }

    /** The speed; how it came about is behind a button. */
    #speed() {
        const { id, timings, usage, model } = this.message;
        const [speed, ...rest] = figures(this.message);
        const tokens = usage?.output_tokens ?? timings?.predicted_n;
        return html`${speed ? html`<span class="speed" title=${speed.title}>${speed.text}</span>` : nothing}
            ${menuButton({
                id: `more-${id}`,
                label: t`More about this answer`,
                face: icon('more'),
                onOpen: () => this.#openMenu(),
                content: html`<dl class="figures" ?hidden=${!timings}>
                    ${model ? html`<div><dt>${t`Model`}</dt><dd>${model}</dd></div>` : nothing}
                    ${speed ? html`<div><dt>${t`Speed`}</dt><dd>${speed.text}</dd></div>` : nothing}
                    ${tokens ? html`<div><dt>${t`Length`}</dt><dd>${plural(tokens, '{0} token', '{0} tokens')}</dd></div>` : nothing}
                    ${rest.map(({ name, text, title }) => html`<div><dt>${name}</dt><dd>${text}${title ? html`<small>${title}</small>` : nothing}</dd></div>`)}
                </dl>
                ${this.asked ? html`<model-choice .chat=${this.chat} .message=${this.message} .busy=${this.busy}></model-choice>` : nothing}
                ${this.half || besideOf(this.siblings, this.message)
                    ? html`<button type="button" class="quiet" @click=${() => this.chat.apart(this.message)}>${icon('close')}<span>${t`Side by side no more`}</span></button>`
                    : nothing}
                ${this.#verbs()}`,
            })}`;
    }

    /** The models that could answer, too, are asked for when somebody looks. */
    #openMenu() {
        this.asked = true;
        this.requestUpdate();
        import('./model-list.js').catch(() => {}); // without it there is no choice
    }

    async #readAloud() {
        if (this.quiet) return this.quiet();
        const voice = await import('./voice.js').catch(() => null);
        const answer = this.querySelector('article.answer');
        if (!voice || !answer) return this.#tell('notice', { text: t`The server cannot be reached for this part of the page. Try again when it is back.` });
        this.quiet = voice.read(voice.spokenOf(answer), () => (this.quiet = null));
    }

    /** What else can be done with a message. */
    #verbs() {
        const { id, role } = this.message;
        const several = this.siblings.length > 1;
        return html`${role === 'assistant' && this.message.text
                ? html`<button type="button" class="quiet" ?disabled=${!canRead()} @click=${this.#readAloud}>
                      ${icon(this.quiet ? 'stop' : 'speaker')}<span>${this.quiet ? t`Stop reading` : canRead() ? t`Read aloud` : t`This browser cannot read aloud`}</span></button>`
                : nothing}
            <button type="button" class="quiet" @click=${() => this.chat.branchInto(id)}>${icon('branch')}<span>${t`New chat from here`}</span></button>
            <button type="button" class="quiet" ?disabled=${this.busy} @click=${() => this.chat.erase(id)}>
                ${icon('trash')}<span>${several ? t`Delete this version and what follows` : role === 'user' ? t`Delete this question` : t`Delete this answer`}</span>
            </button>`;
    }

    #failure() {
        const error = this.message.error ?? { code: 'server_error', message: '' };
        const { what, next, detail } = errorWords(error);
        return html`<div class="failure">
            ${icon('warning')}
            <div>
                <p><strong>${what}</strong> ${next}</p>
                ${detail && detail !== what ? html`<p class="detail">${detail}</p>` : nothing}
                <p class="failure-buttons">
                    <button type="button" class="plain" ?disabled=${this.busy}
                        @click=${() => this.chat.regenerate(this.message.id)}>
                        ${icon('again')}${t`Try again`}
                    </button>
                    ${error.code === 'context_length_exceeded'
                        ? html`<button type="button" class="plain" @click=${() => this.chat.newChat()}>
                              ${icon('plus')}${t`New chat`}
                          </button>`
                        : nothing}
                </p>
            </div>
        </div>`;
    }

    // ---- shared ----

    #branches() {
        const all = this.siblings;
        if (all.length < 2) return nothing;
        const at = all.findIndex((message) => message.id === this.message.id);
        const [whole, earlier, which, later] =
            this.message.role === 'user'
                ? [t`Versions of this question`, t`Earlier question`, t`Question ${at + 1} of ${all.length}`, t`Later question`]
                : [t`Versions of this answer`, t`Earlier answer`, t`Answer ${at + 1} of ${all.length}`, t`Later answer`];
        const go = (step) => this.chat.show(all[at + step]);
        return html`<span class="branches" role="group" aria-label=${whole}>
            <button type="button" class="quiet icon-only" ?disabled=${at === 0} @click=${() => go(-1)}
                aria-label=${earlier}>${icon('left')}</button>
            <span aria-label=${which}>${at + 1}/${all.length}</span>
            <button type="button" class="quiet icon-only" ?disabled=${at === all.length - 1} @click=${() => go(1)}
                aria-label=${later}>${icon('right')}</button>
        </span>`;
    }

    #copyButton(label) {
        return html`<button type="button" class="quiet icon-only" aria-label=${this.copied || label}
            title=${this.copied || t`Copy`} @click=${this.#copy}>
            ${icon(this.copied === t`Copied` ? 'check' : 'copy')}
        </button>`;
    }

    async #copy() {
        this.copied = (await copyText(this.message.text)) ? t`Copied` : t`Copying is not allowed here`;
        setTimeout(() => (this.copied = ''), 2_000);
    }

    #tell(type, detail) {
        this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true }));
    }
}
customElements.define('chat-message', ChatMessage);

/** @param {string} [reason] */
function cutWords(reason) {
    if (reason === 'max_output_tokens') return t`The answer reached its length limit. Settings can raise it.`;
    if (reason === 'context' || reason === 'context_length') return t`The context is full. Start a new chat to go on.`;
    return t`The answer ended early.`;
}
