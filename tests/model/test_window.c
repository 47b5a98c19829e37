/* Sliding attention: blocks that a window has left are given back, and nothing that is computed
 * depends on it; states are kept with the window's end alone. */
#include "tests/model/tiny.h"

#include "base/log.h"
#include "tests/model/random_checkpoint.h"

enum { WINDOW = 100, N_PROMPT = 700, CHUNK = 50, AT = 500, STEPS = 3, SAID = (STEPS + 1) * TINY_V };

static const char CONFIG[] =
    "{\"model_type\":\"gpt_oss\",\"vocab_size\":1888,\"hidden_size\":64,\"num_attention_heads\":4,"
    "\"num_key_value_heads\":2,\"head_dim\":16,\"max_position_embeddings\":4096,\"num_hidden_layers\":4,"
    "\"num_local_experts\":4,\"num_experts_per_tok\":2,\"intermediate_size\":32,\"sliding_window\":100,"
    "\"rope_parameters\":{\"rope_theta\":10000,\"rope_type\":\"default\"}}";

static int32_t ids[TINY_CTX];

/* Logits behind the prompt, read in chunks, and of a few tokens behind it. */
static void say(const tiny *t, seq_state *s, float *out, int32_t from, int32_t chunk)
{
    for (int32_t at = from; at < N_PROMPT; at += chunk) {
        const int32_t n = N_PROMPT - at < chunk ? N_PROMPT - at : chunk;
        memcpy(out, tiny_run(t, s, ids + at, n, false, false), TINY_V * sizeof *out);
    }
    for (int32_t i = 0; i < STEPS; i++) {
        memcpy(out + (i + 1) * TINY_V, tiny_run(t, s, ids + N_PROMPT + i, 1, true, false),
               TINY_V * sizeof *out);
    }
}

static size_t blocks_taken(const tiny *t)
{
    return kv_pool_n_blocks(t->pool, KV_WINDOW) - kv_pool_n_free(t->pool, KV_WINDOW);
}

/* Read whole, no block is given back before the end: a full cache with a mask. */
static void test_ring_is_full_cache(const tiny *t, float *whole)
{
    float *chunks = malloc(SAID * sizeof *chunks);
    seq_state *s = tiny_seq(t);
    say(t, s, whole, 0, N_PROMPT);
    CHECK(blocks_taken(t) < kv_pool_blocks_for(N_PROMPT));
    seq_state_reset(s);
    CHECK_INT(blocks_taken(t), 0);
    say(t, s, chunks, 0, CHUNK);
    CHECK_INT(blocks_taken(t), 2); /* 603 .. 702 */
    CHECK_INT(kv_pool_n_free(t->pool, KV_ALL), TINY_BLOCKS - kv_pool_blocks_for(N_PROMPT + STEPS));
    CHECK(tiny_difference(chunks, whole, SAID) < 2e-4);
    seq_state_destroy(s);
    free(chunks);
}

/* A snapshot that is to be filled takes all blocks of the window or none: of 162 tokens three, of 163 two. */
static void test_few_blocks(const tiny *t)
{
    err_detail d = {0};
    kv_pool *pool = NULL;
    seq_state *s = NULL;
    CHECK_OK(kv_pool_create(&pool, model_get_config(t->m), KV_F32, true, 4, 2, t->c, &d), d);
    CHECK_OK(seq_state_create(&s, model_get_config(t->m), pool, 500, t->c, &d), d);
    for (int32_t len = 162; len <= 163; len++) {
        seq_snapshot *snap = seq_snapshot_alloc(s, len, 0);
        CHECK_INT(snap != NULL, len == 163);
        CHECK_INT(kv_pool_n_free(pool, KV_WINDOW), len == 163 ? 0 : 2);
        seq_snapshot_free(snap);
        CHECK_INT(kv_pool_n_free(pool, KV_ALL), 4);
        CHECK_INT(kv_pool_n_free(pool, KV_WINDOW), 2);
    }
    seq_state_destroy(s);
    kv_pool_destroy(pool);
}

static void test_snapshot(const tiny *t, const float *whole)
{
    err_detail d = {0};
    float *said = malloc(SAID * sizeof *said);
    seq_state *s = tiny_seq(t), *other = tiny_seq(t);
    for (int32_t at = 0; at < AT; at += CHUNK) {
        (void)tiny_run(t, s, ids + at, CHUNK, false, false);
        if (at == 0) {
            seq_snapshot *early = seq_state_snapshot(s);
            CHECK(seq_snapshot_can_be_cut(early)); /* the window still has everything */
            CHECK_OK(seq_state_restore_prefix(other, early, 20, &d), d);
            seq_snapshot_free(early);
            seq_state_reset(other);
        }
    }
    seq_snapshot *snap = seq_state_snapshot(s);
    CHECK(snap && !seq_snapshot_can_be_cut(snap));
    /* the window of the next row begins in slot 401, in the block from 384 on */
    const int32_t least = 384 + WINDOW - 1;
    CHECK_INT(seq_snapshot_shortest(snap), least);
    CHECK_INT(seq_state_restore_prefix(other, snap, least - 1, &d), ERR_INVALID);
    CHECK_OK(seq_state_restore_prefix(other, snap, least, &d), d);
    say(t, other, said, least, N_PROMPT - least);
    CHECK(tiny_difference(said, whole, SAID) < 2e-4);
    seq_state_reset(other);
    seq_state_destroy(s);
    CHECK_INT(blocks_taken(t), 2);
    CHECK_OK(seq_state_restore(other, snap, &d), d);
    CHECK_INT(blocks_taken(t), 2); /* shared */
    say(t, other, said, AT, CHUNK);
    CHECK(tiny_difference(said, whole, SAID) < 2e-4);
    CHECK_OK(seq_state_restore(other, snap, &d), d); /* what was written meanwhile was a copy */
    say(t, other, said, AT, CHUNK);
    CHECK(tiny_difference(said, whole, SAID) < 2e-4);
    model_config longer = *model_get_config(t->m); /* the same blocks, another window */
    seq_state *another = NULL;
    longer.sliding.window++;
    CHECK_OK(seq_state_create(&another, &longer, t->pool, TINY_CTX, t->c, &d), d);
    CHECK_INT(seq_state_restore(another, snap, &d), ERR_INVALID);
    CHECK_STR(d.text, "the snapshot belongs to another model");
    seq_state_destroy(another);
    seq_snapshot_free(snap);
    seq_state_destroy(other);
    free(said);
}

/* What a sequence needs grows by the full layers alone. */
static void test_memory(const tiny *t)
{
    const model_config *cfg = model_get_config(t->m);
    const size_t row = seq_state_bytes(cfg, KV_F32, false, 8192) - seq_state_bytes(cfg, KV_F32, false, 4096);
    const size_t full = 2 * kv_page_bytes(KV_F32, 4096, 2, 16); /* two of the four layers */
    CHECK(model_config_has_ring(cfg));
    CHECK(row >= full && row < full + full / 8);
}

int main(void)
{
    char dir[64];
    float *whole = malloc(SAID * sizeof *whole);
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    log_set_level(LOG_OFF);
    for (int32_t i = 0; i < TINY_CTX; i++) {
        ids[i] = (int32_t)((uint32_t)i * 2654435761u % TINY_V);
    }
    random_checkpoint_make(dir, CONFIG, RANDOM_ALTERNATING | RANDOM_TEXT_ONLY);
    tiny t = tiny_open_as(&(tiny_options){dir, 2, ~0u, KV_F32, 0, true, false});
    test_ring_is_full_cache(&t, whole);
    test_few_blocks(&t);
    test_snapshot(&t, whole);
    test_memory(&t);
    tiny_close(&t);
    free(whole);
    CHECK_DONE();
}
