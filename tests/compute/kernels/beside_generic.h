/* beside_generic: a kernel table beside the generic one, for test_ops.c alone: outputs between guards, what is near and what
 * is the same. What the generic table gives is noted (sums.h), as beside itself it would show nothing.
 *
 *     float *a = guard(&out_a, n), *b = guard(&out_b, n);
 *     vec->exp(a, n), gen->exp(b, n);
 *     check_close("exp", a, b, n, 1e-6, 0), check_guard(&out_a);
 */
#ifndef PARLEY_TESTS_COMPUTE_KERNELS_BESIDE_GENERIC_H
#define PARLEY_TESTS_COMPUTE_KERNELS_BESIDE_GENERIC_H

#include "compute/kernels/ops.h"
#include "tests/check.h"
#include "tests/compute/rng.h"
#include "tests/compute/sums.h"

static const ops *gen, *vec; /* the generic table, and the one that is checked */

enum { GUARD = 32, MAX_N = 300 };
#define GUARD_VALUE 123.25f

/* An output of n floats that starts one float off any alignment, between guards. */
typedef struct guarded {
    float all[GUARD + 1 + 64 * MAX_N + GUARD];
    size_t n;
} guarded;

static guarded out_a, out_b;

static inline float *guard(guarded *g, size_t n)
{
    CHECK(n <= 64 * MAX_N);
    g->n = n;
    for (size_t i = 0; i < GUARD + 1 + n + GUARD; i++) {
        g->all[i] = GUARD_VALUE;
    }
    return g->all + GUARD + 1;
}

static inline void check_guard(const guarded *g)
{
    for (size_t i = 0; i < GUARD; i++) {
        CHECK(g->all[i + 1] == GUARD_VALUE);
        CHECK(g->all[GUARD + 1 + g->n + i] == GUARD_VALUE);
    }
}

/* Equal, or within rel of the value, or within abs. */
static inline void check_close(const char *what, const float *a, const float *b, size_t n, double rel,
                               double abs)
{
    if (vec == gen) {
        sums_add(what, b, n);
    }
    for (size_t i = 0; i < n; i++) {
        double x = (double)a[i], y = (double)b[i];
        if (!(x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= rel * fabs(y) + abs)) {
            fprintf(stderr, "  %s %s[%zu of %zu] is %.9g, generic %.9g\n", vec->name, what, i, n, x, y);
            check_failures++;
            return;
        }
    }
}

/* The same bits. */
static inline void check_same(const char *what, const void *a, const void *b, size_t bytes)
{
    if (vec == gen) {
        sums_bytes(what, b, bytes);
    }
    if (memcmp(a, b, bytes) != 0) {
        fprintf(stderr, "  %s %s: not the bits of the generic one\n", vec->name, what);
        check_failures++;
    }
}

#endif
