/**
 * What was still being written when the page went away (a reload within milliseconds of a change):
 * noted in localStorage, which writes at once, and taken up by the next page. Files are not: what
 * was asked with them stands without them.
 *
 *     addEventListener('pagehide', () => noteUnsaved(chat));
 *     await takeUpUnsaved(chat);
 *
 * A note is a verb (`{id, title}`, `{id, place}`, `{id, removed}` with the time of the chat's last
 * change), or `{id, news}` with what merge.js says of a chat.
 */
import { applyNews, madeAgain, newsOf, unknown } from './merge.js';
import { newId, storedKeys } from '../util.js';

const KEY = 'parley.unsaved.';

/** @param {import('./chat.js').Chat} chat */
export function noteUnsaved({ history, intents, removed, saving }) {
    const written = [...saving.keys()].filter((conversation) => !removed.has(conversation));
    const news = written.map((conversation) => {
        const { id, created, updated } = conversation;
        return { id, created, updated, news: newsOf(conversation, history.known.get(conversation) ?? unknown()) };
    });
    for (const note of [...news, ...intents]) {
        try {
            localStorage.setItem(KEY + newId(), JSON.stringify(note));
        } catch {
            // No room: the others may have some.
        }
    }
}

/** @returns {[string, any][]} key and note */
function notes() {
    try {
        return storedKeys(KEY).map((key) => [key, JSON.parse(localStorage.getItem(key) ?? '{}')]);
    } catch {
        return [];
    }
}

let turn = Promise.resolve();

/** Doing a note twice does no harm: another tab may take it up, too. @param {import('./chat.js').Chat} chat */
export function takeUpUnsaved(chat) {
    turn = turn.then(async () => {
        for (const [key, note] of notes()) {
            if (await takeUp(chat, note)) localStorage.removeItem(key);
        }
    });
    return turn;
}

/** @returns {Promise<boolean>} false: the chat cannot be read now */
async function takeUp(chat, { id, created, updated, news, title, place, removed }) {
    if (removed) {
        const [entry] = chat.list.filter((one) => one.id === id && one.updated <= removed);
        if (entry) await chat.remove(id, () => {});
        return true;
    }
    const kept = await chat.read(id);
    if (!kept && !news?.isNew && chat.history.remote && !/^(open|fallback)$/.test(chat.connection.state)) return false; // it may be there
    if (kept && title) await chat.rename(id, title);
    else if (kept && place) await chat.setPlace(id, place);
    else if (news && (kept || news.whole)) {
        const conversation = kept ?? madeAgain({ id, created, updated, messages: {} }, news.whole);
        applyNews(conversation, news);
        conversation.updated = Math.max(conversation.updated, updated);
        await chat.save(conversation);
    }
    return true;
}
