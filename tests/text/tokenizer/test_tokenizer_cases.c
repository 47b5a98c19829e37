/* tokenizer: the 537 reference cases that lie in tests/data. */
#include "tests/check.h"
#include "tests/model/tool.h"

int main(void)
{
    char path[4096], cases[4096];
    snprintf(path, sizeof path, "%s", check_data("tiny/tokenizer.json"));
    snprintf(cases, sizeof cases, "%s", check_data("tokenizer-cases.json"));
    CHECK_INT(tool_run("check_tokenizer", path, cases), 0);
    /* Wrong use and unreadable files are told apart from disagreement. */
    CHECK_INT(tool_run("check_tokenizer", "/nonexistent.json", cases), 2);
    CHECK_INT(tool_run("check_tokenizer", path, "/nonexistent.json"), 2);
    CHECK_DONE();
}
