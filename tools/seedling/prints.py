"""Pictures with printed words, numbers and bar charts, and the questions about them."""
from PIL import Image, ImageDraw

from paint import COLORS, FONTS, PALETTE, SHAPES, Ground, color_of, fits, font, pick_font, text_mask
from phrases import ask as wording
from scenes import Question
from skills import pseudo
from words import ADJECTIVES, ANIMALS, DAYS, FRUITS, MONTHS, NAMES, NOUNS, NUMBERS, VEGETABLES, CAPITALS, VERBS_PAST, an, cap

SIGNS = """stop exit open closed hello welcome sale free taxi hotel cafe danger push pull yes no enter help bank zoo police post parley seedling
caution private parking entrance ladies gentlemen reception library museum theater restaurant pharmacy hospital airport station platform ticket
menu today special breakfast lunch dinner coffee pizza bakery garage office warning slow school road works keep out wet paint fire alarm lift
stairs toilet women men staff only for rent beware of the dog no smoking happy birthday good morning thank you see you soon merry christmas
please wait here best price new final offer speed limit one way turn left right ahead north south east west quick brown fox the and""".split()
WORDS = sorted(
    set(
        NOUNS
        + ADJECTIVES
        + ANIMALS
        + FRUITS
        + VEGETABLES
        + COLORS
        + SHAPES
        + VERBS_PAST
        + [n.lower() for n in NAMES + DAYS + MONTHS]
        + SIGNS
        + [c.lower() for c in CAPITALS.values() if " " not in c]
        + NUMBERS
    )
)
READ = "\x06"  # encloses what is read letter by letter: see data.Encoder
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def brightness(rgb):
    return rgb[0] * 0.3 + rgb[1] * 0.59 + rgb[2] * 0.11


def random_word(r):
    x = r.random()
    if x < 0.50:
        return r.choice(WORDS)
    if x < 0.58:
        return r.choice(SIGNS)
    if x < 0.78:
        return pseudo(r, 2, 3)
    if x < 0.94:
        return pseudo(r, 3, 5)[:12]
    return "".join(r.choice(LETTERS) for _ in range(r.randint(2, 12)))


def random_text(r):
    """The text of a picture: lines of words, or one number."""
    x = r.random()
    if x < 0.22:
        return [str(r.randrange(10 ** (k - 1) if k > 1 else 0, 10**k)) for k in [r.choices([1, 2, 3, 4, 5, 6, 7], [8, 18, 20, 20, 16, 12, 6])[0]]]
    n = r.choices([1, 2, 3, 4, 5, 6], [52, 28, 11, 5, 2, 2])[0]
    words = [random_word(r) for _ in range(n)]
    if n > 1 and r.random() < 0.12:
        words[r.randrange(n)] = str(r.randrange(10 ** r.randint(1, 3)))
    y = r.random()
    if y < 0.33:
        words = [w.upper() for w in words]
    elif y < 0.55:
        words = [w.title() for w in words]
    elif y < 0.70:
        words[0] = words[0].title()
    per = r.choice([1, 2, 2, 3]) if n > 1 else 1
    return [" ".join(words[i : i + per]) for i in range(0, n, per)]


def text_layer(r, lines, limit):
    """Coverage of the lines, as large as fits into the limits (width, height), at a random share of them."""
    path = pick_font(r)
    f = font(path, 40)
    w40 = max(max(f.getbbox(s)[2], 1) for s in lines)
    gap = r.uniform(1.1, 1.4)
    most = min(40 * limit[0] / w40, limit[1] / (gap * (len(lines) - 1) + 1.0), 120)
    least = min(most, 14 if len(lines) == 1 else 13)
    size = max(9, int(least + (most - least) * r.random() ** 0.8))
    masks = [text_mask(r, s, path, size, k) for k in [r.choice([1, 1, 2, 3])] for s in lines]
    if len(lines) == 1:
        m = masks[0]
    else:
        step = int(size * gap)
        w, h = max(m.size[0] for m in masks), step * (len(lines) - 1) + int(size * 1.3)
        m = Image.new("L", (w, h), 0)
        align = r.choice([0, 0.5, 0.5, 1])
        base = font(path, size).getmetrics()[0]
        for i, (s, mask) in enumerate(zip(lines, masks)):
            top = font(path, size).getbbox(s)[1]
            y = max(0, min(h - mask.size[1], i * step + top - int(base * 0.2)))
            m.paste(mask, (int((w - mask.size[0]) * align), y))
    if r.random() < 0.2:
        m = m.rotate(r.uniform(-6, 6), Image.BICUBIC, expand=True)
    return m


def text_picture(r):
    """A picture with a text: (image, questions)."""
    lines = random_text(r)
    n = max(len(s) for s in lines)
    x = r.random()
    w = int(r.uniform(64, 256)) if x < 0.45 else int(r.uniform(160, 480)) if x < 0.85 else r.randint(320, 640)
    w = max(w, 13 * n)
    h = max(64, int(w * r.uniform(0.34, 0.9)), 22 * len(lines) + 8)
    w, h = min(w, 640), min(h, 600)
    ground = Ground(r, w, h, kind=r.choices(["plain", "noise", "gradient", "tint"], [62, 12, 10, 16])[0])
    image = ground.image
    m = text_layer(r, lines, (w * 0.93 - 4, h * 0.9 - 4))
    if m.size[0] > w - 2 or m.size[1] > h - 2:
        return text_picture(r)
    x0, y0 = r.randint(1, w - m.size[0] - 1), r.randint(1, h - m.size[1] - 1)
    if r.random() < 0.4:  # in the middle
        x0, y0 = (w - m.size[0]) // 2, (h - m.size[1]) // 2
    under = ground.names
    behind = PALETTE[ground.names[0]][0]
    if ground.kind == "tint":
        behind = (255, 255, 255) if ground.text.startswith("light") else (0, 0, 0)
    if r.random() < 0.2:  # on a sign
        panel = r.choice([c for c in COLORS if c not in ground.names])
        under, behind = [panel], PALETTE[panel][0]
        box = [x0 - r.randint(4, 14), y0 - r.randint(4, 14), x0 + m.size[0] + r.randint(4, 14), y0 + m.size[1] + r.randint(4, 14)]
        edge = None if r.random() < 0.6 else r.choice([(0, 0, 0), (255, 255, 255)])
        ImageDraw.Draw(image).rounded_rectangle(box, r.choice([0, 0, 4, 10]), fill=color_of(r, panel), outline=edge, width=r.randint(1, 4))
    good = [c for c in COLORS if fits(c, under) and abs(brightness(PALETTE[c][0]) - brightness(behind)) > 60]
    best = "black" if brightness(behind) > 120 else "white"
    c = best if r.random() < 0.4 or not good else r.choice(good)
    image.paste(color_of(r, c), (x0, y0), m)
    return image, text_questions(r, " ".join(lines), c, ground)


def text_questions(r, t, color, ground):
    number, n = t.isdigit(), len(t.split())
    if number:
        qs = [Question("read_number", wording(r, "read_number"), f"It is written in {color}.", f"The number is {t}.", [f"is {t}."], t)]
    else:
        q = wording(r, "read_text", word="word" if n == 1 else "words", **{"is": "is" if n == 1 else "are"})
        qs = [Question("read_text", q, f"It is written in {color}.", f'The text says "{READ}{t}{READ}".', [f'"{t}"'], f"{READ}{t}{READ}")]
    if r.random() < 0.15:
        qs.append(
            Question(
                "text_color",
                wording(r, "text_color"),
                f"I look at the {'digits' if number else 'letters'}.",
                f"It is written in {color}.",
                [f"in {color}"],
                cap(color),
            )
        )
    if r.random() < 0.08:
        a = ground.answer()
        qs.append(Question("background", wording(r, "background"), "I look at the ground behind the text.", f"The background is {a}.", [f"is {a}"]))
    if r.random() < 0.1 and not number:
        a = f"There {'is' if n == 1 else 'are'} {NUMBERS[n]} word{'' if n == 1 else 's'}."
        qs.append(Question("text_words", wording(r, "text_words"), f"The text says {READ}{t}{READ}.", a, [NUMBERS[n]], cap(NUMBERS[n])))
    if r.random() < 0.08 and not number:
        qs.append(Question("text_first", wording(r, "text_first"), f"The text says {READ}{t}{READ}.", f"The first letter is {t[0]}.", [f"is {t[0]}."], t[0]))
    if r.random() < 0.15:
        what = f"number {t}" if number else f'text "{READ}{t}{READ}"'
        on = an(ground.text) if ground.kind != "gradient" else "a gradient"
        qs.insert(
            0,
            Question(
                "describe_text", wording(r, "describe_text"), "There is a text.", f"The picture shows the {what} in {color} on {on} background.", [t]
            ),
        )
    return qs


# ---------------------------------------------------------------- charts
def chart_labels(r, n):
    x = r.randrange(13)
    if x > 7:  # any words, also made-up ones, so that they must be read
        words = [random_word(r)[:8] for _ in range(n)] if x < 11 else [f"{r.choice('QTKGLP')}{i + 1}" for i in range(n)] if x == 11 else r.sample(WORDS, n)
        return [w.title() for w in words] if r.random() < 0.5 else words
    if x < 3:
        return list("ABCDEF")[:n]
    if x == 3:
        return r.sample(FRUITS, n)
    if x == 4:
        s = r.randrange(12 - n)
        return [m[:3] for m in MONTHS][s : s + n]
    if x == 5:
        return [d[:3] for d in DAYS][:n]
    if x == 6:
        return r.sample(NAMES[:26], n)
    if r.random() < 0.5:
        s = r.randint(1990, 2026)
        return [str(s + i) for i in range(n)]
    return r.sample([w.title() for w in ANIMALS + FRUITS + VEGETABLES if len(w) < 7], n)


def chart_picture(r):
    """A bar chart: (image, questions)."""
    n = r.choices([2, 3, 4, 5, 6], [15, 30, 28, 20, 7])[0]
    w, h = (r.randint(150, 420), r.randint(140, 360)) if r.random() < 0.5 else (r.randint(300, 620), r.randint(240, 460))
    w = min(w, 3 * h)
    ground = r.choice(["white"] * 8 + ["gray", "black"])
    back = color_of(r, ground, 6) if ground != "gray" else (225, 225, 230)
    ink = (235, 235, 235) if ground == "black" else r.choice([(20, 20, 20), (0, 0, 0), (60, 60, 60)])
    image = Image.new("RGB", (w, h), back)
    d = ImageDraw.Draw(image)
    labels = chart_labels(r, n)
    values = r.sample(range(1, r.choice([11, 21, 51, 100, 100])), n) if r.random() < 0.93 else r.sample(range(100, 999), n)
    top = max(values)
    usable = [c for c in COLORS if c not in ("white", "yellow", "gray", ground)]
    colors = r.sample(usable, n) if r.random() < 0.65 else [r.choice(usable)] * n
    path = pick_font(r)
    left = r.randint(6, 40)
    slot = (w - left - 8) / n
    size = max(11, min(int(r.uniform(13, 30)), int(h * 0.12), w // (n * 4)))
    while size > 9 and max(font(path, size).getbbox(s)[2] for s in labels) > slot * 0.95:
        size -= 1
    if max(font(path, size).getbbox(s)[2] for s in labels) > slot:
        return chart_picture(r)  # the labels would lie on one another
    k = r.choice([1, 1, 2])
    title = r.random() < 0.15 and h > 180
    head = size + 8 + (size + 8 if title else 0)
    base = h - size - r.randint(8, 14)
    axis = nice_top(r, top) if r.random() < 0.55 else 0  # numbers at the left, up to this one
    shown = r.random() < (0.25 if axis else 0.95)
    steps = r.choice([4, 5]) if axis else 4
    if axis:
        left = max(left, int(font(path, max(9, size - 3)).getbbox(str(axis))[2]) + 12)
        slot = (w - left - 8) / n
    full = axis or top
    fill = r.uniform(0.45, 0.85)
    edge = ink if r.random() < 0.15 else None
    if r.random() < (0.7 if axis else 0.2):  # lines across
        for i in range(1, steps + 1):
            y = base - (base - head) * i / steps
            d.line([left, y, w - 4, y], fill=(200, 200, 200) if ground != "black" else (70, 70, 70))

    def write(text, x, y, size=size):
        m = text_mask(r, text, path, size, k)
        image.paste(ink, (int(x - m.size[0] / 2), int(y)), m)
        return m.size[1]

    rgb = {c: color_of(r, c, 8) for c in colors}
    for i, v in enumerate(values):
        mid = left + (i + 0.5) * slot
        y = base - (base - head) * v / full
        d.rectangle([mid - slot * fill / 2, y, mid + slot * fill / 2, base], fill=rgb[colors[i]], outline=edge)
        write(labels[i], mid, base + 4)
        if shown:
            write(str(v), mid, y - size * 0.8 - 3)
    for i in range(steps + 1) if axis else ():
        small = max(9, size - 3)
        tick = axis * i / steps
        text = str(int(tick)) if tick == int(tick) else f"{tick:.1f}"
        write(text, left - 6 - font(path, small).getbbox(text)[2] / 2, base - (base - head) * i / steps - small * 0.4, small)
    if r.random() < 0.85:
        d.line([left - 3, base, w - 4, base], fill=ink, width=r.randint(1, 2))
    if r.random() < 0.3:
        d.line([left - 3, base, left - 3, head - 4], fill=ink, width=r.randint(1, 2))
    if title:
        write(r.choice(["Sales", "Results", "Points", "Chart", "Votes", "Animals", "Score"]), w / 2, 4)
    return image, chart_questions(r, labels, values, colors, shown, axis)


def nice_top(r, top):
    """The number at the top of an axis for values up to top."""
    return next(v for v in (5, 8, 10, 20, 25, 40, 50, 60, 80, 100, 120, 200, 250, 400, 500, 800, 1000, 1200) if v >= top)


def chart_questions(r, labels, values, colors, shown, axis=0):
    n, top = len(values), max(values)
    hi, lo, j = values.index(top), values.index(min(values)), r.randrange(n)
    known = shown or axis
    spelled = [f"{READ}{l}{READ}" for l in labels]
    listed = lambda names: ", ".join(f"{l} {v}" for l, v in zip(names, values)) if known else ", ".join(names)
    desc, must = listed(spelled), listed(labels)
    th = f"The bars are {desc}."
    qs = [
        Question("chart_tallest", wording(r, "chart_tallest"), th, f"The tallest bar is {spelled[hi]}.", [f"is {labels[hi]}."], spelled[hi]),
        Question("chart_lowest", wording(r, "chart_lowest"), th, f"The shortest bar is {spelled[lo]}.", [f"is {labels[lo]}."], spelled[lo]),
        Question(
            "chart_count",
            wording(r, "chart_count"),
            f"The bars are {', '.join(spelled)}.",
            f"There are {NUMBERS[n]} bars.",
            [NUMBERS[n]],
            cap(NUMBERS[n]),
        ),
    ]
    if known:
        about = "" if shown else "about "
        for k in {j, r.randrange(n)}:
            qs += [
                Question(
                    "chart_value",
                    wording(r, "chart_value", l=labels[k]),
                    th,
                    f"The bars are {desc}. The value of {spelled[k]} is {about}{values[k]}.",
                    [f"is {values[k]}."] if shown else [],
                    str(values[k]),
                )
            ] * 3
    if len(set(colors)) == n:
        qs.append(
            Question(
                "chart_color",
                wording(r, "chart_color", l=labels[j]),
                f"I look at the bar {spelled[j]}.",
                f"The bar {spelled[j]} is {colors[j]}.",
                [f"is {colors[j]}"],
                cap(colors[j]),
            )
        )
    if r.random() < 0.4:
        a, b = r.sample(range(n), 2)
        yes = values[a] > values[b]
        t = f"{spelled[a]} is {'higher' if yes else 'lower'} than {spelled[b]}."
        qs.append(
            Question(
                "chart_compare",
                wording(r, "chart_compare", l=labels[a], k=labels[b]),
                th,
                f"{'Yes' if yes else 'No'}, {t}",
                ["Yes" if yes else "No"],
                "Yes" if yes else "No",
            )
        )
    if r.random() < 0.3:
        qs.append(
            Question("chart_label", wording(r, "chart_label"), "I read below the bars.", f"The labels are {', '.join(spelled)}.", [", ".join(labels)])
        )
    if r.random() < 0.6:
        qs.append(
            Question("describe_chart", wording(r, "describe_chart"), "It is a bar chart.", f"A bar chart with {NUMBERS[n]} bars: {desc}.", [must] if shown or not axis else [])
        )
    r.shuffle(qs)
    seen, out = set(), []
    for q in qs:
        if q.text not in seen:
            seen.add(q.text)
            out.append(q)
    return out[: r.randint(1, 4)]
