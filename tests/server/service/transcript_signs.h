/* transcript_signs: what is not the same each time in an answer, as signs, and back: see test_transcripts.c.
 *
 *     script s = {.path = "x.txt"}; bytes out = bytes_empty(1 << 20);
 *     write_signs(&s, &out, "chatcmpl-0123456789abcdef", 25);      // chatcmpl-#1
 */
#ifndef PARLEY_TESTS_SERVER_SERVICE_TRANSCRIPT_SIGNS_H
#define PARLEY_TESTS_SERVER_SERVICE_TRANSCRIPT_SIGNS_H

#include <ctype.h>
#include <stdlib.h>
#include <time.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "tests/folder.h"

enum { MOST_KEPT = 8, KEPT_NAME = 16 };

/* A connection whose reply is read later. */
typedef struct kept {
    char name[KEPT_NAME]; /* "": none */
    int fd;
    bytes got; /* of its reply, so far */
    bool has_body;
} kept;

enum { MOST_FILES = 192, MOST_IDS = 600, ID_BYTES = 72, MOST_WORDS = 64, WAIT_S = 300, BYTES = 4 << 20 };

typedef struct script {
    const char *path;
    char *text;
    bytes out; /* the file as it would be written */
    char folder[FOLDER_NAME];
    int port, other; /* of the server, of the second one */
    struct serve_thread *server;
    char health[64]; /* its path */
    char ids[MOST_IDS][ID_BYTES];
    int n_ids;
    char owner[ID_BYTES]; /* the response that the last numbered event was of */
    int n_wrong;
    bool is_exact;      /* time stands still */
    bool shows_stats;   /* events that come now and then, by the clock */
    bool skips_numbers; /* of events that there was no memory for */
    int64_t began_s;    /* then: since 1970 */
    kept kept[MOST_KEPT];
    char *words[2]; /* of the servers' options */
} script;

static bool is_hex(char c)
{
    return isdigit((unsigned char)c) || (c >= 'a' && c <= 'f');
}

/* An id as a sign; *len is what it takes of the text. */
static void write_id(script *s, bytes *out, const char *text, size_t len)
{
    int at = 0;
    while (at < s->n_ids && (strlen(s->ids[at]) != len || memcmp(s->ids[at], text, len) != 0)) {
        at++;
    }
    if (at == s->n_ids && at < MOST_IDS && len < ID_BYTES) {
        memcpy(s->ids[s->n_ids++], text, len);
    }
    bytes_printf(out, "#%d", at + 1);
}

/* Seconds or milliseconds since 1970, as the seconds from now on, to the minute; if time stands still, from its begin on. */
static bool write_time(const script *s, bytes *out, const char *text, size_t len)
{
    const long long value = strtoll(text, NULL, 10) / (len == 13 ? 1000 : 1);
    const long long n =
        len == 10 || len == 13 ? value - (long long)(s->is_exact ? s->began_s : clock_unix_s()) : 1LL << 40;
    if (n < -100000 || n > 40000000) {
        return false;
    }
    bytes_printf(out, "@%+lld",
                 s->is_exact          ? n
                 : n > -100 && n < 45 ? 0
                                      : (n + (n < 0 ? -30 : 30)) / 60 * 60); /* a slow machine */
    return true;
}

static bool ends_with_one_of(const bytes *out, const char *const *names)
{
    for (; *names; names++) {
        const size_t n = strlen(*names);
        if (out->len >= n && memcmp(out->data + out->len - n, *names, n) == 0) {
            return true;
        }
    }
    return false;
}

/* A number behind a name that says it is a duration or a rate, or of this machine. */
static bool is_duration(const script *s, const bytes *out)
{
    static const char *const MACHINE[] = {"_kib\":",
                                          "rss_bytes\":",
                                          "available_bytes\":",
                                          "request_limit\":",
                                          "resident_memory_bytes ",
                                          "cpu_seconds_total ",
                                          "limit_bytes ",
                                          "\"queue\":{\"running\":",
                                          "available_bytes ",
                                          NULL};
    static const char *const THREADS[] = {"request_bytes\":", "request_memory_bytes ", "peak_bytes ", NULL};
    static const char *const TIME[] = {"_ms\":", "_per_second\":", "_duration\":", "_seconds\":", "_ms ",
                                       "_s\":",  "-ms: ",          "_seconds ",    NULL};
    return ends_with_one_of(out, MACHINE) || ends_with_one_of(out, s->is_exact ? THREADS : TIME);
}

static void write_signs(script *s, bytes *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t len = 0;
        const bool begins = i == 0 || !isalnum((unsigned char)text[i - 1]);
        while (begins && i + len < n && is_hex(text[i + len])) {
            len++;
        }
        if (len >= 16 && (len >= 20 || strspn(text + i, "0123456789") < len) &&
            !(i + len < n && isalnum((unsigned char)text[i + len]))) {
            write_id(s, out, text + i, len);
            i += len;
            continue;
        }
        size_t digits = 0;
        while (begins && i + digits < n && isdigit((unsigned char)text[i + digits])) {
            digits++;
        }
        if (digits && is_duration(s, out)) {
            bytes_append_char(out, '~');
            while (i < n && (is_hex(text[i]) || strchr(".+-", text[i]))) {
                i++;
            }
            continue;
        }
        if (digits && write_time(s, out, text + i, digits)) {
            i += digits;
            continue;
        }
        if (digits == 4 && i + 20 <= n && text[i + 4] == '-' && text[i + 10] == 'T' && text[i + 16] == ':') {
            bytes_append_str(out, "@TIME");
            i += 16;
            while (i < n && text[i] != 'Z' && text[i] != '"') {
                i++;
            }
            continue;
        }
        const long number = digits >= 4 && digits <= 5 ? strtol(text + i, NULL, 10) : 0;
        if (number > 0 && (number == s->port || number == s->other)) {
            bytes_append_str(out, number == s->port ? "PORT" : "OTHER");
            i += digits;
            continue;
        }
        static const char VERSION[] = PARLEY_VERSION;
        if (digits && i + sizeof VERSION - 1 <= n && memcmp(text + i, VERSION, sizeof VERSION - 1) == 0) {
            bytes_append_str(out, "VERSION");
            i += sizeof VERSION - 1;
            continue;
        }
        const size_t folder = strlen(s->folder);
        if (i + folder <= n && memcmp(text + i, s->folder, folder) == 0) {
            bytes_append_str(out, "FOLDER");
            i += folder;
            continue;
        }
        bytes_append_char(out, text[i++]);
    }
}

/* The other way, for what is sent. */
static inline void read_signs(const script *s, bytes *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        char *end = NULL;
        const long at = text[i] == '#' && i + 1 < n ? strtol(text + i + 1, &end, 10) : 0;
        if (at > 0 && at <= s->n_ids && end) {
            bytes_append_str(out, s->ids[at - 1]);
            i = (size_t)(end - text);
        } else if (n - i >= 6 && memcmp(text + i, "FOLDER", 6) == 0) {
            bytes_append_str(out, s->folder);
            i += 6;
        } else if (n - i >= 6 && memcmp(text + i, "SOURCE", 6) == 0) {
            bytes_append_str(out, PARLEY_SOURCE_DIR);
            i += 6;
        } else if (n - i >= 4 && memcmp(text + i, "PORT", 4) == 0) {
            bytes_printf(out, "%d", s->port);
            i += 4;
        } else if (n - i >= 5 && memcmp(text + i, "OTHER", 5) == 0) {
            bytes_printf(out, "%d", s->other);
            i += 5;
        } else {
            bytes_append_char(out, text[i++]);
        }
    }
}

/* ---- streams ---- */

/* If b is a but for a text that streams, puts b's behind that of a. Both are events with signs. */
static bool join(bytes *a, const char *b, size_t n)
{
    static const char *const NAMES[] = {"\"delta\":\"",     "\"content\":\"",      "\"reasoning_content\":\"",
                                        "\"text\":\"",      "\"thinking\":\"",     "\"response\":\"",
                                        "\"arguments\":\"", "\"partial_json\":\"", "\"reasoning\":\""};
    const char *whole = bytes_str(a);
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        const char *in_a = strstr(whole, NAMES[i]), *in_b = memmem(b, n, NAMES[i], strlen(NAMES[i]));
        if (!in_a || !in_b || in_a - whole != in_b - b) {
            continue;
        }
        const size_t head = (size_t)(in_a - whole) + strlen(NAMES[i]);
        size_t end_a = head, end_b = head;
        while (end_a < a->len && whole[end_a] != '"') {
            end_a += 1 + (whole[end_a] == '\\');
        }
        while (end_b < n && b[end_b] != '"') {
            end_b += 1 + (b[end_b] == '\\');
        }
        if (memcmp(whole, b, head) == 0 && a->len - end_a == n - end_b &&
            memcmp(whole + end_a, b + end_b, n - end_b) == 0) {
            bytes joined = bytes_empty(BYTES);
            bytes_append(&joined, whole, end_a);
            bytes_append(&joined, b + head, n - head);
            bytes_deinit(a);
            *a = joined;
            return true;
        }
    }
    return false;
}

/* Numbers of events rise by one each, of a response that is not interrupted by another one, and are written as none. */
static void take_number(script *s, bytes *event, long *last)
{
    static const char NAME[] = "\"sequence_number\":", OWNER[] = "\"response_id\":\"";
    const char *at = strstr(bytes_str(event), NAME), *of = strstr(bytes_str(event), OWNER);
    if (!at) {
        return;
    }
    const size_t n_owner = of ? strcspn(of + sizeof OWNER - 1, "\"") : 0;
    if (of && (strlen(s->owner) != n_owner || memcmp(s->owner, of + sizeof OWNER - 1, n_owner) != 0)) {
        *last = -1;
        snprintf(s->owner, sizeof s->owner, "%.*s", (int)n_owner, of + sizeof OWNER - 1);
    }
    char *end;
    const long n = strtol(at + strlen(NAME), &end, 10);
    if (*last >= 0 && n != 0 && n != *last + 1 && !s->skips_numbers) { /* of the next response from 0 on */
        fprintf(stderr, "%s: event %ld behind %ld\n", s->path, n, *last);
        s->n_wrong++;
    }
    *last = n;
    bytes rest = bytes_empty(BYTES);
    bytes_append(&rest, event->data, (size_t)(at - event->data) + strlen(NAME));
    bytes_append_str(&rest, "N");
    bytes_append_str(&rest, end);
    bytes_deinit(event);
    *event = rest;
}

/* Appends events, each of which ends with `end`, with signs and joined where only a text goes on. */
static void write_events(script *s, bytes *out, const char *text, size_t n, const char *end)
{
    bytes last = bytes_empty(BYTES);
    long number = -1;
    for (size_t i = 0; i < n;) {
        const char *found = memmem(text + i, n - i, end, strlen(end));
        const size_t len = found ? (size_t)(found - text) - i + strlen(end) : n - i;
        bytes event = bytes_empty(BYTES);
        write_signs(s, &event, text + i, len);
        take_number(s, &event, &number);
        if (last.len == 0 || !join(&last, event.data, event.len)) {
            bytes_append(out, last.data, last.len);
            bytes_clear(&last);
            bytes_append(&last, event.data, event.len);
        }
        bytes_deinit(&event);
        i += len;
    }
    bytes_append(out, last.data, last.len);
    bytes_deinit(&last);
}

#endif
