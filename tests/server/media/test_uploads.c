/* uploads: by chunks and by parts, what is refused, what is set aside of the quota meanwhile, what is forgotten. */
#include "server/media/uploads.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ledger.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"
#include "tests/folder.h"
#include "tests/open_files.h"

enum { SCOPE = 7, MOST = 1000, QUOTA = 3000, EXPIRE_S = 60 };

static char folder[FOLDER_NAME];
static file_store *files;
static write_queue *writes;
static uploads us;

static void nothing(void *ctx)
{
    (void)ctx;
}

static void begin_test(void)
{
    files = file_store_create(
        &(file_store_options){.dir = folder, .max_bytes = MOST, .quota = QUOTA, .expire_s = EXPIRE_S});
    writes = write_queue_create(NULL, nothing, NULL);
    CHECK(files && writes);
    uploads_init(&us, files, writes);
}

static void end_test(void)
{
    uploads_deinit(&us);
    CHECK_INT(us.n, 0);
    write_queue_end(writes);
    write_queue_destroy(writes);
    file_store_destroy(files);
}

/* Bytes of all that is stored or set aside. */
static uint64_t used(void)
{
    uint64_t n_bytes;
    size_t n_files;
    file_store_usage(files, &n_bytes, &n_files);
    return n_bytes;
}

static const file_facts FACTS = {.scope = SCOPE, .name = "a.txt"}, OTHERS = {.scope = SCOPE + 1};

static upload *begin(const file_facts *facts, uint64_t n, upload_kind kind)
{
    upload *up = NULL;
    err_detail d = {0};
    CHECK_OK(uploads_begin(&us, &up, facts, n, kind, &d), d);
    if (!up) {
        exit(1);
    }
    return up;
}

static void settle(file_sink *f)
{
    while (file_sink_poll(f), !file_sink_is_idle(f)) {
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

/* Goes on to the end; "" or the name of the error. */
static const char *finish(upload *up)
{
    static err_detail d;
    bool done = false;
    err_code err = ERR_OK;
    d = (err_detail){0};
    while (!done && err == ERR_OK) {
        settle(up->sink);
        err = uploads_step(&us, up, &done, &d);
    }
    CHECK_INT(done, err == ERR_OK);
    return err == ERR_OK ? "" : d.name;
}

static void check_file(const char *id, const char *text)
{
    file_handle h = {.fd = -1};
    err_detail d = {0};
    char got[MOST + 1] = "";
    CHECK_OK(file_store_open(files, SCOPE, id, &h, &d), d);
    CHECK(pread(h.fd, got, sizeof got - 1, 0) == (ssize_t)strlen(text));
    CHECK_STR(got, text);
    close(h.fd);
}

static void test_chunks(void)
{
    begin_test();
    err_detail d = {0};
    upload *up = begin(&FACTS, 10, UPLOAD_BY_CHUNKS), *other = begin(&OTHERS, 10, UPLOAD_BY_CHUNKS);
    CHECK(up->handle != other->handle && up->handle != 0);
    CHECK(strncmp(up->id, "upload_", 7) == 0);
    CHECK_INT(up->status, UPLOAD_PENDING);
    CHECK_INT(used(), 20);
    CHECK(llabs(up->created_at - clock_unix_s()) <= 60);
    up->expires_at = 0;
    CHECK(uploads_find(&us, SCOPE, up->id) == up);
    CHECK(llabs(up->expires_at - clock_unix_s() - EXPIRE_S) <= 30); /* what is used stays */
    CHECK(uploads_find_handle(&us, SCOPE, up->handle) == up);
    CHECK(!uploads_find(&us, SCOPE + 1, up->id));
    CHECK(!uploads_find_handle(&us, SCOPE + 1, up->handle));
    CHECK(!uploads_find(&us, SCOPE, other->id) && !uploads_find(&us, SCOPE, "upload_x"));

    CHECK_OK(upload_chunk(up, 0, "0123", 4, &d), d);
    CHECK_INT(upload_chunk(up, 5, "5", 1, &d), ERR_INVALID);
    CHECK_STR(d.name, "upload_offset_mismatch");
    CHECK_STR(d.text, "the next byte expected is number 4, not 5");
    CHECK_OK(upload_chunk(up, 0, "xxxx", 4, &d), d); /* it is here already */
    CHECK_OK(upload_chunk(up, 2, "xx45", 4, &d), d);
    CHECK_INT(up->received, 6);
    CHECK_INT(uploads_finish(up, &d), ERR_INVALID);
    CHECK_STR(d.name, "upload_incomplete");
    CHECK_STR(d.text, "6 of 10 bytes have arrived");
    CHECK_OK(upload_chunk(up, 6, "6789", 4, &d), d);
    CHECK_INT(upload_chunk(up, 10, "x", 1, &d), ERR_LIMIT);
    CHECK_STR(d.name, "upload_too_large");
    settle(up->sink);
    CHECK_INT(upload_written(up), 10);
    CHECK_OK(uploads_finish(up, &d), d);
    CHECK_INT(up->status, UPLOAD_ENDING);
    CHECK_OK(upload_chunk(up, 50, "late", 4, &d), d); /* and changes nothing */
    CHECK_STR(finish(up), "");
    CHECK_INT(up->status, UPLOAD_COMPLETED);
    CHECK_STR(up->file.facts.name, "a.txt");
    check_file(up->file.id, "0123456789");
    CHECK_INT(used(), 20);
    CHECK_INT(upload_written(up), 10);
    CHECK_INT(up->reserved, 0);
    CHECK(uploads_find(&us, SCOPE, up->id) == up); /* who lost the last reply may ask again */
    uploads_drop(&us, up);
    CHECK_INT(us.n, 1);
    CHECK(us.list[0] == other);
    CHECK_INT(used(), 20);
    uploads_drop(&us, other);
    CHECK_INT(used(), 10);
    end_test();
}

/* Whose hash is another than was said is not kept. */
static void test_hash(void)
{
    begin_test();
    for (int right = 0; right <= 1; right++) {
        err_detail d = {0};
        upload *up = begin(&FACTS, 3, UPLOAD_BY_CHUNKS);
        up->has_hash = true;
        if (right) {
            hash_stream *h = hash_stream_create();
            hash_stream_add(h, "abc", 3);
            hash_stream_end(h, up->hash);
            hash_stream_destroy(h);
        }
        CHECK_OK(upload_chunk(up, 0, "abc", 3, &d), d);
        CHECK_OK(uploads_finish(up, &d), d);
        CHECK_STR(finish(up), right ? "" : "upload_hash_mismatch");
        CHECK_INT(used(), right ? 3 : 0);
        CHECK_INT(up->status, right ? UPLOAD_COMPLETED : UPLOAD_PENDING);
        uploads_drop(&us, up);
    }
    end_test();
}

static const upload_part *add_part(upload *up, const char *text)
{
    file_sink *f = NULL;
    const upload_part *part = NULL;
    err_detail d = {0};
    CHECK_OK(upload_part_begin(&us, up, &f, &d), d);
    CHECK_OK(upload_part_add(up, f, text, strlen(text), &d), d);
    settle(f);
    CHECK_OK(upload_part_end(up, f, &part, &d), d);
    CHECK(part && strncmp(part->id, "part_", 5) == 0 && part->bytes == strlen(text));
    return part;
}

static void test_parts(void)
{
    begin_test();
    err_detail d = {0};
    file_sink *f = NULL;
    const upload_part *part = NULL;
    upload *up = begin(&FACTS, 6, UPLOAD_BY_PARTS);
    char ids[3][FILE_ID_MAX];
    snprintf(ids[0], FILE_ID_MAX, "%s", add_part(up, "cd")->id);
    CHECK_OK(upload_part_begin(&us, up, &f, &d), d); /* one that is given up */
    CHECK_OK(upload_part_add(up, f, "xyz", 3, &d), d);
    CHECK_INT(up->received, 5);
    CHECK_INT(upload_part_add(up, f, "xy", 2, &d), ERR_LIMIT);
    CHECK_STR(d.name, "upload_too_large");
    CHECK_STR(d.text, "the parts hold more than the 6 bytes announced");
    CHECK_INT(up->received, 5);
    upload_part_abort(up, f);
    CHECK_INT(up->received, 2);
    upload_part_abort(up, NULL);
    snprintf(ids[1], FILE_ID_MAX, "%s", add_part(up, "ab")->id);
    snprintf(ids[2], FILE_ID_MAX, "%s", add_part(up, "ef")->id);
    CHECK_INT(up->received, 6);
    CHECK_INT(uploads_finish(up, &d), ERR_INVALID); /* which is for chunks */
    CHECK_INT(used(), 6);

    const char *const odd[] = {ids[0], "part_x"}, *const few[] = {ids[0], ids[1]};
    const char *const order[] = {ids[1], ids[0], ids[2]};
    CHECK_INT(uploads_assemble(&us, up, odd, 2, &d), ERR_INVALID);
    CHECK_STR(d.name, "upload_part_not_found");
    CHECK_STR(d.text, "part_ids[1] is not part of this upload");
    CHECK_INT(uploads_assemble(&us, up, few, 2, &d), ERR_INVALID);
    CHECK_STR(d.name, "upload_incomplete");
    CHECK_STR(d.text, "these parts hold 4 bytes; 6 were announced");
    CHECK_INT(up->status, UPLOAD_PENDING);
    CHECK_INT(used(), 6);
    CHECK_OK(upload_part_begin(&us, up, &f, &d), d); /* one that ends too late */
    CHECK_OK(uploads_assemble(&us, up, order, 3, &d), d);
    CHECK_INT(up->status, UPLOAD_ENDING);
    CHECK_INT(used(), 12);
    CHECK_INT(uploads_assemble(&us, up, order, 3, &d), ERR_INVALID);
    CHECK_STR(d.name, "upload_not_pending");
    CHECK_INT(upload_part_end(up, f, &part, &d), ERR_INVALID);
    CHECK_STR(d.name, "upload_not_pending");
    CHECK_INT(upload_part_begin(&us, up, &f, &d), ERR_INVALID);
    CHECK(f == NULL);
    CHECK_STR(finish(up), "");
    check_file(up->file.id, "abcdef");
    CHECK_INT(used(), 6);
    CHECK_INT(up->n_parts, 0);

    upload *chunks = begin(&FACTS, 1, UPLOAD_BY_CHUNKS);
    CHECK_INT(upload_part_begin(&us, chunks, &f, &d), ERR_INVALID);
    CHECK_INT(uploads_assemble(&us, chunks, order, 0, &d), ERR_INVALID);
    /* The same part may stand in the order twice; a copy that has no room leaves the parts as they are. */
    upload *twice = begin(&FACTS, 4, UPLOAD_BY_PARTS);
    const char *id = add_part(twice, "ab")->id;
    const char *const same[] = {id, id};
    CHECK_OK(uploads_assemble(&us, twice, same, 2, &d), d);
    CHECK_STR(finish(twice), "");
    check_file(twice->file.id, "abab");
    upload *big = begin(&FACTS, MOST, UPLOAD_BY_PARTS), *more = begin(&FACTS, MOST, UPLOAD_BY_PARTS);
    char text[MOST + 1];
    memset(text, 'x', MOST);
    text[MOST] = '\0';
    const char *const whole[] = {add_part(big, text)->id};
    CHECK_INT(uploads_assemble(&us, big, whole, 1, &d), ERR_LIMIT);
    CHECK_STR(d.name, "upload_quota_exceeded");
    CHECK_INT(big->status, UPLOAD_PENDING);
    uploads_drop(&us, more);
    CHECK_OK(uploads_assemble(&us, big, whole, 1, &d), d);
    CHECK_STR(finish(big), "");
    check_file(big->file.id, text);
    end_test();
}

/* One file is no larger, all are no more, and there are no more of them than may be. */
static void test_bounds(void)
{
    begin_test();
    err_detail d = {0};
    upload *up = NULL;
    CHECK_INT(uploads_begin(&us, &up, &FACTS, MOST + 1, UPLOAD_BY_CHUNKS, &d), ERR_LIMIT);
    CHECK_STR(d.name, "upload_too_large");
    CHECK(up == NULL);
    CHECK_INT(used(), 0);
    for (int i = 0; i < LIMIT_UPLOADS_PER_KEY; i++) {
        (void)begin(&FACTS, 1, i % 2 ? UPLOAD_BY_CHUNKS : UPLOAD_BY_PARTS);
    }
    CHECK_INT(uploads_begin(&us, &up, &FACTS, 1, UPLOAD_BY_PARTS, &d), ERR_LIMIT);
    CHECK_STR(d.name, "too_many_uploads");
    CHECK_INT(used(), LIMIT_UPLOADS_PER_KEY);
    /* One that is complete makes room. */
    upload *done = us.list[3];
    CHECK_OK(upload_chunk(done, 0, "a", 1, &d), d);
    CHECK_OK(uploads_finish(done, &d), d);
    CHECK_STR(finish(done), "");
    const upload *next = us.list[4];
    (void)begin(&FACTS, 1, UPLOAD_BY_PARTS);
    CHECK_INT(us.n, LIMIT_UPLOADS_PER_KEY);
    CHECK(us.list[3] == next);
    CHECK_INT(uploads_begin(&us, &up, &FACTS, 1, UPLOAD_BY_PARTS, &d), ERR_LIMIT);
    /* Others' do so only where there are too many of all. */
    upload *theirs = begin(&OTHERS, 1, UPLOAD_BY_CHUNKS);
    CHECK_OK(upload_chunk(theirs, 0, "a", 1, &d), d);
    CHECK_OK(uploads_finish(theirs, &d), d);
    CHECK_STR(finish(theirs), "");
    CHECK_INT(uploads_begin(&us, &up, &FACTS, 1, UPLOAD_BY_PARTS, &d), ERR_LIMIT);
    for (uint64_t scope = SCOPE + 2; us.n < LIMIT_UPLOADS; scope++) {
        (void)begin(&(file_facts){.scope = scope}, 1, UPLOAD_BY_PARTS);
    }
    (void)begin(&(file_facts){.scope = 1000}, 1, UPLOAD_BY_PARTS);
    CHECK_INT(us.n, LIMIT_UPLOADS);
    CHECK_INT(uploads_begin(&us, &up, &(file_facts){.scope = 1001}, 1, UPLOAD_BY_PARTS, &d), ERR_LIMIT);
    uploads_expire(&us, clock_unix_s() + EXPIRE_S - 30);
    CHECK_INT(us.n, LIMIT_UPLOADS);
    us.list[5]->expires_at = us.list[9]->expires_at = 100;
    us.list[7]->expires_at = 101;
    const upload *stays = us.list[7];
    uploads_expire(&us, 100);
    CHECK_INT(us.n, LIMIT_UPLOADS - 2);
    CHECK(us.list[6] == stays);
    end_test();
}

/* Many parts, and not one more; what a part holds is more than is copied at once. */
static void test_many_parts(void)
{
    begin_test();
    err_detail d = {0};
    file_sink *f = NULL;
    const upload_part *part = NULL;
    upload *up = begin(&FACTS, MOST, UPLOAD_BY_PARTS);
    for (int i = 0; i < LIMIT_UPLOAD_PARTS; i++) { /* empty ones, which need no disk */
        CHECK_OK(upload_part_begin(&us, up, &f, &d), d);
        settle(f);
        CHECK_OK(upload_part_end(up, f, &part, &d), d);
        close(up->parts[i].fd); /* so many may not be open here */
    }
    CHECK_OK(upload_part_begin(&us, up, &f, &d), d);
    settle(f);
    CHECK_INT(upload_part_end(up, f, &part, &d), ERR_LIMIT);
    CHECK_STR(d.name, "too_many_parts");
    CHECK_STR(d.text, "an upload may have 1024 parts");
    static const char
        *order[LIMIT_UPLOAD_PARTS + 1]; /* of which each is looked up only where there is room for all */
    for (size_t i = 0; i <= LIMIT_UPLOAD_PARTS; i++) {
        order[i] = up->parts[0].id;
    }
    CHECK_INT(uploads_assemble(&us, up, order, LIMIT_UPLOAD_PARTS, &d), ERR_INVALID);
    CHECK_STR(d.name, "upload_incomplete");
    CHECK_INT(uploads_assemble(&us, up, order, LIMIT_UPLOAD_PARTS + 1, &d), ERR_NOMEM);
    up->n_parts = 0;
    end_test();
}

/* A part whose bytes cannot be read: what was set aside for the whole is free again, and the client may try it once more. */
static void test_broken_part(void)
{
    begin_test();
    err_detail d = {0};
    upload *up = begin(&FACTS, 2, UPLOAD_BY_PARTS);
    const upload_part *part = add_part(up, "ab");
    const char *const order[] = {part->id};
    const int whole = dup(part->fd), writes_only = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(whole >= 0 && writes_only >= 0 && dup2(writes_only, part->fd) == part->fd);
    CHECK_OK(uploads_assemble(&us, up, order, 1, &d), d);
    CHECK_INT(used(), 4);
    CHECK_STR(finish(up), "upload_storage_failed");
    CHECK(up->status == UPLOAD_PENDING && !up->sink);
    CHECK_INT(used(), 2);
    CHECK_INT(up->reserved, 2);
    CHECK(dup2(whole, part->fd) == part->fd);
    close(whole);
    close(writes_only);
    CHECK_OK(uploads_assemble(&us, up, order, 1, &d), d);
    CHECK_STR(finish(up), "");
    check_file(up->file.id, "ab");
    CHECK_INT(used(), 2);
    end_test();
}

/* Whether an upload may begin, take a part and be put together; it is dropped before anything is written. */
static err_code begin_once(void *kind)
{
    err_detail d = {0};
    upload *up = NULL;
    file_sink *f = NULL;
    const upload_part *part = NULL;
    const uint64_t n_bytes = *(upload_kind *)kind == UPLOAD_BY_CHUNKS ? 5 : 0; /* parts hold nothing here */
    err_code err = uploads_begin(&us, &up, &FACTS, n_bytes, *(upload_kind *)kind, &d);
    if (!err && *(upload_kind *)kind == UPLOAD_BY_PARTS) {
        err = upload_part_begin(&us, up, &f, &d);
        err = err ? err : upload_part_end(up, f, &part, &d);
        const char *const order[] = {part ? part->id : ""};
        err = err ? err : uploads_assemble(&us, up, order, 1, &d);
    }
    CHECK((err == ERR_OK) == (d.text[0] == '\0'));
    if (up) {
        uploads_drop(&us, up);
    }
    CHECK_INT(us.n, 0);
    CHECK_INT(used(), 0);
    return err;
}

/* What finds no memory on its way to the disk counts as not sent. */
static void test_busy(void)
{
    err_detail d = {0};
    file_sink *f = NULL;
    ledger *memory = ledger_create(1 << 20);
    begin_test();
    write_queue_end(writes);
    write_queue_destroy(writes);
    writes = write_queue_create(memory, nothing, NULL);
    uploads_init(&us, files, writes);
    upload *up = begin(&FACTS, 10, UPLOAD_BY_CHUNKS), *parts = begin(&FACTS, 10, UPLOAD_BY_PARTS);
    CHECK_OK(upload_chunk(up, 0, "012", 3, &d), d);
    settle(up->sink);
    CHECK_OK(upload_part_begin(&us, parts, &f, &d), d);
    for (int is_short = 1; is_short >= 0; is_short--) {
        ledger_set_limit(memory, is_short ? ledger_get_status(memory).used : 1 << 20);
        CHECK_INT(upload_chunk(up, 1, "1234", 4, &d), is_short ? ERR_INVALID : ERR_OK);
        CHECK_STR(d.name, is_short ? "upload_offset_mismatch" : "");
        CHECK_STR(d.text,
                  is_short ? "there was no memory for this chunk; the next byte expected is number 3" : "");
        CHECK_INT(up->received, is_short ? 3 : 5);
        d = (err_detail){0};
        CHECK_INT(upload_part_add(parts, f, "01", 2, &d), is_short ? ERR_BUSY : ERR_OK);
        CHECK_INT(parts->received, is_short ? 0 : 2);
        d = (err_detail){0};
    }
    upload_part_abort(parts, f);
    end_test();
    CHECK_INT(ledger_get_status(memory).used, 0);
    ledger_destroy(memory);
}

static void test_short_memory(void)
{
    begin_test();
    write_queue_end(writes); /* what is dropped is freed here */
    upload_kind kinds[] = {UPLOAD_BY_CHUNKS, UPLOAD_BY_PARTS};
    CHECK(alloc_fail_each(begin_once, &kinds[0], 1000) >= 2);
    CHECK(alloc_fail_each(begin_once, &kinds[1], 1000) >= 4);
    uploads_deinit(&us);
    write_queue_destroy(writes);
    file_store_destroy(files);
}

int main(void)
{
    folder_make(folder);
    test_chunks();
    test_hash();
    test_parts();
    test_bounds();
    test_many_parts();
    test_broken_part();
    test_busy();
    test_short_memory();
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
