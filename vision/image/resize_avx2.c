/* Resizing's two passes with AVX2: products of pairs of taps are added as 32-bit sums, as the
 * specification's. */
#include "vision/image/resize_kernels.h"

#ifdef __AVX2__
#include <immintrin.h>
#include <string.h>

/* Four taps of one output a step: pixels 0 and 1 in the lower half, 2 and 3 in the upper, each as
 * the 16-bit pairs (r, r) (g, g) (b, b) (0, 0) that one multiplication turns into three sums. */
static void row_avx2(uint8_t *out, size_t n_out, const uint8_t *in, size_t n_in, const resize_taps *t)
{
    enum { STEP_BYTES = 3 * RESIZE_TAPS_UNIT, LOAD_BYTES = 16 };
    const __m256i pairs = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, /* */
                                           6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    const __m256i halves = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m128i shift = _mm_cvtsi32_si128(t->fraction_bits);
    const __m128i half = _mm_set1_epi32(1 << (t->fraction_bits - 1));
    for (size_t x = 0; x < n_out; x++) {
        const size_t n_steps = ((size_t)t->count[x] + RESIZE_TAPS_UNIT - 1) / RESIZE_TAPS_UNIT;
        const size_t begin = 3 * (size_t)t->begin[x];
        if (begin + (n_steps - 1) * STEP_BYTES + LOAD_BYTES > 3 * n_in) { /* would read beyond the row */
            resize_row_one(out, in, t, x);
            continue;
        }
        const uint8_t *px = in + begin;
        const int16_t *w = t->weights + x * t->stride;
        __m256i sum = _mm256_setzero_si256();
        for (size_t i = 0; i < n_steps; i++, px += STEP_BYTES, w += RESIZE_TAPS_UNIT) {
            __m256i p = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)px));
            __m256i v = _mm256_castsi128_si256(_mm_loadl_epi64((const __m128i *)(const void *)w));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(p, pairs),
                                                          _mm256_permutevar8x32_epi32(v, halves)));
        }
        __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        s = _mm_sra_epi32(_mm_add_epi32(s, half), shift);
        s = _mm_packs_epi32(s, s);
        const int32_t rgb = _mm_cvtsi128_si32(_mm_packus_epi16(s, s));
        memcpy(out + 3 * x, &rgb, 3);
    }
}

/* 32 bytes at a time, two rows a step. */
static void column_avx2(uint8_t *out, const uint8_t *const *rows, const int16_t *weights, size_t n_rows,
                        size_t n, int fraction_bits)
{
    enum { WIDTH = 32 };
    const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(1 << (fraction_bits - 1));
    const __m128i shift = _mm_cvtsi32_si128(fraction_bits);
    size_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        __m256i a = half, b = half, c = half, d = half;
        for (size_t r = 0; r < n_rows; r += 2) {
            const size_t second = r + 1 < n_rows ? r + 1 : r;
            const uint16_t low = (uint16_t)weights[r], high = second > r ? (uint16_t)weights[second] : 0;
            const __m256i w = _mm256_set1_epi32((int32_t)(low | (uint32_t)high << 16));
            const __m256i p = _mm256_loadu_si256((const __m256i *)(const void *)(rows[r] + i));
            const __m256i q = _mm256_loadu_si256((const __m256i *)(const void *)(rows[second] + i));
            const __m256i lo = _mm256_unpacklo_epi8(p, q), hi = _mm256_unpackhi_epi8(p, q);
            a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_unpacklo_epi8(lo, zero), w));
            b = _mm256_add_epi32(b, _mm256_madd_epi16(_mm256_unpackhi_epi8(lo, zero), w));
            c = _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_unpacklo_epi8(hi, zero), w));
            d = _mm256_add_epi32(d, _mm256_madd_epi16(_mm256_unpackhi_epi8(hi, zero), w));
        }
        const __m256i ab = _mm256_packs_epi32(_mm256_sra_epi32(a, shift), _mm256_sra_epi32(b, shift));
        const __m256i cd = _mm256_packs_epi32(_mm256_sra_epi32(c, shift), _mm256_sra_epi32(d, shift));
        _mm256_storeu_si256((__m256i *)(void *)(out + i), _mm256_packus_epi16(ab, cd));
    }
    for (; i < n; i++) {
        out[i] = resize_column_one(rows, weights, n_rows, i, fraction_bits);
    }
}

const resize_kernels *resize_kernels_avx2(void)
{
    static const resize_kernels TABLE = {"avx2", row_avx2, column_avx2};
    return &TABLE;
}
#else
const resize_kernels *resize_kernels_avx2(void)
{
    return NULL;
}
#endif
