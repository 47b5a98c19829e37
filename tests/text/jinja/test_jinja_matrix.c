/* Each filter, test, operator, method and form of numbers, of each kind of value: what a template shows, or why it is
 * refused, is as recorded in matrix.txt. Most pairs are errors in Jinja, too; that none is let through counts, and what is
 * said of it. */
#include <string.h>

#include "tests/recorded.h"
#include "text/jinja/chat_template.h"

enum {
    MEMORY = 1 << 22,
    VALUES_MEMORY = 1 << 18,
    TEXT_MAX = 4096,
    NOON = 1795176000,
    DEEP = 203 /* lists in each other: more than are printed or compared */
};

/* $ is the value. */
static const char *const FORMS[] = {"$|abs",
                                    "$|attr('upper')",
                                    "$|attr('b')",
                                    "$|capitalize",
                                    "$|center(6)",
                                    "$|center",
                                    "$|d('x')",
                                    "$|d('x',true)",
                                    "$|e",
                                    "$|float",
                                    "$|float(1.5)",
                                    "$|format(1,'a')",
                                    "$|indent",
                                    "$|indent(2,true)",
                                    "$|indent('>',blank=true)",
                                    "$|int",
                                    "$|int(9)",
                                    "$|int(0,16)",
                                    "$|lower",
                                    "$|replace('a','xy')",
                                    "$|replace('a','xy',1)",
                                    "$|round",
                                    "$|round(1)",
                                    "$|round(1,'ceil')",
                                    "$|round(0,'floor')",
                                    "$|safe",
                                    "$|string",
                                    "$|title",
                                    "$|tojson",
                                    "$|tojson(indent=2)",
                                    "$|tojson(ensure_ascii=true,sort_keys=true)",
                                    "$|tojson(separators=(',',':'))",
                                    "$|trim",
                                    "$|trim('a')",
                                    "$|truncate(3)",
                                    "$|truncate(2,true,'',0)",
                                    "$|upper",
                                    "$|wordcount",
                                    "$|batch(2)|list",
                                    "$|batch(2,'z')|list",
                                    "$|count",
                                    "$|dictsort",
                                    "$|dictsort(by='value')",
                                    "$|dictsort(true,'key',true)",
                                    "$|first",
                                    "$|groupby('k')|list",
                                    "$|groupby(0)|list",
                                    "$|items|list",
                                    "$|join",
                                    "$|join('-')",
                                    "$|join('-','k')",
                                    "$|last",
                                    "$|list",
                                    "$|map('upper')|list",
                                    "$|map(attribute='k')|list",
                                    "$|map(attribute='k',default='none')|list",
                                    "$|max",
                                    "$|max(attribute='n')",
                                    "$|min",
                                    "$|min(true)",
                                    "$|reject('string')|list",
                                    "$|rejectattr('k')|list",
                                    "$|rejectattr('n','eq',1)|list",
                                    "$|reverse|list",
                                    "$|select|list",
                                    "$|select('string')|list",
                                    "$|selectattr('k')|list",
                                    "$|selectattr('n','gt',1)|list",
                                    "$|slice(2)|list",
                                    "$|slice(2,'z')|list",
                                    "$|sort",
                                    "$|sort(true)",
                                    "$|sort(attribute='n')",
                                    "$|sort(attribute='n,k')",
                                    "$|sum",
                                    "$|sum('n')",
                                    "$|sum(start=5)",
                                    "$|unique|list",
                                    "$|unique(attribute='k')|list",
                                    "$|nofilter",
                                    "$|reverse",
                                    "$|first|string",
                                    "$ is boolean",
                                    "$ is callable",
                                    "$ is defined",
                                    "$ is divisibleby(3)",
                                    "$ is eq(7)",
                                    "$ is escaped",
                                    "$ is even",
                                    "$ is false",
                                    "$ is filter",
                                    "$ is float",
                                    "$ is ge(2)",
                                    "$ is gt(2)",
                                    "$ is in([7,none])",
                                    "$ is integer",
                                    "$ is iterable",
                                    "$ is le(7)",
                                    "$ is lower",
                                    "$ is lt(7)",
                                    "$ is mapping",
                                    "$ is ne(7)",
                                    "$ is none",
                                    "$ is number",
                                    "$ is odd",
                                    "$ is sameas(none)",
                                    "$ is sequence",
                                    "$ is string",
                                    "$ is test",
                                    "$ is true",
                                    "$ is undefined",
                                    "$ is upper",
                                    "$ is notest",
                                    "-$",
                                    "+$",
                                    "not $",
                                    "$[0]",
                                    "$['a']",
                                    "$[1:]",
                                    "$.a",
                                    "$.upper",
                                    "$.current",
                                    "$.name",
                                    "$.grouper",
                                    "$.list",
                                    "$.index",
                                    "$.next",
                                    "$()",
                                    "1 if $ else 2",
                                    "[$]|string",
                                    "[$]|tojson",
                                    "{$: 1}",
                                    "$ ~ $",
                                    "namespace($)",
                                    "dict($)",
                                    "'a,b'|join($)",
                                    "'abc'|replace('b', $)",
                                    "'abc'|truncate($)",
                                    "[1,2,3]|batch($)|list",
                                    "7|round($)",
                                    "'a'|indent($)",
                                    "'7'|int($)",
                                    "range($)|list",
                                    "'a'.center($)",
                                    "'a'|default($)",
                                    "'abc'[$:]",
                                    "[3,1]|sort($)",
                                    "[{'k':1}]|map(attribute=$)|list",
                                    "'%s|%r' % $",
                                    "'{}'.format($)",
                                    "','.join($)",
                                    "'b'.join([$])",
                                    "cycler($).next()",
                                    "joiner($)()",
                                    "strftime_now($)",
                                    "raise_exception($)",
                                    "'x-y'|replace($,'z')",
                                    "'abc'|replace('b','x',$)",
                                    "'abcdefghijkl'|truncate(3,true,$)",
                                    "'abcdefghijkl'|truncate(3,true,'',$)",
                                    "'abcdefghijkl'|truncate(3,$)",
                                    "'7'|int(0,$)",
                                    "2.567|round(1,$)",
                                    "'ab'.find($)",
                                    "'abab'.find('b',$)",
                                    "'abab'.find('b',0,$)",
                                    "'abab'.count($)",
                                    "'ab'.startswith($)",
                                    "'ab'.endswith($,1)",
                                    "'a b'.split($)",
                                    "'a b'.split(none,$)",
                                    "'ab'.replace($,'x')",
                                    "'ab'.replace('a',$)",
                                    "'aab'.replace('a','x',$)",
                                    "'a'.center(5,$)",
                                    "'a'.zfill($)",
                                    "'ab'.strip($)",
                                    "'ab'.removeprefix($)",
                                    "'ab'.partition($)",
                                    "'a\\nb'.splitlines($)",
                                    "[1,2]|join($)",
                                    "[1,2,3]|slice($)|list",
                                    "[1,2,3]|slice(2,$)|list",
                                    "[1,2,3]|batch(2,$)|list",
                                    "[1]|sum(start=$)",
                                    "[{'a':1}]|sum($)",
                                    "{'b':1}|dictsort(by=$)",
                                    "[1]|tojson(indent=$)",
                                    "[1,{'b':1}]|tojson(separators=$)",
                                    "[1]|map($)|list",
                                    "[1]|select($)|list",
                                    "[{'n':1}]|sort(attribute=$)",
                                    "[{'n':1}]|groupby($)|list",
                                    "[{'n':1}]|selectattr($)|list",
                                    "'ab'|attr($)",
                                    "'ab'|trim($)",
                                    "'ab'|center($)",
                                    "'a\\nb'|indent(2,$)",
                                    "'a'|float($)",
                                    "7 is divisibleby($)",
                                    "7 is eq($)",
                                    "7 is in($)",
                                    "7 is sameas($)",
                                    "'%(a)s'|format(a=$)",
                                    "'%s'|format($)",
                                    "'%c' % $",
                                    "{'a':1}[$]",
                                    "{'a':1}.get($)",
                                    "{'a':1}.get('b',$)",
                                    "{'b':$,'a':1}|dictsort(by='value')",
                                    "[1,2,3][:$]",
                                    "[1,2,3][::$]",
                                    "[1,2,3][$]",
                                    "range(1,$)|list",
                                    "range(1,9,$)|list",
                                    "namespace(a=$).a",
                                    "{$:1}|tojson",
                                    "[[$]] == [[$]]",
                                    "[$] < [$]",
                                    "{'a':[$]} == {'a':[$]}",
                                    "[$,$]|unique|list",
                                    "[$,1]|max",
                                    "[$]|map('string')|list",
                                    "[1,$]|sort",
                                    "[$] in [[$]]",
                                    "dict([[$,1]])",
                                    "dict([$])",
                                    "dict(a=$)",
                                    "'a' ~ $",
                                    "$ if 1",
                                    "loop($)",

                                    NULL};

static const char *const VALUES[] = {"nothing",
                                     "none",
                                     "true",
                                     "7",
                                     "-3",
                                     "2.5",
                                     "big",
                                     "'aB c'",
                                     "''",
                                     "[3,'b',1]",
                                     "[2,1,2]",
                                     "(1,'a')",
                                     "{'b':1,'a':'x'}",
                                     "range(3)",
                                     "([1,2]|map('string'))",
                                     "range",
                                     "('<b>'|safe)",
                                     "cycler(1,2)",
                                     "namespace(a=1)",
                                     "joiner('-')",
                                     "[{'k':'b','n':2},{'k':'A','n':1}]",
                                     "deep",
                                     NULL};

static const char *const METHODS[] = {"$.capitalize()",
                                      "$.casefold()",
                                      "$.join(['x','y'])",
                                      "$.join('xyz')",
                                      "$.join([1])",
                                      "$.lower()",
                                      "$.lstrip()",
                                      "$.lstrip('a')",
                                      "$.partition('b')",
                                      "$.partition('')",
                                      "$.removeprefix('a')",
                                      "$.removesuffix('c')",
                                      "$.replace('a','z')",
                                      "$.replace('','-')",
                                      "$.replace('a','z',1)",
                                      "$.rpartition('b')",
                                      "$.rsplit()",
                                      "$.rsplit('b',1)",
                                      "$.rstrip()",
                                      "$.rstrip('c ')",
                                      "$.split()",
                                      "$.split('b')",
                                      "$.split(none,1)",
                                      "$.splitlines()",
                                      "$.splitlines(true)",
                                      "$.strip()",
                                      "$.strip('ac')",
                                      "$.swapcase()",
                                      "$.title()",
                                      "$.upper()",
                                      "$.center(9)",
                                      "$.center(9,'*')",
                                      "$.center(9,'**')",
                                      "$.count('a')",
                                      "$.count('a',1)",
                                      "$.count('a',0,-1)",
                                      "$.count('')",
                                      "$.endswith('c')",
                                      "$.endswith(('x','c'))",
                                      "$.endswith('b',0,2)",
                                      "$.find('b')",
                                      "$.find('b',2)",
                                      "$.find('zz')",
                                      "$.find('')",
                                      "$.find('a',-1)",
                                      "$.format(1)",
                                      "$.index('b')",
                                      "$.index('zz')",
                                      "$.isalnum()",
                                      "$.isalpha()",
                                      "$.isascii()",
                                      "$.isdecimal()",
                                      "$.isdigit()",
                                      "$.islower()",
                                      "$.isnumeric()",
                                      "$.isspace()",
                                      "$.isupper()",
                                      "$.ljust(9,'.')",
                                      "$.rfind('a')",
                                      "$.rfind('a',0,-2)",
                                      "$.rindex('zz')",
                                      "$.rjust(9,'.')",
                                      "$.rjust(1)",
                                      "$.startswith('a')",
                                      "$.startswith(('x','a'))",
                                      "$.startswith('b',1)",
                                      "$.startswith('a',1,2)",
                                      "$.zfill(9)",
                                      "$.zfill(1)",
                                      "$.upper(1)",
                                      "$.find()",
                                      "$.replace('a')",
                                      "$.nomethod()",
                                      NULL};

static const char *const TEXTS[] = {"'abc abca'", "''", "' Éß\\n\\r\\nx\\x1cy z '", "'-12'", "'Ab CD'",
                                    "'{}|{{'",    NULL};

static const char *const OPERATORS[] = {"+",      "*",   "-",  "/",  "//",        "%",  "**",
                                        "<",      "<=",  ">",  ">=", "==",        "!=", "in",
                                        "not in", "and", "or", "~",  "is sameas", NULL};

static const char *const LEFT[] = {"nothing", "true",  "7",       "-7",       "2.5",          "big", "'a'",
                                   "[1,2]",   "(1,2)", "{'a':1}", "range(2)", "('<b>'|safe)", NULL};

static const char *const RIGHT[] = {"nothing", "none",  "true",  "0",       "-2",       "1.5",   "big",
                                    "'ab'",    "[1,2]", "(1,2)", "{'a':1}", "range(2)", "1e300", NULL};

/* Behind the colon of str.format, and behind %. */
static const char *const SPECS[] = {
    "",    "d",   "5",  "<5", ">5",  "^5", "*^7", "=+6", "05",  "+",     "-",   " ",   "x",
    "X",   "#x",  "o",  "#o", "b",   "#b", "e",   ".2e", "E",   "f",     ".0f", ".3f", "F",
    "g",   ".3g", "G",  "%",  ".1%", "c",  ",",   "_",   ",d",  ",.2f",  "n",   "s",   "5s",
    ".1s", "q",   "+s", "5.", ".x",  "{}", "<",   "<<5", "z<5", "08.2f", "#d",  "+,",  NULL};

static const char *const PERCENTS[] = {"d",    "5d",   "-5d|", "05d", "+d",  " d", "x",     "X",     "#x",
                                       "o",    "e",    ".2e",  "f",   ".1f", "g",  "G",     "s",     "5s",
                                       "-5s|", ".1s",  "r",    "a",   "c",   "%",  "i",     "u",     "q",
                                       "",     "(k)s", "(k",   "*d",  ".*f", "ld", "5.1f|", "-+6d|", NULL};

static const char *const NUMBERS[] = {"42",  "-3",  "2.5",   "1234567.891", "true",    "'ab'",      "none",
                                      "[1]", "big", "1e300", "0.0",         "(1,'a')", "{'k':'v'}", NULL};

static json_doc *given; /* `big`: such numbers come from requests alone */

/* What `{{ expression }}` becomes, behind the expression. */
static void say(bytes *out, const char *expression)
{
    char text[TEXT_MAX];
    snprintf(text, sizeof text, "{{ %s }}", expression);
    chat_template *t = NULL;
    err_detail d = {0};
    arena *a = arena_create(VALUES_MEMORY);
    jinja_value *vars = jinja_from_json(a, json_root(given));
    bytes shown = bytes_empty(MEMORY);
    CHECK(jinja_dict_set(a, vars, CHAT_TEMPLATE_NOW, jinja_int(a, NOON)));
    err_code err = chat_template_compile(&t, text, strlen(text), &d);
    err = err ? err : chat_template_render(t, &shown, NULL, vars, NULL, a, &d);
    bytes_printf(out, "%s: ", expression);
    if (err) {
        static const char place[] = "chat template, line 1: ";
        const bool is_placed = strncmp(d.text, place, strlen(place)) == 0;
        bytes_printf(out, "! %s\n", d.text + (is_placed ? strlen(place) : 0));
    } else {
        bytes_append_json(out, bytes_str(&shown), shown.len);
        bytes_append_char(out, '\n');
    }
    bytes_deinit(&shown);
    arena_destroy(a);
    chat_template_close(t);
}

/* Each form with each value in place of its $. */
static void say_all(bytes *out, const char *const *forms, const char *const *values)
{
    for (; *forms; forms++) {
        for (size_t i = 0; values[i]; i++) {
            bytes expression = bytes_empty(TEXT_MAX);
            for (const char *p = *forms; *p; p++) {
                if (*p == '$') {
                    bytes_append_str(&expression, values[i]);
                } else {
                    bytes_append_char(&expression, *p);
                }
            }
            say(out, bytes_str(&expression));
            bytes_deinit(&expression);
        }
    }
}

static void say_operators(bytes *out)
{
    char form[TEXT_MAX];
    const char *forms[] = {form, NULL};
    for (size_t i = 0; OPERATORS[i]; i++) {
        for (size_t k = 0; RIGHT[k]; k++) {
            snprintf(form, sizeof form, "$ %s %s", OPERATORS[i], RIGHT[k]);
            say_all(out, forms, LEFT);
        }
    }
    for (size_t k = 0; RIGHT[k]; k++) {
        snprintf(form, sizeof form, "$[%s]", RIGHT[k]);
        say_all(out, forms, LEFT);
    }
}

/* Around the depth to which values are printed and compared. */
static void say_depths(bytes *out)
{
    static const char *const forms[] = {"deep$ == twin$",
                                        "deep$ != twin$",
                                        "deep$ < twin$",
                                        "deep$ <= twin$",
                                        "deep$ in [twin$]",
                                        "{1: deep$} == {1: twin$}",
                                        "[deep$, twin$]|unique|list|length",
                                        "deep$|string|length",
                                        "deep$|tojson|length",
                                        "(deep$ ~ '')|length",
                                        "{1: deep$}|tojson|length",
                                        "[deep$, twin$]|sort|length",
                                        NULL};
    static const char *const items[] = {"", "[0]", "[0][0]", "[0][0][0]", "[0][0][0][0]", NULL};
    say_all(out, forms, items);
}

static void say_numbers(bytes *out)
{
    char form[TEXT_MAX];
    const char *forms[] = {form, NULL};
    for (size_t i = 0; SPECS[i]; i++) {
        snprintf(form, sizeof form, "'{:%s}'.format($)", SPECS[i]);
        say_all(out, forms, NUMBERS);
    }
    for (size_t i = 0; PERCENTS[i]; i++) {
        snprintf(form, sizeof form, "'%%%s' %% $", PERCENTS[i]);
        say_all(out, forms, NUMBERS);
    }
}

int main(void)
{
    bytes out = bytes_empty(MEMORY);
    char variables[2048], deep[2 * DEEP + 1];
    memset(deep, '[', DEEP);
    memset(deep + DEEP, ']', DEEP);
    deep[2 * DEEP] = '\0';
    snprintf(variables, sizeof variables, "{\"big\":99999999999999999999,\"deep\":%s,\"twin\":%s}", deep,
             deep);
    setenv("TZ", "UTC0", 1);
    CHECK(json_parse(&given, variables, strlen(variables), DEEP + 1, NULL) == ERR_OK);
    say_all(&out, FORMS, VALUES);
    say_all(&out, METHODS, TEXTS);
    say_operators(&out);
    say_numbers(&out);
    say_depths(&out);
    CHECK(!out.failed);
    recorded_check("text/jinja/matrix.txt", bytes_str(&out));
    bytes_deinit(&out);
    json_free(given);
    CHECK_DONE();
}
