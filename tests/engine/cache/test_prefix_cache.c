/* prefix_cache: the longest prefix wins, scopes and media stay apart, the budget holds, blocks come
 * back. */
#include "engine/cache/prefix_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

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
        make_key(one, ids, 100); /* what is stored before the sweep is forgotten, too */
        CHECK(prefix_cache_store(pc, key, 21, s, decoder_hidden(t->sc, 19)));
        prefix_cache_sweep(pc);
        CHECK_INT(prefix_cache_get_stats(pc).n_entries, all ? 0 : 2);
        CHECK_INT(prefix_cache_get_stats(pc).bytes, all ? 0 : three / 3 * 2);
    }
    static const uint64_t others[] = {0, 2, 2};
    for (size_t i = 0; i < 3; i++) {
        prefix_cache_forget(pc, &others[i]);
    }
    for (uint64_t scope = 0; scope < 3; scope++) {
        make_key(scope, ids, 100);
        CHECK(prefix_cache_store(pc, key, 21, s, decoder_hidden(t->sc, 19)));
    }
    prefix_cache_sweep(pc);
    for (uint64_t scope = 0; scope < 3; scope++) {
        make_key(scope, ids, 100);
        CHECK_INT(find(pc, 101) != NULL, scope == one);
    }
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 1);
    seq_state_destroy(s);
    prefix_cache_destroy(pc);
}

/* Three prompts of 20 tokens, in this order; key is made for the asked one. */
static prefix_entry *get(prefix_cache *pc, int32_t i)
{
    make_key(0, ids + 20 * i, 20);
    return prefix_cache_get(pc, key, 21);
}

static prefix_cache *with_three(const tiny *t, seq_state *s)
{
    prefix_cache *pc = prefix_cache_create(64 << 20, 8, TINY_H);
    for (int32_t i = 0; i < 3; i++) {
        seq_state_reset(s);
        tiny_run(t, s, ids + 20 * i, 20, false, false);
        make_key(0, ids + 20 * i, 20);
        CHECK(prefix_cache_store(pc, key, 21, s, decoder_hidden(t->sc, 19)));
    }
    return pc;
}

static void count_drop(void *ctx, const prefix_entry *e)
{
    (void)e;
    ++*(int *)ctx;
}

/* Which entry is written to the second tier next, and which goes first when room is wanted. */
static void test_second_tier(const tiny *t)
{
    seq_state *s = tiny_seq(t);
    prefix_cache *pc = with_three(t, s);
    int n_dropped = 0;
    prefix_cache_on_drop(pc, count_drop, &n_dropped);
    prefix_entry *e[] = {get(pc, 0), get(pc, 1), get(pc, 2)};
    CHECK(e[0] && e[1] && e[2] && e[0] != e[1] && e[1] != e[2]);
    CHECK(prefix_cache_next_unsaved(pc, true) == e[2]);
    CHECK(prefix_cache_next_unsaved(pc, false) == e[0]);
    snprintf(e[1]->given, sizeof e[1]->given, "kept"); /* who waits for a name comes first */
    CHECK(prefix_cache_next_unsaved(pc, true) == e[1] && prefix_cache_next_unsaved(pc, false) == e[1]);
    snprintf(e[0]->given, sizeof e[0]->given, "kept too");
    CHECK(prefix_cache_next_unsaved(pc, true) == e[1] && prefix_cache_next_unsaved(pc, false) == e[0]);
    e[0]->given[0] = e[1]->given[0] = '\0';
    e[2]->saved = PREFIX_BEING_SAVED;
    CHECK(prefix_cache_next_unsaved(pc, true) == e[1]);
    e[0]->is_dead = true;
    CHECK(prefix_cache_next_unsaved(pc, false) == e[1]);
    e[1]->saved = PREFIX_SAVED;
    CHECK(prefix_cache_next_unsaved(pc, true) == NULL && prefix_cache_next_unsaved(pc, false) == NULL);
    e[0]->is_dead = false;
    CHECK(prefix_cache_evict_one(pc)); /* what is saved, though it was used later than the first */
    CHECK(get(pc, 0) == e[0] && !get(pc, 1) && get(pc, 2) == e[2]);
    CHECK_INT(n_dropped, 0);
    CHECK(prefix_cache_evict_one(pc));
    CHECK(!get(pc, 0) && get(pc, 2) == e[2]);
    CHECK_INT(n_dropped, 0);
    CHECK(prefix_cache_evict_one(pc)); /* it is being saved */
    CHECK_INT(n_dropped, 1);
    prefix_cache_destroy(pc);

    pc = with_three(t, s);
    prefix_cache_on_drop(pc, count_drop, &n_dropped);
    get(pc, 1)->given[0] = 'n';
    prefix_cache_destroy(pc);
    CHECK_INT(n_dropped, 2);
    seq_state_destroy(s);
}

/* What was read back counts as saved, and is not there twice. */
static void test_insert(const tiny *t)
{
    seq_state *s = tiny_seq(t);
    prefix_cache *pc = prefix_cache_create(64 << 20, 8, TINY_H);
    tiny_run(t, s, ids, 20, false, false);
    make_key(0, ids, 20);
    for (int pass = 0; pass < 2; pass++) {
        float *hidden = malloc(TINY_H * sizeof *hidden);
        hidden[0] = 5.0f;
        prefix_cache_insert(pc, key, 21, seq_state_snapshot(s), pass ? NULL : hidden);
        if (pass) {
            free(hidden);
        }
        const prefix_entry *e = get(pc, 0);
        CHECK(e && e->saved == PREFIX_SAVED && prefix_entry_hidden(e) && prefix_entry_hidden(e)[0] == 5.0f);
        CHECK_INT(prefix_cache_get_stats(pc).n_entries, 1);
        CHECK_INT(prefix_cache_get_stats(pc).n_stores, 1);
    }
    CHECK(prefix_cache_next_unsaved(pc, true) == NULL);
    make_key(0, ids, 30);
    CHECK(prefix_cache_get(pc, key, 31) == get(pc, 0)); /* the longest prefix */
    make_key(0, ids, 30);
    tiny_run(t, s, ids + 20, 10, false, false);
    prefix_cache_insert(pc, key, 31, seq_state_snapshot(s), NULL);
    const prefix_entry *longer = prefix_cache_get(pc, key, 31);
    CHECK(longer && prefix_entry_len(longer) == 30 && !prefix_entry_hidden(longer));
    int32_t n = 0;
    CHECK(prefix_cache_find(pc, key, 31, &n) == longer && n == 30);
    CHECK(prefix_cache_find(pc, key, 1, &n) == NULL && n == 0);
    const prefix_cache_stats st = prefix_cache_get_stats(pc);
    CHECK(st.n_queries == 2 && st.n_hits == 1 && st.n_hit_tokens == 30);
    /* room for exactly so many bytes, then for one more, then for more than there ever is */
    const size_t budget = (size_t)64 << 20;
    CHECK(prefix_cache_make_room(pc, budget - st.bytes));
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 2);
    CHECK(!prefix_cache_make_room(pc, budget + 1));
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 2);
    CHECK(prefix_cache_make_room(pc, budget - st.bytes + 1));
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 1);
    CHECK(prefix_cache_make_room(pc, budget));
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 0);
    prefix_cache_destroy(pc);
    seq_state_destroy(s);
}

typedef struct listed {
    const prefix_entry *e[8];
    int n;
} listed;

static void note(void *ctx, const prefix_entry *e)
{
    listed *l = ctx;
    l->e[l->n++] = e;
}

static bool is_that(void *ctx, const prefix_entry *e)
{
    return e == ctx;
}

/* Of a scope, the last used first; those that are picked are forgotten. */
static void test_list(const tiny *t)
{
    seq_state *s = tiny_seq(t);
    prefix_cache *pc = with_three(t, s);
    make_key(1, ids + 40, 20);
    CHECK(prefix_cache_store(pc, key, 21, s, decoder_hidden(t->sc, 19)));
    prefix_entry *theirs = prefix_cache_get(pc, key, 21);
    prefix_entry *e[] = {get(pc, 0), get(pc, 1), get(pc, 2)};
    CHECK(find(pc, 21) == e[2]);
    make_key(0, ids, 20);
    CHECK(find(pc, 21) == e[0]);
    listed l = {.n = 0};
    prefix_cache_list(pc, 0, note, &l);
    CHECK(l.n == 3 && l.e[0] == e[0] && l.e[1] == e[2] && l.e[2] == e[1]);
    prefix_cache_forget_those(pc, 0, is_that, theirs); /* of another scope */
    prefix_cache_forget_those(pc, 0, is_that, e[2]);
    l.n = 0;
    prefix_cache_list(pc, 0, note, &l);
    CHECK(l.n == 2 && l.e[0] == e[0] && l.e[1] == e[1]);
    l.n = 0;
    prefix_cache_list(pc, 1, note, &l);
    CHECK(l.n == 1 && l.e[0] == theirs);
    prefix_cache_sweep(pc);
    CHECK_INT(prefix_cache_get_stats(pc).n_entries, 3);
    prefix_cache_destroy(pc);
    seq_state_destroy(s);
}

static void look(void *ctx, const prefix_entry *e)
{
    *(uint64_t *)ctx += e->last_used + e->n_key;
}

static bool is_none(void *ctx, const prefix_entry *e)
{
    look(ctx, e);
    return false;
}

typedef struct other_thread {
    prefix_cache *pc;
    atomic_bool is_done;
} other_thread;

static void *list_and_forget(void *ctx)
{
    other_thread *o = ctx;
    const uint64_t scope = 5;
    uint64_t sum = 0;
    while (!atomic_load(&o->is_done)) {
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL); /* the lock is the other thread's, too */
        prefix_cache_list(o->pc, 0, look, &sum);
        prefix_cache_forget_those(o->pc, 0, is_none, &sum);
        prefix_cache_forget(o->pc, &scope);
    }
    return NULL;
}

/* Another thread lists and forgets while this one does everything else (TSan watches). */
static void test_threads(const tiny *t)
{
    enum { ROUNDS = 100 };
    seq_state *s = tiny_seq(t);
    other_thread o = {.pc = prefix_cache_create(64 << 20, 3, TINY_H)};
    pthread_t thread;
    int32_t n = 0;
    tiny_run(t, s, ids, 20, false, false);
    CHECK(pthread_create(&thread, NULL, list_and_forget, &o) == 0);
    for (int32_t i = 0; i < ROUNDS; i++) {
        make_key(0, ids + i, 20);
        CHECK(prefix_cache_store(o.pc, key, 21, s, decoder_hidden(t->sc, 19)));
        CHECK(prefix_cache_find(o.pc, key, 21, &n) && n == 20 && prefix_cache_peek(o.pc, key, 21) == 20);
        CHECK(prefix_cache_get(o.pc, key, 21) && prefix_cache_next_unsaved(o.pc, true));
        prefix_cache_sweep(o.pc);
        CHECK(i % 3 || prefix_cache_evict_one(o.pc));
        CHECK(prefix_cache_make_room(o.pc, i % 5 ? 1 : (size_t)64 << 20));
    }
    atomic_store(&o.is_done, true);
    pthread_join(thread, NULL);
    prefix_cache_destroy(o.pc);
    seq_state_destroy(s);
}

static void test_is_name(void)
{
    char longest[PREFIX_GIVEN_MAX + 2] = "";
    memset(longest, 'x', PREFIX_GIVEN_MAX);
    CHECK(prefix_cache_is_name("a") && prefix_cache_is_name("A-z_0.9") && prefix_cache_is_name(longest));
    longest[PREFIX_GIVEN_MAX] = 'x';
    CHECK(!prefix_cache_is_name(longest));
    CHECK(!prefix_cache_is_name("") && !prefix_cache_is_name(".a") && !prefix_cache_is_name("a/b") &&
          !prefix_cache_is_name("a b"));
}

int main(void)
{
    CHECK_INT(tiny_ids(ids, TINY_CTX), 730);
    tiny t = tiny_open(1, ~0u, KV_F16);
    test_longest_prefix(&t);
    test_one_entry(&t);
    test_least_recently_used(&t);
    test_forgotten(&t);
    test_second_tier(&t);
    test_insert(&t);
    test_list(&t);
    test_threads(&t);
    test_is_name();
    tiny_close(&t); /* every block was given back */
    CHECK_DONE();
}
