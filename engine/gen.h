/* gen: what goes into the engine and what comes out: parameters, requests, events. Plain data; the
 * structs that cross threads are handed over whole.
 *
 * A request moves: server (chat_input) -> engine_prepare on a prep thread -> gen_request ->
 * engine_submit -> engine thread -> gen_event ... GEN_DONE. A request is known by its id alone;
 * after GEN_DONE the id is never used again.
 */
#ifndef PARLEY_ENGINE_GEN_H
#define PARLEY_ENGINE_GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The route of a request, chosen once: the same for streaming or not, HTTP and WebSocket. */
typedef enum gen_route { GEN_ROUTE_TEXT, GEN_ROUTE_MEDIA } gen_route;
const char *gen_route_name(gen_route r); /* "text", "media" */

/* What is wanted of a text in place of an answer. */
typedef enum gen_pool {
    GEN_POOL_NONE, /* an answer */
    GEN_POOL_LAST, /* the hidden state of its last token, behind the last norm */
    GEN_POOL_MEAN, /* the mean of all of them */
    GEN_POOL_YES   /* one number: how likely "yes" comes next, of "yes" and "no" */
} gen_pool;

/* A text, or its tokens. */
typedef struct gen_input {
    const char *text; /* NULL: ids */
    size_t len;
    const char *before,
        *behind; /* what stands around the text, with control tokens; then the text has none. Or NULL */
    const int32_t *ids;
    size_t n_ids;
} gen_input;

typedef struct gen_bias {
    int32_t id;
    float bias;
} gen_bias;

/* Sampling and limits of one request; a NAN or negative "unset" is filled from the model's defaults
 * by gen_params_fill (the request wins over the command line, that over generation_config.json). */
typedef struct gen_params {
    float temperature, top_p, min_p; /* NAN: unset */
    int32_t top_k;                   /* -1: unset */
    float repetition_penalty;        /* NAN: unset */
    float presence_penalty, frequency_penalty;
    bool has_seed;
    uint64_t seed;
    int32_t max_tokens;     /* -1: unset (up to the context or the server's default); 0: no answer */
    int32_t min_tokens;     /* it does not end by itself before so many; one held to a form may */
    int32_t n_top_logprobs; /* -1: no logprobs; 0..20 */
    int32_t n_choices;      /* answers to the prompt, each with a seed of its own; 0: one */
    /* reasoning budget: the think block is closed after so many; -1: unset (no limit) */
    int32_t think_tokens;
    /* sparse prefill: -1: as the server does; 0: off; 1: on, however short the prompt */
    int32_t spec_prefill;
    float spec_keep, spec_backbone; /* shares of the prompt: kept, and of it spread evenly; NAN: unset */
    gen_bias *biases;
    size_t n_biases;
    bool scores_prompt; /* with n_top_logprobs: those of the prompt's own tokens, too (GEN_PROMPT); it is then
                           computed whole, without the prefix cache */
    bool no_draft;      /* decode token by token; the answer is the same */
    bool no_lookup;     /* guess nothing from the text; the answer is the same */
    bool no_cache;      /* neither read nor fill the prefix cache; the answer is the same */
    bool ignore_eos;    /* benchmarks: a token that ends answers is one like any other */
} gen_params;

void gen_params_init(gen_params *p); /* everything unset */

/* Fills what is unset in p from defaults (whose own unset fields stay unset). */
void gen_params_fill(gen_params *p, const gen_params *defaults);

typedef struct gen_request gen_request; /* opaque: engine/request.h */

void gen_request_free(gen_request *r); /* NULL allowed; only for requests that were not submitted */

/* A request may have others behind it: the other answers to its prompt (gen_params.n_choices; the
 * prompt is computed once, and answer i is drawn with the seed + i), and requests that were appended.
 * The first owns the rest until all are submitted with it; each has an id and a GEN_DONE of its own. */
gen_request *gen_request_next(const gen_request *r); /* NULL: the last */
/* Puts `more`, and what is behind it, behind the last of r. */
void gen_request_append(gen_request *r, gen_request *more);
/* The id of one that is not the first, before they are submitted. */
void gen_request_set_id(gen_request *r, uint64_t id);

/* What log lines call it, and those behind it (req=NAME): copied, cut to 47 bytes. Before it is submitted; without a name
 * they have its id. */
void gen_request_set_name(gen_request *r, const char *name);

/* The state of its prompt, as far as a later one begins alike, is saved in the second tier of the
 * prefix cache under this name (engine_check_name) before GEN_DONE comes, which has an error if it
 * could not be. Before it is submitted. */
void gen_request_keep_as(gen_request *r, const char *name);

/* Facts about a prepared request. */
typedef struct gen_request_info {
    gen_route route;
    int32_t n_prompt_tokens;
    int32_t max_tokens;
    bool starts_in_thinking;        /* the rendered prompt ends inside an open think block */
    bool may_think;                 /* the answer may hold a think block of its own */
    const struct think_form *think; /* how it is written (think.h); NULL: a raw prompt's answer */
    bool continues;                 /* it goes on with an answer that was cut */
    bool is_remote; /* an engine on another machine answers: GEN_TEXT in place of GEN_TOKENS */
    int32_t n_images, n_videos;
} gen_request_info;
gen_request_info gen_request_get_info(const gen_request *r);

typedef enum gen_phase {
    GEN_PHASE_QUEUED,
    GEN_PHASE_MEDIA,
    GEN_PHASE_VISION,
    GEN_PHASE_PREFILL,
    GEN_PHASE_DECODE
} gen_phase;
const char *gen_phase_name(gen_phase p); /* "queued", "media_decode", "vision_encode", "prefill", "decode" */

typedef enum gen_finish {
    GEN_FINISH_STOP,
    GEN_FINISH_LENGTH,
    GEN_FINISH_CANCELLED,
    GEN_FINISH_ERROR,
    GEN_FINISH_FILTERED /* an engine on another machine withheld the rest (content_filter) */
} gen_finish;

typedef struct gen_timings {
    gen_route route;
    const char *server; /* the name of the other server that answers; NULL: this one */
    const char *rule;   /* by which it went there; NULL: the request named the model */
    int32_t prompt_n;   /* prompt tokens computed (without cached ones) */
    int32_t cache_n;    /* prompt tokens taken from the prefix cache */
    /* of a sparse prompt: the tokens behind the cached ones, and those of them that the model read
     * (prompt_n when all are); 0, 0: it was computed whole */
    int32_t sparse_n, sparse_kept_n;
    int32_t predicted_n;                 /* generated tokens */
    int32_t draft_n, draft_accepted_n;   /* tokens guessed by the draft head */
    int32_t lookup_n, lookup_accepted_n; /* and from the text */
    int32_t n_images, n_videos;
    int32_t n_media_cached; /* of them, not encoded because the vision cache held them */
    double queue_ms, media_ms, vision_ms, prompt_ms, predicted_ms, ttft_ms; /* ttft counts from submit */
} gen_timings;

typedef enum gen_event_type {
    GEN_VECTOR,   /* vector: of the next input (gen_pool) */
    GEN_PROGRESS, /* phase, processed, total */
    GEN_PROMPT,   /* tokens[0..n_tokens) of the prompt, with logprobs, that of the first NAN; the last
                     event of these has processed == total. Of several choices, for the first alone */
    GEN_TOKENS,   /* tokens[0..n_tokens) */
    GEN_TEXT,     /* text: of an engine on another machine, which has told its kinds apart */
    GEN_DONE      /* finish, error, timings; always the last, exactly once */
} gen_event_type;

enum { GEN_EVENT_TOKENS = 16 };

/* Log-probabilities of one generated token. */
typedef struct gen_logprob {
    float logprob;
    int32_t n_top;
    int32_t top_ids[20];
    float top_logprobs[20];
} gen_logprob;

/* What another engine says a text is. */
typedef enum gen_text_kind {
    GEN_TEXT_REASONING,
    GEN_TEXT_CONTENT,
    GEN_TEXT_CALL,      /* a tool call begins; the text is the function's name */
    GEN_TEXT_ARGUMENTS, /* of that call: a piece of a JSON object's text */
    GEN_TEXT_CALL_END,
    GEN_TEXT_LOGPROBS /* entries of logprobs.content, as JSON: "{..},{..}" */
} gen_text_kind;

typedef struct gen_text_piece {
    gen_text_kind kind;
    const char *text;
    size_t len;
} gen_text_piece;

/* One block of memory, which its event frees. */
typedef struct gen_text {
    int32_t n_tokens; /* about */
    size_t n;
    gen_text_piece pieces[];
} gen_text;

/* What another engine has counted. */
typedef struct gen_usage {
    bool is_known;
    int32_t prompt, cached, completion, reasoning; /* reasoning: -1 if it does not say */
} gen_usage;

typedef struct gen_event {
    uint64_t request_id;
    gen_event_type type;
    gen_phase phase;
    int32_t processed, total; /* frames, patches or tokens, by phase */
    int32_t n_tokens;
    int32_t tokens[GEN_EVENT_TOKENS];
    gen_logprob *logprobs; /* [n_tokens] or NULL; freed with the event */
    gen_text *text;        /* GEN_TEXT; freed with the event */
    float *vector;         /* [n_vector] GEN_VECTOR; freed with the event */
    int32_t n_vector;
    gen_usage usage; /* GEN_DONE after GEN_TEXT */
    gen_finish finish;
    err_code error; /* with GEN_FINISH_ERROR */
    char message[256];
    char error_name[ERR_NAME_MAX]; /* as in err_detail; "" where the code says it all */
    gen_timings timings;           /* filled on GEN_TOKENS (so far) and GEN_DONE */
} gen_event;

void gen_event_free(gen_event *e); /* NULL allowed */

#endif
