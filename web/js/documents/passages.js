/**
 * Passages of a long text, and those that answer a question: BM25 over words, beginnings of words and
 * pairs of letters where a language writes no spaces. Words are compared, not meanings: what is said
 * in other words is not found, and nobody is told otherwise. Pure functions, no DOM.
 *
 *     const index = await Passages.of(text);
 *     const { chosen, found } = index.search('When is it due?', 12_000);
 */

/** Letters of a passage: about 200 words; a longer stretch without a blank line is cut. */
const WANTED = 900;
const MOST = 1_500;
const K1 = 1.2;
const B = 0.75;
/** What a beginning of a word counts beside the word itself, and words of the question before. */
const BEGINNING = 0.4;
const BEFORE = 0.3;
const BEGINNING_LETTERS = 5;
const TURN_MS = 30;
/** Passages that match much worse than the best one are left out. */
const LEAST = 0.15;

const MARK = /^--- ((Page|Slide|Sheet|Chapter|Cell) .+?)(?: of [\d.,\s\u00a0\u202f]+)? ---$/;
const HEADING = /^#{1,6} +(.+)$/;
/** Scripts without spaces between words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
/** Words of questions that say nothing about what is asked for. */
const EMPTY = new Set(
    ('a about an and any are as at be by can could describe did do does document explain file find for from give has have how i in is it its list me most of on or please say says show summarise summarize summary tell than that the their there these this to under was were what when where which who why will with would you ' +
    'am auf aus bei bitte das dem den der des die dokument ein eine einen einer es für gibt hat im in ist man mit nach sagt sich sind steht über und vom von wann warum was welche welcher welches wer wie wird wo zu zum zur ' +
    'au aux avec ce ces comment dans de des du en est et fichier il la le les leur où par pour pourquoi quand que quel quelle quelles quels qui quoi se son sont sur un une ' +
    'como con cual cuales cuando del donde el en es esta este hay las los para por que quien se si sobre su una y').split(' '),
);

/** @typedef {{at: number, end: number, place: string, lead: string}} Passage   letters of the text; lead: the
 *   head of a table that began before it */

/** @param {string} text @returns {string[]} */
function termsOf(text) {
    const terms = [];
    const plain = text.normalize('NFKD').replace(/\p{M}/gu, '').normalize('NFC').toLowerCase();
    for (const [word] of plain.matchAll(/[\p{L}\p{N}]+/gu)) {
        if (!UNSPACED.test(word)) {
            terms.push(word);
            if (word.length > BEGINNING_LETTERS) terms.push(`${word.slice(0, BEGINNING_LETTERS)}*`);
        } else if (word.length === 1) terms.push(word);
        else for (let i = 1; i < word.length; i += 1) terms.push(word.slice(i - 1, i + 1));
    }
    return terms;
}

/** @param {string} text @returns {Passage[]} that cover it, in order */
export function passagesOf(text) {
    /** @type {Passage[]} */
    const passages = [];
    let [mark, heading, head, before] = ['', '', '', ''];
    let [at, line, first] = [0, 1, 1];
    let lead = '';
    const place = () => {
        const shown = mark.charAt(0).toLowerCase() + mark.slice(1);
        if (mark && !/^Chapter/.test(mark)) return shown;
        if (!heading) return shown || `line ${first}`;
        return `${shown && `${shown}, `}“${heading}”`;
    };
    const close = (end, nextLead = '') => {
        // Blank lines belong to what stands before them.
        if (text.slice(at, end).trim()) passages.push({ at, end, place: place(), lead });
        else if (passages.length) passages[passages.length - 1].end = end;
        at = end;
        first = line;
        lead = nextLead;
    };
    for (let from = 0; from < text.length; line += 1) {
        const newline = text.indexOf('\n', from);
        const end = newline < 0 ? text.length : newline + 1;
        const words = text.slice(from, Math.min(end, from + 400)).trimEnd();
        const isRow = words.startsWith('|');
        // The second row of a table is the line under its head.
        if (isRow && /^\|( --- \|)+$/.test(words)) head = `${before}\n${words}\n`;
        else if (!isRow) head = '';
        const marked = MARK.exec(words);
        const headed = HEADING.exec(words);
        if (marked || (headed && from - at > WANTED / 4) || (from - at >= WANTED && (!words || isRow))) close(from, isRow ? head : '');
        if (marked) [mark, heading] = [marked[1], ''];
        if (headed) heading = headed[1].slice(0, 80);
        if (from === at) first = line;
        // A line without an end is cut between words.
        let cut = from;
        while (end - at > MOST) {
            const space = text.lastIndexOf(' ', at + MOST);
            cut = Math.max(at + 1, from > at && from > at + WANTED / 2 ? from : space > at + WANTED / 2 ? space : at + MOST);
            close(Math.min(cut, end), isRow ? head : '');
        }
        before = words;
        from = end;
    }
    close(text.length);
    return passages;
}

export class Passages {
    /** @param {string} text @param {Passage[]} list */
    constructor(text, list) {
        this.text = text;
        this.list = list;
        /** Where each term stands: passage, count, passage, count, ... @type {Map<string, number[]>} */
        this.posts = new Map();
        /** Terms of each passage. @type {number[]} */
        this.lengths = [];
        this.mean = 0;
    }

    /** Long texts take seconds: whoever runs beside gets turns. @param {string} text */
    static async of(text) {
        const index = new Passages(text, passagesOf(text));
        let turn = performance.now();
        for (let i = 0; i < index.list.length; i += 1) {
            index.#add(i);
            if (performance.now() - turn < TURN_MS) continue;
            await new Promise((resolve) => setTimeout(resolve));
            turn = performance.now();
        }
        index.mean = index.lengths.reduce((sum, n) => sum + n, 0) / Math.max(1, index.list.length);
        return index;
    }

    /** @param {number} i a passage */
    #add(i) {
        const { at, end } = this.list[i];
        const terms = termsOf(this.text.slice(at, end));
        for (const term of terms) {
            const posts = this.posts.get(term);
            if (!posts) this.posts.set(term, [i, 1]);
            else if (posts[posts.length - 2] === i) posts[posts.length - 1] += 1;
            else posts.push(i, 1);
        }
        this.lengths.push(terms.length);
    }

    /** How well each passage answers. @param {string} question @param {string} [before] the question before it
     * @returns {Float64Array} */
    scores(question, before = '') {
        const scores = new Float64Array(this.list.length);
        /** @type {Map<string, number>} */
        const wanted = new Map();
        for (const [text, weight] of /** @type {[string, number][]} */ ([[before, BEFORE], [question, 1]])) {
            const terms = termsOf(text);
            const told = terms.filter((term, i) => !EMPTY.has(term) && !(term.endsWith('*') && EMPTY.has(terms[i - 1])));
            for (const term of told) wanted.set(term, weight * (term.endsWith('*') ? BEGINNING : 1));
        }
        const n = this.list.length;
        for (const [term, weight] of wanted) {
            const posts = this.posts.get(term) ?? [];
            const idf = Math.log(1 + (n - posts.length / 2 + 0.5) / (posts.length / 2 + 0.5));
            for (let i = 0; i < posts.length; i += 2) {
                const [at, count] = [posts[i], posts[i + 1]];
                scores[at] += (weight * idf * count * (K1 + 1)) / (count + K1 * (1 - B + (B * this.lengths[at]) / this.mean));
            }
        }
        return scores;
    }

    /**
     * The passages to read for a question, in the order of the text: the best ones, and the first of
     * all, which says what the text is. Where no word of the question is in it they are spread over it.
     * @param {string} question @param {number} room letters @param {string} [before]
     * @returns {{chosen: number[], found: boolean}}
     */
    search(question, room, before) {
        const scores = this.scores(question, before);
        const order = [...scores.keys()].sort((a, b) => scores[b] - scores[a] || a - b);
        const best = scores[order[0]] ?? 0;
        const found = best > 0;
        const step = Math.max(1, Math.ceil(this.text.length / Math.max(1, room)));
        const offered = found ? order.filter((i) => scores[i] >= best * LEAST) : order.map((_, i) => i).filter((i) => i % step === 0);
        const chosen = new Set();
        let left = room;
        for (const i of [offered[0], 0, ...offered.slice(1)]) {
            if (i === undefined || chosen.has(i) || !this.list[i]) continue;
            const { at, end, lead } = this.list[i];
            const size = end - at + lead.length;
            if (size > left) continue;
            chosen.add(i);
            left -= size;
        }
        return { chosen: [...chosen].sort((a, b) => a - b), found };
    }
}
