/* serve_messages: what becomes of each message that comes over a WebSocket; recorded. */
#include "tests/server/service/made_socket.h"

static void test_create(void)
{
    static const char *const MESSAGES[] = {
        "{\"type\":\"response.create\"}",
        "{\"type\":\"response.create\",\"event_id\":\"ev\",\"stream_id\":\"st\",\"response_id\":\"re\"}",
        "{\"type\":\"response.create\",\"previous_response_id\":\"resp_1\"}",
        "{\"type\":\"response.create\",\"previous_response_id\":\"resp_2\"}",
        "{\"type\":\"response.create\",\"previous_response_id\":\"\"}",
    };
    for (int with = 0; with < 4; with++) {
        const bool starts = with & 1, has_chain = with & 2;
        serve *s = begin(has_chain ? "a response behind another" : "a response");
        conn *c = socket_of(s, 3, false);
        snprintf(c->chain_end, sizeof c->chain_end, "%s", has_chain ? "resp_1" : "");
        for (size_t i = 0; i < ARRAY_LEN(MESSAGES); i++) {
            answer *a = answer_of(s, c, 0);
            started = starts ? a : NULL;
            a->conn = 9;
            a->goes_on = starts && !has_chain;
            message(s, c, MESSAGES[i]);
            tell("%s", a->goes_on ? "it goes on" : "it begins");
        }
        made_end(s);
    }
    for (int with = 0; with < 4; with++) {
        serve *s = begin("messages that are small, and one that is not");
        conn *c = socket_of(s, 3, true);
        started = with & 1 ? answer_of(s, c, 0) : NULL;
        snprintf(c->chain_end, sizeof c->chain_end, "%s", with & 2 ? "resp_1" : "");
        for (int more = 0; more < 2; more++) {
            bytes m = bytes_empty(1 << 20);
            bytes_append_str(&m, "{\"type\":\"response.cancel\",\"stream_id\":\"x\"");
            while (m.len < (size_t)(16384 - 1 + more)) {
                bytes_append_char(&m, ' ');
            }
            bytes_append_char(&m, '}');
            serve_on_message(s, 3, &m);
            bytes_deinit(&m);
            pull_all(s, c);
        }
        tell("%s", started && started->goes_on ? "it goes on" : "it begins");
        made_end(s);
    }
    serve *s = begin("so many at once");
    conn *c = socket_of(s, 3, false), *other = socket_of(s, 4, false);
    for (int i = 0; i < SERVE_MAX_UNFINISHED; i++) {
        answer_of(s, other, 0)->state = ANSWER_HELD;
        answer_of(s, c, 0)->state = ANSWER_FINISHED;
        if (i > 0) {
            answer_of(s, c, 0)->state = (answer_state)(i % ANSWER_FINISHED);
        }
    }
    message(s, c, MESSAGES[1]);
    answer *last = answer_of(s, c, 0);
    last->state = ANSWER_HELD;
    message(s, c, MESSAGES[1]);
    message(s, c, "{\"type\":\"response.create\"}");
    made_end(s);
}

static void test_count(void)
{
    for (int with = 0; with < 4; with++) {
        serve *s = begin("how many tokens");
        conn *c = socket_of(s, 3, true);
        started = with & 1 ? answer_of(s, c, 0) : NULL;
        s->info = with & 2 ? &info : NULL;
        message(s, c,
                "{\"type\":\"input_tokens.count\",\"event_id\":\"ev\",\"stream_id\":\"st\",\"response_id\":"
                "\"re\"}");
        bytes reply = bytes_empty(100);
        bytes_append_str(&reply, "{\"input_tokens\":7}");
        serve_socket_count(s, c, with & 1 ? "ev" : "", &reply);
        pull_all(s, c);
        bytes_deinit(&reply);
        made_end(s);
    }
}

/* Which answer a message means. */
static void test_targets(void)
{
    static const char *const MESSAGES[] = {
        "{\"type\":\"response.cancel\",\"event_id\":\"ev\"}",
        "{\"type\":\"response.cancel\",\"stream_id\":\"a\"}",
        "{\"type\":\"response.cancel\",\"stream_id\":\"b\"}",
        "{\"type\":\"response.cancel\",\"response_id\":\"resp_1\"}",
        "{\"type\":\"response.cancel\",\"response_id\":\"resp_1\",\"stream_id\":\"b\",\"event_id\":\"ev\"}",
        "{\"type\":\"response.control\",\"action\":\"reasoning_end\"}",
        "{\"type\":\"response.control\",\"response_id\":\"resp_1\",\"stream_id\":\"b\",\"event_id\":\"ev\"}",
    };
    static const char *const WHAT[] = {
        "no answer",
        "one",
        "one that is over",
        "one of another socket",
        "a question",
        "two of a lane, the later first",
        "two of a lane",
        "two lanes",
        "one that has no reply yet",
        "one over, one that runs",
    };
    for (size_t i = 0; i < ARRAY_LEN(WHAT); i++) {
        for (int is_found = 0; is_found < 2; is_found++) {
            serve *s = begin(WHAT[i]);
            conn *c = socket_of(s, 3, true), *other = socket_of(s, 4, true);
            answer *a = i > 0 ? answer_of(s, i == 3 ? other : c, 0) : NULL;
            answer *b = i > 4 && i != 8 ? answer_of(s, c, 0) : NULL;
            if (a) {
                snprintf(a->opt.stream_id, sizeof a->opt.stream_id, "a");
                a->state = i == 2 || i == 9 ? ANSWER_FINISHED : ANSWER_RUNNING;
                a->dialect = i == 4 ? &dialect_queries[QUERY_COUNT_RESPONSES] : a->dialect;
                a->has_reply = i != 8;
                a->order = i == 5 ? 9 : i == 6 ? 8 : a->order;
            }
            if (b) {
                snprintf(b->opt.stream_id, sizeof b->opt.stream_id, "%s", i == 7 ? "b" : "a");
                b->order = i == 5 ? 8 : i == 6 ? 9 : b->order;
            }
            found = is_found ? a : NULL;
            for (size_t k = 0; k < ARRAY_LEN(MESSAGES); k++) {
                controlled = k < 6 ? ERR_OK : i == 1 ? ERR_IO : ERR_INVALID;
                message(s, c, MESSAGES[k]);
            }
            if (a) {
                a->has_reply = true;
            }
            made_end(s);
        }
    }
}

static void test_resume(void)
{
    static const char *const AFTER[] = {"",
                                        ",\"starting_after\":null",
                                        ",\"starting_after\":-1",
                                        ",\"starting_after\":0",
                                        ",\"starting_after\":2",
                                        ",\"starting_after\":3",
                                        ",\"starting_after\":-2",
                                        ",\"starting_after\":\"1\""};
    for (size_t i = 0; i < ARRAY_LEN(AFTER); i++) {
        char text[256];
        serve *s = begin("a response is read again");
        conn *c = socket_of(s, 3, true);
        found = answer_of(s, c, 3);
        snprintf(
            text, sizeof text,
            "{\"type\":\"response.resume\",\"event_id\":\"ev\",\"stream_id\":\"st\",\"response_id\":\"resp_"
            "1\"%s}",
            AFTER[i]);
        message(s, c, text);
        tell("%d readers, %d times", c->n_readers, (int)s->metrics.ws_resumes);
        made_end(s);
    }
    serve *s = begin("of no name, and one that is not known");
    conn *c = socket_of(s, 3, true);
    message(s, c, "{\"type\":\"response.resume\",\"event_id\":\"ev\",\"stream_id\":\"st\"}");
    message(s, c, "{\"type\":\"response.resume\",\"response_id\":\"resp_1\"}");
    made_end(s);
    s = begin("too many are read");
    c = socket_of(s, 3, true);
    found = answer_of(s, c, 3);
    for (int i = 0; i < SERVE_MAX_READERS; i++) {
        CHECK(serve_add_reader(c, (uint64_t)i + 10, 0));
    }
    message(s, c, "{\"type\":\"response.resume\",\"event_id\":\"ev\",\"response_id\":\"resp_1\"}");
    CHECK_INT(s->metrics.ws_resumes, 0);
    made_end(s);
}

/* Wherever in their tables a socket and its answer stand. */
static void test_places(void)
{
    static const uint64_t IDS[] = {62, 17}; /* they come to the first and the last place of a table */
    for (size_t k = 0; k < ARRAY_LEN(IDS); k++) {
        serve *s = begin("a place");
        s->next_answer = IDS[k] - 1;
        conn *c = socket_of(s, IDS[k], true);
        answer_of(s, c, 0);
        serve_status_changed(s);
        message(s, c, "{\"type\":\"response.cancel\"}");
        for (int i = 1; i < SERVE_MAX_UNFINISHED; i++) {
            answer_of(s, c, 0);
        }
        message(s, c, "{\"type\":\"response.create\"}");
        made_end(s);
    }
}

/* Every type, for a plain socket and for one that speaks our protocol. */
static void test_messages(void)
{
    static const char *const MESSAGES[] = {
        "{",
        "[]",
        "{\"type\":7}",
        "{\"event_id\":\"ev\",\"stream_id\":\"st\",\"response_id\":\"re\"}",
        "{\"type\":\"response.create\"}",
        "{\"type\":\"response.cancel\"}",
        "{\"type\":\"response.control\"}",
        "{\"type\":\"response.resume\"}",
        "{\"type\":\"input_tokens.count\"}",
        "{\"type\":\"upload.create\",\"event_id\":\"ev\",\"upload_id\":\"up\"}",
        "{\"type\":\"later\"}",
        "{\"type\":\"ping\"}",
        "{\"type\":\"ping\",\"event_id\":\"ev\",\"t\":17}",
        "{\"type\":\"ping\",\"t\":\"a \\\"b\\\"\"}",
        "{\"type\":\"ping\",\"t\":true}",
        "{\"type\":\"ping\",\"t\":null}",
        "{\"type\":\"ping\",\"t\":{\"a\":1}}",
        "{\"type\":\"ping\",\"t\":[1]}",
    };
    for (int is_extended = 0; is_extended < 2; is_extended++) {
        serve *s = begin(is_extended ? "each type" : "each type, of a plain socket");
        conn *c = socket_of(s, 3, is_extended);
        for (size_t i = 0; i < ARRAY_LEN(MESSAGES); i++) {
            message(s, c, MESSAGES[i]);
        }
        bytes m = bytes_empty(100);
        bytes_append_str(&m, "{");
        serve_on_message(s, 9, &m); /* a socket that is gone */
        bytes_deinit(&m);
        made_end(s);
    }
}

int main(void)
{
    test_create();
    test_count();
    test_targets();
    test_resume();
    test_places();
    test_messages();
    recorded_check("server/service/recorded/messages.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
