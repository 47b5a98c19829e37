/* Mamba-2 of nn.h against formulas written out in double, on every kernel table this processor has;
 * the same bits on one thread and on several, and row by row. */
#include "compute/nn.h"

#include "compute/kernels/cpu.h"
#include "tests/check.h"
#include "tests/compute/naive.h"
#include "tests/compute/rng.h"

static compute *ctx, *ctx_one; /* three threads, one */

/* The recurrence of nn.h. state is moved on. */
static void naive(double *out, double *state, const float *conv, const float *dt, const float *g,
                  const float *D, const mamba_shape *s, size_t T)
{
    const size_t inner = s->n_heads * s->dv, width = inner + 2 * s->n_groups * s->dk;
    for (size_t t = 0; t < T; t++) {
        for (size_t h = 0; h < s->n_heads; h++) {
            const float *x = conv + t * width + h * s->dv;
            const float *b = conv + t * width + inner + h / (s->n_heads / s->n_groups) * s->dk;
            const float *c = b + s->n_groups * s->dk;
            double *S = state + h * s->dk * s->dv;
            const size_t at = t * s->n_heads + h;
            for (size_t j = 0; j < s->dv; j++) {
                double y = (double)D[h] * (double)x[j];
                for (size_t i = 0; i < s->dk; i++) {
                    double *v = S + i * s->dv + j;
                    *v = exp((double)g[at]) * *v + (double)dt[at] * (double)b[i] * (double)x[j];
                    y += (double)c[i] * *v;
                }
                out[at * s->dv + j] = y;
            }
        }
    }
}

static void check_case(const mamba_shape *s, size_t T, size_t split)
{
    const size_t width = s->n_heads * s->dv + 2 * s->n_groups * s->dk, n_state = s->n_heads * s->dk * s->dv,
                 n_out = T * s->n_heads * s->dv, n_bytes = n_state * sizeof(float);
    float *conv = rng_floats(T * width, 2), *dt = rng_floats(T * s->n_heads, 1),
          *g = rng_floats(T * s->n_heads, 1), *D = rng_floats(s->n_heads, 1), *start = rng_floats(n_state, 1);
    float *state = malloc(n_bytes), *one = malloc(n_bytes), *states = rng_floats(T * n_state, 1),
          *out = rng_floats(n_out, 1), *row = rng_floats(n_out, 1), **at = calloc(T, sizeof *at);
    double *want = doubles(n_out), *want_state = doubles(n_state);
    for (size_t t = 0; t < T; t++) {
        at[t] = t + 1 < T ? states + t * n_state : state;
    }
    for (size_t i = 0; i < T * s->n_heads; i++) {
        dt[i] = fabsf(dt[i]);
        g[i] = i % 7 == 0 ? -30 * fabsf(g[i]) : -0.1f * fabsf(g[i]); /* now and then all is forgotten */
    }
    for (size_t i = 0; i < n_state; i++) {
        want_state[i] = (double)start[i];
    }
    naive(want, want_state, conv, dt, g, D, s, T);

    memcpy(state, start, n_bytes);
    nn_mamba_recurrent(ctx, out, state, at, conv, dt, g, D, s, T);
    CHECK_NEAR(rel_error(out, want, n_out), 0, 1e-5);
    CHECK_NEAR(rel_error(state, want_state, n_state), 0, 1e-5);
    memcpy(one, start, n_bytes);
    for (size_t t = 0; t < T; t++) { /* row by row on one thread, and the states that were kept */
        nn_mamba_recurrent(ctx_one, row + t * s->n_heads * s->dv, one, NULL, conv + t * width,
                           dt + t * s->n_heads, g + t * s->n_heads, D, s, 1);
        CHECK(memcmp(at[t], one, n_bytes) == 0);
    }
    CHECK(memcmp(row, out, n_out * sizeof *out) == 0);

    const size_t mid = split < T ? split : T;
    memcpy(state, start, n_bytes);
    nn_mamba_chunked(ctx, out, state, conv, dt, g, D, s, mid);
    nn_mamba_chunked(ctx, out + mid * s->n_heads * s->dv, state, conv + mid * width, dt + mid * s->n_heads,
                     g + mid * s->n_heads, D, s, T - mid);
    CHECK_NEAR(rel_error(out, want, n_out), 0, 1e-5);
    CHECK_NEAR(rel_error(state, want_state, n_state), 0, 1e-5);
    if (mid == T || mid % 64 == 0) { /* whole, and on one thread: the same bits */
        memcpy(one, start, n_bytes);
        nn_mamba_chunked(ctx_one, row, one, conv, dt, g, D, s, T);
        CHECK(memcmp(row, out, n_out * sizeof *out) == 0 && memcmp(one, state, n_bytes) == 0);
    }
    free(conv), free(dt), free(g), free(D), free(start), free(state), free(one), free(states);
    free(out), free(row), free(at), free(want), free(want_state);
}

static void test_operator(void)
{
    static const size_t lengths[] = {1, 3, 63, 64, 65, 200};
    const mamba_shape shapes[] = {{2, 4, 24, 40}, {1, 2, 128, 64}, {3, 3, 17, 70}};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        check_case(&shapes[0], lengths[i], 200);
        check_case(&shapes[1], lengths[i], 1 + lengths[i] / 3);
        check_case(&shapes[2], lengths[i], 64);
    }
}

static void test_gates(void)
{
    enum { T = 5, H = 3, STRIDE = 7 };
    float x[T * STRIDE], dt[T * H], g[T * H], A_log[H], bias[H];
    rng_fill(x, T * STRIDE, 30), rng_fill(A_log, H, 2), rng_fill(bias, H, 1);
    nn_mamba_gates(ctx, dt, g, x, STRIDE, A_log, bias, 0.5f, 20.0f, T, H);
    for (size_t i = 0; i < T * H; i++) {
        const double v = (double)x[i / H * STRIDE + i % H] + (double)bias[i % H];
        const double want = fmin(fmax(log1p(exp(v)), 0.5), 20.0);
        CHECK_NEAR(dt[i], want, 1e-6 * want);
        CHECK_NEAR(g[i], -exp((double)A_log[i % H]) * want, 1e-6 * exp((double)A_log[i % H]) * want);
    }
}

static void test_norm(void)
{
    enum { T = 4, G = 3, D = 20, STRIDE = G * D + 9 };
    float *x = rng_floats(T * G * D, 2), *z = rng_floats(T * STRIDE, 3), *w = rng_floats(G * D, 1);
    double *want = doubles(T * G * D);
    for (size_t t = 0; t < T; t++) {
        for (size_t k = 0; k < G; k++) {
            double sum = 0;
            for (size_t i = k * D; i < (k + 1) * D; i++) {
                const double gate = (double)z[t * STRIDE + i];
                want[t * G * D + i] = (double)x[t * G * D + i] * gate / (1 + exp(-gate));
                sum += want[t * G * D + i] * want[t * G * D + i];
            }
            for (size_t i = k * D; i < (k + 1) * D; i++) {
                want[t * G * D + i] *= (double)w[i] / sqrt(sum / D + 1e-5);
            }
        }
    }
    nn_rmsnorm_groups(ctx, x, x, z, STRIDE, w, 1e-5f, T, G, D);
    CHECK_NEAR(rel_error(x, want, T * G * D), 0, 1e-5);
    free(x), free(z), free(w), free(want);
}

int main(void)
{
    static const unsigned masks[] = {~0u, CPU_AVX2, 0};
    for (size_t i = 0; i < ARRAY_LEN(masks); i++) {
        err_detail d = {0};
        CHECK_OK(compute_create(&ctx, &(compute_options){.n_threads = 3, .cpu_mask = masks[i]}, &d), d);
        CHECK_OK(compute_create(&ctx_one, &(compute_options){.n_threads = 1, .cpu_mask = masks[i]}, &d), d);
        test_operator();
        test_gates();
        test_norm();
        compute_destroy(ctx);
        compute_destroy(ctx_one);
    }
    CHECK_DONE();
}
