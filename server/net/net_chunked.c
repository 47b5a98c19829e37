#include "server/net/net_chunked.h"

#include "base/hex.h"

/* A size of 15 digits does not overflow. */
enum { DIGITS_MAX = 15, IDLE_BYTES_MAX = 8192 };

static net_chunked_state read_size(net_chunked *c, uint8_t byte)
{
    const int value = hex_digit((char)byte);
    if (value >= 0) {
        c->left = c->left << 4 | (uint64_t)value;
        return ++c->digits <= DIGITS_MAX ? NET_CHUNKED_SIZE : NET_CHUNKED_BAD;
    }
    if (c->digits == 0) {
        return NET_CHUNKED_BAD;
    }
    return byte == '\r' ? NET_CHUNKED_SIZE_LF : byte == ';' ? NET_CHUNKED_EXTENSION : NET_CHUNKED_BAD;
}

/* A byte of text that is not looked at, up to its line's end. */
static net_chunked_state skip_text(net_chunked *c, uint8_t byte, net_chunked_state at_end)
{
    if (byte == '\r') {
        return at_end;
    }
    const int is_control = byte != '\t' && (byte < 0x20 || byte == 0x7f);
    return is_control || ++c->idle_bytes > IDLE_BYTES_MAX ? NET_CHUNKED_BAD : c->state;
}

static net_chunked_state read_byte(net_chunked *c, uint8_t byte)
{
    switch (c->state) {
    case NET_CHUNKED_SIZE:
        return read_size(c, byte);
    case NET_CHUNKED_EXTENSION:
        return skip_text(c, byte, NET_CHUNKED_SIZE_LF);
    case NET_CHUNKED_SIZE_LF:
        c->digits = 0;
        return byte != '\n' ? NET_CHUNKED_BAD : c->left > 0 ? NET_CHUNKED_DATA : NET_CHUNKED_TRAILER;
    case NET_CHUNKED_DATA_CR:
        return byte == '\r' ? NET_CHUNKED_DATA_LF : NET_CHUNKED_BAD;
    case NET_CHUNKED_DATA_LF:
        return byte == '\n' ? NET_CHUNKED_SIZE : NET_CHUNKED_BAD;
    case NET_CHUNKED_TRAILER:
        c->state = NET_CHUNKED_TRAILER_TEXT;
        return byte == '\r' ? NET_CHUNKED_END_LF : skip_text(c, byte, NET_CHUNKED_TRAILER_LF);
    case NET_CHUNKED_TRAILER_TEXT:
        return skip_text(c, byte, NET_CHUNKED_TRAILER_LF);
    case NET_CHUNKED_TRAILER_LF:
        return byte == '\n' ? NET_CHUNKED_TRAILER : NET_CHUNKED_BAD;
    case NET_CHUNKED_END_LF:
        return byte == '\n' ? NET_CHUNKED_DONE : NET_CHUNKED_BAD;
    default:
        return NET_CHUNKED_BAD;
    }
}

size_t net_chunked_next(net_chunked *c, const void *data, size_t n, const void **piece, size_t *piece_bytes)
{
    *piece = NULL;
    *piece_bytes = 0;
    if (c->state >= NET_CHUNKED_DONE) {
        return 0;
    }
    if (c->state == NET_CHUNKED_DATA) {
        const size_t take = n < c->left ? n : (size_t)c->left;
        *piece = data;
        *piece_bytes = take;
        c->left -= take;
        c->state = c->left > 0 ? NET_CHUNKED_DATA : NET_CHUNKED_DATA_CR;
        return take;
    }
    c->state = read_byte(c, *(const uint8_t *)data);
    return 1;
}
