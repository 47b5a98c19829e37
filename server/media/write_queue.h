/* write_queue: one thread that writes uploaded files to disk and hashes them, so that the loop does
 * neither. Loop thread, but for `wake`, which is called on the writer thread.
 *
 *     write_queue *q = write_queue_create(ledger, wake, ctx);
 *     file_sink *f; file_sink_open(&f, q, "/var/tmp", n_bytes, 0, &detail);
 *     file_sink_add(f, data, n, &detail);                     // queued: order is kept
 *     // wake(ctx) is called; then file_sink_poll(f) says how far it is written, or what failed
 *     if (file_sink_is_idle(f)) { file_writer *w = file_sink_take(f); }   // or file_sink_drop(f)
 *     write_queue_end(q);
 *     write_queue_destroy(q);
 *
 * What is queued is copied and counted in the ledger until it is written. Whoever feeds a sink stops
 * reading from its client while file_sink_waiting is more than LIMIT_UPLOAD_WAITING: the queue
 * itself refuses nothing for being long.
 */
#ifndef PARLEY_SERVER_MEDIA_WRITE_QUEUE_H
#define PARLEY_SERVER_MEDIA_WRITE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/ledger.h"
#include "server/media/file_writer.h"

typedef struct write_queue write_queue;
typedef struct file_sink file_sink; /* a file that is being written */

/* Starts the thread. memory: where queued bytes are reserved; NULL: nowhere. NULL if memory or
 * threads run out. */
MUST_CHECK write_queue *write_queue_create(struct ledger *memory, void (*wake)(void *ctx), void *ctx);
/* Ends the thread; what waits is not written. Sinks may only be dropped afterwards. NULL allowed. */
void write_queue_end(write_queue *q);
/* Every sink must be gone. NULL allowed. */
void write_queue_destroy(write_queue *q);
/* Whether something was written, or failed, since this was last asked. */
bool write_queue_has_news(write_queue *q);
/* Whether any sink waits for the disk, as far as sinks were polled. */
bool write_queue_is_busy(const write_queue *q);

/* A file of at most max_bytes in `dir`. ahead: memory that is reserved until its end, so that it does
 * not fail in the middle. Errors as of file_writer_create, and ERR_BUSY (memory_busy). */
MUST_CHECK err_code file_sink_open(file_sink **out, write_queue *q, const char *dir, uint64_t max_bytes,
                                   size_t ahead, err_detail *detail);
/* Queues a copy of the data. ERR_LIMIT (upload_too_large) beyond max_bytes, ERR_BUSY (memory_busy)
 * and ERR_NOMEM: then nothing was queued. Or what failed before. */
MUST_CHECK err_code file_sink_add(file_sink *f, const void *data, size_t n, err_detail *detail);
/* Queues n bytes at an offset of a descriptor, which stays the caller's and may be closed. Errors as
 * of file_sink_add, and ERR_IO. */
MUST_CHECK err_code file_sink_copy(file_sink *f, int fd, uint64_t offset, size_t n, err_detail *detail);

/* Learns how far the file is written; false if nothing has changed. */
bool file_sink_poll(file_sink *f);
/* These are as of the last poll. ERR_OK, or why the file cannot be written. */
err_code file_sink_error(const file_sink *f, err_detail *detail);
uint64_t file_sink_queued(const file_sink *f);  /* bytes in all */
uint64_t file_sink_written(const file_sink *f); /* of them, in order */
size_t file_sink_waiting(const file_sink *f);   /* bytes of memory */
bool file_sink_is_idle(const file_sink *f);     /* nothing waits */

/* Ends an idle sink without an error: the written file is the caller's. */
MUST_CHECK file_writer *file_sink_take(file_sink *f);
/* Discards the file and what waits. NULL allowed. */
void file_sink_drop(file_sink *f);

#endif
