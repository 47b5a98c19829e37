/** Links to a chat, settings, the empty state and tools, with a chat that is made up: what they show, and what their buttons do.
 * One page for all of them. */
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { openLab } from './lab.mjs';

let lab, page;
before(async () => {
    lab = await openLab();
    ({ page } = lab);
});
after(() => lab.close());

test('links to a chat: made, copied and taken back, and what goes wrong with it', async () => {
    const seen = await page.evaluate(async () => {
        const { at, chatOf, press, settle, show, until, words } = window.lab;
        await at('js/views/share.js');
        const asked = [];
        const day = 86_400_000;
        let answer = () => [{ data: [{ token: 't1', chat: 'c1', created: 0, expires: 7 * day }, { token: 't9', chat: 'other', created: 0, expires: null }] }, 200];
        const connection = {
            key: '',
            async fetch(path, { method, body, headers } = {}) {
                asked.push([method, path, body ?? '', headers?.['Content-Type'] ?? ''].join(' '));
                const [given, status] = answer();
                return new Response(JSON.stringify(given), { status });
            },
        };
        const chat = chatOf([{ id: 'm1', role: 'user', text: 'Q' }], { connection });
        const view = await show('share-links', { chat, conversation: chat.current });
        await until(view, () => !view.busy);
        const links = () => [...view.querySelectorAll('li')].map((one) => `${one.querySelector('input').value.replace(/.*\//, '')} ${one.querySelector('small').textContent.replace(/on [^,]+(?=[,.])/g, 'on D')}`);
        const out = { className: view.className, first: [links(), words(view, '.note').length, words(view, 'option'), view.querySelector('select').value, asked.splice(0)] };
        const make = async (days, reply, status = 200) => {
            answer = () => [reply, status];
            view.querySelector('select').value = days;
            view.querySelector('form').requestSubmit();
            const busy = view.busy;
            await until(view, () => !view.busy);
            await settle(view);
            return [busy, links(), asked.splice(0), words(view, '[role=alert]').join(), chat.news()];
        };
        out.made = await make('7', { token: 't2', created: day, expires: null });
        out.selected = document.activeElement === view.querySelector('input') || view.querySelector('input').selectionEnd > 10;
        out.endless = await make('0', { token: 't3', created: day, expires: null });
        out.refused = await make('1', { error: { message: 'Too many links.' } }, 409);
        answer = () => { throw new TypeError('network'); };
        await press(view, 'Take back');
        await until(view, () => !view.busy);
        await settle(view);
        out.away = [links().length, words(view, '[role=alert]').join(), asked.splice(0), document.activeElement.textContent.trim() === 'Make a link'];
        answer = () => [{}, 200];
        await press(view, 'Take back');
        await until(view, () => !view.busy);
        await settle(view);
        out.back = [links(), asked.splice(0), words(view, '[role=alert]').join(), document.activeElement.textContent.trim()];
        const { clipboard } = navigator;
        let copied;
        Object.defineProperty(navigator, 'clipboard', { configurable: true, value: { writeText: async (text) => void (copied = text) } });
        await press(view.querySelectorAll('li')[1], 'Copy');
        await settle(view);
        Object.defineProperty(navigator, 'clipboard', { configurable: true, value: clipboard });
        out.copied = [copied.replace(/.*\//, ''), words(view, 'li .plain').join('|')];
        connection.key = 'k';
        view.requestUpdate();
        await settle(view);
        out.withKey = words(view, '.note').length;
        view.remove();
        return out;
    });
    assert.deepEqual(seen, {
        className: 'share-links',
        first: [['shared.html#t1 Made on D, ends on D.'], 2, ['After a day', 'After a week', 'After 30 days', 'Never'], '30', ['GET v1/history/shares  ']],
        made: [true, ['shared.html#t2 Made on D, has no end.', 'shared.html#t1 Made on D, ends on D.'], ['POST v1/history/shares {"chat":"c1","head":"m1","expires_in":604800} application/json'], '', ['saved']],
        selected: true,
        endless: [true, ['shared.html#t3 Made on D, has no end.', 'shared.html#t2 Made on D, has no end.', 'shared.html#t1 Made on D, ends on D.'], ['POST v1/history/shares {"chat":"c1","head":"m1","expires_in":null} application/json'], '', ['saved']],
        refused: [true, ['shared.html#t3 Made on D, has no end.', 'shared.html#t2 Made on D, has no end.', 'shared.html#t1 Made on D, ends on D.'], ['POST v1/history/shares {"chat":"c1","head":"m1","expires_in":86400} application/json'], 'Too many links.', ['saved']],
        away: [3, 'The server cannot be reached. Try again when it is back.', ['DELETE v1/history/shares/t3  '], false],
        back: [['shared.html#t2 Made on D, has no end.', 'shared.html#t1 Made on D, ends on D.'], ['DELETE v1/history/shares/t3  '], '', 'Make a link'],
        copied: ['shared.html#t1', 'Copy|Copied'],
        withKey: 1,
    });
});

test('a chat behind a link: its messages and files, or why there is none', async () => {
    const seen = await page.evaluate(async () => {
        const { at, press, settle, show, until, words } = window.lab;
        await at('js/views/shared-page.js');
        const { fetch } = window;
        const asked = [];
        let answer;
        window.fetch = async (url, init) => {
            if (!/v1\/shared/.test(url)) return fetch(url, init);
            asked.push(`${url.replace(/.*v1\//, '')} ${init?.cache ?? ''}`);
            const [body, status] = answer(url);
            return new Response(body instanceof Blob ? body : JSON.stringify(body), { status });
        };
        const png = await new Promise((resolve) => Object.assign(document.createElement('canvas'), { width: 4, height: 2 }).toBlob(resolve));
        const file = (id, more) => ({ id, kind: 'image', name: `${id}.png`, mime: 'image/png', width: 4, height: 2, bytes: 9, sha256: id, ...more });
        const full = { title: '', created: 0, expires: null, messages: [
            { id: 'a', role: 'user', text: 'Q', attachments: [file('one'), file('gone'), file('none', { sha256: '' }), file('bad'), file('text', { kind: 'text', mime: 'text/plain', bytes: 2048 }), file('two')] },
            { id: 'b', role: 'assistant', text: '**A**', model: 'Small' }, { id: 'c', role: 'assistant', text: 'Second' }, { id: 'd', role: 'user', text: 'hidden', erased: true }, { id: 'e', role: 'user', text: '', attachments: [] },
        ] };
        const states = { one: [png, 200], two: [png, 200], gone: [{}, 404], bad: [new Blob(['x']), 200], text: [new Blob(['hello']), 200] };
        answer = (url) => (/files/.test(url) ? states[url.replace(/.*\//, '')] : [full, 200]);
        const title = document.title;
        const view = await show('shared-chat', {});
        await until(view, () => view.querySelectorAll('.missing').length === 3 && view.querySelectorAll('img').length === 2);
        const out = { head: [words(view, 'h1').join(), /The link ends/.test(words(view, '.shared-head')[0]), document.title], articles: words(view, 'article'), asked: asked.splice(0).sort(), images: [...view.querySelectorAll('img')].map((one) => `${one.alt} ${one.getAttribute('width')} ${one.getAttribute('height')}`) };
        document.title = title;
        await press(view, 'Show two.png large');
        await until(view, () => document.querySelector('dialog#image[open]'));
        out.viewing = [view.viewing.items.map(({ name }) => name).filter((name) => name !== 'bad.png'), view.viewing.items[view.viewing.at].name];
        document.querySelector('dialog#image').close();
        await press(view, 'Open text.png');
        await until(view, () => document.querySelector('dialog#image[open]'));
        out.text = [view.viewing.items.map(({ name }) => name), view.viewing.at];
        document.querySelector('dialog#image').close();
        const reload = async (body, status) => {
            answer = () => (status ? [body, status] : (() => { throw new TypeError('network'); })());
            view.trouble = '';
            dispatchEvent(new Event('hashchange'));
            await until(view, () => view.trouble);
            await settle(view);
            return [words(view, '[role=alert]').join().slice(0, 40), words(view, 'button').join()];
        };
        out.troubles = [await reload({}, 404), await reload({}, 400), await reload({ error: { message: 'Busy.' } }, 503), await reload(null, 0)];
        answer = () => [{ title: 'Named', created: 0, expires: 86_400_000, messages: [] }, 200];
        await press(view, 'Try again');
        await until(view, () => view.chat);
        await settle(view);
        out.again = [words(view, 'h1').join(), /The link ends/.test(words(view, '.shared-head')[0]), document.title];
        document.title = title;
        window.fetch = fetch;
        view.remove();
        return out;
    });
    assert.deepEqual(seen, {
        head: ['Chat', false, 'Chat · Parley'],
        articles: ['Question gone.png is no longer keptnone.png is no longer keptbad.png is no longer kept text.png2.0 KiB Q', 'Small A', 'Answer Second', 'Question'],
        asked: ['shared/ no-store', 'shared//files/bad ', 'shared//files/gone ', 'shared//files/one ', 'shared//files/text ', 'shared//files/two '],
        images: ['one.png 4 2', 'two.png 4 2'],
        viewing: [['one.png', 'two.png'], 'two.png'],
        text: [['text.png'], 0],
        troubles: [['There is no such link: it was taken back', ''], ['There is no such link: it was taken back', ''], ['Busy.', 'Try again'], ['The server cannot be reached. Try again ', 'Try again']],
        again: ['Named', true, 'Named · Parley'],
    });
});

test('settings: what a chat has of its own, what new ones have, and what this browser has', async () => {
    const seen = await page.evaluate(async () => {
        const { at, chatOf, press, settle, until, words } = window.lab;
        const { ownOptions, settingsDialog } = await at('js/views/settings-dialog.js');
        const { render } = await at('vendor/lit.js');
        const values = new Map(Object.entries({ newChat: {}, theme: 'dark', textSize: 'normal', enterSends: true, follow: true, notify: false, imageSize: 1 << 20, videoRate: 0, apiKey: 'k1', language: '' }));
        const changes = [];
        const settings = { get: (name) => values.get(name), set: (name, value) => (values.set(name, value), changes.push(`${name} ${value}`)) };
        const connection = { state: 'open', key: 'k1' };
        const chat = chatOf([], { settings, connection });
        const calls = [];
        const actions = Object.fromEntries(['onPart', 'onMarkdown', 'onKey', 'onExport', 'onImport', 'onIntroduction', 'onPrompts', 'onPresets', 'onRemoveAll'].map((name) => [name, (one) => calls.push(typeof one === 'string' ? `${name} ${one}` : name)]));
        const box = document.createElement('div');
        document.body.append(box);
        const draw = async (part, defaults = null, more = actions) => {
            render(settingsDialog(chat, defaults, part, more), box);
            box.querySelector('dialog').open = true;
            await settle();
        };
        const out = { own: ownOptions({ temperature: 0.2, model: 'm', systemPrompt: 'x', beside: 'b', seed: 3 }), none: ownOptions() };
        const holders = () => Object.fromEntries([...box.querySelectorAll('input[type=number]')].map((one) => [one.previousElementSibling.textContent, `${one.placeholder} ${one.min} ${one.max} ${one.step}`]));
        await draw('chat', { temperature: 0.70000001, max_tokens: 2_000_000_000, top_p: -1, top_k: 20, min_p: 0 });
        out.holders = holders();
        out.tabs = [...box.querySelectorAll('[role=tab]')].map((one) => `${one.textContent} ${one.ariaSelected} ${one.tabIndex}`);
        out.closed = [box.querySelector('details').open, [...box.querySelectorAll('.dialog-body > .row button')].map((one) => `${one.textContent.trim()}${one.disabled ? ' -' : ''}`)];
        const set = (label, value) => {
            const field = [...box.querySelectorAll('.field')].find((one) => one.querySelector('span').textContent === label);
            const input = field.querySelector('input, textarea');
            input.value = value;
            input.dispatchEvent(new Event('change'));
            return [input.value, input.ariaInvalid, field.querySelector('[role=status]')?.textContent.slice(0, 16) ?? '', chat.news().join()].join('; ');
        };
        out.set = [set('Temperature', '0.5'), set('Temperature', '99'), set('Temperature', '-1'), set('Temperature', 'x'), set('Temperature', ''), set('Max tokens', '7.6'), set('Top p', '0.25'), set('System prompt', ' Be. '), set('Stop sequences', 'a'), set('Stop sequences', ' '), set('JSON schema', '{'), set('JSON schema', '{}')];
        chat.current.options = { seed: 3, systemPrompt: 'S' };
        await draw('chat', { temperature: 0 }, { ...actions, onMarkdown: null });
        out.opened = [box.querySelector('details').open, box.querySelector('textarea').value, [...box.querySelectorAll('.dialog-body > .row button')].map((one) => `${one.textContent.trim()}${one.disabled ? ' -' : ''}`), holders().Temperature];
        await press(box, 'New chats begin like this one');
        out.kept = chat.news();
        values.set('newChat', { seed: 3, systemPrompt: 'S' });
        await draw('chat');
        out.same = [...box.querySelectorAll('.dialog-body > .row button')].map((one) => one.disabled);
        const key = (name) => {
            const event = new KeyboardEvent('keydown', { key: name, bubbles: true });
            box.querySelector('[role=tablist]').dispatchEvent(event);
            return [calls.splice(0).join(), document.activeElement.textContent.trim()].join(' ');
        };
        out.keys = [key('ArrowRight'), key('ArrowLeft'), key('x')];
        await draw('browser');
        out.wrapped = [key('ArrowRight'), key('ArrowLeft')];
        box.querySelectorAll('[role=tab]')[1].click();
        out.clicked = calls.splice(0);
        await draw('new');
        out.new = [set('Seed', '4'), box.querySelector('.note').textContent.slice(0, 10), [...box.querySelectorAll('[role=tab]')].map((one) => one.ariaSelected).join()];
        await draw('browser');
        const chosen = () => [...box.querySelectorAll('input[type=radio]:checked')].map((one) => one.parentElement.textContent.trim()).join();
        out.chosen = [chosen(), box.querySelector('#storage').textContent];
        for (const label of ['Light', 'Small', 'New line', 'Stay', '4 MP', '2']) [...box.querySelectorAll('.segments label')].find((one) => one.textContent.trim() === label).querySelector('input').click();
        out.changes = changes.splice(0);
        for (const label of ['Export all', 'Prompts', 'Show the introduction', 'Delete all']) await press(box, label);
        const field = box.querySelector('#api-key');
        field.value = ' k2 ';
        field.dispatchEvent(new Event('change'));
        box.querySelector('input[type=file]').dispatchEvent(new Event('change'));
        out.calls = calls.splice(0);
        const key2 = () => [field.getAttribute('aria-invalid'), words(box, '#api-key-state').join(), box.querySelector('#api-key-state').className].join('; ');
        out.key = [key2()];
        Object.assign(connection, { state: 'unauthorised' });
        Object.assign(chat, { list: [], stored: { used: 1024, most: 4096 }, history: { remote: true } });
        await draw('browser');
        out.key.push(key2());
        connection.key = '';
        await draw('browser');
        out.key.push(key2());
        out.storage = [box.querySelector('#storage').textContent];
        out.disabled = [...box.querySelectorAll('button:disabled')].map((one) => one.textContent.trim());
        chat.stored = null;
        await draw('browser');
        out.storage.push(box.querySelector('#storage').textContent);
        box.remove();
        return out;
    });
    assert.deepEqual(seen, {
        own: ['Temperature 0.2', 'Model m', 'System prompt', 'Beside b', 'Seed 3'],
        none: [],
        holders: { Temperature: '0.7 (model) 0 2 0.1', 'Max tokens': "model's own 1 1048576 1", 'Top p': "model's own 0 1 0.05", 'Top k': '20 (model) 0 100000 1', 'Min p': '0 (model) 0 1 0.01', 'Repetition penalty': "model's own 0.01 2 0.05", 'Presence penalty': "model's own -2 2 0.1", 'Frequency penalty': "model's own -2 2 0.1", Seed: 'random 0 4294967295 1' },
        tabs: ['This chat true 0', 'New chats false -1', 'This browser false -1'],
        closed: [false, ['Presets', 'New chats begin like this one -', 'This one as Markdown']],
        set: ['0.5; ; ; setOption temperature, 0.5', '2; ; ; setOption temperature, 2', '0; ; ; setOption temperature, 0', '; ; ; setOption temperature,', '; ; ; setOption temperature,', '8; ; ; setOption maxTokens, 8', '0.25; ; ; setOption topP, 0.25', ' Be. ; ; ; setOption systemPrompt, Be.', 'a; false; ; setOption stop, a', ' ; false; ; setOption stop,', '{; true; This is not JSON; ', '{}; false; ; setOption schema, {}'],
        opened: [true, 'S', ['Presets', 'New chats begin like this one'], '0 (model) 0 2 0.1'],
        kept: ['keepOptions'],
        same: [false, true, false],
        keys: ['onPart new New chats', 'onPart browser This browser', ' This browser'],
        wrapped: ['onPart chat This chat', 'onPart new New chats'],
        clicked: ['onPart new'],
        new: ['4; ; ; setNewOption seed, 4', 'What chats', 'false,true,false'],
        chosen: ['Dark,Normal,Sends,Scroll along,Mark the title,1 MP,Auto', '1 chat. This page keeps 2.0 KiB in this browser.'],
        changes: ['theme light', 'textSize small', 'enterSends false', 'follow false', 'imageSize 4194304', 'videoRate 2'],
        calls: ['onExport', 'onPrompts', 'onIntroduction', 'onRemoveAll', 'onKey k2', 'onImport'],
        key: ['; ; note ', 'true; The server does not accept this API key.; note bad', '; ; note '],
        storage: ['0 chats. The server keeps 1.0 KiB of at most 4.0 KiB.', '0 chats.'],
        disabled: ['Delete all'],
    });
});

test('the empty state: what a model can, samples that fit it, and what is sent of them', async () => {
    const seen = await page.evaluate(async () => {
        const { at, chatOf, press, settle, show, until, words } = window.lab;
        const { abilities } = await at('js/views/welcome.js');
        const counts = (model) => Object.values(abilities(model)).map((list) => list.length).join();
        const out = {
            can: [{ name: 'Seedling' }, { name: 'x seedling' }, { name: 'x', vision: true }, { name: 'x', vision: true, video: true }, { name: 'x', video: true }, { name: 'x', vision: true, thinking: true, context: 1000 }].map(counts),
            words: abilities({ name: 'x', context: 32_768 }).can.at(-1), cannot: [abilities({ name: 'x' }).cannot[0], abilities({ name: 'x', vision: true }).cannot[0]],
        };
        const { fetch } = window;
        const samples = [{ files: ['a.png'], question: 'Image' }, { files: ['v.mp4'], poster: 'p.png', question: 'Video', title: 'T' }, { files: [], question: 'Sum', thinking: true }, { files: [], question: 'Text' }, { files: [], question: 7 }, { question: 'No files' }, { files: [], question: 'More' }];
        let broken = false;
        window.fetch = async (url, init) => {
            const path = String(url).replace(/.*samples\//, '');
            if (path === 'samples.json') return new Response(JSON.stringify(samples));
            return /samples/.test(String(url)) ? new Response('x', { status: broken ? 500 : 200, headers: { 'Content-Type': 'image/png' } }) : fetch(url, init);
        };
        const told = [];
        const chat = chatOf([], { settings: { set: (name, value) => told.push(`${name} ${value}`) } });
        const view = await show('chat-welcome', { chat, model: { name: 'M', vision: true, video: true } });
        await until(view, () => view.samples.length);
        const shown = async (model) => {
            view.model = model;
            await settle(view);
            return [words(view, 'h2').join(), words(view, '.welcome > p').join(), words(view, '.sample'), view.querySelectorAll('.sample-play').length, [...view.querySelectorAll('.sample img')].map((one) => one.getAttribute('src')).join()];
        };
        out.shown = [await shown({ name: 'M', vision: true, video: true }), await shown({ name: 'M', vision: true }), await shown({ name: 'M' })];
        view.model = { name: 'M', vision: true, video: true };
        await settle(view);
        for (const type of ['send-sample', 'notice']) view.addEventListener(type, ({ detail }) => told.push(`${type} ${detail.text} ${detail.files?.map(({ name, type }) => name + type) ?? ''} ${detail.thinking ?? ''}`));
        const choose = async (i) => {
            view.querySelectorAll('.sample')[i].click();
            await until(view, () => told.length);
            return told.splice(0);
        };
        out.sent = [await choose(0), await choose(2)];
        broken = true;
        out.broken = await choose(1);
        const open = async (isOpen) => {
            view.querySelector('details').open = isOpen;
            await new Promise((resolve) => view.querySelector('details').addEventListener('toggle', resolve, { once: true }));
            return told.splice(0);
        };
        out.opened = await open(true);
        view.open = true;
        await settle(view);
        out.closed = await open(false);
        await press(view, 'Got it');
        out.gotIt = told.splice(0);
        window.fetch = fetch;
        view.remove();
        return out;
    });
    assert.deepEqual(seen, {
        can: ['3,2', '1,3', '2,3', '3,2', '2,3', '4,3'],
        words: 'Keep 32 768 tokens in mind: about 22 900 words.',
        cannot: ['See images or videos.', 'Watch videos.'],
        shown: [['Show me something', 'Drop an image anywhere, paste one, or just ask. What you send goes to this server alone.', ['Image', 'T Video', 'Sum'], 1, 'samples/a.png,samples/p.png'], ['Show me something', 'Drop an image anywhere, paste one, or just ask. What you send goes to this server alone.', ['Image', 'Sum', 'Text'], 0, 'samples/a.png'], ['Ask me something', 'Write a question below. What you send goes to this server alone.', ['Sum', 'Text', 'More'], 0, '']],
        sent: [['send-sample Image a.pngimage/png '], ['send-sample Sum  true']],
        broken: ['notice The sample image could not be loaded.  '],
        opened: ['introduction true'],
        closed: ['introduction false'],
        gotIt: ['introduction false'],
    });
});

test('the tools of a chat: servers and tools on and off, unasked, and a server that is tried again', async () => {
    const seen = await page.evaluate(async () => {
        const { at, chatOf, press, settle, show, until, words } = window.lab;
        await at('js/views/tools-menu.js');
        const tool = (name, more) => ({ name, title: '', description: '', read_only: false, approval: 'always', ...more });
        const servers = [
            { server_label: 'files', state: 'ready', error: null, tools_left_out: 1, tools: [tool('read', { title: 'Read it', description: 'D', read_only: true }), tool('write', { approval: 'first' }), tool('sum', { approval: 'never' })] },
            { server_label: 'far', state: 'down', error: 'No route.', tools_left_out: 0, tools: [] },
            { server_label: 'new', state: 'connecting', error: 'not yet', tools_left_out: 0, tools: [] },
            { server_label: 'shut', state: 'off', error: null, tools_left_out: 0, tools: [tool('one')] },
        ];
        const asked = [];
        let fails = false;
        const chat = chatOf([], { connection: { fetch: async (path, init = {}) => (asked.push([init.method ?? 'GET', path].join(' ')), new Response(JSON.stringify({ data: servers }), { status: fails ? 500 : 200 })) } });
        const chosen = [];
        const due = []; // what would be done a second later
        const { setTimeout: real } = window;
        window.setTimeout = (fn, ms) => (ms === 1_000 ? due.push(fn) : real(fn, ms));
        const view = await show('tool-choice', { chat, choice: undefined, choose: (choice) => chosen.push(JSON.stringify(choice) ?? 'none') });
        await until(view, () => view.servers);
        const boxes = () => [...view.querySelectorAll('input')].map((one) => (one.disabled ? '-' : one.checked ? 'x' : 'o')).join('');
        const out = { lines: words(view, '.tool-line'), boxes: boxes(), bad: words(view, '.bad').join(), details: view.querySelectorAll('details').length };
        const again = async () => {
            const before = view.servers;
            due.shift()();
            await until(view, () => view.servers !== before || view.problem);
            await settle(view);
            return [asked.splice(0).join(), due.length];
        };
        asked.length = 0;
        out.again = [due.length, await again()]; // one is being connected: it is asked for again
        servers[2].state = 'ready';
        out.again.push(await again());
        const click = async (i) => {
            view.querySelectorAll('input')[i].click();
            await settle(view);
            return [boxes(), ...chosen.splice(0)].join(' ');
        };
        out.on = [await click(0), await click(1), await click(3)];
        const having = async (choice) => {
            view.choice = choice;
            await settle(view);
            return [boxes(), words(view, '.tool-server:first-of-type > .tool-line small').join(), words(view, '.tool-server:first-of-type .tool-one:first-of-type small').at(-1)];
        };
        out.all = await having({ files: {} });
        out.turned = [await click(1), await click(2), await click(0)];
        out.some = await having({ files: { only: ['read'], always: ['read', 'write'] }, other: {} });
        out.more = [await click(1), await click(2), await click(3), await click(4)];
        out.two = await having({ files: { only: ['read', 'write'] } });
        out.third = await click(5);
        out.none = await having({ far: {} });
        view.choice = undefined;
        await press(view, 'Try again');
        out.retried = [asked.splice(0), words(view, '.tool-server.connecting').length];
        fails = true;
        out.problem = [await again(), words(view, '[role=status]').join().slice(0, 30)];
        window.setTimeout = real;
        asked.length = 0;
        view.remove();
        fails = false;
        const menu = await show('tools-menu', { chat });
        await until(view, () => menu.querySelector('tool-choice')?.servers);
        menu.querySelector('input').click();
        out.menu = chat.news();
        chat.current = { ...chat.current, options: { tools: { files: {} } } };
        chat.dispatchEvent(new Event('options'));
        await settle(menu);
        await settle(menu.querySelector('tool-choice'));
        out.heard = menu.querySelector('input').checked;
        chat.current = { ...chat.current, options: {} };
        chat.dispatchEvent(new Event('conversation'));
        await settle(menu);
        await settle(menu.querySelector('tool-choice'));
        out.changed = menu.querySelector('input').checked;
        menu.remove();
        return out;
    });
    assert.deepEqual(seen, {
        lines: ['files3 tools · 1 that cannot be used', 'Read itD says it only reads · asks before it runs', 'write asks the first time', 'sum runs without asking', 'farcannot be used', 'newis being connected', 'shutturned off by the server', 'one asks before it runs'],
        boxes: 'oooo---o',
        bad: 'No route.Try again',
        details: 2,
        again: [1, ['GET v1/mcp', 1], ['GET v1/mcp', 0]],
        on: ['xooo-o-o {"files":{}}', 'xxoo-o-o {"files":{"only":["read"]}}', 'xxox-o-o {"files":{"only":["sum"]}}'],
        all: ['xxoxox-o-o', '3 tools · 1 that cannot be used', 'says it only reads · asks before it runs'],
        turned: ['xooxox-o-o {"files":{"only":["write","sum"]}}', 'xoxxox-o-o {"files":{"always":["read"]}}', 'ooxxox-o-o none'],
        some: ['xxxoo-o-o', '1 of 3 tools · 1 that cannot be used', 'says it only reads · runs without asking in this chat'],
        more: ['xoxoo-o-o {"other":{}}', 'xoooo-o-o {"other":{},"files":{"only":["read"],"always":["write"]}}', 'xooxo-o-o {"other":{},"files":{"only":["read","write"],"always":["read","write"]}}', 'xooxx-o-o {"other":{},"files":{"only":["read","sum"],"always":["read","write"]}}'],
        two: ['xxoxoo-o-o', '2 of 3 tools · 1 that cannot be used', 'says it only reads · asks before it runs'],
        third: 'xxoxox-o-o {"files":{}}',
        none: ['ooooxo-o', '3 tools · 1 that cannot be used', 'says it only reads · asks before it runs'],
        retried: [['POST v1/mcp/far/retry'], 1],
        problem: [['GET v1/mcp', 1], 'The server cannot be reached f'],
        menu: ['setOption tools, {"files":{}}'],
        heard: true,
        changed: false,
    });
});
