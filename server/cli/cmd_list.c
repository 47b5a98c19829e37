/* list: the models of hubs that are on this machine. */
#include <stdio.h>
#include <stdlib.h>

#include "server/cli/command.h"
#include "server/cli/commands.h"
#include "server/hub/hub_cache.h"
#include "server/hub/hub_place.h"

static err_code print_json(const hub_kept *all, size_t n, err_detail *d)
{
    bytes out = bytes_empty((size_t)64 << 20);
    bytes_append_char(&out, '[');
    for (size_t i = 0; i < n; i++) {
        bytes_json(&out, "%-s{\"name\":%s,\"bytes\":%lld,\"path\":%s,\"complete\":%hhd}", i ? "," : "",
                   all[i].name, (long long)all[i].n_bytes, all[i].path, all[i].is_whole);
    }
    bytes_append_str(&out, "]\n");
    const err_code err = command_print(&out, d);
    bytes_deinit(&out);
    return err;
}

int command_list(const options *o)
{
    hub_place place;
    hub_kept *all = NULL;
    size_t n = 0;
    err_detail detail = {0};
    err_code err = hub_place_find(&place, &detail);
    err = err ? err : hub_cache_list(&all, &n, place.cache, &detail);
    if (err) {
        return command_fail(err, &detail);
    }
    if (o->json) {
        err = print_json(all, n, &detail);
    } else if (n == 0) {
        fprintf(stderr, "There are no models in %s; `parley pull ORG/NAME` fetches one.\n", place.cache);
    }
    for (size_t i = 0; i < n && !o->json; i++) {
        printf("%-60s %9.2f GB%s\n", all[i].name, (double)all[i].n_bytes / 1e9,
               all[i].is_whole ? "" : "  not whole; parley pull goes on");
    }
    free(all);
    return err ? command_fail(err, &detail) : 0;
}
