/* mcp: orders, their ends and cancels with a server over HTTP, and when it is tried again, in time that is made up: the
 * thread of the module runs as this program's own. */
#include <stdarg.h>

#include "base/log.h"
#include "server/mcp/mcp_state.h"
#include "server/media/fetch.h"
#include "tests/folder.h"
#include "tests/said.h"
#include "tests/server/made_up_server.h"
#include "tests/server/own_thread.h"

/* ---- what happens, line by line ---- */

static mcp *all;
static char heard[1 << 14];
static int64_t began;
static const char *says; /* the result of a call; with signs; NULL: the server hangs up on everything */

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    const size_t n = strlen(heard);
    va_list args;
    int m = snprintf(heard + n, sizeof heard - n, "%.1f ", (double)(made_up_ns - began) / 1e9);
    va_start(args, format);
    m += vsnprintf(heard + n + m, sizeof heard - n - (size_t)m, format, args);
    va_end(args);
    snprintf(heard + n + m, sizeof heard - n - (size_t)m, "\n");
}

static const char *result_of(const char *method)
{
    static const struct {
        const char *method, *result;
    } ROWS[] = {
        {"initialize",
         "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{"
         "\"name\":\"far\",\"version\":\"1\"}}"},
        {"tools/list", "\"result\":{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]}"},
        {"server/discover", "\"error\":{\"code\":-32601,\"message\":\"no\"}"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (strcmp(ROWS[i].method, method) == 0) {
            return ROWS[i].result;
        }
    }
    return says;
}

static const char *answer(int server, const char *head, const char *body)
{
    static char text[4096];
    char method[64] = "?", place[32] = "";
    const char *at = strstr(body, "\"method\":\""), *id = strstr(body, "\"id\":"),
               *n = strstr(body, "\"n\":");
    (void)server;
    if (strncmp(head, "POST", 4) == 0 && at) {
        snprintf(method, sizeof method, "%.*s", (int)strcspn(at + 10, "\""), at + 10);
    } else {
        snprintf(method, sizeof method, "%.*s", (int)strcspn(head, " "), head);
    }
    if (n) {
        snprintf(place, sizeof place, " %.*s", (int)strcspn(n + 4, "}"), n + 4);
    }
    tell("%s%s", method, place);
    if (!says) {
        return "";
    }
    if (!id || strncmp(method, "notifications/", 14) == 0) {
        return "HTTP/1.1 202 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" CUT;
    }
    const char *result = result_of(method);
    const size_t wait = strspn(result, LATER MUTE);
    const char *session = strcmp(method, "initialize") == 0 ? "Mcp-Session-Id: s1\r\n" : "";
    snprintf(text, sizeof text,
             "%.*sHTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: "
             "close\r\n%s\r\n{\"jsonrpc\":\"2.0\",\"id\":%.*s,%s}" CUT,
             (int)wait, result, session, (int)strcspn(id + 5, ",}"), id + 5, result + wait);
    return text;
}

static void on_result(void *ctx, mcp_result *r)
{
    (void)ctx;
    tell("%d.%d %s%s", (int)r->owner, (int)r->place, r->has_failed ? "fails: " : "", bytes_str(&r->text));
    mcp_result_free(r);
}

/* ---- what this side does, by the clock ---- */

typedef struct act {
    double at_s;
    char what; /* 'C'all (owner, place), ca'N'cel (owner), 'A'nswer, 'R'etry, 'E'nd */
    int owner, place;
    const char *text;
} act;

static const act *next_act;

static void call(const act *a)
{
    char arguments[64];
    err_detail d = {0};
    snprintf(arguments, sizeof arguments, "{\"n\":%d}", a->owner * 10 + a->place);
    const mcp_order order = {.owner = (uint64_t)a->owner,
                             .place = (uint32_t)a->place,
                             .server = a->text ? a->text : "far",
                             .name = "t",
                             .arguments = arguments};
    CHECK_OK(mcp_call(all, &order, &d), d);
}

static bool world(void)
{
    const int64_t due = began + (int64_t)(next_act->at_s * 1e9);
    if (made_up_ns < due) {
        made_up_at(due);
        return made_up_serve();
    }
    switch (next_act->what) {
    case 'C':
        call(next_act);
        break;
    case 'N':
        mcp_cancel(all, (uint64_t)next_act->owner);
        break;
    case 'A':
        says = next_act->text;
        break;
    case 'R':
        CHECK(mcp_retry(all, next_act->text) == (strcmp(next_act->text, "far") == 0));
        break;
    default:
        all->closing = true;
        http_client_wake(all->client);
        return made_up_serve();
    }
    next_act++;
    return true;
}

static const mcp_config *config;

static void hears(const char *expected, const act *acts)
{
    err_detail d = {0};
    const mcp_hooks hooks = {.on_result = on_result};
    began = made_up_ns;
    next_act = acts;
    heard[0] = '\0';
    CHECK_OK(mcp_create(&all, config, NULL, &hooks, &d), d);
    made_up_world = world;
    own_thread(all);
    made_up_world = NULL;
    CHECK_STR(heard, expected);
    mcp_destroy(all);
    while (made_up_serve()) {
    }
}

#define HEARS(expected, ...)                                                                                 \
    do {                                                                                                     \
        static const act acts[] = {__VA_ARGS__};                                                             \
        hears(expected, acts);                                                                               \
    } while (0)

#define OPENS      "0.0 server/discover\n0.0 initialize\n0.0 notifications/initialized\n0.0 tools/list\n"
#define TEXT(text) "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}"

static void test_orders(void)
{
    says = TEXT("yes");
    HEARS(OPENS "1.0 tools/call 10\n1.0 1.0 yes\n"
                "2.0 9.0 fails: there is no server other\n"
                "3.0 tools/call 10\n4.0 1.0 later\n"
                "6.0 DELETE\n",
          {1, 'C', 1, 0, NULL}, {2, 'C', 9, 0, "other"}, {2.5, 'A', 0, 0, LATER TEXT("later")},
          {3, 'C', 1, 0, NULL}, {6, 'E', 0, 0, NULL});
    /* All of an owner end at once, without a result, and their server hears of it; those of others go on. */
    HEARS(OPENS "1.0 tools/call 10\n1.0 tools/call 11\n1.0 tools/call 20\n"
                "2.0 notifications/cancelled\n2.0 notifications/cancelled\n"
                "6.0 2.0 late\n"
                "8.0 DELETE\n",
          {0, 'A', 0, 0, LATER LATER LATER LATER LATER TEXT("late")}, {1, 'C', 1, 0, NULL},
          {1, 'C', 1, 1, NULL}, {1, 'C', 2, 0, NULL}, {2, 'N', 1, 0, NULL}, {2, 'N', 7, 0, NULL},
          {7, 'N', 2, 0, NULL}, {8, 'E', 0, 0, NULL});
    CHECK_INT(made_up_gone, 2);
}

/* One that is down is tried again when somebody wants it; one that is there is left alone. */
static void test_retries(void)
{
    says = NULL;
    HEARS("0.0 server/discover\n1.0 server/discover\n3.0 server/discover\n4.0 server/discover\n"
          "5.0 server/discover\n5.0 initialize\n5.0 notifications/initialized\n5.0 tools/list\n"
          "6.0 tools/call 10\n6.0 1.0 yes\n"
          "9.0 DELETE\n",
          {3.5, 'R', 0, 0, "other"}, {4, 'R', 0, 0, "far"}, {4.2, 'N', 7, 0, NULL},
          {4.5, 'A', 0, 0, TEXT("yes")}, {5, 'R', 0, 0, "far"}, {6, 'C', 1, 0, NULL}, {7, 'R', 0, 0, "far"},
          {9, 'E', 0, 0, NULL});
}

int main(void)
{
    char folder[FOLDER_NAME], path[128];
    mcp_config *c = NULL;
    err_detail d = {0};
    log_set_level(LOG_OFF);
    unsetenv("http_proxy");
    CHECK(fetch_start());
    folder_make(folder);
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    FILE *f = fopen(path, "w");
    CHECK(f && fprintf(f, "{\"mcpServers\":{\"far\":{\"url\":\"http://127.0.0.1:%d/mcp\"}}}",
                       made_up_listen(NULL)) > 0);
    CHECK(f && fclose(f) == 0);
    CHECK_OK(mcp_config_read(&c, path, NULL, &d), d);
    config = c;
    made_up_answer = answer;
    test_orders();
    test_retries();
    made_up_close();
    mcp_config_destroy(c);
    fetch_stop();
    CHECK_DONE();
}
