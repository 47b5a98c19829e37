/* Memory that is kept ready: as many pieces of one size as are wanted, filled step by step, handed out
 * and taken back; other sizes come and go. */
#include "model/kv_pool.h"

#include <string.h>

#include "tests/check.h"

enum { BYTES = 5 << 20 };

static void test_nothing_wanted(void)
{
    spares s = {0};
    CHECK(!spares_fill(&s));
    unsigned char *memory = spares_take(&s, BYTES);
    CHECK(memory != NULL);
    memset(memory, 1, BYTES);
    spares_give(&s, memory, BYTES);
    spares_give(&s, NULL, BYTES);
    CHECK_INT(s.n_ready, 0);
    spares_drop(&s);
}

static void test_ready(void)
{
    spares s = {0};
    int n_steps = 0;
    spares_want(&s, BYTES, 2);
    while (spares_fill(&s)) {
        n_steps++;
    }
    CHECK_INT(n_steps, 2 * 3); /* of 2 MiB each */
    CHECK_INT(s.n_ready, 2);
    unsigned char *larger = spares_take(&s, BYTES + 1); /* what is ready is of one size */
    memset(larger, 1, BYTES + 1);
    CHECK_INT(s.n_ready, 2);
    spares_give(&s, larger, BYTES + 1);
    unsigned char *a = spares_take(&s, BYTES), *b = spares_take(&s, BYTES), *c = spares_take(&s, BYTES);
    unsigned char *other = spares_take(&s, 100);
    CHECK(a && b && c && other && a != b && b != c);
    CHECK_INT(s.n_ready, 0);
    memset(a, 1, BYTES);
    memset(c, 1, BYTES);
    spares_give(&s, other, 100);
    CHECK_INT(s.n_ready, 0);
    CHECK(spares_fill(&s)); /* a piece is begun ... */
    spares_give(&s, a, BYTES);
    spares_give(&s, b, BYTES);
    spares_give(&s, c, BYTES);
    CHECK_INT(s.n_ready, 2);
    CHECK(!spares_fill(&s));            /* ... and not needed any more */
    CHECK(spares_take(&s, BYTES) == b); /* what was written last */
    spares_give(&s, b, BYTES);
    spares_drop(&s); /* and no leak */
}

/* The pool of blocks frees what it keeps ready. */
static void test_in_a_pool(void)
{
    err_detail d = {0};
    compute *c = NULL;
    kv_pool *pool = NULL;
    const compute_options one = {.n_threads = 1};
    const model_config cfg = {
        .n_layers = 1, .n_attention_layers = 1, .full = {.n_kv_heads = 1, .head_dim = 32}};
    CHECK_OK(compute_create(&c, &one, &d), d);
    CHECK_OK(kv_pool_create(&pool, &cfg, KV_F32, false, 1, 1, c, &d), d);
    spares_want(kv_pool_spares(pool), BYTES, 2);
    while (spares_fill(kv_pool_spares(pool))) {
    }
    CHECK(kv_pool_spares(pool)->n_ready == 2);
    kv_pool_trim(pool);
    CHECK_INT(kv_pool_spares(pool)->n_ready, 0);
    while (spares_fill(kv_pool_spares(pool))) {
    }
    kv_pool_destroy(pool); /* and no leak */
    compute_destroy(c);
}

int main(void)
{
    test_nothing_wanted();
    test_ready();
    test_in_a_pool();
    CHECK_DONE();
}
