/** The dialogs: settings, what is known about the model, the picture viewer, keyboard shortcuts. All native <dialog>. */
import { html, live, nothing } from '../vendor/lit.js';
import { urlOf } from './attachments.js';
import { icon } from './icons.js';
import { formatBytes, formatCount } from './util.js';
import { connectionWords } from './words.js';

/** Closes a dialog when its backdrop is clicked. @param {MouseEvent} event */
function backdrop(event) {
    if (event.target === event.currentTarget) /** @type {HTMLDialogElement} */ (event.currentTarget).close();
}

function head(title) {
    return html`<header>
        <h2>${title}</h2>
        <form method="dialog">
            <button class="quiet icon-only" aria-label="Close" title="Close (Esc)">${icon('close')}</button>
        </form>
    </header>`;
}

/** @param {string} id */
export function openDialog(id) {
    const dialog = /** @type {HTMLDialogElement|null} */ (document.getElementById(id));
    if (dialog && !dialog.open) dialog.showModal();
}

/** @param {import('./settings.js').Settings} settings @param {any} actions */
export function settingsDialog(settings, { onKey, onExport, onMarkdown, onImport }) {
    const set = (name) => (event) => settings.set(name, event.target.value);
    const setNumber = (name) => (event) => {
        const value = event.target.value.trim();
        settings.set(name, value === '' || Number.isNaN(Number(value)) ? null : Number(value));
    };
    const choice = (name, label, options) => html`<fieldset>
        <legend>${label}</legend>
        <div class="segments">
            ${options.map(
                ([value, text, picture]) => html`<label>
                    <input type="radio" name=${name} .checked=${live(settings.get(name) === value)}
                        @change=${() => settings.set(name, value)} />
                    <span>${picture ? icon(picture) : nothing}${text}</span>
                </label>`,
            )}
        </div>
    </fieldset>`;
    const number = (name, label, min, max, step) => html`<label class="field">
        <span>${label}</span>
        <input type="number" inputmode="decimal" min=${min} max=${max} step=${step} placeholder="model's own"
            .value=${live(settings.get(name) ?? '')} @change=${setNumber(name)} />
    </label>`;
    return html`<dialog id="settings" aria-label="Settings" @click=${backdrop}>
        ${head('Settings')}
        <div class="dialog-body">
            ${choice('theme', 'Colours', [
                ['system', 'System', 'screen'],
                ['light', 'Light', 'sun'],
                ['dark', 'Dark', 'moon'],
            ])}
            ${choice('textSize', 'Text size', [
                ['normal', 'Normal'],
                ['large', 'Large'],
            ])}
            ${choice('enterSends', 'Enter key', [
                [true, 'Sends'],
                [false, 'New line'],
            ])}
            <label class="field tall">
                <span>System prompt</span>
                <textarea rows="3" placeholder="What the model should know about its task"
                    .value=${live(settings.get('systemPrompt'))} @change=${set('systemPrompt')}></textarea>
            </label>
            <div class="fields">
                ${number('temperature', 'Temperature', 0, 2, 0.1)}
                ${number('topP', 'Top p', 0, 1, 0.05)}
                ${number('maxTokens', 'Longest answer', 1, 1048576, 1)}
            </div>
            <fieldset>
                <legend>Chats</legend>
                <div class="row">
                    <button type="button" class="plain" @click=${onExport}>${icon('download')}Export all</button>
                    ${onMarkdown
                        ? html`<button type="button" class="plain" @click=${onMarkdown}>${icon('file')}This one as Markdown</button>`
                        : nothing}
                    <label class="button plain">
                        Import
                        <input type="file" class="offscreen" accept=".json,application/json" @change=${onImport} />
                    </label>
                </div>
            </fieldset>
            <label class="field">
                <span>API key</span>
                <input type="password" autocomplete="off" placeholder="only if the server asks for one"
                    .value=${live(settings.get('apiKey'))} @change=${(event) => onKey(event.target.value.trim())} />
            </label>
        </div>
    </dialog>`;
}

/** @param {any} model @param {import('./connection.js').Connection} connection */
export function modelDialog(model, connection) {
    const words = connectionWords(connection);
    const rows = [
        ['Model', model.name],
        ['Context', model.context ? `${formatCount(model.context)} tokens` : ''],
        ['Parameters', model.parameters ? formatCount(model.parameters) : ''],
        ['Size', model.bytes ? formatBytes(model.bytes) : ''],
        ['Reads', model.modalities?.join(', ') ?? ''],
        ['Thinks', model.thinkingKnown ? (model.thinking ? 'on request' : 'no') : ''],
        ['Server', model.server],
        ['Connection', `${words.label}${connection.state === 'open' ? ' by WebSocket' : ''}`],
    ].filter(([, value]) => value);
    return html`<dialog id="model" aria-label="About the model" @click=${backdrop}>
        ${head('About the model')}
        <div class="dialog-body">
            <dl class="facts">${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
            ${words.detail ? html`<p class="note">${words.detail}</p>` : nothing}
            <p class="note">Another model: <code>parley -m DIR</code>, where DIR holds a checkpoint.</p>
        </div>
    </dialog>`;
}

const KEYS = [
    ['Enter', 'Send'],
    ['Shift Enter', 'New line'],
    ['Esc', 'Stop the answer'],
    ['↑', 'Edit the last question (in an empty field)'],
    ['Ctrl Shift O', 'New chat'],
    ['Ctrl B', 'Show or hide the list of chats'],
    ['Ctrl /', 'This list'],
];

export function keysDialog() {
    return html`<dialog id="keys" aria-label="Keyboard" @click=${backdrop}>
        ${head('Keyboard')}
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

/** @param {import('./store.js').Attachment|null} picture */
export function pictureDialog(picture) {
    return html`<dialog id="picture" class="viewer" aria-label=${picture?.name ?? 'Picture'} @click=${backdrop}>
        ${head(picture?.name ?? '')}
        ${picture?.blob
            ? html`<img src=${urlOf(picture.blob)} alt=${picture.name} />
                  <p>${picture.width} × ${picture.height} · ${formatBytes(picture.bytes)}${picture.note ? ` · ${picture.note}` : ''}</p>`
            : nothing}
    </dialog>`;
}
