/* The two promises of nn.h, bit for bit, on every kernel table: results do not depend on the number
 * of threads, and with at most NN_ROWS_EXACT rows a row's result does not depend on the other rows.
 */
#include "base/compiler.h"
#include "compute/nn.h"
#include "compute/formats/quant.h"
#include "tests/check.h"
#include "tests/compute/levels.h"
#include "tests/compute/rng.h"

enum {
    MAX_T = 300,
    D = 100,
    N = 333,
    H = 6,
    KV = 2,
    HD = 24,
    PAGE = 64,
    FIRST = 150, /* tokens in the cache before the rows */
    N_PAGES = (FIRST + MAX_T + PAGE - 1) / PAGE,
    NK = 2,
    NV = 4,
    DK = 24,
    DV = 70,
    C = 2 * NK * DK + NV * DV,
    STATE = NV * DK * DV,
};

typedef struct inputs {
    float *x, *w, *b, *qkv, *conv, *beta, *g, *state, *tail, *kernel, *angles;
    void *pages[N_PAGES];
    uint16_t *w16;
    tensor w8, w4;
} inputs;

/* Everything an operation writes, row by row where rows exist. */
typedef struct outputs {
    float *linear, *linear16, *many, *many16, *q8, *q4, *many8, *many4, *rms, *layer, *silu, *heads,
        *attention, *segments, *conv, *delta, *gates;
    float *states, *state, *chunked, *chunked_state, *chunked_tail, *tail;
} outputs;

static inputs in;

static tensor quantized(dtype type)
{
    size_t bytes = N * quant_row_bytes(type, D);
    unsigned char *rows = malloc(bytes);
    for (size_t n = 0; n < N; n++) {
        quant_weights(rows + n * quant_row_bytes(type, D), type, in.w + n * D, D);
    }
    return (tensor){type, 2, {N, D}, rows, bytes};
}

static void make_inputs(void)
{
    in = (inputs){
        .x = rng_floats(MAX_T * D, 2),
        .w = rng_floats(N * D, 1),
        .b = rng_floats(N, 1),
        .qkv = rng_floats(MAX_T * 3 * H * HD, 3),
        .conv = rng_floats(MAX_T * C, 2),
        .beta = rng_floats(MAX_T * NV, 1),
        .g = rng_floats(MAX_T * NV, 0.2f),
        .state = rng_floats(STATE, 1),
        .tail = rng_floats(3 * C, 1),
        .kernel = rng_floats(4 * C, 1),
        .angles = rng_floats(MAX_T * 8, 1),
        .w16 = malloc(N * D * sizeof *in.w16),
    };
    for (size_t i = 0; i < MAX_T * NV; i++) {
        in.beta[i] = fabsf(in.beta[i]);
        in.g[i] = -fabsf(in.g[i]);
    }
    for (size_t i = 0; i < N * D; i++) {
        in.w16[i] = bf16_cut(in.w[i]);
    }
    in.w8 = quantized(DTYPE_Q8);
    in.w4 = quantized(DTYPE_Q4);
    for (size_t p = 0; p < N_PAGES; p++) {
        in.pages[p] = rng_floats(2 * PAGE * KV * HD, 2);
    }
}

/* Floats that are other ones each time, so that what is not written differs. */
static float *unwritten(size_t n)
{
    static unsigned char fill;
    return memset(malloc(n * sizeof(float)), ++fill, n * sizeof(float));
}

static void make_outputs(outputs *o)
{
    *o = (outputs){
        .linear = unwritten(MAX_T * N),
        .linear16 = unwritten(MAX_T * N),
        .many = unwritten(MAX_T * N),
        .q8 = unwritten(MAX_T * N),
        .q4 = unwritten(MAX_T * N),
        .many8 = unwritten(MAX_T * N),
        .many4 = unwritten(MAX_T * N),
        .many16 = unwritten(MAX_T * N),
        .rms = unwritten(MAX_T * D),
        .layer = unwritten(MAX_T * D),
        .silu = unwritten(MAX_T * D),
        .heads = unwritten(MAX_T * 3 * H * HD),
        .attention = unwritten(MAX_T * H * HD),
        .segments = unwritten(MAX_T * H * HD),
        .conv = unwritten(MAX_T * C),
        .delta = unwritten(MAX_T * NV * DV),
        .gates = unwritten(MAX_T * NV * 2),
        .states = unwritten(32 * STATE),
        .state = unwritten(STATE),
        .chunked = unwritten(MAX_T * NV * DV),
        .chunked_state = unwritten(STATE),
        .chunked_tail = unwritten(3 * C),
        .tail = unwritten(3 * C),
    };
    memcpy(o->state, in.state, STATE * sizeof(float));
    memcpy(o->chunked_state, in.state, STATE * sizeof(float));
    memcpy(o->chunked_tail, in.tail, 3 * C * sizeof(float));
    memcpy(o->tail, in.tail, 3 * C * sizeof(float));
}

static void free_outputs(outputs *o)
{
    free(o->many), free(o->many16), free(o->q8), free(o->q4), free(o->many8), free(o->many4), free(o->linear),
        free(o->linear16), free(o->rms), free(o->layer), free(o->silu), free(o->heads);
    free(o->attention), free(o->segments), free(o->conv), free(o->delta), free(o->gates), free(o->states);
    free(o->state), free(o->chunked), free(o->chunked_state), free(o->chunked_tail), free(o->tail);
}

/* Row-wise operations on rows t0 .. t0+T-1; sequential ones go on from the states in o. */
static void run_rows(compute *c, outputs *o, size_t t0, size_t T)
{
    tensor w = {DTYPE_F32, 2, {N, D}, in.w, N * D * 4}, w16 = {DTYPE_BF16, 2, {N, D}, in.w16, N * D * 2};
    kv_pages kv = {in.pages, PAGE, KV_F32};
    delta_shape s = {NK, NV, DK, DV, false};
    const float *x = in.x + t0 * D, *qkv = in.qkv + t0 * 3 * H * HD;
    float *heads = o->heads + t0 * 3 * H * HD, *states[32];
    for (size_t t = 0; t < 32; t++) {
        states[t] = t + 1 < T ? o->states + t * STATE : o->state;
    }

    nn_linear(c, o->linear + t0 * N, x, &w, in.b, T);
    nn_linear(c, o->linear16 + t0 * N, x, &w16, NULL, T);
    const linear_part parts[] = {{o->many + t0 * N, &w, in.b}, {o->many16 + t0 * N, &w16, in.b}};
    nn_linear_many(c, parts, 2, x, T);
    const linear_part mixed[] = {{o->q8 + t0 * N, &in.w8, in.b}, {o->q4 + t0 * N, &in.w4, NULL}};
    nn_linear_group(c, mixed, 2, x, T);
    const linear_part blocks[] = {{o->many8 + t0 * N, &in.w8, in.b}, {o->many4 + t0 * N, &in.w4, NULL}};
    nn_linear_many(c, blocks, 2, x, T);
    nn_rmsnorm(c, o->rms + t0 * D, x, in.w, 1e-6f, T, D);
    nn_layernorm(c, o->layer + t0 * D, x, in.w, in.b, 1e-6f, T, D);
    memcpy(o->silu + t0 * D, x, T * D * sizeof(float));
    nn_silu_mul(c, o->silu + t0 * D, in.x + t0 * D, T * D);
    nn_gelu_erf(c, o->silu + t0 * D, T * D);
    nn_gelu_tanh(c, o->silu + t0 * D, T * D);
    memcpy(heads, qkv, T * 3 * H * HD * sizeof(float));
    nn_rmsnorm_heads(c, heads, in.w, 1e-6f, T, H, HD, 3 * H * HD, HD);
    nn_rope(c, heads, in.angles + t0 * 8, in.angles + t0 * 8, T, H, 8, 3 * H * HD, HD);
    nn_attention(c, o->attention + t0 * H * HD, heads, &kv, NULL, 0.2f, FIRST + t0, T, H, KV, HD, 3 * H * HD,
                 HD);
    nn_sigmoid_gate(c, o->attention + t0 * H * HD, qkv, T, H, HD, 3 * H * HD, HD);
    nn_conv_silu(c, o->conv + t0 * C, o->tail, in.conv + t0 * C, in.kernel, NULL, T, C, C);
    nn_delta_gates(c, o->gates + t0 * NV, o->gates + (MAX_T + t0) * NV, in.beta + t0 * NV, in.g + t0 * NV,
                   in.b, in.b, T, NV);
    nn_delta_recurrent(c, o->delta + t0 * NV * DV, o->state, T <= 32 ? states : NULL, in.conv + t0 * C,
                       in.beta + t0 * NV, in.g + t0 * NV, &s, T);
    nn_rmsnorm_gated(c, o->delta + t0 * NV * DV, o->delta + t0 * NV * DV, in.conv + t0 * NV * DV, in.w, 1e-6f,
                     T * NV, DV);
}

static void run_whole(compute *c, outputs *o)
{
    static const int32_t cu[] = {0, 130, MAX_T};
    delta_shape s = {NK, NV, DK, DV, false};
    nn_attention_segments(c, o->segments, in.qkv, cu, 2, DTYPE_F32, 0.2f, H, HD);
    const delta_source rows = {in.conv, in.kernel, o->chunked_tail};
    nn_delta_chunked(c, o->chunked, o->chunked_state, &rows, in.beta, in.g, &s, MAX_T);
}

#define SAME(field, n) CHECK(memcmp(a.field, b.field, (n) * sizeof(float)) == 0)

static compute *create(size_t n_threads, const test_level *level)
{
    compute *c = test_context(level, (compute_options){.n_threads = n_threads, .fast = true});
    CHECK_INT(compute_n_threads(c), n_threads);
    return c;
}

static bool is_made(const test_level *level)
{
    return level->mask == 0 && level->table() != ops_generic();
}

static void check_threads(const test_level *level)
{
    outputs a, b;
    compute *one = create(1, level);
    make_outputs(&a);
    run_rows(one, &a, 0, MAX_T);
    run_whole(one, &a);
    for (size_t n_threads = 2; n_threads <= 3; n_threads++) {
        compute *many = create(n_threads, level);
        make_outputs(&b);
        run_rows(many, &b, 0, MAX_T);
        run_whole(many, &b);
        SAME(linear, MAX_T * N);
        SAME(linear16, MAX_T * N);
        SAME(many, MAX_T * N);
        SAME(many16, MAX_T * N);
        SAME(q8, MAX_T * N);
        SAME(q4, MAX_T * N);
        SAME(many8, MAX_T * N);
        SAME(many4, MAX_T * N);
        SAME(rms, MAX_T * D);
        SAME(layer, MAX_T * D);
        SAME(silu, MAX_T * D);
        SAME(heads, MAX_T * 3 * H * HD);
        SAME(attention, MAX_T * H * HD);
        SAME(segments, MAX_T * H * HD);
        SAME(conv, MAX_T * C);
        SAME(delta, MAX_T * NV * DV);
        SAME(gates, MAX_T * NV * 2);
        SAME(state, STATE);
        SAME(chunked, MAX_T * NV * DV);
        SAME(chunked_state, STATE);
        SAME(chunked_tail, 3 * C);
        SAME(tail, 3 * C);
        free_outputs(&b);
        compute_destroy(many);
    }
    free_outputs(&a);
    compute_destroy(one);
}

/* T rows at once against the same rows one by one. */
static void check_rows(const test_level *level)
{
    compute *c = create(2, level);
    for (size_t T = 1; T <= NN_ROWS_EXACT; T += is_made(level) ? 10 : 1) {
        outputs a, b;
        make_outputs(&a), make_outputs(&b);
        run_rows(c, &a, 0, T);
        for (size_t t = 0; t < T; t++) {
            run_rows(c, &b, t, 1);
            const float *kept = t + 1 < T ? a.states + t * STATE : a.state;
            CHECK(memcmp(kept, b.state, STATE * sizeof(float)) == 0);
        }
        SAME(linear, T * N);
        SAME(linear16, T * N);
        SAME(many, T * N);
        SAME(many16, T * N);
        SAME(q8, T * N);
        SAME(q4, T * N);
        SAME(many8, T * N);
        SAME(many4, T * N);
        SAME(rms, T * D);
        SAME(layer, T * D);
        SAME(silu, T * D);
        SAME(heads, T * 3 * H * HD);
        SAME(attention, T * H * HD);
        SAME(conv, T * C);
        SAME(delta, T * NV * DV);
        SAME(gates, T * NV);
        SAME(state, STATE);
        SAME(tail, 3 * C);
        free_outputs(&a), free_outputs(&b);
    }
    compute_destroy(c);
}

/* The length of the difference of two results relative to that of b, a less its bias if that is not NULL. Rounding
 * gives it a value of its own; a scale that is wrong by a hundredth adds a hundredth. */
static double distance(const float *a, const float *b, const float *bias)
{
    double apart = 0, all = 0;
    for (size_t i = 0; i < MAX_T * N; i++) {
        const double difference = (double)a[i] - (double)(bias ? bias[i % N] : 0) - (double)b[i];
        apart += difference * difference;
        all += (double)b[i] * (double)b[i];
    }
    return sqrt(apart / all);
}

/* Many rows: the bits of a row do not depend on how many there are, and the values are those of
 * nn_linear; what is rounded lies as far from what is not as rounding moves it. */
static void check_many(const test_level *level)
{
    enum { MORE = 67 };
    compute *c = create(2, level);
    outputs a, b;
    make_outputs(&a), make_outputs(&b);
    run_rows(c, &a, 0, MAX_T);
    run_rows(c, &b, 0, MORE);
    run_rows(c, &b, MORE, MAX_T - MORE);
    CHECK_INT(nn_many_is_exact(c), level->table() != ops_generic());
    if (nn_many_is_exact(c)) { /* generic: one way for all numbers of rows, and BLAS behind it */
        SAME(many, MAX_T * N);
        SAME(many16, MAX_T * N);
        SAME(many8, MAX_T * N);
        SAME(many4, MAX_T * N);
    }
    for (size_t i = 0; i < MAX_T * N; i++) {
        CHECK_NEAR(a.many[i], a.linear[i], 1e-4);
        CHECK_NEAR(a.many8[i], a.q8[i], 0.15); /* a single one may lie further away */
        CHECK_NEAR(a.many4[i], a.q4[i], 0.15);
        CHECK_NEAR(a.many16[i] - in.b[i % N], a.linear16[i], 0.15);
    }
    /* Half as much again as what rounding does: to bf16 of one side alone; of x with a scale for 256 columns
     * and for 32; and of the weights. */
    CHECK(distance(a.many16, a.linear16, in.b) < 0.0025);
    CHECK(distance(a.many8, a.q8, NULL) < 0.0065);
    CHECK(distance(a.many4, a.q4, NULL) < 0.0065);
    CHECK(distance(a.linear, a.linear16, in.b) < 0.005);
    CHECK(distance(a.q8, a.linear, NULL) < 0.008);
    CHECK(distance(a.linear, a.q4, in.b) < 0.08);
    free_outputs(&a), free_outputs(&b);
    compute_destroy(c);
}

/* Quantizing by all threads writes what one row at a time does. */
static void check_quantize(void)
{
    compute *c = NULL;
    err_detail detail = {0};
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 3, .cpu_mask = test_cpu_mask()}, &detail),
             detail);
    const tensor w = {DTYPE_F32, 2, {N, D}, in.w, N * D * 4}, *const formats[] = {&in.w8, &in.w4};
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        unsigned char *rows = malloc(formats[i]->bytes);
        nn_quantize(c, rows, formats[i]->type, &w);
        CHECK(memcmp(rows, formats[i]->data, formats[i]->bytes) == 0);
        free(rows);
    }
    compute_destroy(c);
}

static void check_memory(void)
{
    compute *c = NULL;
    err_detail detail = {0};
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 1, .cpu_mask = test_cpu_mask()}, &detail),
             detail);
    static const size_t sizes[] = {0, 1, 63, 4096, 9000001};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        unsigned char *p = compute_alloc(c, sizes[i]);
        CHECK(p != NULL && (uintptr_t)p % 64 == 0);
        for (size_t j = 0; p && j < sizes[i]; j++) {
            if (p[j] != 0) {
                CHECK(p[j] == 0);
                break;
            }
            p[j] = 1;
        }
        compute_free(c, p);
    }
    compute_free(c, NULL);
    void *too_much = compute_alloc(c, SIZE_MAX - 8);
    CHECK(too_much == NULL);
    compute_destroy(c);
    compute_destroy(NULL);

    CHECK_INT(
        compute_create(&c, &(compute_options){.n_threads = 100000, .cpu_mask = test_cpu_mask()}, &detail),
        ERR_INVALID);
    CHECK(strstr(detail.text, "100000") != NULL);
}

int main(void)
{
    make_inputs();
    for (const test_level *l = test_contexts(); l->name; l++) {
        check_threads(l);
        check_rows(l);
        check_many(l);
    }
    check_quantize();
    check_memory();
    CHECK_DONE();
}
