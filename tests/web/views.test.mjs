/** The page's elements one by one, each with a chat and a server that are made up: what needs a browser of what they show and do.
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
        const rename = async () => {
            view.renaming = 'folder Z';
            await settle(view);
            const input = view.querySelector('.renaming input');
            input.focus();
            return input;
        };
        const folder = await rename();
        out.folder = [folder.value];
        folder.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
        await settle(view);
        out.folder.push(view.renaming, document.activeElement.getAttribute('popovertarget'));
        document.activeElement.blur();
        (await rename()).value = ' Y ';
        view.querySelector('.renaming').requestSubmit();
        await settle(view);
        out.folder.push(view.renaming, ...did.splice(0));
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
    assert.deepEqual(seen.folder, ['Z', '', 'folder-Z', '', ['folder', 'Z', 'Y']]);
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
        const stopped = [];
        const { clearTimeout: stop } = window;
        window.clearTimeout = (id) => stopped.push(id);
        out.problem = [await again(), words(view, '[role=status]').join().slice(0, 30), stopped];
        window.clearTimeout = stop;
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
        problem: [['GET v1/mcp', 1], 'The server cannot be reached f', [1]],
        menu: ['setOption tools, {"files":{}}'],
        heard: true,
        changed: false,
    });
});
