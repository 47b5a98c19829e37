/* kv_pool: blocks are taken, shared and given back as a plain list has it, on both shelves and in any order; sizes are those
 * of the layers; memory that is given back to the system is that of free blocks alone. */
#include "model/kv_pool.h"

#include "base/compiler.h"
#include "tests/check.h"

enum { N_BLOCKS = 9, N_WINDOW = 5, N_STEPS = 20000, HELD_MAX = 64 };

static uint32_t next_random(void)
{
    static uint32_t x = 5;
    x = x * 1664525u + 1013904223u;
    return x >> 8;
}

/* Two layers that see everything, with 2 heads of 64; n_sliding of a window of 128, with 1 head of 32. */
static model_config config_of(int32_t n_sliding)
{
    model_config cfg = {.n_attention_layers = 2 + n_sliding, .n_sliding_layers = n_sliding};
    cfg.full = (attention_spec){.n_kv_heads = 2, .head_dim = 64};
    cfg.sliding = (attention_spec){.n_kv_heads = 1, .head_dim = 32, .window = 128};
    return cfg;
}

static kv_pool *pool_of(compute *c, const model_config *cfg, size_t n_blocks, size_t n_window)
{
    kv_pool *p = NULL;
    err_detail d = {0};
    CHECK_OK(kv_pool_create(&p, cfg, KV_F32, false, n_blocks, n_window, c, &d), d);
    return p;
}

static void test_sizes(void)
{
    model_config cfg = config_of(3);
    const size_t full = kv_page_bytes(KV_BF16, SEQ_PAGE_TOKENS, 2, 64),
                 sliding = kv_page_bytes(KV_BF16, SEQ_PAGE_TOKENS, 1, 32);
    CHECK_INT(kv_pool_block_bytes(&cfg, KV_BF16, false), 2 * full);
    CHECK_INT(kv_pool_block_bytes(&cfg, KV_BF16, true), 3 * full);
    CHECK_INT(kv_pool_window_bytes(&cfg, KV_BF16), 3 * sliding);
    cfg.n_attention_layers = 3; /* all of them slide: they have no shelf of their own */
    CHECK_INT(kv_pool_block_bytes(&cfg, KV_BF16, false), 3 * sliding);
    CHECK_INT(kv_pool_block_bytes(&cfg, KV_BF16, true), full + 3 * sliding);
    CHECK_INT(kv_pool_window_bytes(&cfg, KV_BF16), 0);
    CHECK_INT(kv_pool_window_blocks_for(&cfg, 100000), 0);
    cfg = config_of(0);
    CHECK_INT(kv_pool_block_bytes(&cfg, KV_BF16, false), 2 * full);
    CHECK_INT(kv_pool_window_bytes(&cfg, KV_BF16), 0);
    cfg = config_of(1);
    static const struct {
        int32_t n_ctx;
        size_t all, window;
    } CASES[] = {{1, 1, 1},
                 {64, 1, 1},
                 {65, 2, 2},
                 {128, 2, 2},
                 {21 * 64, 21, 21},
                 {22 * 64, 22, 22},
                 {22 * 64 + 1, 23, 22},
                 {100000, 1563, 22}};
    for (size_t i = 0; i < ARRAY_LEN(CASES);
         i++) { /* a window of 128 and 1152 rows are 20 blocks, and one at either end */
        CHECK_INT(kv_pool_blocks_for(CASES[i].n_ctx), CASES[i].all);
        CHECK_INT(kv_pool_window_blocks_for(&cfg, CASES[i].n_ctx), CASES[i].window);
    }
}

static void test_no_memory(compute *c)
{
    const model_config cfg = config_of(2);
    const size_t block = kv_pool_block_bytes(&cfg, KV_F32, false),
                 window = kv_pool_window_bytes(&cfg, KV_F32);
    kv_pool *p = (kv_pool *)&cfg;
    err_detail d = {0};
    char want[128];
    CHECK_INT(kv_pool_create(&p, &cfg, KV_F32, false, SIZE_MAX / 2, 1, c, &d), ERR_NOMEM);
    snprintf(want, sizeof want, "no memory for %zu KV cache blocks (%zu bytes wanted)", SIZE_MAX / 2,
             SIZE_MAX);
    CHECK(!p);
    CHECK_STR(d.text, want);
#if !defined(__SANITIZE_ADDRESS__) &&                                                                        \
    !defined(__SANITIZE_THREAD__) /* who take it for a fault of the program */
    const size_t many = ((size_t)1 << 60) / block;
    CHECK_INT(kv_pool_create(&p, &cfg, KV_F32, false, many, 1, c, &d), ERR_NOMEM);
    snprintf(want, sizeof want, "no memory for %zu KV cache blocks (%zu bytes wanted)", many, many * block);
    CHECK_STR(d.text, want);
    const size_t many_windows = ((size_t)1 << 60) / window;
    CHECK_INT(kv_pool_create(&p, &cfg, KV_F32, false, 1, many_windows, c, &d),
              ERR_NOMEM); /* of the other shelf */
    snprintf(want, sizeof want, "no memory for %zu KV cache blocks (%zu bytes wanted)", many_windows,
             many_windows * window);
    CHECK_STR(d.text, want);
#else
    (void)block;
    (void)window;
#endif
    kv_pool_destroy(NULL);
}

/* Blocks that the test holds, each as often as it has a reference. */
typedef struct holder {
    kv_pool *p;
    void *held[HELD_MAX];
    kv_shelf shelf[HELD_MAX];
    size_t n, n_asked; /* n_asked: for what another one could give up */
    bool gives;
} holder;

static size_t times(const holder *h, const void *block)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++) {
        n += h->held[i] == block;
    }
    return n;
}

/* Blocks of a shelf that are held, each counted once. */
static size_t used(const holder *h, kv_shelf shelf)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++) {
        bool is_first = h->shelf[i] == shelf;
        for (size_t k = 0; k < i; k++) {
            is_first = is_first && h->held[k] != h->held[i];
        }
        n += is_first;
    }
    return n;
}

static void drop(holder *h, size_t i)
{
    kv_pool_release(h->p, h->held[i]);
    h->n--;
    h->held[i] = h->held[h->n];
    h->shelf[i] = h->shelf[h->n];
}

/* Gives up all that is held, one reference at a call. */
static bool reclaim(void *ctx)
{
    holder *h = ctx;
    h->n_asked++;
    if (!h->gives || h->n == 0) {
        return false;
    }
    drop(h, next_random() % h->n);
    return true;
}

/* What is written to a block says whose it is. */
static void check_pool(const holder *h, size_t block_bytes, size_t window_bytes)
{
    const size_t n_blocks = kv_pool_n_blocks(h->p, KV_ALL), n_window = kv_pool_n_blocks(h->p, KV_WINDOW);
    CHECK_INT(kv_pool_n_free(h->p, KV_ALL), n_blocks - used(h, KV_ALL));
    CHECK_INT(kv_pool_n_free(h->p, KV_WINDOW), n_window - used(h, KV_WINDOW));
    for (size_t i = 0; i < h->n; i++) {
        const unsigned char *block = h->held[i];
        const size_t n = h->shelf[i] == KV_ALL ? block_bytes : window_bytes;
        uint64_t first, last;
        memcpy(&first, block, sizeof first);
        memcpy(&last, block + n - sizeof last, sizeof last);
        CHECK(first == (uint64_t)(uintptr_t)block && last == ~first);
        CHECK_INT(kv_pool_is_shared(h->p, block), times(h, block) > 1);
    }
}

static void take(holder *h, kv_shelf shelf, size_t n_bytes)
{
    const size_t n_free = kv_pool_n_free(h->p, shelf);
    h->n_asked = 0;
    void *block = kv_pool_take(h->p, shelf);
    CHECK(n_free > 0 ? h->n_asked == 0 : h->n_asked > 0);
    CHECK(n_free == 0 || block);
    CHECK(block || !h->gives || h->n == 0);
    if (block) {
        CHECK_INT(times(h, block), 0);
        const uint64_t first = (uint64_t)(uintptr_t)block, last = ~first;
        memcpy(block, &first, sizeof first);
        memcpy((unsigned char *)block + n_bytes - sizeof last, &last, sizeof last);
        h->shelf[h->n] = shelf;
        h->held[h->n++] = block;
    }
}

static void test_as_a_list(compute *c)
{
    const model_config cfg = config_of(2);
    const size_t block = kv_pool_block_bytes(&cfg, KV_F32, false),
                 window = kv_pool_window_bytes(&cfg, KV_F32);
    holder h = {.p = pool_of(c, &cfg, N_BLOCKS, N_WINDOW)};
    CHECK(kv_pool_type(h.p) == KV_F32 && !kv_pool_has_mtp(h.p));
    CHECK_INT(kv_pool_n_blocks(h.p, KV_ALL), N_BLOCKS);
    CHECK_INT(kv_pool_n_blocks(h.p, KV_WINDOW), N_WINDOW);
    for (size_t i = 0; i < N_BLOCKS; i++) {
        take(&h, KV_ALL, block);
        CHECK_INT(h.n, i + 1);
    }
    CHECK(kv_pool_take(h.p, KV_ALL) == NULL); /* nobody gives anything up */
    kv_pool_set_reclaim(h.p, reclaim, &h);
    for (int step = 0; step < N_STEPS && !check_failures; step++) {
        const uint32_t what = next_random() % 16;
        const size_t at = h.n ? next_random() % h.n : 0;
        h.gives = what & 1;
        if (what < 6 && h.n < HELD_MAX) {
            take(&h, what < 4 ? KV_ALL : KV_WINDOW, what < 4 ? block : window);
        } else if (what < 9 && h.n > 0 && h.n < HELD_MAX) {
            kv_pool_share(h.p, h.held[at]);
            h.shelf[h.n] = h.shelf[at];
            h.held[h.n++] = h.held[at];
        } else if (what < 15 && h.n > 0) {
            drop(&h, at);
        } else if (step % 10 == 0) {
            kv_pool_trim(h.p); /* what is held stays as it was */
        }
        check_pool(&h, block, window);
    }
    while (h.n > 0) {
        drop(&h, h.n - 1);
    }
    check_pool(&h, block, window);
    kv_pool_destroy(h.p);
}

/* The memory of free blocks reads as zeros behind a trim, from the first whole page of a run of them to the last one. */
static void test_trim(compute *c)
{
    const model_config cfg = config_of(1);
    const size_t block = kv_pool_block_bytes(&cfg, KV_F32, false);
    kv_pool *p = pool_of(c, &cfg, N_BLOCKS, N_WINDOW);
    unsigned char *blocks[N_BLOCKS];
    CHECK(block % 4096 == 0);
    for (size_t i = 0; i < N_BLOCKS; i++) {
        blocks[i] = kv_pool_take(p, KV_ALL);
        memset(blocks[i], 7, block);
    }
    spares_want(kv_pool_spares(p), 1 << 20, 2);
    while (spares_fill(kv_pool_spares(p))) {
    }
    CHECK_INT(kv_pool_spares(p)->n_ready, 2);
    for (size_t i = 0; i < N_BLOCKS; i++) {
        if (i % 4 >= 2) {
            kv_pool_release(p, blocks[i]);
        }
    }
    kv_pool_trim(p);
    CHECK_INT(kv_pool_spares(p)->n_ready, 0);
    for (size_t i = 0; i < N_BLOCKS; i++) {
        size_t n_kept = 0;
        const bool is_free = i % 4 >= 2;
        for (size_t k = 0; k < block; k++) {
            n_kept += blocks[i][k] == 7;
        }
        /* where a run does not begin or end with a page, a part of one stays at either end */
        CHECK(is_free ? n_kept < 4096 : n_kept == block);
        if (!is_free) {
            kv_pool_release(p, blocks[i]);
        }
    }
    kv_pool_destroy(p);
}

int main(void)
{
    compute *c = NULL;
    err_detail d = {0};
    CHECK_OK(compute_create(&c, &(compute_options){.n_threads = 1, .cpu_mask = ~0u}, &d), d);
    test_sizes();
    test_no_memory(c);
    test_as_a_list(c);
    test_trim(c);
    compute_destroy(c);
    CHECK_DONE();
}
