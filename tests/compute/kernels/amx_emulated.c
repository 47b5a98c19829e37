/* The operations of the tile unit as Intel's manual writes them, and the kernels of compute/kernels/ops_amx_simd.h
 * built upon them. What the processor would refuse ends the test. */
#include "tests/compute/kernels/amx_emulated.h"

#if defined(__AVX512F__)

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/formats/half.h"
#include "compute/kernels/kernel.h"

#define TILE_CONFIGURE(config) configure_tiles(config)
#define TILE_RELEASE()         configure_tiles(NULL)
#define TILE_ZERO(tile)        zero_tile(tile)
#define TILE_LOAD              load_tile
#define TILE_STORE             store_tile
#define TILE_DOT_U8S8          dot_bytes
#define TILE_DOT_BF16          dot_bf16

enum { N_TILES = 8, MOST_ROWS = 16, MOST_BYTES = 64 };

struct tile_config;
static void configure_tiles(const void *config);
static void zero_tile(size_t tile);
static void load_tile(size_t tile, const void *from, size_t stride);
static void store_tile(size_t tile, void *to, size_t stride);
static void dot_bytes(size_t sums, size_t a, size_t b);
static void dot_bf16(size_t sums, size_t a, size_t b);

#include "compute/kernels/ops_amx_simd.h"

typedef struct tile {
    size_t rows, bytes; /* 0: not configured */
    unsigned char data[MOST_ROWS][MOST_BYTES];
} tile;

/* Of this thread, as in a processor. */
static _Thread_local tile tiles[N_TILES];

static void refuse_if(bool wrong, const char *what)
{
    if (wrong) {
        fprintf(stderr, "the tile unit refuses: %s\n", what);
        abort();
    }
}

static tile *used(size_t i)
{
    refuse_if(i >= N_TILES || tiles[i].rows == 0, "a tile that is not configured");
    return &tiles[i];
}

/* All tiles become zeros; NULL releases them. */
static void configure_tiles(const void *config)
{
    tile_config none = {0};
    const tile_config *c = config ? config : &none;
    memset(tiles, 0, sizeof tiles);
    refuse_if(config && (c->palette != 1 || c->start_row != 0), "a palette or a first row");
    for (size_t i = 0; i < sizeof c->zeros; i++) {
        refuse_if(c->zeros[i] != 0, "a reserved byte");
    }
    for (size_t i = 0; i < sizeof c->rows; i++) {
        refuse_if(i >= N_TILES && (c->rows[i] != 0 || c->row_bytes[i] != 0), "a tile beyond the last");
        refuse_if(c->rows[i] > MOST_ROWS || c->row_bytes[i] > MOST_BYTES, "too large a tile");
        refuse_if((c->rows[i] == 0) != (c->row_bytes[i] == 0), "rows without bytes, or bytes without rows");
    }
    for (size_t i = 0; i < N_TILES; i++) {
        tiles[i].rows = c->rows[i];
        tiles[i].bytes = c->row_bytes[i];
    }
}

static void zero_tile(size_t i)
{
    memset(used(i)->data, 0, sizeof tiles[i].data);
}

static void load_tile(size_t i, const void *from, size_t stride)
{
    tile *t = used(i);
    memset(t->data, 0, sizeof t->data);
    for (size_t r = 0; r < t->rows; r++) {
        memcpy(t->data[r], (const unsigned char *)from + r * stride, t->bytes);
    }
}

static void store_tile(size_t i, void *to, size_t stride)
{
    const tile *t = used(i);
    for (size_t r = 0; r < t->rows; r++) {
        memcpy((unsigned char *)to + r * stride, t->data[r], t->bytes);
    }
}

/* c [M, N] += a [M, K] b [K, N], four bytes an element. */
static void check_shapes(const tile *c, const tile *a, const tile *b)
{
    refuse_if(a == b || a == c || b == c, "one tile twice");
    refuse_if(a->bytes % 4 != 0 || c->bytes % 4 != 0, "half an element");
    refuse_if(c->rows != a->rows || c->bytes != b->bytes || a->bytes / 4 != b->rows,
              "shapes that do not fit");
}

/* TDPBUSD: nothing is saturated. */
static void dot_bytes(size_t sums, size_t a_tile, size_t b_tile)
{
    tile *c = used(sums);
    const tile *a = used(a_tile), *b = used(b_tile);
    check_shapes(c, a, b);
    for (size_t m = 0; m < c->rows; m++) {
        for (size_t k = 0; k < a->bytes / 4; k++) {
            for (size_t n = 0; n < c->bytes / 4; n++) {
                uint32_t sum;
                memcpy(&sum, &c->data[m][4 * n], sizeof sum);
                for (size_t i = 0; i < 4; i++) {
                    sum += (uint32_t)((int32_t)a->data[m][4 * k + i] * (int8_t)b->data[k][4 * n + i]);
                }
                memcpy(&c->data[m][4 * n], &sum, sizeof sum);
            }
        }
    }
}

/* Numbers below 2^-126 are zeros, as inputs and as results, whatever the thread's own rule is. */
static float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

static float bf16_of(const unsigned char *row, size_t i)
{
    uint16_t bits;
    memcpy(&bits, row + 2 * i, sizeof bits);
    return flushed(bf16_to_f32(bits));
}

/* TDPBF16PS: even and odd columns from zero on, apart, each product fused; then the two are added, then that to c. */
static void dot_bf16(size_t sums, size_t a_tile, size_t b_tile)
{
    tile *c = used(sums);
    const tile *a = used(a_tile), *b = used(b_tile);
    check_shapes(c, a, b);
    for (size_t m = 0; m < c->rows; m++) {
        for (size_t n = 0; n < c->bytes / 4; n++) {
            float half[2] = {0, 0}, sum;
            for (size_t k = 0; k < a->bytes / 4; k++) {
                for (size_t i = 0; i < 2; i++) {
                    const float x = bf16_of(a->data[m], 2 * k + i), y = bf16_of(b->data[k], 2 * n + i);
                    half[i] = flushed(fmaf(x, y, half[i]));
                }
            }
            memcpy(&sum, &c->data[m][4 * n], sizeof sum);
            sum = flushed(flushed(sum) + flushed(half[0] + half[1]));
            memcpy(&c->data[m][4 * n], &sum, sizeof sum);
        }
    }
}

static void tile_q_emulated(float *sums, const tile_q_block *x, const tile_q_rows *w, size_t T, size_t N,
                            size_t n_blocks)
{
    tile_q_of(tile_q_blocks, sums, x, w, T, N, n_blocks);
}

static void tile_bf16_emulated(float *sums, const uint32_t *x, const void *w, size_t w_stride, size_t T,
                               size_t N, size_t K)
{
    tile_bf16(sums, x, w, w_stride, T, N, K);
}

const ops *ops_amx_emulated(void)
{
    static ops table;
    table = *ops_avx512_vnni();
    table.name = "amx, emulated";
    table.tile_q = tile_q_emulated;
    table.tile_turned = NULL;
    table.pack_bf16 = ops_generic()->pack_bf16;
    table.tile_bf16 = tile_bf16_emulated;
    return &table;
}

#else

const ops *ops_amx_emulated(void)
{
    return NULL;
}

#endif
