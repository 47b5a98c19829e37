/* disk_index: blocks and prompts are as a plain list has them, in every order of adding, holding, releasing and taking. */
#include "engine/cache/disk_index.h"

#include "tests/check.h"

enum { N_BLOCKS = 1500, N_STEPS = 30000, N_ALIKE = 350, UNIT = 4096 };

typedef struct known_block {
    bool is_known;
    uint32_t n_held;
    uint64_t n_bytes;
} known_block;

static known_block known[N_BLOCKS];

static uint32_t next_random(void)
{
    static uint32_t x = 1;
    x = x * 1664525u + 1013904223u;
    return x >> 8;
}

/* Several blocks have the same first bytes, by which they are found. */
static disk_id id_of(uint32_t i)
{
    disk_id id = {{0}};
    const uint32_t alike = i % N_ALIKE;
    memcpy(id.bytes, &alike, sizeof alike);
    memcpy(id.bytes + 12, &i, sizeof i);
    return id;
}

static uint32_t number_of(const disk_id *id)
{
    uint32_t i;
    memcpy(&i, id->bytes + 12, sizeof i);
    return i;
}

static uint64_t on_disk(uint64_t n)
{
    return (n + UNIT - 1) / UNIT * UNIT;
}

static void add_one(disk_index *ix, uint32_t i)
{
    static const uint64_t sizes[] = {1, UNIT - 1, UNIT, UNIT + 1, 3 * UNIT};
    const disk_id id = id_of(i);
    const uint64_t n_bytes = sizes[next_random() % ARRAY_LEN(sizes)];
    CHECK(disk_index_add_block(ix, &id, n_bytes));
    if (!known[i].is_known) {
        known[i] = (known_block){true, 0, on_disk(n_bytes)};
    }
}

/* Up to three of them, the first one twice. */
static void hold_some(disk_index *ix, uint32_t i)
{
    const uint32_t more[] = {i, (i + 1) % N_BLOCKS, i, (i + 7) % N_BLOCKS};
    const size_t n = 1 + next_random() % ARRAY_LEN(more);
    disk_id ids[ARRAY_LEN(more)];
    bool all = true;
    for (size_t k = 0; k < n; k++) {
        ids[k] = id_of(more[k]);
        all = all && known[more[k]].is_known;
    }
    CHECK_INT(disk_index_hold(ix, ids, n), all);
    for (size_t k = 0; all && k < n; k++) {
        known[more[k]].n_held++;
    }
}

static void take_one(disk_index *ix)
{
    disk_id id;
    bool any = false;
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        any = any || (known[i].is_known && known[i].n_held == 0);
    }
    const bool taken = disk_index_take_unused(ix, &id);
    CHECK_INT(taken, any);
    if (taken) {
        known_block *b = &known[number_of(&id)];
        CHECK(b->is_known && b->n_held == 0);
        b->is_known = false;
    }
}

static void test_blocks(void)
{
    disk_index *ix = disk_index_create();
    CHECK(ix != NULL);
    for (int step = 0; step < N_STEPS; step++) {
        const uint32_t i = next_random() % N_BLOCKS, what = next_random() % 8;
        const disk_id id = id_of(i);
        if (what < 3) {
            add_one(ix, i);
        } else if (what == 3) {
            hold_some(ix, i);
        } else if (what < 6) {
            disk_index_release(ix, &id, 1); /* nothing where nobody holds it */
            known[i].n_held -= known[i].is_known && known[i].n_held > 0;
        } else if (step % 3 == 0 || step > N_STEPS - 500) {
            take_one(ix);
        }
        CHECK_INT(disk_index_has_block(ix, &id), known[i].is_known);
        if (step % 100 == 0 || step > N_STEPS - 500) {
            uint64_t n_bytes = 0;
            for (uint32_t k = 0; k < N_BLOCKS; k++) {
                n_bytes += known[k].is_known ? known[k].n_bytes : 0;
            }
            CHECK_INT(disk_index_bytes(ix), n_bytes);
        }
    }
    disk_index_destroy(ix);
    disk_index_destroy(NULL);
}

/* Whatever nobody holds can be taken, from the first place on, also after the table has grown. */
static void test_take_all(void)
{
    disk_index *ix = disk_index_create();
    disk_id id;
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2 * N_BLOCKS; i++) {
        id = (disk_id){{0}};
        memcpy(id.bytes, &i, sizeof i);
        CHECK(disk_index_add_block(ix, &id, 1));
    }
    while (disk_index_take_unused(ix, &id)) {
        CHECK(!disk_index_has_block(ix, &id));
        n++;
    }
    CHECK_INT(n, 2 * N_BLOCKS);
    CHECK_INT(disk_index_bytes(ix), 0);
    disk_index_destroy(ix);
}

enum { N_ENTRIES = 150 };

static disk_entry *add_entry(disk_index *ix, uint32_t i, const char *given, int64_t used, bool is_foreign,
                             disk_id *blocks, size_t n_blocks)
{
    disk_entry facts = {.name = id_of(i),
                        .scope = id_of(i % 2),
                        .n_tokens = (int32_t)i,
                        .blocks = blocks,
                        .n_blocks = n_blocks,
                        .n_bytes = UNIT + 1,
                        .used_ns = used,
                        .is_foreign = is_foreign};
    snprintf(facts.given, sizeof facts.given, "%s", given);
    disk_entry *e = disk_index_add(ix, &facts);
    CHECK(e && e->blocks != blocks);
    return e;
}

/* More than the list has room for at first; what is removed gives its blocks back. */
static void test_entries(void)
{
    disk_index *ix = disk_index_create();
    disk_id blocks[3] = {id_of(1), id_of(2), id_of(3)}, taken;
    size_t n = 0;
    for (size_t k = 0; k < 3; k++) {
        CHECK(disk_index_add_block(ix, &blocks[k], UNIT));
    }
    for (uint32_t i = 0; i < N_ENTRIES; i++) {
        CHECK(disk_index_hold(ix, blocks + i % 2, 2));
        add_entry(ix, i, "", 1000 - i, false, blocks + i % 2, 2);
    }
    CHECK_INT(disk_index_bytes(ix), UNIT * 3 + N_ENTRIES * 2 * UNIT);
    disk_index_entries(ix, &n);
    CHECK_INT(n, N_ENTRIES);
    for (uint32_t i = 0; i < N_ENTRIES; i += 2) { /* those that need the first block */
        const disk_id name = id_of(i);
        disk_entry *e = disk_index_find(ix, &name);
        CHECK(e && e->n_tokens == (int32_t)i);
        CHECK(!disk_index_take_unused(ix, &taken));
        disk_index_remove(ix, e);
        CHECK(!disk_index_find(ix, &name));
        CHECK_INT(disk_index_oldest(ix)->n_tokens, N_ENTRIES - 1);
    }
    disk_index_entries(ix, &n);
    CHECK_INT(n, N_ENTRIES / 2);
    CHECK(disk_index_take_unused(ix, &taken) && number_of(&taken) == 1);
    CHECK(!disk_index_take_unused(ix, &taken));
    CHECK_INT(disk_index_bytes(ix), UNIT * 2 + N_ENTRIES * UNIT);
    disk_index_destroy(ix);
}

static void test_names(void)
{
    disk_index *ix = disk_index_create();
    disk_id block = id_of(9);
    const disk_id even = id_of(0), odd = id_of(1);
    CHECK(disk_index_oldest(ix) == NULL);
    CHECK(disk_index_add_block(ix, &block, 1));
    CHECK(disk_index_hold(ix, &block, 1));
    disk_entry *older = add_entry(ix, 10, "a", 1, false, &block, 1),
               *newer = add_entry(ix, 12, "a", 2, false, &block, 0),
               *other = add_entry(ix, 11, "a", 9, false, &block, 0),
               *foreign = add_entry(ix, 14, "a", 7, true, &block, 0);
    CHECK(disk_index_find_given(ix, &even, "a") == newer);
    CHECK(disk_index_find_given(ix, &odd, "a") == other);
    CHECK(disk_index_find_given(ix, &even, "b") == NULL);
    CHECK_INT(disk_index_given_bytes(ix, 1, NULL), 3 * 2 * UNIT + UNIT);
    CHECK_INT(disk_index_given_bytes(ix, UNIT + 1, NULL), 3 * 2 * UNIT + 2 * UNIT);
    CHECK_INT(disk_index_given_bytes(ix, 1, older), 2 * 2 * UNIT);
    /* who has a name stays, unless the model is another; those go last */
    CHECK(disk_index_oldest(ix) == foreign);
    disk_entry *plain = add_entry(ix, 16, "", 30, false, &block, 0);
    CHECK(disk_index_oldest(ix) == plain);
    disk_entry *foreign_plain = add_entry(ix, 18, "", 20, true, &block, 0);
    CHECK(disk_index_oldest(ix) == foreign_plain);
    CHECK_INT(disk_index_given_bytes(ix, 1, NULL), 3 * 2 * UNIT + UNIT);
    disk_index_remove(ix, foreign_plain);
    disk_index_remove(ix, plain);
    disk_index_remove(ix, foreign);
    CHECK(disk_index_oldest(ix) == NULL);
    disk_index_remove(ix, newer);
    CHECK(disk_index_find_given(ix, &even, "a") == older);
    disk_index_destroy(ix);
}

int main(void)
{
    test_blocks();
    test_take_all();
    test_entries();
    test_names();
    CHECK_DONE();
}
