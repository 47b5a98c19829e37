/** Elements and templates of Lit as text, without a browser: what of a page its modules need to be loaded, and what a template
 * says.
 *
 *     const { renderBlock } = await withoutBrowser('views/markdown.js');
 *     flat(renderBlock(token))                       // '<p dir="auto">words</p>'; a property is .name="as JSON"
 *     const handlers = [];
 *     flat(view.render(), handlers)                  // '<button @click="0">Use</button>'; handlers[0] is what is called
 *     const view = new (elementOf('model-list'))();  // what it finds in the page are nodes that are made up, see `Node`
 *
 * Import it before what it is to load.
 */
import { setMaxListeners } from 'node:events';

setMaxListeners(0); // every element that is made listens
const elements = new Map();
/** What was done to the page, in words. @type {string[]} */
export const done = [];

/** What listens since this was emptied, to whom. @type {{on: any, type: string, fn: any}[]} */
export const heard = [];
const { addEventListener } = EventTarget.prototype;
EventTarget.prototype.addEventListener = function listen(type, fn, options) {
    heard.push({ on: this, type, fn });
    return addEventListener.call(this, type, fn, options);
};

/** A node that is not there: its verbs are noted, and what is written to it; what it holds is what a test gave it. */
export class Node extends EventTarget {
    /** @param {string} called */
    constructor(called, fields = {}) {
        super();
        Object.defineProperty(this, 'called', { value: called });
        Object.assign(this, fields);
        if (new.target === Node) return new Proxy(this, { set: (own, name, value) => Boolean(done.push(`${called}.${String(name)} = ${plain(value)}`)) && Reflect.set(own, name, value, own) });
    }
    /** Of nodes with these selectors; null in place of a node: it is not there. @type {Record<string, any>} */
    static found = {};
    querySelector(selector) {
        return selector in Node.found ? Node.found[selector] : new Node(`${this.called} ${selector}`.trim());
    }
    closest(selector) {
        return this.querySelector(`^${selector}`);
    }
    querySelectorAll(selector) {
        return [Node.found[`all ${selector}`] ?? []].flat();
    }
    contains() {
        return false;
    }
    matches(selector) {
        return Node.found[`is ${selector}`] ?? false;
    }
    checkVisibility() {
        return true;
    }
    getBoundingClientRect() {
        return { left: 10, right: 110, top: 20, bottom: 60, width: 100, height: 40, ...Node.found.rectangle };
    }
    get classList() {
        const say = (verb) => (...given) => void done.push(`${this.called}.classList.${verb} ${given.join(' ')}`);
        return { add: say('add'), remove: say('remove'), toggle: say('toggle'), contains: () => false };
    }
    get style() {
        return new Proxy({}, { set: (_, name, value) => Boolean(done.push(`${this.called}.style.${String(name)} = ${value}`)), get: (_, name) => (name === 'setProperty' ? (...given) => done.push(`${this.called}.style ${given.join(': ')}`) : '') });
    }
    get parentElement() {
        return new Node(`${this.called} ^`);
    }
    get previousElementSibling() {
        return new Node(`${this.called} before`);
    }
}
for (const verb of ['focus', 'blur', 'select', 'click', 'remove', 'append', 'prepend', 'replaceChildren', 'showModal', 'close', 'showPopover', 'hidePopover', 'scrollIntoView', 'scrollTo', 'setAttribute', 'removeAttribute', 'setSelectionRange', 'setRangeText', 'reportValidity', 'requestSubmit', 'setPointerCapture', 'releasePointerCapture', 'play', 'pause', 'load', 'before', 'after', 'toggleAttribute']) {
    /** @type {any} */ (Node.prototype)[verb] = function verbOf(...given) {
        done.push(`${this.called}.${verb} ${this.download ?? ''}${given.map((one) => (one instanceof Node ? one.called : typeof one === 'string' ? one : JSON.stringify(one))).join(' ')}`.trim());
    };
}

Object.defineProperty(Node.prototype, 'value', { value: '', writable: true });
Object.defineProperty(Node.prototype, 'dataset', {
    get: () => ({}),
    set(value) {
        Object.defineProperty(this, 'dataset', { value, configurable: true, writable: true });
    },
});

/** The page: what is written to it stands in it. */
class Page extends Node {}

class Element extends Node {
    constructor() {
        super('');
    }
    isConnected = true;
    get firstElementChild() {
        return this.querySelector(':first-child');
    }
    get updateComplete() {
        return Promise.resolve();
    }
    dispatchEvent(event) {
        done.push(`tells ${event.type}${event.detail === undefined || event.detail === null ? '' : ` ${plain(event.detail)}`}${event.bubbles ? '' : ', which stays'}`);
        return super.dispatchEvent(event);
    }
}

Object.assign(globalThis, {
    HTMLElement: Element,
    customElements: { define: (name, made) => elements.set(name, made), get: (name) => elements.get(name), whenDefined: async () => {} },
    document: Object.assign(new Page('document'), {
        hidden: true, baseURI: 'http://host/', createTreeWalker: () => ({}), createComment: () => ({}), createElement: (name) => Node.found[`new ${name}`] ?? new Node(`new ${name}`, name === 'iframe' ? { sandbox: { add: (word) => done.push(`sandbox ${word}`) } } : {}),
        documentElement: new Node('html', { lang: '' }), head: new Node('head'), body: new Node('body'), activeElement: null, getElementById: (id) => Node.prototype.querySelector.call(new Node(''), `#${id}`),
    }),
});

/** The class of an element whose module is loaded. @param {string} name */
export const elementOf = (name) => {
    const made = elements.get(name);
    Object.defineProperty(made.prototype, 'updateComplete', { configurable: true, get: () => Promise.resolve() });
    // Without a name it is asked for, not the work of a field that was written.
    made.prototype.requestUpdate = function asked(field, ...more) {
        if (field === undefined && done.at(-1) !== 'is drawn anew') done.push('is drawn anew');
        Object.getPrototypeOf(made.prototype).requestUpdate.call(this, field, ...more);
    };
    return made;
};

/** @param {string} name of a module in web/js */
export const withoutBrowser = (name) => import(new URL(`../../web/js/${name}`, import.meta.url).href);

/** A value as a short text; of what a test made up only its name. @param {any} value @returns {string} */
export function plain(value) {
    return JSON.stringify(value, (key, one) => (typeof one === 'function' ? 'a function' : one?.kind && one.mime ? `${one.kind} ${one.name}${one.note ? ` (${one.note})` : ''}${one.video ? ` ${JSON.stringify(one.video)}` : ''}${one.blob ? '' : ' without its bytes'}` : one instanceof Node ? `node ${one.called}` : one instanceof Set ? { set: [...one] } : one instanceof Map ? { map: [...one] } : one instanceof Blob ? [one.constructor.name, one.name, one.type, one.size].filter(Boolean).join(' ') : one && typeof one === 'object' && one.toJSON === undefined && /** @type {any} */ (one).isMadeUp ? 'made up' : one === undefined ? 'undefined' : one)) ?? String(value);
}

const { guard, live, repeat } = await import('../../web/vendor/lit.js');
const [LIVE, REPEAT, GUARD] = [live(1), repeat([], () => 1), guard([], () => 1)].map((one) => /** @type {any} */ (one)._$litDirective$);
const { icon } = await withoutBrowser('views/icons.js');
const { readFileSync } = await import('node:fs');
const drawn = new Map([...readFileSync(new URL('../../web/js/views/icons.js', import.meta.url), 'utf8').matchAll(/^ {4}(\w+): svg/gm)].map(([, name]) => [/** @type {any} */ (icon(name)).values[1], name]));

/** @param {any} value a template, a list of them, or a text
 * @param {any[]|null} handlers gets what events call @returns {string} */
export const flat = (value, handlers = null) => raw(value, handlers).replace(/\s+/g, ' ').replace(/> </g, '><').replace(/ >/g, '>');

function raw(value, handlers) {
    if (Array.isArray(value)) return value.map((one) => raw(one, handlers)).join('');
    if (value?._$litDirective$ === LIVE) return raw(value.values[0], handlers);
    if (value?._$litDirective$ === REPEAT) return [...value.values[0]].map((one, i) => raw(value.values.at(-1)(one, i), handlers)).join('');
    if (value?._$litDirective$ === GUARD) return raw(value.values[1](), handlers);
    if (!value?.strings) return ['string', 'number'].includes(typeof value) ? String(value) : '';
    if (handlers && drawn.has(value.values[1])) return `(${drawn.get(value.values[1])})`;
    let text = '';
    value.values.forEach((one, i) => {
        const before = value.strings[i];
        const [whole, sign, name, quote] = /\s([.@?]?)([\w-]+)=(["']?)$/.exec(before.slice(-40)) ?? [];
        const given = one?._$litDirective$ === LIVE ? one.values[0] : one;
        if (!whole || quote) text += before + raw(one, handlers);
        else {
            text += before.slice(0, -whole.length);
            if (sign === '@') text += handlers && given ? ` @${name}="${handlers.push(given) - 1}"` : '';
            else if (sign === '.' && handlers && typeof given === 'function') text += ` .${name}="a function" @${name}="${handlers.push(given) - 1}"`;
            else if (sign === '.') text += ` .${name}=${handlers ? plain(given) : JSON.stringify(given)}`;
            else if (sign === '?' ? given : !sign && typeof given !== 'symbol') text += ` ${name}${sign ? '' : `="${given}"`}`;
        }
    });
    return text + value.strings.at(-1);
}
