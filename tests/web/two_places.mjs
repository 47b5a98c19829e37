/**
 * The same chats in two places at once: two tabs of one browser, whose chats the browser or the
 * server keeps, or two browsers whose chats the server keeps. Random operations in either and in both at the same moment; a model says what must
 * be there, and in the end both show the same.
 *
 *     node tests/web/two_places.mjs [operations] [seed] [tabs|kept-tabs|browsers]     1000, 1, all
 *
 * The sample that two_places.test.mjs plays is the same with fewer operations. Needs parley_fake
 * beside PARLEY_BIN.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { launch, openChat, until, watch } from './helpers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const program = join(dirname(process.env.PARLEY_BIN ?? join(root, 'build/parley')), 'parley_fake');
export const skip = existsSync(program) ? false : `there is no ${program}`;
/** Where the places are, and who keeps the chats. */
export const FORMS = { tabs: { tabs: true, history: false, name: 'two tabs' }, 'kept-tabs': { tabs: true, history: true, name: 'two tabs, the chats on the server' }, browsers: { tabs: false, history: true, name: 'two browsers, the chats on the server' } };
const CHECK_EVERY = 50;
const MAX_CHATS = 8;
const LAST = 400; // operations, and what they did, shown when one fails
const AWAY_ONE_IN = 25;
/** What is done, as often as it stands here; and what is done to one chat by both in one moment. */
const KINDS = ['ask', 'ask', 'ask', 'ask', 'edit', 'again', 'words', 'branch', 'branch', 'rename', 'place', 'place', 'erase', 'erase', 'put back', 'copy', 'delete', 'delete several', 'import', 'undo', 'undo', 'undo', 'switch', 'switch', 'new', 'stop', 'reload'];
const MEETING = ['ask', 'ask', 'edit', 'words', 'again', 'rename', 'place', 'erase', 'delete', 'delete'];

/** Numbers that a seed decides: below `n`. */
function dice(seed) {
    let a = seed >>> 0;
    return (n) => {
        a = (a + 0x6d2b79f5) >>> 0;
        let t = Math.imul(a ^ (a >>> 15), a | 1);
        t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
        return ((t ^ (t >>> 14)) >>> 0) % n;
    };
}

// ---- in the page ----

/** One operation as a person does it; resolves with what it made (a list where it is about several
 * chats), null where the page offers nothing to do it with. With `leaves` the page is reloaded in
 * the same moment, and the result is found in the next one. */
async function act(action) {
    const done = window.perform(action);
    if (!action.leaves) return done;
    done.then((result) => sessionStorage.setItem('result', JSON.stringify(result)));
    await null; // what waits for nothing is done
    location.reload();
    return null;
}

async function perform({ kind, pick, text, here, leaves }) {
    const { chat } = document.querySelector('parley-app');
    const { current, list } = chat;
    const shown = [];
    for (let m = current.messages[current.head]; m; m = current.messages[m.parent]) if (!m.erased) shown.unshift(m);
    const any = (all) => all[pick % all.length];
    /** Deletes, and notes what can be taken back: what another one deleted in the same moment cannot. */
    const noting = async (work) => {
        const { history } = chat;
        const chats = [];
        history.remove = (conversation) => {
            if (conversation.head) chats.push(conversation.id);
            return Object.getPrototypeOf(history).remove.call(history, conversation);
        };
        const hear = ({ detail }) => {
            if (detail.undo) window.undo = { chats, run: detail.undo };
        };
        chat.addEventListener('notice', hear);
        await work();
        chat.removeEventListener('notice', hear);
        delete history.remove;
    };
    const entry = here ? list.find(({ id }) => id === here) : list.length ? any(list) : null;
    const made = (before) => Object.values(current.messages).filter(({ id }) => !before.has(id)).map(({ id, parent, role, text: words }) => ({ id, parent, role, text: words }));
    const before = new Set(Object.keys(current.messages));
    const questions = shown.filter(({ role }) => role === 'user');
    const answers = shown.filter(({ role, status }) => role === 'assistant' && status !== 'streaming');
    switch (kind) {
        case 'ask':
            if (chat.busy) {
                chat.enqueue(text, []);
                return { chat: current.id, waits: [text] };
            }
            chat.send(text, []);
            break;
        case 'edit':
            if (chat.busy || !questions.length) return null;
            chat.editQuestion(any(questions).id, text, []);
            break;
        case 'again':
            if (chat.busy || !answers.length || current.messages[any(answers).parent]?.erased) return null;
            chat.regenerate(any(answers).id);
            break;
        case 'words':
            if (chat.busy || !answers.length) return null;
            chat.editAnswer(any(answers).id, text);
            break;
        case 'branch': {
            const others = Object.values(current.messages).filter((m) => !m.erased && shown.some((one) => one !== m && one.parent === m.parent && one.role === m.role));
            if (!others.length) return null;
            chat.show(any(others));
            return { chat: current.id };
        }
        case 'rename':
            if (!entry || !(leaves || (await chat.read(entry.id)))) return null; // what the server alone has cannot be changed without it
            {
                const renamed = chat.rename(entry.id, text);
                if (!leaves) await renamed;
            }
            return { chat: entry.id, title: text };
        case 'place': {
            if (!entry || !(await chat.read(entry.id))) return null;
            const change = [{ folder: text }, { pinned: true }, { archived: true }, { folder: '' }, { pinned: false }, { archived: false }][pick % 6];
            await chat.setPlace(entry.id, change);
            const now = chat.live.get(entry.id)?.place ?? (await chat.history.load(entry.id))?.place;
            return { chat: entry.id, place: now ?? {} };
        }
        case 'erase': {
            if (chat.busy || !shown.length) return null;
            const before = new Map(Object.values(current.messages).filter((m) => !m.erased).map((m) => [m.id, m.text]));
            const hear = ({ detail }) => (window.putBack = { chat: current.id, run: detail.undo });
            chat.addEventListener('notice', hear);
            chat.erase(any(shown).id);
            chat.removeEventListener('notice', hear);
            const gone = Object.values(current.messages).filter((m) => m.erased && before.has(m.id)); // an answer stopped at once has no words
            return { chat: current.id, gone: gone.map(({ id }) => id), words: gone.map(({ id }) => before.get(id)).filter(Boolean) };
        }
        case 'put back': {
            const { putBack } = window;
            if (!putBack) return null;
            delete window.putBack;
            if (putBack.chat !== current.id || chat.busy) return null;
            putBack.run();
            return { chat: current.id };
        }
        case 'copy':
            if (chat.busy || !shown.length) return null;
            await chat.branchInto(any(shown).id);
            return { chat: chat.current.id, made: Object.values(chat.current.messages).map(({ id, parent, role, text: words }) => ({ id, parent, role, text: words })) };
        case 'delete':
            if (!entry) return null;
            {
                // What is seen is deleted knowingly; a chat that is not in memory is read first.
                const live = chat.live.get(entry.id);
                const saw = live ? [...Object.values(live.messages).flatMap((one) => [one.id, one.text]), ...(live.queue ?? []).map((one) => one.text)] : null;
                await noting(() => chat.remove(entry.id));
                return { chat: entry.id, deleted: true, saw };
            }
        case 'delete several': {
            const chosen = list.slice(0, 1 + (pick % 3));
            const saw = new Map(chosen.map(({ id }) => [id, chat.live.get(id)]));
            const results = chosen.map(({ id }) => ({ chat: id, deleted: true, saw: saw.get(id) ? [...Object.values(saw.get(id).messages).flatMap((one) => [one.id, one.text]), ...(saw.get(id).queue ?? []).map((one) => one.text)] : null }));
            await noting(() => chat.removeAll(chosen.map(({ id }) => id)));
            return results;
        }
        case 'undo': {
            const { undo } = window;
            if (!undo) return null;
            delete window.undo;
            await undo.run();
            return undo.chats.map((id) => ({ chat: id, restored: true }));
        }
        case 'import': {
            // One of three files; what is there already stays alone.
            const transfer = await import(new URL('js/state/transfer.js', document.baseURI).href).catch(() => null); // not without a server
            if (!transfer) return null;
            const { fromJson, notThere } = transfer;
            const name = `file ${pick % 3}`;
            const said = (id, parent, role, words, created) => ({ id, parent, role, text: words, created, status: 'done' });
            const chats = [1, 2].map((n) => ({ title: `${name} ${n}`, created: n, updated: n, head: 'b', messages: [said('a', null, 'user', `asked in ${name} ${n}`, 10 * n), said('b', 'a', 'assistant', `words of ${name} ${n}`, 10 * n + 1)] }));
            const fresh = notThere(fromJson(JSON.stringify({ format: 'parley-chats', version: 1, chats })), await chat.all());
            const results = fresh.map(({ id, title, messages }) => ({ chat: id, title, made: Object.values(messages).map(({ id: m, parent, role, text: words }) => ({ id: m, parent, role, text: words })) }));
            await chat.add(fresh);
            return results;
        }
        case 'switch':
            if (!entry) return null;
            location.hash = `#/c/${entry.id}`;
            return { chat: entry.id };
        case 'new':
            chat.newChat();
            return null;
        case 'stop':
            if (chat.busy) chat.stop();
            return null;
    }
    return { chat: current.id, made: made(before) };
}

/** All that this place has kept, and what it shows. */
async function look() {
    const app = document.querySelector('parley-app');
    const { chat } = app;
    const whole = ({ id, title, head, messages, queue, place = {} }) => ({
        id, title, head, place, queue: (queue ?? []).map(({ text }) => text),
        messages: Object.fromEntries(Object.values(messages).map(({ id: name, parent, role, text, status, erased = false }) => [name, { parent, role, text, status, erased }]).sort(([a], [b]) => (a < b ? -1 : 1))),
    });
    const kept = {};
    for (const { id } of await chat.history.list()) {
        const one = await chat.history.load(id);
        if (one) kept[id] = whole(one);
    }
    await app.updateComplete;
    return {
        kept,
        list: Object.fromEntries(chat.list.map(({ id, title }) => [id, title])),
        rows: [...document.querySelectorAll('.chat-list .entry-title')].map((one) => one.textContent).sort(),
        current: chat.current.head ? whole(chat.current) : null,
        questions: [...document.querySelectorAll('chat-message .question .bubble')].map((one) => (one.querySelector('[dir]') ?? one).textContent),
        running: chat.runs.size + [...(chat.history.writes?.keys() ?? [])].length,
    };
}

/** The exported file, as text. */
async function exported() {
    const { toJson } = await import(new URL('js/state/transfer.js', document.baseURI).href);
    return toJson(await document.querySelector('parley-app').chat.all());
}

// ---- outside ----

/** Whether one of the operations deleted this knowingly. */
const isErased = (results, chat, what) => results.some((one) => one.deleted && one.chat === chat && (!one.saw || one.saw.includes(what)));

/** What must be there. */
class Model {
    constructor() {
        /** @type {Map<string, {titles: Set<string>, messages: Map<string, any>}>} */
        this.chats = new Map();
        /** Deleted chats as they were, by the place that can take them back. */
        this.gone = new Map();
        /** Messages that somebody deleted. @type {Set<string>} */
        this.erased = new Set();
        this.stayed = 0;
        this.anew = 0;
    }

    chat(id) {
        if (!this.chats.has(id)) this.chats.set(id, { titles: new Set(), places: new Set(), messages: new Map() });
        return this.chats.get(id);
    }

    /** @param {any[]} results of operations at one moment @param {Record<string, any>} kept */
    note(results, kept) {
        for (const { chat, made = [] } of results) for (const message of made) this.chat(chat).messages.set(message.id, message);
        for (const { chat, deleted, saw, place } of results) {
            if (!deleted || !this.chats.has(chat)) continue;
            // Where it stays, or is made anew, this place can still put back what it had of it.
            const others = new Set(results.filter((one) => one.chat === chat && one.place !== place).flatMap(({ made = [] }) => made.map(({ id }) => id)));
            const had = [...this.chats.get(chat).messages].filter(([id]) => !others.has(id) && (!saw || saw.includes(id)));
            if (chat in kept) this.gone.set(`${place} ${chat}`, { messages: new Map(had) });
            const fresh = results.filter((other) => other.chat === chat).flatMap(({ made = [], waits = [] }) => [...made, ...waits]).filter((one) => !isErased(results, chat, one.id ?? one));
            if (!(chat in kept)) {
                assert.deepEqual(fresh, [], `a chat was deleted with what was written to it at the same moment: ${chat}`);
                this.gone.set(`${place} ${chat}`, this.chats.get(chat));
                this.chats.delete(chat);
            } else if (results.some((other) => other.chat === chat && (other.made || other.waits || other.restored))) {
                // Kept or made anew by who wrote to it: that and what it stands on must be there.
                this.anew += 1;
                const { messages } = kept[chat];
                for (const { id } of fresh.filter((one) => one.id)) for (let at = id; at; at = messages[at].parent) assert.ok(messages[at], `lost: ${at} of ${chat}`);
                for (const id of this.chats.get(chat).messages.keys()) if (!messages[id]) this.chats.get(chat).messages.delete(id);
            } else this.stayed += 1;
        }
        for (const { chat, restored, place } of results) {
            // Taken back and deleted again at the same moment: either may have been the last.
            if (!(chat in kept) && results.some((one) => one.deleted && one.chat === chat)) continue;
            const gone = restored && this.gone.get(`${place} ${chat}`);
            for (const message of gone ? gone.messages.values() : []) this.chat(chat).messages.set(message.id, message);
            assert.ok(!restored || chat in kept, `taken back, and not there: ${chat}`);
            if (restored) Object.assign(this.chat(chat), { titles: new Set(), places: new Set() }); // as it was there
        }
        for (const { gone = [] } of results) for (const id of gone) this.erased.add(id);
        // Taken back in the same moment it is as it was there, or as it is named now.
        const isLast = ({ chat }) => chat in kept && !results.some((one) => one.restored && one.chat === chat);
        const moved = results.filter((one) => one.where && isLast(one));
        for (const { chat } of moved) this.chat(chat).places = new Set(moved.filter((one) => one.chat === chat).map(({ where }) => JSON.stringify(sorted(where))));
        const renamed = results.filter((one) => one.title && isLast(one));
        for (const { chat } of renamed) this.chat(chat).titles = new Set(renamed.filter((one) => one.chat === chat).map(({ title }) => title));
    }

    /** @param {Record<string, any>} kept */
    check(kept) {
        for (const [id, { titles, places, messages }] of this.chats) {
            const chat = kept[id];
            assert.ok(chat, `the chat ${id} is lost`);
            assert.ok(!titles.size || titles.has(chat.title), `${id} is named ${chat.title}, not ${[...titles]}`);
            assert.ok(!places.size || places.has(JSON.stringify(sorted(chat.place))), `${id} is at ${JSON.stringify(chat.place)}, not ${[...places]}`);
            for (const { id: name, parent, role, text } of messages.values()) {
                const message = chat.messages[name];
                assert.ok(message, `the message ${name} (${role}: ${text}) of ${id} is lost`);
                assert.deepEqual([message.parent, message.role], [parent, role]);
                // What is deleted says nothing; what was written to it since stays.
                if (message.erased) assert.ok(this.erased.has(name) && message.text === '', `${name} was not deleted`);
                else if (role === 'user' || text.startsWith('words ')) assert.equal(message.text, text);
            }
            for (const message of Object.values(chat.messages)) {
                assert.ok(message.parent === null || chat.messages[message.parent], `${id} has a message without its parent`);
                assert.match(message.status, /^(done|stopped)$/);
            }
            assert.deepEqual(chat.queue, []);
        }
        assert.deepEqual(Object.keys(kept).sort(), [...this.chats.keys()].sort());
    }
}

/** Until the page knows where its chats are kept: before, it has none. */
export async function begun(page) {
    await page.locator('chat-composer textarea').waitFor();
    await page.waitForFunction(() => document.querySelector('parley-app').chat.history.available);
}

/** What stands between a browser and the server, so that its network can go away.
 * @param {string} url of the server */
async function startWire(url) {
    const { port } = new URL(url);
    const open = new Set();
    let isCut = false;
    const wire = createServer((near) => {
        if (isCut) return near.destroy();
        const far = connect(Number(port), '127.0.0.1');
        for (const [one, other] of [[near, far], [far, near]]) {
            open.add(one);
            one.on('error', () => {});
            one.on('close', () => (open.delete(one), other.destroy()));
            one.pipe(other);
        }
    });
    await new Promise((resolve) => wire.listen(0, '127.0.0.1', () => resolve(undefined)));
    const cut = (now) => {
        isCut = now;
        if (now) for (const one of open) one.destroy();
    };
    return { url: `http://127.0.0.1:${wire.address().port}/`, cut, stop: () => (cut(true), wire.close()) };
}

/** @param {boolean} history whether the server keeps the chats @param {string[]} [more] arguments */
export async function startServer(history, more = []) {
    const folder = mkdtempSync(join(tmpdir(), 'parley-places-'));
    const child = spawn(program, ['--ui-dir', join(root, 'web'), ...(history ? ['--history', join(folder, 'chats')] : []), ...more]);
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (out += data));
    await until(() => /port (\d+)/.test(out), 'the server to listen');
    const stop = async () => {
        const exited = new Promise((resolve) => child.on('exit', resolve));
        child.kill();
        await exited;
        rmSync(folder, { recursive: true, force: true });
    };
    return { url: `http://127.0.0.1:${/port (\d+)/.exec(out)[1]}/`, stop };
}

/**
 * @param {{form: keyof typeof FORMS, operations: number, seed: number, log?: (text: string) => void}} options
 */
export async function play({ form, operations, seed, log = () => {} }) {
    const { tabs, history } = FORMS[form];
    const server = await startServer(history);
    const browser = await launch();
    const wires = [await startWire(server.url)];
    wires.push(tabs ? wires[0] : await startWire(server.url));
    const first = await openChat(browser, wires[0].url);
    const { faults } = first;
    const second = tabs ? { page: await first.context.newPage(), faults } : await openChat(browser, wires[1].url);
    if (tabs) {
        watch(second.page, wires[1].url, faults);
        await second.page.goto(wires[1].url);
    }
    const pages = [first.page, second.page];
    for (const page of pages) {
        await page.addInitScript({ content: `window.perform = ${perform};` });
        await page.evaluate(`window.perform = ${perform};`);
    }
    for (const page of pages) await begun(page);
    const model = new Model();
    const roll = dice(seed);
    const waiting = new Map();
    const waited = new Set();
    const erased = new Map();
    const done = {};
    let last = [];

    /** Until both places show the same, and nothing is under way; then what is kept is held against
     * the model. */
    const check = async () => {
        let a, b;
        const equal = async () => {
            [a, b] = await Promise.all(pages.map((page) => page.evaluate(look)));
            const isShown = ({ current, kept, list, rows, questions }) => {
                const names = Object.fromEntries(Object.entries(kept).map(([id, { title }]) => [id, title]));
                const path = [];
                for (let m = current?.messages[current.head]; m; m = current.messages[m.parent]) if (m.role === 'user' && !m.erased) path.unshift(m.text);
                return same(list, names) && same(rows, Object.values(names).sort()) && same(questions, path) && (!current || same(current, kept[current.id]));
            };
            return !a.running && !b.running && same(a.kept, b.kept) && isShown(a) && isShown(b);
        };
        await until(equal, 'both places to show the same', 30_000).catch((error) => {
            log(JSON.stringify([a, b], null, 1));
            throw error;
        });
        for (const [text, { chat }] of [...waiting, ...erased]) {
            const asked = Object.entries(a.kept[chat]?.messages ?? {}).filter(([, message]) => message.text === text);
            const isStill = a.kept[chat]?.queue.includes(text);
            if (isStill || !a.kept[chat]) continue;
            assert.ok(asked.length === 1 || (!asked.length && erased.has(text)), `asked ${asked.length} times: ${text}`);
            waiting.delete(text);
        }
        for (const [id, { messages }] of Object.entries(a.kept)) if (Object.values(messages).some(({ text }) => waited.has(text))) model.chat(id); // a waiting question brings its chat back
        model.check(a.kept);
        return a;
    };
    /** A question that waits goes with its chat where that is deleted knowingly, and comes back with
     * it: the server does not keep it, so only in the place where it was asked. */
    const noteWaiting = (results, now) => {
        for (const [text, one] of waiting) {
            if (!isErased(results, one.chat, text)) continue;
            waiting.delete(text);
            erased.set(text, { ...one, by: results.filter((other) => other.deleted && other.chat === one.chat).map(({ place }) => place) });
        }
        for (const { chat, restored, place } of results) {
            if (!restored || !(chat in now) || results.some((other) => other.deleted && other.chat === chat)) continue;
            for (const [text, one] of erased) {
                if (one.chat !== chat || !one.by.includes(place) || (!tabs && one.place !== place)) continue;
                erased.delete(text);
                waiting.set(text, one);
            }
        }
    };
    const kept = async () => (await pages[0].evaluate(look)).kept;

    const operate = async (place, here = '', isAway = false) => {
        const kinds = here ? MEETING : KINDS;
        let kind = kinds[roll(kinds.length)];
        if (/^(new|copy|import)$/.test(kind) && model.chats.size >= MAX_CHATS) kind = 'delete';
        const leaves = roll(8) === 0 && !isAway && /^(ask|edit|words|rename|erase)$/.test(kind);
        if (kind === 'reload' && isAway) kind = 'switch'; // there is no page without its server
        const number = Object.values(done).reduce((sum, one) => sum + one, 0);
        const long = roll(3) === 0 ? '!len=40 !delay=25 ' : '';
        done[kind] = (done[kind] ?? 0) + 1;
        const action = { kind, pick: roll(1 << 20), text: `${kind === 'ask' || kind === 'edit' ? long : ''}${kind} ${number} of ${seed}`, here, leaves };
        const page = pages[place];
        if (leaves) done['and leave'] = (done['and leave'] ?? 0) + 1;
        last = [...last.slice(-LAST), [place, action]];
        let result = null;
        if (kind === 'reload') {
            await page.reload();
            await begun(page);
        } else if (leaves) {
            const loaded = page.waitForEvent('load');
            await page.evaluate(act, action).catch(() => {}); // it goes while it answers
            await loaded;
            await begun(page);
            result = JSON.parse(await page.evaluate(() => sessionStorage.getItem('result')));
        } else result = await page.evaluate(act, action);
        if (result) last.push([place, result]);
        return [result].flat().filter(Boolean).map((one) => ({ where: one.place, ...one, place }));
    };

    /** The network of a place goes, something is done there and in the other one, and it comes back.
     * Where the server keeps the chats, they meet again only then. */
    const goAway = async (place) => {
        done.away = (done.away ?? 0) + 1;
        last.push([place, 'away']);
        wires[place].cut(true);
        await until(() => pages[place].evaluate(() => !/^(open|fallback)$/.test(document.querySelector('parley-app').chat.connection.state)), 'the network to be gone');
        const results = [];
        for (let i = 0, end = 1 + roll(4); i < end; i += 1) {
            const where = roll(3) === 0 ? 1 - place : place;
            results.push(...(await operate(where, '', where === place || tabs)));
        }
        wires[place].cut(false);
        last.push([place, 'back']);
        for (const page of pages) await page.evaluate(() => document.querySelector('parley-app').chat.connection.retryNow());
        const isBack = () => Promise.all(pages.map((page) => page.evaluate(() => {
            const { connection, history: kept } = document.querySelector('parley-app').chat;
            return connection.state === 'open' && !(kept.waiting?.size || kept.writes?.size) && !Object.keys(JSON.parse(localStorage.getItem('parley.removed') ?? '{}')).length;
        }))).then((all) => all.every(Boolean));
        await until(isBack, 'what was done without a network to be kept', 60_000);
        // Of several names of one chat the last counts, in each place.
        const isLast = (one, at, name) => !results.some((other, i) => i > at && other.chat === one.chat && other.place === one.place && other[name]);
        return results.map((one, at) => ({ ...one, title: isLast(one, at, 'title') && one.title, where: isLast(one, at, 'where') && one.where }));
    };

    try {
        for (let n = 0, checked = 0; n < operations; ) {
            const isAway = roll(AWAY_ONE_IN) === 0;
            const both = roll(3) === 0 && !isAway && n + 1 < operations;
            const places = both ? [0, 1] : [roll(2)];
            const meet = both && model.chats.size && roll(2) === 0 ? [...model.chats.keys()][roll(model.chats.size)] : '';
            if (meet) await Promise.all(pages.map((page) => page.evaluate((id) => document.querySelector('parley-app').chat.open(id), meet)));
            const results = isAway ? await goAway(places[0]) : (await Promise.all(places.map((place) => operate(place, meet)))).flat();
            n = Object.values(done).reduce((sum, one) => sum + one, 0) - (done['and leave'] ?? 0) - (done.away ?? 0);
            for (const { waits = [], chat, place } of results) for (const text of waits) waiting.set(text, { chat, place }), waited.add(text);
            for (const text of results.flatMap(({ words = [] }) => words)) waiting.delete(text), erased.delete(text), waited.delete(text);
            let now = {};
            if (results.some(({ made, deleted, restored, title, where, gone }) => made || deleted || restored || title || where || gone)) {
                // What was acknowledged is kept: seen from the other place too.
                const isKept = async () => {
                    now = await kept();
                    return results.every(({ chat, made = [] }) => made.every(({ id }) => now[chat]?.messages[id] || (!(chat in now) && isErased(results, chat, id))));
                };
                await until(isKept, `${JSON.stringify(results)} to be kept`, 30_000);
                model.note(results, now);
                noteWaiting(results, now);
            }
            if (n - checked >= CHECK_EVERY || n >= operations) {
                // What waits behind a stopped answer is the user's to send: here it is taken away.
                await settle(pages);
                for (const [id, one] of Object.entries((await check()).kept)) for (const [name, message] of Object.entries(one.messages)) if (!message.erased || !model.chat(id).messages.has(name)) model.chat(id).messages.set(name, { id: name, ...message });
                checked = n;
                log(`${n} operations, ${model.chats.size} chats`);
            }
        }
        const file = (await Promise.all(pages.map((page) => page.evaluate(exported)))).map((text) => JSON.parse(text).chats);
        for (const chats of file) {
            assert.deepEqual(chats.map(({ id }) => id).sort(), [...model.chats.keys()].sort());
            for (const { id, messages } of chats) for (const name of model.chats.get(id).messages.keys()) assert.ok(messages.some((one) => one.id === name), `${name} is not in the export`);
        }
        assert.deepEqual(faults, []);
        const messages = [...model.chats.values()].reduce((sum, one) => sum + one.messages.size, 0);
        return { operations, done, chats: model.chats.size, messages, stayed: model.stayed, anew: model.anew };
    } catch (error) {
        log(`seed ${seed}, the last operations:\n${last.map((one) => JSON.stringify(one)).join('\n')}`);
        throw error;
    } finally {
        await browser.close();
        for (const wire of wires) wire.stop();
        await server.stop();
    }
}

/** Waits for every answer, and sends no more: a question behind a stopped answer waits for the
 * user. */
async function settle(pages) {
    const quiet = async () => {
        const busy = await Promise.all(pages.map((page) => page.evaluate(() => {
            const { chat } = document.querySelector('parley-app');
            for (const entry of chat.busy ? [] : chat.queue) chat.sendQueued(entry);
            return chat.runs.size > 0 || chat.busy;
        })));
        return !busy.some(Boolean);
    };
    await until(quiet, 'the answers to end', 60_000);
    // An answer of a chat that nobody shows goes on when it is shown; a question that waits does so in its browser alone.
    for (const page of pages) {
        for (const { id } of await page.evaluate(() => document.querySelector('parley-app').chat.list)) {
            const isOpen = await page.evaluate(async (name) => {
                location.hash = `#/c/${name}`;
                return document.querySelector('parley-app').chat.open(name);
            }, id);
            if (isOpen) await until(quiet, 'the answers of a chat to end', 60_000);
        }
    }
}

const same = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
const sorted = (one) => (one && typeof one === 'object' && !Array.isArray(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => [key, sorted(value)])) : one);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const [operations = '1000', seed = '1', only] = process.argv.slice(2);
    for (const form of only ? [only] : Object.keys(FORMS)) {
        const begun = Date.now();
        const result = await play({ form: /** @type {keyof typeof FORMS} */ (form), operations: Number(operations), seed: Number(seed), log: console.log });
        console.log(`${FORMS[form].name}:`, JSON.stringify(result), `${Math.round((Date.now() - begun) / 1000)} s`);
    }
}
