/**
 * Chats to files and back. JSON holds everything, images included; Markdown is for reading. What
 * comes in is checked field by field: a file from elsewhere must not be able to break the page or
 * overwrite a chat.
 */
import { t } from '../language.js';
import { chatsOfZip, othersChats } from './import_others.js';
import { newConversation, readOptions, readPlace } from './store.js';
import { blobOf } from './tools.js';
import { blobToDataUri, newId } from '../util.js';

/** @typedef {import('./store.js').Conversation} Conversation */

const FORMAT = 'parley-chats';
const MAX_MESSAGES = 20_000;
const MAX_CHATS = 10_000;
const MAX_TOOLS = 1_000;
const STATUSES = new Set(['done', 'stopped', 'cut', 'failed']);

/** @param {Conversation[]} conversations @returns {Promise<string>} */
export async function toJson(conversations) {
    const chats = [];
    for (const conversation of conversations) {
        const messages = [];
        for (const message of Object.values(conversation.messages)) {
            const attachments = [];
            for (const { blob, ...rest } of message.attachments ?? []) {
                attachments.push(blob ? { ...rest, data: await blobToDataUri(blob) } : rest);
            }
            messages.push(attachments.length ? { ...message, attachments } : message);
        }
        chats.push({ ...conversation, messages });
    }
    return JSON.stringify({ format: FORMAT, version: 1, chats }, null, 1);
}

/** Chats of JSON, or of a ZIP file as ChatGPT exports them.
 * @param {File} file @returns {Promise<Conversation[]>} with new ids @throws {Error} with a sentence for the user */
export async function fromFile(file) {
    if ((await file.slice(0, 4).text()) !== 'PK\x03\x04') return fromJson(await file.text());
    const { Zip } = await import('../documents/zip.js');
    return read(await chatsOfZip(await Zip.open(file), parse));
}

/**
 * @param {string} text @returns {Conversation[]} with new ids
 * @throws {Error} with a sentence for the user
 */
export function fromJson(text) {
    const file = parse(text);
    return read(file?.format === FORMAT && Array.isArray(file.chats) ? file.chats : othersChats(file));
}

/** @param {string} text */
function parse(text) {
    try {
        return JSON.parse(text);
    } catch {
        throw new Error(t`This file is not JSON.`);
    }
}

/** @param {any[]|null} chats @returns {Conversation[]} */
function read(chats) {
    if (!chats) throw new Error(t`This file holds no exported chats of Parley, ChatGPT, Open WebUI or llama.cpp.`);
    return chats.slice(0, MAX_CHATS).map(readChat).filter((chat) => chat.head);
}

/** Those of `chats` that no kept one holds already, all of its messages: what is imported twice, or
 * was gone on with since, is kept once. @param {Conversation[]} chats @param {Conversation[]} kept */
export function notThere(chats, kept) {
    /** @type {Map<string, Set<string>[]>} the chats that a message is in */
    const holders = new Map();
    const add = (chat) => {
        const said = new Set(Object.values(chat.messages).map(saying));
        for (const one of said) holders.set(one, [...(holders.get(one) ?? []), said]);
    };
    for (const chat of kept) add(chat);
    return chats.filter((chat) => {
        const said = Object.values(chat.messages).map(saying);
        if ((holders.get(said[0]) ?? []).some((known) => said.every((one) => known.has(one)))) return false;
        add(chat);
        return true;
    });
}

/** What a message is, whatever its id. @param {import('./store.js').Message} message */
const saying = ({ role, text, reasoning = '', created }) => JSON.stringify([role, text, reasoning, created]);

/** @returns {Conversation} */
function readChat(given) {
    const conversation = newConversation(readOptions(given?.options));
    conversation.title = string(given?.title).slice(0, 200);
    conversation.created = time(given?.created);
    conversation.updated = time(given?.updated);
    const place = readPlace(given?.place ?? given?.options?.place); // the server exports it among the options
    if (Object.keys(place).length) conversation.place = place;
    const list = Array.isArray(given?.messages) ? given.messages.slice(0, MAX_MESSAGES) : [];
    const ids = new Map(list.map((message) => [message?.id, newId('m_')]));
    for (const message of list) {
        const id = ids.get(message?.id);
        if (!id || (message.role !== 'user' && message.role !== 'assistant')) continue;
        const attachments = (Array.isArray(message.attachments) ? message.attachments : []).map(readAttachment);
        conversation.messages[id] = {
            id,
            parent: ids.get(message.parent) ?? null,
            role: message.role,
            text: string(message.text),
            status: STATUSES.has(message.status) ? message.status : 'stopped',
            created: time(message.created),
            ...(message.erased === true ? { erased: true } : {}),
            ...(message.reasoning ? { reasoning: string(message.reasoning) } : {}),
            ...(Number.isFinite(message.reasoningMs) ? { reasoningMs: message.reasoningMs } : {}),
            ...(message.model ? { model: string(message.model).slice(0, 100) } : {}),
            ...(attachments.length ? { attachments } : {}),
            ...(Array.isArray(message.tools) ? { tools: message.tools.slice(0, MAX_TOOLS).map(readTool) } : {}),
        };
    }
    const last = Object.values(conversation.messages).at(-1);
    conversation.head = ids.get(given?.head) ?? last?.id ?? null;
    if (conversation.head && !conversation.messages[conversation.head]) conversation.head = last?.id ?? null;
    return conversation;
}

/** @returns {import('./store.js').ToolCall} */
function readTool(given) {
    return {
        id: string(given?.id),
        callId: string(given?.callId),
        name: string(given?.name).slice(0, 200),
        arguments: string(given?.arguments),
        ...(typeof given?.output === 'string' ? { output: given.output, failed: given.failed === true } : {}),
        ...(given?.server ? { server: string(given.server).slice(0, 100) } : {}),
        ...(given?.approvalId ? { approvalId: string(given.approvalId) } : {}),
        ...(typeof given?.allowed === 'boolean' ? { allowed: given.allowed } : {}),
        ...(Number.isFinite(given?.ms) ? { ms: given.ms } : {}),
        at: number(given?.at),
    };
}

function readAttachment(given) {
    const kind = given?.kind === 'video' || given?.kind === 'text' ? given.kind : 'image';
    const attachment = {
        id: newId('a_'),
        kind,
        name: string(given?.name).slice(0, 200) || 'file',
        mime: string(given?.mime).slice(0, 100),
        width: number(given?.width),
        height: number(given?.height),
        bytes: number(given?.bytes),
        ...(given?.tool ? { tool: string(given.tool) } : {}),
    };
    const match = /^data:([a-z]+\/[a-z0-9.+-]+);base64,([A-Za-z0-9+/=]*)$/i.exec(string(given?.data));
    const blob = given?.blob instanceof Blob ? given.blob : match && blobOf(match[2], match[1]);
    if (!blob) return { ...attachment, missing: true };
    return { ...attachment, mime: attachment.mime || blob.type, bytes: attachment.bytes || blob.size, blob };
}

const string = (value) => (typeof value === 'string' ? value : '');
const number = (value) => (Number.isFinite(value) && value >= 0 ? value : 0);
const time = (value) => (Number.isFinite(value) && value > 0 ? value : Date.now());
