/* http_head: a head is the same wherever its text is cut, what is refused stays refused, and every
 * field can be read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/net/http_head.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_whole(const http_head *h, const char *text)
{
    static const char *const NAMES[] = {"host", "content-length", "connection", "x", "transfer-encoding"};
    char value[64], path[256], query[256];
    say("1.1 %d, %zu bytes", h->is_1_1, h->bytes);
    say_text("method", h->method.text, h->method.len);
    say_text("authority", h->authority.text, h->authority.len);
    say_text("path", h->path.text, h->path.len);
    say_text("query", h->query_string.text, h->query_string.len);
    say_text("fields", h->fields.text, h->fields.len);
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        http_head_value(h, NAMES[i], value, sizeof value);
        if (http_head_count(h, NAMES[i]) > 0) {
            say("%s, %zu times: \"%s\", keep-alive %d, key %d", NAMES[i], http_head_count(h, NAMES[i]), value,
                http_list_has(value, "keep-alive"), http_is_socket_key(value));
        }
    }
    snprintf(query, sizeof query, "%.*s", (int)h->query_string.len,
             h->query_string.text ? h->query_string.text : "");
    if (!http_query_is_valid(h->query_string)) {
        say("the query is not valid");
    } else if (*query && h->query_string.len < sizeof query) {
        char small[8];
        const http_query found = http_query_value(query, "a", small, sizeof small);
        say("a: %d \"%s\"", (int)found, small);
    }
    must(h->bytes >= 4 && memcmp(text + h->bytes - 4, "\r\n\r\n", 4) == 0);
    must(h->method.len > 0 && h->fields.text + h->fields.len == text + h->bytes - 2);
    must(http_head_count(h, "host") < h->bytes);
    http_head_value(h, "host", value, sizeof value);
    must(strlen(value) < sizeof value);
    if (!http_decode(path, sizeof path, h->path)) {
        say("the path is not valid");
    } else if (path[0] == '/') {
        const size_t n = strlen(path);
        http_fold_path(path);
        say("folded: %s", path);
        must(path[0] == '/' && strlen(path) <= n && !strstr(path, "//") && !strstr(path, "/../") &&
             !strstr(path, "/./"));
    }
    http_list_has(value, "a");
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_words(data, size, max, seed, "http_head");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    http_head whole, cut;
    const http_head_state state = http_head_read(&whole, text, size);
    say("state %d", (int)state);
    if (state == HTTP_HEAD_WHOLE) {
        check_whole(&whole, text);
    }
    for (size_t n = 0; n < size && size < 512; n++) {
        char *copy = malloc(n + 1); /* so that reading behind the end is found */
        must(copy != NULL);
        memcpy(copy, text, n);
        char *exact = realloc(copy, n > 0 ? n : 1);
        must(exact != NULL);
        const http_head_state now = http_head_read(&cut, exact, n);
        must(now == HTTP_HEAD_MORE || now == state);
        must(now != HTTP_HEAD_WHOLE ||
             (cut.bytes == whole.bytes && cut.query_string.len == whole.query_string.len));
        free(exact);
    }
    return 0;
}
