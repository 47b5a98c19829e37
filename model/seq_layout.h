/* seq_layout: internals of seq_state, for the layers of this folder only. Engine thread.
 *
 *     kv_pages kv = seq_kv(s, layer);  float *state = seq_delta(s, layer);
 *
 * Keys and values live in blocks of SEQ_PAGE_TOKENS tokens from a kv_pool; a block holds these
 * tokens of all attention layers (the draft head's cache is one more layer at the end), so a prefix
 * is shared block by block: only the tables below point elsewhere. A block is taken when the first
 * token needs it. Where sliding layers keep their window alone, they have blocks of their own
 * (KV_WINDOW), which are given back when the window has left them.
 */
#ifndef PARLEY_MODEL_SEQ_LAYOUT_H
#define PARLEY_MODEL_SEQ_LAYOUT_H

#include "model/seq_state.h"

/* Sizes that follow from the configuration, in floats unless named otherwise. */
typedef struct seq_shape {
    size_t n_kv_layers; /* attention layers, + 1 with the draft head */
    struct {
        kv_shelf shelf;         /* the blocks that it is in */
        size_t at;              /* bytes before its keys and values in one of them */
    } kv[MODEL_MAX_LAYERS + 1]; /* [n_kv_layers] */
    size_t block_bytes[KV_SHELVES];
    size_t window; /* tokens that the blocks of KV_WINDOW are kept for; 0: there are none */
    size_t n_delta_layers;
    size_t delta;    /* n_v * dk * dv, one layer's state */
    size_t tail;     /* 3 * channels, one layer's convolution tail */
    size_t n_blocks; /* a property of the capacity, not of the model */
} seq_shape;

/* States after every row of a verify block, so that the sequence can go back to any of them. No
 * delta state is copied: the first row reads the present states and writes others, the last row
 * writes where the present ones were, and going back is a matter of pointers. */
typedef struct seq_rows {
    int32_t max_rows;  /* 0: not reserved */
    int32_t n_rows;    /* rows kept by the last forward; 0 = none, rewinding is impossible */
    float **delta;     /* [max_rows - 1]: after row t but the last, [n_delta_layers][delta] each */
    float *memory;     /* of max_rows - 1 of them; over time they swap places with seq_state's own */
    float *conv_input; /* [n_delta_layers][3 + max_rows][channels]: the old tail, then the rows */
} seq_rows;

struct seq_state {
    compute *c;
    kv_pool *pool;
    seq_shape shape;
    int32_t len, cap, mtp_len, rope_delta;
    float *memory; /* delta states and tails: one allocation */
    /* [n_blocks] each: references into the pool; NULL where no token has been, or the window has
     * left */
    void **blocks[KV_SHELVES];
    void **pages; /* [n_kv_layers][n_blocks]: page tables into the blocks */
    float *delta; /* [n_delta_layers][delta]: in memory or in rows.memory */
    float *tails; /* [n_delta_layers][tail] */
    seq_rows rows;
};

/* Page tables of one attention layer; layer n_attention_layers is the draft head's. */
static inline kv_pages seq_kv(const seq_state *s, size_t layer)
{
    return (kv_pages){s->pages + layer * s->shape.n_blocks, SEQ_PAGE_TOKENS, kv_pool_type(s->pool)};
}

/* State of one GatedDeltaNet layer (counted among those alone). */
static inline float *seq_delta(const seq_state *s, size_t layer)
{
    return s->delta + layer * s->shape.delta;
}

static inline float *seq_tail(const seq_state *s, size_t layer)
{
    return s->tails + layer * s->shape.tail;
}

/* Where the state of one layer goes after row t of a kept block of n_rows, and the convolution's
 * inputs. */
static inline float *seq_row_delta(const seq_state *s, size_t layer, size_t t, size_t n_rows)
{
    return (t + 1 < n_rows ? s->rows.delta[t] : s->delta) + layer * s->shape.delta;
}

static inline float *seq_row_inputs(const seq_state *s, size_t layer)
{
    return s->rows.conv_input + layer * (3 + (size_t)s->rows.max_rows) * (s->shape.tail / 3);
}

/* Copies the states of one GatedDeltaNet layer into a snapshot that was begun. */
void seq_snapshot_take(seq_snapshot *snap, const seq_state *s, size_t layer);

/* Makes slots first .. first+n-1 writable: their blocks exist and belong to this sequence alone (a
 * shared one is copied). Gives back what the window of slot `first` has left. Called before a forward
 * touches anything. ERR_NOMEM if the pool is exhausted. */
MUST_CHECK err_code seq_reserve(seq_state *s, int32_t first, int32_t n, err_detail *detail);
/* The same for slots of the draft head. */
MUST_CHECK err_code seq_reserve_draft(seq_state *s, int32_t first, int32_t n, err_detail *detail);

#endif
