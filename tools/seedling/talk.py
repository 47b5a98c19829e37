"""Text conversations: skills in a row, memory, system prompts, tools.

conversation(r) gives {"skill", "messages", "tools", "thinking", "must", "media"}; `must` lists strings that a right final answer contains.
"""
import json

from calls import tool_sample
from skills import SKILLS, capital, one, opposite, plural, pseudo, thing_color, word
from turns import WEIGHTS, newcomer_conversation
from words import *


def memory(r):
    n, c, k, an_, p, f = (
        r.choice(NAMES) if r.random() < 0.7 else cap(pseudo(r)),
        r.choice("red blue green yellow orange purple pink brown black white".split()),
        r.randint(0, 999),
        r.choice(ANIMALS),
        r.choice(CITIES),
        r.choice(FRUITS),
    )
    items = [
        (
            r.choice([f"My name is {n}.", f"I am {n}.", f"Hi, I'm {n}.", f"Call me {n}."]),
            f"Nice to meet you, {n}!",
            r.choice(["What is my name?", "Do you remember my name?", "Who am I?"]),
            f"Your name is {n}.",
            n,
        ),
        (
            r.choice([f"My favorite color is {c}.", f"I like the color {c} most."]),
            f"{cap(c)} is a nice color!",
            r.choice(["What is my favorite color?", "Which color do I like?"]),
            f"Your favorite color is {c}.",
            c,
        ),
        (
            r.choice([f"Remember the number {k}.", f"My lucky number is {k}.", f"Keep the number {k} in mind."]),
            f"I will remember {k}.",
            r.choice(["What was the number?", "Which number did I tell you?", "What is my number?"]),
            f"The number is {k}.",
            str(k),
        ),
        (
            r.choice([f"I have {an(an_)} at home.", f"My pet is {an(an_)}."]),
            f"{cap(an(an_))} is a nice pet!",
            r.choice(["What pet do I have?", "Which animal do I have?"]),
            f"You have {an(an_)}.",
            an_,
        ),
        (
            r.choice([f"I live in {p}.", f"I come from {p}."]),
            f"{p} is a nice place!",
            r.choice(["Where do I live?", "Which city am I from?"]),
            f"You live in {p}.",
            p,
        ),
        (
            r.choice([f"I love {f}s.", f"My favorite fruit is the {f}."]),
            f"I hear that a {f} is tasty!",
            r.choice(["What fruit do I like?", "What is my favorite fruit?"]),
            f"Your favorite fruit is the {f}.",
            f,
        ),
    ]
    L = r.sample(items, r.randint(1, 4))
    M = []
    for s, a, *_ in L:
        M += [{"role": "user", "content": s}, {"role": "assistant", "content": a}]
        while r.random() < 0.3:
            _, q, t, a, _ = one(r)
            M += [{"role": "user", "content": q}, {"role": "assistant", "content": a, "reasoning_content": t}]
    for x in r.sample(L, min(len(L), r.choice([1, 1, 2]))):
        M += [{"role": "user", "content": x[2]}, {"role": "assistant", "content": x[3], "reasoning_content": f"The user said: {x[0]}"}]
        must = [x[4]]
    return dict(skill="memory", messages=M, must=must)


def system_prompt(r):
    k = r.choice(["upper", "word", "pirate", "json", "lower", "name", "end", "fact", "thanks"])
    s, q, t, a, must = one(
        r, r.choice(["capital", "opposite", "arithmetic", "fact", "calendar", "animal", "thing_color", "greeting", "identity", "plural"])
    )
    if k == "upper":
        sysm, a, th = (
            r.choice(["Answer in upper case.", "Always answer in capital letters.", "Write everything in uppercase."]),
            a.upper(),
            "I must write in upper case.",
        )
    elif k == "lower":
        sysm, a, th = r.choice(["Answer in lower case.", "Never use capital letters."]), a.lower(), "I must write in lower case."
    elif k == "word":
        s, (q, t, a, must) = "word", r.choice([capital, opposite, thing_color, plural])(r)
        if a.startswith(("Yes", "No")):
            a = a.split(",")[0]
        elif " is the capital of " in a:
            a = cap(a.split(" is the capital of ")[1].rstrip("."))
        else:
            a = cap(a.rstrip(".").split(" is ")[-1])
        must = [a]
        sysm, th = r.choice(["Answer in one word.", "Answer with one word only.", "Be as short as possible."]), "One word is enough."
    elif k == "pirate":
        sysm, a, th = (
            r.choice(["You are a pirate.", "Talk like a pirate.", "Answer like a pirate."]),
            f"Arr! {a} Ahoy, matey!",
            "I must talk like a pirate.",
        )
    elif k == "json":
        sysm, a, th = (
            r.choice(["Answer in JSON with the key answer.", "Always answer as JSON: {\"answer\": ...}"]),
            json.dumps({"answer": a}),
            "I must answer in JSON.",
        )
    elif k == "name":
        n = r.choice(NAMES)
        sysm, a, th = f"The user is called {n}. Use the name.", f"{n}, {a}", f"I must use the name {n}."
        must = [n] + must
    elif k == "end":
        w = r.choice(NOUNS)
        sysm, a, th = (
            r.choice([f"End every answer with the word {w}.", f"Always finish with the word '{w}'."]),
            f"{a} {cap(w)}.",
            f"I must end with {w}.",
        )
        must = must + [cap(w) + "."]
    elif k == "fact":
        key, val = r.choice(
            [
                ("password", word(r)),
                ("code", str(r.randint(0, 9999))),
                ("name of the cat", r.choice(NAMES)),
                ("name of the shop", cap(pseudo(r))),
                ("price", f"{r.randint(1,99)} dollars"),
                ("meeting room", r.choice(ADJECTIVES) + " room"),
            ]
        )
        sysm, q, a, must, th = (
            f"The {key} is {val}.",
            f"What is the {key}?",
            f"The {key} is {val}.",
            [val],
            f"The system prompt says that the {key} is {val}.",
        )
    else:
        sysm, a, th = "Thank the user first.", f"Thank you for asking. {a}", "I must thank the user first."
    if k in ("upper",):
        must = [m.upper() for m in must]
    if k == "lower":
        must = [m.lower() for m in must]
    if k == "pirate":
        must = ["Arr"] + must
    if k == "json":
        must = ['{"answer"'] + [json.dumps(m)[1:-1] for m in must]
    M = [{"role": "system", "content": sysm}]
    if r.random() < 0.2 and k in ("upper", "lower", "pirate"):
        _, q2, _, a2, _ = one(r, "greeting")
        M += [
            {"role": "user", "content": q2},
            {"role": "assistant", "content": a2.upper() if k == "upper" else a2.lower() if k == "lower" else f"Arr! {a2} Ahoy, matey!"},
        ]
    M += [{"role": "user", "content": q}, {"role": "assistant", "content": a, "reasoning_content": th + " " + t}]
    return dict(skill="system_prompt", messages=M, must=must)


DEFAULT_SYSTEM = [
    "You are Seedling, a helpful assistant.",
    "You are a helpful assistant.",
    "You are a friendly assistant.",
    "Be helpful.",
    "You are Seedling, the demonstration model of Parley.",
]


NEW = 0.74  # share of conversations with newcomers
NEW_SKILLS = [f.__name__ for f in WEIGHTS]


def conversation(r, skill=None):
    """One text sample. skill: a name of SKILLS, or memory, system_prompt, tool_sample, or None for the usual mixture."""
    if (not skill and r.random() < NEW) or skill in NEW_SKILLS:
        s = newcomer_conversation(r, skill)
        return finish(r, s)
    x = r.random()
    if skill == "tool_sample" or (not skill and x < 0.52):
        s = tool_sample(r)
    elif skill == "system_prompt" or (not skill and x < 0.57):
        s = system_prompt(r)
    elif skill == "memory" or (not skill and x < 0.62):
        s = memory(r)
    else:
        n = 1 if skill else r.choice([1, 1, 1, 1, 2, 2, 3, 4, 6])
        M = []
        for i in range(n):
            name, q, t, a, must = one(r, skill)
            M += [{"role": "user", "content": q}, {"role": "assistant", "content": a, "reasoning_content": t}]
        s = dict(skill=name, messages=M, must=must)
    return finish(r, s)


def finish(r, s):
    """A system prompt at times, thinking or not."""
    if s["messages"][0]["role"] != "system" and s["skill"] != "form" and r.random() < 0.2:
        s["messages"].insert(0, {"role": "system", "content": r.choice(DEFAULT_SYSTEM)})
    s.setdefault("tools", None)
    s["thinking"] = r.random() < (0.12 if s["skill"] in ("newcomer", "form", "follow") else 0.3)
    s["media"] = []
    return s
