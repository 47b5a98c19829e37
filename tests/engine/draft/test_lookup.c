/* lookup: finds the longest end of a text that stood before, whatever the length of the text; copies
 * what followed; and guesses as much as pays. */
#include "engine/draft/lookup.h"

#include <stdlib.h>

#include "tests/check.h"

enum { LONG = 100000, VOCAB = 50 };

static uint64_t *text_of(const char *letters, int32_t *n)
{
    uint64_t *text = calloc(strlen(letters) + 1, sizeof *text);
    for (*n = 0; letters[*n]; ++*n) {
        text[*n] = (uint64_t)letters[*n];
    }
    return text;
}

/* What is guessed behind `letters`, of which the last n_more are guesses themselves. */
static void check_guess(const char *letters, int32_t n_more, int32_t len, const char *want)
{
    lookup l;
    int32_t n, drafts[NN_ROWS_EXACT] = {0};
    uint64_t *text = text_of(letters, &n);
    CHECK(lookup_init(&l, n));
    n -= n_more;
    for (int32_t i = 0; i < n_more; i++) {
        drafts[i] = letters[n + i];
    }
    const lookup_match m = lookup_find(&l, text, n, drafts, n_more);
    CHECK_INT(m.len, len);
    if (len > 0) {
        const int32_t k = lookup_copy(&m, text, n, drafts, n_more, 4);
        CHECK_INT(k, (int)strlen(want));
        for (int32_t i = 0; i < k; i++) {
            CHECK_INT(drafts[n_more + i], want[i]);
        }
    }
    lookup_deinit(&l);
    free(text);
}

static void test_guesses(void)
{
    check_guess("", 0, 0, "");
    check_guess("a", 0, 0, "");
    check_guess("abcd", 0, 0, "");
    check_guess("xabcdefgh,ab", 0, 2, "cdef");
    check_guess("yabcQ,xabcR..,yabc", 0, 5 - 1, "Q,xa"); /* the longer one, not the later one */
    check_guess("abcQ-,abcR+,abc", 0, 4, "R+,a");        /* between equals the later one */
    check_guess("abababab", 0, 6, "abab");               /* goes on with what it guesses */
    check_guess("kabcdefgh,,abcd", 2, 4, "efgh");        /* behind guesses */
    check_guess("kabcdefgh,,abcd", 4, 4, "efgh");
}

/* The match so far goes on with the guesses that it foretold, and ends where one of them is another. */
static void test_match_so_far(void)
{
    lookup l;
    int32_t n, drafts[NN_ROWS_EXACT] = {'e'};
    uint64_t *text = text_of("xabcdefgh,,xabcd", &n);
    CHECK(lookup_init(&l, n));
    lookup_match m = lookup_find(&l, text, n, drafts, 0);
    CHECK(m.len == 5 && m.end == 4);
    m = lookup_find(&l, text, n, drafts, 1);
    CHECK(m.len == 6 && m.end == 5);
    drafts[0] = 'Q';
    m = lookup_find(&l, text, n, drafts, 1);
    CHECK_INT(m.len, 0);
    lookup_deinit(&l);
    free(text);
}

/* Pairs that never stood before match nothing, whatever else has their hash. */
static void test_hashes(void)
{
    enum { N = 500, EVERY = 'a', OTHERS = 1000, NEW = 5000 };
    uint64_t text[N];
    lookup l;
    CHECK(lookup_init(&l, N));
    for (int32_t i = 0; i < N; i++) {
        text[i] = i % 2 ? EVERY : (uint64_t)(OTHERS + i);
    }
    for (int32_t i = 0; i < N; i++) {
        const int32_t drafts[] = {NEW + i, EVERY};
        CHECK_INT(lookup_find(&l, text, N, drafts, 1).len, 0);
        CHECK_INT(lookup_find(&l, text, N, drafts, 2).len, 0);
    }
    lookup_deinit(&l);
}

/* The bits of an image match, and are not guessed. */
static void test_images(void)
{
    const uint64_t image = (uint64_t)1 << 63 | 5, text[] = {1, 2, image, image + 1, 3, 4, 1, 2};
    int32_t drafts[NN_ROWS_EXACT];
    lookup l;
    CHECK(lookup_init(&l, 8));
    lookup_match m = lookup_find(&l, text, 8, drafts, 0);
    CHECK_INT(m.len, 2);
    CHECK_INT(lookup_copy(&m, text, 8, drafts, 0, 4), 0);
    lookup_reset(&l);
    m = lookup_find(&l, text, 7, drafts, 0);
    CHECK_INT(m.len, 0);
    lookup_deinit(&l);
}

/* A long text said again, token by token, with an edit now and then: but for the tokens behind an
 * edit, all is guessed, and at the right place. */
static void test_long(void)
{
    uint64_t *text = calloc(2 * LONG, sizeof *text);
    uint32_t state = 1;
    int32_t n_right = 0, n_edits = 0, drafts[NN_ROWS_EXACT];
    lookup l;
    CHECK(lookup_init(&l, 2 * LONG));
    for (int32_t i = 0; i < LONG; i++) {
        state = state * 1664525u + 1013904223u;
        text[i] = state >> 24 < 128 ? state >> 16 & 3 : (state >> 16) % VOCAB; /* some pairs are frequent */
    }
    for (int32_t i = 0; i < LONG; i++) {
        const bool edited = i % 100 == 99;
        const lookup_match m = lookup_find(&l, text, LONG + i, drafts, 0);
        text[LONG + i] = edited ? VOCAB + 1 : text[i];
        n_edits += edited;
        n_right += m.len > 0 && lookup_copy(&m, text, LONG + i, drafts, 0, 1) == 1 &&
                   (uint64_t)drafts[0] == text[LONG + i];
    }
    CHECK(n_right > LONG - 12 * n_edits);
    lookup_deinit(&l);
    free(text);
}

/* ---- the policy ---- */

/* Runs n steps with a match of `len` each against a machine where a row more costs `extra` of a step
 * and guesses are right `right` of the time, spread evenly. Returns tokens a step's time. */
static double play(lookup_policy *p, int n, double extra, double right, int32_t len, long *depths)
{
    double tokens = 0, ms = 0, luck = 0;
    for (int i = 0; i < n; i++) {
        lookup_step step = {.tokens = 1, .ms = lookup_policy_ms(p, 1), .chance = 1, .rows = 1};
        const int32_t k = lookup_policy_depth(p, &step, len, 8);
        int32_t n_right = 0;
        for (; n_right < k; n_right++) {
            luck += right;
            if (luck < 1.0) {
                break;
            }
            luck -= 1.0;
        }
        lookup_policy_result(p, len, k, n_right);
        lookup_policy_cost(p, 1 + k, 10.0 * (1.0 + k * extra));
        tokens += n_right + 1;
        ms += 10.0 * (1.0 + k * extra);
        *depths += k;
    }
    return tokens * 10.0 / ms;
}

static void test_policy(void)
{
    lookup_policy p = {0};
    long depths = 0;
    CHECK(play(&p, 500, 0.1, 0.97, 20, &depths) > 3.5); /* right and cheap: many */
    CHECK(depths > 500 * 6);
    depths = 0;
    CHECK(play(&p, 2000, 0.1, 0.0, 2, &depths) > 0.98); /* short matches are judged apart: parked */
    CHECK(depths < 2000 / 10);
    depths = 0;
    CHECK(play(&p, 500, 0.1, 0.97, 20, &depths) > 3.5); /* ... and the long ones are not */
    depths = 0;
    play(&p, 3000, 0.1, 1.0, 2, &depths); /* it notices when they become right */
    CHECK(depths > 1500);
    p = (lookup_policy){0};
    CHECK(play(&p, 1000, 0.95, 0.8, 20, &depths) > 0.95); /* right, but as dear as steps */
}

/* ---- the policy by hand ---- */

static void test_ms(void)
{
    lookup_policy p = {0};
    CHECK_NEAR(lookup_policy_ms(&p, 1), 0, 0); /* nothing measured */
    lookup_policy_cost(&p, 2, 0);
    CHECK_NEAR(lookup_policy_ms(&p, 2), 0, 0);
    lookup_policy_cost(&p, 2, 20);
    lookup_policy_cost(&p, 5, 35);
    CHECK_NEAR(lookup_policy_ms(&p, 1), 20, 1e-12); /* fewer than any: as the fewest */
    CHECK_NEAR(lookup_policy_ms(&p, 2), 20, 1e-12);
    CHECK_NEAR(lookup_policy_ms(&p, 3), 25, 1e-12); /* between two */
    CHECK_NEAR(lookup_policy_ms(&p, 4), 30, 1e-12);
    CHECK_NEAR(lookup_policy_ms(&p, 5), 35, 1e-12);
    CHECK_NEAR(lookup_policy_ms(&p, 7), 35 * 1.04, 1e-12); /* more than any looks cheap */
    lookup_policy_cost(&p, 2, 10);                         /* an average */
    CHECK_NEAR(lookup_policy_ms(&p, 2), 15, 1e-12);
    p = (lookup_policy){.rows_ms[NN_ROWS_EXACT] = 50};
    CHECK_NEAR(lookup_policy_ms(&p, 1), 50, 1e-12);
    CHECK_NEAR(lookup_policy_ms(&p, NN_ROWS_EXACT), 50, 1e-12);
    p.rows_ms[1] = 19;
    CHECK_NEAR(lookup_policy_ms(&p, 2), 20, 1e-12);
    p = (lookup_policy){.rows_ms[1] = 10};
    CHECK_NEAR(lookup_policy_ms(&p, 1), 10, 1e-12);
    CHECK_NEAR(lookup_policy_ms(&p, NN_ROWS_EXACT), 10 * 1.62, 1e-12);
}

/* What is believed of matches of each length before any was judged: the chance of a guess, and how many pay where a row
 * more costs 2 % of a step. */
static void test_lengths(void)
{
    static const struct {
        int32_t len;
        double chance;
        int32_t depth;
    } cases[] = {{2, 0.3, 3}, {3, 0.5, 4}, {4, 0.5, 4},  {5, 0.6, 6},
                 {8, 0.6, 6}, {9, 0.8, 8}, {16, 0.8, 8}, {17, 0.9, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lookup_policy p = {.rows_ms[1] = 10};
        lookup_step step = {.tokens = 1, .ms = 10, .chance = 1, .rows = 1};
        CHECK_INT(lookup_policy_depth(&p, &step, cases[i].len, 8), cases[i].depth);
        CHECK_INT(lookup_policy_depth(&p, &step, cases[i].len, 2), 2);
        for (int at = 0; at < 20; at++) { /* no probe either */
            CHECK_INT(lookup_policy_depth(&p, &step, cases[i].len, 0), 0);
        }
        step.chance = 0.5; /* behind drafts of another kind */
        lookup_policy_add(&p, &step, cases[i].len, 2);
        CHECK_NEAR(step.tokens, 1 + 0.5 * cases[i].chance * (1 + cases[i].chance), 1e-12);
        CHECK_NEAR(step.ms, 10.4, 1e-12);
        CHECK_INT(step.rows, 3);
        step.ms = 0; /* not measured */
        for (int at = 0; at < 20; at++) {
            CHECK_INT(lookup_policy_depth(&p, &step, cases[i].len, 8), 0);
        }
    }
}

static void test_results(void)
{
    lookup_policy p = {0};
    lookup_policy_result(&p, 2, 3, 1); /* right, wrong, not judged */
    CHECK_NEAR(p.classes[0].right, 0.65 - 0.65 / 3, 1e-12);
    CHECK_INT(p.classes[0].n_seen, 2);
    lookup_policy_result(&p, 20, 2, 2);
    CHECK_NEAR(p.classes[4].right, 0.9 + 0.05 + 0.05 / 3, 1e-12);
    for (int i = 0; i < 30; i++) {
        lookup_policy_result(&p, 20, 1, 1);
    }
    const double was = p.classes[4].right;
    lookup_policy_result(&p, 20, 1, 0);
    CHECK_NEAR(p.classes[4].right, was * 15 / 16, 1e-12);
    for (int i = 0; i < 100; i++) {
        lookup_policy_result(&p, 20, 1, 0);
    }
    CHECK_NEAR(p.classes[4].right, 0.01, 1e-12);
}

/* What pays must pay 5 % more; what does not is probed, less and less often; beside the best depth another is taken
 * now and then. */
static void test_probes(void)
{
    static const int apart[] = {16, 32, 64, 128, 256, 512, 512};
    const lookup_step step = {.tokens = 1, .ms = 10, .chance = 1, .rows = 1};
    lookup_policy p = {.rows_ms = {0, 10, 14.4}, .classes[1].right = 0.5};
    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
        for (int at = 1; at <= apart[i]; at++) {
            CHECK_INT(lookup_policy_depth(&p, &step, 4, 1), at == apart[i]);
        }
    }
    CHECK_INT(lookup_policy_depth(&p, &step, 4, 1), 0);
    p.rows_ms[2] = 14.2;
    CHECK_INT(lookup_policy_depth(&p, &step, 4, 1), 1);
    p.rows_ms[2] = 14.4;
    for (int at = 1; at <= 16; at++) { /* as at first */
        CHECK_INT(lookup_policy_depth(&p, &step, 4, 1), at == 16);
    }
    p = (lookup_policy){.rows_ms[1] = 10};
    for (int at = 1; at <= 64; at++) {
        CHECK_INT(lookup_policy_depth(&p, &step, 2, 8), at % 32 ? 3 : 4);
    }
    p.n_followed = 31;
    CHECK_INT(lookup_policy_depth(&p, &step, 2, 2), 1);
    p.n_followed = 31;
    CHECK_INT(lookup_policy_depth(&p, &step, 2, 1), 1);
}

int main(void)
{
    test_ms();
    test_lengths();
    test_results();
    test_probes();
    test_guesses();
    test_match_so_far();
    test_hashes();
    test_images();
    test_long();
    test_policy();
    CHECK_DONE();
}
