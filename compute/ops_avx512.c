/* AVX-512 (F, BW, DQ, VL): a vector of 16 floats is one register. */
#include "compute/ops.h"

#if defined(__AVX512F__)

#include <immintrin.h>
#include <stdint.h>

#include "compute/kernel.h"

typedef __m512 vec;

/* 32 registers: up to 24 accumulators, 1 weight, 4 inputs. */
enum { DOT_T = 4, DOT_N = 4, DOT_T_FEW = 3, DOT_N_FEW = 8, MUL_M = 4, MUL_V = 4 };

static ALWAYS_INLINE vec v_set1(float f)
{
    return _mm512_set1_ps(f);
}

static ALWAYS_INLINE vec v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static ALWAYS_INLINE void v_store(float *p, vec a)
{
    _mm512_storeu_ps(p, a);
}

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

static ALWAYS_INLINE vec v_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

static ALWAYS_INLINE vec v_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

static ALWAYS_INLINE vec v_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

static ALWAYS_INLINE vec v_div(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}

static ALWAYS_INLINE vec v_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static ALWAYS_INLINE vec v_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

static ALWAYS_INLINE vec v_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

static ALWAYS_INLINE vec v_round(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static ALWAYS_INLINE vec v_scale2(vec a, vec n)
{
    return _mm512_scalef_ps(a, n);
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

static ALWAYS_INLINE void v_sum4(float *out, vec a, vec b, vec c, vec d)
{
    __m128 r0 = fold_to_4(a), r1 = fold_to_4(b), r2 = fold_to_4(c), r3 = fold_to_4(d);
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps(out, _mm_add_ps(_mm_add_ps(r0, r2), _mm_add_ps(r1, r3)));
}

static ALWAYS_INLINE float v_top(vec a)
{
    return _mm512_reduce_max_ps(a);
}

/* Each value moved to the upper half of its lane, zeros below: one permutation where widening and shifting would take
 * two instructions, and the widening one is slow. */
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

#include "compute/ops_simd.h"

const ops *ops_avx512(void)
{
    static const ops table = {.name = "avx512", .dot_rows_best = SIZE_MAX, OPS_SIMD_MEMBERS};
    return &table;
}

#else

const ops *ops_avx512(void)
{
    return NULL;
}

#endif
