/* Every kernel table against the generic one: random, extreme, tail and misaligned input, guards
 * around outputs. The vector tables must also agree with each other bit for bit. */
#include "compute/kernels/ops.h"

#include "compute/formats/half.h"
#include "base/compiler.h"
#include "tests/check.h"
#include "tests/compute/kernels/amx_emulated.h"
#include "tests/compute/kernels/bf16_emulated.h"
#include "tests/compute/kernels/beside_generic.h"
#include "tests/compute/levels.h"

static const size_t lengths[] = {0, 1, 2, 7, 8, 15, 16, 17, 24, 31, 33, 63, 64, 65, 76, 128, 131, 300};

static void check_widen(void)
{
    static uint16_t half[65536 + 16];
    static float a[65536 + 16], b[65536 + 16];
    for (size_t i = 0; i < 65536; i++) {
        half[i] = (uint16_t)i;
    }
    for (dtype type = DTYPE_BF16; type <= DTYPE_F16; type++) {
        for (size_t off = 0; off < 3; off++) { /* every bit pattern, then tails off alignment */
            size_t n = 65536 - off * 1001;
            vec->widen[type](a, half + off, n);
            gen->widen[type](b, half + off, n);
            check_same("widen", a, b, n * sizeof *a);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        float *to = guard(&out_a, lengths[i]);
        vec->widen[DTYPE_BF16](to, half + 0x3f80, lengths[i]);
        check_guard(&out_a);
        to = guard(&out_a, lengths[i]);
        vec->widen[DTYPE_F16](to, half + 0x3c00, lengths[i]);
        check_guard(&out_a);
    }
}

/* T x N outputs of K terms. Tolerance: K roundings of the largest possible sum. */
static void dot_case(dtype type, size_t T, size_t N, size_t K, size_t slack)
{
    size_t x_stride = K + slack, w_stride = K + 2 * slack, out_stride = N + slack;
    float *x = rng_floats(T * x_stride + 1, 1), *w = rng_floats(N * w_stride + 1, 1);
    uint16_t *half = calloc(N * w_stride + 2, sizeof *half);
    for (size_t i = 0; i < N * w_stride + 1; i++) {
        half[i] = bf16_cut(type == DTYPE_F16 ? 0.0f : w[i]);
        half[i] = type == DTYPE_F16 ? (uint16_t)(rng_u32() & 0xbbff) : half[i];
    }
    /* What lies between the rows must not reach the result. */
    for (size_t n = 0; slack && n < N; n++) {
        half[1 + n * w_stride + K] = 0x7fff;
        w[1 + n * w_stride + K] = NAN;
    }
    for (size_t t = 0; slack && t < T; t++) {
        x[1 + t * x_stride + K] = NAN;
    }
    const void *weights = type == DTYPE_F32 ? (const void *)(w + 1) : (const void *)(half + 1);
    float *a = guard(&out_a, T * out_stride), *b = guard(&out_b, T * out_stride);
    vec->dot_rows[type](a, out_stride, x + 1, x_stride, T, weights, w_stride, N, K);
    gen->dot_rows[type](b, out_stride, x + 1, x_stride, T, weights, w_stride, N, K);
    check_close("dot_rows", a, b, T * out_stride, 0, 1.2e-7 * (double)(K + 1) * 2);
    check_guard(&out_a);

    float one = GUARD_VALUE; /* a single element alone: the same bits */
    for (size_t i = 0; i < 4; i++) {
        size_t t = rng_u32() % T, n = rng_u32() % N;
        const unsigned char *row = (const unsigned char *)weights + n * w_stride * dtype_bytes(type);
        vec->dot_rows[type](&one, 1, x + 1 + t * x_stride, K, 1, row, K, 1, K);
        CHECK(memcmp(&one, &a[t * out_stride + n], sizeof one) == 0);
    }
    free(x), free(w), free(half);
}

/* Few rows in bf16: near the specification, and a single element alone has the same bits. */
static void dot_case_bf16(size_t T, size_t N, size_t K, size_t slack)
{
    const size_t x_stride = (K + BF16_STEP - 1) / BF16_STEP * BF16_STEP + slack, w_stride = K + 2 * slack;
    const size_t out_stride = N + slack;
    float *x = rng_floats(T * K + 1, 1), *w = rng_floats(N * w_stride, 1);
    uint16_t *p = malloc(T * x_stride * sizeof *p), *q = malloc(T * x_stride * sizeof *q);
    uint16_t *half = malloc((N * w_stride + 1) * sizeof *half);
    for (size_t i = 0; i < N * w_stride; i++) {
        half[i + 1] = i % w_stride < K ? bf16_cut(w[i]) : 0x7fff; /* what lies between rows must not count */
    }
    memset(p, 0x5a, T * x_stride * sizeof *p), memset(q, 0x5a, T * x_stride * sizeof *q);
    x[0] = 1.00390625f; /* a tie */
    for (size_t t = 0; t < T; t++) {
        vec->round_bf16(p + t * x_stride, x + t * K, K);
        gen->round_bf16(q + t * x_stride, x + t * K, K);
    }
    check_same("round_bf16", p, q, T * x_stride * sizeof *p);
    float *a = guard(&out_a, T * out_stride), *b = guard(&out_b, T * out_stride);
    vec->dot_bf16(a, out_stride, p, x_stride, T, half + 1, w_stride, N, K);
    gen->dot_bf16(b, out_stride, p, x_stride, T, half + 1, w_stride, N, K);
    check_close("dot_bf16", a, b, T * out_stride, 0, 1.2e-7 * (double)(K + 1) * 3);
    check_guard(&out_a);
    for (size_t i = 0; i < 4; i++) {
        float one = GUARD_VALUE;
        const size_t t = rng_u32() % T, n = rng_u32() % N;
        vec->dot_bf16(&one, 1, p + t * x_stride, x_stride, 1, half + 1 + n * w_stride, w_stride, 1, K);
        CHECK(memcmp(&one, &a[t * out_stride + n], sizeof one) == 0);
    }
    free(x), free(w), free(p), free(q), free(half);
}

static void check_dot(void)
{
    for (dtype type = DTYPE_F32; type < DTYPE_OTHER; type++) {
        for (size_t i = 1; i < ARRAY_LEN(lengths); i++) {
            for (size_t T = 1; T <= 9; T += T < 5 ? 1 : 4) {
                dot_case(type, T, 1 + rng_u32() % 40, lengths[i], i % 2 ? 3 : 0);
            }
        }
        dot_case(type, 32, 64, 256, 0);
    }
    for (size_t i = 1; vec->dot_bf16 && i < ARRAY_LEN(lengths); i++) {
        for (size_t T = 1; T <= 19; T += T < 9 ? 1 : 5) {
            dot_case_bf16(T, 1 + rng_u32() % 40, lengths[i], i % 2 ? 3 : 0);
        }
    }
}

/* A panel of T rows against N weight rows. What lies beyond T is of no use, but must not be a
 * fault. */
static void tile_case(size_t T, size_t N, size_t K, size_t slack)
{
    size_t lanes = (T + 15) / 16 * 16, w_stride = K + slack;
    float *x = rng_floats(K * TILE_ROWS, 1), *w = rng_floats(N * w_stride + 1, 1);
    float *a = guard(&out_a, N * TILE_ROWS), *b = guard(&out_b, N * TILE_ROWS);
    rng_fill(a, N * TILE_ROWS, 1);
    memcpy(b, a, N * TILE_ROWS * sizeof *a);
    float kept = a[TILE_ROWS - 1];
    vec->tile_f32(a, x, w + 1, w_stride, T, N, K);
    gen->tile_f32(b, x, w + 1, w_stride, T, N, K);
    for (size_t n = 0; n < N; n++) {
        check_close("tile_f32", a + n * TILE_ROWS, b + n * TILE_ROWS, T, 0, 1.2e-7 * (double)(K + 1) * 2);
    }
    CHECK(lanes == TILE_ROWS || a[TILE_ROWS - 1] == kept);
    check_guard(&out_a);
    free(x), free(w);
}

/* The same in bf16, packed from rows. The order inside a pair is free, so one rounding more a
 * pair. */
static void tile_case_bf16(size_t T, size_t N, size_t K, size_t slack)
{
    size_t x_stride = K + slack, w_stride = K + 2 * slack, n_packed = K / 2 * TILE_ROWS;
    float *x = rng_floats(T * x_stride, 1), *w = rng_floats(N * w_stride, 1);
    uint32_t *p = malloc((n_packed + 1) * sizeof *p), *q = malloc((n_packed + 1) * sizeof *q);
    uint16_t *half = malloc((N * w_stride + 1) * sizeof *half);
    memset(p, 0x5a, (n_packed + 1) * sizeof *p), memset(q, 0x5a, (n_packed + 1) * sizeof *q);
    for (size_t i = 0; i < N * w_stride; i++) {
        half[i + 1] = bf16_cut(w[i]);
    }
    x[0] = 3.4e38f, x[T * x_stride - 1 - slack] = K % 4 ? -0.0f : 1.00390625f; /* infinite; a tie */
    vec->pack_bf16(p, x, x_stride, T, K);
    gen->pack_bf16(q, x, x_stride, T, K);
    check_same("pack_bf16", p, q, (n_packed + 1) * sizeof *p);
    x[0] = 1;
    vec->pack_bf16(p, x, x_stride, T, K);
    float *a = guard(&out_a, N * TILE_ROWS), *b = guard(&out_b, N * TILE_ROWS);
    rng_fill(a, N * TILE_ROWS, 1);
    memcpy(b, a, N * TILE_ROWS * sizeof *a);
    vec->tile_bf16(a, p, half + 1, w_stride, T, N, K);
    gen->tile_bf16(b, p, half + 1, w_stride, T, N, K);
    for (size_t n = 0; n < N; n++) {
        check_close("tile_bf16", a + n * TILE_ROWS, b + n * TILE_ROWS, T, 0, 1.2e-7 * (double)(K + 1) * 3);
    }
    check_guard(&out_a);
    free(x), free(w), free(p), free(q), free(half);
}

/* A panel in 8 bits, full of any bytes, against rows of weights: the same bits in every table.
 * other: with minima, any bytes; without, two scales a block. */
static void tile_case_q(bool minima, bool other, size_t T, size_t N, size_t n_blocks)
{
    const size_t columns = n_blocks * QUANT_BLOCK, slack = 5;
    tile_q_block *x = malloc(n_blocks * sizeof *x);
    uint8_t *u = malloc(N * (columns + slack));
    float *scale = rng_floats(N * (2 * n_blocks + 2), 1), *minimum = rng_floats(N * (n_blocks + 1), 1);
    for (size_t b = 0; b < n_blocks; b++) {
        rng_fill(x[b].scale, TILE_ROWS, 1);
        for (size_t t = 0; t < TILE_ROWS; t++) {
            int32_t sum = 0;
            for (size_t i = 0; i < QUANT_BLOCK; i++) {
                int q = t == 1 ? 127 : t == 2 ? -127 : (int)(rng_u32() % 255) - 127;
                uint32_t byte = (uint32_t)(uint8_t)q << (i % 4 * 8);
                x[b].q[i / 4][t] = i % 4 ? x[b].q[i / 4][t] | byte : byte;
                sum += q;
                x[b].offset_first[t] = i < QUANT_BLOCK / 2 ? -128 * sum : x[b].offset_first[t];
            }
            x[b].offset[t] = -128 * sum;
        }
    }
    for (size_t i = 0; i < N * (columns + slack); i++) {
        const bool small = minima && !other;
        u[i] = (uint8_t)(i < columns ? (small ? 15 : 255) : small ? rng_u32() % 16 : 1 + rng_u32() % 255);
    }
    const tile_q_rows w = {.u = u,
                           .u_stride = columns + slack,
                           .scale = scale,
                           .minimum = minima ? minimum : NULL,
                           .stride = n_blocks + 1 + (other && !minima ? n_blocks : 0),
                           .wide = minima && other,
                           .halves = !minima && other};
    float *a = guard(&out_a, N * TILE_ROWS), *b = guard(&out_b, N * TILE_ROWS);
    rng_fill(a, N * TILE_ROWS, 1);
    memcpy(b, a, N * TILE_ROWS * sizeof *a);
    vec->tile_q(a, x, &w, T, N, n_blocks);
    gen->tile_q(b, x, &w, T, N, n_blocks);
    for (size_t n = 0; n < N; n++) {
        check_same("tile_q", a + n * TILE_ROWS, b + n * TILE_ROWS, T * sizeof *a);
    }
    check_guard(&out_a);
    free(x), free(u), free(scale), free(minimum);
}

/* Panels in 8 bits: the same bytes in every table, and near the floats. */
static void pack_case_q(size_t T, size_t K, size_t slack)
{
    const size_t n_blocks = quant_columns(K) / QUANT_BLOCK, x_stride = K + slack, end = (T + 15) / 16 * 16;
    const size_t bytes = (n_blocks + 1) * sizeof(tile_q_block);
    float *x = rng_floats(T * x_stride + 1, 2);
    tile_q_block *p = malloc(bytes), *q = malloc(bytes);
    memset(p, 0x5a, bytes), memset(q, 0x5a, bytes);
    for (size_t k = 0; k < K; k++) {
        x[(T - 1) * x_stride + k] = 0; /* a row of zeros has no scale */
    }
    vec->pack_q(p, x, x_stride, T, K);
    gen->pack_q(q, x, x_stride, T, K);
    check_same("pack_q", p, q, bytes);
    for (size_t t = 0; t < end; t++) {
        for (size_t k = 0; k < n_blocks * QUANT_BLOCK; k++) {
            const size_t b = k / QUANT_BLOCK, i = k % QUANT_BLOCK;
            const float scale = p[b / TILE_SHARE * TILE_SHARE].scale[t];
            const float known = t < T && k < K ? x[t * x_stride + k] : 0;
            const int8_t number = (int8_t)(p[b].q[i / 4][t] >> (i % 4 * 8));
            CHECK(fabsf(known - scale * (float)number) <= 0.5001f * scale);
        }
    }
    free(x), free(p), free(q);
}

/* Rows of x side by side against turned weights: the same bytes in every table, the bits of tile_q. */
static void turned_case(bool minima, bool halves, size_t T, size_t N, size_t K, size_t slack)
{
    const size_t n_blocks = quant_columns(K) / QUANT_BLOCK, columns = n_blocks * QUANT_BLOCK;
    const size_t n_scales = halves ? 2 * n_blocks : n_blocks,
                 lanes = (N + TILE_LANES - 1) / TILE_LANES * TILE_LANES;
    const size_t n_shares = (n_blocks + TILE_SHARE - 1) / TILE_SHARE,
                 n_panels = (T + TILE_X_ROWS - 1) / TILE_X_ROWS;
    const size_t bytes = (n_panels * n_shares + 1) * sizeof(tile_x_share);
    float *x = rng_floats(T * (K + slack) + 1, 2), *scale = rng_floats(N * (n_scales + 2), 1),
          *minimum = rng_floats(N * (n_scales + 2), 1), *bias = rng_floats(N, 1);
    tile_x_share *p = malloc(bytes), *q = malloc(bytes);
    tile_q_block *panel[2];
    uint8_t *u = malloc(N * (columns + slack));
    for (size_t i = 0; i < N * (columns + slack); i++) {
        u[i] = (uint8_t)(minima ? rng_u32() % 16 : 1 + rng_u32() % 255);
    }
    memset(p, 0x5a, bytes), memset(q, 0x5a, bytes);
    for (size_t k = 0; k < K; k++) {
        x[(T - 1) * (K + slack) + k] = 0; /* a row of zeros has no scale */
    }
    for (size_t t = 0; t < T; t += TILE_X_ROWS) {
        const size_t some = T - t < TILE_X_ROWS ? T - t : TILE_X_ROWS, at = t / TILE_X_ROWS * n_shares;
        vec->pack_x(p + at, x + t * (K + slack), K + slack, some, K);
        gen->pack_x(q + at, x + t * (K + slack), K + slack, some, K);
    }
    check_same("pack_x", p, q, bytes);

    const tile_q_rows w = {.u = u,
                           .u_stride = columns + slack,
                           .scale = scale,
                           .minimum = minima ? minimum : NULL,
                           .stride = n_scales + slack % 3,
                           .halves = halves};
    uint32_t *words[2];
    tile_q_turned turned[2];
    for (size_t i = 0; i < 2; i++) {
        words[i] = calloc(lanes * (columns / 4 + 2 * n_scales), sizeof **words);
        float *floats = (float *)(void *)(words[i] + lanes * columns / 4);
        turned[i] = (tile_q_turned){words[i], floats, minima ? floats + lanes * n_scales : NULL, halves};
        (i ? gen : vec)->turn_q(&turned[i], &w, N, n_blocks);
    }
    check_same("turn_q", words[0], words[1], lanes * (columns / 4 + 2 * n_scales) * sizeof **words);

    float *sums[2];
    for (size_t i = 0; i < 2; i++) {
        const size_t first = i * TILE_ROWS;
        panel[i] = malloc(n_blocks * sizeof **panel);
        sums[i] = malloc(N * TILE_ROWS * sizeof **sums);
        if (first < T) {
            const size_t some = T - first < TILE_ROWS ? T - first : TILE_ROWS;
            gen->pack_q(panel[i], x + first * (K + slack), K + slack, some, K);
            gen->tile_q(sums[i], panel[i], &w, some, N, n_blocks);
        }
    }
    for (size_t i = 0; i < 4; i++) {
        float *out = guard(&out_a, T * (N + slack));
        (i % 2 ? gen : vec)
            ->tile_turned(out, N + slack, p, &turned[0], i < 2 ? bias : NULL, T, N, n_blocks,
                          (prefetch_range){u, i});
        for (size_t t = 0; t < T; t++) {
            for (size_t n = 0; n < N; n++) {
                const float sum = sums[t / TILE_ROWS][n * TILE_ROWS + t % TILE_ROWS];
                CHECK(out[t * (N + slack) + n] == (i < 2 ? sum + bias[n] : sum));
            }
        }
        check_guard(&out_a);
    }
    free(x), free(scale), free(minimum), free(bias), free(p), free(q), free(u);
    for (size_t i = 0; i < 2; i++) {
        free(panel[i]), free(sums[i]), free(words[i]);
    }
}

static void check_tiles(void)
{
    static const size_t rows[] = {1, 15, 16, 17, 48, 63, 64};
    for (size_t i = 0; i < 40; i++) {
        size_t T = rows[i % ARRAY_LEN(rows)], N = 1 + rng_u32() % 20, K = lengths[i % ARRAY_LEN(lengths)];
        tile_case(T, N, K, i % 3);
        if (vec->tile_bf16 && K > 0) {
            tile_case_bf16(T, N, (K + 1) / 2 * 2, i % 3);
        }
        CHECK(vec->tile_q || vec->tile_turned);
        if (vec->tile_q) {
            tile_case_q(i % 2, i / 2 % 2, T, N, 1 + i % 20);
        }
        pack_case_q(T, K ? K : 300, i % 3);
        if (vec->tile_turned) {
            turned_case(i % 3 == 1, i % 3 == 2, i == 7 ? 100 : 1 + i % (2 * TILE_X_ROWS + 3), N + i / 8 * 7,
                        K ? K : 300, i % 5);
        }
    }
}

/* A row of weights as floats. */
static void widen_blocks(float *out, dtype type, const unsigned char *row, size_t K)
{
    const size_t Kp = quant_columns(K), n_blocks = Kp / QUANT_BLOCK;
    float *scale = malloc((2 * n_blocks + 1) * sizeof *scale), *minimum = scale + n_blocks;
    uint8_t *u = malloc(Kp + 1);
    if (type != DTYPE_Q8) {
        gen->unpack_q[type - DTYPE_Q4](u, scale, minimum, row, K);
    }
    for (size_t k = 0; k < K; k++) {
        const size_t b = k / QUANT_BLOCK;
        out[k] = type == DTYPE_Q8 ? bf16_at(row + Kp + 2 * b) * (float)(row[k] - 128)
                                  : fmaf(scale[b], (float)u[k], minimum[b]);
    }
    free(scale), free(u);
}

/* A row's numbers, scales and minima: the same in every table. */
static void unpack_case(dtype type, const unsigned char *row, size_t K)
{
    const size_t columns = quant_columns(K), n_blocks = columns / QUANT_BLOCK;
    float *a = guard(&out_a, 2 * n_blocks), *b = guard(&out_b, 2 * n_blocks);
    uint8_t *u = malloc(2 * columns + 1);
    vec->unpack_q[type - DTYPE_Q4](u, a, a + n_blocks, row, K);
    gen->unpack_q[type - DTYPE_Q4](u + columns, b, b + n_blocks, row, K);
    check_same("unpack_q", u, u + columns, columns);
    check_same("unpack_q", a, b, 2 * n_blocks * sizeof *a);
    check_guard(&out_a);
    free(u);
}

/* T rows of x against N rows of weights in blocks: the same bits in every table, and near the
 * product of the floats. */
static void quant_case(dtype type, size_t T, size_t N, size_t K)
{
    const size_t at = type - DTYPE_Q8, w_bytes = quant_row_bytes(type, K), x_bytes = quant_x_bytes(K);
    float *x = rng_floats(T * K, 2), *w = rng_floats(N * K, 0.05f), *wide = malloc((K + 1) * sizeof *wide);
    unsigned char *rows = malloc(N * w_bytes), *p = calloc(T, x_bytes), *q = calloc(T, x_bytes);
    memset(x, 0, (K < 40 ? K : 40) * sizeof *x); /* a block of zeros */
    for (size_t n = 0; n < N; n++) {
        quant_weights(rows + n * w_bytes, type, w + n * K, K);
        widen_blocks(wide, type, rows + n * w_bytes, K);
        for (size_t k = 0; k < K; k++) { /* by least squares: what is far out may be cut off */
            CHECK_NEAR(wide[k], w[n * K + k],
                       type == DTYPE_Q8   ? 0.05 / 250
                       : type == DTYPE_Q4 ? 0.012
                                          : 0.008);
        }
    }
    for (size_t t = 0; t < T; t++) {
        quant_x a = quant_x_at(p, K, t), b = quant_x_at(q, K, t);
        vec->quantize_x(&a, x + t * K, K);
        gen->quantize_x(&b, x + t * K, K);
    }
    check_same("quantize_x", p, q, T * x_bytes);
    if (type != DTYPE_Q8) {
        unpack_case(type, rows, K);
    }
    float *a = guard(&out_a, T * (N + 1)), *b = guard(&out_b, T * (N + 1));
    vec->dot_q[at](a, N + 1, p, T, rows, N, K);
    gen->dot_q[at](b, N + 1, q, T, rows, N, K);
    check_same("dot_q", a, b, T * (N + 1) * sizeof *a);
    check_guard(&out_a);
    quant_panel *panels = malloc(quant_panel_blocks(T, K) * sizeof *panels);
    quant_pack_panels(panels, p, T, K);
    for (size_t i = 0; i < 2; i++) {
        panel_q_fn *of_panels = (i ? vec : gen)->panel_q[at];
        if (of_panels) {
            memset(b, 0, T * (N + 1) * sizeof *b);
            of_panels(b, N + 1, panels, T, rows, N, K);
            for (size_t t = 0; t < T; t++) {
                CHECK(memcmp(a + t * (N + 1), b + t * (N + 1), N * sizeof *a) == 0);
            }
            check_guard(&out_b);
        }
    }
    free(panels);
    for (size_t t = 0; t < T; t++) {
        widen_blocks(wide, type, rows, K);
        double sum = 0;
        for (size_t k = 0; k < K; k++) {
            sum += (double)wide[k] * (double)x[t * K + k];
        }
        CHECK_NEAR(a[t * (N + 1)], sum, 0.05 * 2.0 / 254 * sqrt((double)K) * 3); /* x is rounded too */
    }
    free(x), free(w), free(wide), free(rows), free(p), free(q);
}

static void check_quant(void)
{
    for (dtype type = DTYPE_Q8; type <= DTYPE_Q5; type++) {
        for (size_t i = 1; i < ARRAY_LEN(lengths); i++) {
            quant_case(type, 1 + i % 8, 1 + rng_u32() % 10, lengths[i]);
        }
        quant_case(type, 5, 6, 1088);
        quant_case(type, 19, 9, 576);   /* panels: two full ones, which share broadcasts, and a part */
        quant_case(type, 31, 18, 1088); /* twice two, the last one not full; columns beyond a span */
        quant_case(type, 32, 17, 1088);
    }
}

static void mul_case(size_t M, size_t K, size_t N, size_t slack)
{
    size_t as = K + slack, bs = N + slack, cs = N + 2 * slack;
    float *a = rng_floats(M * as + 1, 1), *b = rng_floats(K * bs + 1, 1), *c = rng_floats(M * cs + 1, 1);
    float *ca = guard(&out_a, M * cs), *cb = guard(&out_b, M * cs);
    memcpy(ca, c, M * cs * sizeof *c);
    memcpy(cb, c, M * cs * sizeof *c);
    vec->mul_add(ca, cs, a, as, b, bs, M, K, N);
    gen->mul_add(cb, cs, a, as, b, bs, M, K, N);
    check_close("mul_add", ca, cb, M * cs, 0, 1.2e-7 * (double)(K + 1) * 2);
    check_guard(&out_a);
    float *alone = malloc(N * sizeof *alone); /* a row alone: the same bits */
    size_t m = rng_u32() % M;
    float *from_zero =
        calloc(M * cs, sizeof *from_zero); /* and the product without c is that from zeros on */
    vec->mul_add(from_zero, cs, a, as, b, bs, M, K, N);
    vec->mul(alone, N, a + m * as, as, b, bs, 1, K, N);
    CHECK(memcmp(alone, from_zero + m * cs, N * sizeof *alone) == 0);
    gen->mul(cb, cs, a, as, b, bs, M, K, N);
    check_close("mul", from_zero + m * cs, cb + m * cs, N, 0, 1.2e-7 * (double)(K + 1) * 2);
    memcpy(cb, from_zero, M * cs * sizeof *cb); /* which touches nothing between the rows */
    vec->mul(cb, cs, a, as, b, bs, M, K, N);
    CHECK(memcmp(cb, from_zero, M * cs * sizeof *cb) == 0);
    free(from_zero);
    memcpy(alone, c + m * cs, N * sizeof *alone);
    vec->mul_add(alone, N, a + m * as, as, b, bs, 1, K, N);
    CHECK(memcmp(alone, ca + m * cs, N * sizeof *alone) == 0);
    free(a), free(b), free(c), free(alone);

    float *in = rng_floats(M * bs, 1);
    ca = guard(&out_a, N * (M + slack)), cb = guard(&out_b, N * (M + slack));
    vec->transpose(ca, M + slack, in, bs, M, N);
    gen->transpose(cb, M + slack, in, bs, M, N);
    check_same("transpose", ca, cb, N * (M + slack) * sizeof *ca);
    check_guard(&out_a);
    free(in);
}

static void check_mul(void)
{
    for (size_t i = 1; i < ARRAY_LEN(lengths); i++) {
        mul_case(1 + rng_u32() % 13, lengths[ARRAY_LEN(lengths) - i] % 70, lengths[i] % 128 + 1, i % 3);
    }
}

/* Fills with values of every size, and now and then one that hurts. */
static void fill_extreme(float *x, size_t n)
{
    static const float hurting[] = {0.0f,   -0.0f, INFINITY, -INFINITY, NAN,     1e-40f,  -1e-40f, 3e38f,
                                    -3e38f, 88.7f, -88.7f,   89.5f,     -103.9f, -104.5f, 20.0f,   1e-8f};
    for (size_t i = 0; i < n; i++) {
        const int exponent = (int)(rng_u32() % 27) - 13;
        const float number = ldexpf(rng_f32(), exponent);
        x[i] = i % 5 == 4 ? hurting[rng_u32() % ARRAY_LEN(hurting)] : number;
    }
}

typedef void unary_fn(float *x, size_t n);
typedef void binary_fn(float *y, const float *x, size_t n);

/* Tolerances of the smooth functions: 4 ulp, and what lies below the smallest normal number. */
static void check_unary(const char *what, unary_fn *v, unary_fn *g, double abs)
{
    for (size_t round = 0; round < 200; round++) {
        size_t n = lengths[round % ARRAY_LEN(lengths)];
        float x[MAX_N];
        fill_extreme(x, n);
        float *a = guard(&out_a, n), *b = guard(&out_b, n);
        memcpy(a, x, n * sizeof *x);
        memcpy(b, x, n * sizeof *x);
        v(a, n);
        g(b, n);
        check_close(what, a, b, n, 4 * 1.2e-7, abs);
        check_guard(&out_a);
    }
}

static void check_binary(const char *what, binary_fn *v, binary_fn *g, double rel)
{
    for (size_t round = 0; round < 200; round++) {
        size_t n = lengths[round % ARRAY_LEN(lengths)];
        float x[MAX_N], y[MAX_N];
        fill_extreme(x, n);
        rng_fill(y, n, 2);
        float *a = guard(&out_a, n), *b = guard(&out_b, n);
        memcpy(a, x, n * sizeof *x);
        memcpy(b, x, n * sizeof *x);
        v(a, y, n);
        g(b, y, n);
        check_close(what, a, b, n, rel, 1e-37);
        check_guard(&out_a);
    }
}

/* As check_binary with the extreme values in the second place (a gate). */
static void check_gate(void)
{
    for (size_t round = 0; round < 200; round++) {
        size_t n = lengths[round % ARRAY_LEN(lengths)];
        float x[MAX_N];
        fill_extreme(x, n);
        float *a = guard(&out_a, n), *b = guard(&out_b, n);
        rng_fill(a, n, 2);
        memcpy(b, a, n * sizeof *a);
        vec->sigmoid_mul(a, x, n);
        gen->sigmoid_mul(b, x, n);
        check_close("sigmoid_mul", a, b, n, 4 * 1.2e-7, 1e-37);
        check_guard(&out_a);
    }
}

static void check_norms(void)
{
    for (size_t i = 1; i < ARRAY_LEN(lengths); i++) {
        size_t n = lengths[i];
        for (int exponent = -12; exponent <= 12; exponent += 6) {
            float size = powf(10, (float)exponent);
            float *x = rng_floats(n, size), *z = rng_floats(n, 20), *w = rng_floats(n, 2),
                  *bias = rng_floats(n, 1);
            float *a = guard(&out_a, n), *b = guard(&out_b, n);
            vec->rmsnorm(a, x, w, 1e-6f, n), gen->rmsnorm(b, x, w, 1e-6f, n);
            check_close("rmsnorm", a, b, n, 2e-6, 0);
            vec->rmsnorm_gated(a, x, z, w, 1e-6f, n), gen->rmsnorm_gated(b, x, z, w, 1e-6f, n);
            check_close("rmsnorm_gated", a, b, n, 2e-6, 1e-37);
            vec->l2norm(a, x, 0.125f, n), gen->l2norm(b, x, 0.125f, n);
            check_close("l2norm", a, b, n, 2e-6, 0);
            vec->layernorm(a, x, w, bias, 1e-6f, n), gen->layernorm(b, x, w, bias, 1e-6f, n);
            check_close("layernorm", a, b, n, 2e-6, n == 1 ? 1e-3 : 1e-5);
            check_guard(&out_a);
            memcpy(a, x, n * sizeof *x); /* in place: the same bits */
            vec->rmsnorm(b, x, w, 1e-6f, n), vec->rmsnorm(a, a, w, 1e-6f, n);
            CHECK(memcmp(a, b, n * sizeof *a) == 0);
            free(x), free(z), free(w), free(bias);
        }
    }
}

static void check_scale_and_rope(void)
{
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        size_t n = lengths[i];
        float *x = rng_floats(2 * n, 3), *c = rng_floats(n, 1), *s = rng_floats(n, 1);
        float *a = guard(&out_a, n), *b = guard(&out_b, n);
        memcpy(a, x, n * sizeof *x), memcpy(b, x, n * sizeof *x);
        vec->scale(a, 0.3f, n), gen->scale(b, 0.3f, n);
        check_same("scale", a, b, n * sizeof *a);
        check_guard(&out_a);
        a = guard(&out_a, 2 * n), b = guard(&out_b, 2 * n);
        memcpy(a, x, 2 * n * sizeof *x), memcpy(b, x, 2 * n * sizeof *x);
        vec->rope(a, c, s, n), gen->rope(b, c, s, n);
        check_close("rope", a, b, 2 * n, 0, 1e-6);
        check_guard(&out_a);
        free(x), free(c), free(s);
    }
}

static void check_softmax(void)
{
    for (size_t round = 0; round < 100; round++) {
        size_t n = lengths[1 + round % (ARRAY_LEN(lengths) - 1)];
        float *s = rng_floats(n, 40), max_a = round % 2 ? -INFINITY : 10 * rng_f32(), max_b = max_a;
        float sum_a = round % 2 ? 0 : 1.5f, sum_b = sum_a;
        float *a = guard(&out_a, n), *b = guard(&out_b, n);
        memcpy(a, s, n * sizeof *s), memcpy(b, s, n * sizeof *s);
        float factor_a = vec->softmax_tile(a, n, &max_a, &sum_a);
        float factor_b = gen->softmax_tile(b, n, &max_b, &sum_b);
        CHECK(max_a == max_b);
        CHECK_NEAR(factor_a, factor_b, 1e-7);
        check_close("softmax_tile sum", &sum_a, &sum_b, 1, 1e-6, 0);
        check_close("softmax_tile", a, b, n, 3e-7, 1e-37);
        check_guard(&out_a);
        free(s);
    }
}

static void check_conv(void)
{
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        size_t n = lengths[i], T = 1 + i % 6, stride = n + 5;
        float *u = rng_floats(T * stride, 3), *tail = rng_floats(3 * stride, 3), *w = rng_floats(4 * n, 1);
        float *a = guard(&out_a, T * n), *b = guard(&out_b, T * n), *bias = rng_floats(n, 1);
        for (int biased = 0; biased < 2; biased++) {
            vec->conv_silu(a, n, u, stride, tail, stride, w, biased ? bias : NULL, T, n);
            gen->conv_silu(b, n, u, stride, tail, stride, w, biased ? bias : NULL, T, n);
            check_close("conv_silu", a, b, T * n, 2e-6, 2e-6);
        }
        check_guard(&out_a);
        free(u), free(tail), free(w), free(bias);
    }
}

static void check_delta(void)
{
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        size_t n = lengths[i], dk = 1 + i * 3, stride = n + i % 2;
        float *S = rng_floats(dk * stride, 1), *q = rng_floats(dk, 0.3f), *k = rng_floats(dk, 0.3f),
              *v = rng_floats(n, 1);
        float *a = guard(&out_a, n + dk * stride), *b = guard(&out_b, n + dk * stride);
        memcpy(a + n, S, dk * stride * sizeof *S), memcpy(b + n, S, dk * stride * sizeof *S);
        vec->delta_step(a, a + n, a + n, stride, q, k, v, 0.7f, 0.9f, dk, n, NULL);
        gen->delta_step(b, b + n, b + n, stride, q, k, v, 0.7f, 0.9f, dk, n, NULL);
        check_close("delta_step", a, b, n + dk * stride, 2e-6, 1e-5);
        check_guard(&out_a);
        float *other = guard(&out_b, n + dk * stride); /* into another state: the same bits */
        memcpy(other + n, S, dk * stride * sizeof *S);
        vec->delta_step(other, other + n, S, stride, q, k, v, 0.7f, 0.9f, dk, n, S);
        CHECK(memcmp(a, other, (n + dk * stride) * sizeof *a) == 0);
        check_guard(&out_b);
        free(S), free(q), free(k), free(v);
    }
}

static void check_peaks(void)
{
    double sum = 0; /* of 0, 1, 2, ..; each round goes half of the way to 2 */
    for (int i = 0; i < PEAK_VECTORS; i++) {
        sum += 16 * i;
    }
    for (size_t rounds = 0; rounds < 5; rounds++) {
        CHECK_NEAR(vec->peak_f32(rounds), sum, 1e-3);
        sum = (sum + 2.0 * PEAK_VECTORS * 16) / 2;
    }
    CHECK_NEAR(vec->peak_f32(100), 2.0 * PEAK_VECTORS * 16, 1e-3);
    if (vec->peak_q) {
        CHECK_INT(vec->peak_q(100), 100 * PEAK_Q_OPS / 2);
    }
}

/* Sums of small whole numbers: the same in any order. */
static void check_read(void)
{
    static const size_t streams[] = {1, 2, 4};
    enum { N = 5 * READ_GRAIN };
    float *x = malloc(N * sizeof *x), sum = 0;
    for (size_t i = 0; i < N; i++) {
        x[i] = (float)(i % 7);
        sum += x[i];
    }
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        CHECK(vec->read(x, N, streams[i]) == sum);
    }
    free(x);
}

static void check_table(void)
{
    check_peaks();
    check_read();
    check_widen();
    check_dot();
    check_mul();
    check_tiles();
    check_quant();
    check_unary("exp", vec->exp, gen->exp, 1e-44);
    check_unary("gelu_tanh", vec->gelu_tanh, gen->gelu_tanh, 2e-8);
    check_unary("gelu_erf", vec->gelu_erf, gen->gelu_erf, 1e-37);
    check_binary("add", vec->add, gen->add, 0);
    check_binary("silu_mul", vec->silu_mul, gen->silu_mul, 4 * 1.2e-7);
    check_gate();
    check_norms();
    check_scale_and_rope();
    check_softmax();
    check_conv();
    check_delta();
}

/* All vector tables are the same text over the same 16 lanes. */
static void check_same_bits(const ops *x, const ops *y)
{
    enum { K = 203, N = 13, T = 5 };
    float *a = rng_floats(T * K, 30), *w = rng_floats(N * K, 1), p[T * N], q[T * N],
          *b = malloc(T * K * sizeof *b);
    x->dot_rows[DTYPE_F32](p, N, a, K, T, w, K, N, K);
    y->dot_rows[DTYPE_F32](q, N, a, K, T, w, K, N, K);
    CHECK(memcmp(p, q, sizeof p) == 0);
    memcpy(b, a, T * K * sizeof *b);
    x->gelu_erf(a, T * K), y->gelu_erf(b, T * K);
    CHECK(memcmp(a, b, T * K * sizeof *b) == 0);
    x->silu_mul(a, w, T * K), y->silu_mul(b, w, T * K);
    CHECK(memcmp(a, b, T * K * sizeof *b) == 0);
    x->rmsnorm(a, a, w, 1e-6f, K), y->rmsnorm(b, b, w, 1e-6f, K);
    CHECK(memcmp(a, b, T * K * sizeof *b) == 0);
    free(a), free(w), free(b);
}

static bool can_emulate(void)
{
    const unsigned needed = CPU_AVX2 | CPU_AVX512 | CPU_AVX512_VNNI;
    return (cpu_flags() & test_cpu_mask() & needed) == needed;
}

/* The kernels for AMX on any processor with AVX-512 VNNI, the tile unit emulated: each tail of 16 rows of weights and
 * of x, of 16 pairs of columns, and of blocks. */
static void check_amx(void)
{
    vec = ops_amx_emulated();
    check_tiles();
    for (size_t N = 1; N <= 49; N++) {
        const size_t T = 1 + N * 7 % TILE_ROWS;
        tile_case_bf16(T, N, 2 * N, N % 3);
        tile_case_bf16(T, N, 64 + 2 * (N % 17), 0);
        for (size_t kind = 0; kind < 4; kind++) {
            tile_case_q(kind % 2, kind / 2, T, N, 1 + N % 11);
        }
    }
}

/* Those for AVX-512 BF16, its instructions emulated. */
static void check_bf16(void)
{
    vec = ops_bf16_emulated();
    check_dot();
    check_tiles();
}

int main(void)
{
    const ops *below = NULL;
    gen = ops_generic();
    for (const test_level *l = test_levels(); l->name; l++) {
        vec =
            l->table(); /* generic, the first, against itself: guards, single elements, and what is recorded */
        CHECK(ops_select(l->mask) == vec);
        CHECK_STR(cpu_describe(l->mask), l->name);
        check_table();
        CHECK(!(l->mask & CPU_AVX512_BF16) || (vec->tile_bf16 && (vec->dot_bf16 || (l->mask & CPU_AMX))));
        if (vec == gen) {
            sums_check("compute/kernels/generic_sums.txt", 1e-5);
        }
        if (below) {
            check_same_bits(below, vec);
        }
        below = l->mask ? vec : NULL;
    }
    if (can_emulate() && ops_amx_emulated()) {
        check_amx();
        check_bf16();
    }
    CHECK_DONE();
}
