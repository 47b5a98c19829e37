/* mcp over HTTP: for each thing that a server may answer what is asked of it, header by header, what comes of the call and what
 * is logged, second by second, as one recorded text. Time is made up, and the thread of the module runs as this program's own. */
#include <ctype.h>
#include <fcntl.h>

#include "base/limits.h"
#include "base/log.h"
#include "server/mcp/mcp_state.h"
#include "server/media/fetch.h"
#include "tests/folder.h"
#include "tests/log_news.h"
#include "tests/recorded.h"
#include "tests/server/made_up_server.h"
#include "tests/server/own_thread.h"

/* ---- what servers answer ---- */

#define HTTP(status, more) "HTTP/1.1 " status "\r\nConnection: close\r\n" more "\r\n"
#define JSON(more)         HTTP("200 OK", "Content-Type: application/json\r\n" more)
#define STREAM             HTTP("200 OK", "Content-Type: text/event-stream\r\n")
#define RESULT(text)       "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":" text "}"
#define ERROR(text)        "{\"jsonrpc\":\"2.0\",\"id\":$,\"error\":" text "}"
#define SAYS(text)         RESULT("{\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]}")
#define TOOLS              "\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]"
#define OLD                                                                                                  \
    "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"far\","  \
    "\"version\":\"1\"}}"
#define MODERN                                                                                               \
    "{\"supportedVersions\":[\"" MCP_MODERN                                                                  \
    "\"],\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"title\":\"Far\",\"version\":\"2\"}}"

/* In turn; the last again and again; "" is not said: the usual answer. $ is the id of the request. */
typedef struct scene {
    const char *name, *arguments;
    const char *discover[3], *initialize[3], *list[4], *call[5], *get[3], *notice[3];
    double end_s;
    int what;
} scene;

#define A63  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A255 A63 "a" A63 "a" A63 "a" A63
/* A modern server's tool, whose parameters of these names are wanted in headers */
#define WANTED(name) "\"" name "\":{\"type\":\"string\",\"x-mcp-header\":\"" name "\"}"
#define HEADED(params)                                                                                       \
    "{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{" params "}}}]}"
#define SCHEMA "\"inputSchema\":{\"type\":\"object\"}"

#define WANTED_5(a, b, c, d, e) WANTED(a) "," WANTED(b) "," WANTED(c) "," WANTED(d) "," WANTED(e)
#define WANTED_10               WANTED_5("a", "b", "c", "d", "e") "," WANTED_5("f", "g", "h", "i", "j")
#define WANTED_20               WANTED_5("k", "l", "m", "n", "o") "," WANTED_5("p", "q", "r", "s", "t")
#define WANTED_30               WANTED_5("u", "v", "w", "x", "y") "," WANTED_5("z", "za", "zb", "zc", "zd")
#define WANTED_MANY             WANTED_10 "," WANTED_20 "," WANTED_30

static char long_values[1 << 15]; /* arguments: some as long as a header may be, and longer */
static char many_values[1 << 17]; /* more than all headers hold */

/* A reply that is longer than one may be. */
static const char ENDLESS[] = "endless";
static char *endless;

static const scene SCENES[] = {
    {"old", "{\"n\":1}", .call = {JSON("") SAYS("yes") CUT}},
    {"a session", "{\"n\":1}", .initialize = {JSON("Mcp-Session-Id: s1\r\n") RESULT(OLD) CUT},
     .call = {JSON("") SAYS("yes") CUT}},
    {"a session that is lost", "{}",
     .initialize = {JSON("Mcp-Session-Id: s1\r\n") RESULT(OLD) CUT,
                    JSON("Mcp-Session-Id: s2\r\n") RESULT(OLD) CUT},
     .call = {HTTP("404 No", "") CUT, JSON("") SAYS("found") CUT}},
    {"a session that is lost each time", "{}", .initialize = {JSON("Mcp-Session-Id: s1\r\n") RESULT(OLD) CUT},
     .call = {HTTP("404 No", "") CUT}},
    {"a session that is lost, in other words", "{}",
     .initialize = {JSON("Mcp-Session-Id: s1\r\n") RESULT(OLD) CUT},
     .call = {HTTP("400 No", "") CUT, HTTP("400 No", "") CUT}},
    {"modern",
     "{\"s\":\"plain\",\"b\":true,\"i\":7,\"f\":1.5,\"u\":\"\\u00e4\",\"e\":\"\",\"p\":\" "
     "x\",\"q\":\"=?base64?x\",\"n\":null,\"l\":\"2\\n3\"}",
     .discover = {JSON("") RESULT(MODERN) CUT},
     .list = {JSON("")
                  RESULT("{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
                         "\"s\":{\"type\":\"string\",\"x-mcp-header\":\"S\"},\"b\":{\"type\":\"boolean\",\"x-"
                         "mcp-header\":\"B\"},"
                         "\"i\":{\"type\":\"integer\",\"x-mcp-header\":\"I\"},\"f\":{\"type\":\"integer\","
                         "\"x-mcp-header\":\"F\"},"
                         "\"u\":{\"type\":\"string\",\"x-mcp-header\":\"U\"},\"e\":{\"type\":\"string\",\"x-"
                         "mcp-header\":\"E\"},"
                         "\"p\":{\"type\":\"string\",\"x-mcp-header\":\"P\"},\"q\":{\"type\":\"string\",\"x-"
                         "mcp-header\":\"Q\"},"
                         "\"n\":{\"type\":\"string\",\"x-mcp-header\":\"N\"},\"l\":{\"type\":\"string\",\"x-"
                         "mcp-header\":\"L\"},"
                         "\"m\":{\"type\":\"string\",\"x-mcp-header\":\"M\"}}}}]}") CUT},
     .call = {JSON("") SAYS("yes") CUT}},
    {"modern, with an error that says versions", "{}",
     .discover = {HTTP("400 No", "Content-Type: application/json\r\n") ERROR(
         "{\"code\":-32022,\"message\":\"m\",\"data\":{\"supported\":[\"2025-06-18\"]}}") CUT},
     .call = {JSON("") SAYS("yes") CUT}},
    {"none of the versions", "{}",
     .discover = {JSON("") ERROR(
         "{\"code\":-32022,\"message\":\"m\",\"data\":{\"supported\":[\"2001-01-01\"]}}") CUT}},
    {"discovery is no JSON", "{}", .discover = {HTTP("200 OK", "Content-Type: text/html\r\n") "<html>" CUT}},
    {"discovery is a page of 404", "{}",
     .discover = {HTTP("404 No", "Content-Type: text/html\r\n") "<html>" CUT},
     .call = {JSON("") SAYS("yes") CUT}},
    {"discovery is refused", "{}", .discover = {HTTP("401 No", "") CUT, HTTP("403 No", "") CUT}},
    {"discovery fails", "{}", .discover = {HTTP("500 No", "") CUT}},
    {"discovery is empty", "{}", .discover = {JSON("") CUT}, .call = {JSON("") SAYS("yes") CUT}},
    {"discovery leads elsewhere", "{}",
     .discover = {HTTP("307 There", "Location: http://other.example/mcp\r\n") CUT}},
    {"it hangs up", "{}", .discover = {CUT}},
    {"it is mute", "{}", .discover = {MUTE}, .end_s = 200},
    {"an unknown version", "{}", .initialize = {JSON("") RESULT("{\"protocolVersion\":\"1\"}") CUT}},
    {"it refuses to begin", "{}",
     .initialize = {JSON("") ERROR("{\"code\":1,\"message\":\"not \\u001b today\"}") CUT}},
    {"it lists no tools", "{}", .list = {JSON("") ERROR("{\"code\":1,\"message\":\"none\"}") CUT}},
    {"pages of tools", "{}",
     .list =
         {JSON("") RESULT(
              "{\"nextCursor\":\"p2\",\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}}]}")
              CUT,
          JSON("") RESULT("{" TOOLS "}") CUT},
     .call = {JSON("") SAYS("yes") CUT}},
    {"pages that break off, and all again", "{}",
     .list =
         {JSON("") RESULT(
              "{\"nextCursor\":\"p2\",\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}}]}")
              CUT,
          JSON("") ERROR("{\"code\":1,\"message\":\"gone\"}") CUT, JSON("") RESULT("{" TOOLS "}") CUT},
     .call = {JSON("") SAYS("yes") CUT}},
    {"tools for a while", "{}", .list = {JSON("") RESULT("{\"ttlMs\":5000," TOOLS "}") CUT},
     .call = {JSON("") SAYS("yes") CUT}, .end_s = 40},
    {"a call's error", "{}", .call = {JSON("") ERROR("{\"code\":-32602,\"message\":\"bad\"}") CUT}},
    {"an error that is not said of it", "{}",
     .call = {HTTP("400 No",
                   "Content-Type: application/json\r\n") "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{"
                                                         "\"code\":1,\"message\":\"odd\"}}" CUT}},
    {"a tool's error", "{}",
     .call = {JSON("") RESULT("{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"no\"}]}") CUT}},
    {"of another id", "{}", .call = {JSON("") "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}" CUT}},
    {"no JSON", "{}", .call = {JSON("") "{" CUT}},
    {"statuses", "{}", .call = {HTTP("500 No", "") CUT}},
    {"a status for a key", "{}", .call = {HTTP("401 No", "") CUT}},
    {"nothing", "{}", .call = {HTTP("200 OK", "") CUT}},
    {"elsewhere", "{}", .call = {HTTP("302 There", "Location: http://other.example/there\r\n") CUT}},
    {"a stream", "{}",
     .call = {STREAM ": a remark\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata:  "
                     "\"id\":$,\r\ndata:\"result\":{\"content\":[]}}\r\n\r\n" CUT}},
    {"a stream in pieces", "{}",
     .call = {STREAM "data: {\"jsonrpc\":\"2.0\"," LATER
                     "\"id\":$,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"late\"}]}}\n" LATER
                     "\n" CUT}},
    {"a stream that pings", "{}",
     .call = {STREAM "data: {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\n\n"
                     "data: " SAYS("yes") "\n\n" CUT}},
    {"a stream that asks", "{}",
     .call = {STREAM "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"sampling/createMessage\"}\n\n"
                     "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\ndata: "
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"
                     "data: " SAYS("yes") "\n\n" CUT},
     .end_s = 30},
    {"progress", "{}",
     .call = {STREAM "data: "
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                     "progress\",\"params\":{\"progressToken\":$,\"progress\":1,\"total\":4,\"message\":\"a "
                     "quarter\"}}\n\n" LATER "data: "
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                     "progress\",\"params\":{\"progressToken\":$,\"progress\":9,\"total\":4}}\n\n" LATER
                     "data: "
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                     "progress\",\"params\":{\"progressToken\":$,\"progress\":1}}\n\n" LATER "data: "
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
                     "progress\",\"params\":{\"progressToken\":77,\"progress\":1}}\n\n"
                     "data: " SAYS("done") "\n\n" CUT}},
    {"a stream that goes on", "{}", .call = {STREAM "retry: 2000\nid: e7\ndata:\n\n" CUT},
     .get = {STREAM "id: e8\n\n" CUT, STREAM "data: " SAYS("back") "\n\n" CUT}, .end_s = 20},
    {"the same in lines that end as in HTTP", "{}",
     .call = {STREAM "retry: 2000\r\nid: e7\r\ndata:\r\n\r\n" CUT},
     .get = {STREAM "id: e8\r\n\r\n" CUT, STREAM "data: " SAYS("back") "\r\n\r\n" CUT}, .end_s = 20},
    {"a stream that goes on behind the reply, of a server that fails", "{}",
     .list = {JSON("") RESULT("{" TOOLS "}") CUT, MUTE},
     .call = {STREAM "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
                     "data: " SAYS("yes") "\n\n" MUTE},
     .end_s = 60},
    {"a stream that never ends", "{}", .call = {STREAM "id: e7\ndata:\n\n" CUT},
     .get = {STREAM "id: e8\n\n" CUT}, .end_s = 30},
    {"a stream that breaks", "{}", .call = {STREAM "data: {\"json" CUT}},
    {"a stream that is no JSON", "{}", .call = {STREAM "data: {\"json\n\n" CUT}},
    {"a session's name as long as one may be", "{}",
     .initialize = {JSON("Mcp-Session-Id: " A255 "\r\n") RESULT(OLD) CUT}},
    {"a session's name that is too long", "{}",
     .initialize = {JSON("Mcp-Session-Id: a" A255 "\r\n") RESULT(OLD) CUT}},
    {"a session that is lost, with words", "{}",
     .initialize = {JSON("Mcp-Session-Id: s1\r\n") RESULT(OLD) CUT},
     .call = {HTTP("404 No", "Content-Type: application/json\r\n") ERROR("{\"code\":1,\"message\":\"who\"}")
                  CUT,
              JSON("") SAYS("found") CUT}},
    {"modern, odd values",
     "{\"a\":\"end \",\"b\":\"\\u007f\",\"c\":false,\"d\":{},\"e\":\"~ !\",\"f\":\"\\u001f\"}",
     .discover = {JSON("") RESULT(MODERN) CUT},
     .list = {JSON("") RESULT(
         HEADED(WANTED("a") "," WANTED("b") ",\"c\":{\"type\":\"boolean\",\"x-mcp-header\":\"c\"}," WANTED(
             "d") "," WANTED("e") "," WANTED("f"))) CUT},
     .call = {JSON("") SAYS("yes") CUT}},
    {"modern, long values", long_values, .discover = {JSON("") RESULT(MODERN) CUT},
     .list = {JSON("") RESULT(HEADED(WANTED("a") "," WANTED("b"))) CUT}, .call = {JSON("") SAYS("yes") CUT}},
    {"modern, more values than have room", many_values, .discover = {JSON("") RESULT(MODERN) CUT},
     .list = {JSON("") RESULT(HEADED(WANTED("a") "," WANTED("b") "," WANTED("c") "," WANTED("d") "," WANTED(
         "e") "," WANTED("f") "," WANTED("g") "," WANTED("h") "," WANTED("i"))) CUT},
     .call = {JSON("") SAYS("yes") CUT}},
    {"modern, more headers than there are places",
     "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,"
     "\"j\":1,\"k\":1,\"l\":1,\"m\":1,\"n\":1,\"o\":1,\"p\":1,\"q\":1,\"r\":1,\"s\":1,\"t\":1,\"u\":1,\"v\":"
     "1,\"w\":1,\"x\":1,"
     "\"y\":1,\"z\":1,\"za\":1,\"zb\":1,\"zc\":1,\"zd\":1}",
     .discover = {JSON("") RESULT(MODERN) CUT}, .list = {JSON("") RESULT(HEADED(WANTED_MANY)) CUT},
     .call = {JSON("") SAYS("yes") CUT}},
    {"modern, no arguments", NULL, .discover = {JSON("") RESULT(MODERN) CUT},
     .list = {JSON("") RESULT(HEADED(WANTED("a"))) CUT}, .call = {JSON("") SAYS("yes") CUT}},
    {"modern, a tool that is not listed", "{\"a\":\"1\"}", .discover = {JSON("") RESULT(MODERN) CUT},
     .list = {JSON("") RESULT("{\"tools\":[]}") CUT}, .call = {JSON("") SAYS("yes") CUT}},
    {"modern, a prompt", "{\"a\":\"1\"}", .discover = {JSON("") RESULT(MODERN) CUT},
     .list = {JSON("") RESULT(HEADED(WANTED("a"))) CUT}, .what = MCP_GET_PROMPT},
    {"modern, a stream that breaks", "{}", .discover = {JSON("") RESULT(MODERN) CUT},
     .call = {STREAM "id: e7\ndata:\n\n" CUT}},
    {"modern, it wants to know more", "{}", .discover = {JSON("") RESULT(MODERN) CUT},
     .call = {JSON("") RESULT("{\"resultType\":\"input_required\",\"requestState\":\"s1\"}") CUT,
              STREAM
              "data: " RESULT("{\"resultType\":\"input_required\",\"requestState\":\"s2\"}") "\n\n" CUT,
              JSON("") SAYS("enough") CUT}},
    {"a stream is read on when it says", "{}", .call = {STREAM "retry: 60000\nid: e7\nid:\ndata:\n\n" CUT},
     .get = {STREAM "retry: 0\nid:e8\n\n" CUT, STREAM "retry: 500\nretry:\n\n" CUT,
             STREAM "data: " SAYS("back") "\n\n" CUT},
     .end_s = 20},
    {"a stream that never ends, soon", "{}", .call = {STREAM "retry: 59999\nretry: 1\nid: e7\ndata:\n\n" CUT},
     .get = {STREAM "id: e8\n\n" CUT}},
    {"ends of lines in pieces", "{}",
     .call =
         {STREAM
          "data: {\"jsonrpc\":\"2.0\",\n\rdata: x\ndata: \"id\":$,\"result\":{\"content\":[]}}\r\n\r" LATER
          "\n" LATER LATER CUT}},
    {"two answers", "{}",
     .call = {STREAM "data: " SAYS("first") "\n\ndata: " SAYS("second") "\n\n" LATER CUT}},
    {"tools for a while, by page", "{}",
     .list = {JSON("") RESULT("{\"nextCursor\":\"p2\",\"ttlMs\":9000,\"tools\":[]}") CUT,
              JSON("") RESULT("{\"ttlMs\":1000," TOOLS "}") CUT,
              JSON("") RESULT("{\"nextCursor\":\"p2\",\"ttlMs\":6000}") CUT,
              JSON("") RESULT("{\"ttlMs\":9000," TOOLS "}") CUT},
     .call = {JSON("") SAYS("yes") CUT}, .end_s = 20},
    {"tools that are left out", "{}",
     .list = {JSON("") RESULT("{\"tools\":[{\"name\":\"t\"," SCHEMA "},{\"name\":\"\"," SCHEMA "}]}") CUT},
     .call = {JSON("") SAYS("yes") CUT}},
    {"it answers a notice with an error", "{}", .call = {JSON("") SAYS("yes") CUT},
     .notice = {JSON("") "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"odd\"}}" CUT}},
    {"it is mute about a notice", "{}", .call = {JSON("") SAYS("yes") CUT}, .notice = {MUTE}, .end_s = 40},
    {"mute about the call", "{}", .call = {MUTE}, .end_s = 200},
    {"a session of one letter that is lost", "{}",
     .initialize = {JSON("Mcp-Session-Id: s\r\n") RESULT(OLD) CUT,
                    JSON("Mcp-Session-Id: t\r\n") RESULT(OLD) CUT},
     .call = {HTTP("404 No", "") CUT, JSON("") SAYS("found") CUT}},
    {"a stream of one letter that goes on", "{}", .call = {STREAM "id: e\ndata:\n\n" CUT},
     .get = {STREAM "data: " SAYS("back") "\n\n" CUT}, .end_s = 20},
    {"a reply that is too long", "{}", .call = {ENDLESS}},
    {"modern, mute about the call", "{}", .discover = {JSON("") RESULT(MODERN) CUT}, .call = {MUTE},
     .end_s = 70},
};

static const scene *now;
static int n_asked[6];
static bytes all;
static int64_t began;
static mcp *servers;
static long last_id; /* of the last call, for streams that go on */

/* Text in which our version is VERSION, and libcurl's words for why it broke are WORDS; of a sign that comes more than
 * sixty times in a row stands one, and how often. */
static void put_text(const char *text)
{
    static const char BROKE[] = "the connection broke: ", LONG[] = "its reply is too large: ",
                      VERSION[] = "\"" PARLEY_VERSION "\"";
    while (*text) {
        const bool is_long = strncmp(text, LONG, sizeof LONG - 1) == 0;
        if (strncmp(text, VERSION, sizeof VERSION - 1) == 0) {
            bytes_append_str(&all, "\"VERSION\"");
            text += sizeof VERSION - 1;
        } else if (is_long || strncmp(text, BROKE, sizeof BROKE - 1) == 0) {
            bytes_printf(&all, "%sWORDS", is_long ? LONG : BROKE);
            text += strlen(is_long ? LONG : BROKE);
            text += strcspn(text, ";");
        } else {
            const char sign[] = {*text, '\0'};
            const size_t n = strspn(text, sign);
            bytes_append_char(&all, *text);
            if (n > 60) {
                bytes_printf(&all, "*%zu", n);
            }
            text += n > 60 ? n : 1;
        }
    }
}

static void put_log(void)
{
    for (char *line = log_news(), *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        bytes_printf(&all, "  %.1f log ", (double)(made_up_ns - began) / 1e9);
        put_text(line);
        bytes_append_char(&all, '\n');
    }
}

/* A request without what every one has. */
static void put_request(const char *head, const char *body)
{
    bytes_printf(&all, "  %.1f %.*s", (double)(made_up_ns - began) / 1e9, (int)strcspn(head, " "), head);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        const size_t n = strcspn(line, "\r");
        if (strncasecmp(line, "Host:", 5) != 0 && strncasecmp(line, "User-Agent:", 11) != 0 &&
            strncasecmp(line, "Content-Length:", 15) != 0) {
            static char text[1 << 17];
            snprintf(text, sizeof text, " [%.*s]", (int)n, line);
            put_text(text);
        }
    }
    bytes_append_str(&all, "\n      ");
    put_text(body);
    bytes_append_char(&all, '\n');
}

static const char *usual(size_t kind)
{
    static const char *const USUAL[] = {JSON("") ERROR("{\"code\":-32601,\"message\":\"no\"}") CUT,
                                        JSON("") RESULT(OLD) CUT, JSON("") RESULT("{" TOOLS "}") CUT,
                                        JSON("") RESULT("{}") CUT, HTTP("405 No", "") CUT};
    return USUAL[kind];
}

static const char *answer(int server, const char *head, const char *body)
{
    static char text[1 << 14];
    static const char *const METHODS[] = {"\"server/discover\"", "\"initialize\"", "\"tools/list\"",
                                          "\"tools/call\""};
    const char *const *const lists[] = {now->discover, now->initialize, now->list,
                                        now->call,     now->get,        now->notice};
    const char *id = strstr(body, "\"id\":");
    size_t kind = 0;
    (void)server;
    put_log();
    put_request(head, body);
    while (kind < 4 && !strstr(body, METHODS[kind])) {
        kind++;
    }
    kind += kind == 4 && strncmp(head, "GET", 3) != 0;
    if (kind == 5 && (!now->notice[0] || !strstr(body, "initialized"))) {
        return HTTP("202 OK", "Content-Length: 0\r\n") CUT;
    }
    const char *const *list = lists[kind];
    static const int CAPS[] = {3, 3, 4, 5, 3, 3};
    int at = n_asked[kind] < CAPS[kind] ? n_asked[kind] : CAPS[kind] - 1;
    n_asked[kind]++;
    while (at > 0 && !list[at]) {
        at--;
    }
    last_id = id ? strtol(id + 5, NULL, 10) : last_id;
    const char *from = list[0] ? list[at] : usual(kind);
    if (from == ENDLESS) {
        return endless;
    }
    size_t n = 0;
    for (; *from && n < sizeof text - 32; from++) {
        n += (size_t)(*from == '$' ? snprintf(text + n, 32, "%ld", last_id)
                                   : snprintf(text + n, 2, "%c", *from));
    }
    return text;
}

static void on_result(void *ctx, mcp_result *r)
{
    (void)ctx;
    put_log();
    bytes_printf(&all, "  %.1f %d.%d %s", (double)(made_up_ns - began) / 1e9, (int)r->owner, (int)r->place,
                 r->has_failed ? "fails: " : "");
    put_text(bytes_str(&r->text));
    if (r->progress > 0.0) {
        bytes_printf(&all, " (%.2f)", r->progress);
    }
    bytes_append_char(&all, '\n');
    mcp_result_free(r);
}

/* A call after a second, the end at another. */
static bool has_called;

static bool world(void)
{
    const double end_s =
        now->end_s > 0.0 ? now->end_s : 70.0; /* what is forgotten shows when its time is over */
    const int64_t due = began + (int64_t)((has_called ? end_s : 1.0) * 1e9);
    if (made_up_ns < due) {
        made_up_at(due);
        return made_up_serve();
    }
    if (has_called) { /* an order that comes too late is not begun */
        const mcp_order late = {.owner = 9, .server = "other", .name = "t"};
        err_detail none = {0};
        CHECK_OK(mcp_call(servers, &late, &none), none);
        servers->closing = true;
        http_client_wake(servers->client);
        return made_up_serve();
    }
    const mcp_order order = {
        .owner = 1, .place = 2, .what = now->what, .server = "far", .name = "t", .arguments = now->arguments};
    err_detail d = {0};
    const err_code err = mcp_call(servers, &order, &d);
    if (err != ERR_OK) {
        bytes_printf(&all, "  1.00 no call: %s %s\n", err_name(err), d.text);
    }
    has_called = true;
    return true;
}

static void play(const mcp_config *config, const scene *s)
{
    const mcp_hooks hooks = {.on_result = on_result};
    err_detail d = {0};
    now = s;
    began = made_up_ns;
    has_called = false;
    memset(n_asked, 0, sizeof n_asked);
    bytes_printf(&all, "%s\n", s->name);
    CHECK_OK(mcp_create(&servers, config, NULL, &hooks, &d), d);
    made_up_world = world;
    own_thread(servers);
    made_up_world = NULL;
    mcp_destroy(servers);
    while (made_up_serve()) {
    }
    put_log();
}

static void fill_values(void)
{
    const size_t n_long = LIMIT_MCP_MESSAGE_BYTES + 999;
    endless = malloc(n_long);
    CHECK(endless != NULL);
    const int n_head = snprintf(endless, n_long, "%s{\"jsonrpc\":\"2.0\"", JSON(""));
    memset(endless + n_head, ' ', n_long - (size_t)n_head - 3);
    memcpy(endless + n_long - 3, "}" CUT, 3);
    static char value[8193];
    memset(value, 'x', sizeof value - 1);
    snprintf(long_values, sizeof long_values, "{\"a\":\"%.8191s\",\"b\":\"%.8192s\"}", value, value);
    size_t n = 0;
    for (char c = 'a'; c <= 'i'; c++) {
        n += (size_t)snprintf(many_values + n, sizeof many_values - n, "%c\"%c\":\"%.8191s\"",
                              c == 'a' ? '{' : ',', c, value);
    }
    snprintf(many_values + n, sizeof many_values - n, "}");
}

int main(void)
{
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    mcp_config *config = NULL;
    err_detail d = {0};
    bytes_init(&all, 1 << 22);
    unsetenv("http_proxy");
    CHECK(fetch_start());
    folder_make(folder);
    snprintf(path, sizeof path, "%s/log", folder);
    log_news_open(path);
    log_set_format(LOG_JOURNAL);
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    FILE *f = fopen(path, "w");
    CHECK(
        f &&
        fprintf(f,
                "{\"mcpServers\":{\"far\":{\"url\":\"http://127.0.0.1:%d/mcp\",\"headers\":{\"X-Key\":\"k\"},"
                "\"timeout\":60}}}",
                made_up_listen(NULL)) > 0);
    CHECK(f && fclose(f) == 0);
    CHECK_OK(mcp_config_read(&config, path, NULL, &d), d);
    made_up_answer = answer;
    fill_values();
    for (size_t i = 0; i < sizeof SCENES / sizeof *SCENES; i++) {
        play(config, &SCENES[i]);
    }
    made_up_close();
    free(endless);
    mcp_config_destroy(config);
    close(log_news_fd);
    recorded_check("server/mcp/wire.txt", bytes_str(&all));
    bytes_deinit(&all);
    fetch_stop();
    CHECK_DONE();
}
