/* weights: what a checkpoint must hold. Each case changes one tensor of the tiny checkpoint's
 * header and says what the message must name. */
#include "tests/check.h"

#include <stdint.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/file.h"
#include "model/checkpoint/checkpoint.h"
#include "model/config/config_load.h"
#include "model/model.h"
#include "model/weights.h"
#include "tests/folder.h"
#include "tests/model/random_families.h"

static char folder[FOLDER_NAME];

/* Where `part` first occurs in text[0..n), or NULL. */
static const char *find_part(const char *text, size_t n, const char *part)
{
    size_t len = strlen(part);
    for (size_t i = 0; i + len <= n; i++) {
        if (memcmp(text + i, part, len) == 0) {
            return text + i;
        }
    }
    return NULL;
}

/* Replaces the first `from` of the file's header by `to`; the data stays. Writes it to
 * folder/name. */
static void write_changed(const char *name, const char *from, const char *to)
{
    char path[4096], relative[64];
    file_map m;
    bytes header;
    err_detail d = {0};
    uint64_t n = 0;
    snprintf(relative, sizeof relative, "tiny/%s", name);
    CHECK_OK(file_map_open(&m, check_data(relative), &d), d);
    memcpy(&n, m.data, sizeof n);
    bytes_init(&header, 1 << 20);
    const char *text = (const char *)m.data + 8, *at = from ? find_part(text, n, from) : NULL;
    CHECK(!from || at != NULL);
    size_t before = at ? (size_t)(at - text) : n;
    bytes_append(&header, text, before);
    if (at) {
        bytes_append_str(&header, to);
        bytes_append(&header, at + strlen(from), n - before - strlen(from));
    }
    bytes_append_str(&header, header.len % 2 ? " " : "");
    uint64_t length = header.len;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(&length, 1, 8, f) == 8 && fwrite(header.data, 1, header.len, f) == header.len);
    CHECK(f && fwrite(m.data + 8 + n, 1, m.bytes - 8 - n, f) == m.bytes - 8 - n);
    CHECK(f && fclose(f) == 0);
    bytes_deinit(&header);
    file_map_close(&m);
}

static err_code open_changed(const model_config *cfg, weights **w, err_detail *d)
{
    checkpoint *ck = NULL;
    CHECK_OK(checkpoint_open(&ck, folder, NULL, d), *d);
    err_code err = ck ? weights_open(w, cfg, ck, NULL, NULL, d) : ERR_INTERNAL;
    weights_close(*w);
    checkpoint_close(ck);
    return err;
}

#define L0 "model.language_model.layers.0."
#define L3 "model.language_model.layers.3."

static void test_changed_files(const model_config *cfg)
{
    static const struct {
        const char *file, *from, *to, *named;
        err_code err;
    } cases[] = {
        {"model.safetensors", NULL, NULL, "", ERR_OK},
        {"model.safetensors", "\"" L0 "input_layernorm.weight\"", "\"x\"",
         L0 "input_layernorm.weight is missing", ERR_NOT_FOUND},
        {"model.safetensors", "\"" L0 "linear_attn.A_log\"", "\"x\"", "A_log is missing", ERR_NOT_FOUND},
        {"model.safetensors", "\"" L3 "self_attn.q_norm.weight\"", "\"x\"", "q_norm", ERR_NOT_FOUND},
        {"model.safetensors", "\"" L3 "mlp.up_proj.weight\"", "\"x\"", "up_proj", ERR_NOT_FOUND},
        {"model.safetensors", "\"model.language_model.embed_tokens.weight\"", "\"x\"", "embed_tokens",
         ERR_NOT_FOUND},
        {"model.safetensors", "\"model.language_model.norm.weight\"", "\"x\"", "model.norm.weight",
         ERR_NOT_FOUND},
        {"model.safetensors", "[160,1,4]", "[160,2,2]", "[160, 1, 4] by config.json, but is [160, 2, 2]",
         ERR_CORRUPT},
        {"model.safetensors", "[1888,64]", "[64,1888]", "[1888, 64] by config.json, but is [64, 1888]",
         ERR_CORRUPT},
        {"model.safetensors", "[96,64]", "[6144]", "should have the shape", ERR_CORRUPT},
        {"model.safetensors", "{\"dtype\":\"BF16\",\"shape\":[1888,64]",
         "{\"dtype\":\"I16\",\"shape\":[1888,64]", "embed_tokens.weight has a type", ERR_UNSUPPORTED},
        {"model.safetensors", "{\"dtype\":\"BF16\",\"shape\":[1888,64]",
         "{\"dtype\":\"F16\",\"shape\":[1888,64]", "", ERR_OK},
        {"model-mtp.safetensors", NULL, NULL, "", ERR_OK},
        {"model-mtp.safetensors", "\"mtp.fc.weight\"", "\"mtp.x\"", "mtp.fc.weight is missing",
         ERR_NOT_FOUND},
        {"model-mtp.safetensors", "\"mtp.norm.weight\"", "\"mtp.x\"", "mtp.norm.weight is missing",
         ERR_NOT_FOUND},
        {"model-mtp.safetensors", "\"mtp.layers.0.self_attn.k_proj.weight\"", "\"mtp.x\"", "k_proj",
         ERR_NOT_FOUND},
        {"model-mtp.safetensors", "[64,128]", "[128,64]", "[64, 128] by config.json", ERR_CORRUPT},
    };
    write_changed("model-mtp.safetensors", NULL, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        weights *w = NULL;
        err_detail d = {0};
        if (strcmp(cases[i].file, "model-mtp.safetensors") == 0) {
            write_changed("model.safetensors", NULL, NULL);
        }
        write_changed(cases[i].file, cases[i].from, cases[i].to);
        err_code err = open_changed(cfg, &w, &d);
        CHECK_INT(err, cases[i].err);
        if (!strstr(d.text, cases[i].named)) {
            fprintf(stderr, "  case %zu: \"%s\" does not hold \"%s\"\n", i, d.text, cases[i].named);
            CHECK(!"message");
        }
        CHECK(err == ERR_OK || w == NULL);
    }
}

/* An untied head must be there; a head without its own file is no head. */
static void test_head(const model_config *cfg)
{
    model_config untied = *cfg, no_mtp = *cfg;
    weights *w = NULL;
    err_detail d = {0};
    write_changed("model.safetensors", NULL, NULL);
    write_changed("model-mtp.safetensors", NULL, NULL);
    untied.tie_word_embeddings = false;
    CHECK_INT(open_changed(&untied, &w, &d), ERR_NOT_FOUND);
    CHECK(strstr(d.text, "lm_head.weight is missing") != NULL);
    no_mtp.n_mtp_layers = 0; /* then its tensors are nobody's */
    CHECK_OK(open_changed(&no_mtp, &w, &d), d);
}

static void count_progress(void *ctx, uint64_t done, uint64_t total)
{
    uint64_t *last = ctx;
    CHECK(done >= last[0] && done <= total && total > 0);
    last[0] = done;
    last[1] = total;
}

static void test_values(void)
{
    model *m = NULL;
    tensor raw;
    float stored[2];
    uint64_t progress[2] = {0, 0};
    weights *w = NULL;
    checkpoint *ck = NULL;
    model_config cfg;
    err_detail d = {0};
    model_open_options options = {.weights_only = true, .progress = count_progress, .progress_ctx = progress};
    CHECK_OK(model_open(&m, check_data("tiny"), &options, &d), d);
    CHECK(m && progress[0] == progress[1] && progress[1] > 0);
    CHECK(m && model_has_mtp(m) && model_tokenizer(m) == NULL);
    /* all tensors of both files are in use: two bytes a parameter */
    CHECK_INT(model_weight_bytes(m), progress[1]);
    CHECK_INT(model_n_params(m), progress[1] / 2);
    model_close(m);
    model_close(NULL);

    CHECK_OK(model_config_load(&cfg, json_folder(check_data("tiny")), &d), d);
    CHECK_OK(checkpoint_open(&ck, check_data("tiny"), NULL, &d), d);
    CHECK_OK(weights_open(&w, &cfg, ck, NULL, NULL, &d), d);
    const tensor_source source = tensor_table_source(checkpoint_tensors(ck));
    CHECK(source.find(source.ctx, "layers.0.input_layernorm.weight", &raw));
    tensor_to_f32(stored, &raw, 0, 2);
    CHECK_NEAR(w->layers[0].input_norm[1], 1.0f + stored[1], 0);
    CHECK(source.find(source.ctx, "layers.0.linear_attn.norm.weight", &raw));
    tensor_to_f32(stored, &raw, 0, 2);
    CHECK_NEAR(w->layers[0].deltanet.norm[1], stored[1], 0); /* this one is not zero-centred */
    CHECK(w->head.data == w->embed.data);
    CHECK_INT(w->layers[3].kind, LAYER_ATTENTION);
    weights_close(w);
    weights_close(NULL);
    checkpoint_close(ck);
}

static const attention_weights *attention_of(const weights *w, const model_config *cfg, layer_kind kind)
{
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        if (w->layers[i].kind == kind) {
            return &w->layers[i].attention;
        }
    }
    return NULL;
}

/* What a config leaves out is not looked for, whatever the file holds. */
static void test_left_out(void)
{
    static const struct {
        const char *family, *config; /* beside that of the family */
        bool conv_bias, key_bias, value_bias;
    } CASES[] = {
        {"nemotron_h", "", true, false, false},
        {"nemotron_h", ",\"use_conv_bias\":true", true, false, false},
        {"nemotron_h", ",\"use_conv_bias\":false", false, false, false},
        {"llama", "", false, false, false},
        {"llama", ",\"attention_bias\":true", false, true, true},
        {"gemma4_text", "", false, false, false},
        {"gemma4_text", ",\"attention_bias\":true", false, true, false}, /* of full layers keys are values */
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char dir[64], text[2048];
        size_t at = 0;
        model_config cfg;
        checkpoint *ck = NULL;
        weights *w = NULL;
        err_detail d = {0};
        while (strcmp(RANDOM_FAMILIES[at].name, CASES[i].family) != 0) {
            at++;
        }
        const char *config = RANDOM_FAMILIES[at].config;
        snprintf(text, sizeof text, "%.*s%s}", (int)strlen(config) - 1, config, CASES[i].config);
        random_checkpoint_make(dir, text, RANDOM_FAMILIES[at].forms);
        CHECK_OK(model_config_load(&cfg, json_folder(dir), &d), d);
        CHECK_OK(checkpoint_open(&ck, dir, NULL, &d), d);
        CHECK_OK(weights_open(&w, &cfg, ck, NULL, NULL, &d), d);
        const attention_weights *full = w ? attention_of(w, &cfg, LAYER_ATTENTION) : NULL;
        CHECK_INT(w && w->layers[0].mamba.conv_bias != NULL, CASES[i].conv_bias);
        CHECK_INT(full && full->k_bias != NULL, CASES[i].key_bias);
        CHECK_INT(full && full->q_bias != NULL, CASES[i].key_bias);
        CHECK_INT(full && full->o_bias != NULL, CASES[i].key_bias);
        CHECK_INT(full && full->v_bias != NULL, CASES[i].value_bias);
        const attention_weights *sliding = w ? attention_of(w, &cfg, LAYER_SLIDING) : NULL;
        CHECK(!sliding || (sliding->v_bias != NULL) == CASES[i].key_bias);
        weights_close(w);
        checkpoint_close(ck);
    }
}

/* Copies the tiny checkpoint's config.json into the folder. */
static void write_config(void)
{
    char path[4096];
    bytes text;
    err_detail d = {0};
    bytes_init(&text, 1 << 20);
    CHECK_OK(file_read(&text, check_data("tiny/config.json"), &d), d);
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(text.data, 1, text.len, f) == text.len);
    CHECK(f && fclose(f) == 0);
    bytes_deinit(&text);
}

static void test_broken_folders(void)
{
    char path[4096];
    model *m = NULL;
    err_detail d = {0};
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(model_open(&m, "/nonexistent", &(model_open_options){0}, &d), ERR_NOT_FOUND);
    CHECK(strstr(d.text, "config.json") != NULL);
    CHECK_INT(model_open(&m, folder, &(model_open_options){0}, &d), ERR_NOT_FOUND);
    CHECK(strstr(d.text, "model.safetensors") != NULL);
    CHECK(m == NULL);
}

int main(void)
{
    model_config cfg;
    err_detail d = {0};
    folder_make(folder);
    write_config();
    CHECK_OK(model_config_load(&cfg, json_folder(check_data("tiny")), &d), d);
    test_changed_files(&cfg);
    test_head(&cfg);
    test_values();
    test_left_out();
    test_broken_folders();
    CHECK_DONE();
}
