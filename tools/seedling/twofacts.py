"""Two facts told in one sentence, asked for one after the other, now and then corrected in between.

FAMILIES: (how both are told, what is answered, {fact: (questions, answer)}). Patterns are for phrases.spread; <x> is a part of EXTRA, of ledger.POOL or of moods.LEX and stays the
same through the dialogue. <she>, <her>, <who> are of one person, a woman or a man.
"""
import re

import ledger
import moods
from phrases import spread
from words import cap

EXTRA = {
    "yrs": [str(n) for n in range(1, 17)],
    "few": "two three four five six seven eight nine ten twelve".split(),
    "many": [str(n) for n in list(range(11, 60)) + list(range(60, 400, 10))],
    "hour": [f"{h}{m} {x}" for h in range(1, 12) for m in ("", ":15", ":30", ":45") for x in ("am", "pm")],
    "sum": [f"{n} {c}" for n in (5, 8, 12, 15, 20, 25, 30, 35, 40, 45, 50, 60, 75, 80, 90, 120, 150, 200, 250, 300) for c in ("euros", "dollars", "pounds", "francs")],
    "plant": "tomatoes|beans|roses|tulips|peppers|strawberries|sunflowers|pumpkins|lettuce|mint|potatoes|carrots|lavender|basil".split("|"),
    "drink": "coffee|green tea|black tea|apple juice|lemonade|hot chocolate|milk|mineral water|orange juice|ginger ale|cocoa|peppermint tea".split("|"),
    "food": "pizza|pasta|curry|sushi|lasagna|pancakes|fish|rice|soup|salad|cheese|olives|mushrooms|spinach|liver|cabbage|chocolate|onions|beetroot|tofu".split("|"),
    "sport": "tennis|football|swimming|judo|rowing|running|basketball|volleyball|climbing|cycling|skating|badminton|yoga|table tennis|hockey|karate".split("|"),
    "tool": "piano|violin|guitar|flute|drums|trumpet|cello|accordion|harp|clarinet".split("|"),
    "subject": "maths|history|biology|chemistry|physics|art|music|geography|law|medicine|French|economics".split("|"),
    "car": "car|bike|van|motorbike|scooter|boat|caravan|tractor|truck".split("|"),
    "where": "kitchen|garage|attic|cellar|garden|bathroom|hall|bedroom|living room|shed".split("|"),
    "thing": "key|umbrella|wallet|scarf|passport|ring|phone|bag|hat|watch|book|drill|ladder|camera|torch|purse".split("|"),
    "place": "top drawer|blue box|green bag|glove box|coat pocket|red tin|white cupboard|laundry basket|second shelf|old suitcase|letter tray|fruit bowl".split("|"),
    "kin": "sister brother daughter son cousin aunt uncle niece nephew mother father grandmother grandfather neighbour friend boss".split(),
    "goal": "learn Spanish|run a marathon|write a book|paint the fence|learn to swim|build a shed|read more|sleep more|save money|plant a tree|drink less coffee|clean the attic".split("|"),
    "shop": "milk|bread|eggs|butter|apples|rice|soap|cheese|onions|flour|bananas|candles|stamps|batteries|tea|honey".split("|"),
    "film": "comedies|westerns|cartoons|thrillers|old films|love stories|documentaries|musicals|science fiction|detective stories".split("|"),
    "room": "101 12 204 7 33 415 9 18 27 310 5 42".split(),
    "beast": "sheep goats hens ducks cows rabbits geese horses pigs alpacas bees donkeys".split(),
}
for _k in ("food", "shop", "beast", "sport", "goal", "plant", "thing", "place", "drink", "film", "few", "hour"):
    EXTRA[_k + "_two"] = EXTRA[_k]

NICE = "{Nice!|How nice!|Thank you for telling me!|Good to know!|I see!|That sounds good!|All right, noted.|I will keep that in mind.|Lovely!}"
FAMILIES = [
    ("{I have a <k> called <p> and <she> is <yrs>|my <k> <p> is <yrs> years old|we have a <k>, <p>, <yrs> years old|there's a <k> in our house named <p>, age <yrs>|this is about my <k>: <she> is <yrs> and called <p>|<p> is my <k>, <she> just turned <yrs>|our <k> is <yrs> now and answers to <p>|I share my flat with <p>, a <k> of <yrs>}",
     NICE + " {<p> is a fine name.|Say hello to <p>!|}",
     dict(p=("{what is <her> name{| again}|what's my <k> called|how is my <k> called|name of my <k>?|do you still know <her> name|what did I name <him>|who lives with me}", "{Your <k> is called <p>.|<cap_her> name is <p>.}"),
          yrs=("{how old is <she>{| now| again}|what age is <p>|and the age?|<her> age?|how many years has <p> got|how old did I say <she> is|and how old is my <k>}", "{<p> is <yrs>.|<cap_she> is <yrs> years old.|<p> is <yrs> years old.}"),
          k=("{what kind of animal is <p>|what is <p>|is <p> a person|which pet do I have|what animal do I have}", "<p> is your <k>."))),
    ("{my <kin> <who> lives in <c>|I have a <kin> in <c>, <who> by name|<who>, my <kin>, moved to <c>|in <c> lives my <kin> <who>|we visit my <kin> <who> in <c> every year|my <kin> is called <who> and comes from <c>|tomorrow I call my <kin>, <who>, over in <c>|my <kin> in <c>, the name is <who>, sends greetings}",
     NICE, dict(who=("{what's my <kin>'s name|what is my <kin> called|who lives in <c>|name of my <kin>?|how was my <kin> called|who do I know in <c>}", "{Your <kin> is called <who>.|That is <who>, your <kin>.}"),
                c=("{where does <she> live|which city was it|where is <who>|in what town is my <kin>|where's my <kin> living|and the town?}", "{<who> lives in <c>.|In <c>.}"))),
    ("{I'm <n> from <c>|my name is <n> and I live in <c>|<n> here, writing from <c>|hi, I am <n>, I come from <c>|they call me <n>, and home is <c>|I'm called <n> and my town is <c>|hello from <c>, <n> speaking|<n>, <c>, nice to meet you}",
     "{Nice to meet you, <n>!|Hello <n>! How can I help you?|Welcome, <n>! <c> is a nice place.}",
     dict(n=("{what is my name|who am I|what am I called|how do people call me|my name?|and what was my name|did you note my name}", "{Your name is <n>.|You are <n>.}"),
          c=("{where do I live|where am I from|what's my town|which city do I come from|where am I writing from|my home town?|and where is my home}", "{You are from <c>.|<c>, you said.}"))),
    ("{I work as a <work> and I have a <k>|I am a <work>, and at home a <k> waits for me|by day I'm a <work>, in the evening I walk my <k>|a <work> with a <k>, that's me|I earn my money as a <work> and spend it on my <k>|my job is <work>, my pet is a <k>|being a <work> is hard, but my <k> cheers me up|I'm employed as a <work> and own a <k>}",
     NICE, dict(work=("{what's my job|what do I work as|what do I do for a living|my profession?|how do I earn my money|what am I by trade|which job did I name}", "You are a <work>."),
                k=("{which pet do I have|what animal do I own|what lives with me|my pet?|what kind of pet is it|who waits at home|do I have an animal}", "You have a <k>."))),
    ("{I love <food> but I hate <food_two>|<food> yes, <food_two> no|I could eat <food> every day and never touch <food_two>|give me <food>, keep <food_two> away|I like <food>, and I don't like <food_two>|my favourite is <food>, what I can't stand is <food_two>|<food> makes me happy, <food_two> makes me ill|I eat a lot of <food> and avoid <food_two>}",
     NICE, dict(food=("{what do I like{| to eat}|what could I eat all day|which food do I love|my favourite?|what makes me happy|what should one cook for me|what shall I order}", "{You like <food>.|<cap_food>: you like that.}"),
                food_two=("{what do I not like|what don't I eat|what do I hate|which food is bad for me|what should nobody serve me|and what can't I stand|what do I avoid}", "{You do not like <food_two>.|<cap_food_two>: you do not like that.}"))),
    ("{I bought a <col> <car> for <sum>|my new <car> is <col> and cost <sum>|got myself a <car>, <col>, for <sum>|<sum> is what I paid for my <col> <car>|the <car> I chose is <col>, price <sum>|we now own a <col> <car>, it was <sum>|spent <sum> on a <col> <car>|a <col> <car> stands outside, I gave <sum> for it}",
     NICE, dict(col=("{what colour is it|which color is my <car>|the colour?|is it red or what|what colour did I choose|how does it look|what color was the <car>}", "{It is <col>.|Your <car> is <col>.}"),
                sum=("{how much was it|what did I pay|the price?|what did it cost|how much money did I spend|what did I give for it}", "{It was <sum>.|You paid <sum>.}"),
                car=("{what did I buy|what stands outside|what's new with me|what did I get}", "You bought a <col> <car>."))),
    ("{my <thing> is in the <place> and my <thing_two> in the <place_two>|note: <thing> in the <place>, <thing_two> in the <place_two>|I put the <thing> into the <place>, the <thing_two> into the <place_two>|the <place> has my <thing>, the <place_two> my <thing_two>|remember that the <thing> lies in the <place> and the <thing_two> in the <place_two>|<thing>: <place>. <thing_two>: <place_two>|the <thing> went into the <place>, and the <thing_two> is in the <place_two>|today I hid my <thing> in the <place> and my <thing_two> in the <place_two>}",
     "{I will remember it.|Noted!|All right, noted.|I keep that in mind.}",
     dict(thing=("{where is my <thing>|where's the <thing>|the <thing>, where did I put it|I need my <thing>, where is it|find my <thing>|in which place is the <thing>}", "{Your <thing> is in the <place>.|In the <place>.}"),
          thing_two=("{where is my <thing_two>|and the <thing_two>?|where did I put the <thing_two>|now the <thing_two>, where was it|can't find my <thing_two>|what about the <thing_two>}", "{Your <thing_two> is in the <place_two>.|In the <place_two>.}"))),
    ("{I play the <tool> and do <sport>|my hobbies are the <tool> and <sport>|on weekdays it's <sport>, on weekends the <tool>|I'm learning the <tool>, and I like <sport>|two things I love: the <tool> and <sport>|after work I go to <sport> or practise the <tool>|my free time is <tool> lessons and <sport>|I started the <tool> this year, and <sport> last year}",
     NICE + " {Those are fine hobbies.|}", dict(tool=("{which instrument do I play|what do I play|what music do I make|my instrument?|what am I practising|which instrument was it}", "You play the <tool>."),
                                                sport=("{which sport do I do|what's my sport|how do I keep fit|and my sport?|which kind of sport did I name|what do I do to stay fit}", "{Your sport is <sport>.|<cap_sport>, you said.}"))),
    ("{on <d> I see the dentist and on <d_two> I visit my <kin>|dentist <d>, <kin> <d_two>|my plan: <d> the dentist, <d_two> my <kin>|this week: dentist on <d>, dinner with my <kin> on <d_two>|the dentist wants me on <d>, my <kin> comes on <d_two>|<d> is dentist day and <d_two> is for my <kin>|I have to go to the dentist on <d>; <d_two> I meet my <kin>|appointments: <d> dentist, <d_two> my <kin>}",
     "{All right, noted.|I will keep that in mind.|That is a full week!}",
     dict(d=("{when is the dentist|which day is the dentist|dentist, what day|when do I have to go to the dentist|on which day are my teeth looked at|what day did I say for the dentist}", "{The dentist is on <d>.|On <d>.}"),
          d_two=("{when do I see my <kin>|and my <kin>, when|which day is my <kin>|what about my <kin>|on what day do I meet my <kin>|when is it my <kin>'s turn}", "{You see your <kin> on <d_two>.|On <d_two>.}"))),
    ("{the train leaves at <hour> from platform <yrs>|my train goes at <hour>, platform <yrs>|platform <yrs>, <hour>, that's my train|I take the train at <hour>, it waits at platform <yrs>|ticket says <hour>, platform <yrs>|tomorrow's train: <hour>, platform <yrs>|we meet at platform <yrs>, the train goes at <hour>|departure <hour>, platform number <yrs>}",
     "{All right, noted.|Have a good trip!|I will keep that in mind.}",
     dict(hour=("{when does it leave|what time is my train|when do I have to be there|departure time?|at what time does the train go|when does the train start}", "{It leaves at <hour>.|At <hour>.}"),
          yrs=("{which platform|what platform was it|where does it leave from|the platform?|to which platform do I go|platform number please}", "{From platform <yrs>.|It is platform <yrs>.}"))),
    ("{there are <few> of us and we have <few_two> rooms|we are <few> people in <few_two> rooms|<few> people, <few_two> rooms, that's our home|our flat has <few_two> rooms for <few> people|my family is <few> and the house has <few_two> rooms|<few_two> rooms and <few> people is tight|at home we're <few>, and there are <few_two> rooms|we live with <few> people in a flat of <few_two> rooms}",
     NICE, dict(few=("{how many people are we|how many of us are there|how big is my family|how many live there|number of people?|how many persons did I say}", "{You are <few>.|There are <few> of you.}"),
                few_two=("{how many rooms|how many rooms do we have|and the rooms?|number of rooms please|how many rooms has it got}", "{You have <few_two> rooms.|<cap_few_two> rooms.}"))),
    ("{I want to <goal> and to <goal_two> this year|my plans: <goal> and then <goal_two>|first I'll <goal>, after that I'll <goal_two>|this year's goals are to <goal> and to <goal_two>|one, <goal>; two, <goal_two>|I promised myself to <goal> and then <goal_two>|I plan to <goal>, and later to <goal_two>|before summer I must <goal>, and in autumn <goal_two>}",
     "{Those are good plans!|I wish you much success!|Good plans! I will keep them in mind.}",
     dict(goal=("{what's my first plan|what did I want to do first|what comes first|my first goal?|which goal is number one|what do I begin with}", "{First you want to <goal>.|Your first plan: <goal>.}"),
          goal_two=("{and the second|what's the second plan|what do I want to do after that|and then?|my other goal?|what comes next}", "{Then you want to <goal_two>.|Your second plan: <goal_two>.}"))),
    ("{I was born in <mo> and my <kin> in <mo_two>|my birthday is in <mo>, my <kin>'s in <mo_two>|<mo> is my month, <mo_two> is my <kin>'s|birthdays: me <mo>, my <kin> <mo_two>|we celebrate me in <mo> and my <kin> in <mo_two>|my <kin> turns a year older in <mo_two>, I do in <mo>|I'm a <mo> child, my <kin> came in <mo_two>|cake in <mo> for me, cake in <mo_two> for my <kin>}",
     NICE, dict(mo=("{when is my birthday|in which month was I born|my birthday month?|when do I get cake|what month am I from|when do I celebrate}", "Your birthday is in <mo>."),
                mo_two=("{and my <kin>'s birthday?|when was my <kin> born|when does my <kin> celebrate|which month is my <kin>|and my <kin>?|when must I buy my <kin> a gift}", "Your <kin>'s birthday is in <mo_two>."))),
    ("{I need <shop> and <shop_two>|we're out of <shop> and <shop_two>|on my list: <shop>, <shop_two>|don't let me forget <shop> and <shop_two>|I have to buy <shop>, and <shop_two> too|please keep in mind: <shop>, then <shop_two>|shopping today, just <shop> and <shop_two>|the fridge lacks <shop> and <shop_two>}",
     "{All right: <shop> and <shop_two>.|Noted: <shop> and <shop_two>.|I keep it in mind.}",
     dict(shop=("{what do I need|what's on my list|what do I have to buy|what did I want to get|read me my list|what are we out of}", "{<cap_shop> and <shop_two>.|You need <shop> and <shop_two>.}"),
          shop_two=("{what was the second thing|what else besides <shop>|and what besides <shop>|the last thing on the list?|<shop> and what|what is the other one}", "{<cap_shop_two>.|The second was <shop_two>.}"))),
    ("{I grow <plant> in the garden and <plant_two> on the balcony|garden: <plant>, balcony: <plant_two>|there are <plant> in my garden and <plant_two> on the balcony|this spring I planted <plant> outside and <plant_two> on the balcony|my garden is full of <plant>, the balcony has <plant_two>|on the balcony I have <plant_two>, and in the garden <plant>|we water the <plant> in the garden and the <plant_two> on the balcony|behind the house grow <plant>, up on the balcony <plant_two>}",
     NICE, dict(plant=("{what grows in the garden|what do I have in the garden|which plants are in my garden|garden, what was there|what did I plant outside|what's behind the house}", "{You grow <plant> in the garden.|<cap_plant> grow in your garden.}"),
                plant_two=("{and on the balcony?|what's on the balcony|which plants are on my balcony|what do I grow up there|balcony plants?|what did I put on the balcony}", "{You have <plant_two> on the balcony.|On the balcony: <plant_two>.}"))),
    ("{my password hint is <thing> and my lucky number is <many>|lucky number <many>, code word <thing>|the word is <thing>, the number is <many>|remember the word <thing> and the number <many>|<thing> and <many>, keep these two|please store: <thing>, <many>|our game: word <thing>, number <many>|note the code word <thing> and the number <many>}",
     "{I will remember both.|Noted: <thing> and <many>.|All right, noted.}",
     dict(thing=("{what was the word|the word?|which word did I tell you|say the word|the code word please|what word should you keep}", "The word was <thing>."),
          many=("{what was the number|the number?|which number did I tell you|say the number|number please|what number should you keep}", "The number was <many>."))),
    ("{my <kin> <who> is a <work>|my <kin> is called <who> and works as a <work>|<who>, my <kin>, became a <work>|I have a <kin>, <who>, who is a <work>|the <work> in our family is my <kin> <who>|<who> is my <kin> and earns money as a <work>|do you know what my <kin> <who> does? <cap_she>'s a <work>|my <kin>, name of <who>, has a job as a <work>}",
     NICE, dict(who=("{what is my <kin> called|<her> name?|name of my <kin> please|who is the <work>|what was my <kin>'s name|do you remember the name of my <kin>}", "Your <kin> is called <who>."),
                work=("{what does <who> do|what's <her> job|what is my <kin> by profession|<her> work?|how does <she> earn money|which job has my <kin>}", "<who> is a <work>."))),
    ("{I drink <drink> in the morning and <drink_two> at night|mornings <drink>, evenings <drink_two>|my day starts with <drink> and ends with <drink_two>|<drink> wakes me up, <drink_two> lets me sleep|at breakfast I take <drink>, before bed <drink_two>|first thing it's <drink>, last thing it's <drink_two>|a cup of <drink> at seven, a cup of <drink_two> at ten in the evening|I have <drink> early and <drink_two> late}",
     NICE, dict(drink=("{what do I drink in the morning|what wakes me up|what do I have for breakfast|my morning drink?|with which drink do I start|what's in my cup early in the day}", "{You drink <drink> in the morning.|<cap_drink>, in the morning.}"),
                drink_two=("{and in the evening?|what do I drink at night|what do I have before bed|my evening drink?|how does my day end|what's in my cup late}", "{You drink <drink_two> in the evening.|<cap_drink_two>, in the evening.}"))),
    ("{we have <few> <beast> and <few_two> <beast_two>|on our farm live <few> <beast> and <few_two> <beast_two>|I keep <few> <beast>, and also <few_two> <beast_two>|my uncle's farm: <few> <beast>, <few_two> <beast_two>|<few> <beast> and <few_two> <beast_two> are in our field|I feed <few> <beast> and <few_two> <beast_two> every day|there are <few> <beast> in the barn and <few_two> <beast_two> outside|our animals are <few> <beast> and <few_two> <beast_two>}",
     NICE, dict(few=("{how many <beast>|how many <beast> are there|number of <beast>?|the <beast>, how many|how many <beast> did I say}", "{<cap_few> <beast>.|There are <few> <beast>.}"),
                few_two=("{and how many <beast_two>|how many <beast_two>|the <beast_two>, how many were they|number of <beast_two> please|and the <beast_two>?}", "{<cap_few_two> <beast_two>.|There are <few_two> <beast_two>.}"))),
    ("{I moved from <c> to <c_two>|I left <c> and live in <c_two> now|first I lived in <c>, now in <c_two>|I grew up in <c> and then went to <c_two>|born in <c>, at home in <c_two>|after years in <c> we are in <c_two> now|I said goodbye to <c> and settled in <c_two>|my old home is <c>, my new one <c_two>}",
     "{I hope that you like it in <c_two>!|Welcome to the new home in <c_two>!|Moving is a big step. I hope it went well.}",
     dict(c=("{where did I live before|where do I come from|my old town?|where was I first|which city did I leave|where was my home in the past}", "{You lived in <c> before.|Before, it was <c>.}"),
          c_two=("{where do I live now|what's my new town|where's my home today|and now?|which city did I move to|my address is in which city}", "{You live in <c_two> now.|Now it is <c_two>.}"))),
    ("{I study <subject> in <c>|I'm a student of <subject> at the university of <c>|<subject> is what I study, in <c>|since autumn I'm in <c> for <subject>|my studies: <subject>, in <c>|I went to <c> to learn <subject>|at the moment I do <subject> in <c>|my course is <subject> and the university is in <c>}",
     "{I wish you much success with it!|That sounds interesting!|" + NICE[1:], dict(subject=("{what do I study|which subject was it|my subject?|what am I learning|what is my course|what did I say I study}", "You study <subject>."),
                                                                                 c=("{where do I study|in which city|where is my university|and where?|which town do I study in|the city again?}", "{You study in <c>.|In <c>.}"))),
    ("{we watch <film> on <d>s, and <film_two> on <d_two>s|<d> is for <film>, <d_two> for <film_two>|on <d> we see <film>, on <d_two> <film_two>|our TV week: <d> <film>, <d_two> <film_two>|every <d> it's <film> and every <d_two> <film_two>|<film> on <d>, <film_two> on <d_two>, that's our rule|my <kin> picks <film> on <d>, I pick <film_two> on <d_two>|<d> evening: <film>. <d_two> evening: <film_two>}",
     NICE, dict(film=("{what do we watch on <d>|what is <d> for|<d> evening, what's on|which films are on <d>|what comes on <d>}", "On <d> it is <film>."),
                film_two=("{and on <d_two>?|what do we see on <d_two>|what's for <d_two>|which films on <d_two>|what comes on <d_two>}", "On <d_two> it is <film_two>."))),
    ("{I'm in room <room> until <d>|my room is <room>, I leave on <d>|hotel room <room>, checking out <d>|they gave me room <room> and I stay till <d>|I sleep in <room> and go home on <d>|room number <room>, departure <d>|it's room <room>, booked until <d>|I stay here till <d>, room <room>}",
     "{Have a nice stay!|All right, noted.|I hope that the bed is good!}",
     dict(room=("{which room am I in|my room number?|what's the number of my room|where do I sleep|room number please|what room did they give me}", "{Your room is <room>.|Room <room>.}"),
          d=("{until when do I stay|when do I leave|what day do I check out|when do I go home|how long am I here|my last day?}", "{You stay until <d>.|Until <d>.}"))),
    ("{my <kin> is <age> and I am <age_two>|I'm <age_two>, my <kin> is <age>|<age_two> is my age, <age> my <kin>'s|I turned <age_two> and my <kin> <age>|our ages: me <age_two>, my <kin> <age>|my <kin> has <age> years and I have <age_two>|this year my <kin> became <age>, I became <age_two>|<age_two> years old am I, and <age> is my <kin>}",
     NICE, dict(age=("{how old is my <kin>|my <kin>'s age?|what age is my <kin>|and my <kin>, how old|how many years has my <kin>}", "Your <kin> is <age>."),
                age_two=("{how old am I|my age?|and me?|and how old am I myself|what age did I give for myself|how many years have I}", "You are <age_two>."))),
]
NAMED = ("p", "who", "n")
CORRECT = {  # a fact that is corrected: how, with <new>
    "p": "{no, <her> name is <new>|sorry, I meant <new>, not <p>|wait, <she> is called <new>|correction: the name is <new>|oh no, that's wrong, it's <new>|it is <new>, I mistyped}",
    "who": "{no, <her> name is <new>|sorry, I meant <new>|correction: <new>, not <who>|wait, it's <new>|oh, wrong name, <she>'s called <new>}",
    "yrs": "{no, it's <new>|sorry, <new>, not <yrs>|wait, I meant <new>|correction: <new>|I was wrong, <new> is right}",
    "c": "{no, it's <new>|sorry, I meant <new>, not <c>|wait, <new>, not <c>|correction: it's <new>|not <c>! <new>|I mixed it up, it is <new>}",
    "hour": "{no, at <new>|sorry, <new>, not <hour>|correction: <new>|they changed it to <new>|it's <new> now}",
    "d": "{no, on <new>|sorry, I meant <new>, not <d>|correction: <new>|not <d>, <new>|it was moved from <d> to <new>}",
    "sum": "{no, it was <new>|sorry, <new>|correction: <new>, not <sum>|wait, I paid <new>}",
    "room": "{no, room <new>|sorry, I meant <new>|they moved me to <new>|correction: it is <new>}",
}
RIGHT = "{Thank you, <new> then.|All right: <new>.|Sorry! <new> it is.|Noted: <new>.|Thank you for putting that right: <new>.}"


def fill(r, text, b):
    """ledger.put with the parts of EXTRA."""
    text = spread(r, text)
    for key in re.findall(r"<([a-z_]+)>", text):
        if key.startswith("cap_"):
            b[key] = cap(fill(r, f"<{key[4:]}>", b))
        elif key not in b and key in EXTRA:
            b[key] = r.choice([x for x in EXTRA[key] if x not in b.values()])
        elif key not in b and key.endswith("_two") and key[:-4] in ledger.POOL:
            b[key] = r.choice([x for x in ledger.POOL[key[:-4]] if x not in b.values()])
    text = ledger.put(r, text, b)
    return re.sub(r"\b([Aa]) (?=[aeio])", r"\1n ", text)


def exchange(r):
    """[(what the user says, answer, reasoning)] of one dialogue about two facts."""
    tell, reply, facts = r.choice(FAMILIES)
    she = r.random() < 0.5
    b = dict(zip(("she", "her", "him"), ("she", "her", "her") if she else ("he", "his", "him")))
    kin = [k for k in EXTRA["kin"] if (k in "sister daughter aunt niece mother grandmother".split()) == she or k in "cousin neighbour friend boss".split()]
    b.update(kin=r.choice(kin), who=r.choice(moods.GIRLS if she else moods.BOYS))
    T = [(ledger.typed(r, fill(r, tell, b)), fill(r, reply, b).strip(), "The user tells me two facts. I keep them in mind.")]
    wrong = [k for k in facts if k in CORRECT]
    if wrong and r.random() < 0.25:
        k = r.choice(wrong)
        pool = moods.GIRLS if k == "who" and she else moods.BOYS if k == "who" else EXTRA.get(k) or ledger.POOL[k]
        b["new"] = r.choice([x for x in pool if x not in b.values()])
        ways = CORRECT[k][1:-1].split("|")
        ways = [w for w in ways if f"<{k}>" in w] if k + "_two" in facts else ways  # of two alike it must be said which is wrong
        T.append((ledger.typed(r, fill(r, r.choice(ways), b)), fill(r, RIGHT, b), f"The user corrects it: {b['new']}."))
        b[k] = b["new"]
    asked = r.sample(list(facts), min(len(facts), r.choice([1, 2, 2, 2, 3])))
    for k in asked:
        q, a = (fill(r, x, b) for x in facts[k])
        T.append((ledger.typed(r, q), a, "The user said it before."))
    if r.random() < 0.12:
        k = r.choice(asked)
        T.append((r.choice(["are you sure?", "really?", "sure about that?", "is that right?"]), "Yes, so you said: " + fill(r, facts[k][1], b), "The user said it before.") if k == asked[-1] else (fill(r, facts[k][0], b) + r.choice(["", " again"]), fill(r, facts[k][1], b), "The user said it before."))
    return T
