/**
 * Dictation and reading aloud, by the engines that the browser has: fetched with the first use. Where
 * the browser has none the page says so (util.js: canDictate, canRead). What an engine does with the voice is the
 * browser's own: some send it to their maker, and the settings say that.
 */
import { t } from '../language.js';
const Recognition = window.SpeechRecognition ?? /** @type {any} */ (window).webkitSpeechRecognition;

/** Some engines end by themselves when one utterance lasts longer. */
const PIECE = 200;

const PROBLEMS = {
    'not-allowed': t`This page may not use the microphone. The browser asks for it beside the address.`,
    'service-not-allowed': t`The browser does not let this page use its speech engine.`,
    'audio-capture': t`There is no microphone.`,
    network: t`The speech engine of this browser cannot be reached.`,
    'language-not-supported': t`The speech engine of this browser does not know this language.`,
};

/**
 * Writes what is said.
 * @param {{words: (text: string, isFinal: boolean) => void, ended: (problem: string) => void}} hears
 *   words: what is heard of the current sentence so far
 * @returns {() => void} what ends it
 */
export function dictate({ words, ended }) {
    const engine = new Recognition();
    engine.continuous = true;
    engine.interimResults = true;
    engine.lang = navigator.language;
    let problem = '';
    engine.onresult = ({ resultIndex, results }) => {
        for (let i = resultIndex; i < results.length; i += 1) words(results[i][0].transcript, results[i].isFinal);
    };
    engine.onerror = ({ error }) => (problem = error === 'no-speech' || error === 'aborted' ? '' : (PROBLEMS[error] ?? t`The speech engine says: ${error}.`));
    engine.onend = () => ended(problem);
    engine.start();
    return () => engine.stop();
}

/** What of an answer is read: its words, without code and formulas. @param {Element} answer */
export function spokenOf(answer) {
    const copy = /** @type {Element} */ (answer.cloneNode(true));
    for (const one of copy.querySelectorAll('code-block, math-view, math, table, button, svg, details.thinking')) one.remove();
    const blocks = [...copy.querySelectorAll('.prose:not(.thought)')].flatMap((prose) => [...prose.children]);
    return blocks.map((one) => one.textContent?.replace(/\s+/g, ' ').trim()).filter(Boolean).join('\n');
}

/** In pieces that end with a sentence, or at a space. @param {string} text */
export function piecesOf(text) {
    return text.split('\n').flatMap((line) => line.match(new RegExp(`.{1,${PIECE}}(?:[.!?。！？](?=\\s|$)|\\s|$)|.{1,${PIECE}}`, 'gu')) ?? []).map((one) => one.trim()).filter(Boolean);
}

/** Reads a text, instead of what is being read. @param {string} text @param {() => void} ended */
export function read(text, ended) {
    speechSynthesis.cancel();
    const pieces = piecesOf(text);
    const next = () => {
        const piece = pieces.shift();
        if (!piece) return ended();
        const spoken = new SpeechSynthesisUtterance(piece);
        spoken.onend = next;
        spoken.onerror = () => ended();
        speechSynthesis.speak(spoken);
    };
    next();
    return () => (pieces.splice(0), speechSynthesis.cancel(), ended());
}
