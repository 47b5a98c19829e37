#include "compute/formats/quant.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compute/formats/half.h"

size_t quant_row_bytes(dtype type, size_t K)
{
    assert(type == DTYPE_Q8 || type == DTYPE_Q4 || type == DTYPE_Q5);
    size_t Kp = quant_columns(K), n_blocks = Kp / QUANT_BLOCK;
    return type == DTYPE_Q8 ? Kp + 2 * n_blocks
                            : Kp / 2 + (type == DTYPE_Q5 ? Kp / 8 : 0) + 2 * n_blocks + sizeof(uint32_t);
}

/* The least bf16 that is not below x >= 0. */
static float bf16_above(float x)
{
    uint16_t bits = bf16_from_f32(x);
    return bf16_to_f32(bf16_to_f32(bits) < x ? (uint16_t)(bits + 1) : bits);
}

static void quant_block8(unsigned char *u, unsigned char *scale, const float *w)
{
    float most = 0;
    for (size_t i = 0; i < QUANT_BLOCK; i++) {
        most = fmaxf(most, fabsf(w[i]));
    }
    float s = bf16_above(most / 127.0f), inverse = s > 0 ? 1.0f / s : 0;
    for (size_t i = 0; i < QUANT_BLOCK; i++) {
        float v = fminf(fmaxf(rintf(w[i] * inverse), -127.0f), 127.0f);
        u[i] = (unsigned char)((int)v + 128);
    }
    bf16_put(scale, s);
}

/* ---- 4 and 5 bits ---- */

/* The best scale and zero point of a block so far, as they are stored. */
typedef struct block_fit {
    float w[QUANT_BLOCK];
    float most; /* the largest number, 15 or 31 */
    float step;
    uint32_t base;
    double error;
    unsigned char scale, zero;
} block_fit;

/* Sums over a block whose numbers are u. */
typedef struct fit_sums {
    double w, ww, u, uu, uw;
} fit_sums;

/* To the nearest whole number, ties to even; |x| < 2^22. */
static inline float nearest(float x)
{
    const float big = 12582912.0f;
    return (x + big) - big;
}

/* The sums for scale s and minimum m; lanes apart, so that they become vectors. */
static fit_sums sum_block(const block_fit *f, float s, float m)
{
    enum { LANES = 8 };
    const float inverse = 1.0f / s, most = f->most;
    float w[LANES] = {0}, ww[LANES] = {0}, u[LANES] = {0}, uu[LANES] = {0}, uw[LANES] = {0};
    fit_sums sums = {0};
    for (size_t i = 0; i < QUANT_BLOCK; i += LANES) {
        for (size_t l = 0; l < LANES; l++) {
            const float x = f->w[i + l];
            float v = (x - m) * inverse;
            v = v > 0 ? v : 0;
            v = nearest(v < most ? v : most);
            w[l] += x;
            ww[l] += x * x;
            u[l] += v;
            uu[l] += v * v;
            uw[l] += v * x;
        }
    }
    for (size_t l = 0; l < LANES; l++) {
        sums.w += (double)w[l];
        sums.ww += (double)ww[l];
        sums.u += (double)u[l];
        sums.uu += (double)uu[l];
        sums.uw += (double)uw[l];
    }
    return sums;
}

/* Takes the stored scale `byte` with the zero point that fits it best, if that is better than what f has. */
static void try_scale(block_fit *f, const fit_sums *sums, int64_t byte)
{
    const unsigned char kept = (unsigned char)(byte < 0 ? 0 : byte > 255 ? 255 : byte);
    const double n = QUANT_BLOCK, s = (double)quant_scale(f->base, kept), unit = s * (double)f->step;
    const double wanted = (sums->w - s * sums->u) / (n * unit);
    const double zero = wanted > 0 ? (wanted < 255 ? rint(wanted) : 255) : 0, m = unit * zero;
    const double error =
        sums->ww - 2 * s * sums->uw - 2 * m * sums->w + s * s * sums->uu + 2 * s * m * sums->u + n * m * m;
    if (error < f->error) {
        f->error = error;
        f->scale = kept;
        f->zero = (unsigned char)zero;
    }
}

/* Rounds with scale s and minimum m, and tries the line of least squares through these numbers. */
static void try_range(block_fit *f, float s, float m)
{
    if (!(s > 0) || !isfinite(1.0f / s)) {
        return;
    }
    const fit_sums sums = sum_block(f, s, m);
    const double n = QUANT_BLOCK, spread = n * sums.uu - sums.u * sums.u;
    const double best = spread > 0 ? (n * sums.uw - sums.u * sums.w) / spread : (double)s;
    const float fitted = (float)best;
    uint32_t bits = 0;
    if (fitted > 0) {
        memcpy(&bits, &fitted, sizeof bits);
    }
    const int64_t byte = ((int64_t)bits - (int64_t)f->base) >> QUANT_SCALE_SHIFT;
    try_scale(f, &sums, byte);
    try_scale(f, &sums, byte + 1);
}

static float fit_scale(const block_fit *f)
{
    return quant_scale(f->base, f->scale);
}

static float fit_minimum(const block_fit *f)
{
    return fit_scale(f) * f->step * (float)f->zero;
}

/* The least and the greatest of a block and zero, by 15 or 31: what a scale must reach. */
static void range_of(const block_fit *f, float *least, float *most)
{
    *least = *most = 0;
    for (size_t i = 0; i < QUANT_BLOCK; i++) {
        *least = fminf(*least, f->w[i] / f->most);
        *most = fmaxf(*most, f->w[i] / f->most);
    }
}

/* Scale and zero point of f->w. Ranges are the block's own and narrower ones, cut at both ends or at one. */
static void fit_block(block_fit *f)
{
    enum { CUTS = 6, ENDS = 3 };
    float least, most;
    range_of(f, &least, &most);
    f->error = INFINITY;
    f->scale = f->zero = 0;
    for (size_t i = 0; i < CUTS; i++) {
        const float cut = 0.04f * (float)i, s = (most - least) * (1 - cut);
        for (size_t end = 0; end < (i ? ENDS : 1); end++) {
            try_range(f, s, f->most * (least + (most - least) * cut * 0.5f * (float)end));
        }
    }
    for (size_t again = 0; again < 2; again++) {
        try_range(f, fit_scale(f), fit_minimum(f));
    }
}

/* The floats of block b; 0 for the padding and for what is not finite. */
static void read_block(float out[QUANT_BLOCK], const float *w, size_t K, size_t b)
{
    for (size_t i = 0; i < QUANT_BLOCK; i++) {
        const size_t k = b * QUANT_BLOCK + i;
        out[i] = k < K && isfinite(w[k]) ? w[k] : 0.0f;
    }
}

/* What is added to the bytes of scales, so that the largest one is 255. */
static uint32_t row_base(block_fit *f, const float *w, size_t K)
{
    const uint32_t unit = 1u << QUANT_SCALE_SHIFT, least_normal = 1u << 23;
    float widest = 0;
    for (size_t b = 0; b < quant_columns(K) / QUANT_BLOCK; b++) {
        float least, most;
        read_block(f->w, w, K, b);
        range_of(f, &least, &most);
        widest = fmaxf(widest, most - least);
    }
    uint32_t bits;
    memcpy(&bits, &widest, sizeof bits);
    bits = (bits + unit - 1) / unit * unit;
    return bits < 255 * unit + least_normal ? least_normal : bits - 255 * unit;
}

/* Column i of block b: where its number lies. */
static void store_number(unsigned char *row, const quant_small *at, dtype type, size_t b, size_t i,
                         unsigned u)
{
    const size_t bit = b * QUANT_BLOCK + i;
    unsigned char *both = row + b / 2 * QUANT_BLOCK + i, *eight = row + (at->fifth - row) + bit / 8;
    unsigned nibble = u, fifth = 0;
    if (type == DTYPE_Q5) {
        nibble = b % 2 ? u >> 1 : u & 15u;
        fifth = b % 2 ? u & 1u : u >> 4;
        *eight = (unsigned char)((*eight & ~(1u << bit % 8)) | fifth << bit % 8);
    }
    *both = (unsigned char)(b % 2 ? (*both & 15u) | nibble << 4 : (*both & 0xf0u) | nibble);
}

static void quant_row_small(unsigned char *row, dtype type, const float *w, size_t K)
{
    const size_t n_blocks = quant_columns(K) / QUANT_BLOCK;
    const quant_small at = quant_small_at(type, row, K);
    block_fit f = {.most = type == DTYPE_Q5 ? 31 : 15, .step = at.step};
    f.base = row_base(&f, w, K);
    unsigned char *scale = row + (at.scale - row), *zero = scale + n_blocks;
    for (size_t b = 0; b < n_blocks; b++) {
        read_block(f.w, w, K, b);
        fit_block(&f);
        const float s = fit_scale(&f), m = fit_minimum(&f), inverse = 1.0f / s;
        for (size_t i = 0; i < QUANT_BLOCK; i++) {
            const float v = fminf(fmaxf((f.w[i] - m) * inverse, 0.0f), f.most);
            store_number(row, &at, type, b, i, (unsigned)nearest(v));
        }
        scale[b] = f.scale;
        zero[b] = f.zero;
    }
    memcpy(zero + n_blocks, &f.base, sizeof f.base);
}

void quant_weights(void *row, dtype type, const float *w, size_t K)
{
    const size_t Kp = quant_columns(K);
    unsigned char *numbers = row;
    if (type != DTYPE_Q8) {
        quant_row_small(row, type, w, K);
        return;
    }
    for (size_t b = 0; b < Kp / QUANT_BLOCK; b++) {
        float block[QUANT_BLOCK];
        read_block(block, w, K, b);
        quant_block8(numbers + b * QUANT_BLOCK, numbers + Kp + 2 * b, block);
    }
}

void quant_pack_panels(quant_panel *out, const void *x, size_t T, size_t K)
{
    enum { WORDS = QUANT_BLOCK / 4 };
    const size_t n_blocks = quant_columns(K) / QUANT_BLOCK;
    for (size_t t0 = 0; t0 < T; t0 += QUANT_PANEL_ROWS, out += n_blocks) {
        const size_t n = T - t0 < QUANT_PANEL_ROWS ? T - t0 : QUANT_PANEL_ROWS;
        if (n < QUANT_PANEL_ROWS) {
            memset(out, 0, n_blocks * sizeof *out);
        }
        for (size_t t = 0; t < n; t++) {
            const quant_x row = quant_x_at(x, K, t0 + t);
            for (size_t b = 0; b < n_blocks; b++) {
                for (size_t i = 0; i < WORDS; i += 2) { /* two words, lanes 2t and 2t + 1 */
                    memcpy(&out[b].q[i / 2][2 * t], row.q + b * QUANT_BLOCK + 4 * i, 2 * sizeof(uint32_t));
                }
                out[b].offset[2 * t] = row.block_offset[b];
                out[b].offset[2 * t + 1] = 0;
                const size_t place = quant_panel_place(t);
                out[b].scale[place] = out[b].scale[place + 2] = row.scale[b];
                out[b].sum[place] = out[b].sum[place + 2] = row.sum[b];
            }
        }
    }
}
