/* http_head: a head is the same wherever its text is cut, what is refused stays refused, and every
 * field can be read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/net/http_head.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_whole(const http_head *h, const char *text)
{
    char value[64], path[256];
    must(h->bytes >= 4 && memcmp(text + h->bytes - 4, "\r\n\r\n", 4) == 0);
    must(h->method.len > 0 && h->fields.text + h->fields.len == text + h->bytes - 2);
    must(http_head_count(h, "host") < h->bytes);
    http_head_value(h, "host", value, sizeof value);
    must(strlen(value) < sizeof value);
    if (http_decode(path, sizeof path, h->path) && path[0] == '/') {
        const size_t n = strlen(path);
        http_fold_path(path);
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
