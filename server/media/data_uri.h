/* data_uri: "data:image/png;base64,...." and bare base64 into bytes, strictly. Any thread.
 *
 *     err = data_uri_decode(arena, &data, &n, text, len, max_bytes, &detail);
 *
 * Strict: only the 64 characters and correct padding, no white space, unused bits zero. The size is
 * known and checked before memory is taken.
 */
#ifndef PARLEY_SERVER_MEDIA_DATA_URI_H
#define PARLEY_SERVER_MEDIA_DATA_URI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/err.h"

/* What a media URL says about where the bytes are. */
typedef enum data_uri_kind {
    DATA_URI_INLINE, /* data: with base64, or bare base64 */
    DATA_URI_REMOTE, /* http, https, file and other schemes: not fetched */
    DATA_URI_UPLOAD  /* upload:file_...: an earlier upload */
} data_uri_kind;

/* Looks at the scheme only. */
data_uri_kind data_uri_classify(const char *text, size_t len);

/* Decodes an inline URL into the arena. ERR_INVALID if it is not base64, ERR_LIMIT beyond
 * max_bytes, ERR_NOMEM. */
MUST_CHECK err_code data_uri_decode(arena *a, const uint8_t **out, size_t *out_bytes, const char *text,
                                    size_t len, size_t max_bytes, err_detail *detail);

/* Strict base64 (RFC 4648 section 4, padding required). Writes at most len / 4 * 3 bytes to out; *n
 * is how many. False if the text is not base64. */
bool base64_decode(uint8_t *out, size_t *n, const char *text, size_t len);

/* Appends the bytes as base64; pieces whose length is a multiple of 3 join. */
void base64_encode(bytes *out, const uint8_t *data, size_t n);

#endif
