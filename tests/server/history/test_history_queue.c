/* history: its queue takes so many jobs and so many bytes, and not more; what was done makes room. */
#include "server/history/history.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "tests/alloc_fail.h"
#include "tests/one_fails.h"
#include "tests/server/history/store.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static err_code wait_at_gate(history_store *st, void *ctx, bytes *reply, err_detail *d)
{
    (void)st, (void)ctx, (void)d;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    bytes_append_str(reply, "there");
    return ERR_OK;
}

static void on_reply(void *ctx, history_reply *r)
{
    (void)ctx;
    history_reply_free(r);
}

/* One that does nothing, whose body would have so many bytes. */
static history_job *job_with(size_t n_bytes)
{
    history_job *job = history_job_create(HISTORY_WORK);
    CHECK(job != NULL);
    job->work = wait_at_gate;
    job->body.len = n_bytes;
    return job;
}

/* So many jobs wait and so many bytes, and not more; what was done makes room. */
static void test_queue(void)
{
    enum { WAITING = 256 << 20 };
    history *h = NULL;
    err_detail d = {0};
    CHECK_OK(
        history_create(&h, &(history_options){.dir = folder("queue"), .quota = QUOTA}, on_reply, NULL, &d),
        d);
    for (int round = 0; round < 3 && h; round++) {
        const bool has_room = round == 1; /* of bytes, where there is none for jobs */
        bytes out = bytes_empty(100);
        pthread_mutex_lock(&gate);
        CHECK_INT(history_submit(h, job_with(0)), ERR_OK);
        history_job *half = job_with(WAITING / 2), *rest = job_with(has_room ? 0 : WAITING / 2),
                    *more = job_with(has_room ? WAITING : 1);
        CHECK_INT(history_submit(h, half), ERR_OK);
        CHECK_INT(history_submit(h, rest), ERR_OK);
        CHECK_INT(history_submit(h, more), ERR_BUSY);
        history_job_free(more); /* which stayed ours */
        int n = 0;
        history_job *job = NULL;
        while (n < 1000 && history_submit(h, job = job_with(0)) == ERR_OK) {
            n++;
        }
        history_job_free(job);
        CHECK(n >= LIMIT_HISTORY_QUEUE - 3 && n <= LIMIT_HISTORY_QUEUE);
        for (int i = 0; i < 3; i++) { /* what finds no place does not count */
            more = job_with(has_room ? WAITING / 2 : 0);
            CHECK_INT(history_submit(h, more), ERR_BUSY);
            history_job_free(more);
        }
        pthread_mutex_unlock(&gate);
        err_code err;
        while ((err = history_call(h, wait_at_gate, NULL, &out, &d)) == ERR_BUSY) {
            usleep(1000);
        }
        CHECK_OK(err, d);
        CHECK_STR(bytes_str(&out), "there");
        bytes_deinit(&out);
    }
    history_destroy(h);
}

static err_code open_once(void *name)
{
    history *h = NULL;
    err_detail d = {0};
    const err_code err =
        history_create(&h, &(history_options){.dir = folder(name), .quota = QUOTA}, on_reply, NULL, &d);
    CHECK((err == ERR_OK) == (h != NULL) && (err == ERR_OK) == (d.text[0] == '\0'));
    history_destroy(h);
    return err;
}

ONE_FAILS(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*run)(void *), void *ctx),
          (t, a, run, ctx), EAGAIN)

static void test_no_thread(void)
{
    history *h = NULL;
    err_detail d = {0};
    one_fails("pthread_create", 1);
    CHECK_INT(
        history_create(&h, &(history_options){.dir = folder("none"), .quota = QUOTA}, on_reply, NULL, &d),
        ERR_NOMEM);
    CHECK(one_fails_over() && !h);
    CHECK_STR(d.text, "no thread for the history");
}

static void test_short_memory(void)
{
    static char name[] = "short";
    history *h = NULL;
    err_detail d = {0};
    bytes out = bytes_empty(100);
    CHECK(alloc_fail_each(open_once, name, 1000) > 3);
    CHECK_OK(history_create(&h, &(history_options){.dir = folder(name), .quota = QUOTA}, on_reply, NULL, &d),
             d);
    alloc_fail_at(1);
    const err_code err = history_call(h, wait_at_gate, NULL, &out, &d);
    alloc_fail_at(0);
    CHECK_INT(err, ERR_NOMEM);
    CHECK_STR(d.text, "no memory for the history");
    CHECK_OK(history_call(h, wait_at_gate, NULL, &out, &(err_detail){0}), d);
    bytes_deinit(&out);
    history_destroy(h);
}

int main(void)
{
    log_set_level(LOG_OFF);
    folder_make(root);
    test_queue();
    test_no_thread();
    test_short_memory();
    CHECK_DONE();
}
