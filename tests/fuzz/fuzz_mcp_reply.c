/* mcp_reply: what an MCP server lists and what its tools bring is bounded, clean and, where it is written as
 * JSON, JSON again. The first byte chooses what it is read as. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "server/mcp/mcp_catalog.h"
#include "server/mcp/mcp_result.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_result(const bytes *text)
{
    json_doc *doc = NULL;
    if (json_parse(&doc, bytes_str(text), text->len, LIMIT_JSON_DEPTH + 8, NULL) != ERR_OK) {
        return;
    }
    mcp_result *r = mcp_result_create(1, 2);
    must(r != NULL);
    mcp_result_read(r, json_root(doc));
    must(utf8_valid(bytes_str(&r->text), r->text.len) && r->n_images <= LIMIT_MCP_IMAGES);
    say("failed %d, %zu images", r->has_failed, r->n_images);
    say_text("text", bytes_str(&r->text), r->text.len);
    say_text("images", bytes_str(&r->images), r->images.len);
    say_text("whole", bytes_str(&r->whole), r->whole.len);
    bytes images = bytes_empty(SIZE_MAX / 2);
    bytes_append_char(&images, '[');
    bytes_append(&images, bytes_str(&r->images), r->images.len);
    bytes_append_char(&images, ']');
    must_be_json(&images);
    if (r->whole.len > 0) {
        must_be_json(&r->whole);
    }
    bytes_deinit(&images);
    mcp_result_free(r);
    json_free(doc);
}

static void read_lists(const bytes *text, bool is_http)
{
    static const mcp_server_config stream = {.label = "s", .kind = MCP_STDIO},
                                   http = {.label = "s", .kind = MCP_HTTP};
    const mcp_server_config *config = is_http ? &http : &stream;
    mcp_offer *o = mcp_offer_create(config, text, text, text);
    must(o != NULL);
    say("%zu tools, %zu left out", o->n_tools, o->left_out);
    for (size_t i = 0; i < o->n_tools; i++) {
        const mcp_tool *t = &o->tools[i];
        must(mcp_offer_find(o, t->name) == t && json_is(t->schema, JSON_OBJECT));
        must(t->clean[0] && strlen(t->clean) <= MCP_CLEAN_NAME_MAX);
        must(utf8_valid(t->description, strlen(t->description)));
        say("%s as %s, title %s: %s; read only %d, unasked %d, once %d", t->name, t->clean, t->title,
            t->description, t->is_read_only, t->runs_unasked, t->asks_once);
        for (size_t k = 0; k < t->n_headers; k++) {
            say("header %s of %s", t->headers[k].header, t->headers[k].param);
            must(t->headers[k].param && t->headers[k].header[0]);
        }
    }
    mcp_catalog *c = mcp_catalog_create(1);
    must(c != NULL);
    c->servers[0] = (mcp_server_view){.config = config, .state = MCP_READY, .offer = o};
    bytes out = bytes_empty(SIZE_MAX / 2);
    mcp_catalog_write(&out, c);
    say_text("catalog", bytes_str(&out), out.len);
    must_be_json(&out);
    bytes_deinit(&out);
    mcp_catalog_release(c);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return mutate_behind(1, mutate_json, data, size, max, seed, "mcp_reply");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MAX_BYTES = 65536 };
    if (size < 1 || size > MAX_BYTES) {
        return 0;
    }
    /* cut at the depth that is read, as every message is */
    bytes text = bytes_empty(SIZE_MAX / 2);
    mcp_prune(&text, (const char *)data + 1, size - 1, LIMIT_JSON_DEPTH + 7);
    if (text.len != size - 1 || (size > 1 && memcmp(bytes_str(&text), data + 1, size - 1) != 0)) {
        say_text("pruned", bytes_str(&text), text.len);
    }
    if (data[0] & 1) {
        read_result(&text);
    } else {
        read_lists(&text, data[0] & 2);
    }
    bytes_deinit(&text);
    return 0;
}
