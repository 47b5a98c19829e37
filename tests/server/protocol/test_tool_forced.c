/* tool_form_write_spec: the grammar of a forced call lets through what the form's own parser reads
 * as that call, whole and with arguments that satisfy the schema, and nothing else. */
#include "base/limits.h"
#include "tests/check.h"
#include "tests/server/protocol/tool_writer.h"
#include "tests/server/protocol/transcript.h"
#include "tests/text/grammar/grammar_walk.h"
#include "engine/grammar_spec.h"

enum { N_WALKS = 24, MAX_TOKENS = 600 };

static const char SCHEMA[] =
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\",\"maxLength\":20},"
    "\"days\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9}},"
    "\"required\":[\"city\",\"days\"],\"additionalProperties\":false}";

static token_trie *trie;
static err_detail d;

static grammar_cursor *open_cursor(const grammar *g)
{
    grammar_cursor *c = NULL;
    CHECK_OK(grammar_cursor_create(&c, g, trie, false, &d), d);
    if (!c) {
        exit(1);
    }
    return c;
}

static bool accepts(const grammar *g, const char *text)
{
    grammar_cursor *c = open_cursor(g);
    bool ok = true;
    for (const char *p = text; *p && ok; p++) {
        ok = grammar_cursor_accept(c, token_trie_find(trie, p, 1));
    }
    ok = ok && grammar_cursor_is_complete(c, grammar_cursor_state(c));
    grammar_cursor_destroy(c);
    return ok;
}

/* One call of get_weather and nothing around it, with the arguments that the schema asks for. */
static void check_read(const reply_rules *rules, const bytes *text)
{
    reply_parser p;
    json_doc *doc = NULL;
    reply_parser_init(&p, rules);
    reply_parser_push(&p, text->data, text->len);
    reply_parser_finish(&p, false);
    const reply_piece *piece = p.pieces.items;
    const bool is_call = p.pieces.n == 3 && piece[0].kind == REPLY_CALL && piece[1].kind == REPLY_ARGUMENTS &&
                         piece[2].kind == REPLY_CALL_END;
    CHECK(is_call);
    if (is_call) {
        CHECK_STR(bytes_str(&p.pieces.items[0].text), "get_weather");
        CHECK_OK(json_parse(&doc, piece[1].text.data, piece[1].text.len, LIMIT_JSON_DEPTH, &d), d);
        int64_t days = 0;
        CHECK_INT(json_len(json_root(doc)), 2);
        CHECK(json_is(json_get(json_root(doc), "city"), JSON_STRING));
        CHECK(json_int(json_get(json_root(doc), "days"), 1, 9, &days));
    }
    json_free(doc);
    reply_parser_deinit(&p);
}

static void check_walks(const grammar *g, const reply_rules *rules)
{
    int n_whole = 0;
    for (uint64_t seed = 0; seed < N_WALKS; seed++) {
        grammar_cursor *c = open_cursor(g);
        bytes text;
        bytes_init(&text, 1 << 20);
        if (walk_text(&text, c, trie, seed, "\"}", MAX_TOKENS)) {
            n_whole++;
            check_read(rules, &text);
        }
        bytes_deinit(&text);
        grammar_cursor_destroy(c);
    }
    CHECK(n_whole > 0);
}

/* yes, no: texts, the lists end with NULL. */
static void check_form(const tool_form *form, const tool_set *tools, const json *schema,
                       const char *const *yes, const char *const *no)
{
    grammar_spec spec = {0};
    grammar *g = NULL;
    arena *a = arena_create(1 << 20);
    CHECK(a && tool_form_write_spec(form, a, &spec, "get_weather", schema, "tools[0].function.parameters"));
    CHECK_OK(grammar_build(&g, &spec, NULL, &d), d);
    if (!g) {
        exit(1);
    }
    for (; *yes; yes++) {
        CHECK(accepts(g, *yes));
    }
    for (; *no; no++) {
        CHECK(!accepts(g, *no));
    }
    check_walks(g, &(reply_rules){.form = form, .tools = tools});
    grammar_destroy(g);
    arena_destroy(a);
}

/* The layout that a forced call has: the first of each form but for what a model may leave out. */
static bool is_forced_layout(const tool_writer_row *w)
{
    return w->kind != WRITES_NAMED && w->form != &TOOL_FORM_MISTRAL_LIST && w->form != &TOOL_FORM_HARMONY &&
           !strstr(w->before, "CALL_ID") && !strstr(w->before, "type") &&
           strcmp(w->before, "<tool_call>%s") != 0;
}

static bool holds_one(const char *text, const char *const *list, size_t n)
{
    bool holds = false;
    for (size_t i = 0; list && i < n && list[i]; i++) {
        holds = holds || (strlen(list[i]) > 2 && strstr(text, list[i]));
    }
    return holds;
}

static bool holds_marker(const tool_form *form)
{
    const char *const texts[] = {form->before_name, form->behind_name, form->after,
                                 form->all,         form->all_close,   form->between};
    bool holds = false;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *text = texts[i] ? texts[i] : "";
        holds = holds || holds_one(text, form->markers, TOOL_MARKERS) ||
                holds_one(text, form->closers, TOOL_CLOSERS) || holds_one(text, form->inner, SIZE_MAX);
    }
    return holds;
}

/* What the form has for markers is written as such, so that a tokenizer's one token is taken for it; how many. */
static size_t check_markers(const tool_form *form, const grammar_spec *spec)
{
    size_t n = spec->kind == SPEC_MARKER;
    if (spec->kind == SPEC_TEXT) {
        CHECK(!holds_one(spec->text, form->markers, TOOL_MARKERS));
        CHECK(!holds_one(spec->text, form->closers, TOOL_CLOSERS));
        CHECK(!holds_one(spec->text, form->inner, SIZE_MAX));
    }
    for (size_t i = 0; i < spec->n_items; i++) {
        n += check_markers(form, &spec->items[i]);
    }
    return n;
}

/* What a specification says, so that one can be compared with another. */
static void write_spec(bytes *out, const grammar_spec *spec)
{
    bytes_printf(out, "%d %s %s %d %d %d(", (int)spec->kind, spec->text ? spec->text : "-",
                 spec->path ? spec->path : "-", (int)spec->min, (int)spec->max, spec->schema != NULL);
    for (size_t i = 0; i < spec->n_items; i++) {
        write_spec(out, &spec->items[i]);
    }
    bytes_append_char(out, ')');
}

/* With less memory than it takes nothing is specified; with enough of it all. */
static void check_memory(const tool_form *form, const json *schema, const grammar_spec *whole)
{
    bytes now = bytes_empty(1 << 16), expected = bytes_empty(1 << 16);
    write_spec(&expected, whole);
    size_t room = 0;
    for (bool ok = false; !ok && room < 1 << 16; room += 64) {
        arena *a = arena_create(room);
        grammar_spec call = {0}, several = {0};
        ok = a && tool_form_write_spec(form, a, &call, "get_weather", schema, "tools[0]") &&
             tool_form_write_answer(form, a, &several, &call, 1, true);
        if (ok) {
            write_spec(&now, &several);
        }
        arena_destroy(a);
    }
    CHECK(room > 512); /* which means many failures */
    CHECK_STR(bytes_str(&now), bytes_str(&expected));
    bytes_deinit(&now);
    bytes_deinit(&expected);
}

/* Calls of every form: what the grammar lets through is read as calls, and what models write is let
 * through. */
static void test_every_form(const tool_set *tools, const json *schema)
{
    static const char TWO[] =
        "[{\"name\":\"get_weather\",\"arguments\":{\"city\":\"Köln [a] {b}\",\"days\":3}},"
        "{\"name\":\"get_weather\",\"arguments\":{\"city\":\"\",\"days\":1}}]";
    json_doc *two = NULL;
    CHECK_OK(json_parse(&two, TWO, strlen(TWO), LIMIT_JSON_DEPTH, &d), d);
    for (size_t i = 0; i < ARRAY_LEN(TOOL_WRITERS); i++) {
        const tool_writer_row *w = &TOOL_WRITERS[i];
        arena *a = arena_create(1 << 20);
        grammar_spec call = {0}, one = {0}, several = {0};
        grammar *g = NULL;
        CHECK(a && tool_form_write_spec(w->form, a, &call, "get_weather", schema, "tools[0]"));
        CHECK(tool_form_write_answer(w->form, a, &one, &call, 1, false));
        CHECK(tool_form_write_answer(w->form, a, &several, &call, 1, true));
        check_memory(w->form, schema, &several);
        CHECK((check_markers(w->form, &several) > 0) == holds_marker(w->form));
        CHECK_OK(grammar_build(&g, &one, NULL, &d), d);
        check_walks(g, &(reply_rules){.form = w->form, .think = tool_writer_think(w->form), .tools = tools});
        grammar_destroy(g);
        CHECK_OK(grammar_build(&g, &several, NULL, &d), d);
        bytes text = bytes_empty(1 << 16);
        tool_writer_calls(&text, w, json_root(two));
        if (is_forced_layout(w) && !accepts(g, bytes_str(&text))) {
            CHECK_STR(bytes_str(&text), w->form->name);
        }
        bytes_append_str(&text, "x");
        CHECK(!accepts(g, bytes_str(&text)) && !accepts(g, "Hello"));
        bytes_deinit(&text);
        grammar_destroy(g);
        arena_destroy(a);
    }
    json_free(two);
}

#define HERMES(body) "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": " body "}\n</tool_call>"
#define XML(body)    "<tool_call>\n<function=get_weather>\n" body "</function>\n</tool_call>"
#define CITY(value)  "<parameter=city>\n" value "\n</parameter>\n"
#define DAYS(value)  "<parameter=days>\n" value "\n</parameter>\n"

int main(void)
{
    static const char *const HERMES_YES[] = {HERMES("{\"city\": \"Köln \\\"am\\\" Rhein\", \"days\": 3}"),
                                             HERMES("{\"city\":\"</tool_call>\",\"days\":9}"), NULL};
    static const char *const HERMES_NO[] = {
        HERMES("{}"),
        HERMES("{\"city\": \"A\", \"days\": 10}"),
        HERMES("{\"city\": 5, \"days\": 1}"),
        HERMES("{\"city\": \"A\", \"days\": 1}}"),
        "<tool_call>\n{\"name\": \"now\", \"arguments\": {\"city\": \"A\", \"days\": 1}}\n</tool_call>",
        "I look. " HERMES("{\"city\": \"A\", \"days\": 1}"),
        HERMES("{\"city\": \"A\", \"days\": 1}") "\n",
        NULL};
    static const char *const XML_YES[] = {XML(CITY("Köln \"am\" Rhein") DAYS("3")), XML(CITY("") DAYS("9")),
                                          NULL};
    static const char *const XML_NO[] = {XML(""),
                                         XML(CITY("A")),
                                         XML(CITY("A") DAYS("10")),
                                         XML(CITY("A") DAYS("\"3\"")),
                                         XML(CITY("A") DAYS("3")) "\n",
                                         NULL};
    static const char TOOL[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"parameters\":%s}}]";
    char text[1024];
    json_doc *doc = NULL;
    tool_set *tools = NULL;
    tokenizer *tok = NULL;
    const int n = snprintf(text, sizeof text, TOOL, SCHEMA);
    CHECK_OK(json_parse(&doc, text, (size_t)n, LIMIT_JSON_DEPTH, &d), d);
    CHECK_OK(tool_set_create(&tools, json_root(doc), &d), d);
    CHECK_OK(tokenizer_open(&tok, check_data("tiny/tokenizer.json"), &d), d);
    const int32_t stop = tok ? tokenizer_added_id(tok, "<|im_end|>") : -1;
    if (!tools || stop < 0) {
        return 1;
    }
    CHECK_OK(token_trie_create(&trie, tok, &stop, 1, &d), d);
    const json *schema = json_get(json_get(json_child(json_root(doc)), "function"), "parameters");
    check_form(&TOOL_FORM_HERMES, tools, schema, HERMES_YES, HERMES_NO);
    check_form(&TOOL_FORM_XML, tools, schema, XML_YES, XML_NO);
    test_every_form(tools, schema);
    token_trie_destroy(trie);
    tokenizer_close(tok);
    tool_set_destroy(tools);
    json_free(doc);
    CHECK_DONE();
}
