/* remote_media without a network: what may be named, and files below a folder. */
#include "server/media/remote_media.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/limits.h"
#include "server/media/file_writer.h"
#include "tests/check.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"

enum { PATH = 512 };

ONE_FAILS(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), (errno = EIO, -1))
ONE_FAILS(int, fstat, (int fd, struct stat *st), (fd, st), (errno = EIO, -1))

static char folder[FOLDER_NAME];

static void put(const char *name, const char *content)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(content, f) >= 0 && fclose(f) == 0);
}

static void test_check(void)
{
    static const char *const HOSTS[] = {"example.org"};
    const remote_media none = {0}, hosts = {.domains = HOSTS, .n_domains = 1}, files = {.folder = folder};
    static const struct {
        int which; /* 0: none, 1: hosts, 2: files */
        const char *url, *code;
    } CASES[] = {
        {0, "http://example.org/a", "remote_media_disabled"},
        {0, "file://a", "remote_media_disabled"},
        {1, "http://example.org/a", NULL},
        {1, "https://example.org/a", NULL},
        {1, "http://other.org/a", "remote_media_refused"},
        {1, "ftp://example.org/a", "remote_media_refused"},
        {1, "http://u:p@example.org/", "remote_media_refused"},
        {1, "file://a", "remote_media_disabled"},
        {2, "FILE://a", NULL},
        {2, "http://example.org/a", "remote_media_disabled"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        err_detail d = {0};
        const remote_media *rm = CASES[i].which == 0 ? &none : CASES[i].which == 1 ? &hosts : &files;
        const err_code err = remote_media_check(rm, CASES[i].url, i % 2 == 0, "messages[0]", &d);
        CHECK_INT(err, CASES[i].code ? ERR_INVALID : ERR_OK);
        CHECK_STR(d.name, CASES[i].code ? CASES[i].code : "");
        CHECK_STR(d.param, CASES[i].code ? "messages[0]" : "");
        if (err && strstr(d.name, "disabled")) {
            CHECK(strstr(d.text, i % 2 == 0 ? "send the image" : "send the video") != NULL);
            CHECK(strstr(d.text, strstr(CASES[i].url, "://a") ? "--media-path" : "--media-domains") != NULL);
        }
    }
    err_detail d = {0};
    CHECK_INT(remote_media_check(NULL, "http://example.org/a", true, "p", &d), ERR_INVALID);
    CHECK_INT(remote_media_check(NULL, "file://a", true, "p", NULL), ERR_INVALID);
}

static bool is_over(void *ctx)
{
    return *(bool *)ctx;
}

/* A request with one part: its error; what was fetched is compared with content. */
static err_code fetch(chat_part_kind kind, const char *url, uint64_t max_video, const char *content,
                      err_detail *d)
{
    static bool cancelled;
    const prepare_hooks hooks = {.cancelled = is_over, .ctx = &cancelled};
    const remote_media rm = {.folder = folder, .dir = "/tmp", .max_video = max_video};
    chat_input *in = chat_input_create(1 << 20);
    chat_part parts[2] = {{.kind = CHAT_TEXT, .text = "x"}, {.kind = kind, .url = url, .param = "input[3]"}};
    chat_message m = {.parts = parts, .n_parts = 2};
    memset(d, 0, sizeof *d);
    in->messages = &m;
    in->n_messages = 1;
    CHECK(remote_media_wanted(in));
    const err_code err = remote_media_fetch(&rm, in, &hooks, d);
    if (err == ERR_OK) {
        uint8_t hash[HASH_BYTES];
        char copy[64] = "";
        const chat_part *p = &parts[1];
        hash_sha256(hash, content, strlen(content));
        CHECK_INT(p->data_bytes, strlen(content));
        CHECK(p->hash && memcmp(p->hash, hash, sizeof hash) == 0);
        if (kind == CHAT_IMAGE) {
            CHECK(p->data && memcmp(p->data, content, strlen(content)) == 0);
            CHECK_INT(in->n_fds, 0);
        } else {
            CHECK(p->data == NULL && in->n_fds == 1 && in->fds[0] == p->fd);
            CHECK_INT(file_read_at(p->fd, copy, sizeof copy, 0), strlen(content));
            CHECK_STR(copy, content);
        }
        /* The same is refused once the client has gone. */
        cancelled = true;
        parts[1].url = url;
        CHECK_INT(remote_media_fetch(&rm, in, &hooks, d), ERR_CANCELLED);
        cancelled = false;
        memset(d, 0, sizeof *d);
    }
    in->messages = NULL;
    in->n_messages = 0;
    chat_input_destroy(in);
    return err;
}

static void test_files(void)
{
    char url[PATH];
    err_detail d;
    put("a b.png", "image");
    put("v.mp4", "video of 18 bytes.");
    snprintf(url, sizeof url, "%s/sub", folder);
    CHECK(mkdir(url, 0700) == 0);
    CHECK_OK(fetch(CHAT_IMAGE, "file://a%20b.png", 100, "image", &d), d);
    CHECK(fetch(CHAT_IMAGE, "file://sub/../a b.png", 100, "image", &d) != ERR_OK);
    CHECK_OK(fetch(CHAT_VIDEO, "FILE://v.mp4", 18, "video of 18 bytes.", &d), d);
    snprintf(url, sizeof url, "file://%s/v.mp4", folder);
    CHECK_OK(fetch(CHAT_VIDEO, url, 100, "video of 18 bytes.", &d), d);
    CHECK_INT(fetch(CHAT_VIDEO, url, 17, "", &d), ERR_LIMIT);
    CHECK_STR(d.name, "video_too_large");
    CHECK_STR(d.param, "input[3]");
    CHECK_OK(fetch(CHAT_IMAGE, "file://a%20b.png", 100, "image", &d), d);
    CHECK_INT(fetch(CHAT_IMAGE, "file://%zz", 100, "image", &d),
              ERR_INVALID); /* nor what was asked for before */
    CHECK_INT(fetch(CHAT_IMAGE, "file://", 100, "image", &d),
              ERR_INVALID); /* nor is the folder itself looked at */
    CHECK_STR(d.text, "there is no such file below the folder of --media-path");
    static const char *const REFUSED[] = {"file://",    "file://nothing", "file:///etc/passwd", "file://../x",
                                          "file://%zz", "file://a%00",    "file://a%2",         "file://sub"};
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        CHECK_INT(fetch(CHAT_IMAGE, REFUSED[i], 100, "", &d), ERR_INVALID);
        CHECK_STR(d.name, "remote_media_refused");
    }
}

/* One image or video of a folder that is written so. */
static err_code fetch_below(const char *below, chat_part_kind kind, const char *url, err_detail *d)
{
    const remote_media rm = {.folder = below, .dir = "/tmp", .max_video = 100};
    chat_input *in = chat_input_create(1 << 20);
    chat_part part = {.kind = kind, .url = url, .param = "p"};
    chat_message m = {.parts = &part, .n_parts = 1};
    memset(d, 0, sizeof *d);
    in->messages = &m;
    in->n_messages = 1;
    const err_code err = remote_media_fetch(&rm, in, NULL, d);
    CHECK(err || part.data_bytes == 5);
    in->messages = NULL;
    in->n_messages = 0;
    chat_input_destroy(in);
    return err;
}

/* The folder may be written with slashes behind it, or be a link: a file is named by either of its places, and by no name that
 * only begins like one of them. */
static void test_places(void)
{
    char link[PATH], slashes[PATH], other[PATH], url[2 * PATH_MAX];
    err_detail d;
    snprintf(link, sizeof link, "%s_link", folder);
    snprintf(slashes, sizeof slashes, "%s///", folder);
    snprintf(other, sizeof other, "%s_other", folder);
    CHECK(symlink(folder, link) == 0);
    const char *const folders[] = {folder, slashes, link};
    for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
        const struct {
            const char *begin, *end;
            bool is_there;
        } CASES[] = {{folder, "/a b.png", true},      {link, "/a b.png", i == 2}, {other, "/a b.png", false},
                     {folder, "//a b.png", false},    {folder, "/", false},       {folder, "", false},
                     {folder, "/./a b.png", false},   {"", "/a b.png", false},    {"", "a b.png", true},
                     {folder, "/sub/a b.png", false}, {folder, "a b.png", false}};
        for (size_t k = 0; k < ARRAY_LEN(CASES); k++) {
            snprintf(url, sizeof url, "file://%s%s", CASES[k].begin, CASES[k].end);
            CHECK_INT(fetch_below(folders[i], CHAT_IMAGE, url, &d), CASES[k].is_there ? ERR_OK : ERR_INVALID);
        }
    }
    CHECK_INT(fetch_below(other, CHAT_IMAGE, "file:///elsewhere", &d), ERR_INVALID); /* the folder is gone */
    for (size_t n = PATH_MAX - 2; n <= PATH_MAX; n++) { /* the longest path, and longer ones */
        snprintf(url, sizeof url, "file://%0*d", (int)n, 0);
        CHECK_INT(fetch_below(folder, CHAT_IMAGE, url, &d), ERR_INVALID);
        CHECK_STR(d.name, "remote_media_refused");
    }
    CHECK(unlink(link) == 0);
    CHECK_INT(fetch_below("/proc", CHAT_VIDEO, "file://meminfo", &d),
              ERR_LIMIT); /* it holds more than it says */
    CHECK_STR(d.name, "video_too_large");
}

/* Where a call of the system fails there is an error, and no descriptor is left. */
static void test_failing(void)
{
    static const struct {
        const char *call;
        err_code err;
        const char *name;
    } CASES[] = {{"pread", ERR_INVALID, "remote_media_failed"},
                 {"fstat", ERR_INVALID, "remote_media_refused"}};
    char link[PATH], url[PATH + 32];
    err_detail d;
    snprintf(link, sizeof link, "%s_link", folder);
    CHECK(symlink(folder, link) == 0);
    snprintf(url, sizeof url, "file://%s/a b.png", folder);
    const size_t n_open = open_files();
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        for (int kind = 0; kind < 2; kind++) {
            one_fails(CASES[i].call, 1);
            CHECK_INT(fetch_below(link, kind ? CHAT_VIDEO : CHAT_IMAGE, url, &d), CASES[i].err);
            CHECK(one_fails_over());
            CHECK_STR(d.name, CASES[i].name);
        }
    }
    for (int n = 2; n <= 3; n++) { /* at its end */
        one_fails("pread", n);
        CHECK_INT(fetch_below(link, CHAT_VIDEO, url, &d), ERR_INVALID);
        CHECK_STR(d.name, "remote_media_failed");
    }
    one_fails("pread", 4); /* what was fetched is read again */
    CHECK_INT(fetch_below(link, CHAT_IMAGE, url, &d), ERR_IO);
    CHECK_STR(d.text, "a fetched file cannot be read");
    CHECK(one_fails_over());
    CHECK_INT(open_files(), n_open);
    CHECK(unlink(link) == 0);
}

/* A video that is a list of images, some of which are there already; images count against their own limit. */
static void test_list(void)
{
    err_detail d = {0};
    put("1", "one");
    put("2", "second");
    const remote_media rm = {.folder = folder, .dir = "/tmp", .max_video = 1};
    chat_file list[3] = {
        {.url = "file://1"}, {.data = (const uint8_t *)"here", .bytes = 4}, {.url = "file://2"}};
    chat_part part = {.kind = CHAT_VIDEO, .video = {.list = list, .n_list = 3}, .param = "p"};
    chat_message m = {.parts = &part, .n_parts = 1};
    chat_input *in = chat_input_create(1 << 20);
    in->messages = &m;
    in->n_messages = 1;
    CHECK(remote_media_wanted(in));
    CHECK_OK(remote_media_fetch(&rm, in, NULL, &d), d);
    CHECK(list[0].bytes == 3 && memcmp(list[0].data, "one", 3) == 0);
    CHECK(list[1].bytes == 4 && list[2].bytes == 6 && memcmp(list[2].data, "second", 6) == 0);
    CHECK_INT(in->n_fds, 0);
    list[2].url = "file://3";
    CHECK_INT(remote_media_fetch(&rm, in, NULL, &d), ERR_INVALID);
    CHECK_STR(d.param, "p");
    CHECK_INT(remote_media_fetch(&rm, in, NULL, NULL), ERR_INVALID);
    list[0].url = "file://3"; /* what follows is not read */
    list[2].url = "file://2";
    CHECK_INT(remote_media_fetch(&rm, in, NULL, &d), ERR_INVALID);
    list[0].url = list[2].url = NULL;
    CHECK(!remote_media_wanted(in));
    part = (chat_part){.kind = CHAT_TEXT, .url = "file://1"};
    CHECK(!remote_media_wanted(in));
    in->messages = NULL;
    in->n_messages = 0;
    chat_input_destroy(in);
}

/* Two videos share one limit. */
static void test_sum(void)
{
    err_detail d = {0};
    put("v", "0123456789");
    for (uint64_t max = 19; max <= 20; max++) {
        const remote_media rm = {.folder = folder, .dir = "/tmp", .max_video = max};
        chat_part parts[2] = {{.kind = CHAT_VIDEO, .url = "file://v"},
                              {.kind = CHAT_VIDEO, .url = "file://v"}};
        chat_message m = {.parts = parts, .n_parts = 2};
        chat_input *in = chat_input_create(1 << 20);
        in->messages = &m;
        in->n_messages = 1;
        CHECK_INT(remote_media_fetch(&rm, in, NULL, &d), max == 20 ? ERR_OK : ERR_LIMIT);
        CHECK_INT(in->n_fds, max == 20 ? 2 : 1);
        in->messages = NULL;
        in->n_messages = 0;
        chat_input_destroy(in);
    }
}

int main(void)
{
    folder_make(folder);
    test_check();
    test_files();
    test_places();
    test_failing();
    test_list();
    test_sum();
    CHECK_DONE();
}
