/* Blocks of 8, 4 and 5 bits with AVX-512 VNNI: a register holds a group of 64 columns. */
#include "compute/kernels/ops_q.h"

#if defined(__AVX512VNNI__)

#include <string.h>

#include "compute/kernels/kernel.h"
#include "compute/kernels/vec_avx512.h"

/* Rows of weights and of activations taken together; blocks and groups whose scales fill a register. */
enum { ROWS_N = 4, ROWS_T = 4, SPAN_BLOCKS = 16, SPAN_GROUPS = SPAN_BLOCKS / 2 };

/* A product under way. */
typedef struct q_job {
    float *out;
    size_t out_stride;
    const unsigned char *w;
    size_t row_bytes, n_blocks;
    size_t numbers, scales; /* bytes of a row before its fifth bits, and before its scales */
    size_t K;
} q_job;

static q_job make_job(dtype type, float *out, size_t out_stride, const void *w, size_t K)
{
    const size_t Kp = quant_columns(K);
    return (q_job){.out = out,
                   .out_stride = out_stride,
                   .w = w,
                   .row_bytes = quant_row_bytes(type, K),
                   .n_blocks = Kp / QUANT_BLOCK,
                   .numbers = type == DTYPE_Q8 ? Kp : Kp / 2,
                   .scales = type == DTYPE_Q8   ? Kp
                             : type == DTYPE_Q4 ? Kp / 2
                                                : Kp / 2 + Kp / 8,
                   .K = K};
}

/* TRAP: around the intrinsic, GCC 12 copies every accumulator twice, and then has no registers
 * left. */
static ALWAYS_INLINE __m512i add_products(__m512i acc, __m512i u, __m512i x)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(u), "v"(x));
    return acc;
}

/* ---- few rows: a register holds 64 columns of a row of weights ---- */

/* The bytes of a group of a row: q8 as stored; q4 with the low halves before the high ones, which stay 16
 * times too large (one instruction less); of q5 these are 8 times too large with their fifth bit. The scales of
 * odd blocks make up for it (odd_scales). */
static ALWAYS_INLINE __m512i load_group(const dtype type, const q_job *job, const unsigned char *row,
                                        size_t group)
{
    if (type == DTYPE_Q8) {
        return _mm512_loadu_si512(row + group * QUANT_GROUP);
    }
    const __m512i both =
        _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(row + group * QUANT_BLOCK)));
    const long long low = 0x0f0f0f0f0f0f0f0f, high = ~low;
    const __m512i u = _mm512_and_si512(both, _mm512_set_epi64(high, high, high, high, low, low, low, low));
    if (type == DTYPE_Q4) {
        return u;
    }
    const long long even = 0x1010101010101010, odd = 0x0808080808080808;
    uint64_t fifth;
    memcpy(&fifth, row + job->numbers + group * sizeof fifth, sizeof fifth);
    return _mm512_mask_add_epi8(u, fifth, u, _mm512_set_epi64(odd, odd, odd, odd, even, even, even, even));
}

/* Scales of 16 blocks for the bytes of load_group. */
static ALWAYS_INLINE __m512 odd_scales(const dtype type, __m512 scale)
{
    return type == DTYPE_Q8 ? scale
                            : _mm512_mask_mul_ps(scale, 0xaaaa, scale,
                                                 _mm512_set1_ps(type == DTYPE_Q4 ? 1.0f / 16 : 1.0f / 8));
}

static ALWAYS_INLINE __m512i base_of(const q_job *job, const unsigned char *row)
{
    int32_t base;
    memcpy(&base, row + job->row_bytes - sizeof base, sizeof base);
    return _mm512_set1_epi32(base);
}

/* Scales of n blocks from block b on; of q4 and q5 their minima, too. */
static ALWAYS_INLINE __m512 load_scales(const dtype type, const q_job *job, const unsigned char *row,
                                        size_t b, const size_t n, __m512 *minimum)
{
    if (type == DTYPE_Q8) {
        return v_widen_bf16_n(row + job->scales + 2 * b, n);
    }
    const __mmask16 some = (__mmask16)((1u << n) - 1);
    const unsigned char *at = row + job->scales + b;
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(some, at)),
                  zero = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(some, at + job->n_blocks));
    const __m512 scale =
        _mm512_castsi512_ps(_mm512_add_epi32(_mm512_slli_epi32(bytes, QUANT_SCALE_SHIFT), base_of(job, row)));
    const __m512 unit = _mm512_mul_ps(scale, _mm512_set1_ps(type == DTYPE_Q4 ? -1.0f / 16 : -1.0f / 8));
    *minimum = _mm512_mul_ps(unit, _mm512_cvtepi32_ps(zero));
    return scale;
}

/* The sums of 16 blocks, each in its lane; lanes 0 .. 7 of p[g] are of block 2g, the others of
 * 2g + 1. */
static ALWAYS_INLINE __m512i whole_sums(const __m512i p[SPAN_GROUPS])
{
    enum { EVEN = _MM_SHUFFLE(2, 0, 2, 0), ODD = _MM_SHUFFLE(3, 1, 3, 1) };
    __m512i fours[2]; /* of four groups: lane i of each quarter is of group i */
    for (size_t h = 0; h < 2; h++) {
        const __m512i *g = p + 4 * h;
        __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(g[0], g[1]), _mm512_unpackhi_epi32(g[0], g[1]));
        __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(g[2], g[3]), _mm512_unpackhi_epi32(g[2], g[3]));
        fours[h] = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    }
    const __m512i all = _mm512_add_epi32(_mm512_shuffle_i32x4(fours[0], fours[1], EVEN),
                                         _mm512_shuffle_i32x4(fours[0], fours[1], ODD));
    const __m512i order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    return _mm512_permutexvar_epi32(order, all);
}

/* Adds what n_groups groups from block b on of one row of weights give with nt rows of activations. */
static ALWAYS_INLINE void add_span(const dtype type, __m512 sum[ROWS_T], const q_job *job,
                                   const unsigned char *row, const quant_x x[ROWS_T], size_t b,
                                   const size_t n_groups, const size_t nt)
{
    __m512 minimum = _mm512_setzero_ps();
    const __m512 scale = odd_scales(type, load_scales(type, job, row, b, 2 * n_groups, &minimum));
    __m512i w[SPAN_GROUPS];
    for (size_t g = 0; g < SPAN_GROUPS; g++) {
        w[g] = g < n_groups ? load_group(type, job, row, b / 2 + g) : _mm512_setzero_si512();
    }
    for (size_t t = 0; t < nt; t++) {
        __m512i p[SPAN_GROUPS];
        for (size_t g = 0; g < SPAN_GROUPS; g++) {
            p[g] = _mm512_setzero_si512();
            if (g < n_groups) {
                p[g] =
                    add_products(p[g], w[g], _mm512_loadu_si512(x[t].q + b * QUANT_BLOCK + g * QUANT_GROUP));
            }
        }
        __m512i whole = whole_sums(p);
        const __m512 x_scale = _mm512_loadu_ps(x[t].scale + b);
        if (type != DTYPE_Q8) {
            sum[t] = _mm512_fmadd_ps(minimum, _mm512_loadu_ps(x[t].sum + b), sum[t]);
        } else {
            whole = _mm512_add_epi32(whole, _mm512_loadu_si512(x[t].block_offset + b));
        }
        sum[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), _mm512_mul_ps(scale, x_scale), sum[t]);
    }
}

/* Asks for the lines that lie behind those of a span. */
static ALWAYS_INLINE void ask_span(const dtype type, const q_job *job, const unsigned char *row, size_t b,
                                   size_t n_groups)
{
    const size_t group_bytes = type == DTYPE_Q8 ? QUANT_GROUP : QUANT_BLOCK;
    if (type == DTYPE_Q5) { /* the fifth bits of a span are a line */
        prefetch_line(row + job->numbers + b / 2 * sizeof(uint64_t));
    }
    for (size_t at = 0; at < n_groups * group_bytes; at += CACHE_LINE) {
        prefetch_line(row + b / 2 * group_bytes + at);
    }
}

/* Asks for what lies behind a row's scales. */
static ALWAYS_INLINE void ask_scales(const q_job *job, const unsigned char *row)
{
    for (size_t at = job->scales; at < job->row_bytes; at += CACHE_LINE) {
        prefetch_line(row + at);
    }
}

/* nt results from row t0 on of each of nn rows of weights, which are `step` rows apart: slices of
 * memory side by side. Meanwhile the weights to come are asked for. */
static ALWAYS_INLINE void dot_rows_q(const dtype type, const q_job *job, const void *memory, size_t t0,
                                     size_t n0, size_t step, const size_t nt, const size_t nn)
{
    const unsigned char *w = job->w + n0 * job->row_bytes;
    const size_t apart = step * job->row_bytes;
    quant_x x[ROWS_T];
    __m512 sum[ROWS_N][ROWS_T];
    for (size_t t = 0; t < nt; t++) {
        x[t] = quant_x_at(memory, job->K, t0 + t);
        for (size_t n = 0; n < nn; n++) {
            sum[n][t] = _mm512_setzero_ps();
        }
    }
    size_t b = 0;
    for (; b + SPAN_BLOCKS <= job->n_blocks; b += SPAN_BLOCKS) {
        for (size_t n = 0; n < nn; n++) {
            ask_span(type, job, w + n * apart, b, SPAN_GROUPS);
            add_span(type, sum[n], job, w + n * apart, x, b, SPAN_GROUPS, nt);
        }
    }
    if (b < job->n_blocks) {
        const size_t n_groups = (job->n_blocks - b) / 2;
        for (size_t n = 0; n < nn; n++) {
            ask_span(type, job, w + n * apart, b, n_groups);
            add_span(type, sum[n], job, w + n * apart, x, b, n_groups, nt);
        }
    }
    for (size_t n = 0; n < nn; n++) {
        ask_scales(job, w + n * apart);
        for (size_t t = 0; t < nt; t++) {
            job->out[(t0 + t) * job->out_stride + n0 + n * step] = v_sum(sum[n][t]);
        }
    }
}

static ALWAYS_INLINE void dot_columns_q(const dtype type, const q_job *job, const void *x, size_t t, size_t N,
                                        const size_t nt)
{
    const size_t step = N / ROWS_N;
    for (size_t n = 0; n < step; n++) {
        dot_rows_q(type, job, x, t, n, step, nt, ROWS_N);
    }
    for (size_t n = step * ROWS_N; n < N; n++) {
        dot_rows_q(type, job, x, t, n, 1, nt, 1);
    }
}

static ALWAYS_INLINE void dot_all_q(const dtype type, const q_job *job, const void *x, size_t T, size_t N)
{
    size_t t = 0;
    for (; t + ROWS_T <= T; t += ROWS_T) {
        dot_columns_q(type, job, x, t, N, ROWS_T);
    }
    if (T - t == 1) { /* the number of rows is a constant of each call */
        dot_columns_q(type, job, x, t, N, 1);
    } else if (T - t == 2) {
        dot_columns_q(type, job, x, t, N, 2);
    } else if (T - t == 3) {
        dot_columns_q(type, job, x, t, N, 3);
    }
}

void dot_q8_vnni(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K)
{
    const q_job job = make_job(DTYPE_Q8, out, out_stride, w, K);
    dot_all_q(DTYPE_Q8, &job, x, T, N);
}

void dot_q4_vnni(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K)
{
    const q_job job = make_job(DTYPE_Q4, out, out_stride, w, K);
    dot_all_q(DTYPE_Q4, &job, x, T, N);
}

void dot_q5_vnni(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N, size_t K)
{
    const q_job job = make_job(DTYPE_Q5, out, out_stride, w, K);
    dot_all_q(DTYPE_Q5, &job, x, T, N);
}

/* ---- panels: eight weights of a row are broadcast against eight rows of activations ---- */

/* Rows of weights taken together. A register of results belongs to a pair of them: of each four lanes
 * two are rows 2q and 2q + 1 of the panel with the first, the other two the same with the second
 * (quant_panel_place). */
enum { PANEL_N = 4, PAIRS = PANEL_N / 2, LANES = 16, QUARTERS = 4 };

/* Panels that a row of weights meets while it is in the L1 cache, and products of four rows of weights
 * that are written together. */
enum { PANELS = 4, WRITTEN = 4 };

/* Panels that share the broadcasts of weights, and what it takes to cut them out of their bytes. */
enum { TOGETHER = 2 };

/* Sums of one block each, and the weights' scales and minima of a span, as a quarter register wants them. */
typedef float panel_sums[PAIRS][LANES];
typedef struct panel_scales {
    _Alignas(CACHE_LINE) float scale[PAIRS][SPAN_BLOCKS][QUARTERS], minimum[PAIRS][SPAN_BLOCKS][QUARTERS];
} panel_scales;

static ALWAYS_INLINE __m512i eight_weights(const unsigned char *at)
{
    long long bits;
    memcpy(&bits, at, sizeof bits);
    return _mm512_set1_epi64(bits);
}

/* to[i]: a[i] twice, b[i] twice. */
static ALWAYS_INLINE void spread_pair(float to[SPAN_BLOCKS][QUARTERS], __m512 a, __m512 b)
{
    __m512i place = _mm512_setr_epi32(0, 0, 16, 16, 1, 1, 17, 17, 2, 2, 18, 18, 3, 3, 19, 19);
    for (size_t i = 0; i < SPAN_BLOCKS; i += QUARTERS) {
        _mm512_store_ps(to[i], _mm512_permutex2var_ps(a, place, b));
        place = _mm512_add_epi32(place, _mm512_set1_epi32(QUARTERS));
    }
}

/* Scales and minima of n blocks from block b on of the rows w. */
static ALWAYS_INLINE void spread_scales(const dtype type, const q_job *job, panel_scales *to,
                                        const unsigned char *const w[PANEL_N], size_t b, size_t n)
{
    for (size_t p = 0; p < PAIRS; p++) {
        __m512 scale[2], minimum[2];
        for (size_t i = 0; i < 2; i++) {
            scale[i] = odd_scales(type, load_scales(type, job, w[2 * p + i], b, n, &minimum[i]));
        }
        spread_pair(to->scale[p], scale[0], scale[1]);
        if (type != DTYPE_Q8) {
            spread_pair(to->minimum[p], minimum[0], minimum[1]);
        }
    }
}

/* Adds block i of a span to its sums, which the first span of a row begins. acc[n]: lanes 2t and 2t + 1
 * of row t. */
static ALWAYS_INLINE void add_block(const dtype type, panel_sums sums, const quant_panel *x,
                                    const __m512i acc[PANEL_N], const panel_scales *scales, size_t i,
                                    const bool begin)
{
    enum { EVEN = _MM_SHUFFLE(2, 0, 2, 0), ODD = _MM_SHUFFLE(3, 1, 3, 1) };
    const __m512 x_scale = _mm512_loadu_ps(x->scale);
    for (size_t p = 0; p < PAIRS; p++) {
        const __m512 a = _mm512_castsi512_ps(acc[2 * p]), b = _mm512_castsi512_ps(acc[2 * p + 1]);
        const __m512i whole = _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(a, b, EVEN)),
                                               _mm512_castps_si512(_mm512_shuffle_ps(a, b, ODD)));
        const __m512 w_scale = _mm512_broadcast_f32x4(_mm_load_ps(scales->scale[p][i]));
        __m512 sum = begin ? _mm512_setzero_ps() : _mm512_load_ps(sums[p]);
        if (type != DTYPE_Q8) {
            const __m512 minimum = _mm512_broadcast_f32x4(_mm_load_ps(scales->minimum[p][i]));
            sum = _mm512_fmadd_ps(minimum, _mm512_loadu_ps(x->sum), sum);
        }
        sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), _mm512_mul_ps(w_scale, x_scale), sum);
        _mm512_store_ps(sums[p], sum);
    }
}

/* Adds blocks i and i + 1 of a span, which are a group, of nx panels that are `stride` blocks apart. w: the
 * group's bytes; of q5 as load_group makes them. */
static ALWAYS_INLINE void add_group(const dtype type, panel_sums sums[][LANES], const quant_panel *x,
                                    size_t stride, const unsigned char *const w[PANEL_N],
                                    const panel_scales *scales, size_t i, const bool begin, const size_t nx)
{
    enum { STEPS = QUANT_BLOCK / 8 };
    __m512i acc[TOGETHER][2][PANEL_N];
    for (size_t p = 0; p < nx; p++) {
        for (size_t h = 0; h < 2; h++) {
            for (size_t n = 0; n < PANEL_N; n++) {
                acc[p][h][n] =
                    type == DTYPE_Q8 ? _mm512_loadu_si512(x[p * stride + h].offset) : _mm512_setzero_si512();
            }
        }
    }
    for (size_t k = 0; k < STEPS; k++) {
        __m512i x0[TOGETHER], x1[TOGETHER];
        for (size_t p = 0; p < nx; p++) {
            x0[p] = _mm512_loadu_si512(x[p * stride].q[k]);
            x1[p] = _mm512_loadu_si512(x[p * stride + 1].q[k]);
        }
        for (size_t n = 0; n < PANEL_N; n++) {
            __m512i w0 = eight_weights(w[n] + 8 * k), w1;
            if (type == DTYPE_Q4) {
                const __m512i low = _mm512_set1_epi8(15);
                w1 = _mm512_andnot_si512(low, w0);
                w0 = _mm512_and_si512(low, w0);
            } else {
                w1 = eight_weights(w[n] + QUANT_BLOCK + 8 * k);
            }
            for (size_t p = 0; p < nx; p++) {
                acc[p][0][n] = add_products(acc[p][0][n], w0, x0[p]);
                acc[p][1][n] = add_products(acc[p][1][n], w1, x1[p]);
            }
        }
    }
    for (size_t p = 0; p < nx; p++) {
        add_block(type, sums[p][i], x + p * stride, acc[p][0], scales, i, begin);
        add_block(type, sums[p][i + 1], x + p * stride + 1, acc[p][1], scales, i + 1, begin);
    }
}

/* Groups of n blocks from block b on of a row of q5, as load_group makes them. */
static ALWAYS_INLINE void unpack_span(uint8_t *out, const q_job *job, const unsigned char *row, size_t b,
                                      size_t n, bool ask)
{
    if (ask) {
        ask_span(DTYPE_Q5, job, row, b, n / 2);
    }
    for (size_t g = 0; g < n / 2; g++) {
        _mm512_store_si512(out + g * QUANT_GROUP, load_group(DTYPE_Q5, job, row, b / 2 + g));
    }
}

/* The n blocks from block b on. ask: for the weights to come. */
static ALWAYS_INLINE void add_span_of_panel(const dtype type, panel_sums sums[][LANES], const quant_panel *x,
                                            const q_job *job, const unsigned char *const rows[PANEL_N],
                                            size_t b, size_t n, const bool begin, const size_t nx, bool ask)
{
    const size_t group_bytes = type == DTYPE_Q4 ? QUANT_BLOCK : QUANT_GROUP;
    _Alignas(CACHE_LINE) uint8_t bytes[PANEL_N][SPAN_GROUPS * QUANT_GROUP]; /* of q5 */
    const unsigned char *w[PANEL_N];
    panel_scales scales;
    spread_scales(type, job, &scales, rows, b, n);
    for (size_t r = 0; r < PANEL_N; r++) {
        w[r] = rows[r] + b / 2 * group_bytes;
        if (type == DTYPE_Q5) {
            unpack_span(bytes[r], job, rows[r], b, n, ask);
            w[r] = bytes[r];
        }
    }
    ask = ask && type != DTYPE_Q5;
    for (size_t i = 0; i < n; i += 2) {
        for (size_t r = 0; ask && (type == DTYPE_Q8 || i % 4 == 0) && r < PANEL_N; r++) {
            prefetch_line(w[r]);
        }
        add_group(type, sums, x + b + i, job->n_blocks, w, &scales, i, begin, nx);
        for (size_t r = 0; r < PANEL_N; r++) {
            w[r] += group_bytes;
        }
    }
}

/* Lanes l and l + 8, l + 4, l + 2, l + 1 of every product added, as v_sum does. */
static ALWAYS_INLINE void add_lanes(float *out, panel_sums *sums)
{
    for (size_t p = 0; p < PAIRS; p++) {
        __m512 v[LANES / 2];
        for (size_t l = 0; l < LANES / 2; l++) {
            v[l] = _mm512_add_ps(_mm512_load_ps(sums[l][p]), _mm512_load_ps(sums[l + LANES / 2][p]));
        }
        for (size_t half = LANES / 4; half > 0; half /= 2) {
            for (size_t l = 0; l < half; l++) {
                v[l] = _mm512_add_ps(v[l], v[l + half]);
            }
        }
        _mm512_store_ps(out + p * LANES, v[0]);
    }
}

/* The products of nx panels with four rows of weights, as a register of each pair. ask: for the weights
 * to come. */
static ALWAYS_INLINE void panel_rows_q(const dtype type, const q_job *job, float *const out[TOGETHER],
                                       const quant_panel *x, const unsigned char *const rows[PANEL_N],
                                       const size_t nx, bool ask)
{
    _Alignas(CACHE_LINE) panel_sums sums[TOGETHER][LANES];
    const size_t first = job->n_blocks < SPAN_BLOCKS ? job->n_blocks : SPAN_BLOCKS;
    add_span_of_panel(type, sums, x, job, rows, 0, first, true, nx, ask);
    for (size_t l = first; l < LANES; l++) {
        for (size_t p = 0; p < nx; p++) {
            memset(sums[p][l], 0, sizeof sums[p][l]);
        }
    }
    for (size_t b = SPAN_BLOCKS; b < job->n_blocks; b += SPAN_BLOCKS) {
        const size_t left = job->n_blocks - b < SPAN_BLOCKS ? job->n_blocks - b : SPAN_BLOCKS;
        add_span_of_panel(type, sums, x, job, rows, b, left, false, nx, ask);
    }
    for (size_t r = 0; ask && r < PANEL_N; r++) {
        ask_scales(job, rows[r]);
    }
    for (size_t p = 0; p < nx; p++) {
        add_lanes(out[p], sums[p]);
    }
}

/* What n_written times four rows of weights gave with the T rows of a panel: rows n + i + r * step. */
typedef float panel_results[WRITTEN][PAIRS * LANES];

static ALWAYS_INLINE void write_some(const q_job *job, float *out, const panel_results from, size_t T,
                                     size_t step, size_t n_written, size_t n_rows)
{
    for (size_t t = 0; t < T; t++) {
        for (size_t r = 0; r < n_rows; r++) {
            const size_t place = r / 2 * LANES + quant_panel_place(t) + r % 2 * 2;
            for (size_t i = 0; i < n_written; i++) {
                out[t * job->out_stride + r * step + i] = from[i][place];
            }
        }
    }
}

/* The same of WRITTEN times four rows and a whole panel: four results side by side. */
static ALWAYS_INLINE void write_all(const q_job *job, float *out, const panel_results from, size_t step)
{
    for (size_t p = 0; p < PAIRS; p++) {
        __m512 v[WRITTEN], turned[QUARTERS];
        for (size_t i = 0; i < WRITTEN; i++) {
            v[i] = _mm512_load_ps(from[i] + p * LANES);
        }
        for (size_t h = 0; h < 2; h++) { /* turned[j]: lane j of each quarter of all */
            const __m512 a = h ? _mm512_unpackhi_ps(v[0], v[1]) : _mm512_unpacklo_ps(v[0], v[1]);
            const __m512 b = h ? _mm512_unpackhi_ps(v[2], v[3]) : _mm512_unpacklo_ps(v[2], v[3]);
            turned[2 * h] = _mm512_shuffle_ps(a, b, _MM_SHUFFLE(1, 0, 1, 0));
            turned[2 * h + 1] = _mm512_shuffle_ps(a, b, _MM_SHUFFLE(3, 2, 3, 2));
        }
        for (size_t j = 0; j < QUARTERS; j++) {
            float *to = out + j % 2 * job->out_stride + (2 * p + j / 2) * step;
            _mm_storeu_ps(to, _mm512_extractf32x4_ps(turned[j], 0));
            _mm_storeu_ps(to + 2 * job->out_stride, _mm512_extractf32x4_ps(turned[j], 1));
            _mm_storeu_ps(to + 4 * job->out_stride, _mm512_extractf32x4_ps(turned[j], 2));
            _mm_storeu_ps(to + 6 * job->out_stride, _mm512_extractf32x4_ps(turned[j], 3));
        }
    }
}

/* n_written times n_rows rows of weights, rows n + i + r * step, with T rows of PANELS panels; of fewer than four
 * the last one is taken several times. */
static ALWAYS_INLINE void panel_some_q(const dtype type, const q_job *job, float *out, const quant_panel *x,
                                       size_t T, size_t n, size_t step, size_t n_written, size_t n_rows)
{
    _Alignas(CACHE_LINE) panel_results results[PANELS];
    const size_t panel_blocks = quant_panel_blocks(1, job->K);
    for (size_t i = 0; i < n_written; i++) {
        const unsigned char *rows[PANEL_N];
        for (size_t r = 0; r < PANEL_N; r++) {
            rows[r] = job->w + (n + i + (r < n_rows ? r : n_rows - 1) * step) * job->row_bytes;
        }
        size_t p = 0;
        for (; (p + 1) * QUANT_PANEL_ROWS < T; p += TOGETHER) {
            float *const to[TOGETHER] = {results[p][i], results[p + 1][i]};
            panel_rows_q(type, job, to, x + p * panel_blocks, rows, TOGETHER, p == 0);
        }
        if (p * QUANT_PANEL_ROWS < T) {
            float *const to[TOGETHER] = {results[p][i]};
            panel_rows_q(type, job, to, x + p * panel_blocks, rows, 1, p == 0);
        }
    }
    for (size_t t = 0; t < T; t += QUANT_PANEL_ROWS) {
        float *to = out + t * job->out_stride + n;
        const size_t left = T - t < QUANT_PANEL_ROWS ? T - t : QUANT_PANEL_ROWS;
        if (n_written == WRITTEN && n_rows == PANEL_N && left == QUANT_PANEL_ROWS) {
            write_all(job, to, results[t / QUANT_PANEL_ROWS], step);
        } else {
            write_some(job, to, results[t / QUANT_PANEL_ROWS], left, step, n_written, n_rows);
        }
    }
}

/* Slices of memory side by side. */
static ALWAYS_INLINE void panel_all_q(const dtype type, const q_job *job, const quant_panel *x, size_t T,
                                      size_t N)
{
    enum { MOST = PANELS * QUANT_PANEL_ROWS };
    const size_t step = N / PANEL_N, rest = step * PANEL_N;
    for (size_t t = 0; t < T; t += MOST) {
        const size_t rows = T - t < MOST ? T - t : MOST;
        const quant_panel *panels = x + quant_panel_blocks(t, job->K);
        float *out = job->out + t * job->out_stride;
        for (size_t n = 0; n < step; n += WRITTEN) {
            const size_t left = step - n < WRITTEN ? step - n : WRITTEN;
            panel_some_q(type, job, out, panels, rows, n, step, left, PANEL_N);
        }
        if (rest < N) {
            panel_some_q(type, job, out, panels, rows, rest, 1, 1, N - rest);
        }
    }
}

void panel_q8_vnni(float *out, size_t out_stride, const quant_panel *x, size_t T, const void *w, size_t N,
                   size_t K)
{
    const q_job job = make_job(DTYPE_Q8, out, out_stride, w, K);
    panel_all_q(DTYPE_Q8, &job, x, T, N);
}

void panel_q4_vnni(float *out, size_t out_stride, const quant_panel *x, size_t T, const void *w, size_t N,
                   size_t K)
{
    const q_job job = make_job(DTYPE_Q4, out, out_stride, w, K);
    panel_all_q(DTYPE_Q4, &job, x, T, N);
}

void panel_q5_vnni(float *out, size_t out_stride, const quant_panel *x, size_t T, const void *w, size_t N,
                   size_t K)
{
    const q_job job = make_job(DTYPE_Q5, out, out_stride, w, K);
    panel_all_q(DTYPE_Q5, &job, x, T, N);
}

int32_t peak_q_vnni(size_t rounds)
{
    const __m512i x = _mm512_set1_epi8(1);
    __m512i acc[PEAK_VECTORS];
    for (size_t i = 0; i < PEAK_VECTORS; i++) {
        acc[i] = _mm512_setzero_si512();
    }
    for (size_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < PEAK_VECTORS; i++) {
            acc[i] = add_products(acc[i], x, x);
        }
    }
    for (size_t i = 1; i < PEAK_VECTORS; i++) {
        acc[0] = _mm512_add_epi32(acc[0], acc[i]);
    }
    return _mm512_reduce_add_epi32(acc[0]);
}

#endif
