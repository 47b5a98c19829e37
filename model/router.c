/* Which experts compute a row, and with what weights (docs/model.md B.6). */
#include <math.h>
#include <string.h>

#include "model/layers.h"

/* Scores of all experts in place of the logits, and what is chosen by. Returns what all scores are to
 * be divided by. */
static float score_softmax(float *scores, float *choice, int32_t E)
{
    float largest = -INFINITY, sum = 0;
    for (int32_t e = 0; e < E; e++) {
        largest = scores[e] > largest ? scores[e] : largest;
    }
    for (int32_t e = 0; e < E; e++) {
        scores[e] = expf(scores[e] - largest);
        sum += scores[e];
    }
    memcpy(choice, scores, (size_t)E * sizeof *choice);
    return sum;
}

static float score_sigmoid(float *scores, float *choice, const float *bias, int32_t E)
{
    for (int32_t e = 0; e < E; e++) {
        scores[e] = 1.0f / (1.0f + expf(-scores[e]));
        choice[e] = scores[e] + (bias ? bias[e] : 0.0f);
    }
    return 1.0f;
}

/* The number of the largest of n values. */
static int32_t best_of(const float *x, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++) {
        best = x[i] > x[best] ? i : best;
    }
    return best;
}

/* The sum of the two best of a group of n. */
static float group_score(const float *x, int32_t n)
{
    float first = -INFINITY, second = -INFINITY;
    for (int32_t i = 0; i < n; i++) {
        second = x[i] > first ? first : x[i] > second ? x[i] : second;
        first = x[i] > first ? x[i] : first;
    }
    return n > 1 ? first + second : first;
}

/* Experts outside of the best groups count zero. Groups are few: each is judged where it is asked
 * for, before any is changed. */
static void mask_groups(const model_config *cfg, float *choice)
{
    const int32_t G = cfg->n_router_groups, n = cfg->n_experts / G;
    bool out[MODEL_MAX_ROUTER_GROUPS] = {false};
    for (int32_t g = 0; g < G; g++) {
        const float own = group_score(choice + g * n, n);
        int32_t n_better = 0;
        for (int32_t k = 0; k < G; k++) {
            const float other = group_score(choice + k * n, n);
            n_better += other > own || (other == own && k < g);
        }
        out[g] = n_better >= cfg->n_router_groups_used;
    }
    for (int32_t e = 0; e < cfg->n_experts; e++) {
        choice[e] = out[e / n] ? 0.0f : choice[e];
    }
}

void router_choose(const model_config *cfg, const moe_weights *w, moe_pair *pairs, float *logits,
                   float *choice, int32_t row)
{
    const int32_t E = cfg->n_experts, K = cfg->n_experts_used;
    const float whole = cfg->router == ROUTER_SIGMOID ? score_sigmoid(logits, choice, w->router_bias, E)
                                                      : score_softmax(logits, choice, E);
    if (cfg->n_router_groups_used < cfg->n_router_groups) {
        mask_groups(cfg, choice);
    }
    float sum = 0;
    for (int32_t k = 0; k < K; k++) {
        const int32_t best = best_of(choice, E);
        pairs[k] = (moe_pair){best, row, logits[best]};
        sum += logits[best];
        choice[best] = -INFINITY;
    }
    const float scale = cfg->routed_scale / (cfg->norm_expert_weights ? sum + 1e-20f : whole);
    for (int32_t k = 0; k < K; k++) {
        pairs[k].weight *= w->expert_scales ? scale * w->expert_scales[pairs[k].expert] : scale;
    }
}
