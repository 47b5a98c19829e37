/* The operations of AVX-512 BF16 as Intel's manual writes them, but for numbers below 2^-126, and the kernels of
 * compute/kernels/ops_bf16_simd.h built upon them. */
#include "tests/compute/kernels/bf16_emulated.h"

#if defined(__AVX512F__)

#include <immintrin.h>

#define pack_avx512_bf16  pack_emulated
#define tile_avx512_bf16  tile_emulated
#define round_avx512_bf16 round_emulated
#define dot_avx512_bf16   dot_emulated

/* VCVTNE2PS2BF16 of numbers: to the nearest, ties to even. */
static inline __m256i rounded(__m512 x)
{
    const __m512i bits = _mm512_castps_si512(x),
                  odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(up, 16));
}

static inline __m512i round_both(__m512 high, __m512 low)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(rounded(low)), rounded(high), 1);
}

static inline __m512 evens(__m512i numbers)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(numbers, 16));
}

static inline __m512 odds(__m512i numbers)
{
    return _mm512_castsi512_ps(_mm512_and_si512(numbers, _mm512_set1_epi32((int)0xffff0000)));
}

/* VDPBF16PS: the odd products are added first. */
static inline __m512 dot_pairs(__m512 sums, __m512i a, __m512i b)
{
    return _mm512_fmadd_ps(evens(a), evens(b), _mm512_fmadd_ps(odds(a), odds(b), sums));
}

#define BF16_ROUND round_both
#define BF16_DOT   dot_pairs

#include "compute/kernels/ops_bf16_simd.h"

const ops *ops_bf16_emulated(void)
{
    static ops table;
    table = *ops_avx512_vnni();
    table.name = "bf16, emulated";
    table.pack_bf16 = pack_emulated;
    table.tile_bf16 = tile_emulated;
    table.round_bf16 = round_emulated;
    table.dot_bf16 = dot_emulated;
    return &table;
}

#else

const ops *ops_bf16_emulated(void)
{
    return NULL;
}

#endif
