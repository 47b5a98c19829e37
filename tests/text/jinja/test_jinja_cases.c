/* chat_template: small templates with the text or the error that they must give
 * (tests/data/templates/cases.json; the texts are Jinja2's, the errors ours). */
#include "text/jinja/chat_template.h"

#include <stdbool.h>

#include "base/limits.h"
#include "tests/check.h"

enum { MIN_CASES = 900, NOON = 1795176000 };

static err_code render(const char *source, const json *vars_json, bytes *out, err_detail *d)
{
    chat_template *t = NULL;
    memset(d, 0, sizeof *d);
    err_code err = chat_template_compile(&t, source, strlen(source), d);
    if (!err) {
        arena *a = arena_create(64 << 20);
        jinja_value *vars = jinja_from_json(a, vars_json);
        CHECK(jinja_dict_set(a, vars, CHAT_TEMPLATE_NOW, jinja_int(a, NOON)));
        err = chat_template_render(t, out, NULL, vars, NULL, a, d);
        arena_destroy(a);
    }
    chat_template_close(t);
    return err;
}

static void check_case(const json *c, const json *vars)
{
    const char *source = json_str(json_get(c, "template"), ""), *error = json_str(json_get(c, "error"), NULL);
    char want_error[ERR_TEXT_MAX];
    int64_t line = 0;
    err_detail d;
    bytes out;
    bytes_init(&out, LIMIT_RENDERED_BYTES);
    err_code err = render(source, vars, &out, &d);
    bool failed = check_failures > 0;
    if (error) {
        /* raise_exception gives the template's words alone, everything else names the line. */
        if (json_int(json_get(c, "line"), 1, 1000, &line)) {
            snprintf(want_error, sizeof want_error, "chat template, line %d: %s", (int)line, error);
        } else {
            snprintf(want_error, sizeof want_error, "%s", error);
        }
        CHECK_INT(err, ERR_INVALID);
        CHECK_STR(d.text, want_error);
        CHECK_INT(out.len, 0);
    } else {
        CHECK_OK(err, d);
        CHECK_STR(bytes_str(&out), json_str(json_get(c, "text"), NULL));
    }
    if (check_failures > 0 && !failed) {
        fprintf(stderr, "  first failure: %s\n", source);
    }
    bytes_deinit(&out);
}

int main(void)
{
    err_detail d;
    json_doc *doc = NULL;
    size_t n = 0;
    setenv("TZ", "UTC", 1);
    CHECK_OK(json_parse_file(&doc, check_data("templates/cases.json"), LIMIT_CONFIG_BYTES, &d), d);
    const json *root = doc ? json_root(doc) : NULL;
    for (const json *c = json_child(json_get(root, "cases")); c; c = json_next(c), n++) {
        check_case(c, json_get(root, "vars"));
    }
    CHECK(n >= MIN_CASES);
    json_free(doc);
    CHECK_DONE();
}
