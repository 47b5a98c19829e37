/* remove: takes a model of a hub, or one quantization of it, from this machine. */
#include <stdio.h>
#include <string.h>

#include "server/cli/command.h"
#include "server/cli/commands.h"
#include "server/hub/hub_cache.h"
#include "server/hub/hub_place.h"

int command_remove(const options *o)
{
    hub_place place;
    hub_name name;
    int64_t n_bytes = 0;
    err_detail detail = {0};
    if (!o->model || !hub_name_parse(&name, o->model) || strcmp(name.revision, "main") != 0) {
        fprintf(stderr, "parley: which model? parley remove ORG/NAME[:QUANT], as parley list names them\n");
        return OPTIONS_EXIT_USAGE;
    }
    err_code err = hub_place_find(&place, &detail);
    err = err ? err : hub_cache_remove(place.cache, &name, &n_bytes, &detail);
    if (err) {
        return command_fail(err, &detail);
    }
    printf("%s: %.2f GB are free again\n", o->model, (double)n_bytes / 1e9);
    return 0;
}
