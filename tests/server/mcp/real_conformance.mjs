/** The published conformance suite of MCP against Parley as a client, in both versions of the protocol. Left out are
 * authorization (keys stand in the configuration), what extensions add, and elicitation with a person behind it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROGRAM, runTests, test } from '../client.mjs';
import { here, installModules } from './modules.mjs';

const modules = installModules('the conformance suite');
const folder = mkdtempSync(join(tmpdir(), 'parley-conformance-'));
process.on('exit', () => rmSync(folder, { recursive: true }));
/* It is written for Node 22; what it needs of that here is a name of fs that no scenario of a client calls. */
writeFileSync(join(folder, 'fs.mjs'), "export * from 'node:fs';\nexport const globSync = () => [];\n");
writeFileSync(join(folder, 'hook.mjs'), `import { register } from 'node:module';
register('data:text/javascript,' + encodeURIComponent(\`export const resolve = (name, context, next) =>
    name === 'fs' && /conformance.dist/.test(context.parentURL) ? { url: 'file://${folder}/fs.mjs', shortCircuit: true } : next(name, context);\`));\n`);

/** What the suite says of one scenario, and its exit code. */
function run(scenario, version) {
    return new Promise((resolve) => {
        const child = spawn(process.execPath, ['--import', join(folder, 'hook.mjs'), join(modules, '@modelcontextprotocol/conformance/dist/index.js'), 'client',
            '--command', `${process.execPath} ${join(here, 'conformance_client.mjs')} ${PROGRAM}`, '--scenario', scenario, '--spec-version', version, '--timeout', '120000'], { cwd: folder });
        let said = '';
        child.stdout.on('data', (data) => { said += data; });
        child.stderr.on('data', (data) => { said += data; });
        child.on('exit', (code) => resolve({ code, said }));
    });
}

const SCENARIOS = {
    '2025-11-25': ['initialize', 'tools_call', 'sse-retry', 'json-schema-2020-12-preservation'],
    '2026-07-28': ['tools_call', 'request-metadata', 'sep-2322-client-request-state', 'http-standard-headers', 'http-custom-headers', 'http-invalid-tool-headers',
        'json-schema-ref-no-deref', 'json-schema-2020-12-preservation'],
};
for (const [version, scenarios] of Object.entries(SCENARIOS)) {
    for (const scenario of scenarios) {
        test(`${scenario}, ${version}`, async () => {
            const { code, said } = await run(scenario, version);
            assert.equal(code, 0, said);
            assert.match(said, /Passed: [1-9]\d*\/\d+, 0 failed, 0 warnings/, said);
        });
    }
}
await runTests();
