#include "server/protocol/first_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void request_fail(first_error *e, err_code code, const char *param, const char *name, const char *format, ...)
{
    char text[ERR_TEXT_MAX + 1]; /* one more, so that err_set_param sees where to cut */
    va_list args;
    if (e->code != ERR_OK) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    e->code = err_set_param(e->detail, code, param, name, "%s", text);
}

void request_no_memory(first_error *e)
{
    request_fail(e, ERR_NOMEM, NULL, NULL, "no memory for this request");
}

void *request_calloc(first_error *e, arena *a, size_t n, size_t size)
{
    void *out = e->code == ERR_OK ? arena_calloc(a, n, size) : NULL;
    if (!out) {
        request_no_memory(e);
    }
    return out;
}

char *request_strdup(first_error *e, arena *a, const char *text)
{
    char *out = e->code == ERR_OK ? arena_strdup(a, text, strlen(text)) : NULL;
    if (!out) {
        request_no_memory(e);
    }
    return out;
}

void request_path(char out[ERR_PARAM_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out, ERR_PARAM_MAX, format, args);
    va_end(args);
}
