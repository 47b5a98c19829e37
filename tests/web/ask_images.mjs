/**
 * Asks a running server image questions the way a person does: through the page, in a real browser.
 *
 *     node tests/eval/make_images.mjs FOLDER --n 200 --seed 7
 *     node tests/web/ask_images.mjs FOLDER [--base http://127.0.0.1:8080/] [--n 24] [--min 0.9]
 *
 * The folder's questions are taken at even distances, a new chat each; an answer is right if it
 * contains every string of `must`. Exit code 1 under the bar.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lastAnswer, launch, openChat, send } from './helpers.mjs';

const args = process.argv.slice(2);
const option = (name, fallback) => (args.includes(name) ? args[args.indexOf(name) + 1] : fallback);
const folder = args[0];
if (!folder || folder.startsWith('--')) {
    console.error('usage: node ask_images.mjs FOLDER [--base URL] [--n 24] [--min 0.9]');
    process.exit(2);
}
const all = JSON.parse(readFileSync(join(folder, 'questions.json'), 'utf8'));
const n = Math.min(Number(option('--n', '24')), all.length);
const questions = Array.from({ length: n }, (_, i) => all[Math.floor((i * all.length) / n)]);
const browser = await launch();
let right = 0;
for (const { files, question, must } of questions) {
    const { page, done } = await openChat(browser, option('--base', 'http://127.0.0.1:8080/'));
    await page.getByLabel('Add images').setInputFiles(files.map((file) => join(folder, file)));
    await page.locator('.tray .thumb img').nth(files.length - 1).waitFor();
    await send(page, question);
    const answer = await lastAnswer(page);
    const good = must.every((part) => answer.toLowerCase().includes(part.toLowerCase()));
    right += good ? 1 : 0;
    if (!good) console.log(`WRONG ${files.join(' ')} | ${question} | ${JSON.stringify(must)} | ${answer}`);
    await done();
}
await browser.close();
const share = right / n;
console.log(`through the page: ${right} of ${n} = ${share.toFixed(3)}`);
process.exit(share >= Number(option('--min', '0.9')) ? 0 : 1);
