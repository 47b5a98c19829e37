#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static const char *const NAMES[ERR_N_CODES] = {
    [ERR_OK] = "ok",           [ERR_INVALID] = "invalid",     [ERR_NOT_FOUND] = "not_found",
    [ERR_LIMIT] = "limit",     [ERR_CONTEXT] = "context",     [ERR_UNSUPPORTED] = "unsupported",
    [ERR_CORRUPT] = "corrupt", [ERR_BUSY] = "busy",           [ERR_UPSTREAM] = "upstream",
    [ERR_TIMEOUT] = "timeout", [ERR_CANCELLED] = "cancelled", [ERR_NOMEM] = "nomem",
    [ERR_IO] = "io",           [ERR_INTERNAL] = "internal",
};

/* The arguments may point into the detail that is being filled, so text is built apart and
 * copied. */
static void copy_text(char *out, size_t cap, const char *text)
{
    size_t n = strlen(text);
    if (n >= cap) {
        n = cap - 1;
        /* Cut before a character, not inside one: the text is sent as JSON. */
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) {
            n--;
        }
    }
    memmove(out, text, n);
    out[n] = '\0';
    /* A "%.40s" may cut a character, and a path or a field of a file may hold any bytes, those that steer
     * a terminal among them. */
    for (size_t i = 0; i < n;) {
        uint32_t code_point;
        size_t used = utf8_decode(out + i, n - i, &code_point);
        const bool steers = code_point == 0x7f || (code_point < ' ' && !strchr("\n\t", (int)code_point));
        if (!utf8_valid(out + i, used) || steers) {
            memset(out + i, '?', used);
        }
        i += used;
    }
}

/* One byte more than err_detail.text, so that copy_text sees where to cut. */
enum { SCRATCH = ERR_TEXT_MAX + 1 };

static void set_text(err_detail *d, const char *param, const char *name, const char *format, va_list args)
{
    char text[SCRATCH];
    vsnprintf(text, sizeof text, format, args);
    copy_text(d->param, sizeof d->param, param);
    copy_text(d->name, sizeof d->name, name);
    copy_text(d->text, sizeof d->text, text);
    d->amount = d->limit = 0;
}

/* The names stand in parentheses because the analyzer has macros for them. */
err_code(err_set)(err_detail *d, err_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (d) {
        set_text(d, "", "", format, args);
    }
    va_end(args);
    return code;
}

err_code(err_set_param)(err_detail *d, err_code code, const char *param, const char *name, const char *format,
                        ...)
{
    va_list args;
    va_start(args, format);
    if (d) {
        set_text(d, param ? param : "", name ? name : "", format, args);
    }
    va_end(args);
    return code;
}

err_code(err_set_numbers)(err_detail *d, err_code code, int64_t amount, int64_t limit)
{
    if (d) {
        d->amount = amount;
        d->limit = limit;
    }
    return code;
}

err_code(err_prefix)(err_detail *d, err_code code, const char *format, ...)
{
    if (d) {
        char text[SCRATCH + ERR_TEXT_MAX + 2];
        va_list args;
        va_start(args, format);
        int n = vsnprintf(text, SCRATCH, format, args);
        va_end(args);
        size_t used = n < 0 ? 0 : (size_t)n < SCRATCH ? (size_t)n : SCRATCH - 1;
        snprintf(text + used, sizeof text - used, ": %s", d->text);
        copy_text(d->text, sizeof d->text, text);
    }
    return code;
}

const char *err_name(err_code code)
{
    return (unsigned)code < ERR_N_CODES ? NAMES[code] : "unknown";
}
