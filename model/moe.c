/* Mixture of experts (docs/model.md B.6): a router gives every row a few of many small feed-forward
 * parts, whose outputs are added with its weights; one more, where there is one, serves all rows
 * behind a gate of its own.
 *
 * Rows are brought together by expert, so that the weights of an expert are read once for all its
 * rows and those of the others not at all. What a row gets is the sum over its experts in rising
 * order of their numbers: it depends on no other row. */
#include <math.h>
#include <string.h>

#include "model/layers.h"

/* Pairs of a row and one of its experts that are computed together, at most. */
enum { PAIRS = 1024 };

/* Scratch, cut out of lc->work; T rows of a span, P pairs computed together. */
typedef struct moe_rows {
    float *logits, *choice;     /* [T, E], [E] */
    moe_pair *pairs;            /* [T * K] */
    moe_pair *sorted;           /* [T * K] by expert, then row */
    int32_t *begin;             /* [E + 1]: where each expert's pairs begin */
    float *x, *y;               /* [P, L]: L is what experts read, H or less */
    float *gate, *up;           /* [P, MI] */
    float *shared_at;           /* [T]: the shared expert's gate */
    float *s_gate, *s_up;       /* [T, SI] */
    float *s_y;                 /* [T, H] */
    float *latent, *sums;       /* [T, L] if L is not H: rows as experts read them, what they add up to */
    float *l_y;                 /* [T, H]: the same for the layer */
    linear_item *items, *downs; /* [2 P], [P + 1] */
    tensor *views;              /* [3 P]: matrices of experts */
    linear_part *parts;         /* [3 P]: products of experts in prompts */
    linear_many *ins, *backs;   /* [P]: of those, what is computed together */
    size_t n_floats;            /* of all */
} moe_rows;

/* Takes n_bytes from a region that may be NULL (then only counts them). */
static void *take(float *base, size_t *used, size_t n_bytes)
{
    enum { UNIT = 64 };
    void *at = base ? base + *used : NULL;
    *used += (n_bytes + UNIT - 1) / UNIT * (UNIT / sizeof *base);
    return at;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Cuts the scratch; with base NULL it only counts. */
static moe_rows cut_work(float *base, const model_config *cfg, size_t T)
{
    const size_t E = (size_t)cfg->n_experts, H = (size_t)cfg->hidden_size, MI = (size_t)cfg->expert_size;
    const size_t SI = (size_t)cfg->shared_expert_size, n_pairs = T * (size_t)cfg->n_experts_used;
    const size_t P = smaller(n_pairs, PAIRS), L = model_config_expert_width(cfg);
    moe_rows m = {0};
    size_t used = 0;
    m.logits = take(base, &used, T * E * sizeof(float));
    m.choice = take(base, &used, E * sizeof(float));
    m.pairs = take(base, &used, n_pairs * sizeof *m.pairs);
    m.sorted = take(base, &used, n_pairs * sizeof *m.sorted);
    m.begin = take(base, &used, (E + 1) * sizeof *m.begin);
    m.x = take(base, &used, P * L * sizeof(float));
    m.y = take(base, &used, P * L * sizeof(float));
    m.gate = take(base, &used, P * MI * sizeof(float));
    m.up = take(base, &used, P * MI * sizeof(float));
    m.items = take(base, &used, 2 * P * sizeof *m.items);
    m.downs = take(base, &used, (P + 1) * sizeof *m.downs);
    m.views = take(base, &used, 3 * P * sizeof *m.views);
    m.parts = take(base, &used, 3 * P * sizeof *m.parts);
    m.ins = take(base, &used, P * sizeof *m.ins);
    m.backs = take(base, &used, P * sizeof *m.backs);
    if (SI > 0) {
        m.shared_at = take(base, &used, T * sizeof(float));
        m.s_gate = take(base, &used, T * SI * sizeof(float));
        m.s_up = take(base, &used, T * SI * sizeof(float));
        m.s_y = take(base, &used, T * H * sizeof(float));
    }
    if (cfg->expert_latent_size > 0) {
        m.latent = take(base, &used, T * L * sizeof(float));
        m.sums = take(base, &used, T * L * sizeof(float));
        m.l_y = take(base, &used, T * H * sizeof(float));
    }
    m.n_floats = used;
    return m;
}

size_t moe_work_floats(const model_config *cfg, size_t rows)
{
    return cfg->n_experts > 0 ? cut_work(NULL, cfg, rows).n_floats : 0;
}

/* What every row is multiplied with, whatever its experts (where the router reads rows of its own, it
 * is alone): the router, the shared expert's gates and
 * inputs, and the way into the experts' width. A row's experts depend on no other row, in prompts
 * too: the router sees at most NN_ROWS_EXACT rows at a time. */
static void project(const layer_ctx *lc, const moe_rows *m, const float *x, const moe_weights *w,
                    const row_span *s)
{
    const model_config *cfg = lc->cfg;
    const size_t H = (size_t)cfg->hidden_size, E = (size_t)cfg->n_experts;
    const bool shared = m->s_y != NULL;
    enum { MOST = 5 };
    linear_part parts[MOST] = {{m->logits, &w->router, w->logit_bias}};
    size_t n = 1;
    if (shared && !cfg->shared_expert_ungated) {
        parts[n++] = (linear_part){m->shared_at, &w->shared_gate, NULL};
    }
    const size_t n_exact = n;
    if (shared && feed_is_gated(cfg)) {
        parts[n++] = (linear_part){m->s_gate, &w->shared.gate, NULL};
    }
    if (shared) {
        parts[n++] = (linear_part){feed_is_gated(cfg) ? m->s_up : m->s_gate, &w->shared.up, NULL};
    }
    if (m->latent) {
        parts[n++] = (linear_part){m->latent, &w->latent_in, NULL};
    }
    for (size_t i = 0; s->exact && i < n; i += NN_LINEAR_PARTS) {
        nn_linear_group(lc->c, parts + i, smaller(n - i, NN_LINEAR_PARTS), x, s->n);
    }
    if (!s->exact && n > n_exact) {
        nn_linear_many(lc->c, parts + n_exact, n - n_exact, x, s->n);
    }
    for (size_t t = 0; !s->exact && t < s->n; t += NN_ROWS_EXACT) {
        const size_t n_rows = smaller(s->n - t, NN_ROWS_EXACT);
        parts[0].out = m->logits + t * E;
        parts[1].out = n_exact > 1 ? m->shared_at + t : parts[1].out;
        nn_linear_group(lc->c, parts, n_exact, x + t * H, n_rows);
    }
    if (shared) {
        feed_activate(lc, m->s_gate, m->s_up, s->n * (size_t)cfg->shared_expert_size);
    }
}

/* NOLINTBEGIN(clang-analyzer-core.*): what moe_rows points to is null only while its size is asked for. */

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

/* The rows of one expert among the pairs computed together: pairs first .. first+n-1. */
typedef struct expert_rows {
    size_t first, n;
    const tensor *gate, *up, *down;
    const float *x; /* [n, H] */
} expert_rows;

/* The expert whose pairs begin at `first` of n; its rows of x are brought together unless it has
 * one alone. */
static expert_rows next_expert(const moe_rows *m, const moe_pair *pairs, size_t first, size_t n,
                               const float *x, size_t H, const moe_weights *w)
{
    expert_rows r = {.first = first, .n = 1};
    while (first + r.n < n && pairs[first + r.n].expert == pairs[first].expert) {
        r.n++;
    }
    tensor *views = m->views + 3 * first;
    const size_t e = (size_t)pairs[first].expert;
    if (w->gate.parts) {
        views[0] = expert_matrix(&w->gate, e);
    }
    views[1] = expert_matrix(&w->up, e);
    views[2] = expert_matrix(&w->down, e);
    r.gate = &views[0];
    r.up = &views[1];
    r.down = &views[2];
    r.x = x + (size_t)pairs[first].row * H;
    for (size_t i = 0; r.n > 1 && i < r.n; i++) {
        memcpy(m->x + (first + i) * H, x + (size_t)pairs[first + i].row * H, H * sizeof *x);
    }
    if (r.n > 1) {
        r.x = m->x + first * H;
    }
    return r;
}

/* NOLINTEND(clang-analyzer-core.*) */

/* Adds each pair's row of bias [E, width] to its row of y; bias NULL: none. */
static void add_bias(float *y, const float *bias, const moe_pair *pairs, size_t n, size_t width)
{
    for (size_t i = 0; bias && i < n; i++) {
        const float *own = bias + (size_t)pairs[i].expert * width;
        for (size_t k = 0; k < width; k++) {
            y[i * width + k] += own[k];
        }
    }
}

/* What stands between the two products of n sorted pairs. */
static void activate(const layer_ctx *lc, const moe_rows *m, const moe_pair *pairs, size_t n,
                     const moe_weights *w)
{
    const size_t MI = (size_t)lc->cfg->expert_size;
    add_bias(m->gate, w->gate_bias, pairs, n, MI);
    add_bias(m->up, w->up_bias, pairs, n, MI);
    feed_activate(lc, m->gate, m->up, n * MI);
}

/* Outputs of n sorted pairs to m->y: rows that decode, all experts in one fork. With `shared` the
 * shared expert's second half goes with them. */
static void compute_exact(const layer_ctx *lc, const moe_rows *m, const moe_pair *pairs, size_t n,
                          const float *x, const moe_weights *w, size_t shared_rows)
{
    const size_t H = model_config_expert_width(lc->cfg), MI = (size_t)lc->cfg->expert_size;
    const bool gated = feed_is_gated(lc->cfg);
    size_t n_items = 0, n_downs = 0;
    for (size_t i = 0; i < n;) {
        const expert_rows r = next_expert(m, pairs, i, n, x, H, w);
        if (gated) {
            m->items[n_items++] = (linear_item){m->gate + i * MI, r.x, r.gate, r.n};
        }
        m->items[n_items++] = (linear_item){(gated ? m->up : m->gate) + i * MI, r.x, r.up, r.n};
        m->downs[n_downs++] = (linear_item){m->y + i * H, m->gate + i * MI, r.down, r.n};
        i += r.n;
    }
    if (shared_rows > 0) {
        m->downs[n_downs++] = (linear_item){m->s_y, m->s_gate, &w->shared.down, shared_rows};
    }
    nn_linear_each(lc->c, m->items, n_items);
    activate(lc, m, pairs, n, w);
    nn_linear_each(lc->c, m->downs, n_downs);
}

/* The same for rows of a prompt. */
static void compute_many(const layer_ctx *lc, const moe_rows *m, const moe_pair *pairs, size_t n,
                         const float *x, const moe_weights *w)
{
    const size_t H = model_config_expert_width(lc->cfg), MI = (size_t)lc->cfg->expert_size;
    const bool gated = feed_is_gated(lc->cfg);
    size_t n_experts = 0;
    for (size_t i = 0; i < n;) {
        const expert_rows r = next_expert(m, pairs, i, n, x, H, w);
        linear_part *in = m->parts + 3 * n_experts, *back = in + 2;
        in[0] = (linear_part){(gated ? m->up : m->gate) + i * MI, r.up, NULL};
        in[1] = (linear_part){m->gate + i * MI, r.gate, NULL};
        *back = (linear_part){m->y + i * H, r.down, NULL};
        m->ins[n_experts] = (linear_many){in, gated ? 2 : 1, r.x, r.n};
        m->backs[n_experts++] = (linear_many){back, 1, m->gate + i * MI, r.n};
        i += r.n;
    }
    nn_linear_many_each(lc->c, m->ins, n_experts);
    activate(lc, m, pairs, n, w);
    nn_linear_many_each(lc->c, m->backs, n_experts);
}

/* out [T, H] = the shared expert behind its gate, where it has one, or zeros. */
static void begin_sum(const layer_ctx *lc, const moe_rows *m, float *out, size_t T)
{
    const size_t H = (size_t)lc->cfg->hidden_size;
    if (!m->s_y) {
        memset(out, 0, T * H * sizeof *out);
        return;
    }
    for (size_t t = 0; t < T; t++) {
        const float g = lc->cfg->shared_expert_ungated ? 1.0f : 1.0f / (1.0f + expf(-m->shared_at[t]));
        for (size_t k = 0; k < H; k++) {
            out[t * H + k] = g * m->s_y[t * H + k];
        }
    }
}

/* Adds the outputs of n pairs to their rows. */
static void add_pairs(const moe_rows *m, float *out, const moe_pair *pairs, size_t n, size_t H)
{
    for (size_t i = 0; i < n; i++) {
        float *to = out + (size_t)pairs[i].row * H;
        for (size_t k = 0; k < H; k++) {
            to[k] += pairs[i].weight * m->y[i * H + k];
        }
    }
}

/* The rows of one span; out and x begin at its first. */
static void run_span(const layer_ctx *lc, const moe_rows *m, float *out, const float *x,
                     const float *router_x, const moe_weights *w, const row_span *s)
{
    const model_config *cfg = lc->cfg;
    const size_t H = model_config_expert_width(cfg), E = (size_t)cfg->n_experts,
                 K = (size_t)cfg->n_experts_used, n_pairs = s->n * K;
    float *sums = m->latent ? m->sums : out;
    project(lc, m, router_x, w, s);
    if (m->s_y && !s->exact) {
        nn_linear_many(lc->c, &(linear_part){m->s_y, &w->shared.down, NULL}, 1, m->s_gate, s->n);
    }
    for (size_t t = 0; t < s->n; t++) {
        router_choose(cfg, w, m->pairs + t * K, m->logits + t * E, m->choice, (int32_t)t);
    }
    sort_pairs(cfg, m, n_pairs);
    for (size_t first = 0; first < n_pairs; first += PAIRS) {
        const moe_pair *pairs = m->sorted + first;
        const size_t n = smaller(n_pairs - first, PAIRS);
        if (s->exact) {
            compute_exact(lc, m, pairs, n, m->latent ? m->latent : x, w, first == 0 && m->s_y ? s->n : 0);
        } else {
            compute_many(lc, m, pairs, n, m->latent ? m->latent : x, w);
        }
        if (first == 0) {
            begin_sum(lc, m, out, s->n);
        }
        if (first == 0 && m->latent) {
            memset(sums, 0, s->n * H * sizeof *sums);
        }
        add_bias(m->y, w->down_bias, pairs, n, H);
        add_pairs(m, sums, pairs, n, H);
    }
    if (m->latent) {
        const linear_part back = {m->l_y, &w->latent_out, NULL};
        (s->exact ? nn_linear_group : nn_linear_many)(lc->c, &back, 1, m->sums, s->n);
        nn_add(lc->c, out, m->l_y, s->n * (size_t)cfg->hidden_size);
    }
}

void moe_forward(const layer_ctx *lc, float *out, const float *x, const float *router_x, const moe_weights *w)
{
    const size_t H = (size_t)lc->cfg->hidden_size;
    const moe_rows m = cut_work(lc->work, lc->cfg, lc->n_rows);
    for (size_t i = 0; i < lc->n_spans; i++) {
        const row_span *s = &lc->spans[i];
        run_span(lc, &m, out + s->first * H, x + s->first * H, router_x + s->first * H, w, s);
    }
}
