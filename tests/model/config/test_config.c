/* config: the tiny checkpoint's numbers, the derived ones, and one fault at a time. */
#include "tests/check.h"

#include "base/bytes.h"
#include "base/file.h"
#include "model/config/config_load.h"
#include "tests/folder.h"

static char folder[FOLDER_NAME];

static void write_file(const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(text, 1, strlen(text), f) == strlen(text));
    CHECK(f && fclose(f) == 0);
}

static const char TEXT[] =
    "\"vocab_size\":100,\"hidden_size\":8,\"intermediate_size\":12,\"num_hidden_layers\":8,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":16,\"linear_num_key_heads\":2,"
    "\"linear_num_value_heads\":4,\"linear_key_head_dim\":8,\"linear_value_head_dim\":6,\"eos_token_id\":7,"
    "\"tie_word_embeddings\":true";
static const char ROPE[] = "\"rope_parameters\":{\"rope_theta\":1e7,\"mrope_section\":[1,1,0]}";

/* A config with `extra` placed last in the text section: a repeated name overrides. */
static err_code load(model_config *cfg, const char *rope, const char *extra, err_detail *d)
{
    bytes text;
    bytes_init(&text, 1 << 16);
    bytes_printf(&text, "{\"model_type\":\"qwen3_5\",\"image_token_id\":5,\"text_config\":{%s,%s%s}}", TEXT,
                 rope, extra);
    write_file("config.json", bytes_str(&text));
    bytes_deinit(&text);
    return model_config_load(cfg, json_folder(folder), d);
}

static void test_released_form(void)
{
    model_config cfg;
    err_detail d = {0};
    CHECK_OK(load(&cfg, ROPE, "", &d), d);
    CHECK_STR(cfg.family, "qwen3_5");
    CHECK_INT(cfg.n_attention_layers, 2);
    CHECK_INT(cfg.n_recurrent_layers, 6);
    CHECK_INT(cfg.layers[2], LAYER_DELTANET);
    CHECK_INT(cfg.layers[3], LAYER_ATTENTION);
    CHECK_INT(cfg.full.rope.pairs, 2); /* 16 * 0.25 / 2 */
    CHECK_NEAR(cfg.full.rope.theta, 1e7, 0);
    CHECK_NEAR(cfg.rms_norm_eps, 1e-6, 1e-12);
    CHECK(cfg.tie_word_embeddings);
    CHECK(!cfg.has_vision);
    CHECK_INT(cfg.image_token_id, 5);
    CHECK_INT(cfg.video_token_id, -1);
    CHECK_INT(cfg.n_mtp_layers, 0);
    CHECK_INT(cfg.n_stop_ids, 1);
    CHECK_INT(cfg.stop_ids[0], 7);
    CHECK_NEAR(cfg.temperature, 1, 0);
}

static void test_generation_config(void)
{
    model_config cfg;
    err_detail d = {0};
    write_file("generation_config.json",
               "{\"eos_token_id\":[3,9,3,100000],\"do_sample\":true,\"temperature\":0.3,"
               "\"top_k\":20,\"top_p\":0.95}");
    write_file("tokenizer_config.json", "{\"eos_token\":{\"content\":\"<end>\"}}");
    CHECK_OK(load(&cfg, ROPE, "", &d), d);
    CHECK_INT(cfg.n_stop_ids, 2); /* no repeats, none outside the vocabulary */
    CHECK_INT(cfg.stop_ids[1], 9);
    CHECK(cfg.do_sample);
    CHECK_NEAR(cfg.top_p, 0.95, 1e-6);
    CHECK_INT(cfg.top_k, 20);
    CHECK_STR(cfg.eos_token, "<end>");
    write_file("generation_config.json", "{\"temperature\":-1}");
    CHECK_INT(load(&cfg, ROPE, "", &d), ERR_INVALID);
    CHECK(strstr(d.text, "temperature") != NULL);
    write_file("generation_config.json", "{}");
}

/* Which tokens begin a text and end an answer, wherever they stand; 0 is a token, too. */
static void test_special_tokens(void)
{
    static const struct {
        const char *text, *top,
            *generation; /* in the text section, beside it, and in generation_config.json */
        int32_t bos, n_stops, stops[3];
    } cases[] = {
        {"", "", "{}", -1, 1, {7}},
        {",\"eos_token_id\":0", "", "{}", -1, 1, {0}},
        {",\"eos_token_id\":null", ",\"bos_token_id\":0", "{}", 0, 0, {0}},
        {",\"eos_token_id\":[]", ",\"bos_token_id\":-3", "{}", -1, 0, {0}},
        {",\"eos_token_id\":[0,2]", ",\"bos_token_id\":9", "{}", 9, 2, {0, 2}},
        {",\"bos_token_id\":3", ",\"eos_token_id\":5", "{}", -1, 1, {5}},
        {"", ",\"eos_token_id\":[0]", "{}", -1, 1, {0}},
        {"", ",\"eos_token_id\":[99,98,1]", "{}", -1, 3, {99, 98, 1}},
        {"", ",\"eos_token_id\":[]", "{}", -1, 1, {7}},
        {"", ",\"eos_token_id\":[-1,\"x\"]", "{}", -1, 1, {7}},
        {"", ",\"eos_token_id\":[-1,4]", "{}", -1, 1, {4}},
        {"", ",\"eos_token_id\":100", "{}", -1, 0, {0}}, /* outside of the vocabulary */
        {"", "", "{\"eos_token_id\":0}", -1, 1, {0}},
        {"", "", "{\"eos_token_id\":[6,0]}", -1, 2, {6, 0}},
        {"", "", "{\"eos_token_id\":null}", -1, 1, {7}},
    };
    write_file("tokenizer_config.json", "{\"bos_token\":\"<begin>\",\"eos_token\":{\"content\":\"<end>\"}}");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        model_config cfg;
        err_detail d = {0};
        bytes text;
        bytes_init(&text, 1 << 16);
        bytes_printf(&text, "{\"model_type\":\"qwen3_5\"%s,\"text_config\":{%s,%s%s}}", cases[i].top, TEXT,
                     ROPE, cases[i].text);
        write_file("config.json", bytes_str(&text));
        bytes_deinit(&text);
        write_file("generation_config.json", cases[i].generation);
        CHECK_OK(model_config_load(&cfg, json_folder(folder), &d), d);
        CHECK_INT(cfg.bos_token_id, cases[i].bos);
        CHECK_INT(cfg.n_stop_ids, cases[i].n_stops);
        for (int32_t k = 0; k < cases[i].n_stops; k++) {
            CHECK_INT(cfg.stop_ids[k], cases[i].stops[k]);
        }
        if (cfg.bos_token_id != cases[i].bos || cfg.n_stop_ids != cases[i].n_stops) {
            fprintf(stderr, "  case %zu\n", i);
        }
        CHECK_STR(cfg.bos_token, "<begin>");
        CHECK_STR(cfg.eos_token, "<end>");
    }
    write_file("generation_config.json", "{}");
}

/* What ends an answer is kept once, is a token, and there is room for so many alone. */
static void test_stops(void)
{
    model_config cfg = {.vocab_size = 100};
    static const int64_t NONE[] = {-1, 100, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < ARRAY_LEN(NONE); i++) {
        model_config_add_stop(&cfg, NONE[i]);
        CHECK_INT(cfg.n_stop_ids, 0);
    }
    model_config_add_stop(&cfg, 99);
    model_config_add_stop(&cfg, 0);
    model_config_add_stop(&cfg, 99);
    CHECK_INT(cfg.n_stop_ids, 2);
    for (int32_t id = 1; id < 99; id++) {
        model_config_add_stop(&cfg, id);
        CHECK_INT(model_config_is_stop(&cfg, id), id < MODEL_MAX_STOP_IDS - 1);
    }
    CHECK_INT(cfg.n_stop_ids, MODEL_MAX_STOP_IDS);
    CHECK(model_config_is_stop(&cfg, 99) && model_config_is_stop(&cfg, 0) && !model_config_is_stop(&cfg, -1));
}

/* A token whose name has no room is none. */
static void test_long_tokens(void)
{
    for (size_t more = 0; more < 2; more++) {
        model_config cfg;
        err_detail d = {0};
        char name[sizeof cfg.bos_token + 1] = "", text[256];
        memset(name, 'x', sizeof cfg.bos_token - 1 + more);
        snprintf(text, sizeof text, "{\"bos_token\":\"%s\"}", name);
        write_file("tokenizer_config.json", text);
        CHECK_OK(load(&cfg, ROPE, "", &d), d);
        CHECK_STR(cfg.bos_token, more ? "" : name);
    }
    write_file("tokenizer_config.json", "{}");
}

static void test_faults(void)
{
    static const struct {
        const char *rope, *extra, *named;
        err_code err;
    } cases[] = {
        {ROPE, ",\"hidden_size\":0", "hidden_size", ERR_INVALID},
        {ROPE, ",\"hidden_size\":\"8\"", "hidden_size", ERR_INVALID},
        {ROPE, ",\"hidden_size\":8.5", "hidden_size", ERR_INVALID},
        {ROPE, ",\"hidden_size\":99999999", "hidden_size", ERR_INVALID},
        {ROPE, ",\"num_hidden_layers\":257", "num_hidden_layers", ERR_INVALID},
        {ROPE, ",\"num_key_value_heads\":3", "query heads", ERR_INVALID},
        {ROPE, ",\"linear_num_value_heads\":3", "value heads", ERR_INVALID},
        {ROPE, ",\"linear_conv_kernel_dim\":5", "linear_conv_kernel_dim", ERR_UNSUPPORTED},
        {ROPE, ",\"layer_types\":[\"full_attention\"]", "layer_types", ERR_INVALID},
        {ROPE, ",\"num_hidden_layers\":1,\"layer_types\":[\"mamba\"]", "mamba", ERR_UNSUPPORTED},
        {ROPE, ",\"hidden_act\":\"gelu\"", "hidden_act", ERR_UNSUPPORTED},
        {ROPE, ",\"output_gate_type\":\"sigmoid\"", "output_gate_type", ERR_UNSUPPORTED},
        {ROPE, ",\"layer_scale\":true", "\"layer_scale\": true is not supported", ERR_UNSUPPORTED},
        {ROPE, ",\"mtp_use_dedicated_embeddings\":true", "mtp_use_dedicated_embeddings", ERR_UNSUPPORTED},
        {ROPE, ",\"attn_output_gate\":false", "attn_output_gate", ERR_UNSUPPORTED},
        {ROPE, ",\"attn_output_gate\":true", "", ERR_OK},
        {ROPE, ",\"attn_output_gate\":null", "", ERR_OK},
        {ROPE, ",\"quantization_config\":{\"quant_method\":\"gptq\"}", "gptq", ERR_UNSUPPORTED},
        {ROPE, ",\"quantization_config\":{\"quant_method\":\"mxfp4\"}", "mxfp4", ERR_UNSUPPORTED},
        {ROPE, ",\"quantization_config\":{\"load_in_4bit\":true}", "unknown method", ERR_UNSUPPORTED},
        {ROPE, ",\"mtp_num_hidden_layers\":2", "mtp_num_hidden_layers", ERR_UNSUPPORTED},
        {ROPE, ",\"rms_norm_eps\":-1", "rms_norm_eps", ERR_INVALID},
        {"\"x\":0", "", "rope_theta", ERR_INVALID},
        {"\"rope_parameters\":{\"rope_theta\":10,\"rope_type\":\"longrope\"}", "", "rope_type",
         ERR_UNSUPPORTED},
        {"\"rope_parameters\":{\"rope_theta\":10,\"rope_type\":7}", "", "rope_type", ERR_UNSUPPORTED},
        {"\"rope_parameters\":{\"rope_theta\":10,\"rope_type\":\"yarn\"}", "", "factor", ERR_INVALID},
        {"\"rope_parameters\":{\"rope_theta\":10,\"mrope_section\":[1,1,1]}", "", "mrope_section",
         ERR_INVALID},
        {"\"rope_parameters\":{\"rope_theta\":10,\"partial_rotary_factor\":0}", "", "partial_rotary_factor",
         ERR_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        model_config cfg;
        err_detail d = {0};
        CHECK_INT(load(&cfg, cases[i].rope, cases[i].extra, &d), cases[i].err);
        CHECK(strstr(d.text, cases[i].named) != NULL);
        if (!strstr(d.text, cases[i].named)) {
            fprintf(stderr, "  case %zu: \"%s\"\n", i, d.text);
        }
    }
}

static void test_other_families(void)
{
    model_config cfg;
    err_detail d = {0};
    write_file("config.json", "{\"model_type\":\"griffin\"}");
    CHECK_INT(model_config_load(&cfg, json_folder(folder), &d), ERR_UNSUPPORTED);
    CHECK(strstr(d.text, "griffin") != NULL && strstr(d.text, "qwen3_vl_moe") != NULL);
    write_file("config.json", "{}");
    CHECK_INT(model_config_load(&cfg, json_folder(folder), &d), ERR_UNSUPPORTED);
    CHECK(strstr(d.text, "model_type") != NULL);
    write_file("config.json", "{\"model_type\":");
    CHECK_INT(model_config_load(&cfg, json_folder(folder), &d), ERR_INVALID);
    CHECK_INT(model_config_load(&cfg, json_folder("/nonexistent"), &d), ERR_NOT_FOUND);
}

int main(void)
{
    model_config cfg;
    err_detail d = {0};
    folder_make(folder);
    test_released_form();
    test_generation_config();
    test_special_tokens();
    test_stops();
    test_long_tokens();
    test_faults();
    test_other_families();
    CHECK_OK(model_config_load(&cfg, json_folder(check_data("tiny")), &d), d);
    CHECK_INT(cfg.hidden_size, 64);
    CHECK_INT(cfg.n_mtp_layers, 1);
    CHECK(cfg.has_vision);
    CHECK_DONE();
}
