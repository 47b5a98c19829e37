/** The state of chats without a browser: options, places, what is deleted and continued, and which parts of long
 * documents go along. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { decodeText } from '../../web/js/documents/encoding.js';
import { readingPlan } from '../../web/js/state/sources.js';
import {
    OPTIONS, addMessage, attachmentsOf, besideOf, branchOf, canContinue, childrenByParent, eraseMessages, erasedWith, newConversation, noteTool, optionFields, placeWith,
    readOptions, readPlace, showBranch, shownAnswers, shownPath, siblings, textProblem, titleOf, toInput, toMarkdown,
} from '../../web/js/state/store.js';
import { clock, markTimes, seekVideo, splitTimes } from '../../web/js/state/times.js';

test('options: their names in a request, their ranges and the steps of their fields', () => {
    const shown = Object.entries(OPTIONS).map(([name, { field, min, max, step }]) => [name, field, min, max, step].filter((one) => one !== undefined).join(' '));
    assert.deepEqual(shown, [
        'systemPrompt instructions', 'temperature temperature 0 2 0.1', 'maxTokens max_output_tokens 1 1048576 1', 'topP top_p 0 1 0.05', 'topK top_k 0 100000 1', 'minP min_p 0 1 0.01', 'repeatPenalty repetition_penalty 0.01 2 0.05',
        'presencePenalty presence_penalty -2 2 0.1', 'frequencyPenalty frequency_penalty -2 2 0.1', 'seed seed 0 4294967295 1', 'stop stop', 'schema text', 'model model', 'beside ', 'tools ',
    ]);
});

test('options are kept within their ranges, and go along under their names', () => {
    for (const [name, { min = 0, max, step, field }] of Object.entries(OPTIONS)) {
        if (max === undefined) continue;
        for (const value of [min, max]) {
            assert.deepEqual(readOptions({ [name]: value }), { [name]: value }, name);
            assert.deepEqual(optionFields({ [name]: value }), { [field]: value }, name);
        }
        for (const value of [min - 0.001, max + 1, NaN, `${max}`, null]) assert.deepEqual(readOptions({ [name]: value }), {}, `${name} ${value}`);
        assert.deepEqual(readOptions({ [name]: min + 0.5 }), step === 1 ? {} : { [name]: min + 0.5 }, name);
    }
    assert.deepEqual(readOptions(undefined), {});
    assert.deepEqual(readOptions({ systemPrompt: ' ', stop: '', model: 'm', beside: 7, other: 1 }), { model: 'm' });
    assert.deepEqual(optionFields({ systemPrompt: 'Be brief.', stop: 'a\n\nb', schema: '{"type":"object"}', beside: 'x', tools: { calculator: {} } }), {
        instructions: 'Be brief.', stop: ['a', 'b'], text: { format: { type: 'json_schema', name: 'answer', schema: { type: 'object' } } },
    });
    assert.deepEqual(readOptions({ tools: { a: { only: ['x', 1], always: 'y' }, b: 1, c: {} } }).tools, { a: { only: ['x'], always: undefined }, c: { only: undefined, always: undefined } });
    for (const odd of [{}, 'a', 7, true, null, [], [1]]) assert.deepEqual(readOptions({ tools: odd }), {}, JSON.stringify(odd));
});

test('what is wrong with stop sequences and schemas', () => {
    const many = (n) => Array(n).fill('x').join('\n');
    assert.equal(textProblem('stop', many(16)), '');
    assert.equal(textProblem('stop', many(17)), 'There may be 16 stop sequences.');
    assert.equal(textProblem('stop', 'é'.repeat(128)), '');
    assert.equal(textProblem('stop', `${'é'.repeat(128)}x`), 'A stop sequence may have 256 bytes.');
    assert.equal(textProblem('schema', ' '), '');
    assert.equal(textProblem('schema', '{}'), '');
    for (const value of ['[]', '1', 'null', '"x"']) assert.match(textProblem('schema', value), /^A JSON schema is an object/, value);
    assert.match(textProblem('schema', '{'), /^This is not JSON: /);
    assert.equal(textProblem('systemPrompt', '{'), '');
});

test('a new chat has the options that are given, and they are its own', () => {
    const options = { temperature: 0.5 };
    const chat = newConversation(options);
    assert.deepEqual(chat.options, options);
    assert.notEqual(chat.options, options);
    assert.equal('options' in newConversation({}), false);
    assert.equal('options' in newConversation(), false);
    assert.deepEqual([chat.title, chat.head, chat.messages], ['', null, {}]);
    assert.notEqual(chat.id, newConversation().id);
});

test('places: what says nothing is not kept', () => {
    assert.deepEqual(readPlace({ folder: ' Work ', pinned: true, archived: 'yes' }), { folder: 'Work', pinned: true });
    assert.deepEqual(readPlace({ folder: 7, pinned: 1, archived: true }), { archived: true });
    assert.equal(readPlace({ folder: 'x'.repeat(100) }).folder.length, 80);
    assert.deepEqual(readPlace(null), {});
    assert.deepEqual(placeWith({ folder: 'a', pinned: true }, { pinned: false, archived: true }), { folder: 'a', archived: true });
    assert.deepEqual(placeWith(undefined, {}), {});
});

/** q - a - q2 - a2, and b beside a. */
function tree() {
    const chat = newConversation({ seed: 7 });
    const q = addMessage(chat, { role: 'user', parent: null, text: 'one' });
    const a = addMessage(chat, { role: 'assistant', parent: q.id, text: 'first' });
    const q2 = addMessage(chat, { role: 'user', parent: a.id, text: 'two' });
    const a2 = addMessage(chat, { role: 'assistant', parent: q2.id, text: 'second' });
    return { chat, q, a, q2, a2 };
}
const texts = (chat) => shownPath(chat).map(({ text }) => text);

test('deleting: alone what has no other version, else with what follows; and it can be put back', () => {
    const { chat, q, a, q2, a2 } = tree();
    assert.deepEqual(erasedWith(chat, a), [a]);
    const undo = eraseMessages(chat, [a]);
    assert.deepEqual(texts(chat), ['one', 'two', 'second']);
    assert.deepEqual(Object.keys(a).sort(), ['created', 'erased', 'id', 'parent', 'role', 'status', 'text']);
    undo();
    assert.deepEqual([texts(chat), 'erased' in a], [['one', 'first', 'two', 'second'], false]);
    const b = addMessage(chat, { role: 'assistant', parent: q.id, text: 'other' });
    chat.head = a2.id;
    assert.deepEqual(erasedWith(chat, a).map(({ id }) => id), [a.id, q2.id, a2.id]);
    const back = eraseMessages(chat, erasedWith(chat, a));
    assert.deepEqual(texts(chat), ['one', 'other']);
    back();
    assert.deepEqual(texts(chat), ['one', 'first', 'two', 'second']);
    chat.head = b.id; // the deleted version is not the one that is shown
    eraseMessages(chat, erasedWith(chat, a));
    assert.equal(chat.head, b.id);
});

test('deleting: the newest version, one whose branch is not shown, and in a chat that is damaged', () => {
    const { chat, q, a, a2 } = tree();
    const b = addMessage(chat, { role: 'assistant', parent: q.id, text: 'b' });
    eraseMessages(chat, erasedWith(chat, b));
    assert.deepEqual(texts(chat), ['one', 'first', 'two', 'second'], 'the one before is shown');
    const c = addMessage(chat, { role: 'assistant', parent: q.id, text: 'c' });
    addMessage(chat, { role: 'user', parent: c.id, text: 'behind c' });
    chat.head = c.id;
    eraseMessages(chat, erasedWith(chat, a));
    assert.equal(chat.head, c.id, 'what is shown stays');
    const d = addMessage(chat, { role: 'assistant', parent: q.id, text: 'd' });
    showBranch(chat, a);
    assert.equal(chat.head, a2.id, 'down to its leaf, though all of it is deleted');
    q.parent = d.id; // a circle
    chat.head = d.id;
    eraseMessages(chat, [c]);
    assert.equal(c.erased, true);
});

test('messages have an order, whatever the clocks of their writers say', () => {
    const { chat, q } = tree();
    q.created = Date.now() + 3_600_000;
    const next = addMessage(chat, { role: 'assistant', parent: q.id, text: 'x' });
    const after = addMessage(chat, { role: 'assistant', parent: null, text: 'y' });
    assert.deepEqual([next.created, after.created], [q.created + 1, q.created + 2]);
    const same = { ...newConversation(), messages: Object.fromEntries(['c', 'a', 'b'].map((id) => [id, { id, parent: null, role: 'user', text: id, created: 5 }])) };
    assert.deepEqual([siblings(same, same.messages.a).map(({ id }) => id), childrenByParent(same).get('').map(({ id }) => id)], [['a', 'b', 'c'], ['a', 'b', 'c']]);
    same.queue = [{ id: 'w', attachments: [{ id: 'g' }] }, { id: 'v' }];
    same.messages.b.attachments = [{ id: 'f' }];
    assert.deepEqual([attachmentsOf(same).map(({ id }) => id), attachmentsOf({ messages: {} })], [['f', 'g'], []]);
});

test('of long documents the passages stand with their question, and files in a fence that they cannot close', async () => {
    const { chat, q, q2 } = tree();
    q.attachments = [{ kind: 'text', name: 'a.txt', blob: new Blob(['abc']) }, { kind: 'text', name: 'b.txt', blob: new Blob(['``']) }];
    const items = await toInput(shownPath(chat).slice(0, 3), async () => '', { textOf: ({ name }) => (name === 'a.txt' ? 'too long' : null), tail: { id: q2.id, text: 'passages' } });
    assert.deepEqual(items.map(({ content }) => content.map(({ text }) => text)), [['too long', 'File b.txt:\n```\n``\n```', 'one'], ['first'], ['passages', 'two']]);
});

test('an answer beside another', () => {
    const { chat, q, a } = tree();
    const b = addMessage(chat, { role: 'assistant', parent: q.id, text: 'b', beside: a.id });
    const list = [a, b];
    assert.deepEqual([besideOf(list, a), besideOf(list, b)], [b, a]);
    chat.head = a.id;
    assert.deepEqual(shownAnswers(chat), [a, b]);
    const c = addMessage(chat, { role: 'assistant', parent: q.id, text: 'c', beside: a.id });
    assert.equal(besideOf([a, b, c], a), c);
    c.erased = true;
    assert.equal(besideOf([a, b, c], a), b);
    assert.equal(besideOf([a], a), undefined);
});

test('a branch as a chat of its own', () => {
    const { chat, a2 } = tree();
    Object.assign(chat, { title: 'T', place: { folder: 'F', pinned: true } });
    Object.assign(a2, { status: 'streaming', responseId: 'r', askId: 'k', beside: 'x', before: {}, attachments: [{ id: 'file', name: 'n' }] });
    const copy = branchOf(chat, a2.id);
    assert.deepEqual([copy.title, copy.place, copy.options, texts(copy)], ['T', { folder: 'F' }, { seed: 7 }, ['one', 'first', 'two', 'second']]);
    const last = copy.messages[copy.head];
    assert.deepEqual([last.status, last.responseId, last.askId, last.beside, last.before, last.attachments[0].name], ['stopped', undefined, undefined, undefined, undefined, 'n']);
    assert.notEqual(last.attachments[0].id, 'file');
    assert.ok(!(last.id in chat.messages) && copy.id !== chat.id);
});

test('what can be continued', () => {
    const ended = (fields) => canContinue({ text: 'a', ...fields });
    for (const [fields, may] of [
        [{ status: 'stopped' }, true], [{ status: 'failed' }, true], [{ status: 'cut', reason: 'max_output_tokens' }, true], [{ status: 'done' }, false],
        [{ status: 'streaming' }, false], [{ status: 'cut', reason: 'context' }, false], [{ status: 'cut', reason: 'context_length' }, false],
        [{ status: 'stopped', text: '' }, false], [{ status: 'stopped', text: '', reasoning: 'r' }, true], [{ status: 'stopped', tools: [{}] }, false], [{ status: 'stopped', tools: [] }, true],
    ]) assert.equal(ended(fields), may, JSON.stringify(fields));
});

test('the title is the first line that says something', () => {
    for (const [text, title] of [['```js\nlet a', 'let a'], ['# Head\nmore', 'Head'], ['---\n\n> said', 'said'], ['* * *\n1', '1'], ['...', '...'], ['a  b\tc', 'a b c'], ['x'.repeat(60), 'x'.repeat(60)], ['x'.repeat(61), `${'x'.repeat(59)}…`]]) {
        assert.equal(titleOf({ text }), title);
    }
});

test('tool calls as they are heard of', () => {
    const message = { text: 'abc' };
    noteTool(message, { kind: 'tool', id: '1', callId: 'c', name: 'f', arguments: '' });
    noteTool(message, { kind: 'tool-arguments', id: '1', delta: '{}' });
    noteTool(message, { kind: 'tool-arguments', id: 'unknown', delta: 'x' });
    noteTool(message, { kind: 'tool-output', callId: 'c', output: 'seen', failed: false });
    noteTool(message, { kind: 'tool-output', callId: 'unknown', output: 'x' });
    assert.deepEqual(message.tools, [{ id: '1', callId: 'c', name: 'f', arguments: '{}', at: 3, output: 'seen', failed: false }]);
    noteTool(message, { kind: 'tool', id: '2', name: 'g', arguments: '', server: 's', approvalId: 'p', at: 1 });
    assert.equal(typeof message.tools[1].begun, 'number');
    assert.equal(message.tools[1].at, 1);
    noteTool(message, { kind: 'tool', id: '3', name: 'g', arguments: '{}', server: 's', approvalId: 'p', output: 'o' }); // it was allowed
    assert.deepEqual([message.tools.length, message.tools[1].id, message.tools[1].output, message.tools[1].at], [2, '3', 'o', 1]);
});

test('what goes to the server of tools that it runs, of files and videos', async () => {
    const { chat, a2 } = tree();
    const q3 = addMessage(chat, { role: 'user', parent: a2.id, text: '', attachments: [
        { kind: 'text', name: 'n.md', blob: new Blob(['a ```` b']) }, { kind: 'video', id: 'v', video: { start_ms: 5 } }] });
    a2.text = 'before after';
    a2.attachments = [{ id: 'i', tool: '1' }, { id: 'j', tool: '1', missing: true }, { id: 'k', tool: '9' }];
    a2.tools = [{ id: '1', name: 'f', arguments: '{}', server: 's', output: 'o', approvalId: 'p', at: 6 }, { id: '2', name: 'g', arguments: '{}', server: 's', approvalId: 'q', allowed: true, at: 6 }, { id: '3', name: 'h', arguments: '', at: 6 }];
    const uri = async ({ id }) => `data:${id}`;
    const items = await toInput(shownPath(chat), uri);
    assert.deepEqual(items.slice(3), [
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'before' }] },
        { type: 'mcp_call', id: '1', approval_request_id: 'p', server_label: 's', name: 'f', arguments: '{}', output: 'o', images: ['data:i'] },
        { type: 'mcp_approval_request', id: 'q', server_label: 's', name: 'g', arguments: '{}' },
        { type: 'mcp_approval_response', approval_request_id: 'q', approve: false },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: ' after' }] },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'File n.md:\n`````\na ```` b\n`````' }, { type: 'input_video', video_url: 'data:v', start_ms: 5 }] },
    ]);
    chat.head = a2.id;
    assert.equal((await toInput(shownPath(chat), uri)).find((one) => one.type === 'mcp_approval_response').approve, true, 'the last answer goes on with what was allowed');
    assert.match(toMarkdown({ ...chat, head: q3.id }), /## Answer\n\n\*Image: undefined\*[\s\S]*\*Tool: f \{\}\*[\s\S]*before after\n\n## You\n\n\*File: n\.md\*\n\n\*Video: undefined\*\n$/);
});

test('times that an answer names', () => {
    const seconds = (text) => splitTimes(text).filter((piece) => typeof piece !== 'string').map((piece) => piece.seconds);
    assert.deepEqual(seconds('at 0:12, 1:02:03 and <4.5 seconds>, then 12 s, 3 seconds, 90secs.'), [12, 3723, 4.5, 12, 3, 90]);
    assert.deepEqual(seconds('John 3:160, 1.2.3:45, a12 s, 12:60'), []);
    assert.deepEqual(splitTimes('0:01 on'), [{ text: '0:01', seconds: 1 }, ' on']);
    assert.deepEqual(splitTimes('on 0:01'), ['on ', { text: '0:01', seconds: 1 }]);
    assert.deepEqual(splitTimes('nothing'), ['nothing']);
    const text = (value) => ({ type: 'text', text: value });
    const tokens = markTimes([text('0:05 and 9:00'), { type: 'link', tokens: [text('0:05')] }, { type: 'list', items: [{ type: 'item', tokens: [text('0:07')] }] }], 60);
    assert.deepEqual(tokens[0].tokens.map(({ type, raw }) => [type, raw]), [['time', '0:05'], ['text', ' and '], ['text', '9:00']]);
    assert.equal(tokens[1].tokens[0].tokens, undefined);
    assert.equal(tokens[2].items[0].tokens[0].tokens[0].seconds, 7);
    assert.equal(markTimes([text('1:00')], 60)[0].tokens[0].type, 'time');
    assert.deepEqual([clock(0), clock(65_000), clock(2_500), clock(59_999), clock(600_050)], ['0:00', '1:05', '0:02.5', '0:59.9', '10:00']);
});

test('a video is shown at a time as soon as it can be, never behind its end', () => {
    const video = (more) => {
        const called = [];
        const say = (name) => (...given) => called.push([name, ...given]);
        return { called, currentTime: 0, pause: say('pause'), addEventListener: say('listen'), scrollIntoView: say('scroll'), focus: say('focus'), ...more };
    };
    const ready = video({ readyState: 1, duration: 10 });
    seekVideo(ready, 4);
    assert.deepEqual([ready.currentTime, ready.called], [4, [['pause'], ['scroll', { block: 'nearest' }], ['focus', { preventScroll: true }]]]);
    seekVideo(ready, 40);
    assert.equal(ready.currentTime, 10);
    const early = video({ readyState: 0, duration: NaN });
    seekVideo(early, 4);
    const [[, name, go, how]] = early.called;
    assert.deepEqual([early.currentTime, name, how], [0, 'loadedmetadata', { once: true }]);
    go();
    assert.equal(early.currentTime, 4);
});

/** A document of n paragraphs of about 30 words; the words of one of them are given. */
const pages = (n, at, words) => Array.from({ length: n }, (_, i) => (i === at ? words : `Paragraph ${i} ${'tells of other things at some length '.repeat(24)}`)).join('\n\n');
const file = (id, text) => ({ id, name: `${id}.txt`, kind: 'text', bytes: new Blob([text]).size, blob: new Blob([text]) });
const asked = (attachments, text = 'When did Kestrel Lake freeze?') => [{ id: 'q', role: 'user', text, attachments }];
const count = async (text) => Math.ceil(text.length / 4);

test('several long documents share the room for passages, the longest ones are searched, short ones go whole', async () => {
    const [a, b, small] = [file('a', pages(300, 40, 'Kestrel Lake froze in May.')), file('b', pages(200, 9, 'Kestrel Lake froze twice.')), file('small', 'A note.')];
    const plan = await readingPlan(asked([a, b, small]), { context: 8000, count });
    assert.deepEqual([a, b, small].map((one) => plan.textOf(one) === null), [false, false, true]);
    const tokens = await count(plan.tail.text);
    assert.ok(tokens > 300 && tokens < 6600, `${tokens} tokens of passages`);
    assert.equal(plan.tail.id, 'q');
    assert.match(plan.tail.text, /a\.txt is longer than can be read at once[\s\S]*froze in May[\s\S]*b\.txt is longer[\s\S]*froze twice/);
    assert.deepEqual([...new Set(plan.sources.list.map((one) => one.file))], ['a', 'b']);
    assert.ok(plan.sources.found && plan.sources.read < plan.sources.all);
    // Each has half of the room that one alone has: what is spread over a document fills it.
    const both = await readingPlan(asked([a, b], 'Zebras'), { context: 8000, count });
    const alone = await readingPlan(asked([a], 'Zebras'), { context: 8000, count });
    assert.equal(alone.sources.found, false);
    const half = (await count(both.tail.text)) / (await count(alone.tail.text));
    assert.ok(half > 0.8 && half < 1.25, `${half} of the tokens of one document`);
});

test('a question without words of the document is searched for with the one before it', async () => {
    const one = file('a', pages(300, 40, 'Kestrel Lake froze in May.'));
    const path = asked([one], 'When did Kestrel Lake freeze?');
    const first = path.at(-1);
    path.push({ id: 'a1', role: 'assistant', text: 'In May.', parent: first.id }, { id: 'q2', role: 'user', text: 'Are you sure?', parent: 'a1' });
    assert.match((await readingPlan(path, { context: 8000, count })).tail.text, /froze in May/);
    path.splice(-2, 0, { id: 'a0', role: 'assistant', text: 'What?', parent: first.id }, { id: 'q1', role: 'user', text: 'Zebras?', parent: 'a0' });
    assert.doesNotMatch((await readingPlan(path, { context: 8000, count })).tail.text, /froze in May/, 'the one before it alone');
});

test('where there is room everything goes along', async () => {
    const text = pages(20, 1, 'x');
    const one = file('a', text);
    assert.equal(await readingPlan(asked([one]), { context: 100_000, count }), null);
    assert.equal(await readingPlan(asked([one]), { context: undefined, count }), null);
    assert.equal(await readingPlan(asked([one]), { context: Math.ceil(text.length / 4 * 2), count }), null);
    const plan = await readingPlan(asked([one]), { context: Math.ceil(text.length / 4), count });
    assert.match(plan.textOf(one), /^File a\.txt: too long to be read whole/);
    // Without a server that counts, letters are guessed at.
    assert.ok(await readingPlan(asked([file('b', text)]), { context: Math.ceil(text.length / 4), count: async () => { throw new Error('no'); } }));
});

test('what fits is told to the token: words, images and room for the answer are counted with care', async () => {
    // A quarter of a token a letter; (20000 - 4096 - 1 for the question - 100 for the image) / 1.1 = 14366.3 tokens.
    const fits = async (letters, context = 20_000, more = [{ kind: 'image', width: 280, height: 280 }]) => {
        const plan = await readingPlan(asked([file('a', 'x'.repeat(letters)), ...more], 'aaa'), { context, count: async (text) => text.length / 4 });
        return plan === null;
    };
    assert.deepEqual([await fits(57_465), await fits(57_466)], [true, false]);
    assert.deepEqual([await fits(57_829, 20_000, []), await fits(57_830, 20_000, [])], [true, false]);
    assert.deepEqual([await fits(21_814, 8000, []), await fits(21_820, 8000, [])], [true, false], 'a quarter of a small context is the answer’s');
    // Shorter in bytes than half of the context: it fits, whatever is said of it.
    const dear = { context: 1000, count: async (text) => text.length * 10 };
    assert.deepEqual([await readingPlan(asked([file('a', 'x'.repeat(499))]), dear), (await readingPlan(asked([file('a', 'x'.repeat(500))]), dear)) === null], [null, false]);
    // Where nobody counts: three letters a token in Latin script, one in others.
    const nobody = { context: 10_000, count: async () => { throw new Error('no'); } };
    for (const [letter, n, isWhole] of [['x', 20_400, true], ['x', 20_600, false], ['\u0370', 6_800, true], ['\u0370', 6_900, false], ['\u036f', 20_400, true]]) {
        assert.equal((await readingPlan(asked([file('a', letter.repeat(n))], 'aaa'), nobody)) === null, isWhole, `${n} of ${letter}`);
    }
});

test('tokens of a long text are counted in three samples, once', async () => {
    const letters = 'abcdefghij'.repeat(3000).replace(/./g, (one, i) => String.fromCharCode(97 + ((i >> 4) % 26)));
    const seen = [];
    const one = file('a', letters);
    const ask = (count, given = one) => readingPlan(asked([given]), { context: 4000, count });
    await ask(async (text) => (seen.push(text), 0));
    assert.deepEqual(seen, [`${letters.slice(0, 2000)}\n${letters.slice(14_000, 16_000)}\n${letters.slice(28_000)}`]);
    await ask(async (text) => (seen.push(text), text.length));
    await ask(async (text) => (seen.push(text), text.length));
    assert.equal(seen.length, 2, 'what nobody could say is asked again, the rest is known');
    for (const [n, length] of [[6000, 6000], [6001, 6002]]) {
        seen.length = 0;
        await ask(async (text) => (seen.push(text), text.length), file('b', letters.slice(0, n)));
        assert.equal(seen[0].length, length);
    }
});

test('of several documents the longest are searched until the others take half of the room, and passages take the rest of it', async () => {
    const every = 'Which paragraph tells of other things at some length?';
    const count = async (text) => text.length / 4;
    const [a, b, c] = [file('a', `# Lakes\n\n${pages(200, 40, 'Kestrel Lake froze in May.')}`), file('b', pages(26, 9, 'Kestrel Lake froze twice.')), file('c', pages(20, 3, 'nothing'))];
    const tokens = async (plan) => count(plan.tail.text);
    const plan = await readingPlan(asked([c, b, a], every), { context: 20_000, count });
    assert.deepEqual([a, b, c].map((one) => plan.textOf(one) === null), [false, false, true]);
    const most = await tokens(plan);
    assert.ok(most > 5900 && most <= 6400, `${most} tokens, though there is room for more`);
    const little = await tokens(await readingPlan(asked([a], every), { context: 4000, count }));
    assert.ok(little > 2400 && little <= 2900, `${little} of 2700 tokens`);
    // What follows directly is read as one, and named once.
    const text = await a.blob.text();
    const { sources, tail } = plan;
    const numbers = [...tail.text.matchAll(/it has (\d+) passages/g)].map(([, n]) => Number(n));
    assert.deepEqual([numbers.length, sources.all, sources.found], [2, numbers[0] + numbers[1], true]);
    assert.ok(sources.list.length < sources.read && sources.read < sources.all, `${sources.list.length} of ${sources.read}`);
    const own = sources.list.filter(({ file }) => file === 'a');
    const squeezed = (one) => one.replace(/\s+/g, ' ').trim();
    for (const { at, end } of own) assert.ok(squeezed(tail.text).includes(squeezed(text.slice(at, end))), `${at} to ${end}`);
    assert.ok(own.every(({ at }, n) => n === 0 || at > own[n - 1].end || at < own[n - 1].at), 'no two that follow each other');
    // What goes whole takes room from the passages.
    const d = file('d', pages(9, 3, 'nothing'));
    const beside = await readingPlan(asked([d, a], every), { context: 10_000, count });
    assert.equal(beside.textOf(d), null);
    const rest = await tokens(beside);
    assert.ok(rest > 4200 && rest < 5100, `${rest} tokens beside a whole one`);
});

test('the encoding is guessed from the first 64 KiB', () => {
    const greek = Buffer.concat(Array(8192).fill(Buffer.from([0xea, 0xe1, 0xe9, 0x20, 0xf4, 0xef, 0xed, 0x20])));
    const russian = Buffer.concat(Array(8192).fill(Buffer.from([0xef, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2, 0xfb, 0x20])));
    const encoding = decodeText(greek).encoding;
    assert.equal(greek.length, 65_536);
    assert.notEqual(decodeText(russian).encoding, encoding);
    assert.equal(decodeText(Buffer.concat([greek, russian, russian, russian])).encoding, encoding);
});
