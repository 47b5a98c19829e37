#include "server/media/write_queue.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { SLICE_BYTES = 65536 };

/* Something to do for a sink. Its data stands behind it, or is read from fd. */
typedef struct job {
    struct job *next;
    file_sink *sink;
    size_t n;
    int fd;          /* -1: data */
    uint64_t offset; /* in fd */
    bool is_drop;    /* the last of its sink, and a part of it */
} job;

/* What the writer thread has done for a sink. */
typedef struct progress {
    uint64_t written;
    size_t freed; /* memory of jobs, in all */
    err_code err;
    err_detail detail;
} progress;

struct file_sink {
    write_queue *q;
    file_writer *w; /* the writer thread's while anything waits */
    uint64_t max_bytes, queued;
    size_t taken;       /* memory of jobs, in all */
    size_t reserved;    /* held all the time */
    ledger_hold memory; /* that, or more if more waits; the writer thread's once the sink is dropped */
    progress seen;      /* by the loop */
    job drop;
    bool is_dropped; /* {lock} */
    progress done;   /* {lock} */
};

struct write_queue {
    struct ledger *memory;
    void (*wake)(void *ctx);
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    job *first, **last; /* {lock} */
    bool is_ended;      /* {lock} */
    size_t waiting;     /* memory of all jobs, as far as sinks were polled */
    atomic_bool has_news;
};

/* ---- the writer thread ---- */

static void free_sink(file_sink *f)
{
    file_writer_destroy(f->w);
    ledger_give_all(&f->memory);
    free(f);
}

static err_code copy(file_writer *w, const job *j, err_detail *d)
{
    char slice[SLICE_BYTES];
    err_code err = ERR_OK;
    for (size_t done = 0; done < j->n && err == ERR_OK;) {
        const size_t left = j->n - done;
        const int64_t n =
            file_read_at(j->fd, slice, left < sizeof slice ? left : sizeof slice, j->offset + done);
        err = n > 0 ? file_writer_add(w, slice, (size_t)n, d)
                    : err_set_param(d, ERR_IO, NULL, "upload_storage_failed",
                                    "the server lost a part of this upload");
        done += n > 0 ? (size_t)n : 0;
    }
    return err;
}

static size_t memory_of(const job *j)
{
    return sizeof *j + (j->fd < 0 ? j->n : 0);
}

static void free_job(job *j)
{
    file_close(j->fd);
    free(j);
}

/* Does a job without the lock, and frees it. */
static void run_job(write_queue *q, job *j, bool is_skipped)
{
    file_sink *f = j->sink;
    if (j->is_drop) {
        free_sink(f);
        return;
    }
    err_detail d = {0};
    err_code err = ERR_OK;
    if (!is_skipped) {
        err = j->fd < 0 ? file_writer_add(f->w, j + 1, j->n, &d) : copy(f->w, j, &d);
    }
    pthread_mutex_lock(&q->lock);
    f->done.freed += memory_of(j);
    f->done.written = file_writer_bytes(f->w);
    if (err != ERR_OK) {
        f->done.err = err;
        f->done.detail = d;
    }
    pthread_mutex_unlock(&q->lock);
    free_job(j);
    atomic_store(&q->has_news, true);
    q->wake(q->ctx);
}

static void *run_queue(void *ctx)
{
    write_queue *q = ctx;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        job *j = q->first;
        if (j) {
            q->first = j->next;
            q->last = q->first ? q->last : &q->first;
            const bool is_skipped = q->is_ended || j->sink->is_dropped || j->sink->done.err != ERR_OK;
            pthread_mutex_unlock(&q->lock);
            run_job(q, j, is_skipped);
            pthread_mutex_lock(&q->lock);
        } else if (q->is_ended) {
            break;
        } else {
            pthread_cond_wait(&q->arrived, &q->lock);
        }
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- the loop thread ---- */

write_queue *write_queue_create(struct ledger *memory, void (*wake)(void *ctx), void *ctx)
{
    write_queue *q = calloc(1, sizeof *q);
    if (!q) {
        return NULL;
    }
    q->memory = memory;
    q->wake = wake;
    q->ctx = ctx;
    q->last = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->arrived, NULL);
    if (pthread_create(&q->thread, NULL, run_queue, q) != 0) {
        q->is_ended = true;
        write_queue_destroy(q);
        return NULL;
    }
    return q;
}

void write_queue_end(write_queue *q)
{
    if (q && !q->is_ended) {
        pthread_mutex_lock(&q->lock);
        q->is_ended = true;
        pthread_cond_signal(&q->arrived);
        pthread_mutex_unlock(&q->lock);
        pthread_join(q->thread, NULL);
    }
}

void write_queue_destroy(write_queue *q)
{
    if (q) {
        write_queue_end(q);
        pthread_cond_destroy(&q->arrived);
        pthread_mutex_destroy(&q->lock);
        free(q);
    }
}

bool write_queue_has_news(write_queue *q)
{
    return atomic_exchange(&q->has_news, false);
}

bool write_queue_is_busy(const write_queue *q)
{
    return q->waiting > 0;
}

static err_code reserve(file_sink *f, size_t n_bytes, err_detail *d)
{
    const size_t held = f->memory.bytes;
    return n_bytes <= held || ledger_try(&f->memory, n_bytes - held)
               ? ERR_OK
               : err_set_param(d, ERR_BUSY, NULL, "memory_busy",
                               "there is no memory for this upload now; try again in a moment");
}

static void give_back(file_sink *f)
{
    const size_t waiting = file_sink_waiting(f), needed = waiting > f->reserved ? waiting : f->reserved;
    if (f->memory.bytes > needed) {
        ledger_give(&f->memory, f->memory.bytes - needed);
    }
}

err_code file_sink_open(file_sink **out, write_queue *q, const char *dir, uint64_t max_bytes, size_t ahead,
                        err_detail *d)
{
    *out = NULL;
    file_sink *f = calloc(1, sizeof *f);
    if (!f) {
        return err_set(d, ERR_NOMEM, "no memory for this upload");
    }
    f->q = q;
    f->max_bytes = max_bytes;
    f->memory.ledger = q->memory;
    f->reserved = max_bytes < ahead ? (size_t)max_bytes : ahead;
    err_code err = reserve(f, f->reserved, d);
    err = err == ERR_OK ? file_writer_create(&f->w, dir, max_bytes, d) : err;
    if (err != ERR_OK) {
        free_sink(f);
        return err;
    }
    f->drop = (job){.sink = f, .fd = -1, .is_drop = true};
    *out = f;
    return ERR_OK;
}

static void push(write_queue *q, job *j)
{
    pthread_mutex_lock(&q->lock);
    *q->last = j;
    q->last = &j->next;
    pthread_cond_signal(&q->arrived);
    pthread_mutex_unlock(&q->lock);
}

/* A job for n more bytes of the file. */
static err_code create_job(job **out, file_sink *f, size_t n, size_t n_data, err_detail *d)
{
    *out = NULL;
    err_code err = file_sink_error(f, d);
    if (err != ERR_OK) {
        return err;
    }
    if (n > f->max_bytes - f->queued) {
        return err_set_param(d, ERR_LIMIT, NULL, "upload_too_large",
                             "more bytes came than were announced or are allowed");
    }
    err = reserve(f, file_sink_waiting(f) + sizeof(job) + n_data, d);
    if (err != ERR_OK) {
        return err;
    }
    job *j = malloc(sizeof *j + n_data);
    if (!j) {
        give_back(f);
        return err_set(d, ERR_NOMEM, "no memory for this upload");
    }
    *j = (job){.sink = f, .n = n, .fd = -1};
    *out = j;
    return ERR_OK;
}

static void push_bytes(file_sink *f, job *j)
{
    f->queued += j->n;
    f->taken += memory_of(j);
    f->q->waiting += memory_of(j);
    push(f->q, j);
}

err_code file_sink_add(file_sink *f, const void *data, size_t n, err_detail *d)
{
    job *j;
    err_code err = create_job(&j, f, n, n, d);
    if (err == ERR_OK) {
        memcpy(j + 1, data, n);
        push_bytes(f, j);
    }
    return err;
}

err_code file_sink_copy(file_sink *f, int fd, uint64_t offset, size_t n, err_detail *d)
{
    job *j;
    err_code err = create_job(&j, f, n, 0, d);
    if (err != ERR_OK) {
        return err;
    }
    j->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    j->offset = offset;
    if (j->fd < 0) {
        free_job(j);
        give_back(f);
        return err_set(d, ERR_IO, "too many files are open");
    }
    push_bytes(f, j);
    return ERR_OK;
}

bool file_sink_poll(file_sink *f)
{
    pthread_mutex_lock(&f->q->lock);
    const progress done = f->done;
    pthread_mutex_unlock(&f->q->lock);
    const size_t freed = done.freed - f->seen.freed;
    f->q->waiting -= freed;
    f->seen = done;
    give_back(f);
    return freed > 0;
}

err_code file_sink_error(const file_sink *f, err_detail *d)
{
    if (f->seen.err != ERR_OK && d) {
        *d = f->seen.detail;
    }
    return f->seen.err;
}

uint64_t file_sink_queued(const file_sink *f)
{
    return f->queued;
}

uint64_t file_sink_written(const file_sink *f)
{
    return f->seen.written;
}

size_t file_sink_waiting(const file_sink *f)
{
    return f->taken - f->seen.freed;
}

bool file_sink_is_idle(const file_sink *f)
{
    return f->taken == f->seen.freed;
}

file_writer *file_sink_take(file_sink *f)
{
    file_writer *w = f->w;
    f->w = NULL;
    free_sink(f);
    return w;
}

void file_sink_drop(file_sink *f)
{
    if (!f) {
        return;
    }
    write_queue *q = f->q;
    q->waiting -= file_sink_waiting(f);
    if (q->is_ended) {
        free_sink(f);
        return;
    }
    pthread_mutex_lock(&q->lock);
    f->is_dropped = true;
    pthread_mutex_unlock(&q->lock);
    push(q, &f->drop);
}
