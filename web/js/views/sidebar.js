/** <chat-sidebar>: the stored chats, with search, rename and delete. */
import { LitElement, html, nothing, repeat } from '../../vendor/lit.js';
import { icon, logo } from './icons.js';

const DAY_MS = 86_400_000;
/** Letters of a sentence that stand before the word that was searched. */
const BEFORE = 40;
const AROUND = 140;

class ChatSidebar extends LitElement {
    static properties = {
        chat: { attribute: false },
        query: { state: true },
        renaming: { state: true },
    };

    constructor() {
        super();
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        this.query = '';
        this.renaming = '';
        this.refresh = () => this.requestUpdate();
    }

    createRenderRoot() {
        return this;
    }

    connectedCallback() {
        super.connectedCallback();
        for (const type of ['list', 'conversation']) this.chat.addEventListener(type, this.refresh);
    }

    disconnectedCallback() {
        super.disconnectedCallback();
        for (const type of ['list', 'conversation']) this.chat.removeEventListener(type, this.refresh);
    }

    render() {
        const words = this.query.toLowerCase().split(/\s+/).filter(Boolean);
        const { history } = this.chat;
        const found = this.chat.list.filter((entry) => this.found?.has(entry.id) || words.every((word) => searched(entry).includes(word)));
        this.words = words;
        return html`<div class="sidebar-head">
                <a class="brand" href="#/" @click=${this.#new}>${logo()}<span>Parley</span></a>
                <button type="button" class="quiet icon-only" aria-label="Hide the list of chats" title="Hide (Ctrl B)"
                    @click=${() => this.#tell('toggle-sidebar')}>${icon('menu')}</button>
            </div>
            <a class="button new-chat" href="#/" @click=${this.#new}>${icon('plus')}New chat</a>
            ${this.chat.list.length
                ? html`<label class="search">
                      ${icon('search')}
                      <input type="search" placeholder="Search chats" aria-label="Search chats" .value=${this.query}
                          @input=${(event) => this.#search(event.target.value)} @keydown=${this.#searchKey} />
                  </label>`
                : nothing}
            ${history.waiting?.size ? html`<p class="list-note" role="status">${waitingWords(history)}</p>` : nothing}
            ${history.movable ? this.#offer(history) : nothing}
            <nav aria-label="Chats" class="chat-list">
                ${groups(found).map(
                    ([name, entries]) =>
                        html`<h3>${name}</h3>
                            <ul>${repeat(entries, (entry) => entry.id, (entry) => this.#entry(entry))}</ul>`,
                )}
                ${this.chat.list.length === 0
                    ? html`<p class="list-note">
                          ${history.available
                              ? `Your chats will be listed here. They ${history.remote ? 'are kept on the server' : 'stay in this browser'}.`
                              : 'This browser keeps no chats for this page.'}
                      </p>`
                    : found.length === 0
                      ? html`<p class="list-note">No chat has these words.</p>`
                      : nothing}
            </nav>`;
    }

    /** Chats of before the server kept them; once. */
    #offer(history) {
        const several = history.movable > 1;
        return html`<p class="list-note">
            ${several ? `${history.movable} chats are` : 'One chat is'} kept in this browser alone.
            <button type="button" class="plain" @click=${() => history.move()}>Move to the server</button>
            <button type="button" class="quiet" @click=${() => this.#declineMove()}>Not now</button>
        </p>`;
    }

    #declineMove() {
        this.chat.history.movable = 0;
        this.chat.settings.set('declinedMove', true);
        this.requestUpdate();
    }

    /** The server, where it keeps the chats, knows all their words. @param {string} query */
    async #search(query) {
        this.query = query;
        const { history } = this.chat;
        const found = query.trim() && history.search ? await history.search(query).catch(() => null) : null;
        if (this.query !== query) return;
        this.found = found;
        this.requestUpdate();
    }

    /** Escape empties the field, and leaves it when it is empty; a running answer goes on.
     * @param {KeyboardEvent} event */
    #searchKey(event) {
        if (event.key !== 'Escape') return;
        event.preventDefault();
        event.stopPropagation();
        if (this.query) this.#search('');
        else this.#tell('left-search');
    }

    #entry(entry) {
        const current = entry.id === this.chat.current.id;
        if (this.renaming === entry.id) {
            return html`<li class="entry renaming">
                <input type="text" aria-label="New name" .value=${entry.title} @keydown=${(event) => this.#nameKey(event, entry)}
                    @blur=${(event) => this.#name(event.target, entry)} />
            </li>`;
        }
        return html`<li class="entry ${current ? 'current' : ''}">
            <a href="#/c/${entry.id}" aria-current=${current ? 'page' : nothing} title=${entry.title}
                @click=${() => this.#tell('chosen')} @dblclick=${() => this.#rename(entry)}>
                ${this.chat.isRunning(entry.id) ? html`<span class="running" role="img" aria-label="Answering"></span>` : nothing}
                ${this.chat.unread.has(entry.id) ? html`<span class="unread" role="img" aria-label="New answer"></span>` : nothing}
                <span class="entry-words">
                    <span class="entry-title">${marked(entry.title, this.words)}</span>
                    ${this.#where(entry)}
                </span>
            </a>
            <span class="entry-buttons">
                <button type="button" class="quiet icon-only" aria-label="Rename ${entry.title}" title="Rename"
                    @click=${() => this.#rename(entry)}>${icon('edit')}</button>
                <button type="button" class="quiet icon-only" aria-label="Delete ${entry.title}" title="Delete"
                    @click=${() => this.chat.remove(entry.id)}>${icon('trash')}</button>
            </span>
        </li>`;
    }

    /** The sentence in which the words of the search were found. */
    #where(entry) {
        const { words = [] } = this;
        if (!words.length) return nothing;
        const text = this.found?.get?.(entry.id) || entry.text;
        const low = text.toLowerCase();
        // The title stands above.
        const start = entry.text.toLowerCase().startsWith(entry.title.toLowerCase()) && text === entry.text ? entry.title.length : 0;
        const at = Math.min(...words.map((word) => low.indexOf(word, start)).map((found) => (found < 0 ? Infinity : found)));
        if (at === Infinity) return nothing;
        const from = sentenceStart(text, at, start);
        return html`<span class="entry-found">${from > start ? '…' : ''}${marked(text.slice(from, from + AROUND).trim(), words)}</span>`;
    }

    async #rename(entry) {
        this.renaming = entry.id;
        await this.updateComplete;
        const input = /** @type {HTMLInputElement|null} */ (this.querySelector('.renaming input'));
        input?.focus();
        input?.select();
    }

    /** @param {KeyboardEvent} event */
    #nameKey(event, entry) {
        if (event.key === 'Enter') this.#name(event.target, entry);
        else if (event.key === 'Escape') {
            event.stopPropagation();
            this.#endRename(entry);
        }
    }

    /** Back to the chat's line, if the focus has nowhere else to be. */
    async #endRename(entry) {
        this.renaming = '';
        await this.updateComplete;
        if (document.activeElement !== document.body) return;
        /** @type {HTMLElement|null} */ (this.querySelector(`a[href="#/c/${entry.id}"]`))?.focus();
    }

    #name(input, entry) {
        if (this.renaming !== entry.id) return;
        this.#endRename(entry);
        if (input.value.trim() !== entry.title) this.chat.rename(entry.id, input.value);
    }

    #new() {
        this.chat.newChat();
        this.#tell('chosen');
    }

    #tell(type) {
        this.dispatchEvent(new CustomEvent(type, { bubbles: true }));
    }
}
customElements.define('chat-sidebar', ChatSidebar);

/** The words of a chat in lower case, made once. @type {WeakMap<any, string>} */
const lowered = new WeakMap();
function searched(entry) {
    if (!lowered.has(entry)) lowered.set(entry, entry.text.toLowerCase());
    return /** @type {string} */ (lowered.get(entry));
}

/** Where the sentence around a place begins, not too far before it. @param {string} text
 * @param {number} at @param {number} start */
function sentenceStart(text, at, start) {
    const ends = [...text.slice(start, at).matchAll(/[.!?。！？]\s|\n/g)];
    const begin = start + (ends.length ? ends[ends.length - 1].index + ends[ends.length - 1][0].length : 0);
    if (at - begin <= BEFORE) return begin;
    const space = text.indexOf(' ', at - BEFORE);
    return space >= 0 && space < at ? space + 1 : at;
}

/** A text with the words of the search marked. @param {string} text @param {string[]} [words] */
function marked(text, words = []) {
    if (!words.length) return text;
    const low = text.toLowerCase();
    // Some letters change their length in lower case: then nothing is marked.
    if (low.length !== text.length) return text;
    const pieces = [];
    for (let at = 0; at < text.length; ) {
        const next = words.map((word) => ({ word, found: low.indexOf(word, at) })).filter(({ found }) => found >= 0).sort((a, b) => a.found - b.found || b.word.length - a.word.length)[0];
        if (!next) {
            pieces.push(text.slice(at));
            break;
        }
        pieces.push(text.slice(at, next.found), html`<mark>${text.slice(next.found, next.found + next.word.length)}</mark>`);
        at = next.found + next.word.length;
    }
    return pieces;
}

/** What the server does not have yet, and why. */
function waitingWords({ trouble, waiting }) {
    const one = waiting.size === 1;
    return `${trouble} ${one ? 'One chat waits' : `${waiting.size} chats wait`} in this browser until the server has ${one ? 'it' : 'them'}.`;
}

/** @param {any[]} entries newest first @returns {[string, any[]][]} */
function groups(entries) {
    const today = new Date().setHours(0, 0, 0, 0);
    const map = new Map();
    for (const entry of entries) {
        const name =
            entry.updated >= today
                ? 'Today'
                : entry.updated >= today - DAY_MS
                  ? 'Yesterday'
                  : entry.updated >= today - 7 * DAY_MS
                    ? 'Last seven days'
                    : 'Older';
        map.set(name, [...(map.get(name) ?? []), entry]);
    }
    return [...map];
}
