/* engine: the public interface of the model. It deals in chats, requests, media and events, never
 * in tensors or threads, so that another implementation (a remote cluster) could use the same
 * header.
 *
 *     engine *e; engine_open(&e, &options, &detail);
 *     gen_request *r; engine_prepare(e, &r, chat, &hooks, &detail);      // prep threads, several at once
 *     engine_submit(e, r, id, &detail);                                  // hands r over
 *     // options.on_event(ctx, event) is called on the engine thread; the receiver frees the event
 *     engine_cancel(e, id); engine_close(e);
 */
#ifndef PARLEY_ENGINE_ENGINE_H
#define PARLEY_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "engine/chat.h"
#include "engine/gen.h"

typedef struct engine engine;

/* Limits on videos; 0: the value in base/limits.h. */
typedef struct engine_video_limits {
    int64_t max_bytes, max_pixels; /* of the file, of a frame */
    int32_t max_frames;            /* shown to the model, at most LIMIT_VIDEO_FRAMES_MAX */
    double max_duration_s;
    double max_time_s;  /* for opening it, and again for reading it; also of processor time */
    int64_t max_memory; /* of the process that reads it, in bytes */
} engine_video_limits;

/* Sparse prefill: of a long prompt the model reads the part that matters. keep and backbone: what
 * requests leave unset. */
typedef struct engine_sparse_options {
    const char *draft_dir; /* the small model that judges prompts; NULL: the question's words do */
    bool on;               /* for prompts that do not say */
    int32_t threshold;     /* tokens to compute from which on; 0: LIMIT_SPARSE_THRESHOLD */
    int32_t most;          /* longer prompts are computed whole; 0: no bound */
    int32_t chunk;         /* tokens that stay or go together; 0: SELECT_CHUNK */
    float keep, backbone;  /* 0: LIMIT_SPARSE_KEEP; 0: none */
} engine_sparse_options;

typedef struct engine_options {
    const char *model_dir;
    const char *mmproj;        /* see model_open_options */
    const char *template_file; /* NULL: the checkpoint's own */
    bool published_history;    /* earlier turns are rendered anew as the template says, see prompt.h */
    bool hoist_system;         /* system messages go to the front, wherever they stand */
    int32_t n_ctx;             /* 0: the model's, at most 32768 */
    int32_t n_parallel;        /* sequences decoded together; 0: 4, fewer where memory is short */
    int32_t n_queue;           /* requests waiting; 0: LIMIT_QUEUE */
    int32_t prefill_chunk;     /* tokens computed together; 0: model_config_prompt_rows */
    const char *cache_type;    /* keys and values: as --cache-type; NULL: f16, or f32 if exact */
    int64_t cache_mib; /* prefix cache; -1: 1024, or an eighth of the free memory if that is less; 0: none */
    const char *cache_disk;   /* folder of the prefix cache's second tier; NULL: none */
    int64_t cache_disk_mib;   /* it takes at most so much; 0: 4096 */
    int64_t vision_cache_mib; /* encoded images and videos; -1: 256, or a 32nd of the free memory; 0: none */
    int64_t mem_limit_mib;    /* weights, states, caches and requests keep within it; 0: the free memory */
    /* What requests reserve (base/ledger.h); gets its limit when the model is open, and outlives
     * the engine. NULL: it has its own. */
    struct ledger *memory;
    bool share_cache; /* both caches are shared by all requests, whatever their scope */
    /* started as `PROGRAM video-worker` to read a video; NULL: videos are read in this process */
    const char *video_program;
    engine_video_limits videos;
    engine_sparse_options sparse;
    const char *reasoning_form; /* a name of think.h; NULL: as the chat template shows it */
    int32_t max_images;         /* images and videos of a request, at most LIMIT_IMAGES; 0: as many */
    int64_t max_image_pixels;   /* of one image, at most LIMIT_IMAGE_PIXELS; 0: as many */
    /* keep the vision_start and vision_end that a template puts around a video */
    bool video_outer_pair;
    bool no_draft;              /* never use the multi-token-prediction head */
    int32_t prompt_lookup;      /* tokens guessed from the text, of a step; at most 31; 0: none */
    size_t n_threads;           /* 0: physical cores */
    unsigned cpu_mask;          /* ~0u: all instruction sets */
    int layer_bits, head_bits;  /* matrices are quantized to blocks of 8 or 4 bits; 0: as stored */
    int vision_bits;            /* the same of the vision tower; 8 or 0 */
    bool spread;                /* threads bound to processors, memory on all nodes (compute_options) */
    bool huge_pages;            /* weights are copied into huge pages (model/weights_copy.h) */
    bool lock_memory;           /* lock memory (mlockall); a failure is only a warning */
    bool rope_bf16;             /* see model_open_options */
    bool exact;                 /* prompts and images in float32 too; see compute_options.fast */
    int32_t default_max_tokens; /* 0: LIMIT_MAX_TOKENS_DEFAULT */
    gen_params defaults;        /* from the command line; unset fields fall to generation_config.json */
    /* Receives every event, on the engine thread; takes ownership (gen_event_free). */
    void (*on_event)(void *ctx, gen_event *event);
    void *on_event_ctx;
    /* Load progress, 0..1, on the calling thread; may be NULL. */
    void (*on_load)(void *ctx, const char *stage, double fraction);
    void *on_load_ctx;
} engine_options;

/* A level of --cpu (cpu_parse_level) to a mask for cpu_mask; false for another word. */
bool engine_parse_cpu(const char *text, unsigned *mask);

/* The highest level of this processor and system, in the words of --cpu; constant string. */
const char *engine_cpu(void);

/* What OPENBLAS_CORETYPE must say before the program starts; NULL: nothing, OpenBLAS knows the processor. */
const char *engine_wanted_blas(void);

/* "none", "q8" or "q4" to the bits of engine_options; false for another word. */
bool engine_parse_quantize(const char *text, int *n_bits);

typedef struct engine_convert_options {
    int layer_bits, head_bits;                                      /* as in engine_options */
    size_t n_threads;                                               /* 0: physical cores */
    void (*on_load)(void *ctx, const char *stage, double fraction); /* progress, 0..1; may be NULL */
    void *on_load_ctx;
} engine_convert_options;

/* Writes the checkpoint in dir as the new folder out_dir with weights in blocks. */
MUST_CHECK err_code engine_convert(const char *dir, const char *out_dir, const engine_convert_options *o,
                                   err_detail *detail);

/* Command word: options.video_program, started with it, must call engine_video_worker and exit with
 * its result. */
#define ENGINE_VIDEO_COMMAND "video-worker"
int engine_video_worker(void);

/* Loads the model and starts the engine thread. Blocks until ready. */
MUST_CHECK err_code engine_open(engine **out, const engine_options *opt, err_detail *detail);
/* Cancels everything, stops the thread, frees. NULL allowed. No other thread may be inside the
 * engine. */
void engine_close(engine *e);

/* Public facts about the loaded model. Valid while the engine is open. */
typedef struct engine_info {
    const char *model_name; /* last component of the folder */
    const char *model_dir;
    const char *family;
    const char *compute;    /* instruction sets and threads */
    const char *cache_type; /* of keys and values */
    int32_t n_ctx, n_ctx_train, n_vocab, n_embd, n_parallel;
    int32_t max_images; /* images and videos of a request */
    uint64_t n_params, weight_bytes, state_bytes, request_bytes;
    /* Lower bounds of the work of an answer (model/cost.h): bytes that a decode step reads, and per
     * token of context; multiply-adds per token in the layers, in the head, and per token of
     * context; per image patch in the vision tower, and per pair of patches. */
    double step_bytes, slot_bytes, layer_flops, head_flops, slot_flops, patch_flops, patch_pair_flops;
    bool has_vision, has_video, has_mtp, has_template,
        has_thinking;          /* thinking: the template knows enable_thinking */
    const char *template_text; /* the chat template's source; NULL without one */
    bool writes_tools;         /* it knows no tools: they are written into the system text */
    gen_pool pool;             /* how the vector of a text is taken */
    bool is_embedder;          /* the checkpoint was made for that; else any model's states are pooled */
    bool is_reranker;          /* it judges documents: GEN_POOL_YES */
    double video_fps;          /* default frame rate at which videos are sampled */
    int32_t video_min_frames, video_max_frames;
    int32_t patch_size, merge_size, temporal_patch_size; /* of the vision encoder */
    int64_t video_min_pixels, video_max_pixels;          /* of all frames shown together */
    bool video_fills_budget; /* no: of one frame, which is made as large as they allow */
    int32_t
        video_fixed_frames; /* so many are shown of any video unless a request says otherwise; 0: by video_fps */
    gen_params defaults;    /* complete; only the seed may be unset */
} engine_info;
const engine_info *engine_get_info(const engine *e);

/* Called while media of a chat are decoded, and cancelled also while its schemas are built and
 * between the stages behind; both may be NULL. */
typedef struct prepare_hooks {
    void (*progress)(void *ctx, gen_phase phase, int32_t processed, int32_t total);
    bool (*cancelled)(void *ctx);
    void *ctx;
} prepare_hooks;

/* Decodes media, renders the template, tokenizes, expands placeholders, assigns positions, checks
 * the context and chooses the route. Prep threads. ERR_INVALID, ERR_LIMIT, ERR_CORRUPT,
 * ERR_UNSUPPORTED name the field in detail->param; ERR_CONTEXT: the prompt does not fit (n_prompt
 * and n_ctx are in the text). `in` stays the caller's. */
MUST_CHECK err_code engine_prepare(engine *e, gen_request **out, const chat_input *in,
                                   const prepare_hooks *hooks, err_detail *detail);
/* The same for a raw prompt (completions). parse_special: added tokens in the text count as such.
 * scope: whose it is, see chat_input. */
MUST_CHECK err_code engine_prepare_text(engine *e, gen_request **out, const char *prompt, size_t len,
                                        bool parse_special, uint64_t scope, const gen_params *params,
                                        err_detail *detail);
/* The same for the ids of a prompt; ERR_INVALID if one is outside the vocabulary. */
MUST_CHECK err_code engine_prepare_tokens(engine *e, gen_request **out, const int32_t *ids, size_t n,
                                          uint64_t scope, const gen_params *params, err_detail *detail);
/* Texts of which vectors are wanted: a GEN_VECTOR each, in order, then GEN_DONE. pool: not GEN_POOL_NONE.
 * A text to be embedded gets the tokens that the checkpoint's tokenizer puts behind it; one of ids is
 * taken as it is. ERR_INVALID and ERR_LIMIT name input[i]; ERR_BUSY: there is no memory now. */
MUST_CHECK err_code engine_prepare_inputs(engine *e, gen_request **out, const gen_input *inputs, size_t n,
                                          gen_pool pool, uint64_t scope, err_detail *detail);
/* Appends the prompt as the chat template renders it; media stand as the template's placeholders.
 * Any thread. */
MUST_CHECK err_code engine_render(const engine *e, bytes *out, const chat_input *in, err_detail *detail);
/* Hands r over under a caller-chosen id (unique, not 0), and those behind it under theirs
 * (gen_request_next): engine_admit and engine_start. ERR_BUSY: the queue has not room for all of them
 * and r is still the caller's; ERR_LIMIT: it never has. After ERR_OK exactly one GEN_DONE with each id
 * will follow. Any thread. */
MUST_CHECK err_code engine_submit(engine *e, gen_request *r, uint64_t id, err_detail *detail);
/* All that can fail of engine_submit: r has its id and its place in the queue, and no event comes
 * yet. After ERR_OK the caller must call engine_start; a cancel between the two counts. Any
 * thread. */
MUST_CHECK err_code engine_admit(engine *e, gen_request *r, uint64_t id, err_detail *detail);
/* Hands over a request that was admitted. Any thread. */
void engine_start(engine *e, gen_request *r);

/* Stops a request within one step; unknown and finished ids are ignored. GEN_DONE follows with
 * GEN_FINISH_CANCELLED if it was running or waiting. Any thread. */
void engine_cancel(engine *e, uint64_t id);

/* Closes the think block of a request at its next token, as an exhausted budget does, or as soon as
 * it opens. Does nothing for unknown or finished ids and for answers whose reasoning has ended. Any
 * thread. */
void engine_end_thinking(engine *e, uint64_t id);

/* Raw bytes of a token (part of a character perhaps); special: a control token that is never shown.
 * NULL and 0 for ids without text. Any thread. */
const char *engine_token_bytes(const engine *e, int32_t id, size_t *len, bool *special);
/* Whether the id ends an answer. */
bool engine_is_stop_token(const engine *e, int32_t id);
/* For /tokenize; ids are appended as comma-separated decimal numbers. */
MUST_CHECK err_code engine_tokenize(const engine *e, bytes *out, const char *text, size_t len,
                                    bool parse_special, err_detail *detail);

/* "image/png", "video/mp4" and so on from the first bytes of a file (256 are enough), a constant
 * string; NULL if it is neither an image nor a video. Any thread. */
const char *engine_media_type(const uint8_t *head, size_t n);

/* Properties of an image or video. Images have only width and height. */
typedef struct engine_media_facts {
    int32_t width, height;  /* as shown */
    double duration_s, fps; /* fps 0: unknown */
    int64_t n_frames;
    const char *codec; /* "H.264"; NULL: an image */
    bool has_audio;
} engine_media_facts;

/* One of the frames that the model would see, or the image, as a small JPEG. */
typedef struct preview_thumb {
    double t_s; /* in the video */
    int32_t width, height;
    const uint8_t *jpeg;
    size_t n_bytes;
} preview_thumb;

enum { ENGINE_PREVIEW_THUMBS = 8 };

typedef struct preview_tokens {
    int32_t n_frames, n_tokens; /* with the default sampling; n_tokens is approximate */
} preview_tokens;

/* facts is called once, before any thumb; then thumb for each. cancelled is polled and may be
 * NULL. */
typedef struct preview_hooks {
    void (*facts)(void *ctx, const engine_media_facts *facts);
    void (*thumb)(void *ctx, const preview_thumb *thumb);
    bool (*cancelled)(void *ctx);
    void *ctx;
} preview_hooks;

/* Previews an uploaded file as a request would read it: at most ENGINE_PREVIEW_THUMBS thumbs, 10 s,
 * and images of up to 16 megapixels. After an error (as in engine_prepare) what was already
 * reported remains valid. fd stays the caller's; the file must not change meanwhile. Prep
 * threads. */
MUST_CHECK err_code engine_preview(const engine *e, preview_tokens *out, int fd, size_t n_bytes,
                                   bool is_video, const preview_hooks *hooks, err_detail *detail);

/* What a scope (chat_input) has in the prefix cache, in memory and on disk, and in the vision
 * cache, is not found any more; NULL: all scopes. Memory is given back after the current step. Any
 * thread. */
void engine_clear_cache(engine *e, const uint64_t *scope);

/* A cached prompt. */
typedef struct engine_cached {
    int32_t n_tokens;
    uint64_t n_bytes; /* of what it has alone: blocks of keys and values are shared */
    int64_t used_at;  /* seconds since 1970 */
    bool is_on_disk;
    char name[65]; /* under which it was saved; "": none */
} engine_cached;

/* Calls `each` for the cached prompts of a scope, those in memory first; one that is in both places
 * comes twice. `each` must not call the engine. Any thread. */
void engine_list_cache(engine *e, uint64_t scope, void (*each)(void *ctx, const engine_cached *one),
                       void *ctx);

/* Entries with a name, on disk, each of one scope. ERR_UNSUPPORTED without a disk tier, ERR_INVALID for
 * what can be no name. Any thread. */
MUST_CHECK err_code engine_check_name(const engine *e, const char *name, err_detail *detail);
/* False: there is none of that name. forgets: it is removed, on disk and in memory. Any thread. */
MUST_CHECK bool engine_find_named(engine *e, uint64_t scope, const char *name, bool forgets,
                                  engine_cached *out);
/* A request that reads such an entry into memory: its GEN_DONE says how many tokens as cache_n.
 * ERR_NOT_FOUND, ERR_CONTEXT. Prep threads. */
MUST_CHECK err_code engine_prepare_load(engine *e, gen_request **out, uint64_t scope, const char *name,
                                        err_detail *detail);

/* Roofline of this machine with the engine's threads (compute/limits.h). Call only while nothing is
 * being answered. Repeated calls raise *best; start with zeros. */
typedef struct engine_limits {
    double bandwidth_gbs, f32_gflops, q8_gops;
} engine_limits;

MUST_CHECK bool engine_measure_limits(const engine *e, engine_limits *best);

typedef struct engine_status {
    int32_t n_running, n_waiting;
    uint64_t progress_counter; /* changes all the time while answers are computed, however slowly */
    uint64_t n_requests, n_prompt_tokens, n_generated_tokens, n_cached_tokens;
    uint64_t n_vision_encodes, n_steps;
    uint64_t n_vision_hits, n_vision_entries,
        vision_cache_bytes; /* hits: images and videos that needed no encoding */
    uint64_t n_cache_queries, n_cache_hits, n_cache_entries, cache_bytes;
    /* Of the prefix cache on disk; budget 0: there is none. tokens: read back. errors: files that
     * could not be written or read. */
    uint64_t n_disk_entries, disk_bytes, disk_budget, n_disk_hits, n_disk_tokens, n_disk_saves, n_disk_errors;
    uint64_t n_drafted, n_draft_accepted; /* by the draft head */
    uint64_t n_copied, n_copied_accepted; /* from the text */
    uint64_t n_first_drafts,
        n_first_accepted;    /* of them, the first of each step that was compared with a draw */
    uint64_t n_parked_steps; /* decode steps without drafting, because it did not pay */
    double vision_ms_sum, prefill_ms_sum, decode_ms_sum;
} engine_status;
/* A consistent copy of the counters. Any thread. */
void engine_get_status(engine *e, engine_status *out);

#endif
