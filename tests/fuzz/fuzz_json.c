/* json: what parses can be written, parses again and is then written the same. */
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every value in every way there is. */
static void visit(const json *v)
{
    int64_t integer;
    (void)json_int(v, INT64_MIN, INT64_MAX, &integer);
    (void)json_num(v, 0);
    (void)json_bool(v, false);
    const char *text = json_str(v, "");
    must(utf8_valid(text, strlen(text)));
    must((json_number_text(v) != NULL) == json_is(v, JSON_NUMBER));
    size_t n = 0;
    for (const json *item = json_child(v); item; item = json_next(item)) {
        if (json_key(item)) {
            must(json_get(v, json_key(item)) != NULL);
        }
        visit(item);
        n++;
    }
    must(n == json_len(v));
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_json(data, size, max, seed, "json");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_doc *doc = NULL, *again = NULL;
    err_detail detail;
    if (json_parse(&doc, (const char *)data, size, LIMIT_JSON_DEPTH, &detail) != ERR_OK) {
        must(doc == NULL && utf8_valid(detail.text, strlen(detail.text)));
        return 0;
    }
    must(utf8_valid((const char *)data, size));
    visit(json_root(doc));
    bytes once, twice;
    bytes_init(&once, 64u << 20);
    bytes_init(&twice, 64u << 20);
    json_write(&once, json_root(doc));
    must(!once.failed);
    must(json_parse(&again, once.data, once.len, LIMIT_JSON_DEPTH, &detail) == ERR_OK);
    json_write(&twice, json_root(again));
    must(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
    json_free(doc);
    json_free(again);
    bytes_deinit(&once);
    bytes_deinit(&twice);
    return 0;
}
