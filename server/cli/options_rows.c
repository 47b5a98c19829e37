#include "server/cli/options_table.h"

#include <math.h>

#include "base/compiler.h"
#include "base/limits.h"

#define ROW(...)                                                                                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
/* What is said of a value by its kind: the option's name, how its value is called, the field of
 * `options`, then the default and its bounds. */
#define VALUE(kind_, name_, metavar_, field)                                                                 \
    .name = name_, .kind = kind_, .metavar = metavar_, .at = offsetof(options, field)
#define TEXT(name_, metavar_, field)          VALUE(OPTION_TEXT, name_, metavar_, field)
#define LIST(name_, metavar_, field)          VALUE(OPTION_LIST, name_, metavar_, field)
#define CHOICE(name_, metavar_, field, words) VALUE(OPTION_CHOICE, name_, metavar_, field), .choices = words
#define SWITCH(name_, field, is_on)           VALUE(OPTION_SWITCH, name_, NULL, field), .standard = is_on
#define INT(name_, metavar_, field, standard_, min_, max_)                                                   \
    VALUE(OPTION_INT, name_, metavar_, field), .standard = standard_, .min = min_, .max = max_
/* Of sampling: what is not given is the model's. */
#define NUMBER(name_, field, min_, max_)                                                                     \
    VALUE(OPTION_NUMBER, name_, "X", field), .standard = NAN, .min = min_, .max = max_,                      \
                                             .note = "model's default"
/* Without effect here; the reason completes "does nothing here: ". */
#define IDLE(reason)                                                                                         \
    .help = "accepted without effect: " reason, .idle = reason, .commands = IN_SERVE, .group = GROUP_SPEED
#define SHARE(name_, field, standard_, min_)                                                                 \
    VALUE(OPTION_NUMBER, name_, "X", field), .standard = standard_, .min = min_, .max = 1
#define FOR(commands_, group_) .commands = commands_, .group = GROUP_##group_
#define MIB                    (1 << 20)

static const option_row ROWS[] = {
    /* ---- model ---- */
    ROW(TEXT("model", "PATH", model), .letters = "m", FOR(IN_MODEL, MODEL),
        .help = "checkpoint folder or GGUF file, a name below --models-dir, or the name of a model of a hub",
        .note = "Seedling, the built-in demonstration model",
        .more = "A folder with config.json, tokenizer.json, the chat template and safetensors files, as "
                "published; or a file NAME.gguf (of a split model, any part). ORG/NAME[:QUANT|@REVISION] is "
                "looked for "
                "among those that parley pull and other tools have fetched; on a terminal you are asked "
                "whether it is to be fetched."),
    ROW(SWITCH("pull", pull, 0), FOR(IN_MODEL, MODEL),
        .help = "fetch the model that -m names from the hub if it is not on this machine"),
    ROW(TEXT("mmproj", "FILE", mmproj), FOR(IN_MODEL, MODEL), .help = "vision tower of a GGUF model",
        .note = "a fitting *mmproj*.gguf in the model's folder"),
    ROW(TEXT("alias", "NAME", alias), .also = "served-model-name", FOR(IN_SERVE, MODEL),
        .help = "model name shown to clients", .note = "folder name"),
    ROW(TEXT("models-dir", "DIR", models_dir), FOR(IN_MODEL | IN_CONVERT, MODEL),
        .help = "folder of models that -m selects from by name",
        .more = "Checkpoint folders and GGUF files in it or one folder deeper (NAME, ORG/NAME). Without -m "
                "the first that can be loaded is taken. /v1/models lists them all."),
    ROW(SWITCH("model-switch", model_switch, 1), FOR(IN_SERVE, MODEL),
        .help = "load another model of --models-dir when a request names it",
        .more = "Running answers finish first; later requests wait in order."),
    ROW(SWITCH("hub", hub, 1), FOR(IN_SERVE, MODEL),
        .help = "offer models of a hub on the page: fetch, inspect, remove them",
        .more = "To who sits at this machine (by http://localhost) or, with --admin-key, to who has it. A "
                "process "
                "beside the server does it, as parley pull would."),
    ROW(INT("models-max", "N", models_max, 1, 1, LIMIT_MODELS), FOR(IN_SERVE, MODEL),
        .help = "models of --models-dir that stay in memory at the same time",
        .more =
            "Going back to one that is there takes no time and finds its cached prompts. They take turns: "
            "one answers, those of another wait until its answers end. All share --mem-limit, or what is "
            "free at the start; what was used longest ago leaves when there are more, or no room."),
    ROW(LIST("pin", "NAME", pin), FOR(IN_SERVE, MODEL),
        .help = "model that stays in memory once it is loaded, with commas"),
    ROW(INT("idle-unload", "SECONDS", idle_unload_s, 0, 0, 30 * 86400), FOR(IN_SERVE, MODEL),
        .help = "models beside the one that answered last leave memory after so long; 0: not for that"),
    ROW(SWITCH("strict-model", strict_model, 0), FOR(IN_SERVE, MODEL),
        .help = "refuse requests that name another model"),
    ROW(TEXT("chat-template-file", "FILE", chat_template_file), FOR(IN_ANSWER, MODEL),
        .help = "Jinja chat template to use instead of the checkpoint's"),
    ROW(CHOICE("template-history", "HOW", template_history, "stable published"), FOR(IN_ANSWER, MODEL),
        .standard_text = "stable", .help = "how the template writes earlier turns: stable, published",
        .more = "Many templates drop the reasoning of earlier answers when a new question comes. stable "
                "leaves each turn as it stood in the prompt that it was answered in, so that the prefix "
                "cache finds the whole conversation; published renders all of it anew."),
    ROW(CHOICE("late-system", "WHERE", late_system, "fold hoist"), FOR(IN_ANSWER, MODEL),
        .standard_text = "fold", .help = "where system messages behind the first question go: fold, hoist",
        .more = "fold leaves them where they are, in the user's turn if the template takes them only in "
                "front; hoist moves all to the front."),
    ROW(TEXT("tool-call-parser", "NAME", tool_call_parser), FOR(IN_SERVE, MODEL),
        .help = "syntax of the model's tool calls: auto, none, or a name",
        .note = "auto: detected from the chat template",
        .more = "The names are those of other servers: qwen3_xml (or qwen3_coder), hermes, gemma4, mistral, "
                "mistral_list (its form until 2024), llama3_json, pythonic, deepseek_v3, deepseek_v31, "
                "deepseek_v32, glm45, kimi_k2, minimax_m2, granite, lfm2, nemotron_json, seed_oss."),
    ROW(TEXT("reasoning-parser", "NAME", reasoning_parser), FOR(IN_ANSWER, MODEL),
        .help = "how the model marks its reasoning: auto, or a name",
        .note = "auto: detected from the chat template",
        .more = "The names are think (or qwen3, deepseek_r1, glm45, kimi_k2, minimax_m2, nemotron_v3), "
                "openai_gptoss, gemma4, mistral, seed_oss, cohere_command."),
    ROW(INT("ctx-size", "N", ctx_size, 0, 256, 1 << 24), .also = "max-model-len", .letters = "c",
        FOR(IN_ENGINE, MODEL), .help = "context length in tokens, prompt and answer together",
        .note = "what model and memory allow, at most 32768",
        .more = "Images and videos count as the tokens they become. A longer request is refused, never "
                "truncated."),
    ROW(CHOICE("quantize", "FORMAT", quantize, "none q8 q4"), FOR(IN_ENGINE | IN_CONVERT, MODEL),
        .help = "quantize the layers' weights to 8 or 4 bits: none, q8, q4", .standard_text = "none",
        .more = "The quantized weights are cached in $XDG_CACHE_HOME or ~/.cache for the next start."),
    ROW(CHOICE("quantize-head", "FORMAT", quantize_head, "none q8 q4"), FOR(IN_ENGINE | IN_CONVERT, MODEL),
        .help = "the same for the logits head", .note = "q8 if --quantize is q8 or q4"),
    ROW(CHOICE("quantize-vision", "FORMAT", quantize_vision, "none q8"), FOR(IN_ENGINE, MODEL),
        .help = "the same for the vision encoder: none, q8",
        .note = "q8 if --quantize is q8 or q4, and not with --compute exact",
        .more =
            "Images and videos are then encoded with attention in 8 bits, too. The patch embedding stays as "
            "stored."),

    /* ---- memory and speed ---- */
    ROW(INT("threads", "N", threads, 0, 1, 1024), .letters = "t", FOR(IN_ENGINE | IN_CONVERT, SPEED),
        .help = "compute threads", .note = "one per core"),
    ROW(INT("parallel", "N", parallel, 0, 1, 32), .letters = "np", FOR(IN_SERVE, SPEED),
        .help = "answers computed at the same time", .note = "4, fewer where memory is short"),
    ROW(INT("queue", "N", queue, LIMIT_QUEUE, 1, 4096), .also = "max-queue", FOR(IN_SERVE, SPEED),
        .help = "requests that may wait; more get 429"),
    ROW(INT("batch-size", "N", batch_size, 0, 16, 8192), .also = "prefill-step-size", .letters = "b",
        FOR(IN_ENGINE, SPEED), .help = "prompt tokens computed in one step",
        .note = "512; with many experts up to 2048"),
    ROW(INT("mem-limit", "MIB", mem_limit, 0, 0, 1 << 24), FOR(IN_ENGINE, SPEED),
        .help = "memory for weights, sequence states, caches and requests together; the server refuses to "
                "start if they do not fit",
        .note = "what is free",
        .more =
            "The sum is logged at the start; requests get what weights, states and caches leave, at least "
            "512 MiB. The context and the caches shrink to fit unless they were asked for. What requests "
            "need is reserved before it is taken, processes that decode videos and images included: what "
            "does not fit now waits for 2 s, then gets 429, and what never could fit gets 413."),
    ROW(INT("cache-ram", "MIB", cache_ram, -1, 0, MIB), FOR(IN_SERVE, SPEED),
        .help = "memory for the prefix cache; 0 turns it off",
        .note = "1024, or an eighth of the free memory"),
    ROW(SWITCH("prefix-cache", prefix_cache, 1), .also = "enable-prefix-cache", FOR(IN_SERVE, SPEED),
        .help = "keep the states of prompts for those that begin alike"),
    ROW(TEXT("cache-disk", "DIR", cache_disk), FOR(IN_SERVE, SPEED),
        .help = "folder where cached prompts outlive the server; made if it is missing",
        .more =
            "What the prefix cache holds is written there, and read back when a prompt begins like it, also "
            "after a restart. The files hold the texts of prompts and answers in the form of tokens, "
            "readable by the owner alone. One server at a time uses a folder; another one, or one that "
            "cannot write to it, says so in the log and serves without."),
    ROW(INT("cache-disk-mib", "MIB", cache_disk_mib, 4096, 1, MIB), FOR(IN_SERVE, SPEED),
        .help = "what --cache-disk may take; the prompts that were not used for longest make room"),
    ROW(TEXT("warm-prompts", "FILE", warm_prompts), FOR(IN_SERVE, SPEED),
        .help = "prompts that are computed before the server is ready, so that the prefix cache has them",
        .more =
            "A JSON array, or a JSON value on each line: the body of a chat, its messages, or a raw prompt "
            "as a string. Each is computed for each API key."),
    ROW(INT("vision-cache", "MIB", vision_cache, -1, 0, MIB), FOR(IN_SERVE, SPEED),
        .help = "memory for encoded images and videos, so that a second question about them is fast; 0 turns "
                "it off",
        .note = "256, or a 32nd of the free memory"),
    ROW(CHOICE("cache-scope", "WHO", cache_scope, "key all none"), FOR(IN_SERVE, SPEED),
        .standard_text = "key", .help = "who shares cached prefixes and encoded images: key, all, none",
        .more = "key: requests with the same API key. With all, a client that guesses a prompt can tell from "
                "the response time whether another key has sent it. none turns both caches off."),
    ROW(CHOICE("cache-type", "TYPE", cache_type, "f32 bf16 f16 q8 q4"), FOR(IN_ENGINE, SPEED),
        .help = "KV cache type: f32, bf16, f16, q8, q4; smaller types take less memory and time in long "
                "conversations",
        .note = "f16; f32 with --compute exact"),
    ROW(SWITCH("huge-pages", huge_pages, 0), FOR(IN_ENGINE, SPEED),
        .help = "copy the weights into huge pages at startup: answers are faster",
        .more = "Doubles the memory of the weights (the system may drop the mapped file pages) and takes "
                "some seconds at startup."),
    ROW(SWITCH("mlock", mlock, 0), FOR(IN_ENGINE, SPEED),
        .help = "lock memory, so that the system neither swaps nor drops what was loaded",
        .more = "Needs a sufficient limit of locked memory: `ulimit -l`, or LimitMEMLOCK= in a service."),
    ROW(CHOICE("cpu", "LEVEL", cpu,
               "generic avx2 avx512 avx512+vnni avx512+vnni+bf16 avx512+vnni+bf16+amx neon neon+dotprod "
               "native"),
        FOR(IN_ENGINE, SPEED),
        .help = "highest instruction set: generic, avx2, avx512, avx512+vnni, avx512+vnni+bf16, "
                "avx512+vnni+bf16+amx, neon, neon+dotprod, native",
        .standard_text = "native"),
    ROW(CHOICE("numa", "HOW", numa, "off spread"), FOR(IN_ENGINE, SPEED), .standard_text = "off",
        .help = "for machines of several memory nodes: off, spread",
        .more = "spread binds each compute thread to a processor, the nodes in equal shares, and takes "
                "memory from all "
                "nodes in turn. A model's file that the system has in memory already stays where it is."),
    ROW(CHOICE("compute", "HOW", compute, "fast exact"), FOR(IN_ENGINE, SPEED),
        .help = "arithmetic: fast, exact", .standard_text = "fast",
        .more = "fast uses the processor's fastest kernels, which may round activations to bf16; exact uses "
                "the float32 products of the reference checks."),
    ROW(SWITCH("mtp", mtp, 1), .also = "enable-mtp", FOR(IN_ENGINE, SPEED),
        .help = "let the model's multi-token-prediction head draft tokens",
        .more = "Answers are the same with and without it."),
    ROW(SWITCH("continuous-batching", continuous_batching, 1),
        IDLE("up to --parallel answers are always computed together")),
    ROW(TEXT("mem-fraction", "X", mem_fraction),
        IDLE("--mem-limit says how much memory is used, by default what is free")),
    ROW(SWITCH("enable-auto-tool-choice", auto_tool_choice, 1),
        IDLE("the model always chooses among the tools of a request")),
    ROW(SWITCH("spec-prefill", spec_prefill, 0), FOR(IN_ENGINE, SPEED),
        .help = "of long prompts compute the part that matters (sparse prefill), unless the request says",
        .more = "Answers come much sooner and may differ. --draft-model judges what matters; without it the "
                "beginning, the end and what stands near the question's words are kept. Prompts with new "
                "images are computed whole. Requests choose by specprefill."),
    ROW(TEXT("draft-model", "PATH", draft_model), FOR(IN_ENGINE, SPEED),
        .help = "small model of the same vocabulary that judges prompts for sparse prefill",
        .more = "It is quantized to q8 (with --compute exact it stays as stored). Its weights and states "
                "count in --mem-limit. One that cannot be used is an error in the log, "
                "and prompts are computed whole."),
    ROW(INT("spec-prefill-threshold", "N", spec_prefill_threshold, LIMIT_SPARSE_THRESHOLD, 1, 1 << 24),
        FOR(IN_ENGINE, SPEED), .help = "prompt tokens to compute from which on a prompt is sparse"),
    ROW(INT("spec-prefill-max", "N", spec_prefill_max, 0, 0, 1 << 24), FOR(IN_ENGINE, SPEED),
        .help = "longer prompts are computed whole", .note = "the context"),
    ROW(SHARE("spec-prefill-keep", spec_prefill_keep, LIMIT_SPARSE_KEEP, 0.001), FOR(IN_ENGINE, SPEED),
        .help = "share of a sparse prompt that is computed, unless the request sets it"),
    ROW(SHARE("spec-prefill-backbone", spec_prefill_backbone, 0, 0), FOR(IN_ENGINE, SPEED),
        .help = "share of a sparse prompt that is kept at even distances, as a part of what is kept"),

    ROW(INT("prompt-lookup", "N", prompt_lookup, 8, 0, 31), FOR(IN_ENGINE, SPEED),
        .help = "maximum tokens per step that are guessed from the prompt and the answer so far; 0 is none",
        .more =
            "What followed the last words where they stood before is guessed to follow again; how much, and "
            "whether at all, is measured. Answers are the same with and without it."),

    /* ---- answers ---- */
    ROW(INT("n-predict", "N", n_predict, LIMIT_MAX_TOKENS_DEFAULT, 1, 1 << 24), .letters = "n",
        FOR(IN_ANSWER, ANSWER), .help = "maximum tokens per answer, unless the request sets it"),
    ROW(INT("reasoning-budget", "N", reasoning_budget, -1, -1, 1 << 24), FOR(IN_ANSWER, ANSWER),
        .help = "maximum tokens of reasoning, unless the request sets it; -1 is no limit"),
    ROW(CHOICE("reasoning-field", "NAME", reasoning_field, "content reasoning both"), FOR(IN_SERVE, ANSWER),
        .help = "field that carries the reasoning of a chat: content, reasoning, both",
        .standard_text = "content",
        .more = "content means reasoning_content, which most clients read; some read reasoning. A client "
                "that reads both shows it twice."),
    ROW(CHOICE("reasoning", "WHEN", reasoning, "on off auto"), FOR(IN_SERVE, ANSWER), .standard_text = "auto",
        .help = "whether the model thinks first, unless the request sets it: on, off, auto",
        .more = "auto leaves it to the chat template."),
    ROW(TEXT("chat-template-kwargs", "JSON", chat_template_kwargs), FOR(IN_SERVE, ANSWER),
        .help = "variables of the chat template, unless the request sets it"),
    ROW(NUMBER("temp", temperature, 0, 100), .also = "temperature", FOR(IN_ANSWER, ANSWER),
        .help = "temperature; 0 is greedy"),
    ROW(INT("top-k", "N", top_k, -1, 0, 1 << 24), FOR(IN_ANSWER, ANSWER),
        .help = "keep the N likeliest tokens; 0 is off", .note = "model's default"),
    ROW(NUMBER("top-p", top_p, 0, 1), FOR(IN_ANSWER, ANSWER),
        .help = "keep tokens up to this probability mass"),
    ROW(NUMBER("min-p", min_p, 0, 1), FOR(IN_ANSWER, ANSWER),
        .help = "drop tokens below X times the likeliest"),
    ROW(NUMBER("repeat-penalty", repeat_penalty, 0.01, 10), FOR(IN_ANSWER, ANSWER),
        .help = "repetition penalty; 1 is off"),
    ROW(NUMBER("presence-penalty", presence_penalty, -2, 2), FOR(IN_ANSWER, ANSWER),
        .help = "subtracted from the logits of tokens that the answer already contains"),
    ROW(NUMBER("frequency-penalty", frequency_penalty, -2, 2), FOR(IN_ANSWER, ANSWER),
        .help = "subtracted once for each occurrence"),
    ROW(VALUE(OPTION_SEED, "seed", "N", seed), FOR(IN_ANSWER, ANSWER), .max = 9e15, .help = "random seed",
        .note = "a new one for each answer"),

    /* ---- images and videos ---- */
    ROW(INT("max-images", "N", max_images, LIMIT_IMAGES, 1, LIMIT_IMAGES), FOR(IN_ANSWER, MEDIA),
        .help = "maximum images and videos per request"),
    ROW(INT("max-image-pixels", "N", max_image_pixels, (double)LIMIT_IMAGE_PIXELS, 256,
            (double)LIMIT_IMAGE_PIXELS),
        FOR(IN_ANSWER, MEDIA), .help = "largest image, width times height"),
    ROW(INT("max-video-mib", "MIB", max_video_mib, (double)(LIMIT_VIDEO_BYTES >> 20), 1, MIB),
        FOR(IN_ANSWER, MEDIA), .help = "largest video"),
    ROW(INT("max-video-pixels", "N", max_video_pixels, (double)LIMIT_VIDEO_PIXELS, 256, 1 << 28),
        FOR(IN_ANSWER, MEDIA), .help = "largest frame of a video, width times height"),
    ROW(INT("max-video-duration", "S", max_video_duration, LIMIT_VIDEO_DURATION_S, 1, 360000),
        FOR(IN_ANSWER, MEDIA), .help = "longest video, in seconds"),
    ROW(INT("max-video-frames", "N", max_video_frames, LIMIT_VIDEO_FRAMES, 1, LIMIT_VIDEO_FRAMES_MAX),
        .also = "video-max-frames", FOR(IN_ANSWER, MEDIA),
        .help = "maximum frames of a video shown to the model, up to 768"),
    ROW(INT("media-mem", "MIB", media_mem, (double)(LIMIT_VIDEO_MEMORY >> 20), 1, MIB), FOR(IN_ANSWER, MEDIA),
        .help = "memory of a video worker process, beyond what it starts with"),
    ROW(INT("max-video-time", "S", max_video_time, LIMIT_VIDEO_WALL_S, 1, 3600), .also = "media-timeout",
        FOR(IN_ANSWER, MEDIA), .help = "maximum seconds to read a video, wall clock and processor time"),
    ROW(SWITCH("video-outer-pair", video_outer_pair, 0), FOR(IN_ANSWER, MEDIA),
        .help = "keep the vision tokens around a whole video, for models trained with them"),

    ROW(LIST("media-domains", "HOST", media_domains), .also = "allowed-media-domains", FOR(IN_SERVE, MEDIA),
        .help = "allow requests to name images and videos by http and https URLs of this host",
        .note = "nothing is fetched",
        .more = "May be repeated, or hold several with commas: hosts, *.example.org for the hosts below one, "
                "* for all, and addresses. A host is reached at public addresses only, and redirects must "
                "stay within "
                "the list. An address, and localhost, are allowed as given even where they are not public."),
    ROW(TEXT("media-path", "DIR", media_path), FOR(IN_SERVE, MEDIA),
        .help = "allow requests to name images and videos by file: URLs below this folder",
        .note = "none are read",
        .more = "The URL holds the whole path, or the path inside the folder. Links are not followed. Anyone "
                "who may use the server can have the model read any file in it."),

    /* ---- server ---- */
    ROW(LIST("host", "ADDRESS", host), FOR(IN_SERVE | IN_LOCAL, SERVER),
        .help = "address to listen on: an IP address, or unix:/path for a socket file",
        .standard_text = "127.0.0.1",
        .more = "May be repeated, or hold several with commas; all share the port. Sockets passed by systemd "
                "(LISTEN_FDS) are used instead."),
    ROW(INT("port", "N", port, 8080, 0, 65535), FOR(IN_SERVE | IN_LOCAL, SERVER),
        .help = "port to listen on; 0 takes a free one"),
    ROW(INT("max-body", "MIB", max_body_mib, (double)(LIMIT_BODY_BYTES >> 20), 1, 1024),
        FOR(IN_SERVE, SERVER), .help = "largest request"),
    ROW(INT("max-ws-message", "MIB", max_ws_message_mib, 0, 0, 1024), FOR(IN_SERVE, SERVER),
        .help = "largest message of a WebSocket; 0: as --max-body"),
    ROW(INT("max-ws-queue", "KIB", max_ws_queue_kib, LIMIT_UNREAD_BYTES >> 10, 64, MIB),
        FOR(IN_SERVE, SERVER),
        .help = "data queued for a client that does not read its socket or stream; beyond it the connection "
                "is closed"),
    ROW(INT("max-header", "KIB", max_header_kib, LIMIT_HEADER_BYTES >> 10, 2, 16), FOR(IN_SERVE, SERVER),
        .help = "largest request header section"),
    ROW(INT("max-conns", "N", max_conns, LIMIT_CONNECTIONS, 1, 100000), FOR(IN_SERVE, SERVER),
        .help = "connections at the same time; more are closed"),
    ROW(INT("max-conns-per-ip", "N", max_conns_per_ip, LIMIT_CONNECTIONS_PER_ADDRESS, 1, 100000),
        FOR(IN_SERVE, SERVER), .help = "the same, of one address",
        .more = "Behind a proxy all come from its address."),
    ROW(INT("header-timeout", "S", header_timeout, LIMIT_HEADER_TIMEOUT_S, 1, 3600), FOR(IN_SERVE, SERVER),
        .help = "seconds for the request header section to arrive"),
    ROW(INT("body-timeout", "S", body_timeout, LIMIT_BODY_TIMEOUT_S, 1, 3600), FOR(IN_SERVE, SERVER),
        .help = "seconds for a request body to arrive; uploads get more, by their size"),
    ROW(INT("min-body-rate", "KIB", min_body_rate_kib, LIMIT_MIN_BODY_RATE >> 10, 0, MIB),
        FOR(IN_SERVE, SERVER),
        .help = "minimum rate of a request body in KiB/s, after its first 5 seconds; 0: any"),
    ROW(INT("send-timeout", "S", send_timeout, LIMIT_SEND_TIMEOUT_S, 1, 86400), FOR(IN_SERVE, SERVER),
        .help = "seconds in which a client must read what waits for it, or some of it (--send-rate)",
        .more = "A stream, a download or a WebSocket that is not read is then hung up. A client with nothing "
                "to read may stay."),
    ROW(INT("send-rate", "KIB", send_rate_kib, LIMIT_SEND_RATE >> 10, 0, MIB), FOR(IN_SERVE, SERVER),
        .help = "KiB a second that a client must read if it does not read all within --send-timeout; 0: any"),
    ROW(INT("queue-timeout", "S", queue_timeout, LIMIT_QUEUE_TIMEOUT_S, 1, 86400), FOR(IN_SERVE, SERVER),
        .help = "maximum seconds a request waits in the queue"),
    ROW(INT("request-timeout", "S", request_timeout, LIMIT_REQUEST_TIMEOUT_S, 1, 864000),
        FOR(IN_SERVE, SERVER), .help = "maximum seconds from a request to the end of its answer"),
    ROW(INT("step-timeout", "S", step_timeout, LIMIT_STEP_TIMEOUT_S, 1, 86400), FOR(IN_SERVE, SERVER),
        .help = "seconds without progress after which a computation counts as stalled and its answers end "
                "with an error",
        .more = "Slow is not stalled: every completed kernel task counts as progress. While stalled, /health "
                "returns 503, new requests are refused, and systemd's watchdog is not notified."),
    ROW(INT("keepalive", "S", keepalive, LIMIT_KEEPALIVE_S, 1, 3600), FOR(IN_SERVE, SERVER),
        .help = "seconds of silence before a stream sends a comment"),
    ROW(INT("ws-ping", "S", ws_ping, LIMIT_WS_PING_S, 1, 3600), FOR(IN_SERVE, SERVER),
        .help = "seconds of silence before a WebSocket is pinged; 15 more and it is dropped"),
    ROW(CHOICE("on-disconnect", "WHAT", on_disconnect, "cancel finish"), FOR(IN_SERVE, SERVER),
        .standard_text = "cancel",
        .help = "what happens to an answer whose client disconnects: cancel, finish",
        .more = "finish computes it to its end, so that the prefix cache has the prompt next time. Settings "
                "of the request (on_disconnect, store, Idempotency-Key) take precedence."),
    ROW(INT("drain-timeout", "S", drain_timeout, LIMIT_DRAIN_TIMEOUT_S, 0, 86400), .also = "shutdown-timeout",
        FOR(IN_SERVE, SERVER),
        .help = "seconds for running answers to finish when the server is told to stop; 0 ends them at once",
        .more = "On SIGTERM or SIGINT nothing new is accepted, /health returns 503, answers finish or are "
                "cut off after this time, and the program exits with 0. A second signal ends it at once."),
    ROW(TEXT("api-prefix", "PATH", api_prefix), .also = "root-path", FOR(IN_SERVE | IN_LOCAL, SERVER),
        .help = "serve everything below this path, for a proxy that does not strip it",
        .more = "It begins with a slash and ends without one: /parley."),
    ROW(SWITCH("metrics", metrics, 1), FOR(IN_SERVE, SERVER), .help = "offer /metrics"),
    ROW(SWITCH("slots", slots, 1), FOR(IN_SERVE, SERVER), .help = "offer /slots"),
    ROW(SWITCH("ui", ui, 1), FOR(IN_SERVE, SERVER), .help = "serve the browser chat"),
    ROW(TEXT("ui-dir", "DIR", ui_dir), FOR(IN_SERVE, SERVER),
        .help = "serve the page from a folder (for its developers)"),

    /* ---- other servers ---- */
    ROW(LIST("upstream", "NAME=URL", upstream), FOR(IN_SERVE, SERVER),
        .help = "another server whose models answer here as NAME/ID: vLLM, SGLang, llama.cpp, a hosted model",
        .note = "none",
        .more =
            "NAME=URL,URL for several that serve the same models. May be repeated. URLs begin with http:// "
            "or https://; /v1 is added where there is no version. Without --model and --models-dir no model "
            "is loaded here."),
    ROW(LIST("upstream-key", "NAME=VARIABLE", upstream_key), FOR(IN_SERVE, SERVER),
        .help = "the environment variable that holds the key of such a server",
        .more = "The keys of this server's clients are never passed on."),
    ROW(LIST("upstream-model", "ALIAS=NAME/ID", upstream_model), FOR(IN_SERVE, SERVER),
        .help = "a name of one's own for one of their models"),
    ROW(LIST("upstream-video", "NAME=HOW", upstream_video), FOR(IN_SERVE, SERVER),
        .help = "how videos go to such a server: auto, url, frames, none", .note = "auto",
        .more =
            "url: as video_url, with the settings of the request in the engine's words; frames: decoded "
            "here, "
            "as images with their times; none: refused. auto: as video_url to vLLM, SGLang and a model that "
            "says it takes videos, if the engine has words for the settings, else as images."),
    ROW(LIST("upstream-pixels", "NAME=N", upstream_pixels), FOR(IN_SERVE, SERVER),
        .help = "the most pixels of an image for such a server; larger ones are made smaller",
        .note = "4194304"),
    ROW(LIST("route", "RULE", route), FOR(IN_SERVE, SERVER),
        .help = "when a request that names no such model goes to one: when prompt_tokens > 30000 use MODEL",
        .note = "never",
        .more =
            "Conditions: prompt_tokens > N (of the texts; \"> context\": more than the model here holds), "
            "queue > N "
            "(requests that wait here), media, key N (the client's key is the N-th of --api-key or its "
            "file); several "
            "with \"and\". The first rule that fits decides. May be repeated. A request with \"local\": true "
            "stays here."),
    ROW(SWITCH("local-only", local_only, 0), FOR(IN_SERVE, SERVER),
        .help = "send no request to another server, whatever it names"),
    ROW(TEXT("upstream-ca", "FILE", upstream_ca), FOR(IN_SERVE, SERVER),
        .help = "certificates that such servers are verified with", .note = "those of the system"),
    ROW(INT("upstream-timeout", "S", upstream_timeout, LIMIT_UPSTREAM_SILENCE_S, 1, 86400),
        FOR(IN_SERVE, SERVER), .help = "seconds without a byte after which such a server's answer fails"),
    ROW(INT("upstream-connect-timeout", "S", upstream_connect_timeout, LIMIT_UPSTREAM_CONNECT_S, 1, 3600),
        FOR(IN_SERVE, SERVER), .help = "seconds to connect to such a server"),

    /* ---- tools ---- */
    ROW(TEXT("mcp-config", "FILE", mcp_config), FOR(IN_SERVE, SERVER),
        .help = "MCP servers whose tools may be used here, in the usual form (mcpServers)", .note = "none",
        .more = "{\"mcpServers\": {\"NAME\": {\"command\", \"args\", \"env\"} or {\"url\", \"headers\"}}}. "
                "${VARIABLE} in a "
                "text is one of the environment. More members: approval (always, writes, first, never), "
                "alwaysAllow, "
                "disabledTools, disabled, timeout, memoryMiB, cwd. See docs/api.md."),
    ROW(LIST("tools", "NAME", tools), FOR(IN_SERVE, SERVER),
        .help = "built-in tools that models may use: calculator, time, folder=DIR, fetch[=HOST]",
        .note = "none",
        .more =
            "folder=DIR: the files below DIR are listed, read and searched; no link is followed and nothing "
            "is "
            "written. fetch: pages by their address, as text; with hosts (fetch=example.org, "
            "fetch=*.example.org) only theirs. A host is asked at public addresses only, an address that is "
            "named (fetch=127.0.0.1) as it is; unless a request says otherwise a person is asked before "
            "each page. May be repeated, or hold several with commas."),
    ROW(INT("mcp-rounds", "N", mcp_rounds, LIMIT_MCP_ROUNDS, 1, 1000), FOR(IN_SERVE, SERVER),
        .help = "how often a model may call tools in one answer"),

    /* ---- access ---- */
    ROW(LIST("api-key", "KEY", api_key), FOR(IN_SERVE | IN_STATUS, ACCESS), .is_secret = true,
        .help = "key that clients must send; better in a file",
        .more = "May be repeated, or hold several with commas. Each has at least 16 characters. Other users "
                "of the machine may briefly see it on the command line."),
    ROW(TEXT("api-key-file", "FILE", api_key_file), FOR(IN_SERVE | IN_STATUS, ACCESS),
        .help = "file with one key a line",
        .note = "api-key in $CREDENTIALS_DIRECTORY, if systemd put it there",
        .more = "SIGHUP reads it again; requests in progress are not affected."),
    ROW(TEXT("admin-key", "KEY", admin_key), FOR(IN_SERVE, ACCESS), .is_secret = true,
        .help = "key of who may manage models of a hub from any machine; better in PARLEY_ADMIN_KEY",
        .note = "none: who sits at this machine may",
        .more = "It has at least 16 characters, and is a key like the others as well. Set it, or --no-hub, "
                "where a proxy on this machine serves other people."),
    ROW(SWITCH("insecure-no-key", insecure_no_key, 0), FOR(IN_SERVE, ACCESS),
        .help = "listen beyond this machine without requiring a key"),
    ROW(SWITCH("sandbox", sandbox, 1), FOR(IN_SERVE, ACCESS),
        .help = "give up what the server does not need: other files, connections, processes",
        .more = "Landlock and seccomp, as far as the kernel has them: parley doctor says what holds."),
    ROW(LIST("allowed-hosts", "LIST", allowed_hosts), FOR(IN_SERVE, ACCESS),
        .help = "host names that browsers may use, with commas", .note = "localhost and addresses"),
    ROW(LIST("allowed-origins", "LIST", allowed_origins), .also = "cors-origins", FOR(IN_SERVE, ACCESS),
        .help = "web origins whose pages may use the server, by HTTP and WebSocket, with commas",
        .note = "this server's own"),

    /* ---- uploads ---- */
    ROW(INT("max-upload", "MIB", max_upload_mib, (double)(LIMIT_UPLOAD_BYTES >> 20), 1, MIB),
        .also = "max-upload-mb", FOR(IN_SERVE, UPLOAD), .help = "largest uploaded file"),
    ROW(INT("upload-quota", "MIB", upload_quota_mib, (double)(LIMIT_UPLOAD_QUOTA >> 20), 0, 1 << 24),
        FOR(IN_SERVE, UPLOAD), .help = "disk space for the uploaded files of one key"),
    ROW(TEXT("upload-dir", "DIR", upload_dir), FOR(IN_SERVE, UPLOAD),
        .help = "where uploaded files are kept while the server runs",
        .note = "a folder of the user alone, in TMPDIR or /var/tmp"),
    ROW(INT("upload-expire", "MINUTES", upload_expire_min, LIMIT_UPLOAD_EXPIRE_S / 60.0, 1, MIB),
        FOR(IN_SERVE, UPLOAD), .help = "how long an uploaded file stays after its last use"),

    /* ---- stored chats ---- */
    ROW(TEXT("history", "DIR", history), FOR(IN_SERVE, HISTORY),
        .help = "store the page's chats in this folder, shared by all devices",
        .note = "each browser stores its own",
        .more = "The folder is created if it is missing. It holds a database and the attached files; every "
                "message is on disk before the page is told that it is saved. Each API key sees only its own "
                "chats."),
    ROW(INT("history-quota", "MIB", history_quota_mib, (double)(LIMIT_HISTORY_QUOTA >> 20), 1, 1 << 24),
        FOR(IN_SERVE, HISTORY), .help = "disk space for all stored chats and their files"),

    /* ---- one command's own ---- */
    ROW(VALUE(OPTION_IMAGE, "image", "FILE", files), .letters = "i", FOR(IN_RUN, COMMAND),
        .place = PLACE_LINE, .help = "an image to ask about; may be repeated"),
    ROW(VALUE(OPTION_VIDEO, "video", "FILE", files), .letters = "v", FOR(IN_RUN, COMMAND),
        .place = PLACE_LINE, .help = "a video to ask about; may be repeated"),
    ROW(TEXT("system", "TEXT", system), FOR(IN_RUN | IN_CHAT, COMMAND), .help = "system prompt"),
    ROW(SWITCH("thinking", thinking, 0), FOR(IN_RUN | IN_CHAT, COMMAND),
        .help = "let the model think first; the reasoning goes to standard error",
        .more = "chat shows it dim on a terminal, and without this leaves it to the model."),
    ROW(TEXT("connect", "URL", connect), FOR(IN_CHAT, COMMAND),
        .help = "talk to this server, http://HOST:PORT or unix:/PATH, instead of one of the chat's own",
        .more = "Any server with an OpenAI-compatible API: -m names its model, else the one that it has "
                "loaded, or lists first, is taken."),
    ROW(TEXT("connect-key", "KEY", connect_key), FOR(IN_CHAT, COMMAND), .is_secret = true,
        .place = PLACE_NO_FILE, .help = "key for that server; better in the environment"),
    ROW(TEXT("input-history", "FILE", input_history), FOR(IN_CHAT, COMMAND),
        .help = "file that keeps what was typed, for the next time", .note = "nothing is kept"),
    ROW(INT("prompt-tokens", "N", bench_prompt, 512, 1, MIB), .letters = "p", FOR(IN_BENCH, COMMAND),
        .help = "prompt length"),
    ROW(INT("predict-tokens", "N", bench_predict, 64, 1, MIB), .letters = "n", FOR(IN_BENCH, COMMAND),
        .help = "tokens to generate"),
    ROW(INT("repeat", "N", bench_repeat, 3, 1, 1000), .letters = "r", FOR(IN_BENCH, COMMAND),
        .help = "runs; the median is printed"),
    ROW(SWITCH("full", bench_full, 0), FOR(IN_BENCH, COMMAND),
        .help = "also at contexts of 2048, 8192 and 32768 tokens, with 2 to 16 answers at once, and an image",
        .more = "Takes minutes. Contexts that do not fit --ctx-size are left out."),
    ROW(SWITCH("csv", csv, 0), FOR(IN_BENCH, COMMAND), .help = "print the rows as comma-separated values"),
    ROW(SWITCH("json", json, 0), FOR(IN_BENCH | IN_INSPECT | IN_LIST | IN_STATUS, COMMAND),
        .help = "print JSON instead of a table"),

    /* ---- the program ---- */
    ROW(CHOICE("log-level", "LEVEL", log_level, "debug info warn error off"), FOR(IN_MODEL, PROGRAM),
        .help = "lowest level that is logged: debug, info, warn, error, off",
        .note = "info for serve, else warn"),
    ROW(CHOICE("log-format", "FORMAT", log_format, "text json"), FOR(IN_MODEL, PROGRAM),
        .standard_text = "text", .help = "log format: text, json",
        .more = "In JSON, key=value pairs of a message are members too. In the systemd journal, text lines "
                "carry a priority instead of a time. There are no colours."),
    ROW(TEXT("log-file", "FILE", log_file), FOR(IN_MODEL, PROGRAM), .help = "append log lines to this file",
        .note = "standard error", .more = "SIGHUP reopens it, for log rotation."),
    ROW(SWITCH("access-log", access_log, 0), FOR(IN_SERVE, PROGRAM),
        .help = "log one line per HTTP reply: x-request-id, method, path, status, time",
        .more = "Every answer is logged at its end, with or without this."),
    ROW(SWITCH("quiet", quiet, 0), .letters = "q", FOR(IN_ANSWER, PROGRAM),
        .help = "run, chat: print only the answer; serve: no ready line, warnings only"),
    ROW(SWITCH("verbose", verbose, 0), .letters = "v", FOR(IN_SERVE, PROGRAM),
        .help = "the same as --log-level debug"),
    ROW(TEXT("config", "FILE", config), FOR(IN_MODEL | IN_CONVERT | IN_LOCAL, PROGRAM),
        .place = PLACE_NO_FILE, .help = "read this config file only; none: read no file",
        .note = "/etc/parley/parley.conf, then $XDG_CONFIG_HOME/parley/parley.conf"),
    ROW(SWITCH("print-config", print_config, 0), FOR(IN_MODEL | IN_CONVERT | IN_LOCAL, PROGRAM),
        .place = PLACE_LINE,
        .help = "print the value of every option as a config file, without secrets, and exit"),
    ROW(SWITCH("check", check, 0), FOR(IN_SERVE, PROGRAM), .place = PLACE_LINE,
        .help = "load the model, compute one token and exit; exit code 0 on success"),
    ROW(CHOICE("completion", "SHELL", completion, "bash zsh fish"), FOR(IN_SERVE, PROGRAM),
        .place = PLACE_LINE, .help = "print completions for a shell and exit: bash, zsh, fish"),
    ROW(SWITCH("licenses", licenses, 0), FOR(IN_SERVE, PROGRAM), .place = PLACE_LINE,
        .help = "print the licences of everything in the program and exit"),
    ROW(SWITCH("version", version, 0), .letters = "V", FOR(IN_EVERY, PROGRAM), .place = PLACE_LINE,
        .help = "print the version and exit"),
    ROW(SWITCH("help", help, 0), .letters = "h", FOR(IN_EVERY, PROGRAM), .place = PLACE_LINE,
        .help = "print this text and exit"),
};

_Static_assert(ARRAY_LEN(ROWS) <= OPTIONS_MAX_ROWS, "options.sources is too short");

#define COMMAND(id_, name_) .name = name_, .id = COMMAND_##id_, .bit = IN_##id_

static const command_row COMMANDS[] = {
    ROW(COMMAND(SERVE, "serve"), .usage = "parley [serve] [-m DIR] [options]",
        .help = "browser chat, WebSocket and HTTP API"),
    ROW(COMMAND(RUN, "run"),
        .usage = "parley run [-m DIR] [--image FILE] [--video FILE] [options] [\"QUESTION\"]",
        .help = "one answer on the terminal", .words = {offsetof(options, prompt)}, .n_words = 1),
    ROW(COMMAND(CHAT, "chat"), .usage = "parley chat [-m DIR | --connect URL [-m NAME]] [options]",
        .help = "a conversation on the terminal"),
    ROW(COMMAND(BENCH, "bench"), .usage = "parley bench [-m DIR] [options]",
        .help = "measure the speed of prompts and answers on this machine"),
    ROW(COMMAND(PULL, "pull"), .usage = "parley pull ORG/NAME[:QUANT|@REVISION]",
        .help = "fetch a model from a hub", .words = {offsetof(options, model)}, .n_words = 1),
    ROW(COMMAND(LIST, "list"), .usage = "parley list [--json]",
        .help = "models of hubs that are on this machine"),
    ROW(COMMAND(REMOVE, "remove"), .usage = "parley remove ORG/NAME[:QUANT]",
        .help = "remove such a model from this machine", .words = {offsetof(options, model)}, .n_words = 1),
    ROW(COMMAND(INSPECT, "inspect"), .usage = "parley inspect [PATH|ORG/NAME] [--json]",
        .help = "contents and needs of a checkpoint, or of a folder of models",
        .words = {offsetof(options, model)}, .n_words = 1),
    ROW(COMMAND(CONVERT, "convert"), .usage = "parley convert MODEL OUT --quantize q8|q4 [options]",
        .help = "write a checkpoint folder with quantized weights",
        .words = {offsetof(options, convert_from), offsetof(options, convert_to)}, .n_words = 2),
    ROW(COMMAND(HEALTH, "health"), .usage = "parley health [--host ADDRESS] [--port N]",
        .help = "check whether the local server is ready: exit code 0 or 1"),
    ROW(COMMAND(STATUS, "status"), .usage = "parley status [--host ADDRESS] [--port N] [--json]",
        .help = "what the local server does"),
    ROW(COMMAND(STOP, "stop"), .usage = "parley stop [--host ADDRESS] [--port N]",
        .help = "end the local server, after its running answers"),
    ROW(COMMAND(DOCTOR, "doctor"), .usage = "parley doctor",
        .help = "the processor's level, and what the server's sandbox holds here"),
    ROW(COMMAND(MANUAL, "manual"), .usage = "parley manual [parley.1 | parley.conf.5 | options]",
        .help = "the manual pages (roff), or a table of all options (Markdown)",
        .words = {offsetof(options, page)}, .n_words = 1),
    ROW(COMMAND(VERSION, "version"), .usage = "parley version", .help = "version of this program"),
};

const option_row *option_rows(size_t *n)
{
    *n = ARRAY_LEN(ROWS);
    return ROWS;
}

const command_row *option_commands(size_t *n)
{
    *n = ARRAY_LEN(COMMANDS);
    return COMMANDS;
}
