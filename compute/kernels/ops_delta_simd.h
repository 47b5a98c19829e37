/* ops_delta_simd: the kernels of GatedDeltaNet, written once over vectors of 16 floats. Part of
 * ops_simd.h, which says what is wanted of the including file; every vector table gives the same
 * bits.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_DELTA_SIMD_H
#define PARLEY_COMPUTE_KERNELS_OPS_DELTA_SIMD_H

/* Row by row: rows lie a page or more apart, so that a column of them would be one line of each page,
 * all in one set of the L1 cache. */
static void conv_silu(float *out, size_t out_stride, const float *u, size_t u_stride, const float *tail,
                      size_t tail_stride, const float *w, const float *bias, size_t T, size_t n)
{
    enum { BLOCK = 8 * LANES, PREFETCH_ROWS = 4 };
    for (size_t c0 = 0; c0 < n; c0 += BLOCK) {
        const size_t width = n - c0 < BLOCK ? n - c0 : BLOCK;
        vec taps[BLOCK / LANES][4];
        for (size_t i = 0; i < width; i += LANES) {
            const size_t m = lanes_left(i, width);
            float known[4 * LANES] = {0};
            if (m < LANES) {
                memcpy(known, w + (c0 + i) * 4, m * 4 * sizeof *w);
            }
            v_deal4(taps[i / LANES], m < LANES ? known : w + (c0 + i) * 4);
        }
        const float *row[4] = {tail + c0, tail + tail_stride + c0, tail + 2 * tail_stride + c0, u + c0};
        for (size_t t = 0; t < T; t++) {
            float *to = out + t * out_stride + c0;
            for (size_t i = 0; i < width; i += LANES) {
                const size_t m = lanes_left(i, width);
                const vec *tap = taps[i / LANES];
                __builtin_prefetch(row[3] + PREFETCH_ROWS * u_stride + i, 0, 3);
                vec y = bias ? v_load_n(bias + c0 + i, m, 0.0f) : v_set1(0.0f);
                for (size_t j = 0; j < 4; j++) {
                    y = v_fma(tap[j], v_load_n(row[j] + i, m, 0.0f), y);
                }
                v_store_n(to + i, v_silu(y), m);
            }
            row[0] = row[1];
            row[1] = row[2];
            row[2] = row[3];
            row[3] += u_stride;
        }
    }
}

/* nv vectors of columns of LANES lanes, or one of `lanes`; every column is a sum over i in rising order.
 * DELTA_V is as large as the registers allow: with half of a row at a time, rows a page (4096
 * bytes) apart come so close together that the processor takes a row that is stored for the one
 * that is loaded, and waits. */
static ALWAYS_INLINE void delta_columns(float *out, float *to, const float *S, size_t stride, const float *q,
                                        const float *k, const float *v, float beta, float decay, size_t dk,
                                        const float *next, const size_t nv, size_t lanes)
{
    enum { PREFETCH_ROWS = 8 };
    vec sum[DELTA_V], d[DELTA_V], f = v_set1(decay);
    for (size_t j = 0; j < nv; j++) {
        sum[j] = v_set1(0.0f);
    }
    for (size_t i = 0; i < dk; i++) {
        vec ki = v_set1(k[i]);
        for (size_t j = 0; j < nv; j++) {
            const float *at = S + i * stride + j * LANES;
            __builtin_prefetch(at + PREFETCH_ROWS * stride, 1, 3);
            vec s = v_load_n(at, lanes, 0.0f);
            sum[j] = v_fma(v_mul(s, f), ki, sum[j]);
        }
    }
    for (size_t j = 0; j < nv; j++) {
        vec value = v_load_n(v + j * LANES, lanes, 0.0f);
        d[j] = v_mul(v_set1(beta), v_sub(value, sum[j]));
        sum[j] = v_set1(0.0f);
    }
    for (size_t i = 0; i < dk; i++) {
        vec ki = v_set1(k[i]), qi = v_set1(q[i]);
        for (size_t j = 0; j < nv; j++) {
            const size_t at = i * stride + j * LANES;
            if (next) {
                __builtin_prefetch(next + at, 0, 2);
            }
            vec s = v_fma(ki, d[j], v_mul(v_load_n(S + at, lanes, 0.0f), f));
            v_store_n(to + at, s, lanes);
            sum[j] = v_fma(s, qi, sum[j]);
        }
    }
    for (size_t j = 0; j < nv; j++) {
        v_store_n(out + j * LANES, sum[j], lanes);
    }
}

static void delta_step(float *out, float *to, const float *S, size_t stride, const float *q, const float *k,
                       const float *v, float beta, float decay, size_t dk, size_t n, const float *next)
{
    size_t j = 0;
    for (; j + DELTA_V * LANES <= n; j += DELTA_V * LANES) {
        delta_columns(out + j, to + j, S + j, stride, q, k, v + j, beta, decay, dk, next ? next + j : NULL,
                      DELTA_V, LANES);
    }
    for (; j < n; j += LANES) {
        delta_columns(out + j, to + j, S + j, stride, q, k, v + j, beta, decay, dk, next ? next + j : NULL, 1,
                      lanes_left(j, n));
    }
}

#endif
