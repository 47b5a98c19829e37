/* Mixture of experts (docs/model.md B.6): a router gives every row a few of many small feed-forward parts, whose outputs
 * are added with its weights; one more, where there is one, serves all rows behind a gate of its own.
 *
 * Rows are brought together by expert, so that the weights of an expert are read once for all its rows and those of the
 * others not at all. What a row gets is the sum over its experts in rising order of their numbers: it depends on no other
 * row. */
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "model/layers.h"

/* Pairs of a row and one of its experts that are computed together, at most. */
enum { PAIRS = 1024 };

/* One row's place in the list of those that its experts compute. */
typedef struct moe_pair {
    int32_t expert, row;
    float weight;
} moe_pair;

/* Scratch, cut out of lc->work; T rows of the batch, P pairs computed together. */
typedef struct moe_rows {
    float *logits;     /* [T, E] */
    float *gate_of_sh; /* [T] */
    moe_pair *pairs;   /* [T * K], of a span */
    moe_pair *sorted;  /* [T * K] by expert, then row */
    int32_t *begin;    /* [E + 1]: where each expert's pairs begin */
    float *x, *y;      /* [P, H]; or y [T, H]: the shared expert's output */
    float *gate, *up;  /* [P, MI]; or [T, SI] */
    size_t n_floats;   /* of all */
} moe_rows;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Cuts the scratch; with base NULL it only counts. */
static moe_rows cut_work(float *base, const model_config *cfg, size_t T)
{
    enum { PAIR_FLOATS = sizeof(moe_pair) / sizeof(float) };
    const size_t E = (size_t)cfg->n_experts, H = (size_t)cfg->hidden_size;
    const size_t n_pairs = T * (size_t)cfg->n_experts_used, P = n_pairs < PAIRS ? n_pairs : PAIRS;
    const size_t shared = T * (size_t)cfg->shared_expert_size, routed = P * (size_t)cfg->expert_size;
    const size_t sizes[] = {T * E,
                            T,
                            n_pairs * PAIR_FLOATS,
                            n_pairs * PAIR_FLOATS,
                            E + 1,
                            P * H,
                            larger(P * H, shared ? T * H : 0),
                            2 * larger(routed, shared)};
    size_t at[ARRAY_LEN(sizes)], used = 0;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        at[i] = used;
        used += (sizes[i] + 15) / 16 * 16;
    }
    moe_rows m = {.n_floats = used};
    if (base) {
        m.logits = base + at[0];
        m.gate_of_sh = base + at[1];
        m.pairs = (moe_pair *)(void *)(base + at[2]);
        m.sorted = (moe_pair *)(void *)(base + at[3]);
        m.begin = (int32_t *)(void *)(base + at[4]);
        m.x = base + at[5];
        m.y = base + at[6];
        m.gate = base + at[7];
        m.up = m.gate + larger(routed, shared);
    }
    return m;
}

size_t moe_work_floats(const model_config *cfg, size_t rows)
{
    return cfg->n_experts > 0 ? cut_work(NULL, cfg, rows).n_floats : 0;
}

/* out [T, n] = x * w^T in float32 for small w whose result decides: no row's depends on how many there are. */
static void decide(const layer_ctx *lc, float *out, const float *x, const tensor *w)
{
    const size_t H = (size_t)lc->cfg->hidden_size, n = w->dims[0];
    for (size_t t = 0; t < lc->n_rows; t += NN_ROWS_EXACT) {
        const size_t rows = lc->n_rows - t < NN_ROWS_EXACT ? lc->n_rows - t : NN_ROWS_EXACT;
        nn_linear(lc->c, out + t * n, x + t * H, w, NULL, rows);
    }
}

/* The experts of one row: the K largest logits (destroyed), of equal ones the first, and their weights. */
static void choose(const model_config *cfg, moe_pair *pairs, float *logits, int32_t row)
{
    const int32_t E = cfg->n_experts, K = cfg->n_experts_used;
    float largest = -INFINITY, sum = 0;
    for (int32_t e = 0; e < E; e++) {
        largest = logits[e] > largest ? logits[e] : largest;
    }
    for (int32_t e = 0; e < E; e++) {
        logits[e] = expf(logits[e] - largest);
        sum += logits[e];
    }
    float chosen = 0;
    for (int32_t k = 0; k < K; k++) {
        int32_t best = 0;
        for (int32_t e = 1; e < E; e++) {
            best = logits[e] > logits[best] ? e : best;
        }
        pairs[k] = (moe_pair){best, row, logits[best]};
        chosen += logits[best];
        logits[best] = -1;
    }
    const float scale = 1.0f / (cfg->norm_expert_weights ? chosen : sum);
    for (int32_t k = 0; k < K; k++) {
        pairs[k].weight *= scale;
    }
}

/* Sorts the pairs of a span by expert, then row; begin says where each expert's begin. */
static void sort_pairs(const model_config *cfg, const moe_rows *m, size_t n_pairs)
{
    const size_t E = (size_t)cfg->n_experts;
    memset(m->begin, 0, (E + 1) * sizeof *m->begin);
    for (size_t i = 0; i < n_pairs; i++) {
        m->begin[m->pairs[i].expert + 1]++;
    }
    for (size_t e = 0; e < E; e++) {
        m->begin[e + 1] += m->begin[e];
    }
    for (size_t i = 0; i < n_pairs; i++) {
        m->sorted[m->begin[m->pairs[i].expert]++] = m->pairs[i];
    }
    for (size_t e = E; e > 0; e--) { /* each has been moved to its end */
        m->begin[e] = m->begin[e - 1];
    }
    m->begin[0] = 0;
}

static void multiply(const layer_ctx *lc, const linear_part *parts, size_t n_parts, const float *x, size_t n,
                     bool exact)
{
    (exact ? nn_linear_group : nn_linear_many)(lc->c, parts, n_parts, x, n);
}

/* Pairs first .. first+n-1 of the sorted list: their share is added to out. */
static void run_pairs(const layer_ctx *lc, const moe_rows *m, float *out, const float *x,
                      const moe_weights *w, size_t first, size_t n, bool exact)
{
    const size_t H = (size_t)lc->cfg->hidden_size, MI = (size_t)lc->cfg->expert_size;
    const moe_pair *pairs = m->sorted + first;
    for (size_t i = 0; i < n; i++) {
        memcpy(m->x + i * H, x + (size_t)pairs[i].row * H, H * sizeof *x);
    }
    for (size_t i = 0, rows = 0; i < n; i += rows) {
        const size_t e = (size_t)pairs[i].expert;
        for (rows = 1; i + rows < n && pairs[i + rows].expert == pairs[i].expert;) {
            rows++;
        }
        const tensor gate = expert_matrix(&w->gate, e), up = expert_matrix(&w->up, e),
                     down = expert_matrix(&w->down, e);
        const linear_part in[] = {{m->gate + i * MI, &gate, NULL}, {m->up + i * MI, &up, NULL}};
        const linear_part back = {m->y + i * H, &down, NULL};
        multiply(lc, in, 2, m->x + i * H, rows, exact);
        nn_silu_mul(lc->c, m->gate + i * MI, m->up + i * MI, rows * MI);
        multiply(lc, &back, 1, m->gate + i * MI, rows, exact);
    }
    for (size_t i = 0; i < n; i++) {
        float *to = out + (size_t)pairs[i].row * H;
        for (size_t k = 0; k < H; k++) {
            to[k] += pairs[i].weight * m->y[i * H + k];
        }
    }
}

/* out = the shared expert behind its gate, or zeros. */
static void run_shared(const layer_ctx *lc, const moe_rows *m, float *out, const float *x,
                       const moe_weights *w)
{
    const size_t T = lc->n_rows, H = (size_t)lc->cfg->hidden_size;
    if (lc->cfg->shared_expert_size == 0) {
        memset(out, 0, T * H * sizeof *out);
        return;
    }
    layer_ctx inner = *lc;
    inner.work = m->gate;
    decide(lc, m->gate_of_sh, x, &w->shared_gate);
    ffn_forward(&inner, m->y, x, &w->shared);
    for (size_t t = 0; t < T; t++) {
        const float g = 1.0f / (1.0f + expf(-m->gate_of_sh[t]));
        for (size_t k = 0; k < H; k++) {
            out[t * H + k] = g * m->y[t * H + k];
        }
    }
}

void moe_forward(const layer_ctx *lc, float *out, const float *x, const moe_weights *w)
{
    const model_config *cfg = lc->cfg;
    const size_t H = (size_t)cfg->hidden_size, E = (size_t)cfg->n_experts, K = (size_t)cfg->n_experts_used;
    const moe_rows m = cut_work(lc->work, cfg, lc->n_rows);
    decide(lc, m.logits, x, &w->router);
    run_shared(lc, &m, out, x, w);
    for (size_t i = 0; i < lc->n_spans; i++) {
        const row_span *s = &lc->spans[i];
        const size_t n_pairs = s->n * K;
        for (size_t t = 0; t < s->n; t++) {
            choose(cfg, m.pairs + t * K, m.logits + (s->first + t) * E, (int32_t)t);
        }
        sort_pairs(cfg, &m, n_pairs);
        for (size_t first = 0; first < n_pairs; first += PAIRS) {
            const size_t n = n_pairs - first < PAIRS ? n_pairs - first : PAIRS;
            run_pairs(lc, &m, out + s->first * H, x + s->first * H, w, first, n, s->exact);
        }
    }
}
