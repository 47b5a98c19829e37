#include "server/protocol/output/stop_filter.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

void stop_filter_init(stop_filter *s, char *const *stops, size_t n_stops)
{
    bytes_init(&s->held, SIZE_MAX);
    s->stops = stops;
    s->n_stops = n_stops;
    s->stop = NULL;
    s->stopped = false;
}

void stop_filter_deinit(stop_filter *s)
{
    bytes_deinit(&s->held);
}

/* Moves the first n held bytes to out as well-formed text. */
static void release(stop_filter *s, bytes *out, size_t n)
{
    const char *text = s->held.data;
    if (n == 0) {
        return;
    }
    if (utf8_valid(text, n)) {
        bytes_append(out, text, n);
    } else {
        for (size_t i = 0; i < n;) {
            uint32_t c;
            char encoded[4];
            i += utf8_decode(text + i, n - i, &c);
            bytes_append(out, encoded, utf8_encode(encoded, c));
        }
    }
    bytes_consume(&s->held, n);
}

/* The stop string that ends first, behind byte `from`, or NULL; *start is where it begins. */
static const char *find_stop(const stop_filter *s, size_t from, size_t *start)
{
    for (size_t end = from + 1; end <= s->held.len; end++) {
        size_t longest = 0;
        const char *found = NULL;
        for (size_t i = 0; i < s->n_stops; i++) {
            size_t n = strlen(s->stops[i]);
            if (n <= end && n > longest && memcmp(s->held.data + end - n, s->stops[i], n) == 0) {
                longest = n;
                found = s->stops[i];
            }
        }
        if (found) {
            *start = end - longest;
            return found;
        }
    }
    return NULL;
}

/* How many bytes at the end are the beginning of some stop string. */
static size_t open_stop(const stop_filter *s)
{
    size_t longest = 0;
    for (size_t i = 0; i < s->n_stops; i++) {
        size_t max = strlen(s->stops[i]) - 1;
        for (size_t n = max < s->held.len ? max : s->held.len; n > longest; n--) {
            if (memcmp(s->held.data + s->held.len - n, s->stops[i], n) == 0) {
                longest = n;
            }
        }
    }
    return longest;
}

void stop_filter_push(stop_filter *s, bytes *out, const char *data, size_t len)
{
    if (s->stopped || len == 0) {
        return;
    }
    size_t from = s->held.len, start = 0;
    bytes_append(&s->held, data, len);
    if (s->held.failed) {
        return;
    }
    s->stop = find_stop(s, from, &start);
    if (s->stop) {
        release(s, out, start);
        bytes_clear(&s->held);
        s->stopped = true;
        return;
    }
    size_t tail = utf8_incomplete_tail(s->held.data, s->held.len);
    size_t open = open_stop(s);
    size_t sure = s->held.len - (tail > open ? tail : open);
    /* The held part must not start inside a character. */
    sure -= utf8_incomplete_tail(s->held.data, sure);
    release(s, out, sure);
}

void stop_filter_finish(stop_filter *s, bytes *out)
{
    if (!s->stopped) {
        release(s, out, s->held.len);
    }
}
