/* http_head: strict parser of the request line and header fields of HTTP/1.1 (RFC 9112). Any
 * thread; owns nothing: a head points into the text it was parsed from.
 *
 *     http_head h;
 *     if (http_head_read(&h, text, n) == HTTP_HEAD_WHOLE) { http_head_value(&h, "host", out, sizeof out); }
 *
 * Every line ends in CRLF, names are tokens, values hold no control character but the tab, and line
 * folding is refused.
 */
#ifndef PARLEY_SERVER_NET_HTTP_HEAD_H
#define PARLEY_SERVER_NET_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>

typedef enum http_head_state {
    HTTP_HEAD_MORE, /* incomplete, and valid so far */
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
    http_span authority;    /* of a target such as http://name/path; else empty */
    http_span path;         /* as it was sent; "*" is possible */
    http_span query_string; /* query string after the question mark, as it was sent */
    bool is_1_1;
    http_span fields; /* the lines after the first, without the empty one */
    size_t bytes;     /* of the whole head, with the empty line */
} http_head;

/* Reads the head that text[0..n) begins with; *h is filled if it is WHOLE. */
http_head_state http_head_read(http_head *h, const char *text, size_t n);

/* How many lines have this name (written in lower case). */
size_t http_head_count(const http_head *h, const char *name);

/* Writes the value of `name` (in lower case), without white space around it; several lines are
 * joined with ", ". "" if there is none. A value that does not fit in cap bytes becomes "?":
 * present, but never a valid value. */
void http_head_value(const http_head *h, const char *name, char *out, size_t cap);

/* True if a list of values separated by commas has this one, in any case. */
bool http_list_has(const char *list, const char *value);

/* True for the key of a WebSocket's handshake: 16 bytes in base64. */
bool http_is_socket_key(const char *key);

/* Decodes %XX into out, NUL-terminated. False if an escape is malformed or stands for a control
 * character, or if it does not fit; then out is "". */
bool http_decode(char *out, size_t cap, http_span text);

/* True if every %XX of a query string is whole and stands for no control character. */
bool http_query_is_valid(http_span query);

typedef enum http_query { HTTP_QUERY_NONE, HTTP_QUERY_VALUE, HTTP_QUERY_LONG } http_query;

/* Decodes the value of the first parameter of this name into out, NUL-terminated; the query is a
 * valid one, as it was sent: it is cut at & and = before it is decoded. A name without = has the
 * value "". NONE: there is no such parameter; LONG: its value does not fit in cap bytes; out is "" then. */
http_query http_query_value(const char *query, const char *name, char *out, size_t cap);

/* Removes empty, "." and ".." segments from an absolute path; ".." at the root stays at the
 * root. */
void http_fold_path(char *path);

#endif
