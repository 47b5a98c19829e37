/* serve_switch: what becomes of a request that arrives while a model answers, is loaded, or there is none: now, later, or why
 * not; and of orders to load and unload models; recorded. */
#include "tests/server/service/made_switch.h"

static char letter_of(model_turn turn, const api_error *e)
{
    static const struct {
        const char *code;
        char letter;
    } CODES[] = {{"server_draining", 'D'},     {"no_model", 'E'},
                 {"model_loading", 'M'},       {"engine_stalled", 'S'},
                 {"preparation_stalled", 'P'}, {"queue_full", 'Q'},
                 {"model_not_loaded", 'X'},    {"model_load_failed", 'F'},
                 {"models_pinned", 'R'}};
    for (size_t i = 0; turn == MODEL_REFUSED && i < ARRAY_LEN(CODES); i++) {
        if (strcmp(e->code, CODES[i].code) == 0) {
            return CODES[i].letter;
        }
    }
    return turn == MODEL_NOW ? 'n' : turn == MODEL_LATER ? 'l' : '?';
}

/* n: now; l: later; what else refuses it, in capitals. In a line each phase with each stage of a switch. */
static void test_turns(void)
{
    static const char *const NAMES[] = {NULL, "", "oak", "ash", "birch", "yew", "far/pine"};
    made_say("\n# turns\n");
    for (size_t k = 0; k < ARRAY_LEN(NAMES); k++) {
        for (int with = 0; with < 64; with++) {
            if ((NAMES[k] && with & 12) || (k > 1 && with & 32 && with & 16)) {
                continue; /* of no effect */
            }
            made_say("%s,%s%s%s%s%s%s:", NAMES[k] ? NAMES[k] : "not read", with & 1 ? " upstreams" : "",
                     with & 2 ? " engine" : "", with & 4 ? " preparation" : "", with & 8 ? " list" : "",
                     with & 16 ? " stalled" : "", with & 32 ? " held" : "");
            for (int i = 0; i < 12; i++) {
                serve *s = begin(NULL);
                conn *c = client(s, 11, "/v1/chat/completions");
                api_error e = {0};
                char name[REQUEST_MODEL_MAX];
                s->phase = (serve_phase)(i / 3);
                s->switching = (switch_state)(i % 3);
                s->upstreams = with & 1 ? (upstreams *)(void *)made_some : NULL;
                s->engine = with & 2 ? s->engine : NULL;
                s->is_prep_stalled = with & 4;
                s->catalog = NAMES[k] || with & 8 ? s->catalog : NULL;
                s->is_stalled = with & 16;
                if (with & 32) {
                    held(s, 12, "birch");
                }
                snprintf(name, sizeof name, "%s", NAMES[k] ? NAMES[k] : "");
                const model_turn turn = NAMES[k] ? serve_named_turn(s, 11, UINT64_MAX, name, 10, &e)
                                                 : serve_model_turn(s, c, 10, &e);
                made_say("%s%c", i % 3 ? "" : " ", letter_of(turn, &e));
                if (turn == MODEL_LATER && NAMES[k]) {
                    CHECK_STR(name, k == 2 || k == 3 ? "oak" : k == 4 ? "birch" : "");
                } else {
                    CHECK_STR(name, NAMES[k] ? NAMES[k] : "");
                }
                end(s);
            }
            made_say("\n");
        }
    }
}

/* Who is behind one of the same connection that is being read waits, too. */
static void test_turn_order(void)
{
    made_say("\n# turns of a connection\n");
    for (int i = 0; i < 64; i++) {
        serve *s = begin(NULL);
        conn *c = client(s, i & 1 ? 11 : 12, "/v1/chat/completions");
        answer *a = held(s, 11, i & 2 ? "oak" : NULL);
        a->state = i & 4 ? ANSWER_PREPARING : ANSWER_RUNNING;
        a->is_accepted = i & 8;
        s->upstreams = i & 16 ? (upstreams *)(void *)made_some : NULL;
        api_error e = {0};
        char name[REQUEST_MODEL_MAX] = "oak";
        const char turn = letter_of(serve_model_turn(s, c, 10, &e), &e);
        const char named = letter_of(serve_named_turn(s, c->id, i & 32 ? 2 : 1, name, 10, &e), &e);
        made_say("%c%c%s", turn, named, i % 16 == 15 ? "\n" : " ");
        end(s);
    }
}

/* So many may wait, with bodies of so many bytes. */
static void test_room(void)
{
    static const struct {
        size_t n, each, body;
    } CASES[] = {{1, 0, 0},    {3, 0, 0},    {4, 0, 0},   {5, 0, 0},   {3, 100, 300}, {3, 100, 301},
                 {2, 50, 500}, {2, 50, 501}, {3, 200, 0}, {3, 200, 1}, {1, 0, 600},   {1, 0, 601}};
    made_say("\n# room\n");
    for (size_t k = 0; k < ARRAY_LEN(CASES); k++) {
        serve *s = begin(NULL);
        conn *c = client(s, 11, "/v1/chat/completions");
        made_options.n_queue = 4;
        next_is_first(s);
        for (size_t i = 0; i < CASES[k].n; i++) {
            answer *a = held(s, 12, "birch");
            a->body = bytes_empty(1000);
            for (size_t n = 0; n < CASES[k].each; n++) {
                bytes_append_char(&a->body, 'x');
            }
        }
        answer *other = held(s, 12, "birch"); /* counts no more */
        other->state = ANSWER_RUNNING;
        other->body = bytes_empty(1000);
        bytes_append_str(&other->body, "xxxxx");
        api_error e = {0};
        char name[REQUEST_MODEL_MAX] = "birch";
        made_say("%zu of %zu, %zu: %c", CASES[k].n, CASES[k].each, CASES[k].body,
                 letter_of(serve_model_turn(s, c, CASES[k].body, &e), &e));
        made_say("%c\n", letter_of(serve_named_turn(s, 11, UINT64_MAX, name, CASES[k].body, &e), &e));
        end(s);
    }
}

/* A server that has something of all this: what it says of a model that is not loaded. */
static void begin_refusal(serve *s, int i)
{
    static const char *const PINNED[] = {"oak", "elm"};
    made_options.switches_model = i != 1;
    made_options.pinned = PINNED;
    made_options.n_pinned = i > 2 ? 2 : 0;
    made_options.models_max = i == 4 ? 3 : 2;
    made_list[1].error = i == 2 ? ERR_CORRUPT : ERR_OK;
    snprintf(made_list[1].reason, sizeof made_list[1].reason, "it is damaged");
    made_listed = i == 5 ? 1 : MADE_MODELS;
    if (i == 5) { /* the command line's is in no list */
        s->current = made_ref(1);
    }
}

static void test_refusals(void)
{
    static const char *const NAMES[] = {"birch", "elm", "oak"};
    for (int i = 0; i < 6; i++) {
        for (size_t k = 0; k < ARRAY_LEN(NAMES); k++) {
            serve *s = begin("named");
            begin_refusal(s, i);
            char name[REQUEST_MODEL_MAX];
            api_error e = {0};
            snprintf(name, sizeof name, "%s", NAMES[k]);
            const model_turn turn = serve_named_turn(s, 11, UINT64_MAX, name, 10, &e);
            made_say("%d %s: %c, %d %s %s: %s\n", i, name, letter_of(turn, &e), e.status, e.code, e.param,
                     e.message);
            end(s);
        }
    }
}

static void order(serve *s, const char *path, const char *text)
{
    conn *c = id_table_get(&s->conns, 11);
    c = c ? c : client(s, 11, path);
    bytes body = bytes_empty(1 << 20);
    bytes_append_str(&body, text);
    made_say("> %s %s\n", path, text);
    c->answer = 0;
    if (strcmp(path, "/models/load") == 0) {
        serve_on_load_model(s, c, &body);
    } else {
        serve_on_unload_model(s, c, &body);
    }
    const answer *a = id_table_get(&s->answers, c->answer);
    if (a) {
        made_say("  %s %s %d, of %d\n", a->dialect == &dialect_load ? "loads" : "?", a->opt.model,
                 a->knows_model, (int)a->conn);
    }
    tell(s);
    bytes_deinit(&body);
}

static const char *const BODIES[] = {"{\"model\":\"birch\"}", "{\"model\":\"oak\"}", "{\"model\":\"ash\"}",
                                     "{\"model\":\"elm\"}",   "{\"model\":\"yew\"}", "{\"model\":\"\"}",
                                     "{\"model\":7}",         "{\"model\":"};

static void test_load_orders(void)
{
    for (int i = 0; i < 6; i++) {
        serve *s = begin("orders to load");
        begin_refusal(s, i);
        for (size_t k = 0; k < (i ? 4 : ARRAY_LEN(BODIES)); k++) {
            order(s, "/models/load", BODIES[k]);
        }
        end(s);
    }
    for (int i = 0; i < 24; i++) {
        serve *s = begin("in each state");
        s->phase = (serve_phase)(i / 6);
        s->switching = (switch_state)(i / 2 % 3);
        s->engine = i % 2 ? s->engine : NULL;
        order(s, "/models/load", BODIES[0]);
        end(s);
    }
    serve *s = begin("no room, no memory");
    made_options.n_queue = 1;
    one_fails("serve_new_answer", 1);
    order(s, "/models/load", BODIES[0]);
    CHECK(one_fails_over());
    order(s, "/models/load", BODIES[0]);
    order(s, "/models/load", BODIES[0]);
    order(s, "/models/load", BODIES[1]);
    end(s);
    s = begin("as large as a body may be");
    made_options.max_body = 0; /* an order has none */
    order(s, "/models/load", BODIES[0]);
    end(s);
}

static void test_unload_orders(void)
{
    serve *s = begin("orders to unload");
    for (int i = 0; i < 2; i++) {
        unloads = i;
        for (size_t k = 0; k < ARRAY_LEN(BODIES); k++) {
            order(s, "/models/unload", BODIES[k]);
        }
    }
    end(s);
}

static void test_body(void)
{
    serve *s = begin("a body");
    answer *a = held(s, 11, "oak");
    s->memory = ledger_create(10);
    a->body = bytes_empty(100);
    bytes_append_str(&a->body, "0123456789");
    CHECK(serve_reserve_body(s, a));
    CHECK(a->memory.ledger == s->memory && a->memory.bytes == 10);
    ledger_give_all(&a->memory);
    bytes_append_char(&a->body, 'x');
    CHECK(!serve_reserve_body(s, a));
    CHECK_INT(a->memory.bytes, 0);
    a->state = ANSWER_PREPARING;
    serve_hold_answer(s, a);
    tell(s);
    ledger_destroy(s->memory);
    a->memory.ledger = NULL;
    end(s);

    /* Of a body that is not too long, a name that is not. */
    for (int i = 0; i < 4; i++) {
        bytes body = bytes_empty(1 << 20);
        char out[REQUEST_MODEL_MAX] = "before";
        bytes_append_str(&body, "{\"model\":\"");
        for (int n = 0; n < (i == 0 ? REQUEST_MODEL_MAX - 1 : i == 1 ? REQUEST_MODEL_MAX : 3); n++) {
            bytes_append_char(&body, 'm');
        }
        bytes_append_str(&body, "\"");
        while (i > 1 && body.len < SERVE_SMALL_MESSAGE_BYTES + (size_t)i - 3) {
            bytes_append_char(&body, ' ');
        }
        bytes_append_char(&body, '}');
        serve_read_model(out, &body);
        CHECK_INT(strlen(out), i == 0 ? REQUEST_MODEL_MAX - 1 : i == 2 ? 3 : 0);
        bytes_deinit(&body);
    }
    bytes body = bytes_empty(1000);
    bytes_append_str(&body, "{\"model\":");
    for (int n = 0; n < LIMIT_JSON_DEPTH; n++) {
        bytes_append_char(&body, '[');
    }
    char out[REQUEST_MODEL_MAX] = "before";
    serve_read_model(out, &body);
    CHECK_STR(out, "");
    bytes_deinit(&body);
}

int main(void)
{
    made_said = bytes_empty(1 << 24);
    test_turns();
    test_turn_order();
    test_room();
    test_refusals();
    test_load_orders();
    test_unload_orders();
    test_body();
    recorded_check("server/service/recorded/turns.txt", bytes_str(&made_said));
    bytes_deinit(&made_said);
    CHECK_DONE();
}
