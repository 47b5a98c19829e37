/* serve_kept: which finished answers stay, for how long, and which have to go for others; recorded. What is kept of whom, who
 * reads and how large an answer is, says the test. */
#include "base/log.h"
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"
#include "tests/server/service/told.h"

/* ---- what is asked of others ---- */

static double now_ms;
static int n_over;            /* so often is too much kept */
static uint64_t over_scope;   /* of whom */
static bool can_add, is_gone; /* what is said of memory, and of what had to go */
static uint64_t n_read;       /* the answers that are read: their ids */
static ledger_status memory;
static size_t stored;

WRAP(double, clock_ms, (void), return now_ms;)
WRAP(conn *, serve_find_follower, (const serve *s, const answer *a), (void)s; static conn c;
     return n_read >> a->id & 1 ? &c : NULL;)
WRAP(void, serve_drop_answer, (serve * s, answer *a), tell("drop %d", (int)a->id);
     CHECK(id_table_remove(&s->answers, a->id) == a); answer_destroy(a);)
WRAP(size_t, answer_bytes, (const answer *a), (void)a; return 70;)
WRAP(bool, shares_is_over, (const shares *s, size_t n, size_t n_bytes, uint64_t *owner), (void)s;
     tell("too much with %d of %d more: %s", (int)n, (int)n_bytes, n_over > 0 ? "yes" : "no");
     *owner = over_scope; return n_over-- > 0;)
WRAP(bool, shares_add, (shares * s, uint64_t owner, size_t n_bytes), (void)s;
     tell("keep %d of %d", (int)n_bytes, (int)owner); return can_add;)
WRAP(void, shares_note_gone, (shares * s, uint64_t owner, const char *name, double until_ms), (void)s;
     tell("gone of %d until %g: \"%s\"", (int)owner, until_ms, name);)
WRAP(bool, shares_is_gone, (const shares *s, uint64_t owner, const char *name, double now), (void)s;
     tell("is it gone, of %d at %g: \"%s\"", (int)owner, now, name); return is_gone;)
WRAP(ledger_status, ledger_get_status, (const ledger *l), (void)l; return memory;)
WRAP(size_t, response_store_bytes, (response_store * l), (void)l; return stored;)
WRAP(void, response_store_tick, (response_store * l, double now), (void)l; tell("conversations at %g", now);)

static serve *begin(const char *what)
{
    serve *s = made_serve();
    now_ms = 1000.0;
    n_over = 0;
    over_scope = 5;
    can_add = true;
    is_gone = false;
    n_read = 0;
    told_case("\n%s", what);
    return s;
}

/* What is known of an answer: a response, a name of its request, a socket. */
enum { HAS_REPLY = 1, HAS_NAME = 2, IS_SOCKET = 4 };

static answer *finished(serve *s, unsigned is, double created_ms, double finished_ms)
{
    answer *a = made_answer(s, &dialect_event);
    a->state = ANSWER_FINISHED;
    a->created_ms = created_ms;
    a->finished_ms = finished_ms;
    a->is_socket = is & IS_SOCKET;
    snprintf(a->request_id, sizeof a->request_id, "r%d", (int)a->id);
    if (is & HAS_REPLY) {
        a->has_reply = true;
        responses_reply_init(&a->reply, &a->opt, "ash", 1 << 16);
        snprintf(a->reply.id, sizeof a->reply.id, "resp_%d", (int)a->id);
    }
    if (is & HAS_NAME && is & IS_SOCKET) {
        snprintf(a->opt.event_id, sizeof a->opt.event_id, "event_%d", (int)a->id);
    } else if (is & HAS_NAME) {
        snprintf(a->idempotency_key, sizeof a->idempotency_key, "key_%d", (int)a->id);
    }
    for (size_t i = 0; i < HASH_BYTES; i++) {
        a->opt.body_hash[i] = (uint8_t)(i + 1);
    }
    return a;
}

static const char *name_of(unsigned is)
{
    static const char *const NAMES[] = {"nothing of it",
                                        "a response",
                                        "a name",
                                        "a response with a name",
                                        "nothing, over a socket",
                                        "a response over a socket",
                                        "a name over a socket",
                                        "a response with a name over a socket"};
    return NAMES[is];
}

/* An answer ends: read or not, with memory for it or without. */
static void test_keep(void)
{
    for (unsigned is = 0; is < 8; is++) {
        for (int with = 0; with < 4; with++) {
            char what[128];
            snprintf(what, sizeof what, "%s is kept%s%s", name_of(is), with & 1 ? ", and read" : "",
                     with & 2 ? ", without memory" : "");
            serve *s = begin(what);
            answer *a = finished(s, is, 1000, 2000);
            n_read = with & 1 ? 1u << a->id : 0;
            can_add = !(with & 2);
            serve_keep_answer(s, a);
            a = id_table_get(&s->answers, 1);
            tell("%s: %d", a ? "it is there" : "it is gone", a ? (int)a->kept_bytes : 0);
            made_end(s);
        }
    }
}

/* Which of several goes: the one of that key that goes first anyway, is kept, and is not read. */
static void test_room(void)
{
    for (int over = 0; over < 6; over++) {
        serve *s = begin("others go for it");
        answer *later = finished(s, HAS_REPLY, 0, 3000);
        answer *first = finished(s, HAS_REPLY, 0, 2000);
        answer *same = finished(s, HAS_REPLY, 0, 2000);
        answer *read = finished(s, HAS_REPLY, 0, 1000);
        answer *other = finished(s, HAS_REPLY, 0, 1500);
        answer *uncounted = finished(s, HAS_REPLY, 0, 500);
        answer *named = finished(s, HAS_REPLY | HAS_NAME, 0, 1900); /* it stays longer than its reply */
        answer *const all[] = {later, first, same, read, other, named};
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
            all[i]->kept_bytes = 1;
        }
        other->scope = 6;
        n_read = 1u << read->id;
        n_over = over;
        answer *last = finished(s, HAS_REPLY, 0, 4000);
        serve_keep_answer(s, last);
        tell("%d left", (int)s->answers.len);
        CHECK(id_table_get(&s->answers, uncounted->id) == uncounted);
        CHECK(id_table_get(&s->answers, other->id) == other);
        CHECK(id_table_get(&s->answers, read->id) == read);
        made_end(s);
    }
}

/* Wherever in its table an answer stands; its name may be a letter. */
static void test_places(void)
{
    static const uint64_t IDS[] = {62, 17}; /* they come to the first and the last place of a table */
    for (unsigned is = 0; is < 2; is++) {
        for (size_t k = 0; k < ARRAY_LEN(IDS); k++) {
            serve *s = begin("one that has to go");
            s->next_answer = IDS[k] - 1;
            n_over = 1;
            answer *a = finished(s, is ? HAS_NAME : HAS_REPLY | HAS_NAME | IS_SOCKET, 0, 2000);
            a->kept_bytes = 1;
            snprintf(is ? a->idempotency_key : a->opt.event_id, 2, "x");
            serve_expire_answers(s, 500000);
            CHECK_INT(s->answers.len, 0);
            finished(s, HAS_REPLY, 0, 2000);
            s->next_answer = IDS[k] - 1;
            finished(s, HAS_REPLY, 0, 2000);
            serve_expire_answers(s, 600000);
            CHECK_INT(s->answers.len, 0);
            made_end(s);
        }
    }
}

/* Both sides of the moment in which an answer is forgotten. */
static void test_time(void)
{
    static const struct {
        unsigned is;
        double created, finished, until;
    } CASES[] = {
        {HAS_REPLY, 0, 2000, 302000},
        {HAS_REPLY | HAS_NAME, 0, 2000, 600000},
        {HAS_REPLY | HAS_NAME, 0, 300000, 600000},
        {HAS_REPLY | HAS_NAME, 0, 300001, 600001},
        {HAS_NAME, 5000, 6000, 605000},
        {HAS_NAME | IS_SOCKET, 5000, 6000, 605000},
        {IS_SOCKET, 5000, 6000, 306000},
        {0, 5000, 6000, 306000},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        for (int how = 0; how < 3; how++) {
            serve *s = begin("the time of an answer");
            answer *a = finished(s, CASES[i].is, CASES[i].created, CASES[i].finished);
            if (how == 1) {
                a->state = ANSWER_RUNNING;
            } else if (how == 2) {
                n_read = 1u << a->id;
            }
            serve_expire_answers(s, CASES[i].until);
            CHECK_INT(s->answers.len, 1);
            serve_expire_answers(s, CASES[i].until + SERVE_TICK_MS - 1); /* it does not look so soon */
            CHECK_INT(s->answers.len, 1);
            serve_expire_answers(s, CASES[i].until + SERVE_TICK_MS);
            CHECK_INT(s->answers.len, how > 0);
            made_end(s);
            s = begin("a moment later");
            a = finished(s, CASES[i].is, CASES[i].created, CASES[i].finished);
            serve_expire_answers(s, CASES[i].until + 0.5);
            CHECK_INT(s->answers.len, 0);
            made_end(s);
        }
    }
    serve *s = begin("all of many, and room is made");
    n_over = 1;
    for (int i = 0; i < 45; i++) {
        finished(s, HAS_REPLY, 0, 2000)->kept_bytes = i == 30;
    }
    serve_expire_answers(s, 400000);
    CHECK_INT(s->answers.len, 0);
    CHECK_NEAR(s->expired_ms, 400000, 0);
    made_end(s);
}

/* Why there is nothing. */
static void test_gone(void)
{
    for (unsigned is = 0; is < 8; is++) {
        for (int gone = 0; gone < 2; gone++) {
            serve *s = begin(name_of(is));
            answer *a = finished(s, is, 1500, 2000);
            api_error e = {0};
            is_gone = gone;
            const bool says = serve_is_repeat_gone(s, a, &e);
            tell("%s: %d %s %s %s", says ? "it had to go" : "nothing", e.status, e.code, e.param, e.message);
            made_end(s);
        }
    }
    for (int gone = 0; gone < 2; gone++) {
        serve *s = begin("a response that is not there");
        api_error e = {0};
        is_gone = gone;
        serve_no_response(s, 5, "resp_1", &e);
        tell("%d %s %s %s", e.status, e.code, e.param, e.message);
        made_end(s);
    }
    serve *s = begin("the longest name");
    answer *a = finished(s, IS_SOCKET, 1500, 2000);
    memset(a->opt.event_id, 'e', sizeof a->opt.event_id - 1);
    api_error e;
    CHECK(!serve_is_repeat_gone(s, a, &e));
    a->is_socket = false;
    memset(a->idempotency_key, 'k', sizeof a->idempotency_key - 1);
    CHECK(!serve_is_repeat_gone(s, a, &e));
    made_end(s);
}

/* What is kept is not used by requests. */
static void test_memory(void)
{
    static const struct {
        size_t used, answers, talks;
    } CASES[] = {{1000, 0, 0}, {1000, 300, 200}, {1000, 999, 0}, {1000, 500, 500}, {1000, 900, 200}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin("memory");
        size_t kept = 0;
        memory = (ledger_status){.used = CASES[i].used};
        stored = CASES[i].talks;
        s->kept.n_bytes = CASES[i].answers;
        const ledger_status is = serve_memory_status(s, &kept);
        tell("%d of %d, %d kept", (int)is.used, (int)CASES[i].used, (int)kept);
        made_end(s);
    }
}

int main(void)
{
    log_set_level(LOG_INFO);
    test_keep();
    test_room();
    test_places();
    test_time();
    test_gone();
    test_memory();
    recorded_check("server/service/recorded/kept.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
