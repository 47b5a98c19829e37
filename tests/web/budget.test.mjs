/** Sizes, times, and that the vendored files are the pinned ones. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { keepLong, launch, openChat } from './helpers.mjs';
import { startMock } from './mock_server.mjs';

const WEB = join(dirname(fileURLToPath(import.meta.url)), '../../web');
const BUDGET = 150 * 1024;

function files(folder) {
    return readdirSync(folder).flatMap((name) => {
        const path = join(folder, name);
        return statSync(path).isDirectory() ? files(path) : [path];
    });
}

test('page and libraries fit in 150 KB gzip, what is loaded on demand aside', () => {
    const counted = files(WEB).filter((path) => !/README|samples|languages|licenses|SHA256SUMS|shared\.(html|css)|(js\/documents\/.*|vendor\/highlight|temml|mermaid|pdf|pdf-worker|sources|video-strip|clip|video-plan|history_server|server-status|model-list|hub-models|viewer|preview|prompts|voice|share|shared|shared-page|offline_copy|import_others|transfer|sw|tools|tool-view|tools-menu|tool-offers|upload|sha256)\.js$|css\/(tools|hub)/.test(relative(WEB, path)));
    const total = counted.reduce((sum, path) => sum + gzipSync(readFileSync(path), { level: 9 }).length, 0);
    console.log(`page and libraries: ${(total / 1024).toFixed(1)} KB gzip in ${counted.length} files`);
    assert.ok(total <= BUDGET, `${total} bytes`);
});

test('vendored files are what their checksums say, with their licences', () => {
    const sums = readFileSync(join(WEB, 'vendor/SHA256SUMS'), 'utf8').trim().split('\n');
    assert.equal(sums.length, 7);
    for (const line of sums) {
        const [sum, name] = line.split(/\s+/);
        assert.equal(createHash('sha256').update(readFileSync(join(WEB, 'vendor', name))).digest('hex'), sum, name);
    }
    assert.ok(readdirSync(join(WEB, 'vendor/licenses')).length >= 40);
});

test('no page file makes HTML from text', () => {
    for (const path of files(join(WEB, 'js'))) {
        const source = readFileSync(path, 'utf8');
        assert.doesNotMatch(source, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|unsafeHTML|eval\(|new Function/, path);
        assert.doesNotMatch(source, /crypto\.(randomUUID|subtle)/, path);
        assert.doesNotMatch(source, /(?:import|fetch|src=)\s*\(?["'](?:https?:)?\/\//, path);
    }
});

test('every module that each page needs is fetched ahead', () => {
    const page = readFileSync(join(WEB, 'index.html'), 'utf8');
    for (const path of files(join(WEB, 'js')).filter((path) => path.endsWith('.js'))) {
        const name = relative(WEB, path);
        if (!/^js\/documents\/|\/(sources|video-strip|clip|video-plan|history_server|server-status|model-list|hub-models|viewer|preview|prompts|voice|share|shared|shared-page|offline_copy|import_others|transfer|tools|tool-view|tools-menu|tool-offers|upload|sha256)\.js$/.test(name)) assert.ok(page.includes(`"${name}"`), `${name} has no modulepreload`);
    }
});

test('a conversation of 2,000 messages: only its end is built, and scrolling up moves what is read by nothing else', async (t) => {
    const browser = await launch();
    const server = await startMock();
    t.after(() => Promise.all([browser.close(), server.close()]));
    const { page, done } = await openChat(browser, server.url);
    const id = await page.evaluate(keepLong);
    await page.evaluate((id) => (location.hash = `#/c/${id}`), id);
    await page.getByText('Answer 999').waitFor();
    const built = () => page.locator('chat-message').count();
    assert.ok((await built()) <= 100);
    // Messages out of sight have a guessed height: where the real one comes, nothing may jump.
    const moved = await page.evaluate(async () => {
        const scroller = document.querySelector('.transcript');
        const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
        const wrong = [];
        for (let i = 0; i < 90; i += 1) {
            let seen = null;
            for (let y = 150; !seen && y < 600; y += 10) seen = document.elementFromPoint(560, y)?.closest('.bubble, .prose > *');
            const top = seen.getBoundingClientRect().top;
            scroller.scrollTop -= 200;
            await frame();
            await frame();
            const by = seen.getBoundingClientRect().top - top;
            if (Math.abs(by - 200) > 4) wrong.push([i, by]);
        }
        return wrong;
    });
    assert.deepEqual(moved, []);
    assert.ok((await built()) > 100, 'earlier messages came');
    await done();
});
