/* shares: who has to give, and what is remembered of it. */
#include "server/shares.h"

#include "tests/check.h"

static void test_most_gives(void)
{
    shares s;
    uint64_t owner = 0;
    shares_init(&s, 4, 100, NULL);
    CHECK(!shares_is_over(&s, 9, 999, &owner)); /* nobody has anything to give */
    CHECK(shares_add(&s, 1, 10));
    CHECK(shares_add(&s, 1, 10));
    CHECK(shares_add(&s, 1, 10));
    CHECK(shares_add(&s, 2, 60));
    CHECK(!shares_is_over(&s, 0, 0, &owner));
    CHECK(shares_is_over(&s, 1, 0, &owner));
    CHECK_INT(owner, 1); /* most in number */
    CHECK(shares_is_over(&s, 0, 11, &owner));
    CHECK_INT(owner, 2); /* most in bytes */
    shares_remove(&s, 2, 60);
    shares_remove(&s, 2, 60); /* has nothing */
    CHECK(shares_is_over(&s, 0, 71, &owner));
    CHECK_INT(owner, 1);
    for (uint64_t i = 10; i < 40; i++) { /* more owners than a first table holds */
        CHECK(shares_add(&s, i, 1));
    }
    CHECK(shares_add(&s, 39, 1));
    shares_remove(&s, 1, 10);
    shares_remove(&s, 1, 10);
    CHECK(shares_is_over(&s, 0, 0, &owner));
    CHECK_INT(owner, 39);
    CHECK_INT(s.n, 32);
    CHECK_INT(s.n_bytes, 41);
    shares_deinit(&s);
}

static void test_gone(void)
{
    shares s;
    char name[32];
    shares_init(&s, 1, 1, NULL);
    CHECK(!shares_is_gone(&s, 1, "a", 0.0));
    shares_note_gone(&s, 1, "a", 10.0);
    CHECK(shares_is_gone(&s, 1, "a", 10.0));
    CHECK(!shares_is_gone(&s, 1, "a", 11.0));
    CHECK(!shares_is_gone(&s, 2, "a", 0.0));
    CHECK(!shares_is_gone(&s, 1, "b", 0.0));
    for (int i = 0; i < SHARES_GONE; i++) {
        snprintf(name, sizeof name, "n%d", i);
        shares_note_gone(&s, 1, name, 10.0);
    }
    CHECK(!shares_is_gone(&s, 1, "a", 0.0));
    CHECK(shares_is_gone(&s, 1, "n0", 0.0));
    CHECK(shares_is_gone(&s, 1, name, 0.0));
    for (char c = 'a'; c <= 'z'; c++) { /* names that are alike are not taken for each other */
        shares_note_gone(&s, 1, (char[]){c, '1', '\0'}, 10.0);
    }
    for (char c = 'a'; c <= 'z'; c++) {
        for (char d = '!'; d <= '~'; d++) {
            CHECK(shares_is_gone(&s, 1, (char[]){c, d, '\0'}, 0.0) == (d == '1'));
        }
    }
    shares_deinit(&s);
}

/* What is kept is taken from the memory of requests, and makes way for them. */
static void test_memory(void)
{
    ledger *memory = ledger_create(100);
    ledger_hold request = {.ledger = memory};
    shares s;
    uint64_t owner = 0;
    shares_init(&s, 9, 1000, memory);
    CHECK(shares_add(&s, 1, 40));
    CHECK(shares_add(&s, 2, 20));
    CHECK_INT(ledger_get_status(memory).used, 60);
    CHECK(ledger_try(&request, 40));
    CHECK(!shares_is_over(&s, 0, 0, &owner)); /* full, but nobody wants more */
    CHECK(!shares_add(&s, 3, 1));
    CHECK(shares_is_over(&s, 1, 1, &owner));
    CHECK_INT(owner, 1);
    shares_remove(&s, 1, 40);
    CHECK_INT(ledger_get_status(memory).used, 60);
    CHECK(shares_add(&s, 3, 1));
    ledger_set_limit(memory, 50); /* less than there is */
    CHECK(shares_is_over(&s, 0, 0, &owner));
    CHECK_INT(owner, 2);
    shares_deinit(&s);
    CHECK_INT(ledger_get_status(memory).used, 40);
    ledger_give_all(&request);
    ledger_destroy(memory);
}

int main(void)
{
    test_memory();
    test_most_gives();
    test_gone();
    CHECK_DONE();
}
