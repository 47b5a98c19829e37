/* How many files an owner may have: one who has too many leaves room for another. */
#include "server/media/file_store.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"
#include "tests/open_files.h"

static stored_file last;

static err_code put(file_store *fs, uint64_t scope, int number, err_detail *d)
{
    char text[32];
    file_writer *w = NULL;
    const file_facts facts = {.scope = scope, .name = "a", .purpose = "user_data"};
    const int n = snprintf(text, sizeof text, "%d", number);
    CHECK_OK(file_store_reserve(fs, scope, (uint64_t)n, d), *d);
    CHECK_OK(file_writer_create(&w, "/tmp", (uint64_t)n, d), *d);
    CHECK_OK(file_writer_add(w, text, (size_t)n, d), *d);
    return file_store_add(fs, w, (uint64_t)n, &facts, &last, d);
}

static bool take_one(void *ctx, const stored_file *f)
{
    *(stored_file *)ctx = *f;
    return false;
}

/* A store and its first file, however little memory there is: what was set aside for one that is not kept is free again. */
static err_code keep_once(void *text)
{
    err_detail d = {0};
    stored_file kept;
    file_writer *w = NULL;
    uint64_t n_bytes = 0;
    size_t n_files = 0;
    const size_t n = strlen(text);
    const file_facts facts = {.scope = 1, .name = "a"};
    file_store *fs = file_store_create(
        &(file_store_options){.dir = "/tmp", .max_bytes = 100, .quota = 100, .expire_s = 60});
    if (!fs) {
        return ERR_NOMEM;
    }
    err_code err = file_store_reserve(fs, 1, n, &d);
    if (!err) {
        err = file_writer_create(&w, "/tmp", n, &d);
        err = err ? err : file_writer_add(w, text, n, &d);
        if (err) {
            file_store_release(fs, 1, n);
            file_writer_destroy(w);
        } else { /* it says of itself that there is no room for more, whatever is short */
            err = file_store_add(fs, w, n, &facts, &kept, &d);
            err = err == ERR_LIMIT ? ERR_NOMEM : err;
        }
    }
    file_store_usage(fs, &n_bytes, &n_files);
    CHECK_INT(n_bytes, err ? 0 : n);
    CHECK_INT(n_files, err ? 0 : 1);
    CHECK((err == ERR_OK) == (d.text[0] == '\0'));
    file_store_destroy(fs);
    return err;
}

static void test_short_memory(void)
{
    static char text[] = "some words";
    const size_t open = open_files();
    CHECK(alloc_fail_each(keep_once, text, 100) >= 4);
    CHECK_INT(open_files(), open);
}

int main(void)
{
    enum { FIRST = 1, SECOND = 2, SPARE = LIMIT_FILES_PER_KEY - LIMIT_FILE_CONTENTS_PER_KEY };
    err_detail d = {0};
    file_store *fs = file_store_create(
        &(file_store_options){.dir = "/tmp", .max_bytes = 100, .quota = 1 << 20, .expire_s = 60});
    for (int i = 0; i < LIMIT_FILE_CONTENTS_PER_KEY; i++) {
        CHECK_OK(put(fs, FIRST, i, &d), d);
    }
    CHECK_INT(put(fs, FIRST, LIMIT_FILE_CONTENTS_PER_KEY, &d), ERR_LIMIT);
    CHECK(strcmp(d.name, "too_many_files") == 0);
    CHECK_OK(put(fs, SECOND, 0, &d), d);
    const stored_file foreign = last;
    CHECK(!foreign.was_known);

    for (int i = 0; i < SPARE; i++) { /* further ids of bytes that are here already */
        CHECK_OK(put(fs, FIRST, 0, &d), d);
    }
    CHECK_INT(put(fs, FIRST, 0, &d), ERR_LIMIT);
    CHECK(!file_store_link(fs, foreign.hash, foreign.bytes, &(file_facts){.scope = FIRST}, &last));
    CHECK(file_store_link(fs, foreign.hash, foreign.bytes, &(file_facts){.scope = SECOND}, &last));

    stored_file oldest;
    CHECK(
        file_store_list(fs, FIRST, "", false, take_one, &oldest)); /* the bytes of the spare ids: they stay */
    CHECK(file_store_delete(fs, FIRST, oldest.id));
    CHECK_OK(put(fs, FIRST, 0, &d), d);
    CHECK(file_store_list(fs, FIRST, "", false, take_one, &oldest));
    CHECK(file_store_delete(fs, FIRST, oldest.id));
    CHECK_OK(put(fs, FIRST, LIMIT_FILE_CONTENTS_PER_KEY, &d), d); /* a content made room, too */
    uint64_t n_bytes = 0;
    size_t n_files = 0;
    file_store_usage_of(fs, FIRST, &n_bytes, &n_files);
    CHECK_INT(n_files, LIMIT_FILES_PER_KEY);
    file_store_destroy(fs);
    test_short_memory();
    CHECK_DONE();
}
