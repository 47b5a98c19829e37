/* ops_ggml_simd: what the vector kernels on the block types of GGUF files share: 32 columns of a
 * span as bytes, and its scales. For ops_ggml_avx2.c and ops_ggml_vnni.c alone, after immintrin.h.
 * Any thread. Layouts: ggml_blocks.h.
 *
 *     __m256i u = block_codes(DTYPE_Q4_K, span, b);
 *
 * `type` is a constant everywhere, so that each function becomes the few instructions of its type.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_GGML_SIMD_H
#define PARLEY_COMPUTE_KERNELS_OPS_GGML_SIMD_H

#include <immintrin.h>
#include <string.h>

#include "compute/kernels/kernel.h"
#include "compute/kernels/ops_ggml.h"

/* Scales and minima: of eight blocks of 32 columns in s[0] and m[0]; or of 16 parts of 16 in
 * both. */
typedef struct span_scales {
    __m256 s[2], m[2];
} span_scales;

/* Whether a block has 32 columns, and not 256. */
static ALWAYS_INLINE bool is_block_32(const dtype type)
{
    return ggml_format_of(type)->columns == 32;
}

/* Whether 16 columns have a scale of their own. */
static ALWAYS_INLINE bool is_part_16(const dtype type)
{
    return type == DTYPE_Q2_K || ggml_has_halves(type);
}

static ALWAYS_INLINE bool has_minimum_32(const dtype type)
{
    return ggml_format_of(type)->minimum == 32;
}

static ALWAYS_INLINE size_t block_bytes(const dtype type)
{
    return ggml_format_of(type)->bytes;
}

static ALWAYS_INLINE size_t span_bytes(const dtype type)
{
    return ggml_span_bytes(ggml_format_of(type));
}

/* By how much quant_x.offset (-128 times a sum) is shifted to become -zero times it; -1 where zero
 * is 0. */
static ALWAYS_INLINE int zero_shift(const dtype type)
{
    const unsigned zero = ggml_format_of(type)->zero; /* a power of two */
    return zero == 0 ? -1 : 7 - __builtin_ctz(zero);
}

/* ---- bytes ---- */

static ALWAYS_INLINE __m256i load_32(const uint8_t *p)
{
    return _mm256_loadu_si256((const void *)p);
}

/* 16 bytes as 32 nibbles: the low halves, then the high ones. */
static ALWAYS_INLINE __m256i load_nibbles(const uint8_t *p)
{
    __m128i bytes = _mm_loadu_si128((const void *)p);
    __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes), _mm_srli_epi16(bytes, 4), 1);
    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

/* `value` in every byte whose bit of 32 is set. */
static ALWAYS_INLINE __m256i spread_bits(const uint8_t *p, char value)
{
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    const __m256i place = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2,
                                           2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ull);
    __m256i spread = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), place), bit);
    return _mm256_and_si256(_mm256_cmpeq_epi8(spread, bit), _mm256_set1_epi8(value));
}

static ALWAYS_INLINE __m256i look_up(const uint8_t table[16], __m256i nibbles)
{
    __m128i t = _mm_loadu_si128((const void *)table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(t), nibbles);
}

/* Bits n, n+1 ... of every byte, as many as the mask keeps. */
static ALWAYS_INLINE __m256i bits_from(__m256i bytes, int n, char mask)
{
    return _mm256_and_si256(_mm256_srli_epi16(bytes, n), _mm256_set1_epi8(mask));
}

/* u of block b of a span. */
static ALWAYS_INLINE __m256i block_codes(const dtype type, const uint8_t *span, size_t b)
{
    const uint8_t *p = is_block_32(type) ? span + b * block_bytes(type) : span;
    const int n = (int)(b / 4), j = (int)(b % 4);
    __m256i high;
    switch (type) {
    case DTYPE_Q8_0:
        return _mm256_xor_si256(load_32(p + 2), _mm256_set1_epi8((char)0x80));
    case DTYPE_Q4_0:
        return load_nibbles(p + 2);
    case DTYPE_Q4_1:
    case DTYPE_AF4:
        return load_nibbles(p + 4);
    case DTYPE_AF8:
        return load_32(p + 8);
    case DTYPE_Q5_0:
        return _mm256_or_si256(load_nibbles(p + 6), spread_bits(p + 2, 16));
    case DTYPE_Q5_1:
        return _mm256_or_si256(load_nibbles(p + 8), spread_bits(p + 4, 16));
    case DTYPE_IQ4_NL:
        return look_up(ggml_iq4_table, load_nibbles(p + 2));
    case DTYPE_MXFP4:
        return look_up(ggml_mxfp4_table, load_nibbles(p + 1));
    case DTYPE_IQ4_XS:
        return look_up(ggml_iq4_table, load_nibbles(p + 8 + 16 * b));
    case DTYPE_Q2_K:
        return bits_from(load_32(p + 16 + 32 * n), 2 * j, 3);
    case DTYPE_Q3_K:
        high = _mm256_slli_epi16(bits_from(load_32(p), (int)b, 1), 2);
        return _mm256_or_si256(bits_from(load_32(p + 32 + 32 * n), 2 * j, 3), high);
    case DTYPE_Q4_K:
        return bits_from(load_32(p + 16 + 32 * (b / 2)), b % 2 ? 4 : 0, 15);
    case DTYPE_Q5_K:
        high = _mm256_slli_epi16(bits_from(load_32(p + 16), (int)b, 1), 4);
        return _mm256_or_si256(bits_from(load_32(p + 48 + 32 * (b / 2)), b % 2 ? 4 : 0, 15), high);
    default: /* q6_k */
        high = _mm256_slli_epi16(bits_from(load_32(p + 128 + 32 * n), 2 * j, 3), 4);
        return _mm256_or_si256(bits_from(load_32(p + 64 * n + 32 * (j % 2)), j < 2 ? 0 : 4, 15), high);
    }
}

/* ---- scales ---- */

static ALWAYS_INLINE float half_at(const uint8_t *p)
{
    uint16_t bits;
    memcpy(&bits, p, sizeof bits);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}

/* The f16 at p of eight blocks. */
static ALWAYS_INLINE __m256 halves_of_blocks(const uint8_t *p, const size_t stride)
{
    uint16_t h[8];
    for (size_t b = 0; b < 8; b++) {
        memcpy(&h[b], p + b * stride, sizeof h[b]);
    }
    return _mm256_cvtph_ps(_mm_setr_epi16((short)h[0], (short)h[1], (short)h[2], (short)h[3], (short)h[4],
                                          (short)h[5], (short)h[6], (short)h[7]));
}

/* The bf16 at p of eight blocks. */
static ALWAYS_INLINE __m256 bf16_of_blocks(const uint8_t *p, const size_t stride)
{
    uint16_t h[8];
    for (size_t b = 0; b < 8; b++) {
        memcpy(&h[b], p + b * stride, sizeof h[b]);
    }
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)h));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

/* The float at p of eight blocks. */
static ALWAYS_INLINE __m256 floats_of_blocks(const uint8_t *p, const size_t stride)
{
    float f[8];
    for (size_t b = 0; b < 8; b++) {
        memcpy(&f[b], p + b * stride, sizeof f[b]);
    }
    return _mm256_loadu_ps(f);
}

/* 2^(e - 128): a number with that exponent, or for e of 0 and 1 one below the normal ones. */
static ALWAYS_INLINE __m256 powers_of_blocks(const uint8_t *p)
{
    const __m256i e = _mm256_setr_epi32(p[0], p[17], p[34], p[51], p[68], p[85], p[102], p[119]);
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, tiny, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}

/* Eight bytes as floats, times d. */
static ALWAYS_INLINE __m256 scaled_bytes(__m128i bytes, float d)
{
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), _mm256_set1_ps(d));
}

static ALWAYS_INLINE __m256 scaled_signed(__m128i bytes, float d)
{
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), _mm256_set1_ps(d));
}

static ALWAYS_INLINE __m128i upper_8(__m128i v)
{
    return _mm_unpackhi_epi64(v, v);
}

static ALWAYS_INLINE __m256 negative(__m256 v)
{
    return _mm256_xor_ps(v, _mm256_set1_ps(-0.0f));
}

/* q4_k and q5_k: 12 bytes for eight scales and eight minima of six bits. */
static ALWAYS_INLINE span_scales scales_q45_k(const uint8_t *p)
{
    uint32_t w[3];
    memcpy(w, p + 4, sizeof w);
    const uint32_t six = 0x3f3f3f3f, low = 0x0f0f0f0f, top = 0x30303030;
    const uint32_t s_high = (w[2] & low) | (w[0] >> 2 & top), t_high = (w[2] >> 4 & low) | (w[1] >> 2 & top);
    __m128i s = _mm_cvtsi64_si128((long long)((uint64_t)s_high << 32 | (w[0] & six)));
    __m128i t = _mm_cvtsi64_si128((long long)((uint64_t)t_high << 32 | (w[1] & six)));
    const __m256 none = _mm256_setzero_ps();
    return (span_scales){{scaled_bytes(s, half_at(p)), none},
                         {negative(scaled_bytes(t, half_at(p + 2))), none}};
}

static ALWAYS_INLINE span_scales scales_q2_k(const uint8_t *p)
{
    const __m128i both = _mm_loadu_si128((const void *)p), low = _mm_set1_epi8(15);
    const __m128i s = _mm_and_si128(both, low), t = _mm_and_si128(_mm_srli_epi16(both, 4), low);
    const float d = half_at(p + 80), m = half_at(p + 82);
    return (span_scales){{scaled_bytes(s, d), scaled_bytes(upper_8(s), d)},
                         {negative(scaled_bytes(t, m)), negative(scaled_bytes(upper_8(t), m))}};
}

static ALWAYS_INLINE span_scales scales_q3_k(const uint8_t *p)
{
    uint32_t w[3];
    memcpy(w, p + 96, sizeof w);
    const uint32_t low = 0x0f0f0f0f, top = 0x30303030;
    const __m128i s =
        _mm_setr_epi32((int)((w[0] & low) | (w[2] << 4 & top)), (int)((w[1] & low) | (w[2] << 2 & top)),
                       (int)((w[0] >> 4 & low) | (w[2] & top)), (int)((w[1] >> 4 & low) | (w[2] >> 2 & top)));
    const __m128i centred = _mm_sub_epi8(s, _mm_set1_epi8(32));
    const __m256 none = _mm256_setzero_ps();
    const float d = half_at(p + 108);
    return (span_scales){{scaled_signed(centred, d), scaled_signed(upper_8(centred), d)}, {none, none}};
}

static ALWAYS_INLINE span_scales scales_iq4_xs(const uint8_t *p)
{
    int32_t packed;
    memcpy(&packed, p + 4, sizeof packed);
    const __m128i bytes = _mm_cvtsi32_si128(packed);
    const __m128i low = _mm_and_si128(_mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4)), _mm_set1_epi8(15));
    const __m256i pairs =
        _mm256_srlv_epi32(_mm256_set1_epi32(p[2] | p[3] << 8), _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    const __m256i high = _mm256_slli_epi32(_mm256_and_si256(pairs, _mm256_set1_epi32(3)), 4);
    const __m256i s =
        _mm256_sub_epi32(_mm256_or_si256(_mm256_cvtepu8_epi32(low), high), _mm256_set1_epi32(32));
    const __m256 none = _mm256_setzero_ps();
    return (span_scales){{_mm256_mul_ps(_mm256_cvtepi32_ps(s), _mm256_set1_ps(half_at(p))), none},
                         {none, none}};
}

static ALWAYS_INLINE span_scales scales_q6_k(const uint8_t *p)
{
    const __m128i s = _mm_loadu_si128((const void *)(p + 192));
    const __m256 none = _mm256_setzero_ps();
    const float d = half_at(p + 208);
    return (span_scales){{scaled_signed(s, d), scaled_signed(upper_8(s), d)}, {none, none}};
}

static ALWAYS_INLINE span_scales scales_of(const dtype type, const uint8_t *span)
{
    const __m256 none = _mm256_setzero_ps();
    switch (type) {
    case DTYPE_Q4_1:
    case DTYPE_Q5_1:
        return (span_scales){{halves_of_blocks(span, block_bytes(type)), none},
                             {halves_of_blocks(span + 2, block_bytes(type)), none}};
    case DTYPE_AF4:
        return (span_scales){{bf16_of_blocks(span, block_bytes(type)), none},
                             {bf16_of_blocks(span + 2, block_bytes(type)), none}};
    case DTYPE_AF8:
        return (span_scales){{floats_of_blocks(span, block_bytes(type)), none},
                             {floats_of_blocks(span + 4, block_bytes(type)), none}};
    case DTYPE_MXFP4:
        return (span_scales){{powers_of_blocks(span), none}, {none, none}};
    case DTYPE_Q2_K:
        return scales_q2_k(span);
    case DTYPE_Q3_K:
        return scales_q3_k(span);
    case DTYPE_Q4_K:
    case DTYPE_Q5_K:
        return scales_q45_k(span);
    case DTYPE_Q6_K:
        return scales_q6_k(span);
    case DTYPE_IQ4_XS:
        return scales_iq4_xs(span);
    default: /* q8_0, q4_0, q5_0, iq4_nl */
        return (span_scales){{halves_of_blocks(span, block_bytes(type)), none}, {none, none}};
    }
}

/* Prefetches the span PREFETCH_DISTANCE bytes ahead: the hardware prefetcher stops at the end of a
 * 4 KiB page. */
static ALWAYS_INLINE void prefetch_block(const dtype type, const uint8_t *span)
{
    enum { PREFETCH_DISTANCE = 2048 };
    for (size_t i = 0; i < span_bytes(type); i += CACHE_LINE) {
        __builtin_prefetch(span + PREFETCH_DISTANCE + i, 0, 2);
    }
}

/* The blocks from `at` on as a span: where they are, or, if the row ends inside it, in `room` with
 * zeros behind them. */
static ALWAYS_INLINE const uint8_t *whole_span(const dtype type, const uint8_t *at, size_t n_columns,
                                               uint8_t *room)
{
    if (!is_block_32(type) || n_columns >= GGML_SPAN) {
        return at;
    }
    for (size_t b = 0; b < GGML_SPAN / 32; b++) { /* each of constant size: no call */
        if (b < n_columns / 32) {
            memcpy(room + b * block_bytes(type), at + b * block_bytes(type), block_bytes(type));
        } else {
            memset(room + b * block_bytes(type), 0, block_bytes(type));
        }
    }
    return room;
}

/* ops_ggml_avx2.c. */
#define DECLARE(NAME)                                                                                        \
    void widen_##NAME##_avx2(float *out, const void *row, size_t K);                                         \
    void unpack_##NAME##_avx2(uint8_t *u, float *scale, float *minimum, const void *row, size_t K);
GGML_FOR_ALL(DECLARE)
#undef DECLARE

/* Room for a span of 32-column blocks: of af8 at most. */
enum { SPAN_ROOM = 8 * 40 };

/* ---- rows of products, around each file's own dot_row ---- */

enum { ROWS_T = 4 };

/* Results of one row of weights and of nt <= ROWS_T rows of x from t0 on; the including file
 * defines it. */
static ALWAYS_INLINE void dot_row(const dtype type, float *out, size_t out_stride, const void *x, size_t t0,
                                  const size_t nt, const uint8_t *w, size_t K);

static ALWAYS_INLINE void dot_rows(const dtype type, float *out, size_t out_stride, const void *x, size_t T,
                                   const void *w, size_t N, size_t K)
{
    for (size_t n = 0; n < N; n++) {
        const uint8_t *row = (const uint8_t *)w + n * ggml_row_bytes(type, K);
        size_t t = 0;
        for (; t + ROWS_T <= T; t += ROWS_T) {
            dot_row(type, out + n, out_stride, x, t, ROWS_T, row, K);
        }
        if (T - t >= 2) {
            dot_row(type, out + n, out_stride, x, t, 2, row, K);
            t += 2;
        }
        if (T - t == 1) {
            dot_row(type, out + n, out_stride, x, t, 1, row, K);
        }
    }
}

#endif
