/**
 * Answers on their way: a branch of a conversation is sent, and what comes back is written into its
 * message; after a reload they are picked up again. The verbs that people use are Chat's.
 */
import { addMessage, isAsked, noteTool, optionFields, pathTo, shownAnswers, toInput } from './store.js';
import { newId, throttleFrames } from '../util.js';

/**
 * @typedef {import('./store.js').Conversation} Conversation
 * @typedef {import('./store.js').Message} Message
 */

const SAVE_MS = 1_000;
/** How long the size of the context is waited for, right after the page was opened. */
const CONTEXT_WAIT_MS = 3_000;
const SHOW_MS = 66; // at most 15 renderings a second
const ASK_AGAIN_MS = 10 * 60_000; // as long as the server knows a question again by its id

const lockOf = (id) => `parley.ask.${id}`;

/** Keeps other tabs from asking for the same answer; returns what ends that. Over plain HTTP there
 * are no locks: the server knows the question again. */
function holdAsking(id) {
    let end = () => {};
    const held = new Promise((resolve) => (end = () => resolve(undefined)));
    navigator.locks?.request(lockOf(id), () => held);
    return end;
}

/** Waits while another tab is about to ask for an answer; false if none is. @param {string} id */
async function waitForAsking(id) {
    const { locks } = navigator;
    if (!locks || (await locks.request(lockOf(id), { ifAvailable: true }, (lock) => !!lock))) return false;
    await locks.request(lockOf(id), () => {});
    return true;
}

/** @param {string} id */
export const modelName = (id) => (id.includes('/') ? id : id ? id.charAt(0).toUpperCase() + id.slice(1) : 'Model');

export class Answers {
    /** @param {import('./chat.js').Chat} chat */
    constructor(chat) {
        this.chat = chat;
        /** Running answers by message id. @type {Map<string, any>} */
        this.runs = new Map();
        /** Answers that are about to be asked for, each with what gives up its lock.
         * @type {Map<string, () => void>} */
        this.asking = new Map();
        /** The last progress event of a running answer, by message id. @type {Map<string, any>} */
        this.progress = new Map();
    }

    /**
     * Adds an answer to a question and asks for it; where the chat has a second model, its answer too.
     * @param {Conversation} conversation @param {Message} question
     * @param {{thinking?: boolean, model?: string, beside?: string}} [options] model: another than that of the chat; beside: an answer
     */
    begin(conversation, question, { thinking = this.chat.settings.get('thinking'), model, beside } = {}) {
        const path = pathTo(conversation, question.id);
        const add = (modelId, other = beside) => {
            const fields = { thinking, model: modelName(modelId), modelId, ...(other ? { beside: other } : {}) };
            return addMessage(conversation, { role: 'assistant', parent: question.id, status: 'streaming', ...fields });
        };
        const answer = add(model ?? this.chat.modelOf(conversation));
        const second = model ? undefined : conversation.options?.beside;
        const both = second ? [answer, add(second, answer.id)] : [answer];
        conversation.head = beside ?? answer.id; // what stands beside is not gone on with
        for (const one of both) this.ask(conversation, one, path);
    }

    /**
     * Sends a branch and writes what comes back into `answer`.
     * @param {Conversation} conversation @param {Message} answer @param {Message[]} path @param {object} [more] fields
     */
    async ask(conversation, answer, path, more = {}) {
        this.chat.live.set(conversation.id, conversation);
        answer.askId ??= newId();
        answer.modelId ??= this.chat.modelOf(conversation);
        this.progress.set(answer.id, { kind: 'waiting' });
        this.chat.tell('conversation');
        this.chat.save(conversation);
        this.#stopAsking(answer.id);
        this.asking.set(answer.id, holdAsking(answer.id));
        let input, tools;
        try {
            tools = await this.#tools(conversation, answer);
            const plan = await this.#plan(path);
            if (plan) answer.sources = plan.sources;
            else delete answer.sources;
            input = await toInput(path, (attachment) => this.#urlOf(answer, attachment), plan);
        } catch (error) {
            if (answer.status !== 'streaming') return;
            this.#end(conversation, answer, { status: 'failed', error: { code: error.code ?? 'server_error', message: error.message } });
            return;
        }
        if (answer.status !== 'streaming') return;
        // The whole branch goes along each time: the server need not keep the conversation.
        const body = { ...optionFields(conversation.options), ...tools, ...more, input, store: false, chat_template_kwargs: { enable_thinking: answer.thinking } };
        if (answer.modelId) body.model = answer.modelId;
        if (this.chat.settings.get('staysHere')) body.local = true;
        this.#listen(conversation, answer, (sink) => this.chat.connection.generate(body, sink, answer.askId));
    }

    /** Goes on in place with an answer that was not finished. @param {Conversation} conversation
     * @param {Message} message @param {object} [more] fields */
    goOn(conversation, message, more) {
        const { text, reasoning = '', tools } = message;
        message.before = { text, reasoning, ...(tools ? { tools: structuredClone(tools) } : {}) };
        message.status = 'streaming';
        for (const name of ['responseId', 'askId', 'modelId', 'error', 'reason']) delete message[name];
        this.ask(conversation, message, pathTo(conversation, message.id), more);
    }

    /** Whether an answer of the shown branch is on its way. @param {Conversation} conversation */
    isBusy(conversation) {
        return shownAnswers(conversation).some(({ status }) => status === 'streaming');
    }

    /** Ends what is being answered in the shown branch. @param {Conversation} conversation */
    stop(conversation) {
        for (const message of shownAnswers(conversation)) {
            const run = this.runs.get(message.id);
            if (run) run.cancel();
            // Its images are still being packed: nothing was asked for yet.
            else if (message.status === 'streaming') this.#end(conversation, message, { status: 'cancelled' });
        }
    }

    /** The tools that an answer may call; what it has to do without is noted in it. */
    async #tools({ options }, answer) {
        delete answer.without;
        return options?.tools && (await import('./tools.js')).toolFields(this.chat, options.tools, answer);
    }

    /** What of long documents goes along; only chats with documents need it. @param {Message[]} path */
    async #plan(path) {
        if (!path.some(({ attachments }) => attachments?.some(({ kind }) => kind === 'text'))) return null;
        // Without what chooses, as while the server is away, everything goes along once it is back.
        const chooser = await import('./sources.js').catch(() => null);
        const until = performance.now() + CONTEXT_WAIT_MS;
        while (!this.chat.context && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
        return chooser && chooser.readingPlan(path, { context: this.chat.context, count: (text) => this.chat.count(text) });
    }

    /** Lets other tabs look at an answer that was about to be asked for. @param {string} id */
    #stopAsking(id) {
        this.asking.get(id)?.();
        this.asking.delete(id);
    }

    /** Where the model finds an image or a video, once it is there; stopping the answer stops the
     * way. */
    async #urlOf(answer, attachment) {
        const show = () => {
            if (answer.status !== 'streaming') return this.chat.uploads.cancel(attachment);
            const way = this.chat.uploads.progressOf(attachment);
            if (!way) return;
            this.progress.set(answer.id, { kind: 'progress', phase: `upload_${way.phase}`, processed: way.done, total: way.total });
            this.chat.tell('message', answer.id);
        };
        this.chat.uploads.addEventListener('change', show);
        try {
            return await this.chat.uploads.urlOf(attachment);
        } finally {
            this.chat.uploads.removeEventListener('change', show);
            this.progress.set(answer.id, { kind: 'waiting' });
        }
    }

    /**
     * After a reload: attaches to an answer that was running (the server says if it no longer has
     * it), asks again what was not heard of, or says that the answer is cut. What another tab is
     * about to ask is left to it.
     */
    async pickUp(conversation, message) {
        if (!message.responseId && (await waitForAsking(message.id))) {
            this.chat.took(conversation, await this.chat.history.refresh(conversation).catch(() => []));
        }
        if (message.status !== 'streaming' || this.runs.has(message.id)) return;
        if (message.responseId) {
            this.progress.set(message.id, { kind: 'lost' });
            this.#listen(
                conversation,
                message,
                (sink) => this.chat.connection.resume(/** @type {string} */ (message.responseId), sink),
                true,
            );
            return;
        }
        if (!message.text && !message.reasoning && Date.now() - message.created < ASK_AGAIN_MS) {
            this.ask(conversation, message, pathTo(conversation, message.parent));
            return;
        }
        this.#end(conversation, message, { status: 'failed', error: { code: 'connection_lost', message: '' } });
    }

    /**
     * Writes the events of a run into its message.
     * @param {Conversation} conversation @param {Message} message
     * @param {(sink: (event: any) => void) => import('../protocol/connection.js').Run} begin
     * @param {boolean} [replay] the text comes again from its start
     */
    #listen(conversation, message, begin, replay = false) {
        const show = throttleFrames(() => this.chat.tell('message', message.id), SHOW_MS);
        const before = message.before ?? { text: '', reasoning: '', tools: [] };
        let thinkingSince = 0;
        let saveTimer = 0;
        const saveSoon = () => {
            saveTimer ||= setTimeout(() => {
                saveTimer = 0;
                if (message.status === 'streaming') this.chat.save(conversation);
            }, SAVE_MS);
        };
        const restart = () => {
            if (!replay) return;
            replay = false;
            message.text = before.text;
            message.reasoning = before.reasoning;
            takeTools();
        };
        const takeTools = (tools = []) => {
            message.tools = structuredClone(before.tools ?? []);
            for (const one of tools) noteTool(message, { kind: 'tool', ...one, at: before.text.length + one.at });
            if (!message.tools.length) delete message.tools;
        };
        const takeImages = async ({ id, images }) => {
            const tools = images?.length && (await import('./tools.js').catch(() => null));
            if (!tools) return;
            tools.takeImages(message, id, images);
            this.chat.tell('message', message.id);
            this.chat.save(conversation);
        };
        const run = begin((event) => {
            switch (event.kind) {
                case 'started':
                    message.responseId = event.responseId;
                    this.progress.set(message.id, event);
                    this.chat.save(conversation); // other tabs follow it by this
                    this.#stopAsking(message.id);
                    break;
                case 'waiting':
                case 'queued':
                case 'progress':
                case 'lost':
                    this.progress.set(message.id, event);
                    break;
                case 'resumed':
                    this.progress.set(message.id, { kind: 'started' });
                    break;
                case 'reasoning':
                    restart();
                    thinkingSince ||= performance.now();
                    message.reasoning = (message.reasoning ?? '') + event.delta;
                    this.progress.delete(message.id);
                    saveSoon();
                    break;
                case 'text':
                    restart();
                    if (thinkingSince && message.reasoningMs === undefined) {
                        message.reasoningMs = performance.now() - thinkingSince;
                    }
                    message.text += event.delta;
                    this.progress.delete(message.id);
                    saveSoon();
                    break;
                case 'reset':
                    replay = false;
                    message.text = before.text + event.text;
                    message.reasoning = before.reasoning + event.reasoning;
                    takeTools(event.tools);
                    event.tools.forEach(takeImages);
                    break;
                case 'tool':
                case 'tool-arguments':
                case 'tool-output':
                    restart();
                    noteTool(message, event);
                    takeImages(event);
                    this.progress.delete(message.id);
                    saveSoon();
                    break;
                case 'stats':
                    message.timings = { ...message.timings, ...event.timings };
                    if (event.context) message.context = event.context;
                    break;
                case 'end':
                    clearTimeout(saveTimer);
                    if (thinkingSince && message.reasoningMs === undefined) {
                        message.reasoningMs = performance.now() - thinkingSince;
                    }
                    this.#end(conversation, message, event);
                    return;
            }
            show();
        });
        if (!run.done) this.runs.set(message.id, run);
        this.chat.tell('message', message.id);
        this.chat.tell('list');
    }

    /** @param {Conversation} conversation @param {Message} message @param {any} event */
    #end(conversation, message, event) {
        this.runs.delete(message.id);
        this.progress.delete(message.id);
        this.#stopAsking(message.id);
        delete message.before;
        if (event.timings) message.timings = { ...message.timings, ...event.timings };
        if (event.usage) message.usage = event.usage;
        if (event.timings?.server && event.model) message.model = event.model; // which a rule has chosen
        if (event.status === 'completed') message.status = 'done';
        else if (event.status === 'cancelled') message.status = 'stopped';
        else if (event.status === 'incomplete') {
            message.status = 'cut';
            message.reason = event.reason;
        } else {
            message.status = 'failed';
            message.error = event.error ?? { code: 'server_error', message: '' };
        }
        conversation.updated = Date.now();
        if (conversation !== this.chat.current && !this.chat.removed.has(conversation)) {
            const goesOn = Object.keys(conversation.messages).some((id) => this.runs.has(id) || this.asking.has(id));
            if (!goesOn) this.chat.live.delete(conversation.id);
            this.chat.unread.add(conversation.id);
        }
        this.chat.save(conversation);
        this.chat.tell('message', message.id);
        this.chat.tell('finished', message);
        this.chat.tell('list');
        // A stopped or failed answer leaves the queue to the user; of two that stand side by side the later one counts.
        const [next] = conversation.queue ?? [];
        const first = conversation.messages[message.beside ?? ''] ?? message;
        if (next && !message.tools?.some(isAsked) && /^(done|cut)$/.test(first.status) && !this.isBusy(conversation)) this.chat.askQueued(conversation, next);
    }
}
