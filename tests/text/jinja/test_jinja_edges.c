/* Expressions at both sides of what decides, and calls with variables that are none. tests/text/jinja/edges.txt has what each
 * line shows in a template, or why it is refused. */
#include "tests/recorded.h"
#include "text/jinja/chat_template.h"
#include "text/jinja/jinja_value.h"

enum { MEMORY = 1 << 20, NOON = 1795176000, DIGITS = 309 /* of the largest numbers that JSON may have */ };

static json_doc *given;

static err_code render(bytes *shown, const char *text, size_t len, arena *a, const jinja_value *vars,
                       err_detail *d)
{
    chat_template *t = NULL;
    err_code err = chat_template_compile(&t, text, len, d);
    err = err ? err : chat_template_render(t, shown, NULL, vars, NULL, a, d);
    chat_template_close(t);
    return err;
}

/* A line is an expression; one with a % is a whole template, as is. */
static void tell(void *ctx, bytes *out, const char *line, size_t len)
{
    bytes text = bytes_empty(MEMORY), shown = bytes_empty(MEMORY);
    arena *a = arena_create(MEMORY);
    jinja_value *vars = jinja_from_json(a, json_root(given));
    err_detail d = {0};
    (void)ctx;
    CHECK(jinja_dict_set(a, vars, CHAT_TEMPLATE_NOW, jinja_int(a, NOON)));
    if (len > 0 && line[0] != '#') {
        const bool is_whole = line[0] == '{' && line[1] == '%';
        bytes_printf(&text, is_whole ? "%.*s" : "{{ %.*s }}", (int)len, line);
        if (render(&shown, bytes_str(&text), text.len, a, vars, &d) == ERR_OK) {
            bytes_append_str(out, "< ");
            bytes_append_json(out, bytes_str(&shown), shown.len);
            bytes_append_char(out, '\n');
        } else {
            static const char PLACE[] = "chat template, line 1: ";
            const bool is_placed = strncmp(d.text, PLACE, sizeof PLACE - 1) == 0;
            bytes_printf(out, "<! %s\n", d.text + (is_placed ? sizeof PLACE - 1 : 0));
        }
    }
    bytes_deinit(&text);
    bytes_deinit(&shown);
    arena_destroy(a);
}

/* What is no dictionary of variables, or cannot be put into one. */
static void test_variables(void)
{
    static const char TEXT[] = "{{ strftime_now('%Y')|int >= 2024 }}{{ messages }}";
    arena *a = arena_create(MEMORY);
    bytes shown = bytes_empty(MEMORY);
    jinja_value *text = jinja_str(a, "x", 1), *vars = jinja_dict(a);
    err_detail d = {0};
    CHECK(!jinja_dict_set(a, NULL, "a", text) && !jinja_dict_set(a, text, "a", text) &&
          !jinja_dict_set(a, vars, "a", NULL));
    const jinja_value *const none[] = {NULL, text};
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        CHECK_INT(render(&shown, "a", 1, a, none[i], &d), ERR_LIMIT);
        CHECK_STR(d.text, "the chat template's variables do not fit the memory for rendering it");
    }
    /* the time is that of the system where none is given, and messages need not be a list */
    CHECK(jinja_dict_set(a, vars, "messages", text));
    for (int i = 0; i < 2; i++) {
        chat_template *t = NULL;
        jinja_span spans[1] = {{7, 9}};
        chat_template_trace trace = {.spans = spans};
        CHECK_OK(chat_template_compile(&t, TEXT, sizeof TEXT - 1, &d), d);
        bytes_clear(&shown);
        CHECK_OK(chat_template_render(t, &shown, &trace, vars, NULL, a, &d), d);
        CHECK_STR(bytes_str(&shown), "Truex");
        CHECK(spans[0].begin == 7 && spans[0].end == 9);
        chat_template_close(t);
        CHECK(jinja_dict_set(a, vars, CHAT_TEMPLATE_NOW, text));
    }
    bytes_deinit(&shown);
    arena_destroy(a);
}

/* A byte 0 is text where text is, and nothing else. */
static void test_zero(void)
{
    static const struct {
        const char *text;
        size_t len;
        const char *shown; /* NULL: it is refused */
    } cases[] = {
        {"a\0b", 3, "a\0b"},        {"\0", 1, "\0"},         {"{{ 'a\0b' }}", 11, "a\0b"},
        {"{# \0 #}abc", 10, "abc"}, {"{{ 1 \0 }}", 9, NULL}, {"{{ \0 }}", 7, NULL},
        {"{% \0 %}", 7, NULL},      {"{{ a\0 }}", 8, NULL},  {"{{ 1\0}}", 7, NULL},
        {"{%\0if 1 %}", 10, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bytes shown = bytes_empty(MEMORY);
        arena *a = arena_create(MEMORY);
        err_detail d = {0};
        const size_t n = cases[i].shown ? (cases[i].len == 1 ? 1 : 3) : 0;
        CHECK_INT(render(&shown, cases[i].text, cases[i].len, a, jinja_dict(a), &d),
                  n ? ERR_OK : ERR_INVALID);
        CHECK_INT(shown.len, n);
        CHECK(shown.len != n || n == 0 || memcmp(shown.data, cases[i].shown, n) == 0);
        arena_destroy(a);
        bytes_deinit(&shown);
    }
}

/* Different keys of many kinds, in the order of their numbers. */
static jinja_value key_of(jinja_memory *m, int number)
{
    char text[64];
    const int n = number / 5;
    switch (number % 5) {
    case 0:
        return jinja_make_int(n);
    case 1:
        return jinja_make_float(n + 0.5);
    case 2:
        return jinja_pair(m, jinja_make_int(n), jinja_make_int(3));
    case 3:
        return jinja_text(m, text, (size_t)snprintf(text, sizeof text, "%d", n));
    default: /* of all lengths, which differ in the last byte or in how many there are */
        memset(text, 'x', sizeof text);
        text[n % 32 + 1] = (char)('0' + n / 32);
        return jinja_text(m, text, (size_t)(n % 32 + 2));
    }
}

/* What a dictionary has is found, in whatever size, and what it has not is not; keys seldom come into each other's way. */
static void test_keys(void)
{
    enum { KEYS = 3000, MOST_BESIDE = 300 };
    jinja_memory m = {.arena = arena_create(MEMORY * 8), .block = 4096};
    const jinja_value dict = jinja_new_map(&m, JINJA_DICT);
    jinja_map *const map = dict.as.map;
    for (int i = 0; i < KEYS; i++) {
        const jinja_value key = key_of(&m, i);
        CHECK(!jinja_map_get(map, &key));
        jinja_map_set(&m, map, key, jinja_make_int(-1));
        jinja_map_set(&m, map, key_of(&m, i), jinja_make_int(i));
        CHECK_INT(map->len, i + 1);
        for (int k = i % 7; k <= i; k += 1 + k / 3) {
            const jinja_value one = key_of(&m, k), *const found = jinja_map_get(map, &one);
            CHECK(found && found->as.integer == k);
        }
    }
    CHECK(!m.failed && map->n_index >= 2 * KEYS && (map->n_index & (map->n_index - 1)) == 0);
    int n_same = 0, n_beside = 0, most = 0;
    for (size_t i = 0; i < KEYS; i++) {
        for (size_t k = 0; k < i; k++) {
            n_same += map->entries[i].hash == map->entries[k].hash;
        }
    }
    for (size_t slot = 0; slot < map->n_index; slot++) {
        n_beside = map->index[slot] ? n_beside + 1 : 0;
        most = n_beside > most ? n_beside : most;
    }
    CHECK_INT(n_same, 0);
    CHECK(most < MOST_BESIDE);
    arena_destroy(m.arena);
}

/* Filters that are not known here are told as long as there is room, and none is cut. */
static void test_unknown(void)
{
    enum { FIRST = 6, MOST = 19 };
    for (int n = 1; n <= MOST + 1; n++) {
        chat_template *t = NULL;
        err_detail d = {0};
        bytes text = bytes_empty(MEMORY), want = bytes_empty(MEMORY);
        for (int i = 0; i < FIRST + 2; i++) {
            char name[MOST + 2];
            const size_t len = i == FIRST ? (size_t)n : 1;
            memset(name, 'A' + i, len);
            name[len] = '\0';
            bytes_printf(&text, "{{ 1|%s }}", name);
            if (i < FIRST || (i == FIRST && n <= MOST) || (i > FIRST && n > MOST)) {
                bytes_printf(&want, "%sthe filter '%s' (line 1)", i ? ", " : "", name);
            }
        }
        CHECK_OK(chat_template_compile(&t, bytes_str(&text), text.len, &d), d);
        CHECK_STR(chat_template_unknown(t), bytes_str(&want));
        chat_template_close(t);
        bytes_deinit(&text);
        bytes_deinit(&want);
    }
}

int main(void)
{
    char digits[DIGITS + 1], variables[2048];
    memset(digits, '1', DIGITS);
    digits[DIGITS] = '\0';
    snprintf(variables, sizeof variables, "{\"big\":99999999999999999999,\"huge\":%s,\"huger\":%s}",
             digits + 1, digits);
    setenv("TZ", "UTC0", 1);
    CHECK(json_parse(&given, variables, strlen(variables), 4, NULL) == ERR_OK);
    recorded_answers(PARLEY_SOURCE_DIR "/tests/text/jinja/edges.txt", tell, NULL);
    test_variables();
    test_unknown();
    test_keys();
    test_zero();
    json_free(given);
    CHECK_DONE();
}
