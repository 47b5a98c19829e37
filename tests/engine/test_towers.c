/* Vision towers that do not fit the text model beside them, or the image processor's settings, are
 * refused with what does not fit. */
#include "tests/check.h"

#include <unistd.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/engine.h"
#include "tests/model/random_families.h"

static err_detail d;

static void read_data(bytes *out, const char *folder, const char *name)
{
    char path[256];
    bytes_init(out, 1 << 24);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_OK(file_read(out, check_data(path), &d), d);
}

/* Every `from` becomes `to`, which is as long. */
static void replace(bytes *text, const char *from, const char *to)
{
    const size_t n = strlen(from);
    CHECK_INT(strlen(to), n);
    for (size_t i = 0; i + n <= text->len; i++) {
        if (memcmp(text->data + i, from, n) == 0) {
            memcpy(text->data + i, to, n);
        }
    }
}

static void write_data(const char *dir, const char *name, const bytes *data)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(data->data, 1, data->len, f) == data->len && fclose(f) == 0);
}

/* Adds a line for every tensor of a file to an index. */
static void list_tensors(bytes *index, const char *dir, const char *name)
{
    char path[256];
    bytes file;
    uint64_t n = 0;
    json_doc *head = NULL;
    bytes_init(&file, 1 << 24);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK_OK(file_read(&file, path, &d), d);
    memcpy(&n, file.data, sizeof n);
    CHECK_OK(json_parse(&head, bytes_str(&file) + sizeof n, n, LIMIT_JSON_DEPTH, &d), d);
    for (const json *t = json_child(json_root(head)); t; t = json_next(t)) {
        if (strcmp(json_key(t), "__metadata__") != 0) {
            bytes_json(index, "%s:%s,", json_key(t), name);
        }
    }
    json_free(head);
    bytes_deinit(&file);
}

/* A text model of Qwen3.5 of this width beside the tower of a folder of tests/data, with its
 * processor's settings, in which "merge_size": 2 becomes `merge`. */
static void make(char dir[64], int width, const char *tower, const char *merge)
{
    bytes file, config;
    json_doc *doc = NULL;
    bytes_init(&config, 1 << 16);
    read_data(&file, tower, "config.json");
    CHECK_OK(json_parse(&doc, bytes_str(&file), file.len, LIMIT_JSON_DEPTH, &d), d);
    bytes_append_str(&config, "{\"model_type\":\"qwen3_5\",\"image_token_id\":1812,\"video_token_id\":1813,"
                              "\"vision_start_token_id\":1809,\"vision_end_token_id\":1810,"
                              "\"vision_config\":");
    json_write(&config, json_get(json_root(doc), "vision_config"));
    bytes_printf(
        &config,
        ",\"text_config\":{" RANDOM_SIZES RANDOM_DELTA
        ",\"hidden_size\":%d,\"intermediate_size\":80" RANDOM_ROPE(",\"mrope_section\":[1,1,0]") "}}",
        width);
    random_checkpoint_make(dir, bytes_str(&config), 0);
    json_free(doc);
    bytes_deinit(&file);
    bytes_deinit(&config);

    read_data(&file, "tiny", "tokenizer.json");
    write_data(dir, "tokenizer.json", &file);
    bytes_deinit(&file);
    read_data(&file, tower, "processor_config.json");
    replace(&file, "\"merge_size\": 2", merge);
    write_data(dir, "processor_config.json", &file);
    bytes_deinit(&file);
    read_data(&file, tower, "model.safetensors");
    replace(&file, "language_model.", "somebody_model."); /* the tower alone has names that are known */
    replace(&file, "\"lm_head.", "\"an_head.");
    write_data(dir, "tower.safetensors", &file);
    bytes_deinit(&file);
    bytes index;
    bytes_init(&index, 1 << 20);
    bytes_append_str(&index, "{\"weight_map\":{");
    list_tensors(&index, dir, "model.safetensors");
    list_tensors(&index, dir, "tower.safetensors");
    index.len--; /* the last comma */
    bytes_append_str(&index, "}}");
    random_text(dir, "model.safetensors.index.json", bytes_str(&index));
    bytes_deinit(&index);
}

static const char *const names[] = {"config.json", "model.safetensors", "tokenizer.json",
                                    "tokenizer_config.json", "preprocessor_config.json"};

/* tests/data/tiny_qwen2_5_vl, in whose config.json `from` becomes `to`. */
static void make_windowed(char dir[64], const char *from, const char *to)
{
    snprintf(dir, 64, "/tmp/parley_towers_XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        bytes file;
        read_data(&file, "tiny_qwen2_5_vl", names[i]);
        if (i == 0) {
            replace(&file, from, to);
        }
        write_data(dir, names[i], &file);
        bytes_deinit(&file);
    }
}

static void remove_windowed(const char *dir)
{
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        CHECK_INT(unlink(path), 0);
    }
    CHECK_INT(rmdir(dir), 0);
}

static err_code try_open(const char *dir)
{
    engine *e = NULL; /* what does not fit is seen before a template is looked for */
    engine_options opt = {.model_dir = dir, .n_ctx = 256, .n_parallel = 1, .n_threads = 1};
    gen_params_init(&opt.defaults);
    d = (err_detail){0};
    err_code err = engine_open(&e, &opt, &d);
    CHECK((e != NULL) == (err == ERR_OK));
    engine_close(e);
    return err;
}

int main(void)
{
    static const struct {
        int width;
        const char *tower, *merge;
        err_code err;
        const char *named;
    } cases[] = {
        {32, "tiny", "\"merge_size\": 2", ERR_CORRUPT,
         "vision_config.out_hidden_size is 64, but the text model is 32 wide"},
        {32, "tiny_vl_moe", "\"merge_size\": 2", ERR_UNSUPPORTED,
         "vision_config.deepstack_visual_indexes names 1 blocks, but in the family qwen3_5"},
        {64, "tiny", "\"merge_size\": 4", ERR_CORRUPT,
         "the image processor's settings join 4 x 4 patches, but the vision tower 2 x 2"},
    };
    log_set_level(LOG_OFF);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char dir[64];
        make(dir, cases[i].width, cases[i].tower, cases[i].merge);
        CHECK_INT(try_open(dir), cases[i].err);
        if (!strstr(d.text, cases[i].named)) {
            fprintf(stderr, "  case %zu: \"%s\"\n", i, d.text);
            CHECK(!"message");
        }
    }
    static const struct {
        const char *from, *to;
        err_code err;
        const char *named;
    } windowed[] = {
        {"\"window_size\": 16", "\"window_size\": 15", ERR_OK, ""},
        {"\"window_size\": 16", "\"window_size\": 07", ERR_INVALID, "config.json"},
        {"\"window_size\": 16", "\"window_size\":  7", ERR_INVALID, "window_size is smaller than a block"},
        {"\"depth\": 3", "\"depth\": 1", ERR_INVALID, "fullatt_block_indexes must list numbers of blocks"},
        {"\"depth\": 3", "\"depth\": 4", ERR_NOT_FOUND, "visual.blocks.3.norm1.weight is missing"},
        {"\"num_heads\": 2", "\"num_heads\": 3", ERR_INVALID, "num_heads times a multiple of 4"},
    };
    for (size_t i = 0; i < ARRAY_LEN(windowed); i++) {
        char dir[64];
        make_windowed(dir, windowed[i].from, windowed[i].to);
        CHECK_INT(try_open(dir), windowed[i].err);
        if (!strstr(d.text, windowed[i].named)) {
            fprintf(stderr, "  windowed %zu: \"%s\"\n", i, d.text);
            CHECK(!"message");
        }
        remove_windowed(dir);
    }
    CHECK_DONE();
}
