/* api_error: the form of every error that a client sees, and the mapping from err_code to HTTP
 * status. Any thread.
 *
 *     api_error e; api_error_from(&e, err, &detail);
 *     api_error_write_body(&out, &e);
 */
#ifndef PARLEY_SERVER_API_ERROR_H
#define PARLEY_SERVER_API_ERROR_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

typedef struct api_error {
    int status;                /* HTTP */
    const char *type;          /* constant: "invalid_request_error", ... */
    char code[ERR_NAME_MAX];   /* "" is written as null */
    char param[ERR_PARAM_MAX]; /* "" is written as null */
    char message[ERR_TEXT_MAX];
    int retry_after_s;              /* 0: no Retry-After */
    int64_t n_prompt_tokens, n_ctx; /* with context_length_exceeded, else 0 */
} api_error;

/* From a failed call below the server. Internal and I/O errors get a fixed text, so that nothing
 * leaks. */
void api_error_from(api_error *e, err_code code, const err_detail *d);

/* From an error found by the server; `code` and `param` may be NULL. The type follows from the
 * status. */
void api_error_set(api_error *e, int status, const char *code, const char *param, const char *format, ...)
    PRINTF_LIKE(5, 6);

/* Appends the object {"message":...,"type":...,"param":...,"code":...}; extra_members is raw JSON
 * text that is put in front of the closing brace (",\"event_id\":\"x\"") or NULL. */
void api_error_write(bytes *out, const api_error *e, const char *extra_members);

/* Appends {"error":{...}}: the body of an HTTP reply. */
void api_error_write_body(bytes *out, const api_error *e);

#endif
