#include "server/protocol/call_matcher.h"

#include <string.h>

void call_matcher_init(call_matcher *l, first_error *e, chat_input *in, size_t n_messages)
{
    *l = (call_matcher){.error = e, .in = in, .n_order = n_messages};
    l->order = request_calloc(e, in->arena, n_messages + 1, sizeof *l->order);
}

/* The call with this id that was made last; l->n if there is none. */
static size_t find(const call_matcher *l, const char *id)
{
    for (size_t i = l->n; i > 0; i--) {
        if (l->calls[i - 1].id && strcmp(l->calls[i - 1].id, id) == 0) {
            return i - 1;
        }
    }
    return l->n;
}

void call_matcher_call(call_matcher *l, const char *id, const char *path)
{
    size_t same = id ? find(l, id) : l->n;
    if (same < l->n && !l->calls[same].answered) {
        request_fail(l->error, ERR_INVALID, path, "invalid_value",
                     "%s: an earlier call has the id %s and no result yet; ids must differ", path, id);
    }
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 16;
        matched_call *calls = request_calloc(l->error, l->in->arena, cap, sizeof *calls);
        if (!calls) {
            return;
        }
        if (l->n) {
            memcpy(calls, l->calls, l->n * sizeof *calls);
        }
        l->calls = calls;
        l->cap = cap;
    }
    l->calls[l->n++] = (matched_call){.id = id};
}

void call_matcher_result(call_matcher *l, const char *id, size_t message, const char *path)
{
    while (l->first_open < l->n && l->calls[l->first_open].answered) {
        l->first_open++;
    }
    size_t call = id ? find(l, id) : l->first_open;
    if (l->n == 0) {
        request_fail(l->error, ERR_INVALID, path, "invalid_value",
                     "%s: a result of a tool, but no call comes before it", path);
    } else if (call == l->n && id) {
        request_fail(l->error, ERR_INVALID, path, "invalid_value", "%s: no call before it has the id %s",
                     path, id);
    } else if (call == l->n) {
        request_fail(l->error, ERR_INVALID, path, "invalid_value",
                     "%s: every call before it has its result already", path);
    } else if (l->calls[call].answered) {
        request_fail(l->error, ERR_INVALID, path, "invalid_value", "%s: the call %s has its result already",
                     path, id);
    } else {
        l->calls[call].answered = true;
        if (message < l->n_order) {
            l->order[message] = call;
        }
    }
}

void call_matcher_sort(call_matcher *l)
{
    chat_message *m = l->in->messages;
    for (size_t i = 1; i < l->in->n_messages && i < l->n_order; i++) {
        for (size_t k = i;
             m[k].role == CHAT_TOOL && k > 0 && m[k - 1].role == CHAT_TOOL && l->order[k - 1] > l->order[k];
             k--) {
            chat_message message = m[k];
            size_t order = l->order[k];
            m[k] = m[k - 1];
            l->order[k] = l->order[k - 1];
            m[k - 1] = message;
            l->order[k - 1] = order;
        }
    }
}
