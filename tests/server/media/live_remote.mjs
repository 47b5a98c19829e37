/** Images that a request names by their address: what is fetched and what is refused, on every hop;
 * files below a folder. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Socket, chat, post, rawSocket, runTests, startServer, test } from '../client.mjs';

const PNG = Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47]), Buffer.alloc(200000), Buffer.from('IEND\0\0\0\0')]);
const seen = []; /* requests that arrived */
const waiting = new Map(); /* path: called when a request for it arrives */
const arrival = (path) => new Promise((resolve) => waiting.set(path, resolve)); /* the reply that it gets */

const origin = http.createServer((request, reply) => {
    const { url } = request;
    seen.push(request);
    waiting.get(url)?.(reply);
    const go = (to, status = 302) => reply.writeHead(status, { location: to, 'set-cookie': 'a=b' }).end('moved');
    const hops = /^\/hops\/(\d)$/.exec(url);
    if (url.startsWith('/ok.png')) reply.end(PNG);
    else if (hops) go(hops[1] === '0' ? '/ok.png' : `/hops/${hops[1] - 1}`, 307);
    else if (url === '/loop') go('/loop');
    else if (url.startsWith('/to/')) go(decodeURIComponent(url.slice(4)));
    else if (url === '/nowhere') reply.writeHead(302).end();
    else if (url === '/huge') reply.writeHead(200, { 'content-length': 2 ** 26 + 1 }).write('x');
    else if (url === '/garbage') reply.writeHead(200, { 'content-type': 'image/png' }).end('no image');
    else if (url === '/cut') reply.writeHead(200, { 'content-length': 1000 }).write('x', () => request.socket.destroy());
    else if (url.startsWith('/slow')) reply.writeHead(200, { 'content-length': 1000 }).write('x');
    else if (url === '/silent') return;
    else if (url === '/empty') reply.end();
    else reply.writeHead(404).end('there is nothing here');
});
await new Promise((resolve) => origin.listen(0, '127.0.0.1', resolve));
const { port } = origin.address();
const here = `http://127.0.0.1:${port}`;

const folder = mkdtempSync(join(tmpdir(), 'parley-remote-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const media = join(folder, 'media');
mkdirSync(join(media, 'in side'), { recursive: true });
writeFileSync(join(media, 'ok.png'), PNG);
writeFileSync(join(media, 'in side', 'ok.png'), PNG);
writeFileSync(join(folder, 'secret.png'), PNG);
symlinkSync('ok.png', join(media, 'link.png'));
symlinkSync(folder, join(media, 'up'));
spawnSync('mkfifo', [join(media, 'pipe.png')]);

/* A proxy in the environment would be asked for nothing and answer nothing. */
const proxy = 'http://127.0.0.1:9';
const server = await startServer(['--media-domain', '127.0.0.1', '--media-domain', 'a.localhost', '--media-domain', '[::1]', '--media-path', media],
    { http_proxy: proxy, https_proxy: proxy, all_proxy: proxy, ALL_PROXY: proxy });
await server.ready();
const closed = await startServer();
await closed.ready();

const image = (url) => [{ type: 'image_url', image_url: { url } }, { type: 'text', text: 'What is it?' }];

/** The error of a request with this image, and that its text names `said`. */
async function refused(url, code, said = '', { status = 400, to = server } = {}) {
    const reply = await chat(to, image(url));
    assert.equal(reply.status, status, `${url}: ${reply.text}`);
    const { error } = reply.json();
    assert.equal(error.code, code, `${url}: ${reply.text}`);
    assert.match(error.param, /^messages\[0\]\.content\[0\]/);
    assert.ok(error.message.includes(said), error.message);
    assert.doesNotMatch(reply.text, /0x[0-9a-f]{6}|curl|parley-remote/);
}

async function accepted(url) {
    const reply = await chat(server, image(url));
    assert.equal(reply.status, 200, `${url}: ${reply.text}`);
    assert.match(reply.json().choices[0].message.content, /^\[image\] /);
}

/* They take the time that an image may take, beside the other tests. */
const slow = ['/slow', '/silent'].map((path) => refused(here + path, 'remote_media_failed', '127.0.0.1', { status: 504 }));

test('an image from a host that is listed', async () => {
    await accepted(`${here}/ok.png`);
    await accepted(`${here}/ok.png?size=1#part`);
    await accepted(`http://0x7f.1:${port}/ok.png`); /* the same address, as the library reads it */
    const sent = seen.at(-1);
    assert.deepEqual(Object.keys(sent.headers).sort(), ['accept', 'host', 'user-agent']);
    assert.match(sent.headers['user-agent'], /^parley\//);
    const reply = await post(server, '/v1/responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: `${here}/ok.png` }, { type: 'input_text', text: 'hi' }] }] });
    assert.equal(reply.status, 200, reply.text);
    const counted = await post(server, '/v1/chat/completions/input_tokens', { messages: [{ role: 'user', content: image(`${here}/ok.png`) }] });
    assert.equal(counted.status, 200, counted.text);
    const message = await post(server, '/v1/messages', { max_tokens: 9, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: `${here}/ok.png` } }] }] });
    assert.equal(message.status, 200, message.text);
});

test('redirects stay among the hosts, and end', async () => {
    await accepted(`${here}/hops/0`);
    await accepted(`${here}/hops/2`);
    assert.equal(seen.at(-1).headers.cookie, undefined);
    await refused(`${here}/hops/3`, 'remote_media_failed', 'redirects');
    await refused(`${here}/loop`, 'remote_media_failed', '127.0.0.1');
    await refused(`${here}/nowhere`, 'remote_media_failed', '302');
    const to = (url) => `${here}/to/${encodeURIComponent(url)}`;
    const before = seen.length;
    await refused(to(`http://localhost:${port}/ok.png`), 'remote_media_refused', 'localhost');
    await refused(to('http://10.0.0.1/ok.png'), 'remote_media_refused', '10.0.0.1');
    await refused(to('http://169.254.169.254/latest/meta-data'), 'remote_media_refused', '169.254.169.254');
    await refused(to(`http://[::ffff:127.0.0.1]:${port}/ok.png`), 'remote_media_refused');
    await refused(to(`http://a.localhost:${port}/ok.png`), 'remote_media_refused', 'a.localhost');
    await refused(to('file:///etc/passwd'), 'remote_media_refused');
    await refused(to('ftp://127.0.0.1/x'), 'remote_media_refused');
    await refused(to(`http://user:password@127.0.0.1:${port}/ok.png`), 'remote_media_refused');
    assert.equal(seen.length, before + 8, 'nobody else was asked');
});

test('what is never asked for', async () => {
    const before = seen.length;
    await refused(`http://localhost:${port}/ok.png`, 'remote_media_refused', 'localhost');
    await refused(`http://127.0.0.2:${port}/ok.png`, 'remote_media_refused', '127.0.0.2');
    await refused('https://example.com/x.png', 'remote_media_refused', 'example.com');
    await refused(`http://a.localhost:${port}/ok.png`, 'remote_media_refused', 'not public');
    await refused(`http://user@127.0.0.1:${port}/ok.png`, 'remote_media_refused', 'password');
    for (const url of ['ftp://127.0.0.1/x', `gopher://127.0.0.1:${port}/_x`, 'javascript:1', 'http://', 'http:///x', `http://127.0.0.1:${port}@evil.com/x`,
        `http://127.0.0.1:${port}\r\nx/ok.png`, `http://127.0.0.1:99999/x`, `http://127.0.0.1:${port}/${'x'.repeat(5000)}`]) {
        await refused(url, 'remote_media_refused');
    }
    for (const url of [`${here}/ok.png`, 'file:///etc/passwd', `file://${media}/ok.png`]) await refused(url, 'remote_media_disabled', 'data:', { to: closed });
    assert.equal(seen.length, before);
});

test('what the host sends is not trusted', async () => {
    await refused(`${here}/missing`, 'remote_media_failed', '404');
    await refused(`${here}/garbage`, 'image_parse_error');
    await refused(`${here}/empty`, 'image_parse_error');
    await refused(`${here}/cut`, 'remote_media_failed');
    await refused(`${here}/huge`, 'image_too_large');
    await refused(`https://127.0.0.1:${port}/ok.png`, 'remote_media_failed');
    await refused('http://127.0.0.1:1/ok.png', 'remote_media_failed', '127.0.0.1');
    await refused(`http://[::1]:1/ok.png`, 'remote_media_failed', '::1');
});

test('a client that leaves ends the fetching, a response says why it failed', async () => {
    /* The one that stays began first and so would end first if leaving did nothing. */
    const stays = arrival('/slow/stays');
    slow.push(refused(`${here}/slow/stays`, 'remote_media_failed', '127.0.0.1', { status: 504 }));
    await stays;
    const leaves = arrival('/slow/leaves');
    const body = JSON.stringify({ messages: [{ role: 'user', content: image(`${here}/slow/leaves`) }] });
    const raw = rawSocket(server);
    raw.send(`POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    const [kept, left] = [await stays, await leaves].map((reply) => new Promise((resolve) => reply.on('close', () => resolve(reply))));
    raw.socket.destroy();
    assert.equal(await Promise.race([kept, left]), await leaves);
    const ws = await Socket.open(server, { protocols: 'parley.v1' });
    ws.send({ type: 'response.create', input: [{ role: 'user', content: [{ type: 'input_image', image_url: `${here}/missing` }] }] });
    const failed = await ws.wait('response.failed');
    assert.equal(failed.response.error.code, 'remote_media_failed');
    ws.destroy();
});

test('files below the folder, and nothing else', async () => {
    for (const url of ['file://ok.png', 'file://in%20side/ok.png', `file://${media}/ok.png`, `file://${media}/in%20side/ok.png`, `FILE://${media}/ok.png`]) await accepted(url);
    for (const url of ['file:///etc/passwd', `file://${folder}/secret.png`, 'file://../secret.png', 'file://in%20side/../../secret.png', 'file://%2e%2e/secret.png',
        `file://${media}/../secret.png`, `file://${media}x/ok.png`, 'file://link.png', 'file://up/secret.png', 'file://up', 'file://in%20side', 'file://pipe.png', 'file://',
        `file://${media}`, `file://${media}/`, 'file://./ok.png', 'file://in%20side//ok.png', 'file://ok.png%00', 'file://%6', 'file://%zz', 'file://missing.png',
        `file://${'x/'.repeat(4000)}`]) {
        await refused(url, 'remote_media_refused');
    }
});

test('a host that is too slow', async () => {
    await Promise.all(slow);
});

test('nothing is left behind', async () => {
    assert.equal(await server.stop(), 0);
    assert.equal(await closed.stop(), 0);
    const wrong = await startServer(['--media-domain', 'http://example.org']).catch((error) => error.message);
    assert.match(wrong, /is not a host/);
    const missing = await startServer(['--media-path', join(folder, 'none')]).catch((error) => error.message);
    assert.match(missing, /there is no folder/);
    origin.closeAllConnections();
    origin.close();
});

await runTests();
