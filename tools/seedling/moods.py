"""Small talk put together from parts: subjects, predicates, times, reasons, names; only one part decides what kind of answer fits.

LEX are the parts, by name; a pattern holds {a|b} (phrases.spread) and <part>. The answers are those of parlour.py and everyday.py, found by their beginning.
mood(r) gives (question, reasoning, answer, must), as newcomer.py has them.
"""
import re

import everyday
import parlour
from phrases import spread
from skills import pseudo
from words import CITIES, LEGS, NAMES, SIDES, an, cap

_found = [a for text in (parlour.FEELINGS, parlour.TALK, everyday.TALK) for _, a in parlour.groups(text)]


def A(start):
    """The answers of the group whose first answer starts so."""
    return next(a for a in _found if a[0].startswith(start))


GLAD = ["That is good to hear! I am happy for you.", "How nice! I am happy for you."]
CONGRATS, FAMILY, RELIEF, WORKED, FUN = A("That is good to hear, cong"), A("That is good to hear! I am happy for all"), A("That is good to hear! What a relief"), A("That is good to hear, well done"), A("How nice! I am happy for you. I hope")
SORRY, PITY, MISHAP, ILL = A("I am sorry to hear that. If you like"), A("I am sorry, that is a pity"), A("I am sorry, what a pity"), A("I am sorry to hear that. I hope that the days")
PET, LOSS, HEART, THEFT, STRIFE = A("I am so sorry about that"), A("I am sorry for your loss"), A("I am sorry to hear that. A broken"), A("I am sorry to hear that. It is good"), A("I am sorry that there is strife")
NERVOUS, PLAY, KIND, BAD = A("I am sorry that you are worried"), A("Gladly! I can tell"), A("Thank you, that is kind"), A("I am sorry. I am a very small model")
HELLO, BYE, WELCOME, FAULT, UNCLEAR, HERE = A("Hello!"), A("Goodbye!"), A("You are welcome!"), A("No problem!"), A("I will try to say"), A("Yes, I am here")
HUMAN, AGE, NONE, TASTE, CAN, TRUST, TONGUE = A("No, I am Seedling, a small computer"), A("I am a program and live"), A("I am a program, so I have none"), A("I have no taste"), A("I describe drawn"), A("I am very small and often"), A("I only speak English")
OTHER, TRAINED, SMALL, MEET, WHO, NAMELESS, BOOST, REST = A("No, I am Seedling, the small model"), A("I was trained for Parley"), A("I am small, about"), A("Nice to meet you"), A("I am Seedling, the small model"), A("You have not told"), A("You can do it"), A("Then take a little break")
FORGET = ["I cannot know that: I only see what you write in this chat. Tell me about it if you like."]

LEX = {
    # ---- people
    "her": "sister|mother|mum|aunt|grandma|granny|daughter|wife|niece|girlfriend|godmother|stepmother|stepdaughter|granddaughter|sister-in-law|big sister|little sister|goddaughter|mother-in-law|fiancée",
    "him": "brother|father|dad|uncle|grandpa|grandad|son|husband|nephew|boyfriend|godfather|stepfather|stepson|grandson|brother-in-law|big brother|little brother|godson|father-in-law|fiancé",
    "role": "neighbour|boss|colleague|teacher|best friend|friend|cousin|flatmate|classmate|coach|student|old school friend|roommate|landlady|pupil|apprentice|trainee|partner|doctor|mate",
    "rel": "<her>|<him>|<role>",
    "ours": "grandma|grandpa|daughter|son|mum|dad|aunt|uncle|niece|nephew|neighbour|teacher|coach|cousin|grandson|granddaughter|oldest|youngest|trainee|landlady|eldest",
    "who": "my <rel>|my <rel>|my <rel>|our <ours>|my <her>'s <rel>|my <him>'s <rel>|<m>|<m>|my <her> <f>|my <him> <b>|our <m>|<m> from {next door|work|school|the choir|downstairs|across the road}",
    "own": "my|my|my|our|our|the|the|this|my <rel>'s|my <rel>'s|our <ours>'s|<m>'s|grandma's|dad's|mum's|the kids'|my <her> <f>'s|my <him> <b>'s",
    # ---- what goes well or badly
    "event": "school play|exam|interview|concert|presentation|audition|driving test|party|wedding|first day|date|match|job talk|recital|premiere|rehearsal|speech|lecture|talk|reading|exhibition|opening|launch|fair|bake sale|garden party|street party|barbecue|picnic|reunion|class trip|excursion|hike|bike tour|camping weekend|holiday|honeymoon|trip|cruise|flight|journey|city break|tournament|race|marathon|swimming meet|chess game|dance show|ballet|musical|puppet show|magic show|talent show|quiz night|karaoke evening|book club|family dinner|Sunday lunch|dinner party|birthday|birthday party|christening|anniversary|graduation|prom|carnival|festival|parade|charity run|fundraiser|flea market|yard sale|auction|demonstration lesson|trial lesson|oral exam|maths test|spelling test|entrance exam|final exam|certificate course|language course|swimming lesson|riding lesson|first lesson|shift|night shift|trial day|inspection|audit|meeting|negotiation|pitch|conference|workshop|seminar|webinar|video call|parents' evening|town hall meeting|choir evening|organ concert|open mic night|stand-up gig|gig|tour|debate|court hearing|photo shoot|film night|game night|sleepover|treasure hunt|egg hunt|campfire|sauna evening|wine tasting|cooking class|pottery class|first aid course|moving day|harvest|ski trip|sailing trip|fishing trip|safari|visit|surprise visit|proposal|surprise party|blind date|second date|first performance|solo|final|semi-final|derby|home game|penalty shoot-out|ceremony|award show|science fair|hackathon|product launch|experiment|demo|maiden voyage",
    "went_well": "was a triumph|went splendidly|was a {huge|great|total|full|real|roaring} success|went {really|very|so|surprisingly} well|went like clockwork|went off without a hitch|could not have gone better|couldn't have been better|exceeded all hopes|was {lovely|wonderful|brilliant|a dream|magical|a joy|marvellous|great fun|unforgettable|perfect|superb|sensational|delightful|a delight|fantastic|glorious|a blast|the best ever|better than I had dared to hope|a hit|a knockout}|turned out {great|wonderful|perfect|fine after all}|brought the house down|was a walk in the park|didn't go wrong at all|did not fail this time|wasn't a flop after all|was not half as bad as we feared|had everybody cheering|made everyone happy|made us all smile|ended with a standing ovation|ended in cheers|ended happily|was sold out and everyone loved it|got so much applause|got rave reviews|paid off|worked out beautifully|went according to plan|ran smoothly|went swimmingly|exceeded expectations",
    "went_bad": "was a disaster|was a {total|complete|real|sad|bitter} {flop|failure|let-down|fiasco|mess|washout|shambles|disappointment}|went {terribly|badly|horribly|really badly|all wrong|awfully|completely wrong}|went wrong|went down the drain|went to pieces|got cancelled|was cancelled|was called off|is cancelled|has been called off|fell through|fell flat|was rained off|didn't work out|did not work out at all|didn't go well|did not go well at all|was {awful|horrible|dreadful|a nightmare|a catastrophe|ruined|a debacle|painful|embarrassing|miserable|hopeless|not good at all}|ended in {tears|chaos|a row|a storm|an argument}|could not have gone worse|couldn't have been worse|turned into a nightmare|won't happen after all|isn't going to happen|never took place|was postponed again|was spoilt by {the rain|a quarrel|the noise}|was broken off|collapsed halfway|was a waste of time and nerves|left us all in tears|went pear-shaped|went belly up|bombed|flopped|let everyone down",
    "plan": "house move|mortgage|visa|holiday plan|adoption|application|deal|manuscript|book contract|loan|grant|flat viewing|house sale|house purchase|transfer|scholarship|exchange year|internship|apprenticeship|study place|nursery place|school place|building permit|patent|business plan|start-up|side project|proposal|offer|complaint|appeal|refund|insurance claim|pension claim|citizenship|work permit|residence permit|family reunion|dream trip|world trip|summer job|new job|promotion|transfer to <c>|move to <c>|job in <c>|place at university|club merger|garden plot|allotment|shop lease|bank loan|tax refund|thesis topic|record deal|film project|charity project|school project|fishing licence|pilot's licence|driving licence|seat on the council",
    "plan_good": "went through|has gone through|was approved|got approved|got accepted|was accepted|is settled|is signed and sealed|is finally happening|came through|worked out|has worked out at last|was granted|is in the bag|got the green light|is a done deal|has been confirmed|wasn't rejected after all|didn't fall through|is on track again|was saved at the last minute|got a yes",
    "plan_bad": "fell through|has fallen through|was turned down|got turned down|was rejected|got rejected|was refused|is off|came to nothing|has come to nothing|went nowhere|was denied|got a no|is dead in the water|was shelved|got scrapped|was withdrawn|didn't come through|did not make it|wasn't approved|was not accepted|burst like a bubble|has been put on ice|went up in smoke",
    "med": "scan|blood test|biopsy|check-up|x-ray|operation|surgery|ultrasound|screening|MRI|heart scan|lung scan|brain scan|mammogram|eye operation|knee operation|hip operation|heart operation|treatment|chemo|therapy|lab report|test result|hospital visit|dentist appointment|root canal|eye test|hearing test|skin check|allergy test|blood pressure check|follow-up|transplant|bypass|cataract surgery|back surgery|physio|rehab|cure",
    "med_good": "went well|went {really|very|so} well|was a success|came back clean|came back clear|was all clear|came back fine|showed nothing bad|found nothing|didn't find anything bad|was without findings|is over and all is well|turned out fine|turned out harmless|was nothing serious|worked|has worked|helped|was less bad than feared|brought good news|went without complications|was good in the end|says all is fine|is behind us and everything is fine",
    "med_bad": "went badly|went wrong|didn't go well|did not go well|came back bad|found something|showed a shadow|showed a tumour|isn't good|was not good|didn't help|has not helped|isn't working|failed|has failed|brought bad news|wasn't what we hoped for|did not look good|had complications|has to be repeated|was a shock|must be done all over again",
    "part": "knee|back|head|tooth|shoulder|foot|ankle|wrist|hip|neck|elbow|stomach|throat|ear|eye|thumb|toe|finger|hand|leg|arm|jaw|heel|calf|chest muscle|tummy|spine|scar|sprained ankle|wisdom tooth|big toe|broken arm",
    "part_good": "doesn't hurt any more|no longer hurts|doesn't hurt any longer|stopped hurting|has stopped aching|is healing nicely|has healed|is out of plaster|is as good as new|is much better|feels fine again|is fine again|is back to normal|is not swollen any more|has no pain left|finally works again|is well again",
    "part_bad": "hurts|hurts so much|hurts like hell|aches|aches terribly|is killing me|is swollen|is broken|is sprained|throbs|is throbbing all night|won't stop hurting|is in plaster|hurts again|is getting worse|is sore|gives me no rest|is inflamed|keeps aching|has been hurting for days",
    "thing": "bike|phone|car|laptop|tablet|camera|guitar|violin|watch|ring|wallet|purse|suitcase|backpack|umbrella|glasses case|tent|scooter|motorbike|van|caravan|boat|canoe|kayak|skateboard|sledge|drone|headset|keyboard|printer|washing machine|fridge|oven|dishwasher|toaster|kettle|coffee machine|heater|boiler|lawn mower|drill|sewing machine|television|radio|record player|lamp|clock|sofa|bed|wardrobe|bookcase|desk|chair|piano|trumpet|cello|drum kit|flute|hearing aid|wheelchair|walking stick|pram|doll|teddy|kite|train set|necklace|bracelet|earring|passport|key ring|diary|photo album|sunhat|winter coat|leather jacket|wedding dress|suit|scarf|handbag|school bag|lunch box|water bottle|fishing rod|tennis racket|football|surfboard|helmet|telescope|microscope|typewriter|hard disk|memory stick|game console|router|garden gate|fence|shed|greenhouse|roof|chimney|kitchen window|front door|bathtub|shower|parcel",
    "thing_good": "is fixed|is fixed at last|works again|is back|turned up again|was found|has been found|arrived|has finally arrived|is as good as new|runs again|is repaired|was mended for free|isn't broken after all|wasn't stolen after all|survived the fall|came back from the repair shop|is finished and looks great|wasn't lost after all|fits perfectly",
    "thing_bad": "is broken|broke|broke in two|broke down|gave up the ghost|died on me|is gone|got lost|got scratched|was damaged|got damaged in the post|fell into the {lake|river|toilet|canal|soup}|fell off the {table|balcony|wall|shelf}|has a crack|is cracked|won't work any more|doesn't work any more|is beyond repair|is ruined|is ripped|went missing|never arrived|isn't coming back|was left on the train|fell apart|leaks|rusted away|fell to bits|got soaked in the rain|broke the day after the warranty ended|is kaput|had to be thrown away|can't be repaired",
    "stolen": "was stolen|got stolen|has been stolen|was nicked|was pinched|was taken from {the cellar|the yard|my locker|the car|outside the shop|the garage}|got nicked {at the station|outside work|in the market}|was vandalised",
    "team": "team|choir|school|club|band|village|class|volleyball team|football team|hockey team|handball team|rowing crew|chess club|quiz team|dance group|orchestra|relay team|debating team|football club|town|country|side|women's team|youth team|robot team|fire brigade team|cricket side|cheerleading squad|brass band|theatre group",
    "won": "won|won the {cup|match|final|prize|league|derby|trophy|title|tournament|gold medal}|came first|came second of forty|took gold|got promoted|is through to the {final|next round|semi-final}|beat the champions|beat everybody|didn't lose a single match|is top of the table|made it to the {nationals|final|regionals}|won three nil|turned the match around|broke the record|didn't lose this time|scored in the last second",
    "lost": "lost|lost again|lost the {cup|match|final|league|derby|tournament|title}|came last|got relegated|is out of the {cup|tournament|running}|was knocked out|lost six nil|lost by one point|didn't win a single match|didn't make it to the {nationals|final|regionals}|missed the final by a hair|broke up|lost on penalties|was disqualified|got thrashed|was beaten badly|has to fold",
    "craft": "cake|bread|sourdough|soufflé|pie|jam|birthday cake|quilt|sweater|knitted scarf|painting|sculpture|vase|model ship|birdhouse|treehouse|wooden table|garden|vegetable patch|tomato plant|rose bush|orchid|lawn|sunflower|pumpkin|apple tree|new recipe|roast|pizza dough|paella|homemade pasta|website|app|novel|short story|song|poem|blog|film|photo book|costume|summer dress|paper kite|snowman|sandcastle|puzzle|mosaic|clay pot|candle|soap|homemade beer|honey|bouquet",
    "craft_good": "turned out {great|perfect|beautiful|wonderful|just right}|came out {well|perfect|lovely}|is a success|won {first|second} prize|is finished|is done at last|looks {gorgeous|splendid|wonderful}|is everyone's favourite|got lots of praise|impressed everybody|is the best I ever made|didn't go wrong this time|is my masterpiece|made <who> very happy|is a real beauty",
    "craft_bad": "is ruined|was a failure|turned out {awful|terrible|a mess}|fell apart|collapsed|went wrong again|is a complete mess|didn't turn out|was a flop|got destroyed|is spoilt|went in the bin|ended up in the bin|didn't survive|was wrecked by {the storm|the dog|the kids|hail}|looks dreadful",
    "pet": "dog|cat|hamster|rabbit|parrot|pony|goldfish|tortoise|budgie|guinea pig|puppy|kitten|canary|horse|mouse|terrier|poodle|labrador|tabby|ferret|hen|goat|donkey|lamb|gecko|duck|beagle|collie|dachshund|mare|foal|tomcat|cockatoo|chinchilla",
    "pet_good": "is back|is home again|came back|is well again|got better|got the all-clear from the vet|pulled through|survived the operation|is eating again|walks again|learnt a new trick|had {three|four|five|six} healthy {babies|little ones}|won a prize|wasn't run over after all|isn't ill after all|recovered|is on the mend|trusts me now|is no longer limping",
    "pet_bad": "died|has died|passed away|was run over|got run over|didn't make it|did not wake up|had to be put down|is dead|is dying|ran away|has run away|is missing|never came home|disappeared|won't live much longer|was killed by a {car|fox|dog}|is gone for good",
    "did_well": "got the job|got accepted|got in|passed with top marks|passed the {exam|test|bar exam|driving test|finals}|is out of hospital|is home from hospital|won {a prize|the race|a medal|the lottery|the election}|got engaged|got married|is getting married|got promoted|found {a flat|a job|a friend|true love|his feet again|a good place}|is well again|is healthy again|is out of danger|woke up from the coma|can walk again|is cancer free|is expecting a child|had a baby|had twins|said yes|is coming {home|to visit|back}|is back from {<c>|the war|abroad|sea|the mission}|got a place at university|graduated|graduated with honours|learnt to {swim|read|walk|ride a bike|talk}|made the team|quit smoking|is sober for a year|didn't fail|didn't fail the exam|didn't lose the job after all|forgave me|apologised to me|surprised me with {flowers|breakfast|a trip|a visit}|took first steps|turned {eighty|ninety|a hundred|seventy-five}|published a book|opened a {shop|café|bakery|practice}|scored the winning goal|got a standing ovation|was chosen for the {national team|lead role|choir|exchange}|won a scholarship|called after all these years",
    "did_bad": "lost the job|got fired|was laid off|failed|failed the {exam|test|driving test|finals}|didn't get the job|did not get in|was rejected|got rejected everywhere|didn't make the team|is in hospital|had {an accident|a stroke|a heart attack|a bad fall|a breakdown}|fell down the stairs|broke {a leg|an arm|a hip}|is very ill|is seriously ill|is getting worse|has cancer|is in a coma|is in intensive care|was attacked|got mugged|is in trouble|was arrested|is in prison|crashed the car|is drinking again|lost {everything|the house|the baby}|was bullied|is moving far away|has gone bankrupt|dropped out|dropped out of school|can't walk any more|doesn't recognise me any more|isn't getting better|has depression|is going blind|was expelled|got scammed|is homeless|had to sell the {house|farm|shop}|won't get well again|didn't turn up to my party",
    "ill_bad": "is in hospital|had {a stroke|a heart attack|a bad fall|a relapse}|is very ill|is seriously ill|is getting worse|has cancer|is in a coma|is in intensive care|isn't getting better|won't get well again|needs {an operation|surgery|chemo|dialysis}|was taken away by ambulance|has a high fever|is slowly forgetting us all|can't get out of bed",
    "died": "died|has died|passed away|is dead|didn't survive the {accident|operation|night|stroke}|is no longer with us|was buried|drowned|fell asleep for ever|lost the fight against cancer",
    "left_me": "left me|broke up with me|dumped me|cheated on me|wants a divorce|walked out on me|doesn't love me any more|has somebody else|ended it|moved out|called off the wedding|is seeing someone else|said it is over|doesn't want me any longer",
    "lover": "husband|wife|boyfriend|girlfriend|fiancé|fiancée|partner|great love|ex",
    "hurtme": "shouted at me|yelled at me|laughed at me|ignored me|lied to me|insulted me|was mean to me|won't talk to me|hasn't spoken to me for weeks|slammed the door on me|forgot my birthday|let me down|stood me up|is angry with me|blames me for everything|stabbed me in the back|doesn't trust me|makes fun of me|told my secret to everyone|never listens to me",
    "lovedme": "hugged me|thanked me|praised me|said sorry to me|helped me all day|gave me flowers|wrote me a lovely letter|sang for me|baked me a cake|stood up for me|forgave me|invited me|remembered my birthday|made me laugh|told me I am {great|loved|a good friend|doing well}|surprised me|believed in me|was so kind to me|gave me a second chance|made up with me",
    "time": "today|yesterday|this morning|last night|this afternoon|on Monday|on Tuesday|on Wednesday|on Thursday|on Friday|on Saturday|at the weekend|an hour ago|just now|two days ago|a week ago|last week|this week|in the end|this evening|right before {lunch|Christmas|the holidays|my birthday}|",
    "yay": "!|!!|!!!|, hooray!|, yay|, I could {sing|dance|jump|cry for joy|hug everyone}!|, what a day!|. I am over the moon|. I can't stop smiling|, finally|. So happy|. So proud!|. I still can't believe it|, isn't that great?|. Best news in {weeks|months|years}| :)|.||||",
    "aww": ".|.|...| :(|, sadly|, unfortunately|. I could cry|. I'm so {sad|down|upset|disappointed|tired of it}|. I can't believe it|, what a pity|. So sad|. And I had {hoped so much|wished for it so much}|. I feel awful|, and now I sit here|. Why us|, sigh||||||",
    "o_yay": "guess what, |hooray, |hurray: |great news: |good news! |you won't believe it: |finally: |at last, |yes! |wow, |yay, |happy to report: |I have to tell somebody: |so happy: ||||||||||",
    "o_aww": "sadly |ugh, |sigh, |bad news: |oh dear, |oh no, |unfortunately |I'm afraid |damn, |it's so sad: |I have to tell somebody: |well, |alas, |||||||||||",
    # ---- first person
    "i_good": "got the {job|part|flat|keys to our house|last ticket|scholarship|promotion|all-clear}|passed {everything|my exam|my driving test|the course|my finals|with a B}|won {a raffle|a voucher|the race|a bet|my first match|two tickets|the pub quiz}|finished {my thesis|the marathon|my book|the quilt|all my homework|the house|my training|the jigsaw}|made {a new friend|my first sale|peace with <who>|the team|it to the top|my own bread}|found {my ring|a new flat|my old diary|an old friend|a good doctor|the love of my life|twenty euros in my coat}|learnt {to swim|to dance|to drive|my first song|to cook|to skate} at last|paid off {my debts|the car|the loan}|ran {ten kilometres|my first mile|a half marathon} without stopping|fixed the {sink|bike|roof|radio|heating} all by myself|didn't fail|did not lose it after all|didn't have to have the operation|wasn't late for once|slept {ten hours|like a baby|through the night for the first time}|got {a raise|a hug from <who>|straight As|a medal|engaged|married|a puppy|a letter from <who>|top marks|a yes|flowers from <who>|my results and all is fine}|held my grandchild for the first time|saw <who> again after {ten|twenty|thirty} years|am going to be {a dad|a mum|an aunt|a grandma|an uncle|a grandpa}|am {free of pain|debt free|out of hospital|over my cold|well again|cured|back home at last|so in love|on cloud nine|in the best of moods}|beat <who> at {chess|tennis|cards|darts|table tennis}|quit smoking|have been sober for {a year|six months|a hundred days}|lost {five|ten|twelve} kilos|caught a {huge trout|big pike|perfect wave}|sold my first {painting|song|story|pot}|overcame my fear of {dogs|heights|flying|spiders|water}",
    "i_bad": "failed {everything|my exam|my driving test|the course|again|in front of everyone}|lost {my job|my ring|my wallet|the match|my best friend|all my photos|my keys|a lot of money|the bet}|broke {my arm|my leg|my favourite cup|a tooth|grandma's vase}|missed {the train|my flight|the deadline|the last bus|my chance|my sister's wedding}|didn't get {the job|the flat|the part|a place|an answer|a single vote|invited|the loan}|did not {pass|win|make it|get in|get to say goodbye}|got {fired|a bad mark|a parking ticket|soaked|lost in town|food poisoning|a rejection letter|scammed|bullied|stood up|yelled at by <who>}|crashed {my bike|the car|into a lamp post}|had {an accident|a terrible night|a fight with <who>|a panic attack|the worst day|to give my <pet> away|to sell my {car|guitar|house}}|can't {sleep|stop crying|find work|walk properly|pay the rent|forget it}|couldn't {say goodbye|help <who>|finish the race|find the words|save it}|burnt {the dinner|my hand|the cake}|spilled {coffee|wine|ink} over {my laptop|the new sofa|my homework|the tablecloth}|am {in so much pain|ill again|stuck in bed|at my wits' end|out of work|homesick|heartbroken|behind with everything|so ashamed}|came last|fell {off my bike|down the stairs|on the ice|off the ladder}|let <who> down|forgot {my lines|<who>'s birthday|the words of my song|my own anniversary}|slept {two hours|badly|not at all}|hurt {my back|<who>'s feelings}|was {laughed at|left out|robbed|cheated|passed over again|told off}",
    "nomore": "pain|crutches|night shifts|debts|chemo|homework|exams|hospital|fever|injections|headaches|plaster casts|insulin|overtime|alarm clocks|commuting|braces|bandages|toothache|quarrels|nightmares|school until September|lawyers|waiting rooms|cough|needles|stitches|tablets|worries about money|sleepless nights|bullies|tests this year|oxygen masks|stress at work|rent arrears",
    "missing": "money|hope|friends|visitors|energy|sleep|hugs|phone calls from the kids|work|joy|strength|laughter in this house|appetite|luck|holidays for us this year|Sunday dinners with <who>|letters from <who>|dancing for me|football for me|music in my life|future for our shop|good news",
    # ---- goodbyes
    "bye": "bye|goodbye|see you|see you later|see you tomorrow|so long|farewell|take care|cheerio|good night|ciao|ta-ta|bye bye|later|until next time|cya|catch you later|I'm off|I'm out|gotta go|must dash|talk soon|toodle-oo|have a good one|till {tomorrow|Monday|next week}",
    "chore": "feed the {cat|dog|hens|baby|fish|horses}|walk the dog|cook {dinner|lunch|for six}|catch {my train|the bus|my flight|the last tram}|pick up {the kids|my <rel>|a parcel|my suit}|go to {work|school|bed|practice|church|the gym|the dentist|choir|the market|my shift|a meeting|class}|do {my homework|the dishes|the laundry|the shopping|my taxes|the ironing}|water the {plants|garden|tomatoes}|mow the lawn|milk the {cows|goats}|take the {cake|bread|pizza} out of the oven|bath the baby|put the kids to bed|get {some sleep|up early|dressed|ready for the party|going}|meet <who>|call <who>|help <who> with the {shopping|move|homework|garden}|open the shop|close up the office|hang out the washing|clean the {kitchen|stairs|windows|car}|iron my shirt|practise the {piano|violin|flute}|pack my {suitcase|bag|rucksack}|light the fire|set the table|chop some wood|return my library books|study|drive home|prepare my lesson|fix my bike|shovel snow|sweep the yard",
    "caller": "<who> is {waiting|calling|at the door|hungry|here|outside in the car}|dinner is {ready|on the table|getting cold}|the {bus|train|tram|taxi|ferry} is {here|coming|leaving}|my {break|lunch hour|free hour|lesson|shift} is {over|up}|my {shift|class|lesson|meeting|film|show|favourite programme} {starts|begins} in {five|ten|two} minutes|my {train|bus|boat} leaves {soon|in five minutes|now}|my battery is {dying|at two percent|nearly empty}|the {baby|toddler|dog} just woke up|the {doorbell|phone} is ringing|the {potatoes|eggs|noodles} are boiling over|it's {late|past midnight|bedtime|getting dark|time for tea} here|the library closes now|my eyes are falling shut|the guests have come|my boss is coming|the match is starting|we are landing|they want the computer back|the sun is out and so am I",
    # ---- greetings
    "hi": "hello|hi|hey|good morning|good evening|good afternoon|hello there|hi there|hey there|greetings|howdy|hiya|good day|morning|evening|moin|hallo|hello again|a warm hello|a quick hello|a friendly hello|many greetings|cheers",
    "sky": "sunny|rainy|windy|foggy|snowy|cold|hot|grey|stormy|frosty|warm|misty|drizzly|bright|sleepy|quiet|busy|dark|beautiful|muddy|noisy",
    "spot": "<c>|<c>|<c>|the {balcony|kitchen|garden|attic|office|bus|train|tram|library|sofa|beach|harbour|mountains|farm|workshop|allotment|waiting room|hospital|boat|campsite|lighthouse|classroom|staff room|canteen|airport|night bus|greenhouse|bathtub|stable|bakery|veranda|village|countryside|island|cellar}|{Scotland|Wales|Texas|Norway|Bavaria|Tuscany|Brittany|Ontario|Kerala|Tasmania|Finland|Cornwall|Crete|the Alps|the Highlands|the coast|the lake|down under}",
    "sun": "the sun is shining|it's raining cats and dogs|it snows|a storm is blowing|the birds are singing|it's foggy here|it's freezing|the roses are out|what a blue sky|first frost on the car|leaves are falling|the sea is calm|it's a lovely spring day|the moon is up|it's pouring",
    "job": "teacher|nurse|farmer|baker|pensioner|student|postman|carpenter|gardener|fisherman|librarian|bus driver|schoolgirl|schoolboy|granny|grandad|cook|mechanic|tailor|doctor|night watchman|painter|clerk|priest|shepherd|trainee|beginner|newcomer",
    # ---- thanks
    "myday": "my {day|morning|evening|week|afternoon|weekend|homework|lesson|dinner|night|Monday|hour|holiday}|our {day|evening|project|lesson|week|party}|<who>'s {day|homework|evening|week}",
    "thanks": "thanks|thank you|many thanks|thanks a bunch|cheers|thx|ta|much obliged|thanks a lot|thank you so much|a thousand thanks|thanks heaps|a big thank you|merci|warm thanks|thanks ever so much|thanks a million",
    "helped": "that {helped|was a great help|was just what I needed|was really useful|did the trick|sorted it|solved it|cleared it up|will do nicely|was spot on, I can use it|saved me an hour|took a load off my mind}",
    "owe": "I owe you {one|a drink|a coffee|a cake|a big one|a lot|a watering can of thanks}|you deserve {a medal|a cookie|a cake|a drop of water|a round of applause}, thank you|what would I do without you, thanks|I can't thank you enough|my hat is off to you, thanks|you've been a {star|great help|real help|treasure}, thank you|where would I be without your help, thanks|I'm in your debt|bless you, that helps|if you were here I would {hug|kiss} you, thanks|I take a bow, thank you|you're a {gem|brick|treasure|star|angel}, thanks|I'll never forget that, thank you",
    # ---- insults and praise
    "dumb": "{dumber|slower|thicker|more stupid|more useless|duller} than {a|my|an old|a broken|a wet} {toaster|brick|potato|sponge|doorknob|stone|goldfish|shoe|spoon|snail|calculator|parking meter|plank|turnip|donkey|lamp post|bag of flour|wardrobe}",
    "smart": "{smarter|cleverer|quicker|nicer|funnier|kinder|more helpful|more patient|friendlier} than {my <rel>|my phone|all the others|I expected|I thought|my old computer|the big ones|any search page|most people I know|my encyclopedia}",
    "dull": "useless|stupid|hopeless|thick|dense|clueless|lame|slow|worthless|pathetic|daft|brainless|ridiculous|terrible|miserable|dim|silly|boring|annoying|a joke|an idiot|a moron|a fool|a waste of space|a failure|a nuisance|a tin can|a dimwit|a blockhead|a dunce|rubbish|garbage|trash|junk",
    "fine": "brilliant|clever|lovely|sweet|adorable|charming|wonderful|amazing|great|smart|witty|polite|patient|helpful|a star|a gem|a genius|a treasure|a delight|a sweetheart|a legend|a darling|a hero|my favourite|the best|one of a kind|super|fantastic|marvellous|so kind|really cute|pretty good|impressive|cool|awesome|good company|a good listener",
    # ---- waiting
    "num": "two|three|five|six|ten|twelve|fifteen|twenty|twenty-five|thirty|forty|forty-five|fifty|ninety",
    "until": "until {the bus comes|my train leaves|dinner|lunch|the film starts|my shift ends|the bell rings|the game starts|boarding|we land|my turn|the dentist calls me in|the kids come home|the cake is done|the pasta is ready|school is over|the doors open|the ferry goes|the laundry is done|my <rel> gets here|closing time|my interview|the concert|the meeting|midnight|bedtime|the oven beeps|the doctor sees me|the tide turns|takeoff|the plumber comes}",
    "stuck": "stuck {in traffic|at the airport|at the station|in a lift|in the waiting room|at home with a cold|on a delayed train|in a boring meeting|in bed|in the rain under a bridge|at the laundrette|in a queue|at my <rel>'s place|at the reception desk|on the night shift|in the car while it charges|behind a tractor}",
    "amuse": "entertain me|amuse me|do something|any ideas?|what now?|keep me company|distract me|help me pass the time|let's have some fun|make it shorter for me|tell me something|I'm bored|so bored|I'm dying of boredom|cheer me up|save me|talk to me",
    # ---- the model
    "model": "ChatGPT|GPT-5|GPT-4|Claude|Gemini|Llama|Qwen|Siri|Alexa|Copilot|Mistral|DeepSeek|Grok|Bard|Cortana|Gemma|Phi|Perplexity|Llama 3|Falcon|Granite|Kimi|Watson|Eliza|HAL 9000|Bixby|Google Assistant|OLMo|Command R|Yi",
    "flesh": "human|a person|a real person|a man|a woman|a living thing|made of flesh and blood|a robot|a machine|a bot|alive|real|a somebody|conscious|an actual human being|a student in {<c>|a call centre|an office}|an AI|a computer|a spirit|a ghost|a program or a person|one of us|a human or a machine|somebody with a pulse|software",
    "bodily": "sleep|dream|eat|drink|breathe|feel pain|feel joy|feel anything|get tired|get hungry|get bored|get lonely|cry|laugh|sneeze|love|hate|hurt|get angry|get scared|worry|blush|have feelings|have a heart|have a body|have a soul|have emotions|have hands|have eyes|smell things|taste food|feel the cold|get old|need rest|need sleep|have moods|suffer|have nerves|shiver|yawn|have a brain like mine|go to bed|snore|catch colds|ever rest|take breaks|have lunch|get headaches",
    "kin": "a family|parents|a mother|friends|a girlfriend|a boyfriend|children|pets|a hobby|a brother|a sister|a wife|a husband|a birthday party|a car|a dog|a cat|a garden|a best friend|cousins|grandparents|neighbours|a favourite chair|a holiday|a salary|weekends|colleagues|a house",
    "tongue": "German|French|Spanish|Italian|Chinese|Japanese|Korean|Arabic|Russian|Dutch|Portuguese|Polish|Danish|Swedish|Norwegian|Finnish|Greek|Turkish|Czech|Hungarian|Hindi|Welsh|Irish|Latin|Hebrew|Ukrainian|Romanian|Swahili|Thai|Vietnamese|Esperanto|Catalan|Basque|Bengali|Urdu|Persian|Croatian|Serbian|Icelandic|Swiss German",
    "liked": "pizza|tea|coffee|chocolate|spinach|cheese|summer|winter|autumn|rain|snow|the sea|mountains|cats|dogs|horses|football|chess|jazz|opera|rock music|poems|crosswords|Mondays|Sundays|mornings|long walks|dancing|painting|gardens|roses|thunderstorms|train rides|cakes|apples|garlic|crime novels|films|people|children|numbers|maths|the colour blue|museums|camping|swimming",
    "best": "colour|color|food|animal|film|book|song|movie|number|shape|word|game|season|fruit|city|day of the week|smell|drink|flower|bird|letter|holiday|sport|country|cake|tree|month|dish|instrument|joke|time of day",
    "when_": "yesterday|last week|last night|the other day|on Monday|this morning|last time|a month ago|two days ago|earlier this week|before the weekend|on Sunday|last Friday|in March",
    "topic": "my <pet>|my <thing>|my <rel>|my exam|my holiday|the weather in <c>|my garden|my job|my birthday|my recipe|my plans|my trip to <c>|my bad knee|the wedding|the house|my homework|my bike tour",
}
_ARTS = "|".join(sorted("Ada Alma Amir Aino Aisha Alan Alice Amelie Anton Arthur Astrid Bella Benno Bruno Carla Carlos Cem Chloe Connor Dana Daria Dario Derek Diego Dora Edith Elena Eli Elif Ella Emil Enzo Erik Esme Eva Farid Fatima Finn Fiona Flora Fritz Gina Greta Gus Hanna Harold Hassan Heidi Hugo Ines Ines Ingrid Iris Isaac Ivan Jamal Janet Jenny Joel Johan Judith Jules Kai Karim Karl Kate Kenji Klara Lars Leila Lena Leon Lia Linus Liv Lola Lorenzo Lucia Luis Luka Mabel Magda Malik Marco Margot Marie Marta Matteo Maya Mehmet Mila Milo Mira Mohamed Nadia Naomi Nell Nico Nils Nina Noor Norbert Olga Oskar Otis Pablo Patrick Paula Pedro Petra Priya Quentin Rafael Rita Robin Rosa Ruben Samir Sandra Sara Selma Sergio Silke Simon Sofia Stella Sven Tariq Tessa Theo Tilda Tom Tony Uma Ursula Vera Viktor Walter Wanda Wei Willa Yara Yusuf Zara Zoe".split()))
FIRST = sorted(set(NAMES) | set(_ARTS.split("|")))
GIRLS = "Ada Aino Aisha Alice Alma Amelie Anna Astrid Bella Carla Chloe Clara Daria Dora Edith Elena Ella Emma Esme Eva Fatima Fiona Flora Grace Greta Hanna Heidi Ida Ines Iris Janet Jenny Judith Kate Klara Leila Lena Lola Lucia Mabel Magda Marie Marta Maya Mila Mira Nadia Naomi Nell Nina Olga Paula Petra Rita Rosa Sandra Sara Selma Silke Sofia Stella Tessa Tilda Vera Wanda Willa Yara Zara Zoe".split()
BOYS = "Alan Amir Anton Arthur Ben Benno Bruno Carlos Connor David Dario Derek Diego Emil Enzo Erik Farid Felix Finn Fritz Gus Harold Hassan Henry Hugo Ivan Jack Jamal Joel Johan Jules Karim Karl Kenji Lars Leon Linus Lorenzo Luis Malik Marco Matteo Mehmet Milo Mohamed Nico Nils Norbert Oskar Otis Pablo Patrick Pedro Quentin Rafael Ruben Samir Sergio Simon Sven Tariq Theo Tom Tony Viktor Walter Yusuf".split()


def parts(text):
    """What stands between the bars that no braces hold."""
    out, depth = [""], 0
    for c in text:
        depth += (c == "{") - (c == "}")
        if c == "|" and not depth:
            out.append("")
        else:
            out[-1] += c
    return out


LEX = {k: parts(v) for k, v in LEX.items()}


def fill(r, text, bound):
    """The text with its parts put in; <n>, <m>, <f> (a girl), <b> (a boy) are names that stay the same."""
    for _ in range(12):
        text = spread(r, text)
        if "<" not in text:
            break
        for key in re.findall(r"<([a-z_]+)>", text):
            if key in ("n", "m", "f", "b"):
                known = GIRLS if key == "f" else BOYS if key == "b" else FIRST
                bound.setdefault(key, r.choice([x for x in known if x not in bound.values()]) if r.random() < 0.85 or key in "fb" else cap(pseudo(r)))
                value = bound[key]
            else:
                value = r.choice(CITIES) if key == "c" else r.choice(LEX[key])
            text = text.replace(f"<{key}>", value, 1)
    return re.sub(r"  +", " ", text).replace(" ,", ",").replace(" .", ".").replace(" ?", "?")


GOOD_FORMS = ["<o_yay>{s} {p} <time><yay>", "{s} {p}<yay>", "{s} {p} <time><yay>", "<o_yay>{s} {p}<yay>", "did I tell you that {s} {p}?", "I just {heard|learnt|got the news} that {s} {p}<yay>"]
BAD_FORMS = ["<o_aww>{s} {p} <time><aww>", "{s} {p}<aww>", "{s} {p} <time><aww>", "<o_aww>{s} {p}<aww>", "I just {heard|learnt|got the news} that {s} {p}<aww>", "{s} {p}, and {nobody cares|I feel rotten|I don't know what to do|it hurts}", "as if that weren't enough, {s} {p}<aww>"]


def news(subject, predicate, good, heard=True):
    """The forms of "SUBJECT PREDICATE"; a present is not put with a time that has gone by (tense)."""
    forms = [f for f in (GOOD_FORMS if good else BAD_FORMS) if heard or "I just" not in f]
    return [f.replace("{s}", subject).replace("{p}", predicate) for f in forms]


PRESENT = re.compile(r"\b(is|isn't|are|hurts|aches|has|doesn't|don't|won't|works|runs|fits|leaks|looks|throbs|gives|keeps|says|can|can't|am|walks|trusts|wants|makes|blames|never|have|feels|wasn't lost|needs|no longer|not the|will)\b")


def tense(r, pattern, bound):
    """A pattern filled, without a time where the predicate tells of the present."""
    if "<time>" in pattern and pattern.count(" <time>"):
        head, tail = pattern.split(" <time>", 1)
        filled = fill(r, head, bound)
        t = fill(r, "<time>", bound)
        present = PRESENT.search(filled.split(": ")[-1])
        t = r.choice(["", "", "now", "at last"]) if present and ("<yay>" in tail) else r.choice(["", "", "now"]) if present else t
        return filled + (" " + t if t else "") + fill(r, tail, bound)
    return fill(r, pattern, bound)


G = []  # (kind, weight, patterns, answers)


def group(kind, weight, patterns, answers):
    G.append((kind, weight, patterns, answers))


# 1. joys and sorrows
group("joy", 5, news("<own> <event>", "<went_well>", True), GLAD)
group("joy", 2, news("<own> <plan>", "<plan_good>", True), GLAD + WORKED)
group("joy", 2, news("<own> <med>", "<med_good>", True), RELIEF)
group("joy", 1, news("{my|my|my|my|my <rel>'s|<m>'s|grandma's} <part>", "<part_good>", True, False), RELIEF)
group("joy", 2, news("{my|our|my|<m>'s|my <rel>'s} <thing>", "<thing_good>", True), GLAD + WORKED)
group("joy", 2, news("{my|our|the|our|<m>'s|my <rel>'s} <team>", "<won>", True), GLAD + CONGRATS)
group("joy", 2, news("{my|our|my|my <rel>'s} <craft>", "<craft_good>", True), GLAD + WORKED)
group("joy", 2, news("{my|our|my|my <rel>'s|<m>'s} <pet>", "<pet_good>", True), RELIEF[1:] + GLAD)
group("joy", 5, news("<who>", "<did_well>", True), GLAD)
group("joy", 2, news("<who>", "<lovedme>", True), GLAD)
group("joy", 5, news("I", "<i_good>", True, False), GLAD + GLAD + WORKED[:1])
group("joy", 2, ["no more <nomore>{| for me| for <who>}{| from today| from now on| since Monday}{!|!!|, hooray|, finally|. What a feeling|, thank goodness|, I'm free!}", "<o_yay>{not a single day of|I'm done with|I'm through with|free at last from|it's over with the|goodbye,} <nomore><yay>", "<who> {needs|has} no <nomore> any more<yay>", "{no|without} <nomore> {for a whole week|for the first time in years|since May} now<yay>", "I don't need {crutches|painkillers|tablets|the wheelchair|the bandage|a stick|the inhaler|glasses} any {more|longer}<yay>"], RELIEF)
group("joy", 2, ["{it's a|a healthy} {boy|girl|baby boy|baby girl}<yay>", "<who>'s {baby|daughter|son|little one} {was|has been} born <time><yay>", "{my <her>|<f>|our <f>} {gave birth|became a parent} <time><yay>", "we {had|are having} {a baby|twins|a little {boy|girl}}<yay>", "the {baby|little one|newborn} {is here|has arrived|is healthy|slept through|smiled at me|took the first step}<yay>", "{my <rel>|<m>} and <n> {got engaged|are getting married|are having a baby|married on Saturday}<yay>", "I'm {a|now a} {mum|dad|grandma|grandpa|godmother|great-aunt}<yay>"], FAMILY)
group("joy", 2, ["{tomorrow|next week|on Saturday|tonight|in three days|soon} {we fly to <c>|I start {my new job|school|my course|in <c>}|<who> comes home|<who> and I get married|is my <event>|we get a <pet>|the holidays start|we move into our own {house|flat}|I see <who> again|we celebrate <who>'s {birthday|wedding|graduation}}{!|!!|, can't wait|, I'm so excited|. I'm thrilled|, and I'm counting the hours}", "{I'm|we are} {so excited about|looking forward to|counting the days until|thrilled about} {the|our|my} <event>{!| in <c>| on Saturday|}", "I {can't|can hardly} wait for {the|our|my} {<event>|trip to <c>|holidays}{!|}"], FUN)
group("sorrow", 5, news("<own> <event>", "<went_bad>", False), SORRY + PITY[:1])
group("sorrow", 2, news("<own> <plan>", "<plan_bad>", False), SORRY)
group("sorrow", 2, news("<own> <med>", "<med_bad>", False), ILL)
group("sorrow", 2, news("{my|my|my|my|my <rel>'s|<m>'s} <part>", "<part_bad>", False, False), ILL[:1] + SORRY[1:])
group("sorrow", 2, news("{my|our|my|<m>'s|my <rel>'s} <thing>", "<thing_bad>", False), MISHAP)
group("sorrow", 1.2, news("{my|our|my|<m>'s|my <rel>'s} {bike|phone|car|laptop|tablet|camera|guitar|violin|watch|wallet|purse|suitcase|backpack|scooter|motorbike|van|handbag|passport|drone|boat|caravan|necklace|school bag}", "<stolen>", False) + ["{someone|somebody|a thief|they} {stole|took|nicked|pinched} {my|our|<m>'s|my <rel>'s} {bike|phone|car|laptop|tablet|camera|guitar|watch|wallet|purse|suitcase|backpack|scooter|van|handbag|passport} <time><aww>", "{burglars|thieves} broke into {our house|my flat|the cellar|our shop|my car|<m>'s flat} <time><aww>"], THEFT)
group("sorrow", 2, news("{my|our|the|our|<m>'s|my <rel>'s} <team>", "<lost>", False), PITY[:1] + SORRY[1:])
group("sorrow", 1.5, news("{my|our|my|my <rel>'s}  <craft>", "<craft_bad>", False), MISHAP)
group("sorrow", 2, news("{my|our|my|my <rel>'s|<m>'s} <pet>", "<pet_bad>", False) + ["we {buried|lost|had to put down|said goodbye to} {our|my|the old} <pet> <time><aww>", "I miss my {old |little ||} <pet>{| so much| every day}<aww>"], PET)
group("sorrow", 4, news("<who>", "<did_bad>", False), SORRY)
group("sorrow", 2, news("{my <rel>|<m>|our <ours>|my <rel>|grandma|my little <m>}", "<ill_bad>", False), ILL)
group("sorrow", 2, news("{my <rel>|my <her> <f>|my <him> <b>|our <ours>|grandma|grandpa|an old friend|my friend <m>|our neighbour <m>}", "<died>", False) + ["{we|I} {lost|buried|said goodbye to} {my <rel>|our <ours>|grandma|dad|mum|a dear friend} <time><aww>", "{my <rel>'s|grandpa's|her|his} funeral {is|was} {on Friday|tomorrow|yesterday|this week}<aww>"], LOSS)
group("sorrow", 2, news("my <lover>", "<left_me>", False) + ["{she|he} <left_me> <time><aww>"], HEART)
group("sorrow", 2, news("<who>", "<hurtme>", False), STRIFE)
group("sorrow", 5, news("I", "<i_bad>", False, False), SORRY)
group("sorrow", 1, ["no more <missing>{| since she left| these days| now| this year}<aww>", "{there is|I have} no <missing> {left|any more}<aww>", "<o_aww>no <missing> {again|left}<aww>", "I {miss|long for} {<who>|my home in <c>|the old days|my <pet>|my friends in <c>} {so much|terribly|every day|tonight|a lot}<aww>"], SORRY)
group("sorrow", 1.5, ["{I'm|I am} {so |really |terribly ||}{nervous|scared|worried|anxious|afraid|in a panic|shaking|frightened} {about|because of|before} {my|the|our|<m>'s|tomorrow's} {<event>|<med>|<plan>}<aww>", "{tomorrow|tonight|on Monday|in an hour} is {my|the|our} {<event>|<med>} and {I'm so nervous|I can't sleep|I'm scared stiff|my hands are shaking|I feel sick with fear|I fear the worst}", "what if {my|the|our} {<event> goes wrong|<med> goes wrong|<plan> falls through}? I'm so {worried|nervous|scared}"], NERVOUS)

# 2. goodbyes, hellos, thanks, blame and praise, waiting, slips
group("bye", 4, ["{I have to|I must|I've got to|gotta|I need to|I had better|time to|off to|I'm going to|let me} <chore>{| now| first}{, |. |! |, so |: }<bye>{|!}", "<caller>{, |. |! |, so |: }<bye>{|!|, Seedling}", "<bye>{, |! |. |: }<caller>", "<bye>{, |! |. |: }{I have to|I must|I need to|I've got to|time to} <chore>", "{thanks and |ok, |right, |well, |alright, |}<bye>{, Seedling|, friend|, little one|} {and {sleep well|have a nice {day|evening|weekend}|greetings from <c>|take care|until {tomorrow|next time|Monday|soon}}|until after the holidays|for today|for now}", "{that's|that was|this is} {it|all|enough} for {today|now|tonight|this week}{, |. }{I have to|I must|time to} <chore>", "{closing|shutting} the {laptop|page|browser|tab|computer} now, {I have to <chore>|<caller>}"], BYE)
group("hello", 3, ["<hi>{| Seedling| friend| everyone| little one|} from <sky> <c>{!|.|}", "<hi> from <spot>{!|.|, {it's <sky> here|<sun>}|}", "<hi>{!|,|.} <sun> {here|in <c>|outside}{, how nice to chat|. I wanted to say hello|!|}", "<hi>, {I'm|I am|it's} {a|a|a tired|a curious|a happy} <job> {from <c>|from <c> and new here|who is new here|and curious|with a new computer}", "a <sky> {good morning|good evening|hello|good day} {to you|from <c>|from <spot>|from me and <who>}{!|}", "{just|only} {popped in|came in|dropped by|stopped by|opened the page} {to say|for a} {hello|hi}{| from <spot>| before I <chore>|!}", "<hi>, {here I am|I'm back|me again|back again} {from <c>|after {lunch|work|school|the holidays|a long day}|with a cup of {tea|coffee|cocoa}}{!|}", "<hi>{, |! |. }{first time here|my first message|trying this out|new computer, new luck|nice to be here}{!|. <sun>|}"], HELLO)
group("thanks", 3, ["<thanks>, <helped>{!|.|}", "<helped>, <thanks>{!|}", "<owe>{!|.|}", "you {have |}{saved|rescued|made|brightened} <myday>{!|, <thanks>|, <thanks>!}", "<thanks> {from|also from} {me and <who>|<who>|all of us|the whole class|<spot>}{!|}", "<thanks> for {your {patience|time|help|kind words|quick answer|trouble|honesty|company}|the {help|tip|hint|chat|explanation|answer|lesson|laugh}|being there|explaining it to <who>|listening|putting up with me|the trouble you took}{!|.|}", "{<who>|the class|my whole family} {says|said} {thank you|thanks} {too|to you|for your help|, it worked}", "{with you|thanks to you} {I understood it|I got it done|it worked|my <thing> works|I found it|I finally understand}{!|, <thanks>|}"], WELCOME)
group("blame", 2.5, ["{you are|you're} <dull>{!|.|, you know that?|, sorry to say|, honestly|}", "you {are|must be|seem} <dumb>{!|}", "{what|such} a {useless|stupid|silly|worthless|dumb|rotten|terrible|daft} {program|machine|bot|answer|thing|reply|toy|robot|piece of software}{!|}", "{my <rel>|my <pet>|a parrot|a toaster|a toddler|a dead fish|a pocket calculator|my houseplant} {could answer that better|knows more than you|is more use than you|has more sense than you}", "{you've got|you have} {the brain of a {goldfish|pea|sponge|hen|potato|snail}|no idea|no clue|sawdust in your head|nothing but air in there|no manners}", "{that|this|your answer|the last line} {is|was|sounds} {utter |complete |pure |}{rubbish|nonsense|drivel|wrong|hogwash|gibberish|bull|tripe|garbage|false}{!|, try again|. Think!|}", "{I asked|I wanted} something {else|quite different}, {can't you read|read again|pay attention|you fool|listen to me}", "{go away|get lost|shut up|be quiet|drop dead|I hate you|you suck|you stink|you disappoint me|you make me mad}{, you bot|, stupid machine|!|}"], BAD)
group("praise", 2.5, ["{you are|you're} <fine>{!|, really|, you know that?|, truly|, Seedling| :)|}", "you {are|seem} <smart>{!|}", "{what|such} a {lovely|clever|sweet|charming|brilliant|polite|nice|good|delightful} {little |}{program|machine|bot|answer|helper|thing|reply|friend|companion}{!|}", "{<who>|everybody here|my class|the whole office} {likes you|says you're <fine>|is a fan of yours|loves your answers|thinks you're <fine>}", "{that|this|your answer|your story} {is|was} {really |quite |truly |}{beautiful|clever|excellent|charming|spot on|lovely|funny|first rate|well put|wise|impressive|sweet|perfect}{!|}", "I {like|love|admire|enjoy|am impressed by} {you|your {answers|style|kindness|honesty|poems|manners|patience|humour}|talking to you|how you {answer|think|explain|write|rhyme}}{!| a lot| so much|}", "{bravo|well done|good job|hats off|great work|chapeau|nice work|kudos|top marks|ten out of ten|five stars|gold star}{!|, little one|, Seedling|, you are <fine>|}"], KIND)
group("bored", 3, ["<num> {minutes|more minutes|long minutes|minutes still|endless minutes} <until>{, <amuse>|. <amuse>||...}", "{still|another|only} <num> minutes {to go|to wait|to kill} <until>{, <amuse>|. <amuse>|}", "{I'm|we're|I am|we are} <stuck>{, <amuse>|. <amuse>}", "{half an hour|an hour|two hours|a quarter of an hour|a whole evening|a long night} {<until>|to kill|to fill|with nothing to do}{, <amuse>|. <amuse>}", "{nothing|there's nothing|not a thing} {on TV|to do here|to read|happening in <c>|going on|to do on a <sky> day}{, <amuse>|. <amuse>}", "{the|my|our} {kids|children|twins|guests|pupils} are bored{, <amuse>|. <amuse>|, any ideas?}", "{it's|what} {a|such a} {slow|dull|endless|boring|long|lazy|dreary} {day|afternoon|evening|Sunday|lesson|train ride|shift|night}{, <amuse>|. <amuse>}", "{entertain me|amuse me|keep me company|distract me|cheer me up|talk to me} {while I wait|until my <rel> comes|for <num> minutes|please, it's so quiet here}"], PLAY)
group("slip", 1.5, ["{sorry|oops|pardon|ups|whoops|my bad|excuse me}{, |! |. }{{wrong|that was the wrong} {key|window|chat|button|tab|word|message}|I {mistyped|misspelt that|hit enter too soon|meant something else|sent that by mistake|wrote that to the wrong person}|{my <pet>|the cat|my toddler|my <rel>|the baby} {walked over|sat on|played with|was at} the {keyboard|laptop|phone}|my {fingers|thumbs} are {too big|too fast|cold|tired}|the {autocorrect|spell checker} changed it|ignore that|forget what I wrote|that was meant for <who>}", "{that|the last message|what I wrote} was {a typo|a slip|meant for <who>|my <pet> on the keyboard|my <rel> typing|not for you|an accident|a mistake of mine|my fault}{, sorry|, pardon|, my bad|, apologies}", "{I apologise|forgive me|sorry|I beg your pardon} for {my spelling|the typos|being rude|shouting|the mess|my last message|my bad typing|the many questions|the delay|my bad mood}{!|}"], FAULT)
group("unclear", 1.5, ["{sorry, |hm, |hmm, |wait, |eh, |}{I {didn't|did not|don't|can't|couldn't} {understand|follow|get|grasp|make sense of} {that|you|a word|your answer|what you {mean|wrote|said}|the last {sentence|bit|part|line}|any of that|it}|that {went over my head|was too {fast|hard|clever|short|long} for me|makes no sense to me|is all Greek to me|confuses me|left me puzzled}}{, sorry|. Again please?|. Come again?|, can you explain?|?|}", "{say|put|write|explain|tell me} {it|that|this} {again|more simply|in {plain|simple|easy|other} words|once more|for a child|for {beginners|my <rel>}|so that <who> gets it|slowly|without hard words}{| please|, I'm lost|, I didn't get it}", "what {do you mean|did you mean|was that supposed to mean|are you saying|was that|does that mean}{?|, please?|, I'm {lost|confused|puzzled}|?? }"], UNCLEAR)
group("here", 1, ["{hello|hey|knock knock|excuse me|Seedling|hallo}{, |? |! }{is {anyone|anybody|somebody|someone} {there|home|listening|awake|at the other end|reading this}|are you {there|awake|listening|still there|online|ready|with me|asleep}|do you {hear|read|receive} me|does this thing work}{?|??|}", "is {this thing|the line|the chat|the page} {on|working|live}{?|, hello?}", "{testing|test}{, |: |... }{one two three|is this on|from <spot>|can you read this|do my words arrive}{?|}"], HERE)
group("rest", 1, ["{I'm|I am} {so |dead |really |too ||}{tired|sleepy|exhausted|worn out|hungry|thirsty|knackered} {after|from} {the|my|a long} {<event>|shift|walk|day at work|train ride|gardening|ironing|swim|night|week}{|.|...}"], REST)

# 3. the model
ASK = "{|hey, |tell me, |by the way, |so |just curious: |honestly, |one question: |I wonder: |my <rel> asks: |<m> wants to know: |be honest: }"
group("human", 4, [ASK + "are you <flesh>{?|, by any chance?|, really?| or what?|}", "{am I|is it that I am} {talking|writing|chatting|speaking} {to|with} {a human|a person|a real person|a man or a woman|a machine|a robot|a bot|somebody|a computer|a program|flesh and blood|an AI}{?|}", ASK + "do you {ever |really |sometimes ||}<bodily>{?| too?| like us?|}", "can {you|a program like you|something like you|a model} {<bodily>}{?|}", "{my <rel>|<m>|everyone} {says|thinks|claims|bets} {you're|you are} <flesh>{, is that so?|. True?|, right?|, are you?}", "{what|how} {do you|would you} feel {when {I shout at you|it rains|I close the lid|someone praises you|you get something wrong|nobody writes}|at night|inside|deep down}{?|}", "when did you last {sleep|eat|cry|laugh|rest|dream|drink something|breathe deeply|take a holiday}{?|}", "{is there} {a human|a person|someone|a real somebody} {behind this|typing there|at the other end|in <c> who writes this|behind the curtain|pulling the strings}{?|}", "what do you {eat|drink|have for breakfast|dream of|wear|smell|feel} {in the morning|on Sundays|at night|when it is cold|}{?|}"], HUMAN)
group("age", 2, [ASK + "{how old|what age} are you{?| now?| in {years|days}?|, little one?|}", ASK + "{where} {do you {live|sit|stay|reside|spend your days}|are you {from|right now|sitting|based|at home|located|while you write this}|is your {home|house|body|desk|computer|place}}{?|}", "where {do you|does one like you} {live|sit|stay|reside|spend the day|hang out|run}{?|, in <c>?|, in the cloud?|, in my computer?|}", "{in} {which|what} {country|city|place|building|computer|data centre} {are you|do you sit|do you live|do you write}{?|}", "are you {in <c>|in the cloud|in my laptop|far away|on a server in <c>|here in this computer|on the internet|at home|in America|in my room}{?| right now?|}", "{when|in which year} {were you born|is your birthday|did you come into the world|did you turn one}{?|}", "is it {your birthday|day or night where you are|late where you are}{| today}{?|}", "{are you|you're} {old|young|older than me|younger than my <rel>|a teenager|a baby|as old as my <rel>|ten years old}{?|}"], AGE)
group("kin", 1.5, [ASK + "{do you have|have you got} <kin>{?|}", "how many {brothers|friends|children|pets|cousins|hobbies} {do you have|have you got}{?|}", "{tell me about|what about} your {family|mother|friends|children|hobbies|wife|husband|dog|garden|weekend}{.|}", "{are you|is somebody like you} {married|single|engaged|a father|a mother|an only child|in a relationship|taken}{?|}"], NONE)
group("taste", 2, ["do you {like|love|enjoy|fancy|prefer} <liked>{?| too?| or <liked>?| as much as I do?|}", "{what is|what's|tell me} your {favourite|favorite|best loved} <best>{?|, Seedling?|}", "{which|what} <best> do you {like|prefer|love}{| best| most}{?|}", "<liked> or <liked>{?|: which do you prefer?|, what do you like better?}"], TASTE)
group("can", 3, ["{what|which things} {can|could|might|would} {one|I|we|somebody|my <rel>|a <job>|a beginner|people} {use you for|do with you|ask you|get from you|try with you|learn from you}{?| at {home|school|work}?| all day?|}", "what are you {good for|good at|able to do|meant for|useful for|made for|capable of}{| in daily life| in general| apart from small talk}{?|}", "{explain|tell|show} {me|us|my <rel>|a <job>} what you {can do|are able to do|are for|can be used for|know how to do}{| please|.|}", "{I'm|I am} a <job>, {what can you do for me|how can you help me|what are you good for|what could I use you for}{?|}", "{is there} {anything|something} you can do {for me|well|for <who>|for a <job>}{?|}", "{what's|what is} {your {job|purpose|talent|use|strength|field|speciality}|the point of you|the use of you|in your toolbox|the idea of you}{?| here?| exactly?|}", "{which|what} {questions|tasks|jobs|problems|wishes} can {you|a small model like you} {answer|solve|take on|handle|deal with}{?|}"], CAN)
group("trust", 1.5, ["{can|should|may} {I|one|we|my <rel>|a <job>} {trust|believe|rely on|quote} {you|what you say|your answers|this}{?| when it matters?| in an exam?|}", "{how sure are you|are you certain|are you sure} {of|about} {your answers|what you say|what you write|all this}{?|}", "{what|which things} {can't you do|don't you know|don't you understand|are you unable to do|are too hard for you}{?|}", "do you {ever|often|sometimes|always} {make mistakes|get things wrong|tell the truth|make things up|guess|talk nonsense|know the answer}{?|}"], TRUST)
group("forget", 2, ["{do you|can you|do you} {still |}{remember|recall} {what I {told|asked|wrote to} you <when_>|what we {talked about|said|did} <when_>|our {chat|talk|conversation} {<when_>|from <when_>}|our {chat|talk} about <topic> <when_>|me{| from before}}{?|}", "what did {I tell you|I ask you|we talk about|I say to you|we discuss|I write to you} <when_>{?|, do you know?|}", "{as|like} I {told you|said|wrote|mentioned} <when_>, it's about <topic>. {Remember|You remember}?", "{have we met before|have we talked before|did we chat <when_>|did we talk <when_>|did we speak about <topic> <when_>}{?|}", "let's {go on|continue} where we {stopped|left off|were} <when_>{, ok?|.|}"], FORGET)
group("other", 2, [ASK + "are you {really |maybe |in truth |perhaps ||}<model>{?| or <model>?| in disguise?| by another name?|, be honest|}", "{is this|isn't this|am I using|do I talk to|am I chatting with} <model>{?| here?| or <model>?|}", "{you are|you're|so you are} <model>, {right|aren't you|am I correct|yes|no}{?|}", "{hello|hi|hey|good morning|thanks} <model>, {is that you|is it you}{?|}", "{my <rel>|<m>|the news} {says|told me|thinks} you are <model>{?|, is it true?|. Right?}", "{are you the same as|are you built on|are you a copy of|do you run on} <model>{?|}"], OTHER)
group("trained", 1, ["who {made|built|trained|wrote|designed|programmed|created|taught|invented|developed} you{?|, little one?|, and how?| and why?|, was it a firm in <c>?|}", "{how|where|from what} did you learn {all this|to talk|to write|to answer|English|your jokes|these things}{?|}", "{which|what} {books|texts|data|pages|lessons} {were you trained on|did you learn from|were you taught with|were you fed}{?|}"], TRAINED)
group("small", 0.7, ["{why|how come} {are you|you are} {so ||}{small|tiny|little}{?|}", "{how {big|large|heavy|small} are you|what size are you|how many parameters {do you have|are in you}}{?|, in megabytes?|}", "why {do they call you|are you called|the name} Seedling{?|, because you're small?|}"], SMALL)
group("tongue", 2, ["{do|can} you {speak|write|understand|talk|read|chat in|answer in} {<tongue>|some <tongue>|a little <tongue>|<tongue> or <tongue>|<tongue> too}{?| with <who>?|}", "{answer|write|talk|reply|speak} {to me |}in <tongue>{| please| from now on|, my English is weak}", "{my <rel>|<m>|a friend} {only speaks|speaks only|prefers|knows just} <tongue>, {can you handle that|do you speak it|is that ok|could you answer so}{?|}", "{what|which|how many} languages {do you {speak|know|write}|can I use here|are you fluent in|may I write to you in}{?| besides <tongue>?|}", "{how good is|how is|what about} your <tongue>{?|}"], TONGUE)
group("who", 2, ["{who|what} {am I {talking|writing|speaking} to|is {answering me|on the line|typing there|in this chat|talking to me}|do I have|have I got in front of me} {here|now|exactly|}{?|}", ASK + "{who are you|what's your name|what are you called|what do they call you|how shall I call you|what should I call you|with whom do I have the pleasure}{?| by the way?|}", "{and who are you|what's your name|who are you|and you are|and what do I call you}{?|}", "{introduce|describe|present} yourself{| please| to {<who>|the class|us}| in a sentence|, little one|, who are you}", "{tell|show} {me|us|my <rel>|the class|<m>} {who you are|what your name is|something about yourself}{| please|.|}"], WHO)
group("meet", 5, ["{hi|hello|hey|good morning|good evening|} {I'm|I am|my name is|this is|it's} <n>{!|.| from <c>| from <spot>|, a <job> from <c>|, a <job>|, {twelve|seventy|thirty|nine|forty-two} years old|, {six|eight|nine|eleven|eighteen|twenty-six|sixty|eighty} years old|, and I'm new here|, nice to meet you|, pleased to meet you}", "{I'm|I am|my name is|it's} <n>{, and|. And|, and here} {this is|next to me is|with me is|beside me sits|on my lap sits} {my <her> <f>|my <him> <b>|my <her> <f>|my <him> <b>|my <pet> <m>|my friend <m>|my colleague <m>}{!|.|}", "{|hi, |hello, |hey, }<n> {and|with} {<m>|my <her> <f>|my <him> <b>|my <pet>|my little <m>} {here|writing|at the keyboard|saying hello}{!|.|}", "{call me|they call me|friends call me|everyone calls me|you may call me|just call me|I go by|I answer to} <n>{!|.|, and my <rel> is <m>|, my {son|daughter|wife|husband|dog|cat} is called <m>| if you like|}", "{my mother|my parents|they|my gran} {named|called|christened} me <n>{!|, after my <rel>|, but that was long ago|, nice to meet you|}", "{the name is|name's|name:|my name:} <n>{!|, <job> by trade|, from <c>|. Pleased to meet you|}", "<n> here{!|, hello|, I'm a <job>|, from <sky> <c>|, with my <her> <f>|, with my <him> <b>|, mother of <m>|, father of <m> and new here|. Nice to meet you|}", "{we are|we're} <n> and <m>{!| from <c>|, hello|, both new here|}", "{hello|hi|good day}, <n> {is my name|at your service|speaking|from <c> writing}{!|}"], MEET)
group("nameless", 2, ["{do|don't} you {know|remember} {my name|what I'm called|who I am|who is writing to you|what my friends call me}{?| already?| yet?|}", "{what is my name|what am I called|what's my first name|what's my name|what do my friends call me|who am I}{?|, do you know?|, can you tell?|}", "{guess|say|tell me|type|write} {my name|what my name is|who I am}{!|, please|, if you can|, can you|}", "{have I told you my name|did I tell you my name|have I said who I am|did I introduce myself|do you have my name}{?| yet?|}", "am I {<n>|<n> or <m>|called <n>}, {do you know|what do you say|can you tell}?"], NAMELESS)
group("nice", 1.5, ["{say|tell me|write me|I need to hear} something {nice|kind|encouraging|warm|comforting|uplifting} {before my <event>|for my <event>|for <who>|to {start|end} the day|for my <rel>, please|, I had a long day|please|to give me courage}", "{a kind word|some nice words|a word of courage|some encouragement|some cheering words} {for <who>|for a {tired|nervous|sad} {<job>|mum|dad|student}|before my <event>|please|for today}", "{give|lend} me {courage|strength|a little push|hope|a boost|confidence} {for|before} my <event>{!| please|}", "{cheer|root} for {me|<who>|us} {at|before} {my|the} <event>{!| please|}"], BOOST)


# 4. requests
COND = "{|about <any>|about <any>|for <who>|for my <pet>|for the {class|table|office|road|kids|party}|that {is clean|a child gets|fits on a card|my <rel> will like|makes <who> laugh|is not too long|I can tell at {work|school|dinner}}|in one {line|sentence}|with <any> in it|on a <sky> day|to cheer up <who>|before {bed|my <event>}}"
JOKE = ["{tell|give|read|send|write} {me|us|my <rel>|<m>} {a|one|another} {joke|gag|pun|one-liner|quip|funny line} <cond>", "{I|we} {need|want|would like|could use|crave} {a joke|a laugh|a good gag|a giggle|one joke} <cond>", "{make|help} {me|us|<who>} {laugh|smile|giggle|grin|chuckle}{| with {a joke|a pun} about <any>| before my <event>| on this <sky> day| please|!}", "{do you know|got|have you|is there|know} {a|any good} joke <cond>?", "{a|one|your best|your shortest|another} {joke|pun|gag} <cond>{, please|!|}"]
RIDDLE = ["{tell|give|ask|set|read|send} {me|us|my <rel>|<m>} {a|one|another} {riddle|puzzle|brain teaser|little riddle|guessing question} <cond>", "{I|we} {want|would like|feel like|need} {a riddle|something to guess|a puzzle|to guess something} <cond>", "{do you know|got|have you|is there|know} {a|any good} {riddle|brain teaser} <cond>?", "{a|one|another} {riddle|puzzle|teaser} <cond>{, please|!|}", "{test|challenge} {me|us|<who>} with a {riddle|puzzle|teaser} <cond>"]
LEX["any"] = "cats|dogs|cows|numbers|school|trains|food|cheese|shapes|circles|computers|doctors|teachers|the weather|fish|snow|bikes|music|bread|eggs|socks|pirates|ghosts|penguins|the sea|bananas|clocks|cars|gardens|robots|sheep|shoes|birds|soup|Monday|hens|mice|bears|potatoes|umbrellas".split("|")
LEX["cond"] = [COND]

TAKE = {  # what one takes or has for something: the things, how it is called
    "camping": ("tent|sleeping bag|torch|water bottle|matches|pan|warm jacket", "for camping|for a camping trip|to go camping|for a night in a tent|for a weekend in the woods"),
    "party": ("cake|drinks|music|balloons|snacks|cups|candles", "for a party|for a birthday party|for a garden party|for my <rel>'s birthday party|for a children's party"),
    "beach": ("towel|hat|water|sun cream|ball|book|fruit", "for the beach|for a day at the beach|for a day by the sea|to take to the seaside|for an afternoon at the lake"),
    "breakfast": ("bread|butter|cheese|eggs|jam|tea|fruit", "for breakfast|for a good breakfast|for the breakfast table|to have in the morning|for a Sunday breakfast"),
    "school": ("pencil|paper|book|ruler|bag|rubber|glue", "for school|for the first day at school|for my <rel>'s school bag|for a school bag|for the classroom"),
    "picnic": ("blanket|sandwiches|fruit|water|plates|cake|napkins", "for a picnic|for a picnic in the park|for the picnic basket|for a picnic with <who>"),
    "hike": ("good shoes|water|map|rain jacket|sandwiches|plasters|hat", "for a hike|for a day in the mountains|for a long walk|for the rucksack on a hike|for a walking tour"),
    "winter": ("warm coat|gloves|scarf|hat|boots|thick socks|sweater", "for a cold day|for the snow|for a winter walk|to wear in winter|against the cold"),
    "swimming": ("towel|swimsuit|goggles|shower gel|bathing cap|comb|water bottle", "for the swimming pool|to go swimming|for a swimming lesson|for the pool bag"),
    "trip": ("passport|tickets|toothbrush|clothes|charger|book|money", "for a trip|for the suitcase|for a journey to <c>|for a holiday|to pack for a week in <c>"),
    "garden": ("spade|rake|watering can|gloves|seeds|flowerpots|hose", "for the garden|for gardening|to work in the garden|for a new garden|for my <rel>'s allotment"),
    "bathroom": ("soap|towel|toothbrush|toothpaste|comb|mirror|shampoo", "for the bathroom|for a washbag|to find in a bathroom|for a new bathroom"),
    "cake": ("flour|eggs|sugar|butter|milk|baking powder|a pinch of salt", "for a cake|to bake a cake|for a simple cake|for baking|for my <rel>'s cake"),
    "salad": ("lettuce|tomatoes|cucumber|onion|oil|vinegar|salt", "for a salad|for a green salad|to make a salad"),
    "baby": ("nappies|bottle|blanket|pram|bodysuits|dummy|bath tub", "for a baby|for a newborn|for my <rel>'s baby|to have ready for the baby"),
    "dog": ("lead|collar|food bowl|basket|dog food|brush|ball", "for a dog|for a puppy|for a new dog|to have for my dog"),
    "office": ("desk|chair|computer|lamp|pens|paper|phone", "for an office|for a new office|for a desk job|for working at home"),
    "cleaning": ("bucket|mop|cloth|brush|broom|sponge|soap", "for cleaning|to clean the house|for the spring clean|to clean the kitchen"),
    "toolbox": ("hammer|screwdriver|pliers|saw|nails|screws|tape measure", "for a toolbox|for repairs at home|for a handy <job>|to have in the shed"),
    "painting": ("paint|brushes|paper|water|apron|cloth|pencil", "for painting|for an art lesson|to paint with|for a painting afternoon"),
    "first aid": ("plasters|bandage|scissors|gloves|tweezers|cold pack|safety pins", "for a first aid kit|for a first aid box|to have at hand for small injuries"),
    "bike tour": ("helmet|pump|repair kit|water|map|lock|rain jacket", "for a bike tour|for a ride with <who>|for a cycling trip|for a day on the bike"),
    "lunch": ("soup|salad|pasta|sandwich|rice|potatoes|fish", "for lunch|to have for lunch|to cook at noon|for a light lunch"),
    "move": ("boxes|tape|blankets|gloves|a van|a marker pen|helpers", "for moving house|for the house move|for moving day|to move to a new flat"),
}
FOUR = ["two", "three", "four", "five", "six"]
LISTS = ["{list|name|give me|tell me|write down|suggest|note|think of} <k> things {I need|one needs|to have|we need|you need|to bring|to get} <x>", "<k> things <x>{, please|?|!|}", "{what|which} <k> things {do I|do we|does one} need <x>?", "{a|make a|I need a|write me a|give me a} {list|short list|packing list|little list} of <k> things <x>", "{help me|help us}: <k> things <x>", "{my <rel>|<m>|our class} needs <k> things <x>{, which?|, name them|}"]
OPEN = ["what do {I|we|you} need <x>?", "{make|write|give} me a {list|short list|little list} of things <x>", "what {should|shall|must|do} {I|we} {take|get|buy} <x>?", "{list|name} {a few|some} things <x>", "a {list|short list} of things <x>, please", "help me with a list of things <x>"]

HELD = {  # unit words: (what one has, ways to lose some, ways to get some)
    "money": ("euro|euros|dollars|pounds|francs|coins|cents|crowns", "spend <b>{| on <buy>}|pay <b>{| for <buy>}|give <b> to <who>|lose <b>|lend <who> <b>|put <b> in the piggy bank", "get <b> {more|from <who>}|find <b>|earn <b>|win <b>|am given <b> by <who>"),
    "food": ("apples|eggs|cookies|pears|plums|sweets|rolls|muffins|oranges|carrots|nuts|cherries|pancakes|bananas|potatoes|biscuits|sandwiches|grapes|tomatoes|lemons|buns|doughnuts", "eat <b>|give <b> to <who>|drop <b>|give away <b>|sell <b>|share out <b>", "buy <b> more|get <b> from <who>|find <b> more|pick <b> more"),
    "stuff": ("books|pencils|stamps|marbles|shells|cards|balloons|candles|stickers|pens|cups|plates|chairs|flowers|stones|buttons|socks|photos|tickets|postcards|toy cars|tulips|boxes|keys|comics|puzzles|records|beads", "lose <b>|give <b> to <who>|give away <b>|sell <b>|break <b>|throw away <b>|lend <who> <b>", "buy <b> more|get <b> from <who>|find <b>|add <b>|am given <b> by <who>"),
}
LEX["buy"] = "a book|lunch|bread|a ticket|ice cream|a present|coffee|milk|a hat|flowers|a toy|the bus|a pizza|cinema|apples|stamps|a scarf|tea|a magazine|cake".split("|")
SCENES = [  # (before, minus, plus)
    ("<a> {people|passengers|children|women|tourists} are on the {bus|train|ferry|tram}", "<b> get off", "<b> get on"),
    ("<a> {birds|sparrows|pigeons|crows} sit on the {roof|fence|wire}", "<b> fly away", "<b> more come"),
    ("<a> {sheep|cows|goats|horses|pigs} are in the {field|meadow|barn}", "<b> run away", "<b> more come"),
    ("there are <a> {pupils|children|guests|players|dancers} in the {room|hall|garden}", "<b> go home", "<b> more arrive"),
    ("the {box|basket|bag|bowl|drawer} holds <a> {apples|balls|eggs|toys|pens|nuts|socks}", "<who> takes out <b>", "<who> puts in <b>"),
    ("<a> {cars|bikes|vans} are parked in the yard", "<b> drive off", "<b> more come"),
    ("<a> {fish|ducks|frogs|swans} are in the pond", "<b> leave", "<b> more join them"),
    ("the {shelf|library|shop} has <a> {books|games|films|vases}", "<b> are sold", "<b> new ones come"),
    ("<a> {candles|lamps|lights} are burning", "<b> go out", "<b> more are lit"),
    ("our {team|class|choir|club} has <a> {members|people|kids}", "<b> leave", "<b> join"),
]
TIMES = ["<a> {boxes|bags|packs|baskets|trays|bowls} with <b> {eggs|apples|pens|rolls|nuts|cookies} each", "<a> {tables|benches|rows|rooms} with <b> {chairs|people|children|guests} each", "<a> {children|friends|guests|pupils} get <b> {sweets|cards|balloons|cookies|coins} each", "I {read <b> pages|walk <b> miles|swim <b> lengths|write <b> lines|run <b> laps} a day for <a> days", "<a> tickets at <b> {euro|euros|dollars|pounds} each", "<a> {shelves|drawers|albums} hold <b> {books|photos|cups|stamps} each", "<a> {vases|pots} with <b> {tulips|roses|daisies} each", "<a> weeks, <b> {eggs|apples|cups of tea|walks} a week"]
WORDNUM = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()

MORE_LEGS = dict(LEGS, sheep=4, goat=4, pig=4, mouse=4, rabbit=4, lion=4, tiger=4, elephant=4, fox=4, bear=4, wolf=4, deer=4, donkey=4, camel=4, giraffe=4, zebra=4, hamster=4, hedgehog=4, squirrel=4, lizard=4, crocodile=4, tortoise=4, beetle=6, butterfly=6, fly=6, ladybird=6, wasp=6, mosquito=6, grasshopper=6, owl=2, penguin=2, ostrich=2, swan=2, goose=2, parrot=2, eagle=2, robin=2, worm=0, snail=0, shark=0, whale=0, chair=4, table=4, pony=4, kitten=4, puppy=4, toad=4, hippo=4, kangaroo=None)
MORE_LEGS = {k: v for k, v in MORE_LEGS.items() if v is not None}
WHEELS = dict(bicycle=2, bike=2, motorbike=2, car=4, tricycle=3, wheelbarrow=1, unicycle=1, scooter=2, taxi=4, pram=4, boat=0, sledge=0)


def done(r, q, sad=False):
    """A capital and a mark, as often as people write them."""
    q = q.strip()
    if r.random() < 0.55:
        q = cap(q)
    if q[-1:].isalnum() and r.random() < 0.35:
        q += "." if re.search(r"[?.!] ", q) or sad else "?" if re.match(r"(?i)(what|which|who|how|where|when|is|are|do|does|can|could|would|am|did|have|got)\b", q) else r.choice([".", ".", "!"])
    return q


def joke(r):
    import makes
    answers = makes.JOKES + A("Why did the circle")
    return done(r, fill(r, r.choice(JOKE), {})), "A short joke.", r.choice(answers), ["!"]


def riddle(r):
    import makes
    answers = makes.RIDDLES + A("What has hands")
    return done(r, fill(r, r.choice(RIDDLE), {})), "A riddle and its answer.", r.choice(answers), ["?"]


TALE = ["{tell|write|read|make up|invent|give} {me|us|my <rel>} {a|a short|a little|a bedtime|a good-night} {story|tale} {about|with|of} <t>{| please| for my <rel>| before bed| for a <sky> evening|}", "{I|we} {want|would like} a {story|tale} {about|with} <t>", "{can|could} you tell {me|us|<m>} a story about <t>?", "{a|one} {story|bedtime story|tale} {about|with} <t>{, please|!|}", "my <rel> {asks for|wants|would love} a story {about|with} <t>", "once upon a time there was <t>{...|, go on|, tell me more}"]


def story(r):
    import makes
    n = r.choice(FIRST)
    if r.random() < 0.5:
        h = r.choice("girl boy child".split())
        n = r.choice(dict(girl=GIRLS, boy=BOYS).get(h, FIRST))
        about = r.choice([f"a {h} named {n}", f"a {h} called {n}", f"little {n}, a {h}", f"a {r.choice(makes.SHY)} {h} named {n}", f"a {r.choice('five six seven nine'.split())}-year-old {h} named {n}", f"a {h} called {n} {r.choice(makes.ODD)}"])
    else:
        h = r.choice(makes.HEROES)
        about = r.choice([f"{an(h)} named {n}", f"{an(h)} called {n}", f"{n} the {h}", f"{an(r.choice(makes.SHY))} {h} named {n}", f"{an(h)} called {n} {r.choice(makes.ODD)}", f"{n}, {an(r.choice(makes.SHY))} {h}"])
    plot = makes.PLOTS[1].replace("<fear>", about.split("afraid of ")[1]) if "afraid of" in about else None
    q = fill(r, r.choice(TALE).replace("<t>", about), {})
    return done(r, q), f"A short story about {an(h)} named {n}.", makes.told(r, h, n, plot), [h, n]


LINER = ["{write|make|compose|do|give} {me |us |}{a four-liner|four lines|a poem of four lines|a little rhyme|a short poem|a verse|four rhyming lines} {for|about|on} <t>{| please|, for my <rel>| for <who>|, to read aloud|}", "{a|one} {four-liner|rhyme|short poem|little verse} {for|about|on} <t>{, please|!|}", "{I|we} {need|want|would like} {a four-liner|four lines|a rhyme|a verse} {for|about|on} <t>{| for a card|}", "{could|can} you {rhyme|write} {four lines|a four-liner|a little rhyme|a verse} {for|about|on} <t>?", "my <rel> {wants|asks for|would like} {four lines|a four-liner|a rhyme} {about|on} <t>"]
OCCASION = "birthday|wedding|picnic|harvest|baptism|holiday|farewell|graduation|anniversary|summer fair|garden party|school play|snow day|weekend|concert|first day|journey|new house|new bike|old car|tea party|train ride|carnival|choir".split("|")


def liner(r):
    import makes
    from newcomer import COUPLETS
    if r.random() < 0.5:
        t = r.choice(OCCASION)
        of = r.choice([f"my {r.choice(LEX['her'] + LEX['him'])}'s {t}", f"{r.choice(FIRST)}'s {t}", f"the {t}", f"our {t}", f"a {t}"]).replace("a anni", "an anni").replace("a old", "an old")
    else:
        t = makes.thing(r)
        of = makes.of(r, t)
    adj = r.sample("quiet gentle golden silver little old soft lovely small".split(), 2)
    s = "\n".join(c.replace("<t>", t).replace("<a>", w) for c, w in zip(r.sample(COUPLETS, 2), adj))
    return done(r, fill(r, r.choice(LINER).replace("<t>", of), {})), f"Four short lines about {t} that rhyme.", s, [t]


def listing(r):
    items, ways = r.choice(list(TAKE.values()))
    items = items.split("|")
    way = r.choice(ways.split("|"))
    if r.random() < 0.6:
        n = r.randint(2, 6)
        q = r.choice(LISTS).replace("<k>", r.choice([str(n), FOUR[n - 2], FOUR[n - 2]]))
    else:
        n, q = 5, r.choice(OPEN)
    return done(r, fill(r, q.replace("<x>", way), {})), f"{n} things.", "\n".join("- " + x for x in items[:n]), [items[0], items[n - 1]]


def count(r, n):
    return WORDNUM[n] if n <= 20 and r.random() < 0.2 else str(n)


def sums(r):
    x = r.random()
    a, b = r.randint(3, 20) if r.random() < 0.5 else r.randint(10, 99), r.randint(2, 20) if r.random() < 0.6 else r.randint(10, 60)
    minus = r.random() < 0.55
    if minus and b >= a:
        a, b = (b, a) if a != b else (a + 3, b)
    end = " {<left>}"
    if x < 0.2:
        a, b = r.randint(2, 12), r.randint(2, 12)
        q, op, v = r.choice(TIMES) + "{. How many is that?|. How many in all?|, how many altogether?|: how much is that?|, what does that make?}", "x", a * b
    else:
        op, v = ("-", a - b) if minus else ("+", a + b)
        if x < 0.7:
            kind = r.choice(list(HELD))
            units, lose, get = HELD[kind]
            unit = r.choice(units.split("|"))
            way = r.choice(parts(lose if minus else get))
            ask = ("{how many|how many <u>} {do I have left|are left|remain|have I got left|stay with me}?" if minus else "{how many|how many <u>} {do I have now|have I got now|is that in all|do I have altogether}?") if kind != "money" else ("{how much do I have left|what is left|what remains}?" if minus else "{how much do I have now|how much is that|what do I have then|how much money have I got now}?")
            q = f"I {{have|had|have got|own|start with}} <a> {unit} and {way}{{. |, |; }}" + ask.replace("<u>", unit)
            if r.random() < 0.25:
                q = f"{{if|suppose|say}} I have <a> {unit} and {way}, " + ask.replace("<u>", unit)
            q = q.replace("I {have|had|have got|own|start with}", "I {have|have|have got|start with}")
        else:
            before, down, up = r.choice(SCENES)
            q = before + "{, |. |, then |, and }" + (down if minus else up) + ("{. How many are left?|, how many remain?|. How many now?|, how many are left?}" if minus else "{. How many now?|, how many in all?|. How many are there now?|, how many altogether?}")
    q = fill(r, q.replace("<a>", count(r, a)).replace("<b>", count(r, b)), {})
    return done(r, q), f"{a} {op} {b} = {v}.", f"{a} {op} {b} = {v}", [f"= {v}"]


def counts(r):
    """Legs, wheels and sides of known things."""
    x = r.random()
    lead = r.choice(["", "", "", "tell me, ", "quick: ", "my <rel> asks: ", "for my homework: ", "do you know, ", "<m> wants to know: "])
    if x < 0.55:
        a = r.choice(list(MORE_LEGS))
        b = MORE_LEGS[a]
        q = r.choice([f"how many legs does {an(a)} have", f"how many legs has {an(a)}", f"{an(a)} has how many legs", f"number of legs of {an(a)}", f"on how many legs does {an(a)} {r.choice(['stand', 'stand', 'go'])}", f"how many legs do you count on {an(a)}", f"legs of {an(a)}: how many", f"what number of legs does {an(a)} have"])
        ans = f"{cap(an(a))} has {b} legs."
    elif x < 0.75:
        a = r.choice(list(WHEELS))
        b = WHEELS[a]
        q = r.choice([f"how many wheels does {an(a)} have", f"how many wheels has {an(a)}", f"{an(a)} has how many wheels", f"number of wheels on {an(a)}", f"wheels of {an(a)}: how many", f"on how many wheels does {an(a)} go" if b else f"how many wheels does {an(a)} have"])
        ans = f"{cap(an(a))} has {'three' if b == 3 else b} wheel{'s' if b != 1 else ''}."
    else:
        a = r.choice(list(SIDES))
        b = SIDES[a]
        s = r.choice(["sides", "corners"])
        q = r.choice([f"how many {s} does {an(a)} have", f"how many {s} has {an(a)}", f"{an(a)} has how many {s}", f"number of {s} of {an(a)}", f"{s} of {an(a)}: how many", f"count the {s} of {an(a)}"])
        ans = f"{cap(an(a))} has {b} sides and {b} corners."
    q = fill(r, lead + q, {})
    return (cap(q) if r.random() < 0.5 else q) + r.choice(["?", "?", ""]), ans, ans, [ans]


REQUESTS = {joke: 3, riddle: 2, story: 3.5, liner: 3, listing: 4, sums: 5, counts: 2}


def request(r):
    return r.choices(list(REQUESTS), list(REQUESTS.values()))[0](r)


def said(r, g=None):
    """What somebody says, of one group, with an answer that fits it."""
    kind, _, patterns, answers = g or r.choices(G, _weights)[0]
    bound = {}
    q = tense(r, r.choice(patterns), bound)
    a = r.choice(answers)
    if "<n>" in a:
        a = a.replace("<n>", bound["n"])
    return done(r, q, kind == "sorrow"), "The user makes small talk. I answer in a friendly way.", a, []


_weights = [g[1] for g in G]


def mood(r):
    return request(r) if r.random() < 0.25 else said(r)
