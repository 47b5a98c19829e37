/* The disk cache's thread and folder without an engine: a folder that cannot be written to, that is in use, what strangers may
 * have left there, and a load that is given up while it is under way. */
#define _GNU_SOURCE /* pthread_cond_clockwait */
#include "engine/cache/disk_cache_state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/log.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/said.h"

enum { BLOCK = 64, HIDDEN = 4, OF_VERSION = 8 /* its place in a file */ };

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

ONE_FAILS(int, pthread_create,
          (pthread_t * out, const pthread_attr_t *attributes, void *(*run)(void *), void *arg),
          (out, attributes, run, arg), EAGAIN)
ONE_FAILS(int, fsync, (int fd), (fd), (errno = EIO, -1))

static void wake(void *ctx)
{
    (void)ctx;
}

static err_code open_cache(const char *dir, err_detail *detail)
{
    return disk_cache_open(
        &dc,
        &(disk_cache_options){
            .dir = dir, .budget = 1 << 20, .block_bytes = BLOCK, .hidden_size = HIDDEN, .wake = wake},
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

/* Without another thread, or if what tells owners apart may not stay, there is none, and the folder is free again. */
static void test_calls(const char *dir)
{
    static const char *const CALLS[] = {"fsync", "pthread_create"};
    static const char *const SAID[] = {"cannot be written to: Input/output error",
                                       "the system refused another thread"};
    err_detail d = {0};
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        one_fails(CALLS[i], 1);
        CHECK_INT(open_cache(dir, &d), i ? ERR_NOMEM : ERR_IO);
        CHECK(one_fails_over() && dc == NULL);
        CHECK_HAS(d.text, SAID[i]);
    }
    CHECK_OK(open_cache(dir, &d), d);
    disk_cache_close(dc);
}

/* ---- what is found in a folder ---- */

static int in_folder;

static void put(disk_kind kind, disk_id id, const void *data, size_t n)
{
    const disk_file f = {.kind = kind, .id = id};
    const disk_part part = {(void *)(uintptr_t)data, n};
    err_detail d = {0};
    CHECK_OK(disk_file_write(in_folder, &f, &part, 1, &d), d);
}

/* Lets the file of an id be of another version. */
static void set_version(disk_kind kind, disk_id id, uint32_t version)
{
    char name[DISK_NAME_CHARS];
    disk_file_name(name, kind, &id);
    const int fd = openat(in_folder, name, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && pwrite(fd, &version, sizeof version, OF_VERSION) == sizeof version);
    close(fd);
}

static bool is_there(disk_kind kind, disk_id id)
{
    char name[DISK_NAME_CHARS];
    disk_file_name(name, kind, &id);
    return faccessat(in_folder, name, F_OK, 0) == 0;
}

static const disk_id ENTRY = {{1}}, BLOCKS[2] = {{{2}}, {{3}}};
static const disk_entry_facts FACTS = {
    .n_key = 3, .n_blocks = 1, .hidden_size = HIDDEN, .block_bytes = BLOCK};

/* An entry with the blocks that it says it has, of whose states so many numbers are there. */
static void put_entry(const disk_entry_facts *f, size_t n_own)
{
    static const unsigned char block[BLOCK];
    unsigned char payload[1024] = {0};
    disk_entry_facts as_it_is = *f;
    as_it_is.own_floats = n_own;
    CHECK(disk_entry_payload(&as_it_is) <= sizeof payload);
    memcpy(payload, f, sizeof *f);
    memcpy(payload + sizeof *f, BLOCKS, sizeof BLOCKS);
    for (size_t i = 0; i < ARRAY_LEN(BLOCKS); i++) {
        put(DISK_BLOCK, BLOCKS[i], block, sizeof block);
    }
    put(DISK_ENTRY, ENTRY, payload, disk_entry_payload(&as_it_is));
}

/* Opens the folder and removes what is in it; how many entries it had. said: what is logged of it must be that. */
static uint64_t open_and_clear(const char *dir, const char *said)
{
    char expected[512] = "";
    err_detail d = {0};
    if (*said) {
        snprintf(expected, sizeof expected, "<4>cache removed from %s: %s\n", dir, said);
    }
    said_begin();
    const err_code err = open_cache(dir, &d);
    said_end();
    CHECK_OK(err, d);
    CHECK_STR(said_err, expected);
    const uint64_t n = disk_cache_get_stats(dc).n_entries;
    disk_cache_clear(dc, NULL);
    disk_cache_close(dc);
    return n;
}

/* Entries that make no sense, of which all but one number is right, are damaged. */
static void test_facts(const char *dir)
{
    const struct {
        disk_entry_facts f;
        size_t n_own;
        bool is_good;
    } all[] = {
        {.is_good = true},
        {.f.n_key = 2, .is_good = true},
        {.f.n_key = 1},
        {.f.n_key = 1 + SEQ_PAGE_TOKENS, .is_good = true},
        {.f.n_key = 2 + SEQ_PAGE_TOKENS},
        {.f.n_key = 2 + SEQ_PAGE_TOKENS, .f.n_blocks = 2, .is_good = true},
        {.f.n_blocks = 2},
        {.f.mtp_len = -1},
        {.f.mtp_len = 1, .is_good = true},
        {.f.own_floats = 1},
        {.f.own_floats = 1, .n_own = 1, .is_good = true},
        {.f.own_floats = 1, .n_own = 2},
        {.f.own_floats = UINT64_MAX / sizeof(float) + 2, .n_own = 1}, /* as many bytes, in 64 bits */
    };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        disk_entry_facts f = all[i].f;
        const size_t n_used = all[i].is_good ? (f.n_blocks > 1 ? 2 : 1) : 0;
        char said[128];
        f.n_key = f.n_key ? f.n_key : FACTS.n_key;
        f.n_blocks = f.n_blocks ? f.n_blocks : FACTS.n_blocks;
        f.hidden_size = FACTS.hidden_size;
        f.block_bytes = FACTS.block_bytes;
        put_entry(&f, all[i].n_own);
        snprintf(said, sizeof said, "%zu unfinished files, %d damaged ones, 0 of an older version",
                 2 - n_used, !all[i].is_good);
        CHECK_INT(open_and_clear(dir, n_used == 2 ? "" : said), all[i].is_good);
        CHECK(!is_there(DISK_ENTRY, ENTRY) && !is_there(DISK_BLOCK, BLOCKS[0]));
    }
}

/* A name is as long as one may be and of our version, or there is none; that of a newer one is left alone. */
static void test_names(const char *dir)
{
    static const char SOME[] = "1 unfinished files, 0 damaged ones, 0 of an older version",
                      DAMAGED[] = "1 unfinished files, 1 damaged ones, 0 of an older version";
    char name[PREFIX_GIVEN_MAX + 1];
    memset(name, 'n', sizeof name);
    const struct {
        size_t n;
        uint32_t version;
        const char *said;
        bool stays;
    } all[] = {{PREFIX_GIVEN_MAX, 1, SOME, false},
               {PREFIX_GIVEN_MAX + 1, 1, DAMAGED, false},
               {1, 1, SOME, false},
               {0, 1, DAMAGED, false},
               {1, 0, DAMAGED, false},
               {1, 2, SOME, true}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        put_entry(&FACTS, 0);
        put(DISK_NAME, ENTRY, name, all[i].n);
        set_version(DISK_NAME, ENTRY, all[i].version);
        CHECK_INT(open_and_clear(dir, all[i].said), 1);
        CHECK_INT(is_there(DISK_NAME, ENTRY), all[i].stays);
    }
    set_version(DISK_NAME, ENTRY, 1); /* whose entry is gone */
    CHECK_INT(open_and_clear(dir, "0 unfinished files, 1 damaged ones, 0 of an older version"), 0);
}

/* An entry of an older version alone; one whose block is a folder. */
static void test_others(const char *dir)
{
    char name[DISK_NAME_CHARS];
    put(DISK_ENTRY, ENTRY, "", 0);
    set_version(DISK_ENTRY, ENTRY, 0);
    CHECK_INT(open_and_clear(dir, "0 unfinished files, 0 damaged ones, 1 of an older version"), 0);
    CHECK(!is_there(DISK_ENTRY, ENTRY));
    put_entry(&FACTS, 0);
    disk_file_name(name, DISK_BLOCK, &BLOCKS[0]);
    CHECK_INT(unlinkat(in_folder, name, 0), 0);
    CHECK_INT(mkdirat(in_folder, name, 0700), 0);
    CHECK_INT(open_and_clear(dir, "1 unfinished files, 1 damaged ones, 0 of an older version"), 0);
    CHECK(is_there(DISK_BLOCK, BLOCKS[0]));
    CHECK_INT(unlinkat(in_folder, name, AT_REMOVEDIR), 0);
}

static void test_found(const char *dir)
{
    in_folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(in_folder >= 0);
    log_set_level(LOG_WARN);
    log_set_format(LOG_JOURNAL);
    test_facts(dir);
    test_names(dir);
    test_others(dir);
    log_set_level(LOG_OFF);
    close(in_folder);
}

/* The last token of a prompt is never in a full block: it has no next one. */
static void test_full_blocks(void)
{
    static const size_t tokens[] =
        {0, 1, SEQ_PAGE_TOKENS, SEQ_PAGE_TOKENS + 1, 2 * SEQ_PAGE_TOKENS, 2 * SEQ_PAGE_TOKENS + 1},
                        blocks[] = {0, 0, 0, 1, 1, 2};
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        CHECK_INT(disk_full_blocks(tokens[i]), blocks[i]);
    }
}

int main(void)
{
    char dir[FOLDER_NAME], other[FOLDER_NAME], third[FOLDER_NAME];
    log_set_level(LOG_OFF);
    folder_make(dir);
    folder_make(other);
    folder_make(third);
    test_no_room(dir);
    test_one_at_a_time(dir, other);
    test_calls(third);
    test_found(dir);
    test_full_blocks();
    test_given_up(other);
    CHECK_DONE();
}
