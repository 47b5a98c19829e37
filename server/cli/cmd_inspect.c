#include <stdio.h>

#include "base/file.h"
#include "engine/catalog.h"
#include "engine/inspect.h"
#include "server/cli/command.h"
#include "server/cli/commands.h"

/* Models in the folder, if it is not one itself. */
static size_t count_models(const char *path)
{
    char config[4096];
    catalog *c = NULL;
    if ((file_join(config, sizeof config, path, "config.json") && file_exists(config)) ||
        catalog_open(&c, path, NULL) != ERR_OK) {
        return 0;
    }
    const size_t n = catalog_count(c);
    catalog_close(c);
    return n;
}

int command_inspect(const options *o)
{
    err_detail detail = {0};
    bytes out = bytes_empty(16 << 20);
    const size_t n = o->mmproj ? 0 : count_models(o->model);
    err_code err = n > 1 ? ERR_NOT_FOUND : inspect_model(&out, o->model, o->mmproj, o->json, &detail);
    if (err == ERR_NOT_FOUND && n > 0) { /* several, or one in a folder of its own */
        err = inspect_folder(&out, o->model, o->json, &detail);
    }
    if (err == ERR_OK) {
        err = command_print(&out, &detail);
    }
    bytes_deinit(&out);
    return err == ERR_OK ? 0 : command_fail(err, &detail);
}
