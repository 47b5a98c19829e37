/* Every number of a config: the least and the most that is taken, what is refused beyond them and by which
 * message, what an absent one means, and where the value goes. */
#include <limits.h>
#include <math.h>
#include <stddef.h>

#include "tests/check.h"

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "model/config/config_load.h"
#include "model/config/config_read.h"
#include "tests/model/random_families.h"

enum place { TEXT, TOP, ROPE, SCALED, LLAMA3, GENERATION };

/* What rope_parameters has beside the field. */
static const char *const ROPES[] = {
    [ROPE] = "\"rope_theta\":10000",
    [SCALED] = "\"rope_theta\":10000,\"rope_type\":\"yarn\",\"factor\":8",
    [LLAMA3] = "\"rope_theta\":10000,\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
               "\"high_freq_factor\":4",
};

/* What the number is, and the member that it goes to. */
enum kind { INT, INT_AS_DOUBLE, INT_NOWHERE, FLOAT, DOUBLE, NOWHERE };
#define IN_WITH(kind, member, beside) kind, offsetof(model_config, member), beside
#define IN(kind, member)              IN_WITH(kind, member, NULL)
#define NO_INT                        INT_NOWHERE, 0, NULL
#define NO_NUMBER                     NOWHERE, 0, NULL

static const struct row {
    const char *family;
    enum place place;
    const char *name;
    double min, max, absent; /* NAN: it is required */
    enum kind kind;
    size_t at;
    const char *beside; /* fields of the text section */
} ROWS[] = {
    {"llama", TEXT, "vocab_size", 1, CONFIG_MAX_VOCAB, NAN, IN(INT, vocab_size)},
    {"llama", TEXT, "hidden_size", 1, CONFIG_MAX_WIDTH, NAN, IN(INT, hidden_size)},
    {"llama", TEXT, "num_hidden_layers", 1, MODEL_MAX_LAYERS, NAN, IN(INT, n_layers)},
    {"llama", TEXT, "num_attention_heads", 1, CONFIG_MAX_HEADS, NAN, IN(INT, n_heads)},
    {"llama", TEXT, "num_key_value_heads", 1, CONFIG_MAX_HEADS, NAN, IN(INT, full.n_kv_heads)},
    {"llama", TEXT, "head_dim", 2, CONFIG_MAX_HEAD_DIM, 16, IN(INT, full.head_dim)},
    {"llama", TEXT, "max_position_embeddings", 1, CONFIG_MAX_CONTEXT, 32768,
     IN(INT, max_position_embeddings)},
    {"llama", TEXT, "rms_norm_eps", 0, 1, 1e-6, IN(FLOAT, rms_norm_eps)},
    {"llama", TEXT, "intermediate_size", 1, CONFIG_MAX_WIDTH, NAN, IN(INT, intermediate_size)},
    {"llama", ROPE, "rope_theta", 1, 1e12, 10000, IN(DOUBLE, full.rope.theta)},
    {"llama", ROPE, "partial_rotary_factor", 0, 1, 1, NO_NUMBER},
    {"llama", LLAMA3, "factor", 1, 1e6, NAN, IN(DOUBLE, full.rope.llama3_factor)},
    {"llama", LLAMA3, "low_freq_factor", 1e-3, 1e6, NAN, IN(DOUBLE, full.rope.llama3_slow)},
    {"llama", LLAMA3, "high_freq_factor", 1e-3, 1e6, NAN, IN(DOUBLE, full.rope.llama3_fast)},
    {"llama", LLAMA3, "original_max_position_embeddings", 1, CONFIG_MAX_CONTEXT, 8192,
     IN(INT_AS_DOUBLE, full.rope.llama3_original)},
    {"llama", SCALED, "factor", 1, 1e6, NAN, IN(DOUBLE, full.rope.yarn_factor)},
    {"llama", SCALED, "beta_fast", 1e-3, 1e6, 32, IN(DOUBLE, full.rope.yarn_fast)},
    {"llama", SCALED, "beta_slow", 1e-3, 1e6, 1, IN(DOUBLE, full.rope.yarn_slow)},
    {"llama", SCALED, "original_max_position_embeddings", 1, CONFIG_MAX_CONTEXT, 4096,
     IN(INT_AS_DOUBLE, full.rope.yarn_original)},
    {"llama", SCALED, "mscale", 0, 100, 0, NO_NUMBER},
    {"llama", SCALED, "mscale_all_dim", 0, 100, 0, NO_NUMBER},
    {"llama", SCALED, "attention_factor", 1e-3, 1e3, 1.2079441541679836, IN(DOUBLE, full.rope.magnitude)},
    {"llama", TOP, "image_token_id", 0, 1887, -1, IN(INT, image_token_id)},
    {"llama", TOP, "video_token_id", 0, 1887, -1, IN(INT, video_token_id)},
    {"llama", TOP, "vision_start_token_id", 0, 1887, -1, IN(INT, vision_start_token_id)},
    {"llama", TOP, "vision_end_token_id", 0, 1887, -1, IN(INT, vision_end_token_id)},
    {"llama", TOP, "boi_token_id", 0, 1887, -1, IN(INT, vision_start_token_id)},
    {"llama", TOP, "eoi_token_id", 0, 1887, -1, IN(INT, vision_end_token_id)},
    {"llama", GENERATION, "temperature", 0, 100, 1, IN(FLOAT, temperature)},
    {"llama", GENERATION, "top_p", 0, 1, 1, IN(FLOAT, top_p)},
    {"llama", GENERATION, "min_p", 0, 1, 0, IN(FLOAT, min_p)},
    {"llama", GENERATION, "repetition_penalty", 1e-3, 1e3, 1, IN(FLOAT, repetition_penalty)},
    {"llama", GENERATION, "top_k", 0, CONFIG_MAX_VOCAB, 0, IN(INT, top_k)},
    {"qwen3_5", TEXT, "full_attention_interval", 1, MODEL_MAX_LAYERS, 4, INT_NOWHERE, 0,
     "\"layer_types\":null"},
    {"qwen3_5", TEXT, "linear_num_key_heads", 1, CONFIG_MAX_HEADS, NAN, IN(INT, delta_n_k)},
    {"qwen3_5", TEXT, "linear_num_value_heads", 1, CONFIG_MAX_HEADS, NAN, IN(INT, delta_n_v)},
    {"qwen3_5", TEXT, "linear_key_head_dim", 1, CONFIG_MAX_HEAD_DIM, NAN, IN(INT, delta_dk)},
    {"qwen3_5", TEXT, "linear_value_head_dim", 1, CONFIG_MAX_HEAD_DIM, NAN, IN(INT, delta_dv)},
    {"qwen3_5", TEXT, "linear_conv_kernel_dim", 1, 64, 4, IN(INT, conv_kernel)},
    {"qwen3_5", TEXT, "mtp_num_hidden_layers", 0, 64, 0, IN(INT, n_mtp_layers)},
    {"qwen3_5_moe", TEXT, "num_experts", 1, CONFIG_MAX_EXPERTS, NAN, IN(INT, n_experts)},
    {"qwen3_5_moe", TEXT, "num_experts_per_tok", 1, MODEL_MAX_EXPERTS_USED, NAN, IN(INT, n_experts_used)},
    {"qwen3_5_moe", TEXT, "moe_intermediate_size", 1, CONFIG_MAX_WIDTH, NAN, IN(INT, expert_size)},
    {"qwen3_5_moe", TEXT, "shared_expert_intermediate_size", 1, CONFIG_MAX_WIDTH, NAN,
     IN(INT, shared_expert_size)},
    {"qwen3_moe", TEXT, "decoder_sparse_step", 1, MODEL_MAX_LAYERS, 1, NO_INT},
    {"glm4_moe", TEXT, "n_routed_experts", 1, CONFIG_MAX_EXPERTS, NAN, IN(INT, n_experts)},
    {"glm4_moe", TEXT, "moe_intermediate_size", 1, CONFIG_MAX_WIDTH, NAN, IN(INT, expert_size)},
    {"glm4_moe", TEXT, "n_shared_experts", 0, 64, 1, NO_INT},
    {"glm4_moe", TEXT, "first_k_dense_replace", 0, MODEL_MAX_LAYERS, 1, NO_INT},
    {"glm4_moe", TEXT, "routed_scaling_factor", 0, 1e6, 1, IN(FLOAT, routed_scale)},
    {"glm4_moe", TEXT, "n_group", 1, MODEL_MAX_ROUTER_GROUPS, 1, IN(INT, n_router_groups)},
    {"glm4_moe", TEXT, "topk_group", 1, MODEL_MAX_ROUTER_GROUPS, 1, IN(INT, n_router_groups_used)},
    {"gemma4", TEXT, "global_head_dim", 2, CONFIG_MAX_HEAD_DIM, 16, IN(INT, full.head_dim)},
    {"gemma4", TEXT, "num_global_key_value_heads", 1, CONFIG_MAX_HEADS, 2,
     IN_WITH(INT, full.n_kv_heads, "\"attention_k_eq_v\":true")},
    {"gemma4", TEXT, "num_kv_shared_layers", 0, 3, 0, IN(INT, n_shared_layers)},
    {"gemma4", TEXT, "hidden_size_per_layer_input", 0, CONFIG_MAX_WIDTH, 0, IN(INT, layer_input_size)},
    {"gemma4", TEXT, "pad_token_id", 0, 1887, 0, IN(INT, pad_token_id)},
    {"gemma4", TEXT, "vocab_size_per_layer_input", 1888, CONFIG_MAX_VOCAB, 1888, IN(INT, layer_input_vocab)},
    {"gemma4", TEXT, "final_logit_softcapping", 0, 1e6, 0, IN(FLOAT, logit_softcap)},
    {"gemma4", TEXT, "intermediate_size", 1, CONFIG_MAX_WIDTH, NAN, IN(INT, intermediate_size)},
    {"gemma4", TEXT, "sliding_window", 1, CONFIG_MAX_CONTEXT, NAN, IN(INT, sliding.window)},
    {"gemma4_text", TEXT, "num_experts", 1, CONFIG_MAX_EXPERTS, NAN, IN(INT, n_experts)},
    {"gemma4_text", TEXT, "top_k_experts", 1, MODEL_MAX_EXPERTS_USED, NAN, IN(INT, n_experts_used)},
    {"gemma4_text", TEXT, "moe_intermediate_size", 1, CONFIG_MAX_WIDTH, NAN, IN(INT, expert_size)},
    {"gpt_oss", TEXT, "swiglu_limit", 1e-3, 1e6, 7, IN(DOUBLE, swiglu_limit)},
    {"gpt_oss", TEXT, "head_dim", 2, CONFIG_MAX_HEAD_DIM, 64, IN(INT, full.head_dim)},
    {"granite", TEXT, "embedding_multiplier", 1e-6, 1e6, 1, IN(FLOAT, embed_scale)},
    {"granite", TEXT, "residual_multiplier", 1e-6, 1e6, 1, IN(FLOAT, residual_scale)},
    {"granite", TEXT, "attention_multiplier", 1e-6, 1e6, 1, IN(DOUBLE, attention_scale)},
    {"granite", TEXT, "logits_scaling", 1e-6, 1e6, 1, NO_NUMBER},
    {"minimax_m2", TEXT, "shared_intermediate_size", 0, CONFIG_MAX_WIDTH, 0, NO_INT},
    {"minimax_m2", TEXT, "head_dim", 2, CONFIG_MAX_HEAD_DIM, 128, IN(INT, full.head_dim)},
    {"minimax_m2", TEXT, "rotary_dim", 2, 16, 8, NO_INT},
    {"minimax_m2", TEXT, "intermediate_size", 1, CONFIG_MAX_WIDTH, NAN, IN(INT, expert_size)},
    {"ministral3", ROPE, "llama_4_scaling_beta", 0, 100, 0, IN(DOUBLE, query_growth)},
    {"ministral3", ROPE, "original_max_position_embeddings", 1, CONFIG_MAX_CONTEXT, 4096,
     IN(INT_AS_DOUBLE, query_growth_tokens)},
    {"nemotron_h", TEXT, "mamba_num_heads", 1, CONFIG_MAX_HEADS, NAN, IN(INT, delta_n_v)},
    {"nemotron_h", TEXT, "mamba_head_dim", 1, CONFIG_MAX_HEAD_DIM, NAN, IN(INT, delta_dv)},
    {"nemotron_h", TEXT, "n_groups", 1, CONFIG_MAX_HEADS, NAN, IN(INT, delta_n_k)},
    {"nemotron_h", TEXT, "ssm_state_size", 1, CONFIG_MAX_HEAD_DIM, NAN, IN(INT, delta_dk)},
    {"nemotron_h", TEXT, "conv_kernel", 1, 64, 4, IN(INT, conv_kernel)},
    {"nemotron_h", TEXT, "layer_norm_epsilon", 0, 1, 1e-5, IN(FLOAT, rms_norm_eps)},
    {"nemotron_h", TEXT, "attention_head_dim", 2, CONFIG_MAX_HEAD_DIM, 128,
     IN_WITH(INT, full.head_dim, "\"head_dim\":null")},
    {"nemotron_h", TEXT, "num_hidden_layers", 1, MODEL_MAX_LAYERS, 4, NO_INT},
    {"nemotron_h_moe", TEXT, "moe_intermediate_size", 1, CONFIG_MAX_WIDTH, NAN, IN(INT, expert_size)},
    {"nemotron_h_moe", TEXT, "moe_latent_size", 1, CONFIG_MAX_WIDTH, 0, IN(INT, expert_latent_size)},
    {"nemotron_h_moe", TEXT, "n_shared_experts", 0, CONFIG_MAX_EXPERTS, 1, NO_INT},
    {"nemotron_h_moe", TEXT, "moe_shared_expert_intermediate_size", 1, CONFIG_MAX_WIDTH, NAN,
     IN(INT, shared_expert_size)},
    {"qwen2", TEXT, "max_window_layers", 0, INT_MAX, 28, NO_INT},
    {"smollm3", TEXT, "no_rope_layer_interval", 1, MODEL_MAX_LAYERS, 4, INT_NOWHERE, 0,
     "\"no_rope_layers\":null"},
};

/* ctx: config.json and generation_config.json. */
static err_code read_text(void *ctx, const char *name, json_doc **out, err_detail *detail)
{
    const char *const *texts = ctx;
    const char *text = strcmp(name, "config.json") == 0              ? texts[0]
                       : strcmp(name, "generation_config.json") == 0 ? texts[1]
                                                                     : NULL;
    *out = NULL;
    return text ? json_parse(out, text, strlen(text), LIMIT_JSON_DEPTH, detail) : ERR_OK;
}

static err_code load_with(model_config *cfg, const struct row *row, const char *value, err_detail *d)
{
    const char *config = NULL;
    bytes text, field, generation;
    for (size_t i = 0; i < ARRAY_LEN(RANDOM_FAMILIES); i++) {
        config = strcmp(RANDOM_FAMILIES[i].name, row->family) == 0 ? RANDOM_FAMILIES[i].config : config;
    }
    CHECK(config != NULL);
    bytes_init(&text, 1 << 16);
    bytes_init(&field, 1 << 12);
    bytes_init(&generation, 1 << 12);
    const bool nested = strstr(config, "text_config") != NULL;
    const size_t end = strlen(config) - 1;
    bytes_printf(&field, row->beside ? ",%s" : "%s", row->beside ? row->beside : "");
    if (row->place == ROPE || row->place == SCALED || row->place == LLAMA3) {
        bytes_printf(&field, ",\"rope_parameters\":{%s,\"%s\":%s}", ROPES[row->place], row->name, value);
    } else if (row->place != GENERATION) {
        bytes_printf(&field, ",\"%s\":%s", row->name, value);
    }
    const size_t at = end - (row->place != TOP && nested);
    bytes_printf(&text, "%.*s%s%s", (int)at, config, field.len ? bytes_str(&field) : "", config + at);
    bytes_printf(&generation, "{\"%s\":%s}", row->place == GENERATION ? row->name : "none", value);
    const char *texts[] = {bytes_str(&text), bytes_str(&generation)};
    *d = (err_detail){0};
    err_code err =
        model_config_load(cfg, (json_source){.read = read_text, .ctx = texts, .where = "memory"}, d);
    bytes_deinit(&text);
    bytes_deinit(&field);
    bytes_deinit(&generation);
    return err;
}

/* What the loaded config has where the row says. */
static void check_found(const model_config *cfg, const struct row *row, double want)
{
    const char *at = (const char *)cfg + row->at;
    const double have = row->kind == INT     ? *(const int32_t *)(const void *)at
                        : row->kind == FLOAT ? (double)*(const float *)(const void *)at
                                             : *(const double *)(const void *)at;
    if (!(fabs(have - want) <= 1e-6 * fabs(want))) {
        fprintf(stderr, "  %s: \"%s\" is %g, not %g\n", row->family, row->name, have, want);
        CHECK(!"in its place");
    }
}

static void check_text(const struct row *row, const char *value, const char *have, const char *want,
                       bool is_there)
{
    if ((strstr(have, want) != NULL) != is_there) {
        fprintf(stderr, "  %s: \"%s\": %s: %s\n", row->family, row->name, value, have);
        CHECK(!"the message");
    }
}

static void check_row(const struct row *row)
{
    model_config cfg;
    err_detail d;
    char value[64], range[256];
    const bool is_int = row->kind <= INT_NOWHERE,
               has_place = row->kind != INT_NOWHERE && row->kind != NOWHERE;
    int placed = 0;
    snprintf(range, sizeof range,
             is_int ? "\"%s\" must be an integer from %.0f to %.0f" : "\"%s\" must be a number from %g to %g",
             row->name, row->min, row->max);
    for (int most = 0; most < 2; most++) {
        const double bound = most ? row->max : row->min, step = is_int ? 1 : bound ? 1e-4 * bound : 1e-4;
        snprintf(value, sizeof value, "%.17g", bound);
        const err_code err = load_with(&cfg, row, value, &d);
        check_text(row, value, d.text, " must be a", false);
        if (!err && has_place) {
            check_found(&cfg, row, bound);
            placed++;
        }
        snprintf(value, sizeof value, "%.17g", most ? bound + step : bound - step);
        CHECK_INT(load_with(&cfg, row, value, &d), ERR_INVALID);
        check_text(row, value, d.text, range, true);
    }
    CHECK(placed > 0 || !has_place || !isnan(row->absent));
    if (!isnan(row->absent)) {
        CHECK_OK(load_with(&cfg, row, "null", &d), d);
        if (has_place) {
            check_found(&cfg, row, row->absent);
        }
        return;
    }
    snprintf(range, sizeof range, is_int ? "\"%s\" is missing" : "\"%s\" must be a number", row->name);
    CHECK_INT(load_with(&cfg, row, "null", &d), ERR_INVALID);
    check_text(row, "null", d.text, range, true);
}

int main(void)
{
    log_set_level(LOG_OFF);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        check_row(&ROWS[i]);
    }
    CHECK_DONE();
}
