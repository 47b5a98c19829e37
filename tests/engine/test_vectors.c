/* Vectors of texts: a small random checkpoint of Qwen3-Embedding's shape against what Hugging Face
 * transformers computes (tests/data/qwen3_embedding: the states behind the last norm, of length 1),
 * within 1e-4; chunks change nothing, nor what runs beside; the tokenizer's last token stands behind
 * a text; limits. */
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/compiler.h"
#include "engine/engine_private.h"
#include "tests/engine/answers.h"
#include "tests/folder.h"

enum { WIDTH = 64, IDS_MAX = 64, CASES = 2 };

typedef struct reference {
    int32_t ids[IDS_MAX];
    size_t n;
    double last[WIDTH], mean[WIDTH];
} reference;

static void read_numbers(double *out, const json *list)
{
    size_t i = 0;
    for (const json *v = json_child(list); v && i < WIDTH; v = json_next(v)) {
        out[i++] = json_num(v, NAN);
    }
    CHECK_INT(i, WIDTH);
}

static void read_references(reference all[CASES])
{
    json_doc *doc = NULL;
    err_detail d = {0};
    bytes text = bytes_empty(1 << 20);
    CHECK_OK(file_read(&text, check_data("qwen3_embedding/reference.json"), &d), d);
    CHECK_OK(json_parse(&doc, bytes_str(&text), text.len, LIMIT_JSON_DEPTH, &d), d);
    size_t n = 0;
    for (const json *v = json_child(json_get(json_root(doc), "cases")); v && n < CASES; v = json_next(v)) {
        reference *r = &all[n++];
        for (const json *id = json_child(json_get(v, "ids")); id && r->n < IDS_MAX; id = json_next(id)) {
            int64_t value = 0;
            CHECK(json_int(id, 0, INT32_MAX, &value));
            r->ids[r->n++] = (int32_t)value;
        }
        read_numbers(r->last, json_get(v, "last"));
        read_numbers(r->mean, json_get(v, "mean"));
    }
    CHECK_INT(n, CASES);
    json_free(doc);
    bytes_deinit(&text);
}

/* The vectors of n inputs, scaled to length 1; returns the tokens that were computed. */
static int32_t ask(engine *e, const gen_input *inputs, size_t n, gen_pool pool, float out[][WIDTH])
{
    static uint64_t id;
    gen_request *r = NULL;
    err_detail d = {0};
    size_t n_vectors = 0;
    int32_t computed = -1;
    CHECK_OK(engine_prepare_inputs(e, &r, inputs, n, pool, 0, &d), d);
    answers_submit(e, r, ++id);
    while (computed < 0) {
        void *message = NULL;
        if (!mailbox_pop_wait(answer_events, &message, ANSWER_WAIT_MS)) {
            check_fail(__FILE__, __LINE__, "no event for a minute");
            exit(1);
        }
        gen_event *ev = message;
        if (ev->type == GEN_VECTOR && n_vectors < n) {
            double sum = 0;
            CHECK_INT(ev->n_vector, WIDTH);
            for (int i = 0; i < WIDTH; i++) {
                sum += (double)ev->vector[i] * ev->vector[i];
            }
            for (int i = 0; i < WIDTH; i++) {
                out[n_vectors][i] = (float)(ev->vector[i] / sqrt(sum));
            }
            n_vectors++;
        } else if (ev->type == GEN_DONE) {
            CHECK_INT(ev->finish, GEN_FINISH_STOP);
            computed = ev->timings.prompt_n;
        }
        gen_event_free(ev);
    }
    CHECK_INT(n_vectors, n);
    return computed;
}

/* NaN where a number is none: fmax would pass over it. */
static double farthest(const float *v, const double *wanted)
{
    double most = 0;
    for (int i = 0; i < WIDTH; i++) {
        const double e = fabs((double)v[i] - wanted[i]);
        most = e > most || isnan(e) ? e : most;
    }
    return most;
}

static engine *open_model(int32_t chunk)
{
    return answers_open(&(engine_options){.model_dir = check_data("qwen3_embedding"),
                                          .n_ctx = 256,
                                          .n_parallel = 2,
                                          .n_threads = 2,
                                          .prefill_chunk = chunk,
                                          .rope_bf16 = true, /* as the reference was computed */
                                          .exact = true});
}

static void test_reference(int32_t chunk)
{
    reference refs[CASES] = {0};
    float got[2 * CASES][WIDTH];
    gen_input inputs[2 * CASES];
    read_references(refs);
    engine *e = open_model(chunk);
    CHECK(engine_get_info(e)->is_embedder);
    CHECK_INT(engine_get_info(e)->pool, GEN_POOL_LAST);
    for (size_t i = 0; i < 2 * CASES; i++) { /* each twice: nothing is left of the one before */
        inputs[i] = (gen_input){.ids = refs[i % CASES].ids, .n_ids = refs[i % CASES].n};
    }
    const int32_t n = ask(e, inputs, 2 * CASES, GEN_POOL_LAST, got);
    CHECK_INT(n, 2 * (refs[0].n + refs[1].n));
    for (size_t i = 0; i < 2 * CASES; i++) {
        CHECK(farthest(got[i], refs[i % CASES].last) < 1e-4);
        CHECK(farthest(got[i], refs[(i + 1) % CASES].last) > 1e-2);
    }
    ask(e, inputs, 2 * CASES, GEN_POOL_MEAN, got);
    for (size_t i = 0; i < 2 * CASES; i++) {
        CHECK(farthest(got[i], refs[i % CASES].mean) < 1e-4);
    }
    engine_close(e);
}

/* <|endoftext|> is the token 1797 of this tokenizer, or whatever it says; a text ends with it. */
static void test_end(void)
{
    static const char TEXT[] = "a red circle";
    float got[2][WIDTH];
    err_detail d = {0};
    engine *e = open_model(0);
    bytes ids = bytes_empty(4096);
    CHECK_OK(
        engine_tokenize(e, &ids, "a red circle<|endoftext|>", strlen("a red circle<|endoftext|>"), true, &d),
        d);
    int32_t list[32];
    size_t n = 0;
    for (char *at = (char *)(uintptr_t)bytes_str(&ids); *at && n < 32; at += *at == ',') {
        list[n++] = (int32_t)strtol(at, &at, 10);
    }
    const gen_input inputs[2] = {{.text = TEXT, .len = strlen(TEXT)}, {.ids = list, .n_ids = n}};
    CHECK_INT(ask(e, inputs, 2, GEN_POOL_LAST, got), 2 * n);
    CHECK(memcmp(got[0], got[1], sizeof got[0]) == 0);
    bytes_deinit(&ids);
    engine_close(e);
}

/* A tokenizer that puts something else behind a text, or nothing: the first post-processor that says what is the one. */
static void test_behind(void)
{
#define SEQUENCE   "\"post_processor\":{\"type\":\"Sequence\","
#define TEXT_PART  "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
#define END_PART   "{\"SpecialToken\":{\"id\":\"<|endoftext|>\",\"type_id\":0}}"
#define FIRST_PART "{\"SpecialToken\":{\"id\":\"!\",\"type_id\":0}}"
#define TWO_ENDS   "," END_PART "," END_PART
#define EIGHT_ENDS TWO_ENDS TWO_ENDS TWO_ENDS TWO_ENDS
    static const struct {
        const char *instead;
        bool keeps; /* what the file says, too */
        int32_t n;  /* tokens behind the text */
    } VARIANTS[] = {
        {SEQUENCE, true, 1},
        {SEQUENCE, false, 0},
        {SEQUENCE "\"single\":[" END_PART "," TEXT_PART "],", true, 0},
        {SEQUENCE "\"single\":[" TEXT_PART "," END_PART "," END_PART "],", true, 2},
        {SEQUENCE "\"single\":[" TEXT_PART "," END_PART "],", false, 1},
        {SEQUENCE "\"single\":[" TEXT_PART EIGHT_ENDS EIGHT_ENDS "],", true, POOL_BEHIND_MAX},
        {SEQUENCE "\"single\":[" TEXT_PART "," FIRST_PART "],", true, 1}, /* token 0 */
    };
    static const char *const FILES[] = {"config.json", "model.safetensors", "modules.json",
                                        "tokenizer_config.json", "1_Pooling"};
    static const char TEXT[] = "a red circle", SINGLE[] = "\"single\"", ADDED[] = "\"added_tokens\":[";
    char from[128], to[128], dir[FOLDER_NAME];
    int32_t bare = 0;
    float got[1][WIDTH];
    bytes text = bytes_empty(1 << 24);
    err_detail d = {0};
    CHECK_OK(file_read(&text, check_data("qwen3_embedding/tokenizer.json"), &d), d);
    const char *added = strstr(bytes_str(&text), ADDED);
    const char *at = added ? strstr(added, SEQUENCE) : NULL, *single = at ? strstr(at, SINGLE) : NULL;
    CHECK(at && single);
    for (size_t i = 0; single && i < ARRAY_LEN(VARIANTS); i++) {
        folder_make(dir);
        for (size_t k = 0; k < ARRAY_LEN(FILES); k++) {
            snprintf(from, sizeof from, "qwen3_embedding/%s", FILES[k]);
            snprintf(to, sizeof to, "%s/%s", dir, FILES[k]);
            CHECK_INT(symlink(check_data(from), to), 0);
        }
        snprintf(to, sizeof to, "%s/tokenizer.json", dir);
        FILE *f = fopen(to, "wb");
        const char *behind = at + strlen(SEQUENCE), *tokens = added + strlen(ADDED);
        CHECK(f && fprintf(f, "%.*s%s%.*s%s%.*s%s%s", (int)(tokens - bytes_str(&text)), bytes_str(&text),
                           "{\"id\":0,\"content\":\"!\",\"special\":true},", (int)(at - tokens), tokens,
                           VARIANTS[i].instead, (int)(single - behind), behind,
                           VARIANTS[i].keeps ? SINGLE : "\"double\"", single + strlen(SINGLE)) > 0);
        CHECK(f && fclose(f) == 0);
        engine *e = answers_open(&(engine_options){
            .model_dir = dir, .n_ctx = 256, .n_parallel = 1, .n_threads = 1, .exact = true});
        const int32_t n = ask(e, &(gen_input){.text = TEXT, .len = strlen(TEXT)}, 1, GEN_POOL_LAST, got);
        bare = i == 0 ? n - 1 : bare;
        CHECK_INT(n, bare + VARIANTS[i].n);
        engine_close(e);
    }
    bytes_deinit(&text);
#undef SEQUENCE
#undef TEXT_PART
#undef END_PART
#undef TWO_ENDS
#undef EIGHT_ENDS
#undef FIRST_PART
}

/* Writes a text as a file; without this piece of it. */
static void write_without(const char *path, const char *text, const char *piece)
{
    const char *at = strstr(text, piece);
    FILE *f = fopen(path, "w");
    CHECK(f && at && fprintf(f, "%.*s%s", (int)(at - text), text, at + strlen(piece)) > 0 && fclose(f) == 0);
}

/* What a checkpoint says that it is made for: vectors, where it has modules and says how they are pooled; ranks by its
 * name, where "yes" and "no" are tokens. */
static void test_purpose(void)
{
    static const struct {
        const char *pooling; /* NULL: as it is; "": no file */
        bool has_modules;
        const char *gone; /* of how pieces of words become tokens */
        const char *name;
        bool is_embedder, is_reranker;
        gen_pool pool;
    } KINDS[] = {
        {NULL, true, "", "vectors", true, false, GEN_POOL_LAST},
        {"{\"pooling_mode_mean_tokens\":true}", true, "", "vectors", true, false, GEN_POOL_MEAN},
        {"{\"pooling_mode_mean_tokens\":false}", true, "", "vectors", true, false, GEN_POOL_LAST},
        {"", true, "", "vectors", false, false, GEN_POOL_LAST},
        {NULL, false, "", "vectors", false, false, GEN_POOL_LAST},
        {"", false, "", "a-ReRanker", false, true, GEN_POOL_LAST},
        {"", false, "[\"y\",\"es\"],", "a-ReRanker", false, false, GEN_POOL_LAST},
        {"", false, "[\"n\",\"o\"],", "a-ReRanker", false, false, GEN_POOL_LAST},
    };
    static const char *const FILES[] = {"config.json", "model.safetensors", "tokenizer_config.json"};
    bytes text = bytes_empty(1 << 24);
    err_detail d = {0};
    CHECK_OK(file_read(&text, check_data("qwen3_embedding/tokenizer.json"), &d), d);
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        char parent[FOLDER_NAME], dir[FOLDER_NAME + 32], from[128], to[FOLDER_NAME + 128];
        folder_make(parent);
        snprintf(dir, sizeof dir, "%s/%s", parent, KINDS[i].name);
        CHECK_INT(mkdir(dir, 0700), 0);
        for (size_t k = 0; k < ARRAY_LEN(FILES); k++) {
            snprintf(from, sizeof from, "qwen3_embedding/%s", FILES[k]);
            snprintf(to, sizeof to, "%s/%s", dir, FILES[k]);
            CHECK_INT(symlink(check_data(from), to), 0);
        }
        snprintf(to, sizeof to, "%s/modules.json", dir);
        CHECK(!KINDS[i].has_modules || symlink(check_data("qwen3_embedding/modules.json"), to) == 0);
        snprintf(to, sizeof to, "%s/1_Pooling", dir);
        if (!KINDS[i].pooling) {
            CHECK_INT(symlink(check_data("qwen3_embedding/1_Pooling"), to), 0);
        } else if (KINDS[i].pooling[0]) {
            CHECK_INT(mkdir(to, 0700), 0);
            snprintf(to, sizeof to, "%s/1_Pooling/config.json", dir);
            write_without(to, KINDS[i].pooling, "");
        }
        snprintf(to, sizeof to, "%s/tokenizer.json", dir);
        write_without(to, bytes_str(&text), KINDS[i].gone);
        engine *e = answers_open(&(engine_options){
            .model_dir = dir, .n_ctx = 256, .n_parallel = 1, .n_threads = 1, .exact = true});
        const engine_info *info = engine_get_info(e);
        CHECK_INT(info->is_embedder, KINDS[i].is_embedder);
        CHECK_INT(info->is_reranker, KINDS[i].is_reranker);
        CHECK_INT(info->pool, KINDS[i].pool);
        engine_close(e);
    }
    bytes_deinit(&text);
}

static void test_bad(void)
{
    static int32_t many[300];
    const int32_t beyond = 1 << 20;
    const gen_input bad[] = {{.text = "", .len = 0},
                             {.ids = many, .n_ids = 0},
                             {.ids = &beyond, .n_ids = 1},
                             {.ids = many, .n_ids = 300}};
    engine *e = open_model(0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const gen_input inputs[2] = {{.text = "fine", .len = 4}, bad[i]};
        gen_request *r = NULL;
        err_detail d = {0};
        CHECK_INT(engine_prepare_inputs(e, &r, inputs, 2, GEN_POOL_LAST, 0, &d),
                  i == 3 ? ERR_LIMIT : ERR_INVALID);
        CHECK_STR(d.param, "input[1]");
        CHECK(!r);
    }
    engine_close(e);
}

/* So many tokens that all inputs together may have just that many, and one more. */
static void test_all_inputs(void)
{
    enum { EACH = 256, N = LIMIT_INPUT_TOKENS / EACH };
    static const int32_t ids[EACH];
    static gen_input inputs[N + 1];
    char dir[4096];
    err_detail d = {0};
    gen_request *r = NULL;
    snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    engine *e = answers_open(
        &(engine_options){.model_dir = dir, .n_ctx = EACH, .n_parallel = 1, .n_threads = 1, .exact = true});
    for (size_t i = 0; i <= N; i++) {
        inputs[i] = (gen_input){.ids = ids, .n_ids = i < N ? EACH : 1};
    }
    CHECK_OK(engine_prepare_inputs(e, &r, inputs, N, GEN_POOL_MEAN, 0, &d), d);
    gen_request_free(r);
    r = NULL;
    CHECK_INT(engine_prepare_inputs(e, &r, inputs, N + 1, GEN_POOL_MEAN, 0, &d), ERR_LIMIT);
    CHECK(r == NULL);
    CHECK_STR(d.name, "input_too_long");
    CHECK_STR(d.param, "input");
    CHECK_STR(d.text, "all inputs together may have 1048576 tokens; send several requests");
    engine_close(e);
}

int main(void)
{
    answers_begin();
    test_reference(0);
    test_reference(16);
    test_end();
    test_behind();
    test_purpose();
    test_bad();
    test_all_inputs();
    answers_end();
    CHECK_DONE();
}
