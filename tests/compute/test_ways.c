/* Which kernels nn.h calls for what, how often, and where: thresholds, tiles, blocks, and how work is cut for the threads,
 * compared with a file, for sizes of real models. The kernels compute nothing (counted_ops.h); what they compute is for the
 * other tests. PARLEY_WRITE=1 writes the file anew, whose difference is then to be read: calls * mean work. */
#include <stdarg.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "compute/nn.h"
#include "tests/compute/counted_ops.h"
#include "tests/compute/levels.h"
#include "tests/recorded.h"

/* Addresses that nearly nothing reads or writes: x, weights, and outputs. */
#define ARENA_BYTES ((size_t)7 << 30)
#define WEIGHTS_AT  ((size_t)2 << 30)
#define OUT_AT      ((size_t)5 << 30)

static char *arena;
static compute *c;
static char *text;
static size_t text_at;
static uint64_t begun;
enum { TEXT_BYTES = 1 << 20 };

static float *x_at(size_t n)
{
    return (float *)(void *)arena + n;
}

static float *out_at(size_t n)
{
    return (float *)(void *)(arena + OUT_AT) + n;
}

static const void *weights_at(size_t at)
{
    return arena + WEIGHTS_AT + at;
}

/* What was called since the last line, how often threads were given work, and into how many tasks it was cut at last. */
static void say(const char *format, ...) PRINTF_LIKE(1, 2);
static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_at += (size_t)vsnprintf(text + text_at, TEXT_BYTES - text_at, format, args);
    va_end(args);
    const uint64_t counter = compute_progress_counter(c);
    text_at += (size_t)snprintf(text + text_at, TEXT_BYTES - text_at, ": %zu begun, %zu tasks; ",
                                (size_t)((counter >> 24) - begun), (size_t)(counter & 0xffffff));
    begun = counter >> 24;
    counted_end(text + text_at, TEXT_BYTES - text_at);
    text_at += strlen(text + text_at);
    text_at += (size_t)snprintf(text + text_at, TEXT_BYTES - text_at, "\n");
}

static tensor matrix(dtype type, size_t N, size_t K, size_t at)
{
    tensor w = {type, 2, {N, K}, weights_at(at), 0};
    w.bytes = N * tensor_row_bytes(&w);
    return w;
}

static void linear(dtype type, size_t T, size_t N, size_t K)
{
    const tensor a = matrix(type, N, K, 2), b = matrix(type, N / 3, K, (size_t)1 << 30);
    const linear_part parts[] = {{out_at(0), &a, NULL},
                                 {out_at((size_t)1 << 26), &b, out_at((size_t)1 << 28)}};
    const uint64_t products = nn_products(c), padding = nn_padding(c);
    nn_linear_group(c, parts, 2, x_at(0), T);
    say("%s %zu rows, %zu x %zu", dtype_name(type), T, N, K);
    nn_linear_many(c, parts, 2, x_at(0), T);
    say(" many");
    CHECK_INT(nn_products(c) - products, 2 * T * (N + N / 3) * K);
    text_at += (size_t)snprintf(text + text_at, TEXT_BYTES - text_at, " padding %zu\n",
                                (size_t)(nn_padding(c) - padding));
}

/* Whole blocks of 256 columns suit every type. */
static void all_linear(void)
{
    static const dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16,  DTYPE_Q8,
                                  DTYPE_Q4,  DTYPE_Q5,   DTYPE_Q6_K, DTYPE_Q2_K};
    static const size_t rows[] = {1, 3, 4, 32, 33, 600};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        for (size_t t = 0; t < ARRAY_LEN(rows); t++) {
            linear(types[i], rows[t], 300, 1536);
        }
    }
    linear(DTYPE_BF16, 2, 2, 4096);
}

/* With many threads slices are shorter. */
static void wide_linear(void)
{
    linear(DTYPE_Q8, 2, 9000, 3584);
    linear(DTYPE_Q4, 40, 2000, 256);
}

/* Sizes that pass a bound of the scratch or of the room for packed rows; without BLAS, which would compute. */
static void large_linear(void)
{
    linear(DTYPE_F32, 257, 60, 1536); /* one row more than a group of panels */
    linear(DTYPE_BF16, 40, 60, 2049);
    linear(DTYPE_BF16, 2000, 500, 896);
    linear(DTYPE_F32, 600, 60, 20000);
    linear(DTYPE_Q8, 1000, 60, 20480);
    linear(DTYPE_Q4, 600, 500, 3584);
    linear(DTYPE_Q6_K, 50, 9, 60160);
    linear(DTYPE_Q8, 40, 6, 204800);
    linear(DTYPE_F16, 40, 6, 174763);
    linear(DTYPE_Q2_K, 40, 6, 5120);
}

static void each_linear(void)
{
    enum { ITEMS = 150, MANY = 70 };
    static const dtype types[] = {DTYPE_Q8, DTYPE_BF16, DTYPE_Q4, DTYPE_Q6_K, DTYPE_F32};
    static tensor w[ITEMS];
    static linear_item items[ITEMS];
    static linear_part parts[MANY];
    static linear_many many[MANY];
    for (size_t i = 0; i < ITEMS; i++) {
        w[i] = matrix(types[i / 3 % 5], 1 + i % 70, i % 3 == 2 ? 1536 : 20480, i << 20);
        items[i] = (linear_item){out_at(i << 12), x_at(i / 2 << 20), &w[i], 1 + i / 2 * 7 % NN_ROWS_EXACT};
    }
    nn_linear_each(c, items, ITEMS);
    say("each");
    for (size_t i = 0; i < 9; i++) { /* rounded to 16 bits, eight of them take all of the room */
        w[i] = matrix(DTYPE_BF16, 3, 65536, i << 20);
        items[i] = (linear_item){out_at(i << 12), x_at(i << 22), &w[i], NN_ROWS_EXACT};
    }
    nn_linear_each(c, items, 9);
    say("each, up to the last byte");
    for (size_t i = 0; i < MANY; i++) {
        w[i] = matrix(types[i % 17 == 16 ? 1 : i % 2 * 2], 1 + i % 70, 512, i << 20);
        parts[i] = (linear_part){out_at(i << 16), &w[i], NULL};
        many[i] = (linear_many){&parts[i], 1, x_at(i << 20), 1 + i * 13 % 200};
    }
    nn_linear_many_each(c, many, 16);
    say("many each");
    nn_linear_many_each(c, many, MANY);
    say("many each, more");
    for (size_t i = 0; i < MANY; i++) {
        w[i] = matrix(DTYPE_Q8, 40, 2048, i << 20), many[i].T = 12;
    }
    nn_linear_many_each(c, many, MANY);
    say("many each, alike");
}

typedef struct heads {
    size_t first, T, H, n_kv, hd, page_tokens;
} heads;

static void attention(kv_type type, const heads *s, size_t window, bool others)
{
    enum { PAGES = 1024 };
    static void *pages[PAGES];
    static int32_t ends[1024];
    static float sinks[1024];
    const size_t page = kv_page_bytes(type, s->page_tokens, s->n_kv, s->hd), row = s->H * s->hd;
    for (size_t i = 0; i < PAGES; i++) {
        pages[i] = arena + WEIGHTS_AT + i * page;
    }
    for (size_t t = 0; t < s->T; t++) {
        const size_t end = (t / 50 + 1) * 50;
        ends[t] = (int32_t)(s->first + (end < s->T ? end : s->T));
    }
    const kv_pages kv = {pages, s->page_tokens, type};
    const attention_rule rule = {window, others ? sinks : NULL, others ? ends : NULL};
    nn_attention(c, out_at(0), x_at(0), &kv, &rule, 0.5f, s->first, s->T, s->H, s->n_kv, s->hd, row + 8,
                 s->hd);
    say("attention %s %zu behind %zu, %zu of %zu x %zu, window %zu%s", kv_type_name(type), s->T, s->first,
        s->H, s->n_kv, s->hd, window, others ? ", sinks, ends" : "");
    nn_attention_many(c, out_at(0), x_at(0), &kv, NULL, 0.5f, s->first, s->T, s->H, s->n_kv, s->hd, row + 8,
                      s->hd);
    say(" many");
}

static void all_attention(void)
{
    static const heads shapes[] = {
        {0, 1, 16, 4, 128, 64},     {1000, 1, 16, 2, 64, 64}, {5000, 3, 8, 8, 128, 64},
        {700, 32, 6, 2, 80, 100},   {300, 33, 16, 4, 64, 64}, {90, 600, 16, 2, 128, 64},
        {10, 40, 300, 1, 33, 16},   {0, 5, 2, 1, 60000, 8},   {500, 3, 2, 2, 30000, 16},
        {600, 20, 200, 1, 817, 64}, /* two tiles are just too many for the shared scratch */
        {3, 1, 64, 1, 65406, 8}};   /* a task just has room for 64 queries */
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const kv_type type = i % 2 ? KV_Q8 : KV_BF16;
        attention(type, &shapes[i], 0, false);
        attention(type, &shapes[i], 290, i % 3 == 0);
        attention(type, &shapes[i], 0, true);
    }
}

static void all_segments(void)
{
    static const int32_t cu[] = {0, 1, 1, 140, 204, 1300}, large[] = {0, 5000};
    static const size_t sizes[] = {25, 64, 80, 1500, 12000, 60000};
    static const dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_Q8};
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
            nn_attention_segments(c, out_at(0), x_at(0), cu, sizes[i] > 999 ? 3 : 5, types[t], 0.5f, 2,
                                  sizes[i]);
            say("segments %s, heads of %zu", dtype_name(types[t]), sizes[i]);
        }
        nn_attention_segments(c, out_at(0), x_at(0), large, 1, types[t], 0.5f, 6, 16);
        say("segments %s, a large one", dtype_name(types[t]));
    }
}

static void all_states(void)
{
    static const size_t rows[] = {1, 3, 40, 64, 200, 2000};
    const delta_shape delta = {4, 8, 64, 200, false};
    const mamba_shape mamba = {2, 8, 128, 64};
    float *states[40];
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        states[i] = out_at(((size_t)1 << 28) + (i << 20));
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const size_t T = rows[i];
        const delta_source source = {x_at(0), weights_at(64), out_at((size_t)1 << 27)};
        nn_conv_silu(c, out_at(0), out_at((size_t)1 << 27), x_at(0), weights_at(64), NULL, T, 2112, 2200);
        say("%zu rows, conv", T);
        nn_delta_gates(c, out_at(0), out_at(99999), x_at(0), x_at(99999), x_at(5), x_at(55), T, 8);
        nn_mamba_gates(c, out_at(0), out_at(99999), x_at(0), 20, x_at(5), x_at(55), 0.1f, 9, T, 8);
        say(" gates");
        nn_delta_recurrent(c, out_at(0), out_at((size_t)1 << 26), T <= 40 ? states : NULL, x_at(0), x_at(77),
                           x_at(777), &delta, T);
        say(" delta");
        nn_delta_chunked(c, out_at(0), out_at((size_t)1 << 26), &source, x_at(77), x_at(777), &delta, T);
        say(" delta in chunks");
        nn_mamba_recurrent(c, out_at(0), out_at((size_t)1 << 26), T <= 40 ? states : NULL, x_at(0), x_at(77),
                           x_at(777), x_at(7), &mamba, T);
        say(" mamba");
        nn_mamba_chunked(c, out_at(0), out_at((size_t)1 << 26), x_at(0), x_at(77), x_at(777), x_at(7), &mamba,
                         T);
        say(" mamba in chunks");
    }
    conv_run convs[5];
    delta_run runs[5];
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        convs[i] = (conv_run){out_at(i << 20), out_at((i + 8) << 20), x_at(i << 16), 1 + i};
        runs[i] = (delta_run){.out = out_at(i << 20),
                              .state = out_at((i + 8) << 20),
                              .conv = x_at(i << 16),
                              .beta = x_at(7),
                              .g = x_at(9),
                              .T = 1 + i};
    }
    nn_conv_silu_each(c, convs, ARRAY_LEN(convs), weights_at(64), out_at(0), 700, 800);
    say("conv, five");
    nn_delta_recurrent_each(c, runs, ARRAY_LEN(runs), &delta);
    say("delta, five");
}

/* Element-wise and row-wise: how many a task takes. */
static void all_rows(void)
{
    enum { T = 300, D = 700, n = 100003, H = 10, HD = 70 };
    static void *pages[64];
    static int32_t ids[T];
    const tensor table = matrix(DTYPE_BF16, 500, 1024, 2), blocks = matrix(DTYPE_Q6_K, 500, 1024, 2);
    const tensor wide = matrix(DTYPE_BF16, 500, 1536, 2), long_rows = matrix(DTYPE_F32, 3, 1 << 19, 2);
    float *x = out_at(0), *y = x_at(1000);
#define ROWS(call)                                                                                           \
    (call);                                                                                                  \
    say("%s", #call)
    ROWS(nn_add(c, x, y, n));
    ROWS(nn_silu_mul(c, x, y, n));
    ROWS(nn_relu2(c, x, n));
    ROWS(nn_swiglu_clamped(c, x, y, 2, n));
    ROWS(nn_gelu_mul(c, x, y, n));
    ROWS(nn_scale(c, x, 2, n));
    ROWS(nn_softcap(c, x, 2, n));
    ROWS(nn_gelu_tanh(c, x, n));
    ROWS(nn_gelu_erf(c, x, n));
    ROWS(nn_rmsnorm(c, x, y, x_at(9), 1, T, D));
    ROWS(nn_rmsnorm(c, x, y, x_at(9), 1, 30, 20000));
    ROWS(nn_rmsnorm_gated(c, x, y, x_at(99), x_at(9), 1, T, D));
    ROWS(nn_layernorm(c, x, y, x_at(99), x_at(9), 1, T, D));
    ROWS(nn_rmsnorm_heads(c, x, x_at(9), 1, T, H, HD, 800, 75));
    ROWS(nn_rmsnorm_groups(c, x, y, out_at(1 << 20), 900, x_at(9), 1, T, H, HD));
    ROWS(nn_sigmoid_gate(c, x, y, T, H, HD, 800, 75));
    ROWS(nn_rope(c, x, y, x_at(9), T, H, 16, 800, 75));
    ROWS(nn_rotate_heads(c, x, T, H, HD, 800, 75));
    ROWS(nn_embed(c, x, &table, ids, T));
    ROWS(nn_embed(c, x, &blocks, ids, T));
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
            pages[i] = arena + WEIGHTS_AT + i * kv_page_bytes(type, 16, 3, HD);
        }
        const kv_pages kv = {pages, 16, type};
        ROWS(nn_kv_store(c, &kv, y, x_at(9), 77, T, 3, HD, 250, 260));
        ROWS(nn_key_scores(c, x, y, &kv, 2, 1, T, 9, HD));
    }
    ROWS(nn_softmax_peaks(c, x, x_at(0), 1000, 5, 60));
    ROWS(nn_quantize(c, x, DTYPE_Q8, &wide));
    ROWS(nn_quantize(c, x, DTYPE_Q4, &long_rows));
#undef ROWS
}

int main(void)
{
    static const struct {
        const ops *(*table)(void);
        size_t n_threads;
        bool fast;
    } ways[] = {{ops_made_turned, 3, true}, {ops_made_turned, 1, false}, {ops_made_panels, 2, true},
                {ops_made_floats, 3, true}, {ops_made_turned, 33, true}, {ops_generic, 2, true}};
    arena =
        mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    text = malloc(TEXT_BYTES);
    if (arena == MAP_FAILED || !text) {
        printf("no memory for the test\n");
        return 77;
    }
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        const test_level level = {"", 0, ways[i].table};
        c = test_context(&level, (compute_options){.n_threads = ways[i].n_threads, .fast = ways[i].fast});
        text_at += (size_t)snprintf(text + text_at, TEXT_BYTES - text_at, "%s, %zu threads%s\n", c->ops->name,
                                    ways[i].n_threads, ways[i].fast ? "" : ", exact");
        counted_begin(c, c->ops, arena, ARENA_BYTES);
        begun = compute_progress_counter(c) >> 24;
        wide_linear();
        if (ways[i].n_threads < 33) {
            all_linear();
            each_linear();
            all_attention();
            all_segments();
            all_states();
            all_rows();
        }
        if (ways[i].n_threads < 33 && c->ops->tiles_best) {
            large_linear();
        }
        compute_destroy(c);
    }
    recorded_check("compute/ways.txt", text);
    free(text);
    munmap(arena, ARENA_BYTES);
    CHECK_DONE();
}
