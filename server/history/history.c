#include "server/history/history.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mailbox.h"
#include "server/api_error.h"

#define MAX_WAITING_BYTES ((size_t)256 << 20) /* of bodies */

struct history {
    history_store *store; /* the thread's */
    mailbox *jobs;
    pthread_t thread;
    bool is_started;
    atomic_size_t n_bytes; /* of the bodies that wait */
    void (*post)(void *ctx, history_reply *r);
    void *ctx;
};

history_job *history_job_create(history_verb verb)
{
    history_job *job = calloc(1, sizeof *job);
    if (job) {
        job->verb = verb;
        job->limit = LIMIT_HISTORY_PAGE;
        job->revision = ANY_REVISION;
        job->file.fd = -1;
        bytes_init(&job->body, SIZE_MAX);
    }
    return job;
}

void history_job_free(history_job *job)
{
    if (job) {
        bytes_deinit(&job->body);
        file_close(job->file.fd);
        if (job->drop) {
            job->drop(job->ctx);
        }
        free(job);
    }
}

void history_reply_free(history_reply *r)
{
    if (r) {
        bytes_deinit(&r->body);
        file_close(r->file.fd);
        free(r);
    }
}

/* ---- the thread ---- */

static void write_error(history_reply *r, err_code code, const err_detail *d)
{
    api_error e;
    api_error_from(&e, code, d);
    r->status = e.status;
    bytes extra = bytes_empty(64);
    if (r->status == 409) {
        bytes_printf(&extra, ",\"revision\":%lld", (long long)r->change.revision);
    }
    bytes_clear(&r->body);
    bytes_append_str(&r->body, "{\"error\":");
    api_error_write(&r->body, &e, bytes_str(&extra));
    bytes_append_char(&r->body, '}');
    bytes_deinit(&extra);
}

static void write_change(history_reply *r)
{
    bytes_json(&r->body, "{\"id\":%s,\"object\":\"chat\"", r->change.id);
    if (r->is_deleted) {
        bytes_append_str(&r->body, ",\"deleted\":true}");
    } else {
        bytes_json(&r->body, ",\"revision\":%lld,\"updated\":%lld}", (long long)r->change.revision,
                   (long long)r->change.updated);
    }
}

static err_code search(history_store *st, history_reply *r, const history_job *job, const json *given,
                       err_detail *d)
{
    const char *words = json_str(json_get(given, "query"), NULL);
    const char *after = json_str(json_get(given, "after"), "");
    int64_t limit = job->limit;
    if (!words) {
        return err_set_param(d, ERR_INVALID, "query", "missing_field", "query must be the words to look for");
    }
    if (!json_is(json_get(given, "limit"), JSON_NULL) &&
        !json_int(json_get(given, "limit"), 1, LIMIT_HISTORY_PAGE, &limit)) {
        return err_set_param(d, ERR_INVALID, "limit", "invalid_value", "limit must be a number from 1 to %d",
                             LIMIT_HISTORY_PAGE);
    }
    return history_store_list(st, &r->body, job->scope, (int)limit, after, words, d);
}

/* The verbs whose body is JSON. */
static err_code run_parsed(history_store *st, history_reply *r, const history_job *job, err_detail *d)
{
    json_doc *doc = NULL;
    int n = 0;
    err_code err = json_parse(&doc, bytes_str(&job->body), job->body.len, LIMIT_JSON_DEPTH, d);
    if (err != ERR_OK) {
        snprintf(d->name, sizeof d->name, "invalid_json");
        return err;
    }
    const json *given = json_root(doc);
    switch (job->verb) {
    case HISTORY_SEARCH:
        err = search(st, r, job, given, d);
        break;
    case HISTORY_PUT:
        err = history_store_put(st, job->scope, job->id, given, &r->change, d);
        r->is_changed = err == ERR_OK;
        if (err == ERR_OK) {
            write_change(r);
        }
        break;
    case HISTORY_SHARE:
        err = history_store_share(st, &r->body, job->scope, given, d);
        break;
    default:
        err = history_store_import(st, job->scope, given, &n, d);
        r->is_changed = r->is_import = err == ERR_OK;
        bytes_printf(&r->body, "{\"object\":\"history.import\",\"chats\":%d}", n);
        break;
    }
    json_free(doc);
    return err;
}

static err_code run_plain(history_store *st, history_reply *r, const history_job *job, err_detail *d)
{
    char hex[2 * HASH_BYTES + 1];
    err_code err;
    switch (job->verb) {
    case HISTORY_INFO:
        return history_store_info(st, &r->body, job->scope, d);
    case HISTORY_LIST:
        return history_store_list(st, &r->body, job->scope, job->limit, job->after, NULL, d);
    case HISTORY_GET:
        return history_store_get(st, &r->body, job->scope, job->id, job->since, d);
    case HISTORY_DELETE:
        err = history_store_delete(st, job->scope, job->id, job->revision, &r->change, d);
        r->is_changed = r->is_deleted = err == ERR_OK;
        write_change(r);
        return err;
    case HISTORY_ADD_FILE:
        hash_hex(hex, job->file.hash, HASH_BYTES);
        bytes_printf(&r->body, "{\"object\":\"history.file\",\"sha256\":\"%s\",\"bytes\":%llu}", hex,
                     (unsigned long long)job->file.bytes);
        return history_store_add_file(st, job->scope, &job->file, d);
    case HISTORY_GET_FILE:
        return history_store_open_file(st, job->scope, job->id, &r->file, d);
    case HISTORY_SHARES:
        return history_store_shares(st, &r->body, job->scope, d);
    case HISTORY_UNSHARE:
        return history_store_unshare(st, &r->body, job->scope, job->id, d);
    case HISTORY_SHARED:
        return history_store_shared(st, &r->body, job->token, d);
    case HISTORY_SHARED_FILE:
        return history_store_shared_file(st, job->token, job->id, &r->file, d);
    case HISTORY_WORK:
        return job->work(st, job->ctx, &r->body, d);
    default:
        return history_store_export(st, job->scope, &r->file, d);
    }
}

/* Somebody waits for it (history_call). */
typedef struct call {
    history_work *work;
    void *ctx;
    bytes *out;
    err_detail *detail;
    err_code err;
    bool is_over; /* {lock} */
    pthread_mutex_t lock;
    pthread_cond_t over;
} call;

static void run_call(history_store *st, call *c)
{
    c->err = c->work(st, c->ctx, c->out, c->detail);
    pthread_mutex_lock(&c->lock);
    c->is_over = true;
    pthread_cond_signal(&c->over);
    pthread_mutex_unlock(&c->lock);
}

static void run_job(history *h, const history_job *job)
{
    if (job->waits) {
        run_call(h->store, job->ctx);
        return;
    }
    history_reply *r = NULL;
    while (!(r = calloc(1, sizeof *r))) {
        usleep(10000); /* what was asked must be answered: some memory comes free */
    }
    r->ticket = job->ticket;
    r->conn = job->conn;
    r->scope = job->scope;
    r->answer = job->answer;
    r->status = 200;
    r->file.fd = -1;
    bytes_init(&r->body, SIZE_MAX);
    const bool parses = job->verb == HISTORY_SEARCH || job->verb == HISTORY_PUT ||
                        job->verb == HISTORY_IMPORT || job->verb == HISTORY_SHARE;
    const err_code err = (parses ? run_parsed : run_plain)(h->store, r, job, &r->detail);
    r->code = err;
    if (err != ERR_OK) {
        write_error(r, err, &r->detail);
    }
    h->post(h->ctx, r);
}

static void *run_jobs(void *ctx)
{
    history *h = ctx;
    void *message;
    while (mailbox_pop(h->jobs, &message)) {
        history_job *job = message;
        run_job(h, job);
        atomic_fetch_sub(&h->n_bytes, job->body.len);
        history_job_free(job);
    }
    return NULL;
}

/* ---- life ---- */

err_code history_create(history **out, const history_options *opt, void (*post)(void *ctx, history_reply *r),
                        void *ctx, err_detail *d)
{
    *out = NULL;
    history *h = calloc(1, sizeof *h);
    if (!h) {
        return err_set(d, ERR_NOMEM, "no memory for the history");
    }
    h->post = post;
    h->ctx = ctx;
    atomic_init(&h->n_bytes, 0);
    h->jobs = mailbox_create(LIMIT_HISTORY_QUEUE);
    err_code err =
        h->jobs ? history_store_open(&h->store, opt, d) : err_set(d, ERR_NOMEM, "no memory for the history");
    if (err == ERR_OK) {
        h->is_started = pthread_create(&h->thread, NULL, run_jobs, h) == 0;
        err = h->is_started ? ERR_OK : err_set(d, ERR_NOMEM, "no thread for the history");
    }
    if (err != ERR_OK) {
        history_destroy(h);
        return err;
    }
    *out = h;
    return ERR_OK;
}

void history_destroy(history *h)
{
    if (!h) {
        return;
    }
    if (h->jobs) {
        mailbox_close(h->jobs);
    }
    if (h->is_started) {
        pthread_join(h->thread, NULL);
    }
    if (h->jobs) {
        mailbox_destroy(h->jobs, NULL);
    }
    history_store_close(h->store);
    free(h);
}

err_code history_submit(history *h, history_job *job)
{
    /* Only this thread adds, so looking and adding need not be one step. */
    const size_t n_bytes = job->body.len;
    if (atomic_load(&h->n_bytes) + n_bytes > MAX_WAITING_BYTES) {
        return ERR_BUSY;
    }
    atomic_fetch_add(&h->n_bytes, n_bytes);
    if (!mailbox_push(h->jobs, job)) {
        atomic_fetch_sub(&h->n_bytes, n_bytes);
        return ERR_BUSY;
    }
    return ERR_OK;
}

err_code history_call(history *h, history_work *work, void *ctx, bytes *out, err_detail *d)
{
    call c = {.work = work,
              .ctx = ctx,
              .out = out,
              .detail = d,
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .over = PTHREAD_COND_INITIALIZER};
    history_job *job = history_job_create(HISTORY_WORK);
    if (!job) {
        return err_set(d, ERR_NOMEM, "no memory for the history");
    }
    job->waits = true;
    job->ctx = &c;
    if (mailbox_push(h->jobs, job)) {
        pthread_mutex_lock(&c.lock);
        while (!c.is_over) {
            pthread_cond_wait(&c.over, &c.lock);
        }
        pthread_mutex_unlock(&c.lock);
    } else {
        history_job_free(job);
        c.err = err_set_param(d, ERR_BUSY, NULL, "queue_full",
                              "too many requests for the history wait; try again in a moment");
    }
    pthread_cond_destroy(&c.over);
    pthread_mutex_destroy(&c.lock);
    return c.err;
}
