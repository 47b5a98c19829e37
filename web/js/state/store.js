/**
 * The conversation tree: messages with parent ids, and one leaf (`head`) that says which branch is
 * shown. Pure data and pure functions; no DOM, no storage, so that tests run it under Node.
 *
 * @typedef {{id: string, kind: 'image'|'video'|'text', name: string, mime: string, width: number, height: number, bytes: number,
 *            seconds?: number, blob?: Blob, missing?: boolean, note?: string, tool?: string}} Attachment
 * @typedef {{code: string, message: string, status?: number}} MessageError
 * @typedef {'done'|'streaming'|'stopped'|'cut'|'failed'} MessageStatus
 *   cut: the token limit or the context ended it.
 * @typedef {{id: string, parent: string|null, role: 'user'|'assistant', text: string, reasoning?: string,
 *            reasoningMs?: number, attachments?: Attachment[], status: MessageStatus, reason?: string,
 *            error?: MessageError, timings?: any, context?: any, usage?: any, tools?: ToolCall[], model?: string,
 *            thinking?: boolean, responseId?: string, created: number, beside?: string, before?: {text: string, reasoning: string, tools?: ToolCall[]}, askId?: string,
 *            modelId?: string, erased?: boolean, sources?: import('./sources.js').Sources, without?: {server: string, why: string}[]}} Message
 *   beside: the answer that this one is shown beside; before: what an answer held that is being continued; without: servers whose
 *   tools it should have had; askId: by which the server knows the
 *   question again, if it asks modelId in the same words; erased: deleted, its place in the tree is
 *   kept for what stands behind it.
 * @typedef {{id: string, callId?: string, name: string, arguments: string, output?: string, failed?: boolean, at: number,
 *            server?: string, approvalId?: string, allowed?: boolean, progress?: number, note?: string, ms?: number,
 *            begun?: number}} ToolCall
 *   at: how much of the text came before it; server: the server runs it, as a tool of this MCP server; approvalId: a person was
 *   asked; allowed: and has said so; images of what came of it are attachments of the message with its id as `tool`
 * @typedef {Record<string, {only?: string[], always?: string[]}>} ToolChoice   which tools a chat has, by MCP server. only: these
 *   of it; always: these without asking
 * @typedef {{id: string, title: string, created: number, updated: number, head: string|null,
 *            messages: Record<string, Message>, options?: ChatOptions, queue?: Queued[], place?: Place,
 *            temporary?: boolean}} Conversation   temporary: never kept
 * @typedef {{folder?: string, pinned?: boolean, archived?: boolean}} Place   where a chat stands in the list
 * @typedef {{id: string, text: string, attachments: Attachment[]}} Queued   a question that waits for a running answer
 * @typedef {{systemPrompt?: string, temperature?: number, topP?: number, topK?: number, minP?: number,
 *            repeatPenalty?: number, presencePenalty?: number, frequencyPenalty?: number, maxTokens?: number, seed?: number,
 *            stop?: string, schema?: string, model?: string, beside?: string, tools?: ToolChoice}} ChatOptions
 *   what is missing is as the model likes it; stop: a sequence a line; schema: JSON; model: that answers here, whatever
 *   the server has loaded; beside: a second one that answers each question beside it
 */
import { t } from '../language.js';
import { newId } from '../util.js';

const TITLE_LENGTH = 60;

let lastCreated = 0;

/** Now, but never the same twice and behind the parent, whatever clock that has: the order of
 * siblings hangs on it. @param {number} parent */
function creationTime(parent) {
    lastCreated = Math.max(Date.now(), lastCreated + 1, parent + 1);
    return lastCreated;
}

/** @param {ChatOptions} [options] @returns {Conversation} */
export function newConversation(options) {
    const now = Date.now();
    const conversation = { id: newId('c_'), title: '', created: now, updated: now, head: null, messages: {} };
    return options && Object.keys(options).length ? { ...conversation, options: { ...options } } : conversation;
}

/** Each option: its name in a request and its range.
 * @type {Record<keyof ChatOptions, {field: string, min?: number, max?: number, step?: number}>} */
export const OPTIONS = {
    systemPrompt: { field: 'instructions' },
    temperature: { field: 'temperature', min: 0, max: 2, step: 0.1 },
    maxTokens: { field: 'max_output_tokens', min: 1, max: 1048576, step: 1 },
    topP: { field: 'top_p', min: 0, max: 1, step: 0.05 },
    topK: { field: 'top_k', min: 0, max: 100000, step: 1 },
    minP: { field: 'min_p', min: 0, max: 1, step: 0.01 },
    repeatPenalty: { field: 'repetition_penalty', min: 0.01, max: 2, step: 0.05 },
    presencePenalty: { field: 'presence_penalty', min: -2, max: 2, step: 0.1 },
    frequencyPenalty: { field: 'frequency_penalty', min: -2, max: 2, step: 0.1 },
    seed: { field: 'seed', min: 0, max: 4294967295, step: 1 },
    stop: { field: 'stop' },
    schema: { field: 'text' },
    model: { field: 'model' },
    beside: { field: '' },
    tools: { field: '' },
};
const STOPS_MAX = 16;
const STOP_BYTES = 256;

/** Options as the fields of a request; what is out of range is left out.
 * @param {ChatOptions} [options] */
export function optionFields(options = {}) {
    const given = Object.entries(readOptions(options)).filter(([name]) => OPTIONS[name].field).map(([name, value]) => {
        if (name === 'stop') value = value.split('\n').filter(Boolean);
        if (name === 'schema') value = { format: { type: 'json_schema', name: 'answer', schema: JSON.parse(value) } };
        return [OPTIONS[name].field, value];
    });
    return Object.fromEntries(given);
}

/** What is wrong with an option that is text; '': nothing. @param {string} name @param {string} value */
export function textProblem(name, value) {
    if (name === 'stop') {
        const list = value.split('\n').filter(Boolean);
        if (list.length > STOPS_MAX) return t`There may be ${STOPS_MAX} stop sequences.`;
        if (list.some((one) => new TextEncoder().encode(one).length > STOP_BYTES)) return t`A stop sequence may have ${STOP_BYTES} bytes.`;
    }
    if (name !== 'schema' || !value.trim()) return '';
    try {
        const schema = JSON.parse(value);
        return schema && typeof schema === 'object' && !Array.isArray(schema) ? '' : t`A JSON schema is an object: { "type": … }.`;
    } catch (error) {
        return t`This is not JSON: ${error.message}.`;
    }
}

/** Where a chat stands, with what is changed; nothing that says nothing stays in it.
 * @param {Place|undefined} place @param {Place} change @returns {Place} */
export function placeWith(place, change) {
    return Object.fromEntries(Object.entries({ ...place, ...change }).filter(([, value]) => value));
}

/** What of `given` is a place. @param {any} given @returns {Place} */
export function readPlace(given) {
    const folder = typeof given?.folder === 'string' ? given.folder.trim().slice(0, 80) : '';
    return placeWith({}, { folder, pinned: given?.pinned === true, archived: given?.archived === true });
}

/** What of `given` are options that may be. @param {any} given @returns {ChatOptions} */
export function readOptions(given) {
    const options = {};
    for (const [name, { min = 0, max = 0, step }] of Object.entries(OPTIONS)) {
        const value = name === 'tools' ? readChoice(given?.tools) : given?.[name];
        if (name === 'tools' ? value : step === undefined ? typeof value === 'string' && value.trim() && !textProblem(name, value) : Number.isFinite(value) && value >= min && value <= max && (step !== 1 || Number.isInteger(value))) {
            options[name] = value;
        }
    }
    return options;
}

/** What of `given` says which tools a chat has. @param {any} given @returns {ToolChoice|undefined} */
function readChoice(given) {
    const names = (list) => (Array.isArray(list) ? list.filter((one) => typeof one === 'string') : undefined);
    const choice = Object.entries(given ?? {}).filter(([, one]) => one && typeof one === 'object');
    return choice.length ? Object.fromEntries(choice.map(([server, { only, always }]) => [server, { only: names(only), always: names(always) }])) : undefined;
}

/**
 * Adds a message under `parent` and makes it the shown leaf.
 * @param {Conversation} conversation
 * @param {Partial<Message> & {role: 'user'|'assistant', parent: string|null}} fields
 * @returns {Message}
 */
export function addMessage(conversation, fields) {
    /** @type {Message} */
    const message = { id: newId('m_'), text: '', status: 'done', created: creationTime(conversation.messages[fields.parent ?? '']?.created ?? 0), ...fields };
    conversation.messages[message.id] = message;
    conversation.head = message.id;
    conversation.updated = Date.now();
    if (!conversation.title && message.role === 'user') conversation.title = titleOf(message);
    return message;
}

/** Every file of a conversation, those of questions that wait too.
 * @param {Conversation} conversation @returns {Attachment[]} */
export function attachmentsOf({ messages, queue = [] }) {
    return [...Object.values(messages), ...queue].flatMap((one) => one.attachments ?? []);
}

/** The shown branch, first message first. @param {Conversation} conversation @returns {Message[]} */
export function shownPath(conversation) {
    return pathTo(conversation, conversation.head);
}

/** @param {Conversation} conversation @param {string|null} leaf @returns {Message[]} */
export function pathTo(conversation, leaf) {
    const path = [];
    const seen = new Set();
    for (let id = leaf; id && !seen.has(id); id = conversation.messages[id]?.parent ?? null) {
        seen.add(id); // a damaged import must not loop
        const message = conversation.messages[id];
        if (!message) break;
        if (!message.erased) path.push(message);
    }
    return path.reverse();
}

/** Messages with the same parent, oldest first. @param {Conversation} conversation
 * @param {Message} message */
export function siblings(conversation, message) {
    return Object.values(conversation.messages)
        .filter((other) => other.parent === message.parent && other.role === message.role && (!other.erased || other === message))
        .sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1));
}

/**
 * Every message's siblings at once: a map from parent id (or '') to messages, oldest first.
 * @param {Conversation} conversation
 */
export function childrenByParent(conversation) {
    /** @type {Map<string, Message[]>} */
    const map = new Map();
    for (const message of Object.values(conversation.messages)) {
        const key = message.parent ?? '';
        const list = map.get(key);
        if (list) list.push(message);
        else map.set(key, [message]);
    }
    for (const list of map.values()) list.sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1));
    return map;
}

/** Shows the branch through `message`, down to its newest leaf. @param {Conversation} conversation
 * @param {Message} message */
export function showBranch(conversation, message) {
    const children = childrenByParent(conversation);
    let leaf = message;
    for (let list; (list = children.get(leaf.id))?.length; ) leaf = list.findLast(({ erased }) => !erased) ?? list[list.length - 1];
    conversation.head = leaf.id;
}

/** The answer that stands beside one: what it was asked beside, or what was asked beside it last.
 * @param {Message[]} list its siblings @param {Message} message @returns {Message|undefined} */
export function besideOf(list, message) {
    const others = list.filter(({ erased }) => !erased);
    return others.find(({ id }) => id === message.beside) ?? others.findLast(({ beside }) => beside === message.id);
}

/** Every answer of the shown branch, with those that stand beside one. @param {Conversation} conversation */
export function shownAnswers(conversation) {
    const children = childrenByParent(conversation);
    const answers = shownPath(conversation).filter(({ role }) => role === 'assistant');
    return answers.flatMap((one) => [one, besideOf(children.get(one.parent ?? '') ?? [], one)]).filter((one) => one !== undefined);
}

/** The messages that deleting one takes away: where there is another version of it, what follows
 * goes too; else that alone, and what follows moves up. @param {Conversation} conversation
 * @param {Message} message @returns {Message[]} */
export function erasedWith(conversation, message) {
    if (siblings(conversation, message).length < 2) return [message];
    const children = childrenByParent(conversation);
    const all = [message];
    for (const one of all) all.push(...(children.get(one.id) ?? []));
    return all.filter(({ erased }) => !erased);
}

/** Takes the content of messages away. @param {Conversation} conversation
 * @param {Message[]} list @returns {() => void} what puts it back */
export function eraseMessages(conversation, list) {
    const { head } = conversation;
    const before = list.map((message) => /** @type {[Message, Message]} */ ([message, { ...message }]));
    const other = siblings(conversation, list[0]).filter((one) => one !== list[0]).at(-1);
    for (const message of list) {
        const { id, parent, role, status, created } = message;
        for (const name of Object.keys(message)) delete message[name];
        Object.assign(message, { id, parent, role, status, created, text: '', erased: true });
    }
    if (other && list.length && list.some(({ id }) => id === head || pathIds(conversation, head).has(id))) showBranch(conversation, other);
    return () => {
        for (const [message, content] of before) {
            delete message.erased;
            Object.assign(message, content);
        }
        conversation.head = head;
    };
}

/** @param {Conversation} conversation @param {string|null} leaf */
function pathIds(conversation, leaf) {
    const ids = new Set();
    for (let id = leaf; id && !ids.has(id); id = conversation.messages[id]?.parent ?? null) ids.add(id);
    return ids;
}

/** The shown branch up to a message as a chat of its own. @param {Conversation} conversation
 * @param {string} id @returns {Conversation} */
export function branchOf(conversation, id) {
    const copy = newConversation(conversation.options);
    for (const { responseId, askId, before, beside, ...message } of pathTo(conversation, id)) {
        const attachments = message.attachments?.map((one) => ({ ...one, id: newId('a_') }));
        const made = addMessage(copy, { ...message, id: newId('m_'), parent: copy.head, ...(attachments ? { attachments } : {}) });
        if (made.status === 'streaming') made.status = 'stopped';
    }
    copy.title = conversation.title;
    if (conversation.place?.folder) copy.place = { folder: conversation.place.folder };
    return copy;
}

/** Whether an answer ended before its end and has something to go on from.
 * @param {Message} message */
export function canContinue(message) {
    const full = message.reason === 'context' || message.reason === 'context_length';
    const ended = message.status === 'stopped' || message.status === 'failed' || (message.status === 'cut' && !full);
    return ended && !message.tools?.length && !!(message.text || message.reasoning);
}

/** Whether a person is still to say if a call may run. @param {ToolCall} tool */
export const isAsked = ({ approvalId, allowed, output }) => !!approvalId && allowed === undefined && output === undefined;

/** Writes what was heard of a tool call into its message. @param {Message} message
 * @param {any} event a RunEvent */
export function noteTool(message, event) {
    const tools = (message.tools ??= []);
    if (event.kind === 'tool-output') {
        const call = tools.find((one) => one.callId === event.callId);
        if (call) Object.assign(call, { output: event.output, failed: event.failed });
        return;
    }
    const { kind, images, at = message.text.length, ...call } = event;
    if (call.server && call.output === undefined) call.begun = Date.now();
    const known = tools.find(({ id, approvalId }) => id === event.id || (approvalId && approvalId === event.approvalId));
    if (kind === 'tool-arguments') {
        if (known) known.arguments += event.delta;
    } else if (known) Object.assign(known, call);
    else tools.push({ ...call, at });
}

/** @param {Message} message */
export function titleOf(message) {
    // The first line that says something: not a fence, a rule or a mark of Markdown alone.
    const lines = message.text.split('\n').map((one) => one.replace(/^\s*(?:(?:`{3,}|~{3,}).*|[#>*+-]+(?=\s|$))/, '').replace(/\s+/g, ' ').trim());
    const line = lines.find((one) => /[\p{L}\p{N}]/u.test(one)) ?? message.text.trim().split('\n')[0].replace(/\s+/g, ' ');
    if (!line) return message.attachments?.length ? message.attachments[0].name : t`New chat`;
    return line.length > TITLE_LENGTH ? `${line.slice(0, TITLE_LENGTH - 1).trimEnd()}…` : line;
}

/**
 * The `input` items of a Responses request for a branch. Failed answers without text are left out,
 * and the question before them stays. Two user messages in a row are joined, as chat templates
 * expect turns to alternate. Tool calls go along where their results are known. If the last message
 * is an answer, it is one to be continued: its thoughts belong to it.
 * @param {Message[]} path
 * @param {(attachment: Attachment) => Promise<string>} toDataUri
 * @param {{textOf: (attachment: Attachment) => string|null, tail: {id: string, text: string}}|null} [plan] what of
 *   long documents goes along (sources.js); null: all of them
 */
export async function toInput(path, toDataUri, plan = null) {
    const items = [];
    for (const message of path) {
        if (message.role === 'assistant') {
            if (message === path.at(-1) && message.reasoning) {
                items.push({ type: 'reasoning', content: [{ type: 'reasoning_text', text: message.reasoning }] });
            }
            let from = 0;
            const say = (to = message.text.length) => {
                const text = message.text.slice(from, to);
                if (text) items.push({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] });
                from = Math.max(from, to);
            };
            for (const tool of message.tools ?? []) {
                const { id, callId, name, arguments: given, output, server: server_label, approvalId, allowed } = tool;
                if (output === undefined ? !approvalId : !callId && !server_label) continue;
                say(tool.at);
                if (!server_label) {
                    items.push({ type: 'function_call', call_id: callId, name, arguments: given });
                    items.push({ type: 'function_call_output', call_id: callId, output });
                } else if (output === undefined) {
                    // Who asks something else has not allowed it.
                    items.push({ type: 'mcp_approval_request', id: approvalId, server_label, name, arguments: given });
                    items.push({ type: 'mcp_approval_response', approval_request_id: approvalId, approve: !!allowed && message === path.at(-1) });
                } else {
                    const seen = (message.attachments ?? []).filter((one) => one.tool === id && !one.missing);
                    const images = await Promise.all(seen.map(toDataUri));
                    items.push({ type: 'mcp_call', id, approval_request_id: approvalId, server_label, name, arguments: given, output, images });
                }
            }
            say();
            continue;
        }
        const content = [];
        for (const attachment of message.attachments ?? []) {
            if (attachment.missing) continue;
            if (attachment.kind === 'text') {
                content.push({ type: 'input_text', text: plan?.textOf(attachment) ?? (await fileText(attachment)) });
                continue;
            }
            const uri = await toDataUri(attachment);
            content.push(
                attachment.kind === 'video'
                    ? { type: 'input_video', video_url: uri, ...attachment.video }
                    : { type: 'input_image', image_url: uri },
            );
        }
        if (plan && plan.tail.id === message.id) content.push({ type: 'input_text', text: plan.tail.text });
        if (message.text || !content.length) content.push({ type: 'input_text', text: message.text });
        const last = items[items.length - 1];
        if (last?.role === 'user') last.content.push(...content);
        else items.push({ type: 'message', role: 'user', content });
    }
    return items;
}

/** A text file as the model reads it: its name and its text in a fence that the text cannot
 * close. @param {Attachment} attachment */
async function fileText(attachment) {
    const text = await attachment.blob.text();
    const fence = '`'.repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((run) => run[0].length + 1)));
    return `File ${attachment.name}:\n${fence}\n${text}\n${fence}`;
}

/** One conversation as Markdown. @param {Conversation} conversation */
export function toMarkdown(conversation) {
    const parts = [`# ${conversation.title || 'Chat'}`];
    for (const message of shownPath(conversation)) {
        parts.push(`## ${message.role === 'user' ? 'You' : message.model || 'Answer'}`);
        for (const attachment of message.attachments ?? []) parts.push(`*${{ video: 'Video', text: 'File' }[attachment.kind] ?? 'Image'}: ${attachment.name}*`);
        for (const tool of message.tools ?? []) parts.push(`*Tool: ${tool.name} ${tool.arguments}*`);
        if (message.text) parts.push(message.text);
    }
    return `${parts.join('\n\n')}\n`;
}
