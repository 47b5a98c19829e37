/* template: any template text, rendered with any variables. The input is the template, then
 * optionally a zero byte and the variables as JSON. Nothing may crash, hang or grow without bound;
 * the result is valid UTF-8 when template and variables are. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/say.h"
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

enum { SPANS = 8, NOON = 1795176000 /* what strftime_now shows */ };

static size_t count_messages(const json_doc *vars)
{
    return json_len(json_get(json_root(vars), "messages"));
}

/* What was found in it when it was compiled. */
static void say_template(const chat_template *t)
{
    if (*chat_template_unknown(t)) {
        say("unknown: %s", chat_template_unknown(t));
    }
    if (chat_template_has_variable(t, "tools") || chat_template_has_variable(t, "enable_thinking")) {
        say("variables: tools %d, enable_thinking %d", chat_template_has_variable(t, "tools"),
            chat_template_has_variable(t, "enable_thinking"));
    }
}

static void say_trace(const chat_template_trace *trace, size_t n)
{
    if (trace->history_len > 0) {
        say("history: %zu bytes", trace->history_len);
    }
    for (size_t i = 0; trace->spans && i < n && !trace->is_torn; i++) {
        if (trace->spans[i].end > trace->spans[i].begin) {
            say("message %zu: %zu to %zu", i, trace->spans[i].begin, trace->spans[i].end);
        }
    }
    if (trace->is_torn) {
        say("messages are torn");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *zero = size > 0 ? memchr(text, 0, size) : NULL;
    size_t len = zero ? (size_t)(zero - text) : size;
    const char *vars_text = zero ? zero + 1 : DEFAULT_VARS;
    size_t vars_len = zero ? size - len - 1 : sizeof DEFAULT_VARS - 1;

    setenv("TZ", "UTC0", 1);
    json_doc *doc = NULL;
    if (json_parse(&doc, vars_text, vars_len, LIMIT_JSON_DEPTH, NULL) != ERR_OK) {
        return 0;
    }
    chat_template *t = NULL;
    err_detail detail = {0};
    err_code err = chat_template_compile(&t, text, len, &detail);
    if (err != ERR_OK) {
        must(t == NULL && detail.text[0] != '\0');
        say_error(err, &detail);
        json_free(doc);
        return 0;
    }
    say_template(t);
    arena *a = arena_create(32u << 20);
    must(a != NULL);
    bytes out;
    bytes_init(&out, 1u << 20);
    jinja_value *vars = jinja_from_json(a, json_root(doc));
    if (vars && json_is(json_root(doc), JSON_OBJECT) &&
        jinja_dict_set(a, vars, CHAT_TEMPLATE_NOW, jinja_int(a, NOON))) {
        jinja_span spans[SPANS] = {{0}};
        chat_template_trace trace = {.spans = count_messages(doc) <= SPANS ? spans : NULL};
        err = chat_template_render(t, &out, &trace, vars, NULL, a, &detail);
        if (err == ERR_OK) {
            say_text("", bytes_str(&out), out.len);
            say_trace(&trace, count_messages(doc));
        } else {
            say_error(err, &detail);
        }
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
