/* id_table: thousands of random steps beside a plain list; how full it gets, and how far an id stands from its place. */
#include "server/id_table.h"

#include "tests/alloc_fail.h"
#include "tests/check.h"

enum { IDS = 200 };

static uint32_t next_random(void)
{
    static uint32_t state = 7;
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

/* Walks the table: each id once, with its value, and as many as there should be. */
static void check_walk(const id_table *t, char *const *values)
{
    size_t n = 0, wanted = 0;
    for (size_t i = 0; i < t->cap; i++) {
        n += id_table_at(t, i) != NULL;
    }
    for (uint64_t id = 1; id < IDS; id++) {
        wanted += values[id] != NULL;
    }
    CHECK_INT(n, wanted);
    CHECK_INT(t->len, wanted);
    CHECK(t->len * 2 <= t->cap);
}

/* Ids come and go in a table that stays as full as it may be, so that its end and its begin are one run now and then. */
static void test_steps(void)
{
    static char places[IDS + 1];
    char *values[IDS] = {NULL};
    id_table t;
    id_table_init(&t);
    CHECK(!id_table_get(&t, 1) && !id_table_remove(&t, 1) && !id_table_get(&t, 0));
    for (int step = 0; step < 60000; step++) {
        const uint64_t id = 1 + next_random() % (IDS - 1), factor = step < 30000 ? 1 : 0x1000003;
        if (step == 30000) { /* other ids from here on */
            for (uint64_t i = 1; i < IDS; i++) {
                CHECK(id_table_remove(&t, i) == values[i]);
                values[i] = NULL;
            }
        }
        char *value = &places[next_random() % IDS];
        if (values[id] || t.len >= 32) {
            CHECK(id_table_remove(&t, id * factor) == values[id]);
            values[id] = NULL;
        } else {
            CHECK(id_table_put(&t, id * factor, value));
            values[id] = value;
            CHECK(id_table_put(&t, id * factor, ++value)); /* in its place */
            values[id] = value;
        }
        for (uint64_t i = 1; i < IDS; i += 1 + (step % 8 ? next_random() % 40 : 0)) {
            CHECK(id_table_get(&t, i * factor) == values[i]);
        }
        check_walk(&t, values);
        CHECK_INT(t.cap, 64);
    }
    id_table_deinit(&t);
    CHECK(t.cap == 0 && t.len == 0 && !t.entries);
}

/* Twice the room when half of it is taken; ids that are counted do not stand in each other's way. */
static void test_growth(void)
{
    static char value[1];
    id_table t;
    size_t farthest = 0;
    id_table_init(&t);
    for (uint64_t id = 1; id <= 4096; id++) {
        CHECK(id_table_put(&t, id, value));
        size_t cap = 64;
        while (cap < 2 * id) {
            cap *= 2;
        }
        CHECK_INT(t.cap, cap);
        CHECK_INT(t.len, id);
    }
    for (size_t i = 0, run = 0; i < t.cap; i++) {
        run = id_table_at(&t, i) ? run + 1 : 0;
        farthest = run > farthest ? run : farthest;
    }
    CHECK(farthest < 64);
    for (uint64_t id = 1; id <= 4097; id++) {
        CHECK((id_table_get(&t, id) != NULL) == (id <= 4096));
    }
    CHECK(!id_table_get(&t, 0));
    alloc_fail_at(1);
    CHECK(!id_table_put(&t, 4097, value));
    alloc_fail_at(1);
    CHECK(id_table_put(&t, 7, value + 1)); /* which has its place */
    alloc_fail_at(0);
    CHECK(id_table_get(&t, 7) == value + 1 && !id_table_get(&t, 4097));
    CHECK_INT(t.len, 4096);
    CHECK(id_table_put(&t, 4097, value));
    CHECK_INT(t.cap, 16384);
    id_table_deinit(&t);
}

int main(void)
{
    test_steps();
    test_growth();
    CHECK_DONE();
}
