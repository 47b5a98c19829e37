/* The geometry is PIL's; the arithmetic is that of torchvision's 8-bit path, which the checkpoints'
 * processors run: the normalised weights of a pass become 16-bit fixed point with as many fraction
 * bits as the largest of them allows (PIL always takes 22 bits; about 2 values in 1000 differ by
 * one step). A horizontal pass rounded to 8 bits is followed by a vertical one (resize_kernels.h).
 * Only the rows that the vertical filter spans are kept, in a ring. */
#include "vision/image/resize.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "compute/kernels/cpu.h"
#include "vision/image/resize_kernels.h"

enum { FRACTION_BITS_MAX = 22, WEIGHT_BITS = 15 };

/* For each output position: which inputs it reads and with what weight. */
typedef struct filter {
    size_t n_taps;     /* row length of weights */
    int fraction_bits; /* of a fixed-point weight */
    int32_t *begin;    /* [n_out] first input */
    int32_t *count;    /* [n_out] number of inputs, at most n_taps */
    double *exact;     /* [n_out, n_taps] normalised weights, zero behind count */
    int16_t *weights;  /* the same in fixed point */
} filter;

/* Keys' cubic with a = -0.5. */
static double cubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) {
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    }
    if (x < 2.0) {
        return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
    }
    return 0.0;
}

static void filter_deinit(filter *f)
{
    free(f->begin);
    free(f->count);
    free(f->exact);
    free(f->weights);
}

/* Which inputs output `at` reads, and their weights, normalised to a sum of 1. */
static void fill_position(filter *f, int32_t at, double scale, int32_t n_in)
{
    double slice = scale < 1.0 ? 1.0 : scale; /* antialiasing: reductions widen the filter */
    double support = 2.0 * slice, center = (at + 0.5) * scale, sum = 0;
    double low = center - support + 0.5, high = center + support + 0.5;
    int32_t begin = low < 0 ? 0 : (int32_t)low;
    int32_t count = (high > n_in ? n_in : (int32_t)high) - begin;
    double *w = f->exact + (size_t)at * f->n_taps;
    for (int32_t i = 0; i < count; i++) {
        w[i] = cubic((i + begin - center + 0.5) * (1.0 / slice));
        sum += w[i];
    }
    for (int32_t i = 0; i < count; i++) { /* what is nearest weighs more than all that is below zero */
        w[i] /= sum;
    }
    f->begin[at] = begin;
    f->count[at] = count;
}

/* TRAP: normalise first, round after, halves away from zero. */
static void fix_weights(filter *f, size_t n_weights)
{
    double largest = 0;
    for (size_t i = 0; i < n_weights; i++) {
        largest = f->exact[i] > largest ? f->exact[i] : largest;
    }
    while (f->fraction_bits < FRACTION_BITS_MAX &&
           0.5 + largest * (1 << (f->fraction_bits + 1)) < (1 << WEIGHT_BITS)) {
        f->fraction_bits++;
    }
    for (size_t i = 0; i < n_weights; i++) {
        double v = f->exact[i] * (1 << f->fraction_bits);
        f->weights[i] = (int16_t)(v < 0 ? v - 0.5 : v + 0.5);
    }
}

static bool filter_init(filter *f, int32_t n_in, int32_t n_out)
{
    double scale = (double)n_in / n_out;
    f->n_taps = (size_t)ceil(2.0 * (scale < 1.0 ? 1.0 : scale)) * 2 + 1;
    f->n_taps = (f->n_taps + RESIZE_TAPS_UNIT - 1) / RESIZE_TAPS_UNIT * RESIZE_TAPS_UNIT;
    const size_t n_weights = f->n_taps * (size_t)n_out; /* about 4 (n_in + n_out): below 2^36 */
    f->begin = malloc((size_t)n_out * sizeof *f->begin);
    f->count = malloc((size_t)n_out * sizeof *f->count);
    f->exact = calloc(n_weights, sizeof *f->exact);
    f->weights = malloc(n_weights * sizeof *f->weights);
    if (!f->begin || !f->count || !f->exact || !f->weights) {
        return false;
    }
    for (int32_t at = 0; at < n_out; at++) {
        fill_position(f, at, scale, n_in);
    }
    fix_weights(f, n_weights);
    return true;
}

typedef struct ring {
    uint8_t *rows; /* [n_rows, row_bytes]: input row y, horizontally filtered, is row y % n_rows */
    size_t n_rows, row_bytes;
    const uint8_t **in_order; /* [n_rows] the rows that one output row reads */
} ring;

static void resample(uint8_t *out, int32_t out_w, int32_t out_h, const uint8_t *in, int32_t in_w,
                     const filter *fx, const filter *fy, ring *r)
{
    const resize_kernels *k = resize_kernels_select(cpu_flags());
    const resize_taps taps = {.stride = fx->n_taps,
                              .fraction_bits = fx->fraction_bits,
                              .begin = fx->begin,
                              .count = fx->count,
                              .weights = fx->weights};
    int32_t ready = fy->begin[0]; /* input rows below this one are in the ring */
    for (int32_t y = 0; y < out_h; y++) {
        int32_t begin = fy->begin[y], end = begin + fy->count[y];
        for (; ready < end; ready++) {
            k->row(r->rows + (size_t)ready % r->n_rows * r->row_bytes, (size_t)out_w,
                   in + (size_t)ready * (size_t)in_w * 3, (size_t)in_w, &taps);
        }
        for (int32_t i = begin; i < end; i++) {
            r->in_order[i - begin] = r->rows + (size_t)i % r->n_rows * r->row_bytes;
        }
        k->column(out + (size_t)y * r->row_bytes, r->in_order, fy->weights + (size_t)y * fy->n_taps,
                  (size_t)fy->count[y], r->row_bytes, fy->fraction_bits);
    }
}

err_code resize_bicubic(uint8_t *out, int32_t out_w, int32_t out_h, const uint8_t *in, int32_t in_w,
                        int32_t in_h, err_detail *detail)
{
    if (out_w < 1 || out_h < 1 || in_w < 1 || in_h < 1) {
        return err_set(detail, ERR_INVALID, "an image to resize has no pixels");
    }
    if (out_w == in_w && out_h == in_h) {
        memcpy(out, in, (size_t)in_w * (size_t)in_h * 3);
        return ERR_OK;
    }
    err_code err = ERR_OK;
    filter fx = {0}, fy = {0};
    ring r = {.row_bytes = (size_t)out_w * 3};
    size_t ring_bytes = 0;
    bool ok = filter_init(&fx, in_w, out_w) && filter_init(&fy, in_h, out_h);
    r.n_rows = fy.n_taps;
    ok = ok && size_mul(&ring_bytes, r.n_rows, r.row_bytes) && (r.rows = malloc(ring_bytes)) &&
         (r.in_order = malloc(r.n_rows * sizeof *r.in_order));
    if (ok) {
        resample(out, out_w, out_h, in, in_w, &fx, &fy, &r);
    } else {
        err = err_set(detail, ERR_NOMEM, "not enough memory to resize the image");
    }
    filter_deinit(&fx);
    filter_deinit(&fy);
    free(r.rows);
    free(r.in_order);
    return err;
}
