/* The protocol with one server: its era is found, its lists are read, calls are made. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/mcp/mcp_state.h"

enum {
    PROBE_MS = 10000,     /* a server of the older kind may be silent when asked the newer way */
    RELIST_MIN_MS = 5000, /* not more often, whatever it says */
    PROGRESS_MS = 250,
    MAX_TRIES = 8,
    CALL_FACTOR = 10,
    STEADY_MS = 60000, /* a connection that has held so long was a good one */
};

/* ---- connecting ---- */

void mcp_session_open(mcp_session *s)
{
    err_detail d = {0};
    s->step = STEP_OPENING;
    s->is_failing = false;
    s->opened_ms = clock_ms();
    s->session_id[0] = '\0';
    s->greeting_id = 0;
    if (s->config->kind == MCP_STDIO && mcp_pipe_open(s, &d) != ERR_OK) {
        mcp_session_fail(s, "%s", d.text);
        return;
    }
    if (!s->knows_era) {
        s->is_modern = true;
    }
    snprintf(s->protocol, sizeof s->protocol, "%s", s->is_modern ? MCP_MODERN : MCP_LEGACY);
    mcp_ask *ask = mcp_ask_new(s, s->is_modern ? MCP_DISCOVER : MCP_INITIALIZE, LIMIT_MCP_CONNECT_S);
    if (ask && s->is_modern && s->config->kind == MCP_STDIO) {
        ask->until_ms = clock_ms() + PROBE_MS;
    }
}

/* It speaks the older protocol. */
static void go_back(mcp_session *s)
{
    s->is_modern = false;
    s->knows_era = true;
    snprintf(s->protocol, sizeof s->protocol, "%s", MCP_LEGACY);
    (void)mcp_ask_new(s, MCP_INITIALIZE, LIMIT_MCP_CONNECT_S);
}

static void list_next(mcp_session *s, mcp_purpose purpose);

static void take_identity(mcp_session *s, const json *result)
{
    const json *info = json_get(result, "serverInfo"), *can = json_get(result, "capabilities");
    bytes text = bytes_empty(sizeof s->name + sizeof s->version);
    mcp_clean_text(&text, json_str(json_get(info, "title"), json_str(json_get(info, "name"), "")),
                   sizeof s->name - 8, false);
    snprintf(s->name, sizeof s->name, "%s", bytes_str(&text));
    bytes_clear(&text);
    mcp_clean_text(&text, json_str(json_get(info, "version"), ""), sizeof s->version - 8, false);
    snprintf(s->version, sizeof s->version, "%s", bytes_str(&text));
    bytes_deinit(&text);
    s->has_tools = json_get(can, "tools") != NULL;
    s->has_resources = json_get(can, "resources") != NULL;
    s->has_prompts = json_get(can, "prompts") != NULL;
    s->step = STEP_LISTING;
}

static bool has_version(const json *list, const char *version)
{
    for (const json *v = json_child(list); v; v = json_next(v)) {
        if (strcmp(json_str(v, ""), version) == 0) {
            return true;
        }
    }
    return false;
}

static void on_discovered(mcp_session *s, const json *result, const json *error)
{
    const json *versions =
        error ? json_get(json_get(error, "data"), "supported") : json_get(result, "supportedVersions");
    if (result && has_version(versions, MCP_MODERN)) {
        s->knows_era = true;
        take_identity(s, result);
        list_next(s, MCP_LIST_TOOLS);
    } else if (json_is(versions, JSON_ARRAY) && !has_version(versions, MCP_LEGACY) &&
               !has_version(versions, "2025-06-18") && !has_version(versions, "2025-03-26")) {
        mcp_session_fail(s, "it speaks none of the protocols %s and %s", MCP_MODERN, MCP_LEGACY);
    } else {
        go_back(s);
    }
}

static void on_initialized(mcp_session *s, const json *result)
{
    static const char *const KNOWN[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
    const char *version = json_str(json_get(result, "protocolVersion"), "");
    bool is_known = false;
    for (size_t i = 0; i < ARRAY_LEN(KNOWN); i++) {
        is_known = is_known || strcmp(version, KNOWN[i]) == 0;
    }
    if (!is_known) {
        mcp_session_fail(s, "it wants a protocol that is not known here: %.40s", version);
        return;
    }
    snprintf(s->protocol, sizeof s->protocol, "%s", version);
    bytes text = bytes_empty(256);
    bytes_append_str(&text, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    take_identity(s, result);
    s->greeting_id = mcp_notice_send(s, &text);
    bytes_deinit(&text);
    if (s->greeting_id == 0) { /* else when the server has it: requests of HTTP may overtake each other */
        list_next(s, MCP_LIST_TOOLS);
    }
}

/* Nothing more will be heard of a notice. */
static void end_notice(mcp_ask *ask)
{
    mcp_session *s = ask->s;
    const bool is_greeting = ask->id == s->greeting_id;
    mcp_ask_free(ask);
    if (is_greeting) {
        s->greeting_id = 0;
        list_next(s, MCP_LIST_TOOLS);
    }
}

/* ---- lists ---- */

static void listed(mcp_session *s)
{
    mcp_offer *offer = mcp_offer_create(s->config, &s->lists[0], &s->lists[1], &s->lists[2]);
    for (size_t i = 0; i < ARRAY_LEN(s->lists); i++) {
        bytes_deinit(&s->lists[i]);
    }
    if (!offer) {
        mcp_session_fail(s, "there is no memory for its tools");
        return;
    }
    const bool is_new = s->step != STEP_OPEN;
    mcp_offer_release(s->offer);
    s->offer = offer;
    s->step = STEP_OPEN;
    s->is_relisting = false;
    s->opened_ms = clock_ms();
    s->why[0] = '\0';
    s->relist_ms = s->ttl_ms > 0.0 ? clock_ms() + s->ttl_ms : 0.0;
    if (is_new) {
        log_info("mcp", "%s: %s %s, protocol %s, %zu tools%s", s->config->label, s->name, s->version,
                 s->protocol, offer->n_tools,
                 offer->left_out ? ", some left out: their names or schemas are not usable" : "");
    }
    mcp_publish(s->all);
}

/* Asks for the next list that it has, or ends the listing. */
static void list_next(mcp_session *s, mcp_purpose purpose)
{
    const bool has[] = {s->has_tools, s->has_resources, s->has_prompts};
    if (purpose == MCP_LIST_TOOLS) {
        s->ttl_ms = 0.0;
        s->wants_relist = false;
        s->is_relisting = true;
        for (size_t i = 0; i < ARRAY_LEN(s->lists); i++) {
            bytes_clear(&s->lists[i]); /* of what broke off */
        }
    }
    while (purpose <= MCP_LIST_PROMPTS && !has[purpose - MCP_LIST_TOOLS]) {
        purpose++;
    }
    s->n_pages = 0;
    if (purpose > MCP_LIST_PROMPTS) {
        listed(s);
    } else {
        (void)mcp_ask_new(s, purpose, LIMIT_MCP_CONNECT_S);
    }
}

static void on_list(mcp_session *s, mcp_purpose purpose, const json *result, const json *error)
{
    static const char *const NAMES[] = {"tools", "resources", "prompts"};
    const size_t k = (size_t)(purpose - MCP_LIST_TOOLS);
    bytes *list = &s->lists[k];
    const char *cursor = json_str(json_get(result, "nextCursor"), NULL);
    const double ttl = json_num(json_get(result, "ttlMs"), 0.0);
    if (error && purpose == MCP_LIST_TOOLS) {
        mcp_session_fail(s, "it does not list its tools: %.250s",
                         json_str(json_get(error, "message"), "an error"));
        return;
    }
    for (const json *v = json_child(json_get(result, NAMES[k])); v; v = json_next(v)) {
        bytes_append_str(list, list->len ? "," : "[");
        json_write(list, v);
    }
    if (ttl > 0.0) {
        const double kept = ttl < RELIST_MIN_MS ? RELIST_MIN_MS : ttl;
        s->ttl_ms = s->ttl_ms > 0.0 && s->ttl_ms < kept ? s->ttl_ms : kept;
    }
    if (list->no_memory) {
        mcp_session_fail(s, "there is no memory for its list of %s", NAMES[k]);
        return;
    }
    if (list->failed) {
        mcp_session_fail(s, "its list of %s is too long", NAMES[k]);
        return;
    }
    if (cursor && ++s->n_pages < LIMIT_MCP_PAGES) {
        mcp_ask *ask = mcp_ask_new(s, purpose, LIMIT_MCP_CONNECT_S);
        if (ask && !(ask->cursor = strdup(cursor))) {
            mcp_session_fail(s, "there is no memory for its list of %s", NAMES[k]);
        }
        return;
    }
    bytes_append_str(list, list->len ? "]" : "[]");
    list_next(s, purpose + 1);
}

/* ---- orders ---- */

void mcp_session_work(mcp_session *s, mcp_job *job)
{
    mcp_ask *ask = mcp_ask_new(s, MCP_WORK, s->config->timeout_s);
    if (!ask) {
        mcp_result *r = mcp_last_result(s->all, job->order.owner, job->order.place);
        if (r) {
            mcp_result_fail(r, "there is no memory for this call");
        }
        mcp_tell(s->all, r);
        return;
    }
    ask->owner = job->order.owner;
    ask->place = job->order.place;
    ask->what = job->order.what;
    ask->name = job->name;
    ask->arguments = job->arguments;
    job->name = job->arguments = NULL;
    ask->begun_ms = job->begun_ms;
    ask->last_ms = clock_ms() + 1000.0 * CALL_FACTOR * s->config->timeout_s;
    if (s->step == STEP_CLOSED && (s->n_failed > 0 || s->config->is_off || s->config->problem[0])) {
        mcp_ask_fail(ask, "it is not connected%s%s", s->why[0] ? ": " : "", s->why);
        mcp_ask_free(ask);
    }
}

/* What a server wants to know before it goes on: it gets a no, as nobody is asked. False if that is
 * no answer to it. */
static bool write_inputs(mcp_ask *ask, const json *result)
{
    const json *wanted = json_get(result, "inputRequests"), *state = json_get(result, "requestState");
    bytes text = bytes_empty(LIMIT_MCP_MESSAGE_BYTES);
    bool ok = ++ask->n_tries < MAX_TRIES;
    if (json_is(wanted, JSON_OBJECT) && json_child(wanted)) {
        bytes_append_str(&text, "\"inputResponses\":{");
        for (const json *v = json_child(wanted); v; v = json_next(v)) {
            const char *method = json_str(json_get(v, "method"), "");
            ok = ok && strcmp(method, "sampling/createMessage") != 0;
            bytes_json(&text, "%-s%s:%-s", v == json_child(wanted) ? "" : ",", json_key(v),
                       strcmp(method, "roots/list") == 0 ? "{\"roots\":[]}" : "{\"action\":\"decline\"}");
        }
        bytes_append_str(&text, "},");
    }
    if (state) {
        bytes_append_str(&text, "\"requestState\":");
        json_write(&text, state);
        bytes_append_char(&text, ',');
    }
    ok = ok && text.len > 0 && !text.failed;
    free(ask->more);
    ask->more = ok ? strdup(bytes_str(&text)) : NULL;
    bytes_deinit(&text);
    return ask->more != NULL;
}

/* True if the order goes on with another request. */
static bool on_work(mcp_ask *ask, const json *result, const json *error)
{
    mcp_session *s = ask->s;
    if (result && strcmp(json_str(json_get(result, "resultType"), ""), "input_required") == 0) {
        if (write_inputs(ask, result)) {
            ask->id = ++s->all->last_id;
            ask->send_ms = clock_ms() + (ask->n_tries > 1 ? 200.0 : 0.0);
            http_client_wake(s->all->client);
            return true;
        }
        mcp_ask_fail(ask, "it asks for something that nobody here can give it");
        return false;
    }
    mcp_result *r = mcp_last_result(s->all, ask->owner, ask->place);
    if (r && error) {
        mcp_result_fail(r, "%s", json_str(json_get(error, "message"), "it answered with an error"));
    } else if (r) {
        mcp_result_read(r, result);
        if (ask->what != MCP_CALL_TOOL) {
            json_write(&r->whole, result);
            if (r->whole.failed) {
                mcp_result_fail(r, "there is no memory for this result");
            }
        }
    }
    if (r) {
        r->ms = clock_ms() - ask->begun_ms;
    }
    mcp_tell(s->all, r);
    return false;
}

/* ---- what a server says ---- */

static mcp_ask *find_ask(mcp_session *s, const json *id)
{
    int64_t number = 0;
    if (!json_int(id, 1, INT64_MAX, &number)) {
        return NULL;
    }
    for (mcp_ask *a = s->all->asks; a; a = a->next) {
        if (a->s == s && a->id == number && a->purpose != MCP_NOTICE && a->send_ms <= 0.0) {
            return a;
        }
    }
    return NULL;
}

/* Servers of the older kind may ask as well: whether we live, and what we do not do. */
static void answer_request(mcp_session *s, const json *message, const char *method)
{
    bytes text = bytes_empty(4096);
    bytes_append_str(&text, "{\"jsonrpc\":\"2.0\",\"id\":");
    json_write(&text, json_get(message, "id"));
    bytes_append_str(&text,
                     strcmp(method, "ping") == 0
                         ? ",\"result\":{}}"
                         : ",\"error\":{\"code\":-32601,\"message\":\"not supported by this client\"}}");
    if (!text.failed) {
        mcp_notice_send(s, &text);
    }
    bytes_deinit(&text);
}

static void on_progress(mcp_session *s, const json *params)
{
    mcp_ask *ask = find_ask(s, json_get(params, "progressToken"));
    const double now = clock_ms();
    if (!ask || ask->purpose != MCP_WORK) {
        return;
    }
    const double until = now + 1000.0 * s->config->timeout_s;
    ask->until_ms = until < ask->last_ms ? until : ask->last_ms;
    if (now - ask->told_ms < PROGRESS_MS) {
        return;
    }
    ask->told_ms = now;
    mcp_result *r = mcp_result_create(ask->owner, ask->place);
    if (r) {
        const double total = json_num(json_get(params, "total"), 0.0);
        const double share = total > 0.0 ? json_num(json_get(params, "progress"), 0.0) / total : 0.0;
        r->progress = isfinite(share) && share > 0.0 ? (share < 1.0 ? share : 1.0) : 0.0;
        mcp_clean_text(&r->text, json_str(json_get(params, "message"), ""), MCP_TEXT_MAX, false);
        s->all->hooks.on_result(s->all->hooks.ctx, r);
    }
}

static void on_notice(mcp_session *s, const json *message, const char *method)
{
    static const char CHANGED[] = "/list_changed";
    const size_t n = strlen(method);
    if (strcmp(method, "notifications/progress") == 0) {
        on_progress(s, json_get(message, "params"));
    } else if (n >= sizeof CHANGED && strcmp(method + n - sizeof CHANGED + 1, CHANGED) == 0) {
        s->wants_relist = true;
    }
}

static void on_reply(mcp_session *s, mcp_ask *ask, const json *result, const json *error)
{
    const mcp_purpose purpose = ask->purpose;
    bool goes_on = false;
    s->n_read = 0;
    switch (purpose) {
    case MCP_DISCOVER:
        on_discovered(s, result, error);
        break;
    case MCP_INITIALIZE:
        if (error) {
            mcp_session_fail(s, "it refuses to begin: %.250s",
                             json_str(json_get(error, "message"), "an error"));
        } else {
            on_initialized(s, result);
        }
        break;
    case MCP_WORK:
        goes_on = on_work(ask, result, error);
        break;
    case MCP_NOTICE:
        break;
    default:
        on_list(s, purpose, result, error);
        break;
    }
    ask->is_answered = !goes_on;
    if (!ask->transfer && ask->is_answered) {
        mcp_ask_free(ask);
    }
}

void mcp_session_read(mcp_session *s, mcp_ask *ask, const char *text, size_t len)
{
    json_doc *doc = NULL;
    err_detail d = {0};
    if (s->is_failing || (ask && ask->is_answered)) {
        return;
    }
    const bool is_work = ask && ask->purpose == MCP_WORK;
    err_code err = json_parse(&doc, text, len, LIMIT_JSON_DEPTH + 8, &d);
    if (err != ERR_OK && !is_work) { /* one tool with a schema too deep does not cost the others */
        bytes pruned = bytes_empty(LIMIT_MCP_MESSAGE_BYTES);
        mcp_prune(&pruned, text, len, LIMIT_JSON_DEPTH + 7);
        err = json_parse(&doc, bytes_str(&pruned), pruned.len, LIMIT_JSON_DEPTH + 8, NULL);
        bytes_deinit(&pruned);
    }
    if (err != ERR_OK) {
        if (ask && ask->status >= 400) {
            return; /* a page, perhaps: the status says enough */
        }
        if (is_work) {
            mcp_ask_fail(ask, "its reply is not JSON that is read here: %.200s", d.text);
            ask->is_answered = true;
        } else {
            mcp_session_fail(s, "its message is not JSON that is read here: %.200s", d.text);
        }
        return;
    }
    const json *message = json_root(doc), *id = json_get(message, "id");
    const char *method = json_str(json_get(message, "method"), NULL);
    if (method && json_typeof(id) != JSON_NULL) {
        answer_request(s, message, method);
    } else if (method) {
        on_notice(s, message, method);
    } else {
        mcp_ask *of = find_ask(s, id);
        const json *error = json_get(message, "error");
        of = of || !ask || !error ? of : ask; /* an error that cannot say its id */
        if (of && (!ask || of == ask)) {
            on_reply(s, of, json_get(message, "result"), error);
        }
    }
    json_free(doc);
}

/* ---- the ends of transfers ---- */

static const char *end_name(http_end end)
{
    static const char *const NAMES[] = {[HTTP_DONE] = "it sent no reply",
                                        [HTTP_UNREACHABLE] = "it cannot be reached",
                                        [HTTP_UNTRUSTED] = "its certificate is not trusted",
                                        [HTTP_NO_TLS] = "it speaks no TLS",
                                        [HTTP_BROKEN] = "the connection broke",
                                        [HTTP_SILENT] = "it is silent",
                                        [HTTP_STOPPED] = "its reply is too large"};
    return NAMES[end];
}

/* Some servers say 400 where 404 belongs: that counts once. */
bool mcp_session_is_lost(const mcp_ask *ask)
{
    const int most = ask->status == 404 ? MAX_TRIES - 1 : ask->status == 400 ? 1 : 0;
    return ask->s->session_id[0] && ask->purpose == MCP_WORK && ask->n_tries < most;
}

void mcp_session_ended(mcp_ask *ask, http_end end, const char *why)
{
    mcp_session *s = ask->s;
    char text[MCP_PROBLEM_MAX];
    if (s->is_failing) { /* all its requests end together */
        return;
    }
    if (ask->purpose == MCP_NOTICE) {
        end_notice(ask);
        return;
    }
    if (ask->is_answered) {
        mcp_ask_free(ask);
        return;
    }
    if (ask->send_ms > 0.0) { /* it is to be sent again */
        return;
    }
    if (mcp_session_is_lost(ask)) {
        ask->n_tries++;
        s->step = STEP_CLOSED; /* a new session, and the call again */
        s->next_try_ms = 0.0;
        s->session_id[0] = '\0';
        ask->send_ms = clock_ms();
        return;
    }
    if (end != HTTP_STOPPED && ask->is_stream && ask->last_event[0] && ++ask->n_tries < MAX_TRIES) {
        ask->send_ms = clock_ms() + ask->retry_ms;
        return;
    }
    const bool is_odd = ask->status >= 400 && ask->status < 500 && ask->status != 401 && ask->status != 403;
    if (ask->purpose == MCP_DISCOVER && (is_odd || (end == HTTP_DONE && ask->status < 300))) {
        mcp_ask_free(ask);
        go_back(s);
        return;
    }
    if (ask->redirect[0]) {
        snprintf(text, sizeof text,
                 "it leads to %.200s, which is not followed; if that is right, put it into the "
                 "configuration",
                 ask->redirect);
    } else if (ask->status >= 300) {
        snprintf(text, sizeof text, "it answers with HTTP status %d%s", ask->status,
                 ask->status == 401 || ask->status == 403 ? "; give a key in its headers" : "");
    } else {
        snprintf(text, sizeof text, "%s%s%.200s", end_name(end), why[0] ? ": " : "", why);
    }
    if (ask->purpose == MCP_WORK) {
        mcp_ask_fail(ask, "%s", text);
        mcp_ask_free(ask);
    } else {
        mcp_session_fail(s, "%s", text);
    }
}

/* ---- time ---- */

void mcp_session_fail(mcp_session *s, const char *format, ...)
{
    if (!s->is_failing) {
        va_list args;
        va_start(args, format);
        char text[MCP_PROBLEM_MAX];
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        s->why[0] = '\0';
        bytes clean = {.data = s->why, .cap = sizeof s->why - 1, .max = sizeof s->why - 1};
        mcp_clean_text(&clean, text, sizeof s->why - 8, false); /* parts of it may be its own words */
        s->is_failing = true;
        http_client_wake(s->all->client);
    }
}

void mcp_session_close(mcp_session *s)
{
    for (mcp_ask *a = s->all->asks, *next; a; a = next) {
        next = a->next;
        if (a->s == s) {
            if (a->purpose == MCP_WORK && a->owner) {
                mcp_ask_fail(a, "%s", s->why);
            }
            mcp_ask_free(a);
        }
    }
    mcp_pipe_close(s);
    s->step = STEP_CLOSED;
}

static void close_failed(mcp_session *s, double now)
{
    mcp_session_close(s);
    s->n_failed = now - s->opened_ms > STEADY_MS ? 1 : s->n_failed + 1;
    const int shift = s->n_failed < 7 ? s->n_failed - 1 : 6;
    const double wait_s = 1 << shift > LIMIT_MCP_BACK_OFF_S ? LIMIT_MCP_BACK_OFF_S : 1 << shift;
    s->next_try_ms = now + 1000.0 * wait_s;
    s->is_failing = false;
    log_warn("mcp", "%s: %s; next try in %.0f s", s->config->label, s->why, wait_s);
    mcp_publish(s->all);
}

static void time_out(mcp_ask *ask)
{
    mcp_session *s = ask->s;
    if (ask->purpose == MCP_DISCOVER && s->config->kind == MCP_STDIO) {
        mcp_ask_free(ask);
        go_back(s);
    } else if (ask->purpose == MCP_WORK) {
        mcp_ask_fail(ask, "it did not answer within %d s", s->config->timeout_s);
        mcp_ask_drop(ask, true);
    } else if (ask->purpose == MCP_NOTICE) {
        end_notice(ask);
    } else {
        mcp_session_fail(s, "it did not answer %s within %d s", mcp_ask_method(ask), LIMIT_MCP_CONNECT_S);
    }
}

/* Sends what waits, ends what took too long; returns when it is next to be looked at. */
static double tick_asks(mcp_session *s, double now)
{
    double next = now + 60000.0;
    for (mcp_ask *a = s->all->asks, *after; a; a = after) {
        after = a->next;
        if (a->s != s) {
            continue;
        }
        const double due = a->send_ms > 0.0 && a->send_ms < a->until_ms ? a->send_ms : a->until_ms;
        const bool may_go = a->purpose != MCP_WORK || s->step == STEP_OPEN;
        if (now >= a->until_ms || (a->last_ms > 0.0 && now >= a->last_ms)) {
            time_out(a);
            return now; /* the list may be another one */
        }
        if (a->send_ms > 0.0 && now >= a->send_ms && may_go) {
            mcp_ask_send(a);
            return now;
        }
        next = may_go && due < next ? due : a->until_ms < next ? a->until_ms : next;
    }
    return next;
}

double mcp_session_tick(mcp_session *s, double now)
{
    if (s->config->is_off || s->config->problem[0]) {
        return now + 60000.0;
    }
    if (s->step == STEP_CLOSED && !s->is_failing && now >= s->next_try_ms) {
        mcp_session_open(s);
    }
    double next = now;
    while (next <= now && !s->is_failing) { /* each round has sent or ended one */
        next = tick_asks(s, now);
    }
    if (s->is_failing) {
        close_failed(s, now);
        return s->next_try_ms;
    }
    if (s->step == STEP_CLOSED) {
        return s->next_try_ms < next ? s->next_try_ms : next;
    }
    if (s->step == STEP_OPEN && !s->is_relisting) {
        const bool is_stale = s->relist_ms > 0.0 && now >= s->relist_ms;
        const bool may = now - s->opened_ms >= RELIST_MIN_MS;
        if (is_stale || (s->wants_relist && may)) {
            list_next(s, MCP_LIST_TOOLS);
            return now;
        }
        const double at = s->wants_relist ? s->opened_ms + RELIST_MIN_MS : s->relist_ms;
        next = at > 0.0 && at < next ? at : next;
    }
    return next;
}
