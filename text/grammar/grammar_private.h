/* grammar_private: the nodes of a grammar, for grammar.c and grammar_cursor.c. Immutable after
 * grammar_finish.
 */
#ifndef PARLEY_TEXT_GRAMMAR_GRAMMAR_PRIVATE_H
#define PARLEY_TEXT_GRAMMAR_GRAMMAR_PRIVATE_H

#include "text/grammar/grammar.h"

typedef enum node_kind {
    NODE_TEXT,   /* a leaf: text[0..n) */
    NODE_DFA,    /* a leaf: automaton */
    NODE_STRING, /* a leaf: a JSON string of min..max characters */
    NODE_SEQUENCE,
    NODE_CHOICE,
    NODE_REPEAT /* items[0] first, items[1] again */
} node_kind;

typedef struct grammar_node {
    node_kind kind;
    bool marker; /* TEXT: one token if the vocabulary has it; DFA: free text up to `text` */
    /* stack frames that a shallowest text of it needs at least; HEIGHT_NEVER: it has no text */
    int32_t height;
    int32_t n; /* items, or bytes of text */
    int32_t min, max;
    const int32_t *items;
    const char *text;
    const dfa *automaton;
} grammar_node;

enum { HEIGHT_NEVER = INT32_MAX / 2 };

struct grammar {
    arena *arena;
    grammar_node *nodes;
    int32_t n_nodes;
    size_t cap;
    dfa **automata; /* owned */
    size_t n_automata, cap_automata;
    size_t automata_bytes;
    int32_t space; /* the one node for white space, or 0 */
    int32_t root;
    int32_t thinking_root; /* the rest of a think block, then root */
    bool failed, too_big;  /* sticky while building */
    work_count *work;      /* while building; may be NULL */
    const char *until;     /* the last end that grammar_until was asked for, and its node */
    int32_t until_node;
    uint8_t classes[256]; /* bytes that no leaf tells apart have the same class */
    int32_t n_classes;
};

/* The states of a JSON string as NODE_STRING reads it. */
enum { STRING_BEFORE = 0, STRING_INSIDE = 1, STRING_N_STATES = 24, STRING_CLOSED = 24, STRING_REFUSED = 25 };

/* The state behind `byte`. From STRING_INSIDE the string may be closed; a step that ends there from
 * any state but STRING_BEFORE has read one character. */
int32_t grammar_string_step(int32_t state, uint8_t byte);

#endif
