/**
 * One chat in several places: what a writer has of it and what is kept become one. Messages are
 * only ever added, so two writers never take anything from each other; one that is deleted stays as
 * an empty record, and a deletion yields to what was written to it since. A field (title, options,
 * place in the list, shown branch) is the later writer's. Pure functions; history.js and history_server.js keep chats
 * with them.
 *
 *     const changed = takeIn(conversation, known, theirs, runs);   // what others wrote since
 *     const { fields, messages } = changesOf(conversation, known);   // what is to be written
 *
 * @typedef {import('./store.js').Conversation} Conversation
 * @typedef {import('./store.js').Message} Message
 * @typedef {{revision: number, fields: Record<string, string>, messages: Map<string, string>, ended: Map<string, string|undefined>,
 *            files: Set<string>}} Known
 *   What is kept of a chat as this writer knows it, each value as JSON. ended: answers that were
 *   seen to end, with the name they were asked for by; files: the attachments whose bytes are kept.
 * @typedef {{title: string, head: string|null, options: any, place?: any, queue?: any[], created: number, updated: number, revision: number,
 *            n_messages: number, messages: Message[]}} Theirs   the messages that are newer than Known.revision
 */

/** A chat without anything, its fields as JSON. */
export const NOTHING = { title: '""', head: 'null', options: '{}', place: '{}' };

/** @param {Record<string, string>} [fields] @returns {Known} of a chat that is not kept yet */
export const unknown = (fields = NOTHING) => ({ revision: 0, fields, messages: new Map(), ended: new Map(), files: new Set() });

/** @param {Known} known @returns {Known} */
export function copyOf(known) {
    const { messages, ended, files } = known;
    return { ...known, messages: new Map(messages), ended: new Map(ended), files: new Set(files) };
}

/** Without the bytes of its files. */
export function bare(one) {
    const attachments = one.attachments?.map(({ blob, missing, ...rest }) => (missing && !rest.sha256 ? { ...rest, missing } : rest));
    return attachments ? { ...one, attachments } : one;
}

/** @param {Conversation} conversation @param {string} name */
function fieldOf(conversation, name) {
    if (name === 'queue') return (conversation.queue ?? []).map(bare);
    return conversation[name] ?? (name === 'options' || name === 'place' ? {} : null);
}

const textOf = (message) => JSON.stringify(bare(message));

/** Whether a chat has messages, or questions that wait, that are not kept.
 * @param {Conversation} conversation @param {Known} known */
export function hasNews({ messages, queue = [] }, known) {
    const waited = JSON.parse(known.fields.queue ?? '[]');
    return Object.keys(messages).some((id) => !known.messages.has(id)) || queue.some(({ id }) => !waited.some((one) => one.id === id));
}

/** Messages, each behind its parent. @param {Conversation} conversation */
function inOrder({ messages }) {
    /** @type {Set<Message>} */
    const ordered = new Set();
    for (const message of Object.values(messages)) {
        const path = new Set();
        for (let m = message; m && !ordered.has(m) && !path.has(m); m = messages[m.parent ?? '']) path.add(m);
        for (const m of [...path].reverse()) ordered.add(m);
    }
    return [...ordered];
}

/**
 * What of a chat is new or other than it is kept, as JSON; null: nothing.
 * @param {Conversation} conversation @param {Known} known
 * @returns {{fields: [string, string][], messages: [string, string][]}|null}
 */
export function changesOf(conversation, known) {
    const fields = Object.keys(known.fields).map((name) => /** @type {[string, string]} */ ([name, JSON.stringify(fieldOf(conversation, name))]));
    const changed = fields.filter(([name, value]) => value !== known.fields[name]);
    // An answer that several follow is not unfinished by the slower one.
    const own = inOrder(conversation).filter(({ id, status, askId }) => status !== 'streaming' || !known.ended.has(id) || known.ended.get(id) !== askId);
    const messages = own.map((message) => /** @type {[string, string]} */ ([message.id, textOf(message)])).filter(([id, text]) => known.messages.get(id) !== text);
    return changed.length || messages.length ? { fields: changed, messages } : null;
}

/** These changes are kept now. @param {Known} known
 * @param {{fields: [string, string][], messages: [string, string][]}} changes */
export function noteKept(known, changes, revision) {
    known.revision = revision;
    known.fields = { ...known.fields, ...Object.fromEntries(changes.fields) };
    for (const [id, text] of changes.messages) known.messages.set(id, text);
}

/**
 * What is new in a chat, with what it stands on, as JSON values: for a page that goes away before
 * it is kept. @param {Conversation} conversation @param {Known} known
 */
export function newsOf(conversation, known) {
    const { fields, messages } = changesOf(conversation, { ...known, fields: { ...NOTHING, queue: '[]', ...known.fields } }) ?? { fields: [], messages: [] };
    return {
        isNew: !known.revision,
        // Where it has messages that nobody has: all of it, for a chat that is deleted elsewhere in the same moment.
        whole: hasNews(conversation, known) && { fields: known.fields, messages: [...known.messages] },
        fields: fields.map(([name, value]) => [name, value, known.fields[name] ?? '[]']),
        messages: messages.map(([id, text]) => [id, text, known.messages.get(id)]),
    };
}

/** Makes a chat again that is kept no more, as it was before its news. @param {any} chat without messages
 * @param {any} whole see newsOf @returns {Conversation} */
export function madeAgain(chat, { fields, messages }) {
    for (const [name, value] of Object.entries(fields)) chat[name] = JSON.parse(value);
    for (const [id, text] of messages) {
        chat.messages[id] = JSON.parse(text);
        for (const one of chat.messages[id].attachments ?? []) one.missing = true;
    }
    return chat;
}

/** Does to a chat what newsOf said, where nobody changed it since. @param {Conversation} conversation
 * @param {any} news */
export function applyNews(conversation, { fields, messages }) {
    for (const [name, value, base] of fields) {
        if (name === 'queue') conversation.queue = mergeQueue(JSON.parse(base), JSON.parse(value), conversation.queue ?? []);
        else if (JSON.stringify(fieldOf(conversation, name)) === base) conversation[name] = JSON.parse(value);
    }
    for (const [id, text, base] of messages) {
        const there = conversation.messages[id];
        if (there ? textOf(there) !== base : base) continue;
        const message = JSON.parse(text);
        for (const one of message.attachments ?? []) {
            const blob = there?.attachments?.find((other) => other.id === one.id)?.blob;
            Object.assign(one, blob ? { blob } : { missing: true });
        }
        conversation.messages[id] = message;
    }
}

/** Questions that wait: those of both sides, without what either took away. */
function mergeQueue(base, mine, theirs) {
    const has = (list, { id }) => list.some((one) => one.id === id);
    return [...theirs.map((one) => mine.find(({ id }) => id === one.id) ?? one).filter((one) => has(mine, one) || !has(base, one)), ...mine.filter((one) => !has(base, one) && !has(theirs, one))];
}

/**
 * Takes in what others wrote. What was changed here too stands, and is written next.
 * @param {Conversation} conversation @param {Known} known @param {Theirs} theirs
 * @param {Map<string, {cancel: () => void}>} [runs] answers that are coming here, by message
 * @returns {string[]} messages that are new or other than before
 */
export function takeIn(conversation, known, theirs, runs = new Map()) {
    const changed = [];
    for (const message of theirs.messages) {
        const { id, status, askId } = message;
        const mine = conversation.messages[id];
        const run = runs.get(id);
        if (status !== 'streaming') known.ended.set(id, askId);
        const text = textOf(message);
        if (run && status === 'stopped' && mine?.askId === askId) run.cancel();
        if (run || (mine && mine.status !== 'streaming' && known.messages.get(id) !== textOf(mine))) {
            known.messages.set(id, text);
            continue;
        }
        known.messages.set(id, text);
        if (mine && textOf(mine) === text) continue;
        const files = message.attachments?.map((one) => {
            const here = mine?.attachments?.find((other) => other.blob && other.id === one.id);
            return here ? Object.assign(here, one) : one;
        });
        for (const name of Object.keys(mine ?? {})) delete mine[name];
        conversation.messages[id] = Object.assign(mine ?? {}, message, files ? { attachments: files } : {});
        changed.push(id);
    }
    for (const name of Object.keys(known.fields)) {
        const given = theirs[name] ?? fieldOf(/** @type {any} */ ({}), name);
        const base = known.fields[name];
        if (name === 'queue') conversation.queue = mergeQueue(JSON.parse(base), conversation.queue ?? [], given);
        else if (JSON.stringify(fieldOf(conversation, name)) === base) conversation[name] = given;
        known.fields = { ...known.fields, [name]: JSON.stringify(name === 'queue' ? given.map(bare) : given) };
    }
    conversation.created ||= theirs.created;
    conversation.updated = Math.max(conversation.updated, theirs.updated);
    known.revision = theirs.revision;
    return changed;
}
