/**
 * Which text of documents goes along with a question. All of it where the context has room; of what
 * is longer the passages that match the question best, noted as the answer's sources.
 *
 *     const plan = await readingPlan(path, { context, count });
 *     plan?.textOf(attachment);   // instead of the whole text; null: all of it
 *     plan?.tail;                 // what stands before the words of the last question
 *
 * @typedef {import('./store.js').Message} Message
 * @typedef {import('./store.js').Attachment} Attachment
 * @typedef {{list: {file: string, name: string, place: string, at: number, end: number}[], read: number, all: number,
 *            found: boolean}} Sources   list: places in the text of an attachment, in letters; read and all: passages
 */
import { Passages } from '../documents/passages.js';

/** Tokens of passages for one question: more is slow to read and answers no better. */
const MOST_TOKENS = 6_000;
/** Parts of the context that are kept for the answer, and that whole documents may fill beside
 * passages. */
const ANSWER_PART = 1 / 4;
const ANSWER_MOST = 4_096;
const WHOLE_PART = 1 / 2;
/** Estimates are this much too low at worst. */
const CARE = 1.1;
const SAMPLE = 2_000;
/** Where the server does not count: letters of a token, in Latin script and in others. */
const LATIN = 3;
/** An image's pixels for one token, at the least that any model here takes. */
const PIXELS = 28 * 28;

/** @type {WeakMap<Blob, Promise<Passages>>} */
const indexes = new WeakMap();
/** Tokens a letter, by text. @type {WeakMap<Blob, number>} */
const rates = new WeakMap();

/** @param {string} text */
function guess(text) {
    let tokens = 0;
    for (const letter of text) tokens += letter < '\u0370' ? 1 / LATIN : 1;
    return tokens;
}

/** @param {Blob} blob @param {string} text @param {(text: string) => Promise<number>} count */
async function rateOf(blob, text, count) {
    let rate = rates.get(blob);
    if (rate !== undefined) return rate;
    const parts = text.length <= 3 * SAMPLE ? [text] : [0, (text.length - SAMPLE) >> 1, text.length - SAMPLE].map((at) => text.slice(at, at + SAMPLE));
    const sample = parts.join('\n');
    const tokens = await count(sample).catch(() => 0);
    rate = (tokens || guess(sample)) / Math.max(1, sample.length);
    if (tokens) rates.set(blob, rate);
    return rate;
}

/** @param {Blob} blob @param {string} text */
function indexOf(blob, text) {
    let index = indexes.get(blob);
    if (!index) indexes.set(blob, (index = Passages.of(text)));
    return index;
}

/**
 * @param {Message[]} path from the first message to the last question, or an answer that is continued
 * @param {{context: number|undefined, count: (text: string) => Promise<number>}} model how many tokens it
 *   reads, and how many a text has (throws where nobody knows)
 * @returns {Promise<{textOf: (one: Attachment) => string|null, tail: {id: string, text: string}, sources: Sources}|null>}
 *   null: everything goes along whole
 */
export async function readingPlan(path, { context, count }) {
    const files = path.flatMap(({ attachments = [] }) => attachments).filter((one) => one.kind === 'text' && one.blob);
    // A token has at least one byte: what is shorter fits for certain.
    if (!context || files.reduce((sum, { bytes }) => sum + bytes, 0) < context / 2) return null;
    const words = path.map(({ text }) => text).join('\n');
    const images = path.flatMap(({ attachments = [] }) => attachments).filter(({ kind }) => kind === 'image');
    const others = guess(words) + images.reduce((sum, { width, height }) => sum + (width * height) / PIXELS, 0);
    const room = (context - Math.min(ANSWER_MOST, context * ANSWER_PART) - others) / CARE;
    const documents = [];
    for (const file of files) {
        const text = await /** @type {Blob} */ (file.blob).text();
        const rate = await rateOf(/** @type {Blob} */ (file.blob), text, count);
        documents.push({ file, text, rate, tokens: text.length * rate });
    }
    let whole = documents.reduce((sum, { tokens }) => sum + tokens, 0);
    if (whole <= room) return null;
    /** @type {typeof documents} */
    const searched = [];
    for (const one of [...documents].sort((a, b) => b.tokens - a.tokens)) {
        if (whole <= room * WHOLE_PART) break;
        searched.push(one);
        whole -= one.tokens;
    }
    return searchIn(searched, path, Math.max(200, Math.min(MOST_TOKENS, room - whole)));
}

/** @param {{file: Attachment, text: string, rate: number}[]} searched @param {Message[]} path @param {number} tokens room for passages */
async function searchIn(searched, path, tokens) {
    const questions = path.filter(({ role }) => role === 'user');
    const question = questions[questions.length - 1];
    const before = questions[questions.length - 2]?.text ?? '';
    /** @type {Sources} */
    const sources = { list: [], read: 0, all: 0, found: false };
    const said = [];
    for (const { file, text, rate } of searched) {
        const index = await indexOf(/** @type {Blob} */ (file.blob), text);
        const { chosen, found } = index.search(question.text, tokens / rate / searched.length, before);
        sources.read += chosen.length;
        sources.all += index.list.length;
        sources.found ||= found;
        const how = found ? 'These match the question best' : 'No word of the question is in it; these are spread over it';
        said.push(`${file.name} is longer than can be read at once: it has ${index.list.length} passages. ${how}; the others were left out. If the answer is not here, say that it may stand in what was left out.`);
        for (const [i, n] of chosen.entries()) {
            const { at, end, place, lead } = index.list[n];
            const last = sources.list[sources.list.length - 1];
            // What follows directly is read as one.
            if (i > 0 && chosen[i - 1] === n - 1 && last.place === place) {
                last.end = end;
                said[said.length - 1] += text.slice(at, end);
                continue;
            }
            sources.list.push({ file: file.id, name: file.name, place, at, end });
            said.push(`[${sources.list.length}] ${file.name}, ${place}:\n${lead}${text.slice(at, end)}`);
        }
    }
    const long = new Set(searched.map(({ file }) => file.id));
    return {
        textOf: (one) => (long.has(one.id) ? `File ${one.name}: too long to be read whole. Passages of it stand with the last question.` : null),
        tail: { id: question.id, text: said.map((one) => one.trimEnd()).join('\n\n') },
        sources,
    };
}
