/** Every text that a grammar lets through must satisfy its schema, says ajv: written schemas and
 * random ones. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { WRITTEN } from './written.mjs';

const program = process.argv[2];
const N_SCHEMAS = Number(process.env.SCHEMAS ?? 60), N_TEXTS = Number(process.env.TEXTS ?? 3);
let state = BigInt(process.env.SEED ?? 1);

/** splitmix64: the same schemas for the same seed. */
function below(n) {
    state = (state + 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & 0xffffffffffffffffn;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & 0xffffffffffffffffn;
    return Number((z ^ (z >> 31n)) % BigInt(n));
}
const one = (list) => list[below(list.length)];
const chance = (percent) => below(100) < percent;

const PATTERNS = ['^[a-z]+$', '\\d{3}', '^(\\w+\\s?){1,3}$', '^[^"\\\\]{2,8}$', '^(foo|ba[rz])*$', 'x|^y', '^\\+?[0-9 ()-]{5,12}$', '^[\\u00e0-\\u00ff]{1,4}$', '^.{0,5}$', '[^\\x00-\\x7f]', '^a?b{2,}$', '^\\S+@\\S+$'];
const FORMATS = ['date-time', 'date', 'time', 'duration', 'uuid', 'ipv4', 'ipv6', 'email', 'hostname', 'uri'];
const NAMES = ['id', 'name', 'a b', 'größe', 'x"y', 'tab\t', 'value', 'items', 'type', '', '$ref2', 'next'];

const randomString = () => {
    const schema = { type: 'string' };
    if (chance(25)) schema.pattern = one(PATTERNS);
    else if (chance(20)) schema.format = one(FORMATS);
    else {
        if (chance(30)) schema.minLength = below(5);
        if (chance(40)) schema.maxLength = (schema.minLength ?? 0) + below(20);
    }
    return schema;
};
const randomNumber = () => {
    const schema = { type: one(['integer', 'number']) };
    const low = (below(4001) - 2000) / one([1, 1, 8, 1000]), wide = below(3000) / one([1, 10]);
    const whole = schema.type === 'integer' ? Math.floor : (x) => Number(x.toFixed(4));
    if (chance(50)) schema[one(['minimum', 'exclusiveMinimum'])] = whole(low);
    if (chance(50)) schema[one(['maximum', 'exclusiveMaximum'])] = whole(low + wide) + 2;
    return schema;
};
const randomValue = () => one([null, true, 3, -2.5, 'text', 'a"b', 'ü€😀', '', [1, 'x'], { k: [null] }, [], {}, 1e21]);
const randomEnum = () => (chance(30) ? { const: randomValue() } : { enum: Array.from({ length: 1 + below(6) }, randomValue) });
function randomArray(depth) {
    const schema = { type: 'array', items: randomSchema(depth) };
    if (chance(25)) schema.prefixItems = Array.from({ length: 1 + below(3) }, () => randomSchema(depth));
    if (chance(15)) schema.items = false;
    if (chance(30)) schema.minItems = schema.items === false ? below(2) : below(4);
    if (chance(50)) schema.maxItems = (schema.minItems ?? 0) + below(4);
    return schema;
}
function randomObject(depth) {
    const names = NAMES.filter(() => chance(30));
    const schema = { type: 'object', properties: Object.fromEntries(names.map((name) => [name, randomSchema(depth)])) };
    if (chance(70)) schema.required = names.filter(() => chance(50));
    if (chance(40)) schema.additionalProperties = chance(60) ? false : randomSchema(depth);
    if (chance(10)) delete schema.properties;
    if (chance(10)) schema.title = 'a title';
    return schema;
}
const randomChoice = (depth) => ({ anyOf: Array.from({ length: 1 + below(3) }, () => randomSchema(depth)) });
const randomOneOf = (depth) => ({ oneOf: ['a', 'b', 'c'].map((kind) => ({ type: 'object', properties: { kind: { const: kind }, v: randomSchema(depth) }, required: ['kind'] })) });
const randomMerge = (depth) => ({ allOf: [randomObject(depth), { properties: { id: { type: ['string', 'integer', 'null'] } } }], ...(chance(50) ? { required: ['id'] } : {}) });
const randomRef = () => ({ $ref: one(['#/$defs/node', '#/$defs/leaf', '#/$defs/tree']) });
function randomSchema(depth) {
    if (depth <= 0) return one([randomString, randomNumber, randomEnum, randomRef, () => ({ type: one(['boolean', 'null', ['string', 'null'], ['integer', 'boolean']]) })])();
    return one([randomString, randomNumber, randomEnum, randomArray, randomObject, randomObject, randomChoice, randomOneOf, randomMerge, randomRef, () => true, () => ({})])(depth - 1);
}
const DEFS = {
    leaf: { type: 'string', maxLength: 6 },
    node: { type: 'object', properties: { v: { type: 'integer' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } }, required: ['v', 'next'], additionalProperties: false },
    tree: { type: 'object', properties: { name: { $ref: '#/$defs/leaf' }, kids: { type: 'array', items: { $ref: '#/$defs/tree' }, maxItems: 2 } }, required: ['name'] },
};

const schemas = [...WRITTEN, ...Array.from({ length: N_SCHEMAS }, () => {
    const schema = randomSchema(3);
    return typeof schema === 'object' ? { ...schema, $defs: DEFS } : schema;
})];
const tokenizer = fileURLToPath(new URL('../../../data/tiny/tokenizer.json', import.meta.url));
const input = schemas.map((schema, i) => JSON.stringify({ schema, texts: N_TEXTS, seed: i * 1000 })).join('\n') + '\n';
const run = spawnSync(program, [tokenizer], { input, maxBuffer: 1 << 30 });
assert.equal(run.status, 0, `${run.status} ${run.signal} ${run.stderr}`);
const replies = run.stdout.toString().trim().split('\n').map((line) => JSON.parse(line));
assert.equal(replies.length, schemas.length);

let nTexts = 0, nRefused = 0, nUnfinished = 0;
for (const [i, schema] of schemas.entries()) {
    const reply = replies[i];
    if (reply.error) {
        assert.ok(i >= WRITTEN.length, `a written schema is refused: ${reply.message} ${JSON.stringify(schema)}`);
        assert.match(reply.message, /nothing can satisfy|not supported|too large/, JSON.stringify(schema));
        nRefused++;
        continue;
    }
    const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false });
    addFormats(ajv);
    const validate = ajv.compile(schema);
    nUnfinished += reply.unfinished;
    for (const text of reply.texts) {
        nTexts++;
        assert.ok(validate(JSON.parse(text)), `${JSON.stringify(schema)}\n${text}\n${JSON.stringify(validate.errors)}`);
    }
}
console.log(`${schemas.length} schemas, ${nRefused} refused; ${nTexts} texts satisfy theirs, ${nUnfinished} did not end in time`);
assert.ok(nTexts > schemas.length && nRefused < schemas.length / 3 && nUnfinished < nTexts / 10);
