/* say_model: what a configuration, a table of tensors and a model are, for targets that read them. One thread.
 *
 *     model_config c = {0};  say_config(&c);
 */
#ifndef PARLEY_TESTS_FUZZ_SAY_MODEL_H
#define PARLEY_TESTS_FUZZ_SAY_MODEL_H

#include <stdint.h>
#include <string.h>

#include "model/checkpoint/tensor_table.h"
#include "model/config/config.h"
#include "tests/fuzz/say.h"

/* Names, shapes, and where the data of each stand, from the first in the file on. */
static inline void say_tensors(const tensor_table *table)
{
    uintptr_t first = UINTPTR_MAX;
    for (size_t i = 0; i < table->n; i++) {
        const uintptr_t at = (uintptr_t)table->items[i].view.data;
        first = at && at < first ? at : first;
    }
    for (size_t i = 0; i < table->n && i < 40; i++) {
        const named_tensor *t = &table->items[i];
        char dims[128] = "";
        for (int32_t k = 0; k < t->view.n_dims; k++) {
            snprintf(dims + strlen(dims), sizeof dims - strlen(dims), " %zu", t->view.dims[k]);
        }
        say("%s: %s, %d,%s, %zu bytes at %zu%s%s", t->name, t->type_name, (int)t->view.type, dims,
            t->view.bytes, t->view.data ? (size_t)((uintptr_t)t->view.data - first) : 0,
            t->stored && strcmp(t->stored, t->name) != 0 ? ", stored as " : "",
            t->stored && strcmp(t->stored, t->name) != 0 ? t->stored : "");
    }
}

static inline void say_rope(const char *name, const attention_spec *a)
{
    const rope_spec *r = &a->rope;
    say("%s: %d heads of %d, window %d, keys are values %d; rope %g, %d pairs, %d still, yarn %g %g %g %g "
        "%d, llama3 %g %g "
        "%g %g, linear %g, magnitude %g",
        name, a->n_kv_heads, a->head_dim, a->window, a->keys_are_values, r->theta, r->pairs, r->n_still,
        r->yarn_factor, r->yarn_original, r->yarn_fast, r->yarn_slow, r->yarn_truncate, r->llama3_factor,
        r->llama3_original, r->llama3_fast, r->llama3_slow, r->linear_factor, r->magnitude);
}

static inline void say_config(const model_config *c)
{
    char layers[2 * MODEL_MAX_LAYERS + 1] = "", states[512] = "", stops[256] = "";
    for (int32_t i = 0; i < c->n_layers; i++) {
        layers[2 * i] = (char)((c->no_rope[i] ? 'A' : 'a') + c->layers[i]);
        layers[2 * i + 1] = (char)('0' + c->feeds[i]);
        const size_t n = strlen(states);
        snprintf(states + n, sizeof states - n, " %d", c->state_of[i]);
    }
    for (int32_t i = 0; i < c->n_stop_ids; i++) {
        const size_t n = strlen(stops);
        snprintf(stops + n, sizeof stops - n, " %d", c->stop_ids[i]);
    }
    say("%s: vocabulary %d, width %d, dense %d, %d heads, %d positions, norm %g, tied %d", c->family,
        c->vocab_size, c->hidden_size, c->intermediate_size, c->n_heads, c->max_position_embeddings,
        (double)c->rms_norm_eps, c->tie_word_embeddings);
    say("layers %.*s; states%s; %d attention, %d sliding, %d recurrent, %d shared", 2 * (int)c->n_layers,
        layers, states, c->n_attention_layers, c->n_sliding_layers, c->n_recurrent_layers,
        c->n_shared_layers);
    say_rope("full", &c->full);
    if (c->n_sliding_layers > 0) {
        say_rope("sliding", &c->sliding);
    }
    say("growth %g %g, scale %g, value norm %d, gate %d, biases %d, sinks %d, zero centred %d, output norms "
        "%d, scalars %d",
        c->query_growth, c->query_growth_tokens, c->attention_scale, c->value_norm, c->attention_gate,
        c->attention_biases, c->attention_sinks, c->zero_centred_norms, c->output_norms, c->layer_scalars);
    say("residual %g, logits %g, embeddings %g, softcap %g, inputs %d %d, pad %d, wide %d, qk %d, ffn %d, "
        "limit %g",
        (double)c->residual_scale, (double)c->logit_scale, (double)c->embed_scale, (double)c->logit_softcap,
        c->layer_input_size, c->layer_input_vocab, c->pad_token_id, c->shared_layers_are_wide,
        (int)c->qk_norm, (int)c->ffn, c->swiglu_limit);
    if (c->n_experts > 0) {
        say("experts %d of %d, width %d, shared %d, ungated %d, latent %d, normed %d, router norm %d, scales "
            "%d, biases %d, "
            "router %d, scale %g, groups %d of %d",
            c->n_experts_used, c->n_experts, c->expert_size, c->shared_expert_size, c->shared_expert_ungated,
            c->expert_latent_size, c->norm_expert_weights, c->router_norm, c->expert_scales, c->expert_biases,
            (int)c->router, (double)c->routed_scale, c->n_router_groups_used, c->n_router_groups);
    }
    if (c->n_recurrent_layers > 0) {
        say("recurrent %d %d %d %d, kernel %d, bias %d, dt %g %g, tiled %d", c->delta_n_k, c->delta_n_v,
            c->delta_dk, c->delta_dv, c->conv_kernel, c->mamba_conv_bias, (double)c->mamba_least_dt,
            (double)c->mamba_most_dt, c->delta_tiled);
    }
    say("mrope %d %d %d, interleaved %d, bf16 %d, mtp %d, media %d %d %d %d, vision %d, both ways %d, bare "
        "%d, whole %d %g, "
        "text alone %d, deepstack %d",
        c->mrope_section[0], c->mrope_section[1], c->mrope_section[2], c->mrope_interleaved, c->rope_bf16,
        c->n_mtp_layers, c->image_token_id, c->video_token_id, c->vision_start_token_id,
        c->vision_end_token_id, c->has_vision, c->media_see_both_ways, c->bare_placeholders, c->whole_videos,
        c->positions_per_second, c->text_alone, c->n_deepstack);
    say("stops%s, bos %d %s, eos %s, sample %d %g %g %g %g %d", stops, c->bos_token_id, c->bos_token,
        c->eos_token, c->do_sample, (double)c->temperature, (double)c->top_p, (double)c->min_p,
        (double)c->repetition_penalty, c->top_k);
}

#endif
