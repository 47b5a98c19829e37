/* http_head: the head of an HTTP/1.1 request, read strictly (RFC 9112). Any thread; owns nothing: a head points into the text
 * that it was read from.
 *
 *     http_head h;
 *     if (http_head_read(&h, text, n) == HTTP_HEAD_WHOLE) { http_head_value(&h, "host", out, sizeof out); ... }
 *
 * Every line ends in CRLF, names are tokens, values hold no control character but the tab, and no line goes on in the next.
 */
#ifndef PARLEY_SERVER_HTTP_HEAD_H
#define PARLEY_SERVER_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>

typedef enum http_head_state {
    HTTP_HEAD_MORE, /* not whole yet, and nothing wrong so far */
    HTTP_HEAD_WHOLE,
    HTTP_HEAD_BAD,    /* malformed: 400 */
    HTTP_HEAD_VERSION /* neither HTTP/1.1 nor HTTP/1.0: 505 */
} http_head_state;

typedef struct http_span {
    const char *text;
    size_t len;
} http_span;

typedef struct http_head {
    http_span method;
    http_span authority; /* of a target such as http://name/path; else empty */
    http_span path;      /* as it was sent; "*" is possible */
    http_span query;     /* behind the question mark, as it was sent */
    bool is_1_1;
    http_span fields; /* the lines behind the first, without the empty one */
    size_t bytes;     /* of the whole head, with the empty line */
} http_head;

/* Reads the head that text[0..n) begins with; *h is filled if it is WHOLE. */
http_head_state http_head_read(http_head *h, const char *text, size_t n);

/* How many lines have this name (written in lower case). */
size_t http_head_count(const http_head *h, const char *name);

/* Writes the value of `name` (in lower case), without white space around it; several lines are joined with ", ". "" if there
 * is none. What does not fit in cap bytes is "?": no longer absent, and nothing that could be believed. */
void http_head_value(const http_head *h, const char *name, char *out, size_t cap);

/* True if a list of values separated by commas has this one, in any case. */
bool http_list_has(const char *list, const char *value);

/* Decodes %XX into out, NUL-terminated. False if an escape is malformed or stands for a control character, or if it does not
 * fit; then out is "". */
bool http_decode(char *out, size_t cap, http_span text);

/* Takes empty, "." and ".." segments out of an absolute path; what would leave the root stays there. */
void http_fold_path(char *path);

#endif
