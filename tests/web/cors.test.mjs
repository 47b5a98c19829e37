/** A page of another origin uses the API of the real server: allowed it reads every answer, not
 * allowed none. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import test, { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch, until } from './helpers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
const program = process.env.PARLEY_BIN ?? join(root, 'build/parley');
const model = join(root, 'assets/seedling');
const skip = !existsSync(program) ? `there is no ${program}` : !existsSync(join(model, 'config.json')) ? 'there is no model' : false;
const KEY = 'sk-0123456789abcdef';

/** Two sites with an empty page each: one may call the API. */
const sites = [1, 2].map(() => createServer((_, reply) => reply.setHeader('Content-Type', 'text/html').end('<!doctype html><title>a page</title>')));
const origins = [];
let browser;
let server;
let url;
let log = '';
before(async () => {
    if (skip) return;
    for (const site of sites) {
        await new Promise((resolve) => site.listen(0, '127.0.0.1', () => resolve(undefined)));
        origins.push(`http://localhost:${/** @type {import('node:net').AddressInfo} */ (site.address()).port}`);
    }
    browser = await launch();
    server = spawn(program, ['serve', '-m', model, '--port', '0', '--api-key', KEY, '--allowed-origins', `${origins[0].toUpperCase()}/`, '--temp', '0']);
    for (const stream of [server.stdout, server.stderr]) stream.on('data', (data) => (log += data));
    await until(() => (url = /http:\/\/[\d.]+:\d+\//.exec(log)?.[0]), `the server to be ready: ${log}`, 120_000);
});
after(async () => {
    if (skip) return;
    await browser.close();
    for (const site of sites) site.close();
    server.kill('SIGTERM');
    await new Promise((resolve) => server.on('exit', resolve));
});

/** What a script of the page sees of a request: status, what the body says, a header; or the
 * fault. */
const ask = (page, path, options = {}) =>
    page.evaluate(
        async ([target, init]) => {
            try {
                const reply = await fetch(target, init);
                return { status: reply.status, text: await reply.text(), id: reply.headers.get('x-request-id') };
            } catch (fault) {
                return { fault: String(fault) };
            }
        },
        [new URL(path, url).href, options],
    );

const headers = {
    Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json', 'Idempotency-Key': 'one', 'X-Stainless-Lang': 'js', 'X-Stainless-Retry-Count': '0',
};
const body = JSON.stringify({ messages: [{ role: 'user', content: 'Who are you?' }], max_tokens: 8 });

test('an allowed page asks, streams, uploads, downloads, deletes, and reads what was wrong', { skip }, async () => {
    const page = await browser.newPage();
    await page.goto(origins[0]);
    const whole = await ask(page, 'v1/chat/completions', { method: 'POST', headers, body });
    assert.equal(whole.status, 200, JSON.stringify(whole));
    assert.match(whole.id, /^req_/);
    const stream = await ask(page, 'v1/chat/completions', { method: 'POST', headers: { ...headers, 'Idempotency-Key': 'two' }, body: body.replace('{', '{"stream":true,') });
    assert.match(stream.text, /data: \[DONE\]/);
    assert.equal((await ask(page, 'v1/chat/completions', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })).status, 401);
    assert.match((await ask(page, 'v1/chat/completions', { method: 'POST', headers, body: '{' })).text, /invalid_json/);
    assert.equal((await ask(page, 'v1/nowhere', { headers: { Authorization: headers.Authorization } })).status, 404);
    const file = await page.evaluate(
        async ([target, key]) => {
            const Authorization = `Bearer ${key}`;
            const form = new FormData();
            form.append('purpose', 'user_data');
            form.append('file', new Blob(['hello']), 'a.txt');
            const { id } = await (await fetch(`${target}v1/files`, { method: 'POST', headers: { Authorization }, body: form })).json();
            const text = await (await fetch(`${target}v1/files/${id}/content`, { headers: { Authorization } })).text();
            const gone = await fetch(`${target}v1/files/${id}`, { method: 'DELETE', headers: { Authorization } });
            return [text, gone.status];
        },
        [url, KEY],
    );
    assert.deepEqual(file, ['hello', 200]);
    await page.close();
});

test('another page reads nothing', { skip }, async () => {
    const page = await browser.newPage();
    await page.goto(origins[1]);
    for (const init of [{ method: 'POST', headers, body }, { headers: { Authorization: `Bearer ${KEY}` } }, {}]) {
        const path = init.body ? 'v1/chat/completions' : 'v1/models';
        assert.match((await ask(page, path, init)).fault ?? '', /Failed to fetch/);
    }
    await page.close();
});
