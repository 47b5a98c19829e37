/* mcp_decode and mcp_html: a page of any encoding becomes UTF-8, and text of a bounded length. The
 * first byte chooses the charset that its sender names. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "server/mcp/mcp_decode.h"
#include "server/mcp/mcp_html.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 65536, MAX_GROWTH = 64 };

static bool go_on(void *ctx)
{
    (void)ctx;
    return true;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_behind(1, mutate_words, data, size, max, seed, "mcp_html");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const CHARSETS[] = {"",        "utf-8", "shift_jis", "utf-16le", "iso-2022-jp",
                                           "gb18030", "utf-7", "none"};
    if (size < 1 || size > MAX_BYTES) {
        return 0;
    }
    const char *page = (const char *)data + 1;
    char charset[64] = "";
    bytes text = bytes_empty(SIZE_MAX / 2), shown = bytes_empty(SIZE_MAX / 2),
          title = bytes_empty(SIZE_MAX / 2);
    mcp_html_charset(charset, sizeof charset, page, size - 1);
    must(strlen(charset) < sizeof charset);
    mcp_decode(&text, page, size - 1, data[0] & 8 ? charset : CHARSETS[data[0] & 7]);
    must(utf8_valid(bytes_str(&text), text.len));
    say("charset %s", charset);
    say_text("decoded", bytes_str(&text), text.len);
    const bool whole =
        mcp_html_text(&shown, &title, bytes_str(&text), text.len, "https://example.org/a/", go_on, NULL);
    say("%s", whole ? "whole" : "not whole");
    say_text("title", bytes_str(&title), title.len);
    say_text("shown", bytes_str(&shown), shown.len);
    must(utf8_valid(bytes_str(&shown), shown.len) && utf8_valid(bytes_str(&title), title.len));
    must(shown.len <= MAX_GROWTH * (text.len + 64));
    bytes_deinit(&text);
    bytes_deinit(&shown);
    bytes_deinit(&title);
    return 0;
}
