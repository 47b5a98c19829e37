/* dfa: finite automata over bytes, for the parts of a grammar that are a regular language: a
 * pattern, a date, a range of numbers. One thread at a time; a finished dfa is immutable.
 *
 *     nfa n; nfa_init(&n, NULL);                          // states 0 (start) and 1 (the end) exist
 *     nfa_add_char(&n, NFA_START, NFA_END, 'a', 'f', CHARS_JSON);
 *     err = nfa_determinize(&n, &d, "pattern", &detail);  // frees n
 *     int32_t q = 0; q = dfa_step(&d, q, byte);           // DFA_DEAD, or d.accept[q]: the text may end here
 *     dfa_free(&d);
 *
 * From every state of a dfa an accepting one can be reached: what can never be completed is cut
 * off. Sizes are bounded by LIMIT_DFA_STATES and LIMIT_DFA_WORK: some short patterns have huge
 * automata.
 */
#ifndef PARLEY_TEXT_GRAMMAR_DFA_H
#define PARLEY_TEXT_GRAMMAR_DFA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/work.h"

enum { DFA_DEAD = 0xffff };

typedef struct dfa {
    int32_t n_states;  /* 0: nothing is accepted; else state 0 is the start */
    int32_t n_classes; /* bytes of one class behave alike */
    uint8_t classes[256];
    uint16_t *next; /* [n_states, n_classes]; DFA_DEAD: refused. NULL only if the dfa was never made */
    bool *accept;   /* [n_states] */
} dfa;

void dfa_free(dfa *d); /* all zero is allowed */

/* The state behind `byte`, or DFA_DEAD. */
static inline int32_t dfa_step(const dfa *d, int32_t state, uint8_t byte)
{
    return d->next[state * d->n_classes + d->classes[byte]];
}

/* Whether text[0..len) is in the language. */
bool dfa_accepts(const dfa *d, const char *text, size_t len);

/* out = what both accept, or what a accepts and b does not. `what` names the part for errors. work
 * (may be NULL) counts the steps. ERR_LIMIT, ERR_NOMEM, ERR_CANCELLED. */
typedef enum dfa_op { DFA_AND, DFA_AND_NOT } dfa_op;
MUST_CHECK err_code dfa_combine(dfa *out, const dfa *a, const dfa *b, dfa_op op, const char *what,
                                work_count *work, err_detail *detail);

/* ---- building ---- */

typedef enum nfa_kind {
    NFA_BYTE,     /* reads a byte lo..hi */
    NFA_SKIP,     /* reads nothing */
    NFA_AT_BEGIN, /* reads nothing, only before the first byte */
    NFA_AT_END    /* reads nothing, only behind the last byte */
} nfa_kind;

typedef struct nfa_edge {
    int32_t from, to;
    nfa_kind kind;
    uint8_t lo, hi;
} nfa_edge;

typedef struct nfa {
    nfa_edge *edges;
    size_t n_edges, cap;
    int32_t n_states;
    bool failed, too_big; /* sticky; nfa_determinize reports them */
    work_count *work;     /* counts what building takes; may be NULL */
} nfa;

enum { NFA_START = 0, NFA_END = 1 };

/* How a character is written: as itself, or as JSON.stringify writes it inside a string (the one
 * shortest form). */
typedef enum nfa_chars { CHARS_RAW, CHARS_JSON } nfa_chars;

void nfa_init(nfa *n, work_count *work);
void nfa_free(nfa *n);
int32_t nfa_state(nfa *n); /* a new one */
void nfa_link(nfa *n, int32_t from, int32_t to, nfa_kind kind);
/* One character of the code points lo..hi (surrogates are left out), as the UTF-8 of its written
 * form. */
void nfa_add_char(nfa *n, int32_t from, int32_t to, uint32_t lo, uint32_t hi, nfa_chars chars);
/* The bytes one after the other. */
void nfa_add_bytes(nfa *n, int32_t from, int32_t to, const char *text, size_t len);

/* Turns n into a dfa and frees n, also on errors. ERR_LIMIT if it grows too large, ERR_NOMEM,
 * ERR_CANCELLED. */
MUST_CHECK err_code nfa_determinize(nfa *n, dfa *out, const char *what, err_detail *detail);

#endif
