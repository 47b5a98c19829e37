/* serve_heads: what the head of a request gets before its body is read: let in, refused in the form of its client, sent
 * elsewhere; recorded. Nothing listens. */
#include "base/log.h"
#include "server/protocol/dialects/ollama_reply.h"
#include "tests/alloc_fail.h"
#include "tests/recorded.h"
#include "tests/server/service/made_serve.h"

static bytes lines;
static int n_forms;
static bool has_form_room;
static bool says_much; /* where there is none */

bool __wrap_serve_begin_form(serve *s, conn *c, const net_head *head, api_error *e);
double __wrap_clock_ms(void);

bool __wrap_serve_begin_form(serve *s, conn *c, const net_head *head, api_error *e)
{
    (void)s, (void)head;
    CHECK(c->route->takes_form);
    n_forms++;
    if (!has_form_room) {
        api_error_set(e, 413, "upload_too_large", NULL, "no room for a form");
        if (says_much) {
            memset(e->message, 1, sizeof e->message - 1);
            memset(e->param, 1, sizeof e->param - 1);
            memset(e->code, 1, sizeof e->code - 1);
        }
    }
    return has_form_room;
}

double __wrap_clock_ms(void)
{
    return 7000.0;
}

static const char KEY[] = "Bearer a-key-of-enough-letters", ADMIN[] = "Bearer an-admin-key-of-letters";

static serve *begin(bool has_keys)
{
    static const char *const KEYS[] = {KEY + 7}, *const ORIGINS[] = {"https://app.example"};
    serve *s = made_serve();
    s->phase = SERVE_READY;
    CHECK(access_init(&s->access, KEYS, has_keys, NULL, 0, ORIGINS, 1));
    if (has_keys) {
        access_set_admin(&s->access, ADMIN + 7);
    }
    has_form_room = true;
    return s;
}

static void end(serve *s)
{
    access_deinit(&s->access);
    made_end(s);
}

static net_head head_of(net_method method, const char *path)
{
    net_head h = {.method = method, .host = "127.0.0.1", .request_id = "req_1"};
    snprintf(h.path, sizeof h.path, "%s", path);
    snprintf(h.content_type, sizeof h.content_type, "application/json");
    snprintf(h.authorization, sizeof h.authorization, "%s", KEY);
    return h;
}

/* Writes what becomes of it into a line. */
static void one(serve *s, const char *what, const net_head *h)
{
    net_reply refusal = {0};
    bytes line = bytes_empty(1 << 16);
    bytes_printf(&line, "%s: ", what);
    if (!serve_on_head(s, 3, h, &refusal)) {
        bytes_printf(&line, "%d %s%.*s", refusal.status, refusal.headers ? refusal.headers : "",
                     (int)refusal.body_bytes, refusal.body ? (const char *)refusal.body : "");
    } else {
        const conn *c = id_table_get(&s->conns, 3);
        const char *const form = c->write_error == ollama_reply_error_body     ? " ollama"
                                 : c->write_error == messages_reply_error_body ? " messages"
                                                                               : "";
        bytes_printf(&line, "%s \"%s\" %s%s%s", c->route->name, c->param, c->path, form,
                     c->is_admin ? " admin" : "");
    }
    for (const char *p = bytes_str(&line); *p; p++) {
        bytes_append_char(&lines, *p == '\r' ? '|' : *p == '\n' ? ' ' : *p);
    }
    bytes_append_char(&lines, '\n');
    bytes_deinit(&line);
}

/* ---- tests ---- */

static void test_paths(void)
{
    static const struct {
        net_method method;
        const char *path;
    } ASKED[] = {
        {NET_POST, "/v1/chat/completions"},
        {NET_GET, "/v1/chat/completions"},
        {NET_POST, "/v1/messages"},
        {NET_DELETE, "/v1/messages"},
        {NET_POST, "/api/chat"},
        {NET_PUT, "/api/chat"},
        {NET_GET, "/v1/models/a%2Fb"},
        {NET_GET, "/metrics"},
        {NET_GET, "/slots"},
        {NET_GET, "/v1/nothing"},
        {NET_GET, "/api/nothing"},
        {NET_GET, "/v1/messages/nothing"},
        {NET_OPTIONS, "/v1/models"},
        {NET_GET, "/page.html"},
        {NET_POST, "/page.html"},
        {NET_HEAD, "/v1/models"},
        {NET_GET, "/health"},
    };
    for (int with = 0; with < 3; with++) {
        serve *s = begin(false);
        made_options.no_metrics = with == 1;
        made_options.no_slots = with == 2;
        bytes_printf(&lines, "%s\n",
                     with == 1   ? "\nwithout metrics"
                     : with == 2 ? "\nwithout slots"
                                 : "as it is");
        for (size_t i = 0; i < ARRAY_LEN(ASKED); i++) {
            const net_head h = head_of(ASKED[i].method, ASKED[i].path);
            if (with == 0 || strstr(ASKED[i].path, "metrics") || strstr(ASKED[i].path, "slots")) {
                char what[128];
                snprintf(what, sizeof what, "%d %s", ASKED[i].method, ASKED[i].path);
                one(s, what, &h);
            }
        }
        end(s);
    }
}

/* Below a prefix alone, and its bare name leads to what is there. */
static void test_prefix(void)
{
    static const char *const PATHS[] = {"/p",         "/p/",          "/p/v1/models",
                                        "/v1/models", "/q/v1/models", "/pv1/models"};
    serve *s = begin(false);
    made_options.path_prefix = "/p";
    bytes_append_str(&lines, "\nbelow /p\n");
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++) {
        const net_head h = head_of(NET_GET, PATHS[i]);
        one(s, PATHS[i], &h);
    }
    net_head h = head_of(NET_POST, "/p");
    one(s, "posted to /p", &h);
    h = head_of(NET_GET, "/p/v1/messages");
    one(s, "/p/v1/messages", &h);
    end(s);
}

static void test_types(void)
{
    static const char *const TYPES[] = {"application/json",
                                        "Application/JSON; charset=utf-8",
                                        "application/json x",
                                        "application/jsonx",
                                        "application/jso",
                                        "text/plain",
                                        "",
                                        "application/json;"};
    serve *s = begin(false);
    bytes_append_str(&lines, "\ntypes\n");
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        net_head h = head_of(NET_POST, "/v1/responses");
        snprintf(h.content_type, sizeof h.content_type, "%s", TYPES[i]);
        one(s, TYPES[i], &h);
    }
    net_head h = head_of(NET_GET, "/v1/responses/resp_1");
    h.content_type[0] = '\0';
    one(s, "a GET", &h);
    h = head_of(NET_DELETE, "/v1/responses/resp_1");
    h.content_type[0] = '\0';
    one(s, "a DELETE", &h);
    h = head_of(NET_PUT, "/v1/history/chats/a");
    h.content_type[0] = '\0';
    one(s, "a PUT", &h);
    h = head_of(NET_POST, "/v1/responses");
    snprintf(h.idempotency_key, sizeof h.idempotency_key, "?");
    one(s, "a name that is too long", &h);
    snprintf(h.idempotency_key, sizeof h.idempotency_key, "??");
    one(s, "an odd name", &h);
    end(s);
}

static void test_sockets(void)
{
    static char longest[512];
    static const char *const OFFERED[] = {
        "",         "parley.v1",  "other", "other, parley.v1", "\tparley.v1 ", "parley.v1x",
        "parley.v", "xparley.v1", ",",     "a,b,parley.v1,c"};
    serve *s = begin(false);
    bytes_append_str(&lines, "\nsockets\n");
    for (size_t i = 0; i < ARRAY_LEN(OFFERED); i++) {
        net_head h = head_of(NET_GET, "/v1/responses");
        h.is_upgrade = true;
        snprintf(h.ws_protocols, sizeof h.ws_protocols, "%s", OFFERED[i]);
        one(s, OFFERED[i], &h);
    }
    net_head h = head_of(NET_GET, "/v1/responses");
    h.is_upgrade = true;
    for (size_t n = 10; n < sizeof h.ws_protocols; n++) { /* as long as it may be */
        snprintf(longest, sizeof longest, "parley.v1,%0*d", (int)(n - 10), 0);
        longest[n] = '\0';
        snprintf(h.ws_protocols, sizeof h.ws_protocols, "%s", longest);
        net_reply refusal = {0};
        if (!serve_on_head(s, 3, &h, &refusal)) {
            bytes_printf(&lines, "of %zu bytes it is refused\n", n);
            break;
        }
    }
    h.ws_protocols[0] = '\0';
    s->phase = SERVE_DRAINING;
    one(s, "while the server ends", &h);
    h = head_of(NET_GET, "/v1/models");
    one(s, "no socket then", &h);
    end(s);
}

static void test_access(void)
{
    serve *s = begin(true);
    bytes_append_str(&lines, "\nkeys\n");
    net_head h = head_of(NET_GET, "/v1/models");
    one(s, "the key", &h);
    const conn *c = id_table_get(&s->conns, 3);
    const uint64_t scope = c->scope;
    CHECK_INT(scope, access_scope(&s->access, &h));
    snprintf(h.authorization, sizeof h.authorization, "%s", ADMIN);
    one(s, "the other key", &h);
    CHECK(c->scope != scope);
    h.authorization[0] = '\0';
    one(s, "none", &h);
    h = head_of(NET_GET, "/api/tags");
    h.authorization[0] = '\0';
    one(s, "none, of another dialect", &h);
    h = head_of(NET_GET, "/v1/models");
    h.authorization[0] = '\0';
    h.is_anthropic = true;
    one(s, "none, of a third", &h);
    h = head_of(NET_GET, "/health");
    h.authorization[0] = '\0';
    one(s, "none, where none is needed", &h);
    h = head_of(NET_GET, "/v1/models");
    snprintf(h.host, sizeof h.host, "evil.example");
    one(s, "another host", &h);
    h = head_of(NET_GET, "/v1/models");
    snprintf(h.origin, sizeof h.origin, "https://evil.example");
    one(s, "another origin", &h);
    static const char *const MORE[] = {"", "?", "x-more"};
    for (int with = 0; with < 6; with++) {
        h = head_of(NET_OPTIONS, with < 5 ? "/v1/models" : "/v1/nothing");
        h.authorization[0] = '\0';
        h.is_preflight = true;
        h.cors_private = with == 3;
        snprintf(h.origin, sizeof h.origin, with == 4 ? "" : "https://app.example");
        snprintf(h.cors_headers, sizeof h.cors_headers, "%s", MORE[with % 3]);
        one(s, "asked before", &h);
    }
    memset(h.cors_headers, 'x', sizeof h.cors_headers - 1);
    h.cors_private = true;
    snprintf(h.origin, sizeof h.origin, "https://app.example");
    one(s, "asked before for as much as there may be", &h);
    end(s);
}

/* What is known of a connection is that of its last head; a form that is refused leaves nothing behind of a new one. */
static void test_conn(void)
{
    serve *s = begin(false);
    net_head h = head_of(NET_POST, "/v1/files");
    net_reply refusal;
    snprintf(h.content_type, sizeof h.content_type, "multipart/form-data; boundary=b");
    has_form_room = false;
    bytes_append_str(&lines, "\nforms\n");
    one(s, "the first", &h);
    CHECK(!id_table_get(&s->conns, 3));
    CHECK_INT(n_forms, 1);
    says_much = true;
    CHECK(!serve_on_head(s, 3, &h, &refusal));
    says_much = false;
    CHECK(refusal.body_bytes > 3500 &&
          strcmp((const char *)refusal.body + refusal.body_bytes - 3, "\"}}") == 0);
    n_forms = 0;
    for (size_t n = 1; n <= 2; n++) {
        alloc_fail_at(n);
        const bool is_in = serve_on_head(s, 3, &h, &refusal);
        alloc_fail_at(0);
        CHECK(!is_in && !id_table_get(&s->conns, 3));
        bytes_printf(&lines, "without memory: %d %.*s\n", refusal.status, (int)refusal.body_bytes,
                     (const char *)refusal.body);
        id_table_deinit(&s->conns);
    }
    has_form_room = true;
    n_forms = 0;
    CHECK(serve_on_head(s, 3, &h, &refusal));
    CHECK_INT(n_forms, 1);
    conn *c = id_table_get(&s->conns, 3);
    c->answer = 5;
    c->is_streaming = c->follows_log = c->is_cut = true;
    h = head_of(NET_GET, "/v1/files");
    h.request_id = "req_9";
    snprintf(h.query_string, sizeof h.query_string, "limit=1");
    snprintf(h.accept_encoding, sizeof h.accept_encoding, "gzip");
    snprintf(h.idempotency_key, sizeof h.idempotency_key, "again");
    snprintf(h.if_none_match, sizeof h.if_none_match, "\"e\"");
    h.is_anthropic = true;
    CHECK(serve_on_head(s, 3, &h, &refusal));
    CHECK_INT(n_forms, 1); /* a list is no form */
    CHECK(id_table_get(&s->conns, 3) == c && c->id == 3 && c->method == NET_GET && c->is_anthropic);
    CHECK(c->answer == 0 && !c->is_streaming && !c->follows_log && !c->is_cut && c->started_ms == 7000.0);
    CHECK_STR(c->request_id, "req_9");
    CHECK_STR(c->query_string, "limit=1");
    CHECK_STR(c->accept_encoding, "gzip");
    CHECK_STR(c->idempotency_key, "again");
    CHECK_STR(c->if_none_match, "\"e\"");
    h = head_of(NET_OPTIONS, "/v1/files");
    CHECK(serve_on_head(s, 3, &h, &refusal));
    CHECK_INT(c->allow, NET_GET | NET_POST);
    has_form_room = false;
    h = head_of(NET_POST, "/v1/files");
    one(s, "a later one", &h);
    CHECK(id_table_get(&s->conns, 3) == c); /* whose end is told */
    end(s);
}

int main(void)
{
    log_set_level(LOG_OFF);
    lines = bytes_empty(1 << 20);
    test_paths();
    test_prefix();
    test_types();
    test_sockets();
    test_access();
    test_conn();
    recorded_check("server/service/recorded/heads.txt", bytes_str(&lines));
    bytes_deinit(&lines);
    CHECK_DONE();
}
