/* serve_routes: whom each route asks and with what, the replies that serve_http.c makes itself, streams piece by piece, and what is
 * left of a connection behind a request and at its end; recorded. All others are the test. */
#define _GNU_SOURCE /* memmem */
#include <math.h>

#include "base/log.h"
#include "server/protocol/dialects/ollama_reply.h"
#include "server/service/assets.h"
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"
#include "tests/wrap.h"

enum { PIECE = 16384, KEEPALIVE_S = 5 };

/* ---- what is asked of others ---- */

static bytes all;
static char some[1];      /* an engine, a net, other servers, a store */
static double now_ms;     /* of the clock */
static answer *starts;    /* what a request becomes; NULL: it is refused */
static bool is_short;     /* of memory, for metrics */
static const char *takes; /* the next piece of a stream */
static size_t left;       /* behind it */
static const char *log_has;
static int n_news;

/* On one line, of long ones the begin. */
static void note_text(const char *text, size_t len)
{
    enum { LONG = 900, SHOWN = 50 };
    const size_t n = sizeof PARLEY_VERSION - 1; /* which does not stay the same */
    const char *version = len > n ? memmem(text, len, PARLEY_VERSION, n) : NULL;
    for (size_t i = 0; i < len && (i < SHOWN || len <= LONG); i++) {
        if (version && text + i == version) {
            bytes_append_str(&all, "VERSION");
            i += n;
        }
        bytes_append_char(&all, text[i] == '\n' ? '|' : text[i] == '\r' ? '^' : text[i]);
    }
    if (len > LONG) {
        bytes_printf(&all, "... of %zu", len);
    }
}

#define ASKED(name)                                                                                          \
    WRAP(void, name, (serve * s, conn * c), (void)s; bytes_printf(&all, "  %s for %d\n", #name, (int)c->id);)
#define ASKED_WITH(name, type)                                                                               \
    WRAP(void, name, (serve * s, conn * c, type * body), (void)s;                                            \
         bytes_printf(&all, "  %s for %d with %s\n", #name, (int)c->id, bytes_str(body));)

ASKED(serve_on_tags)
ASKED(serve_on_version)
ASKED(serve_on_slots)
ASKED(serve_on_response)
ASKED(serve_on_input_items)
ASKED(serve_on_models)
ASKED(serve_on_status)
ASKED(serve_on_cancel)
ASKED(serve_on_cache)
ASKED(serve_on_cache_entry)
ASKED(serve_on_mcp)
ASKED(serve_on_hub)
ASKED(serve_finish_form)
ASKED(serve_on_files)
ASKED_WITH(serve_on_show, const bytes)
ASKED_WITH(serve_on_load_model, bytes)
ASKED_WITH(serve_on_unload_model, const bytes)
ASKED_WITH(serve_on_hub_order, const bytes)
ASKED_WITH(serve_on_control, const bytes)
ASKED_WITH(serve_on_mcp_order, const bytes)
ASKED_WITH(serve_on_conversations, bytes)
ASKED_WITH(serve_on_uploads, const bytes)
ASKED_WITH(serve_on_history, bytes)
ASKED(serve_end_chain)

WRAP(double, clock_ms, (void), return now_ms;)
WRAP(void, metrics_request, (metrics * m, const char *endpoint, int status), (void)m;
     bytes_printf(&all, "  counted %s %d\n", endpoint, status);)
WRAP(void, net_want_write, (net * n, uint64_t id), (void)n;
     bytes_printf(&all, "  wants to write to %d\n", (int)id);)
WRAP(int, net_connections, (const net *n), (void)n; return 17;)
WRAP(void, net_send_reply, (net * n, uint64_t id, const net_reply *r), (void)n;
     bytes_printf(&all, "  reply to %d: %d %s%s%s%s ", (int)id, r->status,
                  r->content_type ? r->content_type : "-", r->head_only ? ", no body" : "",
                  r->body_lives ? ", it lives" : "", r->has_file ? ", a file" : "");
     note_text(r->headers ? r->headers : "-", strlen(r->headers ? r->headers : "-"));
     bytes_append_char(&all, ' '); note_text(r->body, r->body_bytes); bytes_append_char(&all, '\n');)

WRAP(
    answer *, serve_start_answer,
    (serve * s, conn *c, const dialect *d, bytes *body, json_doc **doc, api_error *e), (void)s;
    bytes_printf(&all, "  an answer for %d: %s%s %d with %s%s\n", (int)c->id, d->name,
                 d->is_query ? ", a query" : "", d->is_query ? (int)d->query : 0, bytes_str(body),
                 doc ? ", a document" : "");
    if (!starts) { api_error_set(e, 429, "queue_full", NULL, "no room"); } return starts;)

WRAP(void, assets_find,
     (asset_reply * r, const char *ui_dir, const char *path, const char *encoding, const char *match),
     memset(r, 0, sizeof *r);
     bytes_printf(&all, "  a file %s of %s, %s, not %s\n", path, ui_dir ? ui_dir : "-", encoding, match);
     r->reply.status = (int)strtol(path + 1, NULL, 10); r->reply.content_type = "text/x";
     r->reply.body = path; r->reply.body_bytes = strlen(path);)
WRAP(void, asset_reply_deinit, (asset_reply * r), CHECK(r->reply.status);
     bytes_append_str(&all, "  it is freed\n");)

WRAP(void, engine_get_status, (const engine *e, engine_status *out), CHECK((const char *)e == some);
     *out = (engine_status){.n_running = 3};)
WRAP(ledger_status, serve_memory_status, (serve * s, size_t *kept), (void)s; *kept = 31;
     return (ledger_status){.used = 32, .limit = 33};)
WRAP(void, file_store_usage, (file_store * fs, uint64_t *n_bytes, size_t *n), CHECK((const char *)fs == some);
     *n_bytes = 34; *n = 35;)
WRAP(void, metrics_write, (bytes * out, const metrics *m, const metrics_gauges *g), (void)m;
     out->failed = is_short;
     bytes_printf(out,
                  "%d connections, %d sockets, %d answers, %d resident, %d files, %d stored, engine %d, %s, "
                  "memory %zu of %zu, kept %zu|",
                  g->connections, g->sockets, g->answers, g->n_resident, (int)g->n_files,
                  (int)g->stored_bytes, g->engine ? g->engine->n_running : -1, g->compute ? g->compute : "-",
                  g->memory.used, g->memory.limit, g->kept_bytes);)
WRAP(void, upstreams_write_metrics, (upstreams * u, bytes *out), CHECK((char *)u == some);
     bytes_append_str(out, "others|");)
WRAP(void, serve_write_video, (bytes * out, const engine_info *info), CHECK(info->has_video);
     bytes_append_str(out, ",\"video_of\":1");)

WRAP(void, mcp_cancel, (mcp * m, uint64_t ticket), CHECK((char *)m == some);
     bytes_printf(&all, "  the order %d is cancelled\n", (int)ticket);)
WRAP(void, serve_abandon_answers, (serve * s, uint64_t id), (void)s;
     bytes_printf(&all, "  answers of %d are left\n", (int)id);)
WRAP(void, serve_drop_previews, (serve * s, uint64_t id), (void)s;
     bytes_printf(&all, "  previews of %d are dropped\n", (int)id);)
WRAP(void, serve_drop_form, (conn * c), bytes_printf(&all, "  the form of %d is dropped\n", (int)c->id);)

WRAP(net_pull, serve_socket_pull, (serve * s, conn *c, bytes *out), (void)s; CHECK(c->is_socket);
     bytes_append_str(out, "a frame"); return NET_PULL_MORE;)
WRAP(size_t, serve_take_stream, (serve * s, conn *c, answer *a, bytes *out, size_t max), (void)s;
     CHECK(c->answer == a->id); CHECK_INT(max, PIECE); bytes_append_str(out, takes); return left;)
WRAP(const char *, serve_take_news, (const serve *s, reader *r, const answer *a, bytes *out), (void)s;
     (void)r; CHECK(a->opt.return_progress); bytes_append_str(out, n_news > 0 ? "{news}" : "");
     return n_news-- > 0 ? "news" : NULL;)
WRAP(const char *, responses_reply_catch_up, (bytes * out, const responses_reply *r, int64_t *next), (void)r;
     bytes_printf(out, "{lost at %d}", (int)*next); out->failed = is_short; *next += 10; return "snapshot";)

/* What the log has at each place: an event, a long one, none any more, its end, none yet. */
WRAP(event_log_state, event_log_read, (const event_log *log, int64_t seq, event_view *out), (void)log;
     static char text[2 * PIECE]; memset(text, 'x', sizeof text);
     const char kind = *log_has ? *log_has++ : 'n';
     *out = (event_view){.type = "t",
                         .text = kind == 'e' ? "{event}" : text,
                         .len = kind == 'e'   ? 7
                                : kind == 'l' ? PIECE - strlen("event: t|data: ||") - 1
                                : kind == 'L' ? PIECE - strlen("event: t|data: ||")
                                              : 0};
     bytes_printf(&all, "  %c at %d\n", kind, (int)seq); return kind == 't'   ? EVENT_LOG_TRIMMED
                                                                : kind == 'x' ? EVENT_LOG_END
                                                                : kind == 'n' ? EVENT_LOG_WAIT
                                                                              : EVENT_LOG_EVENT;)

static serve *begin(const char *what)
{
    bytes_printf(&all, "%s\n", what);
    serve *s = made_serve();
    made_options.keepalive_s = KEEPALIVE_S;
    s->phase = SERVE_READY;
    s->files = (file_store *)some;
    s->mcp = (mcp *)some;
    now_ms = 9000.0;
    starts = NULL;
    is_short = false;
    takes = log_has = "";
    left = 0;
    n_news = 0;
    return s;
}

/* The request of a connection whose head was let in. */
static conn *asks(serve *s, net_method method, const char *path, const char *text)
{
    conn *c = serve_conn(s, 3) ? serve_conn(s, 3) : made_conn(s, 3);
    bytes body = bytes_empty(1000);
    bytes_append_str(&body, text);
    bytes_printf(&all, " %d %s %s\n", (int)method, path, text);
    made_route(c, method, path);
    c->allow = NET_GET | NET_POST;
    snprintf(c->accept_encoding, sizeof c->accept_encoding, "gzip");
    snprintf(c->if_none_match, sizeof c->if_none_match, "\"e\"");
    serve_on_request(s, c->id, &body);
    bytes_deinit(&body);
    return c;
}

/* ---- tests ---- */

static void test_routes(void)
{
    static const struct {
        net_method method;
        const char *path;
    } ROUTES[] = {
        {NET_POST, "/v1/chat/completions"},
        {NET_POST, "/v1/chat/completions/input_tokens"},
        {NET_POST, "/v1/chat/completions/control"},
        {NET_POST, "/v1/completions"},
        {NET_POST, "/v1/messages"},
        {NET_POST, "/v1/messages/count_tokens"},
        {NET_POST, "/api/chat"},
        {NET_POST, "/api/generate"},
        {NET_GET, "/api/tags"},
        {NET_POST, "/api/show"},
        {NET_GET, "/api/version"},
        {NET_POST, "/api/embed"},
        {NET_POST, "/tokenize"},
        {NET_POST, "/detokenize"},
        {NET_POST, "/apply-template"},
        {NET_POST, "/v1/embeddings"},
        {NET_POST, "/v1/rerank"},
        {NET_POST, "/v1/responses/input_tokens"},
        {NET_POST, "/v1/responses"},
        {NET_POST, "/v1/responses/compact"},
        {NET_GET, "/v1/responses/r"},
        {NET_GET, "/v1/responses/r/input_items"},
        {NET_POST, "/v1/conversations"},
        {NET_GET, "/v1/conversations/c"},
        {NET_GET, "/v1/conversations/c/items"},
        {NET_GET, "/v1/conversations/c/items/i"},
        {NET_POST, "/v1/responses/r/cancel"},
        {NET_GET, "/v1/models"},
        {NET_GET, "/v1/models/m"},
        {NET_POST, "/models/load"},
        {NET_POST, "/models/unload"},
        {NET_GET, "/v1/hub"},
        {NET_POST, "/v1/hub/pull"},
        {NET_GET, "/health"},
        {NET_GET, "/metrics"},
        {NET_GET, "/v1/status"},
        {NET_POST, "/v1/requests/r/cancel"},
        {NET_GET, "/v1/cache"},
        {NET_GET, "/v1/cache/n"},
        {NET_POST, "/v1/cache/n"},
        {NET_POST, "/v1/cache/n/load"},
        {NET_GET, "/v1/mcp"},
        {NET_POST, "/v1/mcp/s/resources/read"},
        {NET_POST, "/v1/mcp/s/prompts/get"},
        {NET_GET, "/slots"},
        {NET_POST, "/v1/files"},
        {NET_GET, "/v1/files"},
        {NET_GET, "/v1/files/f"},
        {NET_DELETE, "/v1/files/f"},
        {NET_GET, "/v1/files/f/content"},
        {NET_POST, "/v1/uploads"},
        {NET_POST, "/v1/uploads/u/parts"},
        {NET_POST, "/v1/uploads/u/complete"},
        {NET_POST, "/v1/uploads/u/cancel"},
        {NET_GET, "/v1/history"},
        {NET_PUT, "/v1/history/chats/c"},
        {NET_GET, "/v1/shared/t/files/f"},
    };
    serve *s = begin("routes");
    for (size_t i = 0; i < ARRAY_LEN(ROUTES); i++) {
        (void)asks(s, ROUTES[i].method, ROUTES[i].path, "{1}");
    }
    (void)asks(s, NET_POST, "/v1/cache/n/load", ""); /* needs no body */
    (void)asks(s, NET_POST, "/v1/cache/n", "");
    starts = made_answer(s, &dialect_chat);
    CHECK_INT(asks(s, NET_POST, "/v1/chat/completions", "{2}")->answer, starts->id);
    conn *c = serve_conn(s, 3);
    bytes body = bytes_empty(10);
    c->method = NET_OPTIONS;
    bytes_append_str(&all, " what it takes\n");
    serve_on_request(s, 3, &body);
    made_end(s);
}

static void test_files(void)
{
    static const char *const PATHS[] = {"/200", "/304", "/404", "/503"};
    serve *s = begin("files of the page");
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        (void)asks(s, NET_GET, PATHS[i], "");
    }
    made_options.ui_dir = "/ui";
    (void)asks(s, NET_HEAD, "/200", "");
    made_options.no_ui = true;
    (void)asks(s, NET_GET, "/200", "");
    made_end(s);
}

static void test_health(void)
{
    static const struct {
        serve_phase phase;
        bool is_stalled, is_prep_stalled;
    } STATES[] = {{SERVE_READY, false, false},    {SERVE_READY, true, false},    {SERVE_READY, false, true},
                  {SERVE_READY, true, true},      {SERVE_LOADING, false, false}, {SERVE_LOADING, true, true},
                  {SERVE_DRAINING, false, false}, {SERVE_EMPTY, false, false},   {SERVE_EMPTY, true, false}};
    serve *s = begin("health");
    for (size_t i = 0; i < ARRAY_LEN(STATES); i++) {
        s->phase = STATES[i].phase;
        s->is_stalled = STATES[i].is_stalled;
        s->is_prep_stalled = STATES[i].is_prep_stalled;
        s->load_fraction = 0.0625 * (double)i;
        (void)asks(s, i % 2 ? NET_HEAD : NET_GET, "/health", "");
    }
    made_end(s);
}

static void test_metrics(void)
{
    static const engine_info INFO = {.compute = "avx2"};
    serve *s = begin("metrics");
    made_conn(s, 1)->is_socket = true;
    made_answer(s, &dialect_chat)->state = ANSWER_RUNNING;
    made_answer(s, &dialect_chat)->state = ANSWER_FINISHED;
    made_answer(s, &dialect_chat)->state = ANSWER_HELD;
    (void)asks(s, NET_GET, "/metrics", "");
    s->engine = (engine *)some;
    s->info = &INFO;
    s->n_shelf = 4;
    s->upstreams = (upstreams *)some;
    (void)asks(s, NET_HEAD, "/metrics", "");
    is_short = true;
    (void)asks(s, NET_GET, "/metrics", "");
    made_end(s);
}

static void test_props(void)
{
    static const engine_info PLAIN = {
        .n_ctx = 4096, .n_parallel = 2, .defaults = {.max_tokens = 77, .top_k = 8}};
    static const engine_info FULL = {.n_ctx = 8192,
                                     .n_parallel = 3,
                                     .has_vision = true,
                                     .has_video = true,
                                     .has_thinking = true,
                                     .defaults = {.temperature = 0.5f,
                                                  .top_p = 0.75f,
                                                  .min_p = 0.25f,
                                                  .repetition_penalty = 1.5f,
                                                  .presence_penalty = 2.5f,
                                                  .frequency_penalty = 3.5f,
                                                  .top_k = 5,
                                                  .max_tokens = 6}};
    static engine_info odd;
    static const mcp_config TOOLS = {.n = 4};
    serve *s = begin("properties");
    s->phase = SERVE_LOADING;
    (void)asks(s, NET_GET, "/props", "");
    s->phase = SERVE_READY;
    snprintf(s->model_name, sizeof s->model_name, "\"m\"");
    s->info = &PLAIN;
    (void)asks(s, NET_GET, "/props", "");
    made_options.mcp = &TOOLS;
    made_options.hub = (hub_jobs *)some;
    s->history = (history *)some;
    s->info = &FULL;
    (void)asks(s, NET_GET, "/props", "");
    made_options.admin_key = "k";
    odd = FULL;
    odd.has_video = false;
    odd.defaults.temperature = odd.defaults.frequency_penalty = (float)NAN;
    s->info = &odd;
    (void)asks(s, NET_HEAD, "/props", "");
    serve_conn(s, 3)->is_admin = true;
    (void)asks(s, NET_GET, "/props", "");
    s->info = NULL; /* models of other servers alone */
    made_options.has_no_model = true;
    s->upstreams = (upstreams *)some;
    (void)asks(s, NET_GET, "/props", "");
    made_options.mcp = NULL;
    made_options.hub = NULL;
    s->history = NULL;
    (void)asks(s, NET_GET, "/props", "");
    made_end(s);
}

static void test_errors(void)
{
    static const struct {
        int status, retry_after_s;
    } ERRORS[] = {{400, 0}, {401, 0}, {401, 3}, {429, 7}, {499, 0}, {503, 1}};
    serve *s = begin("errors");
    conn *c = made_conn(s, 3);
    made_route(c, NET_GET, "/v1/models");
    for (size_t i = 0; i < ARRAY_LEN(ERRORS); i++) {
        api_error e = {0};
        api_error_set(&e, ERRORS[i].status, "code", "param", "text");
        e.retry_after_s = ERRORS[i].retry_after_s;
        c->write_error = i % 2 ? ollama_reply_error_body : api_error_write_body;
        c->method = i % 2 ? NET_HEAD : NET_GET;
        serve_send_error(s, c, &e);
    }
    serve_send_fault(s, c, 404, "gone", NULL, "it is 100% gone");
    bytes lost = {.failed = true};
    serve_send_json(s, c, 200, &lost, "X-More: yes\r\n");
    made_end(s);
}

/* ---- streams ---- */

static void pull(serve *s, conn *c, const char *what)
{
    static const char *const PULLS[] = {
        [NET_PULL_IDLE] = "idle", [NET_PULL_MORE] = "more", [NET_PULL_END] = "end"};
    bytes out = bytes_empty(1 << 20);
    bytes_printf(&all, " %s\n", what);
    const net_pull is = serve_on_writable(s, c->id, &out);
    bytes_printf(&all, "  %s%s, written at %g: ", PULLS[is], out.failed ? ", failed" : "", c->last_write_ms);
    note_text(bytes_str(&out), out.len);
    bytes_append_char(&all, '\n');
    bytes_deinit(&out);
}

static conn *streams(serve *s, const char *path, answer *a)
{
    conn *c = made_conn(s, 3);
    made_route(c, NET_POST, path);
    c->is_streaming = true;
    c->answer = a ? a->id : 99;
    c->last_write_ms = now_ms;
    return c;
}

static void test_chat_streams(void)
{
    static const struct {
        const char *path;
        const dialect *of;
    } KINDS[] = {{"/v1/chat/completions", &dialect_chat},
                 {"/v1/messages", &dialect_messages},
                 {"/api/chat", &dialect_ollama_chat}};
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        serve *s = begin(KINDS[i].path);
        answer *a = made_answer(s, KINDS[i].of);
        conn *c = streams(s, KINDS[i].path, a);
        pull(s, c, "nothing");
        now_ms += KEEPALIVE_S * 1000.0 - 1;
        pull(s, c, "nothing for a while");
        now_ms += 1;
        pull(s, c, "nothing for long");
        takes = "data";
        now_ms += 2 * KEEPALIVE_S * 1000.0;
        pull(s, c, "something");
        left = 1;
        pull(s, c, "more behind it");
        a->sse_end = true;
        pull(s, c, "more, and it has ended");
        a->sse_lost = true;
        pull(s, c, "more, and then there was no memory");
        left = 0;
        pull(s, c, "the last, and then there was no memory");
        a->sse_lost = false;
        takes = "";
        now_ms += 2 * KEEPALIVE_S * 1000.0;
        pull(s, c, "the end");
        a->sse_end = false;
        c->is_cut = true;
        pull(s, c, "cut");
        c->is_cut = false;
        c->answer = 99;
        pull(s, c, "gone");
        c->is_socket = true;
        pull(s, c, "a socket");
        made_end(s);
    }
}

static void test_log_streams(void)
{
    static const struct {
        const char *log, *what;
        bool progress;
        int n_news;
    } CASES[] = {{"", "nothing", false, 2},
                 {"ee", "two events", false, 2},
                 {"eex", "two and the end", true, 2},
                 {"", "news", true, 2},
                 {"ene", "news between", true, 1},
                 {"te", "what is lost, and more", false, 0},
                 {"lee", "one byte less than a piece", false, 0},
                 {"Lee", "a piece", false, 0},
                 {"elx", "more than a piece", false, 0}};
    serve *s = begin("a log");
    answer *a = made_answer(s, &dialect_responses);
    conn *c = streams(s, "/v1/responses", a);
    c->follows_log = true;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        c->readers[0] = (reader){.answer = a->id, .next_seq = 40};
        a->opt.return_progress = CASES[i].progress;
        log_has = CASES[i].log;
        n_news = CASES[i].n_news;
        pull(s, c, CASES[i].what);
        bytes_printf(&all, "  goes on at %d\n", (int)c->readers[0].next_seq);
    }
    a->opt.return_progress = false;
    log_has = "e";
    now_ms += KEEPALIVE_S * 1000.0;
    pull(s, c, "something after long");
    now_ms += KEEPALIVE_S * 1000.0;
    pull(s, c, "nothing for long");
    log_has = "t";
    is_short = true;
    pull(s, c, "no memory for what was lost");
    c->is_cut = true;
    pull(s, c, "cut");
    c->is_cut = false;
    c->answer = 99;
    made_route(c, NET_GET, "/v1/responses/r"); /* read again, by a route that makes no answer */
    pull(s, c, "gone");
    made_end(s);
}

/* ---- the end ---- */

static void tell(const conn *c)
{
    bytes_printf(&all, "  answer %d, history %d, order %d, readers %d%s%s%s, written at %g\n", (int)c->answer,
                 (int)c->history_ticket, (int)c->mcp_ticket, c->n_readers, c->is_streaming ? ", streams" : "",
                 c->follows_log ? ", follows" : "", c->is_cut ? ", cut" : "", c->last_write_ms);
}

static void test_end(void)
{
    for (int has_order = 0; has_order < 2; has_order++) {
        serve *s = begin("the end of a request, and of its connection");
        conn *c = streams(s, "/v1/chat/completions", made_answer(s, &dialect_chat));
        c->history_ticket = 8;
        c->mcp_ticket = has_order ? 9 : 0;
        c->n_readers = 3;
        c->follows_log = c->is_cut = true;
        bytes_append_str(&c->frames, "x");
        serve_on_half_closed(s, c->id);
        tell(c);
        serve_on_done(s, c->id);
        tell(c);
        c->mcp_ticket = has_order ? 7 : 0;
        serve_on_close(s, c->id);
        CHECK(!serve_conn(s, 3));
        made_end(s);
    }
}

int main(void)
{
    log_set_level(LOG_OFF);
    all = bytes_empty(1 << 20);
    test_routes();
    test_files();
    test_health();
    test_metrics();
    test_props();
    test_errors();
    test_chat_streams();
    test_log_streams();
    test_end();
    recorded_check("server/service/recorded/routes.txt", bytes_str(&all));
    bytes_deinit(&all);
    CHECK_DONE();
}
