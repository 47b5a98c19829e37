/** The field below the chat with a chat that is made up: dictation, pages of a PDF as images, prompts behind a slash and their
 * library, and what a device and a chat change of it. One page for all of them. */
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { openLab } from './lab.mjs';

let lab, page;
before(async () => {
    lab = await openLab();
    ({ page } = lab);
    // A PDF of four pages of which this test knows what they are; the library is asked for elsewhere.
    const body = `export const openPdf = async () => ({
        pages: 4, text: async () => ({ text: 'words', pages: 4, blank: 0 }), close() {},
        page: (i) => new Promise((resolve) => (window.drawPage = () => resolve({ blob: new Blob(['p' + i], { type: 'image/png' }), width: i, height: 9 }))) });`;
    await page.route('**/js/documents/pdf.js', (route) => route.fulfill({ contentType: 'text/javascript', body }));
    await page.evaluate(() => {
        const { chatOf, settle, show } = window.lab;
        /** A field in a chat, its settings, and what is done to it. */
        window.lab.field = async (more = {}, values = {}) => {
            const kept = new Map(Object.entries({ thinking: false, enterSends: true, videoRate: 0, imageSize: 1 << 20, staysHere: false, ...values }));
            const chat = chatOf([], { count: async (content) => content.length });
            chat.current.options = more.options;
            const model = { name: 'Small', vision: true, video: false, thinking: true, tools: true, maxImages: 3, rates: undefined, ...more.model };
            const view = await show('chat-composer', { chat, settings: { get: (name) => kept.get(name), set: (...given) => kept.set(...given) }, busy: false, model, queue: [] });
            const { field } = view;
            const type = async (text, at = text.length, end = at) => {
                field.value = text;
                field.setSelectionRange(at, end);
                field.dispatchEvent(new Event('input'));
                await settle(view);
            };
            const key = async (name, fields = {}) => {
                const event = new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true, ...fields });
                field.dispatchEvent(event);
                await settle(view);
                return event.defaultPrevented;
            };
            const news = () => chat.news().filter((one) => !one.startsWith('keepDraft'));
            return { chat, field, key, news, type, view };
        };
    });
});
after(() => lab.close());

test('dictation: what is said goes to the caret, sentence by sentence, until it ends', async () => {
    const seen = await page.evaluate(async () => {
        const { field: make, press, until } = window.lab;
        const engines = [];
        window.SpeechRecognition = class {
            constructor() {
                engines.push(this);
            }
            start() {}
            stop() {
                this.stopped = true;
                this.onend();
            }
        };
        const { chat, field, news, type, view } = await make();
        const pressed = () => view.querySelector('[aria-label=Dictate]').getAttribute('aria-pressed');
        const begin = async () => {
            await press(view, 'Dictate');
            await until(view, () => view.dictating);
            return engines.at(-1);
        };
        const hear = (engine, text, isFinal) => engine.onresult({ resultIndex: 0, results: [Object.assign([{ transcript: text }], { isFinal })] });
        await type('Please. Thank you.', 7);
        chat.news();
        const out = { before: pressed() };
        let engine = await begin();
        await view.updateComplete;
        out.listens = pressed();
        hear(engine, ' say ', false);
        out.first = [field.value, chat.news()];
        hear(engine, 'say hello', true);
        hear(engine, 'there', false);
        hear(engine, 'there you', false);
        out.more = [field.value, field.selectionStart];
        view.refused = ['old'];
        field.blur();
        await press(view, 'Dictate');
        await until(view, () => document.activeElement === field);
        out.ended = [engine.stopped, view.dictating, pressed(), view.refused, engines.length];
        await type('all of this', 0, 11);
        engine = await begin();
        hear(engine, 'new', true);
        out.selected = field.value;
        engine.onerror({ error: 'not-allowed' });
        engine.onend();
        await until(view, () => !view.dictating);
        out.problem = view.refused.join();
        await type('line\n');
        engine = await begin();
        hear(engine, 'next', true);
        out.line = field.value;
        news();
        await press(view, 'Send');
        out.sent = [engine.stopped, news(), view.dictating];
        await type('');
        engine = await begin();
        hear(engine, 'alone', true);
        out.alone = [field.value, view.empty];
        view.remove();
        return out;
    });
    assert.deepEqual(seen, {
        before: 'false', listens: 'true', first: ['Please. say Thank you.', ['keepDraft Please. say Thank you., []']], more: ['Please. say hello there you Thank you.', 27],
        ended: [true, null, 'false', ['old'], 1], selected: 'new', problem: 'This page may not use the microphone. The browser asks for it beside the address.', line: 'line\nnext',
        sent: [true, ['send line\nnext, []'], null], alone: ['alone', false],
    });
});

test('pages of a PDF are added as images, as many as there is room for', async () => {
    const seen = await page.evaluate(async () => {
        const { field: make, press, settle, until, words } = window.lab;
        const { chat, news, view } = await make();
        await view.add([new File(['%PDF-1.7'], 'a.pdf')]);
        await settle(view);
        const input = () => view.querySelector('.document input');
        const button = () => [...view.querySelectorAll('.document button')][0];
        const out = { row: [words(view, '.document').join(), input().ariaLabel, news()] };
        document.body.focus();
        await press(view, 'Add pages as images');
        out.focus = document.activeElement === input();
        const ask = async (pages, key) => {
            input().value = pages;
            const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true });
            if (key) input().dispatchEvent(event);
            else button().click();
            await view.updateComplete;
            return event.defaultPrevented;
        };
        out.other = [await ask('2', 'a'), view.reading];
        out.enter = [await ask('2-4', 'Enter')];
        await until(view, () => window.drawPage);
        out.reading = [view.reading, button().disabled, words(view, '.thumb.loading').length];
        await ask('1'); // one after the other
        const draw = async () => {
            await until(view, () => window.drawPage);
            window.drawPage();
            window.drawPage = null;
        };
        await draw();
        await draw();
        await until(view, () => !view.reading);
        await settle(view);
        out.added = [view.attachments.map(({ name, kind, width }) => `${name} ${kind} ${width}`), words(view, '.refused li'), news(), button().disabled];
        await ask('9');
        await until(view, () => !view.reading && view.refused.length);
        out.wrong = [view.refused, view.attachments.length];
        view.model = { ...view.model, vision: false };
        await settle(view);
        out.blind = view.querySelectorAll('.document').length;
        out.kept = chat.uploads !== null;
        view.remove();
        return out;
    });
    assert.deepEqual(seen, {
        row: ['a.pdf: text of 4 pages Add pages as images', 'Pages of a.pdf', ['start a.pdf']], focus: true, other: [false, 0], enter: [true], reading: [1, true, 1],
        added: [['a.pdf text 0', 'a, page 2 image 2', 'a, page 3 image 3'], ['Only the first 2 of 3 pages of a.pdf were added: one message takes at most 3 files.'], [], false],
        wrong: [['“9” names no pages of a.pdf: write numbers from 1 to 4, as in 1-3, 7.'], 3], blind: 0, kept: true,
    });
});

test('prompts behind a slash: offered while they are named, chosen by keys, filled in place by place', async () => {
    const seen = await page.evaluate(async () => {
        const { field: make, settle, until, words } = window.lab;
        localStorage.setItem('parley.prompts', JSON.stringify([
            { id: 'a', name: 'Alpha', text: 'To {{one}} and {{two}}.' }, { id: 'b', name: 'Beta', text: 'No place' }, { id: 's', name: 'System', text: 'x', system: true },
            ...Array.from({ length: 9 }, (_, i) => ({ id: `m${i}`, name: `Many ${i}`, text: 'x' })),
        ]));
        const { field, key, news, type, view } = await make();
        const names = () => words(view, 'prompt-menu strong');
        const selected = () => [...view.querySelectorAll('prompt-menu [aria-selected=true] strong')].map((one) => one.textContent).join();
        const offered = async (text) => {
            await type(text);
            await until(view, () => view.prompts);
            await settle(view);
            await settle(view.querySelector('prompt-menu'));
            return names().length;
        };
        const out = { offered: [await offered('/'), await offered('/al'), await offered('x/al'), await offered('/al\n'), await offered('/zzz')] };
        out.none = [words(view, 'prompt-menu [role=status]').join(), field.getAttribute('aria-controls'), field.getAttribute('aria-activedescendant'), await key('Enter'), news()];
        await offered('/');
        out.first = [selected(), field.getAttribute('aria-controls'), field.getAttribute('aria-activedescendant')];
        const moved = async (name, more) => [await key(name, more), (await settle(view.querySelector('prompt-menu')), selected()), field.getAttribute('aria-activedescendant')].join();
        out.moved = [await moved('ArrowDown'), await moved('ArrowUp'), await moved('ArrowUp'), await moved('ArrowDown'), await moved('ArrowDown', { shiftKey: true }), await moved('ArrowDown', { isComposing: true }), await moved('x')];
        out.chosen = [await key('Enter'), field.value, field.selectionStart, field.selectionEnd, view.slash, news()];
        field.setRangeText('me', 3, 10, 'end');
        out.next = [await key('Tab', { shiftKey: true }), await key('Tab'), field.value.slice(field.selectionStart, field.selectionEnd)];
        field.setRangeText('you', field.selectionStart, field.selectionEnd, 'end');
        out.last = [await key('Tab'), field.value];
        await offered('/beta');
        out.tab = [await key('Tab'), field.value, field.selectionStart];
        await offered('/');
        out.escape = [await key('Escape'), view.slash, field.value, view.querySelectorAll('prompt-menu').length, field.getAttribute('aria-controls')];
        await offered('/beta');
        view.querySelector('prompt-menu li').click();
        out.clicked = [field.value, field.selectionStart];
        await offered('/a');
        view.restore();
        await settle(view);
        out.restored = [view.slash, view.empty];
        let edits = 0;
        view.addEventListener('edit-prompts', () => (edits += 1));
        await offered('/');
        view.querySelector('prompt-menu .prompt-foot button').click();
        const down = new PointerEvent('pointerdown', { cancelable: true, bubbles: true });
        view.querySelector('prompt-menu li').dispatchEvent(down);
        out.edits = [edits, down.defaultPrevented];
        view.remove();
        return out;
    });
    assert.deepEqual(seen, {
        offered: [8, 1, 0, 0, 0], none: ['No prompt has this name.', 'prompt-list', null, true, ['send /zzz, []']], first: ['Alpha', 'prompt-list', 'prompt-0'],
        moved: ['true,Beta,prompt-1', 'true,Alpha,prompt-0', 'true,Many 5,prompt-7', 'true,Alpha,prompt-0', 'false,Alpha,prompt-0', 'false,Alpha,prompt-0', 'false,Alpha,prompt-0'],
        chosen: [true, 'To {{one}} and {{two}}.', 3, 10, null, []], next: [false, true, '{{two}}'], last: [false, 'To me and you.'], tab: [true, 'No place', 8], escape: [true, null, '/', 0, null],
        clicked: ['No place', 8], restored: [null, true], edits: [1, true],
    });
});

test('the library of prompts: made, changed, deleted and taken back, with the focus where it was; presets for a chat', async () => {
    const seen = await page.evaluate(async () => {
        const { at, settle, show, words } = window.lab;
        await at('js/views/prompts.js');
        localStorage.setItem('parley.prompts', JSON.stringify([{ id: 'a', name: 'Alpha', text: 'one' }, { id: 'b', name: 'Beta', text: 'two' }, { id: 's', name: 'System', text: 'Be brief.', system: true }]));
        const kept = () => JSON.parse(localStorage.getItem('parley.prompts')).map(({ name, text, system }) => [name, text, system ?? false].join());
        const view = await show('prompt-library', {});
        const click = async (selector) => {
            view.querySelector(selector).click();
            await settle(view);
        };
        const active = () => document.activeElement.dataset.edit || document.activeElement.dataset.new || document.activeElement.name || document.activeElement.textContent.trim();
        const fill = async (name, text) => {
            Object.assign(view.querySelector('[name=name]'), { value: name });
            Object.assign(view.querySelector('[name=text]'), { value: text });
            view.querySelector('form').dispatchEvent(new SubmitEvent('submit', { cancelable: true, bubbles: true }));
            await settle(view);
        };
        const out = { groups: [...view.querySelectorAll('section')].map((one) => words(one, 'h3, li strong').join()) };
        await click('[data-edit=b]');
        out.form = [view.querySelector('[name=name]').value, view.querySelector('[name=text]').value, active(), view.querySelectorAll('form').length];
        await fill(' ', 'x');
        out.empty = [kept().length, view.querySelectorAll('form').length];
        await fill('Better', 'changed');
        out.changed = [kept(), active(), view.querySelectorAll('form').length];
        await click('[data-new=system]');
        out.fresh = [view.querySelector('[name=name]').value, view.querySelectorAll('section')[1].querySelectorAll('form').length];
        await fill('New', 'system text');
        out.made = [kept(), active()];
        await click('[data-new=prompt]');
        const escape = new KeyboardEvent('keydown', { key: 'Escape', cancelable: true, bubbles: true });
        view.querySelector('[name=name]').dispatchEvent(escape);
        await settle(view);
        out.escaped = [escape.defaultPrevented, view.querySelectorAll('form').length, active()];
        await click('[data-edit=a]');
        const letter = new KeyboardEvent('keydown', { key: 'a', cancelable: true, bubbles: true });
        view.querySelector('[name=name]').dispatchEvent(letter);
        await settle(view);
        out.letter = [letter.defaultPrevented, view.querySelectorAll('form').length];
        await click('.editor-buttons .plain');
        out.cancelled = [view.querySelectorAll('form').length, active(), kept().length];
        await click('[aria-label="Delete Better"]');
        out.deleted = [words(view, '[role=status]').join(), kept().length, active()];
        await click('[role=status] button');
        out.back = [kept(), active(), words(view, '[role=status]').join()];
        localStorage.setItem('parley.prompts', '[]');
        dispatchEvent(new Event('storage'));
        await settle(view);
        out.elsewhere = words(view, 'li strong').length;
        view.remove();

        const chosen = [];
        const presets = await show('prompt-presets', { text: 'Be brief.', choose: (text) => chosen.push(text) });
        out.none = words(presets, 'p, button span');
        localStorage.setItem('parley.prompts', JSON.stringify([{ id: 's', name: 'System', text: 'Be brief.', system: true }, { id: 't', name: 'Teacher', text: 'Teach.', system: true }, { id: 'a', name: 'Alpha', text: 'x' }]));
        presets.requestUpdate();
        await settle(presets);
        out.some = [words(presets, 'button span'), [...presets.querySelectorAll('button')].map((one) => one.getAttribute('aria-pressed')).join()];
        presets.querySelectorAll('button')[1].click();
        presets.text = 'One two three four five';
        await settle(presets);
        out.own = words(presets, 'button span');
        presets.querySelectorAll('button')[2].click();
        out.keptOne = [chosen, kept().at(-1)];
        presets.remove();
        return out;
    });
    assert.deepEqual(seen, {
        groups: ['Prompts,Alpha,Beta', 'System prompts,System'], form: ['Beta', 'two', 'name', 1], empty: [3, 1], changed: [['Alpha,one,false', 'Better,changed,false', 'System,Be brief.,true'], 'b', 0],
        fresh: ['', 1], made: [['Alpha,one,false', 'Better,changed,false', 'System,Be brief.,true', 'New,system text,true'], 'system'], escaped: [true, 0, 'prompt'], letter: [false, 1], cancelled: [0, 'a', 4],
        deleted: ['“Better” deleted. Undo', 3, 'Undo'], back: [['Alpha,one,false', 'Better,changed,false', 'System,Be brief.,true', 'New,system text,true'], 'b', ''], elsewhere: 0,
        none: ['There are none yet.', 'Keep this one', 'Edit'], some: [['System', 'Teacher', 'Edit'], 'true,false,'], own: ['System', 'Teacher', 'Keep this one', 'Edit'], keptOne: [['Teach.'], 'One two three four,One two three four five,true'],
    });
});

test('what a device, a chat with tools and a draft change of the field', async () => {
    const seen = await page.evaluate(async () => {
        const { field: make, settle, words } = window.lab;
        const labels = (view) => [...view.querySelectorAll('.composer-row button, .composer-row input')].filter((one) => !one.closest('[popover]')).map((one) => one.ariaLabel ?? one.textContent.trim());
        const { matchMedia } = window;
        const out = {};
        window.matchMedia = (query) => ({ matches: query === '(pointer: coarse)' });
        const touch = await make();
        await touch.type('x');
        out.touch = [touch.field.getAttribute('enterkeyhint'), labels(touch.view).includes('Take a photo'), await touch.key('Enter'), await touch.key('Enter', { ctrlKey: true }), touch.news()];
        touch.view.model = { ...touch.view.model, vision: false };
        await settle(touch.view);
        out.blind = labels(touch.view).includes('Take a photo');
        touch.view.remove();
        window.matchMedia = matchMedia;
        const tooled = await make({ options: { tools: { files: {} } } });
        out.tools = [labels(tooled.view).includes('Add from a server'), tooled.view.querySelector('button[aria-label=Tools]').classList.contains('on'), tooled.field.getAttribute('enterkeyhint')];
        tooled.view.remove();
        const plain = await make({ model: { video: true, rates: { fps: 2, min_frames: 4, max_frames: 64, patch_size: 16, merge_size: 2, temporal_patch_size: 2, min_pixels: 4096, max_pixels: 1 << 20 } } });
        out.plain = [labels(plain.view).includes('Add from a server'), plain.view.querySelector('button[aria-label=Tools]').classList.contains('on')];
        plain.chat.news();
        const file = { id: 'f', kind: 'text', name: 'n.txt', bytes: 1, blob: new Blob(['x']) };
        plain.view.refused = ['old'];
        plain.view.restore({ text: 'half', attachments: [file] });
        await settle(plain.view);
        out.draft = [plain.field.value, plain.view.empty, plain.view.refused, words(plain.view, '.tray .thumb').length];
        const video = { id: 'v', kind: 'video', name: 'v.mp4', bytes: 1, blob: new Blob(['x']), seconds: 61 };
        plain.view.attachments = [video, { ...video, id: 'w', name: 'w.mp4', seconds: undefined, blob: new Blob(['y']) }];
        await settle(plain.view);
        plain.chat.news();
        out.videos = [plain.view.querySelectorAll('video-strip').length, words(plain.view, '.thumb .video'), plain.view.querySelector('.thumb video').preload];
        plain.view.querySelector('video-strip').dispatchEvent(new Event('video-chosen'));
        out.chosen = plain.chat.news();
        let asked = null;
        plain.view.addEventListener('show-image', ({ detail }) => (asked = detail.items.map(({ name }) => name)));
        plain.view.attachments = [video, { id: 'i', kind: 'image', name: 'i.png', width: 3, height: 4, bytes: 2048, blob: new Blob(['z']) }];
        await settle(plain.view);
        plain.view.querySelector('.thumb .open').click();
        out.shown = [asked, plain.view.querySelectorAll('.thumb')[1].title];
        plain.view.remove();
        return out;
    });
    assert.deepEqual(seen, {
        touch: ['enter', true, false, true, ['send x, []']], blind: false, tools: [true, true, 'send'], plain: [false, false], draft: ['half', false, [], 1],
        videos: [1, ['1 min 1 s', 'video'], 'metadata'], chosen: ['keepDraft half, ["v.mp4","w.mp4"]'], shown: [['i.png'], 'i.png · 3 × 4, 2.0 KiB'],
    });
});
