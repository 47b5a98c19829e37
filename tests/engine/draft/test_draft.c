/* The drafter against the head itself: what it remembers while answers are decoded is what the head would have been
 * given at once, at positions that count the offset behind images, and so are the guesses on top of it. */
#include "engine/draft/draft.h"

#include "tests/model/tiny.h"

enum { N_PROMPT = 40, N_NOTED = 5, N = N_PROMPT + N_NOTED, N_DRAFTS = 3 };

static float hidden[N * TINY_H];
static int32_t ids[N];

/* Behind an image of many tokens, positions are smaller than places in the cache. */
static position at(int32_t place, int32_t delta)
{
    return (position){place + delta, place + delta, place + delta};
}

/* The guesses of the head when every position is given by hand; last [TINY_H]: its output for the last of them. */
static void guess_by_hand(const tiny *t, mtp_scratch *ms, int32_t delta, int32_t *drafts, float *last)
{
    err_detail d = {0};
    position positions[N];
    seq_state *s = tiny_seq(t);
    for (int32_t i = 0; i < N; i++) {
        positions[i] = at(i, delta);
    }
    mtp_input in = {.seq = s, .hidden = hidden, .next_tokens = ids, .positions = positions, .n = N};
    CHECK_OK(mtp_forward(t->m, t->c, ms, &in, 1, &d), d);
    for (int32_t i = 0; i < N_DRAFTS; i++) {
        drafts[i] = tiny_best(mtp_logits(ms, 0));
        if (i + 1 < N_DRAFTS) {
            const position next = at(N + i, delta);
            in = (mtp_input){s, mtp_hidden(ms, 0), &drafts[i], &next, 1};
            CHECK_OK(mtp_forward(t->m, t->c, ms, &in, 1, &d), d);
        }
    }
    memcpy(last, mtp_hidden(ms, 0), TINY_H * sizeof *last);
    seq_state_destroy(s);
}

static void test_positions(const tiny *t, mtp_scratch *ms, int32_t delta)
{
    float expected[TINY_H];
    int32_t drafts[N_DRAFTS];
    err_detail d = {0};
    position positions[N_PROMPT];
    drafter dr = {0};
    sampler *greedy = NULL;
    const sampler_params params = {.top_p = 1, .repetition_penalty = 1};
    guess_by_hand(t, ms, delta, drafts, expected);

    const draft_context ctx = {t->m, t->c, ms};
    seq_state *s = tiny_seq(t);
    CHECK(drafter_init(&dr, TINY_H));
    CHECK_OK(sampler_create(&greedy, &params, TINY_V, TINY_V, &d), d);
    for (int32_t i = 0; i < N_PROMPT; i++) {
        positions[i] = at(i, delta);
    }
    CHECK_OK(drafter_prompt(&dr, &ctx, s, hidden, ids, positions, N_PROMPT, &d), d);
    seq_state_set_rope_delta(s, delta);
    for (int32_t i = N_PROMPT; i < N; i++) {
        CHECK_OK(drafter_note(&dr, &ctx, s, hidden + i * TINY_H, ids[i], &d), d);
    }
    CHECK_OK(drafter_draft(&dr, &ctx, s, greedy, N_DRAFTS, false, &d), d);
    CHECK_INT(dr.n_drafts, N_DRAFTS);
    for (int32_t i = 0; i < N_DRAFTS; i++) {
        CHECK_INT(dr.drafts[i], drafts[i]);
    }
    CHECK(tiny_difference(mtp_hidden(ms, 0), expected, TINY_H) < tiny_tolerance(t));
    sampler_destroy(greedy);
    drafter_deinit(&dr);
    seq_state_destroy(s);
}

int main(void)
{
    static const int32_t deltas[] = {0, -17};
    tiny t = tiny_open(1, ~0u, KV_F32);
    mtp_scratch *ms = NULL;
    err_detail d = {0};
    int32_t text[TINY_CTX];
    CHECK_OK(mtp_scratch_create(&ms, t.m, t.c, N, 1, &d), d);
    CHECK(tiny_ids(text, TINY_CTX) > N);
    memcpy(ids, text + 1, sizeof ids);
    for (size_t i = 0; i < N * TINY_H; i++) {
        hidden[i] = sinf((float)(i * i % 8191)); /* anything of the size that a norm gives */
    }
    for (size_t i = 0; i < sizeof deltas / sizeof deltas[0]; i++) {
        test_positions(&t, ms, deltas[i]);
    }
    mtp_scratch_destroy(ms);
    tiny_close(&t);
    CHECK_DONE();
}
