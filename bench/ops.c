/* ops: how fast the operations of compute/nn.h are on this machine, beside the limits measured in
 * the same run.
 *
 *     build/bench_ops [threads [native|avx512|avx2|generic]]
 *
 * Every figure is the best of several rounds; other programs on the machine lower all of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compute/kernels/cpu.h"
#include "compute/nn.h"
#include "compute/pool.h"
#include "compute/formats/quant.h"

enum { ROUNDS = 15, D = 1024, FF = 3584, BIG_N = 131072, PREFILL = 512, PATCHES = 4096 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Best time of `call` in seconds. */
static double best(void (*call)(void *ctx), void *ctx)
{
    double least = 1e30;
    for (int i = 0; i < ROUNDS; i++) {
        double start = now_s();
        call(ctx);
        double t = now_s() - start;
        least = t < least ? t : least;
    }
    return least;
}

static float *floats(compute *c, size_t n)
{
    float *x = compute_alloc(c, n * sizeof *x);
    if (!x) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)((i * 2654435761u >> 7) % 2001) * 1e-3f - 1.0f;
    }
    return x;
}

static void row(const char *what, double seconds, double bytes, double flops)
{
    printf("%-46s %10.3f ms", what, seconds * 1e3);
    bytes > 0 ? printf(" %8.1f GB/s", bytes / seconds * 1e-9) : printf(" %13s", "");
    flops > 0 ? printf(" %8.1f GFLOP/s\n", flops / seconds * 1e-9) : printf("\n");
}

/* ---- the memory bandwidth: every thread sums words of a large buffer ---- */

typedef struct read_job {
    pool *pool;
    const uint64_t *data;
    size_t n_tasks, words; /* words of a task */
    volatile uint64_t sink;
} read_job;

static void read_task(void *ctx, size_t task, size_t thread)
{
    (void)thread;
    read_job *job = ctx;
    const uint64_t *from = job->data + task * job->words;
    uint64_t sum[8] = {0};
    for (size_t i = 0; i < job->words; i += 8) {
        for (size_t j = 0; j < 8; j++) {
            sum[j] += from[i + j];
        }
    }
    job->sink = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

static void read_all(void *ctx)
{
    read_job *job = ctx;
    pool_run(job->pool, read_task, job, job->n_tasks);
}

/* ---- operations ---- */

typedef struct bench {
    compute *c;
    float *x, *out, *state;
    tensor w;
    size_t T, step;
    dtype rounded;
    kv_pages kv;
    size_t first;
    float *beta, *g, *tail;
} bench;

/* T rows in calls of `step` rows. */
static void linear(void *ctx)
{
    bench *b = ctx;
    for (size_t t = 0; t < b->T; t += b->step) {
        const linear_part part = {b->out + t * b->w.dims[0], &b->w, NULL};
        if (b->step > NN_ROWS_EXACT) {
            nn_linear_many(b->c, &part, 1, b->x + t * b->w.dims[1], b->step);
        } else {
            nn_linear_group(b->c, &part, 1, b->x + t * b->w.dims[1], b->step);
        }
    }
}

static void bench_linear(bench *b, const uint16_t *weights)
{
    static const size_t rows[] = {1, 2, 3, 4, 8, 16, 32};
    char name[80];
    b->w = (tensor){DTYPE_BF16, 2, {BIG_N, D}, weights, (size_t)BIG_N * D * 2};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        b->T = b->step = rows[i];
        snprintf(name, sizeof name, "linear bf16 [%d, %d], %zu row%s", BIG_N, D, rows[i],
                 rows[i] > 1 ? "s" : "");
        row(name, best(linear, b), (double)b->w.bytes, 2.0 * (double)b->T * BIG_N * D);
    }
    b->w = (tensor){DTYPE_BF16, 2, {FF, D}, weights, (size_t)FF * D * 2};
    static const size_t steps[] = {PREFILL, 64, 32};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        b->T = PREFILL;
        b->step = steps[i];
        snprintf(name, sizeof name, "linear bf16 [%d, %d], %d rows by %zu", FF, D, PREFILL, steps[i]);
        row(name, best(linear, b), 0, 2.0 * PREFILL * FF * D);
    }
    b->w = (tensor){DTYPE_BF16, 2, {D, FF}, weights, (size_t)FF * D * 2};
    b->step = PREFILL;
    snprintf(name, sizeof name, "linear bf16 [%d, %d], %d rows", D, FF, PREFILL);
    row(name, best(linear, b), 0, 2.0 * PREFILL * FF * D);
    b->w = (tensor){DTYPE_BF16, 2, {768, 3072}, weights, 768 * 3072 * 2};
    b->T = b->step = PATCHES;
    snprintf(name, sizeof name, "linear bf16 [768, 3072], %d rows", PATCHES);
    row(name, best(linear, b), 0, 2.0 * PATCHES * 768 * 3072);
}

/* The rows of several answers in one step on weights that come from memory, as ratios of one row. */
static void bench_few_rows(bench *b, dtype type, unsigned char *weights)
{
    static const size_t rows[] = {1, 2, 4, 8, 16, 32};
    double one = 0;
    unsigned char *to = weights;
    for (size_t n = 0; n < BIG_N; n++, to += quant_row_bytes(type, D)) {
        quant_weights(to, type, b->x + n % 64 * D, D);
    }
    b->w = (tensor){type, 2, {BIG_N, D}, weights, BIG_N * quant_row_bytes(type, D)};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        b->T = b->step = rows[i];
        const double t = best(linear, b);
        one = i == 0 ? t : one;
        printf("linear %s [%d, %d], %2zu rows %17.3f ms %8.1f GB/s %8.2fx of one row\n", dtype_name(type),
               BIG_N, D, rows[i], t * 1e3, (double)b->w.bytes / t * 1e-9, t / one);
    }
}

/* Prompts and single rows on weights in blocks. */
static void bench_blocks(bench *b, void *weights)
{
    static const size_t sizes[][2] = {{FF, D}, {D, FF}};
    char name[80];
    for (dtype type = DTYPE_Q8; type <= DTYPE_Q5; type++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            const size_t N = sizes[i][0], K = sizes[i][1];
            unsigned char *to = weights;
            for (size_t n = 0; n < N; n++, to += quant_row_bytes(type, K)) {
                quant_weights(to, type, b->x + n % 64 * K, K);
            }
            b->w = (tensor){type, 2, {N, K}, weights, N * quant_row_bytes(type, K)};
            b->T = b->step = PREFILL;
            snprintf(name, sizeof name, "linear %s [%zu, %zu], %zu rows", dtype_name(type), N, K, b->T);
            row(name, best(linear, b), 0, 2.0 * (double)b->T * (double)N * (double)K);
            b->T = b->step = 1;
            snprintf(name, sizeof name, "linear %s [%zu, %zu], 1 row", dtype_name(type), N, K);
            row(name, best(linear, b), (double)b->w.bytes, 0);
        }
        bench_few_rows(b, type, weights);
    }
}

enum { H = 8, KV = 2, HD = 256, PAGE = 64, SLOTS = 8192 };

static void attention(void *ctx)
{
    bench *b = ctx;
    nn_attention(b->c, b->out, b->x, &b->kv, NULL, 0.0625f, b->first, b->T, H, KV, HD, H * HD, HD);
}

static void bench_attention(bench *b)
{
    static void *pages[SLOTS / PAGE];
    char name[80];
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        const size_t page_bytes = kv_page_bytes(type, PAGE, KV, HD);
        for (size_t p = 0; p < SLOTS / PAGE; p++) {
            pages[p] = floats(b->c, (page_bytes + 3) / 4);
        }
        b->kv = (kv_pages){pages, PAGE, type};
        nn_kv_store(b->c, &b->kv, b->x, b->x + (size_t)SLOTS * KV * HD, 0, SLOTS, KV, HD, KV * HD, KV * HD);
        static const size_t rows[] = {1, 2, 4, PREFILL};
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            b->T = rows[i];
            b->first = SLOTS - b->T;
            snprintf(name, sizeof name, "attention 8/2 heads of 256, %s, %zu over 8192", kv_type_name(type),
                     b->T);
            row(name, best(attention, b), b->T < PREFILL ? (double)SLOTS / PAGE * (double)page_bytes : 0,
                4.0 * (double)b->T * ((double)SLOTS - (double)b->T / 2) * H * HD);
        }
        for (size_t p = 0; p < SLOTS / PAGE; p++) {
            compute_free(b->c, pages[p]);
        }
    }
}

static void segments(void *ctx)
{
    bench *b = ctx;
    const int32_t cu[2] = {0, PATCHES};
    nn_attention_segments(b->c, b->out, b->x, cu, 1, b->rounded, 0.125f, 12, 64);
}

static const delta_shape SHAPE = {16, 16, 128, 128, false};

static void recurrent(void *ctx)
{
    bench *b = ctx;
    nn_delta_recurrent(b->c, b->out, b->state, NULL, b->x, b->beta, b->g, &SHAPE, b->T);
}

static void chunked(void *ctx)
{
    bench *b = ctx;
    const delta_source rows = {b->x, b->beta, b->tail};
    nn_delta_chunked(b->c, b->out, b->state, &rows, b->beta, b->g, &SHAPE, b->T);
}

static void conv(void *ctx)
{
    bench *b = ctx;
    nn_conv_silu(b->c, b->out, b->tail, b->x, b->beta, NULL, b->T, 6144, 6144);
}

static void silu_mul(void *ctx)
{
    bench *b = ctx;
    nn_silu_mul(b->c, b->out, b->x, PREFILL * FF);
}

static void gelu(void *ctx)
{
    bench *b = ctx;
    nn_gelu_tanh(b->c, b->out, PREFILL * FF);
}

static void bench_rest(bench *b)
{
    static const dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_Q8};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char name[80];
        b->rounded = types[i];
        snprintf(name, sizeof name, "attention of an image, 12 x 64, 4096, %s", dtype_name(types[i]));
        row(name, best(segments, b), 0, 4.0 * PATCHES * PATCHES * 12 * 64);
    }
    b->beta = floats(b->c, 6144 * 4);
    b->tail = floats(b->c, 3 * 6144);
    b->g = floats(b->c, PREFILL * 16);
    for (size_t i = 0; i < PREFILL * 16; i++) {
        b->beta[i] = 0.5f;
        b->g[i] = -0.05f;
    }
    b->T = 1;
    row("delta rule, 16 heads of 128, 1 row", best(recurrent, b), 2.0 * 16 * 128 * 128 * 4, 0);
    b->T = PREFILL;
    row("delta rule, 512 rows, recurrent", best(recurrent, b), 0, 7.0 * PREFILL * 16 * 128 * 128);
    row("convolution and delta rule, 512 rows, chunked", best(chunked, b), 0, 7.0 * PREFILL * 16 * 128 * 128);
    b->T = 1;
    row("convolution, 6144 channels, 1 row", best(conv, b), 0, 0);
    b->T = PREFILL;
    row("convolution, 6144 channels, 512 rows", best(conv, b), 2.0 * PREFILL * 6144 * 4, 0);
    row("silu(gate) * up, 512 x 3584", best(silu_mul, b), 3.0 * PREFILL * FF * 4, 0);
    row("gelu tanh, 512 x 3584", best(gelu, b), 2.0 * PREFILL * FF * 4, 0);
}

int main(int argc, char **argv)
{
    compute_options opt = {
        .n_threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, .cpu_mask = ~0u, .fast = true};
    err_detail detail = {0};
    bench b = {0};
    if (argc > 2 && !cpu_parse_level(argv[2], &opt.cpu_mask)) {
        fprintf(stderr, "usage: bench_ops [threads [native|avx512|avx2|generic]]\n");
        return 2;
    }
    if (compute_create(&b.c, &opt, &detail) != ERR_OK) {
        fprintf(stderr, "%s\n", detail.text);
        return 1;
    }
    printf("%s\n", compute_describe(b.c));

    size_t bytes = (size_t)BIG_N * D * 2;
    uint16_t *weights = compute_alloc(b.c, bytes);
    b.x = floats(b.c, (size_t)PATCHES * 3072);
    b.out = floats(b.c, (size_t)32 * BIG_N);
    b.state = floats(b.c, 16 * 128 * 128);
    if (!weights) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    for (size_t i = 0; i < bytes / 2; i++) {
        weights[i] = (uint16_t)(0x3c00 + i % 509);
    }

    read_job job = {.pool = pool_create(compute_n_threads(b.c)),
                    .data = (const uint64_t *)(void *)weights,
                    .n_tasks = 256,
                    .words = bytes / 8 / 256};
    if (!job.pool) {
        return 1;
    }
    row("memory bandwidth", best(read_all, &job), (double)bytes, 0);
    pool_destroy(job.pool);
    bench_linear(&b, weights);
    bench_attention(&b);
    bench_rest(&b);
    bench_blocks(&b, weights);
    compute_free(b.c, weights);
    compute_free(b.c, b.x);
    compute_free(b.c, b.out);
    compute_free(b.c, b.state);
    compute_free(b.c, b.beta);
    compute_free(b.c, b.g);
    compute_destroy(b.c);
    return 0;
}
