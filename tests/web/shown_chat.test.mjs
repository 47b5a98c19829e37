/** What elements of a conversation show and do, as the files in shown/ say (shown.mjs). */
import { Node, done, elementOf, flat, withoutBrowser } from './made_up_lit.mjs';
import { chatOf, hears, madeUp, presses, time, wire, written } from './shown.mjs';

/** The browser's engines for voices, whose objects are here. */
const voices = { engine: null, spoken: [] };
const Listening = class {
    constructor() {
        voices.engine = this;
    }
    start() {
        done.push(`the engine listens to ${this.lang}, ${this.continuous} ${this.interimResults}`);
    }
    stop() {
        done.push('the engine is to end');
        this.onend();
    }
};
globalThis.SpeechRecognition = Listening; // voice.js takes it as it is loaded

for (const name of ['message', 'composer', 'model-list', 'tools-menu', 'tool-offers', 'tool-view']) await withoutBrowser(`views/${name}.js`);
const { loadHighlighter } = await withoutBrowser('views/highlight.js');
const { readFiles } = await withoutBrowser('state/attachments.js');
await loadHighlighter(); // what is fetched when it is first needed is there
await readFiles([new File(['x'], 'a.json'), new File(['x'], 'a.txt')], { vision: true, video: true, maxImages: 1, already: 0, modelName: '' });
for (const name of ['offers', 'prompts', 'voice']) await withoutBrowser(`views/${name === 'offers' ? 'tool-offers' : name}.js`);
delete globalThis.SpeechRecognition;

const image = (id, more) => ({ id, kind: 'image', name: `${id}.png`, mime: 'image/png', width: 40, height: 20, bytes: 2048, blob: new Blob(['x']), ...more });
const text = (id, more) => image(id, { kind: 'text', name: `${id}.txt`, mime: 'text/plain', width: 0, height: 0, blob: new Blob([`words of ${id}`]), ...more });
const video = (id, more) => image(id, { kind: 'video', name: `${id}.mp4`, mime: 'video/mp4', width: 64, height: 32, seconds: 10, ...more });

/* ---- messages ---- */

const question = { id: 'm1', role: 'user', text: 'Why?', attachments: [image('a'), image('gone', { blob: null }), text('t')] };
const answer = (more) => ({ id: 'm2', role: 'assistant', text: 'Because *so*.', created: 1, model: 'Seedling', ...more });
const timings = { predicted_per_second: 12, predicted_n: 30, predicted_ms: 2500, ttft_ms: 400, prompt_ms: 300, prompt_n: 20, cache_n: 60, queue_ms: 20, media_ms: 30, vision_ms: 40, route: 'media', draft_n: 10, draft_n_accepted: 7, sparse_n: 40, sparse_kept_n: 20 };
const said = (messages, at, more = {}) => () => {
    const chat = chatOf(messages, more.chat);
    const message = chat.current.messages[messages[at].id];
    return { chat, message, siblings: [message], last: at === messages.length - 1, busy: false, ...more.given?.(chat) };
};
const ofAnswer = (more, given, chat) => said([question, answer(more)], 1, { given, chat });
const versions = (chat) => ({ siblings: [chat.current.messages.m2, chat.current.messages.m3] });
const twoAnswers = [question, answer(), answer({ id: 'm3', parent: 'm1', text: 'Or so.', beside: 'm2' })];
written('messages', [
    { says: 'a question with files', element: 'chat-message', given: said([question], 0) },
    { says: 'a question that is changed', element: 'chat-message', presses: /keydown|Cancel|submit/, keys: ['Escape', 'Enter', 'Ctrl+Enter', 'x'], found: { textarea: new Node('textarea', { value: ' typed ' }), 'chosen file': ['a'] }, given: said([question], 0), after: (view) => void (view.editing = true) },
    { says: 'a question without words that is changed', element: 'chat-message', presses: /submit/, given: said([question], 0), after: (view) => void (view.editing = true) },
    { says: 'a long question, while an answer is written', element: 'chat-message', presses: /Show/, given: said([{ id: 'm1', role: 'user', text: `${'x\n'.repeat(12)}x` }], 0, { given: () => ({ busy: true }) }) },
    { says: 'a question of twelve lines', element: 'chat-message', presses: /^$/, given: said([{ id: 'm1', role: 'user', text: `${'x\n'.repeat(11)}x` }], 0) },
    { says: 'a question of many letters', element: 'chat-message', presses: /^$/, given: said([{ id: 'm1', role: 'user', text: 'x'.repeat(1201) }], 0), after: (view) => void (view.unfolded = true) },
    { says: 'a question of nearly as many', element: 'chat-message', presses: /^$/, given: said([{ id: 'm1', role: 'user', text: 'x'.repeat(1200) }], 0) },
    { says: 'a question with parts of videos', element: 'chat-message', presses: /^$/, given: said([{ id: 'm1', role: 'user', text: '', attachments: [video('v'), video('w', { video: { start_ms: 2000 } }), video('u', { video: { end_ms: 3000 } })] }], 0) },
    { says: 'two versions of a question', element: 'chat-message', presses: /question/, given: said([question, { ...question, id: 'm2', parent: null, attachments: [] }], 1, { given: versions }), after: (view) => void (view.siblings = [view.chat.current.messages.m1, view.message]) },
    { says: 'an answer', element: 'chat-message', found: { '^[data-footnote-ref], [data-footnote-back]': null }, presses: /^(?!click (article|button Read|button This browser))/, given: ofAnswer({ timings, usage: { output_tokens: 31 } }), waits: 2000 },
    { says: 'an answer that is read aloud', element: 'chat-message', presses: /^$/, given: ofAnswer({}), does: {
        'its beginning': (view) => reads(view), 'its end': (view) => reads(view, (spoken) => (spoken.onend(), voices.spoken.at(-1).onend())), 'it fails': (view) => reads(view, (spoken) => spoken.onerror()), 'it is stopped': (view) => reads(view, () => presses('click button Stop reading')(view)), 'it leaves the page': (view) => reads(view, () => view.quiet()),
        'there is nothing to read': async (view) => ((Node.found['article.answer'] = null), presses('click button This browser')(view)),
    } },
    { says: 'an answer of nobody, which is short', element: 'chat-message', presses: /^$/, given: ofAnswer({ model: undefined, timings: { predicted_n: 1, predicted_ms: 0 } }), details: 'm2' },
    { says: 'when other versions are other ones', render: () => { const { hasChanged } = elementOf('chat-message').properties.siblings; return [[[1], undefined], [[1], [1]], [[1], [2]], [[1, 2], [1]], [[1], [1, 2]]].map(([now, old]) => ` ${hasChanged(now, old)}`).join(); } },
    { says: 'an answer of another server', element: 'chat-message', presses: /^$/, given: ofAnswer({ timings: { server: 'gpu', rule: 'long', predicted_ms: 1000, predicted_n: 5 } }) },
    { says: 'an answer of another server by no rule', element: 'chat-message', presses: /^$/, given: ofAnswer({ timings: { server: 'gpu', predicted_n: 1 } }) },
    { says: 'an answer with thoughts and a summary of what it read', element: 'chat-message', presses: /Source/, given: said([{ ...question, attachments: [text('doc')] }, answer({ reasoning: 'Hm *so*.', reasoningMs: 1500, sources: { read: 2, all: 9, found: true, list: [{ file: 'doc', name: 'doc.txt', place: 'page 1', at: 3, end: 9 }, { file: 'none', name: 'other.txt', place: 'page 2', at: 1, end: 2 }] } })], 1) },
    { says: 'an answer with thoughts whose time is not known', element: 'chat-message', presses: /^$/, given: ofAnswer({ reasoning: 'Hm.', sources: { read: 2, all: 9, found: false, list: [{ file: 'doc', name: 'doc.txt', place: 'page 1', at: 3, end: 9 }] } }) },
    { says: 'an answer that thinks', element: 'chat-message', presses: /^$/, given: ofAnswer({ text: '', reasoning: 'Hm **so', status: 'streaming' }) },
    { says: 'an answer that is written', element: 'chat-message', presses: /^$/, given: ofAnswer({ text: 'So **it', reasoning: 'Hm.', status: 'streaming', timings }) },
    { says: 'an answer whose images are looked at', element: 'chat-message', presses: /^$/, given: ofAnswer({ text: '', status: 'streaming' }, undefined, { progress: new Map([['m2', { kind: 'progress', phase: 'vision_encode', processed: 1, total: 4, etaMs: 2000 }]]) }) },
    { says: 'an answer that waits', element: 'chat-message', presses: /^$/, given: ofAnswer({ text: '', status: 'streaming' }, undefined, { progress: new Map([['m2', { kind: 'queued', position: 2 }]]) }) },
    { says: 'an answer whose video is opened', element: 'chat-message', presses: /^$/, given: said([{ ...question, attachments: [video('v')] }, answer({ text: '', status: 'streaming' })], 1, { chat: { progress: new Map([['m2', { kind: 'progress', phase: 'media_decode', processed: 1, total: 4 }]]) } }) },
    { says: 'an answer that failed', element: 'chat-message', presses: /again|New chat$/, given: ofAnswer({ text: 'a', status: 'failed', error: { code: 'context_length_exceeded', message: 'It has 9.' } }) },
    { says: 'an answer that failed for no known reason', element: 'chat-message', presses: /^$/, given: ofAnswer({ text: '', status: 'failed' }) },
    { says: 'an answer that was stopped', element: 'chat-message', presses: /Continue/, given: ofAnswer({ status: 'stopped', without: [{ server: 'files', why: 'it is away' }] }) },
    { says: 'an answer that was cut', element: 'chat-message', presses: /^$/, given: ofAnswer({ status: 'cut', reason: 'max_output_tokens' }, () => ({ last: false })) },
    { says: 'an answer that was cut by the context', element: 'chat-message', presses: /^$/, given: ofAnswer({ status: 'cut', reason: 'context' }) },
    { says: 'an answer that was cut otherwise', element: 'chat-message', presses: /^$/, given: ofAnswer({ status: 'cut', reason: 'x' }) },
    { says: 'an answer that is changed', element: 'chat-message', presses: /submit|Cancel/, found: { textarea: new Node('textarea', { value: ' typed ' }) }, given: ofAnswer({}), after: (view) => void (view.editing = true) },
    { says: 'two answers', element: 'chat-message', presses: /^click button.*answer|^click button (Go on|Side)/, given: said(twoAnswers, 1, { given: (chat) => ({ siblings: [chat.current.messages.m2, chat.current.messages.m3], last: true }) }) },
    { says: 'the second of two', element: 'chat-message', presses: /Earlier/, given: said(twoAnswers, 2, { given: (chat) => ({ siblings: [chat.current.messages.m2, chat.current.messages.m3], half: true }) }) },
    { says: 'the second of two that stand beside each other', element: 'chat-message', presses: /Go on with|Side by/, given: said(twoAnswers, 2, { given: (chat) => ({ siblings: [chat.current.messages.m2, chat.current.messages.m3] }) }) },
    { says: 'an answer with calls of tools', element: 'chat-message', presses: /^$/, given: ofAnswer({ text: 'One. Two.', tools: [{ id: 't1', name: 'f', at: 4, arguments: '{}' }, { id: 't2', name: 'g', at: 4 }, { id: 't3', name: 'h', at: 99 }] }) },
    { says: 'an answer that begins with a call, and is written', element: 'chat-message', presses: /^$/, given: ofAnswer({ text: '', status: 'streaming', tools: [{ id: 't1', name: 'f', at: 0, arguments: '{}' }] }) },
    { says: 'times of a video whose length is not known', element: 'chat-message', presses: /^$/, given: said([{ ...question, attachments: [video('v', { seconds: 0 }), video('w', { seconds: 5 })] }, answer({ text: 'At 9:10.' })], 1) },
    { says: 'times of a video that is not here', element: 'chat-message', presses: /^$/, given: said([{ ...question, attachments: [video('v', { blob: null })] }, answer({ text: 'At 0:01.' })], 1) },
    { says: 'times of a video, and of one before it', element: 'chat-message', presses: /^$/, given: said([{ ...question, attachments: [video('v')] }, answer({ id: 'a1' }), { id: 'm3', role: 'user', text: 'And?' }, answer({ text: 'At 0:01 and 0:11.' })], 3) },
    { says: 'times of a video', element: 'chat-message', presses: /^$/, given: said([{ ...question, attachments: [video('v')] }, answer({ text: 'At 0:10 and 0:11.' })], 1), does: {
        'a click on a time': (view) => view.render() && clicks(view, { 'button.time': { dataset: { seconds: '4' } } }),
        'a click on a time that no video has': (view) => view.render() && clicks(view, { 'button.time': { dataset: { seconds: '99' } } }), 'news of it': (view) => view.chat.dispatchEvent(new CustomEvent('message', { detail: 'm2' })), 'news of another': (view) => view.chat.dispatchEvent(new CustomEvent('message', { detail: 'm1' })),
        'a click on a note': (view) => clicks(view, { '[data-footnote-ref], [data-footnote-back]': { dataset: { footnoteRef: '1' } } }),
        'a click on the end of a note': (view) => clicks(view, { '[data-footnote-ref], [data-footnote-back]': { dataset: { footnoteBack: '1' } } }),
    } },
]);

/** What is read aloud, piece by piece. */
const reads = async (view, then = () => {}) => {
    Object.assign(globalThis, { speechSynthesis: { cancel: () => done.push('the voice ends'), speak: (spoken) => (voices.spoken.push(spoken), done.push(`the voice says ${spoken.text}`)) }, SpeechSynthesisUtterance: class { constructor(text) { this.text = text; } } });
    const away = ['code', 'a formula'].map((name) => new Node(name));
    Node.found['article.answer'] = { cloneNode: () => ({ querySelectorAll: (selector) => (done.push(`looks for ${selector}`), /^code/.test(selector) ? away : [{ children: [{ textContent: ' One\n two. ' }, { textContent: '' }, { textContent: 'Three.' }] }]) }) };
    presses('click button Read aloud')(view);
    await time.until(() => view.quiet);
    await then(voices.spoken.at(-1));
    done.push(flat(view.render(), []).match(/<button[^<]*\((?:stop|speaker)\)<span>[^<]*/)?.[0] ?? 'no button');
    delete globalThis.speechSynthesis;
    delete globalThis.SpeechSynthesisUtterance;
};
/** A click in an answer, on something that stands in nodes with these selectors. */
function clicks(view, found) {
    const target = { closest: (selector) => found[selector] ?? null };
    const { values } = view.render();
    Node.found['all [data-footnote]'] = [new Node('the other note', { dataset: { footnote: '2' } }), new Node('the note', { dataset: { footnote: '1' } })];
    Node.found['all [data-footnote-ref]'] = [new Node('the mark', { dataset: { footnoteRef: '1' } })];
    const short = new Node('a short video', { duration: 3 });
    const long = new Node('a long video', { duration: 30, paused: true });
    Node.found['all video.image'] = [short, long];
    return values.find((one) => typeof one === 'function').call(view, { target });
}

/* ---- the field ---- */

const model = { name: 'Seedling', vision: true, video: true, thinking: true, tools: true, maxImages: 16, rates: { fps: 2, min_frames: 4, max_frames: 256 } };
const ofField = (more = {}, chatMore = {}) => () => {
    if (more.voice) globalThis.SpeechRecognition = Listening;
    else delete globalThis.SpeechRecognition;
    for (const name of ['(pointer: coarse)', '(any-pointer: fine)']) matchMedia(name).matches = !!more[name];
    globalThis.CSS.supports = () => !more.old;
    const chat = chatOf([], { count: async (words) => words.length, ...chatMore });
    return { chat, settings: { get: (name) => ({ thinking: true, enterSends: true, imageSize: 1 << 20, videoRate: 4, staysHere: false, ...more.kept })[name], set: chat.settings.set }, busy: false, queue: [], model, ...more.given };
};
const typed = (value, more) => () => ({ textarea: new Node('textarea', { value, selectionStart: value.length, selectionEnd: value.length }), ...more });
const waiting = [{ text: 'Next', attachments: [] }, { text: '', attachments: [image('q')] }];
written('field', [
    { says: 'empty', element: 'chat-composer', until: ({ reading }) => !reading, found: typed(''), keys: ['Enter', 'Shift+Enter', 'ArrowUp', 'Tab', 'x'], given: ofField() },
    { says: 'with words', element: 'chat-composer', found: typed(' words '), keys: ['Enter', 'Shift+Enter', 'Ctrl+Enter', 'ArrowUp', 'Tab'], presses: /(input|keydown) textarea|submit/, waits: 500, given: ofField(), after: (view) => void (view.empty = false) },
    { says: 'with words, where Enter is a new line', element: 'chat-composer', found: typed('words'), keys: ['Enter', 'Ctrl+Enter', 'Shift+Enter'], presses: /keydown textarea/, given: ofField({ kept: { enterSends: false, thinking: false } }), after: (view) => Object.assign(view, { empty: false, tokens: 5 }) },
    { says: 'while an answer is written', element: 'chat-composer', found: typed('words'), keys: ['Enter'], presses: /keydown textarea|Stop/, given: ofField({ given: { busy: true } }), after: (view) => void (view.empty = false) },
    { says: 'empty, while an answer is written', element: 'chat-composer', presses: /^$/, found: typed(''), given: ofField({ given: { busy: true, queue: waiting } }) },
    { says: 'with what waits', element: 'chat-composer', presses: /Send|Edit|Do not/, found: typed(''), given: ofField({ given: { queue: waiting } }) },
    { says: 'with one that waits', element: 'chat-composer', presses: /keydown textarea/, keys: ['Enter'], found: typed('more'), given: ofField({ given: { queue: waiting.slice(0, 1) } }), after: (view) => void (view.empty = false) },
    { says: 'with files', element: 'chat-composer', presses: /Open|large|Remove|video-chosen|submit/, found: typed(''), given: ofField({}, { uploads: madeUp('uploads', { progressOf: ({ id }) => ({ a: { phase: 'sending', total: 4, done: 1 }, t: { phase: 'done', total: 1, done: 1 } })[id] }, ['cancel', 'start']) }), after: (view) => void (view.attachments = [image('a', { note: 'made smaller' }), text('t'), video('v'), video('w', { seconds: 0, width: 0 })]) },
    { says: 'while files are read, and some are refused', element: 'chat-composer', presses: /Close|submit/, found: typed('words'), given: ofField(), after: (view) => Object.assign(view, { empty: false, reading: 1, refused: ['It is too large.', 'It is no image.'] }) },
    { says: 'of a model that reads text alone', element: 'chat-composer', presses: /^$/, found: typed(''), given: ofField({ given: { model: { ...model, vision: false, video: false, thinking: false, tools: false, upstreams: ['gpu'] } } }) },
    { says: 'of a model that sees images, with rules', element: 'chat-composer', presses: /Keep here/, found: typed(''), given: ofField({ given: { model: { ...model, video: false, routes: ['long: gpu'] } } }, { current: { options: { tools: { a: {} } } } }) },
    { says: 'of a model with rules that are not heeded', element: 'chat-composer', presses: /Keep here/, found: typed(''), given: ofField({ kept: { staysHere: true }, given: { model: { ...model, routes: ['long: gpu'] } } }) },
    { says: 'prompts are offered', element: 'chat-composer', presses: /keydown textarea|prompt-chosen/, keys: ['Escape', 'x'], events: { 'prompt-chosen': { detail: 'Sum up {{what}}.' } }, found: typed('/su', { 'prompt-menu': null }), given: ofField(), after: (view) => Object.assign(view, { slash: 'su', empty: false }) },
    { says: 'what else happens', element: 'chat-composer', until: ({ reading }) => !reading, presses: /^$/, found: typed('was there '), given: ofField(), waits: 500, does: {
        'something is quoted': (view) => view.quote('one\n\ntwo'),
        'a draft is there again': (view) => view.restore({ text: ' draft', attachments: [image('a')] }),
        'nothing is there again': (view) => view.restore(),
        'a text is added': (view) => view.add([new File(['words'], 'a.txt', { type: 'text/plain' })]),
        'nothing is added': (view) => view.add([]),
        'files changed': (view) => view.updated(new Map([['attachments', []]])),
        'nothing that is kept changed': (view) => view.updated(new Map([['attachments', undefined]])),
    } },
]);
/** Words are said: [words, whether they are final]. */
const says = (...said) => async (view) => {
    const open = presses('click button Dictate')(view);
    await time.until(() => view.dictating);
    await open;
    for (const [transcript, isFinal] of said) voices.engine.onresult({ resultIndex: 1, results: [{}, Object.assign([{ transcript }], { isFinal })] });
};
const hasTrouble = (error) => async (view) => {
    await says()(view);
    voices.engine.onerror({ error });
    voices.engine.onend();
    await time.settle();
};
/** A field that does with its words what fields do. */
const fieldWith = (value, at = value.length) => () => ({ textarea: new Node('textarea', { value, selectionStart: at, selectionEnd: at, scrollHeight: 77, setRangeText(words, from, to, mode) {
    done.push(`textarea.setRangeText ${JSON.stringify(words)} ${from} ${to} ${mode}`);
    Object.assign(this, { value: this.value.slice(0, from) + words + this.value.slice(to) });
} }) });
const pastes = (files, text) => presses('paste form', { clipboardData: { files, getData: (type) => (done.push(`asks for ${type}`), text) } });
const file = () => new File(['words'], 'a.txt', { type: 'text/plain' });
const pressed = (key, more) => presses('keydown textarea', { key, ...more });
const blanks = { nextBlank: (text, from) => (done.push(`the next blank of ${JSON.stringify(text)} from ${from}`), from < 4 ? [4, 8] : null) };
written('field_more', [
    { says: 'that listens', element: 'chat-composer', presses: /^$/, found: fieldWith('was', 3), given: ofField({ voice: true }), does: {
        'two sentences': says(['one', false], [' one two', false], ['One two.', true], [' three', false]), 'words behind a space': async (view) => (Object.assign(view.field, { value: 'was ' }), Object.assign(view.field, { selectionStart: 4, selectionEnd: 4 }), says(['one', true])(view)),
        'words in front': async (view) => (Object.assign(view.field, { selectionStart: 0, selectionEnd: 2 }), says(['one', true])(view)), 'and is pressed again': async (view) => (await says()(view), presses('click button Dictate')(view)), 'and something is sent': async (view) => (await says(['one', true])(view), presses('submit')(view)),
        ...Object.fromEntries(['no-speech', 'aborted', 'network', 'odd'].map((error) => [`and says ${error}`, hasTrouble(error)])),
    } },
    { says: 'that is old, whose height is set', element: 'chat-composer', presses: /input textarea/, found: fieldWith('words'), given: ofField({ old: true }) },
    { says: 'on a phone', element: 'chat-composer', presses: /photo/, until: ({ reading }) => !reading, found: fieldWith('words'), given: ofField({ '(pointer: coarse)': true }), does: { 'Enter': pressed('Enter'), 'Enter with Ctrl': pressed('Enter', { ctrlKey: true }) } },
    { says: 'on a phone with a mouse', element: 'chat-composer', presses: /^$/, found: fieldWith('words'), given: ofField({ '(pointer: coarse)': true, '(any-pointer: fine)': true }), does: { 'Enter': pressed('Enter') } },
    { says: 'of a chat with tools', element: 'chat-composer', presses: /toggle/, found: fieldWith(''), given: ofField({}, { current: { options: { tools: { a: {} } } } }) },
    { says: 'while files are read', element: 'chat-composer', presses: /submit/, found: fieldWith('words'), given: ofField(), after: (view) => void (view.reading = 1) },
    { says: 'what is pasted and pressed', element: 'chat-composer', presses: /^$/, until: ({ reading }) => !reading, found: fieldWith('words'), given: ofField(), after: (view) => void (view.empty = false), does: {
        'words': pastes([], 'words'), 'a file': pastes([file()], ''), 'a file with words': pastes([file()], 'words'), 'many words': pastes([], 'x'.repeat(8001)), 'nearly as many': pastes([], 'x'.repeat(8000)), 'nothing': pastes([], ''), 'nothing at all': presses('paste form', {}),
        'Enter of an input method': pressed('Enter', { isComposing: true }), 'Enter of an old one': pressed('Enter', { keyCode: 229 }), 'Enter with Meta': pressed('Enter', { metaKey: true, shiftKey: false }), 'Tab to a blank': (view) => ((view.prompts = blanks), Object.assign(view.field, { selectionEnd: 3 }), pressed('Tab')(view)), 'Tab to none': (view) => ((view.prompts = blanks), pressed('Tab')(view)), 'Tab back': (view) => ((view.prompts = blanks), pressed('Tab', { shiftKey: true })(view)),
        'a prompt with a blank': (view) => ((view.prompts = blanks), (view.slash = ''), presses('prompt-chosen', { detail: 'Sum up {{what}}.' })(view)),
        'a slash': (view) => (Object.assign(view.field, { value: '/su' }), presses('input textarea')(view)), 'a slash in a second line': (view) => (Object.assign(view.field, { value: '/su\nx' }), presses('input textarea')(view)), 'a slash, as prompts are there': (view) => ((view.prompts = blanks), Object.assign(view.field, { value: '/' }), presses('input textarea')(view)),
        'a key for the menu of prompts': (view) => ((Node.found['prompt-menu'] = { key: (event) => Boolean(done.push(`the menu has ${event.key}`)) }), (view.slash = 'su'), pressed('ArrowDown')(view)), 'a key that is not for it': (view) => ((Node.found['prompt-menu'] = { key: () => false }), (view.slash = 'su'), pressed('Enter')(view)), 'a key of an input method': (view) => ((view.slash = 'su'), pressed('Escape', { isComposing: true })(view)),
        'up, with a file': (view) => ((view.attachments = [image('a')]), Object.assign(view.field, { value: '' }), pressed('ArrowUp')(view)),
        'a video is added': (view) => view.add([new File(['x'], 'a.mp4', { type: 'video/mp4' })]), 'its tokens': async (view) => (presses('input textarea')(view), await time.pass(399), done.push(`${view.tokens} so far`), await time.pass(1)), 'its tokens, as it is written on': async (view) => (presses('input textarea')(view), await time.pass(300), presses('input textarea')(view), await time.pass(399)),
        'its tokens, of a server that is away': async (view) => ((view.tokens = 3), (view.chat.count = async () => { throw new TypeError('network'); }), presses('input textarea')(view), time.pass(400)), 'its tokens, too late': async (view) => ((view.chat.count = async () => (Object.assign(view.field, { value: 'other' }), 5)), presses('input textarea')(view), time.pass(400)),
        'files alone': (view) => ((view.attachments = [image('a')]), Object.assign(view.field, { value: ' ' }), presses('submit')(view)), 'nothing to send': (view) => (Object.assign(view.field, { value: ' ' }), presses('submit')(view)),
    } },
]);

/* ---- tools ---- */

const call = (tool, status = 'done', more = {}) => () => ({ chat: chatOf([], { answers: madeUp('answers', {}, ['goOn']), ...more.chat }), message: { id: 'm2', role: 'assistant', parent: 'm1', text: 'Words.', status, attachments: [], tools: [], ...more.message }, tool: { id: 't1', name: 'get_the-weather', arguments: '{}', ...tool }, busy: false });
const ofServer = { server: 'files' };
written('tool_calls', [
    { says: 'done', element: 'tool-call', given: call({ output: '{"a":1}', ms: 1500, ...ofServer }) },
    { says: 'failed', element: 'tool-call', presses: /again/, given: call({ output: 'no', failed: true, ...ofServer }) },
    { says: 'failed, while the answer goes on', element: 'tool-call', given: call({ output: '[1', failed: true, ...ofServer }, 'streaming') },
    { says: 'with a list and a long value', element: 'tool-call', given: call({ output: '7', arguments: JSON.stringify({ list_of: [1], a: 'x'.repeat(60), b: 'x'.repeat(61), c: 'a\u202eb\n' }) }) },
    { says: 'asked about', element: 'tool-call', given: call({ ...ofServer, approvalId: '1' }, 'done', { message: { tools: [{ id: 't1', name: 'get_the-weather', server: 'files', approvalId: '1' }] } }) },
    { says: 'asked about, while the answer goes on', element: 'tool-call', given: call({ ...ofServer, approvalId: '1' }, 'streaming') },
    { says: 'refused', element: 'tool-call', given: call({ ...ofServer, allowed: false }, 'streaming') },
    { says: 'at work', element: 'tool-call', given: call({ ...ofServer, progress: 0.5, note: 'half', begun: time.now() - 65_000 }, 'streaming') },
    { says: 'at work, without words for it', element: 'tool-call', given: call({ ...ofServer, progress: 0.25, name: '' }, 'streaming') },
    { says: 'stopped', element: 'tool-call', given: call({ ...ofServer, progress: 0.5 }, 'stopped') },
    { says: 'with no arguments', element: 'tool-call', presses: /^$/, given: call({ arguments: '', output: 'x' }) },
    { says: 'at work, second by second', element: 'tool-call', presses: /^$/, given: call({ ...ofServer, progress: 0.5 }, 'streaming'), does: { 'it is drawn on': async (view) => (view.updated(), await time.pass(2500), done.push('and ends'), (view.tool = { ...view.tool, output: 'x' }), view.updated(), await time.pass(2500), done.push('and begins anew'), (view.tool = { ...view.tool, output: undefined }), view.updated(), time.pass(1000)) } },
    { says: 'of the client, being written', element: 'tool-call', given: call({ arguments: '{"a' }, 'streaming') },
    { says: 'of the client', element: 'tool-call', given: call({ arguments: '[1]' }) },
    { says: 'with images', element: 'tool-call', given: call({ ...ofServer, output: 'x' }, 'done', { message: { attachments: [image('a', { tool: 't1' }), image('b', { tool: 't2' }), image('c', { tool: 't1', blob: null })] } }) },
]);

const tools = [{ name: 'read', title: 'Read', description: 'Reads', read_only: true, approval: 'never' }, { name: 'write', approval: 'always' }, { name: 'once', approval: 'first' }];
const servers = [
    { server_label: 'files', state: 'ready', error: null, tools, tools_left_out: 2, resources: [{ uri: 'file:///a%20b.txt', name: 'a', description: 'The first' }, { uri: 'file:///c', mimeType: 'image/png' }], prompts: [{ name: 'ask', title: 'Ask', arguments: [{ name: 'what', required: true, description: 'Of what' }, { name: 'how' }, {}] }, { name: 'say', description: 'Says it' }] },
    { server_label: 'new', state: 'connecting', error: null, tools: [], tools_left_out: 0, resources: [], prompts: [] },
    { server_label: 'gone', state: 'down', error: 'It has ended.', tools: [], tools_left_out: 0, resources: [], prompts: [] },
    { server_label: 'off', state: 'off', error: 'x', tools: tools.slice(1, 2), tools_left_out: 0, resources: [], prompts: [] },
];
const ofTools = (choice, list = servers) => () => ({ chat: chatOf([], { connection: wire({ 'v1/mcp': [{ data: list }] }) }), choice, choose: (given) => void done.push(`chooses ${JSON.stringify(given)}`) });
written('tools', [
    { says: 'none chosen', element: 'tool-choice', given: ofTools(undefined), does: { 'a second later': () => time.pass(1000), 'two seconds later': () => time.pass(2000) } },
    { says: 'all of a server, one unasked', element: 'tool-choice', presses: /change/, given: ofTools({ files: { always: ['write'] }, gone: {} }) },
    { says: 'some of a server', element: 'tool-choice', presses: /change/, given: ofTools({ files: { only: ['once'] } }, servers.slice(0, 1)), does: { 'some seconds later': () => time.pass(3000) } },
    { says: 'all of a server but one', element: 'tool-choice', presses: /change/, given: ofTools({ files: { only: ['once', 'read'] } }, servers.slice(0, 1)) },
    { says: 'of a server that is away', element: 'tool-choice', given: () => ({ ...ofTools()(), chat: chatOf() }) },
    { says: 'that the server refuses to list', element: 'tool-choice', given: () => ({ ...ofTools()(), chat: chatOf([], { connection: wire({ 'v1/mcp': [{}, 500] }) }) }) },
    { says: 'whose menu is opened and closed', element: 'tool-choice', presses: /^$/, given: ofTools(undefined), does: { 'it opens': hears('toggle', { newState: 'open' }), 'it closes': hears('toggle', { newState: 'closed' }) } },
    { says: 'before they are known', element: 'tool-choice', given: ofTools(), begins: false },
    { says: 'the menu', element: 'tools-menu', given: () => ({ chat: chatOf([], { current: { options: { tools: { files: {} } } } }), composer: null }) },
]);

/** A field that notes what is put into it. */
const fieldOf = (more) => Object.assign(madeUp('field', { busy: false, ...more }, ['focusField']), { field: new Node('textarea', { value: 'was there ', dispatchEvent(event) { done.push(`field hears ${event.type}: ${JSON.stringify(this.value)}`); } }), add: async (files) => void done.push(`field takes ${files.map((one) => `${one.name} ${one.type} ${one.size}`).join(', ')}`) });
const replies = {
    'v1/mcp': [{ data: servers }], 'v1/mcp/files/resources/read': [{ result: { contents: [{ uri: 'file:///x/a%20b.txt?q', text: 'words' }, { uri: 'file:///%E0', blob: 'AAAA', mimeType: 'image/png' }, { text: 'x' }] } }],
    'v1/mcp/files/prompts/get': [{ result: { messages: [{ role: 'user', content: { type: 'text', text: 'One' } }, { role: 'assistant', content: [{ type: 'text', text: 'Two' }, { type: 'image', data: 'AAAA', mimeType: 'image/png' }] }, { role: 'user', content: { type: 'resource_link', name: 'n', uri: 'u' } }, { role: 'user', content: { type: 'text', text: 'Three' } }, { role: 'user', content: { type: 'resource', resource: { uri: 'file:///z', text: 'z' } } }] } }],
};
const offered = (said = replies, more = {}) => () => ({ chat: chatOf([{ id: 'm1', role: 'user', text: 'q' }], { connection: wire(said), current: { options: { tools: { files: {}, new: {} } }, ...more.current } }), composer: fieldOf(more.field) });
written('offers', [
    { says: 'what they are', element: 'tool-offers', given: offered() },
    { says: 'before they are known', element: 'tool-offers', presses: /^$/, given: () => ({ ...offered()(), chat: chatOf([], { connection: wire({ 'v1/mcp': [{ data: servers }] }, { fetch: () => new Promise(() => {}) }), current: { options: { tools: { files: {} } } } }) }) },
    { says: 'whose opener has the focus', element: 'tool-offers', presses: /^$/, found: () => ({ '^[popover]': new Node('menu', { hidePopover() {} }), 'input, button': new Node('the first') }), given: offered(), does: { 'the page has it': (view) => ((document.activeElement = document.body), hears('toggle', { newState: 'open' })(view)), 'another has it': (view) => ((document.activeElement = new Node('another')), hears('toggle', { newState: 'open' })(view)), 'the menu closes': hears('toggle', { newState: 'closed' }) } },
    { says: 'a reply that cannot be read', element: 'tool-offers', presses: /say/, given: () => { const all = offered()(); const { fetch } = all.chat.connection; all.chat.connection.fetch = async (path, init) => (/prompts/.test(path) ? new Response('x', { status: 502 }) : fetch(path, init)); return all; } },
    { says: 'a file without a kind', element: 'tool-offers', presses: /The first/, given: offered({ ...replies, 'v1/mcp/files/resources/read': [{ result: { contents: [{ uri: 'file:///x', blob: 'AAAA' }, { uri: '', blob: 'AAAA', mimeType: 'image/png' }] } }] }) },
    { says: 'a prompt that says what it is for', element: 'tool-offers', presses: /^$/, given: offered(), after: (view) => void (view.asked = { label: 'files', prompt: { name: 'n', description: 'What it is for', arguments: [null, { name: 'a', description: 'A' }] } }) },
    { says: 'none', element: 'tool-offers', given: offered({ 'v1/mcp': [{ data: servers.slice(1) }] }) },
    { says: 'of chats without tools', element: 'tool-offers', given: offered(replies, { current: { options: undefined } }) },
    { says: 'a prompt while an answer is written', element: 'tool-offers', presses: /say/, given: offered(replies, { field: { busy: true } }) },
    { says: 'of a server that refuses', element: 'tool-offers', presses: /say|Ask|The first/, given: offered({ ...replies, 'v1/mcp/files/prompts/get': [{ error: { message: 'No such prompt.' } }, 404], 'v1/mcp/files/resources/read': undefined }) },
    { says: 'of a server that refuses without words', element: 'tool-offers', presses: /say/, given: offered({ ...replies, 'v1/mcp/files/prompts/get': [{}, 500] }) },
    { says: 'while one is fetched', element: 'tool-offers', given: offered(), after: (view) => void (view.busy = true) },
    { says: 'of a server that is away', element: 'tool-offers', given: offered({}) },
    { says: 'the arguments of a prompt, which are missing', element: 'tool-offers', keys: ['Enter', 'x'], found: () => ({ 'all input': [new Node('what', { required: true, value: ' ' }), new Node('how', { value: '' })] }), given: offered(), after: (view) => void (view.asked = { label: 'files', prompt: servers[0].prompts[0] }) },
    { says: 'the arguments of a prompt', element: 'tool-offers', presses: /Insert|Back/, found: () => ({ 'all input': [new Node('what', { name: 'what', required: true, value: 'it' }), new Node('how', { name: 'how', value: '' })] }), given: offered(), after: (view) => void (view.asked = { label: 'files', prompt: servers[0].prompts[0] }) },
]);
