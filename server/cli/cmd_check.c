/* --check: whether `parley serve` would start: the model is loaded and computes one token, then the
 * program ends.
 */
#include <stdio.h>

#include "base/mailbox.h"
#include "server/cli/command.h"
#include "server/cli/commands.h"

static void on_event(void *ctx, gen_event *ev)
{
    if (ev->type != GEN_DONE || !mailbox_push(ctx, ev)) {
        gen_event_free(ev);
    }
}

static err_code compute_token(engine *e, mailbox *events, err_detail *detail)
{
    static const char PROMPT[] = "Hello";
    gen_request *r = NULL;
    gen_params p;
    void *message = NULL;
    gen_params_init(&p);
    p.max_tokens = 1;
    err_code err = engine_prepare_text(e, &r, PROMPT, sizeof PROMPT - 1, false, 0, &p, detail);
    if (err == ERR_OK) {
        err = engine_submit(e, r, 1, detail);
    }
    if (err != ERR_OK) {
        gen_request_free(r);
        return err;
    }
    if (!mailbox_pop(events, &message)) {
        return err_set(detail, ERR_INTERNAL, "the engine stopped before the token was computed");
    }
    gen_event *done = message;
    if (done->finish == GEN_FINISH_ERROR) {
        err = err_set(detail, done->error, "%s", done->message);
    }
    gen_event_free(done);
    return err;
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
    eo->on_event = on_event;
    eo->on_event_ctx = events;
    err_code err = command_open_engine(&e, eo, &detail);
    if (err == ERR_OK) {
        err = compute_token(e, events, &detail);
    }
    if (err == ERR_OK) {
        const engine_info *info = engine_get_info(e);
        printf("ok: model %s, context %d, %s\n", info->model_name, info->n_ctx, info->compute);
    }
    engine_close(e);
    mailbox_destroy(events, NULL);
    return err == ERR_OK ? 0 : command_fail(err, &detail);
}
