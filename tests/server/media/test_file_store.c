/* How many files an owner may have: one who has too many leaves room for another. */
#include "server/media/file_store.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
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
        } else {
            err = file_store_add(fs, w, n, &facts, &kept, &d);
        }
    }
    file_store_usage(fs, &n_bytes, &n_files);
    CHECK_INT(n_bytes, err ? 0 : n);
    CHECK_INT(n_files, err ? 0 : 1);
    CHECK((err == ERR_OK) == (d.text[0] == '\0'));
    file_store_destroy(fs);
    return err;
}

/* ---- a plain model beside it ---- */

enum { OWNERS = 5, TEXTS = 6, MODEL_FILES = 256, QUOTA = 60, MOST = 25, DAY = 86400 };

/* What the store should have: files in order of creation, what owners have set aside. */
static struct {
    stored_file files[MODEL_FILES];
    int texts[MODEL_FILES]; /* numbers of their bytes */
    size_t n;
    uint64_t aside[OWNERS];
} model;

static const char *const WORDS[TEXTS] = {
    "", "a", "bb", "GIF89a 11 b", "seventeen letters", "these are twenty-five.."};

static uint64_t used_by(uint64_t scope)
{
    uint64_t n = model.aside[scope];
    for (int text = 0; text < TEXTS; text++) {
        for (size_t i = 0; i < model.n; i++) {
            if (model.files[i].facts.scope == scope && model.texts[i] == text) {
                n += strlen(WORDS[text]); /* once, whatever the number of ids */
                break;
            }
        }
    }
    return n;
}

static bool has_text(uint64_t scope, int text)
{
    for (size_t i = 0; i < model.n; i++) {
        if (model.files[i].facts.scope == scope && model.texts[i] == text) {
            return true;
        }
    }
    return false;
}

static void remove_from_model(size_t i)
{
    model.n--;
    memmove(&model.files[i], &model.files[i + 1], (model.n - i) * sizeof *model.files);
    memmove(&model.texts[i], &model.texts[i + 1], (model.n - i) * sizeof *model.texts);
}

static void check_file(const stored_file *is, const stored_file *should_be)
{
    CHECK_STR(is->id, should_be->id);
    CHECK_STR(is->facts.name, should_be->facts.name);
    CHECK_INT(is->bytes, should_be->bytes);
    CHECK_INT(is->was_known, should_be->was_known);
    CHECK(is->mime == should_be->mime && memcmp(is->hash, should_be->hash, HASH_BYTES) == 0);
    CHECK(is->expires_at >= should_be->expires_at && is->expires_at <= should_be->expires_at + 60);
}

typedef struct listing {
    stored_file files[MODEL_FILES];
    size_t n, most;
} listing;

static bool list_one(void *ctx, const stored_file *f)
{
    listing *l = ctx;
    l->files[l->n++] = *f;
    return l->n < l->most;
}

/* The owner's files as they are listed from any of them on, in both orders. */
static void check_list(file_store *fs, uint64_t scope, uint32_t r)
{
    const bool newest_first = r & 1;
    static listing l, should_be;
    l.n = should_be.n = 0;
    l.most = 1 + (r >> 1) % 7;
    const size_t after = model.n ? (r >> 4) % (model.n + 1) : 0; /* the last: from the first one on */
    const bool is_own = after == model.n || model.files[after].facts.scope == scope;
    for (size_t k = 0; k < model.n; k++) {
        const size_t i = newest_first ? model.n - 1 - k : k;
        const bool is_behind = after == model.n || (newest_first ? i < after : i > after);
        if (is_own && is_behind && model.files[i].facts.scope == scope && should_be.n < l.most) {
            should_be.files[should_be.n++] = model.files[i];
        }
    }
    CHECK_INT(
        file_store_list(fs, scope, after == model.n ? "" : model.files[after].id, newest_first, list_one, &l),
        is_own);
    CHECK_INT(l.n, should_be.n);
    for (size_t i = 0; i < l.n && l.n == should_be.n; i++) {
        check_file(&l.files[i], &should_be.files[i]);
    }
}

/* A file comes whole, or as a further id of bytes that are there. */
static void check_add(file_store *fs, uint64_t scope, uint32_t r)
{
    const int text = (int)(r % TEXTS);
    const size_t n = strlen(WORDS[text]), announced = n + (r >> 4) % 3;
    const int64_t wanted = (int64_t[]){0, 7 * DAY, DAY, 30 * DAY}[(r >> 8) % 4];
    file_facts facts = {.scope = scope, .name = "name", .expire_s = wanted};
    err_detail d = {0};
    file_writer *w = NULL;
    stored_file f = {0};
    const err_code err = announced > MOST || used_by(scope) + announced > QUOTA ? ERR_LIMIT : ERR_OK;
    CHECK_INT(file_store_reserve(fs, scope, announced, &d), err);
    CHECK_STR(d.name, !err ? "" : announced > MOST ? "upload_too_large" : "upload_quota_exceeded");
    if (err) {
        return;
    }
    const bool was_known = has_text(scope, text);
    if ((r >> 10) % 4 == 0) { /* the client thinks better of it, or it is long on its way */
        model.aside[scope] += announced;
        if ((r >> 12) % 2) {
            file_store_release(fs, scope, announced);
            model.aside[scope] -= announced;
        }
        return;
    }
    CHECK_OK(file_writer_create(&w, "/tmp", announced, &d), d);
    CHECK_OK(file_writer_add(w, WORDS[text], n, &d), d);
    CHECK_OK(file_store_add(fs, w, announced, &facts, &f, &d), d);
    CHECK_INT(f.was_known, was_known);
    CHECK_INT(f.bytes, n);
    CHECK_STR(f.mime ? f.mime : "none", text == 3 ? "image/gif" : "none");
    CHECK_NEAR((double)(f.expires_at - f.created_at), wanted && wanted < 20 * DAY ? wanted : 20 * DAY, 60);
    model.files[model.n] = f;
    model.texts[model.n++] = text;
    if ((r >> 14) % 2) { /* once more by its hash; of bytes that are another owner's there is none */
        stored_file linked = {0};
        CHECK(file_store_link(fs, f.hash, n, &facts, &linked));
        CHECK(linked.was_known && strcmp(linked.id, f.id) != 0);
        model.files[model.n] = linked;
        model.texts[model.n++] = text;
        facts.scope = (scope + 1) % OWNERS;
        CHECK_INT(file_store_link(fs, f.hash, n + 1, &facts, &linked), false);
        if (!has_text(facts.scope, text)) {
            CHECK_INT(file_store_link(fs, f.hash, n, &facts, &linked), false);
        }
    }
}

static void check_one(file_store *fs, uint64_t scope, uint32_t r)
{
    const size_t i = (r >> 2) % model.n;
    stored_file *f = &model.files[i];
    const bool is_own = f->facts.scope == scope;
    err_detail d = {0};
    file_handle h = {.fd = -1};
    stored_file got = {0};
    char text[64] = "";
    switch (r % 3) {
    case 0:
        CHECK_INT(file_store_get(fs, scope, f->id, &got), is_own);
        if (is_own) {
            check_file(&got, f);
        }
        break;
    case 1:
        CHECK_INT(file_store_open(fs, scope, f->id, &h, &d), is_own ? ERR_OK : ERR_NOT_FOUND);
        CHECK_STR(d.name, is_own ? "" : "file_not_found");
        if (is_own) {
            CHECK_INT(file_read_at(h.fd, text, sizeof text, 0), f->bytes);
            CHECK_STR(text, WORDS[model.texts[i]]);
            CHECK(h.bytes == f->bytes && h.mime == f->mime && memcmp(h.hash, f->hash, HASH_BYTES) == 0);
        }
        file_close(h.fd);
        break;
    default:
        CHECK_INT(file_store_delete(fs, scope, f->id), is_own);
        if (is_own) {
            remove_from_model(i);
        }
    }
}

static void test_model(void)
{
    const size_t n_open = open_files();
    file_store *fs = file_store_create(
        &(file_store_options){.dir = "/tmp", .max_bytes = MOST, .quota = QUOTA, .expire_s = 20 * DAY});
    uint32_t seed = 1;
    for (int step = 0; step < 6000; step++) {
        seed = seed * 1664525 + 1013904223;
        const uint32_t r = seed >> 8;
        const uint64_t scope = (r >> 3) % OWNERS;
        if (model.n + 2 > MODEL_FILES || step % 500 == 499) { /* some days go by */
            const int days = model.n + 2 > MODEL_FILES ? 21 : 9;
            const int64_t now = model.n ? model.files[0].created_at + days * DAY : 0;
            for (size_t i = model.n; i-- > 0;) {
                if (model.files[i].expires_at < now) {
                    remove_from_model(i);
                }
            }
            file_store_expire(fs, now - 60);
            file_store_expire(fs, now);
        }
        while (step % 50 == 0 && model.aside[scope] > 0) {
            const uint64_t n = model.aside[scope] > MOST ? MOST : model.aside[scope];
            file_store_release(fs, scope, n);
            model.aside[scope] -= n;
        }
        if (r % 8 < 3) {
            check_add(fs, scope, r >> 5);
        } else if (r % 8 < 6 && model.n) {
            check_one(fs, scope, r >> 5);
        } else {
            check_list(fs, scope, r >> 5);
        }
        uint64_t n_bytes = 0, n_all = 0, should_be = 0;
        size_t n_files = 0, n_own = 0;
        file_store_usage_of(fs, scope, &n_bytes, &n_files);
        CHECK_INT(n_bytes, used_by(scope));
        for (size_t i = 0; i < model.n; i++) {
            n_own += model.files[i].facts.scope == scope;
        }
        CHECK_INT(n_files, n_own);
        file_store_usage(fs, &n_all, &n_files);
        for (uint64_t i = 0; i < OWNERS; i++) {
            should_be += used_by(i);
        }
        CHECK_INT(n_all, should_be);
        CHECK_INT(n_files, model.n);
        if (check_failures) {
            fprintf(stderr, "at step %d\n", step);
            break;
        }
    }
    file_store_destroy(fs);
    CHECK_INT(open_files(), n_open);
}

/* What all owners may have together: more than one of them, and then not one more. */
static void test_everybody(void)
{
    enum { FIRST_OF_ALL = 10, PER_KEY = LIMIT_FILES_PER_KEY };
    err_detail d = {0};
    file_store *fs = file_store_create(
        &(file_store_options){.dir = "/tmp", .max_bytes = 100, .quota = 1 << 20, .expire_s = 60});
    for (int i = 0; i < LIMIT_FILE_CONTENTS; i++) {
        CHECK_OK(put(fs, FIRST_OF_ALL + (uint64_t)i / LIMIT_FILE_CONTENTS_PER_KEY, i, &d), d);
    }
    CHECK_INT(put(fs, 1, 0, &d), ERR_LIMIT); /* no more contents */
    CHECK(file_store_delete(fs, last.facts.scope, last.id));
    CHECK_OK(put(fs, 1, 0, &d), d);
    size_t n = LIMIT_FILE_CONTENTS;
    stored_file known[2] = {last};
    for (; n < PER_KEY + LIMIT_FILE_CONTENTS - 1; n++) {
        CHECK(file_store_link(fs, known[0].hash, known[0].bytes, &(file_facts){.scope = 1}, &last));
    }
    CHECK(!file_store_link(fs, known[0].hash, known[0].bytes, &(file_facts){.scope = 1},
                           &last)); /* its own bound */
    for (uint64_t scope = FIRST_OF_ALL; n < LIMIT_FILES; scope++) {
        CHECK(file_store_delete(fs, 1, known[0].id)); /* room for another content, where that is the bound */
        n--;
        CHECK(file_store_list(fs, 1, "", false, take_one, &known[0]));
        if (scope >= FIRST_OF_ALL + 2) {
            const stored_file first = last;
            CHECK(file_store_list(fs, FIRST_OF_ALL, "", false, take_one, &last) &&
                  file_store_delete(fs, FIRST_OF_ALL, last.id));
            n--;
            last = first;
            CHECK_OK(put(fs, scope, 0, &d), d);
            n++;
        } else {
            CHECK(file_store_list(fs, scope, "", true, take_one, &last));
        }
        const stored_file of = last;
        uint64_t n_bytes = 0;
        size_t n_own = 0;
        file_store_usage_of(fs, scope, &n_bytes, &n_own);
        for (; n < LIMIT_FILES && n_own < PER_KEY; n++, n_own++) {
            CHECK(file_store_link(fs, of.hash, of.bytes, &(file_facts){.scope = scope}, &last));
        }
        if (n == LIMIT_FILES) {
            CHECK(n_own < PER_KEY); /* the bound is everybody's */
            CHECK(!file_store_link(fs, of.hash, of.bytes, &(file_facts){.scope = scope}, &last));
        }
        if (check_failures) {
            break;
        }
    }
    CHECK(file_store_delete(fs, 1, known[0].id));
    CHECK(file_store_list(fs, 1, "", false, take_one, &known[0]));
    CHECK(file_store_link(fs, known[0].hash, known[0].bytes, &(file_facts){.scope = 1}, &last));
    file_store_destroy(fs);
}

static void test_short_memory(void)
{
    static char text[] = "some words";
    const size_t open = open_files();
    CHECK(alloc_fail_each(keep_once, text, 100) >= 4);
    CHECK_INT(open_files(), open);
}

/* A writer where standard input is closed, so that its file has number 0; the longest name of a folder, and a longer one. */
static void test_writer(void)
{
    enum { PATH = 4096, NAME = sizeof ".parley-upload-" - 1 + HASH_ID_CHARS };
    static char dir[PATH + 1];
    err_detail d = {0};
    file_writer *w = NULL;
    uint8_t hash[HASH_BYTES];
    const int kept = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    CHECK_OK(file_writer_create(&w, "/tmp", 3, &d), d);
    CHECK_OK(file_writer_add(w, "abc", 3, &d), d);
    close(file_writer_finish(w, hash));
    CHECK(dup(kept) == STDIN_FILENO);
    close(kept);
    for (int n = PATH - NAME - 3; n < PATH - NAME; n++) { /* with a slash and a zero behind it */
        snprintf(dir, sizeof dir, "/%0*d", n - 1, 0);
        const bool fits = n + 1 + NAME + 1 <= PATH;
        CHECK_INT(file_writer_create(&w, dir, 3, &d), fits ? ERR_IO : ERR_INVALID);
        CHECK_STR(d.text, fits ? "the server could not store the upload; its disk may be full"
                               : "the name of the upload folder is too long");
        CHECK(w == NULL);
    }
}

/* A file is there, but no number for it. */
static void test_many_open(void)
{
    struct rlimit was;
    err_detail d = {0};
    file_handle h = {.fd = -1};
    file_store *fs = file_store_create(
        &(file_store_options){.dir = "/tmp", .max_bytes = 100, .quota = 100, .expire_s = 60});
    CHECK_OK(put(fs, 1, 5, &d), d);
    CHECK(getrlimit(RLIMIT_NOFILE, &was) == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = 3, .rlim_max = was.rlim_max}) == 0);
    CHECK_INT(file_store_open(fs, 1, last.id, &h, &d), ERR_IO);
    CHECK_STR(d.text, "too many files are open");
    CHECK(setrlimit(RLIMIT_NOFILE, &was) == 0);
    CHECK_OK(file_store_open(fs, 1, last.id, &h, &d), d);
    close(h.fd);
    file_store_destroy(fs);
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
    test_everybody();
    test_model();
    test_short_memory();
    log_set_level(LOG_OFF);
    test_writer();
    test_many_open();
    CHECK_DONE();
}
