// Asks a running server what newcomers ask: prompts.json (small talk, help with Parley, what cannot
// be known, images that are not there), schemas.json and tools.json beside this file. usage: node
// ask_talk.mjs [--base http://127.0.0.1:8080] [--only prompts|schemas|tools] [--prompts prompts2.json]
// [--tools tools2.json] [--verbose]; --prompts and --tools name other files of the same form beside this one.
// Temperature is 0. A prompt is answered sensibly if the answer matches its pattern, calls no tool and
// describes no image. Prints what failed and the counts.
import { readFileSync } from "node:fs";

const args = process.argv.slice(2);
const option = (name, fallback) => (args.includes(name) ? args[args.indexOf(name) + 1] : fallback);
const base = option("--base", "http://127.0.0.1:8080").replace(/\/$/, "");
const only = option("--only", "");
const prompts = option("--prompts", "prompts.json");
const conversations = option("--tools", "tools.json");
const verbose = args.includes("--verbose");
const load = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url), "utf8"));

/** The message and the reason for its end. */
async function ask(body) {
  const reply = await fetch(`${base}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ model: "default", temperature: 0, max_tokens: 200, ...body }) });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${reply.status} ${text.slice(0, 300)}`);
  return JSON.parse(text).choices[0];
}

const counts = new Map();
/** Notes one result, and prints it if it is wrong. */
function note(kind, good, question, answer) {
  const row = counts.get(kind) ?? { good: 0, n: 0 };
  row.n += 1;
  row.good += good ? 1 : 0;
  counts.set(kind, row);
  if (!good || verbose) console.log(`${good ? "right" : "WRONG"} ${kind} | ${question} | ${answer}`);
}

if (!only || only === "prompts") {
  for (const [kind, question, pattern] of load(prompts)) {
    const { message } = await ask({ messages: [{ role: "user", content: question }] });
    const answer = message.content ?? "";
    const claims = /I see (a|an|one|two|three|four|five|six|no shapes) |The (picture|image) shows|There (is|are) (one|two|three|four|five|six) /.test(answer);
    const called = (message.tool_calls ?? []).length > 0 || answer.includes("<tool_call>");
    note(kind, new RegExp(pattern, "i").test(answer) && !claims && !called, question, answer.replaceAll("\n", " / "));
  }
}

if (!only || only === "schemas") {
  for (const [question, schema] of load("schemas.json")) {
    const { message, finish_reason: reason } = await ask({ messages: [{ role: "user", content: question }], response_format: { type: "json_schema", json_schema: { name: "form", schema } } });
    let valid = reason === "stop";
    try {
      JSON.parse(message.content);
    } catch {
      valid = false;
    }
    note("schema", valid, question, message.content);
  }
}

if (!only || only === "tools") {
  for (const { tools, messages, call } of load(conversations)) {
    const { message } = await ask({ messages, tools });
    const calls = message.tool_calls ?? [];
    let good = call ? calls.length === 1 && calls[0].function.name === call.name : calls.length === 0 && !!message.content;
    if (call && good) {
      const given = JSON.parse(calls[0].function.arguments);
      good = Object.entries(call.arguments).every(([key, value]) => String(given[key]).toLowerCase() === String(value).toLowerCase()) && Object.keys(given).every((key) => key in call.arguments);
    }
    note(call ? "call" : "no call", good, messages.at(-1).content, JSON.stringify(calls.map((c) => c.function)) + (message.content ?? ""));
  }
}

for (const [kind, { good, n }] of counts) console.log(`${kind.padEnd(10)} ${good} of ${n}`);
