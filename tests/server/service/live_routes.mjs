/**
 * Every route of the server, as server/service/router.c lists them, without a key, with a wrong one, with
 * another method, with bodies that are no JSON or not an object, with fields that nobody knows, and
 * with every known field of every type: each is refused in the one shape of errors, or answered.
 */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chat, post, request, runTests, startServer, test } from '../client.mjs';

const KEY = { Authorization: 'Bearer the-key-of-this-test' };
const folder = await mkdtemp(join(tmpdir(), 'parley-routes-'));
const server = await startServer(['--key', 'the-key-of-this-test', '--history', folder]);
await server.ready();

const source = await readFile(new URL('../../../server/service/router.c', import.meta.url), 'utf8');
const ROUTES = [...source.matchAll(/\{ROUTE_\w+, NET_(\w+), "([^"]+)", "\w+", (true|false), (true|false), (true|false)\}/g)]
    .map(([, method, pattern, isPublic, takesJson]) => ({ method, pattern, isPublic: isPublic === 'true', takesJson: takesJson === 'true' }));
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const pathOf = (route) => route.pattern.replace(/[*+]/g, 'x');
const matches = (pattern, path) => new RegExp(`^${pattern.replace(/[*+]/g, (sign) => (sign === '*' ? '[^/]+' : '.+'))}$`).test(path);

/** What every refusal looks like. */
function checkError(reply, status, where) {
    assert.equal(reply.status, status, `${where}: ${reply.text}`);
    assert.equal(reply.headers['content-type'], 'application/json', where);
    assert.match(reply.headers['x-request-id'], /^req_\w{16,}$/, where);
    assert.equal(reply.headers['request-id'], reply.headers['x-request-id'], where);
    const body = reply.json();
    if (where.includes('/api/')) {
        assert.deepEqual([Object.keys(body), typeof body.error], [['error'], 'string'], where);
        return;
    }
    if (where.includes('/v1/messages')) {
        assert.deepEqual([Object.keys(body), body.type], [['type', 'error'], 'error'], where);
        assert.deepEqual(Object.keys(body.error), ['type', 'message', 'details'], where);
    } else {
        assert.deepEqual(Object.keys(body), ['error'], where);
        assert.deepEqual(Object.keys(body.error).slice(0, 4), ['message', 'type', 'param', 'code'], where);
        assert.ok(body.error.param === null || typeof body.error.param === 'string', where);
        assert.ok(body.error.code === null || typeof body.error.code === 'string', where);
    }
    assert.ok(body.error.message.length > 5 && body.error.type.endsWith('_error') || body.error.type === 'request_too_large', where);
    assert.ok(!/0x[0-9a-f]{4}|\/(tmp|home|usr|var)\//.test(body.error.message), where);
}

test('every route asks for its key', async () => {
    assert.ok(ROUTES.length > 30);
    for (const route of ROUTES) {
        for (const headers of [{}, { Authorization: 'Bearer wrong' }, { Authorization: KEY.Authorization.slice(0, -1) }, { 'X-API-Key': '' }]) {
            const where = `${route.method} ${pathOf(route)} ${JSON.stringify(headers)}`;
            const reply = await request(server, { method: route.method, path: pathOf(route), headers: { 'Content-Type': 'application/json', ...headers }, body: route.method === 'POST' ? '{}' : undefined });
            if (route.isPublic) {
                // The token of a link is a key to what it shows.
                assert.equal(reply.status, route.pattern.startsWith('/v1/shared/') ? 404 : 200, where);
                continue;
            }
            checkError(reply, 401, where);
            assert.equal(reply.headers['www-authenticate'], 'Bearer', where);
        }
    }
});

test('another method is 405, and told which ones there are', async () => {
    for (const path of new Set(ROUTES.map(pathOf))) {
        const known = ROUTES.filter((route) => matches(route.pattern, path)).map((route) => route.method);
        for (const method of METHODS.filter((one) => !known.includes(one))) {
            const reply = await request(server, { method, path, headers: { ...KEY, 'Content-Type': 'application/json' }, body: method === 'GET' || method === 'DELETE' ? undefined : '{}' });
            checkError(reply, 405, `${method} ${path}`);
            for (const one of known) assert.ok(reply.headers.allow.split(', ').includes(one), `${method} ${path}: ${reply.headers.allow}`);
        }
        assert.equal((await request(server, { method: 'OPTIONS', path })).status, 204, path);
    }
});

test('a body that is not a JSON object is 400, of another type 415', async () => {
    const bad = ['', '{', '{"a":1,}', 'nothing', '{"a":1} x', '\u{feff}{}', '[]', '1', '"x"', 'null', 'true', Buffer.from('{"a":"\xff"}', 'latin1'), '['.repeat(100)];
    for (const route of ROUTES.filter((one) => one.takesJson)) {
        for (const body of bad) {
            const where = `${pathOf(route)} ${String(body).slice(0, 20)}`;
            const reply = await request(server, { method: 'POST', path: pathOf(route), headers: { ...KEY, 'Content-Type': 'application/json' }, body });
            checkError(reply, route.pattern.includes('*') && reply.status === 404 ? 404 : 400, where);
        }
        for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', null]) {
            const reply = await request(server, { method: 'POST', path: pathOf(route), headers: { ...KEY, 'Content-Type': type }, body: '{}' });
            checkError(reply, 415, `${pathOf(route)} ${type}`);
        }
    }
});

const SAMPLING = ['temperature', 'top_p', 'top_k', 'min_p', 'presence_penalty', 'frequency_penalty', 'repetition_penalty', 'repeat_penalty', 'seed', 'logit_bias', 'stop', 'mtp', 'cache_prompt', 'parley'];
const LENGTH = ['max_tokens', 'max_completion_tokens', 'n_predict', 'n', 'stream_options', 'return_progress', 'timings_per_token', 'logprobs'];
const OTHER = ['model', 'stream', 'user', 'safety_identifier', 'prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'service_tier', 'metadata', 'store'];
const THINKING = ['chat_template_kwargs', 'enable_thinking', 'reasoning_effort', 'reasoning_budget', 'mm_processor_kwargs'];
const TOOLS = ['tools', 'tool_choice', 'parallel_tool_calls'];
const message = [{ role: 'user', content: 'hello' }];
/** Bodies that are answered, and the fields that are checked. */
const BODIES = {
    '/v1/chat/completions': [{ messages: message }, [...SAMPLING, ...LENGTH, ...OTHER, ...THINKING, ...TOOLS, 'messages', 'top_logprobs', 'response_format', 'continue_final_message', 'id_slot', 'modalities', 'functions', 'web_search_options']],
    '/v1/completions': [{ prompt: 'hello' }, [...SAMPLING, ...LENGTH, ...OTHER, 'prompt', 'echo', 'best_of', 'suffix', 'id_slot']],
    '/v1/responses': [{ input: 'hello' }, [...SAMPLING, ...OTHER, ...THINKING, ...TOOLS, 'input', 'instructions', 'max_output_tokens', 'previous_response_id', 'reasoning', 'text', 'include', 'top_logprobs', 'truncation', 'background', 'conversation', 'prompt', 'stream_id', 'event_id', 'on_disconnect']],
    '/v1/messages': [{ messages: message, max_tokens: 9 }, ['max_tokens', 'messages', 'system', 'temperature', 'top_p', 'top_k', 'stop_sequences', 'stream', 'tools', 'tool_choice', 'thinking', 'metadata', 'seed', 'mtp', 'cache_prompt', 'model']],
    '/v1/messages/count_tokens': [{ messages: message }, ['messages', 'system', 'tools', 'tool_choice', 'thinking']],
    '/v1/chat/completions/input_tokens': [{ messages: message }, ['messages', 'tools', 'tool_choice']],
    '/v1/responses/input_tokens': [{ input: 'hello' }, ['input', 'instructions', 'tools']],
    '/tokenize': [{ content: 'hello' }, ['content', 'parse_special', 'with_pieces']],
    '/detokenize': [{ tokens: [104] }, ['tokens']],
    '/apply-template': [{ messages: message }, ['messages', 'tools', 'chat_template_kwargs']],
};
const VALUES = [true, 0.5, -7, 'x y', '', [], [1], [{}], {}, { a: 1 }];

for (const [path, [good, fields]] of Object.entries(BODIES)) {
    test(`fields of ${path}: unknown ones are ignored, the others checked`, async () => {
        for (const value of [null, ...VALUES]) {
            const reply = await post(server, path, { ...good, field_of_tomorrow: value }, KEY);
            assert.equal(reply.status, 200, `${JSON.stringify(value)}: ${reply.text}`);
        }
        for (const field of fields) {
            let refused = 0;
            for (const value of VALUES) {
                const where = `${path} ${field}: ${JSON.stringify(value)}`;
                const reply = await post(server, path, { ...good, [field]: value }, KEY);
                if (reply.status === 200) continue;
                checkError(reply, 400, where);
                refused++;
                const { param, message: text } = reply.json().error;
                assert.ok(path.startsWith('/v1/messages') ? text.includes(field) : param?.startsWith(field), `${where}: ${reply.text}`);
            }
            assert.ok(refused >= 4, `${path}: ${field} is not checked`);
        }
        assert.equal((await chat(server, 'ping')).status, 401);
    });
}

test('the server ends', async () => {
    assert.equal(await server.stop(), 0);
    await rm(folder, { recursive: true });
});

await runTests();
