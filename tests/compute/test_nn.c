/* nn.h against formulas written out in double, on every kernel table this processor has. */
#include "compute/nn.h"

#include "tests/check.h"
#include "tests/compute/levels.h"
#include "tests/compute/naive.h"
#include "tests/compute/rng.h"

static compute *ctx;

static void linear_case(size_t T, size_t N, size_t K, dtype type, bool with_bias)
{
    float *x = rng_floats(T * K, 1), *w = rng_floats(N * K, 1), *bias = rng_floats(N, 1);
    float *out = rng_floats(T * N, 1), *wide = rng_floats(N * K, 1);
    uint16_t *half = malloc(N * K * sizeof *half);
    for (size_t i = 0; i < N * K; i++) {
        half[i] = type == DTYPE_F16 ? (uint16_t)(rng_u32() & 0xbbff) : bf16_cut(w[i]);
    }
    tensor t = {type, 2, {N, K}, type == DTYPE_F32 ? (void *)w : (void *)half, N * K * dtype_bytes(type)};
    tensor_to_f32(wide, &t, 0, N * K);
    nn_linear(ctx, out, x, &t, with_bias ? bias : NULL, T);
    double *want = doubles(T * N);
    for (size_t r = 0; r < T; r++) {
        for (size_t n = 0; n < N; n++) {
            double sum = with_bias ? (double)bias[n] : 0;
            for (size_t k = 0; k < K; k++) {
                sum += (double)x[r * K + k] * (double)wide[n * K + k];
            }
            want[r * N + n] = sum;
        }
    }
    CHECK_NEAR(rel_error(out, want, T * N), 0, 2e-6);
    free(x), free(w), free(bias), free(out), free(wide), free(half), free(want);
}

static void test_linear(void)
{
    static const size_t sizes[][3] = {{1, 1, 1},     {1, 7, 76},      {2, 33, 24},
                                      {5, 129, 97},  {31, 64, 256},   {32, 17, 2100},
                                      {33, 130, 76}, {40, 200, 4100}, {530, 5, 16}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        for (dtype type = DTYPE_F32; type < DTYPE_OTHER; type++) {
            linear_case(sizes[i][0], sizes[i][1], sizes[i][2], type, i % 2 == 0);
        }
    }
}

static void test_patch_weight(void)
{
    enum { N = 3, K = 2 * 2 * 2 * 2 };
    float *w = rng_floats(N * K, 1), *x = rng_floats(K, 1), a[N], b[N];
    tensor flat = {DTYPE_F32, 2, {N, K}, w, N * K * 4}, conv = {DTYPE_F32, 5, {N, 2, 2, 2, 2}, w, N * K * 4};
    nn_linear(ctx, a, x, &flat, NULL, 1);
    nn_linear(ctx, b, x, &conv, NULL, 1);
    CHECK(memcmp(a, b, sizeof a) == 0);
    free(w), free(x);
}

static void test_embed(void)
{
    enum { V = 5, D = 19, T = 3 };
    float *table = rng_floats(V * D, 1), out[T * D];
    tensor t = {DTYPE_F32, 2, {V, D}, table, V * D * 4};
    const int32_t ids[T] = {4, 0, 4};
    nn_embed(ctx, out, &t, ids, T);
    for (size_t i = 0; i < T; i++) {
        CHECK(memcmp(out + i * D, table + (size_t)ids[i] * D, D * sizeof(float)) == 0);
    }
    free(table);
}

static void test_norms(void)
{
    enum { T = 7, D = 77 };
    const double eps = 1e-6;
    float *x = rng_floats(T * D, 3), *w = rng_floats(D, 1), *b = rng_floats(D, 1), *z = rng_floats(T * D, 4);
    float *rms = rng_floats(T * D, 1), *gated = rng_floats(T * D, 1), *layer = rng_floats(T * D, 1);
    double *want_rms = doubles(T * D), *want_gated = doubles(T * D), *want_layer = doubles(T * D);
    for (size_t t = 0; t < T; t++) {
        double squares = 0, mean = 0, var = 0;
        for (size_t i = 0; i < D; i++) {
            squares += (double)x[t * D + i] * (double)x[t * D + i];
            mean += (double)x[t * D + i] / D;
        }
        for (size_t i = 0; i < D; i++) {
            var += ((double)x[t * D + i] - mean) * ((double)x[t * D + i] - mean) / D;
        }
        for (size_t i = 0; i < D; i++) {
            size_t at = t * D + i;
            double v = (double)x[at], zz = (double)z[at];
            want_rms[at] = v / sqrt(squares / D + eps) * (double)w[i];
            want_gated[at] = want_rms[at] * zz / (1 + exp(-zz));
            want_layer[at] = (v - mean) / sqrt(var + eps) * (double)w[i] + (double)b[i];
        }
    }
    nn_rmsnorm(ctx, rms, x, w, 1e-6f, T, D);
    nn_rmsnorm_gated(ctx, gated, x, z, w, 1e-6f, T, D);
    nn_layernorm(ctx, layer, x, w, b, 1e-6f, T, D);
    CHECK_NEAR(rel_error(rms, want_rms, T * D), 0, 1e-6);
    CHECK_NEAR(rel_error(gated, want_gated, T * D), 0, 1e-6);
    CHECK_NEAR(rel_error(layer, want_layer, T * D), 0, 1e-6);

    /* Heads at strides: the norm of each head alone; what lies between heads is untouched. */
    enum { H = 2, hd = 24, HEAD = 30, ROW = 70 };
    float *heads = rng_floats(T * ROW, 1), *before = rng_floats(T * ROW, 1), one[hd];
    memcpy(before, heads, T * ROW * sizeof *heads);
    nn_rmsnorm_heads(ctx, heads, w, 1e-6f, T, H, hd, ROW, HEAD);
    for (size_t t = 0; t < T; t++) {
        for (size_t h = 0; h < H; h++) {
            size_t at = t * ROW + h * HEAD;
            nn_rmsnorm(ctx, one, before + at, w, 1e-6f, 1, hd);
            CHECK(memcmp(one, heads + at, sizeof one) == 0);
            CHECK(memcmp(heads + at + hd, before + at + hd, (HEAD - hd) * sizeof(float)) == 0);
        }
    }
    free(x), free(w), free(b), free(z), free(rms), free(gated), free(layer);
    free(want_rms), free(want_gated), free(want_layer), free(heads), free(before);
}

static void test_activations(void)
{
    enum { n = 40003 };
    float *x = rng_floats(n, 8), *y = rng_floats(n, 2), *a = malloc(n * sizeof *a);
    double *want = doubles(n);
    memcpy(a, x, n * sizeof *a);
    nn_silu_mul(ctx, a, y, n);
    for (size_t i = 0; i < n; i++) {
        want[i] = (double)x[i] / (1 + exp(-(double)x[i])) * (double)y[i];
    }
    CHECK_NEAR(rel_error(a, want, n), 0, 3e-7);
    memcpy(a, x, n * sizeof *a);
    nn_gelu_tanh(ctx, a, n);
    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i];
        want[i] = 0.5 * v * (1 + tanh(sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    }
    CHECK_NEAR(rel_error(a, want, n), 0, 3e-7);
    memcpy(a, x, n * sizeof *a);
    nn_gelu_mul(ctx, a, y, n);
    for (size_t i = 0; i < n; i++) {
        want[i] *= (double)y[i];
    }
    CHECK_NEAR(rel_error(a, want, n), 0, 3e-7);
    memcpy(a, x, n * sizeof *a);
    nn_swiglu_clamped(ctx, a, y, 1.5f, n);
    for (size_t i = 0; i < n; i++) {
        const double g = fmin((double)x[i], 1.5), u = fmax(-1.5, fmin((double)y[i], 1.5));
        want[i] = g / (1 + exp(-1.702 * g)) * (u + 1);
    }
    CHECK_NEAR(rel_error(a, want, n), 0, 3e-7);
    memcpy(a, x, n * sizeof *a);
    nn_softcap(ctx, a, 3.0f, n);
    for (size_t i = 0; i < n; i++) {
        want[i] = 3 * tanh((double)x[i] / 3);
    }
    CHECK_NEAR(rel_error(a, want, n), 0, 5e-7);
    memcpy(a, x, n * sizeof *a);
    nn_scale(ctx, a, 0.75f, n);
    for (size_t i = 0; i < n; i++) {
        CHECK(a[i] == 0.75f * x[i]);
    }
    memcpy(a, x, n * sizeof *a);
    nn_gelu_erf(ctx, a, n);
    for (size_t i = 0; i < n; i++) {
        want[i] = 0.5 * (double)x[i] * (1 + erf((double)x[i] / sqrt(2)));
    }
    CHECK_NEAR(rel_error(a, want, n), 0, 3e-7);
    memcpy(a, x, n * sizeof *a);
    nn_add(ctx, a, y, n);
    for (size_t i = 0; i < n; i++) {
        CHECK(a[i] == x[i] + y[i]);
    }
    free(x), free(y), free(a), free(want);
}

/* q | gate interleaved per head, as the query projection of gated attention gives them. */
static void test_gate_and_rope(void)
{
    enum { T = 5, H = 3, hd = 20, ROW = H * 2 * hd, P = 5 };
    float *qg = rng_floats(T * ROW, 2), *x = rng_floats(T * H * hd, 1), *was = malloc(T * ROW * sizeof *was);
    double *want = doubles(T * H * hd);
    for (size_t t = 0; t < T; t++) {
        for (size_t h = 0; h < H; h++) {
            for (size_t i = 0; i < hd; i++) {
                double g = (double)qg[t * ROW + h * 2 * hd + hd + i];
                want[(t * H + h) * hd + i] = (double)x[(t * H + h) * hd + i] / (1 + exp(-g));
            }
        }
    }
    nn_sigmoid_gate(ctx, x, qg + hd, T, H, hd, ROW, 2 * hd);
    CHECK_NEAR(rel_error(x, want, T * H * hd), 0, 3e-7);

    float cs[T * P], sn[T * P];
    for (size_t i = 0; i < T * P; i++) {
        float angle = rng_f32() * 3;
        cs[i] = cosf(angle);
        sn[i] = sinf(angle);
    }
    memcpy(was, qg, T * ROW * sizeof *was);
    nn_rope(ctx, qg, cs, sn, T, H, P, ROW, 2 * hd);
    for (size_t t = 0; t < T; t++) {
        for (size_t j = 0; j < ROW; j++) {
            size_t i = j % (2 * hd);
            double v = (double)was[t * ROW + j];
            if (i < P) {
                v = v * (double)cs[t * P + i] - (double)was[t * ROW + j + P] * (double)sn[t * P + i];
            } else if (i < 2 * P) {
                v = v * (double)cs[t * P + i - P] + (double)was[t * ROW + j - P] * (double)sn[t * P + i - P];
            }
            CHECK_NEAR(qg[t * ROW + j], v, 1e-6);
        }
    }
    free(qg), free(x), free(was), free(want);
}

static void test_conv(void)
{
    enum { T = 9, C = 70, STRIDE = 75 };
    float *u = rng_floats(T * STRIDE, 2), *w = rng_floats(C * 4, 1), *tail = rng_floats(3 * C, 2);
    float *first = malloc(3 * C * sizeof *first), *out = rng_floats(T * C, 1), *split = rng_floats(T * C, 1);
    float *bias = rng_floats(C, 1);
    double *want = doubles(T * C);
    memcpy(first, tail, 3 * C * sizeof *first);
    for (size_t t = 0; t < T; t++) {
        for (size_t c = 0; c < C; c++) {
            double y = (double)bias[c];
            for (size_t j = 0; j < 4; j++) {
                float v = t + j < 3 ? tail[(t + j) * C + c] : u[(t + j - 3) * STRIDE + c];
                y += (double)w[c * 4 + j] * (double)v;
            }
            want[t * C + c] = y / (1 + exp(-y));
        }
    }
    nn_conv_silu(ctx, out, tail, u, w, bias, T, C, STRIDE);
    CHECK_NEAR(rel_error(out, want, T * C), 0, 1e-6);
    for (size_t i = 0; i < 3; i++) {
        CHECK(memcmp(tail + i * C, u + (T - 3 + i) * STRIDE, C * sizeof(float)) == 0);
    }
    for (size_t t = 0; t < T; t++) { /* row by row: the same bits, the same tail */
        nn_conv_silu(ctx, split + t * C, first, u + t * STRIDE, w, bias, 1, C, STRIDE);
    }
    CHECK(memcmp(split, out, T * C * sizeof *out) == 0);
    CHECK(memcmp(first, tail, 3 * C * sizeof *tail) == 0);
    free(u), free(w), free(tail), free(first), free(out), free(split), free(want), free(bias);
}

static void test_gates(void)
{
    enum { T = 4, H = 3 };
    float b[T * H], a[T * H], beta[T * H], g[T * H], A_log[H], dt[H];
    rng_fill(b, T * H, 5), rng_fill(a, T * H, 30), rng_fill(A_log, H, 2), rng_fill(dt, H, 1);
    nn_delta_gates(ctx, beta, g, b, a, A_log, dt, T, H);
    for (size_t i = 0; i < T * H; i++) {
        double x = (double)a[i] + (double)dt[i % H];
        double want = -exp((double)A_log[i % H]) * log1p(exp(x));
        CHECK_NEAR(beta[i], 1 / (1 + exp(-(double)b[i])), 1e-6);
        CHECK_NEAR(g[i], want, 1e-6 * fabs(want) + 1e-12);
    }
}

/* The operator as written in the design, in double. state is moved on. */
static void delta_naive(double *out, double *state, const float *conv, const float *beta, const float *g,
                        const delta_shape *s, size_t T)
{
    size_t width = 2 * s->n_k * s->dk + s->n_v * s->dv;
    double *q = doubles(s->dk), *k = doubles(s->dk);
    for (size_t t = 0; t < T; t++) {
        for (size_t h = 0; h < s->n_v; h++) {
            const float *rq = conv + t * width + (s->tiled ? h % s->n_k : h / (s->n_v / s->n_k)) * s->dk,
                        *rk = rq + s->n_k * s->dk;
            const float *v = conv + t * width + 2 * s->n_k * s->dk + h * s->dv;
            double *S = state + h * s->dk * s->dv, qq = 1e-6, kk = 1e-6;
            for (size_t i = 0; i < s->dk; i++) {
                qq += (double)rq[i] * (double)rq[i];
                kk += (double)rk[i] * (double)rk[i];
            }
            for (size_t i = 0; i < s->dk; i++) {
                q[i] = (double)rq[i] / sqrt(qq) / sqrt((double)s->dk);
                k[i] = (double)rk[i] / sqrt(kk);
            }
            for (size_t j = 0; j < s->dv; j++) {
                double m = 0, o = 0;
                for (size_t i = 0; i < s->dk; i++) {
                    S[i * s->dv + j] *= exp((double)g[t * s->n_v + h]);
                    m += S[i * s->dv + j] * k[i];
                }
                double d = (double)beta[t * s->n_v + h] * ((double)v[j] - m);
                for (size_t i = 0; i < s->dk; i++) {
                    S[i * s->dv + j] += k[i] * d;
                    o += S[i * s->dv + j] * q[i];
                }
                out[(t * s->n_v + h) * s->dv + j] = o;
            }
        }
    }
    free(q), free(k);
}

static void delta_case(const delta_shape *s, size_t T, size_t split)
{
    size_t width = 2 * s->n_k * s->dk + s->n_v * s->dv, n_state = s->n_v * s->dk * s->dv,
           n_out = T * s->n_v * s->dv;
    float *u = rng_floats(T * width, 2), *taps = rng_floats(4 * width, 1),
          *conv = malloc(T * width * sizeof *conv);
    float *tail = rng_floats(3 * width, 2), *tail_end = malloc(3 * width * sizeof *tail);
    float *beta = rng_floats(T * s->n_v, 1), *g = rng_floats(T * s->n_v, 1);
    float *start = rng_floats(n_state, 1), *state = malloc(n_state * sizeof *state);
    float *states = rng_floats(T * n_state, 1), *out = rng_floats(n_out, 1), **at = calloc(T, sizeof *at);
    for (size_t t = 0; t < T; t++) {
        at[t] = t + 1 < T ? states + t * n_state : state;
    }
    for (size_t i = 0; i < T * s->n_v; i++) {
        beta[i] = fabsf(beta[i]);
        g[i] = i % 7 == 0 ? -30 * fabsf(g[i]) : -0.1f * fabsf(g[i]); /* now and then all is forgotten */
    }
    double *want_state = doubles(n_state), *want = doubles(n_out);
    for (size_t i = 0; i < n_state; i++) {
        want_state[i] = (double)start[i];
    }
    memcpy(tail_end, tail, 3 * width * sizeof *tail);
    nn_conv_silu(ctx, conv, tail_end, u, taps, NULL, T, width, width);
    delta_naive(want, want_state, conv, beta, g, s, T);

    memcpy(state, start, n_state * sizeof *state);
    nn_delta_recurrent(ctx, out, state, at, conv, beta, g, s, T);
    CHECK_NEAR(rel_error(out, want, n_out), 0, 1e-5);
    CHECK_NEAR(rel_error(state, want_state, n_state), 0, 1e-5);
    if (T > 1) { /* the state kept after the last row but one is where one row fewer ends */
        float *shorter = malloc(n_state * sizeof *shorter);
        memcpy(shorter, start, n_state * sizeof *shorter);
        nn_delta_recurrent(ctx, out, shorter, NULL, conv, beta, g, s, T - 1);
        CHECK(memcmp(states + (T - 2) * n_state, shorter, n_state * sizeof *shorter) == 0);
        free(shorter);
    }

    size_t mid = split < T ? split : T;
    memcpy(state, start, n_state * sizeof *state);
    nn_delta_chunked(ctx, out, state, &(delta_source){u, taps, tail}, beta, g, s, mid);
    nn_delta_chunked(ctx, out + mid * s->n_v * s->dv, state, &(delta_source){u + mid * width, taps, tail},
                     beta + mid * s->n_v, g + mid * s->n_v, s, T - mid);
    CHECK(memcmp(tail, tail_end, 3 * width * sizeof *tail) == 0);
    CHECK_NEAR(rel_error(out, want, n_out), 0, 1e-5);
    CHECK_NEAR(rel_error(state, want_state, n_state), 0, 1e-5);
    free(u), free(taps), free(conv), free(tail), free(tail_end);
    free(beta), free(g), free(start), free(state), free(states), free(out);
    free(want), free(want_state), free(at);
}

/* The best mean of each place over several calls and rows, windows at the ends among them. */
static void test_softmax_peaks(void)
{
    enum { R = 3, N = 37, CALLS = 2 };
    static const size_t windows[] = {1, 5, 73, 101}; /* the last two are wider than all */
    for (size_t w = 0; w < ARRAY_LEN(windows); w++) {
        float *best = rng_floats(R * N, 1);
        double *want = doubles(R * N);
        memset(best, 0, R * N * sizeof *best);
        for (size_t call = 0; call < CALLS; call++) {
            float *scores = rng_floats(R * N, 4);
            const double half = (double)(windows[w] / 2);
            for (size_t r = 0; r < R; r++) {
                double sum = 0;
                for (size_t i = 0; i < N; i++) {
                    sum += exp((double)scores[r * N + i]);
                }
                for (size_t i = 0; i < N; i++) {
                    double seen = 0;
                    for (size_t k = 0; k < N; k++) {
                        seen += fabs((double)k - (double)i) <= half ? exp((double)scores[r * N + k]) : 0;
                    }
                    const double mean = seen / sum / (double)windows[w];
                    want[r * N + i] = mean > want[r * N + i] ? mean : want[r * N + i];
                }
            }
            nn_softmax_peaks(ctx, best, scores, N, windows[w], R);
            free(scores);
        }
        CHECK_NEAR(rel_error(best, want, R * N), 0, 1e-5);
        free(best), free(want);
    }
}

static void test_delta(void)
{
    static const size_t lengths[] = {1, 3, 63, 64, 65, 200};
    const delta_shape shapes[] = {
        {2, 4, 24, 40, false}, {1, 1, 128, 128, false}, {2, 2, 17, 70, false}, {2, 6, 16, 24, true}};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        delta_case(&shapes[0], lengths[i], 200);
        delta_case(&shapes[1], lengths[i], 1 + lengths[i] / 3);
        delta_case(&shapes[2], lengths[i], 64);
    }
}

/* Against the matrix itself, a block of the largest power of two; a second rotation takes the first
 * one back, and what lies between the heads stays. */
static void test_rotation(void)
{
    static const struct {
        size_t hd, block;
    } sizes[] = {{1, 1}, {24, 8}, {64, 64}, {96, 32}, {128, 128}, {256, 256}};
    enum { T = 3, H = 2, HEAD = 260, ROW = H * HEAD + 1 };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        const size_t hd = sizes[i].hd, block = sizes[i].block;
        float *x = rng_floats(T * ROW, 1), *before = malloc(T * ROW * sizeof *before);
        memcpy(before, x, T * ROW * sizeof *x);
        nn_rotate_heads(ctx, x, T, H, hd, ROW, HEAD);
        for (size_t n = 0; n < T * ROW; n++) {
            const size_t at = n % ROW % HEAD, first = n - at % block;
            double want = 0;
            for (size_t k = 0; k < block; k++) {
                const double term = (double)before[(first + k) % (T * ROW)];
                want += __builtin_parityll(at % block & k) ? -term : term;
            }
            const bool inside = at < hd && n % ROW < H * HEAD;
            CHECK_NEAR(x[n], inside ? want / sqrt((double)block) : (double)before[n], inside ? 2e-6 : 0);
        }
        nn_rotate_heads(ctx, x, T, H, hd, ROW, HEAD);
        for (size_t n = 0; n < T * ROW; n++) {
            CHECK_NEAR(x[n], before[n], 2e-6);
        }
        free(x), free(before);
    }
}

int main(void)
{
    for (const test_level *l = test_levels(); l->name; l++) {
        ctx = test_context(l, (compute_options){.n_threads = 2});
        printf("%s\n", compute_describe(ctx));
        test_linear();
        test_patch_weight();
        test_embed();
        test_norms();
        test_activations();
        test_gate_and_rope();
        test_rotation();
        test_conv();
        test_gates();
        test_softmax_peaks();
        test_delta();
        compute_destroy(ctx);
    }
    CHECK_DONE();
}
