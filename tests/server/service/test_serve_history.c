/* serve_history: the job of the history that each request becomes, and what comes back of it; where there is no place or no
 * memory for one, and where who asked is gone. The history and the net are the test. */
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/one_fails.h"
#include "tests/server/service/made_serve.h"

/* ---- what is asked of others ---- */

static bytes said;
static err_code submitted;
static bytes frames;

err_code __wrap_history_submit(history *h, history_job *job);
void __wrap_net_send_reply(net *n, uint64_t id, const net_reply *reply);
void __wrap_serve_queue_frame(serve *s, conn *c, const bytes *text);
void __wrap_serve_on_extended(serve *s, const history_reply *r);
ONE_FAILS(history_job *, history_job_create, (history_verb verb), (verb), NULL)

err_code __wrap_history_submit(history *h, history_job *job)
{
    CHECK(h != NULL && job->file.fd == -1);
    bytes_printf(
        &said,
        "job %d of %d/%d ticket %d \"%s\" after \"%s\" token \"%s\" limit %d since %d revision %d: %s|",
        job->verb, (int)job->conn, (int)job->scope, (int)job->ticket, job->id, job->after, job->token,
        job->limit, (int)job->since, (int)job->revision, bytes_str(&job->body));
    if (submitted == ERR_OK) {
        history_job_free(job);
    }
    return submitted;
}

void __wrap_net_send_reply(net *n, uint64_t id, const net_reply *reply)
{
    (void)n;
    bytes_printf(&said, "%d to %d {%s} %s%.*s", reply->status, (int)id, reply->headers ? reply->headers : "",
                 reply->has_file ? reply->content_type : "", reply->body ? (int)reply->body_bytes : 0,
                 reply->body ? (const char *)reply->body : "");
    if (reply->has_file) {
        bytes_printf(&said, " %d bytes of a file", (int)reply->body_bytes);
        CHECK_INT(close(reply->file), 0);
    }
    bytes_append_str(&said, reply->head_only ? " its head|" : "|");
}

void __wrap_serve_queue_frame(serve *s, conn *c, const bytes *text)
{
    (void)s;
    bytes_printf(&frames, "%d:%.*s|", (int)c->id, (int)text->len, text->data);
}

void __wrap_serve_on_extended(serve *s, const history_reply *r)
{
    (void)s;
    bytes_printf(&said, "extended %d|", (int)r->answer);
}

static void check_said(const char *expected)
{
    CHECK_STR(bytes_str(&said), expected);
    bytes_clear(&said);
}

static char some[1];

static serve *begin(void)
{
    serve *s = made_serve();
    s->history = (history *)some;
    submitted = ERR_OK;
    bytes_clear(&said);
    bytes_clear(&frames);
    return s;
}

static void ask(serve *s, conn *c, const char *text)
{
    bytes body = bytes_empty(1000);
    bytes_append_str(&body, text);
    serve_on_history(s, c, &body);
    bytes_deinit(&body);
}

/* ---- tests ---- */

#define TOKEN "0123456789abcdef0123456789abcdef"

static void test_verbs(void)
{
    static const struct {
        net_method method;
        const char *path;
        history_verb verb;
        const char *id, *token;
    } CASES[] = {
        {NET_GET, "/v1/history", HISTORY_INFO, "", ""},
        {NET_GET, "/v1/history/chats", HISTORY_LIST, "", ""},
        {NET_GET, "/v1/history/chats/a", HISTORY_GET, "a", ""},
        {NET_PUT, "/v1/history/chats/b", HISTORY_PUT, "b", ""},
        {NET_DELETE, "/v1/history/chats/c", HISTORY_DELETE, "c", ""},
        {NET_POST, "/v1/history/search", HISTORY_SEARCH, "", ""},
        {NET_GET, "/v1/history/files/f", HISTORY_GET_FILE, "f", ""},
        {NET_GET, "/v1/history/export", HISTORY_EXPORT, "", ""},
        {NET_POST, "/v1/history/import", HISTORY_IMPORT, "", ""},
        {NET_GET, "/v1/history/shares", HISTORY_SHARES, "", ""},
        {NET_POST, "/v1/history/shares", HISTORY_SHARE, "", ""},
        {NET_DELETE, "/v1/history/shares/s", HISTORY_UNSHARE, "s", ""},
        {NET_GET, "/v1/shared/" TOKEN, HISTORY_SHARED, TOKEN, TOKEN},
        {NET_GET, "/v1/shared/" TOKEN "0", HISTORY_SHARED, TOKEN "0", ""},
        {NET_GET, "/v1/shared/x", HISTORY_SHARED, "x", ""},
        {NET_GET, "/v1/shared/" TOKEN "/files/h", HISTORY_SHARED_FILE, NULL, TOKEN},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char want[1000];
        serve *s = begin();
        conn *c = made_conn(s, 3);
        s->history_ticket = 40;
        made_route(c, CASES[i].method, CASES[i].path);
        ask(s, c, "body");
        snprintf(want, sizeof want,
                 "job %d of 3/5 ticket 41 \"%s\" after \"\" token \"%s\" limit %d since 0 revision %d: body|",
                 CASES[i].verb, CASES[i].id ? CASES[i].id : c->param, CASES[i].token, 500, (int)ANY_REVISION);
        check_said(want);
        CHECK_INT(c->history_ticket, 41);
        made_end(s);
    }
}

/* What is asked behind a question mark, and a number outside of its bounds. */
static void test_query(void)
{
    static const struct {
        const char *query, *said;
    } CASES[] = {
        {"after=x&limit=1&since=7&revision=9", "after \"x\" token \"\" limit 1 since 7 revision 9"},
        {"limit=500", "limit 500 "},
        {"limit=0", "limit must be a number from 1 to 500"},
        {"limit=501", "limit must be a number from 1 to 500"},
        {"since=0", " since 0 "},
        {"since=-1", "since must be a revision"},
        {"revision=0", " revision 0:"},
        {"revision=-1", "revision must be the one of the chat as you know it"},
        {"after="
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123"
         "456789012345678901234567890123456789",
         "after is longer than "},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        serve *s = begin();
        conn *c = made_conn(s, 3);
        made_route(c, NET_GET, "/v1/history/chats");
        snprintf(c->query_string, sizeof c->query_string, "%s", CASES[i].query);
        ask(s, c, "");
        if (!strstr(bytes_str(&said), CASES[i].said)) {
            check_said(CASES[i].said);
        }
        CHECK_INT(strncmp(bytes_str(&said), "job ", 4) == 0, c->history_ticket != 0);
        made_end(s);
    }
}

static void test_refused(void)
{
    serve *s = begin();
    conn *c = made_conn(s, 3);
    made_route(c, NET_GET, "/v1/history/chats");
    submitted = ERR_BUSY;
    ask(s, c, "a body that was taken");
    const char *at = strstr(bytes_str(&said), "429 to 3 {Retry-After: 1\r\n} ");
    CHECK(at && strstr(at, "too many requests for the history wait") && strstr(at, "\"queue_full\""));
    CHECK_INT(c->history_ticket, 0);
    bytes_clear(&said);
    one_fails("history_job_create", 1);
    ask(s, c, "");
    CHECK(one_fails_over());
    at = strstr(bytes_str(&said), "503 to 3 ");
    CHECK(at && strstr(at, "no memory for this request"));
    bytes_clear(&said);
    s->history = NULL;
    ask(s, c, "");
    CHECK(strncmp(bytes_str(&said), "404 to 3 ", 9) == 0 && strstr(bytes_str(&said), "\"history_off\""));
    bytes_clear(&said);
    made_route(c, NET_GET, "/v1/history");
    ask(s, c, "");
    check_said("200 to 3 {Cache-Control: no-store\r\n} {\"object\":\"history\",\"enabled\":false}|");
    made_route(c, NET_GET, "/v1/history/chats");
    bytes lost = bytes_empty(1); /* a body that found no memory */
    bytes_append_str(&lost, "12");
    serve_send_json(s, c, 200, &lost, NULL);
    check_said(
        "503 to 3 {} {\"error\":{\"message\":\"no memory for the reply\",\"type\":\"unavailable_error\","
        "\"param\":null,\"code\":\"out_of_memory\"}}|");
    c->method = NET_HEAD;
    bytes whole = bytes_empty(10);
    bytes_append_str(&whole, "{}");
    serve_send_json(s, c, 201, &whole, "X: y\r\n");
    check_said("201 to 3 {X: y\r\n} {} its head|");
    bytes_deinit(&whole);
    bytes_deinit(&lost);
    for (int status = 498; status <= 500; status++) {
        api_error e = {.status = status};
        char want[32];
        serve_send_error(s, c, &e);
        snprintf(want, sizeof want, "%d to 3 ", status == 499 ? 503 : status);
        CHECK_INT(strncmp(bytes_str(&said), want, strlen(want)), 0);
        bytes_clear(&said);
    }
    made_end(s);
}

static history_reply *reply(const char *text)
{
    static history_reply r;
    r = (history_reply){.ticket = 8, .conn = 3, .scope = 5, .status = 207, .file.fd = -1};
    r.body = bytes_empty(100);
    bytes_append_str(&r.body, text);
    return &r;
}

static void answer_with(serve *s, history_reply *r)
{
    serve_on_history_reply(s, r);
    bytes_deinit(&r->body);
}

/* Who asked gets it, unless it asks for something else by now; every page of its key hears of a change. */
static void test_replies(void)
{
    serve *s = begin();
    conn *c = made_conn(s, 3);
    made_route(c, NET_GET, "/v1/history/chats");
    history_reply *r = reply("{}");
    r->answer = 6;
    r->is_changed = true;
    answer_with(s, r);
    check_said("extended 6|");
    CHECK_STR(bytes_str(&frames), "");
    c->history_ticket = 9; /* of a later request */
    answer_with(s, reply("{}"));
    check_said("");
    CHECK_INT(c->history_ticket, 9);
    c->history_ticket = 8;
    answer_with(s, reply("{\"a\":1}"));
    check_said("207 to 3 {Cache-Control: no-store\r\n} {\"a\":1}|");
    CHECK_INT(c->history_ticket, 0);
    r = reply("{}");
    r->conn = 4; /* which is gone */
    answer_with(s, r);
    check_said("");
    for (int i = 0; i < 2; i++) {
        made_route(c, NET_GET, i ? "/v1/shared/" TOKEN "/files/h" : "/v1/history/export");
        c->history_ticket = 8;
        r = reply("");
        r->file = (file_handle){.fd = open("/dev/null", O_RDONLY), .bytes = 77};
        answer_with(s, r);
        CHECK_INT(r->file.fd, -1);
        check_said(i ? "200 to 3 {Cache-Control: no-store\r\nX-Robots-Tag: noindex, "
                       "nofollow\r\nContent-Disposition: "
                       "attachment; filename=\"file\"\r\n} application/octet-stream 77 bytes of a file|"
                     : "200 to 3 {Cache-Control: no-store\r\nContent-Disposition: attachment; "
                       "filename=\"parley-chats.json\"\r\n} application/octet-stream 77 bytes of a file|");
    }
    for (int with = 0; with < 8; with++) { /* a socket, that speaks ours, of this key */
        conn *page = made_conn(s, 10 + (uint64_t)with);
        page->is_socket = with & 1;
        page->is_extended = with & 2;
        page->scope = with & 4 ? 5 : 6;
    }
    for (int imports = 0; imports < 2; imports++) {
        r = reply("{}");
        r->is_changed = true;
        r->is_deleted = !imports;
        r->is_import = imports;
        r->change.revision = 12;
        snprintf(r->change.id, sizeof r->change.id, "chat");
        answer_with(s, r);
        CHECK_STR(
            bytes_str(&frames),
            imports ? "17:{\"type\":\"history.changed\",\"id\":null,\"revision\":12,\"deleted\":false}|"
                    : "17:{\"type\":\"history.changed\",\"id\":\"chat\",\"revision\":12,\"deleted\":true}|");
        bytes_clear(&frames);
    }
    check_said("");
    made_end(s);
}

int main(void)
{
    log_set_level(LOG_OFF);
    said = bytes_empty(1 << 20);
    frames = bytes_empty(1 << 20);
    test_verbs();
    test_query();
    test_refused();
    test_replies();
    bytes_deinit(&said);
    bytes_deinit(&frames);
    CHECK_DONE();
}
