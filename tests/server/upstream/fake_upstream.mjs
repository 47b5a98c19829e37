/**
 * Other servers as Parley meets them: a double that lists a model and streams an answer in the wire form of an
 * engine. The forms are written from what these servers document and from their protocol sources; none was recorded from
 * a running one:
 *
 *   vllm      vLLM 0.2x: "OpenAI-Compatible Server" and "Reasoning Outputs" (`reasoning`; a role chunk first, usage
 *             in a chunk without choices, names of tools and their arguments in chunks of their own)
 *   sglang    SGLang: "OpenAI APIs" and "Reasoning Parser" (`reasoning_content`, null members in every delta,
 *             `matched_stop`, errors as data: {"error": {..}})
 *   vllm-new, sglang-new  as their protocol sources have it in 2026 (vllm/entrypoints/openai/chat_completion and
 *             generate/base/protocol.py; sglang/srt/entrypoints/openai/protocol.py and sse_utils.py): usage in every
 *             chunk, the end of the thoughts and the beginning of the content in one delta, a call's name with its
 *             first arguments and several calls in one delta, empty lists, `metrics`, `sglext`, no null members,
 *             `reasoning_tokens`
 *   llamacpp  llama.cpp: the README of its server (an empty last delta, `timings`)
 *   inline    any of them without a parser of its own: think tags in the content
 *   whole     a server that does not stream: one document, tool calls in one piece
 *   hosted    OpenAI's API reference, as OpenRouter and others speak it: comments that keep the stream alive, CRLF,
 *             usage beside the finish_reason
 */
import { createServer } from 'node:http';

const split = (text, n) => text.match(new RegExp(`[\\s\\S]{1,${n}}`, 'gu')) ?? [];
const usageOf = (a) => ({ prompt_tokens: a.prompt ?? 12, completion_tokens: a.completion ?? 7, total_tokens: (a.prompt ?? 12) + (a.completion ?? 7) });
const sse = (value) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;

function chunks(engine, model, answer) {
    const n = answer.cut ?? 5;
    const base = { id: `chatcmpl-${engine}`, object: 'chat.completion.chunk', created: 1780000000, model };
    const list = [];
    const empty = engine === 'sglang' ? { role: null, content: null, reasoning_content: null, tool_calls: null } : {};
    const extra = engine === 'sglang' ? { logprobs: null, matched_stop: null } : engine === 'vllm' ? { logprobs: null, token_ids: null } : {};
    const delta = (d, more = {}) => list.push({ ...base, choices: [{ index: 0, delta: { ...empty, ...d }, finish_reason: null, ...extra, ...more }] });
    delta({ role: 'assistant', content: engine === 'llamacpp' ? null : '' });
    const thoughts = answer.reasoning ?? '';
    if (engine === 'inline' || engine === 'hosted') {
        const text = (thoughts ? `<think>\n${thoughts}\n</think>\n\n` : '') + (answer.content ?? '');
        for (const piece of split(text, n)) delta({ content: piece });
    } else {
        const name = engine === 'vllm' ? 'reasoning' : 'reasoning_content';
        for (const piece of split(thoughts ? `${thoughts}\n` : '', n)) delta({ [name]: piece });
        for (const piece of split((thoughts && answer.content ? '\n\n' : '') + (answer.content ?? ''), n)) delta({ content: piece });
    }
    (answer.calls ?? []).forEach(({ name, args }, index) => {
        const id = `call_${index}x`;
        if (engine === 'inline' || engine === 'hosted') {
            delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }] });
            return;
        }
        delta({ tool_calls: [{ index, id, type: 'function', function: engine === 'vllm' ? { name } : { name, arguments: '' } }] });
        for (const piece of split(args, n)) delta({ tool_calls: [{ index, ...(engine === 'sglang' ? { id: null, type: 'function' } : {}), function: { ...(engine === 'sglang' ? { name: null } : {}), arguments: piece } }] });
    });
    if (answer.logprobs) list.splice(1, list.length, { ...base, choices: [{ index: 0, delta: { content: answer.content }, logprobs: { content: answer.logprobs }, finish_reason: null }] });
    const finish = answer.finish ?? (answer.calls?.length ? 'tool_calls' : 'stop');
    const usage = { ...usageOf(answer), prompt_tokens_details: answer.cached ? { cached_tokens: answer.cached } : null };
    const last = { index: 0, delta: engine === 'llamacpp' ? {} : { ...empty, ...(engine === 'vllm' ? { content: '' } : {}) }, finish_reason: finish,
        ...(engine === 'sglang' ? { matched_stop: 151645 } : engine === 'vllm' ? { stop_reason: null } : {}) };
    if (engine === 'hosted') list.push({ ...base, choices: [last], usage });
    else list.push({ ...base, choices: [last] }, { ...base, choices: [], usage, ...(engine === 'llamacpp' ? { timings: { predicted_n: 3 } } : {}) });
    return list;
}

/** What one delta holds in the newest forms: pieces that follow each other at once come together. */
function newDeltas(engine, answer) {
    const n = answer.cut ?? 5, name = engine === 'vllm-new' ? 'reasoning' : 'reasoning_content';
    const thoughts = split(answer.reasoning ? `${answer.reasoning}\n` : '', n);
    const content = split((answer.reasoning && answer.content ? '\n\n' : '') + (answer.content ?? ''), n);
    const deltas = thoughts.map((piece) => ({ [name]: piece }));
    if (thoughts.length && content.length) deltas[deltas.length - 1].content = content.shift();
    deltas.push(...content.map((piece) => ({ content: piece })));
    const pieces = (answer.calls ?? []).flatMap(({ name: called, args }, index) => split(args, n).map((piece, i) =>
        (i ? { index, function: { arguments: piece } } : { index, id: `chatcmpl-tool-${index}`, type: 'function', function: { name: called, arguments: piece } })));
    for (let i = 0; i < pieces.length; i += 3) deltas.push({ tool_calls: pieces.slice(i, i + 3) });
    return deltas;
}

function newChunks(engine, model, answer) {
    const vllm = engine === 'vllm-new', all = usageOf(answer);
    const base = { id: vllm ? 'chatcmpl-8d0f' : '0f3c', object: 'chat.completion.chunk', created: 1795000000, model };
    const usage = (completion) => ({ ...all, completion_tokens: completion, total_tokens: all.prompt_tokens + completion, ...(vllm ? {} : { reasoning_tokens: 0 }) });
    const last = answer.finish ?? (answer.calls?.length ? 'tool_calls' : 'stop');
    const choice = (delta, finish) => ({ index: 0, delta: vllm && !delta.tool_calls ? { ...delta, tool_calls: [] } : delta, logprobs: null, finish_reason: finish, ...(vllm ? { stop_reason: null, token_ids: null } : { matched_stop: finish && '<|im_end|>' }) });
    const deltas = newDeltas(engine, answer);
    return [
        { ...base, choices: [choice({ role: 'assistant', content: '' }, null)], usage: usage(0), ...(vllm ? { prompt_token_ids: null } : {}) },
        ...deltas.map((delta, i) => ({ ...base, choices: [choice(delta, null)], usage: usage(i + 1) })),
        { ...base, choices: [choice({}, last)], usage: usage(all.completion_tokens), ...(vllm ? { system_fingerprint: 'vllm-0.2x' } : { sglext: { cached_tokens_details: { device: 3, host: 0 } } }) },
        { ...base, choices: [], usage: { ...usage(all.completion_tokens), prompt_tokens_details: answer.cached ? { cached_tokens: answer.cached } : null }, ...(vllm ? { metrics: { time_to_first_token: 0.1 } } : {}) },
    ];
}

/** The answer's stream as text, or the one document of a server that does not stream. */
export function wire(engine, model, answer) {
    if (engine === 'whole') {
        const message = { role: 'assistant', content: answer.content || null, reasoning_content: answer.reasoning || null,
            tool_calls: (answer.calls ?? []).map(({ name, args }, i) => ({ id: `call_${i}x`, type: 'function', function: { name, arguments: args } })) };
        if (answer.reasoning && answer.content) message.content = `\n\n${answer.content}`;
        return JSON.stringify({ id: 'chatcmpl-whole', object: 'chat.completion', created: 1, model, choices: [{ index: 0, message, finish_reason: answer.finish ?? (answer.calls?.length ? 'tool_calls' : 'stop') }],
            usage: { ...usageOf(answer), prompt_tokens_details: answer.cached ? { cached_tokens: answer.cached } : null } });
    }
    const text = (engine.endsWith('-new') ? newChunks : chunks)(engine, model, answer).map(sse).join('') + sse('[DONE]');
    return engine === 'hosted' ? `: OPENROUTER PROCESSING\n\n${text}`.replaceAll('\n', '\r\n') : text;
}

const OWNERS = { vllm: 'vllm', sglang: 'sglang', 'vllm-new': 'vllm', 'sglang-new': 'sglang', llamacpp: 'llamacpp', inline: 'vllm', whole: 'someone', hosted: 'system' };

/**
 * Starts one. `answer(body, res, req)` says what it answers: an object for `wire`, or nothing if it has written
 * itself. `requests` holds what came.
 */
export async function startUpstream({ engine = 'vllm', model = 'org/big', port = 0, answer = () => ({ content: 'Hello.' }), models, host = '127.0.0.1' } = {}) {
    const fake = { engine, model, answer, models, requests: [], closed: 0, seen: [], checks: 0 };
    const server = createServer((req, res) => {
        let text = '';
        fake.seen.push({ path: req.url, headers: req.headers });
        req.on('data', (data) => (text += data));
        req.on('end', async () => {
            if (req.method === 'GET') {
                fake.checks++;
                if (fake.models instanceof Function) return fake.models(req, res);
                res.setHeader('Content-Type', 'application/json');
                return res.end(JSON.stringify({ object: 'list', data: fake.models ?? [{ id: fake.model, object: 'model', owned_by: OWNERS[fake.engine], max_model_len: 4096 }] }));
            }
            const body = JSON.parse(text);
            fake.requests.push({ path: req.url, headers: req.headers, body });
            res.on('close', () => { if (!res.writableEnded) fake.closed = Date.now(); });
            const said = await fake.answer(body, res, req);
            if (!said) return;
            res.setHeader('Content-Type', fake.engine === 'whole' ? 'application/json' : 'text/event-stream; charset=utf-8');
            res.end(wire(fake.engine, fake.model, said));
        });
    });
    await new Promise((resolve) => server.listen(port, host, resolve));
    fake.port = server.address().port;
    fake.url = `http://${host}:${fake.port}`;
    fake.close = () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
    return fake;
}
