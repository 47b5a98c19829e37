/* engine_private: the engine's inside, shared by engine.c (life cycle, facade), prepare.c (prep
 * threads, reads only the immutable part) and step.c (engine thread).
 */
#ifndef PARLEY_ENGINE_ENGINE_PRIVATE_H
#define PARLEY_ENGINE_ENGINE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/ledger.h"
#include "compute/nn.h"
#include "engine/draft/draft.h"
#include "engine/draft/lookup.h"
#include "engine/engine.h"
#include "engine/inbox.h"
#include "engine/cache/cache_pressure.h"
#include "engine/cache/disk_cache.h"
#include "engine/cache/prefix_cache.h"
#include "engine/prompt.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/sparse/lookahead.h"
#include "engine/sparse/select.h"
#include "engine/think.h"
#include "engine/cache/vision_cache.h"
#include "model/decoder.h"
#include "model/model.h"
#include "model/sampler.h"
#include "text/grammar/grammar_cursor.h"
#include "vision/video/video.h"
#include "vision/processor.h"
#include "vision/vit.h"

/* Boundaries within one chunk of a prompt, at most. */
enum { CHUNK_MARKS = 64 };

enum { POOL_BEHIND_MAX = 4 };

/* What images and videos of requests are read with. */
typedef struct media_settings {
    const char *video_program;
    video_limits video_limits; /* of every video, but for its cancelling */
    int32_t max_video_frames;  /* shown to a model */
    size_t max_image_pixels;   /* of one image */
    ledger *memory;            /* for requests; NULL: no limit */
} media_settings;

/* prepare_video.c: the limits of the options; memory may be NULL. */
media_settings media_settings_of(const engine_options *opt, ledger *memory);

/* Whether a slot's prompt is to be thinned out before it is computed, and how far that is. */
typedef enum sparse_phase { SPARSE_NONE, SPARSE_WAITS, SPARSE_READS } sparse_phase;

/* Sparse prefill: the settings, and room for one prompt at a time. */
typedef struct sparse_state {
    engine_sparse_options set;
    bool failed;       /* a draft model was asked for and cannot be used: prompts are computed whole */
    lookahead *draft;  /* NULL: none */
    int32_t n_longest; /* tokens of a prompt */
    struct slot *slot; /* whose prompt the draft model reads, or NULL */
    float *importance; /* [n_longest] of the lexical judge */
    int32_t *kept;     /* [n_longest] */
    select_chunk *order;
} sparse_state;

/* One running sequence. Engine thread. */
typedef struct slot {
    gen_request *req; /* NULL: free */
    bool cache_used;  /* states are taken from the prefix cache ... */
    /* ... and put into it; not by a request without drafts, whose states lack the draft head's
     * part */
    bool cache_fed;
    seq_state *seq; /* lives as long as the engine */
    sampler *sampler;
    grammar_cursor *cursor; /* the sampler uses it; NULL: the answer is free */
    think_watch think;
    bool awaits_prompt;   /* another slot computes it (gen_request.of) */
    disk_load *load;      /* the slot waits for it; it may outlive a request that was cancelled */
    bool names;           /* its prompt is computed, and waits to be saved ... */
    prefix_entry *naming; /* ... as this; NULL: it is gone */
    gen_phase phase;
    int32_t prompt_done; /* prompt tokens computed */
    int32_t chunk;       /* prompt tokens behind them that are under way; 0: none */
    int32_t n_scored; /* of the chunk, once it is computed: rows whose logits were looked at; -1: it is not */
    size_t media_done;   /* images and videos encoded */
    int32_t frames_done; /* temporal patches of the current one */
    /* [1 + n_ctx + 1]: the sharing scope, then an element for each token (prefix_cache.h) */
    uint64_t *key;
    size_t n_key;
    sparse_phase sparse;
    int32_t n_skipped;    /* prompt tokens that are not read */
    size_t next_boundary; /* index into req->boundaries */
    int32_t next_token;   /* sampled, not yet in the cache */
    drafter drafter;      /* its head is unused without one */
    int32_t n_head;       /* drafts of the head; those behind them are copied ... */
    int32_t match_len;    /* ... from behind a match of that length */
    lookup lookup;        /* unused without prompt lookup */
    gen_timings timings;
    int64_t started_ns, first_token_ns;
} slot;

struct engine {
    /* immutable after engine_open: any thread */
    model *model;
    chat_template *own_template; /* from --chat-template-file, else NULL */
    const chat_template *template;
    prompt_style prompts; /* how the template is used */
    processor_config processor;
    vit *vision;                /* NULL: text only. Its scratch belongs to the engine thread. */
    quantized *vision_matrices; /* what it reads instead of those in the files; or NULL */
    vision_cache *vision_cache; /* NULL: none; any thread */
    engine_info info;
    char model_name[256];
    char dir[4096];
    char compute_text[128];
    int32_t prefill_chunk;
    int32_t behind[POOL_BEHIND_MAX], n_behind; /* the tokens behind a text that is embedded */
    int32_t yes_id, no_id;                     /* of GEN_POOL_YES */
    media_settings media;
    ledger *memory, *own_memory; /* for requests; the second if engine_options has none */
    bool video_outer_pair;
    bool share_cache;
    bool drafting;      /* the model has a draft head and it may be used */
    int32_t max_copied; /* drafts that are copied from the text, of a step; 0: none */
    void (*on_event)(void *ctx, gen_event *event);
    void *on_event_ctx;

    inbox *inbox;
    pthread_t thread;
    bool thread_started;

    /* engine thread */
    compute *compute;
    decoder_scratch *scratch;        /* of decode steps */
    decoder_scratch *prompt_scratch; /* of the prompt chunk that is under way */
    mtp_scratch *mtp;                /* NULL: no drafting */
    draft_policy draft_policy;
    lookup_policy lookup_policy;
    kv_type cache_type;
    kv_pool *pool;
    prefix_cache *cache; /* its entries hold blocks of the pool */
    cache_pressure pressure;
    size_t cache_bytes, vision_cache_bytes; /* --cache-ram, --vision-cache */
    sparse_state sparse;
    size_t n_spares;      /* states whose memory is kept ready; of cache_bytes */
    size_t disk_bytes;    /* memory of the disk cache */
    disk_cache *disk;     /* NULL: none */
    prefix_entry *saving; /* being written by the disk cache */
    bool saving_names;    /* under its name */
    slot *slots;
    int32_t n_slots;
    scheduler scheduler;
    float *raw_logits;                   /* [vocab] copy for logprobs */
    float *first_logits;                 /* [vocab] of a shared prompt's last token, to draw from */
    int32_t *chunk_rows;                 /* [prefill_chunk] rows of a chunk whose embedding is replaced */
    batch_mark chunk_marks[CHUNK_MARKS]; /* where that chunk's state is taken; of one at a time */
    int32_t n_chunk_marks;

    pthread_mutex_t trie_lock;
    token_trie *trie; /* {trie_lock} until it is made; then immutable */

    atomic_bool sweep_cache; /* set by any thread, taken by the engine thread */
    pthread_mutex_t status_lock;
    engine_status status; /* {status_lock} */
};

/* ---- sparse_prompt.c: what opening and closing need of it ---- */

/* Loads the draft model, if there is to be one; a failure is logged, and prompts are computed
 * whole. */
void sparse_open(engine *e, const engine_options *opt);
/* Bytes that sparse_create takes with a context of n_ctx tokens. */
size_t sparse_bytes(const engine *e, int32_t n_ctx);
MUST_CHECK err_code sparse_create(engine *e, err_detail *detail);
void sparse_close(engine *e);

/* inputs.c: what the checkpoint says of vectors, into info, behind, yes_id and no_id. */
void engine_find_pool(engine *e);

/* Opens the second tier of the prefix cache, if options name one. One that cannot be used is said
 * in the log, and the engine does without. */
void engine_open_disk(engine *e, const engine_options *opt);

/* The engine thread: runs steps until the inbox is closed and every slot is free. */
void *engine_thread(void *arg);

/* prefill.c: e->vision and e->processor, of a model with a vision tower. Loading thread; engine_close frees. */
MUST_CHECK err_code engine_open_vision(engine *e, const engine_options *opt, err_detail *detail);

#endif
