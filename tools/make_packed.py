#!/usr/bin/env python3
"""Packs a checkpoint folder of small size as MLX tools do, or in 8-bit floats (docs/model.md A.6, A.7), for tests. Python's standard library
alone.

usage: make_packed.py FOLDER OUT [--bits 4] [--group 64] [--scales bf16|f16|f32] [--mode affine|mxfp4|fp8] [--mtp inside|side|apart|none]
                      [--experts mxfp4] [--plain PLAIN]

OUT is the converted folder, of MLX's kind: names, norms with their 1 added, convolutions and patches with other axes, experts as switch_mlp, linear
layers whose rows are whole groups packed; the router and the gate of the shared expert in 8 bits. --mtp: where the draft head goes: into
the file, into model-mtp.safetensors, or into a folder mtp/ of its own with names that lack their beginning. In the mode fp8 names and
axes stay, and linear layers get F8_E4M3 with a scale for each block of 128 x 128. PLAIN gets the same numbers as ordinary float32 tensors under the
published names: what a reader of OUT must find, exactly.
"""
import argparse
import bisect
import json
import math
import os
import shutil
import struct

MARKS = ("input_layernorm.weight", "post_attention_layernorm.weight", "q_norm.weight", "k_norm.weight")  # norms with +1
LINEAR = ("_proj.weight", "in_proj_qkv.weight", "in_proj_z.weight", "in_proj_a.weight", "in_proj_b.weight", "embed_tokens.weight", "lm_head.weight",
          "mlp.gate.weight", "mlp.router.weight", "shared_expert_gate.weight", "fc.weight", "in_proj_qkvz.weight", "in_proj_ba.weight")
SIZES = {"F32": 4, "BF16": 2, "F16": 2, "U32": 4, "U8": 1, "F8_E4M3": 1}


def f32(values):
    """The nearest float32 numbers."""
    return struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}f", *values))


def bf16_bits(values):
    return [(u + 0x7FFF + (u >> 16 & 1)) >> 16 for u in struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values))]


def to_type(x, kind):
    """x rounded to a type, as a float."""
    if kind == "F32":
        return f32([x])[0]
    if kind == "F16":
        return struct.unpack("<e", struct.pack("<e", x))[0]
    return struct.unpack("<f", struct.pack("<I", bf16_bits([x])[0] << 16))[0]


def encode(values, kind):
    if kind == "BF16":
        return struct.pack(f"<{len(values)}H", *bf16_bits(values))
    return struct.pack(f"<{len(values)}{dict(F32='f', F16='e', U32='I', U8='B', F8_E4M3='B')[kind]}", *values)


def decode(data, kind):
    n = len(data) // SIZES[kind]
    if kind == "BF16":
        wide = bytearray(2 * len(data))
        wide[2::4], wide[3::4] = data[::2], data[1::2]
        return list(struct.unpack(f"<{n}f", wide))
    return list(struct.unpack(f"<{n}{dict(F32='f', F16='e')[kind]}", data))


def read(path):
    """name -> (kind, shape, values)"""
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        head = json.loads(f.read(n))
        data = f.read()
    head.pop("__metadata__", None)
    return {k: (t["dtype"], t["shape"], decode(data[slice(*t["data_offsets"])], t["dtype"])) for k, t in head.items()}


def write(path, tensors):
    head, at, parts = {"__metadata__": {"format": "mlx"}}, 0, []
    for name, (kind, shape, values) in sorted(tensors.items()):
        data = encode(values, kind)
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
        parts.append(data)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def quantize(row, bits, group, kind):
    """One row: codes, scales, biases, and the numbers that they stand for."""
    codes, scales, biases, exact = [], [], [], []
    for g in range(0, len(row), group):
        part = row[g : g + group]
        low, high, top = min(part), max(part), (1 << bits) - 1
        scale = max((high - low) / top, 1e-7)
        edge = low if abs(low) > abs(high) else high
        scale = scale if abs(low) > abs(high) else -scale  # the larger end is met exactly
        steps = round(edge / scale)
        scale = to_type(edge / steps if steps else scale, kind)
        bias = to_type(edge if steps else 0.0, kind)
        q = [c if 0 <= (c := round((w - bias) / scale)) <= top else top * (c > 0) for w in part]
        codes += q
        scales.append(scale)
        biases.append(bias)
        exact += f32([scale * c + bias for c in q])
    return codes, scales, biases, exact


E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]
E2M1_MIDDLES = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]  # a number in the middle gets the smaller one


def quantize_mxfp4(row):
    codes, scales, exact = [], [], []
    for g in range(0, len(row), 32):
        part = row[g : g + 32]
        largest = max(map(abs, part))
        e = max(-127, min(127, math.floor(math.log2(largest)) - 2)) if largest else -127
        sizes = [bisect.bisect_left(E2M1_MIDDLES, abs(w) * 2.0**-e) for w in part]
        codes += [size + 8 if w < 0 and size else size for w, size in zip(part, sizes)]
        exact += [E2M1[c] * 2.0**e for c in codes[g:]]
        scales.append(e + 127)
    return codes, scales, exact


E4M3 = [(8 + i % 8) * 2.0 ** (i // 8 - 10) if i // 8 else i * 2.0**-9 for i in range(127)]  # without sign; 127 is no number


def quantize_fp8(values, rows, K):
    """-> bytes, scales of blocks of 128 x 128 in rows, and the numbers in bfloat16"""
    codes, scales, exact = [0] * len(values), [], [0.0] * len(values)
    for r in range(0, rows, 128):
        for c in range(0, K, 128):
            places = [i * K + k for i in range(r, min(rows, r + 128)) for k in range(c, min(K, c + 128))]
            scale = to_type(max(abs(values[p]) for p in places) / 448 or 1.0, "BF16")
            scales.append(scale)
            for p in places:
                size = abs(values[p]) / scale
                near = min(126, bisect.bisect_left(E4M3, size))
                near -= near > 0 and E4M3[near] - size > size - E4M3[near - 1]
                codes[p] = near | (128 if values[p] < 0 else 0)
                exact[p] = to_type(math.copysign(E4M3[near], values[p]) * scale, "BF16")
    return codes, scales, exact


def stream(codes, bits):
    """Codes as one stream of bits in 32-bit words, the lowest first."""
    words = []
    for g in range(0, len(codes), 32):  # 32 codes are whole words
        word = 0
        for c in reversed(codes[g : g + 32]):
            word = word << bits | c
        words += [word >> 32 * i & 0xFFFFFFFF for i in range(bits)]
    return words


def split_turned(name, kind, shape, values):
    """Those of GPT-OSS: [E, columns, rows], gate and up by turns; MLX has experts.PART.weight [E, rows, columns] and experts.PART.bias."""
    is_bias = name.endswith("_bias")
    stem, end = name.removesuffix("_bias"), ".bias" if is_bias else ".weight"
    E, columns, rows = (shape[0], 1, shape[1]) if is_bias else shape
    parts = [("gate_proj", 0, 2), ("up_proj", 1, 2)] if "gate_up" in name else [("down_proj", 0, 1)]
    out = {}
    for part, first, step in parts:
        picked = [values[(e * columns + c) * rows + r] for e in range(E) for r in range(first, rows, step) for c in range(columns)]
        out[stem.replace("gate_up_proj", part) + end] = (kind, [E, rows // step] + ([] if is_bias else [columns]), picked)
    return out


def join_turned(plain):
    """The same back, in the tensors that are to be read without packing."""
    for name in [n for n in plain if n.endswith(("experts.gate_proj.weight", "experts.gate_proj.bias", "experts.down_proj.weight", "experts.down_proj.bias"))]:
        stem, end = name.rsplit(".", 1)
        both = [plain.pop(name)] + ([plain.pop(name.replace("gate_proj", "up_proj"))] if "gate_proj" in name else [])
        E, rows = both[0][1][:2]
        columns = both[0][1][2] if end == "weight" else 1
        values = [part[2][(e * rows + r) * columns + c] for e in range(E) for c in range(columns) for r in range(rows) for part in both]
        published = stem.replace("gate_proj", "gate_up_proj") + ("_bias" if end == "bias" else "")
        plain[published] = ("F32", [E] + ([columns] if end == "weight" else []) + [rows * len(both)], values)


def split_experts(tensors):
    """experts.gate_up_proj [E, 2 MI, H] and per-expert tensors become switch_mlp.PART.weight [E, ...]."""
    out = {}
    for name, (kind, shape, values) in tensors.items():
        if name + "_bias" in tensors or name.endswith(("experts.gate_up_proj_bias", "experts.down_proj_bias")):
            out.update(split_turned(name, kind, shape, values))
        elif name.endswith("experts.gate_up_proj"):
            E, rows, H = shape
            half = rows // 2 * H
            for i, part in enumerate(("gate_proj", "up_proj")):
                picked = [v for e in range(E) for v in values[(2 * e + i) * half : (2 * e + i + 1) * half]]
                out[name.replace("experts.gate_up_proj", f"switch_mlp.{part}.weight")] = (kind, [E, rows // 2, H], picked)
        elif name.endswith("experts.down_proj"):
            out[name.replace("experts.down_proj", "switch_mlp.down_proj.weight")] = (kind, shape, values)
        elif ".experts." in name:
            before, after = name.split(".experts.")
            e, part, _ = after.split(".")
            old = out.setdefault(f"{before}.switch_mlp.{part}.weight", (kind, [0] + shape, []))
            if int(e) == old[1][0]:
                out[f"{before}.switch_mlp.{part}.weight"] = (kind, [old[1][0] + 1] + shape, old[2] + values)
        else:
            out[name] = (kind, shape, values)
    return out


def mlx_name(name):
    for old, new in (("model.language_model.", "language_model.model."), ("model.visual.", "vision_tower."), ("lm_head.", "language_model.lm_head."),
                     ("mtp.", "language_model.mtp."), ("model.", "language_model.model.")):
        if name.startswith(old):
            return new + name[len(old) :]
    return name


def convert_one(a, name, kind, shape, values, shifted):
    """-> the tensors that are stored; the plain tensor; the bits of a code, or None"""
    if a.mode == "fp8":
        if "visual." in name or "embed" in name or not name.endswith(LINEAR) or len(shape) != 2:
            return {name: (kind, shape, values)}, (name, ("F32", shape, values)), None
        codes, scales, exact = quantize_fp8(values, *shape)
        side = [(n + 127) // 128 for n in shape]
        return {name: ("F8_E4M3", shape, codes), name + "_scale_inv": ("BF16", side, scales)}, (name, ("F32", shape, exact)), None
    plain = name.replace(".switch_mlp.", ".experts.").removesuffix(".weight") if ".switch_mlp." in name else name
    is_norm = name.endswith(MARKS) or name.endswith("language_model.norm.weight") or name in ("model.norm.weight", "mtp.norm.weight") or "pre_fc_norm" in name
    if is_norm and shifted:
        values = [to_type(v + 1, kind) for v in values]
        return {name: (kind, shape, values)}, (plain, ("F32", shape, [v - 1 for v in values])), None
    if name.endswith("conv1d.weight"):
        return {name: (kind, [shape[0], shape[2], 1], values)}, (plain, ("F32", shape, values)), None
    if name.endswith("patch_embed.proj.weight"):
        O, C, places = shape[0], shape[1], shape[2] * shape[3] * shape[4]
        turned = [values[(o * C + c) * places + p] for o in range(O) for p in range(places) for c in range(C)]
        return {name: (kind, [O, *shape[2:], C], turned)}, (plain, ("F32", shape, values)), None
    mode = a.experts if a.experts and ".experts." in name else a.mode
    bits, group = (4, 32) if mode != a.mode else (8, a.group) if name.endswith(("mlp.gate.weight", "mlp.router.weight", "shared_expert_gate.weight")) and a.mode == "affine" else (a.bits, a.group)
    if "visual." in name or not (name.endswith(LINEAR) or ".switch_mlp." in name) or len(shape) < 2 or shape[-1] % group:
        return {name: (kind, shape, values)}, (plain, ("F32", shape, values)), None
    K, words, scales, biases, exact = shape[-1], [], [], [], []
    for r in range(0, len(values), K):
        if mode == "mxfp4":
            c, s, x = quantize_mxfp4(values[r : r + K])
        else:
            c, s, b, x = quantize(values[r : r + K], bits, group, a.scales)
            biases += b
        words += stream(c, bits)
        scales += s
        exact += x
    stem = name.removesuffix(".weight")
    side = shape[:-1] + [K // group]
    packed = {stem + ".weight": ("U32", shape[:-1] + [K * bits // 32], words)}
    packed[stem + ".scales"] = ("U8" if mode == "mxfp4" else a.scales, side, scales)
    if mode == "affine":
        packed[stem + ".biases"] = (a.scales, side, biases)
    return packed, (plain, ("F32", shape, exact)), bits


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("folder")
    ap.add_argument("out")
    ap.add_argument("--bits", type=int, default=4)
    ap.add_argument("--group", type=int, default=64)
    ap.add_argument("--scales", default="bf16")
    ap.add_argument("--mode", default="affine")
    ap.add_argument("--experts", help="another mode for experts (mxfp4), as conversions of GPT-OSS have it")
    ap.add_argument("--mtp", default="inside")
    ap.add_argument("--plain")
    a = ap.parse_args()
    a.scales = a.scales.upper()
    if a.mode == "mxfp4":
        a.bits, a.group = 4, 32
    config = json.load(open(os.path.join(a.folder, "config.json")))
    shifted = config["model_type"].startswith(("qwen3_5", "qwen3_next"))
    tensors = {}
    for f in sorted(os.listdir(a.folder)):
        if f.endswith(".safetensors"):
            tensors.update(read(os.path.join(a.folder, f)))
    how = {"group_size": a.group, "bits": a.bits, **({"mode": a.mode} if a.mode != "affine" else {})}
    apart = dict(how)
    files, plain = {"model.safetensors": {}, "model-mtp.safetensors": {}, "mtp/model.safetensors": {}}, {}
    place = {"inside": "model.safetensors", "side": "model-mtp.safetensors", "apart": "mtp/model.safetensors"}
    kept = a.mode == "fp8" or config["model_type"] == "gpt_oss"
    stored_name = (lambda n: n) if kept else mlx_name
    for name, (kind, shape, values) in (tensors if a.mode == "fp8" else split_experts(tensors)).items():
        if name.startswith("mtp.") and a.mtp == "none":
            continue
        packed, (n, t), bits = convert_one(a, name, kind, shape, values, shifted)
        plain[n] = t
        for k, v in packed.items():
            stored = stored_name(k) if a.mtp != "apart" or not k.startswith("mtp.") else k.removeprefix("mtp.")
            files[place[a.mtp] if name.startswith("mtp.") and a.mtp != "none" else "model.safetensors"][stored] = v
        if bits and bits != a.bits:
            target = apart if name.startswith("mtp.") and a.mtp == "apart" else how
            target[stored_name(name).removesuffix(".weight") if target is how else name.removeprefix("mtp.").removesuffix(".weight")] = {
                "group_size": 32 if a.experts and bits == 4 else a.group,
                "bits": bits,
                **({"mode": a.experts} if a.experts and bits == 4 else {}),
            }
    for folder in [a.out] + ([a.plain] if a.plain else []):
        os.makedirs(folder, exist_ok=True)
        for f in os.listdir(a.folder):
            if f.endswith((".json", ".jinja")) and "index" not in f:
                shutil.copyfile(os.path.join(a.folder, f), os.path.join(folder, f))
    for f, t in files.items():
        if t:
            write(os.path.join(a.out, f), t)
    if a.mode == "fp8":
        told = {"quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}}
    else:
        told = {"quantization": how, "quantization_config": how}
    json.dump({**config, **told}, open(os.path.join(a.out, "config.json"), "w"), indent=1)
    if files["mtp/model.safetensors"]:
        json.dump({"quantization": apart}, open(os.path.join(a.out, "mtp", "config.json"), "w"), indent=1)
    if a.plain:
        join_turned(plain)
        write(os.path.join(a.plain, "model.safetensors"), plain)


if __name__ == "__main__":
    main()
