"""What words mean: what kind of thing they name, what a thing is for, words of like meaning, figures of speech.

A model that has met a word with its kin reads a sentence with it. Each function gives (question, reasoning, answer, must).
"""
import crowd
from phrases import spread
from words import an, cap

KIND = {"pet": "an animal", "food": "something to eat", "ill": "an illness or a complaint", "drug": "a medicine", "body": "a part of the body", "sport": "a sport", "skill": "something one can learn", "weather": "a kind of weather", "gadget": "a device", "past": "a person or a name from the past", "event": "something in history", "land": "a language", "crime": "something that harms people", "model": "a model that computers run", "code": "a language or tool for programmers", "law": "a matter of law", "garden": "something that grows in a garden", "longtext": "a kind of text", "feelbad": "a bad feeling", "feelgood": "a good feeling"}

# One row: words of like meaning, the plainest first.
LIKE = """tired weary drowsy beat|sad gloomy glum downcast sorrowful|happy merry jolly cheery|angry furious livid irate|afraid frightened fearful|cold chilly freezing nippy|hot boiling sweltering roasting|rain drizzle shower downpour|small wee minute petite|big enormous gigantic massive immense vast|quick speedy swift rapid brisk|slow unhurried leisurely|clever brainy sharp|stupid daft dim foolish|funny comical amusing hilarious|strange odd weird peculiar|rich wealthy well-off|poor needy penniless|beautiful gorgeous lovely handsome|ugly hideous unsightly
old elderly aged ancient|new fresh recent|empty bare hollow vacant|full packed crammed|quiet silent still hushed|loud noisy deafening|clean spotless tidy|dirty filthy grubby|wet damp soaked moist|dry parched arid|brave bold fearless daring|shy timid bashful|kind caring gentle|rude impolite cheeky|polite courteous|lazy idle|hungry starving peckish|thirsty parched|ill sick poorly unwell|healthy fit|dead deceased|alive living
walk stroll wander march|run dash sprint race|jump leap hop|look peek glance peer gaze|say utter mention|shout yell scream bellow|whisper mutter murmur|cry weep sob|laugh giggle chuckle|eat munch devour|drink sip gulp|sleep doze nap snooze|throw toss hurl fling|take grab snatch seize|give hand pass|break smash shatter snap|mend fix repair patch|make build craft|find discover locate spot|lose mislay misplace|hide conceal|show reveal display|begin start commence|end finish conclude|stop halt cease|go leave depart|come arrive|stay remain|wait linger|try attempt|help aid assist|ask inquire|answer reply respond|think ponder reflect|know realise|guess suppose reckon|want desire crave|need require|like enjoy|love adore cherish|hate loathe detest|choose pick select|keep retain|throw-away discard dump bin|send post mail ship|get receive obtain|buy purchase|sell flog|pay settle|steal nick pinch swipe|cheat trick swindle|fight brawl scuffle|win triumph|fail flunk flop|grow swell expand|shrink dwindle|cut slice chop|burn scorch singe|cook boil fry|clean wash scrub|write jot scribble|draw sketch doodle|read peruse|speak talk chat natter|tease mock|praise compliment|scold tell-off|complain moan grumble whinge|thank appreciate|greet welcome|worry fret|hurry rush hasten|relax unwind rest
house home dwelling|flat apartment|street road lane|shop store|car motor vehicle|lorry truck|bike cycle|coat jacket|trousers slacks|shoes footwear|bag sack|box crate carton|rubbish trash garbage litter|gift present|letter note|job work occupation|boss chief manager|worker employee|money cash|child kid youngster|baby infant|friend mate pal buddy chum|man bloke fellow chap|woman lady|doctor physician medic|teacher tutor|thief burglar robber|party celebration bash|trip journey tour outing|holiday vacation break|meal dinner supper|breakfast brekkie|sweets candy|mistake slip blunder error|problem trouble snag hitch|idea notion|answer solution|rule regulation|fear dread|joy delight|sorrow grief|anger rage fury|noise din racket|smell scent odour|picture image|story tale yarn|joke gag pun|song tune melody|film movie|test exam quiz|prize award|war conflict|peace calm|luck fortune|part piece bit|hole gap|top peak summit|edge border rim|rope cord string|stick rod pole|stone rock pebble|forest woods|sea ocean|stream brook creek|hill mound|field meadow|sky heavens|storm gale tempest|night-time night dark|morning dawn daybreak|evening dusk twilight"""
LIKE = [row.split() for row in LIKE.replace("\n", "|").split("|")]
LIKE = [[w.replace("-", " ") for w in row] for row in LIKE]

# thing: what it is for
FOR = """a kettle:boiling water|a hammer:driving nails|a saw:cutting wood|a needle:sewing|a comb:combing hair|a towel:drying yourself|an umbrella:keeping off the rain|a key:opening a lock|a candle:giving light|a lamp:giving light|a pen:writing|a rubber:rubbing out pencil|a ruler:measuring and drawing lines|a map:finding the way|a compass:showing where north is|a clock:showing the time|a bed:sleeping|a chair:sitting|a stove:cooking|an oven:baking|a fridge:keeping food cold|a freezer:keeping food frozen|a broom:sweeping the floor|a mop:wiping the floor|a bucket:carrying water|a spoon:eating soup|a fork:eating|a knife:cutting|a plate:putting food on|a cup:drinking|a bottle:keeping drinks|a basket:carrying things|a ladder:climbing up|a rope:tying things|a tent:sleeping outdoors|a boat:travelling on water|a plane:flying|a train:travelling on rails|a bridge:crossing a river|a door:going in and out|a window:letting in light|a curtain:keeping out light|a pillow:resting your head|a blanket:keeping warm|a coat:keeping warm|gloves:keeping your hands warm|a scarf:keeping your neck warm|a hat:covering your head|boots:walking in wet places|glasses:seeing better|a mirror:seeing yourself|a camera:taking photos|a phone:talking to people far away|a radio:listening to programmes|a bell:making a sound|a whistle:making a loud sound|a drum:making music|a piano:making music|a book:reading|a library:borrowing books|a school:learning|a hospital:healing the sick|a bakery:selling bread|a pharmacy:selling medicine|a bank:keeping money|a post office:sending letters|a stamp:sending a letter|a wallet:carrying money|a purse:carrying money|an alarm clock:waking you up|a calendar:seeing the days|a thermometer:measuring how warm it is|a scale:weighing|a pump:moving water or air|a shovel:digging|a rake:raking leaves|a wheelbarrow:carrying earth|a hose:watering plants|scissors:cutting paper|glue:sticking things together|soap:washing|a toothbrush:cleaning teeth|shampoo:washing hair|a bandage:covering a wound|a crane:lifting heavy things|a lighthouse:guiding ships|an anchor:holding a ship|a sail:catching the wind|a net:catching fish|a cage:keeping an animal|a saddle:riding a horse|a helmet:protecting the head|a belt:holding up trousers|a button:closing a shirt|a zip:closing a jacket|an iron:smoothing clothes|a washing machine:washing clothes|a toaster:toasting bread|a corkscrew:opening wine|a tin opener:opening tins|a match:making fire|a fireplace:warming a room|a lawnmower:cutting grass|a microphone:picking up sound|a keyboard:typing|a mouse of a computer:pointing on the screen|a printer:printing on paper|a screen:showing pictures|a ticket:travelling or getting in|a passport:crossing borders|a suitcase:packing clothes"""
FOR = [x.split(":") for x in FOR.split("|")]

# figure of speech: what it means
SAYING = """hit the sack:go to bed|hit the hay:go to bed|call it a day:stop working for today|turn in:go to bed|under the weather:a bit ill|over the moon:very happy|on cloud nine:very happy|down in the dumps:sad|feeling blue:sad|fed up:annoyed and tired of something|at the end of my rope:without strength or patience|a piece of cake:very easy|a breeze:very easy|cost an arm and a leg:be very expensive|cheap as chips:very cheap|break a leg:good luck|fingers crossed:hoping for luck|beat around the bush:not come to the point|get to the point:say what matters|spill the beans:tell a secret|let the cat out of the bag:tell a secret|keep mum:say nothing|pull somebody's leg:tease somebody|kid somebody:tease somebody|have a blast:have great fun|kill time:do something while waiting|hang on:wait a moment|hold your horses:wait, be patient|hit the road:leave|make tracks:leave|skedaddle:leave quickly|drop in:visit without a plan|catch up:talk about what is new|keep in touch:write or call now and then|get the sack:lose one's job|get the boot:lose one's job|be laid off:lose one's job|be skint:have no money|be broke:have no money|be loaded:have much money|tighten the belt:spend less|ring a bell:sound familiar|slip my mind:be forgotten|learn by heart:learn so that one knows every word|pass with flying colours:pass very well|flunk:fail an exam|ace it:do it very well|screw up:make a mistake|mess up:make a mistake|drop a clanger:make an awkward mistake|go bananas:get very excited or angry|see red:get very angry|lose it:get very angry|have butterflies:be nervous|get cold feet:become afraid at the last moment|bite the bullet:do the unpleasant thing|face the music:accept what comes|pull yourself together:calm down|chill out:relax|take it easy:relax|put your feet up:rest|be knackered:be very tired|be dead on my feet:be very tired|sleep like a log:sleep deeply|not sleep a wink:not sleep at all|rise and shine:get up|be peckish:be a little hungry|be parched:be very thirsty|pig out:eat too much|have a sweet tooth:like sweet things|be all ears:listen carefully|talk nineteen to the dozen:talk very much|shut up:stop talking|pipe down:be quieter|speak up:talk louder|all Greek to me:not to be understood|lost for words:unable to say anything|in a nutshell:in few words|for the birds:worthless|a load of rubbish:nonsense|poppycock:nonsense|a white lie:a small harmless lie|have a bone to pick:have something to complain about|bury the hatchet:make peace|fall out with somebody:quarrel with somebody|make up with somebody:become friends again|split up:end a love|tie the knot:marry|pop the question:ask somebody to marry|be expecting:be going to have a baby|pass away:die|kick the bucket:die|be on the mend:get better|be back on one's feet:be well again|it's pouring:it rains hard|raining cats and dogs:raining hard|it's baking:it is very hot|it's nippy:it is cold|once in a blue moon:very seldom|in a jiffy:very soon|at the drop of a hat:at once|donkey's years:a very long time|the crack of dawn:very early in the morning|burn the midnight oil:work late at night|jack of all trades:somebody who can do many things|a couch potato:somebody who sits and watches TV|a night owl:somebody who stays up late|an early bird:somebody who gets up early|a bookworm:somebody who reads a lot|a wet blanket:somebody who spoils the fun|the black sheep:the odd one of a family|a rip-off:something far too expensive|up in the air:not decided|on the fence:undecided|a long shot:something unlikely|touch wood:may the luck hold|bits and bobs:small things|the whole shebang:everything"""
SAYING = [x.split(":") for x in SAYING.split("|")]


def kind(r):
    k = r.choice(list(KIND))
    w = r.choice([w for w in crowd.LEXICON[k] if "<" not in w])
    if r.random() < 0.6:
        said = r.choice([w, f"'{w}'", f'"{w}"'])
        q = spread(r, r.choice([f"{{What kind of thing is|What sort of thing is|What does one call|In general, what is|Broadly, what is}} {said}?", f"{said}: {{what kind of thing is that|what sort of word is that|which kind of thing}}?"]))
        return q, f"{cap(w)}: {KIND[k]}.", f"{cap(w)}: that is {KIND[k]}.", [KIND[k]]
    o = r.choice(list(KIND)) if r.random() < 0.5 else k
    q = spread(r, f"{{Is {w} {KIND[o]}|Would you say that {w} is {KIND[o]}|{w}: is that {KIND[o]}}}?")
    return q[:1].upper() + q[1:], f"{cap(w)}: {KIND[k]}.", f"{'Yes' if o == k else 'No'}, that is {KIND[k]}.", ["Yes" if o == k else "No"]


def like(r):
    row = r.choice(LIKE)
    a, b = r.sample(row, 2)
    q = spread(r, r.choice([f"{{Another word for|A synonym of|What's another word for|Give me another word for|A different word for|How else can I say|What means the same as|a word like}} {{{a}|'{a}'|\"{a}\"}}?", f"{{What does|what would}} {{'{a}'|{a}|\"{a}\"}} mean?", f"{{Do|does}} {{{a} and {b}|'{a}' and '{b}'}} say the same?"]))
    if " mean" in q:
        b = row[0] if a != row[0] else row[1]
        ans = f"\"{cap(a)}\" means much the same as \"{b}\"."
    elif q.endswith("say the same?"):
        ans = f"Yes, \"{a}\" and \"{b}\" mean much the same."
    else:
        ans = f"Another word for \"{a}\" is \"{b}\"."
    return (cap(q) if r.random() < 0.7 else q), f"{a}: {', '.join(row)}.", ans, [b]


def purpose(r):
    t, use = r.choice(FOR)
    many = not t.startswith(("a ", "an ")) and t not in ("glue", "soap", "shampoo")
    be = "are" if many else "is"
    bare = t.split(" ", 1)[1] if t.startswith(("a ", "an ")) else t
    q = spread(r, f"{{What {be} {t} for|what do people do with {t}|What {be} {t} good for|Why would I need {t}|what do you use {t} for|What's the use of {t}|purpose of {t}|{bare}: what is that for|What {be} {t}}}?")
    return (cap(q) if r.random() < 0.7 else q), f"{cap(bare)}: {use}.", f"{cap(t)} {be} for {use}.", [use]


def saying(r):
    s, m = r.choice(SAYING)
    q = spread(r, f"{{What does '{s}' mean|what's meant by \"{s}\"|What is the meaning of '{s}'|they said \"{s}\", meaning what|explain the saying '{s}'|somebody told me '{s}', what is that|In plain words: {s}|the phrase '{s}', what does it say}}?")
    return (cap(q) if r.random() < 0.7 else q), f"A figure of speech: {m}.", f"\"{cap(s)}\" means: {m}.", [m]


WEIGHTS = {kind: 3, like: 3, purpose: 3, saying: 3}


def meaning(r):
    return r.choices(list(WEIGHTS), list(WEIGHTS.values()))[0](r)
