/** Which lines of web/ a test runs, for tools/test_map.py: one JSON file for each page, {"web/js/FILE": [lines]}.
 *
 *     PARLEY_COVERAGE=FOLDER tests/web/run chat.test.mjs
 */
import { randomUUID } from 'node:crypto';
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

/** Every page of the browser notes what it runs until its context is closed.
 * @param {import('playwright-core').Browser} browser @param {string} folder */
export function noteCoverage(browser, folder) {
    const open = new Set();
    const start = async (page) => {
        await page.coverage.startJSCoverage({ resetOnNavigation: false });
        open.add(page);
        return page;
    };
    const stop = async (page) => {
        if (!open.delete(page) || page.isClosed()) return;
        const files = {};
        for (const { url, source, functions } of await page.coverage.stopJSCoverage()) {
            const { protocol, pathname } = new URL(url);
            if (protocol.startsWith('http') && source) {
                const name = `web${pathname}`;
                files[name] = [...new Set([...(files[name] ?? []), ...linesRun(source, functions)])];
            }
        }
        await writeFile(join(folder, `${randomUUID()}.json`), JSON.stringify(files));
    };
    const wrapped = (context) => {
        const [newPage, close] = [context.newPage.bind(context), context.close.bind(context)];
        context.newPage = async () => start(await newPage());
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
        for (const page of open) await stop(page);
        return close(...args);
    };
    return browser;
}
