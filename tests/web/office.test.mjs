/** Documents as the text that a model reads, without a browser: each whole, files of real programs and made ones that have all
 * that is heeded. documents.test.mjs reads the same files in a browser. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { docx, xlsx, zip } from './make_zip.mjs';
import { useMadeUpParser } from './made_up_xml.mjs';
import * as parts from './office_parts.mjs';
import { readDocument } from '../../web/js/documents/read.js';
import { Writer } from '../../web/js/documents/writer.js';
import { shown } from '../../web/js/documents/xlsx.js';
import { Zip } from '../../web/js/documents/zip.js';
import { Refusal } from '../../web/js/util.js';

useMadeUpParser();
const fixtures = join(dirname(fileURLToPath(import.meta.url)), 'fixtures');
const expected = JSON.parse(readFileSync(join(fixtures, 'documents.json'), 'utf8'));

/** {text: its lines, note}, or {refused: a sentence}. */
async function read(bytes, name = 'x', type = '') {
    try {
        const { text, note } = await readDocument(new File([bytes], name, { type }));
        return { note, text: text.split('\n') };
    } catch (error) {
        assert.ok(error instanceof Refusal, error.stack);
        return { refused: error.message };
    }
}

for (const [name, whole] of Object.entries(expected.files)) {
    test(`a file of a real program: ${name}`, async () => assert.deepEqual(await read(readFileSync(join(fixtures, 'documents', name))), whole));
}
for (const [name, whole] of Object.entries(expected.made)) {
    test(`all that is heeded: ${name}`, async () => assert.deepEqual(await read(zip(parts[name])), whole));
}

const W = (text) => `<w:p><w:r><w:t>${text}</w:t></w:r></w:p>`;

test('a list that begins at an inner level counts its outer ones as they would begin', async () => {
    const paragraph = (level, text) => `<w:p><w:pPr><w:numPr><w:ilvl w:val="${level}"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>${text}</w:t></w:r></w:p>`;
    const level = (i, format, shape, start) => `<w:lvl w:ilvl="${i}">${start ? `<w:start w:val="${start}"/>` : ''}<w:numFmt w:val="${format}"/><w:lvlText w:val="${shape}"/></w:lvl>`;
    const levels = level(0, 'lowerLetter', '%1.', 3) + level(1, 'upperRoman', '%1.%2', 4) + level(2, 'decimal', '%1.%2.%3 of %9');
    const made = docx([paragraph(2, 'deep'), paragraph(1, 'inner'), paragraph(2, 'deep'), paragraph(0, 'outer'), paragraph(1, 'inner')].join(''), {
        'word/_rels/document.xml.rels': '<Relationships><Relationship Id="n" Type="x/numbering" Target="numbering.xml"/></Relationships>',
        'word/numbering.xml': `<w:numbering xmlns:w="w"><w:abstractNum w:abstractNumId="a">${levels}</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="a"/></w:num></w:numbering>`,
    });
    assert.deepEqual((await read(zip(made))).text, ['    c.IV.1 of 1 deep', '  c.IV inner', '    c.IV.1 of 1 deep', 'c. outer', '  c.IV inner']);
});

test('every reader lets the page go on, and ends where it is told that it takes too long', async () => {
    const { breathe } = Writer.prototype;
    Writer.prototype.breathe = async function () {
        this.full = true;
    };
    try {
        const ends = { WORD: '# The title', POINT: 'all', OPEN_SLIDES: 'slowly', BOOK_PARTS: '[image: a river] x^2 spoken y' };
        for (const [name, end] of Object.entries(ends)) {
            const { note, text } = await read(zip(parts[name]));
            const [last] = text.filter((line) => !line.startsWith('[^') && !line.startsWith('[comment')).slice(-1);
            assert.match(note, /^only its beginning: the rest is too long/, name);
            assert.equal(last, end, name);
        }
        for (const name of ['EXCEL', 'OPEN_TEXT']) assert.equal((await read(zip(parts[name]))).refused, 'x holds no text.', `${name}, before its first words`);
        const { text } = await read(zip(parts.OPEN_SHEET));
        assert.deepEqual(text.filter((line) => line.startsWith('---')), ['--- Sheet One ---']);
        assert.deepEqual((await read(readFileSync(join(fixtures, 'documents', 'pandoc.ipynb')))).note, 'only its beginning: the rest is too long');
    } finally {
        Writer.prototype.breathe = breathe;
    }
});

test('a sheet lets the page go on behind each of its rows and tables', async () => {
    const { breathe } = Writer.prototype;
    const blocks = [];
    Writer.prototype.breathe = async function () {
        blocks.push(this.blocks.length);
    };
    try {
        const rows = [1, 3, 5].map((row) => `<row r="${row}"><c t="str"><v>${row}</v></c></row>`).join('');
        const { text } = await read(zip({ ...xlsx(''), 'xl/worksheets/sheet1.xml': `<worksheet><sheetData>${rows}</sheetData></worksheet>` }));
        assert.deepEqual(text.filter((line) => /\d/.test(line)), ['| 1 |', '| 3 |', '| 5 |']);
        assert.deepEqual(blocks, [1, 1, 1, 2, 3, 4], 'its heading is the first block');
    } finally {
        Writer.prototype.breathe = breathe;
    }
});

test('a sheet that is too large is read to its last whole row, and the rest is named', async () => {
    const { part } = Zip.prototype;
    for (const prefix of ['', 'x:']) {
        const rows = ['one', 'two', 'three'].map((word) => `<${prefix}row><${prefix}c t="str"><${prefix}v>${word}</${prefix}v></${prefix}c></${prefix}row>`);
        const book = { ...xlsx(''), 'xl/worksheets/sheet1.xml': `<${prefix}worksheet xmlns:x="x"><${prefix}sheetData>${rows.join('')}</${prefix}sheetData></${prefix}worksheet>` };
        Zip.prototype.part = async function (name, limits) {
            const { bytes } = await part.call(this, name, limits);
            if (!limits?.cut) return { bytes, cut: false };
            assert.equal(limits.most, 24 << 20);
            return { bytes: bytes.subarray(0, bytes.length - rows[2].length - 20), cut: true };
        };
        try {
            assert.deepEqual(await read(zip(book)), { note: 'without rest of sheet One', text: ['--- Sheet One ---', '', '| one |', '| --- |', '| two |'] });
        } finally {
            Zip.prototype.part = part;
        }
    }
});

test('numbers of a sheet, as their format shows them', () => {
    const table = {
        'yyyy-mm-dd': { 1: '1900-01-01', 59: '1900-02-28', 61: '1900-03-01', 45352: '2024-03-01', '-1': '-1', 2958465: '9999-12-31', '': '', ' ': ' ', word: 'word' },
        'd/m/yy': { 59: '1900-02-28' }, 'mmm yyyy': { 61: '1900-03-01' }, mmm: { 61: '1900-03-01' }, 'yyyy\\-mm\\-dd hh:mm': { 45352.75: '2024-03-01 18:00', '45352.75001': '2024-03-01 18:00:01' },
        'h:mm AM/PM': { 0.5: '12:00', 1.25: '06:00' }, 'mm:ss': { 0.5: '12:00' }, '[h]:mm:ss': { 1.5: '36:00:00', '-0.5': '-12:00:00', 0.0000116: '0:00:01' }, '[mm]:ss': { 1: '24:00:00' },
        General: { '0.30000000000000004': '0.3', 1e20: '100000000000000000000', '-5': '-5', '1E2': '100' }, '0.0%': { 0.125: '12.5%', 0.07: '7%', '1.1': '110%' }, '"$"#,##0': { 12: '12 $' }, '[$€-407] 0': { 12: '12 €' }, '[$CHF ] 0': { 12: '12 CHF' },
        '0 "days"': { 3: '3' }, '0\\y': { 3: '3' }, '0_d': { 3: '3' }, '*d0': { 3: '3' }, '[Red]0': { 3: '3' }, '0;yyyy': { 3: '3' }, '[d]0': { 3: '3' }, '': { 3: '3' }, '"General" yyyy': { 61: '1900-03-01' },
    };
    for (const [format, values] of Object.entries(table)) for (const [value, words] of Object.entries(values)) assert.equal(shown(value, format, false), words, `${value} as ${format}`);
    assert.deepEqual([shown('0', 'yyyy-mm-dd', true), shown('43890', 'yyyy-mm-dd', true), shown('0', 'General', true)], ['1904-01-01', '2024-03-01', '0']);
});

test('what a file is, by its first bytes and its parts, and why it is not read', async () => {
    const old = (name) => Buffer.concat([Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]), Buffer.alloc(504), Buffer.from(name, 'utf16le')]);
    const office = (main, root) => ({ '[Content_Types].xml': '<Types/>', '_rels/.rels': `<Relationships><Relationship Id="r" Type="x/officeDocument" Target="${main}"/></Relationships>`, [main]: root });
    const refused = [
        [old('EncryptedPackage'), /^a\.doc is locked with a password/], [old('WordDocument'), /of before 2007, which is not read\. Save it as DOCX and/], [old('PowerPoint Document'), /Save it as PPTX and/], [old('Workbook'), /Save it as XLSX and/],
        [old('other'), /Save it as DOCX, XLSX or PPTX and/], [zip({ 'a.jpg': 'x', 'b.jpg': 'y' }), /an archive of 2 files, not a document/], [zip({}), /the list of its parts is empty/], [zip({ 'content.xml': '<x/>' }), /an archive of 1 files/],
        [zip({ '[Content_Types].xml': '<Types/>' }), /is damaged: what it is made of is not said/], [zip(office('xl/workbook.bin', 'x')), /is a binary workbook.*Save it as XLSX/], [zip(office('a.xml', '<drawing/>')), /an Office document of a kind that is not read\. DOCX/],
        [zip(office('a.xml', '<document>')), /is damaged: its part a\.xml cannot be read/], [zip(office('a.xml', '<!DOCTYPE x [<!ENTITY a "b">]><document/>')), /its part a\.xml cannot be read/], [zip({ ...docx(W('x')), 'word/document.xml': '<w:document><w:body><w:tbl>' }), /cannot be read/],
        [zip({ 'META-INF/manifest.xml': '<m:manifest><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>', 'content.xml': '<x/>' }), /locked with a password/], [zip(docx('<w:p/>')), /^a\.doc holds no text\.$/],
        [zip(docx('<w:p><w:r><w:pict><w:imagedata/></w:pict></w:r></w:p>')), /^a\.doc holds 1 image but no text\. Save it as PDF/], [zip(xlsx('')), /holds no text/], [zip(docx(W('x')), { flags: 1 }), /locked with a password/],
        [Buffer.from('{\\rtf1 hello}'), /is in RTF, which is not read/], [Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 3]), /is neither an image nor text\. DOCX/],
    ];
    for (const [bytes, words] of refused) assert.match((await read(bytes, 'a.doc')).refused ?? 'it is read', words);
    assert.deepEqual(await read(zip({ ...docx(W('x')), 'word/vbaProject.bin': 'Shell' })), { note: 'without 1 macro project', text: ['x'] });
    const images = docx(`${W('x')}<w:p><w:r><w:pict><w:imagedata/><w:imagedata/></w:pict></w:r></w:p>`);
    assert.equal((await read(zip(images))).note, 'without 2 images');
    for (const mark of ['\ufeff', '']) assert.deepEqual((await read(zip({ ...docx(''), 'word/document.xml': `${mark}<?xml version="1.0" encoding="UTF-8"?><w:document><w:body>${W('é')}</w:body></w:document>` }))).text, ['é']);
    const wide = (order, said = 'utf-16') => {
        const bytes = Buffer.from(`\ufeff<?xml version="1.0" encoding="${said}"?><w:document><w:body>${W('é')}</w:body></w:document>`, 'utf16le');
        return order === 'le' ? bytes : bytes.swap16();
    };
    for (const bytes of [wide('le'), wide('be'), wide('le').subarray(2), wide('be').subarray(2), Buffer.from(`<?xml version='1.0' encoding='iso-8859-1'?><w:document><w:body>${W('é')}</w:body></w:document>`, 'latin1'), Buffer.from(`<?xml encoding="nobody-knows"?><w:document><w:body>${W('é')}</w:body></w:document>`), Buffer.from(`<?xml encoding="utf-16"?><w:document><w:body>${W('é')}</w:body></w:document>`)]) {
        assert.deepEqual((await read(zip({ ...docx(''), 'word/document.xml': bytes }))).text, ['é'], bytes.subarray(0, 50).toString('latin1'));
    }
});

test('a document has at most eight million letters, and says that it was cut', async () => {
    const sentence = `${'word '.repeat(40_000)}end`;
    const { note, text } = await read(zip(docx(W(sentence).repeat(45)), { method: 0 }), 'long.docx');
    assert.equal(note, 'only its beginning: the rest is too long');
    assert.ok(Math.abs(text.join('\n').length - 8_000_000) < 100, `${text.join('\n').length} letters`);
    const plain = await read(Buffer.from('x'.repeat(8_000_001)), 'long.txt');
    assert.equal(plain.text[0].length, 8_000_000);
    assert.match(plain.note, /^only the first 8.* letters$/);
    assert.equal((await read(Buffer.from('x'.repeat(8_000_000)), 'long.txt')).note, '');
    assert.match((await read(Buffer.alloc((16 << 20) + 1, 'x'), 'long.txt')).refused, /^long\.txt has 16\.0 MiB; at most 16\.0 MiB can be added/);
});
