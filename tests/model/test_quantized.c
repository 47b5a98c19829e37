/* quantized: weights in blocks say the same whatever the threads, neighbours and chunks, and
 * whether they come from the cache file, from memory, from a copy in huge pages or from a converted
 * folder; damaged files are made anew. */
#include "model/quantized.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/log.h"
#include "compute/kernels/cpu.h"
#include "model/model_parts.h"
#include "tests/model/tiny.h"
#include "tests/folder.h"
#include "tests/open_files.h"
#include "tests/said.h"

enum { N_PROMPT = 150, STEPS = 4 };

static int32_t ids[TINY_CTX];
static char cache[FOLDER_NAME], cache_file[600];

/* Logits of the prompt's last row and of a few steps behind it, given tokens: [STEPS + 1, V]; the
 * caller frees. */
static float *say(const tiny *t, int32_t chunk)
{
    float *out = malloc((STEPS + 1) * TINY_V * sizeof *out);
    seq_state *s = tiny_seq(t);
    const float *logits = NULL;
    for (int32_t at = 0; at < N_PROMPT; at += chunk) {
        logits = tiny_run(t, s, ids + at, N_PROMPT - at < chunk ? N_PROMPT - at : chunk, false, false);
    }
    memcpy(out, logits, TINY_V * sizeof *out);
    for (int32_t i = 0; i < STEPS; i++) {
        logits = tiny_run(t, s, ids + N_PROMPT + i, 1, true, false);
        memcpy(out + (i + 1) * TINY_V, logits, TINY_V * sizeof *out);
    }
    seq_state_destroy(s);
    return out;
}

static float *say_with(const char *dir, size_t n_threads, unsigned mask, int n_bits, bool fast)
{
    tiny t = tiny_open_as(&(tiny_options){dir, n_threads, mask, KV_BF16, n_bits, fast, false});
    float *out = say(&t, N_PROMPT);
    tiny_close(&t);
    return out;
}

#define CHECK_SAID(expected, call)                                                                           \
    do {                                                                                                     \
        float *said_ = (call);                                                                               \
        CHECK_SAME_FLOATS(said_, (expected), (STEPS + 1) * TINY_V);                                          \
        free(said_);                                                                                         \
    } while (0)

/* What is said is as expected; of warnings there is one with these words, or none (NULL). */
static void check_with_warning(const float *expected, int n_bits, const char *words)
{
    log_set_level(LOG_WARN);
    said_begin();
    float *said = say_with(check_data("tiny"), 2, ~0u, n_bits, true);
    said_end();
    log_set_level(LOG_OFF);
    const char *end = strchr(said_err, '\n');
    CHECK(words ? end && end[1] == '\0' : !end);
    CHECK_HAS(said_err, words ? words : "");
    CHECK_SAME_FLOATS(said, expected, (STEPS + 1) * TINY_V);
    free(said);
}

/* The only file in the cache folder; its name goes to cache_file. */
static int find_files(void)
{
    int n = 0;
    char dir[300];
    snprintf(dir, sizeof dir, "%s/parley", cache);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] != '.') {
            snprintf(cache_file, sizeof cache_file, "%s/%s", dir, e->d_name);
            n++;
        }
    }
    if (d) {
        closedir(d);
    }
    return n;
}

static ino_t file_number(void)
{
    struct stat st = {0};
    CHECK_INT(stat(cache_file, &st), 0);
    return st.st_ino;
}

/* A file that is cut or holds something else is replaced; a good one is not. */
static void test_file(const float *expected, int n_bits)
{
    CHECK_INT(find_files(), 1);
    const ino_t first = file_number();
    check_with_warning(expected, n_bits, NULL);
    CHECK(file_number() == first);
    CHECK_INT(truncate(cache_file, 5000), 0);
    check_with_warning(expected, n_bits, "; it is made anew\n");
    CHECK_HAS(said_err, cache_file);
    struct stat st = {0};
    CHECK(stat(cache_file, &st) == 0 && st.st_size > 5000);
    FILE *f = fopen(cache_file, "wb"); /* a good file of something else */
    static const char other[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}x";
    const uint64_t n = sizeof other - 2;
    CHECK(f && fwrite(&n, 8, 1, f) == 1 && fwrite(other, sizeof other - 1, 1, f) == 1);
    if (f) {
        fclose(f);
    }
    check_with_warning(expected, n_bits, " is not in it as expected; it is made anew\n");
    CHECK(stat(cache_file, &st) == 0 && st.st_size > 5000);
    CHECK_INT(find_files(), 1);
}

/* from/name copied to to/name; behind `skip` bytes every 1000th one gets another lowest bit. */
static void copy_changed(const char *from, const char *to, const char *name, size_t skip)
{
    char path[5000];
    bytes file;
    err_detail d = {0};
    bytes_init(&file, 4 << 20);
    snprintf(path, sizeof path, "%s/%s", from, name);
    CHECK_OK(file_read(&file, path, &d), d);
    for (size_t i = skip; i < file.len; i += 1000) {
        file.data[i] ^= 1;
    }
    snprintf(path, sizeof path, "%s/%s", to, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(file.data, file.len, 1, f) == 1);
    if (f) {
        fclose(f);
    }
    bytes_deinit(&file);
}

/* A good file of a model of the same shape with other weights, under the name of this one's, is
 * replaced, too. */
static void test_file_of_another(const float *expected, int n_bits)
{
    static const char *const files[] = {"config.json", "tokenizer.json", "model-mtp.safetensors"};
    char other[FOLDER_NAME], own[sizeof cache_file];
    struct stat st[2];
    CHECK_INT(find_files(), 1);
    memcpy(own, cache_file, sizeof own);
    CHECK_INT(unlink(own), 0);
    folder_make(other);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        copy_changed(check_data("tiny"), other, files[i], SIZE_MAX);
    }
    copy_changed(check_data("tiny"), other, "model.safetensors", 60000); /* behind its header */
    float *said = say_with(other, 2, ~0u, n_bits, true);
    CHECK(memcmp(said, expected, (STEPS + 1) * TINY_V * sizeof *said) != 0);
    free(said);
    CHECK_INT(find_files(), 1);
    CHECK(strcmp(cache_file, own) != 0);
    CHECK_INT(rename(cache_file, own), 0);
    CHECK_INT(stat(own, &st[0]), 0);
    CHECK_SAID(expected, say_with(check_data("tiny"), 2, ~0u, n_bits, true));
    CHECK_INT(find_files(), 1);
    CHECK(strcmp(cache_file, own) == 0);
    CHECK_INT(stat(own, &st[1]), 0);
    CHECK(st[0].st_size == st[1].st_size && st[0].st_ino != st[1].st_ino);
}

typedef struct heard {
    uint64_t done, total;
    int n;
} heard;

/* What is done grows up to all that there is, which is the same from the first time on. */
static void hear(void *ctx, uint64_t done, uint64_t total)
{
    heard *h = ctx;
    CHECK(done >= h->done && done <= total && (h->n == 0 || total == h->total));
    *h = (heard){done, total, h->n + 1};
}

static void test_format(int n_bits, const float *stored)
{
    char out[300];
    err_detail d = {0};
    tiny t = tiny_open_as(&(tiny_options){check_data("tiny"), 2, ~0u, KV_BF16, n_bits, true, false});
    float *expected = say(&t, N_PROMPT);
    /* The prompt is near that of the stored weights; random weights magnify what rounding does to
     * later tokens. */
    CHECK(tiny_difference(expected, stored, TINY_V) < (n_bits == 8 ? 0.05 : 0.6));
    CHECK(memcmp(expected, stored, (STEPS + 1) * TINY_V * sizeof *stored) != 0);
    float *chunks = say(&t, 64);
    CHECK(tiny_difference(chunks, expected, (STEPS + 1) * TINY_V) < 0.02);
    free(chunks);
    tiny_close(&t);
    test_file(expected, n_bits);
    test_file_of_another(expected, n_bits);
    CHECK_SAID(expected, say_with(check_data("tiny"), 1, ~0u, n_bits, true));
    for (int exact = 0; exact < 2; exact++) {
        float *one = say_with(check_data("tiny"), 1, ~0u, n_bits, exact == 0);
        CHECK_SAID(one, say_with(check_data("tiny"), 3, ~0u, n_bits, exact == 0));
        free(one);
    }
    /* a last bit may round elsewhere */
    float *plain = say_with(check_data("tiny"), 2, ~0u, n_bits, false);
    float *generic = say_with(check_data("tiny"), 2, 0, n_bits, false);
    CHECK(tiny_difference(generic, plain, (STEPS + 1) * TINY_V) < 0.1);
    free(generic), free(plain);
    /* tiles round the prompt's inputs with other scales */
    generic = say_with(check_data("tiny"), 2, 0, n_bits, true);
    CHECK(tiny_difference(generic, expected, TINY_V) < (n_bits == 8 ? 0.1 : 0.6));
    free(generic);

    snprintf(out, sizeof out, "%s/converted%d", cache, n_bits);
    compute *c = NULL;
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 2, .cpu_mask = test_cpu_mask()}, &d), d);
    heard h = {.n = 0};
    const quantize_options opt = {.layer_bits = n_bits, .head_bits = n_bits, .c = c, .progress = {hear, &h}};
    CHECK_OK(model_convert(check_data("tiny"), out, &opt, &d), d);
    CHECK(h.n > 20 && h.done == h.total);
    CHECK_INT(model_convert(check_data("tiny"), out, &opt, &d), ERR_INVALID);
    CHECK(strstr(d.text, out) != NULL);
    CHECK_SAID(expected, say_with(out, 2, ~0u, 0, true));
    CHECK_SAID(expected, say_with(out, 2, ~0u, n_bits, true)); /* already in blocks: left as they are */
    snprintf(out, sizeof out, "%s/twice%d", cache, n_bits);
    CHECK_INT(model_convert(check_data("tiny"), out, &(quantize_options){.c = c}, &d), ERR_INVALID);
    compute_destroy(c);

    setenv("XDG_CACHE_HOME", "/proc/none", 1); /* no folder can be made there */
    check_with_warning(expected, n_bits, "are not kept for the next start: /proc/none: No such file");
    setenv("XDG_CACHE_HOME", cache, 1);
    CHECK_INT(unlink(cache_file), 0);
    free(expected);
}

/* Where files are kept: in XDG_CACHE_HOME if that is a whole path, else below HOME; folders that lack are made. */
static void test_places(void)
{
    static const char *const relative[] = {NULL, "", "cache"};
    char home[FOLDER_NAME], path[FOLDER_NAME + 32], too_long[3080];
    struct stat st = {0};
    float *expected = say_with(check_data("tiny"), 2, ~0u, 8, true);
    const char *before = getenv("HOME");
    char *old_home = before ? strdup(before) : NULL;
    for (size_t i = 0; i < ARRAY_LEN(relative); i++) {
        folder_make(home);
        setenv("HOME", home, 1);
        if (relative[i]) {
            setenv("XDG_CACHE_HOME", relative[i], 1);
        } else {
            unsetenv("XDG_CACHE_HOME");
        }
        check_with_warning(expected, 8, NULL);
        snprintf(path, sizeof path, "%s/.cache/parley", home);
        CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0755);
        snprintf(path, sizeof path, "%s/.cache", home);
        CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0755);
    }
    setenv("HOME", "home", 1);
    check_with_warning(expected, 8, "kept for the next start: neither XDG_CACHE_HOME nor HOME says where\n");
    unsetenv("HOME");
    check_with_warning(expected, 8, "kept for the next start: neither XDG_CACHE_HOME nor HOME says where\n");
    snprintf(path, sizeof path, "%s/made", home); /* this one is made, too */
    setenv("XDG_CACHE_HOME", path, 1);
    check_with_warning(expected, 8, NULL);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0755);
    memset(too_long, 'x', sizeof too_long - 1);
    too_long[0] = '/';
    too_long[sizeof too_long - 1] = '\0';
    setenv("XDG_CACHE_HOME", too_long, 1);
    check_with_warning(expected, 8, "the path of the cache folder is too long\n");
    setenv("XDG_CACHE_HOME", cache, 1);
    if (old_home) {
        setenv("HOME", old_home, 1);
    }
    free(old_home);
    free(expected);
}

/* A tensor that no model uses goes to the converted folder as it is, unless its name has no room there. */
static void test_long_names(void)
{
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json"};
    char dir[FOLDER_NAME], path[600], from[5000], name[WRITER_NAME_MAX + 2];
    err_detail d = {0};
    compute *c = NULL;
    folder_make(dir);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        snprintf(from, sizeof from, "%s/%s", check_data("tiny"), files[i]);
        CHECK_INT(symlink(from, path), 0);
    }
    snprintf(path, sizeof path, "%s/model-mtp.safetensors", dir);
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 1, .cpu_mask = test_cpu_mask()}, &d), d);
    for (int len = WRITER_NAME_MAX - 1; len <= WRITER_NAME_MAX + 1; len++) {
        memset(name, 'x', (size_t)len);
        name[len] = '\0';
        FILE *f = fopen(path, "wb");
        CHECK(f != NULL);
        char header[WRITER_NAME_MAX + 100];
        /* a blank where the data would begin at an odd place */
        const uint64_t n = (uint64_t)snprintf(
            header, sizeof header, "{\"%s\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,2]}}%s",
            name, len % 2 ? " " : "");
        CHECK(fwrite(&n, sizeof n, 1, f) == 1 && fwrite(header, 1, n, f) == n &&
              fwrite("\0\0", 1, 2, f) == 2);
        fclose(f);
        char out[600];
        snprintf(out, sizeof out, "%s/names%d", cache, len);
        const quantize_options opt = {.layer_bits = 8, .head_bits = 8, .c = c};
        const err_code err = model_convert(dir, out, &opt, &d);
        CHECK_INT(err, len < WRITER_NAME_MAX ? ERR_OK : ERR_LIMIT);
        CHECK(err == ERR_OK || strstr(d.text, "its name is too long"));
    }
    compute_destroy(c);
    folder_remove(dir);
}

/* A folder whose 4-bit rows have the length they had with scales of 16 bits is named as such. */
static void test_old_rows(void)
{
    static const char header[] =
        "{\"layers.0.mlp.up_proj.weight.q4\":{\"dtype\":\"U8\",\"shape\":[1,80],\"data_offsets\":[0,80]}}  ";
    const uint64_t n = sizeof header - 1;
    const unsigned char row[80] = {0};
    char dir[FOLDER_NAME], path[600], from[5000];
    err_detail d = {0};
    checkpoint *ck = NULL;
    folder_make(dir);
    snprintf(path, sizeof path, "%s/config.json", dir);
    snprintf(from, sizeof from, "%s/config.json", check_data("tiny"));
    CHECK_INT(symlink(from, path), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(&n, sizeof n, 1, f) == 1 && fwrite(header, 1, n, f) == n &&
          fwrite(row, 1, sizeof row, f) == sizeof row);
    fclose(f);
    CHECK_INT(checkpoint_open(&ck, dir, NULL, &d), ERR_UNSUPPORTED);
    CHECK(strstr(d.text, "rows of 80 bytes") && strstr(d.text, "convert the checkpoint again"));
    folder_remove(dir);
}

/* Three sequences in one step, and one row of each alone. */
static void test_batch(int n_bits)
{
    tiny t = tiny_open_as(&(tiny_options){check_data("tiny"), 2, ~0u, KV_BF16, n_bits, true, false});
    seq_state *s[3];
    position at[3];
    batch_run runs[3];
    int32_t rows[] = {0, 1, 2}, tokens[3];
    float *alone = malloc(3 * TINY_V * sizeof *alone);
    err_detail d = {0};
    for (int32_t i = 0; i < 3; i++) {
        for (int pass = 0; pass < 2; pass++) {
            s[i] = tiny_seq(&t);
            (void)tiny_run(&t, s[i], ids + i, 20 + i, false, false);
            if (pass == 0) {
                memcpy(alone + i * TINY_V, tiny_run(&t, s[i], ids + 40 + i, 1, true, false),
                       TINY_V * sizeof *alone);
                seq_state_destroy(s[i]);
            }
        }
        tokens[i] = ids[40 + i];
        at[i] = (position){20 + i, 20 + i, 20 + i};
        runs[i] = (batch_run){.seq = s[i], .first_row = i, .n_rows = 1, .exact_rows = true};
    }
    const batch b = {.n_rows = 3,
                     .tokens = tokens,
                     .positions = at,
                     .runs = runs,
                     .n_runs = 3,
                     .logit_rows = rows,
                     .n_logit_rows = 3};
    CHECK_OK(decoder_forward(t.m, t.c, &b, t.sc, &d), d);
    for (int32_t i = 0; i < 3; i++) {
        CHECK_SAME_FLOATS(decoder_logits(t.sc, i), alone + i * TINY_V, TINY_V);
        seq_state_destroy(s[i]);
    }
    free(alone);
    tiny_close(&t);
}

/* A copy of the weights says what the files say, as stored and in blocks. */
static void test_copy(int n_bits, const float *expected)
{
    tiny t = tiny_open_as(&(tiny_options){check_data("tiny"), 2, ~0u, KV_BF16, n_bits, true, true});
    CHECK(model_get_parts(t.m)->copy != NULL);
    CHECK_SAID(expected, say(&t, N_PROMPT));
    tiny_close(&t);
}

int main(void)
{
    folder_make(cache);
    setenv("XDG_CACHE_HOME", cache, 1);
    log_set_level(LOG_OFF);
    CHECK(tiny_ids(ids, TINY_CTX) >= N_PROMPT + STEPS);
    float *stored = say_with(check_data("tiny"), 2, ~0u, 0, true);
    for (int n_bits = 8; n_bits >= 4; n_bits -= 4) {
        test_format(n_bits, stored);
        test_batch(n_bits);
        float *in_blocks = say_with(check_data("tiny"), 2, ~0u, n_bits, true);
        test_copy(n_bits, in_blocks);
        free(in_blocks);
        CHECK_INT(find_files(), 1);
        CHECK_INT(unlink(cache_file), 0);
    }
    test_copy(0, stored);
    umask(022);
    test_places();
    test_long_names();
    test_old_rows();
    free(stored);
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
