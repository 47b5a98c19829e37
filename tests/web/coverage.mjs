/** Which lines of web/ a test runs, for tools/test_map.py: one JSON file for each page,
 * {"case": the test that opened it, as node's --test-name-pattern has it, "files": {"web/js/FILE": [lines]}}.
 *
 *     PARLEY_COVERAGE=FOLDER tests/web/run chat.test.mjs
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The lines of a script whose first character ran. Ranges of a function lie in each other, the outer one first.
 * @param {string} source @param {{ranges: {startOffset: number, endOffset: number, count: number}[]}[]} functions */
function linesRun(source, functions) {
    const counts = new Int32Array(source.length);
    const ranges = functions.flatMap((one) => one.ranges).sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
    for (const range of ranges) counts.fill(range.count, range.startOffset, range.endOffset);
    const lines = [];
    let at = 0;
    source.split('\n').forEach((line, i) => {
        const first = line.search(/\S/);
        if (first >= 0 && counts[at + first]) lines.push(i + 1);
        at += line.length + 1;
    });
    return lines;
}

/** The test of a file that is at work, found by the stack: a pattern of its name, or '' for all of the file. */
function caseAtWork() {
    Error.stackTraceLimit = 50;
    const places = [...new Error().stack.matchAll(/file:\/\/(\/.*\.test\.mjs):(\d+)/g)];
    if (!places.length) return '';
    const [, path, line] = places.at(-1);
    const before = readFileSync(path, 'utf8').split('\n').slice(0, Number(line)).reverse();
    const name = before.map((one) => /^ {0,4}test\((['"`])(.*?)\1, /.exec(one)?.[2]).find(Boolean);
    return name ? `^${name.replace(/\\(['"`])/g, '$1').replace(/\$\{.*?\}|[[\]\\^$.|?*+(){}]/g, (found) => (found[1] ? '.*' : `\\${found}`))}$` : '';
}

/** Every page of the browser notes what it runs until its context is closed.
 * @param {import('playwright-core').Browser} browser @param {string} folder */
export function noteCoverage(browser, folder) {
    const open = new Map(); // of a page the test that opened it
    const start = async (page, name) => {
        await page.coverage.startJSCoverage({ resetOnNavigation: false });
        open.set(page, name);
        return page;
    };
    const stop = async (page) => {
        const name = open.get(page);
        if (!open.delete(page) || page.isClosed()) return;
        const files = {};
        for (const { url, source, functions } of await page.coverage.stopJSCoverage()) {
            const { protocol, pathname } = new URL(url);
            if (protocol.startsWith('http') && source) {
                const name = `web${pathname}`;
                files[name] = [...new Set([...(files[name] ?? []), ...linesRun(source, functions)])];
            }
        }
        await writeFile(join(folder, `${randomUUID()}.json`), JSON.stringify({ case: name, files }));
    };
    const wrapped = (context) => {
        const [newPage, close] = [context.newPage.bind(context), context.close.bind(context)];
        context.newPage = async () => {
            const name = caseAtWork();
            return start(await newPage(), name);
        };
        context.close = async (...args) => {
            for (const page of context.pages()) await stop(page);
            return close(...args);
        };
        return context;
    };
    const [newContext, close] = [browser.newContext.bind(browser), browser.close.bind(browser)];
    browser.newContext = async (options) => wrapped(await newContext(options));
    browser.newPage = async (options) => (await browser.newContext(options)).newPage();
    browser.close = async (...args) => {
        for (const page of open.keys()) await stop(page);
        return close(...args);
    };
    return browser;
}
