#include "server/media/data_uri.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { SCHEME_MAX = 16, HEADER_MAX = 256 };

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(uint8_t *out, size_t *n, const char *text, size_t len)
{
    *n = 0;
    if (len % 4 != 0) {
        return false;
    }
    size_t pad = 0;
    if (len > 0) {
        pad = text[len - 1] != '=' ? 0 : text[len - 2] != '=' ? 1 : 2;
    }
    for (size_t i = 0; i < len; i += 4) {
        size_t n_pad = i + 4 == len ? pad : 0;
        int v[4] = {0, 0, 0, 0};
        for (size_t k = 0; k < 4 - n_pad; k++) {
            v[k] = sextet(text[i + k]);
            if (v[k] < 0) {
                return false;
            }
        }
        /* Bits that the padding cuts off must be zero: one text for one content. */
        if ((n_pad == 1 && (v[2] & 3)) || (n_pad == 2 && (v[1] & 15))) {
            return false;
        }
        out[(*n)++] = (uint8_t)(v[0] << 2 | v[1] >> 4);
        if (n_pad < 2) {
            out[(*n)++] = (uint8_t)((v[1] & 15) << 4 | v[2] >> 2);
        }
        if (n_pad < 1) {
            out[(*n)++] = (uint8_t)((v[2] & 3) << 6 | v[3]);
        }
    }
    return true;
}

/* Length of "scheme:" at the start, 0 if there is none. */
static size_t scheme_len(const char *text, size_t len)
{
    if (len == 0 || !isalpha((unsigned char)text[0])) {
        return 0;
    }
    for (size_t i = 1; i < len && i < SCHEME_MAX; i++) {
        if (text[i] == ':') {
            return i + 1;
        }
        if (!isalnum((unsigned char)text[i]) && text[i] != '+' && text[i] != '-' && text[i] != '.') {
            return 0;
        }
    }
    return 0;
}

data_uri_kind data_uri_classify(const char *text, size_t len)
{
    size_t n = scheme_len(text, len);
    if (n == 0 || (n == 5 && strncasecmp(text, "data:", 5) == 0)) {
        return DATA_URI_INLINE;
    }
    return n == 7 && strncasecmp(text, "upload:", 7) == 0 ? DATA_URI_UPLOAD : DATA_URI_REMOTE;
}

err_code data_uri_decode(arena *a, const uint8_t **out, size_t *out_bytes, const char *text, size_t len,
                         size_t max_bytes, err_detail *detail)
{
    size_t n = scheme_len(text, len);
    if (n > 0) {
        const char *comma = memchr(text, ',', len < HEADER_MAX ? len : HEADER_MAX);
        if (!comma) {
            return err_set(detail, ERR_INVALID, "the data URI has no comma after its header");
        }
        size_t header = (size_t)(comma - text);
        if (header < 7 || strncasecmp(comma - 7, ";base64", 7) != 0) {
            return err_set(detail, ERR_INVALID, "the data URI must say ;base64 in its header");
        }
        text += header + 1;
        len -= header + 1;
    }
    if (len == 0) {
        return err_set(detail, ERR_INVALID, "the file is empty");
    }
    if (len / 4 * 3 > max_bytes) {
        return err_set(detail, ERR_LIMIT, "the file has more than %zu bytes", max_bytes);
    }
    uint8_t *data = arena_alloc(a, len / 4 * 3 + 1);
    if (!data) {
        return err_set(detail, ERR_NOMEM, "no memory for the file");
    }
    if (!base64_decode(data, out_bytes, text, len)) {
        return err_set(detail, ERR_INVALID, "not valid base64");
    }
    *out = data;
    return ERR_OK;
}

void base64_encode(bytes *out, const uint8_t *data, size_t n)
{
    static const char CHARS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t bits = (uint32_t)data[i] << 16 | (i + 1 < n ? (uint32_t)data[i + 1] << 8 : 0) |
                              (i + 2 < n ? (uint32_t)data[i + 2] : 0);
        const char group[4] = {CHARS[bits >> 18], CHARS[bits >> 12 & 63],
                               i + 1 < n ? CHARS[bits >> 6 & 63] : '=', i + 2 < n ? CHARS[bits & 63] : '='};
        bytes_append(out, group, sizeof group);
    }
}
