/**
 * Small things the other modules share. No state but the id counter; works without a secure context
 * (plain HTTP on a local network has neither random UUIDs nor the clipboard API).
 */
import { formatNumber, t } from './language.js';

/** The keys of localStorage that begin so. @param {string} prefix @returns {string[]} */
export const storedKeys = (prefix) => Object.keys(localStorage).filter((key) => key.startsWith(prefix));

/** An unguessable 128-bit id, as 22 letters of base64url. @param {string} [prefix] */
export function newId(prefix = '') {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    const text = btoa(String.fromCharCode(...bytes));
    return prefix + text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/**
 * Copies text; falls back to a hidden text area where the clipboard API is missing or refuses.
 * @param {string} text
 * @returns {Promise<boolean>} whether it worked
 */
export async function copyText(text) {
    if (navigator.clipboard && window.isSecureContext) {
        try {
            await navigator.clipboard.writeText(text);
            return true;
        } catch {
            // Refused (no focus, no permission): the old way may still work.
        }
    }
    const area = document.createElement('textarea');
    area.value = text;
    area.setAttribute('aria-hidden', 'true');
    area.className = 'offscreen';
    // Inside an open dialog only its own children can take the selection.
    (document.querySelector('dialog[open]') || document.body).append(area);
    const focused = /** @type {HTMLElement} */ (document.activeElement);
    area.select();
    let done = false;
    try {
        done = document.execCommand('copy');
    } catch {
        done = false;
    }
    area.remove();
    focused?.focus?.();
    return done;
}

/** Offers text or a blob as a file. @param {string} name @param {Blob} blob */
export function download(name, blob) {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** @param {number} n @param {number} digits behind the point */
const fixed = (n, digits) => formatNumber(n, { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** 1536 -> "1.5 KiB". @param {number} bytes */
export function formatBytes(bytes) {
    if (bytes < 1024) return `${bytes} B`;
    if (bytes < 1024 * 1024) return `${fixed(bytes / 1024, bytes < 10240 ? 1 : 0)} KiB`;
    if (bytes < 1024 ** 3) return `${fixed(bytes / 1024 ** 2, 1)} MiB`;
    return `${fixed(bytes / 1024 ** 3, 1)} GiB`;
}

/** 1234 ms -> "1.2 s", 95 s -> "1 min 35 s". @param {number} ms */
export function formatDuration(ms) {
    const s = ms / 1000;
    if (s < 0.1) return t`${Math.max(1, Math.round(ms))} ms`;
    if (s < 10) return t`${Number(s.toFixed(1))} s`;
    if (s < 60) return t`${Math.round(s)} s`;
    return t`${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
}

/** 25318088 -> "25 M", 32768 -> "32 768". @param {number} n */
export function formatCount(n) {
    if (n >= 1e9) return t`${fixed(n / 1e9, n < 1e10 ? 1 : 0)} B`;
    if (n >= 1e6) return t`${fixed(n / 1e6, n < 1e7 ? 1 : 0)} M`;
    return formatNumber(n);
}

/** A number of tokens per second with as many digits as mean something. @param {number} v */
export function formatRate(v) {
    return fixed(v, v >= 100 ? 0 : v >= 10 ? 1 : 2);
}

/** Why a file is not added, as a sentence for a person, with a next step. */
export class Refusal extends Error {}

/** Blob -> "data:image/png;base64,...". @param {Blob} blob @returns {Promise<string>} */
export function blobToDataUri(blob) {
    return new Promise((resolve, reject) => {
        const reader = new FileReader();
        reader.onload = () => resolve(/** @type {string} */ (reader.result));
        reader.onerror = () => reject(reader.error);
        reader.readAsDataURL(blob);
    });
}

/** What a rendering may take of the time between two: with a dear one (a long answer, a slow phone)
 * they come less often. */
const RENDER_FRACTION = 1 / 16;
const RENDER_MAX_MS = 250;

/**
 * Calls fn at most once per interval, on an animation frame, and never loses the last call.
 * @param {() => void} fn
 * @param {number} intervalMs the shortest one
 */
export function throttleFrames(fn, intervalMs) {
    let waiting = false;
    let last = 0;
    let cost = 0;
    const run = () => {
        waiting = false;
        last = performance.now();
        const begun = last;
        fn();
        // A timer runs once the frame is laid out and painted, which takes longer than fn.
        setTimeout(() => (cost = performance.now() - begun));
    };
    return () => {
        if (waiting) return;
        waiting = true;
        const interval = Math.max(intervalMs, Math.min(RENDER_MAX_MS, cost / RENDER_FRACTION));
        const wait = Math.max(0, interval - (performance.now() - last));
        // A hidden tab gets no animation frames: a timer alone keeps the text coming there.
        setTimeout(() => (document.hidden ? run() : requestAnimationFrame(run)), wait);
    };
}

/** Whether the device is a phone or tablet whose Enter key should make a new line. */
export function isTouchDevice() {
    return matchMedia('(pointer: coarse)').matches && !matchMedia('(any-pointer: fine)').matches;
}

/** What the browser has of voices; voice.js uses them. */
export const canDictate = () => 'SpeechRecognition' in window || 'webkitSpeechRecognition' in window;
export const canRead = () => 'speechSynthesis' in window && 'SpeechSynthesisUtterance' in window;
