/** The order of chats: pins, folders, the archive, several at once, temporary ones, a chat from a
 * message on, deleted messages, one chat as a file. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { after, before, beforeEach, afterEach } from 'node:test';
import { SAMPLES, becomes, lastAnswer, launch, ofChat, openChat, openSettings, send, until, written } from './helpers.mjs';
import { zip } from './make_zip.mjs';
import { startMock } from './mock_server.mjs';
import { fromJson } from '../../web/js/state/transfer.js';
import { addMessage, branchOf, eraseMessages, erasedWith, newConversation, placeWith, readPlace, shownPath, siblings, toInput } from '../../web/js/state/store.js';

let browser;
let server;
before(async () => (browser = await launch()));
after(() => browser.close());
beforeEach(async () => (server = await startMock({ delayMs: 0 })));
afterEach(() => server.close());

const begin = async (...questions) => {
    const chat = await openChat(browser, server.url);
    for (const text of questions) {
        await chat.page.keyboard.press('Control+Shift+O');
        await chat.page.locator('chat-message').first().waitFor({ state: 'detached' });
        await send(chat.page, `say ${text}`);
        await lastAnswer(chat.page);
    }
    return chat;
};
/** The list as it is read: headings and titles. */
const list = (page) => page.locator('.chat-list').locator('h3, summary, .entry-title').evaluateAll((all) => all.filter((one) => one.checkVisibility()).map((one) => one.textContent.trim()));
const listed = async (page, ...lines) => {
    let seen;
    await until(async () => JSON.stringify((seen = await list(page))) === JSON.stringify(lines), () => `the list to be ${lines}; it is ${seen}`);
};

test('deleted messages: what is left, what goes to the model, and back', async () => {
    const chat = newConversation();
    const add = (role, text, parent = chat.head) => addMessage(chat, { role, text, parent });
    const one = add('user', 'one');
    const first = add('assistant', 'first');
    const two = add('user', 'two');
    const second = add('assistant', 'second');
    const texts = () => shownPath(chat).map(({ text }) => text);
    const back = eraseMessages(chat, erasedWith(chat, first));
    assert.deepEqual(texts(), ['one', 'two', 'second']);
    assert.deepEqual((await toInput(shownPath(chat), async () => '')).map(({ role }) => role), ['user', 'assistant']);
    assert.deepEqual(Object.keys(chat.messages[first.id]).sort(), ['created', 'erased', 'id', 'parent', 'role', 'status', 'text']);
    back();
    assert.deepEqual(texts(), ['one', 'first', 'two', 'second']);
    const other = add('user', 'two in other words', first.id);
    add('assistant', 'another');
    assert.deepEqual(erasedWith(chat, other).length, 2, 'one version goes with what follows it');
    eraseMessages(chat, erasedWith(chat, other));
    assert.deepEqual(texts(), ['one', 'first', 'two', 'second'], 'the version that is left is shown');
    assert.deepEqual(siblings(chat, two).length, 1);
    const copy = branchOf(chat, two.id);
    assert.deepEqual(shownPath(copy).map(({ text }) => text), ['one', 'first', 'two']);
    assert.ok(!Object.keys(copy.messages).some((id) => id in chat.messages));
    assert.deepEqual([one, second].map(({ id }) => chat.messages[id].text), ['one', 'second']);
    assert.deepEqual(placeWith({ folder: 'a', pinned: true }, { pinned: false }), { folder: 'a' });
    assert.deepEqual(readPlace({ folder: ' x ', pinned: 'yes', archived: true, other: 1 }), { folder: 'x', archived: true });
});

test('pins, folders and the archive, from the menu of a chat and by keys; they stay', async () => {
    const { page, done } = await begin('one', 'two', 'three');
    await listed(page, 'Today', 'say three', 'say two', 'say one');
    await ofChat(page, 'Pin', 'say one');
    await listed(page, 'Pinned', 'say one', 'Today', 'say three', 'say two');
    const more = page.getByRole('button', { name: 'More about say two' });
    await more.focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('New folder').focus();
    await page.keyboard.type('Work');
    await page.keyboard.press('Enter');
    await listed(page, 'Pinned', 'say one', 'Work', 'say two', 'Today', 'say three');
    await ofChat(page, 'Work', 'say three');
    await ofChat(page, 'Archive', 'say two');
    await listed(page, 'Pinned', 'say one', 'Work', 'say three', 'Archived (1)');
    await page.reload();
    await listed(page, 'Pinned', 'say one', 'Work', 'say three', 'Archived (1)');
    await page.getByLabel('Search chats').fill('two');
    await listed(page, 'Archived (1)', 'say two');
    await ofChat(page, 'Unarchive', 'say two');
    await page.getByLabel('Search chats').fill('');
    await ofChat(page, 'Unpin', 'say one');
    await listed(page, 'Work', 'say three', 'say two', 'Today', 'say one');
    await done();
});

test('a folder gets another name, and its chats are taken out of it, by keys', async () => {
    const { page, done } = await begin('one', 'two', 'three');
    await listed(page, 'Today', 'say three', 'say two', 'say one'); // an answer can end before its chat is kept
    await page.evaluate(async () => {
        const { chat } = document.querySelector('parley-app');
        for (const { id } of chat.list.slice(0, 2)) await chat.setPlace(id, { folder: 'Work & play' });
    });
    await listed(page, 'Work & play', 'say three', 'say two', 'Today', 'say one');
    const more = () => page.getByRole('button', { name: /More about the folder/ });
    const choose = async (verb) => {
        await more().press('Enter');
        await page.getByRole('button', { name: verb }).press('Enter');
    };
    await choose('Rename the folder');
    await page.getByLabel('New name of the folder').fill('Home');
    await page.keyboard.press('Enter');
    await listed(page, 'Home', 'say three', 'say two', 'Today', 'say one');
    await page.waitForFunction(() => document.activeElement?.getAttribute('aria-label') === 'More about the folder Home');
    await choose('Rename the folder');
    await page.getByLabel('New name of the folder').fill('Nothing of this');
    await page.keyboard.press('Escape');
    await written(page);
    await page.reload();
    await listed(page, 'Home', 'say three', 'say two', 'Today', 'say one');
    await choose('Take its chats out');
    await listed(page, 'Today', 'say three', 'say two', 'say one');
    await done();
});

test('several chats at once: moved, archived, deleted and taken back; all of them', async () => {
    const { page, done } = await begin('one', 'two', 'three');
    await ofChat(page, 'Choose several', 'say one');
    await page.getByLabel('Choose say two').check();
    await page.getByRole('button', { name: 'Move the chosen chats' }).click();
    await page.getByLabel('New folder').fill('Numbers');
    await page.getByLabel('New folder').press('Enter');
    await listed(page, 'Numbers', 'say two', 'say one', 'Today', 'say three');
    await ofChat(page, 'Choose several', 'say one');
    await page.getByLabel('Choose say three').check();
    await page.getByRole('button', { name: 'Delete the chosen chats' }).click();
    await listed(page, 'Numbers', 'say two');
    await page.getByText('2 chats deleted.').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await listed(page, 'Numbers', 'say two', 'say one', 'Today', 'say three');
    await openSettings(page, 'This browser');
    await page.getByRole('button', { name: 'Delete all' }).click();
    await page.getByText('3 chats deleted.').waitFor();
    await listed(page);
    await page.getByRole('button', { name: 'Undo' }).click();
    await listed(page, 'Numbers', 'say two', 'say one', 'Today', 'say three');
    await done();
});

test('a temporary chat is answered and kept nowhere', async () => {
    const { page, done } = await openChat(browser, server.url);
    await page.getByRole('button', { name: 'Temporary chat' }).click();
    await page.getByText('Temporary chat: it is not kept').waitFor();
    await send(page, 'say secret');
    await becomes(() => lastAnswer(page), 'secret');
    await becomes(() => page.locator('.entry').count(), 0);
    const kept = await page.evaluate(() => document.querySelector('parley-app').chat.history.list());
    assert.deepEqual(kept, []);
    await page.keyboard.press('Control+Shift+O');
    await becomes(() => page.getByText('Temporary chat: it is not kept').count(), 0, 'the next one is kept');
    await page.reload();
    await page.locator('chat-welcome').waitFor();
    await done();
});

test('a message is deleted and taken back; a chat goes on elsewhere from a message', async () => {
    const { page, done } = await begin('one');
    await send(page, 'say two');
    await lastAnswer(page);
    await page.getByRole('button', { name: 'More about this answer' }).first().click();
    await page.locator('.menu:popover-open').getByText('Delete this answer').click();
    await becomes(() => page.locator('.answer').count(), 1);
    await page.getByRole('button', { name: 'Undo' }).click();
    await until(async () => (await page.locator('.answer').count()) === 2, 'it to be back');
    await page.getByRole('button', { name: 'More about this question' }).first().click();
    await page.locator('.menu:popover-open').getByText('Delete this question').click();
    await written(page);
    await page.reload();
    await page.locator('.answer').nth(1).waitFor();
    await becomes(() => page.locator('.bubble').allInnerTexts(), ['say two']);
    await send(page, 'say three');
    await lastAnswer(page);
    assert.equal(JSON.stringify(server.requests.at(-1).body.input).includes('say one'), false);
    await page.getByRole('button', { name: 'More about this answer' }).first().click();
    await page.locator('.menu:popover-open').getByText('New chat from here').click();
    await until(async () => (await page.locator('.entry').count()) === 2, 'a second chat');
    await becomes(() => page.locator('chat-message').count(), 1);
    await send(page, 'say four');
    await becomes(() => lastAnswer(page), 'four');
    await page.locator('.entry').nth(1).locator('a').click();
    await page.locator('.answer', { hasText: 'three' }).waitFor();
    await done();
});

test('one chat as Markdown and as JSON, with its place, and back', async () => {
    const { page, done } = await begin('one', 'two');
    await ofChat(page, 'Pin', 'say one');
    const take = async (what) => {
        const [file] = await Promise.all([page.waitForEvent('download'), ofChat(page, what, 'say one')]);
        return [file.suggestedFilename(), await readFile(await file.path(), 'utf8')];
    };
    const [name, text] = await take('Markdown');
    assert.equal(name, 'say one.md');
    assert.match(text, /# say one[\s\S]*## You[\s\S]*## Seedling\n\none/);
    // On paper it is the chosen one, not the one that was shown.
    await page.evaluate(() => (window.print = () => (window.printed = [...document.querySelectorAll('.question .bubble')].map((one) => one.textContent))));
    await ofChat(page, 'Print', 'say one');
    await until(async () => (await page.evaluate(() => window.printed))?.join() === 'say one', 'the chat on paper');
    const [, json] = await take('JSON');
    assert.deepEqual(JSON.parse(json).chats.map(({ title, place }) => [title, place]), [['say one', { pinned: true }]]);
    await ofChat(page, 'Delete', 'say one');
    await openSettings(page, 'This browser');
    await page.getByLabel('Import').setInputFiles({ name: 'one.json', mimeType: 'application/json', buffer: Buffer.from(json) });
    await listed(page, 'Pinned', 'say one', 'Today', 'say two');
    await done();
});

test('a title by the model; a quotation of what is selected; tokens while typing', async () => {
    const { page, done } = await begin('The quick brown fox jumps over the lazy dog.');
    await ofChat(page, 'Title by the model');
    await page.locator('.entry-title', { hasText: /^A title$/ }).waitFor();
    for (const none of ['', 'I cannot see any image here, so I do not know what this is about.']) {
        server.options.title = none;
        await ofChat(page, 'Title by the model');
        await page.getByText('No title was made.').waitFor();
        await page.locator('.notice button').click();
        await page.locator('.notice').waitFor({ state: 'detached' });
    }
    const select = () => page.evaluate(() => getSelection().selectAllChildren(document.querySelector('.answer .prose p')));
    await select();
    await page.getByRole('button', { name: 'Quote' }).click();
    const field = page.getByLabel('Your message');
    await becomes(() => field.inputValue(), '> The quick brown fox jumps over the lazy dog.\n\n');
    await until(() => field.evaluate((one) => one === document.activeElement));
    await page.keyboard.type('Which one?');
    await page.locator('.tokens', { hasText: '12 tokens' }).waitFor();
    await field.fill('');
    await page.locator('.tokens').waitFor({ state: 'detached' });
    await select();
    await page.getByRole('button', { name: 'Quote' }).waitFor();
    await page.keyboard.press('Control+Shift+Q');
    await until(async () => (await field.inputValue()).startsWith('> The quick'), 'the quotation by keys');
    await field.fill('');
    await page.reload();
    assert.equal(await page.locator('.tokens').count(), 0);
    await done();
});

test('an answer that ends while nobody looks: a mark in the title, a notification where it is wanted; the page can be installed', async () => {
    const { page, context, done } = await openChat(browser, server.url);
    await context.grantPermissions(['notifications'], { origin: new URL(server.url).origin });
    await openSettings(page, 'This browser');
    await page.getByText('Notify me too').click();
    await page.keyboard.press('Escape');
    await page.evaluate(() => {
        window.told = [];
        window.Notification = class {
            static permission = 'granted';
            constructor(title, { body }) {
                window.told.push([title, body]);
            }
        };
        window.isHidden = true;
        Object.defineProperty(document, 'hidden', { get: () => window.isHidden });
    });
    await send(page, 'say done');
    await lastAnswer(page);
    await until(async () => (await page.title()) === '● say done · Parley', 'the mark');
    assert.deepEqual(await page.evaluate(() => window.told), [['The answer is there', 'done']]);
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    assert.equal(await page.title(), '● say done · Parley', 'still nobody looks');
    await page.evaluate(() => {
        window.isHidden = false;
        document.dispatchEvent(new Event('visibilitychange'));
    });
    await becomes(() => page.title(), 'say done · Parley');
    const client = await context.newCDPSession(page);
    const { errors, data } = await client.send('Page.getAppManifest');
    assert.deepEqual(errors, []);
    assert.equal(JSON.parse(data).name, 'Parley');
    await done();
});

test('stop sequences, a JSON schema and penalties go along; what is wrong is said in its place', async () => {
    const { page, done } = await openChat(browser, server.url);
    await openSettings(page, 'This chat');
    await page.getByText('More sampling').click();
    await page.getByLabel('Frequency penalty').fill('0.5');
    await page.getByLabel('Stop sequences').fill('END\n###');
    const schema = page.getByLabel('JSON schema');
    await schema.fill('{ "type": ');
    await page.keyboard.press('Tab');
    await page.getByText('This is not JSON').waitFor();
    await becomes(() => schema.getAttribute('aria-invalid'), 'true');
    await schema.fill('{ "type": "object" }');
    await page.keyboard.press('Tab');
    await becomes(() => schema.getAttribute('aria-invalid'), 'false');
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /Frequency penalty 0.5 · Stop sequences · JSON schema/ }).waitFor();
    await send(page, 'say one');
    await lastAnswer(page);
    const { frequency_penalty, stop, text } = server.requests[0].body;
    assert.deepEqual({ frequency_penalty, stop, text }, { frequency_penalty: 0.5, stop: ['END', '###'], text: { format: { type: 'json_schema', name: 'answer', schema: { type: 'object' } } } });
    await openSettings(page, 'This browser');
    await page.getByText(/^1 chat\. This page keeps/).waitFor();
    await page.keyboard.press('Escape');
    await done();
});

test('chats of ChatGPT, Open WebUI and llama.cpp come in, with their branches', () => {
    const message = (role, parts, create_time) => ({ author: { role }, content: { content_type: 'text', parts }, create_time });
    const gpt = [{
        title: 'Trees', create_time: 1.7e9, update_time: 1.7e9 + 60, current_node: 'd',
        mapping: {
            root: { id: 'root', parent: null, message: null }, a: { id: 'a', parent: 'root', message: message('system', [''], 1) },
            b: { id: 'b', parent: 'a', message: message('user', ['What is an oak?', { content_type: 'image_asset_pointer', asset_pointer: 'file-service://file-oak1', width: 2, height: 1 }, { content_type: 'audio_transcription', text: 'Said aloud.' }], 1.7e9) },
            c: { id: 'c', parent: 'b', message: message('assistant', ['A tree.'], 1.7e9 + 1) },
            s: { id: 's', parent: 'b', message: { ...message('assistant', ['search("oak")'], 1.7e9 + 1), recipient: 'web' } },
            h: { id: 'h', parent: 's', message: { ...message('user', ['Original uploads'], 1.7e9 + 1), metadata: { is_visually_hidden_from_conversation: true } } },
            d: { id: 'd', parent: 'h', message: message('assistant', ['A large tree.\ue200cite\ue202turn0search0\ue201'], 1.7e9 + 2) },
        },
    }];
    const webui = [{
        id: 'x', title: 'Sums', created_at: 1.7e9, updated_at: 1.7e9, pinned: true,
        chat: { title: 'Sums', history: { currentId: '2', messages: { 1: { id: '1', parentId: null, role: 'user', content: '1 + 1?', timestamp: 1.7e9 }, 2: { id: '2', parentId: '1', role: 'assistant', content: '<details type="reasoning" done="true" duration="1">\n<summary>Thought for 1 second</summary>\n&gt; 1 &lt; 2\n> One more\n> than one.\n</details>\n2', timestamp: 1.7e9, model: 'm', files: [null, { type: 'file', name: 'sums.txt', file: { data: { content: '1 2' } } }, { type: 'image', url: '/api/v1/files/1/content' }] } } } },
    }];
    const llama = {
        conv: { id: 'y', name: 'Notes', lastModified: 1.7e12, currNode: '3' },
        messages: [
            { id: '1', type: 'root', role: 'system', content: '', parent: null, timestamp: 1.7e12 },
            { id: '2', type: 'text', role: 'user', content: 'Read this', parent: '1', timestamp: 1.7e12, extra: [{ type: 'TEXT', name: 'a.txt', content: 'é' }, { type: 'PDF', name: 'b.pdf', base64Data: 'AAAA', content: 'page' }, { type: 'VIDEO', name: 'c.webm', mimeType: 'video/webm', base64Data: 'AAAA' }, { type: 'AUDIO', name: 'd.mp3' }, null] },
            { id: '3', type: 'text', role: 'assistant', content: 'Read.', thinking: 'Hm.', parent: '2', timestamp: 1.7e12 },
        ],
    };
    const [trees] = fromJson(JSON.stringify(gpt));
    assert.deepEqual(shownPath(trees).map(({ text, created }) => [text, created]), [['What is an oak?\n\nSaid aloud.', 1.7e12], ['A large tree.', 1.7e12 + 2000]]);
    assert.equal(Object.keys(trees.messages).length, 3);
    assert.deepEqual(shownPath(trees)[0].attachments.map(({ missing, width }) => [missing, width]), [[true, 2]]);
    const [sums] = fromJson(JSON.stringify(webui));
    assert.deepEqual([sums.title, sums.place, shownPath(sums).map(({ text, reasoning }) => [text, reasoning])], ['Sums', { pinned: true }, [['1 + 1?', undefined], ['2', '1 < 2\nOne more\nthan one.']]]);
    assert.deepEqual(shownPath(sums)[1].attachments.map(({ kind, name, bytes, missing }) => [kind, name, bytes, missing]), [['text', 'sums.txt', 3, undefined], ['image', 'image', 0, true]]);
    const [notes] = fromJson(JSON.stringify(llama));
    assert.deepEqual(shownPath(notes).map(({ text, reasoning }) => [text, reasoning]), [['Read this', undefined], ['Read.', 'Hm.']]);
    assert.deepEqual(shownPath(notes)[0].attachments.map(({ kind, name, bytes }) => [kind, name, bytes]), [['text', 'a.txt', 2], ['text', 'b.pdf', 4], ['video', 'c.webm', 3]]);
    for (const bad of ['[]', '{"mapping":{}}', '[{"mapping":{"a":null}}]', '[{"chat":{"history":{"messages":{"1":null}}}}]', '{"conv":{},"messages":[null,{"extra":[{}]}]}', '[null, 3, "x"]', 'null']) {
        try {
            assert.deepEqual(fromJson(bad), []);
        } catch (error) {
            assert.match(error.message, /holds no exported chats/, bad);
        }
    }
    const loop = { conv: { name: 'loop', currNode: '1' }, messages: [{ id: '1', parent: '2', role: 'system', content: '' }, { id: '2', parent: '1', role: 'system', content: '' }] };
    assert.deepEqual(fromJson(JSON.stringify(loop)), []);
});

test('an export as ChatGPT gives it: a ZIP file with its images, twice is once; what is damaged is said', async () => {
    const { page, done } = await openChat(browser, server.url);
    const said = (role, parts, create_time) => ({ author: { role }, content: { content_type: 'multimodal_text', parts }, create_time });
    const image = { content_type: 'image_asset_pointer', asset_pointer: 'sediment://file_0a1', width: 640, height: 480 };
    const chats = [{
        title: 'Shapes', create_time: 1.7e9, update_time: 1.7e9, current_node: 'b',
        mapping: { r: { id: 'r', parent: null, message: null }, a: { id: 'a', parent: 'r', message: said('user', [image, 'What is this?'], 1.7e9) }, b: { id: 'b', parent: 'a', message: said('assistant', ['A cross.'], 1.7e9 + 1) }, c: { id: 'c', parent: 'a', message: said('assistant', ['Three shapes.'], 1.7e9 + 2) } },
    }];
    const file = (buffer) => ({ name: 'export.zip', mimeType: 'application/zip', buffer });
    const whole = zip({ 'user.json': '{}', 'conversations-000.json': JSON.stringify(chats), 'file_0a1-sanitized.png': readFileSync(join(SAMPLES, 'outlines.png')) });
    const add = async (buffer, words) => {
        await openSettings(page, 'This browser');
        await page.locator('#settings input[type=file]').setInputFiles(file(buffer));
        await page.getByText(words).waitFor();
    };
    await add(whole, '1 chat imported.');
    await add(whole, '1 chat was here already.');
    await add(whole.subarray(0, whole.length - 30), 'Nothing was imported. export.zip is damaged');
    await add(zip({ 'conversations.json': JSON.stringify(chats) }, { flags: 1 }), 'locked with a password');
    await add(zip({ 'conversations.json': ' '.repeat(8 << 20) }), 'grows more than');
    await add(zip({ 'conversations.json': '{' }), 'Nothing was imported. This file is not JSON.');
    await add(zip({ 'notes.txt': 'x' }), 'holds no exported chats');
    assert.equal(await page.locator('.entry').count(), 1);
    await page.locator('.entry a').click();
    await page.getByText('A cross.').waitFor();
    await page.getByRole('button', { name: 'Later answer' }).click();
    await page.getByText('Three shapes.').waitFor();
    await until(() => page.locator('chat-message img').evaluateAll((list) => list.length === 1 && list[0].naturalWidth > 0), 'the image');
    await done();
});
