// Generates fresh video questions: SVG frames, encoded by ffmpeg as H.264, VP9, AV1 and MPEG-4, 8
// to 60 frames a second, a third of them with a variable rate. usage: node make_videos.mjs FOLDER
// [--n 100] [--seed 1] Needs: ffmpeg with librsvg, libx264, libvpx-vp9, libsvtav1. No npm packages.
// Writes videos and FOLDER/questions.json, which ask.mjs asks; an answer is right if it contains
// every string of must, and one of any. The drawer and most wordings differ from those of the training data in
// tools/seedling.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seed, random, between, whole, pick, shuffled, COLORS, NAMES, SHAPES, GROUNDS, NEAR, NUMBER, shapeSvg, svg, titled } from "./drawing.mjs";

const args = process.argv.slice(2);
const option = (name, fallback) => (args.includes(name) ? Number(args[args.indexOf(name) + 1]) : fallback);
const folder = args[0];
if (!folder || folder.startsWith("--")) {
  console.error("usage: node make_videos.mjs FOLDER [--n 100] [--seed 1]");
  process.exit(2);
}
const total = option("--n", 100);
seed(option("--seed", 1));

// ---------------------------------------------------------------- what is drawn
/** An empty stage and colours that are seen on it. */
function makeStage() {
  const [w, h] = pick([[160, 120], [192, 144], [224, 160], [240, 180], [176, 208], [256, 256], [320, 240]]);
  const ground = pick(["white", "white", "white", "black", "gray"]);
  return { w, h, m: Math.min(w, h), ground, groundRgb: pick(GROUNDS[ground]), colors: shuffled(NAMES.filter((c) => c !== ground && !NEAR[ground].includes(c))) };
}
/** A shape whose image stays the same while it is moved and painted. */
function makeShape(stage, { shape = pick(SHAPES.slice(0, 9)), color = pick(stage.colors), x, y } = {}) {
  const s = stage.m * between(0.18, 0.25);
  const paint = (c) => shapeSvg({ shape, s, x: 0, y: 0, rgb: pick(COLORS[c]), dir: "right", outline: false, edge: false });
  return { shape, color, s, body: paint(color), paint, x: x ?? between(s + 3, stage.w - s - 3), y: y ?? between(s + 3, stage.h - s - 3) };
}
const put = (o, { x = o.x, y = o.y, body = o.body } = {}) => `<g transform="translate(${x.toFixed(2)},${y.toFixed(2)})">${body}</g>`;
/** Seconds at which something happens, and how long the video is. */
function makeTimes() {
  const change = whole(1, 4);
  return { at: change + between(-0.1, 0.1), change, seconds: change + between(1.2, 2.5) };
}
/** A time as the page links it, or in words. */
const about = (n) => [`about 0:0${n}`, `about ${n} second`];

// ---------------------------------------------------------------- the skills: each gives {stage, seconds, draw(t), question, must}
const skills = {
  direction() {
    const stage = makeStage();
    const o = makeShape(stage);
    const seconds = between(2, 5);
    const way = pick(["left", "right", "up", "down"]);
    const flat = way === "left" || way === "right";
    const ends = [o.s + 3, (flat ? stage.w : stage.h) - o.s - 3];
    const [a, b] = way === "left" || way === "up" ? ends.reverse() : ends;
    const draw = (t) => put(o, { [flat ? "x" : "y"]: a + ((b - a) * t) / seconds });
    return { stage, seconds, draw, question: pick([`Which way does the ${o.shape} move?`, `Where does the ${titled(o)} move to?`, `Does the ${o.shape} move left, right, up or down?`, `In which direction does the ${o.shape} go?`]), must: [flat ? `to the ${way}` : `moves ${way}`] };
  },
  color_change() {
    const stage = makeStage();
    const o = makeShape(stage);
    const next = pick(stage.colors.filter((c) => c !== o.color));
    const body = o.paint(next);
    const { at, seconds } = makeTimes();
    const draw = (t) => put(o, t < at ? {} : { body });
    return { stage, seconds, draw, question: pick([`How does the ${o.shape} change?`, `How does the color of the ${o.shape} change?`, `What color change do you see?`, `From which color to which does the ${o.shape} change?`]), must: [`from ${o.color} to ${next}`] };
  },
  order() {
    const stage = makeStage();
    const [one, two] = shuffled(SHAPES.slice(0, 9).filter((s) => s !== "ring")).slice(0, 2);
    const a = makeShape(stage, { shape: one, color: stage.colors[0] });
    const b = makeShape(stage, { shape: two, color: stage.colors[1] });
    const seconds = between(2.5, 5);
    const half = seconds * between(0.42, 0.58);
    const first = random() < 0.5;
    return { stage, seconds, draw: (t) => put(t < half ? a : b), question: pick(first ? ["Which shape is shown first?", "What do you see first?", "What comes first?"] : ["Which shape is shown last?", "What do you see last?", "What comes last?"]), must: [titled(first ? a : b)] };
  },
  flashes() {
    const stage = makeStage();
    const o = makeShape(stage);
    const n = whole(1, 6);
    const flash = pick(["white", "yellow", "red", "black"].filter((c) => c !== stage.ground && c !== o.color));
    const seconds = n * 1.25 + between(0.4, 0.6);
    const starts = Array.from({ length: n }, (_, i) => 0.35 + i * 1.25 + between(0, 0.1));
    const rect = `<rect width="100%" height="100%" fill="${COLORS[flash] ? pick(COLORS[flash]) : flash}"/>`;
    const over = pick(["", put(o)]);
    const draw = (t) => (starts.some((u) => u <= t && t < u + 0.58) ? rect + over : put(o));
    return { stage, seconds, draw, question: pick(["How many flashes are there?", "How often does the video flash?", "Count the flashes.", "How many times does it flash?"]), must: [], any: [`${NUMBER[n]} flash`, `${NUMBER[n]} time`] };
  },
  ends() {
    const stage = makeStage();
    const o = makeShape(stage);
    const next = pick(stage.colors.filter((c) => c !== o.color));
    const body = o.paint(next);
    const { at, seconds } = makeTimes();
    const start = random() < 0.5;
    const when = start ? pick(["at the start", "in the beginning", "at first"]) : pick(["at the end", "when the video is over", "in the last second"]);
    return { stage, seconds, draw: (t) => put(o, t < at ? {} : { body }), question: pick([`What colour is the ${o.shape} ${when}?`, `What color does the ${o.shape} have ${when}?`, `Which color is the ${o.shape} ${when}?`]), must: [`is ${start ? o.color : next}`] };
  },
  turns() {
    const stage = makeStage();
    const shapes = shuffled(SHAPES.slice(0, 9).filter((s) => s !== "ring")).slice(0, 3);
    const objs = shapes.map((shape, i) => makeShape(stage, { shape, color: stage.colors[i] }));
    const seconds = between(4, 6);
    const at = whole(0, 2);
    const question = pick([`Which shape is shown ${["first", "second", "last"][at]}?`, `What comes ${["first", "second", "last"][at]}?`]);
    return { stage, seconds, draw: (t) => put(objs[Math.min(2, Math.floor((t / seconds) * 3))]), question, must: [titled(objs[at])] };
  },
  time() {
    const stage = makeStage();
    const o = makeShape(stage);
    const { at, change, seconds } = makeTimes();
    const kind = pick(["appear", "disappear", "color"]);
    const body = o.paint(pick(stage.colors.filter((c) => c !== o.color)));
    const draw = (t) => (kind === "color" ? put(o, t < at ? {} : { body }) : t >= at === (kind === "appear") ? put(o) : "");
    const questions = kind === "color" ? ["When does the color change?", `At which second does the ${o.shape} change color?`] : [`When does the ${o.shape} ${kind}?`, `At which second does the ${titled(o)} ${kind}?`];
    return { stage, seconds, draw, question: pick(questions), must: [], any: about(change) };
  },
};

// ---------------------------------------------------------------- files
const CODECS = [
  { name: "h264", files: ["mp4", "mkv", "mov"], options: () => ["-c:v", "libx264", "-preset", "veryfast", "-crf", String(whole(18, 28)), "-bf", String(whole(0, 3))] },
  { name: "vp9", files: ["webm", "mkv"], options: () => ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-crf", String(whole(20, 36)), "-b:v", "0"] },
  { name: "av1", files: ["mkv", "mp4", "webm"], options: () => ["-c:v", "libsvtav1", "-preset", "10", "-crf", String(whole(24, 38))] },
  { name: "mpeg4", files: ["mp4", "avi", "mkv"], options: () => ["-c:v", "mpeg4", "-q:v", String(whole(2, 6))] },
];
/** Encodes a video; of a video with a variable rate about half of the frames are left out at
 * random. */
function save({ stage, seconds, draw }, index) {
  const codec = CODECS[index % CODECS.length];
  const variable = index % 3 === 2;
  const fps = variable ? 60 : pick([8, 10, 12, 15, 20, 24, 25, 30, 48, 50, 60]);
  const type = pick(codec.files.filter((t) => !(variable && t === "avi")));
  const file = `q${String(index + 1).padStart(4, "0")}-${codec.name}-${variable ? "vfr" : fps}.${type}`;
  const work = mkdtempSync(join(tmpdir(), "video-"));
  const n = Math.round(seconds * fps);
  for (let i = 0; i < n; i++) {
    writeFileSync(join(work, `${String(i).padStart(5, "0")}.svg`), svg(stage.w, stage.h, `<rect width="100%" height="100%" fill="${stage.groundRgb}"/>${draw(i / fps)}`));
  }
  const filter = variable ? ["-vf", `select='eq(n,0)+gt(random(1),0.5)'`, "-fps_mode", "vfr"] : [];
  execFileSync("ffmpeg", ["-v", "error", "-y", "-framerate", String(fps), "-i", join(work, "%05d.svg"), ...filter, "-pix_fmt", "yuv420p", ...codec.options(), join(folder, file)], { stdio: ["ignore", "inherit", "ignore"] });
  rmSync(work, { recursive: true });
  return file;
}

mkdirSync(folder, { recursive: true });
const plan = Object.entries(skills);
const questions = [];
for (let i = 0; i < total; i++) {
  const [skill, make] = plan[i % plan.length];
  const video = make();
  questions.push({ files: [save(video, i)], skill, question: video.question, must: video.must, any: video.any });
}
writeFileSync(join(folder, "questions.json"), JSON.stringify(questions, null, 1));
console.log(`${questions.length} questions in ${folder}`);
