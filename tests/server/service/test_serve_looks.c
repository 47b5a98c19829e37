/* serve_looks: what the server makes of time and of what it sees then, over a state that a test fills in: computations that do
 * not move, files that are previewed, streams that are asked for more. */
#include <stdarg.h>

#include "base/log.h"
#include "tests/server/service/made_serve.h"

enum { LOOK_MS = 1000 };

/* ---- what is asked of others ---- */

static double now_ms = 1000.0;
static int n_changes, n_stopped, n_ended, n_submitted;
static prep_status seen;
static err_code submitted;
static prep_ticket *tickets[SERVE_PREVIEWS];
static bytes said;

double __wrap_clock_ms(void);
void __wrap_serve_status_changed(serve *s);
void __wrap_serve_stop_answer(serve *s, uint64_t id);
void __wrap_serve_handle_message(serve *s, loop_message *m);
void __wrap_serve_fail_answer(serve *s, answer *a, err_code err, const api_error *e);
void __wrap_serve_queue_frame(serve *s, conn *c, const bytes *text);
void __wrap_notify_send(const notify *n, const char *format, ...);
void __wrap_prep_get_status(const prep *p, prep_status *out);
err_code __wrap_prep_submit(prep *p, const prep_order *order, bytes *body, json_doc **doc, ledger_hold *hold,
                            prep_ticket *t);

double __wrap_clock_ms(void)
{
    return now_ms;
}

void __wrap_serve_status_changed(serve *s)
{
    (void)s;
    n_changes++;
}

void __wrap_serve_stop_answer(serve *s, uint64_t id)
{
    CHECK(id_table_get(&s->answers, id));
    n_stopped++;
}

/* The last event of an answer. */
void __wrap_serve_handle_message(serve *s, loop_message *m)
{
    answer *a = id_table_get(&s->answers, m->id);
    CHECK(m->type == LOOP_EVENT && m->event->request_id == a->id && m->event->type == GEN_DONE);
    CHECK(m->event->finish == GEN_FINISH_ERROR && m->event->error == ERR_TIMEOUT);
    a->state = ANSWER_FINISHED;
    n_ended++;
}

void __wrap_serve_fail_answer(serve *s, answer *a, err_code err, const api_error *e)
{
    (void)s;
    CHECK_INT(err, ERR_BUSY);
    bytes_printf(&said, "%s|", e->code);
    a->state = ANSWER_FINISHED;
}

void __wrap_serve_queue_frame(serve *s, conn *c, const bytes *text)
{
    (void)s;
    bytes_printf(&said, "%d:%.*s|", (int)c->id, (int)text->len, text->data);
}

void __wrap_notify_send(const notify *n, const char *format, ...)
{
    char text[256];
    va_list args;
    (void)n;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bytes_printf(&said, "%s|", text);
}

void __wrap_prep_get_status(const prep *p, prep_status *out)
{
    (void)p;
    *out = seen;
}

err_code __wrap_prep_submit(prep *p, const prep_order *order, bytes *body, json_doc **doc, ledger_hold *hold,
                            prep_ticket *t)
{
    (void)p, (void)doc;
    CHECK(!order->dialect && body->len > 0);
    hold->ledger = NULL;
    if (submitted == ERR_OK) {
        tickets[n_submitted++ % SERVE_PREVIEWS] = t;
        bytes_deinit(body);
    }
    return submitted;
}

static serve *begin(void)
{
    n_changes = n_stopped = n_ended = n_submitted = 0;
    submitted = ERR_OK;
    now_ms = 1000.0;
    bytes_clear(&said);
    serve *s = made_serve();
    made_options.step_timeout_s = 2;
    snprintf(s->model_name, sizeof s->model_name, "ash");
    return s;
}

static void check_said(const char *expected)
{
    CHECK_STR(bytes_str(&said), expected);
    bytes_clear(&said);
}

/* ---- what does not move ---- */

/* What was silent since before the last look is silent for as long as it takes to the next, a gap between looks for a moment. */
static void test_workers(void)
{
    static const struct {
        double passed_ms, silent_ms, counts_ms;
        bool stalls;
    } LOOKS[] = {
        {100, 99, 99, false},         {100, 100, 199, false},           {100, 5000, 299, false},
        {100, 0, 0, false},           {LOOK_MS, 999, 999, false},       {LOOK_MS + 1, 1001, 1999, false},
        {1, 2000, 2000, false},       {0.5, 2000, 2000.5, true},        {10, 2010, 2010.5, true},
        {5000, 4000, LOOK_MS, false}, {9000, 9000, 2 * LOOK_MS, false}, {9000, 9001, 3 * LOOK_MS, true},
        {500, 499, 499, false},       {LOOK_MS, 1000, 1499, false},     {0, 0, 1499, false},
    };
    serve *s = begin();
    double now = 0;
    bool was = false;
    for (size_t i = 0; i < ARRAY_LEN(LOOKS); i++) {
        now += LOOKS[i].passed_ms;
        seen.silent_ms = LOOKS[i].silent_ms;
        serve_watchdog_prep(s, now);
        CHECK_NEAR(s->prep_silent_ms, LOOKS[i].counts_ms, 1e-9);
        CHECK_INT(s->is_prep_stalled, LOOKS[i].stalls);
        check_said(LOOKS[i].stalls == was ? ""
                   : was                  ? "STATUS=Ready|"
                                          : "STATUS=The preparation of requests stalls|");
        CHECK_INT(n_changes, LOOKS[i].stalls != was);
        n_changes = 0;
        was = LOOKS[i].stalls;
    }
    made_end(s);
}

static void test_engine(void)
{
    static const struct {
        double passed_ms;
        int n_running;
        uint64_t counter;
        double counts_ms;
        bool stalls;
    } LOOKS[] = {
        {100, 1, 1, 0, false},        {100, 1, 1, 100, false},          {LOOK_MS, 1, 1, 1100, false},
        {900, 1, 1, 2000, false},     {0.5, 1, 1, 2000.5, true},        {100, 1, 1, 2100.5, true},
        {100, 1, 2, 0, false},        {9000, 1, 2, LOOK_MS, false},     {100, 0, 2, 0, false},
        {1000, 1, 2, LOOK_MS, false}, {1000, 1, 2, 2 * LOOK_MS, false}, {1000, 1, 2, 3 * LOOK_MS, true},
        {100, 0, 2, 0, false},
    };
    serve *s = begin();
    answer *a = made_answer(s, &dialect_chat);
    double now = 0;
    bool was = false;
    for (size_t i = 0; i < ARRAY_LEN(LOOKS); i++) {
        now += LOOKS[i].passed_ms;
        a->state = ANSWER_RUNNING;
        const engine_status status = {.n_running = LOOKS[i].n_running, .progress_counter = LOOKS[i].counter};
        serve_watchdog_engine(s, &status, now);
        CHECK_NEAR(s->stalled_ms, LOOKS[i].counts_ms, 1e-9);
        CHECK_INT(s->is_stalled, LOOKS[i].stalls);
        check_said(LOOKS[i].stalls == was ? ""
                   : was                  ? "STATUS=Ready: ash|"
                                          : "STATUS=A computation is stalled|");
        CHECK_INT(n_changes, LOOKS[i].stalls != was);
        CHECK_INT(n_ended, LOOKS[i].stalls && !was);
        n_changes = n_ended = 0;
        was = LOOKS[i].stalls;
    }
    made_end(s);
}

/* Answers end in each state but for what others compute: that has not stalled; nor has what waits. */
static void test_end(void)
{
    for (int state = ANSWER_HELD; state <= ANSWER_FINISHED; state++) {
        for (int with = 0; with < 4; with++) {
            serve *s = begin();
            const answer_timeout why = with & 1 ? ANSWER_STALLED : ANSWER_SERVER_ENDS;
            answer *all[3];
            s->phase = SERVE_DRAINING;
            for (int i = 0; i < 3; i++) {
                all[i] = made_answer(s, &dialect_chat);
                all[i]->state = (answer_state)state;
                all[i]->server = with & 2 ? "far" : NULL;
            }
            serve_end_answers(s, why);
            const bool is_open = state != ANSWER_FINISHED, is_running = state == ANSWER_RUNNING;
            const bool ends = is_open && (why != ANSWER_STALLED || (is_running && !(with & 2)));
            for (int i = 0; i < 3; i++) {
                CHECK_INT(all[i]->state, ends ? ANSWER_FINISHED : state);
                CHECK_INT(all[i]->timeout, ends && is_running ? why : ANSWER_IN_TIME);
            }
            CHECK_INT(n_stopped, ends && is_running ? 3 : 0);
            CHECK_INT(n_ended, n_stopped);
            check_said(ends && !is_running ? "server_draining|server_draining|server_draining|" : "");
            made_end(s);
        }
    }
}

/* Which of several reasons is said. */
static void test_ready(void)
{
    static char some[1];
    for (int with = 0; with < 64; with++) {
        serve *s = begin();
        api_error e = {0};
        const bool drains = with & 1, has_engine = with & 2, is_empty = with & 4, is_stalled = with & 8,
                   is_late = with & 16, is_remote = with & 32;
        s->phase = drains ? SERVE_DRAINING : is_empty ? SERVE_EMPTY : SERVE_READY;
        s->engine = has_engine ? (engine *)some : NULL;
        s->upstreams = is_remote ? (upstreams *)some : NULL;
        made_options.has_no_model = is_remote;
        s->is_stalled = is_stalled;
        s->is_prep_stalled = is_late;
        const bool is_ready = serve_is_ready(s, &e);
        CHECK_STR(e.code, drains                                  ? "server_draining"
                          : !has_engine && !is_remote && is_empty ? "no_model"
                          : !has_engine && !is_remote             ? "model_loading"
                          : is_stalled                            ? "engine_stalled"
                          : is_late                               ? "preparation_stalled"
                                                                  : "");
        CHECK_INT(is_ready, e.code[0] == '\0');
        CHECK_INT(e.status, is_ready ? 0 : 503);
        made_end(s);
    }
    serve *s = begin(); /* both are needed for that */
    s->upstreams = (upstreams *)some;
    CHECK(!serve_is_remote_only(s));
    made_options.has_no_model = true;
    CHECK(serve_is_remote_only(s));
    s->upstreams = NULL;
    CHECK(!serve_is_remote_only(s));
    made_end(s);
}

/* ---- previews ---- */

static void begin_upload(serve *s, conn *c, const char *mime)
{
    bytes text = bytes_empty(1000);
    bytes_append_str(&text, "{");
    serve_tell_completed(s, c, &text, &(stored_file){.id = "file_1", .mime = mime});
    bytes_deinit(&text);
}

static void preview(serve *s, loop_message_type type, uint64_t id, const char *reply)
{
    loop_message *m = loop_message_create(type, id);
    CHECK(m != NULL);
    bytes_append_str(&m->reply, reply);
    serve_on_preview(s, m);
    loop_message_free(m);
}

#define PNG   "\"media\":{\"kind\":\"image\",\"mime_type\":\"image/png\""
#define OTHER "\"media\":{\"kind\":\"other\",\"mime_type\":\"application/octet-stream\"}}|"

/* Who has uploaded a file hears at once what is known of it where nothing looks at it. */
static void test_unseen(void)
{
    static char some[1];
    for (int with = 0; with < 32; with++) {
        serve *s = begin();
        conn *c = made_conn(s, 1);
        const bool has_engine = with & 1, is_remote = with & 2, switches = with & 4, is_media = with & 8,
                   is_full = with & 16;
        s->engine = has_engine ? (engine *)some : NULL;
        s->upstreams = is_remote ? (upstreams *)some : NULL;
        made_options.has_no_model = is_remote;
        s->switching = switches ? SWITCH_FINISHING : SWITCH_NONE;
        submitted = is_full ? ERR_BUSY : ERR_OK;
        begin_upload(s, c, is_media ? "image/png" : NULL);
        const bool looks = (has_engine || is_remote) && !switches && is_media && !is_full;
        check_said(looks ? "" : is_media ? "1:{," PNG "}}|" : "1:{," OTHER);
        CHECK_INT(n_submitted, looks);
        if (looks) {
            preview(s, LOOP_PREVIEW, s->preview_id, "");
            check_said("1:{," PNG "}}|");
        }
        made_end(s);
    }
}

/* So many at a time, each told once: of the facts, or when it has waited for them. */
static void test_previews(void)
{
    static char some[1];
    serve *s = begin();
    conn *c = made_conn(s, 1);
    s->engine = (engine *)some;
    made_options.max_unread = 20;
    for (int i = 0; i < SERVE_PREVIEWS; i++) {
        CHECK_INT(serve_end_previews(s), i > 0);
        begin_upload(s, c, i % 2 ? "video/mp4" : "image/png");
    }
    check_said("");
    begin_upload(s, c, "image/png");
    check_said("1:{," PNG "}}|"); /* no more than that */
    CHECK_INT(n_submitted, SERVE_PREVIEWS);
    preview(s, LOOP_FACTS, 99, ",\"x\":1"); /* of nobody */
    check_said("");
    preview(s, LOOP_FACTS, 1, ",\"x\":1");
    check_said("1:{," PNG ",\"x\":1}}|");
    preview(s, LOOP_PREVIEW, 1, "[123456]"); /* below half of what may be unread */
    check_said("1:[123456]|");
    begin_upload(s, c, NULL);
    check_said("1:{," OTHER);
    begin_upload(s, c, "image/png"); /* in its place */
    check_said("");
    preview(s, LOOP_PREVIEW, 2, "[1234567]"); /* a byte less than that may wait */
    check_said("1:{,\"media\":{\"kind\":\"video\",\"mime_type\":\"video/mp4\"}}|1:[1234567]|");
    preview(s, LOOP_PREVIEW, 3, "[12345678]");
    check_said("1:{," PNG "}}|");
    c->frames = bytes_empty(100);
    bytes_append_str(&c->frames, "12345");
    c->frames_pos = 3;
    preview(s, LOOP_PREVIEW, 5, "[12345]");
    check_said("1:{," PNG "}}|1:[12345]|");
    preview(s, LOOP_PREVIEW, 7, "[123456]");
    check_said("1:{," PNG "}}|");
    now_ms += 1000.0;
    serve_tick_previews(s);
    check_said("");
    preview(s, LOOP_FACTS, 9, "");
    check_said("1:{," PNG "}}|");
    serve_drop_previews(s, 2);
    now_ms += 0.5;
    for (int i = 4; i <= 10; i++) {
        preview(s, LOOP_PREVIEW, (uint64_t)i, "");
    }
    bytes_clear(&said);
    serve_tick_previews(s); /* the rest, but not the one that was told already */
    const char *at = bytes_str(&said);
    int n = 0;
    for (; (at = strstr(at, "1:{")); at++) {
        n++;
    }
    CHECK_INT(n, SERVE_PREVIEWS - 10 + 1);
    bytes_clear(&said);
    serve_tick_previews(s);
    check_said("");
    serve_drop_previews(s, 1); /* a socket that is gone hears nothing */
    for (int i = 1; i <= SERVE_PREVIEWS + 1; i++) {
        preview(s, LOOP_PREVIEW, (uint64_t)i, "[]");
    }
    check_said("");
    CHECK(!serve_end_previews(s));
    made_end(s);
}

/* ---- streams ---- */

static const route CHAT = {.id = ROUTE_CHAT_COMPLETIONS};

static void check_pull(serve *s, net_pull expected, const char *text)
{
    bytes out = bytes_empty(1 << 20);
    CHECK_INT(serve_on_writable(s, 1, &out), expected);
    CHECK_STR(bytes_str(&out), text);
    bytes_deinit(&out);
}

/* A stream goes on, waits with signs of life, ends, or says why it cannot go on. */
static void test_streams(void)
{
    serve *s = begin();
    conn *c = made_conn(s, 1);
    answer *a = made_answer(s, &dialect_chat);
    made_options.keepalive_s = 5;
    a->state = ANSWER_RUNNING;
    c->route = &CHAT;
    c->answer = a->id;
    c->last_write_ms = now_ms;
    bytes_append_str(&a->sse, "data: a\n\n");
    check_pull(s, NET_PULL_IDLE, "data: a\n\n");
    now_ms += 4999.0;
    check_pull(s, NET_PULL_IDLE, "");
    now_ms += 1.0;
    check_pull(s, NET_PULL_IDLE, a->dialect->ping);
    CHECK_NEAR(c->last_write_ms, now_ms, 1e-9);
    bytes_append_str(&a->sse, "data: b\n\n");
    now_ms += 9000.0;
    check_pull(s, NET_PULL_IDLE, "data: b\n\n");
    bytes_append_str(&a->sse, "data: c\n\n");
    a->sse_end = true;
    check_pull(s, NET_PULL_END, "data: c\n\n");
    now_ms += 9000.0;
    check_pull(s, NET_PULL_END, "");
    a->sse_lost = true;
    check_pull(s, NET_PULL_END,
               "data: {\"error\":{\"message\":\"there was no memory for the rest of this "
               "answer\",\"type\":\"unavailable_error\",\"param\":null,\"code\":\"out_of_memory\"}}\n\n");
    c->is_cut = true;
    check_pull(s, NET_PULL_END,
               "data: {\"error\":{\"message\":\"more waited to be read than --max-ws-queue "
               "allows\",\"type\":\"unavailable_error\",\"param\":null,\"code\":\"stream_not_read\"}}\n\n");
    c->answer = 77;
    check_pull(s, NET_PULL_END,
               "data: {\"error\":{\"message\":\"this answer is no longer "
               "there\",\"type\":\"unavailable_error\",\"param\":null,\"code\":\"answer_gone\"}}\n\n");
    made_end(s);
}

/* What waits is taken in pieces that end with an event, and what everybody has taken is forgotten. */
static void test_pieces(void)
{
    serve *s = begin();
    conn *c = made_conn(s, 1), *other = made_conn(s, 2);
    answer *a = made_answer(s, &dialect_chat);
    a->state = ANSWER_RUNNING;
    c->answer = other->answer = a->id;
    bytes_append_str(&a->sse, "data: 1\n\ndata: 22\n\ndata: 3");
    static const struct {
        size_t max, n, left;
    } CASES[] = {{0, 9, 17},  {1, 9, 17},  {7, 9, 17},  {8, 19, 7}, {17, 19, 7},
                 {18, 26, 0}, {25, 26, 0}, {26, 26, 0}, {99, 26, 0}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        bytes out = bytes_empty(100);
        c->sse_pos = 0;
        CHECK_INT(serve_take_stream(s, c, a, &out, CASES[i].max), CASES[i].left);
        CHECK_INT(out.len, CASES[i].n);
        CHECK_INT(c->sse_pos, CASES[i].n);
        CHECK(a->sse_base == 0 && a->sse.len == 26); /* the other one has taken nothing */
        bytes_deinit(&out);
    }
    bytes out = bytes_empty(100);
    c->sse_pos = 9;
    CHECK_INT(serve_take_stream(s, other, a, &out, 1), 17);
    CHECK_INT(a->sse_base, 9);
    CHECK_INT(serve_take_stream(s, other, a, &out, 1), 7);
    CHECK(a->sse_base == 9 && other->sse_pos == 19);
    CHECK_INT(serve_take_stream(s, c, a, &out, 1), 7);
    CHECK(a->sse_base == 19 && a->sse.len == 7);
    CHECK_STR(bytes_str(&out), "data: 1\n\ndata: 22\n\ndata: 22\n\n");
    bytes_deinit(&out);
    made_end(s);
}

int main(void)
{
    log_set_level(LOG_OFF);
    said = bytes_empty(1 << 20);
    test_workers();
    test_engine();
    test_end();
    test_ready();
    test_unseen();
    test_previews();
    test_streams();
    test_pieces();
    bytes_deinit(&said);
    CHECK_DONE();
}
