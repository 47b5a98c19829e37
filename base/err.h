/* err: result codes and the text a person reads. Any thread; plain values, nothing to free.
 *
 *     if (x > max) { return err_set(detail, ERR_INVALID, "width is %d; at most %d is allowed", x, max); }
 *
 * A function that can fail returns an err_code and takes a nullable `err_detail *` as its last
 * argument. The text says what, where and what to do; it holds no address, no library name and no
 * user content, and it is valid UTF-8 (other bytes become '?').
 */
#ifndef PARLEY_BASE_ERR_H
#define PARLEY_BASE_ERR_H

#include <stdint.h>

#include "base/compiler.h"

typedef enum err_code {
    ERR_OK = 0,
    ERR_INVALID,     /* the input or an argument is wrong: the sender must change it (HTTP 400) */
    ERR_NOT_FOUND,   /* no such file, tensor, route or id (404) */
    ERR_LIMIT,       /* a stated limit is exceeded: bytes, pixels, depth (413, or 400 for media) */
    ERR_CONTEXT,     /* the prompt does not fit the context (400 context_length_exceeded) */
    ERR_UNSUPPORTED, /* well-formed, but not something Parley does (400 or 501) */
    ERR_CORRUPT,     /* a file or an image is damaged (400; for a checkpoint: exit 3) */
    ERR_BUSY,        /* a queue is full: try again (429) */
    ERR_TIMEOUT,     /* took longer than a stated limit (504) */
    ERR_CANCELLED,   /* stopped on request */
    ERR_NOMEM,       /* no memory: this request alone fails (503) */
    ERR_UPSTREAM,    /* another server that we stand in front of did not do its part (502) */
    ERR_IO,          /* the operating system refused a read, write, bind ... (500) */
    ERR_INTERNAL,    /* a bug of ours (500) */
    ERR_N_CODES
} err_code;

enum { ERR_TEXT_MAX = 512, ERR_PARAM_MAX = 96, ERR_NAME_MAX = 48 };

typedef struct err_detail {
    char text[ERR_TEXT_MAX];   /* a sentence for a person; "" when no error was set */
    char param[ERR_PARAM_MAX]; /* the request field that is wrong ("messages[0].content"), or "" */
    char name[ERR_NAME_MAX];   /* stable machine-readable name ("image_too_large"), or "" */
    int64_t amount, limit;     /* the two numbers of an exceeded limit; 0 where they are not set */
} err_detail;

/* Fills `d` (may be NULL) with the formatted text, clears the rest, and returns `code`. */
err_code err_set(err_detail *d, err_code code, const char *format, ...) PRINTF_LIKE(3, 4);

/* As err_set, and also names the request field and the machine-readable error name (NULL = ""). */
err_code err_set_param(err_detail *d, err_code code, const char *param, const char *name, const char *format,
                       ...) PRINTF_LIKE(5, 6);

/* Adds how much there was, and how much there may be, to the error that `d` (may be NULL) holds;
 * returns `code`. */
err_code err_set_numbers(err_detail *d, err_code code, int64_t amount, int64_t limit);

/* Puts "PREFIX: " in front of the text of `d` (may be NULL), cut at ERR_TEXT_MAX; returns
 * `code`. */
err_code err_prefix(err_detail *d, err_code code, const char *format, ...) PRINTF_LIKE(3, 4);

#ifdef __clang_analyzer__
/* The analyzer sees one file at a time, and has to be told that each returns its code. */
#define err_set(d, code, ...)                   ((void)(err_set)(d, code, __VA_ARGS__), (code))
#define err_set_param(d, code, ...)             ((void)(err_set_param)(d, code, __VA_ARGS__), (code))
#define err_set_numbers(d, code, amount, limit) ((void)(err_set_numbers)(d, code, amount, limit), (code))
#define err_prefix(d, code, ...)                ((void)(err_prefix)(d, code, __VA_ARGS__), (code))
#endif

/* The code's name in lower case ("invalid"), a constant string; "unknown" outside the range. */
const char *err_name(err_code code);

#endif
