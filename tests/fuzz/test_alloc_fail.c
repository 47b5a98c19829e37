/* Every allocation of base/ fails once: no crash, no leak (ASan watches), ERR_NOMEM or a result. */
#include <stdint.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/ledger.h"
#include "base/limits.h"
#include "base/mailbox.h"
#include "base/unicode.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"

enum { MAX_POINTS = 10000 };

static err_code use_arena(void *context)
{
    (void)context;
    arena *a = arena_create(10u << 20);
    bool ok = a && arena_alloc(a, 100) && arena_alloc(a, 300000) && arena_calloc(a, 10, 10) &&
              arena_strdup(a, "text", 4) && arena_alloc(a, 65500);
    arena_destroy(a);
    return ok ? ERR_OK : ERR_NOMEM;
}

static err_code use_bytes(void *context)
{
    (void)context;
    bytes b;
    bytes_init(&b, 1u << 20);
    size_t before = 0;
    for (int i = 0; i < 200; i++) {
        bytes_append_json(&b, "a\n\xFF", 3);
        bytes_printf(&b, "%d", i);
        if (b.failed && !before) {
            before = b.len + 1;
        }
    }
    /* After a failure nothing more was appended, and what is there is whole. */
    CHECK(!b.failed || b.len + 1 == before);
    CHECK_INT(strlen(bytes_str(&b)), b.len);
    err_code err = b.failed ? ERR_NOMEM : ERR_OK;
    bytes_deinit(&b);
    return err;
}

/* Texts and arenas say whether it was memory that failed them, or their bound. */
static err_code use_buffers(void *context)
{
    (void)context;
    bytes whole = bytes_empty(4), part = bytes_empty(4);
    arena *a = arena_create(100);
    bytes_append_str(&part, "abc");
    CHECK(part.failed == part.no_memory);
    bytes_append_str(&whole, "a");
    bytes_fail_as(&whole, &part);
    const bool lacks = whole.no_memory;
    CHECK(whole.failed == lacks && (!part.no_memory || lacks));
    bytes_append_str(&part, "de");
    CHECK(part.failed && (!part.no_memory || lacks));
    bytes_fail_as(&whole, &part);
    CHECK(whole.failed && whole.no_memory == lacks);
    bytes_clear(&part);
    CHECK(!part.failed && !part.no_memory);
    const bool is_full = a && arena_alloc(a, 90) && !arena_alloc(a, 11);
    CHECK(!a || is_full != arena_lacked_memory(a));
    arena_destroy(a);
    bytes_deinit(&whole);
    bytes_deinit(&part);
    return is_full && !lacks ? ERR_OK : ERR_NOMEM;
}

/* Marks that are put in order, more of them than the first room has. */
static err_code use_unicode(void *context)
{
    (void)context;
    bytes text = bytes_empty(4096), out = bytes_empty(4096);
    for (int i = 0; i < 300; i++) {
        bytes_append_str(&text, "\xCC\x81\xCC\xA3");
    }
    unicode_nfc(&out, text.data, text.len);
    CHECK(out.failed == out.no_memory);
    CHECK(out.failed || text.failed || (out.len == text.len && memcmp(out.data, "\xCC\xA3\xCC\xA3", 4) == 0));
    const bool failed = out.failed || text.failed;
    bytes_deinit(&text);
    bytes_deinit(&out);
    return failed ? ERR_NOMEM : ERR_OK;
}

static err_code use_mailbox(void *context)
{
    (void)context;
    mailbox *mb = mailbox_create(10);
    mailbox_destroy(mb, NULL);
    return mb ? ERR_OK : ERR_NOMEM;
}

static err_code use_ledger(void *context)
{
    (void)context;
    ledger *l = ledger_create(10);
    if (!l) {
        return ERR_NOMEM;
    }
    ledger_destroy(l);
    return ERR_OK;
}

static err_code use_json(void *context)
{
    json_doc *doc;
    err_code err = json_parse(&doc, context, strlen(context), LIMIT_JSON_DEPTH, NULL);
    if (err != ERR_OK) {
        CHECK(doc == NULL);
        return err;
    }
    bytes b;
    bytes_init(&b, 1u << 20);
    json_write(&b, json_root(doc));
    err = b.failed ? ERR_NOMEM : ERR_OK;
    bytes_deinit(&b);
    json_free(doc);
    return err;
}

static err_code use_file(void *context)
{
    json_doc *doc;
    err_code err = json_parse_file(&doc, context, 1u << 20, NULL);
    json_free(doc);
    return err;
}

static err_code read_json(void *context)
{
    json_doc *doc;
    err_code err = json_parse(&doc, context, strlen(context), LIMIT_JSON_DEPTH, NULL);
    json_free(doc);
    return err;
}

/* An object of 16 members has an index, which is two allocations (one remains): wherever it stands. A member is an item
 * and its name; without those of cJSON nothing can be said. */
static void test_indexes(void)
{
    static const char *const around[] = {"%s", "[[],%s]", "{\"a\":{\"b\":[1,%s]}}", "[[[2]],{},%s]"};
    for (size_t i = 0; i < ARRAY_LEN(around); i++) {
        size_t n[2];
        for (int more = 0; more < 2; more++) {
            char object[256] = "{", text[512];
            for (int m = 0; m < 15 + more; m++) {
                const size_t len = strlen(object);
                snprintf(object + len, sizeof object - len - 1, "%s\"%c\":true", m ? "," : "", 'a' + m);
            }
            object[strlen(object)] = '}';
            snprintf(text, sizeof text, around[i], object);
            n[more] = alloc_fail_each(read_json, text, MAX_POINTS);
            for (size_t point = 1; point <= n[more]; point++) { /* none of them can be done without */
                alloc_fail_at(point);
                const err_code err = read_json(text);
                alloc_fail_at(0);
                CHECK_INT(err, ERR_NOMEM);
            }
        }
        CHECK(n[1] == n[0] + 2 + 2 || n[0] < 30);
    }
}

int main(void)
{
    test_indexes();
    static char text[] = "{\"a\":[1,2.5,\"x\\n\\u00e9\",null,true,{\"b\":{}}],"
                         "\"long\":1000000000000000000000000000000000000000000000000000000000000000000000}";
    CHECK_INT(alloc_fail_each(use_arena, NULL, MAX_POINTS), 4);
    CHECK(alloc_fail_each(use_bytes, NULL, MAX_POINTS) >= 4);
    CHECK_INT(alloc_fail_each(use_buffers, NULL, MAX_POINTS), 4);
    const size_t n_unicode = alloc_fail_each(use_unicode, NULL, MAX_POINTS);
    printf("unicode: %zu allocations\n", n_unicode);
    CHECK(n_unicode > 3);
    CHECK_INT(alloc_fail_each(use_mailbox, NULL, MAX_POINTS), 2);
    CHECK_INT(alloc_fail_each(use_ledger, NULL, MAX_POINTS), 1);
    size_t n_json = alloc_fail_each(use_json, text, MAX_POINTS);
    printf("json: %zu allocations\n", n_json);
    CHECK(n_json >= 4); /* 24 where the allocations of cJSON count, too */
    char path[] = "/tmp/parley_alloc_XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
    CHECK(alloc_fail_each(use_file, path, MAX_POINTS) >= 2);
    remove(path);
    CHECK_DONE();
}
