/* What a model reads and writes, with each call of the system failing once: what is said then, and what is left behind.
 * tests/model/model_calls.txt has what comes of it. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/folder.h"
#include "tests/model/random_families.h"
#include "tests/model/tiny.h"
#include "tests/model/tool.h"
#include "tests/one_fails.h"
#include "tests/open_files.h"
#include "tests/recorded.h"

#include "base/log.h"
#include "model/checkpoint/checkpoint.h"
#include "model/checkpoint/tensor_writer.h"
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

/* In an arena most allocations take no memory of the system: here each of them can fail. */
ONE_FAILS(void *, arena_alloc, (arena * a, size_t n), (a, n), NULL)
ONE_FAILS(void *, arena_calloc, (arena * a, size_t n, size_t size), (a, n, size), NULL)
ONE_FAILS(char *, arena_strdup, (arena * a, const char *text, size_t n), (a, text, n), NULL)

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode)
{
    return one_fails_now("open") ? EIO_OF(-1) : __real_open(path, flags, mode);
}

static const char *const CALLS[] = {
    "open",  "fstat", "read",   "mmap",   "stat",  "access",          "opendir",
    "fopen", "mkdir", "fwrite", "fclose", "msync", "posix_fallocate", "rename",
    NULL};
static const char *const IN_ARENAS[] = {"arena_alloc", "arena_calloc", "arena_strdup", NULL};

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

static char changed[64], changed_gguf[80]; /* a folder, and a file of it */

static err_code open_changed(err_detail *d)
{
    return open_as(changed, 0, d);
}

static err_code open_changed_gguf(err_detail *d)
{
    return open_as(changed_gguf, 0, d);
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
        if (changed[0] && strncmp(text, changed, strlen(changed)) == 0) {
            bytes_append_str(out, "CHANGED");
            text += strlen(changed);
        } else if (strncmp(text, folder, strlen(folder)) == 0) {
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

static void check(bytes *out, const char *name, const char *const *calls, err_code (*fn)(err_detail *d),
                  bool keeps)
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
    for (size_t i = 0; calls[i]; i++) {
        most[i] = one_fails_counted(calls[i]);
    }
    for (size_t i = 0; calls[i]; i++) {
        for (int n = 1; n <= most[i]; n++) {
            bytes_clear(&text);
            run_once(&text, fn, calls[i], n, keeps, &had);
            CHECK(had);
            one_fails_say(out, calls[i], n, bytes_str(&text));
        }
    }
    one_fails_say(out, NULL, 0, NULL);
    bytes_deinit(&text);
}

/* Families of which something is changed when they are opened: the order of rows, decays, experts, names. */
static void check_families(bytes *out)
{
    static const char *const IN_FOLDERS[] = {"qwen3_next", "qwen3_vl_moe", "gpt_oss", "gemma4"},
                             *const IN_FILES[] = {"llama", "qwen3_5", "gemma4_text"};
    for (size_t i = 0; i < ARRAY_LEN(IN_FOLDERS) + ARRAY_LEN(IN_FILES); i++) {
        const bool is_file = i >= ARRAY_LEN(IN_FOLDERS);
        const char *name = is_file ? IN_FILES[i - ARRAY_LEN(IN_FOLDERS)] : IN_FOLDERS[i];
        char title[64];
        size_t at = 0;
        while (strcmp(RANDOM_FAMILIES[at].name, name) != 0) {
            at++;
        }
        random_checkpoint_make(changed, RANDOM_FAMILIES[at].config, RANDOM_FAMILIES[at].forms);
        snprintf(changed_gguf, sizeof changed_gguf, "%s/m.gguf", changed);
        CHECK(!is_file || tool_run_3("make_gguf", changed, changed_gguf, "bf16") == 0);
        snprintf(title, sizeof title, "%s %s", is_file ? "GGUF of" : "a folder of", name);
        check(out, title, IN_ARENAS, is_file ? open_changed_gguf : open_changed, false);
    }
}

/* ---- paths that are long ---- */

enum { PATH_ROOM = 4200, SHORT = 4050, LONG = 4100 };

/* A path of n bytes: what stands between both ends changes nothing. */
static const char *path_of(const char *begin, const char *end, size_t n)
{
    static char path[PATH_ROOM];
    size_t at = (size_t)snprintf(path, sizeof path, "%s", begin);
    const size_t until = n - strlen(end);
    for (path[at] = '/', at += (until - at) % 2; at < until; at += 2) {
        path[at] = '/';
        path[at + 1] = '.';
    }
    snprintf(path + until, sizeof path - until, "%s", end);
    return path;
}

static err_code open_long(size_t n, err_detail *d)
{
    model *m = NULL;
    const err_code err = model_open(&m, path_of(check_data("tiny"), "", n), &(model_open_options){0}, d);
    model_close(m);
    return err;
}

static err_code open_long_parts(size_t n, err_detail *d)
{
    char parts[FOLDER_NAME + 8];
    snprintf(parts, sizeof parts, "%s/parts", folder);
    return open_as(path_of(parts, "", n), 0, d);
}

static err_code open_long_gguf(size_t n, err_detail *d)
{
    return open_as(path_of(folder, "/m.gguf", n), 0, d);
}

static err_code open_long_tower(size_t n, err_detail *d)
{
    checkpoint *ck = NULL;
    const err_code err = checkpoint_open(&ck, gguf, path_of(folder, "/none.gguf", n), d);
    checkpoint_close(ck);
    return err;
}

static err_code convert_long(size_t n, err_detail *d)
{
    return model_convert(check_data("tiny"), path_of(folder, "/made", n),
                         &(quantize_options){.layer_bits = 4, .head_bits = 8, .c = c}, d);
}

/* The text without the middle of a path. */
static void say_short(bytes *out, const char *text)
{
    char plain[sizeof((err_detail){0}).text];
    size_t n = 0;
    for (; *text; text++) {
        const bool is_dot = text[0] == '/' && text[1] == '.' && (text[2] == '/' || text[2] == '\0');
        text += is_dot;
        if (!is_dot && (text[0] != '/' || (text[1] != '/' && text[1] != '\0'))) {
            plain[n++] = *text;
        }
    }
    plain[n] = '\0';
    say_plain(out, plain);
}

/* What comes of paths of each length about that at which they, or those of the files within, are too long. */
static void check_lengths(bytes *out, const char *name, err_code (*fn)(size_t n, err_detail *d))
{
    bytes text = bytes_empty(1 << 16);
    bytes_printf(out, "%s, paths that are long\n", name);
    for (int n = SHORT; n <= LONG; n++) {
        err_detail d = {0};
        bytes_clear(&text);
        const err_code err = fn((size_t)n, &d);
        bytes_append_str(&text, err_name(err));
        bytes_append_str(&text, err ? ": " : "");
        say_short(&text, d.text);
        say_files(&text, made, true);
        one_fails_say(out, "bytes", n, bytes_str(&text));
    }
    one_fails_say(out, NULL, 0, NULL);
    bytes_deinit(&text);
}

static void check_paths(bytes *out)
{
    char parts[FOLDER_NAME + 8], path[FOLDER_NAME + 60];
    err_detail d = {0};
    snprintf(parts, sizeof parts, "%s/parts", folder);
    CHECK_INT(mkdir(parts, 0700), 0);
    snprintf(path, sizeof path, "%s/config.json", parts);
    CHECK_INT(symlink(check_data("tiny/config.json"), path), 0);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", parts);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs("{\"weight_map\":{\"a\":\"model-00001-of-00001-of-the-text.safetensors\"}}", f) > 0 &&
          fclose(f) == 0);
    check_lengths(out, "a folder", open_long);
    check_lengths(out, "in parts", open_long_parts);
    check_lengths(out, "GGUF", open_long_gguf);
    check_lengths(out, "its tower", open_long_tower);
    check_lengths(out, "converted", convert_long);
    CHECK_INT(tensor_write(path_of(folder, "/x.safetensors", 4095), NULL, 0, c, NULL, &d), ERR_INVALID);
    bytes_append_str(out, "written, a path that is long: ");
    say_short(out, d.text);
    bytes_append_char(out, '\n');
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
    check(&out, "a folder", CALLS, open_folder, false);
    check(&out, "GGUF", CALLS, open_gguf, false);
    check(&out, "what both are", CALLS, probe, false);
    check(&out, "in blocks", CALLS, open_in_blocks, false);
    check(&out, "in blocks that were kept", CALLS, open_in_blocks, true);
    check(&out, "converted", CALLS, convert, false);
    check(&out, "a folder", IN_ARENAS, open_folder, false);
    check(&out, "GGUF", IN_ARENAS, open_gguf, false);
    check(&out, "in blocks", IN_ARENAS, open_in_blocks, false);
    check_families(&out);
    check_paths(&out);
    recorded_check("model/model_calls.txt", bytes_str(&out));
    bytes_deinit(&out);
    compute_destroy(c);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
