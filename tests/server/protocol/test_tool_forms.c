/* Every form of tool call: what models write in it, whole and broken, is read the same however it is
 * cut, nothing is lost, and no prefix of it gives arguments that are not JSON. */
#include "base/limits.h"
#include "tests/recorded.h"
#include "tests/server/protocol/tool_writer.h"
#include "tests/server/protocol/tools_of.h"
#include "tests/server/protocol/transcript.h"

static const char TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"find\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{"
    "\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"},\"ratio\":{\"type\":\"number\"},"
    "\"metric\":{\"type\":\"boolean\"},\"opts\":{\"type\":\"object\"},\"tags\":{\"type\":\"array\"},"
    "\"maybe\":{\"type\":[\"string\",\"null\"]}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"now\"}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"write-file_2\",\"parameters\":{\"properties\":{"
    "\"path\":{\"type\":\"string\"},\"content\":{\"type\":\"string\"}}}}}]";

static tool_set *tools;
static err_detail d;

static json_doc *parse(const char *text)
{
    json_doc *doc = NULL;
    CHECK_OK(json_parse(&doc, text, strlen(text), LIMIT_JSON_DEPTH, &d), d);
    return doc;
}

/* ---- what every form is asked to say ---- */

#define ONE(arguments) "[{\"name\":\"find\",\"arguments\":" arguments "}]"
#define NOW            "{\"name\":\"now\",\"arguments\":{}}"
#define CITY(city)     "{\"name\":\"find\",\"arguments\":{\"city\":\"" city "\"}}"
#define ONE_MORE       "{\"name\":\"find\",\"arguments\":{\"tags\":[\"x\",\"y\"]}}"
#define FILE_CALL(content)                                                                                   \
    "[{\"name\":\"write-file_2\",\"arguments\":{\"path\":\"a/b.c\",\"content\":\"" content "\"}}]"

typedef struct scenario {
    const char *before, *calls, *after; /* text around the calls */
    bool one_call;
} scenario;

static const scenario SCENARIOS[] = {
    {"", ONE("{\"city\":\"Paris\"}"), "", false},
    {"", "[" NOW "]", "", false},
    {"", ONE("{\"city\":\"Köln\"}"), "", false},
    {"", ONE("{\"city\":\"東京 😀 e\u0301\"}"), "", false},
    {"", ONE("{\"city\":\"A\",\"days\":3}"), "", false},
    {"", ONE("{\"days\":-3,\"ratio\":2.5,\"metric\":true}"), "", false},
    {"", ONE("{\"metric\":false,\"maybe\":null}"), "", false},
    {"", ONE("{\"tags\":[\"a\",\"b c\"]}"), "", false},
    {"", ONE("{\"tags\":[1,[2,[true,null]],{\"k\":\"v\"}]}"), "", false},
    {"", ONE("{\"opts\":{\"a\":{\"b\":{\"c\":[1,2]}},\"d\":\"e\"}}"), "", false},
    {"", ONE("{\"opts\":{},\"tags\":[]}"), "", false},
    {"", ONE("{\"city\":\"two\\nlines\"}"), "", false},
    {"", ONE("{\"city\":\"a, b) c] d} e: f= g; {h\"}"), "", false},
    {"", ONE("{\"city\":\"it's 1 < 2 & 3 > 2\"}"), "", false},
    {"", ONE("{\"city\":\"5\"}"), "", false},
    {"", ONE("{\"city\":\"true\"}"), "", false},
    {"", ONE("{\"city\":\"null\"}"), "", false},
    {"", ONE("{\"city\":\"\"}"), "", false},
    {"", ONE("{\"city\":\"tab\\there\"}"), "", false},
    {"", ONE("{\"city\":\"https://x.org/?a=1&b=[2]#c\"}"), "", false},
    {"", ONE("{\"city\":\"[now()] {call} (x)\"}"), "", false},
    {"", ONE("{\"other\":\"x y\"}"), "", false},
    {"", FILE_CALL("int main(void)\\n{\\n    return a[0] ? f(1, 2) : 0;\\n}"), "", false},
    {"", FILE_CALL("# Title\\n\\n- one\\n- two, three\\n"), "", false},
    {"", FILE_CALL("if (a < b && c > d) { <b>x</b> }"), "", false},
    {"", "[{\"name\":\"fly\",\"arguments\":{\"to\":\"moon\"}}]", "", false},
    {"I look it up.\n\n", ONE("{\"city\":\"A\"}"), "", false},
    {"Schön. ", ONE("{\"days\":1}"), "", false},
    {"看看。", "[" NOW "]", "", false},
    {"Two lines\nbefore:\n", ONE("{\"city\":\"A\"}"), "", false},
    {"", "[" CITY("A") "," CITY("B") "]", "", false},
    {"", "[" NOW "," CITY("B") "," NOW "]", "", false},
    {"Both.\n", "[" CITY("a, b") "," NOW "]", "", false},
    {"", "[" CITY("A") "," CITY("B") "]", "", true},
    {"", "[" NOW "]", "\n\nDone.", false},
    {"", ONE("{\"city\":\"C:\\\\dir\\\\new \\\"x\\\" 'y'\"}"), "", false},
    {"", ONE("{\"ratio\":-5e-11,\"days\":0}"), "", false},
    {"", ONE("{\"city\":\"  padded  \"}"), "", false},
    {"", ONE("{\"city\":\"👩‍👩‍👧‍👦 שלום العربية\"}"), "", false},
    {"", ONE("{\"tags\":[{\"a\":[{\"b\":{\"c\":[[],{},null,true,1.5,\"s\"]}}]}]}"), "", false},
    {"", ONE("{\"city\":\"{\\\"a\\\": 1}\"}"), "", false},
    {"", ONE("{\"city\":\"\\\"\"}"), "", false},
    {"", ONE("{\"city\":\"<think>x\"}"), "", false},
    {"", ONE("{\"city\":\"%s {{x}} {% y %}\"}"), "", false},
    {"", ONE("{\"tags\":[\"a\\nb\",\"it's\",\"say \\\"hi\\\"\"]}"), "", false},
    {"", ONE("{\"days\":0,\"ratio\":0,\"metric\":false,\"city\":\"\",\"tags\":[],\"opts\":{}}"), "", false},
    {"", "[" NOW "," CITY("A") "," ONE_MORE "]", "", false},
};

/* Llama's and the bare list's calls stand alone: nothing but a name that is known tells them from
 * text. */
static bool suits(const tool_writer_row *w, const scenario *s)
{
    const bool is_bare = w->form == &TOOL_FORM_LLAMA3_JSON || w->form == &TOOL_FORM_PYTHONIC;
    return !is_bare || (!strstr(s->calls, "fly") && strcmp(s->before, "") == 0);
}

static void expect(bytes *out, const scenario *s, const json *calls)
{
    size_t n = strlen(s->before);
    while (n > 0 && strchr(" \n", s->before[n - 1])) {
        n--;
    }
    if (n > 0) {
        bytes_printf(out, "C{%.*s}", (int)n, s->before);
    }
    for (const json *c = json_child(calls); c; c = s->one_call ? NULL : json_next(c)) {
        bytes_printf(out, "[%s ", json_str(json_get(c, "name"), ""));
        json_write(out, json_get(c, "arguments"));
        bytes_append_str(out, "]");
    }
    if (s->after[0]) {
        bytes_printf(out, "C{%s}", s->after + strspn(s->after, "\n"));
    }
}

/* ---- checks ---- */

static void check_same(const reply_rules *rules, const char *text, size_t len, const char *expected)
{
    bytes whole = bytes_empty(1 << 20);
    transcript_parse_split(&whole, rules, text, len, len, false);
    CHECK_STR(bytes_str(&whole), expected);
    bool ok = strcmp(bytes_str(&whole), expected) == 0;
    for (size_t cut = 0; cut < len && ok; cut++) {
        bytes out = bytes_empty(1 << 20);
        transcript_parse_split(&out, rules, text, len, cut, false);
        ok = strcmp(bytes_str(&out), expected) == 0;
        if (!ok) {
            CHECK_STR(bytes_str(&out), expected);
            fprintf(stderr, "  cut at %zu of %s\n", cut, text);
        }
        bytes_deinit(&out);
    }
    for (size_t step = 1; step < 8 && ok; step++) {
        bytes out = bytes_empty(1 << 20);
        transcript_parse(&out, rules, text, len, step, 0, false);
        ok = strcmp(bytes_str(&out), expected) == 0;
        CHECK_STR(bytes_str(&out), expected);
        bytes_deinit(&out);
    }
    if (!ok) {
        fprintf(stderr, "  form %s: %s\n", rules->form->name, text);
    }
    bytes_deinit(&whole);
}

/* Where an answer stops its calls are whole or cut, and arguments of whole ones are JSON. */
static void check_prefixes(const reply_rules *rules, const char *text, size_t len)
{
    for (size_t n = 0; n <= len; n++) {
        reply_parser p;
        bytes arguments = bytes_empty(1 << 20);
        reply_parser_init(&p, rules);
        reply_parser_push(&p, text, n);
        reply_parser_finish(&p, false);
        for (size_t i = 0; i < p.pieces.n; i++) {
            const reply_piece *piece = &p.pieces.items[i];
            if (piece->kind == REPLY_CALL) {
                bytes_clear(&arguments);
            } else if (piece->kind == REPLY_ARGUMENTS) {
                bytes_append(&arguments, bytes_str(&piece->text), piece->text.len);
            } else if (piece->kind == REPLY_CALL_END) {
                json_doc *doc = NULL;
                const bool ok = json_parse(&doc, bytes_str(&arguments), arguments.len, LIMIT_JSON_DEPTH,
                                           NULL) == ERR_OK ||
                                rules->form->arguments == SPEC_SCHEMA; /* as the model wrote them */
                CHECK(ok);
                if (!ok) {
                    fprintf(stderr, "  %s: \"%.*s\" gives %s\n", rules->form->name, (int)n, text,
                            bytes_str(&arguments));
                    n = len;
                }
                json_free(doc);
            }
            CHECK(piece->kind != REPLY_CALL_CUT);
        }
        bytes_deinit(&arguments);
        reply_parser_deinit(&p);
    }
}

static void test_scenarios(void)
{
    for (size_t w = 0; w < ARRAY_LEN(TOOL_WRITERS); w++) {
        for (size_t i = 0; i < ARRAY_LEN(SCENARIOS); i++) {
            const scenario *s = &SCENARIOS[i];
            if (!suits(&TOOL_WRITERS[w], s)) {
                continue;
            }
            json_doc *calls = parse(s->calls);
            bytes text = bytes_empty(1 << 16), expected = bytes_empty(1 << 16);
            bytes_append_str(&text, s->before);
            tool_writer_calls(&text, &TOOL_WRITERS[w], json_root(calls));
            bytes_append_str(&text, s->after);
            expect(&expected, s, json_root(calls));
            const reply_rules rules = {.form = TOOL_WRITERS[w].form,
                                       .think = tool_writer_think(TOOL_WRITERS[w].form),
                                       .tools = tools,
                                       .one_call = s->one_call};
            check_same(&rules, bytes_str(&text), text.len, bytes_str(&expected));
            check_prefixes(&rules, bytes_str(&text), text.len);
            bytes_deinit(&text);
            bytes_deinit(&expected);
            json_free(calls);
        }
    }
}

/* ---- what models write wrong, and what only looks like a call ---- */

typedef struct odd_case {
    const tool_form *form;
    const char *text, *expected;
} odd_case;

#define DS_BEGIN   "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
#define KIMI(name) "<|tool_call_begin|>" name "<|tool_call_argument_begin|>"
#define INVOKE     "<minimax:tool_call>\n<invoke name=\"find\">\n"
#define DSML       "｜DSML｜"

static const odd_case ODD_JSON[] = {
    /* Mistral */
    {&TOOL_FORM_MISTRAL, "[TOOL_CALLS]now{}", "[now {}]"},
    {&TOOL_FORM_MISTRAL, "So [TOOL_CALLS]now[ARGS]{}", "C{So}[now {}]"},
    {&TOOL_FORM_MISTRAL, "[TOOL_CALLS] now [ARGS] {\"a\": 1}", "[now {\"a\": 1}]"},
    {&TOOL_FORM_MISTRAL, "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}]", "[now {}]"},
    {&TOOL_FORM_MISTRAL, "[TOOL_CALLS]now[ARGS]{\"a\": \"x", "[now {\"a\": \"x\"}]"},
    {&TOOL_FORM_MISTRAL, "[TOOL_CALLS]now[ARGS]", "[now {}]"},
    {&TOOL_FORM_MISTRAL, "[TOOL_CALLS]now[ARGS]{\"t\": True, \"n\": None}",
     "[now {\"t\": true, \"n\": null}]"},
    {&TOOL_FORM_MISTRAL, "[TOOL_CALLS]now[ARGS]{\"a\": \"x\\\ny\\\tz\\\\\n\"}",
     "[now {\"a\": \"x\\\\\\ny\\\\\\tz\\\\\\n\"}]"},
    {&TOOL_FORM_MISTRAL, "[TOOL_CALLS]two words[ARGS]{}", "C{[TOOL_CALLS]two words[ARGS]{}}"},
    {&TOOL_FORM_MISTRAL, "[TOOL_CALLS]", "C{[TOOL_CALLS]}"},
    {&TOOL_FORM_MISTRAL, "[TOOL_CALLS]now", "C{[TOOL_CALLS]now}"},
    {&TOOL_FORM_MISTRAL, "[1, 2] and [TOOLS]", "C{[1, 2] and [TOOLS]}"},
    {&TOOL_FORM_MISTRAL_LIST, "[TOOL_CALLS] [{\"name\":\"now\",\"arguments\":{}},{\"name\":\"now\"}]",
     "[now {}][now {}]"},
    {&TOOL_FORM_MISTRAL_LIST, "[TOOL_CALLS][{\"arguments\": {\"a\":1}, \"name\": \"now\"}] yes",
     "[now {\"a\":1}]C{yes}"},
    {&TOOL_FORM_MISTRAL_LIST, "[TOOL_CALLS][{\"name\":\"now\"}], {\"name\":\"now\"}",
     "[now {}]C{, {\"name\":\"now\"}}"},
    {&TOOL_FORM_MISTRAL_LIST, "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}, {\"nom\": 1}]",
     "[now {}]C{, {\"nom\": 1}]}"},
    {&TOOL_FORM_MISTRAL_LIST, "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}", "[now {}]"},
    {&TOOL_FORM_MISTRAL_LIST, "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}, ", "[now {}]C{, }"},
    {&TOOL_FORM_MISTRAL_LIST, "[TOOL_CALLS][]", "C{[TOOL_CALLS][]}"},
    {&TOOL_FORM_MISTRAL_LIST, "[TOOL_CALLS]now[ARGS]{}", "[now {}]"},
    /* Llama 3 */
    {&TOOL_FORM_LLAMA3_JSON, "{\"name\": \"now\"}", "[now {}]"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"name\": \"now\", \"parameters\": {\"a\": [1", "[now {\"a\": [1]}]"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"name\": \"fly\", \"parameters\": {}}",
     "C{{\"name\": \"fly\", \"parameters\": {}}}"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"answer\": 42}", "C{{\"answer\": 42}}"},
    {&TOOL_FORM_LLAMA3_JSON, "{ x }", "C{{ x }}"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"name\": \"no", "C{{\"name\": \"no}"},
    {&TOOL_FORM_LLAMA3_JSON, "So:\n{\"name\": \"now\", \"parameters\": {}}", "C{So:}[now {}]"},
    {&TOOL_FORM_LLAMA3_JSON, "as {\"name\": \"now\", \"parameters\": {}}",
     "C{as {\"name\": \"now\", \"parameters\": {}}}"},
    {&TOOL_FORM_LLAMA3_JSON, "```json\n{\"name\": \"now\"}\n```", "C{```json\n{\"name\": \"now\"}\n```}"},
    {&TOOL_FORM_LLAMA3_JSON, "<|python_tag|>print(1)", "C{<|python_tag|>print(1)}"},
    {&TOOL_FORM_LLAMA3_JSON, "<|python_tag|>{\"name\": \"fly\", \"parameters\": {}}", "[fly {}]"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"name\": \"now\", \"parameters\": {}}; and more", "[now {}]C{; and more}"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"name\": \"now\", \"arguments\": {\"k\": 1}}", "[now {\"k\": 1}]"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"type\": \"function\", \"name\": \"now\", \"parameters\": {}}}", "[now {}]"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"type\": \"circle\", \"r\": 1}", "C{{\"type\": \"circle\", \"r\": 1}}"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"id\": 1, \"function\": \"x\", \"name\": \"now\", \"parameters\": {}}",
     "[now {}]"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"id\": 1, \"named\": \"now\"}", "C{{\"id\": 1, \"named\": \"now\"}}"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"name\": \"now\", \"arguments\": {}, \"parameters\": {\"a\": 1}}",
     "[now {}]"},
    {&TOOL_FORM_LLAMA3_JSON, "{\"name\": \"now\", \"parameters\": 5, \"arguments\": {\"a\": 1}}", "[now {}]"},
    {&TOOL_FORM_MISTRAL_LIST, "[TOOL_CALLS][{\"name\": \"now\"}, [{\"name\": \"now\"}]]",
     "[now {}]C{, [{\"name\": \"now\"}]]}"},
    /* DeepSeek */
    {&TOOL_FORM_DEEPSEEK_V3, DS_BEGIN "function<｜tool▁sep｜>now\n```json\n{}\n```", "[now {}]"},
    {&TOOL_FORM_DEEPSEEK_V3, DS_BEGIN "function<｜tool▁sep｜>now\n{\"a\": 1}<｜tool▁call▁end｜>",
     "[now {\"a\": 1}]"},
    {&TOOL_FORM_DEEPSEEK_V3, DS_BEGIN "function<｜tool▁sep｜>now\n```json\n{\"a\": \"b",
     "[now {\"a\": \"b\"}]"},
    {&TOOL_FORM_DEEPSEEK_V3, DS_BEGIN "now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "[now {}]"},
    {&TOOL_FORM_DEEPSEEK_V3, "<｜tool▁calls▁begin｜>", "C{<｜tool▁calls▁begin｜>}"},
    {&TOOL_FORM_DEEPSEEK_V3, DS_BEGIN "function<｜tool▁sep｜>\n```json\n{}\n```",
     "C{" DS_BEGIN "function<｜tool▁sep｜>\n```json\n{}\n```}"},
    {&TOOL_FORM_DEEPSEEK_V31, DS_BEGIN "now<｜tool▁sep｜>{}", "[now {}]"},
    {&TOOL_FORM_DEEPSEEK_V31, DS_BEGIN "now<｜tool▁sep｜>", "[now {}]"},
    {&TOOL_FORM_DEEPSEEK_V31, "Hm" DS_BEGIN "now<｜tool▁sep｜>{\"a\":{", "C{Hm}[now {\"a\":{}}]"},
    {&TOOL_FORM_DEEPSEEK_V31, DS_BEGIN "now{}", "C{" DS_BEGIN "now{}}"},
    {&TOOL_FORM_DEEPSEEK_V31, "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>ok",
     "[now {}]C{ok}"},
    {&TOOL_FORM_DEEPSEEK_V31, DS_BEGIN "<｜tool▁sep｜>{}", "C{" DS_BEGIN "<｜tool▁sep｜>{}}"},
    /* Kimi */
    {&TOOL_FORM_KIMI, KIMI("functions.find:12") "{}<|tool_call_end|>", "[find {}]"},
    {&TOOL_FORM_KIMI, "<|tool_calls_section_begin|>" KIMI("now") "{}<|tool_call_end|>", "[now {}]"},
    {&TOOL_FORM_KIMI, KIMI("functions.now:0") "<|tool_call_end|>", "[now {}]"},
    {&TOOL_FORM_KIMI, KIMI("functions.now:0") "{\"a\": [", "[now {\"a\": []}]"},
    {&TOOL_FORM_KIMI, KIMI("functions.:0") "{}", "C{" KIMI("functions.:0") "{}}"},
    {&TOOL_FORM_KIMI, "<|tool_calls_section_begin|>none", "C{<|tool_calls_section_begin|>none}"},
    {&TOOL_FORM_KIMI, KIMI("now:3") "\"{\\\"a\\\": 1}\"<|tool_call_end|>", "[now:3 {\"a\": 1}]"},
    {&TOOL_FORM_KIMI, KIMI("functions.12") "{}", "[12 {}]"},
    {&TOOL_FORM_KIMI, KIMI("functions.a12") "{}", "[a12 {}]"},
    {&TOOL_FORM_KIMI, KIMI("functions.a:") "{}", "[a: {}]"},
    {&TOOL_FORM_KIMI, KIMI("functions.a:1:2") "{}", "[a:1 {}]"},
    {&TOOL_FORM_KIMI, KIMI("functions.") "{}", "[functions. {}]"},
    /* Granite, Phi */
    {&TOOL_FORM_GRANITE, "<|tool_call|>{\"name\": \"now\", \"arguments\": {}}", "[now {}]"},
    {&TOOL_FORM_GRANITE, "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]<|/tool_call|>", "[now {}]"},
    {&TOOL_FORM_GRANITE, "<function_call> {\"name\": \"now\", \"arguments\": {}}", "[now {}]"},
    {&TOOL_FORM_GRANITE, "<tool_call>[{\"name\": \"now\", \"arguments\": {}}]", "[now {}]"},
    {&TOOL_FORM_GRANITE, "<|tool_call|>[{\"name\": \"now\", \"arguments\": {\"a\": 1", "[now {\"a\": 1}]"},
    {&TOOL_FORM_GRANITE, "<|tool_call|>none", "C{<|tool_call|>none}"},
    {&TOOL_FORM_GRANITE, "<|tool_call|>[\"a\"]", "C{<|tool_call|>[\"a\"]}"},
    {&TOOL_FORM_GRANITE, "<|tool_call|>[]", "C{<|tool_call|>[]}"},
    /* Nemotron */
    {&TOOL_FORM_NEMOTRON, "<TOOLCALL>{\"name\": \"now\", \"arguments\": {}}</TOOLCALL>", "[now {}]"},
    {&TOOL_FORM_NEMOTRON, "<TOOLCALL>[{\"name\": \"now\", \"arguments\": \"{\\\"a\\\":1}\"}]</TOOLCALL>",
     "[now {\"a\":1}]"},
    {&TOOL_FORM_NEMOTRON, "<TOOLCALL>[{\"name\": \"now\"", "[now {}]"},
    {&TOOL_FORM_NEMOTRON, "a <TOOLCALL>[{\"name\": \"now\"}]</TOOLCALL>",
     "C{a <TOOLCALL>[{\"name\": \"now\"}]</TOOLCALL>}"},
    {&TOOL_FORM_NEMOTRON, "<TOOLCALL>[1]</TOOLCALL>", "C{<TOOLCALL>[1]</TOOLCALL>}"},
    {&TOOL_FORM_NEMOTRON, "<TOOLCALL>[{\"name\": \"now\", \"arguments\": {}}], x", "[now {}]C{, x}"},
};

static const odd_case ODD_OTHER[] = {
    /* Seed */
    {&TOOL_FORM_SEED,
     "<seed:tool_call><function=find><parameter=days>3</parameter></function></seed:tool_call>",
     "[find {\"days\":3}]"},
    {&TOOL_FORM_SEED, "<seed:tool_call>\n<function=find>\n<parameter=city>A</function>\n</seed:tool_call>",
     "[find {\"city\":\"A\"}]"},
    {&TOOL_FORM_SEED, "Hm <seed:tool_call><function=now></function></seed:tool_call>", "C{Hm}[now {}]"},
    {&TOOL_FORM_SEED, "<seed:tool_call>what", "C{<seed:tool_call>what}"},
    {&TOOL_FORM_SEED, "<seed:tool_call>\n<function=find>\n<parameter=city>A", "[find {\"city\":\"A\"}]"},
    {&TOOL_FORM_SEED, "<seed:tool_call>\n<function=>", "C{<seed:tool_call>\n<function=>}"},
    /* MiniMax */
    {&TOOL_FORM_MINIMAX, INVOKE "<parameter name=\"days\">4</parameter>\n</invoke>\n</minimax:tool_call>ok",
     "[find {\"days\":4}]C{ok}"},
    {&TOOL_FORM_MINIMAX,
     INVOKE "<parameter name=\"city\">A</parameter></invoke><invoke name=\"fly\"></invoke>",
     "[find {\"city\":\"A\"}][fly {}]"},
    {&TOOL_FORM_MINIMAX, INVOKE "<parameter name=\"city\">A", "[find {\"city\":\"A\"}]"},
    {&TOOL_FORM_MINIMAX, INVOKE "<parameter name='city'>A</parameter>\n</invoke>", "[find {\"city\":\"A\"}]"},
    {&TOOL_FORM_MINIMAX, "<invoke name=\"fly\"></invoke>", "C{<invoke name=\"fly\"></invoke>}"},
    {&TOOL_FORM_MINIMAX, "<minimax:tool_call>none</minimax:tool_call>",
     "C{<minimax:tool_call>none</minimax:tool_call>}"},
    {&TOOL_FORM_MINIMAX, INVOKE "<parameter name=\"city\">a </parameter> b</parameter>\n</invoke>",
     "[find {\"city\":\"a </parameter> b\"}]"},
    /* DeepSeek V3.2, V4 */
    {&TOOL_FORM_DEEPSEEK_V32,
     "<" DSML "tool_calls>\n<" DSML "invoke name=\"find\">\n<" DSML
     "parameter name=\"other\" string=\"true\">5</" DSML "parameter>\n</" DSML "invoke>\n</" DSML
     "tool_calls>",
     "[find {\"other\":\"5\"}]"},
    {&TOOL_FORM_DEEPSEEK_V32,
     "<" DSML "function_calls>\n<" DSML "invoke name=\"find\">\n<" DSML
     "parameter name=\"other\" string=\"false\">[5]</" DSML "parameter>\n</" DSML "invoke>",
     "[find {\"other\":[5]}]"},
    {&TOOL_FORM_DEEPSEEK_V32,
     "<" DSML "function_calls><" DSML "invoke name=\"find\"><" DSML
     "parameter name=\"city\" string=\"true\">A",
     "[find {\"city\":\"A\"}]"},
    {&TOOL_FORM_DEEPSEEK_V32, "<" DSML "function_calls>x", "C{<" DSML "function_calls>x}"},
    {&TOOL_FORM_DEEPSEEK_V32, "1 <" DSML " 2", "C{1 <" DSML " 2}"},
    {&TOOL_FORM_DEEPSEEK_V32, "Ok<" DSML "function_calls><" DSML "invoke name=\"now\"></" DSML "invoke>",
     "C{Ok}[now {}]"},
    {&TOOL_FORM_DEEPSEEK_V32, /* of a kind that the schema does not know */
     "<" DSML "function_calls><" DSML "invoke name=\"find\"><" DSML
     "parameter name=\"days\" string=\"true\">5</" DSML "parameter><" DSML
     "parameter name=\"city\" string=\"false\">5</" DSML "parameter></" DSML "invoke>",
     "[find {\"days\":5,\"city\":\"5\"}]"},
    /* GLM */
    {&TOOL_FORM_GLM, "<tool_call>now</tool_call>", "[now {}]"},
    {&TOOL_FORM_GLM, "<tool_call>\nfind\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>",
     "[find {\"days\":3}]"},
    {&TOOL_FORM_GLM, "<tool_call>find\n<arg_key>city</arg_key>\n<arg_value>A", "[find {\"city\":\"A\"}]"},
    {&TOOL_FORM_GLM, "<tool_call>find\n<arg_key>city</arg_key>", "[find {}]"},
    {&TOOL_FORM_GLM, "<tool_call>two words</tool_call>", "C{<tool_call>two words</tool_call>}"},
    {&TOOL_FORM_GLM, "<tool_call>", "C{<tool_call>}"},
    {&TOOL_FORM_GLM,
     "<tool_call>find<arg_key>city</arg_key><arg_value></arg_value> x</arg_value></tool_call>",
     "[find {\"city\":\"</arg_value> x\"}]"},
    /* LFM2 and lists of Python's calls */
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find('Paris', 2)]<|tool_call_end|>",
     "[find {\"city\":\"Paris\",\"days\":2}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(city='it\\'s', tags=('a', \"b\",),)]<|tool_call_end|>",
     "[find {\"city\":\"it's\",\"tags\":[\"a\", \"b\"]}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(days='3', metric=true)]<|tool_call_end|>ok",
     "[find {\"days\":3,\"metric\":true}]C{ok}"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(tags=[1, {'a': None", "[find {\"tags\":[1, {\"a\": null}]}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(city='x", "[find {\"city\":\"x\"}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[fly('moon', 2, how=\"fast\")]",
     "[fly {\"arg0\":\"moon\",\"arg1\":2,\"how\":\"fast\"}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(\"city\"='x', \"days=3, \"opts={})]",
     "[find {\"city\":\"x\",\"days\":3,\"opts\":{}}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(city='\\x4', city='\\xg1', city='\\x4g', city='\\x4A')]",
     "[find {\"city\":\"\\\\x4\",\"city\":\"\\\\xg1\",\"city\":\"\\\\x4g\",\"city\":\"\\u004A\"}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(city='\\x4A", "[find {\"city\":\"\\u004A\"}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(city='a\\'", "[find {\"city\":\"a'\"}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(city='a\\", "[find {\"city\":\"a\\\\\"}]"},
    {&TOOL_FORM_LFM2,
     "<|tool_call_start|>[find(ratio=1E5, ratio=1e-5, ratio=1e, ratio=1e+, ratio=01, ratio=-, days=1e2)]",
     "[find "
     "{\"ratio\":1E5,\"ratio\":1e-5,\"ratio\":\"1e\",\"ratio\":\"1e+\",\"ratio\":\"01\",\"ratio\":\"-\","
     "\"days\":100}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(tags=[1E5, 1e, -1.5e+3, .5, nan, TRUE, true, Null])]",
     "[find {\"tags\":[1E5, \"1e\", -1.5e+3, \".5\", \"nan\", true, true, null]}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(tags=[1,  ], tags=(2, 3 ,), opts={'a':1 , })]",
     "[find {\"tags\":[1  ],\"tags\":[2, 3 ],\"opts\":{\"a\":1  }}]"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>none<|tool_call_end|>",
     "C{<|tool_call_start|>none<|tool_call_end|>}"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[]", "C{<|tool_call_start|>[]}"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[now(), then]", "[now {}]C{, then]}"},
    {&TOOL_FORM_LFM2, "<|tool_call_start|>[find(city=\"\\x41\\n\\d\")]<|tool_call_end|>",
     "[find {\"city\":\"\\u0041\\n\\\\d\"}]"},
    {&TOOL_FORM_PYTHONIC, "<|python_start|>[fly(to='moon')]<|python_end|>", "[fly {\"to\":\"moon\"}]"},
    {&TOOL_FORM_PYTHONIC, "[fly(to='moon')]", "C{[fly(to='moon')]}"},
    {&TOOL_FORM_PYTHONIC, "[1, 2, 3]", "C{[1, 2, 3]}"},
    {&TOOL_FORM_PYTHONIC, "[a link](http://x)", "C{[a link](http://x)}"},
    {&TOOL_FORM_PYTHONIC, "[now]", "C{[now]}"},
    {&TOOL_FORM_PYTHONIC, "See [now()]", "C{See [now()]}"},
    {&TOOL_FORM_PYTHONIC, "So:\n[now()]", "C{So:}[now {}]"},
    {&TOOL_FORM_PYTHONIC, "[find(days=3", "[find {\"days\":3}]"},
    {&TOOL_FORM_PYTHONIC, "[find(x y)]", "[find {\"city\":\"x y\"}]"},
    {&TOOL_FORM_PYTHONIC, "[find(city='a')", "[find {\"city\":\"a\"}]"},
    {&TOOL_FORM_PYTHONIC, "[now(), find(metric=True)] ok", "[now {}][find {\"metric\":true}]C{ok}"},
    {&TOOL_FORM_PYTHONIC, "```\n[now()]\n```", "C{```\n[now()]\n```}"},
    {&TOOL_FORM_PYTHONIC, "[find(city=Paris)]", "[find {\"city\":\"Paris\"}]"},
    /* Gemma 4 */
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{city:<|\"|>a \"b\" \\ c<|\"|>}<tool_call|>",
     "[find {\"city\":\"a \\\"b\\\" \\\\ c\"}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{days:<|\"|>3<|\"|>}<tool_call|>", "[find {\"days\":3}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{city:\"Paris\",days:2}<tool_call|>",
     "[find {\"city\":\"Paris\",\"days\":2}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{<|\"|>city<|\"|>:<|\"|>A<|\"|>}<tool_call|>",
     "[find {\"city\":\"A\"}]"},
    {&TOOL_FORM_GEMMA4,
     "<|tool_call>call:find{opts:{a b:1,c\"d:[2,{e f:<|\"|>g<|\"|>}],é:<|\"|>ü<|\"|>}}<tool_call|>",
     "[find {\"opts\":{\"a b\":1,\"c\\\"d\":[2,{\"e f\":\"g\"}],\"é\":\"ü\"}}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{city:it's,tags:[it's,5]}<tool_call|>",
     "[find {\"city\":\"it's\",\"tags\":[\"it's\",5]}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{city:Paris}<tool_call|>", "[find {\"city\":\"Paris\"}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{opts:{a:[1,{b:<|\"|>c<|\"|>",
     "[find {\"opts\":{\"a\":[1,{\"b\":\"c\"}]}}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{city:<|\"|>A", "[find {\"city\":\"A\"}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{\"city\":<|\"|>A<|\"|>,<|\"|>days:3}<tool_call|>",
     "[find {\"city\":\"A\",\"days\":3}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{city:'a<|\"|>b',days:2}<tool_call|>",
     "[find {\"city\":\"a<|\\\"|>b\",\"days\":2}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{opts:{a", "[find {\"opts\":\"{a\"}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{opts:{a:1,'b c':2,<|\"|>d<|\"|>:3,}}<tool_call|>",
     "[find {\"opts\":{\"a\":1,\"b c\":2,\"d\":3}}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:find{opts:{:1,b:2}}<tool_call|>", "[find {\"opts\":\"{:1,b:2}\"}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>find{}<tool_call|>", "C{<|tool_call>find{}<tool_call|>}"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:two words{}", "C{<|tool_call>call:two words{}}"},
    {&TOOL_FORM_GEMMA4, "Ok<|tool_call>call:now{}<tool_call|>then", "C{Ok}[now {}]C{then}"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:now{}", "[now {}]"},
    {&TOOL_FORM_GEMMA4, "<|tool_call>call:now", "C{<|tool_call>call:now}"},
};

static void test_odd(const odd_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const reply_rules rules = {.form = cases[i].form, .tools = tools};
        const size_t len = strlen(cases[i].text);
        check_same(&rules, cases[i].text, len, cases[i].expected);
        check_prefixes(&rules, cases[i].text, len);
    }
}

/* When the bytes of each are told, and those of a text with two calls in each form. */
static void test_told(void)
{
    bytes out = bytes_empty(1 << 20);
    json_doc *calls =
        parse("[{\"name\":\"find\",\"arguments\":{\"city\":\"A <b\",\"days\":3,\"opts\":{\"a\":[1,true]}}},"
              "{\"name\":\"now\",\"arguments\":{}}]");
    for (size_t w = 0; w < ARRAY_LEN(TOOL_WRITERS); w++) {
        const reply_rules rules = {
            .form = TOOL_WRITERS[w].form, .think = tool_writer_think(TOOL_WRITERS[w].form), .tools = tools};
        bytes text = bytes_empty(1 << 16);
        tool_writer_calls(&text, &TOOL_WRITERS[w], json_root(calls));
        bytes_append_str(&text, "\nz < [x] {");
        bytes_printf(&out, "%s: ", rules.form->name);
        transcript_told(&out, &rules, bytes_str(&text));
        bytes_deinit(&text);
    }
    for (size_t i = 0; i < ARRAY_LEN(ODD_JSON); i++) {
        transcript_told(&out, &(reply_rules){.form = ODD_JSON[i].form, .tools = tools}, ODD_JSON[i].text);
    }
    for (size_t i = 0; i < ARRAY_LEN(ODD_OTHER); i++) {
        transcript_told(&out, &(reply_rules){.form = ODD_OTHER[i].form, .tools = tools}, ODD_OTHER[i].text);
    }
    recorded_check("server/protocol/told_calls.txt", bytes_str(&out));
    bytes_deinit(&out);
    json_free(calls);
}

/* ---- cut answers, thoughts in front, the choice of a form ---- */

static void test_cut(void)
{
    json_doc *calls = parse(ONE("{\"city\":\"Paris\",\"days\":3}"));
    for (size_t w = 0; w < ARRAY_LEN(TOOL_WRITERS); w++) {
        const reply_rules rules = {.starts_in_thinking = true,
                                   .form = TOOL_WRITERS[w].form,
                                   .think = tool_writer_think(TOOL_WRITERS[w].form),
                                   .tools = tools};
        bytes text = bytes_empty(1 << 16), out = bytes_empty(1 << 16), half = bytes_empty(1 << 16);
        bytes_append_str(&text, rules.think ? "why<|end|><|start|>assistant" : "why\n</think>\n\n");
        tool_writer_calls(&text, &TOOL_WRITERS[w], json_root(calls));
        transcript_parse(&out, &rules, bytes_str(&text), text.len, 1, 0, false);
        CHECK_STR(bytes_str(&out), "R{why}[find {\"city\":\"Paris\",\"days\":3}]");
        const char *days = strstr(bytes_str(&text), "days");
        transcript_parse(&half, &rules, bytes_str(&text), (size_t)(days - bytes_str(&text)), 3, 0, true);
        CHECK(strstr(bytes_str(&half), "R{why}[find {\"city\":\"Paris\"") && strstr(bytes_str(&half), "!]"));
        bytes_deinit(&text);
        bytes_deinit(&out);
        bytes_deinit(&half);
    }
    json_free(calls);
}

static void test_names(void)
{
    static const struct {
        const char *name;
        const tool_form *form;
    } NAMES[] = {{"gemma4", &TOOL_FORM_GEMMA4},
                 {"openai", &TOOL_FORM_HARMONY},
                 {"mistral", &TOOL_FORM_MISTRAL},
                 {"llama3_json", &TOOL_FORM_LLAMA3_JSON},
                 {"llama4_json", &TOOL_FORM_LLAMA3_JSON},
                 {"pythonic", &TOOL_FORM_PYTHONIC},
                 {"llama4_pythonic", &TOOL_FORM_PYTHONIC},
                 {"deepseek_v3", &TOOL_FORM_DEEPSEEK_V3},
                 {"deepseek_v31", &TOOL_FORM_DEEPSEEK_V31},
                 {"deepseek_v32", &TOOL_FORM_DEEPSEEK_V32},
                 {"glm45", &TOOL_FORM_GLM},
                 {"glm47", &TOOL_FORM_GLM},
                 {"kimi_k2", &TOOL_FORM_KIMI},
                 {"minimax_m2", &TOOL_FORM_MINIMAX},
                 {"granite", &TOOL_FORM_GRANITE},
                 {"phi4_mini_json", &TOOL_FORM_GRANITE},
                 {"lfm2", &TOOL_FORM_LFM2},
                 {"nemotron_json", &TOOL_FORM_NEMOTRON},
                 {"seed_oss", &TOOL_FORM_SEED},
                 {"qwen3_coder", &TOOL_FORM_XML}};
    static const struct {
        const char *text;
        const tool_form *form;
    } TEMPLATES[] = {
        {"'<|start|>assistant to=functions.' '<|channel|>commentary json<|message|>'", &TOOL_FORM_HARMONY},
        {"'<|tool_call>call:' + f['name'] + '{'", &TOOL_FORM_GEMMA4},
        {"'[TOOL_CALLS]' + name + '[ARGS]'", &TOOL_FORM_MISTRAL},
        {"'[TOOL_CALLS]['", &TOOL_FORM_MISTRAL_LIST},
        {"'<｜tool▁calls▁begin｜>' '```json'", &TOOL_FORM_DEEPSEEK_V3},
        {"'<｜tool▁calls▁begin｜>'", &TOOL_FORM_DEEPSEEK_V31},
        {"dsml = '｜DSML｜' '<' + dsml + 'invoke name=\"'", &TOOL_FORM_DEEPSEEK_V32},
        {"<|tool_call_begin|>{{ id }}<|tool_call_argument_begin|>", &TOOL_FORM_KIMI},
        {"'<minimax:tool_call>' '<invoke name=\"'", &TOOL_FORM_MINIMAX},
        {"'<seed:tool_call>' '<function='", &TOOL_FORM_SEED},
        {"<tool_call>{name}<arg_key>{k}</arg_key><arg_value>{v}</arg_value></tool_call>", &TOOL_FORM_GLM},
        {"'<TOOLCALL>['", &TOOL_FORM_NEMOTRON},
        {"'<|tool_call|>['", &TOOL_FORM_GRANITE},
        {"'<|tool_list_start|>['", &TOOL_FORM_LFM2},
        {"<|start_header_id|> {\"name\": function name, \"parameters\": dictionary", &TOOL_FORM_LLAMA3_JSON},
        {"[func_name1(params_name1=params_value1)]", &TOOL_FORM_PYTHONIC},
        {"no tools", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        CHECK(tool_form_find(NAMES[i].name) == NAMES[i].form);
        CHECK(strstr(tool_form_names(), NAMES[i].form->name) != NULL);
    }
    for (size_t i = 0; i < ARRAY_LEN(TEMPLATES); i++) {
        CHECK(tool_form_of_template(TEMPLATES[i].text) == TEMPLATES[i].form);
    }
    CHECK(tool_form_reads(&TOOL_FORM_GEMMA4, "<|\"|>", 5) &&
          tool_form_reads(&TOOL_FORM_KIMI, "<|tool_call_end|>", 17));
    CHECK(!tool_form_reads(&TOOL_FORM_GEMMA4, "<turn|>", 7));
}

int main(void)
{
    tools = tools_of(TOOLS);
    test_scenarios();
    test_odd(ODD_JSON, ARRAY_LEN(ODD_JSON));
    test_odd(ODD_OTHER, ARRAY_LEN(ODD_OTHER));
    test_told();
    test_cut();
    test_names();
    tool_set_destroy(tools);
    CHECK_DONE();
}
