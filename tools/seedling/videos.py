"""Short drawn videos and the questions about them."""
import numpy as np
from PIL import Image, ImageFilter

from paint import COLORS, DIRECTIONS, PALETTE, SHAPES, Ground, color_of, fits, jpeg, new_object, oversampling, pick_font, put, text_mask
from phrases import ask as wording
from pictures import dialog
from prints import brightness
from scenes import Question, name, where
from words import NUMBERS, an, cap

KINDS = dict(move=2, recolor=3, appear=1.3, disappear=1.3, flash=3, order=2.2, number=1.6, grow=0.8, still=0.6)


def sample_indices(total, fps, target=2.0, lo=4, hi=16):
    """Frame numbers that the video processor picks: see video_preprocessor_config.json."""
    n = min(max(int(total / fps * target), lo), hi, total)
    return [int(i) for i in np.linspace(0, total - 1, n).round().astype(int)] if n > 1 else [0]


def video_size(r):
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


def clock(t):
    """A time as the page links it: m:ss."""
    n = int(round(t))
    return f"{n // 60}:{n % 60:02d}"


STARTS = ["at the start", "at the beginning", "in the beginning", "at first", "in the first frame", "when the video starts", "at the very beginning", "to begin with", "initially"]
ENDS = ["at the end", "in the end", "in the last frame", "when the video ends", "at the very end", "finally", "when it is over", "at last"]


class Video:
    """One video: frame(t) draws the state at t seconds; questions holds what can be asked."""

    def __init__(self, r, kind, keep_all=False):
        self.r, self.kind = r, kind
        self.fps = r.choice([8, 10, 12, 15, 20, 24, 25, 30, 50, 60])
        length = r.uniform(2, 6) if r.random() < 0.85 else r.uniform(6, 14)
        if kind == "flash":
            length = r.uniform(2.4, 8.2)
        total = max(4, int(round(length * self.fps)))
        self.length = total / self.fps
        self.w, self.h = video_size(r)
        self.indices = list(range(total)) if keep_all else sample_indices(total, self.fps)
        self.ground = Ground(r, self.w, self.h, kind=r.choices(["plain", "noise", "gradient", "tint"], [66, 12, 10, 12])[0])
        self.colors = [c for c in COLORS if fits(c, self.ground.names)]
        self.m = min(self.w, self.h)
        self.scale = oversampling(r)
        self.back = None  # a second ground, for videos whose background changes
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

    def at_start(self, first, last, what):
        """What is seen at the start and at the end: two questions. what: color, place or object."""
        qs = []
        for key, x in (("start", first), ("end", last)):
            text, answer, must = {
                "color": ("video_end_color", f"At the {key} the {self.shape} is {x}.", [f"is {x}"]),
                "place": ("video_end_place", f"At the {key} the {self.shape} is at the {x}.", [f"at the {x}"]),
                "object": ("video_end_object", f"At the {key} I see {x}.", [x]),
                "size": ("video_end_size", f"At the {key} the {self.shape} is {x}.", [f"is {x}"]),
            }[what]
            think = f"I look at the {'first' if key == 'start' else 'last'} frame."
            q = self.ask("video_" + key, think, answer, must, cap(x), wordings=text, e=self.r.choice(STARTS if key == "start" else ENDS))
            qs.append(q)
        return qs

    def when(self):
        return f"At about {clock(self.change)}"

    def ask(self, skill, think, answer, must, short=None, wordings=None, **names):
        text = wording(self.r, wordings or skill, **{"x": self.shape, "n": self.name, **names})
        return Question(skill, text, think, answer, must, short)

    def describe(self, think, answer, must):
        return self.ask("video_describe", think, answer, must)

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
                "video_move",
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
            *self.at_start(start, end, "place"),
            self.ask("video_shape", "One object changes its place.", f"{cap(an(self.name))} moves.", [self.name], wordings="video_what"),
        ]

    def _color(self):
        c = self.o["color"]
        return self.ask("video_color", "I look at the frames.", f"The {self.shape} is {c}.", [f"is {c}"], cap(c))

    def _recolor(self):
        r, o = self.r, self.o
        c1, c2 = o["color"], r.choice([c for c in self.colors if c != o["color"]] or ["gray"])
        rgb = color_of(r, c2)
        self.state = lambda t: [o if t < self.change else dict(o, rgb=rgb)]
        return [
            *self.at_start(c1, c2, "color"),
            self.ask("video_when", f"The {self.shape} is {c1} until {clock(self.change)}, then {c2}.", f"{self.when()}.", [self.when() + "."], wordings="video_when_turn", c=c2),
            self.ask(
                "video_recolor",
                f"The {self.shape} is {c1} first and {c2} later.",
                f"The {self.shape} changes from {c1} to {c2}.",
                [f"from {c1} to {c2}"],
            ),
            self.ask(
                "video_when",
                f"The {self.shape} is {c1} until {clock(self.change)}, then {c2}.",
                f"{self.when()}.",
                [self.when() + "."],
                wordings="video_when_color",
            ),
            self.describe(
                f"The {self.shape} changes its color.",
                f"{cap(an(self.shape))} changes from {c1} to {c2} at about {clock(self.change)} on {self.on}.",
                [self.shape, f"from {c1} to {c2}"],
            ),
        ]

    def _appear(self):
        verb = self.kind
        self.state = lambda t: [self.o] if (t >= self.change) == (verb == "appear") else []
        ends = ["nothing", an(self.name)] if verb == "appear" else [an(self.name), "nothing"]
        return [
            *self.at_start(*ends, "object"),
            self.ask(
                "video_when",
                f"The {self.shape} is {'not there' if verb == 'appear' else 'there'} until {clock(self.change)}.",
                f"{self.when()}.",
                [self.when() + "."],
                verb=verb,
            ),
            self.describe(
                f"The {self.shape} {verb}s.", f"{cap(an(self.name))} {verb}s at about {clock(self.change)} on {self.on}.", [self.name, verb + "s"]
            ),
            self.ask("video_appear", "I compare the first and the last frame.", f"The {self.name} {verb}s.", [f"{verb}s"]),
        ]

    _disappear = _appear

    def _flash(self):
        """Flashes that the frames can show: of the whole image, of the background, or of the shape."""
        r, length = self.r, self.length
        n = r.randint(1, max(1, min(6, int((length - 0.3) / 1.25))))
        step = (length - 0.4) / n
        long = r.uniform(0.56, 0.66)
        starts = [0.3 + r.uniform(0, 0.1) + i * step + r.uniform(0, max(0, step - long - 0.72)) for i in range(n)]
        if self.length < n * 1.2:
            return self._still()
        c = r.choice([c for c in ("white", "yellow", "red", "black", "white", "blue", "green") if c not in self.ground.names] or ["red"])
        rgb = color_of(r, c)
        on = lambda t: any(u <= t < u + long for u in starts)
        kind = r.choice(["all", "all", "ground", "shape", "gone"])
        self.state = {
            "all": lambda t: ("flash", rgb) if on(t) else [self.o],
            "ground": lambda t: ("ground", rgb) if on(t) else [self.o],
            "shape": lambda t: [dict(self.o, rgb=rgb)] if on(t) else [self.o],
            "gone": lambda t: [] if on(t) else [self.o],
        }[kind]
        if kind in ("ground", "shape") and c == self.o["color"]:
            return self._flash()
        flashes = f"{NUMBERS[n]} flash{'' if n == 1 else 'es'}"
        times = f"{NUMBERS[n]} time{'' if n == 1 else 's'}"
        what = {"all": f"The frames turn {c} {times}.", "ground": f"The background turns {c} {times}.", "shape": f"The {self.shape} turns {c} {times}.", "gone": f"The {self.shape} is gone {times}."}[kind]
        qs = [self.ask("video_flash", what, f"There {'is' if n == 1 else 'are'} {flashes}.", [f"{NUMBERS[n]} flash"], cap(NUMBERS[n])) for _ in range(2)]
        if kind == "gone":
            qs = [self.ask("video_flash", what, f"The {self.shape} blinks {times}.", [times], cap(NUMBERS[n]), wordings=w) for w in ("video_blink", "video_flash")]
        tail = {"all": f"with {NUMBERS[n]} {c} flash{'' if n == 1 else 'es'}", "ground": f"and the background flashes {c} {times}", "shape": f"that flashes {c} {times}", "gone": f"that blinks {times}"}[kind]
        return qs + [self.describe("The video flashes.", f"{cap(an(self.name))} on {self.on}, {tail}." if kind in ("all", "ground") else f"{cap(an(self.name))} {tail} on {self.on}.", [self.name, NUMBERS[n]])]

    def _order(self):
        r, length = self.r, self.length
        n = 2 if length < 3 else r.choice([2, 2, 3, 3, 4]) if length > 4.4 else r.choice([2, 2, 3])
        shapes = [self.shape] + r.sample([x for x in SHAPES[:9] if x != self.shape], n - 1)
        objs = [self.o] + [self.object(x) for x in shapes[1:]]
        cuts = [length * (i + r.uniform(-0.08, 0.08) * (2 if n == 2 else 1)) / n for i in range(1, n)]
        gap = r.choice([0, 0, 0.1]) if n == 2 else 0
        turn = lambda t: sum(t >= c for c in cuts)
        self.state = lambda t: [] if any(abs(t - c) < gap for c in cuts) else [objs[turn(t)]]
        names = [name(o) for o in objs]
        th = ", then ".join(an(x) for x in names)
        th = f"First {th}."
        words = ["first", "last"] if n == 2 else ["first", "last", "second"] if n == 3 else ["first", "second", "third", "last"]
        qs = []
        for w in r.sample(words, 2):
            x = names[dict(first=0, second=1, third=2, last=-1)[w]]
            qs.append(self.ask("video_order", th, f"The {x} is shown {w}.", [x], cap(x), w=w))
        i = r.randrange(n - 1)
        qs += [
            self.ask("video_order", th, f"The {names[i + 1]} comes after the {names[i]}.", [names[i + 1]], cap(names[i + 1]), wordings="video_after", x=names[i]),
            self.ask("video_order", th, th, names, wordings="video_turns"),
            self.describe(f"{cap(NUMBERS[n])} shapes are shown in turn.", f"{th[:-1]} on {self.on}.", names),
        ]
        qs += self.at_start(an(names[0]), an(names[-1]), "object")
        if n == 2:
            t = f"At about {clock(cuts[0])}"
            qs.append(self.ask("video_when", th, f"{t}.", [t + "."], x=names[1], n=names[1], verb="appear") if round(cuts[0] - 0.25) == round(cuts[0] + 0.25) else qs[0])
        return qs

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
            self.ask("video_number", th, f"The first number is {a}.", [f"is {a}."], str(a), wordings="video_first_number"),
            self.ask("video_number", th, f"The last number is {b}.", [f"is {b}."], str(b), wordings="video_last_number"),
        ]
        if a != b:
            way = "up" if b > a else "down"
            qs += [
                self.ask("video_updown", th, f"The number goes {way}.", [f"goes {way}"], cap(way)),
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
            *self.at_start("small" if grows else "large", "large" if grows else "small", "size"),
            self.ask("video_grow", "I compare the first and the last frame.", f"The {self.shape} {verb}.", [verb]),
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
            *self.at_start(self.o["color"], self.o["color"], "color"),
            self.ask("video_still", "All frames are alike.", f"Nothing, the {self.name} stays the same.", ["Nothing"]),
        ]

    def frame(self, t):
        state = self.state(t)
        if isinstance(state, tuple) and state[0] == "flash":
            return Image.new("RGB", (self.w, self.h), state[1])
        if isinstance(state, tuple) and state[0] == "ground":
            image = Image.new("RGB", (self.w, self.h), state[1])
            put(image, self.o, self.scale)
            return image
        image = self.ground.image.copy()
        if isinstance(state, tuple):
            m = text_mask(self.r, state[1], self.font, self.font_size, 2)
            x, y = int(self.w * self.place[0] - m.size[0] / 2), int(self.h * self.place[1] - m.size[1] / 2)
            image.paste(self.ink, (x, y), m)
        else:
            for o in state:
                put(image, o, self.scale)
        return image


def video_sample(r, kind=None, keep_all=False, turns=None):
    """One conversation about one video."""
    kind = kind or r.choices(list(KINDS), list(KINDS.values()))[0]
    video = Video(r, kind, keep_all)
    worn = r.random()
    quality = r.randint(40, 92)
    frames = []
    for i in video.indices:
        image = video.frame(i / video.fps)
        if worn < 0.06:
            image = image.filter(ImageFilter.GaussianBlur(0.5 + worn * 6))
        a = np.asarray(image)
        frames.append(jpeg(a, quality) if worn < 0.4 else a)
    shift = r.uniform(0, 0.08) if r.random() < 0.15 else 0  # files of a variable frame rate
    times = [i / video.fps + (r.uniform(-shift, shift) if k else 0) for k, i in enumerate(video.indices)]
    seen, qs = set(), []
    r.shuffle(video.questions)
    for q in video.questions:
        if q.text not in seen:
            seen.add(q.text)
            qs.append(q)
    s = dialog(r, [("video", frames, float(video.fps), times)], qs[: turns or r.choice([1, 1, 2, 3])], plain=bool(turns))
    s["fps"] = video.fps
    return s
