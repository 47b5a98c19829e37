/* The block types of GGUF files with AVX2: products of bytes are sums of two in 16 bits, so where u
 * may pass 127 the sign of a weight moves to the activation. */
#include "compute/kernels/ops_ggml.h"

#if defined(__AVX2__)

#include "compute/kernels/ops_ggml_simd.h"
#include "compute/kernels/vec_avx2.h"

enum { BLOCKS = GGML_SPAN / 32 };

/* The scales and minima of a span as floats: [16] for parts of 16 columns, [8] for blocks of 32. */
static ALWAYS_INLINE void store_scales(const dtype type, const uint8_t *span, float s[16], float m[16])
{
    const span_scales scales = scales_of(type, span);
    v_store(s, (vec){scales.s[0], scales.s[1]});
    v_store(m, (vec){scales.m[0], scales.m[1]});
}

/* Eight sums of four x.q * (u - zero). */
static ALWAYS_INLINE __m256 products_of(const dtype type, __m256i u, __m256i q, __m256i offset)
{
    const __m256i ones = _mm256_set1_epi16(1);
    if (zero_shift(type) == 0) {
        const __m256i w = _mm256_xor_si256(u, _mm256_set1_epi8((char)0x80));
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(q, w));
        return _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, ones));
    }
    if (type == DTYPE_AF8) { /* two products of whole bytes may pass 16 bits: the upper bit goes by itself */
        const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(u, 7), _mm256_set1_epi8(1));
        const __m256i lower = _mm256_and_si256(u, _mm256_set1_epi8(127));
        const __m256i sum_lower = _mm256_madd_epi16(_mm256_maddubs_epi16(lower, q), ones);
        const __m256i sum_upper = _mm256_madd_epi16(_mm256_maddubs_epi16(upper, q), ones);
        return _mm256_cvtepi32_ps(_mm256_add_epi32(sum_lower, _mm256_slli_epi32(sum_upper, 7)));
    }
    __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(u, q), ones);
    if (zero_shift(type) > 0) {
        sum = _mm256_add_epi32(sum, _mm256_srai_epi32(offset, zero_shift(type)));
    }
    return _mm256_cvtepi32_ps(sum);
}

/* Numbers 0 .. 15 of a block's two parts, each for four lanes. */
static ALWAYS_INLINE __m256 part_pair(const float *v)
{
    return _mm256_set_m128(_mm_set1_ps(v[1]), _mm_set1_ps(v[0]));
}

/* One block's share; s, m as of store_scales. Blocks of even number go to the lower lanes. */
static ALWAYS_INLINE void add_block(const dtype type, vec *sum, __m256i u, const quant_x *x, size_t at,
                                    size_t b, const float *s, const float *m)
{
    const size_t block = at / 32 + b;
    const __m256i offset = _mm256_loadu_si256((const void *)(x->offset + block * 8));
    const __m256 x_scale = _mm256_set1_ps(x->scale[block]);
    __m256 *half = b % 2 ? &sum->hi : &sum->lo;
    if (type == DTYPE_Q2_K) { /* the offset is -128 times the sum */
        __m256 sums =
            _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_setzero_si256(), _mm256_srai_epi32(offset, 7)));
        *half = _mm256_fmadd_ps(sums, _mm256_mul_ps(part_pair(m + 2 * b), x_scale), *half);
    }
    const __m256 scale = is_part_16(type) ? part_pair(s + 2 * b) : _mm256_set1_ps(s[b]);
    const __m256i q = _mm256_loadu_si256((const void *)(x->q + block * 32));
    *half = _mm256_fmadd_ps(products_of(type, u, q, offset), _mm256_mul_ps(scale, x_scale), *half);
}

/* Results of one row of weights and nt of x. */
static ALWAYS_INLINE void dot_row(const dtype type, float *out, size_t out_stride, const void *x, size_t t0,
                                  const size_t nt, const uint8_t *w, size_t K)
{
    uint8_t room[SPAN_ROOM];
    float s[16], m[16];
    quant_x rows[ROWS_T];
    vec sum[ROWS_T];
    for (size_t t = 0; t < nt; t++) {
        rows[t] = quant_x_at(x, K, t0 + t);
        sum[t] = v_set1(0.0f);
    }
    for (size_t at = 0; at < K; at += GGML_SPAN, w += span_bytes(type)) {
        const uint8_t *span = whole_span(type, w, K - at, room);
        prefetch_block(type, w);
        const size_t left = (K - at + 63) / 64 * 2, n = left < BLOCKS ? left : BLOCKS;
        store_scales(type, span, s, m);
        for (size_t t = 0; has_minimum_32(type) && t < nt; t++) {
            const __m256 sums = _mm256_loadu_ps(rows[t].sum + at / 32);
            sum[t].lo = _mm256_fmadd_ps(_mm256_loadu_ps(m), sums, sum[t].lo);
        }
        for (size_t b = 0; b < n; b++) {
            const __m256i u = block_codes(type, span, b);
            for (size_t t = 0; t < nt; t++) {
                add_block(type, &sum[t], u, &rows[t], at, b, s, m);
            }
        }
    }
    for (size_t t = 0; t < nt; t++) {
        out[(t0 + t) * out_stride] = v_sum(sum[t]);
    }
}

/* ---- as floats ---- */

static ALWAYS_INLINE void widen_block(const dtype type, float *out, const uint8_t *span, size_t b,
                                      const float *s, const float *m)
{
    const float zero = ggml_format_of(type)->zero;
    uint8_t u[32];
    _mm256_storeu_si256((void *)u, block_codes(type, span, b));
    for (size_t i = 0; i < 32; i += 8) {
        const size_t at = is_part_16(type) ? 2 * b + i / 16 : b;
        __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(u + i))));
        value = _mm256_sub_ps(value, _mm256_set1_ps(zero));
        _mm256_storeu_ps(out + i, _mm256_fmadd_ps(_mm256_set1_ps(s[at]), value, _mm256_set1_ps(m[at])));
    }
}

static ALWAYS_INLINE void widen_row(const dtype type, float *out, const uint8_t *w, size_t K)
{
    uint8_t room[SPAN_ROOM];
    float s[16], m[16];
    for (size_t at = 0; at < K; at += GGML_SPAN, w += span_bytes(type)) {
        const uint8_t *span = whole_span(type, w, K - at, room);
        store_scales(type, span, s, m);
        for (size_t b = 0; b < BLOCKS && at + b * 32 < K; b++) {
            widen_block(type, out + at + b * 32, span, b, s, m);
        }
    }
}

/* ---- for tiles ---- */

static ALWAYS_INLINE void unpack_row(const dtype type, uint8_t *u, float *scale, float *minimum,
                                     const uint8_t *w, size_t K)
{
    const unsigned zero = ggml_format_of(type)->zero;
    const uint8_t more = (uint8_t)(zero ? 128 - zero : 0);
    const size_t n_blocks = quant_columns(K) / 32, scales_a_block = ggml_has_halves(type) ? 2 : 1;
    uint8_t room[SPAN_ROOM];
    for (size_t at = 0; at < n_blocks; at += BLOCKS, w += span_bytes(type)) {
        const size_t n = n_blocks - at < BLOCKS ? n_blocks - at : BLOCKS;
        const uint8_t *span = whole_span(type, w, K - at * 32, room);
        float s[16], m[16];
        prefetch_block(type, w);
        store_scales(type, span, s, m);
        for (size_t b = 0; b < n; b++) {
            const __m256i codes = _mm256_add_epi8(block_codes(type, span, b), _mm256_set1_epi8((char)more));
            _mm256_storeu_si256((void *)(u + (at + b) * 32), codes);
        }
        memcpy(scale + at * scales_a_block, s, n * scales_a_block * sizeof *s);
        if (has_minimum_32(type)) {
            memcpy(minimum + at, m, n * sizeof *m);
        }
    }
}

#define DEFINE(NAME)                                                                                         \
    GGML_DEFINE_DOT(NAME)                                                                                    \
    void widen_##NAME##_avx2(float *out, const void *row, size_t K)                                          \
    {                                                                                                        \
        widen_row(DTYPE_##NAME, out, row, K);                                                                \
    }                                                                                                        \
    void unpack_##NAME##_avx2(uint8_t *u, float *scale, float *minimum, const void *row, size_t K)           \
    {                                                                                                        \
        unpack_row(DTYPE_##NAME, u, scale, minimum, row, K);                                                 \
    }
GGML_FOR_ALL(DEFINE)

#define MEMBER(NAME) [DTYPE_##NAME - DTYPE_Q8_0] = {dot_##NAME, widen_##NAME##_avx2, unpack_##NAME##_avx2},
const ggml_kernels ggml_kernels_avx2[GGML_TYPES] = {GGML_FOR_ALL(MEMBER)};

#endif
