/* mcp with its neighbours made up: all that its thread orders of the client, writes to programs and has done by workers, for how
 * long it waits, each result and each change, and what it knows of sessions and requests whenever it waits, are compared with
 * a file. */
#include <stdarg.h>

#include "base/limits.h"
#include "base/log.h"
#include "server/mcp/mcp_state.h"
#include "tests/folder.h"
#include "tests/log_news.h"
#include "tests/one_fails.h"
#include "tests/recorded.h"
#include "tests/server/own_thread.h"

/* ---- what is said ---- */

static bytes said;
static mcp *all;
static double now_ms;

/* Our version is VERSION. */
static void say_text(const char *text)
{
    const size_t n = strlen(PARLEY_VERSION);
    while (*text) {
        const char *at = strstr(text, PARLEY_VERSION);
        bytes_append(&said, text, at ? (size_t)(at - text) : strlen(text));
        bytes_append_str(&said, at ? "VERSION" : "");
        text = at ? at + n : text + strlen(text);
    }
}

static void say_log(void)
{
    for (char *line = log_news(), *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        bytes_append_str(&said, "  logs ");
        say_text(line);
        bytes_append_char(&said, '\n');
    }
}

__attribute__((format(printf, 1, 2))) static void say_line(const char *format, ...)
{
    static char text[1 << 14];
    va_list args;
    say_log();
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    say_text(text);
    bytes_append_char(&said, '\n');
}

/* ---- the system ---- */

int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
double __wrap_clock_ms(void);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

static int n_locked; /* the lock of the module */

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    if (all && m == &all->lock) {
        CHECK_INT(n_locked++, 0);
    }
    return __real_pthread_mutex_lock(m);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    if (all && m == &all->lock) {
        CHECK_INT(--n_locked, 0);
    }
    return __real_pthread_mutex_unlock(m);
}

double __wrap_clock_ms(void)
{
    return now_ms;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    say_line("  sleeps %lld.%09ld s", (long long)time->tv_sec, time->tv_nsec);
    return 0;
}

ONE_FAILS(void *, calloc, (size_t n, size_t size), (n, size), NULL)

/* ---- the client ---- */

enum { TRANSFERS = 128 };

static struct {
    http_order order;
    long id; /* of the request in it */
    bool is_open;
} transfers[TRANSFERS];
static int n_transfers, n_clients, n_busy;
static bool no_start;

http_client *__wrap_http_client_create(void);
void __wrap_http_client_destroy(http_client *c);
http_transfer *__wrap_http_client_start(http_client *c, const http_order *order);
void __wrap_http_client_stop(http_client *c, http_transfer *t);
void __wrap_http_client_poll(http_client *c, int timeout_ms);
void __wrap_http_client_poll_with(http_client *c, http_other *others, size_t n, int timeout_ms);
void __wrap_http_client_wake(http_client *c);
bool __wrap_http_client_is_idle(const http_client *c);

http_client *__wrap_http_client_create(void)
{
    n_clients++;
    return (http_client *)&n_clients;
}

void __wrap_http_client_destroy(http_client *c)
{
    CHECK(c == (http_client *)&n_clients);
    n_clients--;
}

void __wrap_http_client_wake(http_client *c)
{
    CHECK(c == (http_client *)&n_clients && n_locked == 0);
    say_line("  wakes the client");
}

static long id_in(const char *text)
{
    const char *id = text ? strstr(text, "\"id\":") : NULL;
    return id ? strtol(id + 5, NULL, 10) : 0;
}

http_transfer *__wrap_http_client_start(http_client *c, const http_order *o)
{
    CHECK(c == (http_client *)&n_clients && n_transfers < TRANSFERS && n_locked == 0);
    CHECK(!o->unix_path && !o->key && !o->ca_file && !o->range && !o->uses_proxy);
    say_line("  orders %d: %s %s, %s, %d s, %d s, %d s", n_transfers, o->method ? o->method : "as usual",
             o->url, o->accept ? o->accept : "all", o->connect_s, o->silence_s, o->timeout_s);
    for (size_t i = 0; i < o->n_headers; i++) {
        say_line("    %s", o->headers[i]);
    }
    if (o->body) {
        say_line("    %.*s", (int)o->n_body, o->body);
    }
    if (no_start) {
        no_start = false;
        say_line("  which fails");
        return NULL;
    }
    transfers[n_transfers].order = *o;
    transfers[n_transfers].is_open = true;
    transfers[n_transfers].id = id_in(o->body);
    return (http_transfer *)&transfers[n_transfers++];
}

void __wrap_http_client_stop(http_client *c, http_transfer *t)
{
    CHECK(c == (http_client *)&n_clients);
    for (int i = 0; i < n_transfers; i++) {
        if (t == (http_transfer *)&transfers[i]) {
            CHECK(transfers[i].is_open);
            transfers[i].is_open = false;
            say_line("  stops %d", i);
            return;
        }
    }
    CHECK(false);
}

bool __wrap_http_client_is_idle(const http_client *c)
{
    CHECK(c == (const http_client *)&n_clients);
    return n_busy == 0;
}

void __wrap_http_client_poll(http_client *c, int timeout_ms)
{
    CHECK(c == (http_client *)&n_clients);
    say_line("waits at the end %d ms", timeout_ms);
    n_busy -= n_busy > 0;
}

/* ---- programs ---- */

static bool no_program, is_stuck;
static long last_written;

err_code __wrap_mcp_pipe_open(mcp_session *s, err_detail *d);
void __wrap_mcp_pipe_close(mcp_session *s);
void __wrap_mcp_pipe_send(mcp_session *s, const char *text, size_t len);
void __wrap_mcp_pipe_ready(mcp_session *s, bool can_read, bool can_write, bool has_errors);

err_code __wrap_mcp_pipe_open(mcp_session *s, err_detail *d)
{
    say_line("  starts %s", s->config->label);
    if (no_program) {
        return err_set(d, ERR_IO, "there is no such program");
    }
    s->child = (mcp_child){101, 102, 103, 104};
    s->out = bytes_empty(1 << 16);
    return ERR_OK;
}

void __wrap_mcp_pipe_close(mcp_session *s)
{
    if (s->child.out >= 0) {
        say_line("  ends %s", s->config->label);
    }
    s->child = (mcp_child){-1, -1, -1, -1};
    bytes_deinit(&s->out);
}

void __wrap_mcp_pipe_send(mcp_session *s, const char *text, size_t len)
{
    CHECK(text[len] == '\0');
    say_line("  writes to %s: %s", s->config->label, text);
    last_written = id_in(text);
    if (is_stuck) {
        bytes_append(&s->out, text, len);
    }
}

void __wrap_mcp_pipe_ready(mcp_session *s, bool can_read, bool can_write, bool has_errors)
{
    if (can_read || can_write || has_errors) {
        say_line("  %s can be read %d, written %d, has errors %d", s->config->label, can_read, can_write,
                 has_errors);
    }
}

/* ---- workers ---- */

static int work_place;
static bool is_busy;

bool __wrap_mcp_worker_start(mcp_ask *ask);
void __wrap_mcp_worker_cancel(struct mcp_worker *w);
void __wrap_mcp_worker_collect(mcp *m, bool all_of_them);

bool __wrap_mcp_worker_start(mcp_ask *ask)
{
    say_line("  has work done%s: %.*s", is_busy ? " by nobody" : "", (int)ask->body.len,
             bytes_str(&ask->body));
    ask->worker = is_busy ? NULL : (struct mcp_worker *)&work_place;
    return !is_busy;
}

void __wrap_mcp_worker_cancel(struct mcp_worker *w)
{
    CHECK(w == (struct mcp_worker *)&work_place);
    say_line("  gives the work up");
}

void __wrap_mcp_worker_collect(mcp *m, bool all_of_them)
{
    CHECK(m == all || all_of_them);
}

/* ---- who hears of it ---- */

static void on_result(void *ctx, mcp_result *r)
{
    CHECK(ctx == &said && n_locked == 0);
    say_line("  tells %d.%d: %s%s, [%s] [%s] [%s], %g ms, progress %g, orders %zu", (int)r->owner,
             (int)r->place, r->has_failed ? "failed" : "done", r->n_images ? " with images" : "",
             bytes_str(&r->text), bytes_str(&r->images), bytes_str(&r->whole), r->ms, r->progress,
             all->n_orders);
    mcp_result_free(r);
}

static void on_change(void *ctx)
{
    static const char *const STATES[] = {
        [MCP_OFF] = "off", [MCP_CONNECTING] = "connecting", [MCP_READY] = "ready", [MCP_DOWN] = "down"};
    CHECK(ctx == &said && n_locked == 0);
    if (!all) {
        return; /* it is being made */
    }
    for (size_t i = 0; i < all->catalog->n; i++) {
        const mcp_server_view *v = &all->catalog->servers[i];
        say_line("  shows %s: %s [%s] [%s] [%s] [%s], %d tools", v->config->label, STATES[v->state], v->why,
                 v->name, v->version, v->protocol, v->offer ? (int)v->offer->n_tools : -1);
    }
}

static double left(double ms)
{
    return ms > 0.0 ? ms - now_ms : NAN;
}

static void say_state(void)
{
    static const char *const STEPS[] = {"closed", "opening", "listing", "open"};
    for (size_t i = 0; i < all->n_sessions; i++) {
        const mcp_session *s = &all->sessions[i];
        if (s->config->is_off || s->config->problem[0]) {
            CHECK(s->step == STEP_CLOSED);
            continue;
        }
        say_line(
            "  has %s: %s%s%s%s%s%s, lists %d%d%d, session [%s], %s, [%s] [%s] [%s], tries in %g, opened in "
            "%g, stale in %g, ttl %g, greets %d, failed %d, pages %d, read %zu",
            s->config->label, STEPS[s->step], s->is_modern ? ", modern" : "", s->knows_era ? ", known" : "",
            s->is_failing ? ", failing" : "", s->is_relisting ? ", relisting" : "",
            s->wants_relist ? ", wants lists" : "", s->has_tools, s->has_resources, s->has_prompts,
            s->session_id, s->protocol, s->name, s->version, s->why, left(s->next_try_ms), left(s->opened_ms),
            left(s->relist_ms), s->ttl_ms, (int)s->greeting_id, s->n_failed, s->n_pages, s->n_read);
    }
    for (const mcp_ask *a = all->asks; a; a = a->next) {
        CHECK(*a->link == a);
        say_line(
            "  asks %d of %s: for %d, %d.%d %d [%s] [%s] [%s] [%s], until %g, last %g, begun %g, told %g, "
            "tries %d, sends in %g, %s%s%s%d [%s] [%s], again in %d",
            (int)a->id, a->s->config->label, (int)a->purpose, (int)a->owner, (int)a->place, a->what,
            a->name ? a->name : "", a->arguments ? a->arguments : "", a->cursor ? a->cursor : "",
            a->more ? a->more : "", left(a->until_ms), left(a->last_ms), left(a->begun_ms), left(a->told_ms),
            a->n_tries, left(a->send_ms), a->transfer ? "under way, " : "", a->is_stream ? "stream, " : "",
            a->is_answered ? "answered, " : "", a->status, a->redirect, a->last_event, a->retry_ms);
    }
    say_line("  has %zu orders%s", all->n_orders, all->is_unpublished ? ", is to show what there is" : "");
}

/* ---- what happens, step by step ---- */

static const char *const *next_step;
static http_other *waited;
static size_t n_waited;

/* ' is a quotation mark, $ an id, | the end of a line. */
static const char *expand(const char *text, long id)
{
    static char out[1 << 14];
    size_t n = 0;
    for (; *text && n < sizeof out - 32; text++) {
        n += (size_t)(*text == '$' ? snprintf(out + n, 32, "%ld", id)
                                   : snprintf(out + n, 2, "%c",
                                              *text == '\''  ? '"'
                                              : *text == '|' ? '\n'
                                                             : *text));
    }
    return out;
}

static void give(int id, const char *format, const char *text)
{
    char body[1 << 14];
    const http_order *o = &transfers[id].order;
    snprintf(body, sizeof body, format, text);
    const char *data = expand(body, transfers[id].id);
    CHECK(o->on_head(o->ctx, &(http_head){.status = 200, .content_type = "application/json"}));
    CHECK(o->on_data(o->ctx, data, strlen(data)));
    transfers[id].is_open = false;
    o->on_end(o->ctx, HTTP_DONE, "");
}

static void head(const http_order *o, const char *text)
{
    char type[64] = "", session[300] = "", redirect[64] = "", *end;
    const long status = strtol(text, &end, 10);
    (void)sscanf(end, " %63s session=%299s", type, session);
    (void)sscanf(end, " to=%63s", redirect);
    const http_head h = {.status = (int)status,
                         .content_type = redirect[0] ? "" : type,
                         .session = session[0] ? session : NULL,
                         .redirect = redirect[0] ? redirect : NULL};
    say_line("  goes on: %d", o->on_head(o->ctx, &h));
}

static void order(int what, const char *text)
{
    err_detail d = {0};
    char server[64] = "", name[64] = "", arguments[1024] = "";
    unsigned owner = 0, place = 0;
    CHECK(sscanf(text, "%u.%u %63s %63s %1023[^\n]", &owner, &place, server, name, arguments) >= 4);
    char copy[1 << 14];
    snprintf(copy, sizeof copy, "%s", expand(arguments, 0));
    const mcp_order o = {.owner = owner,
                         .place = place,
                         .what = what,
                         .server = server,
                         .name = name,
                         .arguments = arguments[0] ? copy : NULL};
    CHECK_OK(mcp_call(all, &o, &d), d);
}

static mcp_session *session_of(const char *label, size_t n)
{
    for (size_t i = 0; i < all->n_sessions; i++) {
        if (strlen(all->sessions[i].config->label) == n &&
            strncmp(all->sessions[i].config->label, label, n) == 0) {
            return &all->sessions[i];
        }
    }
    CHECK(false);
    return &all->sessions[0];
}

/* WORD NUMBER TEXT, or WORD TEXT */
static void do_step(const char *step)
{
    char what[16] = "", *end;
    const size_t n = strcspn(step, " ");
    const char *text = step + n + (step[n] == ' ');
    snprintf(what, sizeof what, "%.*s", (int)n, step);
    const double number = strtod(text, &end);
    const char *rest = *end == ' ' ? end + 1 : end;
    const int id = number > 0 && number < TRANSFERS ? (int)number : 0;
    const http_order *o = &transfers[id].order;
    say_line("%s", step);
    if (strstr("head data end reply error", what) && !(id < n_transfers && transfers[id].is_open)) {
        CHECK_STR(step, "of a transfer that runs");
    } else if (strcmp(what, "later") == 0) {
        now_ms += number;
    } else if (strcmp(what, "call") == 0) {
        order(MCP_CALL_TOOL, text);
    } else if (strcmp(what, "read") == 0) {
        order(MCP_READ_RESOURCE, text);
    } else if (strcmp(what, "prompt") == 0) {
        order(MCP_GET_PROMPT, text);
    } else if (strcmp(what, "cancel") == 0) {
        mcp_cancel(all, (uint64_t)number);
    } else if (strcmp(what, "retry") == 0) {
        say_line("  may: %d", mcp_retry(all, text));
    } else if (strcmp(what, "head") == 0) {
        head(o, rest);
    } else if (strcmp(what, "data") == 0) {
        const char *data = expand(rest, transfers[id].id);
        say_line("  goes on: %d", o->on_data(o->ctx, data, strlen(data)));
    } else if (strcmp(what, "reply") == 0) {
        give(id, "{'jsonrpc':'2.0','id':$,'result':%s}", rest);
    } else if (strcmp(what, "error") == 0) {
        give(id, "{'jsonrpc':'2.0','id':$,'error':%s}", rest);
    } else if (strcmp(what, "end") == 0) {
        const long how = strtol(rest, &end, 10);
        transfers[id].is_open = false;
        o->on_end(o->ctx, (http_end)how, *end ? end + 1 : "");
    } else if (strcmp(what, "says") == 0) { /* a program a line */
        const size_t n_label = strcspn(text, " ");
        const char *line = expand(text + n_label + 1, last_written);
        mcp_session_read(session_of(text, n_label), NULL, line, strlen(line));
    } else if (strcmp(what, "fails") == 0) {
        const size_t n_label = strcspn(text, " ");
        mcp_session_fail(session_of(text, n_label), "%s", text + n_label + 1);
    } else if (strcmp(what, "built") == 0) { /* a worker is done */
        mcp_ask *a = all->asks;
        while (a && !a->worker) {
            a = a->next;
        }
        CHECK(a != NULL);
        if (a) {
            const char *line = expand(text, a->id);
            a->worker = NULL;
            mcp_session_read(a->s, a, line, strlen(line));
        }
    } else if (strcmp(what, "ready") == 0) {
        for (size_t i = 0; i < n_waited; i++) {
            waited[i].ready = waited[i].ready || waited[i].fd == (int)number;
        }
    } else if (strcmp(what, "calloc") == 0) {
        one_fails("calloc", (int)number);
    } else if (strcmp(what, "nostart") == 0) {
        no_start = true;
    } else if (strcmp(what, "programs") == 0) {
        no_program = number == 0;
    } else if (strcmp(what, "stuck") == 0) {
        is_stuck = number != 0;
    } else if (strcmp(what, "busy") == 0) {
        is_busy = number != 0;
    } else if (strcmp(what, "goodbyes") == 0) {
        n_busy = (int)number;
    } else {
        CHECK_STR(what, "close");
        all->closing = true;
    }
}

void __wrap_http_client_poll_with(http_client *c, http_other *others, size_t n, int timeout_ms)
{
    CHECK(c == (http_client *)&n_clients && n_locked == 0);
    say_line("waits %d ms", timeout_ms);
    for (size_t i = 0; i < n; i++) {
        CHECK(!others[i].ready);
        say_line("  for %d to be %s", others[i].fd, others[i].writes ? "written" : "read");
    }
    waited = others;
    n_waited = n;
    say_state();
    if (timeout_ms > 0) { /* else nothing happens meanwhile */
        while (*next_step && **next_step) {
            do_step(*next_step++);
        }
        next_step += *next_step != NULL;
    }
    n_waited = 0;
}

static void play(const char *title, const mcp_config *config, const char *const *steps)
{
    const mcp_hooks hooks = {.on_result = on_result, .on_change = on_change, .ctx = &said};
    err_detail d = {0};
    mcp *m = NULL;
    say_line("---- %s", title);
    now_ms = 1000.0;
    n_transfers = n_busy = 0;
    no_start = no_program = is_stuck = is_busy = false;
    next_step = steps;
    (void)one_fails_over(); /* of the one before */
    CHECK_OK(mcp_create(&m, config, NULL, &hooks, &d), d);
    all = m;
    own_thread(all);
    say_state();
    CHECK_INT(n_locked, 0);
    mcp_destroy(m);
    say_log();
    all = NULL;
    n_locked = 0;
    CHECK_INT(n_clients, 0);
}

#define PLAY(title, config, ...)                                                                             \
    do {                                                                                                     \
        static const char *const steps[] = {__VA_ARGS__, "close", NULL};                                     \
        play(title, config, steps);                                                                          \
    } while (0)
/* A wait is over. */
#define NEXT ""

static mcp_config *web, *prog, *sums, *many;

#define IDENTITY(has) "'capabilities':{" has "},'serverInfo':{'title':'Far','name':'f','version':'2'}"
#define MODERN(has)   "{'supportedVersions':['" MCP_MODERN "']," IDENTITY(has) "}"
#define LEGACY(has)   "{'protocolVersion':'2025-06-18'," IDENTITY(has) "}"
#define TOOL          "{'name':'t','inputSchema':{'type':'object'}}"
#define TOOLS         "{'tools':[" TOOL "]}"
#define TEXT(text)    "{'content':[{'type':'text','text':'" text "'}]}"
#define NO            "{'code':-32601,'message':'no'}"
#define EVENT(text)   "data: {'jsonrpc':'2.0'," text "}||"

/* A modern server over HTTP that has listed its tools. */
#define MODERN_WEB NEXT, "reply 0 " MODERN("'tools':{}"), NEXT, "reply 1 " TOOLS, NEXT
/* An older one, with a session. */
#define LEGACY_WEB                                                                                           \
    NEXT, "error 0 " NO, NEXT, "head 1 200 application/json session=s1",                                     \
        "data 1 {'jsonrpc':'2.0','id':$,'result':" LEGACY("'tools':{}") "}", "end 1 0", NEXT, "head 2 202",  \
        "end 2 0", NEXT, "reply 3 " TOOLS, NEXT

static void test_web(void)
{
    PLAY("a modern server with all lists", web, "later 5", NEXT, "later 7",
         "reply 0 " MODERN("'tools':{},'resources':{},'prompts':{}"), NEXT, "later 3",
         "reply 1 {'nextCursor':'p2','ttlMs':60000,'tools':[" TOOL "]}", NEXT, "later 4",
         "reply 2 {'ttlMs':20000,'tools':[{'name':'u','inputSchema':{'type':'object'}}]}", NEXT,
         "reply 3 {'resources':[{'uri':'file:///a','name':'a'}]}", NEXT, "error 4 " NO, NEXT, "later 100",
         "call 5.1 web t {'a':1}", "read 5.2 web file:///a", "prompt 6.1 web p {'b':'2'}", NEXT, "later 30",
         "reply 5 " TEXT("yes"), "reply 6 {'contents':[{'uri':'file:///a','text':'of a'}]}",
         "reply 7 {'messages':[]}", NEXT, "later 18000", NEXT, "later 1870", NEXT,
         "reply 8 {'ttlMs':1,'tools':[]}", NEXT, "reply 9 {}", NEXT, "reply 10 {}", NEXT, "later 4999.5",
         NEXT, "later 0.5", NEXT, "reply 11 {}", NEXT, "reply 12 {}", NEXT, "reply 13 {}", NEXT,
         "later 100000", NEXT);
    PLAY("an older server with a session", web, LEGACY_WEB, "call 5.1 web t {}", "call 5.2 web u", NEXT,
         "cancel 5", NEXT, "head 6 202", "end 6 0", "end 7 4 gone", NEXT, "call 6.1 web t", NEXT,
         "head 8 404", "end 8 0", NEXT, "head 9 200 application/json session=s2",
         "data 9 {'jsonrpc':'2.0','id':$,'result':" LEGACY("'tools':{}") "}", "end 9 0", NEXT, "head 10 202",
         "end 10 0", NEXT, "reply 11 " TOOLS, NEXT, "later 12", "reply 12 " TEXT("found"), NEXT,
         "goodbyes 2");
    PLAY("lists that have changed", web, LEGACY_WEB, "later 1000", "call 5.1 web t", NEXT,
         "head 4 200 text/event-stream", "data 4 " EVENT("'method':'notifications/tools/list_changed'"), NEXT,
         "later 3999.25", NEXT, "data 4 " EVENT("'id':3,'method':'ping'"),
         "data 4 " EVENT("'id':'x','method':'sampling/createMessage'"), NEXT, "later 0.75", NEXT,
         "data 4 " EVENT("'method':'notifications/tools/list_changed'"), NEXT, "head 5 202", "end 5 0",
         "end 6 1 far", NEXT, "reply 7 {}", NEXT, "data 4 " EVENT("'id':$,'result':" TEXT("late")), "end 4 6",
         NEXT, "later 5000", NEXT, "reply 8 " TOOLS, NEXT, "goodbyes 40");
    PLAY("a server that comes and goes", web, NEXT, "end 0 1 no name", NEXT, "later 999.5", NEXT, "later 0.5",
         NEXT, "end 1 1 no name", "call 5.1 web t", NEXT, "call 5.2 web t", NEXT, "later 2000", NEXT,
         "end 2 3", NEXT, "later 4000", NEXT, "end 3 2", NEXT, "later 8000", NEXT, "end 4 5", NEXT,
         "later 16000", NEXT, "head 5 500", "end 5 0", NEXT, "later 32000", NEXT, "head 6 401", "end 6 0",
         NEXT, "later 60000", NEXT, "head 7 307 to=http://other", "end 7 6", NEXT, "later 1000", "retry web",
         "retry wep", NEXT, "end 8 6", NEXT, "retry web", NEXT, "reply 9 " MODERN("'tools':{}"), NEXT,
         "reply 10 " TOOLS, NEXT, "later 60000", NEXT, "fails web it is odd", NEXT, "retry web", NEXT,
         "reply 11 " MODERN("'tools':{}"), NEXT, "reply 12 " TOOLS, NEXT, "later 60001",
         "fails web it is odder", NEXT, "later 1000", NEXT, "later 29999", NEXT, "later 1", NEXT,
         "later 2000", NEXT);
    PLAY("calls that take too long", web, MODERN_WEB, "call 5.1 web t", NEXT, "later 59999.5", NEXT,
         "later 0.5", NEXT, "call 6.1 web t", NEXT, "head 3 200 text/event-stream", "later 10000",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':1,'total':4,"
             "'message':'a quarter'}"),
         NEXT, "later 249",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':2,'total':4}"),
         NEXT, "later 1",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':8,'total':4}"),
         NEXT, "later 250",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':-1,'total':4}"),
         "later 250", "data 3 " EVENT("'method':'notifications/progress','params':{'progressToken':$}"),
         "later 250", "data 3 " EVENT("'method':'notifications/progress','params':{'progressToken':99}"),
         NEXT, "later 59500",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':3,'total':4}"),
         NEXT, "later 59000",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':3,'total':4}"),
         "later 59000",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':3,'total':4}"),
         "later 59000",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':3,'total':4}"),
         "later 59000",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':3,'total':4}"),
         "later 59000",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':3,'total':4}"),
         "later 59000",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':3,'total':4}"),
         "later 59000",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':3,'total':4}"),
         "later 59000",
         "data 3 " EVENT(
             "'method':'notifications/progress','params':{'progressToken':$,'progress':3,'total':4}"),
         NEXT, "later 57499", NEXT, "later 1", NEXT);
    PLAY("beginnings that take too long", web, NEXT, "later 29999.5", NEXT, "later 0.5", NEXT, "later 1000",
         NEXT, "error 1 " NO, NEXT, "later 30000", NEXT, "later 2000", NEXT, "reply 3 " LEGACY("'tools':{}"),
         NEXT, "later 30000", NEXT, "later 30000", NEXT, "later 4000", NEXT);
    PLAY("it wants to know more", web, MODERN_WEB, "call 5.1 web t {'a':1}", NEXT,
         "reply 2 {'resultType':'input_required','requestState':{'s':1},'inputRequests':{'r':{'method':"
         "'roots/list'},'e':{'method':'elicitation/create'}}}",
         NEXT, "reply 3 {'resultType':'input_required','requestState':'s2'}", NEXT, "later 199", NEXT,
         "later 1", NEXT, "reply 4 {'resultType':'input_required','requestState':'s3'}", NEXT, "later 200",
         NEXT,
         "reply 5 {'resultType':'input_required','inputRequests':{'r':{'method':'sampling/createMessage'}}}",
         NEXT, "call 5.2 web t", NEXT, "reply 6 {'resultType':'input_required'}", NEXT);
    PLAY("a stream that is cut", web, LEGACY_WEB, "call 5.1 web t", NEXT, "head 4 200 text/event-stream",
         "data 4 retry: 2000|id: e7|data:||", "end 4 4 cut", NEXT, "later 1999", NEXT, "later 1", NEXT,
         "head 5 200 text/event-stream", "data 5 id: e8||", "end 5 0", NEXT, "later 2000", NEXT, "head 6 500",
         "end 6 0", NEXT, "call 5.2 web t", NEXT, "head 7 200 text/event-stream", "data 7 data: {",
         "end 7 4 cut", NEXT, "call 5.3 web t", NEXT, "head 8 200 text/event-stream", "data 8 id: e9||",
         "cancel 5", NEXT, "head 9 202", "end 9 0", NEXT, "call 5.4 web t", NEXT,
         "head 10 200 text/event-stream", "data 10 id: e9||", "end 10 6", NEXT);
    PLAY("no memory", web, NEXT, "calloc 2", "reply 0 " MODERN("'tools':{}"), NEXT, "nostart", "later 1000",
         NEXT, "later 2000", NEXT, "reply 1 " MODERN("'tools':{}"), NEXT, "reply 2 " TOOLS, NEXT,
         "call 5.1 web t", "calloc 1", NEXT, "retry web", NEXT, "reply 3 " MODERN("'tools':{}"), NEXT,
         "reply 4 " TOOLS, NEXT, "call 5.2 web t", NEXT, "calloc 2", "reply 5 " TEXT("yes"), NEXT,
         "call 5.3 web t", "nostart", NEXT, "later 1000", NEXT);
}

static void test_programs(void)
{
    PLAY("a modern program", prog, NEXT,
         "says prog {'jsonrpc':'2.0','id':$,'result':" MODERN("'tools':{}") "}", NEXT,
         "says prog {'jsonrpc':'2.0','id':$,'result':" TOOLS "}", NEXT, "later 10", "call 5.1 prog t {}",
         NEXT, "says prog {'jsonrpc':'2.0','id':77,'result':{}}",
         "says prog {'jsonrpc':'2.0','id':$,'error':" NO "}", NEXT, "call 5.2 prog t", NEXT, "cancel 6",
         "cancel 5", NEXT, "call 5.3 prog t", NEXT, "later 4999", NEXT, "later 1", NEXT, "ready 102", NEXT,
         "ready 103", "stuck 1", "call 5.4 prog t", NEXT, "ready 101", "ready 102", NEXT);
    PLAY("an older program", prog, NEXT, "later 9999.5", NEXT, "later 0.5", NEXT,
         "says prog {'jsonrpc':'2.0','id':1,'result':{}}",
         "says prog {'jsonrpc':'2.0','id':$,'result':" LEGACY("'tools':{}") "}", NEXT,
         "says prog {'jsonrpc':'2.0','id':$,'result':" TOOLS "}", NEXT,
         "says prog {'jsonrpc':'2.0','id':9,'method':'ping'}",
         "says prog {'jsonrpc':'2.0','id':10,'method':'roots/list'}",
         "says prog {'jsonrpc':'2.0','method':'notifications/resources/list_changed'}", NEXT, "later 5000",
         NEXT, "call 5.1 prog t", "fails prog its program has ended", NEXT, "later 1000", NEXT,
         "says prog {'jsonrpc':'2.0','id':$,'error':" NO "}", NEXT, "later 2000", "programs 0", NEXT,
         "later 4000", NEXT, "programs 1", "later 8000", NEXT, "says prog not JSON", NEXT);
    PLAY("a program without memory", prog, NEXT, "later 1", "calloc 1",
         "says prog {'jsonrpc':'2.0','id':$,'result':" MODERN("'tools':{}") "}", NEXT, "later 1000",
         "calloc 1", NEXT, "later 2000", NEXT);
}

static void test_builtin(void)
{
    PLAY("tools of this server", sums, NEXT, "call 5.1 calculator calculate {'expression':'6*7'}", NEXT,
         "later 20", "built {'jsonrpc':'2.0','id':$,'result':" TEXT("42") "}", NEXT, "busy 1",
         "call 5.2 calculator calculate", NEXT, "later 49.5", NEXT, "later 0.5", "busy 0", NEXT, "cancel 5",
         NEXT, "call 5.3 calculator calculate", NEXT, "later 60000", NEXT);
}

static void test_many(void)
{
    PLAY("several servers", many, NEXT, "call 5.1 none t", "call 5.2 off t", "call 5.3 odd t", "retry off",
         NEXT, "calloc 2", "reply 0 " MODERN("'tools':{}"), NEXT,
         "says prog {'jsonrpc':'2.0','id':$,'result':" MODERN("'tools':{}") "}", NEXT, "calloc 2",
         "says prog {'jsonrpc':'2.0','id':$,'result':" TOOLS "}", NEXT, NEXT, "call 5.4 none t", "calloc 1",
         NEXT, "later 500", "call 5.1 prog t", "call 5.2 web t", "call 6.1 prog t", NEXT, "cancel 5", NEXT,
         "later 499.5", NEXT, "later 1", NEXT, "end 1 1 far", NEXT, "fails prog it is gone", "calloc 1", NEXT,
         NEXT);
}

static mcp_config *read_config(const char *path, const char *text, const char *tools)
{
    mcp_config *c = NULL;
    err_detail d = {0};
    if (text) {
        FILE *f = fopen(path, "w");
        CHECK(f && fputs(expand(text, 0), f) >= 0);
        CHECK(f && fclose(f) == 0);
    }
    CHECK_OK(mcp_config_read(&c, text ? path : NULL, tools, &d), d);
    return c;
}

#define WEB  "'web':{'url':'http://127.0.0.1:9/mcp','headers':{'X-Key':'k'},'timeout':60}"
#define PROG "'prog':{'command':'/bin/sh','timeout':5}"

int main(void)
{
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    said = bytes_empty(1 << 22);
    folder_make(folder);
    snprintf(path, sizeof path, "%s/log", folder);
    log_news_open(path);
    log_set_format(LOG_JOURNAL);
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    web = read_config(path, "{'mcpServers':{" WEB "}}", NULL);
    prog = read_config(path, "{'mcpServers':{" PROG "}}", NULL);
    sums = read_config(path, NULL, "calculator");
    many = read_config(path,
                       "{'mcpServers':{" PROG "," WEB
                       ",'off':{'url':'http://127.0.0.1:9/','disabled':true},'odd':{'command':''}}}",
                       NULL);
    test_web();
    test_programs();
    test_builtin();
    test_many();
    mcp_config_destroy(web);
    mcp_config_destroy(prog);
    mcp_config_destroy(sums);
    mcp_config_destroy(many);
    close(log_news_fd);
    recorded_check("server/mcp/thread.txt", bytes_str(&said));
    bytes_deinit(&said);
    CHECK_DONE();
}
