/* router: the experts of a row and their weights as a plain model has them: softmax and sigmoid, with groups of experts,
 * biases that count for the choice alone, scales of experts; of what is equal the first. */
#include <math.h>

#include "base/compiler.h"
#include "model/layers.h"
#include "tests/check.h"

enum { MOST = 16, ROW = 5 };

typedef struct scores {
    double score[MOST], choice[MOST], whole;
} scores;

static scores score(const model_config *cfg, const moe_weights *w, const float *logits)
{
    scores s = {.whole = 0};
    double largest = -INFINITY;
    for (int32_t e = 0; e < cfg->n_experts; e++) {
        largest = fmax(largest, (double)logits[e]);
    }
    for (int32_t e = 0; e < cfg->n_experts; e++) {
        const bool sigmoid = cfg->router == ROUTER_SIGMOID;
        s.score[e] = sigmoid ? 1 / (1 + exp(-(double)logits[e])) : exp((double)logits[e] - largest);
        s.choice[e] = s.score[e] + (sigmoid && w->router_bias ? (double)w->router_bias[e] : 0);
        s.whole += s.score[e];
    }
    s.whole = cfg->router == ROUTER_SIGMOID ? 1 : s.whole;
    return s;
}

/* The two best of a group, or the one that it has. */
static double of_group(const double *choice, int32_t n)
{
    double first = -INFINITY, second = -INFINITY;
    for (int32_t i = 0; i < n; i++) {
        if (choice[i] > first) {
            second = first;
            first = choice[i];
        } else if (choice[i] > second) {
            second = choice[i];
        }
    }
    return n == 1 ? first : first + second;
}

/* Those of groups that are not among the best count zero: groups are taken one after the other, the best first. */
static void leave_out(const model_config *cfg, double *choice)
{
    const int32_t n = cfg->n_experts / cfg->n_router_groups;
    bool in[MODEL_MAX_ROUTER_GROUPS] = {false};
    for (int32_t k = 0; k < cfg->n_router_groups_used; k++) {
        int32_t best = -1;
        for (int32_t g = 0; g < cfg->n_router_groups; g++) {
            if (!in[g] && (best < 0 || of_group(choice + g * n, n) > of_group(choice + best * n, n))) {
                best = g;
            }
        }
        in[best] = true;
    }
    for (int32_t e = 0; e < cfg->n_experts; e++) {
        choice[e] = in[e / n] ? choice[e] : 0;
    }
}

static void check(const model_config *cfg, const moe_weights *w, const float *given)
{
    float logits[MOST], choice[MOST];
    moe_pair pairs[MOST];
    scores s = score(cfg, w, given);
    double sum = 0, wanted[MOST];
    int32_t chosen[MOST];
    if (cfg->n_router_groups_used < cfg->n_router_groups) {
        leave_out(cfg, s.choice);
    }
    for (int32_t k = 0; k < cfg->n_experts_used; k++) {
        chosen[k] = 0;
        for (int32_t e = 1; e < cfg->n_experts; e++) {
            chosen[k] = s.choice[e] > s.choice[chosen[k]] ? e : chosen[k];
        }
        s.choice[chosen[k]] = -INFINITY;
        wanted[k] = s.score[chosen[k]];
        sum += wanted[k];
    }
    memcpy(logits, given, sizeof logits);
    router_choose(cfg, w, pairs, logits, choice, ROW);
    for (int32_t k = 0; k < cfg->n_experts_used; k++) {
        const double own = w->expert_scales ? (double)w->expert_scales[chosen[k]] : 1;
        CHECK_INT(pairs[k].expert, chosen[k]);
        CHECK_INT(pairs[k].row, ROW);
        CHECK_NEAR(pairs[k].weight,
                   wanted[k] * own * (double)cfg->routed_scale / (cfg->norm_expert_weights ? sum : s.whole),
                   1e-5 * own);
    }
}

static float next_random(void)
{
    static uint32_t x = 3;
    x = x * 1664525u + 1013904223u;
    return (float)(x >> 8) * 0x1p-22f - 2;
}

int main(void)
{
    static const struct {
        int32_t n_experts, n_used, n_groups, n_groups_used;
    } SIZES[] = {{1, 1, 1, 1}, {6, 2, 1, 1}, {8, 3, 4, 2},  {8, 8, 2, 2},
                 {8, 2, 2, 1}, {4, 2, 4, 2}, {16, 4, 4, 3}, {16, 6, 8, 4}};
    float bias[MOST], scales[MOST], logits[MOST];
    for (int round = 0; round < 200 && !check_failures; round++) {
        for (int i = 0; i < MOST; i++) {
            bias[i] = next_random();
            scales[i] = 1.5f + next_random() / 4;
            /* in every other round few values, so that many are equal */
            logits[i] = round % 2 ? 3 * next_random() : floorf(next_random());
            bias[i] = round % 4 == 2 ? 0.25f * floorf(bias[i]) : bias[i];
        }
        for (size_t i = 0; i < ARRAY_LEN(SIZES); i++) {
            for (int way = 0; way < 16; way++) {
                const model_config cfg = {.n_experts = SIZES[i].n_experts,
                                          .n_experts_used = SIZES[i].n_used,
                                          .n_router_groups = SIZES[i].n_groups,
                                          .n_router_groups_used = SIZES[i].n_groups_used,
                                          .router = way & 1 ? ROUTER_SIGMOID : ROUTER_SOFTMAX,
                                          .norm_expert_weights = (way & 2) != 0,
                                          .routed_scale = way & 2 ? 2.5f : 1};
                const moe_weights w = {.router_bias = way & 4 ? bias : NULL,
                                       .expert_scales = way & 8 ? scales : NULL};
                check(&cfg, &w, logits);
            }
        }
    }
    CHECK_DONE();
}
