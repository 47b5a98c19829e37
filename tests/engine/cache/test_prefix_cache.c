/* prefix_cache: the longest prefix wins, scopes and media stay apart, the budget holds, blocks come
 * back. */
#include "engine/cache/prefix_cache.h"

#include "tests/model/tiny.h"

enum { KEY_MAX = 512 };

static int32_t ids[TINY_CTX];
static uint64_t key[KEY_MAX];

static const prefix_entry *find(prefix_cache *pc, size_t n_key)
{
    int32_t n = 0;
    const prefix_entry *hit = prefix_cache_find(pc, key, n_key, &n);
    CHECK_INT(n, hit ? prefix_entry_len(hit) : 0);
    CHECK_INT(prefix_cache_peek(pc, key, n_key), n);
    return hit;
}

/* key[0] is the scope; the tokens follow. */
static void make_key(uint64_t scope, const int32_t *tokens, size_t n)
{
    key[0] = scope;
    for (size_t i = 0; i < n; i++) {
        key[1 + i] = (uint64_t)tokens[i];
    }
}

static void test_longest_prefix(const tiny *t)
{
    prefix_cache *pc = prefix_cache_create(64 << 20, 8, TINY_H);
    seq_state *s = tiny_seq(t), *other = tiny_seq(t);
    err_detail d = {0};
    float straight[TINY_V];
    make_key(0, ids, 200);
    CHECK(find(pc, 201) == NULL);
    tiny_run(t, s, ids, 50, false, false);
    CHECK(prefix_cache_store(pc, key, 51, s, decoder_hidden(t->sc, 49)));
    tiny_run(t, s, ids + 50, 70, false, false);
    CHECK(prefix_cache_store(pc, key, 121, s, decoder_hidden(t->sc, 69)));
    CHECK(prefix_cache_store(pc, key, 121, s, decoder_hidden(t->sc, 69))); /* the same again: nothing new */
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 2);

    const prefix_entry *hit = find(pc, 201);
    CHECK(hit && prefix_entry_len(hit) == 120);
    CHECK(find(pc, 120) && prefix_entry_len(find(pc, 120)) == 50);
    CHECK(find(pc, 50) == NULL); /* a state cannot be cut */
    memcpy(straight, tiny_run(t, s, ids + 120, 30, false, false), sizeof straight);
    CHECK_OK(seq_state_restore(other, prefix_entry_snapshot(hit), &d), d);
    CHECK_SAME_FLOATS(tiny_run(t, other, ids + 120, 30, false, false), straight, TINY_V);

    key[100]++; /* an edit in the middle: the entry before it is still good */
    hit = find(pc, 201);
    CHECK(hit && prefix_entry_len(hit) == 50);
    make_key(7, ids, 200); /* another scope */
    CHECK(find(pc, 201) == NULL);
    prefix_cache_clear(pc);
    make_key(0, ids, 200);
    CHECK(find(pc, 201) == NULL);
    CHECK_INT(prefix_cache_get_stats(pc).bytes, 0);
    seq_state_destroy(s);
    seq_state_destroy(other);
    prefix_cache_destroy(pc);
}

/* What an entry weighs is all that it holds; one that is there already is not there twice. */
static void test_one_entry(const tiny *t)
{
    prefix_cache *pc = prefix_cache_create(64 << 20, 8, TINY_H);
    seq_state *s = tiny_seq(t);
    float hidden[TINY_H] = {0};
    make_key(0, ids, 200);
    tiny_run(t, s, ids, 50, false, false);
    CHECK(!prefix_cache_add(pc, key, 51, NULL, hidden));
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 0);
    CHECK(prefix_cache_add(pc, key, 51, seq_state_snapshot(s), hidden));
    const size_t one = prefix_cache_get_stats(pc).bytes;
    seq_snapshot *again = seq_state_snapshot(s);
    CHECK(one > seq_snapshot_bytes(again) + 51 * sizeof *key + sizeof hidden);
    CHECK(prefix_cache_add(pc, key, 51, again, hidden));
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 1);
    CHECK_INT(prefix_cache_get_stats(pc).bytes, one);
    seq_state_destroy(s);
    prefix_cache_destroy(pc);
}

static void test_least_recently_used(const tiny *t)
{
    seq_state *s = tiny_seq(t);
    prefix_cache *pc = prefix_cache_create(64 << 20, 3, TINY_H);
    for (int32_t first = 0; first < 4; first++) { /* four prompts of 20 tokens, three places */
        seq_state_reset(s);
        tiny_run(t, s, ids + 20 * first, 20, false, false);
        make_key(0, ids + 20 * first, 20);
        CHECK(prefix_cache_store(pc, key, 21, s, decoder_hidden(t->sc, 19)));
        if (first == 2) {
            make_key(0, ids, 20); /* the oldest is used again, so the second goes */
            CHECK(find(pc, 21) != NULL);
        }
    }
    CHECK_INT(prefix_cache_get_stats(pc).n_evictions, 1);
    for (int32_t first = 0; first < 4; first++) {
        make_key(0, ids + 20 * first, 20);
        CHECK_INT(prefix_cache_has(pc, key, 21), first != 1);
    }
    CHECK(prefix_cache_evict_one(pc));
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 2);
    size_t one = prefix_cache_get_stats(pc).bytes / 2;
    prefix_cache_destroy(pc);

    pc = prefix_cache_create(2 * one + one / 2, 8, TINY_H); /* room for two by bytes */
    for (int32_t first = 0; first < 4; first++) {
        make_key(0, ids + 20 * first, 20);
        CHECK(prefix_cache_store(pc, key, 21, s, decoder_hidden(t->sc, 0)));
        CHECK(prefix_cache_get_stats(pc).bytes <= 2 * one + one / 2);
    }
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 2);
    prefix_cache_destroy(pc);

    pc = prefix_cache_create(one / 2, 8, TINY_H); /* not even one */
    CHECK(!prefix_cache_store(pc, key, 21, s, decoder_hidden(t->sc, 0)));
    CHECK(!prefix_cache_evict_one(pc));
    prefix_cache_destroy(pc);
    prefix_cache_destroy(NULL);
    seq_state_destroy(s);
}

/* What is forgotten is not found from then on, though its memory goes with the next sweep. */
static void test_forgotten(const tiny *t)
{
    prefix_cache *pc = prefix_cache_create(64 << 20, 8, TINY_H);
    seq_state *s = tiny_seq(t);
    const uint64_t one = 1;
    tiny_run(t, s, ids, 20, false, false);
    for (uint64_t scope = 0; scope < 3; scope++) {
        make_key(scope, ids, 100);
        CHECK(prefix_cache_store(pc, key, 21, s, decoder_hidden(t->sc, 19)));
    }
    const size_t three = prefix_cache_get_stats(pc).bytes;
    for (int all = 0; all < 2; all++) {
        prefix_cache_forget(pc, all ? NULL : &one);
        for (uint64_t scope = 0; scope < 3; scope++) {
            make_key(scope, ids, 100);
            CHECK_INT(find(pc, 101) != NULL, !all && scope != one);
        }
        prefix_cache_sweep(pc);
        CHECK_INT(prefix_cache_get_stats(pc).n_entries, all ? 0 : 2);
        CHECK_INT(prefix_cache_get_stats(pc).bytes, all ? 0 : three / 3 * 2);
    }
    seq_state_destroy(s);
    prefix_cache_destroy(pc);
}

int main(void)
{
    CHECK_INT(tiny_ids(ids, TINY_CTX), 730);
    tiny t = tiny_open(1, ~0u, KV_F16);
    test_longest_prefix(&t);
    test_one_entry(&t);
    test_least_recently_used(&t);
    test_forgotten(&t);
    tiny_close(&t); /* every block was given back */
    CHECK_DONE();
}
