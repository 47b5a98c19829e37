/** <parley-app>: the page. Header, list of chats, transcript, composer, dialogs, and what joins
 * them. */
import { LitElement, html, nothing, repeat } from '../../vendor/lit.js';
import { formatPercent, plural, t } from '../language.js';
import { readFiles } from '../state/attachments.js';
import { modelName } from '../state/answers.js';
import { Chat } from '../state/chat.js';
import { backdrop, head, keysDialog, modelDialog, openDialog, imageDialog } from './dialogs.js';
import { openHistory } from '../state/history.js';
import { icon } from './icons.js';
import { Announcer } from './live.js';
import { menuButton } from './menu.js';
import { Follower } from './scroll.js';
import { Settings, applyAppearance } from '../state/settings.js';
import { ownOptions, settingsDialog } from './settings-dialog.js';
import { childrenByParent, shownPath, toMarkdown } from '../state/store.js';
import { download, formatCount } from '../util.js';
import { connectionWords } from '../words.js';
import './composer.js';
import './message.js';
import './sidebar.js';
import './welcome.js';

const DEFAULT_MAX_IMAGES = 16;
/** How videos are sampled, where the server does not say it. */
const DEFAULT_RATES = { fps: 2, min_frames: 4, max_frames: 256 };
/** Messages in the document at first; so many earlier ones are added when the reader comes near
 * them. */
const WINDOW = 80;
const EARLIER = 24;
/** From this part of the context on there is a meter, and from that one on a warning. */
const METER_FROM = 0.5;
const NEARLY_FULL = 0.8;
const NOTICE_MS = 6_000;
/** A selection that stays as it is for so long can be quoted. */
const SELECTING_MS = 250;
const NARROW = matchMedia('(max-width: 760px), (max-width: 950px) and (max-height: 480px)');

class ParleyApp extends LitElement {
    static properties = {
        pinned: { state: true },
        dragging: { state: true },
        quote: { state: true },
        preview: { state: true },
        viewing: { state: true },
        part: { state: true },
        notice: { state: true },
        drawer: { state: true },
        shown: { state: true },
    };

    constructor() {
        super();
        this.settings = new Settings();
        this.chat = new Chat({ settings: this.settings, openHistory });
        this.pinned = true;
        this.dragging = false;
        /** @type {{items: import('../state/store.js').Attachment[], at: number}|null} */
        this.viewing = null;
        /** Which part of the settings is shown. */
        this.part = 'chat';
        /** @type {{text: string, action?: string, undo?: () => void}|null} */
        this.notice = null;
        this.drawer = false;
        /** An answer ended while nobody looked. */
        this.unseen = false;
        /** What is selected in the conversation. @type {{text: string, right: number, bottom: number}|null} */
        this.quote = null;
        /** HTML and SVG of the chat, while it is shown. @type {{versions: {code: string, language: string}[], at: number}|null} */
        this.preview = null;
        this.shown = WINDOW;
        /** @type {any} what /v1/models says */
        this.httpModel = null;
        /** @type {any} the model's own sampling values, as /props says them */
        this.defaults = null;
        /** Whether the server has tools that run there. */
        this.tools = false;
        /** The model and the state of the server that the facts were asked for. */
        this.facts = '';
        /** The settings were opened for the key alone. */
        this.enteringKey = false;
        applyAppearance(this.settings);
    }

    createRenderRoot() {
        return this;
    }

    firstUpdated() {
        const scroller = /** @type {HTMLElement} */ (this.querySelector('.transcript'));
        this.follower = new Follower(scroller, (pinned) => (this.pinned = pinned), () => this.settings.get('follow'));
        this.nearEarlier = new IntersectionObserver(([{ isIntersecting }]) => isIntersecting && this.#showEarlier(), {
            root: scroller,
            rootMargin: '1500px 0px 0px',
        });
        new Announcer(this.chat);
        this.shownId = this.chat.current.id;
        this.settings.addEventListener('change', () => {
            applyAppearance(this.settings);
            this.requestUpdate();
            this.#composer?.requestUpdate();
        });
        this.chat.addEventListener('conversation', () => this.#conversationChanged());
        this.chat.addEventListener('news', () => this.#newsCame());
        this.chat.addEventListener('connection', () => this.#connectionChanged());
        this.chat.addEventListener('list', () => this.requestUpdate());
        this.chat.addEventListener('finished', (event) => this.#finished(event.detail));
        document.addEventListener('visibilitychange', () => this.#seen());
        this.chat.addEventListener('options', () => (this.#modelChanged(), this.requestUpdate()));
        this.chat.addEventListener('notice', (event) => this.#notify(event.detail));
        addEventListener('hashchange', () => this.#route());
        NARROW.addEventListener('change', () => this.requestUpdate()); // a window made narrow, a phone turned
        document.addEventListener('selectionchange', () => {
            clearTimeout(this.selecting);
            this.selecting = setTimeout(() => this.#selected(), SELECTING_MS);
        });
        scroller.addEventListener('scroll', () => this.quote && this.#selected(), { passive: true });
        addEventListener('keydown', (event) => this.#key(event));
        // A dialog gives the focus back to what opened it; where that is gone, the field has it.
        this.addEventListener('close', (event) => {
            const dialog = /** @type {HTMLElement} */ (event.target);
            if (dialog.id === 'settings') this.enteringKey = false;
            if (dialog.id === 'preview') this.preview = null; // nothing runs on unseen
            requestAnimationFrame(() => {
                const { activeElement: active, body } = document;
                if (!active || active === body || dialog.contains(active)) this.#composer?.focusField();
            });
        }, true);
        // On paper there is no scrolling up: all of the conversation is there before it is laid out.
        addEventListener('beforeprint', () => (this.shown = Infinity));
        addEventListener('afterprint', () => (this.shown = WINDOW));
        this.#acceptDrops();
        this.#composer?.updateComplete.then(() => this.#composer.restore(this.chat.draft));
        this.chat.start().then(() => this.#route()).then(() => this.#takeShared());
        this.#askModel();
        if (!NARROW.matches) this.#composer?.focusField();
    }

    get #composer() {
        return /** @type {any} */ (this.querySelector('chat-composer'));
    }

    /** What the loaded model is and can do, from the greeting or from /v1/models. */
    get model() {
        const { session } = this.chat.connection;
        const own = this.chat.modelOf();
        // What the server greets with is about the model that it has loaded.
        const listed = this.httpModel;
        const capabilities = own === this.chat.loadedModel && !listed?.upstream ? session?.capabilities : undefined;
        const modalities = capabilities?.modalities ?? listed?.architecture?.input_modalities;
        const beside = this.chat.models?.find(({ id }) => id === this.chat.current.options?.beside);
        return {
            upstreams: [...new Set([listed?.upstream, beside?.upstream].filter(Boolean))],
            routes: session?.routes ?? [],
            name: own ? modelName(own) : 'Parley',
            vision: modalities ? modalities.includes('image') : true,
            video: !!modalities?.includes('video'),
            rates: capabilities?.video ?? DEFAULT_RATES,
            maxBytes: session?.limits?.max_upload_bytes,
            thinking: capabilities?.thinking ?? true,
            thinkingKnown: capabilities?.thinking !== undefined,
            modalities: modalities?.map((name) => ({ text: t`text`, image: t`images`, video: t`videos` })[name] ?? name),
            tools: this.tools,
            maxImages: session?.limits?.max_images ?? DEFAULT_MAX_IMAGES,
            context: (listed?.upstream ? undefined : session?.limits?.n_ctx) ?? listed?.meta?.n_ctx ?? listed?.meta?.n_ctx_train,
            parameters: listed?.meta?.n_params,
            bytes: listed?.meta?.size,
            server: session?.server ? `${session.server.name ?? 'parley'} ${session.server.version ?? ''}` : '',
        };
    }

    async #askModel() {
        try {
            const reply = await this.chat.connection.fetch('v1/models');
            if (!reply.ok) return;
            const { data = [] } = await reply.json();
            const named = (name) => data.find(({ id }) => !name || id === name) ?? null;
            this.chat.models = data;
            this.httpModel = named(this.chat.modelOf());
            this.chat.httpModel = named(this.chat.loadedModel);
            this.requestUpdate();
            const props = await this.chat.connection.fetch('props');
            const said = props.ok ? await props.json() : {};
            this.defaults = said.default_generation_settings?.params ?? null;
            this.tools = said.mcp_servers > 0;
            this.requestUpdate();
        } catch {
            // The connection's own state says so already.
        }
    }

    /** Asks about the model that answers here, if it is another than before. While a model is being
     * loaded there are no facts about it yet. */
    #modelChanged() {
        const { state, server } = this.chat.connection;
        const facts = `${this.chat.modelOf()} ${server?.state ?? ''}`;
        if (!/^(open|fallback)$/.test(state) || this.facts === facts) return;
        this.facts = facts;
        this.#askModel();
    }

    #connectionChanged() {
        const { state } = this.chat.connection;
        this.#modelChanged();
        if (state === 'open' && this.enteringKey) {
            this.enteringKey = false;
            /** @type {HTMLDialogElement} */ (document.getElementById('settings')).close();
            this.#notify({ text: t`The server accepts this API key.` });
        }
        const version = this.chat.connection.session?.server?.version;
        if (version && this.version && version !== this.version) {
            this.#notify({ text: t`The server was updated.`, action: t`Reload`, undo: () => location.reload(), lastsMs: 60_000 });
        }
        this.version = version ?? this.version;
        clearInterval(this.countdown);
        if (state === 'retrying') this.countdown = setInterval(() => this.requestUpdate(), 1_000);
        if (this.wasAway && state === 'open') {
            this.wasAway = false;
            /** @type {HTMLElement} */ (document.getElementById('live-status')).textContent = t`Connected again.`;
        } else if (connectionWords(this.chat.connection).tone === 'bad') this.wasAway = true;
        this.requestUpdate();
    }

    render() {
        const path = shownPath(this.chat.current);
        const open = NARROW.matches ? this.drawer : this.settings.get('sidebar');
        const model = this.model;
        return html`
            <a class="skip" href="#composer" @click=${this.#skip}>${t`To the message field`}</a>
            <div class="shell ${open ? 'with-sidebar' : ''}" @toggle-sidebar=${this.#toggleSidebar} @left-search=${() => this.#composer?.focusField()} @take-chat=${this.#takeChat}
                @show-image=${this.#showImage} @show-preview=${this.#showPreview} @edit-prompts=${this.#editPrompts}>
                <aside class="sidebar" ?inert=${!open} aria-label=${t`Chats`} @chosen=${() => (this.drawer = false)}>
                    <chat-sidebar .chat=${this.chat}></chat-sidebar>
                </aside>
                <div class="scrim" @click=${() => (this.drawer = false)}></div>
                <div class="main" ?inert=${this.drawer && NARROW.matches}>
                    ${this.#header(open, model)}
                    <main
                        class="transcript"
                        @send-sample=${this.#sendSample}
                        @notice=${(event) => this.#notify(event.detail)}
                    >
                        <div class="column">
                            ${this.#temporary()} ${this.#ownOptions()}
                            ${path.length
                                ? this.#messages(path)
                                : html`<chat-welcome .chat=${this.chat} .model=${model} .open=${this.settings.get('introduction')}></chat-welcome>`}
                        </div>
                    </main>
                    <footer class="dock" id="composer">
                        ${this.pinned || !path.length
                            ? nothing
                            : html`<button type="button" class="jump" @click=${() => this.follower?.jump()}>
                                  ${icon('toBottom')}${t`Latest`}
                              </button>`}
                        ${this.#notice()}
                        ${this.#trouble()}
                        <chat-composer
                            .chat=${this.chat}
                            .settings=${this.settings}
                            .busy=${this.chat.busy}
                            .queue=${this.chat.queue}
                            @edit-last=${this.#editLast}
                            .model=${model}
                        ></chat-composer>
                        <p class="small-print">
                            <span class="doubt">${t`${model.name} can be wrong. Check what matters.`}</span>
                            ${this.#context(path, model)}
                        </p>
                    </footer>
                </div>
            </div>
            ${this.#quoteButton()}
            ${this.dragging
                ? html`<div class="drop-overlay"><div>${icon('image')}<p>${model.video ? t`Drop images and videos anywhere` : t`Drop images anywhere`}</p></div></div>`
                : nothing}
            ${settingsDialog(this.chat, this.defaults, this.part, {
                onPart: (part) => (this.part = part),
                onKey: (key) => {
                    this.settings.set('apiKey', key);
                    this.chat.connection.setKey(key);
                },
                onExport: () => this.#exportAll(),
                onMarkdown: path.length ? () => this.#exportMarkdown() : null,
                onRemoveAll: () => this.#removeAll(),
                onImport: (event) => this.#import(event),
                onIntroduction: () => this.#introduce(),
                onPrompts: () => this.#editPrompts(),
                tools: model.tools,
                onPresets: () => this.#part(() => import('./prompts.js')),
            })}
            ${modelDialog(model, this.chat.connection)} ${keysDialog()} ${imageDialog(this.viewing)}
            <dialog id="preview" class="viewer" aria-label=${t`Preview`} @click=${backdrop}>
                ${this.preview ? html`<code-preview .versions=${this.preview.versions} .at=${this.preview.at}></code-preview>` : nothing}
            </dialog>
            <dialog id="prompts" class="wide" aria-label=${t`Prompts`} @click=${backdrop}>${head(t`Prompts`)}<prompt-library></prompt-library></dialog>
            <dialog id="status" class="wide" aria-label=${t`Server status`} @click=${backdrop}>
                ${head(t`Server status`)}
                <server-status .connection=${this.chat.connection}></server-status>
            </dialog>
        `;
    }

    #header(open, model) {
        const words = connectionWords(this.chat.connection);
        return html`<header class="top">
            <button type="button" class="quiet icon-only ${open ? 'sidebar-is-open' : ''}" title=${t`Chats (Ctrl B)`}
                aria-label=${t`Show the list of chats`} aria-expanded=${open} @click=${this.#toggleSidebar}>
                ${icon('menu')}
            </button>
            <h1>
                ${menuButton({
                    id: 'model-menu',
                    look: 'quiet model-button',
                    label: `${model.name}${words.tone === 'good' ? '' : `, ${words.label}`}`,
                    title: t`Models`,
                    face: html`<span class="dot ${words.tone}"></span>
                        <span class="model-name">${model.name}</span>
                        ${model.upstreams.length ? html`<span class="model-server" title=${t`Another server answers: ${model.upstreams.join(', ')}`}>${icon('leaves')}</span>` : nothing}
                        <span class="model-state">${words.tone === 'good' ? '' : words.label}</span>
                        ${icon('down')}`,
                    onOpen: () => this.#part(() => import('./model-list.js')),
                    content: html`<div class="model-menu">
                        <model-list .chat=${this.chat} .connection=${this.chat.connection}></model-list>
                        <hr />
                        <button type="button" class="quiet" @click=${() => openDialog('model')}>${icon('info')}${t`About ${model.name}`}</button>
                        <button type="button" class="quiet" @click=${this.#showStatus}>${icon('pulse')}${t`Server status`}</button>
                    </div>`,
                })}
            </h1>
            <span class="spacer"></span>
            ${this.chat.current.head
                ? nothing
                : html`<button type="button" class="quiet icon-only temporary" aria-label=${t`Temporary chat`} title=${t`Temporary chat: it is not kept`}
                      aria-pressed=${!!this.chat.current.temporary} @click=${() => this.chat.setTemporary(!this.chat.current.temporary)}>${icon('hidden')}</button>`}
            <a class="button quiet icon-only ${open ? 'phone-only' : ''}" href="#/" aria-label=${t`New chat`} title=${t`New chat (Ctrl Shift O)`} @click=${() => this.chat.newChat()}>
                ${icon('plus')}
            </a>
            <button type="button" class="quiet icon-only wide-only" aria-label=${t`Keyboard shortcuts`} title=${t`Keyboard shortcuts (Ctrl /)`}
                @click=${() => openDialog('keys')}>${icon('keyboard')}</button>
            <button type="button" class="quiet icon-only" aria-label=${t`Settings`} title=${t`Settings`}
                @click=${() => this.#openSettings()}>${icon('sliders')}</button>
        </header>`;
    }

    #messages(path) {
        const children = childrenByParent(this.chat.current);
        const { busy } = this.chat;
        const from = Math.max(0, path.length - this.shown);
        return html`<section role="log" aria-live="off" aria-label=${t`Conversation`} class="messages">
            ${from > 0
                ? html`<button type="button" class="plain earlier" @click=${() => this.#showEarlier()}>
                      ${plural(Math.min(EARLIER, from), 'Show {0} earlier message', 'Show {0} earlier messages')}
                  </button>`
                : nothing}
            ${repeat(
                path.slice(from),
                (message) => message.id,
                (message, i) => html`<chat-message
                    data-id=${message.id}
                    .chat=${this.chat}
                    .message=${message}
                    .siblings=${(children.get(message.parent ?? '') ?? []).filter(
                        (other) => other.role === message.role,
                    )}
                    .last=${from + i === path.length - 1}
                    .busy=${busy}
                ></chat-message>`,
            )}
        </section>`;
    }

    /** Puts earlier messages above what is being read, without moving it. */
    async #showEarlier() {
        const scroller = /** @type {HTMLElement} */ (this.querySelector('.transcript'));
        const first = this.querySelector('chat-message');
        const top = first?.getBoundingClientRect().top;
        this.shown += EARLIER;
        await this.updateComplete;
        if (first?.isConnected) scroller.scrollTop += first.getBoundingClientRect().top - top;
    }

    updated() {
        const quote = /** @type {HTMLElement|null} */ (this.querySelector('.quote'));
        if (quote && this.quote) {
            quote.style.left = `${Math.max(8, Math.min(innerWidth - quote.offsetWidth - 8, this.quote.right - quote.offsetWidth))}px`;
            quote.style.top = `${Math.max(8, Math.min(innerHeight - quote.offsetHeight - 8, this.quote.bottom + 6))}px`;
        }
        const button = this.querySelector('.earlier');
        if (button === this.watched) return;
        this.watched = button;
        this.nearEarlier?.disconnect();
        if (button) this.nearEarlier?.observe(button);
    }

    #notice() {
        if (!this.notice) return nothing;
        return html`<div class="notice" role="status">
            <span>${this.notice.text}</span>
            ${this.notice.action
                ? html`<button type="button" class="quiet" @click=${this.#undo}>${this.notice.action}</button>`
                : nothing}
            <button type="button" class="quiet icon-only" aria-label=${t`Close this message`}
                @click=${() => (this.notice = null)}>${icon('close')}</button>
        </div>`;
    }

    #trouble() {
        const { connection } = this.chat;
        const { tone, detail, value } = connectionWords(connection);
        if (!detail || tone === 'good') return nothing;
        return html`<div class="trouble ${tone}">
            ${icon(tone === 'bad' ? 'warning' : 'info')}
            <span role="status">${detail}${this.#untilRetry()}</span>
            ${value === undefined ? nothing : html`<progress max="1" .value=${value} aria-label=${t`Loading`}></progress>`}
            ${connection.state === 'unauthorised'
                ? html`<button type="button" class="plain" @click=${() => this.#enterKey()}>${t`Enter it`}</button>`
                : tone === 'bad'
                  ? html`<button type="button" class="plain" @click=${() => connection.retryNow()}>${t`Try now`}</button>`
                  : nothing}
        </div>`;
    }

    /** Counted down for the eye; a screen reader is not told every second. */
    #untilRetry() {
        const { connection } = this.chat;
        const seconds = Math.ceil((connection.retryAt - performance.now()) / 1000);
        if (connection.state !== 'retrying' || seconds < 1 || !navigator.onLine) return nothing;
        return html`<span aria-hidden="true"> ${t`Next try in ${seconds} s.`}</span>`;
    }

    /** @param {string} [part] */
    #openSettings(part = 'chat') {
        this.part = part;
        if (this.tools) import('./tools-menu.js').catch(() => {});
        this.chat.askStored();
        openDialog('settings');
    }

    /** What the shown chat has of its own: a system prompt, other sampling. */
    #ownOptions() {
        const own = ownOptions(this.chat.current.options);
        if (!own.length) return nothing;
        const words = own.join(' · ');
        return html`<div class="own-options">
            <button type="button" class="quiet" title=${t`Settings of this chat`} @click=${() => this.#openSettings()}>${icon('sliders')}<span>${words}</span></button>
        </div>`;
    }

    /** Said while it lasts. */
    #temporary() {
        if (!this.chat.current.temporary) return nothing;
        return html`<p class="own-options is-temporary">${icon('hidden')}<span>${t`Temporary chat: it is not kept, and gone when you leave it.`}</span></p>`;
    }

    async #enterKey() {
        this.enteringKey = true;
        this.#openSettings('browser');
        await this.updateComplete;
        /** @type {HTMLElement|null} */ (this.querySelector('#api-key'))?.focus();
    }

    #context(path, model) {
        const used = path.findLast?.((message) => message.context?.used)?.context?.used;
        if (!used || !model.context) return nothing;
        const part = Math.min(1, used / model.context);
        if (part < METER_FROM) return nothing;
                return html`<span class="context ${part > NEARLY_FULL ? 'full' : ''}" title=${t`${formatCount(used)} of ${formatCount(model.context)} tokens of the context are used`}>
            ${t`Context`} <progress max="1" .value=${part} aria-hidden="true"></progress>
            ${part > NEARLY_FULL ? t`${formatPercent(part)}, nearly full: a new chat has room` : formatPercent(part)}
        </span>`;
    }

    /** An answer ended. Where nobody looks the title has a mark, and the system tells it where that is
     * wanted. @param {import('../state/store.js').Message} message */
    #finished(message) {
        this.requestUpdate();
        if (!document.hidden) return;
        this.unseen = true;
        this.#newsCame();
        if (!this.settings.get('notify') || window.Notification?.permission !== 'granted') return;
        try {
            const told = new Notification(message.status === 'failed' ? t`The answer could not be made` : t`The answer is there`, { body: message.text.slice(0, 120), icon: 'icon.svg', tag: message.id });
            told.onclick = () => (window.focus(), told.close());
        } catch {
            // Some phones only let service workers do so: the title has its mark.
        }
    }

    #seen() {
        if (document.hidden || !this.unseen) return;
        this.unseen = false;
        this.#newsCame();
    }

    /** The shown chat has another name, or messages from elsewhere: nothing moves but what follows
     * the end. */
    #newsCame() {
        const { title } = this.chat.current;
        document.title = `${this.unseen ? '● ' : ''}${title ? `${title} · Parley` : 'Parley'}`;
        this.requestUpdate();
    }

    async #conversationChanged() {
        const { current } = this.chat;
        this.#modelChanged();
        if (this.shownId !== current.id) {
            this.shownId = current.id;
            this.shown = WINDOW;
            this.#composer?.restore(this.chat.draft);
        }
        const hash = current.head ? `#/c/${current.id}` : '#/';
        if (location.hash !== hash && !(hash === '#/' && location.hash === '')) history.replaceState(null, '', hash);
        this.#newsCame();
        await this.updateComplete;
        // Every message now renders by itself; a question or another branch shows its end.
        for (const element of this.querySelectorAll('chat-message')) /** @type {any} */ (element).requestUpdate();
        this.follower?.jump();
        if (!NARROW.matches && !this.querySelector('.renaming')) this.#composer?.focusField();
    }

    async #route() {
        const id = /^#\/c\/([\w-]+)$/.exec(location.hash)?.[1];
        if (!id) {
            this.chat.newChat();
            return;
        }
        if (!(await this.chat.open(id))) {
            this.#notify({ text: this.chat.history.remote ? t`This chat is not kept on the server.` : t`This chat is not kept in this browser.` });
            history.replaceState(null, '', '#/');
        }
    }

    /** What another program shared goes into the field of a new chat. */
    async #takeShared() {
        if (!new URLSearchParams(location.search).has('shared')) return;
        history.replaceState(null, '', location.pathname);
        const shared = await this.#part(() => import('../state/shared.js'));
        if (!shared) return;
        const { text, files } = await shared.takeShared();
        this.chat.keepDraft(text, []);
        this.#composer?.restore(this.chat.draft);
        await this.#composer?.add(files);
    }

    // ---- events ----

    /** Up in an empty field edits the last question. */
    #editLast() {
        const questions = this.querySelectorAll('chat-message .question .edit');
        /** @type {HTMLElement|undefined} */ (questions[questions.length - 1])?.click();
    }

    /** A part of the page that is fetched when it is first needed; null where it cannot be had.
     * @param {() => Promise<any>} load */
    async #part(load) {
        try {
            return await load();
        } catch {
            this.#notify({ text: t`The server cannot be reached for this part of the page. Try again when it is back.` });
            return null;
        }
    }

    async #showStatus() {
        if (await this.#part(() => import('./server-status.js'))) openDialog('status');
    }

    /** Prompts and system prompts that are used again. */
    async #editPrompts() {
        if (await this.#part(() => import('./prompts.js'))) openDialog('prompts');
    }

    async #exportAll() {
        const transfer = await this.#part(() => import('../state/transfer.js'));
        if (!transfer) return;
        const text = await transfer.toJson(await this.chat.all());
        download('parley-chats.json', new Blob([text], { type: 'application/json' }));
    }

    #exportMarkdown(chat = this.chat.current) {
        download(`${fileName(chat)}.md`, new Blob([toMarkdown(chat)], { type: 'text/markdown' }));
    }

    /** One chat as a file, or on paper. @param {CustomEvent} event */
    async #takeChat({ detail: { id, kind } }) {
        if (kind === 'print') {
            if (!(await this.chat.open(id))) return;
            await this.updateComplete;
            requestAnimationFrame(() => print());
            return;
        }
        const chat = await this.chat.read(id);
        if (!chat) return;
        if (kind === 'markdown') return this.#exportMarkdown(chat);
        if (kind === 'share') return (await this.#part(() => import('./share.js')))?.openShare(this, this.chat, chat);
        const transfer = await this.#part(() => import('../state/transfer.js'));
        if (transfer) download(`${fileName(chat)}.json`, new Blob([await transfer.toJson([chat])], { type: 'application/json' }));
    }

    /** @param {Event} event */
    async #import(event) {
        const input = /** @type {HTMLInputElement} */ (event.target);
        const file = input.files?.[0];
        input.value = '';
        const transfer = file && (await this.#part(() => import('../state/transfer.js')));
        if (!transfer) return;
        /** @type {HTMLDialogElement} */ (document.getElementById('settings')).close(); // what follows is said behind it
        try {
            const chats = await transfer.fromFile(file);
            const fresh = transfer.notThere(chats, await this.chat.all());
            await this.chat.add(fresh);
            const there = chats.length - fresh.length;
            const known = there ? plural(there, '{0} chat was here already.', '{0} chats were here already.') : '';
            this.#notify({ text: `${plural(fresh.length, '{0} chat imported.', '{0} chats imported.')} ${known}`.trim() });
        } catch (error) {
            this.#notify({ text: t`Nothing was imported. ${error.message}` });
        }
    }

    /** Deletes every chat; it can be taken back. */
    #removeAll() {
        /** @type {HTMLDialogElement} */ (document.getElementById('settings')).close(); // what follows is said behind it
        this.chat.removeAll();
    }

    /** Shows the introduction of the empty state again. */
    #introduce() {
        this.settings.set('introduction', true);
        /** @type {HTMLDialogElement} */ (document.getElementById('settings')).close();
        this.chat.newChat();
    }

    async #search() {
        if (NARROW.matches) this.drawer = true;
        else this.settings.set('sidebar', true);
        await this.updateComplete;
        /** @type {HTMLElement|null} */ (this.querySelector('.search input'))?.focus();
    }

    #toggleSidebar() {
        if (NARROW.matches) this.drawer = !this.drawer;
        else this.settings.set('sidebar', !this.settings.get('sidebar'));
    }

    /** @param {Event} event */
    #skip(event) {
        event.preventDefault();
        this.#composer?.focusField();
    }

    /** @param {KeyboardEvent} event */
    #key(event) {
        const control = event.ctrlKey || event.metaKey;
        const key = event.key.toLowerCase();
        if (control && document.querySelector('dialog[open]')) return;
        if (event.key === 'Escape' && !document.querySelector('dialog[open], :popover-open')) {
            if (this.drawer) this.drawer = false;
            else if (this.chat.busy) this.chat.stop();
        } else if (control && event.shiftKey && key === 'o') {
            event.preventDefault();
            this.chat.newChat();
            this.#composer?.focusField();
        } else if (control && !event.shiftKey && key === 'b') {
            event.preventDefault();
            this.#toggleSidebar();
        } else if (control && key === '/') {
            event.preventDefault();
            openDialog('keys');
        } else if (control && key === ',') {
            event.preventDefault();
            this.#openSettings();
        } else if (control && !event.shiftKey && key === 'k') {
            event.preventDefault();
            this.#search();
        } else if (control && event.shiftKey && key === 'q' && this.quote) {
            event.preventDefault();
            this.#quote();
        } else if (control && event.shiftKey && key === 'backspace') {
            event.preventDefault();
            this.chat.remove(this.chat.current.id);
        }
    }

    #acceptDrops() {
        let depth = 0;
        const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes('Files');
        addEventListener('dragenter', (event) => {
            if (!hasFiles(event)) return;
            event.preventDefault();
            depth += 1;
            this.dragging = true;
        });
        addEventListener('dragover', (event) => {
            if (hasFiles(event)) event.preventDefault();
        });
        addEventListener('dragleave', () => {
            depth = Math.max(0, depth - 1);
            if (depth === 0) this.dragging = false;
        });
        addEventListener('drop', (event) => {
            depth = 0;
            this.dragging = false;
            if (!hasFiles(event)) return;
            event.preventDefault();
            this.#composer?.add(event.dataTransfer?.files ?? []);
        });
    }

    /** HTML, SVG or a diagram as it looks. @param {CustomEvent} event */
    async #showPreview(event) {
        const { code, language } = event.detail;
        const preview = await this.#part(() => import('./preview.js'));
        if (!preview) return;
        const versions = preview.versionsOf(this.chat.current);
        const at = versions.findLastIndex((one) => one.code.trim() === code.trim());
        this.preview = at < 0 ? { versions: [...versions, { code, language }], at: versions.length } : { versions, at };
        await this.updateComplete;
        openDialog('preview');
    }

    /** A place to quote from, where something of the conversation is selected. */
    #selected() {
        const selection = getSelection();
        const range = selection && !selection.isCollapsed && selection.rangeCount ? selection.getRangeAt(0) : null;
        const node = range?.commonAncestorContainer;
        const within = node && /** @type {HTMLElement|null} */ (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement);
        const text = within?.closest('.messages .prose, .messages .bubble') ? String(selection).trim() : '';
        const { right = 0, bottom = 0 } = range?.getBoundingClientRect() ?? {};
        this.quote = text ? { text, right, bottom } : null;
    }

    #quoteButton() {
        if (!this.quote) return nothing;
        // The selection stays while the button is pressed.
        return html`<button type="button" class="plain small quote" @pointerdown=${(event) => event.preventDefault()} @click=${this.#quote}>${icon('quote')}${t`Quote`}</button>`;
    }

    /** What is selected goes into the field, as a quotation. */
    #quote() {
        if (!this.quote) return;
        this.#composer?.quote(this.quote.text);
        getSelection()?.removeAllRanges();
        this.quote = null;
    }

    /** An image or text file large; beside it those of the same chat.
     * @param {CustomEvent} event */
    async #showImage(event) {
        const { image, mark, items = shownPath(this.chat.current).flatMap((message) => message.attachments ?? []) } = event.detail;
        const shown = items.filter((one) => one.blob && one.kind !== 'video');
        if (!(await this.#part(() => import('./viewer.js')))) return;
        this.viewing = { items: shown, at: shown.indexOf(image), mark };
        await this.updateComplete;
        openDialog('image');
    }

    /** @param {CustomEvent} event */
    async #sendSample(event) {
        const { files, text, thinking } = event.detail;
        const { attachments, refused } = await readFiles(files, {
            vision: this.model.vision,
            video: this.model.video,
            maxImages: this.model.maxImages,
            already: 0,
            modelName: this.model.name,
        });
        if (refused.length) this.#notify({ text: refused[0] });
        else this.chat.send(text, attachments, { thinking: thinking ?? this.settings.get('thinking') });
    }

    /** @param {{text: string, action?: string, undo?: () => void, lastsMs?: number}} notice */
    #notify(notice) {
        clearTimeout(this.noticeTimer);
        this.notice = notice;
        this.noticeTimer = setTimeout(() => (this.notice = null), notice.lastsMs ?? NOTICE_MS);
    }

    #undo() {
        this.notice?.undo?.();
        this.notice = null;
    }
}
customElements.define('parley-app', ParleyApp);

/** @param {import('../state/store.js').Conversation} chat */
function fileName({ title }) {
    return title.replace(/[^\p{L}\p{N} -]+/gu, '').trim() || 'chat';
}
