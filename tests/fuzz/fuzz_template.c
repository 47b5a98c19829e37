/* template: any template text, rendered with any variables. The input is the template, then
 * optionally a zero byte and the variables as JSON. Nothing may crash, hang or grow without bound;
 * the result is valid UTF-8 when template and variables are. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "text/jinja/chat_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char DEFAULT_VARS[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"Be "
    "brief.\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\","
    "\"text\":\"What is "
    "it?\"},{\"type\":\"image\",\"image\":\"x\"}]},{\"role\":\"assistant\",\"content\":\"A \\u00e9<\","
    "\"reasoning_content\":\"hm\",\"tool_calls\":[{\"type\":\"function\",\"function\":{\"name\":\"f\","
    "\"arguments\":"
    "{\"a\":1,\"b\":[1.5,null,true],\"c\":\"x\"}}}]},{\"role\":\"tool\",\"content\":\"42\"}],\"tools\":[{"
    "\"type\":"
    "\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],\"add_generation_prompt\":true,\"bos_"
    "token\":\"<s>\","
    "\"eos_token\":\"</s>\",\"enable_thinking\":false,\"n\":3,\"s\":\"text\"}";

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    edit e = edit_begin(data, size, max, seed);
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    const size_t n = zero ? (size_t)(zero - data) : size;
    if (zero && edit_below(&e, 3) == 0) {
        edit_part(&e, n + 1, size, mutate_json, "template");
    } else {
        edit_part(&e, 0, n, mutate_words, "template");
    }
    return e.size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *zero = size > 0 ? memchr(text, 0, size) : NULL;
    size_t len = zero ? (size_t)(zero - text) : size;
    const char *vars_text = zero ? zero + 1 : DEFAULT_VARS;
    size_t vars_len = zero ? size - len - 1 : sizeof DEFAULT_VARS - 1;

    json_doc *doc = NULL;
    if (json_parse(&doc, vars_text, vars_len, LIMIT_JSON_DEPTH, NULL) != ERR_OK) {
        return 0;
    }
    chat_template *t = NULL;
    err_detail detail = {0};
    err_code err = chat_template_compile(&t, text, len, &detail);
    if (err != ERR_OK) {
        must(t == NULL && detail.text[0] != '\0');
        json_free(doc);
        return 0;
    }
    arena *a = arena_create(32u << 20);
    must(a != NULL);
    bytes out;
    bytes_init(&out, 1u << 20);
    const jinja_value *vars = jinja_from_json(a, json_root(doc));
    if (vars && json_is(json_root(doc), JSON_OBJECT)) {
        err = chat_template_render(t, &out, NULL, vars, NULL, a, &detail);
        must(err == ERR_OK || detail.text[0] != '\0');
        if (err == ERR_OK && utf8_valid(text, len)) {
            must(utf8_valid(bytes_str(&out), out.len));
        }
    }
    bytes_deinit(&out);
    arena_destroy(a);
    chat_template_close(t);
    json_free(doc);
    return 0;
}
