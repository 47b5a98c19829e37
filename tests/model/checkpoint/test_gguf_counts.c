/* gguf_config_job: counts of a GGUF file as single numbers and as lists with one for each layer, what is none,
 * and what is said of one that must be there. */
#include "model/checkpoint/gguf_config_job.h"

#include "base/compiler.h"
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
    CHECK_DONE();
}
