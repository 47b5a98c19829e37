// What the generators of images and videos share: seeded random numbers, colours, and shapes as
// SVG.
let state = 1;
export const seed = (n) => { state = n >>> 0; };

// ---------------------------------------------------------------- random numbers
export function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = state;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
export const between = (a, b) => a + (b - a) * random();
export const whole = (a, b) => Math.floor(between(a, b + 1));
export const pick = (list) => list[Math.floor(random() * list.length)];
export function shuffled(list) {
  const copy = [...list];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [copy[i], copy[j]] = [copy[j], copy[i]];
  }
  return copy;
}

// ---------------------------------------------------------------- what is drawn
export const COLORS = {
  red: ["red", "#e11d2a", "#cc2222"], green: ["green", "#2e9e4f", "#11aa33"], blue: ["blue", "#2255dd", "royalblue"],
  yellow: ["yellow", "#f5d90a", "gold"], orange: ["orange", "#f57c00", "darkorange"], purple: ["purple", "#7b2fa0", "rebeccapurple"],
  pink: ["hotpink", "#f48fb1", "pink"], brown: ["#7b4b26", "saddlebrown", "#6d4c41"], black: ["black", "#111111"],
  gray: ["gray", "#8c8c8c", "dimgray"], cyan: ["cyan", "#16c5d8", "darkturquoise"],
};
export const NAMES = Object.keys(COLORS);
export const SHAPES = ["circle", "square", "triangle", "star", "cross", "diamond", "hexagon", "heart", "ring", "arrow"];
export const GROUNDS = { white: ["white", "#fafafa"], black: ["black", "#101010"], yellow: ["#fff176", "#ffeb3b"], blue: ["#1e40af", "#2962ff"], green: ["#1b7a3d", "#2e7d32"], gray: ["#9e9e9e", "#777777"] };
// Colours that are hard to tell from a ground.
export const NEAR = { white: ["yellow", "pink", "cyan"], black: ["brown", "purple", "blue", "gray"], yellow: ["yellow", "orange", "pink"], blue: ["blue", "purple", "cyan", "black", "gray"], green: ["green", "gray", "cyan", "black", "brown"], gray: ["gray", "purple", "brown", "cyan", "blue", "green", "pink"] };
export const NUMBER = ["no", "one", "two", "three", "four", "five", "six", "seven"];
export const TURN = { right: 0, down: 90, left: 180, up: 270 };
export const an = (s) => ("aeiou".includes(s[0]) ? "an " : "a ") + s;
export const many = (s) => (s.endsWith("s") ? s + "es" : s + "s");
export const titled = (o) => `${o.color} ${o.shape}`;

export const ngon = (n, start, radii) => Array.from({ length: n }, (_, i) => {
  const a = ((start + (360 * i) / n) * Math.PI) / 180;
  const r = radii[i % radii.length];
  return `${(r * Math.cos(a)).toFixed(2)},${(r * Math.sin(a)).toFixed(2)}`;
}).join(" ");

/** SVG of one object; s is the radius. Filled, or outlined for a few. */
export function shapeSvg(o) {
  const { s } = o;
  const paint = o.outline ? `fill="none" stroke="${o.rgb}" stroke-width="${(s * 0.13).toFixed(1)}"` : `fill="${o.rgb}"${o.edge ? ` stroke="#222" stroke-width="2"` : ""}`;
  const body = {
    circle: () => `<circle r="${s}" ${paint}/>`,
    ring: () => `<circle r="${(s * 0.83).toFixed(1)}" fill="none" stroke="${o.rgb}" stroke-width="${(s * 0.33).toFixed(1)}"/>`,
    square: () => `<rect x="${-s * 0.85}" y="${-s * 0.85}" width="${s * 1.7}" height="${s * 1.7}" ${paint}/>`,
    triangle: () => `<polygon points="${ngon(3, -90, [s])}" ${paint}/>`,
    star: () => `<polygon points="${ngon(10, -90, [s, s * 0.42])}" ${paint}/>`,
    hexagon: () => `<polygon points="${ngon(6, pick([0, 30]), [s])}" ${paint}/>`,
    diamond: () => `<polygon points="0,${-s} ${s * 0.72},0 0,${s} ${-s * 0.72},0" ${paint}/>`,
    cross: () => `<path d="M${-s * 0.3},${-s}h${s * 0.6}v${s * 0.7}h${s * 0.7}v${s * 0.6}h${-s * 0.7}v${s * 0.7}h${-s * 0.6}v${-s * 0.7}h${-s * 0.7}v${-s * 0.6}h${s * 0.7}z" ${paint}/>`,
    heart: () => `<path d="M0,${s * 0.95}C${-s * 1.6},${-s * 0.15} ${-s * 0.75},${-s * 1.25} 0,${-s * 0.45}C${s * 0.75},${-s * 1.25} ${s * 1.6},${-s * 0.15} 0,${s * 0.95}z" ${paint}/>`,
    arrow: () => `<path d="M${-s},${-s * 0.25}H${s * 0.15}V${-s * 0.7}L${s},0L${s * 0.15},${s * 0.7}V${s * 0.25}H${-s}z" transform="rotate(${TURN[o.dir]})" ${paint}/>`,
  }[o.shape]();
  return `<g transform="translate(${o.x.toFixed(1)},${o.y.toFixed(1)})">${body}</g>`;
}

export const svg = (w, h, body) => `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">${body}</svg>`;

