#!/usr/bin/env python3
"""Small random checkpoints of Qwen2-VL and Qwen2.5-VL, and what their definition computes from them: plain loops over lists, in
double precision, written from docs/model.md (which follows the classes of Hugging Face transformers) and sharing nothing with the
engine. Python's standard library alone; some seconds.

usage: make_tower_reference.py OUT

writes OUT/tiny_qwen2_vl and OUT/tiny_qwen2_5_vl, folders in the published layout with cases/, as tools/check_reference.c describes
them. Copies lie in tests/data. The tokenizer is that of tests/data/tiny_vl_moe.
"""
import json
import math
import os
import random
import shutil
import struct
import sys

VOCABULARY, WIDTH, INTER, LAYERS, HEADS, SECTIONS, THETA, EPS = 264, 32, 48, 2, 2, [2, 3, 3], 10000.0, 1e-6
VH, VI, VHEADS, DEPTH, PATCH, MERGE, TEMPORAL = 16, 32, 2, 3, 4, 2, 2
STOP, VISION, VISION_END, IMAGE, VIDEO = 258, 259, 260, 261, 262
WINDOW, FULL, PER_SECOND, SECONDS = 16, [1], 2, 1.0
GREEDY, LAST = 8, 16


def bf16(x):
    (u,) = struct.unpack("<I", struct.pack("<f", x))
    return struct.unpack("<f", struct.pack("<I", (u + 0x7FFF + (u >> 16 & 1)) & 0xFFFF0000))[0]


class Model:
    """Random tensors by name: lists of rows, or a list."""

    def __init__(self, windowed, seed):
        self.windowed, self.random, self.tensors, self.shapes = windowed, random.Random(seed), {}, {}
        area = MERGE * MERGE
        self.add("visual.patch_embed.proj.weight", VH, 3 * TEMPORAL * PATCH * PATCH, shape=[VH, 3, TEMPORAL, PATCH, PATCH])
        for i in range(DEPTH):
            block = f"visual.blocks.{i}."
            for norm in ("norm1", "norm2"):
                self.norm(block + norm, VH, not windowed)
            self.linear(block + "attn.qkv", 3 * VH, VH)
            self.linear(block + "attn.proj", VH, VH)
            for name, rows, cols in ((("mlp.gate_proj", VI, VH), ("mlp.up_proj", VI, VH), ("mlp.down_proj", VH, VI)) if windowed
                                     else (("mlp.fc1", VI, VH), ("mlp.fc2", VH, VI))):
                self.linear(block + name, rows, cols)
        self.norm("visual.merger.ln_q", VH, not windowed)
        self.linear("visual.merger.mlp.0", area * VH, area * VH)
        self.linear("visual.merger.mlp.2", WIDTH, area * VH)
        self.add("model.embed_tokens.weight", VOCABULARY, WIDTH)
        self.add("lm_head.weight", VOCABULARY, WIDTH)
        self.norm("model.norm", WIDTH, False)
        head = WIDTH // HEADS
        for i in range(LAYERS):
            layer = f"model.layers.{i}."
            for norm in ("input_layernorm", "post_attention_layernorm"):
                self.norm(layer + norm, WIDTH, False)
            self.linear(layer + "self_attn.q_proj", WIDTH, WIDTH)
            self.linear(layer + "self_attn.k_proj", head, WIDTH)
            self.linear(layer + "self_attn.v_proj", head, WIDTH)
            self.add(layer + "self_attn.o_proj.weight", WIDTH, WIDTH)
            for name, rows, cols in (("gate_proj", INTER, WIDTH), ("up_proj", INTER, WIDTH), ("down_proj", WIDTH, INTER)):
                self.add(layer + f"mlp.{name}.weight", rows, cols)

    def add(self, name, rows, cols, shape=None):
        scale = 0.6 / cols ** 0.5 + 0.05
        self.tensors[name] = [[bf16(self.random.gauss(0, scale)) for _ in range(cols)] for _ in range(rows)]
        self.shapes[name] = shape or [rows, cols]

    def vector(self, name, n, middle, scale):
        self.tensors[name] = [bf16(self.random.gauss(middle, scale)) for _ in range(n)]
        self.shapes[name] = [n]

    def norm(self, name, n, bias):
        self.vector(name + ".weight", n, 1.0, 0.1)
        if bias:
            self.vector(name + ".bias", n, 0.0, 0.3)

    def linear(self, name, rows, cols):
        self.add(name + ".weight", rows, cols)
        self.vector(name + ".bias", rows, 0.0, 0.3)

    def __call__(self, name, x):
        """The product of a layer: x is one row."""
        bias = self.tensors.get(name + ".bias")
        out = [sum(a * b for a, b in zip(row, x)) for row in self.tensors[name + ".weight"]]
        return [o + b for o, b in zip(out, bias)] if bias else out

    def normed(self, name, x):
        weight, bias = self.tensors[name + ".weight"], self.tensors.get(name + ".bias")
        mean = sum(x) / len(x) if bias else 0.0
        scale = 1 / math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + EPS)
        out = [(v - mean) * scale * w for v, w in zip(x, weight)]
        return [o + b for o, b in zip(out, bias)] if bias else out


def silu(x):
    return x / (1 + math.exp(-x))


def turned(x, angles):
    """rotate_half: value i goes with value i + half."""
    half = len(x) // 2
    return ([x[i] * math.cos(angles[i]) - x[i + half] * math.sin(angles[i]) for i in range(half)]
            + [x[i + half] * math.cos(angles[i]) + x[i] * math.sin(angles[i]) for i in range(half)])


def attend(query, keys, values):
    scores = [sum(a * b for a, b in zip(query, k)) / math.sqrt(len(query)) for k in keys]
    top = max(scores)
    weights = [math.exp(s - top) for s in scores]
    total = sum(weights)
    return [sum(w * v[i] for w, v in zip(weights, values)) / total for i in range(len(values[0]))]


def added(x, y):
    return [a + b for a, b in zip(x, y)]


# ---- the tower ----

def patch_places(grid):
    """(frame, row, column) of each patch in the order of the pixels: merged row, merged column, row and column inside."""
    t, h, w = grid
    return [(f, br * MERGE + r, bc * MERGE + c) for f in range(t) for br in range(h // MERGE) for bc in range(w // MERGE)
            for r in range(MERGE) for c in range(MERGE)]


def tower(m, pixels, grid):
    """Features [patches / merge^2], and the rows before the merger in the order of `pixels`."""
    head, places = VH // VHEADS, patch_places(grid)
    x = [m("visual.patch_embed.proj", p) for p in pixels]
    frequencies = [THETA ** (-2.0 * i / (head // 2)) for i in range(head // 4)]
    angles = [[r * f for f in frequencies] + [c * f for f in frequencies] for _, r, c in places]
    window = WINDOW // PATCH  # patches of a side
    for i in range(DEPTH):
        block = f"visual.blocks.{i}."
        see_frame = not m.windowed or i in FULL
        group = [p[0] if see_frame else (p[0], p[1] // window, p[2] // window) for p in places]
        qkv = [m(block + "attn.qkv", m.normed(block + "norm1", row)) for row in x]
        out = [[] for _ in x]
        for h in range(VHEADS):
            part = [[row[k * VH + h * head:k * VH + (h + 1) * head] for row in qkv] for k in range(3)]
            queries, keys = ([turned(row, a) for row, a in zip(part[k], angles)] for k in range(2))
            for p in range(len(x)):
                seen = [q for q in range(len(x)) if group[q] == group[p]]
                out[p] += attend(queries[p], [keys[q] for q in seen], [part[2][q] for q in seen])
        x = [added(row, m(block + "attn.proj", o)) for row, o in zip(x, out)]
        for p, row in enumerate(x):
            y = m.normed(block + "norm2", row)
            if m.windowed:
                y = m(block + "mlp.down_proj", [silu(g) * u for g, u in zip(m(block + "mlp.gate_proj", y), m(block + "mlp.up_proj", y))])
            else:
                y = m(block + "mlp.fc2", [v / (1 + math.exp(-1.702 * v)) for v in m(block + "mlp.fc1", y)])
            x[p] = added(row, y)
    features, area = [], MERGE * MERGE
    for at in range(0, len(x), area):
        joined = [v for row in x[at:at + area] for v in m.normed("visual.merger.ln_q", row)]
        joined = [v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in m("visual.merger.mlp.0", joined)]
        features.append(m("visual.merger.mlp.2", joined))
    return features


# ---- the decoder ----

def positions_of(m, ids, image_grid, video_grid):
    """[(t, h, w)] of each token; what follows a medium begins behind its largest position."""
    out, at, i = [], 0, 0
    while i < len(ids):
        if ids[i] not in (IMAGE, VIDEO):
            out.append((at, at, at))
            at, i = at + 1, i + 1
            continue
        t, h, w = image_grid if ids[i] == IMAGE else video_grid
        step = PER_SECOND * SECONDS if m.windowed and ids[i] == VIDEO else 1
        run = [(at + int(f * step), at + r, at + c) for f in range(t) for r in range(h // MERGE) for c in range(w // MERGE)]
        out += run
        at, i = max(max(p) for p in run) + 1, i + len(run)
    return out, at - len(ids)


def decoder(m, rows, places):
    """Hidden rows behind every layer (the embeddings first, the last one normed), and the logits of the last row."""
    head = WIDTH // HEADS
    axis = [a for a, n in enumerate(SECTIONS) for _ in range(n)]
    angles = [[p[axis[i]] * THETA ** (-2.0 * i / head) for i in range(head // 2)] for p in places]
    x, states = rows, [rows]
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        normed = [m.normed(layer + "input_layernorm", row) for row in x]
        queries, keys, values = ([m(layer + f"self_attn.{n}_proj", row) for row in normed] for n in "qkv")
        keys = [turned(k, a) for k, a in zip(keys, angles)]
        out = [[] for _ in x]
        for h in range(HEADS):
            for p, row in enumerate(queries):
                out[p] += attend(turned(row[h * head:(h + 1) * head], angles[p]), keys[:p + 1], values[:p + 1])
        x = [added(row, m(layer + "self_attn.o_proj", o)) for row, o in zip(x, out)]
        for p, row in enumerate(x):
            y = m.normed(layer + "post_attention_layernorm", row)
            y = m(layer + "mlp.down_proj", [silu(g) * u for g, u in zip(m(layer + "mlp.gate_proj", y), m(layer + "mlp.up_proj", y))])
            x[p] = added(row, y)
        states.append(list(x))
    states[-1] = [m.normed("model.norm", row) for row in x]
    return states


# ---- files ----

def flat(value):
    return [v for part in value for v in flat(part)] if isinstance(value, list) else [value]


def write_tensors(path, tensors):
    """{name: (type, shape, flat values)}"""
    head, blob = {}, b""
    for name, (kind, shape, values) in tensors.items():
        if kind == "BF16":
            data = b"".join(struct.pack("<f", v)[2:] for v in values)
        else:
            data = struct.pack(f"<{len(values)}{'f' if kind == 'F32' else 'q'}", *values)
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + blob)


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, indent=1)
        f.write("\n")


def write_model(folder, m):
    """In the layout of the released files: text fields at the top, mrope as rope_scaling."""
    vision = {"depth": DEPTH, "num_heads": VHEADS, "in_chans": 3, "patch_size": PATCH, "spatial_merge_size": MERGE,
              "spatial_patch_size": PATCH, "temporal_patch_size": TEMPORAL}
    if m.windowed:
        vision.update(model_type="qwen2_5_vl", hidden_act="silu", hidden_size=VH, out_hidden_size=WIDTH, intermediate_size=VI,
                      window_size=WINDOW, fullatt_block_indexes=FULL, tokens_per_second=PER_SECOND)
    else:
        vision.update(embed_dim=VH, hidden_size=WIDTH, mlp_ratio=VI // VH)
    write_json(f"{folder}/config.json", {
        "model_type": "qwen2_5_vl" if m.windowed else "qwen2_vl", "torch_dtype": "float32", "vocab_size": VOCABULARY,
        "hidden_size": WIDTH, "intermediate_size": INTER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "num_key_value_heads": 1, "hidden_act": "silu", "max_position_embeddings": 4096, "rms_norm_eps": EPS,
        "rope_theta": THETA, "rope_scaling": {"type": "mrope", "mrope_section": SECTIONS}, "use_sliding_window": False,
        "sliding_window": 4096, "max_window_layers": LAYERS, "tie_word_embeddings": False, "eos_token_id": STOP,
        "vision_start_token_id": VISION, "vision_end_token_id": VISION_END, "image_token_id": IMAGE, "video_token_id": VIDEO,
        "vision_config": vision})
    write_json(f"{folder}/generation_config.json", {"eos_token_id": STOP})
    write_json(f"{folder}/preprocessor_config.json", {
        "min_pixels": 256, "max_pixels": 16384, "patch_size": PATCH, "temporal_patch_size": TEMPORAL, "merge_size": MERGE,
        "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]})
    write_json(f"{folder}/tokenizer_config.json", {
        "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "chat_template":
            "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
            "{% if p.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% elif p.type == 'video' %}<|vision_start|><|video_pad|>"
            "<|vision_end|>{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"})
    shutil.copy(f"{os.path.dirname(os.path.abspath(__file__))}/../tests/data/tiny_vl_moe/tokenizer.json", folder)
    write_tensors(f"{folder}/model.safetensors",
                  {name: ("BF16", m.shapes[name], flat(m.tensors[name])) for name in m.tensors})


def write_case(folder, m, name, video_grid):
    image_grid, row = (1, 6, 10), 3 * TEMPORAL * PATCH * PATCH
    noise = lambda n: [[bf16(m.random.uniform(-1, 1)) for _ in range(row)] for _ in range(n)]
    size = lambda grid: grid[0] * grid[1] * grid[2]
    images, videos = noise(size(image_grid)), noise(size(video_grid))
    area = MERGE * MERGE
    ids = [*b"A", VISION, *[IMAGE] * (size(image_grid) // area), VISION_END, *b" and ", VISION,
           *[VIDEO] * (size(video_grid) // area), VISION_END, *b"?"]
    features = {IMAGE: tower(m, images, image_grid), VIDEO: tower(m, videos, video_grid)}
    places, delta = positions_of(m, ids, image_grid, video_grid)
    left = {kind: iter(rows) for kind, rows in features.items()}
    rows = [next(left[i]) if i in left else m.tensors["model.embed_tokens.weight"][i] for i in ids]
    prompt_states, greedy, at = None, [], list(places)
    logits_last = None
    for _ in range(GREEDY):
        states = decoder(m, rows, at)
        logits = m("lm_head", states[-1][-1])
        if prompt_states is None:
            prompt_states = states
            logits_last = [m("lm_head", r) for r in states[-1][-LAST:]]
        greedy.append(max(range(VOCABULARY), key=lambda k: logits[k]))
        rows = rows + [m.tensors["model.embed_tokens.weight"][greedy[-1]]]
        at.append((len(rows) - 1 + delta,) * 3)
    f32 = lambda value, *shape: ("F32", list(shape), flat(value))
    i64 = lambda value, *shape: ("I64", list(shape), flat(value))
    case = {
        "input_ids": i64(ids, len(ids)), "position_ids": i64([[p[a] for p in places] for a in range(3)], 3, len(ids)),
        "rope_delta": i64([delta], 1), "image_grid_thw": i64([list(image_grid)], 1, 3), "video_grid_thw": i64([list(video_grid)], 1, 3),
        "pixel_values": ("BF16", [len(images), row], flat(images)), "pixel_values_videos": ("BF16", [len(videos), row], flat(videos)),
        "image_features": f32(features[IMAGE], len(features[IMAGE]), WIDTH),
        "video_features": f32(features[VIDEO], len(features[VIDEO]), WIDTH),
        "hidden_states": f32(prompt_states, LAYERS + 1, len(ids), WIDTH), "hidden_last": f32(prompt_states[-1][-LAST:], LAST, WIDTH),
        "logits_last": f32(logits_last, LAST, VOCABULARY), "greedy": i64(greedy, GREEDY)}
    if m.windowed:
        case["second_per_grid_ts"] = f32([SECONDS], 1)
    os.makedirs(f"{folder}/cases", exist_ok=True)
    write_tensors(f"{folder}/cases/{name}.safetensors", case)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for number, model_name in enumerate(("tiny_qwen2_vl", "tiny_qwen2_5_vl")):
        place = f"{sys.argv[1]}/{model_name}"
        os.makedirs(place, exist_ok=True)
        made = Model(number == 1, number + 1)
        write_model(place, made)
        write_case(place, made, "media", (2, 4, 8))
        if made.windowed:
            write_case(place, made, "late", (5, 4, 4))  # time goes further than rows and columns
