/* json: what parses can be written, parses again and is then written the same. */
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void say_number(const json *v)
{
    int64_t integer = 0, small = 0;
    const bool is_int = json_int(v, INT64_MIN, INT64_MAX, &integer), is_small = json_int(v, -1, 255, &small);
    say("number %s: %.17g%s%lld%s", json_number_text(v), json_num(v, -7),
        is_int ? ", integer " : ", no integer ", (long long)integer, is_small ? ", -1 to 255" : "");
}

/* Reads every value in every way there is. */
static void visit(const json *v)
{
    int64_t integer = 0;
    const char *text = json_str(v, "");
    must(utf8_valid(text, strlen(text)));
    if (json_is(v, JSON_NUMBER)) {
        say_number(v);
    } else if (json_int(v, INT64_MIN, INT64_MAX, &integer) || json_num(v, -7) != -7) {
        say("a number that is none");
    }
    if (json_is(v, JSON_BOOL)) {
        say("%s", json_bool(v, !json_is_true(v)) ? "true" : "false");
    } else {
        must(json_bool(v, true) && !json_bool(v, false) && !json_is_true(v));
    }
    if (json_typeof(v) == JSON_OBJECT) {
        must(json_get(v, "no such member") == NULL);
    }
    must((json_number_text(v) != NULL) == json_is(v, JSON_NUMBER));
    size_t n = 0;
    for (const json *item = json_child(v); item; item = json_next(item)) {
        if (json_key(item)) {
            const json *found = json_get(v, json_key(item));
            must(found != NULL);
            if (found != item) { /* the last of equal names counts */
                bytes other = bytes_empty(1 << 20);
                json_write(&other, found);
                say_text(json_key(item), bytes_str(&other), other.len);
                bytes_deinit(&other);
            }
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
    err_detail detail = {0};
    const err_code err = json_parse(&doc, (const char *)data, size, LIMIT_JSON_DEPTH, &detail);
    must(json_is_object_text((const char *)data, size) ==
         (err == ERR_OK && json_is(json_root(doc), JSON_OBJECT)));
    if (err != ERR_OK) {
        must(doc == NULL && utf8_valid(detail.text, strlen(detail.text)));
        say_error(err, &detail);
        return 0;
    }
    say("%zu values at most", json_memory((const char *)data, size) / 100);
    must(utf8_valid((const char *)data, size));
    visit(json_root(doc));
    bytes once, twice;
    bytes_init(&once, 64u << 20);
    bytes_init(&twice, 64u << 20);
    json_write(&once, json_root(doc));
    must(!once.failed);
    must(json_parse(&again, once.data, once.len, LIMIT_JSON_DEPTH, &detail) == ERR_OK);
    json_write(&twice, json_root(again));
    say_text("", bytes_str(&once), once.len);
    must(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
    json_free(doc);
    json_free(again);
    bytes_deinit(&once);
    bytes_deinit(&twice);
    return 0;
}
