/** Documents: files of real programs, what they hold, and files that are made to do harm. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { after, before, beforeEach } from 'node:test';
import { Passages } from '../../web/js/documents/passages.js';
import { SAMPLES, becomes, lastAnswer, launch, openChat, send } from './helpers.mjs';
import { docx, xlsx, zip } from './make_zip.mjs';
import { textPdf } from './make_pdf.mjs';
import { startMock } from './mock_server.mjs';
import * as parts from './office_parts.mjs';

let browser;
let server;
before(async () => {
    browser = await launch();
    server = await startMock();
});
after(async () => {
    await browser.close();
    await server.close();
});
beforeEach(() => {
    Object.assign(server.options, { modalities: ['text', 'image'], nContext: 32768 });
    server.requests.length = 0;
});

const sample = (name) => readFile(join(SAMPLES, 'documents', name));
const choose = (page, name, buffer, mimeType = '') => page.locator('chat-composer input[multiple]').setInputFiles({ name, mimeType, buffer });

/** What the page reads of a file: its text and its note, or the sentence that refuses it.
 * @param {import('playwright-core').Page} page @param {string} name @param {Buffer} buffer */
function readIn(page, name, buffer) {
    return page.evaluate(
        async ({ name, base64 }) => {
            const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
            const { readDocument } = await import(new URL('js/documents/read.js', document.baseURI).href);
            const { Refusal } = await import(new URL('js/util.js', document.baseURI).href);
            try {
                return await readDocument(new File([bytes], name));
            } catch (error) {
                return error instanceof Refusal ? { refused: error.message } : { fault: String(error.stack) };
            }
        },
        { name, base64: buffer.toString('base64') },
    );
}

test('documents of real programs, and made ones, are read as they are without a browser', async () => {
    const { page, done } = await openChat(browser, server.url);
    const { files, made } = JSON.parse(readFileSync(join(SAMPLES, 'documents.json'), 'utf8'));
    const all = [...Object.keys(files).map(async (name) => [name, await sample(name), files[name]]), ...Object.keys(made).map((name) => [name, zip(parts[name]), made[name]])];
    for (const [name, bytes, expected] of await Promise.all(all)) {
        // The name says nothing: the first bytes do.
        const { text, ...rest } = await readIn(page, 'x', bytes);
        const { plain, ...read } = { ...rest, ...(text === undefined ? {} : { text: text.split('\n') }) };
        assert.deepEqual(read, expected, name);
    }
    await done();
});

test('a document goes along as its text, with a note of what was left out, and opens', async () => {
    const { page, done } = await openChat(browser, server.url);
    await choose(page, 'report.docx', await sample('pandoc.docx'), 'application/vnd.openxmlformats-officedocument.wordprocessingml.document');
    const thumb = page.locator('.file-thumb', { hasText: 'report.docx' });
    await thumb.waitFor();
    assert.match(/** @type {string} */ (await page.locator('.thumb').getAttribute('title')), /report\.docx · .* · without 1 image$/);
    await thumb.click();
    await page.locator('media-viewer pre', { hasText: '| North | 402 |' }).waitFor();
    await page.keyboard.press('Escape');
    await choose(page, 'costs.csv', Buffer.from('sep=;\r\n"Item; one";Price\r\n"a ""b""\nc";1,5\r\n'), 'text/csv');
    await page.locator('.file-thumb', { hasText: 'costs.csv' }).waitFor();
    await send(page, 'say read');
    await becomes(() => lastAnswer(page), 'read');
    const { content } = server.requests[0].body.input[0];
    assert.match(content[0].text, /^File report\.docx:\n```\n# Water report 2025\n/);
    assert.equal(content[1].text, 'File costs.csv:\n```\n| Item; one | Price |\n| --- | --- |\n| a "b"<br>c | 1,5 |\n```');
    await done();
});

const W = (text, properties = '') => `<w:p>${properties && `<w:pPr>${properties}</w:pPr>`}<w:r><w:t>${text}</w:t></w:r></w:p>`;

test('Word: what is deleted or hidden is not read, numbers of paragraphs are counted, boxes and notes are', async () => {
    const { page, done } = await openChat(browser, server.url);
    const OPEN = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"';
    const number = (level) => `<w:numPr><w:ilvl w:val="${level}"/><w:numId w:val="7"/></w:numPr>`;
    const level = (i, shape) => `<w:lvl w:ilvl="${i}"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="${shape}"/></w:lvl>`;
    const body = [
        W('Scope', number(0)), W('Parts', number(1)), W('More parts', number(1)), W('Payment', number(0)), W('When', number(1)),
        '<w:p><w:r><w:t xml:space="preserve">Kept </w:t></w:r><w:del><w:r><w:delText>deleted </w:delText></w:r></w:del><w:ins><w:r><w:t>added</w:t></w:r></w:ins><w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>2</w:t></w:r></w:p>',
        '<w:p><w:r><w:pict xmlns:v="urn:schemas-microsoft-com:vml"><v:textbox><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p></w:txbxContent></v:textbox></w:pict></w:r></w:p>',
        '<w:p><w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:t>Field</w:t></w:r></w:p>',
    ].join('');
    const parts = docx(body, {
        'word/_rels/document.xml.rels': '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="n" Type="x/numbering" Target="numbering.xml"/></Relationships>',
        'word/numbering.xml': `<w:numbering ${OPEN}><w:abstractNum w:abstractNumId="3">${level(0, '%1.')}${level(1, '%1.%2')}</w:abstractNum><w:num w:numId="7"><w:abstractNumId w:val="3"/></w:num></w:numbering>`,
        'word/vbaProject.bin': 'Shell "rm"',
    });
    const { text, note } = await readIn(page, 'contract.docm', zip(parts));
    assert.equal(text, '1. Scope\n  1.1 Parts\n  1.2 More parts\n2. Payment\n  2.1 When\n\nKept added^2\n\nIn a box\n\nField');
    assert.equal(note, 'without 1 macro project');
    await done();
});

test('numbers of sheets: dates of both calendars, times, percentages, currencies', async () => {
    const { page, done } = await openChat(browser, server.url);
    const shown = await page.evaluate(async () => {
        const { shown } = await import(new URL('js/documents/xlsx.js', document.baseURI).href);
        return [['1', 'yyyy-mm-dd'], ['59', 'd/m/yy'], ['61', 'mmm yyyy'], ['45352', 'dd.mm.yyyy'], ['45352.75', 'yyyy\\-mm\\-dd hh:mm'], ['0.5', 'h:mm AM/PM'], ['1.5', '[h]:mm:ss'], ['0.30000000000000004', 'General'], ['0.125', '0.0%'], ['12', '"$"#,##0'], ['12', '[$€-407] 0'], ['1E+20', '0'], ['3', '0 "days"'], ['43890', 'yyyy-mm-dd', true], ['word', 'yyyy']].map(([value, format, old = false]) => shown(value, format, old));
    });
    assert.deepEqual(shown, ['1900-01-01', '1900-02-28', '1900-03-01', '2024-03-01', '2024-03-01 18:00', '12:00', '36:00:00', '0.3', '12.5%', '12 $', '12 €', '100000000000000000000', '3', '2024-03-01', 'word']);
    await done();
});

test('damaged, locked, lying, growing and wrongly named files: a sentence and a next step, and the page goes on', async () => {
    const { page, faults, done } = await openChat(browser, server.url);
    const whole = await sample('pandoc.docx');
    const scrambled = Buffer.from(whole);
    scrambled.fill(0x55, 2_000, 3_000);
    const sealed = { mimetype: 'application/epub+zip', 'META-INF/container.xml': '<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>', 'a.opf': '<package><manifest><item id="c" href="c.xhtml"/></manifest><spine><itemref idref="c"/></spine></package>', 'c.xhtml': '<p>words</p>', 'META-INF/encryption.xml': '<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/><CipherData><CipherReference URI="c.xhtml"/></CipherData></EncryptedData></encryption>' };
    const old = (name) => Buffer.concat([Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]), Buffer.alloc(504), Buffer.from(name, 'utf16le')]);
    const cases = [
        ['cut.docx', whole.subarray(0, 6_000), /cut\.docx is damaged: its end is missing\. Get it again/],
        ['scrambled.docx', scrambled, /is damaged: .*Get it again/],
        ['wrong.docx', zip(docx(W('x')), { crc: 1 }), /does not match its checksum/],
        ['locked.docx', zip(docx(W('x')), { flags: 1 }), /locked\.docx is locked with a password\. Save a copy without it/],
        ['locked.xlsx', old('EncryptedPackage'), /is locked with a password\. Save a copy/],
        ['locked.odt', zip({ 'META-INF/manifest.xml': '<m:manifest xmlns:m="m"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>', 'content.xml': 'noise' }), /is locked with a password/],
        ['sealed.epub', zip(sealed), /is protected against copying.*Add a copy without/],
        ['letter.doc', old('WordDocument'), /format of before 2007, which is not read\. Save it as DOCX/],
        ['sums.xls', old('Workbook'), /Save it as XLSX/],
        ['claims.docx', zip(docx(W('x')), { claim: 10 * 2 ** 30, wide: true }), /unpacks to 10\.0 GiB or more; at most 48\.0 MiB/],
        ['bomb.docx', zip(docx(W(' '.repeat(60 << 20)))), /unpacks to .* or more; at most 48\.0 MiB of one part are read\. Save a part/],
        ['grown.docx', zip({ ...docx(W('x')), 'word/document.xml': `<a>${' '.repeat(20 << 20)}</a>` }), /grows more than 500-fold when it is unpacked.*Save the document anew/],
        ['sheets.xlsx', zip(xlsx('<row><c><v>1</v></c></row>'.repeat(100)), { claim: 1 }), /does not match its checksum/],
        ['many.docx', zip(docx(W('x')), { count: 60_000 }), /claims 60.000 parts, more than any document has/],
        ['packed.docx', zip(docx(W('x')), { method: 99 }), /is packed in a way that is not read/],
        ['lol.docx', zip({ ...docx(W('x')), 'word/document.xml': `<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "${'&a;'.repeat(1000)}">]><x>&b;</x>` }), /is damaged: its part word\/document\.xml cannot be read/],
        ['half.docx', zip({ ...docx(W('x')), 'word/document.xml': '<w:document><w:body>' }), /cannot be read/],
        ['bare.docx', zip({ '[Content_Types].xml': '<Types/>' }), /is damaged: what it is made of is not said/],
        ['deep.docx', zip(docx('<w:sdt>'.repeat(4_000) + W('deep') + '</w:sdt>'.repeat(4_000))), /is damaged|^deep$/],
        ['photos.docx', zip({ 'a.jpg': 'x', 'b.jpg': 'y' }), /is an archive of 2 files, not a document\. Unpack it/],
        ['spaces.docx', zip(docx(W(`a${' '.repeat(3 << 20)}b`) + W('\n'.repeat(100_000)))), /only|^a/],
        ['blank.docx', zip(docx('<w:p/>')), /holds no text/],
        ['program.docx', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 3]), /is neither an image nor text/],
        ['letter.rtf', Buffer.from('{\\rtf1 hello}'), /is in RTF, which is not read\. Save it as DOCX/],
    ];
    for (const [name, buffer, words] of cases) {
        const read = await readIn(page, name, buffer);
        assert.equal(read.fault, undefined, `${name}: ${read.fault}`);
        assert.match(read.refused ?? read.text, words, name);
    }
    assert.equal((await readIn(page, 'wide.docx', zip(docx(W('wide')), { wide: true }))).text, 'wide');
    // The browser's own page about XML that is none has styles, which the policy forbids and notes.
    assert.deepEqual(faults.splice(0).filter((fault) => !/inline style|style-src-attr/.test(fault)), []);
    // A name says nothing: text, an image and a sheet under the wrong one are what they are.
    assert.equal((await readIn(page, 'words.docx', Buffer.from('just words'))).text, 'just words');
    assert.match((await readIn(page, 'sheet.pdf', await sample('xlsxwriter.xlsx'))).text, /\| Ann \|/);
    assert.equal((await readIn(page, 'prose.csv', Buffer.from('No table,\nonly a line\nand another\nof prose.'))).text, 'No table,\nonly a line\nand another\nof prose.');
    await choose(page, 'picture.docx', await readFile(join(SAMPLES, 'outlines.png')));
    await page.locator('.tray .thumb img').waitFor();
    // In the page: the sentence is shown, the good file beside it goes along, and the page goes on.
    await page.locator('chat-composer input[multiple]').setInputFiles([
        { name: 'bomb.docx', mimeType: '', buffer: zip(docx(W(' '.repeat(60 << 20)))) },
        { name: 'good.xlsx', mimeType: '', buffer: await sample('xlsxwriter.xlsx') },
    ]);
    await page.locator('.refused', { hasText: /bomb\.docx unpacks to/ }).waitFor();
    await page.locator('.file-thumb', { hasText: 'good.xlsx' }).waitFor();
    await send(page, 'say on');
    await becomes(() => lastAnswer(page), 'on');
    await done();
});

/** A long document: on every page the same words, on some what is asked for. @param {Record<number, string>} special @param {number} n */
const pagesOf = (special, n = 60) => Array.from({ length: n }, (_, i) => [`Page ${i + 1} speaks of the weather in general terms.`, ...Array(12).fill('It may rain, or it may not, as it did in other years.'), special[i + 1] ?? 'Nothing else was noted.']);

test('passages: the text is covered once, tables keep their head, scripts without spaces are found', async () => {
    const text = `Before.\n\n--- Page 1 of 2 ---\n# Rain\n${'Clouds came over the hill. '.repeat(200)}\n\n--- Sheet Costs ---\n\n| Item | Price |\n| --- | --- |\n${Array.from({ length: 150 }, (_, i) => `| pipe ${i} | ${i * 7} |`).join('\n')}\n\n${'雨が降る日が多い。\n\n'.repeat(300)}解約の通知は九十日前に行う。`;
    const index = await Passages.of(text);
    assert.ok(index.list.map(({ at, end }) => text.slice(at, end)).join('') === text);
    assert.ok(index.list.every(({ at, end }) => text.slice(at, end).trim().length <= 1_500));
    const placed = (question) => index.search(question, 3_000).chosen.map((i) => index.list[i]);
    const costs = placed('What does pipe 121 cost?').find(({ at, end }) => text.slice(at, end).includes('| pipe 121 |'));
    assert.equal(costs?.place, 'sheet Costs');
    assert.equal(costs?.lead, '| Item | Price |\n| --- | --- |\n');
    assert.ok(placed('解約の通知はいつですか').some(({ at, end }) => text.slice(at, end).includes('九十日前')));
    assert.ok(placed('When clouded over?').some(({ place }) => place === 'page 1'), 'by the beginning of the word');
    const nowhere = index.search('zebra', 3_000);
    assert.equal(nowhere.found, false);
    assert.ok(nowhere.chosen.length > 1 && nowhere.chosen.at(-1) > index.list.length / 2, 'spread over the text');
    assert.deepEqual((await Passages.of('')).search('x', 100).chosen, []);
});

test('a document longer than the context: the passages that answer go along, are told as sources, and open at their page', async () => {
    server.options.nContext = 3_000;
    const { page, done } = await openChat(browser, server.url);
    await page.reload();
    await choose(page, 'almanac.pdf', textPdf(pagesOf({ 41: 'The dam at Kestrel Lake was opened in August.', 7: 'Kestrel Lake froze.' })), 'application/pdf');
    await page.locator('.file-thumb', { hasText: 'almanac.pdf' }).waitFor();
    await choose(page, 'small.txt', Buffer.from('A small note goes whole.'), 'text/plain');
    await page.locator('.file-thumb', { hasText: 'small.txt' }).waitFor();
    await send(page, 'When was the dam at Kestrel Lake opened?');
    await lastAnswer(page);
    const { content } = server.requests[0].body.input[0];
    assert.match(content[0].text, /^File almanac\.pdf: too long to be read whole/);
    assert.match(content[1].text, /^File small\.txt:\n```\nA small note/);
    assert.match(content[2].text, /almanac\.pdf is longer than can be read at once: it has \d+ passages.*the others were left out/s);
    assert.match(content[2].text, /\[\d+\] almanac\.pdf, page 41:\n.*The dam at Kestrel Lake was opened in August/s);
    assert.ok(content[2].text.split(/\s+/).length < 2_400, 'there is room for the answer');
    assert.equal(content[3].text, 'When was the dam at Kestrel Lake opened?');
    const sources = page.getByRole('region', { name: 'Sources' });
    assert.match(await sources.innerText(), /Read \d+ of \d+ passages of almanac\.pdf: those that match the question best\. The rest was left out\./);
    await sources.getByRole('button', { name: /page 41$/ }).click();
    const mark = page.locator('media-viewer mark');
    await mark.waitFor();
    assert.match(await mark.innerText(), /--- Page 41 of 60 ---[\s\S]*opened in August/);
    assert.ok(await mark.evaluate((one) => { const [a, b] = [one.getBoundingClientRect(), one.closest('.stage').getBoundingClientRect()]; return a.bottom > b.top && a.top < b.bottom; }), 'it is in sight');
    await page.keyboard.press('Escape');
    // The next question is searched for anew; the one before has no passages any more. Over a reload they stay.
    await send(page, 'And what about zebras?');
    await lastAnswer(page);
    const later = server.requests[1].body.input;
    assert.doesNotMatch(JSON.stringify(later[0]), /passages\. These match/);
    assert.match(JSON.stringify(later.at(-1)), /passages\./);
    await page.reload();
    await page.getByRole('region', { name: 'Sources' }).first().waitFor();
    await becomes(() => page.getByRole('region', { name: 'Sources' }).count(), 2);
    // Where there is room all of it goes along, and there is nothing to tell.
    server.options.nContext = 32_768;
    await page.reload();
    await page.getByRole('region', { name: 'Sources' }).first().waitFor();
    await send(page, 'say whole');
    await lastAnswer(page);
    assert.match(server.requests[2].body.input[0].content[0].text, /--- Page 60 of 60 ---/);
    assert.equal(await page.getByRole('region', { name: 'Sources' }).count(), 2);
    await done();
});
