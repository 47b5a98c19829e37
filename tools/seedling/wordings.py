"""The same wish in other words: frames around a question, indirect questions, synonyms, slips of the keyboard.

reword(r, question) changes a question of a newcomer without changing what is wanted. MORE adds patterns (phrases.spread) to the kinds of
newcomer.py, by the beginning of their first answer.
"""
import re

BEFORE = """Hi, |Hello! |Well, |Just wondering: |A question: |I am new here. |Sorry to bother you, but |Let me ask you this: |OK so |Dear Seedling, |By the way, |One more thing: |Also, |Listen, |Say, |I have just started. |Be honest: |Maybe a silly question, but |Good morning! |Good evening. |Hey there, |Excuse me, |Pardon, |A friend told me to ask: |My son wants to know: |My wife asks: |Now, |Right, |And another thing: |First of all, |Before I start: |Quick one: |Small question: |I'm curious, |I need to know: |Please, |Could be a stupid question, but |hm, |alright, |Next: |Seedling, |I was thinking, |Actually, |Anyway, |oh and |I forgot: |You know, |Look, |Fine. |Great. |Thanks. |Thank you. And """.split("|")
AFTER = """, do you know?| I am curious.| I would like to know.| That would help me.| I am new to this.|, if I may ask?| I could not find it.| Thank you in advance!| I hope you can help.| Just wondering.| It is urgent.|, please tell me.| Any idea?| Do tell.| I am lost.| Help!|, my friend?| for a beginner?| I am asking for a friend.| Sorry for asking.| I really want to know.| Explain it simply.| Cheers!| Ta.| It's for my school.| Thanks a bunch.|, would you?| right now| :)| ;-)| !!|, mate| actually| exactly| then| anyway| by the way| at all""".split("|")
HOWS = """How do I|How can I|How to|What is the way to|What's the trick to|Is it possible to|Is there any way to|Any way to|Could you explain how to|I can't figure out how to|Please tell me how to|What are the steps to|I need to|I'd love to|I am trying to|How does one|What do I press to|What do I type to|What do I need to do to|What has to be done to|Teach me to|Show me how I|Can somebody tell me how to|I wonder how to|Let me know how to|Which steps do I take to|Would you tell me how to|I don't know how to|I want to|Am I able to|Where do I go to|How might I|How should I|what must be done to|Would it be possible to|Do you know a way to|How am I supposed to|Mind telling me how to|Explain to me how to|I have to|What if I want to|I was hoping to""".split("|")
INDIRECT = [
    (r"^(?:how do i|how can i|how to|how would i) (.+)$", [h + " <1>" for h in HOWS]),
    (r"^(?:what is|what's|whats) (.+)$", ["Can you tell me what <1> is", "Do you know what <1> is", "I'd like to know what <1> is", "Tell me what <1> is", "<1>, what is it", "What would <1> be", "Any idea what <1> is", "I wonder what <1> is", "Do you happen to know what <1> is", "Could you say what <1> is", "<1>?", "What on earth is <1>", "Would you know what <1> is", "Please say what <1> is"]),
    (r"^(?:what does|what do) (.+) mean$", ["What is meant by <1>", "What's the meaning of <1>", "Explain <1>", "I don't understand <1>", "What should I understand by <1>", "Please explain the term <1>", "<1> means what"]),
    (r"^(?:can you|could you|will you|are you able to) (.+)$", ["Would you be able to <1>", "Is it possible for you to <1>", "Any chance you could <1>", "I need you to <1>", "I want you to <1>", "Would you <1>", "Can u <1>", "Do you know how to <1>", "You can <1>, can't you", "I'd like you to <1>", "Is there a chance that you <1>", "May I ask you to <1>", "Please <1>", "Go ahead and <1>", "Let's see if you can <1>"]),
    (r"^((?:tell|give|write|show|explain|describe|list|name|make|book|order|set|send|call|play|open|recommend|summarize|solve|read|look|check|buy|find|draft|compose|create) .+)$", ["Can you <1>", "Could you please <1>", "I'd like you to <1>", "Please <1>", "Would you <1>", "Go ahead and <1>", "Would you mind to <1>", "I want you to <1>", "You should <1>", "Do me a favour and <1>", "Be so kind and <1>", "Kindly <1>", "Let me have you <1>", "It would be great if you could <1>", "Are you able to <1>"]),
    (r"^(?:is there|do you have|have you got) (.+)$", ["Would there be <1>", "Can I find <1> somewhere", "Does one have <1>", "Is <1> available", "Are we having <1>", "Do you offer <1>", "I am looking for <1>", "Is there such a thing as <1>", "Do you happen to have <1>"]),
    (r"^(?:where is|where are|where do i find) (.+)$", ["In what place is <1>", "I am looking for <1>", "I cannot find <1>", "Where would I find <1>", "Do you know where <1> is", "Can you tell me where <1> is", "At which place do I find <1>", "Where did they put <1>", "Point me to <1>"]),
    (r"^(?:does|can|will) (parley|this server|this program|this app|the server|it) (.+)$", ["Is <1> able to <2>", "Would <1> <2>", "I wonder if <1> can <2>", "Do you know if <1> can <2>", "Is it possible that <1> can <2>", "Could <1> <2>", "Might <1> <2>", "Tell me if <1> can <2>"]),
]
SYNONYMS = """picture image photo drawing|big large huge|bigger larger|small little tiny|fast quick|quit stop end close|begin start|folder directory|program app software application tool|computer machine PC laptop|show display|happy glad|tell say|explain describe|clever smart bright intelligent|chat conversation talk dialogue|chats conversations talks|movie film|clip video|answer reply response|answers replies responses|question query|wrong false incorrect|right correct true|good great fine|bad terrible awful|easy simple|hard difficult|delete remove erase|change alter modify switch|use employ utilize|need require|look glance|picture photograph|people persons folks|kind sort type|kinds sorts types|write compose|often frequently|maybe perhaps|buy purchase get|help assist support|want wish|today now|tired sleepy exhausted|sad unhappy down|angry cross mad|afraid scared|friend pal buddy|mother mom mum|father dad|child kid|children kids|house home flat|car vehicle auto|doctor physician|city town|story tale|poem verse rhyme|joke gag|name title|speak talk|understand get grasp|allowed permitted|possible feasible|store keep save|private confidential secret|settings options preferences|key shortcut|page site website|file document|files documents|model network checkpoint|load open run|upload send attach|price cost|weather forecast|color colour|favorite favourite|license licence|really truly actually|very quite so really|nice lovely pleasant|error mistake fault|slow sluggish|stop cancel interrupt|able capable|phone mobile smartphone|memory RAM|works functions runs|work function run|know say|type enter|tokens pieces|command line|terrible dreadful ghastly|lovely delightful|street road lane|shop store|rubbish trash garbage|meal dinner|broken busted|repair mend|locate find|throw toss chuck|tiny minute|strange odd weird peculiar|frightened scared|furious angry|anxious worried|alone lonely|exam test|boss manager chief|work job|money cash|trip journey|holiday vacation|present gift|noisy loud|quiet silent hushed|brainy clever|amusing funny comical|chilly cold freezing|boiling hot sweltering|boring dull tedious|ill sick poorly unwell|pretty lovely|hungry starving|weary tired drowsy|glad happy merry|gloomy sad glum|neighbour neighbor|kitten cat|puppy dog|rest break pause|guess suppose reckon|teacher tutor|tiring exhausting|afternoon evening|laptop notebook|telly TV television|folks people everyone|bright clever|gran grandma granny nan|gramps grandpa grandad|little tiny wee|fix repair mend|at once immediately straight away|bike bicycle|begin commence|shut close|talk natter chatter""".split("|")
SAME = {}
for row in SYNONYMS:
    for w in row.split():
        SAME.setdefault(w, [o for o in row.split() if o != w])
SHORT = [("do not", "don't"), ("cannot", "can't"), ("I am", "I'm"), ("is not", "isn't"), ("you are", "you're"), ("What is", "What's"), ("you", "u"), ("are", "r"), ("please", "plz"), ("because", "cause"), ("want to", "wanna"), ("going to", "gonna"), ("and", "&"), ("for", "4"), ("to", "too"), ("your", "ur"), ("the", "teh"), ("I have", "I've"), ("I would", "I'd"), ("it is", "it's"), ("does not", "doesn't")]
SMALL = set("the a an is are do does to of in on for my your it this please".split())


def indirect(r, q):
    """The question asked in a roundabout way, if it has one of the usual forms."""
    bare = q.rstrip("?.! ")
    for pattern, forms in INDIRECT:
        m = re.match(pattern, bare, re.I)
        if m:
            text = r.choice(forms)
            for i, part in enumerate(m.groups()):
                text = text.replace(f"<{i + 1}>", part)
            return text + r.choice(["?", "?", "", ".", "?"])
    return q


def slip(r, w):
    """A slip of the keyboard in a longer word."""
    if len(w) < 5 or not w.isalpha():
        return w
    i = r.randrange(1, len(w) - 1)
    x = r.random()
    return w[:i] + w[i + 1] + w[i] + w[i + 2 :] if x < 0.4 else w[:i] + w[i + 1 :] if x < 0.75 else w[:i] + w[i] + w[i:]


def reword(r, q, share=1.0):
    """The question in other words; words in <...> stay."""
    if "\n" in q or '"' in q:
        return q
    if r.random() < 0.3 * share:
        q = indirect(r, q)
    words = q.split(" ")
    if r.random() < 0.5 * share:
        words = [r.choice(SAME[w.lower().strip("?.!,")]) + w[len(w.rstrip("?.!,")) :] if w.lower().strip("?.!,") in SAME and r.random() < 0.3 else w for w in words]
    if r.random() < 0.08 * share and len(words) > 4:
        words = [w for w in words if w.lower() not in SMALL or r.random() < 0.6]
    if r.random() < 0.1 * share and not any("<" in w for w in words):
        i = r.randrange(len(words))
        words[i] = slip(r, words[i])
    q = " ".join(words)
    if r.random() < 0.12 * share:
        old, new = r.choice(SHORT)
        q = re.sub(rf"\b{old}\b", new, q, count=1)
    x = r.random()
    if len(words) > 2 and x < 0.14 * share:
        f = r.choice(BEFORE)
        q = f + (q[:1].lower() + q[1:] if f[-2:] == ", " and not q.startswith(("I ", "I'")) else q)
    elif len(words) > 2 and x < 0.24 * share:
        f = r.choice(AFTER)
        end = q[-1:] if q[-1:] in "?.!" else ""
        q = q + f if f[:1] == " " and f[1:2].isupper() and end else q.rstrip("?.!") + ("." if f[1:2].isupper() and not end else "") + f + (end if f[-1].isalpha() and not f[1:2].isupper() else "")
    return q


def alternatives(pattern):
    """How many texts a pattern stands for, roughly."""
    n = 1
    for part in re.findall(r"\{([^{}]*)\}", pattern):
        n *= part.count("|") + 1
    return n


def draw(r, patterns):
    """One of the patterns, richer ones more often; or, half of the time, one of a list of single wordings among them."""
    single = [p for p in patterns if isinstance(p, list)]
    rich = [p for p in patterns if not isinstance(p, list)]
    if single and (not rich or r.random() < 1 - 0.5 ** len(single)):
        return r.choice(r.choice(single))
    return r.choices(rich, [min(alternatives(p), 900) ** 0.5 for p in rich])[0]
