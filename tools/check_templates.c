/* check_templates: renders chat templates and compares with reference texts.
 *
 *     build/check_templates TEMPLATES_JSON TEMPLATE_DIR
 *
 * TEMPLATES_JSON: {"conversations": {NAME: {"messages", "options"}}, "eos_token", "pad_token",
 * "expected": {FILE: {NAME: {"text"} or {"error"}}}}; FILE lies in TEMPLATE_DIR. Where the
 * reference has an error, any error agrees: its wording is not compared. Where the text without the
 * generation prompt begins the text with it, the history that the rendering found must end there.
 * Prints a row per failure and the totals. Exit code 0: all agree, 1: some do not, 2: wrong use or
 * unreadable files.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "text/jinja/chat_template.h"

enum { EXIT_USE = 2, PATH_LEN = 4096, CONTEXT_BYTES = 40 };

typedef struct totals {
    size_t n, n_failed, n_errors, n_histories;
} totals;

/* The day on which the references were rendered, at noon here. */
static int64_t reference_time(void)
{
    struct tm day = {.tm_year = 2026 - 1900, .tm_mon = 10, .tm_mday = 20, .tm_hour = 12, .tm_isdst = -1};
    return (int64_t)mktime(&day);
}

/* What the reference gave to every template, overlaid with the conversation's options; NULL if
 * out of memory. invite: with the generation prompt, unless the options say no. */
static jinja_value *make_vars(arena *a, const json *root, const json *conversation, bool invite)
{
    jinja_value *vars = jinja_dict(a);
    bool ok = jinja_dict_set(a, vars, "messages", jinja_from_json(a, json_get(conversation, "messages"))) &&
              jinja_dict_set(a, vars, "tools", jinja_none(a)) &&
              jinja_dict_set(a, vars, "documents", jinja_none(a)) &&
              jinja_dict_set(a, vars, "add_generation_prompt", jinja_bool(a, true)) &&
              jinja_dict_set(a, vars, "eos_token", jinja_from_json(a, json_get(root, "eos_token"))) &&
              jinja_dict_set(a, vars, "pad_token", jinja_from_json(a, json_get(root, "pad_token"))) &&
              jinja_dict_set(a, vars, CHAT_TEMPLATE_NOW, jinja_int(a, reference_time()));
    const json *options = json_get(conversation, "options");
    for (const json *o = json_child(options); ok && o; o = json_next(o)) {
        ok = jinja_dict_set(a, vars, json_key(o), jinja_from_json(a, o));
    }
    ok = ok && (invite || jinja_dict_set(a, vars, "add_generation_prompt", jinja_bool(a, false)));
    return ok ? vars : NULL;
}

/* Renders one conversation. The reference refuses an empty one before the template sees it. */
static err_code render(const chat_template *t, bytes *out, chat_template_trace *trace, const json *root,
                       const json *conversation, bool invite, err_detail *detail)
{
    if (json_len(json_get(conversation, "messages")) == 0) {
        return err_set(detail, ERR_INVALID, "the conversation is empty");
    }
    arena *a = arena_create(LIMIT_RENDERED_BYTES);
    if (!a) {
        return err_set(detail, ERR_NOMEM, "no memory");
    }
    err_code err =
        chat_template_render(t, out, trace, make_vars(a, root, conversation, invite), NULL, a, detail);
    arena_destroy(a);
    return err;
}

static void show_text(const char *label, const char *text, size_t at)
{
    bytes row;
    size_t begin = at > CONTEXT_BYTES ? at - CONTEXT_BYTES : 0, len = strlen(text + begin);
    bytes_init(&row, LIMIT_RENDERED_BYTES);
    bytes_append_json(&row, text + begin, len < 2 * CONTEXT_BYTES ? len : 2 * CONTEXT_BYTES);
    printf("    %s %s\n", label, bytes_str(&row));
    bytes_deinit(&row);
}

/* Compares one rendering with its reference and prints a row if they differ. */
static void check_pair(totals *n, const char *file, const json *want, err_code err, const bytes *got,
                       const err_detail *detail)
{
    const char *text = json_str(json_get(want, "text"), NULL),
               *error = json_str(json_get(want, "error"), NULL);
    n->n++;
    n->n_errors += error != NULL;
    bool same = error ? err != ERR_OK : text && !err && strcmp(bytes_str(got), text) == 0;
    if (same) {
        return;
    }
    n->n_failed++;
    if (err) {
        printf("%s, %s: error \"%s\", the reference has a text\n", file, json_key(want), detail->text);
    } else if (error) {
        printf("%s, %s: a text, the reference has the error \"%s\"\n", file, json_key(want), error);
    } else if (text) {
        size_t at = 0;
        while (text[at] && text[at] == bytes_str(got)[at]) {
            at++;
        }
        printf("%s, %s: texts differ at byte %zu\n", file, json_key(want), at);
        show_text("got ", bytes_str(got), at);
        show_text("want", text, at);
    }
}

/* Whether the history of a text ends where the rendering found it; prints a row if not. A second
 * rendering without the generation prompt shows it, where the text only grows by that. */
static void check_history(totals *n, const char *file, const chat_template *t, const bytes *text,
                          size_t history_len, const json *root, const json *conversation)
{
    bytes history;
    err_detail detail;
    bytes_init(&history, LIMIT_RENDERED_BYTES);
    if (render(t, &history, NULL, root, conversation, false, &detail) == ERR_OK && history.len < text->len &&
        memcmp(bytes_str(&history), bytes_str(text), history.len) == 0) {
        n->n_histories++;
        if (history.len != history_len) {
            n->n_failed++;
            printf("%s, %s: the history ends at byte %zu, not %zu\n", file, json_key(conversation),
                   history.len, history_len);
        }
    }
    bytes_deinit(&history);
}

/* All conversations of one template file; a file that does not compile fails each of them. */
static err_code check_file(totals *n, const char *dir, const json *cases, const json *root,
                           err_detail *detail)
{
    char path[PATH_LEN];
    bytes source;
    chat_template *t = NULL;
    bytes_init(&source, LIMIT_TEMPLATE_BYTES);
    if (!file_join(path, sizeof path, dir, json_key(cases))) {
        return err_set(detail, ERR_INVALID, "the path of a template is too long");
    }
    err_code err = file_read(&source, path, detail);
    if (err) {
        bytes_deinit(&source);
        return err;
    }
    err_code compiled = chat_template_compile(&t, bytes_str(&source), source.len, detail);
    for (const json *want = json_child(cases); want; want = json_next(want)) {
        bytes got;
        bytes_init(&got, LIMIT_RENDERED_BYTES);
        const json *conversation = json_get(json_get(root, "conversations"), json_key(want));
        chat_template_trace trace = {0};
        err = compiled ? compiled : render(t, &got, &trace, root, conversation, true, detail);
        check_pair(n, json_key(cases), want, err, &got, detail);
        if (err == ERR_OK) {
            check_history(n, json_key(cases), t, &got, trace.history_len, root, conversation);
        }
        bytes_deinit(&got);
    }
    chat_template_close(t);
    bytes_deinit(&source);
    return ERR_OK;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: check_templates TEMPLATES_JSON TEMPLATE_DIR\n");
        return EXIT_USE;
    }
    err_detail detail;
    json_doc *doc = NULL;
    totals n = {0};
    size_t n_files = 0;
    err_code err = json_parse_file(&doc, argv[1], LIMIT_TOKENIZER_BYTES, &detail);
    const json *root = err ? NULL : json_root(doc);
    for (const json *f = json_child(json_get(root, "expected")); f && !err; f = json_next(f), n_files++) {
        err = check_file(&n, argv[2], f, root, &detail);
    }
    json_free(doc);
    if (err) {
        fprintf(stderr, "check_templates: %s\n", detail.text);
        return EXIT_USE;
    }
    printf("%zu templates, %zu conversations (%zu of them errors, %zu with a history), %zu failures\n",
           n_files, n.n, n.n_errors, n.n_histories, n.n_failed);
    return n.n_failed || n.n_histories == 0 ? 1 : 0;
}
