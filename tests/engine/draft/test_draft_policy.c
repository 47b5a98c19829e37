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

int main(void)
{
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
