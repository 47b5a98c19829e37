#include <stdio.h>

#include "engine/inspect.h"
#include "server/commands.h"

int command_inspect(const options *o)
{
    bytes out;
    err_detail detail = {0};
    bytes_init(&out, 1 << 20);
    err_code err = inspect_model(&out, o->model, o->mmproj, o->json, &detail);
    if (err == ERR_OK) {
        fputs(bytes_str(&out), stdout);
    }
    bytes_deinit(&out);
    return err == ERR_OK ? 0 : command_fail(err, &detail);
}
