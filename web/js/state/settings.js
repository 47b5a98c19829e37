/**
 * Settings of this browser, in localStorage; without storage they last as long as the page.
 *
 *     settings.get('theme'); settings.set('theme', 'dark'); settings.addEventListener('change', ...)
 */
const KEY = 'parley.settings';

const DEFAULTS = {
    /** @type {'system'|'light'|'dark'} */
    theme: 'system',
    /** Of the page; empty: as the browser. first-frame.js reads it. */
    language: '',
    /** @type {'small'|'normal'|'large'|'larger'} */
    textSize: 'normal',
    thinking: false,
    enterSends: true,
    /** Whether the page scrolls along while an answer is written. */
    follow: true,
    /** Larger images are made smaller before they are sent, in pixels. */
    imageSize: 4 * 1024 * 1024,
    /** Frames a second of a video that is added; 0: as the model likes. */
    videoRate: 0,
    /** Whether requests say that they must stay here, where the server's rules could send them elsewhere. */
    staysHere: false,
    /** What new chats begin with. @type {import('./store.js').ChatOptions} */
    newChat: {},
    apiKey: '',
    sidebar: true,
    /** Whether the empty state tells at length what the model can do. */
    introduction: false,
    /** Whether an answer that ends while the page is not seen is told by the system. */
    notify: false,
    /** Whether the chats of this browser shall stay here although the server keeps chats. */
    declinedMove: false,
};

export class Settings extends EventTarget {
    constructor() {
        super();
        this.values = { ...DEFAULTS };
        try {
            Object.assign(this.values, JSON.parse(localStorage.getItem(KEY) ?? '{}'));
        } catch {
            // Damaged or forbidden storage: the defaults do.
        }
    }

    /** @param {keyof typeof DEFAULTS} name @returns {any} */
    get(name) {
        return this.values[name];
    }

    /** @param {keyof typeof DEFAULTS} name @param {any} value */
    set(name, value) {
        this.values[name] = value;
        try {
            localStorage.setItem(KEY, JSON.stringify(this.values));
        } catch {
            // It still holds until the page is closed.
        }
        this.dispatchEvent(new Event('change'));
    }
}

/** Puts theme and text size on the document. @param {Settings} settings */
export function applyAppearance(settings) {
    const root = document.documentElement;
    root.dataset.theme = settings.get('theme');
    root.dataset.text = settings.get('textSize');
}
