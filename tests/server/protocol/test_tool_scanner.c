/* tool_scanner: calls of each form come out of an answer the same at every cut, with values as the
 * tool's schema asks; what only looks like a call is text. */
#include "server/protocol/output/tool_scanner.h"

#include "tests/check.h"
#include "tests/server/protocol/tools_of.h"
#include "tests/server/protocol/transcript.h"

static const char TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{"
    "\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"},\"ratio\":{\"type\":\"number\"},"
    "\"metric\":{\"type\":\"boolean\"},\"opts\":{\"type\":\"object\"},\"tags\":{\"type\":\"array\"},"
    "\"unit\":{\"enum\":[\"C\",\"F\"]},\"maybe\":{\"type\":[\"string\",\"null\"]},"
    "\"either\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}]},\"any\":{}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"now\"}}]";

static tool_set *tools;

static void check_rules(const reply_rules *rules, const char *text, bool was_cut, const char *expected)
{
    const size_t len = strlen(text);
    for (size_t step = 1; step <= len + 1; step++) {
        bytes out;
        bytes_init(&out, 1 << 20);
        transcript_parse(&out, rules, text, len, step, 0, was_cut);
        if (strcmp(bytes_str(&out), expected) != 0) {
            CHECK_STR(bytes_str(&out), expected);
            fprintf(stderr, "  in pushes of %zu\n", step);
            step = len + 1;
        }
        bytes_deinit(&out);
    }
    for (size_t cut = 1; cut < len; cut++) {
        bytes out;
        bytes_init(&out, 1 << 20);
        transcript_parse_split(&out, rules, text, len, cut, was_cut);
        CHECK_STR(bytes_str(&out), expected);
        bytes_deinit(&out);
    }
}

static void xml(const char *text, const char *expected)
{
    check_rules(&(reply_rules){.form = &TOOL_FORM_XML, .tools = tools}, text, false, expected);
}

static void xml_cut(const char *text, const char *expected)
{
    check_rules(&(reply_rules){.form = &TOOL_FORM_XML, .tools = tools}, text, true, expected);
}

static void hermes(const char *text, const char *expected)
{
    check_rules(&(reply_rules){.form = &TOOL_FORM_HERMES, .tools = tools}, text, false, expected);
}

#define CALL(body)        "<tool_call>\n<function=get_weather>\n" body "</function>\n</tool_call>"
#define PARAM(key, value) "<parameter=" key ">\n" value "\n</parameter>\n"

static void test_xml(void)
{
    xml(CALL(PARAM("city", "Köln")), "[get_weather {\"city\":\"Köln\"}]");
    xml(CALL(""), "[get_weather {}]");
    xml("I look.\n\n" CALL(PARAM("city", "A") PARAM("days", "3")) "\n",
        "C{I look.}[get_weather {\"city\":\"A\",\"days\":3}]");
    xml(CALL(PARAM("city", "A")) "\n" CALL(PARAM("city", "B")),
        "[get_weather {\"city\":\"A\"}][get_weather {\"city\":\"B\"}]");
    xml(CALL(PARAM("city", "A")) CALL(PARAM("city", "B")) "\n\nDone.",
        "[get_weather {\"city\":\"A\"}][get_weather {\"city\":\"B\"}]C{Done.}");
    xml("Let me look.<tool_call><function=now></function></tool_call>", "C{Let me look.}[now {}]");
    xml("看看。<tool_call><function=now></function></tool_call>", "C{看看。}[now {}]");
    /* text keeps its inner line breaks and loses one at each edge */
    xml(CALL(PARAM("city", "\n a\n\nb \n")), "[get_weather {\"city\":\"\\n a\\n\\nb \\n\"}]");
    xml(CALL(PARAM("city", "")), "[get_weather {\"city\":\"\"}]");
    xml(CALL("<parameter=city>A</parameter>"), "[get_weather {\"city\":\"A\"}]");
    xml(CALL("<parameter=city>\r\nA\r\n</parameter>\r\n"), "[get_weather {\"city\":\"A\"}]");
    xml(CALL(PARAM("city", "say \"hi\" \\ \t\x01 é😀")),
        "[get_weather {\"city\":\"say \\\"hi\\\" \\\\ \\t\\u0001 é😀\"}]");
    /* an unknown tool, an unknown parameter */
    xml("<tool_call>\n<function=fly>\n<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>",
        "[fly {\"n\":3}]");
    xml("<tool_call>\n<function=now>\n<parameter=zone>\nUTC\n</parameter>\n</function>\n</tool_call>",
        "[now {\"zone\":\"UTC\"}]");
}

static void test_xml_markers_in_values(void)
{
    xml(CALL(PARAM("city", "a </parameter> b <parameter=x> c </tool_call> <tool_call>")),
        "[get_weather {\"city\":\"a </parameter> b <parameter=x> c </tool_call> <tool_call>\"}]");
    xml(CALL(PARAM("city", "1 < 2\n<b>\n</function> x")),
        "[get_weather {\"city\":\"1 < 2\\n<b>\\n</function> x\"}]");
    xml(CALL(PARAM("city", "<tool_call>\n<function=now>")),
        "[get_weather {\"city\":\"<tool_call>\\n<function=now>\"}]");
}

static void test_xml_values(void)
{
    xml(CALL(PARAM("days", "3.0") PARAM("ratio", "3.0") PARAM("metric", "True")),
        "[get_weather {\"days\":3,\"ratio\":3.0,\"metric\":true}]");
    /* an integer that is written with a fraction, to the last one that a double holds, and of at most 63 letters */
    xml(CALL(PARAM("days", "-9007199254740992.0") PARAM("days", "9007199254740994.0") PARAM("days", "3.5")),
        "[get_weather {\"days\":-9007199254740992,\"days\":9007199254740994.0,\"days\":3.5}]");
#define ZEROS "000000000000000000000000000000000000000000000000000000000000"
    xml(CALL(PARAM("days", "3.0" ZEROS) PARAM("days", "3.00" ZEROS)),
        "[get_weather {\"days\":3,\"days\":3.00" ZEROS "}]");
    xml(CALL(PARAM("opts", "{\"a\": [1, {}]}") PARAM("tags", "['x', True, None, \"it's\"]")),
        "[get_weather {\"opts\":{\"a\": [1, {}]},\"tags\":[\"x\", true, null, \"it's\"]}]");
    xml(CALL(PARAM("opts", "\"{\\\"a\\\":1}\"")), "[get_weather {\"opts\":{\"a\":1}}]");
    xml(CALL(PARAM("unit", "C") PARAM("maybe", "null") PARAM("maybe", "nullify")),
        "[get_weather {\"unit\":\"C\",\"maybe\":null,\"maybe\":\"nullify\"}]");
    xml(CALL(PARAM("either", "5") PARAM("either", "five") PARAM("either", "5.5")),
        "[get_weather {\"either\":5,\"either\":\"five\",\"either\":\"5.5\"}]");
    xml(CALL(PARAM("any", "5") PARAM("any", "{\"a\":1}") PARAM("any", "x y") PARAM("any", "007")),
        "[get_weather {\"any\":5,\"any\":{\"a\":1},\"any\":\"x y\",\"any\":\"007\"}]");
    /* what does not fit stays visible */
    xml(CALL(PARAM("days", "soon") PARAM("days", "1.5") PARAM("opts", "{a}") PARAM("metric", "yes")),
        "[get_weather {\"days\":\"soon\",\"days\":1.5,\"opts\":\"{a}\",\"metric\":\"yes\"}]");
    xml(CALL(PARAM("days", "123456789012345678901234567890")),
        "[get_weather {\"days\":123456789012345678901234567890}]");
    /* text of a string parameter is never anything else */
    xml(CALL(PARAM("city", "null") PARAM("city", "5") PARAM("city", "{\"a\":1}")),
        "[get_weather {\"city\":\"null\",\"city\":\"5\",\"city\":\"{\\\"a\\\":1}\"}]");
}

static void test_xml_forgotten_markers(void)
{
    xml("<tool_call>\n<function=get_weather>\n<parameter=city>\nA\n</function>\n</tool_call>",
        "[get_weather {\"city\":\"A\"}]");
    xml("<tool_call>\n<function=get_weather>\n<parameter=city>\nA\n</parameter>\n</tool_call>",
        "[get_weather {\"city\":\"A\"}]");
    xml("<tool_call>\n<function=get_weather>\n<parameter=city>\nA\n</parameter>\n</function>",
        "[get_weather {\"city\":\"A\"}]");
    xml("<tool_call>\n<function=get_weather>\n<parameter=city>\nA\n</parameter>",
        "[get_weather {\"city\":\"A\"}]");
    xml("<tool_call>\n<function=get_weather>\n<parameter=city>\nA\n</para", "[get_weather {\"city\":\"A\"}]");
    xml("<tool_call>\n<function=get_weather>\n<parameter=city>\nA", "[get_weather {\"city\":\"A\"}]");
    xml("<tool_call>\n<function=get_weather>\n<parameter=ci", "[get_weather {}]");
    xml("<tool_call>\n<function=get_weather>", "[get_weather {}]");
    xml("<function=get_weather>\n<parameter=city>\nA\n</parameter>\n</function>\n</tool_call>",
        "[get_weather {\"city\":\"A\"}]");
    xml("<tool_call>\n<function=now>\n</function>\nThat is it.", "[now {}]C{That is it.}");
    xml("<tool_call>\n<function=now>\nwords <b> here\n</function>\n</tool_call>", "[now {}]");
    xml("<tool_call>\n<function=now>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
        "[now {}][now {}]");
}

static void test_xml_cut(void)
{
    xml_cut(CALL(PARAM("city", "A")), "[get_weather {\"city\":\"A\"}]");
    xml_cut("<tool_call>\n<function=get_weather>\n<parameter=city>\nrm -rf /tmp",
            "[get_weather {\"city\":\"rm -rf /tmp!]");
    xml_cut("<tool_call>\n<function=get_weather>\n<parameter=days>\n1", "[get_weather {\"days\":!]");
    xml_cut("<tool_call>\n<function=get_weather>\n<parameter=city>\nA\n</parameter>\n",
            "[get_weather {\"city\":\"A!]");
    xml_cut("<tool_call>\n<function=get_weather>\n<parameter=city>\nA\n</parameter>\n</function>",
            "[get_weather {\"city\":\"A\"}]");
    xml_cut("so <tool_call", "C{so <tool_call}");
    xml_cut("So.\n<tool_call>\n<function=get_", "C{So.\n<tool_call>\n<function=get_}");
}

static void test_no_calls(void)
{
    /* in prose and in code */
    xml("Write <tool_call>\n<function=now>\n</function>\n</tool_call> to call.",
        "C{Write <tool_call>\n<function=now>\n</function>\n</tool_call> to call.}");
    xml("`<tool_call><function=now></function></tool_call>`",
        "C{`<tool_call><function=now></function></tool_call>`}");
    xml("```xml\n<tool_call>\n<function=now>\n</function>\n</tool_call>\n```\n",
        "C{```xml\n<tool_call>\n<function=now>\n</function>\n</tool_call>\n```\n}");
    xml("~~~\n```\n<tool_call>\n<function=now>\n</function>\n~~~\n<tool_call>\n<function=now>\n</"
        "function>\n</tool_call>",
        "C{~~~\n```\n<tool_call>\n<function=now>\n</function>\n~~~}[now {}]");
    xml("```js\nlet a;\n```\n\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
        "C{```js\nlet a;\n```}[now {}]");
    xml("``` is a fence``` here\n<tool_call>\n<function=now>\n</function>",
        "C{``` is a fence``` here}[now {}]");
    /* where code begins and ends, and sentences */
    static const struct {
        const char *before;
        bool is_call;
    } PROSE[] = {{"    ```\n", true},
                 {"   ```\n", false},
                 {"\t```\n", true},
                 {" \t```\n", true},
                 {"``\n", true},
                 {"```\n~~~\n", false},
                 {"~~~\n```\n", false},
                 {"````\n```\n", false},
                 {"````\n`````\n", true},
                 {"```\n``` x\n", false},
                 {"```\n```  \t\r\n", true},
                 {"```\r\nx\r\n```\r\n", true},
                 {"```\n    ```\n", false},
                 {"```\n   ```\n", true},
                 {"``` a`b\n", true},
                 {"~~~ a`b\n", false},
                 {"``` `\n", true},
                 {"x ```\n", true},
                 {"So", false},
                 {"So.", true},
                 {"So. ", true},
                 {"So!", true},
                 {"So?", true},
                 {"So\u2026", true},
                 {"So\u3002", true},
                 {"So\uFF01", true},
                 {"So\uFF1F", true},
                 {"So\uFF0C", false},
                 {"So;", false},
                 {"So\r", false},
                 {"So\n", true},
                 {"So\n\t ", true}};
    for (size_t i = 0; i < ARRAY_LEN(PROSE); i++) {
        char text[200], expected[208];
        size_t n = strlen(PROSE[i].before);
        snprintf(text, sizeof text, "%s%s", PROSE[i].before, CALL(""));
        while (PROSE[i].is_call && n > 0 && strchr(" \n\r\t", PROSE[i].before[n - 1])) {
            n--; /* white space in front of a call */
        }
        if (!PROSE[i].is_call) {
            snprintf(expected, sizeof expected, "C{%s}", text);
        } else {
            snprintf(expected, sizeof expected, "C{%.*s}[get_weather {}]", (int)n, PROSE[i].before);
        }
        xml(text, expected);
    }
    /* not the form */
    xml("<tool_call>\nwhat?\n</tool_call>", "C{<tool_call>\nwhat?\n</tool_call>}");
    xml("<tool_call>\n<function=>\n</function>", "C{<tool_call>\n<function=>\n</function>}");
    xml("<tool_call>\n<function=two words>", "C{<tool_call>\n<function=two words>}");
    xml("<function=unknown>\n</function>", "C{<function=unknown>\n</function>}");
    xml("<tool_call>", "C{<tool_call>}");
    xml("a < b\n<tool_cal l> <", "C{a < b\n<tool_cal l> <}");
    xml("  two\n\n  lines \n\n", "C{  two\n\n  lines \n\n}");
    xml("", "");
    /* a request without tools */
    check_rules(&(reply_rules){.form = &TOOL_FORM_XML}, CALL(""), false, "C{" CALL("") "}");
    check_rules(&(reply_rules){.tools = tools}, CALL(""), false, "C{" CALL("") "}");
}

static void test_thinking(void)
{
    const reply_rules rules = {
        .starts_in_thinking = true, .may_think = true, .form = &TOOL_FORM_XML, .tools = tools};
    check_rules(&rules, "I call it.\n</think>\n\n" CALL(PARAM("days", "2")), false,
                "R{I call it.}[get_weather {\"days\":2}]");
    check_rules(&rules, "why\n</think>\n\nSo:\n\n" CALL(""), false, "R{why}C{So:}[get_weather {}]");
    /* a call that is only thought of is none */
    check_rules(&rules, "I could\n" CALL("") "\n</think>\nNo.", false, "R{I could\n" CALL("") "}C{No.}");
}

static void test_one_call(void)
{
    const reply_rules rules = {.form = &TOOL_FORM_XML, .tools = tools, .one_call = true};
    check_rules(&rules, "Hm.\n" CALL("") "\n" CALL("") "\nmore", false, "C{Hm.}[get_weather {}]");
    check_rules(&rules, "no call", false, "C{no call}");
}

static void test_hermes(void)
{
    hermes("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Köln\", \"n\": [1, {\"a\": "
           "-2.5e3}]}}\n"
           "</tool_call>",
           "[get_weather {\"city\": \"Köln\", \"n\": [1, {\"a\": -2.5e3}]}]");
    hermes("On it.\n<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>\n"
           "<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>",
           "C{On it.}[now {}][now {}]");
    hermes("<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"now\"}</tool_call>", "[now {\"a\": 1}]");
    hermes("<tool_call>{\"id\": [1,{}], \"name\": \"now\", \"x\": \"}\", \"parameters\": {\"a\": \"}\"}, "
           "\"y\": 2}</tool_call>ok",
           "[now {\"a\": \"}\"}]C{ok}");
    hermes("<tool_call>{\"name\": \"now\"}</tool_call>", "[now {}]");
    hermes("<tool_call>{\"name\": \"now\", \"arguments\": null}</tool_call>", "[now {}]");
    hermes("<tool_call>{\"name\": \"now\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>",
           "[now {\"a\": 1}]");
    /* markers and line breaks in strings, Python's words */
    hermes("<tool_call>{\"name\": \"now\", \"arguments\": {\"t\": \"a\n</tool_call>\\\"\\\\\", \"u\": True, "
           "\"v\": [None, False]}}"
           "</tool_call>",
           "[now {\"t\": \"a\\n</tool_call>\\\"\\\\\", \"u\": true, \"v\": [null, false]}]");
    /* a brace too many, a marker too few */
    hermes("<tool_call>{\"name\": \"now\", \"arguments\": {}}}\n</tool_call>", "[now {}]");
    hermes("<tool_call>{\"name\": \"now\", \"arguments\": {}}\n<tool_call>{\"name\": \"fly\", \"arguments\": "
           "{}}",
           "[now {}][fly {}]");
    hermes("<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": [1, \"x", "[now {\"a\": [1, \"x\"]}]");
    hermes("<tool_call>{\"name\": \"now\", \"arg", "[now {}]");
    check_rules(&(reply_rules){.form = &TOOL_FORM_HERMES, .tools = tools},
                "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": [1, \"x", true,
                "[now {\"a\": [1, \"x!]");
    /* no calls */
    hermes("<tool_call>{\"a\": 1}</tool_call>", "C{<tool_call>{\"a\": 1}</tool_call>}");
    hermes("<tool_call>{\"name\": 5}", "C{<tool_call>{\"name\": 5}}");
    hermes("<tool_call>[1]</tool_call>", "C{<tool_call>[1]</tool_call>}");
    hermes("<tool_call>{\"name\": \"no", "C{<tool_call>{\"name\": \"no}");
    hermes("<tool_call>\n<function=now>\n</function>", "C{<tool_call>\n<function=now>\n</function>}");
}

/* White space in front of a call is a piece of its own, however it was pushed; behind thoughts and
 * calls there is none. */
static void test_blank(void)
{
    static const char TEXT[] =
        "<think>why</think>\n\nI look. \n\n<tool_call><function=now></function></tool_call>\n"
        "<tool_call><function=now></function></tool_call>";
    for (size_t step = 1; step < sizeof TEXT; step++) {
        reply_parser p;
        size_t n_blank = 0;
        reply_parser_init(&p, &(reply_rules){.may_think = true, .form = &TOOL_FORM_XML, .tools = tools});
        for (size_t at = 0; at < sizeof TEXT - 1; at += step) {
            const size_t left = sizeof TEXT - 1 - at;
            reply_parser_push(&p, TEXT + at, left < step ? left : step);
        }
        reply_parser_finish(&p, false);
        for (size_t i = 0; i < p.pieces.n; i++) {
            if (p.pieces.items[i].kind == REPLY_BLANK) {
                n_blank++;
                CHECK_STR(bytes_str(&p.pieces.items[i].text), " \n\n");
                CHECK(i + 1 < p.pieces.n && p.pieces.items[i + 1].kind == REPLY_CALL);
            }
        }
        CHECK_INT(n_blank, 1);
        reply_parser_deinit(&p);
    }
}

static void test_forms(void)
{
    CHECK(tool_form_find("hermes") == &TOOL_FORM_HERMES);
    CHECK(tool_form_find("qwen3_xml") == &TOOL_FORM_XML);
    CHECK(tool_form_find("qwen3_coder") == &TOOL_FORM_XML);
    CHECK(tool_form_find("other") == NULL);
    CHECK(tool_form_of_template(NULL) == NULL);
    CHECK(tool_form_of_template("{{ messages }}") == NULL);
    CHECK(tool_form_of_template("'<tool_call>\n<function=' ~ n ~ '>' '<parameter=' ~ k") == &TOOL_FORM_XML);
    CHECK(tool_form_of_template("'\n<tool_call>\n{\"name\": \"' + tool_call.arguments") == &TOOL_FORM_HERMES);
    CHECK(strstr(tool_form_names(), "qwen3_xml") && strstr(tool_form_names(), "hermes"));
}

int main(void)
{
    tools = tools_of(TOOLS);
    test_xml();
    test_xml_markers_in_values();
    test_xml_values();
    test_xml_forgotten_markers();
    test_xml_cut();
    test_no_calls();
    test_thinking();
    test_one_call();
    test_hermes();
    test_blank();
    test_forms();
    tool_set_destroy(tools);
    CHECK_DONE();
}
