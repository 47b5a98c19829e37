/* Row-wise operations: norms, activations, rotation. Each is an argument struct, a function over a
 * range of rows, and the public call that hands both to nn_run_rows. */
#include "compute/nn.h"

#include <assert.h>
#include <math.h>

#include "compute/context.h"

typedef struct embed_args {
    float *out;
    const tensor *table;
    const int32_t *ids;
    size_t D;
} embed_args;

static void embed_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    const embed_args *a = args;
    const size_t row_bytes = tensor_row_bytes(a->table);
    const dtype type = a->table->type;
    for (size_t t = begin; t < end; t++) {
        const unsigned char *row = (const unsigned char *)a->table->data + (size_t)a->ids[t] * row_bytes;
        (dtype_is_ggml(type) ? ggml_kernels_of(o->ggml, type)->widen : o->widen[type])(a->out + t * a->D, row,
                                                                                       a->D);
    }
}

void nn_embed(compute *c, float *out, const tensor *table, const int32_t *ids, size_t T)
{
    assert((table->type < DTYPE_OTHER || dtype_is_ggml(table->type)) && table->n_dims >= 2);
    size_t D = tensor_len(table) / table->dims[0];
    embed_args args = {out, table, ids, D};
    nn_run_rows(c, embed_rows, &args, T, D);
}

/* Of operations on single numbers a row is one of them; x is NULL for those that have one
 * operand. */
typedef struct values_args {
    void (*two)(float *y, const float *x, size_t n);
    void (*one)(float *y, size_t n);
    float *y;
    const float *x;
} values_args;

static void run_values(const ops *o, const void *args, size_t begin, size_t end)
{
    (void)o;
    const values_args *a = args;
    if (a->x) {
        a->two(a->y + begin, a->x + begin, end - begin);
    } else {
        a->one(a->y + begin, end - begin);
    }
}

void nn_add(compute *c, float *y, const float *x, size_t n)
{
    nn_run_rows(c, run_values, &(values_args){.two = c->ops->add, .y = y, .x = x}, n, 1);
}

void nn_silu_mul(compute *c, float *gate, const float *up, size_t n)
{
    nn_run_rows(c, run_values, &(values_args){.two = c->ops->silu_mul, .y = gate, .x = up}, n, 1);
}

/* Plain enough for the compiler: for every instruction set alike. */
static void relu2(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float v = x[i] > 0 ? x[i] : 0;
        x[i] = v * v;
    }
}

void nn_relu2(compute *c, float *x, size_t n)
{
    nn_run_rows(c, run_values, &(values_args){.one = relu2, .y = x}, n, 1);
}

typedef struct numbers_args {
    float *gate;
    const float *up;
    float limit; /* or another number */
} numbers_args;

static void clamped_values(const ops *o, const void *args, size_t begin, size_t end)
{
    enum { STEP = 64 };
    const numbers_args *a = args;
    const float slope = 1.702f, limit = a->limit;
    for (size_t i = begin; i < end; i += STEP) { /* silu(slope * g) / slope is g * sigmoid(slope * g) */
        const size_t n = min_size(STEP, end - i);
        float up[STEP];
        for (size_t k = 0; k < n; k++) {
            const float g = a->gate[i + k], u = a->up[i + k];
            a->gate[i + k] = (g < limit ? g : limit) * slope;
            up[k] = ((u < -limit ? -limit : u < limit ? u : limit) + 1.0f) / slope;
        }
        o->silu_mul(a->gate + i, up, n);
    }
}

void nn_swiglu_clamped(compute *c, float *gate, const float *up, float limit, size_t n)
{
    nn_run_rows(c, clamped_values, &(numbers_args){gate, up, limit}, n, 1);
}

static void gelu_mul_values(const ops *o, const void *args, size_t begin, size_t end)
{
    const numbers_args *a = args;
    o->gelu_tanh(a->gate + begin, end - begin);
    for (size_t i = begin; i < end; i++) {
        a->gate[i] *= a->up[i];
    }
}

void nn_gelu_mul(compute *c, float *gate, const float *up, size_t n)
{
    nn_run_rows(c, gelu_mul_values, &(numbers_args){.gate = gate, .up = up}, n, 1);
}

static void scale_values(const ops *o, const void *args, size_t begin, size_t end)
{
    const numbers_args *a = args;
    o->scale(a->gate + begin, a->limit, end - begin);
}

void nn_scale(compute *c, float *x, float s, size_t n)
{
    nn_run_rows(c, scale_values, &(numbers_args){x, NULL, s}, n, 1);
}

/* tanh(v) is 2 sigmoid(2 v) - 1. */
static void softcap_values(const ops *o, const void *args, size_t begin, size_t end)
{
    enum { STEP = 64 };
    const numbers_args *a = args;
    const float cap = a->limit;
    for (size_t i = begin; i < end; i += STEP) {
        const size_t n = min_size(STEP, end - i);
        float twice[STEP];
        for (size_t k = 0; k < n; k++) {
            twice[k] = 2.0f / cap * a->gate[i + k];
            a->gate[i + k] = 2.0f * cap;
        }
        o->sigmoid_mul(a->gate + i, twice, n);
        for (size_t k = 0; k < n; k++) {
            a->gate[i + k] -= cap;
        }
    }
}

void nn_softcap(compute *c, float *x, float cap, size_t n)
{
    nn_run_rows(c, softcap_values, &(numbers_args){x, NULL, cap}, n, 1);
}

void nn_gelu_tanh(compute *c, float *x, size_t n)
{
    nn_run_rows(c, run_values, &(values_args){.one = c->ops->gelu_tanh, .y = x}, n, 1);
}

void nn_gelu_erf(compute *c, float *x, size_t n)
{
    nn_run_rows(c, run_values, &(values_args){.one = c->ops->gelu_erf, .y = x}, n, 1);
}

typedef struct norm_args {
    float *out;
    const float *x, *z, *w, *b;
    float eps;
    size_t D;
} norm_args;

static void rmsnorm_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    const norm_args *a = args;
    for (size_t t = begin; t < end; t++) {
        o->rmsnorm(a->out + t * a->D, a->x + t * a->D, a->w, a->eps, a->D);
    }
}

void nn_rmsnorm(compute *c, float *out, const float *x, const float *w, float eps, size_t T, size_t D)
{
    norm_args args = {.out = out, .x = x, .w = w, .eps = eps, .D = D};
    nn_run_rows(c, rmsnorm_rows, &args, T, D);
}

static void rmsnorm_gated_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    const norm_args *a = args;
    for (size_t r = begin; r < end; r++) {
        size_t at = r * a->D;
        o->rmsnorm_gated(a->out + at, a->x + at, a->z + at, a->w, a->eps, a->D);
    }
}

void nn_rmsnorm_gated(compute *c, float *out, const float *x, const float *z, const float *w, float eps,
                      size_t R, size_t d)
{
    norm_args args = {.out = out, .x = x, .z = z, .w = w, .eps = eps, .D = d};
    nn_run_rows(c, rmsnorm_gated_rows, &args, R, d);
}

static void layernorm_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    const norm_args *a = args;
    for (size_t t = begin; t < end; t++) {
        o->layernorm(a->out + t * a->D, a->x + t * a->D, a->w, a->b, a->eps, a->D);
    }
}

void nn_layernorm(compute *c, float *out, const float *x, const float *w, const float *b, float eps, size_t T,
                  size_t D)
{
    norm_args args = {.out = out, .x = x, .w = w, .b = b, .eps = eps, .D = D};
    nn_run_rows(c, layernorm_rows, &args, T, D);
}

/* x: heads at strides; other: per-row data, or a second tensor of heads. */
typedef struct heads_args {
    float *x;
    const float *a, *b;
    float eps;
    size_t H, n, row_stride, head_stride;
} heads_args;

static void rmsnorm_heads_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    const heads_args *a = args;
    for (size_t t = begin; t < end; t++) {
        for (size_t h = 0; h < a->H; h++) {
            float *x = a->x + t * a->row_stride + h * a->head_stride;
            o->rmsnorm(x, x, a->a, a->eps, a->n);
        }
    }
}

void nn_rmsnorm_heads(compute *c, float *x, const float *w, float eps, size_t T, size_t H, size_t hd,
                      size_t row_stride, size_t head_stride)
{
    heads_args args = {
        .x = x, .a = w, .eps = eps, .H = H, .n = hd, .row_stride = row_stride, .head_stride = head_stride};
    nn_run_rows(c, rmsnorm_heads_rows, &args, T, H * hd);
}

static void sigmoid_gate_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    const heads_args *a = args;
    for (size_t t = begin; t < end; t++) {
        for (size_t h = 0; h < a->H; h++) {
            o->sigmoid_mul(a->x + (t * a->H + h) * a->n, a->a + t * a->row_stride + h * a->head_stride, a->n);
        }
    }
}

void nn_sigmoid_gate(compute *c, float *x, const float *gate, size_t T, size_t H, size_t hd,
                     size_t row_stride, size_t head_stride)
{
    heads_args args = {
        .x = x, .a = gate, .H = H, .n = hd, .row_stride = row_stride, .head_stride = head_stride};
    nn_run_rows(c, sigmoid_gate_rows, &args, T, H * hd);
}

static void rope_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    const heads_args *a = args;
    for (size_t t = begin; t < end; t++) {
        for (size_t h = 0; h < a->H; h++) {
            o->rope(a->x + t * a->row_stride + h * a->head_stride, a->a + t * a->n, a->b + t * a->n, a->n);
        }
    }
}

void nn_rope(compute *c, float *x, const float *cos, const float *sin, size_t T, size_t H, size_t n_pairs,
             size_t row_stride, size_t head_stride)
{
    heads_args args = {.x = x,
                       .a = cos,
                       .b = sin,
                       .H = H,
                       .n = n_pairs,
                       .row_stride = row_stride,
                       .head_stride = head_stride};
    nn_run_rows(c, rope_rows, &args, T, H * n_pairs * 2);
}

/* x [n] times the Hadamard matrix of size n, a power of two. */
static void rotate_block(float *x, size_t n)
{
    for (size_t half = 1; half < n; half *= 2) {
        for (size_t i = 0; i < n; i += 2 * half) {
            for (size_t k = i; k < i + half; k++) {
                const float a = x[k], b = x[k + half];
                x[k] = a + b;
                x[k + half] = a - b;
            }
        }
    }
    const float unit = 1.0f / sqrtf((float)n);
    for (size_t i = 0; i < n; i++) {
        x[i] *= unit;
    }
}

static void rotate_rows(const ops *o, const void *args, size_t begin, size_t end)
{
    (void)o;
    const heads_args *a = args;
    const size_t block = a->n & (~a->n + 1); /* the lowest bit that is set */
    for (size_t t = begin; t < end; t++) {
        for (size_t h = 0; h < a->H; h++) {
            float *x = a->x + t * a->row_stride + h * a->head_stride;
            for (size_t i = 0; i < a->n; i += block) {
                rotate_block(x + i, block);
            }
        }
    }
}

void nn_rotate_heads(compute *c, float *x, size_t T, size_t H, size_t hd, size_t row_stride,
                     size_t head_stride)
{
    heads_args args = {.x = x, .H = H, .n = hd, .row_stride = row_stride, .head_stride = head_stride};
    nn_run_rows(c, rotate_rows, &args, T, H * hd * 2);
}
