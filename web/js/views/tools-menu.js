/**
 * <tool-choice>: the MCP servers and their tools, on or off in a chat, with what is wrong with one,
 * in the settings; <tools-menu>: the same beside the field. Fetched when one of them opens.
 */
import { LitElement, html, live, nothing } from '../../vendor/lit.js';
import { plural, t } from '../language.js';
import { choiceWith, readServers, retryServer } from '../state/tools.js';
import { icon } from './icons.js';
import './tool-view.js';

/** @typedef {import('../state/tools.js').Server} Server */

/** While a server is being connected to, it is asked again how that went. */
const LOOK_AGAIN_MS = 1_000;

class ToolChoice extends LitElement {
    static properties = { chat: { attribute: false }, choice: { attribute: false }, choose: { attribute: false }, servers: { state: true }, problem: { state: true } };

    constructor() {
        super();
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        /** @type {import('../state/store.js').ToolChoice|undefined} */
        this.choice = undefined;
        /** @type {(choice: any) => void} */
        this.choose = () => {};
        /** @type {Server[]|null} */
        this.servers = null;
        this.problem = '';
        this.timer = 0;
    }

    createRenderRoot() {
        return this;
    }

    firstUpdated() {
        this.closest('[popover]')?.addEventListener('toggle', (event) => /** @type {any} */ (event).newState === 'open' && this.#ask());
        this.#ask();
    }

    disconnectedCallback() {
        super.disconnectedCallback();
        clearTimeout(this.timer);
    }

    async #ask() {
        clearTimeout(this.timer);
        try {
            this.servers = await readServers(this.chat);
            this.problem = '';
        } catch {
            this.problem = t`The server cannot be reached for this part of the page. Try again when it is back.`;
        }
        const goesOn = this.isConnected && this.checkVisibility() && this.servers?.some(({ state }) => state === 'connecting');
        if (goesOn) this.timer = window.setTimeout(() => this.#ask(), LOOK_AGAIN_MS);
    }

    async #retry(label) {
        await retryServer(this.chat, label);
        this.servers = /** @type {Server[]} */ (this.servers).map((one) => (one.server_label === label ? { ...one, state: 'connecting', error: null } : one));
        this.timer = window.setTimeout(() => this.#ask(), LOOK_AGAIN_MS);
    }

    /** @param {string} label @param {{only?: string[], always?: string[]}|undefined} one */
    #set(label, one) {
        this.choose(choiceWith(this.choice, label, one));
    }

    render() {
        if (this.problem) return html`<p class="note bad" role="status">${this.problem}</p>`;
        if (!this.servers) return html`<p class="note">${t`Loading…`}</p>`;
        return html`${this.servers.map((one) => this.#server(one))}`;
    }

    /** @param {Server} server */
    #server({ server_label: label, state, error, tools, tools_left_out: left }) {
        const own = this.choice?.[label];
        const on = own ? tools.filter(({ name }) => !own.only || own.only.includes(name)).length : 0;
        const words = {
            ready: () => (own && on < tools.length ? t`${on} of ${tools.length} tools` : plural(tools.length, '{0} tool', '{0} tools')),
            connecting: () => t`is being connected`,
            down: () => t`cannot be used`,
            off: () => t`turned off by the server`,
        };
        return html`<section class="tool-server ${state}">
            <label class="tool-line">
                <input type="checkbox" .checked=${live(!!own)} ?disabled=${!own && state !== 'ready'} @change=${(event) => this.#set(label, event.target.checked ? {} : undefined)} />
                <span><strong>${label}</strong><small>${words[state]()}${left ? ` · ${plural(left, '{0} that cannot be used', '{0} that cannot be used')}` : nothing}</small></span>
            </label>
            ${error && state === 'down'
                ? html`<p class="note bad">${icon('warning')}<span>${error}</span><button type="button" class="plain small" @click=${() => this.#retry(label)}>${t`Try again`}</button></p>`
                : nothing}
            ${tools.length
                ? html`<details>
                      <summary>${t`Tools of ${label}`}</summary>
                      ${tools.map((tool) => this.#tool(label, own, tool, tools))}
                  </details>`
                : nothing}
        </section>`;
    }

    /** @param {string} label @param {{only?: string[], always?: string[]}|undefined} own
     * @param {import('../state/tools.js').Tool} tool @param {import('../state/tools.js').Tool[]} all */
    #tool(label, own, { name, title, description, read_only: reads, approval }, all) {
        const isOn = !!own && (!own.only || own.only.includes(name));
        const { always = [] } = own ?? {};
        const unasked = approval === 'never' || always.includes(name);
        const turn = (on) => {
            const names = all.map((one) => one.name).filter((one) => (one === name ? on : own && (!own.only || own.only.includes(one))));
            if (!names.length) return this.#set(label, undefined);
            this.#set(label, { only: names.length < all.length ? names : undefined });
        };
        const ask = (asks) => {
            const names = [...always.filter((one) => one !== name), ...(asks ? [] : [name])];
            this.#set(label, { always: names.length ? names : undefined });
        };
        const how = approval === 'never' ? t`runs without asking` : approval === 'first' ? t`asks the first time` : t`asks before it runs`;
        return html`<div class="tool-one">
            <label class="tool-line">
                <input type="checkbox" .checked=${live(isOn)} @change=${(event) => turn(event.target.checked)} />
                <span><strong>${title || name}</strong>${description ? html`<small dir="auto">${description}</small>` : nothing}
                    <small>${reads ? `${t`says it only reads`} · ` : nothing}${unasked && approval !== 'never' ? t`runs without asking in this chat` : how}</small></span>
            </label>
            ${isOn && approval !== 'never'
                ? html`<label class="tool-line unasked"><input type="checkbox" .checked=${live(unasked)} @change=${(event) => ask(!event.target.checked)} /><span>${t`Without asking`}</span></label>`
                : nothing}
        </div>`;
    }
}
customElements.define('tool-choice', ToolChoice);

class ToolsMenu extends LitElement {
    static properties = { chat: { attribute: false }, composer: { attribute: false } };

    constructor() {
        super();
        /** @type {import('../state/chat.js').Chat} */
        this.chat = /** @type {any} */ (null);
        /** The field that the menu stands beside. @type {any} */
        this.composer = null;
    }

    createRenderRoot() {
        return this;
    }

    firstUpdated() {
        for (const type of ['options', 'conversation']) this.chat.addEventListener(type, () => this.requestUpdate());
    }

    render() {
        return html`<h3>${t`Tools of this chat`}</h3>
            <div data-stays>
                <tool-choice .chat=${this.chat} .choice=${this.chat.current.options?.tools} .choose=${(choice) => this.chat.setOption('tools', choice)}></tool-choice>
            </div>`;
    }
}
customElements.define('tools-menu', ToolsMenu);
