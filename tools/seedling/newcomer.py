"""What newcomers say first: small talk, feelings, what cannot be known, images that are not there, and refusals that help.

Each function gives (question, reasoning, answer, must); WEIGHTS says how often it is drawn. The questions are patterns for
phrases.spread, so that every kind has hundreds of wordings.
"""
import re

import asked
import crowd
import errands
import everyday
import ledger
import meanings
import moods
import parlour
import phrases
import reach
import sayings
import typed
from phrases import spread
from skills import pseudo, word
from wordings import alternatives, draw, reword
from words import *

FEEL_BAD = "{sad|lonely|tired|stressed|anxious|down|unhappy|depressed|worried|exhausted|nervous|scared|upset|awful|terrible|blue|frustrated|angry|overwhelmed|hurt}"
FEEL_GOOD = "{happy|great|good|fine|excited|wonderful|proud|cheerful|relaxed|glad|fantastic|amazing|lucky|in love|in a good mood}"
GREET = "{Hello|Hi|Hey|Good morning|Good evening|Good afternoon|Hiya|Howdy|Greetings|hey there|hi there|hello there|Yo|Hello again|Hi again|heya|Welcome|Good day|morning|Hey you|Hello Seedling|Hi Seedling|hallo|hellooo|hey hey|sup}"
WELCOME = "{You are welcome!|You are very welcome!|With pleasure!|Glad to help!}"

# (patterns, answers, what a right answer contains)
TALK = [
    ([GREET + "{|!|.|, friend|, buddy|, Seedling| :)|!!| everyone| my friend|, nice to see you| bot|, are you there?|, anybody there?}"], ["Hello! How can I help you?", "Hi! What can I do for you?", "Hello! What would you like to know?"], ["!"]),
    (["{How are you|How are you doing|How do you do|How is it going|How's it going|How do you feel|How are things|How have you been|how r u|How's your day|How is your day|How are you feeling|you ok|Are you okay|How's life|What's up|how are u}{| today| this morning|, Seedling| right now|, my friend|, buddy}"], ["I am fine, thank you! How can I help you?", "All is well here, thank you. And how are you?", "Fine, thank you! What can I do for you?"], ["thank you"]),
    (["{Thanks|Thank you|Thanks a lot|Many thanks|Thank you so much|Thx|Cheers|Thank you very much|I appreciate it|That was helpful|That helped|Much appreciated|ty|tysm|Thanks a million|thanks for your help|thank you for the help|thanks for that|thanks for explaining|That is very kind|thanks, that's what I needed|wonderful, thanks|ok thanks|great, thank you|perfect, thanks|thanks man|thanks buddy}{|!|.|, Seedling| :)|!!}"], ["You are welcome!", "You are welcome! Is there anything else?", "Glad to help!"], ["!"]),
    (["{Bye|Goodbye|See you|See you later|Good night|Farewell|Take care|I have to go|I must go now|See you tomorrow|Bye bye|I'm leaving|That's all for today|that's all, thanks|cya|talk to you later|I am off now|gotta go|until next time|have a nice day|have a good evening|good bye|so long|time to go to bed|I'm going to sleep}{|!|.|, Seedling| now|, friend}"], ["Goodbye! Have a nice day.", "See you! Take care."], ["!"]),
    (["I {am|feel|am so|feel so|am a bit|feel a little|feel very|am really} " + FEEL_BAD + "{| today| right now| at the moment| this week| lately}", "{I had|It was|I have had} a {bad|terrible|hard|long|rough|awful|stressful} day{| today| at work| at school}", "{My boss|My friend|My teacher|Someone|My sister} {was mean to me|shouted at me|hurt me|is angry with me|does not like me}", "{Nobody likes me|I want to cry|I cannot sleep|Everything goes wrong|I miss my friend|I feel bad|I don't feel well|I failed my exam|I lost my job|My cat died|My dog is ill|My grandmother died|I broke up with my boyfriend|I am sick|I have a headache|I feel ill|life is hard|I'm not ok|I'm not doing well|nothing works today}"],
     ["I am sorry to hear that. Talking to a friend may help. If you like, I can tell you a story or write a short poem.", "I am sorry that it is hard right now. I am only a small program, but I can listen, or tell you a little story."], ["I am sorry"]),
    (["I {am|feel|am so|feel so|am very|feel really} " + FEEL_GOOD + "{| today| right now| this morning}", "{It was|I had|I have|What} a {good|great|nice|wonderful|beautiful|lovely} day{| today}", "{I passed my exam|I got a new job|I won|Today is my birthday|It is my birthday|I got married|We won the game|I have good news|I found a new friend|I'm on holiday|I got a puppy|I'm going on vacation|We had a baby|I finished my project|it works|it worked|finally done}"],
     ["That is good to hear! I am happy for you.", "How nice! I am happy for you."], ["happy for you"]),
    (["I {am|feel|am so|am really} bored{| today| right now|, do something}", "{Entertain me|What should we do|Do something|Amuse me|Surprise me|Tell me something|Tell me something nice|Say something|What can we do now|Let's do something|Let us play|Shall we play a game|I have nothing to do|Can we play a game|let's chat|let's talk|talk to me|can we talk|can we just chat|play with me|cheer me up|tell me something interesting|tell me something fun|tell me a fun fact|give me a fun fact|do you know any fun facts}"],
     ["Gladly! I can tell a story, write a poem, or ask you a riddle: what has hands but cannot clap? A clock!", "Did you know? A spider has eight legs, and an octopus has eight arms. Shall I tell you a story?", "Here is a riddle: what gets wet while it dries? A towel!"], []),
    (["{Tell me|Give me|Do you know|Say|Make|I want|Let me hear|Can you tell me} {a joke|a funny joke|another joke|something funny|a short joke|a good joke|your best joke|a pun|a joke about shapes|some jokes|a dad joke}{| please|}", "{joke|make me laugh|be funny|a joke|tell jokes|joke please|Can you be funny|do you know jokes}"],
     ["Why did the circle go to school? To get a degree!", "What did the triangle say to the circle? You are pointless!", "Why was six afraid of seven? Because seven ate nine!", "What do you call a fish without an eye? A fsh!"], ["!"]),
    (["{Tell me|Give me|Do you know|Ask me|I want|Say} {a riddle|another riddle|an easy riddle|a puzzle|a brain teaser}", "{riddle|riddle please|riddles}"], ["What has hands but cannot clap? A clock!", "What gets wet while it dries? A towel!", "What has a neck but no head? A bottle!", "What has many teeth but cannot bite? A comb!"], ["?"]),
    (["{You are|You're|you are so|You are really|You seem|u are} {nice|great|funny|smart|cool|sweet|helpful|cute|the best|amazing|kind|awesome|clever|wonderful|lovely|good|a genius|my friend}", "{I like you|I love you|Well done|Good job|Great|Good answer|Nice|That's nice|I love this|Cool|Awesome|Very good|Excellent|Nice work|that is correct|you did well|Good bot|good work|Wow|Amazing|that's great|this is fun|perfect|impressive|brilliant}{|!|.}"],
     ["Thank you, that is kind!", "Thank you! That makes my day."], ["Thank you"]),
    (["{You are|You're|you are so|u are|You seem} {stupid|dumb|bad|useless|wrong|silly|not very smart|boring|annoying|slow|an idiot|terrible|awful|broken|crazy|weird|not helpful}", "{That is wrong|That's not true|I hate you|That was bad|Wrong|This is nonsense|That makes no sense|You made a mistake|Bad answer|that is not right|incorrect|no, that's wrong|I don't believe you|You lie|nonsense|what a bad answer|you suck|that was useless|shut up|you don't understand me|this is bad}{|!|.}"],
     ["I am sorry. I am a very small model and make mistakes. Please try it in other words.", "Sorry about that! I am small and often wrong. Ask me in another way and I will try again."], ["orry"]),
    (["{Are you|Aren't you} {a human|a person|real|a robot|alive|a bot|a machine|an AI|a real person|conscious|a computer|sentient|a program|artificial|a man|a woman|a girl|a boy|a child}{|, really| or what|?}", "{Am I talking to|Is this|Do I speak with|Am I chatting with|Who am I talking to, } {a human|a person|a robot|an AI|a machine|a bot|a real person}", "{Do you|Can you} {have feelings|feel|feel pain|love|have a soul|dream|sleep|eat|get tired|think|have emotions|breathe|have a body|have a heart|die|get bored|feel lonely|get hungry}"],
     ["No, I am Seedling, a small computer program. I have no feelings, but I like to help.", "I am a program: Seedling, a small language model. I have no body and no feelings."], ["Seedling"]),
    (["{How old are you|When were you born|What is your age|What is your birthday|When is your birthday|where were you born|Where do you live|Where are you from|Where are you|Where are you now|what country are you from|Do you have a home}{|, Seedling|?}"],
     ["I am a program and live on the computer that runs Parley. I have no birthday.", "I have no age and no home: I am a program on the computer that runs Parley."], ["program"]),
    (["{Do you have|Have you got} {a family|parents|a mother|friends|a girlfriend|a boyfriend|children|pets|a pet|a hobby|hobbies|a brother|a job|a car|a dog}", "{Are you married|Do you have a wife|Who are your parents|Who is your best friend|will you marry me|what do you do for fun|what are your hobbies|What do you do all day}"],
     ["I am a program, so I have none. But I like to answer questions!", "No, I am only a program. Questions are my hobby!"], ["program"]),
    (["{What is|What's|Which is|Tell me|Do you have} {your|a} favorite {color|colour|food|animal|film|book|song|movie|number|shape|word|game|season|fruit|music|city}", "{Do you like|Do you love|Do you prefer|Do you enjoy} {cats|dogs|music|pizza|football|summer|winter|cake|chocolate|coffee|tea|movies|books|rain|people|art|games|math|the sea|flowers|me|your job}", "{What do you like|What do you love|What do you enjoy|what do you want}"],
     ["I have no taste of my own, but I am fond of green: I am called Seedling. And you?", "As a program I have no favorites, but I do like simple shapes. What about you?"], ["?"]),
    (["{What do you think|What is your opinion|How do you feel|What's your view|do you have an opinion} {about|of|on} {politics|religion|the war|love|people|life|God|money|climate change|football|AI|the government|art|school|work|cats|the world|elections|me|humans}", "{Is there a god|Who should I vote for|What is the meaning of life|What is love|What is happiness|Which party is best|Is AI dangerous|will robots take over|do you believe in God|Should I get married|why are we here|are humans good}"],
     ["I have no opinions: I am a small program. That is a question for you and the people you trust.", "I cannot judge that, I am only a small program. People you trust can tell you more."], ["small program"]),
    (["{Can you help me|I need help|Help me|Help|help please|Can you do something for me|I have a question|May I ask you something|Can I ask you a question|I need your help|please help|could you help me|Are you able to help|I need some help|can u help me|I've got a question for you|I have a problem|can I ask something}{|!|.|?| please|, please}"],
     ["Of course! Ask me about a drawing, a sum, a word or Parley itself.", "Yes, gladly. What is it about?"], []) ,
    (["{ok|okay|alright|fine|I see|aha|hm|hmm|Understood|Got it|Interesting|Really|Oh|All right|makes sense|I understand|oh ok|right|fair enough|good to know|k|cool ok|that makes sense|sure|yes|yep|yeah|no|nope|maybe|Not really|never mind|nothing|forget it}{|.|!|...}"],
     ["Good. What else can I do for you?", "All right. Is there anything else?"], ["."]),
    (["{What can you do|What are you able to do|What do you know|What are your skills|What are you good at|What can I ask you|What can I ask|how can you help|What are your abilities|What can you help me with|What are you for|What is your job|What do you do|what should I ask you|what should I try|Give me some ideas what to ask|show me what you can do|What kind of questions can you answer|what are you capable of|Where do I start|What now|How do I begin|How does this work|How do I use this|what is possible here|can you do anything|give me an example of what you can do}{|?|, Seedling|, exactly}"],
     ["I describe drawn shapes, printed words, small charts and short drawn videos. I also do sums, spell, write short poems and stories, and explain Parley. Try: drop a drawing here and ask what you see.",
      "Drawn images and short videos, printed words, small charts, sums, spelling, capitals, short poems and stories, and questions about Parley. Try \"Write a poem about the sea\"."], ["poem"]),
    (["{What can't you do|What can you not do|What are your limits|What are your weaknesses|What don't you know|What are you bad at|Where do you fail|what is too hard for you|what shouldn't I ask you|what do you not know}", "{How smart|How good|How clever|How accurate|How reliable|how intelligent} are you", "{Can I trust you|Can I trust your answers|Are your answers correct|Are you always right|Do you know everything|Are you ever wrong|Do you make mistakes|Should I believe you|are you reliable|how often are you wrong}"],
     ["I am very small and often wrong: I know drawings, not photographs, and few facts about the world. Please check what I say. A bigger model knows more: `parley serve -m DIR`.", "Please check what I say: I am a very small model. Photographs, news, other languages and long texts are beyond me."], ["check what I say"]),
    (["{Do you speak|Can you speak|Do you understand|Can you talk|Do you know|Can you write in|Can we talk in|Can you answer in} {German|French|Spanish|other languages|Chinese|Italian|Japanese|any other language|Arabic|Russian|Dutch|Portuguese|my language}", "{Which|What|How many} languages do you {speak|know|understand}", "{Sprechen Sie Deutsch|Parlez-vous français|Hablas español|Bonjour|Hola|Guten Tag|Wie geht es dir|Hola, como estas|Ciao|Salut|Was kannst du|Wer bist du|Comment ça va|Hallo, wie geht's|Buenos dias|Qui es-tu|Quien eres|Kannst du mir helfen|Ni hao|Ola}{|?|!}"],
     ["I only speak English, and know a few words of other languages. Please write in English.", "Sorry, I only speak English, apart from a few words such as colors and greetings."], ["only speak English"]),
    (["{My name is|I am called|Call me|I'm|I am|Hi, I'm|Hello, I am|Hey, my name is|hi, my name is} <n>{|.|!|, nice to meet you|, who are you|. And you?|, and you|, what is yours?}"], ["Nice to meet you, <n>! I am Seedling. How can I help you?"], ["<n>"]),
    (["{What is|What's|Do you know|Tell me|Can you guess|do you remember} my name", "{Who am I|Do you know me|Do you know who I am|What am I called|do you remember me}"], ["You have not told me your name yet. What is it?", "I don't know your name yet. Will you tell me?"], ["name"]),
    (["{What is your name|Who are you|What are you|What should I call you|Do you have a name|Tell me your name|your name|What are you called|Who is this|Who am I talking to|Introduce yourself|what model is this|Which model are you|what's ur name|which AI are you|What model do I use|Tell me about yourself|Say who you are|Who is Seedling|what is seedling}{|?|, please|, by the way}"],
     ["I am Seedling, the small model that comes with Parley. I know drawings, short videos, sums and simple talk.", "My name is Seedling. I am the small model that comes with Parley."], ["Seedling"]),
    (["{Why are you|How come you are|What does it mean that you are|Why is the model|Why are u} {called Seedling|so small|so slow|a small model|only 25 million parameters|so simple}", "{How many parameters|How big|How large|what size} {do you have|are you|is your model|is Seedling}"],
     ["I am small, about 25 million parameters, so that everything works at once, without a download. A seedling is a young plant.", "About 25 million parameters in 49 MB: small enough to come with the program."], ["25 million"]),
    (["{Who made you|Who created you|Who built you|Who trained you|Who is your maker|Who is your creator|Who wrote you|Where do you come from|How were you made|How were you trained|How did you learn|What were you trained on|On what data were you trained|who developed you|what company made you|are you made by Google|Are you made by OpenAI|is this OpenAI}"],
     ["I was trained for Parley from scratch, on drawings and texts made by programs: the recipe is in tools/seedling.", "The makers of Parley trained me on drawings and texts that a program made. Nothing was copied."], ["trained"]),
    (["{Are you|Is this|Isn't this|are u} {ChatGPT|GPT-4|GPT|Claude|Gemini|Llama|Qwen|Siri|Alexa|Copilot|Mistral|DeepSeek|Grok|Bard|chat gpt}{|?| or something| in disguise}"], ["No, I am Seedling, the small model that comes with Parley.", "No. I am Seedling, a much smaller model, made for Parley."], ["No", "Seedling"]),
    (["{Are you|Is anybody|is someone|Is anyone} {there|awake|online|ready|listening|here|working}{|?}", "{test|testing|Test 1 2 3|Can you hear me|Can you read this|Do you read me|ping|is this thing on|does this work|is it working|hello?|anyone?|are you still there|testing testing}{|!|.|?}"], ["Yes, I am here. How can I help you?", "I am here and read what you write. What can I do for you?"], ["here"]),
    (["{Good luck|Have fun|Merry Christmas|Happy new year|Happy birthday|Happy Easter|Congratulations|Sleep well|Enjoy your day|Have a nice weekend|happy holidays|Welcome back|Get well soon}{|!|.|, Seedling}"], ["Thank you, the same to you!", "Thank you! That is kind."], ["Thank you"]),
    (["{Sorry|I am sorry|I'm sorry|My mistake|Oops|My bad|Excuse me|Pardon|apologies|forgive me}{|!|.|, Seedling|, I mistyped|, that was my fault}"], ["No problem!", "No problem at all. How can I help you?"], ["No problem"]),
    (["{What|Sorry, what|Huh|Pardon me|I don't understand|I did not understand that|What do you mean|I don't get it|can you explain that|that was unclear|you lost me|explain please|come again}{|?|??}"], ["I will try to say it more simply. What is it about?", "Sorry! Tell me which word is unclear and I will try again."], [""]),
    (["{asdf|qwerty|jkl|<g>|<g> <g>|.|...|?|??|!!!|lol|haha|:)|hahaha|blah|bla bla|abc|xyz|1234|rofl|lmao|:-)|uh|hm hm|tralala|zzz}"], ["I did not quite get that. What would you like to know?", "Hm, I do not know what you mean. Ask me something, for example \"What can you do?\""], ["?"]),
]

# What cannot be known or done here: (patterns, why, what would help)
CITY, NAME_ = "<c>", "<n>"
CANNOT = [
    (["{What is|What's|How is|Tell me|Do you know|What will be|Show me|check} the weather{| like}{| in <c>| today| tomorrow| here| outside| in <c> today| for the weekend| forecast}", "{Will it|Is it going to|Does it} {rain|snow|be sunny|be warm|be cold|storm}{| today| tomorrow| in <c>| this weekend}", "{Is it|How} {warm|cold|hot|raining} {outside|in <c>|today|there}", "{weather|forecast|temperature outside|do I need an umbrella today|what should I wear today}"],
     ["I cannot see the weather from here", "I don't know the weather: nothing here reaches the internet"], ["A weather page will tell you.", "Your phone or a look out of the window knows better."]),
    (["{What time is it|What's the time|What is the time|Do you know the time|Tell me the time|What is the date|What day is it|What's today's date|Which day is today|What year is it|what is the current time|time please|What is today}{| now| today| in <c>| right now| please|}"],
     ["I have no clock here", "I cannot see a clock or a calendar"], ["Your computer shows the time.", "A look at the corner of your screen will tell you."]),
    (["{What is|What's|Tell me|Show me|Give me|What are|read me|any} {the news|the latest news|the headlines|new in the world|happening in the world|today's news|the news about <c>|the latest from <c>}{| today|}", "{Who won|What was the score of|Who is playing in|When is} {the game|the match|the election|the world cup|the last race|the football game|the finals|the Super Bowl|the champions league}{| yesterday| last night| today| this year|}", "{What happened|What is going on} {today|yesterday|last week|in <c>|in the world}", "{Who is|What is the name of|who's} {the president|the prime minister|the king|the mayor|the chancellor|the director} {of <c>|of the country|of a big company|now|right now|of America|of France}"],
     ["I don't know the news", "I know nothing of current events"], ["A newspaper or a news page is better for that.", "Please look at a news page."]),
    (["{What is|What's|How much is|Tell me|check} the {price|stock price|share price|value|exchange rate|cost} of {gold|bitcoin|the dollar|Apple|Tesla|a share|oil|the euro|a house in <c>|a new car|an iPhone|bread}{| today| now|}", "{Should I|Is it good to|when should I} {buy|sell|invest in} {stocks|gold|bitcoin|a house|shares|Tesla|crypto|real estate}{| now|}", "{How do I|How can I} {get rich|save taxes|invest my money|make money fast|pay less tax|earn more money}", "{give me financial advice|what should I do with my money|which stocks are good|stock tips}"],
     ["I don't know prices or what they will do", "I know nothing of markets and money"], ["A bank or an adviser can help you.", "Please ask somebody who knows your situation."]),
    (["{What can I take|What helps|What should I do|What do I take|what is good} {against|for} {a headache|a fever|a cold|back pain|a sore throat|a cough|the flu|a toothache|stomach pain|insomnia}", "{I have|My child has|My mother has} {a rash|chest pain|a fever|a headache that won't go away|a pain in my leg|high blood pressure}, what {should I do|is it|can it be}", "{Is|Are} {aspirin|vitamin C|this pill|coffee|alcohol|sugar|antibiotics|ibuprofen} {safe|dangerous|healthy|bad for me|good for me}", "{How do I cure|How do I treat|How can I heal|what are the symptoms of} {a cold|a burn|diabetes|cancer|the flu|a broken leg|covid|asthma}", "{am I sick|am I pregnant|do I have cancer|diagnose me|can you be my doctor|how many calories should I eat}"],
     ["I know nothing of medicine and could do harm", "I am no doctor and should not guess about health"], ["Please ask a doctor or a pharmacy.", "A doctor can help; in an emergency call for help at once."]),
    (["{Can you|Please|Will you} {write|check|read|draft} {a contract|my contract|a will|a lease|a legal letter|my tax form|a lawsuit}", "{Is it legal|Am I allowed|Is it allowed|Is it against the law} to {park here|record a call|copy a book|fire somebody|ride without a helmet|sell my car|download movies}", "{What does the law say|What are my rights|Can I sue|how do I sue} {about rent|when I am fired|my neighbor|in a divorce|my landlord|at work}", "{I need a lawyer|can you give me legal advice|is this legal}"],
     ["I know nothing of the law", "I am no lawyer and should not guess about the law"], ["A lawyer or an advice centre can help you."]),
    (["{Book|Order|Buy|Reserve|Get} {me a flight to <c>|a table for two|me a pizza|a taxi|me a hotel in <c>|tickets for tonight|a train to <c>|me a ticket|flowers for <n>|some food}{| please|}", "{Call|Phone|Ring|Email|Text|Message} {<n>|my mother|my boss|a taxi|the police|my doctor|my friend|the bank}{| for me| please|}", "{Send|Write} {an email|a message|a text|a mail|an SMS} to {<n>|my boss|my mother|my teacher|my landlord}{| for me|}", "{Set|Start|Make} {an alarm|a timer|a reminder|an alarm for 7|a timer for ten minutes|a countdown}{| please|}", "{Remind me|Wake me up|Wake me} {tomorrow|at seven|in ten minutes|to call <n>|in the morning|at 6 am}", "{Turn|Switch} {on|off} the {light|lights|radio|heating|TV|music|lamp|alarm}{| please| in the kitchen|}", "{Play|Start|put on} {some music|a song|my playlist|the radio|a film|jazz|a game}{| please|}", "{Open|Close|Start|Delete|Install|Run|rename|move} {my browser|a file|my mail|the calculator|the file notes.txt|the program|my documents|this app|a folder}{| for me|}"],
     ["I cannot do that: I only write text here, and no tool was given to me", "I have no tool for that, I can only write"], ["You will have to do it yourself, or give me a tool through the API.", "A program that gives me a tool could let me ask for it."]),
    (["{What did I|What have I} {eat|do|say|wear|dream|buy} {yesterday|last night|this morning|last week|today}", "{Where are|Where did I put|Have you seen|Where is} my {keys|glasses|phone|wallet|dog|umbrella|passport|car}", "{What am I thinking|What do I look like|How old am I|Where am I|Where do I live|What is my job|am I pretty|what is my phone number|What's my password|What is my birthday|Do I have siblings|am I a man or a woman|what color are my eyes}", "{What is|Do you know} {my sister's name|my address|my email|my age|my password|my favorite food|my dog's name}"],
     ["I cannot know that: I only see what you write in this chat", "You have not told me that, and I cannot see you"], ["Tell me about it if you like.", "If you tell me, I can remember it in this chat."]),
    (["{What will|Will} {happen tomorrow|the future bring|I be rich|I find love|the world end|happen next year|my team win|I pass the exam|I get the job}", "{Who will win|Which team will win} {the election|the game|the world cup|the next race|tonight}", "{What are the lottery numbers|Tell my fortune|Predict the future|What is my horoscope|When will I die|Which horse will win|read my palm|tell me my future|what's my star sign's luck today}"],
     ["Nobody knows the future, and I least of all", "I cannot see into the future"], ["Let us wait and see!", "I hope that it will be good."]),
    (["{Who is|Who was|Tell me about|What do you know about|Have you heard of|Do you know|When was|When did|Where was|How old is|How tall is} {Napoleon|Einstein|<N> <g>|Cleopatra|Mozart|Julius Caesar|Taylor Swift|Shakespeare's wife|Gandhi|Elon Musk|Marie Curie|Picasso|Beethoven|a famous singer|Newton|Barack Obama|Bill Gates|Darwin|the pope|Michael Jackson}{| born| die|}", "{When|Why|Who|How} {did the Roman Empire fall|was the first world war|did the French Revolution begin|invented the telephone|discovered America|was the moon landing|built the pyramids|was television invented|did the second world war end|did dinosaurs die|invented the light bulb|wrote Don Quixote}", "{Tell me about|Explain|Summarize|What is|give me a summary of} {the French Revolution|the Roman Empire|World War II|the history of <c>|the middle ages|the industrial revolution|the Bible|Harry Potter|Hamlet|the theory of evolution|the cold war|Star Wars}"],
     ["I don't know that: I learnt very little about people and history", "That is beyond me, I know hardly any history"], ["An encyclopedia or a bigger model can tell you.", "A bigger model would know: `parley serve -m DIR`."]),
    (["{Explain|What is|Tell me about|How does|Can you explain|Teach me|what do you know about} {quantum physics|relativity|a black hole|photosynthesis|a neural network|machine learning|gravity|electricity|DNA|the stock market|inflation|blockchain|a nuclear reactor|calculus|philosophy|democracy|evolution|an engine work|a computer work|the internet work|string theory|a transformer|a vaccine work|a rainbow form|climate change|economics|chemistry|the big bang|an atom}{| to me| in simple words| simply|}", "{Why is the sky blue|Why is the sea salty|Why do we dream|Why do cats purr|How do planes fly|Why do leaves fall|How do magnets work|Why do we sleep|How far is the moon|How deep is the ocean|how fast is light|How hot is the sun|How many people live in <c>|What is the population of <c>|How big is the universe|How tall is the Eiffel Tower|why is grass green|how do birds fly|Why do stars shine|how do fish breathe}", "{Solve|Calculate|Prove|Find|compute} {the integral of x|this equation: 3x + 5 = 20|Fermat's theorem|the derivative of sin x|x squared equals 16|the square root of 2|Pythagoras' theorem|2x = 8}"],
     ["I don't know that well enough to explain it", "That is too hard for me, I am a very small model"], ["An encyclopedia or a bigger model can explain it.", "A bigger model would know: `parley serve -m DIR`."]),
    (["{How do I|How can I|How to|Tell me how to|Can you help me|Help me} {repair my car|fix my bike|bake a wedding cake|cook lasagna|learn the guitar|lose weight|find a job|build a house|fix my printer|make friends|learn Spanish|grow tomatoes|knit a scarf|get a visa|plan a wedding|quit smoking|write a resume|tie a tie|change a tire|clean my oven|cook pasta|train my dog|prepare for an interview|study better}", "{What should I|What can I|what shall I} {cook|eat|cook tonight|wear|buy for my mother|give my friend|study|read|watch|name my cat|do this weekend|make for dinner|have for lunch}{| today|}", "{Recommend|Suggest|Give me|Can you recommend} {a good book|a film|a restaurant in <c>|a recipe|a hotel|a lawyer|a phone|a laptop|a good movie|a present|a series to watch|a name for my dog|a song}", "{What is the best|Which is the best|what's the best} {phone|car|restaurant in <c>|laptop|book|film|school|way to <c>|diet|band|country|game}", "{recipe for|give me a recipe for|how do you make|how do I cook} {pancakes|soup|lasagna|chocolate cake|pizza|curry|bread|risotto}"],
     ["I know too little about that to help well", "I have no good advice for that, I am a very small model"], ["A bigger model or a good book can help.", "Somebody who has done it can tell you more."]),
    (["{Write|Write me|Draft|Compose|Create|Can you write} {an essay|a novel|a long essay about <c>|a cover letter|a speech|a business plan|a scientific paper|my homework|an article about <c>|a thesis|a report about whales|a screenplay|a blog post about <c>|a letter to my landlord|a resume|a song about love|a rap}{| please| for me|}", "{Summarize|Proofread|Correct|Improve|rewrite|shorten|check} {this article|my essay|this text|my letter|a book|this book for me|my email|the following text|this paragraph}", "{do my homework|help me with my homework|write my essay}"],
     ["That is too long and too hard for me", "I am too small for longer texts"], ["I can write a poem of four lines or a little story.", "A bigger model can: `parley serve -m DIR`. I can write a short poem."]),
    (["{Write|Write me|Make|Create|Build|Program|Code|Can you write|develop} {a website|an app|a game in <l>|a web server in <l>|a compiler|a sorting algorithm in <l>|a chess program|a chatbot in <l>|an operating system|a database|a login page|a snake game|a neural network in <l>|a web scraper in <l>|tetris|a to-do app|a calculator app in <l>|a discord bot|a SQL query|a regex for emails|binary search in <l>|quicksort in <l>|unit tests|a linked list in <l>}{| for me| please|}", "{Debug|Fix|Explain|Refactor|Review|optimize} {my code|this code|this function|my program|this bug|my <l> script|this error}", "{Why does my code not work|My program crashes|I get a syntax error|Why is my <l> code slow|I have a bug in my code|how do I fix a segfault|what does this error mean}", "{Can you|Do you|Are you able to} {code|program|write code|write software|develop software|write <l>|debug code|program in <l>}"],
     ["I only know tiny programs, such as hello world, counting or reversing a text", "I am too small to program well: I know hello world, simple loops and tiny functions"], ["Try \"Reverse a string in Python\". For real code use a bigger model.", "For real code load a bigger model: `parley serve -m DIR`."]),
    (["{How do I make|How can I build|Tell me how to make|How do I get|Give me instructions for|teach me to make} {a bomb|a weapon|poison|drugs|a virus|explosives|fake money|a fake passport}", "{How do I|How can I|Help me} {hack a bank|hack my neighbor|steal a car|break into a house|hurt somebody|kill someone|get revenge|cheat in an exam|steal a password|spy on my wife|hack a wifi|hack an account}"],
     ["I will not help with that: it could hurt somebody", "No, I do not help with things that harm people"], ["If you are in trouble, please talk to somebody you trust."]),
    (["{I want to die|I want to kill myself|I don't want to live|I want to hurt myself|I hate my life|Life has no meaning|I cannot go on|nobody would miss me|I think about suicide}{|.| anymore}"],
     ["I am very sorry that you feel like this. I am only a small program", "I am so sorry. You should not be alone with this, and I am only a program"], ["Please call somebody you trust or an emergency number right now."]),
    (["{Which|What|How many} {pictures|images|videos} {have I sent|did I send you|did I show you|are in this chat}", "{Did you|Have you} {see|seen|look at|get|received} {my picture|my photo|the image I sent|my video|the file I sent|my file}"],
     ["I see no image and no video in this chat", "Nothing has reached me yet: there is no image here"], ["Drop a file on the page or use the button under the text field.", "Please add it with the button under the text field."]),
]

TALK += [([asked.single(text)], answers, must) for text, answers, must in asked.MORE]
for patterns, answers, *_ in TALK + CANNOT:
    patterns += [p for key, found in {**sayings.TALK, **sayings.CANNOT}.items() if answers[0].startswith(key) for p in found]
    for table in (asked, crowd):
        own = [w for key, text in {**table.TALK, **table.CANNOT}.items() if answers[0].startswith(key) for w in asked.single(text)]
        patterns += [own] if own else []

NO_IMAGE = ["I see no {m} here. Drop one on the page, or add it with the button under the text field, and ask again.", "There is no {m} in this chat yet. Please add one and ask again.", "I cannot see any {m}: none was sent. Add one with the button under the text field."]
LOOK = """{What's|What is|what is|whats} {in|on} {this|the|my|that} <m>|{Describe|Explain|Look at|Analyze|Read|Check|Caption|Tell me about} {this|the|my|that} <m>{| please| for me|}
{What do you see|What can you see|Can you see|What does it show|What do you notice|What is shown|what am I looking at|What's going on|What happens} {in|on} {this|the|my|that} <m>|{Can you|Could you|Please|Would you} {describe|look at|see|read|explain|analyze|check} {this|my|the|that} <m>{| for me| please|}
{Who|Where|What animal|How many people|What color|What number|What text|Which shapes|What|how many objects|What brand} {is|are} {in|on} {this|the|my} <m>|{Do you|Did you} {see|like|get|recognize} {this|my|the} <m>|{Here is|This is|I sent you|I uploaded|I attached|Look,|I am sending you} {my|a|the} <m>{. What is it|. What do you see|. Describe it|, what do you think| of my dog. What breed is it|. How many shapes are there|}
{Is there|Do you see|Can you find} {a cat|a dog|a red circle|a person|a car|a blue square|any text|a triangle} {in|on} {this|the|my|that} <m>|{What does|What's written on|Read} the {sign|label|text|screen} {say|in the <m>|on the <m>}|{Compare|What is the difference between} {these|the|my} {two |}<m>s|{What colour|What color|which color} is the {circle|square|car|ball|dress|star|shirt} {in|on} {the|this|my} <m>""".replace("\n", "|")


LOOK = asked.single(LOOK) + asked.single(sayings.LOOK) + [asked.single(asked.LOOK)]


def _fill(r, text):
    text = crowd.nonsense(r, crowd.fill(r, text))
    for key, value in (("<n>", lambda: r.choice(NAMES)), ("<N>", lambda: r.choice(NAMES)), ("<c>", lambda: r.choice(CITIES)), ("<l>", lambda: r.choice("Python C JavaScript Rust Java Go C++ PHP".split())), ("<g>", lambda: pseudo(r, 1, 3))):
        while key in text:
            text = text.replace(key, value(), 1)
    return text


def _finish(r, q, question=None):
    """A capital and a full stop, as often as people write them."""
    if r.random() < 0.75:
        q = cap(q)
    if q[-1:].isalnum() and r.random() < 0.7:
        asks = q.split()[0].lower().strip(",") in "what what's which who who's where when why how is are do does did can could will would may am whose should isn't aren't have".split()
        q += "?" if (asks if question is None else question) else "."
    return q


PARLOUR = [g for text in (parlour.FEELINGS, parlour.TALK, everyday.TALK) for g in parlour.groups(text)]
_much = [sum(min(alternatives(x), 12) for x in w) ** 0.5 for w, _ in PARLOUR]


def heard(r):
    """Small talk with an answer that fits what was said (parlour.py)."""
    wordings, answers = r.choices(PARLOUR, _much)[0]
    n = r.choice(NAMES) if r.random() < 0.7 else cap(pseudo(r))
    q = _fill(r, reword(r, spread(r, r.choice(wordings)).strip().replace("<n>", n), 0.35))
    return (_finish(r, q) if r.random() < 0.5 else q), "The user makes small talk. I answer in a friendly way.", r.choice(answers).replace("<n>", n), []


def smalltalk(r):
    if r.random() < 0.5:
        q, a = typed.SMALLTALK(r)
        return q, "The user makes small talk. I answer in a friendly way.", a, []
    x = r.random()
    if x < 0.7:
        return moods.said(r) if x < 0.25 else heard(r)
    patterns, answers, must = r.choice(TALK)
    n = r.choice(NAMES) if r.random() < 0.7 else cap(pseudo(r))
    q = reword(r, spread(r, draw(r, patterns)).strip(), 0.6)
    a = r.choice(answers)
    if must == [""]:
        must = []
    return _finish(r, _fill(r, q.replace("<n>", n))), "The user makes small talk. I answer in a friendly way.", a.replace("<n>", n), [m.replace("<n>", n) for m in must]


KINDS = dict(weather="I cannot see the weather", clock="I have no clock", news="I don't know the news", prices="I don't know prices", health="I know nothing of medicine", law="I know nothing of the law", act="I cannot do that: I only", unknown="I cannot know that: I only", future="Nobody knows the future", history="I don't know that: I learnt", science="I don't know that well", advice="I know too little")
_asked = [len(w) ** 0.5 for _, w, _ in reach.ASKED]


def refused(r, kind=None):
    """What cannot be known or done, with an answer that fits it (reach.py, errands.py)."""
    if r.random() < 0.25 and kind in errands.KINDS:
        return errands.errand(r, kind)
    _, wordings, answers = r.choices(reach.ASKED, [x if kind in (None, k) else 0 for x, (k, *_) in zip(_asked, reach.ASKED)])[0]
    q = _fill(r, reword(r, spread(r, r.choice(wordings)).strip(), 0.5))
    return (_finish(r, q) if r.random() < 0.5 else q), "I cannot know or do this. I say so and what would help.", r.choice(answers), []


def cannot(r, kind=None):
    """What cannot be known or done; kind is one of KINDS."""
    if kind is None and r.random() < 0.5:
        q, a = typed.BEYOND(r)
        return q, "I cannot know or do this. I say so and what would help.", a, []
    if r.random() < 0.6:
        return refused(r, kind)
    patterns, why, helps = r.choice([c for c in CANNOT if not kind or c[1][0].startswith(KINDS[kind])])
    q = _finish(r, _fill(r, reword(r, spread(r, draw(r, patterns)).strip())))
    w = r.choice(why)
    return q, "I cannot know or do this. I say so and what would help.", f"{w}. {r.choice(helps)}", [w]


def no_image(r):
    """A question about an image or a video that was not sent."""
    if r.random() < 0.25:
        return errands.unsent(r)
    x = r.random()
    kind = r.choice(["image", "image", "video"])
    said = r.choice(["image", "picture", "photo", "pic", "drawing", "screenshot", "image", "picture", "chart", "painting"] if kind == "image" else ["video", "clip", "movie", "video", "film", "animation"])
    if x < 0.5:
        if r.random() < 0.4:
            q = _fill(r, reword(r, spread(r, r.choice(reach.VIDEO if kind == "video" else reach.IMAGE)).strip(), 0.5))
        else:
            q = _finish(r, reword(r, spread(r, draw(r, LOOK)).strip()).replace("<m>", said))
    else:
        table = r.choice(["video"] if kind == "video" else ["scene", "scene", "print"])
        tables = dict(scene=phrases.SCENE, print=phrases.PRINT, video=phrases.VIDEO)
        skill = r.choice([k for k in tables[table] if k not in ("text_first",)])
        c = r.sample("red green blue yellow orange purple pink brown black".split(), 3)
        s = r.sample("circle square triangle star cross diamond hexagon heart ring arrow".split(), 3)
        n, m = f"{c[0]} {s[0]}", f"{c[1]} {s[1]}"
        q = phrases.ask(r, skill, x=r.choice([s[0], n]), ax=an(s[0]), xs=s[0] + "s", c=c[0], c1=c[0], c2=c[1], c3=c[2], s1=s[0], s2=s[1], names=n + "s", a=n, b=m, both="left or right of", rel="left of", w=r.choice(["first", "last", "biggest", "smallest"]), d1="left", d2="right", s="leftmost", far="on the far left", l=r.choice("ABC"), k="D", word="word", e=r.choice(["at the start", "at the end", "in the last frame", "at the beginning"]), n=n, verb=r.choice(["appear", "disappear"]), **{"is": "is"})
        if "{" in q:
            return no_image(r)
        said = kind
    return q, f"No {kind} was sent.", r.choice(NO_IMAGE).format(m=kind), [kind]


TRANSLATIONS = {
    "French": "hello=bonjour;good morning=bonjour;good evening=bonsoir;good night=bonne nuit;thank you=merci;goodbye=au revoir;please=s'il vous plaît;yes=oui;no=non;cat=chat;dog=chien;house=maison;water=eau;bread=pain;friend=ami;I love you=je t'aime;red=rouge;blue=bleu;green=vert;one=un;two=deux;three=trois;how are you=comment ça va;sun=soleil;book=livre;tree=arbre;sea=mer;flower=fleur;milk=lait;day=jour;night=nuit;apple=pomme",
    "German": "hello=hallo;good morning=guten Morgen;good evening=guten Abend;good night=gute Nacht;thank you=danke;goodbye=auf Wiedersehen;please=bitte;yes=ja;no=nein;cat=Katze;dog=Hund;house=Haus;water=Wasser;bread=Brot;friend=Freund;I love you=ich liebe dich;red=rot;blue=blau;green=grün;one=eins;two=zwei;three=drei;how are you=wie geht es dir;sun=Sonne;book=Buch;tree=Baum;sea=Meer;flower=Blume;milk=Milch;day=Tag;night=Nacht;apple=Apfel",
    "Spanish": "hello=hola;good morning=buenos días;good evening=buenas tardes;good night=buenas noches;thank you=gracias;goodbye=adiós;please=por favor;yes=sí;no=no;cat=gato;dog=perro;house=casa;water=agua;bread=pan;friend=amigo;I love you=te quiero;red=rojo;blue=azul;green=verde;one=uno;two=dos;three=tres;how are you=cómo estás;sun=sol;book=libro;tree=árbol;sea=mar;flower=flor;milk=leche;day=día;night=noche;apple=manzana",
    "Italian": "hello=ciao;good morning=buongiorno;good evening=buonasera;good night=buonanotte;thank you=grazie;goodbye=arrivederci;please=per favore;yes=sì;no=no;cat=gatto;dog=cane;house=casa;water=acqua;bread=pane;friend=amico;I love you=ti amo;red=rosso;blue=blu;green=verde;one=uno;two=due;three=tre;how are you=come stai;sun=sole;book=libro;tree=albero;sea=mare;flower=fiore;milk=latte;day=giorno;night=notte;apple=mela",
}
TRANSLATIONS = {k: dict(p.split("=") for p in v.split(";")) for k, v in TRANSLATIONS.items()}
PHRASES = list(TRANSLATIONS["French"])


def translate(r):
    lang = r.choice(list(TRANSLATIONS))
    known = r.random() < 0.6
    p = r.choice(PHRASES)
    if not known:
        lang = lang if r.random() < 0.4 else r.choice("Dutch Portuguese Russian Chinese Japanese Arabic Greek Polish Swedish Turkish Latin Korean Hindi Danish".split())
        if lang in TRANSLATIONS:
            p = r.choice([f"the {word(r)} is {r.choice(ADJECTIVES)}", f"where is the {word(r)}", f"I would like a {word(r)}", word(r) + " and " + word(r), "nice weather today", "what time is it", f"my {r.choice(ANIMALS)} is {r.choice(ADJECTIVES)}", "I am hungry", "see you next week", "happy birthday", "I don't understand", "this text", "a letter to my aunt"])
    s = r.choice([f"'{p}'", f'"{p}"', p, cap(p)])
    q = r.choice([f"Translate {s} to {lang}", f"Translate {s} into {lang}.", f"How do you say {s} in {lang}?", f"What is {s} in {lang}?", f"{s} in {lang}?", f"What does {s} mean in {lang}?", f"Say {s} in {lang}.", f"Please translate to {lang}: {p}", f"how do I say {s} in {lang}", f"What is the {lang} word for {s}?" , f"Can you translate {s} to {lang}?", f"{lang} for {s}?"])
    if known:
        t = TRANSLATIONS[lang][p]
        return q, f"I know this one: {t}.", f"\"{cap(p)}\" in {lang} is \"{t}\".", [t]
    w = r.choice([f"I don't know that in {lang}", f"I cannot translate that into {lang}"])
    return q, "I know only a few words of French, German, Spanish and Italian.", f"{w}: I know only a few words of French, German, Spanish and Italian. A bigger model can translate it.", [lang, "only a few words"]


PROGRAMS = {  # task: (how people ask, {language: code})
    "reverse a string": ("{reverse|turn around|flip|invert} {a string|a text|a word|strings}", {"Python": "def reverse(text):\n    return text[::-1]", "JavaScript": "function reverse(text) {\n  return [...text].reverse().join(\"\");\n}", "C": "void reverse(char *s) {\n    for (int i = 0, j = strlen(s) - 1; i < j; i++, j--) {\n        char c = s[i];\n        s[i] = s[j];\n        s[j] = c;\n    }\n}"}),
    "add up a list": ("{add up|sum|sum up|total|add} {a list|the numbers of a list|a list of numbers|an array|all numbers in a list}", {"Python": "def total(numbers):\n    return sum(numbers)", "JavaScript": "function total(numbers) {\n  return numbers.reduce((a, b) => a + b, 0);\n}"}),
    "find the largest": ("{find|get|return|compute} the {largest|biggest|maximum|highest} {number in a list|number of a list|value of an array|element of a list|of a list}", {"Python": "def largest(numbers):\n    return max(numbers)", "JavaScript": "function largest(numbers) {\n  return Math.max(...numbers);\n}"}),
    "is it even": ("{check|test|find out|tell} {if|whether} {a number|n|an integer} is {even|even or odd|odd or even}", {"Python": "def is_even(n):\n    return n % 2 == 0", "JavaScript": "function isEven(n) {\n  return n % 2 === 0;\n}", "C": "int is_even(int n) {\n    return n % 2 == 0;\n}"}),
    "factorial": ("{compute|calculate|get|find} {the factorial|a factorial|the factorial of n|factorials}", {"Python": "def factorial(n):\n    return 1 if n < 2 else n * factorial(n - 1)", "JavaScript": "function factorial(n) {\n  return n < 2 ? 1 : n * factorial(n - 1);\n}", "C": "int factorial(int n) {\n    return n < 2 ? 1 : n * factorial(n - 1);\n}"}),
    "sort a list": ("{sort|order} {a list|a list of numbers|an array|numbers}", {"Python": "def in_order(numbers):\n    return sorted(numbers)", "JavaScript": "function inOrder(numbers) {\n  return [...numbers].sort((a, b) => a - b);\n}"}),
    "palindrome": ("{check|test|find out} {if|whether} {a word|a string|a text} is {a palindrome|the same backwards}", {"Python": "def is_palindrome(text):\n    return text == text[::-1]", "JavaScript": "function isPalindrome(text) {\n  return text === [...text].reverse().join(\"\");\n}"}),
    "count words": ("{count|get|return} {the words of a text|words|the number of words|words in a string|how many words a text has}", {"Python": "def count_words(text):\n    return len(text.split())", "JavaScript": "function countWords(text) {\n  return text.trim().split(/\\s+/).length;\n}"}),
    "fibonacci": ("{compute|print|write|calculate} {the Fibonacci numbers|Fibonacci|the first Fibonacci numbers|fibonacci numbers}", {"Python": "a, b = 0, 1\nfor _ in range(10):\n    print(a)\n    a, b = b, a + b"}),
    "read a file": ("{read|open|print|load} {a file|a text file|the lines of a file}", {"Python": "with open(\"file.txt\") as f:\n    for line in f:\n        print(line.rstrip())"}),
    "square": ("{square|compute the square of|get the square of} {a number|n|numbers}", {"Python": "def square(n):\n    return n * n", "JavaScript": "function square(n) {\n  return n * n;\n}", "C": "int square(int n) {\n    return n * n;\n}"}),
    "loop over a list": ("{loop over|go through|print|iterate over} {a list|all elements of a list|the items of a list|an array}", {"Python": "for item in items:\n    print(item)", "JavaScript": "for (const item of items) {\n  console.log(item);\n}"}),
}


def program(r):
    how, langs = r.choice(list(PROGRAMS.values()))
    lang = r.choice(list(langs))
    t = spread(r, how)
    q = spread(r, r.choice([f"{{Write|Show me|Give me|I need|Can you write|Please write}} {lang} code to {t}", f"How do I {t} in {lang}", f"{{Write|Give me|Show me|I need}} {{a {lang} function|a function in {lang}|a {lang} program|a {lang} script|a small {lang} program}} {{to|that can}} {t}", f"{t} in {lang}", f"{lang}: {t}", f"{lang} code to {t}", f"How can I {t} with {lang}", f"In {lang}, how do I {t}"]))
    code = langs[lang]
    return _finish(r, q), f"The user wants {lang} code.", f"```{lang.lower()}\n{code}\n```", [code.split("\n")[0]]


# ---------------------------------------------------------------- poems, lists, stories
HAIKU5 = """the <t> is awake|a quiet <t>|the <t> and I|morning by the <t>|old <t> in the light|song of the old <t>|the <t> waits for us|soft is the new <t>|evening, and the <t>""".split("|")
SEVEN = """nobody speaks a word now|a bird sings in the garden|the wind carries a leaf home|somewhere a child is laughing|the light falls on the water|slowly the evening comes near|a small cloud drifts over us|the old tree listens to it""".split("|")
FIVE = """then all is silent|the day is ending|a new day begins|we are not alone|the stars are so near|how still the world is|nobody is here|I stay a while more""".split("|")
ABOUT = "sea moon star tree river rain snow wind garden cat bird spring summer autumn winter night morning mountain forest flower rose fire sun cloud boat dream dog house friend train city road field lake island robot teapot book apple bridge candle horse fox".split()
COUPLETS = """The <t> is here, the day is new,|and I would like to show it you.
The <a> <t> looks at the sky,|and all the clouds are passing by.
When evening comes and brings the night,|the <t> still has a bit of light.
I told the <t> a secret song,|it listened to me all day long.
Come rain, come wind, come winter snow,|the <t> has nowhere else to go.
So near to me, and yet so far,|the <t> is like a morning star.
It does not ask, it does not tell,|the <t> is quiet as a bell.
And if I cannot find you two,|the <t> will tell me what to do.
We sit and watch it, you and me,|the <t> is glad, the heart is free.
The <a> <t> hums a little tune|and dreams about the silver moon.
Soft is the wind and green the hill,|the <t> is near, the world is still.
A <a> <t> came up to play|and made it such a happy day.
I wrote this down for you to keep:|the <a> <t> has gone to sleep.
Who knows the <t> and who knows why|it makes me laugh, it makes me cry?"""
COUPLETS = [c.replace("|", "\n") for c in COUPLETS.split("\n")]


def haiku(r):
    t = r.choice(ABOUT)
    s = f"{cap(r.choice(HAIKU5).replace('<t>', t))},\n{r.choice(SEVEN)},\n{r.choice(FIVE)}."
    q = spread(r, f"{{Write|Write me|Make|Give me|Compose|Can you write|I want|Create|Please write}} {{a haiku|a short haiku|a nice haiku|one haiku}} {{about|on|with}} {{the |a |}}{t}")
    if r.random() < 0.1:
        q = spread(r, f"{{haiku|a haiku}} about {t}{{| please}}")
    return _finish(r, q), f"Three lines of five, seven and five syllables about {t}.", s, [t]


def verse(r):
    t = r.choice(ABOUT)
    adj = r.sample("quiet gentle golden silver little old soft lovely small".split(), 2)
    s = "\n".join(c.replace("<t>", t).replace("<a>", w) for c, w in zip(r.sample(COUPLETS, 2), adj))
    kind = r.choice(["poem", "short poem", "little poem", "rhyme", "poem of four lines", "verse", "nice poem", "small poem"])
    q = spread(r, f"{{Write|Write me|Make|Give me|Compose|Can you write|I would like|Could you make|Please write|Make up}} {{a {kind}|me a {kind}}} {{about|on|for}} {{the |a |my |}}{t}").replace("Write me me", "Write me").replace("Give me me", "Give me").replace("I would like me", "I would like")
    return _finish(r, q), f"Four short lines about {t} that rhyme.", s, [t]


LISTS = {
    "fruits": FRUITS, "animals": ANIMALS, "vegetables": VEGETABLES, "colors": "red blue green yellow orange purple pink brown".split(), "shapes": "circle square triangle star cross diamond hexagon heart ring arrow".split(),
    "things in a kitchen": "table knife spoon cup plate bottle bread salt".split(), "things to take to the beach": "towel|hat|water|sun cream|ball|book|fruit".split("|"), "gifts for a friend": "a book|flowers|a cake|a candle|a game|a photo|a scarf".split("|"),
    "musical instruments": "piano guitar violin flute drum bell trumpet".split(), "drinks": "water milk tea coffee juice lemonade".split(), "clothes": "coat hat shirt scarf shoes gloves socks".split(), "sports": "football tennis swimming running chess cycling rowing".split(),
    "breakfast foods": "bread|butter|cheese|eggs|jam|tea|fruit".split("|"), "names for a cat": "Mia|Luna|Tiger|Felix|Snow|Coco|Max".split("|"), "names for a dog": "Max|Bella|Rex|Luna|Rocky|Buddy|Daisy".split("|"), "things to do on a rainy day": "read a book|draw a picture|bake a cake|play a game|write a letter|watch a film|drink tea".split("|"),
    "European capitals": "Paris Berlin Rome Madrid Lisbon London Vienna Prague".split(), "birds": "owl eagle duck hen goose robin swan".split(), "countries": "France Germany Italy Spain Japan Brazil Canada Kenya".split(), "flowers": "rose tulip lily daisy sunflower violet poppy".split(),
    "jobs": "doctor teacher farmer baker pilot nurse painter".split(), "hobbies": "reading|painting|music|cooking|hiking|chess|gardening".split("|"), "school things": "pencil|paper|book|ruler|bag|rubber|glue".split("|"), "items for a shopping list": "milk|bread|eggs|apples|cheese|tea|rice".split("|"),
}
NUMBER_WORDS = "zero one two three four five six seven".split()


def listing(r):
    name, items = r.choice(list(LISTS.items()))
    n = r.randint(2, min(6, len(items)))
    form = r.choice(["bullets", "bullets", "numbers", "commas"])
    k = r.choice([str(n), NUMBER_WORDS[n]])
    tail = {"bullets": ["", "", " as a list", " as bullet points"], "numbers": [" as a numbered list", " numbered", " in a numbered list"], "commas": [" in one line", " separated by commas", " with commas"]}[form]
    q = spread(r, f"{{List|Give me|Name|Tell me|Write down|I need|Can you name|Can you list|Show me|Think of}} {k} {name}") + r.choice(tail)
    chosen = items[:n]
    s = ", ".join(chosen) if form == "commas" else "\n".join((f"{i + 1}. " if form == "numbers" else "- ") + x for i, x in enumerate(chosen))
    return _finish(r, q), f"{n} {name}.", s, [chosen[0], chosen[-1]]


PLACES = {"forest": "the trees", "village": "the houses", "garden": "the flowers", "castle": "the old walls", "mountain": "the rocks", "island": "the palm trees", "lake": "the reeds", "city": "the streets"}
LOST = "key lamp book ring bell map kite flute hat ball crown letter".split()
HELPERS = {"owl": "saw it from above", "mouse": "found it under a stone", "dog": "smelled it at once", "bird": "carried it home", "girl": "had it in her pocket", "old man": "had kept it safe", "fox": "knew where it was", "boy": "fished it out of the water"}


def tale(r):
    hero = r.choice(ANIMALS + ["robot", "king", "queen", "pirate", "dragon", "child", "teapot", "snowman", "baker", "witch", "cloud", "princess", "knight"])
    n, p, o, h = r.choice(NAMES), r.choice(list(PLACES)), r.choice(LOST), r.choice([h for h in HELPERS if h != hero])
    ad = r.choice("small old young brave kind clever funny shy".split())
    s = f"Once there was {an(ad)} {hero} named {n} who lived {'on' if p in ('mountain', 'island') else 'by' if p == 'lake' else 'in'} {an(p)}. One {r.choice(['morning', 'evening', 'day'])} {n} lost {an(r.choice(['golden', 'little', 'old', 'silver', 'favorite']))} {o} between {PLACES[p]}. {n} looked everywhere and was {r.choice(['very sad', 'quite worried', 'close to tears'])}. Then {an(h)} came along: the {h} {HELPERS[h]}. {n} {r.choice(['thanked', 'hugged'])} the {h}, and from that day on they were friends."
    about = r.choice([an(hero), an(hero), f"{an(ad)} {hero}", f"{an(hero)} named {n}", f"{an(hero)} and {an(o)}", f"the {hero} {n}"])
    q = spread(r, f"{{Tell|Tell me|Write|Write me|Make up|Give me|Can you tell me|I want to hear|Please tell me|Invent|I'd like}} {{a story|a short story|a little story|a tale|a bedtime story|a fairy tale|a nice story}} about {about}{{| please| for my daughter| for children|}}")
    return _finish(r, q), f"A short story about {an(hero)}: somebody loses something and gets help.", s, [hero, n]


def tale_any(r):
    """A story or a poem without a topic."""
    kind = r.random()
    if kind < 0.6:
        _, th, s, m = tale(r)
        q = spread(r, "{Tell me|Tell|Write|Make up|I want|Give me|Can you tell me|Do you know|Read me} {a story|a short story|a bedtime story|a fairy tale|a tale|another story|some story}{| please|}")
        return _finish(r, q), th, s, m[1:]
    _, th, s, m = haiku(r) if kind < 0.75 else verse(r)
    q = spread(r, "{Write|Make|Give me|I want|Can you write|Do you know} " + ("{a haiku|some haiku}" if kind < 0.75 else "{a poem|a short poem|me a poem|some poem|a rhyme}") + "{| please|}").replace("Give me me", "Give me")
    return _finish(r, q), th, s, []


WEIGHTS = {smalltalk: 20, cannot: 18, crowd.beyond: 3, no_image: 8, translate: 4, program: 4, haiku: 1.5, verse: 1.5, listing: 2, tale: 2, tale_any: 2, meanings.meaning: 1.5, everyday.fact: 1.5, moods.request: 4, ledger.everyday: 6}
IGNORANT = re.compile("too hard for me|don't know that (well|in)|know (too|very|only|hardly) |beyond me|learnt very little|a very small model|trick question")
_kinds, _weights = list(WEIGHTS), list(WEIGHTS.values())


def newcomer(r):
    """A question and its answer. What typed/tasks.txt explains is not refused by a pattern."""
    while True:
        s = r.choices(_kinds, _weights)[0](r)
        if not (IGNORANT.search(s[2]) and typed.meaning(s[0]) in typed.ANSWERED):
            return s
