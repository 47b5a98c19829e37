"""The same wish as different people type it: in a hurry, at length, in a foreign language's order, in keywords, with slips, in the middle of other talk.

voice(r, question) changes how a question is put, never what is wanted. What stands in quotes, numbers and names stay.
"""
import re

from words import CITIES, NAMES

BEFORE = """I have been working with computers for twenty years|My daughter set this up for me yesterday|I am writing from my kitchen table|We are a small school with two old computers|I got this from a friend|It is late and I am tired|I am sitting in the train|Today is my first day with this program|My boss asked me to try this out|I am not a technical person|I read about this in a magazine|I looked in three places and found nothing|My English is not the best|I am sorry if this was asked before|This may sound strange|I am preparing a small talk for my club|I have used other programs of this kind|My neighbor <n> told me about you|I live in <c> and it is raining|I just finished my coffee|My cat is sitting on the keyboard|I only have a minute|We talked about this at dinner|I am seventy years old and new to this|I teach children aged nine|There is one thing I do not understand|I tried this morning already|My colleague <n> and I have a bet|I am a bit in a hurry|I hope this is the right place|It has been on my mind all day|I am in the library and have to be quiet|Let me get straight to the point|I am on a slow laptop|This is for my grandmother|The sun is shining here in <c>|I have two small questions, here is the first|I did what you said, and it went well|Good, that part is clear|Now to something else|Before I forget it|While I wait for my bus|I don't want to take much of your time|I never used anything like this|My brother says that you can answer this|You can be short|Take your time|Do not laugh|I am really curious|Somebody asked me this and I had no answer|I was cleaning up my desk and then I thought of this|My son <n> is doing his homework|I am testing several programs this week|Here is what I want to know|I have one for you|Okay, next one|Something different|Changing the subject|Let me try something|I wonder|That reminds me|I almost forgot""".split("|")
AFTER = """I am asking because my friend <n> wants to know|A short answer is enough|One sentence will do|Thank you very much for your time|I would be grateful for a hint|No hurry|I have tried to find out myself|Sorry for my bad English|My wife <n> also wants to know|I am writing it down|You would make an old man happy|I hope that is clear|Please be honest|Then I can go to bed|I need it for tomorrow|I will tell my class|Otherwise I will ask somebody else|I am all ears|That is all I wanted|Just say it|It's been bugging me|Nobody here could tell me|My kids are waiting|Keep it simple please|I can't find it anywhere|I promise this is the last one|Please don't make it long|Thanks from <c>""".split("|")
INSIDE = """I would be interested to hear: <q>|So my question is this: <q>|What I mean is, <q>|My question: <q>|<n> asks: <q>|In other words: <q>|Here goes: <q>|ok listen: <q>|What people here keep asking is: <q>|<q> - that is what I want to know|<q>, if you get what I mean|<q>, that's my question|erm, <q>|uh so <q>|hmm, <q>|well you see, <q>|I thought I'd ask: <q>|q: <q>|Question 1: <q>|1. <q>|- <q>|> <q>|Hi <n> here. <q>|Hello, this is <n>. <q>|hello, <n> from <c> here, <q>|So... <q>|<q> (asking for my mother)|<q> (sorry, new here)|<q>?!|<q> ???|<q> :-)|<q> 🙂|🤔 <q>|<q> ...|Please: <q>|pls <q>|<q> pls|<q> asap|<q> thx in advance|yo <q>|bro <q>|dude, <q>|honestly, <q>|wait, <q>|no wait. <q>|and <q>|but <q>|ah, and <q>|then <q>|also: <q>|@seedling <q>|Seedling! <q>|dear computer, <q>|hey program, <q>""".split("|")
SWAPS = [(r"\bI am\b", "I"), (r"\bdo you\b", "you"), (r"\bhow do I\b", "how I can"), (r"\bHow do I\b", "How I"), (r"\bHow can I\b", "How to"), (r"\bthe ", ""), (r"\ba ", ""), (r"\ban ", ""), (r"\bdoes it\b", "it"), (r"\bWhat is\b", "What"), (r"\bis there\b", "exist"), (r"\bthere are\b", "are"), (r"\bdoes\b", "do"), (r"\bto the\b", "to"), (r"\bmany\b", "much"), (r"\bme\b", "to me"), (r"\bcan I\b", "I can"), (r"\bCan I\b", "I can"), (r"\bWhere is\b", "Where"), (r"\bWhere can I find\b", "Where find"), (r"\bhave you\b", "you have"), (r"\bare you\b", "you are"), (r"\bI want to\b", "I want"), (r"\bI would like to\b", "I like"), (r"\bwill it\b", "it will"), (r"\bwhich\b", "what"), (r"\bWhich\b", "What"), (r"\bit is\b", "is")]
CHAT = [(r"\byou\b", "u"), (r"\byour\b", "ur"), (r"\bare\b", "r"), (r"\bplease\b", "pls"), (r"\bbecause\b", "bc"), (r"\bwant to\b", "wanna"), (r"\bgoing to\b", "gonna"), (r"\bfor\b", "4"), (r"\bto\b", "2"), (r"\bthanks\b", "thx"), (r"\bwith\b", "w/"), (r"\bwithout\b", "w/o"), (r"\bpicture\b", "pic"), (r"\bdon't know\b", "dunno"), (r"\bgive me\b", "gimme"), (r"\blet me\b", "lemme"), (r"\btell me\b", "tell me"), (r"\bgot to\b", "gotta"), (r"\bsomething\b", "sth"), (r"\bthe\b", "da"), (r"\bwhat is\b", "whats"), (r"\bhow is\b", "hows"), (r"\bI am\b", "im"), (r"\bokay\b", "k"), (r"\breally\b", "rly"), (r"\bmessage\b", "msg"), (r"\bquestion\b", "q"), (r"\bmodel\b", "modl"), (r"\bserver\b", "srv"), (r"\btoday\b", "2day"), (r"\btomorrow\b", "tmrw"), (r"\bwhy\b", "y"), (r"\bcomputer\b", "pc"), (r"\bdocuments\b", "docs"), (r"\bsettings\b", "setings"), (r"\bpeople\b", "ppl"), (r"\bminutes\b", "mins")]
LITTLE = set("the a an is are am do does did to of in on for my your it this that please can could would i you me how what there be will with and at so".split())
NEAR = {a: b for a, b in zip("qwertyuiopasdfghjklzxcvbnm", "wqretyiuopsadghfkljxzvcbmn")}


def kept(w):
    """Whether a word stays as it is: numbers, code, names in the middle of a sentence, short words."""
    return not w.strip("?.!,").isalpha() or len(w) < 4


def slips(r, q, n):
    """n slips of the keyboard, in longer words that are no names."""
    words = q.split(" ")
    for _ in range(n):
        i = r.randrange(len(words))
        w = words[i]
        if kept(w) or (i and w[:1].isupper()):
            continue
        j = r.randrange(1, len(w) - 1)
        x = r.random()
        c = w[j].lower()
        words[i] = w[:j] + (w[j + 1] + w[j] + w[j + 2 :] if x < 0.3 else w[j + 1 :] if x < 0.6 else w[j] + w[j:] if x < 0.75 else NEAR.get(c, c) + w[j + 1 :] if x < 0.92 else " " + w[j:])
    return " ".join(words)


def changed(r, q, table, share):
    for old, new in table:
        if r.random() < share:
            q = re.sub(old, new, q)
    return q


def lower_first(q):
    return q if q[:2] in ("I ", "I'") or q[1:2].isupper() else q[:1].lower() + q[1:]


def named(r, text):
    return text.replace("<n>", r.choice(NAMES)).replace("<c>", r.choice(CITIES))


def sentence(text):
    return text if text[-1:] in "?.!" else text + "."


def voice(r, q):
    """The question in the voice of one of many writers."""
    if "\n" in q:
        return q
    quoted = '"' in q or "'" in q or "`" in q
    short = len(q.split(" ")) < 3
    k = r.choices(("plain", "low", "slips", "chat", "foreign", "keys", "gaps", "long", "inside", "loud"), (18, 20, 9, 9, 8, 7, 9, 9, 10, 3))[0]
    if k in ("chat", "gaps") and re.search(r"\d", q):  # "to" as 2, or a sum without its sign, would be another sum
        k = "low"
    if k == "low" or (short and k in ("keys", "foreign", "chat")):
        q = q if quoted else q.lower()
        return q.rstrip("?.!") + r.choice(["", "", "", "?", " ?", "??", ".", " ..", "!"])
    if k == "slips":
        q = slips(r, q, r.choice([1, 1, 2, 3])) if not quoted else q
        return q.rstrip("?.!") if r.random() < 0.5 else q
    if k == "chat":
        q = changed(r, q if quoted else q.lower(), CHAT, 0.5)
        return q.rstrip("?.!") + r.choice(["", "", "?", " lol", " pls", "??", " thx"])
    if k == "foreign":
        return changed(r, q, SWAPS, 0.35).strip() + r.choice(["", "", "", " Please.", " Thank you.", " yes?", " or not?"])
    if k == "keys" and not quoted:
        words = [w for w in q.rstrip("?.!").split(" ") if w.lower().strip(",'") not in LITTLE]
        return " ".join(words).lower() if len(words) > 1 else q
    if k == "gaps" and not quoted:
        words = q.split(" ")
        kept_ = [w for i, w in enumerate(words) if kept(w) and w.lower() not in LITTLE or (i and w[:1].isupper()) or r.random() > 0.16]
        return " ".join(kept_) if len(kept_) > 1 else q
    if k == "long":
        before = [named(r, sentence(b)) for b in r.sample(BEFORE, r.choice([1, 1, 2]))]
        after = [named(r, sentence(r.choice(AFTER)))] if r.random() < 0.4 else []
        return " ".join(before + [sentence(q)] + after)
    if k == "inside":
        form = named(r, r.choice(INSIDE))
        low = not form.startswith("<q>") and r.random() < 0.8
        text = form.replace("<q>", (lower_first(q) if low else q).rstrip("?.!") if not form.endswith("<q>") else lower_first(q) if low else q)
        return text
    if k == "loud" and not quoted:
        return q.upper() if r.random() < 0.5 else re.sub(r"([aeo])(\w?)([?.!]*)$", lambda m: m[1] * r.randint(3, 5) + m[2] + m[3], q) + r.choice(["!", "!!", ""])
    return q
