/**
 * Chats that other pages exported, in the form of transfer.js: ChatGPT (conversations.json), Open
 * WebUI and llama.cpp. What they have beside questions and answers (system messages, tools, roots
 * of trees) is stepped over. Nothing is trusted here: transfer.js checks every field afterwards.
 */

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
        const { author, content, create_time: at, metadata } = node?.message ?? {};
        const parts = Array.isArray(content?.parts) ? content.parts : [];
        const images = parts.filter((one) => one && typeof one === 'object');
        return {
            id: node?.id, parent: node?.parent, role: content?.content_type === 'thoughts' ? '' : author?.role, created: seconds(at),
            text: [text(content?.text), ...parts.filter((one) => typeof one === 'string')].filter(Boolean).join('\n\n'), model: text(metadata?.model_slug),
            ...(images.length ? { attachments: images.map(() => ({ kind: 'image', name: 'image' })) } : {}),
        };
    });
    return { title, created: seconds(created), updated: seconds(updated), ...tree(nodes, head) };
}

function openWebUi({ chat, title, created_at: created, updated_at: updated, pinned, archived }) {
    const history = chat?.history;
    if (!history?.messages || typeof history.messages !== 'object') return null;
    const nodes = Object.values(history.messages).map((one) => {
        const images = (Array.isArray(one?.files) ? one.files : []).filter(({ type }) => type === 'image');
        return {
            id: one?.id, parent: one?.parentId, role: one?.role, text: text(one?.content), created: seconds(one?.timestamp), model: text(one?.modelName || one?.model),
            ...(images.length ? { attachments: images.map(({ name, url }) => ({ kind: 'image', name: text(name) || 'image', data: text(url) })) } : {}),
        };
    });
    return { title: title ?? chat.title, created: seconds(created), updated: seconds(updated), place: { pinned, archived }, ...tree(nodes, history.currentId) };
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

function llamaFile({ type, name, base64Url, content }) {
    if (/^image/i.test(type)) return { kind: 'image', name, data: text(base64Url) };
    if (!/^(text|context)/i.test(type)) return null;
    const bytes = new TextEncoder().encode(text(content));
    let binary = '';
    for (const byte of bytes) binary += String.fromCharCode(byte);
    return { kind: 'text', name, mime: 'text/plain', bytes: bytes.length, data: `data:text/plain;base64,${btoa(binary)}` };
}
