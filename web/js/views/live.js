/**
 * What a screen reader hears. Three hidden regions that are always there: the state at most every
 * seven seconds, a finished answer once as plain text, and errors. Streaming text itself is silent.
 */
import { t } from '../language.js';
import { errorWords, progressWords } from '../words.js';

const STATUS_MS = 7_000;

export class Announcer {
    /** @param {import('../state/chat.js').Chat} chat */
    constructor(chat) {
        this.status = /** @type {HTMLElement} */ (document.getElementById('live-status'));
        this.answer = /** @type {HTMLElement} */ (document.getElementById('live-answer'));
        this.alert = /** @type {HTMLElement} */ (document.getElementById('live-alert'));
        this.lastStatus = -STATUS_MS;
        chat.addEventListener('message', (event) => {
            const message = chat.current.messages[event.detail];
            if (message?.status === 'streaming') this.#say(message, chat.progress.get(message.id));
        });
        chat.addEventListener('finished', (event) => {
            const message = event.detail;
            this.status.textContent = '';
            this.lastStatus = -STATUS_MS;
            if (!chat.current.messages[message.id]) return;
            if (message.status === 'failed') {
                const { what, next } = errorWords(message.error);
                this.alert.textContent = `${what} ${next}`;
                return;
            }
            this.alert.textContent = '';
            const parts = () => [...document.querySelectorAll(`chat-message[data-id="${message.id}"] .answer > .prose`)];
            // After the last rendering, so that it is the text as shown.
            setTimeout(() => {
                const shown = parts().map((part) => /** @type {HTMLElement} */ (part).innerText.trim());
                const text = shown.join('\n') || message.text;
                this.answer.textContent = message.status === 'stopped' ? t`Stopped. ${text}` : text;
            }, 150);
        });
    }

    /** @param {import('../state/store.js').Message} message @param {any} progress */
    #say(message, progress) {
        const now = performance.now();
        if (now - this.lastStatus < STATUS_MS) return;
        this.lastStatus = now;
        this.alert.textContent = '';
        if (progress && progress.kind !== 'started') this.status.textContent = progressWords(progress).text;
        else this.status.textContent = message.text ? t`Answering…` : message.reasoning ? t`Thinking…` : t`Starting…`;
    }
}
