/** docs/openapi.json against the standard: a validator of another make. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { Validator } from '@seriousme/openapi-schema-validator';

const file = fileURLToPath(new URL('../../../docs/openapi.json', import.meta.url));
const validator = new Validator();
const { valid, errors } = await validator.validate(file);
assert.ok(valid, JSON.stringify(errors, null, 2));
assert.equal(validator.version, '3.1');

const broken = structuredClone(validator.resolveRefs());
delete broken.paths['/tokenize'].post.responses;
broken.paths.tokenize = {};
assert.equal((await new Validator().validate(broken)).valid, false, 'the validator sees mistakes');
console.log('ok   docs/openapi.json is OpenAPI 3.1');
