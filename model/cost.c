#include "model/cost.h"

#include "base/compiler.h"
#include "model/model_parts.h"

/* Takes a matrix in, if the layer has it: `times` of them are used. */
static void add_matrix(model_cost *cost, const tensor *w, double times)
{
    if (w->bytes > 0) {
        cost->step_bytes += times * (double)w->bytes;
        cost->layer_flops += times * 2.0 * (double)tensor_len(w);
    }
}

static void add_ffn(model_cost *cost, const ffn_weights *w)
{
    add_matrix(cost, &w->gate, 1);
    add_matrix(cost, &w->up, 1);
    add_matrix(cost, &w->down, 1);
}

static void add_moe(model_cost *cost, const moe_weights *w, double n_used)
{
    const expert_matrices *all[] = {&w->gate, &w->up, &w->down};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (all[i]->parts) {
            const tensor one = expert_matrix(all[i], 0);
            add_matrix(cost, &one, n_used);
        }
    }
    add_matrix(cost, &w->latent_in, 1);
    add_matrix(cost, &w->latent_out, 1);
    add_matrix(cost, &w->router, 1);
    add_matrix(cost, &w->shared_gate, 1);
    add_ffn(cost, &w->shared);
}

static void add_layer(model_cost *cost, const layer_weights *l, const model_config *cfg, kv_type type)
{
    const attention_weights *a = &l->attention;
    const deltanet_weights *d = &l->deltanet;
    const mamba_weights *m = &l->mamba;
    /* a layer has those of its kind; the others are empty */
    const tensor *mixers[] = {&a->q_proj,       &a->k_proj,     &a->v_proj,    &a->o_proj,   &d->in_proj_qkv,
                              &d->in_proj_z,    &d->in_proj_b,  &d->in_proj_a, &d->out_proj, &m->in_proj,
                              &d->in_proj_qkvz, &d->in_proj_ba, &m->out_proj};
    for (size_t i = 0; i < ARRAY_LEN(mixers); i++) {
        add_matrix(cost, mixers[i], 1);
    }
    if (layer_is_attention(l->kind)) {
        const attention_spec *spec = model_config_attention(cfg, l->kind);
        const double flops = 4.0 * cfg->n_heads * spec->head_dim;
        const double n_bytes =
            (double)kv_page_bytes(type, 1, (size_t)spec->n_kv_heads, (size_t)spec->head_dim);
        cost->slot_flops += spec->window ? 0 : flops; /* what a window costs does not grow */
        cost->slot_bytes += spec->window ? 0 : n_bytes;
        cost->layer_flops += spec->window * flops;
        cost->step_bytes += spec->window * n_bytes;
    } else if (l->kind != LAYER_NONE) {
        /* the state is read and written, and so are three rows of the convolution's inputs, beside
         * its four weights */
        const double width = (double)model_config_channels(cfg);
        const double state = (double)cfg->delta_n_v * cfg->delta_dk * cfg->delta_dv;
        cost->step_bytes += (2 * state + (2 * 3 + 4) * width) * sizeof(float);
    }
    add_matrix(cost, &l->input_gate, 1);
    add_matrix(cost, &l->input_proj, 1);
    if (l->feed == FEED_EXPERTS || l->feed == FEED_BOTH) {
        add_moe(cost, &l->moe, cfg->n_experts_used);
    }
    add_ffn(cost, &l->ffn);
}

model_cost model_costs(const model *m, kv_type type)
{
    const weights *w = model_get_parts(m)->weights;
    const model_config *cfg = model_get_config(m);
    model_cost cost = {0};
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        add_layer(&cost, &w->layers[i], cfg, type);
    }
    add_matrix(&cost, &w->input_model_proj, 1);
    cost.step_bytes += (double)w->head.bytes;
    cost.head_flops = 2.0 * (double)tensor_len(&w->head);
    return cost;
}
