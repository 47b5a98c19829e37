/** docs/openapi.json against the server: its routes, the fields that its code reads, what it does
 * with wrong ones, its replies. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { chat, post, request, runTests, startServer, test } from '../client.mjs';

const read = (path) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const text = read('docs/openapi.json');
const spec = JSON.parse(text);
const schemas = spec.components.schemas;
const server = await startServer();
await server.ready();

const METHODS = { NET_GET: 'get', NET_POST: 'post', NET_PUT: 'put', NET_PATCH: 'patch', NET_DELETE: 'delete' };
const names = (schema) => Object.keys(schemas[schema].properties).sort();

test('the routes of the file are those of the router', () => {
    const routes = ['get /v1/responses']; /* the WebSocket, which has a table of its own */
    const table = /route ROUTES\[\] = \{.*?^\};/ms.exec(read('server/service/router.c'))[0];
    for (const [, methods, path] of table.matchAll(/\{ROUTE_\w+,\s*([\w| ]+),\s*"([^"]+)"/g)) {
        for (const method of methods.split('|')) routes.push(`${METHODS[method.trim()]} ${path.replace(/[*+]/, '{id}').replace(/[*+]/, '{item}')}`);
    }
    assert.ok(routes.length > 40, 'the table was found');
    const written = Object.entries(spec.paths).flatMap(([path, item]) => Object.keys(item).map((method) => `${method} ${path}`));
    assert.deepEqual(written.sort(), routes.sort());
});

test('the fields of the file are those that the code reads', () => {
    /* Fields by name, those of the table in request_read_sampling, and what Messages share with a chat. */
    const READS = [/\b(?:json_get|present|request_\w+)\([^;]*?\broot,\s*"(\w+)"/g, /\{&p->\w+, "(\w+)",/g];
    const fieldsOf = (file) => {
        const source = read(`server/${file}`);
        const same = /\bSAME\[\] = \{([^}]*)\}/.exec(source)?.[1].match(/\w+/g) ?? [];
        return new Set([...same, ...READS.flatMap((pattern) => [...source.matchAll(pattern)].map((match) => match[1]))]);
    };
    const shared = ['request_fields.c', 'api_request.c', 'thinking_fields.c', 'tool_fields.c', 'video_fields.c', 'conversation.c'].map((file) => `protocol/${file}`);
    const bodies = {
        ChatRequest: [...shared, 'protocol/dialects/chat_request.c'],
        CompletionRequest: ['protocol/dialects/completion_request.c', 'protocol/request_fields.c'],
        ResponsesRequest: [...shared.filter((file) => !file.includes('api_request')), 'protocol/dialects/responses_request.c'],
        MessagesRequest: ['protocol/dialects/messages_request.c'],
        TokenizeRequest: ['protocol/dialects/text_queries.c'],
        UploadRequest: ['service/serve_uploads.c'],
    };
    const elsewhere = {
        ChatRequest: [],
        ResponsesRequest: ['type'] /* of a WebSocket's message */,
        UploadRequest: ['part_ids', 'md5'] /* of /complete */,
        CompletionRequest: [],
        MessagesRequest: [],
        TokenizeRequest: ['tokens'] /* of /detokenize */,
    };
    for (const [body, files] of Object.entries(bodies)) {
        for (const file of files) {
            for (const field of fieldsOf(file)) assert.ok(elsewhere[body].includes(field) || names(body).includes(field), `${body} lacks ${field} of ${file}`);
        }
    }
    for (const [file, n] of [['request_fields.c', 12], ['api_request.c', 9], ['thinking_fields.c', 2], ['dialects/responses_request.c', 15], ['dialects/messages_request.c', 15]]) {
        assert.ok(fieldsOf(`protocol/${file}`).size >= n, `the fields of ${file} were found: ${[...fieldsOf(`protocol/${file}`)]}`);
    }
    const others = [...read('server/protocol/request_fields.c').split('OTHER_FIELDS[] = {')[1].split('};')[0].matchAll(/^ {4}\{"(\w+)", ([^,]+),/gm)];
    assert.ok(others.length > 10, 'the table was found');
    for (const [, field, protocols] of others) {
        for (const [bit, body] of [['OTHER_CHAT', 'ChatRequest'], ['OTHER_COMPLETION', 'CompletionRequest'], ['OTHER_RESPONSES', 'ResponsesRequest']]) {
            if (protocols === 'ALL' || protocols.includes(bit)) assert.ok(names(body).includes(field), `${body} lacks ${field}`);
        }
    }
});

const message = { role: 'user', content: 'hello' };
const BODIES = {
    '/v1/chat/completions': { messages: [message] },
    '/v1/completions': { prompt: 'hello' },
    '/v1/responses': { input: 'hello' },
    '/v1/messages': { messages: [message], max_tokens: 8 },
    '/v1/messages/count_tokens': { messages: [message] },
    '/tokenize': { content: 'hello' },
    '/detokenize': { tokens: [104] },
    '/v1/uploads': { filename: 'a', bytes: 1, purpose: 'vision' },
};
const schemaOf = (path) => spec.paths[path].post.requestBody.content['application/json'].schema.$ref.split('/').pop();

/** A value that the schema has no room for. */
function wrongValue(schema) {
    const types = (schema.oneOf ?? [schema]).flatMap((one) => one.type ?? []);
    if (types.length === 0) return undefined;
    return ['boolean', 'object', 'string'].filter((type) => !types.includes(type)).map((type) => ({ boolean: true, object: { a: 1 }, string: 'x' })[type])[0];
}

test('every field of the file is one that the server checks', async () => {
    /* Understood in part: what is not looked at cannot be wrong. */
    const unchecked = ['/v1/uploads mime_type', '/v1/messages/count_tokens stream'];
    for (const [path, body] of Object.entries(BODIES)) {
        assert.equal((await post(server, path, body)).status, 200, path);
        for (const [field, schema] of Object.entries(schemas[schemaOf(path)].properties)) {
            const value = wrongValue(schema);
            if (value === undefined || unchecked.includes(`${path} ${field}`)) continue;
            const reply = await post(server, path, { ...body, [field]: value });
            assert.equal(reply.status, 400, `${path} ${field}=${JSON.stringify(value)}: ${reply.text}`);
            const { error } = reply.json();
            assert.ok((error.param ?? error.message).includes(field), `${path} ${field}: ${reply.text}`);
        }
    }
});

test('needed fields are needed, ranges are the ranges', async () => {
    for (const [path, body] of Object.entries(BODIES)) {
        const schema = schemas[schemaOf(path)];
        for (const field of schema.required ?? []) {
            assert.equal((await post(server, path, { ...body, [field]: undefined })).status, 400, `${path} without ${field}`);
        }
        for (const [field, { minimum, maximum }] of Object.entries(schema.properties)) {
            for (const beyond of [minimum - 1, maximum + 1].filter(Number.isFinite)) {
                const reply = await post(server, path, { ...body, [field]: beyond });
                assert.equal(reply.status, 400, `${path} ${field}=${beyond}: ${reply.text}`);
            }
        }
    }
});

/** Whether value fits a schema of the few keywords that the file uses for replies. */
function fits(value, schema, at) {
    const s = schema.$ref ? schemas[schema.$ref.split('/').pop()] : schema;
    const type = value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value;
    const types = [s.type ?? type].flat();
    assert.ok(types.includes(type) || (type === 'integer' && types.includes('number')), `${at} is ${type}`);
    if (s.enum) assert.ok(s.enum.includes(value), `${at} is ${value}`);
    if (type === 'array' && s.items) value.forEach((item, i) => fits(item, s.items, `${at}[${i}]`));
    if (type !== 'object') return;
    for (const field of s.required ?? []) assert.ok(field in value, `${at} lacks ${field}`);
    for (const [field, inner] of Object.entries(s.properties ?? {})) if (field in value) fits(value[field], inner, `${at}.${field}`);
}

test('replies and errors have the forms of the file', async () => {
    for (const [path, body] of Object.entries(BODIES)) {
        const { responses } = spec.paths[path].post;
        fits((await post(server, path, body)).json(), responses[200].content['application/json'].schema, path);
        fits((await post(server, path, [])).json(), responses.default.content['application/json'].schema, `${path} error`);
    }
    for (const path of ['/v1/models', '/models', '/health', '/v1/status', '/props', '/slots', '/v1/files']) {
        const reply = await request(server, { path });
        assert.equal(reply.status, 200, path);
        fits(reply.json(), spec.paths[path].get.responses[200].content['application/json'].schema, path);
    }
    const called = (await chat(server, 'hello')).json();
    assert.deepEqual(Object.keys(called).filter((key) => !(key in schemas.ChatCompletion.properties) && key !== 'system_fingerprint'), []);
});

test('the server gives the file away', async () => {
    const reply = await request(server, { path: '/openapi.json' });
    assert.equal(reply.status, 200);
    assert.match(reply.headers['content-type'], /^application\/json/);
    assert.equal(reply.text, text);
    assert.equal(spec.info.version, /project\(parley VERSION ([\d.]+)/.exec(read('CMakeLists.txt'))[1]);
});

test('the end', async () => {
    assert.equal(await server.stop(), 0);
});

await runTests();
