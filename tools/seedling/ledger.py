"""Sums as newcomers ask them, and dialogues whose later turns depend on the first.

everyday(r) gives (question, reasoning, answer, must), as newcomer.py has them; exchange(r) gives the messages of a dialogue. Patterns are for phrases.spread.
<1>, <2>, <3> are numbers; <name> is a part of POOL, of MAKE or of moods.LEX, and stays the same through a question or a dialogue.
"""
import os
import re

import forms
import moods
from phrases import spread
from skills import say
from words import CITIES, DAYS, LEGS, MONTHS, NAMES, PLURALS, an, cap

MONEY = {"euro": "euros", "dollar": "dollars", "pound": "pounds", "franc": "francs", "crown": "crowns", "coin": "coins"}
WARES = [w.split(":") for w in """ice cream:ice creams|coffee:coffees|ticket:tickets|pencil:pencils|bagel:bagels|melon:melons|notebook:notebooks|cup of tea:cups of tea|bus ride:bus rides|pizza:pizzas
bread roll:bread rolls|candle:candles|T-shirt:T-shirts|book:books|lemon:lemons|bottle of water:bottles of water|sandwich:sandwiches|plant:plants|scarf:scarves|stamp:stamps
doughnut:doughnuts|burger:burgers|battery:batteries|toy car:toy cars|bunch of tulips:bunches of tulips|jar of jam:jars of jam|comic:comics|pair of socks:pairs of socks|muffin:muffins
cinema ticket:cinema tickets|balloon:balloons|avocado:avocados|haircut:haircuts|light bulb:light bulbs|postcard:postcards""".replace("\n", "|").split("|")]
THINGS = "apples|sweets|marbles|eggs|cookies|stickers|nuts|plums|cards|coins|balloons|pencils|biscuits|strawberries|chocolates|grapes|cherries|toys|pancakes|stones|shells|beads|tangerines|cupcakes".split("|")
FOLK = "kids|children|friends|people|girls|boys|cousins|guests|neighbours|players|pupils|colleagues|siblings|grandchildren".split("|")
POOL = {
    "f": moods.GIRLS, "b": moods.BOYS, "h": "mouse fox owl robot dragon teapot hedgehog snail penguin baker pirate witch knight bear turtle frog astronaut snowman princess squirrel tractor cloud".split(),
    "n": NAMES, "m": NAMES, "p": "Luna Rex Felix Coco Bella Rocky Daisy Tiger Max Mia Snowball Biscuit Pepper Oscar Shadow Peanut Misty Ginger Buddy Cleo Pixel Waffles Ziggy Nori".split(), "c": CITIES, "d": DAYS, "mo": MONTHS,
    "k": "dog cat hamster rabbit parrot budgie pony tortoise guinea-pig goldfish kitten puppy".split(),
    "t": "moon sea garden cat rain tree river snow bicycle teapot lighthouse autumn tomato horse winter train violin bridge bee kite cactus sofa bakery umbrella rose".split(),
    "t_two": "dog bird frog robot sun cloud pear snail bear boat lamp mouse hat piano whale tractor pancake".split(),
    "age": [str(n) for n in range(7, 90)], "num": [str(n) for n in range(2, 99)],
    "col": "red blue green yellow purple orange pink turquoise brown silver".split(),
    "dish": "pizza|pancakes|lasagna|curry|sushi|dumplings|tomato soup|fish and chips|goulash|noodles|risotto|tacos|apple pie|falafel|pea soup".split("|"),
    "hobby": "chess|knitting|swimming|football|painting|hiking|the guitar|baking|gardening|rowing|photography|judo|pottery|birdwatching|sewing".split("|"),
    "work": "nurse|baker|teacher|gardener|plumber|pilot|cook|librarian|farmer|bus driver|carpenter|dentist|painter|student".split("|"),
    "gone": "grandmother|grandfather|uncle|aunt|father|mother|best friend|dog|cat|old neighbour".split("|"), "ware": [w[0] for w in WARES],
}


def put(r, text, bound):
    """The text with its parts put in; names, animals and topics differ from each other."""
    for _ in range(20):
        text = spread(r, text)
        keys = re.findall(r"<([a-z_]+)>", text)
        if not keys:
            break
        for key in keys:
            if key not in bound:
                if key in MAKE:
                    bound[key] = MAKE[key](r, bound)
                else:
                    bound[key] = put(r, r.choice([x for x in (POOL.get(key) or moods.LEX[key]) if x not in bound.values()]), bound)
            text = text.replace(f"<{key}>", bound[key])
    return text


def lines(r, b, topic):
    from newcomer import COUPLETS
    two = r.sample(COUPLETS, 2)
    b["first_two"] = two[0].replace("<t>", b[topic]).replace("<a>", b.setdefault("adj", r.choice("quiet gentle golden silver little soft".split())))
    return "\n".join(c.replace("<t>", b[topic]).replace("<a>", b["adj"]) for c in two)


def need(r, b, *keys):
    for k in keys:
        put(r, f"<{k}>", b)
    return b


def fun(name):
    def draw(r, b):
        import makes
        return r.choice([x for x in getattr(makes, name) if x not in b.values()])
    return draw


def tale(r, b, hero, name):
    import makes
    return makes.told(r, b[hero], b[name])


MAKE = {  # what is made up when a dialogue comes to it
    "joke": fun("JOKES"), "joke_two": fun("JOKES"), "joke_three": fun("JOKES"), "riddle": fun("RIDDLES"), "riddle_two": fun("RIDDLES"),
    "poem": lambda r, b: lines(r, need(r, b, "t"), "t"), "short": lambda r, b: b["first_two"], "more": lambda r, b: lines(r, b, "t").rsplit("\n", 2)[0],
    "poem_two": lambda r, b: lines(r, need(r, b, "t_two"), "t_two"), "story": lambda r, b: tale(r, need(r, b, "h", "n"), "h", "n"), "story_two": lambda r, b: tale(r, need(r, b, "h_two", "m"), "h_two", "m"),
    "h_two": lambda r, b: r.choice([h for h in POOL["h"] if h != b.get("h")]), "p_two": lambda r, b: r.choice([p for p in POOL["p"] if p != b.get("p")]),
    "age_two": lambda r, b: r.choice([x for x in POOL["age"] if x != b.get("age")]), "c_two": lambda r, b: r.choice([x for x in CITIES if x != b.get("c")]),
    "k_two": lambda r, b: r.choice([k for k in POOL["k"] if k != b.get("k")]),
}


# ---------------------------------------------------------------- sums
ASK = """<e>|<e>|<e>?|<e>?|<e> =|<e>=|<e> = ?|<e> =?|<e> is?|<e> equals?|<e> please|<e>, please|{what is|what's|whats|wats} <e>{?||, please|? thanks}|what does <e> {make|give|come to}
how much {is <e>|would <e> be|does <e> make}{?||? I forgot}|{calculate|compute|work out|solve|do|figure out|find|give me|tell me|reckon} <e>{| for me| please|, would you?}
how much is <e>, {im|I'm} too lazy{| to think| to work it out|, sorry}
{no calculator here|my phone is dead|too early for maths|quick maths|quick one|brain is off today|help, I can't count|my head hurts|settle a bet|homework|my <rel> can't do it}: <e>{?|}
{can you do|can you work out|could you tell me|do you know|are you able to do} <e>{?|}|I {keep getting|always get} <e> wrong{. What is it?|, what is it|}
{hey|hi|hello|ok|so|yo|well}, {what's|what is|how much is} <e>{?|}
<e>{, go|, quick!| - quick|, what does it make?|, what do I get?|, come on|... hmm| makes?|, how much|, right answer please}|{I need|I want|I'd like} {the result of |}<e>
{test|a test for you|let's test you|maths test|easy one}: <e>|{my <rel> asks|<n> asks|the teacher asks}{ what|: what|, what} {is|'s} <e>{?|}|{just|simply} <e>{.|}
{what do I get|what comes out|what do you get} {for|from|with} <e>{?|}|and <e>?""".replace("\n", "|")
SIGNED = {
    "+": "<1>+<2>|<1> + <2>|<1> + <2>|<1> plus <2>|<1> plus <2>|<1> and <2>{ together| added up}|the sum of <1> and <2>|<1> added to <2>|<1> & <2>{| together}|adding <1> and <2>|<1> with <2> on top",
    "-": "<1>-<2>|<1> - <2>|<1> - <2>|<1> minus <2>|<1> minus <2>|<1> take away <2>|<1> less <2>|<1> without <2>|<1> with <2> taken off|the difference of <1> and <2>|<2> subtracted from <1>|<2> taken from <1>|<2> less than <1>",
    "x": "<1>*<2>|<1> * <2>|<1>x<2>|<1> x <2>|<1> times <2>|<1> times <2>|<1> multiplied by <2>|the product of <1> and <2>|<1> by <2>, multiplied",
    "/": "<1>/<2>|<1> / <2>|<1> : <2>|<1> divided by <2>|<1> divided by <2>|<1> over <2>|<1> split by <2>|<1> shared by <2>",
}
AS_WORDS = "plus|minus|take away|times|and|divided|sum of|multiplied|difference|half|double|twice|third|quarter|percent|per cent"


def top(pattern):
    """The parts of a pattern between its outermost bars."""
    return [p for p in re.split(r"\|(?![^{]*\})", pattern) if p]


ASK, SIGNED = top(ASK), {k: top(v) for k, v in SIGNED.items()}


def value(x):
    return str(int(x)) if float(x).is_integer() else str(round(x, 2))


def worked(op, a, b):
    v = {"+": a + b, "-": a - b, "x": a * b, "/": a / b}[op]
    return f"{value(a)} {op} {value(b)} = {value(v)}"


def pair(r, op):
    """Two numbers small enough to be reckoned in the head."""
    x = r.random()
    if op == "+":
        return (r.randint(2, 20), r.randint(2, 20)) if x < 0.3 else (r.randint(10, 99), r.randint(2, 99)) if x < 0.85 else (10 * r.randint(5, 40), 10 * r.randint(2, 40)) if x < 0.93 else (r.randint(100, 400), r.randint(5, 99))
    if op == "-":
        a = r.choice([r.randint(5, 20), r.randint(15, 100), r.randint(15, 100), 100, 100, 50, 10 * r.randint(5, 50), r.randint(100, 200)])
        return a, r.randint(1, min(a - 1, 99))
    if op == "x":
        return (r.randint(2, 12), r.randint(2, 12)) if x < 0.7 else (r.randint(11, 25), r.randint(2, 6)) if x < 0.9 else (r.randint(2, 30), r.choice([10, 20])) if x < 0.97 else (r.randint(2, 9), 100)
    b = r.randint(2, 12)
    return b * r.randint(2, 12), b


def ended(r, q):
    q = q.strip()
    if r.random() < 0.45 and q[0].isalpha():
        q = cap(q)
    if q[-1:].isalnum() and r.random() < 0.4 and re.match(r"(?i)(what|which|who|how|where|when|is|are|do|does|can|could|if)\b", q):
        q += "?"
    return q


def sum_of(r, patterns, numbers, thought, answer, must=None, names=None, words=0.12):
    """A question of one of the patterns, with numbers at times in words."""
    q = r.choice(top(patterns) if isinstance(patterns, str) else patterns)
    spelt = r.random() < words and re.search(AS_WORDS, q) and all(isinstance(n, int) and 0 < n <= 200 for n in numbers)
    for i, n in enumerate(numbers):
        n = value(n) if not isinstance(n, str) else n
        q = q.replace(f"<{i + 1}>", (r.choice(["a hundred", "one hundred", "100"]) if n == "100" else say(int(n)).replace("-", r.choice(["-", " "]))) if spelt else n)
    q = put(r, q, dict(names or {}))
    return ended(r, q), thought, answer, must or [answer.split(" = ")[-1].split(" ")[0].rstrip(".") if " = " in answer else answer]


def coins(n, cur):
    return f"{value(n)} {cur if n == 1 else MONEY[cur]}"


def some(r):
    """A currency, a thing for sale, things to count, people."""
    cur, (one, many) = r.choice(list(MONEY)[:5]), r.choice(WARES)
    return cur, dict(cur=cur, curs=MONEY[cur], one=one, many=many, an=an(one), xs=r.choice(THINGS), who=r.choice(FOLK))


def bare(r):
    op = r.choice("++---xx/")
    a, b = pair(r, op)
    e = worked(op, a, b)
    q = r.choice(ASK).replace("<e>", r.choice(SIGNED[op]))
    return sum_of(r, [q], (a, b), e + ".", e, words=0.3)


def three(r):
    a, b, c = r.randint(2, 50), r.randint(2, 40), r.randint(2, 30)
    minus = r.random() < 0.35 and a + b > c
    e = f"{a} + {b} {'-' if minus else '+'} {c} = {a + b - c if minus else a + b + c}"
    q = r.choice(ASK).replace("<e>", r.choice(["<1>+<2>-<3>", "<1> + <2> - <3>", "<1> plus <2> minus <3>", "<1> and <2> less <3>"] if minus else ["<1>+<2>+<3>", "<1> + <2> + <3>", "<1> plus <2> plus <3>", "<1>, <2> and <3> together", "the sum of <1>, <2> and <3>"]))
    return sum_of(r, [q], (a, b, c), f"{a} + {b} = {a + b}, then {e.split(' = ')[1]}.", e)


PARTS = {  # how a part or a multiple is said: (sign, number)
    "half of <1>|half <1>|half as much as <1>|<1> cut in half|<1> halved|the half of <1>": ("/", 2), "a third of <1>|one third of <1>|1/3 of <1>|the third part of <1>": ("/", 3), "a quarter of <1>|one quarter of <1>|1/4 of <1>|<1> quartered|a fourth of <1>": ("/", 4),
    "a fifth of <1>|1/5 of <1>|one fifth of <1>": ("/", 5), "a tenth of <1>|one tenth of <1>|1/10 of <1>": ("/", 10), "double <1>|twice <1>|the double of <1>|<1> doubled|two times <1>|2 x <1>|twice as much as <1>": ("x", 2),
    "three times <1>|triple <1>|<1> tripled|thrice <1>|3 times <1>|three times as much as <1>": ("x", 3), "four times <1>|4 times <1>|<1> times four": ("x", 4), "ten times <1>|10 times <1>|<1> times ten": ("x", 10),
}


def part(r):
    said, (op, k) = r.choice(list(PARTS.items())[:3] + list(PARTS.items()))
    n = (k * r.randint(2, 50 if k < 4 else 20) if op == "/" else r.randint(3, 99 if k < 4 else 30)) if k != 2 or op == "x" or r.random() < 0.7 else 2 * r.randint(2, 60) + 1
    e = worked(op, n, k)
    if r.random() < 0.25:
        cur, names = some(r)
        e2 = e.split(" = ")[1]
        return sum_of(r, f"{{what is|how much is}} {said.split('|')[0]} <curs>|I {{get|want|pay|owe|earn}} {said.split('|')[0]} <curs>{{, how much is that|. How much?|, that's?}}|{said.split('|')[0]} <curs>{{ is how much|?}}",
            (n,), e + ".", f"That is {e} {cur if e2 == '1' else MONEY[cur]}.", [e2], names)
    return sum_of(r, [r.choice(ASK).replace("<e>", r.choice(said.split("|")))], (n,), e + ".", e, words=0.25)


def percent(r):
    p = r.choice([10, 10, 20, 25, 50, 50, 75, 5, 30, 100])
    n = r.choice([20, 40, 60, 80, 100, 200, 120, 160, 300, 400, 500]) if p in (25, 75, 5, 30) else 10 * r.randint(1, 30) if p != 50 else 2 * r.randint(3, 80)
    v = n * p / 100
    cur, names = some(r)
    x = r.random() if p < 40 else r.choice([0, 0, 1])
    if x < 0.6:
        q = r.choice(ASK).replace("<e>", r.choice(["<2>% of <1>", "<2> % of <1>", "<2> percent of <1>", "<2> per cent from <1>", "<2>% from <1>", "<2>pct of <1>"]))
        return sum_of(r, [q], (n, p), f"{p} percent of {n} is {value(v)}.", f"{p} % of {n} is {value(v)}.", [f"is {value(v)}"])
    if x < 0.8:
        return sum_of(r, "{how much|what} is a <2>% tip on <1> <curs>|what do I tip on a bill of <1> <curs> at <2>%|{the bill|dinner} is <1> <curs>, <2> percent tip{?| is how much|, how much?}|tip of <2>% for <1> <curs>",
            (n, p), f"{p} percent of {n} is {value(v)}.", f"{p} % of {n} is {value(v)}, so the tip is {coins(v, cur)}.", [f"is {value(v)}"], names)
    p = min(p, 75)
    v = n * p / 100
    e = worked("-", n, v)
    return sum_of(r, "<an> for <1> <curs>, {now <2>% off|<2>% cheaper}{. What do I pay?|, new price?|, how much now}|{<2> percent off|a <2>% discount on} <1> <curs>{, what's left to pay|, how much do I pay?|?}|sale: <2>% off <1> <curs>{, price now?|?}|my <one> {cost|was} <1> <curs> before a discount of <2> percent. Final price?",
        (n, p), f"{p} percent of {n} is {value(v)}, and {e}.", f"{p} % of {n} is {value(v)}, and {e} {MONEY[cur]}.", [e.split(" = ")[1]], names)


def price(r):
    n, p = r.randint(2, 10), r.randint(2, 12)
    cur, names = some(r)
    if r.random() < 0.45:
        e = worked("/", n * p, n)
        return sum_of(r, "{if |when |}<2> <many> cost <1> <curs>{,| then} how much {is one|does one cost|for one}|<2> <many> for <1> <curs>{, what's one|. And one?|, price of one?|: how much each?}|{we|I} paid <1> <curs> for <2> <many>, {how much is that each|what did each cost}|what does one <one> cost when <2> of them are <1> <curs>|<1> <curs> buys <2> <many>, so one is?|they want <1> <curs> for <2> <many>, what is the price per piece",
            (n * p, n), e + ".", f"One {names['one']} costs {e} {cur if p == 1 else MONEY[cur]}.", None, names)
    e = worked("x", n, p)
    return sum_of(r, "{how much|what} do <1> <many> cost at <2> <curs> each|<1> <many>, <2> <curs> {each|a piece|apiece}{. How much?|, total?|?|, what do I pay|}|one <one> {is|costs} <2> <curs>, {how much are <1>|what do <1> cost|I want <1>, how much}|{if|say} <an> costs <2> <curs>, how much for <1>|I {buy|order|need|take} <1> <many> for <2> <curs> each. {Total?|What's the total?|How much money do I need?}|<1> times <an> at <2> <curs>",
        (n, p), e + ".", f"{cap(str(n))} {names['many']} cost {e} {MONEY[cur]}.", None, names)


def change(r):
    note = r.choice([5, 10, 10, 20, 20, 50, 50, 100])
    c = r.randint(1, note - 1)
    cur, names = some(r)
    e = worked("-", note, c)
    return sum_of(r, "{how much|what} change do I get from <1> <curs> if I pay <2>|I pay {with|using} a <1> <cur> note, it costs <2>{. Change?|, how much back?|. What do I get back?|, what's my change}|{bought|got} <an> for <2> <curs>, gave <1>{. Change?|, what do I get back|, how much is the change?}|change from <1> <curs> for <2>{?|}|it was <2> <curs> and I gave the {man|lady|boy|waiter|driver} <1>{, what do I get back|. How much should come back?|, change?}|<1> <curs> minus <an> of <2>, {what's left|what remains}|my <rel> has <1> <curs> and spends <2>, what's left", (note, c), e + ".", f"The change is {e} {cur if note - c == 1 else MONEY[cur]}." if r.random() < 0.7 else f"{e}, so {coins(note - c, cur)} are left." if note - c > 1 else f"{e}, so 1 {cur} is left.", [f"= {note - c}"], names)


def split(r):
    n, v = r.randint(2, 8), r.randint(3, 25)
    if r.random() < 0.15:
        n, v = r.choice([2, 4]), r.randint(4, 30) + 0.5
    cur, names = some(r)
    e = worked("/", n * v, n)
    return sum_of(r, "{the bill is|dinner was|lunch cost|the taxi is|it came to} <1> <curs>{,| and} {we are <2>|there are <2> of us|<2> people}{. How much each?|, what does each pay|, each pays?|. Who pays what?}|split <1> <curs> {between|among|by|for} <2> {people|friends|of us}|{share|divide} <1> <curs> {between|among} <2> <who>{, how much each|}|<2> <who> share a bill of <1> <curs>{, what's each share|. Each?|, how much for each}|how do <2> of us split <1> <curs> fairly|<2> friends, one bill, <1> <curs>. Each one's share?|a <one> for <1> <curs> from <2> of us: how much does everyone chip in",
        (n * v, n), e + ".", f"Each pays {e} {MONEY[cur]}.", [e.split(" = ")[1]], names)


def total(r):
    a, b, c = r.randint(2, 30), r.randint(2, 20), r.randint(2, 9)
    cur, names = some(r)
    x = r.random()
    if x < 0.4:
        e = worked("+", a, b)
        return sum_of(r, "<an> for <1> <curs> and a {cake|drink|magazine|hat|salad} for <2>{, total?|. Together?|: how much in all|, what do I pay}|I spent <1> <curs> on {food|books|petrol|presents} and <2> on {drinks|stamps|parking|flowers}, how much {in all|altogether|is that}|what do <1> <curs> and <2> <curs> make {together|in total}|my <rel> gave me <1> <curs> and {<m>|my <role>} gave me <2>, how much have I got",
            (a, b), e + ".", f"Together that is {e} {MONEY[cur]}.", None, names)
    if x < 0.7:
        v = c * a + b
        e = f"{c} x {a} + {b} = {v}"
        return sum_of(r, "<3> <many> at <1> <curs> and <an_two> for <2>{. Total?|, how much altogether|, what do I pay}|I buy <3> <many> for <1> <curs> each plus a bag for <2>{, total?|. How much?|, what's the sum}|<3> tickets, <1> <curs> each, and <2> <curs> for parking{. In all?|, how much in total|}",
            (a, b, c), f"{c} x {a} = {c * a}, and {c * a} + {b} = {v}.", f"That is {e} {MONEY[cur]}.", None, dict(names, an_two=r.choice(["a drink", "a cake", "a poster", "a mug"])))
    a = a + b + 20
    e = f"{a} - {b} - {c} = {a - b - c}"
    return sum_of(r, "I {have|had} <1> <curs>, spend <2> on {lunch|a book|petrol} and <3> on {coffee|the bus|a card}{. What's left?|, how much is left|, left over?}|from <1> <curs> I pay <2> and then <3>, what {remains|is left}|my <rel> has <1> <xs>, loses <2> and gives away <3>. How many left?|<1> <xs>, <2> eaten {today|at lunch}, <3> {tomorrow|at night}, {how many remain|what's left}",
        (a, b, c), f"{a} - {b} = {a - b}, and {a - b} - {c} = {a - b - c}.", e, None, names)


def ages(r):
    a, b = r.randint(12, 80), r.randint(2, 40)
    x = r.random()
    if x < 0.3 and a != b:
        a, b = max(a, b), min(a, b)
        return sum_of(r, "I am <1> and my <rel> is <2>{, how many years between us|. What's the age gap?|, what is the age difference}|age difference between <1> and <2>|how much older is <n> at <1> than <m> at <2>|<n> is <1>, <m> is <2>. How many years apart?",
            (a, b), worked("-", a, b) + ".", worked("-", a, b) + (" years" if a - b > 1 else " year"), [f"= {a - b}"])
    if x < 0.5:
        b = min(b, 20)
        return sum_of(r, "I'm <1>, how old will I be in <2> years|how old is <n> in <2> years if {he|she} is <1> now|my <rel> is <1>. Age in <2> years?|in <2> years I'll be how old? I am <1>",
            (a, b), worked("+", a, b) + ".", f"{worked('+', a, b)}, so {a + b} years old.", [f"= {a + b}"])
    if x < 0.62:
        b = min(b, a - 1)
        return sum_of(r, "I am <1>, how old was I <2> {years ago|years back}|my <rel> is <1> now. And <2> years ago?|<n> is <1>. How old was {he|she} <2> years ago",
            (a, b), worked("-", a, b) + ".", f"{worked('-', a, b)}, so {a - b} years old.", [f"= {a - b}"])
    born = r.choice([r.randint(1940, 2012), 10 * r.randint(195, 201)])
    now = r.choice([y for y in (2000, 2010, 2020, 2025, 2030, 2040, 2050, 2024, 2035) if 5 < y - born < 90])
    e = worked("-", now, born)
    if x < 0.85:
        return sum_of(r, "{I was|I'm|my <rel> was|<n> was} born in <1>{, how old in <2>|. Age in <2>?|, and in <2>?}|born <1>, how old in <2>|how old is somebody in <2> who was born in <1>|if I was born in <1>, how old {will I be|am I} in <2>|year of birth <1>, year <2>: age?",
            (born, now), e + ".", f"{e}, so {now - born} years old.", [f"= {now - born}"])
    return sum_of(r, "how many years {from|between} <1> {to|and} <2>|how long is it from <1> to <2>|{our house|the church|the shop|the club} is from <1>, how old was it in <2>|years between <1> and <2>|<1> to <2>, how many years",
        (born, now), e + ".", f"{e} years", [f"= {now - born}"])


UNITS = [("hours", "minutes", 60, 12), ("minutes", "seconds", 60, 10), ("days", "hours", 24, 7), ("weeks", "days", 7, 20), ("years", "months", 12, 12), ("dozen", "pieces", 12, 12), ("meters", "centimeters", 100, 9), ("kilometers", "meters", 100, 0), ("decades", "years", 10, 12), ("centuries", "years", 100, 9), ("euros", "cents", 100, 9), ("feet", "inches", 12, 9), ("pairs", "pieces", 2, 30), ("dollars", "cents", 100, 9), ("cats", "legs", 4, 12), ("spiders", "legs", 8, 12), ("bikes", "wheels", 2, 30), ("cars", "wheels", 4, 20), ("hens", "legs", 2, 30), ("triangles", "corners", 3, 30), ("hands", "fingers", 5, 20), ("cows", "legs", 4, 20)]
UNITS = [u for u in UNITS if u[3]]
HAVE = "cats hands spiders bikes cars hens triangles cows".split()


def units(r):
    big, small, k, most = r.choice(UNITS)
    n = r.randint(2, most)
    if r.random() < 0.25 and big not in HAVE:
        e = worked("/", n * k, k)
        return sum_of(r, f"how many {big} are <1> {small}|<1> {small} in {big}{{?|}}|<1> {small}{{, how many {big}| is how many {big}| make how many {big}}}|I have <1> {small}{{. How many {big}?|, {big}?}}",
            (n * k,), e + ".", f"{e}, so {n} {big}.", [f"= {n}"])
    e = worked("x", n, k)
    if big in HAVE:
        return sum_of(r, f"how many {small} {{have <1> {big}|do <1> {big} have}}|<1> {big}, how many {small}{{ altogether| in all|?}}|{{I see|there are|we have}} <1> {big}. How many {small}?|{small} of <1> {big}{{?|, in total?}}|count the {small} of <1> {big}",
            (n,), f"{k} {small} each. {e}.", f"{n} {big} have {e} {small}.", [f"= {n * k}"])
    of = "" if big != "dozen" else " eggs"
    return sum_of(r, f"how many {small} are {{<1>|in <1>}} {big}|<1> {big} in {small}{{?|}}|<1> {big}{{ is how many {small}|, how many {small}?|: {small}?}}|{{convert|change|turn}} <1> {big} {{to|into}} {small}|I need <1> {big} in {small}|what are <1> {big} in {small}" if not of else "how many eggs are <1> dozen|<1> dozen eggs{, how many| is how many eggs|?}|I need <1> dozen rolls, how many pieces is that|how many is <1> dozen",
        (n,), f"{k} {small} each. {e}.", f"{e} {small}" if not of else f"{n} dozen are {e}.", [f"= {n * k}"])


def clock(h, m):
    return f"{h}:{m:02d}"


def times(r):
    h, m = r.randint(6, 20), 5 * r.randint(0, 11)
    d = r.choice([5 * r.randint(1, 11), 5 * r.randint(1, 11), 60, 90, 75, 120])
    e, t = divmod(h * 60 + m + d, 60)
    a, b = clock(h, m), clock(e, t)
    d_said = r.choice([f"{d} minutes", f"{d} min", f"{d} minutes"]) if d not in (60, 90, 120) else {60: "an hour", 90: "one and a half hours", 120: "two hours"}[d]
    x = r.random()
    if x < 0.5:
        return sum_of(r, "{train|bus|my train|the ferry|the flight} leaves {at |}<1>{,| and} takes <2>{, when does it arrive|. Arrival?|, when am I there}|{what time is it|what is} <2> after <1>|{film|match|lesson|meeting|concert} starts <1>, {lasts|runs|goes on for} <2>{. When is it over?|, ends when?}|<1> plus <2>{?|, what time is that}|I leave at <1> and need <2>, when {am I there|do I get there}|the cake goes in at <1> for <2>. When is it done?",
            (a, d_said), f"{a} plus {d} minutes is {b}.", cap(f"{d_said.replace(' min', ' minutes') if d_said.endswith(' min') else d_said} after {a} it is {b}."), [b])
    if x < 0.75 and d < 120:
        return sum_of(r, "how {long|many minutes} is it from <1> to <2>|from <1> {to|until|till} <2>{, how long| is how many minutes|?}|{lesson|film|bus ride|nap} from <1> to <2>, how many minutes|how much time between <1> and <2>|it's <1> and the {train|show|shop} {goes|starts|shuts} at <2>, how many minutes have I got",
            (a, b), f"From {a} to {b} it is {d} minutes.", f"From {a} to {b} it is {d} minutes.", [f"{d} minutes"])
    i, n = r.randrange(7), r.randint(2, 10)
    v = DAYS[(i + n) % 7]
    if x < 0.9:
        return sum_of(r, "what day is it <2> days after <1>|today is <1>, what day is it in <2> days|if it's <1>, which weekday is in <2> days|<2> days from <1>{?| is what day?}",
            (DAYS[i], n), f"{DAYS[i]} and {n} days is {v}.", f"{n} days after {DAYS[i]} it is {v}.", [v])
    return sum_of(r, "how many hours {from|between} <1> {to|and} <2> o'clock|I work from <1> to <2> o'clock, how many hours{ is that|?}|the shop is open from <1> to <2>{. How many hours?|, that's how many hours}",
        (min(h, 11), 12 + i), worked("-", 12 + i, min(h, 11)) + ".", f"{worked('-', 12 + i, min(h, 11))} hours", [f"= {12 + i - min(h, 11)}"])


def remainder(r):
    b = r.randint(2, 9)
    v, rest = r.randint(2, 9), r.choice([0] + list(range(1, b)))
    a = b * v + rest
    _, names = some(r)
    e = f"{b} x {v} = {b * v}"
    why, must = f"{e}, and {a} - {b * v} = {rest}.", [f"{rest} left over" if rest else f"= {v}"]
    x = r.random()
    if x < 0.25:
        return sum_of(r, "what's the remainder of <1> {/|divided by} <2>|<1> {mod|modulo} <2>|remainder when <1> is divided by <2>|<1> divided by <2> with remainder|<1> : <2>, what is left over|rest of <1> / <2>",
            (a, b), why, f"{a} divided by {b} is {v}, with {rest} left over, as {e}.", [f"{rest} left over"])
    if x < 0.45:
        return sum_of(r, "can <2> <who> share <1> <xs> {evenly|fairly|equally}|do <1> <xs> {go|divide} evenly {among|between} <2> <who>|<2> <who> and <1> <xs>, {can everybody get the same|is that fair}",
            (a, b), why, f"No: {v} each, and {rest} left over, as {e}." if rest else f"Yes, {worked('/', a, b)} each.", must, names)
    return sum_of(r, "<1> <xs> for <2> <who>{, how many each| each?|. How many does each get?|, what does everybody get}|{share|split|divide} <1> <xs> {among|between} <2> <who>|<2> <who> share <1> <xs>{. How many each?|, what does each get|}|<1> <xs>, <2> <who>, be fair|give <1> <xs> to <2> <who>, the same for all",
        (a, b), why, f"{v} each, and {rest} left over, as {e}." if rest else f"{worked('/', a, b)} each", must, names)


def grid(r):
    a, b = r.randint(2, 12), r.randint(2, 12)
    e = worked("x", a, b)
    x = r.random()
    if x < 0.6:
        t = r.choice("chairs|tulips|seats|tiles|stamps|buttons|carrots|desks|boxes|trees|bottles|stars|windows|photos".split("|"))
        return sum_of(r, f"<1> rows {{of|with}} <2> {t}{{, how many| in total| altogether?|?|. How many {t}?}}|<1> rows and <2> columns of {t}, how many{{ is that|}}|{t}: <1> rows, <2> in each{{?|, total?}}|we {{set up|plant|put}} <1> rows of <2> {t}. How many {t} do we need?|how many {t} are <1> by <2> rows",
            (a, b), e + ".", f"{e} {t}", [f"= {a * b}"])
    if x < 0.8:
        return sum_of(r, "{area|surface} of a {room|garden|carpet|table} <1> {by|x} <2> meters|a {room|field|wall} is <1> meters long and <2> wide, what's the area|how many square meters is <1> x <2>{ m| meters}",
            (a, b), e + ".", f"{e} square meters", [f"= {a * b}"])
    v = 2 * (a + b)
    return sum_of(r, "perimeter of a rectangle <1> by <2>|how much fence {for|around} a garden of <1> by <2> meters|what is the way around a field <1> meters long and <2> wide",
        (a, b), f"2 x {a} = {2 * a}, 2 x {b} = {2 * b}.", f"{2 * a} + {2 * b} = {v} meters", [f"= {v}"])


def average(r):
    v = r.randint(3, 30)
    d = r.randint(1, min(v - 1, 9))
    a, b, c = r.choice([(v - d, v, v + d), (v + d, v - d, v), (v, v - d, v + d), (v - d, v - d, v + 2 * d)])
    return sum_of(r, "{average|mean} of <1>, <2> and <3>|what's the {average|mean} of <1>, <2>, <3>|avg <1> <2> <3>|{my marks are|I scored|I ran} <1>, <2> and <3>{, average?|. What's the average?|, what is that on average}|<1>, <2>, <3>: on average?|on average how much is <1>, <2> and <3>",
        (a, b, c), f"{a} + {b} + {c} = {3 * v}, and {3 * v} / 3 = {v}.", f"The average is {3 * v} / 3 = {v}.", [f"= {v}"])


def recipe(r):
    a, k = r.randint(2, 8), r.choice([2, 2, 2, 3])
    what = r.choice("eggs|cups of flour|spoons of sugar|cups of rice|potatoes|onions|tomatoes|spoons of oil|carrots|cups of milk".split("|"))
    dish = r.choice("cake|soup|pancakes|salad|waffles|stew|pie|bread|pasta|curry".split("|"))
    if r.random() < 0.6:
        e = worked("x", a, k)
        return sum_of(r, f"{{my|the}} {dish} recipe {{needs|takes|has}} <1> {what}{{,|;}} {{I want to make <2> the amount|I {'double' if k == 2 else 'triple'} it}}{{. How many?|, how many do I need}}|{'double' if k == 2 else 'triple'} a recipe with <1> {what}{{, how many then|?}}|<1> {what} for {a} people, how many for {a * k}|{dish} for {2 * a} takes <1> {what}. For {2 * a * k} people?",
            (a, "twice" if k == 2 else "three times"), e + ".", f"{e} {what}", [f"= {a * k}"])
    e = worked("/", a * k, k)
    return sum_of(r, f"{'halve' if k == 2 else 'make a third of'} a recipe with <1> {what}|the {dish} takes <1> {what} but I only make {'half' if k == 2 else 'a third'} of it{{, how many|. How many then?}}|<1> {what} for {3 * k} people, how many for 3",
        (a * k,), e + ".", f"{e} {what}", [f"= {a}"])


def missing(r):
    whole = r.choice([100, 100, 100, 10, 20, 50, 60, 30])
    a = r.randint(1, whole - 1)
    e, x = worked("-", whole, a), r.random()
    cur, names = some(r)
    if x < 0.4:
        return sum_of(r, "what is missing {to <2> if I have <1>|from <1> to <2>}|how much {more to <2>|is missing to <2>|until <2>} from <1>|from <1> to <2>{, how far| is how much|?}|I {have|saved} <1> <curs> and need <2>, how much is missing|{I've read|we did|I've typed} <1> of <2> {pages|kilometers|exercises|lines}, how many are left|<1> of <2> {guests|pupils|players|parts} are here, how many are missing|<1> down, how many to go to <2>",
            (a, whole), e + ".", f"{e}, so {whole - a} {'is' if whole - a == 1 else 'are'} missing.", [f"= {whole - a}"], names)
    b, c = r.randint(2, 12), r.randint(2, 12)
    if x < 0.65:
        p, n = "<1> plus what {is|makes|gives} <2>|<1> + ? = <2>|? + <1> = <2>|<1> + x = <2>, {what is x|x?}|what {must|do} I add to <1> to {get|reach} <2>|what plus <1> is <2>", (a, whole)
    elif x < 0.85:
        e, p, n = worked("/", b * c, b), "what times <1> is <2>|<1> x ? = <2>|<1> times what makes <2>|which number times <1> gives <2>|how {often|many times} does <1> {go into|fit into} <2>", (b, b * c)
    else:
        e, p, n = worked("+", b, c), "what minus <1> is <2>|? - <1> = <2>|I think of a number, take away <1> and get <2>|which number less <1> gives <2>", (b, c)
    return sum_of(r, p, n, e + ".", f"{e}, so the number is {e.split(' = ')[1]}.", [e.split(" = ")[1]])


def sequence(r):
    x = r.random()
    if x < 0.6:
        a, d = r.randint(1, 20), r.choice([1, 2, 2, 3, 4, 5, 5, 10, 10])
        L, why = [a + i * d for i in range(5)], f"Each number is {d} more."
        if r.random() < 0.25:
            L, why = [x + 5 * d for x in L][::-1], f"Each number is {d} less."
            L = [a + (5 - i) * d for i in range(5)]
    else:
        k = r.choice([2, 2, 3, 10])
        L = [r.randint(1, 6 if k < 10 else 2) * k**i for i in range(1)]
        for _ in range(3 if k > 2 else 4):
            L.append(L[-1] * k)
        why = f"Each number is {k} times the one before."
        L = [x for x in L if x < 1000]
    s = r.choice([", ", ", ", " ", ","]).join(map(str, L[:-1]))
    return sum_of(r, "<1>{, ...|, ?|, next?|... what's next|, what comes next|, and then?}|what comes after <1>|continue{:| the sequence} <1>|which number {is next|follows|comes next}: <1>|next number {in|after} <1>|{sequence|series|pattern} <1>{, go on|, how does it go on|. Next one?}",
        (s,), f"{why} After {L[-2]} comes {L[-1]}.", f"The next number is {L[-1]}.", [f"is {L[-1]}."])


def parity(r):
    n, ask = r.randint(1, 200), r.choice(["odd", "even"])
    odd = "odd" if n % 2 else "even"
    why = f"{n} ends in {n % 10}, so it is {odd}."
    if r.random() < 0.5:
        return sum_of(r, "is <1> {even or odd|odd or even}|<1>: {even or odd|odd or even}{?|}|{even or odd|odd or even}: <1>|tell me if <1> is {odd|even} or not|<1>, is it {even or odd|odd or even}",
            (n,), why, f"{n} is {odd}.", [odd])
    return sum_of(r, f"is <1> {{{ask}|an {ask} number}}|<1> is {ask}, {{right|isn't it|true}}?|would you call <1> {ask}|does <1> count as {ask}",
        (n,), why, f"{'Yes' if ask == odd else 'No'}, {n} is {odd}.", [odd])


def bigger(r):
    a, b = r.sample(range(1, 200), 2)
    if r.random() < 0.3 and str(b)[::-1] != str(b) and b % 10:
        a = int(str(b)[::-1])
    hi, lo, word = max(a, b), min(a, b), r.choice(["bigger", "larger", "more", "higher"])
    x = r.random()
    if x < 0.5:
        return sum_of(r, f"which is {word}, <1> or <2>|what's {word}: <1> or <2>|<1> or <2>, {{which is {word}|what is {word}}}|{word} one: <1> or <2>|compare <1> and <2>|{{what|which}} is {word} of <1> and <2>",
            (a, b), f"{hi} is more than {lo}.", f"{hi} is {word} than {lo}.", [f"{hi} is"])
    if x < 0.75:
        return sum_of(r, f"is <1> {word} than <2>|<1> is {word} than <2>, {{right|isn't it|true}}?|is it true that <1> is {word} than <2>|<1> > <2>?",
            (a, b), f"{hi} is more than {lo}.", f"{'Yes' if a > b else 'No'}, {hi} is {word} than {lo}.", [f"{hi} is"])
    L = r.sample(range(1, 120), 3)
    w, v = r.choice([("smallest", min(L)), ("largest", max(L)), ("biggest", max(L)), ("lowest", min(L))])
    return sum_of(r, f"which is the {w}: <1>, <2> or <3>|{w} of <1>, <2>, <3>|<1> <2> <3> {w} number|find the {w} number: <1>, <2>, <3>",
        tuple(L), f"The numbers in order: {', '.join(map(str, sorted(L)))}.", f"The {w} is {v}.", [str(v)])


def rounded(r):
    x = r.random()
    if x < 0.6:
        k, word, n = r.choice([(10, "ten", r.randint(11, 199)), (100, "hundred", r.randint(101, 980))])
        n += n % k == 0
        v = (n + k // 2) // k * k
        return sum_of(r, f"round <1> to the {{nearest |next |}}{word}|<1> rounded to {{tens|the {word}|the nearest {word}}}|round <1> to {{{word}s|full {word}s}}|what is <1> rounded to the nearest {word}|<1> to the nearest {word}{{?|}}".replace("{tens|", "{" + word + "s|"), (n,), f"{n} is nearest to {v}.", f"{n} rounded to the nearest {word} is {v}.", [f"is {v}"])
    n = r.randint(1, 60) + r.choice([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9, 0.5])
    v = int(n + 0.5)
    return sum_of(r, "round <1>{| to a whole number| up or down, please}|<1> rounded{?| to a whole number}|what is <1> rounded|<1> as a whole number",
        (n,), f"{value(n)} is nearest to {v}.", f"{value(n)} rounded to a whole number is {v}.", [f"is {v}"])


def squares(r):
    n = r.randint(2, 12)
    if r.random() < 0.65:
        return sum_of(r, "<1> squared{?|}|what is <1> squared|<1>^2|square of <1>|the square of <1>{?|}|<1> to the power of 2|<1> times itself|what's the square of <1>|a square with sides of <1>: area?",
            (n,), worked("x", n, n) + ".", worked("x", n, n), [f"= {n * n}"])
    return sum_of(r, "square root of <1>|root of <1>{?|}|what's the square root of <1>|sqrt(<1>)|which number times itself is <1>|sqrt <1>",
        (n * n,), worked("x", n, n) + ".", f"The square root of {n * n} is {n}, as {worked('x', n, n)}.", [f"is {n},"])


def counting(r):
    n = r.randint(3, 12)
    x = r.random()
    if x < 0.45:
        q, L = "count {down|backwards} from <1>{| to 1| please| like a rocket}|countdown from <1>|count from <1> {down to|back to} 1|{start|do} a countdown, <1>|<1>, ... count down to 1", list(range(n, 0, -1))
    elif x < 0.75:
        q, L = "count to <1>{| please| for me}|count up to <1>|count from 1 to <1>|numbers {from 1 to|up to} <1>|can you count to <1>", list(range(1, n + 1))
    else:
        k = r.choice([2, 5, 10, 3])
        q, L = f"count by {k}s to {k * n}|count in {k}s up to {k * n}|the {k} times table up to {k * n}|{k}, {2 * k}, ... up to {k * n}", [k * i for i in range(1, n + 1)]
    s = ", ".join(map(str, L))
    return sum_of(r, q, (n,), f"From {L[0]} to {L[-1]}.", s, [s])


def checked(r):
    op = r.choice("++--xx/")
    a, b = pair(r, op)
    e = worked(op, a, b)
    v = int(e.split(" = ")[1])
    right = r.random() < 0.5
    w = v if right else v + r.choice([-10, -2, -1, 1, 2, 10]) if v > 10 else v + r.randint(1, 3)
    q = r.choice(["is <e> {really |}<3>{|, right}", "<e> = <3>{, right?|, correct?|?|, is that right|, true or false?}", "{my <rel>|<n>|my teacher|I} {says|said} <e> is <3>{. True?|, is that right|, correct?}".replace("|I} {says|said}", "} {says|said}"), "I think <e> is <3>, {am I right|is that so|right}", "does <e> make <3>", "I got <3> for <e>, {is that right|correct|ok}", "check my sum: <e> = <3>"])
    return sum_of(r, [q.replace("<e>", r.choice(SIGNED[op][1:6]))], (a, b, w), e + ".", ("Yes, " if right else "No, ") + e + ".", [("Yes, " if right else "No, ") + e], words=0)


def pace(r):
    a, b = r.randint(2, 12), r.randint(2, 8)
    cur, names = some(r)
    e, back = worked("x", a, b), worked("/", a * b, a)
    return r.choice([
        lambda: sum_of(r, "{I drive|the bus goes|a train does} <1> km {an hour|per hour|each hour} for <2> hours{, how far|. Distance?|, how many km}|{at|going} <1> km/h, how far in <2> hours", (10 * a, b), worked("x", 10 * a, b) + ".", worked("x", 10 * a, b) + " km", [f"= {10 * a * b}"]),
        lambda: sum_of(r, "I save <1> <curs> {a|every|each} {week|month|day}, how much in <2> {weeks|months|days}|<1> <curs> {pocket money a week|a day}{, how much in <2> of them|: and after <2>?}|<2> {hours|days} of work at <1> <curs>, {what do I earn|how much is that}", (a, b), e + ".", f"{e} {MONEY[cur]}", [f"= {a * b}"], names),
        lambda: sum_of(r, "a book has <1> pages, I read <2> a day{. How many days?|, when am I done}|<1> pages, <2> {a day|per evening}{, how many days|?}|{I need|the bike costs} <1> <curs> and {I |}save <2> a week{, how many weeks|. How long?}|how many {bags|boxes|tables} for <1> <xs> with <2> in each|<1> <xs>, <2> per {bag|box|plate|child}{, how many of them|?}", (a * b, a), back + ".", back, [f"= {b}"], names),
        lambda: sum_of(r, "I drink <1> {cups|glasses} a day, how many in <2> days|<1> {pills|walks|apples} a day for <2> days{, how many|?}|{we bake|she sells} <1> {cakes|rolls} an hour. In <2> hours?|<2> {cars|vans|teams} with <1> people each, how many people", (a, b), e + ".", e, [f"= {a * b}"]),
        lambda: sum_of(r, "it was <1> degrees, now it's <2>{, how much colder|. Difference?}|{yesterday|at noon} <1> degrees, {today|at night} <2>: how many degrees less", (a + 15, b), worked("-", a + 15, b) + ".", worked("-", a + 15, b) + " degrees", [f"= {a + 15 - b}"]),
        lambda: sum_of(r, "{we won|they won} <1> {to|:} <2>, {what's the difference|by how many goals}|<n> has <1> points, <m> has <2>. {Difference?|How many more has <n>?}|how {much|many} more is <1> than <2>|how much bigger is <1> than <2>", (a + b, b), worked("-", a + b, b) + ".", worked("-", a + b, b), [f"= {a}"]),
    ])()


TOO_BIG = """{what is|what's|how much is|calculate|} <a> {x|*|times} <f>{?|}|<a> multiplied by <f>{, exactly please|?}|<a> / <k>{ to five decimals|, all the digits|?}
{what is|find|} {the square root of|root of|sqrt} <a>{?|}|cube root of <a>|sqrt(<k>) to 10 decimal places|is <a> {a prime|prime}{ number|}{?|}
{list|give me|what are} {the first fifty primes|all primes up to a thousand|the primes between 500 and 600}|prime factors of <a>|factorise <a>{ please|}
{log|ln|the logarithm} of <k>{?|}|what's the {natural log|log to base 2} of <a>|<f> to the power of <s>|<f>^<s>|<s> to the <f>th power|<f> factorial|what is <f>!, the factorial
{how many digits has|work out} <f>{!| factorial}|{first|the first} {hundred|thousand|fifty} digits of pi|pi to 50 places{ please|}|{sine|cosine|tangent|sin|cos} of <f> degrees
{integrate|differentiate|derive} x^<s> {+|-} <s>x{ please|}|what's the integral of sin(x)|solve x^2 {+|-} <s>x + <f> = 0
solve the {equation system|equations}: <s>x + y = <f>, x - y = <s>|{compound interest|interest} on <a> euros at 3.7% over <f> years|monthly rate for a loan of <a> euros over 25 years
{standard deviation|variance} of <f>, <k>, <a>|<a> in {binary|hex|roman numerals}|convert <k> to {binary|hexadecimal}|{gcd|lcm} of <a> and <k>|<s>,<k>.<f> {x|*} <f>.<k>
<a>.<f> - <k>.<s><f> {x|*} <s>|<s>/<f> + <f>/<k> as a fraction|how many seconds {are in|have} <f> years|{add up|sum of} all numbers from 1 to <a>|<f> % of <a>.<s>
{determinant|inverse} of the matrix <s> <f> <k> <s>|the <f>th fibonacci number|{probability|odds} of <s> sixes in <f> throws|how many ways to {seat|order} <f> people
{in how many years does|when does} <k> euros double at <s>.<s> percent|<a><k> + <k><a><f>|<a><f> minus <k><f>, big numbers I know|multiply <a> by <k> and divide by <f>""".replace("\n", "|")
BEYOND = ["That is too big a sum for me: I am good at small ones. A calculator gives you the exact result.", "That goes beyond me, I can only do small sums in the head. Please take a calculator.", "I would get that wrong: such numbers are too hard for a very small model. A calculator is better.", "That is beyond my maths. A calculator knows it, and a bigger model may: `parley serve -m DIR`.", "Sorry, I only do simple sums, such as 12 + 30. For this please use a calculator.", "I cannot work that out reliably, so I had better not guess. A calculator can.", "That is too hard for me, I am a very small model. A calculator is made for it.", "My head is too small for that one. Please ask a calculator; small sums I do gladly.", "I am afraid that this is more than I can reckon. A calculator or a spreadsheet will do it."]
TOO_BIG = top(TOO_BIG)


def too_big(r):
    names = dict(a=str(r.randint(1000, 9999)), k=str(r.randint(201, 999)), f=str(r.choice([13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97])), s=str(r.randint(5, 9)))
    q = r.choice(TOO_BIG)
    names["f"] = str(r.randint(201, 999)) if "<a> {x" in q or "multiplied by <f>" in q else names["f"]
    lead = r.choice(["", "", "", "", "can you do this: ", "quick: ", "I bet you can't: ", "my <rel> wants to know: ", "hard one: ", "for my exam: ", "hey, "])
    return ended(r, re.sub("  +", " ", put(r, lead + q, names))), "This is too hard for the head. I say so and name a calculator.", r.choice(BEYOND), []


KINDS = {bare: 14, three: 3, part: 6, percent: 5, price: 5, change: 4, split: 3, total: 4, ages: 5, units: 6, times: 4, remainder: 2.5, grid: 3, average: 2, recipe: 2, missing: 3.5, sequence: 2, parity: 1.5, bigger: 2, rounded: 1.5, squares: 2, counting: 2, checked: 3, pace: 5, too_big: 6}
_kinds, _weights = list(KINDS), list(KINDS.values())


def everyday(r):
    return r.choices(_kinds, _weights)[0](r)


# ---------------------------------------------------------------- dialogues
def dialogues():
    """{kind: dialogues} of dialogues.txt and dialogues2.txt; a dialogue is a list of turns (what the user says, what is answered), ("~", "") may become a turn about something else."""
    found = {}
    here = os.path.dirname(os.path.abspath(__file__))
    texts = [open(os.path.join(here, name), encoding="utf-8").read().strip() for name in ("dialogues.txt", "dialogues2.txt")]
    for block in "\n\n".join(texts).split("\n\n"):
        if block.startswith("["):
            kind = found.setdefault(block[1:-1], [])
            continue
        said = iter(block.split("\n"))
        kind.append([(q, "" if q == "~" else next(said).replace("\\n", "\n")) for q in said])
    return found


DIALOGUES = dialogues()
MAKE.update(
    whynot=lambda r, b: spread(r, "{why not|why|how come|why can't you|what stops you|but why|really? why|others can}"),
    guess=lambda r, b: spread(r, "{just guess|guess|take a guess|oh come on, guess|a rough guess?|try anyway|say something|please try|roughly?|and if you had to guess}"),
    whatthen=lambda r, b: spread(r, "{ok, what can you do then|what can you do then|so what are you good for|then what can you do|what do you know then|and what CAN you do|anything you can do?}"),
    nohelp=lambda r, b: spread(r, "{you are no help|that doesn't help|useless|you're not very useful|great help you are|so you can do nothing|then what's the point of you|thanks for nothing}"),
    can=lambda r, b: r.choice(["I do small sums, write short rhymes and stories, tell jokes, look at drawings and know Parley. Try \"a poem about the sea\".", "Small sums, jokes, riddles, short poems and stories, drawings, and questions about Parley. What would you like?"]),
    thanks_=lambda r, b: spread(r, "{thanks|thank you|thx|great, thanks|cheers|perfect|ta|thanks a lot|that helps|ok thanks}"),
    welcome=lambda r, b: r.choice(["You are welcome!", "You are welcome! Is there anything else?", "Glad to help!", "With pleasure!"]),
    ah=lambda r, b: an(need(r, b, "h")["h"]), ah_two=lambda r, b: an(need(r, b, "h_two")["h_two"]), awork=lambda r, b: an(r.choice(POOL["work"])), col_cap=lambda r, b: cap(need(r, b, "col")["col"]),
    lover_=lambda r, b: r.choice("girlfriend boyfriend husband wife partner".split()), work_=lambda r, b: r.choice("thesis|book|bike shed|quilt|garden path|first song|model ship|kitchen|painting|tax form|marathon plan".split("|")),
    a_ware=lambda r, b: an(r.choice(WARES[:18])[0]), a_thing=lambda r, b: r.choice("milk bread cheese tea rice soap salt flour honey butter".split()),
    kin=lambda r, b: r.choice("sister brother mother father aunt uncle grandma grandpa teacher neighbour daughter son friend cousin niece nephew wife husband".split()),
    kin_poem=lambda r, b: kin_lines(r, need(r, b, "kin")), kin_short=lambda r, b: b["kin_two"], small_sum=lambda r, b: small(r, b), small_answer=lambda r, b: b["small_e"],
    poem_again=lambda r, b: another_poem(r, b), wed_poem=lambda r, b: "Two hearts, one road, a sunny day,\nmay love go with you all the way.", birthday_poem=lambda r, b: "Another year, another cake,\na wish for every breath you take!",
)
KIN = "A little song for you, my dear,|my <k>, loved throughout the year.;My <k> has a heart of gold|and laughs at jokes, both new and old.;Dear <k>, take this rhyme from me,|as warm as any cup of tea.;The sun comes up, the flowers know:|my <k> makes the garden glow.;When days are grey and skies are low,|my <k> lets the laughter grow.".split(";")


def kin_lines(r, b):
    two = [c.replace("|", "\n").replace("<k>", b["kin"]) for c in r.sample(KIN, 2)]
    b["kin_two"] = two[0]
    return "\n".join(two)


def another_poem(r, b):
    while True:
        p = lines(r, b, "t")
        if not set(p.split("\n")) & set(b["poem"].split("\n")):
            return p


def small(r, b):
    op = r.choice("+-x")
    x, y = pair(r, op)
    b["small_e"] = worked(op, x, y)
    return r.choice(SIGNED[op][:6]).replace("<1>", str(x)).replace("<2>", str(y))


def dialogue(r):
    """One of DIALOGUES, cut anywhere after its second turn."""
    turns = r.choice([d for kind in DIALOGUES.values() for d in kind])
    b, T = {}, []
    for q, a in turns:
        if q == "~":
            if r.random() < 0.5:
                q, t, a, _ = everyday(r)
                T.append((q, a, t))
            continue
        T.append((typed(r, put(r, q, b)), put(r, a, b), "I answer what the user says, as it follows from the turns before."))
    cut = len(T) if r.random() < 0.6 or ("~", "") in turns else r.randint(min(2, len(T)), len(T))
    return T[:cut]


def typed(r, q):
    """As people type it: with a capital or without, with a sign at the end or without."""
    x = r.random()
    q = cap(q) if x < 0.4 else q.lower() if x < 0.55 else q
    if q[-1:].isalnum() and r.random() < 0.3:
        asks = re.search(r"(?i)\b(what|which|who|how|where|when|why)\b|^(is|are|do|does|can|could|may|did|shall|should|any|will|have)\b", q)
        q += "?" if asks else r.choice([".", ".", "!"])
    return q


def sums_on(r):
    """A sum, and what is reckoned on with its result."""
    op = r.choice("+-x/")
    a, b = pair(r, op)
    e = worked(op, a, b)
    v = int(e.split(" = ")[1])
    T = [(ended(r, r.choice(ASK).replace("<e>", r.choice(SIGNED[op])).replace("<1>", str(a)).replace("<2>", str(b)).replace("my <rel>", "my sister").replace("<n>", "Tom")), e, e + ".")]
    T[0] = (spread(r, T[0][0]), e, e + ".")
    for _ in range(r.choice([1, 1, 2, 3])):
        n = r.randint(2, 12)
        ways = [("+", n, "{and |now |}plus <n>{?|}|add <n>{ to that|}|and <n> more?|<n> more|+ <n>|and with <n> on top?|what if I add <n>"), ("+", v, "and {that |}doubled?|double {that|it}|twice that?|and the same again?|times two") if v < 200 else None]
        ways += [("-", n, "{and |now |}minus <n>{?|}|take away <n>{ from that|}|less <n>?|- <n>|and <n> less?|now without <n>")] if v > n else []
        ways += [("/", 2, "and half of that{?|}|half of it?|halve it|now the half|divide that by two|and split in two?")] if v > 1 else []
        ways += [("x", n if n < 6 else 10, "times <n>?|and times <n>|<n> times that?|multiply {that|it} by <n>|now x <n>")] if v < 60 else []
        ways += [("/", 10, "{a tenth of that|divide it by ten|and divided by 10?}")] if v % 10 == 0 and v else []
        o, n, said_ = r.choice([w for w in ways if w])
        if "doub" in said_:
            o, n = "x", 2
        e = worked(o, v, n)
        T.append((typed(r, spread(r, r.choice(top(said_))).replace("<n>", str(n))), e, f"The last result was {value(v)}. {e}."))
        v = float(e.split(" = ")[1])
        if not v.is_integer():
            break
        v = int(v)
    return T


CLAIM = "{no, it's <w>|no, <w>|wrong, it's <w>|I think it's <w>|isn't it <w>?|my <rel> says <w>|are you sure? I get <w>|it must be <w>|nope. <w>|that's not right, it is <w>|my calculator says <w>|I got <w>}"
STAY = "{I see what you mean, but I get the same again|I have checked it once more|I am quite sure of this one|I reckoned it again and stay with it|Let me check once more, yes}: <e>"
DOUBT = "{are you sure|sure?|really?|is that right|can you check that|double check please|hmm, really|certain?|you positive?}"


def complaint(r):
    """A right sum that is doubted: the answer stays, kindly; or a wrong one that is put right."""
    op = r.choice("+-x/")
    a, b = pair(r, op)
    e = worked(op, a, b)
    v = int(e.split(" = ")[1])
    q = spread(r, r.choice(["{what is|how much is|what's} <e>{?|}", "<e>{?|}", "<e>"]).replace("<e>", r.choice(SIGNED[op]))).replace("<1>", str(a)).replace("<2>", str(b))
    wrong = v + r.choice([x for x in (-10, -2, -1, 1, 2, 10) if v + x > 0])
    x = r.random()
    if x < 0.45:
        T = [(typed(r, q), e, e + "."), (typed(r, put(r, CLAIM, {"w": str(wrong)})), spread(r, STAY).replace("<e>", e), f"{e}, so my answer was right. I stay with it.")]
        if r.random() < 0.6:
            T.append((typed(r, spread(r, "{oh, you're right|my mistake|ah yes, sorry|ok I believe you|right, I miscounted|oops, true}")), r.choice(["No problem! It happens to me, too.", "No problem at all!", "That happens easily."]), "The user agrees."))
        return T
    if x < 0.6:
        T = [(typed(r, put(r, "{you said|earlier you said|a moment ago you wrote} <s> is <w>{, that's wrong|. It's <v>!|, but it is <v>| - wrong, no?}", {"s": r.choice(SIGNED[op][1:6]).replace("<1>", str(a)).replace("<2>", str(b)), "w": str(wrong), "v": str(v)})), spread(r, "{I am sorry, that was wrong|Sorry about that}: ") + e, f"{e}, so {wrong} was wrong. I say sorry.")]
    elif x < 0.8:  # the first answer is wrong: it is given, not learnt
        T = [(typed(r, q), forms.OPEN + e.split(" = ")[0] + f" = {wrong}" + forms.SHUT, forms.OPEN + "A sum." + forms.SHUT), (typed(r, put(r, spread(r, r.choice([CLAIM, CLAIM, DOUBT])), {"w": str(v)})), spread(r, "{I am sorry, I was wrong|Sorry, that was my mistake|Oh, I am sorry, I got that wrong}: ") + e, f"{e}, so my answer was wrong. I say sorry.")]
    if x < 0.8:
        T.append((typed(r, spread(r, "{no problem|it's ok|never mind|all good|thanks|better|see, I knew it|that's it}")), r.choice(["Thank you! Please check what I say, I am small and make mistakes.", "Thank you for the patience!"]), "The user forgives me."))
        return T
    T = [(typed(r, q), e, e + "."), (typed(r, spread(r, DOUBT)), spread(r, "{Yes, I have checked it|Yes, I am sure|Yes}: ") + e, f"{e}. It is right.")]
    if r.random() < 0.5:
        T.append((typed(r, spread(r, "{ok thanks|good|fine, thanks|great|thank you}")), r.choice(["You are welcome!", "Glad to help!"]), "The user thanks me."))
    return T


def priced(r):
    """A price for one, then for more; an age now, then later."""
    n, p, m = r.randint(2, 9), r.randint(2, 12), r.randint(2, 12)
    cur, names = some(r)
    one, many, c = names["one"], names["many"], MONEY[cur]
    e, e2 = worked("/", n * p, n), worked("x", m, p)
    note = next(x for x in (20, 50, 100, 200) if x > m * p)
    if r.random() < 0.6:
        T = [(f"{spread(r, '{if |}')}{n} {many} cost {n * p} {c}{spread(r, '{, how much is one|. What is one?|, what does one cost}')}", f"One {one} costs {e} {c}.", e + "."),
             (spread(r, f"{{and {m}?|what about {m}|and for {m} of them|then how much are {m}|I need {m}|{m} then?}}"), f"{m} {many} cost {e2} {c}.", f"One costs {p}. {e2}."),
             (spread(r, f"{{I pay with {note}, change?|and the change from {note}|what do I get back from {note}|from a {note}, what's left}}"), f"The change is {worked('-', note, m * p)} {cur if note - m * p == 1 else c}.", worked("-", note, m * p) + ".")]
    else:
        a = r.randint(8, 70)
        d = r.choice([x for x in range(-7, 15) if x and a + x > 1])
        older = worked("+" if d > 0 else "-", a, abs(d))
        T = [(put(r, f"{{I'm|I am}} {a} and my {{sister|brother|cousin|friend|neighbour|colleague|wife|husband|partner}} is {abs(d)} {'years' if abs(d) > 1 else 'year'} {'older' if d > 0 else 'younger'}{{, how old is that|. How old?|, so how old}}", {}), f"{older}, so {a + d} years old.", older + "."),
             (spread(r, f"{{and in {m} years?|and {m} years from now|in {m} years then?}}"), f"{worked('+', a + d, m)}, so {a + d + m} years old.", worked("+", a + d, m) + "."),
             (spread(r, f"{{and me then|how old am I in {m} years|and what about me|me, in {m} years?}}"), f"{worked('+', a, m)}, so you are {a + m} then.", worked("+", a, m) + ".")]
    return [(typed(r, q), a, t) for q, a, t in T[: r.choice([2, 3, 3])]]


HELPED = [  # (what is asked, answer, option, what it does)
    ("how do I {load|use|start} {a bigger|another|my own} model|{bigger|other} model please|you are too small, how do I get a better one", "Stop the server with Ctrl C and start it again with a folder that holds a model: `parley serve -m DIR`. A GGUF file works too: `parley serve -m FILE.gguf`.", "-m", "It names the model: a folder of safetensors, or a GGUF file."),
    ("how can I make {you|it|this} faster|answers are so slow|speed it up please|this is too slow here", "Quantize the weights: `parley serve -m DIR --quantize q8` or `q4`.", "--quantize", "It stores the weights in 8 or 4 bits: less memory and faster answers, a little less exact."),
    ("{how do I|can I} change the port|port 8080 is taken|use another port", "Start it with another: `parley serve --port 8081`.", "--port", "It names the port on which the server listens. Without it that is 8080."),
    ("{how do I|can I} {keep|store} my chats on the server|I want my chats on all devices|share the history between my computers", "Start it with `parley serve --history DIR`: then the server stores the chats for all your devices.", "--history", "It names the folder where the server stores the chats of the page."),
    ("{how do I|can I} {open|reach} it from another computer|let my <rel> use it on {her|his} laptop|make it visible in my network", "For your network give it an address and a key: `parley serve --host 0.0.0.0 --api-key-file FILE`.", "--host", "It names the address to listen on. Without it that is 127.0.0.1, this computer alone."),
    ("how do I use {several|two|all my} models|I have many models, can I switch|switch between models", "Start it with `parley serve --models-dir DIR`, then click the name of the model at the top of the page to choose another.", "--models-dir", "It names the folder that holds your models, so that the page can offer them all."),
    ("how do I {set|limit} the number of threads|it uses all my cores|use only two cores", "`--threads N` sets the compute threads: `parley serve --threads 2`.", "--threads", "It sets how many threads compute. Without it there is one a core."),
    ("how do I protect it with a key|can I set a password|I want an API key", "Write a key of at least 16 characters into a file: `parley serve --api-key-file FILE`.", "--api-key-file", "It names a file with one key a line; who has none of them gets no answer."),
    ("can you use tools|how do I give you a calculator|turn on the built-in tools", "Yes: `parley serve --tools calculator,time` turns on built-in tools.", "--tools", "It turns on built-in tools that the model may use, such as a calculator and the time."),
    ("where are the logs|how do I write a log file|log to a file please", "`parley serve --log-file FILE` writes the log to a file. Prompts are never logged.", "--log-file", "It names the file to which log lines are added; without it they go to the terminal."),
    ("how long can a chat be|make the context bigger|context is full|set the context length", "The context limits what a chat can hold: `parley serve --ctx-size N` sets it in tokens.", "--ctx-size", "It sets how many tokens prompt and answer may have together."),
    ("how do I stop an answer|make it stop writing", "Press Esc, or the stop button at the text field. What was written so far stays.", None, None),
    ("how do I begin a new chat|new chat please, how|where's the new chat button", "Press Ctrl Shift O, or \"New chat\" above the list at the left.", None, None),
    ("how do I {change|edit} my question|I made a typo in my question", "Press the pencil at your question to edit it. The old version stays.", None, None),
    ("how do I send you a picture|where do I add an image|I want to show you a drawing", "Drop the file on the page, paste it with Ctrl V, or press the button under the text field.", None, None),
    ("is there a dark mode|it's too bright, make it dark|bigger letters please", "Open Settings (Ctrl ,): \"Theme\" has System, Light and Dark, and \"Text size\" goes from small to larger.", None, None),
    ("how do I {export|save} my chats|can I back up my chats", "Open Settings (Ctrl ,): \"Export all\" writes every chat into one file and \"Import\" reads it again.", None, None),
]


def helped(r):
    """Help with Parley, then what the option does, the phone, where to type it, whether it worked."""
    q, a, option, does = r.choice(HELPED)
    T, seen = [(put(r, r.choice(top(q)), {}), a)], set()
    more = {
        "phone": ("{and on my phone?|does it work on my phone too|and on a tablet?|same on the phone?|how about my phone}", "The page is the same on a phone or a tablet: open the server's address in its browser. For that the server must listen to your network: `parley serve --host 0.0.0.0 --api-key-file FILE`."),
        "works": ("{thanks it works|it works now|works, thank you|perfect, that did it|yes! it works|great, that was it|that worked|solved, thanks}", "{I am glad that it works!|You are welcome! I am glad that it works.|Glad to help!}"),
        "read": ("{where can I read more|is that written somewhere|where is that documented|which document says that}", "{It is in the documents of Parley: README.md and the folder docs.|README.md and the folder docs say more.}"),
    }
    if option:
        more["option"] = ("{what does that option do|what does <o> do|what is <o>|explain <o>|what's that <o> for|meaning of <o>?|and what does that do}".replace("<o>", option), does)
        more["where"] = ("{where do I type that|where do I enter it|type it where?|in this box?|what's the place for that command|do I write that here}", "In the terminal, not here: stop the server with Ctrl C, and start it again with that line.")
        more["failed"] = ("{it did not work|did not work|doesn't work|still the same|no change|I get an error|that failed|nothing happens}", "{I am sorry! Read the message in the terminal: it says what is wrong and what to do.|I am sorry that it failed. What does the terminal say? Its message names what to do.}")
        more["list"] = ("{are there other options|what other options exist|list all options|more options?}", "Many: `parley --help` lists them, and docs/options.md explains each.")
    else:
        more["failed"] = ("{it did not work|doesn't work for me|I can't find it|not there|nothing happens|still the same}", "{I am sorry! Reload the page and try it once more.|I am sorry. Reload the page; if it stays so, look at the message in the terminal.}")
        more["keys"] = ("{are there more shortcuts|what other keys are there|any keyboard shortcuts|more keys like that?}", "Press Ctrl / to see them all.")
    if option == "--host":
        more["phone"] = (more["phone"][0], "Yes, it is the same: open the address of this computer with the port in the phone's browser, and enter the key in its Settings.")
    for _ in range(r.choice([1, 1, 2, 2, 3])):
        k = r.choice([k for k in more if k not in seen])
        seen.add(k)
        T.append(tuple(spread(r, x) for x in more[k]))
        if k == "works":
            break
    return [(typed(r, q) if "--" not in q else q, a, "The user asks about Parley, and goes on about my last answer.") for q, a in T]


END = [("{thanks|thank you|thanks a lot|great, thank you|thx|cheers|ok thanks}", "{You are welcome!|Glad to help!|You are welcome! Is there anything else?}"), ("{bye|goodbye|ok bye|that's all, bye|see you|good night|gotta go|thanks, bye}", "{Goodbye! Have a nice day.|See you! Take care.|Goodbye, and take care!}")]
BEGIN = ("{hi|hello|hey|good morning|hello there|hi Seedling|good evening}", "{Hello! How can I help you?|Hi! What can I do for you?}")


def exchange(r):
    """The messages of a dialogue of two to five turns."""
    T = r.choices([dialogue, sums_on, complaint, priced, helped], [60, 12, 9, 5, 14])[0](r)
    if len(T) < 4 and r.random() < 0.15:
        T.insert(0, (typed(r, spread(r, BEGIN[0])), spread(r, BEGIN[1]), "A greeting."))
    if len(T) < 4 and r.random() < 0.25:
        q, a = r.choice(END)
        T.append((typed(r, spread(r, q)), spread(r, a), "The user thanks me or leaves."))
    return [m for q, a, t in T for m in ({"role": "user", "content": q}, {"role": "assistant", "content": a, "reasoning_content": t})]
