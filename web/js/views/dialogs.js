/** The dialogs: what is known about the model, keyboard shortcuts, images and files large. All
 * native <dialog>. */
import { html, nothing } from '../../vendor/lit.js';
import { plural, t } from '../language.js';
import { icon } from './icons.js';
import { formatBytes, formatCount } from '../util.js';
import { connectionWords } from '../words.js';

/** Closes a dialog when its backdrop is clicked. @param {MouseEvent} event */
export function backdrop(event) {
    if (event.target === event.currentTarget) /** @type {HTMLDialogElement} */ (event.currentTarget).close();
}

export function head(title) {
    return html`<header>
        <h2>${title}</h2>
        <form method="dialog">
            <button class="quiet icon-only" aria-label=${t`Close`} title=${t`Close (Esc)`}>${icon('close')}</button>
        </form>
    </header>`;
}

/** @param {string} id */
export function openDialog(id) {
    const dialog = /** @type {HTMLDialogElement|null} */ (document.getElementById(id));
    if (dialog && !dialog.open) dialog.showModal();
}

/** @param {any} model @param {import('../protocol/connection.js').Connection} connection */
export function modelDialog(model, connection) {
    const words = connectionWords(connection);
    const bits = model.parameters ? (8 * model.bytes) / model.parameters : 0;
    const rows = [
        [t`Model`, model.name],
        [t`Context`, model.context ? plural(model.context, '{0} token', '{0} tokens') : ''],
        [t`Parameters`, model.parameters ? formatCount(model.parameters) : ''],
        [t`Size`, !model.bytes ? '' : bits ? t`${formatBytes(model.bytes)}, ${Number(bits.toFixed(1))} bits a weight` : formatBytes(model.bytes)],
        [t`Reads`, model.modalities?.join(', ') ?? ''],
        [t`Thinks`, model.thinkingKnown ? (model.thinking ? t`on request` : t`no`) : ''],
        [t`Server`, model.server],
        [t`Connection`, connection.state === 'open' ? t`${words.label} by WebSocket` : words.label],
    ].filter(([, value]) => value);
    return html`<dialog id="model" aria-label=${t`About the model`} @click=${backdrop}>
        ${head(t`About the model`)}
        <div class="dialog-body">
            <dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
            ${words.detail ? html`<p class="note">${words.detail}</p>` : nothing}
        </div>
    </dialog>`;
}

const KEYS = [
    ['Enter', t`Send`],
    ['Shift Enter', t`New line`],
    ['Ctrl Enter', t`Send, whatever Enter does`],
    ['Esc', t`Stop the answer, close a dialog`],
    ['↑', t`Edit the last question (in an empty field)`],
    ['/', t`Prompts that are used again (in an empty field)`],
    ['Ctrl Shift O', t`New chat`],
    ['Ctrl K', t`Search the chats`],
    ['Ctrl B', t`Show or hide the list of chats`],
    ['Ctrl Shift ⌫', t`Delete this chat`],
    ['Ctrl Shift Q', t`Quote what is selected`],
    ['Ctrl ,', t`Settings`],
    ['Ctrl /', t`This list`],
];

export function keysDialog() {
    return html`<dialog id="keys" aria-label=${t`Keyboard shortcuts`} @click=${backdrop}>
        ${head(t`Keyboard shortcuts`)}
        <div class="dialog-body">
            <dl class="facts keys">
                ${KEYS.map(
                    ([keys, what]) => html`<div>
                        <dt>${keys.split(' ').map((key) => html`<kbd>${key}</kbd>`)}</dt>
                        <dd>${what}</dd>
                    </div>`,
                )}
            </dl>
        </div>
    </dialog>`;
}

/** Images and text files, large; viewer.js is fetched with the first.
 * @param {{items: import('../state/store.js').Attachment[], at: number}|null} viewing */
export function imageDialog(viewing) {
    return html`<dialog id="image" class="viewer" aria-label=${viewing?.items[viewing.at]?.name ?? t`Image`} @click=${backdrop}>
        ${viewing ? html`<media-viewer .items=${viewing.items} .at=${viewing.at} .mark=${viewing.mark ?? null}></media-viewer>` : nothing}
    </dialog>`;
}
