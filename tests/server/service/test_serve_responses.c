/* serve_responses: what is read, followed and deleted of kept responses, the order that each request about a conversation becomes,
 * and what an answer adds to its own. The stores and the history are the test, which writes down what they are asked. */
#include "server/protocol/dialects/talks.h"
#include "tests/alloc_fail.h"
#include "tests/server/service/told.h"

/* ---- what is asked of others ---- */

static char things[4];
static double now_ms;
static bool removes, has_input, fails_list, has_no_job;
static const char *input;
static err_code ran, submitted;

WRAP(double, clock_ms, (void), return now_ms;)
WRAP(void, serve_begin_follow, (serve * s, conn *c, const answer *a, int64_t next), (void)s;
     tell("follow %d by %d from %lld", (int)a->id, (int)c->id, (long long)next);)
WRAP(void, serve_cancel_answer, (serve * s, answer *a), (void)s; tell("cancel %d", (int)a->id);)
WRAP(void, serve_end_answer, (serve * s, answer *a), (void)s; tell("end %d", (int)a->id);)
WRAP(void, serve_compose_kept, (serve * s, answer *a), (void)s; tell("compose %d", (int)a->id);)
WRAP(void, serve_send_body, (serve * s, conn *c, bytes *body), (void)s;
     tell("send %d: %s", (int)c->id, bytes_str(body)); bytes_deinit(body);)
WRAP(void, serve_send_json, (serve * s, conn *c, int status, const bytes *body, const char *headers), (void)s;
     tell("send %d: %d %s%s", (int)c->id, status, bytes_str(body), headers ? headers : "");)
WRAP(void, serve_send_error, (serve * s, conn *c, const api_error *e), (void)s;
     tell("error to %d: %d %s %s: %s", (int)c->id, e->status, e->code, e->param, e->message);)
WRAP(void, serve_send_fault,
     (serve * s, conn *c, int status, const char *code, const char *param, const char *text), (void)s;
     tell("fault to %d: %d %s %s: %s", (int)c->id, status, code, param ? param : "-", text);)
WRAP(void, responses_reply_write, (bytes * out, const responses_reply *r), bytes_printf(out, "{%s}", r->id);)
WRAP(void, responses_reply_deinit, (responses_reply * r), (void)r;)
WRAP(bool, response_store_remove, (response_store * l, uint64_t scope, const char *id, double now), (void)l;
     tell("remove %s of %d at %g", id, (int)scope, now); return removes;)
WRAP(bool, response_store_get_input,
     (response_store * l, uint64_t scope, const char *id, double now, bytes *out), (void)l;
     tell("input %s of %d at %g", id, (int)scope, now); bytes_append_str(out, has_input ? input : "");
     return has_input;)
WRAP(bool, response_items_list, (bytes * out, const json *items, const response_items_page *page),
     tell("list %zu after '%s', %d, %s", json_len(items), page->after, (int)page->limit,
          page->newest_first ? "newest first" : "oldest first");
     bytes_append_str(out, "{list}"); return !fails_list;)

#define TALK(name)                                                                                           \
    WRAP(err_code, history_talk_##name,                                                                      \
         (history_store * st, uint64_t scope, const char *id, bytes *out, err_detail *d), (void)d;           \
         tell("history " #name " %s of %d%s%s", id, (int)scope, st == (history_store *)things ? "" : "?",    \
              out == &given ? "" : "?");                                                                     \
         return ERR_OK;)
#define TALK_TEXT(name)                                                                                      \
    WRAP(err_code, history_talk_##name,                                                                      \
         (history_store * st, uint64_t scope, const char *id, const bytes *text, err_detail *d), (void)d;    \
         tell("history " #name " %s of %d%s%s", id, (int)scope, st == (history_store *)things ? "" : "?",    \
              text == &given ? "" : "?");                                                                    \
         return ERR_OK;)
static bytes given;
TALK(get)
TALK(item)
TALK_TEXT(put)
TALK_TEXT(add)
WRAP(err_code, history_talk_remove, (history_store * st, uint64_t scope, const char *id, err_detail *d),
     (void)d;
     tell("history remove %s of %d%s", id, (int)scope, st == (history_store *)things ? "" : "?");
     return ERR_OK;)

WRAP(
    err_code, talk_run, (const talk_order *o, const talk_keeper *k, bytes *reply, err_detail *d),
    tell("order %d of %d: [%s] [%s] after [%s], %d, %s, %s %s", o->verb, (int)o->scope, o->id, o->item,
         o->after, (int)o->page.limit, o->page.newest_first ? "newest first" : "oldest first",
         bytes_str(&o->body), reply ? "with a reply" : "without a reply");
    if (k->ctx == things) {
        CHECK(k->get(k->ctx, 1, "a", &given, d) == ERR_OK && k->put(k->ctx, 2, "b", &given, d) == ERR_OK &&
              k->add(k->ctx, 3, "c", &given, d) == ERR_OK && k->remove(k->ctx, 4, "d", d) == ERR_OK);
    } if (reply) bytes_append_str(reply, "{reply}");
    return ran == ERR_OK ? ERR_OK : err_set_param(d, ran, "items", "named", "%0300d", 7);)

history_job *__real_history_job_create(history_verb verb);
WRAP(history_job *, history_job_create, (history_verb verb), CHECK_INT(verb, HISTORY_WORK);
     return has_no_job ? NULL : __real_history_job_create(verb);)

static void run_job(history_job *job)
{
    bytes reply = bytes_empty(100);
    err_detail d = {0};
    CHECK_INT(job->work((history_store *)things, job->ctx, &reply, &d), ran);
    bytes_deinit(&reply);
    history_job_free(job);
}

WRAP(void, serve_submit_history, (serve * s, conn *c, history_job *job), (void)s;
     tell("job for %d, answer %d", (int)c->id, (int)job->answer); run_job(job);)
WRAP(err_code, history_submit, (history * h, history_job *job), CHECK(h == (history *)(things + 1));
     tell("job of answer %d", (int)job->answer); if (submitted == ERR_OK) run_job(job); return submitted;)
WRAP(err_code, history_call, (history * h, history_work *work, void *ctx, bytes *out, err_detail *d),
     CHECK(h == (history *)(things + 1) && out == &given);
     return work((history_store *)things, ctx, out, d);)

/* ---- cases ---- */

static const dialect LOGGED = {.name = "logged", .id_prefix = "l-", .has_log = true};

static serve *begin(void)
{
    serve *s = made_serve();
    now_ms = 5000.0;
    removes = has_input = fails_list = has_no_job = false;
    input = "";
    ran = submitted = ERR_OK;
    return s;
}

static answer *kept(serve *s, const char *id)
{
    answer *a = made_answer(s, &LOGGED);
    a->has_reply = true;
    snprintf(a->reply.id, sizeof a->reply.id, "%s", id);
    return a;
}

static conn *ask(serve *s, net_method method, const char *path, const char *query)
{
    conn *c = made_conn(s, 3);
    made_route(c, method, path);
    snprintf(c->query_string, sizeof c->query_string, "%s", query);
    return c;
}

/* ---- responses ---- */

static void test_get(void)
{
    static const struct {
        const char *query, *path;
        bool is_stored, is_there;
    } CASES[] = {
        {"", "/v1/responses/resp_1", true, true},
        {"", "/v1/responses/resp_1", false, true},
        {"", "/v1/responses/resp_2", true, true},
        {"stream=true", "/v1/responses/resp_1", true, true},
        {"stream=true&starting_after=7", "/v1/responses/resp_1", true, true},
        {"stream=true&starting_after=-1", "/v1/responses/resp_1", true, true},
        {"stream=true&starting_after=-2", "/v1/responses/resp_1", true, true},
        {"stream=true&starting_after=2147483647", "/v1/responses/resp_1", true, true},
        {"stream=true&starting_after=2147483648", "/v1/responses/resp_1", true, true},
        {"stream=false&starting_after=x", "/v1/responses/resp_1", true, true},
        {"stream=truer", "/v1/responses/resp_1", true, true},
        {"stream=1234567", "/v1/responses/resp_1", true, true},
        {"stream=12345678", "/v1/responses/resp_1", true, true},
        {"stream=", "/v1/responses/resp_1", true, true},
        {"", "/v1/responses/resp_1/cancel", true, true},
        {"stream=true", "/v1/responses/resp_1/cancel", false, true},
        {"", "/v1/responses/resp_2/cancel", false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin();
        answer *a = kept(s, "resp_1");
        a->opt.store = CASES[i].is_stored;
        conn *c = ask(s, strstr(CASES[i].path, "cancel") ? NET_POST : NET_GET, CASES[i].path, CASES[i].query);
        told_case("response %s?%s%s", CASES[i].path, CASES[i].query, CASES[i].is_stored ? ", stored" : "");
        serve_on_response(s, c);
        made_end(s);
    }
}

static void test_delete(void)
{
    for (int with = 0; with < 8; with++) {
        serve *s = begin();
        answer *a = kept(s, with & 1 ? "resp_1" : "resp_2");
        a->opt.store = with & 2;
        removes = with & 4;
        told_case("delete%s%s%s", with & 1 ? ", there" : "", with & 2 ? ", to be stored" : "",
                  with & 4 ? ", stored" : "");
        serve_on_response(s, ask(s, NET_DELETE, "/v1/responses/resp_1", ""));
        tell("it is%s to be stored", a->opt.store ? "" : " not");
        made_end(s);
    }
}

static void test_items(void)
{
    static const char *const QUERIES[] = {"",
                                          "order=asc",
                                          "order=desc",
                                          "order=",
                                          "order=up",
                                          "order=12345678",
                                          "limit=1",
                                          "limit=100",
                                          "limit=0",
                                          "limit=101",
                                          "after=12345678901234567890123456789012345678901234567",
                                          "after=123456789012345678901234567890123456789012345678"};
    for (size_t i = 0; i < ARRAY_LEN(QUERIES); i++) {
        serve *s = begin();
        has_input = true;
        input = "{},{}";
        told_case("items?%s", QUERIES[i]);
        serve_on_input_items(s, ask(s, NET_GET, "/v1/responses/resp_1/input_items", QUERIES[i]));
        made_end(s);
    }
    for (int with = 0; with < 4; with++) {
        static char deep[LIMIT_JSON_DEPTH * 2 + 16];
        serve *s = begin();
        const size_t depth = LIMIT_JSON_DEPTH + 1 + (with == 3); /* with the list around them */
        memset(deep, '[', depth);
        memset(deep + depth, ']', depth);
        deep[2 * depth] = '\0';
        has_input = with > 0;
        input = with == 1 ? "{}" : deep;
        fails_list = with == 1;
        told_case("items %d", with);
        serve_on_input_items(s, ask(s, NET_GET, "/v1/responses/resp_1/input_items", ""));
        made_end(s);
    }
    serve *s = begin(); /* no memory for their text */
    conn *c = ask(s, NET_GET, "/v1/responses/resp_1/input_items", "");
    has_input = true;
    told_case("items without memory");
    alloc_fail_at(1);
    serve_on_input_items(s, c);
    alloc_fail_at(0);
    made_end(s);
}

/* ---- conversations ---- */

#define ID_47 "conv_123456789012345678901234567890123456789012"

static const struct {
    net_method method;
    const char *path, *query;
} TALKS[] = {
    {NET_POST, "/v1/conversations", ""},
    {NET_GET, "/v1/conversations/conv_1", ""},
    {NET_POST, "/v1/conversations/conv_1", ""},
    {NET_DELETE, "/v1/conversations/conv_1", ""},
    {NET_GET, "/v1/conversations/conv_1/items", "order=asc&limit=7&after=x"},
    {NET_POST, "/v1/conversations/conv_1/items", ""},
    {NET_GET, "/v1/conversations/conv_1/items/msg_1", ""},
    {NET_DELETE, "/v1/conversations/conv_1/items/msg_1", ""},
    {NET_GET, "/v1/conversations/" ID_47, ""},
    {NET_GET, "/v1/conversations/" ID_47 "3", ""},
    {NET_GET, "/v1/conversations/conv_1/items", "limit=0"},
};

static void test_conversations(void)
{
    enum { MEMORY, HISTORY, FAILS, NO_JOB, NO_COPY, N };
    for (int with = 0; with < N; with++) {
        for (size_t i = 0; i < (with == MEMORY ? ARRAY_LEN(TALKS) : 1); i++) {
            serve *s = begin();
            conn *c = ask(s, TALKS[i].method, TALKS[i].path, TALKS[i].query);
            bytes body = bytes_empty(100);
            bytes_append_str(&body, "{body}");
            s->history = with == MEMORY || with == FAILS ? NULL : (history *)(things + 1);
            ran = with == FAILS ? ERR_LIMIT : ERR_OK;
            has_no_job = with == NO_JOB;
            told_case("conversation %d: %d %s", with, TALKS[i].method, TALKS[i].path);
            alloc_fail_at(with == NO_COPY ? 1 : 0);
            serve_on_conversations(s, c, &body);
            alloc_fail_at(0);
            tell("the body is %s", body.max > 0 ? "here" : "gone");
            bytes_deinit(&body);
            made_end(s);
        }
    }
    serve *s = begin();
    conn *c = ask(s, NET_GET, "/v1/conversations/conv_1/items/msg_1", "");
    bytes body = bytes_empty(0);
    memset(c->param, 'p', sizeof c->param - 1);
    told_case("an item with a name of %zu", strlen(c->param));
    snprintf(c->path, sizeof c->path, "/v2/conversations/conv_1");
    serve_on_conversations(s, c, &body);
    made_end(s);
}

static void test_read(void)
{
    static const char *const IDS[] = {"conv_1", "conv", "msg_1", "conv_"};
    for (size_t i = 0; i < ARRAY_LEN(IDS); i++) {
        serve *s = begin();
        err_detail d;
        s->history = (history *)(things + 1);
        told_case("read %s", IDS[i]);
        CHECK_INT(serve_read_talk(s, 6, IDS[i], &given, &d), ERR_OK);
        made_end(s);
    }
}

/* ---- what an answer adds ---- */

static void test_extended(void)
{
    enum {
        GOOD,
        NO_TALK,
        NO_ITEMS,
        ADDED,
        FAILED,
        NOTHING_BEFORE,
        LOST,
        NO_BODY,
        REFUSED,
        GONE,
        HISTORY,
        NO_JOB,
        NO_COPY,
        BUSY,
        AGAIN,
        HISTORY_LOST,
        N
    };
    static const char *const NAMES[] = {"good",    "none",           "no items",    "added before",
                                        "failed",  "nothing before", "lost",        "no memory",
                                        "refused", "gone",           "history",     "no job",
                                        "no copy", "busy",           "waits still", "history, lost"};
    for (int with = 0; with < N; with++) {
        serve *s = begin();
        answer *a = kept(s, "resp_1");
        a->state = ANSWER_FINISHED;
        snprintf(a->opt.conversation, sizeof a->opt.conversation, "%s", with == NO_TALK ? "" : "conv_1");
        a->opt.items = bytes_empty(1000);
        bytes_append_str(&a->opt.items, with == NO_ITEMS         ? ""
                                        : with == NOTHING_BEFORE ? "{new}"
                                                                 : "{old},{new}");
        a->opt.n_before = with == NO_ITEMS || with == NOTHING_BEFORE ? 0 : 5;
        a->talk_stage = with == ADDED ? TALK_ADDED : with == AGAIN ? TALK_WAITING : TALK_IDLE;
        a->finish = with == FAILED ? GEN_FINISH_ERROR : GEN_FINISH_STOP;
        a->opt.items.failed = with == LOST || with == HISTORY_LOST;
        s->history = with >= HISTORY ? (history *)(things + 1) : NULL;
        ran = with == REFUSED ? ERR_LIMIT : with == GONE ? ERR_NOT_FOUND : ERR_OK;
        submitted = with == BUSY || with == AGAIN ? ERR_BUSY : ERR_OK;
        has_no_job = with == NO_JOB;
        told_case("an answer adds: %s", NAMES[with]);
        alloc_fail_at(with == NO_BODY ? 1 : with == NO_COPY ? 2 : 0);
        const bool goes_on = serve_extend_conversation(s, a);
        alloc_fail_at(0);
        tell("%s", goes_on ? "it goes on" : "it ends");
        told_answer(a);
        made_end(s);
    }
}

static void test_written(void)
{
    for (int with = 0; with < 7; with++) {
        serve *s = begin();
        answer *a = kept(s, "resp_1");
        history_reply r = {.answer = with == 0 ? 9 : a->id};
        a->talk_stage = with == 1 ? TALK_WAITING : TALK_WRITING;
        a->state = with == 2 ? ANSWER_FINISHED : ANSWER_RUNNING;
        r.code = with == 4 ? ERR_NOT_FOUND : with == 5 ? ERR_IO : with == 6 ? ERR_LIMIT : ERR_OK;
        snprintf(r.detail.text, sizeof r.detail.text, "%0300d", 5);
        snprintf(r.detail.name, sizeof r.detail.name, "named");
        told_case("written %d", with);
        serve_on_extended(s, &r);
        told_answer(a);
        made_end(s);
    }
}

int main(void)
{
    test_get();
    test_delete();
    test_items();
    test_conversations();
    test_read();
    test_extended();
    test_written();
    recorded_check("server/service/recorded/responses.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
