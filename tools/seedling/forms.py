"""JSON forms: the keys, which a schema forces, are given (no loss on them), the rest is learnt: short and fitting values, and then the end.

OPEN and SHUT enclose text that the model does not have to predict; data.Encoder takes them out.
"""
import json

from phrases import spread
from skills import pseudo, word
from words import *

OPEN, SHUT = "\x04", "\x05"
JOBS = "doctor teacher farmer baker pilot nurse painter cook driver singer".split()
HOBBIES = "reading painting music cooking chess running dancing swimming".split()
COLOR = "red blue green yellow orange purple pink brown black white".split()
DISHES = "soup pizza pasta salad curry rice bread cake pancakes stew".split()


def date(r):
    return f"{r.randint(1990, 2026)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}"


def full(r):
    return r.choice(NAMES) + " " + r.choice("Miller Smith Brown Weber Rossi Novak Silva Berg Moreau Tanaka Jones Lopez Wood Fischer".split())


def street(r):
    return f"{r.choice('Oak River Garden Station Church Mill Hill Lake'.split())} Street {r.randint(1, 90)}"


def sentence(r):
    return f"{cap(an(r.choice(ADJECTIVES)))} {r.choice(NOUNS)} with {an(r.choice(ADJECTIVES))} {r.choice(NOUNS)}."


FIELDS = {  # key names: how a value is made
    "name full_name author owner customer user person student player contact employee": full,
    "first_name firstname given_name friend nickname username": lambda r: r.choice(NAMES),
    "last_name lastname surname family_name": lambda r: full(r).split()[1],
    "title headline heading label subject topic": lambda r: f"The {cap(r.choice(ADJECTIVES))} {cap(r.choice(NOUNS))}",
    "product item thing object article": lambda r: r.choice(NOUNS),
    "city town place location origin destination birthplace capital": lambda r: r.choice(CITIES),
    "country nation": lambda r: cap(r.choice(list(CAPITALS))),
    "color colour favorite_color": lambda r: r.choice(COLOR),
    "animal pet species": lambda r: r.choice(ANIMALS),
    "fruit": lambda r: r.choice(FRUITS),
    "food dish meal recipe favorite_food": lambda r: r.choice(DISHES),
    "job profession occupation role": lambda r: r.choice(JOBS),
    "hobby interest sport": lambda r: r.choice(HOBBIES),
    "age years": lambda r: r.randint(3, 90),
    "year published founded born": lambda r: r.randint(1900, 2026),
    "count quantity number amount pages total n stock seats level": lambda r: r.randint(1, 99),
    "price cost value": lambda r: r.choice([r.randint(1, 500), round(r.uniform(1, 99), 2)]),
    "score rating stars grade points": lambda r: r.randint(1, 10),
    "confidence probability share ratio": lambda r: r.choice([0.5, 0.7, 0.8, 0.9, 0.95, 1]),
    "height weight length width temperature": lambda r: r.randint(1, 200),
    "active done available in_stock enabled valid vegetarian is_member ok married true_or_false open": lambda r: r.random() < 0.5,
    "email mail": lambda r: f"{r.choice(NAMES).lower()}@example.com",
    "phone telephone": lambda r: f"555-{r.randint(100, 999)}-{r.randint(1000, 9999)}",
    "date day_of_birth birthday created due start end": date,
    "time": lambda r: f"{r.randint(0, 23):02d}:{r.choice(['00', '15', '30', '45'])}",
    "day weekday": lambda r: r.choice(DAYS),
    "month": lambda r: r.choice(MONTHS),
    "street address": street,
    "zip postcode code id": lambda r: r.choice([str(r.randint(10000, 99999)), r.randint(1, 9999)]),
    "language": lambda r: r.choice("English French German Spanish Italian".split()),
    "size": lambda r: r.choice(["small", "medium", "large"]),
    "status state": lambda r: r.choice(["open", "closed", "new", "done", "active", "pending"]),
    "priority severity": lambda r: r.choice(["low", "medium", "high"]),
    "sentiment mood feeling": lambda r: r.choice(["positive", "negative", "neutral", "happy"]),
    "category kind type genre": lambda r: r.choice(["book", "toy", "food", "tool", "animal", "game", "fantasy"]),
    "currency": lambda r: r.choice(["USD", "EUR"]),
    "description summary text comment note message reason explanation": sentence,
    "word key unit shape": lambda r: r.choice(NOUNS),
    "answer result": lambda r: r.choice([r.choice(NOUNS), r.choice(["yes", "no"]), r.randint(0, 99)]),
    "x y width height z": lambda r: r.randint(0, 500),
}
MAKERS = {k: f for keys, f in FIELDS.items() for k in keys.split()}
LOOSE = [  # key parts of any kind: how a value is made
    ("kg cm km mm ml minutes hours seconds days percent eur usd grams calories size_mb volume speed power wheels legs rooms floor floors seats_left players hp mana strength delay port width_px min max".split(), lambda r: r.choice([r.randint(1, 12), r.randint(1, 100), round(r.uniform(0.1, 40), 1)])),
    ("breed brand make maker material flavor style class weapon race power_up instrument artist band singer director actor host teacher_name winner planet metal stone tree flower vehicle tool game toy engine fabric".split(), lambda r: r.choice([r.choice(NOUNS), cap(pseudo(r)), r.choice(NAMES), r.choice(ADJECTIVES)])),
    ("is_open is_new has_pool can_fly urgent paid free broken online visible public remote fresh safe wild on".split(), lambda r: r.random() < 0.5),
    ("why reason_short advice hint tip motto slogan reply greeting wish caption plot review plan quote".split(), lambda r: r.choice([sentence(r), f"The {r.choice(NOUNS)} is {r.choice(ADJECTIVES)}.", "Because it is so.", "Have a nice day!", f"I like the {r.choice(NOUNS)}."])),
]
for keys, f in LOOSE:
    MAKERS.update({k: f for k in keys if k not in MAKERS})
LISTS = "tags words names items colors ingredients steps hobbies animals fruits cities numbers keywords members topics skills letters scores friends questions answers languages".split()
THINGS = """person user customer character book product animal city country recipe event meeting task song movie game car house pet order invoice contact student
teacher company shop restaurant hotel planet robot hero tool team message ticket weather report profile address review job course plant""".split()


def value(r, key, depth=0):
    """A value that fits the key: a scalar, or a list or an object for some keys."""
    if key in LISTS:
        n = r.choice([1, 2, 2, 3, 3, 4])
        one = {"numbers": lambda r: r.randint(1, 99), "scores": lambda r: r.randint(1, 10), "colors": MAKERS["color"], "names": MAKERS["first_name"], "friends": MAKERS["first_name"], "members": MAKERS["first_name"], "cities": MAKERS["city"], "animals": MAKERS["animal"], "fruits": MAKERS["fruit"], "hobbies": MAKERS["hobby"], "ingredients": lambda r: r.choice("flour butter sugar milk eggs salt water rice cheese".split()), "letters": lambda r: r.choice("abcdefgh"), "languages": MAKERS["language"], "steps": lambda r: r.choice(["Boil the water.", "Wait a little.", "Add the salt.", "Stir it well.", "Take a bowl.", "Serve it."])}.get(key, lambda r: r.choice(NOUNS))
        return [one(r) for _ in range(n)]
    if key in ("person", "owner", "author", "customer", "address", "position", "item") and depth == 0 and r.random() < 0.6:
        keys = {"address": ["street", "city", "zip"], "position": ["x", "y"], "item": ["name", "price"]}.get(key, ["name", "age", "city"])
        return {k: value(r, k, 1) for k in keys[: r.randint(2, 3)]}
    return MAKERS.get(key, MAKERS["word"])(r)


def written(value, sep, kv, level=0, pad=None):
    """JSON in which the keys are enclosed by OPEN and SHUT: the schema gives them. All else is learnt, also how JSON is set out."""
    nl = f"\n{pad * (level + 1)}" if pad else ""
    end = f"\n{pad * level}" if pad else ""
    if isinstance(value, dict):
        parts = [f'{nl}"{OPEN}{json.dumps(k)[1:-1]}{SHUT}"{kv}{written(v, sep, kv, level + 1, pad)}' for k, v in value.items()]
        return "{" + (sep if not pad else ",").join(parts) + end + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(v, sep, kv, level + 1) for v in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def said(r, fields):
    """A text that contains the values."""
    f = {k: v for k, v in fields.items() if not isinstance(v, (dict, list, bool))}
    forms = [
        ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in f.items()),
        "; ".join(f"{k.replace('_', ' ')}: {v}" for k, v in f.items()),
        ". ".join(f"The {k.replace('_', ' ')} is {v}" for k, v in f.items()) + ".",
    ]
    return r.choice(forms)


GROUPS = dict(members=["name", "age"], people=["name", "job"], items=["name", "price"], products=["product", "price", "in_stock"], countries=["country", "capital"], cities=["city", "country"], books=["title", "author"], songs=["title", "artist"], tasks=["title", "done"], orders=["item", "quantity"], pets=["name", "animal"], steps=["step", "minutes"], points=["x", "y"], players=["name", "score"], events=["title", "date"], friends=["name", "city"], rooms=["name", "size"], words=["word", "language"], entries=["key", "value"], guests=["name", "email"])


def listed(r, thing):
    """A question and a list of scalars or of objects, alone or under a key; or one scalar alone."""
    y = r.random()
    if y < 0.12:
        key = r.choice(list(MAKERS))
        return spread(r, r.choice([f"{{Which|What}} {key.replace('_', ' ')}{{| is it| fits}}?", f"{{Name|Give me|Say}} {{a|one}} {key.replace('_', ' ')}.", f"One {key.replace('_', ' ')} please"])), value(r, key, 1)
    n = r.choice([1, 2, 2, 3, 3, 4, 5])
    said = r.choice([str(n), NUMBERS[n]])
    if y < 0.4:
        key = r.choice(LISTS)
        one = value(r, key)
        while len(one) < n:
            one += value(r, key)
        one = one[:n]
        q = spread(r, r.choice([f"{{Name|List|Give me|Which}} {said} {key}{{.||please}}", f"{{Name|List|Give me}} {{the|some|your favorite}} {key}", f"{cap(said)} {key}", f"{{Which|What}} {key} {{are there|do you like|fit}}?"]))
        return q, one if r.random() < 0.6 else {key: one}
    key = r.choice(list(GROUPS))
    rows = [{k: value(r, k, 1) for k in GROUPS[key]} for _ in range(n)]
    q = spread(r, r.choice([f"{{Name|List|Give me|Invent|Make up|Create}} {said} {key}{{.|| with all fields}}", f"{cap(said)} {key} with their {' and '.join(GROUPS[key])}.", f"A {{list|table|group|set}} of {said} {key}", f"{{Some|A few|The}} {key}"]))
    return q, rows if r.random() < 0.45 else {key: rows} if r.random() < 0.6 else {"title": value(r, "title", 1), key: rows}


PERSON = ["{name} is {age} years old and lives in {city}.", "{name} ({age}) comes from {city}.", "My friend {name} from {city} is {age}.", "{name}, aged {age}, {city}.", "In {city} lives {name}, who turned {age} this year."]


def form(r):
    """One filled form: (question, reasoning, answer, must)."""
    x = r.random()
    thing = r.choice(THINGS)
    if x < 0.13:
        q, fields = listed(r, thing)
    elif x < 0.3:
        fields = {"name": r.choice([full(r), r.choice(NAMES)]), "age": r.randint(3, 90), "city": r.choice(CITIES)}
        keys = r.sample(list(fields), r.choice([2, 3, 3]))
        text = r.choice(PERSON).format(**fields)
        fields = {k: fields[k] for k in keys}
        q = spread(r, r.choice(["{Extract|Get|Pull out|Read} the {data|details|person|facts|fields|information}{| from this}: <t>", "<t> {Extract the person|Give me the data|As JSON please|Fill in the form|Who is it}", "{Parse|Analyze} this: <t>", "<t>"])).replace("<t>", text)
    elif x < 0.47:
        keys = r.sample(list(MAKERS), r.randint(1, 5))
        fields = {k: value(r, k, 1) for k in keys}
        fields = {k: v for k, v in fields.items() if not isinstance(v, (list, dict))}
        q = spread(r, r.choice(["{Extract|Get|Read} the {data|fields|values}: <t>", "<t>", "{Turn this into JSON|As JSON|Fill the form with this|Put this into the form}: <t>"])).replace("<t>", said(r, fields))
    elif x < 0.9:
        keys = r.sample(list(MAKERS), r.randint(1, 5)) + r.sample(LISTS, r.choice([0, 0, 1, 1]))
        if r.random() < 0.5:
            keys = ["name"] + [k for k in keys if k != "name"]
        r.shuffle(keys)
        fields = {k: value(r, k) for k in keys}
        q = spread(r, r.choice(["{Invent|Make up|Create|Give me|Describe|Generate|Return|Write|I need|Produce|Think of} {a|a random|one|an example of a|a new|some} <x>{| please| as JSON| in JSON| with all fields|}", "{Tell me about|Describe|What is} {a|the|your favorite} <x>", "{Random|Example|Sample} <x>", "{Fill in the form|Fill it in|Give me JSON|Answer in JSON|json please|Return an object}{| for a <x>}", "A <x> called " + r.choice(NAMES) + "."])).replace("<x>", thing)
    else:
        w = r.choice(["yes", "no"])
        k, good, bad = r.choice([("sentiment", "positive", "negative"), ("label", "good", "bad"), ("mood", "happy", "sad")])
        yes = r.random() < 0.5
        text = r.choice(["I love this", "What a wonderful day", "This is great", "The food was very good", "I am so happy", "Best gift ever"] if yes else ["I hate this", "What a terrible day", "This is bad", "The food was awful", "I am so sad", "It broke at once"])
        q = r.choice(["Classify: {}", "What is the sentiment of '{}'?", "Is this good or bad: {}", "{}", "Rate this review: {}"]).format(text)
        fields = {k: good if yes else bad}
        if r.random() < 0.4:
            fields["confidence"] = r.choice([0.9, 0.95])
    if r.random() < 0.15 and isinstance(fields, dict):
        q += " " + r.choice(["Use the keys {}.", "The keys are {}.", "Keys: {}"]).format(", ".join(fields))
    pad = "  " if r.random() < 0.03 else None
    sep, kv = r.choice([(", ", ": ")] * 19 + [(",", ":")])
    a = written(fields, sep, kv, 0, pad)
    return q, "I fill in the form.", a, [str(v) for v in fields.values() if isinstance(v, str)][:1] if isinstance(fields, dict) else []
