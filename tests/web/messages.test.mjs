/** Questions, answers and the field below them, with a chat that is made up: what they show in each state, and which verbs of the
 * chat their buttons and keys call. One page for all of them. */
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { openLab } from './lab.mjs';

let lab, page;
before(async () => {
    lab = await openLab();
    ({ page } = lab);
});
after(() => lab.close());

test('a question: its files, its versions, folded where it is long, and asked again in other words', async () => {
    const seen = await page.evaluate(async () => {
        const { chatOf, press, settle, show, until, words } = window.lab;
        const blob = new Blob(['x']);
        const files = [{ id: 'f1', kind: 'text', name: 'a.txt', bytes: 2048, blob }, { id: 'f2', kind: 'image', name: 'b.png', width: 2, height: 3, bytes: 5 }, { id: 'f3', kind: 'image', name: 'c.png', width: 4, height: 5, blob }];
        const [q, older] = [{ id: 'q', role: 'user', text: 'One two', attachments: files, parent: null }, { id: 'p', role: 'user', text: 'Older', parent: null }];
        const chat = chatOf([older, q]);
        const view = await show('chat-message', { chat, message: q, siblings: [older, q], last: false, busy: false });
        const out = { bubble: words(view, '.bubble'), buttons: [...view.querySelectorAll('.actions > button, .branches button')].map((one) => `${one.ariaLabel}${one.disabled ? ' -' : ''}`), branches: words(view, '.branches > span').join() };
        await until(view, () => !view.querySelector('img'));
        out.files = words(view, '.images > *');
        const told = [];
        for (const type of ['show-image', 'notice']) view.addEventListener(type, ({ detail }) => told.push(`${type} ${detail.image?.id ?? detail.text}`));
        await press(view, 'Open a.txt');
        await press(view, 'Earlier question');
        await press(view, 'New chat from here');
        await press(view, 'Delete this version and what follows');
        out.called = [chat.news(), told];
        view.siblings = [q, older];
        await settle(view);
        await press(view, 'Later question');
        out.other = [words(view, '.branches > span').join(), [...view.querySelectorAll('.branches button')].map((one) => one.disabled), chat.news()];
        view.siblings = [q];
        await settle(view);
        out.alone = [view.querySelectorAll('.branches').length, words(view, '.menu button').join('|')];
        await press(view, 'Edit the question');
        const area = () => view.querySelector('textarea');
        out.editor = [document.activeElement === area(), area().selectionStart, area().value, words(view, 'label').join(), view.querySelectorAll('.bubble, .actions').length];
        const key = async (fields) => {
            area().dispatchEvent(new KeyboardEvent('keydown', { bubbles: true, cancelable: true, ...fields }));
            await settle(view);
            return view.editing;
        };
        out.keys = [await key({ key: 'Enter' }), await key({ key: 'a', ctrlKey: true }), chat.news().length];
        view.querySelector('input[value=f2]').click();
        area().value = '  Three ';
        await key({ key: 'Enter', ctrlKey: true });
        out.asked = [view.editing, chat.news(), document.activeElement.className];
        await press(view, 'Edit the question');
        for (const box of view.querySelectorAll('input')) box.click();
        area().value = ' ';
        out.nothing = [await key({ key: 'Enter', metaKey: true }), chat.news()];
        out.escaped = [await key({ key: 'Escape' }), chat.news()];
        const texts = ['x'.repeat(1_200), 'x'.repeat(1_201), Array(12).fill('l').join('\n'), Array(13).fill('l').join('\n')];
        out.long = [];
        for (const text of texts) {
            view.message = { id: 'q', role: 'user', text };
            await settle(view);
            out.long.push(view.querySelectorAll('.bubble.long.folded').length);
        }
        await press(view, 'Show all');
        out.unfolded = [view.querySelector('.bubble').classList.contains('folded'), view.querySelector('.bubble button').textContent.trim(), view.querySelector('.bubble button').ariaExpanded];
        view.busy = true;
        await settle(view);
        out.busy = [...view.querySelectorAll('button:disabled')].map((one) => one.ariaLabel ?? one.textContent.trim());
        view.remove();
        return out;
    });
    assert.deepEqual(seen, {
        bubble: ['One two'],
        buttons: ['Earlier question', 'Later question -', 'Copy the question', 'Edit the question', 'More about this question'],
        branches: '2/2',
        files: ['a.txt2.0 KiB', 'b.png is no longer kept', 'c.png cannot be shown: the file is damaged'],
        called: [['show p', 'branchInto q', 'erase q'], ['show-image f1']],
        other: ['1/2', [true, false], ['show p']],
        alone: [0, 'New chat from here|Delete this question'],
        editor: [true, 7, 'One two', 'a.txt,b.png,c.png', 0],
        keys: [true, true, 0],
        asked: [false, ['editQuestion q, Three, ["a.txt","c.png"]'], 'quiet icon-only edit'],
        nothing: [true, []],
        escaped: [false, []],
        long: [0, 1, 0, 1],
        unfolded: [false, 'Show less', 'true'],
        busy: ['Edit the question', 'Delete this question'],
    });
});

test('an answer: how it ended, what it took, its versions and its menu', async () => {
    const seen = await page.evaluate(async () => {
        const { chatOf, press, settle, show, until, words } = window.lab;
        const q = { id: 'q', role: 'user', text: 'Q', parent: null, attachments: [] };
        const base = { id: 'a', role: 'assistant', parent: 'q', text: 'Words.', status: 'done', model: 'Small' };
        const chat = chatOf([q, base]);
        const of = async (more = {}, fields = {}) => {
            const message = { ...base, ...more };
            chat.current.messages.a = message;
            const view = await show('chat-message', { chat, message, siblings: [message], last: true, busy: false, ...fields });
            const state = {
                who: words(view, '.who').join(), prose: words(view, '.answer > .prose').join('|'), notes: words(view, '.note').join('|'), working: words(view, '.working-text').join('|'),
                dots: view.querySelector('.dots')?.className ?? '', bar: view.querySelector('progress')?.value ?? null, thought: words(view, '.thinking summary').join(), busy: view.querySelector('article').ariaBusy,
                buttons: [...view.querySelectorAll('.actions > button, .failure button')].map((one) => `${one.ariaLabel ?? one.textContent.trim()}${one.disabled ? ' -' : ''}`).join('|'),
                menu: words(view, '.menu button').join('|'), facts: words(view, '.figures div').join('|'), hidden: view.querySelector('.figures')?.hidden ?? null, from: words(view, '.from').join(), failure: words(view, '.failure p').join('|'),
            };
            view.remove();
            return Object.fromEntries(Object.entries(state).filter(([, value]) => value !== '' && value !== null));
        };
        const out = {
            done: await of({ timings: { predicted_n: 10, predicted_per_second: 5 }, usage: { output_tokens: 7 } }),
            counted: await of({ timings: { predicted_n: 1, predicted_per_second: 5, server: 'Far', rule: 'R' } }),
            stopped: await of({ status: 'stopped' }),
            notLast: await of({ status: 'stopped' }, { last: false }),
            busy: await of({ status: 'stopped' }, { busy: true }),
            length: (await of({ status: 'cut', reason: 'max_output_tokens' })).notes,
            full: (await of({ status: 'cut', reason: 'context_length' })).notes,
            context: (await of({ status: 'cut', reason: 'context' })).notes,
            cut: (await of({ status: 'cut', reason: 'x' })).notes,
            without: (await of({ without: [{ server: 'S', why: 'gone' }] })).notes,
            failed: await of({ status: 'failed', text: '', error: { code: 'context_length_exceeded', message: 'too much' } }),
            unknown: await of({ status: 'failed', text: '', error: undefined }),
            thought: (await of({ reasoning: 'hm', reasoningMs: 2_000 })).thought,
            thoughts: (await of({ reasoning: 'hm' })).thought,
            thinking: (await of({ reasoning: 'hm', status: 'streaming', text: '' })).thought,
            answering: await of({ reasoning: 'hm', status: 'streaming', timings: { predicted_per_second: 12.5 } }),
            begins: await of({ status: 'streaming', text: '', timings: { predicted_per_second: 0 } }),
            half: await of({ status: 'stopped' }, { half: true }),
        };
        chat.progress.set('a', { kind: 'queued', position: 2 });
        out.queued = await of({ status: 'streaming', text: '' });
        chat.progress.set('a', { kind: 'progress', phase: 'prefill', processed: 1, total: 4 });
        out.reads = await of({ status: 'streaming', text: '' });
        chat.progress.clear();
        const [one, two] = [{ ...base, id: 'a1' }, { ...base, id: 'a2', text: 'Other.', beside: 'a1' }];
        const pair = async (message, siblings) => {
            const view = await show('chat-message', { chat, message, siblings, last: true, busy: false });
            await settle(view.querySelector('chat-message'));
            const halves = [...view.querySelectorAll('.pair > *')].map((part) => (part.matches('chat-message.half') ? 'half' : 'whole') + words(part, '.prose').join());
            const menu = words(view, '.menu button').join('|');
            chat.news();
            await press(view, 'Go on with this one');
            await press(view, 'Side by side no more');
            view.remove();
            return [halves, menu, chat.news()];
        };
        out.pairs = [await pair(two, [one, two]), await pair(one, [one, two])];
        const view = await show('chat-message', { chat, message: { ...base, status: 'stopped' }, siblings: [one, base, two], last: true, busy: false });
        for (const label of ['Continue', 'Answer again', 'Earlier answer', 'Later answer', 'New chat from here', 'Delete this version and what follows']) await press(view, label);
        out.called = chat.news();
        out.which = words(view, '.branches > span').join();
        await press(view, 'Edit the answer');
        view.querySelector('textarea').value = 'Put so.';
        out.editor = [view.querySelector('textarea').ariaLabel, words(view, '.editor-buttons button').join('|'), view.querySelectorAll('.actions').length];
        await press(view, 'Keep');
        out.edited = [chat.news(), view.editing];
        await press(view, 'Edit the answer');
        await press(view, 'Cancel');
        out.cancelled = [chat.news(), view.editing, document.activeElement.ariaLabel];
        view.message.text = 'New words.';
        chat.dispatchEvent(new CustomEvent('message', { detail: 'b' }));
        await settle(view);
        out.other = words(view, '.answer > .prose').join();
        chat.dispatchEvent(new CustomEvent('message', { detail: 'a' }));
        await settle(view);
        out.told = words(view, '.answer > .prose').join();
        const { clipboard } = navigator;
        let copied;
        Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { writeText: async (text) => void (copied = text) } });
        await press(view, 'Copy the answer');
        out.copied = [copied, view.copied];
        Object.defineProperty(navigator, 'clipboard', { configurable: true, value: clipboard });
        view.remove();
        const calls = [{ id: 't1', name: 'a', arguments: '{}', at: 3, output: '1' }, { id: 't2', name: 'b', arguments: '{}', at: 3, output: '2' }, { id: 't3', name: 'c', arguments: '{}', at: 99, output: '3' }];
        const parts = async (tools, more) => {
            const view = await show('chat-message', { chat, message: { ...base, text: 'OneTwo', tools, ...more }, siblings: [], last: true, busy: false });
            await settle(view);
            const found = [...view.querySelectorAll('.answer > .prose, tool-call')].map((part) => (part.matches('.prose') ? part.textContent.trim() : part.tool.id));
            view.remove();
            return found.join();
        };
        const code = async (status) => {
            const view = await show('chat-message', { chat, message: { ...base, text: 'So:\n\n```js\nlet x', status }, siblings: [], last: true, busy: false });
            const { open } = view.querySelector('code-block');
            view.remove();
            return !!open;
        };
        out.open = [await code('streaming'), await code('done')];
        out.parts = [await parts(calls), await parts(calls.slice(0, 1), { status: 'streaming' }), await parts([{ ...calls[0], at: 0 }]), await parts([]), await parts([calls[2], calls[0]])];
        return out;
    });
    assert.deepEqual(seen, {
        done: { who: 'Small', prose: 'Words.', busy: 'false', buttons: 'Copy the answer|Answer again|Edit the answer|More about this answer', menu: 'Read aloud|New chat from here|Delete this answer', facts: 'ModelSmall|Speed5.00 tokens/s|Length7 tokens', hidden: false },
        counted: { who: 'Small', prose: 'Words.', busy: 'false', buttons: 'Copy the answer|Answer again|Edit the answer|More about this answer', menu: 'Read aloud|New chat from here|Delete this answer', facts: 'ModelSmall|Speed5.00 tokens/s|Length1 token|Answered byFar, another serverSent there by the rule: R', hidden: false, from: 'Far' },
        stopped: { who: 'Small', prose: 'Words.', notes: 'You stopped this answer.', busy: 'false', buttons: 'Continue|Copy the answer|Answer again|Edit the answer|More about this answer', menu: 'Read aloud|New chat from here|Delete this answer', facts: 'ModelSmall', hidden: true },
        notLast: { who: 'Small', prose: 'Words.', notes: 'You stopped this answer.', busy: 'false', buttons: 'Copy the answer|Answer again|Edit the answer|More about this answer', menu: 'Read aloud|New chat from here|Delete this answer', facts: 'ModelSmall', hidden: true },
        busy: { who: 'Small', prose: 'Words.', notes: 'You stopped this answer.', busy: 'false', buttons: 'Continue -|Copy the answer|Answer again -|Edit the answer -|More about this answer', menu: 'Read aloud|New chat from here|Delete this answer', facts: 'ModelSmall', hidden: true },
        length: 'The answer reached its length limit. Settings can raise it.',
        full: 'The context is full. Start a new chat to go on.',
        context: 'The context is full. Start a new chat to go on.',
        cut: 'The answer ended early.',
        without: 'Without the tools of S: gone',
        failed: { who: 'Small', busy: 'false', buttons: 'Try again|New chat|More about this answer', menu: 'New chat from here|Delete this answer', facts: 'ModelSmall', hidden: true, failure: 'The conversation is longer than the model can read. Start a new chat, or send less text or fewer files.|too much|Try again New chat' },
        unknown: { who: 'Small', busy: 'false', buttons: 'Try again|More about this answer', menu: 'New chat from here|Delete this answer', facts: 'ModelSmall', hidden: true, failure: 'Something went wrong on the server. Try again; its log says more.|Try again' },
        thought: 'Thought for 2 s',
        thoughts: 'Thoughts',
        thinking: 'Thinking…',
        answering: { who: 'Small', prose: 'Words.', working: '12.5 tokens/s', dots: 'dots steady', thought: 'Thoughts', busy: 'true' },
        begins: { who: 'Small', dots: 'dots ', busy: 'true' },
        half: { who: 'Small', prose: 'Words.', notes: 'You stopped this answer.', busy: 'false', buttons: 'Continue|Go on with this one|Copy the answer|More about this answer', menu: 'Side by side no more|Read aloud|New chat from here|Delete this answer', facts: 'ModelSmall', hidden: true },
        queued: { who: 'Small', working: 'In the queue · 2 before you', dots: 'dots', busy: 'true' },
        reads: { who: 'Small', working: 'Reading the conversation · 1 of 4 tokens', bar: 0.25, busy: 'true' },
        pairs: [[['halfWords.', 'wholeOther.'], 'Side by side no more|Read aloud|New chat from here|Delete this version and what follows|Side by side no more|Read aloud|New chat from here|Delete this version and what follows', ['show a1', 'apart a1']], [['wholeWords.', 'halfOther.'], 'Side by side no more|Read aloud|New chat from here|Delete this version and what follows|Side by side no more|Read aloud|New chat from here|Delete this version and what follows', ['show a2', 'apart a1']]],
        called: ['continueAnswer a', 'regenerate a', 'show a1', 'show a2', 'branchInto a', 'erase a'],
        which: '2/3',
        editor: ['The answer', 'Cancel|Keep', 0],
        edited: [['editAnswer a, Put so.'], false],
        cancelled: [[], false, 'Edit the answer'],
        other: 'Words.',
        told: 'New words.',
        copied: ['New words.', 'Copied'],
        open: [true, false],
        parts: ['One,t1,t2,Two,t3', 'One,t1,Two', 't1,OneTwo', 'OneTwo', 'One,t1,Two,t3'],
    });
});

test('the field: what can be added, what is asked with, and what waits', async () => {
    const seen = await page.evaluate(async () => {
        const { chatOf, press, settle, show, until, words } = window.lab;
        const values = new Map(Object.entries({ thinking: false, enterSends: true, videoRate: 0, imageSize: 1 << 20, staysHere: false }));
        const settings = { get: (name) => values.get(name), set: (name, value) => (values.set(name, value), (settings.told = `${name} ${value}`)) };
        let tokens = async (content) => content.length;
        const counted = [];
        const chat = chatOf([], { count: (content) => (counted.push(content), tokens(content)) });
        const model = { name: 'Small', vision: true, video: false, thinking: true, tools: true, maxImages: 2, rates: undefined };
        const view = await show('chat-composer', { chat, settings, busy: false, model, queue: [] });
        const { field } = view;
        const type = async (text) => {
            field.value = text;
            field.dispatchEvent(new Event('input'));
            await settle(view);
        };
        const key = async (name, more = {}) => {
            const event = new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true, ...more });
            field.dispatchEvent(event);
            await settle(view);
            return [event.defaultPrevented, ...chat.news().filter((one) => !one.startsWith('keepDraft'))].join(' ');
        };
        const buttons = () => [...view.querySelectorAll('.composer-row button')].filter((one) => !one.closest('[popover]')).map((one) => `${one.ariaLabel ?? one.textContent.trim()}${one.disabled ? ' -' : ''}`).join('|');
        const out = { empty: [buttons(), field.placeholder, view.querySelector('input[type=file]').ariaLabel] };
        for (const [name, more] of Object.entries({ video: { video: true }, text: { vision: false, thinking: false, tools: false }, far: { upstreams: ['a', 'b'] }, routes: { routes: ['r1', 'r2'] } })) {
            view.model = { ...model, ...more };
            await settle(view);
            out[name] = [buttons(), field.placeholder, view.querySelector('input[type=file]').ariaLabel, words(view, '.leaves').join()];
        }
        await press(view, 'Keep here');
        out.kept = settings.told;
        view.requestUpdate();
        await settle(view);
        out.stays = words(view, '.leaves').join();
        view.model = model;
        await press(view, 'Think');
        out.thinks = settings.told;
        await type('  Hello ');
        out.typed = [buttons(), chat.news()];
        await type('   ');
        out.blank = [buttons(), await key('Enter')];
        await type('Hello');
        out.enter = [await key('Enter', { shiftKey: true }), await key('Enter', { isComposing: true }), await key('Enter', { keyCode: 229 }), await key('a'), await key('Enter'), field.value, buttons()];
        values.set('enterSends', false);
        await type('Hello');
        out.noEnter = [await key('Enter'), await key('Enter', { ctrlKey: true }), (await type('x'), await key('Enter', { metaKey: true }))];
        values.set('enterSends', true);
        let edits = 0;
        view.addEventListener('edit-last', () => (edits += 1));
        out.up = [await key('ArrowUp'), edits, (await type('x'), await key('ArrowUp')), edits, (await type('2nd'), await key('Tab'))];
        view.busy = true;
        await settle(view);
        out.busy = [buttons(), await key('Enter'), buttons()];
        await press(view, 'Stop the answer');
        out.stopped = chat.news();
        const waiting = [{ id: 'w1', text: 'First', attachments: [] }, { id: 'w2', text: '', attachments: [{ kind: 'text', name: 'b.txt', bytes: 3, blob: new Blob(['abc']) }] }];
        view.queue = waiting;
        await settle(view);
        out.queue = [words(view, '.queue li'), view.querySelector('.queue').ariaLabel, words(view, '.queue-why')];
        view.busy = false;
        await settle(view);
        out.left = [words(view, '.queue li'), view.querySelector('.queue').ariaLabel, words(view, '.queue-why')];
        view.queue = waiting.slice(0, 1);
        await settle(view);
        out.one = words(view, '.queue-why');
        await press(view, 'Send');
        await press(view, 'Do not send this');
        out.sent = chat.news();
        await type('y');
        out.behind = await key('Enter');
        await press(view, 'Edit');
        out.back = [field.value, document.activeElement === field, chat.news().filter((one) => !one.startsWith('keepDraft'))];
        view.queue = [];
        view.quote('a\n\nb ');
        await settle(view);
        out.quoted = [field.value, field.selectionStart];
        chat.news();
        await press(view, 'Send'); // the page stays: it is no form that is sent
        out.button = [chat.news(), field.value];
        view.quote('c');
        out.alone = field.value;
        chat.news();
        counted.length = 0;
        await type(' five5 ');
        await until(view, () => view.tokens);
        out.tokens = [view.tokens, words(view, '.tokens').join(), counted.join()];
        await type('');
        out.none = view.tokens;
        tokens = async () => { throw new Error('away'); };
        view.tokens = 3;
        await type('z');
        await until(view, () => !view.tokens);
        out.away = [view.tokens, words(view, '.tokens').length];
        view.restore();
        await settle(view);
        chat.news();
        const add = (names) => view.add(names.map((name) => new File([name], name, { type: 'text/plain' })));
        const adding = add(['a.txt', 'b.txt', 'c.txt']);
        await view.updateComplete;
        out.reading = [view.reading, words(view, '.thumb.loading').length, buttons().endsWith('Send -'), await key('Enter')];
        await adding;
        await settle(view);
        out.added = [view.reading, [...view.querySelectorAll('.thumb')].map((one) => one.title), words(view, '.refused li'), chat.news(), buttons().endsWith('Send')];
        await press(view, 'Close this message');
        let asked;
        view.addEventListener('show-image', ({ detail }) => (asked = [detail.image.name, detail.items.length]));
        await press(view, 'Open b.txt');
        await press(view, 'Remove a.txt');
        out.removed = [view.refused.length, asked, view.attachments.map(({ name }) => name), chat.news()];
        out.up2 = (await key('ArrowUp'), edits);
        out.files = [await key('Enter'), view.attachments.length];
        await add([]);
        const transfer = (text, file) => {
            const data = new DataTransfer();
            if (text) data.setData('text/plain', text);
            if (file) data.items.add(new File(['f'], 'p.txt', { type: 'text/plain' }));
            const event = new ClipboardEvent('paste', { clipboardData: data, cancelable: true, bubbles: true });
            field.dispatchEvent(event);
            return event.defaultPrevented;
        };
        const paste = async (text, file) => {
            view.restore();
            const prevented = transfer(text, file);
            await until(view, () => !view.reading);
            return [prevented, view.attachments.map(({ name, bytes }) => `${name} ${bytes}`).join()].join(' ');
        };
        out.pasted = [await paste('x'.repeat(8_000)), await paste('x'.repeat(8_001)), await paste('', true), await paste('w', true), await paste('')];
        view.restore();
        await settle(view);
        const ways = { a: { phase: 'sending', done: 3, total: 10 }, b: { phase: 'done', done: 1, total: 1 } };
        chat.uploads.progressOf = ({ name }) => ways[name];
        view.attachments = ['a', 'b', 'c'].map((name) => ({ id: name, kind: 'text', name, bytes: 1, width: 5, height: 6, note: name === 'b' ? 'N' : '', blob: new Blob(['x']) }));
        await settle(view);
        out.ways = [[...view.querySelectorAll('.thumb progress')].map((one) => `${one.ariaLabel} ${one.value} ${one.max}`), [...view.querySelectorAll('.thumb')].map((one) => one.title)];
        ways.a.done = 7;
        chat.uploads.dispatchEvent(new Event('change'));
        await settle(view);
        out.further = view.querySelector('.thumb progress').value;
        view.remove();
        return out;
    });
    assert.deepEqual(seen, {
        empty: ['Think|Dictate|Tools|Send -', 'Ask something, or add an image', 'Add images or text'],
        video: ['Think|Dictate|Tools|Send -', 'Ask something, or add an image or a video', 'Add images, videos or text', ''],
        text: ['Dictate|Send -', 'Ask something', 'Add text files', ''],
        far: ['Think|Dictate|Tools|Send -', 'Ask something, or add an image', 'Add images or text', 'Goes to a and b, another server.'],
        routes: ['Think|Dictate|Tools|Send -', 'Ask something, or add an image', 'Add images or text', 'May go to another server, by its rules. Keep here'],
        kept: 'staysHere true',
        stays: 'Stays on this server. Keep here',
        thinks: 'thinking true',
        typed: ['Think|Dictate|Tools|Send', ['keepDraft   Hello , []']],
        blank: ['Think|Dictate|Tools|Send -', 'true'],
        enter: ['false', 'false', 'false', 'false', 'true send Hello, []', '', 'Think|Dictate|Tools|Send -'],
        noEnter: ['false', 'true send Hello, []', 'true send x, []'],
        up: ['true', 1, 'false', 1, 'false'],
        busy: ['Think|Dictate|Tools|Stop the answer|Send after this answer', 'true enqueue 2nd, []', 'Think|Dictate|Tools|Stop the answer'],
        stopped: ['stop'],
        queue: [['First Edit', 'b.txt Edit'], 'Sent after this answer', []],
        left: [['First Send Edit', 'b.txt Send Edit'], 'Not sent yet', ['Not sent: the answer before them did not end, or the page was closed.']],
        one: ['Not sent: the answer before it did not end, or the page was closed.'],
        sent: ['sendQueued w1', 'unqueue w1'],
        behind: 'true enqueue y, []',
        back: ['First', true, ['unqueue w1']],
        quoted: ['First\n\n> a\n>\n> b\n\n', 18],
        button: [['send First\n\n> a\n>\n> b, []', 'keepDraft , []'], ''],
        alone: '> c\n\n',
        tokens: [5, '5 tokens', 'five5'],
        none: 0,
        away: [0, 0],
        reading: [3, 1, true, 'true'],
        added: [0, ['a.txt · 5 B', 'b.txt · 5 B'], ['c.txt was not added: one message takes at most 2.'], ['start a.txt', 'start b.txt', 'keepDraft , ["a.txt","b.txt"]'], true],
        removed: [0, ['b.txt', 2], ['b.txt'], ['cancel a.txt', 'keepDraft , ["b.txt"]']],
        up2: 1,
        files: ['true send , ["b.txt"]', 0],
        pasted: ['false ', 'true pasted.txt 8001', 'true p.txt 1', 'false p.txt 1', 'false '],
        ways: [['Sending a 3 10'], ['a · 5 × 6, 1 B', 'b · 5 × 6, 1 B · N', 'c · 5 × 6, 1 B']],
        further: 7,
    });
});

test('a video of a question: the part that was sent, and a time in the answer that is gone to', async () => {
    const seen = await page.evaluate(async () => {
        const { chatOf, settle, show } = window.lab;
        const blob = new Blob(['x'], { type: 'video/mp4' });
        const video = (id, more) => ({ id, kind: 'video', name: `${id}.mp4`, bytes: 1, width: 4, height: 4, blob, ...more });
        const q = { id: 'q', role: 'user', text: 'Q', parent: null, attachments: [video('v1', { seconds: 9, video: { start_ms: 2_000, end_ms: 5_000 } }), video('v2', { video: { start_ms: 3_000 } }), video('v3', { video: {} }), video('v4', { video: { end_ms: 4_000 } })] };
        const a = { id: 'a', role: 'assistant', parent: 'q', text: 'At 0:03 it jumps.', status: 'done' };
        const chat = chatOf([q, a]);
        const question = await show('chat-message', { chat, message: q, siblings: [q] });
        const out = { parts: [...question.querySelectorAll('video-clip')].map((one) => `${one.section} ${one.from} ${one.to}`) };
        const errors = [];
        const note = (event) => (errors.push(event.message), event.preventDefault());
        addEventListener('error', note);
        const answer = await show('chat-message', { chat, message: a, siblings: [a] });
        out.times = [...answer.querySelectorAll('button.time')].map((one) => one.dataset.seconds);
        answer.querySelector('.who').click();
        const clips = [2, 3].map((duration) => Object.defineProperty(Object.assign(document.createElement('video'), { className: 'image' }), 'duration', { value: duration }));
        question.querySelector('.images').replaceChildren(...clips);
        const sought = [];
        for (const [i, one] of clips.entries()) Object.defineProperty(one, 'currentTime', { get: () => 0, set: (seconds) => sought.push([i, seconds]) });
        for (const one of clips) Object.defineProperty(one, 'readyState', { value: 4 });
        answer.querySelector('button.time').click();
        await settle(answer);
        Object.assign(out, { errors, sought });
        removeEventListener('error', note);
        question.remove();
        answer.remove();
        return out;
    });
    assert.deepEqual(seen, {
        parts: ['from 0:02 to 0:05 2000 5000', 'from 0:03 3000 undefined', ' 0 undefined', 'from 0:00 to 0:04 0 4000'],
        times: ['3'],
        errors: [],
        sought: [[1, 3]], // in the first that is as long
    });
});

test('images as they are read: as they are, smaller, drawn anew, or damaged', async () => {
    const seen = await page.evaluate(async () => {
        const { at } = window.lab;
        const { readFiles } = await at('js/state/attachments.js');
        const canvas = Object.assign(document.createElement('canvas'), { width: 40, height: 20 });
        canvas.getContext('2d').fillRect(0, 0, 40, 20);
        const made = (type) => new Promise((resolve) => canvas.toBlob(resolve, type));
        const [png, jpeg] = [await made('image/png'), await made('image/jpeg')];
        const limits = { vision: true, video: true, maxImages: 9, already: 0, modelName: 'M' };
        const read = async (parts, name, type, maxPixels) => {
            const { attachments: [one], refused } = await readFiles([new File(parts, name, { type })], { ...limits, maxPixels });
            return one ? [one.kind, one.mime, one.blob.type, one.width, one.height, one.bytes === one.blob.size, one.note ?? ''].join(' ') : refused.join();
        };
        const svg = (size) => `<svg xmlns="http://www.w3.org/2000/svg" ${size}><rect width="9" height="9"/></svg>`;
        return [
            await read([png], 'a.png', 'image/png', 800), await read([png], 'a', '', 800), await read([png], 'a.jpg', 'image/jpeg', 800), await read([jpeg], 'a.jpg', 'image/jpeg'),
            await read([png], 'a.png', 'image/png', 200), await read([jpeg], 'a.jpg', 'image/jpeg', 200), await read([png], 'a.png', 'image/png', 1),
            await read([svg('width="20" height="10"')], 'a.svg', 'image/svg+xml'), await read([svg('width="10" height="40"')], 'a.svg', 'image/svg+xml', 4_096),
            await read([png.slice(0, 20)], 'cut.png', 'image/png'), await read(['<svg'], 'cut.svg', 'image/svg+xml'),
        ];
    });
    assert.deepEqual(seen, [
        'image image/png image/png 40 20 true ', 'image image/png image/png 40 20 true ', 'image image/png image/png 40 20 true ', 'image image/jpeg image/jpeg 40 20 true ',
        'image image/png image/png 20 10 true made smaller from 40 × 20', 'image image/jpeg image/jpeg 20 10 true made smaller from 40 × 20', 'image image/png image/png 1 1 true made smaller from 40 × 20',
        'image image/png image/png 1024 512 true ', 'image image/png image/png 32 128 true made smaller from 256 × 1024',
        'cut.png is damaged: it cannot be opened.', 'cut.svg is damaged: it cannot be drawn.',
    ]);
});
