/* prep: what workers say of jobs that are cancelled, evicted, ended or too large, and what stays with whoever submits one. Jobs
 * wait for the test within their parser, time is the test's, and threads can be refused. */
#include "server/service/prep.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/limits.h"
#include "base/log.h"
#include "server/service/prep_turns.h"
#include "tests/check.h"
#include "tests/server/service/prep_jobs.h"

/* ---- threads and time ---- */

int __real_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx);
double __real_clock_ms(void);
double __wrap_clock_ms(void);

static int n_begun, n_allowed = 1000;
static _Atomic double ahead_ms, stopped_ms; /* stopped_ms: 0 while it passes */

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *), void *ctx)
{
    return n_begun < n_allowed ? n_begun++, __real_pthread_create(out, attr, fn, ctx) : EAGAIN;
}

double __wrap_clock_ms(void)
{
    return (stopped_ms > 0.0 ? stopped_ms : __real_clock_ms()) + ahead_ms;
}

/* ---- tests ---- */

/* Nothing is read for who has left, but what ends a response names it; a preview is empty. */
static void test_left(void)
{
    prep *p = begin(1, 8, 1 << 20);
    prep_ticket_cancel(ticket);
    CHECK_INT(submit(p, (prep_order){.dialect = &CHAT, .id = 1}, "no JSON"), ERR_OK);
    CHECK_STR(heard(1), "refused 1 499 cancelled|");
    CHECK_INT(submit(p, (prep_order){.dialect = &dialect_event, .id = 2},
                     "{\"type\": \"response.create\", \"event_id\": \" of e\", \"input\": \"hi\"}"),
              ERR_OK);
    CHECK_STR(heard(1), "refused 2 499 cancelled of e hashed|");
    CHECK_INT(submit(p, (prep_order){.dialect = &dialect_queries[QUERY_TOKENIZE], .id = 3}, "no JSON"),
              ERR_OK);
    CHECK_STR(heard(1), "refused 3 499 cancelled|");
    CHECK_INT(submit(p, (prep_order){.id = 4}, "file_of_nobody"), ERR_OK);
    CHECK_STR(heard(1), "preview 4 |");
    new_ticket();
    CHECK_INT(submit(p, (prep_order){.dialect = &CHAT, .id = 5}, "no JSON"), ERR_OK);
    CHECK_STR(heard(1), "refused 5 400 invalid_json|");
    CHECK_INT(
        submit(p, (prep_order){.dialect = &dialect_queries[QUERY_TOKENIZE], .id = 6}, "{\"content\": \"a\"}"),
        ERR_OK);
    CHECK_STR(heard(1), "replied 6 {\"tokens\":[97]}|");
    prep_destroy(p);
}

static void leave(api_request *r)
{
    (void)r;
    prep_ticket_cancel(ticket);
}

static void leave_late(const api_request *r, const prepare_hooks *hooks)
{
    (void)r;
    CHECK(!hooks->cancelled(hooks->ctx));
    prep_ticket_cancel(ticket);
    CHECK(hooks->cancelled(hooks->ctx));
}

/* Who leaves while its body is read, or once its prompt is there: the engine gets nothing. */
static void test_leaves(void)
{
    const prep_order order = {.dialect = &CHAT, .id = 1, .says_accepted = true, .submits = true};
    engine_status status;
    prep *p = begin(1, 8, 1 << 20);
    on_parse = leave;
    CHECK_INT(submit(p, order, HI), ERR_OK);
    CHECK_STR(heard(2), "accepted 1 |refused 1 499 cancelled|");
    new_ticket();
    on_parse = NULL;
    on_prepare = leave_late;
    CHECK_INT(submit(p, order, HI), ERR_OK);
    CHECK_STR(heard(2), "accepted 1 |refused 1 499 cancelled|");
    engine_get_status(e, &status);
    CHECK_INT(status.n_requests, 0);
    prep_destroy(p);
}

/* Ended while one is read and one waits: what runs hears of it, what waits is refused unread. */
static void test_end(void)
{
    CHECK(prep_end(NULL, 0));
    prep_destroy(NULL);
    prep *p = begin(1, 8, 1 << 20);
    on_parse = wait_for_test;
    CHECK_INT(submit(p, (prep_order){.dialect = &CHAT, .id = 1}, HI), ERR_OK);
    wait_until_inside(1);
    CHECK_INT(submit(p, (prep_order){.dialect = &dialect_event, .id = 2}, "no JSON"), ERR_OK);
    CHECK(!prep_is_idle(p));
    CHECK(!prep_end(p, 0));
    CHECK(!prep_end(p, 20)); /* waits for it as long */
    let_go(true);
    CHECK(prep_end(p, 60000));
    CHECK(prep_is_idle(p));
    CHECK_STR(heard(2), "refused 1 499 cancelled|refused 2 499 cancelled|");
    prep_destroy(p);
}

static atomic_int n_steps;

/* Computes until it must not. */
static void compute(api_request *r)
{
    while (r->may_go_on(r->may_ctx)) {
        atomic_fetch_add(&n_steps, 1);
    }
}

static void wait_for_steps(void)
{
    const int n = atomic_load(&n_steps);
    while (atomic_load(&n_steps) < n + 2) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

/* Where no thread is left for a job, the one that has had the most ends for it. */
static void test_room(void)
{
    prep *p = begin(1, 8, 1 << 20);
    on_parse = compute;
    CHECK_INT(submit(p, (prep_order){.dialect = &CHAT, .id = 1}, HI), ERR_OK);
    wait_for_steps();
    ahead_ms = ahead_ms + 10.0 * (PREP_ROOM_MS + 1);
    wait_for_steps();
    CHECK_INT(
        submit(p, (prep_order){.dialect = &dialect_queries[QUERY_TOKENIZE], .id = 2}, "{\"content\": \"a\"}"),
        ERR_OK);
    CHECK_STR(heard(2), "refused 1 429 queue_full|replied 2 {\"tokens\":[97]}|");
    prep_destroy(p);
}

/* As many threads as there are jobs, within bounds; without a new one a job waits for another's end. */
static void test_threads(void)
{
    static const struct {
        int n_threads, n_allowed, n;
    } CASES[] = {{0, 100, 1}, {2, 100, 2}, {1000, 100, LIMIT_PREP_JOBS}, {3, 2, 2}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        n_begun = 0;
        n_allowed = CASES[i].n_allowed;
        prep *p = begin(CASES[i].n_threads, MOST, 1 << 20);
        prep_status status;
        CHECK_INT(n_begun, 1);
        on_parse = wait_for_test;
        for (int k = 0; k < LIMIT_PREP_JOBS + 8; k++) {
            CHECK_INT(submit(p, (prep_order){.dialect = &CHAT, .id = 1}, HI), ERR_OK);
        }
        CHECK_INT(n_begun, CASES[i].n);
        do {
            prep_get_status(p, &status);
        } while (status.n_begun < CASES[i].n);
        CHECK_INT(status.n_begun, CASES[i].n);
        CHECK_INT(status.n_waiting, LIMIT_PREP_JOBS + 8 - CASES[i].n);
        CHECK_INT(status.n_computing, 1);
        let_go(true);
        wait_until_idle(p);
        prep_get_status(p, &status);
        CHECK_INT(status.n_begun + status.n_computing + status.n_waiting, 0);
        (void)heard(LIMIT_PREP_JOBS + 8);
        CHECK(prep_end(p, 60000)); /* those that never began are not waited for */
        prep_destroy(p);
    }
    n_begun = n_allowed = 0;
    CHECK(prep_create(1, 1, 1, 1000, NULL, NULL, NULL, post, NULL) == NULL);
    n_allowed = 1000;
}

/* What does not fit stays with its owner. */
static void test_full(void)
{
    const size_t n = strlen(HI);
    ledger *l = ledger_create(1 << 20);
    CHECK(l != NULL);
    prep *p = begin(1, 1, 3 * n);
    prep_set_stores(p, l, NULL);
    on_parse = wait_for_test;
    const prep_order order = {.dialect = &CHAT, .id = 1};
    for (int round = 0; round < 2; round++) { /* and what has ended leaves its place */
        is_open = false;
        CHECK_INT(submit(p, order, HI), ERR_OK);
        wait_until_inside(1);
        CHECK_INT(submit(p, order, HI), ERR_OK);
        bytes body = body_of(HI);
        json_doc *doc = NULL;
        ledger_hold hold = {0};
        CHECK_INT(json_parse(&doc, HI, n, LIMIT_JSON_DEPTH, NULL), ERR_OK);
        json_doc *was = doc;
        prep_order more = order;
        more.engine = e;
        CHECK_INT(prep_submit(p, &more, &body, &doc, &hold, ticket), ERR_BUSY); /* one more than may wait */
        CHECK(body.len == n && doc == was && hold.ledger == l && hold.bytes == n);
        ledger_give_all(&hold);
        bytes_append(&body, HI, n);
        CHECK_INT(prep_submit(p, &more, &body, &doc, &hold, ticket), ERR_BUSY);
        CHECK(body.len == 2 * n && doc == was && hold.bytes == 0);
        json_free(doc);
        bytes_deinit(&body);
        let_go(true);
        CHECK_STR(heard(2), "prepared 1 with its request|prepared 1 with its request|");
        wait_until_idle(p);
        CHECK_INT(ledger_get_status(l).used, 0);
    }
    on_parse = NULL;
    bytes longer = body_of(HI);
    while (longer.len <= 3 * n) {
        bytes_append_char(&longer, ' ');
    }
    CHECK_INT(submit(p, order, bytes_str(&longer)), ERR_BUSY);
    longer.data[3 * n] = '\0'; /* the most there may be */
    CHECK_INT(submit(p, order, bytes_str(&longer)), ERR_OK);
    CHECK_STR(heard(1), "prepared 1 with its request|");
    wait_until_idle(p);
    bytes_deinit(&longer);
    /* The memory of a body, and of what reading it takes. */
    ledger_set_limit(l, n - 1);
    CHECK_INT(submit(p, order, HI), ERR_BUSY);
    ledger_set_limit(l, n);
    CHECK_INT(submit(p, order, HI), ERR_OK);
    const char *said = heard(1);
    CHECK_STR(said, "refused 1 413 memory_limit|");
    ledger_set_limit(l, 1 << 20);
    /* What has its place already takes none. */
    bytes body = body_of(HI);
    json_doc *doc = NULL;
    ledger_hold hold = {.ledger = l};
    ledger_set_limit(l, n);
    CHECK(ledger_try(&hold, 5));
    prep_order part = order;
    part.engine = e;
    CHECK_INT(prep_submit(p, &part, &body, &doc, &hold, ticket), ERR_OK); /* the rest alone */
    CHECK_STR(heard(1), "refused 1 413 memory_limit|");
    ledger_set_limit(l, 1 << 20);
    body = body_of(HI);
    hold.ledger = l;
    CHECK(ledger_try(&hold, 5000));
    part.hash_body = true;
    CHECK_INT(prep_submit(p, &part, &body, &doc, &hold, ticket), ERR_OK);
    CHECK_INT(hold.bytes, 0);
    CHECK_STR(heard(1), "prepared 1 with its request hashed|");
    prep_destroy(p);
    CHECK_INT(ledger_get_status(l).used, 0);
    ledger_destroy(l);
}

static void say_progress(const api_request *r, const prepare_hooks *hooks)
{
    static const struct {
        gen_phase phase;
        int32_t processed, total;
        double later_ms;
    } STEPS[] = {{GEN_PHASE_MEDIA, 1, 9, 0},  {GEN_PHASE_MEDIA, 2, 9, 49}, {GEN_PHASE_MEDIA, 3, 9, 1},
                 {GEN_PHASE_MEDIA, 4, 9, 0},  {GEN_PHASE_MEDIA, 9, 9, 0},  {GEN_PHASE_MEDIA, 9, 9, 0},
                 {GEN_PHASE_VISION, 1, 9, 0}, {GEN_PHASE_VISION, 2, 9, 0}};
    (void)r;
    for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
        stopped_ms = stopped_ms + STEPS[i].later_ms;
        hooks->progress(hooks->ctx, STEPS[i].phase, STEPS[i].processed, STEPS[i].total);
    }
}

/* Each phase, its end, and between them not too often. */
static void test_progress(void)
{
    prep *p = begin(1, 8, 1 << 20);
    stopped_ms = 1e6;
    on_prepare = say_progress;
    CHECK_INT(submit(p, (prep_order){.dialect = &CHAT, .id = 1}, HI), ERR_OK);
    char want[200];
    snprintf(want, sizeof want,
             "progress 1 %d 1/9|progress 1 %d 3/9|progress 1 %d 9/9|progress 1 %d 9/9|progress 1 %d "
             "1/9|prepared 1 "
             "with its request|",
             GEN_PHASE_MEDIA, GEN_PHASE_MEDIA, GEN_PHASE_MEDIA, GEN_PHASE_MEDIA, GEN_PHASE_VISION);
    CHECK_STR(heard(6), want);
    stopped_ms = 0;
    prep_destroy(p);
}

/* A body without media may be so long. */
static void test_long(void)
{
    prep *p = begin(1, 8, 16 << 20);
    for (size_t more = 0; more < 2; more++) {
        bytes text = bytes_empty(LIMIT_TEXT_BODY_BYTES + 10);
        bytes_append_str(&text, HI);
        while (text.len < LIMIT_TEXT_BODY_BYTES + more) {
            bytes_append_char(&text, ' ');
        }
        CHECK_INT(submit(p, (prep_order){.dialect = &CHAT, .id = 1}, bytes_str(&text)), ERR_OK);
        wait_until_idle(p);
        CHECK_STR(messages[0]->error.message,
                  more ? "a request without images and videos may have 4 MiB" : "");
        CHECK_STR(heard(1), more ? "refused 1 413 body_too_large|" : "prepared 1 with its request|");
        bytes_deinit(&text);
    }
    bytes text = bytes_empty(LIMIT_TEXT_BODY_BYTES + 1000); /* with one it may be longer */
    bytes_append_str(&text, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", "
                            "\"image_url\": {\"url\": \"data:image/png;base64,iVBORw0KGgoAAAAA\"}}]}]}");
    while (text.len <= LIMIT_TEXT_BODY_BYTES) {
        bytes_append_char(&text, ' ');
    }
    CHECK_INT(submit(p, (prep_order){.dialect = &CHAT, .id = 1}, bytes_str(&text)), ERR_OK);
    CHECK_STR(heard(1), "refused 1 400 image_parse_error|");
    bytes_deinit(&text);
    prep_destroy(p);
}

static void plan_call(api_request *r)
{
    r->reply.plan = calloc(1, sizeof *r->reply.plan);
    CHECK(r->reply.plan != NULL);
    r->reply.plan->n_calls = 1;
}

/* Calls that a person has allowed run before the first round, not before a later one. */
static void test_calls(void)
{
    prep *p = begin(1, 8, 1 << 20);
    on_parse = plan_call;
    prep_order order = {.dialect = &CHAT, .id = 1, .says_accepted = true};
    CHECK_INT(submit(p, order, HI), ERR_OK);
    CHECK_STR(heard(1), "tools 1 |");
    order.turns = "[]";
    CHECK_INT(submit(p, order, HI), ERR_OK);
    CHECK_STR(heard(1), "prepared 1 with its request|");
    prep_destroy(p);
}

static int32_t most_tokens;

static void note_tokens(const api_request *r, const prepare_hooks *hooks)
{
    (void)hooks;
    most_tokens = r->in->params.max_tokens;
}

static void compact_late(api_request *r)
{
    r->compact_at = 15000;
}

/* A later round has what the first left of its tokens, one at least. */
static void test_spent(void)
{
    static const struct {
        int n_written, most, left;
    } CASES[] = {{0, 10, 10}, {3, 10, 7}, {9, 10, 1}, {10, 10, 1}, {11, 10, 1}, {5, -1, -1}};
    prep *p = begin(1, 8, 1 << 20);
    on_parse = compact_late;
    on_prepare = note_tokens;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"max_tokens\": %d, %s", CASES[i].most, HI + 1);
        const char *body = CASES[i].most > 0 ? text : HI;
        const prep_order order = {
            .dialect = &CHAT, .id = 1, .may_compact = true, .n_written = CASES[i].n_written};
        CHECK_INT(submit(p, order, body), ERR_OK);
        CHECK_STR(heard(1), "prepared 1 with its request|");
        CHECK_INT(most_tokens, CASES[i].left);
    }
    prep_destroy(p);
}

int main(void)
{
    log_set_level(LOG_OFF);
    jobs_begin();
    test_left();
    test_leaves();
    test_end();
    test_room();
    test_threads();
    test_full();
    test_progress();
    test_long();
    test_calls();
    test_spent();
    jobs_end();
    CHECK_DONE();
}
