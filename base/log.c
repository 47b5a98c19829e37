#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 4096, MESSAGE_MAX_BYTES = 2048 };

/* Relaxed everywhere: a level change needs no order with other memory. */
static _Atomic int current_level = LOG_INFO;

static const char *const LEVEL_NAMES[] = {"DEBUG", "INFO", "WARN", "ERROR"};

void log_set_level(log_level level)
{
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

log_level log_get_level(void)
{
    return (log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

bool log_parse_level(const char *text, log_level *out)
{
    static const char *const names[] = {"debug", "info", "warn", "error", "off"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (log_level)i;
            return true;
        }
    }
    return false;
}

/* Copies text to out[0..cap) with control characters as \xNN, so that no message holds a line break.
 * Returns the bytes written; a piece that does not fit ends the copy. C1 controls come as C2 80..9F. */
static size_t escape(char *out, size_t cap, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (size_t i = 0; text[i]; i++) {
        unsigned char c = (unsigned char)text[i];
        unsigned char next = (unsigned char)text[i + 1];
        bool c1 = c == 0xC2 && next >= 0x80 && next <= 0x9F;
        if (c >= 0x20 && c != 0x7F && !c1) {
            if (n + 1 > cap) {
                break;
            }
            out[n++] = (char)c;
            continue;
        }
        if (n + 4 > cap) {
            break;
        }
        if (c1) {
            c = next;
            i++;
        }
        out[n++] = '\\';
        out[n++] = 'x';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15];
    }
    return n;
}

void log_write(log_level level, const char *area, const char *format, ...)
{
    if (level < log_get_level() || level < LOG_DEBUG || level >= LOG_OFF) {
        return;
    }
    char message[MESSAGE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);

    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    char line[LINE_MAX_BYTES];
    size_t n = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &utc);
    int m =
        snprintf(line + n, sizeof line - n, ".%03dZ %s ", (int)(now.tv_nsec / 1000000), LEVEL_NAMES[level]);
    n += (size_t)m;
    n += escape(line + n, sizeof line - n - 2, area);
    line[n++] = ' ';
    n += escape(line + n, sizeof line - n - 1, message);
    line[n++] = '\n';
    /* One write per line: lines of several threads never mix. A lost log line is not an error. */
    ssize_t written = write(STDERR_FILENO, line, n);
    (void)written;
}
