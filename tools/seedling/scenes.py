"""Scenes of drawn shapes and the questions about them."""
import math
from collections import namedtuple

from paint import COLORS, DIRECTIONS, SHAPES, Ground, fits, new_object, oversampling, put
from phrases import ask as wording
from words import NUMBERS, an, cap

# A question with its skill, its short reasoning, its answer, what a right answer contains, and the answer in a word (or None).
Question = namedtuple("Question", "skill text think answer must short", defaults=[None])


def plural(s):
    return s + ("es" if s.endswith("s") else "s")


def join(parts):
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def name(o):
    return f"{o['color']} {o['shape']}"


def there(n, what):
    return f"There {'is' if n == 1 else 'are'} {NUMBERS[n] if n else 'no'} {what if n == 1 else plural(what)}"


LOW, HIGH = 0.37, 0.63  # a place is left of LOW, right of HIGH, or in the middle


def where(o, w, h):
    x, y = o["x"] / w, o["y"] / h
    a = "top" if y < LOW else "bottom" if y > HIGH else ""
    b = "left" if x < LOW else "right" if x > HIGH else ""
    return (a + " " + b).strip() or "center"


def clear_place(o, w, h, gap=0.02):
    """Whether the place of o is not close to a border between two places."""
    return all(abs(v - t) > gap for v in (o["x"] / w, o["y"] / h) for t in (LOW, HIGH))


def picture_size(r):
    """Width and height: many small pictures, some up to the token limit."""
    x = r.random()
    if x < 0.62:
        w = int(64 * 7 ** r.random())
        h = w * math.exp(r.uniform(-1.09, 1.09) if r.random() < 0.5 else r.uniform(-0.35, 0.35))
    elif x < 0.75:
        w, h = r.choice([(320, 240), (240, 320), (256, 256), (400, 300), (300, 300), (200, 200), (480, 320), (512, 512), (640, 480)])
        k = min(1, 560 / max(w, h))
        w, h = int(w * k), h * k
    else:
        w, h = r.randint(240, 640), r.randint(200, 560)
    w, h = w, int(min(640, max(64, h)))
    if r.random() < 0.35:  # a size that needs no scaling
        w, h = max(64, round(w / 32) * 32), max(64, round(h / 32) * 32)
    return w, h


SIZES = {"small": (0.065, 0.09), "medium": (0.12, 0.155), "large": (0.2, 0.27)}


def scene(r, w=None, h=None, n=None, kind=None, few=False):
    """A random scene: {w, h, ground, objs}."""
    if not w:
        w, h = picture_size(r)
    m = min(w, h)
    if not n:
        n = r.choice([1, 2, 2, 3, 3]) if m < 110 or few else r.choices([1, 2, 3, 4, 5, 6, 7], [8, 20, 28, 20, 16, 5, 3])[0]
    ground = Ground(r, w, h, kind=kind)
    colors = [c for c in COLORS if fits(c, ground.names)]
    strokes = r.random() < 0.5
    objs = []
    for _ in range(n):
        for _ in range(25):
            size = r.choice(["small", "medium", "large"] if m >= 110 and n < 6 else ["medium", "large"] if n < 6 else ["small", "medium"])
            s = max(m * r.uniform(*SIZES[size]), 7)
            x, y = r.uniform(s + 1, w - s - 1), r.uniform(s + 1, h - s - 1)
            if all(math.hypot(x - o["x"], y - o["y"]) > (s + o["s"]) * 1.08 + 2 for o in objs):
                break
        else:
            continue
        shape, color = r.choice(SHAPES), r.choice(colors)
        if objs and r.random() < 0.3:
            shape = r.choice(objs)["shape"]
        if objs and r.random() < 0.3:
            color = r.choice(objs)["color"]
        objs.append(new_object(r, shape, color, size, s, x, y, strokes))
    return dict(w=w, h=h, ground=ground, objs=objs)


def crowd(r):
    """A scene with up to nine of one shape or one colour, and a few others."""
    w, h = r.randint(150, 560), r.randint(150, 520)
    w, h = min(w, int(1.8 * h)), min(h, int(1.8 * w))
    m, n, more = min(w, h), r.randint(2, 9), r.choice([0, 0, 1, 1, 2, 3])
    ground = Ground(r, w, h, kind=r.choices(["plain", "gradient", "noise", "tint"], [76, 8, 8, 8])[0])
    colors = [c for c in COLORS if fits(c, ground.names)]
    shape, color = r.choice(SHAPES), r.choice(colors)
    by_shape, alike = r.random() < 0.7, r.random() < 0.4
    size, base = "small", m * r.uniform(0.06, 0.105)
    objs = []
    for i in range(n + more):
        for _ in range(40):
            s = max(base * r.uniform(0.85, 1.15), 8)
            x, y = r.uniform(s + 1, w - s - 1), r.uniform(s + 1, h - s - 1)
            if all(math.hypot(x - o["x"], y - o["y"]) > (s + o["s"]) * 1.08 + 2 for o in objs):
                break
        else:
            continue
        if i < n:
            a, c = (shape, color if alike else r.choice(colors)) if by_shape else (shape if alike else r.choice(SHAPES), color)
        else:
            a, c = (r.choice([q for q in SHAPES if q != shape]), r.choice(colors)) if by_shape else (r.choice(SHAPES), r.choice([q for q in colors if q != color] or colors))
        objs.append(new_object(r, a, c, size, s, x, y, r.random() < 0.5))
    r.shuffle(objs)
    return dict(w=w, h=h, ground=ground, objs=objs)


def render(r, sc, objs=None):
    """The scene as an image."""
    image = sc["ground"].image.copy()
    k = oversampling(r)
    for o in sc["objs"] if objs is None else objs:
        put(image, o, k)
    return image


# ---------------------------------------------------------------- questions
class Asker:
    """Asks about one scene. Each method makes a Question, or None if it does not suit the scene."""

    def __init__(self, r, sc):
        self.r, self.sc, self.w, self.h = r, sc, sc["w"], sc["h"]
        self.objs = sorted(sc["objs"], key=lambda o: o["x"])
        self.n = len(self.objs)
        self.shapes = [o["shape"] for o in self.objs]
        self.colors = [o["color"] for o in self.objs]
        self.names = [name(o) for o in self.objs]
        self.seen = f"I see {join([an(x) for x in self.names])}." if self.n else ""
        self.u = r.choice(self.objs)

    def place(self, o):
        return where(o, self.w, self.h)

    def sole(self, o):
        """A name that only this object has, or None: its shape, its colour or both."""
        r = self.r
        if self.names.count(name(o)) != 1:
            return None
        forms = [name(o)] * 3
        if self.shapes.count(o["shape"]) == 1:
            forms += [o["shape"]] * 3
        if self.colors.count(o["color"]) == 1:
            forms += [r.choice([f"{o['color']} one", f"{o['color']} object", f"{o['color']} shape"])]
        return r.choice(forms)

    def _full(self, o):
        s = f"{o['size']}{' outlined' if o['outline'] else ''} {name(o)}"
        if o["shape"] == "arrow":
            s += f" pointing {o['dir']}"
        return f"{an(s)} at the {self.place(o)}"

    def describe(self):
        what = f"{NUMBERS[self.n]} object{'' if self.n == 1 else 's'}"
        a = f"The picture shows {what} on {self.sc['ground'].phrase()}: {join([self._full(o) for o in self.objs])}."
        return Question("describe", wording(self.r, "describe"), f"{there(self.n, 'object')}, from left to right: {join(self.names)}.", a, self.names)

    def see(self):
        short = join([an(x) for x in self.names]) if self.n < 3 else None
        return Question("see", wording(self.r, "see"), f"{there(self.n, 'object')}.", self.seen, self.names, short and cap(short))

    def color(self):
        x, c = self.u["shape"], self.u["color"]
        if self.shapes.count(x) != 1:
            return None
        other = self.r.choice([k for k in COLORS if k != c])
        third = self.r.choice([k for k in COLORS if k not in (c, other)])
        c1, c2 = self.r.sample([c, other], 2)
        q = wording(self.r, "color", x=x, ax=an(x), c1=c1, c2=c2, c3=third)
        return Question("color", q, f"The {x} is at the {self.place(self.u)}.", f"The {x} is {c}.", [f"is {c}"], cap(c))

    def shape(self):
        c, s = self.u["color"], self.u["shape"]
        if self.colors.count(c) != 1:
            return None
        s1, s2 = self.r.sample([s, self.r.choice([k for k in SHAPES if k != s])], 2)
        q = wording(self.r, "shape", c=c, s1=s1, s2=s2)
        return Question("shape", q, f"The {c} one is at the {self.place(self.u)}.", f"The {c} one is {an(s)}.", [s], cap(s))

    def count(self):
        a = there(self.n, "object")
        return Question("count", wording(self.r, "count"), self.seen, a + ".", [a], cap(NUMBERS[self.n]))

    def count_shape(self):
        x = self.u["shape"] if self.r.random() < 0.78 else self.r.choice(SHAPES)
        c = self.shapes.count(x)
        return self._counted("count_shape", wording(self.r, "count_shape", xs=plural(x)), c, x)

    def count_color(self):
        x = self.u["color"] if self.r.random() < 0.78 else self.r.choice([c for c in COLORS if c not in self.sc["ground"].names])
        return self._counted("count_color", wording(self.r, "count_color", c=x), self.colors.count(x), f"{x} object")

    def count_name(self):
        x = name(self.u) if self.r.random() < 0.7 else f"{self.u['color']} {self.r.choice(self.shapes)}"
        return self._counted("count_name", wording(self.r, "count_name", names=plural(x)), self.names.count(x), x)

    def _counted(self, skill, q, n, what):
        a = there(n, what)
        return Question(skill, q, self.seen, a + ".", [a], cap(NUMBERS[n]) if n else "None")

    def relation(self):
        r, u, v = self.r, self.u, self.r.choice(self.objs)
        if v is u:
            return None
        a, b = self.sole(u), self.sole(v)
        dx, dy = u["x"] - v["x"], u["y"] - v["y"]
        flat = abs(dx) > abs(dy)
        if not a or not b or min(abs(dx), abs(dy)) * 1.6 > max(abs(dx), abs(dy)):
            return None
        rel = ("to the left of" if dx < 0 else "to the right of") if flat else ("above" if dy < 0 else "below")
        th = f"The {a} is at the {self.place(u)}, the {b} at the {self.place(v)}."
        words = {
            "to the left of": ["to the left of", "left of", "on the left of", "on the left side of"],
            "to the right of": ["to the right of", "right of", "on the right of", "on the right side of"],
            "above": ["above", "above", "over", "higher than"],
            "below": ["below", "below", "under", "lower than"],
        }
        x = r.random()
        if x < 0.5:
            both = r.choice(
                ["to the left or to the right of", "left or right of", "on the left or on the right of"]
                if flat
                else ["above or below", "below or above", "over or under"]
            )
            short = cap(rel.replace("to the ", "").replace(" of", ""))
            return Question("relation", wording(r, "relation", a=a, b=b, both=both), th, f"The {a} is {rel} the {b}.", [f"is {rel} "], short)
        if x < 0.82:
            asked = r.choice(["to the left of", "to the right of"] if flat else ["above", "below"])
            q = wording(r, "relation_yes", a=a, b=b, rel=r.choice(words[asked]))
            yes = asked == rel
            return Question(
                "relation", q, th, f"Yes, it is {rel} it." if yes else f"No, it is {rel} it.", ["Yes" if yes else "No"], "Yes" if yes else "No"
            )
        for o in self.objs:  # the only thing on that side?
            if o is not u and o is not v and (dx * (o["x"] - v["x"]) > 0 if flat else dy * (o["y"] - v["y"]) > 0):
                return None
        q = wording(r, "relation_what", b=b, rel=r.choice(words[rel][:3]))
        return Question("relation", q, f"The {b} is at the {self.place(v)}.", f"The {name(u)} is {rel} the {b}.", [name(u)], cap(name(u)))

    def where(self):
        x, p = self.sole(self.u), self.place(self.u)
        if not x or not clear_place(self.u, self.w, self.h):
            return None
        return Question("where", wording(self.r, "where", x=x), f"The {x} is {self.u['color']}.", f"The {x} is at the {p}.", [f"at the {p}."], cap(p))

    def big(self):
        if self.n < 2:
            return None
        by_size = sorted(self.objs, key=lambda o: o["s"])
        large = self.r.random() < 0.6
        x, y = (by_size[-1], by_size[-2]) if large else (by_size[0], by_size[1])
        if max(x["s"], y["s"]) / min(x["s"], y["s"]) < 1.3:
            return None
        w = self.r.choice(["biggest", "largest"]) if large else "smallest"
        return Question("big", wording(self.r, "big", w=w), self.seen, f"The {w} is the {name(x)}.", [name(x)], cap(name(x)))

    def exists(self):
        r, u = self.r, self.u
        if r.random() < 0.5:
            x = r.choice([name(u), u["shape"]])
        else:
            x = r.choice([f"{r.choice(COLORS)} {u['shape']}", f"{u['color']} {r.choice(SHAPES)}", r.choice(SHAPES), r.choice(SHAPES)])
        yes = x in self.names or x in self.shapes
        a = f"Yes, there is {an(x)}." if yes else f"No, there is no {x}."
        return Question("exists", wording(r, "exists", x=x, ax=an(x), xs=plural(x)), self.seen, a, ["Yes" if yes else "No"], "Yes" if yes else "No")

    def background(self):
        a = self.sc["ground"].answer()
        return Question(
            "background",
            wording(self.r, "background"),
            "I look at the ground behind the objects.",
            f"The background is {a}.",
            [f"is {a}"],
            cap(a) if " to " not in a else None,
        )

    def arrow(self):
        arrows = [o for o in self.objs if o["shape"] == "arrow"]
        if len(arrows) != 1:
            return None
        d = arrows[0]["dir"]
        d1, d2 = self.r.sample([d, self.r.choice([k for k in DIRECTIONS if k != d])], 2)
        return Question(
            "arrow", wording(self.r, "arrow", d1=d1, d2=d2), f"The arrow is {arrows[0]['color']}.", f"The arrow points {d}.", [f"points {d}"], cap(d)
        )

    def outline(self):
        x, u = self.sole(self.u), self.u
        if not x or u["shape"] == "ring":
            return None
        v = "outlined" if u["outline"] else "filled"
        return Question("outline", wording(self.r, "outline", x=x), "I look at its inside.", f"The {x} is {v}.", [v], cap(v))

    def size(self):
        x = self.sole(self.u)
        if not x:
            return None
        q = wording(self.r, "size", x=x)
        return Question(
            "size", q, f"The {x} is at the {self.place(self.u)}.", f"The {x} is {self.u['size']}.", [f"is {self.u['size']}"], cap(self.u["size"])
        )

    def side(self):
        if self.n < 2:
            return None
        s, far, key = self.r.choice(
            [
                ("leftmost", "on the far left", lambda o: o["x"]),
                ("rightmost", "on the far right", lambda o: -o["x"]),
                ("topmost", "at the very top", lambda o: o["y"]),
                ("lowest", "at the very bottom", lambda o: -o["y"]),
            ]
        )
        by_side = sorted(self.objs, key=key)
        if abs(key(by_side[0]) - key(by_side[1])) < 0.07 * max(self.w, self.h):
            return None
        x = name(by_side[0])
        return Question("side", wording(self.r, "side", s=s, far=far), self.seen, f"The {s} object is the {x}.", [x], cap(x))


WEIGHTS = dict(
    describe=4,
    see=4,
    color=4,
    shape=4,
    count=3,
    count_shape=3,
    count_color=4,
    count_name=1,
    relation=9,
    where=4,
    big=3,
    exists=4,
    background=2,
    arrow=3,
    outline=1,
    size=1.5,
    side=2.5,
)


CROWD = dict(count=3, count_shape=5, count_color=4, count_name=3, exists=1, background=0.5)


def ask(r, sc, skill=None):
    """One question about a scene, or None if the drawn skill does not suit it."""
    if not skill and len(sc["objs"]) > 7:
        skill = r.choices(list(CROWD), list(CROWD.values()))[0]
    skill = skill or r.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    return getattr(Asker(r, sc), skill)()
