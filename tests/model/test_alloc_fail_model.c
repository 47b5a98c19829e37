/* Every allocation of opening a checkpoint, describing it and making a sequence ready fails once. */
#include "tests/alloc_fail.h"
#include "tests/model/tiny.h"

#include "base/log.h"
#include "model/importance.h"
#include "model/probe.h"
#include "model/sampler.h"

enum { MAX_POINTS = 20000, MIN_POINTS = 15 };

static err_code open_and_close(void *context)
{
    (void)context;
    model *m = NULL;
    err_code err = model_open(&m, check_data("tiny"), &(model_open_options){.weights_only = true}, NULL);
    CHECK((m != NULL) == (err == ERR_OK));
    model_close(m);
    return err;
}

/* In huge pages where there is room; where there is none the weights stay where they are. */
static err_code open_copied(void *context)
{
    const tiny *t = context;
    model *m = NULL;
    const err_code err = model_open(&m, check_data("tiny"),
                                    &(model_open_options){.weights_only = true, .huge_pages = t->c}, NULL);
    CHECK((m != NULL) == (err == ERR_OK));
    model_close(m);
    return err;
}

static err_code describe(void *context)
{
    model_probe probe;
    (void)context;
    return model_probe_at(&probe, check_data("tiny"), NULL);
}

/* What names a model is the same, or there is none. OpenSSL keeps some memory of what failed: it is not counted. */
static void name(const tiny *t)
{
    uint8_t known[HASH_BYTES], found[HASH_BYTES];
    size_t n_failed = 0;
    CHECK_INT(model_fingerprint(t->m, known, NULL), ERR_OK);
    for (size_t n = 1; n < 100; n++) {
        alloc_fail_at(n);
        const err_code err = model_fingerprint(t->m, found, NULL);
        alloc_fail_at(0);
        CHECK(err == ERR_OK || err == ERR_NOMEM);
        CHECK(err || memcmp(found, known, sizeof found) == 0);
        n_failed += err != ERR_OK;
    }
    CHECK(n_failed > 5);
}

static err_code make_ready(void *context)
{
    const tiny *t = context;
    const model_config *cfg = model_get_config(t->m);
    seq_state *s = NULL;
    seq_snapshot *snap = NULL;
    decoder_scratch *sc = NULL;
    mtp_scratch *ms = NULL;
    sampler *sm = NULL;
    importance *im = NULL;
    sampler_params params = {.temperature = 1, .top_p = 1, .repetition_penalty = 1};
    kv_pool *pool = NULL;
    err_code err = kv_pool_create(&pool, cfg, KV_F16, true, 2, 2, t->c, NULL);
    if (!err) {
        err = seq_state_create(&s, cfg, pool, 100, t->c, NULL);
    }
    if (!err) {
        err_detail d = {0};
        char wanted[64];
        snprintf(wanted, sizeof wanted, "(%zu bytes wanted)", seq_state_rows_bytes(cfg, 4));
        err = seq_state_reserve_rows(s, 4, &d);
        CHECK(!err || strstr(d.text, wanted));
    }
    if (!err) {
        snap = seq_state_snapshot(s);
        err = snap ? ERR_OK : ERR_NOMEM;
    }
    if (!err) {
        err = decoder_scratch_create(&sc, t->m, t->c, 10, 2, NULL);
    }
    if (!err) {
        err = mtp_scratch_create(&ms, t->m, t->c, 10, 2, NULL);
    }
    if (!err) {
        err = sampler_create(&sm, &params, cfg->vocab_size, cfg->vocab_size, NULL);
    }
    if (!err) {
        err_detail d = {0};
        char wanted[64];
        snprintf(wanted, sizeof wanted, "(%zu bytes wanted)", importance_bytes(cfg, 100));
        err = importance_create(&im, cfg, t->c, 100, &d);
        CHECK((im != NULL) == (err == ERR_OK) && (!err || strstr(d.text, wanted)));
    }
    importance_destroy(im);
    sampler_destroy(sm);
    mtp_scratch_destroy(ms);
    decoder_scratch_destroy(sc);
    seq_snapshot_free(snap);
    seq_state_destroy(s);
    kv_pool_destroy(pool);
    return err;
}

int main(void)
{
    log_set_level(LOG_OFF);
    tiny t = tiny_open(1, ~0u, KV_BF16);
    size_t n_open = alloc_fail_each(open_and_close, NULL, MAX_POINTS),
           n_copied = alloc_fail_each(open_copied, &t, MAX_POINTS),
           n_described = alloc_fail_each(describe, NULL, MAX_POINTS),
           n_ready = alloc_fail_each(make_ready, &t, MAX_POINTS);
    printf("%zu, %zu, %zu and %zu allocations\n", n_open, n_copied, n_described, n_ready);
    name(&t);
    CHECK(n_open >= MIN_POINTS);
    CHECK(n_copied > n_open);
    CHECK(n_described >= MIN_POINTS);
    CHECK(n_ready >= MIN_POINTS);
    tiny_close(&t);
    CHECK_DONE();
}
