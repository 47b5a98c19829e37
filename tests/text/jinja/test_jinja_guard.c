/* A marker that a template puts together of its own text and of what it was given is broken by one guard character,
 * wherever it is cut and however it is put together; one that is all the template's own stays whole. */
#include "text/jinja/chat_template.h"

#include "tests/check.h"
#include "text/tokenizer/guard.h"
#include "text/tokenizer/tokenizer.h"

static const char MARKER[] = "<|im_end|>";
enum { MARKER_LEN = sizeof MARKER - 1 };

static err_detail d;
static guard g;

/* $a and $b stand for two pieces of text side by side: a name of what is given, or a text of the template itself. */
static const char *const FORMS[] = {
    "{{ $a }}{{ $b }}",
    "{{ $a ~ $b }}",
    "{{ $a + $b }}",
    "{{ [$a, $b] | join }}",
    "{{ ['', $a, '', $b] | join('') }}",
    "{{ '%s%s' | format($a, $b) }}",
    "{{ 'X' | replace('X', $a ~ $b) }}",
    "{{ ($a ~ 'X') | replace('X', $b) }}",
    "{% set t %}{{ $a }}{{ $b }}{% endset %}{{ t }}",
    "{% set t %}{{ $a }}{% endset %}{{ t }}{{ $b }}",
    "{% set t %}{{ $b }}{% endset %}{{ $a }}{{ t }}",
    "{% macro m(x) %}{{ x }}{% endmacro %}{{ m($a) }}{{ m($b) }}",
    "{% macro m(x) %}{{ $a }}{{ x }}{% endmacro %}{{ m($b) }}",
    "{% filter trim %}{{ $a }}{{ $b }}{% endfilter %}",
    "{% for x in [$a, $b] %}{{ x }}{% endfor %}",
    "{{ $a }}{{ '' }}{{ $b }}",
    "{{ $a ~ '' ~ $b }}",
    "{{ $a if true }}{{ $b if true }}",
    "{{ '' ~ $a ~ $b ~ '' }}",
    "{{ ($a ~ $b)[0:] }}",
};

static void put(bytes *out, const char *form, const char *const pieces[2])
{
    for (const char *at = form; *at; at++) {
        if (at[0] == '$') {
            bytes_append_str(out, pieces[*++at - 'a']);
        } else {
            bytes_append(out, at, 1);
        }
    }
}

/* Renders a form of two pieces; is_given: it comes from outside. The text that comes of it is in *out. */
static void render(bytes *out, const char *form, const char *const texts[2], const bool is_given[2])
{
    static const char *const NAMES[] = {"one", "two"};
    char literals[2][64];
    const char *pieces[2];
    bytes text = bytes_empty(1 << 12);
    arena *a = arena_create(1 << 20);
    jinja_value *vars = jinja_dict(a);
    chat_template *t = NULL;
    for (int i = 0; i < 2; i++) {
        snprintf(literals[i], sizeof literals[i], "'%s'", texts[i]);
        pieces[i] = is_given[i] ? NAMES[i] : literals[i];
        CHECK(jinja_dict_set(a, vars, NAMES[i], jinja_str(a, texts[i], strlen(texts[i]))));
    }
    put(&text, form, pieces);
    bytes_clear(out);
    CHECK_OK(chat_template_compile(&t, bytes_str(&text), text.len, &d), d);
    CHECK_OK(chat_template_render(t, out, NULL, vars, &g, a, &d), d);
    chat_template_close(t);
    arena_destroy(a);
    bytes_deinit(&text);
}

static int count_guards(const bytes *text)
{
    int n = 0;
    for (const char *at = bytes_str(text); (at = guard_find(at, text->len - (size_t)(at - text->data)));
         n++) {
        at += GUARD_LEN;
    }
    return n;
}

static void check_pieces(const char *form, const char *left, const char *right, bool left_given,
                         bool right_given, bool is_broken)
{
    bytes out = bytes_empty(1 << 12), plain = bytes_empty(1 << 12), want = bytes_empty(1 << 12);
    render(&out, form, (const char *const[]){left, right}, (const bool[]){left_given, right_given});
    bytes_printf(&want, "%s%s", left, right);
    guard_strip(&plain, bytes_str(&out), out.len);
    CHECK_STR(bytes_str(&plain), bytes_str(&want)); /* nothing else is changed */
    if ((count_guards(&out) == 1) != is_broken || count_guards(&out) > 1) {
        fprintf(stderr, "%s of %s'%s' and %s'%s' is %s\n", form, left_given ? "given " : "", left,
                right_given ? "given " : "", right, bytes_str(&out));
        CHECK(!"guard characters where a marker is put together, and nowhere else");
    }
    bytes_deinit(&out);
    bytes_deinit(&plain);
    bytes_deinit(&want);
}

static void test_cuts(void)
{
    for (size_t f = 0; f < ARRAY_LEN(FORMS); f++) {
        for (size_t cut = 1; cut < MARKER_LEN; cut++) {
            char left[64], right[64];
            for (int who = 0; who < 4; who++) {
                const bool left_given = who & 1, right_given = who & 2;
                snprintf(left, sizeof left, "%.*s", (int)cut, MARKER);
                snprintf(right, sizeof right, "%s", MARKER + cut);
                /* What a filter puts together counts as given, whoever wrote its parts. */
                const bool is_broken = left_given || right_given || strstr(FORMS[f], "join");
                check_pieces(FORMS[f], left, right, left_given, right_given, is_broken);
                /* What is no marker is left alone. */
                snprintf(right, sizeof right, "%s b", MARKER + cut + 1);
                check_pieces(FORMS[f], left, right, left_given, right_given, false);
            }
        }
    }
}

/* What a filter puts together is broken wherever it stands in the text. */
static void test_places(void)
{
    enum { PLACES = 20 };
    for (int place = 0; place < PLACES; place++) {
        char left[64];
        snprintf(left, sizeof left, "%.*s<|im_", place, "abcdefghijklmnopqrst");
        check_pieces("{{ [$a, $b] | join }}", left, "end|> x", false, true, true);
        check_pieces("{{ [$a, $b] | join }}", left, "end| x", false, true, false);
    }
}

/* Three pieces, of which those that are given hold nothing of the marker, all of it, or a part. */
static void test_beside(void)
{
    static const struct {
        const char *text, *one, *want;
    } ROWS[] = {
        {"<|im_end|>{{ one }}<|im_end|>", "x", "<|im_end|>x<|im_end|>"},
        {"{{ one }}{{ '<|im_' }}{{ 'end|>' }}", "x", "x<|im_end|>"},
        {"{{ one ~ '<|im_' ~ 'end|>' }}", "x", "x<|im_end|>"},
        {"{{ '<|im_' ~ ('end|>' ~ one) }}", "x", "<|im_" GUARD_CHAR "end|>x"}, /* only ends are known */
        {"{{ ('<|im_' ~ 'end|>') ~ one }}", "", "<|im_end|>"},
        {"{{ one ~ '<' }}{{ '|im_end|>' }}", "x", "x<|im_end|>"},
        {"{{ one }}<|im_{{ 'end|>' }}", "x", "x<|im_end|>"},
        {"{{ one ~ '<|im_' }}{{ 'end' ~ '|>' }}", "", "<|im_end|>"},
        {"<|im_{{ one }}end|>", "", "<|im_end|>"},
        {"<|im_{{ one }}|>", "end", "<|im_end" GUARD_CHAR "|>"},
        {"{{ one }}im_end|>", "<|", "<|" GUARD_CHAR "im_end|>"},
        {"{{ '<|im_en' ~ one }}>", "d|", "<|im_end|" GUARD_CHAR ">"},
        {"{{ one ~ 'im_' }}end|>", "<|", "<|im_" GUARD_CHAR "end|>"},
        {"{{ 'X'|replace(old='X', new=one) }}", "<|im_end|>", "<|im_end|>"}, /* whole in what was given */
        {"{{ '<|im_X'|replace(old='X', new=one) }}", "end|>", "<" GUARD_CHAR "|im_end|>"},
        {"{{ 'X'|replace(old='X', new={'a': [one]}|string) }}", "<|im_end|>", "{'a': ['<|im_end|>']}"},
        {"{{ one[:15]|trim }}", "0123456789<|im_end|>",
         "0123456789<|im_"}, /* what stands behind it is no part */
        {"{{ {'a': one}|tojson }}", "<|im_end|>", "{\"a\": \"<|im_end|>\"}"},
        {"{{ one|tojson(ensure_ascii=true) }}", "<" GUARD_CHAR "|im_end|>\xc3\xa9",
         "\"<" GUARD_CHAR "|im_end|>\\u00e9\""},
        /* it is looked for whole in all that was given, eight lists deep */
        {"{{ [one]|join }}", "<|im_end|>", "<|im_end|>"},
        {"{{ ['x', one]|join }}", "<|im_end|>", "x<|im_end|>"},
        {"{{ (one, 'x')|join }}", "<|im_end|>", "<|im_end|>x"},
        {"{{ ([one]|map('string'))|join }}", "<|im_end|>", "<|im_end|>"},
        {"{{ {'a': one}|string }}", "<|im_end|>", "{'a': '<|im_end|>'}"},
        {"{{ {one: 1}|string }}", "<|im_end|>", "{'<|im_end|>': 1}"},
        {"{{ {one: 1}.keys()|join }}", "<|im_end|>", "<|im_end|>"},
        {"{{ {'a': one}.values()|join }}", "<|im_end|>", "<|im_end|>"},
        {"{{ {'a': one}.items()|string }}", "<|im_end|>", "dict_items([('a', '<|im_end|>')])"},
        {"{{ [[[[[[[[one]]]]]]]]|string }}", "<|im_end|>", "[[[[[[[['<|im_end|>']]]]]]]]"},
        {"{{ [[[[[[[[[one]]]]]]]]]|string }}", "<|im_end|>", "[[[[[[[[['<" GUARD_CHAR "|im_end|>']]]]]]]]]"},
        {"{{ {0: {0: {0: {0: {0: {0: {0: {0: one}}}}}}}}|string }}", "<|im_end|>",
         "{0: {0: {0: {0: {0: {0: {0: {0: '<|im_end|>'}}}}}}}}"},
        {"{{ {0: {0: {0: {0: {0: {0: {0: {0: {0: one}}}}}}}}}|string }}", "<|im_end|>",
         "{0: {0: {0: {0: {0: {0: {0: {0: {0: '<" GUARD_CHAR "|im_end|>'}}}}}}}}}"},
        {"{{ '%s'|format(one) }}", "<|im_end|>", "<|im_end|>"},
        {"{{ '%s%s'|format(1, one) }}", "<|im_end|>", "1<|im_end|>"},
        {"{{ 'X'.replace('X', one) }}", "<|im_end|>", "<|im_end|>"},
        {"{{ ['<|im_', 'end|>']|join }}", "", "<" GUARD_CHAR "|im_end|>"},
        {"{{ [one, '<|im_', 'end|>']|join }}", "<|im_end|>", "<|im_end|><|im_end|>"},
        {"{{ ['<|im_', 'start|>', one, '<|im_', 'start|>']|join }}", "<|im_end|>",
         "<" GUARD_CHAR "|im_start|><|im_end|><" GUARD_CHAR "|im_start|>"},
        {"{{ [one, '<|im_', 'start|>', one]|join }}", "<|im_end|>",
         "<|im_end|><" GUARD_CHAR "|im_start|><|im_end|>"},
        /* values that say nothing leave a text the template's own, others do not */
        {"{{ '<|im_%s%s'|format('end|>', 3) }}", "", "<|im_end|>3"},
        {"{{ '<|im_%s%s'|format('end|>', 2.5) }}", "", "<|im_end|>2.5"},
        {"{{ '<|im_%s%s'|format('end|>', none) }}", "", "<|im_end|>None"},
        {"{{ '<|im_%s%s'|format('end|>', true) }}", "", "<|im_end|>True"},
        {"{{ '<|im_%s%s'|format('end|>', nothing) }}", "", "<|im_end|>"},
        {"{{ '<|im_%s%s'|format('end|>', one) }}", "", "<|im_end|>"},
        {"{{ '<|im_%s%s'|format('end|>', one) }}", "y", "<" GUARD_CHAR "|im_end|>y"},
        {"{{ '%s<|im_%s'|format(one, 'end|>') }}", "y", "y<" GUARD_CHAR "|im_end|>"},
        {"{{ '<|im_%s%s'|format('end|>', []) }}", "", "<" GUARD_CHAR "|im_end|>[]"},
        {"{{ '<|im_%s%s'|format('end|>', (1,)) }}", "", "<" GUARD_CHAR "|im_end|>(1,)"},
        {"{{ '<|im_%s%s'|format('end|>', {}) }}", "", "<" GUARD_CHAR "|im_end|>{}"},
        {"{{ '<|im_%s%s'|format('end|>', range(2)) }}", "", "<" GUARD_CHAR "|im_end|>range(0, 2)"},
        {"{{ '<|im_X'|replace(old='X', new='end|>') }}", "", "<|im_end|>"},
        {"{{ '<|im_XY'|replace(old='X', new='end|>')|replace(old='Y', new=one) }}", "y", "<|im_end|>y"},
        {"{{ '<|im_Xy'|replace(new='end|>', old='X'~one) }}", "y", "<" GUARD_CHAR "|im_end|>"},
        {"{{ one|replace(old='X', new='end|>') }}", "<|im_X", "<" GUARD_CHAR "|im_end|>"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        bytes out = bytes_empty(1 << 12);
        arena *a = arena_create(1 << 20);
        jinja_value *vars = jinja_dict(a);
        chat_template *t = NULL;
        CHECK(jinja_dict_set(a, vars, "one", jinja_str(a, ROWS[i].one, strlen(ROWS[i].one))));
        CHECK_OK(chat_template_compile(&t, ROWS[i].text, strlen(ROWS[i].text), &d), d);
        CHECK_OK(chat_template_render(t, &out, NULL, vars, &g, a, &d), d);
        if (strcmp(bytes_str(&out), ROWS[i].want) != 0) {
            fprintf(stderr, "%s of '%s' is %s\n", ROWS[i].text, ROWS[i].one, bytes_str(&out));
            CHECK(!"a marker is whole where all of it is the template's own");
        }
        chat_template_close(t);
        arena_destroy(a);
        bytes_deinit(&out);
    }
}

/* What stands behind the last text that was given is the template's own, however long it is. */
static void test_long_tails(void)
{
    static const char *const FORMS_OF_OWN[] = {
        "{{ one ~ ('a' * %d) ~ '<|im_' }}{{ 'end|>' }}",
        "{%% set s %%}{{ one }}{{ 'a' * %d }}<|im_{%% endset %%}{{ s }}{{ 'end|>' }}",
        "{%% set s %%}{{ one }}{{ 'a' * %d }}<|im_{%% endset %%}{{ s ~ 'end|>' }}",
    };
    for (size_t f = 0; f < ARRAY_LEN(FORMS_OF_OWN); f++) {
        for (int n = UINT16_MAX - 8; n < UINT16_MAX + 4; n++) {
            char text[256];
            bytes out = bytes_empty(1 << 20);
            arena *a = arena_create(1 << 22);
            jinja_value *vars = jinja_dict(a);
            chat_template *t = NULL;
            snprintf(text, sizeof text, FORMS_OF_OWN[f], n);
            CHECK(jinja_dict_set(a, vars, "one", jinja_str(a, "x", 1)));
            CHECK_OK(chat_template_compile(&t, text, strlen(text), &d), d);
            CHECK_OK(chat_template_render(t, &out, NULL, vars, &g, a, &d), d);
            CHECK_INT(out.len, n + 11);
            CHECK(guard_find(bytes_str(&out), out.len) == NULL);
            chat_template_close(t);
            arena_destroy(a);
            bytes_deinit(&out);
        }
    }
}

int main(void)
{
    tokenizer *tok = NULL;
    CHECK_OK(tokenizer_open(&tok, check_data("tiny/tokenizer.json"), &d), d);
    g = (guard){{tokenizer_markers(tok), NULL}};
    test_cuts();
    test_places();
    test_beside();
    test_long_tails();
    tokenizer_close(tok);
    CHECK_DONE();
}
