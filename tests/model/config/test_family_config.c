/* families: what each config reader makes of a config, its defaults, and the faults of fields that
 * only some families have. */
#include <math.h>

#include "tests/check.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "model/config/config_load.h"
#include "model/config/family.h"
#include "tests/model/random_families.h"
#include "tests/folder.h"
#include "tests/said.h"

static char folder[FOLDER_NAME];

static err_code load(model_config *cfg, const char *text, err_detail *d)
{
    random_text(folder, "config.json", text);
    return model_config_load(cfg, json_folder(folder), d);
}

/* The config of a family with fields placed last in the object that holds its sizes: a repeated
 * name overrides. */
static err_code load_with(model_config *cfg, const char *name, const char *extra, err_detail *d)
{
    bytes text;
    bytes_init(&text, 1 << 16);
    for (size_t i = 0; i < ARRAY_LEN(RANDOM_FAMILIES); i++) {
        const char *config = RANDOM_FAMILIES[i].config;
        if (strcmp(RANDOM_FAMILIES[i].name, name) == 0) {
            const size_t n = strlen(config) - (strstr(config, "text_config") ? 2 : 1);
            bytes_printf(&text, "%.*s%s%s", (int)n, config, extra, config + n);
        }
    }
    CHECK(text.len > 0);
    err_code err = load(cfg, bytes_str(&text), d);
    bytes_deinit(&text);
    return err;
}

static void test_qwen3_5(void)
{
    model_config cfg;
    err_detail d = {0};
    CHECK_OK(load_with(&cfg, "qwen3_5_moe", "", &d), d);
    CHECK(cfg.attention_gate && cfg.zero_centred_norms && cfg.norm_expert_weights);
    CHECK_INT(cfg.n_experts, 6);
    CHECK_INT(cfg.n_experts_used, 2);
    CHECK_INT(cfg.expert_size, 24);
    CHECK_INT(cfg.shared_expert_size, 40);
    CHECK(cfg.feeds[0] == FEED_EXPERTS && cfg.feeds[3] == FEED_EXPERTS);
    CHECK_INT(cfg.n_recurrent_layers, 2);
    CHECK_INT(cfg.full.rope.pairs, 2); /* a quarter of 16 dimensions */
    /* what configs of 3.6 and 3.8 add */
    CHECK_OK(load_with(&cfg, "qwen3_5_moe_text",
                       ",\"output_gate_type\":\"swish\",\"mamba_ssm_dtype\":\"float32\"", &d),
             d);
    CHECK_INT(load_with(&cfg, "qwen3_5_moe", ",\"shared_expert_intermediate_size\":null", &d), ERR_INVALID);
    CHECK(strstr(d.text, "shared_expert_intermediate_size") != NULL);
}

static void test_qwen3_next(void)
{
    model_config cfg;
    err_detail d = {0};
    CHECK_OK(load_with(&cfg, "qwen3_next", "", &d), d);
    CHECK(cfg.attention_gate && cfg.zero_centred_norms && cfg.norm_expert_weights);
    CHECK(cfg.feeds[0] == FEED_EXPERTS && cfg.feeds[1] == FEED_DENSE && cfg.feeds[2] == FEED_EXPERTS);
    CHECK_INT(cfg.n_mtp_layers, 1); /* no field: its tensors decide */
    CHECK_INT(cfg.mrope_section[0], 2);
    CHECK_INT(cfg.mrope_section[1], 0);
    CHECK_OK(load_with(&cfg, "qwen3_next", ",\"num_nextn_predict_layers\":0,\"norm_topk_prob\":false", &d),
             d);
    CHECK_INT(cfg.n_mtp_layers, 0);
    CHECK(!cfg.norm_expert_weights);
    CHECK_OK(load_with(&cfg, "qwen3_next", ",\"layer_types\":null", &d), d);
    CHECK_INT(cfg.n_attention_layers, 1); /* every fourth */
    CHECK_INT(load_with(&cfg, "qwen3_next", ",\"mlp_only_layers\":[4]", &d), ERR_INVALID);
    CHECK(strstr(d.text, "mlp_only_layers") != NULL);
}

static void test_qwen3(void)
{
    model_config cfg;
    err_detail d = {0};
    CHECK_OK(load_with(&cfg, "qwen3", "", &d), d);
    CHECK(!cfg.attention_gate && !cfg.zero_centred_norms && !cfg.has_vision);
    CHECK_INT(cfg.n_attention_layers, 4);
    CHECK_INT(cfg.n_recurrent_layers, 0);
    CHECK_INT(cfg.n_experts, 0);
    CHECK_INT(cfg.full.rope.pairs, 8); /* the whole head */
    CHECK_INT(load_with(&cfg, "qwen3", ",\"use_sliding_window\":true", &d), ERR_UNSUPPORTED);
    CHECK_INT(load_with(&cfg, "qwen3", RANDOM_DELTA, &d), ERR_UNSUPPORTED);
    CHECK_OK(load_with(&cfg, "qwen3_moe", "", &d), d);
    CHECK(!cfg.norm_expert_weights);
    /* every second */
    CHECK(cfg.feeds[0] == FEED_DENSE && cfg.feeds[1] == FEED_EXPERTS && cfg.feeds[2] == FEED_DENSE);
    CHECK_INT(cfg.shared_expert_size, 0);
    CHECK_INT(load_with(&cfg, "qwen3_moe", ",\"num_experts_per_tok\":7", &d), ERR_INVALID);
    CHECK(strstr(d.text, "num_experts_per_tok") != NULL);
    CHECK_INT(load_with(&cfg, "qwen3_moe", ",\"decoder_sparse_step\":0", &d), ERR_INVALID);
}

static void test_qwen3_vl(void)
{
    model_config cfg;
    err_detail d = {0};
    CHECK_OK(load_with(&cfg, "qwen3_vl_moe", "", &d), d);
    CHECK(!cfg.attention_gate && !cfg.zero_centred_norms && cfg.has_vision);
    CHECK_INT(cfg.n_deepstack, 2);
    CHECK_INT(model_config_feature_width(&cfg), 3 * 64);
    CHECK_INT(cfg.mrope_section[1], 2);
    CHECK_INT(
        load(&cfg,
             "{\"model_type\":\"qwen3_vl\",\"vision_config\":{\"deepstack_visual_indexes\":[0,1,2,3,4]},"
             "\"text_config\":{" RANDOM_SIZES
             ",\"intermediate_size\":80" RANDOM_ROPE(",\"mrope_section\":[4,2,2]") "}}",
             &d),
        ERR_INVALID);
    CHECK(strstr(d.text, "deepstack_visual_indexes") != NULL);
}

static void test_nemotron_h(void)
{
    model_config cfg;
    err_detail d = {0};
    CHECK_OK(load_with(&cfg, "nemotron_h", "", &d), d);
    CHECK(cfg.layers[0] == LAYER_MAMBA && cfg.layers[1] == LAYER_ATTENTION && cfg.layers[2] == LAYER_NONE);
    CHECK(cfg.feeds[0] == FEED_NONE && cfg.feeds[2] == FEED_DENSE);
    CHECK(cfg.ffn == FFN_RELU2 && cfg.qk_norm == QK_NORM_NONE);
    CHECK_INT(cfg.n_recurrent_layers, 2);
    CHECK_INT(cfg.full.rope.pairs, 0);
    CHECK_INT(model_config_channels(&cfg), 6 * 20 + 2 * 2 * 24);
    CHECK(cfg.mamba_least_dt > 0.04f && cfg.mamba_most_dt < 1.6f && cfg.mamba_conv_bias);
    /* transformers' way to write an infinite number */
    CHECK_OK(load_with(&cfg, "nemotron_h", ",\"time_step_limit\":[0.0,{\"__float__\":\"Infinity\"}]", &d), d);
    CHECK(isinf(cfg.mamba_most_dt));
    CHECK_INT(load_with(&cfg, "nemotron_h", ",\"time_step_limit\":[2,1]", &d), ERR_INVALID);
    CHECK_OK(load_with(&cfg, "nemotron_h_moe", "", &d), d);
    CHECK(cfg.feeds[1] == FEED_EXPERTS && cfg.router == ROUTER_SIGMOID && cfg.shared_expert_ungated);
    CHECK_INT(model_config_expert_width(&cfg), 32);
    CHECK_INT(cfg.n_router_groups_used, 2);
    CHECK_INT(load_with(&cfg, "nemotron_h_moe", ",\"topk_group\":1", &d), ERR_INVALID); /* 3 of 2 experts */
    for (int more = 0; more < 2; more++) {
        char pattern[MODEL_MAX_LAYERS + 64], layers[MODEL_MAX_LAYERS + 2];
        memset(layers, 'M', sizeof layers);
        layers[MODEL_MAX_LAYERS + more] = '\0';
        snprintf(pattern, sizeof pattern, ",\"hybrid_override_pattern\":\"%s\"", layers);
        d = (err_detail){0};
        CHECK_INT(load_with(&cfg, "nemotron_h", pattern, &d), more ? ERR_LIMIT : ERR_INVALID);
        CHECK_HAS(d.text, more ? "/config.json: the pattern of layers is longer than 256"
                               : "/config.json: the pattern of layers names 256 of 4");
    }
    CHECK_INT(load_with(&cfg, "nemotron_h_moe", ",\"n_group\":3", &d), ERR_INVALID);
    CHECK_INT(
        load_with(&cfg, "nemotron_h_moe", ",\"layers_block_type\":[\"mamba\",\"moe\",\"rwkv\",\"moe\"]", &d),
        ERR_UNSUPPORTED);
    CHECK(strstr(d.text, "layer 2 is of type \"rwkv\"") != NULL && strstr(d.text, "mamba (M)") != NULL);
    CHECK_INT(load_with(&cfg, "nemotron_h", ",\"hybrid_override_pattern\":\"M*-\"", &d), ERR_INVALID);
    CHECK_INT(load_with(&cfg, "nemotron_h", ",\"hybrid_override_pattern\":null", &d), ERR_INVALID);
    CHECK(strstr(d.text, "hybrid_override_pattern") != NULL);
    CHECK_INT(load_with(&cfg, "nemotron_h", ",\"mlp_hidden_act\":\"silu\"", &d), ERR_UNSUPPORTED);
    CHECK_INT(load_with(&cfg, "nemotron_h", ",\"conv_kernel\":8", &d), ERR_UNSUPPORTED);
    CHECK_INT(load_with(&cfg, "nemotron_h", ",\"sliding_window\":512", &d), ERR_UNSUPPORTED);
    CHECK_INT(load_with(&cfg, "nemotron_h", ",\"n_groups\":4", &d), ERR_INVALID);
}

static void test_minimax_m2(void)
{
    model_config cfg;
    err_detail d = {0};
    CHECK_OK(load_with(&cfg, "minimax_m2", "", &d), d);
    CHECK(cfg.qk_norm == QK_NORM_WIDTH && cfg.router == ROUTER_SIGMOID && cfg.norm_expert_weights);
    CHECK(cfg.feeds[0] == FEED_EXPERTS && cfg.ffn == FFN_SILU);
    CHECK_INT(cfg.expert_size, 24);
    CHECK_INT(cfg.full.rope.pairs, 4); /* half of 16 dimensions */
    CHECK_INT(load_with(&cfg, "minimax_m2", ",\"num_experts_per_tok\":9", &d), ERR_INVALID);
    CHECK_OK(load_with(&cfg, "minimax_m2",
                       ",\"scoring_func\":\"sigmoid\",\"use_qk_norm\":true,\"qk_norm_type\":\"per_layer\","
                       "\"shared_intermediate_size\":0,\"attn_type_list\":[1,1,1,1]",
                       &d),
             d); /* as published */
    static const char *const others[][2] = {
        {",\"scoring_func\":\"softmax\"", "scoring_func"},
        {",\"use_qk_norm\":false", "use_qk_norm"},
        {",\"qk_norm_type\":\"per_head\"", "qk_norm_type"},
        {",\"attn_type_list\":[1,0,1,1]", "attn_type_list"},
        {",\"shared_intermediate_size\":8", "shared_intermediate_size"},
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        CHECK_INT(load_with(&cfg, "minimax_m2", others[i][0], &d), ERR_UNSUPPORTED);
        CHECK(strstr(d.text, others[i][1]) != NULL);
    }
}

/* The plain ones. */
static void test_llama_and_others(void)
{
    model_config cfg;
    err_detail d = {0};
    CHECK_OK(load_with(&cfg, "llama", "", &d), d);
    CHECK(cfg.qk_norm == QK_NORM_NONE && !cfg.attention_biases && cfg.full.rope.llama3_factor > 7.9);
    CHECK_OK(load_with(&cfg, "llama", ",\"attention_bias\":true,\"head_dim\":null", &d), d);
    CHECK(cfg.attention_biases);
    CHECK_INT(cfg.full.head_dim, 16); /* 64 by 4 heads */
    CHECK_INT(load_with(&cfg, "llama", ",\"mlp_bias\":true", &d), ERR_UNSUPPORTED);
    /* older exports: no rope_theta, and "type" for "rope_type" */
    CHECK_OK(load_with(&cfg, "llama",
                       ",\"rope_parameters\":null,\"rope_scaling\":{\"type\":\"linear\",\"factor\":4}", &d),
             d);
    CHECK(cfg.full.rope.linear_factor > 3.9 && cfg.full.rope.theta > 9999 && cfg.full.rope.theta < 10001);
    CHECK_INT(
        load_with(&cfg, "llama", ",\"rope_parameters\":{\"rope_theta\":1e4,\"rope_type\":\"dynamic\"}", &d),
        ERR_UNSUPPORTED);
    CHECK(strstr(d.text, "\"dynamic\"; default, linear, llama3 and yarn") != NULL);
    CHECK_INT(
        load_with(&cfg, "llama",
                  ",\"rope_parameters\":{\"rope_theta\":1e4,\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_"
                  "factor\":4,\"high_freq_factor\":4}",
                  &d),
        ERR_INVALID);
    CHECK_OK(load_with(&cfg, "ministral3", "", &d), d);
    CHECK(cfg.query_growth > 0.09 && cfg.query_growth_tokens < 17);
    CHECK_INT(cfg.n_sliding_layers, 0);
    CHECK_OK(load_with(&cfg, "ministral3", ",\"sliding_window\":24", &d), d);
    CHECK_INT(cfg.n_sliding_layers, 4);
    CHECK_INT(load_with(&cfg, "ministral3", ",\"sliding_window\":\"wide\"", &d), ERR_INVALID);
    CHECK_OK(load(&cfg,
                  "{\"model_type\":\"mistral3\",\"vision_config\":{},\"text_config\":{\"model_type\":"
                  "\"ministral3\"," RANDOM_SIZES ",\"intermediate_size\":80" RANDOM_ROPE("") "}}",
                  &d),
             d);
    CHECK(!cfg.has_vision); /* its tower is not supported: text alone */
    CHECK_OK(load_with(&cfg, "granite", "", &d), d);
    CHECK_NEAR(cfg.logit_scale, 1.0 / 3, 1e-6);
    CHECK_NEAR(cfg.attention_scale, 0.1, 1e-9);
    CHECK_INT(load_with(&cfg, "granite", ",\"logits_scaling\":0", &d), ERR_INVALID);
    CHECK_OK(load_with(&cfg, "qwen2", "", &d), d);
    CHECK(cfg.attention_biases && cfg.layers[1] == LAYER_ATTENTION && cfg.layers[2] == LAYER_SLIDING);
    CHECK_OK(load_with(&cfg, "qwen2", ",\"use_sliding_window\":false", &d), d);
    CHECK_INT(cfg.n_sliding_layers, 0);
    CHECK_OK(
        load(&cfg,
             "{\"model_type\":\"qwen2_5_vl\",\"vision_config\":{\"tokens_per_second\":2}," RANDOM_SIZES
             ",\"intermediate_size\":80,\"rope_theta\":1e6,\"use_sliding_window\":false,\"rope_scaling\":{"
             "\"type\":"
             "\"mrope\",\"mrope_section\":[2,3,3]}}",
             &d),
        d);
    CHECK(cfg.has_vision && cfg.attention_biases && cfg.n_sliding_layers == 0);
    CHECK(cfg.whole_videos && cfg.positions_per_second > 1.9 && cfg.positions_per_second < 2.1);
    CHECK(!cfg.mrope_interleaved && cfg.mrope_section[1] == 3);
    CHECK_OK(load_with(&cfg, "smollm3", ",\"no_rope_layers\":[1,0,1,0]", &d), d);
    CHECK(!cfg.no_rope[0] && cfg.no_rope[1] && !cfg.no_rope[2] && cfg.no_rope[3]);
    CHECK_OK(load_with(&cfg, "smollm3", ",\"no_rope_layers\":null", &d), d);
    CHECK(!cfg.no_rope[0] && !cfg.no_rope[1] && !cfg.no_rope[2] && cfg.no_rope[3]); /* every fourth */
    CHECK_INT(load_with(&cfg, "smollm3", ",\"no_rope_layers\":[1,0]", &d), ERR_INVALID);
    CHECK_OK(load_with(&cfg, "glm4_moe", "", &d), d);
    CHECK(cfg.feeds[0] == FEED_DENSE && cfg.feeds[1] == FEED_EXPERTS && cfg.qk_norm == QK_NORM_HEAD);
    CHECK_INT(cfg.shared_expert_size, 48);
    CHECK_INT(cfg.full.rope.pairs, 4); /* half of 16 dimensions */
}

static void test_gemma4(void)
{
    model_config cfg;
    err_detail d = {0};
    CHECK_OK(load_with(&cfg, "gemma4", "", &d), d);
    CHECK(cfg.n_shared_layers == 2 && cfg.n_attention_layers == 2 && cfg.n_sliding_layers == 1);
    CHECK(cfg.state_of[2] == 0 && cfg.state_of[3] == 1); /* those of the first two */
    CHECK(cfg.full.head_dim == 32 && cfg.sliding.head_dim == 16 && cfg.sliding.window == 20);
    CHECK(cfg.full.rope.pairs == 16 && cfg.full.rope.n_still == 12 && cfg.sliding.rope.n_still == 0);
    CHECK(cfg.has_vision && cfg.bare_placeholders);
    CHECK_INT(cfg.sliding.rope.pairs, 8);
    CHECK_NEAR(cfg.sliding.rope.theta, 10000, 0);
    CHECK_OK(
        load_with(
            &cfg, "gemma4_text",
            ",\"layer_types\":[\"full_attention\",\"full_attention\",\"full_attention\",\"full_attention\"],"
            "\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1000000,\"rope_type\":\"default\"}}",
            &d),
        d); /* what no layer needs is not asked for */
    CHECK_INT(cfg.n_sliding_layers, 0);
    static const struct {
        const char *more;
        bool is_said;
    } TOWERS[] = {{"", false}, {",\"audio_config\":null", false}, {",\"audio_config\":{}", true}};
    for (size_t i = 0; i < ARRAY_LEN(TOWERS); i++) {
        said_begin();
        const err_code err = load_with(&cfg, "gemma4_text", TOWERS[i].more, &d);
        said_end();
        CHECK_OK(err, d);
        CHECK_INT(strstr(said_err, "its audio tower is not supported") != NULL, TOWERS[i].is_said);
    }
    CHECK_OK(load_with(&cfg, "gemma4_text", "", &d), d);
    CHECK(cfg.full.keys_are_values && cfg.full.n_kv_heads == 1 && cfg.feeds[0] == FEED_BOTH);
    static const struct {
        const char *more, *named;
        err_code err;
    } cases[] = {
        {",\"num_kv_shared_layers\":3", "num_kv_shared_layers", ERR_INVALID},
        {",\"layer_types\":[\"sliding_attention\",\"conv\",\"full_attention\",\"full_attention\"]", "conv",
         ERR_UNSUPPORTED},
        {",\"layer_types\":null", "layer_types", ERR_INVALID},
        {",\"per_layer_config\":{\"0\":{\"head_dim\":32}}", "layer 0", ERR_UNSUPPORTED},
        {",\"per_layer_config\":{\"1\":{\"head_dim\":32},\"3\":{\"head_dim\":64}}", "layer 3",
         ERR_UNSUPPORTED},
        {",\"per_layer_config\":{\"1\":{\"num_key_value_heads\":1},\"3\":{\"num_key_value_heads\":4}}",
         "layer 3", ERR_UNSUPPORTED},
        {",\"per_layer_config\":{\"1\":{\"head_dim\":32,\"num_key_value_heads\":3},\"3\":{\"head_dim\":32,"
         "\"num_key_value_heads\":3}}",
         "4 query heads are not a multiple of 3 key heads of full layers", ERR_INVALID},
        {",\"per_layer_config\":{\"-1\":{\"head_dim\":32}}", "layer -1", ERR_UNSUPPORTED},
        {",\"per_layer_config\":{\"4\":{\"head_dim\":32}}", "layer 4", ERR_UNSUPPORTED},
        {",\"per_layer_config\":{\"99999999999999999999\":{}}", "layer 99999999999999999999",
         ERR_UNSUPPORTED},
        {",\"per_layer_config\":{\"\":{}}", "layer ", ERR_UNSUPPORTED},
        {",\"per_layer_config\":{\"2\":{}}", "layer 2", ERR_UNSUPPORTED},
        {",\"per_layer_config\":{\"3\":{}}", "", ERR_OK},
        {",\"per_layer_config\":[1]", "", ERR_OK},
        {",\"per_layer_config\":null", "", ERR_OK},
        {",\"use_bidirectional_attention\":\"all\"", "use_bidirectional_attention", ERR_UNSUPPORTED},
        {",\"hidden_activation\":\"relu\"", "hidden_activation", ERR_UNSUPPORTED},
        {",\"top_k_experts\":7", "top_k_experts", ERR_INVALID},
        {",\"vocab_size_per_layer_input\":100,\"hidden_size_per_layer_input\":8",
         "vocab_size_per_layer_input", ERR_INVALID},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_INT(load_with(&cfg, "gemma4_text", cases[i].more, &d), cases[i].err);
        CHECK(strstr(d.text, cases[i].named) != NULL);
    }
}

static void test_gpt_oss(void)
{
    model_config cfg;
    err_detail d = {0};
    CHECK_OK(load_with(&cfg, "gpt_oss", "", &d), d);
    CHECK(cfg.layers[0] == LAYER_SLIDING && cfg.layers[1] == LAYER_ATTENTION && cfg.sliding.window == 20);
    CHECK(cfg.attention_sinks && cfg.expert_biases && cfg.qk_norm == QK_NORM_NONE);
    CHECK_NEAR(cfg.full.rope.magnitude, 0.1 * log(8) + 1, 1e-12);
    CHECK_OK(load_with(&cfg, "gpt_oss", ",\"quantization_config\":{\"quant_method\":\"mxfp4\"}", &d), d);
    CHECK_INT(load_with(&cfg, "gpt_oss", ",\"quantization_config\":{\"quant_method\":\"nf4\"}", &d),
              ERR_UNSUPPORTED);
    CHECK_INT(load_with(&cfg, "gpt_oss", ",\"sliding_window\":null", &d), ERR_INVALID);
    CHECK(strstr(d.text, "sliding_window") != NULL);
}

/* Numbers that readers take: the range that the message names when something else stands there, and what stands for
 * null: a member of the config with a value, or a complaint. */
enum { NEEDED = -1, ANY = -2 };
#define INT(member)   offsetof(model_config, member), 'i'
#define FLOAT(member) offsetof(model_config, member), 'f'

static const struct {
    const char *family, *field, *range;
    long at; /* of a member of model_config; NEEDED; ANY: it loads, with what is not told here */
    char type;
    double fallback;
} NUMBERS[] = {
    {"qwen3", "vocab_size", "an integer from 1 to 16777216", NEEDED, 0, 0},
    {"qwen3", "hidden_size", "an integer from 1 to 1048576", NEEDED, 0, 0},
    {"qwen3", "num_hidden_layers", "an integer from 1 to 256", NEEDED, 0, 0},
    {"qwen3", "num_attention_heads", "an integer from 1 to 4096", NEEDED, 0, 0},
    {"qwen3", "num_key_value_heads", "an integer from 1 to 4096", NEEDED, 0, 0},
    {"qwen3", "intermediate_size", "an integer from 1 to 1048576", NEEDED, 0, 0},
    {"qwen3", "max_position_embeddings", "an integer from 1 to 67108864", INT(max_position_embeddings),
     32768},
    {"qwen3", "rms_norm_eps", "a number from 0 to 1", FLOAT(rms_norm_eps), 1e-6},
    {"qwen3_5", "linear_conv_kernel_dim", "an integer from 1 to 64", INT(conv_kernel), 4},
    {"qwen3_next", "num_nextn_predict_layers", "an integer from 0 to 64", INT(n_mtp_layers), 1},
    {"qwen3_moe", "num_experts_per_tok", "an integer from 1 to 64", NEEDED, 0, 0},
    {"qwen3_moe", "decoder_sparse_step", "an integer from 1 to 256", ANY, 0, 0},
    {"gemma4", "hidden_size_per_layer_input", "an integer from 0 to 1048576", INT(layer_input_size), 0},
    {"gemma4_text", "pad_token_id", "an integer from 0 to 1887", INT(pad_token_id), 0},
    {"gemma4_text", "num_experts", "an integer from 1 to 4096", NEEDED, 0, 0},
    {"gemma4_text", "top_k_experts", "an integer from 1 to 64", NEEDED, 0, 0},
    {"gemma4_text", "moe_intermediate_size", "an integer from 1 to 1048576", NEEDED, 0, 0},
    {"gemma4_text", "intermediate_size", "an integer from 1 to 1048576", NEEDED, 0, 0},
    {"gemma4", "final_logit_softcapping", "a number from 0 to 1e+06", FLOAT(logit_softcap), 0},
    {"gemma4", "num_kv_shared_layers", "an integer from 0 to 3", INT(n_shared_layers), 0},
    {"glm4_moe", "moe_intermediate_size", "an integer from 1 to 1048576", NEEDED, 0, 0},
    {"glm4_moe", "n_shared_experts", "an integer from 0 to 64", ANY, 0, 0},
    {"glm4_moe", "first_k_dense_replace", "an integer from 0 to 256", ANY, 0, 0},
    {"glm4_moe", "routed_scaling_factor", "a number from 0 to 1e+06", FLOAT(routed_scale), 1},
    {"glm4_moe", "topk_group", "an integer from 1 to 64", INT(n_router_groups_used), 1},
    {"gpt_oss", "swiglu_limit", "a number from 0.001 to 1e+06", ANY, 0, 0},
    {"granite", "embedding_multiplier", "a number from 1e-06 to 1e+06", FLOAT(embed_scale), 1},
    {"granite", "residual_multiplier", "a number from 1e-06 to 1e+06", FLOAT(residual_scale), 1},
    {"granite", "attention_multiplier", "a number from 1e-06 to 1e+06", ANY, 0, 0},
    {"granite", "logits_scaling", "a number from 1e-06 to 1e+06", FLOAT(logit_scale), 1},
    {"minimax_m2", "rotary_dim", "an integer from 2 to 16", ANY, 0, 0},
    {"minimax_m2", "shared_intermediate_size", "an integer from 0 to 1048576", ANY, 0, 0},
    {"nemotron_h", "mamba_num_heads", "an integer from 1 to 4096", NEEDED, 0, 0},
    {"nemotron_h", "n_groups", "an integer from 1 to 4096", NEEDED, 0, 0},
    {"nemotron_h", "conv_kernel", "an integer from 1 to 64", INT(conv_kernel), 4},
    {"nemotron_h", "layer_norm_epsilon", "a number from 0 to 1", FLOAT(rms_norm_eps), 1e-5},
    {"smollm3", "no_rope_layer_interval", "an integer from 1 to 256", ANY, 0, 0},
};

static void test_numbers(void)
{
    for (size_t i = 0; i < ARRAY_LEN(NUMBERS); i++) {
        model_config cfg;
        err_detail d = {0};
        char extra[128], expected[192];
        const int before = check_failures;
        snprintf(extra, sizeof extra, ",\"%s\":\"x\"", NUMBERS[i].field);
        snprintf(expected, sizeof expected, "\"%s\" must be %s", NUMBERS[i].field, NUMBERS[i].range);
        CHECK_INT(load_with(&cfg, NUMBERS[i].family, extra, &d), ERR_INVALID);
        CHECK(strlen(d.text) >= strlen(expected) &&
              strcmp(d.text + strlen(d.text) - strlen(expected), expected) == 0);
        if (check_failures != before) {
            fprintf(stderr, "  \"%s\" of %s\n", d.text, NUMBERS[i].family);
        }
        snprintf(extra, sizeof extra, ",\"%s\":null", NUMBERS[i].field);
        if (NUMBERS[i].at == NEEDED) {
            snprintf(expected, sizeof expected, "\"%s\" is missing", NUMBERS[i].field);
            CHECK_INT(load_with(&cfg, NUMBERS[i].family, extra, &d), ERR_INVALID);
            CHECK(strstr(d.text, expected) != NULL);
        } else {
            CHECK_OK(load_with(&cfg, NUMBERS[i].family, extra, &d), d);
        }
        if (NUMBERS[i].type == 'i') {
            int32_t value;
            memcpy(&value, (const char *)&cfg + NUMBERS[i].at, sizeof value);
            CHECK_INT(value, (int32_t)NUMBERS[i].fallback);
        } else if (NUMBERS[i].type == 'f') {
            float value;
            memcpy(&value, (const char *)&cfg + NUMBERS[i].at, sizeof value);
            CHECK_NEAR(value, NUMBERS[i].fallback, 1e-9);
        }
        if (check_failures != before) {
            fprintf(stderr, "  (%s of %s)\n", NUMBERS[i].field, NUMBERS[i].family);
        }
    }
}

int main(void)
{
    folder_make(folder);
    test_qwen3_5();
    test_qwen3_next();
    test_qwen3();
    test_qwen3_vl();
    test_nemotron_h();
    test_minimax_m2();
    test_llama_and_others();
    test_gemma4();
    test_gpt_oss();
    test_numbers();
    CHECK(family_find("qwen3_5_text") == &FAMILY_QWEN3_5);
    CHECK(family_find("") == NULL);
    CHECK_DONE();
}
