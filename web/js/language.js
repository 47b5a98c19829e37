/**
 * The language of the page. Every text that a person reads or hears is written in English where it
 * stands, and found by it in the chosen language's file (languages/de.json, ...):
 *
 *     t`Delete ${title}?`                                      "Delete {0}?" in the file
 *     plural(n, '{0} message deleted.', '{0} messages deleted.')     {"one": ..., "other": ...} there
 *
 * first-frame.js has put the language on the document. It stays until the page is loaded again. What
 * a file lacks, or a file that cannot be had, is English.
 */

/** Those that there are, each by its own name. */
export const LANGUAGES = { en: 'English', de: 'Deutsch', fr: 'Français', es: 'Español', zh: '中文', ja: '日本語', ar: 'العربية' };

const language = globalThis.document?.documentElement.lang || 'en';
/** For Intl. Arabic with the digits that times, sizes and versions have everywhere. */
export const locale = { ar: 'ar-u-nu-latn', zh: 'zh-Hans' }[language] ?? language;

/** @type {Record<string, string|Record<string, string>>} */
const messages = language === 'en' ? {} : await load();

async function load() {
    try {
        return await (await fetch(new URL(`../languages/${language}.json`, import.meta.url))).json();
    } catch {
        return {};
    }
}

const rules = new Intl.PluralRules(locale);
/** @type {WeakMap<TemplateStringsArray, string>} */
const keys = new WeakMap();

/** @param {string} text @param {any[]} values */
const fill = (text, values) => (values.length ? text.replace(/\{(\d)\}/g, (_, i) => (typeof values[i] === 'number' ? formatNumber(values[i]) : values[i])) : text);

/** A text with its values. @param {TemplateStringsArray} strings @param {...any} values numbers are written as the language does */
export function t(strings, ...values) {
    let key = keys.get(strings);
    if (key === undefined) keys.set(strings, (key = strings.reduce((text, part, i) => `${text}{${i - 1}}${part}`)));
    return fill(/** @type {string} */ (messages[key] ?? key), values);
}

/** A text that is data of the page. @param {string} text */
export const translated = (text) => /** @type {string} */ (messages[text] ?? text);

/** A text about `n` things: {0} is n, the values follow. @param {number} n @param {string} one
 * @param {string} other in English @param {...any} values */
export function plural(n, one, other, ...values) {
    const forms = messages[other];
    return fill(forms ? (forms[rules.select(n)] ?? forms.other) : n === 1 ? one : other, [n, ...values]);
}

/** English has thin spaces between thousands, as in the rest of the project. @param {number} n @param {Intl.NumberFormatOptions} [options] */
export function formatNumber(n, options) {
    const text = n.toLocaleString(locale, options);
    return language === 'en' ? text.replaceAll(',', '\u202f') : text;
}

/** 0.456 -> "46 %". @param {number} part */
export const formatPercent = (part) => (language === 'en' ? `${Math.round(part * 100)} %` : formatNumber(part, { style: 'percent' }));

/** "1 December 2026". @param {number} ms of the epoch */
export const formatDay = (ms) => new Intl.DateTimeFormat(locale === 'en' ? 'en-GB' : locale, { dateStyle: 'long' }).format(ms);

/** "a, b and c". @param {string[]} items */
export const listed = (items) => new Intl.ListFormat(locale === 'en' ? 'en-GB' : locale).format(items);
