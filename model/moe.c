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

/* One row's place in the list of those that its experts compute. */
typedef struct moe_pair {
    int32_t expert, row;
    float weight;
} moe_pair;

/* Scratch, cut out of lc->work; T rows of a span, P pairs computed together. */
typedef struct moe_rows {
    float *logits;              /* [T, E] */
    moe_pair *pairs;            /* [T * K] */
    moe_pair *sorted;           /* [T * K] by expert, then row */
    int32_t *begin;             /* [E + 1]: where each expert's pairs begin */
    float *x, *y;               /* [P, H] */
    float *gate, *up;           /* [P, MI] */
    float *shared_at;           /* [T]: the shared expert's gate */
    float *s_gate, *s_up;       /* [T, SI] */
    float *s_y;                 /* [T, H] */
    linear_item *items, *downs; /* [2 P], [P + 1] */
    tensor *views;              /* [3 P]: matrices of experts */
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
    const size_t P = smaller(n_pairs, PAIRS);
    moe_rows m = {0};
    size_t used = 0;
    m.logits = take(base, &used, T * E * sizeof(float));
    m.pairs = take(base, &used, n_pairs * sizeof *m.pairs);
    m.sorted = take(base, &used, n_pairs * sizeof *m.sorted);
    m.begin = take(base, &used, (E + 1) * sizeof *m.begin);
    m.x = take(base, &used, P * H * sizeof(float));
    m.y = take(base, &used, P * H * sizeof(float));
    m.gate = take(base, &used, P * MI * sizeof(float));
    m.up = take(base, &used, P * MI * sizeof(float));
    m.items = take(base, &used, 2 * P * sizeof *m.items);
    m.downs = take(base, &used, (P + 1) * sizeof *m.downs);
    m.views = take(base, &used, 3 * P * sizeof *m.views);
    if (SI > 0) {
        m.shared_at = take(base, &used, T * sizeof(float));
        m.s_gate = take(base, &used, T * SI * sizeof(float));
        m.s_up = take(base, &used, T * SI * sizeof(float));
        m.s_y = take(base, &used, T * H * sizeof(float));
    }
    m.n_floats = used;
    return m;
}

size_t moe_work_floats(const model_config *cfg, size_t rows)
{
    return cfg->n_experts > 0 ? cut_work(NULL, cfg, rows).n_floats : 0;
}

/* What every row is multiplied with, whatever its experts: the router, and the shared expert's
 * gates and inputs. A row's experts depend on no other row, in prompts too: the router sees at most
 * NN_ROWS_EXACT rows at a time. */
static void project(const layer_ctx *lc, const moe_rows *m, const float *x, const moe_weights *w,
                    const row_span *s)
{
    const size_t H = (size_t)lc->cfg->hidden_size, E = (size_t)lc->cfg->n_experts;
    const bool shared = m->s_y != NULL;
    const linear_part wide[] = {{m->s_gate, &w->shared.gate, NULL}, {m->s_up, &w->shared.up, NULL}};
    for (size_t t = 0; t < s->n; t += NN_ROWS_EXACT) {
        const size_t n = smaller(s->n - t, NN_ROWS_EXACT);
        const linear_part parts[] = {{m->logits + t * E, &w->router, NULL},
                                     {m->shared_at + t, &w->shared_gate, NULL},
                                     wide[0],
                                     wide[1]}; /* the last two in decoding alone, where t is 0 */
        nn_linear_group(lc->c, parts, !shared ? 1 : s->exact ? 4 : 2, x + t * H, n);
    }
    if (shared && !s->exact) {
        nn_linear_many(lc->c, wide, 2, x, s->n);
    }
    if (shared) {
        nn_silu_mul(lc->c, m->s_gate, m->s_up, s->n * (size_t)lc->cfg->shared_expert_size);
    }
}

/* The experts of one row: the K largest logits (destroyed), of equal ones the first, and their
 * weights. */
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
    views[0] = expert_matrix(&w->gate, e);
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

/* Outputs of n sorted pairs to m->y: rows that decode, all experts in one fork. With `shared` the
 * shared expert's second half goes with them. */
static void compute_exact(const layer_ctx *lc, const moe_rows *m, const moe_pair *pairs, size_t n,
                          const float *x, const moe_weights *w, size_t shared_rows)
{
    const size_t H = (size_t)lc->cfg->hidden_size, MI = (size_t)lc->cfg->expert_size;
    size_t n_items = 0, n_downs = 0;
    for (size_t i = 0; i < n;) {
        const expert_rows r = next_expert(m, pairs, i, n, x, H, w);
        m->items[n_items++] = (linear_item){m->gate + i * MI, r.x, r.gate, r.n};
        m->items[n_items++] = (linear_item){m->up + i * MI, r.x, r.up, r.n};
        m->downs[n_downs++] = (linear_item){m->y + i * H, m->gate + i * MI, r.down, r.n};
        i += r.n;
    }
    if (shared_rows > 0) {
        m->downs[n_downs++] = (linear_item){m->s_y, m->s_gate, &w->shared.down, shared_rows};
    }
    nn_linear_each(lc->c, m->items, n_items);
    nn_silu_mul(lc->c, m->gate, m->up, n * MI);
    nn_linear_each(lc->c, m->downs, n_downs);
}

/* The same for rows of a prompt, expert by expert. */
static void compute_many(const layer_ctx *lc, const moe_rows *m, const moe_pair *pairs, size_t n,
                         const float *x, const moe_weights *w)
{
    const size_t H = (size_t)lc->cfg->hidden_size, MI = (size_t)lc->cfg->expert_size;
    for (size_t i = 0; i < n;) {
        const expert_rows r = next_expert(m, pairs, i, n, x, H, w);
        const linear_part in[] = {{m->gate + i * MI, r.gate, NULL}, {m->up + i * MI, r.up, NULL}};
        const linear_part back = {m->y + i * H, r.down, NULL};
        nn_linear_many(lc->c, in, 2, r.x, r.n);
        nn_silu_mul(lc->c, m->gate + i * MI, m->up + i * MI, r.n * MI);
        nn_linear_many(lc->c, &back, 1, m->gate + i * MI, r.n);
        i += r.n;
    }
}

/* out [T, H] = the shared expert behind its gate, or zeros. */
static void begin_sum(const moe_rows *m, float *out, size_t T, size_t H)
{
    for (size_t t = 0; t < T; t++) {
        const float g = m->s_y ? 1.0f / (1.0f + expf(-m->shared_at[t])) : 0.0f;
        for (size_t k = 0; k < H; k++) {
            out[t * H + k] = m->s_y ? g * m->s_y[t * H + k] : 0.0f;
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
static void run_span(const layer_ctx *lc, const moe_rows *m, float *out, const float *x, const moe_weights *w,
                     const row_span *s)
{
    const model_config *cfg = lc->cfg;
    const size_t H = (size_t)cfg->hidden_size, E = (size_t)cfg->n_experts, K = (size_t)cfg->n_experts_used;
    const size_t n_pairs = s->n * K;
    project(lc, m, x, w, s);
    if (m->s_y && !s->exact) {
        nn_linear_many(lc->c, &(linear_part){m->s_y, &w->shared.down, NULL}, 1, m->s_gate, s->n);
    }
    for (size_t t = 0; t < s->n; t++) {
        choose(cfg, m->pairs + t * K, m->logits + t * E, (int32_t)t);
    }
    sort_pairs(cfg, m, n_pairs);
    for (size_t first = 0; first < n_pairs; first += PAIRS) {
        const moe_pair *pairs = m->sorted + first;
        const size_t n = smaller(n_pairs - first, PAIRS);
        if (s->exact) {
            compute_exact(lc, m, pairs, n, x, w, first == 0 && m->s_y ? s->n : 0);
        } else {
            compute_many(lc, m, pairs, n, x, w);
        }
        if (first == 0) {
            begin_sum(m, out, s->n, H);
        }
        add_pairs(m, out, pairs, n, H);
    }
}

void moe_forward(const layer_ctx *lc, float *out, const float *x, const moe_weights *w)
{
    const size_t H = (size_t)lc->cfg->hidden_size;
    const moe_rows m = cut_work(lc->work, lc->cfg, lc->n_rows);
    for (size_t i = 0; i < lc->n_spans; i++) {
        const row_span *s = &lc->spans[i];
        run_span(lc, &m, out + s->first * H, x + s->first * H, w, s);
    }
}
