/* GatedDeltaNet: convolution, gates, and the gated delta rule (arXiv 2412.06464) token by token or
 * in chunks.
 *
 * Value heads are independent, so a task is a head (recurrent: columns of a head; the columns of a
 * state do not mix either). */
#include "compute/nn.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compute/context.h"

enum { CHUNK = NN_DELTA_BLOCK, COLUMNS = 128, ROW_GROUP = 32, CHANNELS = 64, CONV_VALUES = 3072 };

/* Rows of a triangular matrix that are multiplied up to their last column together. */
enum { TRIANGLE_ROWS = 16 };

/* ---- convolution ---- */

typedef struct conv_job {
    const ops *ops;
    const conv_run *runs;
    const float *w, *bias;
    size_t C, u_stride;
    size_t channels; /* of a task */
    size_t n_tasks;  /* of a sequence */
} conv_job;

/* Moves columns c0 .. c0+n-1 of tail [3, C] on by T rows of u: in rising order, for a short call moves rows of
 * the tail down, and none is read after it was written. */
static void move_tail(float *tail, const float *u, size_t T, size_t u_stride, size_t c0, size_t n, size_t C)
{
    for (size_t i = 0; i < 3; i++) {
        const float *row = T + i < 3 ? tail + (T + i) * C : u + (T + i - 3) * u_stride;
        memmove(tail + i * C + c0, row + c0, n * sizeof(float));
    }
}

static void conv_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    const conv_job *job = ctx;
    const conv_run *run = &job->runs[task / job->n_tasks];
    size_t c0 = task % job->n_tasks * job->channels, n = min_size(job->channels, job->C - c0);
    job->ops->conv_silu(run->out + c0, job->C, run->u + c0, job->u_stride, run->tail + c0, job->C,
                        job->w + c0 * 4, job->bias ? job->bias + c0 : NULL, run->T, n);
    move_tail(run->tail, run->u, run->T, job->u_stride, c0, n, job->C);
}

void nn_conv_silu_each(compute *c, const conv_run *runs, size_t n, const float *w, const float *bias,
                       size_t C, size_t u_stride)
{
    size_t T = 0;
    for (size_t i = 0; i < n; i++) {
        T = max_size(T, runs[i].T);
    }
    /* Enough values in a task to pay for handing it over. */
    size_t blocks = T ? CONV_VALUES / T / CHANNELS : 0, channels = CHANNELS * (blocks ? blocks : 1);
    conv_job job = {c->ops, runs, w, bias, C, u_stride, channels, (C + channels - 1) / channels};
    pool_run(c->pool, conv_task, &job, n * job.n_tasks);
}

void nn_conv_silu(compute *c, float *out, float *tail, const float *u, const float *w, const float *bias,
                  size_t T, size_t C, size_t u_stride)
{
    nn_conv_silu_each(c, &(conv_run){out, tail, u, T}, 1, w, bias, C, u_stride);
}

/* ---- gates ---- */

typedef struct gates_args {
    float *beta, *g;
    const float *b, *a, *A_log, *dt_bias;
    size_t H;
} gates_args;

/* log(1 + e^x); beyond 20 the reference returns x itself. */
static float softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}

/* A few numbers a token: libm, for every instruction set alike. */
static void gates_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    (void)o;
    const gates_args *a = args;
    for (size_t t = begin; t < end; t++) {
        for (size_t h = 0; h < a->H; h++) {
            size_t i = t * a->H + h;
            a->beta[i] = 1.0f / (1.0f + expf(-a->b[i]));
            a->g[i] = -expf(a->A_log[h]) * softplus(a->a[i] + a->dt_bias[h]);
        }
    }
}

void nn_delta_gates(compute *c, float *beta, float *g, const float *b, const float *a, const float *A_log,
                    const float *dt_bias, size_t T, size_t H)
{
    gates_args args = {beta, g, b, a, A_log, dt_bias, H};
    nn_run_rows(c, gates_rows, &args, T, H * 16);
}

/* ---- the operator ---- */

/* One sequence. */
typedef struct delta_job {
    compute *c;
    delta_run run;     /* conv: of the recurrent form alone */
    delta_source rows; /* of the chunked form alone */
    delta_shape s;
} delta_job;

static void check_shape(const delta_shape *s)
{
    assert(s->n_k > 0 && s->n_v % s->n_k == 0);
    assert(s->dk <= NN_DELTA_HEAD_MAX && s->dv <= NN_DELTA_HEAD_MAX);
    (void)s;
}

static size_t conv_width(const delta_shape *s)
{
    return 2 * s->n_k * s->dk + s->n_v * s->dv;
}

/* The column of value head h's queries; its keys follow n_k * dk columns later. */
static size_t query_column(const delta_shape *s, size_t h)
{
    return (s->tiled ? h % s->n_k : h / (s->n_v / s->n_k)) * s->dk;
}

/* The column of value head h's values. */
static size_t value_column(const delta_shape *s, size_t h)
{
    return 2 * s->n_k * s->dk + h * s->dv;
}

/* n rows of queries and keys, `stride` floats apart, normalised to q and k [n, dk], which they may be. */
static void normalize_qk(const ops *o, float *q, float *k, const float *queries, const float *keys,
                         size_t stride, size_t n, size_t dk)
{
    const float scale = 1.0f / sqrtf((float)dk);
    for (size_t r = 0; r < n; r++) {
        o->l2norm(q + r * dk, queries + r * stride, scale, dk);
        o->l2norm(k + r * dk, keys + r * stride, 1.0f, dk);
    }
}

/* Several sequences, token by token. A task takes some heads of one: while it works on a state it asks for the
 * next one, so that memory is never idle. */
typedef struct recurrent_job {
    compute *c;
    const delta_run *runs;
    delta_shape s;
    size_t heads;   /* of a task */
    size_t n_tasks; /* of a sequence */
} recurrent_job;

/* Columns j0 .. j0+n-1 of head h. next: the state behind, or NULL. */
static void recurrent_head(const delta_job *job, size_t thread, size_t h, size_t j0, const float *next)
{
    const delta_shape *s = &job->s;
    const delta_run *run = &job->run;
    const size_t n = min_size(COLUMNS, s->dv - j0), at = h * s->dk * s->dv + j0;
    float *q = nn_scratch(job->c, thread), *k = q + ROW_GROUP * s->dk;
    const size_t width = conv_width(s);
    const float *queries = run->conv + query_column(s, h), *S = run->state + at;
    const float *values = run->conv + value_column(s, h) + j0;
    for (size_t t = 0; t < run->T; t++) {
        float *to = (run->states ? run->states[t] : run->state) + at;
        size_t r = t % ROW_GROUP;
        if (r == 0) {
            normalize_qk(job->c->ops, q, k, queries + t * width, queries + t * width + s->n_k * s->dk, width,
                         min_size(ROW_GROUP, run->T - t), s->dk);
        }
        job->c->ops->delta_step(run->out + (t * s->n_v + h) * s->dv + j0, to, S, s->dv, q + r * s->dk,
                                k + r * s->dk, values + t * width, run->beta[t * s->n_v + h],
                                expf(run->g[t * s->n_v + h]), s->dk, n, t + 1 < run->T ? NULL : next);
        S = to;
    }
}

static void recurrent_task(void *ctx, size_t task, size_t thread)
{
    const recurrent_job *all = ctx;
    const delta_shape *s = &all->s;
    const delta_job job = {.c = all->c, .run = all->runs[task / all->n_tasks], .s = *s};
    const size_t h0 = task % all->n_tasks * all->heads, h1 = min_size(h0 + all->heads, s->n_v);
    for (size_t h = h0; h < h1; h++) {
        for (size_t j = 0; j < s->dv; j += COLUMNS) {
            const bool last = h + 1 == h1;
            recurrent_head(&job, thread, h, j, last ? NULL : job.run.state + (h + 1) * s->dk * s->dv + j);
        }
    }
}

void nn_delta_recurrent_each(compute *c, const delta_run *runs, size_t n, const delta_shape *s)
{
    enum { HEADS = 4 };
    check_shape(s);
    const size_t share = n * s->n_v / (2 * compute_n_threads(c)),
                 heads = share < HEADS ? max_size(share, 1) : HEADS;
    recurrent_job job = {
        .c = c, .runs = runs, .s = *s, .heads = heads, .n_tasks = (s->n_v + heads - 1) / heads};
    pool_run(c->pool, recurrent_task, &job, n * job.n_tasks);
}

void nn_delta_recurrent(compute *c, float *out, float *state, float *const *states, const float *conv,
                        const float *beta, const float *g, const delta_shape *s, size_t T)
{
    nn_delta_recurrent_each(c, &(delta_run){out, state, states, conv, beta, g, T}, 1, s);
}

/* Matrices of one chunk of n rows in scratch; names as in the design's chunked form. */
typedef struct chunk {
    float *q, *k, *k_turned; /* [CHUNK, dk], [CHUNK, dk], [dk, CHUNK] */
    float *k_decayed;        /* [CHUNK, dk]: -beta exp(G) K */
    float *u;                /* [CHUNK, dv]: beta V, then N */
    float *m, *a;            /* [CHUNK, CHUNK]: minus the strict lower part of M; A */
    float decay[CHUNK];      /* exp(G_r) */
    double sum[CHUNK];       /* G_r; double, because differences of large sums are taken */
    float beta[CHUNK];
} chunk;

static_assert((4 * CHUNK * NN_DELTA_HEAD_MAX + CHUNK * NN_DELTA_HEAD_MAX + 2 * CHUNK * CHUNK) <=
                  SCRATCH_FLOATS,
              "a chunk fits the scratch");

static void place_chunk(chunk *k, float *scratch, const delta_shape *s)
{
    k->q = scratch;
    k->k = k->q + CHUNK * s->dk;
    k->k_turned = k->k + CHUNK * s->dk;
    k->k_decayed = k->k_turned + CHUNK * s->dk;
    k->u = k->k_decayed + CHUNK * s->dk;
    k->m = k->u + CHUNK * s->dv;
    k->a = k->m + CHUNK * CHUNK;
}

/* Rows t0 .. t0+n-1 of n_columns columns from `column` on behind their convolution, to `to` [n, n_columns]. */
static void convolve(const delta_job *job, float *to, size_t column, size_t n_columns, size_t t0, size_t n)
{
    const size_t width = conv_width(&job->s);
    const float *u = job->rows.u + t0 * width, *before = t0 ? u - 3 * width : job->rows.tail;
    job->c->ops->conv_silu(to, n_columns, u + column, width, before + column, width, job->rows.w + column * 4,
                           NULL, n, n_columns);
}

/* Loads rows t0 .. t0+n-1 of head h: q, k, gates, and beta V and -beta exp(G) K. */
static void load_chunk(const delta_job *job, chunk *ch, size_t h, size_t t0, size_t n)
{
    const delta_shape *s = &job->s;
    const ops *o = job->c->ops;
    convolve(job, ch->q, query_column(s, h), s->dk, t0, n);
    convolve(job, ch->k, query_column(s, h) + s->n_k * s->dk, s->dk, t0, n);
    convolve(job, ch->u, value_column(s, h), s->dv, t0, n);
    normalize_qk(o, ch->q, ch->k, ch->q, ch->k, s->dk, n, s->dk);
    double sum = 0;
    for (size_t r = 0; r < n; r++) {
        size_t at = (t0 + r) * s->n_v + h;
        sum += (double)job->run.g[at];
        ch->sum[r] = sum;
        ch->decay[r] = expf((float)sum);
        ch->beta[r] = job->run.beta[at];
        o->scale(ch->u + r * s->dv, ch->beta[r], s->dv);
        memcpy(ch->k_decayed + r * s->dk, ch->k + r * s->dk, s->dk * sizeof(float));
        o->scale(ch->k_decayed + r * s->dk, -ch->beta[r] * ch->decay[r], s->dk);
    }
}

/* m = -beta_r (k_r . k_s) D[r][s] below the diagonal; a = (q_r . k_s) D[r][s] up to it; zero above.
 * TRAP: D is exp of a difference; exp(-G) alone overflows. */
static void decayed_products(const delta_job *job, chunk *ch, size_t n)
{
    const ops *o = job->c->ops;
    size_t dk = job->s.dk;
    for (size_t r = 0; r < n; r += TRIANGLE_ROWS) {
        const size_t rows = min_size(TRIANGLE_ROWS, n - r);
        o->dot_rows[DTYPE_F32](ch->m + r * CHUNK, CHUNK, ch->k + r * dk, dk, rows, ch->k, dk, r + rows, dk);
        o->dot_rows[DTYPE_F32](ch->a + r * CHUNK, CHUNK, ch->q + r * dk, dk, rows, ch->k, dk, r + rows, dk);
    }
    for (size_t r = 0; r < n; r++) {
        float *m = ch->m + r * CHUNK, *a = ch->a + r * CHUNK, d[CHUNK];
        for (size_t i = 0; i <= r; i++) {
            d[i] = (float)(ch->sum[r] - ch->sum[i]);
        }
        o->exp(d, r + 1);
        for (size_t i = 0; i <= r; i++) {
            m[i] *= -ch->beta[r] * d[i];
            a[i] *= d[i];
        }
        m[r] = 0;
        memset(a + r + 1, 0, (n - r - 1) * sizeof *a);
        memset(m + r + 1, 0, (n - r - 1) * sizeof *m);
    }
}

/* Solves M X = B in place (X holds B), M unit lower triangular, m its negated strict lower part:
 * blocks of BLOCK rows take the earlier rows as a product, then one another. */
static void solve_lower(const ops *o, float *x, const float *m, size_t n, size_t width)
{
    enum { BLOCK = 8 };
    for (size_t r0 = 0; r0 < n; r0 += BLOCK) {
        size_t rows = min_size(BLOCK, n - r0);
        o->mul_add(x + r0 * width, width, m + r0 * CHUNK, CHUNK, x, width, rows, r0, width);
        for (size_t r = r0 + 1; r < r0 + rows; r++) {
            o->mul_add(x + r * width, width, m + r * CHUNK + r0, CHUNK, x + r0 * width, width, 1, r - r0,
                       width);
        }
    }
}

/* One chunk of n rows: fills out and moves the state S on. */
static void run_chunk(const delta_job *job, chunk *ch, float *S, size_t h, size_t t0, size_t n)
{
    const delta_shape *s = &job->s;
    const ops *o = job->c->ops;
    size_t out_stride = s->n_v * s->dv;
    float *out = job->run.out + (t0 * s->n_v + h) * s->dv;

    load_chunk(job, ch, h, t0, n);
    decayed_products(job, ch, n);
    o->mul_add(ch->u, s->dv, ch->k_decayed, s->dk, S, s->dv, n, s->dk, s->dv);
    solve_lower(o, ch->u, ch->m, n, s->dv); /* N: U - W S without W */

    for (size_t r = 0; r < n; r++) {
        o->scale(ch->q + r * s->dk, ch->decay[r], s->dk);
        o->scale(ch->k + r * s->dk, expf((float)(ch->sum[n - 1] - ch->sum[r])), s->dk);
    }
    o->mul(out, out_stride, ch->q, s->dk, S, s->dv, n, s->dk, s->dv); /* exp(G) Q S */
    for (size_t r = 0; r < n; r += TRIANGLE_ROWS) {                   /* + A N */
        const size_t rows = min_size(TRIANGLE_ROWS, n - r);
        o->mul_add(out + r * out_stride, out_stride, ch->a + r * CHUNK, CHUNK, ch->u, s->dv, rows, r + rows,
                   s->dv);
    }

    o->scale(S, ch->decay[n - 1], s->dk * s->dv);
    o->transpose(ch->k_turned, CHUNK, ch->k, s->dk, n, s->dk);
    o->mul_add(S, s->dv, ch->k_turned, CHUNK, ch->u, s->dv, s->dk, n, s->dv);
}

static void chunked_task(void *ctx, size_t h, size_t thread)
{
    const delta_job *job = ctx;
    const delta_shape *s = &job->s;
    chunk ch;
    place_chunk(&ch, nn_scratch(job->c, thread), s);
    for (size_t t = 0; t < job->run.T; t += CHUNK) {
        run_chunk(job, &ch, job->run.state + h * s->dk * s->dv, h, t, min_size(CHUNK, job->run.T - t));
    }
}

void nn_delta_chunked(compute *c, float *out, float *state, const delta_source *rows, const float *beta,
                      const float *g, const delta_shape *s, size_t T)
{
    static_assert(CHUNK >= 3, "the rows before a later chunk are rows of u");
    check_shape(s);
    delta_job job = {.c = c, .run = {out, state, NULL, NULL, beta, g, T}, .rows = *rows, .s = *s};
    pool_run(c->pool, chunked_task, &job, s->n_v);
    move_tail(rows->tail, rows->u, T, conv_width(s), 0, conv_width(s), conv_width(s));
}
