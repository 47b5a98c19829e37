/* jinja_library: the filters, tests, global functions and methods that templates may use. Constant
 * tables.
 *
 *     const jinja_callable *f = jinja_find_filter("trim", 4);
 *     jinja_invoke(r, f, &value, &args, &out);
 */
#ifndef PARLEY_TEXT_JINJA_JINJA_LIBRARY_H
#define PARLEY_TEXT_JINJA_JINJA_LIBRARY_H

#include "text/jinja/jinja_render.h"

enum { JINJA_MAX_PARAMS = 8 };

/* One call of a filter, test, function or method. */
typedef struct jinja_frame {
    jinja_render *r;
    const jinja_value *self;                /* what it works on; NULL for a global function */
    const jinja_args *args;                 /* the arguments as they were given */
    const jinja_value *v[JINJA_MAX_PARAMS]; /* one for each parameter of the table; NULL: not given */
    int mode;                               /* of the table: tells apart what shares a function */
} jinja_frame;

/* A test gives a bool. */
typedef bool (*jinja_function)(const jinja_frame *f, jinja_value *out);

typedef struct jinja_callable {
    const char *name;
    const char *params; /* "old,new,count"; NULL: any arguments, the function looks at args itself */
    size_t required;    /* how many of them must be given */
    jinja_function call;
    int mode;
} jinja_callable;

/* A row whose function does not look at the mode. */
#define JINJA_ONE(name, params, required, call)                                                              \
    {                                                                                                        \
        name, params, required, call, 0                                                                      \
    }

/* NULL if there is none of that name. */
const jinja_callable *jinja_find_filter(const char *name, size_t len);
const jinja_callable *jinja_find_test(const char *name, size_t len);
const jinja_callable *jinja_find_global(const char *name, size_t len);
const jinja_callable *jinja_find_method(const jinja_value *of, const char *name, size_t len);
/* True for methods that would change a list or a dict: the sandbox refuses them. */
bool jinja_is_unsafe(const jinja_value *of, const char *name, size_t len);

/* Puts the arguments in the order of the parameters and calls. */
bool jinja_invoke(jinja_render *r, const jinja_callable *c, const jinja_value *self, const jinja_args *args,
                  jinja_value *out);
/* Calls a method of str(v). */
bool jinja_call_str_method(jinja_render *r, const jinja_value *v, const char *name, const jinja_args *args,
                           jinja_value *out);

/* ---- for the files of the library ---- */

/* Tables end with a NULL name. */
extern const jinja_callable JINJA_FILTERS[], JINJA_SEQUENCE_FILTERS[], JINJA_TESTS[], JINJA_GLOBALS[],
    JINJA_STR_METHODS[], JINJA_STR_MORE_METHODS[];
const jinja_callable *jinja_find_object_method(const jinja_value *of, const char *name, size_t len);

/* Arguments with a default: false after an error of the wrong type. */
bool jinja_arg_int(jinja_render *r, const jinja_value *v, int64_t fallback, int64_t *out);
bool jinja_arg_str(jinja_render *r, const jinja_value *v, const char *fallback, jinja_value *out);
bool jinja_arg_truth(const jinja_value *v, bool fallback);

/* The argument of this name, or NULL. */
const jinja_value *jinja_named_arg(const jinja_args *args, const char *name, size_t len);

/* A text under construction; jinja_finish_text copies it into the arena and frees the buffer, also
 * after an error: then it gives false. */
void jinja_begin_text(jinja_render *r, bytes *b);
bool jinja_finish_text(jinja_render *r, bytes *b, jinja_value *out);

/* Printf-style formatting of the % operator and the format filter; str.format. */
bool jinja_percent(jinja_render *r, const jinja_value *format, const jinja_args *args, jinja_value *out);
bool jinja_format_braces(jinja_render *r, const jinja_value *format, const jinja_args *args,
                         jinja_value *out);

/* First or last occurrence of what in text[0..len), or NULL; the first in linear time. */
const char *jinja_find_text(const char *text, size_t len, const char *what, size_t what_len);
const char *jinja_find_last(const char *text, size_t len, const char *what, size_t what_len);
/* text with every (at most max, < 0 = all) occurrence of old replaced. */
bool jinja_replace(jinja_render *r, const jinja_value *text, const jinja_value *old,
                   const jinja_value *new_text, int64_t max, jinja_value *out);
/* Escapes &<>'" for HTML; the result is marked as safe. */
bool jinja_escape(jinja_render *r, const jinja_value *v, jinja_value *out);

#endif
