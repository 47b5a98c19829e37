/* Mamba-2 (arXiv 2405.21060): its gates, its state token by token or in chunks, and its output norm.
 *
 * C, B and x are what queries, keys and values are in linear attention, and a head's decay is one
 * number: a chunk is a product of C and B under decays, times x. Heads are independent: a task is a
 * head. */
#include "compute/nn.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compute/context.h"

/* STATE_ROWS: rows of a state that stay in the first cache while a token goes over them. */
enum { CHUNK = NN_DELTA_BLOCK, STATE_ROWS = 16 };

/* ---- gates ---- */

typedef struct gates_args {
    float *dt, *g;
    const float *x, *A_log, *dt_bias;
    float least, most;
    size_t x_stride, H;
} gates_args;

/* A few numbers a token: libm, for every instruction set alike. */
static void gates_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    (void)o;
    const gates_args *a = args;
    for (size_t t = begin; t < end; t++) {
        for (size_t h = 0; h < a->H; h++) {
            const float x = a->x[t * a->x_stride + h] + a->dt_bias[h];
            /* log(1 + e^x); beyond 20 the reference returns x itself */
            const float dt = x > 20.0f ? x : log1pf(expf(x));
            const size_t i = t * a->H + h;
            a->dt[i] = fminf(fmaxf(dt, a->least), a->most);
            a->g[i] = -expf(a->A_log[h]) * a->dt[i];
        }
    }
}

void nn_mamba_gates(compute *c, float *dt, float *g, const float *x, size_t x_stride, const float *A_log,
                    const float *dt_bias, float least, float most, size_t T, size_t H)
{
    const gates_args args = {dt, g, x, A_log, dt_bias, least, most, x_stride, H};
    nn_run_rows(c, gates_rows, &args, T, H * 16);
}

/* ---- the operator ---- */

typedef struct mamba_job {
    compute *c;
    float *out, *state;
    float *const *states;
    const float *conv, *dt, *g, *D;
    mamba_shape s;
    size_t T, width; /* of a row of conv */
} mamba_job;

static mamba_job make_job(compute *c, float *out, float *state, const float *conv, const float *dt,
                          const float *g, const float *D, const mamba_shape *s, size_t T)
{
    assert(s->n_groups > 0 && s->n_heads % s->n_groups == 0);
    assert(s->dk <= NN_DELTA_HEAD_MAX && s->dv <= NN_DELTA_HEAD_MAX);
    return (mamba_job){.c = c,
                       .out = out,
                       .state = state,
                       .conv = conv,
                       .dt = dt,
                       .g = g,
                       .D = D,
                       .s = *s,
                       .T = T,
                       .width = s->n_heads * s->dv + 2 * s->n_groups * s->dk};
}

/* What head h reads of row t. */
static const float *x_row(const mamba_job *job, size_t h, size_t t)
{
    return job->conv + t * job->width + h * job->s.dv;
}

static const float *b_row(const mamba_job *job, size_t h, size_t t)
{
    const mamba_shape *s = &job->s;
    return job->conv + t * job->width + s->n_heads * s->dv + h / (s->n_heads / s->n_groups) * s->dk;
}

static const float *c_row(const mamba_job *job, size_t h, size_t t)
{
    return b_row(job, h, t) + job->s.n_groups * job->s.dk;
}

/* One token of one head: the state goes from S to `to`, which may be S; x is dt times the input. */
static void step(const ops *o, float *out, float *to, const float *S, const float *b, const float *c,
                 const float *x, float decay, size_t dk, size_t dv)
{
    for (size_t i = 0; i < dk; i += STATE_ROWS) {
        const size_t rows = min_size(STATE_ROWS, dk - i);
        float *block = to + i * dv;
        if (to != S) {
            memcpy(block, S + i * dv, rows * dv * sizeof *block);
        }
        o->scale(block, decay, rows * dv);
        o->mul_add(block, dv, b + i, 1, x, dv, rows, 1, dv);
        o->mul_add(out, dv, c + i, dk, block, dv, 1, rows, dv);
    }
}

static void recurrent_task(void *ctx, size_t h, size_t thread)
{
    const mamba_job *job = ctx;
    const mamba_shape *s = &job->s;
    const ops *o = job->c->ops;
    float *x = nn_scratch(job->c, thread);
    const size_t at = h * s->dk * s->dv;
    const float *S = job->state + at;
    for (size_t t = 0; t < job->T; t++) {
        const size_t i = t * s->n_heads + h;
        float *to = (job->states ? job->states[t] : job->state) + at, *out = job->out + i * s->dv;
        memcpy(out, x_row(job, h, t), s->dv * sizeof *out);
        o->scale(out, job->D[h], s->dv);
        memcpy(x, x_row(job, h, t), s->dv * sizeof *x);
        o->scale(x, job->dt[i], s->dv);
        step(o, out, to, S, b_row(job, h, t), c_row(job, h, t), x, expf(job->g[i]), s->dk, s->dv);
        S = to;
    }
}

void nn_mamba_recurrent(compute *c, float *out, float *state, float *const *states, const float *conv,
                        const float *dt, const float *g, const float *D, const mamba_shape *s, size_t T)
{
    mamba_job job = make_job(c, out, state, conv, dt, g, D, s, T);
    job.states = states;
    pool_run(c->pool, recurrent_task, &job, s->n_heads);
}

/* Matrices of one chunk of n rows in scratch. */
typedef struct chunk {
    float *b, *b_turned; /* [CHUNK, dk], [dk, CHUNK]: decayed to the end of the chunk */
    float *c;            /* [CHUNK, dk]: decayed from its beginning */
    float *x;            /* [CHUNK, dv], times dt */
    float *a;            /* [CHUNK, CHUNK]: C B^T under decays */
    double sum[CHUNK];   /* of the log decays; double, because differences of large sums are taken */
} chunk;

static_assert(4 * CHUNK * NN_DELTA_HEAD_MAX + CHUNK * CHUNK <= SCRATCH_FLOATS, "a chunk fits the scratch");

static void load_chunk(const mamba_job *job, chunk *ch, size_t h, size_t t0, size_t n)
{
    const mamba_shape *s = &job->s;
    double sum = 0;
    for (size_t r = 0; r < n; r++) {
        const size_t at = (t0 + r) * s->n_heads + h;
        sum += (double)job->g[at];
        ch->sum[r] = sum;
        memcpy(ch->x + r * s->dv, x_row(job, h, t0 + r), s->dv * sizeof *ch->x);
        job->c->ops->scale(ch->x + r * s->dv, job->dt[at], s->dv);
    }
    for (size_t r = 0; r < n; r++) {
        memcpy(ch->b + r * s->dk, b_row(job, h, t0 + r), s->dk * sizeof *ch->b);
        memcpy(ch->c + r * s->dk, c_row(job, h, t0 + r), s->dk * sizeof *ch->c);
        job->c->ops->scale(ch->b + r * s->dk, expf((float)(sum - ch->sum[r])), s->dk);
        job->c->ops->scale(ch->c + r * s->dk, expf((float)ch->sum[r]), s->dk);
    }
}

/* a = (C_r . B_i) exp(sum_r - sum_i) up to the diagonal, zero above. */
static void decayed_products(const mamba_job *job, chunk *ch, size_t h, size_t t0, size_t n)
{
    const ops *o = job->c->ops;
    o->dot_rows[DTYPE_F32](ch->a, CHUNK, c_row(job, h, t0), job->width, n, b_row(job, h, t0), job->width, n,
                           job->s.dk);
    for (size_t r = 0; r < n; r++) {
        float *a = ch->a + r * CHUNK, d[CHUNK];
        for (size_t i = 0; i <= r; i++) {
            d[i] = (float)(ch->sum[r] - ch->sum[i]);
        }
        o->exp(d, r + 1);
        for (size_t i = 0; i <= r; i++) {
            a[i] *= d[i];
        }
        memset(a + r + 1, 0, (n - r - 1) * sizeof *a);
    }
}

static void run_chunk(const mamba_job *job, chunk *ch, float *S, size_t h, size_t t0, size_t n)
{
    const mamba_shape *s = &job->s;
    const ops *o = job->c->ops;
    const size_t stride = s->n_heads * s->dv;
    float *out = job->out + (t0 * s->n_heads + h) * s->dv;
    load_chunk(job, ch, h, t0, n);
    decayed_products(job, ch, h, t0, n);
    o->mul(out, stride, ch->c, s->dk, S, s->dv, n, s->dk, s->dv);     /* exp(sum) C S */
    o->mul_add(out, stride, ch->a, CHUNK, ch->x, s->dv, n, n, s->dv); /* + A X */
    for (size_t r = 0; r < n; r++) {
        o->mul_add(out + r * stride, stride, &job->D[h], 1, x_row(job, h, t0 + r), s->dv, 1, 1, s->dv);
    }
    o->scale(S, expf((float)ch->sum[n - 1]), s->dk * s->dv);
    o->transpose(ch->b_turned, CHUNK, ch->b, s->dk, n, s->dk);
    o->mul_add(S, s->dv, ch->b_turned, CHUNK, ch->x, s->dv, s->dk, n, s->dv);
}

static void chunked_task(void *ctx, size_t h, size_t thread)
{
    const mamba_job *job = ctx;
    const mamba_shape *s = &job->s;
    chunk ch;
    ch.b = nn_scratch(job->c, thread);
    ch.b_turned = ch.b + CHUNK * s->dk;
    ch.c = ch.b_turned + CHUNK * s->dk;
    ch.x = ch.c + CHUNK * s->dk;
    ch.a = ch.x + CHUNK * s->dv;
    for (size_t t = 0; t < job->T; t += CHUNK) {
        run_chunk(job, &ch, job->state + h * s->dk * s->dv, h, t, min_size(CHUNK, job->T - t));
    }
}

void nn_mamba_chunked(compute *c, float *out, float *state, const float *conv, const float *dt,
                      const float *g, const float *D, const mamba_shape *s, size_t T)
{
    mamba_job job = make_job(c, out, state, conv, dt, g, D, s, T);
    pool_run(c->pool, chunked_task, &job, s->n_heads);
}

/* ---- the norm behind it ---- */

typedef struct groups_args {
    float *out, *z;
    const float *x, *w;
    float eps;
    size_t z_stride, G, d;
} groups_args;

static void groups_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    const groups_args *a = args;
    const size_t n = a->G * a->d;
    for (size_t t = begin; t < end; t++) {
        float *z = a->z + t * a->z_stride;
        o->silu_mul(z, a->x + t * n, n);
        for (size_t i = 0; i < n; i += a->d) {
            o->rmsnorm(a->out + t * n + i, z + i, a->w + i, a->eps, a->d);
        }
    }
}

void nn_rmsnorm_groups(compute *c, float *out, const float *x, float *z, size_t z_stride, const float *w,
                       float eps, size_t T, size_t G, size_t d)
{
    const groups_args args = {out, z, x, w, eps, z_stride, G, d};
    nn_run_rows(c, groups_rows, &args, T, G * d * 2);
}
