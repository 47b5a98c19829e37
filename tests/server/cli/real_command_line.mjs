/** The command line, the environment and config files: one table, and all that is made from it. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAM, runTests, sleep, test } from '../client.mjs';

const folder = mkdtempSync(join(tmpdir(), 'parley-line-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/* Nothing of the machine's own configuration. */
const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PARLEY_')));

const parley = (args, env = {}) =>
    spawnSync(PROGRAM, args, { encoding: 'utf8', env: { ...clean, PARLEY_CONFIG: 'none', ...env }, timeout: 60000 });

function configFile(name, text) {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
}

/** What --print-config says: {key: {value, from}}. */
function configuration(args, env = {}) {
    const { status, stdout, stderr } = parley([...args, '--print-config'], env);
    assert.equal(status, 0, stderr);
    const found = {};
    let from = '';
    for (const line of stdout.split('\n')) {
        const entry = /^(# )?([a-z-]+) =\s?(.*)$/.exec(line);
        if (entry) found[entry[2]] = { value: entry[1] ? null : entry[3], from };
        from = /^# (.*):$/.exec(line)?.[1] ?? '';
    }
    return found;
}

const refused = (args, sentence, env) => {
    const { status, stdout, stderr } = parley(args, env);
    assert.match(stderr, sentence);
    assert.equal(stderr.trim().split('\n').length, 1, stderr);
    assert.equal(stdout, '');
    assert.equal(status, 2, stderr);
};

const COMMANDS = ['serve', 'run', 'bench', 'inspect', 'convert', 'health', 'chat', 'status', 'stop', 'doctor', 'pull', 'list', 'remove', 'manual', 'version'];

test('help fits 80 columns, comes on standard output and ends with 0', () => {
    for (const args of [['--help'], ['help'], ...COMMANDS.map((c) => [c, '--help']), ['serve', '-m', 'x', '-h']]) {
        const { status, stdout, stderr } = parley(args);
        assert.equal(status, 0);
        assert.equal(stderr, '');
        for (const line of stdout.split('\n')) assert.ok(line.length <= 80 && line === line.trimEnd(), line);
    }
    const { stdout } = parley(['serve', '--help']);
    for (const heading of ['Model:', 'Answers:', 'Server:', 'Access:', 'Program:']) assert.ok(stdout.includes(`\n${heading}\n`));
    assert.match(stdout, /--port N .*\[8080\]/);
});

test('what cannot be written is said', () => {
    const full = openSync('/dev/full', 'w');
    for (const args of [['serve', '--help'], ['--version'], ['list', '--json'], ['serve', '--print-config'], ['inspect', '-m', fileURLToPath(new URL('../../data/tiny', import.meta.url))]]) {
        const { status, stderr } = spawnSync(PROGRAM, args, { encoding: 'utf8', env: { ...clean, PARLEY_CONFIG: 'none' }, stdio: ['ignore', full, 'pipe'] });
        assert.match(stderr, /the output was not written/, args.join(' '));
        assert.equal(status, 1, args.join(' '));
    }
    closeSync(full);
});

test('a mistake is one line with what may be meant, and ends with 2', () => {
    refused(['--prot', '1'], /serve has no option --prot; did you mean --port\?/);
    refused(['serve', '--ctx', '1'], /did you mean --ctx-size\?/);
    refused(['serve', '--xyzzyxyzzy'], /serve has no option --xyzzyxyzzy \(/);
    refused(['run', '--port', '1'], /run has no option --port/);
    refused(['-z'], /serve has no option -z/);
    refused(['frobnicate'], /there is no command "frobnicate"/);
    refused(['serve', 'x'], /"x" is one word too many/);
    refused(['serve', '--port'], /--port needs a value: N/);
    refused(['serve', '--port', '65536'], /--port is "65536"; it takes a number from 0 to 65535/);
    refused(['serve', '--port', '80 '], /--port is "80 "/);
    refused(['serve', '--temp', 'nan'], /--temp is "nan"; it takes a number from 0 to 100/);
    refused(['serve', '--cpu', 'avx'], /--cpu is "avx"; it takes generic, avx2, avx512, .* or native/);
    refused(['serve', '--cpu', ''], /--cpu is ""/);
    refused(['serve', '--mtp=maybe'], /--mtp is "maybe"; it takes on or off/);
    refused(['serve', '--no-port'], /serve has no option --no-port/);
    refused(['serve', '--no-help'], /serve has no option --no-help/);
    refused(['manual', 'parley.7'], /there is no page "parley.7"/);
});

test('a folder that has the form of a name at a hub is the folder', () => {
    mkdirSync(join(folder, 'org/model'), { recursive: true });
    writeFileSync(join(folder, 'org/model/config.json'), '{}');
    const inspect = (model) => spawnSync(resolve(PROGRAM), ['inspect', '-m', model], { encoding: 'utf8', cwd: folder, env: { ...clean, PARLEY_CONFIG: 'none' }, timeout: 60000 });
    assert.match(inspect('org/model').stderr, /^parley: org\/model holds neither model\.safetensors/);
    assert.match(inspect('org/none').stderr, /there is no model org\/none, neither as a path nor in /);
});

test('values behind =, as the next word, behind a letter; switches and their opposites; the last one counts', () => {
    const c = configuration(['--port=1', '--port', '2', '-c512', '-np', '3', '-t', '5', '--no-mtp', '--no-ui', '--ui', '--seed=7']);
    assert.equal(c.port.value, '2');
    assert.equal(c['ctx-size'].value, '512');
    assert.equal(c.parallel.value, '3');
    assert.equal(c.threads.value, '5');
    assert.equal(c.mtp.value, 'off');
    assert.equal(c.ui.value, 'on');
    assert.equal(c.seed.value, '7');
    assert.equal(configuration(['--max-model-len', '4096'])['ctx-size'].value, '4096', 'a name of another server');
    const known = configuration(['--served-model-name', 'm', '--enable-mtp', '--no-enable-prefix-cache', '--prefill-step-size', '256',
        '--tool-call-parser', 'qwen3_coder', '--continuous-batching', '--mem-fraction', '0.8', '--reasoning-parser', 'qwen3', '--enable-auto-tool-choice']);
    assert.deepEqual(['alias', 'mtp', 'prefix-cache', 'batch-size', 'mem-fraction', 'reasoning-parser'].map((name) => known[name].value), ['m', 'on', 'off', '256', '0.8', 'qwen3']);
    refused(['serve', '--prefill-step-size', '1'], /--batch-size is "1"; it takes a number from 16 to 8192/);
    refused(['serve', '--template-history', 'new'], /--template-history is "new"; it takes stable or published/);
    refused(['serve', '--tool-call-parser', 'llama3'], /--tool-call-parser llama3 is unknown; it may be auto, none, qwen3_xml \(or qwen3_coder\), hermes/);
    assert.equal(configuration(['--allowed-hosts', 'a', '--allowed-hosts=b,c'])['allowed-hosts'].value, 'a,b,c');
    assert.equal(parley(['run', '--print-config', '--', '--port']).status, 0, 'behind -- all words are words');
    refused(['serve', '--', '--port'], /"--port" is one word too many/);
});

test('command line, then environment, then config file, then built-in', () => {
    const path = configFile('all.conf', 'port = 1001\nqueue = 5\nparallel = 6\nmtp = no\n');
    const c = configuration(['--config', path, '--port', '3003'], { PARLEY_PORT: '2002', PARLEY_QUEUE: '7' });
    assert.deepEqual(c.port, { value: '3003', from: 'command line' });
    assert.deepEqual(c.queue, { value: '7', from: 'environment' });
    assert.deepEqual(c.parallel, { value: '6', from: 'config file' });
    assert.deepEqual(c.mtp, { value: 'off', from: 'config file' });
    assert.deepEqual(c['spec-prefill-threshold'], { value: '8192', from: '' });
    assert.equal(configuration([], { PARLEY_CONFIG: path }).port.value, '1001');
    const lists = configFile('lists.conf', 'route = when media use a/m\nupstream = a=http://x\n[serve]\nupstream = b=http://y,http://z\nroute = when queue > 3 use b/m\n');
    const { upstream, route } = configuration(['--config', lists]);
    assert.deepEqual([upstream.value, route.value], ['a=http://x,b=http://y,http://z', 'when media use a/m,when queue > 3 use b/m']);
    assert.equal(configuration(['--config', lists, '--upstream', 'c=http://w']).upstream.value, 'c=http://w');
    assert.equal(configuration(['--mtp'], { PARLEY_MTP: 'false' }).mtp.value, 'on');
    refused([], /PARLEY_PORT is "x"; it takes a number/, { PARLEY_PORT: 'x' });
    refused([], /PARLEY_MTP is "perhaps"; it takes on or off/, { PARLEY_MTP: 'perhaps' });
});

test('every option can be said in the environment and in a config file', () => {
    for (const command of COMMANDS.slice(0, 6)) {
        const before = configuration([command]);
        const keys = Object.keys(before).filter((key) => before[key].value !== null);
        const env = Object.fromEntries(keys.map((key) => [`PARLEY_${key.toUpperCase().replaceAll('-', '_')}`, before[key].value]));
        const path = configFile(`${command}.conf`, parley([command, '--print-config']).stdout);
        for (const [key, { from, value }] of Object.entries(configuration([command], env))) {
            assert.equal(from, keys.includes(key) ? 'environment' : '', key);
            assert.equal(value, before[key].value);
        }
        for (const [key, { from, value }] of Object.entries(configuration([command, '--config', path]))) {
            assert.equal(from, keys.includes(key) ? 'config file' : '', key);
            assert.equal(value, before[key].value);
        }
    }
});

test('the home of the user has a config file', () => {
    const env = { PARLEY_CONFIG: '', XDG_CONFIG_HOME: folder };
    mkdirSync(join(folder, 'parley'), { recursive: true });
    configFile('parley/parley.conf', 'port = 4004\n');
    assert.equal(configuration([], env).port.value, '4004');
    mkdirSync(join(folder, '.config/parley'), { recursive: true });
    configFile('.config/parley/parley.conf', 'port = 5005\n');
    assert.equal(configuration([], { PARLEY_CONFIG: '', XDG_CONFIG_HOME: '', HOME: folder }).port.value, '5005');
    assert.equal(configuration(['--config', 'none'], env).port.value, '8080');
});

test('config files: comments, quotes, sections, keys of other commands, line ends', () => {
    const path = configFile(
        'forms.conf',
        '# a comment\r\n; another\r\n\r\n  alias = "two words"  \r\nrepeat = 9\n[run]\nport = 1\nquiet = on\n[serve]\nport=2\n[bench]\nrepeat = 4',
    );
    const c = configuration(['--config', path]);
    assert.equal(c.alias.value, 'two words');
    assert.equal(c.port.value, '2');
    assert.equal(c.quiet.value, 'off');
    assert.equal(configuration(['run', '--config', path]).quiet.value, 'on');
    assert.equal(configuration(['bench', '--config', path]).repeat.value, '4');

    const wrong = (name, text, sentence) => refused(['--config', configFile(name, text)], sentence);
    wrong('key.conf', '\nprot = 1\n', /key\.conf line 2: there is no option "prot"; did you mean port\?/);
    wrong('value.conf', 'port = x\n', /value\.conf line 1: port is "x"; it takes a number from 0 to 65535/);
    wrong('pair.conf', 'port 1\n', /pair\.conf line 1: a line is `key = value`, not "port 1"/);
    wrong('section.conf', '[server]\n', /line 1: there is no command "server"/);
    wrong('bracket.conf', '[serve\n', /line 1: a section is a command's name in brackets/);
    wrong('place.conf', 'print-config = on\n', /line 1: a config file cannot set "print-config"/);
    wrong('self.conf', 'config = x\n', /a config file cannot set "config"/);
    wrong('zero.conf', 'port = 1\n\0', /not a text file/);
    wrong('long.conf', '#'.repeat(2 << 20), /the config file cannot be read: .*long\.conf/);
    refused(['--config', join(folder, 'missing.conf')], /the config file cannot be read: .*missing\.conf/);
    refused(['--config', folder], /the config file cannot be read/);
});

test('secrets are neither printed nor in the process list', async () => {
    const key = 'a-secret-of-enough-letters';
    for (const [args, env] of [
        [['--api-key', key], {}],
        [[`--api-key=${key}`], {}],
        [[], { PARLEY_API_KEY: key }],
    ]) {
        const { stdout } = parley([...args, '--print-config'], env);
        assert.match(stdout, /# api-key = \(set; not shown\)/);
        assert.ok(!stdout.includes(key));
    }
    const child = spawn(PROGRAM, ['serve', '--port', '0', '--api-key', key, `--api-key=${key}2`], {
        env: { ...clean, PARLEY_CONFIG: 'none' },
        stdio: ['ignore', 'pipe', 'ignore'],
    });
    const exited = new Promise((resolve) => child.on('exit', resolve));
    const line = () => readFileSync(`/proc/${child.pid}/cmdline`, 'utf8');
    /* empty until the program has begun, then with the key until it has read it */
    const isHidden = (shown) => shown.includes('--api-key') && !shown.includes(key);
    let shown = line();
    for (let i = 0; i < 1000 && !isHidden(shown); i++) {
        await sleep(10);
        shown = line();
    }
    child.kill('SIGKILL');
    await exited;
    assert.ok(isHidden(shown), shown);
});

test('completions work in bash; those for zsh and fish name every option', () => {
    const scripts = Object.fromEntries(['bash', 'zsh', 'fish'].map((s) => [s, parley(['--completion', s]).stdout]));
    for (const shell of ['bash', 'zsh', 'fish']) {
        if (spawnSync(shell, ['--version']).error) continue;
        const path = configFile(`completion.${shell}`, scripts[shell]);
        const check = spawnSync(shell, ['-n', path], { encoding: 'utf8' });
        assert.equal(check.status, 0, check.stderr);
    }
    const complete = (...words) => {
        const script = `${scripts.bash}\nCOMP_WORDS=(${words.map((w) => `'${w}'`).join(' ')}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _parley; echo "\${COMPREPLY[@]}"`;
        return spawnSync('bash', ['-c', script], { encoding: 'utf8', cwd: folder }).stdout.trim();
    };
    assert.equal(complete('parley', 'be'), 'bench');
    assert.equal(complete('parley', '--por'), '--port');
    assert.equal(complete('parley', 'run', '--por'), '');
    assert.equal(complete('parley', 'run', '--cpu', 'avx5'), 'avx512 avx512+vnni avx512+vnni+bf16 avx512+vnni+bf16+amx');
    assert.equal(complete('parley', 'serve', '--cpu', '=', 'gen'), 'generic');
    assert.equal(complete('parley', '--no-mt'), '--no-mtp');
    assert.equal(complete('parley', 'convert', '--config', 'forms'), 'forms.conf');
    for (const key of Object.keys(configuration(['serve']))) {
        assert.ok(scripts.zsh.includes(`'--${key}`), key);
        assert.ok(scripts.fish.includes(`-l ${key} `), key);
    }
});

test('manual pages name every option and groff has no complaint', () => {
    const pages = ['parley.1', 'parley.conf.5'].map((page) => parley(['manual', page]).stdout);
    const roff = (text) => text.replaceAll('-', '\\-');
    for (const command of COMMANDS.slice(0, 6)) {
        for (const key of Object.keys(configuration([command]))) {
            assert.ok(pages[0].includes(roff(`--${key}\\f`)), key);
            assert.ok(pages[1].includes(`\\fB${roff(key)}\\fR = `), key);
        }
    }
    if (spawnSync('groff', ['--version']).error) return;
    for (const page of pages) {
        const { status, stderr } = spawnSync('groff', ['-man', '-Tutf8', '-ww', '-z'], { input: page, encoding: 'utf8' });
        assert.equal(status, 0);
        assert.equal(stderr, '');
    }
});

test('bench measures what it is asked for, in three forms', () => {
    const bench = (...more) => parley(['bench', '-c', '1024', '-p', '64', '-n', '4', '-r', '1', ...more]);
    const full = JSON.parse(bench('--full', '--json').stdout);
    assert.ok(full.limits.bandwidth_gbs > 0 && full.limits.f32_gflops > 0);
    assert.deepEqual(
        full.rows.map((row) => `${row.what} ${row.sequences}`),
        ['prompt 1', 'answer 1', 'with drafts 1', 'answer 1', 'image 1', ...[1, 2, 4, 8, 16].map((n) => `answers ${n}`)],
    );
    assert.ok(full.rows.every((row) => row.per_second > 0 && row.ms > 0));
    for (const { what, ms, per_second: speed, tokens, sequences } of full.rows) {
        const made = /prompt|image/.test(what) ? tokens : sequences;
        assert.ok(Math.abs((ms * speed) / 1000 / made - 1) < 0.01, `${what}: ${ms} ms, ${speed} a second`);
    }
    const answers = full.rows.filter(({ what }) => what === 'answers');
    for (const { ratio, per_second: speed } of answers) assert.ok(Math.abs(ratio - speed / answers[0].per_second) < 0.001 + 0.01 * ratio, `${ratio} times one alone`);
    const lines = bench('--csv', '-p', '256').stdout.trim().split('\n').map((line) => line.split(','));
    assert.equal(lines.length, 4);
    assert.ok(lines.every((line) => line.length === 12));
    // What a token costs grows with what stands before it: in a prompt half of it, for an answer all of it.
    const long = Object.fromEntries(lines[0].map((name, i) => [name, i ? Number(lines[1][i]) : lines[1][i]]));
    const [prompt, near, , far] = full.rows;
    const cost = ({ what, gflops, ms, tokens }) => (gflops * ms) / (what === 'answer' ? 1 : tokens);
    const ofOne = (cost(far) - cost(near)) / (far.context - near.context);
    const grown = (cost(long) - cost(prompt)) / ((long.tokens - prompt.tokens) / 2);
    assert.ok(ofOne > 0 && grown > 0.6 * ofOne && grown < 1.2 * ofOne, `${grown} and ${ofOne}`);
    assert.match(bench('--mlock', '--huge-pages').stdout, /limits of this run: .* GB\/s/);
});

test('a model that is loaded has a bar on a terminal, and none elsewhere', () => {
    // script(1) gives the program a terminal of its own.
    const env = { ...clean, PARLEY_CONFIG: 'none' };
    const { status, stdout } = spawnSync('script', ['-qec', `'${PROGRAM}' serve --check`, '/dev/null'], { encoding: 'utf8', env, timeout: 60000 });
    assert.equal(status, 0, stdout);
    const bars = [...stdout.matchAll(/\r\x1b\[K\[(#*)(\.*)\] +(\d+) %  [a-z]+/g)];
    assert.ok(bars.length > 1, stdout);
    let last = 0;
    for (const [, full, none, percent] of bars) {
        assert.equal(full.length + none.length, 32);
        assert.ok(Number(percent) >= last);
        last = Number(percent);
    }
    assert.match(stdout, /\x1b\[K[^[]*ok: model/, 'it is wiped away in the end');
    assert.doesNotMatch(parley(['serve', '--check']).stderr, /\[#/);
});

test('--licenses prints what is embedded and names what is linked', () => {
    const { status, stdout } = parley(['--licenses']);
    assert.equal(status, 0);
    const root = new URL('../../../', import.meta.url);
    const licenses = readdirSync(new URL('web/vendor/licenses', root));
    assert.ok(licenses.length > 5);
    for (const file of ['LICENSE', ...licenses.map((name) => `web/vendor/licenses/${name}`)]) assert.ok(stdout.includes(readFileSync(new URL(file, root), 'utf8')), file);
    assert.match(stdout, /== temml, embedded in the page ==/);
    const cmake = readFileSync(new URL('CMakeLists.txt', root), 'utf8');
    const linked = [...cmake.matchAll(/pkg_check_modules\((\w+)/g)].length;
    assert.equal(stdout.split('linked to ==\n\n')[1].trim().split('\n').length, linked, 'a library without its licence');
});

test('docs/options.md is what the program says', () => {
    const written = readFileSync(new URL('../../../docs/options.md', import.meta.url), 'utf8');
    assert.equal(written, parley(['manual', 'options']).stdout, 'build/parley manual options > docs/options.md');
});

await runTests();
