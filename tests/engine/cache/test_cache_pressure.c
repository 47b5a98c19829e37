/* cache_pressure: entries go while the system is short of memory, and only then; what goes is memory. */
#include "engine/cache/cache_pressure.h"

#include "base/clock.h"
#include "base/log.h"
#include "tests/model/tiny.h"
#include "tests/said.h"
#include "tests/system_files.h"

static const char PLENTY[] = "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n";
static const char SHORT[] = "MemTotal: 8388608 kB\nMemAvailable: 1024 kB\n";

static const char SHRINKS[] =
    "the system is short of memory (1 MiB are left, 25 % of the time is lost waiting): "
    "the caches shrink from 6 prompts and 6 images\n";

static int32_t ids[TINY_CTX];

/* Looks, and tells what is logged. */
static const char *look(cache_pressure *p, const char *meminfo)
{
    system_file(p->root, "/proc/meminfo", meminfo);
    p->next_ns = 0;
    said_begin();
    const int64_t before = clock_ns();
    cache_pressure_look(p);
    const int64_t since = p->next_ns - CACHE_PRESSURE_MS * 1000000LL;
    said_end();
    CHECK(before <= since && since <= clock_ns());
    return said_err;
}

int main(void)
{
    enum { N = 6, WIDTH = 4 };
    static const char STALLED[] = "some avg10=90.00 avg60=0.00 avg300=0.00 total=1\n"
                                  "full avg10=25.00 avg60=0.00 avg300=0.00 total=1\n";
    char root[FOLDER_NAME];
    folder_make(root);
    log_set_format(LOG_JOURNAL);
    log_set_level(LOG_INFO);
    CHECK_INT(tiny_ids(ids, TINY_CTX), 730);
    tiny t = tiny_open(1, ~0u, KV_F16);
    prefix_cache *pc = prefix_cache_create(64 << 20, 8, TINY_H);
    vision_cache *vc = vision_cache_create(1 << 20, WIDTH);
    seq_state *s = tiny_seq(&t);
    for (int i = 0; i < N; i++) {
        uint64_t key[21] = {0};
        uint8_t name[HASH_BYTES] = {(uint8_t)i};
        float rows[WIDTH] = {0};
        patches one = {.t = 1, .h = 1, .w = 1, .n_tokens = 1};
        for (int j = 1; j <= 20; j++) {
            key[j] = (uint64_t)ids[20 * i + j];
        }
        seq_state_reset(s);
        tiny_run(&t, s, ids + 20 * i + 1, 20, false, false);
        CHECK(prefix_cache_store(pc, key, 21, s, decoder_hidden(t.sc, 0)));
        vision_cache_store(vc, name, &one, 1, rows);
    }
    spares_want(kv_pool_spares(t.pool), 4096, 1);
    CHECK(spares_fill(kv_pool_spares(t.pool)));

    cache_pressure p = {.prefixes = pc, .images = vc, .pool = t.pool, .root = root};
    CHECK_STR(look(&p, PLENTY), "");
    CHECK(!p.is_short);
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, N);
    system_file(root, "/proc/pressure/memory", STALLED);
    CHECK_HAS(look(&p, SHORT), SHRINKS); /* a quarter, rounded up */
    CHECK(p.is_short);
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, N - 2);
    CHECK_INT(vision_cache_get_stats(vc).n_entries, N - 2);
    CHECK_INT(kv_pool_spares(t.pool)->n_ready, 0);
    cache_pressure_look(&p); /* too early */
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, N - 2);
    CHECK_STR(look(&p, SHORT), ""); /* it is said once */
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, N - 3);
    CHECK_INT(vision_cache_get_stats(vc).n_entries, N - 3);
    system_file(root, "/proc/pressure/memory", "");
    CHECK_HAS(look(&p, PLENTY), "the system has memory again: 4096 MiB\n");
    CHECK(!p.is_short);
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, N - 3);

    /* What is left is whole: the state goes on as before. */
    uint64_t last[21] = {0};
    for (int j = 1; j <= 20; j++) {
        last[j] = (uint64_t)ids[20 * (N - 1) + j];
    }
    float straight[TINY_V];
    err_detail d = {0};
    int32_t n = 0;
    memcpy(straight, tiny_run(&t, s, ids + 20 * N + 1, 5, false, false), sizeof straight);
    const prefix_entry *hit = prefix_cache_find(pc, last, 21, &n);
    CHECK(hit && n == 20);
    CHECK_OK(seq_state_restore(s, prefix_entry_snapshot(hit), &d), d);
    CHECK_SAME_FLOATS(tiny_run(&t, s, ids + 20 * N + 1, 5, false, false), straight, TINY_V);

    for (int i = 0; i < 8; i++) {
        look(&p, SHORT);
    }
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 0);
    CHECK_INT(vision_cache_get_stats(vc).n_entries, 0);
    seq_state_destroy(s);
    prefix_cache_destroy(pc);
    vision_cache_destroy(vc);
    cache_pressure none = {.pool = t.pool, .root = root};
    look(&none, SHORT); /* a server without caches */
    tiny_close(&t);
    CHECK_DONE();
}
