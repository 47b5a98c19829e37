/* prompt: calls and their results stand in a prompt as the template wants them: arguments as text, ids
 * of its kind, one call in a message, results beside their calls, reasoning under its name; and every
 * published template shows all of a call. */
#include "engine/prompt.h"

#include <dirent.h>

#include "base/file.h"
#include "base/limits.h"
#include "tests/check.h"

static err_detail d;

static const char TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"description\":\"of a city\",\"parameters\":"
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\",\"description\":\"its name\"}},"
    "\"required\":[\"city\"]}}},{\"type\":\"function\",\"function\":{\"name\":\"clock\",\"description\":"
    "\"tells "
    "the time\",\"parameters\":{\"type\":\"object\",\"properties\":{\"zone\":{\"type\":\"string\","
    "\"description\":\"where\"}},\"required\":[\"zone\"]}}}]";

/* u: a question, c: a call, d: two calls, D: with reasoning, w: with words, r: a result, s: the one of a
 * second call. */
static chat_input *talk_of(const char *letters)
{
    static const char ARGUMENTS[] = "{\"a\":{\"city\":\"Graz\"},\"b\":{\"zone\":\"CET\"},\"tools\":%s}";
    static chat_part question = {.kind = CHAT_TEXT, .text = "What now?", .text_len = 9},
                     words = {.kind = CHAT_TEXT, .text = "I look.", .text_len = 7},
                     first = {.kind = CHAT_TEXT, .text = "sunny", .text_len = 5},
                     second = {.kind = CHAT_TEXT, .text = "noon", .text_len = 4};
    chat_input *in = chat_input_create(1 << 20);
    char text[2048];
    const int len = snprintf(text, sizeof text, ARGUMENTS, TOOLS);
    CHECK_OK(json_parse(&in->keep, text, (size_t)len, LIMIT_JSON_DEPTH, &d), d);
    const json *root = json_root(in->keep);
    in->tools = json_get(root, "tools");
    in->messages = arena_calloc(in->arena, 16, sizeof *in->messages);
    chat_tool_call *calls = arena_calloc(in->arena, 2, sizeof *calls);
    calls[0] = (chat_tool_call){.id = "call_one", .name = "weather", .arguments = json_get(root, "a")};
    calls[1] = (chat_tool_call){.id = "call_two", .name = "clock", .arguments = json_get(root, "b")};
    for (; *letters; letters++) {
        const char c = *letters;
        const bool is_result = c == 'r' || c == 's';
        in->messages[in->n_messages++] = (chat_message){.role = c == 'u'    ? CHAT_USER
                                                                : is_result ? CHAT_TOOL
                                                                            : CHAT_ASSISTANT,
                                                        .parts = c == 'u'   ? &question
                                                                 : c == 'w' ? &words
                                                                 : c == 's' ? &second
                                                                            : &first,
                                                        .n_parts = c == 'u' || c == 'w' || is_result,
                                                        .is_string = true,
                                                        .reasoning = c == 'D' ? "why" : NULL,
                                                        .tool_calls = c == 'u' || is_result ? NULL : calls,
                                                        .n_tool_calls = c == 'u' || is_result  ? 0
                                                                        : c == 'c' || c == 'w' ? 1
                                                                                               : 2,
                                                        .tool_call_id = c == 'r'   ? "call_one"
                                                                        : c == 's' ? "call_two"
                                                                                   : NULL};
    }
    return in;
}

static bool render_talk(bytes *out, const chat_template *t, const tokenizer *tok, const char *letters)
{
    prompt_style style = {.as_published = true,
                          .bos_token = "<s>",
                          .eos_token = "</s>",
                          .think = think_form_of_template(chat_template_text(t))};
    chat_input *in = talk_of(letters);
    CHECK_OK(template_habits_find(&style.habits, t, &d), d);
    bytes_init(out, LIMIT_RENDERED_BYTES);
    const bool ok = prompt_render(out, NULL, tok, t, &style, in, &d) == ERR_OK;
    chat_input_destroy(in);
    return ok;
}

#define EACH     "{% for m in messages %}{% if m.role == 'user' %}U{{ m.content }};"
#define TOOLS_IN "{% if tools %}T;{% endif %}"
#define END      "{% endif %}{% endfor %}"
#define RESULT   "{% elif m.role == 'tool' %}"

typedef struct row {
    const char *source, *letters, *expected;
} row;

static const row ROWS[] = {
    /* arguments as an object, any id */
    {TOOLS_IN EACH RESULT
     "R{{ m.tool_call_id }}={{ m.content }};{% else %}{{ m.content }}{% for c in m.tool_calls "
     "%}C{{ c.id }}:{{ c.function.name }}{{ c.function.arguments | tojson }};{% endfor %}" END,
     "udrs",
     "T;UWhat now?;Ccall_one:weather{\"city\": \"Graz\"};Ccall_two:clock{\"zone\": \"CET\"};Rcall_one=sunny;"
     "Rcall_two=noon;"},
    /* arguments as text */
    {TOOLS_IN EACH RESULT "R{{ m.content }};{% else %}{% for c in m.tool_calls %}C{{ c.function.name + '(' + "
                          "c.function.arguments + ')' }};{% endfor %}" END,
     "ucr", "T;UWhat now?;Cweather({\"city\":\"Graz\"});Rsunny;"},
    /* no content beside a call */
    {TOOLS_IN EACH RESULT
     "R{{ m.content }};{% else %}{% if m.content is none %}{% for c in m.tool_calls %}C{{ "
     "c.function.name }}{{ c.function.arguments.city }}{{ c.function.arguments.depth }};{% "
     "endfor %}{% else %}A{{ m.content }};{% endif %}" END,
     "ucr", "T;UWhat now?;CweatherGraz;Rsunny;"},
    /* brackets around a content, an empty one, too: one without text has none */
    {TOOLS_IN EACH RESULT
     "R{{ m.content }};{% else %}{% if m.content is not none %}[{{ m.content }}]{% endif %}{% for c in "
     "m.tool_calls %}C{{ c.function.arguments | tojson }};{% endfor %}" END,
     "ucrwr", "T;UWhat now?;C{\"city\": \"Graz\"};Rsunny;[I look.]C{\"city\": \"Graz\"};Rsunny;"},
    /* ids of nine letters and digits, the same of a call and its result */
    {TOOLS_IN EACH RESULT
     "R{{ m.tool_call_id == ns.id }}={{ m.content }};{% else %}{% for c in m.tool_calls %}{% if "
     "c.id|length != 9 %}{{ raise_exception('nine!') }}{% endif %}{% set ns.id = c.id %}C{{ "
     "c.function.arguments | tojson }};{% endfor %}" END,
     "ucr", "T;UWhat now?;C{\"city\": \"Graz\"};RTrue=sunny;"},
    /* the tokens around a conversation */
    {TOOLS_IN "{{ bos_token + 'x' }}" EACH "{% endif %}{% endfor %}{{ 'y' + eos_token }}", "u",
     "T;<s>xUWhat now?;y</s>"},
    /* counted ids */
    {TOOLS_IN EACH RESULT
     "R{{ m.tool_call_id }}={{ m.content }};{% else %}{% for c in m.tool_calls "
     "%}<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>{{ c.function.arguments | "
     "tojson }};{% endfor %}" END,
     "udrscr",
     "T;UWhat now?;<|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{\"city\": \"Graz\"};"
     "<|tool_call_begin|>functions.clock:1<|tool_call_argument_begin|>{\"zone\": \"CET\"};"
     "Rfunctions.weather:0=sunny;Rfunctions.clock:1=noon;"
     "<|tool_call_begin|>functions.weather:2<|tool_call_argument_begin|>{\"city\": \"Graz\"};"
     "Rfunctions.weather:0=sunny;"},
    /* one call in a message */
    {TOOLS_IN EACH RESULT
     "R{{ m.content }};{% else %}{% if m.tool_calls|length != 1 %}{{ raise_exception('one!') "
     "}}{% endif %}{{ m.content }}C{{ m.tool_calls[0].function.arguments | tojson }};" END,
     "udsr", "T;UWhat now?;C{\"city\": \"Graz\"};Rsunny;C{\"zone\": \"CET\"};Rnoon;"},
    /* results beside their calls */
    {TOOLS_IN EACH
     "{% else %}{{ m.content }}{% for c in m.tool_calls %}C{{ c.function.arguments | tojson }};{% endfor "
     "%}{% for r in m['tool_responses'] %}R{{ r.name }}={{ r.response }};{% endfor %}" END,
     "udrs", "T;UWhat now?;C{\"city\": \"Graz\"};C{\"zone\": \"CET\"};Rweather=sunny;Rclock=noon;"},
    {TOOLS_IN EACH
     "{% else %}{{ m.content }}.{% for c in m.tool_calls %}C{{ c.function.arguments | tojson }};{% "
     "endfor %}{% for r in m['tool_responses'] %}R{{ r.name }}={{ r.response }};{% endfor %}" END,
     "uwr", "T;UWhat now?;I look...C{\"city\": \"Graz\"};Rweather=sunny;"},
    /* reasoning by its other name */
    {TOOLS_IN EACH RESULT
     "R{{ m.content }};{% else %}{% set message = m %}({{ message.thinking }}){% for c in "
     "m.tool_calls %}C{{ c.function.arguments | tojson }};{% endfor %}" END,
     "uDrs", "T;UWhat now?;(why)C{\"city\": \"Graz\"};C{\"zone\": \"CET\"};Rsunny;Rnoon;"},
    /* a template that leaves calls to the text */
    {"{% if tools %}<|tool_list_start|>{% endif %}" EACH "{% else %}{{ m.role[0] }}{{ m.content }};" END,
     "udrs",
     "<|tool_list_start|>UWhat now?;a<|tool_call_start|>[weather(city=\"Graz\"), "
     "clock(zone=\"CET\")]<|tool_call_end|>;tsunny;tnoon;"},
};

static void test_rows(const tokenizer *tok)
{
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        chat_template *t = NULL;
        bytes text, source = bytes_empty(1 << 16);
        bytes_printf(&source, "{%% set ns = namespace(id='') %%}%s", ROWS[i].source);
        CHECK_OK(chat_template_compile(&t, bytes_str(&source), source.len, &d), d);
        if (render_talk(&text, t, tok, ROWS[i].letters)) {
            CHECK_STR(bytes_str(&text), ROWS[i].expected);
        } else {
            CHECK_STR(d.text, ROWS[i].expected);
        }
        bytes_deinit(&text);
        bytes_deinit(&source);
        chat_template_close(t);
    }
}

static bool shows(const char *text, const char *const *words)
{
    for (; *words; words++) {
        text = strstr(text, *words);
        if (!text) {
            return false;
        }
        text += strlen(*words);
    }
    return true;
}

/* These fail on any tools, as they do with the reference: they want variables of their own, or what the
 * sandbox forbids. */
static const char *const FAIL[] = {"fireworks-ai-llama-3-firefunction-v2.jinja", "Kimi-K2-Thinking.jinja",
                                   "MiroThinker.jinja", "llama-cpp-deepseek-r1.jinja"};

static bool fails(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(FAIL); i++) {
        if (strcmp(name, FAIL[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* What was called, with what, and what came of it. */
static void test_published(const char *shared, const tokenizer *tok)
{
    static const char *const ONE[] = {"What now?", "weather", "Graz", "sunny", NULL};
    static const char *const BOTH[] = {"What now?", "weather", "Graz", "clock", "CET", "noon", NULL};
    char dir[4096], path[4096];
    CHECK(file_join(dir, sizeof dir, shared, "reference/templates"));
    DIR *all = opendir(dir);
    const struct dirent *f;
    while (all && (f = readdir(all))) {
        chat_template *t = NULL;
        bytes text, source = bytes_empty(LIMIT_TEMPLATE_BYTES);
        if (!strstr(f->d_name, ".jinja") || fails(f->d_name) ||
            !file_join(path, sizeof path, dir, f->d_name)) {
            continue;
        }
        CHECK_OK(file_read(&source, path, &d), d);
        CHECK_OK(chat_template_compile(&t, bytes_str(&source), source.len, &d), d);
        for (int i = 0; i < 2; i++) {
            const bool ok = render_talk(&text, t, tok, i ? "udrs" : "ucr");
            const bool shown = ok && shows(bytes_str(&text), i ? BOTH : ONE);
            CHECK(shown);
            if (!shown) {
                fprintf(stderr, "  %s: %s\n", f->d_name, ok ? bytes_str(&text) : d.text);
            }
            bytes_deinit(&text);
        }
        bytes_deinit(&source);
        chat_template_close(t);
    }
    if (all) {
        closedir(all);
    }
}

int main(void)
{
    tokenizer *tok = NULL;
    CHECK_OK(tokenizer_open(&tok, check_data("tiny/tokenizer.json"), &d), d);
    test_rows(tok);
    const char *shared = check_shared_dir();
    if (shared) {
        test_published(shared, tok);
    }
    tokenizer_close(tok);
    CHECK_DONE();
}
