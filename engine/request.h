/* request: gen_request, a prompt ready to run: ids, positions, patch rows, complete parameters.
 * Made on a prep thread, then owned by whoever holds the pointer; private to engine/.
 *
 *     gen_request *r = gen_request_create();
 *     gen_request_free(r);
 */
#ifndef PARLEY_ENGINE_REQUEST_H
#define PARLEY_ENGINE_REQUEST_H

#include "base/hash.h"
#include "base/ledger.h"
#include "engine/gen.h"
#include "engine/think.h"
#include "engine/cache/prefix_cache.h"
#include "engine/cache/vision_cache.h"
#include "model/decoder.h"
#include "text/grammar/grammar.h"
#include "text/tokenizer/tokenizer.h"
#include "vision/processor.h"

/* One image or video of the prompt, in order of appearance. */
typedef struct gen_media {
    uint8_t hash[HASH_BYTES]; /* of the file as it was sent */
    patches patches;          /* freed as soon as it is encoded; without rows if it needs no encoding */
    uint8_t key[HASH_BYTES];  /* in the vision cache, and of its rows in the prefix cache */
    const vision_features *features; /* found there, and held; NULL: to be encoded */
    size_t pixels;                   /* of a decoded image */
    bool is_video;
    int32_t first_row; /* index of its first row among the prompt's replaced embedding rows */
    int32_t n_rows;    /* == patches.n_tokens */
    int32_t n_units;   /* == patches.t: 1 for an image, pairs of frames for a video */
} gen_media;

/* Where blocks of the delta rule begin anew. It depends on what stands before alone, so that a state
 * from the cache has the bits of one that is computed. */
typedef struct prompt_boundary {
    int32_t len; /* tokens in front of it, < prompt.len */
    bool keeps;  /* the prefix cache keeps the state there */
} prompt_boundary;

/* The end of a prompt that several answers go on from. Engine thread. */
typedef struct prompt_end {
    seq_snapshot *state; /* NULL: it is still being computed */
    float *logits;       /* [vocab_size] of its last token */
    float *hidden;       /* [hidden_size] the same */
    int32_t n_skipped;   /* as of the slot that computed it */
    gen_timings timings; /* the same */
    bool has_failed;     /* it will never be computed */
} prompt_end;

struct gen_request {
    uint64_t id;
    /* Behind it until both are submitted, see gen.h; owned by the one in front. */
    gen_request *next;
    /* The request whose prompt, positions, media, form and so on these are: this one has copies of the
     * pointers. It lives as long as any that name it. NULL: they are its own. */
    gen_request *of;
    int32_t n_others; /* that name this one */
    bool is_over;     /* freed but for them */
    prompt_end end;   /* with others: what they begin with */
    gen_pool pool;    /* no answer: vectors of the inputs, each of which becomes the prompt in turn */
    token_ids *inputs;
    size_t n_inputs, input_at;             /* input_at: of the one that is the prompt */
    int32_t n_before, n_all;               /* tokens of the inputs before it, of all */
    double *pooled;                        /* [hidden_size] the sum so far */
    char name[48];                         /* in log lines */
    char cache_name[PREFIX_GIVEN_MAX + 1]; /* its prompt is saved under that name, or ... */
    bool loads_cache; /* ... the entry of that name is read, and that is all; "": neither */
    gen_route route;
    gen_params params;   /* complete */
    token_ids prompt;    /* placeholders expanded */
    position *positions; /* [prompt.len] */
    int32_t rope_delta;  /* position of cache slot n is n + rope_delta after the prompt */
    int32_t *embed_rows; /* prompt indices of the placeholders, ascending */
    float *embeds;       /* [n_embed_rows, model_config_feature_width], filled by the vision encoder */
    int32_t n_embed_rows;
    gen_media *media;
    size_t n_media;
    grammar *grammar;            /* the form of the answer; NULL: free */
    prompt_boundary *boundaries; /* ascending */
    size_t n_boundaries;
    /* No message begins blocks of the delta rule anew: all but the last one are whole. Its states are found by
     * such prompts alone. */
    bool has_whole_blocks;
    uint64_t scope; /* requests of another scope never share cached prefixes */
    int32_t max_tokens;
    bool starts_in_thinking, may_think, continues;
    int32_t n_invitation;    /* the prompt's last tokens, which ask for the answer; 0: a raw prompt */
    token_ids think_close;   /* what closes a think block (think.h) */
    const think_form *think; /* how the answer thinks; NULL: a raw prompt's, which does not */
    int32_t n_images, n_videos;
    double media_ms;
    ledger_hold memory;   /* what is reserved for all of this; without a ledger: nothing */
    size_t scratch_bytes; /* of it: the encoder's scratch, until the media are encoded */
    int64_t submitted_ns; /* set by engine_submit */
    gen_event *done;      /* taken at submit, so that the last event can always be sent */
};

/* Frees the patches of a medium, gives back their memory, and lets go of the features. */
void gen_request_drop_media(gen_request *r, size_t i);

/* All media are there: gives back what was reserved for encoding them. */
void gen_request_drop_scratch(gen_request *r);

/* Puts n others to the same prompt behind r, which is complete, at the seeds after its own. False if
 * there is no memory; r stays as it was. */
MUST_CHECK bool gen_request_share(gen_request *r, int32_t n);
/* What has become of the prompt since: one of its owner's may have been thinned out. */
void gen_request_take_prompt(gen_request *r);

/* The next of the inputs is the prompt; false behind the last. */
bool gen_request_next_input(gen_request *r);

/* All zero; NULL if out of memory. Freed with gen_request_free (gen.h's opaque type, engine.h). */
MUST_CHECK gen_request *gen_request_create(void);

#endif
