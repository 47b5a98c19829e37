// Generates fresh image questions: SVG drawings, rendered by rsvg-convert (Cairo, anti-aliased) to
// PNG, some re-encoded as JPEG. usage: node make_images.mjs FOLDER [--n 200] [--seed 1] Needs:
// rsvg-convert (librsvg2-bin), ffmpeg, fonts (fonts-dejavu-core, fonts-liberation). No npm
// packages. Writes images and FOLDER/questions.json: [{files, skill, question, must}]; an answer is
// right if it contains every string of must. Colours, forms, fonts and most wordings differ from
// those of the training data in tools/seedling: this is a test of another drawer.
import { execFileSync } from "node:child_process";
import { mkdirSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { seed, random, between, whole, pick, shuffled, COLORS, NAMES, SHAPES, GROUNDS, NEAR, NUMBER, TURN, an, many, titled, shapeSvg, svg } from "./drawing.mjs";

const args = process.argv.slice(2);
const option = (name, fallback) => (args.includes(name) ? Number(args[args.indexOf(name) + 1]) : fallback);
const folder = args[0];
if (!folder || folder.startsWith("--")) {
  console.error("usage: node make_images.mjs FOLDER [--n 200] [--seed 1]");
  process.exit(2);
}
const total = option("--n", 200);
seed(option("--seed", 1));

/** A scene with n objects. spots: wanted centres in parts of the image; radii: wanted radii in
 * parts of the shorter side. */
function makeScene({ n, spots = [], radii = [], shapes = [], colors = [], size = null }) {
  for (;;) {
    const [w, h] = size ?? pick([[320, 240], [400, 300], [480, 320], [300, 300], [512, 384], [640, 480], [360, 420], [800, 600]]);
    const ground = pick(["white", "white", "white", "white", "black", "yellow", "blue", "green", "gray"]);
    const usable = NAMES.filter((c) => c !== ground && !NEAR[ground].includes(c));
    const m = Math.min(w, h);
    const objs = [];
    for (let i = 0; i < n; i++) {
      for (let t = 0; t < 60; t++) {
        const s = m * (radii[i] ?? between(0.11, 0.17));
        const [x, y] = spots[i] ? [spots[i][0] * w, spots[i][1] * h] : [between(s + 4, w - s - 4), between(s + 4, h - s - 4)];
        if (x < s + 3 || y < s + 3 || x > w - s - 3 || y > h - s - 3) break;
        if (!objs.every((o) => Math.hypot(o.x - x, o.y - y) > (o.s + s) * 1.15 + 4)) continue;
        const shape = shapes[i] ?? pick(SHAPES);
        const color = colors[i] && usable.includes(colors[i]) ? colors[i] : pick(usable);
        objs.push({ shape, color, rgb: pick(COLORS[color]), s, x, y, dir: pick(Object.keys(TURN)), outline: shape !== "ring" && random() < 0.1, edge: random() < 0.15 });
        break;
      }
    }
    const wanted = colors.slice(0, n).every((c, i) => !c || (objs[i] && objs[i].color === c));
    if (objs.length === n && wanted) return { w, h, ground, groundRgb: pick(GROUNDS[ground]), objs };
  }
}
const draw = (sc) => svg(sc.w, sc.h, `<rect width="100%" height="100%" fill="${sc.groundRgb}"/>${sc.objs.map(shapeSvg).join("")}`);
const distinct = (list) => new Set(list).size === list.length;
/** n different shapes and n different colours that are seen on white and on most grounds. */
function differing(n) {
  return { shapes: shuffled(SHAPES).slice(0, n), colors: shuffled(["red", "orange", "green", "purple", "blue", "brown", "black"]).slice(0, n) };
}

// ---------------------------------------------------------------- the skills: each gives {images: [svg], question, must}
const one = (sc, question, must) => ({ images: [draw(sc)], question, must });
const scenes = {
  color() {
    const sc = makeScene({ n: whole(1, 4), ...differing(4) });
    const o = pick(sc.objs);
    return one(sc, pick([`What color is the ${o.shape}?`, `Which colour did I use for the ${o.shape}?`, `what color is the ${o.shape}`, `The ${o.shape} has which color?`, `Please name the color of the ${o.shape}.`]), [o.color]);
  },
  shape() {
    const sc = makeScene({ n: whole(1, 4), ...differing(4) });
    const o = pick(sc.objs);
    return one(sc, pick([`What shape is the ${o.color} object?`, `Which shape is ${o.color}?`, `what is the ${o.color} thing`, `What kind of shape is ${o.color}?`, `Name the shape that is ${o.color}.`]), [o.shape]);
  },
  count() {
    const n = whole(1, 5);
    return one(makeScene({ n }), pick(["How many objects are there?", "how many shapes do you see", "How many shapes are drawn here?", "Count all shapes please.", "How many objects does this picture have?"]), [NUMBER[n]]);
  },
  count_color() {
    const c = pick(["red", "green", "orange", "purple", "blue"]);
    const k = whole(1, 3);
    const others = shuffled(["black", "brown", "gray"]).slice(0, whole(1, 2));
    const sc = makeScene({ n: k + others.length, colors: [...Array(k).fill(c), ...others] });
    return one(sc, pick([`How many ${c} objects are there?`, `how many shapes are ${c}?`, `How many ${c} shapes can you count?`, `Count the ${c} objects.`]), [NUMBER[k]]);
  },
  count_shape() {
    const s = pick(SHAPES);
    const k = whole(1, 3);
    const others = shuffled(SHAPES.filter((x) => x !== s && !(["circle", "ring"].includes(x) && ["circle", "ring"].includes(s)))).slice(0, whole(1, 2));
    const sc = makeScene({ n: k + others.length, shapes: [...Array(k).fill(s), ...others] });
    return one(sc, pick([`How many ${many(s)} are there?`, `how many ${many(s)} do you see?`, `Count the ${many(s)} for me.`, `How many ${many(s)} are drawn?`]), [NUMBER[k]]);
  },
  where() {
    const places = { "top left": [0.2, 0.22], "top right": [0.8, 0.22], "bottom left": [0.2, 0.78], "bottom right": [0.8, 0.78], center: [0.5, 0.5] };
    const [p, q] = shuffled(Object.keys(places));
    const sc = makeScene({ n: 2, spots: [places[p], places[q]], ...differing(2) });
    return one(sc, pick([`Where is the ${sc.objs[0].shape}?`, `In which part of the picture is the ${sc.objs[0].shape}?`, `where is the ${titled(sc.objs[0])}`, `Where did I draw the ${sc.objs[0].shape}?`]), [p]);
  },
  relation() {
    const flat = random() < 0.5;
    const v = between(0.35, 0.65);
    const spots = shuffled(flat ? [[0.22, v], [0.78, v + between(-0.08, 0.08)]] : [[v, 0.22], [v + between(-0.08, 0.08), 0.78]]);
    const sc = makeScene({ n: 2, spots, ...differing(2) });
    const [a, b] = sc.objs;
    const rel = flat ? (a.x < b.x ? "left" : "right") : a.y < b.y ? "above" : "below";
    const phrase = (r) => (r === "left" || r === "right" ? `to the ${r} of` : r);
    if (random() < 0.5) {
      return one(sc, pick([`Where is the ${titled(a)} relative to the ${titled(b)}?`, `Where is the ${a.shape} compared with the ${b.shape}?`, `Seen from the ${b.shape}, where is the ${a.shape}?`]), [rel]);
    }
    const asked = random() < 0.5 ? rel : { left: "right", right: "left", above: "below", below: "above" }[rel];
    return one(sc, pick([`Is the ${titled(a)} ${phrase(asked)} the ${titled(b)}?`, `Is the ${a.shape} ${phrase(asked)} the ${b.shape}?`]), [asked === rel ? "yes," : "no,"]);
  },
  size() {
    const large = random() < 0.6;
    const sc = makeScene({ n: 3, radii: large ? [0.24, 0.11, 0.1] : [0.08, 0.19, 0.2], ...differing(3) });
    const w = large ? pick(["biggest", "largest"]) : "smallest";
    return one(sc, pick([`Which object is the ${w}?`, `which shape is the ${w} one`, `What is the ${w} thing?`, `Which of these shapes is the ${w}?`]), [titled(sc.objs[0])]);
  },
  exists() {
    const sc = makeScene({ n: 3, ...differing(3) });
    const yes = random() < 0.5;
    const absent = SHAPES.filter((s) => !sc.objs.some((o) => o.shape === s || (["circle", "ring"].includes(s) && ["circle", "ring"].includes(o.shape))));
    const x = yes ? pick(sc.objs).shape : pick(absent);
    return one(sc, pick([`Is there ${an(x)} in the picture?`, `do you see ${an(x)}?`, `Can you spot ${an(x)}?`, `Does this drawing contain ${an(x)}?`]), [yes ? "yes," : "no,"]);
  },
  background() {
    const sc = makeScene({ n: 2 });
    return one(sc, pick(["What color is the background?", "what is the background color", "Which color does the background have?", "On what color of background are the shapes?"]), [sc.ground]);
  },
  arrow() {
    const sc = makeScene({ n: 2, shapes: ["arrow", pick(SHAPES.slice(0, 9))] });
    return one(sc, pick(["Which way does the arrow point?", "where does the arrow point", "In what direction is the arrow pointing?", "Does the arrow point up, down, left or right?"]), [`points ${sc.objs[0].dir}`]);
  },
  describe() {
    const sc = makeScene({ n: whole(1, 3), ...differing(3) });
    return one(sc, pick(["Describe the picture.", "What do you see?", "describe this image please", "What is in this picture?", "Tell me what this drawing shows."]), sc.objs.map(titled));
  },
};

const WORDS = `window garden bottle velvet harvest silver market purple monkey ticket coffee winter orange bridge sunset planet basket pepper
station gallery summer dragon yellow market kitchen lantern pocket salad mountain open closed hotel taxi exit welcome danger library museum
bakery school pizza sale music river forest ocean thunder`.split(/\s+/);
const FONTS = ["DejaVu Sans", "DejaVu Serif", "Liberation Sans", "Liberation Serif", "DejaVu Sans Mono", "sans-serif", "serif"];
function printed(text) {
  const w = pick([320, 400, 480, 512, 640]);
  const h = Math.round(w * between(0.35, 0.7));
  const font = pick(FONTS);
  const size = Math.min((w * between(0.6, 0.85)) / (text.length * 0.66), h * 0.5);
  const [back, ink] = pick([["white", "black"], ["white", "#b00020"], ["#ffeb3b", "black"], ["#1e40af", "white"], ["#111", "white"], ["#c62828", "white"], ["#fafafa", "#0d47a1"], ["#2e7d32", "white"]]);
  const weight = pick(["normal", "bold", "bold"]);
  return svg(w, h, `<rect width="100%" height="100%" fill="${back}"/><text x="${w / 2}" y="${h / 2 + size * 0.35}" font-family="${font}" font-weight="${weight}" font-size="${size.toFixed(1)}" text-anchor="middle" fill="${ink}">${text}</text>`);
}
const prints = {
  read_number() {
    const t = String(whole(10, 99999));
    return { images: [printed(t)], question: pick(["What number is shown?", "Read the number.", "which number is this", "What number is printed here?", "Tell me the number in the picture."]), must: [t] };
  },
  read_text() {
    const words = shuffled(WORDS).slice(0, random() < 0.75 ? 1 : 2).join(" ");
    const t = pick([words, words.toUpperCase(), words[0].toUpperCase() + words.slice(1)]);
    return { images: [printed(t)], question: pick(["What does the text say?", "Read the text.", "what is written here?", "What is printed on this sign?", "Which word do you read?"]), must: [t] };
  },
};

function chart() {
  const n = whole(3, 5);
  const labels = pick([["A", "B", "C", "D", "E"], ["Mon", "Tue", "Wed", "Thu", "Fri"], ["Jan", "Feb", "Mar", "Apr", "May"], ["apple", "lemon", "grape", "plum", "pear"], ["Anna", "Ben", "Tom", "Eva", "Max"]]).slice(0, n);
  const top = pick([10, 20, 60, 99]);
  const values = shuffled(Array.from({ length: top }, (_, i) => i + 1)).slice(0, n);
  const w = pick([360, 420, 480]);
  const h = pick([280, 320, 360]);
  const colors = shuffled(["#e53935", "#1e88e5", "#43a047", "#8e24aa", "#fb8c00"]);
  const single = random() < 0.4;
  const size = pick([16, 18, 20]);
  const slot = (w - 40) / n;
  const base = h - 34;
  const bars = values.map((v, i) => {
    const x = 30 + i * slot + slot * 0.2;
    const tall = ((base - 46) * v) / Math.max(...values);
    const mid = x + slot * 0.3;
    return `<rect x="${x}" y="${base - tall}" width="${slot * 0.6}" height="${tall}" fill="${colors[single ? 0 : i]}"/>` +
      `<text x="${mid}" y="${base - tall - 6}" text-anchor="middle">${v}</text><text x="${mid}" y="${base + size + 4}" text-anchor="middle">${labels[i]}</text>`;
  });
  const body = `<rect width="100%" height="100%" fill="white"/><g font-family="${pick(FONTS)}" font-size="${size}" fill="#222">${bars.join("")}</g><path d="M24,${base}H${w - 8}" stroke="#444" stroke-width="2"/>`;
  return { image: svg(w, h, body), labels, values, n };
}
const charts = {
  chart_tallest() {
    const c = chart();
    const low = random() < 0.4;
    const best = c.labels[c.values.indexOf(low ? Math.min(...c.values) : Math.max(...c.values))];
    const q = low ? ["Which bar is the shortest?", "which one has the smallest value?", "What has the lowest value?"] : ["Which bar is the tallest?", "which one has the highest value?", "What has the largest value?"];
    return { images: [c.image], question: pick(q), must: [`is ${best}`] };
  },
  chart_value() {
    const c = chart();
    const i = whole(0, c.n - 1);
    return { images: [c.image], question: pick([`What is the value of ${c.labels[i]}?`, `how much is ${c.labels[i]}`, `Which value does ${c.labels[i]} have?`, `What number is on top of ${c.labels[i]}?`]), must: [`is ${c.values[i]}.`] };
  },
  chart_count() {
    const c = chart();
    return { images: [c.image], question: pick(["How many bars are there?", "how many bars does this chart have?", "Count the bars."]), must: [NUMBER[c.n]] };
  },
};
const pairs = {
  two_more() {
    const [a, b] = shuffled([whole(1, 2), whole(3, 4)]);
    return { images: [draw(makeScene({ n: a, size: [300, 220] })), draw(makeScene({ n: b, size: [300, 220] }))], question: pick(["Which picture has more objects?", "which image has more shapes?", "In which of the two pictures are more objects?"]), must: [a > b ? "first" : "second"] };
  },
  two_differ() {
    const sc = makeScene({ n: 2, size: [280, 220], ...differing(2) });
    const [o, rest] = sc.objs;
    const c = pick(["red", "green", "purple", "orange"].filter((x) => x !== o.color && x !== rest.color && x !== sc.ground && !NEAR[sc.ground].includes(x)));
    const changed = { ...sc, objs: [{ ...o, color: c, rgb: COLORS[c][0] }, rest] };
    return { images: [draw(sc), draw(changed)], question: pick(["What is the difference?", "What changed in the second picture?", "what is different?"]), must: [o.color, c] };
  },
  two_color() {
    const shapes = shuffled(SHAPES).slice(0, 2);
    const a = makeScene({ n: 1, size: [240, 240], shapes: [shapes[0]], colors: [pick(["red", "green", "orange"])] });
    const b = makeScene({ n: 1, size: [240, 240], shapes: [shapes[1]], colors: [pick(["blue", "brown", "purple"])] });
    const i = whole(0, 1);
    return { images: [draw(a), draw(b)], question: pick([`What is in the ${["first", "second"][i]} picture?`, `What do you see in the ${["first", "second"][i]} picture?`]), must: [titled([a, b][i].objs[0])] };
  },
};

// ---------------------------------------------------------------- files
function save(svgText, base) {
  const source = join(folder, base + ".svg");
  writeFileSync(source, svgText);
  execFileSync("rsvg-convert", ["-o", join(folder, base + ".png"), source]);
  unlinkSync(source);
  if (random() < 0.6) return base + ".png";
  execFileSync("ffmpeg", ["-v", "error", "-y", "-i", join(folder, base + ".png"), "-pix_fmt", pick(["yuvj420p", "yuvj444p"]), "-q:v", String(whole(2, 7)), join(folder, base + ".jpg")]);
  unlinkSync(join(folder, base + ".png"));
  return base + ".jpg";
}

mkdirSync(folder, { recursive: true });
const plan = [...Object.entries(scenes), ...Object.entries(scenes), ...Object.entries(prints), ...Object.entries(prints), ...Object.entries(charts), ...Object.entries(pairs)];
const questions = [];
for (let i = 0; i < total; i++) {
  const [skill, make] = plan[i % plan.length];
  const { images, question, must } = make();
  const files = images.map((p, k) => save(p, `q${String(i + 1).padStart(4, "0")}${"ab"[k]}`));
  questions.push({ files, skill, question, must });
}
writeFileSync(join(folder, "questions.json"), JSON.stringify(questions, null, 1));
console.log(`${questions.length} questions in ${folder}`);
