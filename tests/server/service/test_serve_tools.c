/* serve_tools: the rounds of an answer whose tools run here: which calls are taken out of what the model writes, which run, are
 * asked about or refused, what goes back to the model, and how it ends. What is asked of others is written down. */
#include "tests/alloc_fail.h"
#include "tests/server/service/told.h"

/* ---- what is asked of others ---- */

static char things[4];
static int n_ids;
static double now_ms;
static err_code prepared, called;
static bool has_no_result, has_no_message, retries;
static mcp_catalog *servers;
static loop_message *posted;

WRAP(double, clock_ms, (void), return now_ms;)
WRAP(void, hash_random_id, (char *out, size_t cap, const char *prefix),
     snprintf(out, cap, "%s%d", prefix, ++n_ids);)
WRAP(void, serve_emit_item, (serve * s, answer *a, const bytes *item, bool is_over), (void)s;
     CHECK(a && (item->failed || item->data));
     tell("item%s: %s%s", is_over ? "" : " so far", bytes_str(item), item->failed ? " failed" : "");)
WRAP(err_code, mcp_call, (mcp * m, const mcp_order *o, err_detail *d), CHECK(m == (mcp *)things);
     tell("call %d of %d: %d %s %s %s", (int)o->place, (int)o->owner, o->what, o->server, o->name,
          o->arguments ? o->arguments : "-");
     return called == ERR_OK ? ERR_OK : err_set(d, called, "too many calls");)
WRAP(void, mcp_cancel, (mcp * m, uint64_t owner), CHECK(m == (mcp *)things);
     tell("calls of %d end", (int)owner);)
WRAP(bool, mcp_retry, (mcp * m, const char *label), CHECK(m == (mcp *)things); tell("retry %s", label);
     return retries;)
WRAP(mcp_catalog *, mcp_take_catalog, (mcp * m), (void)m; return servers ? mcp_catalog_take(servers) : NULL;)
WRAP(void, serve_end_answer, (serve * s, answer *a), (void)s; tell("end %d", (int)a->id);)
WRAP(err_code, serve_prepare_answer, (serve * s, answer *a), (void)s; tell("prepare %d", (int)a->id);
     return prepared;)
WRAP(void, prep_ticket_cancel, (prep_ticket * t), if (t) tell("cancel ticket");)
WRAP(void, serve_schedule, (serve * s, int ms), (void)s; tell("schedule %d", ms);)
WRAP(loop_message *, serve_new_message,
     (const serve *s, loop_message_type type, uint64_t id, bool must_arrive), (void)s;
     tell("message %d for %d%s", type, (int)id, must_arrive ? ", which must arrive" : "");
     return has_no_message ? NULL : loop_message_create(type, id);)
WRAP(void, serve_post, (void *ctx, loop_message *m), (void)ctx; tell("post"); posted = m;)
WRAP(void, serve_send_fault,
     (serve * s, conn *c, int status, const char *code, const char *param, const char *text), (void)s;
     tell("fault to %d: %d %s %s: %s", (int)c->id, status, code, param ? param : "-", text);)
WRAP(void, serve_send_body, (serve * s, conn *c, bytes *body), (void)s;
     tell("send %d: %s", (int)c->id, bytes_str(body)); bytes_deinit(body);)
WRAP(void, responses_reply_in_progress, (responses_reply * r), (void)r; tell("in progress");)
WRAP(void, responses_reply_deinit, (responses_reply * r), (void)r;)

mcp_result *__real_mcp_result_create(uint64_t owner, uint32_t place);
WRAP(mcp_result *, mcp_result_create, (uint64_t owner, uint32_t place),
     tell("a result of %d for %d", (int)place, (int)owner);
     return has_no_result ? NULL : __real_mcp_result_create(owner, place);)

/* ---- cases ---- */

static json_doc *schema;
static const dialect PLAIN = {.name = "plain", .id_prefix = "p-"},
                     LOGGED = {.name = "logged", .id_prefix = "l-", .has_log = true};
static const mcp_server_config CONFIGS[] = {{.label = "files"}, {.label = "web"}};
static const mcp_server_view VIEWS[] = {{.config = &CONFIGS[0]}, {.config = &CONFIGS[1]}};
static mcp_tool TOOLS[] = {{.name = "read", .title = "Read", .description = "reads", .is_read_only = true},
                           {.name = "write", .title = "Write", .description = "writes"},
                           {.name = "fetch", .title = "Fetch", .description = "fetches"}};
static planned_tool PLANNED[] = {{"read", &VIEWS[0], &TOOLS[0], .runs_unasked = true},
                                 {"write", &VIEWS[0], &TOOLS[1], .runs_unasked = false},
                                 {"web__fetch", &VIEWS[1], &TOOLS[2], .runs_unasked = true}};
static const char *OWN[] = {"mine"};
#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"
static planned_call CALLS[] = {{"mcpr_1", "{\"a\":\"" LONG "\"}", &PLANNED[1]}, {"mcpr_2", "", &PLANNED[2]}};
static tool_plan plan;

static serve *begin(const dialect *d, answer **out)
{
    serve *s = made_serve();
    plan = (tool_plan){.tools = PLANNED,
                       .n_tools = 3,
                       .own = OWN,
                       .n_own = 1,
                       .calls = CALLS,
                       .servers = {&VIEWS[0], &VIEWS[1]},
                       .n_servers = 2};
    for (size_t i = 0; i < ARRAY_LEN(TOOLS); i++) {
        TOOLS[i].schema = json_root(schema);
    }
    now_ms = 5000.0;
    prepared = called = ERR_OK;
    has_no_result = has_no_message = retries = false;
    s->mcp = (mcp *)things;
    made_options.tool_rounds = 3;
    n_ids = 0;
    answer *a = made_answer(s, d);
    a->conn = 3;
    a->state = ANSWER_FINISHED;
    a->opt.plan = &plan;
    snprintf(a->request_id, sizeof a->request_id, "r%d", (int)a->id);
    n_ids = 0;
    *out = a;
    return s;
}

static void end(serve *s)
{
    const size_t len = told.len; /* what freeing says is of no case */
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (a) {
            a->opt.plan = NULL;
        }
    }
    made_end(s);
    told.len = len;
    told.data[len] = '\0';
}

/* Pieces in words: t is a thought, c content, C a call, A its arguments, E its end, X its cut, I an item; "A{}|E". */
static void write_pieces(answer *a, const char *text)
{
    static const char KINDS[] = "tc.CAEXI";
    while (*text) {
        const size_t n = strcspn(text, "|");
        const char *kind = strchr(KINDS, text[0]);
        CHECK(kind != NULL);
        reply_pieces_add(&a->pieces, (reply_kind)(kind ? kind - KINDS : 0), text + 1, n - 1);
        text += n + (text[n] == '|');
    }
}

static void write(answer *a, const char *text)
{
    write_pieces(a, text);
    serve_take_runs(a);
}

#define READ  "Cread|A{\"p\":1}|E"
#define FETCH "Cweb__fetch|E"
#define WRITE "Cwrite|A{}|E"

/* ---- what the model writes ---- */

static void test_taken(void)
{
    static const char *const TEXTS[] = {
        "t hm|c hi",
        READ,
        "c hi|" FETCH,
        "Cread|A{\"a\"|E|c more",
        "Cmine|A{}|E",
        "Cmine|A{}|X|c so",
        "Cread|A{\"a\"|X|c so",
        READ "|Cread|A{|X",
        "Cno_such|A{}|E",
        READ "|" WRITE "|" FETCH "|" READ "|Cno_such|E|c end",
        "Cread",
        "Cread|A{}",
        "A{}|E|X",
        "I{item}|c a",
        "Cmine|A{}|E|" READ "|A{}|E",
        READ "|Cmine|A{}|E",
        "t so|" READ "|t then|c end",
    };
    for (int with = 0; with < 3; with++) {
        for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
            answer *a;
            serve *s = begin(&PLAIN, &a);
            a->opt.plan = with == 1 ? NULL : &plan;
            a->tools.is_summary = with == 2;
            a->n_calls = 9;
            if (with == 2 && strchr(TEXTS[i], 'C')) { /* a summary has no calls */
                end(s);
                continue;
            }
            told_case("taken%s: %s",
                      with == 1   ? " without tools"
                      : with == 2 ? " of a summary"
                                  : "",
                      TEXTS[i]);
            write(a, TEXTS[i]);
            told_answer(a);
            if (i == 11) { /* it goes on with what follows */
                write(a, "A,1|E|A{}|c on");
                told_answer(a);
            }
            end(s);
        }
    }
}

static void test_taken_lost(void)
{
    for (int with = 0; with < 4; with++) {
        answer *a;
        serve *s = begin(&PLAIN, &a);
        write(a, "Cread|A{");
        write_pieces(a, "A}|c so");
        a->pieces.failed = with == 0;
        a->tools.content.failed = with == 1;
        a->tools.reasoning.failed = with == 2;
        a->tools.runs[0].arguments.failed = with == 3;
        told_case("taken, lost %d", with);
        serve_take_runs(a);
        told_answer(a);
        end(s);
    }
    bool is_over = false; /* what there is no memory for is lost, and never in silence */
    size_t n = 1;
    for (; !is_over && n < 100; n++) {
        answer *a;
        serve *s = begin(&PLAIN, &a);
        write_pieces(a, "c hi|" READ "|t so|Cno_such|A{}|E|c end");
        alloc_fail_at(n);
        serve_take_runs(a);
        alloc_fail_at(0);
        const bool is_whole = a->tools.n_runs == 2 && a->pieces.n == 3 && a->tools.content.len == 7;
        is_over = !a->has_lost;
        CHECK(a->has_lost || is_whole);
        end(s);
    }
    CHECK(n > 8);
}

/* ---- what there is ---- */

static void test_lists(void)
{
    for (int with = 0; with < 8; with++) {
        answer *a;
        serve *s = begin(with & 1 ? &LOGGED : &PLAIN, &a);
        a->has_reply = with & 2;
        a->opt.plan = with & 4 ? &plan : NULL;
        told_case("lists%s%s%s", with & 1 ? ", log" : "", with & 2 ? ", reply" : "",
                  with & 4 ? ", tools" : "");
        serve_emit_lists(s, a);
        end(s);
    }
}

/* ---- a round ---- */

/* Whether a round begins behind what the model has said. */
static void test_begins(void)
{
    enum { GOOD, NO_PLAN, NO_RUNS, CUT, CANCELLED, LOST, LATE, LAST_ROUND, TOO_MANY, FAILED, N };
    static const char *const NAMES[] = {"good", "no tools", "no calls",       "cut by length", "cancelled",
                                        "lost", "late",     "the last round", "one more",      "failed"};
    for (int is_summary = 0; is_summary < 2; is_summary++) {
        for (int with = 0; with < N; with++) {
            answer *a;
            serve *s = begin(&LOGGED, &a);
            a->opt.plan = with == NO_PLAN ? NULL : &plan;
            if (!is_summary) {
                write(a, with == NO_RUNS || with == NO_PLAN ? "c hi" : "t so|c hi|" READ);
            }
            a->tools.is_summary = is_summary;
            if (is_summary) {
                write(a, "t hm|c the sum");
            }
            a->finish = with == CUT ? GEN_FINISH_LENGTH : with == FAILED ? GEN_FINISH_ERROR : GEN_FINISH_STOP;
            a->cancelled = with == CANCELLED;
            a->has_lost = with == LOST;
            a->timeout = with == LATE ? ANSWER_TOOK_TOO_LONG : ANSWER_IN_TIME;
            a->tools.n_rounds = with == LAST_ROUND ? 3 : with == TOO_MANY ? 4 : 0;
            a->tools.prompt_tokens = 100;
            a->tools.cached_tokens = 10;
            a->info.n_prompt_tokens = 30;
            a->timings.cache_n = 3;
            a->n_tokens = 50;
            a->tools.summary_tokens = 20;
            if (with == LAST_ROUND) {
                bytes_append_str(&a->tools.turns, "{before}");
            }
            told_case("%s, %s", is_summary ? "a summary" : "a round", NAMES[with]);
            tell("%s", serve_begin_round(s, a) ? "goes on" : "ends");
            told_answer(a);
            end(s);
        }
    }
}

/* What becomes of each call. */
static void test_starts(void)
{
    static const struct {
        const char *name, *text;
        bool lost, refused, no_result, log, ran_out;
        int n_rounds, most, ran;
    } CASES[] = {
        {"one", .text = READ},
        {"no arguments", .text = FETCH},
        {"one with its words", .text = "t why|c so|" READ "|" FETCH},
        {"one with a letter of each", .text = "ta|cb|" READ},
        {"arguments that are no object", .text = "Cread|A[1]|E|Cread|A{|E"},
        {"asked about", .text = WRITE, .log = true},
        {"asked about, and one that runs", .text = WRITE "|" READ, .log = true},
        {"nobody can be asked", .text = WRITE},
        {"an unknown one", .text = "Cno_such|A{}|E"},
        {"an unknown one, logged", .text = "Cno_such|A{}|E", .log = true},
        {"the client's own, too", .text = "Cmine|A{}|E|" READ},
        {"no memory", .text = READ, .lost = true},
        {"no memory for the refusal", .text = "Cno_such|E|" READ, .no_result = true},
        {"refused by the servers", .text = READ "|" FETCH, .refused = true},
        {"the last round", .text = READ, .n_rounds = 2},
        {"a round more", .text = READ, .n_rounds = 3},
        {"one call left", .text = READ "|" FETCH, .most = 4, .ran = 3},
        {"no call left", .text = READ, .most = 4, .ran = 4},
        {"more than that", .text = READ, .most = 4, .ran = 5},
        {"no bound", .text = READ, .ran = 500},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        answer *a;
        serve *s = begin(CASES[i].log ? &LOGGED : &PLAIN, &a);
        write(a, CASES[i].text);
        a->tools.n_rounds = CASES[i].n_rounds;
        a->tools.n_ran = CASES[i].ran;
        a->opt.max_tool_calls = CASES[i].most;
        a->finish = GEN_FINISH_STOP;
        called = CASES[i].refused ? ERR_BUSY : ERR_OK;
        has_no_result = CASES[i].no_result;
        told_case("starts: %s", CASES[i].name);
        if (CASES[i].lost) { /* as it is found while a call that the request allows begins */
            a->has_lost = true;
            plan.n_calls = 0;
            serve_run_allowed(s, a);
        } else {
            CHECK(serve_begin_round(s, a));
        }
        told_answer(a);
        end(s);
    }
    answer *a; /* more calls than one round may have */
    serve *s = begin(&PLAIN, &a);
    for (int i = 0; i < LIMIT_MCP_CALLS_A_ROUND + 1; i++) {
        write(a, FETCH);
    }
    told_case("starts: many");
    CHECK(serve_begin_round(s, a));
    told_answer(a);
    end(s);
}

static void test_allowed(void)
{
    answer *a;
    serve *s = begin(&LOGGED, &a);
    plan.n_calls = 2;
    told_case("allowed by the request");
    serve_run_allowed(s, a);
    told_answer(a);
    end(s);
    bool is_over = false;
    size_t n = 1;
    for (; !is_over && n < 100; n++) {
        s = begin(&LOGGED, &a);
        plan.n_calls = 2;
        const size_t len = told.len;
        bytes_append(&told, NULL, 0);
        a->opt.max_tool_calls = 0;
        has_no_result = true;
        alloc_fail_at(n);
        serve_run_allowed(s, a);
        alloc_fail_at(0);
        is_over = !a->has_lost;
        CHECK(a->has_lost || a->tools.n_runs == 2);
        CHECK(!a->has_lost || a->finish == GEN_FINISH_ERROR || a->tools.n_waiting > 0);
        told.len = len;
        told.data[len] = '\0';
        end(s);
    }
    CHECK(n > 8);
}

/* ---- results ---- */

static mcp_result *result(uint32_t place, const char *text)
{
    mcp_result *r = __real_mcp_result_create(1, place);
    CHECK(r != NULL);
    bytes_append_str(&r->text, text);
    r->ms = 12.4;
    return r;
}

static void take(serve *s, answer *a, mcp_result *r)
{
    serve_on_result(s, a, r);
    told_answer(a);
    mcp_result_free(r);
}

static void test_results(void)
{
    answer *a;
    serve *s = begin(&PLAIN, &a);
    write(a, READ "|" FETCH);
    told_case("results");
    CHECK(serve_begin_round(s, a));
    take(s, a, result(2, "of no call"));
    mcp_result *r = result(0, "half way");
    r->progress = 0.5;
    take(s, a, r);
    r = result(0, "");
    r->progress = 0.0;
    take(s, a, r);
    r = result(1, "gone wrong");
    r->has_failed = true;
    take(s, a, r);
    take(s, a, result(1, "again"));
    r = result(1, "on again");
    r->progress = 1.0;
    take(s, a, r);
    take(s, a, result(0, "\"text\""));
    take(s, a, result(0, "behind the end"));
    end(s);
    static const struct {
        const char *text, *images;
        size_t n_images;
        int sees; /* 0: nothing is known of the model; 1: it has no eyes; 2: it has; 3: another server answers */
    } CASES[] = {
        {"seen", "\"data:a\",\"data:b\"", 2, 0},
        {"seen", "\"data:a\",\"data:b\"", 2, 1},
        {"seen", "\"data:a\",\"data:b\"", 2, 2},
        {"seen", "\"data:a\",\"data:b\"", 2, 3},
        {"", "\"data:a\"", 1, 1},
        {"", "\"data:a\"", 1, 2},
        {"", "", 0, 1},
        {"", "", 0, 2},
        {"seen", "\"data:a\"", 1, 2},
        {"seen", "\"data:a\",\"data:b\"", 1, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) { /* images, which a model without eyes does not get */
        const engine_info info = {.has_vision = CASES[i].sees == 2};
        s = begin(&PLAIN, &a);
        write(a, READ);
        s->info = CASES[i].sees == 0 ? NULL : &info;
        a->server = CASES[i].sees == 3 ? "far" : NULL;
        told_case("a result with images %zu", i);
        CHECK(serve_begin_round(s, a));
        r = result(0, CASES[i].text);
        r->n_images = CASES[i].n_images;
        bytes_append_str(&r->images, CASES[i].images);
        take(s, a, r);
        end(s);
    }
    int n_lost = 0; /* what there is no memory for is an error of the answer */
    for (size_t n = 1; n < 20; n++) {
        const size_t len = told.len;
        s = begin(&PLAIN, &a);
        write(a, READ);
        CHECK(serve_begin_round(s, a));
        r = result(0, LONG LONG);
        const size_t n_turns = a->tools.turns.len;
        alloc_fail_at(n);
        serve_on_result(s, a, r);
        alloc_fail_at(0);
        const bool is_lost = a->tools.turns.len < n_turns + strlen(LONG LONG);
        CHECK(!is_lost || (a->state == ANSWER_FINISHED && a->error == ERR_NOMEM));
        n_lost += is_lost;
        mcp_result_free(r);
        told.len = len;
        told.data[len] = '\0';
        end(s);
    }
    CHECK(n_lost > 1);
    answer *other; /* a summary that finds no memory */
    for (size_t n = 1; n <= 2; n++) {
        s = begin(&PLAIN, &other);
        other->tools.is_summary = true;
        write(other, "c a sum");
        other->tools.turns.failed = n == 2;
        told_case("a summary that is lost %zu", n);
        alloc_fail_at(n == 1 ? 1 : 0);
        CHECK(serve_begin_round(s, other));
        alloc_fail_at(0);
        told_answer(other);
        end(s);
    }
}

/* How a round ends, once all calls are done. */
static void test_ends(void)
{
    enum { GOOD, ASKS, CLIENT, LOST, TURNS, REPLY_LOST, BUSY, N };
    static const char *const NAMES[] = {"good",       "asks", "the client's own", "lost", "turns lost",
                                        "reply lost", "busy"};
    for (int with = 0; with < N; with++) {
        answer *a;
        serve *s = begin(&LOGGED, &a);
        write(a, READ);
        told_case("a round ends: %s", NAMES[with]);
        CHECK(serve_begin_round(s, a));
        a->info.n_prompt_tokens = 30;
        a->timings.cache_n = 3;
        a->tools.asks = with == ASKS;
        a->tools.has_own = with == CLIENT;
        a->has_lost = with == LOST;
        a->tools.turns.failed = with == TURNS;
        a->has_reply = a->reply.has_lost = with == REPLY_LOST;
        prepared = with == BUSY ? ERR_BUSY : ERR_OK;
        now_ms = 7000.0;
        take(s, a, result(0, "text"));
        a->has_reply = false;
        end(s);
    }
}

/* The answer ends while calls run, or before. */
static void test_stopped(void)
{
    for (int with = 0; with < 12; with++) {
        answer *a;
        serve *s = begin(&LOGGED, &a);
        api_error e;
        write(a, READ "|" FETCH);
        told_case("stopped %d", with);
        CHECK(serve_begin_round(s, a));
        if (with & 1) {
            take(s, a, result(1, "done"));
        }
        a->info.n_prompt_tokens = 30;
        a->timings.cache_n = 3;
        a->timeout = with & 2 ? ANSWER_STALLED : ANSWER_IN_TIME;
        has_no_result = with >= 8;
        api_error_set(&e, 503, "model_changed", NULL, "%0300d", 7);
        serve_end_rounds(s, a, with & 4 ? ERR_BUSY : ERR_CANCELLED, with & 4 ? &e : NULL);
        told_answer(a);
        end(s);
    }
    for (int stage = TOOLS_IDLE; stage <= TOOLS_PREPARING; stage++) {
        answer *a;
        serve *s = begin(&LOGGED, &a);
        a->tools.stage = (tool_stage)stage;
        told_case("stopped in stage %d", stage);
        serve_stop_rounds(s, a);
        told_answer(a);
        mcp_result *r = result(0, "late");
        take(s, a, r);
        end(s);
    }
}

/* ---- the servers ---- */

static void test_posted(void)
{
    for (int with = 0; with < 6; with++) {
        answer *a;
        serve *s = begin(&LOGGED, &a);
        mcp_result *r = result(4, "text");
        r->owner = 77;
        r->progress = with % 3 == 0 ? -1.0 : with % 3 == 1 ? 0.0 : 0.5;
        has_no_message = with >= 3;
        posted = NULL;
        told_case("a result of another thread %d", with);
        serve_on_mcp_result(s, r);
        CHECK(with >= 3 ? !posted : posted && posted->result == r && posted->id == 77);
        loop_message_free(posted);
        end(s);
    }
}

static void test_catalog(void)
{
    for (int with = 0; with < 8; with++) {
        answer *a;
        serve *s = begin(&LOGGED, &a);
        conn *c = made_conn(s, 3);
        made_route(c, NET_GET, "/v1/mcp");
        c->method = with & 1 ? NET_POST : NET_GET;
        s->mcp = with & 2 ? s->mcp : NULL;
        retries = with & 4;
        servers = with & 2 ? mcp_catalog_create(1) : NULL;
        if (servers) {
            servers->servers[0] = (mcp_server_view){.config = &CONFIGS[1], .state = MCP_READY};
        }
        snprintf(c->param, sizeof c->param, "web");
        told_case("servers %d", with);
        serve_on_mcp(s, c);
        mcp_catalog_release(servers);
        servers = NULL;
        end(s);
    }
}

static void test_orders(void)
{
    static const char *const BODIES[] = {
        "{\"uri\":\"a:b\",\"name\":\"n\"}",
        "{\"uri\":\"a:b\",\"name\":\"n\",\"arguments\":{\"x\":1}}",
        "{\"uri\":\"a:b\",\"name\":\"n\",\"arguments\":null}",
        "{\"uri\":\"a:b\",\"name\":\"n\",\"arguments\":[]}",
        "{\"uri\":\"\",\"name\":\"\",\"arguments\":[]}",
        "{\"uri\":7,\"name\":{}}",
        "{}",
        "[",
        "",
    };
    for (int with = 0; with < 2; with++) {
        for (size_t i = 0; i < ARRAY_LEN(BODIES) + 4; i++) {
            answer *a;
            serve *s = begin(&LOGGED, &a);
            conn *c = made_conn(s, 3);
            bytes body = bytes_empty(1000);
            made_route(c, NET_POST, with ? "/v1/mcp/web/resources/read" : "/v1/mcp/web/prompts/get");
            bytes_append_str(&body, BODIES[i < ARRAY_LEN(BODIES) ? i : 0]);
            const size_t odd = i < ARRAY_LEN(BODIES) ? 0 : i - ARRAY_LEN(BODIES) + 1;
            servers = mcp_catalog_create(1);
            CHECK(servers != NULL);
            servers->servers[0] = (mcp_server_view){.config = &CONFIGS[odd != 1],
                                                    .state = odd == 2 || odd == 3 ? MCP_DOWN : MCP_READY};
            snprintf(servers->servers[0].why, sizeof servers->servers[0].why, "%s", odd == 3 ? "x" : "");
            called = odd == 4 ? ERR_BUSY : ERR_OK;
            told_case("order %d %zu", with, i);
            serve_on_mcp_order(s, c, &body);
            tell("ticket %d", (int)c->mcp_ticket);
            mcp_catalog_release(servers);
            servers = NULL;
            bytes_deinit(&body);
            end(s);
        }
    }
}

static void test_replies(void)
{
    for (int with = 0; with < 8; with++) {
        answer *a;
        serve *s = begin(&LOGGED, &a);
        static const uint64_t IDS[] = {1, 3, FIRST_PLACE, LAST_PLACE};
        for (size_t i = 0; i < ARRAY_LEN(IDS); i++) { /* each of many asks */
            conn *c = made_conn(s, IDS[i]);
            made_route(c, NET_POST, with & 1 ? "/v1/mcp/web/resources/read" : "/v1/mcp/web/prompts/get");
            c->mcp_ticket = IDS[i] + 20;
        }
        told_places(&s->conns);
        mcp_result *r = result(0, "why not");
        r->has_failed = with & 2;
        r->progress = with & 4 ? 0.0 : -1.0;
        bytes_append_str(&r->whole, "{\"x\":1}");
        told_case("reply %d", with);
        for (size_t i = 0; i < ARRAY_LEN(IDS); i++) {
            const conn *c = id_table_get(&s->conns, IDS[i]);
            serve_on_mcp_reply(s, IDS[i] + 19, r); /* of none of them */
            serve_on_mcp_reply(s, IDS[i] + 20, r);
            CHECK_INT(c->mcp_ticket, with & 4 ? IDS[i] + 20 : 0);
        }
        mcp_result_free(r);
        end(s);
    }
}

int main(void)
{
    static const char SCHEMA[] = "{\"type\":\"object\"}";
    CHECK_INT(json_parse(&schema, SCHEMA, sizeof SCHEMA - 1, 9, NULL), ERR_OK);
    test_taken();
    test_taken_lost();
    test_lists();
    test_begins();
    test_starts();
    test_allowed();
    test_results();
    test_ends();
    test_stopped();
    test_posted();
    test_catalog();
    test_orders();
    test_replies();
    json_free(schema);
    recorded_check("server/service/recorded/tools.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
