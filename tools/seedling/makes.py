"""What people want written, however they ask: poems, haiku, stories and lists about whatever they name; jokes and riddles.

Each function gives (question, reasoning, answer, must), as newcomer.py has them. The topic is any word: it is copied into the answer.
"""
import crowd
import newcomer as N
from phrases import spread
from skills import pseudo, word
from words import *

THINGS = sorted(set(N.ABOUT + crowd.LEXICON["any"] + crowd.LEXICON["pet"] + [w for w in crowd.LEXICON["thing"] + crowd.LEXICON["house"] if " " not in w and not w.endswith("s")] + ANIMALS + "tractor lighthouse typewriter umbrella pancake violin scarecrow bakery bench kite attic piano suitcase hedgehog snail owl swan toad otter badger whale lemon plum acorn pebble mirror ladder anchor compass tent canoe tram lantern pillow blanket sock boot mitten drum trumpet bell whistle cottage barn mill harbor desert glacier waterfall canyon comet planet rainbow thunderstorm snowflake icicle campfire balcony staircase cupboard teacher postman fisherman gardener grandmother".split()))
HEROES = sorted(set(ANIMALS + crowd.LEXICON["pet"] + "robot king queen pirate dragon child teapot snowman baker witch cloud princess knight prince wizard giant dwarf fairy mermaid duck toad hedgehog otter badger snail ant beetle crab whale scarecrow lighthouse-keeper sailor tailor shoemaker shepherd miller painter clown nurse doctor teacher postman gardener detective cowboy astronaut mouse tram lantern kite tractor balloon umbrella sock spoon pebble acorn star raindrop".split()))
SHY = "tiny old young brave kind clever funny shy lazy hungry sleepy lonely curious grumpy cheerful clumsy".split()
ODD = "who is afraid of mice|who cannot sleep|who wants to fly|who lost a shoe|who has no friends yet|who loves to sing|who never laughs|who lives on a hill|with a red hat|with cold feet|in the rain|on the moon|in a big city|who is late for school|that cannot swim|who finds a letter|who is always hungry".split("|")


def thing(r):
    """A word to write about, at times one that means nothing."""
    return pseudo(r, 1, 2) if r.random() < 0.06 else word(r) if r.random() < 0.12 else r.choice(THINGS)


def of(r, t):
    """How a writer names the topic t."""
    return r.choice([f"{an(t)}", f"{an(t)}", f"the {t}", f"my {t}", f"my old {t}", f"our {t}", f"my {r.choice(crowd.LEXICON['who'])}'s {t}", f"{an(r.choice(SHY))} {t}", t, f"{r.choice(NAMES)}'s {t}", f"{an(t)} in {r.choice(['spring', 'winter', 'the rain', 'the garden', 'our street'])}", f"the {t} next door"])


VERSE = """{write|make|compose|craft|pen|scribble|spin|jot down|put together|knock up|invent|do} {me |us |}{a poem|some verse|a few lines|four lines|a rhyme|a ditty|a little verse|a stanza|a quatrain|something in rhyme|something that rhymes|lyrics, just a little,} {about|on|for|to|concerning} <t>
{rhyme|versify|sing the praise of|immortalise|celebrate} <t>{| in four lines| for me| in a verse| please}
{put|turn|make} <t> into {a poem|verse|rhyme|a few rhyming lines|poetry}
<t>{: a poem please|, as a poem|, in rhyme please| - poem!|, in four lines|: write a verse}
{I'd love|I want|I need|I would like|I wish for|could I have|may I have|we need|any chance of} {a poem|a rhyme|some verses|four lines|a short poem|a birthday verse} {about|on|for} <t>
{be a poet|play the poet|poet mode|wax poetic|get poetic}{:|,|. The topic is|, and the theme is} <t>
{let|make} <t> {rhyme|be a poem|sound like poetry}
{can|could|would|will} you {rhyme|do a rhyme|make poetry|write verse|come up with a poem|produce four lines} {about|on} <t>
{my <who>|our class|a friend|my gran} {wants|would like|asked for|needs} {a poem|a rhyme|a verse|a few lines} {about|on} <t>
{poem|rhyme|verse|ode|ballad, a tiny one}{, topic|: | about | on | for | to }<t>
{an ode|a song|a hymn|a toast|a limerick, or just a rhyme,} {to|for|on} <t>
{say|tell me} something {poetic|in rhyme|lyrical} {about|on} <t>
{for the card|for a birthday card|for a fridge note}: {four|some} lines {about|on} <t>""".split("\n")
HAIKU = """{three|3} {lines|short lines} {about|on|for} <t>{, 5-7-5|, five seven five| as a haiku}
{a|one} haiku{: | about | on | for | to }<t>
{make|write|do|compose|try|give us|let me have} {a haiku|one haiku|a tiny haiku|a small Japanese poem|a poem of seventeen syllables} {about|on|for|with} <t>
<t>{, haiku please|: haiku|, as a haiku|, in 5-7-5|, in three lines with 5, 7 and 5 syllables}
{turn|put} <t> into {a haiku|three lines of Japanese verse}
{haiku|haiku time|haiku please}{, |: |, topic }<t>
{could you|can you|would you} {haiku|do a haiku about|manage a haiku on|try 5-7-5 on} <t>""".split("\n")
STORY = """{spin|weave|invent|make up|think up|dream up|tell|give} {me|us|my <who>} {a tale|a story|a bedtime story|a wee story|a fable|something} {about|with|of|starring} <t>{| in it| please| before bed|}
{I|we|my <who>|the little one|the kids|my class|the twins} {want|wants|would like|would love|need|wish} {to hear {about|of}|a story {about|with}|a tale of|to be told about} <t>
{what happened|what happens} to <t>{| one day}? {tell us|tell me|make it up}
<t>{: story please|, tell me a story|. Story time!|, a bedtime tale please|: make up a tale}
{story|tale|bedtime story|fairy tale|short story}{: | about | with | of |, hero: }<t>
{once upon a time there was|there once was|it was once} <t>{, go on|. Continue!|, and then?|...}
{let|make} <t> {be the hero of a story|have an adventure}
{can|could|would} you {tell|invent|narrate|make up} {something|an adventure|a small story|a good-night story} {about|with|for} <t>
{a story|a tale|an adventure} {where|in which} <t> {is the hero|has trouble|plays a part|gets help}
{the hero|main character} {is|should be} <t>. {Tell the story|Go ahead|What happens}
{put|send} my <who> to sleep with {a story|a tale} {about|of} <t>""".split("\n")
LISTED = {
    "gifts for a friend": "presents|gift ideas|birthday presents|things to give a friend|small gifts|Christmas presents|ideas what to give my friend",
    "fruits": "kinds of fruit|fruit names|sorts of fruit", "animals": "beasts|creatures|kinds of animals", "vegetables": "veggies|kinds of vegetables|greens", "drinks": "things to drink|beverages|drinks for a party",
    "things to do on a rainy day": "ideas for a wet Sunday|indoor games and pastimes|things to do at home|ideas against boredom|things to do when it rains", "clothes": "things to wear|pieces of clothing|garments", "sports": "kinds of sport|sports to try",
    "hobbies": "pastimes|ideas for a hobby|things to do in my free time", "names for a cat": "cat names|ideas for my cat's name|what to call a kitten", "names for a dog": "dog names|ideas for my puppy's name|what to call a dog", "birds": "kinds of birds|feathered animals",
    "flowers": "kinds of flowers|blossoms|flowers for a garden", "jobs": "professions|trades|occupations", "countries": "lands|states of the world", "things in a kitchen": "kitchen things|things you find in a kitchen", "things to take to the beach": "beach things|things for a day by the sea|what to pack for the beach",
    "breakfast foods": "things for breakfast|things to eat in the morning", "musical instruments": "instruments|things to make music with", "school things": "things in a school bag|things for school", "items for a shopping list": "groceries|things to buy at the supermarket", "European capitals": "capitals in Europe|capital cities", "colors": "colours|hues", "shapes": "geometric shapes|figures",
}
LIST = """{name|list|give me|tell me|suggest|think up|come up with|jot down|note|rattle off|throw out|find|offer} {me |us |}<n> <x>{| please| quickly|, any}
{I need|I want|I'd like|I could use|we need|my <who> needs|let me have|may I have} <n> <x>
<n> <x>{|, please|, quick|!|?| please}
{what are|which are|do you know|can you think of|any idea for|could you name|tell us} <n> <x>
{list|make a list of|write a list with|a list of|bullet points:} <n> <x>""".split("\n")
JOKES = [
    "Why was the hexagon never lonely? It had a neighbour on six sides!", "Why did the dot feel small? It stood next to a line!", "What did the square say to the circle? You always go round the question!", "Why did the number line never get lost? It always knew what came next!",
    "What does a lazy triangle do? It lies on its side!", "Why is seven so proud? It is odd and knows it!", "Why did the tomato blush? It saw the salad dressing!", "What do you call a sleeping bull? A bulldozer!", "Why do cows wear bells? Their horns do not work!", "What is a cat's favourite colour? Purrple!",
    "Why did the computer sneeze? It had a bug!", "What does a snowman eat for breakfast? Snowflakes!", "Which letter is always wet? The C!", "Why did the pencil go to bed? It was not sharp any more!",
]
RIDDLES = [
    "What falls all day and is never hurt? Rain!", "What has leaves but is no tree? A book!", "What goes up and down and never moves? The stairs!", "What gets bigger the more you take away? A hole!", "What has one eye but cannot see? A needle!", "What has legs but cannot walk? A table!",
    "What runs but has no feet? Water!", "What is full of holes and still holds water? A sponge!", "What can you break without touching it? A promise!", "What has a face and two hands but no arms? A clock!", "What has keys but opens no door? A piano!", "What comes down but never goes up? Snow!",
]
JOKE = """{tell|give|throw|slip|lend|share} {me|us|my <who>} {a joke|a gag|a pun|something funny|something silly|a funny line|a quip|your best one} {about|on|with|involving} <t>
{know|got|have you got|do you have|any|is there} {a joke|jokes|a pun|a gag|something funny|a funny line} {about|on|with} <t>{ in it|}
{make|get} {me|us|my <who>|the whole table} {laugh|chuckle|giggle|grin|smirk}{| with something about <t>| with <t>| please}
{be|get} {witty|silly|funny|hilarious} {about|on} <t>
<t>{: a joke please|, a pun please|. Funny, please|, anything funny?}
{I|we|my <who>} {need|want|needs|wants|could do with} {a laugh|a joke|a giggle|some fun|a pun} {about <t>|today|before bed|with <t>|after that meeting|now}
{a|one|another} {joke|pun|gag|funny one} {about <t>|for the road|for my <who>|for the class|for a rainy day}""".split("\n")
RIDDLE = """{set|pose|ask|give|throw} {me|us|my <who>|the class} {a riddle|a puzzle|a poser|a teaser|something to guess} {about <t>|for a rainy day|that a child can solve|for the car|for the table|that is not too hard}
{I|we|my <who>} {want|wants|would like|feel like|need|needs} {to guess something|a riddle|a little puzzle|something to puzzle over|a brain teaser|to be riddled}
{got|have you|do you know|any} {a riddle|a puzzle|riddles|a teaser} {for my <who>|for nine year olds|for the train|about <t>}
{let's|shall we|can we} {do riddles|riddle a bit|guess something|do a guessing game|puzzle a little}
{a|one|another|the next} {riddle|poser|teaser|conundrum|what-am-I} {please|now|for us all|about <t>|for me to solve}""".split("\n")
PLOTS = [
    "{A|a} <h> named <n> wanted to {fly|sail around the world|sing on a stage|climb the highest hill|swim across the lake}. Everybody laughed, but <n> practised every {morning|evening|day}. In the {spring|summer|autumn} <n> tried it, fell down, got up and tried again. And one day it worked! Those who had laughed now {clapped|cheered}, and <n> smiled for a week.",
    "Far away lived a <h> named <n> who was afraid of <fear>. One night a {small|tiny|young} <k> knocked and was afraid too. <n> lit a candle and said: we can be afraid together. They told each other stories until the sun came up. From then on neither of them was afraid any more.",
    "One {cold|rainy|windy} evening a <h> named <n> found a {letter|map|little box|golden key} under an old tree. On it stood: share me. So <n> went from door to door until a <k> knew what it was for. Together they {found a treasure of apples|opened a forgotten garden|had the best dinner of the year}, and there was enough for all.",
    "There was once a <h> named <n> who {baked the best bread|made the finest soup|told the best jokes|grew the biggest pumpkins} in the village. One day {nobody came|the shop stayed empty|all the guests were ill}, and <n> was sad. Then a <k> had an idea: bring it to them! So they went from house to house, and soon everybody was {well|happy|laughing} again.",
    "<n> was a <h> who was always late. On the day of the big {race|party|concert} <n> was late again, but on the way <n> met a <k> who {had fallen into a hole|had lost the way|could not cross the river}. <n> stopped and helped. They came last of all, hand in hand, and everybody cheered for them the most.",
]


def request(r, patterns, topic):
    q = crowd.fill(r, spread(r, r.choice(patterns)).replace("<t>", topic), 0)
    q = q if r.random() < 0.5 else q[:1].upper() + q[1:]
    return q + r.choice(["", "", ".", "?", "!"]) if q[-1:].isalnum() and q.split(" ")[0].lower() in ("can", "could", "would", "any") or r.random() < 0.2 and q[-1:].isalnum() else q


def verse(r):
    t = thing(r)
    adj = r.sample("quiet gentle golden silver little old soft lovely small".split(), 2)
    s = "\n".join(c.replace("<t>", t).replace("<a>", w) for c, w in zip(r.sample(N.COUPLETS, 2), adj))
    return request(r, VERSE, of(r, t)), f"Four short lines about {t} that rhyme.", s, [t]


def haiku(r):
    t = thing(r)
    s = f"{cap(r.choice(N.HAIKU5).replace('<t>', t))},\n{r.choice(N.SEVEN)},\n{r.choice(N.FIVE)}."
    return request(r, HAIKU, of(r, t)), f"Three short lines about {t}.", s, [t]


def told(r, h, n, plot=None):
    k = r.choice([x for x in HEROES if x != h])
    s = spread(r, plot or r.choice(PLOTS)).replace("<fear>", r.choice("the dark|thunder|deep water|high stairs".split("|"))).replace("<n>", n)
    for mark, w in (("<h>", h), ("<k>", k)):
        for a in ("A", "a"):
            s = s.replace(f"{a} {mark}", cap(an(w)) if a == "A" else an(w))
        s = s.replace(mark, w)
    return s[:1].upper() + s[1:]


def story(r):
    h, n = (pseudo(r, 1, 2) if r.random() < 0.05 else r.choice(HEROES)), r.choice(NAMES)
    about = r.choice([an(h), an(h), f"{an(r.choice(SHY))} {h}", f"{an(h)} {r.choice(ODD)}", f"{an(h)} {r.choice(ODD)}", f"{an(h)} named {n}", f"the {h} {n}", f"{an(h)} and {an(r.choice(THINGS))}", f"my {h}"])
    plot = PLOTS[1].replace("<fear>", about.split("afraid of ")[1]) if "afraid of" in about else None
    return request(r, STORY, about), f"A short story about {an(h)} named {n}.", told(r, h, n, plot), [h, n]


def listing(r):
    name, others = r.choice(list(LISTED.items()))
    items = N.LISTS[name]
    n = r.randint(2, min(6, len(items)))
    q = r.choice(LIST).replace("<n>", r.choice([str(n), N.NUMBER_WORDS[n], N.NUMBER_WORDS[n]])).replace("<x>", r.choice(others.split("|") + [name]))
    q = crowd.fill(r, spread(r, q), 0)
    return (cap(q) if r.random() < 0.5 else q), f"{n} {name}.", "\n".join("- " + x for x in items[:n]), [items[0], items[n - 1]]


def joke(r):
    return request(r, JOKE, r.choice([thing(r) + "s", an(thing(r)), "numbers", "school", "animals", "shapes", "food", "work"])), "A short joke.", r.choice(JOKES), ["!"]


def riddle(r):
    return request(r, RIDDLE, r.choice([thing(r) + "s", "animals", "the house", "weather", "everyday things"])), "A riddle and its answer.", r.choice(RIDDLES), ["?"]


WEIGHTS = {joke: 2.5, riddle: 1.5, verse: 4, haiku: 3, story: 4, listing: 4}


def made(r):
    return r.choices(list(WEIGHTS), list(WEIGHTS.values()))[0](r)
