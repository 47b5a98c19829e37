// Asks a running server the questions of FOLDER/questions.json and counts the right answers. usage:
// node ask.mjs FOLDER [--base http://127.0.0.1:8080] [--model NAME] [--min 0.9] [--verbose] POST
// /v1/chat/completions with data: URIs, temperature 0, not streaming; an answer is right if it
// contains every string of must, upper or lower case, one
// of any if there is any, and if its last number is within 5 % of near if there is near. Prints a table by skill and the total; exit
// code 1 under the bar.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const args = process.argv.slice(2);
const option = (name, fallback) => (args.includes(name) ? args[args.indexOf(name) + 1] : fallback);
const folder = args[0];
if (!folder || folder.startsWith("--")) {
  console.error("usage: node ask.mjs FOLDER [--base URL] [--model NAME] [--min 0.9] [--verbose]");
  process.exit(2);
}
const base = option("--base", "http://127.0.0.1:8080").replace(/\/$/, "");
const bar = Number(option("--min", "0.9"));
const questions = JSON.parse(readFileSync(join(folder, "questions.json"), "utf8"));

const TYPES = { png: "image/png", jpg: "image/jpeg", mp4: "video/mp4", mov: "video/quicktime", webm: "video/webm", mkv: "video/x-matroska", avi: "video/x-msvideo" };
/** The content part with a file: an image or a video. */
function part(file) {
  const type = TYPES[file.split(".").pop()];
  const kind = type.startsWith("video/") ? "video_url" : "image_url";
  return { type: kind, [kind]: { url: `data:${type};base64,${readFileSync(join(folder, file)).toString("base64")}` } };
}

async function ask({ files, question }) {
  const body = { model: option("--model", "default"), temperature: 0, stream: false, max_tokens: 200, messages: [{ role: "user", content: [...files.map(part), { type: "text", text: question }] }] };
  const reply = await fetch(`${base}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${reply.status} ${text.slice(0, 200)}`);
  return JSON.parse(text).choices[0].message.content ?? "";
}

/** Whether the answer says what the question wants. */
function isRight(answer, { must, any = [], near }) {
  const has = (part) => answer.toLowerCase().includes(part.toLowerCase());
  if (!must.every(has) || (any.length > 0 && !any.some(has))) return false;
  const last = Number((answer.match(/-?\d+(\.\d+)?/g) ?? []).at(-1));
  return near === undefined || Math.abs(last - near) <= Math.abs(near) * 0.05;
}

const table = new Map();
let right = 0;
const start = Date.now();
for (const q of questions) {
  let answer;
  try {
    answer = await ask(q);
  } catch (error) {
    answer = `(error: ${error.message})`;
  }
  const good = !answer.startsWith("(error") && isRight(answer, q);
  const row = table.get(q.skill) ?? { right: 0, n: 0 };
  row.n += 1;
  row.right += good ? 1 : 0;
  right += good ? 1 : 0;
  table.set(q.skill, row);
  if (!good || args.includes("--verbose")) console.log(`${good ? "right" : "WRONG"} ${q.files.join(" ")} | ${q.question} | ${JSON.stringify(q.near ?? [...q.must, ...(q.any ?? [])])} | ${answer.trim()}`);
}
for (const [skill, row] of [...table].sort()) console.log(`${skill.padEnd(16)} ${String(row.right).padStart(4)} of ${String(row.n).padStart(4)}`);
const share = right / questions.length;
console.log(`total            ${right} of ${questions.length} = ${share.toFixed(3)} (bar ${bar}), ${((Date.now() - start) / 1000).toFixed(0)} s`);
process.exit(share >= bar ? 0 : 1);
