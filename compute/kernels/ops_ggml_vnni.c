/* The block types of GGUF files with AVX-512 VNNI: a register holds 64 columns, one instruction
 * multiplies them. */
#include "compute/kernels/ops_ggml.h"

#if defined(__AVX512VNNI__)

#include "compute/kernels/ops_ggml_simd.h"
#include "compute/kernels/vec_avx512.h"

enum { GROUP = 64, GROUPS = GGML_SPAN / GROUP };

/* The columns of one span of a row of weights, for nt rows of x. */
typedef struct span_work {
    const quant_x *x;
    size_t at; /* first column */
} span_work;

/* s * x.scale for each part of 16 columns, or for each block of 32 in the lower half. */
static ALWAYS_INLINE __m512 times_x(const dtype type, const __m256 s[2], const float *x_scale)
{
    const __m256 xs = _mm256_loadu_ps(x_scale);
    if (!is_part_16(type)) {
        return _mm512_zextps256_ps512(_mm256_mul_ps(s[0], xs));
    }
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    __m512 both = _mm512_insertf32x8(_mm512_castps256_ps512(s[0]), s[1], 1);
    return _mm512_mul_ps(both, _mm512_permutexvar_ps(twice, _mm512_zextps256_ps512(xs)));
}

/* The scale of each lane of group g. */
static ALWAYS_INLINE __m512 for_group(const dtype type, __m512 scales, size_t g)
{
    const __m512i parts = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i blocks = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const bool part = is_part_16(type);
    return _mm512_permutexvar_ps(
        _mm512_add_epi32(part ? parts : blocks, _mm512_set1_epi32((int)(part ? 4 * g : 2 * g))), scales);
}

static ALWAYS_INLINE void add_groups(const dtype type, __m512 sum[ROWS_T], const uint8_t *span,
                                     const span_work *work, const size_t nt, const size_t n_groups)
{
    const span_scales scales = scales_of(type, span);
    const size_t block = work->at / 32;
    prefetch_block(type, span);
    __m512 scale[ROWS_T], minimum[ROWS_T];
    for (size_t t = 0; t < nt; t++) {
        const quant_x *x = &work->x[t];
        scale[t] = times_x(type, scales.s, x->scale + block);
        if (type == DTYPE_Q2_K) {
            minimum[t] = times_x(type, scales.m, x->scale + block);
        }
        if (has_minimum_32(type)) {
            const __m512 sums = _mm512_zextps256_ps512(_mm256_loadu_ps(x->sum + block));
            sum[t] = _mm512_fmadd_ps(_mm512_zextps256_ps512(scales.m[0]), sums, sum[t]);
        }
    }
    for (size_t g = 0; g < n_groups; g++) {
        const __m512i u = _mm512_inserti64x4(_mm512_castsi256_si512(block_codes(type, span, 2 * g)),
                                             block_codes(type, span, 2 * g + 1), 1);
        for (size_t t = 0; t < nt; t++) {
            const quant_x *x = &work->x[t];
            const size_t at = work->at + g * GROUP;
            const __m512i offset = _mm512_loadu_si512(x->offset + at / 4);
            if (type == DTYPE_Q2_K) { /* the offset is -128 times the sum */
                __m512i sums = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_srai_epi32(offset, 7));
                sum[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), for_group(type, minimum[t], g), sum[t]);
            }
            const int shift = zero_shift(type);
            const __m512i start = shift < 0 ? _mm512_setzero_si512()
                                            : _mm512_srai_epi32(offset, (unsigned)(shift < 0 ? 0 : shift));
            const __m512i products = _mm512_dpbusd_epi32(start, u, _mm512_loadu_si512(x->q + at));
            sum[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products), for_group(type, scale[t], g), sum[t]);
        }
    }
}

/* Results of one row of weights and nt of x. */
static ALWAYS_INLINE void dot_row(const dtype type, float *out, size_t out_stride, const void *x, size_t t0,
                                  const size_t nt, const uint8_t *w, size_t K)
{
    uint8_t room[SPAN_ROOM];
    quant_x rows[ROWS_T];
    __m512 sum[ROWS_T];
    span_work work = {rows, 0};
    for (size_t t = 0; t < nt; t++) {
        rows[t] = quant_x_at(x, K, t0 + t);
        sum[t] = _mm512_setzero_ps();
    }
    for (; work.at + GGML_SPAN <= K; work.at += GGML_SPAN, w += span_bytes(type)) {
        add_groups(type, sum, w, &work, nt, GROUPS);
    }
    if (is_block_32(type) && work.at < K) {
        const uint8_t *span = whole_span(type, w, K - work.at, room);
        add_groups(type, sum, span, &work, nt, (K - work.at + GROUP - 1) / GROUP);
    }
    for (size_t t = 0; t < nt; t++) {
        out[(t0 + t) * out_stride] = v_sum(sum[t]);
    }
}

GGML_FOR_ALL(GGML_DEFINE_DOT)

#define MEMBER(NAME) [DTYPE_##NAME - DTYPE_Q8_0] = {dot_##NAME, widen_##NAME##_avx2, unpack_##NAME##_avx2},
const ggml_kernels ggml_kernels_avx512_vnni[GGML_TYPES] = {GGML_FOR_ALL(MEMBER)};

#endif
