"""Conversations about pictures: one picture, two pictures, system prompts, follow-ups.

A sample is {"skill", "messages", "must", "thinking", "media", "tools"}; media is a list of
("image", uint8 array [h, w, 3]) or ("video", [frames], fps, times in seconds).
"""
import numpy as np
from PIL import Image

import prints
import scenes
import solids
import typed
from helpdesk import help_topic
from newcomer import newcomer, smalltalk
from paint import COLORS, SHAPES, Ground, color_of, fits, wear
from phrases import ask as wording
from phrases import casual
from scenes import Question, join, name
from skills import one
from turns import color_rule, in_language
from words import NUMBERS, an, cap



def two_pictures(r):
    """Two pictures and one or two questions about both."""
    size = (r.randint(80, 300), r.randint(80, 300))
    sc = scenes.scene(r, *size, few=True)
    a = sc["objs"]
    kind = r.choice(["more", "more", "same", "same", "differs", "differs", "differs", "each", "each"])
    if kind in ("more", "each"):
        if r.random() < 0.5:
            size = (r.randint(80, 300), r.randint(80, 300))
        other = scenes.scene(r, *size, few=True)
        b = other["objs"]
        pair = [sc, other]
        ask = [lambda: more(r, len(a), len(b))] if kind == "more" else []
        ask += [lambda: each(r, pair), lambda: counted(r, pair), lambda: colored(r, pair), lambda: which(r, pair), lambda: total(r, len(a), len(b))]
        qs = [ask[0]()] + [f() for f in r.sample(ask[1:], 1) if r.random() < 0.4]
        if kind == "each":
            qs = [f() for f in r.choices(ask, [4, 2, 3, 3, 1], k=r.choice([1, 1, 2]))]
        qs = [q for q in qs if q] or [each(r, pair)]
        return [scenes.render(r, sc), scenes.render(r, other)], qs
    b = [dict(o) for o in a]
    change = kind == "differs" or r.random() < 0.5
    th, answer, must = difference(r, sc, b) if change else ("Nothing differs.", "Nothing, the pictures are the same.", ["Nothing"])
    if kind == "same":
        text = wording(r, "two_same")
        if "any difference" in text:
            answer, must = (f"Yes. {answer}", ["Yes"]) if change else ("No, they are the same.", ["No"])
        else:
            answer, must = (f"No. {answer}", ["No"]) if change else ("Yes, they are the same.", ["Yes"])
        q = Question("two_same", text, th, answer, must)
    else:
        q = Question("two_differ", wording(r, "two_differ"), th, answer, must)
    return [scenes.render(r, sc), scenes.render(r, sc, b)], [q]


def difference(r, sc, objs):
    """Changes one object of the list; gives reasoning, answer and what it must contain."""
    i = r.randrange(len(objs))
    o = objs[i]
    x = r.random()
    if x < 0.42:
        c = r.choice([c for c in COLORS if fits(c, sc["ground"].names) and c != o["color"]] or ["gray"])
        th = f"The {o['shape']} is {o['color']} in the first and {c} in the second."
        a, must = f"The {o['shape']} changes from {o['color']} to {c}.", [f"from {o['color']} to {c}"]
        o.update(color=c, rgb=color_of(r, c), stroke=None)
    elif x < 0.7 and len(objs) > 1:
        objs.pop(i)
        th = f"The {name(o)} is only in the first."
        a, must = f"The {name(o)} is missing in the second picture.", [name(o) + " is missing"]
    else:
        s = r.choice([s for s in SHAPES if s not in (o["shape"], "arrow")])
        th = f"The {name(o)} became {an(s)}."
        a, must = f"The {name(o)} is {an(s)} in the second picture.", [name(o), s]
        o.update(shape=s, turn=0, outline=o["outline"] and s != "ring")
    return th, a, must


def more(r, a, b):
    answer = "Both have the same number of objects." if a == b else f"The {'first' if a > b else 'second'} picture has more objects."
    must = ["Both" if a == b else "first" if a > b else "second"]
    return Question(
        "two_more", wording(r, "two_more"), f"The first picture has {NUMBERS[a]}, the second has {NUMBERS[b]}.", answer, must, cap(must[0])
    )


def nth(r, pair):
    i = r.randrange(2)
    w = ["first", "second"][i]
    return i, pair[i]["objs"], dict(nth=w, Nth=cap(w))


def each(r, pair):
    _, objs, names = nth(r, pair)
    objs = sorted(objs, key=lambda o: o["x"])
    return Question(
        "two_each",
        wording(r, "two_each", **names),
        "I look at that picture only.",
        f"I see {join([an(name(o)) for o in objs])}.",
        [name(o) for o in objs],
    )


def counted(r, pair):
    _, objs, names = nth(r, pair)
    a = scenes.there(len(objs), "object")
    return Question("two_count", wording(r, "two_count", **names), "I look at that picture only.", a + ".", [a], cap(NUMBERS[len(objs)]))


def total(r, a, b):
    t = scenes.there(a + b, "object")
    return Question(
        "two_total", wording(r, "two_total"), f"The first picture has {NUMBERS[a]}, the second has {NUMBERS[b]}.", t + ".", [t], cap(NUMBERS[a + b])
    )


def colored(r, pair):
    _, objs, names = nth(r, pair)
    o = r.choice(objs)
    if [x["shape"] for x in objs].count(o["shape"]) != 1:
        return None
    q = wording(r, "two_color", x=o["shape"], **names)
    return Question("two_color", q, "I look at that picture only.", f"The {o['shape']} is {o['color']}.", [f"is {o['color']}"], cap(o["color"]))


def which(r, pair):
    i, objs, _ = nth(r, pair)
    x = name(r.choice(objs)) if r.random() < 0.7 else r.choice(objs)["shape"]
    if any(x in (name(o), o["shape"]) for o in pair[1 - i]["objs"]):
        return None
    w = ["first", "second"][i]
    return Question("two_which", wording(r, "two_which", ax=an(x)), "I look at both pictures.", f"The {w} picture contains {an(x)}.", [w], cap(w))


def no_objects(r):
    """An empty picture, or one that is not drawn."""
    w, h = r.randint(64, 400), r.randint(64, 400)
    w, h = min(w, 3 * h), min(h, 3 * w)
    q = wording(r, r.choice(["see", "describe"]))
    if r.random() < 0.5:
        ground = Ground(r, w, h, kind=r.choice(["plain", "noise"]))
        return [ground.image], [Question("see", q, "There is no object.", f"The picture is empty: only {an(ground.text)} background.", ["empty"])]
    a = np.random.default_rng(r.randrange(1 << 30)).integers(0, 256, (r.randint(3, 9), r.randint(3, 9), 3), dtype=np.uint8)
    return [Image.fromarray(a).resize((w, h), Image.BICUBIC)], [Question("see", q, "I find no drawn shape.", solids.claim(r, a), ["know drawings only"])]


KINDS = dict(scene=50, text=27, chart=12, two=10.5, empty=0.5)


def picture_sample(r, kind=None, skill=None, turns=None):
    """One conversation about one or two pictures; skill and turns pin the questions for measurements."""
    kind = kind or r.choices(list(KINDS), list(KINDS.values()))[0]
    if kind == "crowd":
        images, qs = scene_questions(r, skill or r.choice(["count", "count_shape", "count_shape", "count_color", "count_name", None]), turns or r.choice([1, 2, 2, 3]), scenes.crowd(r))
    elif kind == "solid":
        images, qs = solids.solid_picture(r)
    elif kind == "scene":
        images, qs = scene_questions(r, skill, turns or r.choice([1, 2, 3, 3, 4, 5]))
    elif kind == "text":
        image, qs = prints.text_picture(r)
        images = [image]
    elif kind == "chart":
        image, qs = prints.chart_picture(r)
        images = [image]
    elif kind == "two":
        images, qs = two_pictures(r)
    else:
        images, qs = no_objects(r)
    if skill:
        qs = [q for q in qs if q.skill == skill][:1]
    if not qs:
        return picture_sample(r, kind, skill, turns)
    media = [("image", wear(r, np.asarray(i))) for i in images]
    return dialog(r, media, qs[:turns] if turns else qs, plain=bool(turns))


def scene_questions(r, skill, n, sc=None):
    sc = sc or scenes.scene(r)
    while not sc["objs"]:
        sc = scenes.scene(r)
    qs = []
    for _ in range(60):
        q = scenes.ask(r, sc, skill)
        if q and q.text not in [p.text for p in qs]:
            qs.append(q)
        if len(qs) >= n:
            break
    return [scenes.render(r, sc)] if qs else [], qs


# ---------------------------------------------------------------- conversations
SYSTEMS = [
    "You are Seedling, a helpful assistant.",
    "You are a helpful assistant.",
    "Look closely.",
    "Be helpful.",
    "You answer questions about pictures.",
    "Answer briefly.",
    "You are a friendly assistant.",
    "You are Seedling, the demonstration model of Parley.",
    "Describe what you see truthfully.",
]
STYLES = [
    ("Answer in upper case.", str.upper),
    ("Always answer in capital letters.", str.upper),
    ("Answer in lower case.", str.lower),
    ("Write everything in uppercase.", str.upper),
    ("Answer like a pirate.", lambda a: f"Arr! {a} Ahoy, matey!"),
    ("You are a pirate.", lambda a: f"Arr! {a} Ahoy, matey!"),
    ("Thank the user first.", lambda a: f"Thank you for asking. {a}"),
]
ONE_WORD = ["Answer in one word.", "Answer with one word only.", "Be as short as possible."]
ONE_WORD_TAILS = [
    " Answer in one word.",
    " One word.",
    " One word only.",
    " Just one word please.",
    " Answer with one word.",
    " Short answer please.",
    " Only the answer.",
]


def content(r, media, q):
    """The parts of a user message: pictures before, after or around the text."""
    parts = [{"type": m[0]} for m in media]
    if len(parts) == 2 and r.random() < 0.3:
        between = r.choice([" and ", " ", "\n", " vs "])
        parts = [parts[0], {"type": "text", "text": between}, parts[1]]
    x = r.random()
    if x < 0.18:
        return [{"type": "text", "text": q + r.choice([" ", "\n", "", "\n\n"])}] + parts
    if x < 0.26:
        return parts + [{"type": "text", "text": r.choice(["\n", " "]) + q}]
    return parts + [{"type": "text", "text": q}]


def talked(r):
    """Something else than the image: small talk, help, a skill."""
    x = r.random()
    return smalltalk(r) if x < 0.3 else help_topic(r) if x < 0.5 else one(r)[1:]


def dialog(r, media, qs, plain=False):
    """Joins media and questions into a conversation. plain: one question and nothing around it."""
    style, system = None, None
    if not plain and r.random() < 0.05:
        system, style = r.choice(STYLES)
    elif not plain and r.random() < 0.04:
        system, lang = color_rule(r)
        style = lambda text: in_language(text, lang)
    short = not plain and not style and r.random() < 0.04 and all(q.short for q in qs)
    if short:
        system = r.choice(ONE_WORD)
    messages, must = [], qs[-1].must
    if not plain and r.random() < 0.06:  # small talk first, the picture later
        q, t, a, _ = newcomer(r) if r.random() < 0.4 else one(r)[1:]
        messages += [{"role": "user", "content": q}, {"role": "assistant", "content": a, "reasoning_content": t}]
        style = short = system = None
    for i, q in enumerate(qs):
        text, answer, must = casual(r, q.text, shout=True), q.answer, q.must
        if style:
            answer, must = style(answer), must if "!" in style("") or "Thank" in style("") else [style(m) for m in must]
        elif short:
            answer = q.short
        elif q.short and not plain and r.random() < 0.06:
            text, answer = text.rstrip() + r.choice(ONE_WORD_TAILS), q.short
        messages += [
            {"role": "user", "content": content(r, media, text) if i == 0 else text},
            {"role": "assistant", "content": answer, "reasoning_content": q.think},
        ]
    if not plain and not style and not short and r.random() < 0.16:  # then something else
        for _ in range(r.choice([1, 1, 2])):
            q, t, a, must = talked(r)
            if typed.begins(a):
                continue
            messages += [{"role": "user", "content": q}, {"role": "assistant", "content": a, "reasoning_content": t}]
    if not system and r.random() < 0.15:
        system = r.choice(SYSTEMS)
    if system:
        messages.insert(0, {"role": "system", "content": system})
    return dict(skill=qs[-1].skill, messages=messages, must=must, thinking=r.random() < 0.28, media=media, tools=None)
