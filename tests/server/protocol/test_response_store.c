/* response_store: owners, bounds, age. */
#include "server/protocol/response_store.h"

#include "base/json.h"
#include "server/protocol/dialects/talks.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"

static void put(response_store *l, const char *id, const char *items, double now_ms)
{
    (void)response_store_put(l, 1, id, items, strlen(items), 1, now_ms);
}

/* "" if it is not there. */
static const char *get(response_store *l, uint64_t scope, const char *id, double now_ms)
{
    static char text[64];
    bytes out;
    bytes_init(&out, sizeof text - 1);
    bool found = response_store_get(l, scope, id, now_ms, &out);
    CHECK_INT(found, out.len > 0);
    snprintf(text, sizeof text, "%s", bytes_str(&out));
    bytes_deinit(&out);
    return text;
}

static void test_owner_and_age(void)
{
    response_store *l = response_store_create(100, 4, 10, NULL);
    CHECK(l);
    put(l, "resp_a", "{1}", 0.0);
    CHECK_STR(get(l, 1, "resp_a", 0.0), "{1}");
    CHECK_STR(get(l, 2, "resp_a", 0.0), "");
    CHECK_STR(get(l, 1, "resp_b", 0.0), "");
    CHECK_STR(get(l, 1, "resp_a", 10000.0), "{1}");
    CHECK_STR(get(l, 1, "resp_a", 10001.0), "");
    CHECK(!response_store_put(l, 1, "resp_n", "", 0, 0, 0.0)); /* nothing is kept of nothing */
    response_store_destroy(l);
    response_store_destroy(NULL);
}

/* Another of the same name takes its place; what was sent, an item, and the end. */
static void test_parts(void)
{
    static const char ITEMS[] = "{\"id\":\"msg_1\"},{\"id\":\"msg_2\"}";
    response_store *l = response_store_create(100, 4, 10, NULL);
    bytes out = bytes_empty(100);
    CHECK(l);
    put(l, "resp_a", "{1}", 0.0);
    CHECK(response_store_put(l, 1, "resp_a", ITEMS, strlen(ITEMS), 14, 5000.0));
    CHECK_STR(get(l, 1, "resp_a", 15000.0), ITEMS);
    CHECK(response_store_get_input(l, 1, "resp_a", 5000.0, &out));
    CHECK_STR(bytes_str(&out), "{\"id\":\"msg_1\"}");
    bytes_clear(&out);
    CHECK(response_store_find_item(l, 1, "msg_2", 5000.0, &out));
    CHECK_STR(bytes_str(&out), ITEMS);
    CHECK(!response_store_find_item(l, 2, "msg_2", 5000.0, &out));
    CHECK(!response_store_find_item(l, 1, "msg_3", 5000.0, &out));
    CHECK(!response_store_find_item(l, 1, "msg_2", 15001.0, &out));
    CHECK(!response_store_remove(l, 2, "resp_a", 5000.0));
    CHECK(response_store_remove(l, 1, "resp_a", 5000.0));
    CHECK(!response_store_remove(l, 1, "resp_a", 5000.0));
    bytes_deinit(&out);
    response_store_destroy(l);
}

/* As old as one may be, and how many bytes there are. */
static void test_edges(void)
{
    char id[520], items[600];
    response_store *l = response_store_create(2000, 4, 10, NULL);
    bytes out = bytes_empty(1000);
    CHECK(l);
    put(l, "a", "{\"id\":\"x\"}", 0.0);
    CHECK_INT(response_store_bytes(l), 10);
    put(l, "b", "bbb", 10000.0);
    CHECK_INT(response_store_bytes(l), 13);
    CHECK(response_store_find_item(l, 1, "x", 10000.0, &out));
    CHECK(!response_store_find_item(l, 1, "x", 10001.0, &out));
    response_store_tick(l, 10000.0);
    CHECK_INT(response_store_bytes(l), 13);
    response_store_tick(l, 10001.0);
    CHECK_INT(response_store_bytes(l), 3);
    put(l, "b", "bb", 10001.0);
    CHECK_INT(response_store_bytes(l), 2);
    CHECK(response_store_remove(l, 1, "b", 20001.0));
    CHECK_INT(response_store_bytes(l), 0);
    for (int n = 505; n <= 506;
         n++) { /* a name that is longer than any that is given here is not looked for */
        snprintf(id, sizeof id, "%0*d", n, 0);
        snprintf(items, sizeof items, "{\"id\":\"%s\"}", id);
        put(l, "c", items, 0.0);
        CHECK_INT(response_store_find_item(l, 1, id, 0.0, &out), n == 505);
        CHECK(!out.failed);
    }
    bytes_deinit(&out);
    response_store_destroy(l);
}

static void test_bounds(void)
{
    response_store *l = response_store_create(10, 3, 10, NULL);
    CHECK(l);
    put(l, "a", "aaa", 0.0);
    put(l, "b", "bbb", 0.0);
    put(l, "c", "ccc", 0.0);
    put(l, "d", "d", 0.0); /* one too many */
    CHECK_STR(get(l, 1, "a", 0.0), "");
    CHECK_STR(get(l, 1, "b", 0.0), "bbb");
    put(l, "e", "eeeeeeeee", 0.0); /* leaves room for one byte */
    CHECK_STR(get(l, 1, "c", 0.0), "");
    CHECK_STR(get(l, 1, "d", 0.0), "d");
    CHECK_STR(get(l, 1, "e", 0.0), "eeeeeeeee");
    put(l, "f", "fffffffffff", 0.0); /* larger than everything together may be */
    CHECK_STR(get(l, 1, "f", 0.0), "");
    CHECK_STR(get(l, 1, "e", 0.0), "eeeeeeeee");
    put(l, "g", "g", 10001.0); /* the others are too old */
    CHECK_STR(get(l, 1, "e", 0.0), "");
    CHECK_STR(get(l, 1, "g", 10001.0), "g");
    response_store_destroy(l);
}

/* Whoever has most gives: others keep what they have. */
static void test_shares(void)
{
    response_store *l = response_store_create(1000, 4, 10, NULL);
    CHECK(l);
    CHECK(response_store_put(l, 2, "mine", "{m}", 3, 0, 0.0));
    for (int i = 0; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "r%d", i);
        put(l, id, "{r}", 1.0);
    }
    CHECK_STR(get(l, 2, "mine", 2.0), "{m}");
    CHECK_STR(get(l, 1, "r19", 2.0), "{r}");
    CHECK_STR(get(l, 1, "r17", 2.0), "{r}");
    CHECK_STR(get(l, 1, "r16", 2.0), "");
    CHECK(response_store_is_evicted(l, 1, "r16", 2.0));
    CHECK(!response_store_is_evicted(l, 1, "r17", 2.0));
    CHECK(!response_store_is_evicted(l, 2, "r16", 2.0));
    response_store_destroy(l);
}

/* The text is taken from the memory of requests; the oldest goes when they want it, or too late. */
static void test_memory(void)
{
    ledger *memory = ledger_create(50);
    response_store *l = response_store_create(100, 4, 10, memory);
    put(l, "a", "0123456789012345678901234567", 0.0);
    put(l, "b", "0123456789012345678901234567", 1.0);
    CHECK_STR(get(l, 1, "a", 1.0), "");
    CHECK(*get(l, 1, "b", 1.0));
    CHECK(response_store_is_evicted(l, 1, "a", 1.0));
    CHECK_INT(ledger_get_status(memory).used, 28);
    response_store_tick(l, 2.0);
    CHECK(*get(l, 1, "b", 2.0));
    ledger_set_limit(memory, 20);
    response_store_tick(l, 3.0);
    CHECK_STR(get(l, 1, "b", 3.0), "");
    CHECK_INT(ledger_get_status(memory).used, 0);
    put(l, "c", "0123456789", 4.0);
    response_store_tick(l, 20000.0);
    CHECK_INT(ledger_get_status(memory).used, 0);
    response_store_destroy(l);
    ledger_destroy(memory);
}

/* ---- conversations in it ---- */

static err_code ask(const talk_keeper *keeper, talk_order *o, const char *body, bytes *reply)
{
    err_detail d = {0};
    bytes_clear(reply);
    o->body = bytes_empty(1000);
    bytes_append_str(&o->body, body);
    const bool is_short = o->body.failed;
    const err_code err = is_short ? ERR_NOMEM : talk_run(o, keeper, reply, &d);
    talk_order_deinit(o);
    return err ? err : reply->failed ? ERR_NOMEM : ERR_OK;
}

/* From its beginning to its end: each step is whole or was not, whatever memory there is. */
static err_code talk_once(void *text)
{
    response_store *store = response_store_create(1000, 4, 10, NULL);
    bytes reply = bytes_empty(4000);
    if (!store) {
        return ERR_NOMEM;
    }
    const talk_keeper keeper = talk_keeper_in_memory(store);
    talk_order o = {.verb = TALK_CREATE, .scope = 1, .page = {.limit = 20}};
    err_code err =
        ask(&keeper, &o,
            "{\"metadata\":{\"a\":\"b\"},\"items\":[{\"id\":\"m1\",\"role\":\"user\",\"content\":\"q\"}]}",
            &reply);
    if (!err) {
        snprintf(o.id, sizeof o.id, "%.*s", (int)strcspn(bytes_str(&reply) + 7, "\""), bytes_str(&reply) + 7);
        static const struct {
            talk_verb verb;
            const char *item, *body;
        } STEPS[] = {{TALK_ADD, "", "{\"items\":[{\"id\":\"m2\",\"role\":\"user\",\"content\":\"r\"}]}"},
                     {TALK_EXTEND, "", "{\"id\":\"m3\",\"role\":\"user\",\"content\":\"s\"}"},
                     {TALK_DELETE_ITEM, "m1", ""},
                     {TALK_UPDATE, "", "{\"metadata\":{\"c\":\"d\"}}"},
                     {TALK_GET_ITEM, "m3", ""},
                     {TALK_LIST, "", ""}};
        for (size_t i = 0; !err && i < sizeof STEPS / sizeof *STEPS; i++) {
            o.verb = STEPS[i].verb;
            snprintf(o.item, sizeof o.item, "%s", STEPS[i].item);
            err = ask(&keeper, &o, STEPS[i].body, &reply);
        }
        snprintf(text, 1000, "%s", err ? "" : bytes_str(&reply));
    }
    bytes_deinit(&reply);
    response_store_destroy(store);
    return err;
}

static void test_talks(void)
{
    static char text[1000];
    CHECK_INT(talk_once(text), ERR_OK);
    CHECK(strstr(text, "\"m2\"") && strstr(text, "\"m3\"") && !strstr(text, "\"m1\""));
    CHECK(alloc_fail_each(talk_once, text, 5000) > 20);
}

int main(void)
{
    test_memory();
    test_shares();
    test_owner_and_age();
    test_parts();
    test_edges();
    test_bounds();
    test_talks();
    CHECK_DONE();
}
