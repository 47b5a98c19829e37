/* tokenizer: the reference cases of the shared folder, with the tokenizer of every checkpoint
 * there. */
#include "tests/check.h"
#include "tests/model/tool.h"

int main(void)
{
    const char *shared = check_shared_dir();
    if (!shared) {
        CHECK_SKIP("no shared folder with reference outputs beside the checkout");
    }
    static const char *const checkpoints[] = {"qwen3_5", "qwen3_5_tied", "qwen3_next"};
    char tokenizer[4096], cases[4096];
    snprintf(cases, sizeof cases, "%s/reference/tokenizer-cases.json", shared);
    for (size_t i = 0; i < sizeof checkpoints / sizeof *checkpoints; i++) {
        snprintf(tokenizer, sizeof tokenizer, "%s/reference/%s/tokenizer.json", shared, checkpoints[i]);
        CHECK_INT(tool_run("check_tokenizer", tokenizer, cases), 0);
    }
    CHECK_DONE();
}
