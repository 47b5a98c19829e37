/* limits: every limit in one place; the ones with a flag give that flag's default. Units in the
 * names. */
#ifndef PARLEY_BASE_LIMITS_H
#define PARLEY_BASE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/* JSON */
enum { LIMIT_JSON_DEPTH = 64, LIMIT_JSON_VALUES = 2000000 };

/* Requests */
#define LIMIT_BODY_BYTES ((size_t)64 << 20) /* --max-body */
/* of requests without images or videos: no context takes more */
#define LIMIT_TEXT_BODY_BYTES  ((size_t)4 << 20)
#define LIMIT_WS_MESSAGE_BYTES ((size_t)64 << 20)
enum {
    LIMIT_MESSAGES = 1024,
    LIMIT_PARTS_PER_MESSAGE = 256,
    LIMIT_TOOLS = 512,
    LIMIT_STOP_STRINGS = 16,
    LIMIT_STOP_BYTES = 256,
    LIMIT_TOP_LOGPROBS = 20,
    LIMIT_INPUTS = 2048,          /* of an embedding; documents to rank */
    LIMIT_INPUT_TOKENS = 1 << 20, /* of all of them */
    LIMIT_INPUT_VALUES = 1 << 22, /* numbers of a reply */
    LIMIT_CHOICES = 8,            /* n: answers to a prompt */
    LIMIT_ALL_CHOICES = 32,       /* of a request with several prompts */
    LIMIT_LOGIT_BIAS = 1024,
    LIMIT_MAX_TOKENS_DEFAULT = 2048,
    LIMIT_SPARSE_THRESHOLD = 8192, /* --spec-prefill-threshold */
};
/* --spec-prefill-keep: the share of a sparse prompt that is read */
#define LIMIT_SPARSE_KEEP 0.3

/* Structured output: a schema is refused before its automaton takes more */
#define LIMIT_GRAMMAR_BYTES ((size_t)32 << 20) /* nodes, literals and automata of one grammar */
#define LIMIT_GRAMMAR_STATE_BYTES                                                                            \
    ((size_t)16 << 20) /* cached states of one answer; then the cache is cleared */
#define LIMIT_GRAMMAR_MASK_BYTES ((size_t)8 << 20) /* cached masks of one answer */
enum {
    LIMIT_GRAMMAR_NODES = 50000,
    LIMIT_GRAMMAR_DEPTH = 200,           /* open values, counted in stack frames: about 60 nested objects */
    LIMIT_GRAMMAR_STACKS = 4096,         /* simultaneous parses of one text */
    LIMIT_GRAMMAR_TOKEN_STEPS = 5000000, /* to follow one token and find what may come next: below 0.1 s */
    LIMIT_SCHEMA_BRANCHES = 2000,        /* of all anyOf, multiplied out */
    LIMIT_SCHEMA_PROPERTIES = 5000,      /* of one object */
    LIMIT_PATTERN_BYTES = 4096,
    LIMIT_VALUE_BYTES = 65536, /* one text of an enum, one property name */
    LIMIT_NFA_STATES = 40000,
    LIMIT_NFA_EDGES = 500000,
    LIMIT_DFA_STATES = 20000,
    LIMIT_DFA_WORK = 20000000,     /* steps of the construction of one automaton */
    LIMIT_DFA_MEMBERS = 4000000,   /* of all sets of states that become one, kept while it is built */
    LIMIT_SCHEMA_WORK = 150000000, /* steps of all schemas of a request together: below a second */
};

/* Requests that are being prepared: parsed, rendered, tokenized */
enum {
    LIMIT_PREP_JOBS = 32,    /* begun at a time; the one that took the longest makes room for another: 429 */
    LIMIT_PREP_FETCHES = 16, /* of them those that wait for other hosts; then 429 */
    LIMIT_PREP_END_S = 5,    /* at the server's end; then the program ends without them */
};

/* Memory besides weights, states and caches: bodies, images, libraries. With --mem-limit requests
 * get what states and caches leave, at least this; the process itself and what outlives requests
 * gets its share of it. */
#define LIMIT_REQUEST_MEMORY ((size_t)512 << 20)
#define LIMIT_PROCESS_MEMORY ((size_t)96 << 20)
enum { LIMIT_MEMORY_WAIT_MS = 2000 }; /* a request waits so long for memory that others have; then 429 */

/* Prefix cache */
enum {
    LIMIT_CACHED_PREFIXES = 4096, /* each request is compared with all of them */
};

/* Images (refused from the header, before memory is allocated) */
#define LIMIT_IMAGE_PIXELS     ((size_t)64 << 20)
#define LIMIT_IMAGE_PIXELS_SUM ((size_t)128 << 20)
enum { LIMIT_IMAGES = 16, LIMIT_IMAGE_SIDE = 16384, LIMIT_IMAGE_ASPECT = 200 };

/* Videos */
enum {
    LIMIT_VIDEO_FRAMES = 256,      /* --max-video-frames: shown to the model */
    LIMIT_VIDEO_FRAMES_MAX = 768,  /* what that may be set to */
    LIMIT_VIDEO_DURATION_S = 3700, /* --max-video-duration */
    /* --max-video-time: for opening, and again for reading; also of processor time */
    LIMIT_VIDEO_WALL_S = 60,
    LIMIT_VIDEO_PACKETS = 1000000,     /* of all tracks of the file */
    LIMIT_VIDEO_TRACK_FRAMES = 250000, /* of its video track */
};
#define LIMIT_VIDEO_BYTES  ((size_t)512 << 20)   /* --max-video-mib */
#define LIMIT_VIDEO_PIXELS ((size_t)4096 * 2304) /* --max-video-pixels: of a frame */

/* The process that reads a video */
#define LIMIT_VIDEO_MEMORY ((size_t)512 << 20) /* --media-mem: in addition to its own */
enum { LIMIT_VIDEO_IDLE_S = 5, LIMIT_VIDEO_THREADS = 4 };

/* Uploads */
#define LIMIT_UPLOAD_BYTES ((uint64_t)1 << 30) /* --max-upload */
#define LIMIT_UPLOAD_QUOTA ((uint64_t)4 << 30) /* --upload-quota */
enum {
    LIMIT_UPLOAD_EXPIRE_S = 3600, /* --upload-expire; after the last use */
    LIMIT_FILES = 16384,          /* ids, in total */
    LIMIT_FILES_PER_KEY = 4096,
    LIMIT_FILE_CONTENTS = 512, /* open files behind them */
    LIMIT_FILE_CONTENTS_PER_KEY = 256,
    LIMIT_UPLOADS = 64, /* in progress, in total */
    LIMIT_UPLOADS_PER_KEY = 32,
    LIMIT_UPLOAD_PARTS = 1024,
    LIMIT_UPLOAD_CHUNK = 256 << 10, /* data of one WebSocket frame */
    LIMIT_UPLOAD_WINDOW = 1 << 20,  /* sent and not acknowledged */
    /* of one connection and not yet written: above it nothing is read from that connection */
    LIMIT_UPLOAD_WAITING = 512 << 10,
};

/* Fetched images and videos (--media-domains) */
enum {
    LIMIT_REMOTE_IMAGE_S = 5, /* for one, redirects included */
    LIMIT_REMOTE_VIDEO_S = 30,
    LIMIT_REMOTE_SUM_S = 60, /* for all of a request */
    LIMIT_REMOTE_HOPS = 3,   /* redirects */
};

/* Other servers in front of which this one stands (--upstream) */
#define LIMIT_UPSTREAM_EVENT_BYTES ((size_t)4 << 20)  /* one event of a stream */
#define LIMIT_UPSTREAM_REPLY_BYTES ((size_t)64 << 20) /* one answer, as it is sent */
#define LIMIT_UPSTREAM_VIDEO_BYTES ((size_t)32 << 20) /* a file sent as video_url; larger ones as frames */
enum {
    LIMIT_UPSTREAM_PIXELS = 4 << 20,        /* --upstream-pixels: of an image */
    LIMIT_UPSTREAM_VIDEO_PIXELS = 16 << 20, /* of all frames of a video that is sent as images */
    LIMIT_UPSTREAM_FRAMES = 32,             /* of them, unless the request asks for more */
    LIMIT_UPSTREAM_CONNECT_S = 5,           /* --upstream-connect-timeout */
    LIMIT_UPSTREAM_SILENCE_S = 300,         /* --upstream-timeout: without a byte of an answer */
    LIMIT_UPSTREAM_CHECK_S = 10,   /* between two looks at a server that answers; 1 s where it does not */
    LIMIT_UPSTREAM_MODELS = 512,   /* of one server */
    LIMIT_UPSTREAM_RUNNING = 4096, /* answers of all of them at once; then 429 */
};

/* Tools of MCP servers (--mcp-config) */
#define LIMIT_MCP_MESSAGE_BYTES ((size_t)16 << 20)  /* one message of a server */
#define LIMIT_MCP_RESULT_BYTES  ((size_t)128 << 10) /* text of a result that the model gets */
#define LIMIT_MCP_IMAGE_BYTES   ((size_t)8 << 20)   /* one image of a result */
#define LIMIT_MCP_SCHEMA_BYTES  ((size_t)64 << 10)  /* of one tool */
enum {
    LIMIT_MCP_TOOLS = 256,       /* of one server */
    LIMIT_MCP_PAGES = 32,        /* of one list */
    LIMIT_MCP_TEXT_BYTES = 4096, /* of a description; longer ones are cut */
    LIMIT_MCP_IMAGES = 4,        /* of one result */
    LIMIT_MCP_CONNECT_S = 30,    /* for a server to say what it offers */
    LIMIT_MCP_WAIT_S = 10,       /* a request waits so long for a server that is being connected */
    LIMIT_MCP_CALL_S = 60,       /* "timeout": of one call, and of one with progress at most ten times that */
    LIMIT_MCP_MEMORY_MIB = 4096, /* "memoryMiB": of a process */
    LIMIT_MCP_CALLS = 256,       /* under way at once */
    LIMIT_MCP_CALLS_A_ROUND = 16,
    LIMIT_MCP_ROUNDS = 16,     /* --mcp-rounds: of calls in one answer */
    LIMIT_MCP_BACK_OFF_S = 60, /* at most between two tries to connect */
};

/* Built-in tools (--tools) */
#define LIMIT_TOOL_FILE_BYTES          ((size_t)16 << 20) /* of a file that is read */
#define LIMIT_TOOL_SEARCHED_FILE_BYTES ((size_t)4 << 20)  /* larger ones are not searched */
#define LIMIT_TOOL_SEARCH_BYTES        ((size_t)512 << 20)
#define LIMIT_TOOL_PAGE_BYTES          ((size_t)2 << 20)
enum {
    LIMIT_TOOL_THREADS = 8,     /* calls at work at once; others wait */
    LIMIT_TOOL_ENTRIES = 65536, /* of one folder, and of a search */
    LIMIT_TOOL_SEARCH_S = 10,
    LIMIT_TOOL_PAGE_S = 20, /* redirects included */
};
/* Stored chats (--history) */
#define LIMIT_HISTORY_QUOTA      ((uint64_t)16 << 30) /* --history-quota: the database and its files */
#define LIMIT_HISTORY_CHAT_BYTES ((size_t)64 << 20)   /* text of one chat */
enum {
    LIMIT_HISTORY_CHATS = 100000,    /* of one key */
    LIMIT_HISTORY_TALKS = 100000,    /* conversations of the API, of one key */
    LIMIT_HISTORY_MESSAGES = 20000,  /* of one chat */
    LIMIT_HISTORY_ATTACHMENTS = 256, /* of one message */
    LIMIT_HISTORY_TITLE_BYTES = 1024,
    LIMIT_HISTORY_OPTIONS_BYTES = 1 << 20,
    LIMIT_HISTORY_SHARES = 1000,             /* links of one key */
    LIMIT_HISTORY_SHARE_S = 366 * 24 * 3600, /* the longest time that one is given; or it has no end */
    LIMIT_HISTORY_WORDS = 8,                 /* of a search */
    LIMIT_HISTORY_WORD_BYTES = 256,
    LIMIT_HISTORY_PAGE = 500,      /* chats of one list */
    LIMIT_HISTORY_QUEUE = 64,      /* requests waiting; then 429 */
    LIMIT_HISTORY_UNUSED_S = 3600, /* unreferenced files are kept for so long */
};

/* Connections and queues */
enum {
    LIMIT_CONNECTIONS = 4096,
    LIMIT_CONNECTIONS_PER_ADDRESS = 256,
    LIMIT_QUEUE = 32, /* requests waiting; then 429 */
    LIMIT_HEADER_BYTES = 8192,
    LIMIT_HEADER_TIMEOUT_S = 10, /* --header-timeout */
    LIMIT_BODY_TIMEOUT_S = 60,
    LIMIT_QUEUE_TIMEOUT_S = 600,    /* --queue-timeout: answers on a CPU take minutes */
    LIMIT_REQUEST_TIMEOUT_S = 3600, /* --request-timeout */
    LIMIT_STEP_TIMEOUT_S = 120,     /* --step-timeout */
    LIMIT_KEEPALIVE_S = 10,         /* --keepalive: SSE comment interval */
    LIMIT_WS_PING_S = 30,           /* --ws-ping: a socket is pinged after so long a silence */
    LIMIT_WS_PONG_S = 15,           /* ... and dropped if it stays silent */
    /* --min-body-rate: minimum bytes per second, after the first seconds of a body */
    LIMIT_MIN_BODY_RATE = 16 << 10,
    LIMIT_MIN_BODY_RATE_AFTER_S = 5,
    LIMIT_SEND_TIMEOUT_S = 30, /* --send-timeout: for what waits to be read by a client */
    LIMIT_SEND_RATE = 4 << 10, /* --send-rate: bytes a second of it that do, too */
    /* --max-ws-queue: queued for a client that does not read */
    LIMIT_UNREAD_BYTES = 1 << 20,
    LIMIT_DRAIN_TIMEOUT_S = 30, /* --drain-timeout */
};

/* Conversations kept for previous_response_id, as JSON text */
#define LIMIT_STORED_RESPONSE_BYTES ((size_t)16 << 20)  /* one of them */
#define LIMIT_RESPONSE_STORE_BYTES  ((size_t)128 << 20) /* all */
enum { LIMIT_STORED_RESPONSES = 1024, LIMIT_STORED_RESPONSE_S = 3600 };

/* Checkpoint files */
#define LIMIT_SAFETENSORS_HEADER_BYTES ((size_t)100 << 20)
enum {
    LIMIT_GGUF_VALUES = 65536,
    LIMIT_GGUF_TENSORS = 262144,
    LIMIT_GGUF_KEY = 65535,
    LIMIT_GGUF_NAME = 255,
    LIMIT_CATALOG_MODELS = 1024, /* below --models-dir */
    LIMIT_MODELS = 16            /* in memory at the same time */
};
#define LIMIT_CONFIG_BYTES          ((size_t)16 << 20)
#define LIMIT_TOKENIZER_BYTES       ((size_t)256 << 20)
#define LIMIT_TEMPLATE_BYTES        ((size_t)4 << 20)
#define LIMIT_HISTORY_RESERVE_BYTES ((uint64_t)16 << 20) /* of the disk, kept for deleting chats */
#define LIMIT_RENDERED_BYTES        ((size_t)64 << 20)

#endif
