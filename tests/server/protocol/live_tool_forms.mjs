/** Calls of every form through the server, in Chat Completions, Messages and Responses: what is streamed is
 * what a whole reply says, an answer that is cut has told the arguments before the cut, and the thoughts
 * and words around a call stay where they belong. */
import assert from 'node:assert/strict';
import { events, post, runTests, startServer, test } from '../client.mjs';

const parameters = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' }, tags: { type: 'array' } } };
const CALLS = [
    ['get_weather', { city: 'Köln "am" Rhein', days: 3, tags: ['a', { b: [1, null] }] }],
    ['now', {}],
];

const json = JSON.stringify;
const tags = (args, before, behind, close) => Object.entries(args).map(([key, v]) => `${before}${key}${behind}${typeof v === 'string' ? v : json(v)}${close}`).join('');
const python = (v) => (v === null ? 'None' : Array.isArray(v) ? `[${v.map(python)}]` : typeof v === 'object' ? `{${Object.entries(v).map(([k, x]) => `'${k}': ${python(x)}`)}}` : json(v));
const gemma = (v) => (typeof v === 'string' ? `<|"|>${v}<|"|>` : Array.isArray(v) ? `[${v.map(gemma)}]` : v && typeof v === 'object' ? `{${Object.entries(v).map(([k, x]) => `${k}:${gemma(x)}`)}}` : json(v));
const named = (args, assign, write) => Object.entries(args).map(([key, v]) => `${key}${assign}${write(v)}`);
const list = (before, close, key = 'arguments') => (calls) => `${before}[${calls.map(([name, args]) => `{"name": "${name}", "${key}": ${json(args)}}`).join(', ')}]${close}`;
const each = (write, between = '') => (calls) => calls.map(([name, args]) => write(name, args)).join(between);

/* How the models of a form write calls. reasoning: how they think, where it is not <think>; bare: no words in front. */
const FORMS = {
    openai: { write: each((name, args) => `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>${json(args)}<|call|>`, '<|start|>assistant'), reasoning: 'openai_gptoss' },
    gemma4: { write: each((name, args) => `<|tool_call>call:${name}{${named(args, ':', gemma)}}<tool_call|>`), reasoning: 'gemma4' },
    minimax_m2: { write: (calls) => `<minimax:tool_call>\n${each((name, args) => `<invoke name="${name}">\n${tags(args, '<parameter name="', '">', '</parameter>\n')}</invoke>\n`)(calls)}</minimax:tool_call>` },
    mistral: { write: each((name, args) => `[TOOL_CALLS]${name}[ARGS]${json(args)}`), reasoning: 'mistral' },
    mistral_list: { write: list('[TOOL_CALLS]', '') },
    llama3_json: { write: each((name, args) => `{"name": "${name}", "parameters": ${json(args)}}`, '; '), bare: true },
    pythonic: { write: (calls) => `[${calls.map(([name, args]) => `${name}(${named(args, '=', python).join(', ')})`).join(', ')}]`, bare: true },
    deepseek_v3: { write: (calls) => `<｜tool▁calls▁begin｜>${each((name, args) => `<｜tool▁call▁begin｜>function<｜tool▁sep｜>${name}\n\`\`\`json\n${json(args)}\n\`\`\`<｜tool▁call▁end｜>`, '\n')(calls)}<｜tool▁calls▁end｜>` },
    deepseek_v31: { write: (calls) => `<｜tool▁calls▁begin｜>${each((name, args) => `<｜tool▁call▁begin｜>${name}<｜tool▁sep｜>${json(args)}<｜tool▁call▁end｜>`)(calls)}<｜tool▁calls▁end｜>` },
    deepseek_v32: { write: (calls) => `<｜DSML｜function_calls>\n${each((name, args) => `<｜DSML｜invoke name="${name}">\n${tags(args, '<｜DSML｜parameter name="', '">', '</｜DSML｜parameter>\n')}</｜DSML｜invoke>\n`)(calls)}</｜DSML｜function_calls>` },
    glm45: { write: each((name, args) => `<tool_call>${name}\n${tags(args, '<arg_key>', '</arg_key>\n<arg_value>', '</arg_value>\n')}</tool_call>`, '\n') },
    kimi_k2: { write: (calls) => `<|tool_calls_section_begin|>${calls.map(([name, args], i) => `<|tool_call_begin|>functions.${name}:${i}<|tool_call_argument_begin|>${json(args)}<|tool_call_end|>`).join('')}<|tool_calls_section_end|>` },
    granite: { write: list('<|tool_call|>', '') },
    lfm2: { write: (calls) => `<|tool_call_start|>[${calls.map(([name, args]) => `${name}(${named(args, '=', python).join(', ')})`).join(', ')}]<|tool_call_end|>` },
    nemotron_json: { write: list('<TOOLCALL>', '</TOOLCALL>'), bare: true },
    seed_oss: { write: each((name, args) => `<seed:tool_call>\n<function=${name}>\n${tags(args, '<parameter=', '>', '</parameter>\n')}</function>\n</seed:tool_call>`, '\n'), reasoning: 'seed_oss' },
    qwen3_coder: { write: each((name, args) => `<tool_call>\n<function=${name}>\n${tags(args, '<parameter=', '>\n', '\n</parameter>\n')}</function>\n</tool_call>`, '\n') },
    hermes: { write: each((name, args) => `<tool_call>\n{"name": "${name}", "arguments": ${json(args)}}\n</tool_call>`, '\n') },
};
const THOUGHTS = {
    openai_gptoss: (words) => `<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant${words ? `<|channel|>commentary<|message|>${words}<|end|><|start|>assistant` : ''}`,
    gemma4: (words) => `<|channel>thought\nLet me see.<channel|>${words}`,
    mistral: (words) => `[THINK]Let me see.[/THINK]${words}`,
    seed_oss: (words) => `<seed:think>Let me see.</seed:think>${words}`,
    qwen3: (words) => `<think>\nLet me see.\n</think>\n\n${words}`,
};

/* ---- the dialects: [thoughts, words, calls, why it ended], from a reply and from a stream ---- */

const call = (name, text) => ({ name, text });

const DIALECTS = {
    chat: {
        path: '/v1/chat/completions',
        body: (said, n) => ({ messages: [{ role: 'user', content: said }], max_tokens: n, tools: CALLS.map(([name]) => ({ type: 'function', function: { name, ...(name === 'now' ? {} : { parameters }) } })) }),
        whole: ({ choices: [{ message, finish_reason: end }] }) => [message.reasoning_content ?? '', message.content ?? '', (message.tool_calls ?? []).map(({ function: f }) => call(f.name, f.arguments)), end],
        streamed(list) {
            const out = ['', '', [], null];
            for (const { delta, finish_reason: end } of list.flatMap((chunk) => chunk.choices ?? [])) {
                out[0] += delta.reasoning_content ?? '';
                out[1] += delta.content ?? '';
                for (const { index, function: f } of delta.tool_calls ?? []) {
                    if (f.name) assert.equal(out[2].push(call(f.name, '')), index + 1);
                    out[2][index].text += f.arguments;
                }
                out[3] = end ?? out[3];
            }
            return out;
        },
        ends: ['tool_calls', 'length'],
    },
    messages: {
        path: '/v1/messages',
        body: (said, n) => ({ model: 'fake', max_tokens: n, thinking: { type: 'enabled', budget_tokens: 1 << 20 }, messages: [{ role: 'user', content: said }], tools: CALLS.map(([name]) => ({ name, input_schema: parameters })) }),
        whole: ({ content, stop_reason: end }) => {
            const of = (type) => content.filter((block) => block.type === type);
            return [of('thinking').map((b) => b.thinking).join(''), of('text').map((b) => b.text).join(''), of('tool_use').map((b) => call(b.name, json(b.input))), end];
        },
        streamed(list) {
            const out = ['', '', [], null];
            let open = null;
            for (const event of list) {
                if (event.type === 'content_block_start') {
                    assert.equal(open, null);
                    open = event.content_block.type;
                    if (open === 'tool_use') {
                        assert.deepEqual(event.content_block.input, {});
                        out[2].push(call(event.content_block.name, ''));
                    }
                } else if (event.type === 'content_block_delta') {
                    out[0] += event.delta.thinking ?? '';
                    out[1] += event.delta.text ?? '';
                    if (event.delta.type === 'input_json_delta') out[2].at(-1).text += event.delta.partial_json;
                } else if (event.type === 'content_block_stop') open = null;
                else if (event.type === 'message_delta') out[3] = event.delta.stop_reason;
            }
            assert.equal(open, null);
            return out;
        },
        ends: ['tool_use', 'max_tokens'],
    },
    responses: {
        path: '/v1/responses',
        body: (said, n) => ({ model: 'fake', input: said, max_output_tokens: n, tools: CALLS.map(([name]) => ({ type: 'function', name, parameters })) }),
        whole: ({ output, status, incomplete_details: why }) => {
            const of = (type) => output.filter((item) => item.type === type);
            const words = (items) => items.flatMap((item) => item.content).map((part) => part.text).join('');
            return [words(of('reasoning')), words(of('message')), of('function_call').map((item) => call(item.name, item.arguments)), why?.reason ?? status];
        },
        streamed(list) {
            const out = ['', '', [], null];
            for (const event of list) {
                if (event.type === 'response.output_item.added' && event.item.type === 'function_call') out[2].push(call(event.item.name, ''));
                else if (event.type === 'response.function_call_arguments.delta') out[2].at(-1).text += event.delta;
                else if (event.type === 'response.output_text.delta') out[1] += event.delta;
                else if (event.type === 'response.reasoning_text.delta') out[0] += event.delta;
                else if (event.response && /completed|incomplete$/.test(event.type)) {
                    out[3] = event.response.incomplete_details?.reason ?? event.response.status;
                    assert.deepEqual(DIALECTS.responses.whole(event.response), out);
                }
            }
            return out;
        },
        ends: ['completed', 'max_output_tokens'],
    },
};

/** The same question whole and streamed. */
async function ask(server, dialect, said, n = 100000) {
    const body = dialect.body(said, n);
    const reply = await post(server, dialect.path, body);
    assert.equal(reply.status, 200, reply.text);
    const stream = await post(server, dialect.path, { ...body, stream: true });
    const list = events(stream.text).filter((line) => line !== '[DONE]').map((line) => JSON.parse(line));
    return { whole: dialect.whole(reply.json()), streamed: dialect.streamed(list) };
}

const parsed = ([thoughts, words, calls, end]) => [thoughts, words, calls.map(({ name, text }) => [name, JSON.parse(text)]), end];

for (const [form, { write, reasoning = 'qwen3', bare }] of Object.entries(FORMS)) {
    test(`${form}: three dialects, whole, streamed and cut`, async () => {
        const server = await startServer(['--tool-call-parser', form, '--reasoning-parser', reasoning]);
        await server.ready();
        const words = bare ? '' : 'I look.';
        const head = `${THOUGHTS[reasoning](words)}`, said = `${head}${write(CALLS)}`;
        /* behind the first arguments, within the last one of the first call */
        const cut = Buffer.byteLength(said.slice(0, said.indexOf('tags') + 8));
        for (const [name, dialect] of Object.entries(DIALECTS)) {
            const { whole, streamed } = await ask(server, dialect, `!raw ${said}`);
            assert.deepEqual(parsed(whole), ['Let me see.', words, CALLS, dialect.ends[0]], name);
            assert.deepEqual(parsed(streamed), parsed(whole), name);
            const broken = await ask(server, dialect, `!raw ${said}`, cut);
            const [thoughts, text, calls, end] = broken.streamed;
            assert.deepEqual([thoughts, text, calls.length, calls[0]?.name, end], ['Let me see.', words, 1, 'get_weather', dialect.ends[1]], name);
            const told = calls[0].text.replaceAll(' ', '');
            assert.ok(told.startsWith('{"city":"Köln\\"am\\"Rhein","days":3'), `${name}: ${told}`);
        }
        assert.equal(await server.stop(), 0);
    });
}

await runTests(4);
