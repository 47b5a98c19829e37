/* ops_q_pack_simd: panels of rows in 8 bits (tile_q_block), written once over vectors of 16 floats. Part
 * of ops_simd.h; every vector table gives the same bits.
 */
#ifndef PARLEY_COMPUTE_KERNELS_OPS_Q_PACK_SIMD_H
#define PARLEY_COMPUTE_KERNELS_OPS_Q_PACK_SIMD_H

/* Rows that are rounded and turned together; words of a block's row, and of those that share a scale. */
enum { PACK_SIDE = 16, BLOCK_WORDS = QUANT_BLOCK / 4, SHARE_WORDS = TILE_SHARE * BLOCK_WORDS };

/* `known` floats rounded to bytes [n], zeros behind them; returns their scale. */
static ALWAYS_INLINE float pack_q_row(uint8_t *bytes, const float *x, size_t known, size_t n)
{
    vec most = v_set1(0.0f);
    for (size_t k = 0; k < known; k += LANES) {
        const vec v = v_load_n(x + k, lanes_left(k, known), 0.0f);
        most = v_max(v_max(v_sub(v_set1(0.0f), v), v), most);
    }
    const float largest = v_top(most);
    const vec inverse = v_set1(largest > 0 ? 127.0f / largest : 0.0f);
    size_t k = 0;
    for (; k < known; k += LANES) {
        v_narrow_i8(bytes + k, v_mul(v_load_n(x + k, lanes_left(k, known), 0.0f), inverse));
    }
    memset(bytes + k, 0, n - k);
    return largest / 127.0f;
}

/* Adds the four bytes of each of 16 words to sums. */
static ALWAYS_INLINE void add_bytes(int32_t sums[PACK_SIDE], const uint32_t words[PACK_SIDE])
{
    for (size_t t = 0; t < PACK_SIDE; t++) {
        const uint32_t w = words[t];
        sums[t] += ((int32_t)(w << 24) >> 24) + ((int32_t)(w << 16) >> 24) + ((int32_t)(w << 8) >> 24) +
                   ((int32_t)w >> 24);
    }
}

/* Places t .. t+15 of a block from its turned words. */
static ALWAYS_INLINE void fill_block(tile_q_block *out, size_t t, const uint32_t (*words)[PACK_SIDE])
{
    int32_t sums[PACK_SIDE] = {0};
    for (size_t i = 0; i < BLOCK_WORDS; i++) {
        memcpy(&out->q[i][t], words[i], sizeof words[i]);
        add_bytes(sums, words[i]);
        for (size_t l = 0; i + 1 == BLOCK_WORDS / 2 && l < PACK_SIDE; l++) {
            out->offset_first[t + l] = -128 * sums[l];
        }
    }
    for (size_t l = 0; l < PACK_SIDE; l++) {
        out->offset[t + l] = -128 * sums[l];
    }
}

/* The first n words of each row, turned; n counts in steps of 16. */
static ALWAYS_INLINE void turn_words(uint32_t turned[SHARE_WORDS][PACK_SIDE],
                                     const uint32_t words[PACK_SIDE][SHARE_WORDS], size_t n)
{
    for (size_t r = 0; r < PACK_SIDE; r += TURN_SIDE) {
        for (size_t i = 0; i < n; i += TURN_SIDE) {
            v_turn((float *)(void *)&turned[i][r], PACK_SIDE, (const float *)(const void *)&words[r][i],
                   SHARE_WORDS);
        }
    }
}

static void pack_q(tile_q_block *out, const float *x, size_t x_stride, size_t T, size_t K)
{
    const size_t n_blocks = quant_columns(K) / QUANT_BLOCK;
    uint32_t words[PACK_SIDE][SHARE_WORDS], turned[SHARE_WORDS][PACK_SIDE];
    for (size_t t = 0; t < T; t += PACK_SIDE) {
        for (size_t b = 0; b < n_blocks; b += TILE_SHARE) {
            const size_t n = n_blocks - b < TILE_SHARE ? n_blocks - b : TILE_SHARE, k = b * QUANT_BLOCK;
            const size_t columns = n * QUANT_BLOCK, left = k < K ? K - k : 0;
            for (size_t r = 0; r < PACK_SIDE; r++) {
                const size_t known = t + r >= T ? 0 : left < columns ? left : columns;
                out[b].scale[t + r] =
                    pack_q_row((uint8_t *)words[r], known ? x + (t + r) * x_stride + k : x, known, columns);
            }
            turn_words(turned, (const uint32_t(*)[SHARE_WORDS])words, columns / 4);
            for (size_t i = 0; i < n; i++) {
                fill_block(&out[b + i], t, (const uint32_t(*)[PACK_SIDE])turned + i * BLOCK_WORDS);
            }
        }
    }
}

#endif
