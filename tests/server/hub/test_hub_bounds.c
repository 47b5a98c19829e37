/* Models of a hub: paths, keys and lists that are as long as they may be, and a byte or a file more; places that are none. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/hub/hub_cache.h"
#include "server/hub/hub_place.h"
#include "tests/alloc_fail.h"
#include "tests/folder.h"
#include "tests/said.h"

#define COMMIT  "0123456789abcdef0123456789abcdef01234567"
#define SHA_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

/* ---- paths ---- */

static void digits(char *out, size_t n, char digit)
{
    memset(out, digit, n);
    out[n] = '\0';
}

/* Each part of a path is as long as it may be: all of it is fetched, found, listed and removed. */
static void test_longest(void)
{
    char cache[HUB_CACHE_MAX] = "", org[97], model[97], inside[HUB_PATH_MAX],
         text[HUB_REPO_MAX + HUB_REVISION_MAX];
    static char path[HUB_FULL_PATH_MAX], locks[HUB_FULL_PATH_MAX], repo[HUB_FULL_PATH_MAX];
    static hub_kept *all;
    static hub_found found;
    hub_file files[2] = {{.size = 3, .is_large = true, .key = SHA_ABC},
                         {.size = 3, .is_large = true, .key = SHA_ABC}};
    hub_listing l = {.files = files, .n = 2};
    hub_blob b;
    hub_name name;
    hub_selection s;
    err_detail d = {0};
    size_t n = 0;
    int64_t n_bytes = 0;
    folder_make(cache);
    for (size_t at = strlen(cache); at < HUB_CACHE_MAX - 1; at = strlen(cache)) {
        const size_t more = HUB_CACHE_MAX - 1 - at;
        cache[at] = '/';
        digits(cache + at + 1, more - 1 < 201 ? more - 1 : 200, 'c');
        CHECK_INT(mkdir(cache, 0700), 0);
    }
    CHECK_INT(strlen(cache), HUB_CACHE_MAX - 1);
    digits(org, 96, 'o');
    digits(model, 96, 'n');
    digits(l.commit, HUB_HEX_MAX - 1, 'f');
    digits(inside, HUB_PATH_MAX - 1, 'i');
    inside[200] = inside[400] = '/';
    snprintf(text, sizeof text, "%s/%s@", org, model);
    digits(text + strlen(text), HUB_REVISION_MAX - 1, 'r');
    CHECK(hub_name_parse(&name, text) && strlen(name.revision) == HUB_REVISION_MAX - 1);
    snprintf(files[0].path, HUB_PATH_MAX, "%.*s-Q8_0.gguf", HUB_PATH_MAX - 11, inside);
    snprintf(files[1].path, HUB_PATH_MAX, "%.*smmproj-F16.gguf", HUB_PATH_MAX - 16, inside);
    CHECK_OK(hub_cache_prepare(repo, locks, cache, name.repo, &d), d);
    CHECK(!hub_blob_is_there(repo, files));
    CHECK_OK(hub_blob_open(&b, repo, locks, files, &d), d);
    CHECK(hub_blob_add(&b, "abc", 3));
    CHECK_INT(hub_blob_left_over(repo, files), 3);
    CHECK_OK(hub_blob_finish(&b, &d), d);
    hub_blob_close(&b);
    CHECK(hub_blob_is_there(repo, files));
    CHECK_OK(hub_select(&s, &l, "", NULL, &d), d);
    CHECK_OK(hub_cache_link(repo, &l, &s, name.revision, &d), d);
    hub_selection_deinit(&s);
    CHECK_OK(hub_cache_find(&found, cache, &name, &d), d);
    snprintf(path, sizeof path, "%s/models--%s--%s/snapshots/%s/%s", cache, org, model, l.commit,
             files[0].path);
    CHECK_STR(found.path, path);
    CHECK_INT(strlen(found.mmproj), strlen(path));
    CHECK_OK(hub_cache_list(&all, &n, cache, &d), d);
    CHECK_INT(n, 1);
    CHECK_STR(all[0].path, path);
    CHECK_INT(all[0].n_bytes, 3);
    CHECK_INT(strlen(all[0].name), 193 + 5 + 65);
    free(all);
    CHECK_OK(hub_cache_remove(cache, &name, &n_bytes, &d), d);
    CHECK_INT(n_bytes, 3);
    CHECK(access(repo, F_OK) != 0 && access(locks, F_OK) != 0);
}

/* A place below a file: no folders can be there. */
static void test_no_folders(void)
{
    static char repo[HUB_FULL_PATH_MAX], locks[HUB_FULL_PATH_MAX];
    const hub_listing l = {.commit = COMMIT};
    const hub_selection none = {0};
    hub_kept *all = NULL;
    hub_found found;
    hub_name name;
    size_t n = 0;
    int64_t n_bytes = 0;
    err_detail d = {0};
    CHECK(hub_name_parse(&name, "org/name:Q4"));
    CHECK_INT(hub_cache_prepare(repo, locks, "/dev/null/x", name.repo, &d), ERR_IO);
    CHECK_STR(d.text, "/dev/null/x/models--org--name/blobs: Not a directory; HF_HOME names another place");
    CHECK_INT(hub_cache_link("/dev/null/x", &l, &none, "main", &d), ERR_IO);
    CHECK_STR(d.text, "/dev/null/x/snapshots/" COMMIT ": Not a directory");
    CHECK_INT(hub_cache_remove("/dev/null/x", &name, &n_bytes, &d), ERR_NOT_FOUND);
    CHECK_STR(d.text, "there is no org/name; parley list names what there is");
    CHECK_INT(hub_cache_list(&all, &n, "/dev/null/x", &d), ERR_IO);
    CHECK_STR(d.text, "/dev/null/x: Not a directory");
    d.text[0] = '\0';
    CHECK_INT(hub_cache_find(&found, "/dev/null/x", &name, &d), ERR_NOT_FOUND);
    CHECK_STR(d.text, "");
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
    for (int more = 0; more < 2; more++) { /* a home of this length has no room even for its own name */
        snprintf(text, sizeof text, "/%0*d", HUB_CACHE_MAX - 2 + more, 0);
        setenv("HF_HOME", text, 1);
        is_wrong(more ? "there is no place for models: set HF_HOME or HF_HUB_CACHE" : "HF_HOME is too long");
    }
    setenv("HF_HOME", "", 1); /* is as good as none */
    is_wrong("there is no place for models: set HF_HOME or HF_HUB_CACHE");
    setenv("HF_HUB_CACHE", "/c", 1);
    setenv("HF_TOKEN", " \n ", 1);
    setenv("HF_ENDPOINT", "http://h///", 1);
    CHECK_OK(hub_place_find(&p, &d), d);
    CHECK_STR(p.key, "");
    CHECK_STR(p.endpoint, "http://h");
    setenv("HF_TOKEN", "k\x7f", 1);
    is_wrong("HF_TOKEN is not a key: it holds blanks or odd characters");
    setenv("HF_TOKEN", "~!", 1);
    CHECK_OK(hub_place_find(&p, &d), d);
    CHECK_STR(p.key, "~!");
    unsetenv("HF_TOKEN");
    setenv("HF_TOKEN_PATH", "/", 1); /* cannot be read: no key */
    CHECK_OK(hub_place_find(&p, &d), d);
    CHECK_STR(p.key, "");
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

/* What lies there: a file of the right size, or of which some may be used. */
static void test_blob_ends(void)
{
    char dir[FOLDER_NAME], path[FOLDER_NAME + 64], part[FOLDER_NAME + 80];
    hub_file f = {.size = 5, .path = "f", .key = ABC};
    hub_blob b;
    err_detail d = {0};
    int pair[2];
    folder_make(dir);
    snprintf(path, sizeof path, "%s/blobs", dir);
    CHECK_INT(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/blobs/" ABC, dir);
    snprintf(part, sizeof part, "%s.incomplete", path);
    CHECK(!hub_blob_is_there(dir, &f));
    CHECK(symlink("12345", path) == 0); /* a link as long as the file is none */
    CHECK(!hub_blob_is_there(dir, &f));
    CHECK_INT(mkdir(part, 0700), 0);
    f.size = 1 << 20;
    CHECK_INT(hub_blob_left_over(dir, &f), 0);
    CHECK_INT(rmdir(part), 0);
    f.size = 3;
    for (int n = 2; n <= 4; n++) {
        CHECK(truncate(part, n) == 0 ||
              (close(open(part, O_CREAT | O_WRONLY, 0600)), truncate(part, n) == 0));
        CHECK_INT(hub_blob_left_over(dir, &f), n <= 3 ? n : 0);
    }
    CHECK_OK(hub_blob_open(&b, dir, dir, &f, &d), d); /* more than all of it is of no use */
    CHECK(b.before == 0 && !hub_blob_check_some(&b));
    CHECK_INT(hub_blob_left_over(dir, &f), 0);
    CHECK(pipe(pair) == 0 && dup2(pair[1], b.fd) == b.fd); /* a disk that refuses all */
    close(pair[0]);
    close(pair[1]);
    CHECK(!hub_blob_add(&b, "ab", 2));
    CHECK_INT(b.error, ESPIPE);
    b.error = 0;
    CHECK(!hub_blob_add(&b, "abcd", 4)); /* more than it has: none of the disk's faults */
    CHECK(b.error == 0 && b.at == 0);
    CHECK(!hub_blob_restart(&b));
    CHECK_INT(b.error, EINVAL);
    b.error = 0;
    b.before = 2;
    CHECK(!hub_blob_check_some(&b));
    CHECK(b.error == EINVAL && b.before == 0 && b.at == 0);
    hub_blob_close(&b);
}

/* What lies there is hashed in pieces of 32 MiB. */
static void test_long_blob(void)
{
    enum { PIECE = 32 << 20 };
    char dir[FOLDER_NAME], part[FOLDER_NAME + 80];
    const hub_file f = {.size = PIECE + 1, .path = "f", .key = ABC};
    hub_blob b;
    err_detail d = {0};
    folder_make(dir);
    snprintf(part, sizeof part, "%s/blobs", dir);
    CHECK_INT(mkdir(part, 0700), 0);
    snprintf(part, sizeof part, "%s/blobs/" ABC ".incomplete", dir);
    close(open(part, O_CREAT | O_WRONLY, 0600));
    CHECK_INT(truncate(part, PIECE + 1), 0);
    CHECK_OK(hub_blob_open(&b, dir, dir, &f, &d), d);
    CHECK(hub_blob_check_some(&b));
    CHECK_INT(b.at, PIECE);
    CHECK(!hub_blob_check_some(&b));
    CHECK_INT(b.at, PIECE + 1);
    CHECK(!hub_blob_check_some(&b));
    hub_blob_close(&b);
}

int main(void)
{
    test_blob();
    test_blob_ends();
    test_long_blob();
    test_longest();
    test_no_folders();
    test_places();
    test_lists();
    CHECK_DONE();
}
