/**
 * Other servers as Parley meets them: a double that lists a model and streams an answer in the wire form of an
 * engine. The forms are written from what these servers document; none was recorded from a running one:
 *
 *   vllm      vLLM 0.2x: "OpenAI-Compatible Server" and "Reasoning Outputs" (`reasoning`; a role chunk first, usage
 *             in a chunk without choices, names of tools and their arguments in chunks of their own)
 *   sglang    SGLang: "OpenAI APIs" and "Reasoning Parser" (`reasoning_content`, null members in every delta,
 *             `matched_stop`, errors as data: {"error": {..}})
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

/** The answer's stream as text, or the one document of a server that does not stream. */
export function wire(engine, model, answer) {
    if (engine === 'whole') {
        const message = { role: 'assistant', content: answer.content || null, reasoning_content: answer.reasoning || null,
            tool_calls: (answer.calls ?? []).map(({ name, args }, i) => ({ id: `call_${i}x`, type: 'function', function: { name, arguments: args } })) };
        if (answer.reasoning && answer.content) message.content = `\n\n${answer.content}`;
        return JSON.stringify({ id: 'chatcmpl-whole', object: 'chat.completion', created: 1, model, choices: [{ index: 0, message, finish_reason: answer.finish ?? (answer.calls?.length ? 'tool_calls' : 'stop') }],
            usage: { ...usageOf(answer), prompt_tokens_details: answer.cached ? { cached_tokens: answer.cached } : null } });
    }
    const text = chunks(engine, model, answer).map(sse).join('') + sse('[DONE]');
    return engine === 'hosted' ? `: OPENROUTER PROCESSING\n\n${text}`.replaceAll('\n', '\r\n') : text;
}

const OWNERS = { vllm: 'vllm', sglang: 'sglang', llamacpp: 'llamacpp', inline: 'vllm', whole: 'someone', hosted: 'system' };

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
