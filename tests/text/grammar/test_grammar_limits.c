/* what automata, grammars, cursors and tries may take, by their own calls: both sides of each limit, and what is asked about
 * nothing.
 */
#include "base/limits.h"
#include "base/utf8.h"
#include "tests/check.h"
#include "text/grammar/grammar_cursor.h"
#include "text/grammar/grammar_private.h"

static err_detail d;
static tokenizer *tok;
static token_trie *trie;

/* ---- automata ---- */

/* Any n-th byte may be the last one. */
static dfa cycle(int32_t n)
{
    dfa made = {.n_states = n, .n_classes = 1};
    made.next = malloc((size_t)n * sizeof *made.next);
    made.accept = calloc((size_t)n, sizeof *made.accept);
    for (int32_t i = 0; i < n; i++) {
        made.next[i] = (uint16_t)((i + 1) % n);
    }
    made.accept[0] = true;
    return made;
}

/* The states of what both of two cycles accept, -1 if they are too many. */
static int32_t combine_cycles(int32_t n, int32_t m, work_count *work)
{
    dfa a = cycle(n), b = cycle(m), both = {0};
    d = (err_detail){0};
    const err_code err = dfa_combine(&both, &a, &b, DFA_AND, "it", work, &d);
    const int32_t n_states = both.n_states;
    for (int32_t len = 0; err == ERR_OK && len < 3 * n; len++) {
        static const char text[512];
        CHECK_INT(dfa_accepts(&both, text, (size_t)len), len % n == 0 && len % m == 0);
    }
    CHECK(err == ERR_OK || (n_states == 0 && !both.next));
    dfa_free(&both);
    dfa_free(&a);
    dfa_free(&b);
    return err == ERR_OK ? n_states : err == work_error(work) ? -2 : err == ERR_LIMIT ? -1 : -3;
}

static bool is_stopped(void *ctx)
{
    (void)ctx;
    return true;
}

static void test_products(void)
{
    work_count work = {0};
    CHECK_INT(combine_cycles(4, 6, &work), 12);
    CHECK_INT(work.done, 10000 + 12 * 4 + 12);
    work = (work_count){0};
    CHECK_INT(combine_cycles(32, 625, &work), LIMIT_DFA_STATES);
    CHECK_INT(work.done, 10000 + LIMIT_DFA_STATES * 4 + LIMIT_DFA_STATES);
    CHECK_INT(combine_cycles(113, 177, NULL), -1); /* one more */
    CHECK_STR(d.text,
              "it needs too large an automaton (more than 20000 states, or 20000000 steps): make it simpler");
    work = (work_count){.limit = 10000 + 12 * 4 + 12};
    CHECK_INT(combine_cycles(4, 6, &work), 12);
    for (int i = 0; i < 2; i++) { /* at the end, and before it */
        work = (work_count){.limit = i ? 10000 + 12 * 4 + 11 : 10000 + 7};
        CHECK_INT(combine_cycles(4, 6, &work), -2);
        CHECK_STR(d.text, "it: building its automaton was ended");
    }
    work = (work_count){.cancelled = is_stopped};
    CHECK_INT(combine_cycles(1, 20000, &work), 20000); /* not asked within so few steps */
    work = (work_count){.cancelled = is_stopped, .done = 100000};
    CHECK_INT(combine_cycles(1, 20000, &work), -2);
    CHECK_INT(work_error(&work), ERR_CANCELLED);
}

/* Nothing, as it is made and as it begins: with everything that it is combined with. */
static void test_nothing(void)
{
    dfa a = cycle(2), made = {0}, out = {0};
    CHECK_OK(dfa_combine(&made, &a, &a, DFA_AND_NOT, "it", NULL, &d), d);
    const dfa nothing[] = {{0}, made};
    for (size_t i = 0; i < ARRAY_LEN(nothing); i++) {
        const dfa *const none = &nothing[i];
        CHECK(!dfa_accepts(none, "", 0) && !dfa_accepts(none, "a", 1));
        CHECK_OK(dfa_combine(&out, &a, none, DFA_AND, "it", NULL, &d), d);
        CHECK_INT(out.n_states, 0);
        dfa_free(&out);
        CHECK_OK(dfa_combine(&out, &a, none, DFA_AND_NOT, "it", NULL, &d), d);
        CHECK_INT(out.n_states, 2);
        CHECK(dfa_accepts(&out, "ab", 2) && !dfa_accepts(&out, "a", 1));
        dfa_free(&out);
        for (int op = DFA_AND; op <= DFA_AND_NOT; op++) {
            CHECK_OK(dfa_combine(&out, none, &a, (dfa_op)op, "it", NULL, &d), d);
            CHECK_INT(out.n_states, 0);
            dfa_free(&out);
        }
    }
    CHECK(made.next && !out.next && !out.accept && out.n_classes == 0);
    dfa_free(&made);
    dfa_free(&a);
    nfa n;
    nfa_init(&n, NULL);
    nfa_add_bytes(&n, NFA_START, NFA_END, "abc", 0);
    CHECK_OK(nfa_determinize(&n, &out, "it", &d), d);
    CHECK(dfa_accepts(&out, "", 0) && !dfa_accepts(&out, "a", 1));
    dfa_free(&out);
}

/* ---- grammars ---- */

static grammar *begin(work_count *work)
{
    grammar *g = NULL;
    d = (err_detail){0};
    CHECK_OK(grammar_create(&g, work, &d), d);
    if (!g) {
        exit(1);
    }
    return g;
}

static void check_finish(grammar *g, int32_t root, err_code wanted, const char *why)
{
    d = (err_detail){0};
    CHECK_INT(grammar_finish(g, root, &d), wanted);
    CHECK_STR(d.text, why);
    grammar_destroy(g);
}

static const char TOO_LARGE[] =
    "the schema is too large: its grammar would take more than 32 MiB or 50000 nodes, or a text "
    "or name in it has more than 65536 bytes";

/* The three nodes of a think block and nothing else come when the grammar is finished. */
static void test_nodes(void)
{
    for (int32_t more = 0; more < 2; more++) {
        grammar *g = begin(NULL);
        int32_t last = 0;
        for (int32_t i = g->n_nodes; i < LIMIT_GRAMMAR_NODES - 3 + more; i++) {
            last = grammar_string(g, 0, i);
            CHECK_INT(last, i);
        }
        check_finish(g, last, more ? ERR_LIMIT : ERR_OK, more ? TOO_LARGE : "");
    }
    grammar *g = begin(NULL);
    for (int32_t i = g->n_nodes; i <= LIMIT_GRAMMAR_NODES; i++) {
        CHECK_INT(grammar_string(g, 0, 1), i < LIMIT_GRAMMAR_NODES ? i : GRAMMAR_NEVER);
    }
    grammar_destroy(g);
}

static dfa of_size(int32_t n_states, int32_t n_classes)
{
    dfa made = {.n_states = n_states, .n_classes = n_classes};
    made.next = calloc(1, sizeof *made.next);
    made.accept = calloc(1, sizeof *made.accept);
    return made;
}

/* Automata of 32 MiB, and of a state more. */
static void test_automata(void)
{
    for (int32_t more = 0; more < 2; more++) {
        grammar *g = begin(NULL);
        for (int i = 0; i < 2; i++) {
            dfa half = of_size(32768 + (i ? more : 0), 256);
            CHECK(grammar_automaton(g, &half) != GRAMMAR_NEVER);
            CHECK(!half.next && !half.accept && half.n_states == 0);
        }
        CHECK_INT(g->automata_bytes, LIMIT_GRAMMAR_BYTES + (more ? 512 : 0));
        CHECK_INT(g->too_big, more);
        dfa none = of_size(0, 1);
        CHECK_INT(grammar_automaton(g, &none), GRAMMAR_NEVER);
        CHECK_INT(g->too_big, more);
        CHECK_INT(g->n_automata, 3);
        grammar_destroy(g);
    }
}

/* Bounds that leave nothing, or the empty text alone. */
static void test_bounds(void)
{
    grammar *g = begin(NULL);
    const int32_t a = grammar_text(g, "a", 1);
    CHECK_INT(grammar_string(g, 2, 1), GRAMMAR_NEVER);
    CHECK_INT(grammar_string(g, 1, 0), GRAMMAR_NEVER);
    CHECK(grammar_string(g, 1, 1) > GRAMMAR_EMPTY && grammar_string(g, 0, 0) > GRAMMAR_EMPTY);
    CHECK_INT(grammar_repeat(g, a, a, 0, 0), GRAMMAR_EMPTY);
    CHECK_INT(grammar_repeat(g, a, a, 1, 0), GRAMMAR_NEVER);
    CHECK_INT(grammar_repeat(g, a, a, 3, 2), GRAMMAR_NEVER);
    CHECK(grammar_repeat(g, a, a, 2, 2) > GRAMMAR_EMPTY && grammar_repeat(g, a, a, 0, 1) > GRAMMAR_EMPTY);
    CHECK_INT(grammar_text(g, "a", 0), GRAMMAR_EMPTY);
    CHECK_INT(grammar_marker(g, "a", 0), GRAMMAR_EMPTY);
    check_finish(g, a, ERR_OK, "");
    check_finish(
        begin(NULL), GRAMMAR_NEVER, ERR_INVALID,
        "nothing can satisfy the schema: its parts contradict each other, or demand endless nesting");
}

/* The end of a free text has an automaton, which may be too large. */
static void test_until(void)
{
    static char end[LIMIT_NFA_EDGES / 128 + 1]; /* one for each kind of ASCII character behind each */
    memset(end, 'a', sizeof end - 1);
    grammar *g = begin(NULL);
    CHECK_INT(grammar_until(g, end), GRAMMAR_NEVER);
    CHECK(g->too_big && !g->failed);
    check_finish(g, GRAMMAR_EMPTY, ERR_LIMIT, TOO_LARGE);
}

/* Work that is ended is told, whatever was built last. */
static void test_ended(void)
{
    for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
        for (int kind = 0; kind < 2; kind++) {
            work_count work = {.limit = is_cancelled ? 0 : WORK_GAP / 2};
            work.cancelled = is_cancelled ? is_stopped : NULL;
            grammar *g = begin(&work);
            work.done = WORK_GAP;
            CHECK_INT(kind ? grammar_space(g) : grammar_string(g, 0, 1), GRAMMAR_NEVER);
            check_finish(g, GRAMMAR_EMPTY, is_cancelled ? ERR_CANCELLED : ERR_LIMIT,
                         "building the grammar was ended");
        }
    }
}

/* ---- JSON strings ---- */

/* The state behind a text within a string; the first one that ends it stays. */
static int32_t read_text(const char *text, size_t len)
{
    int32_t state = STRING_INSIDE;
    for (size_t i = 0; i < len && state < STRING_CLOSED; i++) {
        state = grammar_string_step(state, (uint8_t)text[i]);
    }
    return state;
}

static int32_t read_escape(const char *form, uint32_t c, uint32_t other)
{
    char text[64];
    return read_text(text, (size_t)snprintf(text, sizeof text, form, (unsigned)c, (unsigned)other));
}

/* Every escape of four digits, and every second half of a pair behind some first ones. */
static void test_escapes(void)
{
    size_t wrong = 0;
    for (uint32_t c = 0; c < 0x10000; c++) {
        const bool is_high = c >= 0xd800 && c < 0xdc00, is_low = c >= 0xdc00 && c < 0xe000;
        for (int upper = 0; upper < 2; upper++) {
            const int32_t state = read_escape(upper ? "\\u%04X" : "\\u%04x", c, 0);
            wrong += (state == STRING_INSIDE) != (c > 0 && !is_high && !is_low) ||
                     (state == STRING_REFUSED) != (c == 0 || is_low);
        }
        wrong += (read_escape("\\ud8%02x\\u%04x", c & 0xff, c) == STRING_INSIDE) != is_low;
        wrong += (read_escape("\\uDB%02X\\u%04X", c & 0xff, c) == STRING_INSIDE) != is_low;
        wrong += is_high && read_escape("\\u%04x\\u%04x", c, 0xdc00 + c % 1024) != STRING_INSIDE;
        wrong += is_high && read_escape("\\u%04x%c", c, '"') != STRING_REFUSED;
        wrong += is_high && read_escape("\\u%04x\\%c", c, 'n') != STRING_REFUSED;
    }
    for (int byte = 0; byte < 256; byte++) {
        const char text[] = {'\\', (char)byte, 0}, digit[] = {'\\', 'u', '1', '2', '3', (char)byte};
        const bool is_letter = byte && strchr("\"\\/bfnrt", byte);
        wrong += (read_text(text, 2) == STRING_INSIDE) != is_letter;
        wrong += (read_text(digit, 6) == STRING_INSIDE) != (byte && strchr("0123456789abcdefABCDEF", byte));
        const int32_t alone = read_text(text + 1, 1);
        wrong += (alone == STRING_CLOSED) != (byte == '"');
        wrong += (alone == STRING_INSIDE) != (byte >= ' ' && byte < 128 && byte != '"' && byte != '\\');
        wrong += byte < ' ' && alone != STRING_REFUSED;
        wrong += (grammar_string_step(STRING_BEFORE, (uint8_t)byte) == STRING_INSIDE) != (byte == '"');
    }
    CHECK_INT(wrong, 0);
}

/* Every character as its bytes, and which bytes may follow each other. */
static void test_bytes(void)
{
    size_t wrong = 0;
    char text[4];
    for (uint32_t c = 0x80; c <= 0x10ffff; c += c < 0x11000 ? 1 : 61) {
        if (c < 0xd800 || c > 0xdfff) {
            wrong += read_text(text, utf8_encode(text, c)) != STRING_INSIDE;
        }
    }
    for (int first = 0x80; first < 256; first++) {
        const size_t n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        for (int byte = 0; byte < 256; byte++) {
            for (size_t place = 1; place < n;
                 place++) { /* of the byte; the others are such that may be there */
                const char usual[] = {(char)first, (char)(first == 0xf0 || first == 0xe0 ? 0xa0 : 0x80),
                                      (char)0x80, (char)0x80};
                memcpy(text, usual, sizeof text);
                text[place] = (char)byte;
                wrong += (read_text(text, n) == STRING_INSIDE) != utf8_valid(text, n);
            }
        }
    }
    CHECK_INT(wrong, 0);
}

/* ---- cursors ---- */

/* root behind a "b", or at the beginning. */
static grammar_cursor *open_cursor(grammar *g, int32_t root, bool is_behind, err_code wanted)
{
    grammar_cursor *c = NULL;
    const int32_t parts[] = {grammar_text(g, "b", 1), root};
    CHECK_OK(grammar_finish(g, is_behind ? grammar_sequence(g, parts, 2) : root, &d), d);
    d = (err_detail){0};
    CHECK_INT(grammar_cursor_create(&c, g, trie, false, &d), wanted);
    CHECK((c != NULL) == (wanted == ERR_OK));
    CHECK_STR(d.text, wanted ? "the schema has too many alternatives at its beginning" : "");
    return c;
}

static bool accept(grammar_cursor *c, const char *byte)
{
    return grammar_cursor_accept(c, token_trie_find(trie, byte, 1));
}

/* Whether what `make` writes with n may be read, at the beginning and behind something. */
static bool is_allowed(int32_t (*make)(grammar *g, int32_t n), int32_t n)
{
    grammar *g = begin(NULL);
    int32_t root = make(g, n);
    grammar_cursor *c = open_cursor(g, root, true, ERR_OK);
    CHECK_INT(grammar_cursor_failure(c), ERR_OK);
    const bool allowed = accept(c, "b");
    CHECK_INT(grammar_cursor_failure(c), allowed ? ERR_OK : ERR_LIMIT);
    CHECK_INT(grammar_cursor_state(c) == GRAMMAR_REFUSED, !allowed);
    CHECK(allowed || !grammar_cursor_mask(c, 0)); /* nothing more is said, of any state */
    CHECK(!allowed || accept(c, "a"));
    grammar_cursor_destroy(c);
    grammar_destroy(g);
    g = begin(NULL);
    root = make(g, n);
    c = open_cursor(g, root, false, allowed ? ERR_OK : ERR_LIMIT);
    grammar_cursor_destroy(c);
    grammar_destroy(g);
    return allowed;
}

static int32_t make_readings(grammar *g, int32_t n)
{
    static int32_t items[LIMIT_GRAMMAR_STACKS + 1];
    for (int32_t i = 0; i < n; i++) {
        items[i] = grammar_text(g, "a", 1);
    }
    return grammar_choice(g, items, (size_t)n);
}

/* Alternatives that each pass through the same eight choices first: all of them are compared. */
static int32_t make_steps(grammar *g, int32_t n)
{
    enum { CHOICES = 8 };
    static int32_t items[LIMIT_GRAMMAR_STACKS];
    int32_t parts[CHOICES + 1];
    for (int i = 0; i < CHOICES; i++) {
        const int32_t either[] = {GRAMMAR_EMPTY, GRAMMAR_EMPTY};
        parts[i] = grammar_choice(g, either, 2);
    }
    for (int32_t i = 0; i < n; i++) {
        parts[CHOICES] = grammar_text(g, "a", 1);
        items[i] = grammar_sequence(g, parts, CHOICES + 1);
    }
    return grammar_choice(g, items, (size_t)n);
}

/* A choice that is opened on one stack, on another one and on the first again; so many of them within each other. */
static int32_t make_again(grammar *g, int32_t n)
{
    int32_t inner = grammar_text(g, "a", 1);
    for (int32_t i = 0; i < n; i++) {
        const int32_t one[] = {inner, grammar_space(g)}, other[] = {inner, grammar_text(g, "c", 1)};
        const int32_t first = grammar_sequence(g, one, 2),
                      items[] = {first, grammar_sequence(g, other, 2), first};
        inner = grammar_choice(g, items, 3);
    }
    return inner;
}

static void test_readings(void)
{
    CHECK(is_allowed(make_again,
                     8)); /* 256 readings; thrice as many for each would be more than there may be */
    CHECK(is_allowed(make_readings, LIMIT_GRAMMAR_STACKS));
    CHECK(!is_allowed(make_readings, LIMIT_GRAMMAR_STACKS + 1));
    CHECK(is_allowed(make_steps, 1111)); /* five million steps */
    CHECK(!is_allowed(make_steps, 1112));
}

/* What is asked about no state, or no token, has no answer. */
static void test_refused(void)
{
    grammar *g = begin(NULL);
    grammar_cursor *c = open_cursor(g, grammar_text(g, "a", 1), false, ERR_OK);
    const int32_t state = grammar_cursor_state(c), a = token_trie_find(trie, "a", 1);
    CHECK(grammar_cursor_mask(c, GRAMMAR_REFUSED) == NULL);
    CHECK(!grammar_cursor_is_complete(c, GRAMMAR_REFUSED) && !grammar_cursor_is_complete(c, state));
    CHECK_INT(grammar_cursor_next(c, GRAMMAR_REFUSED, a), GRAMMAR_REFUSED);
    CHECK_INT(grammar_cursor_next(c, state, -1), GRAMMAR_REFUSED);
    CHECK_INT(grammar_cursor_next(c, state, INT32_MIN), GRAMMAR_REFUSED);
    CHECK_INT(grammar_cursor_next(c, state, trie->n_tokens), GRAMMAR_REFUSED);
    CHECK_INT(grammar_cursor_next(c, state, INT32_MAX), GRAMMAR_REFUSED);
    CHECK(grammar_cursor_is_complete(c, grammar_cursor_next(c, state, a)));
    CHECK_INT(grammar_cursor_failure(c), ERR_OK);
    grammar_cursor_destroy(c);
    grammar_destroy(g);
    CHECK_INT(token_trie_find(trie, "a", 0), -1);
    CHECK_INT(token_trie_find(trie, "a\x01z", 3), -1);
    CHECK_INT(token_trie_find(trie, "\xff\xff", 2), -1);
}

/* Only tokens that there are end an answer, and these alone are in no trie. */
static void test_stops(void)
{
    const int32_t a = token_trie_find(trie, "a", 1), n = trie->n_tokens;
    const int32_t stops[] = {-1, a, INT32_MIN, n, INT32_MAX, n - 1, a};
    token_trie *own = NULL;
    CHECK_OK(token_trie_create(&own, tok, stops, ARRAY_LEN(stops), &d), d);
    int32_t n_stops = 0;
    for (int32_t id = 0; id < (int32_t)own->n_words * 64; id++) {
        n_stops += token_mask_has(own->stop_mask, id);
    }
    CHECK_INT(n_stops, 2);
    CHECK(token_mask_has(own->stop_mask, a) && token_mask_has(own->stop_mask, n - 1));
    CHECK_INT(token_trie_find(own, "a", 1), -1);
    size_t len = 7;
    CHECK(!token_trie_bytes(own, a, &len) && len == 0);
    len = 7;
    CHECK(!token_trie_bytes(own, -1, &len) && len == 0);
    CHECK(token_trie_bytes(trie, a, &len) && len == 1);
    for (int32_t id = 0; id < n; id++) { /* each text leads to a token with it */
        const char *text = token_trie_bytes(trie, id, &len);
        const int32_t found = text ? token_trie_find(trie, text, len) : -1;
        size_t found_len = 0;
        const char *again = token_trie_bytes(trie, found, &found_len);
        CHECK(!text || (again && found_len == len && memcmp(again, text, len) == 0));
    }
    token_trie_destroy(own);
    token_trie_destroy(NULL);
}

int main(void)
{
    CHECK_OK(tokenizer_open(&tok, check_data("tiny/tokenizer.json"), &d), d);
    CHECK_OK(token_trie_create(&trie, tok, NULL, 0, &d), d);
    if (!trie) {
        return 1;
    }
    test_products();
    test_nothing();
    test_nodes();
    test_automata();
    test_bounds();
    test_until();
    test_ended();
    test_escapes();
    test_bytes();
    test_readings();
    test_refused();
    test_stops();
    token_trie_destroy(trie);
    tokenizer_close(tok);
    CHECK_DONE();
}
