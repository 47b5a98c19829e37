/* Building automata: characters to bytes, and the subset construction. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "text/grammar/dfa.h"
#include "text/grammar/dfa_private.h"

void nfa_init(nfa *n, work_count *work)
{
    *n = (nfa){.n_states = 2, .work = work};
}

void nfa_free(nfa *n)
{
    free(n->edges);
    *n = (nfa){0};
}

int32_t nfa_state(nfa *n)
{
    if (n->n_states >= LIMIT_NFA_STATES) {
        n->too_big = true;
        return NFA_START;
    }
    return n->n_states++;
}

static void add_edge(nfa *n, nfa_edge edge)
{
    n->too_big = n->too_big || n->n_edges == LIMIT_NFA_EDGES || !work_do(n->work, 2);
    if (n->failed || n->too_big) {
        return;
    }
    n->failed = !memory_grow(&n->edges, &n->cap, n->n_edges + 1, 64, sizeof *n->edges);
    if (!n->failed) {
        n->edges[n->n_edges++] = edge;
    }
}

void nfa_link(nfa *n, int32_t from, int32_t to, nfa_kind kind)
{
    add_edge(n, (nfa_edge){from, to, kind, 0, 0});
}

static void add_byte(nfa *n, int32_t from, int32_t to, uint8_t lo, uint8_t hi)
{
    add_edge(n, (nfa_edge){from, to, NFA_BYTE, lo, hi});
}

void nfa_add_bytes(nfa *n, int32_t from, int32_t to, const char *text, size_t len)
{
    if (len == 0) {
        nfa_link(n, from, to, NFA_SKIP);
    }
    for (size_t i = 0; i < len; i++) {
        int32_t next = i + 1 == len ? to : nfa_state(n);
        add_byte(n, from, next, (uint8_t)text[i], (uint8_t)text[i]);
        from = next;
    }
}

/* ---- characters ---- */

/* Code points whose UTF-8 has the same length, split until each byte's range is independent of the
 * others. */
static void add_same_length(nfa *n, int32_t from, int32_t to, uint32_t lo, uint32_t hi, size_t len)
{
    for (size_t i = 1; i < len; i++) {
        const uint32_t low_bits = (1u << (6 * i)) - 1;
        if ((lo & ~low_bits) == (hi & ~low_bits)) {
            continue;
        }
        if ((lo & low_bits) != 0) {
            add_same_length(n, from, to, lo, lo | low_bits, len);
            add_same_length(n, from, to, (lo | low_bits) + 1, hi, len);
            return;
        }
        if ((hi & low_bits) != low_bits) {
            add_same_length(n, from, to, lo, (hi & ~low_bits) - 1, len);
            add_same_length(n, from, to, hi & ~low_bits, hi, len);
            return;
        }
    }
    char a[4], b[4];
    utf8_encode(a, lo);
    utf8_encode(b, hi);
    for (size_t i = 0; i < len; i++) {
        int32_t next = i + 1 == len ? to : nfa_state(n);
        add_byte(n, from, next, (uint8_t)a[i], (uint8_t)b[i]);
        from = next;
    }
}

static void add_utf8(nfa *n, int32_t from, int32_t to, uint32_t lo, uint32_t hi)
{
    static const struct {
        uint32_t lo, hi;
        size_t len;
    } PARTS[] = {
        {0, 0x7f, 1}, {0x80, 0x7ff, 2}, {0x800, 0xd7ff, 3}, {0xe000, 0xffff, 3}, {0x10000, 0x10ffff, 4}};
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        uint32_t a = lo > PARTS[i].lo ? lo : PARTS[i].lo, b = hi < PARTS[i].hi ? hi : PARTS[i].hi;
        if (a <= b) {
            add_same_length(n, from, to, a, b, PARTS[i].len);
        }
    }
}

/* A character that JSON writes with a backslash. U+0000 is left out: many readers refuse it. */
static void add_escape(nfa *n, int32_t from, int32_t to, uint32_t c)
{
    static const char SHORT[] = "\b\t\n\f\r\"\\", LETTER[] = "btnfr\"\\";
    if (c == 0) {
        return;
    }
    char text[6] = {'\\', 'u', '0', '0', (char)('0' + (c >> 4)), "0123456789abcdef"[c & 15]};
    const char *known = memchr(SHORT, (int)c, sizeof SHORT - 1);
    size_t len = sizeof text;
    if (known) {
        text[1] = LETTER[known - SHORT];
        len = 2;
    }
    nfa_add_bytes(n, from, to, text, len);
}

void nfa_add_char(nfa *n, int32_t from, int32_t to, uint32_t lo, uint32_t hi, nfa_chars chars)
{
    if (chars == CHARS_RAW) {
        add_utf8(n, from, to, lo ? lo : 1, hi);
        return;
    }
    static const uint32_t ESCAPED[] = {'"', '\\'};
    for (uint32_t c = lo; c < 0x20 && c <= hi; c++) {
        add_escape(n, from, to, c);
    }
    lo = lo < 0x20 ? 0x20 : lo;
    for (size_t i = 0; i < 2; i++) {
        if (lo <= ESCAPED[i] && ESCAPED[i] <= hi) {
            add_escape(n, from, to, ESCAPED[i]);
            if (lo < ESCAPED[i]) {
                add_utf8(n, from, to, lo, ESCAPED[i] - 1);
            }
            lo = ESCAPED[i] + 1;
        }
    }
    if (lo <= hi) {
        add_utf8(n, from, to, lo, hi);
    }
}

/* ---- subset construction ---- */

typedef struct subset_builder {
    const nfa *n;
    int32_t *first; /* [n_states + 1] edges of each state in `sorted` */
    nfa_edge *sorted;
    uint32_t *seen; /* [n_states] == round: in the set */
    uint32_t round;
    int32_t *set; /* [n_states] the set being made */
    int32_t n_set;
    dfa_builder *out;
    int32_t **sets;       /* [states of out] its length, then the ascending members */
    size_t steps, n_kept; /* so far; members in `sets` */
} subset_builder;

static void add_member(subset_builder *b, int32_t state)
{
    if (b->seen[state] != b->round) {
        b->seen[state] = b->round;
        b->set[b->n_set++] = state;
    }
}

static void begin_set(subset_builder *b)
{
    b->round++;
    b->n_set = 0;
}

/* Adds what can be reached without a byte. */
static void close_set(subset_builder *b, bool at_begin, bool at_end)
{
    for (int32_t i = 0; i < b->n_set; i++) {
        for (int32_t k = b->first[b->set[i]]; k < b->first[b->set[i] + 1]; k++) {
            const nfa_edge *e = &b->sorted[k];
            if (e->kind == NFA_SKIP || (e->kind == NFA_AT_BEGIN && at_begin) ||
                (e->kind == NFA_AT_END && at_end)) {
                add_member(b, e->to);
            }
        }
        b->steps++;
    }
}

static int compare_ints(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The number of the closed set in b->set, a new one if it was not met; -1 on a failure (in b->out).
 * The first set of all may look past "begin" edges, so that no later one is taken for it. */
static int32_t number_set(subset_builder *b)
{
    b->steps += 4 * (size_t)b->n_set;
    qsort(b->set, (size_t)b->n_set, sizeof *b->set, compare_ints);
    const bool at_begin = b->out->n_states == 0;
    uint64_t hash = (uint64_t)at_begin;
    for (int32_t i = 0; i < b->n_set; i++) {
        hash = (hash ^ (uint64_t)(uint32_t)b->set[i]) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    const size_t bytes = (size_t)b->n_set * sizeof *b->set;
    for (int32_t q = dfa_builder_find(b->out, hash); q >= 0; q = dfa_builder_find_next(b->out, q, hash)) {
        if (b->sets[q][0] == b->n_set && memcmp(b->sets[q] + 1, b->set, bytes) == 0) {
            return q;
        }
    }
    int32_t q = dfa_builder_add(b->out, hash);
    if (q < 0) {
        return -1;
    }
    b->n_kept += (size_t)b->n_set;
    b->out->too_big = b->out->too_big || b->n_kept > LIMIT_DFA_MEMBERS;
    b->sets[q] = malloc(sizeof(int32_t) + bytes);
    if (!b->sets[q]) {
        b->out->failed = true;
        return -1;
    }
    b->sets[q][0] = b->n_set;
    memcpy(b->sets[q] + 1, b->set, bytes);
    close_set(b, at_begin, true);
    b->out->states[q].accept = b->seen[NFA_END] == b->round;
    return q;
}

static void expand_set(subset_builder *b, int32_t q, const uint8_t *representatives)
{
    const int32_t *members = b->sets[q];
    for (int32_t c = 0; c < b->out->n_classes && b->steps <= LIMIT_DFA_WORK; c++) {
        begin_set(b);
        for (int32_t i = 1; i <= members[0]; i++) {
            for (int32_t k = b->first[members[i]]; k < b->first[members[i] + 1]; k++) {
                const nfa_edge *e = &b->sorted[k];
                b->steps++;
                if (e->kind == NFA_BYTE && e->lo <= representatives[c] && representatives[c] <= e->hi) {
                    add_member(b, e->to);
                }
            }
        }
        if (b->n_set == 0) {
            continue;
        }
        close_set(b, false, false);
        int32_t to = number_set(b);
        if (to < 0) {
            return;
        }
        dfa_builder_link(b->out, q, c, to);
    }
}

/* Bytes between two borders of edges behave alike. */
static void find_classes(const nfa *n, dfa_builder *out, uint8_t *representatives)
{
    bool border[257] = {false};
    for (size_t i = 0; i < n->n_edges; i++) {
        if (n->edges[i].kind == NFA_BYTE) {
            border[n->edges[i].lo] = border[n->edges[i].hi + 1] = true;
        }
    }
    int32_t c = 0;
    for (int32_t byte = 0; byte < 256; byte++) {
        c += byte > 0 && border[byte];
        out->classes[byte] = (uint8_t)c;
        representatives[c] = (uint8_t)byte;
    }
    out->n_classes = c + 1;
}

static bool sort_edges(subset_builder *b)
{
    const nfa *n = b->n;
    b->first = calloc((size_t)n->n_states + 2, sizeof *b->first);
    b->sorted = malloc((n->n_edges + 1) * sizeof *b->sorted);
    b->seen = calloc((size_t)n->n_states, sizeof *b->seen);
    b->set = calloc((size_t)n->n_states, sizeof *b->set);
    b->sets = calloc(LIMIT_DFA_STATES, sizeof *b->sets);
    if (!b->first || !b->sorted || !b->seen || !b->set || !b->sets) {
        return false;
    }
    for (size_t i = 0; i < n->n_edges; i++) {
        b->first[n->edges[i].from + 2]++;
    }
    for (int32_t s = 1; s <= n->n_states; s++) {
        b->first[s + 1] += b->first[s];
    }
    for (size_t i = 0; i < n->n_edges; i++) {
        b->sorted[b->first[n->edges[i].from + 1]++] = n->edges[i];
    }
    return true;
}

enum { AUTOMATON_STEPS = 10000 }; /* whatever its size */

/* Numbers the sets one after the other until none is new. */
static void expand_all(subset_builder *b, const uint8_t *representatives)
{
    size_t counted = 0;
    dfa_builder *out = b->out;
    for (int32_t q = 0; q < out->n_states && !out->failed && !out->too_big; q++) {
        expand_set(b, q, representatives);
        out->too_big = out->too_big || b->steps > LIMIT_DFA_WORK;
        if (!work_do(out->work, b->steps - counted)) {
            return;
        }
        counted = b->steps;
    }
}

err_code nfa_determinize(nfa *n, dfa *out, const char *what, err_detail *detail)
{
    *out = (dfa){0};
    dfa_builder builder = {.work = n->work};
    subset_builder b = {.n = n, .out = &builder};
    uint8_t representatives[256];
    if (!n->failed && !n->too_big && work_do(n->work, AUTOMATON_STEPS)) {
        find_classes(n, &builder, representatives);
        builder.failed = !dfa_builder_init(&builder) || !sort_edges(&b);
        if (!builder.failed) {
            begin_set(&b);
            add_member(&b, NFA_START);
            close_set(&b, true, false);
            number_set(&b);
            expand_all(&b, representatives);
        }
    }
    builder.failed = builder.failed || n->failed;
    builder.too_big = builder.too_big || n->too_big;
    for (int32_t q = 0; b.sets && q < builder.n_states; q++) {
        free(b.sets[q]);
    }
    free(b.sets);
    free(b.first);
    free(b.sorted);
    free(b.seen);
    free(b.set);
    nfa_free(n);
    return dfa_builder_finish(&builder, out, what, detail);
}
