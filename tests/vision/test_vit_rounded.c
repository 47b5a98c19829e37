/* The vision encoder with rounded products and attention, on Seedling's tower: its features in bf16 and in 8 bits
 * lie near those in float32, and a frame's are the same bits alone, among others and with another number of threads. */
#include "tests/check.h"
#include "tests/cpu.h"

#include <math.h>

#include "compute/formats/quant.h"
#include "compute/nn.h"
#include "tests/vision/safetensors.h"
#include "vision/vit.h"

#define SEEDLING PARLEY_SOURCE_DIR "/assets/seedling"

enum { H = 12, W = 10, FRAMES = 5 };

typedef struct tower {
    compute *c;
    vit *v;
    void *matrices;
} tower;

/* bits: 8, or 0 as stored. */
static tower open_tower(safetensors *weights, size_t n_threads, bool fast, int bits)
{
    tower t = {0};
    err_detail d = {0};
    const tensor_source source = {.find = safetensors_find, .ctx = weights};
    const compute_options opt = {.n_threads = n_threads, .cpu_mask = test_cpu_mask(), .fast = fast};
    CHECK_OK(compute_create(&t.c, &opt, &d), d);
    CHECK_OK(vit_open(&t.v, json_folder(SEEDLING), &source, t.c, &d), d);
    size_t total = 0, n = 0;
    const tensor *w = NULL;
    for (size_t i = 0; bits && (w = vit_matrix(t.v, i)); i++) {
        total += w->data ? w->dims[0] * quant_row_bytes(DTYPE_Q8, w->dims[1]) : 0;
    }
    unsigned char *to = t.matrices = bits ? compute_alloc(t.c, total) : NULL;
    for (size_t i = 0; bits && (w = vit_matrix(t.v, i)); i++) {
        if (w->data) {
            tensor q = {.type = DTYPE_Q8, .n_dims = 2, .dims = {w->dims[0], w->dims[1]}, .data = to};
            q.bytes = w->dims[0] * quant_row_bytes(DTYPE_Q8, w->dims[1]);
            nn_quantize(t.c, to, DTYPE_Q8, w);
            *vit_matrix(t.v, i) = q;
            to += q.bytes;
            n++;
        }
    }
    CHECK(!bits || n >= 4 * (size_t)vit_get_config(t.v)->depth + 2);
    return t;
}

static void close_tower(tower *t)
{
    vit_close(t->v);
    compute_free(t->c, t->matrices);
    compute_destroy(t->c);
}

/* Soft shapes that differ from frame to frame. ctx: the values of a patch. */
static void read_rows(const void *ctx, float *rows, size_t first, size_t n)
{
    const size_t dim = *(const size_t *)ctx;
    for (size_t i = 0; i < n * dim; i++) {
        const size_t row = first + i / dim, column = i % dim;
        const double patch = (double)row, at = (double)column;
        rows[i] = (float)(0.7 * sin(0.37 * patch + 0.011 * at) + 0.3 * cos(1.7 * patch - 0.05 * at));
    }
}

static size_t n_floats(const tower *t)
{
    return (size_t)FRAMES * H * W / 4 * (size_t)vit_get_config(t->v)->out_hidden_size;
}

static float *encode(const tower *t)
{
    const vit_config *vc = vit_get_config(t->v);
    const size_t dim = (size_t)vc->in_channels * (size_t)vc->temporal_patch_size * (size_t)vc->patch_size *
                       (size_t)vc->patch_size;
    float *out = malloc(n_floats(t) * sizeof *out);
    err_detail d = {0};
    CHECK_OK(vit_encode(t->v, t->c, out, NULL, &(vit_rows){.read = read_rows, .ctx = &dim}, FRAMES, H, W, &d),
             d);
    return out;
}

typedef struct one_frame {
    size_t dim, first;
} one_frame;

static void read_frame(const void *ctx, float *rows, size_t first, size_t n)
{
    const one_frame *f = ctx;
    read_rows(&f->dim, rows, f->first + first, n);
}

/* Each frame by itself gives the bits that it has among others. */
static void check_frames(const tower *t, const float *together)
{
    const vit_config *vc = vit_get_config(t->v);
    const size_t n = n_floats(t) / FRAMES;
    float *alone = malloc(n * sizeof *alone);
    for (size_t i = 0; i < FRAMES; i++) {
        const one_frame f = {
            (size_t)(vc->in_channels * vc->temporal_patch_size * vc->patch_size * vc->patch_size), i * H * W};
        err_detail d = {0};
        CHECK_OK(vit_encode(t->v, t->c, alone, NULL, &(vit_rows){.read = read_frame, .ctx = &f}, 1, H, W, &d),
                 d);
        CHECK(memcmp(alone, together + i * n, n * sizeof *alone) == 0);
    }
    free(alone);
}

static double cosine(const float *a, const float *b, size_t n)
{
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        xy += (double)a[i] * (double)b[i];
        xx += (double)a[i] * (double)a[i];
        yy += (double)b[i] * (double)b[i];
    }
    return xy / sqrt(xx * yy);
}

int main(void)
{
    safetensors weights;
    CHECK(safetensors_open(&weights, SEEDLING "/model.safetensors"));
    tower exact = open_tower(&weights, 2, false, 0);
    float *want = encode(&exact);
    const size_t n = n_floats(&exact), width = (size_t)vit_get_config(exact.v)->out_hidden_size;
    check_frames(&exact, want);
    for (int bits = 0; bits <= 8; bits += 8) {
        tower two = open_tower(&weights, 2, true, bits), one = open_tower(&weights, 1, true, bits);
        float *have = encode(&two), *same = encode(&one);
        double least = 1;
        for (size_t i = 0; i < n; i += width) {
            least = fmin(least, cosine(have + i, want + i, width));
        }
        printf("%s: cosine of a row at least %.6f, of all %.6f\n", bits ? "q8" : "as stored", least,
               cosine(have, want, n));
        CHECK(least > (bits ? 0.99 : 0.999));
        CHECK(cosine(have, want, n) > (bits ? 0.999 : 0.9999));
        CHECK(memcmp(have, same, n * sizeof *have) == 0);
        check_frames(&two, have);
        free(have), free(same);
        close_tower(&two), close_tower(&one);
    }
    free(want);
    close_tower(&exact);
    safetensors_close(&weights);
    CHECK_DONE();
}
