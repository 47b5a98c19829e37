/* Gemma 4 in GGUF files: what its layers have, from metadata and from which tensors are there; and its
 * tower. */
#include "base/compiler.h"
#include "model/checkpoint/gguf_config_job.h"

/* Whether layer i slides, as the file lists it. */
static bool slides(const gguf_value *pattern, uint64_t i)
{
    return i < pattern->n && pattern->data[i] != 0;
}

/* A count that layers of one kind have: of a list the first of them. */
static uint64_t count_of_kind(const gguf_job *j, const char *name, const gguf_value *pattern, bool sliding)
{
    const gguf_value *v = gguf_job_find(j, name);
    int64_t n = 0;
    uint64_t one = 0;
    for (uint64_t i = 0; v && v->is_array && i < j->n_layers; i++) {
        if (slides(pattern, i) == sliding) {
            return gguf_int_at(v, i, &n) && n > 0 ? (uint64_t)n : 0;
        }
    }
    return gguf_uint(v, &one) ? one : 0;
}

/* Positions of either kind of layer. Full layers turn the first pairs of a head: what the others are
 * divided by is so large that nothing turns. */
static err_code write_gemma_rope(const gguf_job *j)
{
    enum { MOST = 4096 };
    const named_tensor *freqs = tensor_table_find(j->tensors, "rope_freqs.weight");
    const size_t n = freqs && freqs->view.type < DTYPE_OTHER ? tensor_len(&freqs->view) : 0;
    double full = 0, sliding = 0;
    float factors[MOST];
    size_t turned = 0;
    if (!gguf_number(gguf_job_find(j, "rope.freq_base"), &full) || n == 0 || n > MOST) {
        return gguf_job_missing(j, "rope.freq_base, or tensor rope_freqs.weight,");
    }
    tensor_to_f32(factors, &freqs->view, 0, n);
    while (turned < n && factors[turned] == 1.0f) {
        turned++;
    }
    for (size_t i = turned; i < n; i++) {
        if (!(factors[i] > 1e20f)) {
            return err_set(j->detail, ERR_UNSUPPORTED,
                           "%s: tensor rope_freqs.weight is not as Gemma 4 turns part of a head", j->path);
        }
    }
    if (!gguf_number(gguf_job_find(j, "rope.freq_base_swa"), &sliding)) {
        sliding = full;
    }
    bytes_printf(
        j->out,
        ",\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"proportional\",\"rope_theta\":%.17g,"
        "\"partial_rotary_factor\":%.17g},\"sliding_attention\":{\"rope_type\":\"default\","
        "\"rope_theta\":%.17g}}",
        full, (double)turned / (double)n, sliding);
    return ERR_OK;
}

static err_code write_gemma_layers(const gguf_job *j, const gguf_value *pattern)
{
    const uint64_t heads = count_of_kind(j, "attention.head_count_kv", pattern, true);
    const uint64_t full_heads = count_of_kind(j, "attention.head_count_kv", pattern, false);
    uint64_t size = 0, full_size = 0, shared = 0, width = 0, last_width = 0, first_full = 0;
    int64_t n = 0;
    const gguf_value *widths = gguf_job_find(j, "feed_forward_length");
    if (!gguf_job_count(j, "attention.key_length", &full_size)) {
        return gguf_job_missing(j, "attention.key_length");
    }
    if (!gguf_job_count(j, "attention.key_length_swa", &size)) {
        size = full_size;
    }
    gguf_job_count(j, "attention.shared_kv_layers", &shared);
    if (!gguf_uint(widths, &width)) {
        width = gguf_int_at(widths, 0, &n) && n > 0 ? (uint64_t)n : 0;
        last_width = gguf_int_at(widths, j->n_layers - 1, &n) && n > 0 ? (uint64_t)n : 0;
    }
    bytes_append_str(j->out, ",\"layer_types\":[");
    for (uint64_t i = 0; i < j->n_layers; i++) {
        bytes_printf(j->out, "%s\"%s_attention\"", i ? "," : "", slides(pattern, i) ? "sliding" : "full");
    }
    while (first_full < j->n_layers && slides(pattern, first_full)) {
        first_full++;
    }
    const bool same = first_full < j->n_layers && !gguf_job_has_tensor(j, first_full, "attn_v.weight");
    bytes_printf(j->out,
                 "],\"head_dim\":%llu,\"global_head_dim\":%llu,\"num_key_value_heads\":%llu,"
                 "\"num_global_key_value_heads\":%llu,\"attention_k_eq_v\":%s,\"num_kv_shared_layers\":%llu,"
                 "\"intermediate_size\":%llu,\"use_double_wide_mlp\":%s",
                 (unsigned long long)size, (unsigned long long)full_size,
                 (unsigned long long)(heads ? heads : full_heads),
                 (unsigned long long)(full_heads ? full_heads : heads), same ? "true" : "false",
                 (unsigned long long)shared, (unsigned long long)width,
                 last_width == 2 * width && width > 0 ? "true" : "false");
    return ERR_OK;
}

/* Whether images see all of themselves, the file does not say: in published models they do where
 * layers have no inputs of their own. */
err_code gguf_write_gemma(const gguf_job *j)
{
    static const gguf_count counts[] = {
        {"expert_count", "num_experts", false},
        {"expert_used_count", "top_k_experts", false},
        {"expert_feed_forward_length", "moe_intermediate_size", false},
        {"embedding_length_per_layer_input", "hidden_size_per_layer_input", false},
    };
    const gguf_value *pattern = gguf_job_find(j, "attention.sliding_window_pattern");
    const named_tensor *table = tensor_table_find(j->tensors, "per_layer_token_embd.weight");
    uint64_t n_experts = 0, pad = 0, inputs = 0;
    if (!pattern || !pattern->is_array || pattern->type != GGUF_BOOL || pattern->n < j->n_layers) {
        return gguf_job_missing(j, "attention.sliding_window_pattern");
    }
    err_code err = gguf_job_write_counts(j, counts, ARRAY_LEN(counts));
    err = err ? err : write_gemma_layers(j, pattern);
    err = err ? err : write_gemma_rope(j);
    double cap = 30; /* of every published model; not every converter writes it */
    gguf_number(gguf_job_find(j, "final_logit_softcapping"), &cap);
    bytes_printf(j->out, ",\"final_logit_softcapping\":%.9g", cap);
    gguf_job_count(j, "expert_count", &n_experts);
    gguf_job_count(j, "embedding_length_per_layer_input", &inputs);
    bytes_printf(j->out, ",\"enable_moe_block\":%s,\"use_bidirectional_attention\":%s",
                 n_experts ? "true" : "false", inputs ? "null" : "\"vision\"");
    if (table && inputs) {
        bytes_printf(j->out, ",\"vocab_size_per_layer_input\":%zu", table->view.dims[0]);
    }
    if (gguf_uint(gguf_find(j->f, "tokenizer.ggml.padding_token_id"), &pad)) {
        bytes_printf(j->out, ",\"pad_token_id\":%llu", (unsigned long long)pad);
    }
    return err;
}

/* vision_config of Gemma 4's tower. */
err_code gguf_write_gemma_vision(const gguf_config_source *from, bytes *out, err_detail *detail)
{
    static const gguf_count counts[] = {
        {"block_count", "num_hidden_layers", true},
        {"embedding_length", "hidden_size", true},
        {"feed_forward_length", "intermediate_size", true},
        {"attention.head_count", "num_attention_heads", true},
        {"attention.head_count", "num_key_value_heads", true},
        {"patch_size", "patch_size", true},
    };
    const gguf_job j = {out, from->vision, "clip.vision", from->vision_path, NULL, 0, detail};
    const tensor_table *all = gguf_file_tensors(j.f);
    const named_tensor *positions = tensor_table_find(all, "v.position_embd.weight"),
                       *queries = tensor_table_find(all, "v.blk.0.attn_q.weight");
    uint64_t heads = 0, pooled = 3;
    double epsilon = 1e-6;
    if (!positions || positions->view.n_dims != 3 || !queries ||
        !gguf_job_count(&j, "attention.head_count", &heads) || heads == 0) {
        return err_set(detail, ERR_NOT_FOUND,
                       "%s: tensor v.position_embd.weight, v.blk.0.attn_q.weight, or the number of heads, is "
                       "missing or of another shape",
                       j.path);
    }
    gguf_job_count(&j, "projector.scale_factor", &pooled);
    gguf_number(gguf_job_find(&j, "attention.layer_norm_epsilon"), &epsilon);
    bytes_printf(out,
                 ",\"vision_config\":{\"model_type\":\"gemma4_vision\",\"position_embedding_size\":%zu,"
                 "\"head_dim\":%llu,\"pooling_kernel_size\":%llu,\"rms_norm_eps\":%.9g,"
                 "\"use_clipped_linears\":%s,\"standardize\":%s",
                 positions->view.dims[1], (unsigned long long)(queries->view.dims[0] / heads),
                 (unsigned long long)pooled, epsilon,
                 tensor_table_find(all, "v.blk.0.attn_q.input_max") ? "true" : "false",
                 tensor_table_find(all, "v.std_bias") ? "true" : "false");
    const err_code err = gguf_job_write_counts(&j, counts, ARRAY_LEN(counts));
    bytes_append_char(out, '}');
    return err;
}

bool gguf_config_is_gemma_tower(const gguf_file *vision)
{
    const gguf_value *kind = vision ? gguf_find(vision, "clip.vision.projector_type") : NULL;
    return gguf_is_text(kind ? kind : vision ? gguf_find(vision, "clip.projector_type") : NULL, "gemma4v");
}
