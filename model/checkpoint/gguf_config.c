#include "model/checkpoint/gguf_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/checkpoint/gguf_config_job.h"
#include "model/checkpoint/gguf_tokenizer.h"

/* MAX_LAYERS: a broken file is not searched for billions of layers; config.json's reader has the real bound. */
enum { NAME_BYTES = 64, KEY_BYTES = 160, MAX_LAYERS = 4096 };

static err_code write_deltanet(const gguf_job *j);
static err_code write_experts(const gguf_job *j);
static err_code write_nemotron(const gguf_job *j);
static err_code write_minimax(const gguf_job *j);
static err_code write_dense(const gguf_job *j);
static err_code write_granite(const gguf_job *j);
static err_code write_smollm3(const gguf_job *j);
static err_code write_glm(const gguf_job *j);

/* general.architecture, and the model_type whose layers it has. */
typedef struct architecture {
    const char *name, *model_type;
    err_code (*parts[2])(
        const gguf_job *j); /* write what this architecture has beside the sizes; NULL ends */
    bool tiled;             /* value heads were put in tiled order by who wrote the file */
    bool sections;          /* rope.dimension_sections are M-RoPE's */
    bool no_rope;           /* positions are not turned, or a part writes how */
    bool permuted;          /* rows of queries and keys are stored pair by pair, as they are rotated */
    const char *windowed;   /* the model_type where the file names a window; NULL: the same */
} architecture;

static const architecture ARCHITECTURES[] = {
    {"qwen35", "qwen3_5", {write_deltanet}, .tiled = true, .sections = true},
    {"qwen35moe", "qwen3_5_moe", {write_deltanet, write_experts}, .tiled = true, .sections = true},
    {"qwen3next", "qwen3_next", .parts = {write_deltanet, write_experts}},
    {"qwen3", "qwen3", .parts = {NULL}},
    {"qwen3moe", "qwen3_moe", .parts = {write_experts}},
    {"qwen3vl", "qwen3_vl", {NULL}, .sections = true},
    {"qwen3vlmoe", "qwen3_vl_moe", {write_experts}, .sections = true},
    {"nemotron_h", "nemotron_h", {write_nemotron}, .no_rope = true},
    {"nemotron_h_moe", "nemotron_h", {write_nemotron}, .no_rope = true},
    {"minimax-m2", "minimax_m2", .parts = {write_minimax}},
    {"gpt-oss", "gpt_oss", .parts = {write_experts}},
    {"llama", "llama", {write_dense}, .permuted = true, .windowed = "mistral"},
    {"qwen2", "qwen2", .parts = {write_dense}},
    {"mistral3", "ministral3", {write_dense}, .permuted = true},
    {"smollm3", "smollm3", {write_dense, write_smollm3}, .permuted = true},
    {"granite", "granite", {write_dense, write_granite}, .permuted = true},
    {"glm4moe", "glm4_moe", .parts = {write_glm}},
    {"gemma4", "gemma4", {gguf_write_gemma}, .no_rope = true},
};

static const architecture *named(const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(ARCHITECTURES); i++) {
        if (n == strlen(ARCHITECTURES[i].name) && memcmp(name, ARCHITECTURES[i].name, n) == 0) {
            return &ARCHITECTURES[i];
        }
    }
    return NULL;
}

static const architecture *find_architecture(const gguf_file *f)
{
    const char *name = "";
    size_t n = 0;
    return gguf_text(gguf_find(f, "general.architecture"), &name, &n) ? named(name, n) : NULL;
}

err_code gguf_config_check(const char *path, const char *name, size_t n, err_detail *detail)
{
    if (named(name, n)) {
        return ERR_OK;
    }
    bytes known = bytes_empty(ERR_TEXT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(ARCHITECTURES); i++) {
        bytes_printf(&known, i ? ", %s" : "%s", ARCHITECTURES[i].name);
    }
    const err_code err =
        err_set(detail, ERR_UNSUPPORTED,
                "%s: metadata general.architecture is \"%.*s\"; this version runs %s (and more families from "
                "safetensors)",
                path, n < NAME_BYTES ? (int)n : NAME_BYTES, name, bytes_str(&known));
    bytes_deinit(&known);
    return err;
}

static err_code begin(gguf_job *j, const architecture **a, const gguf_config_source *from, bytes *out,
                      err_detail *detail)
{
    *j = (gguf_job){out, gguf_set_head(from->set), "", from->path, gguf_set_tensors(from->set), 0, detail};
    *a = find_architecture(j->f);
    if (!*a) {
        size_t n = 0;
        const char *text = "";
        gguf_text(gguf_find(j->f, "general.architecture"), &text, &n);
        return gguf_config_check(from->path, text, n, detail);
    }
    j->prefix = (*a)->name;
    return ERR_OK;
}

err_code gguf_config_layers(const gguf_config_source *from, uint64_t *n_layers, uint64_t *n_draft,
                            err_detail *detail)
{
    const architecture *a = NULL;
    gguf_job j;
    uint64_t all = 0;
    err_code err = begin(&j, &a, from, NULL, detail);
    if (err) {
        return err;
    }
    *n_draft = 0;
    gguf_job_count(&j, "nextn_predict_layers", n_draft);
    if (!gguf_job_count(&j, "block_count", &all) || all > MAX_LAYERS) {
        return gguf_job_missing(&j, "block_count");
    }
    if (*n_draft >= all) {
        return gguf_job_missing(&j, "nextn_predict_layers");
    }
    *n_layers = all - *n_draft;
    return ERR_OK;
}

bool gguf_config_is_tiled(const gguf_config_source *from)
{
    const architecture *a = find_architecture(gguf_set_head(from->set));
    return a && a->tiled;
}

gguf_names gguf_config_names(const gguf_config_source *from)
{
    const architecture *a = find_architecture(gguf_set_head(from->set));
    return a && a->parts[0] == write_nemotron     ? GGUF_NAMES_MAMBA
           : a && a->parts[0] == gguf_write_gemma ? GGUF_NAMES_GEMMA
                                                  : GGUF_NAMES_USUAL;
}

uint64_t gguf_config_permuted_head(const gguf_config_source *from)
{
    const architecture *a = NULL;
    err_detail unused = {0};
    gguf_job j;
    uint64_t width = 0, heads = 0, size = 0;
    if (begin(&j, &a, from, NULL, &unused) != ERR_OK || !a->permuted) {
        return 0;
    }
    if (!gguf_job_count(&j, "attention.key_length", &size) &&
        gguf_job_count(&j, "embedding_length", &width) &&
        gguf_job_count(&j, "attention.head_count", &heads) && heads > 0) {
        size = width / heads;
    }
    return size;
}

/* ---- parts of config.json ---- */

static err_code write_sizes(const gguf_job *j, const gguf_config_source *from)
{
    static const gguf_count counts[] = {
        {"embedding_length", "hidden_size", true},
        {"attention.head_count", "num_attention_heads", true},
        {"feed_forward_length", "intermediate_size", false},
        {"context_length", "max_position_embeddings", false},
        {"attention.sliding_window", "sliding_window", false},
    };
    uint64_t heads = 0, kv_heads = 0, width = 0, key = 0, value = 0, n_layers = 0, n_draft = 0;
    double epsilon = 0;
    const tensor_table *tensors = gguf_set_tensors(from->set);
    const named_tensor *table = tensor_table_find(tensors, "token_embd.weight");
    err_code err = gguf_job_write_counts(j, counts, ARRAY_LEN(counts));
    err = err ? err : gguf_config_layers(from, &n_layers, &n_draft, j->detail);
    if (!err && !(gguf_job_count(j, "attention.head_count", &heads) && heads > 0)) {
        err = gguf_job_missing(j, "attention.head_count");
    }
    if (!err && !gguf_number(gguf_job_find(j, "attention.layer_norm_rms_epsilon"), &epsilon)) {
        err = gguf_job_missing(j, "attention.layer_norm_rms_epsilon");
    }
    if (err) {
        return err;
    }
    if (!table || table->view.n_dims != 2) {
        return err_set(j->detail, ERR_NOT_FOUND, "%s: tensor token_embd.weight is missing", j->path);
    }
    gguf_job_count(j, "embedding_length", &width);
    if (!gguf_job_count(j, "attention.head_count_kv", &kv_heads)) {
        kv_heads = heads;
    }
    if (!gguf_job_count(j, "attention.key_length", &key)) {
        key = heads ? width / heads : 0;
    }
    if (gguf_job_count(j, "attention.value_length", &value) && value != key) {
        return err_set(j->detail, ERR_UNSUPPORTED,
                       "%s: metadata %s.attention.value_length differs from key_length", j->path, j->prefix);
    }
    bytes_printf(j->out,
                 ",\"num_hidden_layers\":%llu,\"mtp_num_hidden_layers\":%llu,\"num_key_value_heads\":%llu,"
                 "\"head_dim\":%llu,"
                 "\"vocab_size\":%zu,\"rms_norm_eps\":%.9g,\"tie_word_embeddings\":%s",
                 (unsigned long long)n_layers, (unsigned long long)n_draft, (unsigned long long)kv_heads,
                 (unsigned long long)key, table->view.dims[0], epsilon,
                 tensor_table_find(tensors, "output.weight") ? "false" : "true");
    return ERR_OK;
}

/* The width of a recurrent head, under `name`: the inner size over the heads. */
static err_code write_head_width(const gguf_job *j, const char *name)
{
    uint64_t inner = 0, heads = 0;
    if (!gguf_job_count(j, "ssm.time_step_rank", &heads) || heads == 0 ||
        !gguf_job_count(j, "ssm.inner_size", &inner) || inner % heads != 0) {
        return gguf_job_missing(j, "ssm.inner_size");
    }
    bytes_printf(j->out, ",\"%s\":%llu", name, (unsigned long long)(inner / heads));
    return ERR_OK;
}

static err_code write_deltanet(const gguf_job *j)
{
    static const gguf_count counts[] = {
        {"ssm.conv_kernel", "linear_conv_kernel_dim", true},
        {"ssm.state_size", "linear_key_head_dim", true},
        {"ssm.group_count", "linear_num_key_heads", true},
        {"ssm.time_step_rank", "linear_num_value_heads", true},
        {"full_attention_interval", "full_attention_interval", false},
    };
    err_code err = gguf_job_write_counts(j, counts, ARRAY_LEN(counts));
    return err ? err : write_head_width(j, "linear_value_head_dim");
}

static err_code write_experts(const gguf_job *j)
{
    static const gguf_count counts[] = {
        {"expert_count", "num_experts", true},
        {"expert_used_count", "num_experts_per_tok", true},
        {"expert_feed_forward_length", "moe_intermediate_size", true},
        {"expert_shared_feed_forward_length", "shared_expert_intermediate_size", false},
    };
    bool norm = true; /* what files that do not say so mean */
    gguf_bool(gguf_job_find(j, "expert_weights_norm"), &norm);
    bytes_printf(j->out, ",\"norm_topk_prob\":%s", norm ? "true" : "false");
    return gguf_job_write_counts(j, counts, ARRAY_LEN(counts));
}

/* What a sigmoid router adds. */
static void write_router(const gguf_job *j)
{
    bool norm = true;
    gguf_bool(gguf_job_find(j, "expert_weights_norm"), &norm);
    bytes_printf(j->out, ",\"norm_topk_prob\":%s", norm ? "true" : "false");
    gguf_job_write_number(j, "expert_weights_scale", "routed_scaling_factor");
    gguf_job_write_number(j, "expert_group_count", "n_group");
    gguf_job_write_number(j, "expert_group_used_count", "topk_group");
}

/* What a layer is, its tensors tell: files of experts do not say which layers are dense. */
static err_code write_nemotron(const gguf_job *j)
{
    static const gguf_count counts[] = {
        {"ssm.conv_kernel", "conv_kernel", true},
        {"ssm.state_size", "ssm_state_size", true},
        {"ssm.group_count", "n_groups", true},
        {"ssm.time_step_rank", "mamba_num_heads", true},
        {"expert_count", "n_routed_experts", false},
        {"expert_used_count", "num_experts_per_tok", false},
        {"expert_feed_forward_length", "moe_intermediate_size", false},
        {"expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size", false},
        {"moe_latent_size", "moe_latent_size", false},
    };
    static const char *const signs[][2] = {
        {"ssm_in.weight", "M"}, {"attn_q.weight", "*"}, {"ffn_gate_inp.weight", "E"}, {"ffn_up.weight", "-"}};
    err_code err = gguf_job_write_counts(j, counts, ARRAY_LEN(counts));
    err = err ? err : write_head_width(j, "mamba_head_dim");
    if (err) {
        return err;
    }
    gguf_job_write_number(j, "attention.layer_norm_rms_epsilon", "layer_norm_epsilon");
    write_router(j);
    bytes_append_str(j->out, ",\"hybrid_override_pattern\":\"");
    for (uint64_t i = 0; i < j->n_layers; i++) {
        size_t k = 0;
        while (k < ARRAY_LEN(signs) && !gguf_job_has_tensor(j, i, signs[k][0])) {
            k++;
        }
        bytes_append_str(j->out, k < ARRAY_LEN(signs) ? signs[k][1] : "?");
    }
    bytes_append_str(j->out, "\"");
    return ERR_OK;
}

/* Llama's layers: whether there are biases, their tensors tell. */
static err_code write_dense(const gguf_job *j)
{
    uint64_t n_experts = 0;
    if (gguf_job_count(j, "expert_count", &n_experts) && n_experts > 0) {
        return err_set(j->detail, ERR_UNSUPPORTED,
                       "%s: architecture %s with experts (Mixtral) is not supported; a dense model is",
                       j->path, j->prefix);
    }
    if (gguf_job_has_tensor(j, 0, "attn_q.bias")) {
        bytes_append_str(j->out, ",\"attention_bias\":true");
    }
    return ERR_OK;
}

static err_code write_granite(const gguf_job *j)
{
    gguf_job_write_number(j, "attention.scale", "attention_multiplier");
    gguf_job_write_number(j, "embedding_scale", "embedding_multiplier");
    gguf_job_write_number(j, "residual_scale", "residual_multiplier");
    gguf_job_write_number(j, "logit_scale", "logits_scaling");
    return ERR_OK;
}

/* Which layers are not rotated is not in the file: every fourth, as published. */
static err_code write_smollm3(const gguf_job *j)
{
    bytes_append_str(j->out, ",\"no_rope_layer_interval\":4");
    return ERR_OK;
}

static err_code write_glm(const gguf_job *j)
{
    static const gguf_count counts[] = {
        {"expert_count", "n_routed_experts", true},
        {"expert_used_count", "num_experts_per_tok", true},
        {"expert_feed_forward_length", "moe_intermediate_size", true},
        {"expert_shared_count", "n_shared_experts", false},
        {"leading_dense_block_count", "first_k_dense_replace", false},
    };
    write_router(j);
    bytes_printf(j->out, ",\"attention_bias\":%s,\"use_qk_norm\":%s",
                 gguf_job_has_tensor(j, 0, "attn_q.bias") ? "true" : "false",
                 gguf_job_has_tensor(j, 0, "attn_q_norm.weight") ? "true" : "false");
    return gguf_job_write_counts(j, counts, ARRAY_LEN(counts));
}

/* What Llama 3 divides frequencies by is a tensor there, without the numbers it was made from: those
 * that are always the same are taken, the others follow from it, and all of it has to fit. */
static err_code write_llama3(const gguf_job *j, const tensor *t, double theta)
{
    enum { MOST = 4096 };
    const double slow = 1, fast = 4, two_pi = 6.283185307179586;
    float given[MOST];
    const size_t n = tensor_len(t);
    double original = 0;
    bool fits = t->type < DTYPE_OTHER && n > 0 && n <= MOST;
    if (fits) {
        tensor_to_f32(given, t, 0, n);
    }
    const double factor = fits ? (double)given[n - 1] : 0;
    for (size_t i = 0; fits && original == 0 && i < n; i++) {
        if (given[i] > 1.0001f && (double)given[i] < factor * 0.9999) {
            const double kept = (1 / (double)given[i] - 1 / factor) / (1 - 1 / factor);
            original = round(two_pi * (slow + kept * (fast - slow)) * pow(theta, (double)i / (double)n));
        }
    }
    for (size_t i = 0; fits && i < n; i++) {
        const double turns = original * pow(theta, -(double)i / (double)n) / two_pi;
        const double ramp = (turns - slow) / (fast - slow), kept = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        fits = original >= 1 && original < 1e9 &&
               fabs(1 / ((1 - kept) / factor + kept) / (double)given[i] - 1) < 1e-2;
    }
    if (!fits) {
        return err_set(j->detail, ERR_UNSUPPORTED,
                       "%s: tensor rope_freqs.weight is not as Llama 3 scales its positions, which alone is "
                       "supported; take the model as safetensors",
                       j->path);
    }
    bytes_printf(j->out,
                 ",\"rope_type\":\"llama3\",\"factor\":%.9g,\"low_freq_factor\":1,\"high_freq_factor\":4,"
                 "\"original_max_position_embeddings\":%.0f",
                 factor, original);
    return ERR_OK;
}

static err_code write_minimax(const gguf_job *j)
{
    static const gguf_count counts[] = {
        {"expert_count", "num_local_experts", true},
        {"expert_used_count", "num_experts_per_tok", true},
        {"expert_feed_forward_length", "intermediate_size", true}, /* the last one counts */
    };
    write_router(j);
    return gguf_job_write_counts(j, counts, ARRAY_LEN(counts));
}

/* The scaling of rotary positions. The file does not say whether YaRN's bounds are whole pairs: those of
 * GPT-OSS, as published, are not. */
static void write_scaling(const gguf_job *j, const architecture *a)
{
    static const char *const fields[][2] = {{"rope.scaling.factor", "factor"},
                                            {"rope.scaling.yarn_beta_fast", "beta_fast"},
                                            {"rope.scaling.yarn_beta_slow", "beta_slow"}};
    uint64_t original = 0;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        double value = 0;
        if (gguf_number(gguf_job_find(j, fields[i][0]), &value)) {
            bytes_printf(j->out, ",\"%s\":%.9g", fields[i][1], value);
        }
    }
    if (gguf_job_count(j, "rope.scaling.original_context_length", &original)) {
        bytes_printf(j->out, ",\"original_max_position_embeddings\":%llu", (unsigned long long)original);
    }
    double all = 0; /* the length of queries and keys that YaRN gives is divided by that of this number */
    if (gguf_number(gguf_job_find(j, "rope.scaling.yarn_log_multiplier"), &all) && all > 0) {
        bytes_printf(j->out, ",\"mscale\":1,\"mscale_all_dim\":%.9g", all);
    }
    gguf_job_write_number(j, "attention.temperature_scale", "llama_4_scaling_beta"); /* Ministral 3 */
    bytes_printf(j->out, ",\"truncate\":%s", strcmp(a->model_type, "gpt_oss") == 0 ? "false" : "true");
}

static err_code write_rope(const gguf_job *j, const architecture *a)
{
    uint64_t dims = 0, width = 0;
    double theta = 0;
    const char *scaling = NULL;
    size_t n = 0;
    int64_t sections[3];
    if (!gguf_number(gguf_job_find(j, "rope.freq_base"), &theta)) {
        return gguf_job_missing(j, "rope.freq_base");
    }
    bytes_printf(j->out, ",\"rope_parameters\":{\"rope_theta\":%.17g", theta);
    const gguf_value *kind = gguf_job_find(j, "rope.scaling.type");
    if (gguf_text(kind, &scaling, &n) && n > 0 && !gguf_is_text(kind, "none")) {
        bytes_append_str(j->out, ",\"rope_type\":");
        bytes_append_json(j->out, scaling, n);
        write_scaling(j, a);
    }
    const named_tensor *freqs = tensor_table_find(j->tensors, "rope_freqs.weight");
    err_code err = freqs ? write_llama3(j, &freqs->view, theta) : ERR_OK;
    if (err) {
        return err;
    }
    if (gguf_job_count(j, "rope.dimension_count", &dims) &&
        gguf_job_count(j, "attention.key_length", &width) && width > 0) {
        bytes_printf(j->out, ",\"partial_rotary_factor\":%.17g", (double)dims / (double)width);
    }
    const gguf_value *v = gguf_job_find(j, "rope.dimension_sections");
    if (a->sections && v) {
        for (uint64_t i = 0; i < 3; i++) {
            if (!v->is_array || !gguf_int_at(v, i, &sections[i])) {
                return gguf_job_missing(j, "rope.dimension_sections");
            }
        }
        bytes_printf(j->out, ",\"mrope_interleaved\":true,\"mrope_section\":[%lld,%lld,%lld]",
                     (long long)sections[0], (long long)sections[1], (long long)sections[2]);
    }
    bytes_append_char(j->out, '}');
    return ERR_OK;
}

/* Ids that end an answer, and those of images. */
static void write_tokens(const gguf_job *j)
{
    static const char *const stops[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id"};
    static const char *const specials[][2] = {{"image_token_id", "<|image_pad|>"},
                                              {"video_token_id", "<|video_pad|>"},
                                              {"vision_start_token_id", "<|vision_start|>"},
                                              {"vision_end_token_id", "<|vision_end|>"},
                                              {"image_token_id", "<|image|>"}, /* Gemma 4 */
                                              {"video_token_id", "<|video|>"},
                                              {"boi_token_id", "<|image>"},
                                              {"eoi_token_id", "<image|>"}};
    static const char *const turn_ends[] = {"<turn|>"}; /* which not every file names */
    const char *comma = "";
    uint64_t bos = 0;
    if (gguf_uint(gguf_find(j->f, "tokenizer.ggml.bos_token_id"), &bos)) {
        bytes_printf(j->out, ",\"bos_token_id\":%llu", (unsigned long long)bos);
    }
    bytes_append_str(j->out, ",\"eos_token_id\":[");
    for (size_t i = 0; i < ARRAY_LEN(stops); i++) {
        uint64_t id = 0;
        if (gguf_uint(gguf_find(j->f, stops[i]), &id)) {
            bytes_printf(j->out, "%s%llu", comma, (unsigned long long)id);
            comma = ",";
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(turn_ends); i++) {
        const int32_t id = gguf_token_id(j->f, turn_ends[i]);
        if (id >= 0) {
            bytes_printf(j->out, "%s%d", comma, id);
            comma = ",";
        }
    }
    bytes_append_char(j->out, ']');
    for (size_t i = 0; i < ARRAY_LEN(specials); i++) {
        const int32_t id = gguf_token_id(j->f, specials[i][1]);
        if (id >= 0) {
            bytes_printf(j->out, ",\"%s\":%d", specials[i][0], id);
        }
    }
}

/* vision_config, from the mmproj file. */
static err_code write_vision(const gguf_config_source *from, bytes *out, err_detail *detail)
{
    static const gguf_count counts[] = {
        {"block_count", "depth", true},
        {"embedding_length", "hidden_size", true},
        {"feed_forward_length", "intermediate_size", true},
        {"attention.head_count", "num_heads", true},
        {"projection_dim", "out_hidden_size", true},
        {"patch_size", "patch_size", true},
        {"spatial_merge_size", "spatial_merge_size", false},
    };
    const gguf_job j = {out, from->vision, "clip.vision", from->vision_path, NULL, 0, detail};
    const named_tensor *positions = tensor_table_find(gguf_file_tensors(j.f), "v.position_embd.weight");
    if (!positions) {
        return err_set(detail, ERR_NOT_FOUND, "%s: tensor v.position_embd.weight is missing", j.path);
    }
    bytes_printf(out, ",\"vision_config\":{\"num_position_embeddings\":%zu", positions->view.dims[0]);
    err_code err = gguf_job_write_counts(&j, counts, ARRAY_LEN(counts));
    const gguf_value *deep = gguf_find(j.f, "clip.vision.is_deepstack_layers");
    const char *comma = "";
    bytes_append_str(out, ",\"deepstack_visual_indexes\":[");
    for (uint64_t i = 0; deep && deep->type == GGUF_BOOL && i < deep->n; i++) {
        if (deep->data[i]) {
            bytes_printf(out, "%s%llu", comma, (unsigned long long)i);
            comma = ",";
        }
    }
    bytes_append_str(out, "]}");
    return err;
}

/* ---- documents ---- */

err_code gguf_config_json(bytes *out, const gguf_config_source *from, err_detail *detail)
{
    const architecture *a = NULL;
    gguf_job j;
    err_code err = begin(&j, &a, from, out, detail);
    if (err) {
        return err;
    }
    uint64_t n_draft = 0, window = 0;
    const bool windowed =
        a->windowed && gguf_job_count(&j, "attention.sliding_window", &window) && window > 0;
    bytes_printf(out, "{\"model_type\":\"%s\"", windowed ? a->windowed : a->model_type);
    err = gguf_config_layers(from, &j.n_layers, &n_draft, detail);
    err = err ? err : write_sizes(&j, from);
    for (size_t i = 0; !err && i < ARRAY_LEN(a->parts) && a->parts[i]; i++) {
        err = a->parts[i](&j);
    }
    err = err || a->no_rope ? err : write_rope(&j, a);
    if (err) {
        return err;
    }
    write_tokens(&j);
    if (from->vision) {
        err = gguf_config_is_gemma_tower(from->vision) ? gguf_write_gemma_vision(from, out, detail)
                                                       : write_vision(from, out, detail);
    }
    bytes_append_char(out, '}');
    return err;
}

void gguf_generation_json(bytes *out, const gguf_config_source *from)
{
    static const char *const fields[][2] = {{"general.sampling.temp", "temperature"},
                                            {"general.sampling.top_k", "top_k"},
                                            {"general.sampling.top_p", "top_p"},
                                            {"general.sampling.min_p", "min_p"},
                                            {"general.sampling.penalty_repeat", "repetition_penalty"}};
    const gguf_file *f = gguf_set_head(from->set);
    const char *before = "{\"do_sample\":true,";
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        double value = 0;
        if (gguf_number(gguf_find(f, fields[i][0]), &value)) {
            bytes_printf(out, "%s\"%s\":%.9g", before, fields[i][1], value);
            before = ",";
        }
    }
    if (out->len > 0) {
        bytes_append_char(out, '}');
    }
}

void gguf_preprocessor_json(bytes *out, const gguf_config_source *from)
{
    static const char *const counts[][2] = {{"clip.vision.patch_size", "patch_size"},
                                            {"clip.vision.spatial_merge_size", "merge_size"},
                                            {"clip.vision.image_min_pixels", "min_pixels"},
                                            {"clip.vision.image_max_pixels", "max_pixels"}};
    static const char *const triples[] = {"image_mean", "image_std"};
    if (!from->vision || gguf_config_is_gemma_tower(from->vision)) {
        return; /* what Gemma 4's processor does follows from the tower */
    }
    bytes_append_str(out, "{\"temporal_patch_size\":2");
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        uint64_t n = 0;
        if (gguf_uint(gguf_find(from->vision, counts[i][0]), &n)) {
            bytes_printf(out, ",\"%s\":%llu", counts[i][1], (unsigned long long)n);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(triples); i++) {
        char key[KEY_BYTES];
        double v[3];
        snprintf(key, sizeof key, "clip.vision.%s", triples[i]);
        const gguf_value *found = gguf_find(from->vision, key);
        if (gguf_number_at(found, 0, &v[0]) && gguf_number_at(found, 1, &v[1]) &&
            gguf_number_at(found, 2, &v[2])) {
            bytes_printf(out, ",\"%s\":[%.9g,%.9g,%.9g]", triples[i], v[0], v[1], v[2]);
        }
    }
    bytes_append_char(out, '}');
}
