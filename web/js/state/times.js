/**
 * Times that an answer names ("0:12", "12 s", "<12.0 seconds>"): where a video is shown with the
 * question, they are buttons that seek it.
 */
const TIME =
    /<(\d+(?:\.\d+)?) seconds?>|(?<![\d:.,])(?:(\d{1,2}):)?(\d{1,3}):([0-5]\d(?:\.\d+)?)(?![\d:])|(?<![\w:.,])(?:(\d+(?:\.\d+)?)\s?(?:secs?|seconds?)|(\d{1,3}(?:\.\d+)?)\s?s)\b/gi;

/**
 * @param {string} text
 * @returns {(string|{text: string, seconds: number})[]} the text in pieces, in order
 */
export function splitTimes(text) {
    const pieces = [];
    let end = 0;
    for (const match of text.matchAll(TIME)) {
        const [all, stamp, hours, minutes, rest, long, short] = match;
        const seconds = minutes === undefined ? Number(stamp ?? long ?? short) : Number(hours ?? 0) * 3600 + Number(minutes) * 60 + Number(rest);
        if (match.index > end) pieces.push(text.slice(end, match.index));
        pieces.push({ text: all, seconds });
        end = match.index + all.length;
    }
    if (end < text.length) pieces.push(text.slice(end));
    return pieces;
}

/** Makes the times in Markdown tokens tokens of their own, but not in code and links.
 * @param {any[]} tokens
 * @param {number} [length] seconds of the video: what lies behind its end ("John 3:16") is no time
 *        of it */
export function markTimes(tokens, length = Infinity) {
    for (const token of tokens) {
        if (token.type === 'text' && !token.tokens) {
            const pieces = splitTimes(token.text).map((piece) =>
                typeof piece !== 'string' && piece.seconds > length ? piece.text : piece,
            );
            if (pieces.some((piece) => typeof piece !== 'string')) {
                token.tokens = pieces.map((piece) =>
                    typeof piece === 'string' ? { type: 'text', raw: piece, text: piece } : { type: 'time', raw: piece.text, ...piece },
                );
            }
        } else if (token.type !== 'link' && token.type !== 'code') {
            for (const inner of [token.tokens, token.items, token.header, ...(token.rows ?? [])]) if (inner) markTimes(inner, length);
        }
    }
    return tokens;
}

/** 65_000 -> "1:05", 2_500 -> "0:02.5". @param {number} ms */
export function clock(ms) {
    const tenths = Math.floor((ms % 1000) / 100);
    return `${Math.floor(ms / 60_000)}:${String(Math.floor(ms / 1000) % 60).padStart(2, '0')}${tenths ? `.${tenths}` : ''}`;
}

/** Shows a video at a time, as soon as it can be. @param {HTMLVideoElement} video
 * @param {number} seconds */
export function seekVideo(video, seconds) {
    const go = () => {
        video.pause();
        video.currentTime = Math.min(seconds, video.duration || seconds);
    };
    if (video.readyState > 0) go();
    else video.addEventListener('loadedmetadata', go, { once: true });
    video.scrollIntoView({ block: 'nearest' });
    video.focus({ preventScroll: true });
}
