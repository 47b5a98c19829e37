/* ops: the kernels of one instruction set as a table of functions. Any thread; no memory, locks or
 * threads inside.
 *
 *     const ops *o = ops_select(cpu_flags());
 *     o->dot_rows[DTYPE_F32](out, N, x, K, T, w, K, N, K);
 *
 * ops_generic.c is the specification: plain loops, always built, what the others are tested
 * against. Pointers need the alignment of their element only (weights: 2 bytes); every length is
 * allowed, 0 included. Outputs may equal the first input where a comment says "in place", otherwise
 * nothing overlaps.
 *
 * What one output element is made of never depends on how many rows or columns a call has: a row
 * alone and a row among others give the same bits. Letters as in nn.h.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_H
#define PARLEY_COMPUTE_KERNELS_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compute/formats/dtype.h"
#include "compute/kernels/ops_ggml.h"
#include "compute/kernels/ops_kv.h"
#include "compute/formats/quant.h"

/* out[t*out_stride + n] = sum_k x[t*x_stride + k] * w[n*w_stride + k] for T x N elements; strides
 * in elements. Sum: lane k % 16 of 16 accumulators takes term k in rising order; then lanes l and
 * l+8, l+4, l+2, l+1 are added. */
typedef void dot_rows_fn(float *out, size_t out_stride, const float *x, size_t x_stride, size_t T,
                         const void *w, size_t w_stride, size_t N, size_t K);

/* out[t*out_stride + n] = x[t] . w[n] for T rows of activations (quant_x_at(x, K, t)) and N rows of
 * weights. Lane b % 16 takes block b, blocks rising: for q4 and q5 first w.minimum * x.sum, fused; then
 * (float)(the block's products, as an integer) * (w.scale * x.scale), fused. Lanes are added as in
 * dot_rows. */
typedef void dot_q_fn(float *out, size_t out_stride, const void *x, size_t T, const void *w, size_t N,
                      size_t K);

/* The same, bit for bit, of rows in panels (quant_pack_panels): a weight is read once for eight of
 * them. */
typedef void panel_q_fn(float *out, size_t out_stride, const quant_panel *x, size_t T, const void *w,
                        size_t N, size_t K);

/* q8, q4 and q5. */
enum { QUANT_TYPES = 3 };

/* Rows of x that lie side by side in a packed panel. */
enum { TILE_ROWS = 64 };

/* Columns that rows rounded by round_bf16 have a multiple of. */
enum { BF16_STEP = 32 };

/* Multiplications and additions in a round of peak_f32 and peak_q: 12 vectors of 16 lanes. */
enum { PEAK_VECTORS = 12, PEAK_F32_FLOPS = PEAK_VECTORS * 16 * 2, PEAK_Q_OPS = PEAK_VECTORS * 64 * 2 };

/* Floats that ops.read takes at least. */
enum { READ_GRAIN = 256 };

/* Blocks of columns of a panel in 8 bits that share a scale. A scale for each block would have to be
 * multiplied with that of the weights for every sum of a block: a tenth of all the work. */
enum { TILE_SHARE = 8 };

/* One block of columns of a panel in 8 bits, rows side by side: x = scale * q. */
typedef struct tile_q_block {
    uint32_t q[QUANT_BLOCK / 4][TILE_ROWS]; /* columns 4i .. 4i+3, the first in the lowest byte */
    int32_t offset[TILE_ROWS];              /* -128 times the sum of the block's q */
    int32_t offset_first[TILE_ROWS];        /* the same of its first 16 columns */
    float scale[TILE_ROWS];                 /* in the first of TILE_SHARE blocks, for all of them */
} tile_q_block;

/* Rows of weights for tile_q: bytes, and a scale for every block. */
typedef struct tile_q_rows {
    const uint8_t *u;
    size_t u_stride;
    const float *scale;
    /* NULL: a weight is scale * (u - 128), as in q8; else scale * u + minimum, u <= 15 */
    const float *minimum;
    size_t stride; /* of scale and minimum */
    bool wide;     /* with minimum: u may pass 15 */
    bool halves;   /* without: each 16 columns have a scale, two in a block */
} tile_q_rows;

/* Rows of x that lie side by side for tile_turned, and rows of weights that do. */
enum { TILE_X_ROWS = 12, TILE_LANES = 16 };

/* TILE_SHARE blocks of columns of such rows of x: x = scale * q. */
typedef struct tile_x_share {
    uint32_t q[TILE_SHARE][TILE_X_ROWS]
              [QUANT_BLOCK / 4];                   /* columns 4i .. 4i+3, the first in the lowest byte */
    int32_t offset[TILE_SHARE][TILE_X_ROWS];       /* -128 times the sum of the block's q */
    int32_t offset_first[TILE_SHARE][TILE_X_ROWS]; /* the same of its first 16 columns */
    float scale[TILE_X_ROWS];
} tile_x_share;

/* Rows of weights for tile_turned, TILE_LANES of them side by side. */
typedef struct tile_q_turned {
    uint32_t
        *u; /* [N / TILE_LANES, n_blocks, QUANT_BLOCK / 4, TILE_LANES]: four columns of a row are a word */
    float *scale;   /* [N / TILE_LANES, n_blocks, TILE_LANES], with halves twice as many blocks */
    float *minimum; /* as scale, each times -1/128, which is what offsets want; or NULL: as in tile_q_rows */
    bool halves;
} tile_q_turned;

/* Memory that is asked for, a little at a time, while a kernel computes. */
typedef struct prefetch_range {
    const unsigned char *at;
    size_t lines; /* CACHE_LINE bytes each */
} prefetch_range;

/* Attention in 8 bits: queries, and keys, side by side; keys of a tile, which share the scales of their values, and
 * of a panel of them, whose largest weight is 255; columns of values side by side. */
enum { ATTEND_SIDE = 16, ATTEND_KEYS = 256, ATTEND_PANEL = 64, ATTEND_COLUMNS = 8 };

/* ATTEND_TOP: log2(255). ATTEND_FAR: below every score, where a softmax begins. */
#define ATTEND_TOP   7.99435344f
#define ATTEND_LEAST 64.0f
#define ATTEND_FAR   1e38f
#define ATTEND_C1    0.69328293f
#define ATTEND_C2    0.24221100f
#define ATTEND_C3    0.05500894f

/* A tile of n keys and values, 1 <= n <= ATTEND_KEYS: number = scale * q. Four numbers are a word, the first in the
 * lowest byte, zeros behind the last. */
typedef struct attend_keys {
    size_t n, hd;
    const uint32_t *k;    /* [n / ATTEND_SIDE rounded up, (hd+3)/4, ATTEND_SIDE]: of the columns of a key */
    const float *k_scale; /* for each k, zeros behind the last */
    const int32_t *k_offset; /* -128 times the sum of a key's q, likewise */
    /* [hd / ATTEND_COLUMNS rounded up, ATTEND_KEYS/4, ATTEND_COLUMNS]: of the keys of a column */
    const uint32_t *v;
    const float *v_scale; /* for each column, zeros behind the last */
} attend_keys;

/* ATTEND_SIDE queries and the softmax under way. Begin with max = -ATTEND_FAR, sum and mix zeros. */
typedef struct attend_queries {
    const uint32_t *q;        /* [(hd+3)/4, ATTEND_SIDE] words as above, of q + 128 */
    float scale[ATTEND_SIDE]; /* times log2(e) */
    float max[ATTEND_SIDE], sum[ATTEND_SIDE];
    float *mix; /* [hd rounded up to ATTEND_COLUMNS, ATTEND_SIDE] values so far; an output is mix / sum */
} attend_queries;

/* M x K times K x N; strides in floats. */
typedef void mul_fn(float *c, size_t c_stride, const float *a, size_t a_stride, const float *b,
                    size_t b_stride, size_t M, size_t K, size_t N);

typedef struct ops {
    const char *name;

    /* ---- by dtype: DTYPE_F32, DTYPE_BF16, DTYPE_F16 ---- */
    void (*widen[DTYPE_OTHER])(float *out, const void *in, size_t n);
    dot_rows_fn *dot_rows[DTYPE_OTHER];
    /* Many rows, too, take dot_rows before BLAS. Measured: with AVX-512 it is as fast as OpenBLAS's
     * AVX-512 kernels and twice its Haswell ones; with AVX2 it reaches two thirds of BLAS. */
    bool dot_rows_best;
    /* Prompts and images take the tiles below; otherwise they go the same way as few rows. */
    bool tiles_best;

    /* ---- blocks of 8, 4 and 5 bits (quant.h); index type - DTYPE_Q8 ---- */

    /* A row of K floats in the format of dot_rows_q: scale = largest / 127, numbers rounded to
     * nearest even. */
    void (*quantize_x)(quant_x *out, const float *x, size_t K);
    dot_q_fn *dot_q[QUANT_TYPES];
    panel_q_fn *panel_q[QUANT_TYPES]; /* NULL where dot_q is as fast for many rows */

    /* ---- tiles, for many rows ---- */

    /* sums[n*TILE_ROWS + t] += sum_k x[k*TILE_ROWS + t] * w[n*w_stride + k]: a panel of rows
     * turned, so that a weight serves 16 of them. T counts in steps of 16, what is beyond it is of
     * no use. One accumulator an element, k rising from 0, added to sums at the end. */
    void (*tile_f32)(float *sums, const float *x, const float *w, size_t w_stride, size_t T, size_t N,
                     size_t K);

    /* The same in bf16; NULL where it is not faster. */

    /* A panel of T <= TILE_ROWS rows rounded to bf16 (nearest, ties to even): out[k/2 * TILE_ROWS +
     * t] holds columns k (low half) and k+1 of row t. Rows T .. up to the next multiple of 16
     * become zeros; later ones stay. K even. */
    void (*pack_bf16)(uint32_t *out, const float *x, size_t x_stride, size_t T, size_t K);
    /* sums[n*TILE_ROWS + t] += sum_k x[t,k] * w[n,k] of a packed x and bf16 rows w (stride in
     * elements); T counts in steps of 16, what is beyond it is of no use; K even. One accumulator
     * an element, pairs in rising order; what is rounded inside a pair (with AMX inside 16 of them, even and
     * odd columns apart), and what happens to numbers below 2^-126, is the instruction's own. */
    void (*tile_bf16)(float *sums, const uint32_t *x, const void *w, size_t w_stride, size_t T, size_t N,
                      size_t K);

    /* Few rows in bf16; NULL where they are not faster. */

    /* A row rounded to bf16 (nearest, ties to even); zeros from K up to a multiple of BF16_STEP. */
    void (*round_bf16)(uint16_t *out, const float *x, size_t K);
    /* out[t*out_stride + n] = sum_k x[t,k] * w[n,k] of rounded rows x and bf16 rows w, strides in elements. Lane
     * k / 2 % 16 takes a pair of columns, pairs rising; lanes are added as in dot_rows. What happens inside a
     * pair is the instruction's own, as above. */
    void (*dot_bf16)(float *out, size_t out_stride, const uint16_t *x, size_t x_stride, size_t T,
                     const void *w, size_t w_stride, size_t N, size_t K);

    /* The same in 8 bits, for weights in blocks. */

    /* A row of q4 or q5 (index type - DTYPE_Q4): numbers, a byte each, and each block's scale and minimum. */
    void (*unpack_q[2])(uint8_t *u, float *scale, float *minimum, const void *row, size_t K);
    /* A panel of T <= TILE_ROWS rows of K columns, quant_columns(K) / QUANT_BLOCK blocks: the scale is the
     * largest magnitude of its TILE_SHARE blocks / 127, numbers are rounded to nearest even. Columns from
     * K on and rows T .. up to the next multiple of 16 become zeros; later ones stay. */
    void (*pack_q)(tile_q_block *out, const float *x, size_t x_stride, size_t T, size_t K);
    /* sums[n*TILE_ROWS + t] = w[n] . x[t] of n_blocks blocks. Each TILE_SHARE of them give a part: from
     * zero, blocks rising, it takes the integer sum of a block, as a float, times w.scale, fused; then
     * w.minimum times the sum of the block's q, fused; with halves, the first 16 columns of a block and the
     * others one after the other. The sum takes, from zero, each part times x.scale, fused. T counts in
     * steps of 16. NULL where tile_turned takes its place. */
    void (*tile_q)(float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T, size_t N,
                   size_t n_blocks);

    /* The same with the weights turned instead of x, so that results lie as rows; NULL where tile_q is
     * quicker. */

    /* T <= TILE_X_ROWS rows of K columns, rounded as by pack_q; rows from T on stay. */
    void (*pack_x)(tile_x_share *out, const float *x, size_t x_stride, size_t T, size_t K);
    /* N rows of weights, turned; lanes without a row become zeros. The memory of `to` is the caller's, its
     * minimum NULL or not like that of w. */
    void (*turn_q)(const tile_q_turned *to, const tile_q_rows *w, size_t N, size_t n_blocks);
    /* out[t*out_stride + n] = w[n] . x[t], with the bits of tile_q, + bias[n] unless it is NULL. x: panels of
     * TILE_X_ROWS rows, each ceil(n_blocks / TILE_SHARE) shares; n_blocks > 0. `ahead` is for the cache alone. */
    void (*tile_turned)(float *out, size_t out_stride, const tile_x_share *x, const tile_q_turned *w,
                        const float *bias, size_t T, size_t N, size_t n_blocks, prefetch_range ahead);

    /* ---- block types of GGUF files ---- */
    const ggml_kernels *ggml; /* [GGML_TYPES] */

    /* ---- limits ---- */

    /* PEAK_F32_FLOPS a round, on registers alone: the limit of everything above (limits.h). */
    float (*peak_f32)(size_t rounds);
    /* PEAK_Q_OPS a round; NULL without an instruction for dot products of bytes. */
    int32_t (*peak_q)(size_t rounds);
    /* The sum of n floats, read as `streams` (1, 2 or 4) slices side by side: what waits for memory
     * alone. n counts in steps of READ_GRAIN; memory is asked up to a page ahead, also behind the
     * last float. */
    float (*read)(const float *p, size_t n, size_t streams);

    /* ---- packed keys and values ---- */
    const kv_ops *kv; /* [KV_TYPES] */

    /* ---- small matrices ---- */

    /* c[m,n] = sum_k a[m,k] * b[k,n], k rising. */
    mul_fn *mul;
    /* The same, starting from c. */
    mul_fn *mul_add;
    /* out[n,m] = in[m,n]. */
    void (*transpose)(float *out, size_t out_stride, const float *in, size_t in_stride, size_t M, size_t N);

    /* ---- one row ---- */
    void (*add)(float *y, const float *x, size_t n); /* y += x */
    void (*scale)(float *x, float s, size_t n);      /* x *= s */
    /* x / sqrt(mean(x^2) + eps) * w; in place. */
    void (*rmsnorm)(float *out, const float *x, const float *w, float eps, size_t n);
    /* rmsnorm(x) * silu(z); in place. */
    void (*rmsnorm_gated)(float *out, const float *x, const float *z, const float *w, float eps, size_t n);
    /* (x - mean) / sqrt(variance + eps) * w + b; in place. */
    void (*layernorm)(float *out, const float *x, const float *w, const float *b, float eps, size_t n);
    /* x / sqrt(sum(x^2) + 1e-6) * s; in place. */
    void (*l2norm)(float *out, const float *x, float s, size_t n);
    void (*exp)(float *x, size_t n);                            /* x = e^x */
    void (*silu_mul)(float *gate, const float *up, size_t n);   /* gate = silu(gate) * up */
    void (*sigmoid_mul)(float *x, const float *gate, size_t n); /* x *= sigmoid(gate) */
    void (*gelu_tanh)(float *x, size_t n);
    void (*gelu_erf)(float *x, size_t n);
    /* (x[i], x[i+n]) rotated by (cos[i], sin[i]). */
    void (*rope)(float *x, const float *cos, const float *sin, size_t n);

    /* One tile of an online softmax: raises *max to the largest of s, s = exp(s - *max), updates
     * *sum, and returns the factor exp(old max - new max) for what was accumulated before. Start
     * with *max = -INFINITY, *sum = 0. */
    float (*softmax_tile)(float *s, size_t n, float *max, float *sum);
    /* Attention of ATTEND_SIDE queries to a tile of keys in 8 bits, an online softmax again. A score is the products'
     * integer sum, as a float, times k_scale. In each ATTEND_PANEL keys, with top the largest score, a weight is
     * 2^(score * scale + (ATTEND_TOP - top * scale)), each of both sums fused, rounded to nearest even, 255 at
     * most: so a key that stands out costs those of other panels nothing of theirs. *max becomes the largest score
     * so far; a panel counts times 2^((top - max) * scale), what there was before times 2^((old max - max) * scale),
     * both exponents -ATTEND_LEAST at least. sum takes weights; mix, after it was multiplied with that, the sum over
     * panels, from zero and rising, of (float)(weights . v) * the panel's factor, fused, times v_scale, fused.
     * 2^t = 2^i * (((ATTEND_C3 * f + ATTEND_C2) * f + ATTEND_C1) * f + 1), fused, i the nearest integer to t
     * and f = t - i. NULL where this is not faster than floats. */
    void (*attend_q)(attend_queries *to, const attend_keys *keys);

    /* ---- GatedDeltaNet ---- */

    /* out[t,c] = silu(bias[c] + sum_j w[c*4 + j] * u[t-3+j, c]) for n channels; rows before the first
     * come from tail [3, tail_stride]; bias NULL: zeros. */
    void (*conv_silu)(float *out, size_t out_stride, const float *u, size_t u_stride, const float *tail,
                      size_t tail_stride, const float *w, const float *bias, size_t T, size_t n);
    /* One token, n columns of a state S [dk, stride]: m = k (decay S); to = decay S + k^T (beta (v
     * - m)); out = q to. `to` has the shape of S and may be S. next: a state of that shape that is asked
     * for meanwhile, as it comes next; or NULL. */
    void (*delta_step)(float *out, float *to, const float *S, size_t stride, const float *q, const float *k,
                       const float *v, float beta, float decay, size_t dk, size_t n, const float *next);
} ops;

/* The best table for a set of CPU_* flags; never NULL. */
const ops *ops_select(unsigned flags);

/* The tables by name; NULL where this build has none (another processor family). */
const ops *ops_generic(void);
const ops *ops_avx2(void);
const ops *ops_avx512(void);
const ops *ops_avx512_vnni(void); /* needs VNNI too */
const ops *ops_avx512_bf16(void); /* needs VNNI and BF16 too */
const ops *ops_avx512_amx(void);  /* needs VNNI, BF16 and AMX too */
const ops *ops_neon(void);
const ops *ops_neon_dotprod(void); /* needs the extension of dot products */
const ops *ops_neon_i8mm(void);    /* needs the dot products too */

#endif
