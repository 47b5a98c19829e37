/** Passages of long texts without a browser: where a text is cut and what each piece is called, how well they answer a question,
 * and which of them are read. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Passages, passagesOf } from '../../web/js/documents/passages.js';

const cuts = (text) => passagesOf(text).map(({ at, end }) => [at, end]);
const places = (text) => passagesOf(text).map(({ place }) => place);
const line = (n, letter = 'x') => `${letter.repeat(n - 1)}\n`;

test('a text is cut at the first blank line behind 900 letters, and its pieces cover it', () => {
    assert.deepEqual([passagesOf(''), passagesOf('\n \n')], [[], []]);
    assert.deepEqual(passagesOf('Short.\n'), [{ at: 0, end: 7, place: 'line 1', lead: '' }]);
    assert.deepEqual(cuts(`${line(900)}\nmore`), [[0, 900], [900, 905]]);
    assert.deepEqual(cuts(`${line(899)}\nmore`), [[0, 904]]);
    assert.deepEqual(cuts(`${line(500)}\n${line(500)}\nmore\n\nlast`), [[0, 1001], [1001, 1012]]);
    assert.deepEqual(cuts(`${line(900)}\n\n\n`), [[0, 903]], 'blank lines belong to what stands before them');
    assert.deepEqual(cuts(`${line(450)}${line(449)}no blank line, no end`), [[0, 920]]);
    assert.deepEqual(places(`${line(300)}${line(300)}${line(300)}\nmore\n\n${line(900)}\nlast`), ['line 1', 'line 4', 'line 8']);
});

test('a line without an end is cut between words, else where it must be', () => {
    const words = 'abcdefghi '.repeat(400).trim();
    assert.deepEqual(cuts(words), [[0, 1499], [1499, 2999], [2999, 3999]]);
    assert.deepEqual(cuts('x'.repeat(3200)), [[0, 1500], [1500, 3000], [3000, 3200]]);
    assert.deepEqual(cuts('x'.repeat(1500)), [[0, 1500]]);
    assert.deepEqual(cuts(`${'x'.repeat(449)} ${'y'.repeat(2000)}`), [[0, 1500], [1500, 2450]], 'a space too near to the beginning is none');
    assert.deepEqual(cuts(`${'x'.repeat(451)} ${'y'.repeat(2000)}`), [[0, 451], [451, 1951], [1951, 2452]]);
    assert.deepEqual(cuts(`${line(451)}${line(1400)}`), [[0, 451], [451, 1851]], 'before a long line, where enough stands before it');
    assert.deepEqual(cuts(`${line(450)}${line(1400)}`), [[0, 1500], [1500, 1850]]);
});

test('places: lines, headings, pages, and chapters with their headings', () => {
    assert.deepEqual(passagesOf(`${line(226)}# Ice \nwords`).map(({ at, place }) => [at, place]), [[0, 'line 1'], [226, '“Ice”']]);
    assert.deepEqual(places(`${line(225)}# Ice\nwords`), ['“Ice”'], 'a heading soon after the beginning is of the same piece');
    assert.deepEqual(places(`###### ${'h'.repeat(90)}\nwords`), [`“${'h'.repeat(80)}”`]);
    assert.deepEqual(places('####### seven\n#none'), ['line 1']);
    const page = (name) => `--- ${name} ---\nwords\n`;
    assert.deepEqual(places(`before\n${page('Page 1 of 1\u202f200')}${page('Slide 2')}${page('Sheet Sales of May')}${page('Cell 4 of 5')}`), ['line 1', 'page 1', 'slide 2', 'sheet Sales of May', 'cell 4']);
    assert.deepEqual(places(`${page('Page 1')}# Ice\nwords`), ['page 1']);
    assert.deepEqual(places(`${page('Chapter 1')}${page('Chapter 2')}# Ice\nwords\n${page('Chapter 3')}`), ['chapter 1', 'chapter 2, “Ice”', 'chapter 3']);
    assert.deepEqual(places(page('Part 1')), ['line 1']);
});

test('a table is cut between rows, and its head goes along', () => {
    const head = '| name | year |\n| --- | --- |\n';
    const row = (i) => `| ${'n'.repeat(80)} | ${i} |\n`;
    const rows = (n) => Array.from({ length: n }, (_, i) => row(100 + i)).join('');
    const list = passagesOf(`${head}${rows(25)}\nbehind it\n`);
    assert.equal(list.length, 3);
    assert.deepEqual(list.map(({ lead }) => lead), ['', head, head]);
    assert.equal(list[0].end, head.length + 10 * row(100).length, 'before the first row behind 900 letters');
    const two = passagesOf(`${head}${rows(2)}\nwords\n| no | head |\n${rows(25)}`);
    assert.deepEqual([...new Set(two.map(({ lead }) => lead))], [''], 'another table without one');
    const wide = `| ${'w'.repeat(500)} |\n| --- |\n`;
    const [, second] = passagesOf(`${wide}${rows(12)}`);
    assert.equal(second.lead, `| ${'w'.repeat(398)}\n| --- |\n`, 'a head is not longer than 400 letters a line');
    const one = passagesOf(`${head}| ${'long words '.repeat(300)}|\n`);
    assert.deepEqual([one.length > 2, one.slice(1).every(({ lead }) => lead === head)], [true, true]);
    assert.equal(passagesOf(`${head}${rows(12)}\n${line(900)}\nwords`).at(-1).lead, '', 'behind the table it does not');
});

/** Passages of a page each. */
const pages = (...texts) => Passages.of(texts.map((text, i) => `--- Page ${i + 1} ---\n${text}\n`).join(''));

test('how well a passage answers: words that are rare, in passages that are short', async () => {
    const index = await pages('fog fog rain', 'rain rain snow hail', 'snow');
    // The head of each page has two words.
    const [n, mean, k1, b] = [3, (5 + 6 + 3) / 3, 1.2, 0.75];
    const idf = (holders) => Math.log(1 + (n - holders + 0.5) / (holders + 0.5));
    const score = (count, length, holders) => (idf(holders) * count * (k1 + 1)) / (count + k1 * (1 - b + (b * length) / mean));
    const near = (found, expected) => found.forEach((one, i) => assert.ok(Math.abs(one - expected[i]) < 1e-9, `${[...found]} and ${expected}`));
    assert.ok(Math.abs(index.mean - mean) < 1e-9);
    near(index.scores('Fog'), [score(2, 5, 1), 0, 0]);
    near(index.scores('rain'), [score(1, 5, 2), score(2, 6, 2), 0]);
    near(index.scores('snow hail'), [0, score(1, 6, 2) + score(1, 6, 1), score(1, 3, 2)]);
    near(index.scores('snow', 'fog'), [0.3 * score(2, 5, 1), score(1, 6, 2), score(1, 3, 2)]);
    near(index.scores('fog', 'fog'), [score(2, 5, 1), 0, 0]);
    near(index.scores('What is the storm?'), [0, 0, 0]);
    near(index.scores(''), [0, 0, 0]);
});

test('words are found by their beginnings, without accents, and by pairs of letters where there are no spaces', async () => {
    const hit = async (text, question) => (await pages(text)).scores(question)[0] > 0;
    assert.deepEqual([await hit('frosty', 'frosted'), await hit('frost', 'frosted'), await hit('frosty', 'frost'), await hit('frosty', 'frozen')], [true, false, false, false]);
    const [whole, begun] = [await pages('frosted'), await pages('frosty!')];
    assert.ok(Math.abs(begun.scores('frosted')[0] / whole.scores('frosted')[0] - 0.4 / 1.4) < 1e-9, 'a beginning counts less');
    assert.deepEqual([await hit('Café', 'cafe'), await hit('cafe', 'CAFÉ'), await hit('x1', 'X1'), await hit('a', 'is')], [true, true, true, false]);
    assert.deepEqual([await hit('日本語入力', '本語'), await hit('日本語入力', '日語'), await hit('猫', '猫'), await hit('日本語', '日')], [true, false, true, false]);
    assert.equal(await hit('explained', 'explain'), false, 'what says nothing says nothing by its beginning either');
});

test('what is read: the first passage, and the best ones that there is room for, in the order of the text', async () => {
    const size = (index, n) => index.list[n].end - index.list[n].at;
    const index = await pages('Title of it all.', 'other words', 'The quagga.', 'other words', 'A quagga and a quagga.', 'other words');
    const of = (room, question = 'quagga') => index.search(question, room);
    assert.deepEqual(of(10_000), { chosen: [0, 2, 4], found: true });
    const [first, second, best] = [0, 2, 4].map((n) => size(index, n));
    assert.deepEqual(of(best).chosen, [4]);
    assert.deepEqual(of(best - 1).chosen, [0], 'where there is no room for the best, the beginning');
    assert.deepEqual([of(best + first).chosen, of(best + first - 1).chosen], [[0, 4], [2, 4]]);
    assert.deepEqual(of(best + first + second).chosen, [0, 2, 4]);
    assert.deepEqual(of(0).chosen, []);
    // Nothing found: spread over the text.
    assert.deepEqual(of(10_000, 'zebra'), { chosen: [0, 1, 2, 3, 4, 5], found: false });
    const half = of(Math.ceil(index.text.length / 2), 'zebra');
    assert.deepEqual(half, { chosen: [0, 2, 4].slice(0, half.chosen.length), found: false });
    assert.deepEqual((await Passages.of('')).search('x', 100), { chosen: [], found: false });
    // Much worse than the best one is not read, though there is room.
    const many = await pages(...Array.from({ length: 40 }, (_, i) => (i === 20 ? 'quagga zebra okapi' : i % 2 ? 'heron gull tern' : `quagga ${'word '.repeat(400)}`)));
    const { chosen } = many.search('quagga zebra okapi', 1e6);
    assert.deepEqual(chosen.map((n) => many.list[n].place), ['page 1', 'page 21']);
    const before = index.search('zebra', 10_000, 'title');
    assert.deepEqual(before, { chosen: [0], found: true });
});

test('what a head of a table takes is counted, too', async () => {
    const row = (i) => `| ${'n'.repeat(80)} | ${i} |\n`;
    const head = `| ${'name '.repeat(40)} | year |\n| --- | --- |\n`;
    const index = await Passages.of(`${head}${Array.from({ length: 30 }, (_, i) => row(i === 25 ? 'quagga' : 100 + i)).join('')}`);
    const n = index.list.findIndex(({ at, end }) => index.text.slice(at, end).includes('quagga'));
    const { at, end, lead } = index.list[n];
    assert.ok(n > 0 && lead === `${head}`);
    assert.deepEqual([index.search('quagga', end - at + lead.length).chosen.includes(n), index.search('quagga', end - at + lead.length - 1).chosen.includes(n)], [true, false]);
});
