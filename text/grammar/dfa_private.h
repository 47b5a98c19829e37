/* dfa_private: a dfa while its states are found one by one, shared by dfa.c and nfa.c. One thread.
 *
 *     dfa_builder b = {.n_classes = n}; dfa_builder_init(&b);
 *     int32_t q = dfa_builder_add(&b, hash); dfa_builder_link(&b, q, class, to);
 *     err = dfa_builder_finish(&b, &out, "pattern", &detail);
 */
#ifndef PARLEY_TEXT_GRAMMAR_DFA_PRIVATE_H
#define PARLEY_TEXT_GRAMMAR_DFA_PRIVATE_H

#include "text/grammar/dfa.h"

typedef struct dfa_builder {
    uint8_t classes[256]; /* set before dfa_builder_init, like n_classes */
    int32_t n_classes;
    int32_t n_states;
    size_t cap, next_cap;
    uint16_t *next;
    struct dfa_state {
        uint64_t hash;
        int32_t chain; /* the next one in the same bucket, -1 at the end */
        bool accept;
    } * states;
    int32_t *buckets; /* DFA_BUCKETS */
    bool failed, too_big;
    work_count *work; /* may be NULL */
} dfa_builder;

bool dfa_builder_init(dfa_builder *b);
/* A new state without transitions; -1 if there is no room (failed or too_big is set). */
int32_t dfa_builder_add(dfa_builder *b, uint64_t hash);
/* The first state with this hash and the ones behind it; -1 at the end. */
int32_t dfa_builder_find(const dfa_builder *b, uint64_t hash);
int32_t dfa_builder_find_next(const dfa_builder *b, int32_t state, uint64_t hash);
void dfa_builder_link(dfa_builder *b, int32_t from, int32_t byte_class, int32_t to);
/* Cuts off what cannot be completed; frees b. ERR_LIMIT, ERR_NOMEM by the flags, or why the work
 * ended. */
MUST_CHECK err_code dfa_builder_finish(dfa_builder *b, dfa *out, const char *what, err_detail *detail);

#endif
