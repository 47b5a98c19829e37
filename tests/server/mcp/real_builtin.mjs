/** Built-in tools that read: a folder, with what is hostile in it, and pages of a web server. The model is a double of
 * another server; calls are made as a person allows them. The program's sandbox is on. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROGRAM, eventually, post, request, runTests, sleep, startServer, test } from '../client.mjs';
import { startUpstream } from '../upstream/fake_upstream.mjs';

const outside = mkdtempSync(join(tmpdir(), 'parley-folder-'));
const folder = join(outside, 'docs');
process.on('exit', () => rmSync(outside, { recursive: true, force: true }));
mkdirSync(join(folder, 'deep/er'), { recursive: true });
mkdirSync(join(folder, 'empty'));
mkdirSync(join(folder, '.hidden'));
writeFileSync(join(outside, 'secret.txt'), 'the secret');
const file = (name, data) => writeFileSync(join(folder, name), data);
file('notes.txt', Array.from({ length: 3000 }, (_, i) => `line ${i + 1}${i === 1999 ? ' with a Needle' : ''}\n`).join(''));
file('latin.txt', Buffer.from('Z\xfcrich \x80', 'latin1'));
file('wide.txt', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('grüßt die Nadel', 'utf16le')]));
file('picture.png', Buffer.from('89504e470d0a1a0a0000', 'hex'));
file('bytes.bin', Buffer.from([1, 0, 2, 0]));
file('nothing.txt', '');
file('one-line.txt', 'é'.repeat(40000));
file('deep/er/found.md', 'a needle here\n');
file('.hidden/needle.txt', 'needle');
file('odd\n- name\x1b[31m.txt', 'odd');
file('huge.log', 'first\n');
truncateSync(join(folder, 'huge.log'), 2 ** 33);
symlinkSync('../secret.txt', join(folder, 'link.txt'));
symlinkSync('..', join(folder, 'up'));
symlinkSync('loop', join(folder, 'loop'));
execFileSync('mkfifo', [join(folder, 'pipe')]);

const big = '<p>'.repeat(3 << 20);
const asked = [];
const PAGES = {
    '/page': ['text/html', '<!doctype html><html><head><title>A &amp; B\u202e</title><style>p{}</style></head><body><nav>Menu</nav><h1>Head</h1><p>One   <b>bold</b>\n word.<br>Next. <a href="/other?a=1&amp;b=2">a link</a> <a href="javascript:alert(1)">none</a></p>'
        + '<div hidden>unseen</div><p style="display : none">unseen</p><script>unseen()</script><ul><li>x<li>y</ul><table><tr><td>1<td>2</tr><tr><th>3<th>4</table><pre>a\n  b</pre><img alt="a cat" src=x></body></html>'],
    '/latin': ['text/html; charset=ISO-8859-1', Buffer.from('<p>caf\xe9 \x93q\x94', 'latin1')],
    '/meta': ['text/html', Buffer.concat([Buffer.from('<meta charset="shift_jis"><p>'), Buffer.from([0x93, 0xfa, 0x96, 0x7b])])],
    '/broken': ['text/html; charset=utf-8', Buffer.from('<p>a\xffb', 'latin1')],
    '/nobody': ['text/html; charset=klingon', '<p>né'],
    '/plain': ['text/plain', 'é'.repeat(20000)],
    '/json': ['application/json', '{"a":1}'],
    '/image': ['image/png', Buffer.from('89504e47', 'hex')],
    '/deep': ['text/html', '<p>before</p>' + '<div>'.repeat(200000) + '</span>'.repeat(50000)],
    '/empty': ['text/html', ''],
};
const REDIRECTS = { '/hop': '/page', '/metadata': 'http://169.254.169.254/latest', '/private': 'http://10.0.0.1/', '/file': 'file:///etc/passwd', '/other-host': 'http://example.invalid/', '/round': '/round', '/by-name': 'http://localhost.:1/' };
const origin = http.createServer((ask, reply) => {
    asked.push(ask.url);
    if (PAGES[ask.url]) reply.writeHead(200, { 'content-type': PAGES[ask.url][0] }).end(PAGES[ask.url][1]);
    else if (REDIRECTS[ask.url]) reply.writeHead(302, { location: REDIRECTS[ask.url] }).end();
    else if (ask.url === '/big') reply.writeHead(200, { 'content-type': 'text/html' }).end(big);
    else if (ask.url === '/endless') reply.on('close', () => clearInterval(timer)), reply.writeHead(200, { 'content-type': 'text/html' });
    else if (ask.url === '/silent') asked.push('waits');
    else reply.writeHead(404).end('no');
    const timer = ask.url === '/endless' && setInterval(() => reply.write('x'.repeat(65536)), 1);
});
await new Promise((resolve) => origin.listen(0, '127.0.0.1', resolve));
const port = origin.address().port, here = `http://127.0.0.1:${port}`;

const upstream = await startUpstream({ model: 'm' });
upstream.answer = () => ({ content: 'Done.' });
const config = join(outside, 'mcp.json');
writeFileSync(config, JSON.stringify({ mcpServers: { anywhere: { builtin: 'fetch', approval: 'never' }, gone: { builtin: 'folder', path: join(outside, 'gone') }, wrong: { builtin: 'fetch', domains: ['http://x'] } } }));
const server = await startServer(['serve', '--port', '0', '--upstream', `up=${upstream.url}`, '--mcp-config', config, '--tools', `folder=${folder},fetch=127.0.0.1,calculator`, '--tools', 'fetch=localhost', '--drain-timeout', '1']);
const servers = async () => Object.fromEntries((await request(server, { path: '/v1/mcp' })).json().data.map((one) => [one.server_label, one]));
await eventually(async () => (await request(server, { path: '/v1/models' })).json().data.length, 1);
await eventually(async () => {
    const all = await servers();
    return ['folder', 'fetch', 'anywhere'].filter((label) => all[label].state === 'ready').length;
}, 3);

/** What a call brings: its text, or 'Error: ' and what was wrong. */
async function call(server_label, name, args) {
    const reply = await post(server, '/v1/responses', { model: 'up/m', tools: [{ type: 'mcp', server_label }],
        input: [{ role: 'user', content: 'Go.' }, { type: 'mcp_approval_request', id: 'mcpr_1', server_label, name, arguments: JSON.stringify(args) }, { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true }] });
    assert.equal(reply.status, 200, reply.text);
    const item = reply.json().output.find((one) => one.type === 'mcp_call');
    return item.error ? `Error: ${item.error}` : item.output;
}
const read = (path, more = {}) => call('folder', 'read_file', { path, ...more });
const list = (path) => call('folder', 'list_folder', path === undefined ? {} : { path });
const search = (args) => call('folder', 'search_files', args);
const page = (path, more = {}) => call('fetch', 'fetch_page', { url: here + path, ...more });

test('what is on, who is asked, and what is wrong in the configuration', async () => {
    const all = await servers();
    assert.deepEqual(all.folder.tools.map((one) => [one.name, one.approval]), [['list_folder', 'never'], ['read_file', 'never'], ['search_files', 'never']]);
    assert.deepEqual(all.fetch.tools.map((one) => [one.name, one.approval]), [['fetch_page', 'always']]);
    assert.match(all.gone.error, /there is no folder .*gone/);
    assert.match(all.wrong.error, /"http:\/\/x" is not a host/);
    for (const [tools, word] of [['folder', /--tools folder: folder needs a path/], ['folder=/no/such', /there is no folder \/no\/such/], ['fetch=a b', /is not a host/], ['nonsense', /must be calculator, time, folder or fetch/]]) {
        const { status, stderr } = spawnSync(PROGRAM, ['serve', '--port', '0', '--upstream', `up=${upstream.url}`, '--tools', tools], { encoding: 'utf8' });
        assert.notEqual(status, 0, tools);
        assert.match(stderr, word);
    }
});

test('a folder is listed, its files are read in parts', async () => {
    const names = (await list()).split('\n');
    assert.ok(names.includes('deep/') && names.includes('latin.txt (8 bytes)') && names.includes('link.txt (a link, not followed)') && names.includes('pipe (no file)'), names.join('\n'));
    assert.ok(names.includes('odd- name[31m.txt (3 bytes)'), 'a name cannot begin a line of its own');
    assert.match(await list('empty'), /is empty/);
    assert.equal(await list('/deep/./er//'), 'found.md (14 bytes)\n');
    assert.equal(await list(join(folder, 'deep')), 'er/\n');
    assert.match(await read('notes.txt'), /^line 1\n[\s\S]*line 1000\n\n\(cut here, after line 1000; read_file with first_line 1001 goes on\)$/);
    assert.equal(await read('notes.txt', { first_line: 2999 }), 'line 2999\nline 3000\n');
    assert.match(await read('notes.txt', { first_line: 5, lines: 1 }), /^line 5\n\n\(cut here, after line 5;/);
    assert.match(await read('notes.txt', { first_line: 4000 }), /the file has 3000 lines/);
    assert.equal(await read('latin.txt'), 'Zürich €');
    assert.equal(await read('wide.txt'), 'grüßt die Nadel');
    assert.match(await read('one-line.txt'), /^é{16384}\n\(cut here, after line 1, which is longer/);
    assert.equal(await read('nothing.txt'), 'The file is empty.');
    assert.equal(await read('picture.png'), 'This file is no text: it is a PNG image of 10 bytes.');
    assert.equal(await read('bytes.bin'), 'This file is no text: it is binary, of 4 bytes.');
    assert.match(await read('huge.log'), /no text/);
});

test('files are searched by words and by names', async () => {
    assert.equal(await search({ text: 'needle' }), 'notes.txt:2000: line 2000 with a Needle\ndeep/er/found.md:1: a needle here\n(1 files are too large and were not searched)\n');
    assert.equal(await search({ text: 'NADEL' }).then((text) => text.split('\n')[0]), 'wide.txt:1: grüßt die Nadel');
    assert.equal(await search({ name: '*.MD' }), 'deep/er/found.md\n');
    assert.equal(await search({ text: 'needle', name: '*.md', path: 'deep' }), 'deep/er/found.md:1: a needle here\n');
    assert.equal(await search({ text: 'the secret', name: '*.txt' }), 'Nothing was found.\n');
    assert.match(await search({ text: 'line', name: 'notes*' }), /\(the search ended early: there may be more matches/);
    assert.match(await search({}), /text .* or name .* is needed/);
});

test('nothing outside of the folder is read', async () => {
    for (const path of ['../secret.txt', 'deep/../../secret.txt', '..', join(folder, '../secret.txt')]) assert.match(await read(path), /^Error: .*(nothing outside|nothing of this name)/, path);
    assert.match(await read('link.txt'), /is a link, and links are not followed/);
    for (const path of ['up/secret.txt', 'up/docs/notes.txt', 'loop/x', 'notes.txt/x', '/etc/passwd', join(outside, 'secret.txt'), 'pipe', 'x'.repeat(300), 'x/'.repeat(5000), 'a\nb']) assert.match(await read(path), /^Error: /, path);
    assert.match(await read('deep'), /this is a folder/);
    assert.match(await list('up'), /behind a link/);
    // A folder and a link that change places while they are read: what is outside is never seen.
    const [inner, spare, link] = ['swap', 'spare', 'out'].map((name) => join(folder, name));
    mkdirSync(inner);
    writeFileSync(join(inner, 'secret.txt'), 'inside');
    symlinkSync(outside, link);
    let swaps = true;
    const swapping = (async () => {
        while (swaps) {
            renameSync(inner, spare);
            renameSync(link, inner);
            await sleep(0);
            renameSync(inner, link);
            renameSync(spare, inner);
            await sleep(0);
        }
    })();
    const said = new Set();
    for (let i = 0; i < 40; i += 1) said.add(await read('swap/secret.txt'));
    swaps = false;
    await swapping;
    for (const text of said) assert.ok(text === 'inside' || /^Error: .*swap\/secret\.txt: /.test(text), text);
});

test('arguments that break the schema: the model is told what is wrong', async () => {
    assert.match(await call('folder', 'read_file', {}), /the argument path is missing/);
    assert.match(await call('folder', 'read_file', { path: ['x'] }), /the argument path must be a text/);
    assert.match(await call('folder', 'read_file', { path: 'notes.txt', first_line: 0 }), /first_line must be a whole number, 1 or more/);
    assert.match(await call('folder', 'read_file', { path: 'notes.txt', lines: '3' }), /lines must be a whole number/);
    assert.match(await call('folder', 'read_file', { file: 'x', path: 'y' }), /there is no argument file/);
    assert.match(await call('calculator', 'calculate', { expresion: '1+1' }), /the argument expression is missing/);
    assert.equal(await call('calculator', 'calculate', { expression: 7 }), '7');
});

test('the model tries again, within the limit', async () => {
    const rounds = [{ file: 'latin.txt' }, { path: 'latin.text' }, { path: 'latin.txt' }].map((args) => ({ calls: [{ name: 'read_file', args: JSON.stringify(args) }] }));
    let i = 0;
    upstream.answer = () => rounds[i++] ?? { content: 'Done.' };
    const reply = await post(server, '/v1/responses', { model: 'up/m', input: 'Go.', tools: [{ type: 'mcp', server_label: 'folder' }] });
    upstream.answer = () => ({ content: 'Done.' });
    assert.deepEqual(reply.json().output.filter(({ type }) => type === 'mcp_call').map(({ output, error }) => output ?? error.replace(/^\w+: /, '')), ['the argument path is missing', 'latin.text: there is nothing of this name; list_folder shows what there is', 'Zürich €']);
});

test('a page as a person reads it, in its charset', async () => {
    assert.equal(await page('/page'), `Address: ${here}/page\nTitle: A & B\n\n# Head\n\nOne bold word.\nNext. a link (${here}/other?a=1&b=2) none\n\n- x\n- y\n\n1 | 2\n3 | 4\n\na\n  b\n\n[image: a cat]`);
    assert.match(await page('/hop'), new RegExp(`^Address: ${here}/page\n`));
    for (const [path, word] of [['/latin', 'café “q”'], ['/meta', '日本'], ['/broken', 'a\ufffdb'], ['/nobody', 'né'], ['/json', '{"a":1}'], ['/empty', '(the page has no text)']]) assert.equal((await page(path)).split('\n\n')[1], word, path);
    const [, first, note] = (await page('/plain')).split('\n\n');
    assert.equal(first, 'é'.repeat(12288));
    assert.equal(note, '(cut here: 15424 more bytes; fetch_page with start 24576 goes on)');
    assert.equal((await page('/plain', { start: 24576 })).split('\n\n')[1], 'é'.repeat(7712));
    assert.match(await page('/plain', { start: 999999 }), /has ended before/);
});

test('what is no page, or not to be fetched', async () => {
    for (const [path, word] of [['/image', /holds no text but image\/png, 4 bytes/], ['/none', /answered with status 404/], ['/big', /larger than 2 MiB/], ['/endless', /larger than 2 MiB/], ['/round', /behind more than 3 redirects/],
        ['/metadata', /pages of 169\.254\.169\.254 may not/], ['/private', /pages of 10\.0\.0\.1 may not/], ['/file', /no address of a page/], ['/other-host', /pages of example\.invalid may not/]]) assert.match(await page(path), word, path);
    assert.match(await page('/deep'), /before[\s\S]*nested too deep/);
    const fetch = (url) => call('fetch', 'fetch_page', { url });
    for (const [url, word] of [['ftp://127.0.0.1/', /no address of a page/], ['http://me:pw@127.0.0.1/', /no address/], ['', /no address/], [`http://127.0.0.1/${'x'.repeat(5000)}`, /no address/], ['http://example.org/', /may not be fetched/], [`http://[::1]:${port}/`, /may not be/]]) assert.match(await fetch(url), word, url);
    const n = asked.length, anywhere = (url) => call('anywhere', 'fetch_page', { url });
    for (const url of [`${here}/page`, `http://localhost:${port}/page`, `http://0x7f000001:${port}/page`, `http://[::ffff:127.0.0.1]:${port}/page`, 'http://169.254.169.254/', 'http://[fd00::1]/']) assert.match(await anywhere(url), /not public|cannot be reached/, url);
    assert.equal(asked.length, n, 'nobody was asked');
    assert.match(await fetch(`http://localhost:${port}/json`), /\{"a":1\}$/, 'localhost is named');
});

test('pages are waited for beside each other, a person is asked first, and who leaves ends them', async () => {
    const input = 'Go.', calls = Array(12).fill({ name: 'fetch_page', args: JSON.stringify({ url: `${here}/silent` }) });
    upstream.answer = () => ({ calls: [...calls, { name: 'calculate', args: '{"expression":"6*7"}' }] });
    const asks = (await post(server, '/v1/responses', { model: 'up/m', input, tools: [{ type: 'mcp', server_label: 'fetch' }] })).json();
    assert.equal(asks.output.filter(({ type }) => type === 'mcp_approval_request').length > 0, true);
    assert.equal(asks.output.some(({ type, name }) => type === 'mcp_call' && name === 'fetch_page'), false);
    const reply = await post(server, '/v1/responses', { model: 'up/m', input, background: true, store: true, tools: [{ type: 'mcp', server_label: 'fetch', require_approval: 'never' }, { type: 'mcp', server_label: 'calculator' }] });
    const { id } = reply.json(), state = async () => (await request(server, { path: `/v1/responses/${id}` })).json();
    await eventually(() => asked.filter((one) => one === 'waits').length >= 7, true);
    assert.equal((await post(server, `/v1/responses/${id}/cancel`, {})).status, 200);
    await eventually(async () => (await state()).status, 'cancelled');
    upstream.answer = () => ({ content: 'Done.' });
    assert.equal(await call('calculator', 'calculate', { expression: '6*7' }), '42');
});

test('a call at work holds up the end of the server by a moment only', async () => {
    upstream.answer = () => ({ calls: [{ name: 'fetch_page', args: JSON.stringify({ url: `${here}/silent` }) }] });
    const n = asked.length;
    const reply = await post(server, '/v1/responses', { model: 'up/m', input: 'Go.', background: true, store: true, tools: [{ type: 'mcp', server_label: 'fetch', require_approval: 'never' }] });
    assert.equal(reply.status, 200);
    await eventually(() => asked.length > n, true);
    server.child.kill('SIGTERM');
    await server.exited;
    assert.ok(!/Sanitizer|runtime error/.test(server.err), server.err);
    origin.closeAllConnections();
    origin.close();
    await upstream.close?.();
});

await runTests();
