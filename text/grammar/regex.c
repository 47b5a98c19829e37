#include "text/grammar/regex.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hex.h"
#include "base/limits.h"
#include "base/utf8.h"

/* A pattern becomes a tree first, because a counted group is written out several times. */

typedef struct range {
    uint32_t lo, hi;
} range;

typedef enum part_kind {
    PART_EMPTY,
    PART_CHARS,
    PART_CAT,
    PART_ALT,
    PART_REPEAT,
    PART_BEGIN,
    PART_END
} part_kind;

typedef struct part {
    part_kind kind;
    range *ranges; /* PART_CHARS: ascending, apart */
    size_t n_ranges;
    struct part *a, *b; /* CAT, ALT; REPEAT: a */
    int32_t min, max;   /* REPEAT; max < 0: no end */
} part;

enum {
    MAX_CODE = 0x10ffff,
    PATTERN_DEPTH = 50,
    REPEAT_MAX = 2000,
    CLASS_RANGES = 512,
    ARENA_BYTES = 16 << 20
};

typedef struct parser {
    const char *text;
    size_t len, pos;
    int depth;
    arena *arena;
    err_code err;
    err_detail *detail;
} parser;

static part *refuse(parser *p, err_code code, const char *what)
{
    if (p->err == ERR_OK) {
        p->err = err_set(p->detail, code, "pattern: %s at character %zu", what, p->pos + 1);
    }
    return NULL;
}

static part *no_room(parser *p)
{
    return arena_lacked_memory(p->arena) ? refuse(p, ERR_NOMEM, "there is no memory for it")
                                         : refuse(p, ERR_LIMIT, "it is too large");
}

static part *new_part(parser *p, part_kind kind, part *a, part *b)
{
    part *made = arena_calloc(p->arena, 1, sizeof *made);
    if (!made) {
        return no_room(p);
    }
    made->kind = kind;
    made->a = a;
    made->b = b;
    return made;
}

/* ---- sets of characters ---- */

typedef struct char_set {
    range ranges[CLASS_RANGES];
    size_t n;
    bool full;
} char_set;

static void set_add(char_set *s, uint32_t lo, uint32_t hi)
{
    if (s->n == CLASS_RANGES) {
        s->full = true;
        return;
    }
    s->ranges[s->n++] = (range){lo, hi};
}

static int compare_ranges(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

static void set_sort(char_set *s)
{
    qsort(s->ranges, s->n, sizeof *s->ranges, compare_ranges);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (n && s->ranges[i].lo <= s->ranges[n - 1].hi + 1) {
            range *last = &s->ranges[n - 1];
            last->hi = s->ranges[i].hi > last->hi ? s->ranges[i].hi : last->hi;
        } else {
            s->ranges[n++] = s->ranges[i];
        }
    }
    s->n = n;
}

/* Adds what is not in s to out. */
static void set_add_complement(char_set *out, char_set *s)
{
    uint32_t from = 0;
    set_sort(s);
    for (size_t i = 0; i < s->n; i++) {
        if (s->ranges[i].lo > from) {
            set_add(out, from, s->ranges[i].lo - 1);
        }
        from = s->ranges[i].hi + 1;
    }
    if (from <= MAX_CODE) {
        set_add(out, from, MAX_CODE);
    }
    out->full = out->full || s->full;
}

/* \d \w \s in either case; false for another letter. */
static bool set_add_class(char_set *s, char letter)
{
    static const range DIGITS[] = {{'0', '9'}}, WORD[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                       SPACE[] = {{9, 13},          {0x20, 0x20},     {0xa0, 0xa0},     {0x1680, 0x1680},
                                  {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                                  {0x3000, 0x3000}, {0xfeff, 0xfeff}};
    static const struct {
        char letter;
        const range *ranges;
        size_t n;
    } CLASSES[] = {{'d', DIGITS, 1}, {'w', WORD, 4}, {'s', SPACE, sizeof SPACE / sizeof SPACE[0]}};
    for (size_t i = 0; i < 3; i++) {
        if ((letter | 0x20) != CLASSES[i].letter) {
            continue;
        }
        char_set own = {.n = 0};
        for (size_t k = 0; k < CLASSES[i].n; k++) {
            set_add(letter == CLASSES[i].letter ? s : &own, CLASSES[i].ranges[k].lo, CLASSES[i].ranges[k].hi);
        }
        if (letter != CLASSES[i].letter) {
            set_add_complement(s, &own);
        }
        return true;
    }
    return false;
}

/* ---- the parser ---- */

static int peek(const parser *p)
{
    return p->pos < p->len ? (unsigned char)p->text[p->pos] : -1;
}

static bool take(parser *p, char c)
{
    if (peek(p) != c) {
        return false;
    }
    p->pos++;
    return true;
}

static uint32_t take_char(parser *p)
{
    uint32_t c = 0;
    p->pos += utf8_decode(p->text + p->pos, p->len - p->pos, &c);
    return c;
}

static bool take_hex(parser *p, int digits, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < digits; i++) {
        const int digit = p->pos < p->len ? hex_digit(p->text[p->pos]) : -1;
        if (digit < 0) {
            return false;
        }
        *out = *out << 4 | (uint32_t)digit;
        p->pos++;
    }
    return true;
}

/* \uXXXX (a pair for characters above U+FFFF) or \u{X...}, behind the u. */
static bool take_unicode(parser *p, uint32_t *out)
{
    if (take(p, '{')) {
        uint32_t digit;
        *out = 0;
        do {
            if (!take_hex(p, 1, &digit)) {
                return false;
            }
            *out = *out << 4 | digit;
        } while (*out <= MAX_CODE && peek(p) != '}');
        return take(p, '}') && *out <= MAX_CODE;
    }
    uint32_t low;
    if (!take_hex(p, 4, out)) {
        return false;
    }
    if (*out >= 0xd800 && *out < 0xdc00 && peek(p) == '\\') {
        p->pos++;
        if (!take(p, 'u') || !take_hex(p, 4, &low) || low < 0xdc00 || low > 0xdfff) {
            return false;
        }
        *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    }
    return true;
}

/* The escape behind a backslash: a class into *set (true in *is_class), or one character. */
static bool take_escape(parser *p, char_set *set, uint32_t *c, bool *is_class)
{
    static const char NAMED[] = "tnrfv0", VALUE[] = "\t\n\r\f\v";
    *is_class = false;
    const int letter = peek(p);
    if (letter < 0) {
        refuse(p, ERR_INVALID, "a backslash ends it");
        return false;
    }
    if (set_add_class(set, (char)letter)) {
        p->pos++;
        *is_class = true;
        return true;
    }
    const char *named = strchr(NAMED, letter);
    if (named) {
        p->pos++;
        *c = letter == '0' ? 0 : (uint32_t)VALUE[named - NAMED];
        return true;
    }
    if (letter == 'x' || letter == 'u') {
        p->pos++;
        const bool ok = letter == 'x' ? take_hex(p, 2, c) : take_unicode(p, c);
        return ok || refuse(p, ERR_INVALID, "an escape is not complete");
    }
    if ((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
        (letter >= '0' && letter <= '9')) {
        refuse(p, ERR_UNSUPPORTED, "\\b, \\p, \\k and back references are not supported;");
        return false;
    }
    *c = take_char(p);
    return true;
}

static part *make_chars(parser *p, char_set *s)
{
    set_sort(s);
    part *made = new_part(p, PART_CHARS, NULL, NULL);
    if (!made) {
        return NULL;
    }
    made->ranges = arena_calloc(p->arena, s->n + 1, sizeof *made->ranges);
    if (!made->ranges) {
        return no_room(p);
    }
    if (s->full) {
        return refuse(p, ERR_LIMIT, "a class has too many ranges");
    }
    memcpy(made->ranges, s->ranges, s->n * sizeof *s->ranges);
    made->n_ranges = s->n;
    return made;
}

/* One character of a class; *is_class if it was \d or the like. */
static bool take_class_char(parser *p, char_set *set, uint32_t *c, bool *is_class)
{
    *is_class = false;
    if (take(p, '\\')) {
        if (peek(p) == 'b') {
            p->pos++;
            *c = '\b';
            return true;
        }
        if (take(p, '-')) {
            *c = '-';
            return true;
        }
        return take_escape(p, set, c, is_class);
    }
    if (peek(p) < 0) {
        refuse(p, ERR_INVALID, "a class is not closed");
        return false;
    }
    *c = take_char(p);
    return true;
}

/* A class, behind its [. */
static part *parse_class(parser *p)
{
    char_set set = {.n = 0}, inverse = {.n = 0};
    const bool negated = take(p, '^');
    while (!take(p, ']')) {
        uint32_t lo = 0, hi = 0;
        bool lo_is_class, hi_is_class;
        if (!take_class_char(p, &set, &lo, &lo_is_class)) {
            return NULL;
        }
        hi = lo;
        if (peek(p) == '-' && p->pos + 1 < p->len && p->text[p->pos + 1] != ']') {
            p->pos++;
            if (!take_class_char(p, &set, &hi, &hi_is_class)) {
                return NULL;
            }
            if (lo_is_class || hi_is_class || hi < lo) {
                return refuse(p, ERR_INVALID, "a class holds a range that is none");
            }
        }
        if (!lo_is_class) {
            set_add(&set, lo, hi);
        }
    }
    if (negated) {
        set_add_complement(&inverse, &set);
    }
    return make_chars(p, negated ? &inverse : &set);
}

static part *parse_alternatives(parser *p);

/* A group, behind its (. */
static part *parse_group(parser *p)
{
    if (take(p, '?')) {
        const bool named = peek(p) == '<' && p->pos + 1 < p->len && !strchr("=!", p->text[p->pos + 1]);
        if (named) {
            while (peek(p) >= 0 && !take(p, '>')) {
                p->pos++;
            }
        } else if (!take(p, ':')) {
            return refuse(p, ERR_UNSUPPORTED, "look-ahead and look-behind are not supported;");
        }
    }
    if (++p->depth > PATTERN_DEPTH) {
        return refuse(p, ERR_LIMIT, "groups are nested too deeply");
    }
    part *inner = parse_alternatives(p);
    p->depth--;
    return inner && !take(p, ')') ? refuse(p, ERR_INVALID, "a group is not closed") : inner;
}

static part *parse_atom(parser *p)
{
    char_set set = {.n = 0}, inverse = {.n = 0};
    uint32_t c = 0;
    bool is_class;
    switch (peek(p)) {
    case '^':
    case '$':
        return new_part(p, p->text[p->pos++] == '^' ? PART_BEGIN : PART_END, NULL, NULL);
    case '(':
        p->pos++;
        return parse_group(p);
    case '[':
        p->pos++;
        return parse_class(p);
    case '.':
        p->pos++;
        set_add(&set, '\n', '\n');
        set_add(&set, '\r', '\r');
        set_add(&set, 0x2028, 0x2029);
        set_add_complement(&inverse, &set);
        return make_chars(p, &inverse);
    case '*':
    case '+':
    case '?':
    case '{':
    case '}':
    case ']':
        return refuse(p, ERR_INVALID, "a special character stands without a backslash");
    case '\\':
        p->pos++;
        if (!take_escape(p, &set, &c, &is_class)) {
            return NULL;
        }
        if (is_class) {
            return make_chars(p, &set);
        }
        break;
    default:
        c = take_char(p);
    }
    set_add(&set, c, c);
    return make_chars(p, &set);
}

static bool take_count(parser *p, int32_t *out)
{
    const size_t begin = p->pos;
    *out = 0;
    while (peek(p) >= '0' && peek(p) <= '9' && *out <= REPEAT_MAX) {
        *out = *out * 10 + (p->text[p->pos++] - '0');
    }
    return p->pos > begin;
}

static part *parse_repeated(parser *p)
{
    part *atom = parse_atom(p);
    if (!atom) {
        return NULL;
    }
    int32_t min = 0, max = -1;
    if (take(p, '+')) {
        min = 1;
    } else if (take(p, '?')) {
        max = 1;
    } else if (take(p, '{')) {
        bool ok = take_count(p, &min);
        max = min;
        if (ok && take(p, ',') && !take_count(p, &max)) {
            max = -1;
        }
        if (!ok || !take(p, '}') || (max >= 0 && max < min)) {
            return refuse(p, ERR_INVALID, "a count in braces is wrong");
        }
        if (min > REPEAT_MAX || max > REPEAT_MAX) {
            return refuse(p, ERR_LIMIT, "a count in braces is above 2000");
        }
    } else if (!take(p, '*')) {
        return atom;
    }
    (void)take(p, '?'); /* lazy: the same language */
    part *made = new_part(p, PART_REPEAT, atom, NULL);
    if (made) {
        made->min = min;
        made->max = max;
    }
    return made;
}

static part *parse_alternatives(parser *p)
{
    part *all = NULL;
    do {
        part *sequence = new_part(p, PART_EMPTY, NULL, NULL);
        while (sequence && peek(p) >= 0 && peek(p) != '|' && peek(p) != ')') {
            part *next = parse_repeated(p);
            sequence =
                next ? sequence->kind == PART_EMPTY ? next : new_part(p, PART_CAT, sequence, next) : NULL;
        }
        all = sequence && all ? new_part(p, PART_ALT, all, sequence) : sequence;
    } while (all && take(p, '|'));
    return all;
}

/* ---- the automaton ---- */

static void emit(nfa *n, const part *x, int32_t from, int32_t to, nfa_chars chars);

static void emit_repeat(nfa *n, const part *x, int32_t from, int32_t to, nfa_chars chars)
{
    for (int32_t i = 0; i < x->min && !n->too_big; i++) {
        int32_t next = nfa_state(n);
        emit(n, x->a, from, next, chars);
        from = next;
    }
    if (x->max < 0) {
        int32_t loop = nfa_state(n);
        nfa_link(n, from, loop, NFA_SKIP);
        emit(n, x->a, loop, loop, chars);
        from = loop;
    }
    for (int32_t i = x->min; i < x->max && !n->too_big; i++) {
        int32_t next = nfa_state(n);
        nfa_link(n, from, to, NFA_SKIP);
        emit(n, x->a, from, next, chars);
        from = next;
    }
    nfa_link(n, from, to, NFA_SKIP);
}

static void emit(nfa *n, const part *x, int32_t from, int32_t to, nfa_chars chars)
{
    int32_t middle;
    if (n->too_big) {
        return;
    }
    switch (x->kind) {
    case PART_EMPTY:
        nfa_link(n, from, to, NFA_SKIP);
        break;
    case PART_BEGIN:
        nfa_link(n, from, to, NFA_AT_BEGIN);
        break;
    case PART_END:
        nfa_link(n, from, to, NFA_AT_END);
        break;
    case PART_CHARS:
        for (size_t i = 0; i < x->n_ranges; i++) {
            nfa_add_char(n, from, to, x->ranges[i].lo, x->ranges[i].hi, chars);
        }
        break;
    case PART_CAT: /* leans to the left: as deep as the pattern is long at most (LIMIT_PATTERN_BYTES) */
        middle = nfa_state(n);
        emit(n, x->a, from, middle, chars);
        emit(n, x->b, middle, to, chars);
        break;
    case PART_ALT:
        emit(n, x->a, from, to, chars);
        emit(n, x->b, from, to, chars);
        break;
    case PART_REPEAT:
        emit_repeat(n, x, from, to, chars);
        break;
    }
}

err_code regex_compile(dfa *out, const char *pattern, size_t len, nfa_chars chars, work_count *work,
                       err_detail *detail)
{
    *out = (dfa){0};
    if (len > LIMIT_PATTERN_BYTES) {
        return err_set(detail, ERR_LIMIT, "pattern has %zu bytes; at most %d are allowed", len,
                       LIMIT_PATTERN_BYTES);
    }
    parser p = {.text = pattern, .len = len, .arena = arena_create(ARENA_BYTES), .detail = detail};
    if (!p.arena) {
        return err_set(detail, ERR_NOMEM, "no memory for a pattern");
    }
    part *root = parse_alternatives(&p);
    if (root && p.pos < len) {
        root = refuse(&p, ERR_INVALID, "a group is closed that was not opened");
    }
    err_code err = p.err;
    if (root) {
        nfa n;
        nfa_init(&n, work);
        int32_t begin = nfa_state(&n), end = nfa_state(&n);
        nfa_link(&n, NFA_START, begin, NFA_SKIP);
        nfa_add_char(&n, NFA_START, NFA_START, 0, MAX_CODE, chars);
        emit(&n, root, begin, end, chars);
        nfa_link(&n, end, NFA_END, NFA_SKIP);
        nfa_add_char(&n, NFA_END, NFA_END, 0, MAX_CODE, chars);
        err = nfa_determinize(&n, out, "pattern", detail);
    }
    arena_destroy(p.arena);
    return err;
}
