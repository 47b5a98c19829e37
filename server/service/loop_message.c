#include "server/service/loop_message.h"

#include <stdlib.h>

loop_message *loop_message_create(loop_message_type type, uint64_t id)
{
    loop_message *m = calloc(1, sizeof *m);
    if (m) {
        m->type = type;
        m->id = id;
        reply_options_init(&m->options);
        bytes_init(&m->body, 0);
        bytes_init(&m->reply, SIZE_MAX);
    }
    return m;
}

void loop_message_free(loop_message *m)
{
    if (!m) {
        return;
    }
    gen_event_free(m->event);
    gen_request_free(m->request);
    upstream_request_free(m->remote);
    reply_options_deinit(&m->options);
    bytes_deinit(&m->body);
    json_free(m->doc);
    ledger_give_all(&m->memory);
    bytes_deinit(&m->reply);
    history_reply_free(m->history);
    mcp_result_free(m->result);
    free(m);
}
