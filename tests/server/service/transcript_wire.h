/* transcript_wire: requests of a transcript and their replies as bytes, and waiting: see test_transcripts.c.
 *
 *     static script s = {.path = "x.txt"};
 *     wait_until(&s, "/slots true");
 *     pass_time(&s, "61 /slots true");
 *     const size_t n = write_reply(&s, "HTTP/1.1 200 OK\r\n\r\n", 19, true);   // into s.out; what the reply takes of it
 */
#ifndef PARLEY_TESTS_SERVER_SERVICE_TRANSCRIPT_WIRE_H
#define PARLEY_TESTS_SERVER_SERVICE_TRANSCRIPT_WIRE_H

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/check.h"
#include "tests/server/service/transcript_clock.h"
#include "tests/server/service/transcript_signs.h"

enum { MOST_LATER = 8 };

/* How a request is asked, see above: NULL, or what stands behind the word. */
typedef struct manner {
    const char *keep, *leave, *ends, *later[MOST_LATER];
    int n_later;
} manner;

static int open_socket(const script *s)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)s->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const struct timeval patience = {.tv_sec = getenv("PARLEY_WRITE") ? 10 : WAIT_S};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        fprintf(stderr, "%s: no connection\n", s->path);
        exit(1);
    }
    return fd;
}

static void send_all(int fd, const void *data, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t sent = send(fd, (const char *)data + at, n - at, MSG_NOSIGNAL);
        if (sent <= 0) {
            break;
        }
        at += (size_t)sent;
    }
}

/* Receives until the other side closes, or until `end` is there. */
static void receive(int fd, bytes *in, const char *end)
{
    char piece[65536];
    while (!end || in->len == 0 || !memmem(in->data, in->len, end, strlen(end))) {
        const ssize_t n = recv(fd, piece, sizeof piece, 0);
        if (n <= 0) {
            break;
        }
        bytes_append(in, piece, (size_t)n);
    }
}

/* What has come by now; false if that is all there will be. */
static inline bool receive_waiting(int fd, bytes *in)
{
    char piece[65536];
    ssize_t n;
    while ((n = recv(fd, piece, sizeof piece, MSG_DONTWAIT)) > 0) {
        bytes_append(in, piece, (size_t)n);
    }
    return n < 0;
}

/* The chunks of a body without what is around them; false if they are not whole. */
static bool without_chunks(bytes *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        char *end;
        const size_t len = strtoul(text + i, &end, 16);
        i = (size_t)(end - text) + 2;
        if (i + len + 2 > n || memcmp(end, "\r\n", 2) != 0 || memcmp(text + i + len, "\r\n", 2) != 0) {
            return false;
        }
        if (len == 0) {
            return i + 2 == n;
        }
        bytes_append(out, text + i, len);
        i += len + 2;
    }
    return false;
}

/* A line that every reply has, or that is not the same each time. */
static bool is_usual(const char *line)
{
    static const char *const NAMES[] = {"Date: ",
                                        "x-request-id: req_",
                                        "request-id: req_",
                                        "X-Content-Type-Options: nosniff",
                                        "Referrer-Policy: no-referrer",
                                        "Content-Length: ",
                                        "Connection: close"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (strncmp(line, NAMES[i], strlen(NAMES[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* How often that was asked for which is waited for. */
static bool is_waited_for(const script *s, const char *line, size_t n)
{
    static const char HEALTH[] = "endpoint=\"health\"", SLOTS[] = "endpoint=\"slots\"",
                      STATUS[] = "endpoint=\"status\"";
    return memmem(line, n, HEALTH, sizeof HEALTH - 1) ||
           (s->is_exact &&
            (memmem(line, n, SLOTS, sizeof SLOTS - 1) || memmem(line, n, STATUS, sizeof STATUS - 1)));
}

static void write_lines(script *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        const char *end = memchr(text + i, '\n', n - i);
        const size_t len = end ? (size_t)(end - text) - i : n - i;
        if (is_waited_for(s, text + i, len)) {
            i += len + (end != NULL);
            continue;
        }
        bytes_append_str(&s->out, len ? "< " : "<");
        for (size_t k = 0; k < len; k++) { /* what is no text, as numbers */
            const unsigned char c = (unsigned char)text[i + k];
            if ((c < 32 && c != '\t') || c == 127) {
                bytes_printf(&s->out, "\\x%02x", c);
            } else {
                bytes_append_char(&s->out, (char)c);
            }
        }
        bytes_append_char(&s->out, '\n');
        i += len + (end != NULL);
    }
}

/* Writes a reply; returns how much of `text` it is. `is_last`: nothing stands behind it. */
static size_t write_reply(script *s, const char *text, size_t n, bool has_body)
{
    const char *head_end = memmem(text, n, "\r\n\r\n", 4);
    bytes shown = bytes_empty(BYTES), body = bytes_empty(BYTES);
    if (!head_end || strncmp(text, "HTTP/1.1 ", 9) != 0) {
        write_signs(s, &shown, text, n);
        write_lines(s, bytes_str(&shown), shown.len);
        bytes_append_str(&s->out, n ? "" : "< nothing\n");
        bytes_deinit(&shown);
        return n;
    }
    const size_t head = (size_t)(head_end - text) + 4;
    bool is_chunked = false, is_stream = false, is_page = false;
    size_t length = SIZE_MAX, usual = 0;
    for (const char *line = text; line < head_end;) {
        const char *end = memmem(line, (size_t)(head_end - line) + 2, "\r\n", 2);
        char one[2048];
        snprintf(one, sizeof one, "%.*s", (int)(end - line), line);
        if (line == text) {
            bytes_printf(&shown, "%s\n", one + 9);
        } else if (is_usual(one)) {
            usual += strncmp(one, "Content-Length: ", 16) != 0; /* what is sent in chunks has none */
            length = strncmp(one, "Content-Length: ", 16) == 0 ? strtoul(one + 16, NULL, 10) : length;
        } else {
            is_chunked = is_chunked || strcmp(one, "Transfer-Encoding: chunked") == 0;
            is_page = is_page || strstr(one, "Content-Type: text/html") ||
                      strstr(one, "Content-Type: text/css") || strstr(one, "Content-Type: image/svg");
            is_stream = is_stream || strstr(one, "text/event-stream") || strstr(one, "ndjson");
            write_signs(s, &shown, one, strlen(one));
            bytes_append_char(&shown, '\n');
        }
        line = end + 2;
    }
    size_t rest = n - head;
    if (is_chunked) {
        if (!without_chunks(&body, text + head, rest)) {
            bytes_append_str(&body, "(chunks are not whole)");
        }
    } else {
        const bool is_none = !has_body || strncmp(text + 9, "304", 3) == 0 || text[9] == '1';
        const size_t own = is_none ? 0 : length != SIZE_MAX && length < rest ? length : rest;
        if (!is_none && length != SIZE_MAX && length != own) {
            bytes_append_str(&body, "(the length is wrong)");
        }
        bytes_append(&body, text + head, own);
        rest = own;
    }
    if (usual != 6) {
        bytes_printf(&shown, "(%zu usual headers)\n", usual);
    }
    bytes_append_char(&shown, '\n');
    if (is_page) { /* which is not what these tests are about */
        bytes_append_str(&shown, body.len ? "(a part of the page)" : "");
    } else if (is_stream) {
        write_events(s, &shown, bytes_str(&body), body.len, strstr(bytes_str(&body), "\n\n") ? "\n\n" : "\n");
    } else {
        write_signs(s, &shown, bytes_str(&body), body.len);
    }
    write_lines(s, bytes_str(&shown), shown.len);
    bytes_deinit(&shown);
    bytes_deinit(&body);
    return head + rest;
}

/* Waits until the answer to a request has a text. */
static void wait_for(script *s, const char *path, const char *text)
{
    const int most = getenv("PARLEY_WRITE") ? 2500 : 10000;
    bool found = false;
    for (int i = 0; i < most && !found; i++) {
        bytes got = bytes_empty(BYTES), sent = bytes_empty(BYTES);
        const int fd = open_socket(s);
        bytes_printf(&sent, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", path);
        send_all(fd, sent.data, sent.len);
        receive(fd, &got, NULL);
        close(fd);
        found = strstr(bytes_str(&got), text) != NULL;
        if (!found && i + 1 == most) {
            fprintf(stderr, "%s: %s never says %s, but\n%s\n", s->path, path, text, bytes_str(&got));
            s->n_wrong++;
        }
        bytes_deinit(&got);
        bytes_deinit(&sent);
        usleep(found ? 0 : 2000);
    }
    if (s->is_exact) {
        clock_settle();
    }
}

/* "/PATH TEXT" */
static void wait_until(script *s, const char *what)
{
    char path[256];
    const size_t n = strcspn(what, " ");
    snprintf(path, sizeof path, "%.*s", (int)n, what);
    wait_for(s, path, what + n + (what[n] == ' '));
}

/* "SECONDS" or "SECONDS /PATH TEXT" */
static void pass_time(script *s, const char *what)
{
    char *end;
    const double seconds = strtod(what, &end);
    CHECK(s->is_exact && seconds > 0.0);
    if (*end == ' ') {
        wait_until(s, end + 1);
    }
    clock_pass(seconds);
}

static inline void pass_times(script *s, manner *m)
{
    for (int i = 0; i < m->n_later; i++) {
        pass_time(s, m->later[i]);
    }
    m->n_later = 0;
}

#endif
