/* json_schema_private: what json_schema.c, schema_merge.c, schema_leaf.c and schema_overlap.c
 * share. One thread.
 *
 * A value must often satisfy several schemas at once (allOf, $ref beside other keywords, a branch
 * of anyOf and its parent). Such a set is a `conjunction`; its nodes are remembered, which also
 * makes recursion finite.
 */
#ifndef PARLEY_TEXT_GRAMMAR_JSON_SCHEMA_PRIVATE_H
#define PARLEY_TEXT_GRAMMAR_JSON_SCHEMA_PRIVATE_H

#include "text/grammar/json_schema.h"

enum { SCHEMA_MERGED_MAX = 256, SCHEMA_BOUNDS_MAX = 32 };

/* Where a schema stands. */
typedef struct place {
    const json *schema;
    const struct place *up; /* the schema that mentions it; NULL: the root */
    const char *step;       /* "properties.name"; of a reference: its path from the root */
    bool same_value;        /* it is about the same value as `up` */
    bool reference;         /* reached by $ref: its path begins anew */
} place;

enum { DONE_LINKS = 1, DONE_ANY_OF = 2, DONE_ONE_OF = 4 };

/* A schema of a conjunction and what of it is seen to already: $ref and allOf; a branch of anyOf;
 * one of oneOf. */
typedef struct member {
    const place *at;
    unsigned done;
} member;

typedef struct conjunction {
    member *members;
    const member *key; /* the members by address */
    size_t n;
    bool raw;     /* the raw form */
    int32_t node; /* a hole until it is built */
    uint64_t hash;
    struct conjunction *next, *bucket_next;
} conjunction;

enum {
    TYPE_NULL = 1,
    TYPE_BOOL = 2,
    TYPE_INTEGER = 4,
    TYPE_FRACTION = 8, /* a number need not be an integer: always with TYPE_INTEGER */
    TYPE_STRING = 16,
    TYPE_ARRAY = 32,
    TYPE_OBJECT = 64,
    TYPE_NUMBER = TYPE_INTEGER | TYPE_FRACTION,
    TYPE_ALL = 127
};

typedef struct schema_bound {
    const char *number; /* as the schema writes it */
    bool is_max, exclusive;
} schema_bound;

/* What all members of a conjunction demand together, but for objects' and arrays' parts. */
typedef struct merged {
    unsigned types;
    bool has_values; /* enum or const */
    const json **values;
    const json *values_from; /* the enum or const that they are of */
    const place *values_at;
    size_t n_values;
    bool beyond_type; /* some keyword but type, enum and const constrains the value */
    int32_t min_length, max_length, min_items, max_items, min_properties, max_properties;
    const char *patterns[SCHEMA_BOUNDS_MAX], *formats[SCHEMA_BOUNDS_MAX];
    size_t n_patterns, n_formats;
    const place *string_at;
    const place *length_at[2]; /* of minLength, maxLength; NULL: as long as it likes */
    schema_bound bounds[SCHEMA_BOUNDS_MAX];
    size_t n_bounds;
    const place *number_at;
} merged;

typedef struct schema_compiler {
    grammar *g;
    const json *root;
    const char *path, *close;
    place root_place;
    conjunction *first, *last; /* to build */
    conjunction *buckets[1024];
    int32_t n_branches;
    work_count *work;                      /* of the grammar */
    int32_t number, integer, comma, colon; /* made when first used; 0: not yet */
    err_code err;                          /* the first error: nothing that is made behind it counts */
    err_detail *detail;
} schema_compiler;

/* Fails, if nothing has failed before, with the place and keyword (may be NULL) in the detail's
 * param. code: ERR_INVALID or ERR_UNSUPPORTED. Returns c->err. */
err_code schema_refuse(schema_compiler *c, const place *at, const char *keyword, err_code code,
                       const char *format, ...) PRINTF_LIKE(5, 6);

/* Gives an error that says no place, as those of patterns, this one. */
void schema_add_place(schema_compiler *c, const place *at, const char *keyword);

/* A place below `up`; NULL if out of memory (the grammar then is too large). */
const place *schema_place(schema_compiler *c, const place *up, const json *schema, bool same_value,
                          const char *format, ...) PRINTF_LIKE(5, 6);

/* What $ref points to, or NULL. work may be NULL. */
const json *schema_resolve(const json *root, const char *reference, work_count *work);

/* schema_merge.c: reads every keyword of the members. Nothing may have failed before. */
err_code schema_merge(schema_compiler *c, merged *m, const conjunction *all);

/* The types that "type" and "nullable" of one schema allow; TYPE_ALL without them, 0 for a wrong
 * value. */
unsigned schema_types(const json *schema);
/* The types that are written for it: without "type", those that its keywords are about, though
 * others satisfy it too. */
unsigned schema_written_types(const json *schema);
unsigned schema_type_of(const json *value);

/* schema_leaf.c: strings and numbers of a merged conjunction; values of enum. Errors: c->err. */
int32_t schema_string(schema_compiler *c, const merged *m, bool raw);
int32_t schema_number(schema_compiler *c, const merged *m);
int32_t schema_values(schema_compiler *c, const merged *m, bool raw);
/* The JSON string of a name or text as JSON.stringify writes it. */
int32_t schema_quoted(schema_compiler *c, const char *text);
/* A value, and behind it in the raw form what closes it. */
int32_t schema_closed(schema_compiler *c, int32_t value, bool raw);
/* Orders pointers to texts (qsort, bsearch). */
int schema_compare_texts(const void *a, const void *b);
/* A JSON string that is none of the names. */
int32_t schema_other_key(schema_compiler *c, const char *const *names, size_t n);
int32_t schema_comma(schema_compiler *c); /* a comma and space */
int32_t schema_colon(schema_compiler *c);

/* schema_overlap.c: two schemas of a list that a value could satisfy both (*i < *k), as far as that
 * is known; false if there are none, or the work ended. */
bool schema_find_overlap(size_t *i, size_t *k, const json *root, const json *list, work_count *work);

#endif
