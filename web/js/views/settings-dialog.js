/** The settings in three parts: what holds for the shown chat, for new chats, and for this browser. */
import { html, live, nothing } from '../../vendor/lit.js';
import { LANGUAGES, formatNumber, plural, t } from '../language.js';
import { backdrop, head } from './dialogs.js';
import { icon } from './icons.js';
import { menuButton } from './menu.js';
import { canDictate, canRead, formatBytes } from '../util.js';
import { OPTIONS, textProblem } from '../state/store.js';

/** Options with a number: label, and the model's own value by its name in /props. */
const NUMBERS = {
    temperature: [t`Temperature`, 'temperature'],
    maxTokens: [t`Max tokens`, 'max_tokens'],
    topP: [t`Top p`, 'top_p'],
    topK: [t`Top k`, 'top_k'],
    minP: [t`Min p`, 'min_p'],
    repeatPenalty: [t`Repetition penalty`, 'repetition_penalty'],
    presencePenalty: [t`Presence penalty`, 'presence_penalty'],
    frequencyPenalty: [t`Frequency penalty`, 'frequency_penalty'],
    seed: [t`Seed`, ''],
};
const TEXTS = { systemPrompt: t`System prompt`, stop: t`Stop sequences`, schema: t`JSON schema`, tools: t`Tools` };
const MODELS = { model: t`Model`, beside: t`Beside` };
const FIRST = ['temperature', 'maxTokens'];

/** The model's own value, as the field shows it while it is empty. */
function ownValue(defaults, name) {
    const value = defaults?.[name];
    if (!name) return t`random`;
    // A server without a limit of its own says so by a number without meaning.
    return value === undefined || value < 0 || (name === 'max_tokens' && value > 1e9) ? t`model's own` : t`${formatNumber(Number(value.toFixed?.(4) ?? value), { maximumFractionDigits: 4, useGrouping: false })} (model)`;
}

const PARTS = [
    ['chat', t`This chat`],
    ['new', t`New chats`],
    ['browser', t`This browser`],
];

/** What a chat has of its own, in words: "System prompt", "Temperature 0.2". @param {any} options */
export function ownOptions(options = {}) {
    return Object.entries(options).map(([name, value]) => (NUMBERS[name] ? `${NUMBERS[name][0]} ${value}` : MODELS[name] ? `${MODELS[name]} ${value}` : TEXTS[name]));
}

/** System prompt and sampling. @param {any} options @param {any} defaults
 * @param {(name: string, value: any) => void} onChange
 * @param {{chat: any, tools: boolean, onPrompts: () => void, onPresets: () => void}} actions */
function optionFields(options, defaults, onChange, { chat, tools, onPrompts, onPresets }) {
    const setNumber = (name) => (event) => {
        const { min = 0, max = 0, step } = OPTIONS[name];
        const value = event.target.value.trim();
        const number = step === 1 ? Math.round(Number(value)) : Number(value);
        const chosen = value === '' || Number.isNaN(number) ? undefined : Math.min(max, Math.max(min, number));
        // TRAP: a field that is bound with live() would lose what is being typed whenever the page
        // renders.
        event.target.value = chosen ?? '';
        onChange(name, chosen);
    };
    const number = (name) => html`<label class="field">
        <span>${NUMBERS[name][0]}</span>
        <input type="number" inputmode="decimal" min=${OPTIONS[name].min} max=${OPTIONS[name].max} step=${OPTIONS[name].step}
            placeholder=${ownValue(defaults, NUMBERS[name][1])}
            .value=${options[name] ?? ''} @change=${setNumber(name)} />
    </label>`;
    const rest = Object.keys(NUMBERS).filter((name) => !FIRST.includes(name));
    /** What is wrong stays in the field, and what was chosen before holds. */
    const setText = (name) => (event) => {
        const { value } = event.target;
        const problem = textProblem(name, value);
        event.target.setAttribute('aria-invalid', String(!!problem));
        event.target.parentElement.querySelector('[role=status]').textContent = problem;
        if (!problem) onChange(name, value.trim() ? value : undefined);
    };
    const text = (name, hint) => html`<label class="field">
        <span>${TEXTS[name]}</span>
        <textarea rows="2" dir="auto" spellcheck="false" placeholder=${hint} .value=${options[name] ?? ''} @change=${setText(name)}></textarea>
        <small class="note bad" role="status"></small>
    </label>`;
    return html`<label class="field tall">
            <span>${t`System prompt`}</span>
            <textarea rows="4" dir="auto" placeholder=${t`What the model should know about its task`}
                .value=${options.systemPrompt ?? ''}
                @change=${(event) => onChange('systemPrompt', event.target.value.trim())}></textarea>
        </label>
        <div class="row">
            ${menuButton({
                id: 'presets', look: 'plain small', label: t`Presets`, face: html`${icon('thought')}${t`Presets`}${icon('down')}`, onOpen: onPresets,
                content: html`<prompt-presets .text=${options.systemPrompt ?? ''} .choose=${(text) => onChange('systemPrompt', text)} @edit-prompts=${onPrompts}></prompt-presets>`,
            })}
        </div>
        <div class="fields">${FIRST.map(number)}</div>
        ${tools ? html`<fieldset><legend>${TEXTS.tools}</legend><tool-choice .chat=${chat} .choice=${options.tools} .choose=${(value) => onChange('tools', value)}></tool-choice></fieldset>` : nothing}
        <details ?open=${[...rest, 'stop', 'schema'].some((name) => options[name] !== undefined)}>
            <summary>${t`More sampling`}</summary>
            <div class="fields">${rest.map(number)}</div>
            ${text('stop', t`One a line: the answer ends before it`)} ${text('schema', t`{ "type": "object", … }: the answer is JSON of this form`)}
        </details>`;
}

/**
 * @param {import('../state/chat.js').Chat} chat @param {any} defaults the model's own values, or null
 * @param {string} part which of the three is shown @param {any} actions
 */
export function settingsDialog(chat, defaults, part, { onPart, onMarkdown, ...rest }) {
    const actions = { chat, ...rest };
    const { settings } = chat;
    const options = chat.current.options ?? {};
    const ofNew = settings.get('newChat');
    const bodies = {
        chat: () => html`
            ${optionFields(options, defaults, (name, value) => chat.setOption(name, value), actions)}
            <div class="row">
                <button type="button" class="plain" @click=${() => chat.keepOptions()} ?disabled=${JSON.stringify(ofNew) === JSON.stringify(options)}>
                    ${t`New chats begin like this one`}
                </button>
                ${onMarkdown
                    ? html`<button type="button" class="plain" @click=${onMarkdown}>${icon('file')}${t`This one as Markdown`}</button>`
                    : nothing}
            </div>`,
        new: () => html`<p class="note">${t`What chats begin with that are made from now on; those that are there keep their own.`}</p>
            ${optionFields(ofNew, defaults, (name, value) => chat.setNewOption(name, value), actions)}`,
        browser: () => browserPart(chat, actions),
    };
    const go = (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const at = PARTS.findIndex(([name]) => name === part);
        const [name] = PARTS[(at + step + PARTS.length) % PARTS.length];
        onPart(name);
        event.currentTarget.querySelector(`[data-part=${name}]`).focus();
    };
    return html`<dialog id="settings" aria-label=${t`Settings`} @click=${backdrop}>
        ${head(t`Settings`)}
        <div class="tabs" role="tablist" aria-label=${t`Settings of`} @keydown=${go}>
            ${PARTS.map(
                ([name, label]) => html`<button type="button" role="tab" id="tab-${name}" data-part=${name} aria-selected=${name === part}
                    aria-controls="settings-part" tabindex=${name === part ? 0 : -1} @click=${() => onPart(name)}>${label}</button>`,
            )}
        </div>
        <section id="settings-part" role="tabpanel" aria-labelledby="tab-${part}" class="dialog-body">${bodies[part]()}</section>
    </dialog>`;
}

/** What the browser has of voices. */
function voiceWords() {
    const dictates = canDictate() ? t`This browser takes dictation, with an engine of its own that may send your voice to its maker.` : t`This browser cannot take dictation.`;
    return `${dictates} ${canRead() ? t`It reads answers aloud.` : t`It cannot read answers aloud.`}`;
}

/** How much is kept. @param {import('../state/chat.js').Chat} chat */
function storageWords({ list, stored, history }) {
    const chats = plural(list.length, '{0} chat.', '{0} chats.');
    if (!stored) return chats;
    const used = stored.most ? t`${formatBytes(stored.used)} of at most ${formatBytes(stored.most)}` : formatBytes(stored.used);
    return `${chats} ${history.remote ? t`The server keeps ${used}.` : t`This page keeps ${used} in this browser.`}`;
}

/** @param {import('../state/chat.js').Chat} chat @param {any} actions */
function browserPart(chat, { onKey, onExport, onImport, onIntroduction, onPrompts, onRemoveAll }) {
    const { settings, connection } = chat;
    const refused = connection.state === 'unauthorised' && !!connection.key;
    const choice = (name, label, list, onChoice = (_) => {}) => html`<fieldset>
        <legend>${label}</legend>
        <div class="segments">
            ${list.map(
                ([value, text, image]) => html`<label>
                    <input type="radio" name=${name} .checked=${live(settings.get(name) === value)}
                        @change=${() => (settings.set(name, value), onChoice(value))} />
                    <span>${image ? icon(image) : nothing}${text}</span>
                </label>`,
            )}
        </div>
    </fieldset>`;
    return html`
        ${choice('theme', t`Theme`, [
            ['system', t`System`, 'screen'],
            ['light', t`Light`, 'sun'],
            ['dark', t`Dark`, 'moon'],
        ])}
        <label class="field">
            <span>${t`Language`}</span>
            <select id="language" @change=${(event) => (settings.set('language', event.target.value), location.reload())}>
                <option value="" ?selected=${!settings.get('language')}>${t`As the browser`}</option>
                ${Object.entries(LANGUAGES).map(([code, name]) => html`<option value=${code} lang=${code} ?selected=${settings.get('language') === code}>${name}</option>`)}
            </select>
        </label>
        ${choice('textSize', t`Text size`, [
            ['small', t`Small`],
            ['normal', t`Normal`],
            ['large', t`Large`],
            ['larger', t`Larger`],
        ])}
        ${choice('enterSends', t`Enter key`, [
            [true, t`Sends`],
            [false, t`New line`],
        ])}
        ${choice('follow', t`While an answer is written`, [
            [true, t`Scroll along`],
            [false, t`Stay`],
        ])}
        ${window.Notification && isSecureContext
            ? choice('notify', t`When an answer ends in the background`, [
                  [false, t`Mark the title`],
                  [true, t`Notify me too`],
              ], (value) => value && Notification.requestPermission())
            : nothing}
        ${choice('imageSize', t`Images are sent with at most`, [
            [1 << 18, '¼ MP'],
            [1 << 20, '1 MP'],
            [1 << 22, '4 MP'],
            [1 << 24, '16 MP'],
        ])}
        ${choice('videoRate', t`Frames a second of videos`, [
            [0, t`Auto`],
            [1, '1'],
            [2, '2'],
            [4, '4'],
        ])}
        <fieldset>
            <legend>${t`Chats`}</legend>
            <div class="row">
                <button type="button" class="plain" @click=${onExport}>${icon('download')}${t`Export all`}</button>
                <label class="button plain">
                    ${t`Import`}
                    <input type="file" class="offscreen" accept=".json,.zip,application/json,application/zip" @change=${onImport} />
                </label>
                <button type="button" class="plain" @click=${onPrompts}>${t`Prompts`}</button>
                <button type="button" class="plain" @click=${onIntroduction}>${t`Show the introduction`}</button>
                <button type="button" class="plain" ?disabled=${!chat.list.length} @click=${onRemoveAll}>${icon('trash')}${t`Delete all`}</button>
                <p class="note" id="storage">${storageWords(chat)}</p>
            </div>
        </fieldset>
        <p class="note" id="voice">${voiceWords()}</p>
        <label class="field">
            <span>${t`API key`}</span>
            <input type="password" id="api-key" autocomplete="off" placeholder=${t`only if the server asks for one`}
                aria-describedby="api-key-state" aria-invalid=${refused ? 'true' : nothing}
                .value=${settings.get('apiKey')} @change=${(event) => onKey(event.target.value.trim())} />
        </label>
        <p id="api-key-state" class="note ${refused ? 'bad' : ''}" role="status">${refused ? t`The server does not accept this API key.` : nothing}</p>
    `;
}
