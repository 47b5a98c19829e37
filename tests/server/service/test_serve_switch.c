/* serve_switch: how models are loaded and switched, step by step: who waits, who goes on, what the loader thread does and
 * says, and what the state is behind each step; recorded. The thread is the test's own. */
#include <errno.h>
#include <stdio_ext.h>

#include "tests/said.h"
#include "tests/server/service/made_switch.h"

/* The thread runs, and what it says is heard; the first of that fails if that is wanted. */
static void run_thread(serve *s)
{
    made_say("> the thread\n");
    CHECK(thread(thread_ctx) == NULL);
    tell(s);
    for (size_t i = 0; i < n_posted; i++) {
        made_say("> heard\n");
        if (posted[i]->type == LOOP_LOADING) {
            serve_on_loading(s, posted[i]);
        } else {
            serve_on_loaded(s, posted[i]);
        }
        loop_message_free(posted[i]);
        tell(s);
    }
    n_posted = 0;
}

/* Captures the line of a server that is ready. */
static void hear_loaded(serve *s, loop_message *m)
{
    said_begin();
    if (m) {
        serve_on_loaded(s, m);
    } else {
        serve_begin_ready(s);
    }
    CHECK_INT(__fpending(stdout), 0); /* whoever waits for the line has it */
    said_end();
    made_say("  prints %.*s\n", (int)strcspn(said_out, "\n"), said_out);
    CHECK_STR(said_err, "");
    tell(s);
}

static void tick(serve *s, double now)
{
    made_say("> tick %.0f\n", now);
    made_say("  = %d\n", serve_tick_switch(s, now));
    tell(s);
}

static void advance(serve *s)
{
    made_say("> advance\n");
    serve_advance_switch(s);
    tell(s);
}

static void try_held(serve *s)
{
    made_say("> try\n");
    serve_try_held(s);
    tell(s);
}

/* ---- the first model ---- */

static void test_first(void)
{
    static const char *const DIRS[] = {"/m/ash", "/m/birch", "here", "/m/away", "gone", NULL};
    for (size_t i = 0; i < ARRAY_LEN(DIRS); i++) {
        serve *s = begin("the first model");
        engine_options o = ENGINE;
        o.model_dir = DIRS[i];
        o.mem_limit_mib = i % 2 ? 3 : 0;
        made_options.engine = &o;
        s->engine = NULL;
        s->home = (model_ref){0};
        s->phase = SERVE_LOADING;
        made_say("= %d\n", serve_load_first(s));
        tell(s);
        loop_message_free(s->load.loaded);
        end(s);
    }
    serve *s = begin("no thread");
    no_thread = EAGAIN;
    made_say("= %d\n", serve_load_first(s));
    tell(s);
    no_thread = 0;
    one_fails("loop_message_create", 1);
    made_say("= %d\n", serve_load_first(s));
    CHECK(one_fails_over());
    tell(s);
    end(s);
}

/* Whose prompts are computed, and that nothing of it stays when the thread cannot begin. */
static void test_warm(void)
{
    static const char *const CASES[] = {"no keys",    "two keys",  "shared",
                                        "was made",   "no memory", "no memory for scopes",
                                        "no message", "no thread", "only closes"};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin(CASES[i]);
        engine_options o = ENGINE;
        o.share_cache = i == 2;
        made_options.engine = &o;
        made_options.warm_prompts = "prompts.json";
        made_options.template_kwargs = (const json *)(const void *)(i == 1 ? made_some : NULL);
        made_options.tool_scanner = "hermes";
        s->access.n_keys = i ? 2 : 0;
        s->warm = i == 3 ? warms : NULL;
        warms = i == 4 ? NULL : warms;
        no_thread = i == 7 ? EAGAIN : 0;
        s->load = (load_job){.wanted = o, .only_closes = i == 8};
        one_fails(i == 5 ? "calloc" : i == 6 ? "loop_message_create" : "none", 1);
        const bool is_started = serve_start_loader(s);
        CHECK_INT(one_fails_over(), i == 5 || i == 6);
        made_say("= %d\n", is_started);
        tell(s);
        if (is_started) {
            s->access.n_keys = 0; /* they were copied */
            s->switching = SWITCH_LOADING;
            run_thread(s);
        }
        CHECK(i == 4 || i == 5 || !s->load.scopes);
        free(s->load.scopes); /* where the thread has not begun */
        made_say("# warm %d\n", s->warm != NULL);
        end(s);
    }
}

/* How calls of tools are written. */
static void test_forms(void)
{
    static const char *const WANTED[] = {NULL, "auto", "none", "mistral", "what"};
    for (size_t i = 0; i < 3 * ARRAY_LEN(WANTED); i++) {
        serve *s = begin("how calls of tools are written");
        made_say("asked %s, template %d\n", or_none(WANTED[i / 3]), (int)(i % 3));
        made_options.tool_scanner = WANTED[i / 3];
        made_infos[1].writes_tools = i % 3 == 1;
        made_infos[1].template_text = i % 3 == 2 ? "<tool_call> <function= <parameter=" : NULL;
        loop_message m = {.type = LOOP_LOADED, .engine = made_engine(1)};
        serve_on_loaded(s, &m);
        tell(s);
        end(s);
    }
}

/* What becomes of it where it is the first. */
static void test_loaded(void)
{
    static const char *const CASES[] = {
        "by its name in the list", "as an alias",          "quietly", "in no list",
        "without a list",          "while the server ends"};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin(CASES[i]);
        made_options.alias = i == 1 ? "alias" : NULL;
        made_options.quiet = i == 2;
        made_listed = i == 3 ? 0 : made_listed;
        s->catalog = i == 4 ? NULL : s->catalog;
        s->phase = i == 5 ? SERVE_DRAINING : SERVE_LOADING;
        s->was_busy = s->is_stalled = true;
        s->stalled_ms = 7.0;
        s->engine = NULL;
        s->loader_started = true;
        loop_message m = {.type = LOOP_LOADED, .engine = made_engine(0)};
        hear_loaded(s, &m);
        end(s);
    }
    static const err_code CODES[] = {ERR_NOMEM, ERR_INVALID, ERR_CORRUPT, ERR_NOT_FOUND};
    for (size_t i = 0; i < 2 * ARRAY_LEN(CODES); i++) {
        serve *s = begin("cannot be loaded");
        s->phase = SERVE_LOADING;
        s->engine = NULL;
        loop_message m = {.type = LOOP_LOADED, .code = CODES[i / 2]};
        snprintf(m.detail.text, sizeof m.detail.text, "%s", i % 2 ? "?" : ""); /* the shortest words */
        hear_loaded(s, &m);
        end(s);
    }
    serve *s = begin("only closed");
    s->loader_started = s->load.only_closes = true;
    loop_message m = {.type = LOOP_LOADED};
    hear_loaded(s, &m);
    end(s);
}

/* Where it is said to be. */
static void test_ready(void)
{
    static const char *const HOSTS[] = {"0.0.0.0", "::", "::1", "10.0.0.7", "unix:/run/parley"};
    for (size_t i = 0; i < 3 * ARRAY_LEN(HOSTS); i++) {
        serve *s = begin("ready");
        const char *hosts[] = {HOSTS[i / 3], "other"};
        made_options.hosts = hosts;
        made_options.n_hosts = 2;
        made_options.quiet = i % 3 == 2;
        port = i / 3 == 4 ? 0 : i % 3 ? 8080 : 1;
        s->info = i % 3 ? NULL : s->info;
        s->phase = SERVE_LOADING;
        hear_loaded(s, NULL);
        end(s);
    }
}

/* ---- what loading says ---- */

static void test_loading(void)
{
    static const struct {
        const char *stage;
        double fraction;
    } STEPS[] = {{"weights", 0.0},  {"weights", 0.099}, {"weights", 0.1}, {"weights", 0.19},
                 {"weights", 0.25}, {"cache", 0.26},    {"cache", 1.0},   {"cache", 0.05}};
    for (int drawn = 0; drawn < 2; drawn++) {
        serve *s = begin(drawn ? "a bar" : "no bar");
        s->bar.is_drawn = drawn;
        for (size_t i = 0; i < ARRAY_LEN(STEPS); i++) {
            loop_message m = {.type = LOOP_LOADING, .fraction = STEPS[i].fraction};
            snprintf(m.stage, sizeof m.stage, "%s", STEPS[i].stage);
            made_say("> loading\n");
            serve_on_loading(s, &m);
            tell(s);
        }
        end(s);
    }
    serve *s = begin("from the thread");
    const engine_options *o = &s->load.wanted;
    serve_load_first(s);
    static const double FRACTIONS[] = {-0.5, 0.0, 0.25, 1.0, 1.5};
    for (size_t i = 0; i < ARRAY_LEN(FRACTIONS); i++) {
        o->on_load(o->on_load_ctx, "reading", FRACTIONS[i]);
    }
    one_fails("loop_message_create", 1); /* nobody hears of that step */
    o->on_load(o->on_load_ctx, "reading", 0.5);
    CHECK(one_fails_over());
    for (size_t i = 0; i < n_posted; i++) {
        loop_message_free(posted[i]);
    }
    n_posted = 0;
    loop_message_free(s->load.loaded);
    end(s);
}

/* ---- who waits ---- */

static void test_pump(void)
{
    serve *s = begin("all that fit go on, in the order of their arrival");
    static const char *const MODELS[] = {"ash", NULL, "oak", "", "birch", "ash", "cedar", NULL, "", "birch"};
    for (size_t i = 0; i < ARRAY_LEN(MODELS); i++) {
        held(s, 10 + i, MODELS[i]);
    }
    try_held(s);
    try_held(s); /* a switch is under way */
    end(s);

    s = begin("the model is gone");
    held(s, 11, "yew");
    held(s, 12, "birch");
    held(s, 13, "yew");
    held(s, 14, "yews");
    try_held(s);
    try_held(s);
    end(s);

    s = begin("one whose model is not known does not fail with those of a model");
    held(s, 11, "yew");
    held(s, 12, "yew")->knows_model = false;
    prepared = ERR_NOMEM;
    try_held(s);
    end(s);

    for (int phase = SERVE_LOADING; phase <= SERVE_EMPTY; phase++) {
        s = begin("without a model");
        s->engine = NULL;
        s->phase = (serve_phase)phase;
        held(s, 11, "");
        held(s, 12, NULL);
        held(s, 13, "oak");
        held(s, 14, "");
        try_held(s);
        end(s);
    }
    for (int switching = SWITCH_NONE; switching <= SWITCH_LOADING; switching++) {
        s = begin("nothing to do");
        s->switching = (switch_state)switching;
        try_held(s);
        held(s, 11, "oak");
        try_held(s);
        end(s);
    }
    s = begin("the first of the table");
    next_is_first(s);
    held(s, 11, "oak");
    try_held(s);
    end(s);
    s = begin("what cannot be prepared");
    prepared = ERR_BUSY;
    held(s, 11, "oak");
    held(s, 12, "ash");
    try_held(s);
    end(s);
}

/* Orders to load a model are answered by it being there. */
static void test_orders(void)
{
    serve *s = begin("orders");
    client(s, 11, "/models/load")->answer = 1;
    held(s, 11, "ash")->dialect = &dialect_load;
    held(s, 12, "oak")->dialect = &dialect_load; /* has gone */
    held(s, 0, "oak")->dialect = &dialect_load;
    snprintf(s->model_name, sizeof s->model_name, "o\"k");
    try_held(s);
    CHECK_INT(serve_conn(s, 11)->answer, 0);
    end(s);
}

/* Those of one socket keep their order, also behind one that is still being read. */
static void test_sockets(void)
{
    for (int i = 0; i < 32; i++) {
        serve *s = begin("behind one that is read");
        answer *first = held(s, i & 1 ? 11 : 12, i & 2 ? "oak" : NULL);
        first->state = i & 4 ? ANSWER_PREPARING : ANSWER_READY;
        first->is_accepted = i & 8;
        answer *a = held(s, i & 16 ? 11 : 0, i & 2 ? "birch" : "oak");
        a->is_socket = true;
        made_say("%d %d %d %d %d\n", i & 1, !!(i & 2), !!(i & 4), !!(i & 8), !!(i & 16));
        try_held(s);
        end(s);
    }
    serve *s = begin("in front of one that is read");
    held(s, 11, "oak");
    held(s, 11, NULL)->state = ANSWER_PREPARING;
    held(s, 11, "oak");
    try_held(s);
    end(s);
    for (int i = 0; i < 4; i++) {
        s = begin("behind one that waits");
        held(s, 11, "birch")->is_socket = true;
        held(s, i & 1 ? 11 : 12, "oak")->is_socket = i & 2;
        held(s, 11, "ash")->is_socket = true;
        held(s, 13, "ash")->is_socket = true;
        held(s, 13, "ash")->is_socket = true;
        try_held(s);
        try_held(s);
        end(s);
    }
    s = begin("behind the first of the table");
    next_is_first(s);
    held(s, 11, NULL)->state = ANSWER_PREPARING;
    held(s, 11, "oak");
    try_held(s);
    end(s);
    s = begin("the first waits for one that is read, so no model is wanted");
    held(s, 11, NULL)->state = ANSWER_PREPARING;
    held(s, 11, "birch");
    try_held(s);
    end(s);
    s = begin("the first does not say which");
    prepared = ERR_OK;
    s->engine = NULL;
    held(s, 11, NULL)->state = ANSWER_PREPARING;
    held(s, 11, NULL);
    held(s, 12, "birch");
    try_held(s);
    end(s);
}

/* ---- a switch ---- */

static serve *begin_switch(const char *what, const char *model)
{
    serve *s = begin(what);
    held(s, 11, model);
    try_held(s);
    CHECK_INT(s->switching, SWITCH_FINISHING);
    return s;
}

/* What a switch waits for. */
static void test_finishing(void)
{
    for (int i = 0; i < 7; i++) {
        serve *s = begin_switch("it waits", "birch");
        s->switching = i == 0 ? SWITCH_LOADING : i == 1 ? SWITCH_NONE : SWITCH_FINISHING;
        s->is_stalled = i == 2;
        s->loader_started = i == 3;
        engine_has.n_running = i == 4;
        engine_has.n_waiting = i == 5;
        previews_run = i == 6;
        advance(s);
        end(s);
    }
    for (int i = 0; i < 10; i++) {
        serve *s = begin_switch("for answers", "elm");
        if (i == 2) {
            next_is_first(s);
        }
        answer *a = held(s, 12, "oak");
        a->state = (answer_state)(i / 2);
        a->server = i % 2 ? "far" : NULL;
        made_say("%s %s\n", STATES[a->state], a->server ? a->server : "here");
        advance(s);
        end(s);
    }
}

/* From one to the next, as far as they go. */
static void test_switch(void)
{
    serve *s = begin_switch("to one on the shelf, and back", "elm");
    held(s, 12, "oak");
    held(s, 13, "elm");
    held(s, 14, "");
    advance(s);
    made_now_ms += 1000;
    for (uint64_t id = 1; id <= 4; id++) {
        answer *a = id_table_get(&s->answers, id);
        a->state = a->state == ANSWER_PREPARING ? ANSWER_FINISHED : a->state;
    }
    advance(s);
    end(s);

    for (int i = 0; i < 4; i++) {
        s = begin_switch(i == 3 ? "to one that is loaded; the server ends" : "to one that is loaded",
                         "birch");
        static const char *const PINNED[] = {"oak"};
        made_options.pinned = PINNED;
        made_options.n_pinned = i == 1;
        s->engine = i == 2 ? NULL : s->engine;
        s->memory_bytes = 999;
        held(s, 12, "cedar");
        held(s, 13, "birch");
        advance(s);
        s->phase = i == 3 ? SERVE_DRAINING : s->phase;
        run_thread(s);
        end(s);
    }
    s = begin_switch("to one on the shelf; none answers", "elm");
    s->engine = NULL;
    s->phase = SERVE_DRAINING;
    advance(s);
    end(s);
    s = begin_switch("to one that is not in the list any more", "birch");
    made_listed = made_found = 1;
    advance(s);
    loop_message_free(s->load.loaded);
    end(s);
    for (int i = 0; i < 2; i++) {
        s = begin_switch("no thread", "birch");
        s->engine = i ? NULL : s->engine;
        held(s, 12, "oak");
        held(s, 13, "birch");
        no_thread = EAGAIN;
        advance(s);
        end(s);
    }
}

/* The model cannot be loaded. */
static void test_failed(void)
{
    static const err_code CODES[] = {ERR_CORRUPT, ERR_UNSUPPORTED, ERR_NOT_FOUND, ERR_INVALID,
                                     ERR_NOMEM,   ERR_LIMIT,       ERR_IO};
    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        serve *s = begin_switch("it fails", "birch");
        held(s, 12, "oak");
        held(s, 13, "birch");
        held(s, 14, "cedar");
        advance(s);
        open_beside = CODES[i];
        s->phase = i == 1 ? SERVE_DRAINING : s->phase;
        run_thread(s);
        end(s);
    }
    /* What was lent is closed or not, what was before opens again or not, or was pinned. */
    for (int i = 0; i < 12; i++) {
        serve *s = begin_switch("and what was before", "birch");
        held(s, 12, "oak");
        advance(s);
        open_beside = ERR_NOMEM;
        s->load.n_closed = i % 3 == 0 ? s->load.n_lent : i % 3 == 1 ? s->load.n_lent - 1 : 0;
        s->load.has_previous = i / 3 % 2;
        open_before = i / 6 ? ERR_CORRUPT : i == 3 ? ERR_IO : ERR_OK;
        s->phase = i == 6 ? SERVE_DRAINING : s->phase;
        run_thread(s);
        end(s);
    }
    for (int i = 0; i < 2; i++) {
        serve *s = begin_switch("in the shortest words, and without", "birch");
        advance(s);
        loop_message m = {
            .type = LOOP_LOADED, .code = i ? ERR_IO : ERR_CORRUPT, .detail.text = {i ? '\0' : '?'}};
        serve_on_loaded(s, &m);
        tell(s);
        loop_message_free(s->load.loaded);
        end(s);
    }
    serve *s = begin_switch("with a model in the message", "birch");
    advance(s);
    loop_message m = {.type = LOOP_LOADED, .code = ERR_IO, .engine = made_engine(3)};
    serve_on_loaded(s, &m);
    tell(s);
    loop_message_free(s->load.loaded);
    end(s);
}

/* ---- time, and the end ---- */

static void test_ticks(void)
{
    serve *s = begin("time");
    tick(s, 5000.0);
    held(s, 11, "birch")->created_ms = 3001.0;
    held(s, 12, "birch")->created_ms = 3000.0;
    held(s, 13, "oak")->created_ms = 3500.0;
    held(s, 14, "birch")->created_ms = 2999.0;
    held(s, 15, "birch")->created_ms = 2000.0;
    held(s, 16, "oak")->state = ANSWER_FINISHED;
    tick(s, 5000.0);
    tick(s, 5000.5);
    s->switching = SWITCH_LOADING;
    tick(s, 5001.5);
    end(s);
    s = begin("nobody is left");
    held(s, 11, "birch");
    tick(s, 8000.0);
    end(s);
}

static void test_refuse(void)
{
    for (int i = 0; i < 6; i++) {
        serve *s = begin("the end");
        s->switching = (switch_state)(i % 3);
        s->phase = i / 3 ? SERVE_DRAINING : SERVE_EMPTY;
        s->engine = NULL;
        held(s, 11, "birch");
        held(s, 12, NULL);
        held(s, 13, "")->state = ANSWER_RUNNING;
        serve_refuse_held(s);
        tell(s);
        end(s);
    }
    for (int i = 0; i < 2; i++) {
        serve *s = begin("try at the end");
        held(s, 11, "oak");
        s->phase = i ? SERVE_DRAINING : SERVE_READY;
        try_held(s);
        end(s);
    }
}

int main(void)
{
    made_said = bytes_empty(1 << 24);
    test_first();
    test_warm();
    test_forms();
    test_loaded();
    test_ready();
    test_loading();
    test_pump();
    test_orders();
    test_sockets();
    test_finishing();
    test_switch();
    test_failed();
    test_ticks();
    test_refuse();
    recorded_check("server/service/recorded/switch.txt", bytes_str(&made_said));
    bytes_deinit(&made_said);
    CHECK_DONE();
}
