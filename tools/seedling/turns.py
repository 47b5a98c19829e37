"""Conversations with newcomers: follow-ups on the last answer, names and facts kept in mind, system prompts, tools that are not there."""
import json
import re

import crowd
import forms
import ledger
import makes
import reckon
import sheets
import tools_typed
import twofacts
import typed
from calls import any_call, forced_call, known_call, made_call, natural, random_call, tool
from helpdesk import help_topic
from newcomer import COUPLETS, cannot, listing, newcomer, no_image, smalltalk, tale, translate, verse, haiku
from phrases import casual, spread
from skills import one, pseudo, word
from words import *
from writers import voice

PLAIN = "capital opposite plural fact thing_color animal arithmetic units sides calendar compare word_length parity number_word".split()


def user(q):
    return {"role": "user", "content": q}


def said(a, t="I answer."):
    return {"role": "assistant", "content": a, "reasoning_content": t}


def subject(r):
    """A first turn to follow up on: (kind, question, reasoning, answer, detail)."""
    x = r.random()
    if x < 0.36:
        s, q, t, a, m = one(r, r.choice(PLAIN))
        return "fact", q, t, a, t
    if x < 0.48:
        q, t, a, m = help_topic(r)
        return "help", q, t, a, None
    if x < 0.6:
        q, t, a, m = cannot(r)
        return "cannot", q, t, a, None
    if x < 0.72:
        q, t, a, m = tale(r)
        return "tale", q, t, a, m
    if x < 0.86:
        q, t, a, m = r.choice([verse, haiku])(r)
        return "poem", q, t, a, m[0]
    if x < 0.95:
        q, t, a, m = listing(r)
        return "list", q, t, a, m
    q, t, a, m = translate(r)
    return "translate", q, t, a, None


def follow(r):
    kind, q, t, a, detail = subject(r)
    M = [user(q), said(a, t)]
    must = []
    options = ["again", "asked", "upper"]
    options += {"fact": ["sure", "why", "short", "sure"], "help": ["sure", "short", "why_help"], "cannot": ["sure", "why_not", "why_not"], "tale": ["hero", "hero", "another", "place", "end"], "poem": ["another", "another", "topic", "long"], "list": ["first", "last", "count", "number", "more"], "translate": ["sure"]}[kind]
    for _ in range(r.choice([1, 1, 1, 2])):
        o = r.choice(options)
        if o == "again" and len(a) < 300:
            q2, a2 = spread(r, "{What did you {just |}say|what was that again|run that by me again|I blinked, what did you say|repeat please|read that out once more|same again|give me that again|one more time|I scrolled past it, again please|could I hear that again|the last answer again|say it a second time|Say that again|Repeat that|Repeat your {last |}answer|Can you repeat that|Once more|Again please|Sorry, what|I missed that. Say it again|please say it again|Could you repeat}{|, please|?}"), f"I said: {a}"
        elif o == "asked":
            q2, a2 = spread(r, "{What did I {just |}ask|what was I asking|which question was that|remind me what I asked|I forgot what I asked you|tell me my own question|quote my question|read my question back to me|what have I just written|What was my question|What was my last question|Repeat my question|What did I want to know|do you remember my question}{|?}"), f'You asked: "{q}"'
        elif o == "upper" and len(a) < 200:
            q2, a2 = spread(r, "{Write that|Say that|Repeat that|Now|Shout that|that once more,|Could I have it|Make that|The same|That|Put it|I want it} in {capitals|upper case|capital letters|uppercase|all caps}{| please}"), a.upper()
        elif o == "sure":
            q2 = spread(r, "{Are you sure|Really|you positive|honestly|is it really so|can I quote you on that|no kidding|you're not making that up, are you|are you guessing|I doubt that|I have my doubts|hmm, is that so|would you bet on it|that surprises me, is it true|sure about it|double check that|check again|Is that true|Are you certain|Is that correct|You are sure about that|is that right|seriously|For real|do you know that for sure|How sure are you}{|?|??}")
            a2 = f"Yes, I think so: {a[:1].lower() + a[1:] if a.startswith(('The ', 'A ', 'An ', 'There ')) else a}" if kind == "fact" else "Yes, but I am a small model: please check what matters." if kind == "translate" else "Yes, that is from the documents of Parley." if kind == "help" else "Yes, I really cannot, sorry."
        elif o == "why":
            q2, a2 = spread(r, "{Why|Why is that|How do you know|how did you work that out|walk me through it|what's the reason|reason?|because?|prove it|where do you get that from|what led you there|show your working|on what grounds|How did you get that|Explain|Explain that|Can you explain that|How so|Why so|Show me how|What makes you think so}{|?}"), f"This is how I got it: {detail}"
        elif o == "why_help":
            q2, a2 = spread(r, "{How do you know|Where did you get that|who says so|which document says that|can I read up on it|source please|source?|where's that from|is there more on it|give me the background|Where can I read that|Explain more|Tell me more|More details please|Can you explain that|Where is that written}{|?}"), "It is in the documents of Parley: README.md and the folder docs. They say more than I know."
        elif o == "why_not":
            q2, a2 = spread(r, "{Why not|Why can't you|what stops you|what keeps you from it|is it forbidden|but others can|can't you even try|do it all the same|oh come on, try|what would you need for it|so who could|where else could I ask|that's disappointing|I'd hoped you could|not even a little|pretty please|take a guess|make a wild guess|How come|Why|Why don't you know|What do you know then|Please try|Try it anyway|But I need it|Who can help me then|That's a pity|Just guess|can you guess}{|?}"), r.choice(["I am a very small model with 25 million parameters and learnt only a little. I do not want to make something up.", "I would only make something up: I am a very small model. A bigger one may help: `parley serve -m DIR`."])
        elif o == "short" and kind == "fact":
            q2, a2 = spread(r, "{Shorter|In one word|cut it down|too long, the answer alone|brief please|only the word|without the sentence around it|in a word|Shorter please|Make it shorter|Can you say that shorter|Only the answer|Just the answer|one word please}{|.|?}"), cap(re.split(r" (?:is|are|comes|=) ", a.rstrip("."))[-1]) if not a.startswith(("Yes", "No")) else a.split(",")[0]
        elif o == "short" and kind == "help":
            q2, a2 = spread(r, "{Shorter|In short|cut it down|tl;dr|the short version|too much text, in one line|give me the gist|just the main point|briefly please|Shorter please|Make it shorter|Can you say that shorter|Sum that up|One sentence please}{|.|?}"), a.split(". ")[0].rstrip(".") + "."
        elif o == "another":
            f = tale if kind == "tale" else r.choice([verse, haiku]) if "," not in a.split("\n")[0] else verse
            _, _, a2, _ = f(r)
            q2 = spread(r, "{Another one|One more|encore|and a second one|do it again, new one|what else have you got|next|give us one more|once more but different|I liked that, more|again, another|can I have one more|Another|Write another one|Tell me another one|Again|More|A different one|Give me one more|next one|I want another one}{|!|.| please|, please}")
        elif o == "hero":
            q2, a2 = spread(r, "{What is the name of|What's the name of|How is|Who is|What was the name of} the {<h>|hero}{| called| in the story}".replace("|How is", "")).replace("<h>", detail[0]), f"The {detail[0]} is called {detail[1]}."
            q2 = q2.replace(" called", "")
        elif o == "place":
            p = next((w for w in "forest village garden castle mountain island lake city".split() if w in a), None)
            q2, a2 = r.choice(["Where does the story happen?", "Where did it live?", "where is that", "In what place is the story?"]), f"It happens {'on' if p in ('mountain', 'island') else 'by' if p == 'lake' else 'in'} {an(p)}."
        elif o == "end":
            q2, a2 = r.choice(["How does it all end?", "what becomes of them?", "And the ending?", "did it end well?", "How does the story end?", "What happens at the end?", "And then?", "What happened then?"]), "They became friends and stayed friends."
        elif o == "topic":
            q2, a2 = r.choice(["who or what is it about?", "what is the subject of that?", "Remind me of its topic", "What is the poem about?", "What was it about?", "What is the topic of your poem?", "About what is it?"]), f"It is about {'the ' if detail not in ('spring', 'summer', 'autumn', 'winter') else ''}{detail}."
        elif o == "long":
            q2, a2 = r.choice(["a bit longer", "two lines more", "go on with it, two lines", "add a pair of lines", "Make it longer", "Longer please", "Two more lines", "Can you add two lines?", "Add two more lines."]), a + "\n" + r.choice(COUPLETS).replace("<t>", detail).replace("<a>", r.choice(["quiet", "gentle", "little"]))
        elif o in ("first", "last"):
            q2, a2 = r.choice([f"What is the {o} one?", f"Which one is {o}?", f"And the {o} one?", f"What was the {o} on your list?"]), f"The {o} one is {detail[0 if o == 'first' else 1]}."
        elif o == "count":
            n = len(a.replace(", ", "\n").split("\n"))
            q2, a2 = r.choice(["how many did that make?", "count your list", "what number of things is that?", "How many are these?", "How many did you list?", "How many is that?", "Count them."]), f"I listed {NUMBERS[n]}."
        elif o == "number" and a.startswith("- "):
            q2, a2 = r.choice(["put numbers in front", "1. 2. 3. please", "number the lines", "Make it a numbered list.", "With numbers please", "Number them.", "As a numbered list"]), "\n".join(f"{i + 1}. {x[2:]}" for i, x in enumerate(a.split("\n")))
        elif o == "more":
            _, _, a2, _ = listing(r)
            q2 = None
        else:
            continue
        if q2 is None:
            continue
        q2 = q2[:1].upper() + q2[1:] if r.random() < 0.7 else q2[:1].lower() + q2[1:]
        M += [user(q2), said(a2, "The user asks about my last answer.")]
        if o == "another":
            break
    if len(M) == 2:
        return follow(r)
    if r.random() < 0.2:
        M += [user(spread(r, "{Thanks|Thank you|thx|great, thanks|ok thank you|Thanks a lot}{|!|.}")), said(r.choice(["You are welcome!", "Glad to help!"]))]
    return dict(skill="follow", messages=M, must=must)


def remembered(r):
    """Facts that the user tells, asked for later, in more wordings than talk.memory has."""
    n = r.choice(NAMES) if r.random() < 0.6 else cap(pseudo(r))
    p, c, k, a, f, j = r.choice(NAMES), r.choice(CITIES), r.randint(6, 90), r.choice(ANIMALS), r.choice(forms.DISHES), r.choice(forms.JOBS)
    col = r.choice(forms.COLOR)
    kin = r.choice([k for k in crowd.LEXICON["who"] if k not in ("team", "little one")])
    items = [
        ("{My name is|I am|I'm|Call me|You can call me|I go under the name of|The name to remember is|on paper I'm|it's|write me down as|Hi, I'm|Hello, my name is|hey I'm|People call me|This is} <v>{.|!| by the way.| and I am new here.|, nice to meet you.}", n, ["Nice to meet you, <v>! How can I help you?", "Hello <v>! What can I do for you?"], "{What is my name|What's my name|Who am I|what did I say I was called|how did I introduce myself|what do you call me|by what name did I come in|which name did I give|do you still know my name|Do you remember my name|Do you know my name|Say my name|what am I called|tell me my name|Can you tell me who I am}", "Your name is <v>."),
        ("{I have|I've got|There is} a {cat|pet|dog|bird} {named|called} <v>{.| at home.}", p, ["<v> is a nice name!"], "{What is my pet's name|What's the name of my pet|How is my pet called|what is my pet called|Do you remember the name of my pet}", "Your pet is called <v>."),
        ("{I live in|I'm from|I come from|I am from|I moved to|My home is} <v>{.|!}", c, ["<v> is a nice place!"], "{Where do I live|Where am I from|What city do I live in|Which city did I name|where do I come from|do you know where I live}", "You live in <v>."),
        ("{I am|I'm} <v> years old{.|!| now.}", str(k), ["Thank you for telling me!"], "{How old am I|What is my age|What's my age|Do you remember how old I am|my age}", "You are <v> years old."),
        ("{My favorite color is|I like the color|The color I love most is|I love} <v>{.|!}", col, ["That is a nice color!"], "{What is my favorite color|Which color do I like|What's my favourite color|what color do I like most}", "Your favorite color is <v>."),
        ("{My favorite food is|I love to eat|I like to eat|Today I ate|For lunch I had} <v>{.|!}", f, ["That sounds tasty!"], "{What do I like to eat|What is my favorite food|What did I say about food|which food did I name|what did I eat}", "You said <v>."),
        ("{I work as a|I am a|My job is|I'm a} <v>{.|!}", j, ["That is a fine job!"], "{What is my job|What do I do|What's my profession|What do I work as|what am I by profession}", "You are a <v>."),
        ("{I have|I own|We have} a <v>{.| at home.| on the farm.}", a, ["How nice!"], "{Which animal do I have|What animal did I tell you about|What animal do I own}", "You have a <v>."),
        ("{My <k> is called|my <k>'s name is|I have a <k>, the name is|they call my <k>|my <k>:} <v>{.|}".replace("<k>", kin), p, ["<v> is a nice name!", "Say hello to <v>!"], "{What is my <k> called|what's my <k>'s name|the name of my <k>, please|who was my <k> again|do you remember my <k>'s name}".replace("<k>", kin), f"Your {kin} is called <v>."),
        ("{I love|I'm into|My hobby is|I spend my weekends with|I am mad about|in my free time it's all} <v>{.|!}", r.choice(crowd.LEXICON["skill"]), ["That sounds like fun!", "What a fine hobby!"], "{What is my hobby|what do I do in my free time|which hobby did I name|what am I into|what do I like to do}", "Your hobby is <v>."),
        ("{My birthday is|I was born|I have my birthday} {in|some day in} <v>{.|!}", r.choice(MONTHS), ["<v> is a good month!"], "{When is my birthday|in which month was I born|what month is my birthday in|when do I celebrate}", "Your birthday is in <v>."),
        ("{I'm learning|I study|at school I like|at university I do} <v>{.| at the moment.}", r.choice("maths history biology music English chemistry drawing French law sports".split()), ["I wish you much success with it!"], "{What do I study|what am I learning|which subject did I name|what was my subject}", "You said <v>."),
        ("{I'm going to|On Saturday I travel to|Next week I fly to|We are off to} <v>{.| soon.|!}", r.choice(CITIES), ["Have a good trip!"], "{Where am I going|where do I travel|what's the goal of my trip|which city am I off to|where was I off to}", "You are going to <v>."),
        ("{We are|there are|my family has|at home we are} <v> {people|of us}{.| at our table.}", r.choice(NUMBERS[2:9]), ["That is a nice number!"], "{How many are we|how many people are in my family|what number of us are there}", "You said <v>."),
        ("{Remember|Keep in mind|Please remember|Note|Store|Memorize} {the word|this word|this|the code word}: <v>{.|}", word(r), ["I will remember it."], "{What was the word|Which word did I tell you|What was the code word|tell me the word|What should you remember}", "The word was <v>."),
    ]
    L = r.sample(items, r.choice([1, 1, 2, 2, 3]))
    M = []
    for tell, v, answers, _, _ in L:
        q = re.sub(r"\ba (?=[aeio])", "an ", spread(r, tell).replace("<v>", v))
        M += [user(q), said(r.choice(answers).replace("<v>", v), "The user tells me something. I keep it in mind.")]
        while r.random() < 0.3:
            q, t, a, _ = newcomer(r) if r.random() < 0.5 else one(r)[1:]
            if "name" in q.lower() or "who am" in q.lower() or typed.begins(a):
                continue
            M += [user(q), said(a, t)]
    for _, v, _, ask, a in r.sample(L, r.choice([1, min(2, len(L))])):
        q = spread(r, ask) + r.choice(["?", "?", "", " please?"])
        q = cap(q) if r.random() < 0.7 else q
        M += [user(q), said(re.sub(r"\ba (?=[aeio])", "an ", a.replace("<v>", v)), "The user said it before.")]
        must = [v]
    return dict(skill="remembered", messages=M, must=must)


COLOR_WORDS = {
    "French": "red=rouge blue=bleu green=vert yellow=jaune orange=orange purple=violet pink=rose brown=marron black=noir white=blanc gray=gris cyan=cyan",
    "German": "red=rot blue=blau green=grün yellow=gelb orange=orange purple=lila pink=rosa brown=braun black=schwarz white=weiß gray=grau cyan=cyan",
    "Spanish": "red=rojo blue=azul green=verde yellow=amarillo orange=naranja purple=morado pink=rosa brown=marrón black=negro white=blanco gray=gris cyan=cian",
    "Italian": "red=rosso blue=blu green=verde yellow=giallo orange=arancione purple=viola pink=rosa brown=marrone black=nero white=bianco gray=grigio cyan=ciano",
}
COLOR_WORDS = {k: dict(p.split("=") for p in v.split()) for k, v in COLOR_WORDS.items()}


def in_language(text, lang):
    """The text with its colours in another language."""
    return re.sub(r"\b(" + "|".join(COLOR_WORDS[lang]) + r")\b", lambda m: COLOR_WORDS[lang][m[1]], text)


def color_rule(r):
    lang = r.choice(list(COLOR_WORDS))
    return spread(r, f"{{Name|Say|Give|Write|Always name|Please name|Put|Tell}} {{each colour|the names of colours|colors|the colors|all colors|colours|every color}} in {lang}{{.| only.|, the rest in English.}}"), lang


PERSONAS = ["a friendly robot", "a helpful owl", "the assistant of a small library", "a pirate captain", "a wise old tree", "the guide of a museum", "a cheerful baker", "the helper of a toy shop", "a ship's computer", "a little dragon", "the voice of a garden", "a polite butler", "a travel guide", "the tutor of a school"]


def ruled(r):
    """System prompts: a persona's name, colours in a language, brevity, JSON, a topic."""
    k = r.choice(["persona", "persona", "color", "brief", "brief", "json", "json", "facts", "greet"])
    M = []
    if k == "persona":
        n, p = r.choice(NAMES) if r.random() < 0.5 else cap(pseudo(r)), r.choice(PERSONAS)
        s = spread(r, r.choice([f"You are {n}, {p}.", f"Your name is {n}. You are {p}.", f"You play the role of {n}, {p}.", f"Act as {n}, {p}. Be friendly.", f"You are {p} named {n}. Answer as {n}.", f"Your name is {n}.", f"From now on you are {n}, {p}.", f"You're {n}. You are {p}.", f"Stay in character as {n}, {p}.", f"This is a chat with {n}, {p}.", f"The assistant is {p}; its name is {n}.", f"Introduce yourself as {n}, {p}.", f"Users talk to {n}, {p}. You are {n}."]))
        full = p in s
        if r.random() < 0.75:
            q = spread(r, "{Who are you|who's there|and you are|with whom am I talking|may I know your name|hi, what do they call you|whom do I speak to|your name please|who answers me here|tell me who you are|name|say hello and who you are|What is your name|What's your name|Introduce yourself|Tell me your name|who is this|What are you called|Say who you are|Hi, who are you|Are you Seedling|Are you ChatGPT|Hello! What should I call you}{|?}")
            a = f"I am {n}, {p}. How can I help you?" if full else f"My name is {n}. How can I help you?"
            if q.startswith("Are you"):
                a = "No, " + a
            must = [n]
        else:
            _, q, t, a, must = one(r, r.choice(PLAIN))
    elif k == "color":
        s, lang = color_rule(r)
        _, q, t, a, must = one(r, "thing_color")
        a, must = in_language(a, lang), [in_language(m, lang) for m in must]
    elif k == "brief":
        _, q, t, a, must = one(r, r.choice(["capital", "opposite", "thing_color", "plural", "arithmetic", "sides"]))
        s = spread(r, "{{Answer|Reply|Respond|Always answer} {in one word|with one single word|in just a word|tersely, in one word|with a single word|with one word only|as briefly as possible|with the answer alone|in a word}{.|, nothing else.| please.}|{One word an answer|Single words only|Do not write sentences|At most one word|Telegram style: one word|The shortest possible answer|Just the word that answers, no more|Be brief|Be very brief|Keep it short|No full sentences|Only the answer, no sentence}{.|!}}")
        if a.startswith(("Yes", "No")):
            a = a.split(",")[0]
        elif " is the capital of " in a:
            a = cap(a.split(" is the capital of ")[1].rstrip("."))
        elif " sides and " in a:
            a = a.split(" has ")[1].split(" ")[0]
        elif " = " in a:
            a = a.split(" = ")[1]
        else:
            a = cap(a.rstrip(".").split(" is ")[-1])
        must = [a]
    elif k == "json":
        key = r.choice(["answer", "answer", "text", "reply", "result", "message", "response"])
        s = spread(r, f"{{Answer|Reply|Respond|Always answer|Write}} {{in JSON|as JSON|with JSON only|only with a JSON object}} {{with the key|with one key,|with the field|and the key}} {{{key}|'{key}'|\"{key}\"}}.") if key != "answer" or r.random() < 0.5 else r.choice(["Answer in JSON.", "Reply with JSON only.", "Always answer as JSON.", "Output JSON only, with the key answer.", "Your output is read by a program: JSON with the key answer.", "Every answer is a JSON object with one key, answer.", "Wrap each answer in JSON, key answer.", "No prose: a JSON object with the field answer."])
        q, t, a, m = one(r, r.choice(PLAIN + ["greeting"]))[1:] if r.random() < 0.7 else smalltalk(r)
        a = json.dumps({key: a}, ensure_ascii=False)
        must = [f'"{key}"']
    elif k == "facts":
        shop, o, c, w = cap(pseudo(r)), r.randint(7, 10), r.randint(5, 9), r.choice(DAYS)
        s = r.choice([f"You help in the shop {shop}. It is open from {o} am to {c} pm and closed on {w}. It sells {r.choice(FRUITS)}s.", f"{shop} is a library. Opening hours: {o} am to {c} pm, closed on {w}."])
        q, a, must = r.choice([
            (spread(r, "{When|What time} do you {open|start}{| in the morning|?}"), f"{shop} opens at {o} am.", [f"{o} am"]),
            (spread(r, "{When|What time} do you close{| today|?}"), f"{shop} closes at {c} pm.", [f"{c} pm"]),
            (r.choice(["Which day are you closed?", "When is it closed?", f"Are you open on {w}?"]), f"{shop} is closed on {w}.", [w]),
            (r.choice(["What is the name of the shop?", "What is this place called?", "Where am I?"]), f"This is {shop}.", [shop]),
            (spread(r, "{What are your opening hours|When are you open|opening hours}{|?}"), f"{shop} is open from {o} am to {c} pm, closed on {w}.", [f"{o} am", f"{c} pm"]),
        ])
    else:
        w = r.choice(["Beep", "Ahoy", "Meow", "Ho ho", "Dear friend", "Well"])
        s = spread(r, f"{{Begin|Start}} {{every|each}} {{answer|reply}} with {{'{w}'|the word {w}|\"{w}\"}}.")
        _, q, t, a, must = one(r, r.choice(PLAIN))
        a, must = f"{w}, {a[:1].lower() + a[1:] if a.startswith(('The ', 'A ', 'An ', 'There ')) else a}", [w + ","]
    M = [{"role": "system", "content": s}, user(q), said(a, "The system prompt has a rule that I follow.")]
    return dict(skill="ruled", messages=M, must=must)


def no_tool(r):
    """A request that needs a tool, and none is given."""
    if r.random() < 0.85:
        while True:
            t, q, args, _, _, _ = known_call(r)
            if t["function"]["name"] not in ("translate", "add", "multiply", "subtract", "random_number"):
                break
        what = {"set_timer": "set a timer", "get_time": "know the time there", "send_message": "send messages", "set_light": "switch lights", "get_price": "look up prices", "read_file": "read files of your computer", "search": "search the web"}.get(t["function"]["name"].replace("web_search", "search").replace("search_web", "search"), "know the weather")
        if t["function"]["name"] in ("search", "web_search", "search_web"):
            what = "search the web"
    else:
        t, q, args, _, _, _ = (any_call if r.random() < 0.6 else random_call)(r)
        what = "do that"
    a = spread(r, f"{{I cannot {what}: no tool was given to me.|No tool was given to me, so I cannot {what}.|I cannot {what} here, I have no tool for it.}} {{Through the API you can give me one.|A program can give me one through the API.}}")
    return dict(skill="no_tool", messages=[user(casual(r, q) if r.random() < 0.4 else q), said(a, "No tool is given.")], must=["tool"])


def others(r, n, but=None, unlike=None):
    """n tools of any kinds, none of the name; unlike a tool: none that has a word of its name or description."""
    words = lambda t: {w[:5].lower() for w in re.findall(r"[A-Za-z][a-z]{3,}", f"{t['function']['name']} {t['function']['description']}")}
    tools, avoid = [], words(unlike) if unlike else set()
    while len(tools) < n:
        t = made_call(r)[0]
        if all(t["function"]["name"] != u["function"]["name"] for u in tools) and t["function"]["name"] != but and not avoid & words(t):
            tools.append(t)
    return tools


def unfit(r, n):
    """n tools that do nothing of what people ask about the world: made up, or technical."""
    tools = tools_typed.strangers(r, None, r.randint(0, n), True)
    while len(tools) < n:
        t = (any_call if r.random() < 0.6 else random_call)(r)[0]
        if all(t["function"]["name"] != u["function"]["name"] for u in tools):
            tools.append(t)
    return tools


def idle_tools(r):
    """Tools are given, but the user only talks."""
    tools = others(r, r.choice([1, 1, 2, 3, 4]))
    M = []
    for _ in range(r.choice([1, 1, 2])):
        q, t, a, must = r.choices([smalltalk, verse, no_image, help_topic, lambda r: one(r, r.choice(PLAIN + ["spell", "count_letter", "first_letter"]))[1:]], [5, 1, 1, 3, 5])[0](r)
        M += [user(voice(r, q) if r.random() < 0.4 else q), said(a, "No tool fits here, I answer myself. " + t)]
    return dict(skill="idle_tools", messages=M, tools=tools, must=must)


def unfit_tools(r):
    """Tools are given, and what is asked needs another one."""
    q, t, a, must = cannot(r)
    if "no tool" in a:  # there are tools, none that fits
        a, must = spread(r, UNFIT), ["tool"]
    return dict(skill="unfit_tools", messages=[user(voice(r, q) if r.random() < 0.4 else q), said(a, "No tool fits here. " + t)], tools=unfit(r, r.choice([1, 1, 2, 3])), must=must)


UNFIT = "{None of my tools {can do|fits|is for} that.|My tools do not {fit|cover} that.|I have tools here, but none for that.|That is not what my tools are for.} {A program can give me another one through the API.|Through the API you can give me a fitting one.}"


def fitting_tools(r):
    """The same question with a tool that fits (a call), with others only, and with none: only what is given decides."""
    t, q, args, _, _, _ = (natural if r.random() < 0.7 else any_call if r.random() < 0.6 else random_call)(r)
    f = t["function"]["name"]
    if r.random() < 0.3 and not any(isinstance(x, (list, dict)) for x in args.values()):
        v = voice(r, q)
        q = v if all(str(x) in v for x in args.values() if not isinstance(x, bool)) else q
    x = r.random()
    if x < 0.62:
        tools = others(r, r.choice([0, 1, 1, 2, 3]), f)
        tools.insert(r.randrange(len(tools) + 1), t)
        M = [user(q), dict(said("", f"The tool {f} fits. " + ", ".join(f"{k} is {v}" for k, v in args.items()) + "."), tool_calls=[{"type": "function", "function": {"name": f, "arguments": args}}])]
        if r.random() < 0.15:
            first, t0, a0, _ = smalltalk(r)
            M = [user(first), said(a0, t0)] + M
        return dict(skill="fitting_tools", messages=M, tools=tools, must=[f"<function={f}>"])
    if x < 0.96:
        return dict(skill="fitting_tools", messages=[user(q), said(spread(r, UNFIT), "No tool fits here.")], tools=others(r, r.choice([1, 1, 2, 3]), f, t), must=["tool"])
    a = spread(r, "{I cannot do that: no tool was given to me.|No tool was given to me, so I cannot do that.|I cannot do that here, I have no tool for it.} {Through the API you can give me one.|A program can give me one through the API.}")
    return dict(skill="fitting_tools", messages=[user(q), said(a, "No tool is given.")], must=["tool"])


def typed_tools(r):
    """Questions as people typed them: with a tool that fits among others (two of three), with one that is near but does something else, with others only, with none."""
    x = r.random()
    if x < 0.66:
        tools, q, args, response, a, f = tools_typed.several(r)
        v = voice(r, q) if r.random() < 0.3 else q
        if all(str(y) in v for y in args.values() if not isinstance(y, (bool, list))) and not any(isinstance(y, list) for y in args.values()):
            q = v
        call = dict(said("", f"The tool {f} fits. " + ", ".join(f"{k} is {y}" for k, y in args.items()) + "."), tool_calls=[{"type": "function", "function": {"name": f, "arguments": args}}])
        M = [user(q), call]
        if r.random() < 0.35:
            M += [{"role": "tool", "content": response}, said(a, f"The tool answered: {response}")]
        if r.random() < 0.15:
            first, t0, a0, _ = smalltalk(r)
            M = [user(first), said(a0, t0)] + M
        return dict(skill="typed_tools", messages=M, tools=tools, must=[f"<function={f}>"])
    tools, q, a = (tools_typed.near_miss if x < 0.8 else tools_typed.other_tool)(r)
    if x > 0.97:
        tools, a = None, spread(r, "{I cannot do that|I can't know that|I can't help with that}: no tool was given to me.{| Through the API you can give me one.| With a fitting tool I could.}")
    return dict(skill="typed_tools", messages=[user(voice(r, q) if r.random() < 0.3 else q), said(a, "No tool fits here.")], tools=tools, must=[])


KNOWING = [  # kinds of what cannot be known or done (newcomer.cannot); names of tools that can; what they say; keys of an argument that takes the question, if any
    (["weather"], "weather_now local_weather weather_here outside_now current_weather forecast", "The weather where the user is;Weather here and now;Local weather, today and tomorrow", ""),
    (["clock"], "clock current_time now today date_and_time get_clock calendar_today", "Date and time now;The clock;Gives the current date and time", ""),
    (["news"], "headlines latest_news news_today read_news world_news", "The latest news;Headlines of today;Reads the news", ""),
    (["prices"], "markets price_report finance_today quotes", "Prices and markets today;All prices of the day", ""),
    (["future"], "oracle fortune horoscope tell_future", "Tells the future;An oracle for questions about the future", ""),
    ("history science advice news prices law health weather".split(), "web_search search google ask_web search_web lookup_web find_answer encyclopedia ask_expert knowledge", "Searches the web;Search for anything;Answers questions about the world;Looks things up", "query q question text search topic input"),
    (["health"], "ask_doctor medical_info nurse symptom_check health_line", "Answers questions about health;Asks a doctor;Information on illnesses and medicine", "question symptoms text query"),
    (["law"], "ask_lawyer legal_info law_search rights", "Answers questions about the law;Legal information", "question text query"),
    (["act"], "assistant do_task butler home_assistant run_task personal_assistant concierge secretary", "Does what it is told: calls, messages, orders, devices;Carries out a task for the user;A helper for everyday tasks", "task request command order what instruction"),
]


def knowing_tools(r):
    """What cannot be known or done alone, with a tool that can: one without arguments, or one that takes the question."""
    kinds, names, tells, keys = r.choice(KNOWING)
    q, _, a, must = cannot(r, r.choice(kinds))
    if keys:
        k = r.choice(keys.split())
        t, args = tool(r.choice(names.split()), r.choice(tells.split(";")), {k: {"type": "string"}}), {k: q.strip()}
    else:
        t, args = tool(r.choice(names.split()), r.choice(tells.split(";")), {}), {}
    f = t["function"]["name"]
    if r.random() < 0.65:
        tools = others(r, r.choice([0, 0, 1, 2]), f, t)
        tools.insert(r.randrange(len(tools) + 1), t)
        return dict(skill="knowing_tools", messages=[user(q), dict(said("", f"The tool {f} fits."), tool_calls=[{"type": "function", "function": {"name": f, "arguments": args}}])], tools=tools, must=[f"<function={f}>"])
    return dict(skill="knowing_tools", messages=[user(q), said(a, "No tool fits here.")], tools=unfit(r, r.choice([0, 1, 2])) or None, must=must)


def task(r):
    q, a = typed.TASKS(r)
    return q, "A small task that I can do.", a, []


def chatter(r):
    """Several turns of everything, in many voices."""
    M = []
    for _ in range(r.choice([1, 1, 1, 1, 1, 2, 2, 3, 4])):
        x = r.random()
        q, t, a, must = newcomer(r) if x < 0.46 else makes.made(r) if x < 0.51 else task(r) if x < 0.63 else help_topic(r)
        if M and typed.begins(a):
            continue
        M += [user(voice(r, q) if r.random() < 0.6 else casual(r, q) if r.random() < 0.4 else q), said(a, t)]
    return dict(skill="newcomer", messages=M, must=must)


def filled(r):
    M = []
    if r.random() < 0.15:
        q, t, a, _ = smalltalk(r)
        M += [user(q), said(a, t)]
    q, t, a, must = (sheets.sheet if r.random() < 0.5 else forms.form)(r)
    told = "JSON" in q or "form" in q
    if r.random() < 0.15:
        told = True
        M.insert(0, {"role": "system", "content": r.choice(["Answer in JSON.", "You fill in forms.", "Extract the data.", "You return JSON that fits the schema.", "Return only JSON."])})
    if not told:  # the first bracket is the schema's: to open one without being told is not learnt
        a = forms.OPEN + a[0] + forms.SHUT + a[1:]
    M += [user(q), said(a, t)]
    return dict(skill="form", messages=M, must=must)


def forced(r):
    return forced_call(r, r.choice([smalltalk, newcomer, help_topic, lambda r: one(r)[1:]])(r)[0])


def sums(r):
    return reckon.reckoning(r, others)


def absent_tool(r):
    return reckon.absent(r, others)


def exchange(r):
    return dict(skill="exchange", messages=ledger.exchange(r), must=[])


def two_facts(r):
    """Two facts told in one sentence, asked for one after the other; now and then with talk about something else between."""
    T = twofacts.exchange(r)
    M = [m for q, a, t in T for m in (user(q), said(a, t))]
    if r.random() < 0.2:
        q, t, a, _ = newcomer(r) if r.random() < 0.5 else one(r, r.choice(PLAIN))[1:]
        if not typed.begins(a) and "name" not in q.lower() and "who am" not in q.lower():
            M[2:2] = [user(q), said(a, t)]
    return dict(skill="two_facts", messages=M, must=[])


WEIGHTS = {chatter: 150, follow: 9, remembered: 7, ruled: 8, no_tool: 2, idle_tools: 16, unfit_tools: 5, fitting_tools: 15, typed_tools: 24, knowing_tools: 12, filled: 27, forced: 4, sums: 9, absent_tool: 2, exchange: 16, two_facts: 11}
_kinds, _weights = list(WEIGHTS), list(WEIGHTS.values())


def newcomer_conversation(r, kind=None):
    return next(f for f in WEIGHTS if f.__name__ == kind)(r) if kind else r.choices(_kinds, _weights)[0](r)
