"""Sums in many forms, with a calculator among the tools, with other tools only, and with none."""
import json

from phrases import spread
from skills import pseudo, word
from words import NOUNS, cap

SIGN = {"+": ["plus", "and", "added to"], "-": ["minus", "less", "take away"], "*": ["times", "multiplied by", "by"], "/": ["divided by", "over", "split by"]}
SAID = """what is <e>|what's <e>|<e>|<e> = ?|<e>=|how much is <e>|calculate <e>|compute <e>|work out <e>|tell me <e>|the result of <e>|can you do <e>|solve <e>|reckon <e>|I need <e>|what does <e> make|what do I get for <e>|sum please: <e>|quick: <e>|and <e>|could you work out <e> for me|how many is <e>|my homework says <e>|<e>, please|evaluate <e>|add it up: <e>|what would <e> be|give me <e>|do you know what <e> is|please calculate <e>|is it hard to do <e>|find <e>"""
USE = """. Use the <t>.|, use the <t>| with the <t>|, with the <t> please| - use the <t>|. Please use your <t>.|. Do it with the <t>.| using the <t>|. Ask the <t>.|, don't guess, use the <t>"""
FIRST = """use the <t>: |use the <t> for |with the <t>: |please use the <t> to get |ask the <t>: |take the <t> and work out |<t>: |I want you to use the <t>: |run the <t> on """
NAMES = "calculator calculate calc compute evaluate math arithmetic reckon do_math eval_expression calculator_calculate math_tool sum_up solve_expression number_cruncher computer basic_math".split()
TOLD = "Calculates an arithmetic expression and returns its value.|Evaluates a formula|A calculator|Computes sums, products and more|Arithmetic on numbers|Works out an expression|Calculator for + - * /|Does the maths".split("|")
KEYS = "expression expression expression formula input term expr query sum text".split()


def number(r):
    return r.choice([r.randint(0, 12), r.randint(0, 99), r.randint(0, 99), r.randint(100, 999), r.randint(100, 999), r.randint(1000, 9999)])


def expression(r, hard):
    """(as a calculator reads it, as somebody writes it, its value)"""
    if not hard:
        a, b, o = r.randint(0, 99), r.randint(0, 99), r.choice("++-")
        if o == "-" and a < b:
            a, b = b, a
        L, ops = [a, b], [o]
        if r.random() < 0.35:
            L.append(r.randint(0, 30))
            ops.append("+")
    else:
        n = r.choice([2, 2, 2, 2, 3, 3, 4])
        L = [number(r) for _ in range(n)]
        ops = [r.choice("++--**/") for _ in range(n - 1)]
        if r.random() < 0.1:
            L[0] = round(r.uniform(0, 99), r.choice([1, 2]))
    e = str(L[0]) + "".join(f" {o} {x}" for o, x in zip(ops, L[1:]))
    words = r.random() < 0.5
    said = str(L[0]) + "".join(f" {r.choice(SIGN[o][:1] * 3 + SIGN[o])} {x}" if words else f"{o}{x}" if r.random() < 0.15 else f" {'x' if o == '*' and r.random() < 0.5 else o} {x}" for o, x in zip(ops, L[1:]))
    if len(set(ops)) == 1 and r.random() < 0.2:
        rest = ", ".join(map(str, L[:-1])) + f" and {L[-1]}"
        if ops[0] == "+":
            said = r.choice(["the sum of ", "the total of "]) + rest
        elif ops[0] == "*":
            said = "the product of " + rest
    try:
        v = eval(e)  # digits and signs of this function alone
    except ZeroDivisionError:
        return expression(r, hard)
    v = int(v) if float(v).is_integer() else round(v, 4)
    return e, said, v


def calculator(r, name=None):
    key = r.choice(KEYS) if r.random() < 0.9 else pseudo(r, 1, 2)
    props = {key: {"type": "string"}}
    if r.random() < 0.5:
        props[key]["description"] = r.choice(["The expression", "such as 3 * (4 + 5)", "What to compute", "An arithmetic expression"])
    f = name or (r.choice(NAMES) if r.random() < 0.85 else r.choice([pseudo(r), f"{pseudo(r)}_{r.choice(NAMES)}"]))
    return {"type": "function", "function": {"name": f, "description": r.choice(TOLD), "parameters": {"type": "object", "properties": props, "required": [key]}}}, f, key


def finish(r, q):
    q = cap(q) if r.random() < 0.7 else q
    return q + r.choice(["?", "?", ".", ""]) if q[-1:].isalnum() else q


def reckoning(r, others):
    """A conversation about a sum; others(r, n, but) gives tools that do not calculate."""
    x = r.random()
    hard = x < 0.7
    e, said, v = expression(r, hard)
    q = r.choice(SAID.split("|")).replace("<e>", said)
    called = r.choice(["calculator", "calculator", "tool", "calc", "calculator tool", "math tool"])
    y = r.random()
    if x < 0.7 or x > 0.88:  # asks for it
        if y < 0.45:
            q = q.rstrip("?.") + r.choice(["?", "", ""]) if q[-1:] in "?" else q
            q = q + r.choice(USE.split("|")).replace("<t>", called)
        elif y < 0.65:
            q = r.choice(FIRST.split("|")).replace("<t>", called) + q
    q = finish(r, q)
    user = {"role": "user", "content": q}
    if x < 0.7:
        t, f, key = calculator(r)
        tools = others(r, r.choice([0, 0, 1, 1, 2, 3]), f)
        tools.insert(r.randrange(len(tools) + 1), t)
        M = [user, {"role": "assistant", "content": "", "reasoning_content": f"The tool {f} calculates {e}.", "tool_calls": [{"type": "function", "function": {"name": f, "arguments": {key: e}}}]}]
        if x < 0.3:
            resp = r.choice([str(v), str(v), json.dumps({"result": v}), json.dumps({"value": v}), f"{e} = {v}"])
            M += [{"role": "tool", "content": resp}, {"role": "assistant", "content": r.choice([f"{e} = {v}", f"The result is {v}.", f"{e} = {v}"]), "reasoning_content": f"The tool answered: {resp}"}]
        return dict(skill="reckoning", messages=M, tools=tools, must=[])
    a = f"{e} = {v}".replace("*", "x")
    if x > 0.88 and (y < 0.65):
        tools = others(r, r.choice([0, 1, 1, 2]), None) or None
        a = spread(r, "{I have no calculator here, but I can try myself|No calculator was given to me, so I reckon myself}: ") + a
        return dict(skill="reckoning", messages=[user, {"role": "assistant", "content": a, "reasoning_content": f"There is no calculator. {e} = {v}."}], tools=tools, must=[f"= {v}"])
    return dict(skill="reckoning", messages=[user, {"role": "assistant", "content": a, "reasoning_content": f"{e} = {v}."}], must=[f"= {v}"])


def absent(r, others):
    """The user names a tool that is not among those given."""
    tools = others(r, r.choice([1, 2, 2, 3, 4]), None)
    n = r.choice([f"{word(r)} tool", f"{r.choice(NOUNS)}_{word(r)}", pseudo(r), f"{word(r)} finder", f"{pseudo(r)} function"])
    if any(t["function"]["name"] in n for t in tools):
        return absent(r, others)
    q = spread(r, f"{{Use|Call|Please use|Run|Try|Start|Could you use|I want you to use}} {{the|your|my}} {n}{{| please| for this| with {word(r)}| on {r.randint(1, 99)}| and tell me the result}}{{.||!|?}}")
    have = ", ".join(t["function"]["name"] for t in tools)
    a = spread(r, f"{{I have no such tool here.|There is no such tool here.|No tool of that name was given to me.}} {{I have|What I have is|These are here}}: {have}.")
    return dict(skill="absent_tool", messages=[{"role": "user", "content": q}, {"role": "assistant", "content": a, "reasoning_content": "That tool is not given."}], tools=tools, must=["tool"])
