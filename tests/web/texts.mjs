/** The texts in the page's sources, as web/js/language.js finds them: t`...`, plural(...) and the data
 * that `translated` reads. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Template literals of a script: where each begins, its tag, its pieces of text.
 * @param {string} source @returns {{at: number, tag: string, pieces: string[]}[]} */
export function templates(source) {
    const found = [];
    let i = 0;
    const code = (nested) => {
        let last = '';
        for (let depth = 0; i < source.length; ) {
            const c = source[i];
            if (source.startsWith('//', i)) i = (source.indexOf('\n', i) + 1 || source.length + 1) - 1;
            else if (source.startsWith('/*', i)) i = source.indexOf('*/', i) + 2;
            else if (c === "'" || c === '"') quoted(c), (last = 'v');
            else if (c === '`') template(), (last = 'v');
            else if (c === '/' && (/[(,=:[!&|?{};>]/.test(last) || !last || /\breturn\s*$/.test(source.slice(Math.max(0, i - 9), i)))) regex(), (last = 'v');
            else {
                if (c === '{') depth += 1;
                if (c === '}' && depth-- === 0 && nested) return;
                if (/\S/.test(c)) last = c;
                i += 1;
            }
        }
    };
    const quoted = (end) => {
        for (i += 1; source[i] !== end; i += 1) if (source[i] === '\\') i += 1;
        i += 1;
    };
    const regex = () => {
        let inClass = false;
        for (i += 1; source[i] !== '/' || inClass; i += 1) {
            if (source[i] === '\\') i += 1;
            else if (source[i] === '[') inClass = true;
            else if (source[i] === ']') inClass = false;
        }
        i += 1;
    };
    const template = () => {
        const at = i;
        const one = { at, tag: /[\w$.]*$/.exec(source.slice(Math.max(0, at - 20), at))?.[0] ?? '', pieces: [''] };
        found.push(one);
        for (i += 1; source[i] !== '`'; ) {
            if (source.startsWith('${', i)) {
                i += 2;
                code(true);
                i += 1;
                one.pieces.push('');
                continue;
            }
            if (source[i] === '\\') i += 1, (one.pieces[one.pieces.length - 1] += { n: '\n' }[source[i]] ?? source[i]);
            else one.pieces[one.pieces.length - 1] += source[i];
            i += 1;
        }
        i += 1;
    };
    code(false);
    return found;
}

/** @param {string} folder @returns {string[]} */
export const scripts = (folder) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js')).map((name) => join(folder, name));

/** Every text of the page. @param {string} web its folder @returns {Map<string, {plural: boolean, files: string[]}>} */
export function textsOf(web) {
    const texts = new Map();
    const add = (text, plural, file) => {
        const one = texts.get(text) ?? { plural, files: [] };
        if (one.plural !== plural) throw new Error(`both a text and a plural: ${text}`);
        one.files.push(file);
        texts.set(text, one);
    };
    for (const file of scripts(join(web, 'js'))) {
        const source = readFileSync(file, 'utf8');
        if (file.endsWith('language.js')) continue;
        for (const { tag, pieces } of templates(source)) if (tag === 't') add(pieces.reduce((text, piece, i) => `${text}{${i - 1}}${piece}`), false, file);
        const calls = source.match(/(?<![\w.])plural\(/g)?.length ?? 0;
        const read = [...source.matchAll(/(?<![\w.])plural\([^']*?, '((?:[^'\\]|\\.)*)', '((?:[^'\\]|\\.)*)'/g)];
        if (read.length !== calls) throw new Error(`${file}: plural wants two texts in single quotes`);
        for (const [, , other] of read) add(other.replaceAll("\\'", "'"), true, file);
    }
    for (const { title } of JSON.parse(readFileSync(join(web, 'samples/samples.json'), 'utf8'))) add(title, false, 'samples.json');
    return texts;
}
