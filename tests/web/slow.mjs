/** A browser on a slow machine, made on purpose: what a page is told by a task of its own (the end of a dialog, a menu's
 * toggle, a reply, a record that is written, a module that is loaded) comes later than the answer to the test's next
 * question. A test that reads the page without waiting for what it shows fails with it each time, not once in a hundred.
 *
 *     PARLEY_SLOW=250 tests/web/run [FILES]    // milliseconds that each of these takes
 */

/** Runs in the page before anything else. @param {number} ms */
function delayTasks(ms) {
    const later = (run) => setTimeout(run, ms);
    // Events that do not come with the action which caused them: they are stopped, and sent again.
    const again = new WeakSet();
    for (const type of ['close', 'toggle', 'hashchange', 'popstate', 'storage']) {
        window.addEventListener(type, (event) => {
            if (again.has(event) || event.target instanceof HTMLDetailsElement) return;
            event.stopImmediatePropagation();
            const copy = new /** @type {any} */ (event.constructor)(type, event);
            again.add(copy);
            later(() => event.target?.dispatchEvent(copy));
        }, true);
    }
    // Handlers that are set as a property: called later, in the same order.
    const handlers = [[WebSocket, ['onmessage', 'onclose']], [BroadcastChannel, ['onmessage']], [IDBOpenDBRequest, ['onsuccess'], IDBRequest]];
    for (const [kind, names, owner = kind] of handlers) {
        for (const name of names) {
            const { get, set } = Object.getOwnPropertyDescriptor(owner.prototype, name);
            Object.defineProperty(owner.prototype, name, {
                get,
                set(handler) {
                    set.call(this, handler && this instanceof kind ? (event) => later(() => handler.call(this, event)) : handler);
                },
            });
        }
    }
    const { fetch } = window;
    window.fetch = async (...args) => {
        const reply = await fetch(...args);
        await new Promise(later);
        return reply;
    };
    for (const name of ['ResizeObserver', 'IntersectionObserver']) {
        const Observer = window[name];
        window[name] = class extends Observer {
            constructor(seen, options) {
                super((...args) => later(() => seen(...args)), options);
            }
        };
    }
}

/** @param {import('playwright-core').Browser} browser @param {number} ms */
export function slowDown(browser, ms) {
    const make = browser.newContext.bind(browser);
    browser.newContext = async (options) => {
        const context = await make(options);
        await context.addInitScript(delayTasks, ms);
        return context;
    };
    return browser;
}
