/* mtp: the draft head's cache filled at once, in pieces, or with keys and values alone; truncation;
 * refusals. */
#include <math.h>

#include "model/model_parts.h"
#include "model/seq_layout.h"
#include "tests/model/random_families.h"
#include "tests/model/tiny.h"

enum { N = 150 };

static int32_t ids[TINY_CTX];
static position positions[N];
static float hidden[N * TINY_H];

/* Entry N-1's logits and output after the cache was filled in pieces of `piece`; up to n_logits
 * rows of each earlier piece get logits too. */
static void run_pieces(const tiny *t, mtp_scratch *ms, seq_state *s, int32_t piece, int32_t n_logits,
                       float *out)
{
    err_detail d = {0};
    mtp_truncate(s, 0);
    for (int32_t at = 0; at < N; at += piece) {
        int32_t n = N - at < piece ? N - at : piece;
        bool last = at + n == N;
        mtp_input in = {s, hidden + at * TINY_H, ids + 1 + at, positions + at, n};
        CHECK_OK(mtp_forward(t->m, t->c, ms, &in, last ? 1 : n_logits < n ? n_logits : n, &d), d);
    }
    CHECK_INT(mtp_len(s), N);
    memcpy(out, mtp_logits(ms, 0), TINY_V * sizeof *out);
    memcpy(out + TINY_V, mtp_hidden(ms, 0), TINY_H * sizeof *out);
}

static void test_pieces(const tiny *t, mtp_scratch *ms, seq_state *s)
{
    static const int32_t pieces[] = {1, 31, 64, 149};
    float whole[TINY_V + TINY_H], other[TINY_V + TINY_H];
    run_pieces(t, ms, s, N, 0, whole);
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        for (int32_t n_logits = 0; n_logits <= 2; n_logits++) {
            run_pieces(t, ms, s, pieces[i], n_logits, other);
            CHECK(tiny_difference(other, whole, TINY_V) < tiny_tolerance(t));
            CHECK(tiny_difference(other + TINY_V, whole + TINY_V, TINY_H) < tiny_tolerance(t));
        }
    }
}

/* Drafting on and cutting back leaves no trace; the cut entries may be written again. */
static void test_truncate(const tiny *t, mtp_scratch *ms, seq_state *s)
{
    float first[TINY_V];
    err_detail d = {0};
    position p = {N, N, N};
    int32_t token = ids[N], wrong = ids[N] + 1;
    run_pieces(t, ms, s, N, 0, (float[TINY_V + TINY_H]){0});
    mtp_input in = {s, hidden + 5 * TINY_H, &token, &p, 1};
    CHECK_OK(mtp_forward(t->m, t->c, ms, &in, 1, &d), d);
    memcpy(first, mtp_logits(ms, 0), sizeof first);
    mtp_truncate(s, N);
    in.next_tokens = &wrong;
    CHECK_OK(mtp_forward(t->m, t->c, ms, &in, 1, &d), d);
    in.hidden = mtp_hidden(ms, 0); /* the head's own output may be fed back */
    CHECK_OK(mtp_forward(t->m, t->c, ms, &in, 1, &d), d);
    CHECK_INT(mtp_len(s), N + 2);
    mtp_truncate(s, N);
    in = (mtp_input){s, hidden + 5 * TINY_H, &token, &p, 1};
    CHECK_OK(mtp_forward(t->m, t->c, ms, &in, 1, &d), d);
    CHECK_SAME_FLOATS(mtp_logits(ms, 0), first, TINY_V);
}

/* What a state at a mark has of the head's entries: those before the mark that are there. */
static void test_marks(const tiny *t, mtp_scratch *ms, seq_state *s)
{
    static const int32_t lens[] = {1, 64, 100, N}, filled[] = {0, 1, 63, 64, 65, 100, N};
    for (size_t i = 0; i < ARRAY_LEN(lens) * ARRAY_LEN(filled); i++) {
        const int32_t len = lens[i / ARRAY_LEN(filled)], n = filled[i % ARRAY_LEN(filled)],
                      most = n < len ? n : len;
        err_detail d = {0};
        seq_state *other = tiny_seq(t);
        mtp_truncate(s, 0);
        const mtp_input in = {s, hidden, ids + 1, positions, n};
        CHECK(n == 0 || mtp_forward(t->m, t->c, ms, &in, 0, &d) == ERR_OK);
        seq_snapshot *snap = seq_snapshot_begin(s, len);
        for (int32_t layer = 0; layer < model_get_config(t->m)->n_recurrent_layers; layer++) {
            seq_snapshot_take(snap, s, (size_t)layer);
        }
        seq_snapshot_end(snap, s);
        CHECK_INT(seq_snapshot_get_parts(snap).mtp_len, most);
        CHECK_OK(seq_state_restore(other, snap, &d), d);
        CHECK(seq_state_len(other) == len && mtp_len(other) == most);
        seq_snapshot_free(snap);
        snap = seq_snapshot_alloc(other, len, n); /* to be read from a file */
        CHECK_INT(seq_snapshot_get_parts(snap).mtp_len, most);
        seq_snapshot_free(snap);
        seq_state_destroy(other);
    }
}

static void test_refusals(const tiny *t, mtp_scratch *ms, seq_state *s)
{
    err_detail d = {0};
    seq_state *plain = NULL, *small = NULL;
    kv_pool *headless = NULL;
    int32_t outside = TINY_V;
    mtp_input in = {s, hidden, &outside, positions, 1};
    mtp_truncate(s, 0);
    CHECK_INT(mtp_forward(t->m, t->c, ms, &in, 0, &d), ERR_INVALID);
    CHECK_STR(d.text, "token 1888 is outside the vocabulary of 1888");
    outside = -1;
    CHECK_INT(mtp_forward(t->m, t->c, ms, &in, 0, &d), ERR_INVALID);
    CHECK_STR(d.text, "token -1 is outside the vocabulary of 1888");
    in.next_tokens = ids;
    static const struct {
        int32_t n, n_logits;
        const char *text;
    } CASES[] = {{1, 2, "1 draft rows with 2 logits do not fit 150 and 2"},
                 {N, 3, "150 draft rows with 3 logits do not fit 150 and 2"},
                 {N + 1, 0, "151 draft rows with 0 logits do not fit 150 and 2"},
                 {0, 0, "0 draft rows with 0 logits do not fit 150 and 2"},
                 {1, -1, "1 draft rows with -1 logits do not fit 150 and 2"}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        in.n = CASES[i].n;
        CHECK_INT(mtp_forward(t->m, t->c, ms, &in, CASES[i].n_logits, &d), ERR_LIMIT);
        CHECK_STR(d.text, CASES[i].text);
    }
    CHECK_INT(mtp_len(s), 0);
    CHECK_OK(kv_pool_create(&headless, model_get_config(t->m), kv_pool_type(t->pool), false, 2, 2, t->c, &d),
             d);
    CHECK_OK(seq_state_create(&plain, model_get_config(t->m), headless, 10, t->c, &d), d);
    CHECK_OK(seq_state_create(&small, model_get_config(t->m), t->pool, 10, t->c, &d), d);
    in = (mtp_input){plain, hidden, ids, positions, 1};
    CHECK_INT(mtp_forward(t->m, t->c, ms, &in, 0, &d), ERR_INTERNAL);
    in = (mtp_input){small, hidden, ids, positions, 11};
    CHECK_INT(mtp_forward(t->m, t->c, ms, &in, 0, &d), ERR_LIMIT);
    CHECK_INT(mtp_len(small), 0);
    CHECK_STR(d.text, "11 more draft entries do not fit: 0 of 10 are in use");
    in.n = 10;
    CHECK_OK(mtp_forward(t->m, t->c, ms, &in, 0, &d), d);
    CHECK_INT(mtp_scratch_create(&ms, t->m, t->c, 0, 0, &d), ERR_INVALID);
    CHECK_INT(mtp_scratch_create(&ms, t->m, t->c, 1, -1, &d), ERR_INVALID);
    CHECK_STR(d.text, "the draft head needs room for at least one row");
    CHECK_OK(mtp_scratch_create(&ms, t->m, t->c, 1, 0, &d), d);
    mtp_scratch_destroy(ms);
    seq_state_destroy(plain);
    seq_state_destroy(small);
    kv_pool_destroy(headless);
}

/* A head that is ahead of its model by a block: its entries have no room where the model's rows have. */
static void test_ahead(const tiny *t, mtp_scratch *ms)
{
    err_detail d = {0};
    seq_state *s = tiny_seq(t), *small = NULL, *fitting = NULL;
    tiny_run(t, s, ids, SEQ_PAGE_TOKENS, false, false);
    const mtp_input in = {s, hidden, ids + 1, positions, SEQ_PAGE_TOKENS + 1};
    CHECK_OK(mtp_forward(t->m, t->c, ms, &in, 0, &d), d);
    seq_snapshot *snap = seq_state_snapshot(s);
    CHECK_OK(seq_state_create(&small, model_get_config(t->m), t->pool, SEQ_PAGE_TOKENS, t->c, &d), d);
    CHECK_OK(seq_state_create(&fitting, model_get_config(t->m), t->pool, SEQ_PAGE_TOKENS + 1, t->c, &d), d);
    CHECK_INT(seq_state_restore(small, snap, &d), ERR_LIMIT);
    CHECK_STR(d.text, "a snapshot of 64 tokens does not fit a context of 64");
    CHECK_OK(seq_state_restore(fitting, snap, &d), d);
    CHECK(seq_state_len(fitting) == SEQ_PAGE_TOKENS && mtp_len(fitting) == SEQ_PAGE_TOKENS + 1);
    seq_snapshot_free(snap);
    seq_state_destroy(s);
    seq_state_destroy(small);
    seq_state_destroy(fitting);
}

/* A model without a head, in blocks that have room for one. */
static void test_no_head(void)
{
    static const char PLAIN[] =
        "{\"model_type\":\"qwen3\"," RANDOM_SIZES ",\"intermediate_size\":80" RANDOM_ROPE("") "}";
    char dir[64];
    err_detail d = {0};
    mtp_scratch *ms = NULL;
    random_checkpoint_make(dir, PLAIN, RANDOM_TEXT_ONLY);
    tiny t = tiny_open_as(&(tiny_options){.dir = dir, .n_threads = 1, .cpu_mask = ~0u, .type = KV_F32});
    seq_state *s = tiny_seq(&t);
    CHECK(!model_has_mtp(t.m));
    CHECK_OK(mtp_scratch_create(&ms, t.m, t.c, 4, 1, &d), d);
    const mtp_input in = {s, hidden, ids + 1, positions, 1};
    CHECK_INT(mtp_forward(t.m, t.c, ms, &in, 0, &d), ERR_INTERNAL);
    CHECK_STR(d.text, "the model or the sequence has no draft head");
    mtp_scratch_destroy(ms);
    seq_state_destroy(s);
    tiny_close(&t);
}

static void test_type(kv_type type)
{
    mtp_scratch *ms = NULL;
    err_detail d = {0};
    tiny t = tiny_open(2, ~0u, type);
    seq_state *s = tiny_seq(&t);
    CHECK(model_has_mtp(t.m));
    CHECK_OK(mtp_scratch_create(&ms, t.m, t.c, N, 2, &d), d);
    tiny_run(&t, s, ids, N, false, false);
    memcpy(hidden, decoder_hidden(t.sc, 0), sizeof hidden);
    for (int32_t i = 0; i < N; i++) {
        positions[i] = (position){i, i, i};
    }
    test_pieces(&t, ms, s);
    test_truncate(&t, ms, s);
    test_marks(&t, ms, s);
    test_refusals(&t, ms, s);
    test_ahead(&t, ms);
    mtp_scratch_destroy(ms);
    mtp_scratch_destroy(NULL);
    seq_state_destroy(s);
    tiny_close(&t);
}

/* Of a large vocabulary the first and the last ids are guessed, as the whole head says; the others never. */
static void test_large_vocabulary(void)
{
    enum { FIRST = 65536, LAST = 512, BETWEEN = 100, V = FIRST + BETWEEN + LAST, ROWS = 2 };
    static const char CONFIG[] = "{\"model_type\":\"qwen3_5_moe_text\"," RANDOM_SIZES RANDOM_DELTA RANDOM_MOE
                                 ",\"shared_expert_intermediate_size\":40,\"mtp_num_hidden_layers\":1,"
                                 "\"vocab_size\":66148" RANDOM_ROPE(",\"mrope_section\":[1,1,0]") "}";
    static float wanted[V];
    char dir[64];
    err_detail d = {0};
    mtp_scratch *ms = NULL;
    random_checkpoint_make(dir, CONFIG, RANDOM_PER_EXPERT | RANDOM_TEXT_ONLY);
    tiny t = tiny_open_as(&(tiny_options){.dir = dir, .n_threads = 2, .cpu_mask = ~0u, .type = KV_F32});
    seq_state *s = tiny_seq(&t);
    CHECK_INT(model_get_config(t.m)->vocab_size, V);
    CHECK_OK(mtp_scratch_create(&ms, t.m, t.c, ROWS, ROWS, &d), d);
    const mtp_input in = {s, hidden, ids + 1, positions, ROWS};
    CHECK_OK(mtp_forward(t.m, t.c, ms, &in, ROWS, &d), d);
    for (int32_t i = 0; i < ROWS; i++) {
        const float *logits = mtp_logits(ms, i);
        size_t n_between = 0;
        nn_linear(t.c, wanted, mtp_hidden(ms, i), &model_get_parts(t.m)->weights->head, NULL, 1);
        for (size_t id = FIRST; id < V - LAST; id++) {
            n_between += isinf(logits[id]) && logits[id] < 0;
        }
        CHECK_INT(n_between, BETWEEN);
        CHECK(wanted[0] != 0 && wanted[FIRST - 1] != 0 && wanted[V - 1] != 0);
        CHECK_SAME_FLOATS(logits, wanted, FIRST);
        CHECK_SAME_FLOATS(logits + V - LAST, wanted + V - LAST, LAST);
    }
    mtp_scratch_destroy(ms);
    seq_state_destroy(s);
    tiny_close(&t);
}

int main(void)
{
    CHECK_INT(tiny_ids(ids, TINY_CTX), 730);
    for (kv_type type = KV_F32; type < KV_TYPES; type++) {
        test_type(type);
    }
    test_no_head();
    test_large_vocabulary();
    CHECK_DONE();
}
