"""The infinite stream of training samples: conversation -> chat template -> tokens, patches, positions -> packed batches.

Also: the tokenizer (byte-level BPE with Qwen3.5's regex and special tokens) and the layout rules of pictures and videos.
"""
import json
import os
import random
import re

import jinja2
import jinja2.sandbox
import numpy as np
from PIL import Image

import forms
import pictures
import prints
import talk
import videos
from model import CFG

HERE = os.path.dirname(os.path.abspath(__file__))
VOCAB = CFG["vocab"]
IMAGE_MIN, IMAGE_MAX = 64 * 64, 512 * 512  # pixels of a picture: 4 to 256 tokens
VIDEO_MIN, VIDEO_MAX = 4096, 786432  # pixels of a video, frames x height x width: at most 384 tokens
VIDEO_FRAMES = (4, 16)
REGEX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPECIAL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
    "<|quad_start|>",
    "<|quad_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
]
PLAIN = [
    "<tool_call>",
    "</tool_call>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<tool_response>",
    "</tool_response>",
    "<think>",
    "</think>",
]


# ---------------------------------------------------------------- chat template
def _tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(m):
    raise jinja2.exceptions.TemplateError(m)


_env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
_env.filters["tojson"] = _tojson
_env.globals["raise_exception"] = _raise
TEMPLATE = _env.from_string(open(os.path.join(HERE, "chat_template.jinja")).read())


def chat(messages, tools=None, generate=False, thinking=True):
    return TEMPLATE.render(messages=messages, tools=tools, add_generation_prompt=generate, enable_thinking=thinking)


def render(s):
    """The whole conversation as text. Without thinking the <think> blocks are empty, as the generation prompt has them."""
    M = s["messages"] if s["thinking"] else [{k: v for k, v in m.items() if k != "reasoning_content"} for m in s["messages"]]
    return re.sub(f"{forms.OPEN}\\s*<tool_call>", f"{forms.OPEN}<tool_call>", chat(M, s["tools"]))


def prompt_of(s):
    """The text up to the last answer, as a server would send it to the model."""
    return chat(s["messages"][:-1], s["tools"], True, s["thinking"])


# ---------------------------------------------------------------- tokenizer
def _text(i):
    return render(sample(random.Random(5000003 + i)))


def train_tokenizer(samples=40000, workers=16):
    from multiprocessing import Pool
    from tokenizers import Tokenizer, models, pre_tokenizers, decoders, trainers, normalizers, Regex, AddedToken

    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(REGEX), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tok.decoder = decoders.ByteLevel(add_prefix_space=False, use_regex=False)
    with Pool(workers) as p:
        texts = p.map(_text, range(samples), chunksize=200)
    texts += [f"{w} {w.title()} {w.upper()} {w}" * 3 for w in prints.WORDS]
    tok.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCAB - len(SPECIAL) - len(PLAIN), min_frequency=2, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
        ),
    )
    tok.add_special_tokens([AddedToken(x, normalized=False, special=True) for x in SPECIAL])
    tok.add_tokens([AddedToken(x, normalized=False, special=False) for x in PLAIN])
    return tok


def load_tokenizer(path):
    from tokenizers import Tokenizer

    return Tokenizer.from_file(path)


# ---------------------------------------------------------------- pictures and videos to patches
def smart_resize(h, w, lo, hi, frames=None):
    """Height and width after the processor's resize: multiples of 32, lo <= pixels <= hi (for videos counted over all frames)."""
    f = 32
    if frames and min(h, w) < f:
        k = f / min(h, w)
        h, w = int(h * k), int(w * k)
    hb, wb = round(h / f) * f, round(w / f) * f
    t, n = (round(frames / 2) * 2, frames) if frames else (1, 1)
    if t * hb * wb > hi:
        b = (n * h * w / hi) ** 0.5
        hb, wb = max(f, int(h / b // f * f)), max(f, int(w / b // f * f))
    elif t * hb * wb < lo:
        b = (lo / (n * h * w)) ** 0.5
        hb, wb = int(np.ceil(h * b / f) * f), int(np.ceil(w * b / f) * f)
    return hb, wb


def patches(a, hb, wb):
    """uint8 picture -> [patches, 768], in the block order of the vision tower (2x2 blocks, inside: channel, row, column)."""
    image = Image.fromarray(a)
    if image.size != (wb, hb):
        image = image.resize((wb, hb), Image.BICUBIC)
    planes = np.stack([np.asarray(band) for band in image.split()]).view(np.complex128)  # one element = 16 columns
    return np.ascontiguousarray(planes.reshape(3, hb // 32, 2, 16, wb // 32, 2).transpose(1, 4, 2, 5, 0, 3)).view(np.uint8).reshape(-1, 768)


def encode_media(media):
    """[(kind, [(first slice, second slice)], grid height, grid width, timestamps)]"""
    out = []
    for m in media:
        if m[0] == "image":
            a = m[1]
            hb, wb = smart_resize(a.shape[0], a.shape[1], IMAGE_MIN, IMAGE_MAX)
            p = patches(a, hb, wb)
            out.append(("image", [(p, p)], hb // 16, wb // 16, None))
        else:
            _, F, fps, times = m
            hb, wb = smart_resize(*F[0].shape[:2], VIDEO_MIN, VIDEO_MAX, len(F))
            P = [patches(a, hb, wb) for a in F]
            T = list(times)
            if len(P) % 2:
                P.append(P[-1])
                T.append(T[-1])
            out.append(
                ("video", [(P[i], P[i + 1]) for i in range(0, len(P), 2)], hb // 16, wb // 16, [(T[i] + T[i + 1]) / 2 for i in range(0, len(T), 2)])
            )
    return out


MARKS = forms.OPEN + forms.SHUT + prints.READ
TRIPLE = {k: f"<|vision_start|><|{k}_pad|><|vision_end|>" for k in ("image", "video")}


def expand(text, enc):
    """Videos: the placeholder triple becomes a time stamp and a triple of its own for every temporal patch. Pictures stay."""
    for e in enc:
        if e[0] == "video":
            text = text.replace(TRIPLE["video"], "".join(f"<{t:.1f} seconds><|vision_start|><|VIDEO|><|vision_end|>" for t in e[4]), 1)
    return text.replace("<|VIDEO|>", "<|video_pad|>")


class Encoder:
    def __init__(self, tok):
        self.tok = tok
        i = tok.token_to_id
        self.start, self.end, self.img, self.vid, self.think = (
            i(x) for x in ("<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|video_pad|>", "<think>")
        )
        self.single = {}
        self.assistant = tok.encode("assistant\n", add_special_tokens=False).ids

    def split(self, text):
        """Ids of the text, and which of them need not be learnt. What READ encloses is split into single letters, what OPEN and SHUT enclose is free."""
        if not any(c in text for c in MARKS):
            ids = self.tok.encode(text, add_special_tokens=False).ids
            return ids, [False] * len(ids)
        if prints.READ not in text:
            return self.keys(text)
        ids, free, letters = [], [], False
        for part in text.split(prints.READ):
            more, given = self.keys(part) if not letters else ([t for c in part for t in self.letter(c)], None)
            ids += more
            free += given or [False] * len(more)
            letters = not letters
        return ids, free

    def keys(self, text):
        """Ids of a text in which OPEN and SHUT enclose what is given; the marks do not change how it is split into tokens."""
        plain, spans, start = "", [], 0
        for part in re.split(f"([{forms.OPEN}{forms.SHUT}])", text):
            if part == forms.OPEN:
                start = len(plain)
            elif part == forms.SHUT:
                spans.append((start, len(plain)))
            else:
                plain += part
        e = self.tok.encode(plain, add_special_tokens=False)
        return e.ids, [any(max(s, a) < min(t, b) for a, b in spans) for s, t in e.offsets]

    def letter(self, c):
        if c not in self.single:
            self.single[c] = self.tok.encode(c, add_special_tokens=False).ids
        return self.single[c]

    def __call__(self, text, enc):
        """ids, positions [3, n], loss mask, visual segments [(slice 0, slice 1, grid h, grid w)] in the order of the pads."""
        raw, free = self.split(expand(text, enc))
        pics = [(f, e[2], e[3]) for e in enc if e[0] == "image" for f in e[1]]
        vids = [(f, e[2], e[3]) for e in enc if e[0] == "video" for f in e[1]]
        ids, pos, mask, segs, cur, on, i = [], [], [], [], 0, False, 0
        while i < len(raw):
            t = raw[i]
            if t == self.img or t == self.vid:
                (a, b), gh, gw = (pics if t == self.img else vids).pop(0)
                segs.append((a, b, gh, gw))
                H, W = gh // 2, gw // 2
                for y in range(H):
                    for x in range(W):
                        pos.append((cur, cur + y, cur + x))
                ids += [t] * (H * W)
                mask += [0] * (H * W)
                cur += max(H, W)
                i += 1
                continue
            ids.append(t)
            pos.append((cur, cur, cur))
            mask.append(1 if on and not free[i] else 0)
            cur += 1
            i += 1
            if t == self.end:
                on = False
            elif t == self.start and raw[i : i + len(self.assistant)] == self.assistant:
                n = len(self.assistant)
                if i + n < len(raw) and raw[i + n] == self.think:
                    n += 4 if self.tok.id_to_token(raw[i + n + 1]) == "ĊĊ" else 2  # <think>\n\n</think>\n\n or <think>\n
                for t in raw[i : i + n]:
                    ids.append(t)
                    pos.append((cur, cur, cur))
                    mask.append(0)
                    cur += 1
                i += n
                on = True
        return ids, pos, mask, segs


LATE_KINDS = dict(scene=28, text=42, chart=20, two=9.5, empty=0.5)
NEW_KINDS = dict(scene=21, crowd=8, text=42, chart=20, two=5.5, empty=0.5, solid=3)
EXACT_KINDS = dict(scene=18, crowd=7, text=33, chart=35, two=5, empty=0.5, solid=2.5)
SHARES = dict(part1=(0.48, 0.64), late=(0.58, 0.73), new=(0.42, 0.56), exact=(0.38, 0.49), voices=(0.35, 0.46), crowd=(0.30, 0.395), people=(0.28, 0.37))  # images, videos; the rest is text


def sample(r, mixture="people"):
    """One conversation of a mixture of images, videos and texts. late has more reading; new has newcomers too; exact more charts and
    texts; voices, crowd and people more texts yet."""
    x, (images, moving) = r.random(), SHARES[mixture]
    if x < images:
        kinds = dict(part1=pictures.KINDS, late=LATE_KINDS, new=NEW_KINDS, exact=EXACT_KINDS, voices=EXACT_KINDS, crowd=EXACT_KINDS, people=EXACT_KINDS)[mixture]
        return pictures.picture_sample(r, r.choices(list(kinds), list(kinds.values()))[0])
    return videos.video_sample(r) if x < moving else talk.conversation(r)


# ---------------------------------------------------------------- packing
def batches(tok, seed, rows=64, length=1024, vrows=64, worker=0, workers=1, start=0, mixture="people"):
    """Packed batches of numpy arrays. Documents lie one after another in rows of `length` tokens, frames in rows of 1024 patches."""
    E = Encoder(tok)
    n = start
    NL = int(rows * length * 0.34)
    left = []  # documents that found no room in the batch before
    while True:
        ids = np.zeros((rows, length), np.int32)
        pos = np.zeros((rows, length, 3), np.int32)
        doc = np.zeros((rows, length), np.int32)
        at = np.zeros((rows, length), np.int32)
        vis = np.full((rows, length), -1, np.int32)
        room = [length] * rows
        vroom = [1024] * vrows
        nd = ns = 0
        store, first, second = [], np.zeros((vrows, 1024), np.int32), np.zeros((vrows, 1024), np.int32)
        stored = 1
        store.append(np.zeros((1, 768), np.uint8))
        seg = np.zeros((vrows, 1024), np.int32)
        grid = np.zeros((vrows, 1024, 4), np.int16)
        L, T, Wt, Lm, Tm, Wm = [], [], [], [], [], []
        queue, left = left, []
        while len(left) < 24:
            if queue:
                made = queue.pop()
            else:
                s = sample(random.Random((seed << 40) + (n * workers + worker)), mixture)
                n += 1
                made = E(render(s), encode_media(s["media"]))
            i_, p_, m_, segs = made
            k = len(i_)
            if k > length:
                continue
            best = min((q for q in range(rows) if room[q] >= k), key=lambda q: room[q], default=None)
            vr = list(vroom)
            place = []
            for a, b, gh, gw in segs:
                c = gh * gw
                q = min((q for q in range(vrows) if vr[q] >= c), key=lambda q: vr[q], default=None)
                if q is None:
                    break
                place.append((q, 1024 - vr[q]))
                vr[q] -= c
            if best is None or len(place) < len(segs):
                left.append(made)
                continue
            vroom = vr
            o = length - room[best]
            room[best] -= k
            nd += 1
            ids[best, o : o + k] = i_
            pos[best, o : o + k] = p_
            doc[best, o : o + k] = nd
            at[best, o : o + k] = np.arange(k)
            m = np.array(m_, bool)
            tpos = np.nonzero(m)[0]
            w = 1 / max(4, len(tpos)) ** 0.5
            base = best * length + o
            L += list(base + tpos - 1)
            T += [i_[t] for t in tpos]
            Wt += [w] * len(tpos)
            t2 = [t for t in tpos if t >= 2 and m[t - 1]]
            Lm += [base + t - 2 for t in t2]
            Tm += [i_[t] for t in t2]
            Wm += [w] * len(t2)
            slots = []
            for (a, b, gh, gw), (q, v) in zip(segs, place):
                ns += 1
                c = gh * gw
                first[q, v : v + c] = stored + np.arange(c)
                store.append(a)
                stored += c
                if b is a:
                    second[q, v : v + c] = first[q, v : v + c]
                else:
                    second[q, v : v + c] = stored + np.arange(c)
                    store.append(b)
                    stored += c
                seg[q, v : v + c] = ns
                y, x = np.divmod(np.arange(c // 4), gw // 2)
                yy = np.repeat(y * 2, 4) + np.tile([0, 0, 1, 1], c // 4)
                xx = np.repeat(x * 2, 4) + np.tile([0, 1, 0, 1], c // 4)
                grid[q, v : v + c, 0], grid[q, v : v + c, 1], grid[q, v : v + c, 2], grid[q, v : v + c, 3] = yy, xx, gh, gw
                slots.append(q * 256 + v // 4 + np.arange(c // 4))
            if slots:
                ia = np.array(i_)
                vis[best, o : o + k][(ia == E.img) | (ia == E.vid)] = np.concatenate(slots)

        def pad(x, dt, fill=0):
            x = np.array(x[:NL], dt)
            return np.concatenate([x, np.arange(NL - len(x), dtype=dt) * fill])

        vpos = np.flatnonzero(vis.reshape(-1) >= 0)
        vfeat = vis.reshape(-1)[vpos].astype(np.int64)
        yield dict(
            ids=ids,
            pos=pos,
            doc=doc,
            at=at,
            vpos=vpos,
            vfeat=vfeat,
            store=np.concatenate(store),
            first=first,
            second=second,
            seg=seg,
            grid=grid,
            L=pad(L, np.int64, 1),
            T=pad(T, np.int64),
            W=pad(Wt, np.float32),
            Lm=pad(Lm, np.int64, 1),
            Tm=pad(Tm, np.int64),
            Wm=pad(Wm, np.float32),
            stats=np.array([nd, int((doc > 0).sum()), int((seg > 0).sum()), len(L), ns], np.int64),
        )
