/* Blocks of 8, 4 and 5 bits with AVX2. The products of bytes are sums of two in 16 bits: for q8 the
 * sign of a weight moves to the activation, so that 127 * 127 * 2 still fits. */
#include "compute/kernels/ops_q.h"

#if defined(__AVX2__)

#include <string.h>

#include "compute/formats/half.h"
#include "compute/kernels/vec_avx2.h"

/* ---- activations ---- */

static ALWAYS_INLINE __m256i round_8(const float *x, __m256 inverse)
{
    return _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
}

static ALWAYS_INLINE float largest_8(__m256 v)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

static ALWAYS_INLINE void quantize_block(quant_x *out, const float *x, size_t b)
{
    const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    __m256 most = _mm256_setzero_ps();
    for (size_t i = 0; i < QUANT_BLOCK; i += 8) {
        most = _mm256_max_ps(_mm256_and_ps(_mm256_loadu_ps(x + i), no_sign), most);
    }
    float largest = largest_8(most);
    __m256 inverse = _mm256_set1_ps(largest > 0 ? 127.0f / largest : 0);
    __m256i a = _mm256_packs_epi32(round_8(x, inverse), round_8(x + 8, inverse));
    __m256i c = _mm256_packs_epi32(round_8(x + 16, inverse), round_8(x + 24, inverse));
    __m256i q = _mm256_packs_epi16(a, c);
    q = _mm256_permutevar8x32_epi32(q, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)(void *)(out->q + b * QUANT_BLOCK), q);
    __m256i fours = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q), _mm256_set1_epi16(1));
    _mm256_storeu_si256((__m256i *)(void *)(out->offset + b * 8),
                        _mm256_slli_epi32(_mm256_sub_epi32(_mm256_setzero_si256(), fours), 7));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    out->block_offset[b] = -128 * _mm_cvtsi128_si32(sum);
    out->scale[b] = largest / 127.0f;
    out->sum[b] = out->scale[b] * (float)_mm_cvtsi128_si32(sum);
}

void quantize_x_avx2(quant_x *out, const float *x, size_t K)
{
    const size_t n_blocks = quant_columns(K) / QUANT_BLOCK;
    for (size_t b = 0; b < n_blocks; b++) {
        const size_t k = b * QUANT_BLOCK;
        if (k + QUANT_BLOCK <= K) {
            quantize_block(out, x + k, b);
        } else {
            float padded[QUANT_BLOCK] = {0};
            memcpy(padded, x + k, (k < K ? K - k : 0) * sizeof *x);
            quantize_block(out, padded, b);
        }
    }
    for (size_t b = n_blocks; b < (n_blocks + 15) / 16 * 16; b++) {
        out->block_offset[b] = 0;
        out->scale[b] = out->sum[b] = 0;
    }
}

/* ---- products ---- */

static ALWAYS_INLINE __m256i load_32(const void *p)
{
    return _mm256_loadu_si256(p);
}

/* Eight sums of four products: x signed, u at most 127. */
static ALWAYS_INLINE __m256i sums_of_four(__m256i u, __m256i x)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(u, x), _mm256_set1_epi16(1));
}

/* The numbers of block b of a row of q4 or q5, whose fifth bits begin at `fifth`. */
static ALWAYS_INLINE __m256i small_numbers(const dtype type, const unsigned char *w,
                                           const unsigned char *fifth, size_t b)
{
    const __m256i both = load_32(w + b / 2 * QUANT_BLOCK);
    const __m256i u = _mm256_and_si256(b % 2 ? _mm256_srli_epi16(both, 4) : both, _mm256_set1_epi8(15));
    if (type == DTYPE_Q4) {
        return u;
    }
    int32_t bits;
    memcpy(&bits, fifth + b * sizeof bits, sizeof bits);
    const __m256i place = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303),
                  of_byte = _mm256_set1_epi64x((long long)0x8040201008040201u),
                  spread = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), place), of_byte),
                  set = _mm256_cmpeq_epi8(spread, of_byte);
    return b % 2 ? _mm256_sub_epi8(_mm256_add_epi8(u, u), set)
                 : _mm256_or_si256(u, _mm256_and_si256(set, _mm256_set1_epi8(16)));
}

/* Eight sums of four products of block b of a row. */
static ALWAYS_INLINE __m256i block_sums(const dtype type, const unsigned char *w, const unsigned char *fifth,
                                        const quant_x *x, size_t b)
{
    const __m256i xv = load_32(x->q + b * QUANT_BLOCK);
    if (type != DTYPE_Q8) {
        return sums_of_four(small_numbers(type, w, fifth, b), xv);
    }
    const __m256i signed_w = _mm256_xor_si256(load_32(w + b * QUANT_BLOCK), _mm256_set1_epi8((char)0x80));
    return sums_of_four(_mm256_abs_epi8(signed_w), _mm256_sign_epi8(xv, signed_w));
}

/* The whole sums of eight blocks, which have eight lanes each. */
static ALWAYS_INLINE __m256i whole_sums(const __m256i p[8])
{
    __m256i half[2]; /* blocks 4i .. 4i+3: their lanes 0 .. 3, then 4 .. 7 */
    for (size_t i = 0; i < 2; i++) {
        half[i] = _mm256_hadd_epi32(_mm256_hadd_epi32(p[4 * i], p[4 * i + 1]),
                                    _mm256_hadd_epi32(p[4 * i + 2], p[4 * i + 3]));
    }
    return _mm256_add_epi32(_mm256_permute2x128_si256(half[0], half[1], 0x20),
                            _mm256_permute2x128_si256(half[0], half[1], 0x31));
}

/* Eight bf16, or the first n of them. */
static ALWAYS_INLINE __m256 widen_eight(const unsigned char *p, size_t n)
{
    uint16_t bits[8] = {0};
    memcpy(bits, p, n < 8 ? n * sizeof *bits : sizeof bits);
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)bits));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* Eight bytes as numbers, or the first n of them. */
static ALWAYS_INLINE __m256i widen_bytes(const unsigned char *p, size_t n)
{
    int64_t bits = 0;
    memcpy(&bits, p, n < 8 ? n : sizeof bits);
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bits));
}

/* Scales and minima of blocks b .. b+7 of a row of q4 or q5, or of the first n of them. */
static ALWAYS_INLINE __m256 small_scales(const quant_small *row, size_t b, size_t n, __m256 *minimum)
{
    const __m256i bits = _mm256_slli_epi32(widen_bytes(row->scale + b, n), QUANT_SCALE_SHIFT);
    const __m256 scale = _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32((int32_t)row->base)));
    const __m256 zero = _mm256_cvtepi32_ps(widen_bytes(row->zero + b, n));
    *minimum = _mm256_mul_ps(_mm256_mul_ps(scale, _mm256_set1_ps(row->step)), zero);
    return scale;
}

static ALWAYS_INLINE float dot_row(const dtype type, const quant_x *x, const unsigned char *w, size_t K)
{
    const size_t Kp = quant_columns(K), n_blocks = Kp / QUANT_BLOCK;
    const quant_small small = type == DTYPE_Q8 ? (quant_small){0} : quant_small_at(type, w, K);
    __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}; /* lanes 0 .. 7, and 8 .. 15 */
    for (size_t b = 0; b < n_blocks; b += 8) {
        const size_t n = n_blocks - b < 8 ? n_blocks - b : 8;
        __m256 *to = &sum[b / 8 % 2], scale;
        __m256i p[8];
        for (size_t i = 0; i < 8; i++) {
            p[i] = i < n ? block_sums(type, w, small.fifth, x, b + i) : _mm256_setzero_si256();
        }
        if (type == DTYPE_Q8) {
            scale = widen_eight(w + Kp + 2 * b, n);
        } else {
            __m256 minimum;
            scale = small_scales(&small, b, n, &minimum);
            *to = _mm256_fmadd_ps(minimum, _mm256_loadu_ps(x->sum + b), *to);
        }
        scale = _mm256_mul_ps(scale, _mm256_loadu_ps(x->scale + b));
        *to = _mm256_fmadd_ps(_mm256_cvtepi32_ps(whole_sums(p)), scale, *to);
    }
    return v_sum((vec){sum[0], sum[1]});
}

static ALWAYS_INLINE void dot_rows_q(const dtype type, float *out, size_t out_stride, const void *x, size_t T,
                                     const void *w, size_t N, size_t K)
{
    const size_t row = quant_row_bytes(type, K);
    for (size_t n = 0; n < N; n++) {
        for (size_t t = 0; t < T; t++) {
            const quant_x xt = quant_x_at(x, K, t);
            out[t * out_stride + n] = dot_row(type, &xt, (const unsigned char *)w + n * row, K);
        }
    }
}

void dot_q8_avx2(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K)
{
    dot_rows_q(DTYPE_Q8, out, out_stride, x, T, w, N, K);
}

void dot_q4_avx2(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K)
{
    dot_rows_q(DTYPE_Q4, out, out_stride, x, T, w, N, K);
}

void dot_q5_avx2(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K)
{
    dot_rows_q(DTYPE_Q5, out, out_stride, x, T, w, N, K);
}

/* ---- tiles ---- */

static ALWAYS_INLINE void unpack_small(const dtype type, uint8_t *u, float *scale, float *minimum,
                                       const void *row, size_t K)
{
    const quant_small r = quant_small_at(type, row, K);
    const size_t n_blocks = quant_columns(K) / QUANT_BLOCK;
    for (size_t b = 0; b < n_blocks; b += 2) {
        _mm256_storeu_si256((void *)(u + b * QUANT_BLOCK), small_numbers(type, r.numbers, r.fifth, b));
        _mm256_storeu_si256((void *)(u + (b + 1) * QUANT_BLOCK),
                            small_numbers(type, r.numbers, r.fifth, b + 1));
    }
    for (size_t b = 0; b < n_blocks; b += 8) {
        const size_t n = n_blocks - b < 8 ? n_blocks - b : 8;
        float some[2][8];
        __m256 minima, scales = small_scales(&r, b, n, &minima);
        if (n == 8) {
            _mm256_storeu_ps(scale + b, scales);
            _mm256_storeu_ps(minimum + b, minima);
            continue;
        }
        _mm256_storeu_ps(some[0], scales);
        _mm256_storeu_ps(some[1], minima);
        memcpy(scale + b, some[0], n * sizeof *scale);
        memcpy(minimum + b, some[1], n * sizeof *minimum);
    }
}

void unpack_q4_avx2(uint8_t *u, float *scale, float *minimum, const void *row, size_t K)
{
    unpack_small(DTYPE_Q4, u, scale, minimum, row, K);
}

void unpack_q5_avx2(uint8_t *u, float *scale, float *minimum, const void *row, size_t K)
{
    unpack_small(DTYPE_Q5, u, scale, minimum, row, K);
}

/* 4 sums, 4 accumulators of the present block, the weights, and what is left for products. */
enum { TILE_N = 2, TILE_V = 2, TILE_SIDE = 8 };

static ALWAYS_INLINE __m256i four_weights(const uint8_t *at)
{
    int32_t bits;
    memcpy(&bits, at, sizeof bits);
    return _mm256_set1_epi32(bits);
}

/* acc += products of a vector of x with the bytes u, or u - 128. Small ones (u <= 15) add up in 16
 * bits over a block: 8 * 2 * 15 * 127 fits. */
static ALWAYS_INLINE __m256i add_products(const bool small, __m256i acc, __m256i u, __m256i x)
{
    if (small) {
        return _mm256_add_epi16(acc, _mm256_maddubs_epi16(u, x));
    }
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(u), _mm256_sign_epi8(x, u));
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* The sum of a part in 32 bits. What was taken from u for add_products comes back: the offset is
 * -128 times the sum of x. */
static ALWAYS_INLINE __m256 whole_sum(const tile_kind kind, __m256i acc, const int32_t *offset)
{
    if (kind == TILE_MINIMA) {
        acc = _mm256_madd_epi16(acc, _mm256_set1_epi16(1));
    } else if (kind == TILE_WIDE) {
        acc = _mm256_sub_epi32(acc, _mm256_loadu_si256((const void *)offset));
    }
    return _mm256_cvtepi32_ps(acc);
}

/* Adds the products of part i of the present TILE_SHARE blocks, which begin at x and at u, scale and
 * minimum of the weights. */
static ALWAYS_INLINE void add_part(const tile_kind kind, __m256 sum[TILE_N][TILE_V], const tile_q_block *x,
                                   size_t t, const tile_q_rows *w, const uint8_t *u, const float *scale,
                                   const float *minimum, size_t i, const size_t nn, const size_t nv)
{
    const bool small = kind == TILE_MINIMA, minima = small || kind == TILE_WIDE;
    const size_t n_parts = kind == TILE_HALVES ? 2 : 1, steps = QUANT_BLOCK / 4 / n_parts, part = i % n_parts;
    __m256i acc[TILE_N][TILE_V];
    x += i / n_parts;
    u += i * (QUANT_BLOCK / n_parts);
    for (size_t n = 0; n < nn; n++) {
        for (size_t v = 0; v < nv; v++) {
            acc[n][v] = _mm256_setzero_si256();
        }
    }
    for (size_t k = 0; k < steps; k++) {
        for (size_t n = 0; n < nn; n++) {
            __m256i wv = four_weights(u + n * w->u_stride + 4 * k);
            wv = small ? wv : _mm256_xor_si256(wv, _mm256_set1_epi8((char)0x80));
            for (size_t v = 0; v < nv; v++) {
                const __m256i xv = load_32(&x->q[part * steps + k][t + v * TILE_SIDE]);
                acc[n][v] = add_products(small, acc[n][v], wv, xv);
            }
        }
    }
    for (size_t v = 0; v < nv; v++) {
        const int32_t *offset = &x->offset[t + v * TILE_SIDE];
        const __m256 x_sum = _mm256_mul_ps(_mm256_cvtepi32_ps(load_32(offset)), _mm256_set1_ps(-1.0f / 128));
        for (size_t n = 0; n < nn; n++) {
            const __m256 whole = whole_sum(kind, acc[n][v], offset);
            sum[n][v] = _mm256_fmadd_ps(whole, _mm256_set1_ps(scale[n * w->stride + i]), sum[n][v]);
            if (minima) {
                sum[n][v] = _mm256_fmadd_ps(_mm256_set1_ps(minimum[n * w->stride + i]), x_sum, sum[n][v]);
            }
        }
    }
}

static ALWAYS_INLINE void tile_block(const tile_kind kind, float *sums, const tile_q_block *x, size_t t,
                                     const tile_q_rows *w, size_t n0, size_t n_blocks, const size_t nn,
                                     const size_t nv)
{
    const size_t n_parts = kind == TILE_HALVES ? 2 : 1;
    sums += n0 * TILE_ROWS + t;
    for (size_t b = 0; b < n_blocks; b += TILE_SHARE) {
        const size_t share = n_blocks - b < TILE_SHARE ? n_blocks - b : TILE_SHARE;
        __m256 sum[TILE_N][TILE_V];
        for (size_t n = 0; n < nn; n++) {
            for (size_t v = 0; v < nv; v++) {
                sum[n][v] = _mm256_setzero_ps();
            }
        }
        for (size_t i = 0; i < share * n_parts; i++) {
            add_part(kind, sum, x + b, t, w, w->u + n0 * w->u_stride + b * QUANT_BLOCK,
                     w->scale + n0 * w->stride + b * n_parts,
                     w->minimum ? w->minimum + n0 * w->stride + b : NULL, i, nn, nv);
        }
        for (size_t v = 0; v < nv; v++) {
            const __m256 x_scale = _mm256_loadu_ps(&x[b].scale[t + v * TILE_SIDE]);
            for (size_t n = 0; n < nn; n++) {
                float *at = sums + n * TILE_ROWS + v * TILE_SIDE;
                const __m256 before = b == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(at);
                _mm256_storeu_ps(at, _mm256_fmadd_ps(sum[n][v], x_scale, before));
            }
        }
    }
}

/* All rows of weights against nv vectors. */
static ALWAYS_INLINE void tile_vectors(const tile_kind kind, float *sums, const tile_q_block *x, size_t t,
                                       const tile_q_rows *w, size_t N, size_t n_blocks, const size_t nv)
{
    size_t n = 0;
    for (; n + TILE_N <= N; n += TILE_N) {
        tile_block(kind, sums, x, t, w, n, n_blocks, TILE_N, nv);
    }
    if (n < N) {
        tile_block(kind, sums, x, t, w, n, n_blocks, 1, nv);
    }
}

static ALWAYS_INLINE void tile_q_blocks(const tile_kind kind, float *sums, const tile_q_block *x,
                                        const tile_q_rows *w, size_t T, size_t N, size_t n_blocks)
{
    size_t t = 0;
    for (; t + TILE_SIDE < T; t += 2 * TILE_SIDE) {
        tile_vectors(kind, sums, x, t, w, N, n_blocks, 2);
    }
    if (t < T) {
        tile_vectors(kind, sums, x, t, w, N, n_blocks, 1);
    }
}

void tile_q_avx2(float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T, size_t N,
                 size_t n_blocks)
{
    tile_q_of(tile_q_blocks, sums, x, w, T, N, n_blocks);
}

#endif
