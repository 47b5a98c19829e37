/** Chats of other pages and of files, without a browser: ChatGPT with its images, Open WebUI, llama.cpp, and what of a file is
 * not believed. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { zip } from './make_zip.mjs';
import { othersChats } from '../../web/js/state/import_others.js';
import { shownPath } from '../../web/js/state/store.js';
import { fromFile, fromJson } from '../../web/js/state/transfer.js';

const message = (id, role, parts, more = {}) => ({ id, message: { author: { role }, content: { parts }, create_time: 1_700_000_000, ...more }, parent: more.parent });
const node = (id, parent, role, parts, more) => [id, { ...message(id, role, parts, more), parent }];
const image = (pointer) => ({ content_type: 'image_asset_pointer', asset_pointer: pointer, width: 4, height: 3 });
const chatGpt = () => ({
    title: 'Crosses', create_time: 1_700_000_000, update_time: 1_700_000_100.5, current_node: 'a2',
    mapping: Object.fromEntries([
        ['root', { id: 'root', message: null, parent: null }], node('sys', 'root', 'system', ['be good']),
        node('q', 'sys', 'user', ['What is it?', image('file-service://file-abc'), { content_type: 'audio_transcription', text: 'spoken' }]),
        node('t', 'q', 'assistant', ['hm'], { content: { content_type: 'thoughts', parts: ['hm'] } }), node('call', 't', 'assistant', ['search("x")'], { recipient: 'web' }),
        node('hidden', 'call', 'user', ['context'], { metadata: { is_visually_hidden_from_conversation: true } }),
        node('a', 'hidden', 'assistant', ['A cross. \ue200cite\ue202turn0\ue201'], { recipient: 'all', metadata: { model_slug: 'gpt-x' } }), node('a2', 'q', 'assistant', [''], { content: { text: 'A star.' } }),
        node('empty', 'a2', 'user', ['']),
    ]),
});

test('a chat of ChatGPT: what was said, what it stands on, and nothing that the page kept to itself', () => {
    const [chat] = othersChats([chatGpt()]);
    assert.deepEqual([chat.title, chat.created, chat.updated, chat.head], ['Crosses', 1_700_000_000_000, 1_700_000_100_500, 'a2']);
    assert.deepEqual(chat.messages.map(({ id, parent, role, text, status, created, model }) => [id, parent, role, text, status, created, model]), [
        ['q', null, 'user', 'What is it?\n\nspoken', 'done', 1_700_000_000_000, ''], ['a', 'q', 'assistant', 'A cross. ', 'done', 1_700_000_000_000, 'gpt-x'], ['a2', 'q', 'assistant', 'A star.', 'done', 1_700_000_000_000, ''],
    ]);
    assert.deepEqual(chat.messages[0].attachments, [{ kind: 'image', name: 'image', pointer: 'file-abc', width: 4, height: 3 }]);
    assert.equal('attachments' in chat.messages[1], false);
    const late = chatGpt();
    late.current_node = 'hidden';
    assert.equal(othersChats(late)[0].head, 'q', 'the nearest that is kept');
    late.mapping.q.parent = 'q2';
    late.mapping.q2 = { id: 'q2', parent: 'q3' };
    late.mapping.q3 = { id: 'q3', parent: 'q2' };
    assert.equal(othersChats(late)[0].messages[0].parent, null, 'a circle does not hang');
    for (const none of [{ mapping: 7 }, { mapping: null }, {}, null, 'x', [], [{}]]) assert.equal(othersChats(none), null);
});

test('an export of ChatGPT as it comes: all of its lists, and the images that are in it', async () => {
    const parts = {
        'export/conversations.json': JSON.stringify([chatGpt()]), 'conversations-001.json': JSON.stringify([{ ...chatGpt(), title: 'Second', mapping: { q: message('q', 'user', [image('sediment://file_gone')]) }, current_node: 'q' }]),
        'my_conversations.json': '{', 'file-abc-photo.JPG': 'jpeg bytes', 'file-abx.png': 'x', 'user.json': '{}',
    };
    const chats = await fromFile(new File([zip(parts)], 'export.zip'));
    assert.deepEqual(chats.map(({ title }) => title), ['Crosses', 'Second']);
    const [{ attachments: [found] }] = shownPath(chats[0]);
    assert.deepEqual([found.name, found.mime, found.width, found.bytes, await found.blob.text(), found.missing], ['file-abc-photo.JPG', 'image/jpeg', 4, 10, 'jpeg bytes', undefined]);
    const [{ attachments: [gone] }] = shownPath(chats[1]);
    assert.deepEqual([gone.name, gone.missing, gone.blob], ['image', true, undefined]);
    await assert.rejects(fromFile(new File([zip({ 'a.txt': 'x' })], 'a.zip')), /holds no exported chats/);
    await assert.rejects(fromFile(new File([zip({ 'conversations.json': '{' })], 'a.zip')), /not JSON/);
    assert.equal((await fromFile(new File([JSON.stringify([chatGpt()])], 'conversations.json')))[0].title, 'Crosses');
});

test('a chat of Open WebUI: its thoughts, its files, and where it stood', () => {
    const thought = '<details type="reasoning" done="true">\n<summary>Thought for 2 s</summary>\n&gt; It &lt;has&gt; &quot;two&quot; bars &amp; it&#x27;s &#39;so&#39;.\n> Sure.\n</details>\nA cross.';
    const one = {
        title: 'T', created_at: 1_700_000_000, updated_at: 1_700_000_001, pinned: true, archived: false,
        chat: { title: 'inner', history: { currentId: 'a', messages: {
            q: { id: 'q', parentId: null, role: 'user', content: ' What is it? ', timestamp: 1_700_000_000, files: [{ type: 'image', name: 'c.png', url: 'data:image/png;base64,YWJj' }, { type: 'image', url: 'x' }, { type: 'file', file: { filename: 'n.txt', data: { content: 'é' } } }, { type: 'file', name: 'm.txt' }, { type: 'collection' }, null] },
            a: { id: 'a', parentId: 'q', role: 'assistant', content: thought, timestamp: 1_700_000_000_500, modelName: 'Model', model: 'id' }, b: { id: 'b', parentId: 'q', role: 'assistant', content: 'plain', model: 'id', files: 'x' },
        } } },
    };
    const [chat] = othersChats([one]);
    assert.deepEqual([chat.title, chat.place, chat.created, chat.updated, chat.head], ['T', { pinned: true, archived: false }, 1_700_000_000_000, 1_700_000_001_000, 'a']);
    const [q, a, b] = chat.messages;
    assert.deepEqual([q.text, q.created, q.parent, q.reasoning, a.created, a.parent, a.text, a.reasoning, a.model, b.model, b.reasoning, 'attachments' in b], ['What is it?', 1_700_000_000_000, null, '', 1_700_000_000_500, 'q', 'A cross.', 'It <has> "two" bars & it\'s \'so\'.\nSure.', 'Model', 'id', '', false]);
    assert.deepEqual(q.attachments, [{ kind: 'image', name: 'c.png', data: 'data:image/png;base64,YWJj' }, { kind: 'image', name: 'image', data: 'x' }, { kind: 'text', name: 'n.txt', mime: 'text/plain', bytes: 2, data: 'data:text/plain;base64,w6k=' }, { kind: 'text', name: 'm.txt', mime: 'text/plain', bytes: 0, data: 'data:text/plain;base64,' }]);
    const untitled = { ...one, title: undefined };
    assert.equal(othersChats(untitled)[0].title, 'inner');
    for (const none of [{ chat: {} }, { chat: { history: { messages: 7 } } }]) assert.equal(othersChats(none), null);
    const [read] = fromJson(JSON.stringify([one]));
    assert.deepEqual([read.place, shownPath(read).map(({ text, reasoning }) => [text, reasoning])], [{ pinned: true }, [['What is it?', undefined], ['A cross.', a.reasoning]]]);
});

test('a chat of llama.cpp: its branches, its thoughts and its files', () => {
    const one = {
        conv: { name: 'N', lastModified: 1_700_000_000_000, currNode: 'a', pinned: true },
        messages: [
            { id: 'r', type: 'root', role: 'system', content: 'no', parent: null },
            { id: 'q', type: 'text', role: 'user', content: 'What is it?', parent: 'r', timestamp: 1_700_000_000_000, extra: [
                { type: 'IMAGE', name: 'c.png', base64Url: 'data:image/png;base64,YWJj' }, { type: 'videoFile', name: 'v.mp4', mimeType: 'video/mp4', base64Data: 'YWJj' }, { type: 'TEXT', name: 'n.txt', content: 'é' }, { type: 'context', name: 'c', content: 'x' }, { type: 'pdfFile', name: 'p.pdf', content: 'pages' }, { type: 'audioFile', name: 's' }, null] },
            { id: 'a', role: 'assistant', content: 'A cross.', thinking: 'hm', parent: 'q', model: 'm' }, { id: 'b', role: 'assistant', content: 'A star.', reasoningContent: 'so', parent: 'q', extra: 7 },
        ],
    };
    const [chat] = othersChats(one);
    assert.deepEqual([chat.title, chat.created, chat.updated, chat.place, chat.head], ['N', 1_700_000_000_000, 1_700_000_000_000, { pinned: true }, 'a']);
    assert.deepEqual(chat.messages.map(({ id, parent, text, reasoning, model }) => [id, parent, text, reasoning, model]), [['q', null, 'What is it?', '', ''], ['a', 'q', 'A cross.', 'hm', 'm'], ['b', 'q', 'A star.', 'so', '']]);
    const text = (name, bytes, data) => ({ kind: 'text', name, mime: 'text/plain', bytes, data: `data:text/plain;base64,${data}` });
    assert.deepEqual(chat.messages[0].attachments, [{ kind: 'image', name: 'c.png', data: 'data:image/png;base64,YWJj' }, { kind: 'video', name: 'v.mp4', mime: 'video/mp4', data: 'data:video/mp4;base64,YWJj' }, text('n.txt', 2, 'w6k='), text('c', 1, 'eA=='), text('p.pdf', 5, 'cGFnZXM=')]);
    assert.equal('attachments' in chat.messages[1], false);
    for (const none of [{ conv: {} }, { messages: [] }, { conv: null, messages: [] }]) assert.equal(othersChats(none), null);
    assert.deepEqual(othersChats([one, chatGpt()]).map(({ title }) => title), ['Crosses'], 'a file is of one page');
});

test('names, places and numbers of a file of chats are cut to what they may be', () => {
    const read = (fields) => fromJson(JSON.stringify({ format: 'parley-chats', chats: [{ messages: [{ id: 'a', role: 'assistant', text: 'x', ...fields }] }] }))[0].messages;
    const [one] = Object.values(read({ created: 0, model: 7, tools: [{ name: 'n'.repeat(300), server: 's'.repeat(300), ms: 3, output: 7, failed: 'yes', approvalId: 'p', allowed: 'no', at: -1 }], attachments: [{ name: 'n'.repeat(300), mime: 'm'.repeat(200), tool: 't', width: 'x' }] }));
    assert.deepEqual([one.model, one.tools, one.attachments.map(({ id, ...rest }) => [rest.name.length, rest.mime.length, rest.tool, rest.width, rest.missing])], ['', [{ id: '', callId: '', name: 'n'.repeat(200), arguments: '', server: 's'.repeat(100), approvalId: 'p', ms: 3, at: 0 }], [[200, 100, 't', 0, true]]]);
    assert.ok(one.created > 1e12, 'no time is now');
    assert.equal(Object.values(read({ created: 1 }))[0].created, 1);
    const many = { format: 'parley-chats', chats: [{ messages: Array.from({ length: 20_001 }, (_, i) => ({ id: i, role: 'user', text: 'x' })) }] };
    assert.equal(Object.keys(fromJson(JSON.stringify(many))[0].messages).length, 20_000);
    assert.equal(fromJson(JSON.stringify({ format: 'parley-chats', chats: Array.from({ length: 10_001 }, () => ({ messages: [{ id: 'a', role: 'user', text: 'x' }] })) })).length, 10_000);
    assert.equal(Object.values(read({ tools: Array.from({ length: 1_001 }, () => ({})) }))[0].tools.length, 1_000);
});
