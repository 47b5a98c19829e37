/* prompt_render: each file of tests/engine/rendered/ begins with a template; what it makes of conversations for templates of
 * different habits stands behind them.
 *
 *     > {"messages":[...],"kwargs":{...}}       a chat (tests/engine/chats.h)
 *     < text-arguments counted-ids              for styles of these names (STYLES), of 120 bytes 100 are the history:
 *     < | [user] "Hello"                        the lines of the prompt; ^ is a guard in front of a marker
 *
 * PARLEY_WRITE=1 writes them anew, whose difference is then to be read. */
#include "engine/prompt.h"

#include <dirent.h>

#include "base/limits.h"
#include "text/tokenizer/guard.h"
#include "tests/check.h"
#include "tests/engine/chats.h"
#include "tests/one_fails.h"
#include "tests/recorded.h"

enum { TEXT_BYTES = 1 << 20 };

static err_detail d;

/* The memory of a conversation ends at each place. */
ONE_FAILS(void *, arena_alloc, (arena * a, size_t n), (a, n), NULL)
ONE_FAILS(void *, arena_calloc, (arena * a, size_t n, size_t size), (a, n, size), NULL)
ONE_FAILS(char *, arena_strdup, (arena * a, const char *text, size_t n), (a, text, n), NULL)

#define TAKES_ALL .takes_system = true, .takes_late_system = true, .takes_repeats = true, .takes_tools = true

static struct {
    const char *name, *think;
    prompt_style style;
} styles[] = {
    {"plain", NULL, {.habits = {TAKES_ALL}, .bos_token = "<|im_start|>", .eos_token = "end"}},
    {"as-published", NULL, {.habits = {TAKES_ALL}, .as_published = true}},
    {"no-tools", NULL, {.habits = {.takes_system = true, .takes_repeats = true}}},
    {"text-arguments", NULL, {.habits = {TAKES_ALL, .string_arguments = true, .no_call_text = true}}},
    {"short-ids", NULL, {.habits = {TAKES_ALL, .short_ids = true, .one_call = true}}},
    {"counted-ids", NULL, {.habits = {TAKES_ALL, .counted_ids = true}}},
    {"joined", NULL, {.habits = {TAKES_ALL, .joins_results = true}}},
    {"harmony", "harmony", {.habits = {TAKES_ALL, .says_thinking = true}}},
    {"mistral", "mistral", {.habits = {TAKES_ALL}}},
};

/* The prompt, or the error, with what is told of it. */
static void rendered(bytes *out, const chat_template *t, const tokenizer *tok, const prompt_style *style,
                     const chat_input *in)
{
    bytes prompt = bytes_empty(TEXT_BYTES);
    size_t history = 0;
    d = (err_detail){0};
    const err_code err = prompt_render(&prompt, &history, tok, t, style, in, &d);
    bytes_printf(out, ", of %zu bytes %zu are the history:\n", prompt.len, history);
    if (err != ERR_OK) {
        bytes_printf(out, "< error %s: %s\n", err_name(err), d.text);
    }
    for (const char *at = bytes_str(&prompt); *at && err == ERR_OK;) {
        bytes_append_str(out, "< | ");
        for (; *at && *at != '\n'; at++) {
            const bool is_guard = strncmp(at, GUARD_CHAR, GUARD_LEN) == 0;
            bytes_append_char(out, is_guard ? '^' : *at);
            at += is_guard ? GUARD_LEN - 1 : 0;
        }
        bytes_append_char(out, '\n');
        at += *at == '\n';
    }
    bytes_deinit(&prompt);
}

/* With room for just so many bytes or one less, and with each allocation failing once: the same prompt, or it is said that the
 * conversation is too long. */
static void render_in_little(const chat_template *t, const tokenizer *tok, const prompt_style *style,
                             const chat_input *in)
{
    static const char *const CALLS[] = {"arena_alloc", "arena_calloc", "arena_strdup"};
    bytes whole = bytes_empty(TEXT_BYTES);
    int most[ARRAY_LEN(CALLS)], n_refused = 0, n_other = 0;
    one_fails(NULL, 0);
    const err_code wanted = prompt_render(&whole, NULL, tok, t, style, in, &d);
    one_fails_over();
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        most[i] = one_fails_counted(CALLS[i]);
    }
    for (size_t less = 0; less < 2 && wanted == ERR_OK && whole.len > 0; less++) {
        bytes prompt = bytes_empty(whole.len - less);
        CHECK_INT(prompt_render(&prompt, NULL, tok, t, style, in, &d), less ? ERR_LIMIT : ERR_OK);
        CHECK_STR(less ? d.text : bytes_str(&prompt),
                  less ? "this prompt is longer than 0 MiB; shorten it" : bytes_str(&whole));
        bytes_deinit(&prompt);
    }
    for (size_t i = 0; i < ARRAY_LEN(CALLS); i++) {
        for (int n = 1; n <= most[i]; n++) {
            bytes prompt = bytes_empty(TEXT_BYTES);
            d = (err_detail){0};
            one_fails(CALLS[i], n);
            const err_code err = prompt_render(&prompt, NULL, tok, t, style, in, &d);
            CHECK(one_fails_over());
            if (err == ERR_OK) { /* a round for which there was no room stands as a later prompt has it */
                CHECK(prompt.len <= whole.len);
                n_other += strcmp(bytes_str(&prompt), bytes_str(&whole)) != 0;
            } else {
                const char *text = err == ERR_NOMEM ? "there is not enough memory for this conversation"
                                   : strncmp(d.text, "this", 4) == 0
                                       ? "this conversation takes more than 256 MiB to render; shorten it"
                                       : "the chat does not fit the memory for rendering the chat template";
                CHECK(err == ERR_NOMEM || err == ERR_LIMIT);
                CHECK_STR(d.text, text);
                n_refused++;
            }
            bytes_deinit(&prompt);
        }
    }
    CHECK(n_refused > 0 && n_other < 10);
    bytes_deinit(&whole);
}

/* Styles of which the same comes stand in one line. */
static void render_each(bytes *out, const chat_template *t, const tokenizer *tok, const chat_input *in)
{
    enum { N = sizeof styles / sizeof *styles };
    bytes each[N];
    for (size_t i = 0; i < N; i++) {
        each[i] = bytes_empty(TEXT_BYTES);
        rendered(&each[i], t, tok, &styles[i].style, in);
        render_in_little(t, tok, &styles[i].style, in);
    }
    for (size_t i = 0; i < N; i++) {
        size_t first = 0;
        while (strcmp(bytes_str(&each[first]), bytes_str(&each[i])) != 0) {
            first++;
        }
        bytes_append_str(out, first == i ? "<" : "");
        for (size_t k = i; k < N && first == i; k++) {
            if (strcmp(bytes_str(&each[k]), bytes_str(&each[i])) == 0) {
                bytes_printf(out, " %s", styles[k].name);
            }
        }
        bytes_append_str(out, first == i ? bytes_str(&each[i]) : "");
    }
    for (size_t i = 0; i < N; i++) {
        bytes_deinit(&each[i]);
    }
}

static void run(const char *path, const tokenizer *tok)
{
    bytes was = bytes_empty(TEXT_BYTES), is = bytes_empty(TEXT_BYTES);
    chat_template *t = NULL;
    CHECK_OK(file_read(&was, path, &d), d);
    const char *chats = strstr(bytes_str(&was), "\n> ");
    CHECK(chats != NULL);
    CHECK_OK(chat_template_compile(&t, bytes_str(&was), (size_t)(chats - bytes_str(&was)), &d), d);
    bytes_append(&is, bytes_str(&was), (size_t)(chats + 1 - bytes_str(&was)));
    for (const char *at = chats + 1; *at;) {
        const size_t len = strcspn(at, "\n");
        if (*at == '>') {
            json_doc *doc = NULL;
            bytes_append(&is, at, len + 1);
            CHECK_OK(json_parse(&doc, at + 2, len - 2, LIMIT_JSON_DEPTH, &d), d);
            chat_input *in = chats_make(json_root(doc));
            render_each(&is, t, tok, in);
            chat_input_destroy(in);
            json_free(doc);
        }
        at += len + (at[len] == '\n');
    }
    recorded_compare(path, bytes_str(&was), bytes_str(&is));
    chat_template_close(t);
    bytes_deinit(&was);
    bytes_deinit(&is);
}

int main(void)
{
    static const char PLACE[] = PARLEY_SOURCE_DIR "/tests/engine/rendered";
    struct dirent **found = NULL;
    tokenizer *tok = NULL;
    CHECK_OK(tokenizer_open(&tok, check_data("tiny/tokenizer.json"), &d), d);
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++) {
        styles[i].style.think = styles[i].think ? think_form_find(styles[i].think) : NULL;
    }
    const int n = scandir(PLACE, &found, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", PLACE, found[i]->d_name);
        if (strstr(path, ".txt")) {
            run(path, tok);
        }
        free(found[i]);
    }
    CHECK(n > 2);
    free(found);
    tokenizer_close(tok);
    CHECK_DONE();
}
