/* model_fingerprint: the same for the same model, and another one when a weight at any of the places that are looked at, the
 * list of tensors, the files, the configuration or the vocabulary is another. */
#include "tests/check.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "model/model.h"
#include "tests/folder.h"
#include "tests/model/tool.h"

enum { PLACES = 8, SAMPLE = 64 };
#define TABLE "model.language_model.embed_tokens.weight"
#define DECAY "model.language_model.layers.0.linear_attn.A_log"

static char folder[FOLDER_NAME];
static uint8_t before[HASH_BYTES]; /* of the model as it is */
static const struct timespec WRITTEN[2] = {{1000, 5}, {1000, 5}};

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void set_time(const struct timespec times[2])
{
    CHECK_INT(utimensat(AT_FDCWD, path_of("model.safetensors"), times, 0), 0);
}

/* A file of the small model in the folder, with `from` in it as `to`. */
static void copy(const char *name, const char *from, const char *to)
{
    char source[64];
    bytes text = bytes_empty(SIZE_MAX / 2);
    err_detail d = {0};
    snprintf(source, sizeof source, "tiny/%s", name);
    CHECK_OK(file_read(&text, check_data(source), &d), d);
    char *at = from ? strstr(text.data, from) : NULL;
    CHECK(!from || (at && strlen(from) == strlen(to)));
    if (at) {
        memcpy(at, to, strlen(to));
    }
    FILE *f = fopen(path_of(name), "wb");
    CHECK(f && fwrite(text.data, 1, text.len, f) == text.len && fclose(f) == 0);
    bytes_deinit(&text);
}

static void fingerprint(uint8_t out[HASH_BYTES], bool weights_only)
{
    model *m = NULL;
    err_detail d = {0};
    CHECK_OK(model_open(&m, folder, &(model_open_options){.weights_only = weights_only}, &d), d);
    CHECK_OK(model_fingerprint(m, out, &d), d);
    model_close(m);
}

static bool is_as_before(void)
{
    uint8_t now[HASH_BYTES];
    fingerprint(now, false);
    return memcmp(now, before, sizeof now) == 0;
}

/* Where a tensor lies in the file. */
static size_t find(const char *name, size_t *n)
{
    uint64_t length = 0;
    file_map m;
    json_doc *doc = NULL;
    err_detail d = {0};
    int64_t begin = 0, end = 0;
    CHECK_OK(file_map_open(&m, path_of("model.safetensors"), &d), d);
    memcpy(&length, m.data, sizeof length);
    CHECK_OK(json_parse(&doc, (const char *)m.data + 8, (size_t)length, 64, &d), d);
    const json *offsets = json_get(json_get(json_root(doc), name), "data_offsets");
    CHECK(json_int(json_child(offsets), 0, INT32_MAX, &begin));
    CHECK(json_int(json_next(json_child(offsets)), 0, INT32_MAX, &end));
    json_free(doc);
    file_map_close(&m);
    *n = (size_t)(end - begin);
    return 8 + (size_t)length + (size_t)begin;
}

/* Turns the lowest bit of a byte; the file looks as old as it was. */
static void turn(size_t at)
{
    unsigned char byte = 0;
    const int fd = open(path_of("model.safetensors"), O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
    byte ^= 1;
    CHECK_INT(pwrite(fd, &byte, 1, (off_t)at), 1);
    CHECK_INT(close(fd), 0);
    set_time(WRITTEN);
}

static void test_weights(void)
{
    size_t n = 0, at = find(TABLE, &n);
    CHECK(n > PLACES * SAMPLE);
    for (size_t k = 0; k < PLACES; k++) {
        const size_t place = (n - SAMPLE) / (PLACES - 1) * k, ends[2] = {place, place + SAMPLE - 1};
        for (size_t i = 0; i < 2; i++) {
            turn(at + ends[i]);
            CHECK(!is_as_before());
            turn(at + ends[i]);
        }
    }
    turn(at + SAMPLE); /* is not looked at: the rest of a large file is left alone */
    CHECK(is_as_before());
    turn(at + SAMPLE);
    at = find(DECAY, &n);
    CHECK(n < SAMPLE);
    turn(at + n - 2); /* a low bit of the last number */
    CHECK(!is_as_before());
    turn(at + n - 2);
    CHECK(is_as_before());
}

static void test_files(void)
{
    static const struct timespec later[2] = {{1001, 5}, {1001, 5}}, by_a_little[2] = {{1000, 6}, {1000, 6}};
    set_time(later);
    CHECK(!is_as_before());
    set_time(by_a_little);
    CHECK(!is_as_before());
    set_time(WRITTEN);
    CHECK(is_as_before());
    FILE *f = fopen(path_of("notes.txt"), "w");
    CHECK(f && fclose(f) == 0);
    CHECK(is_as_before());
    for (int gguf = 0; gguf < 2; gguf++) {
        const char *name = gguf ? "x.gguf" : "x.safetensors";
        f = fopen(path_of(name), "w");
        CHECK(f && fclose(f) == 0);
        CHECK(!is_as_before());
        CHECK_INT(unlink(path_of(name)), 0);
    }
    CHECK_INT(mkdir(path_of("y.gguf"), 0700), 0);     /* is no file */
    CHECK_INT(symlink("none", path_of("z.gguf")), 0); /* there is none */
    CHECK(is_as_before());
}

static void test_documents(void)
{
    uint8_t bare[HASH_BYTES];
    fingerprint(bare, true);
    CHECK(memcmp(bare, before, sizeof bare) != 0); /* without the vocabulary */
    copy("config.json", "\"rms_norm_eps\"", "\"xms_norm_eps\"");
    CHECK(!is_as_before());
    copy("config.json", NULL, NULL);
    CHECK(is_as_before());
}

/* A file that holds all: its size and time count, as those of files in a folder. */
static void test_single_file(void)
{
    static const struct timespec later[2] = {{1001, 5}, {1001, 5}};
    char gguf[FOLDER_NAME + 8];
    uint8_t now[2][HASH_BYTES];
    snprintf(gguf, sizeof gguf, "%s/m.gguf", folder);
    CHECK_INT(tool_run_3("make_gguf", check_data("tiny_gpt_oss"), gguf, "bf16"), 0);
    for (int i = 0; i < 3; i++) {
        model *m = NULL;
        err_detail d = {0};
        CHECK_INT(utimensat(AT_FDCWD, gguf, i == 1 ? later : WRITTEN, 0), 0);
        CHECK_OK(model_open(&m, gguf, &(model_open_options){.weights_only = true}, &d), d);
        CHECK_OK(model_fingerprint(m, now[i % 2], &d), d);
        model_close(m);
        CHECK_INT(memcmp(now[0], now[1], HASH_BYTES) == 0, 0);
    }
}

/* One with a tower in a file of its own: its tensors count. */
static void test_tower(void)
{
    char dir[FOLDER_NAME], gguf[FOLDER_NAME + 16], tower[FOLDER_NAME + 32];
    uint8_t now[2][HASH_BYTES];
    folder_make(dir);
    snprintf(gguf, sizeof gguf, "%s/m.gguf", dir);
    snprintf(tower, sizeof tower, "%s/mmproj-m.gguf", dir);
    CHECK_INT(tool_run_3("make_gguf", check_data("tiny"), gguf, "bf16"), 0);
    for (int i = 0; i < 2; i++) {
        model *m = NULL;
        err_detail d = {0};
        CHECK_OK(model_open(&m, gguf, &(model_open_options){.weights_only = true}, &d), d);
        CHECK_OK(model_fingerprint(m, now[i], &d), d);
        model_close(m);
        CHECK_INT(unlink(tower), i == 0 ? 0 : -1);
    }
    CHECK(memcmp(now[0], now[1], HASH_BYTES) != 0);
}

/* A folder that cannot be looked at any more has no name, and the reason is said. */
static void test_gone(void)
{
    char moved[FOLDER_NAME + 8], wanted[FOLDER_NAME + 80];
    uint8_t now[HASH_BYTES];
    model *m = NULL;
    err_detail d = {0};
    snprintf(moved, sizeof moved, "%s.gone", folder);
    CHECK_OK(model_open(&m, folder, &(model_open_options){.weights_only = true}, &d), d);
    CHECK_INT(rename(folder, moved), 0);
    CHECK_INT(model_fingerprint(m, now, &d), ERR_IO);
    snprintf(wanted, sizeof wanted, "%s/config.json is not there any more", folder);
    CHECK_STR(d.text, wanted);
    CHECK_INT(rename(moved, folder), 0);
    model_close(m);
    char dir[FOLDER_NAME], gguf[FOLDER_NAME + 16];
    folder_make(dir);
    snprintf(gguf, sizeof gguf, "%s/m.gguf", dir);
    CHECK_INT(tool_run_3("make_gguf", check_data("tiny_gpt_oss"), gguf, "bf16"), 0);
    CHECK_OK(model_open(&m, gguf, &(model_open_options){.weights_only = true}, &d), d);
    CHECK_INT(unlink(gguf), 0);
    CHECK_INT(model_fingerprint(m, now, &d), ERR_IO); /* its document is in memory */
    snprintf(wanted, sizeof wanted, "%s: No such file or directory", gguf);
    CHECK_STR(d.text, wanted);
    model_close(m);
}

int main(void)
{
    static const char *const NAMES[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                        "model.safetensors"};
    folder_make(folder);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        copy(NAMES[i], NULL, NULL);
    }
    set_time(WRITTEN);
    fingerprint(before, false);
    CHECK(is_as_before());
    test_weights();
    test_files();
    test_documents();
    test_single_file();
    test_tower();
    test_gone();
    CHECK_DONE();
}
