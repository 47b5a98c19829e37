/* seq_state: sizes, snapshot and restore give the bits of a straight run, wrong snapshots are
 * refused. */
#include "model/spares.h"
#include "tests/model/tiny.h"

static int32_t ids[TINY_CTX];

/* Snapshots at several lengths, also on the border of a page; restored into the same and into
 * another state. */
static void test_snapshot(const tiny *t)
{
    static const int32_t lens[] = {1, 63, 64, 65, 200};
    float *straight = malloc(2 * TINY_V * sizeof *straight);
    err_detail d = {0};
    for (size_t k = 0; k < ARRAY_LEN(lens); k++) {
        seq_state *a = tiny_seq(t), *b = tiny_seq(t);
        tiny_run(t, a, ids, lens[k], false, false);
        seq_state_set_rope_delta(a, -3);
        seq_snapshot *snap = seq_state_snapshot(a);
        CHECK(snap != NULL);
        CHECK(seq_snapshot_bytes(snap) > sizeof(float) * 4 * 16 * 24);
        /* a block of five rows: the states behind four of them, and more */
        CHECK(seq_state_rows_bytes(model_get_config(t->m), 5) > 4 * sizeof(float) * 4 * 16 * 24);
        memcpy(straight, tiny_run(t, a, ids + lens[k], 40, false, false), TINY_V * sizeof *straight);
        memcpy(straight + TINY_V, tiny_run(t, a, ids + 300, 1, true, false), TINY_V * sizeof *straight);
        tiny_run(t, b, ids + 500, 90, false, false); /* what lay there before must not matter */
        seq_state *targets[2] = {a, b};
        for (int i = 0; i < 2; i++) {
            CHECK_OK(seq_state_restore(targets[i], snap, &d), d);
            CHECK_INT(seq_state_len(targets[i]), lens[k]);
            CHECK_INT(seq_state_rope_delta(targets[i]), -3);
            CHECK_SAME_FLOATS(tiny_run(t, targets[i], ids + lens[k], 40, false, false), straight, TINY_V);
            CHECK_SAME_FLOATS(tiny_run(t, targets[i], ids + 300, 1, true, false), straight + TINY_V, TINY_V);
        }
        seq_snapshot_free(snap);
        seq_state_destroy(a);
        seq_state_destroy(b);
    }
    free(straight);
}

static void test_reset(const tiny *t)
{
    float *first = malloc(TINY_V * sizeof *first);
    seq_state *s = tiny_seq(t);
    memcpy(first, tiny_run(t, s, ids, 100, false, false), TINY_V * sizeof *first);
    tiny_run(t, s, ids + 200, 50, false, false);
    seq_state_reset(s);
    CHECK_INT(seq_state_len(s), 0);
    CHECK_INT(mtp_len(s), 0);
    CHECK_SAME_FLOATS(tiny_run(t, s, ids, 100, false, false), first, TINY_V);
    seq_state_destroy(s);
    free(first);
}

static void test_refusals(const tiny *t)
{
    const model_config *cfg = model_get_config(t->m);
    model_config other = *cfg;
    err_detail d = {0};
    seq_state *s = tiny_seq(t), *small = NULL, *foreign = NULL;
    tiny_run(t, s, ids, 100, false, false);
    seq_snapshot *snap = seq_state_snapshot(s);
    CHECK(snap != NULL);
    CHECK_OK(seq_state_create(&small, cfg, t->pool, 99, t->c, &d), d);
    CHECK_INT(seq_state_restore(small, snap, &d), ERR_LIMIT);
    CHECK(strstr(d.text, "100") && strstr(d.text, "99"));
    other.delta_dv = 16;
    kv_pool *elsewhere = NULL;
    CHECK_OK(kv_pool_create(&elsewhere, &other, KV_F32, true, 4, 4, t->c, &d), d);
    CHECK_OK(seq_state_create(&foreign, &other, elsewhere, 200, t->c, &d), d);
    CHECK_INT(seq_state_restore(foreign, snap, &d), ERR_INVALID);
    CHECK_INT(seq_state_len(foreign), 0);
    for (int i = 0; i < 2;
         i++) { /* the same model with blocks of its own, and another one with the same blocks */
        seq_state *near = NULL;
        kv_pool *own = NULL;
        CHECK_OK(kv_pool_create(&own, cfg, KV_F32, true, 4, 4, t->c, &d), d);
        CHECK_OK(seq_state_create(&near, i ? &other : cfg, i ? t->pool : own, 200, t->c, &d), d);
        CHECK_INT(seq_state_restore(near, snap, &d), ERR_INVALID);
        CHECK_STR(d.text, "the snapshot belongs to another model");
        CHECK_INT(seq_state_len(near), 0);
        seq_state_destroy(near);
        kv_pool_destroy(own);
    }
    CHECK_INT(seq_state_restore_prefix(s, snap, 0, &d), ERR_INVALID);
    CHECK_STR(d.text, "a snapshot of 100 tokens cannot be cut behind 0");
    CHECK_INT(seq_state_restore_prefix(s, snap, 99, &d), ERR_INVALID); /* states are of its end alone */
    CHECK_INT(seq_state_restore_prefix(s, snap, 101, &d), ERR_INVALID);
    CHECK_STR(d.text, "a snapshot of 100 tokens cannot be cut behind 101");
    CHECK_INT(seq_snapshot_shortest(snap), 100);
    CHECK_OK(seq_state_restore_prefix(s, snap, 100, &d), d);
    /* models that differ in one of what a state has: each is another one */
    model_config near[5] = {*cfg, *cfg, *cfg, *cfg, *cfg};
    near[0].n_recurrent_layers--;
    near[1].delta_n_k *= 2; /* longer tails */
    near[2].delta_n_k *= 2;
    near[2].delta_dk /= 2; /* smaller states */
    near[3].n_attention_layers = 2 * (cfg->n_attention_layers + 1) - 1;
    near[3].full.n_kv_heads /= 2; /* twice as many layers in blocks of the same size */
    near[4].full.head_dim *= 2;
    for (size_t i = 0; i < ARRAY_LEN(near); i++) {
        seq_state *other_seq = NULL;
        CHECK_OK(seq_state_create(&other_seq, &near[i], t->pool, 200, t->c, &d), d);
        CHECK_INT(seq_state_restore(other_seq, snap, &d), ERR_INVALID);
        CHECK_STR(d.text, "the snapshot belongs to another model");
        seq_state_destroy(other_seq);
    }
    CHECK_OK(seq_state_restore(s, snap, &d), d);
    seq_snapshot_free(snap);
    seq_snapshot_free(NULL);
    seq_state_destroy(s);
    seq_state_destroy(small);
    seq_state_destroy(foreign);
    kv_pool_destroy(elsewhere);
    seq_state_destroy(NULL);
}

/* What a shared block holds for one sequence is not changed by another; counts of blocks stay
 * true. */
static void test_copy_on_write(const tiny *t)
{
    err_detail d = {0};
    float *straight = malloc(TINY_V * sizeof *straight);
    seq_state *a = tiny_seq(t), *b = tiny_seq(t);
    tiny_run(t, a, ids, 100, false, false); /* two blocks, the second one partial */
    CHECK_INT(kv_pool_n_free(t->pool, KV_ALL), TINY_BLOCKS - 2);
    seq_snapshot *snap = seq_state_snapshot(a);
    CHECK(snap != NULL);
    CHECK_INT(kv_pool_n_free(t->pool, KV_ALL), TINY_BLOCKS - 2);
    CHECK_OK(seq_state_restore(b, snap, &d), d);
    CHECK_INT(kv_pool_n_free(t->pool, KV_ALL), TINY_BLOCKS - 2);
    memcpy(straight, tiny_run(t, a, ids + 100, 20, false, false), TINY_V * sizeof *straight);
    CHECK_INT(kv_pool_n_free(t->pool, KV_ALL), TINY_BLOCKS - 3); /* a has a second block of its own */
    tiny_run(t, b, ids + 400, 20, false, false);                 /* b goes another way */
    CHECK_INT(kv_pool_n_free(t->pool, KV_ALL), TINY_BLOCKS - 4);
    CHECK_OK(seq_state_restore(b, snap, &d), d);
    CHECK_SAME_FLOATS(tiny_run(t, b, ids + 100, 20, false, false), straight, TINY_V);
    seq_state_destroy(a);
    seq_snapshot_free(snap);
    seq_state_reset(b);
    CHECK_INT(kv_pool_n_free(t->pool, KV_ALL), TINY_BLOCKS);
    seq_state_destroy(b);
    free(straight);
}

/* What an earlier owner left in a block is never read, not even NaN. */
static void test_blocks_come_dirty(const tiny *t)
{
    void *blocks[TINY_BLOCKS];
    float *first = malloc(TINY_V * sizeof *first);
    size_t n_bytes = kv_pool_block_bytes(model_get_config(t->m), kv_pool_type(t->pool), true);
    seq_state *s = tiny_seq(t);
    memcpy(first, tiny_run(t, s, ids, 70, false, false), TINY_V * sizeof *first);
    seq_state_reset(s);
    for (size_t i = 0; i < TINY_BLOCKS; i++) {
        blocks[i] = kv_pool_take(t->pool, KV_ALL);
        memset(blocks[i], 0xff, n_bytes); /* NaN in every type */
    }
    CHECK(kv_pool_take(t->pool, KV_ALL) == NULL);
    for (size_t i = 0; i < TINY_BLOCKS; i++) {
        kv_pool_release(t->pool, blocks[i]);
    }
    CHECK_SAME_FLOATS(tiny_run(t, s, ids, 70, false, false), first, TINY_V);
    seq_state_destroy(s);
    free(first);
}

static bool give_one_back(void *ctx)
{
    void **held = ctx;
    if (!held[1]) {
        return false;
    }
    kv_pool_release(held[0], held[1]);
    held[1] = NULL;
    return true;
}

/* An exhausted pool refuses without changing the sequence, unless something can be reclaimed. */
static void test_exhausted(const tiny *t)
{
    err_detail d = {0};
    kv_pool *pool = NULL;
    seq_state *s = NULL;
    CHECK_OK(kv_pool_create(&pool, model_get_config(t->m), kv_pool_type(t->pool), true, 2, 2, t->c, &d), d);
    CHECK_OK(seq_state_create(&s, model_get_config(t->m), pool, 500, t->c, &d), d);
    void *held[2] = {pool, kv_pool_take(pool, KV_ALL)};
    tiny_run(t, s, ids, 64, false, false);
    position p = {64, 64, 64};
    batch_run run = {.seq = s, .n_rows = 1, .exact_rows = true};
    batch b = {.n_rows = 1, .tokens = ids, .positions = &p, .runs = &run, .n_runs = 1};
    CHECK_INT(decoder_forward(t->m, t->c, &b, t->sc, &d), ERR_NOMEM);
    CHECK(strstr(d.text, "--ctx-size") != NULL);
    CHECK_INT(seq_state_len(s), 64);
    kv_pool_set_reclaim(pool, give_one_back, held);
    CHECK_OK(decoder_forward(t->m, t->c, &b, t->sc, &d), d);
    CHECK_INT(seq_state_len(s), 65);
    seq_state_destroy(s);
    CHECK_INT(kv_pool_n_free(pool, KV_ALL), 2);
    kv_pool_destroy(pool);
}

/* A snapshot that is to be filled takes all of its blocks or none. */
static void test_alloc(int32_t len, bool fits)
{
    err_detail d = {0};
    kv_pool *pool = NULL;
    seq_state *s = NULL;
    tiny t = tiny_open_as(
        &(tiny_options){.dir = check_data("tiny"), .n_threads = 1, .cpu_mask = ~0u, .type = KV_F16});
    CHECK_OK(kv_pool_create(&pool, model_get_config(t.m), KV_F16, true, 2, 2, t.c, &d), d);
    CHECK_OK(seq_state_create(&s, model_get_config(t.m), pool, 500, t.c, &d), d);
    seq_snapshot *snap = seq_snapshot_alloc(s, len, 0);
    CHECK_INT(snap != NULL, fits);
    CHECK_INT(kv_pool_n_free(pool, KV_ALL), fits ? 0 : 2);
    seq_snapshot_free(snap);
    CHECK_INT(kv_pool_n_free(pool, KV_ALL), 2);
    seq_state_destroy(s);
    kv_pool_destroy(pool);
    tiny_close(&t);
}

static void test_sizes(const tiny *t)
{
    const model_config *cfg = model_get_config(t->m);
    model_config huge = *cfg;
    err_detail d = {0};
    const size_t pointers = 3 * sizeof(void *),      /* to a block on either shelf, and to a page */
        page_rows = (size_t)SEQ_PAGE_TOKENS * 2 * 2; /* k and v, two heads */
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        static const size_t row_bytes[KV_TYPES] = {32 * 4, 32 * 2, 32 * 2, 32 + 4, 16 + 4};
        size_t a = seq_state_bytes(cfg, type, false, 64), b = seq_state_bytes(cfg, type, false, 65),
               c = seq_state_bytes(cfg, type, true, 65);
        CHECK_INT(b - a, page_rows * row_bytes[type] + pointers); /* one more page of one attention layer */
        CHECK_INT(kv_pool_block_bytes(cfg, type, false), page_rows * row_bytes[type]);
        CHECK_INT(kv_pool_block_bytes(cfg, type, true), 2 * page_rows * row_bytes[type]);
        CHECK_INT(c - b,
                  2 * (page_rows * row_bytes[type] + sizeof(void *))); /* two pages of one layer more */
    }
    huge.n_attention_layers = 256;
    huge.full.n_kv_heads = 4096;
    huge.full.head_dim = 4096;
    kv_pool *pool = NULL;
    CHECK_INT(kv_pool_create(&pool, &huge, KV_F32, false, kv_pool_blocks_for(INT32_MAX),
                             kv_pool_blocks_for(INT32_MAX), t->c, &d),
              ERR_NOMEM);
    CHECK(strstr(d.text, "bytes") != NULL);
    CHECK(pool == NULL);
    /* 256 layers of 4096 heads of 4096 numbers: 64 bits hold the bytes of so many blocks, and of twice as many no more */
    const size_t block = kv_pool_block_bytes(&huge, KV_F32, false);
    CHECK_INT(block, (size_t)256 * 2 * SEQ_PAGE_TOKENS * 4096 * 4096 * 4);
    CHECK_INT(seq_state_bytes(&huge, KV_F32, false, 1 << 23) / block, (1 << 23) / SEQ_PAGE_TOKENS);
    huge.full.n_kv_heads = 1 << 20;
    CHECK(seq_state_bytes(&huge, KV_F32, false, INT32_MAX) == SIZE_MAX);
    CHECK(seq_state_bytes(&huge, KV_F32, false, 64) < SIZE_MAX / 2);
}

/* Memory is kept ready for copies of states, and none where a model has no states. */
static void test_spares(const tiny *t)
{
    const model_config *cfg = model_get_config(t->m);
    model_config plain = *cfg;
    seq_state *with = tiny_seq(t), *without = NULL;
    spares *ready = kv_pool_spares(t->pool);
    err_detail d = {0};
    plain.n_recurrent_layers = 0;
    CHECK_OK(seq_state_create(&without, &plain, t->pool, TINY_CTX, t->c, &d), d);
    seq_state_keep_spares(with, 3);
    CHECK_INT(ready->n_wanted, 3);
    CHECK(ready->n_bytes > sizeof(float) * 4 * 16 * 24);
    seq_state_keep_spares(without, 3);
    CHECK_INT(ready->n_wanted, 0);
    seq_state_destroy(with);
    seq_state_destroy(without);
}

int main(void)
{
    CHECK_INT(tiny_ids(ids, TINY_CTX), 730);
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        tiny t = tiny_open(2, ~0u, type);
        CHECK_INT(kv_pool_type(t.pool), type);
        test_snapshot(&t);
        test_reset(&t);
        test_refusals(&t);
        test_copy_on_write(&t);
        test_blocks_come_dirty(&t);
        test_exhausted(&t);
        test_sizes(&t);
        test_spares(&t);
        tiny_close(&t);
    }
    test_alloc(128, true);
    test_alloc(129, false);
    CHECK_DONE();
}
