/* What of the double of the engine (fake_engine.c) asks nothing of it. */
#include <stdio.h>
#include <string.h>

#include "engine/engine.h"

err_code engine_prepare_tokens(engine *e, gen_request **out, const int32_t *ids, size_t n, uint64_t scope,
                               const gen_params *params, err_detail *d)
{
    bytes text;
    bytes_init(&text, SIZE_MAX / 2);
    for (size_t i = 0; i < n; i++) {
        if (ids[i] > 999) {
            bytes_deinit(&text);
            return err_set_param(d, ERR_INVALID, "prompt", "invalid_value", "there is no such token");
        }
        bytes_append_char(&text, (char)ids[i]);
    }
    err_code err = engine_prepare_text(e, out, bytes_str(&text), text.len, true, scope, params, d);
    bytes_deinit(&text);
    return err;
}

err_code engine_render(const engine *e, bytes *out, const chat_input *in, err_detail *d)
{
    (void)e, (void)d;
    bytes_printf(out, "[%zu messages]", in->n_messages);
    return ERR_OK;
}

void gen_request_set_name(gen_request *r, const char *name)
{
    (void)r, (void)name;
}

bool engine_is_stop_token(const engine *e, int32_t id)
{
    (void)e, (void)id;
    return false;
}

err_code engine_tokenize(const engine *e, bytes *out, const char *text, size_t len, bool parse_special,
                         err_detail *detail)
{
    (void)e, (void)parse_special, (void)detail;
    for (size_t i = 0; i < len; i++) {
        bytes_printf(out, i ? ",%d" : "%d", (unsigned char)text[i]);
    }
    return ERR_OK;
}

bool engine_measure_limits(const engine *e, engine_limits *best)
{
    (void)e;
    *best = (engine_limits){.bandwidth_gbs = 1, .f32_gflops = 1};
    return true;
}

/* One prompt for everybody. */
void gen_request_keep_as(gen_request *r, const char *name)
{
    (void)r, (void)name;
}

err_code engine_check_name(const engine *e, const char *name, err_detail *d)
{
    (void)e;
    return name[0] && !strchr(name, '%') ? ERR_OK
                                         : err_set_param(d, ERR_INVALID, "name", "invalid_value", "no name");
}

/* Every name but "none" has been saved. */
bool engine_find_named(engine *e, uint64_t scope, const char *name, bool forgets, engine_cached *out)
{
    (void)e, (void)scope, (void)forgets;
    *out = (engine_cached){.n_tokens = 12, .n_bytes = 4096, .used_at = 1700000000, .is_on_disk = true};
    snprintf(out->name, sizeof out->name, "%s", name);
    return strcmp(name, "none") != 0;
}

err_code engine_prepare_load(engine *e, gen_request **out, uint64_t scope, const char *name, err_detail *d)
{
    gen_params p;
    gen_params_init(&p);
    return strcmp(name, "none") == 0
               ? err_set_param(d, ERR_NOT_FOUND, "name", "cache_entry_not_found", "not saved")
               : engine_prepare_text(e, out, "x", 1, true, scope, &p, d);
}
