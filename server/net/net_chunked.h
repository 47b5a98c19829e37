/* net_chunked: reads a body in Transfer-Encoding: chunked (RFC 9112, 7.1). Any thread; owns
 * nothing.
 *
 *     net_chunked c = {0};
 *     while (n > 0 && c.state < NET_CHUNKED_DONE) {
 *         size_t used = net_chunked_next(&c, data, n, &piece, &piece_bytes);   // append the piece
 *         data += used; n -= used;
 *     }
 *
 * Strict: every line ends in CRLF, a size is hexadecimal digits alone. Extensions and trailers are
 * read and ignored, within a limit.
 */
#ifndef PARLEY_SERVER_NET_NET_CHUNKED_H
#define PARLEY_SERVER_NET_NET_CHUNKED_H

#include <stddef.h>
#include <stdint.h>

typedef enum net_chunked_state {
    NET_CHUNKED_SIZE, /* the digits of a size */
    NET_CHUNKED_EXTENSION,
    NET_CHUNKED_SIZE_LF,
    NET_CHUNKED_DATA,
    NET_CHUNKED_DATA_CR,
    NET_CHUNKED_DATA_LF,
    NET_CHUNKED_TRAILER, /* at the start of a line after the last chunk */
    NET_CHUNKED_TRAILER_TEXT,
    NET_CHUNKED_TRAILER_LF,
    NET_CHUNKED_END_LF,
    NET_CHUNKED_DONE, /* the body is whole */
    NET_CHUNKED_BAD   /* it is malformed */
} net_chunked_state;

typedef struct net_chunked { /* begins as {0} */
    net_chunked_state state;
    uint64_t left;     /* of this chunk's size or data */
    unsigned digits;   /* of the size being read */
    size_t idle_bytes; /* of extensions and trailers so far */
} net_chunked;

/* Reads some of data[0..n), n > 0, and returns how much, at least one byte. *piece points to the
 * body bytes among them, *piece_bytes many, perhaps none. Nothing is read once the state is DONE or
 * BAD (the return value is then 0). */
size_t net_chunked_next(net_chunked *c, const void *data, size_t n, const void **piece, size_t *piece_bytes);

#endif
