/* bpe: byte-pair merging of one piece of text. A bpe is immutable once filled: any thread may
 * encode, each with its own scratch.
 *
 *     bpe_scratch s = {0};
 *     bpe_encode(&b, &s, ids, n_ids, &detail);      // in place: byte tokens in, merged tokens out
 *     bpe_scratch_deinit(&s);
 *
 * The pair with the lowest rank is merged first, the leftmost among equals, until none applies: by
 * looking at all pairs of a short piece, and with a heap over a linked list for others, n log n also
 * for a word of a megabyte.
 */
#ifndef PARLEY_TEXT_TOKENIZER_BPE_H
#define PARLEY_TEXT_TOKENIZER_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Longest piece in bytes; its scratch takes about 40 bytes each. */
enum { BPE_MAX_PIECE = 4 << 20 };

typedef struct bpe_merge {
    int32_t left, right; /* left < 0: free slot */
    int32_t rank, id;
} bpe_merge;

typedef struct bpe {
    bpe_merge *slots;
    size_t n_slots; /* a power of two */
} bpe;

typedef struct bpe_scratch {
    struct bpe_node *nodes;
    struct bpe_pair *heap;
    size_t n_heap, node_cap;
} bpe_scratch;

/* Room for n merges; ERR_NOMEM. */
MUST_CHECK err_code bpe_init(bpe *b, size_t n_merges, err_detail *detail);
void bpe_deinit(bpe *b);

/* Two neighbours left, right become id; lower rank first. A later rule for the same pair replaces
 * an earlier one. */
void bpe_add(bpe *b, int32_t left, int32_t right, int32_t rank, int32_t id);

/* Merges ids[0..*n) in place; *n is the new count. ERR_LIMIT over BPE_MAX_PIECE, ERR_NOMEM. */
MUST_CHECK err_code bpe_encode(const bpe *b, bpe_scratch *s, int32_t *ids, size_t *n, err_detail *detail);
void bpe_scratch_deinit(bpe_scratch *s);

#endif
