/* serve_status: what /v1/status, /slots and the list of cached prompts say of numbers that are all different, and who finds
 * which answer; recorded. The engine, the stores and the net are the test. */
#include "base/memory.h"
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"
#include "tests/wrap.h"

/* ---- what is asked of others ---- */

static double now_ms = 100000.0;
static bytes all;
static int n_cached;
static bool is_found;
static engine_status engine_has;
static const file_store_options FILES = {.quota = 903};

WRAP(double, clock_ms, (void), return now_ms;)
/* Without the version, which does not stay the same. */
static void note_reply(const net_reply *reply)
{
    static const char VERSION[] = "\"version\":\"" PARLEY_VERSION "\"";
    bytes text = bytes_empty(1 << 20);
    bytes_append(&text, reply->body, reply->body_bytes);
    const char *at = strstr(bytes_str(&text), VERSION);
    const size_t n = at ? (size_t)(at - text.data) : text.len, skip = at ? sizeof VERSION - 1 : 0;
    bytes_printf(&all, "< %d %s%.*s%s%s\n", reply->status, reply->headers ? reply->headers : "", (int)n,
                 text.data, at ? "\"version\":\"*\"" : "", text.data + n + skip);
    bytes_deinit(&text);
}

WRAP(void, net_send_reply, (net * n, uint64_t id, const net_reply *reply), (void)n; (void)id;
     note_reply(reply);)
WRAP(void, engine_get_status, (engine * e, engine_status *out), (void)e; *out = engine_has;)
WRAP(void, prep_get_status, (const prep *p, prep_status *out), (void)p;
     *out = ((prep_status){
         .n_begun = 801, .n_computing = 802, .n_waiting = 803, .oldest_ms = 804, .silent_ms = 805});)
WRAP(void, file_store_usage_of, (file_store * fs, uint64_t scope, uint64_t *n_bytes, size_t *n_files),
     (void)fs;
     CHECK_INT(scope, 5); *n_files = 901; *n_bytes = 902;)
WRAP(const file_store_options *, file_store_get_options, (const file_store *fs), (void)fs; return &FILES;)
WRAP(uint64_t, metrics_resident_bytes, (void), return 701;)
WRAP(size_t, memory_available, (void), return 702;)
WRAP(void, upstreams_write_status, (upstreams * u, bytes *out), (void)u;
     bytes_append_str(out, "[\"upstreams\"]");)
WRAP(void, serve_write_residents, (const serve *s, bytes *out), (void)s;
     bytes_append_str(out, "\"residents\"");)
WRAP(size_t, response_store_bytes, (response_store * l), (void)l; return 30;)
WRAP(void, serve_cancel_answer, (serve * s, answer *a), (void)s;
     bytes_printf(&all, "cancelled %d\n", (int)a->id);)
WRAP(void, serve_end_thinking, (serve * s, const answer *a), (void)s;
     bytes_printf(&all, "thinks no more: %d\n", (int)a->id);)
WRAP(void, engine_clear_cache, (engine * e, const uint64_t *scope), (void)e;
     bytes_printf(&all, "cleared for %d\n", (int)*scope);)
WRAP(err_code, engine_check_name, (const engine *e, const char *name, err_detail *d), (void)e;
     return strcmp(name, "bad") == 0 ? err_set(d, ERR_INVALID, "no name") : ERR_OK;)

static engine_cached cached(int i)
{
    engine_cached one = {
        .n_tokens = 10 + i, .n_bytes = 20 + (uint64_t)i, .used_at = 30 + i, .is_on_disk = i % 2};
    snprintf(one.name, sizeof one.name, "%s", i == 2 ? "" : "n");
    return one;
}

WRAP(
    void, engine_list_cache,
    (engine * e, uint64_t scope, void (*each)(void *ctx, const engine_cached *one), void *ctx), (void)e;
    CHECK_INT(scope, 5); for (int i = 1; i <= n_cached; i++) {
        const engine_cached one = cached(i);
        each(ctx, &one);
    })
WRAP(bool, engine_find_named,
     (engine * e, uint64_t scope, const char *name, bool forgets, engine_cached *out), (void)e;
     CHECK_INT(scope, 5); bytes_printf(&all, "find %s%s\n", name, forgets ? ", forget" : "");
     *out = cached(1); return is_found;)

static char some[1];
static const engine_info INFO = {.compute = "fast",
                                 .cache_type = "f16",
                                 .n_ctx = 601,
                                 .n_parallel = 3,
                                 .n_params = 602,
                                 .weight_bytes = 603,
                                 .state_bytes = 604,
                                 .has_mtp = true};

static serve *begin(void)
{
    serve *s = made_serve();
    s->engine = (engine *)some;
    s->info = &INFO;
    s->phase = SERVE_READY;
    s->started_ms = 40000.0;
    snprintf(s->model_name, sizeof s->model_name, "ash");
    s->memory = ledger_create(500);
    CHECK(s->memory != NULL);
    return s;
}

static void end(serve *s)
{
    ledger_destroy(s->memory);
    made_end(s);
}

static conn *asks(serve *s, net_method method, const char *path)
{
    conn *c = id_table_get(&s->conns, 1);
    c = c ? c : made_conn(s, 1);
    made_route(c, method, path);
    bytes_printf(&all, "> %s\n", path);
    return c;
}

/* In each state, with and without a first token. */
static void add_answers(serve *s)
{
    for (int state = ANSWER_HELD; state <= ANSWER_FINISHED; state++) {
        for (int with = 0; with < 4; with++) {
            answer *a = made_answer(s, &dialect_chat);
            const int n = 10 * state + with;
            a->state = (answer_state)state;
            a->started = with & 1;
            a->first_token_ms = with & 2 ? 5.0 : 0.0;
            a->phase = with & 2 ? GEN_PHASE_MEDIA : GEN_PHASE_PREFILL;
            a->processed = 1000 + n;
            a->total = 2000 + n;
            a->n_tokens = 3000 + n;
            a->info =
                (gen_request_info){.n_prompt_tokens = 4000 + n, .max_tokens = 5000 + n, .route = with % 2};
            a->timings.cache_n = 6000 + n;
            a->timings.predicted_n = 7000 + n;
            a->timings.predicted_ms = with ? 8000 + n : 0.0;
            a->created_ms = now_ms - 9000 - n;
            a->scope = with == 3 && state == ANSWER_PREPARING ? 6 : 5;
        }
    }
}

/* ---- tests ---- */

static void test_status(void)
{
    engine_has = (engine_status){.n_running = 101,
                                 .n_waiting = 102,
                                 .progress_counter = 103,
                                 .n_requests = 104,
                                 .n_prompt_tokens = 105,
                                 .n_generated_tokens = 106,
                                 .n_cached_tokens = 107,
                                 .n_vision_encodes = 108,
                                 .n_steps = 109,
                                 .n_vision_hits = 110,
                                 .n_vision_entries = 111,
                                 .vision_cache_bytes = 112,
                                 .n_cache_queries = 213,
                                 .n_cache_hits = 114,
                                 .n_cache_entries = 115,
                                 .cache_bytes = 116,
                                 .n_disk_entries = 117,
                                 .disk_bytes = 118,
                                 .disk_budget = 119,
                                 .n_disk_hits = 120,
                                 .n_disk_tokens = 121,
                                 .n_disk_saves = 122,
                                 .n_disk_errors = 123,
                                 .n_drafted = 224,
                                 .n_draft_accepted = 125,
                                 .n_copied = 226,
                                 .n_copied_accepted = 127,
                                 .n_parked_steps = 130,
                                 .vision_ms_sum = 131,
                                 .prefill_ms_sum = 132,
                                 .decode_ms_sum = 133};
    serve *s = begin();
    ledger_hold hold = {.ledger = s->memory};
    CHECK(ledger_try(&hold, 77));
    add_answers(s);
    s->upstreams = (upstreams *)some;
    serve_on_status(s, asks(s, NET_GET, "/v1/status"));
    s->kept.n_bytes = 40; /* and the store has 30 */
    engine_has.disk_budget = 0;
    s->is_prep_stalled = true;
    s->upstreams = NULL;
    serve_on_status(s, asks(s, NET_GET, "/v1/status"));
    ledger_give_all(&hold); /* what is kept has been counted a moment before it is held */
    serve_on_status(s, asks(s, NET_GET, "/v1/status"));
    end(s);
    s = begin();
    s->engine = NULL;
    s->info = NULL;
    for (int with = 0; with < 5; with++) {
        s->phase = (serve_phase)(with % 4);
        s->is_stalled = with == 4;
        serve_on_status(s, asks(s, NET_GET, "/v1/status"));
    }
    end(s);
}

static void test_slots(void)
{
    serve *s = begin();
    conn *c = asks(s, NET_GET, "/slots");
    engine_has = (engine_status){.n_running = 2};
    serve_on_slots(s, c);
    snprintf(c->query_string, sizeof c->query_string, "fail_on_no_slot=1");
    serve_on_slots(s, c);
    engine_has.n_running = 3;
    serve_on_slots(s, c);
    snprintf(c->query_string, sizeof c->query_string, "fail_on_no_slot=0");
    serve_on_slots(s, c);
    snprintf(c->query_string, sizeof c->query_string, "fail_on_no_slot=long");
    serve_on_slots(s, c);
    c->query_string[0] = '\0';
    add_answers(s); /* of which three run */
    serve_on_slots(s, c);
    made_answer(s, &dialect_chat)->scope = 6;
    s->engine = NULL;
    serve_on_slots(s, c);
    s->upstreams = (upstreams *)some;
    made_options.has_no_model = true;
    serve_on_slots(s, c);
    end(s);
    s = begin();
    answer *one = made_answer(s, &dialect_chat);
    one->state = ANSWER_RUNNING;
    one->started = true;
    one->info.max_tokens = 9;
    one->n_tokens = 4;
    c = asks(s, NET_GET, "/slots");
    serve_on_slots(s, c);
    one->scope = 6; /* another's is taken, and no more is said */
    serve_on_slots(s, c);
    end(s);
}

static void test_cache(void)
{
    serve *s = begin();
    for (n_cached = 0; n_cached <= 3; n_cached++) {
        serve_on_cache(s, asks(s, NET_GET, "/v1/cache"));
    }
    serve_on_cache(s, asks(s, NET_DELETE, "/v1/cache"));
    for (int i = 0; i < 2; i++) {
        is_found = i;
        serve_on_cache_entry(s, asks(s, NET_GET, "/v1/cache/n"));
        serve_on_cache_entry(s, asks(s, NET_DELETE, "/v1/cache/n"));
    }
    serve_on_cache_entry(s, asks(s, NET_GET, "/v1/cache/bad"));
    s->engine = NULL;
    serve_on_cache(s, asks(s, NET_GET, "/v1/cache"));
    serve_on_cache_entry(s, asks(s, NET_GET, "/v1/cache/n"));
    s->upstreams = (upstreams *)some; /* models of other servers alone */
    made_options.has_no_model = true;
    serve_on_cache(s, asks(s, NET_GET, "/v1/cache"));
    serve_on_cache(s, asks(s, NET_DELETE, "/v1/cache"));
    serve_on_cache_entry(s, asks(s, NET_GET, "/v1/cache/bad"));
    end(s);
}

static void control(serve *s, const char *text)
{
    bytes body = bytes_empty(1000);
    bytes_append_str(&body, text);
    conn *c = asks(s, NET_POST, "/v1/chat/completions/control");
    bytes_printf(&all, "> %s\n", text);
    serve_on_control(s, c, &body);
    bytes_deinit(&body);
}

/* By its number or by its name, and of this key alone. */
static void test_named(void)
{
    serve *s = begin();
    answer *a = made_answer(s, &dialect_chat), *foreign = made_answer(s, &dialect_chat);
    foreign->scope = 6;
    snprintf(a->chat_id, sizeof a->chat_id, "chat-a");
    snprintf(foreign->chat_id, sizeof foreign->chat_id, "chat-b");
    CHECK(serve_find_answer(s, 5, "req_1") == a && serve_find_answer(s, 5, "chat-a") == a);
    CHECK(serve_find_answer(s, 6, "req_2") == foreign && serve_find_answer(s, 6, "chat-b") == foreign);
    static const char *const NONE[] = {"req_2", "chat-b", "req_", "req_0", "1", "req", "", "chat-", "req_9"};
    for (size_t i = 0; i < ARRAY_LEN(NONE); i++) {
        CHECK(!serve_find_answer(s, 5, NONE[i]));
    }
    static const char *const ASKED[] = {"{\"id\": \"chat-a\", \"action\": \"reasoning_end\"}",
                                        "{\"id\": \"chat-a\", \"action\": \"other\"}",
                                        "{\"id\": \"chat-a\"}",
                                        "{\"id\": \"chat-b\", \"action\": \"reasoning_end\"}",
                                        "{\"action\": \"reasoning_end\"}",
                                        "[]",
                                        "{"};
    for (int state = ANSWER_PREPARING; state <= ANSWER_RUNNING; state++) {
        a->state = (answer_state)state;
        a->ends_thinking = false;
        control(s, ASKED[0]);
        CHECK(a->ends_thinking);
    }
    for (size_t i = 1; i < ARRAY_LEN(ASKED); i++) {
        a->ends_thinking = false;
        control(s, ASKED[i]);
        CHECK(!a->ends_thinking);
    }
    a->server = "far";
    control(s, ASKED[0]);
    CHECK(!a->ends_thinking);
    serve_on_cancel(s, asks(s, NET_POST, "/v1/requests/req_1/cancel"));
    serve_on_cancel(s, asks(s, NET_POST, "/v1/requests/req_2/cancel"));
    a->state = ANSWER_FINISHED;
    serve_on_cancel(s, asks(s, NET_DELETE, "/v1/requests/req_1"));
    end(s);
}

int main(void)
{
    all = bytes_empty(1 << 20);
    test_status();
    test_slots();
    test_cache();
    test_named();
    recorded_check("server/service/recorded/status.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
