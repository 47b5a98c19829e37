#include "server/cli/hub_model.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/inspect.h"
#include "server/cli/pull_bars.h"
#include "server/hub/hub_pull.h"

/* What the hooks need. */
typedef struct asking {
    pull_bars bars;
    const hub_place *place;
    const char *name;
} asking;

static bool ask(void *ctx, size_t n_files, int64_t n_bytes)
{
    const asking *a = ctx;
    char answer[16] = "";
    fprintf(stderr, "%s is not on this machine. Fetch it from %s (%zu file%s, %.2f GB)? [y/N] ", a->name,
            a->place->endpoint, n_files, n_files == 1 ? "" : "s", (double)n_bytes / 1e9);
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static void on_tick(void *ctx, const hub_task *tasks, size_t n)
{
    pull_bars_tick(&((asking *)ctx)->bars, tasks, n);
}

err_code hub_model_pull(hub_found *out, const char *text, bool asks, err_detail *detail)
{
    hub_place place;
    hub_name name;
    if (!hub_name_parse(&name, text)) {
        return err_set(detail, ERR_INVALID,
                       "\"%.200s\" is not the name of a model: it is ORG/NAME, ORG/NAME:QUANT or "
                       "ORG/NAME@REVISION",
                       text);
    }
    err_code err = hub_place_find(&place, detail);
    if (err) {
        return err;
    }
    asking a = {.place = &place, .name = text};
    const hub_pull_hooks hooks = {.check_config = inspect_config,
                                  .check_gguf = inspect_gguf_head,
                                  .may_fetch = asks ? ask : NULL,
                                  .on_tick = on_tick,
                                  .ctx = &a};
    pull_bars_begin(&a.bars);
    err = hub_pull(out, &place, &name, &hooks, detail);
    pull_bars_end(&a.bars);
    return err ? err_prefix(detail, err, "%s", text) : ERR_OK;
}

err_code hub_model_find(hub_found *out, const char *text, bool fetches, err_detail *detail)
{
    hub_place place;
    hub_name name;
    if (!hub_name_parse(&name, text)) {
        return err_set(detail, ERR_NOT_FOUND, "there is no model %.200s, neither a folder nor a file", text);
    }
    err_code err = hub_place_find(&place, detail);
    err = err ? err : hub_cache_find(out, place.cache, &name, detail);
    if (err != ERR_NOT_FOUND) {
        return err;
    }
    const bool asks = !fetches && isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !place.is_offline;
    if (fetches || asks) {
        return hub_model_pull(out, text, asks, detail);
    }
    return err_set(
        detail, ERR_NOT_FOUND,
        "there is no model %.200s, neither as a path nor in %.200s; `parley pull %.100s` fetches it, "
        "and so does --pull",
        text, place.cache, text);
}
