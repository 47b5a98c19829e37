/* What a model takes by its sizes, on the checkpoint of tests/data/tiny; and that no more is multiplied than that. */
#include "model/cost.h"

#include "tests/model/tiny.h"

/* Rows of a prompt and single ones take the products of the sizes, once each. */
static void check_products(const char *name, bool fast)
{
    enum { N = 40 };
    static int32_t ids[N];
    static char dir[4096];
    snprintf(dir, sizeof dir, "%s", check_data(name));
    tiny t = tiny_open_as(
        &(tiny_options){.dir = dir, .n_threads = 1, .cpu_mask = ~0u, .type = KV_F32, .fast = fast});
    const model_cost cost = model_costs(t.m, KV_F32);
    const model_config *cfg = model_get_config(t.m);
    double windows = 0; /* layer_flops counts what attention within a window takes */
    for (int32_t i = 0; i < cfg->n_layers; i++) {
        const layer_kind kind = cfg->layers[i];
        windows += layer_is_attention(kind)
                       ? 4.0 * cfg->n_heads * model_config_attention(cfg, kind)->head_dim *
                             model_config_attention(cfg, kind)->window
                       : 0;
    }
    for (int32_t i = 0; i < N; i++) {
        ids[i] = 5 + i;
    }
    seq_state *s = tiny_seq(&t);
    const int32_t rows[] = {N, 1, 3};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const uint64_t before = nn_products(t.c);
        tiny_run(&t, s, ids, rows[i], i > 0, false);
        const double did = 2.0 * (double)(nn_products(t.c) - before);
        CHECK_NEAR(did, rows[i] * (cost.layer_flops - windows) + cost.head_flops, 0);
    }
    seq_state_destroy(s);
    tiny_close(&t);
}

int main(void)
{
    static const char *const names[] = {"tiny",
                                        "tiny_moe",
                                        "tiny_gpt_oss",
                                        "tiny_gemma4",
                                        "families/glm4_moe",
                                        "families/nemotron_h_latent",
                                        "families/minimax_m2"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        check_products(names[i], false);
        check_products(names[i], true);
    }
    tiny t = tiny_open(1, ~0u, KV_F32);
    const model_config *cfg = model_get_config(t.m);
    const model_cost cost = model_costs(t.m, KV_F32), half = model_costs(t.m, KV_F16);
    const double n_attention = cfg->n_layers - cfg->n_recurrent_layers;
    /* a state in and out; three rows of inputs in and out and four weights of the convolution */
    const double width = 2.0 * cfg->delta_n_k * cfg->delta_dk + cfg->delta_n_v * cfg->delta_dv;
    const double values = 2.0 * cfg->delta_n_v * cfg->delta_dk * cfg->delta_dv + 10.0 * width;
    const double state = 4.0 * values * cfg->n_recurrent_layers;
    CHECK(cost.head_flops == 2.0 * TINY_V * TINY_H);
    CHECK(cost.slot_flops == 4.0 * cfg->n_heads * cfg->full.head_dim * n_attention);
    CHECK(cost.slot_bytes == 8.0 * cfg->full.n_kv_heads * cfg->full.head_dim * n_attention);
    CHECK(half.slot_bytes == cost.slot_bytes / 2);
    CHECK(cost.layer_flops > 0 && cost.layer_flops / 2 < (double)model_n_params(t.m));
    /* floats: two or four bytes for every multiplication */
    const double matrices = (cost.layer_flops + cost.head_flops) / 2, stored = cost.step_bytes - state;
    CHECK(stored == 2 * matrices || stored == 4 * matrices);
    tiny_close(&t);
    CHECK_DONE();
}
