/* draft_policy: drafts when it pays, parks when it does not, and looks again now and then. */
#include "engine/draft/draft.h"

#include "tests/check.h"

/* Runs n steps against a machine where a step costs base * (1 + k * extra) ms and drafts are right
 * `right` of the time (spread evenly). Returns tokens a millisecond; *depth_sum adds up the
 * depths. */
static double play(draft_policy *p, int n, double base, double extra, double right, long *depth_sum)
{
    double tokens = 0, ms = 0, luck = 0;
    for (int i = 0; i < n; i++) {
        int32_t k = draft_policy_depth(p, 1, DRAFT_MAX), n_right = 0;
        for (; n_right < k; n_right++) {
            luck += right;
            if (luck < 1.0) {
                break;
            }
            luck -= 1.0;
        }
        double cost = base * (1.0 + k * extra);
        draft_policy_result(p, k, n_right);
        draft_policy_cost(p, 1, k, cost);
        tokens += n_right + 1;
        ms += cost;
        *depth_sum += k;
    }
    return tokens / ms;
}

/* ---- by hand ---- */

static void test_average(void)
{
    double average = 0;
    draft_average_cost(&average, 5); /* the first as it is */
    CHECK_NEAR(average, 5, 1e-12);
    draft_average_cost(&average, 3); /* less: by half */
    CHECK_NEAR(average, 4, 1e-12);
    draft_average_cost(&average, 4.4); /* more: by 30 % */
    CHECK_NEAR(average, 4.12, 1e-12);
    draft_average_cost(&average, 100); /* as if it were a quarter more */
    CHECK_NEAR(average, 4.12 + 0.3 * 1.03, 1e-12);
}

static void test_results(void)
{
    draft_policy p = {0};
    draft_policy_result(&p, 3, 1); /* right, wrong, not judged */
    CHECK_NEAR(p.right[0], 0.9, 1e-12);
    CHECK_NEAR(p.right[1], 0.4, 1e-12);
    CHECK_NEAR(p.right[2], 0, 0);
    draft_policy_result(&p, 1, 1); /* one draft alone */
    CHECK_NEAR(p.right[0], 0.9 + 0.1 / 3, 1e-12);
    CHECK_NEAR(p.right[1], 0.4, 1e-12);
    for (int i = 0; i < 20; i++) {
        draft_policy_result(&p, 1, 1);
    }
    const double was = p.right[0];
    draft_policy_result(&p, 1, 0); /* counts a tenth, however often it was right */
    CHECK_NEAR(p.right[0], was * 0.9, 1e-12);
    for (int i = 0; i < 60; i++) {
        draft_policy_result(&p, 1, 0);
    }
    CHECK_NEAR(p.right[0], 0.01, 1e-12); /* never hopeless */
}

static void test_promise(void)
{
    double tokens, chance;
    draft_policy p = {.right = {0.5}};
    CHECK_NEAR(draft_policy_promise(&p, 3, 2, &tokens, &chance), 1, 1e-12); /* nothing measured */
    CHECK_NEAR(chance, 0.5 * 0.8, 1e-12);
    CHECK_NEAR(tokens, 1 + 0.5 + 0.4, 1e-12);
    draft_policy_cost(&p, 3, 1, 20);
    CHECK_NEAR(draft_policy_promise(&p, 3, 1, &tokens, &chance), 20, 1e-12);
    CHECK_NEAR(tokens, 1.5, 1e-12);
    CHECK_NEAR(draft_policy_promise(&p, 3, 3, &tokens, &chance), 20 * 1.04, 1e-12); /* deeper looks cheap */
    CHECK_NEAR(draft_policy_promise(&p, 3, 0, &tokens, &chance), 1, 1e-12);
    CHECK(tokens == 1 && chance == 1);
    CHECK_NEAR(draft_policy_promise(&p, 2, 1, &tokens, &chance), 1, 1e-12); /* of other steps */
}

static void test_depth(void)
{
    draft_policy p = {0};
    CHECK_INT(draft_policy_depth(&p, 2, DRAFT_MAX), 0); /* a step without drafts first */
    draft_policy_cost(&p, 2, 0, 10);
    CHECK_INT(draft_policy_depth(&p, 1, DRAFT_MAX), 0); /* of as many answers */
    CHECK_INT(draft_policy_depth(&p, 2, DRAFT_MAX), DRAFT_MAX);
    CHECK_INT(draft_policy_depth(&p, 2, DRAFT_MAX + 5), DRAFT_MAX);
    CHECK_INT(draft_policy_depth(&p, 2, 2), 2);
    /* A draft that is right half of the time must promise 5 % more: cost less than 1.5 / 1.05 steps. */
    p = (draft_policy){.cost_ms[1] = {10, 14.2}, .right = {0.5}};
    CHECK_INT(draft_policy_depth(&p, 1, 1), 1);
    p.cost_ms[1][1] = 14.4;
    CHECK_INT(draft_policy_depth(&p, 1, 1), 0);
}

/* Now and then a depth beside the best one, where there is one. */
static void test_neighbours(void)
{
    draft_policy p = {.cost_ms[1] = {10}, .right = {0.9, 0.9, 0.01, 0.01}};
    for (int i = 1; i <= 160; i++) {
        CHECK_INT(draft_policy_depth(&p, 1, DRAFT_MAX), i % 32 ? 2 : i == 32 || i == 160 ? 1 : 3);
    }
    p.drafted_steps = 63;
    CHECK_INT(draft_policy_depth(&p, 1, 2), 2);
    p.drafted_steps = 31;
    CHECK_INT(draft_policy_depth(&p, 1, 1), 0);
    for (int i = 0; i < 130; i++) {
        CHECK_INT(draft_policy_depth(&p, 1, 0), 0);
    }
    p = (draft_policy){.cost_ms[1] = {10}, .drafted_steps = 63};
    CHECK_INT(draft_policy_depth(&p, 1, DRAFT_MAX + 5), DRAFT_MAX);
}

/* Parked from the first step on: probes are farther and farther apart, up to 512 steps. */
static void test_probes(void)
{
    static const int apart[] = {16, 32, 64, 128, 256, 512, 512};
    draft_policy p = {.cost_ms[1] = {10, 30, 40, 50, 60}, .right = {0.01, 0.01, 0.01, 0.01}};
    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
        for (int step = 1; step <= apart[i]; step++) {
            CHECK_INT(draft_policy_depth(&p, 1, DRAFT_MAX), step == apart[i]);
        }
    }
    CHECK_INT(draft_policy_depth(&p, 1, DRAFT_MAX), 0);
    p.right[0] = 0.9; /* it pays now: from here on as at first */
    p.cost_ms[1][1] = 11;
    CHECK_INT(draft_policy_depth(&p, 1, DRAFT_MAX), 1);
    p.right[0] = 0.01;
    for (int step = 1; step <= 16; step++) {
        CHECK_INT(draft_policy_depth(&p, 1, DRAFT_MAX), step == 16);
    }
    /* Where there is no room for a draft the same begins anew. */
    for (int step = 1; step <= 10; step++) {
        CHECK_INT(draft_policy_depth(&p, 1, DRAFT_MAX), 0);
    }
    CHECK_INT(draft_policy_depth(&p, 1, 0), 0);
    for (int step = 1; step <= 16; step++) {
        CHECK_INT(draft_policy_depth(&p, 1, DRAFT_MAX), step == 16);
    }
}

int main(void)
{
    test_average();
    test_results();
    test_promise();
    test_depth();
    test_neighbours();
    test_probes();
    draft_policy p = {0};
    long depth = 0;
    double rate = play(&p, 500, 10.0, 0.1, 0.97, &depth); /* cheap and right: drafts deeply */
    CHECK(depth > 500 * 3);
    CHECK(rate > 2.5 / 10.0);

    p = (draft_policy){0};
    depth = 0;
    rate = play(&p, 2000, 10.0, 0.15, 0.0, &depth); /* never right: parked but for rare probes */
    CHECK(depth < 2000 / 10);
    CHECK(rate > 0.97 / 10.0);

    depth = 0;
    play(&p, 3000, 10.0, 0.1, 1.0, &depth); /* the text becomes predictable: it notices */
    CHECK(depth > 1500);

    p = (draft_policy){0};
    depth = 0;
    rate = play(&p, 1000, 10.0, 0.9, 0.8, &depth); /* right, but as dear as a step of its own */
    CHECK(rate > 0.93 / 10.0);

    CHECK_INT(draft_policy_depth(&p, 1, 0), 0); /* no room for a draft */
    CHECK_DONE();
}
