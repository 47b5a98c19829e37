/* naive: what tests of compute/ compare with formulas in double.
 *
 *     double *want = doubles(n);
 *     CHECK_NEAR(rel_error(out, want, n), 0, 1e-6); free(want);
 */
#ifndef PARLEY_TESTS_COMPUTE_NAIVE_H
#define PARLEY_TESTS_COMPUTE_NAIVE_H

#include <math.h>
#include <stddef.h>

#include "tests/guard.h"

/* Largest |a - b| over the largest |b|. */
static inline double rel_error(const float *a, const double *b, size_t n)
{
    double worst = 0, top = 1e-30;
    for (size_t i = 0; i < n; i++) {
        double e = fabs((double)a[i] - b[i]);
        worst = e > worst || isnan(e) ? e : worst;
        top = fabs(b[i]) > top ? fabs(b[i]) : top;
    }
    return worst / top;
}

/* n zeros; the caller frees them with guard_free. */
static inline double *doubles(size_t n)
{
    return guard_calloc(n, sizeof(double));
}

enum { NAIVE_SLOTS = 8192 };

/* Of slots first .. n-1, n at most NAIVE_SLOTS; sink NULL: none. */
static inline void attend_naive(double *out, const float *q, const float *k, const float *v, size_t stride,
                                size_t first, size_t n, size_t hd, double scale, const float *sink)
{
    static double s[NAIVE_SLOTS]; /* a page of its own for each row would take longer than the sums */
    double top = sink ? (double)*sink : -INFINITY, sum = 0;
    memset(s, 0, n * sizeof *s);
    for (size_t j = first; j < n; j++) {
        for (size_t i = 0; i < hd; i++) {
            s[j] += (double)q[i] * (double)k[j * stride + i] * scale;
        }
        top = s[j] > top ? s[j] : top;
    }
    for (size_t j = first; j < n; j++) {
        s[j] = exp(s[j] - top);
        sum += s[j];
    }
    sum += sink ? exp((double)*sink - top) : 0;
    memset(out, 0, hd * sizeof *out);
    for (size_t j = first; j < n; j++) {
        const double weight = s[j] / sum;
        for (size_t i = 0; i < hd; i++) {
            out[i] += weight * (double)v[j * stride + i];
        }
    }
}

#endif
