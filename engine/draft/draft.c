#include "engine/draft/draft.h"

#include <stdlib.h>
#include <string.h>

/* ---- the drafter ---- */

bool drafter_init(drafter *d, int32_t hidden_size)
{
    *d = (drafter){.hidden = calloc((size_t)hidden_size * DRAFT_PENDING_MAX, sizeof(float))};
    return d->hidden != NULL;
}

void drafter_deinit(drafter *d)
{
    free(d->hidden);
    *d = (drafter){0};
}

void drafter_reset(drafter *d)
{
    d->n_pending = 0;
    d->n_true = 0;
}

/* Head entries that drafting on its own output left behind are replaced by true ones. */
static void forget_guesses(drafter *d, seq_state *seq)
{
    if (mtp_len(seq) > d->n_true) {
        mtp_truncate(seq, d->n_true);
    }
}

err_code drafter_prompt(drafter *d, const draft_context *ctx, seq_state *seq, const float *hidden,
                        const int32_t *next_tokens, const position *positions, int32_t n, err_detail *detail)
{
    const mtp_input in = {
        .seq = seq, .hidden = hidden, .next_tokens = next_tokens, .positions = positions, .n = n};
    err_code err = mtp_forward(ctx->model, ctx->compute, ctx->scratch, &in, 0, detail);
    if (err == ERR_OK) {
        d->n_true += n;
    }
    return err;
}

/* Runs the head over the pending rows; n_logits 0 or 1. */
static err_code enter_pending(drafter *d, const draft_context *ctx, seq_state *seq, int32_t n_logits,
                              err_detail *detail)
{
    position positions[DRAFT_PENDING_MAX];
    forget_guesses(d, seq);
    for (int32_t i = 0; i < d->n_pending; i++) {
        int32_t p = d->n_true + i + seq_state_rope_delta(seq);
        positions[i] = (position){p, p, p};
    }
    const mtp_input in = {
        .seq = seq, .hidden = d->hidden, .next_tokens = d->tokens, .positions = positions, .n = d->n_pending};
    err_code err = mtp_forward(ctx->model, ctx->compute, ctx->scratch, &in, n_logits, detail);
    if (err == ERR_OK) {
        d->n_true += d->n_pending;
        d->n_pending = 0;
    }
    return err;
}

void drafter_resume(drafter *d, seq_state *seq, int32_t n)
{
    d->n_pending = 0;
    d->n_true = n - 1 < mtp_len(seq) ? n - 1 : mtp_len(seq);
    mtp_truncate(seq, d->n_true);
}

err_code drafter_flush(drafter *d, const draft_context *ctx, seq_state *seq, err_detail *detail)
{
    forget_guesses(d, seq);
    return d->n_pending ? enter_pending(d, ctx, seq, 0, detail) : ERR_OK;
}

err_code drafter_note(drafter *d, const draft_context *ctx, seq_state *seq, const float *hidden,
                      int32_t token, err_detail *detail)
{
    const size_t width = (size_t)model_get_config(ctx->model)->hidden_size;
    if (d->n_pending == DRAFT_PENDING_MAX) {
        err_code err = enter_pending(d, ctx, seq, 0, detail);
        if (err != ERR_OK) {
            return err;
        }
    }
    memcpy(d->hidden + (size_t)d->n_pending * width, hidden, width * sizeof *hidden);
    d->tokens[d->n_pending++] = token;
    return ERR_OK;
}

err_code drafter_draft(drafter *d, const draft_context *ctx, seq_state *seq, sampler *s, int32_t k,
                       bool stops, err_detail *detail)
{
    d->n_drafts = 0;
    d->ends = false;
    if (k == 0 || d->n_pending == 0) {
        return ERR_OK;
    }
    err_code err = enter_pending(d, ctx, seq, 1, detail);
    while (err == ERR_OK) {
        int32_t id = sampler_pick(s, mtp_logits(ctx->scratch, 0), d->n_drafts);
        d->drafts[d->n_drafts++] = id;
        d->ends = stops && model_config_is_stop(model_get_config(ctx->model), id);
        if (d->n_drafts == k || d->ends) {
            break;
        }
        int32_t p = mtp_len(seq) + seq_state_rope_delta(seq);
        const position at = {p, p, p};
        const mtp_input in = {.seq = seq,
                              .hidden = mtp_hidden(ctx->scratch, 0),
                              .next_tokens = &d->drafts[d->n_drafts - 1],
                              .positions = &at,
                              .n = 1};
        err = mtp_forward(ctx->model, ctx->compute, ctx->scratch, &in, 1, detail);
    }
    return err;
}

/* ---- the policy ---- */

enum { PROBE_FIRST = 16, PROBE_LAST = 512, PROBE_NEAR = 32, SEEN_ENOUGH = 9 };
/* A deeper draft must promise that much more: estimates are noisy, and an answer that ends wastes
 * what lies behind. */
#define WORTH_MORE 1.05

/* What a step may cost before it was measured: drafts look cheap, so that each depth is tried. */
static double expected_cost(const draft_policy *p, int32_t n_running, int32_t k)
{
    const double *cost = p->cost_ms[n_running];
    for (int32_t j = k; j >= 0; j--) {
        if (cost[j] > 0.0) {
            return cost[j] * (1.0 + 0.02 * (k - j));
        }
    }
    return 1.0;
}

static double expected_right(const draft_policy *p, int32_t j)
{
    return p->right[j] > 0.0 ? p->right[j] : 0.8;
}

/* The depth itself, or now and then one more or one less, so that what is known of those does not
 * grow old: a first step that was slow by chance would rule its depth out for ever. */
static int32_t or_neighbour(draft_policy *p, int32_t best, int32_t k_max)
{
    p->drafted_steps++;
    if (p->drafted_steps % PROBE_NEAR != 0) {
        return best;
    }
    return p->drafted_steps / PROBE_NEAR % 4 == 1 ? best - 1 : best < k_max ? best + 1 : best;
}

int32_t draft_policy_depth(draft_policy *p, int32_t n_running, int32_t k_max)
{
    if (p->cost_ms[n_running][0] == 0.0) {
        return 0; /* what the others are compared with */
    }
    int32_t best = 0;
    double best_rate = 0.0, tokens = 1.0, chance = 1.0;
    for (int32_t k = 0; k <= k_max && k <= DRAFT_MAX; k++) {
        if (k > 0) {
            chance *= expected_right(p, k - 1);
            tokens += chance;
        }
        double rate = tokens / expected_cost(p, n_running, k);
        if (rate > best_rate * WORTH_MORE) {
            best_rate = rate;
            best = k;
        }
    }
    if (best > 0 || k_max == 0) {
        p->parked_steps = 0;
        p->probe_interval = PROBE_FIRST;
        return k_max > 0 ? or_neighbour(p, best, k_max < DRAFT_MAX ? k_max : DRAFT_MAX) : best;
    }
    if (p->probe_interval < PROBE_FIRST) {
        p->probe_interval = PROBE_FIRST;
    }
    if (++p->parked_steps < p->probe_interval) {
        return 0;
    }
    p->parked_steps = 0;
    p->probe_interval = p->probe_interval < PROBE_LAST ? p->probe_interval * 2 : PROBE_LAST;
    return 1;
}

double draft_policy_promise(const draft_policy *p, int32_t n_running, int32_t k, double *tokens,
                            double *chance)
{
    *tokens = *chance = 1.0;
    for (int32_t j = 0; j < k; j++) {
        *chance *= expected_right(p, j);
        *tokens += *chance;
    }
    return expected_cost(p, n_running, k);
}

/* A new value counts 30 %. Chance makes steps slower, hardly ever faster: a higher value counts as
 * 25 % higher at most, a lower one in full. */
void draft_average_cost(double *average, double value)
{
    if (*average == 0.0) {
        *average = value;
        return;
    }
    double high = *average * 1.25;
    *average +=
        value < *average ? 0.5 * (value - *average) : 0.3 * ((value > high ? high : value) - *average);
}

void draft_policy_cost(draft_policy *p, int32_t n_running, int32_t k, double ms)
{
    draft_average_cost(&p->cost_ms[n_running][k], ms);
}

void draft_policy_result(draft_policy *p, int32_t k, int32_t n_right)
{
    for (int32_t j = 0; j < k && j <= n_right; j++) {
        p->n_seen[j] += p->n_seen[j] < SEEN_ENOUGH;
        double weight = 1.0 / (1.0 + p->n_seen[j]); /* the first guess is soon forgotten */
        double was = expected_right(p, j), now = was + weight * ((j < n_right ? 1.0 : 0.0) - was);
        p->right[j] = now < 0.01 ? 0.01 : now;
    }
}
