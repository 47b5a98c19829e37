/* serve_idempotency: a request that comes again goes on to the answer of the first one; who follows an answer, and how much of
 * its stream each has had. What is asked of others is recorded. */
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"
#include "tests/server/service/told.h"

/* ---- what is asked of others ---- */

static bool is_gone, can_read;

WRAP(void, net_want_write, (net * n, uint64_t id), (void)n; tell("write to %d", (int)id);)
WRAP(bool, serve_add_reader, (conn * c, uint64_t id, int64_t next_seq),
     tell("%d reads %d from %d on", (int)c->id, (int)id, (int)next_seq);
     return can_read;)
WRAP(void, serve_socket_error,
     (serve * s, conn *c, const api_error *e, const char *event_id, const char *stream_id,
      const char *response_id),
     (void)s;
     tell("error to %d: %d %s %s (%s, %s, %s)", (int)c->id, e->status, e->code, e->message, event_id,
          stream_id, response_id);)
WRAP(void, serve_send_error, (serve * s, conn *c, const api_error *e), (void)s;
     tell("error to %d: %d %s %s%s", (int)c->id, e->status, e->code, e->message, e->param);)
WRAP(void, serve_begin_stream, (serve * s, conn *c, const answer *a), (void)s;
     tell("stream %d to %d", (int)a->id, (int)c->id);)
WRAP(void, serve_send_whole, (serve * s, conn *c, answer *a), (void)s;
     tell("send %d to %d", (int)a->id, (int)c->id);)
WRAP(void, serve_drop_answer, (serve * s, answer *a), tell("drop %d", (int)a->id);
     CHECK(id_table_remove(&s->answers, a->id) == a); answer_destroy(a);)
WRAP(
    bool, serve_is_repeat_gone, (const serve *s, const answer *a, api_error *e), (void)s;
    tell("is the answer to %d gone", (int)a->id);
    if (is_gone) { api_error_set(e, 404, "it_is_gone", NULL, "it had to go"); } return is_gone;)
WRAP(void, serve_fail_answer, (serve * s, answer *a, err_code code, const api_error *e), (void)s;
     tell("%d fails: %d %d %s", (int)a->id, code, e->status, e->code);)
WRAP(void, serve_stop_answer, (serve * s, uint64_t id), (void)s; tell("stop %d", (int)id);)

static serve *begin(const char *what)
{
    serve *s = made_serve();
    is_gone = false;
    can_read = true;
    told_case("\n%s", what);
    return s;
}

static conn *client_of(serve *s, uint64_t id, uint64_t answer_id)
{
    conn *c = made_conn(s, id);
    c->scope = 5;
    c->answer = answer_id;
    return c;
}

/* Of a request with this name; its response is called by its number. */
static answer *named(serve *s, bool is_socket, const char *name)
{
    answer *a = made_answer(s, is_socket ? &dialect_event : &dialect_chat);
    a->conn = 3;
    a->is_socket = is_socket;
    a->is_accepted = true;
    a->state = ANSWER_RUNNING;
    a->created_ms = 1000000;
    snprintf(a->request_id, sizeof a->request_id, "r%d", (int)a->id);
    snprintf(a->opt.stream_id, sizeof a->opt.stream_id, "st");
    snprintf(a->reply.id, sizeof a->reply.id, "resp_%d", (int)a->id);
    snprintf(is_socket ? a->opt.event_id : a->idempotency_key,
             is_socket ? sizeof a->opt.event_id : sizeof a->idempotency_key, "%s", name);
    return a;
}

/* ---- requests that come again ---- */

enum { LESS_MS = SERVE_IDEMPOTENCY_S * 1000 };

/* What differs between the first request and the second, and whether that is the same one. */
static void test_same(void)
{
    static const char *const WHAT[] = {
        "the same again",          "of another name",           "of another key",
        "of another body",         "of another dialect",        "that was not accepted",
        "that was cancelled",      "as long ago as may be",     "longer ago",
        "without a name",          "of the other kind",         "nothing before it",
        "of another, longer name", "and it is said to be gone", "that is gone",
    };
    for (size_t i = 0; i < ARRAY_LEN(WHAT); i++) {
        for (int is_socket = 0; is_socket < 2; is_socket++) {
            serve *s = begin(WHAT[i]);
            conn *c = client_of(s, 3, 2);
            c->is_socket = is_socket;
            answer *first = i == 11 ? NULL : named(s, i == 10 ? !is_socket : is_socket, i == 9 ? "" : "n");
            answer *again = named(s, is_socket, i == 1 ? "m" : i == 9 ? "" : i == 12 ? "nn" : "n");
            again->state = ANSWER_PREPARING;
            if (i == 2) {
                again->scope = 6;
            } else if (i == 3) {
                again->opt.body_hash[HASH_BYTES - 1] = 1;
            } else if (i == 4) {
                again->dialect = &dialect_messages;
            } else if (i == 5) {
                first->is_accepted = false;
            } else if (i == 6) {
                first->cancelled = true;
            } else if (i == 7 || i == 8) {
                again->created_ms += LESS_MS + (i == 8 ? 0.5 : 0);
            } else if (i == 10) { /* both kinds of name */
                snprintf(first->opt.event_id, sizeof first->opt.event_id, "n");
                snprintf(first->idempotency_key, sizeof first->idempotency_key, "n");
            } else if (i == 13) {
                is_gone = true;
            } else if (i == 14) {
                is_gone = true;
                first->is_accepted = false;
            }
            tell(serve_attach_replay(s, again) ? "it goes on" : "it is a new one");
            tell("%d waits for %d", is_socket, (int)c->answer);
            tell("%d times", (int)s->metrics.ws_resumes);
            made_end(s);
        }
    }
}

static void test_sockets(void)
{
    for (int with = 0; with < 4; with++) {
        serve *s = begin(with & 1 ? "a socket that reads it already" : "a socket");
        conn *c = client_of(s, 3, 0);
        c->is_socket = true;
        can_read = !(with & 2);
        answer *first = named(s, true, "n"), *again = named(s, true, "n");
        c->n_readers = 2;
        c->readers[0].answer = 9;
        c->readers[1].answer = with & 1 ? first->id : 8;
        c->readers[2].answer = first->id; /* of before */
        CHECK(serve_attach_replay(s, again));
        tell("%d times", (int)s->metrics.ws_resumes);
        made_end(s);
    }
    serve *s = begin("a socket that reads only that");
    conn *c = client_of(s, 3, 0);
    c->is_socket = true;
    c->readers[c->n_readers++].answer = named(s, true, "n")->id;
    CHECK(serve_attach_replay(s, named(s, true, "n")));
    made_end(s);
    s = begin("a socket that is gone");
    named(s, true, "n");
    CHECK(serve_attach_replay(s, named(s, true, "n")));
    made_end(s);
}

/* What a second connection gets, by the state of the first answer. */
static void test_http(void)
{
    for (int state = ANSWER_HELD; state <= ANSWER_FINISHED; state++) {
        for (int with = 0; with < 4; with++) {
            char what[64];
            snprintf(what, sizeof what, "state %d%s%s", state, with & 1 ? ", streamed" : "",
                     with & 2 ? ", early" : "");
            serve *s = begin(what);
            conn *c = client_of(s, 3, 2);
            answer *first = named(s, false, "n"), *again = named(s, false, "n");
            first->state = (answer_state)state;
            first->opt.stream = with & 1;
            if (with & 2) {
                first->opt.return_progress = true;
                first->dialect = again->dialect = &dialect_responses;
            }
            CHECK(serve_attach_replay(s, again));
            tell("it waits for %d", (int)c->answer);
            made_end(s);
        }
    }
    for (int gone = 0; gone < 2; gone++) {
        serve *s = begin("its begin is gone");
        conn *c = client_of(s, 3, 2);
        named(s, false, "n")->sse_base = (size_t)gone;
        CHECK(serve_attach_replay(s, named(s, false, "n")));
        tell("it waits for %d", (int)c->answer);
        made_end(s);
    }
}

/* ---- who follows an answer ---- */

static void test_followers(void)
{
    serve *s = begin("followers");
    answer *a = named(s, false, "n"), *b = named(s, false, "m");
    CHECK(!serve_find_follower(s, a));
    conn *http = client_of(s, 3, a->id), *other = client_of(s, 4, b->id), *socket = client_of(s, 5, a->id);
    socket->is_socket = true; /* of one the number means nothing */
    CHECK(serve_follows(http, a) && !serve_follows(http, b));
    CHECK(!serve_follows(other, a) && serve_follows(other, b));
    CHECK(!serve_follows(socket, a) && !serve_follows(socket, b));
    CHECK(serve_find_follower(s, a) == http && serve_find_follower(s, b) == other);
    http->answer = 0;
    CHECK(!serve_find_follower(s, a));
    socket->readers[0].answer = b->id;
    socket->readers[1].answer = a->id;
    for (int n = 0; n < 3; n++) {
        socket->n_readers = n;
        CHECK_INT(serve_follows(socket, a), n == 2);
        CHECK_INT(serve_follows(socket, b), n > 0);
        CHECK(serve_find_follower(s, a) == (n == 2 ? socket : NULL));
    }
    other->answer = 0;
    other->n_readers = 2; /* a Responses stream follows the log */
    other->readers[0].answer = a->id;
    CHECK(serve_follows(other, a));
    made_end(s);

    s = begin("those that wait");
    a = named(s, false, "n");
    for (uint64_t id = 1; id <= 20; id++) {
        client_of(s, id, id % 3 ? a->id : 9)->is_socket = id % 5 == 0;
    }
    size_t i = 0;
    unsigned seen = 0;
    for (conn *c = serve_next_waiting(s, a, &i); c; c = serve_next_waiting(s, a, &i)) {
        CHECK(!(seen >> c->id & 1));
        seen |= 1u << c->id;
    }
    for (uint64_t id = 1; id <= 20; id++) {
        CHECK_INT(seen >> id & 1, id % 3 != 0 && id % 5 != 0);
    }
    CHECK_INT(i, s->conns.cap);
    made_end(s);
}

/* Wherever in their tables both stand. */
static void test_places(void)
{
    told_case("\nplaces");
    static const uint64_t IDS[] = {62, 17}; /* they come to the first and the last place of a table */
    for (size_t k = 0; k < ARRAY_LEN(IDS); k++) {
        serve *s = made_serve();
        s->next_answer = IDS[k] - 1;
        answer *a = named(s, false, "n"), *again = named(s, false, "n");
        conn *c = client_of(s, IDS[k], a->id);
        size_t i = 0;
        CHECK(serve_find_follower(s, a) == c);
        CHECK(serve_next_waiting(s, a, &i) == c);
        CHECK(serve_attach_replay(s, again));
        a->idempotency_key[0] = '\0';
        bytes_append_str(&a->sse, "123456");
        c->sse_pos = 2;
        serve_check_stream(s, a);
        CHECK_INT(a->sse_base, 2);
        made_options.max_unread = 3;
        serve_check_stream(s, a);
        CHECK(c->is_cut);
        made_end(s);
    }
}

/* ---- streams of bytes ---- */

static void say_stream(const char *when, const answer *a, const conn *one, const conn *two)
{
    tell("%s: \"%s\" from %d on, had %d and %d%s%s", when, bytes_str(&a->sse), (int)a->sse_base,
         (int)one->sse_pos, (int)two->sse_pos, one->is_cut ? ", the first is cut" : "",
         two->is_cut ? ", the second is cut" : "");
}

/* Who does not read is cut, an answer that nobody reads stops, and what all have had is forgotten. */
static void test_check(void)
{
    for (int with = 0; with < 64; with++) {
        const bool is_named = with & 1, finishes = with & 2, may_not = with & 4, runs = with & 8,
                   second_reads = with & 16, is_late = with & 32;
        char what[160];
        snprintf(what, sizeof what, "a stream%s%s%s%s%s%s", is_named ? ", with a name" : "",
                 finishes ? ", which the server finishes" : "",
                 may_not ? ", whose client does not want that" : "", runs ? "" : ", over",
                 second_reads ? ", the second reads" : "", is_late ? ", much is unread" : "");
        serve *s = begin(what);
        answer *a = named(s, false, is_named ? "n" : "");
        conn *one = client_of(s, 3, a->id), *two = client_of(s, 4, a->id);
        made_options.max_unread = is_late ? 5 : 6;
        made_options.event_log_bytes = 100;
        made_options.finish_on_disconnect = finishes;
        a->opt.cancel_on_disconnect = may_not;
        a->state = runs ? ANSWER_RUNNING : ANSWER_FINISHED;
        a->sse_base = 10;
        bytes_append_str(&a->sse, "12345678");
        one->sse_pos = 12; /* 6 are left */
        two->sse_pos = second_reads ? 14 : 12;
        serve_check_stream(s, a);
        say_stream("now", a, one, two);
        serve_check_stream(s, a); /* it is said once */
        say_stream("again", a, one, two);
        made_end(s);
    }
    serve *s = begin("nobody waits");
    answer *a = named(s, false, "");
    bytes_append_str(&a->sse, "1234");
    made_options.finish_on_disconnect = false;
    serve_check_stream(s, a);
    CHECK_INT(a->sse.len, 0);
    CHECK_INT(a->sse_base, 4);
    made_end(s);
    for (int more = 0; more < 2; more++) {
        s = begin("what may be asked for again");
        a = named(s, false, "n");
        conn *c = client_of(s, 3, a->id);
        made_options.event_log_bytes = 4;
        bytes_append_str(&a->sse, more ? "12345" : "1234");
        c->sse_pos = 3;
        serve_check_stream(s, a);
        say_stream("now", a, c, c);
        made_end(s);
    }
}

/* Whole events, about as much as is asked for. */
static void test_take(void)
{
    static const struct {
        size_t base, pos, max;
        const char *text;
    } CASES[] = {
        {0, 0, 100, "a\n\nb\n\n"}, {0, 0, 6, "a\n\nb\n\n"},         {0, 0, 5, "a\n\nb\n\n"},
        {0, 0, 4, "a\n\nb\n\n"},   {0, 0, 3, "a\n\nb\n\n"},         {0, 0, 1, "a\n\nb\n\n"},
        {0, 0, 0, "a\n\nb\n\n"},   {10, 13, 1, "a\n\nbb\n\nc\n\n"}, {10, 10, 2, "a\n\nb\n\n"},
        {10, 16, 5, "a\n\nb\n\n"}, {0, 0, 2, "abcdefgh"},           {5, 5, 1, "ab\n\ncd"},
        {5, 6, 3, "ab\n\ncd"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        for (int is_named = 0; is_named < 2; is_named++) {
            serve *s = begin("a part of a stream");
            answer *a = named(s, false, is_named ? "n" : "");
            conn *c = client_of(s, 3, a->id), *slow = client_of(s, 4, a->id);
            bytes out = bytes_empty(100);
            made_options.event_log_bytes = 100;
            bytes_append_str(&a->sse, CASES[i].text);
            a->sse_base = CASES[i].base;
            c->sse_pos = CASES[i].pos;
            slow->sse_pos = CASES[i].base + 1;
            const size_t left = serve_take_stream(s, c, a, &out, CASES[i].max);
            tell("of \"%s\" from %d on, at most %d: \"%s\", %d left", CASES[i].text, (int)CASES[i].pos,
                 (int)CASES[i].max, bytes_str(&out), (int)left);
            say_stream("then", a, c, slow);
            bytes_deinit(&out);
            made_end(s);
        }
    }
}

int main(void)
{
    test_same();
    test_sockets();
    test_http();
    test_followers();
    test_places();
    test_check();
    test_take();
    recorded_check("server/service/recorded/idempotency.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
