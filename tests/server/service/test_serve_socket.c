/* serve_socket: what a WebSocket is told, and in which order: messages, the server's state, answers that are read; recorded. */
#include "tests/server/service/made_socket.h"

/* ---- messages of the server itself ---- */

static void queue(serve *s, conn *c, const char *text)
{
    bytes b = bytes_empty(1 << 20);
    bytes_append_str(&b, text);
    serve_queue_frame(s, c, &b);
    bytes_deinit(&b);
    tell("%d of %d taken", (int)c->frames_pos, (int)c->frames.len);
}

static void test_frames(void)
{
    serve *s = begin("messages wait until they are taken");
    conn *c = socket_of(s, 3, false);
    made_options.max_unread = 20;
    queue(s, c, "one");
    queue(s, c, "");
    queue(s, c, "three");
    queue(s, c, "four"); /* 19 wait; 20 may, of them 4 bytes of text more */
    tell("and a byte less");
    queue(s, c, "f");
    CHECK(pull(s, c));
    tell("%d of %d taken", (int)c->frames_pos, (int)c->frames.len);
    queue(s, c, "fo");
    queue(s, c, "four");
    bytes lost = {.failed = true};
    tell("one for which there was no memory");
    serve_queue_frame(s, c, &lost);
    CHECK(pull(s, c) && pull(s, c) && pull(s, c) && !pull(s, c));
    tell("%d of %d taken", (int)c->frames_pos, (int)c->frames.len);
    queue(s, c, "again from the start");
    pull_all(s, c);
    made_end(s);

    s = begin("without memory for a message it is as if it was never begun");
    c = socket_of(s, 3, false);
    c->frames = bytes_empty(20);
    queue(s, c, "0123456789");
    queue(s, c, "012");
    queue(s, c, "01");
    queue(s, c, "");
    CHECK_INT(c->frames.len, 20);
    pull_all(s, c);
    queue(s, c, "01234567890123456");
    CHECK_INT(c->frames.len, 0);
    queue(s, c, "0123456789012345");
    pull_all(s, c);
    made_end(s);

    s = begin("what was taken is given up where it is much");
    c = socket_of(s, 3, false);
    made_options.max_unread = 1 << 20;
    static const size_t SIZES[] = {65532, 65533, 65532, 0};
    char *long_text = calloc(1, 70000);
    CHECK(long_text != NULL);
    for (size_t i = 0; long_text && i < ARRAY_LEN(SIZES); i++) {
        memset(long_text, 'x', SIZES[i]);
        long_text[SIZES[i]] = '\0';
        queue(s, c, long_text);
        queue(s, c, "next");
        bytes out = bytes_empty(1 << 20);
        CHECK_INT(serve_socket_pull(s, c, &out), NET_PULL_MORE);
        CHECK_INT(out.len, SIZES[i]);
        bytes_deinit(&out);
        tell("%d of %d taken", (int)c->frames_pos, (int)c->frames.len);
        pull_all(s, c);
        tell("%d of %d taken", (int)c->frames_pos, (int)c->frames.len);
    }
    free(long_text);
    made_end(s);
}

static void test_errors(void)
{
    static const char *const IDS[][3] = {{NULL, NULL, NULL}, {"", "", ""},       {"ev", NULL, NULL},
                                         {NULL, "st", NULL}, {NULL, NULL, "re"}, {"e\"v", "s\"t", "r\"e"}};
    serve *s = begin("errors say whose they are");
    conn *c = socket_of(s, 3, false);
    api_error e;
    api_error_set(&e, 418, "odd", "tea", "no \"%s\"", "pot");
    for (size_t i = 0; i < ARRAY_LEN(IDS); i++) {
        serve_socket_error(s, c, &e, IDS[i][0], IDS[i][1], IDS[i][2]);
        pull_all(s, c);
    }
    made_end(s);
}

/* What a small message says comes back whole, also where each of its letters takes six; or the socket is closed. */
static void test_long(void)
{
    static const char *const FORMS[] = {
        "{\"type\":\"response.cancel\",\"event_id\":\"%s\"}",
        "{\"type\":\"response.cancel\",\"response_id\":\"%s\"}",
        "{\"type\":\"ping\",\"t\":\"%s\"}",
    };
    for (int is_small = 0; is_small < 2; is_small++) {
        serve *s = begin(is_small ? "long ids, and no room for them" : "long ids come back whole");
        conn *c = socket_of(s, 3, true);
        made_options.max_unread = is_small ? 20000 : made_options.max_unread;
        for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
            char id[16001];
            memset(id, 'x', 16000);
            memset(id, 0x7f, is_small ? 1000 : 16000);
            id[16000] = '\0';
            bytes m = bytes_empty(1 << 20), out = bytes_empty(1 << 20);
            bytes_printf(&m, FORMS[i], id);
            told.failed = true; /* what is asked with it is too long to be written */
            serve_on_message(s, c->id, &m);
            told.failed = false;
            CHECK_INT(serve_socket_pull(s, c, &out), is_small ? NET_PULL_IDLE : NET_PULL_MORE);
            json_doc *doc = NULL;
            err_detail d;
            CHECK_INT(json_parse(&doc, bytes_str(&out), out.len, LIMIT_JSON_DEPTH, &d),
                      is_small ? ERR_INVALID : ERR_OK);
            json_free(doc);
            CHECK(is_small || out.len > 6 * 16000);
            bytes_deinit(&m);
            bytes_deinit(&out);
        }
        made_end(s);
    }
    /* The rules by which requests go to other servers may be many. */
    serve *s = begin("a long greeting");
    made_conn(s, 3)->frames = bytes_empty(1 << 24);
    s->upstreams = (upstreams *)some;
    n_rules = 30000;
    serve_on_open(s, 3, true);
    bytes out = bytes_empty(1 << 20);
    CHECK_INT(serve_socket_pull(s, serve_conn(s, 3), &out), NET_PULL_MORE);
    CHECK(out.len > 30000);
    bytes_deinit(&out);
    made_end(s);
}

/* ---- sessions ---- */

static void test_open(void)
{
    serve *s = begin("a socket that is gone");
    serve_on_open(s, 9, true);
    made_end(s);

    for (int is_extended = 0; is_extended < 2; is_extended++) {
        s = begin(is_extended ? "a socket that speaks our protocol" : "a plain socket");
        conn *c = socket_of(s, 3, false);
        c->is_socket = false;
        s->status_version = s->session_version = 4;
        serve_on_open(s, 3, is_extended);
        CHECK(c->is_socket);
        CHECK_INT(c->is_extended, is_extended);
        CHECK_INT(c->chain, is_extended ? 0 : 77);
        pull_all(s, c);
        s->status_version++;
        s->session_version++;
        tell("another model");
        pull_all(s, c);
        pull_all(s, c);
        made_end(s);
    }
}

/* What a session says of the server. */
static void test_capabilities(void)
{
    static const struct {
        const char *what;
        bool has_info, vision, video, thinking, tools, history, upstreams;
        double fps;
    } CASES[] = {
        {.what = "nothing is known of the model"},
        {.what = "a model of text", .has_info = true},
        {.what = "of images", .has_info = true, .vision = true},
        {.what = "of videos", .has_info = true, .video = true},
        {.what = "of videos at a rate", .has_info = true, .video = true, .fps = 2.5},
        {.what = "of images, with a rate", .has_info = true, .vision = true, .fps = 2.5},
        {.what = "that thinks", .has_info = true, .thinking = true},
        {.what = "with tools", .tools = true},
        {.what = "with a history", .history = true},
        {.what = "with other servers", .upstreams = true, .has_info = true, .vision = true, .video = true},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin(CASES[i].what);
        conn *c = socket_of(s, 3, false);
        engine_info has = info;
        has.has_vision = CASES[i].vision;
        has.has_video = CASES[i].video;
        has.has_thinking = CASES[i].thinking;
        has.video_fps = CASES[i].fps;
        has.video_min_frames = 4;
        has.video_max_frames = 768;
        has.patch_size = 16;
        has.merge_size = 2;
        has.temporal_patch_size = 3;
        has.video_min_pixels = 5000000000;
        has.video_max_pixels = 6000000000;
        has.video_fixed_frames = 8;
        s->info = CASES[i].has_info ? &has : NULL;
        s->tool_form = CASES[i].tools ? (const tool_form *)some : NULL;
        s->history = CASES[i].history ? (history *)some : NULL;
        s->upstreams = CASES[i].upstreams ? (upstreams *)some : NULL;
        made_options.max_ws_message = 3000000000;
        made_options.max_body = 4000000007;
        serve_on_open(s, 3, true);
        CHECK(pull(s, c));
        has.video_fills_budget = true;
        bytes video = bytes_empty(4096);
        serve_write_video(&video, &has);
        tell("%s", bytes_str(&video));
        bytes_deinit(&video);
        made_end(s);
    }
}

static void test_status(void)
{
    static const struct {
        const char *what;
        serve_phase phase;
        switch_state switching;
        bool is_stalled, is_late, was_busy, has_engine;
    } CASES[] = {
        {"ready", SERVE_READY, SWITCH_NONE, false, false, false, true},
        {"busy", SERVE_READY, SWITCH_NONE, false, false, true, true},
        {"stalled", SERVE_READY, SWITCH_NONE, true, false, true, true},
        {"the preparation stalls", SERVE_READY, SWITCH_NONE, false, true, true, true},
        {"loading", SERVE_LOADING, SWITCH_NONE, true, true, true, false},
        {"draining", SERVE_DRAINING, SWITCH_NONE, true, true, true, true},
        {"empty", SERVE_EMPTY, SWITCH_NONE, true, true, true, false},
        {"another is to come", SERVE_READY, SWITCH_FINISHING, false, false, false, true},
        {"another comes", SERVE_LOADING, SWITCH_LOADING, false, false, false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin(CASES[i].what);
        conn *c = socket_of(s, 3, true);
        s->phase = CASES[i].phase;
        s->switching = CASES[i].switching;
        s->is_stalled = CASES[i].is_stalled;
        s->is_prep_stalled = CASES[i].is_late;
        s->was_busy = CASES[i].was_busy;
        s->engine = CASES[i].has_engine ? (engine *)some : NULL;
        s->info = CASES[i].has_engine ? &info : NULL;
        serve_status_changed(s);
        pull_all(s, c);
        made_end(s);
    }
    serve *s = begin("who hears of it");
    socket_of(s, 1, true);
    socket_of(s, 2, false);
    made_conn(s, 3);
    made_conn(s, 4)->is_extended = true;
    socket_of(s, 5, true);
    serve_status_changed(s);
    CHECK_INT(s->status_version, 1);
    made_end(s);
}

/* The order of what waits for a socket. */
static void test_order(void)
{
    for (int is_extended = 0; is_extended < 2; is_extended++) {
        serve *s = begin(is_extended ? "all that waits for a socket" : "for a plain one");
        conn *c = socket_of(s, 3, is_extended);
        answer *a = answer_of(s, c, 1);
        CHECK(serve_add_reader(c, a->id, 0));
        s->status_version = s->session_version = 1;
        ack_due = true;
        queue(s, c, "a message");
        pull_all(s, c);
        CHECK_INT(ack_due, !is_extended);
        made_end(s);
    }
}

/* ---- readers ---- */

static void test_add(void)
{
    serve *s = begin("readers of a socket");
    conn *c = socket_of(s, 3, true);
    for (int i = 0; i < SERVE_MAX_READERS; i++) {
        CHECK(serve_add_reader(c, (uint64_t)i + 10, i));
        CHECK_INT(c->n_readers, i + 1);
    }
    CHECK(!serve_add_reader(c, 99, 0));
    c->readers[4].progress_seen = c->readers[4].stats_seen = 7;
    CHECK(serve_add_reader(c, 10, 0) && serve_add_reader(c, 14, 0)); /* anew */
    CHECK_INT(c->n_readers, SERVE_MAX_READERS);
    for (int i = 0; i < SERVE_MAX_READERS; i++) {
        CHECK_INT(c->readers[i].answer, i + 10);
        CHECK_INT(c->readers[i].next_seq, i == 4 ? 0 : i);
        CHECK_INT(c->readers[i].progress_seen + c->readers[i].stats_seen, 0);
    }
    c->n_readers = 5;
    CHECK(serve_add_reader(c, 15, 0)); /* what stood there before is gone */
    CHECK_INT(c->n_readers, 6);
    made_end(s);
}

static void test_news(void)
{
    static const struct {
        const char *what;
        int next_seq;
        answer_state state;
        uint32_t progress, stats;
        gen_phase phase;
        int processed, total;
        double began_ms;
        bool is_remote, has_info;
    } CASES[] = {
        {"nothing is new", 1, ANSWER_RUNNING, 0, 0, GEN_PHASE_QUEUED + 1, 30, 90, 400, false, true},
        {"progress", 1, ANSWER_RUNNING, 1, 0, GEN_PHASE_QUEUED + 1, 30, 90, 400, false, true},
        {"before the first event", 0, ANSWER_RUNNING, 1, 1, GEN_PHASE_QUEUED + 1, 30, 90, 400, false, true},
        {"behind the last", 1, ANSWER_FINISHED, 1, 1, GEN_PHASE_QUEUED + 1, 30, 90, 400, false, true},
        {"in the queue", 1, ANSWER_READY, 1, 0, GEN_PHASE_QUEUED, 30, 90, 400, false, true},
        {"in the queue, with stats", 1, ANSWER_READY, 1, 1, GEN_PHASE_QUEUED, 30, 90, 400, false, true},
        {"nothing was processed", 2, ANSWER_RUNNING, 1, 1, GEN_PHASE_QUEUED + 2, 0, 90, 400, false, true},
        {"one of two", 2, ANSWER_RUNNING, 1, 0, GEN_PHASE_QUEUED + 2, 1, 2, 400, false, true},
        {"all was processed", 1, ANSWER_RUNNING, 1, 0, GEN_PHASE_QUEUED + 2, 90, 90, 400, false, true},
        {"it has just begun", 1, ANSWER_RUNNING, 1, 0, GEN_PHASE_QUEUED + 2, 30, 90, 1000, false, true},
        {"it has begun a moment ago", 1, ANSWER_RUNNING, 1, 0, GEN_PHASE_QUEUED + 2, 30, 90, 999.5, false,
         true},
        {"stats", 1, ANSWER_RUNNING, 0, 1, GEN_PHASE_QUEUED + 1, 30, 90, 400, false, true},
        {"stats of another server", 1, ANSWER_RUNNING, 0, 1, GEN_PHASE_QUEUED + 1, 30, 90, 400, true, true},
        {"stats without a model", 1, ANSWER_RUNNING, 0, 1, GEN_PHASE_QUEUED + 1, 30, 90, 400, false, false},
        {"both", 1, ANSWER_RUNNING, 1, 1, GEN_PHASE_QUEUED + 1, 30, 90, 400, false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin(CASES[i].what);
        conn *c = socket_of(s, 3, true);
        answer *a = answer_of(s, c, 1);
        reader r = {.answer = a->id, .next_seq = CASES[i].next_seq};
        a->state = CASES[i].state;
        a->progress_version = CASES[i].progress;
        a->stats_version = CASES[i].stats;
        a->phase = CASES[i].phase;
        a->processed = CASES[i].processed;
        a->total = CASES[i].total;
        a->cached = 5;
        a->phase_start_ms = CASES[i].began_ms;
        a->timings.predicted_n = 12;
        a->server = CASES[i].is_remote ? "far" : NULL;
        s->info = CASES[i].has_info ? &info : NULL;
        for (int k = 0; k < 3; k++) {
            bytes out = bytes_empty(4096);
            const char *type = serve_take_news(s, &r, a, &out);
            tell("%s: %s", type ? type : "nothing", bytes_str(&out));
            bytes_deinit(&out);
        }
        CHECK_INT(r.next_seq, CASES[i].next_seq);
        made_end(s);
    }
}

/* Several answers are read in turn, those of a lane one behind the other. */
static void test_lanes(void)
{
    for (int with = 0; with < 16; with++) {
        const bool is_extended = with & 1, same_lane = with & 2, same_socket = with & 4, backwards = with & 8;
        char what[128];
        snprintf(what, sizeof what, "two answers%s%s%s%s", is_extended ? "" : ", a plain socket",
                 same_lane ? ", one lane" : "", same_socket ? "" : ", of two sockets",
                 backwards ? ", the later first" : "");
        serve *s = begin(what);
        conn *c = socket_of(s, 3, is_extended), *other = socket_of(s, 4, true);
        answer *a = answer_of(s, c, 4), *b = answer_of(s, same_socket ? c : other, 4);
        snprintf(a->opt.stream_id, sizeof a->opt.stream_id, "x");
        snprintf(b->opt.stream_id, sizeof b->opt.stream_id, "%s", same_lane ? "x" : "y");
        CHECK(serve_add_reader(c, backwards ? b->id : a->id, 0));
        CHECK(serve_add_reader(c, backwards ? a->id : b->id, 0));
        pull_all(s, c);
        event_log_close(&a->reply.log);
        tell("the first is over");
        pull_all(s, c);
        tell("%d read", c->n_readers);
        event_log_close(&b->reply.log);
        pull_all(s, c);
        tell("%d read", c->n_readers);
        made_end(s);
    }
}

static void test_readers(void)
{
    serve *s = begin("readers of what is gone, has no reply, waits, was trimmed, has news");
    conn *c = socket_of(s, 3, true);
    answer *none = answer_of(s, c, 1), *trimmed = answer_of(s, c, 0), *news = answer_of(s, c, 1);
    const char *const lanes[] = {"a", "b", "c"};
    answer *const all[] = {none, trimmed, news};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        snprintf(all[i]->opt.stream_id, sizeof all[i]->opt.stream_id, "%s", lanes[i]);
    }
    event_log_skip(&trimmed->reply.log);
    event_log_append(&trimmed->reply.log, "response.x", "event 1", 7);
    news->progress_version = 1;
    news->phase = GEN_PHASE_QUEUED + 1;
    none->has_reply = false;
    CHECK(serve_add_reader(c, 99, 0));
    CHECK(serve_add_reader(c, none->id, 0));
    CHECK(serve_add_reader(c, trimmed->id, 0));
    CHECK(serve_add_reader(c, news->id, 0));
    pull_all(s, c);
    tell("%d read", c->n_readers);
    c->is_extended = false; /* who does not know of news hears of none */
    news->progress_version++;
    pull_all(s, c);
    c->is_extended = true;
    pull_all(s, c);
    none->has_reply = true;
    made_end(s);

    s = begin("an answer without news, in turn behind one with an end");
    c = socket_of(s, 3, true);
    answer *a = answer_of(s, c, 0), *b = answer_of(s, c, 1), *d = answer_of(s, c, 2);
    CHECK(serve_add_reader(c, d->id, 0) && serve_add_reader(c, b->id, 0) && serve_add_reader(c, a->id, 0));
    event_log_close(&a->reply.log);
    event_log_close(&b->reply.log);
    c->next_reader = 1; /* each waits for one behind it */
    pull_all(s, c);
    tell("%d read", c->n_readers);
    made_end(s);
}

/* ---- chains ---- */

static void test_chains(void)
{
    for (int with = 0; with < 16; with++) {
        const bool is_here = with & 1, is_plain = with & 2, had = with & 4, can_put = with & 8;
        char what[128];
        snprintf(what, sizeof what, "a conversation goes on%s%s%s%s", is_here ? "" : ", the socket is gone",
                 is_plain ? "" : ", of no chain", had ? ", behind another" : "",
                 can_put ? "" : ", without memory");
        serve *s = begin(what);
        put = can_put;
        conn *c = socket_of(s, 3, false);
        answer *a = answer_of(s, c, 0);
        c->chain = is_plain ? 77 : 0;
        snprintf(c->chain_end, sizeof c->chain_end, "%s", had ? "resp_old" : "");
        a->conn = is_here ? 3 : 9;
        a->n_kept_input = 2;
        snprintf(a->chat_id, sizeof a->chat_id, "resp_new");
        bytes_append_str(&a->opt.items, "items");
        serve_extend_chain(s, a);
        tell("its end is \"%s\"", c->chain_end);
        for (int goes_on = 0; goes_on < 2; goes_on++) {
            a->goes_on = goes_on;
            serve_break_chain(s, a);
            tell("its end is \"%s\"", c->chain_end);
        }
        made_end(s);
    }
}

int main(void)
{
    test_frames();
    test_errors();
    test_long();
    test_open();
    test_capabilities();
    test_status();
    test_order();
    test_add();
    test_news();
    test_lanes();
    test_readers();
    test_chains();
    recorded_check("server/service/recorded/socket.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
