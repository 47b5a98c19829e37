/* vec_avx512: a vector of 16 floats in one AVX-512 register (F, BW, DQ, VL): what ops_simd.h and
 * ops_kv_simd.h ask for, and the whole numbers of ops_kv_q8_simd.h. Included
 * before those. Any thread.
 */
#ifndef PARLEY_COMPUTE_KERNELS_VEC_AVX512_H
#define PARLEY_COMPUTE_KERNELS_VEC_AVX512_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "compute/formats/kv_type.h"
#include "compute/kernels/kernel.h"

typedef __m512 vec;
typedef __m512i wvec;
typedef __m512i svec;

/* What one instruction does. */
#define v_set1    _mm512_set1_ps
#define v_load    _mm512_loadu_ps
#define v_store   _mm512_storeu_ps
#define v_add     _mm512_add_ps
#define v_sub     _mm512_sub_ps
#define v_mul     _mm512_mul_ps
#define v_div     _mm512_div_ps
#define v_fma     _mm512_fmadd_ps
#define v_min     _mm512_min_ps
#define v_max     _mm512_max_ps
#define v_scale2  _mm512_scalef_ps
#define v_top     _mm512_reduce_max_ps
#define w_load    _mm512_loadu_si512
#define w_low     _mm512_unpacklo_epi16
#define w_high    _mm512_unpackhi_epi16
#define s_zero    _mm512_setzero_si512
#define s_load    _mm512_loadu_si512
#define s_store   _mm512_storeu_si512
#define v_of_sums _mm512_cvtepi32_ps

static ALWAYS_INLINE __mmask16 first_lanes(size_t n)
{
    return (__mmask16)((1u << n) - 1u);
}

static ALWAYS_INLINE vec v_load_n(const float *p, size_t n, float fill)
{
    return n == 16 ? v_load(p) : _mm512_mask_loadu_ps(v_set1(fill), first_lanes(n), p);
}

static ALWAYS_INLINE void v_store_n(float *p, vec a, size_t n)
{
    if (n == 16) {
        v_store(p, a);
    } else {
        _mm512_mask_storeu_ps(p, first_lanes(n), a);
    }
}

static ALWAYS_INLINE vec v_round(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static ALWAYS_INLINE vec v_where_negative(vec x, vec a, vec b)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ), b, a);
}

/* Lanes l and l+8, then l and l+4. */
static ALWAYS_INLINE __m128 fold_to_4(vec a)
{
    __m256 b = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    return _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
}

static ALWAYS_INLINE float v_sum(vec a)
{
    __m128 b = fold_to_4(a);
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

/* The sums of four vectors, each in the order of v_sum, but folded together: half the
 * instructions. */
static ALWAYS_INLINE void v_sum4(float *out, vec a, vec b, vec c, vec d)
{
    enum { LOW = _MM_SHUFFLE(1, 0, 1, 0), HIGH = _MM_SHUFFLE(3, 2, 3, 2) };
    enum { EVEN = _MM_SHUFFLE(2, 0, 2, 0), ODD = _MM_SHUFFLE(3, 1, 3, 1), HALVES = _MM_SHUFFLE(1, 0, 3, 2) };
    const vec ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, LOW), _mm512_shuffle_f32x4(a, b, HIGH));
    const vec cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, LOW), _mm512_shuffle_f32x4(c, d, HIGH));
    vec all = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, EVEN), _mm512_shuffle_f32x4(ab, cd, ODD));
    all = _mm512_add_ps(all, _mm512_permute_ps(all, HALVES)); /* a quarter each from here on */
    all = _mm512_add_ps(all, _mm512_movehdup_ps(all));
    const __m512i firsts = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
    _mm_storeu_ps(out, _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, all)));
}

/* Each value moved to the upper half of its lane, zeros below: one permutation where widening and
 * shifting would take two instructions, and the widening one is slow. */
static ALWAYS_INLINE vec bf16_bits(__m256i bits)
{
    const __m512i place = _mm512_set_epi16(15, 0, 14, 0, 13, 0, 12, 0, 11, 0, 10, 0, 9, 0, 8, 0, 7, 0, 6, 0,
                                           5, 0, 4, 0, 3, 0, 2, 0, 1, 0, 0, 0);
    return _mm512_castsi512_ps(
        _mm512_maskz_permutexvar_epi16(0xaaaaaaaau, place, _mm512_castsi256_si512(bits)));
}

static ALWAYS_INLINE vec v_widen_bf16(const void *p)
{
    return bf16_bits(_mm256_loadu_si256(p));
}

static ALWAYS_INLINE vec v_widen_bf16_n(const void *p, size_t n)
{
    return bf16_bits(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}

static ALWAYS_INLINE vec v_widen_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

static ALWAYS_INLINE vec v_widen_f16_n(const void *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}

static ALWAYS_INLINE vec v_widen_i8(const void *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p)));
}

static ALWAYS_INLINE void v_narrow_bf16(void *out, vec a)
{
    __m512i bits = _mm512_castps_si512(a);
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __mmask16 is_nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256(out, _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}

static ALWAYS_INLINE void v_narrow_f16(void *out, vec a)
{
    _mm256_storeu_si256(out, _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static ALWAYS_INLINE void v_narrow_i8(void *out, vec a)
{
    _mm_storeu_si128(out, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a)));
}

static ALWAYS_INLINE void v_narrow_i16(void *out, vec a)
{
    _mm256_storeu_si256(out, _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(a)));
}

/* ---- whole numbers, for ops_kv_q8_simd.h ---- */

static ALWAYS_INLINE wvec w_bytes(const void *p)
{
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(p));
}

static ALWAYS_INLINE wvec w_bytes_n(const void *p, size_t n)
{
    return _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8((__mmask32)((1ull << n) - 1), p));
}

/* A 16-bit word has four nibbles, and each quarter of the vector takes another one of all words. An
 * index has 5 bits of which the highest belongs to the next nibble, so the table stands there
 * twice. */
static ALWAYS_INLINE wvec w_nibbles(const void *p)
{
    const __m512i shifts = _mm512_set_epi64(0x000c000c000c000c, 0x000c000c000c000c, 0x0008000800080008,
                                            0x0008000800080008, 0x0004000400040004, 0x0004000400040004, 0, 0);
    const __m512i numbers =
        _mm512_cvtepi8_epi16(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)KV_Q4_NUMBERS)));
    const __m512i words = _mm512_broadcast_i32x4(_mm_loadu_si128(p));
    return _mm512_permutexvar_epi16(_mm512_srlv_epi16(words, shifts), numbers);
}

static ALWAYS_INLINE void v_of_words(vec out[2], wvec a)
{
    out[0] = _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm512_castsi512_si256(a)));
    out[1] = _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(a, 1)));
}

static ALWAYS_INLINE wvec w_pair(const int16_t *p)
{
    int32_t pair;
    memcpy(&pair, p, sizeof pair);
    return _mm512_set1_epi32(pair);
}

/* TRAP: around the intrinsic of VNNI, GCC 12 copies every accumulator twice, and then has no
 * registers left. */
static ALWAYS_INLINE svec s_madd(svec acc, wvec a, wvec b)
{
#if defined(__AVX512VNNI__)
    __asm__("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
    return acc;
#else
    return _mm512_add_epi32(acc, _mm512_madd_epi16(a, b));
#endif
}

/* Four are folded together, as in v_sum4. */
static ALWAYS_INLINE void s_totals(int32_t *out, const svec *a, const size_t n)
{
    enum { LOW = _MM_SHUFFLE(1, 0, 1, 0), HIGH = _MM_SHUFFLE(3, 2, 3, 2) };
    enum { EVEN = _MM_SHUFFLE(2, 0, 2, 0), ODD = _MM_SHUFFLE(3, 1, 3, 1) };
    if (n != 4) {
        for (size_t i = 0; i < n; i++) {
            out[i] = _mm512_reduce_add_epi32(a[i]);
        }
        return;
    }
    const svec ab =
        _mm512_add_epi32(_mm512_shuffle_i32x4(a[0], a[1], LOW), _mm512_shuffle_i32x4(a[0], a[1], HIGH));
    const svec cd =
        _mm512_add_epi32(_mm512_shuffle_i32x4(a[2], a[3], LOW), _mm512_shuffle_i32x4(a[2], a[3], HIGH));
    svec all = _mm512_add_epi32(_mm512_shuffle_i32x4(ab, cd, EVEN), _mm512_shuffle_i32x4(ab, cd, ODD));
    all = _mm512_add_epi32(all, _mm512_shuffle_epi32(all, _MM_PERM_BADC)); /* a quarter each from here on */
    all = _mm512_add_epi32(all, _mm512_shuffle_epi32(all, _MM_PERM_CDAB));
    const __m512i firsts = _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0);
    _mm_storeu_si128((__m128i *)out, _mm512_castsi512_si128(_mm512_permutexvar_epi32(firsts, all)));
}

static ALWAYS_INLINE void v_of_pairs(vec out[2], svec low, svec high)
{
    const __m512i first = _mm512_set_epi32(23, 22, 21, 20, 7, 6, 5, 4, 19, 18, 17, 16, 3, 2, 1, 0);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    out[0] = _mm512_cvtepi32_ps(_mm512_permutex2var_epi32(low, first, high));
    out[1] = _mm512_cvtepi32_ps(_mm512_permutex2var_epi32(low, second, high));
}

/* ---- 16 x 16 floats turned ---- */

/* out[j]: every fourth of 64 floats, from the j-th on. */
static ALWAYS_INLINE void v_deal4(vec out[4], const float *p)
{
    for (int j = 0; j < 4; j += 2) {
        const __m512i place =
            _mm512_add_epi32(_mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29),
                             _mm512_set1_epi32(j));
        const vec low = _mm512_permutex2var_ps(v_load(p), place, v_load(p + 16));
        const vec high = _mm512_permutex2var_ps(v_load(p + 32), place, v_load(p + 48));
        out[j] = _mm512_shuffle_f32x4(low, high, 0x44);
        out[j + 1] = _mm512_shuffle_f32x4(low, high, 0xee);
    }
}

enum { TURN_SIDE = 16 };

static ALWAYS_INLINE void v_turn(float *out, size_t out_stride, const float *in, size_t in_stride)
{
    __m512 r[16], t[16], u[16];
    for (size_t i = 0; i < 16; i++) {
        r[i] = _mm512_loadu_ps(in + i * in_stride);
    }
    for (size_t i = 0; i < 16; i += 2) { /* pairs of rows */
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (size_t i = 0; i < 16; i += 4) { /* u[i + j]: column 4 * quarter + j of rows i .. i+3 */
        for (size_t j = 0; j < 2; j++) {
            __m512d a = _mm512_castps_pd(t[i + j]), b = _mm512_castps_pd(t[i + 2 + j]);
            u[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            u[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    }
    for (size_t j = 0; j < 4; j++) {
        __m512 even_low = _mm512_shuffle_f32x4(u[j], u[4 + j], 0x88);
        __m512 odd_low = _mm512_shuffle_f32x4(u[j], u[4 + j], 0xdd);
        __m512 even_high = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0x88);
        __m512 odd_high = _mm512_shuffle_f32x4(u[8 + j], u[12 + j], 0xdd);
        _mm512_storeu_ps(out + j * out_stride, _mm512_shuffle_f32x4(even_low, even_high, 0x88));
        _mm512_storeu_ps(out + (4 + j) * out_stride, _mm512_shuffle_f32x4(odd_low, odd_high, 0x88));
        _mm512_storeu_ps(out + (8 + j) * out_stride, _mm512_shuffle_f32x4(even_low, even_high, 0xdd));
        _mm512_storeu_ps(out + (12 + j) * out_stride, _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd));
    }
}

#endif
