/* prompt: what a conversation's prompt begins with does not change when messages are appended, with
 * thinking on and off, with reasoning and without, over rounds of calls, for templates that show the
 * answers behind the last question otherwise than those before it. */
#include "engine/prompt.h"

#include <dirent.h>

#include "base/file.h"
#include "base/limits.h"
#include "tests/check.h"

static err_detail d;

/* A conversation, a letter for each message: s system, l the same later, u user, a answer, A with
 * reasoning, c call, C with reasoning, d two calls with reasoning, t result. */
static const char *const TALKS[] = {"suauAuau",   "suctauCtAu", "uCtCtAuCtu", "sucttu",    "sudttCtAuaudttu",
                                    "suctuCtaul", "sulAulCtlA", "sulAuuau",   "uCtCtlAuCt"};

enum { MESSAGES_MAX = 20 };

static chat_message message_of(arena *a, char letter, size_t i, const json *arguments)
{
    chat_part *part = arena_calloc(a, 1, sizeof *part);
    chat_tool_call *calls = arena_calloc(a, 2, sizeof *calls);
    char *words = arena_calloc(a, 2, 64);
    CHECK(part && calls && words);
    if (!part || !calls || !words) {
        exit(1);
    }
    snprintf(words, 64, "words of message %zu", i);
    snprintf(words + 64, 64, "thoughts of message %zu", i);
    *part = (chat_part){.kind = CHAT_TEXT, .text = words, .text_len = strlen(words)};
    for (int k = 0; k < 2; k++) {
        calls[k] =
            (chat_tool_call){.id = k ? "abcdef001" : "abcdef000", .name = "weather", .arguments = arguments};
    }
    const bool is_call = strchr("cCd", letter), thinks = strchr("ACd", letter);
    return (chat_message){.role = strchr("sl", letter) ? CHAT_SYSTEM
                                  : letter == 'u'      ? CHAT_USER
                                  : letter == 't'      ? CHAT_TOOL
                                                       : CHAT_ASSISTANT,
                          .parts = part,
                          .n_parts = is_call ? 0 : 1,
                          .is_string = true,
                          .reasoning = thinks ? words + 64 : NULL,
                          .tool_calls = is_call ? calls : NULL,
                          .n_tool_calls = letter == 'd' ? 2
                                          : is_call     ? 1
                                                        : 0,
                          .tool_call_id = letter == 't' ? "abcdef000" : NULL,
                          .name = letter == 't' ? "weather" : NULL};
}

static chat_input *talk_of(const char *letters, size_t n, bool thinking, bool tools)
{
    chat_input *in = chat_input_create(1 << 20);
    char text[1024];
    int len =
        snprintf(text, sizeof text,
                 "{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"weather\","
                 "\"description\":\"of a city\",\"parameters\":{\"type\":\"object\",\"properties\":"
                 "{\"city\":{\"type\":\"string\",\"description\":\"its name\"}},\"required\":[\"city\"]}}}],"
                 "\"kwargs\":{\"enable_thinking\":%s,\"thinking\":%s},\"arguments\":{\"city\":\"Graz\"}}",
                 thinking ? "true" : "false", thinking ? "true" : "false");
    CHECK_OK(json_parse(&in->keep, text, (size_t)len, LIMIT_JSON_DEPTH, &d), d);
    const json *root = json_root(in->keep);
    in->messages = arena_calloc(in->arena, MESSAGES_MAX, sizeof *in->messages);
    in->template_kwargs = json_get(root, "kwargs");
    in->tools = tools ? json_get(root, "tools") : NULL;
    for (; in->n_messages < n; in->n_messages++) {
        in->messages[in->n_messages] =
            message_of(in->arena, letters[in->n_messages], in->n_messages, json_get(root, "arguments"));
    }
    return in;
}

static bool is_request(const char *talk, size_t n)
{
    return n > 0 && strchr("ult", talk[n - 1]) && talk[n] != 't' && (n > 1 || talk[0] == 'u');
}

typedef struct subject {
    const char *name;
    chat_template *template;
    prompt_style style;
    tokenizer *tok;
    size_t n_kept, n_changed;
} subject;

static subject open_subject(const char *dir, const char *name)
{
    subject s = {.name = name};
    char path[4096];
    bytes text;
    bytes_init(&text, LIMIT_TEMPLATE_BYTES);
    CHECK(file_join(path, sizeof path, dir, name));
    CHECK_OK(file_read(&text, path, &d), d);
    CHECK_OK(chat_template_compile(&s.template, bytes_str(&text), text.len, &d), d);
    CHECK_OK(template_habits_find(&s.style.habits, s.template, &d), d);
    CHECK_OK(tokenizer_open(&s.tok, check_data("tiny/tokenizer.json"), &d), d);
    bytes_deinit(&text);
    return s;
}

static void close_subject(subject *s)
{
    chat_template_close(s->template);
    tokenizer_close(s->tok);
}

/* Renders each request of a talk, and compares the begin of each with the history of the one
 * before. */
static void grow(subject *s, const char *talk, bool thinking, bool tools)
{
    bytes before, text;
    bytes_init(&before, LIMIT_RENDERED_BYTES);
    for (size_t n = 1; n <= strlen(talk); n++) {
        size_t history_len = 0;
        if (!is_request(talk, n)) {
            continue;
        }
        chat_input *in = talk_of(talk, n, thinking, tools);
        bytes_init(&text, LIMIT_RENDERED_BYTES);
        const err_code err = prompt_render(&text, &history_len, s->tok, s->template, &s->style, in, &d);
        chat_input_destroy(in);
        if (err == ERR_OK) {
            const bool keeps =
                text.len >= before.len && memcmp(bytes_str(&text), bytes_str(&before), before.len) == 0;
            s->n_kept += keeps;
            s->n_changed += !keeps;
            bytes_clear(&before);
            bytes_append(&before, bytes_str(&text), history_len ? history_len : text.len);
        }
        bytes_deinit(&text);
    }
    bytes_deinit(&before);
}

static void grow_all(subject *s)
{
    for (size_t i = 0; i < ARRAY_LEN(TALKS); i++) {
        for (int k = 0; k < 4; k++) {
            grow(s, TALKS[i], k & 1, k & 2);
        }
    }
}

/* Grows all talks, as by default and as published; prints what came out. */
static void measure(const char *dir, const char *name, size_t changed[2])
{
    subject s = open_subject(dir, name);
    size_t kept[2];
    for (int i = 0; i < 2; i++) {
        s.style.as_published = i == 1;
        s.n_kept = s.n_changed = 0;
        grow_all(&s);
        kept[i] = s.n_kept;
        changed[i] = s.n_changed;
    }
    printf("%s: the history changed in %zu of %zu requests, as published in %zu of %zu\n", name, changed[0],
           kept[0] + changed[0], changed[1], kept[1] + changed[1]);
    close_subject(&s);
}

/* Templates of the shared folder whose earlier turns depend on the last question. */
static const char *const LAST_QUESTION[] = {"Qwen3.5-4B.jinja",
                                            "Qwen-Qwen3-0.6B.jinja",
                                            "StepFun3.5-Flash.jinja",
                                            "GLM-4.7-Flash.jinja",
                                            "GLM-5.2.jinja",
                                            "google-gemma-4-31B-it-interleaved.jinja",
                                            "deepseek-ai-DeepSeek-V3.2.jinja"};

static void measure_shared(const char *shared)
{
    char dir[4096];
    struct dirent *f;
    snprintf(dir, sizeof dir, "%s/reference/templates", shared);
    DIR *all = opendir(dir);
    while (all && (f = readdir(all))) {
        size_t changed[2];
        if (strstr(f->d_name, ".jinja")) {
            measure(dir, f->d_name, changed);
            for (size_t i = 0; i < ARRAY_LEN(LAST_QUESTION); i++) {
                if (strcmp(f->d_name, LAST_QUESTION[i]) == 0) {
                    CHECK_INT(changed[0], 0);
                    CHECK(changed[1] > 0);
                }
            }
        }
    }
    if (all) {
        closedir(all);
    }
}

/* The reasoning of calls stays, that of answers is dropped as the template does it; and what an
 * answer says beside a call cannot spell a marker where two renderings meet. */
static void check_text(void)
{
    static const char SOURCE[] =
        "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}"
        "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}{% if m.role == "
        "'assistant' "
        "and loop.index0 > ns.last %}[{{ m.reasoning_content }}]{% endif %}{{ m.role[0] }}{{ loop.index0 }};"
        "{% endfor %}{% if add_generation_prompt %}>{% endif %}";
    subject s = {.name = "own"};
    bytes text;
    CHECK_OK(chat_template_compile(&s.template, SOURCE, strlen(SOURCE), &d), d);
    CHECK_OK(template_habits_find(&s.style.habits, s.template, &d), d);
    s.style.habits = (template_habits){.takes_system = true, .takes_repeats = true, .takes_tools = true};
    CHECK_OK(tokenizer_open(&s.tok, check_data("tiny/tokenizer.json"), &d), d);
    static const struct {
        const char *talk, *kept, *published;
    } CASES[] = {
        {"uCtAuCt", "u0;[thoughts of message 1]a1;t2;a3;u4;[thoughts of message 5]a5;t6;>",
         "u0;a1;t2;a3;u4;[thoughts of message 5]a5;t6;>"},
        /* The second round was rendered behind the first: its numbers say so. */
        {"uauCtauCt", "u0;a1;u2;[thoughts of message 3]a3;t4;a5;u6;[thoughts of message 7]a7;t8;>",
         "u0;a1;u2;a3;t4;a5;u6;[thoughts of message 7]a7;t8;>"},
    };
    for (size_t i = 0; i < 2 * ARRAY_LEN(CASES); i++) {
        size_t history_len = 0;
        const char *talk = CASES[i / 2].talk;
        chat_input *in = talk_of(talk, strlen(talk), true, true);
        bytes_init(&text, 1000);
        s.style.as_published = i % 2 == 1;
        CHECK_OK(prompt_render(&text, &history_len, s.tok, s.template, &s.style, in, &d), d);
        CHECK_STR(bytes_str(&text), i % 2 ? CASES[i / 2].published : CASES[i / 2].kept);
        CHECK_INT(history_len, text.len - 1);
        bytes_deinit(&text);
        chat_input_destroy(in);
    }
    close_subject(&s);
}

/* Where messages do not stand in their order nothing is put back; one that is not shown is no matter. */
static void check_order(void)
{
#define LAST                                                                                                 \
    "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}"                      \
    "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
#define THOUGHTS(index) "{% if m.role == 'assistant' and " index " > ns.last %}x{% endif %}"
    static const struct {
        const char *source, *kept, *published;
    } CASES[] = {
        {LAST "{% for m in messages %}" THOUGHTS("loop.index0") "{{ m.role[0] }}{% endfor %}", "uxatauxat",
         "uatauxat"},
        {LAST "{% for m in messages %}" THOUGHTS(
             "loop.index0") "{% if m.role != 'tool' %}{{ m.role[0] }}{% endif %}"
                            "{% endfor %}",
         "uxaauxa", "uaauxa"},
        {LAST "{% for m in messages|reverse %}" THOUGHTS("loop.revindex0") "{{ m.role[0] }}{% endfor %}",
         "txauatau", "txauatau"},
        {LAST "{% for m in messages[-1:] %}{{ m.role[0] }}{% endfor %}{% for m in messages[:-1] %}" THOUGHTS(
             "loop.index0") "{{ m.role[0] }}{% endfor %}",
         "tuatauxa", "tuatauxa"},
        {LAST "{% for m in messages[1:2] %}{% if ns.last < 1 %}x{% endif %}{{ m.role[0] }}{% endfor %}"
              "{% for m in messages[:1] %}{{ m.role[0] }}{% endfor %}{% for m in messages[2:] %}" THOUGHTS(
                  "loop.index0 + 2") "{{ m.role[0] }}{% endfor %}",
         "autauxat", "autauxat"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        subject s = {.name = "own"};
        CHECK_OK(chat_template_compile(&s.template, CASES[i].source, strlen(CASES[i].source), &d), d);
        s.style.habits = (template_habits){.takes_system = true, .takes_repeats = true, .takes_tools = true};
        CHECK_OK(tokenizer_open(&s.tok, check_data("tiny/tokenizer.json"), &d), d);
        for (int k = 0; k < 2; k++) {
            bytes text = bytes_empty(1000);
            size_t history_len = 0;
            chat_input *in = talk_of("uCtAuCt", 7, true, true);
            s.style.as_published = k == 1;
            CHECK_OK(prompt_render(&text, &history_len, s.tok, s.template, &s.style, in, &d), d);
            CHECK_STR(bytes_str(&text), k ? CASES[i].published : CASES[i].kept);
            bytes_deinit(&text);
            chat_input_destroy(in);
        }
        close_subject(&s);
    }
}

/* So much is rendered a second time, and no round more: of twelve, each of which takes an eighth of it, or a byte more. */
static void check_long(void)
{
    enum { ROUNDS = 12, AN_EIGHTH = LIMIT_RENDERED_BYTES / 4 / 8 };
    static const char SOURCE[] = LAST "{% for m in messages %}" THOUGHTS(
        "loop.index0") "{{ m.role[0] }}{% if m.role == 'tool' %}{{ m.content }}{% endif %}{% endfor %}";
    static char content[AN_EIGHTH];
    char talk[3 * ROUNDS + 2] = "";
    memset(content, 'z', sizeof content);
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(talk + 3 * (size_t)i, "uCt", 4);
    }
    memcpy(talk + 3 * (size_t)ROUNDS, "u", 2);
    for (size_t more = 0; more <= 1; more++) {
        subject s = {.name = "own"};
        CHECK_OK(chat_template_compile(&s.template, SOURCE, strlen(SOURCE), &d), d);
        s.style.habits = (template_habits){.takes_system = true, .takes_repeats = true, .takes_tools = true};
        CHECK_OK(tokenizer_open(&s.tok, check_data("tiny/tokenizer.json"), &d), d);
        bytes text = bytes_empty(LIMIT_RENDERED_BYTES);
        chat_input *in = talk_of(talk, 0, true, true);
        size_t history_len = 0, n_restored = 0;
        in->messages = arena_calloc(in->arena, sizeof talk, sizeof *in->messages);
        for (in->n_messages = 0; in->n_messages < strlen(talk); in->n_messages++) {
            chat_message *m = &in->messages[in->n_messages];
            *m = message_of(in->arena, talk[in->n_messages], in->n_messages,
                            json_get(json_root(in->keep), "arguments"));
            if (m->role == CHAT_TOOL) { /* behind a question, a thought and two letters */
                m->parts[0].text = content;
                m->parts[0].text_len = sizeof content - strlen("uxat") + more;
            }
        }
        CHECK_OK(prompt_render(&text, &history_len, s.tok, s.template, &s.style, in, &d), d);
        for (size_t i = 0; i < text.len; i++) {
            n_restored += text.data[i] == 'x';
        }
        CHECK_INT(n_restored, more ? 8 : 9);
        bytes_deinit(&text);
        chat_input_destroy(in);
        close_subject(&s);
    }
}
#undef LAST
#undef THOUGHTS

int main(void)
{
    size_t changed[2];
    measure(PARLEY_SOURCE_DIR "/tools/seedling", "chat_template.jinja", changed);
    CHECK_INT(changed[0], 0);
    CHECK(changed[1] > 0);
    check_text();
    check_order();
    check_long();
    const char *shared = check_shared_dir();
    if (shared) {
        measure_shared(shared);
    }
    CHECK_DONE();
}
