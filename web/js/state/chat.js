/**
 * The controller: joins the conversation tree, the history and the connection. Views listen to it
 * and call its verbs.
 *
 * Events: `conversation` (another one is shown, or its structure changed), `message` (detail:
 * message id; its text or state changed), `list` (the history changed), `connection`, `notice`
 * (detail: {text, action?, undo?}), `finished` (detail: message), `options` (those of the shown
 * chat changed), `news` (others wrote to the shown chat, or it has a new name).
 */
import { plural, t } from '../language.js';
import { Answers } from './answers.js';
import { Connection } from '../protocol/connection.js';
import { readDrafts, writeDraft } from './drafts.js';
import { History } from './history.js';
import { addMessage, besideOf, branchOf, canContinue, erasedWith, eraseMessages, newConversation, pathTo, placeWith, showBranch, shownPath, siblings } from './store.js';
import { noteUnsaved, takeUpUnsaved } from './unsaved.js';
import { Uploads } from '../protocol/uploads.js';
import { newId } from '../util.js';

/**
 * @typedef {import('./store.js').Conversation} Conversation
 * @typedef {import('./store.js').Message} Message
 * @typedef {import('./store.js').Attachment} Attachment
 */

const UNDO_MS = 8_000;
const SAVE_NOTICE_MS = 60_000;
/** What a title is made of, and how long it may be. */
const TITLE_SOURCE = 1_000;
const TITLE_TOKENS = 24;
const TITLE_MAX = 80;
const TITLE_WORDS = 9; // the model is asked for six

export class Chat extends EventTarget {
    /**
     * @param {{connection?: Connection, settings: import('./settings.js').Settings, openHistory?: (chat: Chat) => Promise<any>}} options
     *   openHistory: where chats are kept; anything with History's verbs and available does
     */
    constructor({ connection, settings, openHistory = () => History.open() }) {
        super();
        this.settings = settings;
        this.openHistory = openHistory;
        this.connection = connection ?? new Connection({ key: settings.get('apiKey') });
        /** @type {any} a History, or what openHistory gives */
        this.history = new History(null);
        /** Where chats are kept is asked for first: what is written before waits.
         * @type {Promise<void>|undefined} */
        this.opened = undefined;
        /** @type {import('./history.js').Summary[]} */
        this.list = [];
        /** @type {Conversation} */
        this.current = newConversation(settings.get('newChat'));
        /** Conversations that are shown or have a running answer.
         * @type {Map<string, Conversation>} */
        this.live = new Map();
        /** What is being written, by conversation id; 'new' for a chat without messages.
         * @type {Map<string, any>} */
        this.drafts = new Map(Object.entries(readDrafts()).map(([id, text]) => [id, { text, attachments: [] }]));
        this.answers = new Answers(this);
        /** Deleted chats, which are not saved again unless they are taken back.
         * @type {WeakSet<Conversation>} */
        this.removed = new WeakSet();
        /** Chats that other tabs or devices changed, not looked at yet; undefined: whichever.
         * @type {Set<string|undefined>} */
        this.news = new Set();
        /** While they are looked at. @type {Promise<void>|null} */
        this.refreshing = null;
        /** Chats that are being written, with how many writes. @type {Map<Conversation, number>} */
        this.saving = new Map();
        /** What is being done to chats that must be read first; see unsaved.js. @type {Set<any>} */
        this.intents = new Set();
        /** Chats whose answer came while another one was shown. @type {Set<string>} */
        this.unread = new Set();
        /** How many bytes the chats take, if that is known. @type {{used: number, most?: number}|null} */
        this.stored = null;
        this.uploads = new Uploads(this.connection);
        this.connection.addEventListener('state', () => {
            // Whether the server keeps chats could not be asked before.
            if (/^(open|fallback)$/.test(this.connection.state)) {
                if (this.history.unsure) this.#open();
                else this.opened?.then(() => takeUpUnsaved(this));
            }
            this.tell('connection');
        });
    }

    async start() {
        this.connection.start();
        addEventListener('pagehide', () => noteUnsaved(this));
        await this.#open();
    }

    async #open() {
        this.opened = this.#openHistory();
        await this.opened;
        await takeUpUnsaved(this);
    }

    async #openHistory() {
        this.history.unsure = false;
        this.history = await this.openHistory(this);
        this.list = await this.history.list();
        this.tell('list');
    }

    /** Shows what other tabs and devices changed. @param {string[]} [ids] of chats; without,
     * whatever it was */
    refresh(ids) {
        for (const id of ids ?? [undefined]) this.news.add(id);
        this.refreshing ??= this.#takeNews().finally(() => (this.refreshing = null));
        return this.refreshing;
    }

    async #takeNews() {
        while (this.news.size) {
            const news = [...this.news];
            this.news.clear();
            const known = news.includes(undefined) ? undefined : /** @type {string[]} */ (news);
            const shown = this.current.head ? [this.current] : [];
            const live = [...new Set([...shown, ...this.live.values()])];
            try {
                for (const one of live) if (!known || known.includes(one.id)) this.took(one, await this.history.refresh(one));
                const before = this.list;
                const list = await this.history.list(before, known);
                if (this.list === before) this.list = list;
                else for (const id of news) this.news.add(id); // changed here meanwhile: read again
            } catch {
                // What could not be read is read with the next news.
            }
            this.tell('list');
        }
    }

    /** Others wrote to a chat that is in memory. @param {Conversation} conversation
     * @param {string[]|null} changed null: it was deleted */
    took(conversation, changed) {
        if (this.removed.has(conversation)) return;
        if (changed) {
            for (const id of changed) {
                this.#follow(conversation, conversation.messages[id]);
                this.tell('message', id);
            }
            if (conversation === this.current) this.tell('news');
            return;
        }
        if (this.history.isAhead(conversation)) return; // written to since: it is made anew
        this.#drop(conversation);
        if (conversation === this.current) this.tell('notice', { text: t`This chat was deleted elsewhere.` });
        this.#close(conversation);
    }

    /** Ends what a deleted chat still does. @param {Conversation} conversation */
    #drop(conversation) {
        this.removed.add(conversation);
        for (const id of Object.keys(conversation.messages)) this.runs.get(id)?.cancel();
        if (this.live.get(conversation.id) === conversation) this.live.delete(conversation.id);
    }

    /** @param {Conversation} conversation that is deleted */
    #close(conversation) {
        if (conversation !== this.current) return;
        this.current = newConversation(this.settings.get('newChat'));
        this.tell('conversation');
    }

    /** Shows an answer that another tab or device asked for, as it comes.
     * @param {Conversation} conversation @param {Message} message */
    #follow(conversation, message) {
        const isComing = message.status === 'streaming' && !!message.responseId;
        if (isComing && conversation === this.current && !this.runs.has(message.id)) this.answers.pickUp(conversation, message);
    }

    /** @param {string} type @param {any} [detail] */
    tell(type, detail) {
        this.dispatchEvent(new CustomEvent(type, { detail }));
    }

    // ---- conversations ----

    newChat() {
        if (!this.current.head) return;
        this.#leave();
        this.current = newConversation(this.settings.get('newChat'));
        this.tell('conversation');
    }

    /** @param {string} id @returns {Promise<boolean>} */
    async open(id) {
        if (id === this.current.id) return true;
        const loaded = this.live.get(id) ?? (await this.history.load(id));
        const conversation = this.live.get(id) ?? loaded; // it may have been opened meanwhile
        if (!conversation) return false;
        this.#leave();
        this.current = conversation;
        this.live.set(id, conversation);
        this.unread.delete(id);
        this.tell('conversation');
        // What was written while it was being read.
        this.history.refresh(conversation).then((changed) => this.took(conversation, changed), () => {});
        for (const message of Object.values(conversation.messages)) {
            if (message.status === 'streaming' && !this.runs.has(message.id)) this.answers.pickUp(conversation, message);
        }
        return true;
    }

    /** A chat, from memory or from where it is kept. @param {string} id @returns {Promise<Conversation|null>} */
    async read(id) {
        return this.current.id === id ? this.current : (this.live.get(id) ?? this.history.load(id));
    }

    #cannotRead() {
        this.tell('notice', { text: t`This chat cannot be read now, so it stays as it is. Try again when the server is back.` });
    }

    /** Does what has to read or delete first; a page that goes away meanwhile leaves a note of it.
     * @template T @param {any} note see unsaved.js @param {() => Promise<T>} work */
    async #intend(note, work) {
        this.intents.add(note);
        try {
            return await work();
        } finally {
            this.intents.delete(note);
        }
    }

    #leave() {
        const { id, messages } = this.current;
        if (!Object.keys(messages).some((messageId) => this.runs.has(messageId))) this.live.delete(id);
    }

    /**
     * Deletes a chat; it can be taken back for a few seconds. If somebody wrote to it meanwhile it
     * stays.
     * @param {string} id @param {(undo: () => Promise<void>) => void} [onUndo] takes what brings it back
     */
    async remove(id, onUndo) {
        const summary = this.list.find((entry) => entry.id === id);
        if (!summary) return;
        await this.#intend({ id, removed: Math.max(summary.updated, this.live.get(id)?.updated ?? 0) }, async () => {
            const loaded = this.live.get(id) ?? (await this.history.load(id));
            // What the server keeps can be deleted while it is away.
            const conversation = loaded ?? { ...newConversation(), id };
            this.#drop(conversation);
            this.list = this.list.filter((entry) => entry.id !== id);
            this.#close(conversation);
            this.tell('list');
            if (!loaded && !this.history.remote) return; // deleted by another tab in the same moment
            const done = this.history.remove(conversation);
            const undo = async () => {
                await done.catch(() => {});
                this.removed.delete(conversation);
                this.history.known.delete(conversation); // whole, whoever deleted it meanwhile
                await this.save(conversation);
            };
            if (onUndo) onUndo(undo);
            else this.tell('notice', { text: t`“${summary.title}” deleted.`, action: t`Undo`, undo, lastsMs: UNDO_MS });
            if (await done.catch(() => false)) return;
            this.removed.delete(conversation);
            this.tell('notice', { text: t`“${summary.title}” stays: it was written to elsewhere.` });
            await this.refresh([id]);
        });
    }

    /** @param {string} id @param {string} title */
    async rename(id, title) {
        if (!title.trim()) return;
        await this.#intend({ id, title }, async () => {
            const conversation = await this.read(id);
            if (!conversation) return this.#cannotRead();
            conversation.title = title.trim();
            await this.save(conversation);
            if (conversation === this.current) this.tell('news');
        });
    }

    /** Asks the model what a chat is about, and names it so. @param {string} id */
    async nameByModel(id) {
        const conversation = await this.read(id);
        if (!conversation) return;
        const said = shownPath(conversation).slice(0, 4).map(({ role, text }) => `${role === 'user' ? 'Question' : 'Answer'}: ${text.slice(0, TITLE_SOURCE)}`);
        const before = conversation.title;
        try {
            const reply = await this.connection.fetch('v1/chat/completions', {
                method: 'POST',
                headers: { 'Content-Type': 'application/json' },
                body: JSON.stringify({
                    ...(this.modelOf(conversation) ? { model: this.modelOf(conversation) } : {}),
                    messages: [{ role: 'user', content: `${said.join('\n\n')}\n\nGive this conversation a title of two to six words, in its own language. Say nothing else.` }],
                    max_tokens: TITLE_TOKENS,
                    temperature: 0,
                    chat_template_kwargs: { enable_thinking: false },
                }),
            });
            const body = await reply.json();
            if (!reply.ok) throw new Error(body.error?.message);
            const title = String(body.choices[0].message.content ?? '').split('\n')[0].replace(/^[\s"'“*#]+|[\s"'”*.]+$/g, '').slice(0, TITLE_MAX);
            // More than it was asked for is an answer, not a title.
            if (!title || title.split(/\s+/).length > TITLE_WORDS) throw new Error(t`The model gave no title.`);
            // Whoever named it meanwhile knows better.
            if (conversation.title === before) await this.rename(id, title);
        } catch (error) {
            this.tell('notice', { text: t`No title was made. ${error.message || t`The server does not answer.`}` });
        }
    }

    /** Pins, archives or moves a chat. @param {string} id @param {import('./store.js').Place} change */
    async setPlace(id, change) {
        await this.#intend({ id, place: change }, async () => {
            const conversation = await this.read(id);
            if (!conversation) return this.#cannotRead();
            conversation.place = placeWith(conversation.place, change);
            await this.save(conversation);
        });
    }

    /** Gives a folder another name; without one its chats stand in none. @param {string} folder @param {string} name */
    async renameFolder(folder, name) {
        const inside = this.list.filter(({ place }) => place?.folder === folder);
        await Promise.all(inside.map(({ id }) => this.setPlace(id, { folder: name.trim() })));
    }

    /** Deletes all chats; they can be taken back for a few seconds. @param {string[]} [ids] */
    async removeAll(ids = this.list.map(({ id }) => id)) {
        /** @type {(() => Promise<void>)[]} */
        const undos = [];
        for (const id of ids) await this.remove(id, (undo) => undos.push(undo));
        this.tell('notice', {
            text: plural(undos.length, '{0} chat deleted.', '{0} chats deleted.'),
            action: t`Undo`,
            undo: async () => {
                for (const undo of undos) await undo();
            },
            lastsMs: UNDO_MS,
        });
    }

    /** A chat that is not kept anywhere. @param {boolean} temporary */
    setTemporary(temporary) {
        if (this.current.head) return;
        this.current.temporary = temporary;
        this.tell('conversation');
    }

    /** The shown branch up to a message goes on as a chat of its own. @param {string} id */
    async branchInto(id) {
        const copy = branchOf(this.current, id);
        this.#leave();
        this.current = copy;
        this.live.set(copy.id, copy);
        this.tell('conversation');
        await this.save(copy);
    }

    /** Deletes a message, and what follows it where there is another version of it.
     * @param {string} id */
    erase(id) {
        const conversation = this.current;
        const message = conversation.messages[id];
        if (!message || this.busy) return;
        const list = erasedWith(conversation, message);
        const putBack = eraseMessages(conversation, list);
        const tell = () => {
            this.save(conversation);
            if (conversation === this.current) this.tell('conversation');
        };
        tell();
        this.tell('notice', {
            text: plural(list.length, 'Message deleted.', '{0} messages deleted.'),
            action: t`Undo`,
            undo: () => {
                putBack();
                tell();
            },
            lastsMs: UNDO_MS,
        });
    }

    /** Asks how much room the chats take, here or on the server. */
    async askStored() {
        try {
            if (this.history.remote) {
                const { bytes, quota } = await (await this.connection.fetch('v1/history')).json();
                this.stored = { used: bytes, most: quota };
            } else {
                const { usage, quota } = (await navigator.storage?.estimate()) ?? {};
                this.stored = usage === undefined ? null : { used: usage, most: quota };
            }
        } catch {
            this.stored = null; // then nothing is said of it
        }
        this.tell('options');
    }

    /** Every kept chat, whole, as all tabs wrote it. @returns {Promise<Conversation[]>} */
    async all() {
        await this.refresh();
        const list = await Promise.all(this.list.map(({ id }) => this.live.get(id) ?? this.history.load(id)));
        return list.filter((conversation) => conversation !== null);
    }

    /** @param {Conversation[]} conversations */
    async add(conversations) {
        for (const conversation of conversations) await this.save(conversation);
    }

    /** @param {Conversation} conversation */
    async save(conversation) {
        if (conversation.temporary) return;
        this.saving.set(conversation, (this.saving.get(conversation) ?? 0) + 1);
        try {
            await this.opened;
            if (this.removed.has(conversation)) return;
            const { summary, changed } = await this.history.save(conversation);
            this.saveFailed = false;
            this.took(conversation, summary && changed);
            const isKept = summary && !this.removed.has(conversation);
            this.list = [...(isKept ? [summary] : []), ...this.list.filter((entry) => entry.id !== conversation.id)].sort(
                (a, b) => b.updated - a.updated,
            );
            this.tell('list');
        } catch (error) {
            if (this.saveFailed) return;
            this.saveFailed = true;
            const full = error?.name === 'QuotaExceededError';
            this.tell('notice', {
                text: full
                    ? t`The browser has no more room: this chat is not being kept. Export what matters, then delete old chats.`
                    : t`This chat could not be kept in the browser. Export it if it matters.`,
                lastsMs: SAVE_NOTICE_MS,
            });
        } finally {
            const writes = /** @type {number} */ (this.saving.get(conversation)) - 1;
            if (writes > 0) this.saving.set(conversation, writes);
            else this.saving.delete(conversation);
        }
    }

    // ---- messages ----

    /** Running answers by message id. */
    get runs() {
        return this.answers.runs;
    }

    /** The last progress event of a running answer, by message id. */
    get progress() {
        return this.answers.progress;
    }

    /** Whether an answer of the shown conversation is on its way. */
    get busy() {
        return this.answers.isBusy(this.current);
    }

    /** Whether any answer of a conversation is on its way. @param {string} id */
    isRunning(id) {
        const conversation = this.live.get(id);
        return !!conversation && Object.keys(conversation.messages).some((message) => this.runs.has(message));
    }

    /**
     * Sends a user message and asks for the answer.
     * @param {string} text @param {Attachment[]} attachments @param {{thinking?: boolean}} [options]
     * @param {Conversation} [conversation]
     */
    send(text, attachments, options = {}, conversation = this.current) {
        if (conversation === this.current) this.keepDraft('', []);
        const message = addMessage(conversation, {
            role: 'user',
            parent: conversation.head,
            text,
            ...(attachments.length ? { attachments } : {}),
        });
        this.live.set(conversation.id, conversation);
        this.answers.begin(conversation, message, options);
    }

    /** Sends a message once the running answer and what waits already is there. @param {string} text
     * @param {Attachment[]} attachments */
    enqueue(text, attachments) {
        this.keepDraft('', []);
        this.#setQueue(this.current, [...this.queue, { id: newId('q_'), text, attachments }]);
        if (!this.busy) this.sendQueued(this.queue[0]);
    }

    /** What waits in the shown conversation. It is kept with it. */
    get queue() {
        return this.current.queue ?? [];
    }

    /** @param {import('./store.js').Queued} entry */
    unqueue(entry) {
        this.#setQueue(this.current, this.queue.filter(({ id }) => id !== entry.id));
    }

    /** Sends what was left waiting behind an answer that did not end well.
     * @param {import('./store.js').Queued} entry */
    sendQueued(entry) {
        this.askQueued(this.current, entry);
    }

    /** @param {Conversation} conversation @param {import('./store.js').Queued[]} queue */
    #setQueue(conversation, queue) {
        if (queue.length) conversation.queue = queue;
        else delete conversation.queue;
        this.save(conversation);
        this.tell('list');
    }

    get #draftKey() {
        return this.current.head ? this.current.id : 'new';
    }

    get draft() {
        return this.drafts.get(this.#draftKey);
    }

    /** @param {string} text @param {Attachment[]} attachments */
    keepDraft(text, attachments) {
        if (text || attachments.length) this.drafts.set(this.#draftKey, { text, attachments });
        else if (!this.drafts.delete(this.#draftKey)) return;
        writeDraft(this.#draftKey, text);
    }

    /** The answer in the user's words, as another version of it. @param {string} id
     * @param {string} text */
    editAnswer(id, text) {
        const old = this.current.messages[id];
        if (!old || old.role !== 'assistant') return;
        addMessage(this.current, { role: 'assistant', parent: old.parent, text, model: old.model });
        this.save(this.current);
        this.tell('conversation');
    }

    /** Another answer to the same question, as another version; by a model that is named, it is
     * shown beside the old one. @param {string} id of the assistant message @param {string} [model] */
    regenerate(id, model) {
        const message = this.current.messages[id];
        const question = message?.parent ? this.current.messages[message.parent] : null;
        if (question) this.answers.begin(this.current, question, model ? { model, beside: id, thinking: message.thinking } : {});
    }

    /** Two answers stand side by side no more. @param {Message} message either of them */
    apart(message) {
        const other = besideOf(siblings(this.current, message), message);
        for (const one of [message, other]) delete one?.beside;
        this.save(this.current);
        this.tell('conversation');
    }

    /**
     * The question again with other words or fewer files, as a new branch.
     * @param {string} id @param {string} text @param {Attachment[]} attachments
     */
    editQuestion(id, text, attachments) {
        const old = this.current.messages[id];
        if (!old || old.role !== 'user') return;
        const message = addMessage(this.current, {
            role: 'user',
            parent: old.parent,
            text,
            ...(attachments.length ? { attachments } : {}),
        });
        this.answers.begin(this.current, message);
    }

    /** @param {Message} message */
    show(message) {
        showBranch(this.current, message);
        this.save(this.current);
        this.tell('conversation');
    }

    /** Stops what is being answered in the shown conversation. */
    stop() {
        this.answers.stop(this.current);
    }

    /** Goes on with an answer that was stopped, cut or lost, in place. @param {string} id of the
     * assistant message */
    continueAnswer(id) {
        const message = this.current.messages[id];
        if (!message || !canContinue(message)) return;
        this.answers.goOn(this.current, message, { continue_final_message: true });
    }

    /** One option of the shown chat; undefined: as the model likes it. @param {string} name
     * @param {any} value */
    setOption(name, value) {
        const options = { ...this.current.options, [name]: value };
        if (value === undefined || value === '') delete options[name];
        this.current.options = options;
        if (this.current.head) this.save(this.current);
        this.tell('options');
    }

    /** New chats begin as the shown one. */
    keepOptions() {
        this.#setNew(this.current.options ?? {});
    }

    /** One option of chats that are still to be made. @param {string} name @param {any} value */
    setNewOption(name, value) {
        const options = { ...this.settings.get('newChat'), [name]: value };
        if (value === undefined || value === '') delete options[name];
        this.#setNew(options);
    }

    /** An empty chat is a new one still. @param {import('./store.js').ChatOptions} options */
    #setNew(options) {
        const before = this.settings.get('newChat');
        this.settings.set('newChat', options);
        if (this.current.head || JSON.stringify(this.current.options ?? {}) !== JSON.stringify(before)) return;
        this.current.options = { ...options };
        this.tell('options');
    }

    /** The model that the server has loaded, or is about to. */
    get loadedModel() {
        return this.connection.server?.next_model || this.connection.session?.session?.model || this.httpModel?.id || '';
    }

    /** How many tokens the model reads; undefined: not known yet. */
    get context() {
        return this.connection.session?.limits?.n_ctx ?? this.httpModel?.meta?.n_ctx ?? this.httpModel?.meta?.n_ctx_train;
    }

    /** How many tokens a text has. @param {string} content @returns {Promise<number>} @throws where the server does not say */
    async count(content) {
        const reply = await this.connection.fetch('tokenize', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ content, parse_special: false }) });
        if (!reply.ok) throw new Error(t`The server does not count tokens.`);
        return (await reply.json()).tokens.length;
    }

    /** The model that answers in a chat. @param {Conversation} [conversation] */
    modelOf(conversation = this.current) {
        return conversation.options?.model ?? this.loadedModel;
    }

    /** Asks what waited, unless another tab was faster. @param {Conversation} conversation
     * @param {import('./store.js').Queued} entry */
    async askQueued(conversation, entry) {
        if (!(await this.history.takeQueued(conversation, entry.id))) return;
        this.#setQueue(conversation, (conversation.queue ?? []).filter(({ id }) => id !== entry.id));
        this.send(entry.text, entry.attachments, {}, conversation);
    }
}
