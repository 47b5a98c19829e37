/* The disk cache when what it knows of the folder is no longer so: files that others have put in the place of its own, entries
 * that went meanwhile; and the bounds of what it keeps. */
#include "engine/cache/disk_cache_state.h"

#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "tests/folder.h"
#include "tests/model/tiny.h"
#include "tests/said.h"

enum { N = SEQ_PAGE_TOKENS + 20, SHORT = 40, SCOPE = 1, FACTS = sizeof(disk_entry_facts) };

static tiny t;
static prefix_cache *pc; /* what is saved */
static seq_state *seq;
static uint64_t key[1 + N];
static disk_cache_options options;
static disk_cache *dc;
static char folder[FOLDER_NAME];

static void wake(void *ctx)
{
    (void)ctx;
}

static void open_cache(void)
{
    err_detail d = {0};
    CHECK_OK(disk_cache_open(&dc, &options, &d), d);
}

static bool save(int32_t n, const char *given)
{
    bool ok = false;
    prefix_entry *e = prefix_cache_get(pc, key, 1 + (size_t)n);
    CHECK(e != NULL);
    snprintf(e->given, sizeof e->given, "%s", given);
    CHECK(disk_cache_save(dc, e) && disk_cache_end_save(dc, true, &ok));
    e->given[0] = '\0';
    return ok;
}

/* Loads a hit, by the key or by the name alone; whether it was read. */
static bool load(const disk_hit *hit, bool by_name)
{
    prefix_cache *to = prefix_cache_create(64 << 20, 8, TINY_H);
    seq_snapshot *snapshot = seq_snapshot_alloc(seq, hit->n_tokens, hit->mtp_len);
    disk_load *l =
        by_name ? disk_cache_load_given(dc, hit, SCOPE, snapshot) : disk_cache_load(dc, hit, key, snapshot);
    CHECK(l != NULL);
    while (!disk_load_has_ended(dc, l)) {
        usleep(50);
    }
    const bool is_read = disk_load_finish(l, to);
    CHECK_INT(prefix_cache_get(to, key, 1 + (size_t)hit->n_tokens) != NULL, is_read);
    prefix_cache_destroy(to);
    return is_read;
}

static disk_hit find(void)
{
    disk_hit hit = {0};
    CHECK(disk_cache_find(dc, key, 1 + N, 0, &hit));
    CHECK_INT(hit.n_tokens, N);
    return hit;
}

/* Puts a whole file, with a checksum of its own, in the place of the entry's: one number of it is another. */
static void replace(const disk_hit *hit, size_t at, size_t n, uint64_t more)
{
    static unsigned char payload[1 << 18];
    disk_file f = {.kind = DISK_ENTRY, .id = hit->name, .fingerprint = options.fingerprint};
    err_detail d = {0};
    int fd = -1;
    uint64_t was = 0;
    CHECK_OK(disk_file_open(&fd, dc->dir, &f, false, &d), d);
    CHECK(f.n_bytes <= sizeof payload && at + n <= f.n_bytes);
    const disk_part part = {payload, f.n_bytes};
    CHECK_OK(disk_file_read(fd, &f, &part, 1, &d), d);
    memcpy(&was, payload + at, n);
    was += more;
    memcpy(payload + at, &was, n);
    CHECK_OK(disk_file_write(dc->dir, &f, &part, 1, &d), d);
}

/* An entry that is another one than was found is not used, and goes; with its key, or without. */
static void test_replaced(void)
{
    enum { IDS = FACTS, KEYS = FACTS + 2 * sizeof(disk_id), LAST = KEYS + N * sizeof(uint64_t) };
    static const struct {
        size_t at, n;
        uint64_t more;
        bool is_used;
    } ALL[] = {{0, 4, 0, true},
               {offsetof(disk_entry_facts, n_key), 4, 1, false},
               {offsetof(disk_entry_facts, mtp_len), 4, 1, false},
               {offsetof(disk_entry_facts, own_floats), 8, 1, false},
               {offsetof(disk_entry_facts, block_bytes), 8, 1, false},
               {IDS, 1, 1, false},
               {IDS + 2 * sizeof(disk_id) - 1, 1, 1, false},
               {KEYS, 8, 1, true}, /* the owner, who is not written */
               {KEYS + sizeof(uint64_t), 8, 1, false},
               {LAST, 8, 1, false},
               {LAST + sizeof(uint64_t), 4, 1, true}}; /* the first hidden number */
    open_cache();
    for (size_t i = 0; i < 2 * ARRAY_LEN(ALL); i++) {
        const bool is_used = ALL[i / 2].is_used;
        const uint64_t n_errors = disk_cache_get_stats(dc).n_errors;
        CHECK(save(N, ""));
        const disk_hit hit = find();
        replace(&hit, ALL[i / 2].at, ALL[i / 2].n, ALL[i / 2].more);
        said_begin();
        const bool is_read = load(&hit, i % 2);
        said_end();
        if (is_read != is_used) {
            fprintf(stderr, "  case %zu, %s\n", i / 2, i % 2 ? "by its name" : "by its key");
            CHECK(!"as it should be");
        }
        CHECK_STR(said_err, is_used ? "" : "<4>cache a cached prompt is not the one that its name says\n");
        const disk_cache_stats s = disk_cache_get_stats(dc);
        CHECK_INT(s.n_errors - n_errors, !is_used);
        CHECK_INT(s.n_entries, is_used);
        CHECK_INT(s.bytes > 0, is_used);
        disk_cache_clear(dc, NULL);
    }
    disk_cache_close(dc);
}

/* An entry that went between it was found and it is read: no error, and nothing is read. */
static void test_gone(void)
{
    open_cache();
    CHECK(save(N, "n"));
    const disk_hit hit = find();
    disk_cache_clear(dc, NULL);
    CHECK(!load(&hit, false) && !load(&hit, true));
    const disk_cache_stats s = disk_cache_get_stats(dc);
    CHECK(s.n_errors == 0 && s.n_hits == 0 && s.n_hit_tokens == 0 && s.n_entries == 0);
    disk_cache_close(dc);
}

/* A name that is given once more stays; the entry's file is not written again. */
static void test_named_again(void)
{
    disk_entry e;
    open_cache();
    for (int i = 0; i < 2; i++) {
        CHECK(save(N, "same"));
        CHECK(disk_cache_find_given(dc, SCOPE, "same", &e) && e.n_tokens == N);
        CHECK_INT(disk_cache_get_stats(dc).n_saves, 1);
    }
    disk_cache_close(dc);
    open_cache();
    CHECK(disk_cache_find_given(dc, SCOPE, "same", &e));
    disk_cache_clear(dc, NULL);
    disk_cache_close(dc);
}

/* What is larger than all room is not begun, so that nothing is dropped for it; nor is what has more states of its own than
 * this model's have. */
static void test_too_large(void)
{
    const uint64_t budget = options.budget, block = DISK_HEADER_BYTES + options.block_bytes + 4096;
    const size_t own = options.own_bytes;
    for (uint64_t more = 0; more <= 1; more++) {
        options.budget = 2 * block + own + more; /* two blocks, and what is its own */
        open_cache();
        CHECK(save(SHORT, ""));
        CHECK_INT(disk_cache_get_stats(dc).n_entries, 1);
        save(N, "");
        CHECK_INT(disk_cache_get_stats(dc).n_evictions, more);
        disk_cache_clear(dc, NULL);
        disk_cache_close(dc);
    }
    options.budget = budget;
    options.own_bytes = own - 1;
    open_cache();
    CHECK(!save(N, ""));
    CHECK_INT(disk_cache_get_stats(dc).n_entries, 0);
    disk_cache_close(dc);
    options.own_bytes = own;
}

/* Each prompt is compared with all entries, so there are not more than so many. */
static void test_many(void)
{
    for (uint32_t less = 0; less <= 1; less++) {
        const uint32_t n = LIMIT_CACHED_PREFIXES - less;
        size_t n_entries = 0;
        open_cache();
        pthread_mutex_lock(&dc->lock);
        for (uint32_t i = 0; i < n; i++) {
            disk_id block;
            disk_entry facts = {.n_tokens = 1, .blocks = &block, .n_blocks = 0, .used_ns = 1 + i};
            memcpy(facts.name.bytes, &i, sizeof i);
            CHECK(disk_index_add(dc->index, &facts) != NULL);
        }
        pthread_mutex_unlock(&dc->lock);
        CHECK(save(N, ""));
        const disk_cache_stats s = disk_cache_get_stats(dc);
        CHECK_INT(s.n_entries, LIMIT_CACHED_PREFIXES);
        CHECK_INT(s.n_evictions, 1 - less);
        disk_entry *const *entries = disk_index_entries(dc->index, &n_entries);
        int64_t first = INT64_MAX;
        for (size_t i = 0; i < n_entries; i++) {
            first = entries[i]->used_ns < first ? entries[i]->used_ns : first;
        }
        CHECK_INT(first, 2 - less); /* the oldest one went */
        disk_cache_clear(dc, NULL);
        disk_cache_close(dc);
    }
}

int main(void)
{
    int32_t ids[N];
    log_set_format(LOG_JOURNAL);
    log_set_level(LOG_WARN);
    folder_make(folder);
    t = tiny_open(1, ~0u, KV_F16);
    pc = prefix_cache_create(64 << 20, 8, TINY_H);
    key[0] = SCOPE;
    for (int32_t i = 0; i < N; i++) {
        ids[i] = 100 + i;
        key[1 + i] = (uint64_t)ids[i];
    }
    seq = tiny_seq(&t);
    for (int i = 0; i < 2; i++) {
        const int32_t n = i ? N : SHORT;
        seq_state_reset(seq);
        tiny_run(&t, seq, ids, n, false, false);
        CHECK(prefix_cache_store(pc, key, 1 + (size_t)n, seq, decoder_hidden(t.sc, n - 1)));
    }
    const seq_snapshot_parts parts = seq_snapshot_get_parts(prefix_cache_get(pc, key, 1 + N)->snapshot);
    CHECK_INT(parts.n_blocks, 2);
    options = (disk_cache_options){.dir = folder,
                                   .budget = 64 << 20,
                                   .fingerprint = {{7}},
                                   .block_bytes = parts.block_bytes,
                                   .own_bytes = seq_snapshot_own_bytes(&parts),
                                   .hidden_size = TINY_H,
                                   .wake = wake};
    test_replaced();
    test_gone();
    test_named_again();
    test_too_large();
    test_many();
    seq_state_destroy(seq);
    prefix_cache_destroy(pc);
    tiny_close(&t);
    CHECK_DONE();
}
