"""JSON over questions that are no forms: a fact, a sum, a list, something that cannot be known. Short values, and then the end (see forms.py)."""
import re

import forms
from newcomer import LISTS, cannot, newcomer, smalltalk
from phrases import spread
from skills import one, pseudo
from words import *
from writers import voice

FACTS_OF = "capital opposite plural fact thing_color animal arithmetic units sides calendar compare word_length parity number_word unknown identity choose".split()
MAIN = "answer result value reply response text output solution message content".split()
NAMED = dict(capital=["capital", "city", "country"], opposite=["opposite", "word"], plural=["plural", "word"], thing_color=["color", "colour"], animal=["animal", "sound", "name"], arithmetic=["result", "sum", "number", "total"], units=["value", "amount"], sides=["sides", "count"], number_word=["word", "number"], word_length=["letters", "length"])
SIDE = {  # keys beside the answer, and what is written there
    "explanation reason reasoning why because comment note details description": lambda r, a: a if len(a) < 90 and r.random() < 0.6 else r.choice(["It is well known.", "That is how it is.", "I learnt it so.", "This is a known fact."]),
    "confidence certainty probability score": lambda r, a: r.choice([0.9, 0.95, 0.8, 1, 0.7]),
    "correct ok is_true known valid found sure": lambda r, a: r.random() < 0.8,
    "question topic subject query title": lambda r, a: r.choice(["a question", "general knowledge", "a fact", "words", "numbers", "nature"]),
    "source reference": lambda r, a: r.choice(["general knowledge", "my training", "none"]),
    "category kind type field": lambda r, a: r.choice(["fact", "math", "geography", "nature", "language", "general"]),
    "language lang": lambda r, a: r.choice(["English", "en"]),
    "unit units": lambda r, a: r.choice(["none", "pieces", "letters", "meters"]),
    "length count words year number": lambda r, a: r.randint(1, 30),
    "date": lambda r, a: forms.date(r),
    "tags keywords labels": lambda r, a: r.sample(["fact", "short", "simple", "words", "nature", "math", "help"], r.choice([1, 2, 2, 3])),
}
SIDE = {k: f for keys, f in SIDE.items() for k in keys.split()}
DONT = ["I don't know.", "unknown", "I do not know.", "not known", "I cannot know that."]
PAIRS = [  # key pairs, what is asked, and the true rows
    (("country", "capital"), "{countries with their capitals|countries and capitals|capitals of the world}", [(cap(a), b) for a, b in list(CAPITALS.items())]),
    (("thing", "color"), "{things and their colors|things with a color}", [("grass", "green"), ("snow", "white"), ("coal", "black"), ("lemon", "yellow"), ("cherry", "red"), ("carrot", "orange"), ("sky", "blue")]),
    (("animal", "legs"), "{animals and how many legs they have|animals with their legs}", [(a, n) for a, n in LEGS.items()]),
    (("word", "opposite"), "{words with their opposites|opposites|pairs of opposites}", list(OPPOSITES.items())),
    (("shape", "sides"), "{shapes and their sides|shapes with the number of sides}", list(SIDES.items())),
    (("day", "number"), "{the days of the week|weekdays with numbers}", [(d, i + 1) for i, d in enumerate(DAYS)]),
]
LONG = {"planets": PLANETS, "days": DAYS, "months": MONTHS, "seasons": SEASONS, "numbers": list(range(1, 11)), "continents": "Africa Asia Europe Australia Antarctica".split(), "letters": list("ABCDEFG")}


def extras(r, a, n):
    """n keys beside the answer, with short values."""
    found = {}
    for _ in range(n):
        x = r.random()
        if x < 0.75:
            k = r.choice(list(SIDE))
            found[k] = SIDE[k](r, a)
        elif x < 0.9:
            k = r.choice(list(forms.MAKERS))
            found[k] = forms.value(r, k, 1)
        else:
            found[pseudo(r, 1, 3) if r.random() < 0.5 else f"{r.choice(ADJECTIVES)}_{r.choice(NOUNS)}"] = r.choice([r.choice(NOUNS), "none", r.randint(0, 20), r.random() < 0.5])
    return found


def known(r):
    """A question that has an answer, and a short form of it."""
    name, q, _, a, must = one(r, r.choice(FACTS_OF))
    if "capital of france" in q.lower() or "romeo" in q.lower():  # asked by tests/eval
        return known(r)
    if name == "unknown":
        return q, "answer", r.choice(DONT), "I am a very small model."
    short = re.sub("^(is|has|are) ", "", must[-1]).strip() if must and len(must[-1]) < 40 else a
    if a.startswith(("Yes", "No")):
        return q, r.choice(["answer", "result", "correct", "is_true"]), r.choice([a.startswith("Yes"), a.split(",")[0].lower()]), a
    if str(short).lstrip("-").isdigit() and r.random() < 0.6:
        short = int(short)
    return q, r.choice(NAMED.get(name, MAIN) + MAIN[:3]), short if r.random() < 0.8 else a, a


def sheet(r):
    """One filled form: (question, reasoning, answer, must)."""
    x = r.random()
    if x < 0.38:
        q, key, short, a = known(r)
        fields = {key: short, **{k: v for k, v in extras(r, a, r.choice([0, 1, 1, 1, 2, 3])).items() if k != key}}
    elif x < 0.52:  # what is not known
        q, _, a, _ = cannot(r)
        fields = {r.choice(MAIN): r.choice(DONT + [a.split(". ")[0] + "."]), **extras(r, "I am a very small model.", r.choice([0, 1, 1, 2, 3]))}
    elif x < 0.62:  # small talk
        q, _, a, _ = smalltalk(r)
        fields = {r.choice(MAIN): a.split("\n")[0], **extras(r, "I am glad to talk.", r.choice([0, 0, 1, 2]))}
    elif x < 0.74:  # anything at all, and keys that do not belong to it
        q = newcomer(r)[0].split("\n")[0]
        fields = extras(r, "It is so.", r.choice([1, 2, 3, 4]))
    elif x < 0.88:  # a list of things, alone or under a key
        if r.random() < 0.65:
            name, items = r.choice(list(LISTS.items()))
            n = r.randint(1, min(5, len(items)))
            chosen = r.sample(items, n) if r.random() < 0.5 else items[:n]
        else:
            name, chosen = r.choice(list(LONG.items()))
            n = r.choice([len(chosen), r.randint(1, len(chosen))])
            chosen = chosen[:n]
        said = r.choice([str(n), NUMBERS[n], "some", "a few", "the"])
        q = spread(r, r.choice([f"{{List|Name|Give me|Tell me|Say|I need|Which are|What are}} {said} {name}{{.|?| please|}}", f"{{A|Please a|I want a}} list of {said} {name}", f"{cap(said)} {name}{{.||, please}}", f"{cap(name)}{{?||, please}}"]))
        fields = chosen if r.random() < 0.55 else {r.choice([name.split(" ")[-1].lower(), "items", "list", "answer", "names", "result"]): chosen}
        if isinstance(fields, dict) and r.random() < 0.25:
            fields["count"] = n
    else:
        keys, asked, rows = r.choice(PAIRS)
        n = r.randint(1, min(5, len(rows)))
        chosen = [dict(zip(keys, row)) for row in r.sample(rows, n)]
        q = spread(r, f"{{List|Give me|Name|Show me|I want}} {{{n}|{NUMBERS[n]}|some}} {asked}{{.||, please}}")
        fields = chosen if r.random() < 0.4 else {r.choice(["items", "rows", "entries", "list", keys[0] + "s", "result"]): chosen} if n > 1 or r.random() < 0.4 else chosen[0]
    if r.random() < 0.4:
        q = voice(r, q)
    if r.random() < 0.12:
        q += " " + r.choice(["Answer in JSON.", "As JSON please.", "Use JSON.", "Fill in the form.", "Keep it brief."])
    pad = "  " if r.random() < 0.03 else None
    sep, kv = r.choice([(", ", ": ")] * 19 + [(",", ":")])
    return q, "I fill in the form, briefly.", forms.written(fields, sep, kv, 0, pad), []
