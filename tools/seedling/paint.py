"""The painter: colours, grounds, shapes, fonts and the wear of real files (scaling, blur, JPEG).

Objects are painted through coverage masks at a random oversampling, so that edges look like those of many renderers.
"""
import functools
import glob
import io
import math
import os

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

# Every colour name stands for several colours that people and programs use for it.
PALETTE = {
    "red": [(215, 35, 40), (255, 0, 0), (220, 20, 60), (229, 57, 53), (204, 25, 25), (214, 39, 40), (239, 68, 68), (231, 76, 60)],
    "green": [
        (35, 155, 60),
        (0, 128, 0),
        (0, 180, 0),
        (44, 160, 44),
        (67, 160, 71),
        (34, 139, 34),
        (0, 200, 83),
        (0, 255, 0),
        (50, 205, 50),
        (22, 163, 74),
        (39, 174, 96),
    ],
    "blue": [
        (35, 75, 215),
        (0, 0, 255),
        (30, 100, 230),
        (31, 119, 180),
        (33, 118, 230),
        (0, 0, 180),
        (65, 105, 225),
        (30, 144, 255),
        (37, 99, 235),
        (52, 120, 219),
    ],
    "yellow": [(245, 220, 40), (255, 255, 0), (255, 235, 59), (255, 215, 0), (250, 220, 60), (250, 204, 21), (241, 210, 15)],
    "orange": [(245, 135, 25), (255, 165, 0), (255, 127, 14), (255, 140, 0), (251, 140, 0), (249, 115, 22), (243, 145, 18)],
    "purple": [
        (125, 45, 165),
        (128, 0, 128),
        (148, 103, 189),
        (142, 36, 170),
        (106, 27, 154),
        (153, 50, 204),
        (138, 43, 226),
        (147, 51, 234),
        (142, 68, 173),
    ],
    "pink": [(250, 150, 195), (255, 192, 203), (255, 105, 180), (240, 128, 170), (244, 143, 177), (236, 72, 153), (255, 150, 180)],
    "brown": [(125, 78, 40), (139, 69, 19), (121, 85, 72), (140, 86, 75), (101, 67, 33), (150, 80, 45), (120, 63, 20), (150, 45, 42)],
    "black": [(18, 18, 18), (0, 0, 0), (0, 0, 0), (33, 33, 33), (10, 10, 15)],
    "white": [(248, 248, 248), (255, 255, 255), (255, 255, 255), (250, 250, 245), (240, 240, 240)],
    "gray": [(130, 130, 130), (128, 128, 128), (158, 158, 158), (110, 110, 110), (169, 169, 169), (107, 114, 128), (149, 155, 160), (90, 90, 90)],
    "cyan": [(50, 205, 220), (0, 255, 255), (0, 188, 212), (23, 190, 207), (0, 206, 209), (34, 211, 238), (64, 224, 220)],
}
COLORS = list(PALETTE)
SHAPES = "circle square triangle star cross diamond hexagon heart ring arrow".split()
DIRECTIONS = {"right": 0, "down": 90, "left": 180, "up": 270}

# Pairs that are hard to tell apart, as object and ground.
CLASH = [
    {"white", "yellow"},
    {"white", "pink"},
    {"black", "brown"},
    {"yellow", "orange"},
    {"red", "brown"},
    {"purple", "blue"},
    {"red", "orange"},
    {"pink", "purple"},
    {"cyan", "blue"},
    {"white", "cyan"},
    {"gray", "brown"},
    {"gray", "purple"},
    {"gray", "cyan"},
    {"gray", "blue"},
    {"green", "gray"},
]


def color_of(r, name, spread=9):
    """One of the colours that bear this name, slightly changed."""
    c = r.choice(PALETTE[name])
    if name in ("black", "white") or r.random() < 0.3:
        spread = 3
    return tuple(max(0, min(255, v + r.randint(-spread, spread))) for v in c)


def fits(color, grounds):
    """Whether an object of this colour is seen well on grounds of these colours."""
    easy = ("yellow", "pink", "cyan")
    return color not in grounds and all({color, g} not in CLASH or (g == "white" and color in easy) for g in grounds)


# ---------------------------------------------------------------- grounds
_noise = None


def noise(h, w, r):
    """A cut-out of one big field of noise, so that noise costs nothing."""
    global _noise
    if _noise is None:
        _noise = np.random.default_rng(1).normal(0, 1, (900, 900, 3)).astype(np.float32)
    y, x = r.randrange(900 - h), r.randrange(900 - w)
    return _noise[y : y + h, x : x + w]


def tint(r, color):
    """A ground in a light or dark version of a colour: its rgb and its name."""
    base = np.array(color_of(r, color), np.float32)
    if r.random() < 0.6:
        k = r.uniform(0.62, 0.82)
        return tuple(base * (1 - k) + 255 * k), "light " + color
    k = r.uniform(0.32, 0.48)
    return tuple(base * k), "dark " + color


class Ground:
    """A picture's ground: image, words for it, the colour names objects must keep away from, and its kind."""

    def __init__(self, r, w, h, name=None, kind=None):
        name = name or r.choices(COLORS, [2, 2, 2, 2, 2, 2, 2, 2, 4, 16, 4, 2])[0]
        self.kind = kind = kind or r.choices(["plain", "gradient", "noise", "tint"], [60, 15, 13, 12])[0]
        if kind == "tint" and name in ("black", "white", "gray", "brown", "pink", "orange", "yellow"):
            self.kind = kind = "plain"
        self.names, self.text = [name], name
        rgb = color_of(r, name, 5)
        if kind == "tint":
            rgb, self.text = tint(r, name)
            self.names = [name, "cyan" if name == "blue" else "blue" if name == "cyan" else name]
            self.names.append("white" if self.text.startswith("light") else "black")
            if name == "red":
                self.names += ["pink", "brown"]
            if name == "purple":
                self.names += ["pink", "blue"]
        if kind in ("plain", "tint"):
            self.image = Image.new("RGB", (w, h), tuple(int(v) for v in rgb))
            return
        a = np.empty((h, w, 3), np.float32)
        a[:] = rgb
        if kind == "gradient":
            other = r.choice([c for c in COLORS if c != name])
            flat = r.random() < 0.5
            g = np.linspace(0, 1, w if flat else h, dtype=np.float32)
            g = g[None, :, None] if flat else g[:, None, None]
            a = a * (1 - g) + np.array(color_of(r, other, 5), np.float32) * g
            self.text, self.names = f"{name} to {other}", [name, other]
        else:
            a += noise(h, w, r) * r.uniform(3, 20)
        self.image = Image.fromarray(a.clip(0, 255).astype(np.uint8))

    def phrase(self):
        """For "on ... background"."""
        if self.kind == "gradient":
            return f"a gradient background from {self.text}"
        article = "an" if self.text[0] in "aeiou" else "a"
        return f"{article} {self.text}{' noisy' if self.kind == 'noise' else ''} background"

    def answer(self):
        """For "The background is ..."."""
        return f"a gradient from {self.text}" if self.kind == "gradient" else self.text


# ---------------------------------------------------------------- shapes
def _regular(n, start, radii=(1,)):
    step = 2 * math.pi / n
    return [
        (radii[i % len(radii)] * math.cos(math.radians(start) + step * i), radii[i % len(radii)] * math.sin(math.radians(start) + step * i))
        for i in range(n)
    ]


def corners(shape, v):
    """The outline of a shape within the unit circle; v in 0..1 varies its form."""
    if shape == "square":
        return [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)]
    if shape == "triangle":
        return _regular(3, -90)
    if shape == "star":
        return _regular(10, -90, (1, 0.38 + 0.12 * v))
    if shape == "diamond":
        k = 0.6 + 0.4 * v
        return [(0, -1), (k, 0), (0, 1), (-k, 0)]
    if shape == "hexagon":
        return _regular(6, 0 if v < 0.6 else 30)
    if shape == "cross":
        k = 0.24 + 0.14 * v
        return [(-k, -1), (k, -1), (k, -k), (1, -k), (1, k), (k, k), (k, 1), (-k, 1), (-k, k), (-1, k), (-1, -k), (-k, -k)]
    if shape == "arrow":
        t, u, n = 0.12 + 0.2 * v, 0.6 + 0.25 * (v * 7 % 1), 0.5 - 0.65 * (v * 13 % 1)
        return [(-1, -t), (n, -t), (n, -u), (1, 0), (n, u), (n, t), (-1, t)]
    p = []
    for i in range(32):
        a = 2 * math.pi * i / 32
        p.append((1.02 * math.sin(a) ** 3, -(13 * math.cos(a) - 5 * math.cos(2 * a) - 2 * math.cos(3 * a) - math.cos(4 * a)) / (15.5 + 2 * v)))
    return p


def _mask(o, size, k, inner):
    """Coverage of an object (or of its border, with inner = a border width) in a box of this size, at scale k."""
    m = Image.new("L", (size * k, size * k), 0)
    d = ImageDraw.Draw(m)
    x = (size / 2 + o["x"] % 1) * k
    y = (size / 2 + o["y"] % 1) * k
    s = o["s"] * k
    shape = o["shape"]
    width = max(1, round(inner * k)) if inner else 0
    if shape == "ring":
        width = max(2 * k, int(s * o["thick"])) if not inner else width
    if shape in ("circle", "ring"):
        d.ellipse([x - s, y - s, x + s, y + s], **({"outline": 255, "width": width} if width else {"fill": 255}))
        if shape == "ring" and inner:
            t = max(2 * k, int(s * o["thick"]))
            d.ellipse([x - s + t, y - s + t, x + s - t, y + s - t], outline=255, width=width)
    elif shape == "square" and o["round"] and abs(o["turn"]) < 1:
        box = [x - 0.85 * s, y - 0.85 * s, x + 0.85 * s, y + 0.85 * s]
        d.rounded_rectangle(box, s * o["round"], **({"outline": 255, "width": width} if width else {"fill": 255}))
    else:
        t = math.radians(o["turn"])
        c, n = math.cos(t), math.sin(t)
        p = [(x + s * (c * u - n * v), y + s * (n * u + c * v)) for u, v in corners(shape, o["form"])]
        if width:
            d.line(p + p[:2], fill=255, width=width, joint="curve")
        else:
            d.polygon(p, fill=255)
    return m.reduce(k) if k > 1 else m


def put(image, o, k):
    """Paints object o into the image with k-fold oversampling."""
    size = 2 * int(o["s"] * 1.12 + 4)
    at = (int(o["x"]) - size // 2, int(o["y"]) - size // 2)
    thick = max(1.6, o["s"] * o["line"]) if o["outline"] else 0
    image.paste(o["rgb"], at, _mask(o, size, k, thick))
    if o["stroke"]:
        image.paste(o["stroke"], at, _mask(o, size, k, o["stroke_width"]))


def new_object(r, shape, color, size, s, x, y, strokes=True, **more):
    """An object with random looks. strokes: it may have a border of another colour."""
    arrow = shape == "arrow"
    direction = r.choice(list(DIRECTIONS))
    turn = 0 if r.random() < 0.55 else r.uniform(-14, 14)
    if arrow:
        turn = DIRECTIONS[direction] + (0 if r.random() < 0.8 else r.uniform(-8, 8))
    o = dict(
        shape=shape,
        color=color,
        rgb=color_of(r, color),
        size=size,
        s=s,
        x=x,
        y=y,
        outline=shape != "ring" and r.random() < 0.2,
        dir=direction,
        turn=turn,
        form=r.random(),
        thick=r.uniform(0.26, 0.42),
        line=r.uniform(0.09, 0.17),
        round=r.choice([0, 0, 0, r.uniform(0.05, 0.25)]),
        stroke=None,
        stroke_width=0,
    )
    if strokes and not o["outline"] and r.random() < 0.16 and s > 9:
        dark = color not in ("black", "brown", "gray")
        o["stroke"] = r.choice([(0, 0, 0), (34, 34, 34), (60, 60, 60)]) if dark else (255, 255, 255)
        o["stroke_width"] = min(s * 0.12, r.uniform(1, 3.5))
    o.update(more)
    return o


def oversampling(r):
    return r.choices([1, 2, 3, 4], [12, 25, 25, 38])[0]


def wear(r, a, amount=1.0):
    """What happens to files: scaled, blurred, compressed. a: uint8 array."""
    x = r.random()
    h, w = a.shape[:2]
    if x < 0.10 * amount:
        im = Image.fromarray(a).filter(ImageFilter.GaussianBlur(r.uniform(0.3, 0.8)))
        a = np.asarray(im)
    elif x < 0.22 * amount and min(h, w) > 90:
        k = r.uniform(0.75, 1.5)
        im = Image.fromarray(a).resize((max(64, int(w * k)), max(64, int(h * k))), r.choice([Image.BILINEAR, Image.BICUBIC, Image.LANCZOS]))
        a = np.asarray(im if k <= 1 or im.size[0] * im.size[1] < 400000 else im.resize((w, h), Image.BICUBIC))
    if r.random() < 0.42 * amount:
        a = jpeg(a, r.choice([r.randint(35, 75), r.randint(70, 95), r.randint(80, 95)]), r.choice([0, 2, 2]))
    return a


def jpeg(a, quality, subsampling=2):
    f = io.BytesIO()
    Image.fromarray(a).save(f, "JPEG", quality=quality, subsampling=subsampling)
    return np.asarray(Image.open(f))


# ---------------------------------------------------------------- fonts
def _fonts():
    """Font files: those of matplotlib, of the system, and of the folder named by SEEDLING_FONTS."""
    own = os.environ.get("SEEDLING_FONTS")
    found = {}
    dirs = [own] if own else []
    try:
        import matplotlib

        dirs.append(os.path.join(matplotlib.get_data_path(), "fonts", "ttf"))
    except ImportError:
        pass
    dirs += ["/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/truetype/liberation"]
    for d in dirs:
        for p in sorted(glob.glob(os.path.join(d, "*.ttf")) + glob.glob(os.path.join(d, "*.otf"))):
            n = os.path.basename(p)
            odd = ("cmex", "cmsy", "cmmi", "Math", "STIXNonUni", "STIXSiz", "Display", "Thin", "Hairline", "ExtraLight", "UltraLight")
            if not any(x in n for x in odd):
                found.setdefault(n, p)
    return [found[n] for n in sorted(found)]


FONTS = _fonts()
PLAIN_FONTS = [p for p in FONTS if any(x in os.path.basename(p) for x in ("DejaVuSans", "DejaVuSerif", "Liberation"))] or FONTS


@functools.lru_cache(maxsize=240)
def font(path, size):
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


def pick_font(r):
    return r.choice(PLAIN_FONTS if r.random() < 0.45 else FONTS)


def text_mask(r, text, path, size, k=None):
    """Coverage of one line of text, cropped to its ink; drawn larger and reduced at times, so that hinting varies."""
    k = k or r.choice([1, 1, 2, 3])
    f = font(path, size * k)
    l, t, right, b = f.getbbox(text)
    pad = 2 * k
    m = Image.new("L", (right - l + 2 * pad, b - t + 2 * pad), 0)
    ImageDraw.Draw(m).text((pad - l, pad - t), text, font=f, fill=255)
    return m.reduce(k) if k > 1 else m
