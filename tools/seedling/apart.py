"""Checks that no question of tests/eval/talk is one that the training makes: those are to measure other wordings.

usage: apart.py [DRAWS]      exit code 1 and the questions if some are alike, but for capitals and punctuation
"""
import glob
import json
import os
import random
import re
import sys

import calls
import forms
import helpdesk
import ledger
import makes
import newcomer
import sheets
import tools_typed

EVAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "eval", "talk")


def plain(text):
    return re.sub(r"[^\w ]", "", text.lower()).strip()


def held():
    """The questions of the eval sets; of the tools only those that want a call, as greetings are greetings."""
    load = lambda pattern: [x for name in sorted(glob.glob(os.path.join(EVAL, pattern))) for x in json.load(open(name, encoding="utf-8"))]
    found = [q for _, q, _ in load("prompts*.json")] + [q for q, _ in load("schemas.json")]
    wanted = {plain(q) for q in found + [t["messages"][-1]["content"] for t in load("tools*.json") if t["call"]]}
    return {q for q in wanted if not re.fullmatch(r"\d+ plus \d+", q)}  # any two numbers may be drawn


def main():
    draws, wanted, alike = int(sys.argv[1]) if len(sys.argv) > 1 else 400000, held(), {}
    r = random.Random(99)
    made = [newcomer.newcomer, newcomer.newcomer, makes.made, helpdesk.help_topic, forms.form, sheets.sheet, lambda r: calls.made_call(r)[1:], lambda r: tools_typed.natural(r)[1:], lambda r: tools_typed.near_miss(r)[1:], lambda r: [m["content"] for m in r.choices(ledger.exchange(r)[::2])]]
    for i in range(draws):
        q = plain(made[i % len(made)](r)[0])
        if q in wanted:
            alike[q] = alike.get(q, 0) + 1
    print(f"{len(wanted)} questions, {draws} draws, alike: {alike or 'none'}")
    return 1 if alike else 0


if __name__ == "__main__":
    sys.exit(main())
