/** Parts of the page that compute alone, without a browser: hashes in pieces, tables, encodings, search. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import test from 'node:test';
import { csvTable } from '../../web/js/documents/csv.js';
import { decodeText } from '../../web/js/documents/encoding.js';
import { readDocument } from '../../web/js/documents/read.js';
import { Passages } from '../../web/js/documents/passages.js';
import { Writer, oneLine, table } from '../../web/js/documents/writer.js';
import { Zip } from '../../web/js/documents/zip.js';
import { Sha256 } from '../../web/js/protocol/sha256.js';
import { accepted, documentOf, pagesIn, readFiles, sniff, urlOf } from '../../web/js/state/attachments.js';
import { zip } from './make_zip.mjs';

test('SHA-256 of any length, in pieces of any length', () => {
    const bytes = Uint8Array.from({ length: 400 }, (_, i) => (i * 2654435761) >>> 13);
    for (const length of [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129, 400]) {
        const data = bytes.subarray(0, length);
        const expected = createHash('sha256').update(data).digest('hex');
        for (const piece of [1, 7, 63, 64, 65, 400]) {
            const sha = new Sha256();
            for (let at = 0; at < length; at += piece) sha.update(data.subarray(at, Math.min(length, at + piece)));
            assert.equal(sha.hex(), expected, `${length} bytes in pieces of ${piece}`);
        }
    }
});

test('a table is what most rows have as many values of', () => {
    const shown = (text) => csvTable(text)?.replace(/\s+/g, ' ');
    const plain = shown('a,b\n1,2\n3,4\n');
    assert.match(plain, /a.*b.*1.*2.*3.*4/);
    assert.equal(shown('a;b\n1;2\n3;4\n'), plain);
    assert.equal(shown('a\tb\r\n1\t2\r\n3\t4'), plain);
    assert.equal(shown('sep=|\na|b\n1|2\n3|4\n'), plain);
    assert.equal(shown('a;b\n"1";2\n"3";"4"\n'), plain, 'quotes are no part of a value');
    assert.match(shown('x;y\n1,5;2,5\n3,5;4,5\n'), /1,5.*2,5/);
    assert.equal(csvTable('one word a line\nand no table\n'), null);
    assert.equal(csvTable('Dear all,\nthis is a letter.\nIt has a comma, and another, and more.\nBye\n'), null);
    assert.equal(csvTable(''), null);
    assert.equal(shown('a,b\n"say ""hi""",x"y"\n'), '| a | b | | --- | --- | | say "hi" | x"y" |');
    assert.equal(shown('a,b\n1,\n"2,3","open\nto the end'), '| a | b | | --- | --- | | 1 | | | 2,3 | open<br>to the end |');
    assert.equal(shown('a;b,c;d\n1;2,3;4\n'), '| a | b,c | d | | --- | --- | --- | | 1 | 2,3 | 4 |', 'of two that fit, the one with more values');
    assert.equal(shown('a,b;c\n1,2;3\n'), '| a | b;c | | --- | --- | | 1 | 2;3 |', 'of two alike, the first');
    const long = `a;b\n${'1,5;2,5\n'.repeat(3000)}`;
    assert.match(csvTable(long), /^\| a \| b \|\n.*\n\| 1,5 \| 2,5 \|/);
});

test('the first line may say what stands between values', () => {
    assert.equal(csvTable('sep=|\r\na|b;c;d\n1|2;3;4\n'), '| a | b;c;d |\n| --- | --- |\n| 1 | 2;3;4 |');
    assert.equal(csvTable('a|b;c;d\n1|2;3;4\n').split('\n')[0], '| a\\|b | c | d |');
});

test('the encoding of a few letters', () => {
    const bytes = (...codes) => new Uint8Array(codes.flatMap((one) => (typeof one === 'string' ? [...Buffer.from(one, 'latin1')] : [one])));
    assert.deepEqual(decodeText(bytes('caf', 0xe9, 's')), { text: 'cafés', encoding: 'windows-1252' });
    assert.deepEqual(decodeText(bytes('caf', 0xc3, 0xa9, 's')), { text: 'cafés', encoding: 'utf-8' });
    assert.deepEqual(decodeText(bytes(0xff, 0xfe, 'a', 0)), { text: 'a', encoding: 'utf-16le' });
    assert.equal(decodeText(bytes('a', 1, 2, 3)).text, null);
    assert.equal(decodeText(bytes('a'.repeat(70_000), 0xe9)).encoding, 'windows-1252', 'what is far behind is not weighed');
});

test('the likeliest encoding of a few odd bytes, at every bound of what is weighed', () => {
    const firsts = [0x81, 0x82, 0x83, 0x84, 0x87, 0x88, 0x97, 0x98, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xaf, 0xb0, 0xc6, 0xc7, 0xc8, 0xc9, 0xcf, 0xd0, 0xd7, 0xd8, 0xdf, 0xe0, 0xfe];
    const seconds = [0x40, 0x7e, 0x80, 0xa0, 0xa1, 0xdf, 0xe0, 0xfe];
    const between = [[], [0xb0, 0xa1], [0xa4, 0xa2], [0x82, 0xa0], [0xd8, 0xa1], [0xb1], [0x61]];
    const lines = between.flatMap((beside) => firsts.map((a) => `${[...beside, 0, a].map((one) => one.toString(16)).join(' ')}: ${seconds.map((b) => decodeText(Uint8Array.from([a, b, ...beside, a, b])).encoding || 'none').join(' ')}`));
    const place = new URL('fixtures/encodings_odd.txt', import.meta.url);
    if (process.env.PARLEY_WRITE) writeFileSync(place, `${lines.join('\n')}\n`);
    assert.deepEqual(lines, readFileSync(place, 'utf8').trim().split('\n'));
});

test('text in every encoding', () => {
    for (const { encoding, text, base64 } of JSON.parse(readFileSync(new URL('fixtures/encodings.json', import.meta.url), 'utf8'))) {
        const read = decodeText(new Uint8Array(Buffer.from(base64, 'base64')));
        assert.equal(read.text, text, `${encoding} was read as ${read.encoding}`);
    }
    const words = 'Zwölf Boxkämpfer, 十二人';
    const wide = Buffer.concat([Buffer.from([0xff, 0xfe, 0, 0]), ...[...words].map((one) => Buffer.from(Uint32Array.of(one.codePointAt(0)).buffer))]);
    assert.deepEqual(decodeText(new Uint8Array(wide)), { text: words, encoding: 'utf-32' });
    const little = Buffer.from(words, 'utf16le');
    assert.deepEqual(decodeText(new Uint8Array(little)), { text: words, encoding: 'utf-16le' });
    assert.deepEqual(decodeText(new Uint8Array(Buffer.from(little).swap16())), { text: words, encoding: 'utf-16be' });
    const big = Buffer.concat([Buffer.from([0, 0, 0xfe, 0xff]), ...[...words].map((one) => Buffer.from(Uint32Array.of(one.codePointAt(0)).buffer).swap32())]);
    assert.deepEqual(decodeText(new Uint8Array(big)), { text: words, encoding: 'utf-32' });
    for (const odd of [[0xff, 0xfe, 0, 0, 65], [0xff, 0xfe, 0, 0, 0, 0, 0x11, 0], [0xff, 0xfe, 0, 0, 6, 0, 0, 0]]) assert.equal(decodeText(Uint8Array.from(odd)).text, null, `${odd}`);
    assert.equal(decodeText(Uint8Array.from([0xff, 0xfe, 0, 0, 0xff, 0xff, 0x10, 0])).text, '\u{10ffff}');
    // What a file says of itself counts.
    assert.equal(decodeText(new Uint8Array(Buffer.from('<?xml encoding="iso-8859-7"?>\xc1\xc2', 'latin1'))).text, '<?xml encoding="iso-8859-7"?>ΑΒ');
});

test('words of one letter and of many are found where they stand, rare ones first', async () => {
    const filler = (word) => `# ${word}\n\n${`The common words of ${word} go on and on, like all common words. `.repeat(30)}\n\n`;
    const text = `${filler('one')}${filler('two')}The quagga is common.\n\n${filler('three')}`;
    const index = await Passages.of(text);
    assert.ok(index.list.length > 3);
    const scores = index.scores('common quagga');
    const best = scores.indexOf(Math.max(...scores));
    assert.match(text.slice(index.list[best].at, index.list[best].end), /quagga/);
    assert.ok(index.scores('quagga')[best] > index.scores('common')[best], 'a rare word says more');
    assert.ok(scores.every((score) => score >= 0), 'a word that is everywhere says little, not less than nothing');
    const most = (word) => Math.max(...index.scores(word));
    assert.ok(most('common') < most('quagga') / 4, 'what it says is next to nothing, however often it stands there');
    const cats = await Passages.of('私は 猫 が好き');
    assert.equal(cats.search('猫', 100).found, true);
    assert.equal(cats.search('犬', 100).found, false);
});

const opened = (parts, lies) => Zip.open(new File([zip(parts, lies)], 'a.zip'));

test('parts of an archive: packed or not, of any length, as much of them as is asked for', async () => {
    const noise = Buffer.from(Uint8Array.from({ length: 300_000 }, (_, i) => (i * 2654435761) >>> 11));
    const parts = { empty: '', 'a/Short.txt': 'words', large: noise, even: Buffer.alloc(200_000) };
    for (const lies of [{}, { method: 0 }, { wide: true }]) {
        const archive = await opened(parts, lies);
        for (const [name, content] of Object.entries(parts)) assert.deepEqual(Buffer.from(await archive.bytes(name)), Buffer.from(content), name);
        assert.ok(archive.has('A/SHORT.TXT') && !archive.has('other'));
        assert.deepEqual(archive.names(/e/), ['empty', 'large', 'even']);
        assert.equal(archive.room, (128 << 20) - 500_005);
    }
    const archive = await opened(parts);
    for (const most of [0, 1, 65_536, 65_537, 299_999]) {
        const { bytes, cut } = await archive.part('large', { most, cut: true });
        assert.deepEqual([Buffer.from(bytes), cut], [noise.subarray(0, most), true], `${most}`);
        await assert.rejects(archive.part('large', { most }), /unpacks to/);
    }
    assert.equal((await archive.part('large', { most: 300_000, cut: true })).cut, false);
    const behind = await Zip.open(new File(['in front', zip(parts)], 'b.zip'));
    assert.equal(Buffer.from(await behind.bytes('a/short.txt')).toString(), 'words');
    for (const comment of ['c', 'any', 'PK', 'PK\x05\x06', 'x'.repeat(65_535)]) {
        const said = await Zip.open(new File([zip(parts), comment], 'c.zip'));
        assert.equal(Buffer.from(await said.bytes('a/short.txt')).toString(), 'words', `a comment of ${comment.length}`);
    }
    await assert.rejects(Zip.open(new File([zip(parts), 'x'.repeat(65_536)], 'c.zip')), /its end is missing/);
});

test('a part that is larger than it says is read as far as is asked for; one that grows without end is not', async () => {
    const noise = Buffer.from(Uint8Array.from({ length: 300_000 }, (_, i) => (i * 2654435761) >>> 11));
    const small = await opened({ noise }, { claim: 1 });
    const { bytes, cut } = await small.part('noise', { most: 200_000, cut: true });
    assert.deepEqual([Buffer.compare(Buffer.from(bytes), noise.subarray(0, 200_000)), cut], [0, true]);
    await assert.rejects(small.part('noise', { most: 65_536 }), /: a\.zip unpacks to 64 KiB or more/);
    const grown = (n, ...more) => opened({ grown: Buffer.concat([...more, Buffer.alloc(n)]) });
    await assert.rejects((await grown(6 << 20)).bytes('grown'), /: a\.zip grows more than 500-fold/);
    assert.equal((await (await grown(4 << 20)).bytes('grown')).length, 4 << 20, 'a small one may');
    assert.equal((await (await grown(5 << 20, noise)).bytes('grown')).length, (5 << 20) + 300_000, 'one that grows less may');
    // Exactly as often as is allowed, and one byte more.
    const random = Buffer.concat(Array.from({ length: 160 }, (_, i) => createHash('sha256').update(`${i}`).digest()));
    let n = 5_600_000;
    const of = (length) => zip({ grown: Buffer.concat([random, Buffer.alloc(length)]) });
    const packed = (length) => of(length).length - zip({ grown: '' }, { method: 0 }).length;
    for (let tries = 0; tries < 40 && n !== 500 * packed(n) - random.length; tries += 1) n = 500 * packed(n) - random.length;
    const whole = (length) => Zip.open(new File([of(length)], 'a.zip')).then((archive) => archive.bytes('grown'));
    assert.equal((await whole(n)).length, random.length + n, '500-fold');
    if (packed(n + 1) === packed(n)) await assert.rejects(whole(n + 1), /500-fold/);
    const broken = zip({ noise });
    broken.fill(0xff, 60, 200);
    await assert.rejects((await Zip.open(new File([broken], 'a.zip'))).bytes('noise'), /its part noise cannot be unpacked/);
});

test('of a list that is cut what is whole is read', async () => {
    const cut = (at, value) => {
        const bytes = zip({ one: 'first', two: 'second' });
        const entry = bytes.lastIndexOf(Buffer.from('504b0102', 'hex'));
        bytes.writeUInt16LE(value, entry + at);
        return Zip.open(new File([bytes], 'a.zip'));
    };
    for (const [at, value, there] of [[28, 3, true], [28, 4, false], [30, 0, true], [30, 1, false], [32, 0, true], [32, 9, true]]) {
        const archive = await cut(at, value);
        assert.equal(archive.has('two'), there, `${at} ${value}`);
        assert.equal(Buffer.from(await archive.bytes('one')).toString(), 'first');
    }
    const upper = await Zip.open(new File([zip({ 'a/One': 'first', 'A/one': 'second', 'b\\c': 'third' })], 'a.zip'));
    assert.deepEqual([upper.names(/./), Buffer.from(await upper.bytes('A/ONE')).toString(), upper.has('b/c')], [['a/One', 'b/c'], 'first', true], 'the first of two with one name counts');
});

test('what an archive says wrongly of itself', async () => {
    const parts = { one: 'words '.repeat(50) };
    const read = async (lies) => (await opened(parts, lies)).bytes('one');
    await assert.rejects(read({ flags: 1 }), /locked/);
    await assert.rejects(read({ method: 12 }), /packed in a way/);
    await assert.rejects(read({ crc: 5 }), /checksum/);
    for (const claim of [1, 299, 301]) await assert.rejects(read({ claim }), /checksum/, `${claim}`);
    await assert.rejects(read({ claim: 49 << 20 }), /: a\.zip unpacks to 49\.0 MiB or more; at most 48\.0 MiB of one part are read\./);
    await assert.rejects((await opened(parts)).bytes('other'), /missing/);
    const packed = async (more) => {
        const bytes = zip(parts, { method: 0 });
        bytes.writeUInt32LE(bytes.length - 'one'.length - 30 + more, bytes.lastIndexOf(Buffer.from('504b0102', 'hex')) + 20);
        return (await Zip.open(new File([bytes], 'a.zip'))).bytes('one');
    };
    await assert.rejects(packed(0), /its part one does not match its checksum/, 'to the end of the file');
    await assert.rejects(packed(1), /a\.zip is damaged: its end is missing/);
    await assert.rejects(Zip.open(new File(['PK'], 'c.zip')), /its end is missing/);
    await assert.rejects(opened({}), /is empty/);
    await assert.rejects(opened(parts, { count: 20_001 }), /20.001 parts/);
    assert.ok(await opened(parts, { count: 20_000 }));
    const many = Object.fromEntries(Array.from({ length: 20_002 }, (_, i) => [`n${i}`, '']));
    assert.equal((await opened(many, { method: 0, count: 9 })).entries.size, 20_000);
});

test('the text of a document: blocks, tight ones, and no more than there may be', async () => {
    const { now } = performance;
    performance.now = () => 1000; // whole numbers, whose differences are exact
    const slow = new Writer();
    for (const [ms, full] of [[30_000, false], [30_001, true]]) {
        performance.now = () => slow.begun + ms;
        await slow.breathe();
        assert.equal(slow.full, full, `behind ${ms} ms`);
    }
    // The page goes on when 40 ms went by since it last did, and not before.
    for (const [ms, lets] of [[39, false], [40, true]]) {
        let went = false;
        performance.now = () => slow.turn + ms;
        const timer = setTimeout(() => { went = true; });
        await slow.breathe();
        clearTimeout(timer);
        assert.equal(went, lets, `${ms} ms since the last time`);
    }
    performance.now = now;
    const out = new Writer();
    for (const [block, tight] of [['\n\n  a  \nb\0\n\n\n\nc\n', false], ['', false], ['- x', true], ['- y', true], ['d', false]]) out.add(block, tight);
    assert.equal(out.text, '  a\nb\n\nc\n\n- x\n- y\n\nd');
    out.leave('image');
    out.leave('image', 2);
    assert.equal(out.left.get('image'), 3);
    await out.breathe();
    assert.equal(out.full, false);
    for (let i = 0; i < 3; i += 1) out.add('x'.repeat(4_000_000));
    assert.equal(out.full, true);
    out.add('behind');
    assert.doesNotMatch(out.text, /behind/);
    assert.equal(oneLine(' a \n\n b '), 'a b');
    assert.equal(oneLine('a\nb', '<br>'), 'a<br>b');
    assert.equal(table([]), '');
    assert.match(table([['', 'a', ''], ['', '', ''], ['', 'b|c', 'd\ne']]), /^\| a \|\s+\|\n\|[ -]+\|[ -]+\|\n\| b\\\|c \| d<br>e \|$/);
});

test('a document is cut at its last letter, whatever it begins with', () => {
    const list = new Writer();
    list.add('- x', true);
    list.add('- y', true);
    assert.equal(list.text, '- x\n- y');
    for (const [n, text] of [[8, '12345678'], [9, '12345678']]) {
        const out = new Writer();
        out.add('x'.repeat(7_999_990));
        out.add('123456789'.slice(0, n));
        assert.deepEqual([out.full, out.blocks[1]], [n === 9, text]);
    }
    const pair = new Writer();
    pair.add('a');
    pair.add('b');
    pair.add('x'.repeat(7_999_994));
    assert.equal(pair.full, false, 'a block takes the blank line behind it, too');
    pair.add('y');
    assert.equal(pair.full, true);
});

test('a file that is too large is refused before it is read', async () => {
    for (const [head, most, said] of [['PK\x03\x04', 64 << 20, '64\\.0 MiB'], ['words', 16 << 20, '16\\.0 MiB']]) {
        const file = (size) => {
            const made = new File([head], 'a');
            Object.defineProperty(made, 'size', { value: size });
            made.arrayBuffer = async () => { throw new Error('read'); };
            return made;
        };
        await assert.rejects(readDocument(file(most + 1)), new RegExp(`at most ${said} can be added`));
        await assert.rejects(readDocument(file(most)), (error) => !/at most/.test(error.message));
    }
});

const LETTERS = 8_000_000; // that are read of a file

test('plain text, tables and notebooks as they are read: what was left out is said, and nothing else', async () => {
    const read = (words, name = 'a.txt') => readDocument(new File([words], name));
    assert.deepEqual(await read('words\n'), { text: 'words\n', note: '', plain: true });
    assert.deepEqual(await read('x'.repeat(LETTERS)), { text: 'x'.repeat(LETTERS), note: '', plain: true });
    const long = await read('x'.repeat(LETTERS + 1));
    assert.deepEqual([long.text.length, long.note, long.plain], [LETTERS, 'only the first 8.0 M letters', false]);
    assert.deepEqual(await read(Buffer.from([0x63, 0x61, 0x66, 0xe9])), { text: 'café', note: 'read as windows-1252', plain: false });
    const csv = await read('a,b\n1,2\n', 'a.csv');
    assert.deepEqual([csv.text, csv.plain], ['| a | b |\n| --- | --- |\n| 1 | 2 |', false]);
    assert.equal((await read('a,b\n1,2\n')).text, 'a,b\n1,2\n');
    await assert.rejects(read('{\\rtf1 x}', 'a.rtf'), /in RTF/);
    await assert.rejects(read(Buffer.from([1, 2, 3, 0])), /neither an image nor text/);
    await assert.rejects(read(Buffer.from([0xd0, 0xcf, 0x11, 0xe0])), /before 2007/);
    await assert.rejects(read(Buffer.alloc((16 << 20) + 1, 'x')), /at most 16\.0 MiB/);
});

test('a notebook: its cells, what they put out, and its images as a note', async () => {
    const cells = [
        { cell_type: 'markdown', source: ['# Head\n', 'words'] }, { cell_type: 'heading', level: 2, source: 'Old' }, { cell_type: 'code', source: 'print("```")' , outputs: [
            { output_type: 'stream', text: ['one\n', 'two\n'] }, { data: { 'image/png': 'AAAA', 'text/plain': '<Figure>' } }, { traceback: ['\u001b[31mError\u001b[0m', 'here'] },
            { data: { 'text/markdown': '**m**', 'text/plain': 'm' } }, { data: { 'text/latex': 'x^2' } }, { text: ' \n' }, null] },
        { cell_type: 'code', source: '', outputs: [] }, { cell_type: 'code', input: '1 + 1' },
    ];
    const { text, note, plain } = await readDocument(new File([JSON.stringify({ nbformat: 4, metadata: { language_info: { name: 'r' } }, cells })], 'a.ipynb'));
    const output = (words) => `Output:\n\n\`\`\`\n${words}\n\`\`\``;
    assert.deepEqual(text.split('\n\n--- ').map((one) => one.replace(/^--- /, '')), [
        'Cell 1 of 5 ---\n\n# Head\nwords', 'Cell 2 of 5 ---\n\n## Old',
        `Cell 3 of 5 ---\n\n\`\`\`\`r\nprint("\`\`\`")\n\`\`\`\`\n\n${['one\ntwo', '<Figure>', 'Error\nhere', '**m**', 'x^2'].map(output).join('\n\n')}`,
        'Cell 4 of 5 ---', 'Cell 5 of 5 ---\n\n\`\`\`r\n1 + 1\n\`\`\`'.replaceAll('\\`', '`'),
    ]);
    assert.deepEqual([note, plain], ['without 1 image', false]);
    const of = (metadata) => readDocument(new File([JSON.stringify({ nbformat: 3, metadata, worksheets: [{ cells: [{ cell_type: 'code', input: 'x' }] }] })], 'b'));
    assert.match((await of({ kernelspec: { language: 'julia' } })).text, /```julia\nx/);
    assert.match((await of(undefined)).text, /```python\nx/);
    assert.equal((await readDocument(new File(['{"nbformat": 4'], 'c.ipynb'))).text, '{"nbformat": 4'); // none: it is read as it stands
});

test('what a file is, by its first bytes alone', async () => {
    const kinds = {
        '\x89PNG\r\n': 'image/png', '\xff\xd8\xff': 'image/jpeg', GIF89a: 'image/gif', 'RIFF....WEBP': 'image/webp', 'RIFF....WAVE': null, '....WEBP': null, BM: 'image/bmp',
        'II*\0': 'image/tiff', 'MM\0*': 'image/tiff', '....ftypavif': 'image/avif', '....ftypavis': 'image/avif', '....ftypheic': 'image/heic', '....ftypmif1': 'image/heic',
        '....ftypqt  ': 'video/quicktime', '....ftypisom': 'video/mp4', '...ftypisom': null, '\x1aE\xdf\xa3..webm': 'video/webm', '\x1aE\xdf\xa3..matroska': 'video/x-matroska',
        '..webm': null, '\xff\x0a': 'image/jxl', '....JXL ': 'image/jxl', '<svg xmlns="x"/>': 'image/svg+xml', '<?xml version="1.0"?><svg/>': 'image/svg+xml',
        '<?xml version="1.0"?><html/>': null, 'see <svg>': null, '': null,
    };
    for (const [head, kind] of Object.entries(kinds)) assert.equal(await sniff(new Blob([Buffer.from(head, 'latin1')])), kind, JSON.stringify(head));
    assert.equal(await sniff(new Blob([`<!-- ${' '.repeat(4000)}--><svg/>`])), 'image/svg+xml', 'within 4 KiB');
});

test('pages that are named', () => {
    assert.deepEqual([pagesIn('', 3, 'a'), pagesIn('1-3, 2;3', 3, 'a'), pagesIn('3 1', 3, 'a'), pagesIn('2–2', 3, 'a')], [[1, 2, 3], [1, 2, 3], [3, 1], [2]]);
    for (const wrong of ['0', '4', '2-4', '3-2', '0-2', 'x', '1-', '-1', '1.5', '1234567']) assert.throws(() => pagesIn(wrong, 3, 'a.pdf'), /names no pages of a\.pdf: write numbers from 1 to 3/, wrong);
});

test('files that cannot be used are refused in words, the others are taken', async () => {
    const limits = { vision: true, video: false, maxImages: 4, maxBytes: 100, already: 0, modelName: 'Small' };
    const file = (name, text, type = '') => new File([Buffer.from(text, 'latin1')], name, { type });
    const read = async (files, more = {}) => {
        const { attachments, refused } = await readFiles(files, { ...limits, ...more });
        return [attachments.map(({ name, kind, bytes }) => `${name} ${kind} ${bytes}`), refused];
    };
    const png = (n) => '\x89PNG\r\n'.padEnd(n, '.');
    const texts = [file('a.txt', 'One'), file('b.txt', 'Two!')];
    assert.deepEqual(await read(texts), [['a.txt text 3', 'b.txt text 4'], []]);
    assert.deepEqual(await read(texts, { maxImages: 1 }), [['a.txt text 3'], ['b.txt was not added: one message takes at most 1.']]);
    assert.deepEqual(await read(texts, { maxImages: 3, already: 2 }), [['a.txt text 3'], ['b.txt was not added: one message takes at most 3.']]);
    assert.deepEqual(await read([file('a.txt', '')]), [[], ['a.txt is empty.']]);
    assert.deepEqual(await read([file('', 'One')]), [['text text 3'], []], 'a file without a name');
    assert.deepEqual(await read([file('a.png', png(101))]), [[], ['a.png has 101 B; at most 100 B can be sent.']]);
    assert.deepEqual((await read([file('a.png', png(100))]))[1], ['a.png is damaged: it cannot be opened.'], 'node opens no image');
    assert.deepEqual((await read([file('a.png', png(101))], { maxBytes: undefined }))[1], ['a.png is damaged: it cannot be opened.'], 'a server that names no limit');
    assert.match((await read([file('', '....ftypheic')]))[1][0], /cannot open HEIC images/);
    assert.deepEqual(await read([file('a.png', png(9))], { vision: false }), [[], ['Small reads text only, so a.png was not added.']]);
    assert.deepEqual(await read([file('a.mp4', '....ftypisom')]), [[], ['Small cannot read videos, so a.mp4 was not added.']]);
    assert.match((await read([file('a.wav', 'RIFF....WAVE', 'audio/wav')]))[1][0], /PNG, JPEG, WebP, GIF, AVIF, BMP, SVG, PDF/);
    assert.match((await read([file('a.wav', 'RIFF....WAVE', 'audio/wav')], { video: true }))[1][0], /SVG, MP4, WebM, PDF/);
    assert.match((await read([file('a.wav', 'RIFF....WAVE', 'audio/wav')], { vision: false }))[1][0], /reads text only/);
    const { attachments: [one] } = await readFiles([texts[0]], limits);
    assert.deepEqual([one.mime, one.width, one.height, one.blob === texts[0], documentOf(one), documentOf({})], ['text/plain', 0, 0, true, undefined, undefined]);
    assert.equal(urlOf(one.blob), urlOf(one.blob), 'one address for each');
    assert.deepEqual([accepted({ vision: true, video: true }), accepted({ vision: true }), accepted({})].map((words) => [/^image\/\*/.test(words), /video\/mp4/.test(words), /\.pdf,/.test(words)]), [[true, true, true], [true, false, true], [false, false, true]]);
});
