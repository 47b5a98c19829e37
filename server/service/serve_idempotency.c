#define _GNU_SOURCE /* memmem */
/* What a client sends again, because it does not know whether it arrived, begins nothing new: a
 * WebSocket's response.create with the same event_id, an HTTP request with the same
 * Idempotency-Key. Both go on to the answer that the first one began. */
#include <string.h>

#include "base/log.h"
#include "server/service/serve_state.h"

static const char *repeat_name(const answer *a)
{
    return a->is_socket ? a->opt.event_id : a->idempotency_key;
}

static bool is_same(const answer *a, const answer *b)
{
    return a->dialect == b->dialect && memcmp(a->opt.body_hash, b->opt.body_hash, HASH_BYTES) == 0;
}

/* The answer that was asked for in the same name before. Clients that know nothing of each other
 * may count their event_ids alike: those mean the same only with the same bytes. NULL: there is
 * none. */
static answer *find_earlier(const serve *s, const answer *a)
{
    for (size_t i = 0; i < s->answers.cap && repeat_name(a)[0]; i++) {
        answer *b = id_table_at(&s->answers, i);
        if (b && b != a && b->is_accepted && !(b->cancelled && !b->is_socket) &&
            b->is_socket == a->is_socket && b->scope == a->scope &&
            strcmp(repeat_name(b), repeat_name(a)) == 0 && (!a->is_socket || is_same(a, b)) &&
            a->created_ms - b->created_ms <= SERVE_IDEMPOTENCY_S * 1000.0) {
            return b;
        }
    }
    return NULL;
}

/* Lets a socket read `earlier` from its first event on; one that reads it already goes on where it
 * is. */
static void attach_socket(serve *s, conn *c, const answer *a, const answer *earlier)
{
    for (int i = 0; i < c->n_readers; i++) {
        if (c->readers[i].answer == earlier->id) {
            return;
        }
    }
    if (!serve_add_reader(c, earlier->id, 0)) {
        api_error e;
        api_error_set(&e, 429, "websocket_stream_limit_reached", NULL,
                      "this socket follows too many responses");
        serve_socket_error(s, c, &e, a->opt.event_id, a->opt.stream_id, earlier->reply.id);
        return;
    }
    s->metrics.ws_resumes++;
    net_want_write(s->net, c->id);
}

static void refuse(serve *s, conn *c, const char *code, const char *text)
{
    api_error e;
    api_error_set(&e, 422, code, NULL, "%s", text);
    serve_send_error(s, c, &e);
}

/* Lets a connection wait for the reply of `earlier`, or sends what there is of it. */
static void attach_http(serve *s, conn *c, const answer *a, answer *earlier)
{
    c->answer = 0;
    if (!is_same(a, earlier)) {
        refuse(s, c, "idempotency_key_reused", "this Idempotency-Key came with another request before");
        return;
    }
    if (earlier->sse_base > 0) {
        refuse(s, c, "idempotency_reply_gone", "the reply became too long to be sent again");
        return;
    }
    c->answer = earlier->id;
    if (earlier->state < ANSWER_RUNNING && !answer_streams_early(earlier)) {
        return; /* it begins with the others */
    }
    if (earlier->opt.stream) {
        serve_begin_stream(s, c, earlier);
    } else if (earlier->state == ANSWER_FINISHED) {
        serve_send_whole(s, c, earlier);
    }
}

/* The first answer had to go early: that is said, as making it anew would be a second one under the
 * same name. */
static bool refuse_gone(serve *s, answer *a)
{
    api_error e;
    if (!serve_is_repeat_gone(s, a, &e)) {
        return false;
    }
    serve_fail_answer(s, a, ERR_NOT_FOUND, &e);
    return true;
}

bool serve_attach_replay(serve *s, answer *a)
{
    answer *earlier = find_earlier(s, a);
    conn *c = serve_conn(s, a->conn);
    if (!earlier) {
        return refuse_gone(s, a);
    }
    if (c) {
        if (a->is_socket) {
            attach_socket(s, c, a, earlier);
        } else {
            attach_http(s, c, a, earlier);
        }
    }
    serve_drop_answer(s, a);
    return true;
}

bool serve_follows(const conn *c, const answer *a)
{
    bool follows = !c->is_socket && c->answer == a->id;
    for (int i = 0; i < c->n_readers && !follows; i++) {
        follows = c->readers[i].answer == a->id;
    }
    return follows;
}

conn *serve_find_follower(const serve *s, const answer *a)
{
    for (size_t i = 0; i < s->conns.cap; i++) {
        conn *c = id_table_at(&s->conns, i);
        if (c && serve_follows(c, a)) {
            return c;
        }
    }
    return NULL;
}

conn *serve_next_waiting(const serve *s, const answer *a, size_t *i)
{
    while (*i < s->conns.cap) {
        conn *c = id_table_at(&s->conns, (*i)++);
        if (c && !c->is_socket && c->answer == a->id) {
            return c;
        }
    }
    return NULL;
}

/* Forgets what every connection has taken, unless the reply may be asked for again and is short
 * enough to be kept. */
static void trim_stream(const serve *s, answer *a)
{
    if (a->idempotency_key[0] && a->sse.len <= s->opt->event_log_bytes) {
        return;
    }
    size_t taken = a->sse_base + a->sse.len, i = 0;
    for (const conn *c = serve_next_waiting(s, a, &i); c; c = serve_next_waiting(s, a, &i)) {
        taken = c->sse_pos < taken && !c->is_cut ? c->sse_pos : taken;
    }
    bytes_consume(&a->sse, taken - a->sse_base);
    a->sse_base = taken;
}

void serve_check_stream(serve *s, answer *a)
{
    size_t i = 0;
    bool is_wanted = a->idempotency_key[0] || (s->opt->finish_on_disconnect && !a->opt.cancel_on_disconnect);
    for (conn *c = serve_next_waiting(s, a, &i); c; c = serve_next_waiting(s, a, &i)) {
        const size_t unread = a->sse_base + a->sse.len - c->sse_pos;
        if (!c->is_cut && unread > s->opt->max_unread) {
            log_warn("srv", "req=%s the client leaves %zu bytes unread: its stream is cut", a->request_id,
                     unread);
            c->is_cut = true;
            net_want_write(s->net, c->id);
        }
        is_wanted = is_wanted || !c->is_cut;
    }
    if (!is_wanted && a->state == ANSWER_RUNNING) {
        serve_stop_answer(s, a->id);
    }
    trim_stream(s, a);
}

size_t serve_take_stream(const serve *s, conn *c, answer *a, bytes *out, size_t max)
{
    const size_t at = c->sse_pos - a->sse_base, left = a->sse.len - at;
    size_t n = left;
    if (left > max) { /* up to the end of an event, so that an error may follow */
        const char *end = memmem(a->sse.data + at + max, left - max, "\n\n", 2);
        n = end ? (size_t)(end - (a->sse.data + at)) + 2 : left;
    }
    bytes_append(out, a->sse.data + at, n);
    c->sse_pos += n;
    trim_stream(s, a);
    return left - n;
}
