/** What the page says of errors, of the work that goes on and of an answer's figures, without a browser. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { errorWords, figures, progressWords } from '../../web/js/words.js';

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
    assert.equal(words({ kind: 'queued', position: 0 }), 'In the queue');
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
