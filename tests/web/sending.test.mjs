/** Files on their way to the server without a browser: chunks over a socket, parts over HTTP, and what goes on after a
 * loss. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { register } from 'node:module';
import test from 'node:test';
import { makeFetch, makeSockets, makeTime, reply } from './made_up.mjs';
import { UploadError, Uploader } from '../../web/js/protocol/upload.js';
import { Uploads } from '../../web/js/protocol/uploads.js';

const time = makeTime();
makeSockets();
const net = makeFetch();
const MIB = 1 << 20;

/** What upload.js knows of a connection; messages are in `sent`, chunks in `chunks`. */
class Wire extends EventTarget {
    state = 'open';
    session = { limits: { max_uploads: 1, chunk_size: 4, upload_window: 8 } };
    socket = { readyState: 1 };
    sent = [];
    chunks = [];
    fetch = (path, init) => fetch(`http://host/${path}`, { ...init, headers: new Headers(init?.headers) });
    sendMessage(message) {
        this.sent.push(message);
    }
    sendBinary(frame) {
        const view = new DataView(frame.buffer);
        assert.deepEqual([frame[0], frame[1], frame[2], frame[3]], [1, 1, 0, 0]);
        this.chunks.push([view.getUint32(4, true), Number(view.getBigUint64(8, true)), Buffer.from(frame.subarray(16)).toString()]);
    }
    async hear(event) {
        this.dispatchEvent(new CustomEvent('upload', { detail: event }));
        await time.settle();
    }
    async become(state, socket = state === 'open' ? { readyState: 1 } : null) {
        Object.assign(this, { state, socket });
        this.dispatchEvent(new Event('state'));
        await time.settle();
    }
    /** The last message, and everything else forgotten. */
    last() {
        return this.sent.splice(0).at(-1);
    }
}

/** A file on its way; what became of it in `result`. */
async function sending(text = 'abcdefghijkl', wire = new Wire()) {
    const attachment = { kind: 'video', name: 'a.mp4', mime: 'video/mp4', blob: new Blob([text]) };
    const told = [];
    const uploader = new Uploader(wire, () => told.push(uploader.progressOf(attachment)));
    const result = {};
    const begin = () => uploader.file(attachment).then((id) => (result.id = id), (error) => (result.error = error));
    begin();
    assert.deepEqual(uploader.progressOf(attachment), { phase: 'checking', done: 0, total: attachment.blob.size });
    await time.until(() => wire.state !== 'open' || wire.sent.length);
    await time.settle();
    return { attachment, begin, result, told, uploader, wire, sha256: createHash('sha256').update(text).digest('hex') };
}
const created = (wire, more = {}) => wire.hear({ type: 'upload.created', event_id: wire.last().event_id, upload: { id: 'up', handle: 7, chunk_size: 4, window: 8, received: 0, ...more } });
const expires = () => Math.floor(time.now() / 1000) + 600;

test('a file goes in chunks, as many at once as the window has room for', async () => {
    const { attachment, result, told, uploader, wire, sha256 } = await sending();
    assert.deepEqual({ ...wire.sent[0], event_id: 0 }, { type: 'upload.create', filename: 'a.mp4', mime_type: 'video/mp4', sha256, bytes: 12, purpose: 'vision', event_id: 0 });
    assert.match(wire.sent[0].event_id, /^u_/);
    assert.deepEqual(told, [{ phase: 'checking', done: 0, total: 12 }]);
    await created(wire);
    assert.deepEqual(wire.chunks, [[7, 0, 'abcd'], [7, 4, 'efgh']]);
    await wire.hear({ type: 'upload.ack', upload_id: 'other', received: 12 });
    assert.equal(wire.chunks.length, 2);
    await wire.hear({ type: 'upload.ack', upload_id: 'up', received: 4 });
    assert.deepEqual(wire.chunks.slice(2), [[7, 8, 'ijkl']]);
    assert.deepEqual(told.at(-1), { phase: 'sending', done: 4, total: 12 });
    await wire.hear({ type: 'upload.ack', upload_id: 'up', received: 2 });
    assert.deepEqual([told.at(-1).done, wire.sent], [4, []], 'an old one changes nothing');
    await wire.hear({ type: 'upload.created', upload: { id: 'stray' } });
    assert.deepEqual(wire.last(), { type: 'upload.cancel', upload_id: 'stray' }, 'one that nobody waits for');
    await wire.hear({ type: 'upload.ack', upload_id: 'up', received: 12 });
    const complete = wire.last();
    await wire.hear({ type: 'upload.ack', upload_id: 'up', received: 12 });
    assert.deepEqual(result, {}, 'it is not complete by that');
    assert.deepEqual({ ...complete, event_id: 0 }, { type: 'upload.complete', upload_id: 'up', sha256, event_id: 0 });
    await wire.hear({ type: 'upload.completed', event_id: complete.event_id, file_id: 'file_1', upload: { expires_at: expires() } });
    assert.deepEqual([result.id, told.at(-1), uploader.progressOf(attachment)], ['file_1', { phase: 'done', done: 12, total: 12 }, null]);
});

test('what the server has already is not sent; an id is known a third of its time, on one connection', async () => {
    const { begin, result, wire } = await sending();
    const has = async (id, seconds) => wire.hear({ type: 'upload.completed', event_id: wire.last().event_id, file_id: id, upload: { expires_at: time.now() / 1000 + seconds } });
    await has('file_1', 300);
    assert.deepEqual([result.id, wire.chunks], ['file_1', []]);
    await time.pass(99_999);
    begin();
    await time.settle();
    assert.equal(wire.sent.length, 0, 'it is still known');
    await time.pass(1);
    begin();
    await time.settle();
    assert.equal(wire.sent.length, 1);
    await has('file_2', 1e6);
    assert.equal(result.id, 'file_2');
    await time.pass(20 * 60_000 - 1);
    begin();
    await time.settle();
    assert.equal(wire.sent.length, 0);
    await time.pass(1);
    begin();
    await time.settle();
    assert.equal(wire.sent.length, 1, 'nothing is known longer than 20 minutes');
    await has('file_3', 1e6);
    wire.session = { ...wire.session };
    begin();
    await time.settle();
    assert.equal(wire.sent.length, 1, 'another server may not have it');
    await wire.hear({ type: 'upload.completed', event_id: wire.last().event_id, file_id: 'file_4' });
    begin();
    await time.settle();
    assert.equal(wire.sent.length, 1, 'without a time it is not kept');
});

test('a socket that goes: the file goes on where the server has it', async () => {
    const { result, wire } = await sending();
    await created(wire);
    await wire.become('retrying');
    assert.deepEqual([wire.sent, result], [[], {}]);
    await wire.become('open');
    assert.deepEqual({ ...wire.sent[0], event_id: 0 }, { type: 'upload.resume', upload_id: 'up', event_id: 0 });
    wire.chunks.length = 0;
    await wire.hear({ type: 'upload.status', upload: { id: 'up', handle: 9, chunk_size: 4, window: 8, received: 8 } });
    assert.deepEqual(wire.chunks, [[9, 8, 'ijkl']]);
    wire.sent.length = 0;
    await wire.hear({ type: 'error', upload_id: 'up', error: { code: 'upload_offset_mismatch' } });
    assert.equal(wire.last().type, 'upload.resume', 'a wrong place is asked about anew');
    assert.equal(result.error, undefined);
});

test('what is said of the connection is no loss; another socket is one, also while the file is being read', async () => {
    const { wire } = await sending();
    await created(wire);
    wire.dispatchEvent(new Event('state'));
    await time.settle();
    assert.deepEqual(wire.sent, []);
    await wire.become('open');
    assert.equal(wire.last().type, 'upload.resume', 'a new socket knows nothing of it');
    const reading = await sending();
    const begins = () => reading.wire.dispatchEvent(new CustomEvent('upload', { detail: { type: 'upload.created', event_id: reading.wire.last().event_id, upload: { id: 'up', handle: 7, chunk_size: 4, window: 8, received: 0 } } }));
    begins();
    for (let i = 0; i < 5; i += 1) await null;
    await reading.wire.hear({ type: 'upload.created', upload: { id: 'stray' } });
    assert.ok(reading.wire.sent.some(({ type, upload_id }) => type === 'upload.cancel' && upload_id === 'stray'), 'one that nobody waits for, whatever else is done');
    const lost = await sending();
    lost.wire.dispatchEvent(new CustomEvent('upload', { detail: { type: 'upload.created', event_id: lost.wire.last().event_id, upload: { id: 'up', handle: 7, chunk_size: 4, window: 8, received: 0 } } }));
    for (let i = 0; i < 5; i += 1) await null;
    Object.assign(lost.wire, { state: 'retrying', socket: null });
    lost.wire.dispatchEvent(new Event('state'));
    await time.settle();
    assert.deepEqual(lost.wire.chunks, []);
    await lost.wire.become('open');
    assert.equal(lost.wire.last().type, 'upload.resume');
});

test('a file that is taken away while it is looked through is not read to its end', async () => {
    const wire = new Wire();
    const attachment = { kind: 'video', name: 'a.mp4', mime: 'video/mp4', blob: new Blob(['x'.repeat(6 * MIB)]) };
    let told = 0;
    const uploader = new Uploader(wire, () => {
        told += 1;
        if (told === 1) uploader.cancel(attachment);
    });
    await assert.rejects(uploader.file(attachment), { code: 'cancelled' });
    assert.deepEqual([told, wire.sent], [2, []], 'the first piece, and that it failed');
});

test('an upload that the server has forgotten begins anew', async () => {
    const { wire } = await sending();
    await created(wire);
    await wire.become('retrying');
    await wire.become('open');
    await wire.hear({ type: 'error', event_id: wire.last().event_id, error: { code: 'upload_not_found' } });
    assert.equal(wire.last().type, 'upload.create');
    const other = await sending();
    await created(other.wire);
    await other.wire.become('retrying');
    await other.wire.become('open');
    await other.wire.hear({ type: 'error', error: { event_id: other.wire.last().event_id, code: 'other', message: 'No.' } });
    assert.ok(other.result.error instanceof UploadError);
    assert.deepEqual([other.result.error.code, other.result.error.message, other.told.at(-1).phase], ['other', 'No.', 'failed']);
});

test('what a server says it cannot take is an error; the next try is a new one', async () => {
    const { begin, result, told, wire } = await sending();
    await wire.hear({ type: 'upload.failed', event_id: wire.last().event_id, error: {} });
    assert.deepEqual([result.error.code, result.error.message, told.at(-1)], ['server_error', '', { phase: 'failed', done: 0, total: 12 }]);
    delete result.error;
    begin();
    await time.settle();
    await created(wire);
    await wire.hear({ type: 'upload.failed', upload_id: 'up', error: { code: 'disk_full' } });
    assert.equal(result.error.code, 'disk_full', 'also while chunks are on their way');
});

test('cancelling: the server is told, at once or with the next socket', async () => {
    const { attachment, begin, result, uploader, wire } = await sending();
    await created(wire);
    uploader.cancel(attachment);
    await time.settle();
    assert.deepEqual([wire.last(), result.error.code], [{ type: 'upload.cancel', upload_id: 'up' }, 'cancelled']);
    uploader.cancel(attachment);
    assert.deepEqual(wire.sent, [], 'what does not run is not cancelled');
    begin();
    await time.settle();
    await created(wire);
    assert.equal(wire.chunks.length, 4, 'it may be sent again');
    await wire.become('retrying');
    uploader.cancel(attachment);
    await time.settle();
    assert.deepEqual(wire.sent, []);
    await wire.become('open');
    assert.deepEqual(wire.sent, [{ type: 'upload.cancel', upload_id: 'up' }]);
    await wire.become('open');
    assert.equal(wire.sent.length, 1);
    const midst = await sending();
    midst.wire.dispatchEvent(new CustomEvent('upload', { detail: { type: 'upload.created', event_id: midst.wire.last().event_id, upload: { id: 'up', handle: 7, chunk_size: 4, window: 8, received: 0 } } }));
    for (let i = 0; i < 5; i += 1) await null;
    midst.uploader.cancel(midst.attachment);
    await time.until(() => midst.result.error);
    assert.deepEqual([midst.wire.chunks, midst.result.error.code], [[], 'cancelled'], 'what was just being read is not sent');
    const early = await sending();
    early.uploader.cancel(early.attachment);
    await time.settle();
    await created(early.wire, { id: 'late' });
    assert.deepEqual(early.wire.last(), { type: 'upload.cancel', upload_id: 'late' }, 'one that had no name yet is given up when it has one');
});

test('without a connection it waits for one', async () => {
    const wire = new Wire();
    await wire.become('retrying');
    await sending('abc', wire);
    assert.deepEqual(wire.sent, []);
    await wire.become('connecting');
    assert.deepEqual(wire.sent, []);
    await wire.become('open');
    assert.equal(wire.sent[0].type, 'upload.create');
});

test('over HTTP: parts of two MiB, a request each', async () => {
    const wire = new Wire();
    await wire.become('fallback');
    const asked = [];
    net.answer = async ({ path, method, headers, body }) => {
        const data = body instanceof FormData ? body.get('data').size : body;
        asked.push([path, method, data, headers['content-type']]);
        if (path.endsWith('/parts')) return reply({ id: `part_${asked.length}` });
        return reply(path.endsWith('/complete') ? { file: { id: 'file_9', expires_at: expires() } } : { id: 'up9' });
    };
    const { result, sha256, told } = await sending('x'.repeat(5 * MIB), wire);
    await time.until(() => result.id);
    assert.equal(result.id, 'file_9');
    const json = 'application/json';
    assert.deepEqual(asked, [
        ['/v1/uploads', 'POST', { filename: 'a.mp4', mime_type: 'video/mp4', sha256, bytes: 5 * MIB, purpose: 'vision' }, json],
        ['/v1/uploads/up9/parts', 'POST', 2 * MIB, undefined],
        ['/v1/uploads/up9/parts', 'POST', 2 * MIB, undefined],
        ['/v1/uploads/up9/parts', 'POST', MIB, undefined],
        ['/v1/uploads/up9/complete', 'POST', { part_ids: ['part_2', 'part_3', 'part_4'], sha256 }, json],
    ]);
    assert.deepEqual(told.filter(({ phase }) => phase === 'sending').map(({ done }) => done), [0, 2 * MIB, 4 * MIB]);
    assert.deepEqual(told.filter(({ phase }) => phase === 'checking').map(({ done }) => done), [0, MIB, 2 * MIB, 3 * MIB, 4 * MIB]);
});

test('over HTTP: a part that is lost is sent again a second later; one that may be there twice begins anew', async () => {
    const wire = new Wire();
    await wire.become('fallback');
    const asked = [];
    let parts = 0;
    net.answer = ({ path }) => {
        asked.push(path.replace(/^\/v1\/uploads/, ''));
        if (path.endsWith('/parts')) {
            parts += 1;
            if (parts === 2) throw new TypeError('lost');
            if (parts === 3) return reply({ error: { code: 'upload_too_large' } }, 400);
            return reply({ id: `p${parts}` });
        }
        return reply(path.endsWith('/complete') ? { file: { id: 'f' } } : { id: 'u' });
    };
    const { result } = await sending('x'.repeat(3 * MIB), wire);
    await time.until(() => parts >= 2);
    await time.pass(999);
    assert.equal(parts, 2);
    await time.pass(1);
    await time.until(() => result.id);
    assert.deepEqual(asked, ['', '/u/parts', '/u/parts', '/u/parts', '/u/cancel', '', '/u/parts', '/u/parts', '/u/complete']);
    assert.equal(result.id, 'f');
});

test('over HTTP: a refusal ends it, and what is there is dropped', async () => {
    for (const body of [{ error: { code: 'upload_too_large', message: 'Much.' } }, 'no JSON']) {
        const wire = new Wire();
        await wire.become('fallback');
        const asked = [];
        net.answer = ({ path, method }) => {
            asked.push(`${method} ${path}`);
            return path.endsWith('/parts') ? reply(body, 413) : reply({ id: 'u' });
        };
        const { result } = await sending('abc', wire);
        await time.until(() => result.error);
        assert.deepEqual([result.error.code, result.error.message], body.error ? ['upload_too_large', 'Much.'] : ['server_error', '']);
        assert.equal(asked.at(-1), 'POST /v1/uploads/u/cancel');
    }
});

test('over HTTP: taken away while a part is on its way, what has arrived is dropped', async () => {
    const wire = new Wire();
    await wire.become('fallback');
    const asked = [];
    let arrive;
    net.answer = ({ path }) => {
        asked.push(path);
        return path.endsWith('/parts') ? new Promise((resolve) => (arrive = () => resolve(reply({ id: 'p' })))) : reply({ id: 'u' });
    };
    const { attachment, result, uploader } = await sending('abc', wire);
    await time.until(() => arrive);
    uploader.cancel(attachment);
    assert.equal(asked.at(-1), '/v1/uploads/u/cancel');
    arrive();
    await time.until(() => result.error);
    assert.deepEqual([result.error.code, asked.length], ['cancelled', 3]);
});

test('which files go ahead, and which go along in the question', async () => {
    globalThis.FileReader = class {
        async readAsDataURL(blob) {
            this.result = `data:${blob.type};base64,${Buffer.from(await blob.arrayBuffer()).toString('base64')}`;
            this.onload();
        }
    };
    const image = (size) => ({ kind: 'image', name: 'i.png', mime: 'image/png', blob: new Blob(['x'.repeat(size)], { type: 'image/png' }) });
    const goes = async (attachment, session, state = 'open') => {
        const wire = Object.assign(new Wire(), { session, state });
        net.answer = () => reply({ error: { code: 'seen' } }, 400);
        let url;
        new Uploads(wire).urlOf(attachment).then((one) => (url = one), (error) => (url = error.code));
        await time.until(() => wire.sent.length || url);
        return wire.sent.length ? 'ahead' : url;
    };
    const may = { limits: { max_uploads: 1 } };
    assert.equal(await goes(image(3), may), 'data:image/png;base64,eHh4');
    assert.match(await goes(image(MIB), may), /^data:/);
    assert.equal(await goes(image(MIB + 1), may), 'ahead');
    assert.equal(await goes({ ...image(3), kind: 'video' }, may), 'ahead');
    for (const session of [{ limits: { max_uploads: 0 } }, {}, null]) assert.match(await goes({ ...image(3), kind: 'video' }, session), /^data:/);
    assert.equal(await goes({ ...image(3), kind: 'video' }, null, 'fallback'), 'seen');
});

test('an address of what was sent; what is taken away before it began is not sent', async () => {
    const wire = new Wire();
    const uploads = new Uploads(wire);
    const attachment = { kind: 'video', name: 'v', mime: 'video/mp4', blob: new Blob(['abc']) };
    assert.equal(uploads.progressOf(attachment), null);
    uploads.start(attachment);
    uploads.cancel(attachment);
    for (let i = 0; i < 10; i += 1) await time.settle();
    assert.deepEqual(wire.sent, []);
    let changes = 0;
    uploads.addEventListener('change', () => (changes += 1));
    const url = uploads.urlOf(attachment);
    await time.until(() => wire.sent.length);
    assert.deepEqual([uploads.progressOf(attachment).phase, changes], ['checking', 1]);
    await wire.hear({ type: 'upload.completed', event_id: wire.last().event_id, file_id: 'f1' });
    assert.equal(await url, 'upload:f1');
    uploads.start({ ...attachment, kind: 'text' });
    uploads.start({ ...attachment, blob: undefined });
    await time.settle();
    assert.deepEqual(wire.sent, []);
    const again = uploads.urlOf(attachment);
    const refused = assert.rejects(again, { code: 'cancelled' });
    await time.until(() => wire.sent.length);
    uploads.cancel(attachment);
    await refused;
});

/** While the server is away there is no part of the page that sends. A module of another name asks for it anew. */
test('the part that sends is asked for again, a second later, until it is there', async () => {
    const away = "let left = 2; export async function resolve(name, from, next) { if (name === './upload.js' && left-- > 0) throw new Error('away'); return next(name, from); }";
    register(`data:text/javascript,${encodeURIComponent(away)}`);
    const { Uploads: Later } = await import('../../web/js/protocol/uploads.js?later');
    const wire = new Wire();
    const [waits, { setTimeout }] = [[], globalThis];
    globalThis.setTimeout = /** @type {any} */ ((fn, ms) => waits.push(ms) && setTimeout(fn, ms));
    try {
        const uploads = new Later(wire);
        uploads.start({ kind: 'video', name: 'v', mime: 'video/mp4', blob: new Blob(['abc']) });
        for (const tried of [[1000], [1000, 1000]]) {
            await time.until(() => waits.length === tried.length);
            await time.pass(999);
            assert.deepEqual([waits, wire.sent], [tried, []]);
            await time.pass(1);
        }
        await time.until(() => wire.sent.length);
        assert.deepEqual([waits, wire.sent.map(({ type }) => type)], [[1000, 1000], ['upload.create']]);
    } finally {
        globalThis.setTimeout = setTimeout;
    }
});
