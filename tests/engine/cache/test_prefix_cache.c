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
            CHECK_INT(prefix_cache_get(pc, key, 21) != NULL, !all && scope != one);
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

/* ---- beside a plain list ---- */

enum { MODEL_MAX = 64, MODEL_ROOM = 6, MODEL_STEPS = 3000 };

/* What the cache must hold, in the order of use: the last used one at the end. */
typedef struct model_entry {
    uint64_t scope;
    int32_t first, n; /* tokens ids[first .. first + n) */
    bool is_dead, is_saved;
    size_t n_bytes;
} model_entry;

typedef struct model {
    model_entry e[MODEL_MAX];
    size_t n, n_bytes, budget;
    bool forgets[3], forgets_all;
    prefix_cache_stats st;
} model_list;

static bool model_is(const model_entry *e, uint64_t scope, int32_t first, int32_t n)
{
    return !e->is_dead && e->scope == scope && e->first == first && e->n == n;
}

static size_t model_find(const model_list *m, uint64_t scope, int32_t first, int32_t n)
{
    size_t i = 0;
    while (i < m->n && !model_is(&m->e[i], scope, first, n)) {
        i++;
    }
    return i;
}

static void model_remove(model_list *m, size_t i)
{
    m->n_bytes -= m->e[i].n_bytes;
    memmove(&m->e[i], &m->e[i + 1], (--m->n - i) * sizeof *m->e);
}

static void model_use(model_list *m, size_t i)
{
    const model_entry e = m->e[i];
    memmove(&m->e[i], &m->e[i + 1], (m->n - 1 - i) * sizeof *m->e);
    m->e[m->n - 1] = e;
}

static bool model_evict(model_list *m)
{
    size_t oldest = 0;
    for (size_t i = 0; i < m->n; i++) { /* the first of those that are saved, else the first */
        if (m->e[i].is_saved) {
            oldest = i;
            break;
        }
    }
    if (m->n) {
        model_remove(m, oldest);
        m->st.n_evictions++;
        return true;
    }
    return false;
}

static void model_store(model_list *m, uint64_t scope, int32_t first, int32_t n, size_t n_bytes,
                        bool is_saved)
{
    const size_t at = model_find(m, scope, first, n);
    if (at < m->n) {
        model_use(m, at);
        return;
    }
    if (n_bytes > m->budget) {
        return;
    }
    while (m->n == MODEL_ROOM || m->n_bytes + n_bytes > m->budget) {
        model_evict(m);
    }
    m->e[m->n++] =
        (model_entry){.scope = scope, .first = first, .n = n, .is_saved = is_saved, .n_bytes = n_bytes};
    m->n_bytes += n_bytes;
    m->st.n_stores++;
}

static void model_sweep(model_list *m)
{
    for (size_t i = m->n; i-- > 0;) {
        if (m->e[i].is_dead || m->forgets_all || m->forgets[m->e[i].scope]) {
            model_remove(m, i);
        }
    }
    memset(m->forgets, 0, sizeof m->forgets);
    m->forgets_all = false;
}

typedef struct model_walk {
    const model_list *m;
    uint64_t scope;
    size_t left; /* entries behind the place are to come, from the last one on */
} model_walk;

static void model_compare(void *ctx, const prefix_entry *e)
{
    model_walk *w = ctx;
    while (w->left > 0 && (w->m->e[w->left - 1].is_dead || w->m->e[w->left - 1].scope != w->scope)) {
        w->left--;
    }
    CHECK(w->left > 0);
    if (w->left > 0) {
        const model_entry *want = &w->m->e[--w->left];
        CHECK_INT(prefix_entry_len(e), want->n);
        CHECK_INT(e->key[1], ids[want->first]);
        CHECK_INT(e->saved == PREFIX_SAVED, want->is_saved);
        CHECK_INT(e->bytes, want->n_bytes);
    }
}

/* All that can be seen of the cache is as the list has it. */
static void model_check(prefix_cache *pc, const model_list *m)
{
    const prefix_cache_stats st = prefix_cache_get_stats(pc);
    CHECK_INT(st.n_entries, m->n);
    CHECK_INT(st.bytes, m->n_bytes);
    CHECK(st.bytes <= m->budget && st.n_entries <= MODEL_ROOM);
    CHECK_INT(st.n_evictions, m->st.n_evictions);
    CHECK_INT(st.n_stores, m->st.n_stores);
    CHECK_INT(st.n_queries, m->st.n_queries);
    CHECK_INT(st.n_hits, m->st.n_hits);
    CHECK_INT(st.n_hit_tokens, m->st.n_hit_tokens);
    for (uint64_t scope = 0; scope < 3; scope++) {
        model_walk w = {m, scope, m->n};
        prefix_cache_list(pc, scope, model_compare, &w);
        while (w.left > 0 && (m->e[w.left - 1].is_dead || m->e[w.left - 1].scope != scope)) {
            w.left--;
        }
        CHECK_INT(w.left, 0);
    }
}

/* Whatever is done in whatever order: the cache holds what a plain list would hold. */
static void test_as_a_list(const tiny *t)
{
    static const int32_t LENGTHS[] = {5, 20, 40};
    seq_state *s[ARRAY_LEN(LENGTHS)];
    size_t n_bytes[ARRAY_LEN(LENGTHS)];
    model_list m = {.n = 0};
    uint32_t x = 7;
    prefix_cache *pc = prefix_cache_create(SIZE_MAX / 2, 1, TINY_H);
    for (size_t k = 0; k < ARRAY_LEN(LENGTHS); k++) { /* what they weigh; what they say is not asked here */
        s[k] = tiny_seq(t);
        tiny_run(t, s[k], ids, LENGTHS[k], false, false);
        make_key(0, ids, (size_t)LENGTHS[k]);
        CHECK(prefix_cache_store(pc, key, 1 + (size_t)LENGTHS[k], s[k], decoder_hidden(t->sc, 0)));
        n_bytes[k] = prefix_cache_get_stats(pc).bytes;
    }
    prefix_cache_destroy(pc);
    m.budget = 4 * n_bytes[2] + n_bytes[0];
    pc = prefix_cache_create(m.budget, MODEL_ROOM, TINY_H);
    for (int step = 0; step < MODEL_STEPS && !check_failures; step++) {
        x = x * 1664525u + 1013904223u;
        const uint64_t scope = x >> 8 & 3 ? x >> 8 & 1 : 2;
        const size_t k = (x >> 12) % ARRAY_LEN(LENGTHS);
        const int32_t first = (int32_t)(x >> 16 & 3), n = LENGTHS[k];
        const size_t at = model_find(&m, scope, first, n), n_key = 1 + (size_t)n;
        make_key(scope, ids + first, 60);
        switch (x >> 24 & 15) {
        case 0:
            CHECK_INT(prefix_cache_evict_one(pc), model_evict(&m));
            break;
        case 1:
            prefix_cache_forget(pc, x >> 20 & 7 ? &scope : NULL);
            m.forgets[scope] = m.forgets[scope] || (x >> 20 & 7);
            m.forgets_all = m.forgets_all || !(x >> 20 & 7);
            for (size_t i = 0; i < m.n; i++) {
                m.e[i].is_dead = m.e[i].is_dead || m.forgets_all || m.forgets[m.e[i].scope];
            }
            break;
        case 2:
            prefix_cache_sweep(pc);
            model_sweep(&m);
            break;
        case 3:
            CHECK(prefix_cache_make_room(pc, n_bytes[k]));
            while (m.n && m.n_bytes + n_bytes[k] > m.budget) {
                model_evict(&m);
            }
            break;
        case 4:
        case 5:
            CHECK_INT(prefix_cache_has(pc, key, n_key), at < m.n);
            if (at < m.n) {
                model_use(&m, at);
            }
            break;
        case 6:
        case 7:
        case 8: { /* the longest that the key begins with */
            size_t best = m.n;
            int32_t len = 0;
            for (size_t j = 0; j <= k; j++) {
                const size_t i = model_find(&m, scope, first, LENGTHS[j]);
                best = i < m.n ? i : best;
                len = i < m.n ? LENGTHS[j] : len;
            }
            int32_t found = -1;
            const prefix_entry *hit = prefix_cache_find(pc, key, n_key + (x >> 30), &found);
            CHECK_INT(found, len);
            CHECK_INT(hit ? prefix_entry_len(hit) : 0, len);
            CHECK_INT(prefix_cache_peek(pc, key, n_key), len);
            m.st.n_queries++;
            m.st.n_hits += len > 0;
            m.st.n_hit_tokens += (uint64_t)len;
            if (len) {
                model_use(&m, best);
            }
            break;
        }
        case 9: {
            float *hidden = x >> 20 & 1 ? calloc(TINY_H, sizeof *hidden) : NULL;
            prefix_cache_insert(pc, key, n_key, seq_state_snapshot(s[k]), hidden);
            model_store(&m, scope, first, n, n_bytes[k], true);
            break;
        }
        case 10:
            CHECK(prefix_cache_add(pc, key, n_key, seq_state_snapshot(s[k]), decoder_hidden(t->sc, 0)));
            model_store(&m, scope, first, n, n_bytes[k], false);
            break;
        default:
            CHECK(prefix_cache_store(pc, key, n_key, s[k], decoder_hidden(t->sc, 0)));
            model_store(&m, scope, first, n, n_bytes[k], false);
        }
        model_check(pc, &m);
    }
    CHECK(m.st.n_hits > 50 && m.st.n_evictions > 50);
    prefix_cache_destroy(pc);
    for (size_t k = 0; k < ARRAY_LEN(LENGTHS); k++) {
        seq_state_destroy(s[k]);
    }
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
    test_as_a_list(&t);
    test_is_name();
    tiny_close(&t); /* every block was given back */
    CHECK_DONE();
}
