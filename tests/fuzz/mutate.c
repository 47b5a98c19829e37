#include "tests/fuzz/mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hex.h"

/* ---- edits ---- */

edit edit_begin(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return (edit){data, size, max, (seed + 1) * 0x9E3779B97F4A7C15u};
}

size_t edit_below(edit *e, size_t n)
{
    e->random ^= e->random >> 12; /* xorshift64* */
    e->random ^= e->random << 25;
    e->random ^= e->random >> 27;
    return (size_t)(e->random * 0x2545F4914F6CDD1Du >> 32) % n;
}

void edit_splice(edit *e, size_t from, size_t to, const void *text, size_t n)
{
    if (e->size - (to - from) + n > e->max) {
        return;
    }
    uint8_t *copy = malloc(n + 1);
    if (!copy) {
        abort();
    }
    if (n > 0) {
        memcpy(copy, text, n);
    }
    memmove(e->data + from + n, e->data + to, e->size - to);
    memcpy(e->data + from, copy, n);
    e->size = e->size - (to - from) + n;
    free(copy);
}

void edit_part(edit *e, size_t from, size_t to, mutate_function *inner, const char *dictionary)
{
    const size_t n = to - from, cap = n + (e->max - e->size);
    uint8_t *part = malloc(cap + 1);
    if (!part) {
        abort();
    }
    if (n > 0) {
        memcpy(part, e->data + from, n);
    }
    const size_t changed = inner(part, n, cap, (unsigned)edit_below(e, UINT32_MAX), dictionary);
    edit_splice(e, from, to, part, changed);
    free(part);
}

static size_t plain(uint8_t *data, size_t size, size_t max, unsigned seed, const char *dictionary)
{
    (void)seed;
    (void)dictionary;
    return max > 0 ? LLVMFuzzerMutate(data, size, max) : 0;
}

void edit_bytes(edit *e, size_t from, size_t to)
{
    edit_part(e, from, to, plain, NULL);
}

size_t mutate_behind(size_t n, mutate_function *inner, uint8_t *data, size_t size, size_t max, unsigned seed,
                     const char *dictionary)
{
    edit e = edit_begin(data, size, max, seed);
    if (size <= n || edit_below(&e, 12) == 0) {
        return LLVMFuzzerMutate(data, size, max);
    }
    if (edit_below(&e, 8) == 0) {
        e.data[edit_below(&e, n)] = (uint8_t)edit_below(&e, 256);
    }
    edit_part(&e, n, e.size, inner, dictionary);
    return e.size;
}

size_t mutate_first_part(const uint8_t *data, size_t size)
{
    const size_t n = data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16 | (size_t)data[3] << 24;
    return n < size - MUTATE_LENGTH ? n : size - MUTATE_LENGTH;
}

size_t mutate_two_parts(size_t turns, mutate_function *inner, uint8_t *data, size_t size, size_t max,
                        unsigned seed, const char *dictionary)
{
    edit e = edit_begin(data, size, max, seed);
    if (size <= MUTATE_LENGTH || edit_below(&e, 50) == 0) {
        return LLVMFuzzerMutate(data, size, max);
    }
    size_t n = mutate_first_part(data, size);
    if (edit_below(&e, turns) == 0 && MUTATE_LENGTH + n < size) {
        edit_part(&e, MUTATE_LENGTH + n, size, inner, dictionary);
        return e.size;
    }
    edit_part(&e, MUTATE_LENGTH, MUTATE_LENGTH + n, inner, dictionary);
    n += e.size - size;
    for (int i = 0; i < MUTATE_LENGTH; i++) {
        data[i] = (uint8_t)(n >> 8 * i);
    }
    return e.size;
}

size_t mutate_first_each(size_t (*inner)(uint8_t *, size_t, size_t, unsigned), uint8_t *data, size_t size,
                         size_t max, unsigned number)
{
    if (size <= MUTATE_LENGTH) {
        return MUTATE_NO_MORE;
    }
    edit e = edit_begin(data, size, max, 0);
    const size_t n = mutate_first_part(data, size), cap = n + max - size;
    uint8_t *part = malloc(cap + 1);
    if (!part) {
        abort();
    }
    memcpy(part, data + MUTATE_LENGTH, n);
    const size_t changed = inner(part, n, cap, number);
    if (changed != MUTATE_NO_MORE && changed > 0) {
        edit_splice(&e, MUTATE_LENGTH, MUTATE_LENGTH + n, part, changed);
        for (int i = 0; i < MUTATE_LENGTH; i++) {
            data[i] = (uint8_t)(changed >> 8 * i);
        }
    }
    free(part);
    return changed == MUTATE_NO_MORE || changed == 0 ? changed : e.size;
}

/* ---- dictionaries ---- */

enum { WORDS_MAX = 1024, WORD_BYTES_MAX = 256 };

typedef struct word {
    char text[WORD_BYTES_MAX];
    size_t n;
} word;

/* "text" with \\, \" and \xNN, as libFuzzer has it. */
static bool read_word(word *w, const char *p)
{
    for (p++; *p && *p != '"' && w->n + 1 < WORD_BYTES_MAX; p++) {
        if (*p != '\\') {
            w->text[w->n++] = *p;
        } else if (p[1] == 'x') {
            w->text[w->n++] = (char)hex_byte(p + 2);
            p += 3;
        } else {
            w->text[w->n++] = *++p;
        }
    }
    return w->n > 0;
}

static size_t read_words(word *words, const char *dictionary)
{
    char path[512];
    bytes text = bytes_empty(1 << 20);
    err_detail d = {0};
    size_t n = 0;
    snprintf(path, sizeof path, "%s/tests/fuzz/dictionaries/%s.dict", PARLEY_SOURCE_DIR, dictionary);
    if (file_read(&text, path, &d) != ERR_OK) {
        fprintf(stderr, "%s\n", d.text);
        abort();
    }
    char *rest = NULL;
    for (char *line = strtok_r(text.data, "\n", &rest); line && n < WORDS_MAX;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *quote = line[0] == '#' ? NULL : strchr(line, '"');
        n += quote && read_word(&words[n], quote) ? 1 : 0;
    }
    bytes_deinit(&text);
    return n;
}

const char *edit_word(edit *e, const char *dictionary, size_t *n)
{
    static word words[WORDS_MAX]; /* a program has one target, and that one dictionary */
    static size_t n_words;
    if (dictionary && n_words == 0) {
        n_words = read_words(words, dictionary);
    }
    const word *w = &words[n_words > 0 ? edit_below(e, n_words) : 0];
    *n = w->n;
    return w->text;
}

/* ---- texts ---- */

enum { CUTS_MAX = 4096 };

static bool is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c >= 0x80;
}

/* Where words begin, or lines; the last cut is the end. */
static size_t find_cuts(size_t *cuts, const edit *e, bool lines)
{
    size_t n = 0;
    for (size_t i = 0; i < e->size && n + 1 < CUTS_MAX; i++) {
        const bool begins =
            i == 0 || (lines ? e->data[i - 1] == '\n' : !is_word(e->data[i]) || !is_word(e->data[i - 1]));
        if (begins) {
            cuts[n++] = i;
        }
    }
    cuts[n] = e->size;
    return n;
}

static void change_words(edit *e, const char *dictionary)
{
    static size_t cuts[CUTS_MAX];
    enum { RUN = 6 };
    size_t len = 0;
    const size_t n = find_cuts(cuts, e, edit_below(e, 3) == 0);
    const size_t a = edit_below(e, n + 1), b = edit_below(e, n + 1);
    const size_t last = a + 1 + edit_below(e, RUN), from = cuts[a], to = cuts[last < n ? last : n];
    const char *text = edit_word(e, dictionary, &len);
    switch (edit_below(e, 8)) {
    case 0:
        edit_splice(e, from, to, "", 0);
        break;
    case 1:
    case 2:
        edit_splice(e, cuts[b], cuts[b], e->data + from, to - from);
        break;
    case 3:
        edit_splice(e, from, to, e->data + cuts[b], cuts[b < n ? b + 1 : n] - cuts[b]);
        break;
    case 4:
        edit_splice(e, from, to, text, len);
        break;
    case 5:
        edit_bytes(e, from, to);
        break;
    default:
        edit_splice(e, cuts[b], cuts[b], text, len);
        break;
    }
}

size_t mutate_words(uint8_t *data, size_t size, size_t max, unsigned seed, const char *dictionary)
{
    edit e = edit_begin(data, size, max, seed);
    if (max == 0 || edit_below(&e, 10) == 0) {
        return plain(data, size, max, seed, NULL);
    }
    for (size_t left = 1 + edit_below(&e, 4); left > 0; left--) {
        change_words(&e, dictionary);
    }
    return e.size;
}

size_t mutate_lines(uint8_t *data, size_t size, size_t max, unsigned seed, const char *dictionary)
{
    static size_t cuts[CUTS_MAX];
    edit e = edit_begin(data, size, max, seed);
    const size_t n = find_cuts(cuts, &e, true), i = n > 0 ? edit_below(&e, n) : 0;
    const uint8_t *begin = n > 0 ? memchr(data + cuts[i], '{', cuts[i + 1] - cuts[i]) : NULL;
    if (!begin || edit_below(&e, 4) == 0) {
        return mutate_words(data, size, max, seed, dictionary);
    }
    size_t to = cuts[i + 1];
    while (to > cuts[i] && (data[to - 1] == '\n' || data[to - 1] == '\r')) {
        to--;
    }
    edit_part(&e, (size_t)(begin - data), to, mutate_json, dictionary);
    return e.size;
}

/* ---- JSON ---- */

enum { NODES_MAX = 8192, DEPTH_MAX = 120 };

/* A value [from, to); of a member begin is where its name does, else from. */
typedef struct node {
    size_t begin, from, to;
} node;

typedef struct scan {
    const uint8_t *text;
    size_t n, at, n_nodes;
    node nodes[NODES_MAX];
} scan;

static uint8_t peek(scan *s)
{
    while (s->at < s->n && strchr(" \t\r\n", s->text[s->at]) && s->text[s->at]) {
        s->at++;
    }
    return s->at < s->n ? s->text[s->at] : 0;
}

static void skip_string(scan *s)
{
    for (s->at++; s->at < s->n && s->text[s->at] != '"'; s->at++) {
        s->at += s->text[s->at] == '\\' ? 1 : 0;
    }
    s->at = s->at < s->n ? s->at + 1 : s->n;
}

/* Reads a value and all in it; false behind something that is none. */
static bool scan_value(scan *s, size_t begin, int depth)
{
    const uint8_t first = peek(s);
    node v = {.begin = begin == SIZE_MAX ? s->at : begin, .from = s->at};
    if (first == '"') {
        skip_string(s);
    } else if ((first == '{' || first == '[') && depth < DEPTH_MAX) {
        s->at++;
        for (bool goes_on = true; goes_on && peek(s) && !strchr("]}", peek(s));) {
            size_t name = SIZE_MAX;
            if (first == '{') {
                name = s->at;
                if (peek(s) != '"') {
                    return false;
                }
                skip_string(s);
                if (peek(s) != ':') {
                    return false;
                }
                s->at++;
            }
            if (!scan_value(s, name, depth + 1)) {
                return false;
            }
            goes_on = peek(s) == ',';
            s->at += goes_on ? 1 : 0;
        }
        s->at += peek(s) ? 1 : 0;
    } else {
        while (s->at < s->n && (is_word(s->text[s->at]) || strchr("+-.", s->text[s->at]))) {
            s->at++;
        }
    }
    v.to = s->at;
    if (s->n_nodes < NODES_MAX) {
        s->nodes[s->n_nodes++] = v;
    }
    return v.to > v.from;
}

static void put_value(edit *e, const node *a, const char *dictionary)
{
    static const char *const VALUES[] = {"null",
                                         "true",
                                         "false",
                                         "0",
                                         "1",
                                         "-1",
                                         "2",
                                         "7",
                                         "64",
                                         "255",
                                         "4096",
                                         "65536",
                                         "2147483647",
                                         "2147483648",
                                         "-2147483649",
                                         "4294967296",
                                         "9007199254740993",
                                         "9223372036854775808",
                                         "1e308",
                                         "1e-7",
                                         "0.5",
                                         "-0.0",
                                         "1.0",
                                         "1e5",
                                         "[]",
                                         "{}",
                                         "\"\"",
                                         "[null]",
                                         "[[]]",
                                         "{\"\":0}",
                                         "\"0\"",
                                         "\"\\u0000\"",
                                         "\"\\ud83d\\ude00\"",
                                         "\"a\\nb\"",
                                         "[1,2,3,4]",
                                         "99999999999999999999999999999"};
    char text[2 * WORD_BYTES_MAX + 3];
    size_t n = 0, len = 0;
    const char *w = edit_word(e, dictionary, &len);
    if (len == 0 || edit_below(e, 2) == 0) {
        w = VALUES[edit_below(e, ARRAY_LEN(VALUES))];
        edit_splice(e, a->from, a->to, w, strlen(w));
        return;
    }
    text[n++] = '"';
    for (size_t i = 0; i < len; i++) {
        if (w[i] == '"' || w[i] == '\\') {
            text[n++] = '\\';
        }
        text[n++] = w[i];
    }
    text[n++] = '"';
    edit_splice(e, a->from, a->to, text, n);
}

/* Another name for a member, or the member under another name, too. */
static void rename_member(edit *e, const node *a, const char *dictionary)
{
    const uint8_t *end = memchr(e->data + a->begin + 1, '"', a->from - a->begin);
    size_t len = 0;
    const char *w = edit_word(e, dictionary, &len);
    if (end && len > 0 && !memchr(w, '"', len) && !memchr(w, '\\', len)) {
        edit_splice(e, a->begin + 1, (size_t)(end - e->data), w, len);
    }
}

static void change_number(edit *e, const node *a)
{
    char text[64];
    const size_t n = a->to - a->from < sizeof text - 1 ? a->to - a->from : sizeof text - 1;
    memcpy(text, e->data + a->from, n);
    text[n] = '\0';
    const uint64_t value = (uint64_t)strtoll(text, NULL, 10);
    const uint64_t values[] = {value + 1, value - 1, 0 - value, value / 2};
    const int len = snprintf(text, sizeof text, "%lld", (long long)values[edit_below(e, ARRAY_LEN(values))]);
    edit_splice(e, a->from, a->to, text, (size_t)len);
}

/* Away, with its comma. */
static void remove_value(edit *e, const node *a)
{
    size_t from = a->begin, to = a->to;
    if (to < e->size && e->data[to] == ',') {
        to++;
    } else if (from > 0 && e->data[from - 1] == ',') {
        from--;
    }
    edit_splice(e, from, to, "", 0);
}

static void change_json(edit *e, const scan *s, const char *dictionary)
{
    const node *a = &s->nodes[edit_below(e, s->n_nodes)], *b = &s->nodes[edit_below(e, s->n_nodes)];
    const uint8_t first = a->from < e->size ? e->data[a->from] : 0; /* a value that is missing at the end */
    const bool is_member = a->begin < a->from;
    switch (edit_below(e, 9)) {
    case 0:
        remove_value(e, a);
        break;
    case 1: { /* b beside a; without a name it gets that of a, or leaves its own */
        const size_t from = is_member == (b->begin < b->from) ? b->begin : is_member ? b->from : b->begin;
        const bool is_named = is_member && b->begin == b->from;
        edit_splice(e, a->begin, a->begin, ",", 1);
        edit_splice(e, a->begin, a->begin, e->data + from + (from >= a->begin ? 1 : 0), b->to - from);
        if (is_named) {
            edit_splice(e, a->begin, a->begin, "\"x\":", 4);
        }
        break;
    }
    case 2:
    case 3:
        edit_splice(e, a->from, a->to, e->data + b->from, b->to - b->from);
        break;
    case 4:
        if (is_member) {
            rename_member(e, a, dictionary);
        }
        break;
    case 5:
        if (first == '"' && a->to - a->from > 2) {
            edit_bytes(e, a->from + 1, a->to - 1);
        } else if (is_word(first) || first == '-') {
            change_number(e, a);
        }
        break;
    case 6: {
        const char *const around[2][2] = {{"[", "]"}, {"{\"x\":", "}"}};
        const size_t which = edit_below(e, 2);
        edit_splice(e, a->to, a->to, around[which][1], 1);
        edit_splice(e, a->from, a->from, around[which][0], strlen(around[which][0]));
        break;
    }
    default:
        put_value(e, a, dictionary);
        break;
    }
}

size_t mutate_json(uint8_t *data, size_t size, size_t max, unsigned seed, const char *dictionary)
{
    static scan s;
    edit e = edit_begin(data, size, max, seed);
    if (max == 0 || edit_below(&e, 12) == 0) {
        return plain(data, size, max, seed, NULL);
    }
    for (size_t left = 1 + edit_below(&e, 4); left > 0; left--) {
        s.text = e.data;
        s.n = e.size;
        s.at = s.n_nodes = 0;
        (void)scan_value(&s, SIZE_MAX, 0);
        if (s.n_nodes == 0) {
            return plain(e.data, e.size, max, seed, NULL);
        }
        change_json(&e, &s, dictionary);
    }
    return e.size;
}

size_t mutate_json_each(uint8_t *data, size_t size, size_t max, unsigned number)
{
    static const char *const VALUES[] = {"null", "-1", "[]", "true", "\"x\"", "1.5"};
    enum { KINDS = 2 + ARRAY_LEN(VALUES) };
    static scan s;
    edit e = edit_begin(data, size, max, 0);
    s.text = data;
    s.n = size;
    s.at = s.n_nodes = 0;
    (void)scan_value(&s, SIZE_MAX, 0);
    if (number / KINDS >= s.n_nodes) {
        return MUTATE_NO_MORE;
    }
    const node *a = &s.nodes[number / KINDS];
    const unsigned kind = number % KINDS;
    const uint8_t first = a->from < size ? data[a->from] : 0;
    if (kind == 0) {
        remove_value(&e, a);
    } else if (kind > 1) {
        edit_splice(&e, a->from, a->to, VALUES[kind - 2], strlen(VALUES[kind - 2]));
    } else if (first >= '0' && first <= '9') { /* one more */
        char text[64];
        const int len =
            snprintf(text, sizeof text, "%lld", strtoll((const char *)data + a->from, NULL, 10) + 1);
        edit_splice(&e, a->from, a->to, text, (size_t)len);
    } else {
        return 0;
    }
    return e.size;
}
