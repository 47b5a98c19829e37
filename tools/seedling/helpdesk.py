"""Questions about Parley itself, answered from the project's own documents (README.md, docs/, the page).

help_topic(r) gives (question, reasoning, answer, must). Questions are patterns for phrases.spread; each topic has many.
"""
import asked
import asked_help
import counter
import crowd
import errands
import sayings
import typed
from phrases import spread
from wordings import draw, reword
from words import CITIES, NAMES

HOW = "{How do I|How can I|how do i|How would I|How to|What do I do to|What must I do to|I want to|I would like to|I'd like to|Is there a way to|Can you tell me how to|Please explain how to|Help me|Where can I|What is the way to|Show me how to|Do you know how I can|Can I}"
START = "{use|load|run|try|start|open|switch to|change to|get|install|add|take|put in|choose|pick|serve}"
MODEL = "{a bigger model|a larger model|a better model|another model|a different model|a real model|a smarter model|my own model|other models|the big model|a Qwen model|Qwen3.5|a stronger model|a bigger one|a Qwen checkpoint|a new model|a proper model|something bigger than you|a model that is bigger|another checkpoint}"
PLACE = "{Parley|this server|this program|this app|this chat|this thing|it|this tool|the server}"
IN = "{| in Parley| here| with Parley| on this page| in this program| in this app| with this server}"

TOPICS = [
    # (questions, answer, what a right answer contains)
    (
        [
            HOW + " " + START + " " + MODEL + IN,
            "{Which|What} command {loads|starts|runs|opens} " + MODEL,
            "{You are|You seem} too small, how do I get {a bigger|a better|another|a smarter} {one|model}",
            "{Does|Can} " + PLACE + " {load|run|use|support|work with} {bigger|larger|other|better|more|different} models",
            "{load|use|switch|change|swap|replace} {the |a |}{bigger |other |different |larger |}model",
            "{bigger|better|other|larger|different|smarter} {model|models|checkpoint}{| please}",
            "{How do I|How can I|Can I} {replace|swap|exchange|change} {you|the model|Seedling|this model|the default model}{| with a bigger one| for another one| by a better one}",
            "{What about|Is there} {a bigger|a better|another|a larger} model",
            "I have {a Qwen3.5 checkpoint|a checkpoint|a model folder|downloaded a model|a bigger model|a model on my disk}. How do I {use|load|run|start} it",
        ],
        "Stop the server with Ctrl C and start it again with a folder that holds a Qwen3.5 checkpoint: `parley serve -m DIR`. A GGUF file works too: `parley serve -m FILE.gguf`.",
        ["-m DIR"],
    ),
    (
        [
            "{Which|What} {models|checkpoints|model families|kinds of models|model formats} {does " + PLACE + " support|can I use|are supported|work|can " + PLACE + " load|can " + PLACE + " run|are possible}{| here}",
            "{List|Tell me|Name} the {supported models|models that work|models you support|models Parley supports}",
            "{Does|Can|Will} " + PLACE + " {run|load|support|work with|take} {Llama|Mistral|Gemma|Phi|DeepSeek|GPT|llama 3|Mixtral}{| models}",
            "{supported|possible|allowed} {models|checkpoints|model formats}",
        ],
        "Parley runs Qwen3.5, Qwen3-VL, Qwen3, GPT-OSS, Gemma 4, Llama, Mistral, Granite, GLM and others: a folder of safetensors or a GGUF file. `parley inspect -m PATH` says whether one works, `parley serve -m PATH` starts it.",
        ["Qwen3-VL"],
    ),
    (
        [
            "{What is|Does " + PLACE + " {support|read|load|take|work with}|Can I {use|load|run}|How do I {use|load|run}|can it read} {a GGUF|GGUF|a gguf file|GGUF files|gguf models|quantized GGUF files|a .gguf}",
            "I have a {gguf|GGUF}{| file| model}. {How do I load it|Does it work|Can I use it|What now}",
        ],
        "Yes, GGUF files work: `parley serve -m FILE.gguf`. For images put the mmproj file into the same folder, or name it with `--mmproj FILE`.",
        [".gguf"],
    ),
    (
        [
            HOW + " {use|serve|have|load|keep|switch between|offer|change between} {several|many|two|multiple|more than one|all my} models{| at once| at the same time}",
            "{Can|Does} " + PLACE + " {hold|serve|manage|have|offer} {several|many|two|multiple|more than one} models",
            "{How do I|Can I} switch {the model|models|between models}{| in the page| here| while it runs}",
        ],
        "Start it with `parley serve --models-dir DIR`, then click the name of the model at the top of the page to choose another. `--models-max N` keeps several in memory.",
        ["--models-dir"],
    ),
    (
        [
            "{Where|How} {do I|can I} {get|find|download|buy} {models|a model|a checkpoint|a bigger model|checkpoints|the models|model files}",
            "{Does|Can|Will} " + PLACE + " download {models|a model|checkpoints|a bigger model}{| for me| itself| by itself}",
            "download {a |}{model|checkpoint|qwen}",
        ],
        "`parley pull ORG/NAME` fetches a model from the hub, and `parley serve -m ORG/NAME` starts it. A folder or a GGUF file that you have works too: `parley serve -m PATH`.",
        ["parley pull"],
    ),
    (
        [
            "{Where is|What is|How do I {reach|use|call|find|access}|Tell me about|Is there|Does " + PLACE + " have|Do you have|Do you offer|can I use} {the API|an API|the HTTP API|a REST API|the rest api|the api endpoint|an endpoint|the address of the API|the API address|an http interface}{| here| of Parley| of this server}",
            "{What is|Which is|Where is} the {API address|API url|endpoint|base url|address for programs|url for requests}",
            "{How do I|How can I|Can I} {call you|talk to you|use you|ask you|reach you|use Parley|send a request|query the model} from {a program|my program|code|Python|a script|another program|JavaScript|my app|outside}",
            "{api|API|rest api|api docs|endpoints|api url}",
            "{Which|What} {routes|endpoints|paths|urls} {are there|does the API have|can I call|exist}",
        ],
        "The API is at http://127.0.0.1:8080/v1/chat/completions and speaks like OpenAI's. There are also /v1/responses and /v1/messages; docs/api.md lists every route.",
        ["/v1/chat/completions"],
    ),
    (
        [
            "{How do I|How can I|Can I|Does it work to} {use|connect|point} {the OpenAI client|OpenAI's Python library|the openai package|an OpenAI client|openai python|the OpenAI SDK|my OpenAI code}{| with Parley| here| with this server| to this server}",
            "{Is|Are} " + PLACE + " {compatible with OpenAI|OpenAI compatible|like the OpenAI API}",
            "{What is|Which is} the base url for {OpenAI|the openai client|the SDK}",
        ],
        "Yes. Give the OpenAI client the base URL http://127.0.0.1:8080/v1 and any API key, unless the server was started with one.",
        ["8080/v1"],
    ),
    (
        [
            "{Does|Can|How does|Will} " + PLACE + " {support|speak|work with|offer} {Anthropic|Claude clients|the Anthropic API|Anthropic's messages|Claude Code|the messages API}",
            "{Can I|How do I} use {an Anthropic client|the Anthropic SDK|Claude Code|the anthropic library}{| with Parley| here}",
        ],
        "Yes. Clients of Anthropic find their Messages API at /v1/messages: set their base URL to http://127.0.0.1:8080.",
        ["/v1/messages"],
    ),
    (
        [
            "{Is there|Does " + PLACE + " have|How do I {use|open}|Can I use|What about|Where is} {a WebSocket|websockets|the WebSocket|a web socket|the websocket api}",
            "{websocket|WebSocket address|web sockets}",
        ],
        "Yes: ws://127.0.0.1:8080/v1/responses. Send one JSON object a message, such as {\"type\": \"response.create\", \"input\": \"Hello\"}.",
        ["/v1/responses"],
    ),
    (
        [
            "{Show me|Give me|Write|What is|Do you have} {a curl example|a curl command|an example request|an example with curl|a sample request|an API example}{| for the API| for Parley}",
            "{How do I|How can I|Can I} {use|ask with|call it with|call you with|send a request with} curl",
            "curl{| example| command}",
        ],
        "```\ncurl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'\n```",
        ["curl http"],
    ),
    (
        [
            "{Which|What} {files|file types|formats|kinds of files|file formats|attachments|documents} {can I {upload|send|add|attach|drop|use|give you|open}|do you take|does " + PLACE + " {take|accept|read|support|open}|are {allowed|accepted|supported|possible}|can you {read|open|take}}",
            "{Can I|May I|Is it possible to|Can you} {upload|send|attach|open|read|drop|add} {files|documents|a file|a PDF|PDFs|a pdf|a Word document|a text file|text files|GIFs|a gif|a CSV|an excel file|a zip|webp images|a PNG|a docx|source code|my documents}",
            "{Do you|Does " + PLACE + "} {read|take|support|accept|open|understand} {PDF|pdf files|PDFs|documents|Word files|text files|JPEG|PNG|GIF|mp4|webm|AVIF|WebP|files}",
            "{file types|supported files|which formats|upload formats}",
        ],
        "Images (PNG, JPEG, WebP, GIF, AVIF, BMP, TIFF), videos (MP4, MOV, WebM, MKV, AVI), PDF and text files, and Word, Excel and PowerPoint as DOCX, XLSX and PPTX. Drop them on the page.",
        ["PDF and text"],
    ),
    (
        [
            HOW + " {upload|send|attach|add|show you|give you|insert|share|paste|put in} {an image|a picture|a photo|pictures|images|a file|a video|a clip|a screenshot|my picture|a drawing}{|, please}" + IN,
            "{Where|How} {do I|can I|should I} {upload|put|drop|attach|add|send} {it|the picture|the image|my image|the file|a file|the video|my video}",
            "{upload|attach|send} {a |an |}{image|picture|file|video|photo}",
            "{Where is|I can't find|What is} the {upload button|attach button|button for images|button for files}",
        ],
        "Drop the file anywhere on the page, paste it with Ctrl V, or press the button with the picture under the text field. Then write your question and send.",
        ["Drop the file"],
    ),
    (
        [
            HOW + " {stop|quit|end|exit|shut down|close|kill|turn off|switch off|terminate|halt} {Parley|the server|this server|the program|it|this program|the whole thing|this app}",
            "{stop|quit|exit|shutdown|shut down|close|end} {the server|parley|server|the program|it}",
            "{What|Which} {key|command|signal} {stops|ends|quits|closes} {the server|Parley|it|the program}",
            "{How do I|How can I} {turn|switch} {it|this|the server|Parley} off",
        ],
        "Press Ctrl C in the terminal where it runs: answers in progress may finish first. As a service: `systemctl stop parley`.",
        ["Ctrl C"],
    ),
    (
        [
            HOW + " {stop|cancel|interrupt|abort|halt|end|break off} {an answer|the answer|your answer|you|you from writing|the output|the generation|a reply|generating}",
            "{You write too long|It does not stop writing|You don't stop}. {How do I stop you|How do I stop that|How can I stop it}",
            "{Can I|How do I} make you stop {writing|talking|answering}",
        ],
        "Press Esc, or the stop button at the text field. What was written so far stays.",
        ["Esc"],
    ),
    (
        [
            "{Are|Is|Will} {my chats|the chats|my conversations|our conversations|my messages|my data|what I write|what I type|this chat|this conversation|my images|my files|our chat|this} {private|safe|secret|kept private|confidential|secure|recorded|logged|sent anywhere|sent to the internet|shared|uploaded to the cloud|stored online|used for training}",
            "{Who|Can anybody|Can anyone|Can somebody|Can other people|Can others} {can |}{see|read|look at} {my chats|my messages|what I write|our conversation|this chat|my data|what I type}",
            "{Do you|Does " + PLACE + "} {log|record|store|keep|save|send|share|collect|spy on|sell|remember} {my messages|my data|my chats|what I write|everything|our chat|prompts|my prompts|my images|conversations}{| somewhere}",
            "{Does|Do} {my data|my messages|the chats|my pictures|anything} leave {my computer|this machine|this computer|my machine|the house}",
            "{What about|How is it with|Tell me about} {privacy|data protection|my privacy|my data}",
            "{privacy|private|is this private|data protection|do you spy on me}",
        ],
        "Yes, it is private: what you send stays between you and this server. Prompts are never logged, and chats are stored in your browser, on the server only if it runs with `--history`.",
        ["between you and this server"],
    ),
    (
        [
            "{Where|How} {are|do you keep|does Parley keep|does it store|do you store|are you keeping} {my |the |}{chats|conversations|messages|history}{| stored| kept| saved}",
            "{Where is|Where do I find|How do I see|Where can I see} {my history|my old chats|the history|old conversations|earlier chats|my previous chats|yesterday's chat}",
            "{How do I|Can I|How can I} {keep|store|save|have|sync|share} {my chats|chats|the history|my history|conversations} {on the server|on all devices|between devices|for all my devices|on my phone too}",
            "{Do|Will} {my chats|the chats} {stay|be there tomorrow|survive a restart|be lost|disappear}",
        ],
        "Your browser keeps the chats: the list is at the left (Ctrl B). With `parley serve --history DIR` the server stores them for all your devices.",
        ["--history DIR"],
    ),
    (
        [
            HOW + " {export|save|download|back up|print|copy|get} {my chats|a chat|this chat|all chats|the conversation|this conversation|my history|all my conversations}{| as a file| as Markdown| to a file}",
            "{How do I|Can I} {import|restore|load|bring back} {my chats|an export|chats|a backup|exported chats}",
        ],
        "Open Settings (Ctrl ,): \"Export all\" writes every chat into one file and \"Import\" reads it again. \"This one as Markdown\" saves the open chat.",
        ["Export all"],
    ),
    (
        [
            HOW + " {delete|remove|erase|clear|forget|throw away} {a chat|this chat|my chats|the chat|a conversation|this conversation|everything|the history|my history|old chats}",
            "{delete|clear|remove} {chat|chats|history|conversation|this chat}",
        ],
        "Press the bin beside the chat in the list at the left, or Ctrl Shift Backspace for the open one.",
        ["Ctrl Shift Backspace"],
    ),
    (
        [
            HOW + " {start|open|begin|make|create} {a new chat|another chat|a new conversation|a fresh chat|over|from the beginning|a new one}",
            "{new chat|start over|new conversation|reset the chat|restart the conversation}",
        ],
        "Press Ctrl Shift O, or \"New chat\" above the list at the left.",
        ["Ctrl Shift O"],
    ),
    (
        [
            HOW + " {search|find|look for} {a chat|my chats|old chats|something in my chats|an old conversation|in the history|a message}",
            "{Is there|Do you have} {a search|search|a search for chats}",
        ],
        "Press Ctrl K, or use the search field above the list of chats.",
        ["Ctrl K"],
    ),
    (
        [
            HOW + " {edit|change|correct|fix|rewrite|repair} {my question|a question|my message|what I wrote|the last question|a message|my last message}",
            "{I made a typo|I made a mistake in my question|My question was wrong}. {How do I change it|Can I fix it|Can I edit it}",
            HOW + " {get another answer|regenerate|have another answer|try again|answer again|get a different answer|ask again|repeat an answer|redo an answer}",
        ],
        "Press the pencil at your question to edit it, or the arrow below an answer for another one. The old versions stay: switch between them with the small arrows.",
        ["pencil"],
    ),
    (
        [
            "{Which|What} {keys|shortcuts|keyboard shortcuts|hotkeys|key combinations} {are there|exist|can I use|do you have|does the page have}",
            "{keyboard|shortcuts|hotkeys|keyboard shortcuts|list of keys}",
            "{Show me|Tell me|List} the {keys|shortcuts|keyboard shortcuts|hotkeys}",
        ],
        "Press Ctrl / to see them all. Some: Esc stops an answer, Ctrl K searches, Ctrl B shows the list of chats, Ctrl Shift O begins a new chat.",
        ["Ctrl /"],
    ),
    (
        [
            "{What is|What does|Explain|What's|Tell me about|What means|What do you mean by} {the |}temperature{| do| mean| setting| in the settings| for}",
            "{What temperature|Which temperature} {should I use|is good|is best|do you recommend|do you use}",
            "{temperature|What happens if I raise the temperature|What does a low temperature do|temperature setting}",
        ],
        "Temperature says how freely words are drawn: 0 always takes the likeliest, higher values vary more. My default is 0.3. You find it in Settings (Ctrl ,).",
        ["likeliest"],
    ),
    (
        [
            "{What is|What does|Explain|What's|Tell me about|What means} {top-p|top p|top_p|top-k|top k|min-p|min p|nucleus sampling|the sampling settings|sampling}{| do| mean| setting| for}",
            "{top p|top k|min p|top_k}",
        ],
        "They limit which words may be drawn: top-k keeps the k likeliest, top-p the likeliest up to that share, min-p those not far below the best. The defaults are fine.",
        ["top-k keeps"],
    ),
    (
        [
            "{What is|What does|Explain|What's|Tell me about|What means} {the |}{repeat penalty|repetition penalty|presence penalty|frequency penalty|repeat-penalty|penalties}{| do| mean| setting| for}",
            "{You repeat yourself|You keep repeating|The model repeats itself}. {What can I do|Which setting helps|How do I stop that}",
        ],
        "A penalty makes words that were already written less likely, against repetition; 1 is off for the repeat penalty. You find it in Settings under \"More sampling\".",
        ["less likely"],
    ),
    (
        [
            "{What is|What does|Explain|What's|Tell me about|What means|What is the use of} {the |a |}{seed|random seed}{| do| mean| setting| for}",
            "{How do I|Can I} get the same answer {again|twice|every time}",
        ],
        "The seed is the start of the random numbers: the same seed, settings and question give the same answer. Without one each answer is new.",
        ["same seed"],
    ),
    (
        [
            "{What is|What does|Explain|What's|Tell me about|What means|Where do I set|How do I {use|set|write|change}|Can I {set|change|write}} {the |a |}system prompt{| do| mean| for}",
            "{How do I|Can I|How can I} {give you|set} {instructions|a role|a persona|a character|rules}{| for the whole chat| for every answer}",
        ],
        "A system prompt tells the model its task for the whole chat, for example \"Answer in one word.\" Write it in Settings (Ctrl ,) under \"This chat\".",
        ["whole chat"],
    ),
    (
        [
            "{What is|What does|Explain|What's|Tell me about|What means|How do I {set|change}|Where do I set} {the |}{maximum length|max tokens|length of the answer|answer length|n-predict|token limit}{| do| mean| for|}",
            "{Why|How come} {was|is|does} {the answer cut off|the answer cut|your answer end suddenly|the answer stop in the middle|the text cut|my answer not complete}",
            "{How do I|Can I} get {longer|shorter} answers",
        ],
        "It limits an answer, by default to 2048 tokens. Set it in Settings (Ctrl ,), or for all with `parley serve -n 4096`. An answer that reaches it is cut.",
        ["2048 tokens"],
    ),
    (
        [
            "{What is|What does|Explain|What's|Tell me about|What means|How do I {use|turn on|turn off|enable|disable|switch on|switch off}|Can I {use|turn on|turn off}} {the |}{thinking|think button|Think switch|reasoning|think mode|thinking mode}{| do| mean| for|}",
            "{Can you|How do I make you} think {first|before you answer|longer|step by step}",
        ],
        "The \"Think\" button under the text field lets the model write its reasoning before the answer. It takes longer and helps with sums. On the server: `--reasoning on` or `off`.",
        ["Think"],
    ),
    (
        [
            "{What is|What does|Explain|What's|Tell me about|What means|How big is|How long is|What is the size of} {the |a |your |}{context|context window|context length|context size|ctx-size}{| do| mean|}",
            "{What happens|What do I do|What now} {if|when} the {context|conversation|chat} is {full|too long}",
            "{How much|How many words|How many tokens} can you {remember|keep in mind|read|take}",
        ],
        "The context is how much of the chat the model can read at once, counted in tokens. Nothing is cut: when it is full you get an error, so begin a new chat. `--ctx-size N` sets it.",
        ["--ctx-size"],
    ),
    (
        [
            "{What is|What does|Explain|What's|What are|What means} {a |}{token|tokens}{| mean|}",
        ],
        "A token is a piece of text that the model reads or writes at once: a short word, a part of a long one, or a sign.",
        ["piece of text"],
    ),
    (
        [
            HOW + " {change|set|use|choose|pick} {the port|another port|a different port|port 8081|port 9000|port 80|the port number}",
            "{Which|What} port {do you use|does " + PLACE + " use|is it|is used|are you on|does it listen on}",
            "{The port|Port 8080} is {in use|taken|busy|already used}. {What do I do|What now|Help}",
        ],
        "The port is 8080. Start it with another: `parley serve --port 8081`, or set PARLEY_PORT=8081. With 0 it takes a free one.",
        ["--port 8081"],
    ),
    (
        [
            HOW + " {reach|open|use|see|access|visit} {this|it|Parley|this page|the page|the server|you} {from|on} {my phone|another computer|another device|the network|outside|my tablet|other machines|the local network|the internet}",
            "{How do I|Can I} {share|offer|open} {it|this|Parley|the server} {with my family|with others|in my network|to the network|to my friends|with colleagues}",
            "{Which|What} address does " + PLACE + " {listen on|use|have}",
        ],
        "It listens on 127.0.0.1 only, this computer. For your network give it an address and a key: `parley serve --host 0.0.0.0 --api-key-file FILE`.",
        ["--host 0.0.0.0"],
    ),
    (
        [
            "{What is|Do I need|Where do I {get|enter|set|find|put}|How do I {set|get|use|make|enter}|Is there|Why do I need} {an API key|the API key|a key|a password|an api key|the key|a login|an account}{| for Parley| here|}",
            "{It asks for|The page asks for|The server wants} {an API key|a key|a password}. {What now|What do I do|Which one}",
        ],
        "You need a key only if the server was started with one: `parley serve --api-key-file FILE`, at least 16 characters. In the page enter it in Settings (Ctrl ,).",
        ["--api-key-file"],
    ),
    (
        [
            "{Does|Can|Do|Will} {" + PLACE + "|you} {need|use|run on|support|work on|require} {a GPU|GPUs|my GPU|a graphics card|CUDA|an NVIDIA card|the graphics card|my graphics card|AMD cards|the CPU|a CPU|an NPU}",
            "{Is there|What about} {GPU support|a GPU version|CUDA support}",
            "{What|Which} {hardware|computer|machine|processor} do I need",
        ],
        "Parley runs on the CPU only; it needs no graphics card. Any 64-bit processor works, and one with AVX2 or AVX-512 is faster.",
        ["CPU only"],
    ),
    (
        [
            "{How do I|How can I|Can I|What can I do to} {make|get} {it|Parley|you|the server|the answers|the model|this} {faster|quicker|run faster|speed up|answer faster}",
            "{Why|How come} {is|are} {it|Parley|the answers|you|the model} so slow",
            "{It is|You are|The big model is|Parley is} {too slow|very slow|slow}{|. What can I do}",
            "{speed|faster|performance|speed up}",
        ],
        "Quantize the weights: `parley serve -m DIR --quantize q8` or `q4`. Leave `--mtp` on and give it all cores with `--threads`.",
        ["--quantize"],
    ),
    (
        [
            "{How much|What} {memory|RAM|ram} {do I need|does " + PLACE + " {need|use|take}|is needed|do you need|does a model need}{| for a model| for a big model| for Qwen3.5|}",
            "{How do I|Can I|How can I} {limit|reduce|lower|set} {the memory|memory use|the RAM|how much memory it takes}",
            "{It needs|The model needs|Parley uses} too much {memory|RAM}",
            "{out of memory|memory|RAM usage|not enough memory}",
        ],
        "`parley inspect -m PATH` says what a model needs. `--quantize q8` takes about half, `q4` a third, and `--mem-limit MIB` sets a limit for everything.",
        ["parley inspect"],
    ),
    (
        [
            "{What is|What does|Explain|What means|Tell me about|How do I use|How do I} {quantize|quantization|--quantize|q8|q4|quantizing|quantize a model}{| mean| do|}",
            "{Should I|Can I} {use q4|use q8|quantize|quantize the model}",
        ],
        "Quantizing stores the weights in 8 or 4 bits: less memory and faster answers, a little less exact. Use `--quantize q8` or `--quantize q4`; `parley convert` saves the result.",
        ["8 or 4 bits"],
    ),
    (
        [
            HOW + " {install|set up|build|compile|get|start|run|launch|deploy} {Parley|this server|the server|this program|this|it}{| on Debian| on Linux| on my computer| at home| from source|}",
            "{How is|How was} {Parley|it|the server} {installed|built|started|set up}",
            "{install|installation|build|setup|getting started|how to start}",
        ],
        "On Debian 12 run `./scripts/run`: it builds everything, serves the default model and prints the address to open.",
        ["./scripts/run"],
    ),
    (
        [
            HOW + " {run|start|install|use} {it|Parley|the server} {as a service|as a daemon|with systemd|at boot|in the background|when the computer starts|automatically}",
            "{Is there|Does it have} {a systemd unit|a systemd service|a service}",
        ],
        "Install it (`cmake --install build`) and run `systemctl enable --now parley`: it starts now and at every boot.",
        ["systemctl enable"],
    ),
    (
        [
            HOW + " {put|run|use|have} {it|Parley|the server} {behind nginx|behind a proxy|behind Caddy|behind a reverse proxy|with https|with TLS|under a domain}",
            "{nginx|reverse proxy|https|Does " + PLACE + " do https|Caddy}",
        ],
        "Behind nginx set `proxy_http_version 1.1`, the Upgrade and Connection headers and `proxy_buffering off`; behind Caddy nothing is needed. HTTPS is the proxy's task.",
        ["proxy_buffering"],
    ),
    (
        [
            "{Is there|Can I use|How do I use|Does it run in|Does " + PLACE + " run in|How do I run it in} {Docker|a container|a docker image|Kubernetes|Podman}",
            "{How do I check|Is there a way to see|How can I test} {if|whether} {the server|Parley|it} {is healthy|is running|is up|works|is alive}",
            "{docker|container|health check}",
        ],
        "It runs well in a container. `parley health` is the health check, or ask GET /health: 200 means it is ready.",
        ["parley health"],
    ),
    (
        [
            "{What is|Under which is|Which is|Tell me} the {licence|license}{| of Parley| of this program|}",
            "{Is|Are} " + PLACE + " {free|open source|free software|free to use|for free|commercial}",
            "{How much does|What does} {Parley|it|this} cost",
            "{Can I|May I} use {it|Parley|this} {at work|commercially|in my company|in a product|for my business}",
        ],
        "Parley is free and open source, under the MIT licence: use it for what you like.",
        ["MIT"],
    ),
    (
        [
            "{What is|What language is|In which language is|In what is|What programming language is} {Parley|this server|the server|it} written{| in|}",
            "{Is|Was} {Parley|this server|it} written in {C|Python|Rust|Go|C++|JavaScript}",
        ],
        "Parley is written in C (C17). The page is plain JavaScript.",
        ["written in C"],
    ),
    (
        [
            "{What is|What's|Tell me about|Explain|Describe|What can you tell me about|Do you know|What do you know about} {Parley|parley|this server|this program|this app|this page|this website|this}",
            "{What|Where} am I {using|looking at|on|here}{| here|}",
            "{What|Why} {is this for|is Parley for|can Parley do|does Parley do|can this program do|can I do here|can I do with Parley|should I use Parley}",
        ],
        "Parley is a chat server written in C. It runs models that read text, images and videos on your own CPU, with this page and an API like OpenAI's. I am Seedling, its small default model.",
        ["chat server"],
    ),
    (
        [
            "{Does " + PLACE + " {support|have|offer|do|use}|Can I use|What about|Do you support|Is there} {MCP|MCP servers|mcp tools|the Model Context Protocol}",
        ],
        "Yes: `parley serve --mcp-config FILE` connects MCP servers, and `--tools calculator,time` turns on the built-in tools.",
        ["--mcp-config"],
    ),
    (
        [
            HOW + " {use|give you|add|define|call} {tools|a tool|functions|function calling|tool calls|a function}{| in Parley| with the API|}",
            "{Does " + PLACE + " support|Can you use|Do you support|Do you have|Can you call} {tools|function calling|functions|tool calls|plugins}",
        ],
        "Tools are given with a request to the API, in the field `tools` as with OpenAI. I then answer with a call, and your program runs it. Here on the page I have none.",
        ["`tools`"],
    ),
    (
        [
            HOW + " {get|receive|force|have|make you give} {JSON|json output|structured output|an answer in JSON|JSON with a schema|valid JSON}{| from the API|}",
            "{Does " + PLACE + " support|What about|Is there} {JSON schemas|structured output|json mode|a JSON schema|response_format}",
        ],
        "Send `response_format` with a JSON schema in the request: the answer then always fits it. docs/api.md describes it under \"Structured output\".",
        ["response_format"],
    ),
    (
        [
            "{Does " + PLACE + " {support|do|have}|How do I {use|get|turn on}|Can I have|Is there} {streaming|a stream|streamed answers|server-sent events|token streaming}",
        ],
        "Send `\"stream\": true` in the request and the answer comes in pieces, as with OpenAI. The page streams always.",
        ["stream"],
    ),
    (
        [
            HOW + " {use|run|try|ask} {it|Parley|you|the model} {on|in|from} {the terminal|the command line|a terminal|the shell|the console}",
            "{Is there|Does it have} {a command line|a CLI|a terminal version|a command line tool}",
            "{Can I use|Does it work} {it |Parley |}without {the browser|a browser|the page|a server}",
        ],
        "Yes: `build/parley run \"What is 7 plus 5?\"`. Add `--image FILE` or `--video FILE` to show it something.",
        ["parley run"],
    ),
    (
        [
            "{Can you|Can I|Does " + PLACE + "|Do you} {hear|listen|speak|talk aloud|hear me|play sound|read aloud|use my microphone|support audio|understand speech|take voice messages|do voice|hear audio|transcribe audio|listen to music files}",
            "{Is there|What about} {audio|voice input|speech|sound|a voice mode}",
        ],
        "The page can take dictation and read answers aloud, where the browser can. I myself have no sound: I read text and look at images and videos, without their audio.",
        ["no sound"],
    ),
    (
        [
            "{Can you|Do you|Are you able to|Could you} {draw|paint|create|generate|make|produce|sketch} {a picture|pictures|an image|images|me a picture|a logo|a video|art|a drawing|a photo|me a cat}",
            "{draw|paint|generate|create|make me} {a |me a |an image of a |a picture of a }{cat|house|dog|logo|sunset|flower|robot|unicorn}",
        ],
        "No, I cannot draw: I only look at images and write text. I can describe a drawing that you show me, or write a short poem instead.",
        ["cannot draw"],
    ),
    (
        [
            "{Can you|Do you|Are you able to|Could you} {search|look up|browse|access|use|open|google|go on|connect to|surf} {the web|the internet|the Internet|websites|a website|online|Google|web pages|a link|this link|my email|Wikipedia}{| for me|}",
            "{Are you|Do you have} {online|connected to the internet|internet access|access to the internet}",
            "{open|visit|summarize|read} {this website|this link|https://example.com|www.example.org|that page}{| for me|}",
        ],
        "No, I cannot go online: I only know what I learnt, and what you show me here. Paste the text and I can look at it.",
        ["cannot go online"],
    ),
    (
        [
            HOW + " {train|fine-tune|finetune|teach|improve|retrain} {you|the model|Seedling|a model|my own model}",
            "{Can you|Do you} learn {from me|from this chat|new things|from our chats|over time}",
            "{Will you|Do you} remember {me|this|our chat} {tomorrow|next time|in the next chat|later}",
        ],
        "I do not learn from chats, and each new chat begins empty. Parley trains no models; the recipe that made me is in tools/seedling.",
        ["do not learn"],
    ),
    (
        [
            "{Which|What} {settings|options|parameters} {are there|can I change|do you have|does Parley have|exist}",
            "{Where are|How do I open|Where do I find|Where can I change} the {settings|options|preferences}",
            HOW + " {configure|set up|set options for|change the options of} {Parley|the server|it}",
            "{settings|options|configuration|config file|preferences}",
        ],
        "The page's settings open with Ctrl , (temperature, length, system prompt, colours). The server's options are in docs/options.md: on the command line, as PARLEY_... variables, or in a config file.",
        ["docs/options.md"],
    ),
    (
        [
            "{How do I|Can I|Is there|How can I} {turn on |have |get |a |use |switch to |}{dark mode|a dark theme|the dark theme|dark colours|light mode|a light theme|night mode}",
            HOW + " {make the text bigger|change the text size|change the font size|change the colours of the page|make the letters larger}",
        ],
        "Open Settings (Ctrl ,): \"Theme\" has System, Light and Dark, and \"Text size\" goes from small to larger.",
        ["Theme"],
    ),
    (
        [
            "{What are|Are there|Tell me about|Which are} the {limits|limits of the server|size limits|upload limits}",
            "{How big|How large|How long} {may|can} {a file|an image|a video|a picture|my video|an upload|my image} be",
            "{Is there|What is} a {size limit|limit for files|maximum size|limit for videos|file limit}",
        ],
        "An image may have 64 megapixels, a video 512 MiB, an upload 1 GiB and a request 16 images and videos. docs/limits.md lists all limits and their options.",
        ["docs/limits.md"],
    ),
    (
        [
            "{How many|Can several|Can many} {people|users|clients} {can use it|use it at once|can chat at the same time|can use the server at once|use Parley at the same time}{| at once|}",
            "{How many|What number of} {answers|requests} {at the same time|at once|in parallel} ",
            "{Why do I|Why must I|How long do I} wait{| in the queue|}",
        ],
        "Four answers are computed at a time and 32 more may wait. Change it with `--parallel N` and `--queue N`.",
        ["--parallel"],
    ),
    (
        [
            "{Where is|Where do I find|Is there|Where are|Do you have} {the documentation|the docs|a manual|documentation|a handbook|more help|the manual|a tutorial|a user guide}",
            "{Where can I|How can I|Where do I} {read more|learn more|find out more|get help|get more information}",
            "{docs|documentation|manual|help page|readme}",
        ],
        "Begin with README.md; docs/ holds the API, the options and the limits. On the terminal: `parley --help` and `man parley`.",
        ["README.md"],
    ),
    (
        [
            "{Where|How} {do I|can I|should I} report {a bug|an error|a problem|a security hole|a fault|an issue}",
            "{I found|There is} {a bug|an error|a problem} {in|with} {Parley|the server|the page}",
            "{Is it|Is Parley|How} secure{| is it| is Parley|}",
        ],
        "SECURITY.md says what is promised and how to report a hole; CONTRIBUTING.md says how to report and change other things.",
        ["SECURITY.md"],
    ),
    (
        [
            HOW + " {run|start} {the tests|the test suite|all tests}",
            "{How is|How do I} {Parley tested|test Parley|check that it works}",
        ],
        "Run `./scripts/test`: it builds, runs every test and ends with a line of the numbers passed, failed and skipped.",
        ["./scripts/test"],
    ),
    (
        [
            "{Does|Will|Can} {" + PLACE + "} {run|work|be built|install} on {Windows|a Mac|macOS|Ubuntu|Fedora|a Raspberry Pi|Arch|an ARM machine|my laptop|FreeBSD|Linux}",
            "{Which|What} {operating system|OS|system|systems|platforms} {do I need|does it need|are supported|does Parley run on}",
        ],
        "It is made for Linux; on Debian 12 the scripts install what is missing. On other systems they name the packages to install and stop.",
        ["Debian 12"],
    ),
    (
        [
            "{Is there|How do I see|Where do I find|Does Parley have} {metrics|statistics|Prometheus metrics|the status of the server|monitoring|a status page}",
            "{How do I|Can I} {monitor|watch} {the server|Parley}",
        ],
        "GET /metrics has figures for Prometheus, and GET /v1/status lists running requests and resources.",
        ["/metrics"],
    ),
    (
        [
            "{Does " + PLACE + " have|Can I get|How do I compute|Are there|Do you support} {embeddings|vectors|text embeddings|an embeddings endpoint}",
        ],
        "Yes: POST /v1/embeddings gives the vectors of texts. A model made for embeddings is best for it; docs/api.md says more.",
        ["/v1/embeddings"],
    ),
    (
        [
            "{What is|Explain|What does|Tell me about|What means} {MTP|--mtp|the draft head|speculative decoding|multi-token prediction|a draft}{| do| mean|}",
        ],
        "With MTP a small draft head guesses the next tokens and the model checks them together. Answers are the same, only faster. `--mtp off` turns it off.",
        ["guesses the next tokens"],
    ),
    (
        [
            "{What is|Explain|What does|Tell me about|What means} {the KV cache|a KV cache|the prefix cache|the cache|--cache-ram|prompt caching}{| do| mean|}",
        ],
        "The cache keeps what the model computed for earlier text, so that the next turn of a chat begins at once. `--cache-ram MIB` sets its size.",
        ["--cache-ram"],
    ),
    (
        [
            "{Can you|Can I make you|Does it|How do I make you} {look at|load|open|fetch|see} {an image from a URL|images by URL|a picture on a website|a remote image|an image link|a video URL}",
            "{Are|Can} {image URLs|remote images|links to images} {allowed|be used|work}",
        ],
        "Only if the server allows it: `--media-domains HOST`. Otherwise send the image itself, as a file or a data: URI.",
        ["--media-domains"],
    ),
    (
        [
            "{How do you|How does " + PLACE + "|How does the model} {watch|see|read|look at|understand} {a video|videos|movies|clips}",
            "{How many|Which} frames {do you see|are taken|of a video do you see|does it take}",
            "{Can I|How do I} {set|change} the {frame rate|frames of a video|frames per second}",
        ],
        "A video is read as single frames, two a second for me, without sound. In Settings \"Frames a second of videos\" changes it.",
        ["frames"],
    ),
]


TOPICS += [([], answer, must) for _, answer, must in asked_help.MORE]
ASKED = {**asked_help.TOPICS, **{must[0]: text for text, _, must in asked_help.MORE}}
for questions, _, must in TOPICS:
    questions += sayings.TOPICS.get(must[0], [])
    questions += [asked.single(t[must[0]]) for t in (ASKED, crowd.HELP) if must[0] in t]
    questions += [counter.HELP[must[0]]] * 2 if must[0] in counter.HELP else []
TOPICS += [([wordings], answer, [must]) for wordings, answer, must in counter.MORE]
SHARES = [1] * (len(TOPICS) - len(counter.MORE)) + [0.45] * len(counter.MORE)

BY_MUST = {must[0]: (answer, must) for _, answer, must in TOPICS}


def help_topic(r):
    x = r.random()
    if x < 0.45:
        q, a = typed.HELP(r)
        return q, "The user asks about Parley. I know this from its documents.", a, []
    if x < 0.6:
        q, m = errands.trouble(r)
        return q, "The user asks about Parley. I know this from its documents.", *BY_MUST[m]
    questions, answer, must = r.choices(TOPICS, SHARES)[0]
    q = crowd.fill(r, reword(r, spread(r, draw(r, questions)).strip())).replace("<c>", r.choice(CITIES)).replace("<n>", r.choice(NAMES)).replace("<when>", "today")
    q = q[:1].upper() + q[1:] if r.random() < 0.8 else q
    if not q.endswith((".", "?")) and r.random() < 0.8:
        q += "." if q.startswith(("Show", "Give", "List", "Tell", "Help", "I ", "I'd", "Please", "Write")) else "?"
    return q, "The user asks about Parley. I know this from its documents.", answer, must
