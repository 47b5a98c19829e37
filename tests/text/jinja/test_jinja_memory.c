/* Memory ends anywhere. A template is read with each bound of its memory, and rendered with the memory used up at each
 * place: then it is said that memory is lacking and nothing is written, or what comes is the same as with enough of
 * it. So are the variables made. The steps of a rendering end at each place, too. And macros, loops and values nest
 * until the bound, whichever meets it. */
#include <string.h>

#include "base/limits.h"
#include "tests/check.h"
#include "text/jinja/chat_template.h"
#include "text/jinja/jinja_ast.h"
#include "text/jinja/jinja_render.h"

/* BLOCK: what a rendering takes at once; STEP: what it hands out is a multiple of that. EVERY: of the reference cases. */
enum {
    ENOUGH = 16 << 20,
    BLOCK = 1 << 16,
    STEP = 16,
    PIECE = BLOCK / 4,
    PIECES = 5,
    EVERY = 41,
    NOON = 1795176000
};

/* Takes up to PIECES pieces of the memory before a template begins. */
static const char FILL[] =
    "{%- set z = 'x' * f0 %}{% set z = 'x' * f1 %}{% set z = 'x' * f2 %}{% set z = 'x' * f3 %}"
    "{% set z = 'x' * f4 %}";
static const char *const NAMES[PIECES] = {"f0", "f1", "f2", "f3", "f4"};

static const char *const TEMPLATES[] = {
    "{{ 'a' 'b' 'c' }}{% if 1 %}x{% elif 2 %}y{% else %}z{% endif %}",
    "{% for a, (b, c) in [[1, [2, 3]]] if a %}{{ a }}{{ loop.index }}{% else %}none{% endfor %}",
    "{% macro m(a, b=2) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}",
    "{% macro m() %}[{{ caller(1) }}]{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}",
    "{% set x | upper %}abc{% endset %}{{ x }}{% filter trim %} a {% endfilter %}",
    "{% with a = 1, b = [2] %}{{ a }}{{ b }}{% endwith %}{% generation %}{{ s }}{% endgeneration %}",
    "{% set ns = namespace(a=1) %}{% set ns.b = s %}{{ ns.a }}{{ ns.b }}",
    "{{ s.upper() }}{{ d.items()|list }}{{ s.__class__ }}{{ [1].append(2) }}",
    "{{ s[::-1] }}{{ s[1:3] }}{{ l[::2] }}{{ (1, 2)[1:] }}{{ s[::2] }}",
    "{{ l|join(', ') }}{{ l|map('string')|join }}{{ users|map(attribute='name')|join('-') }}",
    "{{ users|selectattr('age', 'gt', 26)|list|length }}{{ l|select('odd')|list }}{{ l|reject('odd')|list }}",
    "{{ users|sort(attribute='age,name')|first }}{{ users|groupby('age')|list }}{{ l|sort }}{{ d|dictsort }}",
    "{{ l|batch(2, 0)|list }}{{ l|slice(2)|list }}{{ l|unique|list }}{{ l|sum }}{{ l|reverse|list }}",
    "{{ ('<b>'|safe) + '<i>' }}{{ '<i>' + ('<b>'|safe) }}{{ '<b>'|e }}{{ ['<b>'|safe, '<i>']|join }}",
    "{{ l + [1] }}{{ l * 3 }}{{ (1,) + (2,) }}{{ s ~ 1 ~ l }}{{ s * 3 }}",
    "{{ {1: 2, 3: 4, 5: 6, 7: 8, 9: 10, 11: 12, 13: 14, 15: 16, 17: 18, 19: 20} }}",
    "{{ dict(a=1, **d) }}{{ range(*[1, 4])|list }}{{ cycler('a', 'b').next() }}{{ joiner('-')() }}",
    "{{ '%s|%5.1f|%r' % (s, 2.5, l) }}{{ '{0[0]}{x:>5}'.format(l, x=s) }}{{ '%(a)s'|format(a=1) }}",
    "{{ d|tojson(indent=2) }}{{ big|tojson }}{{ l|string }}{{ d }}{{ range(3) }}{{ 1.5 }}",
    "{{ s.split('o') }}{{ s.partition(' ') }}{{ s.replace('l', 'LL') }}{{ s.splitlines() }}{{ s.rsplit('l', "
    "1) }}",
    "{{ s|indent }}{{ s|truncate(5, true) }}{{ s|center(30) }}{{ s|title }}{{ s|wordcount }}{{ s.zfill(20) "
    "}}",
    "{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is sequence else x }}{% endfor %}",
    "{% for x in s %}{{ loop.changed(x) }}{{ loop.cycle('a', 'b') }}{{ loop.previtem }}{% endfor %}",
    "{{ nothing }}{{ strftime_now('%Y') }}{{ d.values()|list }}{{ d.get('q', l) }}{{ s|attr('lower') is "
    "defined }}",
};

static err_detail d;

/* A template with each bound of the memory for its tree, until there is enough. */
static void check_reading(const char *text)
{
    enum { NAMES_BYTES = JINJA_MAX_SYMBOLS * sizeof(jinja_symbol) }; /* which are taken first */
    jinja_program program;
    err_code err = ERR_NOMEM;
    for (size_t bound = 0; err != ERR_OK && bound < ENOUGH; bound = bound ? bound + STEP : NAMES_BYTES) {
        arena *a = arena_create(bound);
        memset(&d, 0, sizeof d);
        err = jinja_parse(&program, text, strlen(text), a, &d);
        CHECK(err == ERR_OK || err == ERR_NOMEM);
        CHECK_STR(d.text, err ? "no memory to read the chat template" : "");
        arena_destroy(a);
    }
    CHECK_INT(err, ERR_OK);
}

static jinja_value *variables(arena *a, const json *given, size_t fill)
{
    jinja_value *vars = jinja_from_json(a, given);
    bool ok = vars && jinja_dict_set(a, vars, CHAT_TEMPLATE_NOW, jinja_int(a, NOON));
    for (size_t i = 0; i < PIECES; i++) {
        const size_t n = fill < PIECE ? fill : PIECE;
        ok = ok && jinja_dict_set(a, vars, NAMES[i], jinja_int(a, (int64_t)n));
        fill -= n;
    }
    return ok ? vars : NULL;
}

/* Renders with so much of the memory used up. */
static err_code render(const chat_template *t, bytes *out, const json *given, size_t bound, size_t fill)
{
    arena *a = arena_create(bound);
    bytes_clear(out);
    bytes_append_str(out, "before");
    memset(&d, 0, sizeof d);
    const err_code err = chat_template_render(t, out, NULL, variables(a, given, fill), NULL, a, &d);
    arena_destroy(a);
    return err;
}

/* The least bound, or the most that may be used up before, with which a template is rendered. */
static size_t edge(const chat_template *t, bytes *out, const json *given, size_t bound)
{
    size_t good = bound ? 0 : ENOUGH, bad = bound ? BLOCK + PIECE : 0;
    while (good > bad + STEP || bad > good + STEP) {
        const size_t middle = (good + bad) / 2;
        const err_code err = render(t, out, given, bound ? bound : middle, bound ? middle : 0);
        if (err != ERR_LIMIT) { /* one that fails by itself is as good */
            good = middle;
        } else {
            bad = middle;
        }
    }
    return good;
}

/* A template with the memory used up from there where the last piece is lacking to where the first is. */
static void check_rendering(const char *text, const json *given)
{
    bytes source = bytes_empty(1 << 16), out = bytes_empty(1 << 20), want = bytes_empty(1 << 20);
    chat_template *t = NULL;
    bytes_printf(&source, "%s%s", FILL, text);
    if (chat_template_compile(&t, bytes_str(&source), source.len, &d) == ERR_OK &&
        render(t, &want, given, ENOUGH, 0) == ERR_OK) {
        const size_t bound = edge(t, &out, given, 0);
        size_t n_lacking = 0;
        for (size_t fill = edge(t, &out, given, bound); fill <= BLOCK; fill += STEP) {
            const err_code err = render(t, &out, given, bound, fill);
            CHECK(err == ERR_OK || (err == ERR_LIMIT && strstr(d.text, "memory")));
            CHECK_STR(bytes_str(&out), err ? "before" : bytes_str(&want));
            n_lacking += err != ERR_OK;
        }
        CHECK(n_lacking > 0);
    }
    chat_template_close(t);
    bytes_deinit(&source);
    bytes_deinit(&out);
    bytes_deinit(&want);
}

/* The steps of a rendering end at that call which counts some; 0: none. */
static int steps_end_at;

bool __real_jinja_work(jinja_render *r, size_t n_bytes);
bool __wrap_jinja_work(jinja_render *r, size_t n_bytes);
bool __wrap_jinja_work(jinja_render *r, size_t n_bytes)
{
    if (steps_end_at > 0 && --steps_end_at == 0) {
        r->steps = JINJA_MAX_STEPS;
    }
    return __real_jinja_work(r, n_bytes);
}

/* A template whose steps end at each place: that is said, and nothing is written. */
static void check_steps(const char *text, const json *given)
{
    chat_template *t = NULL;
    bytes out = bytes_empty(1 << 20);
    bool ends = chat_template_compile(&t, text, strlen(text), &d) == ERR_OK &&
                render(t, &out, given, ENOUGH, 0) == ERR_OK;
    for (int n = 1; ends; n++) {
        steps_end_at = n;
        const err_code err = render(t, &out, given, ENOUGH, 0);
        ends = steps_end_at == 0;
        steps_end_at = 0;
        CHECK_INT(err, ends ? ERR_LIMIT : ERR_OK);
        CHECK(!ends || (strcmp(bytes_str(&out), "before") == 0 && strstr(d.text, "takes too many steps")));
    }
    chat_template_close(t);
    bytes_deinit(&out);
}

/* The variables with each bound of their memory. */
static void check_variables(const json *given)
{
    bool made = false;
    for (size_t bound = 0; !made && bound < BLOCK; bound += STEP / 2) {
        arena *a = arena_create(bound);
        jinja_value *vars = variables(a, given, 0);
        bytes out = bytes_empty(1 << 10);
        made = vars != NULL;
        if (!made) {
            chat_template *t = NULL;
            CHECK_OK(chat_template_compile(&t, "a", 1, &d), d);
            CHECK_INT(chat_template_render(t, &out, NULL, vars, NULL, a, &d), ERR_LIMIT);
            CHECK_STR(d.text, "the chat template's variables do not fit the memory for rendering it");
            chat_template_close(t);
        }
        bytes_deinit(&out);
        arena_destroy(a);
    }
    CHECK(made);
}

/* Recursion that ends at the bound of depth, which each kind of step on the way may be the one to meet. */
static void check_depth(void)
{
    static const char *const FORMS[] = {
        "{{ m() }}",
        "{% if 1 %}{{ m() }}{% endif %}",
        "{{ [m()] }}",
        "{{ (m())|upper }}",
        "{% for x in [1] %}{{ m() }}{% endfor %}",
        "{% filter upper %}{{ m() }}{% endfilter %}",
        "{% generation %}{% generation %}{{ m() }}{% endgeneration %}{% endgeneration %}"};
    static const char *const BEFORE[] = {"{{ m() }}", "{{ [m()] }}", "{{ [[m()]] }}", "{{ [[[m()]]] }}"};
    json_doc *doc = NULL;
    CHECK_OK(json_parse(&doc, "{}", 2, 4, &d), d);
    for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
        for (size_t k = 0; k < ARRAY_LEN(BEFORE); k++) {
            bytes source = bytes_empty(1 << 12), out = bytes_empty(1 << 20);
            chat_template *t = NULL;
            bytes_printf(&source, "{%% macro m() %%}\n%s{%% endmacro %%}\n%s", FORMS[i], BEFORE[k]);
            CHECK_OK(chat_template_compile(&t, bytes_str(&source), source.len, &d), d);
            CHECK_INT(render(t, &out, json_root(doc), ENOUGH, 0), ERR_INVALID);
            CHECK_STR(bytes_str(&out), "before");
            CHECK_STR(d.text, "chat template, line 2: the template is nested too deeply");
            chat_template_close(t);
            bytes_deinit(&source);
            bytes_deinit(&out);
        }
    }
    json_free(doc);
}

int main(void)
{
    json_doc *doc = NULL;
    size_t n = 0;
    CHECK_OK(json_parse_file(&doc, check_data("templates/cases.json"), LIMIT_CONFIG_BYTES, &d), d);
    const json *root = json_root(doc), *vars = json_get(root, "vars");
    check_variables(vars);
    check_depth();
    for (size_t i = 0; i < ARRAY_LEN(TEMPLATES); i++) {
        check_reading(TEMPLATES[i]);
        check_rendering(TEMPLATES[i], vars);
        check_steps(TEMPLATES[i], vars);
    }
    for (const json *c = json_child(json_get(root, "cases")); c; c = json_next(c), n++) {
        if (!json_get(c, "error")) {
            check_steps(json_str(json_get(c, "template"), ""), vars);
        }
        if (n % EVERY == 0 && !json_get(c, "error")) {
            check_rendering(json_str(json_get(c, "template"), ""), vars);
        }
    }
    json_free(doc);
    CHECK_DONE();
}
