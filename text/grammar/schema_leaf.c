/* Strings, numbers and enums of a schema as automata. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "text/grammar/json_schema_private.h"
#include "text/grammar/regex.h"

/* ---- small parts ---- */

static int32_t with_space(schema_compiler *c, const char *mark)
{
    const int32_t parts[] = {grammar_text(c->g, mark, 1), grammar_space(c->g)};
    return grammar_sequence(c->g, parts, 2);
}

int32_t schema_comma(schema_compiler *c)
{
    c->comma = c->comma ? c->comma : with_space(c, ",");
    return c->comma;
}

int32_t schema_colon(schema_compiler *c)
{
    c->colon = c->colon ? c->colon : with_space(c, ":");
    return c->colon;
}

/* Appends the one form that CHARS_JSON writes text in, without quotes. */
static void append_written(bytes *out, const char *text)
{
    static const char SHORT[] = "\b\t\n\f\r\"\\", LETTER[] = "btnfr\"\\";
    for (const char *p = text; *p; p++) {
        const char *known = strchr(SHORT, *p);
        if (known) {
            bytes_append_char(out, '\\');
            bytes_append_char(out, LETTER[known - SHORT]);
        } else if ((unsigned char)*p < 0x20) {
            bytes_printf(out, "\\u%04x", (unsigned)*p);
        } else {
            bytes_append_char(out, *p);
        }
    }
}

/* The node of a written text; none if it is too long. */
static int32_t written_node(schema_compiler *c, const bytes *text)
{
    grammar_note_text(c->g, text);
    return text->failed ? GRAMMAR_NEVER : grammar_text(c->g, text->data, text->len);
}

int32_t schema_quoted(schema_compiler *c, const char *text)
{
    bytes out = bytes_empty(LIMIT_VALUE_BYTES);
    bytes_append_char(&out, '"');
    append_written(&out, text);
    bytes_append_char(&out, '"');
    const int32_t node = written_node(c, &out);
    bytes_deinit(&out);
    return node;
}

int32_t schema_closed(schema_compiler *c, int32_t value, bool raw)
{
    const int32_t parts[] = {value, raw ? grammar_text(c->g, c->close, strlen(c->close)) : GRAMMAR_EMPTY};
    return raw ? grammar_sequence(c->g, parts, 2) : value;
}

static int32_t quoted_automaton(schema_compiler *c, dfa *d)
{
    const int32_t quote = grammar_text(c->g, "\"", 1);
    const int32_t parts[] = {quote, grammar_automaton(c->g, d), quote};
    return grammar_sequence(c->g, parts, 3);
}

/* ---- strings ---- */

#define DATE                                                                                                 \
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"                \
    "02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"      \
    "-02-29)"
#define TIME  "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define LABEL "[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"

/* Each is a part of what the format allows, and means the same to every validator. */
static const struct {
    const char *name, *pattern;
} FORMATS[] = {
    {"date-time", "^" DATE "T" TIME "$"},
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"duration", "^P([0-9]{1,6}W|[0-9]{1,6}D(T([0-9]{1,6}H)?[0-9]{1,6}M([0-9]{1,6}S)?)?|T[0-9]{1,6}[HMS])$"},
    {"uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"},
    {"ipv4", "^" OCTET "(\\." OCTET "){3}$"},
    {"ipv6", "^[0-9a-f]{1,4}(:[0-9a-f]{1,4}){7}$"},
    {"email", "^[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,16}){0,2}@(" LABEL "\\.){1,3}[a-z]{2,12}$"},
    {"hostname", "^" LABEL "(\\." LABEL "){0,4}$"},
    {"uri", "^https?://" LABEL "(\\." LABEL "){0,4}(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~-]{0,64}){0,16}$"},
};

enum { LENGTH_MAX = 2000 };

/* Narrows *all, everything if it was never made, by *one, which is taken over. */
static void combine(schema_compiler *c, dfa *all, dfa *one, dfa_op op, const char *what)
{
    if (!all->next) {
        *all = *one;
        return;
    }
    dfa both = {0};
    c->err = dfa_combine(&both, all, one, op, what, c->work, c->detail);
    dfa_free(one);
    dfa_free(all);
    *all = both;
}

/* Narrows *all to what `pattern` allows too. */
static void narrow(schema_compiler *c, dfa *all, const char *pattern, bool raw, dfa_op op)
{
    dfa one = {0};
    const nfa_chars chars = raw ? CHARS_RAW : CHARS_JSON;
    c->err = c->err ? c->err : regex_compile(&one, pattern, strlen(pattern), chars, c->work, c->detail);
    if (c->err == ERR_OK) {
        combine(c, all, &one, op, "the string");
    }
}

static void narrow_by_format(schema_compiler *c, const merged *m, dfa *all, const char *format, bool raw)
{
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        if (strcmp(FORMATS[i].name, format) == 0) {
            narrow(c, all, FORMATS[i].pattern, raw, DFA_AND);
            return;
        }
    }
    schema_refuse(c, m->string_at, "format", ERR_UNSUPPORTED, "the format \"%s\" is not supported", format);
}

static void narrow_by_length(schema_compiler *c, const merged *m, dfa *all, bool raw)
{
    char pattern[64];
    const bool open = m->max_length == GRAMMAR_MANY;
    if (m->min_length > LENGTH_MAX || (!open && m->max_length > LENGTH_MAX)) {
        schema_refuse(c, m->length_at[!open], open ? "minLength" : "maxLength", ERR_UNSUPPORTED,
                      "lengths above %d are not supported %s", LENGTH_MAX,
                      raw ? "for a parameter" : "beside pattern or format");
    }
    if (open) {
        snprintf(pattern, sizeof pattern, "^[\\s\\S]{%d,}$", m->min_length);
    } else {
        snprintf(pattern, sizeof pattern, "^[\\s\\S]{%d,%d}$", m->min_length, m->max_length);
    }
    narrow(c, all, pattern, raw, DFA_AND);
}

/* What patterns and formats leave; all->next stays NULL if there are none. */
static void narrow_by_form(schema_compiler *c, const merged *m, dfa *all, bool raw)
{
    for (size_t i = 0; i < m->n_formats; i++) {
        narrow_by_format(c, m, all, m->formats[i], raw);
    }
    for (size_t i = 0; i < m->n_patterns && c->err == ERR_OK; i++) {
        narrow(c, all, m->patterns[i], raw, DFA_AND);
        schema_add_place(c, m->string_at, "pattern");
    }
}

/* A raw value must not hold what closes it. */
static void forbid_close(schema_compiler *c, dfa *all)
{
    char pattern[256];
    size_t n = 0;
    for (const char *p = c->close; *p && n + 8 < sizeof pattern; p++) {
        n += (size_t)snprintf(pattern + n, sizeof pattern - n, "\\x%02x", (unsigned char)*p);
    }
    narrow(c, all, pattern, true, DFA_AND_NOT);
}

int32_t schema_string(schema_compiler *c, const merged *m, bool raw)
{
    dfa all = {0};
    if (m->min_length > m->max_length) {
        return GRAMMAR_NEVER;
    }
    narrow_by_form(c, m, &all, raw);
    if ((all.next || raw) && (m->min_length > 0 || m->max_length != GRAMMAR_MANY)) {
        narrow_by_length(c, m, &all, raw);
    }
    if (all.next && raw) {
        forbid_close(c, &all);
    }
    if (c->err != ERR_OK) {
        dfa_free(&all);
        return GRAMMAR_NEVER;
    }
    if (!all.next) {
        return raw ? grammar_until(c->g, c->close) : grammar_string(c->g, m->min_length, m->max_length);
    }
    return raw ? schema_closed(c, grammar_automaton(c->g, &all), true) : quoted_automaton(c, &all);
}

/* ---- numbers ---- */

enum { DIGITS_MAX = 40 };

/* A decimal number without an exponent: [-] whole . fraction, without needless zeros. */
typedef struct decimal {
    bool negative;
    char whole[DIGITS_MAX + 1], fraction[DIGITS_MAX + 1];
    int32_t n_whole, n_fraction;
} decimal;

/* Reads a JSON number; false if it is too long written out. */
static bool read_decimal(decimal *out, const char *text)
{
    char digits[DIGITS_MAX + 1];
    int32_t n = 0, point = -1;
    *out = (decimal){.negative = *text == '-'};
    for (text += out->negative; *text && *text != 'e' && *text != 'E'; text++) {
        if (*text == '.') {
            point = n;
        } else if (n < DIGITS_MAX) {
            digits[n++] = *text;
        } else {
            return false;
        }
    }
    const long exponent = *text ? strtol(text + 1, NULL, 10) : 0;
    if (exponent < -DIGITS_MAX || exponent > DIGITS_MAX) {
        return false;
    }
    point = (point < 0 ? n : point) + (int32_t)exponent; /* the digits before the point */
    for (int32_t i = point < 0 ? point : 0; i < n || i < point; i++) {
        const char digit = i >= 0 && i < n ? digits[i] : '0';
        if (i < point && (digit != '0' || out->n_whole)) {
            if (out->n_whole == DIGITS_MAX) {
                return false;
            }
            out->whole[out->n_whole++] = digit;
        } else if (i >= point) {
            if (out->n_fraction == DIGITS_MAX) {
                return false;
            }
            out->fraction[out->n_fraction++] = digit;
        }
    }
    if (out->n_whole == 0) {
        out->whole[out->n_whole++] = '0';
    }
    while (out->n_fraction && out->fraction[out->n_fraction - 1] == '0') {
        out->n_fraction--;
    }
    return true;
}

enum { LESS = 1, EQUAL = 2, GREATER = 4 };

static int mirror(int relations)
{
    return (relations & EQUAL) | (relations & LESS ? GREATER : 0) | (relations & GREATER ? LESS : 0);
}

static void add_digits(nfa *n, int32_t from, int32_t to, char lo, char hi)
{
    if (lo <= hi) {
        nfa_add_char(n, from, to, (uint32_t)lo, (uint32_t)hi, CHARS_RAW);
    }
}

/* All decimal numbers (no exponent) from `from` on, digits of a magnitude, that stand to the
 * magnitude of `bound` in one of the relations. Leading zeros are not its business. */
static void compare_magnitude(nfa *n, int32_t from, const decimal *bound, int relations)
{
    const int32_t len = bound->n_whole;
    /* the fraction behind a whole part that decides */
    int32_t less = nfa_state(n), greater = nfa_state(n), longer = nfa_state(n);
    add_digits(n, less, less, '0', '9');
    add_digits(n, greater, greater, '0', '9');
    add_digits(n, longer, longer, '0', '9');
    nfa_add_char(n, longer, greater, '.', '.', CHARS_RAW);
    if (relations & LESS) {
        nfa_link(n, less, NFA_END, NFA_SKIP);
    }
    if (relations & GREATER) {
        nfa_link(n, greater, NFA_END, NFA_SKIP);
        nfa_link(n, longer, NFA_END, NFA_SKIP);
    }
    /* the whole part: as many digits as the bound's, fewer, or more */
    int32_t below = GRAMMAR_NEVER, same = from, above = GRAMMAR_NEVER;
    for (int32_t k = 0; k < len; k++) {
        const int32_t next_below = nfa_state(n), next_same = nfa_state(n), next_above = nfa_state(n);
        const char digit = bound->whole[k];
        add_digits(n, same, next_below, '0', (char)(digit - 1));
        add_digits(n, same, next_same, digit, digit);
        add_digits(n, same, next_above, (char)(digit + 1), '9');
        if (k > 0) {
            add_digits(n, below, next_below, '0', '9');
            add_digits(n, above, next_above, '0', '9');
        }
        below = next_below;
        same = next_same;
        above = next_above;
        const bool all = k + 1 == len;
        const int32_t ends[] = {below, same, above};
        for (int32_t i = 0; i < 3; i++) {
            const int relation = !all || i == 0 ? LESS : i == 2 ? GREATER : bound->n_fraction ? LESS : EQUAL;
            if (relations & relation) {
                nfa_link(n, ends[i], NFA_END, NFA_SKIP);
            }
            if (all) {
                add_digits(n, ends[i], longer, '0', '9');
            }
            if (!all || i != 1) {
                nfa_add_char(n, ends[i], !all || i == 0 ? less : greater, '.', '.', CHARS_RAW);
            }
        }
    }
    /* the fraction where the whole parts are equal */
    int32_t equal = nfa_state(n);
    nfa_add_char(n, same, equal, '.', '.', CHARS_RAW);
    for (int32_t k = 0; k < bound->n_fraction; k++) {
        const int32_t next = nfa_state(n);
        const char digit = bound->fraction[k];
        if (relations & LESS) {
            nfa_link(n, equal, NFA_END, NFA_SKIP);
        }
        add_digits(n, equal, less, '0', (char)(digit - 1));
        add_digits(n, equal, next, digit, digit);
        add_digits(n, equal, greater, (char)(digit + 1), '9');
        equal = next;
    }
    if (relations & EQUAL) {
        nfa_link(n, equal, NFA_END, NFA_SKIP);
    }
    add_digits(n, equal, equal, '0', '0');
    add_digits(n, equal, greater, '1', '9');
}

/* Every magnitude. */
static void any_magnitude(nfa *n, int32_t from)
{
    const int32_t digits = nfa_state(n), fraction = nfa_state(n);
    add_digits(n, from, digits, '0', '9');
    add_digits(n, digits, digits, '0', '9');
    nfa_link(n, digits, NFA_END, NFA_SKIP);
    nfa_add_char(n, digits, fraction, '.', '.', CHARS_RAW);
    add_digits(n, fraction, fraction, '0', '9');
    nfa_link(n, fraction, NFA_END, NFA_SKIP);
}

/* Decimal numbers that stand to the bound in one of the relations. */
static err_code compare_number(schema_compiler *c, dfa *out, const decimal *bound, int relations)
{
    nfa n;
    nfa_init(&n, c->work);
    const int32_t minus = nfa_state(&n);
    const bool is_zero = bound->n_fraction == 0 && bound->whole[0] == '0';
    nfa_add_char(&n, NFA_START, minus, '-', '-', CHARS_RAW);
    if (!bound->negative || is_zero) {
        compare_magnitude(&n, NFA_START, bound, relations);
    } else if (relations & GREATER) {
        any_magnitude(&n, NFA_START);
    }
    if (bound->negative || is_zero) {
        compare_magnitude(&n, minus, bound, mirror(relations));
    } else if (relations & LESS) {
        any_magnitude(&n, minus);
    }
    return nfa_determinize(&n, out, "a bound", c->detail);
}

/* Numbers within the bounds, written without an exponent. So that a reader's rounding to binary
 * cannot carry one over a bound, there are at most 15 digits where it matters. */
static void number_within(schema_compiler *c, dfa *all, const merged *m)
{
    static const char *const KEYWORDS[2][2] = {{"minimum", "exclusiveMinimum"},
                                               {"maximum", "exclusiveMaximum"}};
    char form[96];
    int32_t n_whole = 1, n_fraction = 0;
    decimal bounds[SCHEMA_BOUNDS_MAX];
    for (size_t i = 0; i < m->n_bounds; i++) {
        if (!read_decimal(&bounds[i], m->bounds[i].number)) {
            schema_refuse(c, m->number_at, KEYWORDS[m->bounds[i].is_max][m->bounds[i].exclusive],
                          ERR_UNSUPPORTED, "the bound %s has too many digits", m->bounds[i].number);
        }
        n_whole = bounds[i].n_whole > n_whole ? bounds[i].n_whole : n_whole;
        n_fraction = bounds[i].n_fraction > n_fraction ? bounds[i].n_fraction : n_fraction;
    }
    if (m->types & TYPE_FRACTION) {
        const int32_t left = 15 - n_whole > n_fraction ? 15 - n_whole : n_fraction;
        snprintf(form, sizeof form, "^-?(0|[1-9][0-9]{0,%d})(\\.[0-9]{1,%d})?$", n_whole > 14 ? n_whole : 14,
                 left > 0 ? left : 1);
    } else {
        snprintf(form, sizeof form, "^(0|-?[1-9][0-9]{0,%d})$", n_whole > 17 ? n_whole : 17);
    }
    narrow(c, all, form, true, DFA_AND);
    for (size_t i = 0; i < m->n_bounds && c->err == ERR_OK; i++) {
        dfa one = {0};
        const int relations = (m->bounds[i].is_max ? LESS : GREATER) | (m->bounds[i].exclusive ? 0 : EQUAL);
        c->err = compare_number(c, &one, &bounds[i], relations);
        if (c->err == ERR_OK) {
            combine(c, all, &one, DFA_AND, "a range");
        }
    }
}

int32_t schema_number(schema_compiler *c, const merged *m)
{
    static const char NUMBER[] = "^-?(0|[1-9][0-9]{0,14})(\\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?$";
    static const char INTEGER[] = "^(0|-?[1-9][0-9]{0,17})$";
    const bool fraction = m->types & TYPE_FRACTION;
    int32_t unused = 0, *known = m->n_bounds ? &unused : fraction ? &c->number : &c->integer;
    dfa all = {0};
    if (m->n_bounds) {
        number_within(c, &all, m);
    } else if (!*known) {
        narrow(c, &all, fraction ? NUMBER : INTEGER, true, DFA_AND);
    }
    if (c->err != ERR_OK) {
        dfa_free(&all);
    } else if (!*known) {
        *known = grammar_automaton(c->g, &all);
    }
    return *known;
}

/* ---- enums ---- */

/* What the other keywords leave of texts and numbers; made when it is first asked for. */
typedef struct value_rules {
    dfa texts, numbers; /* without states: every one */
    bool has_texts, has_numbers;
} value_rules;

/* Whether a text or number of an enum satisfies the other keywords. */
static bool value_fits(schema_compiler *c, value_rules *rules, const merged *m, const json *value)
{
    const bool is_text = json_is(value, JSON_STRING);
    const char *text = is_text ? json_str(value, "") : json_number_text(value);
    if (is_text && !rules->has_texts) {
        rules->has_texts = true;
        narrow_by_form(c, m, &rules->texts, true);
    } else if (!is_text && text && m->n_bounds && !rules->has_numbers) {
        rules->has_numbers = true;
        number_within(c, &rules->numbers, m);
    }
    if (!text || c->err != ERR_OK) {
        return true;
    }
    int32_t n_chars = 0;
    const dfa *all = is_text ? &rules->texts : &rules->numbers;
    const size_t len = strlen(text);
    for (size_t i = 0; i < len; i++) {
        n_chars += ((uint8_t)text[i] & 0xc0) != 0x80;
    }
    c->err = work_do(c->work, len) ? ERR_OK : work_error(c->work);
    return (!is_text || (m->min_length <= n_chars && n_chars <= m->max_length)) &&
           (!all->next || dfa_accepts(all, text, len));
}

/* A given value; lists and objects may be spaced like others. `depth` of the request's JSON bounds
 * the recursion. */
static int32_t value_node(schema_compiler *c, const json *value)
{
    bytes text;
    const bool list = json_is(value, JSON_ARRAY);
    if (json_is(value, JSON_STRING)) {
        return schema_quoted(c, json_str(value, ""));
    }
    if (!json_child(value)) {
        bytes_init(&text, LIMIT_VALUE_BYTES);
        json_write(&text, value);
        const int32_t node = written_node(c, &text);
        bytes_deinit(&text);
        return node;
    }
    int32_t all = GRAMMAR_EMPTY;
    for (const json *v = json_child(value); v; v = json_next(v)) {
        const int32_t parts[] = {all, all == GRAMMAR_EMPTY ? GRAMMAR_EMPTY : schema_comma(c),
                                 list ? GRAMMAR_EMPTY : schema_quoted(c, json_key(v)),
                                 list ? GRAMMAR_EMPTY : schema_colon(c), value_node(c, v)};
        all = grammar_sequence(c->g, parts, 5);
    }
    const int32_t parts[] = {grammar_text(c->g, list ? "[" : "{", 1), grammar_space(c->g), all,
                             grammar_space(c->g), grammar_text(c->g, list ? "]" : "}", 1)};
    return grammar_sequence(c->g, parts, 5);
}

int schema_compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

enum { TEXT_STEPS = 40 };

/* Texts, sorted here, as an automaton in which beginnings are shared: an enum may hold
 * thousands. */
static err_code texts_automaton(schema_compiler *c, dfa *out, const char **texts, size_t n)
{
    nfa trie;
    size_t longest = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t len = strlen(texts[i]);
        longest = len > longest ? len : longest;
        (void)work_do(c->work, TEXT_STEPS + len); /* the sorting */
    }
    int32_t *path = malloc((longest + 1) * sizeof *path); /* the states of the last text */
    if (!path) {
        return err_set(c->detail, ERR_NOMEM, "no memory for an enum");
    }
    nfa_init(&trie, c->work);
    qsort(texts, n, sizeof *texts, schema_compare_texts);
    path[0] = nfa_state(&trie);
    nfa_link(&trie, NFA_START, path[0], NFA_SKIP);
    for (size_t i = 0; i < n && !trie.too_big; i++) {
        size_t shared = 0;
        while (i > 0 && texts[i][shared] && texts[i][shared] == texts[i - 1][shared]) {
            shared++;
        }
        const size_t len = strlen(texts[i]);
        for (size_t k = shared; k < len; k++) {
            path[k + 1] = nfa_state(&trie);
            nfa_add_bytes(&trie, path[k], path[k + 1], texts[i] + k, 1);
        }
        nfa_link(&trie, path[len], NFA_END, NFA_SKIP);
    }
    free(path);
    return nfa_determinize(&trie, out, "enum", c->detail);
}

/* The texts of an enum, written as the form wants it; *texts is taken from the arena. */
static bool write_texts(schema_compiler *c, const char **texts, const merged *m, const bool *fits, bool raw,
                        size_t *n)
{
    bytes out = bytes_empty(LIMIT_VALUE_BYTES);
    bool ok = true;
    *n = 0;
    for (size_t i = 0; i < m->n_values && ok; i++) {
        const char *text = json_str(m->values[i], NULL);
        if (!text || !fits[i] || (raw && strstr(text, c->close))) {
            continue;
        }
        bytes_clear(&out);
        bytes_append_str(&out, raw ? "" : "\"");
        if (raw) {
            bytes_append_str(&out, text);
        } else {
            append_written(&out, text);
            bytes_append_char(&out, '"');
        }
        texts[*n] = arena_strdup(grammar_arena(c->g), bytes_str(&out), out.len);
        ok = !out.failed && texts[*n];
        *n += 1;
    }
    grammar_note_text(c->g, &out);
    bytes_deinit(&out);
    return ok;
}

int32_t schema_values(schema_compiler *c, const merged *m, bool raw)
{
    arena *a = grammar_arena(c->g);
    bool *fits = arena_calloc(a, m->n_values + 1, sizeof *fits);
    const char **texts = arena_calloc(a, m->n_values + 1, sizeof *texts);
    int32_t *choices = arena_calloc(a, m->n_values + 1, sizeof *choices);
    size_t n_texts = 0, n = 0;
    dfa all = {0};
    value_rules rules = {0};
    if (!fits || !texts || !choices) {
        schema_refuse(c, m->values_at, "enum", ERR_LIMIT, "its values take more than %zu MiB",
                      LIMIT_GRAMMAR_BYTES >> 20);
        return GRAMMAR_NEVER;
    }
    for (size_t i = 0; i < m->n_values && c->err == ERR_OK; i++) {
        const json *value = m->values[i];
        if (m->beyond_type && (json_is(value, JSON_OBJECT) || json_is(value, JSON_ARRAY))) {
            schema_refuse(c, m->values_at, "enum", ERR_UNSUPPORTED,
                          "lists and objects in enum or const are not supported beside other keywords");
        }
        fits[i] = !m->beyond_type || value_fits(c, &rules, m, value);
        if (c->err == ERR_OK && fits[i] && !json_is(value, JSON_STRING)) {
            choices[n++] = schema_closed(c, value_node(c, value), raw);
        }
    }
    dfa_free(&rules.texts);
    dfa_free(&rules.numbers);
    if (c->err == ERR_OK && !write_texts(c, texts, m, fits, raw, &n_texts)) {
        schema_refuse(c, m->values_at, "enum", ERR_LIMIT,
                      "a text has more than %d bytes, or all of them more than %zu MiB", LIMIT_VALUE_BYTES,
                      LIMIT_GRAMMAR_BYTES >> 20);
    }
    if (c->err == ERR_OK && n_texts == 1) {
        choices[n++] = schema_closed(c, grammar_text(c->g, texts[0], strlen(texts[0])), raw);
    } else if (c->err == ERR_OK && n_texts > 1) {
        c->err = texts_automaton(c, &all, texts, n_texts);
        choices[n++] = c->err ? GRAMMAR_NEVER : schema_closed(c, grammar_automaton(c->g, &all), raw);
    }
    return grammar_choice(c->g, choices, n);
}

int32_t schema_other_key(schema_compiler *c, const char *const *names, size_t n)
{
    dfa any = {0}, known = {0}, other = {0};
    const char **texts = arena_calloc(grammar_arena(c->g), n + 1, sizeof *texts);
    bytes out = bytes_empty(LIMIT_VALUE_BYTES);
    bool ok = texts != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        bytes_clear(&out);
        append_written(&out, names[i]);
        texts[i] = arena_strdup(grammar_arena(c->g), bytes_str(&out), out.len);
        ok = !out.failed && texts[i];
    }
    grammar_note_text(c->g, &out);
    bytes_deinit(&out);
    c->err = ok || c->err ? c->err : err_set(c->detail, ERR_LIMIT, "the schema is too large");
    narrow(c, &any, "^[\\s\\S]*$", false, DFA_AND);
    c->err = c->err ? c->err : texts_automaton(c, &known, texts, n);
    c->err = c->err ? c->err
                    : dfa_combine(&other, &any, &known, DFA_AND_NOT, "the names of other properties", c->work,
                                  c->detail);
    const int32_t node = c->err ? GRAMMAR_NEVER : quoted_automaton(c, &other);
    dfa_free(&any);
    dfa_free(&known);
    dfa_free(&other);
    return node;
}
