/* sampler: greedy, every filter and penalty on small vocabularies, and the drawn frequencies. */
#include "tests/check.h"

#include "base/compiler.h"
#include "model/sampler.h"
#include "engine/grammar_spec.h"

static const sampler_params PLAIN = {.temperature = 1, .top_p = 1, .repetition_penalty = 1, .seed = 7};

static sampler *create(const sampler_params *p, int32_t vocab_size, int32_t n_valid)
{
    sampler *s = NULL;
    err_detail d = {0};
    CHECK_OK(sampler_create(&s, p, vocab_size, n_valid, &d), d);
    return s;
}

/* The draw for a place behind the output. */
static int32_t pick_at(sampler *s, const float *logits, size_t n, int32_t ahead)
{
    float copy[16];
    memcpy(copy, logits, n * sizeof *copy);
    return sampler_pick(s, copy, ahead);
}

static int32_t pick(sampler *s, const float *logits, size_t n)
{
    return pick_at(s, logits, n, 0);
}

/* One pick by a fresh greedy sampler. */
static int32_t greedy(sampler_params p, const float *logits, int32_t n, const int32_t *prompt,
                      size_t n_prompt, const int32_t *output, size_t n_output)
{
    p.temperature = 0;
    sampler *s = create(&p, n, n);
    sampler_prompt(s, prompt, n_prompt);
    for (size_t i = 0; i < n_output; i++) {
        sampler_accept(s, output[i]);
    }
    int32_t id = pick(s, logits, (size_t)n);
    sampler_destroy(s);
    return id;
}

static void test_greedy(void)
{
    static const float logits[5] = {1, 3, 3, 2, 9};
    sampler_params p = PLAIN;
    CHECK_INT(greedy(p, logits, 4, NULL, 0, NULL, 0), 1); /* lowest id among equals */
    p.temperature = 0;
    sampler *s = create(&p, 5, 4); /* id 4 is never produced */
    CHECK_INT(pick(s, logits, 5), 1);
    sampler_destroy(s);
    p.temperature = 1;
    p.top_k = 1;
    s = create(&p, 5, 5);
    CHECK_INT(pick(s, logits, 5), 4);
    sampler_destroy(s);
    static const float strange[3] = {NAN, -INFINITY, -1};
    CHECK_INT(greedy(PLAIN, strange, 3, NULL, 0, NULL, 0), 2);
    static const float none[3] = {NAN, NAN, NAN}, last[3] = {NAN, NAN, -INFINITY};
    CHECK_INT(greedy(PLAIN, none, 3, NULL, 0, NULL, 0), 0);
    CHECK_INT(greedy(PLAIN, last, 3, NULL, 0, NULL, 0), 2);
    for (int32_t few = 0; few < 2; few++) { /* no finite logit: as if greedy, however many count */
        p = PLAIN;
        p.top_k = few ? 2 : 0;
        s = create(&p, 3, 3);
        CHECK_INT(pick(s, none, 3), 0);
        CHECK_INT(pick(s, last, 3), 2);
        sampler_destroy(s);
    }
    s = create(&PLAIN, 3, 3);
    CHECK_INT(pick(s, strange, 3), 2);
    sampler_destroy(s);
}

static void test_penalties(void)
{
    static const float logits[4] = {4, 3, -1, -1.5f};
    static const int32_t zero[] = {0, 0, 0}, two[] = {2};
    sampler_params p = PLAIN;
    p.repetition_penalty = 1.5f; /* 4 / 1.5 < 3 */
    CHECK_INT(greedy(p, logits, 4, zero, 1, NULL, 0), 1);
    CHECK_INT(greedy(p, logits, 4, NULL, 0, zero, 1), 1);
    static const float low[4] = {-9, -9, -1, -1.4f};
    CHECK_INT(greedy(p, low, 4, two, 1, NULL, 0), 3); /* negative logits are multiplied: -1 * 1.5 < -1.4 */
    p = PLAIN;
    p.presence_penalty = 1.5f;
    CHECK_INT(greedy(p, logits, 4, zero, 3, NULL, 0), 0); /* the prompt does not count */
    CHECK_INT(greedy(p, logits, 4, NULL, 0, zero, 1), 1);
    p = PLAIN;
    p.frequency_penalty = 0.4f;
    CHECK_INT(greedy(p, logits, 4, NULL, 0, zero, 2), 0); /* 4 - 0.8 > 3 */
    CHECK_INT(greedy(p, logits, 4, NULL, 0, zero, 3), 1); /* 4 - 1.2 < 3 */
    sampler_bias biases[] = {{0, -100}, {3, 20}, {77, 1}, {-1, 1}};
    p = PLAIN;
    p.biases = biases;
    p.n_biases = ARRAY_LEN(biases);
    CHECK_INT(greedy(p, logits, 4, NULL, 0, NULL, 0), 3);
    biases[1].bias = 0; /* only the value passed in: the sampler holds a copy */
    CHECK_INT(greedy(p, logits, 4, NULL, 0, NULL, 0), 1);
}

/* Frequencies of n draws. */
static void histogram(const sampler_params *p, const float *logits, int32_t n_ids, double *share, int n)
{
    sampler *s = create(p, n_ids, n_ids);
    int counts[16] = {0};
    for (int i = 0; i < n; i++) {
        counts[pick_at(s, logits, (size_t)n_ids, i)]++; /* every place has noise of its own */
    }
    for (int32_t i = 0; i < n_ids; i++) {
        share[i] = (double)counts[i] / n;
    }
    sampler_destroy(s);
}

static void test_distribution(void)
{
    /* probabilities 0.5 0.25 0.125 0.0625 0.0625 */
    const float logits[5] = {logf(8), logf(4), logf(2), 0, 0};
    static const double exact[5] = {0.5, 0.25, 0.125, 0.0625, 0.0625};
    enum { N = 100000 };
    double share[16], chi = 0;
    histogram(&PLAIN, logits, 5, share, N);
    for (int i = 0; i < 5; i++) {
        chi += N * (share[i] - exact[i]) * (share[i] - exact[i]) / exact[i];
    }
    CHECK(chi < 18.5); /* 4 degrees of freedom, 0.1 % */

    sampler_params p = PLAIN;
    p.top_k = 2;
    histogram(&p, logits, 5, share, N);
    CHECK_NEAR(share[0], 2.0 / 3, 0.01);
    CHECK_NEAR(share[0] + share[1], 1, 0);

    p = PLAIN;
    p.top_p = 0.76f; /* 0.5 + 0.25 are not enough: the third is the one that crosses */
    histogram(&p, logits, 5, share, N);
    CHECK_NEAR(share[2], 0.125 / 0.875, 0.01);
    CHECK_NEAR(share[3] + share[4], 0, 0);
    p.top_p = 0.0f; /* always one token */
    histogram(&p, logits, 5, share, 1000);
    CHECK_NEAR(share[0], 1, 0);

    p = PLAIN;
    p.min_p = 0.2f; /* 0.125 / 0.5 stays, 0.0625 / 0.5 goes */
    histogram(&p, logits, 5, share, N);
    CHECK_NEAR(share[2], 0.125 / 0.875, 0.01);
    CHECK_NEAR(share[3] + share[4], 0, 0);

    p = PLAIN;
    p.top_k = 3;
    p.top_p = 0.6f; /* of the mass that top-k left: 0.5 / 0.875 < 0.6, so two stay */
    histogram(&p, logits, 5, share, N);
    CHECK_NEAR(share[0], 2.0 / 3, 0.01);
    CHECK_NEAR(share[2], 0, 0);

    p = PLAIN;
    p.temperature = 0.5f; /* probabilities go with their squares: 64 16 4 1 1 */
    histogram(&p, logits, 5, share, N);
    CHECK_NEAR(share[0], 64.0 / 86, 0.01);
    CHECK_NEAR(share[4], 1.0 / 86, 0.005);
}

/* Of ids that are equally likely the lower ones are kept, however many are looked at. */
static void test_equal(void)
{
    enum { MANY = 300, DRAWS = 3000 };
    static const struct {
        int32_t n, top_k;
        float top_p;
        int32_t kept;
    } CASES[] = {{8, 0, 0.5f, 4},     {8, 3, 1, 3},           {8, 6, 0.5f, 3},     {13, 0, 0.6f, 8},
                 {MANY, 200, 1, 200}, {MANY, 200, 0.25f, 50}, {MANY, 129, 1, 129}, {MANY, 128, 1, 128}};
    static float logits[MANY], copy[MANY];
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        bool drawn[MANY] = {false};
        sampler_params p = PLAIN;
        p.top_k = CASES[i].top_k;
        p.top_p = CASES[i].top_p;
        sampler *s = create(&p, CASES[i].n, CASES[i].n);
        for (int32_t k = 0; k < DRAWS; k++) {
            memcpy(copy, logits, sizeof copy);
            drawn[sampler_pick(s, copy, k)] = true;
        }
        for (int32_t id = 0; id < CASES[i].n; id++) {
            CHECK_INT(drawn[id], id < CASES[i].kept);
        }
        sampler_destroy(s);
    }
}

/* One place under many seeds is the same distribution as many places under one seed. */
static void test_seeds_are_independent(void)
{
    const float logits[5] = {logf(8), logf(4), logf(2), 0, 0};
    static const double exact[5] = {0.5, 0.25, 0.125, 0.0625, 0.0625};
    enum { N = 40000 };
    int counts[5] = {0};
    double chi = 0;
    for (int i = 0; i < N; i++) {
        sampler_params p = PLAIN;
        p.seed = (uint64_t)i;
        sampler *s = create(&p, 5, 5);
        counts[pick(s, logits, 5)]++;
        sampler_destroy(s);
    }
    for (int i = 0; i < 5; i++) {
        double d = counts[i] - N * exact[i];
        chi += d * d / (N * exact[i]);
    }
    CHECK(chi < 18.5); /* 4 degrees of freedom, 0.1 % */
}

static void test_seed(void)
{
    const float logits[8] = {0};
    sampler_params p = PLAIN;
    sampler *a = create(&p, 8, 8), *b = create(&p, 8, 8);
    p.seed = 8;
    sampler *c = create(&p, 8, 8);
    int same = 0;
    for (int i = 0; i < 200; i++) {
        int32_t id = pick(a, logits, 8);
        CHECK_INT(pick_at(b, logits, 8, i), id); /* the same place, seen from the beginning */
        same += pick(c, logits, 8) == id;
        sampler_accept(a, id);
        sampler_accept(c, id);
    }
    CHECK(same < 60);
    sampler_destroy(a);
    sampler_destroy(b);
    sampler_destroy(c);
    sampler_destroy(NULL);
}

enum { MANY = 300, MANY_VALID = 290 };

/* Logits of the valid ids, all different and below 0; what lies behind them is larger. */
static void fill_many(float *logits)
{
    for (int32_t i = 0; i < MANY; i++) {
        logits[i] = i < MANY_VALID ? 0.001f * (float)(i * 37 % MANY_VALID) - 1.0f : 5.0f;
    }
}

/* The likeliest of more tokens than are looked at together, at each place; those behind the valid ones never. */
static void test_many_greedy(void)
{
    static float logits[MANY];
    sampler_params p = PLAIN;
    p.temperature = 0;
    sampler *s = create(&p, MANY, MANY_VALID);
    for (int32_t best = 0; best < MANY; best++) {
        for (int32_t i = 0; i < MANY; i++) {
            logits[i] = i == best ? 2.0f : i == 77 ? 1.0f : i < best && i % 3 == 0 ? NAN : 0.0f;
        }
        CHECK_INT(sampler_pick(s, logits, 0), best < MANY_VALID ? best : 77);
    }
    sampler_destroy(s);
}

/* With top_k the k likeliest of many are drawn, each of them, and nothing else, whatever way they are found in. */
static void test_many_top_k(void)
{
    static const int32_t tops[] = {2, 3, 7, 10, 63, 64, 65, 127, 128, 129, 289, 290, 291};
    static float logits[MANY], copy[MANY];
    for (size_t k = 0; k < ARRAY_LEN(tops); k++) {
        bool drawn[MANY] = {false};
        int32_t n_drawn = 0, lowest = MANY;
        sampler_params p = PLAIN;
        p.temperature = 50.0f; /* nearly all alike */
        p.top_k = tops[k];
        sampler *s = create(&p, MANY, MANY_VALID);
        fill_many(logits);
        logits[5] = NAN;
        logits[6] = -INFINITY;
        for (int i = 0; i < 1000; i++) {
            memcpy(copy, logits, sizeof copy);
            const int32_t id = sampler_pick(s, copy, 0);
            n_drawn += !drawn[id];
            drawn[id] = true;
            sampler_accept(s, id);
            const int32_t rank = MANY_VALID - 1 - id * 37 % MANY_VALID; /* 0: the likeliest */
            lowest = rank < lowest ? rank : lowest;
            /* 5 and 6, which have no chance, leave their places to others */
            const int32_t above =
                (5 * 37 % MANY_VALID > id * 37 % MANY_VALID) + (6 * 37 % MANY_VALID > id * 37 % MANY_VALID);
            CHECK(id < MANY_VALID && id != 5 && id != 6 && rank - above < tops[k]);
        }
        CHECK_INT(lowest, 0);
        CHECK(tops[k] > 65 ? n_drawn > tops[k] * 9 / 10 : n_drawn == tops[k]);
        sampler_destroy(s);
    }
}

/* Ids that are no tokens change nothing, and nothing beside the logits. */
static void test_foreign_ids(void)
{
    const sampler_bias biases[] = {{-1, 5}, {4, 5}, {1 << 30, 5}, {2, 5}};
    const int32_t ids[] = {-1, 4, 1 << 30};
    float logits[6] = {7, 3, 2, 1, 0, 7};
    sampler_params p = PLAIN;
    p.temperature = 0;
    p.repetition_penalty = 1.5f;
    p.frequency_penalty = 1;
    p.biases = biases;
    p.n_biases = 4;
    sampler *s = create(&p, 4, 4);
    sampler_prompt(s, ids, 3);
    for (size_t i = 0; i < 3; i++) {
        sampler_accept(s, ids[i]);
    }
    CHECK_INT(sampler_pick(s, logits + 1, 0), 2);
    const float want[6] = {7, 3, 2, 6, 0, 7};
    CHECK(memcmp(logits, want, sizeof want) == 0);
    sampler_destroy(s);
}

/* A seed's answers stay what they were: what is drawn is a function of it, of the place and of the token alone. */
static void test_recorded_draws(void)
{
    static const int32_t want[2][24] = {
        {9, 5, 13, 7, 4, 13, 4, 6, 14, 8, 9, 3, 10, 15, 7, 10, 14, 3, 6, 12, 12, 0, 5, 0},
        {8, 1, 14, 5, 15, 12, 3, 8, 15, 6, 11, 10, 9, 2, 9, 8, 9, 14, 11, 4, 7, 12, 5, 9}};
    static const float logits[16] = {0};
    for (int k = 0; k < 2; k++) {
        sampler_params p = PLAIN;
        p.seed = k ? 0x123456789abcdef0u : 7;
        sampler *s = create(&p, 16, 16);
        for (int i = 0; i < 24; i++) {
            const int32_t id = pick(s, logits, 16);
            CHECK_INT(id, want[k][i]);
            sampler_accept(s, id);
        }
        sampler_destroy(s);
    }
}

static void test_many_logprobs(void)
{
    static float logits[MANY];
    double sum = 0;
    int32_t ids[20];
    float logprobs[20];
    fill_many(logits);
    for (int32_t i = 0; i < MANY_VALID; i++) {
        sum += exp((double)logits[i]);
    }
    for (int32_t id = 0; id < MANY_VALID; id += 17) {
        CHECK_NEAR(sampler_logprobs(logits, MANY_VALID, id, ids, logprobs, 20), logits[id] - log(sum), 1e-5);
    }
    for (int32_t k = 0; k < 20; k++) {
        CHECK_INT(ids[k] * 37 % MANY_VALID, MANY_VALID - 1 - k);
        CHECK_NEAR(logprobs[k], 0.001 * (MANY_VALID - 1 - k) - 1 - log(sum), 1e-5);
    }
}

static void test_logprobs(void)
{
    const float logits[5] = {0, logf(8), logf(2), logf(4), 0};
    int32_t ids[3];
    float logprobs[3];
    CHECK_NEAR(sampler_logprobs(logits, 5, 3, ids, logprobs, 3), log(0.25), 1e-6);
    CHECK_INT(ids[0], 1);
    CHECK_INT(ids[1], 3);
    CHECK_INT(ids[2], 2);
    CHECK_NEAR(logprobs[0], log(0.5), 1e-6);
    CHECK_NEAR(logprobs[2], log(0.125), 1e-6);
    CHECK_NEAR(sampler_logprobs(logits, 5, 0, NULL, NULL, 0), log(0.0625), 1e-6);
}

static void test_refusals(void)
{
    sampler *s = NULL;
    err_detail d = {0};
    sampler_params p = PLAIN;
    CHECK_INT(sampler_create(&s, &p, 4, 5, &d), ERR_INVALID);
    CHECK_STR(d.text, "a sampler needs 1 <= n_valid <= vocab_size");
    CHECK_INT(sampler_create(&s, &p, 4, 0, &d), ERR_INVALID);
    CHECK_INT(sampler_create(&s, &p, 0, 0, &d), ERR_INVALID);
    /* one parameter in each: both sides of its bound */
    static const struct {
        sampler_params p;
        bool works;
    } CASES[] = {
        {{.temperature = NAN, .top_p = 1, .repetition_penalty = 1}, false},
        {{.temperature = -0.1f, .top_p = 1, .repetition_penalty = 1}, false},
        {{.temperature = 0, .top_p = 1, .repetition_penalty = 1}, true},
        {{.temperature = 1, .top_k = -1, .top_p = 1, .repetition_penalty = 1}, false},
        {{.temperature = 1, .top_k = 1, .top_p = 1, .repetition_penalty = 1}, true},
        {{.temperature = 1, .top_p = -0.1f, .repetition_penalty = 1}, false},
        {{.temperature = 1, .top_p = NAN, .repetition_penalty = 1}, false},
        {{.temperature = 1, .top_p = 0, .repetition_penalty = 1}, true},
        {{.temperature = 1, .top_p = 1, .min_p = -0.1f, .repetition_penalty = 1}, false},
        {{.temperature = 1, .top_p = 1, .min_p = 1.1f, .repetition_penalty = 1}, false},
        {{.temperature = 1, .top_p = 1, .min_p = NAN, .repetition_penalty = 1}, false},
        {{.temperature = 1, .top_p = 1, .min_p = 1, .repetition_penalty = 1}, true},
        {{.temperature = 1, .top_p = 1, .repetition_penalty = 0}, false},
        {{.temperature = 1, .top_p = 1, .repetition_penalty = -1}, false},
        {{.temperature = 1, .top_p = 1, .repetition_penalty = NAN}, false},
        {{.temperature = 1, .top_p = 1, .repetition_penalty = 0.1f}, true},
        {{.temperature = 1, .top_p = 1, .repetition_penalty = 1, .presence_penalty = INFINITY}, false},
        {{.temperature = 1, .top_p = 1, .repetition_penalty = 1, .presence_penalty = NAN}, false},
        {{.temperature = 1, .top_p = 1, .repetition_penalty = 1, .presence_penalty = -2}, true},
        {{.temperature = 1, .top_p = 1, .repetition_penalty = 1, .frequency_penalty = -INFINITY}, false},
        {{.temperature = 1, .top_p = 1, .repetition_penalty = 1, .frequency_penalty = NAN}, false},
        {{.temperature = 1, .top_p = 1, .repetition_penalty = 1, .frequency_penalty = -2}, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        d = (err_detail){0};
        const err_code err = sampler_create(&s, &CASES[i].p, 4, 4, &d);
        if (err != (CASES[i].works ? ERR_OK : ERR_INVALID)) {
            fprintf(stderr, "  case %zu\n", i);
        }
        CHECK_INT(err, CASES[i].works ? ERR_OK : ERR_INVALID);
        CHECK_STR(d.text, CASES[i].works ? "" : "a sampling parameter is out of range");
        CHECK((s != NULL) == CASES[i].works);
        sampler_destroy(s);
        s = NULL;
    }
    CHECK_INT(sampler_create(&s, &p, 1, 1, &d), ERR_OK);
    sampler_destroy(s);
}

/* Under a grammar: every draw is allowed, greedy or not, whatever the logits say; draws ahead
 * follow each other. */
static void test_grammar(void)
{
    enum { N = 4096, MAX = 64 };
    err_detail d = {0};
    tokenizer *tok = NULL;
    token_trie *trie = NULL;
    json_doc *doc = NULL;
    grammar *g = NULL;
    static const char schema[] =
        "{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"maximum\":99},\"maxItems\":4}";
    static float logits[N];
    CHECK_OK(tokenizer_open(&tok, check_data("tiny/tokenizer.json"), &d), d);
    const int32_t stop = tokenizer_added_id(tok, "<|im_end|>"), n = tokenizer_n_tokens(tok);
    CHECK_OK(token_trie_create(&trie, tok, &stop, 1, &d), d);
    CHECK_OK(json_parse(&doc, schema, sizeof schema - 1, 64, &d), d);
    const grammar_spec spec = {.kind = SPEC_SCHEMA, .schema = json_root(doc)};
    CHECK_OK(grammar_build(&g, &spec, NULL, &d), d);
    CHECK(n <= N);
    for (int round = 0; round < 4; round++) {
        grammar_cursor *c = NULL;
        sampler_params p = PLAIN;
        p.temperature = round % 2 ? 1.0f : 0.0f;
        CHECK_OK(grammar_cursor_create(&c, g, trie, false, &d), d);
        sampler *s = create(&p, n, n);
        sampler_constrain(s, c);
        int32_t ids[MAX], n_ids = 0, ahead[3];
        for (; n_ids < MAX; n_ids++) {
            for (int32_t k = 0; k < 3; k++) { /* round 2 and 3: no finite logit at all */
                for (int32_t i = 0; i < n; i++) {
                    logits[i] = round < 2 ? (float)((i * 7919 + n_ids + k) % 101) * 0.1f : -INFINITY;
                }
                ahead[k] = sampler_pick(s, logits, k);
            }
            ids[n_ids] = ahead[0];
            if (ids[n_ids] == stop) {
                break;
            }
            int32_t state = grammar_cursor_state(c);
            for (int32_t k = 0; k < 3; k++) {
                state = grammar_cursor_next(c, state, ahead[k]);
                CHECK(state != GRAMMAR_REFUSED);
            }
            sampler_accept(s, ids[n_ids]);
            CHECK(grammar_cursor_state(c) != GRAMMAR_REFUSED);
        }
        CHECK(n_ids < MAX);
        sampler_destroy(s);
        grammar_cursor_destroy(c);
    }
    /* Where no logit is finite it is the lowest that may come, wherever that lies; and as far ahead as states are kept. */
    static const char *const schemas[] = {"{\"type\":\"string\"}", "{\"type\":\"integer\"}",
                                          "{\"const\":\"zebra\"}"};
    for (size_t i = 0; i < ARRAY_LEN(schemas); i++) {
        grammar *one = NULL;
        json_doc *own = NULL;
        grammar_cursor *c = NULL;
        sampler_params p = PLAIN;
        p.temperature = 0;
        CHECK_OK(json_parse(&own, schemas[i], strlen(schemas[i]), 64, &d), d);
        const grammar_spec wanted = {.kind = SPEC_SCHEMA, .schema = json_root(own)};
        CHECK_OK(grammar_build(&one, &wanted, NULL, &d), d);
        CHECK_OK(grammar_cursor_create(&c, one, trie, false, &d), d);
        sampler *s = create(&p, n, n);
        sampler_constrain(s, c);
        int32_t state = grammar_cursor_state(c);
        for (int32_t ahead = 0; ahead < SAMPLER_LOOKAHEAD; ahead++) {
            const uint64_t *mask = grammar_cursor_mask(c, state);
            int32_t lowest = 0;
            while (!token_mask_has(mask, lowest)) {
                lowest++;
            }
            for (int32_t id = 0; id < n; id++) {
                logits[id] = -INFINITY;
            }
            const int32_t id = sampler_pick(s, logits, ahead);
            CHECK_INT(id, lowest);
            state = grammar_cursor_next(c, state, id);
        }
        for (int32_t id = 0; id < n; id++) { /* behind that nothing is known, and nothing forbidden */
            logits[id] = id == n - 1;
        }
        CHECK_INT(sampler_pick(s, logits, SAMPLER_LOOKAHEAD), n - 1);
        sampler_destroy(s);
        grammar_cursor_destroy(c);
        grammar_destroy(one);
        json_free(own);
    }
    grammar_destroy(g);
    json_free(doc);
    token_trie_destroy(trie);
    tokenizer_close(tok);
}

int main(void)
{
    test_greedy();
    test_penalties();
    test_distribution();
    test_equal();
    test_seeds_are_independent();
    test_seed();
    test_logprobs();
    test_recorded_draws();
    test_many_greedy();
    test_many_top_k();
    test_many_logprobs();
    test_foreign_ids();
    test_refusals();
    test_grammar();
    CHECK_DONE();
}
