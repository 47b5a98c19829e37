/* ways: float products of many rows by our own dot products, and by OpenBLAS, on each table of kernels that
 * this processor runs, in turns; which of them the table takes (dot_rows_best) is marked.
 *
 *     OPENBLAS_CORETYPE=SkylakeX build/bench_ways [threads]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "compute/context.h"
#include "compute/gemm.h"
#include "compute/kernels/cpu.h"
#include "compute/nn.h"

enum { ROUNDS = 7, ROWS = 512 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double time_of(compute *c, const ops *way, float *out, const float *x, const tensor *w)
{
    c->ops = way;
    const double start = now_s();
    nn_linear(c, out, x, w, NULL, ROWS);
    return now_s() - start;
}

static void measure(compute *c, float *out, const float *x, const tensor *w, const char *shape)
{
    const ops *table = c->ops;
    ops own = *table, blas = *table;
    double least[2] = {1e30, 1e30};
    own.dot_rows_best = true;
    blas.dot_rows_best = false;
    for (int i = 0; i < ROUNDS; i++) {
        const double t[2] = {time_of(c, &own, out, x, w), time_of(c, &blas, out, x, w)};
        for (int k = 0; k < 2; k++) {
            least[k] = t[k] < least[k] ? t[k] : least[k];
        }
    }
    c->ops = table;
    printf("%-22s %s own %7.2f ms%s  OpenBLAS %7.2f ms%s  %.2fx\n", shape, dtype_name(w->type),
           least[0] * 1e3, table->dot_rows_best ? " *" : "  ", least[1] * 1e3,
           table->dot_rows_best ? "  " : " *", least[1] / least[0]);
}

int main(int argc, char **argv)
{
    static const unsigned TABLES[] = {CPU_AVX2, CPU_AVX2 | CPU_AVX512, ~0u};
    static const size_t SHAPES[][2] = {{3584, 1024}, {1024, 3584}, {3072, 768}};
    for (size_t i = 0; i < sizeof TABLES / sizeof TABLES[0]; i++) {
        compute *c = NULL;
        const compute_options opt = {.n_threads = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 1,
                                     .cpu_mask = TABLES[i]};
        if (compute_create(&c, &opt, NULL) != ERR_OK) {
            return 1;
        }
        const size_t most = (size_t)3584 * 1024;
        float *x = compute_alloc(c, most * sizeof *x), *out = compute_alloc(c, most * sizeof *out);
        float *data = compute_alloc(c, most * sizeof *data);
        if (!x || !out || !data) {
            return 1;
        }
        for (size_t k = 0; k < most; k++) {
            x[k] = data[k] = (float)(k * 2654435761u >> 7 & 1023) * 1e-3f - 0.5f;
        }
        printf("%s, OpenBLAS %s\n", cpu_describe(c->flags), gemm_core());
        for (size_t k = 0; k < 2 * (sizeof SHAPES / sizeof SHAPES[0]); k++) {
            char shape[64];
            const size_t *dims = SHAPES[k / 2];
            const dtype type = k % 2 ? DTYPE_F32 : DTYPE_BF16;
            const tensor w = {.data = data, .type = type, .n_dims = 2, .dims = {dims[0], dims[1]}};
            snprintf(shape, sizeof shape, "[%zu, %zu] %d rows", dims[0], dims[1], ROWS);
            measure(c, out, x, &w, shape);
        }
        compute_free(c, x);
        compute_free(c, out);
        compute_free(c, data);
        compute_destroy(c);
    }
    return 0;
}
