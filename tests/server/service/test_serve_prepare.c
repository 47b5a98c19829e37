/* serve_prepare: what the workers are asked for an answer, and what comes of what they say. What is asked of others is written
 * down, and so is what the answer is then. */
#include "tests/alloc_fail.h"
#include "tests/server/service/told.h"

/* ---- what is asked of others ---- */

static char things[8]; /* requests, engines and so on are places in here */
static double now_ms = 5000.0;
static err_code submitted, taken;
static model_turn turn;
static bool makes_choices, is_ready, attaches;
static const char *listed;

WRAP(double, clock_ms, (void), return now_ms;)
WRAP(const char *, serve_name_of, (const serve *s, const char *path), (void)s, (void)path; return listed;)
WRAP(int64_t, access_key_of, (const access_rules *r, uint64_t scope), (void)r; return (int64_t)scope + 70;)
WRAP(
    err_code, prep_submit,
    (prep * p, const prep_order *o, bytes *body, json_doc **doc, ledger_hold *hold, prep_ticket *t), (void)p;
    CHECK(t != NULL); bytes_printf(&told, "  submit %d scope=%d chain=%d key=%d", (int)o->id, (int)o->scope,
                                   (int)o->chain, (int)o->key);
    told_str("dialect", o->dialect->name); told_flag("engine", o->engine == (engine *)things);
    told_flag("upstreams", o->upstreams == (upstreams *)(things + 1));
    told_flag("remote_only", o->is_remote_only);
    told_flag("form", o->form == (const tool_form *)(things + 2));
    told_flag("kwargs", o->template_kwargs == (const json *)(things + 3)); told_flag("hash", o->hash_body);
    told_flag("asks", o->asks_model); told_flag("strict", o->is_strict); told_flag("says", o->says_accepted);
    told_flag("mcp", o->mcp == (mcp *)(things + 4)); told_str("turns", o->turns);
    told_number("written", o->n_written); told_flag("may_compact", o->may_compact);
    told_flag("submits", o->submits); told_str("request", o->request_id); told_str("cache", o->cache_name);
    for (int i = 0; i < 4; i++) {
        if (strlen(o->names[i]) > 40) {
            bytes_printf(&told, " [%zu]", strlen(o->names[i]));
        } else {
            bytes_printf(&told, " [%s]", o->names[i]);
        }
    } told_text("body", body);
    told_flag("doc", *doc != NULL); told_number("held", (double)hold->bytes); bytes_append_char(&told, '\n');
    return submitted;)
WRAP(model_turn, serve_named_turn,
     (serve * s, uint64_t connection, uint64_t before, char name[REQUEST_MODEL_MAX], size_t n_body,
      api_error *e),
     (void)s;
     tell("turn of %s, connection %d before %d, %zu bytes", name, (int)connection, (int)before, n_body);
     api_error_set(e, 404, "no_such", NULL, "no"); return turn;)
WRAP(void, serve_hold_answer, (serve * s, answer *a), (void)s; tell("hold %d", (int)a->id);
     a->state = ANSWER_HELD;)
WRAP(void, serve_fail_answer, (serve * s, answer *a, err_code code, const api_error *e), (void)s;
     tell("fail %d: %d %d %s", (int)a->id, code, e->status, e->code); a->state = ANSWER_FINISHED;)
WRAP(void, serve_fail_answer_from, (serve * s, answer *a, err_code code, const err_detail *d), (void)s;
     tell("fail %d: %d %s", (int)a->id, code, d ? d->text : "-"); a->state = ANSWER_FINISHED;)
WRAP(bool, serve_make_choices, (serve * s, answer *a), (void)s; tell("choices of %d", (int)a->id);
     return makes_choices;)
WRAP(err_code, serve_submit_choices, (serve * s, answer *a, err_detail *d), (void)s;
     tell("hand over %d", (int)a->id); return taken == ERR_OK ? ERR_OK : err_set(d, taken, "not taken");)
WRAP(void, serve_begin_choices, (serve * s, answer *a), (void)s; tell("begin choices of %d", (int)a->id);)
WRAP(void, serve_end_thinking, (serve * s, const answer *a), (void)s; tell("%d thinks no more", (int)a->id);)
WRAP(void, answer_begin, (answer * a, const gen_request_info *info, const tool_form *form),
     tell("begin %d%s%s", (int)a->id, form ? " with tools" : "", info == &a->info ? "" : " of another");
     a->state = ANSWER_RUNNING;)
WRAP(void, serve_begin_streams, (serve * s, answer *a), (void)s; tell("streams of %d", (int)a->id);)
WRAP(void, serve_emit_lists, (serve * s, answer *a), (void)s; tell("lists of %d", (int)a->id);)
WRAP(void, serve_wake_followers, (serve * s, const answer *a), (void)s; tell("wake for %d", (int)a->id);)
WRAP(bool, serve_is_ready, (const serve *s, api_error *e), (void)s;
     api_error_set(e, 503, "engine_stalled", NULL, "no"); return is_ready;)
WRAP(void, responses_reply_queued, (responses_reply * r, int32_t place), (void)r;
     tell("queued at %d", place);)
WRAP(void, responses_reply_write, (bytes * out, const responses_reply *r), (void)r;
     bytes_append_str(out, "{reply}");)
WRAP(
    bool, serve_attach_replay, (serve * s, answer *a), (void)s; tell("attach %d", (int)a->id); if (attaches) {
        a->state = ANSWER_FINISHED;
        a->conn = 0; /* it is gone */
    } return attaches;)
WRAP(void, serve_socket_error,
     (serve * s, conn *c, const api_error *e, const char *event_id, const char *stream_id,
      const char *response_id),
     (void)s;
     tell("error to %d: %d %s event %s stream %s response %s", (int)c->id, e->status, e->code, event_id,
          stream_id, response_id);)
WRAP(void, serve_cancel_answer, (serve * s, answer *a), (void)s; tell("cancel %d", (int)a->id);)
WRAP(void, serve_stop_answer, (serve * s, uint64_t id), (void)s; tell("stop %d", (int)id);)
WRAP(void, net_want_write, (net * n, uint64_t id), (void)n; tell("write to %d", (int)id);)
WRAP(void, serve_send_body, (serve * s, conn *c, bytes *body), (void)s;
     tell("send %d: %s, answer %d", (int)c->id, bytes_str(body), (int)c->answer); bytes_deinit(body);)
WRAP(void, serve_send_json, (serve * s, conn *c, int status, const bytes *body, const char *headers), (void)s;
     tell("send %d: %d %s%s, answer %d", (int)c->id, status, bytes_str(body), headers ? headers : "",
          (int)c->answer);)
WRAP(void, serve_socket_count, (serve * s, conn *c, const char *event_id, const bytes *reply), (void)s;
     tell("count to %d: %s %s, answer %d", (int)c->id, event_id, bytes_str(reply), (int)c->answer);)
WRAP(void, serve_drop_answer, (serve * s, answer *a), (void)s; tell("drop %d", (int)a->id);)
WRAP(void, serve_run_allowed, (serve * s, answer *a), (void)s; tell("run what %d allows", (int)a->id);)
WRAP(const char *, upstream_request_server, (const upstream_request *q),
     CHECK(q == (upstream_request *)(things + 6));
     return "far";)
WRAP(void, gen_request_free, (gen_request * r), if (r) tell("free a request");)
WRAP(void, upstream_request_free, (upstream_request * q), if (q) tell("free a request of another");)
WRAP(void, tool_plan_destroy, (tool_plan * p), if (p) tell("free plan %d", (int)((char *)p - things));)
WRAP(void, tool_set_destroy, (tool_set * t), if (t) tell("free tools %d", (int)((char *)t - things));)

static void first(const serve *s, answer *a)
{
    (void)s;
    tell("first of %d%s", (int)a->id, a->opt.keep_on_disconnect ? ", kept on" : "");
}

static const dialect PLAIN = {.name = "plain", .id_prefix = "p-"},
                     TOOLED = {.name = "tooled", .id_prefix = "t-", .has_tools = true},
                     QUERY = {.name = "query", .id_prefix = "q-", .is_query = true},
                     LOGGED = {.name = "logged", .id_prefix = "l-", .has_log = true, .first = first};

/* ---- cases ---- */

static serve *begin(void)
{
    serve *s = made_serve();
    submitted = taken = ERR_OK;
    turn = MODEL_NOW;
    makes_choices = true;
    attaches = is_ready = false;
    listed = NULL;
    return s;
}

static answer *ask(serve *s, const dialect *d, uint64_t conn_id, answer_state state)
{
    answer *a = made_answer(s, d);
    a->conn = conn_id;
    a->state = state;
    snprintf(a->request_id, sizeof a->request_id, "r%d", (int)a->id);
    snprintf(a->chat_id, sizeof a->chat_id, "c%d", (int)a->id);
    return a;
}

static answer *ask_socket(serve *s, const dialect *d, uint64_t conn_id, answer_state state)
{
    answer *a = ask(s, d, conn_id, state);
    a->is_socket = true;
    return a;
}

static void end(serve *s)
{
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (a) {
            a->request = NULL;
            a->remote = NULL;
            a->opt.plan = NULL;
            a->opt.tools = NULL;
            a->memory.bytes = a->memory.ledger ? a->memory.bytes : 0;
        }
    }
    made_end(s);
}

static void prepare(serve *s, answer *a)
{
    const err_code err = serve_prepare_answer(s, a);
    if (err != ERR_OK) {
        tell("error %d", err);
    }
    told_answer(a);
}

static void put(bytes *b, const char *text)
{
    *b = bytes_empty(1 << 21);
    bytes_append_str(b, text);
}

/* ---- what the workers are asked ---- */

static void test_orders(void)
{
    static char longer[REQUEST_MODEL_MAX + 1];
    const engine_info info = {.model_name = "inside"};
    serve *s = begin();
    answer *a = ask(s, &PLAIN, 0, ANSWER_READY);
    told_case("an order with nothing");
    prepare(s, a);
    told_case("with everything");
    snprintf(s->current.name, sizeof s->current.name, "now");
    snprintf(s->current.path, sizeof s->current.path, "/models/now");
    listed = "listed";
    s->info = &info;
    s->engine = (engine *)things;
    s->upstreams = (upstreams *)(things + 1);
    s->tool_form = (const tool_form *)(things + 2);
    made_options.template_kwargs = (const json *)(things + 3);
    s->mcp = (mcp *)(things + 4);
    s->catalog = (catalog *)(things + 5);
    made_options.has_no_model = made_options.strict_model = true;
    snprintf(a->cache_name, sizeof a->cache_name, "kept");
    a->n_tokens = 40;
    put(&a->body, "{}");
    prepare(s, a);
    told_case("whose model is known");
    a->knows_model = true;
    prepare(s, a);
    told_case("of a later round, which still runs");
    a->knows_model = false;
    a->state = ANSWER_RUNNING;
    a->tools.stage = TOOLS_PREPARING;
    a->tools.summary_tokens = 15;
    bytes_append_str(&a->tools.turns, "{1},{2}");
    prepare(s, a);
    submitted = ERR_BUSY;
    prepare(s, a);
    bytes_clear(&a->tools.turns);
    bytes_append_str(&a->tools.turns, "1");
    prepare(s, a);
    told_case("while tools run, behind a summary");
    submitted = ERR_OK;
    a->tools.stage = TOOLS_CALLING;
    a->tools.has_summary = true;
    prepare(s, a);
    told_case("that is refused");
    a->tools.stage = TOOLS_IDLE;
    a->state = ANSWER_HELD;
    submitted = ERR_BUSY;
    prepare(s, a);
    told_case("under a key");
    submitted = ERR_OK;
    snprintf(a->idempotency_key, sizeof a->idempotency_key, "k");
    prepare(s, a);
    told_case("names of 511 and 512 letters");
    memset(longer, 'x', REQUEST_MODEL_MAX - 1);
    memset(s->current.path, 'y', REQUEST_MODEL_MAX);
    listed = longer;
    prepare(s, a);
    longer[REQUEST_MODEL_MAX - 1] = 'x';
    s->current.path[REQUEST_MODEL_MAX - 1] = '\0';
    prepare(s, a);
    told_case("what tools brought does not fit");
    a->tools.turns.failed = true;
    prepare(s, a);
    told_case("no memory for what tools brought");
    a->tools.turns.failed = false;
    alloc_fail_at(1);
    const err_code err = serve_prepare_answer(s, a);
    alloc_fail_at(0);
    CHECK_INT(err, ERR_NOMEM);
    end(s);
}

/* A socket: others of it stand in the way of a free one, if they are open and no queries. */
static void test_socket_orders(void)
{
    static const struct {
        const char *name;
        uint64_t conn;
        answer_state state;
        const dialect *dialect;
    } OTHERS[] = {{"open", 3, ANSWER_HELD, &PLAIN},
                  {"running", 3, ANSWER_RUNNING, &PLAIN},
                  {"finished", 3, ANSWER_FINISHED, &PLAIN},
                  {"a query", 3, ANSWER_RUNNING, &QUERY},
                  {"of another socket", 4, ANSWER_RUNNING, &PLAIN}};
    for (size_t i = 0; i < ARRAY_LEN(OTHERS); i++) {
        for (int is_later = 0; is_later < 2; is_later++) {
            serve *s = begin();
            conn *c = made_conn(s, 3);
            c->chain = 66;
            answer *a = is_later ? NULL : ask_socket(s, &PLAIN, 3, ANSWER_READY);
            ask_socket(s, OTHERS[i].dialect, OTHERS[i].conn, OTHERS[i].state);
            a = a ? a : ask_socket(s, &PLAIN, 3, ANSWER_READY);
            told_case("a socket with another: %s", OTHERS[i].name);
            prepare(s, a);
            a->is_socket = false; /* an HTTP connection has no others, and no chain */
            prepare(s, a);
            end(s);
        }
    }
    for (int with = 0; with < 4; with++) { /* wherever the other is found */
        serve *s = begin();
        s->next_answer = FIRST_PLACE - 1;
        answer *first = ask_socket(s, &PLAIN, with & 1 ? 3 : 4, ANSWER_RUNNING);
        s->next_answer = LAST_PLACE - 1;
        answer *last = ask_socket(s, &PLAIN, with & 2 ? 3 : 4, ANSWER_RUNNING);
        s->next_answer = 99;
        answer *a = ask_socket(s, &PLAIN, 3, ANSWER_READY);
        told_places(&s->answers);
        told_case("a socket with others at the ends of the table %d", with);
        prepare(s, a);
        a->state = ANSWER_READY;
        serve_try_lanes(s, 3);
        first->state = last->state = ANSWER_READY;
        serve_try_lanes(s, 4);
        end(s);
    }
    serve *s = begin();
    told_case("a socket that is gone");
    prepare(s, ask_socket(s, &PLAIN, 9, ANSWER_READY));
    end(s);
}

/* Another model is asked for: a held message's document stays if its body is small. */
static void test_other_model(void)
{
    static const size_t SIZES[] = {2, SERVE_HELD_DOCUMENT, SERVE_HELD_DOCUMENT + 1};
    for (size_t i = 0; i < 3 * ARRAY_LEN(SIZES) + 1; i++) {
        const size_t n = SIZES[i / 3 % ARRAY_LEN(SIZES)], n_held = 3 * n + 10;
        serve *s = begin();
        s->memory = ledger_create(1 << 30);
        CHECK(s->memory != NULL);
        answer *a = ask_socket(s, &PLAIN, 3, ANSWER_PREPARING);
        loop_message *m = loop_message_create(LOOP_OTHER_MODEL, a->id);
        turn = i % 3 == 0 ? MODEL_NOW : i % 3 == 1 ? MODEL_LATER : MODEL_REFUSED;
        submitted = i < 3 * ARRAY_LEN(SIZES) ? ERR_OK : ERR_BUSY;
        s->catalog = (catalog *)(things + 5);
        m->body = bytes_empty(n);
        while (m->body.len < n) {
            bytes_append_char(&m->body, ' ');
        }
        CHECK_INT(json_parse(&m->doc, "{}", 2, 4, NULL), ERR_OK);
        m->memory = (ledger_hold){.ledger = s->memory};
        CHECK(ledger_try(&m->memory, n_held));
        snprintf(m->options.model, sizeof m->options.model, "ash");
        a->opt.fields = strdup("old");
        m->options.fields = strdup("new");
        told_case("another model, turn %d, %zu bytes", turn, n);
        serve_on_other_model(s, a, m);
        CHECK_STR(a->opt.fields, "new");
        CHECK(!m->options.fields && !m->doc && m->body.max == 0 && m->memory.bytes == 0);
        told_answer(a);
        loop_message_free(m);
        tell("reserved: %zu", ledger_get_status(s->memory).used);
        end(s);
        ledger_destroy(s->memory);
    }
}

/* ---- what they say ---- */

/* What is prepared is as far along as these say. */
typedef struct said_of {
    const char *name;
    const dialect *dialect;
    int conn; /* 0: gone; 1: HTTP; 2: a socket; 3: one with extensions; 4: one that follows too many; 5: one that is gone */
    bool key, stream, progress, store, background, cancels;
} said_of;

static const said_of SAID[] = {
    {"plain", &PLAIN, .conn = 1},
    {"plain, with a key", &PLAIN, .conn = 1, .key = true},
    {"plain stream", &PLAIN, .conn = 1, .stream = true, .progress = true},
    {"plain, in the background, stored", &PLAIN, .conn = 1, .background = true, .store = true},
    {"tools", &TOOLED, .conn = 1},
    {"logged", &LOGGED, .conn = 1},
    {"logged, with a key", &LOGGED, .conn = 1, .key = true},
    {"logged, with a key, ends with its client", &LOGGED, .conn = 1, .key = true, .cancels = true},
    {"logged, stored", &LOGGED, .conn = 1, .store = true},
    {"logged, stored, ends with its client", &LOGGED, .conn = 1, .store = true, .cancels = true},
    {"logged stream", &LOGGED, .conn = 1, .stream = true},
    {"logged stream with progress", &LOGGED, .conn = 1, .stream = true, .progress = true},
    {"logged, background", &LOGGED, .conn = 1, .background = true},
    {"logged, background stream", &LOGGED, .conn = 1, .background = true, .stream = true},
    {"logged, background, gone", &LOGGED, .conn = 0, .background = true},
    {"logged, gone", &LOGGED, .conn = 0},
    {"logged, gone, ends with its client", &LOGGED, .conn = 0, .cancels = true},
    {"plain, gone, ends with its client", &PLAIN, .conn = 0, .cancels = true},
    {"plain, there, ends with its client", &PLAIN, .conn = 1, .cancels = true},
    {"socket", &LOGGED, .conn = 2},
    {"socket, background, stored", &LOGGED, .conn = 2, .background = true, .store = true},
    {"socket with extensions", &LOGGED, .conn = 3},
    {"socket with extensions, ends with it", &LOGGED, .conn = 3, .cancels = true},
    {"socket with too many", &LOGGED, .conn = 4},
    {"plain socket", &PLAIN, .conn = 2},
    {"socket that is gone", &LOGGED, .conn = 5, .store = true},
};

static answer *said_answer(serve *s, const said_of *of, loop_message *m)
{
    conn *c = of->conn > 0 && of->conn < 5 ? made_conn(s, 3) : NULL;
    answer *a = ask(s, of->dialect, 3, ANSWER_PREPARING);
    a->is_socket = of->conn > 1;
    if (c) {
        c->is_socket = of->conn > 1;
        c->is_extended = of->conn == 3;
        c->answer = c->is_socket ? 0 : a->id;
        for (int i = 0; of->conn == 4 && i < SERVE_MAX_READERS; i++) {
            CHECK(serve_add_reader(c, 1000 + (uint64_t)i, 0));
        }
    }
    snprintf(a->idempotency_key, sizeof a->idempotency_key, "%s", of->key ? "k" : "");
    snprintf(a->reply.id, sizeof a->reply.id, "resp_1");
    snprintf(m->options.event_id, sizeof m->options.event_id, "ev");
    snprintf(m->options.stream_id, sizeof m->options.stream_id, "lane");
    m->options.stream = of->stream;
    m->options.return_progress = of->progress;
    m->options.store_given = of->store;
    m->options.background = of->background;
    m->options.cancel_on_disconnect = of->cancels;
    return a;
}

static void tell_conn(const serve *s)
{
    const conn *c = id_table_get(&s->conns, 3);
    if (c) {
        tell("connection: answer %d, readers %d, first of %d at %d", (int)c->answer, c->n_readers,
             (int)c->readers[0].answer, (int)c->readers[0].next_seq);
    }
}

static void test_accepted(void)
{
    for (size_t i = 0; i < ARRAY_LEN(SAID); i++) {
        for (int with = 0; with < (i < 2 ? 2 : 1); with++) {
            serve *s = begin();
            loop_message *m = loop_message_create(LOOP_ACCEPTED, 1);
            answer *a = said_answer(s, &SAID[i], m);
            answer *behind = ask_socket(s, &PLAIN, 3, ANSWER_READY);
            snprintf(behind->opt.stream_id, sizeof behind->opt.stream_id, "other");
            a->has_reply = false;
            attaches = with;
            told_case("accepted%s: %s", with ? ", came before" : "", SAID[i].name);
            serve_on_accepted(s, a, m);
            told_answer(a);
            tell_conn(s);
            loop_message_free(m);
            end(s);
        }
    }
}

static loop_message *prepared(serve *s, const said_of *of, int kind, answer **out)
{
    loop_message *m = loop_message_create(LOOP_PREPARED, 1);
    *out = said_answer(s, of, m);
    m->request = kind == 1 ? (gen_request *)(things + 5) : NULL;
    m->remote = kind == 2 ? (upstream_request *)(things + 6) : NULL;
    m->prep_ms = 12.5;
    m->info.n_prompt_tokens = 33;
    put(&m->body, "{new}");
    put(&m->reply, "[edits]");
    put(&(*out)->body, "{old}");
    put(&(*out)->edits, "[]");
    CHECK(s->memory && ledger_try(&(*out)->memory, 0));
    (*out)->memory = (ledger_hold){.ledger = s->memory};
    m->memory = (ledger_hold){.ledger = s->memory};
    CHECK(ledger_try(&(*out)->memory, 100) && ledger_try(&m->memory, 50));
    s->tool_form = (const tool_form *)things;
    return m;
}

static void tell_prepared(serve *s, answer *a, loop_message *m)
{
    serve_on_prepared(s, a, m);
    CHECK(!m->request && !m->remote && m->body.max == 0 && m->memory.bytes == 0 && m->reply.max == 0);
    told_answer(a);
    tell_conn(s);
    tell("reserved: %zu", ledger_get_status(s->memory).used);
    loop_message_free(m);
    end(s);
    ledger_destroy(s->memory);
}

static serve *begin_memory(void)
{
    serve *s = begin();
    s->memory = ledger_create(1000);
    CHECK(s->memory != NULL);
    return s;
}

static void test_prepared(void)
{
    static const char *const KINDS[] = {"submitted", "here", "far"};
    for (size_t i = 0; i < ARRAY_LEN(SAID); i++) {
        for (int kind = 0; kind < 3; kind++) {
            serve *s = begin_memory();
            answer *a;
            told_case("prepared, %s: %s", KINDS[kind], SAID[i].name);
            loop_message *m = prepared(s, &SAID[i], kind, &a);
            tell_prepared(s, a, m);
        }
    }
}

/* What else may be so when it comes. */
static void test_prepared_otherwise(void)
{
    enum {
        NOTHING,
        CANCELLED,
        STALLED,
        STALLED_READY,
        ACCEPTED,
        THINKS,
        NO_CHOICES,
        NOT_TAKEN,
        SUMMARY,
        FOLLOWED,
        N
    };
    static const char *const NAMES[] = {
        "nothing",     "cancelled",  "stalled",   "stalled, yet ready", "accepted before",
        "no thoughts", "no choices", "not taken", "a summary",          "followed by another"};
    for (int with = 1; with < N; with++) {
        for (int kind = 0; kind < 3; kind++) {
            static const said_of LEFT = {"", &TOOLED, .conn = 0, .cancels = true},
                                 THERE = {"", &TOOLED, .conn = 1};
            serve *s = begin_memory();
            answer *a;
            loop_message *m = prepared(s, with == FOLLOWED ? &LEFT : &THERE, kind, &a);
            told_case("prepared %d, %s", kind, NAMES[with]);
            a->cancelled = with == CANCELLED;
            s->is_stalled = with == STALLED || with == STALLED_READY;
            is_ready = with == STALLED_READY;
            a->is_accepted = with == ACCEPTED;
            a->ends_thinking = with == THINKS;
            makes_choices = with != NO_CHOICES;
            taken = with == NOT_TAKEN ? ERR_LIMIT : ERR_OK;
            m->asks_summary = with == SUMMARY;
            a->n_tokens = 44;
            if (with == FOLLOWED) {
                made_conn(s, 8)->answer = a->id;
            }
            tell_prepared(s, a, m);
        }
    }
    for (int kind = 0; kind < 3; kind++) { /* its lane is taken */
        static const said_of SOCKET = {"", &LOGGED, .conn = 2};
        serve *s = begin_memory();
        answer *a, *before = ask_socket(s, &PLAIN, 3, ANSWER_RUNNING);
        loop_message *m = prepared(s, &SOCKET, kind, &a);
        snprintf(before->opt.stream_id, sizeof before->opt.stream_id, "lane");
        told_case("prepared %d, behind another of its lane", kind);
        tell_prepared(s, a, m);
    }
    for (int with = 0; with < 8; with++) { /* a later round */
        static const said_of THERE = {"", &TOOLED, .conn = 1};
        serve *s = begin_memory();
        answer *a;
        loop_message *m = prepared(s, &THERE, with & 1, &a);
        told_case("prepared %d for a later round%s%s", with & 1, with & 2 ? ", stopped" : "",
                  with & 4 ? ", cancelled" : "");
        a->tools.stage = TOOLS_PREPARING;
        a->tools.is_stopped = with & 2;
        a->cancelled = with & 4;
        a->is_accepted = a->is_begun = true;
        a->opt.plan = (tool_plan *)(things + 1);
        a->opt.tools = (tool_set *)(things + 2);
        m->options.plan = (tool_plan *)(things + 3);
        m->options.tools = (tool_set *)(things + 4);
        serve_on_prepared(s, a, m);
        CHECK(a->opt.plan == (tool_plan *)(things + 3) && a->opt.tools == (tool_set *)(things + 4));
        CHECK(!m->options.plan && !m->options.tools);
        told_answer(a);
        loop_message_free(m);
        end(s);
        ledger_destroy(s->memory);
    }
}

static void test_tools(void)
{
    for (size_t i = 0; i < ARRAY_LEN(SAID); i += 5) {
        serve *s = begin_memory();
        answer *a;
        loop_message *m = prepared(s, &SAID[i], 0, &a);
        answer *behind = ask_socket(s, &PLAIN, 3, ANSWER_READY);
        told_case("allowed calls: %s", SAID[i].name);
        serve_on_tools(s, a, m);
        told_answer(a);
        told_answer(behind);
        loop_message_free(m);
        end(s);
        ledger_destroy(s->memory);
    }
}

static void test_begins_once(void)
{
    for (int with = 0; with < 16; with++) {
        serve *s = begin();
        answer *a = ask(s, &LOGGED, 3, ANSWER_RUNNING);
        a->is_begun = with & 1;
        a->is_socket = with & 2;
        a->opt.stream = with & 4;
        a->opt.return_progress = with & 8;
        told_case("begins%s%s%s%s", with & 1 ? ", again" : "", with & 2 ? ", socket" : "",
                  with & 4 ? ", stream" : "", with & 8 ? ", progress" : "");
        serve_begin_answer(s, a);
        CHECK(a->is_begun);
        end(s);
    }
}

static void test_replied(void)
{
    for (int with = 0; with < 3; with++) {
        serve *s = begin();
        answer *a = ask(s, &QUERY, with ? 3 : 9, ANSWER_PREPARING);
        conn *c = made_conn(s, 3);
        loop_message *m = loop_message_create(LOOP_REPLIED, a->id);
        c->is_socket = with == 2;
        c->answer = a->id;
        snprintf(a->opt.event_id, sizeof a->opt.event_id, "ev");
        put(&m->reply, "{n}");
        told_case("replied to %s", with == 0 ? "nobody" : with == 1 ? "HTTP" : "a socket");
        serve_on_replied(s, a, m);
        loop_message_free(m);
        end(s);
    }
}

/* ---- lanes ---- */

/* Whether the second begins, waits for what is unknown, or is told that it waits, behind the first. */
static void test_lanes(void)
{
    static const struct {
        const char *name, *lane;
        uint64_t conn;
        answer_state state;
        const dialect *dialect;
        bool has_reply, is_later;
    } BEFORE[] = {
        {"held in its lane", "a", 3, ANSWER_HELD, &PLAIN, false, false},
        {"running in its lane", "a", 3, ANSWER_RUNNING, &PLAIN, false, false},
        {"running in another lane", "b", 3, ANSWER_RUNNING, &PLAIN, false, false},
        {"finished", "a", 3, ANSWER_FINISHED, &PLAIN, false, false},
        {"a query", "a", 3, ANSWER_RUNNING, &QUERY, false, false},
        {"of another socket", "a", 4, ANSWER_RUNNING, &PLAIN, false, false},
        {"being read", "", 3, ANSWER_PREPARING, &PLAIN, false, false},
        {"being prepared, in its lane", "a", 3, ANSWER_PREPARING, &PLAIN, true, false},
        {"being prepared, in another lane", "b", 3, ANSWER_PREPARING, &PLAIN, true, false},
        {"running, but came later", "a", 3, ANSWER_RUNNING, &PLAIN, false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(BEFORE); i++) {
        serve *s = begin();
        answer *b = ask_socket(s, BEFORE[i].dialect, BEFORE[i].conn, BEFORE[i].state);
        answer *a = ask_socket(s, &PLAIN, 3, ANSWER_READY);
        snprintf(b->opt.stream_id, sizeof b->opt.stream_id, "%s", BEFORE[i].lane);
        snprintf(a->opt.stream_id, sizeof a->opt.stream_id, "a");
        b->order = BEFORE[i].is_later ? 99 : b->order;
        told_case("a lane behind one that is %s", BEFORE[i].name);
        b->has_reply = BEFORE[i].has_reply;
        serve_try_lanes(s, 3);
        b->has_reply = false;
        told_answer(a);
        end(s);
    }
    for (int first = 0; first < 2; first++) { /* which of the two is found first changes nothing */
        serve *s = begin();
        for (int i = 0; i < 2; i++) {
            answer *b = ask_socket(s, &PLAIN, 3, i == first ? ANSWER_PREPARING : ANSWER_RUNNING);
            snprintf(b->opt.stream_id, sizeof b->opt.stream_id, "%s", i == first ? "b" : "a");
        }
        answer *a = ask_socket(s, &PLAIN, 3, ANSWER_READY);
        snprintf(a->opt.stream_id, sizeof a->opt.stream_id, "a");
        told_case("a lane that is taken, and one being read");
        serve_try_lanes(s, 3);
        end(s);
    }
    serve *s = begin(); /* all that may begin do, each once, those of one lane one behind the other */
    for (int i = 0; i < 6; i++) {
        answer *a = ask_socket(s, &PLAIN, i == 5 ? 4 : 3, i == 4 ? ANSWER_HELD : ANSWER_READY);
        snprintf(a->opt.stream_id, sizeof a->opt.stream_id, "%d", i % 3);
    }
    told_case("lanes of many");
    serve_try_lanes(s, 3);
    for (int i = 1; i <= 6; i++) {
        told_answer(id_table_get(&s->answers, (uint64_t)i));
    }
    end(s);
    s = begin(); /* an answer over HTTP has no lanes */
    ask(s, &PLAIN, 3, ANSWER_RUNNING);
    ask(s, &PLAIN, 3, ANSWER_READY);
    told_case("without lanes");
    serve_try_lanes(s, 3);
    end(s);
}

int main(void)
{
    test_orders();
    test_socket_orders();
    test_other_model();
    test_accepted();
    test_prepared();
    test_prepared_otherwise();
    test_tools();
    test_begins_once();
    test_replied();
    test_lanes();
    recorded_check("server/service/recorded/prepare.txt", bytes_str(&told));
    bytes_deinit(&told);
    CHECK_DONE();
}
