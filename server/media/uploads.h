/* uploads: files on their way: what is announced, what has arrived, and how it becomes a stored
 * file. Loop thread; the bytes are written by another (write_queue.h).
 *
 *     upload *up; uploads_begin(&us, &up, &facts, n_bytes, UPLOAD_BY_CHUNKS, &detail);
 *     upload_chunk(up, offset, data, n, &detail);
 *     uploads_finish(up, &detail);
 *     bool done; uploads_step(&us, up, &done, &detail);   // whenever something was written; done: up->file
 *
 * Two kinds: by chunks in order (WebSocket), or by parts, each a file of its own until the client
 * names their order (POST /v1/uploads); those are then put together slice by slice. An upload lives
 * apart from any connection: whoever has the key and the id may go on with it. A finished one is
 * remembered, so that a client that lost the last reply can ask again.
 */
#ifndef PARLEY_SERVER_MEDIA_UPLOADS_H
#define PARLEY_SERVER_MEDIA_UPLOADS_H

#include "base/bytes.h"
#include "base/limits.h"
#include "server/media/file_store.h"
#include "server/media/write_queue.h"

/* Memory that a form reserves before it is read: what may wait, and one read more. */
enum { UPLOAD_FORM_AHEAD = LIMIT_UPLOAD_WAITING + (128 << 10) };

typedef enum upload_kind { UPLOAD_BY_CHUNKS, UPLOAD_BY_PARTS } upload_kind;
/* ENDING: all that belongs to it is known, and is being put together or written. */
typedef enum upload_status { UPLOAD_PENDING, UPLOAD_ENDING, UPLOAD_COMPLETED } upload_status;

/* A part that has arrived whole. */
typedef struct upload_part {
    char id[FILE_ID_MAX];
    int fd;
    uint64_t bytes;
} upload_part;

typedef struct upload {
    char id[FILE_ID_MAX];
    uint32_t handle; /* names it in binary frames */
    upload_kind kind;
    upload_status status;
    file_facts facts;
    uint64_t bytes;    /* announced */
    uint64_t reserved; /* set aside in the store: those, and as many for the copy of parts */
    uint64_t received; /* chunks: how far; parts: of all that arrived or is arriving */
    bool has_hash;
    uint8_t hash[HASH_BYTES]; /* what the client says the content's is */
    file_sink *sink;          /* chunks, and the whole while parts are put together; or NULL */
    upload_part *parts;
    size_t n_parts, cap_parts;
    size_t *order; /* indices into parts, while they are put together */
    size_t n_order, next;
    uint64_t next_at; /* offset within that part */
    stored_file file; /* UPLOAD_COMPLETED */
    int64_t created_at, expires_at;
    /* for the server: who sends or waits, and what it was told */
    uint64_t conn;
    uint64_t told; /* bytes acknowledged */
    bool ack_wanted, ack_due, gap_told;
    bytes
        asked; /* UPLOAD_ENDING: the event ids of those who wait for the end, each as "+id" or "-", and a NUL */
} upload;

typedef struct uploads {
    file_store *files;
    write_queue *writes;
    upload *list[LIMIT_UPLOADS]; /* in order of creation */
    size_t n;
    uint32_t next_handle;
} uploads;

void uploads_init(uploads *us, file_store *files, write_queue *writes);
void uploads_deinit(uploads *us);

/* ERR_LIMIT: upload_too_large, upload_quota_exceeded, too_many_uploads; ERR_IO:
 * upload_storage_failed; ERR_NOMEM. */
MUST_CHECK err_code uploads_begin(uploads *us, upload **out, const file_facts *facts, uint64_t n_bytes,
                                  upload_kind kind, err_detail *detail);
/* NULL if the owner has no such upload. */
upload *uploads_find(uploads *us, uint64_t scope, const char *id);
upload *uploads_find_handle(uploads *us, uint64_t scope, uint32_t handle);
/* Forgets the upload and what has arrived. */
void uploads_drop(uploads *us, upload *up);
/* Forgets uploads of which nothing was heard for long. */
void uploads_expire(uploads *us, int64_t now_s);

/* Queues what is new of data[0..n) at `offset`. ERR_INVALID (upload_offset_mismatch) behind a gap,
 * or without memory for it now; ERR_LIMIT (upload_too_large) beyond what was announced, ERR_IO. */
MUST_CHECK err_code upload_chunk(upload *up, uint64_t offset, const void *data, size_t n, err_detail *detail);
/* How many bytes are on disk: what may be acknowledged. */
uint64_t upload_written(const upload *up);
/* Ends an upload by chunks, which uploads_step completes. ERR_INVALID: upload_incomplete. */
MUST_CHECK err_code uploads_finish(upload *up, err_detail *detail);

/* Opens what a whole file of n_bytes is written to, and sets them aside: file_store_add, or
 * file_store_release, takes them back. ahead: see file_sink_open. */
MUST_CHECK err_code uploads_open_file(uploads *us, uint64_t scope, uint64_t n_bytes, size_t ahead,
                                      file_sink **out, err_detail *detail);

/* A part: opens a file for it; its bytes are counted with upload_part_add, and it is kept or given
 * up at its end. */
MUST_CHECK err_code upload_part_begin(const uploads *us, const upload *up, file_sink **out,
                                      err_detail *detail);
MUST_CHECK err_code upload_part_add(upload *up, file_sink *f, const void *data, size_t n, err_detail *detail);
/* Takes the sink, which must be idle, in every case. ERR_LIMIT: too_many_parts; ERR_NOMEM. */
MUST_CHECK err_code upload_part_end(upload *up, file_sink *f, const upload_part **out, err_detail *detail);
/* Discards the part; the sink may be NULL. */
void upload_part_abort(upload *up, file_sink *f);

/* Begins to put the parts together in the order of ids[0..n); uploads_step goes on. ERR_INVALID:
 * upload_part_not_found, upload_incomplete. */
MUST_CHECK err_code uploads_assemble(uploads *us, upload *up, const char *const *ids, size_t n,
                                     err_detail *detail);
/* Goes on with an upload that is ending; *done when it is complete: up->file. On an error
 * (upload_hash_mismatch, what the disk or the store says) parts are pending again; an upload by
 * chunks is of no use any more and must be dropped. */
MUST_CHECK err_code uploads_step(uploads *us, upload *up, bool *done, err_detail *detail);

#endif
