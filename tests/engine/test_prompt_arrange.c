/* prompt_arrange: tests/engine/arranged.txt has conversations, and what becomes of them for templates of different habits;
 * and what templates are found to take.
 *
 *     > {"messages":[...],"tools":[...]}        a chat (tests/engine/chats.h)
 *     < all hoists                              for templates of these names (STYLES):
 *     <   system string "A" "\n\n" 'ours'       its messages; what this program wrote stands between '
 *     <   takes 960                             bytes of the arena
 *
 * Each is made with less memory, too: there is an error, or nothing is left out. PARLEY_WRITE=1 writes the file anew, whose
 * difference is then to be read. */
#include "engine/prompt.h"

#include "base/limits.h"
#include "tests/check.h"
#include "tests/engine/chats.h"
#include "tests/recorded.h"

enum { TEXT_BYTES = 1 << 20, MOST_BYTES = 1 << 16, STEP = 56 };

static err_detail d;

static const struct {
    const char *name;
    prompt_style style;
} STYLES[] = {
#define SYSTEM  .takes_system = true
#define LATE    .takes_late_system = true
#define REPEATS .takes_repeats = true
#define TOOLS   .takes_tools = true
    {"all", {.habits = {SYSTEM, LATE, REPEATS, TOOLS}}},
    {"front", {.habits = {SYSTEM, REPEATS, TOOLS}}},
    {"hoists", {.habits = {SYSTEM, REPEATS, TOOLS}, .hoists_system = true}},
    {"alternates", {.habits = {SYSTEM, TOOLS}}},
    {"no-system", {.habits = {REPEATS, TOOLS}}},
    {"no-tools", {.habits = {SYSTEM, REPEATS}}},
    {"nothing", {.habits = {.takes_system = false}}},
    {"nothing-hoists", {.habits = {.one_call = true, .python_calls = true}, .hoists_system = true}},
    {"loses-calls", {.habits = {SYSTEM, REPEATS, TOOLS, .loses_calls = true}}},
    {"python", {.habits = {SYSTEM, REPEATS, TOOLS, .loses_calls = true, .python_calls = true}}},
    {"one-call", {.habits = {SYSTEM, LATE, REPEATS, TOOLS, .one_call = true}}},
    {"joins", {.habits = {SYSTEM, LATE, REPEATS, TOOLS, .joins_results = true}}},
#undef SYSTEM
#undef LATE
#undef REPEATS
#undef TOOLS
};

static void write_text(bytes *out, const char *text, size_t len, char quote)
{
    bytes_printf(out, " %c", quote);
    for (size_t i = 0; i < len; i++) {
        bytes_printf(out, text[i] == '\n' ? "\\n" : text[i] == '\r' ? "\\r" : "%c", text[i]);
    }
    bytes_append_char(out, quote);
}

static void write_optional(bytes *out, const char *name, const char *text)
{
    if (text) {
        bytes_printf(out, " %s", name);
        write_text(out, text, strlen(text), '"');
    }
}

static void write_message(bytes *out, const chat_message *m)
{
    static const char *const ROLES[] = {"system", "user", "assistant", "tool"};
    bytes_printf(out, "<   %s%s", ROLES[m->role], m->is_string ? " string" : "");
    for (size_t i = 0; i < m->n_parts; i++) {
        const chat_part *p = &m->parts[i];
        if (p->kind == CHAT_TEXT) {
            write_text(out, p->text, p->text_len, p->is_ours ? '\'' : '"');
        } else {
            bytes_append_str(out, p->kind == CHAT_IMAGE ? " image" : " video");
        }
    }
    write_optional(out, "thinks", m->reasoning);
    write_optional(out, "of", m->tool_call_id);
    write_optional(out, "named", m->name);
    for (size_t i = 0; i < m->n_tool_calls; i++) {
        bytes_printf(out, " calls %s ", m->tool_calls[i].name);
        json_write(out, m->tool_calls[i].arguments);
        write_optional(out, "as", m->tool_calls[i].id);
    }
    bytes_append_char(out, '\n');
    for (size_t i = 0; i < m->n_results; i++) {
        bytes_append_str(out, "<   result");
        write_text(out, m->results[i].parts[0].text, m->results[i].parts[0].text_len, '"');
        bytes_append_char(out, '\n');
    }
}

/* What becomes of a chat in an arena of so many bytes; false after an error. */
static bool arranged(bytes *out, const chat_input *in, const prompt_style *style, size_t n_bytes)
{
    arena *a = arena_create(n_bytes);
    chat_message *messages;
    size_t n;
    CHECK(a != NULL);
    bytes_clear(out);
    d = (err_detail){0};
    const err_code err = prompt_arrange(&messages, &n, in, style, a, &d);
    for (size_t i = 0; i < n && err == ERR_OK; i++) {
        write_message(out, &messages[i]);
    }
    if (err != ERR_OK) {
        bytes_printf(out, "<   error %s: %s\n", err_name(err), d.text);
    }
    arena_destroy(a);
    return err == ERR_OK;
}

/* The same in as little memory as it takes, found by trying less. */
static void arrange_in_little(bytes *whole, const chat_input *in, const prompt_style *style)
{
    bytes less = bytes_empty(TEXT_BYTES);
    size_t fails = 0, does = MOST_BYTES;
    if (!arranged(whole, in, style, MOST_BYTES)) {
        return;
    }
    while (fails + 1 < does) {
        const size_t n = fails + (does - fails) / 2;
        *(arranged(&less, in, style, n) ? &does : &fails) = n;
    }
    for (size_t n = 0; n < does; n += STEP) {
        CHECK(!arranged(&less, in, style, n));
        CHECK_STR(bytes_str(&less), "<   error nomem: there is not enough memory for this conversation\n");
    }
    CHECK(arranged(&less, in, style, does));
    CHECK_STR(bytes_str(&less), bytes_str(whole));
    bytes_printf(whole, "<   takes %zu\n", does);
    bytes_deinit(&less);
}

/* Styles of which the same comes stand in one line. */
static void arrange_each(bytes *out, const chat_input *in)
{
    bytes each[ARRAY_LEN(STYLES)];
    for (size_t i = 0; i < ARRAY_LEN(STYLES); i++) {
        each[i] = bytes_empty(TEXT_BYTES);
        arrange_in_little(&each[i], in, &STYLES[i].style);
    }
    for (size_t i = 0; i < ARRAY_LEN(STYLES); i++) {
        size_t first = 0;
        while (strcmp(bytes_str(&each[first]), bytes_str(&each[i])) != 0) {
            first++;
        }
        if (first < i) {
            continue;
        }
        bytes_append_char(out, '<');
        for (size_t k = i; k < ARRAY_LEN(STYLES); k++) {
            if (strcmp(bytes_str(&each[k]), bytes_str(&each[i])) == 0) {
                bytes_printf(out, " %s", STYLES[k].name);
            }
        }
        bytes_printf(out, "\n%s", bytes_str(&each[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(STYLES); i++) {
        bytes_deinit(&each[i]);
    }
}

static void tell_answer(void *ctx, bytes *out, const char *line, size_t len)
{
    (void)ctx;
    if (*line == '>') {
        json_doc *doc = NULL;
        CHECK_OK(json_parse(&doc, line + 2, len - 2, LIMIT_JSON_DEPTH, &d), d);
        chat_input *in = chats_make(json_root(doc));
        arrange_each(out, in);
        chat_input_destroy(in);
        json_free(doc);
    }
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
    recorded_answers(PARLEY_SOURCE_DIR "/tests/engine/arranged.txt", tell_answer, NULL);
    test_habits();
    CHECK_DONE();
}
