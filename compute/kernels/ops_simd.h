/* ops_simd: the kernels written once over vectors of 16 floats. Included by one file an instruction
 * set, which first defines `vec` and its functions and the block sizes (ops_avx2.c); so every vector table gives
 * the same bits.
 *
 * Wanted of the including file:
 *   v_set1, v_load, v_store, v_add, v_sub, v_mul, v_div, v_fma (a*b+c), v_min, v_max (second
 * operand where either is NaN), v_round, v_scale2 (a * 2^n), v_where_negative (x < 0 ? a : b);
 *   v_load_n (first n lanes, others `fill`; reads nothing beyond), v_store_n;
 *   v_deal4 (every fourth of 64 floats: four vectors);
 *   v_turn (a square of TURN_SIDE x TURN_SIDE floats, rows and columns exchanged);
 *   v_sum (lanes l and l+8, l+4, l+2, l+1 added), v_sum4 (four of them stored together), v_top
 * (largest lane); v_widen_bf16, v_widen_f16 and v_widen_bf16_n, v_widen_f16_n (zeros beyond n).
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_SIMD_H
#define PARLEY_COMPUTE_KERNELS_OPS_SIMD_H

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 16 };

static inline size_t lanes_left(size_t i, size_t n)
{
    return n - i < LANES ? n - i : LANES;
}

/* ---- functions of a vector ---- */

/* e^x within 2 ulp; 0 below -104, infinity above 88.73, NaN stays. x = n ln 2 + r, polynomial in r.
 */
static ALWAYS_INLINE vec v_exp(vec x)
{
    x = v_min(v_set1(89.0f), x);
    x = v_max(v_set1(-104.0f), x);
    vec n = v_round(v_mul(x, v_set1(1.44269504f)));
    vec r = v_fma(n, v_set1(-0.693145752f), x); /* ln 2 in two parts: the first has few bits */
    r = v_fma(n, v_set1(-1.42860677e-6f), r);
    vec q = v_set1(0x1.6d117cp-10f);
    q = v_fma(q, r, v_set1(0x1.120be2p-7f));
    q = v_fma(q, r, v_set1(0x1.555518p-5f));
    q = v_fma(q, r, v_set1(0x1.5554dcp-3f));
    q = v_fma(q, r, v_set1(0.5f));
    vec p = v_add(v_fma(q, v_mul(r, r), r), v_set1(1.0f));
    return v_scale2(p, n);
}

static ALWAYS_INLINE vec v_sigmoid(vec x)
{
    vec one = v_set1(1.0f);
    return v_div(one, v_add(one, v_exp(v_sub(v_set1(0.0f), x))));
}

static ALWAYS_INLINE vec v_silu(vec x)
{
    return v_div(x, v_add(v_set1(1.0f), v_exp(v_sub(v_set1(0.0f), x))));
}

/* erfc(x / sqrt 2) for x >= 0 within 4 ulp: e^(-z^2) erfcx(z) with z = x / sqrt 2, where (1 + 2z)
 * erfcx(z) is a polynomial in (z - 2.5) / (z + 2.5). */
static ALWAYS_INLINE vec v_erfc_of_root(vec x)
{
    static const float c[] = {
        8.147585241e-5f,  0.0006170048764f, 0.0003404926065f, -0.004424323856f,
        0.0009801883564f, 0.03277900649f,   -0.1029735435f,   0.1576275853f,
        -0.09902421291f,  -0.1223566869f,   1.264838181f,
    };
    x = v_min(v_set1(14.8f), x);
    vec z = v_mul(x, v_set1(0.707106781f));
    vec t = v_div(v_sub(z, v_set1(2.5f)), v_add(z, v_set1(2.5f)));
    vec p = v_set1(c[0]);
    for (size_t i = 1; i < sizeof c / sizeof c[0]; i++) {
        p = v_fma(p, t, v_set1(c[i]));
    }
    p = v_div(p, v_fma(v_set1(2.0f), z, v_set1(1.0f)));
    /* x^2 / 2 = high + low, or its rounding would be magnified by the exponential. */
    vec minus_half_x = v_mul(v_set1(-0.5f), x);
    vec minus_high = v_mul(minus_half_x, x);
    vec minus_low = v_fma(minus_half_x, x, v_sub(v_set1(0.0f), minus_high));
    vec e = v_exp(minus_high);
    return v_mul(p, v_fma(e, minus_low, e));
}

/* ---- dot products ---- */

typedef vec load_fn(const void *w);
typedef vec load_n_fn(const void *w, size_t n);

static ALWAYS_INLINE vec widen_f32(const void *w)
{
    return v_load(w);
}

static ALWAYS_INLINE vec widen_f32_n(const void *w, size_t n)
{
    return v_load_n(w, n, 0.0f);
}

/* A call of dot_rows; strides of x and out in floats, of w in bytes. */
typedef struct dot_job {
    float *out;
    const float *x;
    const unsigned char *w;
    size_t out_stride, x_stride, w_stride, w_size, T, N, K;
    load_fn *load;
    load_n_fn *load_n;
} dot_job;

/* Weight rows that few rows of x are multiplied with together. */
enum { SLICES = 4 };
static_assert((int)DOT_N <= (int)SLICES, "accumulators fit");

/* Terms k .. k+15 of the block. */
static ALWAYS_INLINE void dot_step(const dot_job *job, vec acc[DOT_T][SLICES], const float *x,
                                   const unsigned char *w, size_t k, const size_t nt, const size_t nn)
{
    vec xv[DOT_T];
    for (size_t t = 0; t < nt; t++) {
        xv[t] = v_load(x + t * job->x_stride + k);
    }
    for (size_t n = 0; n < nn; n++) {
        vec wv = job->load(w + n * job->w_stride + k * job->w_size);
        for (size_t t = 0; t < nt; t++) {
            acc[t][n] = v_fma(xv[t], wv, acc[t][n]);
        }
    }
}

/* The terms behind the last whole vectors. */
static ALWAYS_INLINE void dot_rest(const dot_job *job, vec acc[DOT_T][SLICES], const float *x,
                                   const unsigned char *w, size_t k, const size_t nt, const size_t nn)
{
    vec wv[SLICES];
    if (k + LANES <= job->K) {
        dot_step(job, acc, x, w, k, nt, nn);
        k += LANES;
    }
    if (k < job->K) {
        for (size_t n = 0; n < nn; n++) {
            wv[n] = job->load_n(w + n * job->w_stride + k * job->w_size, job->K - k);
        }
        for (size_t t = 0; t < nt; t++) {
            vec xv = v_load_n(x + t * job->x_stride + k, job->K - k, 0.0f);
            for (size_t n = 0; n < nn; n++) {
                acc[t][n] = v_fma(xv, wv[n], acc[t][n]);
            }
        }
    }
}

/* The nt rows of x against weight rows n, n + apart, n + 2 apart, n + 3 apart: slices of memory
 * that are read side by side, which is what memory answers fastest. */
static ALWAYS_INLINE void dot_slices(const dot_job *job, size_t n, size_t apart, const size_t nt)
{
    dot_job wide = *job;
    wide.w_stride = apart * job->w_stride;
    const unsigned char *w = job->w + n * job->w_stride;
    vec acc[DOT_T][SLICES];
    for (size_t t = 0; t < nt; t++) {
        for (size_t i = 0; i < SLICES; i++) {
            acc[t][i] = v_set1(0.0f);
        }
    }
    size_t k = 0;
    for (; k + 2 * LANES <= job->K; k += 2 * LANES) {
        for (size_t i = 0; i < SLICES; i++) {
            for (size_t at = 0; at < 2 * LANES * job->w_size; at += CACHE_LINE) {
                prefetch_line(w + i * wide.w_stride + k * job->w_size + at);
            }
        }
        dot_step(&wide, acc, job->x, w, k, nt, SLICES);
        dot_step(&wide, acc, job->x, w, k + LANES, nt, SLICES);
    }
    dot_rest(&wide, acc, job->x, w, k, nt, SLICES);
    for (size_t t = 0; t < nt; t++) {
        for (size_t i = 0; i < SLICES; i++) {
            job->out[t * job->out_stride + n + i * apart] = v_sum(acc[t][i]);
        }
    }
}

/* The nt x nn elements from row t and column n on. nt, nn and fetch0, fetch1 are constants of the
 * caller, as are the loads. Meanwhile it asks for rows fetch0 .. fetch1-1 of the next nn weight
 * rows; without that, few rows of x wait for memory. Into the L2 cache (2): a block may be
 * larger than the first. Those rows are taken as one slice of memory, line after line: memory
 * answers that fastest, it needs one address, and each line is asked for once. The last block asks
 * for what it has: what lies behind is perhaps another thread's. */
static ALWAYS_INLINE void dot_block(const dot_job *job, size_t t0, size_t n0, const size_t nt,
                                    const size_t nn, const size_t fetch0, const size_t fetch1)
{
    const float *x = job->x + t0 * job->x_stride;
    const unsigned char *w = job->w + n0 * job->w_stride;
    const bool last = n0 + 2 * nn > job->N;
    const unsigned char *next = last ? w : w + (nn + fetch0) * job->w_stride;
    float *out = job->out + t0 * job->out_stride + n0;
    vec acc[DOT_T][SLICES];
    for (size_t t = 0; t < nt; t++) {
        for (size_t n = 0; n < nn; n++) {
            acc[t][n] = v_set1(0.0f);
        }
    }
    size_t k = 0;
    for (; k + 2 * LANES <= job->K; k += 2 * LANES) {
        for (size_t i = 0; i < (fetch1 - fetch0) * job->w_size / 2; i++) {
            __builtin_prefetch(next + i * CACHE_LINE, 0, 2);
        }
        next += (fetch1 - fetch0) * 2 * LANES * job->w_size;
        dot_step(job, acc, x, w, k, nt, nn);
        dot_step(job, acc, x, w, k + LANES, nt, nn);
    }
    dot_rest(job, acc, x, w, k, nt, nn);
    for (size_t t = 0; t < nt; t++) {
        float *to = out + t * job->out_stride;
        if (nn % 4 == 0) {
            for (size_t n = 0; n < nn; n += 4) {
                v_sum4(to + n, acc[t][n], acc[t][n + 1], acc[t][n + 2], acc[t][n + 3]);
            }
        } else {
            for (size_t n = 0; n < nn; n++) {
                to[n] = v_sum(acc[t][n]);
            }
        }
    }
}

/* All rows of x against nn weight rows, nt rows at a time. The first blocks share the asking for
 * the next weight rows, so that reading goes on while there is much to multiply. */
static ALWAYS_INLINE void dot_columns(const dot_job *job, size_t n, const size_t nt, const size_t nn)
{
    size_t t = 0;
    if (job->T >= 4 * nt && nn == 4) {
        dot_block(job, 0, n, nt, nn, 0, 1);
        dot_block(job, nt, n, nt, nn, 1, 2);
        dot_block(job, 2 * nt, n, nt, nn, 2, 3);
        dot_block(job, 3 * nt, n, nt, nn, 3, 4);
        t = 4 * nt;
    } else if (job->T >= 2 * nt) {
        dot_block(job, 0, n, nt, nn, 0, nn / 2);
        dot_block(job, nt, n, nt, nn, nn / 2, nn);
        t = 2 * nt;
    } else if (job->T >= nt) {
        dot_block(job, 0, n, nt, nn, 0, nn);
        t = nt;
    }
    for (; t + nt <= job->T; t += nt) {
        dot_block(job, t, n, nt, nn, 0, 0);
    }
    if (nt > 3 && job->T - t == 3) {
        dot_block(job, t, n, 3, nn, 0, nn);
    } else if (nt > 2 && job->T - t == 2) {
        dot_block(job, t, n, 2, nn, 0, nn);
    } else if (job->T - t == 1) {
        dot_block(job, t, n, 1, nn, 0, nn);
    }
}

/* The number of rows is a constant of each call. */
static ALWAYS_INLINE void dot_slices_of(const dot_job *job, size_t n, size_t apart)
{
    static_assert(DOT_T_FEW <= 3 && DOT_T >= 3, "a case for each");
    if (job->T == 1) {
        dot_slices(job, n, apart, 1);
    } else if (job->T == 2) {
        dot_slices(job, n, apart, 2);
    } else {
        dot_slices(job, n, apart, 3);
    }
}

static ALWAYS_INLINE void dot_all(const dot_job *job)
{
    const size_t N = job->N;
    size_t n = 0;
    if (job->T > 0 && job->T <= DOT_T_FEW) {
        for (; n < N / SLICES; n++) {
            dot_slices_of(job, n, N / SLICES);
        }
        n = N / SLICES * SLICES;
    }
    for (; n + DOT_N <= N; n += DOT_N) {
        dot_columns(job, n, DOT_T, DOT_N);
    }
    for (; n < N; n++) {
        dot_columns(job, n, DOT_T, 1);
    }
}

/* The products of one type of weights, whose elements take `size` bytes. */
#define DOT_ROWS(type, size, load, load_n)                                                                   \
    static void dot_rows_##type(float *out, size_t out_stride, const float *x, size_t x_stride, size_t T,    \
                                const void *w, size_t w_stride, size_t N, size_t K)                          \
    {                                                                                                        \
        const dot_job job = {out, x, w, out_stride, x_stride, w_stride * size, size, T, N, K, load, load_n}; \
        dot_all(&job);                                                                                       \
    }
DOT_ROWS(f32, 4, widen_f32, widen_f32_n)
DOT_ROWS(bf16, 2, v_widen_bf16, v_widen_bf16_n)
DOT_ROWS(f16, 2, v_widen_f16, v_widen_f16_n)

/* ---- widening ---- */

static void widen_row_f32(float *out, const void *in, size_t n)
{
    memcpy(out, in, n * sizeof *out);
}

static ALWAYS_INLINE void widen_row(float *out, const unsigned char *in, size_t n, load_fn *load,
                                    load_n_fn *load_n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        v_store(out + i, load(in + 2 * i));
    }
    if (i < n) {
        v_store_n(out + i, load_n(in + 2 * i, n - i), n - i);
    }
}

static void widen_row_bf16(float *out, const void *in, size_t n)
{
    widen_row(out, in, n, v_widen_bf16, v_widen_bf16_n);
}

static void widen_row_f16(float *out, const void *in, size_t n)
{
    widen_row(out, in, n, v_widen_f16, v_widen_f16_n);
}

/* ---- small matrices ---- */

/* nm rows x nv vectors of c; the last vector has `lanes` lanes. */
static ALWAYS_INLINE void mul_block(float *c, size_t c_stride, const float *a, size_t a_stride,
                                    const float *b, size_t b_stride, size_t K, const size_t nm,
                                    const size_t nv, size_t lanes, const bool fresh)
{
    vec acc[MUL_M][MUL_V];
    for (size_t m = 0; m < nm; m++) {
        for (size_t v = 0; v < nv; v++) {
            acc[m][v] = fresh ? v_set1(0.0f)
                              : v_load_n(c + m * c_stride + v * LANES, v + 1 < nv ? LANES : lanes, 0.0f);
        }
    }
    for (size_t k = 0; k < K; k++) {
        vec bv[MUL_V];
        for (size_t v = 0; v < nv; v++) {
            bv[v] = v_load_n(b + k * b_stride + v * LANES, v + 1 < nv ? LANES : lanes, 0.0f);
        }
        for (size_t m = 0; m < nm; m++) {
            vec av = v_set1(a[m * a_stride + k]);
            for (size_t v = 0; v < nv; v++) {
                acc[m][v] = v_fma(av, bv[v], acc[m][v]);
            }
        }
    }
    for (size_t m = 0; m < nm; m++) {
        for (size_t v = 0; v < nv; v++) {
            v_store_n(c + m * c_stride + v * LANES, acc[m][v], v + 1 < nv ? LANES : lanes);
        }
    }
}

/* All rows of a against nv vectors of columns. */
static ALWAYS_INLINE void mul_columns(float *c, size_t c_stride, const float *a, size_t a_stride,
                                      const float *b, size_t b_stride, size_t M, size_t K, const size_t nv,
                                      size_t lanes, const bool fresh)
{
    size_t m = 0;
    for (; m + MUL_M <= M; m += MUL_M) {
        mul_block(c + m * c_stride, c_stride, a + m * a_stride, a_stride, b, b_stride, K, MUL_M, nv, lanes,
                  fresh);
    }
    for (; m + 2 <= M; m += 2) {
        mul_block(c + m * c_stride, c_stride, a + m * a_stride, a_stride, b, b_stride, K, 2, nv, lanes,
                  fresh);
    }
    for (; m < M; m++) {
        mul_block(c + m * c_stride, c_stride, a + m * a_stride, a_stride, b, b_stride, K, 1, nv, lanes,
                  fresh);
    }
}

static ALWAYS_INLINE void mul_all(float *c, size_t c_stride, const float *a, size_t a_stride, const float *b,
                                  size_t b_stride, size_t M, size_t K, size_t N, const bool fresh)
{
    size_t n = 0;
    for (; n + MUL_V * LANES <= N; n += MUL_V * LANES) {
        mul_columns(c + n, c_stride, a, a_stride, b + n, b_stride, M, K, MUL_V, LANES, fresh);
    }
    for (; n < N; n += LANES) {
        mul_columns(c + n, c_stride, a, a_stride, b + n, b_stride, M, K, 1, lanes_left(n, N), fresh);
    }
}

static void mul(float *c, size_t c_stride, const float *a, size_t a_stride, const float *b, size_t b_stride,
                size_t M, size_t K, size_t N)
{
    mul_all(c, c_stride, a, a_stride, b, b_stride, M, K, N, true);
}

static void mul_add(float *c, size_t c_stride, const float *a, size_t a_stride, const float *b,
                    size_t b_stride, size_t M, size_t K, size_t N)
{
    mul_all(c, c_stride, a, a_stride, b, b_stride, M, K, N, false);
}

static void transpose(float *out, size_t out_stride, const float *in, size_t in_stride, size_t M, size_t N)
{
    size_t m = 0;
    for (; m + TURN_SIDE <= M; m += TURN_SIDE) {
        size_t n = 0;
        for (; n + TURN_SIDE <= N; n += TURN_SIDE) {
            v_turn(out + n * out_stride + m, out_stride, in + m * in_stride + n, in_stride);
        }
        for (; n < N; n++) {
            for (size_t i = m; i < m + TURN_SIDE; i++) {
                out[n * out_stride + i] = in[i * in_stride + n];
            }
        }
    }
    for (; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            out[n * out_stride + m] = in[m * in_stride + n];
        }
    }
}

/* ---- tiles for many rows ---- */

/* nn weight rows against nv vectors of rows of x. */
static ALWAYS_INLINE void tile_block(float *sums, const float *x, const float *w, size_t w_stride, size_t K,
                                     const size_t nn, const size_t nv)
{
    vec acc[TILE_N][TILE_V];
    for (size_t n = 0; n < nn; n++) {
        for (size_t v = 0; v < nv; v++) {
            acc[n][v] = v_set1(0.0f);
        }
    }
    for (size_t k = 0; k < K; k++) {
        vec xv[TILE_V];
        for (size_t v = 0; v < nv; v++) {
            xv[v] = v_load(x + k * TILE_ROWS + v * LANES);
        }
        for (size_t n = 0; n < nn; n++) {
            vec wv = v_set1(w[n * w_stride + k]);
            for (size_t v = 0; v < nv; v++) {
                acc[n][v] = v_fma(xv[v], wv, acc[n][v]);
            }
        }
    }
    for (size_t n = 0; n < nn; n++) {
        for (size_t v = 0; v < nv; v++) {
            float *at = sums + n * TILE_ROWS + v * LANES;
            v_store(at, v_add(v_load(at), acc[n][v]));
        }
    }
}

/* All weight rows against nv vectors. */
static ALWAYS_INLINE void tile_rows(float *sums, const float *x, const float *w, size_t w_stride, size_t N,
                                    size_t K, const size_t nv)
{
    size_t n = 0;
    for (; n + TILE_N <= N; n += TILE_N) {
        tile_block(sums + n * TILE_ROWS, x, w + n * w_stride, w_stride, K, TILE_N, nv);
    }
    for (; n < N; n++) {
        tile_block(sums + n * TILE_ROWS, x, w + n * w_stride, w_stride, K, 1, nv);
    }
}

static void tile_f32(float *sums, const float *x, const float *w, size_t w_stride, size_t T, size_t N,
                     size_t K)
{
    size_t t = 0;
    for (; t + TILE_V * LANES <= T; t += TILE_V * LANES) {
        tile_rows(sums + t, x + t, w, w_stride, N, K, TILE_V);
    }
    for (; t < T; t += LANES) {
        tile_rows(sums + t, x + t, w, w_stride, N, K, 1);
    }
}

/* ---- one row ---- */

static void add(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        v_store_n(y + i, v_add(v_load_n(y + i, m, 0.0f), v_load_n(x + i, m, 0.0f)), m);
    }
}

static void scale(float *x, float s, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        v_store_n(x + i, v_mul(v_load_n(x + i, m, 0.0f), v_set1(s)), m);
    }
}

static float sum_squares(const float *x, size_t n)
{
    vec sum = v_set1(0.0f);
    for (size_t i = 0; i < n; i += LANES) {
        vec v = v_load_n(x + i, lanes_left(i, n), 0.0f);
        sum = v_fma(v, v, sum);
    }
    return v_sum(sum);
}

static void rmsnorm(float *out, const float *x, const float *w, float eps, size_t n)
{
    vec r = v_set1(1.0f / sqrtf(sum_squares(x, n) / (float)n + eps));
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        v_store_n(out + i, v_mul(v_mul(v_load_n(x + i, m, 0.0f), r), v_load_n(w + i, m, 0.0f)), m);
    }
}

static void rmsnorm_gated(float *out, const float *x, const float *z, const float *w, float eps, size_t n)
{
    vec r = v_set1(1.0f / sqrtf(sum_squares(x, n) / (float)n + eps));
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        vec y = v_mul(v_mul(v_load_n(x + i, m, 0.0f), r), v_load_n(w + i, m, 0.0f));
        v_store_n(out + i, v_mul(y, v_silu(v_load_n(z + i, m, 0.0f))), m);
    }
}

static void layernorm(float *out, const float *x, const float *w, const float *b, float eps, size_t n)
{
    vec sum = v_set1(0.0f), squares = v_set1(0.0f);
    for (size_t i = 0; i < n; i += LANES) {
        sum = v_add(sum, v_load_n(x + i, lanes_left(i, n), 0.0f));
    }
    float mean_value = v_sum(sum) / (float)n;
    vec mean = v_set1(mean_value);
    for (size_t i = 0; i < n; i += LANES) {
        vec d = v_sub(v_load_n(x + i, lanes_left(i, n), mean_value), mean);
        squares = v_fma(d, d, squares);
    }
    vec r = v_set1(1.0f / sqrtf(v_sum(squares) / (float)n + eps));
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        vec d = v_mul(v_sub(v_load_n(x + i, m, 0.0f), mean), r);
        v_store_n(out + i, v_fma(d, v_load_n(w + i, m, 0.0f), v_load_n(b + i, m, 0.0f)), m);
    }
}

static void l2norm(float *out, const float *x, float s, size_t n)
{
    vec r = v_set1(1.0f / sqrtf(sum_squares(x, n) + 1e-6f) * s);
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        v_store_n(out + i, v_mul(v_load_n(x + i, m, 0.0f), r), m);
    }
}

static void exp_all(float *x, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        v_store_n(x + i, v_exp(v_load_n(x + i, m, 0.0f)), m);
    }
}

static void silu_mul(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        v_store_n(gate + i, v_mul(v_silu(v_load_n(gate + i, m, 0.0f)), v_load_n(up + i, m, 0.0f)), m);
    }
}

static void sigmoid_mul(float *x, const float *gate, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        v_store_n(x + i, v_mul(v_load_n(x + i, m, 0.0f), v_sigmoid(v_load_n(gate + i, m, 0.0f))), m);
    }
}

/* x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): see ops_generic.c. */
static void gelu_tanh(float *x, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        vec v = v_load_n(x + i, m, 0.0f);
        vec cubic = v_fma(v_mul(v, v), v_set1(0.0713548162726f), v_set1(1.59576912160573f));
        v_store_n(x + i, v_div(v, v_add(v_set1(1.0f), v_exp(v_sub(v_set1(0.0f), v_mul(v, cubic))))), m);
    }
}

static void gelu_erf(float *x, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        vec v = v_load_n(x + i, m, 0.0f);
        vec size = v_max(v_sub(v_set1(0.0f), v), v);
        vec half = v_mul(v_set1(0.5f), v_erfc_of_root(size));
        vec share = v_where_negative(v, half, v_sub(v_set1(1.0f), half));
        v_store_n(x + i, v_mul(v, share), m);
    }
}

static void rope(float *x, const float *cos, const float *sin, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        size_t m = lanes_left(i, n);
        vec a = v_load_n(x + i, m, 0.0f), b = v_load_n(x + i + n, m, 0.0f);
        vec c = v_load_n(cos + i, m, 0.0f), s = v_load_n(sin + i, m, 0.0f);
        v_store_n(x + i, v_sub(v_mul(a, c), v_mul(b, s)), m);
        v_store_n(x + i + n, v_fma(b, c, v_mul(a, s)), m);
    }
}

/* s = e^(s - top) of n values, added to total; n is LANES but for the last ones. */
static ALWAYS_INLINE vec softmax_step(float *s, size_t n, vec top, vec total)
{
    const vec e = v_exp(v_sub(v_load_n(s, n, -INFINITY), top));
    v_store_n(s, e, n);
    return v_add(total, e);
}

static float softmax_tile(float *s, size_t n, float *max, float *sum)
{
    enum { STEP = 4 * LANES };
    vec top = v_set1(*max), total = v_set1(0.0f);
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        const vec low = v_max(v_load(s + i), v_load(s + i + LANES));
        top = v_max(top, v_max(low, v_max(v_load(s + i + 2 * LANES), v_load(s + i + 3 * LANES))));
    }
    for (; i < n; i += LANES) {
        top = v_max(top, v_load_n(s + i, lanes_left(i, n), -INFINITY));
    }
    const float top_value = v_top(top), factor = top_value == *max ? 1.0f : expf(*max - top_value);
    top = v_set1(top_value);
    for (i = 0; i + STEP <= n; i += STEP) {
        for (size_t j = 0; j < STEP; j += LANES) {
            total = softmax_step(s + i + j, LANES, top, total);
        }
    }
    for (; i < n; i += LANES) {
        total = softmax_step(s + i, lanes_left(i, n), top, total);
    }
    *max = top_value;
    *sum = *sum * factor + v_sum(total);
    return factor;
}

/* ---- limits ---- */

static float peak_f32(size_t rounds)
{
    vec acc[PEAK_VECTORS], x = v_set1(0.5f), y = v_set1(1.0f);
    for (size_t i = 0; i < PEAK_VECTORS; i++) {
        acc[i] = v_set1((float)i);
    }
    for (size_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < PEAK_VECTORS; i++) {
            acc[i] = v_fma(acc[i], x, y);
        }
    }
    for (size_t i = 1; i < PEAK_VECTORS; i++) {
        acc[0] = v_add(acc[0], acc[i]);
    }
    return v_sum(acc[0]);
}

static ALWAYS_INLINE float read_streams(const float *p, size_t n, const size_t streams)
{
    enum { STEP = 64 }; /* floats: four lines of a stream at a time */
    const size_t part = n / streams;
    vec sum[4];
    for (size_t i = 0; i < 4; i++) {
        sum[i] = v_set1(0.0f);
    }
    for (size_t at = 0; at < part; at += STEP) {
        for (size_t s = 0; s < streams; s++) {
            const float *from = p + s * part + at;
            for (size_t i = 0; i < STEP / LANES; i++) {
                prefetch_line(from + i * LANES);
                sum[i] = v_add(sum[i], v_load(from + i * LANES));
            }
        }
    }
    return v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3])));
}

static float read_all(const float *p, size_t n, size_t streams)
{
    return streams == 1   ? read_streams(p, n, 1)
           : streams == 2 ? read_streams(p, n, 2)
                          : read_streams(p, n, 4);
}

#include "compute/kernels/ops_delta_simd.h"
#include "compute/kernels/ops_q_pack_simd.h"

/* The members every vector table has in common. */
#define OPS_SIMD_MEMBERS                                                                                     \
    .widen = {widen_row_f32, widen_row_bf16, widen_row_f16},                                                 \
    .dot_rows = {dot_rows_f32, dot_rows_bf16, dot_rows_f16}, .tile_f32 = tile_f32, .mul = mul,               \
    .mul_add = mul_add, .transpose = transpose, .pack_q = pack_q, .add = add, .scale = scale,                \
    .rmsnorm = rmsnorm, .rmsnorm_gated = rmsnorm_gated, .layernorm = layernorm, .l2norm = l2norm,            \
    .exp = exp_all, .silu_mul = silu_mul, .sigmoid_mul = sigmoid_mul, .gelu_tanh = gelu_tanh,                \
    .gelu_erf = gelu_erf, .rope = rope, .peak_f32 = peak_f32, .read = read_all,                              \
    .softmax_tile = softmax_tile, .conv_silu = conv_silu, .delta_step = delta_step

#endif
