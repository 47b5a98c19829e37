/* multipart: streaming parser of multipart/form-data; field data is passed on piece by piece and
 * never buffered as a whole. Loop thread.
 *
 *     multipart m; multipart_init(&m, content_type, &sink);      // false: no boundary
 *     err = multipart_feed(&m, data, n, &detail);                // for every piece of the body
 *     if (!multipart_is_complete(&m)) { return ERR_INVALID; }    // the body ended too early
 *     multipart_deinit(&m);
 */
#ifndef PARLEY_SERVER_MEDIA_MULTIPART_H
#define PARLEY_SERVER_MEDIA_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/err.h"

enum { MULTIPART_BOUNDARY_MAX = 200, MULTIPART_NAME_MAX = 128, MULTIPART_FILENAME_MAX = 256 };

/* The head of one field. */
typedef struct multipart_field {
    char name[MULTIPART_NAME_MAX];
    char filename[MULTIPART_FILENAME_MAX]; /* without folders and control characters, valid UTF-8 */
    bool is_file;                          /* a filename was given */
} multipart_field;

/* Receives the fields; any value but ERR_OK ends parsing and is returned. */
typedef struct multipart_sink {
    void *ctx;
    err_code (*begin)(void *ctx, const multipart_field *field, err_detail *detail);
    err_code (*data)(void *ctx, const void *data, size_t n, err_detail *detail);
    err_code (*end)(void *ctx, err_detail *detail);
} multipart_sink;

typedef enum multipart_state {
    MULTIPART_PREAMBLE,
    MULTIPART_BOUNDARY, /* behind a delimiter */
    MULTIPART_HEADERS,
    MULTIPART_DATA,
    MULTIPART_END
} multipart_state;

typedef struct multipart {
    multipart_sink sink;
    multipart_state state;
    char delimiter[MULTIPART_BOUNDARY_MAX + 8]; /* "\r\n--boundary" */
    size_t n_delimiter;
    bytes held; /* undecided bytes */
} multipart;

/* content_type is the header's value; false if it is no multipart/form-data with a boundary. */
MUST_CHECK bool multipart_init(multipart *m, const char *content_type, const multipart_sink *sink);
void multipart_deinit(multipart *m);
/* ERR_INVALID (invalid_multipart), ERR_NOMEM, or what the sink says; nothing may be fed after an
 * error. */
MUST_CHECK err_code multipart_feed(multipart *m, const void *data, size_t n, err_detail *detail);
/* The closing delimiter was seen. */
bool multipart_is_complete(const multipart *m);

#endif
