/* mcp over standard streams, and built-in tools, as its thread sees them: what a program gets and when, what it may write, when it
 * is started again, what becomes of calls meanwhile, and what is logged, as one recorded text. Time is made up, and the thread of
 * the module runs as this program's own; a double starts programs, and the threads of tools run where the test says so. */
#define _GNU_SOURCE /* pipe2 */
#include <fcntl.h>
#include <signal.h>

#include "base/limits.h"
#include "base/log.h"
#include "server/mcp/mcp_state.h"
#include "server/media/fetch.h"
#include "tests/folder.h"
#include "tests/log_news.h"
#include "tests/recorded.h"
#include "tests/server/made_up_time.h"

static bytes all;
static mcp *servers;
static int64_t began;

static void put_time(void)
{
    bytes_printf(&all, "  %.2f ", (double)(made_up_ns - began) / 1e9);
}

/* ---- threads ---- */

enum { THREADS = 64 };

static struct {
    void *(*run)(void *ctx);
    void *ctx;
} threads[THREADS]; /* the first is that of the module */
static size_t n_threads, n_run;

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *ctx);
int __wrap_pthread_join(pthread_t t, void **out);

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *ctx)
{
    (void)t, (void)attr;
    CHECK(n_threads < THREADS);
    threads[n_threads].run = run;
    threads[n_threads++].ctx = ctx;
    return 0;
}

static void run_tools(void)
{
    while (n_run < n_threads) {
        threads[n_run].run(threads[n_run].ctx);
        n_run++;
    }
}

/* Whoever waits for a thread sees its end. */
int __wrap_pthread_join(pthread_t t, void **out)
{
    (void)t, (void)out;
    run_tools();
    return 0;
}

/* ---- a program ---- */

static struct {
    int in, out, errors, line; /* its ends; -1: it has ended */
    bool reads, answers;
    bytes got;
} program = {-1, -1, -1, -1, true, true, {0}};
static bool does_not_start;

err_code __wrap_mcp_spawner_start(mcp_spawner *p, size_t index, mcp_child *out, err_detail *d);
err_code __wrap_mcp_spawner_start(mcp_spawner *p, size_t index, mcp_child *out, err_detail *d)
{
    int ends[4][2];
    CHECK(p == (mcp_spawner *)&program && index == 0);
    put_time();
    bytes_append_str(&all, does_not_start ? "does not start\n" : "starts\n");
    if (does_not_start) {
        return err_set(d, ERR_IO, "there is no such program");
    }
    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(pipe2(ends[i], O_NONBLOCK | O_CLOEXEC), 0);
    }
    *out = (mcp_child){ends[0][1], ends[1][0], ends[2][0], ends[3][1]};
    program.in = ends[0][0];
    program.out = ends[1][1];
    program.errors = ends[2][1];
    program.line = ends[3][0];
    return ERR_OK;
}

static void end_program(void)
{
    close(program.in);
    close(program.out);
    if (program.errors >= 0) {
        close(program.errors);
    }
    close(program.line);
    program.in = program.out = program.errors = program.line = -1;
    bytes_clear(&program.got);
}

static long last_id; /* of the last request that it got */

/* $ is that id. */
static void program_writes(int fd, const char *text)
{
    char line[512];
    const size_t n = strcspn(text, "$");
    snprintf(line, sizeof line, "%s", text);
    if (text[n]) {
        snprintf(line + n, sizeof line - n, "%ld%s", last_id, text + n + 1);
    }
    CHECK(write(fd, line, strlen(line)) == (ssize_t)strlen(line));
}

#define TOOLS "{\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]}"

#define VERSION "\"version\":\"" PARLEY_VERSION "\"" /* whose length does not count */

/* A line that it gets, and the usual answer. */
static void take_line(const char *line, size_t len)
{
    static const char *const RESULTS[][2] = {
        {"initialize",
         "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":"
         "{\"name\":\"p\",\"version\":\"1\"}}"},
        {"server/discover", "\"error\":{\"code\":-32601,\"message\":\"no\"}"},
        {"tools/list", "\"result\":" TOOLS},
        {"tools/call", "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}"}};
    const char *method = strstr(line, "\"method\":\""), *id = strstr(line, "\"id\":");
    char name[64] = "?", text[512];
    if (method) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(method + 10, "\""), method + 10);
    }
    put_time();
    bytes_printf(&all, "gets %s, %zu bytes\n", name,
                 len - (strstr(line, VERSION) ? strlen(PARLEY_VERSION) : 0));
    last_id = id ? strtol(id + 5, NULL, 10) : last_id;
    for (size_t i = 0; program.answers && id && i < ARRAY_LEN(RESULTS); i++) {
        if (strcmp(RESULTS[i][0], name) == 0) {
            snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":$,%s}\n", RESULTS[i][1]);
            program_writes(program.out, text);
        }
    }
}

/* What the program does by itself: it reads, and ends when its keeper's line is closed. */
static bool program_moves(void)
{
    char piece[8192], *end;
    ssize_t n = program.in >= 0 && program.reads ? read(program.in, piece, sizeof piece) : -1;
    if (n > 0) {
        bytes_append(&program.got, piece, (size_t)n);
        while ((end = memchr(bytes_str(&program.got), '\n', program.got.len))) {
            const size_t len = (size_t)(end - program.got.data);
            take_line(program.got.data, len);
            bytes_consume(&program.got, len + 1);
        }
        return true;
    }
    if (program.line >= 0 && read(program.line, piece, 1) == 0) {
        put_time();
        bytes_append_str(&all, "is ended\n");
        end_program();
        return true;
    }
    return false;
}

/* ---- what this side does, by the clock ---- */

/* 'C'all, 'N' cancel, it 'W'rites, writes 'E'rrors, closes its errors ('Z'), e'X'its, 'R'eads or not, 'A'nswers or not, 'S'tarts
 * or not, the 'T'ools run, 'Q'uit. */
typedef struct act {
    double at_s;
    char what;
    int n;            /* owner, or yes or no */
    const char *text; /* server of a call, what it writes */
} act;

static const act *next_act;
static char long_arguments[300000];

static void act_now(const act *a)
{
    err_detail d = {0};
    const bool is_sum = a->text && strcmp(a->text, "sums") == 0;
    const mcp_order order = {.owner = (uint64_t)a->n,
                             .place = 1,
                             .server = is_sum ? "sums" : "prog",
                             .name = is_sum ? "calculate" : "t",
                             .arguments = is_sum    ? "{\"expression\":\"6*7\"}"
                                          : a->text ? long_arguments
                                                    : "{}"};
    switch (a->what) {
    case 'C':
        CHECK_OK(mcp_call(servers, &order, &d), d);
        break;
    case 'N':
        mcp_cancel(servers, (uint64_t)a->n);
        break;
    case 'W':
        program_writes(program.out, a->text);
        break;
    case 'E':
        program_writes(program.errors, a->text);
        break;
    case 'X':
        end_program();
        break;
    case 'Z':
        close(program.errors);
        program.errors = -1;
        break;
    case 'R':
        program.reads = a->n;
        break;
    case 'A':
        program.answers = a->n;
        break;
    case 'S':
        does_not_start = !a->n;
        break;
    case 'T':
        put_time();
        bytes_printf(&all, "%zu tools run\n", n_threads - n_run);
        run_tools();
        break;
    default:
        servers->closing = true;
        http_client_wake(servers->client);
    }
}

static void put_log(void);

static bool world(void)
{
    const int64_t due = began + (int64_t)(next_act->at_s * 1e9);
    put_log();
    if (made_up_ns < due) {
        made_up_at(due);
        return program_moves();
    }
    if (!servers->closing) {
        act_now(next_act);
        next_act += next_act->what != 'Q';
        return true;
    }
    return program_moves();
}

/* ---- what is told ---- */

static void put_log(void)
{
    for (char *line = log_news(), *end; (end = strchr(line, '\n')); line = end + 1) {
        put_time();
        *end = '\0';
        const char *version = strstr(line, " " PARLEY_VERSION ",");
        const size_t n_front = version ? (size_t)(version - line) : strlen(line);
        bytes_printf(&all, "log %.*s%s%s\n", (int)n_front, line, version ? " VERSION" : "",
                     version ? version + strlen(" " PARLEY_VERSION) : "");
    }
}

static void on_result(void *ctx, mcp_result *r)
{
    (void)ctx;
    put_log();
    put_time();
    bytes_printf(&all, "%d.%d %s%s", (int)r->owner, (int)r->place, r->has_failed ? "fails: " : "",
                 bytes_str(&r->text));
    if (r->progress >= 0) {
        bytes_printf(&all, " (%.3f)", r->progress);
    }
    bytes_append_char(&all, '\n');
    mcp_result_free(r);
}

/* What is published: of each server its state and why, its name, protocol and tools. */
static void on_change(void *ctx)
{
    static const char *const STATES[] = {
        [MCP_OFF] = "off", [MCP_CONNECTING] = "begins", [MCP_READY] = "ready", [MCP_DOWN] = "down"};
    mcp *m = ctx ? servers : NULL;
    mcp_catalog *c = mcp_take_catalog(m);
    CHECK(ctx == &all);
    put_log();
    put_time();
    bytes_append_str(&all, m ? "" : "is being made");
    for (size_t i = 0; c && i < c->n; i++) {
        const mcp_server_view *v = &c->servers[i];
        bytes_printf(&all, "%s%s %s%s%s", i ? "; " : "", v->config->label, STATES[v->state],
                     v->why[0] ? ": " : "", v->why);
        if (v->state == MCP_READY) {
            bytes_printf(&all, ": %s, %s, %zu tools", v->name, v->protocol, v->offer ? v->offer->n_tools : 0);
        }
    }
    bytes_append_char(&all, '\n');
    mcp_catalog_release(c);
}

static const mcp_config *config;

static void play(const char *name, const act *acts)
{
    const mcp_hooks hooks = {.on_result = on_result, .on_change = on_change, .ctx = &all};
    err_detail d = {0};
    began = made_up_ns;
    next_act = acts;
    does_not_start = acts->what == 'S';
    program.reads = program.answers = true;
    n_threads = n_run = 0;
    bytes_printf(&all, "%s\n", name);
    servers = NULL; /* nothing is to be taken before it is made */
    CHECK_OK(mcp_create(&servers, config, (mcp_spawner *)&program, &hooks, &d), d);
    n_run = 1;
    made_up_world = world;
    threads[0].run(servers);
    made_up_world = NULL;
    for (size_t i = 0; i < servers->n_sessions; i++) {
        const mcp_session *s = &servers->sessions[i];
        bytes_printf(&all, "  %s is %s%s%s\n", s->config->label, s->step == STEP_OPEN ? "open" : "closed",
                     s->why[0] ? ": " : "", s->why);
    }
    mcp_destroy(servers);
    if (program.in >= 0) {
        CHECK(program_moves()); /* its line is closed */
    }
    put_log();
}

#define PLAY(name, ...)                                                                                      \
    do {                                                                                                     \
        static const act acts[] = {__VA_ARGS__};                                                             \
        play(name, acts);                                                                                    \
    } while (0)

#define LINE(text) "{\"jsonrpc\":\"2.0\"," text "}\n"

#define PROGRESS(n, total)                                                                                   \
    LINE("\"method\":\"notifications/progress\",\"params\":{\"progressToken\":$,\"progress\":" n             \
         ",\"total\":" total "}")

static void test_programs(void)
{
    PLAY("a call", {1, 'C', 5, NULL}, {2, 'Q', 0, NULL});
    PLAY("a call as it begins", {0, 'C', 5, NULL}, {2, 'Q', 0, NULL});
    PLAY("it reads a long call later", {1, 'R', 0, NULL}, {1, 'C', 5, "long"}, {2, 'C', 6, NULL},
         {3, 'R', 1, NULL}, {4, 'Q', 0, NULL});
    PLAY("it does not read a long call", {1, 'R', 0, NULL}, {1, 'C', 5, "long"}, {70, 'Q', 0, NULL});
    PLAY("it is mute", {1, 'A', 0, NULL}, {1, 'C', 5, NULL}, {70, 'Q', 0, NULL});
    PLAY("a call is taken back", {1, 'A', 0, NULL}, {1, 'C', 5, NULL}, {1, 'C', 6, NULL}, {2, 'N', 5, NULL},
         {3, 'N', 7, NULL}, {4, 'Q', 0, NULL});
    PLAY("it ends", {1, 'E', 0, "one\nlast words \r\n"}, {1, 'A', 0, NULL}, {1.5, 'C', 5, NULL},
         {2, 'X', 0, NULL}, {2.5, 'C', 6, NULL}, {3.5, 'A', 1, NULL}, {3.6, 'C', 7, NULL}, {6, 'Q', 0, NULL});
    PLAY("it writes errors", {1, 'E', 0, "one\ntwo"}, {1, 'E', 0, "\n"}, {2, 'E', 0, " \r\n"},
         {3, 'E', 0, "th\x1bree \r\n\n"}, {4, 'Z', 0, NULL}, {5, 'C', 5, NULL}, {6, 'X', 0, NULL},
         {6.5, 'Q', 0, NULL});
    PLAY("it ends with a letter", {1, 'E', 0, "x"}, {2, 'C', 5, NULL}, {3, 'X', 0, NULL},
         {3.5, 'Q', 0, NULL});
    PLAY("it ends without a word, in a call", {1, 'R', 0, NULL}, {1, 'C', 5, "long"}, {2, 'X', 0, NULL},
         {9, 'Q', 0, NULL});
    PLAY("it ends again and again", {0.5, 'X', 0, NULL}, {2, 'X', 0, NULL}, {5, 'X', 0, NULL},
         {9.5, 'X', 0, NULL}, {10, 'C', 5, NULL}, {30, 'Q', 0, NULL});
    PLAY("it does not start", {0, 'S', 0, NULL}, {2, 'C', 5, NULL}, {5, 'S', 1, NULL}, {9, 'C', 6, NULL},
         {10, 'Q', 0, NULL});
    PLAY("it says what is no message", {1, 'W', 0, "hello\n"}, {1, 'W', 0, "{\n"}, {1, 'W', 0, "{no\n"},
         {3, 'C', 5, NULL}, {4, 'Q', 0, NULL});
    PLAY("it asks, and says that its tools are others", {1, 'W', 0, LINE("\"id\":7,\"method\":\"ping\"")},
         {2, 'W', 0, LINE("\"method\":\"notifications/tools/list_changed\"")}, {9, 'Q', 0, NULL});
    PLAY("it says it in pieces", {1, 'A', 0, NULL}, {1, 'C', 5, NULL},
         {2, 'W', 0, "{\"jsonrpc\":\"2.0\",\"id\":$,"},
         {3, 'W', 0, "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"late\"}]}"}, {4, 'W', 0, "}\n"},
         {5, 'Q', 0, NULL});
    PLAY("it is mute from its begin", {0, 'A', 0, NULL}, {45, 'Q', 0, NULL});
    PLAY("it is slow", {1, 'A', 0, NULL}, {1, 'C', 5, NULL}, {1.1, 'W', 0, PROGRESS("1", "4")},
         {1.349, 'W', 0, PROGRESS("2", "4")}, {1.351, 'W', 0, PROGRESS("3", "4")},
         {1.6, 'W', 0, PROGRESS("5", "4")}, {1.9, 'W', 0, PROGRESS("-1", "4")},
         {2.2, 'W', 0, PROGRESS("1", "0")}, {2.5, 'W', 0, PROGRESS("1", "-2")},
         {61, 'W', 0, PROGRESS("1", "8")}, {130, 'Q', 0, NULL});
    act slow[16] = {{1, 'A', 0, NULL}, {1, 'C', 5, NULL}}; /* for ten times as long as it may be silent */
    for (size_t i = 2; i < 15; i++) {
        slow[i] = (act){50.0 * (double)(i - 1), 'W', 0, PROGRESS("1", "2")};
    }
    slow[15] = (act){700, 'Q', 0, NULL};
    play("it is slower", slow);
    PLAY("it is told nothing, as it is over", {0, 'A', 0, NULL}, {0, 'C', 5, NULL}, {1, 'Q', 0, NULL});
}

static void test_tools(void)
{
    PLAY("a tool", {1, 'C', 5, "sums"}, {2, 'T', 0, NULL}, {3, 'Q', 0, NULL});
    PLAY("a tool that nobody waits for", {1, 'C', 5, "sums"}, {2, 'N', 5, NULL}, {3, 'T', 0, NULL},
         {4, 'Q', 0, NULL});
    PLAY("a tool that is still at it", {1, 'C', 5, "sums"}, {2, 'Q', 0, NULL});
    PLAY("a tool that takes too long", {1, 'C', 5, "sums"}, {70, 'T', 0, NULL}, {71, 'Q', 0, NULL});
    act many[LIMIT_TOOL_THREADS + 8]; /* more than there are threads for: one waits for the others */
    size_t n = 0;
    while (n < LIMIT_TOOL_THREADS + 1) {
        many[n] = (act){1, 'C', (int)n + 1, "sums"};
        n++;
    }
    many[n++] = (act){1.02, 'T', 0, NULL};
    many[n++] = (act){1.2, 'T', 0, NULL};
    many[n] = (act){2, 'Q', 0, NULL};
    play("many tools", many);
}

int main(void)
{
    char folder[FOLDER_NAME], path[FOLDER_NAME + 16];
    mcp_config *read = NULL;
    err_detail d = {0};
    signal(SIGPIPE, SIG_IGN);
    bytes_init(&all, 1 << 22);
    bytes_init(&program.got, 1 << 20);
    CHECK(fetch_start());
    folder_make(folder);
    snprintf(path, sizeof path, "%s/log", folder);
    log_news_open(path);
    log_set_format(LOG_JOURNAL);
    log_set_level(LOG_DEBUG);
    snprintf(path, sizeof path, "%s/mcp.json", folder);
    FILE *f = fopen(path, "w");
    CHECK(f &&
          fputs("{\"mcpServers\":{\"prog\":{\"command\":\"prog\",\"timeout\":60},\"sums\":{\"builtin\":"
                "\"calculator\",\"timeout\":60},\"odd\":{},\"off\":{\"command\":\"x\",\"disabled\":true}}}",
                f) >= 0);
    CHECK(f && fclose(f) == 0);
    CHECK_OK(mcp_config_read(&read, path, NULL, &d), d);
    config = read;
    memset(long_arguments, 'x', sizeof long_arguments - 1);
    memcpy(long_arguments, "{\"a\":\"", 6);
    memcpy(long_arguments + sizeof long_arguments - 3, "\"}", 2);
    test_programs();
    test_tools();
    mcp_config_destroy(read);
    close(log_news_fd);
    recorded_check("server/mcp/streams.txt", bytes_str(&all));
    bytes_deinit(&all);
    bytes_deinit(&program.got);
    fetch_stop();
    CHECK_DONE();
}
