/** Answers on their way, without a browser: what is asked and when, what is told of it meanwhile, what events make of a message,
 * when it is kept and drawn, and how it ends. The server, the time and the tabs are made up. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { makeTime } from './made_up.mjs';
import { Answers, modelName } from '../../web/js/state/answers.js';
import { addMessage, newConversation, pathTo } from '../../web/js/state/store.js';

const time = makeTime();
// What of a page the answers look at: a hidden one needs no frames, and over plain HTTP there are no locks.
globalThis.document = /** @type {any} */ ({ hidden: true });
globalThis.navigator ??= /** @type {any} */ ({});

/** Answers of a chat whose server is this test: what was sent, the sink that takes the events, and what the chat is told. */
function answering(more = {}) {
    const conversation = newConversation({ seed: 7 });
    const q = addMessage(conversation, { role: 'user', parent: null, text: 'Q' });
    const [sent, events] = [[], []];
    const run = (fields) => (sink) => sent[sent.push({ ...fields, sink, done: false, cancel() { this.cancelled = true; } }) - 1];
    const chat = {
        current: conversation, live: new Map(), removed: new Set(), unread: new Set(), context: undefined, saves: 0, counted: [],
        settings: { get: () => false }, modelOf: () => 'org/small', tell: (what) => events.push(what), save: () => (chat.saves += 1),
        count: async (text) => (chat.counted.push(text), text.length), took: (...taken) => (chat.taken = taken), history: { refresh: async () => ['m'] },
        connection: {
            generate: (body, sink, askId) => Object.assign(run({ body, askId })(sink), chat.runFields),
            resume: (responseId, sink) => run({ responseId })(sink),
        },
        uploads: Object.assign(new EventTarget(), { urlOf: async ({ id }) => `upload:${id}`, progressOf: () => null, cancelled: [], cancel: (one) => chat.uploads.cancelled.push(one.id) }),
        askQueued: (_, next) => events.push(`queued ${next.text}`), ...more,
    };
    const answers = new Answers(/** @type {any} */ (chat));
    return { answers, chat, conversation, q, sent, events };
}
/** A new answer to the question, once it is asked for. */
async function begun(more) {
    const all = answering(more);
    all.answers.begin(all.conversation, all.q);
    await time.settle();
    return { ...all, answer: all.conversation.messages[all.conversation.head], run: all.sent[0] };
}
const file = (text) => ({ id: 'd', name: 'd.txt', kind: 'text', bytes: text.length, blob: new Blob([text]) });

/** Locks as tabs have them: who asks for one that is held waits for it. */
async function withLocks(work) {
    const held = new Map();
    const request = async (name, how, work = how) => {
        if (how.ifAvailable && held.has(name)) return work(null);
        while (held.has(name)) await held.get(name);
        const done = Promise.resolve(work({ name }));
        held.set(name, done.finally(() => held.delete(name)));
        return done;
    };
    Object.defineProperty(navigator, 'locks', { configurable: true, value: { request } });
    await Promise.resolve(work({ held, request })).finally(() => delete navigator.locks);
}

// ---- what is asked, and when ----

test('an answer that begins is kept, shown as one that waits, and told of before anything is sent', async () => {
    const { answers, chat, conversation, q, sent, events } = answering();
    answers.begin(conversation, q);
    const answer = conversation.messages[conversation.head];
    assert.deepEqual([sent.length, events, chat.saves, chat.live.get(conversation.id) === conversation, answers.progress.get(answer.id)], [0, ['conversation'], 1, true, { kind: 'waiting' }]);
    await time.settle();
    assert.deepEqual([sent.length, events, answers.runs.get(answer.id) === sent[0], [...answers.asking.keys()]], [1, ['conversation', 'message', 'list'], true, [answer.id]]);
    const refused = answering({ runFields: { done: true } });
    refused.answers.begin(refused.conversation, refused.q);
    await time.settle();
    assert.equal(refused.answers.runs.size, 0, 'a run that has ended at once is none');
});

test('while the files of a question are on their way it is told how far they are; stopped, they stop', async () => {
    let there;
    let way = { phase: 'send', done: 1, total: 4 };
    const all = answering();
    const { answers, chat, conversation, q, sent, events } = all;
    q.attachments = [{ id: 'i', kind: 'image', name: 'i.png' }];
    Object.assign(chat.uploads, { urlOf: () => new Promise((resolve) => (there = resolve)), progressOf: ({ id }) => id === 'i' && way });
    const change = () => chat.uploads.dispatchEvent(new Event('change'));
    answers.begin(conversation, q);
    await time.settle();
    const answer = conversation.messages[conversation.head];
    events.length = 0;
    change();
    assert.deepEqual([answers.progress.get(answer.id), events], [{ kind: 'progress', phase: 'upload_send', processed: 1, total: 4 }, ['message']]);
    way = null;
    change();
    assert.deepEqual([answers.progress.get(answer.id).processed, events.length], [1, 1], 'of one that is not on its way nothing is said');
    there('upload:i');
    await time.settle();
    assert.deepEqual([sent[0].body.input[0].content[0], answers.progress.get(answer.id), chat.uploads.cancelled], [{ type: 'input_image', image_url: 'upload:i' }, { kind: 'waiting' }, []]);
    way = { phase: 'send', done: 4, total: 4 };
    change();
    assert.deepEqual(answers.progress.get(answer.id), { kind: 'waiting' }, 'it is there');

    answers.begin(conversation, q);
    await time.settle();
    const other = conversation.messages[conversation.head];
    answers.stop(conversation);
    assert.equal(other.status, 'stopped');
    change();
    assert.deepEqual(chat.uploads.cancelled, ['i']);
    there('upload:i');
    await time.settle();
    assert.equal(sent.length, 1, 'it is not asked any more');
});

test('a file that cannot be sent ends the answer with the reason, unless it was stopped before', async () => {
    for (const [fault, error] of [[Object.assign(new Error('Too large.'), { code: 'too_large' }), { code: 'too_large', message: 'Too large.' }], [new Error('x'), { code: 'server_error', message: 'x' }]]) {
        let fail;
        const { answers, chat, conversation, q, sent, events } = answering();
        q.attachments = [{ id: 'i', kind: 'image', name: 'i.png' }];
        chat.uploads.urlOf = () => new Promise((_, reject) => (fail = reject));
        answers.begin(conversation, q);
        await time.settle();
        const first = conversation.messages[conversation.head];
        fail(fault);
        await time.settle();
        assert.deepEqual([first.status, first.error, answers.progress.size, answers.asking.size], ['failed', error, 0, 0]);
        answers.begin(conversation, q);
        await time.settle();
        const second = conversation.messages[conversation.head];
        answers.stop(conversation);
        fail(fault);
        await time.settle();
        assert.deepEqual([second.status, second.error, sent.length, events.filter((what) => what === 'finished').length], ['stopped', undefined, 0, 2]);
    }
});

test('a chat with documents waits up to three seconds for the size of the context, and names the passages', async () => {
    await import('../../web/js/state/sources.js'); // so that only the time which is made up counts
    const ask = async (attachments, context) => {
        const all = answering({ context });
        all.q.attachments = attachments;
        all.q.text = 'When did Kestrel Lake freeze?';
        all.answers.begin(all.conversation, all.q);
        await time.settle();
        return { ...all, answer: all.conversation.messages[all.conversation.head] };
    };
    const there = (all) => time.until(() => all.sent.length);
    const long = file(Array.from({ length: 300 }, (_, i) => (i === 40 ? 'Kestrel Lake froze in May.' : `Paragraph ${i} ${'tells of other things '.repeat(20)}`)).join('\n\n'));
    const image = { id: 'i', kind: 'image', name: 'i.png' };
    const began = time.now();
    for (const [files, context] of [[[image], undefined], [[file('Short.')], 8000]]) await there(await ask(files, context));
    assert.equal(time.now(), began, 'nothing to wait for');
    const never = await ask([image, file('Short.')], undefined);
    await time.pass(2990);
    assert.equal(never.sent.length, 0);
    await time.pass(10);
    await there(never);
    const later = await ask([long], undefined);
    await time.pass(1000);
    assert.equal(later.sent.length, 0);
    later.chat.context = 4000;
    await time.pass(50);
    await there(later);
    assert.ok(time.now() - began < 4200);
    assert.match(JSON.stringify(later.sent[0].body.input), /froze in May/);
    assert.ok(later.chat.counted.length > 0 && later.answer.sources && !('sources' in never.answer));
    later.answer.sources = 'old';
    later.conversation.messages[later.q.id].attachments = [];
    later.answers.ask(later.conversation, later.answer, pathTo(later.conversation, later.q.id));
    await time.settle();
    assert.equal('sources' in later.answer, false, 'asked again without them');
});

test('tools of the chat go along, and what the last try had to do without is forgotten', async () => {
    const { answers, chat, conversation, q, sent } = answering();
    conversation.options.tools = { files: {} };
    chat.connection.fetch = async () => new Response('{}', { status: 500 });
    const answer = addMessage(conversation, { role: 'assistant', parent: q.id, status: 'streaming', without: [{ server: 'old', why: 'x' }] });
    await answers.ask(conversation, answer, [q], { more: 1 });
    await time.until(() => sent.length);
    assert.deepEqual([sent[0].body.more, sent[0].body.tools, 'without' in answer], [1, [{ type: 'mcp', server_label: 'files' }], false]);
    delete conversation.options.tools;
    answer.without = [{ server: 'old', why: 'x' }];
    await answers.ask(conversation, answer, [q]);
    assert.equal('without' in answer, false);
});

test('other tabs are kept from asking the same until the server has it, and may then look at it', async () => {
    await withLocks(async ({ held }) => {
        const { answers, conversation, answer, run } = await begun();
        const name = `parley.ask.${answer.id}`;
        assert.deepEqual([...held.keys()], [name]);
        answers.ask(conversation, answer, []);
        await time.settle();
        assert.equal(held.size, 1, 'asked again: the first lock is given up, the second one held');
        run.sink({ kind: 'started', responseId: 'r' });
        await time.settle();
        assert.deepEqual([held.size, answers.asking.size], [0, 0]);
        const ended = await begun();
        ended.run.sink({ kind: 'end', status: 'failed' });
        await time.settle();
        assert.equal(held.size, 0, 'also where it never began');
    });
});

// ---- after a reload ----

test('after a reload: what the server has is taken up, what it never heard of is asked for ten minutes, the rest is cut', async () => {
    const pick = async (fields, more) => {
        const all = answering(more);
        const message = addMessage(all.conversation, { role: 'assistant', parent: all.q.id, text: '', status: 'streaming', ...fields });
        if (fields.created) message.created = fields.created;
        await all.answers.pickUp(all.conversation, message);
        await time.settle();
        return { ...all, message };
    };
    const back = await pick({ responseId: 'r1', text: 'Half', reasoning: 'hm', tools: [{ id: '1' }] });
    assert.deepEqual([back.sent.map(({ responseId }) => responseId), back.answers.progress.get(back.message.id), back.message.text], [['r1'], { kind: 'lost' }, 'Half']);
    const [run] = back.sent;
    run.sink({ kind: 'reasoning', delta: 'h' });
    run.sink({ kind: 'text', delta: 'Ha' });
    run.sink({ kind: 'text', delta: 'lf and more' });
    assert.deepEqual([back.message.text, back.message.reasoning, 'tools' in back.message], ['Half and more', 'h', false], 'it comes again from its start');
    const tooled = await pick({ responseId: 'r1', text: 'Half' });
    tooled.sent[0].sink({ kind: 'tool', id: '1', name: 'f', arguments: '' });
    assert.deepEqual([tooled.message.text, tooled.message.tools.length], ['', 1]);
    const worded = await pick({ responseId: 'r1', text: 'Half' });
    worded.sent[0].sink({ kind: 'text', delta: 'Ha' });
    assert.equal(worded.message.text, 'Ha');
    await back.answers.pickUp(back.conversation, back.message);
    assert.equal(back.sent.length, 1, 'it is taken up already');

    const young = await pick({ created: time.now() - 599_000 });
    assert.deepEqual([young.sent[0].askId === young.message.askId, young.sent[0].body.input.length, young.message.status], [true, 1, 'streaming']);
    for (const fields of [{ created: time.now() - 600_000 }, { text: 'Half' }, { reasoning: 'hm' }]) {
        const cut = await pick(fields);
        assert.deepEqual([cut.sent.length, cut.message.status, cut.message.error], [0, 'failed', { code: 'connection_lost', message: '' }]);
    }
    assert.equal((await pick({ status: 'done' })).sent.length, 0);
});

test('an answer that another tab is about to ask for is waited for, and what it wrote is taken in', async () => {
    await withLocks(async ({ request }) => {
        let letGo;
        const all = answering();
        const message = addMessage(all.conversation, { role: 'assistant', parent: all.q.id, text: '', status: 'streaming' });
        request(`parley.ask.${message.id}`, () => new Promise((resolve) => (letGo = resolve)));
        await time.settle();
        all.answers.pickUp(all.conversation, message);
        await time.settle();
        assert.deepEqual([all.sent.length, all.chat.taken], [0, undefined]);
        message.status = 'done';
        letGo();
        await time.settle();
        assert.deepEqual([all.sent.length, all.chat.taken], [0, [all.conversation, ['m']]]);
        all.chat.history.refresh = async () => { throw new Error('away'); };
        Object.assign(message, { status: 'streaming' });
        request(`parley.ask.${message.id}`, () => new Promise((resolve) => (letGo = resolve)));
        await time.settle();
        all.answers.pickUp(all.conversation, message);
        await time.settle();
        letGo();
        await time.settle();
        assert.deepEqual([all.sent.length, all.chat.taken[1]], [1, []], 'it never asked');
        all.chat.taken = undefined;
        all.answers.runs.clear();
        await all.answers.pickUp(all.conversation, Object.assign(message, { responseId: 'r' }));
        assert.deepEqual([all.sent.length, all.chat.taken], [2, undefined], 'what the server has needs no waiting');
    });
});

// ---- what comes back ----

test('what was thought is timed from the first thought to the first word, or to the end', async () => {
    const { answer, run } = await begun();
    await time.pass(400);
    run.sink({ kind: 'reasoning', delta: 'a' });
    await time.pass(500);
    run.sink({ kind: 'reasoning', delta: 'b' });
    await time.pass(1000);
    run.sink({ kind: 'text', delta: 'x' });
    await time.pass(300);
    run.sink({ kind: 'text', delta: 'y' });
    run.sink({ kind: 'end', status: 'completed' });
    assert.equal(answer.reasoningMs, 1500);
    const only = await begun();
    only.run.sink({ kind: 'reasoning', delta: 'a' });
    await time.pass(700);
    only.run.sink({ kind: 'end', status: 'cancelled' });
    assert.equal(only.answer.reasoningMs, 700);
    const none = await begun();
    none.run.sink({ kind: 'text', delta: 'x' });
    none.run.sink({ kind: 'end', status: 'completed' });
    assert.deepEqual(['reasoningMs' in none.answer, 'reasoning' in none.answer], [false, false]);
});

test('a growing answer is kept once a second, what began and ended at once', async () => {
    for (const event of [{ kind: 'text', delta: 'a' }, { kind: 'reasoning', delta: 'a' }, { kind: 'tool', id: '1', name: 'f', arguments: '' }]) {
        const { chat, answer, run } = await begun();
        const since = () => {
            const { saves } = chat;
            chat.saves = 0;
            return saves;
        };
        since();
        run.sink({ kind: 'started', responseId: 'r' });
        assert.equal(since(), 1, 'other tabs follow it by this');
        run.sink(event);
        await time.pass(500);
        run.sink(event);
        await time.pass(490);
        assert.equal(since(), 0);
        await time.pass(20);
        assert.equal(since(), 1);
        await time.pass(5000);
        assert.equal(since(), 0, 'nothing new');
        run.sink(event);
        await time.pass(1010);
        assert.equal(since(), 1);
        run.sink(event);
        answer.status = 'stopped';
        await time.pass(1010);
        assert.equal(since(), 0, 'it was written as it ended');
        answer.status = 'streaming';
        run.sink(event);
        run.sink({ kind: 'end', status: 'completed' });
        assert.equal(since(), 1);
        answer.status = 'streaming';
        await time.pass(2000);
        assert.equal(since(), 0);
    }
});

test('a growing answer is drawn at most every 66 ms, and at its end at once', async () => {
    const { run, events } = await begun();
    await time.pass(1000);
    events.length = 0;
    const drawn = () => events.splice(0).filter((what) => what === 'message').length;
    run.sink({ kind: 'text', delta: 'a' });
    await time.pass(0);
    assert.equal(drawn(), 1);
    run.sink({ kind: 'text', delta: 'b' });
    run.sink({ kind: 'text', delta: 'c' });
    await time.pass(65);
    assert.equal(drawn(), 0);
    await time.pass(1);
    assert.equal(drawn(), 1);
    run.sink({ kind: 'end', status: 'completed' });
    assert.equal(drawn(), 1);
});

test('images of a tool are files of the answer, drawn and kept', async () => {
    const { chat, answer, run, events } = await begun();
    const png = 'data:image/png;base64,YWJj';
    chat.saves = 0;
    run.sink({ kind: 'tool', id: '1', server: 's', name: 'f', arguments: '', images: [] });
    run.sink({ kind: 'tool', id: '1', server: 's', name: 'f', arguments: '', output: 'o', images: [png] });
    events.length = 0;
    await time.until(() => answer.attachments);
    assert.deepEqual([answer.attachments.map(({ tool, mime, bytes }) => [tool, mime, bytes]), chat.saves, events.filter((what) => what === 'message').length > 0], [[['1', 'image/png', 3]], 1, true]);
    run.sink({ kind: 'reset', text: '', reasoning: '', tools: [{ id: '2', server: 's', name: 'f', arguments: '', output: 'o', at: 0, images: [png, png] }] });
    await time.until(() => answer.attachments.length > 1);
    assert.deepEqual([answer.attachments.map(({ tool }) => tool), 'images' in answer.tools[0]], [['1', '2', '2'], false]);
});

test('what goes on keeps what it stands on: its words, its thoughts and its calls, whatever comes again', async () => {
    const { answers, answer, run, conversation, sent } = await begun();
    run.sink({ kind: 'started', responseId: 'r' });
    run.sink({ kind: 'text', delta: 'One' });
    run.sink({ kind: 'tool', id: '1', name: 'f', arguments: '' });
    run.sink({ kind: 'end', status: 'incomplete', reason: 'max_output_tokens' });
    Object.assign(answer, { reasoning: 'hm', error: 'x', modelId: 'old' });
    const { askId } = answer;
    answers.goOn(conversation, answer, { continue_final_message: true });
    await time.settle();
    assert.deepEqual([answer.status, answer.before.text, answer.before.tools.length, answer.error, answer.reason, answer.responseId, answer.modelId, answer.askId !== askId], ['streaming', 'One', 1, undefined, undefined, undefined, 'org/small', true]);
    answer.before.tools[0].name = 'g';
    assert.equal(answer.tools[0].name, 'f', 'a copy');
    answer.before.tools[0].name = 'f';
    const again = sent[1];
    assert.deepEqual([again.body.continue_final_message, again.body.input.map(({ type }) => type)], [true, ['message', 'reasoning', 'message']]);
    again.sink({ kind: 'text', delta: ' two' });
    again.sink({ kind: 'reset', text: ' 2', reasoning: '!', tools: [{ id: '2', name: 'h', arguments: '', at: 1 }] });
    assert.deepEqual([answer.text, answer.reasoning, answer.tools.map(({ id, at }) => [id, at])], ['One 2', 'hm!', [['1', 3], ['2', 4]]]);
    again.sink({ kind: 'text', delta: ' more' });
    assert.equal(answer.text, 'One 2 more');
    again.sink({ kind: 'reset', text: '', reasoning: '', tools: [] });
    assert.deepEqual([answer.text, answer.tools.map(({ id }) => id)], ['One', ['1']]);
    again.sink({ kind: 'end', status: 'completed' });
    assert.equal('before' in answer, false);
});

// ---- how it ends ----

test('a chat that is left stays in memory while one of its answers goes on, and is unread then; a deleted one is neither', async () => {
    const { answers, chat, conversation, q, sent } = answering();
    conversation.options = { ...conversation.options, beside: 'other' };
    answers.begin(conversation, q);
    await time.settle();
    chat.current = newConversation();
    conversation.updated = 0;
    sent[1].sink({ kind: 'started', responseId: 'r' });
    sent[0].sink({ kind: 'end', status: 'completed' });
    assert.deepEqual([chat.live.has(conversation.id), chat.unread.has(conversation.id), conversation.updated], [true, true, time.now()]);
    answers.runs.clear();
    sent[1].sink({ kind: 'end', status: 'completed' });
    assert.equal(chat.live.has(conversation.id), false);
    const early = answering();
    early.conversation.options = { ...early.conversation.options, beside: 'other' };
    early.answers.begin(early.conversation, early.q);
    await time.settle();
    early.chat.current = newConversation();
    early.answers.runs.clear();
    early.sent[0].sink({ kind: 'end', status: 'completed' });
    assert.equal(early.chat.live.has(early.conversation.id), true, 'one is about to be asked for');
    const gone = await begun();
    gone.chat.current = newConversation();
    gone.chat.removed.add(gone.conversation);
    gone.run.sink({ kind: 'end', status: 'cancelled' });
    assert.deepEqual([gone.chat.live.has(gone.conversation.id), gone.chat.unread.size], [true, 0]);
    const shown = await begun();
    shown.run.sink({ kind: 'end', status: 'completed' });
    assert.deepEqual([shown.chat.live.has(shown.conversation.id), shown.chat.unread.size], [true, 0]);
});

test('of two answers side by side the first one says whether the next question is asked, once both have ended', async () => {
    for (const [first, second, asked] of [['completed', 'completed', true], ['completed', 'failed', true], ['failed', 'completed', false], ['incomplete', 'cancelled', true]]) {
        const { answers, conversation, q, sent, events } = answering();
        conversation.options = { ...conversation.options, beside: 'other' };
        conversation.queue = [{ id: 'n', text: 'next', attachments: [] }, { id: 'o', text: 'other', attachments: [] }];
        answers.begin(conversation, q);
        await time.settle();
        sent[0].sink({ kind: 'end', status: first });
        assert.deepEqual([events.includes('queued next'), answers.isBusy(conversation)], [false, true]);
        sent[1].sink({ kind: 'end', status: second });
        assert.deepEqual([events.includes('queued next'), events.includes('queued other')], [asked, false], `${first}, ${second}`);
    }
    const waits = await begun();
    waits.conversation.queue = [{ id: 'n', text: 'next', attachments: [] }];
    waits.run.sink({ kind: 'tool', id: '1', server: 's', approvalId: 'p', name: 'f', arguments: '' });
    waits.run.sink({ kind: 'end', status: 'completed' });
    assert.equal(waits.events.includes('queued next'), false, 'a call asks first');
});

test('an answer may think where the settings say so, and another model may answer one question', async () => {
    const { answers, chat, conversation, q, sent } = answering({ settings: { get: (name) => name === 'thinking' } });
    conversation.options = { ...conversation.options, beside: 'two' };
    answers.begin(conversation, q);
    await time.settle();
    assert.deepEqual(sent.map(({ body }) => [body.chat_template_kwargs.enable_thinking, body.local, body.model]), [[true, undefined, 'org/small'], [true, undefined, 'two']]);
    const first = conversation.messages[conversation.head];
    answers.begin(conversation, q, { thinking: false, model: 'three', beside: first.id });
    await time.settle();
    const third = Object.values(conversation.messages).find(({ modelId }) => modelId === 'three');
    assert.deepEqual([sent.length, sent[2].body.model, sent[2].body.chat_template_kwargs.enable_thinking, third.beside, conversation.head], [3, 'three', false, first.id, first.id]);
    chat.modelOf = () => '';
    answers.begin(conversation, q, {});
    await time.settle();
    assert.equal('model' in sent[3].body, false, 'a server that names none');
});

// ---- the events one by one ----

test('an answer is asked for with the branch, its options and its model', async () => {
    const { sent, answer, run } = await begun();
    assert.equal(sent.length, 1);
    assert.deepEqual([run.body.seed, run.body.model, run.body.store, run.body.local, run.body.input.length], [7, 'org/small', false, undefined, 1]);
    assert.deepEqual([answer.status, answer.model, answer.modelId, run.askId], ['streaming', 'org/small', 'org/small', answer.askId]);
    assert.deepEqual([modelName('small'), modelName('a/b'), modelName('')], ['Small', 'a/b', 'Model']);
    assert.equal((await begun({ settings: { get: (name) => name === 'staysHere' } })).run.body.local, true);
});

test("an answer's model is that of the chat, and another where a rule has sent it elsewhere", async () => {
    for (const [timings, model] of [[{ predicted_n: 3 }, 'org/small'], [{ server: 'gpu' }, 'gpu/big'], [undefined, 'org/small']]) {
        const { answer, run } = await begun();
        run.sink({ kind: 'end', status: 'completed', model: 'gpu/big', timings });
        assert.equal(answer.model, model, JSON.stringify(timings));
    }
    const { answer, run } = await begun();
    run.sink({ kind: 'end', status: 'completed', timings: { server: 'gpu' } });
    assert.equal(answer.model, 'org/small');
});

test('how an answer ends, and what is asked next', async () => {
    const next = { id: 'n', text: 'next', attachments: [] };
    for (const [event, status, goesOn] of [[{ status: 'completed' }, 'done', true], [{ status: 'cancelled' }, 'stopped', false], [{ status: 'incomplete', reason: 'max_output_tokens' }, 'cut', true], [{ status: 'failed', error: { code: 'x', message: 'm' } }, 'failed', false], [{ status: 'failed' }, 'failed', false]]) {
        const { answers, conversation, answer, run, events } = await begun();
        conversation.queue = [next];
        assert.ok(answers.isBusy(conversation));
        run.sink({ kind: 'text', delta: 'Hi' });
        run.sink({ kind: 'stats', timings: { a: 1 }, context: { used: 5 } });
        run.sink({ kind: 'end', ...event, timings: { b: 2 }, usage: { total_tokens: 9 } });
        assert.deepEqual([answer.status, answer.text, answer.reason, answer.timings, answer.context, answer.usage], [status, 'Hi', event.reason, { a: 1, b: 2 }, { used: 5 }, { total_tokens: 9 }]);
        assert.deepEqual(answer.error, status === 'failed' ? event.error ?? { code: 'server_error', message: '' } : undefined);
        assert.equal(events.includes('queued next'), goesOn, status);
        assert.deepEqual([answers.isBusy(conversation), answers.runs.size, answers.progress.size], [false, 0, 0]);
    }
});

test('thoughts, text, tools and a new beginning', async () => {
    const { answers, answer, run, conversation } = await begun();
    run.sink({ kind: 'started', responseId: 'resp_1' });
    assert.deepEqual([answer.responseId, answers.progress.get(answer.id).kind], ['resp_1', 'started']);
    run.sink({ kind: 'reasoning', delta: 'h' });
    run.sink({ kind: 'reasoning', delta: 'm' });
    assert.equal(answer.reasoningMs, undefined);
    run.sink({ kind: 'text', delta: 'a' });
    assert.deepEqual([answer.reasoning, answer.text, typeof answer.reasoningMs, answers.progress.has(answer.id)], ['hm', 'a', 'number', false]);
    run.sink({ kind: 'tool', id: '1', name: 'f', arguments: '' });
    assert.equal(answer.tools[0].at, 1);
    run.sink({ kind: 'reset', text: 'new', reasoning: 'r', tools: [{ id: '2', name: 'g', arguments: '{}', at: 2 }] });
    assert.deepEqual([answer.text, answer.reasoning, answer.tools.map(({ id, at }) => [id, at])], ['new', 'r', [['2', 2]]]);
    run.sink({ kind: 'lost' });
    assert.equal(answers.progress.get(answer.id).kind, 'lost');
    answers.stop(conversation);
    assert.equal(run.cancelled, true);
    run.sink({ kind: 'end', status: 'cancelled' });
    // It goes on behind what it has.
    delete answer.tools;
    answers.goOn(conversation, answer);
    await time.settle();
    assert.deepEqual([answer.status, answer.responseId, answer.before], ['streaming', undefined, { text: 'new', reasoning: 'r' }]);
});

test('what is heard takes the place of what was in progress, is drawn, and the list of chats follows', async () => {
    const { answers, answer, run, events } = await begun();
    const kinds = [
        { kind: 'text', delta: 'a' }, { kind: 'reasoning', delta: 'b' }, { kind: 'tool', id: '1', name: 'f', arguments: '' },
        { kind: 'tool-arguments', id: '1', arguments: '{}' }, { kind: 'tool-output', id: '1', output: '7' },
    ];
    for (const event of kinds) {
        run.sink({ kind: 'queued', position: 1 });
        assert.deepEqual(answers.progress.get(answer.id), { kind: 'queued', position: 1 });
        run.sink(event);
        assert.equal(answers.progress.has(answer.id), false, event.kind);
    }
    run.sink({ kind: 'resumed' });
    assert.deepEqual(answers.progress.get(answer.id), { kind: 'started' });
    assert.deepEqual([answer.tools[0].output, events.splice(0).includes('message')], ['7', true]);
    run.sink({ kind: 'end', status: 'completed' });
    assert.deepEqual([answers.progress.size, events.filter((one) => /^(message|finished|list)$/.test(one))], [0, ['message', 'finished', 'list']]);
});

test('a list of chats is told of an answer that begins', async () => {
    const { events } = await begun();
    assert.deepEqual(events.slice(-2), ['message', 'list']);
});

test('an answer of a chat that is not shown is unread', async () => {
    const { chat, conversation, run } = await begun();
    chat.current = newConversation();
    chat.live.set(conversation.id, conversation);
    run.sink({ kind: 'end', status: 'completed' });
    assert.deepEqual([chat.unread.has(conversation.id), chat.live.has(conversation.id)], [true, false]);
});

test('two models answer beside each other', async () => {
    const { answers, conversation, q, sent } = answering();
    conversation.options = { ...conversation.options, beside: 'other' };
    answers.begin(conversation, q);
    await time.settle();
    assert.deepEqual(sent.map(({ body }) => body.model), ['org/small', 'other']);
    assert.equal(conversation.messages[conversation.head].modelId, 'org/small');
});
