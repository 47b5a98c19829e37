/**
 * Text in whatever encoding: a byte order mark decides, then UTF-8, then what the text says of
 * itself, then the encoding whose result reads most like a language. The browser's decoders know all
 * encodings of the web.
 */

/** Control characters that no text has: neither spaces nor a terminal's (bell, backspace, escape). */
const BINARY = /[\0-\x06\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9f]/;
const SAMPLE = 1 << 16;
const HEAD = 1 << 10;
const MARKS = /[\xa0«»„“”‘’‚–—…•°§№€£©®™·¿¡ºª]/;

/** Encodings of one byte a letter: which letters of a language are common, and which it has too.
 * Where two explain a text equally well the first one counts.
 * @type {[string, string, string][]} */
const LANGUAGES = [
    ['windows-1252', 'éèàùâêîôûçëïœÉÈÀÇÊœ', ''],
    ['windows-1252', 'äöüßÄÖÜ', ''],
    ['windows-1252', 'áéíóúñüÁÉÍÓÚÑ', ''],
    ['windows-1252', 'áâãàçéêíóôõúÁÂÃÀÇÉÊÍÓÔÕÚ', ''],
    ['windows-1252', 'àèéìòùÀÈÉÌÒÙ', ''],
    ['windows-1252', 'åäöæøéÅÄÖÆØÉ', ''],
    ['windows-1252', 'áðéíóúýþæöÁÐÉÍÓÚÝÞÆÖ', ''],
    ['windows-1250', 'ąćęłńóśźżĄĆĘŁŃÓŚŹŻ', ''],
    ['windows-1250', 'áčďéěíňóřšťúůýžÁČĎÉĚÍŇÓŘŠŤÚŮÝŽ', 'ľĺôäŕĽĹÔÄŔ'],
    ['windows-1250', 'áéíóöőúüűÁÉÍÓÖŐÚÜŰ', ''],
    ['windows-1250', 'ăâîşţĂÂÎŞŢ', ''],
    ['windows-1250', 'čćđšžČĆĐŠŽ', ''],
    ['iso-8859-2', 'ąćęłńóśźżĄĆĘŁŃÓŚŹŻ', ''],
    ['iso-8859-2', 'áčďéěíňóřšťúůýžÁČĎÉĚÍŇÓŘŠŤÚŮÝŽ', 'ľĺôäŕĽĹÔÄŔ'],
    ['iso-8859-2', 'áéíóöőúüűÁÉÍÓÖŐÚÜŰ', ''],
    ['windows-1254', 'çğıöşüÇĞİÖŞÜ', 'âîû'],
    ['windows-1257', 'āčēģīķļņšūžĀČĒĢĪĶĻŅŠŪŽ', ''],
    ['windows-1257', 'ąčęėįšųūžĄČĘĖĮŠŲŪŽ', ''],
    ['macintosh', 'éèàùâêîôûçäöüßáíóúñÉÄÖÜ', ''],
    ['windows-1251', 'оеаинтсрвлк', 'мдпуяыьгзбчйхжшюцщэфъёіїєґўђћљњџАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯЁІЇЄ'],
    ['koi8-u', 'оеаинтсрвлк', 'мдпуяыьгзбчйхжшюцщэфъёіїєґАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯЁІЇЄ'],
    ['ibm866', 'оеаинтсрвлк', 'мдпуяыьгзбчйхжшюцщэфъёАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯЁ'],
    ['iso-8859-5', 'оеаинтсрвлк', 'мдпуяыьгзбчйхжшюцщэфъёАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯЁ'],
    ['windows-1253', 'αοιετσνηυρςά', 'πκμλωδγχθβφζξψέίόήύώϊΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩΆΈΉΊΌΎΏ'],
    ['windows-1255', 'יוהלאמרתבש', 'נעדחקפגכצטסזםןךףץ'],
    ['windows-1256', 'المينرتوبع', 'دسفقحجكهشطصخذضغزثظءةىأإآئؤ،؛؟'],
    ['iso-8859-6', 'المينرتوبع', 'دسفقحجكهشطصخذضغزثظءةىأإآئؤ،؛؟'],
    ['windows-874', 'านรอกเงมยล่้', 'กขฃคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮฯะัาำิีึืฺุูเแโใไๅๆ็่้๊๋์ํ'],
];

/** Encodings of two bytes a letter: what a pair's first byte says of how common it is, from the
 * second. @type {[string, (first: number, second: number) => number][]} */
const PAIRS = [
    ['shift_jis', (a, b) => (a >= 0xa1 && a <= 0xdf ? -0.5 : a === 0x82 || a === 0x83 ? 1.2 : a === 0x81 ? 0.8 : a >= 0x88 && a <= 0x97 ? 0.8 : 0.1)],
    ['euc-jp', (a) => (a === 0xa4 || a === 0xa5 ? 1.2 : a === 0xa1 ? 0.8 : a >= 0xb0 && a <= 0xcf ? 0.7 : -0.1)],
    ['euc-kr', (a, b) => (b < 0xa1 ? -0.5 : a >= 0xb0 && a <= 0xc8 ? 1.1 : a === 0xa1 ? 0.5 : -0.3)],
    ['gb18030', (a, b) => (b < 0xa1 ? -0.5 : a >= 0xb0 && a <= 0xd7 ? 1 : a >= 0xa1 && a <= 0xa3 ? 0.9 : a >= 0xd8 ? 0.2 : -0.8)],
    ['big5', (a) => (a >= 0xa4 && a <= 0xc6 ? 0.95 : a >= 0xa1 && a <= 0xa3 ? 0.8 : a >= 0xc9 ? 0.2 : -0.8)],
];

/** @param {Uint8Array} bytes @param {string} encoding @param {boolean} [part] its end may be missing
 * @returns {string|null} null: it is not in this encoding */
function decode(bytes, encoding, part = false) {
    try {
        const text = new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: part });
        return BINARY.test(text) ? null : text;
    } catch {
        return null;
    }
}

/** @param {Uint8Array} bytes with a mark of four bytes @param {boolean} little */
function decodeUtf32(bytes, little) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const parts = [];
    for (let at = 4; at + 4 <= bytes.length; at += 4) {
        const code = view.getUint32(at, little);
        if (code > 0x10ffff) return null;
        parts.push(String.fromCodePoint(code));
    }
    const text = parts.join('');
    return bytes.length % 4 || BINARY.test(text) ? null : text;
}

/** UTF-16 without a mark: nearly all zero bytes stand at one side of the pairs. @param {Uint8Array} bytes */
function unmarked(bytes) {
    const head = bytes.subarray(0, SAMPLE);
    const zeros = [0, 0];
    head.forEach((byte, i) => (zeros[i & 1] += byte === 0 ? 1 : 0));
    if (bytes.length % 2 || (zeros[0] + zeros[1]) * 20 < head.length) return '';
    return zeros[0] * 10 < zeros[1] ? 'utf-16le' : zeros[1] * 10 < zeros[0] ? 'utf-16be' : '';
}

/** Letters of two bytes without a mark or a zero: what is left when nothing else fits. */
const WIDE = /[\x20-\x7e\r\n\t\u0370-\u06ff\u0e00-\u0e7f\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7af\uff00-\uff60]/g;

/** @param {Uint8Array} bytes @returns {string} '' if it is neither */
function wideLetters(bytes) {
    return ['utf-16le', 'utf-16be'].find((encoding) => {
        const text = bytes.length % 2 ? null : decode(bytes.subarray(0, SAMPLE), encoding, true);
        return text && (text.match(WIDE)?.length ?? 0) > 0.95 * text.length;
    }) ?? '';
}

/** @param {string} text @param {string} common @param {string} others */
function likeLanguage(text, common, others) {
    const top = new Set(common);
    const rest = new Set(others);
    let score = 0;
    let n = 0;
    for (let i = 0; i < text.length; i += 1) {
        const letter = text[i];
        if (letter < '\x80') continue;
        n += 1;
        const before = text[i - 1] ?? ' ';
        // Scripts of their own stand in words of their own; no capital follows a small letter.
        const alone = others.length > 20 && !(before >= '\x80' || (text[i + 1] ?? ' ') >= '\x80');
        const bent = letter !== letter.toLowerCase() && before !== before.toUpperCase();
        if (MARKS.test(letter)) score += 0.4;
        else if (alone || bent) score -= 1;
        else score += top.has(letter) ? 1 : rest.has(letter) ? 0.6 : -1;
    }
    return n ? score / n : 0;
}

/** @param {Uint8Array} bytes @param {(first: number, second: number) => number} worth */
function likePairs(bytes, worth) {
    let score = 0;
    let n = 0;
    for (let i = 0; i < bytes.length; i += 1) {
        if (bytes[i] < 0x80) continue;
        score += worth(bytes[i], bytes[i + 1] ?? 0);
        n += 1;
        i += 1;
    }
    return n ? score / n : 0;
}

/** @param {Uint8Array} bytes @returns {string} the likeliest encoding; '' if none fits */
function likeliest(bytes) {
    const sample = bytes.subarray(0, SAMPLE);
    const cut = sample.length < bytes.length;
    let best = '';
    let most = -Infinity;
    const offer = (encoding, score) => {
        if (score <= most + 1e-9) return;
        most = score;
        best = encoding;
    };
    /** @type {Map<string, string|null>} */
    const texts = new Map();
    for (const [encoding, common, others] of LANGUAGES) {
        if (!texts.has(encoding)) texts.set(encoding, decode(sample, encoding));
        const text = texts.get(encoding);
        if (text) offer(encoding, likeLanguage(text, common, others));
    }
    for (const [encoding, worth] of PAIRS) if (decode(sample, encoding, cut) !== null) offer(encoding, likePairs(sample, worth));
    return most > 0.1 || texts.get('windows-1252') === null ? best : 'windows-1252';
}

/** @param {Uint8Array} bytes @returns {{text: string|null, encoding: string}} text: null where it is binary */
export function decodeText(bytes) {
    const [a, b, c, d] = bytes;
    const wide = a === 0xff && b === 0xfe && c === 0 && d === 0 ? true : a === 0 && b === 0 && c === 0xfe && d === 0xff ? false : null;
    if (wide !== null) return { text: decodeUtf32(bytes, wide), encoding: 'utf-32' };
    const marked = a === 0xff && b === 0xfe ? 'utf-16le' : a === 0xfe && b === 0xff ? 'utf-16be' : unmarked(bytes);
    if (marked) return named(bytes, marked);
    const head = String.fromCharCode(...bytes.subarray(0, HEAD));
    const plain = decode(bytes, 'utf-8');
    // ISO 2022 switches its letters with escapes and has no byte above 127.
    if (plain !== null) return /\x1b\$[@B]/.test(head) && decode(bytes, 'iso-2022-jp') !== null ? named(bytes, 'iso-2022-jp') : { text: plain, encoding: 'utf-8' };
    const said = /(?:charset|encoding|coding)\s*[=:]\s*["']?([\w.:-]+)/i.exec(head)?.[1] ?? '';
    if (said && !/^utf-?\d/i.test(said) && decode(bytes, said) !== null) return named(bytes, said.toLowerCase());
    const found = likeliest(bytes) || wideLetters(bytes);
    return found ? named(bytes, found) : { text: null, encoding: '' };
}

/** @param {Uint8Array} bytes @param {string} encoding */
function named(bytes, encoding) {
    const text = decode(bytes, encoding);
    return { text, encoding: text === null ? '' : encoding };
}
