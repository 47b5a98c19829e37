/* serve_answers: what becomes of an answer that runs: events, messages, clients that go, time that passes. All that is asked of the
 * neighbours and of the dialect is written down, and so is what the answer is then. */
#include "tests/server/service/answers_told.h"

/* ---- events ---- */

static void send_event(serve *s, uint64_t id, gen_event event)
{
    event.request_id = id;
    loop_message m = {.type = LOOP_EVENT, .id = 77, .event = &event};
    serve_handle_message(s, &m);
}

typedef struct taken {
    const char *name;
    const dialect *dialect;
    gen_event_type type;
    bool stream, reply, stops, had_stop, loses, last, write_fails, items;
    double flushed, stats;
    const char *text;
    gen_finish finish;
    answer_timeout late;
    bool round;
} taken;

static const taken TAKEN[] = {
    {"first tokens", &MADE, GEN_TOKENS, .text = "a"},
    {"first tokens of a stream", &MADE, GEN_TOKENS, .stream = true, .text = "a"},
    {"first tokens of a reply", &LOGGED, GEN_TOKENS, .reply = true, .stats = 4501, .text = "a"},
    {"nothing new", &MADE, GEN_TOKENS, .stream = true},
    {"tokens, too soon", &MADE, GEN_TOKENS, .stream = true, .flushed = 5000 - SERVE_FLUSH_MS + 1,
     .text = "a"},
    {"tokens, after a while", &MADE, GEN_TOKENS, .stream = true, .flushed = 5000 - SERVE_FLUSH_MS,
     .text = "a"},
    {"text, soon", &MADE, GEN_TEXT, .stream = true, .flushed = 4999, .text = "a"},
    {"the last, soon", &MADE, GEN_DONE, .stream = true, .last = true, .flushed = 4999, .text = "a"},
    {"stats of a stream", &MADE, GEN_TEXT, .stream = true, .stats = 1000},
    {"stats, at last", &LOGGED, GEN_TEXT, .reply = true, .stats = 5000 - SERVE_STATS_MS},
    {"stats, too soon", &LOGGED, GEN_TEXT, .reply = true, .stats = 5000 - SERVE_STATS_MS + 1},
    {"stats at the end", &LOGGED, GEN_DONE, .reply = true, .last = true, .stats = 1000},
    {"a stop string", &MADE, GEN_TEXT, .stream = true, .stops = true, .text = "a"},
    {"a stop string before", &MADE, GEN_TEXT, .stream = true, .stops = true, .had_stop = true, .text = "a"},
    {"a stop string at the end", &MADE, GEN_DONE, .stream = true, .stops = true, .last = true},
    {"text is lost", &MADE, GEN_TEXT, .stream = true, .loses = true, .text = "a"},
    {"text is lost at the end", &MADE, GEN_DONE, .loses = true, .last = true},
    {"a delta is lost", &MADE, GEN_TEXT, .stream = true, .write_fails = true, .text = "a"},
    {"a stream that is kept", &MADE, GEN_TEXT, .stream = true, .items = true, .text = "a"},
    {"a stream that is needed whole", &WHOLE, GEN_TEXT, .stream = true, .text = "a"},
    {"without deltas", &MUTE, GEN_TEXT, .stream = true, .text = "a"},
    {"the end, another round", &MADE, GEN_DONE, .last = true, .round = true},
    {"the end, cancelled", &MADE, GEN_DONE, .stream = true, .last = true, .finish = GEN_FINISH_CANCELLED},
    {"the end, too late", &MADE, GEN_DONE, .stream = true, .last = true, .finish = GEN_FINISH_CANCELLED,
     .late = ANSWER_TOOK_TOO_LONG},
    {"the end, late, yet good", &MADE, GEN_DONE, .stream = true, .last = true, .finish = GEN_FINISH_LENGTH,
     .late = ANSWER_TOOK_TOO_LONG},
};

static void test_events(void)
{
    for (size_t i = 0; i < ARRAY_LEN(TAKEN); i++) {
        const taken *t = &TAKEN[i];
        serve *s = answers_begin();
        answer *a = answers_ask(s, t->dialect, ANSWER_RUNNING);
        answers_conn(s, 3, a)->is_streaming = t->stream;
        a->is_begun = true;
        a->opt.stream = t->stream;
        a->has_reply = t->reply;
        a->stop_found = t->had_stop;
        a->last_flush_ms = t->flushed;
        a->last_stats_ms = t->stats > 0.0 ? t->stats : 4900.0;
        a->timeout = t->late;
        if (t->items) {
            answers_put(&a->opt.items, "in");
        }
        event_stops = t->stops;
        event_loses = t->loses;
        event_is_last = t->last;
        event_finish = t->finish;
        event_text = t->text;
        write_fails = t->write_fails;
        begins_round = t->round;
        told_case("event: %s", t->name);
        send_event(s, a->id, (gen_event){.type = t->type, .timings = {.cache_n = 6}});
        answers_tell(s);
        answers_end(s);
    }
}

/* Logprobs of an answer that is not streamed go behind each other. */
static void test_logprobs(void)
{
    static const char *const BEFORE[] = {"", "{1}"}, *const NEW[] = {"", "{2}"};
    for (int with = 0; with < 6; with++) {
        serve *s = answers_begin();
        answer *a = answers_ask(s, &MADE, ANSWER_RUNNING);
        a->is_begun = true;
        bytes_append_str(&a->whole_logprobs, BEFORE[with & 1]);
        bytes_append_str(&a->logprobs, NEW[with >> 1 & 1]);
        a->logprobs.failed = with == 4;
        a->whole_logprobs.failed = with == 5;
        a->whole.failed = with == 0;
        event_text = "a";
        told_case("logprobs %d", with);
        send_event(s, a->id, (gen_event){.type = GEN_TEXT});
        told_answer(a);
        answers_end(s);
    }
}

/* What comes before the engine has begun, behind the end, or is no text. */
static void test_odd_events(void)
{
    static const struct {
        gen_event_type type;
        gen_finish finish;
        answer_timeout late;
        bool is_begun, is_choice;
        answer_state state;
    } CASES[] = {
        {GEN_DONE, GEN_FINISH_ERROR, ANSWER_IN_TIME, false, false, ANSWER_RUNNING},
        {GEN_DONE, GEN_FINISH_CANCELLED, ANSWER_IN_TIME, false, false, ANSWER_RUNNING},
        {GEN_DONE, GEN_FINISH_CANCELLED, ANSWER_TOOK_TOO_LONG, false, false, ANSWER_RUNNING},
        {GEN_DONE, GEN_FINISH_CANCELLED, ANSWER_IN_TIME, false, true, ANSWER_RUNNING},
        {GEN_DONE, GEN_FINISH_STOP, ANSWER_IN_TIME, false, false, ANSWER_RUNNING},
        {GEN_TEXT, GEN_FINISH_ERROR, ANSWER_IN_TIME, false, false, ANSWER_RUNNING},
        {GEN_DONE, GEN_FINISH_ERROR, ANSWER_IN_TIME, true, false, ANSWER_RUNNING},
        {GEN_DONE, GEN_FINISH_STOP, ANSWER_IN_TIME, true, false, ANSWER_FINISHED},
        {GEN_TEXT, GEN_FINISH_STOP, ANSWER_IN_TIME, true, false, ANSWER_FINISHED},
        {GEN_TEXT, GEN_FINISH_STOP, ANSWER_IN_TIME, true, false, ANSWER_READY},
        {GEN_PROMPT, GEN_FINISH_STOP, ANSWER_IN_TIME, true, true, ANSWER_RUNNING},
        {GEN_PROGRESS, GEN_FINISH_STOP, ANSWER_IN_TIME, true, true, ANSWER_RUNNING},
        {GEN_PROGRESS, GEN_FINISH_STOP, ANSWER_IN_TIME, true, false, ANSWER_RUNNING},
        {GEN_PROGRESS, GEN_FINISH_STOP, ANSWER_TOOK_TOO_LONG, true, false, ANSWER_RUNNING},
        {GEN_PROGRESS, GEN_FINISH_STOP, ANSWER_IN_TIME, true, false,
         ANSWER_RUNNING}, /* text was lost before */
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = answers_begin();
        answer *first = answers_ask(s, &MADE, ANSWER_RUNNING),
               *a = CASES[i].is_choice ? answers_ask(s, &MADE, ANSWER_RUNNING) : first;
        if (CASES[i].is_choice) {
            answers_choice(first, a);
        }
        first->n_open = 2;
        first->is_begun = CASES[i].is_begun;
        first->timeout = CASES[i].late;
        first->has_lost = i == ARRAY_LEN(CASES) - 1;
        a->state = CASES[i].state;
        answers_conn(s, 3, first);
        event_is_last = CASES[i].type == GEN_DONE;
        event_finish = CASES[i].finish;
        write_fails = CASES[i].late != ANSWER_IN_TIME && CASES[i].type == GEN_PROGRESS;
        told_case("odd event %zu", i);
        send_event(s, a->id,
                   (gen_event){.type = CASES[i].type,
                               .finish = CASES[i].finish,
                               .error = ERR_UPSTREAM,
                               .message = "far away",
                               .error_name = "far",
                               .n_tokens = 9});
        answers_tell(s);
        answers_end(s);
    }
    serve *s = answers_begin();
    told_case("an event of nobody");
    send_event(s, 9, (gen_event){.type = GEN_TEXT});
    send_event(s, 9, (gen_event){.type = GEN_DONE});
    answers_end(s);
}

/* The last event of each of several choices; one that fails fails all. */
static void test_choices(void)
{
    enum { GOOD, STREAM, FAILS, CANCELLED, FIRST_FAILS, LATE, LOST, WRITE_FAILS, FIRST_LOST, N };
    for (int with = 0; with < N; with++) {
        serve *s = answers_begin();
        answer *first = answers_ask(s, &MADE, ANSWER_RUNNING), *a = answers_ask(s, &MADE, ANSWER_RUNNING);
        answers_conn(s, 3, first)->is_streaming = true;
        answers_choice(first, a);
        first->n_open = 2;
        first->is_begun = true;
        first->opt.n_choices = 2;
        first->opt.stream = a->opt.stream = with != GOOD;
        event_is_last = true;
        told_case("choices %d", with);
        event_finish = with == FAILS || with == FIRST_FAILS ? GEN_FINISH_ERROR
                       : with == CANCELLED                  ? GEN_FINISH_CANCELLED
                                                            : GEN_FINISH_LENGTH;
        a->timeout = with == LATE ? ANSWER_STALLED : ANSWER_IN_TIME;
        first->timeout = with == LATE ? ANSWER_TOOK_TOO_LONG : ANSWER_IN_TIME;
        a->has_lost = with == LOST;
        first->has_lost = with == FIRST_LOST;
        write_fails = with == WRITE_FAILS;
        a->error = ERR_UPSTREAM;
        snprintf(a->error_text, sizeof a->error_text, "text of it");
        snprintf(a->error_name, sizeof a->error_name, "name_of_it");
        event_finish = with == LATE ? GEN_FINISH_ERROR : event_finish;
        now_ms += 500.0;
        send_event(s, with == FIRST_FAILS ? first->id : a->id, (gen_event){.type = GEN_DONE});
        answers_tell(s);
        if (first->state == ANSWER_RUNNING) {
            tell("the other");
            send_event(s, first->id, (gen_event){.type = GEN_DONE});
            answers_tell(s);
        }
        answers_end(s);
    }
}

/* ---- items ---- */

static void test_items(void)
{
    enum { GOOD, ITEM, PIECES, WRITE, BEFORE, WHOLE_TEXT, N }; /* what is lost */
    for (int with = 0; with < 8 * N; with++) {
        const int lost = with >> 3;
        serve *s = answers_begin();
        answer *a = answers_ask(s, with & 2 ? &LOGGED : &MADE, ANSWER_RUNNING);
        bytes item;
        answers_put(&item, "{item}");
        item.failed = lost == ITEM;
        a->has_reply = with & 2;
        a->opt.stream = with & 4;
        a->pieces.failed = lost == PIECES;
        a->whole.failed = lost == WHOLE_TEXT;
        a->has_lost = lost == BEFORE;
        write_fails = lost == WRITE;
        answers_conn(s, 3, a);
        told_case("item%s%s%s %d", with & 1 ? ", over" : "", with & 2 ? ", reply" : "",
                  with & 4 ? ", stream" : "", lost);
        serve_emit_item(s, a, &item, with & 1);
        told_answer(a);
        bytes_deinit(&item);
        answers_end(s);
    }
}

/* ---- messages ---- */

static void test_messages(void)
{
    static const loop_message_type TYPES[] = {LOOP_ACCEPTED,    LOOP_PROGRESS, LOOP_PREPARED,
                                              LOOP_OTHER_MODEL, LOOP_TOOLS,    LOOP_RESULT,
                                              LOOP_REPLIED,     LOOP_REFUSED,  LOOP_FACTS};
    static mcp_result result = {.place = 6};
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        for (int with = 0; with < 7;
             with++) { /* HTTP, socket, a later round, ended, gone, a query of a socket, a reply */
            serve *s = answers_begin();
            answer *a = answers_ask(s,
                                    with == 5   ? &QUERY
                                    : with == 6 ? &LOGGED
                                                : &MADE,
                                    with == 3 ? ANSWER_FINISHED : ANSWER_PREPARING);
            loop_message *m = loop_message_create(TYPES[i], with == 4 ? 9 : a->id);
            conn *c = answers_conn(s, 3, a);
            c->is_socket = a->is_socket = with == 1 || with == 5;
            a->opt.background = with == 6; /* so that it stays */
            m->options.background = true;
            a->tools.stage = with == 2 ? TOOLS_PREPARING : TOOLS_IDLE;
            a->has_reply = with == 6;
            a->phase_start_ms = 10.0;
            m->processed = 7;
            m->total = 9;
            m->phase = GEN_PHASE_VISION;
            m->code = ERR_LIMIT;
            m->result = TYPES[i] == LOOP_RESULT ? &result : NULL;
            m->request = TYPES[i] == LOOP_PREPARED && with == 3 ? (gen_request *)(things + 4) : NULL;
            snprintf(m->options.event_id, sizeof m->options.event_id, "said");
            snprintf(a->opt.event_id, sizeof a->opt.event_id, "was");
            a->opt.fields = strdup("was");
            m->options.fields = strdup("said");
            api_error_set(&m->error, 413, "too_much", NULL, "no");
            told_case("message %d, %d", TYPES[i], with);
            serve_handle_message(s, m);
            answers_tell(s);
            m->result = NULL;
            m->request = NULL;
            loop_message_free(m);
            answers_end(s);
        }
    }
    for (int with = 0; with < 3; with++) {
        serve *s = answers_begin();
        answer *a = answers_ask(s, &MADE, ANSWER_PREPARING);
        loop_message m = {.type = LOOP_PROGRESS, .id = a->id, .phase = GEN_PHASE_VISION};
        a->phase = with == 0 ? GEN_PHASE_MEDIA : GEN_PHASE_VISION;
        a->phase_start_ms = with == 1 ? 0.0 : 10.0;
        told_case("progress %d", with);
        serve_handle_message(s, &m);
        told_answer(a);
        answers_end(s);
    }
}

/* ---- cancelling ---- */

static void test_cancel(void)
{
    for (int state = ANSWER_HELD; state <= ANSWER_FINISHED; state++) {
        for (int stage = TOOLS_IDLE; stage <= TOOLS_PREPARING; stage++) {
            serve *s = answers_begin();
            answer *a = answers_ask(s, &MADE, (answer_state)state);
            answers_conn(s, 3, a);
            a->tools.stage = (tool_stage)stage;
            s->engine = stage == TOOLS_CALLING ? NULL : s->engine;
            told_case("cancel %d, %d", state, stage);
            serve_cancel_answer(s, a);
            answers_tell(s);
            answers_end(s);
        }
    }
    serve *s = answers_begin();
    told_case("stop one that is not there");
    serve_stop_answer(s, 9);
    answers_end(s);
}

/* A client that is gone: what of its answers goes on, and what ends. */
static void test_abandoned(void)
{
    enum {
        REPLY = 1,
        KEYED = 2,
        ACCEPTED = 4,
        KEEPS = 8,
        CANCELS = 16,
        FOLLOWED = 32,
        FINISHES = 64,
        CANCELLED = 128
    };
    static const int CASES[] = {0,
                                REPLY,
                                REPLY | KEEPS,
                                KEYED | KEEPS,
                                KEYED | ACCEPTED | KEEPS,
                                ACCEPTED | KEEPS,
                                CANCELS,
                                FOLLOWED,
                                FOLLOWED | CANCELS,
                                FINISHES,
                                FINISHES | CANCELS,
                                FINISHES | CANCELLED,
                                REPLY | KEEPS | FOLLOWED | CANCELS};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        for (int state = ANSWER_PREPARING; state <= ANSWER_FINISHED; state++) {
            const int with = CASES[i];
            serve *s = answers_begin();
            answer *a = answers_ask(s, &LOGGED, (answer_state)state),
                   *b = answers_ask(s, &MADE, ANSWER_PREPARING);
            b->conn = 9; /* of another client */
            a->has_reply = with & REPLY;
            a->is_accepted = with & ACCEPTED;
            a->opt.keep_on_disconnect = with & KEEPS;
            a->opt.cancel_on_disconnect = with & CANCELS;
            a->cancelled = with & CANCELLED;
            made_options.finish_on_disconnect = with & FINISHES;
            snprintf(a->idempotency_key, sizeof a->idempotency_key, "%s", with & KEYED ? "k" : "");
            if (with & FOLLOWED) {
                answers_conn(s, 8, a);
            }
            told_case("abandoned %d%s%s%s%s%s%s%s%s", state, with & REPLY ? ", reply" : "",
                      with & KEYED ? ", key" : "", with & ACCEPTED ? ", accepted" : "",
                      with & KEEPS ? ", keeps" : "", with & CANCELS ? ", ends with its client" : "",
                      with & FOLLOWED ? ", followed" : "", with & FINISHES ? ", finishes" : "",
                      with & CANCELLED ? ", cancelled" : "");
            serve_abandon_answers(s, 3);
            answers_tell(s);
            answers_end(s);
        }
    }
    serve *s = answers_begin(); /* all of one client, whatever moves in the table meanwhile */
    static const uint64_t IDS[] = {1, 2, 3, 4, 5, 6, 7, 8, LAST_PLACE, 18, FIRST_PLACE};
    for (size_t i = 0; i < ARRAY_LEN(IDS); i++) {
        s->next_answer = IDS[i] - 1;
        answers_ask(s, i == 4 ? &QUERY : &MADE, i % 3 ? ANSWER_RUNNING : ANSWER_READY)->conn =
            i % 4 != 1 ? 3 : 4;
    }
    told_places(&s->answers);
    made_options.finish_on_disconnect = true;
    answers_conn(s, 8, NULL)->answer = 3;
    ((answer *)id_table_get(&s->answers, 3))->cancelled = true;
    for (size_t i = 5; i < ARRAY_LEN(IDS); i++) {
        ((answer *)id_table_get(&s->answers, IDS[i]))->opt.cancel_on_disconnect = true;
    }
    told_case("abandoned, many");
    serve_abandon_answers(s, 3);
    answers_tell(s);
    answers_end(s);
}

/* ---- time ---- */

static void test_time(void)
{
    static const struct {
        double submitted, created, asked_s, first;
        bool started, is_choice, is_late;
    } CASES[] = {
        {4000, 4000, 0, 0, false, false, false},   {3999, 4000, 0, 0, false, false, false},
        {3999, 4000, 0, 0, true, false, false},    {3999, 4000, 0, 4500, false, false, false},
        {5000, 3000, 0, 0, false, false, false},   {5000, 2999, 0, 0, false, false, false},
        {5000, 4000, 1, 0, false, false, false},   {5000, 3999, 1, 0, false, false, false},
        {5000, 3000, 2.5, 0, false, false, false}, {5000, 2999, 2.5, 0, false, false, false},
        {1, 1, 0, 0, false, true, false},          {1, 1, 0, 0, false, false, true},
        {1, 1, 0, 0, false, false, false},         {5000, 4999, -1, 0, false, false, false},
        {5000, 3000, 2, 0, false, false, false},   {5000, 2999, 2, 0, false, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = answers_begin();
        answer *a = answers_ask(s, &MADE, ANSWER_RUNNING);
        made_options.queue_timeout_s = 1;
        made_options.request_timeout_s = 2;
        a->submitted_ms = CASES[i].submitted;
        a->created_ms = CASES[i].created;
        a->opt.timeout_s = CASES[i].asked_s;
        a->first_token_ms = CASES[i].first;
        a->started = CASES[i].started;
        a->first = CASES[i].is_choice ? a : NULL;
        a->timeout = CASES[i].is_late ? ANSWER_STALLED : ANSWER_IN_TIME;
        told_case("time %zu", i);
        tell("wait %d", serve_tick_answers(s, now_ms));
        told_answer(a);
        a->first = NULL;
        answers_end(s);
    }
}

static void test_tick(void)
{
    static const double LEFT[] = {0.0, 0.5, 0.6, 1.0, 20.0, -5.0, 33.0, 249.0, 250.0, 251.0};
    for (size_t i = 0; i < ARRAY_LEN(LEFT); i++) {
        serve *s = answers_begin();
        for (int k = 0; k < 3; k++) { /* one has nothing, one does not run */
            answer *a = answers_ask(s, &MADE, k == 2 ? ANSWER_READY : ANSWER_RUNNING);
            a->created_ms = a->submitted_ms = now_ms;
            a->last_flush_ms = now_ms + LEFT[i] - SERVE_FLUSH_MS;
            if (k != 1) {
                reply_pieces_add(&a->pieces, REPLY_CONTENT, "a", 1);
            }
        }
        told_case("tick, %g ms left", LEFT[i]);
        tell("wait %d", serve_tick_answers(s, now_ms));
        answers_tell(s);
        answers_end(s);
    }
    serve *s = answers_begin();
    for (int i = 0; i < 2; i++) { /* wherever they are found */
        s->next_answer = (i ? FIRST_PLACE : LAST_PLACE) - 1;
        answer *a = answers_ask(s, &MADE, ANSWER_RUNNING);
        a->created_ms = a->submitted_ms = now_ms;
        reply_pieces_add(&a->pieces, REPLY_CONTENT, "a", 1);
    }
    told_places(&s->answers);
    told_case("tick, at the ends of the table");
    tell("wait %d", serve_tick_answers(s, now_ms));
    answers_end(s);
    /* what waits for a place in the history, or ends between two rounds */
    for (int with = 0; with < 7; with++) {
        s = answers_begin();
        for (int k = 0; k < 3; k++) {
            answer *a = answers_ask(s, &MADE, ANSWER_RUNNING);
            a->created_ms = a->submitted_ms = now_ms;
            a->talk_stage = (with < 2 || with == 6) && k < 2 ? TALK_WAITING : TALK_IDLE;
            a->tools.stage = with == 3 || with == 4 ? TOOLS_CALLING : TOOLS_IDLE;
            a->tools.is_stopped = (with == 4 || with == 5) && k < 2;
        }
        ended = with == 1 ? 1 : 0;
        extends = with == 0;
        drops = with == 6;
        told_case("tick, %d", with);
        tell("wait %d", serve_tick_answers(s, now_ms));
        answers_tell(s);
        answers_end(s);
    }
}

int main(void)
{
    test_events();
    test_logprobs();
    test_odd_events();
    test_choices();
    test_items();
    test_messages();
    test_cancel();
    test_abandoned();
    test_time();
    test_tick();
    recorded_check("server/service/recorded/events.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
