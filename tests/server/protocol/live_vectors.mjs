/** Embeddings, ranks, and completions of several prompts. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { events, post, runTests, startServer, test } from '../client.mjs';

const folder = mkdtempSync(join(tmpdir(), 'parley-vectors-'));
const ranks = join(folder, 'ranker');
mkdirSync(ranks);
writeFileSync(join(ranks, 'config.json'), '{}');
writeFileSync(join(ranks, 'ranks'), '');
const server = await startServer();
const ranker = await startServer(['--model', ranks]);
await server.ready();
await ranker.ready();

const ask = async (path, body, status = 200, to = server) => {
    const reply = await post(to, path, body);
    assert.equal(reply.status, status, `${path}: ${reply.text}`);
    return reply.json();
};
/** What the double says of an input of so many bytes, of length 1. */
const vector = (n, dims = 4) => {
    const all = [n, 3, 4, 0].slice(0, dims);
    const size = Math.hypot(...all);
    return all.map((x) => x / size);
};
const close = (a, b) => {
    assert.equal(a.length, b.length);
    a.forEach((x, i) => assert.ok(Math.abs(x - b[i]) < 1e-6, `${a} and ${b}`));
};

test('embeddings: texts, tokens, floats, base64, dimensions, usage', async () => {
    const one = await ask('/v1/embeddings', { model: 'fake', input: 'hello' });
    assert.deepEqual([one.object, one.model, one.data.length, one.data[0].index, one.pooling], ['list', 'fake', 1, 0, 'last']);
    assert.match(one.note, /not trained for embeddings/);
    assert.deepEqual(one.usage, { prompt_tokens: 5, total_tokens: 5 });
    close(one.data[0].embedding, vector(5));
    for (const [input, sizes] of [[['a', 'bcd'], [1, 3]], [[1, 2, 3], [3]], [[[1], [2, 3]], [1, 2]], [['x'], [1]]]) {
        const { data, usage } = await ask('/v1/embeddings', { input });
        assert.deepEqual(data.map((d) => d.index), sizes.map((_, i) => i));
        data.forEach((d, i) => close(d.embedding, vector(sizes[i])));
        assert.equal(usage.total_tokens, sizes.reduce((a, b) => a + b));
    }
    close((await ask('/v1/embeddings', { input: 'hello', dimensions: 2 })).data[0].embedding, vector(5, 2));
    const text = (await ask('/v1/embeddings', { input: 'hello', encoding_format: 'base64' })).data[0].embedding;
    const raw = Buffer.from(text, 'base64');
    close([...new Float32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.length))], vector(5));
    for (const [body, param] of [
        [{}, 'input'], [{ input: [] }, 'input'], [{ input: 3 }, 'input'], [{ input: [1, 'a'] }, 'input'], [{ input: ['a', 3] }, 'input'],
        [{ input: 'a', dimensions: 5 }, 'dimensions'], [{ input: 'a', dimensions: 0 }, 'dimensions'],
        [{ input: 'a', encoding_format: 'int8' }, 'encoding_format'], [{ input: Array(2049).fill('a') }, 'input'],
    ]) {
        assert.equal((await ask('/v1/embeddings', body, 400)).error.param, param, JSON.stringify(body).slice(0, 80));
    }
});

test('Ollama\'s forms', async () => {
    const { embeddings, prompt_eval_count: n } = await ask('/api/embed', { model: 'fake', input: ['ab', 'c'] });
    assert.deepEqual([embeddings.length, n], [2, 3]);
    close(embeddings[1], vector(1));
    close((await ask('/api/embeddings', { model: 'fake', prompt: 'abc' })).embedding, vector(3));
});

test('documents in order, the best first', async () => {
    const body = { query: 'q', documents: ['aa', { text: 'aaaa' }, 'a'] };
    const { results, usage } = await ask('/v1/rerank', body, 200, ranker);
    assert.deepEqual(results.map((r) => [r.index, r.document.text]), [[1, 'aaaa'], [0, 'aa'], [2, 'a']]);
    assert.ok(results[0].relevance_score > results[1].relevance_score && usage.total_tokens > 0);
    const best = await ask('/rerank', { ...body, top_n: 1, return_documents: false }, 200, ranker);
    assert.deepEqual(best.results.map((r) => [r.index, r.document]), [[1, undefined]]);
    for (const [more, param] of [[{ query: '' }, 'query'], [{ documents: [] }, 'documents'], [{ documents: ['a', 3] }, 'documents[1]'], [{ top_n: 0 }, 'top_n'], [{ documents: Array(2049).fill('a') }, 'documents']]) {
        assert.equal((await ask('/v1/rerank', { ...body, ...more }, 400, ranker)).error.param, param);
    }
    // A query counts once for each document; one longer than what stands around it is none too long by itself.
    assert.equal((await ask('/v1/rerank', { ...body, query: 'q'.repeat(5000) }, 200, ranker)).results.length, 3);
    const wide = { query: 'q'.repeat(40000), documents: Array(2048).fill('a') };
    assert.equal((await ask('/v1/rerank', wide, 400, ranker)).error.code, 'input_too_long');
    assert.match((await ask('/v1/rerank', body, 400)).error.message, /ranks no documents/);
});

test('completions of several prompts', async () => {
    const body = { prompt: ['one', 'three !choice'], n: 2, echo: true };
    const whole = await ask('/v1/completions', body);
    const texts = ['oneone', 'oneone', 'three !choicethree !choice', 'three !choicethree !choice1'];
    assert.deepEqual(whole.choices.map((c) => [c.index, c.text]), texts.map((text, i) => [i, text]));
    assert.equal(whole.usage.prompt_tokens, 3 + 13);
    assert.deepEqual((await ask('/v1/completions', { prompt: [[97, 98], [99]] })).choices.map((c) => c.text), ['ab', 'c']);
    const list = events((await post(server, '/v1/completions', { ...body, stream: true })).text);
    assert.equal(list.pop(), '[DONE]');
    const said = ['', '', '', ''];
    for (const { choices: [choice] } of list.map((text) => JSON.parse(text))) said[choice.index] += choice.text;
    assert.deepEqual(said, texts);
    for (const [more, param] of [[{ prompt: Array(33).fill('a') }, 'prompt'], [{ prompt: Array(8).fill('a'), n: 5 }, 'prompt'], [{ prompt: ['a', 3] }, 'prompt'], [{ prompt: [] }, 'prompt']]) {
        assert.equal((await ask('/v1/completions', more, 400)).error.param, param);
    }
});

test('the servers end cleanly', async () => {
    assert.equal(await server.stop(), 0);
    assert.equal(await ranker.stop(), 0);
    rmSync(folder, { recursive: true });
});

await runTests();
