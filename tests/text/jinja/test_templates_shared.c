/* chat_template: the published templates and texts of the shared folder. */
#include "tests/check.h"
#include "tests/model/tool.h"

int main(void)
{
    const char *shared = check_shared_dir();
    if (!shared) {
        CHECK_SKIP("no shared folder with reference outputs beside the checkout");
    }
    char expected[4096], dir[4096];
    snprintf(expected, sizeof expected, "%s/reference/templates.json", shared);
    snprintf(dir, sizeof dir, "%s/reference/templates", shared);
    CHECK_INT(tool_run("check_templates", expected, dir), 0);
    CHECK_DONE();
}
