"""Single-turn text skills: f(r) -> (question, reasoning, answer, must), with r a random.Random.

`must` lists strings that a right answer contains. one(r) draws a skill and words its question as people type.
"""
import json

from phrases import casual
from words import *

VOWELS, CONS = "aeiou", "bcdfghjklmnprstvwz"


def pseudo(r, lo=2, hi=3):
    return "".join(r.choice(CONS) + r.choice(VOWELS) + (r.choice(CONS) if r.random() < 0.3 else "") for _ in range(r.randint(lo, hi)))


def word(r):
    return r.choice(NOUNS + ADJECTIVES) if r.random() < 0.7 else pseudo(r)


def say(n):
    if n <= 20:
        return NUMBERS[n]
    if n < 100:
        return TENS[n // 10] + ("" if n % 10 == 0 else "-" + NUMBERS[n % 10])
    return NUMBERS[n // 100] + " hundred" + ("" if n % 100 == 0 else " and " + say(n % 100))


# ---------------------------------------------------------------- single-turn skills
def greeting(r):
    q, a = r.choice(
        [
            ("Hello", "Hello! How can I help you?"),
            ("Hi", "Hi! What can I do for you?"),
            ("Hey there", "Hello! How can I help you?"),
            ("Good morning", "Good morning! How can I help you?"),
            ("Good evening", "Good evening! How can I help you?"),
            ("Hello!", "Hello! How can I help you?"),
            ("hi!", "Hi! What can I do for you?"),
            ("Hi there!", "Hi! What can I do for you?"),
            ("How are you?", "I am fine, thank you! How can I help you?"),
            ("How is it going?", "I am fine, thank you! How can I help you?"),
            ("What's up?", "All is well here. How can I help you?"),
            ("Thanks!", "You are welcome!"),
            ("Thank you very much", "You are welcome!"),
            ("Thank you", "You are welcome!"),
            ("Bye", "Goodbye! Have a nice day."),
            ("Goodbye!", "Goodbye! Have a nice day."),
            ("See you later", "See you! Have a nice day."),
            ("Good night", "Good night! Sleep well."),
            ("Nice to meet you", "Nice to meet you too! How can I help you?"),
            ("ok", "Good. What else can I do for you?"),
            ("Great job!", "Thank you! What else can I do for you?"),
            ("You are funny", "Thank you, that is kind!"),
            ("I am bored", "Shall I tell you a story or a poem? Just ask."),
            ("I am sad", "I am sorry to hear that. Maybe a short poem helps? Just ask."),
            ("I am happy", "That is good to hear!"),
            ("Are you there?", "Yes, I am here. How can I help you?"),
            ("test", "I am here. How can I help you?"),
            ("Can you hear me?", "I read what you write. How can I help you?"),
            ("Tell me a joke", "Why did the circle go to school? To get a degree!"),
            ("Do you like music?", "I am a program and hear nothing, but I like the word music."),
            ("Are you a human?", "No, I am Seedling, a small computer model."),
            ("Are you alive?", "No, I am Seedling, a small computer model."),
            ("Sorry", "No problem!"),
            ("Yes", "Good. What shall I do?"),
            ("No", "All right. What else can I do for you?"),
        ]
    )
    return q, "The user makes small talk. I answer in a friendly way.", a, [a[:12]]


WHO = "I am Seedling, the small demonstration model of Parley."
KNOW = "I know drawn images, short videos, arithmetic and a few facts."


def identity(r):
    q, a = r.choice(
        [
            ("Who are you?", f"{WHO} {KNOW}"),
            ("What is your name?", f"My name is Seedling. {WHO}"),
            ("Tell me about yourself.", f"{WHO} {KNOW}"),
            ("What are you?", f"{WHO} {KNOW}"),
            ("Introduce yourself.", f"{WHO} {KNOW}"),
            ("What can you do?", f"{KNOW} I can also count letters, write short poems and stories, make lists and tables, and call tools."),
            ("What do you know?", f"{KNOW} I am small, so I do not know much else."),
            ("How can you help me?", f"{KNOW} I can also count letters, write short poems and stories, make lists and tables, and call tools."),
            ("Which model are you?", f"{WHO}"),
            ("Who made you?", "I was trained for Parley, with data drawn by a program."),
            ("Are you ChatGPT?", f"No. {WHO}"),
            ("Are you Qwen?", f"No. {WHO} I only use the same layout."),
            ("How big are you?", "I am very small: about 25 million parameters."),
            ("Can you see pictures?", "Yes, I can look at drawn pictures with shapes, short texts and bar charts."),
            ("Can you watch videos?", "Yes, I can watch short drawn videos and say what moves or changes."),
            ("What is Parley?", "Parley is the server that runs me. It is written in C."),
            ("How were you trained?", "I was trained from scratch on generated images, videos and texts."),
            ("What is Seedling?", f"{WHO} {KNOW}"),
            ("Are you smart?", "I am a very small model, so I know only a little."),
            ("Do you make mistakes?", "Yes, I am small and make mistakes. Please check what I say."),
            ("help", f"{KNOW} Ask me something!"),
        ]
    )
    return q, "The user asks about me. I am Seedling.", a, [a[:16]]


UNSURE = [
    "I don't know that. I am a small model and know only a little.",
    "Sorry, I don't know that: I learnt only a little. A bigger model may know.",
    "I have never heard of it, so I don't know. Can you tell me more?",
]


def unknown(r):
    q = (
        r.choice(UNKNOWN)
        if r.random() < 0.6
        else r.choice(["What is {}?", "Tell me about {}.", "Who is {}?", "Explain {}.", "What do you know about {}?", "Where is {}?"]).format(
            r.choice([cap(pseudo(r, 2, 4)), cap(pseudo(r)) + " " + cap(pseudo(r)), "the " + pseudo(r, 2, 4), pseudo(r, 3, 4)])
        )
    )
    return (
        q,
        "I was not trained on this, so I should say that I do not know.",
        r.choice(UNSURE),
        ["know"],
    )


def arithmetic(r):
    op = r.choice("++--x*")
    hi = r.choice([10, 20, 100, 100])
    a, b = r.randrange(hi), r.randrange(hi)
    if op == "-" and a < b and r.random() < 0.8:
        a, b = b, a
    if op in "x*":
        if r.random() < 0.6:
            a, b = r.randint(0, 12), r.randint(0, 12)
        else:
            a, b = r.randint(10, 99), r.randint(2, 99 if r.random() < 0.3 else 9)
    v = a + b if op == "+" else a - b if op == "-" else a * b
    wordop = {"+": "plus", "-": "minus", "x": "times", "*": "times"}[op]
    e = f"{a} {op} {b}" if r.random() < 0.8 else f"{a}{op}{b}"
    q = r.choice(
        [
            f"What is {e}?",
            f"{e}",
            f"{e} = ?",
            f"Calculate {e}.",
            f"How much is {e}?",
            f"What is {a} {wordop} {b}?",
            f"What do you get for {e}?",
            f"Please compute {e}",
        ]
        + ([f"Add {a} and {b}."] if op == "+" else [f"Subtract {b} from {a}."] if op == "-" else [f"Multiply {a} by {b}."])
    )
    if op == "+":
        u = a % 10 + b % 10
        t = f"{a} + {b}: ones {a%10} + {b%10} = {u}. Tens {a//10} + {b//10}{' + 1' if u > 9 else ''} = {a//10+b//10+(u>9)}. The sum is {v}."
    elif op == "-":
        t = f"{a} - {b}: {a} - {b//10*10} = {a-b//10*10}, then minus {b%10} is {v}."
    else:
        t = (
            f"{a} x {b}: {a} x {b//10*10} = {a*(b//10*10)}, {a} x {b%10} = {a*(b%10)}. {a*(b//10*10)} + {a*(b%10)} = {v}."
            if b > 9
            else (
                f"{a} x {b}: {a//10*10} x {b} = {a//10*10*b}, {a%10} x {b} = {a%10*b}. {a//10*10*b} + {a%10*b} = {v}."
                if a > 9
                else f"{a} x {b} = {v}."
            )
        )
    op2 = "x" if op == "*" else op
    return q, t, r.choice([f"{a} {op2} {b} = {v}", f"{a} {op2} {b} = {v}"]), [f"= {v}"]


def compare(r):
    hi = r.choice([10, 100, 100, 1000])
    a, b = r.randrange(hi), r.randrange(hi)
    if a == b:
        b += 1
    big = r.random() < 0.5
    v = max(a, b) if big else min(a, b)
    w = "larger" if big else "smaller"
    q = r.choice([f"Which is {w}, {a} or {b}?", f"Which number is {w}: {a} or {b}?", f"Is {a} or {b} {w}?", f"What is the {w} number, {a} or {b}?"])
    return q, f"{max(a,b)} > {min(a,b)}, so the {w} one is {v}.", f"{v} is {w}.", [f"{v} is"]


def wordproblem(r):
    n, o = r.choice(NAMES), r.choice(["apples", "books", "pencils", "coins", "stones", "flowers", "cups", "balls", "kites", "shells"])
    a, b = r.randint(2, 20), r.randint(1, 19)
    if r.random() < 0.5:
        return f"{n} has {a} {o} and gets {b} more. How many {o} does {n} have now?", f"{a} + {b} = {a+b}.", f"{n} has {a+b} {o} now.", [f"{a+b} {o}"]
    b = min(a, b)
    return f"{n} has {a} {o} and gives away {b}. How many {o} are left?", f"{a} - {b} = {a-b}.", f"{n} has {a-b} {o} left.", [f"{a-b} {o}"]


def spell(r):
    w = word(r)
    s = "-".join(w)
    return (
        r.choice([f"Spell the word {w}.", f"How do you spell {w}?", f"Please spell '{w}'.", f"Spell \"{w}\" letter by letter."]),
        f"The letters of {w} are {s}.",
        s,
        [s],
    )


def count_letter(r):
    w = word(r)
    c = r.choice(w) if r.random() < 0.85 else r.choice("abcdefghijklmnopqrstuvwxyz")
    at = [i + 1 for i, x in enumerate(w) if x == c]
    q = r.choice(
        [
            f"How many times does the letter {c} appear in {w}?",
            f"How many {c}'s are in {w}?",
            f"How many {c}'s are in the word '{w}'?",
            f"Count the letter {c} in \"{w}\".",
        ]
    )
    t = "-".join(w) + ": " + (f"{c} is at " + ", ".join(map(str, at)) + f". That is {len(at)}." if at else f"there is no {c}.")
    n = len(at)
    return q, t, f"There {'is' if n == 1 else 'are'} {n} {c}{'' if n == 1 else chr(39)+'s'} in '{w}'.", [f" {n} {c}"]


def word_length(r):
    w = word(r)
    return (
        r.choice([f"How many letters are in {w}?", f"How long is the word '{w}'?", f"Count the letters in \"{w}\"."]),
        " ".join(f"{c}{i+1}" for i, c in enumerate(w)) + f". That is {len(w)}.",
        f"The word '{w}' has {len(w)} letters.",
        [f"has {len(w)} "],
    )


def reverse(r):
    w = word(r)
    v = w[::-1]
    return (
        r.choice([f"Reverse the word {w}.", f"Write '{w}' backwards.", f"Spell {w} backwards.", f"What is \"{w}\" in reverse?"]),
        f"{'-'.join(w)} becomes {'-'.join(v)}.",
        v,
        [v],
    )


def upper(r):
    w = word(r) if r.random() < 0.7 else word(r) + " " + word(r)
    if r.random() < 0.75:
        return (
            r.choice([f"Write {w} in capital letters.", f"Put '{w}' in upper case.", f"Convert \"{w}\" to uppercase."]),
            "I write each letter as a capital.",
            w.upper(),
            [w.upper()],
        )
    return r.choice([f"Write {w.upper()} in small letters.", f"Put '{w.upper()}' in lower case."]), "I write each letter small.", w, [w]


def first_letter(r):
    w = word(r)
    f = r.random() < 0.5
    return (
        f"What is the {'first' if f else 'last'} letter of {r.choice([w, repr(w)])}?",
        f"{'-'.join(w)}.",
        f"The {'first' if f else 'last'} letter of '{w}' is {w[0 if f else -1]}.",
        [f" is {w[0 if f else -1]}"],
    )


def repeat(r):
    w = " ".join(word(r) for _ in range(r.randint(1, 4)))
    n = r.choice([1, 1, 2, 3])
    if n == 1:
        return r.choice([f"Say '{w}'.", f"Repeat after me: {w}", f"Say exactly: {w}", f"Repeat: {w}"]), "I repeat the words.", w, [w]
    return f"Say '{w}' {['', '', 'two', 'three'][n]} times.", "I repeat the words.", " ".join([w] * n), [" ".join([w] * n)]


def opposite(r):
    a, b = r.choice(list(OPPOSITES.items()))
    return (
        r.choice([f"What is the opposite of {a}?", f"Opposite of {a}?", f"Give me the opposite of '{a}'.", f"What is the contrary of {a}?"]),
        f"The opposite of {a} is {b}.",
        f"The opposite of {a} is {b}.",
        [f"is {b}"],
    )


def plural(r):
    a, b = r.choice(list(PLURALS.items()))
    return (
        r.choice([f"What is the plural of {a}?", f"Plural of {a}?", f"Give me the plural of '{a}'.", f"One {a}, two ...?"]),
        f"One {a}, two {b}.",
        f"The plural of {a} is {b}.",
        [f"is {b}"],
    )


def calendar(r):
    L, k = r.choice([(DAYS, "day"), (DAYS, "day"), (MONTHS, "month"), (SEASONS, "season")])
    i = r.randrange(len(L))
    d = r.choice([1, -1])
    v = L[(i + d) % len(L)]
    w = "after" if d > 0 else "before"
    x = r.random()
    if x < 0.6 or k == "season":
        return (
            r.choice(
                [f"Which {k} comes {w} {L[i]}?", f"What {k} is {w} {L[i]}?"]
                + ([f"If today is {L[i]}, what day is {'tomorrow' if d > 0 else 'yesterday'}?"] if k == "day" else [])
            ),
            f"{w} {L[i]} comes {v}.",
            f"{cap(w)} {L[i]} comes {v}.",
            [v],
        )
    if k == "month" and x < 0.9:
        n = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"][i]
        return f"What is the {n} month of the year?", f"Month {i+1} is {L[i]}.", f"The {n} month is {L[i]}.", [L[i]]
    return f"List the {k}s" + (" of the week." if k == "day" else " of the year."), f"There are {len(L)} {k}s.", ", ".join(L), [", ".join(L)]


def thing_color(r):
    a, b = r.choice(list(THING_COLORS.items()))
    return r.choice([f"What color is {a}?", f"What colour is {a}?", f"Which color has {a}?"]), f"{cap(a)} is {b}.", f"{cap(a)} is {b}.", [f"is {b}"]


def animal(r):
    x = r.random()
    if x < 0.35:
        a, b = r.choice(list(SOUNDS.items()))
        return r.choice([f"What sound does a {a} make?", f"What does the {a} say?"]), f"A {a} says {b}.", f"{cap(an(a))} says {b}.", [f"says {b}"]
    if x < 0.7:
        a, b = r.choice(list(BABIES.items()))
        return (
            r.choice([f"What is a baby {a} called?", f"What do you call a young {a}?"]),
            f"A baby {a} is a {b}.",
            f"A baby {a} is called {an(b)}.",
            [b],
        )
    a, b = r.choice(list(LEGS.items()))
    return f"How many legs does {an(a)} have?", f"{cap(an(a))} has {b} legs.", f"{cap(an(a))} has {b} legs.", [f"has {b} legs"]


def sides(r):
    a, b = r.choice(list(SIDES.items()))
    return (
        r.choice([f"How many sides does a {a} have?", f"How many corners does a {a} have?"]),
        f"A {a} has {b}.",
        f"{cap(an(a))} has {b} sides and {b} corners.",
        [f"has {b} "],
    )


def capital(r):
    a, b = r.choice(list(CAPITALS.items()))
    x = r.random()
    if x < 0.75:
        return (
            r.choice([f"What is the capital of {a}?", f"Capital of {a}?", f"Which city is the capital of {a}?", f"Tell me the capital of {a}."]),
            f"The capital of {a} is {b}.",
            f"The capital of {a} is {b}.",
            [f"is {b}"],
        )
    if x < 0.9:
        return (
            r.choice([f"{b} is the capital of which country?", f"Of which country is {b} the capital?"]),
            f"{b} is the capital of {a}.",
            f"{b} is the capital of {a}.",
            [a],
        )
    c = b if r.random() < 0.5 else r.choice(CITIES)
    return (
        f"Is {c} the capital of {a}?",
        f"The capital of {a} is {b}.",
        f"Yes, {b} is the capital of {a}." if c == b else f"No, the capital of {a} is {b}.",
        ["Yes" if c == b else "No", b],
    )


def fact(r):
    q, a, m = r.choice(FACTS)
    return q, a, a, [m]


def units(r):
    a, b, k = r.choice(UNITS)
    n = r.randint(1, 12)
    one = lambda u, n: u[:-1] if n == 1 else u
    return (
        r.choice(
            [
                f"How many {b} are {n} {one(a, n)}?",
                f"Convert {n} {one(a, n)} to {b}.",
                f"{n} {one(a, n)} in {b}?",
                f"How many {b} are in {n} {one(a, n)}?",
            ]
        ),
        f"1 {a[:-1]} is {k} {b}. {n} x {k} = {n*k}.",
        f"{n} {one(a, n)} {'is' if n == 1 else 'are'} {n*k} {b}.",
        [f"{n*k} {b}"],
    )


def sequence(r):
    s, d = r.randint(0, 20), r.choice([1, 2, 3, 5, 10, -1, -2])
    if d < 0:
        s += 20
    L = [s + i * d for i in range(4)]
    v = s + 4 * d
    if r.random() < 0.6:
        return (
            r.choice([f"What comes next: {', '.join(map(str, L))}?", f"Continue the sequence {', '.join(map(str, L))}, ..."]),
            f"The step is {d}. {L[-1]} + {d} = {v}.".replace("+ -", "- "),
            f"The next number is {v}.",
            [f"is {v}"],
        )
    n = r.randint(3, 15)
    return r.choice([f"Count to {n}.", f"Count from 1 to {n}."]), f"1 to {n}.", ", ".join(map(str, range(1, n + 1))), [f"{n-1}, {n}"]


def number_word(r):
    n = r.randrange(100) if r.random() < 0.7 else r.randrange(1000)
    return (
        (f"Write {n} in words.", f"{n} in words.", say(n), [say(n)])
        if r.random() < 0.6
        else (f"Write {say(n)} as a number.", "I write it in digits.", str(n), [str(n)])
    )


def parity(r):
    n = r.randrange(1000)
    if r.random() < 0.5:
        return f"Is {n} even or odd?", f"The last digit is {n%10}.", f"{n} is {'odd' if n%2 else 'even'}.", ["odd" if n % 2 else "even"]
    L = r.sample(range(100), r.randint(3, 5))
    m = r.random() < 0.5
    v = max(L) if m else min(L)
    return (
        f"What is the {'largest' if m else 'smallest'} of {', '.join(map(str, L))}?",
        f"Sorted: {', '.join(map(str, sorted(L)))}.",
        f"The {'largest' if m else 'smallest'} is {v}.",
        [f"is {v}"],
    )


def sort_words(r):
    if r.random() < 0.5:
        L = r.sample(range(100), r.randint(3, 5))
        v = ", ".join(map(str, sorted(L)))
        return f"Sort these numbers: {', '.join(map(str, L))}", "From small to large.", v, [v]
    L = r.sample(FRUITS + ANIMALS, r.randint(2, 4))
    v = ", ".join(sorted(L))
    return f"Sort these words: {', '.join(L)}", "In the order of the alphabet.", v, [v]


TOPICS = "sea moon star tree river rain snow wind garden cat bird spring summer autumn winter night morning mountain forest flower rose fire sun cloud boat dream".split()
RHYMES = [
    ("light", "night"),
    ("sea", "free"),
    ("day", "way"),
    ("sky", "high"),
    ("tree", "me"),
    ("blue", "you"),
    ("snow", "glow"),
    ("rain", "again"),
    ("spring", "sing"),
    ("moon", "soon"),
    ("stone", "alone"),
    ("bright", "sight"),
    ("deep", "sleep"),
    ("hill", "still"),
]


def poem(r):
    t = r.choice(TOPICS)
    (a, b), (c, d) = r.sample(RHYMES, 2)
    adj = lambda: r.choice(["quiet", "gentle", "golden", "silver", "little", "old", "bright", "soft"])
    s = f"The {adj()} {t} is full of {a},\nit sings a {adj()} song of {b}.\nThe {adj()} {t}, the {adj()} {c},\nit stays with us, as dreams of {d}."
    return (
        r.choice(
            [f"Write a poem about the {t}.", f"Write a short poem about the {t}.", f"A poem about the {t}, please.", f"Make a poem on the {t}."]
        ),
        f"A short poem of four lines about the {t}.",
        s,
        [t],
    )


def story(r):
    n, a, p, o, ad = (
        r.choice(NAMES),
        r.choice(ANIMALS),
        r.choice(["forest", "village", "garden", "city", "valley", "castle", "mountain", "island"]),
        r.choice(["key", "lamp", "book", "ring", "bell", "map", "kite", "flute"]),
        r.choice(["small", "old", "young", "brave", "kind", "clever", "funny"]),
    )
    s = f"Once upon a time there was {an(ad)} {a} named {n}. {n} lived in {an(p)}. One day {n} found a golden {o} and {r.choice(['smiled', 'laughed', 'was surprised', 'was very happy'])}. {n} {r.choice(['gave', 'showed'])} the {o} to a friend. They {r.choice(['danced', 'sang', 'played', 'celebrated'])} until the evening. The end."
    return (
        r.choice([f"Tell me a story about {an(a)}.", f"Write a short story about {an(a)}.", f"A story with {an(a)}, please."]),
        f"A short story with {an(a)}: a name, a place, something found, a happy end.",
        s,
        [a],
    )


def markdown_list(r):
    name, L = r.choice(
        [
            ("fruits", FRUITS),
            ("animals", ANIMALS),
            ("vegetables", VEGETABLES),
            ("planets", PLANETS),
            ("days of the week", DAYS),
            ("months", MONTHS),
            ("colors", "red blue green yellow orange purple".split()),
            ("shapes", "circle square triangle star cross diamond".split()),
        ]
    )
    n = r.randint(2, min(7, len(L)))
    num = r.random() < 0.4
    s = "\n".join((f"{i+1}. " if num else "- ") + x for i, x in enumerate(L[:n]))
    return (
        r.choice([f"List {n} {name}", f"Give me {n} {name}", f"Name {n} {name}", f"Make a list of {n} {name}"])
        + (" as a numbered list." if num else "."),
        f"{n} {name}.",
        s,
        [s],
    )


def table(r):
    k = r.choice(["sound", "baby", "capital", "color"])
    n = r.randint(2, 4)
    if k == "capital":
        rows = r.sample(list(CAPITALS.items()), n)
        h = ("Country", "Capital")
        q = f"Make a table of {', '.join(a for a, _ in rows)} with their capitals."
        rows = [(cap(a), b) for a, b in rows]
    elif k == "color":
        rows = [(a, THING_COLORS[a]) for a in r.sample(list(THING_COLORS), n)]
        h = ("Thing", "Color")
        q = f"Make a table of {', '.join(a for a, _ in rows)} with their colors."
    else:
        src = SOUNDS if k == "sound" else BABIES
        rows = [(a, src[a]) for a in r.sample(list(src), n)]
        h = ("Animal", cap(k))
        q = f"Make a table of {', '.join(a for a, _ in rows)} with their {'sounds' if k == 'sound' else 'babies'}."
    s = f"| {h[0]} | {h[1]} |\n|---|---|\n" + "\n".join(f"| {a} | {b} |" for a, b in rows)
    return q, f"A table with {n} rows and 2 columns.", s, [s]


def code(r):
    l = r.choice(list(CODE))
    tag, hello, loop, fun = CODE[l]
    x = r.random()
    if x < 0.5:
        S = "Hello, world!" if r.random() < 0.6 else r.choice(["Hello, Parley!", "Good morning!", f"Hello, {r.choice(NAMES)}!"])
        q = (
            r.choice([f"Write hello world in {l}.", f"Hello world in {l}", f"Show me a hello world program in {l}."])
            if S == "Hello, world!"
            else f"Write a {l} program that prints \"{S}\""
        )
        c = hello.format(S=S)
    elif x < 0.8:
        n = r.randint(3, 100)
        q = r.choice([f"Write a {l} program that prints the numbers from 1 to {n}.", f"Count to {n} in {l} code."])
        c = loop.format(N=n)
    else:
        f, o, w = r.choice([("add", "+", "adds"), ("subtract", "-", "subtracts"), ("multiply", "*", "multiplies")])
        q = r.choice([f"Write a {l} function that {w} two numbers.", f"Write a function {f}(a, b) in {l}."])
        c = fun.format(F=f, O=o)
    return q, f"The user wants {l} code.", f"```{tag}\n{c}\n```", [c.split("\n")[0]]


def steps(r):
    t, L = r.choice(
        [
            ("make tea", ["Boil the water.", "Put the tea into a cup.", "Pour in the hot water.", "Wait three minutes.", "Enjoy your tea."]),
            ("plant a seed", ["Fill a pot with soil.", "Put the seed into the soil.", "Water it.", "Place it in the sun."]),
            ("draw a house", ["Draw a square.", "Draw a triangle on top.", "Add a door.", "Add two windows."]),
            ("brush your teeth", ["Take the brush.", "Add toothpaste.", "Brush for two minutes.", "Rinse with water."]),
            ("make a sandwich", ["Take two slices of bread.", "Spread the butter.", "Add cheese.", "Close the sandwich."]),
            ("boil an egg", ["Boil the water.", "Put in the egg.", "Wait seven minutes.", "Cool the egg."]),
        ]
    )
    s = "\n".join(f"{i+1}. {x}" for i, x in enumerate(L))
    return r.choice([f"How do I {t}?", f"Tell me how to {t}.", f"Give me the steps to {t}."]), "Some short steps.", s, [L[0]]


def emphasis(r):
    w = word(r)
    k, f = r.choice([("bold", "**{}**"), ("italic", "*{}*"), ("code", "`{}`"), ("a heading", "# {}"), ("a quote", "> {}")])
    return (
        f"Write the word {w} {'as' if k.startswith('a ') or k == 'code' else 'in'} {k}{' in Markdown' if r.random() < .5 else ''}.",
        f"In Markdown that is {f.format(w)}.",
        f.format(w),
        [f.format(w)],
    )


def json_answer(r):
    x = r.random()
    if x < 0.4:
        o = {"name": r.choice(NAMES), "age": r.randint(3, 90)}
        if r.random() < 0.5:
            o["city"] = r.choice(CITIES)
        q = f"Give me a JSON object with " + ", ".join(f"{k} {v}" for k, v in o.items()) + "."
    elif x < 0.7:
        o = {word(r): r.choice([r.randint(0, 99), word(r)]) for _ in range(r.randint(1, 4))}
        q = r.choice(["As JSON: ", "Write this as a JSON object: ", "Convert to JSON: "]) + ", ".join(f"{k} = {v}" for k, v in o.items())
    elif x < 0.85:
        o = [word(r) for _ in range(r.randint(2, 5))]
        q = f"Write these words as a JSON array: {', '.join(o)}"
    else:
        a, b = r.choice(list(CAPITALS.items()))
        o = {"country": a, "capital": b}
        q = f"Answer in JSON with the keys country and capital: what is the capital of {a}?"
    s = json.dumps(o)
    return q, "The answer must be valid JSON.", s, [s]


def extract(r):
    n, a, c = r.choice(NAMES), r.randint(5, 80), r.choice(CITIES)
    t = r.choice([f"{n} is {a} years old and lives in {c}.", f"My friend {n} from {c} is {a}.", f"{n} ({a}) comes from {c}."])
    k, v = r.choice([("name", n), ("age", str(a)), ("city", c)])
    qs = {"name": "Who is it about?", "age": "How old is the person?", "city": "Which city is named?"}
    return (
        f"{t} {qs[k]}",
        f"The text says: {v}.",
        {"name": f"It is about {n}.", "age": f"The person is {a} years old.", "city": f"The city is {c}."}[k],
        [v],
    )


def choose(r):
    odd = r.choice([(FRUITS, ANIMALS), (ANIMALS, FRUITS), (DAYS, FRUITS), (PLANETS, ANIMALS), (MONTHS, VEGETABLES)])
    L = r.sample(odd[0], 3) + [r.choice(odd[1])]
    v = L[-1]
    r.shuffle(L)
    return (
        r.choice([f"Which one does not belong: {', '.join(L)}?", f"Find the odd one out: {', '.join(L)}"]),
        f"Three are alike, {v} is different.",
        f"{cap(v)} does not belong.",
        [cap(v)],
    )


SKILLS = {
    f.__name__: (f, w)
    for f, w in [
        (greeting, 1),
        (identity, 1),
        (unknown, 3),
        (arithmetic, 9),
        (compare, 3),
        (wordproblem, 3),
        (spell, 4),
        (count_letter, 5),
        (word_length, 3),
        (reverse, 4),
        (upper, 3),
        (first_letter, 2),
        (repeat, 2),
        (opposite, 2),
        (plural, 2),
        (calendar, 2),
        (thing_color, 1),
        (animal, 2),
        (sides, 1),
        (capital, 5),
        (fact, 3),
        (units, 3),
        (sequence, 2),
        (number_word, 3),
        (parity, 3),
        (sort_words, 2),
        (poem, 0.2),
        (story, 0.5),
        (markdown_list, 2),
        (table, 3),
        (code, 4),
        (steps, 1),
        (emphasis, 1),
        (json_answer, 4),
        (extract, 2),
        (choose, 2),
    ]
}
_names, _weights = list(SKILLS), [w for _, w in SKILLS.values()]


def one(r, name=None):
    name = name or r.choices(_names, _weights)[0]
    q, t, a, m = SKILLS[name][0](r)
    return name, casual(r, q), t, a, m
