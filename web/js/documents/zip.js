/**
 * The parts of a ZIP file, each read when it is asked for and never the whole: the browser's own
 * inflate does the work, and what a file claims is checked before anything is unpacked and again
 * while it is. Archives inside are never opened.
 *
 *     const zip = await Zip.open(file);
 *     const bytes = await zip.bytes('word/document.xml');
 */
import { t } from '../language.js';
import { Refusal, formatBytes, formatCount } from '../util.js';

const MAX_ENTRIES = 20_000;
const MAX_DIRECTORY = 8 << 20;
/** What one part, and all parts that are read, may be once they are unpacked. */
export const MAX_PART = 48 << 20;
const MAX_TOTAL = 128 << 20;
/** No document shrinks more than this: what does is made to fill memory. */
const MAX_RATIO = 500;
const RATIO_FROM = 4 << 20;

const END = 0x06054b50;
const END_BYTES = 22;
const ENTRY = 0x02014b50;
const ENTRY_BYTES = 46;
const LOCAL = 0x04034b50;
const LOCAL_BYTES = 30;
/** This value in a field of 32 bits: the true one stands in the entry's extra field. */
const ELSEWHERE = 0xffffffff;

/** @typedef {{name: string, flags: number, method: number, crc: number, packed: number, size: number, at: number}} Entry */

const CRC = Int32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k += 1) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n;
});

/** @param {Uint8Array} bytes */
function crc32(bytes) {
    let crc = -1;
    for (let i = 0; i < bytes.length; i += 1) crc = CRC[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
    return ~crc >>> 0;
}

export class Zip {
    /** @param {File} file @param {Map<string, Entry>} entries by name in lower case @param {number} shift what stands before the archive */
    constructor(file, entries, shift) {
        this.file = file;
        this.entries = entries;
        this.shift = shift;
        this.room = MAX_TOTAL;
    }

    /** @param {File} file @throws {Refusal} */
    static async open(file) {
        const tailAt = Math.max(0, file.size - 0xffff - END_BYTES);
        const tail = await view(file, tailAt, file.size);
        let end = tail.byteLength - END_BYTES;
        while (end >= 0 && tail.getUint32(end, true) !== END) end -= 1;
        if (end < 0) throw damaged(file, t`its end is missing`);
        const size = tail.getUint32(end + 12, true);
        const count = tail.getUint16(end + 10, true);
        const start = tailAt + end - size;
        const shift = start - tail.getUint32(end + 16, true);
        if (size > MAX_DIRECTORY || count > MAX_ENTRIES) {
            throw new Refusal(t`${file.name} claims ${formatCount(count)} parts, more than any document has, so it was not opened. Save the document anew and add that.`);
        }
        if (start < 0 || shift < 0) throw damaged(file, t`the list of its parts is missing`);
        return new Zip(file, directory(file, await view(file, start, start + size)), shift);
    }

    /** @param {string} name */
    has(name) {
        return this.entries.has(name.toLowerCase());
    }

    /** Names of parts, as they stand in the file. @param {RegExp} pattern */
    names(pattern) {
        return [...this.entries.values()].map(({ name }) => name).filter((name) => pattern.test(name));
    }

    /**
     * @param {string} name @param {{most?: number, cut?: boolean}} [limits] cut: what is behind `most` is left out
     * @returns {Promise<{bytes: Uint8Array, cut: boolean}>} @throws {Refusal}
     */
    async part(name, { most = MAX_PART, cut = false } = {}) {
        const { file } = this;
        const entry = this.entries.get(name.toLowerCase());
        if (!entry) throw damaged(file, t`its part ${name} is missing`);
        if (entry.flags & 1) throw locked(file);
        if (entry.method !== 0 && entry.method !== 8) {
            throw new Refusal(t`${file.name} is packed in a way that is not read here. Open it where it was made, save a copy and add that.`);
        }
        const limit = Math.min(most, this.room);
        if (entry.size > limit && !cut) throw tooLarge(file, entry.size);
        const head = await view(file, entry.at + this.shift, entry.at + this.shift + LOCAL_BYTES);
        if (head.byteLength < LOCAL_BYTES || head.getUint32(0, true) !== LOCAL) throw damaged(file, t`its part ${name} is not where it should be`);
        const from = entry.at + this.shift + LOCAL_BYTES + head.getUint16(26, true) + head.getUint16(28, true);
        const packed = file.slice(from, from + entry.packed);
        if (packed.size < entry.packed) throw damaged(file, t`its end is missing`);
        const stream = entry.method === 8 ? packed.stream().pipeThrough(new DecompressionStream('deflate-raw')) : packed.stream();
        const { bytes, more } = await this.#gather(stream, entry, limit);
        this.room -= bytes.length;
        if (more && !cut) throw tooLarge(file, bytes.length);
        if (!more && (bytes.length !== entry.size || crc32(bytes) !== entry.crc)) throw damaged(file, t`its part ${name} does not match its checksum`);
        return { bytes, cut: more };
    }

    /** @param {string} name @throws {Refusal} */
    async bytes(name) {
        return (await this.part(name)).bytes;
    }

    /** @param {ReadableStream<Uint8Array>} stream @param {Entry} entry @param {number} limit */
    async #gather(stream, entry, limit) {
        const pieces = [];
        let n = 0;
        const whole = () => {
            const bytes = new Uint8Array(n);
            let at = 0;
            for (const piece of pieces) {
                bytes.set(piece, at);
                at += piece.length;
            }
            return bytes;
        };
        const reader = stream.getReader();
        try {
            for (;;) {
                const { done, value } = await reader.read();
                if (done) return { bytes: whole(), more: false };
                const fits = value.subarray(0, limit - n);
                pieces.push(fits);
                n += fits.length;
                if (n > RATIO_FROM && n > MAX_RATIO * entry.packed) {
                    throw new Refusal(t`${this.file.name} grows more than ${MAX_RATIO}-fold when it is unpacked, as no document does, so it was not opened. Save the document anew and add that.`);
                }
                if (fits.length < value.length) {
                    await reader.cancel();
                    return { bytes: whole(), more: true };
                }
            }
        } catch (error) {
            if (error instanceof Refusal) throw error;
            throw damaged(this.file, t`its part ${entry.name} cannot be unpacked`);
        }
    }
}

/** @param {Blob} file @param {number} from @param {number} to */
async function view(file, from, to) {
    return new DataView(await file.slice(from, to).arrayBuffer());
}

/** @param {File} file @param {DataView} list */
function directory(file, list) {
    const utf8 = new TextDecoder();
    /** @type {Map<string, Entry>} */
    const entries = new Map();
    for (let at = 0; at + ENTRY_BYTES <= list.byteLength && list.getUint32(at, true) === ENTRY; ) {
        const [nameBytes, extraBytes, noteBytes] = [28, 30, 32].map((offset) => list.getUint16(at + offset, true));
        const nameAt = at + ENTRY_BYTES;
        if (nameAt + nameBytes + extraBytes > list.byteLength || entries.size >= MAX_ENTRIES) break;
        const name = utf8.decode(new Uint8Array(list.buffer, list.byteOffset + nameAt, nameBytes)).replaceAll('\\', '/');
        const entry = {
            name,
            flags: list.getUint16(at + 8, true),
            method: list.getUint16(at + 10, true),
            crc: list.getUint32(at + 16, true),
            packed: list.getUint32(at + 20, true),
            size: list.getUint32(at + 24, true),
            at: list.getUint32(at + 42, true),
        };
        widen(entry, list, nameAt + nameBytes, nameAt + nameBytes + extraBytes);
        // Of two parts with one name the first counts, for every reader of this page alike.
        if (!entries.has(name.toLowerCase())) entries.set(name.toLowerCase(), entry);
        at = nameAt + nameBytes + extraBytes + noteBytes;
    }
    if (!entries.size) throw damaged(file, t`the list of its parts is empty`);
    return entries;
}

/** Fields of 64 bits (ZIP64) in place of those that say so. @param {Entry} entry @param {DataView} list
 * @param {number} from @param {number} to */
function widen(entry, list, from, to) {
    for (let at = from; at + 4 <= to; at += 4 + list.getUint16(at + 2, true)) {
        if (list.getUint16(at, true) !== 1) continue;
        let field = at + 4;
        for (const name of /** @type {const} */ (['size', 'packed', 'at'])) {
            if (entry[name] !== ELSEWHERE || field + 8 > to) continue;
            entry[name] = Number(list.getBigUint64(field, true));
            field += 8;
        }
    }
}

/** @param {File} file @param {string} why */
export function damaged(file, why) {
    return new Refusal(t`${file.name} is damaged: ${why}. Get it again, or open it where it was made, save a copy and add that.`);
}

/** @param {File} file */
export function locked(file) {
    return new Refusal(t`${file.name} is locked with a password. Save a copy without it and add that.`);
}

/** @param {File} file @param {number} bytes */
function tooLarge(file, bytes) {
    return new Refusal(t`${file.name} unpacks to ${formatBytes(bytes)} or more; at most ${formatBytes(MAX_PART)} of one part are read. Save a part of the document and add that.`);
}
