/* inspect: what it says of a folder and of a GGUF file, and why one cannot be loaded. */
#define _GNU_SOURCE /* memmem */
#include "engine/inspect.h"

#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/compiler.h"
#include "base/file.h"
#include "engine/engine.h"
#include "tests/model/random_families.h"
#include "tests/model/tool.h"
#include "tests/recorded.h"

enum { DEPTH = 4 };

static double number(const json_doc *doc, const char *name)
{
    return json_num(json_get(json_root(doc), name), -1);
}

static json_doc *inspect(const char *path)
{
    json_doc *doc = NULL;
    bytes out;
    err_detail d = {0};
    bytes_init(&out, 1 << 16);
    CHECK_OK(inspect_model(&out, path, NULL, true, &d), d);
    CHECK_OK(json_parse(&doc, bytes_str(&out), out.len, DEPTH, &d), d);
    bytes_deinit(&out);
    return doc;
}

/* Every row of the report of tests/data/tiny, in order. What can be computed by hand is: bf16 takes two bytes a
 * parameter; the states' sizes differ by their 4096 x 2 heads x 32 x 2 numbers. */
static void check_rows(const json_doc *doc)
{
    static const struct {
        const char *name, *text; /* text NULL: a number */
        double number;
    } ROWS[] = {
        {"folder", "", 0},
        {"family", "qwen3_5", 0},
        {"parameters", NULL, 608556},
        {"weight_bytes", NULL, 2 * 608556},
        {"bytes_bf16", NULL, 2 * 608556},
        {"weight_bytes_q8", NULL, 1081464},
        {"weight_bytes_q4", NULL, 957464},
        {"layers", NULL, 4},
        {"attention_layers", NULL, 1},
        {"deltanet_layers", NULL, 3},
        {"hidden_size", NULL, 64},
        {"vocab_size", NULL, 1888},
        {"context", NULL, 32768},
        {"vision", "yes", 0},
        {"mtp", "yes", 0},
        {"chat_template", "no", 0},
        {"state_bytes_4096", NULL, 30016 + 4096 * 128 * 2},
        {"state_bytes_4096_q8", NULL, 619840},
        {"state_bytes_4096_q4", NULL, 357696},
        {"state_bytes_4096_f32", NULL, 30016 + 4096 * 128 * 4},
    };
    const json *member = json_child(json_root(doc));
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++, member = json_next(member)) {
        CHECK_STR(member ? json_key(member) : NULL, ROWS[i].name);
        if (member && !ROWS[i].text) {
            CHECK_NEAR(json_num(member, -1), ROWS[i].number, 0);
        } else if (member && ROWS[i].text[0]) {
            CHECK_STR(json_str(member, ""), ROWS[i].text);
        }
        if (!member) {
            return;
        }
    }
    CHECK(member == NULL);
}

/* A model of some hundred million parameters, whose file has no contents: what is told of it needs none. */
static void make_large(const char *dir)
{
    enum { H = 64, V = 1 << 20, I = 1 << 20 };
    static const struct {
        const char *name;
        size_t rows, columns; /* 0: a vector */
    } TENSORS[] = {{"embed_tokens", V, H},
                   {"norm", H, 0},
                   {"layers.0.input_layernorm", H, 0},
                   {"layers.0.post_attention_layernorm", H, 0},
                   {"layers.0.self_attn.q_proj", 64, H},
                   {"layers.0.self_attn.k_proj", 32, H},
                   {"layers.0.self_attn.v_proj", 32, H},
                   {"layers.0.self_attn.o_proj", H, 64},
                   {"layers.0.self_attn.q_norm", 16, 0},
                   {"layers.0.self_attn.k_norm", 16, 0},
                   {"layers.0.mlp.gate_proj", I, H},
                   {"layers.0.mlp.up_proj", I, H},
                   {"layers.0.mlp.down_proj", H, I},
                   {"lm_head", V, H}};
    char path[4096];
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    CHECK_INT(symlink(check_data("tiny/tokenizer.json"), path), 0);
    size_t at = 0;
    bytes header = bytes_empty(1 << 16);
    for (size_t i = 0; i < ARRAY_LEN(TENSORS); i++) {
        const size_t columns = TENSORS[i].columns, n = TENSORS[i].rows * (columns ? columns : 1) * 2;
        bytes_printf(&header, "%c\"%s%s.weight\":{\"dtype\":\"BF16\",\"shape\":[%zu", i ? ',' : '{',
                     i + 1 < ARRAY_LEN(TENSORS) ? "model." : "", TENSORS[i].name, TENSORS[i].rows);
        bytes_printf(&header, columns ? ",%zu]" : "]", columns);
        bytes_printf(&header, ",\"data_offsets\":[%zu,%zu]}", at, at + n);
        at += n;
    }
    bytes_append_str(&header, header.len % 2 ? "}" : "} ");
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    FILE *f = fopen(path, "wb");
    const uint64_t n_header = header.len;
    CHECK(f && fwrite(&n_header, sizeof n_header, 1, f) == 1 && fwrite(header.data, header.len, 1, f) == 1);
    CHECK(f && fclose(f) == 0 && truncate(path, (off_t)(sizeof n_header + header.len + at)) == 0);
    bytes_deinit(&header);
    random_text(
        dir, "config.json",
        "{\"model_type\":\"qwen3\",\"vocab_size\":1048576,\"hidden_size\":64,\"num_attention_heads\":4,"
        "\"num_key_value_heads\":2,\"head_dim\":16,\"rms_norm_eps\":1e-6,\"max_position_embeddings\":4096,"
        "\"num_hidden_layers\":1,\"intermediate_size\":1048576" RANDOM_ROPE("") "}");
}

/* A line of a folder's list says of each model what its report says. */
static void test_folder(void)
{
    char root[FOLDER_NAME], dir[FOLDER_NAME + 8], line[256];
    json_doc *doc = NULL;
    err_detail d = {0};
    bytes out = bytes_empty(1 << 16);
    folder_make(root);
    snprintf(dir, sizeof dir, "%s/large", root);
    CHECK_INT(mkdir(dir, 0700), 0);
    make_large(dir);
    CHECK_OK(inspect_folder(&out, root, true, &d), d);
    CHECK_OK(json_parse(&doc, bytes_str(&out), out.len, DEPTH, &d), d);
    const json *one = json_child(json_root(doc));
    const double n = json_num(json_get(one, "parameters"), 0),
                 whole = json_num(json_get(one, "weight_bytes"), 0),
                 q8 = json_num(json_get(one, "weight_bytes_q8"), 0),
                 q4 = json_num(json_get(one, "weight_bytes_q4"), 0);
    CHECK(n > 3e8 && whole == 2 * n && q8 < 0.7 * whole && q4 < 0.8 * q8);
    bytes_clear(&out);
    CHECK_OK(inspect_folder(&out, root, false, &d), d);
    snprintf(line, sizeof line, "\n%-40s %8.2f %8.2f %8.2f %8.2f %9d  %-6s %s\n", "large", n / 1e9,
             whole / 1e9, q8 / 1e9, q4 / 1e9, 4096, "no", "no");
    const char *end = strchr(bytes_str(&out), '\n');
    CHECK_STR(end, line);
    json_free(doc);
    bytes_deinit(&out);
}

/* The text without the places of files, which are others on each machine. */
static void add_without(bytes *out, const char *text, const char *root)
{
    const char *const places[] = {root, PARLEY_SOURCE_DIR};
    while (*text) {
        size_t n = 0;
        for (size_t i = 0; i < ARRAY_LEN(places) && n == 0; i++) {
            n = strncmp(text, places[i], strlen(places[i])) == 0 ? strlen(places[i]) : 0;
        }
        if (n == 0) {
            bytes_append_char(out, *text);
        }
        text += n ? n : 1;
    }
}

/* A model with layers of Mamba-2 and with experts, and its report. */
static void make_hybrid(const char *root, bytes *out)
{
    char dir[64], path[FOLDER_NAME + 64];
    size_t i = 0;
    err_detail d = {0};
    while (strcmp(RANDOM_FAMILIES[i].name, "nemotron_h_moe") != 0) {
        i++;
    }
    random_checkpoint_make(dir, RANDOM_FAMILIES[i].config, RANDOM_FAMILIES[i].forms);
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    CHECK_INT(symlink(check_data("tiny/tokenizer.json"), path), 0);
    snprintf(path, sizeof path, "%s/hybrid", root);
    CHECK_INT(symlink(dir, path), 0);
    const err_code err = inspect_model(out, path, NULL, false, &d);
    bytes_printf(out, "%s\n", err == ERR_OK ? "" : d.text);
}

/* Whole reports of a folder and of its models, for people and for programs (tests/engine/inspected.txt). */
static void test_recorded(void)
{
    static const char *const MODELS[] = {"tiny",        "tiny_moe",      "tiny_gpt_oss",
                                         "tiny_gemma4", "tiny_qwen2_vl", "images"};
    char root[FOLDER_NAME], path[FOLDER_NAME + 64];
    err_detail d = {0};
    bytes out = bytes_empty(1 << 20), all = bytes_empty(1 << 20);
    folder_make(root);
    for (size_t i = 0; i < ARRAY_LEN(MODELS); i++) {
        const char *slash = strchr(MODELS[i], '/');
        snprintf(path, sizeof path, "%s/%s", root, slash ? slash + 1 : MODELS[i]);
        CHECK_INT(symlink(check_data(MODELS[i]), path), 0);
        const err_code err = inspect_model(&out, path, NULL, false, &d);
        bytes_printf(&out, "%s\n", err == ERR_OK ? "" : d.text);
    }
    make_hybrid(root, &out);
    snprintf(path, sizeof path, "%s/bare", root);
    CHECK_INT(mkdir(path, 0700), 0);
    random_text(path, "config.json", "{\"model_type\":\"qwen3_5\"}");
    for (int as_json = 0; as_json < 2; as_json++) {
        CHECK_OK(inspect_folder(&out, root, as_json, &d), d);
    }
    CHECK_INT(inspect_folder(&out, check_data("images"), false, &d), ERR_NOT_FOUND);
    bytes_printf(&out, "%s\n", d.text);
    add_without(&all, bytes_str(&out), root);
    recorded_check("engine/inspected.txt", bytes_str(&all));
    bytes_deinit(&out);
    bytes_deinit(&all);
}

/* ---- before a model is there ---- */

static void check_config(const char *text, err_code wanted, const char *says)
{
    err_detail d = {0};
    CHECK_INT(inspect_config(text, strlen(text), &d), wanted);
    CHECK(strstr(d.text, says) != NULL);
}

static void test_config(void)
{
    err_detail d = {0};
    bytes text = bytes_empty(1 << 20);
    CHECK_OK(file_read(&text, check_data("tiny/config.json"), &d), d);
    check_config(bytes_str(&text), ERR_OK, "");
    check_config("{\"model_type\":\"nothing\"}", ERR_UNSUPPORTED, "the model");
    check_config("{", ERR_INVALID, "line 1");
    bytes_deinit(&text);
}

/* Where a tensor's type stands in a GGUF file: behind its name and its dimensions. */
static char *type_of(bytes *file, const char *name)
{
    char *at = memmem(file->data, file->len, name, strlen(name));
    uint32_t n_dims = 0;
    CHECK(at != NULL);
    at += strlen(name);
    memcpy(&n_dims, at, sizeof n_dims);
    CHECK(n_dims >= 1 && n_dims <= 4);
    return at + sizeof n_dims + n_dims * sizeof(uint64_t);
}

/* What is fetched of a GGUF file before the rest is: enough to refuse it, or not yet. */
static void test_head(const char *path)
{
    enum { I32 = 26 };
    static const char ARCHITECTURE[] = "qwen35";
    bytes file = bytes_empty((size_t)16 << 20);
    err_detail d = {0};
    bool is_whole = false;
    CHECK_OK(file_read(&file, path, &d), d);
    const size_t n_file = file.len;
    size_t n_head = 0;
    for (size_t n = 1024; n < n_file && !is_whole; n += 1024) { /* from the first on that is enough, it is */
        CHECK_OK(inspect_gguf_head(file.data, n, n_file, true, &is_whole, &d), d);
        n_head = n;
    }
    CHECK(is_whole && n_head > 16384 && n_head < n_file / 2);
    CHECK_OK(inspect_gguf_head(file.data, n_head - 1024, n_file, true, &is_whole, &d), d);
    CHECK(!is_whole);
    CHECK_INT(inspect_gguf_head(file.data, n_head, n_head, true, &is_whole, &d), ERR_CORRUPT);
    CHECK(strstr(d.text, "the model") != NULL);

    char *type = type_of(&file, "blk.0.attn_norm.weight"), was[4];
    const uint32_t other = I32;
    memcpy(was, type, sizeof was);
    memcpy(type, &other, sizeof other);
    CHECK_INT(inspect_gguf_head(file.data, n_head, n_file, true, &is_whole, &d), ERR_UNSUPPORTED);
    CHECK(strstr(d.text, "type I32,") != NULL && strstr(d.text, "the model") != NULL);
    memcpy(type, was, sizeof was);
    CHECK_OK(inspect_gguf_head(file.data, n_head, n_file, true, &is_whole, &d), d);

    char *architecture = memmem(file.data, n_head, ARCHITECTURE, strlen(ARCHITECTURE));
    CHECK(architecture != NULL);
    memcpy(architecture, "qwen99", strlen(ARCHITECTURE));
    CHECK_INT(inspect_gguf_head(file.data, n_head, n_file, true, &is_whole, &d), ERR_UNSUPPORTED);
    CHECK(strstr(d.text, "qwen99") != NULL && strstr(d.text, "the model") != NULL);
    CHECK_OK(inspect_gguf_head(file.data, n_head, n_file, false, &is_whole, &d),
             d); /* a further part says nothing of it */
    bytes_deinit(&file);
}

/* ---- a checkpoint with weights in blocks ---- */

typedef struct told {
    double last;
    int n;
} told;

static void on_load(void *ctx, const char *stage, double fraction)
{
    told *t = ctx;
    CHECK_STR(stage, "weights");
    CHECK(fraction >= t->last && fraction <= 1.0);
    t->last = fraction;
    t->n++;
}

static void test_convert(const char *folder, double bytes_q8)
{
    char out[4096], missing[4200];
    err_detail d = {0};
    told t = {.n = 0};
    engine_convert_options o = {
        .layer_bits = 8, .head_bits = 8, .n_threads = 1, .on_load = on_load, .on_load_ctx = &t};
    snprintf(out, sizeof out, "%s/q8", folder);
    CHECK_OK(engine_convert(check_data("tiny"), out, &o, &d), d);
    CHECK(t.n > 2 && t.last == 1.0);
    json_doc *doc = inspect(out);
    CHECK_INT(number(doc, "weight_bytes"), bytes_q8);
    CHECK(number(doc, "weight_bytes_q8") == number(doc, "weight_bytes"));
    json_free(doc);
    o.on_load = NULL;
    snprintf(missing, sizeof missing, "%s/missing", folder);
    CHECK_INT(engine_convert(missing, out, &o, &d), ERR_NOT_FOUND);
}

int main(void)
{
    log_set_level(LOG_OFF);
    char folder[FOLDER_NAME], path[4096];
    folder_make(folder);
    test_folder();
    test_recorded();
    test_config();
    json_doc *a = inspect(check_data("tiny"));
    check_rows(a);
    CHECK(number(a, "bytes_bf16") > 0 && number(a, "bytes_q8_0") < 0);
    /* All but norms, vision and embeddings shrinks. */
    CHECK(number(a, "weight_bytes_q8") < number(a, "weight_bytes"));
    CHECK(number(a, "weight_bytes_q4") < number(a, "weight_bytes_q8"));
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    CHECK_INT(tool_run_3("make_gguf", check_data("tiny"), path, "q8_0"), 0);
    json_doc *b = inspect(path);
    CHECK(number(b, "parameters") == number(a, "parameters"));
    CHECK(number(b, "bytes_q8_0") > 0 && number(b, "bytes_f32") > 0);
    CHECK(number(b, "weight_bytes") < number(a, "weight_bytes"));
    CHECK(number(b, "weight_bytes_q4") <= number(b, "weight_bytes"));
    test_head(path);
    CHECK_INT(truncate(path, 100000), 0);
    bytes out;
    err_detail d = {0};
    bytes_init(&out, 1 << 16);
    CHECK_INT(inspect_model(&out, path, NULL, false, &d), ERR_CORRUPT);
    CHECK(strstr(d.text, "m.gguf") != NULL && out.len == 0);
    bytes_deinit(&out);
    test_convert(folder, number(a, "weight_bytes_q8"));
    json_free(a);
    json_free(b);
    CHECK_DONE();
}
