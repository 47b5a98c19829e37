/**
 * Tools that the server runs (MCP servers): which there are, which a chat has, what a person says
 * about a call, what a call brought. Fetched with the first use.
 *
 *     const servers = await readServers(chat);                       // as GET /v1/mcp says them
 *     const fields = await toolFields(chat, conversation.options.tools, answer);   // of a request
 *     decide(chat, message, tool, true);                             // a call that was asked about runs
 *
 * @typedef {import('./store.js').ToolCall} ToolCall
 * @typedef {import('./store.js').ToolChoice} ToolChoice
 * @typedef {import('./store.js').Message} Message
 * @typedef {{name: string, title: string, description: string, read_only: boolean, approval: string, input_schema: any}} Tool
 * @typedef {{server_label: string, kind: string, state: 'off'|'connecting'|'ready'|'down', error: string|null, name: string, tools_left_out: number,
 *            tools: Tool[], resources: any[], prompts: any[]}} Server
 */
import { t } from '../language.js';
import { newId } from '../util.js';
import { addMessage, isAsked } from './store.js';

/** @param {import('./chat.js').Chat} chat @returns {Promise<Server[]>} @throws where the server does not say */
export async function readServers(chat) {
    const reply = await chat.connection.fetch('v1/mcp', { cache: 'no-store' });
    if (!reply.ok) throw new Error(t`The server does not answer.`);
    return (await reply.json()).data;
}

/** Asks the server to try one again that is down. @param {import('./chat.js').Chat} chat @param {string} label */
export async function retryServer(chat, label) {
    await chat.connection.fetch(`v1/mcp/${label}/retry`, { method: 'POST' }).catch(() => {});
}

/**
 * The tools of a chat as fields of a request. A server that cannot be used now is left out, and the
 * answer says so. @param {import('./chat.js').Chat} chat @param {ToolChoice} choice @param {Message} answer
 */
export async function toolFields(chat, choice, answer) {
    const servers = await readServers(chat).catch(() => null);
    const tools = [];
    for (const [label, { only, always = [] }] of Object.entries(choice)) {
        const server = servers?.find((one) => one.server_label === label);
        if (servers && !/^(ready|connecting)$/.test(server?.state ?? '')) {
            (answer.without ??= []).push({ server: label, why: server?.error ?? t`this server has none of this name` });
            continue;
        }
        const isThere = (name) => server?.state !== 'ready' || server.tools.some((one) => one.name === name);
        const [some, unasked] = [only?.filter(isThere), always.filter(isThere)];
        tools.push({
            type: 'mcp',
            server_label: label,
            ...(some ? { allowed_tools: some } : {}),
            ...(unasked.length ? { require_approval: { never: { tool_names: unasked } } } : {}),
        });
    }
    return tools.length ? { tools } : {};
}

/** @param {ToolChoice} [choice] @param {string} label @param {{only?: string[], always?: string[]}|undefined} one undefined: none of it
 * @returns {ToolChoice|undefined} what is left */
export function choiceWith(choice, label, one) {
    const { [label]: before, ...rest } = choice ?? {};
    const all = one ? { ...rest, [label]: Object.fromEntries(Object.entries({ ...before, ...one }).filter(([, list]) => list)) } : rest;
    return Object.keys(all).length ? all : undefined;
}

/** A person's word about a call. @param {import('./chat.js').Chat} chat @param {Message} message
 * @param {ToolCall} tool @param {boolean} allowed @param {boolean} [always] and about every one of this tool in this chat */
export function decide(chat, message, { id, server = '', name }, allowed, always = false) {
    const conversation = chat.current;
    const asked = (message.tools ?? []).filter(isAsked);
    for (const one of asked) if (one.id === id || (always && one.server === server && one.name === name)) one.allowed = allowed;
    if (always) {
        const { tools } = conversation.options ?? {};
        const names = new Set([...(tools?.[server]?.always ?? []), name]);
        chat.setOption('tools', choiceWith(tools, server, { always: [...names] }));
    }
    if (asked.some(isAsked)) {
        chat.save(conversation);
        chat.tell('message', message.id);
    } else chat.answers.goOn(conversation, message);
}

/** A call that failed once more, with what follows it, as another version of the answer.
 * @param {import('./chat.js').Chat} chat @param {Message} message @param {ToolCall} tool */
export function callAgain(chat, message, { id, server, name, arguments: given, at }) {
    const { tools = [], attachments = [], parent, text, model, thinking } = message;
    const before = tools.slice(0, tools.findIndex((one) => one.id === id));
    const again = { id: newId('mcpr_'), server, name, arguments: given, at, allowed: true };
    const kept = attachments.filter(({ tool }) => before.some((one) => one.id === tool)).map((one) => ({ ...one, id: newId('a_') }));
    const answer = addMessage(chat.current, {
        role: 'assistant', parent, model, thinking, text: text.slice(0, at),
        tools: structuredClone([...before, { ...again, approvalId: again.id }]),
        ...(kept.length ? { attachments: kept } : {}),
    });
    chat.answers.goOn(chat.current, answer);
}

/** The images of a result become files of its message. @param {Message} message @param {string} id of the call
 * @param {string[]} images as data URIs */
export function takeImages(message, id, images) {
    const made = images.map((uri, i) => {
        const [, mime, data] = /** @type {RegExpExecArray} */ (/^data:([^;,]*);base64,(.*)$/s.exec(uri) ?? ['', '', '']);
        const blob = blobOf(data, mime);
        const name = t`Image ${i + 1} of the result`;
        return { id: newId('a_'), kind: /** @type {const} */ ('image'), name, mime, width: 0, height: 0, bytes: blob.size, blob, tool: id };
    });
    message.attachments = [...(message.attachments ?? []).filter(({ tool }) => tool !== id), ...made];
}

/** @param {string} base64 @param {string} mime */
export function blobOf(base64, mime) {
    return new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], { type: mime });
}
