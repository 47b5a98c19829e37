#include "text/jinja/template_habits.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"

enum { PROBE_BYTES = 1 << 20, WORDS_MAX = 5 };

/* A small conversation, and the words that must stand in its rendering, one behind the other. */
typedef struct probe {
    const char *messages, *tools; /* JSON; tools may be NULL */
    const char *words[WORDS_MAX];
    bool apart; /* between the last two words something must stand */
} probe;

#define SAYS(role, word) "{\"role\":\"" role "\",\"content\":\"" word "\"}"
#define TOOL                                                                                                 \
    "[{\"type\":\"function\",\"function\":{\"name\":\"probe_tool\",\"description\":\"probes\","              \
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"depth\":{\"type\":\"string\","                    \
    "\"description\":\"how deep\"}},\"required\":[\"depth\"]}}}]"
static const probe PLAIN = {"[" SAYS("user", "QUSER") "]", NULL, {"QUSER"}, false};
static const probe SYSTEM = {
    "[" SAYS("system", "QSYSTEM") "," SAYS("user", "QUSER") "]", NULL, {"QSYSTEM", "QUSER"}, true};
static const probe LATE_SYSTEM = {
    "[" SAYS("system", "QSYSTEM") "," SAYS("user", "QUSER") "," SAYS("assistant", "QANSWER") "," SAYS(
        "system", "QLATE") "," SAYS("user", "QNEXT") "]",
    NULL,
    {"QSYSTEM", "QUSER", "QANSWER", "QLATE", "QNEXT"},
    true};
static const probe LAST_SYSTEM = {
    "[" SAYS("user", "QUSER") "," SAYS("system", "QLATE") "]", NULL, {"QUSER", "QLATE"}, true};
static const probe REPEATS = {
    "[" SAYS("user", "QUSER") "," SAYS("user", "QNEXT") "]", NULL, {"QUSER", "QNEXT"}, true};
static const probe OFFERED = {"[" SAYS("user", "QUSER") "]", TOOL, {NULL}, false};

/* Whether the words stand in the text in this order. */
static bool shows(const probe *p, const char *text)
{
    const char *at = text;
    for (size_t i = 0; i < WORDS_MAX && p->words[i]; i++) {
        const char *found = strstr(at, p->words[i]);
        if (!found || (p->apart && i > 0 && found == at)) {
            return false;
        }
        at = found + strlen(p->words[i]);
    }
    return true;
}

/* Renders the conversation; false if the template fails on it, with its fault in *why. */
static bool render_or_why(const chat_template *t, const probe *p, bytes *text, err_detail *why, err_code *err,
                          err_detail *detail)
{
    json_doc *messages = NULL, *tools = NULL;
    arena *a = arena_create(PROBE_BYTES);
    jinja_value *vars = a ? jinja_dict(a) : NULL;
    bool ok =
        vars && json_parse(&messages, p->messages, strlen(p->messages), LIMIT_JSON_DEPTH, detail) == ERR_OK;
    ok = ok && jinja_dict_set(a, vars, "messages", jinja_from_json(a, json_root(messages))) &&
         jinja_dict_set(a, vars, "add_generation_prompt", jinja_bool(a, true)) &&
         jinja_dict_set(a, vars, "bos_token", jinja_str(a, "", 0)) &&
         jinja_dict_set(a, vars, "eos_token", jinja_str(a, "", 0));
    if (ok && p->tools) {
        ok = json_parse(&tools, p->tools, strlen(p->tools), LIMIT_JSON_DEPTH, detail) == ERR_OK &&
             jinja_dict_set(a, vars, "tools", jinja_from_json(a, json_root(tools)));
    }
    const err_code rendered = ok ? chat_template_render(t, text, NULL, vars, NULL, a, why) : ERR_NOMEM;
    if (rendered == ERR_NOMEM || text->no_memory) { /* nothing about the template */
        *err = err_set(detail, ERR_NOMEM, "no memory for the chat template");
    }
    ok = rendered == ERR_OK && !text->failed;
    json_free(messages);
    json_free(tools);
    arena_destroy(a);
    return ok;
}

static bool render(const chat_template *t, const probe *p, bytes *text, err_code *err, err_detail *detail)
{
    err_detail ignored = {0};
    return render_or_why(t, p, text, &ignored, err, detail);
}

/* Whether the template renders the conversation, and the words with it. */
static bool passes(const chat_template *t, const probe *p, err_code *err, err_detail *detail)
{
    bytes text;
    bytes_init(&text, PROBE_BYTES);
    const bool ok = render(t, p, &text, err, detail) && shows(p, bytes_str(&text));
    bytes_deinit(&text);
    return ok;
}

/* Whether tools change the text. A template that fails on these may want others. */
static bool takes_tools(const chat_template *t, err_code *err, err_detail *detail)
{
    bytes without, with;
    bytes_init(&without, PROBE_BYTES);
    bytes_init(&with, PROBE_BYTES);
    bool takes = chat_template_has_variable(t, "tools");
    if (render(t, &PLAIN, &without, err, detail) && render(t, &OFFERED, &with, err, detail)) {
        takes = strcmp(bytes_str(&without), bytes_str(&with)) != 0;
    }
    bytes_deinit(&without);
    bytes_deinit(&with);
    return takes;
}

/* ---- calls ---- */

/* How a call is given to the template. */
typedef struct call_manner {
    bool short_ids, string_arguments, no_text;
} call_manner;

#define CALL_ROUND                                                                                           \
    "[" SAYS("user",                                                                                         \
             "QUSER") ",{\"role\":\"assistant\",\"content\":%s,\"tool_calls\":[%s%s%s]},"                    \
                      "{\"role\":\"tool\",\"tool_call_id\":\"%s\",\"name\":\"probe_tool\",\"content\":"      \
                      "\"QRESULT\"}]"
#define CALL "{\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":\"probe_tool\",\"arguments\":%s}}"

enum { RENDERED = 1, SHOWN = 2 };

/* Renders a call, or two in one message. seen: gets what was seen of it, in any way. True if it wrote them, the
 * arguments neither as Python nor quoted twice. */
static bool writes_calls(const chat_template *t, call_manner m, bool two, bytes *text, unsigned *seen,
                         err_code *err, err_detail *detail)
{
    static const char *const IDS[] = {"call_0123456789abcdef", "Q1b2C3d4E"};
    static const char *const ARGUMENTS[][2] = {
        {"{\"depth\":\"QARG\"}", "\"{\\\"depth\\\":\\\"QARG\\\"}\""},
        {"{\"depth\":\"QMORE\"}", "\"{\\\"depth\\\":\\\"QMORE\\\"}\""}};
    char calls[2][512], talk[2048];
    const char *id = IDS[m.short_ids];
    for (size_t i = 0; i < 2; i++) {
        snprintf(calls[i], sizeof calls[i], CALL, id, ARGUMENTS[i][m.string_arguments]);
    }
    snprintf(talk, sizeof talk, CALL_ROUND, m.no_text ? "null" : "\"\"", calls[0], two ? "," : "",
             two ? calls[1] : "", id);
    const probe p = {talk, TOOL, {"QUSER", "QARG", two ? "QMORE" : NULL}, false};
    bytes_clear(text);
    const bool ok = render(t, &p, text, err, detail);
    *seen |= ok ? RENDERED : 0;
    *seen |= ok && strstr(bytes_str(text), "QARG") ? SHOWN : 0;
    return ok && shows(&p, bytes_str(text)) && !strstr(bytes_str(text), "{'depth'") &&
           !strstr(bytes_str(text), "\\\"depth") && !(m.no_text && strstr(bytes_str(text), "None"));
}

/* The first manner in which the template writes calls, or none. */
static void find_call_habits(template_habits *out, const chat_template *t, err_code *err, err_detail *detail)
{
    const char *source = chat_template_text(t);
    bytes text, other;
    bool found = false;
    unsigned seen = 0, ignored = 0;
    call_manner m = {0};
    bytes_init(&text, PROBE_BYTES);
    bytes_init(&other, PROBE_BYTES);
    for (unsigned i = 0; i < 8 && !found; i++) {
        m = (call_manner){.short_ids = i & 4, .string_arguments = i & 2, .no_text = i & 1};
        found = writes_calls(t, m, false, &text, &seen, err, detail);
    }
    if (found) {
        call_manner without = m;
        without.no_text = true;
        const bool writes = writes_calls(t, without, false, &other, &ignored, err, detail);
        out->no_call_text = m.no_text || (writes && other.len < text.len);
        out->string_arguments = m.string_arguments;
        out->short_ids = m.short_ids;
        out->one_call = !writes_calls(t, m, true, &other, &ignored, err, detail);
    }
    out->loses_calls = seen == RENDERED;
    out->python_calls = strstr(source, "<|tool_list_start|>") != NULL;
    out->counted_ids = strstr(source, "<|tool_call_argument_begin|>") != NULL;
    out->joins_results = strstr(source, "tool_responses") && !strstr(source, "'tool'");
    bytes_deinit(&text);
    bytes_deinit(&other);
}

err_code template_habits_try(const chat_template *t, err_detail *detail)
{
    bytes text;
    err_code err = ERR_OK;
    err_detail why = {0};
    bytes_init(&text, PROBE_BYTES);
    const bool ok = render_or_why(t, &PLAIN, &text, &why, &err, detail);
    bytes_deinit(&text);
    return ok || err ? err : err_set(detail, ERR_INVALID, "%s", why.text);
}

err_code template_habits_find(template_habits *out, const chat_template *t, err_detail *detail)
{
    err_code err = ERR_OK;
    *out = (template_habits){.takes_system = true, .takes_repeats = true, .takes_tools = true};
    if (!passes(t, &PLAIN, &err, detail)) {
        return err; /* it wants something of its own; nothing can be told */
    }
    out->takes_system = passes(t, &SYSTEM, &err, detail);
    out->takes_late_system = passes(t, &LATE_SYSTEM, &err, detail) && passes(t, &LAST_SYSTEM, &err, detail);
    out->takes_repeats = passes(t, &REPEATS, &err, detail);
    out->takes_tools = takes_tools(t, &err, detail);
    out->says_thinking = strstr(chat_template_text(t), "message.thinking") != NULL;
    if (out->takes_tools) {
        find_call_habits(out, t, &err, detail);
    }
    return err;
}
