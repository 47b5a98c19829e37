/** <chat-sidebar>: the stored chats, with search, rename and delete. */
import { LitElement, html, nothing, repeat } from '../../vendor/lit.js';
import { locale, plural, t } from '../language.js';
import { icon, logo } from './icons.js';
import { menuButton } from './menu.js';

const DAY_MS = 86_400_000;
/** Letters of a sentence that stand before the word that was searched. */
const BEFORE = 40;
const AROUND = 140;

class ChatSidebar extends LitElement {
    static properties = {
        chat: { attribute: false },
        query: { state: true },
        renaming: { state: true },
        menuOf: { state: true },
        chosen: { state: true },
        archived: { state: true },
    };

    constructor() {
        super();
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        this.query = '';
        this.renaming = '';
        /** The chat whose menu is open, or was last. */
        this.menuOf = '';
        /** Chats that are chosen for something; null: none is to be chosen. @type {Set<string>|null} */
        this.chosen = null;
        /** Whether the archive is shown. */
        this.archived = false;
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
                <button type="button" class="quiet icon-only" aria-label=${t`Hide the list of chats`} title=${t`Hide (Ctrl B)`}
                    @click=${() => this.#tell('toggle-sidebar')}>${icon('menu')}</button>
            </div>
            <a class="button new-chat" href="#/" @click=${this.#new}>${icon('plus')}${t`New chat`}</a>
            ${this.chat.list.length
                ? html`<label class="search">
                      ${icon('search')}
                      <input type="search" placeholder=${t`Search chats`} aria-label=${t`Search chats`} .value=${this.query}
                          @input=${(event) => this.#search(event.target.value)} @keydown=${this.#searchKey} />
                  </label>`
                : nothing}
            ${history.waiting?.size ? html`<p class="list-note" role="status">${waitingWords(history)}</p>` : nothing}
            ${history.movable ? this.#offer(history) : nothing}
            <nav aria-label=${t`Chats`} class="chat-list">
                ${groups(found.filter(({ place }) => !place?.archived)).map(
                    ([name, entries, isFolder]) =>
                        html`${isFolder ? this.#folder(name) : html`<h3>${name}</h3>`}
                            <ul>${repeat(entries, (entry) => entry.id, (entry) => this.#entry(entry))}</ul>`,
                )}
                ${this.#archive(found.filter(({ place }) => place?.archived))}
                ${this.chat.list.length === 0
                    ? html`<p class="list-note">
                          ${history.available
                              ? history.remote ? t`Your chats will be listed here. They are kept on the server.` : t`Your chats will be listed here. They stay in this browser.`
                              : t`This browser keeps no chats for this page.`}
                      </p>`
                    : found.length === 0
                      ? html`<p class="list-note">${t`No chat has these words.`}</p>`
                      : nothing}
            </nav>
            ${this.chosen ? this.#bulk(this.chosen) : nothing}`;
    }

    /** A folder's name, and what can be done with it. @param {string} name */
    #folder(name) {
        if (this.renaming === `folder ${name}`) {
            return html`<form class="renaming" @submit=${(event) => this.#nameFolder(event, name)}>
                <input type="text" maxlength="80" aria-label=${t`New name of the folder`} .value=${name} @blur=${(event) => this.#nameFolder(event, name)}
                    @keydown=${(event) => event.key === 'Escape' && (event.stopPropagation(), this.#endFolder(name))} />
            </form>`;
        }
        return html`<div class="folder">
            <h3>${icon('folder')}${name}</h3>
            ${menuButton({
                id: `folder-${encodeURIComponent(name)}`,
                label: t`More about the folder ${name}`,
                title: t`More`,
                look: 'quiet icon-only small',
                face: icon('more'),
                content: html`<button type="button" class="quiet" @click=${() => this.#rename({ id: `folder ${name}` })}>${icon('edit')}<span>${t`Rename the folder`}</span></button>
                    <button type="button" class="quiet" @click=${() => this.chat.renameFolder(name, '')}>${icon('close')}<span>${t`Take its chats out`}</span></button>`,
            })}
        </div>`;
    }

    /** @param {Event} event @param {string} name */
    #nameFolder(event, name) {
        event.preventDefault();
        if (this.renaming !== `folder ${name}`) return;
        const input = /** @type {HTMLInputElement} */ (/** @type {HTMLElement} */ (event.currentTarget).closest('form')?.querySelector('input'));
        const next = input.value.trim();
        this.#endFolder(next || name, next && next !== name ? this.chat.renameFolder(name, next) : undefined);
    }

    /** The focus goes to the folder, if it has nowhere else to be. @param {string} name
     * @param {Promise<void>} [renamed] */
    async #endFolder(name, renamed) {
        this.renaming = '';
        await renamed;
        await this.updateComplete;
        if (document.activeElement !== document.body) return;
        /** @type {HTMLElement|null} */ (this.querySelector(`[popovertarget="folder-${encodeURIComponent(name)}"]`))?.focus();
    }

    /** Archived chats, folded; a search looks into them. */
    #archive(entries) {
        if (!entries.length) return nothing;
        return html`<details class="archive" .open=${this.archived || this.query !== ''} @toggle=${(event) => (this.archived = event.target.open)}>
            <summary>${t`Archived (${entries.length})`}</summary>
            <ul>${repeat(entries, (entry) => entry.id, (entry) => this.#entry(entry))}</ul>
        </details>`;
    }

    /** What can be done with several chats. @param {Set<string>} chosen */
    #bulk(chosen) {
        const all = this.chat.list.map(({ id }) => id);
        const each = async (change) => {
            this.chosen = null;
            for (const id of chosen) await this.chat.setPlace(id, change);
        };
        return html`<div class="bulk" role="group" aria-label=${t`Chosen chats`}>
            <span>${plural(chosen.size, '{0} chosen', '{0} chosen')}</span>
            <button type="button" class="quiet small" @click=${() => (this.chosen = new Set(chosen.size < all.length ? all : []))}>${chosen.size < all.length ? t`All` : t`None`}</button>
            <button type="button" class="quiet icon-only small" aria-label=${t`Archive the chosen chats`} title=${t`Archive`} ?disabled=${!chosen.size}
                @click=${() => each({ archived: true })}>${icon('archive')}</button>
            ${menuButton({ id: 'bulk-folder', look: 'quiet icon-only small', label: t`Move the chosen chats`, face: icon('folder'), content: this.#folders({}, (folder) => each({ folder })) })}
            <button type="button" class="quiet icon-only small" aria-label=${t`Delete the chosen chats`} title=${t`Delete`} ?disabled=${!chosen.size}
                @click=${() => this.#removeChosen(chosen)}>${icon('trash')}</button>
            <button type="button" class="quiet small" @click=${() => (this.chosen = null)}>${t`Done`}</button>
        </div>`;
    }

    #removeChosen(chosen) {
        this.chosen = null;
        this.chat.removeAll([...chosen]);
    }

    /** The folders there are, and a new one. @param {any} place @param {(folder: string) => void} move */
    #folders(place, move) {
        const names = [...new Set(this.chat.list.map((entry) => entry.place?.folder).filter(Boolean))].sort((a, b) => a.localeCompare(b, locale));
        const make = (event) => {
            event.preventDefault();
            const input = event.target.querySelector('input');
            const name = input.value.trim().slice(0, 80);
            if (!name) return;
            input.value = '';
            event.target.closest('[popover]').hidePopover();
            move(name);
        };
        return html`<h3>${t`Folder`}</h3>
            ${names.map((name) => html`<button type="button" class="quiet" aria-pressed=${place.folder === name} @click=${() => move(place.folder === name ? '' : name)}>
                ${icon(place.folder === name ? 'check' : 'folder')}<span>${name}</span></button>`)}
            <form class="new-folder" @submit=${make}><input type="text" maxlength="80" placeholder=${t`New folder`} aria-label=${t`New folder`} /></form>`;
    }

    /** @param {any} entry */
    #menu(entry) {
        const { place = {} } = entry;
        const set = (change) => this.chat.setPlace(entry.id, change);
        const take = (kind) => this.dispatchEvent(new CustomEvent('take-chat', { bubbles: true, detail: { id: entry.id, kind } }));
        const item = (name, words, click, label = `${words} ${entry.title}`) => html`<button type="button" class="quiet" aria-label=${label} @click=${click}>${icon(name)}<span>${words}</span></button>`;
        return html`${item('edit', t`Rename`, () => this.#rename(entry))}
            ${item('thought', t`Title by the model`, () => this.chat.nameByModel(entry.id), t`Title of ${entry.title} by the model`)}
            ${item('pin', place.pinned ? t`Unpin` : t`Pin`, () => set({ pinned: !place.pinned }))}
            ${item('archive', place.archived ? t`Unarchive` : t`Archive`, () => set({ archived: !place.archived }))}
            ${item('check', t`Choose several`, () => (this.chosen = new Set([entry.id])), t`Choose several chats`)}
            <hr />
            ${this.#folders(place, (folder) => set({ folder }))}
            <hr />
            ${item('download', 'Markdown', () => take('markdown'), t`Export ${entry.title} as Markdown`)}
            ${item('download', 'JSON', () => take('json'), t`Export ${entry.title} as JSON`)}
            ${item('file', t`Print`, () => take('print'))}
            ${this.chat.history.remote ? item('leaves', t`Share a link`, () => take('share')) : nothing}
            <hr />
            ${item('trash', t`Delete`, () => this.chat.remove(entry.id))}`;
    }

    /** Chats of before the server kept them; once. */
    #offer(history) {
        return html`<p class="list-note">
            ${plural(history.movable, 'One chat is kept in this browser alone.', '{0} chats are kept in this browser alone.')}
            <button type="button" class="plain" @click=${() => history.move()}>${t`Move to the server`}</button>
            <button type="button" class="quiet" @click=${() => this.#declineMove()}>${t`Not now`}</button>
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
                <input type="text" aria-label=${t`New name`} .value=${entry.title} @keydown=${(event) => this.#nameKey(event, entry)}
                    @blur=${(event) => this.#name(event.target, entry)} />
            </li>`;
        }
        return html`<li class="entry ${current ? 'current' : ''}">
            <a href="#/c/${entry.id}" aria-current=${current ? 'page' : nothing} title=${entry.title}
                @click=${() => this.#tell('chosen')} @dblclick=${() => this.#rename(entry)}>
                ${this.chat.isRunning(entry.id) ? html`<span class="running" role="img" aria-label=${t`Answering`}></span>` : nothing}
                ${this.chat.unread.has(entry.id) ? html`<span class="unread" role="img" aria-label=${t`New answer`}></span>` : nothing}
                <span class="entry-words">
                    <span class="entry-title"><bdi>${marked(entry.title, this.words)}</bdi></span>
                    ${this.#where(entry)}
                </span>
            </a>
            ${this.chosen
                ? html`<input type="checkbox" class="entry-choice" aria-label=${t`Choose ${entry.title}`} .checked=${this.chosen.has(entry.id)} @change=${() => this.#choose(entry.id)} />`
                : html`<span class="entry-buttons">
                      ${menuButton({
                          id: `menu-${entry.id}`,
                          label: t`More about ${entry.title}`,
                          title: t`More`,
                          face: icon('more'),
                          onOpen: () => (this.menuOf = entry.id),
                          content: this.menuOf === entry.id ? this.#menu(entry) : nothing,
                      })}
                  </span>`}
        </li>`;
    }

    /** @param {string} id */
    #choose(id) {
        const chosen = new Set(this.chosen);
        if (!chosen.delete(id)) chosen.add(id);
        this.chosen = chosen;
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
    return `${trouble} ${plural(waiting.size, 'One chat waits in this browser until the server has it.', '{0} chats wait in this browser until the server has them.')}`;
}

/** Pinned chats, folders by their names, the rest by its time.
 * @param {any[]} entries newest first @returns {[string, any[], boolean][]} */
function groups(entries) {
    const pinned = entries.filter(({ place }) => place?.pinned);
    const rest = entries.filter(({ place }) => !place?.pinned);
    const folders = [...new Set(rest.map(({ place }) => place?.folder).filter(Boolean))].sort((a, b) => a.localeCompare(b));
    return [
        ...(pinned.length ? [/** @type {[string, any[], boolean]} */ ([t`Pinned`, pinned, false])] : []),
        ...folders.map((name) => /** @type {[string, any[], boolean]} */ ([name, rest.filter(({ place }) => place?.folder === name), true])),
        ...byTime(rest.filter(({ place }) => !place?.folder)),
    ];
}

/** @param {any[]} entries @returns {[string, any[], boolean][]} */
function byTime(entries) {
    const today = new Date().setHours(0, 0, 0, 0);
    const map = new Map();
    for (const entry of entries) {
        const name =
            entry.updated >= today
                ? t`Today`
                : entry.updated >= today - DAY_MS
                  ? t`Yesterday`
                  : entry.updated >= today - 7 * DAY_MS
                    ? t`Last seven days`
                    : t`Older`;
        map.set(name, [...(map.get(name) ?? []), entry]);
    }
    return [...map].map(([name, list]) => [name, list, false]);
}
