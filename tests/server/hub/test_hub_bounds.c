/* Models of a hub: paths, keys and lists that are as long as they may be, and a byte or a file more; places that are none. */
#include <sys/stat.h>
#include <unistd.h>

#include "server/hub/hub_cache.h"
#include "server/hub/hub_place.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/said.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

/* ---- paths ---- */

static char room[HUB_FULL_PATH_MAX], locks[HUB_FULL_PATH_MAX];

static err_code repo(const char *path, err_detail *d)
{
    return hub_cache_repo(room, path, "org/name", d);
}

static err_code prepare(const char *path, err_detail *d)
{
    return hub_cache_prepare(room, locks, path, "org/name", d);
}

static err_code link_files(const char *path, err_detail *d)
{
    const hub_listing l = {.commit = COMMIT};
    const hub_selection none = {0};
    return hub_cache_link(path, &l, &none, "main", d);
}

static err_code find(const char *path, err_detail *d)
{
    hub_found found;
    hub_name name;
    CHECK(hub_name_parse(&name, "org/name"));
    return hub_cache_find(&found, path, &name, d);
}

static err_code remove_it(const char *path, err_detail *d)
{
    int64_t n_bytes = 0;
    hub_name name;
    CHECK(hub_name_parse(&name, "org/name:Q4"));
    return hub_cache_remove(path, &name, &n_bytes, d);
}

static err_code list(const char *path, err_detail *d)
{
    hub_kept *all = NULL;
    size_t n = 0;
    const err_code err = hub_cache_list(&all, &n, path, d);
    CHECK_INT(n, 0);
    free(all);
    return err;
}

/* Below a file there are no folders: each path that has room fails for that reason, if at all. */
static void test_paths(void)
{
    static const struct {
        err_code (*ask)(const char *path, err_detail *d);
        err_code is; /* with room */
        const char *says;
        size_t most;
    } ROWS[] = {
        {repo, ERR_OK, "", 2047 - 18},
        {prepare, ERR_IO, ": Not a directory; HF_HOME names another place", 2047 - 25},
        {link_files, ERR_IO, ": Not a directory", 2047 - 11 - 40},
        {find, ERR_NOT_FOUND, "", 2047 - 18},
        {remove_it, ERR_NOT_FOUND, "there is no org/name; parley list names what there is", 2200},
        {list, ERR_IO, ": Not a directory", 2200},
    };
    char path[2300];
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        for (size_t n = 1000; n < 2200; n++) {
            err_detail d = {0};
            snprintf(path, sizeof path, "/dev/null/%0*d", (int)n - 10, 0);
            const err_code err = ROWS[i].ask(path, &d);
            if (n <= ROWS[i].most) {
                CHECK_INT(err, ROWS[i].is);
                CHECK_HAS(d.text, ROWS[i].says);
            } else {
                CHECK_INT(err, ERR_INVALID);
                CHECK_STR(d.text, "the path of the models' folder is too long");
            }
        }
    }
}

/* ---- places ---- */

static void is_wrong(const char *says)
{
    hub_place p;
    err_detail d = {0};
    CHECK_INT(hub_place_find(&p, &d), says[0] == 't' && says[4] == 'c' ? ERR_IO : ERR_INVALID);
    CHECK_STR(d.text, says);
}

static void test_places(void)
{
    static const char *const VARIABLES[] = {
        "HF_ENDPOINT", "HF_TOKEN",       "HF_TOKEN_PATH", "HF_HUB_CACHE",  "HUGGINGFACE_HUB_CACHE",
        "HF_HOME",     "XDG_CACHE_HOME", "HOME",          "HF_HUB_OFFLINE"};
    char gone[FOLDER_NAME], text[4 * HUB_CACHE_MAX];
    hub_place p;
    err_detail d = {0};
    for (size_t i = 0; i < ARRAY_LEN(VARIABLES); i++) {
        unsetenv(VARIABLES[i]);
    }
    is_wrong("there is no place for models: set HF_HOME or HF_HUB_CACHE");
    folder_make(gone);
    CHECK(chdir(gone) == 0 && rmdir(gone) == 0);
    setenv("HF_HUB_CACHE", "below", 1);
    is_wrong("the current folder is gone");
    setenv("HF_HUB_CACHE", "/below", 1);
    CHECK_OK(hub_place_find(&p, &d), d);
    CHECK(chdir("/") == 0);
    for (int more = 0; more < 2; more++) {
        snprintf(text, sizeof text, "%0*d", HUB_KEY_MAX - 1 + more, 0);
        setenv("HF_TOKEN", text, 1);
        if (more) {
            is_wrong("HF_TOKEN is too long");
        } else {
            CHECK_OK(hub_place_find(&p, &d), d);
            CHECK_STR(p.key, text);
        }
    }
    unsetenv("HF_TOKEN");
    for (int more = 0; more < 2; more++) {
        snprintf(text, sizeof text, "https://h/%0*d", HUB_URL_MAX - 11 + more, 0);
        setenv("HF_ENDPOINT", text, 1);
        if (more) {
            is_wrong("HF_ENDPOINT is too long");
        } else {
            CHECK_OK(hub_place_find(&p, &d), d);
            CHECK_STR(p.endpoint, text);
        }
    }
    unsetenv("HF_ENDPOINT");
    unsetenv("HF_HUB_CACHE");
    for (int more = 0; more < 2; more++) {
        snprintf(text, sizeof text, "/%0*d", HUB_CACHE_MAX - 2 - 4 + more, 0);
        setenv("HF_HOME", text, 1);
        if (more) {
            is_wrong("HF_HOME is too long");
        } else {
            CHECK_OK(hub_place_find(&p, &d), d);
            CHECK_INT(strlen(p.cache), HUB_CACHE_MAX - 1);
        }
    }
}

/* ---- lists ---- */

static void test_lists(void)
{
    bytes text = bytes_empty(SIZE_MAX / 2);
    for (size_t n = HUB_FILES_MAX; n <= HUB_FILES_MAX + 1; n++) {
        hub_listing l = {0};
        err_detail d = {0};
        bytes_clear(&text);
        bytes_append_str(&text, "{\"sha\":\"" COMMIT "\",\"siblings\":[");
        for (size_t i = 0; i < n; i++) {
            bytes_printf(&text, "%s{\"rfilename\":\"f%zu\",\"size\":1,\"blobId\":\"" COMMIT "\"}",
                         i ? "," : "", i);
        }
        bytes_append_str(&text, "]}");
        const err_code err = hub_listing_read(&l, bytes_str(&text), text.len, &d);
        if (n > HUB_FILES_MAX) {
            CHECK_INT(err, ERR_LIMIT);
            CHECK_STR(d.text, "the model has 20001 files; at most 20000 are possible");
        } else {
            CHECK_OK(err, d);
            CHECK_INT(l.n, n);
            hub_listing_deinit(&l);
        }
    }
    bytes_deinit(&text);
}

/* ---- a file ---- */

#define ABC "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f" /* "abc", as git has it */

/* A file that comes in two tries, with a hash of its own kind. */
static err_code fetch_twice(void *dir)
{
    const hub_file f = {.size = 3, .path = "f", .key = ABC};
    char part[FOLDER_NAME + 64];
    hub_blob b;
    err_detail d = {0};
    snprintf(part, sizeof part, "%.63s/blobs/" ABC ".incomplete", (const char *)dir);
    (void)unlink(part);
    err_code err = hub_blob_open(&b, dir, dir, &f, &d);
    if (!err) {
        CHECK(hub_blob_add(&b, "ab", 2));
    }
    hub_blob_close(&b);
    if (!err) {
        err = hub_blob_open(&b, dir, dir, &f, &d);
        while (!err && hub_blob_check_some(&b)) {
        }
        if (!err) { /* what could not be read for want of memory comes once more */
            CHECK((b.at == 2 || b.at == 0) && b.at == b.before && b.error == 0);
            CHECK(hub_blob_add(&b, &"abc"[b.at], 3 - (size_t)b.at));
            err = hub_blob_finish(&b, &d);
        }
        hub_blob_close(&b);
    }
    CHECK((err == ERR_OK) == (d.text[0] == '\0'));
    return err;
}

static void test_blob(void)
{
    char dir[FOLDER_NAME], path[FOLDER_NAME + 64];
    folder_make(dir);
    snprintf(path, sizeof path, "%s/blobs", dir);
    CHECK_INT(mkdir(path, 0700), 0);
    CHECK(alloc_fail_each(fetch_twice, dir, 1000) > 0);
    snprintf(path, sizeof path, "%s/blobs/" ABC, dir);
    CHECK_INT(access(path, R_OK), 0);
}

int main(void)
{
    test_blob();
    test_paths();
    test_places();
    test_lists();
    CHECK_DONE();
}
