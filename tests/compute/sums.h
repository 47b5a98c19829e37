/* sums: what functions made of the numbers of a test, as a line for each kind, compared with a file below tests:
 * sums of floats, which may differ by rounding, and hashes of bytes, which may not. The numbers of the test are to be the
 * same on every machine. PARLEY_WRITE=1 writes the file anew. One thread.
 *
 *     sums_add("exp", x, n);
 *     sums_bytes("packed", p, n_bytes);
 *     sums_check("compute/kernels/generic_sums.txt", 1e-5); // also forgets them
 */
#ifndef PARLEY_TESTS_COMPUTE_SUMS_H
#define PARLEY_TESTS_COMPUTE_SUMS_H

#include <inttypes.h>
#include <math.h>

#include "tests/check.h"

enum { SUMS_KINDS = 64 };

typedef struct sums_kind {
    const char *what;
    size_t n, n_bytes, n_infinite, n_nan;
    double sum;
    uint64_t hash;
} sums_kind;

static sums_kind sums_kinds[SUMS_KINDS];
static size_t sums_n;

static inline sums_kind *sums_of(const char *what)
{
    size_t i = 0;
    while (i < sums_n && strcmp(sums_kinds[i].what, what) != 0) {
        i++;
    }
    if (i == SUMS_KINDS) {
        abort();
    }
    if (i == sums_n) {
        sums_kinds[sums_n++] = (sums_kind){.what = what, .hash = 14695981039346656037u};
    }
    return &sums_kinds[i];
}

/* Each place has a weight, and large numbers do not hide small ones. */
static inline void sums_add(const char *what, const float *x, size_t n)
{
    sums_kind *kind = sums_of(what);
    for (size_t i = 0; i < n; i++, kind->n++) {
        kind->n_nan += isnan(x[i]) != 0;
        kind->n_infinite += isinf(x[i]) != 0;
        kind->sum += isfinite(x[i]) ? (double)(kind->n % 13 + 1) * asinh((double)x[i]) : 0;
    }
}

static inline void sums_bytes(const char *what, const void *data, size_t n)
{
    sums_kind *kind = sums_of(what);
    for (size_t i = 0; i < n; i++, kind->n_bytes++) {
        kind->hash = (kind->hash ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    }
}

/* most: how far a float may be off, of some size up to 10; errors add up as if by chance. */
static inline void sums_check(const char *name, double most)
{
    char path[1024], line[256], is[256];
    snprintf(path, sizeof path, PARLEY_SOURCE_DIR "/tests/%s", name);
    const bool write = getenv("PARLEY_WRITE") != NULL;
    FILE *file = fopen(path, write ? "w" : "r");
    CHECK(file != NULL);
    for (size_t i = 0; file && i < sums_n; i++) {
        const sums_kind *k = &sums_kinds[i];
        snprintf(is, sizeof is,
                 "%s: %zu floats, %zu infinite, %zu not numbers, %zu bytes %016" PRIx64 ", sum", k->what,
                 k->n, k->n_infinite, k->n_nan, k->n_bytes, k->hash);
        if (write) {
            fprintf(file, "%s %.9g\n", is, k->sum);
            continue;
        }
        if (!fgets(line, sizeof line, file)) {
            line[0] = '\0';
        }
        char *end = strstr(line, ", sum ");
        const double sum = end ? strtod(end + strlen(", sum "), NULL) : NAN;
        if (end) {
            end[strlen(", sum")] = '\0';
        }
        CHECK_STR(line, is);
        CHECK_NEAR(k->sum, sum, most * sqrt((double)k->n + 1));
    }
    CHECK(file && (write || !fgets(line, sizeof line, file)));
    CHECK(file && fclose(file) == 0);
    sums_n = 0;
}

#endif
