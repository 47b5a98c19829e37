/* gguf_config_job: counts of a GGUF file as single numbers and as lists with one for each layer, what is none,
 * and what is said of one that must be there. */
#include "model/checkpoint/gguf_config_job.h"

#include "base/compiler.h"
#include "model/checkpoint/gguf_set.h"
#include "tests/folder.h"
#include "tests/model/checkpoint/gguf_maker.h"

static err_detail d;

static void put_list(gguf_maker *m, const char *key, uint32_t type, const int64_t *values, size_t n,
                     size_t width)
{
    maker_array(m, key, type, n);
    for (size_t i = 0; i < n; i++) {
        put_number(&m->values, (uint64_t)values[i], width);
    }
}

static void put_floats(gguf_maker *m, const float *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        put_number(&m->values, bits, sizeof bits);
    }
}

static gguf_file *make(bytes *file)
{
    gguf_maker m;
    gguf_file *f = NULL;
    bool is_whole = false;
    maker_init(&m);
    maker_u32(&m, "x.single", 7);
    maker_f32(&m, "x.fraction", 0.5f);
    maker_text(&m, "x.text", "7");
    put_list(&m, "x.list", GGUF_I32, (const int64_t[]){0, 4, 2}, 3, 4);
    put_list(&m, "x.zeros", GGUF_U32, (const int64_t[]){0, 0}, 2, 4);
    put_list(&m, "x.negative", GGUF_I32, (const int64_t[]){4, -1, 2}, 3, 4);
    put_list(&m, "x.floats", GGUF_F32, (const int64_t[]){0}, 1, 4);
    put_list(&m, "x.empty", GGUF_U32, NULL, 0, 4);
    put_list(&m, "x.large", GGUF_U64, (const int64_t[]){-1}, 1, 8);
    bytes_init(file, 1 << 16);
    maker_finish(&m, file);
    CHECK_OK(gguf_file_open_head(&f, file->data, file->len, file->len, "x.gguf", &is_whole, &d), d);
    CHECK(is_whole);
    return f;
}

static void test_counts(const gguf_job *j)
{
    static const struct {
        const char *name;
        int64_t value; /* -1: no count */
    } CASES[] = {
        {"single", 7},    {"list", 4},   {"zeros", 0},  {"negative", -1}, {"floats", -1},
        {"fraction", -1}, {"empty", -1}, {"large", -1}, {"text", -1},     {"absent", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        uint64_t n = 0;
        const bool known = gguf_job_count(j, CASES[i].name, &n);
        if (known != (CASES[i].value >= 0)) {
            fprintf(stderr, "  %s:\n", CASES[i].name);
        }
        CHECK_INT(known, CASES[i].value >= 0);
        CHECK(!known || (int64_t)n == CASES[i].value);
    }
}

static void test_written(gguf_job *j)
{
    static const gguf_count some[] = {{"single", "one", true},
                                      {"absent", "two", false},
                                      {"list", "three", true}},
                            missing[] = {{"single", "one", true}, {"negative", "two", true}};
    bytes out;
    bytes_init(&out, 4096);
    j->out = &out;
    CHECK_OK(gguf_job_write_counts(j, some, ARRAY_LEN(some)), d);
    gguf_job_write_number(j, "fraction", "four");
    gguf_job_write_number(j, "text", "five");
    gguf_job_write_number(j, "absent", "six");
    CHECK_STR(bytes_str(&out), ",\"one\":7,\"three\":4,\"four\":0.5");
    CHECK_INT(gguf_job_write_counts(j, missing, ARRAY_LEN(missing)), ERR_CORRUPT);
    CHECK_STR(d.text, "x.gguf: metadata x.negative is missing or out of range");
    j->out = NULL;
    bytes_deinit(&out);
}

/* What an architecture's file must say, beside what every file must. */
#define COMMON  "block_count", "embedding_length", "attention.head_count", "attention.layer_norm_rms_epsilon"
#define STATES  "ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.time_step_rank", "ssm.inner_size"
#define EXPERTS "expert_count", "expert_used_count", "expert_feed_forward_length"
#define ROPE    "rope.freq_base"
enum { MOST_KEYS = 14, COMMON_KEYS = 4 };

static const struct {
    const char *name;
    const char *keys[MOST_KEYS];
} ARCHITECTURES[] = {
    {"qwen3", {COMMON, ROPE}},
    {"qwen35", {COMMON, STATES, ROPE}},
    {"qwen35moe", {COMMON, STATES, EXPERTS, ROPE}},
    {"qwen3moe", {COMMON, EXPERTS, ROPE}},
    {"nemotron_h", {COMMON, STATES}},
    {"nemotron_h_moe", {COMMON, STATES}},
    {"minimax-m2", {COMMON, EXPERTS, ROPE}},
    {"glm4moe", {COMMON, EXPERTS, ROPE}},
    {"llama", {COMMON, "expert_count", ROPE}}, /* MIXTRAL: is refused */
};
enum { MIXTRAL = ARRAY_LEN(ARCHITECTURES) - 1 };

/* The document of a file of ARCHITECTURES[a] that says all of its keys but the one numbered `without`. */
static err_code read_without(size_t a, size_t without, const char *path, bytes *out)
{
    static const float numbers[2 * 4] = {0};
    char key[96];
    gguf_maker m;
    gguf_set *set = NULL;
    bytes file;
    maker_init(&m);
    maker_text(&m, "general.architecture", ARCHITECTURES[a].name);
    for (size_t i = 0; i < MOST_KEYS && ARCHITECTURES[a].keys[i]; i++) {
        const char *name = ARCHITECTURES[a].keys[i];
        snprintf(key, sizeof key, "%s.%s", ARCHITECTURES[a].name, name);
        if (i == without) {
            continue;
        }
        if (strstr(name, "epsilon") || strcmp(name, ROPE) == 0) {
            maker_f32(&m, key, 1e-6f);
        } else {
            maker_u32(&m, key, 4);
        }
    }
    maker_tensor(&m, "token_embd.weight", 0, (uint64_t[]){4, 2}, 2, numbers, sizeof numbers);
    bytes_init(&file, 1 << 16);
    maker_finish(&m, &file);
    maker_save(&file, path);
    bytes_deinit(&file);
    err_code err = gguf_set_open(&set, path, &d);
    CHECK_OK(err, d);
    if (!err) {
        const gguf_config_source from = {.set = set, .path = "x.gguf"};
        err = gguf_config_json(out, &from, &d);
    }
    gguf_set_close(set);
    return err;
}

static void test_needed(void)
{
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16], expected[128];
    folder_make(folder);
    snprintf(path, sizeof path, "%s/x.gguf", folder);
    for (size_t a = 0; a < MIXTRAL; a++) {
        bytes out;
        bytes_init(&out, 1 << 16);
        CHECK_OK(read_without(a, SIZE_MAX, path, &out), d);
        for (size_t i = 0; i < MOST_KEYS && ARCHITECTURES[a].keys[i]; i++) {
            const int before = check_failures;
            snprintf(expected, sizeof expected, "x.gguf: metadata %s.%s is missing or out of range",
                     ARCHITECTURES[a].name, ARCHITECTURES[a].keys[i]);
            CHECK_INT(read_without(a, i, path, &out), ERR_CORRUPT);
            CHECK_STR(d.text, expected);
            if (check_failures != before) {
                fprintf(stderr, "  (%s without %s)\n", ARCHITECTURES[a].name, ARCHITECTURES[a].keys[i]);
            }
        }
        bytes_deinit(&out);
    }
}

/* A dense architecture with experts; a tower without its table of positions, and what its numbers of pixels become. */
static void test_refused(void)
{
    static const float means[] = {0.5f, 0.25f, 0.125f}, numbers[4] = {0};
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    bytes out = bytes_empty(1 << 16);
    folder_make(folder);
    snprintf(path, sizeof path, "%s/x.gguf", folder);
    CHECK_INT(read_without(MIXTRAL, SIZE_MAX, path, &out), ERR_UNSUPPORTED);
    CHECK_STR(d.text, "x.gguf: architecture llama with experts (Mixtral) is not supported; a dense model is");
    bytes_clear(&out);
    CHECK_OK(read_without(MIXTRAL, COMMON_KEYS, path, &out), d);
    CHECK_OK(read_without(0, SIZE_MAX, path, &out), d);
    gguf_maker m;
    gguf_file *tower = NULL;
    gguf_set *set = NULL;
    bytes file = bytes_empty(1 << 16);
    bool is_whole = false;
    maker_init(&m);
    maker_text(&m, "general.architecture", "clip");
    maker_u32(&m, "clip.vision.patch_size", 8);
    maker_array(&m, "clip.vision.image_mean", GGUF_F32, ARRAY_LEN(means));
    put_floats(&m, means, ARRAY_LEN(means));
    maker_array(&m, "clip.vision.image_std", GGUF_F32, 2); /* too few */
    put_floats(&m, means, 2);
    maker_tensor(&m, "v.other.weight", 0, (uint64_t[]){4}, 1, numbers, sizeof numbers);
    maker_finish(&m, &file);
    CHECK_OK(gguf_file_open_head(&tower, file.data, file.len, file.len, "mm.gguf", &is_whole, &d), d);
    CHECK_OK(gguf_set_open(&set, path, &d), d);
    const gguf_config_source from = {set, tower, "x.gguf", "mm.gguf"};
    bytes_clear(&out);
    gguf_preprocessor_json(&out, &from);
    CHECK_STR(bytes_str(&out),
              "{\"temporal_patch_size\":2,\"patch_size\":8,\"image_mean\":[0.5,0.25,0.125]}");
    CHECK_INT(gguf_config_json(&out, &from, &d), ERR_NOT_FOUND);
    CHECK_STR(d.text, "mm.gguf: tensor v.position_embd.weight is missing");
    gguf_set_close(set);
    gguf_file_close(tower);
    bytes_deinit(&file);
    bytes_deinit(&out);
}

int main(void)
{
    bytes file;
    gguf_file *f = make(&file);
    gguf_job j = {.f = f, .prefix = "x", .path = "x.gguf", .detail = &d};
    if (f) {
        test_counts(&j);
        test_written(&j);
    }
    gguf_file_close(f);
    bytes_deinit(&file);
    test_needed();
    test_refused();
    CHECK_DONE();
}
