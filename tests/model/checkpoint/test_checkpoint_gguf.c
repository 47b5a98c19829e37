/* The GGUF form of a checkpoint: the small reference model, written as GGUF with its vision tower,
 * gives the reference outputs (text, images, video, draft head, tokens); packed in blocks it says
 * nearly the same; files of which something is missing or unknown are refused by name. */
#include "tests/model/tiny.h"

#include <unistd.h>

#include "base/file.h"
#include "model/checkpoint/checkpoint.h"
#include "tests/compute/levels.h"
#include "tests/model/checkpoint/gguf_maker.h"
#include "tests/model/tool.h"
#include "tests/folder.h"

static char folder[FOLDER_NAME];

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* tests/data/tiny as FOLDER/NAME, with mmproj-NAME beside it. */
static void make(const char *name, const char *type)
{
    CHECK_INT(tool_run_3("make_gguf", check_data("tiny"), path_of(name), type), 0);
}

static void test_reference(void)
{
    char tiny_dir[4096];
    snprintf(tiny_dir, sizeof tiny_dir, "%s", check_data("tiny"));
    make("bf16.gguf", "bf16");
    CHECK_INT(tool_run_3("check_reference", tiny_dir, "native", path_of("bf16.gguf")), 0);
}

/* What else the file holds is what the folder holds; without the mmproj file it is a model of
 * text. */
static void test_contents(void)
{
    checkpoint *a = NULL, *b = NULL;
    model *m = NULL;
    err_detail d = {0};
    CHECK_OK(checkpoint_open(&a, check_data("tiny"), NULL, &d), d);
    CHECK_OK(checkpoint_open(&b, path_of("bf16.gguf"), NULL, &d), d);
    if (!a || !b) {
        return;
    }
    CHECK_INT(checkpoint_tensors(b)->n, checkpoint_tensors(a)->n);
    checkpoint_close(a);
    checkpoint_close(b);
    CHECK_OK(model_open(&m, path_of("bf16.gguf"), &(model_open_options){0}, &d), d);
    CHECK(m && model_has_mtp(m) && model_get_config(m)->has_vision && model_get_config(m)->delta_tiled);
    model_close(m);
    char vision[4096], elsewhere[4096];
    snprintf(vision, sizeof vision, "%s", path_of("mmproj-bf16.gguf"));
    snprintf(elsewhere, sizeof elsewhere, "%s", path_of("tower.gguf")); /* not found by its name */
    CHECK_INT(rename(vision, elsewhere), 0);
    CHECK_OK(model_open(&m, path_of("bf16.gguf"), &(model_open_options){.mmproj = elsewhere}, &d), d);
    CHECK(m && model_get_config(m)->has_vision);
    model_close(m);
    m = NULL;
    snprintf(vision, sizeof vision, "%s", path_of("bf16.gguf"));
    CHECK_INT(model_open(&m, vision, &(model_open_options){.mmproj = vision}, &d), ERR_INVALID);
    CHECK(strstr(d.text, "is not a vision tower of") != NULL);
    CHECK_INT(model_open(&m, check_data("tiny"), &(model_open_options){.mmproj = vision}, &d), ERR_INVALID);
    CHECK(strstr(d.text, "--mmproj") != NULL);
    CHECK_OK(model_open(&m, path_of("bf16.gguf"), &(model_open_options){0}, &d), d);
    CHECK(m && !model_get_config(m)->has_vision);
    model_close(m);
}

static void begin_model(gguf_maker *m, const char *arch)
{
    maker_init(m);
    maker_text(m, "general.architecture", arch);
    maker_u32(m, "qwen3.block_count", 1);
}

/* A folder with one model, alone or in parts, is that model; of two, one must be named. */
static void test_folders(void)
{
    char dir[4096];
    gguf_maker m;
    checkpoint *ck = NULL;
    err_detail d = {0};
    snprintf(dir, sizeof dir, "%s/models", folder);
    CHECK_INT(mkdir(dir, 0755), 0);
    for (uint32_t part = 0; part < 2; part++) {
        begin_model(&m, "qwen3");
        maker_u32(&m, "split.no", part);
        maker_u32(&m, "split.count", 2);
        maker_write(&m, path_of(part ? "models/m-00002-of-00002.gguf" : "models/m-00001-of-00002.gguf"));
    }
    CHECK_OK(checkpoint_open(&ck, dir, NULL, &d), d);
    checkpoint_close(ck);
    begin_model(&m, "qwen3");
    maker_write(&m, path_of("models/other.gguf"));
    CHECK_INT(checkpoint_open(&ck, dir, NULL, &d), ERR_INVALID);
    CHECK(strstr(d.text, "holds 2 GGUF models") != NULL);
    static const char *const ALONE[] = {"a-of-b.gguf", "-of-.gguf", "12345-of-2.gguf",
                                        "m-00001-of-00001.gguf"};
    for (size_t i = 0; i < ARRAY_LEN(ALONE); i++) { /* names that say no part, or the first */
        char one[FOLDER_NAME], path[FOLDER_NAME + 64];
        folder_make(one);
        snprintf(path, sizeof path, "%s/%s", one, ALONE[i]);
        begin_model(&m, "qwen3");
        maker_write(&m, path);
        CHECK_OK(checkpoint_open(&ck, one, NULL, &d), d);
        CHECK_STR(ck ? checkpoint_path(ck) : "", path);
        checkpoint_close(ck);
    }
}

/* Tensors that a file has in another form than a folder: their sizes as they are seen. */
static void test_forms(void)
{
    static const struct {
        const char *stored, *name;
        uint64_t dims[3]; /* as in the file: the length of a row first */
        uint32_t n_dims;
        size_t seen[4]; /* 0 ends them */
    } CASES[] = {
        {"blk.0.ffn_gate_inp_shexp.weight", "layers.0.mlp.shared_expert_gate.weight", {5}, 1, {1, 5}},
        {"blk.0.ffn_gate_inp_shexp.weight", "layers.0.mlp.shared_expert_gate.weight", {5, 1}, 2, {1, 5}},
        {"blk.0.ssm_conv1d.weight", "layers.0.linear_attn.conv1d.weight", {4, 6}, 2, {6, 1, 4}},
        {"blk.0.ssm_a", "layers.0.linear_attn.A_log", {3}, 1, {3}},
        {"output_norm.weight", "norm.weight", {6}, 1, {6}},
        {"blk.0.ffn_gate_exps.weight", "layers.0.mlp.experts.gate_proj", {2, 3, 4}, 3, {4, 3, 2}},
    };
    static const float data[32] = {-1, -1, -1};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        gguf_maker m;
        checkpoint *ck = NULL;
        err_detail d = {0};
        uint64_t n = 1;
        maker_init(&m);
        maker_text(&m, "general.architecture", "qwen35moe");
        maker_u32(&m, "qwen35moe.block_count", 1);
        for (uint32_t k = 0; k < CASES[i].n_dims; k++) {
            n *= CASES[i].dims[k];
        }
        maker_tensor(&m, CASES[i].stored, 0, CASES[i].dims, CASES[i].n_dims, data, n * sizeof *data);
        maker_write(&m, path_of("form.gguf"));
        CHECK_OK(checkpoint_open(&ck, path_of("form.gguf"), NULL, &d), d);
        const tensor_table *all = ck ? checkpoint_tensors(ck) : NULL;
        CHECK_INT(all ? all->n : 0, 1);
        if (all && all->n == 1) {
            const tensor *t = &all->items[0].view;
            int32_t n_seen = 0;
            while (CASES[i].seen[n_seen] > 0) {
                n_seen++;
            }
            CHECK_STR(all->items[0].name, CASES[i].name);
            CHECK_INT(t->n_dims, n_seen);
            CHECK(memcmp(t->dims, CASES[i].seen, (size_t)n_seen * sizeof *t->dims) == 0);
        }
        checkpoint_close(ck);
    }
}

static void prompt_logits(float *out, const char *path, unsigned cpu_mask)
{
    static int32_t ids[TINY_CTX];
    const int32_t n = tiny_ids(ids, 100);
    tiny t = tiny_open_as(&(tiny_options){path, 2, cpu_mask, KV_BF16, 0, true, false});
    seq_state *s = tiny_seq(&t);
    memcpy(out, tiny_run(&t, s, ids, n, false, false), TINY_V * sizeof *out);
    seq_state_destroy(s);
    tiny_close(&t);
}

/* What blocks cost in exactness; the width is too small for those of 256 columns. It depends on what is rounded beside
 * them: the vector kernels make bytes of the activations beside q8_0; those that multiply bf16 round the activations
 * beside bf16, too, which brings q8_0 nearer and f16, whose activations stay, further away. */
static void test_blocks(void)
{
    static const struct {
        const char *type;
        double generic, bytes, bf16;
    } cases[] = {{"f16", 0.001, 0.001, 0.03},
                 {"q8_0", 0.045, 0.083, 0.08},
                 {"q5_1", 0.26, 0.25, 0.4},
                 {"iq4_nl", 0.74, 0.77, 0.8}};
    static float exact[TINY_V], packed[TINY_V];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.gguf", cases[i].type);
        make(name, cases[i].type);
    }
    for (const test_level *l = test_levels(); l->name; l++) {
        const ops *o = ops_select(cpu_flags() & test_cpu_mask() & l->mask); /* which the level leaves */
        prompt_logits(exact, path_of("bf16.gguf"), l->mask);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            char name[32];
            snprintf(name, sizeof name, "%s.gguf", cases[i].type);
            prompt_logits(packed, path_of(name), l->mask);
            const double found = tiny_difference(packed, exact, TINY_V);
            const double most = o == ops_generic() ? cases[i].generic
                                : o->tile_bf16     ? cases[i].bf16
                                                   : cases[i].bytes;
            printf("%s, %s: %.4f of %.3f\n", cases[i].type, o->name, found, most);
            CHECK(found < most);
        }
    }
}

/* ---- what is refused ---- */

static const float FOUR[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static void refuse(gguf_maker *m, err_code expected, const char *named)
{
    model *opened = NULL;
    err_detail d = {0};
    maker_write(m, path_of("made.gguf"));
    CHECK_INT(model_open(&opened, path_of("made.gguf"), &(model_open_options){0}, &d), expected);
    CHECK(opened == NULL);
    if (!strstr(d.text, named) || !strstr(d.text, "made.gguf")) {
        fprintf(stderr, "  \"%s\" does not hold \"%s\" and the file\n", d.text, named);
        CHECK(!"message");
    }
}

static void test_template(void)
{
    checkpoint *ck = NULL;
    gguf_maker m;
    bytes text;
    err_detail d = {0};
    bytes_init(&text, 1000);
    begin_model(&m, "qwen3");
    maker_text(&m, "tokenizer.chat_template", "{{ messages }}");
    maker_write(&m, path_of("made.gguf"));
    CHECK_OK(checkpoint_open(&ck, path_of("made.gguf"), NULL, &d), d);
    CHECK(ck && checkpoint_read_template(ck, &text, &d) == ERR_OK);
    CHECK_STR(bytes_str(&text), "{{ messages }}");
    bytes_deinit(&text);
    checkpoint_close(ck);
}

static void test_refused(void)
{
    gguf_maker m;
    uint8_t block[66] = {0};
    begin_model(&m, "griffin");
    refuse(&m, ERR_UNSUPPORTED, "general.architecture is \"griffin\"");
    maker_init(&m);
    refuse(&m, ERR_UNSUPPORTED, "general.architecture is \"\"");
    begin_model(&m, "qwen35");
    refuse(&m, ERR_CORRUPT, "qwen35.block_count");
    begin_model(&m, "qwen3");
    maker_u32(&m, "qwen3.nextn_predict_layers", 1);
    refuse(&m, ERR_CORRUPT, "qwen3.nextn_predict_layers");
    begin_model(&m, "qwen3");
    maker_tensor(&m, "blk.0.attn_strange.weight", 0, (uint64_t[]){8}, 1, FOUR, 32);
    refuse(&m, ERR_UNSUPPORTED, "tensor blk.0.attn_strange.weight");
    begin_model(&m, "qwen3");
    maker_tensor(&m, "blk.0.attn_q.weight", 16, (uint64_t[]){256, 1}, 2, block, sizeof block);
    refuse(&m, ERR_UNSUPPORTED, "tensor blk.0.attn_q.weight is of type IQ2_XXS");
    begin_model(&m, "qwen3");
    maker_tensor(&m, "blk.0.ssm_a", 0, (uint64_t[]){8}, 1, FOUR, 32);
    refuse(&m, ERR_CORRUPT, "tensor blk.0.ssm_a");
    begin_model(&m, "qwen3");
    refuse(&m, ERR_CORRUPT, "qwen3.embedding_length");
    begin_model(&m, "qwen3");
    maker_u32(&m, "qwen3.embedding_length", 4);
    maker_u32(&m, "qwen3.attention.head_count", 0);
    refuse(&m, ERR_CORRUPT, "qwen3.attention.head_count");
    begin_model(&m, "qwen3");
    maker_u32(&m, "qwen3.embedding_length", 4);
    maker_u32(&m, "qwen3.attention.head_count", 1);
    maker_f32(&m, "qwen3.attention.layer_norm_rms_epsilon", 1e-6f);
    refuse(&m, ERR_NOT_FOUND, "token_embd.weight");
}

/* A whole small file with one value changed. */
static void test_refused_tokenizer(void)
{
    static const char *const changes[][3] = {
        {"tokenizer.ggml.pre", "qwen35", "tokenizer.ggml.pre is \"qwen99\""},
        {"tokenizer.ggml.model", "gpt2", "tokenizer.ggml.model is \"spm!\""}};
    static const char *const values[] = {"qwen99", "spm!"};
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        bytes file;
        model *m = NULL;
        err_detail d = {0};
        bytes_init(&file, 64 << 20);
        CHECK_OK(file_read(&file, path_of("bf16.gguf"), &d), d);
        const size_t n = strlen(changes[i][0]) + 4 + 8; /* the key, its type, the length of its text */
        char *at = file.data;
        while (memcmp(at, changes[i][0], strlen(changes[i][0])) != 0) {
            at++;
        }
        CHECK(memcmp(at + n, changes[i][1], strlen(values[i])) == 0);
        memcpy(at + n, values[i], strlen(values[i]));
        maker_save(&file, path_of("made.gguf"));
        CHECK_INT(model_open(&m, path_of("made.gguf"), &(model_open_options){0}, &d), ERR_UNSUPPORTED);
        CHECK(strstr(d.text, changes[i][2]) != NULL);
        bytes_deinit(&file);
    }
}

int main(void)
{
    folder_make(folder);
    test_reference();
    test_contents();
    test_folders();
    test_forms();
    test_blocks();
    test_template();
    test_refused();
    test_refused_tokenizer();
    CHECK_DONE();
}
