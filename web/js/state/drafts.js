/** What is being written: the words survive a reload, the images last as long as the page. */

const DRAFTS_KEY = 'parley.drafts';
const DRAFT_MAX = 20_000;

/** Words by chat. @returns {Record<string, string>} */
export function readDrafts() {
    try {
        const drafts = JSON.parse(localStorage.getItem(DRAFTS_KEY) ?? '{}');
        return Object.fromEntries(Object.entries(drafts).filter(([, text]) => typeof text === 'string'));
    } catch {
        return {};
    }
}

/** Other tabs have drafts of their own, which stay. @param {string} id of the chat @param {string} text */
export function writeDraft(id, text) {
    const { [id]: before, ...others } = readDrafts();
    const texts = [...Object.entries(others), ...(text ? [[id, text.slice(0, DRAFT_MAX)]] : [])];
    try {
        localStorage.setItem(DRAFTS_KEY, JSON.stringify(Object.fromEntries(texts.slice(-50))));
    } catch {
        // No storage: the drafts last as long as the page.
    }
}
