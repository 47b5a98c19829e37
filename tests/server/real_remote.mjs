/** Pictures and films by their address through the whole program: the same prompt, cache and answer as sent along; a film that is
 *  too large is cut off on its way. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, post, runTests, startServer, test } from './client.mjs';

if (/\/tsan\//.test(PROGRAM)) {
    console.log('skipped: under TSan a film is not read within its limits');
    process.exit(77);
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const sample = (name) => readFileSync(join(root, 'assets', 'samples', name));
const FILES = { '/photo.jpg': sample('read-text.jpg'), '/film.mp4': sample('ball-moves.mp4') };

let sent = 0;
const origin = http.createServer((request, reply) => {
    if (request.url === '/old/film.mp4') reply.writeHead(301, { location: '/film.mp4' }).end();
    else if (FILES[request.url]) reply.end(FILES[request.url]); /* without a type */
    else if (request.url === '/text.mp4') reply.writeHead(200, { 'content-type': 'video/mp4' }).end('#EXTM3U\nfile:///etc/passwd\n');
    else {
        const more = () => {
            while (!reply.destroyed && sent < 2 ** 28 && reply.write(Buffer.alloc(65536))) sent += 65536;
        };
        reply.on('drain', more);
        more();
    }
});
await new Promise((resolve) => origin.listen(0, '127.0.0.1', resolve));
const here = `http://127.0.0.1:${origin.address().port}`;

const folder = mkdtempSync(join(tmpdir(), 'parley-remote-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const [name, data] of Object.entries(FILES)) writeFileSync(join(folder, name), data);

const server = await startServer(['serve', '-m', `${root}assets/seedling`, '--port', '0', '-t', '1', '--temp', '0', '--log-level', 'error',
    '--media-domains', 'example.org,127.0.0.1', '--media-path', folder, '--max-video-mib', '2', '--cache-ram', '0']);
await server.ready();

const ask = async (kind, url) => {
    const content = [{ type: kind, [kind]: { url } }, { type: 'text', text: 'What is it?' }];
    return post(server, '/v1/chat/completions', { messages: [{ role: 'user', content }], max_tokens: 20 });
};
const answer = async (kind, url) => {
    const reply = await ask(kind, url);
    assert.equal(reply.status, 200, reply.text);
    const { choices, usage, timings } = reply.json();
    return { text: choices[0].message.content, tokens: usage.prompt_tokens, cached: timings.n_media_cached };
};

for (const [kind, type, name] of [['image_url', 'image/jpeg', '/photo.jpg'], ['video_url', 'video/mp4', '/film.mp4']]) {
    test(`${kind}: fetched, read below the folder, sent along`, async () => {
        const first = await answer(kind, here + name);
        assert.ok(first.text.length > 0 && first.tokens > 20);
        assert.equal(first.cached, 0);
        for (const url of [here + name, `file://${folder}${name}`, `file://${name.slice(1)}`, `data:${type};base64,${FILES[name].toString('base64')}`]) {
            assert.deepEqual(await answer(kind, url), { ...first, cached: 1 }, url.slice(0, 40));
        }
    });
}

test('a film behind a redirect, one that is none, one that is too large', async () => {
    assert.equal((await answer('video_url', `${here}/old/film.mp4`)).cached, 1);
    assert.equal((await ask('video_url', `${here}/text.mp4`)).json().error.code, 'unsupported_video_media_type');
    const large = await ask('video_url', `${here}/endless`);
    assert.equal(large.json().error.code, 'video_too_large', large.text);
    assert.ok(sent < 2 ** 26, `the rest is not taken: ${sent}`);
    assert.equal(await server.stop(), 0);
    origin.closeAllConnections();
    origin.close();
});

await runTests();
