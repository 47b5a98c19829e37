/**
 * Chats that other pages exported, in the form of transfer.js: ChatGPT (conversations.json), Open
 * WebUI and llama.cpp. What they have beside questions and answers (system messages, tools, roots
 * of trees) is stepped over. Nothing is trusted here: transfer.js checks every field afterwards.
 */

/** @typedef {import('../documents/zip.js').Zip} Zip */

/** A list of chats may be larger than a part of a document. */
const MAX_LIST = 112 << 20;
/** Where ChatGPT marks a source: private letters around what only its page can follow. */
const CITATION = /\ue200[^\ue201]*\ue201/g;
/** Thoughts, as Open WebUI writes them before the words: quoted, and as HTML. */
const THOUGHTS = /^\s*<details type="reasoning"[^>]*>\s*(?:<summary>[^<]*<\/summary>)?([^]*?)<\/details>/;
const ENTITIES = { lt: '<', gt: '>', quot: '"', amp: '&', '#x27': "'", '#39': "'" };

/** @param {any} file parsed JSON @returns {any[]|null} chats in our form; null: of none of these pages */
export function othersChats(file) {
    const list = Array.isArray(file) ? file : [file];
    const readers = [chatGpt, openWebUi, llamaCpp];
    for (const read of readers) {
        const chats = list.map((one) => read(one ?? {})).filter(Boolean);
        if (chats.length) return chats;
    }
    return null;
}

/** Chats of a ZIP file, as ChatGPT exports them, with the images that are in it.
 * @param {Zip} zip @param {(text: string) => any} parse of JSON @returns {Promise<any[]|null>} null: of none of these pages */
export async function chatsOfZip(zip, parse) {
    const all = [];
    for (const name of zip.names(/(^|\/)conversations(-\d+)?\.json$/)) {
        const { bytes } = await zip.part(name, { most: MAX_LIST });
        const chats = othersChats(parse(new TextDecoder().decode(bytes)));
        for (const one of chats ?? []) all.push(one);
    }
    const files = new Map(zip.names(/\.(png|jpe?g|webp|gif)$/i).map((name) => [name.replace(/.*\//, ''), name]));
    for (const one of all.flatMap(({ messages }) => messages).flatMap(({ attachments = [] }) => attachments)) {
        const [base, name] = [...files].find(([file]) => one.pointer && file.startsWith(one.pointer)) ?? [];
        const bytes = name && (await zip.bytes(name).catch(() => null)); // damaged, or there is no room: it is missing
        if (bytes) Object.assign(one, { name: base, blob: new Blob([bytes], { type: `image/${/\w+$/.exec(base)?.[0].toLowerCase().replace('jpg', 'jpeg')}` }) });
    }
    return all.length ? all : null;
}

const text = (value) => (typeof value === 'string' ? value : '');
const seconds = (value) => (Number.isFinite(value) ? Math.round(value * (value > 1e11 ? 1 : 1000)) : undefined);

/**
 * Keeps the questions and answers of a tree; the parent of each is the nearest that is kept.
 * @param {any[]} nodes {id, parent, role, text, ...} @param {any} head
 */
function tree(nodes, head) {
    const byId = new Map(nodes.map((node) => [node.id, node]));
    const isKept = (node) => (node.role === 'user' || node.role === 'assistant') && (node.text || node.attachments?.length);
    const keptAt = (id) => {
        const seen = new Set();
        let node = byId.get(id);
        while (node && !isKept(node) && !seen.has(node)) seen.add(node), (node = byId.get(node.parent));
        return node && isKept(node) ? node.id : null;
    };
    const messages = nodes.filter(isKept).map((node) => ({ status: 'done', ...node, parent: keptAt(node.parent) }));
    return { messages, head: keptAt(head) };
}

function chatGpt({ title, create_time: created, update_time: updated, mapping, current_node: head }) {
    if (!mapping || typeof mapping !== 'object') return null;
    const nodes = Object.values(mapping).map((node) => {
        const { author, content, create_time: at, metadata, recipient } = node?.message ?? {};
        const parts = Array.isArray(content?.parts) ? content.parts : [];
        const images = parts.filter((one) => one?.content_type === 'image_asset_pointer');
        // What the model said to a tool, and what the page keeps to itself.
        const isAside = content?.content_type === 'thoughts' || metadata?.is_visually_hidden_from_conversation || (recipient && recipient !== 'all');
        const said = parts.map((one) => (one?.content_type === 'audio_transcription' ? text(one.text) : text(one)));
        return {
            id: node?.id, parent: node?.parent, role: isAside ? '' : author?.role, created: seconds(at),
            text: [text(content?.text), ...said].filter(Boolean).join('\n\n').replace(CITATION, ''), model: text(metadata?.model_slug),
            ...(images.length
                ? { attachments: images.map(({ asset_pointer: pointer, width, height }) => ({ kind: 'image', name: 'image', pointer: text(pointer).replace(/^.*:\/\//, ''), width, height })) }
                : {}),
        };
    });
    return { title, created: seconds(created), updated: seconds(updated), ...tree(nodes, head) };
}

function openWebUi({ chat, title, created_at: created, updated_at: updated, pinned, archived }) {
    const history = chat?.history;
    if (!history?.messages || typeof history.messages !== 'object') return null;
    const nodes = Object.values(history.messages).map((one) => {
        const files = (Array.isArray(one?.files) ? one.files : []).map(webUiFile).filter(Boolean);
        const [, thoughts = ''] = THOUGHTS.exec(text(one?.content)) ?? [];
        return {
            id: one?.id, parent: one?.parentId, role: one?.role, text: text(one?.content).replace(THOUGHTS, '').trim(), created: seconds(one?.timestamp), model: text(one?.modelName || one?.model),
            reasoning: thoughts.replace(/&(lt|gt|quot|amp|#x27|#39);/g, (_, name) => ENTITIES[name]).replace(/^> ?/gm, '').trim(), ...(files.length ? { attachments: files } : {}),
        };
    });
    return { title: title ?? chat.title, created: seconds(created), updated: seconds(updated), place: { pinned, archived }, ...tree(nodes, history.currentId) };
}

function webUiFile(given) {
    const { type, name, url, file } = given ?? {};
    if (type === 'image') return { kind: 'image', name: text(name) || 'image', data: text(url) };
    return type === 'file' ? textFile(text(name) || text(file?.filename), text(file?.data?.content)) : null;
}

function llamaCpp({ conv, messages }) {
    if (!conv || !Array.isArray(messages)) return null;
    const nodes = messages.map((one) => {
        const files = (Array.isArray(one?.extra) ? one.extra : []).map(llamaFile).filter(Boolean);
        return {
            id: one?.id, parent: one?.parent, role: one?.type === 'root' ? '' : one?.role, text: text(one?.content), reasoning: text(one?.thinking || one?.reasoningContent),
            created: seconds(one?.timestamp), model: text(one?.model), ...(files.length ? { attachments: files } : {}),
        };
    });
    return { title: conv.name, created: seconds(conv.lastModified), updated: seconds(conv.lastModified), place: { pinned: conv.pinned }, ...tree(nodes, conv.currNode) };
}

function llamaFile(given) {
    const { type, name, base64Url, base64Data, mimeType, content } = given ?? {};
    if (/^image/i.test(type)) return { kind: 'image', name, data: text(base64Url) };
    if (/^video/i.test(type)) return { kind: 'video', name, mime: mimeType, data: `data:${mimeType};base64,${text(base64Data)}` };
    return /^(text|context|pdf)/i.test(type) ? textFile(name, text(content)) : null;
}

/** @param {string} name @param {string} content */
function textFile(name, content) {
    const bytes = new TextEncoder().encode(content);
    let binary = '';
    for (const byte of bytes) binary += String.fromCharCode(byte);
    return { kind: 'text', name, mime: 'text/plain', bytes: bytes.length, data: `data:text/plain;base64,${btoa(binary)}` };
}
