/** The conversation tree and the protocol mapping, without a browser. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { addMessage, newConversation, pathTo, shownPath, showBranch, siblings, titleOf, toInput, toMarkdown } from '../../web/js/state/store.js';
import { outputText, readEventStream } from '../../web/js/protocol/connection.js';

function small() {
    const conversation = newConversation();
    const q = addMessage(conversation, { role: 'user', parent: null, text: 'What is it?' });
    const a = addMessage(conversation, { role: 'assistant', parent: q.id, text: 'A cross.' });
    return { conversation, q, a };
}

test('the shown path follows the head, and the title comes from the first question', () => {
    const { conversation, q, a } = small();
    assert.deepEqual(shownPath(conversation).map((m) => m.id), [q.id, a.id]);
    assert.equal(conversation.title, 'What is it?');
});

test('a second answer is a sibling, and either branch can be shown down to its newest leaf', () => {
    const { conversation, q, a } = small();
    const follow = addMessage(conversation, { role: 'user', parent: a.id, text: 'Sure?' });
    const b = addMessage(conversation, { role: 'assistant', parent: q.id, text: 'A star.' });
    assert.deepEqual(siblings(conversation, a).map((m) => m.id), [a.id, b.id]);
    assert.deepEqual(shownPath(conversation).map((m) => m.id), [q.id, b.id]);
    showBranch(conversation, a);
    assert.deepEqual(shownPath(conversation).map((m) => m.id), [q.id, a.id, follow.id]);
    const newer = addMessage(conversation, { role: 'user', parent: a.id, text: 'Are you sure?' });
    showBranch(conversation, b);
    showBranch(conversation, a); // of two that follow, the one that was written last
    assert.deepEqual(shownPath(conversation).map((m) => m.id), [q.id, a.id, newer.id]);
});

test('a tree whose parents form a circle does not hang', () => {
    const { conversation, q, a } = small();
    q.parent = a.id;
    assert.equal(pathTo(conversation, a.id).length, 2);
});

test('long and empty titles', () => {
    assert.equal(titleOf({ text: 'x'.repeat(200) }).length, 60);
    assert.equal(titleOf({ text: '', attachments: [{ name: 'cat.png' }] }), 'cat.png');
    assert.equal(titleOf({ text: '  \n ' }), 'New chat');
});

test('input items: images before words, failed answers left out, neighbours joined', async () => {
    const { conversation, a } = small();
    const q2 = addMessage(conversation, {
        role: 'user', parent: a.id, text: 'And this?', attachments: [{ id: 'p', name: 'p.png' }, { id: 'gone', missing: true }],
    });
    const failed = addMessage(conversation, { role: 'assistant', parent: q2.id, text: '', status: 'failed' });
    const q3 = addMessage(conversation, { role: 'user', parent: failed.id, text: 'Hello?' });
    const input = await toInput(pathTo(conversation, q3.id), async (attachment) => `data:image/png;base64,${attachment.id}`);
    assert.deepEqual(input.map((item) => item.role), ['user', 'assistant', 'user']);
    assert.deepEqual(input[1].content, [{ type: 'output_text', text: 'A cross.' }]);
    assert.deepEqual(input[2].content, [
        { type: 'input_image', image_url: 'data:image/png;base64,p' },
        { type: 'input_text', text: 'And this?' },
        { type: 'input_text', text: 'Hello?' },
    ]);
});

test('an event stream cut at every byte gives the same lines', async () => {
    const whole = 'data: {"a":"é"}\r\n\r\n: ping\n\ndata:{"b":2}\n\ndata: [DONE]\n\n';
    const bytes = new TextEncoder().encode(whole);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
        const lines = [];
        const stream = new ReadableStream({
            start(controller) {
                controller.enqueue(bytes.slice(0, cut));
                controller.enqueue(bytes.slice(cut));
                controller.close();
            },
        });
        await readEventStream(stream, (data) => {
            lines.push(data);
            return data === '[DONE]';
        });
        assert.deepEqual(lines, ['{"a":"é"}', '{"b":2}', '[DONE]']);
    }
});

test('the text of a response object', () => {
    const response = {
        output: [
            { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'hm' }] },
            { type: 'message', content: [{ type: 'output_text', text: 'a' }, { type: 'output_text', text: 'b' }] },
        ],
    };
    assert.deepEqual(outputText(response), { text: 'ab', reasoning: 'hm', tools: [] });
    const call = (id) => ({ type: 'function_call', id, call_id: `c${id}`, name: 'f', arguments: '{}' });
    const { tools } = outputText({ output: [call('1'), response.output[1], call('2'), { type: 'function_call_output', call_id: 'c2', output: { a: 1 }, status: 'failed' }, { type: 'function_call_output', call_id: 'nobody', output: 'x' }] });
    assert.deepEqual(tools.map(({ id, at, output, failed }) => [id, at, output, failed]), [['1', 0, undefined, undefined], ['2', 2, '{"a":1}', true]]);
    assert.deepEqual(outputText(null), { text: '', reasoning: '', tools: [] });
});

test('a conversation as Markdown', () => {
    const { conversation } = small();
    assert.match(toMarkdown(conversation), /^# What is it\?\n\n## You\n\nWhat is it\?\n\n## Answer\n\nA cross\.\n$/);
});

test('the thoughts of an answer that is continued, and tool calls whose results are known, go along', async () => {
    const { conversation, a } = small();
    a.reasoning = 'It has two bars.';
    a.tools = [{ id: 'f', callId: 'c', name: 'look', arguments: '{}', output: 'seen', at: 0 }, { id: 'g', callId: 'd', name: 'look', arguments: '{}', at: 0 }];
    const input = async () => (await toInput(pathTo(conversation, a.id), async () => '')).slice(1);
    const thoughts = { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'It has two bars.' }] };
    assert.deepEqual(await input(), [
        thoughts,
        { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: 'seen' },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'A cross.' }] },
    ]);
    a.text = '';
    a.tools = [];
    assert.deepEqual(await input(), [thoughts]);
});
