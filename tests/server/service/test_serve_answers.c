/* serve_answers: how an answer is found, begins and ends, of a dialect that the test makes up: what is asked of the neighbours and
 * of the dialect is written down, and so is what the answer is then. */
#include "tests/alloc_fail.h"
#include "tests/server/service/answers_told.h"

/* ---- who follows, and what is found ---- */

static void test_found(void)
{
    serve *s = answers_begin();
    answer *a = answers_ask(s, &LOGGED, ANSWER_RUNNING), *b = answers_ask(s, &LOGGED, ANSWER_RUNNING);
    told_case("who follows");
    answers_conn(s, 1, NULL);
    answers_conn(s, 2, b);
    answers_conn(s, 3, a);
    answers_conn(s, 4, a)->is_socket = true;
    conn *reads = answers_conn(s, 5, NULL);
    CHECK(serve_add_reader(reads, b->id, 0) && serve_add_reader(reads, a->id, 0));
    serve_wake_followers(s, a);
    snprintf(a->reply.id, sizeof a->reply.id, "resp_a");
    snprintf(b->reply.id, sizeof b->reply.id, "resp_b");
    b->has_reply = true;
    CHECK(serve_find_response(s, 5, "resp_b") == b);
    CHECK(!serve_find_response(s, 4, "resp_b") && !serve_find_response(s, 5, "resp_a") &&
          !serve_find_response(s, 5, "resp_"));
    a->has_reply = true;
    CHECK(serve_find_response(s, 5, "resp_a") == a);
    answers_conn(s, FIRST_PLACE, a);
    answers_conn(s, LAST_PLACE, a);
    told_places(&s->conns);
    tell("and at the ends of the table");
    serve_wake_followers(s, a);
    for (int i = 0; i < 2; i++) {
        const uint64_t id = i ? FIRST_PLACE : LAST_PLACE;
        s->next_answer = id - 1;
        answer *x = answers_ask(s, &LOGGED, ANSWER_RUNNING);
        x->has_reply = true;
        snprintf(x->reply.id, sizeof x->reply.id, "resp_%d", i);
        CHECK(serve_find_response(s, 5, i ? "resp_1" : "resp_0") == x);
        x->has_reply = false;
    }
    told_places(&s->answers);
    s->next_answer = 2;
    a->has_reply = b->has_reply = false;
    told_case("dropped");
    CHECK(shares_add(&s->kept, 5, 100) && shares_add(&s->kept, 5, 30));
    a->kept_bytes = 30;
    serve_drop_answer(s, a);
    CHECK_INT(s->kept.n_bytes, 100);
    CHECK_INT(s->kept.n, 1);
    serve_drop_answer(s, b);
    CHECK_INT(s->kept.n_bytes, 100);
    CHECK_INT(s->kept.n, 1);
    answers_tell(s);
    answers_end(s);
}

/* ---- starting ---- */

static void test_new(void)
{
    for (int is_socket = 0; is_socket < 2; is_socket++) {
        serve *s = answers_begin();
        conn *c = answers_conn(s, 7, NULL);
        api_error e = {0};
        c->is_socket = is_socket;
        c->scope = 44;
        answer *a = serve_new_answer(s, c, &MADE, &e);
        CHECK(a && id_table_get(&s->answers, 1) == a);
        CHECK(a->id == 1 && a->order == 1 && a->conn == 7 && a->scope == 44 && a->is_socket == is_socket);
        CHECK(a->dialect == &MADE && e.status == 0);
        CHECK_STR(a->request_id, is_socket ? "m-1" : "req7");
        answers_end(s);
    }
    answer *a = NULL;
    size_t n = 1;
    for (; !a && n < 100; n++) {
        serve *s = answers_begin();
        conn *c = answers_conn(s, 7, NULL);
        api_error e = {0};
        alloc_fail_at(n);
        a = serve_new_answer(s, c, &MADE, &e);
        alloc_fail_at(0);
        CHECK_STR(e.code, a ? "" : "out_of_memory");
        CHECK_INT(e.status, a ? 0 : 503);
        CHECK_INT(s->answers.len, a != NULL);
        answers_end(s);
    }
    CHECK_INT(n, 5); /* it, its ticket, its place in the table */
}

typedef struct start {
    const char *name, *doc; /* doc NULL: it is not read yet */
    model_turn first, named;
    bool has_catalog, is_socket, no_room;
    err_code prepared;
    size_t n_param;
} start;

#define DOC "{\"model\":\"ash\",\"event_id\":\"ev\",\"stream_id\":\"lane\"}"

static const start STARTS[] = {
    {"over HTTP", NULL, MODEL_NOW, .named = MODEL_REFUSED},
    {"over HTTP, a name of 64 letters", NULL, MODEL_NOW, .named = MODEL_REFUSED, .n_param = 64},
    {"over HTTP, a name of 65 letters", NULL, MODEL_NOW, .named = MODEL_REFUSED, .n_param = 65},
    {"over HTTP, later", NULL, MODEL_LATER, .named = MODEL_NOW, .has_catalog = true},
    {"over HTTP, later, no room", NULL, MODEL_LATER, .named = MODEL_NOW, .no_room = true},
    {"over HTTP, refused", NULL, MODEL_REFUSED, .named = MODEL_NOW},
    {"over HTTP, the workers have no place", NULL, MODEL_NOW, .named = MODEL_NOW, .prepared = ERR_BUSY},
    {"over HTTP, read", DOC, MODEL_NOW, .named = MODEL_LATER},
    {"a socket", DOC, MODEL_NOW, .named = MODEL_REFUSED, .is_socket = true},
    {"a socket, the list is known", DOC, MODEL_NOW, .named = MODEL_NOW, .has_catalog = true,
     .is_socket = true},
    {"a socket, its model comes later", DOC, MODEL_NOW, .named = MODEL_LATER, .has_catalog = true,
     .is_socket = true},
    {"a socket, its model comes at once", DOC, MODEL_LATER, .named = MODEL_NOW, .has_catalog = true,
     .is_socket = true},
    {"a socket, no such model", DOC, MODEL_NOW, .named = MODEL_REFUSED, .has_catalog = true,
     .is_socket = true},
    {"a socket, refused", DOC, MODEL_REFUSED, .named = MODEL_NOW, .has_catalog = true, .is_socket = true},
    {"a socket, no room", DOC, MODEL_LATER, .named = MODEL_LATER, .has_catalog = true, .is_socket = true,
     .no_room = true},
    {"a socket, the workers have no memory", DOC, MODEL_NOW, .named = MODEL_NOW, .has_catalog = true,
     .is_socket = true, .prepared = ERR_NOMEM},
    {"a socket that names nothing", "{}", MODEL_NOW, .named = MODEL_NOW, .has_catalog = true,
     .is_socket = true},
    {"a socket that names something odd", "{\"model\":7,\"event_id\":[],\"stream_id\":{}}", MODEL_NOW,
     .named = MODEL_NOW, .has_catalog = true, .is_socket = true},
    {"a socket with another name", "{\"model\":\"short\"}", MODEL_NOW, .named = MODEL_NOW,
     .has_catalog = true, .is_socket = true},
};

static void test_start(void)
{
    for (size_t i = 0; i < ARRAY_LEN(STARTS) + 2; i++) {
        static char long_name[REQUEST_MODEL_MAX + 32];
        const bool is_long = i >= ARRAY_LEN(STARTS);
        const start *t = is_long ? &STARTS[9] : &STARTS[i];
        serve *s = answers_begin();
        conn *c = answers_conn(s, 3, NULL);
        json_doc *doc = NULL;
        api_error e = {0};
        bytes body;
        answers_put(&body, "{body}");
        c->scope = 5;
        c->is_socket = t->is_socket;
        snprintf(c->idempotency_key, sizeof c->idempotency_key, "key");
        snprintf(c->param, sizeof c->param, "%s", "n");
        if (t->n_param) {
            memset(c->param, 'p', t->n_param);
            c->param[t->n_param] = '\0';
        }
        s->catalog = t->has_catalog ? (catalog *)(things + 3) : NULL;
        first_turn = t->first;
        named_turn = t->named;
        reserves = !t->no_room;
        prepared = t->prepared;
        const size_t n_long = (size_t)REQUEST_MODEL_MAX - 1 + (i - ARRAY_LEN(STARTS));
        if (is_long) {
            char name[REQUEST_MODEL_MAX + 8];
            memset(name, 'n', n_long);
            name[n_long] = '\0';
            snprintf(long_name, sizeof long_name, "{\"model\":\"%s\"}", name);
        }
        const char *text = is_long ? long_name : t->doc;
        if (text) {
            CHECK_INT(json_parse(&doc, text, strlen(text), 4, NULL), ERR_OK);
        }
        told_case("start: %s", is_long ? "a long name" : t->name);
        const answer *a = serve_start_answer(s, c, &MADE, &body, text ? &doc : NULL, &e);
        tell("%s%s, status %d %s%s", a ? "an answer" : "no answer", body.data ? ", the body is here" : "",
             e.status, e.code, doc ? ", the document is here" : "");
        if (a && strlen(a->opt.model) > 100) {
            CHECK_INT(strlen(a->opt.model), REQUEST_MODEL_MAX - 1);
        } else {
            answers_tell(s);
        }
        CHECK(!a || id_table_get(&s->answers, a->id) == a);
        CHECK(!a || body.max == 0); /* whose memory the answer owns */
        json_free(doc);
        bytes_deinit(&body);
        answers_end(s);
    }
}

/* Without memory nothing begins: the body stays. */
static void test_start_memory(void)
{
    serve *s = answers_begin();
    conn *c = answers_conn(s, 3, NULL);
    api_error e = {0};
    bytes body;
    answers_put(&body, "{body}");
    told_case("start without memory");
    alloc_fail_at(1);
    CHECK(!serve_start_answer(s, c, &MADE, &body, NULL, &e));
    alloc_fail_at(0);
    tell("%s, %d %s, %zu answers", bytes_str(&body), e.status, e.code, s->answers.len);
    bytes_deinit(&body);
    answers_end(s);
}

/* ---- the end ---- */

/* Each error that an answer may end with, as everybody who waits for it hears it. */
static void test_errors(void)
{
    static const struct {
        gen_finish finish;
        answer_timeout timeout;
        err_code error;
        double timeout_s;
        const char *text, *name;
    } ENDS[] = {
        {GEN_FINISH_CANCELLED, ANSWER_TOOK_TOO_LONG, ERR_OK, 0, "", ""},
        {GEN_FINISH_ERROR, ANSWER_WAITED_TOO_LONG, ERR_OK, 0, "", ""},
        {GEN_FINISH_ERROR, ANSWER_TOOK_TOO_LONG, ERR_OK, 0, "", ""},
        {GEN_FINISH_ERROR, ANSWER_TOOK_TOO_LONG, ERR_OK, 0.5, "", ""},
        {GEN_FINISH_ERROR, ANSWER_STALLED, ERR_OK, 0, "", ""},
        {GEN_FINISH_ERROR, ANSWER_SERVER_ENDS, ERR_OK, 0, "", ""},
        {GEN_FINISH_ERROR, ANSWER_IN_TIME, ERR_OK, 0, "inside", "inner"},
        {GEN_FINISH_ERROR, ANSWER_IN_TIME, ERR_CONTEXT, 0, "too long", "too_long"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        for (int with = 0; with < (i < 2 ? 5 : 1);
             with++) { /* plain, stream, reply, of a socket, with a key */
            serve *s = answers_begin();
            answer *a = answers_ask(s, with == 2 ? &LOGGED : &MADE, ANSWER_FINISHED);
            conn *c = answers_conn(s, 3, a);
            conn *other = answers_conn(s, 4, a);
            other->is_streaming = with == 1;
            a->opt.stream = with == 1;
            a->has_reply = with == 2;
            c->is_socket = a->is_socket = with == 3;
            a->finish = ENDS[i].finish;
            a->timeout = ENDS[i].timeout;
            a->error = ENDS[i].error;
            a->opt.timeout_s = ENDS[i].timeout_s;
            snprintf(a->error_text, sizeof a->error_text, "%s", ENDS[i].text);
            snprintf(a->error_name, sizeof a->error_name, "%s", ENDS[i].name);
            snprintf(a->idempotency_key, sizeof a->idempotency_key, "%s", with == 4 ? "k" : "");
            told_case("ends with an error %zu, %d", i, with);
            serve_end_answer(s, a);
            answers_tell(s);
            answers_end(s);
        }
    }
}

/* What an answer that is good leaves. */
static void test_good(void)
{
    enum {
        PLAIN,
        STREAM,
        REPLY,
        SPARE_STREAM,
        CHOICES,
        KEYED,
        KEYED_STREAM,
        SOCKET,
        GOES_ON,
        LOST,
        WRITE_FAILS,
        N
    };
    static const char *const NAMES[] = {"plain",
                                        "stream",
                                        "reply",
                                        "without an end",
                                        "choices",
                                        "with a key",
                                        "stream, key",
                                        "a socket",
                                        "its conversation first",
                                        "text was lost",
                                        "its last event was"};
    for (int with = 0; with < N; with++) {
        serve *s = answers_begin();
        answer *a = answers_ask(s,
                                with == SPARE_STREAM ? &SPARE
                                : with == REPLY      ? &LOGGED
                                                     : &MADE,
                                ANSWER_FINISHED);
        if (with == CHOICES) {
            answers_choice(a, answers_ask(s, &MADE, ANSWER_FINISHED));
        }
        conn *c = answers_conn(s, 3, a);
        answers_conn(s, 4, a)->is_streaming = true;
        a->opt.stream = with == STREAM || with == SPARE_STREAM || with == CHOICES || with == KEYED_STREAM ||
                        with == WRITE_FAILS;
        a->has_reply = with == REPLY;
        c->is_socket = a->is_socket = with == SOCKET;
        a->opt.n_choices = 1;
        extends = with == GOES_ON;
        a->has_lost = with == LOST;
        write_fails = with == WRITE_FAILS;
        snprintf(a->idempotency_key, sizeof a->idempotency_key, "%s",
                 with == KEYED || with == KEYED_STREAM ? "k" : "");
        a->first_token_ms = with == PLAIN ? 0.0 : 1250.0;
        a->info = (gen_request_info){.n_images = 2, .n_prompt_tokens = 30};
        a->n_tokens = 7;
        a->timings =
            (gen_timings){.cache_n = 3, .predicted_n = 8, .predicted_ms = with == STREAM ? 0.0 : 400.0};
        a->timings.rule = with == REPLY ? "by rule" : NULL;
        a->timings.route = with == REPLY ? GEN_ROUTE_MEDIA : GEN_ROUTE_TEXT;
        a->server = with == REPLY ? "far" : NULL;
        s->memory = ledger_create(1000);
        CHECK(s->memory != NULL);
        a->memory.ledger = s->memory;
        CHECK(ledger_try(&a->memory, 77));
        answers_put(&a->body, "{body}");
        bytes_append_str(&a->sse, with == STREAM || with == WRITE_FAILS ? "before;" : "");
        told_case("ends well: %s", NAMES[with]);
        serve_end_answer(s, a);
        CHECK_INT(ledger_get_status(s->memory).used, 0);
        answers_tell(s);
        answers_end(s);
        ledger_destroy(s->memory);
    }
}

/* What is kept of a conversation, and where. */
static void test_kept(void)
{
    for (int with = 0; with < 32; with++) {
        serve *s = answers_begin();
        answer *a = answers_ask(s, with & 16 ? &QUERY : &LOGGED, ANSWER_FINISHED);
        a->has_reply = with & 1;
        a->opt.store = with & 2;
        a->finish = with & 4 ? GEN_FINISH_CANCELLED : GEN_FINISH_STOP;
        answers_put(&a->opt.items, "in");
        if (with & 8) {
            a->n_kept_input = 1;
        }
        told_case("kept%s%s%s%s%s", with & 1 ? ", reply" : "", with & 2 ? ", stored" : "",
                  with & 4 ? ", cancelled" : "", with & 8 ? ", composed" : "",
                  with & 16 ? ", nothing to keep" : "");
        serve_end_answer(s, a);
        CHECK(!a->opt.items.data);
        answers_end(s);
    }
    for (int with = 0; with < 4; with++) {
        serve *s = answers_begin();
        answer *a = answers_ask(s, &LOGGED, ANSWER_FINISHED);
        a->has_reply = with & 1;
        if (with < 3) {
            answers_put(&a->opt.items, "in");
        }
        a->opt.items.failed = with < 2;
        a->finish = with == 2 ? GEN_FINISH_ERROR : GEN_FINISH_STOP;
        told_case("not kept, %d", with);
        serve_end_answer(s, a);
        answers_end(s);
    }
}

/* An answer that is over without having run. */
static void test_failed(void)
{
    enum {
        PLAIN,
        SOCKET,
        SOCKET_GONE,
        REPLY,
        REPLY_BACKGROUND,
        REPLY_EARLY,
        REPLY_FOLLOWED,
        REPLY_SOCKET,
        N
    };
    static const char *const NAMES[] = {"plain",
                                        "socket",
                                        "socket that is gone",
                                        "reply",
                                        "reply in the background",
                                        "reply that streams early",
                                        "reply that is followed",
                                        "reply of a socket"};
    for (int with = 0; with < N; with++) {
        for (int code = 0; code < 2; code++) {
            serve *s = answers_begin();
            answer *a = answers_ask(s, &LOGGED, ANSWER_READY);
            conn *c = with == SOCKET_GONE ? NULL : answers_conn(s, 3, with == REPLY ? NULL : a);
            a->is_socket = with == SOCKET || with == SOCKET_GONE || with == REPLY_SOCKET;
            a->has_reply = with >= REPLY;
            a->opt.background = with == REPLY_BACKGROUND;
            a->opt.stream = a->opt.return_progress = with == REPLY_EARLY;
            if (c) {
                c->is_socket = a->is_socket;
                c->answer = with == REPLY || with == REPLY_EARLY || with == REPLY_BACKGROUND ? 0 : c->answer;
                c->is_streaming = with == REPLY_FOLLOWED;
            }
            a->request = (gen_request *)(things + 4);
            a->remote = (upstream_request *)(things + 5);
            snprintf(a->idempotency_key, sizeof a->idempotency_key, "k");
            snprintf(a->opt.event_id, sizeof a->opt.event_id, "ev");
            snprintf(a->opt.stream_id, sizeof a->opt.stream_id, "lane");
            answers_put(&a->opt.items, "items");
            told_case("fails %d: %s", code, NAMES[with]);
            const err_detail d = {.text = "why"};
            serve_fail_answer_from(s, a, code ? ERR_CANCELLED : ERR_BUSY, &d);
            answers_tell(s);
            answers_end(s);
        }
    }
}

static void test_whole(void)
{
    serve *s = answers_begin();
    answer *a = answers_ask(s, &MADE, ANSWER_FINISHED);
    conn *c = answers_conn(s, 3, a);
    told_case("the whole, twice");
    serve_send_whole(s, c, a);
    bytes_append_char(&a->sse, '!');
    c->answer = a->id;
    serve_send_whole(s, c, a);
    answers_end(s);
}

/* ---- streams ---- */

static void test_streams(void)
{
    static const dialect *const DIALECTS[] = {&MADE, &LINES, &LOGGED, &MUTE};
    for (size_t i = 0; i < ARRAY_LEN(DIALECTS); i++) {
        for (int with = 0; with < 4; with++) {
            serve *s = answers_begin();
            answer *a = answers_ask(s, DIALECTS[i], ANSWER_RUNNING),
                   *b = answers_ask(s, DIALECTS[i], ANSWER_RUNNING);
            answers_choice(a, b);
            a->has_reply = DIALECTS[i] == &LOGGED;
            write_fails = with == 1;
            a->has_lost = with == 3;
            bytes_append_str(&a->sse, "was;");
            conn *c = answers_conn(s, 3, a), *d = answers_conn(s, 4, a);
            answers_conn(s, 5, b);
            c->sse_pos = d->sse_pos = 99;
            CHECK(serve_add_reader(d, 1234, 7));
            told_case("streams of %s, %d", DIALECTS[i]->name, with);
            if (with == 2) {
                b->dialect = &MADE;
                serve_begin_follow(s, d, a, 8);
            } else {
                serve_begin_streams(s, a);
            }
            answers_tell(s);
            for (uint64_t id = 3; id <= 5; id++) {
                const conn *x = id_table_get(&s->conns, id);
                tell("connection %d: answer %d, at %zu, %d readers, first of %d at %d%s%s, wrote at %g",
                     (int)id, (int)x->answer, x->sse_pos, x->n_readers, (int)x->readers[0].answer,
                     (int)x->readers[0].next_seq, x->follows_log ? ", log" : "",
                     x->is_streaming ? ", streams" : "", x->last_write_ms);
            }
            answers_end(s);
        }
    }
}

int main(void)
{
    test_found();
    test_new();
    test_start();
    test_start_memory();
    test_errors();
    test_good();
    test_kept();
    test_failed();
    test_whole();
    test_streams();
    recorded_check("server/service/recorded/answers.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
