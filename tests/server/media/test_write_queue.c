/* The writer thread: order, hashes, what waits and is reserved, sinks that are dropped, faults. The
 * thread stands in `wake` while the gate is shut, so that nothing depends on its speed. */
#include "server/media/write_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/recorded.h"

#define EIO_OF(value) (errno = EIO, value)

ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)
ONE_FAILS(void *, malloc, (size_t n), (n), NULL)
ONE_FAILS(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n), EIO_OF(-1))
ONE_FAILS(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*run)(void *), void *ctx),
          (t, a, run, ctx), EAGAIN)

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    return one_fails_now("open") ? EIO_OF(-1) : __real_open(path, flags, mode);
}

int __real_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...);
int __wrap_fcntl(int fd, int what, ...)
{
    va_list args;
    va_start(args, what);
    const int value = va_arg(args, int);
    va_end(args);
    return one_fails_now("fcntl") ? EIO_OF(-1) : __real_fcntl(fd, what, value);
}

/* What comes of reading, in turn: at most so many bytes, or errno below 0; 0: as it is. */
static const int *reads;

ssize_t __real_pread(int fd, void *out, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *out, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *out, size_t n, off_t at)
{
    const int most = reads && *reads ? *reads++ : 0;
    if (most < 0) {
        errno = -most;
        return -1;
    }
    return __real_pread(fd, out, most && n > (size_t)most ? (size_t)most : n, at);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_shut;   /* {lock} */
static size_t n_wakes; /* {lock} */

static void on_wake(void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&lock);
    n_wakes++;
    pthread_cond_broadcast(&changed);
    while (is_shut) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void shut(bool value)
{
    pthread_mutex_lock(&lock);
    is_shut = value;
    n_wakes = 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_for_wakes(size_t n)
{
    pthread_mutex_lock(&lock);
    while (n_wakes < n) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void wait_until_idle(file_sink *f)
{
    pthread_mutex_lock(&lock);
    while (file_sink_poll(f), !file_sink_is_idle(f)) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static bool has_hash(file_writer *w, const void *data, size_t n)
{
    uint8_t got[HASH_BYTES], wanted[HASH_BYTES];
    hash_stream *h = hash_stream_create();
    CHECK(h != NULL);
    hash_stream_add(h, data, n);
    hash_stream_end(h, wanted);
    hash_stream_destroy(h);
    const uint64_t n_bytes = file_writer_bytes(w);
    close(file_writer_finish(w, got));
    return n_bytes == n && memcmp(got, wanted, HASH_BYTES) == 0;
}

static void test_order(write_queue *q)
{
    enum { PIECES = 200, PIECE = 1000 };
    static char text[PIECES * PIECE];
    err_detail d = {0};
    file_sink *f, *other;
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)(i * 31 + i / 977);
    }
    CHECK_OK(file_sink_open(&f, q, "/tmp", sizeof text, 0, &d), d);
    CHECK_OK(file_sink_open(&other, q, "/tmp", sizeof text, 0, &d), d);
    for (size_t i = 0; i < PIECES; i++) {
        if (i + 1 < PIECES) {
            CHECK_OK(file_sink_add(other, text, 1, &d), d);
        } else {
            file_sink_drop(other);
        }
        CHECK_OK(file_sink_add(f, text + i * PIECE, PIECE, &d), d);
    }
    CHECK_INT(file_sink_queued(f), sizeof text);
    CHECK_INT(file_sink_add(f, text, 1, &d), ERR_LIMIT);
    CHECK_STR(d.name, "upload_too_large");
    wait_until_idle(f);
    CHECK_INT(file_sink_written(f), sizeof text);
    CHECK(has_hash(file_sink_take(f), text, sizeof text));
}

/* What waits is what is reserved, and what a client may be told is what is written. */
static void test_waiting(write_queue *q, ledger *memory)
{
    static const char piece[1000];
    err_detail d = {0};
    file_sink *f, *other;
    CHECK_OK(file_sink_open(&f, q, "/tmp", 1 << 20, 0, &d), d);
    shut(true);
    CHECK_OK(file_sink_add(f, piece, sizeof piece, &d), d);
    wait_for_wakes(1);
    CHECK(write_queue_has_news(q));
    CHECK(file_sink_poll(f));
    CHECK_INT(file_sink_written(f), sizeof piece);
    CHECK(!write_queue_is_busy(q));
    for (int i = 0; i < 10; i++) {
        CHECK_OK(file_sink_add(f, piece, sizeof piece, &d), d);
    }
    CHECK(!file_sink_poll(f));
    CHECK_INT(file_sink_written(f), sizeof piece);
    CHECK(!file_sink_is_idle(f));
    CHECK(write_queue_is_busy(q));
    CHECK(file_sink_waiting(f) >= 10 * sizeof piece);
    CHECK_INT(ledger_get_status(memory).used, file_sink_waiting(f));

    /* Who has reserved before goes on when the memory is used up; nobody else does. */
    CHECK_OK(file_sink_open(&other, q, "/tmp", 1 << 20, 8192, &d), d);
    ledger_set_limit(memory, ledger_get_status(memory).used);
    const uint64_t queued = file_sink_queued(f);
    CHECK_INT(file_sink_add(f, piece, sizeof piece, &d), ERR_BUSY);
    CHECK_STR(d.name, "memory_busy");
    CHECK_INT(file_sink_queued(f), queued);
    CHECK_OK(file_sink_add(other, piece, sizeof piece, &d), d);
    file_sink *none;
    CHECK_INT(file_sink_open(&none, q, "/tmp", 1 << 20, 8192, &d), ERR_BUSY);
    CHECK(none == NULL);
    ledger_set_limit(memory, 1 << 20);
    file_sink_drop(other); /* with a piece on its way */
    shut(false);
    wait_until_idle(f);
    CHECK_INT(file_sink_written(f), 11 * sizeof piece);
    CHECK(!write_queue_is_busy(q));
    file_writer_destroy(file_sink_take(f));
}

/* What a sink holds: what it has reserved, or more while more waits, and not any more than that. */
static void test_reserved(write_queue *q, ledger *memory)
{
    enum { RESERVED = 5000, PIECES = 10 };
    static const char piece[1000];
    err_detail d = {0};
    file_sink *f, *small;
    const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; ledger_get_status(memory).used > 0 && i < 10000; i++) { /* of a sink that was dropped */
        usleep(1000);
    }
    CHECK_OK(file_sink_open(&small, q, "/tmp", 100, RESERVED, &d), d);
    CHECK_INT(ledger_get_status(memory).used, 100); /* no more than the file may have */
    CHECK_OK(file_sink_open(&f, q, "/tmp", 1 << 20, RESERVED, &d), d);
    CHECK_INT(ledger_get_status(memory).used, 100 + RESERVED);
    shut(true);
    CHECK_OK(file_sink_copy(small, empty, 0, 0, &d), d);
    const size_t job = file_sink_waiting(small); /* of a copy nothing but that is in memory */
    wait_for_wakes(1);                           /* the writer stands still now */
    for (int i = 0; i < PIECES; i++) {
        CHECK_OK(file_sink_add(f, piece, sizeof piece, &d), d);
        const size_t waiting = (size_t)(i + 1) * (sizeof piece + job);
        CHECK_INT(file_sink_waiting(f), waiting);
        CHECK_INT(ledger_get_status(memory).used, 100 + (waiting > RESERVED ? waiting : RESERVED));
    }
    const size_t used = ledger_get_status(memory).used;
    one_fails("malloc", 1);
    CHECK_INT(file_sink_add(f, piece, sizeof piece, &d), ERR_NOMEM);
    CHECK(one_fails_over());
    CHECK_INT(ledger_get_status(memory).used, used);
    one_fails("fcntl", 1);
    CHECK_INT(file_sink_copy(f, empty, 0, 1, &d), ERR_IO);
    CHECK(one_fails_over());
    CHECK_INT(ledger_get_status(memory).used, used);
    CHECK_INT(file_sink_queued(f), PIECES * sizeof piece);
    shut(false);
    wait_until_idle(f);
    wait_until_idle(small);
    CHECK_INT(ledger_get_status(memory).used, 100 + RESERVED);
    CHECK(!write_queue_is_busy(q));
    file_writer_destroy(file_sink_take(f));
    file_writer_destroy(file_sink_take(small));
    close(empty);
    CHECK_INT(ledger_get_status(memory).used, 0);
}

static void test_copy(write_queue *q)
{
    static const char text[] = "one part and another";
    err_detail d = {0};
    file_writer *w;
    file_sink *f;
    uint8_t hash[HASH_BYTES];
    CHECK_OK(file_writer_create(&w, "/tmp", sizeof text, &d), d);
    CHECK_OK(file_writer_add(w, text, sizeof text, &d), d);
    const int fd = file_writer_finish(w, hash);
    CHECK_OK(file_sink_open(&f, q, "/tmp", sizeof text, 0, &d), d);
    CHECK_OK(file_sink_copy(f, fd, 0, 5, &d), d);
    CHECK_OK(file_sink_copy(f, fd, 5, 0, &d), d);
    CHECK_OK(file_sink_copy(f, fd, 5, sizeof text - 5, &d), d);
    close(fd); /* before it is read, perhaps */
    wait_until_idle(f);
    CHECK_OK(file_sink_error(f, &d), d);
    CHECK(has_hash(file_sink_take(f), text, sizeof text));
}

/* A file is read to its end, however little comes at once. */
static void test_read_at(void)
{
    static const struct {
        size_t n, at;
        int reads[6], n_read;
        const char *text;
    } ROWS[] = {
        {10, 0, {0}, 10, "0123456789"},
        {4, 3, {0}, 4, "3456"},
        {8, 1, {3, 1, 4}, 8, "12345678"},
        {8, 5, {3, 1}, 5, "56789"},
        {1, 10, {0}, 0, ""},
        {0, 0, {-EIO}, 0, ""},
        {6, 2, {-EINTR, 2, -EINTR}, 6, "234567"},
        {6, 2, {2, -EIO}, -1, ""},
        {6, 2, {-EAGAIN}, -1, ""},
    };
    err_detail d = {0};
    file_writer *w;
    uint8_t hash[HASH_BYTES];
    CHECK_OK(file_writer_create(&w, "/tmp", 10, &d), d);
    CHECK_OK(file_writer_add(w, "0123456789", 10, &d), d);
    const int fd = file_writer_finish(w, hash);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char text[16] = "";
        reads = ROWS[i].reads;
        CHECK_INT(file_read_at(fd, text, ROWS[i].n, ROWS[i].at), ROWS[i].n_read);
        reads = NULL;
        if (ROWS[i].n_read >= 0) {
            CHECK_STR(text, ROWS[i].text);
        }
    }
    close(fd);
}

/* The first bytes of a file, from which its kind is told, whatever pieces it comes in. */
static void test_head(void)
{
    enum { HEAD = 512, ALL = 1200 };
    static const size_t PIECES[] = {1, 511, 512, 513, 1200};
    static uint8_t text[ALL];
    err_detail d = {0};
    for (size_t i = 0; i < ALL; i++) {
        text[i] = (uint8_t)(i * 7 + i / 256);
    }
    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++) {
        file_writer *w;
        size_t n = 0;
        CHECK_OK(file_writer_create(&w, "/tmp", ALL, &d), d);
        for (size_t at = 0; at < ALL; at += PIECES[i]) {
            const size_t step = ALL - at < PIECES[i] ? ALL - at : PIECES[i];
            CHECK_OK(file_writer_add(w, text + at, 0, &d), d);
            CHECK_OK(file_writer_add(w, text + at, step, &d), d);
            CHECK_INT(file_writer_bytes(w), at + step);
            CHECK(memcmp(file_writer_head(w, &n), text, at + step < HEAD ? at + step : HEAD) == 0);
            CHECK_INT(n, at + step < HEAD ? at + step : HEAD);
        }
        CHECK_INT(file_writer_add(w, text, 1, &d), ERR_LIMIT);
        CHECK_INT(file_writer_bytes(w), ALL);
        CHECK(has_hash(w, text, ALL));
    }
}

/* A fault stays, and what follows it is not written. */
static void test_fault(write_queue *q)
{
    err_detail d = {0};
    file_sink *f;
    const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_OK(file_sink_open(&f, q, "/tmp", 100, 0, &d), d);
    CHECK_OK(file_sink_add(f, "abc", 3, &d), d);
    CHECK_OK(file_sink_copy(f, empty, 0, 10, &d), d);
    close(empty);
    wait_until_idle(f);
    CHECK_INT(file_sink_error(f, &d), ERR_IO);
    CHECK_STR(d.name, "upload_storage_failed");
    CHECK_INT(file_sink_written(f), 3);
    d = (err_detail){0};
    CHECK_INT(file_sink_add(f, "d", 1, &d), ERR_IO);
    CHECK_STR(d.name, "upload_storage_failed");
    file_sink_drop(f);
    CHECK_INT(file_sink_open(&f, q, "/nowhere", 100, 0, &d), ERR_IO);
    CHECK(f == NULL);
}

/* ---- what fails ---- */

/* An upload, a part of which is another file; how far it came, and what was said. */
static void upload(bytes *said, ledger *memory)
{
    write_queue *q = write_queue_create(memory, on_wake, NULL);
    file_writer *w = NULL;
    file_sink *f = NULL;
    uint8_t hash[HASH_BYTES];
    err_detail d = {0};
    const char *step = "queue";
    int fd = -1;
    err_code err = q ? ERR_OK : ERR_NOMEM;
    if (!err) {
        step = "writer";
        err = file_writer_create(&w, "/tmp", 10, &d);
    }
    if (!err) {
        step = "add";
        err = file_writer_add(w, "0123456789", 10, &d);
    }
    if (!err) {
        fd = file_writer_finish(w, hash);
        step = "open";
        err = file_sink_open(&f, q, "/tmp", 13, 5, &d);
    } else {
        file_writer_destroy(w);
    }
    if (!err) {
        step = "queue bytes";
        err = file_sink_add(f, "abc", 3, &d);
    }
    if (!err) {
        step = "queue a copy";
        err = file_sink_copy(f, fd, 0, 10, &d);
    }
    if (!err) {
        step = "all";
        wait_until_idle(f);
        err = file_sink_error(f, &d);
    }
    bytes_printf(said, "%s: %s", step, err_name(err));
    if (err) {
        bytes_printf(said, " %s: %s", d.name, d.text);
    }
    if (f) {
        bytes_printf(said, ", %llu queued", (unsigned long long)file_sink_queued(f));
    }
    file_sink_drop(f);
    write_queue_end(q);
    write_queue_destroy(q);
    if (fd >= 0) {
        close(fd);
    }
    CHECK_INT(ledger_get_status(memory).used, 0);
}

static void test_failures(ledger *memory)
{
    static const char *const CALLS[] = {"calloc", "malloc", "open",          "fcntl",
                                        "write",  "unlink", "pthread_create"};
    bytes all = bytes_empty(1 << 16), said = bytes_empty(1 << 12);
    int n_calls[sizeof CALLS / sizeof *CALLS];
    bytes_append_str(&said, "keeps memory"); /* so that what is said takes none */
    bytes_clear(&said);
    one_fails(NULL, 0);
    upload(&said, memory);
    (void)one_fails_over();
    bytes_printf(&all, "nothing fails: %s\n", bytes_str(&said));
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
        n_calls[i] = one_fails_counted(CALLS[i]);
    }
    for (size_t i = 0; i < sizeof CALLS / sizeof *CALLS; i++) {
        for (int n = 1; n <= n_calls[i]; n++) {
            bytes_clear(&said);
            one_fails(CALLS[i], n);
            upload(&said, memory);
            CHECK(one_fails_over());
            one_fails_say(&all, CALLS[i], n, bytes_str(&said));
        }
    }
    one_fails_say(&all, NULL, 0, NULL);
    recorded_check("server/media/write_queue.txt", bytes_str(&all));
    bytes_deinit(&all);
    bytes_deinit(&said);
}

int main(void)
{
    err_detail d = {0};
    file_sink *left, *dropped;
    log_set_level(LOG_OFF);
    ledger *memory = ledger_create(1 << 20);
    write_queue *q = write_queue_create(memory, on_wake, NULL);
    CHECK(q != NULL);
    test_order(q);
    test_waiting(q, memory);
    test_reserved(q, memory);
    test_read_at();
    test_head();
    test_copy(q);
    test_fault(q);
    CHECK_OK(file_sink_open(&left, q, "/tmp", 100, 50, &d), d);
    CHECK_OK(file_sink_open(&dropped, q, "/tmp", 100, 50, &d), d);
    CHECK_OK(file_sink_add(left, "abc", 3, &d), d);
    file_sink_drop(dropped);
    write_queue_end(q);
    file_sink_drop(left);
    write_queue_destroy(q);
    CHECK_INT(ledger_get_status(memory).used, 0);
    test_failures(memory);
    ledger_destroy(memory);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
