/**
 * JSON in bodies, over the socket: what RFC 8259 allows is read, as a body and as a value inside
 * one, and everything else is invalid_json. The texts are ours; they cover the classes of
 * JSONTestSuite (its 95 to accept and 188 to refuse).
 */
import assert from 'node:assert/strict';
import { post, request, runTests, startServer, test } from '../client.mjs';

const server = await startServer();
await server.ready();

/** One character a byte; u() gives the bytes of characters beyond ASCII. */
const u = (text) => Buffer.from(text, 'utf8').toString('latin1');
const quoted = (list) => list.map((text) => `"${text}"`);

const GOOD_NUMBERS = ['0', '-0', '7', '-7', '10', '1234567890', '-1234567890', '0.0', '0.5', '-0.5', '3.140', '1e5', '1E5', '1e+5', '1E+5', '1e-5',
    '1E-5', '0e0', '0E+1', '0e-1', '-0e1', '1.5e2', '-1.5E-2', '123.456e78', '0.1e1', '20e1', '-12.75', '1e308', `0.${'0'.repeat(80)}1`, '1'.repeat(70)];
const GOOD_STRINGS = quoted(['', ' ', 'a', 'plain text', '\\"', '\\\\', '\\/', '\\b', '\\f', '\\n', '\\r', '\\t', '\\"\\\\\\/\\b\\f\\n\\r\\t', '\\u0041',
    '\\u00e9', '\\u00C9', '\\u0001', '\\u001f', '\\u007f', '\\u2028', '\\u2029', '\\uFFFF', '\\ufdd0', '\\uFFFE', '\\ud834\\udd1e', '\\uD83D\\uDE00\\ud83d\\ude01',
    '\\udbff\\udfff', '\\ud800\\udc00', '\\\\u0041', '\\\\n', '\\\\\\"', 'a/*b*/c', '// no comment', "it's", '\x7f', '[{,:}]', u('é'), u('€'), u('😀'), u('\u2028'),
    u('\u2029'), u('\ufeff'), u('\uffff'), u('\ufdd0'), u('\u{1fffe}'), u('\u{10fffe}'), u('\u{10ffff}'), u('\u200b'), u('\u0800'), u('aé€😀')]);
const GOOD_REST = ['true', 'false', 'null', '[]', '[ ]', '[\n]', '{}', '{ }', '{\t}', '[[]]', '[[],[]]', '[{}]', '[1]', '[1,2]', '[ 1 , 2 ]', '[null,1,"1",{}]', '[1\n]',
    ' [1]', '[1] ', '\t\r\n [true]\n', '[[[[[[[[]]]]]]]]', '{"a":1}', '{"a":1,"b":2}', '{"a":1,"a":1}', '{"a":1,"a":2}', '{"":0}', '{"a":{"b":{"c":[]}}}',
    '{"a":[]}', '{ "a" : 1 }', '{"\\u0041":1}', `{"${u('é')}":1}`, '{"a":\n1}', '{"min":-1.0e+28,"max":1.0e+28}', `{"x":"${'y'.repeat(300)}"}`];
const GOOD = [...GOOD_NUMBERS, ...GOOD_STRINGS, ...GOOD_REST];

const BAD_NUMBERS = ['-', '+', '+1', '++1', '--1', '-+1', '01', '-01', '00', '007', '1.', '-1.', '1.e5', '.5', '-.5', '.', '0.', '0.e1', '1.2.3', '1..2', '1e', '1E', '1e+', '1E-',
    '1.0e', '1.0e+', '1ee5', '1e5.0', '1e5e5', '1eE2', '1 000', '1_000', "1'000", '1,000.', '0x1', '0xFF', '0X1', '0b1', '0o7', '1f', '1L', '1a', '-a', '- 1', '1 2', '2+2', '1-',
    'Infinity', '-Infinity', '+Infinity', 'Inf', '-inf', 'NaN', '-NaN', 'nan', u('１'), u('½'), '1\xff', '1\xc3', '1e\xe5', '0e', '-1.0.', '1\x00', '$1', '1%'];
const BAD_STRINGS = ['"', '"a', 'a"', "'a'", "'", '`a`', 'a', 'abc', u('é'), '"\\"', '"\\', '"\\\\\\"', '"a\\x41"', '"\\a"', '"\\0"', '"\\v"', '"\\e"', "\"\\'\"", '"\\ "', '"\\\t"',
    `"\\${u('😀')}"`, '"\\\x00"', '"\\u"', '"\\u1"', '"\\u12"', '"\\u123"', '"\\u123', '"\\u12g4"', '"\\u 123"', '"\\u+123"', '"\\U0041"', '"\\u{41}"', '"\\u00A\x00"', '"\\ud800"',
    '"\\udc00"', '"\\ud800a"', '"\\ud800\\n"', '"\\ud800\\u"', '"\\ud800\\u1"', '"\\ud800\\u0041"', '"\\ud800\\ud800"', '"\\udc00\\ud800"', '"\\ud800\\', '"\n"', '"a\nb"', '"\t"', '"\r"',
    '"\x00"', '"\x01"', '"\x1f"', '"a""b"', '"a" "b"', '"a"b', 'b"a"', '"\xff"', '"\xfe"', '"\x80"', '"\xbf"', '"\xc3"', '"\xe2\x82"', '"\xf0\x9f\x98"', '"\xc0\xaf"', '"\xe0\x80\xaf"',
    '"\xf0\x80\x80\xaf"', '"\xed\xa0\x80"', '"\xed\xbf\xbf"', '"\xf4\x90\x80\x80"', '"\xf8\x88\x80\x80\x80"', '\\u0022a\\u0022'];
const BAD_ARRAYS = ['[', ']', '[[', '[]]', '[[]', '][', '[}', '[1', '[1,', '[1,]', '[,]', '[,1]', '[1,,2]', '[1,2,]', '[1,,]', '[,', '[,,', '[1 2]', '[1;2]', '[1:2]', '["a":1]', '[1 true]',
    '["a" "b"]', '["a"', '["a', '["a",\n4\n,1,', '[1],', '[1][2]', '[1]x', '[*]', '[a]', '[tru]', '[fals', '[nul', '[1}', '[3[4]]', '["",]', '[-]', '[\x0b]', '[\x0c]', '[\xa0]', '[\xff]',
    '[\x00]', '[1]]', '[<null>]', '[undefined]', '[\n', '[{', '[{}', '[{]}', '["\x00"]'];
const BAD_OBJECTS = ['{', '}', '{{', '{}}', '{]', '{{}}', '{a:1}', "{'a':1}", '{"a"}', '{"a":}', '{"a":1', '{"a":1,', '{"a":1,}', '{,}', '{,"a":1}', '{"a":1,,"b":2}', '{"a" 1}', '{"a",1}', '{"a"::1}',
    '{"a"=1}', '{"a":1 "b":2}', '{"a":1;"b":2}', '{:1}', '{1:1}', '{null:1}', '{true:1}', '{[]:1}', '{"a":1}x', '{"a":1}}', '{"a":1}#', '{"a":1}//', '{"a":1}/*b*/', '{"a":/*b*/1}', '{/**/}',
    '{"a":1}/', '{"a', '{"a"', '{"a":', '{"a":"', '{"a":"b', '{"a":tru}', '{"a":"b":"c"}', '{"a":b}', '{"\xff":1}', '{"a\n":1}', '{"\\ud800":1}', '{"a":1]', '{"a":[1}', `{${u('😀')}}`,
    '{"a":1,,}', '{*}', '{"a":*}', '{"a":1,"b"}', '{"a":+1}', '{"a":01}', '{"a":.1}'];
const BAD_REST = ['', ' ', '\n', '\xef\xbb\xbf', '\xef\xbb\xbf{}', '\xef\xbb', '\xfe\xff\x00{\x00}', '{\x00}\x00', '\x00', '{}\x00', '\x00{}', 'True', 'TRUE', 'False', 'Null', 'NULL', 'tru', 'truex', 'nul', 'fals',
    'none', 'undefined', 'true false', '1 1', 'null,', ',', ':', ';', '*', '#', '<>', '<null>', '()', '\\', '\\n', '\xe5', u('\u2060{}'), u('\u00a0{}'), u('\u3000{}'), '\x0c{}', '\x0b{}', '{}\x0c',
    '/**/', '{}/**/', '//', '{} {}', '{}[]', '{},', '["a"]["b"]', '['.repeat(100000), '{"a":'.repeat(100000), '[{"":'.repeat(50000), '[[[', '{"a":[', '{[', '[{"a":[{"b":'];
const BAD = [...BAD_NUMBERS, ...BAD_STRINGS, ...BAD_ARRAYS, ...BAD_OBJECTS, ...BAD_REST];

const body = (text) => Buffer.from(text, 'latin1');
const short = (text) => JSON.stringify(text.slice(0, 60));

/** A few at a time, each on a connection of its own. */
async function each(list, check) {
    const rest = [...list];
    await Promise.all(Array.from({ length: 8 }, async () => {
        for (let text = rest.pop(); text !== undefined; text = rest.pop()) await check(text);
    }));
}

test('there are enough, and none twice', () => {
    assert.ok(GOOD.length >= 95 && BAD.length >= 188, `${GOOD.length}, ${BAD.length}`);
    const all = [...GOOD, ...BAD];
    assert.equal(new Set(all).size, all.length, `twice: ${all.filter((text, i) => all.indexOf(text) !== i)}`);
    for (const text of GOOD) JSON.parse(body(text).toString()); // another's opinion
});

test('what JSON is, as the body and inside one', async () => {
    await each(GOOD, async (text) => {
        const alone = await post(server, '/v1/chat/completions', body(text));
        const wanted = /^\s*\{/.test(text) ? 'missing_field' : 'invalid_type';
        assert.equal(alone.status, 400, short(text));
        assert.equal(alone.json().error.code, wanted, short(text));
        const inside = await post(server, '/tokenize', body(`{"content":"hello","other":${text}}`));
        assert.equal(inside.status, 200, `${short(text)}: ${inside.text}`);
    });
});

test('what JSON is not, as the body and inside one', async () => {
    const inside = ['1,000.', '{}/**/']; // would be something else there
    await each(BAD, async (text) => {
        const alone = await post(server, '/v1/chat/completions', body(text));
        assert.equal(alone.status, 400, short(text));
        assert.equal(alone.json().error.code, 'invalid_json', `${short(text)}: ${alone.text}`);
        if (!inside.includes(text)) {
            const reply = await post(server, '/tokenize', body(`{"content":"hello","other":${text}}`));
            assert.equal(reply.json().error?.code, 'invalid_json', `inside: ${short(text)}`);
        }
    });
});

test('a NUL in a string is JSON, and not supported', async () => {
    for (const text of ['"\\u0000"', '["a\\u0000b"]', '{"a\\u0000":1}']) {
        const reply = await post(server, '/v1/chat/completions', body(text));
        assert.equal(reply.status, 400);
        assert.equal(reply.json().error.code, 'unsupported_character');
    }
});

test('every route that takes JSON', async () => {
    const routes = ['/v1/chat/completions', '/v1/completions', '/v1/responses', '/tokenize', '/detokenize', '/apply-template', '/v1/uploads',
        '/v1/chat/completions/input_tokens', '/v1/responses/input_tokens'];
    for (const path of routes) {
        for (const [text, code] of [['{', 'invalid_json'], ['[1', 'invalid_json'], ['[]', 'invalid_type'], ['"a"', 'invalid_type'], ['{"a":"\\u0000"}', 'unsupported_character']]) {
            const reply = await post(server, path, text);
            assert.equal(reply.status, 400);
            assert.equal(reply.json().error.code, code, `${path} ${text}`);
        }
    }
    for (const path of ['/v1/messages', '/v1/messages/count_tokens']) {
        const reply = await post(server, path, '{');
        assert.equal(reply.status, 400);
        assert.equal(reply.json().error.type, 'invalid_request_error');
        assert.match(reply.json().error.message, /JSON is not valid/);
    }
});

test('the server serves on, and ends', async () => {
    assert.equal((await request(server, { path: '/health' })).status, 200);
    assert.equal(await server.stop(), 0);
});

await runTests();
