/**
 * What is being written: the words survive a reload, the images last as long as the page. Each chat
 * has a record of its own: a tab sees what others store a moment late, and must not write it back.
 */
import { storedKeys } from '../util.js';

const KEY = 'parley.draft.';
const OLD_KEY = 'parley.drafts'; // of versions that kept all in one record
const DRAFT_MAX = 20_000;
const DRAFTS_MAX = 50;

/** What is kept, the latest first. @returns {{key: string, text: string, at: number}[]} */
function records() {
    const read = (key) => {
        try {
            const { text, at } = JSON.parse(localStorage.getItem(key) ?? '');
            return { key, text, at: Number(at) };
        } catch {
            return { key, text: null, at: 0 };
        }
    };
    return storedKeys(KEY).map(read).sort((a, b) => b.at - a.at);
}

/** The words that an older version kept go into records of their own. */
function takeOver() {
    const old = localStorage.getItem(OLD_KEY);
    if (old === null) return;
    localStorage.removeItem(OLD_KEY);
    for (const [id, text] of Object.entries(JSON.parse(old))) if (typeof text === 'string') writeDraft(id, text);
}

/** Words by chat. @returns {Record<string, string>} */
export function readDrafts() {
    try {
        takeOver();
    } catch {
        // It cannot be read, or there is no storage.
    }
    try {
        return Object.fromEntries(records().filter(({ text }) => typeof text === 'string').map(({ key, text }) => [key.slice(KEY.length), text]));
    } catch {
        return {};
    }
}

/** @param {string} id of the chat @param {string} text none: the draft goes */
export function writeDraft(id, text) {
    try {
        if (!text) return localStorage.removeItem(KEY + id);
        localStorage.setItem(KEY + id, JSON.stringify({ text: text.slice(0, DRAFT_MAX), at: Date.now() }));
        if (storedKeys(KEY).length > DRAFTS_MAX) for (const { key } of records().slice(DRAFTS_MAX)) localStorage.removeItem(key);
    } catch {
        // No storage: the drafts last as long as the page.
    }
}
