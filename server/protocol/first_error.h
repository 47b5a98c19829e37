/* first_error: the first error that the readers of one body meet. Each reader does nothing once
 * there is one, so that a body is read as a plain list of calls. Prep threads.
 *
 *     first_error e = {.detail = &detail};
 *     request_bool(&e, &stream, root, "stream");
 *     request_bool(&e, &echo, root, "echo");
 *     err = e.code;
 */
#ifndef PARLEY_SERVER_PROTOCOL_FIRST_ERROR_H
#define PARLEY_SERVER_PROTOCOL_FIRST_ERROR_H

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct first_error {
    err_code code;      /* ERR_OK: none so far */
    err_detail *detail; /* may be NULL */
} first_error;

/* Sets the error if it is the first: as err_set_param. */
void request_fail(first_error *e, err_code code, const char *param, const char *name, const char *format, ...)
    PRINTF_LIKE(5, 6);
/* The same for ERR_NOMEM. */
void request_no_memory(first_error *e);

/* As arena_calloc and arena_strdup; NULL behind an error, and without memory, which is one. */
void *request_calloc(first_error *e, arena *a, size_t n, size_t size);
char *request_strdup(first_error *e, arena *a, const char *text);

/* Writes the name of a field for errors ("messages[0].content"), cut at ERR_PARAM_MAX. */
void request_path(char out[ERR_PARAM_MAX], const char *format, ...) PRINTF_LIKE(2, 3);

#endif
