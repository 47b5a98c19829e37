// Generates fresh questions that need exact reading and counting: everyday words, made-up strings of
// up to 12 letters, two lines, values of charts with numbers on the bars or on an axis alone, and
// up to nine of a shape. usage: node make_reading.mjs FOLDER [--n 120] [--seed 1] [--fonts A,B]
// Needs: rsvg-convert (librsvg2-bin). No npm packages. Writes images and FOLDER/questions.json,
// which ask.mjs asks: an answer is right if it contains every string of must, and if its last
// number is within 5 % of near. --fonts names families that the training has not seen.
import { execFileSync } from "node:child_process";
import { mkdirSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { seed, between, whole, pick, shuffled, COLORS, NAMES, SHAPES, GROUNDS, NEAR, many, shapeSvg, svg } from "./drawing.mjs";

const args = process.argv.slice(2);
const option = (name, fallback) => (args.includes(name) ? args[args.indexOf(name) + 1] : fallback);
const folder = args[0];
if (!folder || folder.startsWith("--")) {
  console.error("usage: node make_reading.mjs FOLDER [--n 120] [--seed 1] [--fonts A,B]");
  process.exit(2);
}
const total = Number(option("--n", "120"));
seed(Number(option("--seed", "1")));
const FONTS = option("--fonts", "DejaVu Sans,DejaVu Serif,Liberation Sans,Liberation Serif,DejaVu Sans Mono").split(",");

// ---------------------------------------------------------------- printed words
const WORDS = `anchor blanket cactus diamond engine feather gravel hammock icicle jacket kettle laundry magnet needle oyster parrot quarter
ribbon saddle tunnel vessel walnut yogurt zipper breeze copper drawer fabric glacier helmet insect jungle lizard mirror napkin pencil
rocket shovel trumpet velvet whistle chimney dolphin harbor ladder mustard pillow railway sandal turbine violin wagon fortune evening
market station balcony curtain journey lantern monument passage receipt shelter tractor village weather`.split(/\s+/);
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const string = (n) => Array.from({ length: n }, () => pick([...LETTERS])).join("");
const spoken = (n) => Array.from({ length: n }, (_, i) => pick([...(i % 2 ? "aeiou" : "bcdfghklmnprstvw")])).join("");
const cased = (t) => pick([t, t.toUpperCase(), t[0].toUpperCase() + t.slice(1)]);
function printed(lines) {
  const w = pick([360, 420, 480, 512, 600]);
  const h = Math.round(w * between(0.3, 0.6));
  const longest = Math.max(...lines.map((t) => t.length));
  const size = Math.min((w * between(0.7, 0.88)) / (longest * 0.72), (h * 0.62) / lines.length);
  const [back, ink] = pick([["white", "black"], ["#fff8e1", "#3e2723"], ["#ffd54f", "#212121"], ["#0d47a1", "white"], ["#222", "#ffeb3b"], ["#ad1457", "white"], ["white", "#1b5e20"]]);
  const rows = lines.map((t, i) => `<text x="${w / 2}" y="${(h / 2 + size * (0.35 + (i - (lines.length - 1) / 2) * 1.3)).toFixed(1)}">${t}</text>`);
  return svg(w, h, `<rect width="100%" height="100%" fill="${back}"/><g font-family="${pick(FONTS)}" font-weight="${pick(["normal", "bold"])}" font-size="${size.toFixed(1)}" text-anchor="middle" fill="${ink}">${rows.join("")}</g>`);
}
const READ = ["What does it say?", "Read the text.", "what is written here", "Please read this for me.", "What text do you see?"];

// ---------------------------------------------------------------- charts
function chart(axis) {
  const n = whole(2, 6);
  const labels = pick([["North", "South", "East", "West", "Up", "Down"], ["Q1", "Q2", "Q3", "Q4", "Q5", "Q6"], ["tea", "milk", "juice", "water", "cola", "soup"], ["A", "B", "C", "D", "E", "F"], ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]]).slice(0, n);
  const top = pick([10, 20, 50, 100]);
  const values = shuffled(Array.from({ length: top - 1 }, (_, i) => i + 2).filter((v) => v >= top * 0.15)).slice(0, n);
  const [w, h, size] = [pick([380, 440, 500]), pick([300, 340, 380]), pick([15, 17, 19])];
  const [left, base, head] = [axis ? 56 : 26, h - 40, 40];
  const slot = (w - left - 12) / n;
  const full = axis ? top : Math.max(...values);
  const y = (v) => base - ((base - head) * v) / full;
  const colors = shuffled(["#c62828", "#1565c0", "#2e7d32", "#6a1b9a", "#ef6c00", "#00838f"]);
  const one = pick([true, false]);
  const bars = values.map((v, i) => `<rect x="${left + slot * (i + 0.18)}" y="${y(v)}" width="${slot * 0.64}" height="${base - y(v)}" fill="${colors[one ? 0 : i]}"/><text x="${left + slot * (i + 0.5)}" y="${base + size + 5}" text-anchor="middle">${labels[i]}</text>${axis ? "" : `<text x="${left + slot * (i + 0.5)}" y="${y(v) - 5}" text-anchor="middle">${v}</text>`}`);
  const ticks = axis ? [0, 1, 2, 3, 4, 5].map((i) => `<text x="${left - 8}" y="${y((top * i) / 5) + 5}" text-anchor="end">${(top * i) / 5}</text><path d="M${left - 4},${y((top * i) / 5)}H${w - 8}" stroke="#ccc"/>`) : [];
  const i = whole(0, n - 1);
  const image = svg(w, h, `<rect width="100%" height="100%" fill="white"/><g font-family="${pick(FONTS)}" font-size="${size}" fill="#222">${ticks.join("")}${bars.join("")}</g><path d="M${left - 4},${base}H${w - 8}" stroke="#333" stroke-width="2"/>`);
  return { image, question: pick([`What is the value of ${labels[i]}?`, `How much is ${labels[i]}?`, `what value does ${labels[i]} have`, `How high is ${labels[i]}?`]), must: [], near: values[i] };
}

// ---------------------------------------------------------------- counting
const NUMBER = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
function crowd() {
  const [w, h] = pick([[400, 320], [480, 360], [360, 360], [512, 384]]);
  const ground = pick(["white", "white", "black", "gray"]);
  const usable = NAMES.filter((c) => c !== ground && !NEAR[ground].includes(c));
  const [n, more] = [whole(1, 9), whole(0, 2)];
  const shape = pick(SHAPES);
  const similar = ["circle", "ring"];
  const objs = [];
  while (objs.length < n + more) {
    const s = Math.min(w, h) * between(0.065, 0.095);
    const [x, y] = [between(s + 4, w - s - 4), between(s + 4, h - s - 4)];
    if (!objs.every((o) => Math.hypot(o.x - x, o.y - y) > (o.s + s) * 1.15 + 4)) continue;
    const other = pick(SHAPES.filter((k) => k !== shape && !(similar.includes(k) && similar.includes(shape))));
    const color = pick(usable);
    objs.push({ shape: objs.length < n ? shape : other, color, rgb: pick(COLORS[color]), s, x, y, dir: "right", outline: false, edge: false });
  }
  return { image: svg(w, h, `<rect width="100%" height="100%" fill="${pick(GROUNDS[ground])}"/>${objs.map(shapeSvg).join("")}`), question: pick([`How many ${many(shape)} are there?`, `Count the ${many(shape)}.`, `how many ${many(shape)} do you see`]), must: [NUMBER[n]] };
}

const skills = {
  word: () => { const t = cased(pick(WORDS)); return { image: printed([t]), question: pick(READ), must: [t] }; },
  spoken: () => { const t = cased(spoken(whole(4, 12))); return { image: printed([t]), question: pick(READ), must: [t] }; },
  string: () => { const t = string(whole(3, 12)); return { image: printed([t]), question: pick(READ), must: [t] }; },
  lines: () => { const [a, b] = [cased(pick(WORDS)), pick(WORDS)]; return { image: printed([a, b]), question: pick(READ), must: [`${a} ${b}`] }; },
  chart_number: () => chart(false),
  chart_axis: () => chart(true),
  crowd,
};

mkdirSync(folder, { recursive: true });
const plan = Object.entries(skills);
const questions = [];
for (let i = 0; i < total; i++) {
  const [skill, make] = plan[i % plan.length];
  const { image, question, must, near } = make();
  const file = `q${String(i + 1).padStart(4, "0")}.png`;
  writeFileSync(join(folder, "image.svg"), image);
  execFileSync("rsvg-convert", ["-o", join(folder, file), join(folder, "image.svg")]);
  questions.push({ files: [file], skill, question, must, near });
}
unlinkSync(join(folder, "image.svg"));
writeFileSync(join(folder, "questions.json"), JSON.stringify(questions, null, 1));
console.log(`${questions.length} questions in ${folder}`);
