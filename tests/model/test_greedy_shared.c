/* The recorded conversations and images of the trained model, where they lie beside the
 * checkout. */
#include "tests/check.h"

#include "tests/model/tool.h"

int main(void)
{
    char dir[4096], samples[4096];
    const char *shared = check_shared_dir();
    static const char *const lists[] = {"texts.json", "samples.json"};
    if (!shared) {
        CHECK_SKIP("the trained model's recorded answers are not beside the checkout");
    }
    snprintf(dir, sizeof dir, "%s/seedling/model", shared);
    for (size_t i = 0; i < 2; i++) {
        snprintf(samples, sizeof samples, "%s/seedling/samples/%s", shared, lists[i]);
        CHECK_INT(tool_run_3("check_greedy", dir, samples, check_small_sweep() ? "13" : NULL), 0);
    }
    CHECK_DONE();
}
