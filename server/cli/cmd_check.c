/* --check: whether `parley serve` would start: the model is loaded and computes one token, then the
 * program ends.
 */
#include <stdio.h>

#include "base/mailbox.h"
#include "server/cli/command.h"
#include "server/cli/commands.h"

static err_code compute_token(engine *e, mailbox *events, err_detail *detail)
{
    static const char PROMPT[] = "Hello";
    gen_request *r = NULL;
    gen_params p;
    gen_timings t;
    gen_params_init(&p);
    p.max_tokens = 1;
    err_code err = engine_prepare_text(e, &r, PROMPT, sizeof PROMPT - 1, false, 0, &p, detail);
    err = command_submit(e, r, 1, err, detail);
    return err == ERR_OK ? command_wait(events, &t, detail) : err;
}

int command_check(engine_options *eo)
{
    err_detail detail = {0};
    engine *e = NULL;
    mailbox *events = mailbox_create(4);
    if (!events) {
        fprintf(stderr, "parley: there is not enough memory to start\n");
        return EXIT_MEMORY;
    }
    eo->on_event = command_on_event;
    eo->on_event_ctx = events;
    err_code err = command_open_engine(&e, eo, false, &detail);
    err = err == ERR_OK ? compute_token(e, events, &detail) : err;
    if (err == ERR_OK) {
        const engine_info *info = engine_get_info(e);
        printf("ok: model %s, context %d, %s\n", info->model_name, info->n_ctx, info->compute);
    }
    engine_close(e);
    mailbox_destroy(events, command_drop_event);
    return err == ERR_OK ? 0 : command_fail(err, &detail);
}
