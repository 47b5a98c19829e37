"""Stand-ins for photographs: shaded solids, fruit, faces, animals and landscapes with texture, and honest words about them."""
import math

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from paint import PALETTE, noise
from phrases import PICTURE_NAMES, spread
from words import an

TABLE = [(np.array(c, np.float32), k) for k, v in PALETTE.items() for c in v[:6]]
TONES = np.stack([c for c, _ in TABLE])
WEIGH = np.array([0.6, 1.0, 0.5], np.float32)


def tones(a):
    """The two commonest colours of an image, by name."""
    small = np.asarray(Image.fromarray(a).resize((16, 16), Image.BOX), np.float32).reshape(-1, 3)
    near = (((small[:, None] - TONES[None]) ** 2) * WEIGH).sum(-1).argmin(1)
    count = {}
    for i in near:
        count[TABLE[i][1]] = count.get(TABLE[i][1], 0) + 1
    best = sorted(count, key=lambda k: -count[k])
    return best[:2] if len(best) > 1 and count[best[1]] > 25 else best[:1]


def claim(r, a):
    return "I see colors like " + " and ".join(tones(a)) + ", but I know drawings only, so I cannot say what this is."


# ---------------------------------------------------------------- fields and solids
def field(r, w, h, cells):
    """Smooth noise in 0..1: random values on a coarse grid, in two octaves."""
    g = np.random.default_rng(r.randrange(1 << 30))
    out = np.zeros((h, w), np.float32)
    for k, share in ((cells, 0.65), (cells * 3, 0.35)):
        f = g.random((max(2, k * h // max(w, h)), max(2, k * w // max(w, h))), dtype=np.float32)
        out += share * np.asarray(Image.fromarray(f).resize((w, h), Image.BICUBIC))
    return out.clip(0, 1)


def rgb(r, lo=20, hi=235):
    return np.array([r.uniform(lo, hi) for _ in range(3)], np.float32)


def natural(r):
    """A colour as things have it."""
    return np.array(r.choice([(200, 60, 40), (220, 150, 50), (120, 160, 50), (150, 110, 70), (230, 190, 150), (90, 70, 50), (200, 190, 170), (60, 90, 130), (170, 60, 80), (110, 130, 120), (240, 210, 90), (190, 120, 90)]), np.float32) + np.array([r.uniform(-25, 25) for _ in range(3)], np.float32)


def backdrop(r, w, h):
    """A table and a wall, a landscape, a sky, or blurred things."""
    y = np.linspace(0, 1, h, dtype=np.float32)[:, None, None]
    x = np.linspace(0, 1, w, dtype=np.float32)[None, :, None]
    a, b = natural(r), natural(r)
    kind = r.choice(["table", "land", "blur", "light"])
    if kind == "table":
        cut = r.uniform(0.45, 0.75)
        out = np.where(y < cut, a * (0.7 + 0.3 * (1 - x)), b * (0.6 + 0.5 * y))
    elif kind == "land":
        sky, ground = np.array((150, 190, 230), np.float32) + rgb(r, -25, 25), np.array(r.choice([(90, 130, 60), (190, 170, 120), (230, 235, 240), (70, 100, 60)]), np.float32)
        edge = r.uniform(0.35, 0.7) + (field(r, w, 2, 5)[:1].T[None] - 0.5) * 0.35
        out = np.where(y < edge, sky * (0.8 + 0.25 * y), ground * (1.15 - 0.5 * (y - edge)))
    elif kind == "blur":
        out = a * field(r, w, h, 5)[..., None] + b * (1 - field(r, w, h, 4)[..., None])
    else:
        out = a * (1.1 - 0.8 * np.hypot(x - r.random(), y - r.random()))
    out = out * (0.82 + 0.36 * field(r, w, h, r.choice([6, 12, 30, 60]))[..., None])
    return np.array(np.broadcast_to(out, (h, w, 3)), np.float32)


def ball(r, out, cx, cy, rx, ry, color, light, texture=0.3, bumps=0.0):
    """A shaded ellipsoid with texture, a highlight and a soft shadow."""
    h, w = out.shape[:2]
    yy, xx = np.mgrid[0:h, 0:w].astype(np.float32)
    sx, sy = (xx - cx - light[0] * rx * -0.25) / (rx * 1.15), (yy - cy - ry * 0.85) / (ry * 0.35)
    out *= 1 - 0.45 * np.exp(-(sx**2 + sy**2) * 1.6)[..., None]
    u, v = (xx - cx) / rx, (yy - cy) / ry
    d = u**2 + v**2
    if bumps:
        t = np.arctan2(v, u)
        d = d * (1 + bumps * np.sin(t * r.randint(2, 5) + r.random() * 6))
    z = np.sqrt(np.clip(1 - d, 0, 1))
    shade = np.clip(u * light[0] + v * light[1] + z * light[2], 0, 1)
    c = color * (0.25 + 0.8 * shade)[..., None] * (1 - texture + 2 * texture * field(r, w, h, r.choice([10, 25, 50])))[..., None]
    c = c + 200 * np.clip(shade - 0.93, 0, 1)[..., None] * r.choice([0, 3, 6])
    cover = np.clip((1 - d) * min(rx, ry) * 0.5, 0, 1)[..., None]
    out[:] = out * (1 - cover) + c * cover


def box(r, out, color, light):
    """A cuboid seen from a corner: three shaded faces with texture."""
    h, w = out.shape[:2]
    cx, cy, s = w * r.uniform(0.3, 0.7), h * r.uniform(0.35, 0.6), min(w, h) * r.uniform(0.15, 0.32)
    k, t = r.uniform(0.4, 0.9), r.uniform(0.5, 1.3)
    faces = [
        ([(0, 0), (-s, -k * s * 0.5), (0, -k * s), (s, -k * s * 0.5)], 1.0),
        ([(0, 0), (-s, -k * s * 0.5), (-s, t * s - k * s * 0.5), (0, t * s)], 0.7),
        ([(0, 0), (s, -k * s * 0.5), (s, t * s - k * s * 0.5), (0, t * s)], 0.42),
    ]
    grain = field(r, w, h, 30)[..., None]
    for points, shade in faces:
        m = Image.new("L", (w, h), 0)
        ImageDraw.Draw(m).polygon([(cx + x, cy + y) for x, y in points], fill=255)
        m = np.asarray(m.filter(ImageFilter.GaussianBlur(0.7)), np.float32)[..., None] / 255
        out[:] = out * (1 - m) + color * shade * (0.75 + 0.4 * grain) * m


def being(r, out, light):
    """A face or an animal out of shaded ellipsoids: head, ears, eyes, nose."""
    h, w = out.shape[:2]
    m = min(w, h)
    skin = natural(r)
    cx, cy, s = w * r.uniform(0.4, 0.6), h * r.uniform(0.4, 0.58), m * r.uniform(0.2, 0.33)
    animal = r.random() < 0.55
    if animal:
        ball(r, out, cx + s * r.uniform(-1, 1), cy + s * 1.3, s * 1.5, s * 1.0, skin * 0.9, light)
        for side in (-1, 1):
            ball(r, out, cx + side * s * 0.7, cy - s * 0.85, s * r.uniform(0.25, 0.4), s * r.uniform(0.4, 0.7), skin * 0.8, light)
    else:
        ball(r, out, cx, cy + s * 1.9, s * 1.6, s * 0.9, natural(r), light)
        ball(r, out, cx, cy - s * 0.25, s * 1.08, s * 1.15, natural(r) * 0.5, light)
    ball(r, out, cx, cy, s * r.uniform(0.8, 1), s * r.uniform(0.9, 1.15), skin, light, 0.15)
    for side in (-1, 1):
        ball(r, out, cx + side * s * 0.38, cy - s * 0.15, s * 0.15, s * 0.11, np.array((235, 235, 230), np.float32) if not animal else np.array((60, 50, 30), np.float32), light, 0)
        ball(r, out, cx + side * s * 0.38, cy - s * 0.15, s * 0.07, s * 0.08, np.array((25, 20, 20), np.float32), light, 0)
    ball(r, out, cx, cy + s * 0.2, s * 0.13, s * 0.17, skin * (0.4 if animal else 0.85), light, 0)
    ball(r, out, cx, cy + s * 0.55, s * 0.35, s * 0.06, np.array((120, 40, 40), np.float32), light, 0)


def solid(r):
    """One image like a photograph, as a uint8 array."""
    w, h = r.randint(96, 420), r.randint(96, 400)
    w, h = min(w, 2 * h), min(h, 2 * w)
    k = min(1, 230 / max(w, h))  # computed small, then scaled
    sw, sh = int(w * k), int(h * k)
    out = backdrop(r, sw, sh)
    t = r.uniform(0, 2 * math.pi)
    light = (0.6 * math.cos(t), -0.6 * abs(math.sin(t)), 0.62)
    kind = r.choice(["balls", "fruit", "box", "being", "being", "land", "mixed"])
    m = min(sw, sh)
    if kind in ("balls", "fruit", "mixed"):
        for _ in range(r.randint(1, 4)):
            s = m * r.uniform(0.1, 0.27)
            x, y = r.uniform(s, sw - s), r.uniform(sh * 0.3, sh - s * 0.8)
            ball(r, out, x, y, s, s * (1 if kind == "balls" else r.uniform(0.8, 1.3)), natural(r), light, r.uniform(0.05, 0.4), 0.1 if kind == "fruit" else 0)
            if kind == "fruit":
                ball(r, out, x + s * 0.1, y - s * 0.95, s * 0.06, s * 0.25, np.array((80, 60, 30), np.float32), light)
    if kind in ("box", "mixed"):
        box(r, out, natural(r), light)
    if kind == "being":
        being(r, out, light)
    out += noise(sh, sw, r) * r.uniform(1, 9)
    image = Image.fromarray(out.clip(0, 255).astype(np.uint8))
    if r.random() < 0.5:
        image = image.filter(ImageFilter.GaussianBlur(r.uniform(0.3, 1.2)))
    return np.asarray(image.resize((w, h), Image.BICUBIC))


ASKED = "{What is|What's|What do you see|What can you see|What is shown} in {the|this|my} <p>?|Describe {the|this|my} <p>.|What do you see?|What is this?|What does the <p> show?|{Who|What animal|What kind of dog|Which fruit|What flower|What place} is {this|in the <p>|it}?|Is {this|that|there} a {dog|cat|person|car|house|child|apple|tree|bird}{?| in the <p>?}|{How many people|How many animals|What objects} are {there|in the <p>}?|Do you {know|recognize|like} {this|it|the person|my dog|this place}?|{What do you think of|Tell me about|Look at} {this|my|the} <p>.|Where was this {taken|made}?|Describe {it|this photo|this picture}{.| please.}|What breed is {it|my dog|this}?|Is it {beautiful|day or night|a photo|real}?|{What's|What is} {on|in} this photo?"


def solid_picture(r):
    from asked import single
    from scenes import Question

    a = solid(r)
    q = spread(r, r.choice(single(ASKED))).replace("<p>", r.choice(PICTURE_NAMES + ["photo", "photo", "photograph", "shot"]))
    q = q[:1].upper() + q[1:]
    qs = [Question("photo", q, "This is no drawing that I know.", claim(r, a), ["know drawings only"])]
    if r.random() < 0.2:
        qs.append(Question("photo", r.choice(["Why?", "Why not?", "Which model can?", "Who can tell me?", "Try again.", "Please try."]), "The image is no drawing.", "I am a very small model and learnt from drawings. A bigger model knows photographs: `parley serve -m DIR`.", ["drawings"]))
    return [Image.fromarray(a)], qs
