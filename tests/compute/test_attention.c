/* Attention over packed keys and values against formulas written out in
 * double: every type of cache, every kernel table, few rows and many; and the promises on threads
 * and rows, bit for bit. */
#include "base/compiler.h"
#include "compute/nn.h"
#include "tests/check.h"
#include "tests/compute/levels.h"
#include "tests/compute/naive.h"
#include "tests/compute/rng.h"

enum { MAX_PAGES = 128, MAX_LEVELS = 8 };

static compute *levels[MAX_LEVELS]; /* a context of each kernel table */
static size_t n_levels;
static bool rough; /* the contexts are fast, and all numbers are of the type bf16 */

/* A cache of n_slots tokens in pages of bytes that make NaN in every type until stored to. */
typedef struct cache {
    kv_pages kv;
    size_t n_pages;
    void *pages[MAX_PAGES];
} cache;

static void cache_init(cache *c, kv_type type, size_t n_slots, size_t page_tokens, size_t n_kv, size_t hd)
{
    size_t bytes = kv_page_bytes(type, page_tokens, n_kv, hd);
    c->kv = (kv_pages){c->pages, page_tokens, type};
    c->n_pages = (n_slots + page_tokens - 1) / page_tokens;
    CHECK(c->n_pages <= MAX_PAGES);
    for (size_t p = 0; p < c->n_pages; p++) {
        c->pages[p] = malloc(bytes);
        memset(c->pages[p], 0xff, bytes);
    }
}

static void cache_deinit(cache *c)
{
    for (size_t p = 0; p < c->n_pages; p++) {
        free(c->pages[p]);
    }
}

/* What a cache of that type makes of rows of heads. */
static void through_cache(float *x, kv_type type, size_t n_rows, size_t hd)
{
    unsigned char *packed = malloc(kv_row_bytes(type, hd));
    for (size_t r = 0; r < n_rows; r++) {
        const float scale = KV_OPS_GENERIC[type].pack(packed, x + r * hd, hd);
        KV_OPS_GENERIC[type].widen(x + r * hd, packed, scale, hd);
    }
    free(packed);
}

/* One shape: T rows behind `first` tokens. */
typedef struct shape {
    size_t first, T, H, n_kv, hd, page_tokens;
} shape;

/* Rows t .. t+run-1 see each other. */
static int32_t *runs_of_rows(const shape *s, size_t run)
{
    int32_t *ends = malloc(s->T * sizeof *ends);
    for (size_t t = 0; t < s->T; t++) {
        const size_t end = (t / run + 1) * run;
        ends[t] = (int32_t)(s->first + (end < s->T ? end : s->T));
    }
    return ends;
}

/* Every kernel table against one formula: that takes most of the time. With a rule, pages that no row sees are not there at
 * all. run: of rows that see each other; 0: none. */
static void attention_case(const shape *s, kv_type type, size_t window, bool with_sinks, size_t run)
{
    if (!check_takes(11)) {
        return;
    }
    float *sinks = with_sinks ? rng_floats(s->H, 2) : NULL;
    int32_t *ends = run ? runs_of_rows(s, run) : NULL;
    const attention_rule rule = {window, sinks, ends};
    size_t n = s->first + s->T, D = s->n_kv * s->hd, row = s->H * 2 * s->hd, n_out = s->T * s->H * s->hd;
    float *q = rng_floats(s->T * row, 4), *k = rng_floats(n * D, 4), *v = rng_floats(n * D, 1);
    float *out = rng_floats(n_out, 1), scale = rough ? 0.25f : 1 / sqrtf((float)s->hd);
    double *want = doubles(n_out);
    if (rough) {
        through_cache(q, KV_BF16, s->T * s->H * 2, s->hd);
    }
    float *k_seen = malloc(n * D * sizeof *k), *v_seen = malloc(n * D * sizeof *v);
    memcpy(k_seen, k, n * D * sizeof *k), memcpy(v_seen, v, n * D * sizeof *v);
    through_cache(k_seen, type, n * s->n_kv, s->hd);
    through_cache(v_seen, type, n * s->n_kv, s->hd);
    for (size_t t = 0; t < s->T; t++) {
        for (size_t h = 0; h < s->H; h++) {
            size_t at = h / (s->H / s->n_kv) * s->hd;
            const size_t own = s->first + t + 1;
            attend_naive(want + (t * s->H + h) * s->hd, q + t * row + h * 2 * s->hd, k_seen + at, v_seen + at,
                         D, window && own > window ? own - window : 0, ends ? (size_t)ends[t] : own, s->hd,
                         (double)scale, sinks ? &sinks[h] : NULL);
        }
    }
    /* A score is a sum over the head; with q8 and q4, queries and weights of few rows are whole
     * numbers of 16 bits. rough: weights of 8 bits */
    const double most = rough ? 4e-3 : type >= KV_Q8 ? 3e-4 : s->hd > 1000 ? 3e-5 : 1e-5;
    for (size_t level = 0; level < n_levels; level++) {
        compute *ctx = levels[level];
        cache c;
        cache_init(&c, type, n, s->page_tokens, s->n_kv, s->hd);
        nn_kv_store(ctx, &c.kv, k, v, 0, s->first, s->n_kv, s->hd, D, D);
        nn_kv_store(ctx, &c.kv, k + s->first * D, v + s->first * D, s->first, s->T, s->n_kv, s->hd, D, D);
        for (size_t p = 0; window && s->first + 1 > window && p < (s->first + 1 - window) / s->page_tokens;
             p++) {
            free(c.pages[p]);
            c.pages[p] = NULL;
        }
        nn_attention(ctx, out, q, &c.kv, window || sinks || ends ? &rule : NULL, scale, s->first, s->T, s->H,
                     s->n_kv, s->hd, row, 2 * s->hd);
        CHECK_NEAR(rel_error(out, want, n_out), 0, most);
        cache_deinit(&c);
    }
    free(sinks);
    free(ends);
    free(k_seen), free(v_seen);
    free(q), free(k), free(v), free(out), free(want);
}

static void test_attention(void)
{
    static const shape shapes[] = {
        {0, 1, 1, 1, 24, 64},
        {0, 200, 4, 2, 24, 64},
        {130, 3, 8, 2, 40, 64},
        {63, 70, 6, 2, 16, 16},
        {5, 33, 4, 4, 17, 7},
        {250, 6, 4, 1, 256, 100},
        {600, 1, 4, 2, 64, 64},
        {511, 4, 6, 2, 128, 64},
        {255, 2, 3, 1, 256, 64},
        {300, 70, 1, 1, 130, 64},
        {3, 5, 200, 2, 8, 64}, /* more heads than a block holds */
        /* so many tiles that a task takes all heads of one */
        {100, 40, 600, 2, 8, 64},
        {4200, 2, 4, 2, 16, 64},
    };
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
            attention_case(&shapes[i], type, 0, false, 0);
            attention_case(&shapes[i], type, 40, true, 7);
            if (shapes[i].H > 500) {
                continue; /* half of the time of this test, in the loops of the shapes before */
            }
            attention_case(&shapes[i], type, 0, true, 0);
            attention_case(&shapes[i], type, 0, false, 290);
            /* The types take turns with the windows: 1 and 43, or 8 and 239. */
            for (size_t window = (i + type) % 2 ? 1 : 8; window < 600; window = window * 28 + 15) {
                attention_case(&shapes[i], type, window, window != 8, 0);
            }
        }
        nn_attention(levels[0], NULL, NULL, &(kv_pages){.page_tokens = 64, .type = type}, NULL, 1, 5, 0, 2, 1,
                     8, 16, 8);
    }
    attention_case(&(shape){1, 3, 4, 2, NN_HEAD_MAX, 64}, KV_F32, 0, false, 2); /* the largest heads */
    /* Two blocks of 21 and 11 rows; of the second, only the first four see all of the first tile. */
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        attention_case(&(shape){300, 32, 6, 2, 16, 64}, type, 325, true, 0);
    }
}

/* Values of bf16, so that weights alone are rounded. */
static void test_rough(void)
{
    static const shape shapes[] = {
        {0, 200, 4, 2, 24, 64},  {63, 70, 6, 2, 16, 16},   {5, 33, 4, 4, 17, 7},
        {300, 90, 2, 1, 64, 64}, {120, 150, 4, 1, 80, 64}, {150, 100, 3, 1, 130, 100},
    };
    rough = true;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        attention_case(&shapes[i], KV_BF16, 0, false, 0);
        attention_case(&shapes[i], KV_BF16, 0, true, 290);
        attention_case(&shapes[i], KV_BF16, 1, false, 0);
        attention_case(&shapes[i], KV_BF16, 90, true, 7);
    }
    rough = false;
}

/* ---- bit for bit ---- */

enum { H = 6, KV = 2, HD = 40, ROW = H * HD, FIRST = 500, MAX_T = 70, SLOTS = FIRST + MAX_T };

static float q_rows[MAX_T * ROW], k_rows[SLOTS * KV * HD], v_rows[SLOTS * KV * HD];

static compute *open_as(size_t n_threads, unsigned mask, bool fast)
{
    compute *c = NULL;
    err_detail d = {0};
    CHECK_OK(
        compute_create(&c, &(compute_options){.n_threads = n_threads, .cpu_mask = mask, .fast = fast}, &d),
        d);
    return c;
}

static compute *open_with(size_t n_threads, unsigned mask)
{
    return open_as(n_threads, mask, false);
}

/* Rows t .. t+T-1 of the ones above, behind what precedes them. */
static void attend(compute *c, float *out, const cache *kv, size_t t, size_t T)
{
    nn_attention(c, out + t * ROW, q_rows + t * ROW, &kv->kv, NULL, 0.2f, FIRST + t, T, H, KV, HD, ROW, HD);
}

/* Results depend neither on the number of threads nor on the rows of the call, up to NN_ROWS_EXACT
 * of them. */
static void check_promises(unsigned mask, kv_type type)
{
    static float one[MAX_T * ROW], other[MAX_T * ROW];
    static const size_t rows[] = {1, 2, 3, 5, 31, NN_ROWS_EXACT};
    compute *single = open_with(1, mask);
    cache kv;
    cache_init(&kv, type, SLOTS, 64, KV, HD);
    nn_kv_store(single, &kv.kv, k_rows, v_rows, 0, SLOTS, KV, HD, KV * HD, KV * HD);
    for (size_t t = 0; t < NN_ROWS_EXACT; t++) {
        attend(single, one, &kv, t, 1);
    }
    for (size_t n_threads = 1; n_threads <= 3; n_threads++) {
        compute *c = open_with(n_threads, mask);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            memset(other, 0, sizeof other);
            attend(c, other, &kv, 0, rows[i]);
            CHECK(memcmp(one, other, rows[i] * ROW * sizeof(float)) == 0);
        }
        compute_destroy(c);
    }
    attend(single, one, &kv, 0, MAX_T);
    compute *two = open_with(2, mask);
    attend(two, other, &kv, 0, MAX_T);
    CHECK(memcmp(one, other, sizeof one) == 0);
    compute_destroy(two);
    compute_destroy(single);
    cache_deinit(&kv);
}

/* The same of many rows in bf16, which does not depend on their number either. */
static void check_rough_promises(unsigned mask)
{
    static float one[MAX_T * ROW], other[MAX_T * ROW];
    compute *single = open_as(1, mask, true);
    cache kv;
    cache_init(&kv, KV_F16, SLOTS, 64, KV, HD);
    nn_kv_store(single, &kv.kv, k_rows, v_rows, 0, SLOTS, KV, HD, KV * HD, KV * HD);
    nn_attention_many(single, one, q_rows, &kv.kv, NULL, 0.2f, FIRST, MAX_T, H, KV, HD, ROW, HD);
    for (size_t n_threads = 1; n_threads <= 2; n_threads++) {
        compute *c = open_as(n_threads, mask, true);
        for (size_t t = 0, n = 1; t < MAX_T; t += n, n = n * 3 < MAX_T - t ? n * 3 : MAX_T - t) {
            nn_attention_many(c, other + t * ROW, q_rows + t * ROW, &kv.kv, NULL, 0.2f, FIRST + t, n, H, KV,
                              HD, ROW, HD);
        }
        CHECK(memcmp(one, other, sizeof one) == 0);
        compute_destroy(c);
    }
    compute_destroy(single);
    cache_deinit(&kv);
}

/* A context of each table that can run here. */
static void open_levels(bool fast)
{
    n_levels = 0;
    for (const test_level *l = test_levels(); l->name; l++) {
        CHECK(n_levels < MAX_LEVELS);
        levels[n_levels] = open_as(2, l->mask, fast);
        printf("%s\n", compute_describe(levels[n_levels++]));
    }
}

static void close_levels(void)
{
    while (n_levels > 0) {
        compute_destroy(levels[--n_levels]);
    }
}

int main(void)
{
    rng_fill(q_rows, ARRAY_LEN(q_rows), 2);
    rng_fill(k_rows, ARRAY_LEN(k_rows), 2);
    rng_fill(v_rows, ARRAY_LEN(v_rows), 1);
    open_levels(false);
    test_attention();
    close_levels();
    open_levels(true);
    test_rough();
    close_levels();
    for (const test_level *l = test_levels(); l->name; l++) {
        for (kv_type type = KV_F32; type < KV_TYPES; type++) {
            check_promises(l->mask, type);
        }
        check_rough_promises(l->mask);
    }
    CHECK_DONE();
}
