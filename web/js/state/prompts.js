/**
 * Prompts that are used again, and system prompts to begin chats with: in localStorage, the same
 * for all tabs, read anew each time.
 *
 * @typedef {{id: string, name: string, text: string, system?: boolean}} Prompt   text: with places to fill in as {{name}}
 */
import { t } from '../language.js';
import { newId } from '../util.js';

const KEY = 'parley.prompts';
const MAX = 500;
const NAME_MAX = 80;
const TEXT_MAX = 20_000;

/** What is offered until somebody changes it. @type {Prompt[]} */
const STARTERS = [
    { id: 'p_1', name: t`Summarise`, text: t`Summarise this in five points:\n\n{{text}}` },
    { id: 'p_2', name: t`Translate`, text: t`Translate this into {{language}}:\n\n{{text}}` },
    { id: 'p_3', name: t`Better wording`, text: t`Improve the wording of this. Keep its meaning and its tone:\n\n{{text}}` },
    { id: 'p_4', name: t`Explain code`, text: `${t`Explain step by step what this code does, and what could go wrong in it:`}\n\n\`\`\`\n{{code}}\n\`\`\`` },
    { id: 'p_5', name: t`Brief`, text: t`Answer in at most three sentences.`, system: true },
    { id: 'p_6', name: t`Teacher`, text: t`You are a patient teacher. Explain simply, with an example, and end with a question that checks whether it was understood.`, system: true },
    { id: 'p_7', name: t`Code reviewer`, text: t`You review code. Name faults first, the worst one on top, each with its line and a fix; then say what could be simpler.`, system: true },
];

/** @returns {Prompt[]} */
export function readPrompts() {
    try {
        const kept = JSON.parse(localStorage.getItem(KEY) ?? 'null');
        return Array.isArray(kept) ? kept.map(read).filter((one) => one.name && one.text) : STARTERS;
    } catch {
        return STARTERS;
    }
}

/** @param {Prompt[]} prompts @returns {string} what is wrong; '': nothing */
export function writePrompts(prompts) {
    if (prompts.length > MAX) return t`There may be ${MAX} prompts.`;
    try {
        localStorage.setItem(KEY, JSON.stringify(prompts.map(read)));
        return '';
    } catch {
        return t`This browser has no room for it.`;
    }
}

/** @param {Partial<Prompt>} given @returns {Prompt} */
export function makePrompt(given) {
    return read({ ...given, id: newId('p_') });
}

function read(given) {
    const string = (value, most) => (typeof value === 'string' ? value.trim().slice(0, most) : '');
    return { id: string(given?.id, NAME_MAX) || newId('p_'), name: string(given?.name, NAME_MAX), text: string(given?.text, TEXT_MAX), ...(given?.system === true ? { system: true } : {}) };
}

/** Those whose name has all words, those that begin with them first. @param {Prompt[]} prompts @param {string} query */
export function findPrompts(prompts, query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = prompts.filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
    const begins = ({ name }) => name.toLowerCase().startsWith(query.trim().toLowerCase());
    return [...found.filter(begins), ...found.filter((one) => !begins(one))];
}

/** The next place to fill in, from a position on. @param {string} text @param {number} [from]
 * @returns {[number, number]|null} */
export function nextBlank(text, from = 0) {
    const match = /\{\{[^{}\n]{1,60}\}\}/.exec(text.slice(from));
    return match ? [from + match.index, from + match.index + match[0].length] : null;
}
