#include "server/options_table.h"

#include <math.h>

#include "base/compiler.h"
#include "base/limits.h"

#define ROW(...)                                                                                             \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }
#define AT(field) .at = offsetof(options, field)
#define MIB       (1 << 20)

static const option_row ROWS[] = {
    /* ---- model ---- */
    ROW(.name = "model", .letters = "m", .metavar = "PATH", AT(model), .commands = IN_MODEL,
        .group = GROUP_MODEL, .help = "checkpoint folder or GGUF file, or a name below --models-dir",
        .note = "Seedling, the built-in demonstration model",
        .more = "A folder with config.json, tokenizer.json, the chat template and safetensors files, as "
                "published; or a file NAME.gguf, of a model in parts any one."),
    ROW(.name = "mmproj", .metavar = "FILE", AT(mmproj), .commands = IN_MODEL, .group = GROUP_MODEL,
        .help = "vision tower of a GGUF model", .note = "a fitting *mmproj*.gguf in the model's folder"),
    ROW(.name = "alias", .also = "served-model-name", .metavar = "NAME", AT(alias), .commands = IN_SERVE,
        .group = GROUP_MODEL, .help = "model name shown to clients", .note = "folder name"),
    ROW(.name = "models-dir", .metavar = "DIR", AT(models_dir), .commands = IN_MODEL | IN_CONVERT,
        .group = GROUP_MODEL, .help = "folder of models, each of which -m may name",
        .more =
            "Checkpoint folders and GGUF files in it or one folder deeper (NAME, ORG/NAME). Without -m the "
            "first that can be loaded is taken. /v1/models lists them all."),
    ROW(.name = "model-switch", AT(model_switch), .kind = OPTION_SWITCH, .standard = 1, .commands = IN_SERVE,
        .group = GROUP_MODEL, .help = "load another model of --models-dir when a request names it",
        .more = "The answers that run end first, and later requests wait in their order."),
    ROW(.name = "strict-model", AT(strict_model), .kind = OPTION_SWITCH, .commands = IN_SERVE,
        .group = GROUP_MODEL, .help = "refuse requests that name another model"),
    ROW(.name = "chat-template-file", .metavar = "FILE", AT(chat_template_file), .commands = IN_ANSWER,
        .group = GROUP_MODEL, .help = "Jinja chat template instead of the checkpoint's"),
    ROW(.name = "tool-call-parser", .metavar = "NAME", AT(tool_call_parser), .commands = IN_SERVE,
        .group = GROUP_MODEL, .help = "form of the model's tool calls: auto, none, qwen3_xml, hermes",
        .note = "auto: as its chat template shows"),
    ROW(.name = "ctx-size", .also = "max-model-len", .letters = "c", .metavar = "N", AT(ctx_size),
        .kind = OPTION_INT, .min = 256, .max = 1 << 24, .commands = IN_ENGINE, .group = GROUP_MODEL,
        .help = "tokens a conversation may have", .note = "what the model and memory allow, at most 32768",
        .more = "The prompt and the answer count, pictures and films included. A longer request is refused, "
                "never cut."),
    ROW(.name = "quantize", .metavar = "FORMAT", AT(quantize), .kind = OPTION_CHOICE, .choices = "none q8 q4",
        .commands = IN_ENGINE | IN_CONVERT, .group = GROUP_MODEL,
        .help = "keep the layers' matrices in blocks of 8 or 4 bits: none, q8, q4", .standard_text = "none",
        .more = "The blocks are kept in the cache folder ($XDG_CACHE_HOME or ~/.cache) for the next start."),
    ROW(.name = "quantize-head", .metavar = "FORMAT", AT(quantize_head), .kind = OPTION_CHOICE,
        .choices = "none q8 q4", .commands = IN_ENGINE | IN_CONVERT, .group = GROUP_MODEL,
        .help = "the same for the logits head", .note = "q8 if --quantize is q8 or q4"),

    /* ---- memory and speed ---- */
    ROW(.name = "threads", .letters = "t", .metavar = "N", AT(threads), .kind = OPTION_INT, .min = 1,
        .max = 1024, .commands = IN_ENGINE | IN_CONVERT, .group = GROUP_SPEED, .help = "compute threads",
        .note = "one per core"),
    ROW(.name = "parallel", .letters = "np", .metavar = "N", AT(parallel), .kind = OPTION_INT, .standard = 4,
        .min = 1, .max = 32, .commands = IN_SERVE, .group = GROUP_SPEED,
        .help = "answers computed at the same time"),
    ROW(.name = "queue", .also = "max-queue", .metavar = "N", AT(queue), .kind = OPTION_INT,
        .standard = LIMIT_QUEUE, .min = 1, .max = 4096, .commands = IN_SERVE, .group = GROUP_SPEED,
        .help = "requests that may wait; more get 429"),
    ROW(.name = "batch-size", .letters = "b", .metavar = "N", AT(batch_size), .kind = OPTION_INT,
        .standard = 512, .min = 16, .max = 8192, .commands = IN_ENGINE, .group = GROUP_SPEED,
        .help = "prompt tokens computed in one step"),
    ROW(.name = "mem-limit", .metavar = "MIB", AT(mem_limit), .kind = OPTION_INT, .max = 1 << 24,
        .commands = IN_ENGINE, .group = GROUP_SPEED,
        .help = "memory that weights, states, caches and requests may take; what does not fit does not start",
        .note = "what is free",
        .more =
            "The sum is logged at the start; requests get what weights, states and caches leave, at least "
            "512 MiB. The context and the caches shrink to fit unless they were asked for. What requests "
            "need is "
            "reserved before it is taken, processes that decode videos and pictures included: what "
            "does not fit now waits for 2 s, then gets 429, and what never could fit gets 413."),
    ROW(.name = "cache-ram", .metavar = "MIB", AT(cache_ram), .kind = OPTION_INT, .standard = -1, .max = MIB,
        .commands = IN_SERVE, .group = GROUP_SPEED,
        .help = "memory for states of earlier prompts; 0 keeps none",
        .note = "1024, or an eighth of the free memory"),
    ROW(.name = "vision-cache", .metavar = "MIB", AT(vision_cache), .kind = OPTION_INT, .standard = -1,
        .max = MIB, .commands = IN_SERVE, .group = GROUP_SPEED,
        .help = "memory for encoded pictures and films, so that a second question about them is quick; 0 "
                "keeps none",
        .note = "256, or a 32nd of the free memory"),
    ROW(.name = "cache-scope", .metavar = "WHO", AT(cache_scope), .kind = OPTION_CHOICE,
        .choices = "key all none", .standard_text = "key", .commands = IN_SERVE, .group = GROUP_SPEED,
        .help = "who may share earlier prompts and encoded pictures: key, all, none",
        .more = "key: requests with the same API key. With all, somebody who guesses a prompt can tell from "
                "the time whether "
                "another key sent it. none keeps nothing."),
    ROW(.name = "cache-type", .metavar = "TYPE", AT(cache_type), .kind = OPTION_CHOICE,
        .choices = "f32 bf16 f16 q8", .commands = IN_ENGINE, .group = GROUP_SPEED,
        .help = "how keys and values are kept: f32, bf16, f16, q8; smaller ones take less memory and time in "
                "long "
                "conversations",
        .note = "f16; f32 with --compute exact"),
    ROW(.name = "huge-pages", AT(huge_pages), .kind = OPTION_SWITCH, .commands = IN_ENGINE,
        .group = GROUP_SPEED,
        .help = "copy the weights into huge pages when the program starts: answers are quicker",
        .more =
            "Takes as much memory again as the weights, beside the pages of the files, which the system may "
            "drop; and some seconds at the start."),
    ROW(.name = "mlock", AT(mlock), .kind = OPTION_SWITCH, .commands = IN_ENGINE, .group = GROUP_SPEED,
        .help = "keep in memory what was once read or used: the system does not swap or drop it",
        .more = "Needs a limit of locked memory that is large enough: `ulimit -l`, or LimitMEMLOCK= of a "
                "service."),
    ROW(.name = "cpu", .metavar = "LEVEL", AT(cpu), .kind = OPTION_CHOICE,
        .choices = "generic avx2 avx512 native", .commands = IN_ENGINE, .group = GROUP_SPEED,
        .help = "highest instruction set: generic, avx2, avx512, native", .standard_text = "native"),
    ROW(.name = "compute", .metavar = "HOW", AT(compute), .kind = OPTION_CHOICE, .choices = "fast exact",
        .commands = IN_ENGINE, .group = GROUP_SPEED,
        .help = "arithmetic of prompts and pictures: fast, exact", .standard_text = "fast",
        .more =
            "fast takes the processor's quickest way, where activations may become bf16; exact the float32 "
            "products "
            "of the checks."),
    ROW(.name = "mtp", AT(mtp), .kind = OPTION_SWITCH, .standard = 1, .commands = IN_ENGINE,
        .group = GROUP_SPEED, .help = "let the model's multi-token-prediction head draft tokens",
        .more = "Answers are the same with and without it."),

    /* ---- answers ---- */
    ROW(.name = "n-predict", .letters = "n", .metavar = "N", AT(n_predict), .kind = OPTION_INT,
        .standard = LIMIT_MAX_TOKENS_DEFAULT, .min = 1, .max = 1 << 24, .commands = IN_ANSWER,
        .group = GROUP_ANSWER, .help = "most tokens of an answer, if the request does not say"),
    ROW(.name = "reasoning-budget", .metavar = "N", AT(reasoning_budget), .kind = OPTION_INT, .standard = -1,
        .min = -1, .max = 1 << 24, .commands = IN_ANSWER, .group = GROUP_ANSWER,
        .help = "most tokens of a think block, if the request does not say; -1 is no limit"),
    ROW(.name = "reasoning-field", .metavar = "NAME", AT(reasoning_field), .kind = OPTION_CHOICE,
        .choices = "content reasoning both", .commands = IN_SERVE, .group = GROUP_ANSWER,
        .help = "where a chat's thoughts stand: content, reasoning, both", .standard_text = "content",
        .more = "content is the field reasoning_content, which most clients read; some read reasoning. A "
                "client that reads both shows them twice."),
    ROW(.name = "reasoning", .metavar = "WHEN", AT(reasoning), .kind = OPTION_CHOICE,
        .choices = "on off auto", .standard_text = "auto", .commands = IN_SERVE, .group = GROUP_ANSWER,
        .help = "whether the model thinks first, if the request does not say: on, off, auto",
        .more = "auto leaves it to the chat template."),
    ROW(.name = "chat-template-kwargs", .metavar = "JSON", AT(chat_template_kwargs), .commands = IN_SERVE,
        .group = GROUP_ANSWER, .help = "variables of the chat template, if the request does not say"),
    ROW(.name = "temp", .also = "temperature", .metavar = "X", AT(temperature), .kind = OPTION_NUMBER,
        .standard = NAN, .max = 100, .commands = IN_ANSWER, .group = GROUP_ANSWER,
        .help = "temperature; 0 takes the likeliest token", .note = "model's default"),
    ROW(.name = "top-k", .metavar = "N", AT(top_k), .kind = OPTION_INT, .standard = -1, .max = 1 << 24,
        .commands = IN_ANSWER, .group = GROUP_ANSWER, .help = "keep the N likeliest tokens; 0 is off",
        .note = "model's default"),
    ROW(.name = "top-p", .metavar = "X", AT(top_p), .kind = OPTION_NUMBER, .standard = NAN, .max = 1,
        .commands = IN_ANSWER, .group = GROUP_ANSWER, .help = "keep tokens up to this probability mass",
        .note = "model's default"),
    ROW(.name = "min-p", .metavar = "X", AT(min_p), .kind = OPTION_NUMBER, .standard = NAN, .max = 1,
        .commands = IN_ANSWER, .group = GROUP_ANSWER, .help = "drop tokens below X times the likeliest",
        .note = "model's default"),
    ROW(.name = "repeat-penalty", .metavar = "X", AT(repeat_penalty), .kind = OPTION_NUMBER, .standard = NAN,
        .min = 0.01, .max = 10, .commands = IN_ANSWER, .group = GROUP_ANSWER,
        .help = "repetition penalty; 1 is off", .note = "model's default"),
    ROW(.name = "presence-penalty", .metavar = "X", AT(presence_penalty), .kind = OPTION_NUMBER,
        .standard = NAN, .min = -2, .max = 2, .commands = IN_ANSWER, .group = GROUP_ANSWER,
        .help = "taken off the logits of tokens that the answer has", .note = "model's default"),
    ROW(.name = "frequency-penalty", .metavar = "X", AT(frequency_penalty), .kind = OPTION_NUMBER,
        .standard = NAN, .min = -2, .max = 2, .commands = IN_ANSWER, .group = GROUP_ANSWER,
        .help = "the same for each time they occur", .note = "model's default"),
    ROW(.name = "seed", .metavar = "N", AT(seed), .kind = OPTION_SEED, .max = 9e15, .commands = IN_ANSWER,
        .group = GROUP_ANSWER, .help = "random seed", .note = "a new one for each answer"),

    /* ---- pictures and films ---- */
    ROW(.name = "max-images", .metavar = "N", AT(max_images), .kind = OPTION_INT, .standard = LIMIT_IMAGES,
        .min = 1, .max = LIMIT_IMAGES, .commands = IN_ANSWER, .group = GROUP_FILM,
        .help = "most pictures and films of a request"),
    ROW(.name = "max-image-pixels", .metavar = "N", AT(max_image_pixels), .kind = OPTION_INT,
        .standard = (double)LIMIT_IMAGE_PIXELS, .min = 256, .max = (double)LIMIT_IMAGE_PIXELS,
        .commands = IN_ANSWER, .group = GROUP_FILM, .help = "largest picture, width times height"),
    ROW(.name = "max-video-mib", .metavar = "MIB", AT(max_video_mib), .kind = OPTION_INT,
        .standard = (double)(LIMIT_FILM_BYTES >> 20), .min = 1, .max = MIB, .commands = IN_ANSWER,
        .group = GROUP_FILM, .help = "largest film"),
    ROW(.name = "max-video-pixels", .metavar = "N", AT(max_video_pixels), .kind = OPTION_INT,
        .standard = (double)LIMIT_FILM_PIXELS, .min = 256, .max = 1 << 28, .commands = IN_ANSWER,
        .group = GROUP_FILM, .help = "largest frame of a film, width times height"),
    ROW(.name = "max-video-duration", .metavar = "S", AT(max_video_duration), .kind = OPTION_INT,
        .standard = LIMIT_FILM_DURATION_S, .min = 1, .max = 360000, .commands = IN_ANSWER,
        .group = GROUP_FILM, .help = "longest film, in seconds"),
    ROW(.name = "max-video-frames", .also = "video-max-frames", .metavar = "N", AT(max_video_frames),
        .kind = OPTION_INT, .standard = LIMIT_VIDEO_FRAMES, .min = 1, .max = LIMIT_VIDEO_FRAMES_MAX,
        .commands = IN_ANSWER, .group = GROUP_FILM,
        .help = "most frames of a film shown to the model, up to 768"),
    ROW(.name = "media-mem", .metavar = "MIB", AT(media_mem), .kind = OPTION_INT,
        .standard = (double)(LIMIT_FILM_MEMORY >> 20), .min = 1, .max = MIB, .commands = IN_ANSWER,
        .group = GROUP_FILM, .help = "memory of the process that reads a film, beyond what it starts with"),
    ROW(.name = "max-video-time", .also = "media-timeout", .metavar = "S", AT(max_video_time),
        .kind = OPTION_INT, .standard = LIMIT_FILM_WALL_S, .min = 1, .max = 3600, .commands = IN_ANSWER,
        .group = GROUP_FILM, .help = "seconds that reading a film may take, and of processor time"),
    ROW(.name = "video-outer-pair", AT(video_outer_pair), .kind = OPTION_SWITCH, .commands = IN_ANSWER,
        .group = GROUP_FILM,
        .help = "keep the vision tokens around a film as a whole, for models trained with them"),

    ROW(.name = "media-domains", .also = "allowed-media-domains", .metavar = "HOST", AT(media_domains),
        .kind = OPTION_LIST, .commands = IN_SERVE, .group = GROUP_FILM,
        .help = "fetch pictures and films that requests name by http and https URLs from this host",
        .note = "nothing is fetched",
        .more =
            "May be repeated, or hold several with commas: hosts, *.example.org for the hosts below one, and "
            "addresses. A host is fetched from at public addresses only; redirects must stay among the "
            "hosts. An address, and localhost, stand for themselves even where they are not public."),
    ROW(.name = "media-path", .metavar = "DIR", AT(media_path), .commands = IN_SERVE, .group = GROUP_FILM,
        .help = "read pictures and films that requests name by file: URLs below this folder",
        .note = "none are read",
        .more = "The URL holds the whole path, or the path inside the folder. Links are not followed. "
                "Whoever may "
                "use the server may show all of it to the model."),

    /* ---- server ---- */
    ROW(.name = "host", .metavar = "ADDRESS", AT(host), .kind = OPTION_LIST, .commands = IN_SERVE | IN_HEALTH,
        .group = GROUP_SERVER, .help = "address to listen on: an IP address, or unix:/path for a socket file",
        .standard_text = "127.0.0.1",
        .more = "May be repeated, or hold several with commas; all have the same port. Sockets that systemd "
                "hands over "
                "(LISTEN_FDS) are used instead."),
    ROW(.name = "port", .metavar = "N", AT(port), .kind = OPTION_INT, .standard = 8080, .max = 65535,
        .commands = IN_SERVE | IN_HEALTH, .group = GROUP_SERVER,
        .help = "port to listen on; 0 takes a free one"),
    ROW(.name = "max-body", .metavar = "MIB", AT(max_body_mib), .kind = OPTION_INT,
        .standard = (double)(LIMIT_BODY_BYTES >> 20), .min = 1, .max = 1024, .commands = IN_SERVE,
        .group = GROUP_SERVER, .help = "largest request"),
    ROW(.name = "max-ws-message", .metavar = "MIB", AT(max_ws_message_mib), .kind = OPTION_INT, .max = 1024,
        .commands = IN_SERVE, .group = GROUP_SERVER,
        .help = "largest message of a WebSocket; 0: as --max-body"),
    ROW(.name = "max-ws-queue", .metavar = "KIB", AT(max_ws_queue_kib), .kind = OPTION_INT,
        .standard = LIMIT_UNREAD_BYTES >> 10, .min = 64, .max = MIB, .commands = IN_SERVE,
        .group = GROUP_SERVER,
        .help = "what may wait for a client that does not read its socket or stream; then it is cut off"),
    ROW(.name = "max-header", .metavar = "KIB", AT(max_header_kib), .kind = OPTION_INT,
        .standard = LIMIT_HEADER_BYTES >> 10, .min = 2, .max = 16, .commands = IN_SERVE,
        .group = GROUP_SERVER, .help = "largest head of a request"),
    ROW(.name = "max-conns", .metavar = "N", AT(max_conns), .kind = OPTION_INT, .standard = LIMIT_CONNECTIONS,
        .min = 1, .max = 100000, .commands = IN_SERVE, .group = GROUP_SERVER,
        .help = "connections at the same time; more are closed"),
    ROW(.name = "max-conns-per-ip", .metavar = "N", AT(max_conns_per_ip), .kind = OPTION_INT,
        .standard = LIMIT_CONNECTIONS_PER_ADDRESS, .min = 1, .max = 100000, .commands = IN_SERVE,
        .group = GROUP_SERVER, .help = "the same, of one address",
        .more = "Behind a proxy all come from its address."),
    ROW(.name = "header-timeout", .metavar = "S", AT(header_timeout), .kind = OPTION_INT,
        .standard = LIMIT_HEADER_TIMEOUT_S, .min = 1, .max = 3600, .commands = IN_SERVE,
        .group = GROUP_SERVER, .help = "seconds for the head of a request to arrive"),
    ROW(.name = "body-timeout", .metavar = "S", AT(body_timeout), .kind = OPTION_INT,
        .standard = LIMIT_BODY_TIMEOUT_S, .min = 1, .max = 3600, .commands = IN_SERVE, .group = GROUP_SERVER,
        .help = "seconds that a body may take; uploads get more by their size"),
    ROW(.name = "body-rate", .metavar = "KIB", AT(body_rate_kib), .kind = OPTION_INT,
        .standard = LIMIT_BODY_RATE >> 10, .max = MIB, .commands = IN_SERVE, .group = GROUP_SERVER,
        .help = "KiB a second that a body must bring, its first 5 seconds apart; 0: any"),
    ROW(.name = "queue-timeout", .metavar = "S", AT(queue_timeout), .kind = OPTION_INT,
        .standard = LIMIT_QUEUE_TIMEOUT_S, .min = 1, .max = 86400, .commands = IN_SERVE,
        .group = GROUP_SERVER, .help = "seconds that a request may wait for its turn"),
    ROW(.name = "request-timeout", .metavar = "S", AT(request_timeout), .kind = OPTION_INT,
        .standard = LIMIT_REQUEST_TIMEOUT_S, .min = 1, .max = 864000, .commands = IN_SERVE,
        .group = GROUP_SERVER, .help = "seconds that an answer may take from its request to its end"),
    ROW(.name = "step-timeout", .metavar = "S", AT(step_timeout), .kind = OPTION_INT,
        .standard = LIMIT_STEP_TIMEOUT_S, .min = 1, .max = 86400, .commands = IN_SERVE, .group = GROUP_SERVER,
        .help = "seconds that a computation may stand still before its answers are ended with an error",
        .more = "Slow is not still: each small part that is computed counts. Until it goes on, /health says "
                "503, new requests "
                "are refused, and systemd's watchdog is not fed."),
    ROW(.name = "keepalive", .metavar = "S", AT(keepalive), .kind = OPTION_INT, .standard = LIMIT_KEEPALIVE_S,
        .min = 1, .max = 3600, .commands = IN_SERVE, .group = GROUP_SERVER,
        .help = "seconds of silence before a stream sends a comment"),
    ROW(.name = "ws-ping", .metavar = "S", AT(ws_ping), .kind = OPTION_INT, .standard = LIMIT_WS_PING_S,
        .min = 1, .max = 3600, .commands = IN_SERVE, .group = GROUP_SERVER,
        .help = "seconds of silence before a WebSocket is pinged; 15 more and it is dropped"),
    ROW(.name = "on-disconnect", .metavar = "WHAT", AT(on_disconnect), .kind = OPTION_CHOICE,
        .choices = "cancel finish", .standard_text = "cancel", .commands = IN_SERVE, .group = GROUP_SERVER,
        .help = "what becomes of an answer whose client leaves: cancel, finish",
        .more = "finish computes it to its end, so that the same prompt is known the next time. What a "
                "request says itself "
                "(on_disconnect, store, Idempotency-Key) comes first."),
    ROW(.name = "drain-timeout", .also = "shutdown-timeout", .metavar = "S", AT(drain_timeout),
        .kind = OPTION_INT, .standard = LIMIT_DRAIN_TIMEOUT_S, .max = 86400, .commands = IN_SERVE,
        .group = GROUP_SERVER,
        .help = "seconds that running answers have when the server is told to stop; 0 cuts them",
        .more = "SIGTERM or SIGINT: nothing new is accepted, /health says 503, answers end or are cut after "
                "this time, "
                "and the program exits with 0. A second signal ends it at once."),
    ROW(.name = "api-prefix", .also = "root-path", .metavar = "PATH", AT(api_prefix),
        .commands = IN_SERVE | IN_HEALTH, .group = GROUP_SERVER,
        .help = "serve everything below this path, as behind a proxy that keeps it",
        .more = "It begins with a slash and ends without one: /parley."),
    ROW(.name = "metrics", AT(metrics), .kind = OPTION_SWITCH, .standard = 1, .commands = IN_SERVE,
        .group = GROUP_SERVER, .help = "offer /metrics"),
    ROW(.name = "slots", AT(slots), .kind = OPTION_SWITCH, .standard = 1, .commands = IN_SERVE,
        .group = GROUP_SERVER, .help = "offer /slots"),
    ROW(.name = "ui", AT(ui), .kind = OPTION_SWITCH, .standard = 1, .commands = IN_SERVE,
        .group = GROUP_SERVER, .help = "serve the browser chat"),
    ROW(.name = "ui-dir", .metavar = "DIR", AT(ui_dir), .commands = IN_SERVE, .group = GROUP_SERVER,
        .help = "serve the page from a folder (for its developers)"),

    /* ---- access ---- */
    ROW(.name = "api-key", .metavar = "KEY", AT(api_key), .kind = OPTION_LIST, .commands = IN_SERVE,
        .group = GROUP_ACCESS, .is_secret = true, .help = "key that clients must send; better in a file",
        .more =
            "May be repeated, or hold several with commas. Each has at least 16 characters. On the command "
            "line other "
            "users of the machine may see it for a moment."),
    ROW(.name = "api-key-file", .metavar = "FILE", AT(api_key_file), .commands = IN_SERVE,
        .group = GROUP_ACCESS, .help = "file with one key a line",
        .note = "api-key in $CREDENTIALS_DIRECTORY, if systemd put it there",
        .more = "SIGHUP reads it again; what is under way goes on."),
    ROW(.name = "insecure-no-key", AT(insecure_no_key), .kind = OPTION_SWITCH, .commands = IN_SERVE,
        .group = GROUP_ACCESS, .help = "listen beyond this machine without asking for a key"),
    ROW(.name = "allowed-hosts", .metavar = "LIST", AT(allowed_hosts), .kind = OPTION_LIST,
        .commands = IN_SERVE, .group = GROUP_ACCESS, .help = "host names that browsers may use, with commas",
        .note = "localhost and addresses"),
    ROW(.name = "allowed-origins", .also = "cors-origins", .metavar = "LIST", AT(allowed_origins),
        .kind = OPTION_LIST, .commands = IN_SERVE, .group = GROUP_ACCESS,
        .help = "web origins that may call the API, with commas", .note = "this server's own"),

    /* ---- uploads ---- */
    ROW(.name = "max-upload", .also = "max-upload-mb", .metavar = "MIB", AT(max_upload_mib),
        .kind = OPTION_INT, .standard = (double)(LIMIT_UPLOAD_BYTES >> 20), .min = 1, .max = MIB,
        .commands = IN_SERVE, .group = GROUP_UPLOAD, .help = "largest uploaded file"),
    ROW(.name = "upload-quota", .metavar = "MIB", AT(upload_quota_mib), .kind = OPTION_INT,
        .standard = (double)(LIMIT_UPLOAD_QUOTA >> 20), .max = 1 << 24, .commands = IN_SERVE,
        .group = GROUP_UPLOAD, .help = "disk that the uploaded files of a key may take"),
    ROW(.name = "upload-dir", .metavar = "DIR", AT(upload_dir), .commands = IN_SERVE, .group = GROUP_UPLOAD,
        .help = "where uploaded files are kept while the server runs", .note = "TMPDIR, or /var/tmp"),
    ROW(.name = "upload-expire", .metavar = "MINUTES", AT(upload_expire_min), .kind = OPTION_INT,
        .standard = LIMIT_UPLOAD_EXPIRE_S / 60, .min = 1, .max = MIB, .commands = IN_SERVE,
        .group = GROUP_UPLOAD, .help = "how long an uploaded file stays after its last use"),

    /* ---- chats that are kept ---- */
    ROW(.name = "history", .metavar = "DIR", AT(history), .commands = IN_SERVE, .group = GROUP_HISTORY,
        .help = "keep the chats of the page in this folder, for every device",
        .note = "each browser keeps its own",
        .more = "The folder is made if it is absent. It holds a database and the attached files; each saved "
                "message "
                "is on the disk before the page hears of it. Every API key sees its own chats alone."),
    ROW(.name = "history-quota", .metavar = "MIB", AT(history_quota_mib), .kind = OPTION_INT,
        .standard = (double)(LIMIT_HISTORY_QUOTA >> 20), .min = 1, .max = 1 << 24, .commands = IN_SERVE,
        .group = GROUP_HISTORY, .help = "disk that all kept chats and their files may take"),

    /* ---- one command's own ---- */
    ROW(.name = "image", .letters = "i", .metavar = "FILE", AT(files), .kind = OPTION_PICTURE,
        .place = PLACE_LINE, .commands = IN_RUN, .group = GROUP_COMMAND,
        .help = "a picture to ask about; may be repeated"),
    ROW(.name = "video", .letters = "v", .metavar = "FILE", AT(files), .kind = OPTION_FILM,
        .place = PLACE_LINE, .commands = IN_RUN, .group = GROUP_COMMAND,
        .help = "a film to ask about; may be repeated"),
    ROW(.name = "system", .metavar = "TEXT", AT(system), .commands = IN_RUN, .group = GROUP_COMMAND,
        .help = "system prompt"),
    ROW(.name = "thinking", AT(thinking), .kind = OPTION_SWITCH, .commands = IN_RUN, .group = GROUP_COMMAND,
        .help = "let the model think first; its thoughts go to standard error"),
    ROW(.name = "prompt-tokens", .letters = "p", .metavar = "N", AT(bench_prompt), .kind = OPTION_INT,
        .standard = 512, .min = 1, .max = MIB, .commands = IN_BENCH, .group = GROUP_COMMAND,
        .help = "prompt length"),
    ROW(.name = "predict-tokens", .letters = "n", .metavar = "N", AT(bench_predict), .kind = OPTION_INT,
        .standard = 64, .min = 1, .max = MIB, .commands = IN_BENCH, .group = GROUP_COMMAND,
        .help = "tokens to generate"),
    ROW(.name = "repeat", .letters = "r", .metavar = "N", AT(bench_repeat), .kind = OPTION_INT, .standard = 3,
        .min = 1, .max = 1000, .commands = IN_BENCH, .group = GROUP_COMMAND,
        .help = "runs; the median is printed"),
    ROW(.name = "full", AT(bench_full), .kind = OPTION_SWITCH, .commands = IN_BENCH, .group = GROUP_COMMAND,
        .help = "also behind 2048, 8192 and 32768 tokens, with 2 to 16 answers at once, and a picture",
        .more = "Takes minutes. Contexts that do not fit --ctx-size are left out."),
    ROW(.name = "csv", AT(csv), .kind = OPTION_SWITCH, .commands = IN_BENCH, .group = GROUP_COMMAND,
        .help = "print the rows as comma-separated values"),
    ROW(.name = "json", AT(json), .kind = OPTION_SWITCH, .commands = IN_BENCH | IN_INSPECT,
        .group = GROUP_COMMAND, .help = "print JSON instead of a table"),

    /* ---- the program ---- */
    ROW(.name = "log-level", .metavar = "LEVEL", AT(log_level), .kind = OPTION_CHOICE,
        .choices = "debug info warn error off", .commands = IN_MODEL, .group = GROUP_PROGRAM,
        .help = "least important lines that are logged: debug, info, warn, error, off",
        .note = "info for serve, warn else"),
    ROW(.name = "log-format", .metavar = "FORMAT", AT(log_format), .kind = OPTION_CHOICE,
        .choices = "text json", .standard_text = "text", .commands = IN_MODEL, .group = GROUP_PROGRAM,
        .help = "form of the lines that are logged: text, json",
        .more = "In JSON the words key=value of a message are members too. Text in the systemd journal has a "
                "priority and no time, as the journal has its own. There are no colours."),
    ROW(.name = "log-file", .metavar = "FILE", AT(log_file), .commands = IN_MODEL, .group = GROUP_PROGRAM,
        .help = "append log lines to this file", .note = "standard error",
        .more = "SIGHUP opens it again, for whoever rotates it."),
    ROW(.name = "access-log", AT(access_log), .kind = OPTION_SWITCH, .commands = IN_SERVE,
        .group = GROUP_PROGRAM,
        .help = "log a line for every HTTP reply: its x-request-id, method, path, status, time",
        .more = "Answers have a line of their own at their end, with or without this."),
    ROW(.name = "quiet", .letters = "q", AT(quiet), .kind = OPTION_SWITCH, .commands = IN_ANSWER,
        .group = GROUP_PROGRAM, .help = "run: the answer alone; serve: no ready line, warnings only"),
    ROW(.name = "verbose", .letters = "v", AT(verbose), .kind = OPTION_SWITCH, .commands = IN_SERVE,
        .group = GROUP_PROGRAM, .help = "the same as --log-level debug"),
    ROW(.name = "config", .metavar = "FILE", AT(config), .place = PLACE_NO_FILE,
        .commands = IN_MODEL | IN_CONVERT | IN_HEALTH, .group = GROUP_PROGRAM,
        .help = "read this config file and no other; none: read no file",
        .note = "/etc/parley/parley.conf, then $XDG_CONFIG_HOME/parley/parley.conf"),
    ROW(.name = "print-config", AT(print_config), .kind = OPTION_SWITCH, .place = PLACE_LINE,
        .commands = IN_MODEL | IN_CONVERT | IN_HEALTH, .group = GROUP_PROGRAM,
        .help = "print what all options are, as a config file without secrets, and exit"),
    ROW(.name = "check", AT(check), .kind = OPTION_SWITCH, .place = PLACE_LINE, .commands = IN_SERVE,
        .group = GROUP_PROGRAM, .help = "load the model, compute one token and exit: 0 if all is well"),
    ROW(.name = "completion", .metavar = "SHELL", AT(completion), .kind = OPTION_CHOICE,
        .choices = "bash zsh fish", .place = PLACE_LINE, .commands = IN_SERVE, .group = GROUP_PROGRAM,
        .help = "print completions for a shell and exit: bash, zsh, fish"),
    ROW(.name = "licenses", AT(licenses), .kind = OPTION_SWITCH, .place = PLACE_LINE, .commands = IN_SERVE,
        .group = GROUP_PROGRAM, .help = "print the licences of all that is in the program and exit"),
    ROW(.name = "version", .letters = "V", AT(version), .kind = OPTION_SWITCH, .place = PLACE_LINE,
        .commands = IN_EVERY, .group = GROUP_PROGRAM, .help = "print the version and exit"),
    ROW(.name = "help", .letters = "h", AT(help), .kind = OPTION_SWITCH, .place = PLACE_LINE,
        .commands = IN_EVERY, .group = GROUP_PROGRAM, .help = "print this text and exit"),
};

_Static_assert(ARRAY_LEN(ROWS) <= OPTIONS_MAX_ROWS, "options.sources is too short");

static const command_row COMMANDS[] = {
    {.name = "serve",
     .id = COMMAND_SERVE,
     .bit = IN_SERVE,
     .usage = "parley [serve] [-m DIR] [options]",
     .help = "browser chat, WebSocket and HTTP API"},
    {.name = "run",
     .id = COMMAND_RUN,
     .bit = IN_RUN,
     .usage = "parley run [-m DIR] [--image FILE] [--video FILE] [options] \"QUESTION\"",
     .help = "one answer on the terminal",
     .words = {offsetof(options, prompt)},
     .n_words = 1},
    {.name = "bench",
     .id = COMMAND_BENCH,
     .bit = IN_BENCH,
     .usage = "parley bench [-m DIR] [options]",
     .help = "how fast prompts and answers are computed here"},
    {.name = "inspect",
     .id = COMMAND_INSPECT,
     .bit = IN_INSPECT,
     .usage = "parley inspect [PATH] [--json]",
     .help = "what a checkpoint, or each model in a folder, holds and needs",
     .words = {offsetof(options, model)},
     .n_words = 1},
    {.name = "convert",
     .id = COMMAND_CONVERT,
     .bit = IN_CONVERT,
     .usage = "parley convert MODEL OUT --quantize q8|q4 [options]",
     .help = "a checkpoint folder with weights in blocks",
     .words = {offsetof(options, convert_from), offsetof(options, convert_to)},
     .n_words = 2},
    {.name = "health",
     .id = COMMAND_HEALTH,
     .bit = IN_HEALTH,
     .usage = "parley health [--host ADDRESS] [--port N]",
     .help = "whether the server of this machine is ready: exit code 0, or 1"},
    {.name = "manual",
     .id = COMMAND_MANUAL,
     .bit = IN_MANUAL,
     .usage = "parley manual [parley.1 | parley.conf.5 | options]",
     .help = "the manual pages (roff), or a table of all options (Markdown)",
     .words = {offsetof(options, page)},
     .n_words = 1},
    {.name = "version",
     .id = COMMAND_VERSION,
     .bit = IN_VERSION,
     .usage = "parley version",
     .help = "version of this program"},
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
