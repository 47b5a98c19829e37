/* The reference outputs of tests/data/tiny, with every set of kernels; those of families that no full
 * set covers. */
#include "tests/cpu.h"

#include <stdlib.h>
#include <unistd.h>

#include "tests/model/tool.h"

int main(void)
{
    char dir[4096];
    static const char *const levels[] = {"native", TEST_CPU_LEAST, "generic"};
    snprintf(dir, sizeof dir, "%s", check_data("tiny"));
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(tool_run("check_reference", dir, levels[i]), 0);
    }
    CHECK_INT(tool_run("check_reference", dir, "no such level"), 2);
    static const char *const others[] = {"tiny_moe", "tiny_vl_moe", "tiny_qwen2_vl", "tiny_qwen2_5_vl"};
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(tool_run("check_reference", "--exact-rope", check_data(others[i])), 0);
    }
    static const char *const published[] = {"tiny_gpt_oss", "tiny_gemma4", "tiny_gemma4_images",
                                            "tiny_gemma4_clipped"};
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(tool_run("check_reference", check_data(published[i]), "native"), 0);
        CHECK_INT(tool_run("check_reference", check_data(published[i]), "generic"), 0);
    }
    static const struct {
        const char *name, *rope;
    } files[] = {
        {"tiny_gemma4_images", NULL}, {"tiny_gemma4_clipped", NULL}, {"tiny_vl_moe", "--exact-rope"}};
    for (size_t i = 0; i < 3; i++) { /* as GGUF files, the tower in one of its own */
        char folder[] = "/tmp/parley_tiny_XXXXXX", path[64], tower[64];
        CHECK(mkdtemp(folder) != NULL);
        snprintf(path, sizeof path, "%s/m.gguf", folder);
        snprintf(tower, sizeof tower, "%s/mmproj-m.gguf", folder);
        snprintf(dir, sizeof dir, "%s", check_data(files[i].name));
        CHECK_INT(tool_run_3("make_gguf", dir, path, "bf16"), 0);
        CHECK_INT(files[i].rope ? tool_run_4("check_reference", files[i].rope, dir, "native", path)
                                : tool_run_3("check_reference", dir, "native", path),
                  0);
        CHECK(unlink(path) == 0 && unlink(tower) == 0 && rmdir(folder) == 0);
    }
    CHECK_INT(tool_run("check_reference", "/nonexistent", NULL), 2);
    CHECK_DONE();
}
