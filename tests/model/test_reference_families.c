/* The reference outputs of tests/data/families (tools/make_family_references.py), as published and
 * written as GGUF files. */
#include "tests/check.h"

#include <stdbool.h>
#include <unistd.h>

#include "base/compiler.h"
#include "tests/model/tool.h"

int main(void)
{
    static const struct {
        const char *name;
        bool gguf;
    } sets[] = {
        {"llama", true},      {"llama_linear", true},    {"mistral", true},    {"mistral_window", true},
        {"ministral3", true}, {"ministral3_tied", true}, {"qwen2", true},      {"qwen2_window", false},
        {"granite", true},    {"granite_biased", true},  {"smollm3", false},   {"smollm3_plain", false},
        {"glm4_moe", true},   {"glm4_moe_normed", true}, {"nemotron_h", true}, {"nemotron_h_latent", true},
        {"minimax_m2", true}, {"minimax_m2_tied", true},
    };
    char folder[] = "/tmp/parley_families_XXXXXX", dir[4200], path[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        snprintf(dir, sizeof dir, "%s/%s", check_data("families"), sets[i].name);
        CHECK_INT(tool_run_3("check_reference", "--exact-rope", dir, "native"), 0);
        if (sets[i].gguf) {
            CHECK_INT(tool_run_3("make_gguf", dir, path, "bf16"), 0);
            CHECK_INT(tool_run_4("check_reference", "--exact-rope", dir, "native", path), 0);
            CHECK_INT(unlink(path), 0);
        }
    }
    CHECK_INT(rmdir(folder), 0);
    CHECK_DONE();
}
