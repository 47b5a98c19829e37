/* What the built-in tools of a folder say: what is listed, read and searched. What comes of folders that are deep, large or
 * hard to read is recorded, with each call of the system failing once. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/limits.h"
#include "server/mcp/mcp_builtin.h"
#include "server/mcp/mcp_decode.h"
#include "tests/folder.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/recorded.h"
#include "tests/said.h"

enum { PATH = 1024 };

static mcp_server_config config;
static char root[FOLDER_NAME];

static void put(const char *name, const char *data, size_t n)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

/* How often somebody still waits when that is asked; below 0: always. */
static int n_waits = -1;

static bool somebody_waits(void *ctx)
{
    (void)ctx;
    n_waits -= n_waits > 0;
    return n_waits != 0;
}

/* The call that fails, and when; NULL and 0: they are counted, below 0: nothing of it. */
static const char *fails;
static int n_fails = -1;
static bool has_failed;

/* What a tool says to arguments; "!" in front where it failed. */
static const char *said(bool (*tool)(const builtin_call *, bytes *), const char *arguments)
{
    static bytes out;
    json_doc *doc = NULL;
    bytes_deinit(&out);
    out = bytes_empty(1 << 20);
    CHECK(json_parse(&doc, arguments, strlen(arguments), 8, NULL) == ERR_OK);
    const builtin_call call = {.config = &config, .arguments = json_root(doc), .may_go_on = somebody_waits};
    bytes text = bytes_empty(1 << 20);
    if (n_fails >= 0) {
        one_fails(fails, n_fails);
    }
    const bool ok = tool(&call, &text);
    has_failed = one_fails_over();
    bytes_append_str(&out, ok ? "" : "!");
    bytes_append_str(&out, bytes_str(&text));
    bytes_append_str(&out, text.failed ? "(no memory)" : "");
    bytes_deinit(&text);
    json_free(doc);
    return bytes_str(&out);
}

static void test_list(void)
{
    char path[PATH], gone[] = "/nothing of this name";
    config.folder = gone;
    CHECK_STR(said(mcp_folder_list, "{}"),
              "!.: there is nothing of this name; list_folder shows what there is");
    config.folder = root;
    CHECK_STR(said(mcp_folder_list, "{}"), "The folder is empty.\n");
    put("b.txt", "hello", 5);
    put("a\x01.md", "", 0);
    snprintf(path, sizeof path, "%s/sub", root);
    CHECK(mkdir(path, 0700) == 0);
    snprintf(path, sizeof path, "%s/link", root);
    CHECK(symlink("b.txt", path) == 0);
    snprintf(path, sizeof path, "%s/pipe", root);
    CHECK(mkfifo(path, 0600) == 0);
    CHECK_STR(said(mcp_folder_list, "{}"),
              "a.md (0 bytes)\nb.txt (5 bytes)\nlink (a link, not followed)\npipe (no file)\nsub/\n");
    CHECK_STR(said(mcp_folder_list, "{\"path\":\"./sub//\"}"), "The folder is empty.\n");
    CHECK_STR(said(mcp_folder_list, "{\"path\":\"nothing\"}"),
              "!nothing: there is nothing of this name; list_folder shows what there is");
    CHECK_STR(said(mcp_folder_list, "{\"path\":\"b.txt\"}"), "!b.txt: it is no folder, or behind a link");
    CHECK_STR(said(mcp_folder_list, "{\"path\":\"sub/../b.txt\"}"),
              "!the path may not have .. in it: nothing outside of the folder is read");
    char arguments[PATH + 64];
    snprintf(arguments, sizeof arguments, "{\"path\":\"%s/sub\"}", root); /* absolute, but below it */
    CHECK_STR(said(mcp_folder_list, arguments), "The folder is empty.\n");
    for (int i = 0; i < 502; i++) {
        char name[32];
        snprintf(name, sizeof name, "sub/%03d", i);
        put(name, "", 0);
    }
    const char *many = said(mcp_folder_list, "{\"path\":\"sub\"}");
    CHECK(strstr(many, "499 (0 bytes)\n(cut here: 2 more)\n") && !strstr(many, "500 ("));
    for (int i = 0; i < 502; i++) {
        snprintf(path, sizeof path, "%s/sub/%03d", root, i);
        CHECK(unlink(path) == 0);
    }
}

static void test_read(void)
{
    put("lines", "1\n2\n3\n4", 7);
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"lines\"}"), "1\n2\n3\n4");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"lines\",\"first_line\":2,\"lines\":2}"),
              "2\n3\n\n(cut here, after line 3; read_file with first_line 4 goes on)");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"lines\",\"first_line\":4}"), "4");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"lines\",\"first_line\":5}"), "(the file has 4 lines)");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"a\\u0001.md\"}"), "The file is empty.");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"sub\"}"),
              "!this is a folder: list_folder shows what is in it");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"link\"}"),
              "!link: it is a link, and links are not followed");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"pipe\"}")[0] == '!' ? "!" : "", "!");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"none\"}"),
              "!none: there is nothing of this name; list_folder shows what there is");
    put("latin", "caf\xe9s", 5);
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"latin\"}"), "caf\xc3\xa9s");
    put("image", "\x89PNG\r\n\x1a\n", 8);
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"image\"}"),
              "This file is no text: it is a PNG image of 8 bytes.");
    put("zeros", "ab\0", 3);
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"zeros\"}"),
              "This file is no text: it is binary, of 3 bytes.");
    /* A line that is too long by itself, and lines that are too long together. */
    static char large[70000];
    memset(large, 'x', sizeof large);
    put("wide", large, sizeof large);
    const char *wide = said(mcp_folder_read, "{\"path\":\"wide\"}");
    CHECK(strspn(wide, "x") == 32768 &&
          strstr(wide, "(cut here, after line 1, which is longer; read_file with first_line 2 goes on)"));
    for (size_t i = 999; i < sizeof large; i += 1000) {
        large[i] = '\n';
    }
    put("tall", large, sizeof large);
    const char *tall = said(mcp_folder_read, "{\"path\":\"tall\"}");
    CHECK(strstr(tall, "(cut here, after line 32; read_file with first_line 33 goes on)") != NULL);
    for (size_t i = 0; i < 2200; i++) {
        large[i] = i % 2 ? '\n' : 'y';
    }
    put("many", large, 2200);
    CHECK(strstr(said(mcp_folder_read, "{\"path\":\"many\"}"),
                 "(cut here, after line 1000; read_file with first_line 1001 goes on)") != NULL);
}

static void test_search(void)
{
    put("sub/one.md", "A Quagga here\nnone\nquagga again", 31);
    put("sub/two.txt", "no animal", 9);
    put("sub/.hidden", "quagga", 6);
    put("sub/bin", "quagga\0", 7);
    CHECK_STR(said(mcp_folder_search, "{\"text\":\"quagga\",\"path\":\"sub\"}"),
              "sub/one.md:1: A Quagga here\nsub/one.md:3: quagga again\n");
    CHECK_STR(said(mcp_folder_search, "{\"text\":\"QUAGGA a\"}"), "sub/one.md:3: quagga again\n");
    char one[PATH]; /* names of one letter */
    snprintf(one, sizeof one, "%s/s", root);
    CHECK(mkdir(one, 0700) == 0);
    snprintf(one, sizeof one, "%s/s/t", root);
    CHECK(mkdir(one, 0700) == 0);
    put("s/t/u", "q\n", 2);
    CHECK_STR(said(mcp_folder_search, "{\"name\":\"u\",\"path\":\"s\"}"), "s/t/u\n");
    CHECK_STR(said(mcp_folder_search, "{\"text\":\"q\",\"name\":\"u\"}"), "s/t/u:1: q\n");
    CHECK_STR(said(mcp_folder_list, "{\"path\":\"x\"}"),
              "!x: there is nothing of this name; list_folder shows what there is");
    snprintf(one, sizeof one, "%s/s/t/u", root);
    CHECK(unlink(one) == 0);
    snprintf(one, sizeof one, "%s/s/t", root);
    CHECK(rmdir(one) == 0);
    snprintf(one, sizeof one, "%s/s", root);
    CHECK(rmdir(one) == 0);
    CHECK_STR(said(mcp_folder_search, "{\"name\":\"*.MD\",\"path\":\"sub\"}"), "sub/one.md\n");
    CHECK_STR(said(mcp_folder_search, "{\"name\":\"*.txt\",\"text\":\"quagga\"}"), "Nothing was found.\n");
    CHECK_STR(said(mcp_folder_search, "{}"),
              "!text (what the files say) or name (a pattern like *.md) is needed");
    CHECK_STR(said(mcp_folder_search, "{\"text\":\"x\",\"path\":\"gone\"}"),
              "!gone: there is nothing of this name; list_folder shows what there is");
    CHECK_STR(said(mcp_folder_search, "{\"text\":\"x\",\"path\":\"..\"}")[0] == '!' ? "!" : "", "!");
    /* Long lines are cut around what was found. */
    static char line[1000];
    memset(line, 'z', sizeof line);
    memcpy(line + 500, "needle", 6);
    put("sub/long", line, sizeof line);
    const char *found = said(mcp_folder_search, "{\"text\":\"needle\",\"path\":\"sub\"}");
    CHECK(strncmp(found, "sub/long:1: ... z", 17) == 0 && strstr(found, "needle") &&
          strstr(found, "z ...\n"));
    CHECK_INT(strlen(found), strlen("sub/long:1: ... ") + 300 + strlen(" ...\n"));
    for (size_t i = 1; i < sizeof line; i += 2) {
        line[i] = '\n';
    }
    put("sub/long", line, sizeof line);
    found = said(mcp_folder_search, "{\"text\":\"z\",\"path\":\"sub\"}");
    CHECK(
        strstr(found, "(the search ended early: there may be more matches; a path or a name narrows it)\n") !=
        NULL);
    size_t n = 0;
    for (const char *p = found; (p = strstr(p, "sub/long:")); p++) {
        n++;
    }
    CHECK_INT(n, 100);
}

/* Where a search ends early or leaves something out, and paths and characters at their bounds. */
static void test_search_bounds(void)
{
    static char line[2 * 400 + 7], path[2 * 4096];
    char name[PATH];
    for (size_t i = 0; i < 400; i++) {
        memcpy(line + 2 * i, "\xc3\xa9", 2);
    }
    for (size_t odd = 0; odd < 2; odd++) { /* the cut is in front of a character */
        memcpy(line + 800, odd ? "yneedle" : "needle", 6 + odd);
        put("wide", line, 806 + odd);
        const char *found = said(mcp_folder_search, "{\"text\":\"needle\",\"name\":\"wide\"}");
        CHECK_INT(strncmp(found, "wide:1: ... \xc3\xa9\xc3\xa9", 16), 0);
        CHECK_INT(strlen(found), strlen("wide:1: ... needle\n") + 100 + odd);
    }
    for (off_t more = 0; more < 2; more++) {
        put("large.log", "quokka\n", 7);
        snprintf(name, sizeof name, "%s/large.log", root);
        CHECK(truncate(name, (off_t)LIMIT_TOOL_SEARCHED_FILE_BYTES + more) == 0);
        CHECK_STR(said(mcp_folder_search, "{\"text\":\"quokka\",\"name\":\"*.log\"}"),
                  more ? "Nothing was found.\n(1 files are too large and were not searched)\n"
                       : "Nothing was found.\n"); /* with zeros in it, it is no text */
    }
    CHECK(unlink(name) == 0);
    memset(line, '\n', sizeof line);
    for (int i = 0; i < 3; i++) { /* the first has more than is shown; the others wait */
        snprintf(name, sizeof name, "%s/heap", root);
        CHECK(i > 0 || mkdir(name, 0700) == 0);
        snprintf(name, sizeof name, "%s/heap/%d", root, i);
        CHECK(mkdir(name, 0700) == 0);
        snprintf(name, sizeof name, "heap/%d/f", i);
        for (size_t k = 0; k < 400; k += 2) {
            line[k] = 'w';
        }
        put(name, line, 400);
    }
    CHECK_HAS(said(mcp_folder_search, "{\"text\":\"w\",\"path\":\"heap\"}"),
              "(the search ended early: there may be more matches; a path or a name narrows it)\n");
    size_t n = (size_t)snprintf(path, sizeof path, "{\"text\":\"x\",\"path\":\"");
    for (size_t k = 0; k < 2046; k++) {
        n += (size_t)snprintf(path + n, sizeof path - n, "a/");
    }
    snprintf(path + n, sizeof path - n, "aaa\"}"); /* PATH_MAX has room for its end, too */
    CHECK_HAS(said(mcp_folder_search, path), "there is nothing of this name");
    snprintf(path + n, sizeof path - n, "aaaa\"}");
    CHECK_STR(said(mcp_folder_search, path), "!the path is too long");
}

/* ---- what is recorded ---- */

#define FAILS_WITH(value) (errno = why_it_fails, value)

static int why_it_fails = EIO;

ONE_FAILS(void *, malloc, (size_t n), (n), NULL)
ONE_FAILS(void *, realloc, (void *old, size_t n), (old, n), NULL)
ONE_FAILS(char *, strdup, (const char *text), (text), NULL)
ONE_FAILS(int, fstat, (int fd, struct stat *out), (fd, out), FAILS_WITH(-1))

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...)
{
    return one_fails_now("openat") ? FAILS_WITH(-1) : __real_openat(fd, path, flags);
}

/* What openat is where the compiler looks after its arguments. */
int __wrap___openat_2(int fd, const char *path, int flags);
int __wrap___openat_2(int fd, const char *path, int flags)
{
    return __wrap_openat(fd, path, flags);
}

/* Files that say x as long as they are, so that large ones need no room on the disk. */
static bool says_x;

ssize_t __real_read(int fd, void *out, size_t n);
ssize_t __wrap_read(int fd, void *out, size_t n);
ssize_t __wrap_read(int fd, void *out, size_t n)
{
    const ssize_t got = one_fails_now("read") ? FAILS_WITH(-1) : __real_read(fd, out, n);
    if (says_x && got > 0) {
        memset(out, 'x', (size_t)got);
    }
    return got;
}

/* What is in a folder comes from the last name to the first, whatever the disk's order, and behind it empty files f00000,
 * f00001, ... in the first folder that is looked into. */
static int n_made_up, at_made_up;

static int by_name_backwards(const void *a, const void *b)
{
    return strcmp(((const struct dirent *)b)->d_name, ((const struct dirent *)a)->d_name);
}

static struct {
    DIR *of;
    struct dirent items[1024];
    size_t n, at;
} names;

struct dirent *__real_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d)
{
    static struct dirent made_up;
    if (d != names.of) { /* not of a tool */
        return __real_readdir(d);
    }
    if (names.at < names.n) {
        return &names.items[names.at++];
    }
    snprintf(made_up.d_name, sizeof made_up.d_name, "f%05d", at_made_up);
    return at_made_up < n_made_up ? at_made_up++, &made_up : NULL;
}

DIR *__real_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd);
DIR *__wrap_fdopendir(int fd)
{
    names.of = one_fails_now("fdopendir") ? FAILS_WITH(NULL) : __real_fdopendir(fd);
    names.n = names.at = 0;
    for (struct dirent *e; names.of && names.n < ARRAY_LEN(names.items) && (e = __real_readdir(names.of));) {
        snprintf(names.items[names.n++].d_name, sizeof e->d_name, "%s", e->d_name);
    }
    qsort(names.items, names.n, sizeof *names.items, by_name_backwards);
    return names.of;
}

int __real_closedir(DIR *d);
int __wrap_closedir(DIR *d);
int __wrap_closedir(DIR *d)
{
    names.of = d == names.of ? NULL : names.of;
    return __real_closedir(d);
}

int __real_fstatat(int fd, const char *name, struct stat *out, int flags);
int __wrap_fstatat(int fd, const char *name, struct stat *out, int flags);
int __wrap_fstatat(int fd, const char *name, struct stat *out, int flags)
{
    if (one_fails_now("fstatat")) {
        return FAILS_WITH(-1);
    }
    *out = (struct stat){.st_mode = S_IFREG | 0600};
    return n_made_up > 0 && name[0] == 'f' ? 0 : __real_fstatat(fd, name, out, flags);
}

/* Large files whose text is not looked at. */
static bool is_not_decoded;

void __real_mcp_decode(bytes *out, const char *data, size_t n, const char *charset);
void __wrap_mcp_decode(bytes *out, const char *data, size_t n, const char *charset);
void __wrap_mcp_decode(bytes *out, const char *data, size_t n, const char *charset)
{
    if (!is_not_decoded) {
        __real_mcp_decode(out, data, n, charset);
    }
}

/* The time: so much later at each look after the first. */
static double look_ms;
static int n_looks;

double __wrap_clock_ms(void);
double __wrap_clock_ms(void)
{
    return n_looks++ > 0 ? look_ms : 0.0;
}

static const char *const CALLS[] = {"malloc", "realloc", "strdup", "fdopendir",
                                    "fstat",  "openat",  "read",   "fstatat"};

static const struct {
    const char *name;
    bool (*tool)(const builtin_call *, bytes *);
} TOOLS[] = {{"list", mcp_folder_list}, {"read", mcp_folder_read}, {"search", mcp_folder_search}};

static bytes all;

static const char *ask(const char *name, const char *arguments)
{
    size_t i = 0;
    while (strcmp(TOOLS[i].name, name) != 0) {
        i++;
    }
    n_looks = at_made_up = 0;
    return said(TOOLS[i].tool, arguments);
}

/* In one line: ends of lines are |, a character many times is its number, and a long text its length, beginning and end. */
static void write_said(bytes *out, const char *text)
{
    bytes line = bytes_empty(1 << 20);
    for (size_t i = 0, n; text[i]; i += n) {
        const unsigned char c = (unsigned char)text[i];
        n = 1;
        while (text[i + n] == text[i]) {
            n++;
        }
        n = n > 8 ? n : 1;
        if (n > 1) {
            bytes_printf(&line, "[%zu times %c]", n, c);
        } else if ((c < ' ' && c != '\n') || c == 0x7f) {
            bytes_printf(&line, "[%#x]", c);
        } else {
            bytes_append_char(&line, c == '\n' ? '|' : (char)c);
        }
    }
    if (line.len > 500) {
        bytes_printf(out, "%zu bytes: %.100s ... %s", strlen(text), bytes_str(&line),
                     bytes_str(&line) + line.len - 200);
    } else {
        bytes_append_str(out, line.len > 0 ? bytes_str(&line) : "(nothing)");
    }
    bytes_deinit(&line);
}

static void record(const char *what, const char *name, const char *arguments)
{
    bytes line = bytes_empty(1 << 20);
    write_said(&line, ask(name, arguments));
    bytes_printf(&all, "%s%s%s %s: %s\n", what, what[0] ? ", " : "", name, arguments, bytes_str(&line));
    bytes_deinit(&line);
}

/* Each call of the system that this makes fails once, and nobody waits from each time on that this is asked. */
static void record_failures(const char *name, const char *arguments)
{
    int n_calls[ARRAY_LEN(CALLS)];
    record("whole", name, arguments);
    n_waits = 1 << 20;
    n_fails = 0;
    (void)ask(name, arguments);
    const int n_asked = (1 << 20) - n_waits;
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        n_calls[i] = one_fails_counted(CALLS[i]);
    }
    for (size_t i = 0; i <= ARRAY_LEN(CALLS); i++) {
        const bool is_call = i < ARRAY_LEN(CALLS);
        for (int n = 1; n <= (is_call ? n_calls[i] : n_asked); n++) {
            bytes line = bytes_empty(1 << 20);
            fails = is_call ? CALLS[i] : NULL;
            n_fails = is_call ? n : -1;
            n_waits = is_call ? -1 : n;
            write_said(&line, ask(name, arguments));
            CHECK(has_failed || !is_call);
            one_fails_say(&all, is_call ? CALLS[i] : "nobody waits at", n, bytes_str(&line));
            bytes_deinit(&line);
        }
    }
    fails = NULL;
    n_fails = n_waits = -1;
    one_fails_say(&all, NULL, 0, NULL);
}

static void make(const char *name)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%s", root, name);
    CHECK(mkdir(path, 0700) == 0);
}

static void test_failures(void)
{
    static const int WHY[] = {ENOENT, ELOOP, ENOTDIR, EACCES, EPERM, EISDIR, EIO};
    make("d");
    make("d/a");
    make("d/a/b");
    make("d/.c");
    put("d/one", "quagga\n2\n", 9);
    put("d/a/two", "1\nquagga", 8);
    put("d/a/b/three", "quagga", 6);
    put("d/.c/four", "quagga", 6);
    record_failures("list", "{\"path\":\"d\"}");
    record_failures("list", "{\"path\":\"d/a/b\"}");
    record_failures("read", "{\"path\":\"d/a/two\"}");
    record_failures("search", "{\"path\":\"d\",\"text\":\"quagga\"}");
    record_failures("search", "{\"path\":\"d\",\"name\":\"t*\"}");
    for (size_t i = 0; i < ARRAY_LEN(WHY); i++) {
        why_it_fails = WHY[i];
        fails = "openat";
        n_fails = 2;
        record(strerror(WHY[i]), "read", "{\"path\":\"d/one\"}");
        n_fails = 1;
        record(strerror(WHY[i]), "list", "{\"path\":\"d\"}");
        record(strerror(WHY[i]), "search", "{\"path\":\"d\",\"text\":\"quagga\"}");
        fails = "read";
        record(strerror(WHY[i]), "read", "{\"path\":\"d/one\"}");
    }
    fails = NULL;
    n_fails = -1;
    why_it_fails = EIO;
}

/* More names than are looked at: real ones, then those that are made up. */
static void test_crowd(void)
{
    static const int MORE[] = {-2, -1, 0, 5};
    make("crowd");
    make("crowd/sub");
    put("crowd/sub/inner.md", "", 0);
    for (size_t i = 0; i < ARRAY_LEN(MORE); i++) {
        char what[32];
        n_made_up = LIMIT_TOOL_ENTRIES + MORE[i];
        snprintf(what, sizeof what, "%d made up", n_made_up);
        record(what, "list", "{\"path\":\"crowd\"}");
        record(what, "search", "{\"path\":\"crowd\",\"name\":\"*r.md\"}");
        record(what, "search", "{\"path\":\"crowd\",\"name\":\"f00010\"}");
    }
    n_made_up = 0;
    for (look_ms = 1000.0 * LIMIT_TOOL_SEARCH_S; look_ms < 1000.0 * LIMIT_TOOL_SEARCH_S + 2; look_ms++) {
        record(look_ms > 1000.0 * LIMIT_TOOL_SEARCH_S ? "late" : "in time", "search",
               "{\"path\":\"crowd\",\"name\":\"*r.md\"}");
    }
    look_ms = 0.0;
}

/* Folders in folders: as deep as is searched, and with names as long as a path may be. */
static void test_depth(void)
{
    enum { DEEP = 67, LONG = 16 };
    static char name[DEEP * 10 + 16], step[256];
    size_t n = (size_t)snprintf(name, sizeof name, "deep");
    make(name);
    for (int i = 1; i < DEEP; i++) {
        n += (size_t)snprintf(name + n, sizeof name - n, "/folder-%02d", i);
        make(name);
        snprintf(name + n, sizeof name - n, "/file");
        put(name, "", 0);
    }
    record("", "search", "{\"path\":\"deep\",\"name\":\"file\"}");
    /* A path of 4,095 bytes is one, a longer one is not. */
    static const size_t LENGTHS[] = {53, 54, 55};
    memset(step, 'n', sizeof step - 1);
    CHECK(chdir(root) == 0);
    for (int i = 0; i < LONG; i++) {
        step[i < LONG - 1 ? 255 : 200] = '\0';
        CHECK(mkdir(step, 0700) == 0 && chdir(step) == 0);
    }
    for (size_t i = 0; i < 2 * ARRAY_LEN(LENGTHS); i++) {
        memset(step, 'f', sizeof step - 1);
        step[LENGTHS[i / 2]] = '\0';
        const int fd = i % 2 ? -1 : open(step, O_CREAT | O_WRONLY, 0600);
        CHECK(i % 2 ? unlink(step) == 0 : fd >= 0);
        if (fd >= 0) {
            close(fd);
            record("a long path", "search", "{\"name\":\"fffff*\"}");
        }
    }
    memset(step, 'n', sizeof step - 1);
    for (int i = LONG; i-- > 0;) {
        step[i < LONG - 1 ? 255 : 200] = '\0';
        CHECK(chdir("..") == 0 && rmdir(step) == 0);
        step[200] = 'n';
    }
    CHECK(chdir("/") == 0);
}

/* As much of files as is read and searched, and more. */
static void test_large(void)
{
    enum { MANY = 130 };
    char name[PATH];
    make("large");
    says_x = true;
    for (off_t i = -1; i <= 1; i++) {
        put("large/one", "", 0);
        snprintf(name, sizeof name, "%s/large/one", root);
        CHECK(truncate(name, (off_t)LIMIT_TOOL_FILE_BYTES + i) == 0);
        record(i > 0 ? "too large" : "large", "read", "{\"path\":\"large/one\"}");
        record(i > 0 ? "too large" : "large", "read", "{\"path\":\"large/one\",\"first_line\":2}");
    }
    CHECK(unlink(name) == 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "large/%03d", i);
        put(name, "", 0);
        snprintf(name, sizeof name, "%s/large/%03d", root, i);
        CHECK(truncate(name, (off_t)LIMIT_TOOL_SEARCHED_FILE_BYTES) == 0);
    }
    is_not_decoded = true;
    record("130 files of 4 MiB", "search", "{\"path\":\"large\",\"text\":\"quagga\"}");
    CHECK(unlink(name) == 0);
    record("129 files of 4 MiB", "search", "{\"path\":\"large\",\"text\":\"quagga\"}");
    says_x = is_not_decoded = false;
}

/* What a file is called that is no text, and lines of which a part is shown. */
static void test_shown(void)
{
    static const struct {
        const char *data;
        size_t n;
    } KINDS[] = {{"\x89PNG", 4},
                 {"\xff\xd8\xff", 3},
                 {"GIF8", 4},
                 {"%PDF", 4},
                 {"PK\x03\x04", 4},
                 {"\x7f"
                  "ELF",
                  4},
                 {"\x1f\x8b", 2},
                 {"SQLite format 3", 15}};
    static char line[1000];
    char name[32], what[64];
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        for (size_t less = 0; less < 2; less++) { /* one byte less is text */
            put("kind", KINDS[i].data, KINDS[i].n - less);
            record(less ? "less" : "as it is", "read", "{\"path\":\"kind\"}");
        }
    }
    for (size_t n = 299; n <= 302; n++) {
        memset(line, 'z', sizeof line);
        memcpy(line, "needle", 6);
        put("line", line, n);
        snprintf(what, sizeof what, "%zu bytes", n);
        record(what, "search", "{\"name\":\"line\",\"text\":\"needle\"}");
    }
    for (size_t at = 149; at <= 152; at++) {
        memset(line, 'z', sizeof line);
        memcpy(line + at, "nEEdle", 6);
        put("line", line, 1000);
        snprintf(what, sizeof what, "behind %zu bytes", at);
        record(what, "search", "{\"name\":\"line\",\"text\":\"needlez\"}");
    }
    put("line", "first\n\nneedle", 13);
    record("the end", "search", "{\"name\":\"LINE\",\"text\":\"needle\"}");
    record("further", "search", "{\"name\":\"LINE\",\"text\":\"needles\"}");
    for (int i = 0; i < 102; i++) { /* matches shown */
        snprintf(name, sizeof name, "q%03d", i);
        put(name, "", 0);
        if (i >= 98) {
            snprintf(what, sizeof what, "%d files", i + 1);
            record(what, "search", "{\"name\":\"q???\"}");
        }
    }
}

/* Paths that begin as the folder's does, or with dots. */
static void test_odd_paths(void)
{
    char text[200], expected[200];
    put(".x", "dotted", 6);
    put("..x", "more", 4);
    CHECK_STR(said(mcp_folder_read, "{\"path\":\".x\"}"), "dotted");
    CHECK_STR(said(mcp_folder_read, "{\"path\":\"./..x\"}"), "more");
    CHECK_HAS(said(mcp_folder_read, "{\"path\":\"..\"}"), "!the path may not have ..");
    snprintf(text, sizeof text, "{\"path\":\"%s/.x\"}", root);
    CHECK_STR(said(mcp_folder_read, text), "dotted");
    snprintf(text, sizeof text, "{\"path\":\"%s.x\"}", root); /* is another one, which is looked for inside */
    snprintf(expected, sizeof expected, "!%s.x: there is nothing of this name", root + 1);
    CHECK_HAS(said(mcp_folder_read, text), expected);
    snprintf(text, sizeof text, "{\"path\":\"%s\"}", root);
    CHECK_STR(said(mcp_folder_read, text), "!this is a folder: list_folder shows what is in it");
}

/* Of a file that is too large the last line that is read is not the end. */
static void test_far_end(void)
{
    bytes text = bytes_empty(2 * LIMIT_TOOL_FILE_BYTES);
    char asks[100], expected[200];
    long long line = 1;
    while (text.len < LIMIT_TOOL_FILE_BYTES) {
        bytes_append_str(&text, "0123456789abcde\n");
        line++;
    }
    put("far", text.data, text.len);
    snprintf(asks, sizeof asks, "{\"path\":\"far\",\"first_line\":%lld}", line - 1);
    CHECK_STR(said(mcp_folder_read, asks), "0123456789abcde\n");
    bytes_append_str(&text, "more\n");
    put("far", text.data, text.len);
    snprintf(expected, sizeof expected,
             "0123456789abcde\n\n(cut here, after line %lld; read_file with first_line %lld goes on; the end "
             "of the file is too far to be read)",
             line - 1, line);
    CHECK_STR(said(mcp_folder_read, asks), expected);
    bytes_deinit(&text);
}

/* A search that has no memory for one folder of several says that it ended early. */
static void test_short_search(void)
{
    bool more = true;
    for (int i = 0; i < 5; i++) {
        char name[16], path[PATH];
        snprintf(name, sizeof name, i ? "several/%d" : "several", i);
        snprintf(path, sizeof path, "%s/%s", root, name);
        CHECK_INT(mkdir(path, 0700), 0);
        snprintf(path, sizeof path, "%s/file", name);
        put(path, "x", 1);
    }
    for (int n = 1; more && n < 100; n++) {
        fails = "strdup";
        n_fails = n;
        const char *text = said(mcp_folder_search, "{\"path\":\"several\",\"name\":\"file\"}");
        more = has_failed;
        CHECK((strstr(text, "there was no memory for more") != NULL) == more);
    }
    n_fails = -1;
    CHECK(!more);
}

static void test_recorded(void)
{
    bytes_init(&all, 1 << 20);
    test_failures();
    test_crowd();
    test_depth();
    test_large();
    test_shown();
    recorded_check("server/mcp/folder.txt", bytes_str(&all));
    bytes_deinit(&all);
}

int main(void)
{
    folder_make(root);
    config.folder = root;
    test_list();
    test_read();
    test_search();
    test_search_bounds();
    test_recorded();
    test_odd_paths();
    test_far_end();
    test_short_search();
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
