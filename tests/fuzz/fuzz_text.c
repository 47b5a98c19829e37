/* utf8 and bytes: any bytes become a JSON string that is valid UTF-8 and parses back to the decoded
 * text. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    bytes decoded, quoted;
    bytes_init(&decoded, 4 * size + 16);
    bytes_init(&quoted, 6 * size + 16);

    /* Character by character; ill-formed sequences become U+FFFD. */
    bool well_formed = true, has_nul = false;
    size_t used;
    for (size_t i = 0; i < size; i += used) {
        uint32_t code_point;
        char out[4];
        used = utf8_decode(text + i, size - i, &code_point);
        must(used >= 1 && used <= size - i);
        size_t n = utf8_encode(out, code_point);
        well_formed = well_formed && n == used && memcmp(out, text + i, n) == 0;
        has_nul = has_nul || code_point == 0;
        bytes_append(&decoded, out, n);
    }
    must(!decoded.failed && utf8_valid(bytes_str(&decoded), decoded.len));
    must(well_formed == utf8_valid(text, size));

    size_t tail = utf8_incomplete_tail(text, size);
    say("%s, %zu bytes may go on", utf8_valid(text, size) ? "valid" : "not valid", tail);
    say_text("", bytes_str(&decoded), decoded.len);
    must(tail <= 3 && tail <= size);
    must(!(tail > 0 && utf8_valid(text, size)));

    bytes_append_json(&quoted, text, size);
    must(!quoted.failed && utf8_valid(quoted.data, quoted.len));
    say_text("", quoted.data, quoted.len);
    json_doc *doc = NULL;
    err_code err = json_parse(&doc, quoted.data, quoted.len, 1, NULL);
    must(err == (has_nul ? ERR_INVALID : ERR_OK));
    if (err == ERR_OK) {
        must(strcmp(json_str(json_root(doc), "?"), bytes_str(&decoded)) == 0);
    }
    json_free(doc);
    bytes_deinit(&decoded);
    bytes_deinit(&quoted);
    return 0;
}
