#include "engine/chat.h"

#include <stdlib.h>
#include <unistd.h>

chat_input *chat_input_create(size_t max_bytes)
{
    chat_input *in = calloc(1, sizeof *in);
    if (!in) {
        return NULL;
    }
    in->arena = arena_create(max_bytes);
    if (!in->arena) {
        free(in);
        return NULL;
    }
    gen_params_init(&in->params);
    return in;
}

void chat_input_destroy(chat_input *in)
{
    if (in) {
        for (size_t i = 0; i < in->n_fds; i++) {
            close(in->fds[i]);
        }
        arena_destroy(in->arena);
        json_free(in->keep);
        free(in);
    }
}

bool chat_has_media(const chat_input *in)
{
    for (size_t m = 0; m < in->n_messages; m++) {
        for (size_t p = 0; p < in->messages[m].n_parts; p++) {
            if (in->messages[m].parts[p].kind != CHAT_TEXT) {
                return true;
            }
        }
    }
    return false;
}
