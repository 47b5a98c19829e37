/* resize_kernels: the two passes of resize.c as a table of functions, one table an instruction set.
 * Any thread; no memory and no state.
 *
 *     const resize_kernels *k = resize_kernels_select(cpu_flags());
 *     k->row(out, n_out, in, n_in, &taps);   k->column(out, rows, weights, n_rows, n, fraction_bits);
 *
 * resize_generic.c is the specification; sums are exact integers, so every table gives the same
 * bytes.
 */
#ifndef PARLEY_VISION_IMAGE_RESIZE_KERNELS_H
#define PARLEY_VISION_IMAGE_RESIZE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

enum { RESIZE_TAPS_UNIT = 4 };

/* Which inputs each output reads, and with what weight. */
typedef struct resize_taps {
    size_t stride;          /* row length of weights, a multiple of RESIZE_TAPS_UNIT */
    int fraction_bits;      /* of a weight */
    const int32_t *begin;   /* [n_out] first input, ascending */
    const int32_t *count;   /* [n_out] number of inputs, 1 .. stride */
    const int16_t *weights; /* [n_out, stride], zero behind count */
} resize_taps;

typedef struct resize_kernels {
    const char *name;
    /* One row of RGB pixels: out [n_out, 3] from in [n_in, 3]; nothing beyond either is touched. */
    void (*row)(uint8_t *out, size_t n_out, const uint8_t *in, size_t n_in, const resize_taps *t);
    /* out[i] = sum over r of rows[r][i] * weights[r], for n bytes. */
    void (*column)(uint8_t *out, const uint8_t *const *rows, const int16_t *weights, size_t n_rows, size_t n,
                   int fraction_bits);
} resize_kernels;

/* The best table for a set of CPU_* flags; never NULL. */
const resize_kernels *resize_kernels_select(unsigned flags);

/* The tables by name; NULL where this build has none (another processor family). */
const resize_kernels *resize_kernels_generic(void);
const resize_kernels *resize_kernels_avx2(void);

/* One output of a row, and one of a column, as the specification computes them: for the ends of the
 * other tables. */
void resize_row_one(uint8_t *out, const uint8_t *in, const resize_taps *t, size_t x);
uint8_t resize_column_one(const uint8_t *const *rows, const int16_t *weights, size_t n_rows, size_t i,
                          int fraction_bits);

#endif
