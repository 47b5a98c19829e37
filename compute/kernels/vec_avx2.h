/* vec_avx2: a vector of 16 floats in two AVX2 registers (with FMA and F16C): what ops_simd.h and
 * ops_kv_simd.h ask for, and the whole numbers of ops_kv_q8_simd.h. Included
 * before those. Any thread.
 */
#ifndef PARLEY_COMPUTE_KERNELS_VEC_AVX2_H
#define PARLEY_COMPUTE_KERNELS_VEC_AVX2_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compute/formats/kv_type.h"
#include "compute/kernels/kernel.h"

typedef struct vec {
    __m256 lo, hi;
} vec;

static ALWAYS_INLINE vec v_set1(float f)
{
    return (vec){_mm256_set1_ps(f), _mm256_set1_ps(f)};
}

static ALWAYS_INLINE vec v_load(const float *p)
{
    return (vec){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

static ALWAYS_INLINE void v_store(float *p, vec a)
{
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}

/* All bits set in the lanes i, i+1, ... below n. */
static ALWAYS_INLINE __m256i lanes_below(size_t n, int i)
{
    __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(i));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

static ALWAYS_INLINE __m256 load_lanes(const float *p, __m256i mask, float fill)
{
    return _mm256_blendv_ps(_mm256_set1_ps(fill), _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}

static ALWAYS_INLINE vec v_load_n(const float *p, size_t n, float fill)
{
    if (n == 16) {
        return v_load(p);
    }
    return (vec){load_lanes(p, lanes_below(n, 0), fill), load_lanes(p + 8, lanes_below(n, 8), fill)};
}

static ALWAYS_INLINE void v_store_n(float *p, vec a, size_t n)
{
    if (n == 16) {
        v_store(p, a);
    } else {
        _mm256_maskstore_ps(p, lanes_below(n, 0), a.lo);
        _mm256_maskstore_ps(p + 8, lanes_below(n, 8), a.hi);
    }
}

/* A function that is one instruction on either half. */
#define ON_BOTH_HALVES(type, name, instruction)                                                              \
    static ALWAYS_INLINE type name(type a, type b)                                                           \
    {                                                                                                        \
        return (type){instruction(a.lo, b.lo), instruction(a.hi, b.hi)};                                     \
    }

ON_BOTH_HALVES(vec, v_add, _mm256_add_ps)
ON_BOTH_HALVES(vec, v_sub, _mm256_sub_ps)
ON_BOTH_HALVES(vec, v_mul, _mm256_mul_ps)
ON_BOTH_HALVES(vec, v_div, _mm256_div_ps)
ON_BOTH_HALVES(vec, v_min, _mm256_min_ps)
ON_BOTH_HALVES(vec, v_max, _mm256_max_ps)

static ALWAYS_INLINE vec v_fma(vec a, vec b, vec c)
{
    return (vec){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

static ALWAYS_INLINE vec v_round(vec a)
{
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    return (vec){_mm256_round_ps(a.lo, NEAREST), _mm256_round_ps(a.hi, NEAREST)};
}

/* a * 2^n for -150 <= n <= 128, in two factors that are both normal numbers. */
static ALWAYS_INLINE __m256 scale2_half(__m256 a, __m256 n)
{
    __m256i whole = _mm256_cvtps_epi32(n), first = _mm256_srai_epi32(whole, 1);
    __m256i second = _mm256_sub_epi32(whole, first), bias = _mm256_set1_epi32(127);
    a = _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(first, bias), 23)));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(second, bias), 23)));
}

static ALWAYS_INLINE vec v_scale2(vec a, vec n)
{
    return (vec){scale2_half(a.lo, n.lo), scale2_half(a.hi, n.hi)};
}

static ALWAYS_INLINE __m256 where_negative_half(__m256 x, __m256 a, __m256 b)
{
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
}

static ALWAYS_INLINE vec v_where_negative(vec x, vec a, vec b)
{
    return (vec){where_negative_half(x.lo, a.lo, b.lo), where_negative_half(x.hi, a.hi, b.hi)};
}

/* Lanes l and l+8, then l and l+4. */
static ALWAYS_INLINE __m128 fold_to_4(vec a)
{
    __m256 b = _mm256_add_ps(a.lo, a.hi);
    return _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
}

static ALWAYS_INLINE float v_sum(vec a)
{
    __m128 b = fold_to_4(a);
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

static ALWAYS_INLINE void v_sum4(float *out, vec a, vec b, vec c, vec d)
{
    __m128 r0 = fold_to_4(a), r1 = fold_to_4(b), r2 = fold_to_4(c), r3 = fold_to_4(d);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps(out, _mm_add_ps(_mm_add_ps(r0, r2), _mm_add_ps(r1, r3)));
}

static ALWAYS_INLINE float v_top(vec a)
{
    __m256 b = _mm256_max_ps(a.lo, a.hi);
    __m128 c = _mm_max_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
    c = _mm_max_ps(c, _mm_movehl_ps(c, c));
    return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

static ALWAYS_INLINE __m256 bf16_bits(__m128i bits)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

static ALWAYS_INLINE vec v_widen_bf16(const void *p)
{
    const __m128i *from = p;
    return (vec){bf16_bits(_mm_loadu_si128(from)), bf16_bits(_mm_loadu_si128(from + 1))};
}

static ALWAYS_INLINE vec v_widen_f16(const void *p)
{
    const __m128i *from = p;
    return (vec){_mm256_cvtph_ps(_mm_loadu_si128(from)), _mm256_cvtph_ps(_mm_loadu_si128(from + 1))};
}

static ALWAYS_INLINE vec v_widen_bf16_n(const void *p, size_t n)
{
    uint16_t padded[16] = {0};
    memcpy(padded, p, n * sizeof padded[0]);
    return v_widen_bf16(padded);
}

static ALWAYS_INLINE vec v_widen_f16_n(const void *p, size_t n)
{
    uint16_t padded[16] = {0};
    memcpy(padded, p, n * sizeof padded[0]);
    return v_widen_f16(padded);
}

/* ---- 8 x 8 floats turned ---- */

/* out[j]: every fourth of 64 floats, from the j-th on. */
static ALWAYS_INLINE void v_deal4(vec out[4], const float *p)
{
    float dealt[4][16];
    for (size_t i = 0; i < 4; i++, p += 16) {
        __m128 a = _mm_loadu_ps(p), b = _mm_loadu_ps(p + 4), c = _mm_loadu_ps(p + 8),
               d = _mm_loadu_ps(p + 12);
        _MM_TRANSPOSE4_PS(a, b, c, d);
        _mm_storeu_ps(dealt[0] + 4 * i, a);
        _mm_storeu_ps(dealt[1] + 4 * i, b);
        _mm_storeu_ps(dealt[2] + 4 * i, c);
        _mm_storeu_ps(dealt[3] + 4 * i, d);
    }
    for (size_t j = 0; j < 4; j++) {
        out[j] = v_load(dealt[j]);
    }
}

enum { TURN_SIDE = 8 };

static ALWAYS_INLINE void v_turn(float *out, size_t out_stride, const float *in, size_t in_stride)
{
    __m256 r[8], t[8], u[8];
    for (size_t i = 0; i < 8; i++) {
        r[i] = _mm256_loadu_ps(in + i * in_stride);
    }
    for (size_t i = 0; i < 8; i += 2) { /* pairs of rows */
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (size_t i = 0; i < 8; i += 4) { /* u[i + j]: columns j and 4 + j of rows i .. i+3 */
        for (size_t j = 0; j < 2; j++) {
            __m256d a = _mm256_castps_pd(t[i + j]), b = _mm256_castps_pd(t[i + 2 + j]);
            u[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
            u[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
        }
    }
    for (size_t j = 0; j < 4; j++) {
        _mm256_storeu_ps(out + j * out_stride, _mm256_permute2f128_ps(u[j], u[4 + j], 0x20));
        _mm256_storeu_ps(out + (4 + j) * out_stride, _mm256_permute2f128_ps(u[j], u[4 + j], 0x31));
    }
}

static ALWAYS_INLINE __m256 widen_8_bytes(const void *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p)));
}

static ALWAYS_INLINE vec v_widen_i8(const void *p)
{
    return (vec){widen_8_bytes(p), widen_8_bytes((const char *)p + 8)};
}

/* 16 whole numbers to 16 bits each; what they are packed with keeps to halves of a register. */
static ALWAYS_INLINE __m256i in_order(__m256i packed)
{
    return _mm256_permute4x64_epi64(packed, 0xd8);
}

static ALWAYS_INLINE __m256i rounded_bf16(__m256 a)
{
    __m256i bits = _mm256_castps_si256(a);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
}

static ALWAYS_INLINE void v_narrow_bf16(void *out, vec a)
{
    _mm256_storeu_si256(out, in_order(_mm256_packus_epi32(rounded_bf16(a.lo), rounded_bf16(a.hi))));
}

static ALWAYS_INLINE void v_narrow_f16(void *out, vec a)
{
    enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
    __m128i *to = out;
    _mm_storeu_si128(to, _mm256_cvtps_ph(a.lo, NEAREST));
    _mm_storeu_si128(to + 1, _mm256_cvtps_ph(a.hi, NEAREST));
}

static ALWAYS_INLINE void v_narrow_i8(void *out, vec a)
{
    __m256i wide = in_order(_mm256_packs_epi32(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)));
    _mm_storeu_si128(out, _mm_packs_epi16(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1)));
}

static ALWAYS_INLINE void v_narrow_i16(void *out, vec a)
{
    _mm256_storeu_si256(out,
                        in_order(_mm256_packs_epi32(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi))));
}

/* ---- whole numbers, for ops_kv_q8_simd.h ---- */

typedef struct whole_numbers {
    __m256i lo, hi;
} wvec, svec;

static ALWAYS_INLINE wvec w_bytes(const void *p)
{
    const __m128i *from = p;
    return (wvec){_mm256_cvtepi8_epi16(_mm_loadu_si128(from)),
                  _mm256_cvtepi8_epi16(_mm_loadu_si128(from + 1))};
}

static ALWAYS_INLINE wvec w_bytes_n(const void *p, size_t n)
{
    unsigned char first[32] = {0};
    memcpy(first, p, n);
    return w_bytes(first);
}

/* The nibbles of numbers 0 .. 7 and 8 .. 15 are looked up in the low bytes of words, those of 16 ..
 * 23 and 24 .. 31 in the high ones. */
static ALWAYS_INLINE wvec w_nibbles(const void *p)
{
    const __m256i numbers = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)KV_Q4_NUMBERS));
    const __m128i words = _mm_loadu_si128(p);
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(words), _mm_srli_epi16(words, 4), 1);
    const __m256i found = _mm256_shuffle_epi8(numbers, _mm256_and_si256(both, _mm256_set1_epi8(15)));
    return (wvec){_mm256_srai_epi16(_mm256_slli_epi16(found, 8), 8), _mm256_srai_epi16(found, 8)};
}

static ALWAYS_INLINE wvec w_load(const int16_t *p)
{
    return (wvec){_mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)(p + 16))};
}

static ALWAYS_INLINE wvec w_pair(const int16_t *p)
{
    int32_t pair;
    memcpy(&pair, p, sizeof pair);
    return (wvec){_mm256_set1_epi32(pair), _mm256_set1_epi32(pair)};
}

ON_BOTH_HALVES(wvec, w_low, _mm256_unpacklo_epi16)
ON_BOTH_HALVES(wvec, w_high, _mm256_unpackhi_epi16)

static ALWAYS_INLINE svec s_zero(void)
{
    return (svec){_mm256_setzero_si256(), _mm256_setzero_si256()};
}

static ALWAYS_INLINE svec s_load(const int32_t *p)
{
    return (svec){_mm256_loadu_si256((const __m256i *)p), _mm256_loadu_si256((const __m256i *)(p + 8))};
}

static ALWAYS_INLINE void s_store(int32_t *p, svec a)
{
    _mm256_storeu_si256((__m256i *)p, a.lo);
    _mm256_storeu_si256((__m256i *)(p + 8), a.hi);
}

static ALWAYS_INLINE svec s_madd(svec acc, wvec a, wvec b)
{
    return (svec){_mm256_add_epi32(acc.lo, _mm256_madd_epi16(a.lo, b.lo)),
                  _mm256_add_epi32(acc.hi, _mm256_madd_epi16(a.hi, b.hi))};
}

static ALWAYS_INLINE void s_totals(int32_t *out, const svec *a, const size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const __m256i both = _mm256_add_epi32(a[i].lo, a[i].hi);
        __m128i four = _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(2, 3, 0, 1)));
        out[i] = _mm_cvtsi128_si32(four);
    }
}

static ALWAYS_INLINE vec floats_of(__m256i first, __m256i second)
{
    return (vec){_mm256_cvtepi32_ps(first), _mm256_cvtepi32_ps(second)};
}

static ALWAYS_INLINE vec floats_of_words(__m256i a)
{
    return floats_of(_mm256_cvtepi16_epi32(_mm256_castsi256_si128(a)),
                     _mm256_cvtepi16_epi32(_mm256_extracti128_si256(a, 1)));
}

static ALWAYS_INLINE void v_of_words(vec out[2], wvec a)
{
    out[0] = floats_of_words(a.lo);
    out[1] = floats_of_words(a.hi);
}

static ALWAYS_INLINE vec v_of_sums(svec a)
{
    return floats_of(a.lo, a.hi);
}

static ALWAYS_INLINE void v_of_pairs(vec out[2], svec low, svec high)
{
    out[0] = floats_of(_mm256_permute2x128_si256(low.lo, high.lo, 0x20),
                       _mm256_permute2x128_si256(low.lo, high.lo, 0x31));
    out[1] = floats_of(_mm256_permute2x128_si256(low.hi, high.hi, 0x20),
                       _mm256_permute2x128_si256(low.hi, high.hi, 0x31));
}

#endif
