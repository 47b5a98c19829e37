/* nn_linear_each, nn_linear_many_each: many unlike products in one call give, bit for bit, what
 * nn_linear and nn_linear_many give each, on every kernel table and with any number of threads; so do the
 * sequences of nn_conv_silu_each and nn_delta_recurrent_each. */
#include "base/compiler.h"
#include "compute/nn.h"
#include "compute/formats/quant.h"
#include "tests/check.h"
#include "tests/compute/levels.h"
#include "tests/compute/rng.h"

enum { ITEMS = 150, MAX_N = 90, MAX_K = 200, KINDS = 5 };

static const dtype TYPES[KINDS] = {DTYPE_F32, DTYPE_BF16, DTYPE_Q8, DTYPE_Q4, DTYPE_Q5};

/* A matrix [N, K] of that type; its data is the caller's to free. */
static tensor matrix(dtype type, size_t N, size_t K)
{
    tensor t = {type, 2, {N, K}, NULL, 0};
    float *numbers = rng_floats(N * K, 1);
    t.bytes = N * tensor_row_bytes(&t);
    unsigned char *data = malloc(t.bytes);
    CHECK(data != NULL);
    for (size_t n = 0; data && n < N; n++) {
        unsigned char *row = data + n * tensor_row_bytes(&t);
        if (type == DTYPE_F32) {
            memcpy(row, numbers + n * K, K * sizeof *numbers);
        } else if (type == DTYPE_BF16) {
            for (size_t k = 0; k < K; k++) {
                const uint16_t bits = bf16_cut(numbers[n * K + k]);
                memcpy(row + 2 * k, &bits, sizeof bits);
            }
        } else {
            quant_weights(row, type, numbers + n * K, K);
        }
    }
    free(numbers);
    t.data = data;
    return t;
}

static void test_with(size_t n_threads, const test_level *level, const linear_item *items,
                      float *const *expected)
{
    compute *c = test_context(level, (compute_options){.n_threads = n_threads});
    for (size_t i = 0; i < ITEMS; i++) {
        const size_t n = items[i].T * items[i].w->dims[0];
        nn_linear(c, expected[i], items[i].x, items[i].w, NULL, items[i].T);
        memset(items[i].out, 0xff, n * sizeof *items[i].out);
    }
    nn_linear_each(c, items, ITEMS);
    nn_linear_each(c, items, 0);
    for (size_t i = 0; i < ITEMS; i++) {
        CHECK(memcmp(items[i].out, expected[i], items[i].T * items[i].w->dims[0] * sizeof(float)) == 0);
    }
    compute_destroy(c);
}

/* The same weights in pairs on rows of a prompt: one panel of them, or more. */
static void test_many_with(size_t n_threads, const test_level *level, const tensor *weights, const float *x)
{
    enum { MAX_T = 200, PARTS = 2 };
    static linear_part parts[ITEMS][PARTS];
    static linear_many items[ITEMS];
    compute *c = test_context(level, (compute_options){.n_threads = n_threads, .fast = true});
    float *out = malloc(ITEMS * MAX_T * MAX_N * sizeof *out),
          *expected = malloc(PARTS * MAX_T * MAX_N * sizeof *out);
    CHECK(out != NULL && expected != NULL);
    size_t n = 0, used = 0;
    for (size_t i = 0; out && i < ITEMS; n++) {
        const bool alike = i + 1 < ITEMS && weights[i].dims[1] == weights[i + 1].dims[1];
        items[n] = (linear_many){parts[n], alike ? PARTS : 1, x, 1 + i * 13 % MAX_T};
        for (size_t k = 0; k < items[n].n_parts; k++, i++) {
            parts[n][k] = (linear_part){out + used, &weights[i], NULL};
            used += items[n].T * weights[i].dims[0];
        }
    }
    CHECK(used <= (size_t)ITEMS * MAX_T * MAX_N && n < ITEMS);
    nn_linear_many_each(c, items, n);
    nn_linear_many_each(c, items, 0);
    for (size_t i = 0; expected && i < n; i++) {
        linear_part alone[PARTS];
        for (size_t k = 0; k < items[i].n_parts; k++) {
            alone[k] = (linear_part){expected + k * MAX_T * MAX_N, parts[i][k].w, NULL};
        }
        nn_linear_many(c, alone, items[i].n_parts, x, items[i].T);
        for (size_t k = 0; k < items[i].n_parts; k++) {
            const size_t bytes = items[i].T * alone[k].w->dims[0] * sizeof(float);
            CHECK(memcmp(parts[i][k].out, alone[k].out, bytes) == 0);
        }
    }
    free(out), free(expected);
    compute_destroy(c);
}

/* Sequences of one to three rows, some of which keep their states, against each alone. */
static void test_sequences_with(size_t n_threads, const test_level *level)
{
    enum {
        SEQS = 5,
        MAX_T = 3,
        NK = 2,
        NV = 6,
        DK = 16,
        DV = 150,
        C = 2 * NK * DK + NV * DV,
        STATE = NV * DK * DV
    };
    const delta_shape s = {NK, NV, DK, DV, false};
    compute *c = test_context(level, (compute_options){.n_threads = n_threads});
    float *w = rng_floats(C * 4, 1), *u = rng_floats(SEQS * MAX_T * C, 1),
          *beta = rng_floats(SEQS * MAX_T * NV, 1);
    float *begin = rng_floats(SEQS * STATE, 1), *tails = rng_floats(SEQS * 3 * C, 1);
    float *conv[2], *out[2], *state[2], *kept[2], *tail[2];
    for (size_t k = 0; k < 2; k++) {
        conv[k] = rng_floats(SEQS * MAX_T * C, 1), out[k] = rng_floats(SEQS * MAX_T * NV * DV, 1);
        state[k] = malloc(SEQS * STATE * sizeof(float)),
        kept[k] = calloc(SEQS * MAX_T * STATE, sizeof(float));
        tail[k] = malloc(SEQS * 3 * C * sizeof(float));
        memcpy(state[k], begin, SEQS * STATE * sizeof(float));
        memcpy(tail[k], tails, SEQS * 3 * C * sizeof(float));
        memset(conv[k], 0, SEQS * MAX_T * C * sizeof(float));
        memset(out[k], 0, SEQS * MAX_T * NV * DV * sizeof(float));
        conv_run convs[SEQS];
        delta_run deltas[SEQS];
        float *states[SEQS][MAX_T];
        for (size_t i = 0; i < SEQS; i++) {
            const size_t T = 1 + i % MAX_T;
            for (size_t t = 0; t < MAX_T; t++) {
                states[i][t] = kept[k] + (i * MAX_T + t) * STATE;
            }
            convs[i] = (conv_run){conv[k] + i * MAX_T * C, tail[k] + i * 3 * C, u + i * MAX_T * C, T};
            deltas[i] = (delta_run){.out = out[k] + i * MAX_T * NV * DV,
                                    .state = state[k] + i * STATE,
                                    .states = i % 2 ? states[i] : NULL,
                                    .conv = convs[i].out,
                                    .beta = beta + i * MAX_T * NV,
                                    .g = beta + i * MAX_T * NV,
                                    .T = T};
        }
        if (k == 0) {
            nn_conv_silu_each(c, convs, SEQS, w, NULL, C, C);
            nn_delta_recurrent_each(c, deltas, SEQS, &s);
        }
        for (size_t i = 0; k == 1 && i < SEQS; i++) {
            const delta_run *r = &deltas[i];
            nn_conv_silu(c, convs[i].out, convs[i].tail, convs[i].u, w, NULL, r->T, C, C);
            nn_delta_recurrent(c, r->out, r->state, r->states, r->conv, r->beta, r->g, &s, r->T);
        }
    }
    CHECK(memcmp(conv[0], conv[1], SEQS * MAX_T * C * sizeof(float)) == 0);
    CHECK(memcmp(out[0], out[1], SEQS * MAX_T * NV * DV * sizeof(float)) == 0);
    CHECK(memcmp(state[0], state[1], SEQS * STATE * sizeof(float)) == 0);
    CHECK(memcmp(kept[0], kept[1], SEQS * MAX_T * STATE * sizeof(float)) == 0);
    CHECK(memcmp(tail[0], tail[1], SEQS * 3 * C * sizeof(float)) == 0);
    for (size_t k = 0; k < 2; k++) {
        free(conv[k]), free(out[k]), free(state[k]), free(kept[k]), free(tail[k]);
    }
    free(w), free(u), free(beta), free(begin), free(tails);
    compute_destroy(c);
}

int main(void)
{
    static tensor weights[ITEMS];
    static linear_item items[ITEMS];
    static float *expected[ITEMS];
    float *x = rng_floats(NN_ROWS_EXACT * MAX_K, 2), *many = rng_floats(200 * MAX_K, 2);
    for (size_t i = 0; i < ITEMS; i++) {
        const size_t K = 8 + rng_u32() % (MAX_K - 8), N = 1 + rng_u32() % MAX_N;
        const bool like_before = i % 3 == 2; /* the same rows again: of the same type, or another */
        weights[i] = matrix(TYPES[like_before && i % 2 ? (i - 1) % KINDS : i % KINDS], N,
                            like_before ? weights[i - 1].dims[1] : K);
        const size_t T = like_before ? items[i - 1].T : 1 + rng_u32() % NN_ROWS_EXACT;
        const float *rows = like_before ? items[i - 1].x : x + rng_u32() % 50;
        const size_t room = NN_ROWS_EXACT * MAX_K - 50;
        items[i] = (linear_item){malloc(NN_ROWS_EXACT * MAX_N * sizeof(float)), rows, &weights[i],
                                 T * weights[i].dims[1] <= room ? T : 1};
        expected[i] = malloc(NN_ROWS_EXACT * MAX_N * sizeof(float));
    }
    for (const test_level *l = test_contexts(); l->name; l++) {
        test_with(1, l, items, expected);
        test_with(3, l, items, expected);
        test_many_with(1, l, weights, many);
        test_many_with(3, l, weights, many);
        test_sequences_with(1, l);
        test_sequences_with(3, l);
    }
    free(many);
    for (size_t i = 0; i < ITEMS; i++) {
        free((void *)(uintptr_t)weights[i].data);
        free(items[i].out);
        free(expected[i]);
    }
    free(x);
    CHECK_DONE();
}
