/** A page in which tests show the page's elements one by one, each with a chat and a server that are made up.
 *
 *     const { page, close } = await openLab();
 *     await page.evaluate(async () => {
 *         const { at, show, words } = window.lab;
 *         await at('js/views/menu.js');
 *         const view = await show('some-element', { chat });
 *     });
 */
import { launch, openChat } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

export async function openLab() {
    const browser = await launch();
    const server = await startMock();
    const { page, done } = await openChat(browser, server.url);
    // For what is evaluated: modules, an element in a box of its own, its words, and what is pressed.
    await page.evaluate(() => {
        const at = (name) => import(new URL(name, document.baseURI).href);
        const settle = async (element) => {
            for (let i = 0; i < 3; i += 1) {
                await new Promise((resolve) => setTimeout(resolve));
                await element?.updateComplete;
            }
        };
        const until = async (element, isSo) => {
            for (const end = performance.now() + 60_000; !isSo(); await settle(element)) {
                if (performance.now() > end) throw new Error(`timed out waiting for ${isSo}`);
            }
        };
        const words = (root, selector) => [...root.querySelectorAll(selector)].map((one) => one.textContent.replace(/\s+/g, ' ').trim());
        const show = async (name, fields, box = document.createElement('div')) => {
            const element = Object.assign(document.createElement(name), fields);
            box.append(element);
            document.body.append(box);
            await settle(element);
            return element;
        };
        const press = async (root, label) => {
            const button = [...root.querySelectorAll('button, summary, input')].find((one) => (one.getAttribute('aria-label') ?? one.textContent.trim()) === label);
            if (!button) throw new Error(`no button ${label}`);
            button.click();
            await settle(root);
        };
        /** A connection whose replies are given by path. */
        const wire = (replies) => Object.assign(new EventTarget(), {
            asked: [], state: 'open', server: null,
            fetch(path, init = {}) {
                this.asked.push([init.method ?? 'GET', path, init.body ?? '']);
                const [body, status = 200] = typeof replies[path] === 'function' ? replies[path]() : (replies[path] ?? [{}, 404]);
                return Promise.resolve(new Response(JSON.stringify(body), { status }));
            },
        });
        /** A chat that notes which of its verbs were called, and with what. */
        const chatOf = (messages = [], more = {}) => {
            const called = [];
            const chat = Object.assign(new EventTarget(), {
                current: { id: 'c1', title: 'T', head: messages.at(-1)?.id, messages: Object.fromEntries(messages.map((one) => [one.id, one])) },
                progress: new Map(), list: [{ id: 'c1' }], stored: { used: 2048, most: 0 }, history: { remote: false, save: async () => called.push('saved') },
                uploads: Object.assign(new EventTarget(), { progressOf: () => null, start: (one) => called.push(`start ${one.name}`), cancel: (one) => called.push(`cancel ${one.name}`) }),
                ...more,
            });
            for (const verb of ['continueAnswer', 'regenerate', 'show', 'apart', 'branchInto', 'erase', 'newChat', 'editQuestion', 'editAnswer', 'send', 'enqueue', 'unqueue', 'sendQueued', 'stop', 'keepDraft', 'setOption', 'setNewOption', 'keepOptions', 'noteSeen']) {
                chat[verb] ??= (...given) => void called.push(`${verb} ${given.map((one) => one?.id ?? (typeof one === 'string' ? one : JSON.stringify(one?.map?.(({ name }) => name) ?? one))).join(', ')}`.trim());
            }
            chat.called = called;
            chat.news = () => called.splice(0);
            return chat;
        };
        window.lab = { at, chatOf, settle, words, show, press, until, wire };
    });
    const close = async () => {
        await done().finally(() => Promise.all([browser.close(), server.close()]));
    };
    return { browser, server, page, close };
}
