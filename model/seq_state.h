/* seq_state: everything one sequence has computed so far: keys and values per attention layer
 * (pages), the convolution tails and delta states per GatedDeltaNet layer, the MTP head's own keys
 * and values. Owned by the engine thread.
 *
 *     seq_state *s; err = seq_state_create(&s, cfg, pool, n_ctx, compute, &detail);
 *     seq_snapshot *snap = seq_state_snapshot(s);
 *     err = seq_state_restore(s, snap, &detail);
 *
 * A hybrid state cannot be truncated: the delta state accumulates all tokens. Only snapshots at
 * chosen lengths and the per-row states of a verify block can be restored.
 */
#ifndef PARLEY_MODEL_SEQ_STATE_H
#define PARLEY_MODEL_SEQ_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "compute/nn.h"
#include "model/config/config.h"
#include "model/kv_pool.h"

typedef struct seq_state seq_state;
typedef struct seq_snapshot seq_snapshot;

/* Room for n_ctx tokens, whose keys and values come from the pool as they are needed; the draft
 * head's if the pool has it. ERR_NOMEM says how many bytes were wanted. */
MUST_CHECK err_code seq_state_create(seq_state **out, const model_config *cfg, kv_pool *pool, int32_t n_ctx,
                                     compute *c, err_detail *detail);
void seq_state_destroy(seq_state *s); /* releases its blocks; NULL allowed */

/* Bytes that one sequence of n_ctx tokens needs at most, blocks of that type included. */
size_t seq_state_bytes(const model_config *cfg, kv_type type, bool with_mtp, int32_t n_ctx);

/* Resets it for a new sequence and releases its blocks. */
void seq_state_reset(seq_state *s);

int32_t seq_state_len(const seq_state *s); /* tokens computed: the next cache slot */
int32_t seq_state_cap(const seq_state *s);

/* Rotary position minus cache slot for tokens after the prompt (<= 0 with media). Set after
 * prefill. */
int32_t seq_state_rope_delta(const seq_state *s);
void seq_state_set_rope_delta(seq_state *s, int32_t delta);

/* Memory for the states after every row of verify blocks of up to max_rows rows
 * (batch_run.keep_rows); once a state. ERR_NOMEM. */
size_t seq_state_rows_bytes(const model_config *cfg, int32_t max_rows); /* what that takes */
MUST_CHECK err_code seq_state_reserve_rows(seq_state *s, int32_t max_rows, err_detail *detail);
/* After a forward with keep_rows: goes back to the state after the first n_keep (>= 1) of its rows.
 * Nothing else may have changed the sequence since. The draft head's cache is cut with
 * mtp_truncate. */
void seq_state_rewind(seq_state *s, int32_t n_keep);

/* The whole state at its present length: keys and values are shared (copied on write), delta
 * states and convolution tails are copied. NULL if out of memory. Must be freed before the pool. */
MUST_CHECK seq_snapshot *seq_state_snapshot(const seq_state *s);
/* One that is taken while a forward goes past len tokens (batch_run.marks): begun before, ended
 * behind it, and not to be read in between. It may be freed at any time. NULL if out of memory. */
MUST_CHECK seq_snapshot *seq_snapshot_begin(const seq_state *s, int32_t len);
void seq_snapshot_end(seq_snapshot *snap, const seq_state *s);
/* A length at which the recurrent states are wanted. Blocks of the delta rule begin anew there, as if
 * the rows had been cut: the bits are those of two forwards, and weights are read once. */
typedef struct batch_mark {
    int32_t len;
    seq_snapshot *into; /* that was begun; NULL: begins blocks and nothing else */
} batch_mark;

/* Keeps memory for n more snapshots ready (spares.h), if they copy any states; once a pool. */
void seq_state_keep_spares(const seq_state *s, size_t n);

/* Back to a snapshot taken from a state of the same shape and pool. */
MUST_CHECK err_code seq_state_restore(seq_state *s, const seq_snapshot *snap, err_detail *detail);
/* Whether any prefix of it can be restored: no layer has a recurrent state, and no window has left a
 * token behind. */
bool seq_snapshot_can_be_cut(const seq_snapshot *snap);
/* Tokens of the shortest prefix that can be restored, and all longer ones: 1 if it can be cut anywhere,
 * its length if nowhere; between them, behind a window, as far as its first block reaches. */
int32_t seq_snapshot_shortest(const seq_snapshot *snap);
/* Back to the first n tokens of a snapshot (seq_snapshot_shortest .. its length), ERR_INVALID if it
 * cannot be cut there; what the draft head has beyond them is dropped. */
MUST_CHECK err_code seq_state_restore_prefix(seq_state *s, const seq_snapshot *snap, int32_t n,
                                             err_detail *detail);

/* What a snapshot consists of, for those who keep it elsewhere. */
typedef struct seq_snapshot_parts {
    int32_t len, mtp_len; /* tokens, and entries of the draft head */
    void **blocks;        /* [n_blocks] of block_bytes each; not written while others hold them */
    size_t n_blocks, block_bytes;
    float *floats; /* [n_floats] recurrent states */
    size_t n_floats;
    void **windows; /* [n_windows] of window_bytes each: blocks of the window behind the last token */
    size_t n_windows, window_bytes;
} seq_snapshot_parts;
seq_snapshot_parts seq_snapshot_get_parts(const seq_snapshot *snap);
/* Bytes of a snapshot's recurrent states and windows. */
size_t seq_snapshot_own_bytes(const seq_snapshot_parts *parts);
/* The same of any snapshot of such a model, at most. */
size_t seq_state_own_bytes(const model_config *cfg, kv_type type);
/* A snapshot for states of the shape of s, whose blocks are its own and undefined like its floats:
 * the caller fills them. NULL if out of memory or blocks. */
MUST_CHECK seq_snapshot *seq_snapshot_alloc(const seq_state *s, int32_t len, int32_t mtp_len);
size_t seq_snapshot_bytes(const seq_snapshot *snap); /* what was copied */
void seq_snapshot_free(seq_snapshot *snap);          /* NULL allowed */

#endif
