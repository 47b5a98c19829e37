/* serve_calls: parts of the server's loop by themselves, over a state that a test fills in: messages that find no place or
 * no memory, readers of a stream, answers that are kept, files that are previewed. Nothing listens: what is asked of
 * the net is counted, and the test is the loop. */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "tests/alloc_fail.h"
#include "tests/one_fails.h"
#include "tests/server/service/made_serve.h"

/* ---- what the loop asks of others ---- */

static serve *waking; /* whose mailbox is emptied when it is woken; NULL: nobody's */
static int n_wakes, n_wants, n_closed, n_stopped, n_sleeps;
static double now_ms = 1000.0;

void __wrap_net_wake(net *n);
void __wrap_net_want_write(net *n, uint64_t id);
void __wrap_engine_close(engine *e);
void __wrap_serve_stop_answer(serve *s, uint64_t id);
double __wrap_clock_ms(void);
int __wrap_nanosleep(const struct timespec *t, struct timespec *rest);

int __wrap_nanosleep(const struct timespec *t, struct timespec *rest)
{
    CHECK(!rest && t->tv_sec == 0 && (t->tv_nsec == 1000000 || t->tv_nsec == 10000000));
    n_sleeps++;
    return 0;
}

void __wrap_net_wake(net *n)
{
    (void)n;
    void *message;
    n_wakes++;
    while (waking && mailbox_try_pop(waking->inbox, &message)) {
        serve_drop_message(message);
    }
}

void __wrap_net_want_write(net *n, uint64_t id)
{
    (void)n, (void)id;
    n_wants++;
}

void __wrap_engine_close(engine *e)
{
    (void)e;
    n_closed++;
}

const engine_info *__wrap_engine_get_info(const engine *e);
const engine_info *__wrap_engine_get_info(const engine *e)
{
    static const engine_info INFO = {.weight_bytes = 3, .state_bytes = 5};
    CHECK(e != NULL);
    return &INFO;
}

void __wrap_serve_stop_answer(serve *s, uint64_t id)
{
    CHECK(id_table_get(&s->answers, id));
    n_stopped++;
}

double __wrap_clock_ms(void)
{
    return now_ms;
}

static serve *begin(void)
{
    n_wakes = n_wants = n_closed = n_stopped = n_sleeps = 0;
    waking = NULL;
    return made_serve();
}

/* ---- messages ---- */

/* A message owns what it brings: nothing of it is left when it was not handled. */
static err_code drop_full(void *ctx)
{
    ledger *memory = ctx;
    loop_message *m = loop_message_create(LOOP_OTHER_MODEL, 7);
    CHECK(m && m->id == 7 && m->type == LOOP_OTHER_MODEL);
    m->event = calloc(1, sizeof *m->event);
    m->history = calloc(1, sizeof *m->history);
    m->result = calloc(1, sizeof *m->result);
    CHECK(m->event && m->history && m->result);
    m->history->file.fd = -1;
    m->history->body = bytes_empty(10);
    m->result->text = m->result->images = m->result->whole = bytes_empty(10);
    bytes *const filled[] = {&m->body, &m->reply, &m->history->body, &m->result->text, &m->options.items};
    for (size_t i = 0; i < ARRAY_LEN(filled); i++) {
        filled[i]->max = 10;
        bytes_append_str(filled[i], "0123456789");
        CHECK(!filled[i]->failed);
    }
    CHECK_INT(json_parse(&m->doc, "[1, 2]", 6, 4, NULL), ERR_OK);
    m->memory.ledger = memory;
    CHECK(ledger_try(&m->memory, 1000));
    CHECK_INT(ledger_get_status(memory).used, 1000);
    serve_drop_message(m);
    CHECK_INT(ledger_get_status(memory).used, 0);
    return ERR_OK;
}

static void test_drop(void)
{
    ledger *memory = ledger_create(5000);
    CHECK(memory != NULL);
    CHECK_INT(alloc_fail_kept(drop_full, memory), 0);
    ledger_destroy(memory);
    n_closed = 0;
    for (int type = 0; type <= LOOP_UPSTREAMS; type++) { /* an engine comes with one of them */
        loop_message *m = loop_message_create((loop_message_type)type, 1);
        CHECK(m != NULL);
        serve_drop_message(m);
        CHECK_INT(n_closed, type >= LOOP_LOADED);
    }
    loop_message_free(NULL);
}

/* Where there is no place for a message its sender wakes the loop, and waits; once the loop is gone it is dropped. */
static void test_full(void)
{
    serve *s = begin();
    s->inbox = mailbox_create(2);
    CHECK(s->inbox != NULL);
    for (int i = 0; i < 2; i++) {
        serve_post(s, loop_message_create(LOOP_FACTS, 1));
        CHECK_INT(n_wakes, i + 1);
    }
    waking = s;
    serve_post(s, loop_message_create(LOOP_LOADED, 2));
    CHECK_INT(n_wakes, 4); /* one made room, one is for the message itself */
    CHECK_INT(n_sleeps, 1);
    CHECK_INT(n_closed, 1);
    waking = NULL;
    serve_post(s, loop_message_create(LOOP_FACTS, 1));
    serve_post(s, loop_message_create(LOOP_FACTS, 1));
    atomic_store(&s->closing, true);
    n_wakes = n_closed = 0;
    serve_post(s, loop_message_create(LOOP_FACTS, 3));
    CHECK_INT(n_closed, 0);
    serve_post(s, loop_message_create(LOOP_LOADED, 4));
    CHECK_INT(n_closed, 1);
    CHECK_INT(n_wakes, 0);
    mailbox_destroy(s->inbox, serve_drop_message);
    made_end(s);
}

static gen_event *event_of(gen_event_type type)
{
    gen_event *event = calloc(1, sizeof *event);
    CHECK(event != NULL);
    event->type = type;
    event->request_id = 9;
    return event;
}

/* What must arrive is tried again until there is memory for it, or nobody to hear it. */
static void test_no_memory(void)
{
    serve *s = begin();
    void *message = NULL;
    s->inbox = mailbox_create(8);
    alloc_fail_at(1);
    CHECK(!serve_new_message(s, LOOP_LOADING, 1, false));
    CHECK_INT(n_sleeps, 0);
    loop_message *m = NULL;
    for (size_t fails = 0; fails < 2; fails++) {
        alloc_fail_at(fails);
        m = serve_new_message(s, LOOP_LOADED, 6, true);
        CHECK(m && m->type == LOOP_LOADED && m->id == 6);
        CHECK_INT(n_sleeps, fails);
        loop_message_free(m);
    }
    gen_event *progress = event_of(GEN_PROGRESS), *tokens = event_of(GEN_TOKENS);
    alloc_fail_at(1);
    serve_on_engine_event(s, progress);
    alloc_fail_at(0);
    CHECK(!mailbox_try_pop(s->inbox, &message));
    CHECK_INT(n_wakes, 0);
    alloc_fail_at(1);
    serve_on_engine_event(s, tokens);
    alloc_fail_at(0);
    CHECK(mailbox_try_pop(s->inbox, &message));
    m = message;
    CHECK(m->type == LOOP_EVENT && m->id == 9 && m->event == tokens);
    loop_message_free(m);
    atomic_store(&s->closing, true);
    gen_event *late = event_of(GEN_TOKENS);
    alloc_fail_at(1);
    serve_on_engine_event(s, late);
    alloc_fail_at(0);
    CHECK(!mailbox_try_pop(s->inbox, &message));
    mailbox_destroy(s->inbox, serve_drop_message);
    made_end(s);
}

/* ---- readers of a stream ---- */

/* Whether an answer goes on, and what is kept of its stream, for readers with and without a name for it. */
static void test_stream(void)
{
    static const struct {
        bool has_key, finishes, may_cancel;
        int n_readers;  /* that have taken 4 and 7 of 10 bytes */
        size_t at_most; /* --max-unread */
        bool goes_on;   /* the answer */
        size_t base;    /* what of the stream is forgotten */
        int n_cut;
    } CASES[] = {
        {false, false, false, 0, 100, false, 10, 0}, {false, true, false, 0, 100, true, 10, 0},
        {false, true, true, 0, 100, false, 10, 0},   {true, false, true, 0, 100, true, 0, 0},
        {false, false, true, 1, 100, true, 4, 0},    {false, false, true, 2, 100, true, 4, 0},
        {false, false, true, 2, 6, true, 4, 0},      {false, false, true, 2, 5, true, 7, 1},
        {false, false, true, 2, 2, false, 10, 2},    {false, true, false, 2, 2, true, 10, 2},
        {true, false, false, 2, 2, true, 0, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin();
        made_options.finish_on_disconnect = CASES[i].finishes;
        made_options.max_unread = CASES[i].at_most;
        answer *a = made_answer(s, &dialect_chat);
        a->state = ANSWER_RUNNING;
        a->opt.cancel_on_disconnect = CASES[i].may_cancel;
        snprintf(a->idempotency_key, sizeof a->idempotency_key, "%s", CASES[i].has_key ? "k" : "");
        bytes_append_str(&a->sse, "0123456789");
        int n_cut = 0;
        for (int k = 0; k < CASES[i].n_readers; k++) {
            conn *c = made_conn(s, (uint64_t)k + 1);
            c->answer = a->id;
            c->sse_pos = k == 0 ? 4 : 7;
        }
        serve_check_stream(s, a);
        for (int k = 0; k < CASES[i].n_readers; k++) {
            n_cut += ((const conn *)id_table_get(&s->conns, (uint64_t)k + 1))->is_cut;
        }
        CHECK_INT(n_stopped, !CASES[i].goes_on);
        CHECK_INT(a->sse_base, CASES[i].base);
        CHECK_INT(a->sse.len, 10 - CASES[i].base);
        CHECK_INT(n_cut, CASES[i].n_cut);
        CHECK_INT(n_wants, CASES[i].n_cut);
        serve_check_stream(s, a); /* who is cut is told once */
        CHECK_INT(n_wants, CASES[i].n_cut);
        n_stopped = 0;
        a->state = ANSWER_READY; /* only what runs is stopped */
        serve_check_stream(s, a);
        CHECK_INT(n_stopped, 0);
        made_end(s);
    }
}

/* Whoever waits for the answer itself, or reads its events. */
static void test_followers(void)
{
    serve *s = begin();
    answer *a = made_answer(s, &dialect_chat), *other = made_answer(s, &dialect_chat);
    conn *c = made_conn(s, 1);
    c->answer = other->id;
    CHECK(!serve_follows(c, a) && !serve_find_follower(s, a) && serve_find_follower(s, other) == c);
    c->answer = a->id;
    CHECK(serve_follows(c, a) && serve_find_follower(s, a) == c);
    c->is_socket = true; /* such a one reads, it does not wait */
    CHECK(!serve_follows(c, a) && !serve_find_follower(s, a));
    c->readers[0].answer = other->id;
    c->readers[1].answer = a->id;
    c->n_readers = 1;
    CHECK(!serve_follows(c, a) && serve_follows(c, other));
    c->n_readers = 2;
    CHECK(serve_follows(c, a) && serve_follows(c, other) && serve_find_follower(s, a) == c);
    made_end(s);
}

/* ---- answers that are kept ---- */

static int n_answers(const serve *s)
{
    return (int)s->answers.len;
}

/* What is kept counts for its key; what there is no memory to count goes at once, unless somebody reads it. */
static void test_keep(void)
{
    for (int with = 0; with < 8; with++) { /* a name, a reader, no memory */
        const bool has_name = with & 1, is_read = with & 2, is_short = with & 4;
        serve *s = begin();
        conn *c = made_conn(s, 1);
        answer *a = made_answer(s, &dialect_chat);
        a->state = ANSWER_FINISHED;
        a->created_ms = a->finished_ms = now_ms;
        snprintf(a->idempotency_key, sizeof a->idempotency_key, "%s", has_name ? "k" : "");
        snprintf(a->request_id, sizeof a->request_id, "r");
        bytes_append_str(&a->sse, "0123456789");
        c->answer = is_read ? a->id : 0;
        alloc_fail_at(is_short ? 1 : 0);
        serve_keep_answer(s, a);
        alloc_fail_at(0);
        const bool stays = is_read || (has_name && !is_short);
        CHECK_INT(n_answers(s), stays);
        CHECK_INT(s->kept.n, has_name && !is_short);
        if (stays) {
            CHECK_INT(a->kept_bytes, has_name && !is_short ? answer_bytes(a) : 0);
            CHECK_INT(s->kept.n_bytes, a->kept_bytes);
        }
        const answer again = {.scope = 5, .idempotency_key = "k", .created_ms = now_ms};
        api_error e;
        CHECK_INT(serve_is_repeat_gone(s, &again, &e), has_name && is_short && !is_read);
        made_end(s);
    }
}

/* Until its end to the millisecond, with all who read it, and looked at not more often than once a tick. */
static void test_expire(void)
{
    for (int with = 0; with < 8; with++) { /* a name, a reader, not at its end */
        const bool has_name = with & 1, is_read = with & 2, is_running = with & 4;
        serve *s = begin();
        conn *c = made_conn(s, 1);
        answer *a = made_answer(s, &dialect_chat);
        const double created = now_ms, finished = created + 1000.0,
                     repeat = created + SERVE_IDEMPOTENCY_S * 1000.0,
                     log = finished + EVENT_LOG_TTL_S * 1000.0,
                     ends = has_name && repeat > log ? repeat : log;
        a->state = is_running ? ANSWER_RUNNING : ANSWER_FINISHED;
        a->created_ms = created;
        a->finished_ms = finished;
        snprintf(a->idempotency_key, sizeof a->idempotency_key, "%s", has_name ? "k" : "");
        c->answer = is_read ? a->id : 0;
        serve_expire_answers(s, ends);
        CHECK_INT(n_answers(s), 1);
        serve_expire_answers(s, ends + SERVE_TICK_MS - 1);
        CHECK_INT(n_answers(s), 1);
        serve_expire_answers(s, ends + SERVE_TICK_MS);
        CHECK_INT(n_answers(s), is_read || is_running);
        made_end(s);
    }
    serve *s = begin(); /* all of them in one look, wherever they stand in the table */
    for (int i = 0; i < 100; i++) {
        made_answer(s, &dialect_chat)->state = ANSWER_FINISHED;
    }
    serve_expire_answers(s, 1e9);
    CHECK_INT(n_answers(s), 0);
    made_end(s);
}

/* The key with most gives its oldest that nobody reads; what it had is not counted any more, and is said to be gone. */
static void test_room(void)
{
    serve *s = begin();
    shares_init(&s->kept, 2, 1 << 20, NULL);
    conn *c = made_conn(s, 1);
    static const char *const KEYS[] = {"a", "b", "c", "d"};
    static const double CREATED[] = {3000.0, 1000.0, 2000.0, 4000.0};
    answer *all[4];
    for (int i = 0; i < 4; i++) {
        all[i] = made_answer(s, &dialect_chat);
        all[i]->state = ANSWER_FINISHED;
        all[i]->created_ms = all[i]->finished_ms = CREATED[i];
        snprintf(all[i]->idempotency_key, sizeof all[i]->idempotency_key, "%s", KEYS[i]);
    }
    c->answer = all[1]->id;
    serve_keep_answer(s, all[0]);
    serve_keep_answer(s, all[1]);
    serve_keep_answer(s, all[2]); /* the oldest is being read: the other goes */
    CHECK_INT(s->kept.n, 2);
    c->answer = 0;
    serve_keep_answer(s, all[3]); /* now it goes */
    CHECK_INT(s->kept.n, 2);
    CHECK_INT(n_answers(s), 2);
    for (int i = 0; i < 4; i++) {
        answer again = {.scope = 5, .created_ms = 5000.0};
        api_error e = {0};
        snprintf(again.idempotency_key, sizeof again.idempotency_key, "%s", KEYS[i]);
        CHECK_INT(serve_is_repeat_gone(s, &again, &e), i < 2);
        CHECK_STR(e.code, i < 2 ? "idempotency_reply_evicted" : "");
        again.created_ms = CREATED[i] + SERVE_IDEMPOTENCY_S * 1000.0; /* and for so long */
        CHECK_INT(serve_is_repeat_gone(s, &again, &e), i < 2);
        again.created_ms += 1.0;
        CHECK(!serve_is_repeat_gone(s, &again, &e));
    }
    made_end(s);
}

/* What there is no memory to remember is not; later there may be. */
static void test_unnoted(void)
{
    shares kept;
    shares_init(&kept, 1, 1, NULL);
    alloc_fail_at(1);
    shares_note_gone(&kept, 1, "a", 10.0);
    alloc_fail_at(0);
    CHECK(!shares_is_gone(&kept, 1, "a", 0.0));
    shares_note_gone(&kept, 1, "b", 10.0);
    CHECK(!shares_is_gone(&kept, 1, "a", 0.0) && shares_is_gone(&kept, 1, "b", 0.0));
    shares_deinit(&kept);
}

/* ---- the begin ---- */

ONE_FAILS(int, pthread_create, (pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *), void *ctx),
          (t, a, fn, ctx), EAGAIN)

/* A model that cannot be closed, for want of a thread or of memory to say so later, stays in memory. */
static void test_unload(void)
{
    static char some[1];
    for (int i = 0; i < 2; i++) {
        serve *s = begin();
        api_error e = {0};
        const model_ref ref = {.name = "m", .path = "/m"};
        s->shelf[s->n_shelf++] =
            (resident){.engine = (engine *)some, .ref = ref, .used_ms = 7.0, .n_bytes = 8};
        one_fails("pthread_create", i == 0);
        alloc_fail_at(i == 1);
        CHECK(!serve_unload(s, &ref, &e));
        alloc_fail_at(0);
        CHECK(one_fails_over());
        CHECK_STR(e.code, "out_of_memory");
        CHECK(!s->loader_started && !s->load.loaded && s->load.n_lent == 0);
        CHECK_INT(s->n_shelf, 1);
        CHECK(s->shelf[0].engine == (engine *)some && s->shelf[0].used_ms == 7.0 && s->shelf[0].n_bytes == 8);
        CHECK_STR(s->shelf[0].ref.path, "/m");
        CHECK_INT(n_closed, 0);
        made_end(s);
    }
}

static bool is_ignored(int sig)
{
    struct sigaction action = {0};
    CHECK_INT(sigaction(sig, NULL, &action), 0);
    return action.sa_handler == SIG_IGN;
}

/* Without memory or a thread there is no server, and the exit code says why. */
static void test_begin(void)
{
    serve_options_init(&made_options);
    for (size_t n = 1; n <= 2; n++) {
        int port = 7;
        alloc_fail_at(n);
        const serve_thread *t = serve_thread_start(&made_options, &port);
        alloc_fail_at(0);
        CHECK(!t);
        CHECK_INT(port, -EXIT_MEMORY);
    }
    int port = 7;
    (void)signal(SIGPIPE, SIG_DFL);
    one_fails("pthread_create", 1);
    CHECK(!serve_thread_start(&made_options, &port));
    CHECK(one_fails_over());
    CHECK_INT(port, -EXIT_MEMORY);
    CHECK(is_ignored(SIGPIPE)); /* a client that is gone must not end the program */
    (void)signal(SIGPIPE, SIG_DFL);
    alloc_fail_at(1);
    CHECK_INT(serve_run(&made_options), EXIT_MEMORY);
    CHECK(!is_ignored(SIGPIPE));
    one_fails("pthread_create", 1);
    CHECK_INT(serve_run(&made_options), EXIT_MEMORY);
    CHECK(one_fails_over());
    CHECK(is_ignored(SIGPIPE));
}

int main(void)
{
    log_set_level(LOG_OFF);
    test_drop();
    test_full();
    test_no_memory();
    test_stream();
    test_followers();
    test_keep();
    test_expire();
    test_room();
    test_unnoted();
    test_unload();
    test_begin();
    CHECK_DONE();
}
