#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "server/service/serve_state.h"

enum {
    FACTS_WAIT_MS = 1000
}; /* what a client waits for them at most before it hears that its file is there */

/* Ends upload.completed: members are what is known beside kind and type, or "". */
static void tell_completed(serve *s, conn *c, bytes *text, const char *mime, const char *members)
{
    mime = mime ? mime : "application/octet-stream";
    bytes_printf(text, ",\"media\":{\"kind\":\"%s\",\"mime_type\":\"%s\"",
                 strncmp(mime, "image/", 6) == 0   ? "image"
                 : strncmp(mime, "video/", 6) == 0 ? "video"
                                                   : "other",
                 mime);
    bytes_append_str(text, members);
    bytes_append_str(text, "}}");
    serve_queue_frame(s, c, text);
}

/* The socket may be gone. */
static void tell_waiting(serve *s, preview_wait *w, const char *members)
{
    conn *c = w->conn ? serve_conn(s, w->conn) : NULL;
    if (c && !w->told) {
        tell_completed(s, c, &w->completed, w->mime, members);
    }
    w->told = true;
}

static void end_wait(preview_wait *w)
{
    prep_ticket_release(w->ticket);
    bytes_deinit(&w->completed);
    *w = (preview_wait){0};
}

static preview_wait *find_wait(serve *s, uint64_t id)
{
    for (size_t i = 0; i < SERVE_PREVIEWS; i++) {
        if (s->previews[i].id == id) {
            return &s->previews[i];
        }
    }
    return NULL;
}

void serve_tell_completed(serve *s, conn *c, bytes *text, const stored_file *f)
{
    preview_wait *w = find_wait(s, 0);
    json_doc *no_document = NULL;
    ledger_hold hold = {0};
    bytes file_id;
    bytes_init(&file_id, FILE_ID_MAX);
    bytes_append_str(&file_id, f->id);
    const bool may_look = (s->engine || serve_is_remote_only(s)) && s->switching == SWITCH_NONE;
    prep_ticket *ticket = w && may_look && f->mime ? prep_ticket_create() : NULL;
    const prep_order order = {
        .id = s->preview_id + 1, .scope = c->scope, .engine = s->engine, .media = s->media};
    if (ticket && prep_submit(s->previewer, &order, &file_id, &no_document, &hold, ticket) == ERR_OK) {
        *w = (preview_wait){.id = ++s->preview_id,
                            .conn = c->id,
                            .ticket = ticket,
                            .completed = *text,
                            .mime = f->mime,
                            .until_ms = clock_ms() + FACTS_WAIT_MS};
        bytes_init(text, 0);
    } else {
        ledger_give_all(&hold);
        prep_ticket_release(ticket);
        tell_completed(s, c, text, f->mime, "");
    }
    bytes_deinit(&file_id);
}

void serve_on_preview(serve *s, const loop_message *m)
{
    preview_wait *w = find_wait(s, m->id);
    if (!w) {
        return;
    }
    if (m->type == LOOP_FACTS) {
        tell_waiting(s, w, bytes_str(&m->reply));
        return;
    }
    tell_waiting(s, w, "");
    conn *c = w->conn ? serve_conn(s, w->conn) : NULL;
    /* A courtesy: a socket that is not being read does without. */
    if (c && m->reply.len > 0 && c->frames.len - c->frames_pos + m->reply.len < s->opt->max_unread / 2) {
        serve_queue_frame(s, c, &m->reply);
    }
    end_wait(w);
}

void serve_tick_previews(serve *s)
{
    const double now = clock_ms();
    for (size_t i = 0; i < SERVE_PREVIEWS; i++) {
        preview_wait *w = &s->previews[i];
        if (w->id && !w->told && now > w->until_ms) {
            tell_waiting(s, w, "");
        }
    }
}

void serve_drop_previews(serve *s, uint64_t conn_id)
{
    for (size_t i = 0; i < SERVE_PREVIEWS; i++) {
        preview_wait *w = &s->previews[i];
        if (w->id && w->conn == conn_id) {
            w->conn = 0;
            prep_ticket_cancel(w->ticket);
        }
    }
}

bool serve_end_previews(serve *s)
{
    bool any = false;
    for (size_t i = 0; i < SERVE_PREVIEWS; i++) {
        prep_ticket_cancel(s->previews[i].ticket);
        any = any || s->previews[i].id != 0;
    }
    return any;
}

void serve_close_previews(serve *s)
{
    prep_destroy(s->previewer);
    for (size_t i = 0; i < SERVE_PREVIEWS; i++) {
        end_wait(&s->previews[i]);
    }
}
