"""Questions about Parley as people without its words ask them: by their trouble, by what they see, by what they want.

HELP: wordings by what a right answer of helpdesk.TOPICS contains. MORE: topics of the documents that helpdesk.py has not, as (wordings, answer, what a right
answer contains). The answers are from README.md, docs/ and the page's own texts.
"""
import parlour

_HELP = """
= -m DIR
you're sweet but I need a grown-up brain|isn't there anything cleverer to load|the little one can go, I want the big one|how do I get rid of Seedling and take something real|give me the serious model|which line in the terminal brings up a stronger model|my weights are on an external disk, what do I type|I've got a checkpoint lying in /opt/models, next?|how do I tell the server which model to take|start with my own weights|feed it my model|plug in another model|swap your head for a better one|graduate to a larger model|I outgrew you|the demo is over, how do I get the real model|you don't know enough, who does and how do I load it|what do I have to enter so a bigger model answers|please replace yourself|after downloading Qwen, what comes|folder with config.json, what to do with it|where does the path of my model go|how do I pass the model's folder|serve my fine-tune|my company has its own checkpoint, how to run it|I trained a model, can Parley serve it|run <model> <size> from my disk|I want <model> to answer me here, I have it on disk|set <model> up in your place|point it to ~/models/<size>

= Qwen3-VL
would a <model> folder do|what about <model>, any luck|any chance for <model>|does <model> count among the supported ones|is <model> one it knows|which brands of models does it eat|what kinds of nets does the engine know|what model makers are covered|only Qwen or others too|is it Qwen only|does it do mixture of experts|can it run models with experts|are vision models supported|which models with eyes can it run|what can I run on this|who's on the list of models|which LLMs are welcome|can I bring a <model>|is my <model> too exotic|can it digest <model> weights|does it handle <model> <size>|models from other makers?|support for new architectures?

= .gguf
one big .gguf is all I have|from my LM Studio folder, usable?|my models come from ollama|I only find Q4_K_M files|do I have to unpack a gguf|split gguf in three parts, ok?|the eyes of a GGUF are in an mmproj, where to put it|gguf with pictures, how|single file models?|can I drop a gguf in|I used llama.cpp before, can I keep the files|is a gguf enough or do I need a tokenizer too

= --models-dir
a shelf of models to choose from|I keep ten models in one directory|let everyone pick the model they like|can the page show a menu of models|I want to hop between two models|switch brains in the middle of the day|several at once in memory|hold two models ready|change the model without stopping|can clients choose the model by name|a list of all my models in the page, how|all my models, one server

= parley pull
where do the big ones come from|I have no model at all yet, only you|get me a model from the net, how|fetch Qwen for me|is there a command that downloads|must I download by hand|how do weights get on this machine|hub download|from hugging face straight to here?|ollama pull, but for Parley|grab a <size> from the hub|how do I get hold of <model>|where do people get models|download <model> how|no weights on my disk

= /v1/chat/completions
how can another program ask you things|I'd like to use you from my own software|which door do programs use|what's the web address for code|I write a small tool, how does it reach you|talk to it over HTTP|send questions from a cron job|hook it up to my website|does it offer an interface for machines|how do I integrate this with my app|my spreadsheet should ask you, how|can a robot use you|can my smart home ask you|call Parley from {PHP|Ruby|Rust|Go|Java|C#|bash|a microcontroller|R|Excel}|programmatic access|POST to which URL|host and path of the endpoint|which routes can I hit|JSON over HTTP?|where's the swagger|is the API documented|web service address please

= 8080/v1
my code imports openai, what do I change|just swap the base URL?|openai.OpenAI(base_url=...) with what|does <lib> work with it|connect <lib>|how do I set up <lib> for this|<lib> asks for a base URL|<lib> wants an endpoint and a key|which URL goes into <lib>|make <lib> talk to Parley|reuse my ChatGPT scripts|same protocol as OpenAI?|drop it in instead of OpenAI|our chatbot uses OpenAI's library, can it use this|api_base?|replace api.openai.com by what

= /v1/messages
I write with Anthropic's library, does that work|point the claude sdk at my own server|messages api?|Claude Code with a local model, possible?|my tool speaks only to Anthropic|the anthropic python package, which url|x-api-key header like Anthropic?|can the claude cli use this

= /v1/responses
does it keep a socket open|ws or http?|a live connection for my app|how do I stay connected|I prefer sockets|push the tokens over a socket|which ws:// address|real time two-way channel?|is there something like socket.io

= curl http
a line for the shell to try it|smallest possible request|how would I test the endpoint by hand|show me the JSON I have to send|what does a call look like in practice|copy-paste example please|try the API from bash|wget or curl, what line|one request as an example

= PDF and text
will it read my thesis|may I hand you my tax letter as a scan|spreadsheets okay?|slides okay?|is docx alright|do you read Word|can it open my {<file>|holiday clip|old AVI|phone video|e-book}|what can I show you besides photos|what sort of things can I throw at it|is there something you can't open|formats?|file endings that work|which video formats|which picture formats|my camera makes MOV|I have a TIFF|is webp fine|do you eat GIFs|text in a .md file|source files ok?|can I give it a whole book|does it do PDF|PDFs with images?|can it read PowerPoint|Excel sheet, readable?

= Drop the file
I want you to see something, how|my picture has to get to you somehow|the photo is on my phone, how do you get it|how do I let you look at my screen|how does one put a photo in here|where do pictures go|where's the thing to add pictures|no idea how to attach|can I drag it over|ctrl v works for images?|put a clip in, how|I took a screenshot, where do I paste it|I'd like to hand over a file|show you my drawing, how|which button adds a file|got a scan for you, where does it go|insert my holiday picture

= Ctrl C
it's running and I want it to end|finish the program|end the whole thing please, how|I'm done for today, how do I turn the server off|stop Parley from running|shut everything down|how do I close it properly|the server won't go away|how to kill the process nicely|power it down|which keys quit it|how do I get my terminal back|pull the plug on the server, how|take the server down|unload everything and exit|leave the server program

= Esc
you're rambling, which key|how do I shut you up|it keeps writing and writing|cut it short|make it stop in the middle|I've read enough of this answer, stop it how|halt!|is there a brake|can I break in while you write|abort this reply, please, how|interrupting you, is that possible|no more of this answer|how do I cancel what it's doing now

= between you and this server
are there eyes on this|who listens in|can my wife read this|does my employer see this|can the admin read along|can the provider see it|is it safe to tell you about my illness|may I type in bank details|are my photos kept by somebody|do you gossip|what happens with what I tell you|does anything go over the internet|is there tracking|are there cookies that spy|who gets my data|is this data given to advertisers|can the police get my chats|is it GDPR-proof|confidential stuff, okay here?|company secrets?|is that just for us two|just between us?|promise you won't tell|do you tell the makers what I write|are my questions used to train anyone|do you log me|is there a log of prompts|does it send statistics home|will my mother find out

= --history DIR
are the talks gone when I switch off|will I find this tomorrow|where do old talks go|where's last week's chat|I closed the tab, is it lost|does clearing the browser wipe my chats|another browser and my chats are gone, why|my chats should be on phone and laptop|can two devices see the same chats|keep the talks on the server|central storage of chats|how long are chats kept|do you keep a diary of us|is there an archive of chats|which file holds my chats|restart and everything's gone?|see the chat from this morning

= Export all
take my chats to another computer|save this talk as text|can I print our talk|make a copy of everything we said|chat as a document|send this chat to a friend as a file|backup?|move from ChatGPT with my chats|bring my old chats in|import chats from Open WebUI|dump of all conversations|store this conversation on a stick

= Ctrl Shift Backspace
this talk should vanish|make this chat disappear|away with this chat|nobody should find this chat, remove it|clear the evidence, delete this talk|get rid of all that we said|into the bin with it|wipe it|how do I trash this|erase|the list is full of junk chats, how do I remove one

= Ctrl Shift O
another topic, clean start|blank page please|I'd like to begin anew|forget all that, new talk|open a second conversation|new subject, new chat|how do I start from scratch|empty the page for a new question|turn over a new leaf

= Ctrl K
I once asked about {a recipe|trains|the roof}, how do I get back there|somewhere in here you told me about {bees|a film|a sum}|where's that old talk about {money|dogs|school}|find what I wrote last month|look through my old chats|search my talks for a word|I lost a chat, how do I locate it|needle in a haystack: an old chat

= pencil
I spelled it wrong, can I still change it|left out a word in my question|asked the wrong thing, can I go back|reword my last question|roll back to my question|give me a different answer to the same|I don't like that answer, another|roll the dice again|second try please, which button|redo?|can I have the earlier answer back|versions of an answer?|correct my prompt afterwards

= Ctrl /
work without a mouse|keys for lazy people|which keys do what|quick keys?|key commands|I like keyboards, what can I press|is there a shortcut for a new chat

= likeliest
how hot should it be set|the slider from calm to wild|how do I get wilder answers|tame its imagination|what if I set it to zero|it's too random|always the same boring answer, how do I spice it up|more fantasy please, which setting|make it stricter|what's the degree thing in settings|cold or hot settings|temperature 0.7 or 0.2?|why 0.3

= top-k keeps
what do k and p stand for|the p and k numbers|those min and top sliders|nucleus what?|should I leave top p alone|explain the sampler|what do these probabilities do

= less likely
it says the same thing over and over|stuck in a loop|it stutters|avoid echo|how do I keep it from repeating|penalty for what|what's being punished by the penalty

= same seed
I want exactly the same text again|repeat a result|why's the answer different each time|how do I make it predictable|number for the randomness|reproduce an answer

= whole chat
speak like a grandmother all the time, where do I write that|it should always be polite, where do I say so|tell it once and for all how to answer|standing orders|permanent instruction|general rule for the chat|give it a character|let it play a teacher all the time|always answer in one sentence, where do I set that|where do I put the task|instructions that hold for every answer|how do I give you a personality

= 2048 tokens
it stops in mid-sentence|half a story and then nothing|the end is missing|why did you stop there|it always quits after a page|I want more than a page|cap the length|answers as short as possible, is there a limit to set|how many words may an answer have|allow longer answers|truncated output

= Think
let it ponder first|make it consider before it talks|can it take its time to think|what's the Think thing at the bottom|hide the thinking|it thinks too long|skip the reasoning|does pondering help|is there a slow and careful mode

= --ctx-size
how far back does it remember|at what point do you forget|how much text can I paste|does a book fit|how many pages can it hold in its head|it says the conversation is longer than the model can read|chat too long, says the page|the bar says context nearly full|what's the ring with percent|make its memory longer|32k, 128k, what is it here|will a 100 page document fit

= piece of text
what's a token anyway|tokens, what are those|is a token a word|they count in tokens, why|the number of tokens, what does that tell me|token = ?

= --port 8081
bind failed|it can't bind|something else sits on that port|two servers on one machine|another door than 8080|I need it on {443|8000|3001|9999}|change the number after the colon|my router uses 8080|port conflict

= --host 0.0.0.0
I'd like to chat from the sofa with my tablet|my phone should see the page|serve the whole flat|let grandma's computer use it|only this machine can open it|connection refused from another PC|visible in the office|put it on the LAN|use it on <app>|how does <app> get to this page|let the class use it from their laptops|from work to my server at home|open to the outside

= --api-key-file
how do I keep people out|only we two should get in|a lock on the server|I want a password|token for clients|it says wrong key|it says key needed|the page wants a key from me|unauthorized, says my script|protect it from the neighbours|members only|how do I give each user a key|no strangers please

= CPU only
my machine is a potato|no fancy card in here|would a graphics card make it faster|I've got an RTX, can it help|two GPUs idle here|does it want Nvidia|is a normal processor enough|AMD or Intel?|ARM board?|M1?|what kind of machine does one need|does it use the NPU|what chip is best

= --quantize
it comes out one letter at a time|snail pace|I could type faster than that|I fall asleep waiting|with the <size> it takes for ever|how do I give it wings|speed!|how to squeeze more out of my CPU|more words a second|what slows it down|turbo?|use all my cores|my fans scream and it's still slow|three minutes for one answer, help|could it hurry up|quicker with less precision?

= parley inspect
does a <size> go into 16 GB|have 8 gigs, what can I run|is my RAM enough for <model>|how much memory will <model> eat|it swaps like mad|memory hog, how do I limit it|can't allocate memory|it says the weights do not fit|will it fit?|how large a model can I afford with 32 GB|keep it below 4 GB|memory needs of a model, where shown|before loading: how much RAM

= 8 or 4 bits
what do q8 and q4 stand for|fewer bits, what does that mean|is 4 bit much worse|should I squeeze the model|make the weights smaller|does quantizing hurt|store the quantized model|convert it once and for all

= ./scripts/run
I just cloned it, now what|how do I get this going on my own box|steps to have it at home|from zero to chat, how|how does one build it|compile?|what must I install before|where's the installer|first command?|my <who> wants it too, how do we set it up|make it run|how do I start Parley tomorrow|how do I launch it again

= systemctl enable
should be there whenever the box is on|start with the machine|keep it alive in the background|survive a reboot|I don't want to start it by hand each day|daemon?|as a service please|run on boot|always running, how

= proxy_buffering
I have a domain with https, put it behind|nginx in front|with a certificate|the padlock in the browser, how|stream stops behind my proxy|reverse proxy settings|Traefik or nginx?|tls in front of it

= parley health
in a container?|podman run?|Containerfile?|k8s probe|is there a way for a script to see if it's up|heartbeat url|uptime check|health endpoint

= MIT
what's the catch, is it free|may I build a product on it|do we need a licence at our company|is it freeware|can I fork it|can I change it and sell it|is it paid|trial version?|how do you make money|free as in beer?|licence terms please

= written in C
what's it made with|which language did the programmers use|is it a Python thing|under the hood: what language|written from scratch in?|what's the code like

= chat server
what have I got here|what did my nephew install|what's that page in my browser|what's this whole thing about|Parley, what's that|in plain words, what is Parley|what is it good for, this Parley|describe the product|what's the difference between Parley and you|who is Parley and who is Seedling

= --mcp-config
plug my own tools in|can the page use tools|let the model use a calculator in the page|let it read a folder of mine|let it fetch pages|connect a tool server|MCP, does that ring a bell|give the model hands|how do I switch on its tools|a calculator for the model, how

= `tools`
my app has functions you may call|hand over function definitions|describe my function to the model|are tool calls possible|does it do function calling like OpenAI|let it call my code|agents with Parley?|how do I let a model use my API

= response_format
the answer must be parseable|my parser chokes on your prose|I need clean JSON|fill my form as JSON|give me exactly these fields|strict output format|force a shape on the answer|only a fixed set of answers allowed|machine readable please, how

= stream
word by word over the API|don't make me wait for the whole answer|show text while it's made, in my app|SSE?|stream=True works?|chunks?

= parley run
just the console, no browser|I live in the terminal|ask from a script|pipe a file into it|one question, one answer, in the shell|use without the web page|ssh only, can I chat|text mode?

= no sound
can you hear me|I'd rather speak than type|say it aloud|do you have ears|I've a recording of a talk|listen to my song|voice message for you|podcast, can you sum it up|does it understand speech|mp3 and wav?|is there sound in videos for you|can you talk with a voice|blind user here, can it read to me|dictation?

= do not learn
will you know me next week|do you learn from your mistakes|I corrected you, will you remember|do you get smarter|can I teach you my name for ever|keep that in mind for all time|remember me in the next chat|what do you retain from today|are you trained on our talks|can I improve you|could I train you with my recipes|how do I make you learn something

= docs/options.md
what can be adjusted|where are the knobs|I want to tweak things|where do I change defaults|is there a file with settings|environment variables?|what does --help not tell|which flags exist|where are preferences|the gear, where is it|default values of everything|config for the server

= Theme
it's blinding|my eyes hurt from the white|make it black|night theme|could the letters be bigger|I can't read that, too tiny|larger print please|my glasses are lost, make text big|other look for the page|dim the page

= docs/limits.md
is my film too long|is 3 GB too much|how many pictures in one go|what's the biggest photo|it said the file is larger than the server accepts|too big, says the page|cap on uploads|how long may a video be|how much may I send|any upper bounds

= --parallel
can our whole class use it together|two people at once?|we are five in the office|does it queue|it says the server is busy|its queue is full, says the page|429?|why must I wait my turn|how many at a time|does it slow down with many users|more users please

= README.md
something to read about it|is there a booklet|where's it all written down|where do I look things up|instructions?|I like manuals|a guide for dummies|where's more about this|man page?

= SECURITY.md
I think I found a hole|it's broken and I want to tell someone|where do I send a bug|whom do I write about a fault|is the thing safe|can it be hacked|how do I join the developers|wish list?|report something

= ./scripts/test
how do I know the build is good|run all checks|self test?|is there a test run|verify everything works

= Debian 12
on my wife's Mac?|Windows 11 here, any chance|does it like Ubuntu|Chromebook?|on my phone itself?|raspberry?|only Linux?|what do I need to run it, system-wise

= /metrics
how busy is it|numbers for grafana|see who's being served|load and throughput, where|statistics for the boss|monitor the thing

= /v1/embeddings
turn text into vectors|for semantic search|vectors for my documents|similarity of texts|RAG needs vectors, got any

= guesses the next tokens
what's the draft thing|why does it say drafts kept|what are drafts|what's mtp|how can it guess ahead|speculative what

= --cache-ram
why's the second answer quicker|what does the cache do|what's remembered of my prompt|empty the cache|a bigger cache, how|KV what?|prefix what?

= --media-domains
my picture is on a website, just a link|pass an http link of an image|url instead of file in the API|it refuses my image url|remote media disabled, it says

= frames
do you see each moment of a clip|how closely do you watch|how many pictures a second do you take from a film|is fast movement lost on you|does it skip frames|more frames please

= offline
on the plane, without wifi|in a cabin without net|when the internet is down|no connection at all, still fine?|air-gapped machine?|does it call any server|can I pull the network cable

= side by side
which model is better, let me see both|pit two models against each other|same question to two|compare answers|a duel of models

= seven languages
can the buttons be Spanish|menus in Chinese?|is there a German version of the page|page in French please|my mother needs it in Arabic|other language for the surface|Japanese interface?

= http://127.0.0.1:8080
what do I type in the browser|the page won't come up|where's the chat in my browser|which link do I click|localhost what?|blank page|cannot reach the page|how do I open the window with the chat

= parley doctor
it broke|it fell over|it won't come up|it died on me|red text in the terminal|strange message at start|it complains about something|nothing works any more|since the update it's dead|how do I find the fault|something's fishy with the setup

= parley --version
am I behind|newer one out?|how old is my copy|which release is it|get the newest|refresh the program|what changed lately

= button that copies
get the poem into my mail|take that text elsewhere|how do I grab your answer|put this in Word, how|pick up the code|clipboard?

= -m DIR
nice toy, now show me the real thing|my nephew says there are cleverer models, how do I get one in here|I put the files of <model> into a folder, and now|the server only offers Seedling, where's my own model|what comes after `parley serve` so that another model answers|I'd like to replace this baby model|you keep saying you're too small, so how do I fix that|upgrade me to something with more brains|is it hard to change the model? how|open my checkpoint|make <model> the default|model path option?|DIR of the checkpoint, where do I write it|tell Parley to serve <model> from /srv/models|the answers are poor, I want to use <size>|run something decent please|other brain please

= Qwen3-VL
I wonder whether <model> would start|is there a list of families|any model that isn't Qwen?|what about models from Mistral or Google|does the engine know Gemma|could it take IBM's model|which safetensors are fine|chinese models?|is GPT-OSS ok here|I've got an old Llama 2|small models like SmolLM?|vision models other than Qwen?|new model came out yesterday, will it load

= .gguf
q4_k_m.gguf lies in my downloads|the file extension is gguf|quantized file from the hub, fine?|may I serve a single file instead of a folder|it's a GGUF with vision|unsloth ggufs?|bartowski's files?|can it open what llama.cpp opens

= --models-dir
I'd like a dropdown of models|give users a choice|one for code, one for chat, both available|how do I name a model in a request|several folders of models|which models does the server offer, how do I add some|two brains, one page

= parley pull
is there a shop for models|where do I click to download a model|one command to get a model|I've fast internet, fetch me a <size>|do models cost money to download|pull from a hub how|get <model> without a browser|no folder yet, just the name ORG/NAME

= /v1/chat/completions
my little script wants to talk to you|a button on my site should ask you|I'm writing a plugin, where do I connect|ask you from a shortcut on my phone|the machine-readable way in|http address for developers|which endpoint answers chats|does it have a web API|how would a program phone you|I need the URL for requests|chat endpoint?|interface for my code please|use it as a backend

= 8080/v1
I set OPENAI_API_BASE to what|langchain config?|my no-code tool has a field 'OpenAI base URL'|custom OpenAI endpoint in my editor|use with <lib>, settings please|which model name and url for <lib>|our app was made for GPT, can it switch to this

= PDF and text
may I show you my contract as PDF|read my notes.txt|is a .pages file ok|scan of a letter?|my homework is a Word file|can I drop in a whole folder of pictures|does it take animated gifs|phone photos in HEIC?|a .mov from my iPhone|my slides for tomorrow, can it read them|odt?|is csv fine|an e-book?|what may a file be called at the end

= Drop the file
no button for pictures that I can see|I'd like your view on a photo, how do I give it|from my gallery into the chat, how|snipping tool picture, how do I insert it|how do I add the video from my camera|do I drag or click for pictures|show you something on paper|attach my chart|where does one put files in

= Ctrl C
I started it in the terminal and can't stop it|how do I leave the serving mode|done for tonight, shut the server|finish Parley|it occupies my terminal|how do I end what scripts/run started|stop the engine|exit, how|abort the program

= Esc
too much text, make it stop|I asked the wrong thing and it answers on and on|the red button, where|cut the answer off|how do I get it to be silent|stop in the middle of the poem|quit writing, please

= between you and this server
I'm a lawyer, may I paste client data|is my diary safe with you|nobody else reads this, right|does some company get my words|are there microphones or logs|could hackers read our chat|is it like ChatGPT that keeps everything|I don't want my photos on the internet|is it all local|who's watching|does it report me|do my words stay in my house|patient data, allowed?

= --history DIR
my chats vanished|I opened another browser and it's empty|are chats in the cloud|where on disk are my talks|can I get back what we said on Monday|will it all be here after a restart|private window: are chats kept|same chats for work and home computer|save the history centrally

= Export all
copy all chats to a stick|a JSON of my chats|I want a file of this chat for my records|hand this talk to my lawyer|new computer, same chats, how|load chats that I saved before|from another chat program into this one|turn the chat into a document

= Ctrl Shift Backspace
throw it away, this talk|I regret this chat, remove it|clean my list|get rid of the oldest chat|my wife must not see this chat, remove it|how does one empty the history

= Ctrl Shift O
let's start with an empty page|how do I begin something new|this chat is messy, a new one please|new topic|restart our talk

= Ctrl K
I can't find the chat about {my boat|the wedding|our trip}|which chat was that with the {recipe|poem|sum}|find a word in all chats|search field?|look up an old answer

= pencil
oh no, I wrote it wrong, can I alter it|change one word and ask again|the answer was bad, new try|edit?|go back one step and ask differently|let it answer once more|I'd like to see another version

= Ctrl /
which keys should I learn|hotkey list|the mouse is broken|fast ways with keys|keyboard help

= likeliest
what number should I choose for creativity|how do I get the most exact answers|less crazy please, which knob|the setting called temperature|what's a good temperature for facts|is 1.0 too high|more surprising poems, what do I turn up

= whole chat
how do I make it always answer in rhyme|set the tone for all answers|where do I tell it who it is|I want a strict teacher, where do I set that|it should never use emojis, where do I write it|instructions at the start|role for the assistant|how do I tell it about my company once

= 2048 tokens
the poem has no end|it breaks off|answer unfinished|only half of the list came|is there a maximum of words|let it write more|why so short|limit reached?

= Think
what does it do when it thinks|should I let it think|reasoning on or off for sums|the button with Think on it|make it reason|it thinks aloud, can I turn that off

= --ctx-size
I pasted a long text and it refused|how long can our talk get|why can't it take my whole book|the counter says 30000 of 32768|room for more text?|what's the window of context|raise the number of tokens it can read|does it lose the start of the chat

= --port 8081
another program has that port|it can't start because of 8080|I want it on port 80|second instance, which port|choose the port|port taken

= --host 0.0.0.0
my colleague across the hall wants in|mobile phone and PC in the same wifi|open it on the smart TV|is it reachable from the garden|the other PC gets no answer|how do I let the kids' tablets in|serve it to the whole school

= --api-key-file
how do I give it a password|only my family may use it|the page says the key is wrong|where do I type the key|who hands out keys|is a login possible|stop others from using my server

= CPU only
which computer should I buy for it|will my laptop from 2015 do|it says no GPU needed, true?|does my gaming card help|Intel graphics, enough?|can it use Apple's chip|is it slow without a card|cluster of old PCs?|does it need a server machine

= --quantize
I wait and wait|it's like watching paint dry|every answer takes minutes|my old PC sweats|how do I speed this up|is there a fast mode|tokens trickle|less waiting, how|what makes it quick

= parley inspect
my PC froze when I loaded <model>|how many gigabytes for a <size>|is 32 GB plenty|it was killed while loading|it needs more RAM than I have|fit a bigger model into less memory|will <model> run on 16 gigs|check before loading whether it fits|RAM?

= ./scripts/run
friends want it too, what do they type|I have the source code, and now|first start, how|how do I set this up on a fresh Debian|what do I do after git clone|steps please, I'm a beginner|how do I open Parley again after a reboot

= systemctl enable
after a power cut it should come back|it should always run|start it without me|make it a background service on my server|boot and forget

= MIT
our firm has lawyers, what licence is it|does somebody want money|can I put it on our product CD|must I name the authors|free for schools?|price list?|may I teach with it|can I host it for customers

= chat server
my son left this running, what is it|I see a page called Parley, explain|who or what is Parley|what does one need Parley for|it says Parley on top|is Parley a company|why would somebody use Parley|what's the point of this page

= cannot draw
make me a picture of a <any>|I need an illustration|could you sketch my <pet>|paint something|draw the <any> from my story|I'd like an image of <c>|do you make pictures too

= cannot go online
can you look at websites|do you have internet|search something for me|what does the web say about <past>|google <buy> for me|are you online at all

= no sound
there's music in my video, do you hear it|I sing, you listen|voice chat?|my recording of a lecture, can you write it down|talk to me with a voice|my mic is on, do you hear|whistle recognition, lol

= do not learn
will you remember what I taught you|next time, will you know my name|are you smarter tomorrow|can I train you on my mails|do you improve when I correct you|is what I type your teaching material

= docs/options.md
I want to change something, where|list of switches|where is everything set|what options does serve have|what's the config called|adjust the defaults

= Theme
white burns my eyes at night|can I have it dark|the letters are so small|my mother can't read it, bigger please|change the look|is there a night look

= docs/limits.md
my film is 2 GB|can I send twenty pictures|too large, it says, how large may it be|what is the maximum|biggest file?|limits of uploads

= --parallel
a class of thirty, possible?|it makes me wait in a queue|two of us at once?|how many requests in parallel|server is busy, it says|more people at the same time

= README.md
where do I read about all this|is there a book about Parley|help pages?|documentation, please|beginner's guide?|where do I learn more

= parley doctor
it won't start any more|it crashed, what do I do|error at start|something's wrong with it|how do I repair it|the thing is dead|it worked yesterday|a message I don't understand in the terminal

= http://127.0.0.1:8080
where do I see the chat|which address|the browser shows nothing|I started it, and where is it|page not found|how do I open the chat page|localhost refused to connect

= frames
do you see every second of my film|how do you look at videos|is it one picture or many from a video|how many frames|can you see quick moves

= Debian 12
I only have Windows|works on Mac?|can my iPad run it|is it for Linux only|which Linux|does it install on Ubuntu

= response_format
I need valid JSON each time|answer in a given form, in my program|schema for answers?|how do I force a structure|make answers parse

= `tools`
can my program offer you tools|tools over the API?|how does function calling go here|pass a list of functions|let the model call my functions

= seven languages
German buttons please|can my grandma have it in Spanish|the menus are English, change that|which languages has the page|Arabic page?

= offline
no internet at my cabin, does it go|does it run without net|must I be online|works in a plane?|internet is down, still there?

= button that copies
how do I take your text with me|copy the poem|copy to my letter|the code into my editor, how

= parley --version
which version|how do I update|is this the latest|what's new in it|update Parley
"""

_MORE = """
= Turn on "Dictate" with the microphone at the text field: the browser's own engine listens, where it has one. It may send your voice to its maker; I myself hear no sound. ## Dictate
is there a microphone button|how do I dictate|typing is hard for me, can I speak my question|where is dictation|the mic does nothing|who hears me when I dictate|does my voice leave the computer|speak instead of keys, how|turn on the microphone|my hands hurt, can the page listen

= Open the menu of an answer and choose "Read aloud": the browser reads it, where it can. ## Read aloud
read the answer to me|can the page read it out|I can't see well, can it be read to me|read aloud, where|let the computer say the answer|where's the speaker button|stop reading aloud, how|text to speech on the page

= A temporary chat is not kept: press "Temporary chat" at the top. It is gone when you leave it. ## emporary chat
incognito mode?|a chat that leaves no trace|I don't want this to be saved|private window inside Parley?|chat without saving|can a talk vanish by itself|secret chat|talk off the record|a chat nobody finds later|temporary chats, what are they

= In the list of chats open the menu of one, "Share a link". With `--history` the server gives a link to read it; it can end after a day, a week, or never. ## Share a link
share this chat with <n>|show my talk to a colleague|a link to our conversation|can others read a chat of mine by link|how do I send someone this chat|publish this chat|take a shared link back|who can open the link|share a conversation

= Yes: folders, pins and an archive. Open the menu beside a chat in the list at the left. ## Open the menu beside a chat
sort my chats into folders|can I pin a chat|keep an important chat on top|archive old chats|tidy up my chats|group the chats|rename a chat|how do I change a chat's title|give this chat a name|put chats away without deleting

= Keep prompts that you use often under "Prompts", and write / in the empty text field to use one. ## write / in the empty
save a prompt for later|I type the same thing every day|prompt templates?|prompt library|text snippets|reuse a question|what does the slash do|my own commands|store my favourite prompts|presets of questions

= `parley chat` talks in the terminal; /help lists its commands, and `--connect http://HOST:PORT` uses a server that runs. ## parley chat
a conversation in the terminal|chat in the console with memory|interactive mode on the shell|repl?|talk to a running server from the terminal|terminal chat|what is parley chat|slash commands in the terminal

= `parley list` shows the models of this machine, and `parley remove NAME` deletes one. ## parley remove
which models have I downloaded|delete a downloaded model|free the disk of old models|uninstall a model|list my models|my disk is full of models|where did the pulled weights go|remove weights

= `parley status` says what the server of this machine does, and `parley stop` ends it. ## parley status
what is the server doing right now|see if it runs from another terminal|stop it from another window|is it running in the background|state of the server in the shell|parley stop|how do I ask the running server how it is|end a server without its terminal

= `parley bench` measures how fast a model reads and writes here; `--full` takes minutes. ## parley bench
how fast is my machine with this|benchmark|measure tokens per second|speed test|compare q8 and q4 speed|is my CPU good at this, test

= `parley convert MODEL OUT --quantize q8` saves the quantized weights, so that the next start needs no quantizing. ## parley convert
save the quantized model|make a smaller copy of the weights|convert a checkpoint|store q4 on disk|write out a quantized model

= The first start with `--quantize` quantizes the weights and keeps them in a cache, ~/.cache; the next start is quicker. ## ~/.cache
why does the first start take so long|starting takes ages the first time|what is being quantized at start|second start is faster, why|where is the quantized copy kept

= One model answers at a time. `--models-max N` keeps several in memory, `--pin NAME` keeps one there, `--idle-unload SECONDS` lets others go. ## --idle-unload
unload a model after a while|free memory when nobody asks|keep one model always loaded|the other model is being thrown out of memory|switching models takes long|load on demand?

= `--upstream NAME=URL` lets models of another server answer here as NAME/ID; `--local-only` sends nothing away. ## --upstream
use a model on another machine|can Parley forward to vLLM|put a hosted model behind it|connect a second server|proxy to my GPU box|big model on the GPU server, small one here|does it send my words to another server|keep everything local, which option

= 401 means that no valid key came with the request: send it as `Authorization: Bearer KEY`. ## Bearer
HTTP 401|what does 401 mean|401 unauthorized from my script|how is the key sent|which header holds the key|invalid api key error|authentication error in the client

= 429 means that the queue is full: wait as long as `Retry-After` says, or give the server a longer `--queue`. ## Retry-After
HTTP 429|what does 429 mean|too many requests error|rate limit?|my client is told to come back later|why am I rejected when many ask

= 413 means that the request is too large: send fewer or smaller images, or raise `--max-body`. Large files are uploaded first, POST /v1/files. ## --max-body
HTTP 413|what does 413 mean|request entity too large|body too large error|payload is refused|upload by API too big|how do I send a large video over the API

= 503 means that the server is loading, ending or out of memory. GET /health says when it is ready. ## GET /health
HTTP 503|what does 503 mean|service unavailable|model is still loading, what now|dot is yellow, why|when is it ready|how long does loading take

= 403 is for pages of other origins: name them with `--allowed-origins`. A strange host name gives 421, see `--allowed-hosts`. ## --allowed-origins
HTTP 403|CORS error|my web page may not call the server|blocked by CORS policy|cross origin request refused|what does 421 mean|misdirected request|my own site should call the API from the browser

= 400 with `context_length_exceeded` means that prompt and answer do not fit the context: send less, or start with a larger `--ctx-size`. ## context_length_exceeded
HTTP 400|context_length_exceeded?|prompt too long error|what does error 400 mean|my request is refused as too long|maximum context length exceeded

= The dot beside the model's name is the connection: green is ready, otherwise it says what it waits for. ## dot
what's the green dot|the dot is red|why is the dot not green|what does the little circle mean|page says reconnecting|it says offline at the top|lost connection, what happens to my answer|is it connected

= If the connection breaks, the page resumes the answer where it was. If that fails, press the arrow for a new one. ## resumes
the wifi dropped in the middle of an answer|connection lost while it wrote|is the answer lost when I reload|I closed the lid while it answered|page says trying to resume

= Yes: install it from the browser's menu ("Install app"), and it opens like an app, offline too. ## Install app
is there an app|phone app?|put it on my home screen|install the page as an app|desktop app?|icon on my phone

= Your messages and files go to the server that runs Parley and nowhere else. The page loads nothing from elsewhere. ## nothing from elsewhere
does the page load google fonts|any third party scripts|cdn?|does the page call other sites|trackers in the page?|is everything served locally

= The model's reasoning is shown above the answer, folded: click on "Thought for ..." to read it. ## Thought for
where can I see the thoughts|what did it think|show the reasoning text|hidden thoughts?|open the thinking|what's "Thought for 3 s"

= Press "Continue" under an answer that was cut, and it goes on; `-n` or Settings raise the limit of its length. ## Continue
go on with the cut answer|it stopped too early, can it go on|continue the story where it broke off|how do I let it finish|resume a stopped answer

= Select a part of an answer and press "Quote" to ask about it. ## Quote
ask about one sentence of your answer|quote a passage|refer to a part of the text|mark a sentence and ask|cite your words

= Start a branch: "New chat from here" in the menu of an answer. ## New chat from here
branch a conversation|fork the chat|try another direction from here|split this talk|copy the chat up to this point

= Numbers under an answer: tokens a second, the time to the first token, drafts kept, and what was found in the cache. ## tokens a second
what do the numbers below mean|what's "drafts kept"|tokens/s, what's that|what is shown under the answer|first token after 0.2 s?|statistics of an answer

= Enter sends, Shift Enter begins a new line. Settings can change what Enter does. ## Shift Enter
how do I make a new line|line break without sending|enter sends too early|write several lines|newline in the text field|change what enter does

= At the top of the page stands the name of the model: a click on it shows all models and loads the one that you choose. ## a click on it
where do I choose the model on the page|model menu?|change model in the browser|which model is answering now|how do I see the loaded model

= Up to 64 megapixels; the page makes large ones smaller before it sends them. ## 64 megapixels
how large may a photo be|max resolution|my camera makes 48 megapixel pictures|is a 4k image fine|image resolution limit|does it shrink my pictures

= 512 MiB and about an hour; it is shown as at most 256 frames. `--max-video-mib` and `--max-video-duration` change that. ## --max-video-mib
how long may a clip be|can it watch a whole film|a two hour movie?|max video size|video limit|my video has 800 MB|limit for videos in minutes

= Uploads by the API stay for 60 minutes after their last use; `--upload-expire` changes it. ## --upload-expire
how long are uploads kept|when are files deleted|do uploaded files stay|file_id not found any more|uploaded file expired

= The files of a chat stay in your browser with it; with `--history` in the server's folder. Nothing goes elsewhere. ## files of a chat
where do my uploaded pictures lie|are my pictures stored|what happens to the photos I send|does it keep my files|how do I remove an uploaded image|are attachments saved

= On Debian: `scripts/release` makes a package, and `apt install ./parley_*.deb` installs it with its service. ## scripts/release
is there a deb|debian package?|apt package|how do I package it|install on a server properly|rpm or deb

= The service reads /etc/parley/parley.conf: a line such as `port = 9000` for each option. `--print-config` shows all values. ## /etc/parley/parley.conf
where is the config file|parley.conf|format of the config|settings file for the service|set options permanently|keep the options after a restart|etc folder?

= `--log-level debug` says more, `--log-file FILE` writes it to a file. Prompts are never logged. ## --log-level
where's the log|more output please|debug mode|verbose?|log to a file|see what the server does|turn off the messages|quiet mode

= `--check` loads the model, computes one token and exits with 0 if all is well. ## --check
test a model without serving|dry run|does the checkpoint load at all|validate my model in a script|check before I deploy

= It checks every input against limits, listens on this computer alone, and has a sandbox. SECURITY.md says what is promised. ## sandbox
is it secure|can someone break in|is it dangerous to run|attack surface?|sandboxed?|harmful images a risk?|can a bad video hack me

= I read drawings, charts and printed words. Photographs, handwriting and documents need a bigger model: `parley serve -m DIR`. ## handwriting
can you read my handwriting|do you recognise faces|can you read old letters|are you good with photos|could you read a contract for me|can you read blurry photos|recognise plants?

= The cache on disk outlives a restart: `--cache-disk DIR`. It holds texts as tokens, readable by you alone. ## --cache-disk
keep the cache over a restart|persistent prompt cache|warm start|long document read again after restart, avoid that|save computed prompts

= `--threads N` sets the compute threads, by default one a core. ## --threads N
use fewer cores|it takes all my CPU|limit CPU use|leave two cores free|how many threads does it use|cores?|my computer gets loud and hot|make it gentler on my laptop

= Yes, Ollama's clients find /api/chat and /api/generate; docs/api.md lists them under "Ollama". ## Ollama
does it speak ollama's protocol|ollama clients?|my tool only knows ollama|replace ollama by Parley|/api/generate available?

= docs/adding-a-model.md shows how to add a family of models, file by file. ## adding-a-model
my model's architecture is unknown to it, can I add it|add a new architecture|implement support for a model|how do developers add a family

= CONTRIBUTING.md says where to change what, the rules, and which tests belong to a change. ## CONTRIBUTING.md
I'd like to help with the code|where do I change the page's colours in the code|how is the code organised for contributors|send a patch, rules?|first contribution|where's the source of the page

= docs/architecture.md: the rooms, the threads and the way of a request through them. ## docs/architecture.md
how is it built inside|architecture?|how does a request travel|which threads are there|design documents|how does Parley work inside

= docs/performance.md has the figures and how to repeat them. ## docs/performance.md
is it faster than llama.cpp|benchmarks published?|how fast compared to others|speed figures|performance numbers anywhere

= Shared keys share the cache; with `--cache-scope key` each API key has its own, and that is the default. ## --cache-scope
can other users see my cached prompts|is the cache shared between users|isolate users|cache per key?

= Show the introduction again in Settings: "Show the introduction". ## Show the introduction
the welcome screen is gone, can I see it again|intro again please|tutorial of the page again|what was on the first page

= Notify me: Settings, "When an answer ends in the background". ## ends in the background
tell me when the answer is ready|notification when done|ping me when it finishes|I switch tabs while it writes|sound when done?
"""


def _pairs(text):
    return [(wordings, " | ".join(answers)) for wordings, answers in parlour.groups(text)]


HELP = {}
for wordings, must in _pairs(_HELP):
    HELP.setdefault(must, []).extend(wordings)
MORE = [(wordings, *head.split(" ## ")) for wordings, head in _pairs(_MORE)]
