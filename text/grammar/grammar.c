#include "text/grammar/grammar.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/memory.h"
#include "text/grammar/grammar_private.h"

err_code grammar_create(grammar **out, work_count *work, err_detail *detail)
{
    grammar *g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g || !(g->arena = arena_create(LIMIT_GRAMMAR_BYTES))) {
        free(g);
        return err_set(detail, ERR_NOMEM, "no memory for a grammar");
    }
    g->work = work;
    (void)grammar_choice(g, NULL, 0);   /* GRAMMAR_NEVER */
    (void)grammar_sequence(g, NULL, 0); /* GRAMMAR_EMPTY */
    *out = g;
    return ERR_OK;
}

void grammar_destroy(grammar *g)
{
    if (!g) {
        return;
    }
    for (size_t i = 0; i < g->n_automata; i++) {
        dfa_free(g->automata[i]);
        free(g->automata[i]);
    }
    free(g->automata);
    free(g->nodes);
    arena_destroy(g->arena);
    free(g);
}

arena *grammar_arena(grammar *g)
{
    return g->arena;
}

void grammar_note_text(grammar *g, const bytes *text)
{
    g->failed = g->failed || text->no_memory;
    g->too_big = g->too_big || text->failed;
}

bool grammar_lacked_memory(const grammar *g)
{
    return g->failed || arena_lacked_memory(g->arena);
}

work_count *grammar_work(grammar *g)
{
    return g->work;
}

/* ---- building ---- */

enum { NODE_STEPS = 10 };

static int32_t add_node(grammar *g, grammar_node node)
{
    if (g->n_nodes == LIMIT_GRAMMAR_NODES || !work_do(g->work, NODE_STEPS)) {
        g->too_big = true;
        return GRAMMAR_NEVER;
    }
    if (!memory_grow(&g->nodes, &g->cap, (size_t)g->n_nodes + 1, 64, sizeof *g->nodes)) {
        g->failed = true;
        return GRAMMAR_NEVER;
    }
    g->nodes[g->n_nodes] = node;
    return g->n_nodes++;
}

static int32_t add_text(grammar *g, const char *text, size_t len, bool marker)
{
    const char *copy = len ? arena_strdup(g->arena, text, len) : NULL;
    if (len && !copy) {
        g->too_big = true;
        return GRAMMAR_NEVER;
    }
    return len ? add_node(
                     g, (grammar_node){.kind = NODE_TEXT, .marker = marker, .n = (int32_t)len, .text = copy})
               : GRAMMAR_EMPTY;
}

int32_t grammar_text(grammar *g, const char *text, size_t len)
{
    return add_text(g, text, len, false);
}

int32_t grammar_marker(grammar *g, const char *text, size_t len)
{
    return add_text(g, text, len, true);
}

int32_t grammar_automaton(grammar *g, dfa *d)
{
    dfa *owned = malloc(sizeof *owned);
    if (!owned || !memory_grow(&g->automata, &g->cap_automata, g->n_automata + 1, 16, sizeof owned)) {
        free(owned);
        dfa_free(d);
        g->failed = true;
        return GRAMMAR_NEVER;
    }
    *owned = *d;
    *d = (dfa){0};
    g->automata[g->n_automata++] = owned;
    g->automata_bytes += (size_t)owned->n_states * (size_t)owned->n_classes * sizeof *owned->next;
    g->too_big = g->too_big || g->automata_bytes > LIMIT_GRAMMAR_BYTES;
    return owned->n_states ? add_node(g, (grammar_node){.kind = NODE_DFA, .automaton = owned})
                           : GRAMMAR_NEVER;
}

int32_t grammar_string(grammar *g, int32_t min_chars, int32_t max_chars)
{
    return min_chars > max_chars
               ? GRAMMAR_NEVER
               : add_node(g, (grammar_node){.kind = NODE_STRING, .min = min_chars, .max = max_chars});
}

static int32_t add_list(grammar *g, node_kind kind, const int32_t *items, size_t n)
{
    int32_t *copy = n ? arena_alloc(g->arena, n * sizeof *copy) : NULL;
    if (n && !copy) {
        g->too_big = true;
        return GRAMMAR_NEVER;
    }
    if (n) {
        memcpy(copy, items, n * sizeof *copy);
    }
    return add_node(g, (grammar_node){.kind = kind, .n = (int32_t)n, .items = copy});
}

int32_t grammar_sequence(grammar *g, const int32_t *items, size_t n)
{
    return n == 1 ? items[0] : add_list(g, NODE_SEQUENCE, items, n);
}

int32_t grammar_choice(grammar *g, const int32_t *items, size_t n)
{
    return n == 1 ? items[0] : add_list(g, NODE_CHOICE, items, n);
}

int32_t grammar_repeat(grammar *g, int32_t first, int32_t again, int32_t min, int32_t max)
{
    if (max == 0 || min > max) {
        return min > max ? GRAMMAR_NEVER : GRAMMAR_EMPTY;
    }
    const int32_t items[] = {first, again};
    const int32_t node = add_list(g, NODE_REPEAT, items, 2);
    if (node != GRAMMAR_NEVER) {
        g->nodes[node].min = min;
        g->nodes[node].max = max;
    }
    return node;
}

/* Runs n, whose end is NFA_END, into a node; a failure sticks. */
static int32_t add_nfa(grammar *g, nfa *n)
{
    dfa d;
    const err_code err = nfa_determinize(n, &d, "a part", NULL);
    g->too_big = g->too_big || err == ERR_LIMIT;
    g->failed = g->failed || err == ERR_NOMEM;
    return err == ERR_OK ? grammar_automaton(g, &d) : GRAMMAR_NEVER;
}

int32_t grammar_space(grammar *g)
{
    enum { SPACES = 32, TABS = 12 };
    if (g->space) {
        return g->space;
    }
    nfa n;
    nfa_init(&n, g->work);
    nfa_link(&n, NFA_START, NFA_END, NFA_SKIP);
    nfa_add_char(&n, NFA_START, NFA_END, ' ', ' ', CHARS_RAW);
    const int32_t line = nfa_state(&n);
    nfa_add_char(&n, NFA_START, line, '\n', '\n', CHARS_RAW);
    nfa_link(&n, line, NFA_END, NFA_SKIP);
    for (int32_t kind = 0; kind < 2; kind++) {
        const uint32_t c = kind ? '\t' : ' ';
        for (int32_t i = 0, from = line; i < (kind ? TABS : SPACES); i++) {
            const int32_t to = nfa_state(&n);
            nfa_add_char(&n, from, to, c, c, CHARS_RAW);
            nfa_link(&n, to, NFA_END, NFA_SKIP);
            from = to;
        }
    }
    g->space = add_nfa(g, &n);
    return g->space;
}

/* The states are how much of `end` the last characters spell, as in Knuth, Morris and Pratt's
 * search. */
int32_t grammar_until(grammar *g, const char *end)
{
    const int32_t len = (int32_t)strlen(end);
    if (g->until && strcmp(g->until, end) == 0) {
        return g->until_node;
    }
    int32_t *states = malloc(((size_t)len + 1) * sizeof *states);
    if (!states) {
        g->failed = true;
        return GRAMMAR_NEVER;
    }
    nfa n;
    nfa_init(&n, g->work);
    for (int32_t i = 0; i <= len; i++) {
        states[i] = i == 0 ? NFA_START : i == len ? NFA_END : nfa_state(&n);
    }
    for (int32_t i = 0; i < len; i++) {
        nfa_add_char(&n, states[i], NFA_START, 0x80, 0x10ffff, CHARS_RAW);
        for (int32_t c = 1; c < 0x80; c++) {
            int32_t k = i + 1; /* the longest beginning of `end` that end[0..i) and c end with */
            while (k > 0 && (end[k - 1] != (char)c || memcmp(end, end + i + 1 - k, (size_t)k - 1) != 0)) {
                k--;
            }
            nfa_add_char(&n, states[i], states[k], (uint32_t)c, (uint32_t)c, CHARS_RAW);
        }
    }
    free(states);
    const int32_t node = add_nfa(g, &n);
    if (node != GRAMMAR_NEVER) {
        g->nodes[node].marker = true;
        g->until = arena_strdup(g->arena, end, (size_t)len);
        g->until_node = node;
        g->nodes[node].text = g->until;
        g->nodes[node].n = g->until ? len : 0;
        g->too_big = g->too_big || !g->until;
    }
    return node;
}

int32_t grammar_hole(grammar *g)
{
    return add_list(g, NODE_CHOICE, NULL, 0);
}

void grammar_fill(grammar *g, int32_t hole, int32_t node)
{
    int32_t *item = arena_alloc(g->arena, sizeof *item);
    if (!item) {
        g->too_big = true;
        return;
    }
    *item = node;
    if (hole > GRAMMAR_EMPTY) { /* else the hole itself had no room */
        g->nodes[hole].items = item;
        g->nodes[hole].n = 1;
    }
}

/* ---- JSON strings ---- */

enum {
    ESCAPE = 2, /* behind a backslash */
    HEX1,       /* behind \u */
    HEX2_ZERO,  /* behind \u0 */
    HEX3_ZERO,
    HEX4_ZERO,
    HEX2, /* two digits behind are known not to be a surrogate */
    HEX3,
    HEX4,
    HEX2_D, /* behind \ud */
    HIGH3,  /* behind \ud8, the first half of a pair */
    HIGH4,
    LOW_BACKSLASH,
    LOW_U,
    LOW1,
    LOW2,
    LAST1, /* bytes of a character still to come */
    LAST2,
    LAST3,
    AFTER_E0,
    AFTER_ED,
    AFTER_F0,
    AFTER_F4,
};
static_assert(AFTER_F4 + 1 == STRING_N_STATES, "every state of a string has a number below STRING_CLOSED");

/* What follows what: the first row of the state that has the byte counts, and without one it is
 * refused. Plain text and the usual characters come first, as they are most of what is read. */
static const struct {
    uint8_t from, lo, hi, to;
} STEPS[] = {
#define HEX(from, to)                                                                                        \
    {from, '0', '9', to}, {from, 'A', 'F', to},                                                              \
    {                                                                                                        \
        from, 'a', 'f', to                                                                                   \
    }
#define EITHER(from, upper, to)                                                                              \
    {from, upper, upper, to},                                                                                \
    {                                                                                                        \
        from, upper | 0x20, upper | 0x20, to                                                                 \
    }
    {STRING_INSIDE, '"', '"', STRING_CLOSED},
    {STRING_INSIDE, '\\', '\\', ESCAPE},
    {STRING_INSIDE, 0x20, 0x7f, STRING_INSIDE},
    {LAST1, 0x80, 0xbf, STRING_INSIDE},
    {LAST2, 0x80, 0xbf, LAST1},
    {STRING_INSIDE, 0xc2, 0xdf, LAST1},
    {STRING_INSIDE, 0xe0, 0xe0, AFTER_E0},
    {STRING_INSIDE, 0xed, 0xed, AFTER_ED},
    {STRING_INSIDE, 0xe1, 0xef, LAST2},
    {STRING_INSIDE, 0xf0, 0xf0, AFTER_F0},
    {STRING_INSIDE, 0xf1, 0xf3, LAST3},
    {STRING_INSIDE, 0xf4, 0xf4, AFTER_F4},
    {LAST3, 0x80, 0xbf, LAST2},
    {AFTER_E0, 0xa0, 0xbf, LAST1},
    {AFTER_ED, 0x80, 0x9f, LAST1},
    {AFTER_F0, 0x90, 0xbf, LAST2},
    {AFTER_F4, 0x80, 0x8f, LAST2},
    {STRING_BEFORE, '"', '"', STRING_INSIDE},
    {ESCAPE, 'u', 'u', HEX1},
    {HEX1, '0', '0', HEX2_ZERO},
    EITHER(HEX1, 'D', HEX2_D),
    HEX(HEX1, HEX2),
    {HEX2_ZERO, '0', '0', HEX3_ZERO},
    HEX(HEX2_ZERO, HEX3),
    {HEX3_ZERO, '0', '0', HEX4_ZERO},
    HEX(HEX3_ZERO, HEX4),
    {HEX4_ZERO, '0', '0', STRING_REFUSED},
    HEX(HEX4_ZERO, STRING_INSIDE),
    HEX(HEX2, HEX3),
    HEX(HEX3, HEX4),
    HEX(HEX4, STRING_INSIDE),
    {HEX2_D, '0', '7', HEX3},
    {HEX2_D, '8', '9', HIGH3}, /* a second half alone (dc..df) is refused */
    EITHER(HEX2_D, 'A', HIGH3),
    EITHER(HEX2_D, 'B', HIGH3),
    HEX(HIGH3, HIGH4),
    HEX(HIGH4, LOW_BACKSLASH),
    {LOW_BACKSLASH, '\\', '\\', LOW_U},
    {LOW_U, 'u', 'u', LOW1},
    EITHER(LOW1, 'D', LOW2),
    {LOW2, 'C', 'F', HEX3},
    {LOW2, 'c', 'f', HEX3},
#undef HEX
#undef EITHER
};

int32_t grammar_string_step(int32_t state, uint8_t c)
{
    for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
        if (STEPS[i].from == state && c >= STEPS[i].lo && c <= STEPS[i].hi) {
            return STEPS[i].to;
        }
    }
    return state == ESCAPE && c != 0 && strchr("\"\\/bfnrt", c) ? STRING_INSIDE : STRING_REFUSED;
}

/* ---- finishing ---- */

/* The parts of a node that its shallowest text needs. */
static int32_t n_needed(const grammar_node *node)
{
    switch (node->kind) {
    case NODE_SEQUENCE:
    case NODE_CHOICE:
        return node->n;
    case NODE_REPEAT:
        return node->min < 2 ? node->min : 2;
    default:
        return 0;
    }
}

/* Nodes whose height becomes known, the lower ones first, so that each is looked at once. */
typedef struct height_search {
    grammar *g;
    int32_t *first,
        *users;       /* users[first[i]..first[i + 1]): the nodes that need node i, once for each place */
    int32_t *missing; /* parts of a sequence or repetition whose height is not known */
    int32_t *next;    /* the next node of the same height, -1 at the end */
    int32_t head[LIMIT_GRAMMAR_DEPTH + 1];
} height_search;

static void found_height(height_search *h, int32_t node, int32_t height)
{
    if (height <= LIMIT_GRAMMAR_DEPTH) {
        h->g->nodes[node].height = height;
        h->next[node] = h->head[height];
        h->head[height] = node;
    }
}

/* Frames that a sequence or repetition needs whose parts are known; the last part of a sequence
 * takes its place. */
static int32_t height_of(const grammar *g, const grammar_node *node)
{
    int32_t height = 0;
    for (int32_t i = 0; i < n_needed(node); i++) {
        const bool stays = node->kind == NODE_REPEAT || i + 1 < node->n;
        const int32_t h = g->nodes[node->items[i]].height + stays;
        height = h > height ? h : height;
    }
    return height;
}

/* A part of `user` has become known. */
static void told_height(height_search *h, int32_t user, int32_t part)
{
    const grammar_node *node = &h->g->nodes[user];
    if (node->kind != NODE_CHOICE) {
        if (--h->missing[user] == 0) {
            found_height(h, user, height_of(h->g, node));
        }
    } else if (node->height == HEIGHT_NEVER) {
        found_height(h, user, h->g->nodes[part].height); /* the first one known is the lowest */
    }
}

static void list_users(height_search *h)
{
    const grammar *g = h->g;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        for (int32_t k = 0; k < n_needed(&g->nodes[i]); k++) {
            h->first[g->nodes[i].items[k] + 2]++;
        }
    }
    for (int32_t i = 1; i <= g->n_nodes; i++) {
        h->first[i + 1] += h->first[i];
    }
    for (int32_t i = 0; i < g->n_nodes; i++) {
        for (int32_t k = 0; k < n_needed(&g->nodes[i]); k++) {
            h->users[h->first[g->nodes[i].items[k] + 1]++] = i;
        }
    }
}

/* Gives every node the frames that its shallowest text needs; false if out of memory. */
static bool find_heights(grammar *g)
{
    arena *a = arena_create(SIZE_MAX / 2);
    height_search h = {.g = g};
    size_t n_places = 0;
    const size_t n = (size_t)g->n_nodes;
    for (size_t i = 0; i < n; i++) {
        n_places += (size_t)n_needed(&g->nodes[i]);
    }
    const bool ok = a && (h.first = arena_calloc(a, n + 2, sizeof *h.first)) &&
                    (h.users = arena_alloc(a, (n_places + 1) * sizeof *h.users)) &&
                    (h.missing = arena_alloc(a, n * sizeof *h.missing)) &&
                    (h.next = arena_alloc(a, n * sizeof *h.next));
    if (ok) {
        memset(h.head, 0xff, sizeof h.head);
        list_users(&h);
    }
    for (int32_t i = 0; ok && i < g->n_nodes; i++) {
        const grammar_node *node = &g->nodes[i];
        const bool is_leaf = node->kind == NODE_TEXT || node->kind == NODE_DFA || node->kind == NODE_STRING;
        h.missing[i] = n_needed(node);
        g->nodes[i].height = HEIGHT_NEVER;
        if (h.missing[i] == 0 && node->kind != NODE_CHOICE) {
            found_height(&h, i, is_leaf);
        }
    }
    for (int32_t height = 0; ok && height <= LIMIT_GRAMMAR_DEPTH; height++) {
        while (h.head[height] >= 0) { /* more of the same height may come */
            const int32_t part = h.head[height];
            h.head[height] = h.next[part];
            for (int32_t k = h.first[part]; k < h.first[part + 1]; k++) {
                told_height(&h, h.users[k], part);
            }
        }
    }
    arena_destroy(a);
    return ok;
}

/* Splits the classes by a property of bytes: equal keys stay together. */
static void split_classes(grammar *g, const uint8_t key[256])
{
    enum { N_KEYS = 256 };
    int16_t number[N_KEYS * N_KEYS]; /* of each class and key that there is */
    int32_t n = 0;
    for (int32_t byte = 0; byte < 256; byte++) {
        number[g->classes[byte] * N_KEYS + key[byte]] = -1;
    }
    for (int32_t byte = 0; byte < 256; byte++) {
        int16_t *known = &number[g->classes[byte] * N_KEYS + key[byte]];
        *known = *known < 0 ? (int16_t)n++ : *known;
        g->classes[byte] = (uint8_t)*known;
    }
    g->n_classes = n;
}

static void find_classes(grammar *g)
{
    uint8_t key[256] = {0};
    memset(g->classes, 0, sizeof g->classes);
    g->n_classes = 1;
    for (int32_t state = 0; state < STRING_N_STATES; state++) {
        for (int32_t byte = 0; byte < 256; byte++) {
            key[byte] = (uint8_t)grammar_string_step(state, (uint8_t)byte);
        }
        split_classes(g, key);
    }
    for (size_t i = 0; i < g->n_automata; i++) {
        split_classes(g, g->automata[i]->classes);
    }
    memset(key, 0, sizeof key);
    for (int32_t i = 0; i < g->n_nodes; i++) {
        for (int32_t k = 0; g->nodes[i].kind == NODE_TEXT && k < g->nodes[i].n; k++) {
            key[(uint8_t)g->nodes[i].text[k]] = 1;
        }
    }
    for (int32_t byte = 0, n = 0; byte < 256; byte++) { /* each byte of a text alone */
        n += key[byte];
        key[byte] = key[byte] ? (uint8_t)n : 0;
    }
    split_classes(g, key);
}

/* What follows the prompt of an answer that begins inside a think block. */
static int32_t add_thinking(grammar *g, int32_t root)
{
    nfa lines;
    nfa_init(&lines, g->work);
    const int32_t one = nfa_state(&lines);
    nfa_link(&lines, NFA_START, NFA_END, NFA_SKIP);
    nfa_add_char(&lines, NFA_START, one, '\n', '\n', CHARS_RAW);
    nfa_link(&lines, one, NFA_END, NFA_SKIP);
    nfa_add_char(&lines, one, NFA_END, '\n', '\n', CHARS_RAW);
    const int32_t parts[] = {grammar_until(g, "</think>"), add_nfa(g, &lines), root};
    return grammar_sequence(g, parts, 3);
}

err_code grammar_finish(grammar *g, int32_t root, err_detail *detail)
{
    g->root = root;
    g->thinking_root = add_thinking(g, root);
    if (grammar_lacked_memory(g)) {
        return err_set(detail, ERR_NOMEM, "no memory for a grammar");
    }
    if (work_error(g->work) != ERR_OK) {
        return err_set(detail, work_error(g->work), "building the grammar was ended");
    }
    if (g->too_big) {
        return err_set(detail, ERR_LIMIT,
                       "the schema is too large: its grammar would take more than %zu MiB or %d nodes, or a "
                       "text or name in it has more than %d bytes",
                       LIMIT_GRAMMAR_BYTES >> 20, LIMIT_GRAMMAR_NODES, LIMIT_VALUE_BYTES);
    }
    if (!find_heights(g)) {
        return err_set(detail, ERR_NOMEM, "no memory for a grammar");
    }
    if (g->nodes[g->thinking_root].height > LIMIT_GRAMMAR_DEPTH) {
        return err_set(
            detail, ERR_INVALID,
            "nothing can satisfy the schema: its parts contradict each other, or demand endless nesting");
    }
    find_classes(g);
    return ERR_OK;
}
