/* stats: medians for the benchmarks. Any thread.
 *
 *     double typical = stats_median(values, n);
 */
#ifndef PARLEY_BENCH_STATS_H
#define PARLEY_BENCH_STATS_H

#include <stddef.h>
#include <stdlib.h>

static inline int stats_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts values [n]; 0 for none. */
static inline double stats_median(double *values, size_t n)
{
    if (n == 0) {
        return 0.0;
    }
    qsort(values, n, sizeof *values, stats_compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2.0;
}

#endif
