/* The specification of every kernel in plain loops. Norms sum in double: the other tables are
 * compared with it. */
#include "compute/kernels/ops.h"

#include <math.h>
#include <string.h>

#include "compute/kernels/generic.h"
#include "compute/formats/half.h"

static void widen_f32_generic(float *out, const void *in, size_t n)
{
    memcpy(out, in, n * sizeof *out);
}

static void widen_bf16_generic(float *out, const void *in, size_t n)
{
    const unsigned char *from = in;
    for (size_t i = 0; i < n; i++) {
        out[i] = bf16_at(from + 2 * i);
    }
}

static void widen_f16_generic(float *out, const void *in, size_t n)
{
    const unsigned char *from = in;
    for (size_t i = 0; i < n; i++) {
        out[i] = f16_at(from + 2 * i);
    }
}

/* One element; terms in blocks of 16 so that the compiler can keep the lanes in registers. */
static inline float dot_generic(const float *x, const unsigned char *w, size_t size, size_t K,
                                void (*widen)(float *, const void *, size_t))
{
    float lane[LANES] = {0}, block[LANES];
    for (size_t k = 0; k < K; k += LANES) {
        size_t n = K - k < LANES ? K - k : LANES;
        widen(block, w + k * size, n);
        for (size_t l = 0; l < n; l++) {
            lane[l] += x[k + l] * block[l];
        }
    }
    return add_lanes(lane);
}

static inline void dot_rows_generic(float *out, size_t out_stride, const float *x, size_t x_stride, size_t T,
                                    const void *w, size_t w_stride, size_t N, size_t K, size_t size,
                                    void (*widen)(float *, const void *, size_t))
{
    const unsigned char *rows = w;
    for (size_t n = 0; n < N; n++) {
        for (size_t t = 0; t < T; t++) {
            out[t * out_stride + n] =
                dot_generic(x + t * x_stride, rows + n * w_stride * size, size, K, widen);
        }
    }
}

/* The products of one type of weights. */
#define DOT_ROWS_GENERIC(type, size)                                                                         \
    static void dot_rows_##type##_generic(float *out, size_t out_stride, const float *x, size_t x_stride,    \
                                          size_t T, const void *w, size_t w_stride, size_t N, size_t K)      \
    {                                                                                                        \
        dot_rows_generic(out, out_stride, x, x_stride, T, w, w_stride, N, K, size, widen_##type##_generic);  \
    }
DOT_ROWS_GENERIC(f32, 4)
DOT_ROWS_GENERIC(bf16, 2)
DOT_ROWS_GENERIC(f16, 2)

static void pack_bf16_generic(uint32_t *out, const float *x, size_t x_stride, size_t T, size_t K)
{
    for (size_t k = 0; k < K; k += 2) {
        for (size_t t = 0; t < (T + 15) / 16 * 16; t++) {
            const float *pair = x + t * x_stride + k;
            out[k / 2 * TILE_ROWS + t] =
                t < T ? bf16_from_f32(pair[0]) | (uint32_t)bf16_from_f32(pair[1]) << 16 : 0;
        }
    }
}

static void round_bf16_generic(uint16_t *out, const float *x, size_t K)
{
    for (size_t k = 0; k < (K + BF16_STEP - 1) / BF16_STEP * BF16_STEP; k++) {
        out[k] = k < K ? bf16_from_f32(x[k]) : 0;
    }
}

static void dot_bf16_generic(float *out, size_t out_stride, const uint16_t *x, size_t x_stride, size_t T,
                             const void *w, size_t w_stride, size_t N, size_t K)
{
    for (size_t t = 0; t < T; t++) {
        for (size_t n = 0; n < N; n++) {
            float lane[LANES] = {0}, wide;
            for (size_t k = 0; k < K; k++) {
                widen_bf16_generic(&wide, (const unsigned char *)w + 2 * (n * w_stride + k), 1);
                lane[k / 2 % LANES] += bf16_to_f32(x[t * x_stride + k]) * wide;
            }
            out[t * out_stride + n] = add_lanes(lane);
        }
    }
}

static void quantize_x_generic(quant_x *out, const float *x, size_t K)
{
    const size_t Kp = quant_columns(K), n_blocks = Kp / QUANT_BLOCK;
    for (size_t b = 0; b < (n_blocks + 15) / 16 * 16; b++) {
        const size_t k0 = b * QUANT_BLOCK, n = k0 < K ? (K - k0 < QUANT_BLOCK ? K - k0 : QUANT_BLOCK) : 0;
        float most = 0;
        for (size_t i = 0; i < n; i++) {
            most = fmaxf(most, fabsf(x[k0 + i]));
        }
        float inverse = most > 0 ? 127.0f / most : 0;
        int32_t sum = 0;
        for (size_t i = 0; i < QUANT_BLOCK && b < n_blocks; i++) {
            out->q[k0 + i] = (int8_t)(i < n ? rintf(x[k0 + i] * inverse) : 0.0f);
            sum += out->q[k0 + i];
            if (i % 4 == 3) {
                const int8_t *four = &out->q[k0 + i - 3];
                out->offset[(k0 + i) / 4] = -128 * (four[0] + four[1] + four[2] + four[3]);
            }
        }
        out->block_offset[b] = -128 * sum;
        out->scale[b] = most / 127.0f;
        out->sum[b] = out->scale[b] * (float)sum;
    }
}

/* Column k of a row of K: its stored number, less 128 for q8. */
static int32_t stored_number(dtype type, const unsigned char *row, size_t K, size_t k)
{
    if (type == DTYPE_Q8) {
        return row[k] - 128;
    }
    const unsigned both = row[k / 64 * 32 + k % 32], nibble = k % 64 < 32 ? both & 15u : both >> 4;
    if (type == DTYPE_Q4) {
        return (int32_t)nibble;
    }
    const unsigned fifth = quant_small_at(type, row, K).fifth[k / 8] >> k % 8 & 1u;
    return (int32_t)(k % 64 < 32 ? nibble | fifth << 4 : nibble << 1 | fifth);
}

/* The lanes of one product: each block's products as an integer are handed in, blocks rising. */
static void add_block(float lane[LANES], dtype type, const unsigned char *w, size_t K, size_t b, int32_t sum,
                      float x_scale, float x_sum)
{
    float *at = &lane[b % LANES], scale;
    if (type == DTYPE_Q8) {
        scale = bf16_at(w + quant_columns(K) + 2 * b);
    } else {
        const quant_small row = quant_small_at(type, w, K);
        scale = quant_scale(row.base, row.scale[b]);
        *at = fmaf(scale * row.step * (float)row.zero[b], x_sum, *at);
    }
    *at = fmaf((float)sum, scale * x_scale, *at);
}

static void dot_q_generic(dtype type, float *out, size_t out_stride, const void *x, size_t T, const void *w,
                          size_t N, size_t K)
{
    for (size_t t = 0; t < T; t++) {
        const quant_x row = quant_x_at(x, K, t);
        for (size_t n = 0; n < N; n++) {
            const unsigned char *weights = (const unsigned char *)w + n * quant_row_bytes(type, K);
            float lane[LANES] = {0};
            for (size_t b = 0; b < quant_columns(K) / QUANT_BLOCK; b++) {
                int32_t sum = 0;
                for (size_t k = b * QUANT_BLOCK; k < (b + 1) * QUANT_BLOCK; k++) {
                    sum += stored_number(type, weights, K, k) * row.q[k];
                }
                add_block(lane, type, weights, K, b, sum, row.scale[b], row.sum[b]);
            }
            out[t * out_stride + n] = add_lanes(lane);
        }
    }
}

static void panel_q_generic(dtype type, float *out, size_t out_stride, const quant_panel *x, size_t T,
                            const void *w, size_t N, size_t K)
{
    const size_t n_blocks = quant_columns(K) / QUANT_BLOCK;
    for (size_t t = 0; t < T; t++) {
        const quant_panel *panel = x + t / QUANT_PANEL_ROWS * n_blocks;
        const size_t row = t % QUANT_PANEL_ROWS, place = quant_panel_place(row);
        for (size_t n = 0; n < N; n++) {
            const unsigned char *weights = (const unsigned char *)w + n * quant_row_bytes(type, K);
            float lane[LANES] = {0};
            for (size_t b = 0; b < n_blocks; b++) {
                int32_t sum = 0;
                for (size_t k = 0; k < QUANT_BLOCK; k++) {
                    const uint32_t four = panel[b].q[k / 8][2 * row + k / 4 % 2];
                    sum += stored_number(type, weights, K, b * QUANT_BLOCK + k) * (int8_t)(four >> k % 4 * 8);
                }
                add_block(lane, type, weights, K, b, sum, panel[b].scale[place], panel[b].sum[place]);
            }
            out[t * out_stride + n] = add_lanes(lane);
        }
    }
}

/* Both of one type of weights. */
#define PRODUCTS_Q_GENERIC(name, type)                                                                       \
    static void dot_##name##_generic(float *out, size_t out_stride, const void *x, size_t T, const void *w,  \
                                     size_t N, size_t K)                                                     \
    {                                                                                                        \
        dot_q_generic(type, out, out_stride, x, T, w, N, K);                                                 \
    }                                                                                                        \
    static void panel_##name##_generic(float *out, size_t out_stride, const quant_panel *x, size_t T,        \
                                       const void *w, size_t N, size_t K)                                    \
    {                                                                                                        \
        panel_q_generic(type, out, out_stride, x, T, w, N, K);                                               \
    }
PRODUCTS_Q_GENERIC(q8, DTYPE_Q8)
PRODUCTS_Q_GENERIC(q4, DTYPE_Q4)
PRODUCTS_Q_GENERIC(q5, DTYPE_Q5)

static void tile_f32_generic(float *sums, const float *x, const float *w, size_t w_stride, size_t T, size_t N,
                             size_t K)
{
    for (size_t n = 0; n < N; n++) {
        for (size_t t = 0; t < T; t++) {
            float sum = 0;
            for (size_t k = 0; k < K; k++) {
                sum += x[k * TILE_ROWS + t] * w[n * w_stride + k];
            }
            sums[n * TILE_ROWS + t] += sum;
        }
    }
}

static void tile_bf16_generic(float *sums, const uint32_t *x, const void *w, size_t w_stride, size_t T,
                              size_t N, size_t K)
{
    for (size_t n = 0; n < N; n++) {
        for (size_t t = 0; t < T; t++) {
            float sum = 0, pair[2];
            for (size_t k = 0; k < K; k += 2) {
                uint32_t bits = x[k / 2 * TILE_ROWS + t];
                float even = bf16_to_f32((uint16_t)bits), odd = bf16_to_f32((uint16_t)(bits >> 16));
                widen_bf16_generic(pair, (const unsigned char *)w + 2 * (n * w_stride + k), 2);
                sum += even * pair[0] + odd * pair[1];
            }
            sums[n * TILE_ROWS + t] += sum;
        }
    }
}

static void unpack_small(dtype type, uint8_t *u, float *scale, float *minimum, const void *row, size_t K)
{
    const quant_small r = quant_small_at(type, row, K);
    for (size_t k = 0; k < quant_columns(K); k++) {
        u[k] = (uint8_t)stored_number(type, row, K, k);
    }
    for (size_t b = 0; b < quant_columns(K) / QUANT_BLOCK; b++) {
        scale[b] = quant_scale(r.base, r.scale[b]);
        minimum[b] = scale[b] * r.step * (float)r.zero[b];
    }
}

static void unpack_q4_generic(uint8_t *u, float *scale, float *minimum, const void *row, size_t K)
{
    unpack_small(DTYPE_Q4, u, scale, minimum, row, K);
}

static void unpack_q5_generic(uint8_t *u, float *scale, float *minimum, const void *row, size_t K)
{
    unpack_small(DTYPE_Q5, u, scale, minimum, row, K);
}

/* Blocks of a row that share a scale, x = scale * q; sums are those of a block's first half and of all of it. */
typedef struct rounded_share {
    int8_t q[TILE_SHARE][QUANT_BLOCK];
    int32_t sums[TILE_SHARE][2];
    float scale;
} rounded_share;

/* n blocks, of whose columns x has the first `known`; x: NULL where it has none. */
static void round_share(rounded_share *out, size_t n, const float *x, size_t known)
{
    float most = 0;
    for (size_t k = 0; k < known; k++) {
        most = fmaxf(most, fabsf(x[k]));
    }
    const float inverse = most > 0 ? 127.0f / most : 0;
    out->scale = most / 127.0f;
    for (size_t b = 0; b < n; b++) {
        int32_t sum = 0;
        for (size_t i = 0; i < QUANT_BLOCK; i++) {
            const size_t k = b * QUANT_BLOCK + i;
            out->q[b][i] = (int8_t)(k < known ? rintf(x[k] * inverse) : 0.0f);
            sum += out->q[b][i];
            out->sums[b][i / (QUANT_BLOCK / 2)] = sum;
        }
    }
}

/* Row t of a panel in 8 bits, blocks b0 .. b0+n-1, which share a scale. */
static void pack_q_row(tile_q_block *out, size_t b0, size_t n, size_t t, const float *x, size_t known)
{
    rounded_share r;
    round_share(&r, n, x, known);
    out[b0].scale[t] = r.scale;
    for (size_t b = 0; b < n; b++) {
        tile_q_block *block = &out[b0 + b];
        for (size_t i = 0; i < QUANT_BLOCK; i++) {
            const uint32_t byte = (uint32_t)(uint8_t)r.q[b][i] << (i % 4 * 8);
            block->q[i / 4][t] = i % 4 ? block->q[i / 4][t] | byte : byte;
        }
        block->offset_first[t] = -128 * r.sums[b][0];
        block->offset[t] = -128 * r.sums[b][1];
    }
}

static void pack_q_generic(tile_q_block *out, const float *x, size_t x_stride, size_t T, size_t K)
{
    const size_t n_blocks = quant_columns(K) / QUANT_BLOCK;
    for (size_t b = 0; b < n_blocks; b += TILE_SHARE) {
        const size_t n = n_blocks - b < TILE_SHARE ? n_blocks - b : TILE_SHARE, k = b * QUANT_BLOCK;
        const size_t left = k < K ? K - k : 0, most = n * QUANT_BLOCK;
        for (size_t t = 0; t < (T + 15) / 16 * 16; t++) {
            pack_q_row(out, b, n, t, t < T ? x + t * x_stride + k : NULL,
                       t >= T        ? 0
                       : left < most ? left
                                     : most);
        }
    }
}

/* The part that blocks b0 .. b1-1 give of w[n] . x[t], without the scale of x. */
static float tile_q_part(const tile_q_block *x, size_t t, const tile_q_rows *w, size_t n, size_t b0,
                         size_t b1)
{
    const size_t n_parts = w->halves ? 2 : 1, columns = QUANT_BLOCK / n_parts;
    const uint8_t *u = w->u + n * w->u_stride;
    float sum = 0;
    for (size_t b = b0; b < b1; b++) {
        for (size_t part = b * n_parts; part < (b + 1) * n_parts; part++) {
            const int32_t first = w->halves ? x[b].offset_first[t] : 0,
                          offset = w->halves && part % 2 == 0 ? first : x[b].offset[t] - first;
            int32_t whole = w->minimum ? 0 : offset;
            for (size_t i = part * columns; i < (part + 1) * columns; i++) {
                whole += u[i] * (int8_t)(x[b].q[i % QUANT_BLOCK / 4][t] >> (i % 4 * 8));
            }
            sum = fmaf((float)whole, w->scale[n * w->stride + part], sum);
        }
        if (w->minimum) {
            sum = fmaf(w->minimum[n * w->stride + b], (float)x[b].offset[t] * (-1.0f / 128), sum);
        }
    }
    return sum;
}

static void tile_q_generic(float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T, size_t N,
                           size_t n_blocks)
{
    for (size_t n = 0; n < N; n++) {
        for (size_t t = 0; t < T; t++) {
            float sum = 0;
            for (size_t b = 0; b < n_blocks; b += TILE_SHARE) {
                const size_t end = b + TILE_SHARE < n_blocks ? b + TILE_SHARE : n_blocks;
                sum = fmaf(tile_q_part(x, t, w, n, b, end), x[b].scale[t], sum);
            }
            sums[n * TILE_ROWS + t] = sum;
        }
    }
}

/* Row t of a share of n blocks; x has `known` columns of it. */
static void pack_x_row(tile_x_share *out, size_t n, size_t t, const float *x, size_t known)
{
    rounded_share r;
    round_share(&r, n, x, known);
    out->scale[t] = r.scale;
    for (size_t b = 0; b < n; b++) {
        memcpy(out->q[b][t], r.q[b], sizeof r.q[b]);
        out->offset_first[b][t] = -128 * r.sums[b][0];
        out->offset[b][t] = -128 * r.sums[b][1];
    }
}

static void pack_x_generic(tile_x_share *out, const float *x, size_t x_stride, size_t T, size_t K)
{
    const size_t n_blocks = quant_columns(K) / QUANT_BLOCK;
    for (size_t b = 0; b < n_blocks; b += TILE_SHARE, out++) {
        const size_t n = n_blocks - b < TILE_SHARE ? n_blocks - b : TILE_SHARE, k = b * QUANT_BLOCK;
        const size_t left = k < K ? K - k : 0, most = n * QUANT_BLOCK;
        for (size_t t = 0; t < T; t++) {
            pack_x_row(out, n, t, x + t * x_stride + k, left < most ? left : most);
        }
    }
}

static void turn_q_generic(const tile_q_turned *to, const tile_q_rows *w, size_t N, size_t n_blocks)
{
    enum { WORDS = QUANT_BLOCK / 4 };
    const size_t n_scales = w->halves ? 2 * n_blocks : n_blocks;
    for (size_t n = 0; n < (N + TILE_LANES - 1) / TILE_LANES * TILE_LANES; n++) {
        const size_t first = n / TILE_LANES, lane = n % TILE_LANES;
        for (size_t i = 0; i < n_blocks * WORDS; i++) {
            uint32_t word = 0;
            if (n < N) {
                memcpy(&word, w->u + n * w->u_stride + 4 * i, sizeof word);
            }
            to->u[(first * n_blocks * WORDS + i) * TILE_LANES + lane] = word;
        }
        for (size_t i = 0; i < n_scales; i++) {
            to->scale[(first * n_scales + i) * TILE_LANES + lane] = n < N ? w->scale[n * w->stride + i] : 0;
        }
        for (size_t i = 0; w->minimum && i < n_blocks; i++) {
            to->minimum[(first * n_blocks + i) * TILE_LANES + lane] =
                (n < N ? w->minimum[n * w->stride + i] : 0) * (-1.0f / 128);
        }
    }
}

/* What share x of blocks b0 .. b1-1 gives of w[n] . x[t], without the scale of x. */
static float turned_part(const tile_x_share *x, size_t t, const tile_q_turned *w, size_t n, size_t n_blocks,
                         size_t b0, size_t b1)
{
    enum { WORDS = QUANT_BLOCK / 4 };
    const size_t n_parts = w->halves ? 2 : 1, steps = WORDS / n_parts, lane = n % TILE_LANES;
    float sum = 0;
    for (size_t part = b0 * n_parts; part < b1 * n_parts; part++) {
        const size_t b = part / n_parts - b0;
        const int32_t first = w->halves ? x->offset_first[b][t] : 0,
                      offset = w->halves && part % 2 == 0 ? first : x->offset[b][t] - first;
        int32_t whole = w->minimum ? 0 : offset;
        for (size_t i = 0; i < steps; i++) {
            const uint32_t
                q = x->q[b][t][part % n_parts * steps + i],
                u = w->u[(n / TILE_LANES * n_blocks * WORDS + part * steps + i) * TILE_LANES + lane];
            for (size_t byte = 0; byte < 4; byte++) {
                whole += (uint8_t)(u >> 8 * byte) * (int8_t)(q >> 8 * byte);
            }
        }
        const size_t at = (n / TILE_LANES * n_blocks * n_parts + part) * TILE_LANES + lane;
        sum = fmaf((float)whole, w->scale[at], sum);
        sum = w->minimum ? fmaf(w->minimum[at], (float)offset, sum) : sum;
    }
    return sum;
}

static void tile_turned_generic(float *out, size_t out_stride, const tile_x_share *x, const tile_q_turned *w,
                                const float *bias, size_t T, size_t N, size_t n_blocks, prefetch_range ahead)
{
    const size_t n_shares = (n_blocks + TILE_SHARE - 1) / TILE_SHARE;
    (void)ahead;
    for (size_t t = 0; t < T; t++) {
        const tile_x_share *panel = x + t / TILE_X_ROWS * n_shares;
        const size_t row = t % TILE_X_ROWS;
        for (size_t n = 0; n < N; n++) {
            float sum = 0;
            for (size_t b = 0; b < n_blocks; b += TILE_SHARE) {
                const size_t end = b + TILE_SHARE < n_blocks ? b + TILE_SHARE : n_blocks;
                const tile_x_share *share = panel + b / TILE_SHARE;
                sum = fmaf(turned_part(share, row, w, n, n_blocks, b, end), share->scale[row], sum);
            }
            out[t * out_stride + n] = bias ? sum + bias[n] : sum;
        }
    }
}

static float peak_f32_generic(size_t rounds)
{
    float acc[PEAK_VECTORS * LANES], sum = 0;
    for (size_t i = 0; i < PEAK_VECTORS * LANES; i++) {
        acc[i] = (float)(i / LANES);
    }
    for (size_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < PEAK_VECTORS * LANES; i++) {
            acc[i] = acc[i] * 0.5f + 1.0f;
        }
    }
    for (size_t i = 0; i < PEAK_VECTORS * LANES; i++) {
        sum += acc[i];
    }
    return sum;
}

static float read_generic(const float *p, size_t n, size_t streams)
{
    float sum[LANES] = {0};
    (void)streams;
    for (size_t i = 0; i < n; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            sum[j] += p[i + j];
        }
    }
    for (size_t j = 1; j < LANES; j++) {
        sum[0] += sum[j];
    }
    return sum[0];
}

static void mul_add_generic(float *restrict c, size_t c_stride, const float *restrict a, size_t a_stride,
                            const float *restrict b, size_t b_stride, size_t M, size_t K, size_t N)
{
    for (size_t m = 0; m < M; m++) {
        for (size_t k = 0; k < K; k++) {
            float f = a[m * a_stride + k];
            for (size_t n = 0; n < N; n++) {
                c[m * c_stride + n] += f * b[k * b_stride + n];
            }
        }
    }
}

static void mul_generic(float *restrict c, size_t c_stride, const float *restrict a, size_t a_stride,
                        const float *restrict b, size_t b_stride, size_t M, size_t K, size_t N)
{
    for (size_t m = 0; m < M; m++) {
        memset(c + m * c_stride, 0, N * sizeof *c);
    }
    mul_add_generic(c, c_stride, a, a_stride, b, b_stride, M, K, N);
}

static void transpose_generic(float *out, size_t out_stride, const float *in, size_t in_stride, size_t M,
                              size_t N)
{
    for (size_t m = 0; m < M; m++) {
        for (size_t n = 0; n < N; n++) {
            out[n * out_stride + m] = in[m * in_stride + n];
        }
    }
}

static void add_generic(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] += x[i];
    }
}

static void scale_generic(float *x, float s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] *= s;
    }
}

static double sum_squares(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sum;
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static float silu(float x)
{
    return x / (1.0f + expf(-x));
}

static void rmsnorm_generic(float *out, const float *x, const float *w, float eps, size_t n)
{
    float r = (float)(1.0 / sqrt(sum_squares(x, n) / (double)n + (double)eps));
    for (size_t i = 0; i < n; i++) {
        out[i] = x[i] * r * w[i];
    }
}

static void rmsnorm_gated_generic(float *out, const float *x, const float *z, const float *w, float eps,
                                  size_t n)
{
    float r = (float)(1.0 / sqrt(sum_squares(x, n) / (double)n + (double)eps));
    for (size_t i = 0; i < n; i++) {
        out[i] = x[i] * r * w[i] * silu(z[i]);
    }
}

static void layernorm_generic(float *out, const float *x, const float *w, const float *b, float eps, size_t n)
{
    double mean = 0, variance = 0;
    for (size_t i = 0; i < n; i++) {
        mean += (double)x[i];
    }
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) {
        double d = (double)x[i] - mean;
        variance += d * d;
    }
    double r = 1.0 / sqrt(variance / (double)n + (double)eps);
    for (size_t i = 0; i < n; i++) {
        out[i] = (float)(((double)x[i] - mean) * r) * w[i] + b[i];
    }
}

static void l2norm_generic(float *out, const float *x, float s, size_t n)
{
    float r = (float)(1.0 / sqrt(sum_squares(x, n) + 1e-6)) * s;
    for (size_t i = 0; i < n; i++) {
        out[i] = x[i] * r;
    }
}

static void exp_generic(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = expf(x[i]);
    }
}

static void silu_mul_generic(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        gate[i] = silu(gate[i]) * up[i];
    }
}

static void sigmoid_mul_generic(float *x, const float *gate, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] *= sigmoid(gate[i]);
    }
}

/* 0.5 x (1 + tanh(u)) = x sigmoid(2u), which keeps its relative accuracy for negative x. */
static void gelu_tanh_generic(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i];
        double u = 0.79788456080286535588 * (v + 0.044715 * v * v * v);
        x[i] = (float)(v / (1.0 + exp(-2.0 * u)));
    }
}

/* 0.5 x (1 + erf(x / sqrt 2)) = 0.5 x erfc(-x / sqrt 2), for the same reason. */
static void gelu_erf_generic(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i];
        x[i] = (float)(0.5 * v * erfc(-v * 0.70710678118654752440));
    }
}

static void rope_generic(float *x, const float *cos, const float *sin, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float a = x[i], b = x[i + n];
        x[i] = a * cos[i] - b * sin[i];
        x[i + n] = b * cos[i] + a * sin[i];
    }
}

static float softmax_tile_generic(float *s, size_t n, float *max, float *sum)
{
    float top = *max, lane[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        top = s[i] > top ? s[i] : top;
    }
    for (size_t i = 0; i < n; i++) {
        s[i] = expf(s[i] - top);
        lane[i % LANES] += s[i];
    }
    float factor = expf(*max - top);
    *max = top;
    *sum = *sum * factor + add_lanes(lane);
    return factor;
}

static void conv_silu_generic(float *out, size_t out_stride, const float *u, size_t u_stride,
                              const float *tail, size_t tail_stride, const float *w, const float *bias,
                              size_t T, size_t n)
{
    for (size_t t = 0; t < T; t++) {
        for (size_t c = 0; c < n; c++) {
            float y = bias ? bias[c] : 0;
            for (size_t j = 0; j < 4; j++) {
                size_t row = t + j; /* counted from three rows before the first */
                y += w[c * 4 + j] * (row < 3 ? tail[row * tail_stride + c] : u[(row - 3) * u_stride + c]);
            }
            out[t * out_stride + c] = silu(y);
        }
    }
}

static void delta_step_generic(float *restrict out, float *to, const float *S, size_t stride, const float *q,
                               const float *k, const float *v, float beta, float decay, size_t dk, size_t n,
                               const float *next)
{
    (void)next;
    for (size_t j = 0; j < n; j++) {
        float m = 0, o = 0;
        for (size_t i = 0; i < dk; i++) {
            m += S[i * stride + j] * decay * k[i];
        }
        float d = beta * (v[j] - m);
        for (size_t i = 0; i < dk; i++) {
            to[i * stride + j] = S[i * stride + j] * decay + k[i] * d;
            o += to[i * stride + j] * q[i];
        }
        out[j] = o;
    }
}

const ops *ops_generic(void)
{
    static const ops table = {
        .name = "generic",
        .widen = {widen_f32_generic, widen_bf16_generic, widen_f16_generic},
        .dot_rows = {dot_rows_f32_generic, dot_rows_bf16_generic, dot_rows_f16_generic},
        .quantize_x = quantize_x_generic,
        .dot_q = {dot_q8_generic, dot_q4_generic, dot_q5_generic},
        .panel_q = {panel_q8_generic, panel_q4_generic, panel_q5_generic},
        .tile_f32 = tile_f32_generic,
        .pack_bf16 = pack_bf16_generic,
        .tile_bf16 = tile_bf16_generic,
        .round_bf16 = round_bf16_generic,
        .dot_bf16 = dot_bf16_generic,
        .unpack_q = {unpack_q4_generic, unpack_q5_generic},
        .pack_q = pack_q_generic,
        .tile_q = tile_q_generic,
        .pack_x = pack_x_generic,
        .turn_q = turn_q_generic,
        .tile_turned = tile_turned_generic,
        .peak_f32 = peak_f32_generic,
        .read = read_generic,
        .ggml = ggml_kernels_generic,
        .kv = KV_OPS_GENERIC,
        .mul = mul_generic,
        .mul_add = mul_add_generic,
        .transpose = transpose_generic,
        .add = add_generic,
        .scale = scale_generic,
        .rmsnorm = rmsnorm_generic,
        .rmsnorm_gated = rmsnorm_gated_generic,
        .layernorm = layernorm_generic,
        .l2norm = l2norm_generic,
        .exp = exp_generic,
        .silu_mul = silu_mul_generic,
        .sigmoid_mul = sigmoid_mul_generic,
        .gelu_tanh = gelu_tanh_generic,
        .gelu_erf = gelu_erf_generic,
        .rope = rope_generic,
        .softmax_tile = softmax_tile_generic,
        .attend_q = attend_q_generic,
        .conv_silu = conv_silu_generic,
        .delta_step = delta_step_generic,
    };
    return &table;
}
