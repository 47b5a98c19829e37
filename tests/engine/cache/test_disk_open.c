/* The disk cache's thread and folder without an engine: a folder that cannot be written to, that is in use, and a load that is
 * given up while it is under way. */
#define _GNU_SOURCE /* pthread_cond_clockwait */
#include "engine/cache/disk_cache_state.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/log.h"
#include "tests/check.h"
#include "tests/folder.h"

static disk_cache *dc;
static disk_load *_Atomic pending; /* LOAD_UNDER_WAY until somebody has waited for its end twice */
static int n_waits;

/* Stands in front of that of the C library. Who waits for the end of the load is woken once too early. */
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    if (!pending || condition != &dc->ended) {
        const struct timespec never = {.tv_sec = INT32_MAX};
        return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &never);
    }
    CHECK_INT(pthread_mutex_trylock(lock), EBUSY); /* it is held */
    disk_load *l = pending;
    l->state = ++n_waits == 1 ? LOAD_UNDER_WAY : LOAD_FAILED;
    return 0;
}

static void wake(void *ctx)
{
    (void)ctx;
}

static err_code open_cache(const char *dir, err_detail *detail)
{
    return disk_cache_open(&dc,
                           &(disk_cache_options){.dir = dir,
                                                 .budget = 1 << 20,
                                                 .block_bytes = 64,
                                                 .hidden_size = 4,
                                                 .max_tokens = 100,
                                                 .wake = wake},
                           detail);
}

/* Its memory is freed when the cache's thread is done with it, not before. */
static void test_given_up(const char *dir)
{
    err_detail d = {0};
    CHECK_OK(open_cache(dir, &d), d);
    disk_load_free(dc, NULL);
    for (int i = 0; i < 2; i++) { /* the second one has ended already */
        disk_load *l = calloc(1, sizeof *l);
        l->key = malloc(sizeof *l->key);
        l->hidden = malloc(sizeof *l->hidden);
        l->state = i ? LOAD_DONE : LOAD_UNDER_WAY;
        pending = l;
        disk_load_free(dc, l);
        CHECK_INT(n_waits, 2);
    }
    pending = NULL;
    CHECK_INT(pthread_mutex_trylock(&dc->lock), 0);
    pthread_mutex_unlock(&dc->lock);
    disk_cache_close(dc);
}

/* A disk that is full. */
static void test_no_room(const char *dir)
{
    struct rlimit was;
    err_detail d = {0};
    CHECK_INT(getrlimit(RLIMIT_FSIZE, &was), 0);
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 0, .rlim_max = was.rlim_max}), 0);
    const err_code err = open_cache(dir, &d);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &was), 0);
    CHECK_INT(err, ERR_IO);
    CHECK(dc == NULL);
    CHECK(strstr(d.text, "cannot be written to: ") != NULL && strstr(d.text, dir) != NULL);
    disk_cache_close(dc);
    CHECK_OK(open_cache(dir, &d), d);
    disk_cache_close(dc);
}

/* A folder has one cache at a time, and a salt of its own, which stays. */
static void test_one_at_a_time(const char *dir, const char *elsewhere)
{
    static const unsigned char none[HASH_BYTES / 2];
    err_detail d = {0};
    CHECK_OK(open_cache(dir, &d), d);
    disk_cache *first = dc;
    const disk_id salt = first->salt;
    CHECK(memcmp(salt.bytes, none, sizeof none) != 0);
    CHECK(memcmp(salt.bytes + sizeof none, none, sizeof none) != 0);
    CHECK_INT(open_cache(dir, &d), ERR_BUSY);
    CHECK(strstr(d.text, "another server uses the folder ") != NULL && strstr(d.text, dir) != NULL);
    CHECK_OK(open_cache(elsewhere, &d), d);
    CHECK(!disk_is_same(&dc->salt, &salt));
    disk_cache_close(dc);
    disk_cache_close(first);
    CHECK_OK(open_cache(dir, &d), d);
    CHECK(disk_is_same(&dc->salt, &salt));
    disk_cache_close(dc);
}

int main(void)
{
    char dir[FOLDER_NAME], other[FOLDER_NAME];
    log_set_level(LOG_OFF);
    folder_make(dir);
    folder_make(other);
    test_no_room(dir);
    test_one_at_a_time(dir, other);
    test_given_up(other);
    CHECK_DONE();
}
