#include "tests/fuzz/say.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LONG_TEXT = 200, SHOWN = 120, MAX_LINE = 4096 };

static bytes *listener;
static const char *hidden;

void say_to(bytes *out)
{
    listener = out;
}

void say_hide(const char *text)
{
    hidden = text && *text ? text : NULL;
}

void say_escaped(bytes *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '\n' || c == '\t' || c == '\\') {
            bytes_printf(out, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : '\\');
        } else if (c < ' ' || c > '~') {
            bytes_printf(out, "\\x%02X", c);
        } else {
            bytes_append_char(out, (char)c);
        }
    }
}

/* FNV-1a, of its own: what is compared must not hang on the code that is tested. */
uint32_t say_sum_of(const void *data, size_t n)
{
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < n; i++) {
        sum = (sum ^ ((const uint8_t *)data)[i]) * 16777619u;
    }
    return sum;
}

static void append(const char *text, size_t n)
{
    const char *found =
        hidden ? strstr(text, hidden) : NULL; /* text ends with a zero where something is hidden */
    if (found && found < text + n) {
        say_escaped(listener, text, (size_t)(found - text));
        bytes_append_str(listener, "FILE");
        append(found + strlen(hidden), n - (size_t)(found - text) - strlen(hidden));
        return;
    }
    say_escaped(listener, text, n);
}

void say(const char *format, ...)
{
    if (!listener) {
        return;
    }
    char line[MAX_LINE];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    append(line, strlen(line));
    bytes_append_char(listener, '\n');
}

void say_text(const char *name, const char *text, size_t n)
{
    if (!listener) {
        return;
    }
    bytes_printf(listener, "%s%s\"", name, *name ? " " : "");
    say_escaped(listener, text, n > LONG_TEXT ? SHOWN : n);
    bytes_append_str(listener, "\"");
    if (n > LONG_TEXT) {
        bytes_printf(listener, "... of %zu bytes, %08x", n, say_sum_of(text, n));
    }
    bytes_append_char(listener, '\n');
}

void say_sum(const char *name, const void *data, size_t n)
{
    if (listener) {
        bytes_printf(listener, "%s: %zu bytes, %08x\n", name, n, say_sum_of(data, n));
    }
}

void say_error(err_code err, const err_detail *d)
{
    if (!listener) {
        return;
    }
    bytes_printf(listener, "%s: ", err_name(err));
    append(d->text, strlen(d->text));
    if (d->param[0] || d->name[0]) {
        bytes_append_str(listener, " [");
        say_escaped(listener, d->param, strlen(d->param));
        bytes_printf(listener, "] %s", d->name);
    }
    if (d->amount || d->limit) {
        bytes_printf(listener, " (%lld of %lld)", (long long)d->amount, (long long)d->limit);
    }
    bytes_append_char(listener, '\n');
}
