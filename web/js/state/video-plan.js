/** What the server will make of a video: which frames, and about how many tokens. */

/** "<12.0 seconds>" and the two marks around a pair of frames. */
const WORDS_A_PAIR = 8;

/**
 * Seconds of the frames that the server will choose: evenly from the first to the last of the part.
 * @param {number} seconds length of the video
 * @param {{fps?: number, max_frames?: number, start_ms?: number, end_ms?: number}} chosen
 * @param {{fps: number, min_frames: number, max_frames: number, num_frames?: number}} model what the checkpoint says
 */
export function frameTimes(seconds, chosen, model) {
    const start = (chosen.start_ms ?? 0) / 1000;
    const length = Math.max(0, Math.min(seconds, (chosen.end_ms ?? seconds * 1000) / 1000) - start);
    const byRate = Math.trunc(length * (chosen.fps ?? model.fps) + 1e-6);
    const wanted = chosen.fps ? byRate : model.num_frames || byRate;
    const n = Math.min(Math.max(wanted, model.min_frames), chosen.max_frames ?? model.max_frames, model.max_frames);
    // The last frame begins before the end; how long it lasts the browser does not tell.
    const last = Math.max(0, length - 0.04);
    if (model.num_frames) return Array.from({ length: n }, (_, i) => start + (i * length) / n);
    return Array.from({ length: n }, (_, i) => start + (n > 1 ? (i * last) / (n - 1) : 0));
}

/** @param {number} x half to even, as the server rounds */
function roundEven(x) {
    const below = Math.floor(x);
    return x - below === 0.5 ? below + (below % 2) : Math.round(x);
}

/**
 * About how many tokens the frames take: the encoder's, and the words around each pair of frames.
 * @param {number} width @param {number} height of the video in pixels @param {number} n frames shown
 * @param {any} model what the server says of its encoder
 * @returns {number|null} null where it does not say
 */
export function videoTokens(width, height, n, model) {
    const { patch_size: patch, merge_size: merge, temporal_patch_size: pair, min_pixels: least, max_pixels: most } = model;
    if (!patch || !width || !height || !n) return null;
    const unit = patch * merge;
    if (model.fills_budget) {
        const factor = Math.sqrt(most / (width * height));
        const [across, down] = [width, height].map((side) => Math.max(1, Math.floor((factor * side) / unit)));
        return n * (Math.min(across * down, Math.floor(most / unit ** 2)) + WORDS_A_PAIR);
    }
    const enlarge = Math.max(1, unit / width, unit / height);
    const [w, h] = [Math.floor(width * enlarge), Math.floor(height * enlarge)];
    const frames = Math.max(n, pair);
    let sides = [w, h].map((side) => Math.max(unit, roundEven(side / unit) * unit));
    const pixels = roundEven(frames / pair) * pair * sides[0] * sides[1];
    if (pixels > most) {
        const shrink = Math.sqrt((frames * w * h) / most);
        sides = [w, h].map((side) => Math.max(unit, Math.floor(side / shrink / unit) * unit));
    } else if (pixels < least) {
        const grow = Math.sqrt(least / (frames * w * h));
        sides = [w, h].map((side) => Math.ceil((side * grow) / unit) * unit);
    }
    return Math.ceil(frames / pair) * ((sides[0] / unit) * (sides[1] / unit) + WORDS_A_PAIR);
}
