"""Tools with the questions that people type for them (typed/tools*.txt): most are such as are refused where no tool is given.

A block is a line "= names | descriptions | parameters | answers => results | subjects", lines of questions and a line "!" of questions of the same subject that the
tool does not answer. A question holds its values: <1:Oslo> is the value of parameter 1, kept or drawn anew of its kind; <2=on:switch on> is the value "on" said
as "switch on", always kept. Near questions without " -> " share the next answer. Tools that share no subject never fit the same question.

usage: tools_typed.py      checks all blocks, prints how many there are and some samples
"""
import json
import os
import random
import re
import sys

from phrases import spread
from skills import pseudo
from toolbox import HELD, VALUES, shown, split_name, typed, value
from words import cap

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "typed")
MARK = re.compile(r"<(\d)(?:=([^:>]*))?:([^>]*)>")
KEPT = dict(quote=0.6, item=0.5, thing=0.5, topic=0.5, title=0.5, dish=0.5, word=0.5, unit=0.5, path=0.4, formula=0.4)  # how often a value is that of the text
NUMBERS = ("int", "float", "hour", "minute")
TECHNICAL = {"builds", "databases", "servers", "logs", "code", "issues", "versions"}  # subjects of which nothing is asked that nobody can know

OWN = {"calculation", "units", "translation", "language_names", "spelling", "synonyms", "dictionary", "random", "coin_toss", "passwords", "jokes", "quizzes"}  # what is tried without a tool, too


class Block:
    def __init__(s, text):
        head, *lines = text.split("\n")
        names, descriptions, params, answers, subjects = [x.strip() for x in head.removeprefix("=").split(" | ")]
        s.names, s.descriptions, s.subjects = names.split(), [d.strip() for d in descriptions.split(" / ")], subjects.split()
        s.params = []  # (keys, kind, whether it may be left out)
        for p in filter(None, (p.strip() for p in params.strip("-").split(";"))):
            keys, kind = p.split(":", 1)
            s.params.append((keys.split("/"), kind.removesuffix("?"), kind.endswith("?")))
        s.answers, s.results = ([x.strip() for x in part.split(" / ")] for part in answers.split("=>"))
        s.questions = [q.strip() for line in lines if not line.startswith("!") for q in line.split("|")]
        s.near, waiting = [], []  # (question, answer)
        for part in (p for line in lines if line.startswith("!") for p in line[1:].split("|")):
            q, _, a = part.partition("->")
            waiting.append(q.strip())
            if a:
                s.near += [(q, a.strip()) for q in waiting]
                waiting = []


def blocks():
    files = sorted(f for f in os.listdir(HERE) if re.fullmatch(r"tools\d*\.txt", f))
    return [Block(b) for f in files for b in open(os.path.join(HERE, f), encoding="utf-8").read().strip().split("\n\n")]


BLOCKS = blocks()


def given(kind, text):
    """The value of a kind that a text writes."""
    if kind in NUMBERS:
        return float(text) if "." in text else int(text)
    if kind in ("onoff", "lock"):
        return text in ("on", "true", "yes", "lock")
    return re.split(r", and |, | and ", text) if kind.startswith("list(") else text


def fresh(r, kind, text):
    """A value instead of the one in the text: of the same size if a number, in small letters if that was."""
    if kind in ("int", "float"):
        old = float(text)
        new = r.randint(1, 12) if old < 10 else r.randint(10, 99) if old < 100 else r.randint(100, 999) if old < 1000 else r.randint(1000, 9999)
        return round(new + r.random(), 1) if "." in text else new
    v = value(r, kind)
    return v.lower() if isinstance(v, str) and kind in ("place", "name", "code", "title") and text.islower() else v


def schema(r, b):
    """A tool of a block with names, keys and descriptions of many: (tool, keys)."""
    x = r.random()
    name = r.choice(b.names)
    name = split_name(r, name) if x < 0.84 else pseudo(r, 1, 3) if x < 0.89 else f"{name.split('_')[0]}_{pseudo(r, 1, 2)}" if x < 0.95 else f"{pseudo(r, 1, 2)}_{name.split('_')[-1]}"
    keys, props, required, described = [], {}, [], r.random() < 0.45
    for options, kind, optional in b.params:
        k = options[0] if r.random() < 0.35 else r.choice(options) if r.random() < 0.94 else pseudo(r, 1, 2)
        while k in props:
            k += "_2"
        keys.append(k)
        props[k] = typed(r, value(r, kind), kind)
        if described or r.random() < 0.1:
            props[k]["description"] = spread(r, f"{{The |}}{r.choice(options).replace('_', ' ')}{', if wanted' if optional and r.random() < 0.3 else ''}")
        if not optional:
            required.append(k)
    parameters = {"type": "object", "properties": props, "required": required}
    return {"type": "function", "function": {"name": name, "description": r.choice(b.descriptions), "parameters": parameters}}, keys


def asked(r, b):
    """A question of a block and its values by the parameter's number."""
    form, values, out, at = r.choice(b.questions), {}, "", 0
    keep = r.random() < 0.25
    for m in MARK.finditer(form):
        i, kind = int(m[1]) - 1, b.params[int(m[1]) - 1][1]
        fixed = m[2] is not None
        if fixed or kind.startswith("one(") or keep or r.random() < KEPT.get(kind, 0.1):
            values[i], said = given(kind, m[2] if fixed else m[3]), m[3]
        else:
            values[i] = fresh(r, kind, m[3])
            said = shown(values[i], kind, r)
        out += form[at : m.start()]
        if not fixed:
            out = re.sub(r"\b([Aa])n? $", lambda a: a[1] + ("n " if said[:1].lower() in "aeio" else " "), out)
        out += said
        at = m.end()
    q = re.sub(r"\b(on|this) (today|tomorrow)\b", r"\2", out + form[at:])
    x = r.random()
    return (cap(q) if x < 0.15 and form[0] != "<" else q.rstrip("?.!") or q) if x < 0.22 else q, values


def varied(r, text):
    """A result with other numbers and times of the day."""
    if r.random() < 0.25:
        return text
    digits = lambda n: str(r.randint(10 ** (len(n) - 1) if len(n) > 1 else 1, 10 ** len(n) - 1))
    return re.sub(r"\d+:\d\d\b|[1-9]\d*", lambda m: f"{r.randint(0, 23)}:{r.randint(0, 59):02d}" if ":" in m[0] else digits(m[0]), text)


def answered(r, b):
    """A tool's response and what is said after it."""
    result = varied(r, r.choice(b.results))
    response = result if r.random() < 0.6 else json.dumps(r.choice([{"result": result}, {"status": "ok", "data": result}, {"ok": True, "text": result}]))
    return response, cap(r.choice(b.answers).replace("{r}", result)), [result]


def call(r, b):
    tool, keys = schema(r, b)
    q, values = asked(r, b)
    args = {keys[i]: values[i] for i in sorted(values)}
    for k, v in args.items():  # the question may bring a whole number or one with a point
        if isinstance(v, float):
            tool["function"]["parameters"]["properties"][k]["type"] = "number"
    return (tool, q, args, *answered(r, b))


def natural(r):
    """One tool with a question: (tool, question, arguments, response, answer, must), as toolbox.natural_call."""
    b = r.choice(BLOCKS)
    made = call(r, b)
    return natural(r) if made[0]["function"]["name"] in HELD else made


def strangers(r, b, n, technical=False):
    """n tools of which none fits the questions of block b (or, technical, any question about the world); often they stand near it in the file."""
    tools, used, taken = [], [], set(b.subjects if b else [])
    at = BLOCKS.index(b) if b else 0
    while len(tools) < n:
        o = BLOCKS[(at + r.randint(-8, 8)) % len(BLOCKS)] if b and r.random() < 0.3 else r.choice(BLOCKS)
        if o in used or "any" in o.subjects or taken & set(o.subjects) or technical and not TECHNICAL & set(o.subjects):
            continue
        t, _ = schema(r, o)
        if all(t["function"]["name"] != u["function"]["name"] for u in tools) and t["function"]["name"] not in HELD:
            tools.append(t)
            used.append(o)
    return tools


def several(r):
    """One to five tools, of which one fits: (tools, question, arguments, response, answer, name of that tool)."""
    b = r.choice(BLOCKS)
    t, q, args, response, a, _ = call(r, b)
    name = t["function"]["name"]
    tools = strangers(r, b, r.choice([0, 0, 1, 1, 2, 3, 4])) if "any" not in b.subjects else []
    if name in HELD or any(u["function"]["name"] == name for u in tools):
        return several(r)
    tools.insert(r.randrange(len(tools) + 1), t)
    return tools, q, args, response, a, name


def near_miss(r):
    """A tool and a question near it that it does not answer: (tools, question, answer)."""
    b = r.choice([b for b in BLOCKS if b.near])
    t, _ = schema(r, b)
    if t["function"]["name"] in HELD:
        return near_miss(r)
    return [t], *r.choice(b.near)


NO_TOOL = """{I have no tool for <s>|There is no tool for <s> among {mine|those I was given}|None of my tools is for <s>|My tools are for other things than <s>|I was given no tool for <s>}{, so I cannot help with that|, sorry|}.{| With a fitting one I could.| A program can give me one through the API.}|
{Sorry, none|None} of the tools {here|I have} {can tell me that|is made for that|does that|covers that}{, and I cannot know it myself|, and without one I can't do it|}.|
{I have no tool for that|I have tools here, but none for that|The tools I was given do something else|That needs another tool than those I have}{, so I {can't say|cannot do it|have to pass}|, sorry|}.{| Through the API you can give me a fitting one.}|
{I cannot do that with what I have|That is beyond my tools}: <n> {is for something else|does not help here|has nothing to do with it}."""


def other_tool(r):
    """A question with tools of which none fits: (tools, question, answer)."""
    b = r.choice([b for b in BLOCKS if "any" not in b.subjects and not OWN & set(b.subjects)])
    tools = strangers(r, b, r.choice([1, 1, 2, 2, 3, 4]))
    a = spread(r, r.choice(re.split(r"\|\n", NO_TOOL))).replace("<s>", b.subjects[0].replace("_", " ")).replace("<n>", r.choice(tools)["function"]["name"])
    if len(tools) > 1:
        a = re.sub(r"^(.*: )(\S+ )(is|does|has) .*", r"\1none of them fits.", a) if "what I have" in a or "beyond my" in a else a
    return tools, asked(r, b)[0], a


def main():
    fits, faults, seen = {k: re.compile(p) for k, p in dict(time=r"\d{1,2}:\d\d", date=r"\d{4}-\d\d-\d\d", email=r"\S+@\S+\.\S+", site=r"\S+\.\S+", file=r"\S+\.\w+", phone=r"[\d+ -]+", int=r"\d+", hour=r"\d+", minute=r"\d+", float=r"\d+(\.\d+)?", currency=r"[A-Z]{3}", code=r"\S+").items()}, [], {}
    for n, b in enumerate(BLOCKS):
        fault = lambda what: faults.append(f"{b.names[0]}: {what}")
        for name in b.names:
            if name in HELD or not re.fullmatch(r"\w+", name) or seen.setdefault(name, n) != n:
                fault(f"name {name} is held out, no name, or there twice")
        for keys, kind, _ in b.params:
            m = re.fullmatch(r"list\((\w+)\)|one\([^)]+,[^)]+\)|(\w+)", kind)
            if not m or (m[1] or m[2] or "int") not in VALUES:
                fault(f"kind {kind} is not known")
        if not all("{r}" in a for a in b.answers) or not b.subjects or not 2 <= len(b.results) <= 6:
            fault("an answer without {r}, no subjects, or too few results")
        for q in b.questions:
            found = MARK.findall(q)
            if re.search(r"[<>]", MARK.sub("", q)) or not q or any(int(i) > len(b.params) for i, _, _ in found):
                fault(f"marks: {q}")
                continue
            for i, fixed, text in found:
                kind = b.params[int(i) - 1][1]
                if kind.startswith("one(") and (fixed or text) not in kind[4:-1].split(",") or kind in ("onoff", "lock") and not fixed or kind in fits and not fits[kind].fullmatch(fixed or text):
                    fault(f"{text} is no {kind}: {q}")
            if {str(i + 1) for i, p in enumerate(b.params) if not p[2]} - {i for i, _, _ in found}:
                fault(f"a value is missing: {q}")
        if len(b.near) < 4 or len(b.questions) < 10:
            fault(f"{len(b.questions)} questions, {len(b.near)} near ones")
    print("\n".join(faults) or "no faults")
    print(f"{len(BLOCKS)} blocks, {sum(len(b.questions) for b in BLOCKS)} questions, {sum(len(b.near) for b in BLOCKS)} near questions")
    r = random.Random(int.from_bytes(os.urandom(4), "little"))
    for i in range(20):
        if i % 4 < 2:
            t, q, args, response, a, _ = natural(r)
            print(f"{q}\n   {t['function']['name']} {json.dumps(args)} -> {response} -> {a}")
        else:
            tools, q, a = (near_miss if i % 4 == 2 else other_tool)(r)
            print(f"{q}\n   {[t['function']['name'] for t in tools]}: {a}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
