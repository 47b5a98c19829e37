/* chat_template: limits, damaged templates, variables, threads, what a hostile chat may cost. */
#include "text/jinja/chat_template.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "base/file.h"
#include "base/limits.h"
#include "tests/check.h"

enum { ARENA_MAX = 256 << 20, N_THREADS = 4 };

static err_detail d;

/* Renders a template over {"text": text}; the result is in out. */
static err_code render(const char *source, const char *text, bytes *out, size_t arena_max)
{
    chat_template *t = NULL;
    memset(&d, 0, sizeof d);
    err_code err = chat_template_compile(&t, source, strlen(source), &d);
    if (!err) {
        arena *a = arena_create(arena_max);
        jinja_value *vars = jinja_dict(a);
        bool ok = jinja_dict_set(a, vars, "text", jinja_str(a, text, strlen(text)));
        err = chat_template_render(t, out, NULL, ok ? vars : NULL, NULL, a, &d);
        arena_destroy(a);
    }
    chat_template_close(t);
    return err;
}

static err_code render_once(const char *source, size_t out_max, size_t arena_max)
{
    bytes out;
    bytes_init(&out, out_max);
    err_code err = render(source, "x", &out, arena_max);
    CHECK(err || out.len <= out_max);
    bytes_deinit(&out);
    return err;
}

/* Whatever can stand inside itself has a limit, so that no template fills the stack. */
static void test_nesting(void)
{
    static const char *const forms[][3] = {
        /* repeated before, in the middle, repeated behind */
        {"(", "1", ")"},
        {"[", "1", "]"},
        {"{1:", "1", "}"},
        {"not ", "1", ""},
        {"-", "1", ""},
        {"+", "1", ""},
        {"1 if 1 else ", "1", ""},
        {"[1][", "0", "]"},
        {"range(", "1", ")"},
        {"'a'|default(", "1", ")"},
        {"1 is eq(", "1", ")"},
        {"1 + (", "1", ")"},
    };
    static const char *const blocks[][2] = {
        {"{% if 1 %}", "{% endif %}"},         {"{% for a in [1] %}", "{% endfor %}"},
        {"{% macro m() %}", "{% endmacro %}"}, {"{% filter upper %}", "{% endfilter %}"},
        {"{% set a %}", "{% endset %}"},
    };
    enum { SHALLOW = 10, DEEP = 5000 };
    for (size_t i = 0; i < ARRAY_LEN(forms) + ARRAY_LEN(blocks); i++) {
        const bool is_block = i >= ARRAY_LEN(forms);
        const char *const *form = is_block ? blocks[i - ARRAY_LEN(forms)] : forms[i];
        const char *before = form[0], *middle = is_block ? "1" : form[1],
                   *behind = is_block ? form[1] : form[2];
        for (int n = SHALLOW; n <= DEEP; n *= DEEP / SHALLOW) {
            bytes source;
            bytes_init(&source, 16 << 20);
            bytes_append_str(&source, is_block ? "" : "{{ ");
            for (int k = 0; k < n; k++) {
                bytes_append_str(&source, before);
            }
            bytes_append_str(&source, middle);
            for (int k = 0; k < n; k++) {
                bytes_append_str(&source, behind);
            }
            bytes_append_str(&source, is_block ? "" : " }}");
            bytes out;
            bytes_init(&out, 1 << 20);
            chat_template *t = NULL;
            memset(&d, 0, sizeof d);
            const err_code err = chat_template_compile(&t, bytes_str(&source), source.len, &d);
            if ((err == ERR_OK) != (n == SHALLOW)) {
                fprintf(stderr, "  %d times \"%s\": %s, %s\n", n, before, err_name(err), d.text);
                CHECK(!"a limit");
            }
            chat_template_close(t);
            bytes_deinit(&out);
            bytes_deinit(&source);
        }
    }
}

/* Each of these would run for hours, or take all memory, without a bound. */
static void test_limits(void)
{
    static const char *const endless[] = {
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{% for a in range(100000) %}{{ range(100000)|list|length }}{% endfor %}",
        "{% set ns = namespace(s='x') %}{% for a in range(100) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{{ "
        "ns.s|length }}",
        "{% set ns = namespace(l=[1]) %}{% for a in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
        "{% macro m(x) %}{{ m(x) }}{{ m(x) }}{% endmacro %}{{ m(1) }}",
        "{{ 'abc' * 1000000000 }}",
        "{{ [1] * 1000000000 }}",
        "{{ 'x'.center(1000000000) }}",
        "{{ '%1000000000d' % 5 }}{% for a in range(100000) %}{{ '%9999s' % 'x' }}{% endfor %}",
        "{% for a in range(100000) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' * 100 }}{% endfor %}",
        "{% set ns = namespace(v=[]) %}{% for a in range(1000) %}{% set ns.v = [ns.v] %}{% endfor %}{{ ns.v "
        "}}",
        "{% set ns = namespace(v=[]) %}{% for a in range(1000) %}{% set ns.v = [ns.v] %}{% endfor %}{{ "
        "ns.v|tojson }}",
        "{{ 9223372036854775807 + 1 }}",
        "{{ 10 ** 100 }}",
        "{% set ns = namespace(f=1) %}{% macro m() %}{{ ns.f() }}{% endmacro %}{% set ns.f = m %}{{ m() }}",
    };
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        clock_t start = clock();
        err_code err = render_once(endless[i], 16 << 20, ARENA_MAX);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        if (err == ERR_OK || seconds > 20) {
            fprintf(stderr, "  %s: %s, %.1f s\n", endless[i], err_name(err), seconds);
        }
        CHECK(err == ERR_LIMIT || err == ERR_NOMEM || err == ERR_INVALID);
        CHECK(d.text[0] != '\0');
        CHECK(seconds < 20);
    }
    CHECK_INT(render_once("0123456789", 9, ARENA_MAX), ERR_LIMIT);
    CHECK_INT(render_once("{{ 'a' ~ 'b' }}", 1000, 40), ERR_LIMIT);
    CHECK_INT(render_once("{% for a in range(1000) %}0123456789{% endfor %}", 9999, ARENA_MAX), ERR_LIMIT);
    CHECK_INT(render_once("{% for a in range(1000) %}0123456789{% endfor %}", 10000, ARENA_MAX), ERR_OK);
    CHECK_INT(render_once("{% set x = 'y' * 5000000 %}", 6 << 20, 1 << 20), ERR_LIMIT);
}

/* Deeply nested source: an error, never a crash. */
static void test_deep_source(void)
{
    static const char *const units[][2] = {{"{{ ", "("},
                                           {"{{ ", "["},
                                           {"{{ ", "-"},
                                           {"{{ ", "not "},
                                           {"{{ ", "{1:"},
                                           {"", "{% if a %}"},
                                           {"", "{% for a in b %}"},
                                           {"{{ ", "a("},
                                           {"{{ ", "a["},
                                           {"{{ ", "1 if "},
                                           {"{% for ", "("}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        bytes source;
        chat_template *t = NULL;
        bytes_init(&source, LIMIT_TEMPLATE_BYTES);
        bytes_append_str(&source, units[i][0]);
        for (int k = 0; k < 100000; k++) {
            bytes_append_str(&source, units[i][1]);
        }
        CHECK_INT(chat_template_compile(&t, bytes_str(&source), source.len, &d), ERR_INVALID);
        chat_template_close(t);
        bytes_deinit(&source);
    }
    /* A long chain of operators is no nesting for the parser, but is for the evaluator. */
    bytes source;
    bytes_init(&source, LIMIT_TEMPLATE_BYTES);
    bytes_append_str(&source, "{{ 1");
    for (int k = 0; k < 100000; k++) {
        bytes_append_str(&source, " + 1");
    }
    bytes_append_str(&source, " }}");
    CHECK_INT(render_once(bytes_str(&source), 1000, ARENA_MAX), ERR_INVALID);
    bytes_deinit(&source);
}

/* Our own template cut anywhere and with one byte changed: compiles or says why. */
static void test_damaged(void)
{
    bytes file;
    chat_template *t;
    size_t n_ok = 0, n_bad = 0;
    bytes_init(&file, LIMIT_TEMPLATE_BYTES);
    CHECK_OK(file_read(&file, PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja", &d), d);
    uint32_t random = 1;
    for (size_t i = 0; i < file.len; i += 3) {
        err_code err = chat_template_compile(&t, file.data, i, &d);
        n_bad += err != ERR_OK;
        chat_template_close(t);
        random = random * 1664525u + 1013904223u;
        char before = file.data[i];
        file.data[i] = "{}%#'\"()[].|-+~ \nx0"[(random >> 16) % 19];
        err = chat_template_compile(&t, file.data, file.len, &d);
        n_ok += err == ERR_OK;
        CHECK(err == ERR_OK || d.text[0]);
        chat_template_close(t);
        file.data[i] = before;
    }
    CHECK(n_bad > file.len / 6 && n_ok > 0);
    CHECK_INT(chat_template_compile(&t, "a\xFF", 2, &d), ERR_INVALID);
    CHECK(t == NULL);
    CHECK_INT(chat_template_compile(&t, file.data, LIMIT_TEMPLATE_BYTES + 1, &d), ERR_LIMIT);
    bytes_deinit(&file);
}

static void test_variables(void)
{
    const char *source = "{% set made = 1 %}{{ a }}{% if enable_thinking is defined %}{{ x.attr }}{% endif "
                         "%}{% for i in list %}{% endfor %}";
    chat_template *t = NULL;
    CHECK_OK(chat_template_compile(&t, source, strlen(source), &d), d);
    CHECK(chat_template_has_variable(t, "a"));
    CHECK(chat_template_has_variable(t, "enable_thinking"));
    CHECK(chat_template_has_variable(t, "x"));
    CHECK(chat_template_has_variable(t, "list"));
    CHECK(!chat_template_has_variable(t, "made"));
    CHECK(!chat_template_has_variable(t, "attr"));
    CHECK(!chat_template_has_variable(t, "i"));
    CHECK(!chat_template_has_variable(t, "preserve_thinking"));
    chat_template_close(t);
    chat_template_close(NULL);
    /* Without a given time the machine's own is used. */
    bytes out;
    bytes_init(&out, 1000);
    CHECK_OK(render("{{ strftime_now('%Y')|int > 2025 }}", "", &out, ARENA_MAX), d);
    CHECK_STR(bytes_str(&out), "True");
    /* Nothing is left behind a failed rendering; what stood before stays. */
    CHECK_INT(render("abc{{ 1/0 }}", "", &out, ARENA_MAX), ERR_INVALID);
    CHECK_STR(bytes_str(&out), "True");
    bytes_deinit(&out);
}

/* An exhausted arena gives NULL, and builders pass that on. */
static void test_builders(void)
{
    arena *a = arena_create(64);
    jinja_value *list = jinja_list(a);
    CHECK(jinja_str(a, "more than there is room for in this arena, by far, by far, by far", 65) == NULL);
    CHECK(!jinja_list_push(a, list, NULL));
    CHECK(!jinja_dict_set(a, jinja_dict(a), "k", NULL));
    arena_destroy(a);
    a = arena_create(ARENA_MAX);
    CHECK(!jinja_list_push(a, jinja_int(a, 1), jinja_int(a, 2)));
    jinja_value *vars = jinja_dict(a), *items = jinja_list(a);
    CHECK(jinja_list_push(a, items, jinja_int(a, 15)) && jinja_list_push(a, items, jinja_bool(a, true)) &&
          jinja_list_push(a, items, jinja_none(a)) && jinja_list_push(a, items, jinja_str(a, "s", 1)));
    CHECK(jinja_dict_set(a, vars, "items", items) && jinja_dict_set(a, vars, "n", jinja_int(a, 1)) &&
          jinja_dict_set(a, vars, "n", jinja_int(a, -7)));
    chat_template *t = NULL;
    bytes out;
    bytes_init(&out, 1000);
    CHECK_OK(chat_template_compile(&t, "{{ items }}{{ n }}", 18, &d), d);
    CHECK_OK(chat_template_render(t, &out, NULL, vars, NULL, a, &d), d);
    CHECK_STR(bytes_str(&out), "[15, True, None, 's']-7");
    CHECK(chat_template_render(t, &out, NULL, NULL, NULL, a, &d) != ERR_OK);
    chat_template_close(t);
    bytes_deinit(&out);
    arena_destroy(a);
}

/* Seconds to render a source over a text of 200 kB made of `unit`. */
static double seconds_for(const char *source, const char *unit)
{
    bytes text, out;
    bytes_init(&text, 1 << 20);
    bytes_init(&out, LIMIT_RENDERED_BYTES);
    while (text.len < 200000) {
        bytes_append_str(&text, unit);
    }
    clock_t start = clock();
    err_code err = render(source, bytes_str(&text), &out, ARENA_MAX);
    CHECK(err == ERR_OK || err == ERR_NOMEM || err == ERR_LIMIT);
    bytes_deinit(&text);
    bytes_deinit(&out);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

/* What templates do with contents takes time in proportion to them. */
static void test_linear(void)
{
    static const char *const sources[] = {
        "{{ text.split('</think>')[-1].lstrip('\\n') }}",
        "{{ text|trim }}{{ text.strip() }}{{ text.rstrip('a') }}",
        "{{ text.replace('a', 'b') }}{{ '</think>' in text }}{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab' in text "
        "}}",
        "{{ text|upper|lower|title }}{{ text[::-1] }}{{ text[5:-5] }}{{ text|length }}",
        "{% set ns = namespace(s='') %}{% for c in text %}{% set ns.s = ns.s ~ c %}{% endfor %}{{ ns.s }}",
        "{{ text|tojson }}{{ [text]|string }}{{ text|e }}{{ text|indent }}{{ text.splitlines()|length }}{{ "
        "text.split()|join('-') }}",
        "{{ text.rsplit('a', 1000)|length }}{{ text.rpartition('ab')|length }}{{ text.rfind('zz') }}{{ "
        "text.find('aab') }}",
        "{% set p = text.split('a') %}{% for x in p %}{{ x }}{% if loop.last %}!{% endif %}{% endfor %}",
    };
    static const char *const units[] = {"a", " ", "<think>", "</think>", "\n", "\xC3\xA9", "aab"};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        for (size_t k = 0; k < sizeof units / sizeof *units; k++) {
            double seconds = seconds_for(sources[i], units[k]);
            if (seconds > 5) {
                fprintf(stderr, "  source %zu, unit %zu: %.1f s\n", i, k, seconds);
            }
            CHECK(seconds <= 5);
        }
    }
}

static void *render_often(void *ctx)
{
    const chat_template *t = ctx;
    for (int i = 0; i < 200; i++) {
        err_detail mine;
        arena *a = arena_create(1 << 20);
        bytes out;
        bytes_init(&out, 1000);
        jinja_value *vars = jinja_dict(a);
        bool ok = jinja_dict_set(a, vars, "n", jinja_int(a, i));
        err_code err = chat_template_render(t, &out, NULL, vars, NULL, a, &mine);
        char want[64];
        snprintf(want, sizeof want, "%d:%d", i, i * 2);
        ok = ok && !err && strcmp(bytes_str(&out), want) == 0;
        bytes_deinit(&out);
        arena_destroy(a);
        if (!ok) {
            return ctx;
        }
    }
    return NULL;
}

static void test_threads(void)
{
    const char *source =
        "{% macro m(x) %}{{ x * 2 }}{% endmacro %}{% set ns = namespace(v=n) %}{{ ns.v }}:{{ m(n) }}";
    chat_template *t = NULL;
    pthread_t threads[N_THREADS];
    CHECK_OK(chat_template_compile(&t, source, strlen(source), &d), d);
    for (int i = 0; i < N_THREADS; i++) {
        CHECK_INT(pthread_create(&threads[i], NULL, render_often, t), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        CHECK(!wrong);
    }
    chat_template_close(t);
}

int main(void)
{
    test_nesting();
    test_limits();
    test_deep_source();
    test_damaged();
    test_variables();
    test_builders();
    test_linear();
    test_threads();
    CHECK_DONE();
}
