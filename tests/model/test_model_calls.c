/* What a model reads and writes, with each call of the system failing once: what is said then, and what is left behind.
 * tests/model/model_calls.txt has what comes of it. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/model/tiny.h"
#include "tests/model/tool.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/recorded.h"

#include "base/log.h"
#include "model/checkpoint/checkpoint.h"
#include "model/model.h"
#include "model/probe.h"

#define EIO_OF(value) (errno = EIO, value)

ONE_FAILS(int, mkdir, (const char *path, mode_t mode), (path, mode), EIO_OF(-1))
ONE_FAILS(int, rename, (const char *from, const char *to), (from, to), EIO_OF(-1))
ONE_FAILS(int, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n), ENOSPC)
ONE_FAILS(int, stat, (const char *path, struct stat *out), (path, out), EIO_OF(-1))
ONE_FAILS(int, fstat, (int fd, struct stat *out), (fd, out), EIO_OF(-1))
ONE_FAILS(int, access, (const char *path, int how), (path, how), EIO_OF(-1))
ONE_FAILS(DIR *, opendir, (const char *path), (path), EIO_OF(NULL))
ONE_FAILS(FILE *, fopen, (const char *path, const char *how), (path, how), EIO_OF(NULL))
ONE_FAILS(int, fclose, (FILE * file), (file), (__real_fclose(file), EIO_OF(EOF)))
ONE_FAILS(size_t, fwrite, (const void *data, size_t size, size_t n, FILE *file), (data, size, n, file),
          EIO_OF(0))
ONE_FAILS(ssize_t, read, (int fd, void *out, size_t n), (fd, out, n), EIO_OF(-1))
ONE_FAILS(void *, mmap, (void *at, size_t n, int may, int how, int fd, off_t from),
          (at, n, may, how, fd, from), EIO_OF(MAP_FAILED))
ONE_FAILS(int, msync, (void *at, size_t n, int how), (at, n, how), EIO_OF(-1))

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode)
{
    return one_fails_now("open") ? EIO_OF(-1) : __real_open(path, flags, mode);
}

static const char *const CALLS[] = {
    "open",  "fstat", "read",   "mmap",   "stat",  "access",          "opendir",
    "fopen", "mkdir", "fwrite", "fclose", "msync", "posix_fallocate", "rename"};

static char folder[FOLDER_NAME], gguf[FOLDER_NAME + 8], made[FOLDER_NAME + 8], cache[FOLDER_NAME + 8];
static compute *c;

/* ---- what is done ---- */

static err_code convert(err_detail *d)
{
    return model_convert(check_data("tiny"), made,
                         &(quantize_options){.layer_bits = 4, .head_bits = 8, .c = c}, d);
}

static err_code open_as(const char *path, int n_bits, err_detail *d)
{
    const model_open_options mo = {
        .weights_only = true,
        .quantize = {.layer_bits = n_bits, .head_bits = n_bits, .c = n_bits ? c : NULL}};
    model *m = NULL;
    const err_code err = model_open(&m, path, &mo, d);
    model_close(m);
    return err;
}

static err_code open_in_blocks(err_detail *d)
{
    return open_as(check_data("tiny"), 8, d);
}

static err_code open_folder(err_detail *d)
{
    return open_as(check_data("tiny"), 0, d);
}

static err_code open_gguf(err_detail *d)
{
    return open_as(gguf, 0, d);
}

static err_code probe(err_detail *d)
{
    model_probe p;
    const err_code err = model_probe_at(&p, check_data("tiny"), d);
    return err ? err : model_probe_at(&p, gguf, d);
}

/* ---- what is said of it ---- */

/* The text without what differs from run to run: folders, names of files in the cache, our own number. */
static void say_plain(bytes *out, const char *text)
{
    enum { HEX = 64 };
    char own[32];
    snprintf(own, sizeof own, ".%ld.part", (long)getpid());
    static const char data[] = PARLEY_SOURCE_DIR "/tests/data";
    while (*text) {
        if (strncmp(text, folder, strlen(folder)) == 0) {
            bytes_append_str(out, "FOLDER");
            text += strlen(folder);
        } else if (strncmp(text, data, strlen(data)) == 0) {
            bytes_append_str(out, "DATA");
            text += strlen(data);
        } else if (strspn(text, "0123456789abcdef") == HEX) {
            bytes_append_str(out, "KEY");
            text += HEX;
        } else if (strncmp(text, own, strlen(own)) == 0) {
            bytes_append_str(out, ".PID.part");
            text += strlen(own);
        } else {
            bytes_append_char(out, *text++);
        }
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The files of a folder, which is then removed if it is one that was made. */
static void say_files(bytes *out, const char *path, bool removes)
{
    char *names[32];
    size_t n = 0;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d)) && n < ARRAY_LEN(names);) {
        if (e->d_name[0] != '.') {
            names[n++] = strdup(e->d_name);
        }
    }
    if (d) {
        bytes_append_str(out, "; files:");
        closedir(d);
    }
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++) {
        bytes_append_char(out, ' ');
        say_plain(out, names[i]);
        free(names[i]);
    }
    if (removes) {
        folder_remove(path);
    }
}

/* Once with a call failing (NULL: none), and what is there afterwards; made, and unless it is kept the cache, are removed. */
static void run_once(bytes *out, err_code (*fn)(err_detail *d), const char *call, int n, bool keeps,
                     bool *had)
{
    char dir[FOLDER_NAME + 20];
    err_detail d = {0};
    one_fails(call, n);
    const err_code err = fn(&d);
    *had = one_fails_over();
    bytes_append_str(out, err_name(err));
    bytes_append_str(out, err ? ": " : "");
    say_plain(out, err ? d.text : "");
    say_files(out, made, true);
    snprintf(dir, sizeof dir, "%s/parley", cache);
    say_files(out, dir, !keeps);
}

static void check(bytes *out, const char *name, err_code (*fn)(err_detail *d), bool keeps)
{
    int most[ARRAY_LEN(CALLS)];
    bool had;
    bytes text = bytes_empty(1 << 16);
    run_once(&text, fn, NULL, 0, keeps, &had);
    bytes_printf(out, "%s: %s\n", name, bytes_str(&text));
    if (keeps) { /* it is there now */
        bytes_clear(&text);
        run_once(&text, fn, NULL, 0, keeps, &had);
    }
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        most[i] = one_fails_counted(CALLS[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        for (int n = 1; n <= most[i]; n++) {
            bytes_clear(&text);
            run_once(&text, fn, CALLS[i], n, keeps, &had);
            CHECK(had);
            one_fails_say(out, CALLS[i], n, bytes_str(&text));
        }
    }
    one_fails_say(out, NULL, 0, NULL);
    bytes_deinit(&text);
}

int main(void)
{
    err_detail d = {0};
    bytes out = bytes_empty(1 << 20);
    log_set_level(LOG_OFF);
    folder_make(folder);
    snprintf(made, sizeof made, "%s/made", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    snprintf(gguf, sizeof gguf, "%s/m.gguf", folder);
    setenv("XDG_CACHE_HOME", cache, 1);
    CHECK_INT(tool_run_3("make_gguf", check_data("tiny_gpt_oss"), gguf, "bf16"), 0);
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 1}, &d), d);
    check(&out, "a folder", open_folder, false);
    check(&out, "GGUF", open_gguf, false);
    check(&out, "what both are", probe, false);
    check(&out, "in blocks", open_in_blocks, false);
    check(&out, "in blocks that were kept", open_in_blocks, true);
    check(&out, "converted", convert, false);
    recorded_check("model/model_calls.txt", bytes_str(&out));
    bytes_deinit(&out);
    compute_destroy(c);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
