/* bpe: against the definition itself on random rules and words; long words; the limit. */
#include "text/tokenizer/bpe.h"

#include <stdbool.h>

#include "tests/check.h"

enum { N_RULES = 400, N_SYMBOLS = 6, WORD_MAX = 40 };

typedef struct rule {
    int32_t left, right, id;
} rule;

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* The definition: the pair with the lowest rank, leftmost first, again and again. */
static size_t merge_slowly(const rule *rules, size_t n_rules, int32_t *ids, size_t n)
{
    for (;;) {
        size_t best_rank = n_rules, best_at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            for (size_t r = 0; r < best_rank; r++) {
                if (rules[r].left == ids[i] && rules[r].right == ids[i + 1]) {
                    best_rank = r;
                    best_at = i;
                }
            }
        }
        if (best_rank == n_rules) {
            return n;
        }
        ids[best_at] = rules[best_rank].id;
        memmove(&ids[best_at + 1], &ids[best_at + 2], (n - best_at - 2) * sizeof *ids);
        n--;
    }
}

static bool rule_exists(const rule *rules, size_t n, int32_t left, int32_t right)
{
    for (size_t i = 0; i < n; i++) {
        if (rules[i].left == left && rules[i].right == right) {
            return true;
        }
    }
    return false;
}

static void test_against_definition(void)
{
    rule rules[N_RULES];
    uint32_t random = 7;
    err_detail d;
    bpe b;
    CHECK_OK(bpe_init(&b, N_RULES, &d), d);
    for (int32_t i = 0; i < N_RULES; i++) {
        do {
            rules[i].left = (int32_t)(next_random(&random) % (uint32_t)(N_SYMBOLS + i / 8));
            rules[i].right = (int32_t)(next_random(&random) % (uint32_t)(N_SYMBOLS + i / 8));
        } while (rule_exists(rules, (size_t)i, rules[i].left, rules[i].right));
        rules[i].id = N_SYMBOLS + i;
        bpe_add(&b, rules[i].left, rules[i].right, i, rules[i].id);
    }
    bpe_scratch s = {0};
    size_t wrong = 0, merged = 0;
    for (int word = 0; word < 3000; word++) {
        int32_t fast[WORD_MAX], slow[WORD_MAX];
        size_t n = next_random(&random) % WORD_MAX, n_fast = n;
        for (size_t i = 0; i < n; i++) {
            fast[i] = slow[i] = (int32_t)(next_random(&random) % N_SYMBOLS);
        }
        size_t n_slow = merge_slowly(rules, N_RULES, slow, n);
        CHECK_OK(bpe_encode(&b, &s, fast, &n_fast, &d), d);
        wrong += n_fast != n_slow || memcmp(fast, slow, n_fast * sizeof *fast) != 0;
        merged += n - n_fast;
    }
    CHECK_INT(wrong, 0);
    CHECK(merged > 10000);
    bpe_scratch_deinit(&s);
    bpe_deinit(&b);
}

/* 0 0 -> 1, 1 1 -> 2 ...: a word of 2^20 equal bytes folds up to a few tokens, quickly. */
static void test_long_word(void)
{
    enum { LEVELS = 8, LEN = 1 << 20 };
    err_detail d;
    bpe b;
    CHECK_OK(bpe_init(&b, LEVELS, &d), d);
    for (int32_t i = 0; i < LEVELS; i++) {
        bpe_add(&b, i, i, i, i + 1);
    }
    int32_t *ids = calloc(BPE_MAX_PIECE + 1, sizeof *ids);
    size_t n = LEN;
    bpe_scratch s = {0};
    for (size_t len = 1; len < 20000;
         len += 1 + len / 7) { /* what a word needs is there for the next, which needs more */
        memset(ids, 0, len * sizeof *ids);
        n = len;
        CHECK_OK(bpe_encode(&b, &s, ids, &n, &d), d);
        CHECK_INT(n, (len >> LEVELS) + (size_t)__builtin_popcountll(len % (1u << LEVELS)));
        size_t sum = 0;
        for (size_t i = 0; i < n; i++) {
            sum += (size_t)1 << ids[i];
        }
        CHECK_INT(sum, len);
    }
    memset(ids, 0, 20000 * sizeof *ids);
    n = LEN;
    CHECK_OK(bpe_encode(&b, &s, ids, &n, &d), d);
    CHECK_INT(n, LEN >> LEVELS);
    CHECK_INT(ids[0], LEVELS);
    CHECK_INT(ids[n - 1], LEVELS);
    n = (size_t)BPE_MAX_PIECE + 1;
    CHECK_INT(bpe_encode(&b, &s, ids, &n, &d), ERR_LIMIT);
    free(ids);
    bpe_scratch_deinit(&s);
    bpe_deinit(&b);
}

int main(void)
{
    test_against_definition();
    test_long_word();
    CHECK_DONE();
}
