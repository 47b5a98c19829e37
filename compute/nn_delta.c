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

/* ---- convolution ---- */

typedef struct conv_job {
    const ops *ops;
    float *out, *tail;
    const float *u, *w, *bias;
    size_t T, C, u_stride;
    size_t channels; /* of a task */
} conv_job;

/* Row `row` of the sequence that starts three rows before u. */
static const float *conv_row(const conv_job *job, size_t row)
{
    return row < 3 ? job->tail + row * job->C : job->u + (row - 3) * job->u_stride;
}

static void conv_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    const conv_job *job = ctx;
    size_t c0 = task * job->channels, n = min_size(job->channels, job->C - c0);
    job->ops->conv_silu(job->out + c0, job->C, job->u + c0, job->u_stride, job->tail + c0, job->C,
                        job->w + c0 * 4, job->bias ? job->bias + c0 : NULL, job->T, n);
    /* Rising order: a short call moves tail rows down, and none is read after it was written. */
    for (size_t i = 0; i < 3; i++) {
        memmove(job->tail + i * job->C + c0, conv_row(job, job->T + i) + c0, n * sizeof(float));
    }
}

void nn_conv_silu(compute *c, float *out, float *tail, const float *u, const float *w, const float *bias,
                  size_t T, size_t C, size_t u_stride)
{
    /* Enough values in a task to pay for handing it over. */
    size_t blocks = T ? CONV_VALUES / T / CHANNELS : 0, channels = CHANNELS * (blocks ? blocks : 1);
    conv_job job = {c->ops, out, tail, u, w, bias, T, C, u_stride, channels};
    pool_run(c->pool, conv_task, &job, (C + channels - 1) / channels);
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

typedef struct delta_job {
    compute *c;
    float *out, *state;
    float *const *states;
    const float *conv, *beta, *g;
    delta_shape s;
    size_t T;
    size_t n_blocks; /* recurrent: column blocks of a head */
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

/* Query and key rows t0 .. t0+n-1 of value head h, normalised. */
static void load_qk(const delta_job *job, float *q, float *k, size_t h, size_t t0, size_t n)
{
    const delta_shape *s = &job->s;
    size_t key_head = s->tiled ? h % s->n_k : h / (s->n_v / s->n_k), width = conv_width(s);
    const float *row = job->conv + t0 * width + key_head * s->dk;
    float scale = 1.0f / sqrtf((float)s->dk);
    for (size_t r = 0; r < n; r++, row += width) {
        job->c->ops->l2norm(q + r * s->dk, row, scale, s->dk);
        job->c->ops->l2norm(k + r * s->dk, row + s->n_k * s->dk, 1.0f, s->dk);
    }
}

/* Value row t of head h. */
static const float *value_row(const delta_job *job, size_t h, size_t t)
{
    const delta_shape *s = &job->s;
    return job->conv + t * conv_width(s) + 2 * s->n_k * s->dk + h * s->dv;
}

static void recurrent_task(void *ctx, size_t task, size_t thread)
{
    const delta_job *job = ctx;
    const delta_shape *s = &job->s;
    size_t h = task / job->n_blocks, j0 = task % job->n_blocks * COLUMNS;
    size_t n = min_size(COLUMNS, s->dv - j0);
    float *q = nn_scratch(job->c, thread), *k = q + ROW_GROUP * s->dk;
    const size_t at = h * s->dk * s->dv + j0;
    const float *S = job->state + at;
    for (size_t t = 0; t < job->T; t++) {
        float *to = (job->states ? job->states[t] : job->state) + at;
        size_t r = t % ROW_GROUP;
        if (r == 0) {
            load_qk(job, q, k, h, t, min_size(ROW_GROUP, job->T - t));
        }
        job->c->ops->delta_step(job->out + (t * s->n_v + h) * s->dv + j0, to, S, s->dv, q + r * s->dk,
                                k + r * s->dk, value_row(job, h, t) + j0, job->beta[t * s->n_v + h],
                                expf(job->g[t * s->n_v + h]), s->dk, n);
        S = to;
    }
}

void nn_delta_recurrent(compute *c, float *out, float *state, float *const *states, const float *conv,
                        const float *beta, const float *g, const delta_shape *s, size_t T)
{
    check_shape(s);
    delta_job job = {.c = c,
                     .out = out,
                     .state = state,
                     .states = states,
                     .conv = conv,
                     .beta = beta,
                     .g = g,
                     .s = *s,
                     .T = T,
                     .n_blocks = (s->dv + COLUMNS - 1) / COLUMNS};
    pool_run(c->pool, recurrent_task, &job, s->n_v * job.n_blocks);
}

/* Matrices of one chunk of n rows in scratch; names as in the design's chunked form. */
typedef struct chunk {
    float *q, *k, *k_turned; /* [CHUNK, dk], [CHUNK, dk], [dk, CHUNK] */
    float *w;                /* [CHUNK, dk]: minus W */
    float *u;                /* [CHUNK, dv]: U, then N */
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
    k->w = k->k_turned + CHUNK * s->dk;
    k->u = k->w + CHUNK * s->dk;
    k->m = k->u + CHUNK * s->dv;
    k->a = k->m + CHUNK * CHUNK;
}

/* Loads rows t0 .. t0+n-1 of head h: q, k, gates, and the right sides beta V and -beta exp(G) K. */
static void load_chunk(const delta_job *job, chunk *ch, size_t h, size_t t0, size_t n)
{
    const delta_shape *s = &job->s;
    const ops *o = job->c->ops;
    load_qk(job, ch->q, ch->k, h, t0, n);
    double sum = 0;
    for (size_t r = 0; r < n; r++) {
        size_t at = (t0 + r) * s->n_v + h;
        sum += (double)job->g[at];
        ch->sum[r] = sum;
        ch->decay[r] = expf((float)sum);
        ch->beta[r] = job->beta[at];
        memcpy(ch->u + r * s->dv, value_row(job, h, t0 + r), s->dv * sizeof(float));
        o->scale(ch->u + r * s->dv, ch->beta[r], s->dv);
        memcpy(ch->w + r * s->dk, ch->k + r * s->dk, s->dk * sizeof(float));
        o->scale(ch->w + r * s->dk, -ch->beta[r] * ch->decay[r], s->dk);
    }
}

/* m = -beta_r (k_r . k_s) D[r][s] below the diagonal; a = (q_r . k_s) D[r][s] up to it; zero above.
 * TRAP: D is exp of a difference; exp(-G) alone overflows. */
static void decayed_products(const delta_job *job, chunk *ch, size_t n)
{
    const ops *o = job->c->ops;
    size_t dk = job->s.dk;
    o->dot_rows[DTYPE_F32](ch->m, CHUNK, ch->k, dk, n, ch->k, dk, n, dk);
    o->dot_rows[DTYPE_F32](ch->a, CHUNK, ch->q, dk, n, ch->k, dk, n, dk);
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
    float *out = job->out + (t0 * s->n_v + h) * s->dv;

    load_chunk(job, ch, h, t0, n);
    decayed_products(job, ch, n);
    solve_lower(o, ch->u, ch->m, n, s->dv);
    solve_lower(o, ch->w, ch->m, n, s->dk);
    o->mul_add(ch->u, s->dv, ch->w, s->dk, S, s->dv, n, s->dk, s->dv); /* N = U - W S */

    for (size_t r = 0; r < n; r++) {
        o->scale(ch->q + r * s->dk, ch->decay[r], s->dk);
        o->scale(ch->k + r * s->dk, expf((float)(ch->sum[n - 1] - ch->sum[r])), s->dk);
    }
    o->mul(out, out_stride, ch->q, s->dk, S, s->dv, n, s->dk, s->dv);     /* exp(G) Q S */
    o->mul_add(out, out_stride, ch->a, CHUNK, ch->u, s->dv, n, n, s->dv); /* + A N */

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
    for (size_t t = 0; t < job->T; t += CHUNK) {
        run_chunk(job, &ch, job->state + h * s->dk * s->dv, h, t, min_size(CHUNK, job->T - t));
    }
}

void nn_delta_chunked(compute *c, float *out, float *state, const float *conv, const float *beta,
                      const float *g, const delta_shape *s, size_t T)
{
    check_shape(s);
    delta_job job = {.c = c, .out = out, .state = state, .conv = conv, .beta = beta, .g = g, .s = *s, .T = T};
    pool_run(c->pool, chunked_task, &job, s->n_v);
}
