/* decoder: one result, however the work is cut: chunks, batches, threads, instruction sets, verify
 * blocks. */
#include "tests/model/tiny.h"

#include "compute/kernels/cpu.h"

static int32_t ids[TINY_CTX], n_ids;

static void test_chunks_equal_whole(const tiny *t)
{
    static const int32_t chunks[] = {1, 7, 63, 64, 65, 128, 300};
    float *whole = malloc(TINY_V * sizeof *whole);
    seq_state *s = tiny_seq(t);
    memcpy(whole, tiny_run(t, s, ids, n_ids, false, false), TINY_V * sizeof *whole);
    CHECK_INT(seq_state_len(s), n_ids);
    for (size_t k = 0; k < ARRAY_LEN(chunks); k++) {
        const float *logits = NULL;
        seq_state_reset(s);
        for (int32_t at = 0; at < n_ids; at += chunks[k]) {
            int32_t n = n_ids - at < chunks[k] ? n_ids - at : chunks[k];
            logits = tiny_run(t, s, ids + at, n, false, false);
        }
        CHECK(logits && tiny_difference(logits, whole, TINY_V) < tiny_tolerance(t));
    }
    /* row by row with the recurrent form */
    const float *logits = NULL;
    seq_state_reset(s);
    for (int32_t at = 0; at < n_ids; at++) {
        logits = tiny_run(t, s, ids + at, 1, true, false);
    }
    CHECK(logits && tiny_difference(logits, whole, TINY_V) < tiny_tolerance(t));
    seq_state_destroy(s);
    free(whole);
}

/* Prompt and eight greedy tokens; the logits of every step go to out [9, V]. */
static void generate(const tiny *t, float *out, int32_t n_prompt)
{
    seq_state *s = tiny_seq(t);
    const float *logits = tiny_run(t, s, ids, n_prompt, false, false);
    memcpy(out, logits, TINY_V * sizeof *out);
    for (int i = 1; i <= 8; i++) {
        int32_t token = tiny_best(out + (i - 1) * TINY_V);
        memcpy(out + i * TINY_V, tiny_run(t, s, &token, 1, true, false), TINY_V * sizeof *out);
    }
    seq_state_destroy(s);
}

static void test_threads_and_kernels(const tiny *two)
{
    size_t n = 9 * TINY_V;
    float *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    unsigned mask = 0;
    generate(two, a, 200);
    const kv_type type = kv_pool_type(two->pool);
    tiny one = tiny_open(1, ~0u, type);
    generate(&one, b, 200);
    CHECK_SAME_FLOATS(a, b, n);
    tiny_close(&one);
    tiny three = tiny_open(3, ~0u, type);
    generate(&three, b, 200);
    CHECK_SAME_FLOATS(a, b, n);
    tiny_close(&three);
    static const char *const levels[] = {"generic", TEST_CPU_LEAST};
    for (size_t i = 0; type == KV_F32 && i < 2; i++) {
        CHECK(cpu_parse_level(levels[i], &mask));
        tiny other = tiny_open(2, mask, type);
        generate(&other, b, 200);
        CHECK(tiny_difference(b, a, n) < 1e-3);
        tiny_close(&other);
    }
    free(a);
    free(b);
}

/* Three sequences that decode together, beside a prefill chunk of a fourth, get the bits that each
 * gets alone. */
static void test_batch_equals_alone(const tiny *t)
{
    static const int32_t lens[3] = {5, 70, 131};
    float *alone = malloc(3 * TINY_V * sizeof *alone), *fourth = malloc(TINY_V * sizeof *fourth);
    int32_t tokens[3 + 90], logit_rows[4] = {0, 1, 2, 92};
    position p[3 + 90];
    seq_state *s[4];
    batch_run runs[4];
    err_detail d = {0};
    for (int i = 0; i < 4; i++) {
        s[i] = tiny_seq(t);
    }
    for (int i = 0; i < 3; i++) {
        tiny_run(t, s[i], ids + 3 * i, lens[i], false, false);
        seq_snapshot *snap = seq_state_snapshot(s[i]);
        tokens[i] = ids[400 + i];
        memcpy(alone + i * TINY_V, tiny_run(t, s[i], &tokens[i], 1, true, false), TINY_V * sizeof *alone);
        CHECK(snap != NULL);
        CHECK_OK(seq_state_restore(s[i], snap, &d), d);
        seq_snapshot_free(snap);
        p[i] = (position){lens[i], lens[i], lens[i]};
        runs[i] = (batch_run){.seq = s[i], .first_row = i, .n_rows = 1, .exact_rows = true};
    }
    memcpy(fourth, tiny_run(t, s[3], ids, 90, false, false), TINY_V * sizeof *fourth);
    seq_state_reset(s[3]);
    for (int32_t i = 0; i < 90; i++) {
        tokens[3 + i] = ids[i];
        p[3 + i] = (position){i, i, i};
    }
    runs[3] = (batch_run){.seq = s[3], .first_row = 3, .n_rows = 90};
    batch b = {.n_rows = 93,
               .tokens = tokens,
               .positions = p,
               .runs = runs,
               .n_runs = 4,
               .logit_rows = logit_rows,
               .n_logit_rows = 4};
    CHECK_OK(decoder_forward(t->m, t->c, &b, t->sc, &d), d);
    for (int i = 0; i < 3; i++) {
        CHECK_SAME_FLOATS(decoder_logits(t->sc, i), alone + i * TINY_V, TINY_V);
        CHECK_INT(seq_state_len(s[i]), lens[i] + 1);
    }
    CHECK(tiny_difference(decoder_logits(t->sc, 3), fourth, TINY_V) < tiny_tolerance(t));
    for (int i = 0; i < 4; i++) {
        seq_state_destroy(s[i]);
    }
    free(alone);
    free(fourth);
}

/* More decode rows than one matrix product may take: still the bits of each alone. */
static void test_many_rows(const tiny *t)
{
    enum { N = NN_ROWS_EXACT + 5 };
    seq_state *s[N];
    batch_run runs[N];
    position p[N];
    int32_t tokens[N], rows[N];
    float *alone = malloc(N * TINY_V * sizeof *alone);
    err_detail d = {0};
    for (int32_t i = 0; i < N; i++) {
        s[i] = tiny_seq(t);
        tokens[i] = ids[i];
        rows[i] = i;
        p[i] = (position){0, 0, 0};
        runs[i] = (batch_run){.seq = s[i], .first_row = i, .n_rows = 1, .exact_rows = true};
        memcpy(alone + i * TINY_V, tiny_run(t, s[i], &tokens[i], 1, true, false), TINY_V * sizeof *alone);
        seq_state_reset(s[i]);
    }
    batch b = {.n_rows = N,
               .tokens = tokens,
               .positions = p,
               .runs = runs,
               .n_runs = N,
               .logit_rows = rows,
               .n_logit_rows = N};
    CHECK_OK(decoder_forward(t->m, t->c, &b, t->sc, &d), d);
    for (int32_t i = 0; i < N; i++) {
        CHECK_SAME_FLOATS(decoder_logits(t->sc, i), alone + i * TINY_V, TINY_V);
        seq_state_destroy(s[i]);
    }
    free(alone);
}

/* A verify block of four rows = four steps, bit for bit; and going back to any of its rows. */
static void test_verify_block(const tiny *t)
{
    enum { K = 4 };
    float *steps = malloc((K + 1) * TINY_V * sizeof *steps);
    int32_t rows[K] = {0, 1, 2, 3};
    position p[K];
    err_detail d = {0};
    seq_state *s = tiny_seq(t);
    CHECK_OK(seq_state_reserve_rows(s, K, &d), d);
    tiny_run(t, s, ids, 100, false, false);
    seq_snapshot *snap = seq_state_snapshot(s);
    CHECK(snap != NULL);
    for (int i = 0; i <= K; i++) {
        memcpy(steps + i * TINY_V, tiny_run(t, s, ids + 100 + i, 1, true, false), TINY_V * sizeof *steps);
    }
    for (int32_t i = 0; i < K; i++) {
        p[i] = (position){100 + i, 100 + i, 100 + i};
    }
    for (int32_t keep = 1; keep <= K; keep++) {
        CHECK_OK(seq_state_restore(s, snap, &d), d);
        batch_run run = {.seq = s, .n_rows = K, .exact_rows = true, .keep_rows = true};
        batch b = {.n_rows = K,
                   .tokens = ids + 100,
                   .positions = p,
                   .runs = &run,
                   .n_runs = 1,
                   .logit_rows = rows,
                   .n_logit_rows = K};
        CHECK_OK(decoder_forward(t->m, t->c, &b, t->sc, &d), d);
        for (int i = 0; i < K; i++) {
            CHECK_SAME_FLOATS(decoder_logits(t->sc, i), steps + i * TINY_V, TINY_V);
        }
        seq_state_rewind(s, keep);
        CHECK_INT(seq_state_len(s), 100 + keep);
        const float *next = tiny_run(t, s, ids + 100 + keep, 1, true, false);
        CHECK_SAME_FLOATS(next, steps + keep * TINY_V, TINY_V);
    }
    seq_snapshot_free(snap);
    seq_state_destroy(s);
    free(steps);
}

/* Verify blocks of several sequences in one step, of which more states are kept than go together: what is said of each row,
 * and behind a cut of each, is what the block says alone. */
static void test_verify_company(const tiny *t)
{
    enum { SEQS = 3, ROWS = 12, KEPT = 5, PROMPT = 20, ALL = SEQS * ROWS };
    err_detail d = {0};
    float *alone = malloc((ALL + SEQS) * TINY_V * sizeof *alone);
    batch_run runs[SEQS];
    int32_t tokens[ALL], rows[ALL];
    position p[ALL];
    for (int way = 0; way < 2; way++) { /* each alone, then all */
        seq_state *s[SEQS];
        for (int32_t i = 0; i < SEQS; i++) {
            s[i] = tiny_seq(t);
            CHECK_OK(seq_state_reserve_rows(s[i], ROWS, &d), d);
            tiny_run(t, s[i], ids + 50 * i, PROMPT, false, false);
            runs[i] = (batch_run){.seq = s[i],
                                  .first_row = way * i * ROWS,
                                  .n_rows = ROWS,
                                  .exact_rows = true,
                                  .keep_rows = true};
            for (int32_t k = 0; k < ROWS; k++) {
                const int32_t at = i * ROWS + k;
                tokens[at] = ids[300 + at];
                p[at] = (position){PROMPT + k, PROMPT + k, PROMPT + k};
                rows[at] = at;
            }
        }
        for (int32_t i = 0; i < (way ? 1 : SEQS); i++) {
            const int32_t n = way ? ALL : ROWS;
            const batch b = {.n_rows = n,
                             .tokens = tokens + i * ROWS,
                             .positions = p,
                             .runs = runs + i,
                             .n_runs = way ? SEQS : 1,
                             .logit_rows = rows,
                             .n_logit_rows = n};
            CHECK_OK(decoder_forward(t->m, t->c, &b, t->sc, &d), d);
            for (int32_t k = 0; k < n; k++) {
                float *to = alone + (i * ROWS + k) * TINY_V;
                if (way) {
                    CHECK_SAME_FLOATS(decoder_logits(t->sc, k), to, TINY_V);
                } else {
                    memcpy(to, decoder_logits(t->sc, k), TINY_V * sizeof *to);
                }
            }
        }
        for (int32_t i = 0; i < SEQS; i++) {
            float *to = alone + (ALL + i) * TINY_V;
            seq_state_rewind(s[i], KEPT + i);
            const float *next = tiny_run(t, s[i], ids + 400 + i, 1, true, false);
            if (way) {
                CHECK_SAME_FLOATS(next, to, TINY_V);
            } else {
                memcpy(to, next, TINY_V * sizeof *to);
            }
            seq_state_destroy(s[i]);
        }
    }
    free(alone);
}

/* States taken on the way past marks are those of forwards that end there, and what follows has the
 * same bits: in one go and in small pieces, or where not every state is wanted. */
static void check_marks(const compute_options *options, kv_type type)
{
    enum { N = 330, MARKS = 4 };
    static const int32_t AT[MARKS + 1] = {35, 40, 200, 329, N};
    tiny t = tiny_open_with(options, type);
    err_detail d = {0};
    if (!nn_many_is_exact(t.c)) { /* rows that depend on their number */
        tiny_close(&t);
        return;
    }
    float *whole = malloc(TINY_V * sizeof *whole);
    const int32_t last = N - 1;
    static position p[TINY_ROWS];
    for (int32_t i = 0; i < N; i++) {
        p[i] = (position){i, i, i};
    }
    seq_state *s = tiny_seq(&t), *at_mark = tiny_seq(&t);
    seq_snapshot *cut[MARKS];
    for (int32_t i = 0, begin = 0; i <= MARKS; begin = AT[i++]) {
        const float *logits = tiny_run(&t, s, ids + begin, AT[i] - begin, false, false);
        if (i < MARKS) {
            cut[i] = seq_state_snapshot(s);
        } else {
            memcpy(whole, logits, TINY_V * sizeof *whole);
        }
    }
    for (int way = 0; way < 3; way++) {
        batch_mark marks[MARKS];
        seq_state_reset(s);
        for (int i = 0; i < MARKS; i++) {
            marks[i] = (batch_mark){AT[i], way == 2 && i % 2 ? NULL : seq_snapshot_begin(s, AT[i])};
        }
        const batch_run run = {.seq = s, .n_rows = N, .marks = marks, .n_marks = MARKS};
        const batch b = {.n_rows = N,
                         .tokens = ids,
                         .positions = p,
                         .runs = &run,
                         .n_runs = 1,
                         .logit_rows = &last,
                         .n_logit_rows = 1};
        CHECK_OK(decoder_begin(t.m, t.c, &b, t.sc, &d), d);
        while (decoder_next(t.m, t.sc, way == 1)) {
        }
        CHECK_SAME_FLOATS(decoder_logits(t.sc, 0), whole, TINY_V);
        for (int i = 0; i < MARKS; i++) {
            if (!marks[i].into) {
                continue;
            }
            seq_snapshot_end(marks[i].into, s);
            const seq_snapshot_parts taken = seq_snapshot_get_parts(marks[i].into),
                                     wanted = seq_snapshot_get_parts(cut[i]);
            CHECK_INT(taken.len, wanted.len);
            CHECK_INT((int)taken.n_blocks, (int)wanted.n_blocks);
            CHECK(memcmp(taken.floats, wanted.floats, taken.n_floats * sizeof *taken.floats) == 0);
            if (AT[i] == N - 1) {
                CHECK_OK(seq_state_restore(at_mark, marks[i].into, &d), d);
                CHECK_SAME_FLOATS(tiny_run(&t, at_mark, ids + N - 1, 1, false, false), whole, TINY_V);
            }
            seq_snapshot_free(marks[i].into);
        }
    }
    for (int i = 0; i < MARKS; i++) {
        seq_snapshot_free(cut[i]);
    }
    seq_state_destroy(s);
    seq_state_destroy(at_mark);
    free(whole);
    tiny_close(&t);
}

/* A prompt in one go and in small pieces, or in both by turns, between which another sequence goes
 * on in a scratch of its own: the same bits, for both. */
static void check_pieces(const compute_options *options, kv_type type)
{
    tiny t = tiny_open_with(options, type);
    decoder_scratch *other_sc = NULL;
    err_detail d = {0};
    CHECK_OK(decoder_scratch_create(&other_sc, t.m, t.c, 1, 1, &d), d);
    float *whole = malloc(TINY_V * sizeof *whole), *after = malloc(TINY_V * sizeof *after);
    const int32_t n = 330, last = n - 1, next = 7, row = 0;
    static position p[TINY_ROWS];
    for (int32_t i = 0; i < n; i++) {
        p[i] = (position){i, i, i};
    }
    seq_state *s = tiny_seq(&t), *other = tiny_seq(&t);
    memcpy(whole, tiny_run(&t, s, ids, n, false, false), TINY_V * sizeof *whole);
    memcpy(after, tiny_run(&t, s, &next, 1, true, false), TINY_V * sizeof *after);
    float first[TINY_V];
    for (int way = 0; way < 3; way++) {
        seq_state_reset(s);
        seq_state_reset(other);
        const batch_run run = {.seq = s, .n_rows = n}, other_run = {other, 0, 1, .exact_rows = true};
        const batch b = {.n_rows = n,
                         .tokens = ids,
                         .positions = p,
                         .runs = &run,
                         .n_runs = 1,
                         .logit_rows = &last,
                         .n_logit_rows = 1};
        CHECK_OK(decoder_begin(t.m, t.c, &b, t.sc, &d), d);
        int32_t n_pieces = 0;
        do {
            if (n_pieces < 20) {
                const batch one = {.n_rows = 1,
                                   .tokens = &ids[n_pieces],
                                   .positions = &p[n_pieces],
                                   .runs = &other_run,
                                   .n_runs = 1,
                                   .logit_rows = &row,
                                   .n_logit_rows = 1};
                CHECK_OK(decoder_forward(t.m, t.c, &one, other_sc, &d), d);
            }
            n_pieces++;
        } while (decoder_next(t.m, t.sc, way == 0 || (way == 1 && n_pieces % 3 != 0)));
        CHECK(memcmp(decoder_logits(t.sc, 0), whole, TINY_V * sizeof *whole) == 0);
        CHECK_INT(seq_state_len(s), n);
        CHECK(memcmp(tiny_run(&t, s, &next, 1, true, false), after, TINY_V * sizeof *after) == 0);
        const int32_t halves = 2 * model_get_config(t.m)->n_layers;
        CHECK(way == 2 || !nn_many_is_exact(t.c) ? n_pieces == halves : n_pieces > 2 * halves);
        if (way == 0 && n_pieces >= 20) {
            memcpy(first, decoder_logits(other_sc, 0), sizeof first);
        } else if (n_pieces >= 20) {
            CHECK(memcmp(decoder_logits(other_sc, 0), first, sizeof first) == 0);
        }
    }
    seq_state_destroy(s);
    seq_state_destroy(other);
    decoder_scratch_destroy(other_sc);
    free(whole);
    free(after);
    tiny_close(&t);
}

static void test_pieces(void)
{
    static const char *const levels[] = {"generic", TEST_CPU_LEAST, "native"};
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        unsigned mask = 0;
        CHECK(cpu_parse_level(levels[i], &mask));
        check_pieces(&(compute_options){.n_threads = 2, .cpu_mask = mask, .fast = true}, (kv_type)i);
        check_marks(&(compute_options){.n_threads = 2, .cpu_mask = mask, .fast = true}, (kv_type)i);
    }
    check_pieces(&(compute_options){.n_threads = 1, .cpu_mask = ~0u}, KV_F32);
}

static void test_refusals(const tiny *t)
{
    seq_state *s = NULL;
    err_detail d = {0};
    position p[4] = {{0, 0, 0}};
    int32_t tokens[4] = {1, 2, 3, 4}, row = 0, outside = 4;
    CHECK_OK(seq_state_create(&s, model_get_config(t->m), t->pool, 3, t->c, &d), d);
    batch_run run = {.seq = s, .n_rows = 4};
    batch b = {.n_rows = 4,
               .tokens = tokens,
               .positions = p,
               .runs = &run,
               .n_runs = 1,
               .logit_rows = &row,
               .n_logit_rows = 1};
    CHECK_INT(decoder_forward(t->m, t->c, &b, t->sc, &d), ERR_LIMIT); /* the context is full */
    CHECK(strstr(d.text, "0 of 3") != NULL);
    CHECK_INT(seq_state_len(s), 0);
    run.n_rows = 3;
    CHECK_INT(decoder_forward(t->m, t->c, &b, t->sc, &d), ERR_INTERNAL); /* a row without a run */
    b.n_rows = 3;
    tokens[1] = TINY_V;
    CHECK_INT(decoder_forward(t->m, t->c, &b, t->sc, &d), ERR_INVALID);
    tokens[1] = -1;
    CHECK_INT(decoder_forward(t->m, t->c, &b, t->sc, &d), ERR_INVALID);
    tokens[1] = 1;
    b.logit_rows = &outside;
    CHECK_INT(decoder_forward(t->m, t->c, &b, t->sc, &d), ERR_INTERNAL);
    CHECK_STR(d.text, "row 4 is outside a batch of 3");
    outside = 3;
    CHECK_INT(decoder_forward(t->m, t->c, &b, t->sc, &d), ERR_INTERNAL);
    outside = -1;
    CHECK_INT(decoder_forward(t->m, t->c, &b, t->sc, &d), ERR_INTERNAL);
    CHECK_STR(d.text, "row -1 is outside a batch of 3");
    b.logit_rows = &row;
    run.exact_rows = run.keep_rows = true; /* not reserved */
    CHECK_INT(decoder_forward(t->m, t->c, &b, t->sc, &d), ERR_INTERNAL);
    CHECK_STR(d.text, "a verify block of 3 rows was not reserved");
    seq_state *reserved = NULL;
    CHECK_OK(seq_state_create(&reserved, model_get_config(t->m), t->pool, 3, t->c, &d), d);
    CHECK_OK(seq_state_reserve_rows(reserved, 2, &d), d);
    run.seq = reserved;
    CHECK_INT(decoder_forward(t->m, t->c, &b, t->sc, &d), ERR_INTERNAL); /* fewer were */
    run.n_rows = b.n_rows = 2;
    run.exact_rows = false;
    CHECK_INT(decoder_forward(t->m, t->c, &b, t->sc, &d), ERR_INTERNAL);
    run.exact_rows = true;
    CHECK_OK(decoder_forward(t->m, t->c, &b, t->sc, &d), d);
    seq_state_destroy(reserved);
    run.seq = s;
    run.n_rows = b.n_rows = 3;
    run.keep_rows = false;
    CHECK_OK(decoder_forward(t->m, t->c, &b, t->sc, &d), d);
    CHECK_INT(seq_state_create(&s, model_get_config(t->m), t->pool, 0, t->c, &d), ERR_INVALID);
    seq_state_destroy(run.seq);
}

/* Each bound of a batch, with what is said of it; and that nothing came into the sequence. */
static void test_batch_bounds(const tiny *t)
{
    static const struct {
        int32_t n_rows, n_logit_rows, n_runs, first_row, run_rows;
        err_code code;
        const char *text;
    } CASES[] = {
        {0, 1, 1, 0, 1, ERR_LIMIT, "a batch of 0 rows and 1 logits does not fit 4 and 2"},
        {5, 1, 1, 0, 5, ERR_LIMIT, "a batch of 5 rows and 1 logits does not fit 4 and 2"},
        {4, 3, 1, 0, 4, ERR_LIMIT, "a batch of 4 rows and 3 logits does not fit 4 and 2"},
        {4, 1, 5, 0, 4, ERR_LIMIT, "a batch of 4 rows and 1 logits does not fit 4 and 2"},
        {4, 1, 1, 1, 3, ERR_INTERNAL, "the runs of a batch do not tile its rows"},
        {4, 1, 1, 0, 0, ERR_INTERNAL, "the runs of a batch do not tile its rows"},
        {4, 1, 1, 0, 5, ERR_INTERNAL, "the runs of a batch do not tile its rows"},
        {4, 1, 1, 0, 3, ERR_INTERNAL, "the runs of a batch do not tile its rows"},
        {4, 2, 1, 0, 4, ERR_OK, ""},
    };
    decoder_scratch *sc = NULL;
    err_detail d = {0};
    CHECK_INT(decoder_scratch_create(&sc, t->m, t->c, 0, 1, &d), ERR_INVALID);
    CHECK_STR(d.text, "a batch needs room for at least one row");
    CHECK(!sc);
    CHECK_INT(decoder_scratch_create(&sc, t->m, t->c, 1, -1, &d), ERR_INVALID);
    CHECK(!sc);
    CHECK_OK(decoder_scratch_create(&sc, t->m, t->c, 1, 0, &d), d);
    decoder_scratch_destroy(sc);
    CHECK_OK(decoder_scratch_create(&sc, t->m, t->c, 4, 2, &d), d);
    seq_state *s = tiny_seq(t);
    for (size_t i = 0; sc && i < ARRAY_LEN(CASES); i++) {
        static const int32_t tokens[8] = {1, 2, 3, 4, 5, 6, 7, 8}, rows[3] = {0, 1, 2};
        static const position places[8] = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3}};
        const batch_run runs[5] = {{.seq = s, .first_row = CASES[i].first_row, .n_rows = CASES[i].run_rows}};
        const batch b = {.n_rows = CASES[i].n_rows,
                         .tokens = tokens,
                         .positions = places,
                         .runs = runs,
                         .n_runs = CASES[i].n_runs,
                         .logit_rows = rows,
                         .n_logit_rows = CASES[i].n_logit_rows};
        d = (err_detail){0};
        CHECK_INT(decoder_forward(t->m, t->c, &b, sc, &d), CASES[i].code);
        CHECK_STR(d.text, CASES[i].text);
        CHECK_INT(seq_state_len(s), CASES[i].code ? 0 : 4);
    }
    seq_state_destroy(s);
    decoder_scratch_destroy(sc);
}

/* Matrices in memory of their own have the bits of those in the file. */
static void test_copied_weights(void)
{
    tiny plain = tiny_open(2, ~0u, KV_F32);
    tiny copied = tiny_open_as(&(tiny_options){check_data("tiny"), 2, ~0u, KV_F32, 0, false, true});
    seq_state *a = tiny_seq(&plain), *b = tiny_seq(&copied);
    const float *was = tiny_run(&plain, a, ids, 100, false, false),
                *is = tiny_run(&copied, b, ids, 100, false, false);
    CHECK(memcmp(was, is, TINY_V * sizeof *was) == 0);
    seq_state_destroy(a);
    seq_state_destroy(b);
    tiny_close(&plain);
    tiny_close(&copied);
}

int main(void)
{
    n_ids = tiny_ids(ids, TINY_CTX);
    CHECK_INT(n_ids, 730);
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        tiny t = tiny_open(2, ~0u, type);
        test_chunks_equal_whole(&t);
        test_threads_and_kernels(&t);
        test_batch_equals_alone(&t);
        test_many_rows(&t);
        test_verify_block(&t);
        test_verify_company(&t);
        test_refusals(&t);
        test_batch_bounds(&t);
        tiny_close(&t);
    }
    test_pieces();
    test_copied_weights();
    CHECK_DONE();
}
