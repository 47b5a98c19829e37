"""Short drawn films and the questions about them."""
import numpy as np
from PIL import Image, ImageFilter

from paint import COLORS, DIRECTIONS, PALETTE, SHAPES, Ground, color_of, fits, jpeg, new_object, oversampling, pick_font, put, text_mask
from phrases import ask as wording
from pictures import dialog
from prints import brightness
from scenes import Question, name, where
from words import NUMBERS, an, cap

KINDS = dict(move=2, recolor=2, appear=1, disappear=1, flash=1.2, order=1, number=2.2, grow=1, still=0.7)


def sample_indices(total, fps, target=2.0, lo=4, hi=16):
    """Frame numbers that the video processor picks: see video_preprocessor_config.json."""
    n = min(max(int(total / fps * target), lo), hi, total)
    return [int(i) for i in np.linspace(0, total - 1, n).round().astype(int)] if n > 1 else [0]


def film_size(r):
    x = r.random()
    if x < 0.55:
        w, h = r.randint(64, 208), r.randint(64, 208)
    elif x < 0.7:
        w, h = r.choice([(96, 64), (128, 128), (160, 120), (192, 108), (176, 144), (320, 240), (320, 180), (240, 240)])
    else:
        w, h = r.randint(180, 340), r.randint(140, 300)
    w, h = min(w, 2 * h), min(h, 2 * w)
    if r.random() < 0.5:  # a size that needs no scaling
        w, h = max(64, round(w / 32) * 32), max(64, round(h / 32) * 32)
    return w, h


def seconds(t):
    n = int(round(t))
    return f"{n} second{'' if n == 1 else 's'}"


class Film:
    """One film: frame(t) draws the state at t seconds; questions holds what can be asked."""

    def __init__(self, r, kind, keep_all=False):
        self.r, self.kind = r, kind
        self.fps = r.choice([8, 10, 12, 15, 20, 24, 25, 30, 50, 60])
        length = r.uniform(2, 6) if r.random() < 0.85 else r.uniform(6, 14)
        if kind == "flash":
            length = max(length, 3.0)
        total = max(4, int(round(length * self.fps)))
        self.length = total / self.fps
        self.w, self.h = film_size(r)
        self.indices = list(range(total)) if keep_all else sample_indices(total, self.fps)
        self.ground = Ground(r, self.w, self.h, kind=r.choices(["plain", "noise", "gradient", "tint"], [66, 12, 10, 12])[0])
        self.colors = [c for c in COLORS if fits(c, self.ground.names)]
        self.m = min(self.w, self.h)
        self.scale = oversampling(r)
        self.o = self.object()
        self.shape, self.name = self.o["shape"], name(self.o)
        self.on = f"{an(self.ground.text) if self.ground.kind != 'gradient' else 'a gradient'} background"
        self.change = 1 + r.uniform(-0.15, 0.15)  # when something changes
        if self.length >= 2.5:
            self.change = r.randint(1, max(1, int(self.length - 0.8))) + r.uniform(-0.2, 0.2)
        self.questions = getattr(self, "_" + kind)()

    def object(self, shape=None):
        r, s = self.r, self.m * self.r.uniform(0.15, 0.28)
        return new_object(
            r,
            shape or r.choice(SHAPES[:9]),
            r.choice(self.colors),
            "medium",
            s,
            r.uniform(s + 1, self.w - s - 1),
            r.uniform(s + 1, self.h - s - 1),
            outline=False,
        )

    def when(self):
        return f"At about {seconds(self.change)}"

    def ask(self, skill, think, answer, must, short=None, wordings=None, **names):
        text = wording(self.r, wordings or skill, x=self.shape, n=self.name, **names)
        return Question(skill, text, think, answer, must, short)

    def describe(self, think, answer, must):
        return self.ask("film_describe", think, answer, must)

    # Each kind sets self.state(t) = objects, ("flash", rgb) or ("text", string) and gives its questions.
    def _move(self):
        r, o = self.r, self.o
        d = r.choice(list(DIRECTIONS))
        axis = "x" if d in ("left", "right") else "y"
        a, b = o["s"] + 2, (self.w if axis == "x" else self.h) - o["s"] - 2
        a, b = a + (b - a) * r.uniform(0, 0.2), b - (b - a) * r.uniform(0, 0.2)
        if d in ("left", "up"):
            a, b = b, a
        self.state = lambda t: [dict(o, **{axis: a + (b - a) * t / self.length})]
        start = {"left": "right", "right": "left", "up": "bottom", "down": "top"}[d]
        end = {"left": "left", "right": "right", "up": "top", "down": "bottom"}[d]
        to = d if axis == "y" else "to the " + d
        return [
            self.ask(
                "film_move",
                f"The {self.shape} starts at the {start} and ends at the {end}.",
                f"The {self.shape} moves {to}.",
                [f"moves {to}"],
                cap(d),
            ),
            self.describe(
                f"The {self.shape} changes its place.",
                f"{cap(an(self.name))} moves from the {start} to the {end} on {self.on}.",
                [self.name, f"to the {end}"],
            ),
            self._color(),
            self.ask("film_shape", "One object changes its place.", f"{cap(an(self.name))} moves.", [self.name], wordings="film_what"),
        ]

    def _color(self):
        c = self.o["color"]
        return self.ask("film_color", "I look at the frames.", f"The {self.shape} is {c}.", [f"is {c}"], cap(c))

    def _recolor(self):
        r, o = self.r, self.o
        c1, c2 = o["color"], r.choice([c for c in self.colors if c != o["color"]] or ["gray"])
        rgb = color_of(r, c2)
        self.state = lambda t: [o if t < self.change else dict(o, rgb=rgb)]
        return [
            self.ask(
                "film_recolor",
                f"The {self.shape} is {c1} first and {c2} later.",
                f"The {self.shape} changes from {c1} to {c2}.",
                [f"from {c1} to {c2}"],
            ),
            self.ask(
                "film_when",
                f"The {self.shape} is {c1} until second {self.change:.0f}, then {c2}.",
                f"{self.when()}.",
                [self.when() + "."],
                wordings="film_when_color",
            ),
            self.describe(
                f"The {self.shape} changes its color.",
                f"{cap(an(self.shape))} changes from {c1} to {c2} at about {seconds(self.change)} on {self.on}.",
                [self.shape, f"from {c1} to {c2}"],
            ),
        ]

    def _appear(self):
        verb = self.kind
        self.state = lambda t: [self.o] if (t >= self.change) == (verb == "appear") else []
        return [
            self.ask(
                "film_when",
                f"The {self.shape} is {'not there' if verb == 'appear' else 'there'} until second {self.change:.0f}.",
                f"{self.when()}.",
                [self.when() + "."],
                verb=verb,
            ),
            self.describe(
                f"The {self.shape} {verb}s.", f"{cap(an(self.name))} {verb}s at about {seconds(self.change)} on {self.on}.", [self.name, verb + "s"]
            ),
            self.ask("film_appear", "I compare the first and the last frame.", f"The {self.name} {verb}s.", [f"{verb}s"]),
        ]

    _disappear = _appear

    def _flash(self):
        r, length = self.r, self.length
        n = r.randint(1, min(4, int((length - 0.5) / 1.25)))
        step = (length - 0.6) / n
        starts = [0.35 + r.uniform(0, 0.1) + i * step + r.uniform(0, max(0, step - 1.2)) for i in range(n)]
        c = r.choice([c for c in ("white", "yellow", "red", "black") if c not in self.ground.names])
        rgb = color_of(r, c)
        self.state = lambda t: ("flash", rgb) if any(u <= t < u + 0.56 for u in starts) else [self.o]
        flashes = f"{NUMBERS[n]} flash{'' if n == 1 else 'es'}"
        times = f"{NUMBERS[n]} time{'' if n == 1 else 's'}"
        return [
            self.ask(
                "film_flash",
                f"The frames turn {c} {times}.",
                f"There {'is' if n == 1 else 'are'} {flashes}.",
                [f"{NUMBERS[n]} flash"],
                cap(NUMBERS[n]),
            ),
            self.describe(
                "The film flashes.",
                f"{cap(an(self.name))} on {self.on}, with {NUMBERS[n]} {c} flash{'' if n == 1 else 'es'}.",
                [self.name, f"{NUMBERS[n]} {c} flash"],
            ),
        ]

    def _order(self):
        r, length = self.r, self.length
        second = self.object(r.choice([x for x in SHAPES[:9] if x != self.shape]))
        half, n2 = length * r.uniform(0.4, 0.6), name(second)
        gap = r.choice([0, 0.15])
        self.state = lambda t: [self.o] if t < half - gap else [second] if t > half + gap else []
        w = r.choice(["first", "last"])
        x = self.name if w == "first" else n2
        th = f"First {an(self.name)}, then {an(n2)}."
        return [
            self.ask("film_order", th, f"The {x} is shown {w}.", [x], cap(x), w=w),
            self.describe("Two shapes are shown in turn.", f"First {an(self.name)}, then {an(n2)} on {self.on}.", [self.name, n2]),
        ]

    def _number(self):
        r = self.r
        up = r.random() < 0.5
        n0, step = r.randint(0, 90) if up else r.randint(10, 99), r.choice([1, 1, 2, 5, 10])
        rate = r.choice([1, 1, 1, 2])
        value = lambda t: max(0, n0 + (1 if up else -1) * step * int(t * rate + 1e-6))
        dark = brightness(PALETTE[self.ground.names[0]][0]) < 125 if self.ground.kind != "tint" else self.ground.text.startswith("dark")
        good = [c for c in self.colors if (brightness(PALETTE[c][0]) > 150) == dark and c != "gray"] if r.random() < 0.4 else []
        self.ink = color_of(r, r.choice(good or ["white" if dark else "black"]))
        self.font, self.font_size = pick_font(r), int(self.m * r.uniform(0.28, 0.62))
        self.font_size = min(self.font_size, int(self.w * 0.5))
        self.place = (0.5, 0.5) if r.random() < 0.7 else (r.uniform(0.35, 0.65), r.uniform(0.35, 0.65))
        self.state = lambda t: ("text", str(value(t)))
        a, b = value(self.indices[0] / self.fps), value(self.indices[-1] / self.fps)
        th = f"The numbers go from {a} to {b}."
        qs = [
            self.ask("film_number", th, f"The first number is {a}.", [f"is {a}."], str(a), wordings="film_first_number"),
            self.ask("film_number", th, f"The last number is {b}.", [f"is {b}."], str(b), wordings="film_last_number"),
        ]
        if a != b:
            way = "up" if b > a else "down"
            qs += [
                self.ask("film_updown", th, f"The number goes {way}.", [f"goes {way}"], cap(way)),
                self.describe("A number changes.", f"A number goes {way} from {a} to {b}.", [f"from {a} to {b}"]),
            ]
        return qs

    def _grow(self):
        r, o, m = self.r, self.o, self.m
        grows = r.random() < 0.5
        a, b = (m * r.uniform(0.07, 0.1), m * r.uniform(0.26, 0.34))
        if not grows:
            a, b = b, a
        o.update(x=self.w / 2 + r.uniform(-0.1, 0.1) * self.w, y=self.h / 2 + r.uniform(-0.1, 0.1) * self.h)
        self.state = lambda t: [dict(o, s=a + (b - a) * t / self.length)]
        verb = "grows" if grows else "shrinks"
        return [
            self.ask("film_grow", "I compare the first and the last frame.", f"The {self.shape} {verb}.", [verb]),
            self.describe(f"The {self.shape} changes its size.", f"{cap(an(self.name))} {verb} on {self.on}.", [self.name, verb]),
        ]

    def _still(self):
        self.state = lambda t: [self.o]
        return [
            self.describe(
                "All frames are alike.",
                f"Nothing changes: {an(self.name)} stays at the {where(self.o, self.w, self.h)} on {self.on}.",
                [self.name, "Nothing"],
            ),
            self._color(),
            self.ask("film_still", "All frames are alike.", f"Nothing, the {self.name} stays the same.", ["Nothing"]),
        ]

    def frame(self, t):
        state = self.state(t)
        if isinstance(state, tuple) and state[0] == "flash":
            return Image.new("RGB", (self.w, self.h), state[1])
        image = self.ground.image.copy()
        if isinstance(state, tuple):
            m = text_mask(self.r, state[1], self.font, self.font_size, 2)
            x, y = int(self.w * self.place[0] - m.size[0] / 2), int(self.h * self.place[1] - m.size[1] / 2)
            image.paste(self.ink, (x, y), m)
        else:
            for o in state:
                put(image, o, self.scale)
        return image


def film_sample(r, kind=None, keep_all=False, turns=None):
    """One conversation about one film."""
    kind = kind or r.choices(list(KINDS), list(KINDS.values()))[0]
    film = Film(r, kind, keep_all)
    worn = r.random()
    quality = r.randint(40, 92)
    frames = []
    for i in film.indices:
        image = film.frame(i / film.fps)
        if worn < 0.06:
            image = image.filter(ImageFilter.GaussianBlur(0.5 + worn * 6))
        a = np.asarray(image)
        frames.append(jpeg(a, quality) if worn < 0.4 else a)
    shift = r.uniform(0, 0.08) if r.random() < 0.15 else 0  # files of a variable frame rate
    times = [i / film.fps + (r.uniform(-shift, shift) if k else 0) for k, i in enumerate(film.indices)]
    seen, qs = set(), []
    r.shuffle(film.questions)
    for q in film.questions:
        if q.text not in seen:
            seen.add(q.text)
            qs.append(q)
    s = dialog(r, [("video", frames, float(film.fps), times)], qs[: turns or r.choice([1, 1, 2, 3])], plain=bool(turns))
    s["fps"] = film.fps
    return s
