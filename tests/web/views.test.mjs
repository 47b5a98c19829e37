/** The page's elements one by one, each with a chat and a server that are made up: what they show, and what their buttons do.
 * One page for all of them. */
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { keepLong, openChat } from './helpers.mjs';
import { openLab } from './lab.mjs';

let lab, page;
before(async () => {
    lab = await openLab();
    ({ page } = lab);
});
after(() => lab.close());

test('a call of a tool: its state in words, its arguments, and what came of it', async () => {
    const seen = await page.evaluate(async () => {
        const { at, show, words } = window.lab;
        await at('js/views/tool-view.js');
        const shown = async (tool, status = 'done', more = {}) => {
            const view = await show('tool-call', { chat: {}, message: { status, attachments: [], ...more }, tool: { id: '1', name: 'get_the-weather', arguments: '{}', ...tool } });
            const text = (selector) => words(view, selector).join('|');
            const state = { state: text('.tool-state'), open: view.querySelector('details').open, raw: text('.raw'), given: text('dt, dd'), long: text('.long dt'), buttons: text('.tool-buttons button'), disabled: view.querySelectorAll('.tool-buttons button:disabled').length, progress: view.querySelector('progress')?.value ?? null, code: view.querySelector('code-block')?.code ?? null, language: view.querySelector('code-block')?.language ?? null, note: text('.note'), failed: !!view.querySelector('details.failed'), name: text('summary span:first-of-type'), alert: text('[role=alert]') };
            view.remove();
            return state;
        };
        const serverCall = { server: 'files', callId: undefined };
        return {
            done: await shown({ output: '{"a":1}', ms: 1500, ...serverCall }),
            failed: await shown({ output: 'no', failed: true, ...serverCall }),
            text: await shown({ output: '7' }),
            asked: await shown({ ...serverCall, approvalId: '1', arguments: '{"path_name":"a\\u202eb","n":7}' }),
            early: await shown({ ...serverCall, approvalId: '1' }, 'streaming'),
            refused: await shown({ ...serverCall, allowed: false }),
            works: await shown({ ...serverCall, progress: 0.5, note: 'half', begun: Date.now() - 65_000 }, 'streaming'),
            stopped: await shown(serverCall, 'stopped'),
            own: await shown({}, 'streaming'),
            orphan: await shown({}),
            broken: await shown({ arguments: '{"a', output: 'x' }),
            list: await shown({ arguments: '[1]', output: 'x' }),
            edge: await shown({ arguments: JSON.stringify({ a: 'x'.repeat(60), b: 'x'.repeat(61) }), output: 'x' }),
        };
    });
    assert.deepEqual([seen.done.state, seen.done.open, seen.done.code, seen.done.language, seen.done.name], ['done · 1.5 s', false, '{\n  "a": 1\n}', 'json', 'get the weather files']);
    assert.deepEqual([seen.failed.state, seen.failed.failed, seen.failed.buttons, seen.done.buttons], ['failed', true, 'Try this call again', '']);
    assert.deepEqual([seen.text.code, seen.text.language], ['7', '']);
    assert.deepEqual([seen.asked.state, seen.asked.open, seen.asked.given, seen.asked.buttons, seen.asked.disabled], ['asks first', true, 'path name|a\\u202eb|n|7', 'Allow once|Always in this chat|Refuse', 0]);
    assert.match(seen.asked.alert, /wants to call get_the-weather of files/);
    assert.deepEqual([seen.early.alert, seen.early.open, seen.early.buttons], ['', false, '']);
    assert.deepEqual([seen.refused.state, seen.stopped.state, seen.own.state, seen.orphan.state], ['refused', 'stopped', 'at work', 'asked for']);
    assert.deepEqual([seen.works.state, seen.works.progress, seen.own.progress, seen.works.open], ['at work · 1 min 5 s', 0.5, null, false]);
    assert.deepEqual([seen.orphan.open, /No tool of this server/.test(seen.orphan.note), seen.stopped.note, seen.own.note], [true, true, '', '']);
    assert.deepEqual([seen.broken.raw, seen.list.raw, seen.done.raw], ['{"a', '[1]', '']);
    assert.equal(seen.edge.long, 'b');
});

test('the server’s state: rates, facts, requests, and what is wrong', async () => {
    const seen = await page.evaluate(async () => {
        const { at, settle, show, words, wire } = window.lab;
        const { rateBetween } = await at('js/views/server-status.js');
        const status = (uptime_s, more = {}) => ({
            state: 'ready', uptime_s, version: '9', model: { compute: 'avx2' }, queue: { running: 1, waiting: 2, slots: 4 }, running: [], waiting: [],
            totals: { requests: 1, generated_tokens: 10, prompt_tokens: 20, predicted_per_second: 0, prompt_per_second: 0, vision_encodes: 0 },
            cache: { queries: 0 }, mtp: { drafted: 0 }, memory: { rss_bytes: 1024, weight_bytes: 2048 }, ...more,
        });
        const rates = [
            rateBetween(status(3), status(1)), rateBetween({ ...status(3), running: [{ tokens: 4 }, { tokens: 2 }] }, status(1)),
            rateBetween(status(3), { ...status(1), running: [{ tokens: 4 }] }), rateBetween(status(3), status(3)),
        ];
        let reply = [status(5)];
        const connection = wire({ 'v1/status': () => reply });
        const dialog = document.createElement('dialog');
        const view = await show('server-status', { connection }, dialog);
        const out = { rates, closed: connection.asked.length, begin: words(view, '.note').join() };
        dialog.showModal();
        const next = async (what) => {
            reply = what;
            for (const before = connection.asked.length; connection.asked.length === before; ) await new Promise((resolve) => setTimeout(resolve, 20));
            await settle(view);
        };
        await next([status(5)]);
        out.first = words(view, '.facts div');
        out.charts = words(view, '.chart figcaption');
        out.idle = words(view, 'section .note').join();
        const job = { id: 'q1', route: 'text', phase: 'decode', tokens: 1, total: 9, processed: 3, tokens_per_second: 2, elapsed_ms: 1000 };
        await next([status(7, {
            queue: { running: 1, waiting: 1, slots: 4 }, running: [job], waiting: [{ ...job, id: 'q2', phase: 'prefill', route: 'media', tokens_per_second: 0 }],
            totals: { requests: 2, generated_tokens: 19, prompt_tokens: 1e7, predicted_per_second: 3, prompt_per_second: 100, vision_encodes: 5 },
            cache: { queries: 4, hit_rate: 0.5, bytes: 1024, disk: { entries: 3, bytes: 1024, limit: 2048, hits: 1 } }, mtp: { drafted: 10, acceptance_rate: 0.7 },
        })]);
        out.second = words(view, '.facts div');
        out.jobs = words(view, '.job-words');
        out.rate = view.samples.at(-1).rate;
        out.queue = view.samples.at(-1).queue;
        out.line = view.querySelector('polyline').getAttribute('points').split(' ').length;
        view.querySelector('.jobs button').click();
        out.cancel = connection.asked.at(-1);
        await next([{}, 401]);
        out.refused = words(view, '.note[role=status]').join();
        await next([{}, 500]);
        out.wrong = words(view, '.note[role=status]').join();
        await next([status(1)]);
        out.anew = [view.samples.at(-1).rate, words(view, '.note[role=status]').join()];
        dialog.close();
        const asked = connection.asked.length;
        await new Promise((resolve) => setTimeout(resolve, 1100));
        out.after = connection.asked.length - asked;
        dialog.remove();
        return out;
    });
    assert.deepEqual(seen.rates, [0, 3, 0, 0]);
    assert.deepEqual([seen.closed, seen.begin, seen.after], [0, 'Asking the server…', 0], 'only while its dialog is open');
    assert.deepEqual(seen.first, ['Stateready, for 5 s', 'Version9', 'Kernelsavx2', 'Answered1 request, 10 tokens written, 20 read', 'Weights2.0 KiB']);
    assert.deepEqual(seen.charts, ['Tokens a second0.00', 'Requests1 run, 2 wait', 'Memory1.0 KiB']);
    assert.equal(seen.idle, 'Nothing runs or waits. 4 can run side by side.');
    assert.deepEqual(seen.second.slice(3), [
        'Answered2 requests, 19 tokens written, 10 M read', 'Speed on average3.00 tokens/s written, 100 read', 'Images looked at5', 'Remembered prompts50 % found of 4, 1.0 KiB',
        'Prompts on disk3, 1.0 KiB of 2.0 KiB, 1 read back', 'Drafts kept70 % of 10', 'Weights2.0 KiB',
    ]);
    assert.deepEqual(seen.jobs, ['answering · 1 token · 2.00 tokens/s · 1 s', 'reading, with images · 3 of 9 · 1 s']);
    assert.deepEqual([seen.rate, seen.queue, seen.line >= 2, seen.cancel], [5, 2, true, ['POST', 'v1/requests/q1/cancel', '']]);
    assert.match(seen.refused, /only to those who have its API key/);
    assert.equal(seen.wrong, 'The server does not answer.');
    assert.deepEqual(seen.anew, [0, ''], 'another process counts from zero');
});

test('the models: which is in use, which can be used, unloaded or not at all', async () => {
    const seen = await page.evaluate(async () => {
        const { at, press, settle, show, words, wire } = window.lab;
        await at('js/views/model-list.js');
        const data = [
            { id: 'a', status: { value: 'loaded' }, meta: { size: 2048, n_ctx: 8, n_ctx_train: 9 }, architecture: { input_modalities: ['text', 'image', 'video'] } },
            { id: 'b', status: { value: 'loaded', current: false }, meta: { n_ctx_train: 9 }, architecture: { input_modalities: ['text', 'image'] } },
            { id: 'c', status: { value: 'unloaded' }, architecture: { input_modalities: ['text'] } },
            { id: 'd', status: { value: 'failed', error: 'It is damaged.' } },
            { id: 'gpu/e', upstream: 'gpu' },
            { id: 'f', status: { value: 'unloaded' } },
        ];
        let list = data.slice(0, 5);
        let load = [{}];
        const connection = wire({ 'v1/models': () => [{ data: list }], props: () => [{ hub: 'no' }], 'models/load': () => load, 'models/unload': () => [{}] });
        const set = [];
        const chat = Object.assign(new EventTarget(), { current: { options: { beside: 'c' } }, loadedModel: 'a', setOption: (...given) => set.push(given) });
        const view = await show('model-list', { chat, connection });
        const rows = () => [...view.querySelectorAll('li')].map((li) => [li.className, ...words(li, 'strong, small, .note, button')].join('/'));
        const out = { rows: rows(), broken: words(view, 'details summary').join(), note: words(view, 'p.note').join('|'), search: !!view.querySelector('input') };
        out.pressed = [...view.querySelectorAll('[aria-pressed=true]')].map((one) => one.ariaLabel);
        await press(view, 'c answers beside');
        await press(view, 'b answers in this chat');
        out.set = set.splice(0);
        await press(view, 'Unload b');
        out.unload = connection.asked.find(([, path]) => path === 'models/unload');
        load = [{ error: { message: 'No room.' } }, 500];
        await press(view, 'Use c');
        await settle(view);
        out.load = connection.asked.find(([, path]) => path === 'models/load');
        out.problem = words(view, '.bad').join();
        connection.server = { state: 'loading', next_model: 'c', progress: 0.25 };
        connection.dispatchEvent(new Event('state'));
        await settle(view);
        out.loading = [view.querySelector('progress').value, view.querySelector('progress').ariaLabel];
        connection.server = { state: 'ready', next_model: 'c' };
        connection.dispatchEvent(new Event('state'));
        await settle(view);
        out.later = rows()[2];
        connection.server = null;
        chat.loadedModel = 'gpu/e';
        view.models = data;
        await settle(view);
        out.six = [!!view.querySelector('input'), rows().find((row) => /gpu/.test(row))];
        const type = async (query) => {
            const input = view.querySelector('input');
            input.value = query;
            input.dispatchEvent(new Event('input'));
            await settle(view);
            return words(view, 'li strong').join();
        };
        out.found = [await type('D'), view.querySelector('details').open, await type('x'), words(view, 'p.note').join('|')];
        const escape = (input) => !input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', cancelable: true }));
        out.escape = [escape(view.querySelector('input'))];
        await settle(view);
        out.escape.push(view.query, escape(view.querySelector('input')));
        list = [data[0]];
        view.models = list;
        await settle(view);
        out.one = words(view, 'p.note').join('|');
        view.remove();
        return out;
    });
    assert.deepEqual(seen.rows, [
        'current/a/2.0 KiB · images and videos · 8 tokens/in use/In this chat/Beside', '/b/images · 9 tokens · in memory/Use/In this chat/Beside/Unload', '/c/text only/Use/In this chat/Beside',
        '/gpu/e/on gpu/In this chat/Beside', '/d/It is damaged.',
    ]);
    assert.deepEqual([seen.broken, seen.note, seen.search], ['One cannot be loaded', 'Models of gpu are on another server: what you ask them leaves this one.|', false]);
    assert.deepEqual([seen.pressed, seen.set], [['c answers beside'], [['beside', undefined], ['model', 'b']]]);
    assert.deepEqual([seen.unload, seen.load, seen.problem], [['POST', 'models/unload', '{"model":"b"}'], ['POST', 'models/load', '{"model":"c"}'], 'No room.']);
    assert.deepEqual([seen.loading, /when answers end/.test(seen.later)], [[0.25, 'c is being loaded'], true]);
    assert.deepEqual([seen.six[0], seen.six[1].startsWith('current/gpu/e')], [true, true]);
    assert.deepEqual(seen.found, ['d', true, '', 'No model has this name.|No room.']);
    assert.deepEqual(seen.escape, [true, '', false]);
    assert.match(seen.one, /parley --models-dir DIR/);
});

test('the list of chats: groups, words that are found, folders, several at once', async () => {
    const seen = await page.evaluate(async () => {
        const { at, press, settle, show, words } = window.lab;
        await at('js/views/sidebar.js');
        const today = new Date().setHours(0, 0, 0, 0);
        const day = 86_400_000;
        const entry = (id, updated, place, text = '') => ({ id, title: `Chat ${id}`, updated, text: `Chat ${id}\n${text}`, ...(place ? { place } : {}) });
        const list = [
            entry('a', today), entry('b', today - 1), entry('c', today - day), entry('d', today - day - 1), entry('e', today - 7 * day), entry('f', today - 7 * day - 1),
            entry('g', today, { pinned: true, folder: 'X' }), entry('h', today, { folder: 'Z' }), entry('i', 0, { folder: 'B' }), entry('j', today, { archived: true }),
            entry('k', today - 1, undefined, `First words. ${'x '.repeat(30)}x. Then a quagga came. More of it.`),
        ];
        const did = [];
        const note = (name) => (...given) => did.push([name, ...given]);
        const chat = Object.assign(new EventTarget(), {
            list, current: { id: 'b' }, unread: new Set(['c']), isRunning: (id) => id === 'd', history: { available: true },
            renameFolder: note('folder'), setPlace: note('place'), rename: note('rename'), remove: note('remove'), removeAll: note('all'), newChat: note('new'), nameByModel: note('name'), settings: { set: note('set') },
        });
        const view = await show('chat-sidebar', { chat });
        const told = [];
        for (const type of ['chosen', 'toggle-sidebar', 'left-search', 'take-chat']) view.addEventListener(type, ({ detail }) => told.push([type, detail]));
        const out = {};
        out.groups = [...view.querySelectorAll('.chat-list > h3, .chat-list .folder h3, .chat-list > ul')].map((one) => (one.localName === 'h3' ? one.textContent.trim() : words(one, '.entry-title').map((title) => title.slice(5)).join('')));
        out.archive = [words(view, '.archive summary').join(), view.querySelector('.archive').open, words(view, '.archive .entry-title').join()];
        out.current = words(view, '[aria-current=page] .entry-title').join();
        out.marks = [words(view, 'a:has(.unread) .entry-title').join(), words(view, 'a:has(.running) .entry-title').join()];
        const search = async (query) => {
            const input = view.querySelector('input[type=search]');
            input.value = query;
            input.dispatchEvent(new Event('input'));
            await settle(view);
            return words(view, '.entry-title').join();
        };
        out.found = [await search('quagga'), words(view, '.entry-found').join(), words(view, 'mark').join()];
        out.foundTitle = [await search('CHAT k'), words(view, '.entry-found').join(), words(view, 'mark').join()];
        out.foundArchive = [await search('chat j'), view.querySelector('.archive').open];
        out.nothing = [await search('zebra'), words(view, '.list-note').join()];
        const escape = () => view.querySelector('input[type=search]').dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', cancelable: true }));
        escape();
        await settle(view);
        out.escape = [view.query, told.length];
        escape();
        out.left = told.splice(0);
        chat.history.search = async (query) => new Map(query === 'far' ? [['a', 'It was far away.']] : []);
        out.remote = [await search('far'), words(view, '.entry-found').join()];
        await search('');
        delete chat.history.search;
        await press(view, 'More about Chat g');
        out.menu = words(view.querySelector('#menu-g'), 'button');
        out.folders = [...view.querySelectorAll('#menu-g [aria-pressed]')].map((one) => [one.textContent.trim(), one.ariaPressed].join());
        for (const label of ['Unpin Chat g', 'Archive Chat g', 'Title of Chat g by the model', 'Delete Chat g', 'Export Chat g as JSON']) await press(view.querySelector('#menu-g'), label);
        view.querySelector('#menu-g [aria-pressed=true]').click();
        const form = view.querySelector('#menu-g form');
        form.querySelector('input').value = ` ${'n'.repeat(90)}`;
        form.requestSubmit();
        out.did = did.splice(0);
        out.took = told.splice(0);
        await press(view, 'Choose several chats');
        await press(view, 'Choose Chat a');
        await press(view, 'Choose Chat b');
        await press(view, 'Choose Chat b');
        out.chosen = [[...view.chosen].join(), words(view, '.bulk > span').join()];
        await press(view, 'Archive the chosen chats');
        await settle(view);
        out.bulk = [did.splice(0), view.chosen];
        view.chosen = new Set();
        await settle(view);
        await press(view, 'All');
        out.all = [view.chosen.size, words(view, '.bulk button')[0]];
        await press(view, 'Delete the chosen chats');
        out.removed = did.splice(0).map(([name, ids]) => [name, ids.length]);
        view.querySelector('a[href="#/c/a"]').dispatchEvent(new MouseEvent('dblclick'));
        await settle(view);
        const name = view.querySelector('.renaming input');
        out.name = [name.value, document.activeElement === name];
        name.value = 'New';
        name.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
        await settle(view);
        view.querySelector('a[href="#/c/a"]').dispatchEvent(new MouseEvent('dblclick'));
        await settle(view);
        view.querySelector('.renaming input').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));
        await settle(view);
        out.renamed = did.splice(0);
        chat.list = [];
        for (const history of [{ available: true }, { available: true, remote: true }, { available: false }, { available: true, movable: 2 }, { available: true, waiting: new Set(['a']), trouble: 'Full.' }]) {
            chat.history = history;
            chat.dispatchEvent(new Event('list'));
            await settle(view);
            out.empty = [...(out.empty ?? []), words(view, '.list-note').join('|')];
        }
        chat.history = { available: true, movable: 2, move: note('move') };
        chat.dispatchEvent(new Event('list'));
        await settle(view);
        await press(view, 'Move to the server');
        await press(view, 'Not now');
        out.offer = [did.splice(0), words(view, '.list-note').length];
        view.remove();
        return out;
    });
    assert.deepEqual(seen.groups, ['Pinned', 'g', 'B', 'i', 'Z', 'h', 'Today', 'a', 'Yesterday', 'bck', 'Last seven days', 'de', 'Older', 'f']);
    assert.deepEqual([seen.archive, seen.current, seen.marks], [['Archived (1)', false, 'Chat j'], 'Chat b', ['Chat c', 'Chat d']]);
    assert.deepEqual(seen.found, ['Chat k', '…Then a quagga came. More of it.', 'quagga']);
    assert.deepEqual(seen.foundTitle, ['Chat k', '', 'Chat,k'], 'the title stands above');
    assert.deepEqual([seen.foundArchive, seen.nothing], [['Chat j', true], ['', 'No chat has these words.']]);
    assert.deepEqual([seen.escape, seen.left], [['', 0], [['left-search', null]]]);
    assert.deepEqual(seen.remote, ['Chat a', 'It was far away.']);
    assert.deepEqual([seen.menu.includes('Unpin'), seen.menu.includes('Share a link'), seen.folders], [true, false, ['B,false', 'X,true', 'Z,false']]);
    assert.deepEqual(seen.did, [
        ['place', 'g', { pinned: false }], ['place', 'g', { archived: true }], ['name', 'g'], ['remove', 'g'], ['place', 'g', { folder: '' }], ['place', 'g', { folder: 'n'.repeat(80) }],
    ]);
    assert.deepEqual(seen.took, [['take-chat', { id: 'g', kind: 'json' }]]);
    assert.deepEqual([seen.chosen, seen.bulk], [['g,a', '2 chosen'], [[['place', 'g', { archived: true }], ['place', 'a', { archived: true }]], null]]);
    assert.deepEqual([seen.all, seen.removed], [[11, 'None'], [['all', 11]]]);
    assert.deepEqual([seen.name, seen.renamed], [['Chat a', true], [['rename', 'a', 'New']]]);
    assert.deepEqual(seen.empty.map((one) => one.slice(0, 50)), [
        'Your chats will be listed here. They stay in this ', 'Your chats will be listed here. They are kept on t', 'This browser keeps no chats for this page.',
        '2 chats are kept in this browser alone. Move to th', 'Full. One chat waits in this browser until the ser',
    ]);
    assert.deepEqual(seen.offer, [[['move'], ['set', 'declinedMove', true]], 1]);
});

test('a menu stands beside its button, is gone through by arrows, and closes when something is chosen', async () => {
    const seen = await page.evaluate(async () => {
        const { at, settle } = window.lab;
        const { html, render } = await import(new URL('vendor/lit.js', document.baseURI).href);
        const { menuButton } = await at('js/views/menu.js');
        const box = document.createElement('div');
        document.body.append(box);
        let opened = 0;
        render(menuButton({ id: 'm', label: 'L', face: 'F', title: 'T', onOpen: () => (opened += 1), content: html`<button>1</button><button disabled>2</button><a href="#/">3</a><label data-stays><input aria-label="4" /></label><span>5</span>` }), box);
        const [button, menu] = box.children;
        const where = async (style) => {
            Object.assign(button.style, { position: 'fixed', width: '40px', height: '36px', left: '', right: '', top: '', bottom: '', ...style });
            menu.showPopover();
            const { top, bottom, left, right, width, maxHeight } = menu.style;
            menu.hidePopover();
            return [top, bottom, left, right, width, maxHeight].join(' ');
        };
        const { innerWidth: w, innerHeight: h } = window;
        const out = { size: [w, h] };
        out.places = [await where({ left: '10px', top: '10px' }), await where({ right: '10px', bottom: '10px' }), await where({ left: '10px', top: `${h * 0.6}px` })];
        await new Promise((resolve) => setTimeout(resolve));
        const open = new Promise((resolve) => menu.addEventListener('toggle', ({ newState }) => newState === 'open' && resolve()));
        menu.showPopover();
        await open;
        const press = (key) => {
            const went = menu.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true }));
            return `${document.activeElement.ariaLabel ?? document.activeElement.textContent}${went ? ' went on' : ''}`;
        };
        out.keys = [document.activeElement.textContent, press('ArrowDown'), press('ArrowDown'), press('ArrowDown'), press('ArrowUp'), press('x')];
        menu.querySelector('span').click();
        menu.querySelector('input').click();
        out.stays = menu.matches(':popover-open');
        menu.querySelector('button').click();
        out.closes = menu.matches(':popover-open');
        out.opened = opened;
        out.labels = [button.ariaLabel, button.title, menu.ariaLabel, button.className];
        await settle();
        box.remove();
        return out;
    });
    const [w, h] = seen.size;
    assert.deepEqual(seen.places, [
        `52px auto 10px auto  ${h - 46 - 14}px`, `auto 52px auto 10px  ${h - 46 - 14}px`, `auto ${h - h * 0.6 + 6}px 10px auto  ${h * 0.6 - 14}px`,
    ], `of ${w} x ${h}`);
    assert.deepEqual(seen.keys, ['1', '3', '4', '1', '4', '4 went on']);
    assert.deepEqual([seen.stays, seen.closes, seen.opened, seen.labels], [true, false, 4, ['L', 'T', 'T', 'quiet icon-only']]);
});

test('what is said of a model, and which keys there are', async () => {
    const seen = await page.evaluate(async () => {
        const { at, words } = window.lab;
        const { render } = await import(new URL('vendor/lit.js', document.baseURI).href);
        const { keysDialog, modelDialog, openDialog } = await at('js/views/dialogs.js');
        const { abilities } = await at('js/views/welcome.js');
        const box = document.createElement('div');
        document.body.append(box);
        const facts = (model, state = 'open') => {
            render(modelDialog(model, { state, server: null, retryAt: 0 }), box);
            return words(box, '.facts div').filter((one) => !/^Connection/.test(one));
        };
        const out = {
            whole: facts({ name: 'M', context: 1000, parameters: 2e9, bytes: 1e9, modalities: ['text', 'image'], thinkingKnown: true, thinking: true, server: 'S' }),
            least: facts({ name: 'M', context: 1, bytes: 2048, thinkingKnown: true }),
            none: facts({ name: 'M' }),
            abilities: [{ name: 'M' }, { name: 'M', vision: true, context: 1000 }, { name: 'M', vision: true, video: true, thinking: true }, { name: 'Seedling' }].map(abilities),
        };
        const dialog = box.querySelector('dialog');
        out.connection = words(box, '.facts div').find((one) => /^Connection/.test(one));
        dialog.id = 'tried';
        openDialog('tried');
        openDialog('tried');
        openDialog('nobody');
        out.open = [dialog.open];
        dialog.querySelector('.dialog-body').click();
        out.open.push(dialog.open);
        dialog.click();
        out.open.push(dialog.open);
        render(keysDialog(), box);
        out.keys = words(box, '.keys div')[1];
        out.kbd = box.querySelector('.keys div:nth-child(2)').querySelectorAll('kbd').length;
        box.remove();
        return out;
    });
    assert.deepEqual(seen.whole, ['ModelM', 'Context1 000 tokens', 'Parameters2.0 B', 'Size953.7 MiB, 4 bits a weight', 'Readstext, image', 'Thinkson request', 'ServerS']);
    assert.deepEqual([seen.least, seen.none], [['ModelM', 'Context1 token', 'Size2.0 KiB', 'Thinksno'], ['ModelM']]);
    assert.match(seen.connection, /by WebSocket$/);
    assert.deepEqual([seen.open, seen.keys, seen.kbd], [[true, true, false], 'ShiftEnter New line', 2]);
    const [plain, sees, all, seedling] = seen.abilities.map(({ can, cannot }) => [can.length, cannot.length, cannot[0]]);
    assert.deepEqual([plain, sees, all], [[1, 3, 'See images or videos.'], [3, 3, 'Watch videos.'], [4, 2, 'Look things up: it knows what it learnt, and may be wrong.']]);
    assert.deepEqual(seedling.slice(0, 2), [3, 2]);
    assert.match(seen.abilities[1].can[2], /1\s000 tokens in mind: about 700 words/);
});

test('the page follows an answer while the reader is at its end, and never otherwise', async () => {
    const seen = await page.evaluate(async () => {
        const { at } = window.lab;
        const { Follower } = await at('js/views/scroll.js');
        const box = document.createElement('div');
        const scroller = document.createElement('div');
        const content = document.createElement('div');
        content.className = 'messages';
        content.append(document.createElement('textarea'), Object.assign(document.createElement('p'), { textContent: 'some words' }));
        Object.assign(scroller.style, { height: '100px', overflow: 'auto' });
        content.style.height = '500px';
        scroller.append(content);
        box.append(scroller);
        document.body.append(box);
        const changes = [];
        let wanted = true;
        const follower = new Follower(scroller, (pinned) => changes.push(pinned), () => wanted);
        const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve)))); // sizes and scrolls of one are heard by the next
        const grow = async (height, seen = () => scroller.scrollTop === height - 100) => {
            scroller.firstElementChild.style.height = `${height}px`;
            await frame();
            for (const end = performance.now() + 20_000; !seen() && performance.now() < end; ) await frame();
            return scroller.scrollTop;
        };
        const out = {};
        out.follows = [await grow(600), await grow(700)];
        scroller.dispatchEvent(new WheelEvent('wheel', { deltaY: 5 }));
        out.down = follower.pinned;
        scroller.dispatchEvent(new WheelEvent('wheel', { deltaY: -5 }));
        out.up = [follower.pinned, await grow(800, () => true)];
        follower.jump();
        out.jump = [follower.pinned, scroller.scrollTop];
        await frame();
        for (const key of ['ArrowDown', 'PageUp', 'Home', 'ArrowUp']) {
            follower.pinned = true;
            scroller.firstElementChild.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
            out[key] = follower.pinned;
        }
        follower.pinned = true;
        scroller.querySelector('textarea').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', bubbles: true }));
        out.typing = follower.pinned;
        scroller.scrollTop = 300;
        await frame();
        out.scrolledUp = follower.pinned;
        scroller.scrollTop = 800 - 100 - 33;
        await frame();
        out.near = [follower.pinned];
        scroller.scrollTop = 800 - 100 - 32;
        await frame();
        out.near.push(follower.pinned);
        getSelection().selectAllChildren(scroller.querySelector('p'));
        await frame();
        out.selected = follower.pinned;
        scroller.scrollTop = 800;
        await frame();
        out.selecting = follower.pinned;
        getSelection().removeAllRanges();
        await frame();
        follower.jump();
        await frame();
        scroller.style.height = '60px'; // as when a keyboard comes up
        for (const end = performance.now() + 20_000; scroller.scrollTop !== 740 && performance.now() < end; ) await frame();
        out.shrunk = scroller.scrollTop;
        scroller.style.height = '100px';
        await frame();
        follower.jump();
        await frame();
        wanted = false;
        out.unwanted = [await grow(900, () => !follower.pinned), follower.pinned];
        out.changes = changes.length;
        box.remove();
        return out;
    });
    assert.deepEqual([seen.follows, seen.down, seen.up, seen.jump], [[500, 600], true, [false, 600], [true, 700]]);
    assert.deepEqual([seen.ArrowDown, seen.PageUp, seen.Home, seen.ArrowUp, seen.typing], [true, false, false, false, true]);
    assert.deepEqual([seen.scrolledUp, seen.near, seen.selected, seen.selecting, seen.shrunk, seen.unwanted], [false, [false, true], false, false, 740, [700, false]]);
});

test('what a screen reader hears of an answer', async () => {
    const seen = await page.evaluate(async () => {
        const { at } = window.lab;
        const { Announcer } = await at('js/views/live.js');
        const message = { id: 'm1', text: '', status: 'streaming' };
        const chat = Object.assign(new EventTarget(), { current: { messages: { m1: message } }, progress: new Map() });
        const heard = () => ['status', 'answer', 'alert'].map((name) => document.getElementById(`live-${name}`).textContent);
        const now = performance.now.bind(performance);
        let later = 0;
        performance.now = () => now() + later;
        const announcer = new Announcer(/** @type {any} */ (chat));
        const says = (fields, progress) => {
            Object.assign(message, fields);
            if (progress) chat.progress.set('m1', progress);
            else chat.progress.delete('m1');
            later += 7_000;
            chat.dispatchEvent(new CustomEvent('message', { detail: 'm1' }));
            return heard()[0];
        };
        const out = { states: [says({}), says({ reasoning: 'hm' }), says({ text: 'x' }), says({}, { kind: 'started' }), says({}, { kind: 'queued', position: 2 })] };
        document.getElementById('live-status').textContent = 'as it was';
        chat.dispatchEvent(new CustomEvent('message', { detail: 'm1' }));
        chat.dispatchEvent(new CustomEvent('message', { detail: 'nobody' }));
        out.soon = heard()[0];
        const finish = async (fields) => {
            Object.assign(message, fields);
            chat.dispatchEvent(new CustomEvent('finished', { detail: message }));
            await new Promise((resolve) => setTimeout(resolve, 200));
            return heard();
        };
        out.failed = await finish({ status: 'failed', error: { code: 'connection_lost', message: '' } });
        out.done = await finish({ status: 'done', text: 'All of it.' });
        out.stopped = await finish({ status: 'stopped' });
        message.status = 'streaming';
        chat.progress.delete('m1');
        chat.dispatchEvent(new CustomEvent('message', { detail: 'm1' })); // at once behind an end
        out.again = heard()[0];
        document.getElementById('live-answer').textContent = 'other';
        chat.current.messages = {};
        out.elsewhere = await finish({ status: 'done' });
        performance.now = now;
        return { ...out, announcer: !!announcer };
    });
    assert.deepEqual(seen.states.slice(0, 4), ['Starting…', 'Thinking…', 'Answering…', 'Answering…']);
    assert.match(seen.states[4], /queue|turn|2/i);
    assert.equal(seen.soon, 'as it was', 'at most every seven seconds');
    assert.deepEqual([seen.failed[0], seen.failed[1], seen.failed[2].length > 10], ['', '', true]);
    assert.deepEqual([seen.done, seen.stopped, seen.again], [['', 'All of it.', ''], ['', 'Stopped. All of it.', ''], 'Answering…']);
    assert.deepEqual(seen.elsewhere.slice(0, 2), ['', 'other'], 'an answer of a chat that is not shown is silent');
});

test('a part of a video is chosen by two handles that cannot cross', async () => {
    const seen = await page.evaluate(async () => {
        const { at, settle, show, words } = window.lab;
        await at('js/views/video-strip.js');
        const attachment = { id: 'v', kind: 'video', name: 'v.mp4', width: 320, height: 240, seconds: 10.05, blob: new Blob(['x'], { type: 'video/mp4' }) };
        const view = await show('video-strip', { attachment, rates: { fps: 2, min_frames: 4, max_frames: 16, patch_size: 16, merge_size: 2, temporal_patch_size: 2, min_pixels: 4096, max_pixels: 25_165_824 } });
        let told = 0;
        view.addEventListener('video-chosen', () => (told += 1));
        const [start, end] = view.querySelectorAll('input');
        const drag = async (input, value) => {
            input.value = String(value);
            input.dispatchEvent(new Event('input'));
            await settle(view);
            return JSON.stringify(attachment.video);
        };
        const out = { words: words(view, '.strip-words span'), max: start.max };
        out.dragged = [await drag(start, 2000), await drag(end, 1000), await drag(start, 5000), await drag(end, 10_000), await drag(start, 0)];
        await drag(start, 5000);
        const style = (name) => view.querySelector(name).style;
        out.places = [style('.strip-off.before').right, style('.strip-on').left].map((one) => Number.parseFloat(one).toFixed(1));
        view.querySelector('details').open = true;
        await settle(view);
        await settle(view);
        out.frames = [words(view, '.video-frames span').length, view.querySelectorAll('.video-frames canvas').length, words(view, '.video-frames span')[0]];
        const choose = async (i, value) => {
            const select = view.querySelectorAll('select')[i];
            select.value = value;
            select.dispatchEvent(new Event('change'));
            await settle(view);
            return [JSON.stringify(attachment.video), view.times.length];
        };
        out.options = [...view.querySelectorAll('select')].map((one) => [...one.options].map(({ value }) => value).join());
        out.chosen = [await choose(0, '1'), await choose(1, '4'), await choose(0, ''), await choose(1, '')];
        out.told = told;
        view.remove();
        const silent = await show('video-strip', { attachment: { ...attachment, seconds: undefined } });
        out.unknown = silent.querySelectorAll('section').length;
        silent.remove();
        return out;
    });
    assert.deepEqual(seen.words, ['0:00 – 0:10', 'The model sees about 16 frames, 704 tokens.']);
    assert.equal(seen.max, '10000');
    assert.deepEqual(seen.dragged, ['{"start_ms":2000}', '{"start_ms":2000,"end_ms":2100}', '{"start_ms":2000,"end_ms":2100}', '{"start_ms":2000}', '{}']);
    assert.deepEqual(seen.places, ['50.2', '49.8']);
    assert.deepEqual(seen.frames, [10, 10, '0:05']);
    assert.deepEqual(seen.options, [',0.5,1,2,4,8', ',4,8']);
    assert.deepEqual(seen.chosen, [['{"start_ms":5000,"fps":1}', 5], ['{"start_ms":5000,"fps":1,"max_frames":4}', 4], ['{"start_ms":5000,"max_frames":4}', 4], ['{"start_ms":5000}', 10]]);
    assert.deepEqual([seen.told, seen.unknown], [10, 0]);
});

test('images and texts large: steps, zooms, keys while its dialog is open, and the place that is shown', async () => {
    const seen = await page.evaluate(async () => {
        const { at, press, settle, show, words } = window.lab;
        await at('js/views/viewer.js');
        const canvas = Object.assign(document.createElement('canvas'), { width: 400, height: 200 });
        const blob = await new Promise((resolve) => canvas.toBlob(resolve));
        const image = (name) => ({ kind: 'image', name, width: 400, height: 200, bytes: 2048, blob });
        const long = `${'first line\n'.repeat(20_000)}here it is\n${'last line\n'.repeat(40_000)}`;
        const place = long.indexOf('here it is');
        const items = [image('a'), image('b'), { kind: 'text', name: 'c', bytes: 3, note: 'N', blob: new Blob([long]) }];
        const dialog = document.createElement('dialog');
        const view = await show('media-viewer', { items, at: 0 }, dialog);
        const key = async (name, more = {}) => {
            const went = dispatchEvent(new KeyboardEvent('keydown', { key: name, cancelable: true, ...more }));
            await settle(view);
            return `${view.at} ${view.zoom}${went ? ' went on' : ''}`;
        };
        const out = { closed: await key('ArrowRight') };
        dialog.showModal();
        await view.querySelector('img').decode();
        out.bar = [words(view, 'h2').join(), words(view, '.viewer-steps span').join(), view.querySelectorAll('.viewer-steps :disabled').length];
        out.keys = [await key('ArrowLeft'), await key('ArrowRight'), await key('+'), await key('ArrowLeft'), await key('='), await key('-'), await key('0'), await key('x'), await key('+', { ctrlKey: true })];
        const fit = view.scale;
        await press(view, 'Zoom in');
        out.zoomed = [view.zoom > fit, view.querySelector('img').style.width === `${400 * view.zoom}px`, words(view, '.viewer-zoom').join()];
        for (let i = 0; i < 12; i += 1) view.querySelector('[aria-label="Zoom in"]').click(), await settle(view);
        out.most = [view.zoom, view.querySelector('[aria-label="Zoom in"]').disabled];
        for (let i = 0; i < 12; i += 1) view.querySelector('[aria-label="Zoom out"]').click(), await settle(view);
        out.least = [view.zoom, view.querySelector('[aria-label="Zoom out"]').disabled];
        const wheel = async (fields) => {
            const went = view.querySelector('.stage').dispatchEvent(new WheelEvent('wheel', { cancelable: true, ...fields }));
            await settle(view);
            return `${view.zoom}${went ? ' went on' : ''}`;
        };
        out.wheel = [await wheel({ deltaY: -1 }), await wheel({ deltaY: -1, ctrlKey: true }), await wheel({ deltaY: 1, ctrlKey: true })];
        view.querySelector('img').click();
        await settle(view);
        out.clicked = [view.zoom];
        view.querySelector('img').click();
        await settle(view);
        out.clicked.push(view.zoom);
        view.mark = { at: place, end: place + 11 };
        view.items = [...items];
        view.at = 2;
        await settle(view);
        for (const end = performance.now() + 20_000; !view.text && performance.now() < end; ) await settle(view);
        const text = view.querySelector('pre').textContent;
        out.text = [view.querySelector('mark').textContent, text.startsWith('…\nfirst line\n'), text.endsWith('\n…'), text.length, words(view, 'h2').join(), await key('+')];
        await key('ArrowLeft');
        await key('ArrowRight');
        for (const end = performance.now() + 20_000; !view.text && performance.now() < end; ) await settle(view);
        out.stepped = [view.mark, view.querySelector('pre').textContent.length, view.at];
        view.remove();
        const before = view.at;
        dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft' }));
        out.gone = view.at === before;
        dialog.append(view);
        view.remove();
        dialog.remove();
        return out;
    });
    assert.equal(seen.closed, '0 0 went on');
    assert.deepEqual(seen.bar, ['a400 × 200 · 2.0 KiB', '1 / 3', 1]);
    assert.deepEqual([seen.keys[0], seen.keys[1], seen.keys[6], seen.keys[7], seen.keys[8]], ['0 0', '1 0', '1 0', '1 0 went on', '1 0 went on']);
    const [, , plus, left, equal, minus] = seen.keys.map((one) => Number(one.split(' ')[1]));
    assert.deepEqual([plus > 0, seen.keys[3].endsWith('went on'), left === plus, equal > plus, minus === plus], [true, true, true, true, true], 'a large image is not stepped on by arrows');
    assert.deepEqual([seen.zoomed[0], seen.zoomed[1], /^\d+ %$/.test(seen.zoomed[2])], [true, true, true]);
    assert.deepEqual([seen.most, seen.least, seen.wheel, seen.clicked[0]], [[8, true], [0.1, true], ['0.1 went on', '0.25', '0.1'], 0]);
    assert.equal([1, 2].includes(seen.clicked[1]), true);
    assert.deepEqual(seen.text, ['here it is', true, true, 300_000 + 4, 'c3 B · N', '2 0 went on']);
    assert.deepEqual([seen.stepped, seen.gone], [[null, 300_002, 2], true]);
});

test('code: its language, what can be shown, wrapped, copied and saved under a fitting name', async () => {
    const seen = await page.evaluate(async () => {
        const { at, press, settle, show, words } = window.lab;
        const { isShown } = await at('js/views/code-block.js');
        const view = await show('code-block', { code: 'let x = 1;', language: 'js' });
        const buttons = () => words(view, 'button').join('|');
        const out = { shown: ['html', 'HTM', 'svg', 'xhtml', 'mermaid', 'htmlx', 'js', ''].map(isShown), buttons: buttons(), language: words(view, '.code-language').join() };
        const saved = [];
        const click = HTMLAnchorElement.prototype.click;
        HTMLAnchorElement.prototype.click = function () {
            saved.push(this.download);
        };
        for (const language of ['python', 'rust', '', 'text', 'go', 'x y', 'averylongone']) {
            view.language = language;
            await settle(view);
            await press(view, 'Save this code');
        }
        HTMLAnchorElement.prototype.click = click;
        out.saved = saved;
        await press(view, 'Wrap');
        out.wrapped = [view.querySelector('pre').className, view.querySelector('[aria-pressed]').ariaPressed];
        let shown;
        view.addEventListener('show-preview', ({ detail }) => (shown = detail));
        Object.assign(view, { language: 'html', code: '<b>' });
        await settle(view);
        view.querySelector('.as-it-looks').click();
        out.preview = shown;
        view.open = true;
        await settle(view);
        out.open = buttons();
        view.language = '';
        await settle(view);
        out.plain = words(view, '.code-language').join();
        view.remove();
        const { piecesOf, spokenOf } = await at('js/views/voice.js');
        out.pieces = [piecesOf(' One. Two!\n\nThree'), piecesOf(`${'a'.repeat(150)}. ${'b'.repeat(100)} ${'c'.repeat(120)}`).map((one) => one.length), piecesOf('x'.repeat(401)).map((one) => one.length)];
        const answer = document.createElement('div');
        for (const [name, className, text] of [['div', 'prose thought', 'no'], ['div', 'prose', 'yes  it\n is']]) {
            const box = Object.assign(document.createElement(name), { className });
            box.append(Object.assign(document.createElement('p'), { textContent: text }), document.createElement('p'), Object.assign(document.createElement('table'), { textContent: 'no' }));
            answer.append(box);
        }
        out.spoken = spokenOf(answer);
        return out;
    });
    assert.deepEqual(seen.shown, [true, true, true, true, true, false, false, false]);
    assert.deepEqual([seen.buttons, seen.language, seen.plain], ['Wrap|Save|Copy', 'js', 'text']);
    assert.deepEqual(seen.saved, ['code.py', 'code.rs', 'code.txt', 'code.txt', 'code.go', 'code.txt', 'code.txt']);
    assert.deepEqual([seen.wrapped, seen.preview, seen.open], [['wrapped', 'true'], { code: '<b>', language: 'html' }, 'Wrap|Copy']);
    assert.deepEqual(seen.pieces, [['One. Two!', 'Three'], [151, 100, 120], [200, 200, 1]]);
    assert.equal(seen.spoken, 'yes it is');
});

test('of a long chat the last messages are there, and the earlier ones when they are asked for', async () => {
    const { page: own, done } = await openChat(lab.browser, lab.server.url);
    const id = await own.evaluate(keepLong, 120);
    await own.evaluate((id) => (location.hash = `#/c/${id}`), id);
    await own.getByText('Answer 59').waitFor();
    const seen = await own.evaluate(async () => {
        const app = document.querySelector('parley-app');
        const count = () => app.querySelectorAll('chat-message').length;
        const out = [];
        for (let i = 0; i < 3; i += 1) {
            out.push(count(), app.querySelector('.earlier')?.textContent.trim() ?? 'none');
            app.querySelector('.earlier')?.click();
            await app.updateComplete;
        }
        return out;
    });
    assert.deepEqual(seen, [80, 'Show 24 earlier messages', 104, 'Show 16 earlier messages', 120, 'none']);
    await done();
});
