/** What elements of the page show and do, without a browser, as files of text:
 *
 *     written('models', [{ says: 'one model', element: 'model-list', given: () => ({ chat: chatOf(), connection: wire({}) }) }]);
 *
 * is the test of shown/models.txt. For each state the file has what it shows, a tag a line, and what comes of everything that
 * can be pressed, typed or chosen there, each done to an element that is made anew: what the chat, the server and the page
 * are told, what the element holds then, and which lines it shows then. What is like the state before is left out. PARLEY_WRITE=1 writes the files of today, whose
 * difference is then to be read. A state has: says, its words; element and given, what its fields are, or render, a template;
 * after(view), what happens before it is looked at; typed, what is typed into its fields; presses, which of its handlers are
 * called; does, what else happens to it; until(view), what is waited for then; brief, whether what it shows stands elsewhere; found, nodes of the page by their selectors.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import test from 'node:test';
import { makeStorage, makeTime } from './made_up.mjs';
import { Node, done, elementOf, flat, heard, plain, withoutBrowser } from './made_up_lit.mjs';

process.env.TZ = 'UTC';
export const time = makeTime();
globalThis.Date = class extends Date {
    constructor(...given) {
        super(...(given.length ? given : [time.now()]));
    }
};
export const kept = new Map();
let random = 0;
Object.defineProperty(crypto, 'getRandomValues', { value: (list) => list.fill((random += 1)) });
/** What the window's events call, of the last element that was made. @type {Record<string, any>} */
export const listeners = {};
/** What the page asked of the screen, by its words. @type {Record<string, any>} */
export const media = {};
/** What watches nodes, as something that is listened to. @param {string} called @param {any[]} given */
const watcher = (called, given) => class {
    constructor(fn) {
        heard.push({ on: { called, removeEventListener() {} }, type: 'change', fn: () => fn(given) });
    }
    observe(node) {
        done.push(`${called}: watches ${node.called}`);
    }
    disconnect() {
        done.push(`${called}: watches no more`);
    }
};
const noting = (called) => new Proxy({}, { get: (_, verb) => (verb === 'then' ? undefined : (...given) => void done.push(`${called}.${String(verb)} ${given.map(plain).join(' ')}`.trim())) });
Object.assign(globalThis, {
    window: globalThis, innerWidth: 1200, innerHeight: 800, isSecureContext: true, localStorage: makeStorage(kept),
    matchMedia: (query) => (media[query] ??= Object.assign(new EventTarget(), { matches: false })), Node: { ELEMENT_NODE: 1 }, print: () => done.push('prints'), addEventListener: (type, fn) => heard.push({ on: { called: 'window', removeEventListener() {} }, type, fn: (listeners[type] = fn) }), removeEventListener: (type) => delete listeners[type], dispatchEvent: (event) => done.push(`the window tells ${event.type}`),
    requestAnimationFrame: (fn) => setTimeout(fn, 16), getSelection: () => ({ isCollapsed: true, rangeCount: 0, toString: () => '', removeAllRanges: () => void done.push('nothing is selected any more') }), getComputedStyle: () => ({ direction: 'ltr', lineHeight: '20px', getPropertyValue: () => '' }),
    IntersectionObserver: watcher('what is near', [{ isIntersecting: true }]), ResizeObserver: watcher('what grows', []),
    location: Object.assign(new URL('http://host/#/'), { reload: () => done.push('the page is loaded anew') }), history: noting('history'), confirm: (words) => Boolean(done.push(`asked: ${words}`)),
    FormData: class { get(name) { return Node.found[`typed ${name}`] ?? ` typed ${name} `; } getAll(name) { return Node.found[`chosen ${name}`] ?? []; } },
    CSS: { supports: () => true },
});
Object.defineProperty(globalThis, 'navigator', { configurable: true, value: { onLine: true, language: 'en', clipboard: { writeText: async (text) => void done.push(`copies ${plain(text)}`) } } });
URL.createObjectURL = () => 'blob:x';

/** Something whose verbs are noted. @param {string} called @param {any} data @param {string[]} verbs */
export function madeUp(called, data = {}, verbs = []) {
    const thing = Object.assign(new EventTarget(), data);
    Object.defineProperties(thing, { isMadeUp: { value: true }, called: { value: called } });
    for (const verb of verbs) thing[verb] ??= (...given) => void done.push(`${called}.${verb} ${given.map(plain).join(' ')}`.trim());
    return thing;
}

/** A connection whose replies are given by path, or by method and path: [body, status], or nothing where the server is away. @param {Record<string, any>} replies */
export const wire = (replies = {}, more = {}) => madeUp('connection', {
    state: 'open', key: '', server: null, failures: 0,
    async fetch(path, { method = 'GET', body, headers, cache } = {}) {
        done.push(['asks', method, path, body ?? '', headers?.['X-Api-Key'] ? 'with the key' : '', cache ?? ''].filter(Boolean).join(' '));
        const given = replies[`${method} ${path}`] ?? replies[path];
        const said = typeof given === 'function' ? given() : given;
        if (!said) throw new TypeError('network');
        return new Response(JSON.stringify(said[0]), { status: said[1] ?? 200 });
    },
    ...more,
}, ['connect', 'setKey', 'retry', 'retryNow']);

const { Chat } = await withoutBrowser('state/chat.js');
const VERBS = Object.getOwnPropertyNames(Chat.prototype).filter((name) => name !== 'constructor' && typeof Object.getOwnPropertyDescriptor(Chat.prototype, name).value === 'function');

/** A chat with these messages, each behind the one before unless it says otherwise. @param {any[]} messages @param {any} more */
export function chatOf(messages = [], more = {}) {
    const settings = { newChat: {}, theme: 'dark', language: '', textSize: 'normal', enterSends: true, follow: true, notify: false, imageSize: 1 << 20, videoRate: 0, apiKey: '', ...more.kept };
    const all = messages.map((one, i) => ({ parent: messages[i - 1]?.id ?? null, status: 'done', attachments: [], text: '', ...one }));
    return madeUp('chat', {
        current: { id: 'c1', title: 'Title', head: all.at(-1)?.id ?? null, messages: Object.fromEntries(all.map((one) => [one.id, one])), options: {}, ...more.current },
        list: [], progress: new Map(), unread: new Set(), stored: { used: 2048, most: 0 }, models: [], queue: [], model: {}, running: new Map(),
        history: madeUp('history', { remote: false, available: true, movable: 0, waiting: new Set(), ...more.history }, ['move', 'save']),
        settings: { get: (name) => settings[name], set: (name, value) => void done.push(`settings.set ${name} ${plain(value)}`) },
        connection: wire(), uploads: madeUp('uploads', { progressOf: () => null, stateOf: () => null }, ['start', 'cancel', 'retry']),
        isRunning: () => false, isBusy: () => false, ...Object.fromEntries(Object.entries(more).filter(([name]) => !['kept', 'current', 'history'].includes(name))),
    }, VERBS);
}

const lines = (text) => text.replace(/(?<=>)(?=<(?!\/))|(?<=<\/\w[\w-]*>)(?=[^<\s]|<)/g, '\n').split('\n').map((line) => `    ${line.trim()}`);
const fields = (view, given) => Object.fromEntries(Object.entries(view).filter(([name, value]) => !/^_|^render|^has|^is[A-Z]|[tT]imer$|^(?:counting|memo|selecting|countdown)$/.test(name) && !(name in given && typeof value === 'object')).map(([name, value]) => [name, value?.isMadeUp ? 'made up' : plain(value)]));

/** What is in one list and not in the other. @param {string[]} list @param {string[]} other */
function without(list, other) {
    const left = [...other];
    return list.filter((line) => {
        const at = left.indexOf(line);
        if (at >= 0) left.splice(at, 1);
        return at < 0;
    });
}

/** Stands for lines that are not written. @param {string[]} list */
const sum = (list) => createHash('sha256').update(list.join('\n')).digest('hex').slice(0, 8);

async function make(one) {
    random = 0;
    time.begin();
    document.title = '';
    done.length = 0;
    Node.found = { ...(typeof one.found === 'function' ? one.found() : one.found) };
    kept.clear();
    for (const [name, value] of Object.entries(one.stored ?? {})) kept.set(name, JSON.stringify(value));
    if (one.render) return { render: one.render };
    for (const { on, type, fn } of heard.splice(0)) on.removeEventListener(type, fn); // of the one before
    const view = new (elementOf(one.element))();
    done.splice(0, done.length, ...done.filter((line) => line !== 'is drawn anew'));
    assert.equal(view.createRenderRoot(), view, 'the page\'s styles are for what stands in it');
    const given = one.given();
    Object.assign(view, given);
    heard.length = 0;
    const changed = new Map(Object.keys(given).map((name) => [name, undefined]));
    view.willUpdate?.(changed);
    moves(view, 'connectedCallback');
    if (one.begins !== false) view.firstUpdated?.(changed);
    view.updated?.(changed);
    drawn.set(view, { ...view });
    await time.settle();
    await one.after?.(view);
    await time.settle();
    draw(view);
    return view;
}

/** What the fields of an element were when it was drawn last. @type {WeakMap<any, any>} */
const drawn = new WeakMap();

/** What Lit does behind a change of fields, but for the drawing. @param {any} view */
function draw(view) {
    const was = drawn.get(view);
    const changed = new Map(Object.keys(view.constructor.properties).filter((name) => view[name] !== was[name]).map((name) => [name, was[name]]));
    if (!changed.size) return;
    view.willUpdate?.(changed);
    drawn.set(view, { ...view });
    view.updated?.(changed);
}

/** Something happens to an element, to whom it listens. @param {string} type @param {any} event */
export const hears = (type, event = {}) => async (view) => {
    for (const one of heard.filter((one) => one.type === type)) await one.fn.call(view, event);
};

/** A press, or what else happens at a handler, with an event of its own. @param {string} name as in the files, or a part of the tag @param {any} more */
export const presses = (name, more = {}) => (view) => {
    const handlers = [];
    const text = flat(view.render(), handlers);
    const all = handlers.map((_, i) => tagOf(text, i));
    const called = all.findIndex((one) => `${one.type} ${one.name}`.startsWith(name));
    const at = called >= 0 ? called : all.findIndex(({ tag }) => tag.includes(name));
    assert.ok(at >= 0, `nothing is called ${name}`);
    const event = { target: new Node('it'), preventDefault: () => done.push('not what the browser does'), stopPropagation: () => done.push('goes no further'), ...more };
    return (handlers[at].handleEvent?.bind(handlers[at]) ?? handlers[at]).call(view, event);
};

/** It enters the page or leaves it, without what Lit does then, which must be called. @param {any} view @param {'connectedCallback'|'disconnectedCallback'} name */
function moves(view, name) {
    const own = Object.getPrototypeOf(view);
    if (!Object.hasOwn(own, name)) return;
    let n = 0;
    Object.defineProperty(Object.getPrototypeOf(own), name, { configurable: true, value: () => (n += 1) });
    view[name]();
    assert.equal(n, 1, `${name} of ${own.constructor.name} calls Lit's own`);
}

/** Lines of a change that are written; the others have a sum. */
const MOST = 10;
const KEYS = ['Enter', 'Escape', 'ArrowDown', 'ArrowUp', 'ArrowLeft', 'ArrowRight', 'Home', 'End', 'Tab', 'x'];

/** What can happen at a handler. @param {string} type @param {string} tag @param {any} one */
function happenings(type, tag, one) {
    const event = (says, fieldsOfTarget = {}, more = {}) => {
        const target = new Node('it', fieldsOfTarget);
        return [says, {
            isMadeUp: true, type, target, currentTarget: target, button: 0, detail: undefined, composedPath: () => [target], ...more,
            preventDefault: () => done.push('not what the browser does'), stopPropagation: () => done.push('goes no further'),
        }];
    };
    if (/^key/.test(type)) return (one.keys ?? KEYS).map((key) => event(` ${key}`, { value: 'typed' }, { key: key.replace(/.*\+/, ''), shiftKey: /Shift/.test(key), ctrlKey: /Ctrl/.test(key) }));
    if (/^(change|input)$/.test(type) && /type="(checkbox|radio)"/.test(tag)) return [true, false].map((checked) => event(checked ? ' on' : ' off', { checked }));
    if (type === 'change' && /type="file"/.test(tag)) return [event('', { files: [new File(['x'], 'a.json')], value: 'a.json' })];
    if (/^(change|input)$/.test(type)) return (one.typed ?? (/type="number"/.test(tag) ? ['', '0.5', '7.6', '-99', '1e9', 'x'] : ['', ' typed '])).map((value) => event(` ${JSON.stringify(value)}`, { value }));
    if (/toggle$/.test(type)) return ['open', 'closed'].map((newState) => event(` ${newState}`, { open: newState === 'open' }, { newState }));
    if (/^(submit|blur)$/.test(type)) return (one.typed ?? ['', ' typed ']).map((value) => event(` ${JSON.stringify(value)}`, { value, elements: new Proxy({}, { get: () => ({ value }) }), querySelector: (selector) => new Node(selector, { value }), closest: (selector) => new Node(`^${selector}`, { querySelector: (inner) => new Node(inner, { value }) }) }));
    return [event('', {}, one.events?.[type] ?? {})];
}

/** @param {string} text @param {number} i */
function tagOf(text, i) {
    const at = text.search(new RegExp(`@[\\w-]+="${i}"`));
    const [begin, end] = [text.lastIndexOf('<', at), text.indexOf('>', at)];
    const [, type] = /@([\w-]+)/.exec(text.slice(at)) ?? [];
    const tag = text.slice(begin, end + 1);
    const words = /^<(?:form|div|details|section)\b/.test(tag) ? '' : text.slice(end + 1, end + 200).split(/<\/?(?:button|a|summary|label|input)\b/)[0];
    const label = /aria-label="([^"]*)"/.exec(tag)?.[1] ?? (words.replace(/<[^>]*>|\([a-z]\w+\)/g, '').trim().slice(0, 60) || /name="([^"]*)"/.exec(tag)?.[1]) ?? '';
    return { type, tag, name: `${/^<([\w-]+)/.exec(tag)?.[1]} ${label}`.trim() };
}

/** @param {any} one @param {string[]} before what the state before it showed
 * @param {Set<string>} known what came of things is written once @param {boolean} isFirst of this element */
async function page(one, before, known, isFirst) {
    const out = [`## ${one.says}`];
    const view = await make(one);
    out.push(...done.map((line) => `begins: ${line}`));
    const handlers = [];
    const text = flat(view.render(), handlers);
    const whole = lines(text.replace(/ @[\w-]+="\d+"/g, ''));
    const [less, more] = [without(before, whole), without(whole, before)];
    if (one.brief) out.push(`as elsewhere (${sum(whole)})`);
    else if (less.length + more.length < whole.length / 2) out.push(`as before, but for these lines (${sum(whole)}):`, ...less.map((line) => `  - ${line.trim()}`), ...more.map((line) => `  + ${line.trim()}`));
    else out.push(...whole);
    /** @param {string} what @param {any} event @param {(view: any, handlers: any[]) => any} act */
    const happens = async (what, event, act, isWhole = false) => {
        const next = await make(one);
        const again = [];
        const shown = lines(flat(next.render(), again).replace(/ @[\w-]+="\d+"/g, ''));
        const given = one.given?.() ?? {};
        const was = fields(next, given);
        const keptWas = kept.get(one.kept);
        const titleWas = document.title;
        done.length = 0;
        try {
            await (isWhole ? act(next, again) : Promise.race([act(next, again), time.settle()]));
            if (one.until) await time.until(() => one.until(next));
            await time.pass(one.waits ?? 0);
            if (one.element) draw(next);
        } catch (error) {
            done.push(`fails: ${error.message}`);
        }
        const told = done.slice();
        for (const [key, value] of Object.entries(fields(next, given))) if (value !== was[key]) told.push(`${key} = ${value}`);
        if (document.title !== titleWas) told.push(`the title is ${document.title}`);
        if (kept.get(one.kept) !== keptWas) told.push(`keeps ${kept.get(one.kept)}`);
        const shows = one.render ? shown : lines(flat(next.render(), []).replace(/ @[\w-]+="\d+"/g, ''));
        const moved = [...without(shown, shows).map((line) => `- ${line.trim()}`), ...without(shows, shown).map((line) => `+ ${line.trim()}`)];
        const came = [what, ...told, ...moved].join('\n');
        if ((told.length || moved.length) && !known.has(came)) out.push(what, ...[...told, ...moved.slice(0, MOST), ...(moved.length > MOST ? [`and ${moved.length - MOST} more (${sum(moved)})`] : [])].map((line) => `    ${line}`));
        known.add(came);
    };
    for (let i = 0; i < handlers.length; i += 1) {
        const { type, tag, name } = tagOf(text, i);
        if (one.presses && !one.presses.test(`${type} ${name}`)) continue;
        for (const [says, event] of happenings(type, tag, one)) await happens(`${type} ${name}${says}`, event, (next, again) => (again[i].handleEvent?.bind(again[i]) ?? again[i]).call(next, event));
    }
    if (one.element && isFirst && !one.brief) {
        // What it listens to, and each of its fields alone, which is changed.
        const event = () => ({ isMadeUp: true, target: new Node('it'), key: 'x', detail: one.details ?? {}, newState: 'open', dataTransfer: { types: [] }, preventDefault: () => done.push('not what the browser does') });
        await make(one);
        for (const [i, { on, type }] of [...heard.entries()]) await happens(`hears ${type} of ${on === view ? 'itself' : on.called || 'something'}`, event(), (next) => heard[i].fn.call(next, event()));
        if (view.willUpdate || view.updated)
            for (const name of Object.keys(one.given())) await happens(`another ${name}`, {}, (next) => (next.willUpdate?.(new Map([[name, undefined]])), next.updated?.(new Map([[name, undefined]]))));
    }
    for (const [says, act] of Object.entries(one.does ?? {})) await happens(says, {}, act, true);
    if (one.element) {
        const last = await make(one);
        const heard = Object.keys(listeners).length;
        done.length = 0;
        moves(last, 'disconnectedCallback');
        document.hidden = false; // what runs on unseen is seen
        await time.pass(2000);
        document.hidden = true;
        if (Object.keys(listeners).length < heard) done.push('hears no more of the window');
        if (done.length && !known.has(done.join())) out.push('it leaves the page', ...done.map((line) => `    ${line}`));
        known.add(done.join());
    }
    return { text: out.join('\n'), whole };
}

/** The test of shown/NAME.txt. @param {string} name @param {any[]} states */
export function written(name, states) {
    const place = new URL(`shown/${name}.txt`, import.meta.url);
    test(name, async () => {
        const [all, known] = [[], new Set()];
        for (const [i, one] of states.entries()) {
            const isFirst = i === 0 || states[i - 1].element !== one.element;
            all.push(await page(one, isFirst ? [] : all[i - 1].whole, known, isFirst));
        }
        const text = `${all.map((one) => one.text).join('\n\n')}\n`;
        if (process.env.PARLEY_WRITE) writeFileSync(place, text);
        const [is, was] = [text, readFileSync(place, 'utf8')].map((one) => one.split('\n'));
        const at = is.findIndex((line, i) => line !== was[i]);
        if (at >= 0 || is.length !== was.length) assert.fail(`${place.pathname}:${at + 1}: expected\n${was.slice(at, at + 3).join('\n')}\nbut it is\n${is.slice(at, at + 3).join('\n')}`);
    });
}
