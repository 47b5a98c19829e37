/* prompt_arrange: system messages in front and later, neighbours of one role, a client's billing
 * header, tools for a template that knows none; and what templates are found to take. */
#include "engine/prompt.h"

#include "base/limits.h"
#include "tests/check.h"

static err_detail d;

/* A chat from JSON: {"messages": [{"role", "content", "calls": {NAME: ARGUMENTS}}], "tools"}. A
 * content that is a list is one of texts; null is an image. */
static chat_input *chat_of(const char *text)
{
    static const char ROLES[] = "suat";
    chat_input *in = chat_input_create(1 << 20);
    CHECK_OK(json_parse(&in->keep, text, strlen(text), LIMIT_JSON_DEPTH, &d), d);
    const json *root = json_root(in->keep);
    in->messages = arena_calloc(in->arena, 16, sizeof *in->messages);
    in->tools = json_get(root, "tools");
    for (const json *v = json_child(json_get(root, "messages")); v; v = json_next(v)) {
        chat_message *m = &in->messages[in->n_messages++];
        const json *content = json_get(v, "content"), *calls = json_get(v, "calls");
        const bool is_list = json_is(content, JSON_ARRAY);
        m->role = (chat_role)(strchr(ROLES, json_str(json_get(v, "role"), "u")[0]) - ROLES);
        m->parts = arena_calloc(in->arena, 8, sizeof *m->parts);
        m->tool_calls = arena_calloc(in->arena, 8, sizeof *m->tool_calls);
        m->is_string = !is_list;
        for (const json *p = is_list ? json_child(content) : content; p; p = is_list ? json_next(p) : NULL) {
            const char *words = json_str(p, NULL);
            m->parts[m->n_parts++] = (chat_part){
                .kind = words ? CHAT_TEXT : CHAT_IMAGE, .text = words, .text_len = words ? strlen(words) : 0};
        }
        for (const json *c = json_child(calls); c; c = json_next(c)) {
            m->tool_calls[m->n_tool_calls++] = (chat_tool_call){.name = json_key(c), .arguments = c};
        }
    }
    return in;
}

/* "s:text|u:text|": every message, an image as #, calls as their number; a list has its pieces apart. */
static void write_messages(bytes *out, const chat_message *messages, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const chat_message *m = &messages[i];
        bytes_append_char(out, "suat"[m->role]);
        bytes_append_char(out, ':');
        for (size_t k = 0; k < m->n_parts; k++) {
            bytes_append_str(out, k && !m->is_string ? "/" : "");
            bytes_append(out, m->parts[k].kind == CHAT_TEXT ? m->parts[k].text : "#",
                         m->parts[k].kind == CHAT_TEXT ? m->parts[k].text_len : 1);
        }
        if (m->n_tool_calls) {
            bytes_printf(out, "+%zu", m->n_tool_calls);
        }
        bytes_append_char(out, '|');
    }
}

static const prompt_style TAKES_ALL = {
    .habits = {.takes_system = true, .takes_late_system = true, .takes_repeats = true, .takes_tools = true}};
static const prompt_style QWEN = {
    .habits = {.takes_system = true, .takes_repeats = true, .takes_tools = true}};
static const prompt_style HOISTS = {
    .habits = {.takes_system = true, .takes_repeats = true, .takes_tools = true}, .hoists_system = true};
static const prompt_style ALTERNATES = {.habits = {.takes_system = true, .takes_tools = true}};
static const prompt_style NO_SYSTEM = {.habits = {.takes_tools = true}};
static const prompt_style NO_TOOLS = {.habits = {.takes_system = true, .takes_repeats = true}};

#define LATE                                                                                                 \
    "{\"messages\":[{\"role\":\"s\",\"content\":\"A\"},{\"role\":\"s\",\"content\":\"B\"},"                  \
    "{\"role\":\"u\",\"content\":\"1\"},{\"role\":\"a\",\"content\":\"x\"},{\"role\":\"s\",\"content\":"     \
    "\"C\"},"                                                                                                \
    "{\"role\":\"u\",\"content\":\"2\"},{\"role\":\"s\",\"content\":\"D\"},{\"role\":\"a\",\"content\":"     \
    "\"y\"},"                                                                                                \
    "{\"role\":\"u\",\"content\":[\"3\",null]},{\"role\":\"s\",\"content\":\"E\"}]}"
#define CALLED                                                                                               \
    "{\"messages\":[{\"role\":\"u\",\"content\":\"1\"},{\"role\":\"a\",\"content\":\"\",\"calls\":{\"f\":{"  \
    "\"x\":1}}},"                                                                                            \
    "{\"role\":\"s\",\"content\":\"C\"},{\"role\":\"t\",\"content\":\"r1\"},{\"role\":\"t\",\"content\":"    \
    "\"r2\"},"                                                                                               \
    "{\"role\":\"u\",\"content\":\"2\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]}"
#define BILLING "x-anthropic-billing-header: cc_version=2.1; cch=00af1;"

static void test_messages(void)
{
    static const struct {
        const char *chat;
        const prompt_style *style;
        const char *arranged;
    } CASES[] = {
        {LATE, &TAKES_ALL, "s:A\n\nB|u:1|a:x|s:C|u:2|s:D|a:y|u:3/#|s:E|"},
        {LATE, &QWEN, "s:A\n\nB|u:1|a:x|u:C\n\n2|u:D|a:y|u:3/#|u:E|"},
        {LATE, &HOISTS, "s:A\n\nB\n\nC\n\nD\n\nE|u:1|a:x|u:2|a:y|u:3/#|"},
        {LATE, &ALTERNATES, "s:A\n\nB|u:1|a:x|u:C\n\n2\n\nD|a:y|u:3/#|u:E|"},
        {LATE, &NO_SYSTEM, "u:A\n\nB\n\n1|a:x|u:C\n\n2\n\nD|a:y|u:3/#|u:E|"},
        {CALLED, &QWEN, "u:1|a:+1|t:r1|t:r2|u:C\n\n2|"},
        {CALLED, &TAKES_ALL, "u:1|a:+1|t:r1|t:r2|s:C|u:2|"},
        {"{\"messages\":[{\"role\":\"s\",\"content\":[\"" BILLING
         "\",\"A\",\"B\"]},{\"role\":\"u\",\"content\":\"1\"}]}",
         &QWEN, "s:A/B|u:1|"},
        {"{\"messages\":[{\"role\":\"s\",\"content\":\"" BILLING
         "\\n\\nA\\nB\"},{\"role\":\"u\",\"content\":\"1\"}]}",
         &QWEN, "s:A\nB|u:1|"},
        {"{\"messages\":[{\"role\":\"s\",\"content\":\"" BILLING "\"},{\"role\":\"u\",\"content\":\"1\"}]}",
         &QWEN, "u:1|"},
        {"{\"messages\":[{\"role\":\"u\",\"content\":\"" BILLING "\"}]}", &QWEN, "u:" BILLING "|"},
        {"{\"messages\":[{\"role\":\"s\",\"content\":\"\"},{\"role\":\"u\",\"content\":\"1\"}]}", &QWEN,
         "s:|u:1|"},
        {"{\"messages\":[{\"role\":\"u\",\"content\":\"1\"},{\"role\":\"u\",\"content\":\"2\"},"
         "{\"role\":\"a\",\"content\":\"x\"},{\"role\":\"a\",\"content\":\"y\"}]}",
         &QWEN, "u:1|u:2|a:x\n\ny|"},
        {"{\"messages\":[{\"role\":\"u\",\"content\":\"1\"},{\"role\":\"u\",\"content\":\"2\"}]}",
         &ALTERNATES, "u:1\n\n2|"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        chat_message *messages;
        size_t n;
        bytes text;
        bytes_init(&text, 10000);
        chat_input *in = chat_of(CASES[i].chat);
        CHECK_OK(prompt_arrange(&messages, &n, in, CASES[i].style, in->arena, &d), d);
        write_messages(&text, messages, n);
        CHECK_STR(bytes_str(&text), CASES[i].arranged);
        bytes_deinit(&text);
        chat_input_destroy(in);
    }
}

/* Tools, calls and results as text, in the form that the scanner of calls reads. */
static void test_tools(void)
{
    chat_message *messages;
    size_t n;
    bytes text;
    bytes_init(&text, 10000);
    chat_input *in = chat_of(CALLED);
    CHECK_OK(prompt_arrange(&messages, &n, in, &NO_TOOLS, in->arena, &d), d);
    write_messages(&text, messages, n);
    const char *got = bytes_str(&text);
    CHECK(strncmp(got, "s:# Tools\n", 10) == 0);
    CHECK(strstr(got, "<tools>\n{\"type\":\"function\",\"function\":{\"name\":\"f\"}}\n</tools>") != NULL);
    CHECK(strstr(got, "|u:1|a:<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\":1}}\n</tool_call>|") !=
          NULL);
    CHECK(strstr(
        got, "|u:<tool_response>\nr1\n</tool_response>\n<tool_response>\nr2\n</tool_response>|u:C\n\n2|"));
    CHECK(messages[0].is_string && messages[0].parts[0].is_ours);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < messages[i].n_parts; k++) {
            const chat_part *p = &messages[i].parts[k];
            CHECK(!p->is_ours || !strstr(p->text, "r1")); /* what a tool says is never ours */
        }
    }
    bytes_deinit(&text);
    chat_input_destroy(in);
}

/* The same to the last byte, with a system text in front of two tools, or what a template is given that writes calls in the
 * words of Python. */
static void test_calls_to_the_byte(void)
{
#define VALUES                                                                                               \
    "{\"x\":1.5,\"yes\":true,\"no\":false,\"none\":null,\"list\":[1,\"a\",{\"k\":false,\"z\":[]}],\"text\":" \
    "\"it's\"}"
    static const char CHAT[] =
        "{\"messages\":[{\"role\":\"s\",\"content\":\"Be kind.\"},{\"role\":\"u\",\"content\":\"1\"},"
        "{\"role\":\"a\",\"content\":\"Well.\",\"calls\":{\"f\":" VALUES ",\"g\":{}}},"
        "{\"role\":\"t\",\"content\":\"r1\"},{\"role\":\"t\",\"content\":\"r2\"}],"
        "\"tools\":[{\"name\":\"f\"},{\"name\":\"g\"}]}";
    static const struct {
        prompt_style style;
        const char *arranged;
    } CASES[] = {
        {{.habits = {.takes_system = true, .takes_repeats = true}},
         "s:Be kind.\n"
         "\n"
         "# Tools\n"
         "\n"
         "These functions can be called:\n"
         "\n"
         "<tools>\n"
         "{\"name\":\"f\"}\n"
         "{\"name\":\"g\"}\n"
         "</tools>\n"
         "\n"
         "To call one, end the reply with its name and its arguments as JSON between these markers, a pair "
         "of them for each call:\n"
         "\n"
         "<tool_call>\n"
         "{\"name\": NAME, \"arguments\": {KEY: VALUE}}\n"
         "</tool_call>\n"
         "\n"
         "If none fits, answer without a call.|u:1|a:Well.\n"
         "<tool_call>\n"
         "{\"name\": \"f\", \"arguments\": "
         "{\"x\":1.5,\"yes\":true,\"no\":false,\"none\":null,\"list\":[1,\"a\",{\"k\":false,\"z\":[]}],"
         "\"text\":\"it's\"}}\n"
         "</tool_call>\n"
         "<tool_call>\n"
         "{\"name\": \"g\", \"arguments\": {}}\n"
         "</tool_call>|u:<tool_response>\n"
         "r1\n"
         "</tool_response>\n"
         "<tool_response>\n"
         "r2\n"
         "</tool_response>|"},
        {{.habits = {.takes_system = true,
                     .takes_repeats = true,
                     .takes_tools = true,
                     .loses_calls = true,
                     .python_calls = true}},
         "s:Be kind.|u:1|a:Well.<|tool_call_start|>[f(x=1.5, yes=True, no=False, none=None, list=[1, \"a\", "
         "{\"k\": False, \"z\": []}], text=\"it's\"), g()]<|tool_call_end|>|t:r1|t:r2|"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        chat_message *messages;
        size_t n;
        bytes text;
        bytes_init(&text, 10000);
        chat_input *in = chat_of(CHAT);
        CHECK_OK(prompt_arrange(&messages, &n, in, &CASES[i].style, in->arena, &d), d);
        write_messages(&text, messages, n);
        CHECK_STR(bytes_str(&text), CASES[i].arranged);
        bytes_deinit(&text);
        chat_input_destroy(in);
    }
}

static void test_errors(void)
{
    chat_message *messages;
    size_t n;
    chat_input *in =
        chat_of("{\"messages\":[{\"role\":\"s\",\"content\":[null]},{\"role\":\"u\",\"content\":\"1\"}]}");
    CHECK_INT(prompt_arrange(&messages, &n, in, &QWEN, in->arena, &d), ERR_INVALID);
    CHECK_STR(d.text, "a system message may hold text only");
    chat_input_destroy(in);
}

#define TURNS "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"

#define HABITS(system, late, repeats, tools)                                                                 \
    {                                                                                                        \
        .takes_system = system, .takes_late_system = late, .takes_repeats = repeats, .takes_tools = tools    \
    }

static void test_habits(void)
{
    static const struct {
        const char *source;
        template_habits habits;
    } CASES[] = {
        {TURNS "{{ tools | tojson if tools }}", HABITS(true, true, true, true)},
        {TURNS, HABITS(true, true, true, false)},
        {"{% if tools %}{{ raise_exception('in another form') }}{% endif %}" TURNS,
         HABITS(true, true, true, true)},
        {"{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('late') "
         "}}{% endif %}"
         "{% if not loop.first and messages[loop.index0 - 1].role == m.role %}{{ raise_exception('twice') "
         "}}{% endif %}"
         "<{{ m.role }}>{{ m.content }}{% endfor %}{{ tools }}",
         HABITS(true, false, false, true)},
        {"{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endfor %}",
         HABITS(false, false, true, false)},
        {"{{ messages[0].content }}{% for m in messages[1:] %}{{ m.content }}{% endfor %}",
         HABITS(false, false, false, false)},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        chat_template *t = NULL;
        template_habits got, want = CASES[i].habits;
        CHECK_OK(chat_template_compile(&t, CASES[i].source, strlen(CASES[i].source), &d), d);
        CHECK_OK(template_habits_find(&got, t, &d), d);
        CHECK_INT(got.takes_system, want.takes_system);
        CHECK_INT(got.takes_late_system, want.takes_late_system);
        CHECK_INT(got.takes_repeats, want.takes_repeats);
        CHECK_INT(got.takes_tools, want.takes_tools);
        chat_template_close(t);
    }
}

int main(void)
{
    test_messages();
    test_tools();
    test_calls_to_the_byte();
    test_errors();
    test_habits();
    CHECK_DONE();
}
