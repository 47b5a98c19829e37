/* jinja_value: the values that a chat template computes with, with Python's meaning. Used by the
 * jinja_*.c files and chat_template.c alone. One thread a render.
 *
 *     jinja_memory m = {.arena = a};
 *     jinja_value list = jinja_new_list(&m);  jinja_push(&m, list.as.seq, jinja_text(&m, "x", 1));
 *
 * Values are small and passed by value; what they point to lives in the arena and is never changed
 * after it was built, except namespaces, loops, generators, cyclers and joiners. Strings are UTF-8,
 * not NUL-terminated. Running out of memory sets m.failed and gives a value that is safe to use.
 */
#ifndef PARLEY_TEXT_JINJA_JINJA_VALUE_H
#define PARLEY_TEXT_JINJA_JINJA_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct jinja_value jinja_value;

typedef enum jinja_type {
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_BIGINT, /* an integer beyond 64 bits: kept as its digits */
    JINJA_FLOAT,
    JINJA_STR, /* from here to the views of a dict: what can be walked */
    JINJA_LIST,
    JINJA_TUPLE,
    JINJA_DICT,
    JINJA_RANGE,
    JINJA_GENERATOR, /* what filters like map give: can be walked once, has no length */
    JINJA_KEYS,      /* views of a dict */
    JINJA_VALUES,
    JINJA_ITEMS,
    JINJA_NAMESPACE,
    JINJA_LOOP,
    JINJA_MACRO,
    JINJA_FUNCTION,
    JINJA_METHOD,
    JINJA_CYCLER,
    JINJA_JOINER,
} jinja_type;

/* Nesting beyond which printing, comparing and the like give up. */
enum { JINJA_VALUE_DEPTH = 200 };

/* Memory of one render: small pieces cut from blocks of the arena. */
typedef struct jinja_memory {
    arena *arena;
    char *at; /* free part of the current block */
    size_t left;
    size_t block; /* block size; 0 = every piece straight from the arena */
    bool failed;
    bool no_memory; /* the machine had none for a text outside the arena: `failed`, too */
} jinja_memory;

typedef struct jinja_seq {
    jinja_value *items;
    size_t len, cap;
    bool is_group; /* TUPLE that groupby made: has the attributes grouper and list */
    size_t pos;    /* GENERATOR: next item; CYCLER: current one; JOINER: 0 before the first use */
} jinja_seq;

typedef struct jinja_entry jinja_entry;

/* Insertion-ordered dict; a hash index appears when it grows. */
typedef struct jinja_map {
    jinja_entry *entries;
    size_t len, cap;
    uint32_t *index; /* entry number + 1, 0 = free; NULL while small */
    size_t n_index;  /* a power of two */
} jinja_map;

typedef struct jinja_range {
    int64_t start, step;
    size_t len;
} jinja_range;

/* A string that grows at its end: a ~ b reuses the room behind a, so that building a text piece by
 * piece takes linear time. */
typedef struct jinja_buffer {
    char *data;
    size_t len, cap;
} jinja_buffer;

struct jinja_loop;
struct jinja_macro;
struct jinja_callable;

struct jinja_value {
    jinja_type type;
    bool markup;       /* STR: made by safe or escape; + escapes the other side */
    bool own;          /* STR: the template wrote every byte of it itself, none came with its variables */
    uint16_t own_tail; /* STR that is not: so many bytes at its end it wrote, at most UINT16_MAX */
    union {
        bool boolean;
        int64_t integer;
        double number;
        const char *text; /* STR, BIGINT: characters; UNDEFINED: name or message */
        jinja_seq *seq;   /* LIST, TUPLE, GENERATOR, CYCLER, JOINER */
        jinja_map *map;   /* DICT, KEYS, VALUES, ITEMS, NAMESPACE */
        const jinja_range *range;
        struct jinja_loop *loop;
        const struct jinja_macro *macro;
        const struct jinja_callable *callable; /* FUNCTION, METHOD */
    } as;
    size_t len; /* STR, BIGINT, UNDEFINED: bytes of text */
    union {
        jinja_buffer *buffer;    /* STR: where it may grow, or NULL */
        const char *owner;       /* UNDEFINED: see jinja_undefined */
        const jinja_value *self; /* METHOD: the object it belongs to */
    } extra;
};

struct jinja_entry {
    jinja_value key, value;
    uint64_t hash;
};

/* n zeroed bytes, aligned for any value; NULL and m->failed when there is no more. */
void *jinja_alloc(jinja_memory *m, size_t n);

/* Items with room for one more than `len`: the old ones or a larger copy, with its size in *cap.
 * NULL and m->failed when there is no more memory. */
void *jinja_grow(jinja_memory *m, void *items, size_t len, size_t *cap, size_t item_bytes);

/* ---- making values ---- */

jinja_value jinja_make_none(void);
jinja_value jinja_make_bool(bool b);
jinja_value jinja_make_int(int64_t i);
jinja_value jinja_make_float(double d);
/* A string that points to text, which must live as long as the render. */
jinja_value jinja_borrow(const char *text, size_t len);
/* A string with a copy of text. */
jinja_value jinja_text(jinja_memory *m, const char *text, size_t len);
/* NUL-terminated copy of a string; NULL if out of memory. */
const char *jinja_c_string(jinja_memory *m, const jinja_value *text);
/* Undefined. owner NULL: the variable `name` is unknown; JINJA_MESSAGE: name is the whole message;
 * else the kind of object that has no attribute `name`. */
jinja_value jinja_undefined(const char *name, size_t len, const char *owner);
extern const char JINJA_MESSAGE[];
jinja_value jinja_missing(const char *message); /* undefined with a message that lives for ever */

jinja_value jinja_new_seq(jinja_memory *m, jinja_type type, size_t cap); /* LIST, TUPLE, GENERATOR ... */
jinja_value jinja_new_list(jinja_memory *m);
jinja_value jinja_new_range(jinja_memory *m, int64_t start, int64_t step, size_t len);
void jinja_push(jinja_memory *m, jinja_seq *seq, jinja_value item);
void jinja_push_all(jinja_memory *m, jinja_seq *seq, const jinja_value *items, size_t n);
jinja_value jinja_pair(jinja_memory *m, jinja_value a, jinja_value b); /* a tuple */
jinja_value jinja_new_map(jinja_memory *m, jinja_type type);           /* DICT or NAMESPACE */

/* Concatenation of two strings. */
jinja_value jinja_concat(jinja_memory *m, const jinja_value *a, const jinja_value *b);

/* text without characters of `set` (NULL: white space) at its left and right. */
jinja_value jinja_strip(const jinja_value *text, const jinja_value *set, bool left, bool right);

/* ---- dicts ---- */

/* The value of a key, or NULL. */
const jinja_value *jinja_map_get(const jinja_map *map, const jinja_value *key);
const jinja_value *jinja_map_get_text(const jinja_map *map, const char *key, size_t len);
void jinja_map_set(jinja_memory *m, jinja_map *map, jinja_value key, jinja_value value);
/* Whether a value may be a key (strings, numbers, none, tuples of these). */
bool jinja_hashable(const jinja_value *v);

/* ---- asking ---- */

bool jinja_truth(const jinja_value *v);
bool jinja_is_seq(const jinja_value *v); /* a list or a tuple */
bool jinja_equal(const jinja_value *a, const jinja_value *b);
bool jinja_is_text(const jinja_value *v, const char *text);
/* a < b, = b or > b as -1, 0, 1 in *order; false if they cannot be ordered. */
bool jinja_compare(const jinja_value *a, const jinja_value *b, int *order);
/* len(v); false if v has no length. */
bool jinja_length(const jinja_value *v, size_t *len);
/* Number of characters of a string. */
size_t jinja_n_chars(const char *text, size_t len);
/* Bools and integers as int, those and floats as double. */
bool jinja_as_int(const jinja_value *v, int64_t *out);
bool jinja_as_double(const jinja_value *v, double *out);
/* Name of the type as Python and as Jinja's messages write it ("dict", "dict object"). */
const char *jinja_type_name(const jinja_value *v);
const char *jinja_type_repr(const jinja_value *v);

/* ---- walking ---- */

typedef struct jinja_iter {
    jinja_value over;
    size_t i; /* next item, or next byte of a string */
} jinja_iter;

/* False if v cannot be walked. */
bool jinja_iter_init(jinja_iter *it, const jinja_value *v);
/* The next item; false at the end. A generator is used up by this. */
bool jinja_iter_next(jinja_memory *m, jinja_iter *it, jinja_value *item);

#endif
