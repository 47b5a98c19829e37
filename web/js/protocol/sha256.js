/**
 * SHA-256 of what comes piece by piece. The browser's own takes only whole buffers, and only over
 * HTTPS.
 *
 *     const sha = new Sha256();  sha.update(bytes);  sha.hex();
 */

/** The first 32 bits behind the point of a root of the first primes. @param {number} root
 * @param {number} n */
function roots(root, n) {
    const list = [];
    for (let candidate = 2; list.length < n; candidate++) {
        let prime = true;
        for (let i = 2; i * i <= candidate && prime; i++) prime = candidate % i !== 0;
        if (prime) list.push(((candidate ** (1 / root)) % 1) * 2 ** 32 | 0);
    }
    return list;
}

const K = Int32Array.from(roots(3, 64));
const BLOCK = 64;

export class Sha256 {
    constructor() {
        this.state = Int32Array.from(roots(2, 8));
        this.words = new Int32Array(64);
        this.rest = new Uint8Array(BLOCK);
        this.length = 0;
    }

    /** @param {Uint8Array} data */
    update(data) {
        let at = 0;
        const held = this.length % BLOCK;
        this.length += data.length;
        if (held) {
            at = Math.min(BLOCK - held, data.length);
            this.rest.set(data.subarray(0, at), held);
            if (held + at < BLOCK) return;
            this.#block(this.rest, 0);
        }
        for (; at + BLOCK <= data.length; at += BLOCK) this.#block(data, at);
        this.rest.set(data.subarray(at));
    }

    /** The hash of all that was given; nothing may follow. @returns {string} */
    hex() {
        const bits = this.length * 8;
        const held = this.length % BLOCK;
        const end = new Uint8Array((held < 56 ? 64 : 128) - held);
        end[0] = 0x80;
        const view = new DataView(end.buffer);
        view.setUint32(end.length - 8, Math.floor(bits / 2 ** 32));
        view.setUint32(end.length - 4, bits >>> 0);
        this.update(end);
        return [...this.state].map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
    }

    /** @param {Uint8Array} data @param {number} at */
    #block(data, at) {
        const w = this.words;
        for (let i = 0; i < 16; i++, at += 4) w[i] = (data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3];
        for (let i = 16; i < 64; i++) {
            const x = w[i - 15];
            const y = w[i - 2];
            const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
            const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
            w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
        }
        const s = this.state;
        let a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
        for (let i = 0; i < 64; i++) {
            const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
            const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
            const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
            const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
            h = g;
            g = f;
            f = e;
            e = (d + t1) | 0;
            d = c;
            c = b;
            b = a;
            a = (t1 + t2) | 0;
        }
        s[0] += a;
        s[1] += b;
        s[2] += c;
        s[3] += d;
        s[4] += e;
        s[5] += f;
        s[6] += g;
        s[7] += h;
    }
}
