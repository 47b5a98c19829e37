/* What a model takes by its sizes, on the checkpoint of tests/data/tiny. */
#include "model/cost.h"

#include "tests/model/tiny.h"

int main(void)
{
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
