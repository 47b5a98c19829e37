/* The full sets of reference outputs, where they lie beside the checkout. */
#include "tests/check.h"

#include "tests/model/tool.h"

int main(void)
{
    char dir[4096];
    const char *shared = check_shared_dir();
    static const char *const sets[] = {"qwen3_5",    "qwen3_5_tied", "qwen3_5_moe",       "qwen3_next",
                                       "qwen3",      "qwen3_vl",     "gpt_oss",           "gemma4_text",
                                       "gemma4_moe", "nemotron_h",   "nemotron_h_latent", "minimax_m2",
                                       "gemma4",     "gemma4_e"};
    if (!shared) {
        CHECK_SKIP("the full reference outputs are not beside the checkout");
    }
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        snprintf(dir, sizeof dir, "%s/reference/%s", shared, sets[i]);
        CHECK_INT(tool_run("check_reference", dir, "native"), 0);
    }
    CHECK_DONE();
}
