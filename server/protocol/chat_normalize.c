#include "server/protocol/chat_normalize.h"

#include <string.h>

#include "base/limits.h"

/* Replaces the content of m by one string. */
static err_code set_text(chat_input *in, chat_message *m, const bytes *text, err_detail *d)
{
    chat_part *part = arena_calloc(in->arena, 1, sizeof *part);
    char *copy = text->failed ? NULL : arena_strdup(in->arena, bytes_str(text), text->len);
    if (!part || !copy) {
        return err_set(d, ERR_NOMEM, "no memory for this request");
    }
    part->kind = CHAT_TEXT;
    part->text = copy;
    part->text_len = text->len;
    m->parts = part;
    m->n_parts = 1;
    m->is_string = true;
    return ERR_OK;
}

/* Appends the message's text behind a blank line; false if it holds media. */
static bool append_text(bytes *text, const chat_message *m)
{
    bool needs_gap = text->len > 0;
    for (size_t i = 0; i < m->n_parts; i++) {
        if (m->parts[i].kind != CHAT_TEXT) {
            return false;
        }
        if (needs_gap && m->parts[i].text_len > 0) {
            bytes_append_str(text, "\n\n");
            needs_gap = false;
        }
        bytes_append(text, m->parts[i].text, m->parts[i].text_len);
    }
    return true;
}

/* Writes the messages to `out` with one system message in front that holds the text of all; returns
 * their number. */
static err_code hoist_system(chat_input *in, chat_message *out, size_t *n_out, err_detail *d)
{
    bytes text;
    bytes_init(&text, LIMIT_BODY_BYTES);
    err_code err = ERR_OK;
    size_t n_system = 0, n = 0;
    chat_message system = {.role = CHAT_SYSTEM};
    for (size_t i = 0; i < in->n_messages; i++) {
        const chat_message *m = &in->messages[i];
        if (m->role != CHAT_SYSTEM) {
            continue;
        }
        system = n_system++ == 0 ? *m : system;
        if (!append_text(&text, m)) {
            err = err_set_param(d, ERR_INVALID, "messages", "invalid_value",
                                "a system message may hold text only");
            goto out;
        }
    }
    if (n_system > 0) {
        err = n_system > 1 ? set_text(in, &system, &text, d) : ERR_OK;
        out[n++] = system;
    }
    for (size_t i = 0; i < in->n_messages; i++) {
        if (in->messages[i].role != CHAT_SYSTEM) {
            out[n++] = in->messages[i];
        }
    }
    *n_out = n;
out:
    bytes_deinit(&text);
    return err;
}

static bool can_merge(const chat_message *a, const chat_message *b)
{
    return a->role == b->role && a->role != CHAT_TOOL && a->is_string && b->is_string && a->n_parts == 1 &&
           b->n_parts == 1 && a->n_tool_calls == 0 && b->n_tool_calls == 0 && !b->reasoning;
}

err_code chat_normalize(chat_input *in, err_detail *d)
{
    chat_message *out = arena_calloc(in->arena, in->n_messages + 1, sizeof *out);
    size_t n = 0;
    if (!out) {
        return err_set(d, ERR_NOMEM, "no memory for this request");
    }
    err_code err = hoist_system(in, out, &n, d);
    size_t kept = 0;
    for (size_t i = 0; i < n && err == ERR_OK;) {
        size_t end = i + 1;
        while (end < n && can_merge(&out[i], &out[end])) {
            end++;
        }
        chat_message m = out[i];
        if (end > i + 1) {
            bytes text;
            bytes_init(&text, LIMIT_BODY_BYTES);
            for (size_t k = i; k < end; k++) {
                append_text(&text, &out[k]);
            }
            err = set_text(in, &m, &text, d);
            bytes_deinit(&text);
        }
        out[kept++] = m;
        i = end;
    }
    in->messages = out;
    in->n_messages = kept;
    return err;
}
