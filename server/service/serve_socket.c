#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/service/serve_state.h"

/* ---- direct messages ---- */

void serve_queue_frame(serve *s, conn *c, const bytes *text)
{
    uint32_t len = (uint32_t)text->len;
    if (text->failed || c->frames.len - c->frames_pos + text->len > s->opt->max_unread) {
        net_close_socket(s->net, c->id, 1008, "messages are not read");
        return;
    }
    if (c->frames_pos == c->frames.len) {
        bytes_clear(&c->frames);
        c->frames_pos = 0;
    }
    const size_t before = c->frames.len;
    bytes_append(&c->frames, &len, sizeof len);
    bytes_append(&c->frames, text->data, text->len);
    if (c->frames.failed) { /* half a message is none */
        c->frames.len = before;
        c->frames.failed = false;
        net_close_socket(s->net, c->id, 1011, "no memory for a message");
        return;
    }
    net_want_write(s->net, c->id);
}

static bool take_frame(conn *c, bytes *out)
{
    uint32_t len;
    if (c->frames_pos == c->frames.len) {
        return false;
    }
    memcpy(&len, c->frames.data + c->frames_pos, sizeof len);
    bytes_append(out, c->frames.data + c->frames_pos + sizeof len, len);
    c->frames_pos += sizeof len + len;
    if (c->frames_pos > 65536) {
        bytes_consume(&c->frames, c->frames_pos);
        c->frames_pos = 0;
    }
    return true;
}

static void append_member(bytes *out, const char *name, const char *value)
{
    if (value && value[0]) {
        bytes_json(out, ",%s:%s", name, value);
    }
}

void serve_socket_error(serve *s, conn *c, const api_error *e, const char *event_id, const char *stream_id,
                        const char *response_id)
{
    bytes text, extra;
    bytes_init(&text, s->opt->max_unread);
    bytes_init(&extra, s->opt->max_unread);
    append_member(&extra, "event_id", event_id);
    bytes_printf(&text, "{\"type\":\"error\",\"status\":%d,\"error\":", e->status);
    api_error_write(&text, e, bytes_str(&extra));
    bytes_fail_as(&text, &extra);
    append_member(&text, "stream_id", stream_id);
    append_member(&text, "response_id", response_id);
    bytes_append_char(&text, '}');
    serve_queue_frame(s, c, &text);
    bytes_deinit(&text);
    bytes_deinit(&extra);
}

/* ---- the server's state ---- */

static const char *state_name(const serve *s)
{
    switch (s->phase) {
    case SERVE_LOADING:
        return "loading";
    case SERVE_DRAINING:
        return "draining";
    case SERVE_EMPTY:
        return "empty";
    default:
        return s->is_stalled || s->is_prep_stalled ? "stalled" : s->was_busy ? "busy" : "ready";
    }
}

static void write_status(bytes *out, serve *s)
{
    engine_status status = {0};
    if (s->engine) {
        engine_get_status(s->engine, &status);
    }
    bytes_json(out, "{\"type\":\"server.status\",\"state\":%s,\"progress\":%.3f,\"stage\":%s", state_name(s),
               s->load_fraction, s->load_stage);
    append_member(out, "model", s->info ? s->model_name : NULL);
    append_member(out, "next_model", s->switching ? s->wanted.name : NULL);
    bytes_printf(out, ",\"queue\":{\"running\":%d,\"waiting\":%d,\"slots\":%d}}", status.n_running,
                 status.n_waiting, s->info ? s->info->n_parallel : 0);
}

void serve_status_changed(serve *s)
{
    s->status_version++;
    for (size_t i = 0; i < s->conns.cap; i++) {
        conn *c = id_table_at(&s->conns, i);
        if (c && c->is_socket && c->is_extended) {
            net_want_write(s->net, c->id);
        }
    }
}

void serve_write_video(bytes *out, const engine_info *info)
{
    bytes_printf(out,
                 ",\"video\":{\"fps\":%g,\"min_frames\":%d,\"max_frames\":%d,\"patch_size\":%d,"
                 "\"merge_size\":%d,\"temporal_patch_size\":%d,\"min_pixels\":%lld,\"max_pixels\":%lld,"
                 "\"num_frames\":%d,\"fills_budget\":%s}",
                 info->video_fps, info->video_min_frames, info->video_max_frames, info->patch_size,
                 info->merge_size, info->temporal_patch_size, (long long)info->video_min_pixels,
                 (long long)info->video_max_pixels, info->video_fixed_frames,
                 info->video_fills_budget ? "true" : "false");
}

static void write_capabilities(bytes *out, const serve *s)
{
    const engine_info *info = s->info;
    bool vision = info ? info->has_vision : true, video = info ? info->has_video : true;
    static const char IMAGES[] = "\"image/png\",\"image/jpeg\",\"image/webp\",\"image/gif\",\"image/bmp\","
                                 "\"image/tiff\",\"image/avif\"";
    static const char VIDEOS[] = "\"video/mp4\",\"video/webm\",\"video/x-matroska\",\"video/quicktime\","
                                 "\"video/x-msvideo\",\"image/gif\",\"image/apng\",\"image/webp\"";
    bytes_json(
        out, "\"capabilities\":{\"modalities\":[\"text\"%-s%-s],\"image_types\":[%-s],\"video_types\":[%-s]",
        vision ? ",\"image\"" : "", video ? ",\"video\"" : "", vision ? IMAGES : "", video ? VIDEOS : "");
    if (video && info && info->video_fps > 0) {
        serve_write_video(out, info);
    }
    bytes_json(out, ",\"tools\":%hhd,\"thinking\":%hhd,\"history\":%hhd}", (bool)s->tool_form,
               (bool)(info && info->has_thinking), (bool)s->history);
}

/* type: "session.created", or "session.updated" when another model was loaded. */
static void write_session(bytes *out, const serve *s, const char *type)
{
    char session[64], event[64];
    hash_random_id(session, sizeof session, "sess_");
    hash_random_id(event, sizeof event, "event_");
    bytes_json(out,
               "{\"type\":%s,\"event_id\":%s,\"session\":{\"id\":%s,\"protocol\":\"parley.v1\",\"model\":%s,"
               "\"created_at\":%lld},\"server\":{\"name\":\"parley\",\"version\":%s,\"state\":%s,"
               "\"progress\":%.3f},",
               type, event, session, s->model_name, (long long)clock_unix_s(), PARLEY_VERSION, state_name(s),
               s->load_fraction);
    write_capabilities(out, s);
    if (s->upstreams) {
        upstreams_write_rules(s->upstreams, out);
    }
    bytes_printf(out,
                 ",\"limits\":{\"max_text_frame\":%zu,\"max_inline_bytes\":%zu,\"max_uploads\":%d,"
                 "\"max_upload_bytes\":%llu,\"chunk_size\":%d,\"upload_window\":%d,\"max_streams\":%d,\"max_"
                 "images\":%d,\"n_ctx\":%d,"
                 "\"log_ttl_s\":%d,\"ping_ms\":20000}}",
                 s->opt->max_ws_message, s->opt->max_body / 4 * 3, LIMIT_UPLOADS_PER_KEY,
                 (unsigned long long)file_store_get_options(s->files)->max_bytes, LIMIT_UPLOAD_CHUNK,
                 LIMIT_UPLOAD_WINDOW, SERVE_MAX_UNFINISHED, s->info ? s->info->max_images : LIMIT_IMAGES,
                 s->info ? s->info->n_ctx : 0, EVENT_LOG_TTL_S);
}

static void greet(serve *s, conn *c)
{
    bytes text;
    bytes_init(&text, s->opt->max_unread);
    write_session(&text, s, "session.created");
    serve_queue_frame(s, c, &text);
    bytes_deinit(&text);
    c->session_seen = s->session_version;
}

void serve_on_open(void *ctx, uint64_t id, bool extended)
{
    serve *s = ctx;
    conn *c = serve_conn(s, id);
    if (!c) {
        net_abort(s->net, id);
        return;
    }
    c->is_socket = true;
    c->is_extended = extended;
    c->chain = extended ? 0 : hash_random_u64();
    metrics_request(&s->metrics, "responses_ws_open", 101);
    if (extended) {
        greet(s, c);
        c->status_seen = ~s->status_version; /* another one: the state follows at once */
    }
}

/* ---- readers ---- */

bool serve_add_reader(conn *c, uint64_t answer_id, int64_t next_seq)
{
    for (int i = 0; i < c->n_readers; i++) {
        if (c->readers[i].answer == answer_id) {
            c->readers[i] = (reader){.answer = answer_id, .next_seq = next_seq};
            return true;
        }
    }
    if (c->n_readers == SERVE_MAX_READERS) {
        return false;
    }
    c->readers[c->n_readers++] = (reader){.answer = answer_id, .next_seq = next_seq};
    return true;
}

static void remove_reader(conn *c, int i)
{
    c->readers[i] = c->readers[--c->n_readers];
}

const char *serve_take_news(const serve *s, reader *r, const answer *a, bytes *out)
{
    if (r->next_seq < 1 || a->state == ANSWER_FINISHED) {
        return NULL;
    }
    if (r->progress_seen != a->progress_version) {
        r->progress_seen = a->progress_version;
        if (a->phase != GEN_PHASE_QUEUED) {
            double elapsed = clock_ms() - a->phase_start_ms;
            bool can_tell = a->processed > 0 && a->total > a->processed && elapsed > 0.0;
            double eta = can_tell ? elapsed / a->processed * (a->total - a->processed) : NAN;
            responses_reply_progress(out, &a->reply, a->phase, a->processed, a->total, a->cached, elapsed,
                                     eta);
            return "response.progress";
        }
    }
    if (r->stats_seen != a->stats_version) {
        r->stats_seen = a->stats_version;
        responses_reply_stats(out, &a->reply, &a->timings, a->server || !s->info ? 0 : s->info->n_ctx);
        return "response.stats";
    }
    return NULL;
}

/* Whether an earlier answer of the same lane has not been read to its end on this socket. */
static bool is_behind(serve *s, const conn *c, const answer *a)
{
    for (int i = 0; i < c->n_readers; i++) {
        const answer *b = id_table_get(&s->answers, c->readers[i].answer);
        if (b && b->conn == a->conn && b->order < a->order &&
            strcmp(b->opt.stream_id, a->opt.stream_id) == 0) {
            return true;
        }
    }
    return false;
}

/* What may be sent before an earlier answer of the lane has ended: by these events a client learns
 * the id to cancel. A plain client tells the answers of a socket apart by their order alone. */
static bool may_overtake(const conn *c, const event_view *event)
{
    return c->is_extended &&
           (strcmp(event->type, "response.created") == 0 || strcmp(event->type, "response.queued") == 0);
}

/* Takes the next message for this reader; *gone if it has read everything. */
static bool take_from_reader(serve *s, conn *c, reader *r, bytes *out, bool *gone)
{
    answer *a = id_table_get(&s->answers, r->answer);
    event_view event;
    *gone = !a || !a->has_reply;
    if (*gone) {
        return false;
    }
    const event_log_state state = event_log_read(&a->reply.log, r->next_seq, &event);
    if (is_behind(s, c, a) && (state != EVENT_LOG_EVENT || !may_overtake(c, &event))) {
        return false;
    }
    switch (state) {
    case EVENT_LOG_EVENT:
        bytes_append(out, event.text, event.len);
        r->next_seq++;
        return true;
    case EVENT_LOG_TRIMMED:
        responses_reply_catch_up(out, &a->reply, &r->next_seq);
        return true;
    case EVENT_LOG_END:
        *gone = true;
        return false;
    default:
        return c->is_extended && serve_take_news(s, r, a, out);
    }
}

net_pull serve_socket_pull(serve *s, conn *c, bytes *out)
{
    if (take_frame(c, out) || (c->is_extended && serve_take_ack(s, c, out))) {
        return NET_PULL_MORE;
    }
    if (c->is_extended && c->session_seen != s->session_version) {
        c->session_seen = s->session_version;
        write_session(out, s, "session.updated");
        return NET_PULL_MORE;
    }
    if (c->is_extended && c->status_seen != s->status_version) {
        c->status_seen = s->status_version;
        write_status(out, s);
        return NET_PULL_MORE;
    }
    /* Round robin, so that one long replay does not hold up the other lanes. */
    for (int tries = c->n_readers; tries > 0; tries--) {
        int i = c->next_reader % c->n_readers;
        bool gone;
        bool found = take_from_reader(s, c, &c->readers[i], out, &gone);
        if (gone) {
            remove_reader(c, i);
            tries = c->n_readers + 1; /* one that was tried may have waited for this one */
        } else {
            c->next_reader = i + 1;
        }
        if (found) {
            return NET_PULL_MORE;
        }
    }
    return NET_PULL_IDLE;
}

/* ---- messages ---- */

/* What every message may carry. */
typedef struct envelope {
    const char *type, *event_id, *stream_id, *response_id;
} envelope;

static void fault(serve *s, conn *c, const envelope *v, int status, const char *code, const char *param,
                  const char *text)
{
    api_error e;
    api_error_set(&e, status, code, param, "%s", text);
    serve_socket_error(s, c, &e, v->event_id, v->stream_id, v->response_id);
}

static void unknown_response(serve *s, conn *c, const envelope *v)
{
    api_error e;
    serve_no_response(s, c->scope, v->response_id ? v->response_id : "", &e);
    serve_socket_error(s, c, &e, v->event_id, v->stream_id, v->response_id);
}

/* ---- chains ---- */

void serve_end_chain(serve *s, conn *c)
{
    if (c->chain_end[0]) {
        (void)response_store_remove(s->response_store, c->chain, c->chain_end, clock_ms());
        c->chain_end[0] = '\0';
    }
}

void serve_extend_chain(serve *s, const answer *a)
{
    conn *c = serve_conn(s, a->conn);
    const bytes *items = &a->opt.items;
    if (!c || !c->chain) {
        return;
    }
    serve_end_chain(s, c);
    if (response_store_put(s->response_store, c->chain, a->chat_id, items->data, items->len, a->n_kept_input,
                           clock_ms())) {
        snprintf(c->chain_end, sizeof c->chain_end, "%s", a->chat_id);
    }
}

void serve_break_chain(serve *s, const answer *a)
{
    conn *c = a->goes_on ? serve_conn(s, a->conn) : NULL;
    if (c) {
        serve_end_chain(s, c);
    }
}

static void on_create(serve *s, conn *c, const envelope *v, bytes *message, json_doc **doc)
{
    const char *previous =
        doc ? json_str(json_get(json_root(*doc), "previous_response_id"), "") : c->chain_end;
    const bool goes_on = c->chain_end[0] && strcmp(previous, c->chain_end) == 0;
    int unfinished = 0;
    for (size_t i = 0; i < s->answers.cap; i++) {
        const answer *a = id_table_at(&s->answers, i);
        unfinished += a && a->conn == c->id && a->state != ANSWER_FINISHED;
    }
    if (unfinished >= SERVE_MAX_UNFINISHED) {
        fault(s, c, v, 429, "websocket_stream_limit_reached", NULL,
              "too many responses at once on this socket");
        return;
    }
    api_error e;
    answer *a = serve_start_answer(s, c, &dialect_event, message, doc, &e);
    if (a) {
        a->goes_on = goes_on;
    } else {
        serve_socket_error(s, c, &e, v->event_id, v->stream_id, NULL);
    }
}

/* input_tokens.count: the question of POST /v1/responses/input_tokens. */
static void on_count(serve *s, conn *c, const envelope *v, bytes *message, json_doc **doc)
{
    api_error e;
    answer *a = serve_start_answer(s, c, &dialect_queries[QUERY_COUNT_RESPONSES], message, doc, &e);
    if (!a) {
        serve_socket_error(s, c, &e, v->event_id, v->stream_id, NULL);
    }
}

void serve_socket_count(serve *s, conn *c, const char *event_id, const bytes *reply)
{
    bytes text;
    bytes_init(&text, s->opt->max_unread);
    bytes_append_str(&text, "{\"type\":\"input_tokens\"");
    append_member(&text, "event_id", event_id);
    bytes_printf(&text, ",\"n_ctx\":%d,", s->info ? s->info->n_ctx : 0);
    bytes_append_str(&text, bytes_str(reply) + 1); /* behind its brace */
    serve_queue_frame(s, c, &text);
    bytes_deinit(&text);
}

/* The answer a message means: by response_id, by stream_id, or the only active one of this
 * socket. */
static answer *find_target(serve *s, conn *c, const envelope *v)
{
    if (v->response_id) {
        return serve_find_response(s, c->scope, v->response_id);
    }
    answer *found = NULL;
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        bool is_active = a && a->conn == c->id && a->state != ANSWER_FINISHED && !a->dialect->is_query;
        if (!is_active || (v->stream_id && a->has_reply && strcmp(a->opt.stream_id, v->stream_id) != 0)) {
            continue;
        }
        /* Of a lane, the one that runs; without a lane it must be the only one. */
        if (found && !v->stream_id) {
            return NULL;
        }
        found = !found || a->order < found->order ? a : found;
    }
    return found;
}

static void on_cancel(serve *s, conn *c, const envelope *v)
{
    answer *a = find_target(s, c, v);
    if (a) {
        serve_cancel_answer(s, a); /* of a finished one: nothing happens */
    } else if (v->response_id) {
        unknown_response(s, c, v);
    } else if (!v->stream_id) {
        fault(s, c, v, 400, "invalid_event", "response_id",
              "there is not exactly one active response; name one");
    }
}

static void on_control(serve *s, conn *c, const envelope *v, const json *root)
{
    answer *a = find_target(s, c, v);
    err_detail d = {0};
    api_error e;
    if (!a) {
        unknown_response(s, c, v);
    } else if (serve_control_answer(s, a, json_str(json_get(root, "action"), NULL), &d) != ERR_OK) {
        api_error_from(&e, ERR_INVALID, &d);
        serve_socket_error(s, c, &e, v->event_id, v->stream_id, v->response_id);
    }
}

static void on_resume(serve *s, conn *c, const envelope *v, const json *root)
{
    int64_t after = -1;
    answer *a = v->response_id ? serve_find_response(s, c->scope, v->response_id) : NULL;
    if (!a) {
        unknown_response(s, c, v);
        return;
    }
    const json *wanted = json_get(root, "starting_after");
    if (json_typeof(wanted) != JSON_NULL &&
        !json_int(wanted, -1, event_log_next(&a->reply.log) - 1, &after)) {
        fault(s, c, v, 400, "invalid_event", "starting_after",
              "starting_after is not a number of this response");
        return;
    }
    if (!serve_add_reader(c, a->id, after + 1)) {
        fault(s, c, v, 429, "websocket_stream_limit_reached", NULL, "this socket follows too many responses");
        return;
    }
    s->metrics.ws_resumes++;
    net_want_write(s->net, c->id);
}

static void on_ping(serve *s, conn *c, const envelope *v, const json *root)
{
    const json *t = json_get(root, "t");
    bytes text;
    bytes_init(&text, s->opt->max_unread);
    bytes_append_str(&text, "{\"type\":\"pong\"");
    append_member(&text, "event_id", v->event_id);
    bytes_append_str(&text, ",\"t\":");
    if (json_is(t, JSON_OBJECT) || json_is(t, JSON_ARRAY) || !t) {
        bytes_append_str(&text, "null");
    } else {
        json_write(&text, t);
    }
    bytes_append_char(&text, '}');
    serve_queue_frame(s, c, &text);
    bytes_deinit(&text);
}

static void dispatch(serve *s, conn *c, json_doc **doc, bytes *message)
{
    const json *root = json_root(*doc);
    envelope v = {.type = json_str(json_get(root, "type"), NULL),
                  .event_id = json_str(json_get(root, "event_id"), NULL),
                  .stream_id = json_str(json_get(root, "stream_id"), NULL),
                  .response_id = json_str(json_get(root, "response_id"), NULL)};
    if (!v.type) {
        fault(s, c, &v, 400, "invalid_event", "type", "every message is an object with a type");
    } else if (strcmp(v.type, "response.create") == 0) {
        on_create(s, c, &v, message, doc);
    } else if (strcmp(v.type, "response.cancel") == 0) {
        on_cancel(s, c, &v);
    } else if (c->is_extended && strcmp(v.type, "response.control") == 0) {
        on_control(s, c, &v, root);
    } else if (c->is_extended && strcmp(v.type, "response.resume") == 0) {
        on_resume(s, c, &v, root);
    } else if (c->is_extended && strcmp(v.type, "input_tokens.count") == 0) {
        on_count(s, c, &v, message, doc);
    } else if (c->is_extended && strcmp(v.type, "ping") == 0) {
        on_ping(s, c, &v, root);
    } else if (c->is_extended) {
        serve_socket_upload(s, c, v.type, root, v.event_id);
    } /* other types are from a later version of the protocol: ignored */
}

void serve_on_message(void *ctx, uint64_t id, bytes *message)
{
    serve *s = ctx;
    conn *c = serve_conn(s, id);
    if (!c) {
        return;
    }
    static const envelope nothing;
    if (message->len > SERVE_SMALL_MESSAGE_BYTES) {
        on_create(s, c, &nothing, message, NULL); /* only this type may be large; prep checks it */
        return;
    }
    json_doc *doc = NULL;
    err_detail d = {0};
    if (json_parse(&doc, bytes_str(message), message->len, LIMIT_JSON_DEPTH, &d) != ERR_OK) {
        fault(s, c, &nothing, 400, "invalid_event", NULL, d.text);
        return;
    }
    dispatch(s, c, &doc, message);
    json_free(doc);
}
