"""Measures an exported checkpoint with transformers in float32, by greedy decoding.

usage: evaluate.py match MODEL_DIR                               training code against transformers on packed samples
       evaluate.py skills MODEL_DIR OUT.json [--n 48] [--part I/N]   accuracy and MTP acceptance by skill on unseen samples
       evaluate.py folder MODEL_DIR FOLDER [OUT.json]            the questions of FOLDER/questions.json (tests/eval/make_images.mjs)
"""
import json
import os
import random
import sys

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import numpy as np
import torch
from PIL import Image

import data
import videos
import model as M
import pictures
import skills
import talk

DEV = "cuda" if torch.cuda.is_available() else "cpu"


def load(d):
    from transformers import Qwen3_5ForConditionalGeneration
    from safetensors.torch import load_file

    m = Qwen3_5ForConditionalGeneration.from_pretrained(d, dtype=torch.float32).to(DEV).eval()
    state = M.fit({k: v.float() for k, v in load_file(os.path.join(d, "model.safetensors")).items() if k != "lm_head.weight"})
    own = M.Seedling()
    own.load_state_dict(state)
    return m, own.to(DEV).eval(), data.load_tokenizer(os.path.join(d, "tokenizer.json"))


def inputs(E, items, pad):
    """Left-padded batch for transformers out of (text, encoded media) pairs."""
    rows = [E(t, e) for t, e in items]
    L = max(len(r[0]) for r in rows)
    B = len(rows)
    ids = torch.full((B, L), pad)
    att = torch.zeros(B, L, dtype=torch.long)
    for i, r in enumerate(rows):
        ids[i, L - len(r[0]) :] = torch.tensor(r[0])
        att[i, L - len(r[0]) :] = 1
    kw = dict(input_ids=ids, attention_mask=att)
    rgb = lambda a: (torch.from_numpy(a).float() - 127.5) / 127.5
    row = lambda f: torch.cat([rgb(f[0]).view(-1, 3, 1, 256), rgb(f[1]).view(-1, 3, 1, 256)], 2).view(-1, 1536)
    for k, a, g in (("image", "pixel_values", "image_grid_thw"), ("video", "pixel_values_videos", "video_grid_thw")):
        es = [e for _, m in items for e in m if e[0] == k]
        if es:
            kw[a] = torch.cat([row(f) for e in es for f in e[1]])
            kw[g] = torch.tensor([[len(e[1]), e[2], e[3]] for e in es])
    if "pixel_values" in kw or "pixel_values_videos" in kw:
        kw["mm_token_type_ids"] = ((ids == E.img) * 1 + (ids == E.vid) * 2).to(torch.int32)
    return {k: v.to(DEV) for k, v in kw.items()}, rows


@torch.no_grad()
def generate(m, E, items, max_new=200):
    t = E.tok
    end, eot = t.token_to_id("<|im_end|>"), t.token_to_id("<|endoftext|>")
    kw, rows = inputs(E, items, eot)
    m.model.rope_deltas = None
    g = m.generate(
        **kw, max_new_tokens=max_new, do_sample=False, eos_token_id=[end, eot], pad_token_id=eot, temperature=None, top_p=None, top_k=None
    )[:, kw["input_ids"].shape[1] :].tolist()
    m.model.rope_deltas = None
    out = []
    for x in g:
        n = next((i + 1 for i, y in enumerate(x) if y in (end, eot)), len(x))
        out.append(x[:n])
    return out, rows


def own_batch(docs, length):
    """Packed batch of the training code, one document a row. docs: (ids, positions, segments)."""
    B = len(docs)
    ids = torch.zeros(B, length, dtype=torch.long)
    pos = torch.zeros(B, length, 3, dtype=torch.long)
    at = torch.zeros(B, length, dtype=torch.long)
    vpos = []
    doc = np.zeros((B, length), int)
    store, second, grid, seg, k = [], [], [], [], 0
    for i, (x, p, segs, pads) in enumerate(docs):
        n = len(x)
        ids[i, :n] = torch.tensor(x)
        pos[i, :n] = torch.tensor(p)
        at[i, :n] = torch.arange(n)
        doc[i, :n] = 1
        vpos += [i * length + j for j, y in enumerate(x) if y in pads]
        for a, b, gh, gw in segs:
            c = gh * gw
            y, z = np.divmod(np.arange(c // 4), gw // 2)
            store.append(a)
            second.append(b)
            seg += [len(store)] * c
            k += c
            grid.append(
                np.stack(
                    [
                        np.repeat(y * 2, 4) + np.tile([0, 0, 1, 1], c // 4),
                        np.repeat(z * 2, 4) + np.tile([0, 1, 0, 1], c // 4),
                        np.full(c, gh),
                        np.full(c, gw),
                    ],
                    1,
                )
            )
    cu, lg = M.lengths(doc)
    b = dict(ids=ids, pos=pos, at=at, vpos=torch.tensor(vpos, dtype=torch.long), vfeat=torch.arange(len(vpos)), cu=torch.tensor(cu), longest=lg)
    if store:
        n = sum(len(a) for a in store)
        vcu, vl = M.lengths(np.array(seg)[None])
        st = torch.from_numpy(np.concatenate(store + second))
        b.update(
            store=st,
            first=torch.arange(n),
            second=torch.arange(n) + n,
            grid=torch.from_numpy(np.concatenate(grid)),
            vcu=torch.tensor(vcu),
            vlongest=vl,
        )
    return {k: v.to(DEV) if torch.is_tensor(v) else v for k, v in b.items()}


def slow_attend(q, k, v, cu, longest, causal):  # fp32 attention for checks (the fast kernel is bf16 only)
    out = torch.empty_like(q)
    g = q.shape[1] // k.shape[1]
    for a, b in zip(cu[:-1].tolist(), cu[1:].tolist()):
        if a < b:
            out[a:b] = torch.nn.functional.scaled_dot_product_attention(
                *[x[a:b].transpose(0, 1)[None] for x in (q, k.repeat_interleave(g, 1), v.repeat_interleave(g, 1))], is_causal=causal
            )[0].transpose(0, 1)
    return out


@torch.no_grad()
def match(m, own, E, n=12):
    """Largest difference of the logits, training code against transformers, both fp32."""
    M.attend = slow_attend
    worst = 0
    same = tot = 0
    for i in range(n):
        s = data.sample(random.Random(990000 + i))
        enc = data.encode_media(s["media"])
        kw, rows = inputs(E, [(data.render(s), enc)], 0)
        kw.pop("attention_mask")
        m.model.rope_deltas = None
        a = m(**kw, use_cache=False).logits[0]
        ids, pos, mask, segs = rows[0]
        k = len(ids)
        h, _ = own(own_batch([(ids, pos, segs, (E.img, E.vid))], (k + 63) // 64 * 64))
        b = own.logits(h[:k])
        worst = max(worst, (a - b).abs().max().item())
        same += (a.argmax(-1) == b.argmax(-1)).sum().item()
        tot += k
    print(f"match: largest logit difference {worst:.2e}, equal argmax {same}/{tot}", flush=True)
    return worst


def final(text):
    return text.split("</think>")[-1].replace("<|im_end|>", "").strip()


def _drawn(kind, names):
    return [(k, lambda r, k=k: pictures.picture_sample(r, kind, k, 1)) for k in names.split()]


SETS = (
    _drawn("scene", "describe see color shape count count_shape count_color count_name relation where big exists background arrow outline size side")
    + _drawn("text", "read_number read_text")
    + _drawn("chart", "chart_tallest chart_lowest chart_value chart_count")
    + _drawn("two", "two_more two_same two_differ two_each two_color")
    + [("video_" + k, lambda r, k=k: videos.video_sample(r, k, turns=1)) for k in "move recolor appear disappear flash order number grow still".split()]
    + [(k, lambda r, k=k: talk.conversation(r, k)) for k in list(skills.SKILLS) + ["memory", "system_prompt", "tool_sample"]]
)


def seed_of(name):
    return sum((i + 1) * 131 * ord(c) for i, c in enumerate(name)) * 1000


@torch.no_grad()
def evaluate(m, own, E, n=48, part=(0, 1), think=None, seed=7):
    M.attend = slow_attend
    res = {}
    texts = []
    for name, f in SETS[part[0] :: part[1]]:
        S = []
        i = 0
        while len(S) < n:
            s = f(random.Random(seed * 10**9 + seed_of(name) + i))
            i += 1
            if think is not None:
                s["thinking"] = think
            S.append(s)
        items = [(data.prompt_of(s), data.encode_media(s["media"])) for s in S]
        new, rows = generate(m, E, items, 260 if name in ("code", "story", "poem", "table", "tool_sample", "describe") else 150)
        ok = 0
        for s, g in zip(S, new):
            t = final(E.tok.decode(g, skip_special_tokens=False))
            good = all(x in t for x in s["must"])
            ok += good
            texts.append((name, s["thinking"], bool(good), s["must"], t[:160]))
        hit, cnt = acceptance(own, E, rows, new)
        res[name] = dict(accuracy=round(ok / n, 3), n=n, mtp=round(hit / max(1, cnt), 3), mtp_tokens=cnt)
        print(f"{name:16s} accuracy {ok/n:.3f}  mtp {hit/max(1,cnt):.3f} of {cnt}", flush=True)
    return res, texts


@torch.no_grad()
def acceptance(own, E, rows, new):
    """How often the first drafted token equals the next greedy one: (hidden of p, token p+1) -> token p+2. Gives (equal, drafted)."""
    M.attend = slow_attend
    hit = count = 0
    for a in range(0, len(rows), 24):
        docs, spans = [], []
        for (ids, pos, _, segs), g in list(zip(rows, new))[a : a + 24]:
            c = pos[-1][0] + 1
            docs.append((ids + g, pos + [(c + j,) * 3 for j in range(len(g))], segs, (E.img, E.vid)))
            spans.append((len(ids), len(g)))
        length = (max(len(d[0]) for d in docs) + 63) // 64 * 64
        _, y = own(own_batch(docs, length))
        y = y.view(len(docs), length, -1)
        for j, (k, n) in enumerate(spans):
            if n > 1:
                draft = own.logits(y[j, k - 1 : k + n - 2]).argmax(-1).tolist()
                true = docs[j][0][k + 1 : k + n]
                hit += sum(u == v for u, v in zip(draft, true))
                count += len(true)
    return hit, count


def open_picture(path):
    return ("image", np.asarray(Image.open(path).convert("RGB")))


def folder(m, E, d, out=None, batch=50):
    """Accuracy on a folder of pictures drawn by another program, by skill."""
    S = json.load(open(os.path.join(d, "questions.json")))
    by, wrong = {}, []
    for a in range(0, len(S), batch):
        part = S[a : a + batch]
        items = []
        for s in part:
            media = [open_picture(os.path.join(d, f)) for f in s["files"]]
            message = {"role": "user", "content": [{"type": "image"} for _ in media] + [{"type": "text", "text": s["question"]}]}
            items.append((data.chat([message], None, True, False), data.encode_media(media)))
        new, _ = generate(m, E, items, 120)
        for s, g in zip(part, new):
            answer = final(E.tok.decode(g, skip_special_tokens=False))
            good = all(x.lower() in answer.lower() for x in s["must"])
            by.setdefault(s["skill"], []).append(good)
            if not good:
                wrong.append(dict(files=s["files"], skill=s["skill"], question=s["question"], must=s["must"], answer=answer))
    for k in sorted(by):
        print(f"{k:16s} {sum(by[k])}/{len(by[k])}", flush=True)
    right = sum(sum(v) for v in by.values())
    print(f"total {right}/{len(S)} = {right / len(S):.3f}", flush=True)
    for w in wrong[:40]:
        print(json.dumps(w), flush=True)
    if out:
        json.dump(dict(right=right, n=len(S), by={k: [sum(v), len(v)] for k, v in by.items()}, wrong=wrong), open(out, "w"), indent=1)


def main():
    command, path = sys.argv[1], sys.argv[2]
    torch.set_num_threads(max(1, min(8, os.cpu_count())))
    option = lambda name, default: sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default
    m, own, tok = load(path)
    E = data.Encoder(tok)
    if command == "match":
        match(m, own, E)
    elif command == "folder":
        folder(m, E, sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None)
    elif command == "skills":
        part = tuple(map(int, option("--part", "0/1").split("/")))
        res, texts = evaluate(m, own, E, int(option("--n", "48")), part)
        json.dump(dict(results=res, texts=texts), open(sys.argv[3], "w"), indent=0)
        v = list(res.values())
        mean = sum(x["accuracy"] for x in v) / len(v)
        mtp = sum(x["mtp"] * x["mtp_tokens"] for x in v) / sum(x["mtp_tokens"] for x in v)
        print("mean accuracy", round(mean, 3), "mtp", round(mtp, 3))


if __name__ == "__main__":
    main()
