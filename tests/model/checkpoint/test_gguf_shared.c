/* The full sets of reference outputs, where they lie beside the checkout, from models that were
 * written as GGUF files: every family, dense and with experts, with vision towers and draft
 * heads. */
#include "tests/check.h"

#include <unistd.h>

#include "tests/model/tool.h"

int main(void)
{
    static const char *const sets[] = {"qwen3_5",    "qwen3_5_tied", "qwen3_5_moe", "qwen3_vl",
                                       "qwen3_next", "qwen3",        "nemotron_h",  "nemotron_h_latent",
                                       "minimax_m2", "gpt_oss",      "gemma4_text", "gemma4_moe",
                                       "gemma4",     "gemma4_e"};
    char folder[] = "/tmp/parley_shared_XXXXXX", dir[4096], path[4096], vision[4096];
    const char *shared = check_shared_dir();
    if (!shared) {
        CHECK_SKIP("the full reference outputs are not beside the checkout");
    }
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    snprintf(vision, sizeof vision, "%s/mmproj-m.gguf", folder);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        snprintf(dir, sizeof dir, "%s/reference/%s", shared, sets[i]);
        CHECK_INT(tool_run_3("make_gguf", dir, path, "bf16"), 0);
        CHECK_INT(tool_run_3("check_reference", dir, "native", path), 0);
        CHECK_INT(unlink(path), 0);
        unlink(vision); /* not every family has one */
    }
    CHECK_INT(rmdir(folder), 0);
    CHECK_DONE();
}
