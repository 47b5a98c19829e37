/** What the page says of errors, of the work that goes on and of an answer's figures, without a browser. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { connectionWords, errorWords, figures, progressWords } from '../../web/js/words.js';

/** The figures under an answer with these timings: {name: text}. */
const shown = (timings) => Object.fromEntries(figures({ timings }).map((one) => [one.name, one.text]));
const title = (timings, name) => figures({ timings }).find((one) => one.name === name).title;

test('the speed is told, or comes from tokens and their time; without time there is none', () => {
    assert.equal(figures({}).length, 0);
    assert.deepEqual(shown({}), {});
    assert.equal(shown({ predicted_per_second: 12, predicted_n: 5 }).Speed, '12.0 tokens/s');
    assert.equal(shown({ predicted_n: 40, predicted_ms: 1000 }).Speed, '40.0 tokens/s');
    assert.equal(shown({ predicted_n: 1, predicted_ms: 0.5 }).Speed, '2\u202f000 tokens/s');
    assert.equal(shown({ predicted_n: 3, predicted_ms: 0 }).Speed, undefined);
    assert.equal(title({ predicted_n: 1, predicted_ms: 1000 }, 'Speed'), '1 token in the answer');
});

test('what the first token waited for, part by part', () => {
    const first = { ttft_ms: 900, prompt_ms: 300, prompt_n: 20, queue_ms: 2, media_ms: 100, vision_ms: 200 };
    assert.equal(shown(first)['First token'], 'after 0.9 s');
    assert.equal(title(first, 'First token'), 'queue 2 ms, opening images 0.1 s, looking 0.2 s, reading 20 tokens 0.3 s');
    assert.equal(title({ prompt_ms: 300, prompt_n: 20, queue_ms: 1 }, 'First token'), 'reading 20 tokens 0.3 s');
    assert.equal(shown({ prompt_ms: 0 })['First token'], undefined);
});

test('what took no time is not told, what took a little is', () => {
    assert.deepEqual(figures({ timings: { ttft_ms: 5, media_ms: 0, vision_ms: 0, prompt_ms: 0, queue_ms: 0 } }), [{ name: 'First token', text: 'after 5 ms', title: '' }]);
    assert.equal(title({ ttft_ms: 0.5, media_ms: 1, vision_ms: 1, prompt_ms: 1 }, 'First token'), 'opening images 1 ms, looking 1 ms, reading  tokens 1 ms');
    assert.deepEqual([shown({ predicted_per_second: 0.5, predicted_n: 1 }).Speed, shown({ cache_n: 1 }).Cache, shown({ cache_n: 1, prompt_n: 1 }).Cache], ['0.50 tokens/s', '100 % remembered', '50 % remembered']);
    assert.deepEqual([shown({ sparse_n: 1, sparse_kept_n: 1 })['Sparse prefill'], shown({ draft_n: 1, draft_accepted_n: 1 }).Drafts, shown({ draft_n: 2, draft_n_accepted: 1, draft_accepted_n: 2 }).Drafts], ['100 % of the prompt read', '100 % drafts kept', '50 % drafts kept']);
    const of = { predicted_per_second: 5, predicted_n: 5 };
    assert.deepEqual(['media', 'text'].map((route) => title({ ...of, route }, 'Route')), ['Went through the vision encoder', 'Text only, no vision encoder']);
    assert.match(title({ cache_n: 7 }, 'Cache'), /^7 tokens/);
    assert.match(title({ sparse_n: 9, sparse_kept_n: 4 }, 'Sparse prefill'), /read 4 of 9 tokens/);
});

test('the state of the connection in words', () => {
    Object.defineProperty(globalThis, 'navigator', { configurable: true, value: { onLine: true } });
    const words = (state, more = {}) => {
        const { label, tone, detail, value } = connectionWords({ state, failures: 0, ...more });
        return [label, tone, detail.split(/[ ;:,.]/).slice(0, 4).join(' '), ...(value === undefined ? [] : [value])].join('|');
    };
    const seen = {
        open: words('open'), ready: words('open', { server: { state: 'ready' } }), loading: words('open', { server: { state: 'loading' } }),
        half: words('open', { server: { state: 'loading', progress: 0.5 } }), draining: words('open', { server: { state: 'draining' } }), http: words('fallback', { server: { state: 'loading' } }),
        away: words('loading'), wrong: words('unauthorised', { key: 'k' }), needed: words('unauthorised', { key: '' }), first: words('connecting'), second: words('retrying', { failures: 1 }),
        third: words('retrying', { failures: 2 }), other: words('stopped'),
    };
    navigator.onLine = false;
    Object.assign(seen, { offline: words('retrying'), offlineOpen: words('open') });
    assert.deepEqual(seen, {
        open: 'Connected|good|', ready: 'Connected|good|', loading: 'Loading|busy|The model is being|0', half: 'Loading 50 %|busy|The model is being|0.5', draining: 'Restarting|busy|The server is about',
        http: 'Connected|good|Over plain HTTP ', away: 'Loading|busy|The model is being', wrong: 'Wrong key|bad|The server does not', needed: 'Key needed|bad|The server asks for',
        first: 'Connecting|busy|', second: 'Connecting|busy|', third: 'Reconnecting|bad|The server cannot be', other: 'Reconnecting|bad|The server cannot be', offline: 'Offline|bad|This device is offline', offlineOpen: 'Connected|good|',
    });
});

test('what was remembered, read, drafted, and who answered', () => {
    assert.equal(shown({ cache_n: 75, prompt_n: 25 }).Cache, '75 % remembered');
    assert.equal(shown({ cache_n: 50, prompt_n: 25, sparse_n: 100, sparse_kept_n: 75 }).Cache, '50 % remembered');
    assert.equal(shown({ cache_n: 0, prompt_n: 25 }).Cache, undefined);
    assert.equal(shown({ sparse_n: 100, sparse_kept_n: 20 })['Sparse prefill'], '20 % of the prompt read');
    assert.equal(shown({ sparse_n: 0 })['Sparse prefill'], undefined);
    assert.equal(shown({ draft_n: 4, draft_n_accepted: 3 }).Drafts, '75 % drafts kept');
    assert.equal(shown({ draft_n: 4 }).Drafts, '0 % drafts kept');
    assert.equal(shown({ draft_n: 0 }).Drafts, undefined);
    const of = { predicted_per_second: 5, predicted_n: 5, route: 'media' };
    assert.equal(shown(of).Route, 'media route');
    assert.equal(shown({ ...of, route: 'text' }).Route, 'text route');
    assert.equal(shown({ ...of, server: 'other' }).Route, undefined);
    assert.equal(shown({ ...of, server: 'other' })['Answered by'], 'other, another server');
    assert.equal(shown({ route: 'text' }).Route, undefined);
    assert.equal(title({ server: 'other', rule: 'images' }, 'Answered by'), 'Sent there by the rule: images');
    assert.equal(title({ server: 'other' }, 'Answered by'), 'Its model was chosen');
});

test('an error that is not known has its status for a name, or says what it says', () => {
    const message = 'no';
    for (const [status, code] of [[413, 'http_413'], [429, 'queue_full'], [503, 'unavailable_error'], [401, 'invalid_api_key']]) {
        assert.deepEqual(errorWords({ code: 'x', message, status }), errorWords({ code, message }), `${status}`);
    }
    assert.deepEqual(errorWords({ code: 'x', message, status: 418 }), { what: 'The answer could not be made.', next: 'Try again.', detail: 'no' });
    assert.equal(errorWords({ code: 'x', message: '' }).detail, 'x');
    assert.equal(errorWords({ code: 'queue_full', message, status: 413 }).next, 'Try again in a few seconds.');
});

test('the work that goes on', () => {
    const words = (progress, ...more) => progressWords(progress, ...more).text;
    const phase = (name, more = {}) => ({ kind: 'progress', phase: name, ...more });
    assert.equal(words({ kind: 'waiting' }), 'Waiting for the server');
    assert.equal(words({ kind: 'queued', position: 2 }), 'In the queue · 2 before you');
    assert.equal(words({ kind: 'queued', position: 1 }), 'In the queue · 1 before you');
    assert.equal(words({ kind: 'queued', position: 0 }), 'In the queue');
    assert.deepEqual(progressWords(phase('upload_checking', { total: 4 })), { text: 'Checking the image · 0 %', value: 0 });
    assert.deepEqual(progressWords(phase('upload_sending')), { text: 'Sending the image', value: null });
    assert.deepEqual([{ kind: 'waiting' }, { kind: 'queued', position: 1 }, { kind: 'lost' }, {}].map((one) => progressWords({ processed: 1, total: 2, ...one }).value), [null, null, null, null]);
    assert.equal(words({ kind: 'lost' }), 'Connection lost, trying to resume the answer');
    assert.equal(words({ kind: 'started' }), 'Starting');
    assert.equal(words(phase('media_decode', { processed: 1, total: 1 })), 'Opening the image');
    assert.equal(words(phase('media_decode', { processed: 1, total: 2 }), 'image', true), 'Opening the images · 1 of 2');
    assert.equal(words(phase('media_decode', { processed: 1, total: 2 }), 'video'), 'Opening the video · frame 1 of 2');
    assert.equal(words(phase('upload_sending', { processed: 1, total: 4 }), 'video', true), 'Sending the videos · 25 %');
    assert.equal(words(phase('vision_encode', { processed: 1, total: 4, etaMs: 1500 })), 'Encoding the image · 25 %');
    assert.equal(words(phase('vision_encode', { processed: 1, total: 4, etaMs: 1501 })), 'Encoding the image · 25 % · about 2 s left');
    assert.equal(words(phase('prefill', { processed: 3, total: 12 })), 'Reading the conversation · 3 of 12 tokens');
    assert.equal(words(phase('prefill')), 'Reading the conversation');
    assert.equal(progressWords(phase('prefill', { processed: 3, total: 12 })).value, 0.25);
    assert.equal(progressWords(phase('prefill', { processed: 13, total: 12 })).value, 1);
    assert.equal(progressWords(phase('prefill')).value, null);
});
