/* pull: fetches a model from a hub; its path is printed on standard output, all else on standard
 * error. */
#include <stdio.h>

#include "server/cli/command.h"
#include "server/cli/commands.h"
#include "server/cli/hub_model.h"

int command_pull(const options *o)
{
    hub_found found;
    err_detail detail = {0};
    if (!o->model) {
        fprintf(stderr, "parley: which model? parley pull ORG/NAME[:QUANT|@REVISION]\n");
        return OPTIONS_EXIT_USAGE;
    }
    const err_code err = hub_model_pull(&found, o->model, false, &detail);
    if (err) {
        return command_fail(err, &detail);
    }
    printf("%s\n", found.path);
    return 0;
}
