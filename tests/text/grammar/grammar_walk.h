/* grammar_walk: random walks through a grammar, as a model that knows nothing would answer. One
 * thread.
 *
 *     walk_text(&out, cursor, trie, seed, "\"}", max);
 */
#ifndef PARLEY_TESTS_TEXT_GRAMMAR_GRAMMAR_WALK_H
#define PARLEY_TESTS_TEXT_GRAMMAR_GRAMMAR_WALK_H

#include <stdint.h>

#include "base/bytes.h"
#include "text/grammar/grammar_cursor.h"

static inline uint64_t walk_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The k-th allowed token. */
static inline int32_t walk_pick(const uint64_t *mask, size_t n_words, uint64_t k)
{
    for (size_t w = 0; w < n_words; w++) {
        const uint64_t here = (uint64_t)__builtin_popcountll(mask[w]);
        if (k >= here) {
            k -= here;
            continue;
        }
        uint64_t bits = mask[w];
        for (; k > 0; k--) {
            bits &= bits - 1;
        }
        return (int32_t)(w * 64) + __builtin_ctzll(bits);
    }
    return -1;
}

static inline uint64_t walk_count(const uint64_t *mask, size_t n_words)
{
    uint64_t n = 0;
    for (size_t w = 0; w < n_words; w++) {
        n += (uint64_t)__builtin_popcountll(mask[w]);
    }
    return n;
}

/* The token that a walk takes: often a short one, so that texts do not only consist of what most
 * tokens are. In a hurry, the next one of what closes values (`closing`, of which *n_closed bytes
 * are written), or a stop token. */
static inline int32_t walk_choose(const token_trie *t, const uint64_t *mask, uint64_t *random,
                                  const char *closing, size_t *n_closed, bool hurry)
{
    const uint64_t n = walk_count(mask, t->n_words);
    int32_t best = -1;
    size_t best_len = 0;
    for (int tries = 0; tries < (hurry ? 40 : 4); tries++) {
        const int32_t id = walk_pick(mask, t->n_words, walk_random(random) % n);
        size_t len;
        const char *text = token_trie_bytes(t, id, &len);
        if (hurry && !text) {
            return id;
        }
        if (best < 0 || (len < best_len && walk_random(random) % 2)) {
            best = id;
            best_len = len;
        }
    }
    for (int tries = 0; hurry && tries < 2; tries++) {
        const int32_t id = token_trie_find(t, closing + *n_closed, 1);
        if (id >= 0 && token_mask_has(mask, id)) {
            *n_closed = closing[*n_closed + 1] ? *n_closed + 1 : 0;
            return id;
        }
        *n_closed = 0;
    }
    for (const char *p = "\"}]"; hurry && *p; p++) {
        const int32_t id = token_trie_find(t, p, 1);
        if (id >= 0 && token_mask_has(mask, id)) {
            return id;
        }
    }
    return best;
}

/* Appends a random text of the grammar; false if it did not end within max_tokens, or the cursor
 * failed. */
static inline bool walk_text(bytes *out, grammar_cursor *c, const token_trie *t, uint64_t seed,
                             const char *closing, int max_tokens)
{
    uint64_t random = seed;
    size_t n_closed = 0;
    for (int i = 0; i < max_tokens; i++) {
        const uint64_t *mask = grammar_cursor_mask(c, grammar_cursor_state(c));
        if (!mask) {
            return false;
        }
        const int32_t id = walk_choose(t, mask, &random, closing, &n_closed, i > 30 + (int)(seed % 64));
        if (token_mask_has(t->stop_mask, id)) {
            return grammar_cursor_accept(c, id);
        }
        size_t len;
        const char *text = token_trie_bytes(t, id, &len);
        bytes_append(out, text, len);
        if (!grammar_cursor_accept(c, id)) {
            return false;
        }
    }
    return false;
}

#endif
