#include "compute/formats/quant.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "compute/formats/half.h"

size_t quant_row_bytes(dtype type, size_t K)
{
    assert(type == DTYPE_Q8 || type == DTYPE_Q4);
    size_t Kp = quant_columns(K), n_blocks = Kp / QUANT_BLOCK;
    return type == DTYPE_Q8 ? Kp + 2 * n_blocks : Kp / 2 + 4 * n_blocks;
}

/* The least bf16 that is not below x >= 0. */
static float bf16_above(float x)
{
    uint16_t bits = bf16_from_f32(x);
    return bf16_to_f32(bf16_to_f32(bits) < x ? (uint16_t)(bits + 1) : bits);
}

/* The greatest bf16 that is not above x. */
static float bf16_below(float x)
{
    float rounded = bf16_to_f32(bf16_from_f32(x));
    if (rounded <= x) {
        return rounded;
    }
    return x < 0 ? -bf16_above(-x) : bf16_to_f32((uint16_t)(bf16_from_f32(x) - 1));
}

/* Column i of a block in a group: where its number lies. */
static void store_nibble(unsigned char *group, size_t block, size_t i, unsigned u)
{
    group[i] = (unsigned char)(block ? (group[i] & 15u) | u << 4 : (group[i] & 0xf0u) | u);
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

static void quant_block4(unsigned char *group, size_t block, unsigned char *scale, unsigned char *minimum,
                         const float *w)
{
    float least = w[0], most = w[0];
    for (size_t i = 1; i < QUANT_BLOCK; i++) {
        least = fminf(least, w[i]);
        most = fmaxf(most, w[i]);
    }
    float m = bf16_below(least), s = bf16_above((most - m) / 15.0f), inverse = s > 0 ? 1.0f / s : 0;
    for (size_t i = 0; i < QUANT_BLOCK; i++) {
        float v = fminf(fmaxf(rintf((w[i] - m) * inverse), 0.0f), 15.0f);
        store_nibble(group, block, i, (unsigned)v);
    }
    bf16_put(scale, s);
    bf16_put(minimum, m);
}

void quant_weights(void *row, dtype type, const float *w, size_t K)
{
    const size_t Kp = quant_columns(K), n_blocks = Kp / QUANT_BLOCK;
    unsigned char *numbers = row, *scales = numbers + (type == DTYPE_Q8 ? Kp : Kp / 2);
    for (size_t b = 0; b < n_blocks; b++) {
        float block[QUANT_BLOCK] = {0};
        for (size_t i = 0; i < QUANT_BLOCK && b * QUANT_BLOCK + i < K; i++) {
            float v = w[b * QUANT_BLOCK + i];
            block[i] = isfinite(v) ? v : 0.0f;
        }
        if (type == DTYPE_Q8) {
            quant_block8(numbers + b * QUANT_BLOCK, scales + 2 * b, block);
        } else {
            quant_block4(numbers + b / 2 * QUANT_BLOCK, b % 2, scales + 2 * b, scales + 2 * (n_blocks + b),
                         block);
        }
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
