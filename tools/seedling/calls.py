"""Conversations with tools: known tools, made-up tools, several calls, answers from a tool's response."""
import json

import forms
import tools_typed
from phrases import casual, spread
from skills import one, pseudo, word
from toolbox import natural_call
from words import *

P = lambda **k: k
STR, INT, NUM, BOOL = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}


def tool(name, desc, props, req=None):
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": desc,
            "parameters": {"type": "object", "properties": props, "required": list(props) if req is None else req},
        },
    }


WEATHER = "sunny rainy cloudy windy snowy foggy".split()


def known_call(r):
    """One known tool: its schema, a question, the arguments, the tool's response and the answer."""
    k = r.randrange(11)
    c, n, w = r.choice(CITIES), r.choice(NAMES), r.choice(NOUNS)
    if k == 0:
        t, s = r.randint(-10, 35), r.choice(WEATHER)
        d = r.choice([("city", "The city"), ("location", "Name of the place")])
        return (
            tool(r.choice(["get_weather", "weather", "current_weather"]), "Get the current weather of a city", {d[0]: dict(STR, description=d[1])}),
            r.choice([f"What is the weather in {c}?", f"How is the weather in {c}?", f"Weather in {c}?", f"Is it warm in {c} today?"]),
            {d[0]: c},
            r.choice([json.dumps({"temperature": t, "condition": s}), f"{t} degrees, {s}"]),
            f"It is {s} in {c}, {t} degrees.",
            [s, str(t)],
        )
    if k == 1:
        a, b = r.randint(0, 999), r.randint(0, 999)
        f, o, v = r.choice([("add", "Add", a + b), ("multiply", "Multiply", a * b), ("subtract", "Subtract", a - b)])
        return (
            tool(f, f"{o} two numbers", {"a": NUM, "b": NUM}),
            r.choice([f"Use the tool: {o.lower()} {a} and {b}.", f"{o} {a} and {b} with the tool."]),
            {"a": a, "b": b},
            str(v),
            f"The result is {v}.",
            [str(v)],
        )
    if k == 2:
        q = r.choice([f"{w} shops", f"history of {c}", f"{r.choice(ADJECTIVES)} {w}", f"how to clean a {w}"])
        v = f"{r.randint(2, 90)} results"
        return (
            tool(r.choice(["search", "web_search", "search_web"]), "Search the web", {"query": dict(STR, description="What to look for")}),
            r.choice([f"Search for {q}.", f"Look up {q}.", f"Search the web for {q}"]),
            {"query": q},
            v,
            f"The search for {q} gave {v}.",
            [v],
        )
    if k == 3:
        m = r.randint(1, 90)
        return (
            tool("set_timer", "Set a timer", {"minutes": INT}),
            r.choice([f"Set a timer for {m} minutes.", f"Timer for {m} minutes, please.", f"Wake me in {m} minutes."]),
            {"minutes": m},
            r.choice(["ok", '{"status": "ok"}']),
            f"The timer is set for {m} minutes.",
            [str(m)],
        )
    if k == 4:
        l = r.choice("French German Spanish Italian Japanese".split())
        v = pseudo(r)
        return (
            tool("translate", "Translate a text", {"text": STR, "language": STR}),
            r.choice([f"Translate '{w}' into {l}.", f"How do you say {w} in {l}?"]),
            {"text": w, "language": l},
            v,
            f"'{w}' in {l} is '{v}'.",
            [v],
        )
    if k == 5:
        t = f"{r.randint(0,23):02d}:{r.choice(['00','15','30','45'])}"
        return (
            tool("get_time", "Get the local time of a city", {"city": STR}),
            r.choice([f"What time is it in {c}?", f"Tell me the time in {c}."]),
            {"city": c},
            t,
            f"It is {t} in {c}.",
            [t],
        )
    if k == 6:
        m = f"{r.choice(['Hello', 'See you', 'Call me', 'Good luck'])} {r.choice(['today', 'tomorrow', 'soon', 'tonight'])}"
        return (
            tool("send_message", "Send a message to a person", {"to": STR, "text": STR}),
            r.choice([f"Send '{m}' to {n}.", f"Write {n} the message '{m}'."]),
            {"to": n, "text": m},
            r.choice(["sent", "ok"]),
            f"I sent the message to {n}.",
            [n],
        )
    if k == 7:
        on = r.random() < 0.5
        room = r.choice(["kitchen", "bedroom", "garden", "cellar"])
        return (
            tool("set_light", "Switch a light", {"room": STR, "on": BOOL}),
            f"{r.choice(['Turn', 'Switch'])} {'on' if on else 'off'} the light in the {room}.",
            {"room": room, "on": on},
            "ok",
            f"The light in the {room} is {'on' if on else 'off'}.",
            [room],
        )
    if k == 8:
        p = r.randint(1, 500)
        return (
            tool("get_price", "Look up the price of an item", {"item": STR}),
            r.choice([f"What does a {w} cost?", f"How much is a {w}?", f"Price of a {w}?"]),
            {"item": w},
            f"{p} dollars",
            f"A {w} costs {p} dollars.",
            [str(p)],
        )
    if k == 9:
        a, b = 1, r.randint(6, 100)
        v = r.randint(a, b)
        return (
            tool("random_number", "A random number between low and high", {"low": INT, "high": INT}),
            f"Give me a random number from {a} to {b}.",
            {"low": a, "high": b},
            str(v),
            f"The random number is {v}.",
            [str(v)],
        )
    a = r.randint(1, 900)
    return (
        tool("read_file", "Read a file", {"path": STR}),
        r.choice([f"What is in the file {w}.txt?", f"Read {w}.txt"]),
        {"path": f"{w}.txt"},
        f"{n} has {a} {r.choice(FRUITS)}s",
        None,
        [n],
    )


def random_call(r):
    """A made-up tool; its name, words and values are new each time, so that the schema must really be read."""
    v, n = r.choice(
        "find make open close start stop move copy check create delete update show play order book rent paint count list".split()
    ), r.choice(NOUNS)
    name = r.choice([f"{v}_{n}", f"{v}{cap(n)}", f"{n}_{v}", pseudo(r) + "_" + n])
    props, args, said = {}, {}, []
    for k in r.sample(["color", "size", "count", "name", "place", "speed", "owner", "code", "level", "title"], r.randint(1, 3)):
        if k in ("count", "speed", "level", "code"):
            props[k] = INT
            args[k] = r.randint(0, 999 if k == "code" else 99)
        else:
            props[k] = STR
            args[k] = {
                "color": r.choice(["red", "blue", "green", "black", "white"]),
                "size": r.choice(["small", "medium", "large"]),
                "name": r.choice(NAMES),
                "owner": r.choice(NAMES),
                "place": r.choice(CITIES),
                "title": word(r) + " " + word(r),
            }[k]
        said.append(f"{k} {args[k]}")
    q = r.choice([f"{cap(v)} the {n} with {' and '.join(said)}.", f"Please {v} a {n}, {', '.join(said)}.", f"{cap(v)} {n}: {', '.join(said)}"])
    i = r.randint(100, 999)
    resp = r.choice(["done", "ok", json.dumps({"ok": True, "id": i}), f"number {i}"])
    a = f"Done. The {n} has the number {i}." if str(i) in resp else f"Done, I called {name}."
    return tool(name, f"{cap(v)} a {n}", props), q, args, resp, a, ["Done"]


VERBS = """add book buy call cancel change check clean close compare convert copy count create cut delete dim find fix get give hide join keep lend list lock
look make measure move name open order paint pay pick plan play print put read remove rename rent report reserve roll save search sell send set share show sort
start stop switch tag take tell test throw translate turn update upload wake wash watch write""".split()
KEYS = [k for k in forms.MAKERS if k not in ("x", "y", "z", "n", "true_or_false")]
TYPES = {str: STR, bool: BOOL, int: INT, float: NUM}


def any_call(r):
    """A tool of any kind: names, keys and descriptions from long lists, and questions that give the values in many forms."""
    v, n = r.choice(VERBS), r.choice(NOUNS)
    keys = r.sample(KEYS, r.choice([1, 1, 2, 2, 3, 4]))
    args = {k: forms.MAKERS[k](r) for k in keys}
    args = {k: int(x) if isinstance(x, float) and x == int(x) else x for k, x in args.items()}
    described = r.random() < 0.5
    props = {k: dict(TYPES[type(x)], **({"description": f"The {k.replace('_', ' ')} of the {n}"} if described and r.random() < 0.6 else {})) for k, x in args.items()}
    name = r.choice([f"{v}_{n}", f"{v}{cap(n)}", f"{n}_{v}", f"{v}_the_{n}", v, n, f"{pseudo(r)}_{n}", f"{v}_{pseudo(r)}", f"{n}.{v}", f"{r.choice(ADJECTIVES)}_{n}"])
    pairs = [f"{k.replace('_', ' ')} {str(x).lower() if isinstance(x, bool) else x}" for k, x in args.items()]
    only = [str(x) for x in args.values()]
    q = spread(r, r.choice(["{<V>|Please <v>|Can you <v>|I want to <v>|Could you <v>|Now <v>} {the|a|my|this} <n> {with|for|:|, with} <p>{.||, please|!}", "{<V>|Please <v>} <n>, <p>{.|}", "<V> {the|a} <n>: <p>", "<p>: <v> {the|that} <n>{.|}"]))
    if len(only) == 1 and not isinstance(args[keys[0]], bool) and r.random() < 0.6:
        q = spread(r, r.choice(["{<V>|Please <v>|Can you <v>|Use the tool to <v>} {the |my |a |}<n> <o>{.|?|}", "{<V>|Please <v>} <o>{ with the <n>|}{.|}", "{What|How} about the <n> <o>?", "<V> '<o>' {for the|as a|in the} <n>", "<n> of <o>{?|, please|}"]))
    q = q.replace("<V>", cap(v)).replace("<v>", v).replace("<n>", n).replace("<p>", r.choice([", ", " and ", ", "]).join(pairs)).replace("<o>", only[0])
    resp, a = r.choice([("ok", f"Done, I called {name}."), ("done", f"Done, I called {name}.")])
    return tool(name, r.choice([f"{cap(v)} a {n}", f"{cap(v)}s the {n}", f"A tool to {v} {n}s", f"{cap(n)}: {v} it"]), props), q, args, resp, a, ["Done"]


def natural(r):
    """A tool with a question in natural words, by patterns or as somebody typed it."""
    return (natural_call if r.random() < 0.5 else tools_typed.natural)(r)


def made_call(r):
    x = r.random()
    return known_call(r) if x < 0.14 else random_call(r) if x < 0.22 else any_call(r) if x < 0.46 else natural(r)


def forced_call(r, q):
    """A call that the server forces, whatever was asked: what is forced is given, the values are learnt, and their end."""
    tools = []
    for _ in range(r.choice([1, 1, 2, 3])):
        t = made_call(r)
        if all(t[0]["function"]["name"] != u[0]["function"]["name"] for u in tools):
            tools.append(t)
    t, _, args, _, _, _ = r.choice(tools)
    if not args:
        return forced_call(r, q)
    first = next(iter(args))
    args = {k: f"{forms.SHUT}{str(x).lower() if isinstance(x, bool) else x}" if k == first else x for k, x in args.items()}
    call = {"type": "function", "function": {"name": t["function"]["name"], "arguments": args}}
    M = [{"role": "user", "content": q}, {"role": "assistant", "content": forms.OPEN, "reasoning_content": "I call a tool.", "tool_calls": [call]}]
    return dict(skill="forced_call", messages=M, tools=[t[0] for t in tools], must=[])


def tool_sample(r):
    mk = lambda: made_call(r)
    t, q, args, resp, ans, must = mk()
    two = r.random() < 0.06
    while two and list(args) != ["city"]:
        t, q, args, resp, ans, must = known_call(r)
    if ans is None:
        ans = f"The file says: {resp}"
    tools = [t]
    for _ in range(r.choice([0, 0, 1, 1, 2, 3])):
        x = mk()[0]
        if all(x["function"]["name"] != y["function"]["name"] for y in tools):
            tools.append(x)
    r.shuffle(tools)
    if r.random() < 0.5:
        for x in tools:
            x["function"]["parameters"].pop("required", None) if r.random() < 0.3 else None
    f = t["function"]["name"]
    call = lambda a: {"type": "function", "function": {"name": f, "arguments": a}}
    x = r.random()
    think1 = f"The tool {f} fits. " + ", ".join(f"{k} is {v}" for k, v in args.items()) + "."
    M = [{"role": "user", "content": casual(r, q) if r.random() < 0.3 else q}]
    if x < 0.1 and not two:  # no tool fits: answer as usual
        s, q, th, a, must = one(r, r.choice(["arithmetic", "capital", "greeting", "identity", "opposite", "fact", "spell"]))
        return dict(
            skill="tool_not_needed",
            messages=[
                {"role": "user", "content": q},
                {"role": "assistant", "content": a, "reasoning_content": "No tool fits here, I answer myself. " + th},
            ],
            tools=tools,
            must=must,
        )
    if x < 0.7 and not two:  # the call itself
        M.append({"role": "assistant", "content": "", "reasoning_content": think1, "tool_calls": [call(args)]})
        must = [f"<function={f}>"] + [f"<parameter={k}>\n{v}\n</parameter>" for k, v in args.items()]
        return dict(skill="tool_call", messages=M, tools=tools, must=must)
    if two:  # two calls at once
        c1, c2 = r.sample(CITIES, 2)
        what = "time" if f == "get_time" else "weather"
        M = [
            {"role": "user", "content": f"What is the {what} in {c1} and in {c2}?"},
            {
                "role": "assistant",
                "content": "",
                "reasoning_content": f"The tool {f} fits. I call it for {c1} and for {c2}.",
                "tool_calls": [call({"city": c1}), call({"city": c2})],
            },
        ]
        return dict(skill="tool_two_calls", messages=M, tools=tools, must=[f"\n{c1}\n", f"\n{c2}\n"])
    M += [
        {"role": "assistant", "content": "", "reasoning_content": think1, "tool_calls": [call(args)]},
        {"role": "tool", "content": resp},
        {"role": "assistant", "content": ans, "reasoning_content": f"The tool answered: {resp}"},
    ]
    if r.random() < 0.25:
        s, q, th, a, must = one(r, r.choice(["greeting", "arithmetic", "capital"]))
        M += [{"role": "user", "content": q}, {"role": "assistant", "content": a, "reasoning_content": th}]
        return dict(skill="tool_then_talk", messages=M, tools=tools, must=must)
    return dict(skill="tool_answer", messages=M, tools=tools, must=must)
