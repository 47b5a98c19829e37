/* mcp_pipe, mcp_worker: lines to and from a program, and built-in tools on their threads. What the session makes of it is
 * made up: it is written down. */
#define _GNU_SOURCE /* pipe2 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/limits.h"
#include "server/mcp/mcp_state.h"
#include "tests/folder.h"
#include "tests/open_files.h"

static char heard[4096]; /* what the session was told, a line each */
static mcp all;
static mcp_session session;
static mcp_server_config config = {.label = "near", .builtin = "time"};

static void tell(const char *format, ...)
{
    const size_t n = strlen(heard);
    va_list args;
    va_start(args, format);
    vsnprintf(heard + n, sizeof heard - n, format, args);
    va_end(args);
}

#define CHECK_HEARD(expected)                                                                                \
    do {                                                                                                     \
        CHECK_STR(heard, expected);                                                                          \
        heard[0] = '\0';                                                                                     \
    } while (0)

void mcp_session_fail(mcp_session *s, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->is_failing = true;
    tell("fails: %s\n", text);
}

static int fails_behind = -1; /* so many messages are taken, then the session fails */

void mcp_session_read(mcp_session *s, mcp_ask *ask, const char *text, size_t len)
{
    tell("%s%.*s\n", ask ? "reply " : "", (int)len, text);
    if (fails_behind >= 0 && fails_behind-- == 0) {
        mcp_session_fail(s, "it is wrong");
    }
}

/* ---- a program ---- */

static int to_child, from_child, child_errors; /* the other ends */

err_code mcp_spawner_start(mcp_spawner *p, size_t index, mcp_child *out, err_detail *d)
{
    int in[2], from[2], errors[2];
    CHECK(p && d && index == 5);
    CHECK(pipe2(in, O_NONBLOCK) == 0 && pipe2(from, O_NONBLOCK) == 0 && pipe2(errors, O_NONBLOCK) == 0);
    *out = (mcp_child){.in = in[1], .out = from[0], .errors = errors[0], .line = -1};
    to_child = in[0];
    from_child = from[1];
    child_errors = errors[1];
    return ERR_OK;
}

void mcp_child_end(mcp_child *child)
{
    int *const fds[] = {&child->in, &child->out, &child->errors};
    for (int i = 0; i < 3; i++) {
        if (*fds[i] >= 0) {
            close(*fds[i]);
        }
        *fds[i] = -1;
    }
    tell("ends\n");
}

static void end_other(int *fd)
{
    close(*fd);
    *fd = -1;
}

static void begin(void)
{
    err_detail d = {0};
    bytes_deinit(&session.in);
    bytes_deinit(&session.out);
    session = (mcp_session){.all = &all, .config = &config, .index = 5, .said = "of the last one"};
    bytes_append_str(&session.in, "");
    CHECK_OK(mcp_pipe_open(&session, &d), d);
    CHECK_STR(session.said, "");
    CHECK_INT(session.in.len, 0);
    CHECK_INT(session.out.len, 0);
    heard[0] = '\0';
}

static void finish(void)
{
    mcp_pipe_close(&session);
    CHECK_INT(session.in.len, 0);
    CHECK_INT(session.out.len, 0);
    CHECK_HEARD("ends\n");
    int *const fds[] = {&to_child, &from_child, &child_errors};
    for (int i = 0; i < 3; i++) {
        if (*fds[i] >= 0) {
            end_other(fds[i]);
        }
    }
}

static void put(int fd, const char *text)
{
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void reads(const char *text)
{
    put(from_child, text);
    mcp_pipe_ready(&session, true, false, false);
}

static void test_lines(void)
{
    err_detail d = {0};
    session = (mcp_session){.all = &all, .config = &config, .index = 5};
    all.spawner = NULL;
    CHECK_INT(mcp_pipe_open(&session, &d), ERR_UNSUPPORTED);
    CHECK_STR(d.text, "programs cannot be started here");
    all.spawner = (mcp_spawner *)&all;
    begin();
    reads("{\"a\":1}\n");
    CHECK_HEARD("{\"a\":1}\n");
    CHECK_INT(session.n_read, 8);
    reads("noise\n{}\n\n{\n[1]\n {}\n{\"b\":");
    CHECK_HEARD("{}\n");
    CHECK_INT(session.in.len, 5);
    reads("2}");
    CHECK_HEARD("");
    reads("\n{\"c\":3}\n");
    CHECK_HEARD("{\"b\":2}\n{\"c\":3}\n");
    CHECK_INT(session.in.len, 0);
    mcp_pipe_ready(&session, true, true, true); /* nothing there: neither an end nor an error */
    mcp_pipe_ready(&session, false, false, false);
    CHECK_HEARD("");
    put(from_child, "{}\n");
    mcp_pipe_ready(&session, false, true, true); /* not asked to */
    CHECK_HEARD("");
    fails_behind = 1;
    reads("{\"d\":4}\n{\"e\":5}\n"); /* what is behind a message that is wrong is not read */
    CHECK_HEARD("{}\n{\"d\":4}\nfails: it is wrong\n");
    reads("{\"f\":6}\n");
    CHECK_HEARD("");
    fails_behind = -1;
    finish();
}

static void test_bounds(void)
{
    char path[128];
    for (size_t more = 0; more < 2;
         more++) { /* a line as long as it may be, and one longer: a file of zeros */
        begin();
        snprintf(path, sizeof path, "%s/long", folder_root);
        const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        CHECK(ftruncate(fd, (off_t)(LIMIT_MCP_MESSAGE_BYTES + more)) == 0);
        CHECK(dup2(fd, session.child.out) == session.child.out);
        close(fd);
        for (size_t i = 0; i < (LIMIT_MCP_MESSAGE_BYTES >> 16) + more; i++) {
            CHECK_HEARD("");
            mcp_pipe_ready(&session, true, false, false);
        }
        CHECK_INT(session.in.len, LIMIT_MCP_MESSAGE_BYTES + more);
        CHECK_HEARD(more ? "fails: a message of it is longer than 16 MiB\n" : "");
        finish();
    }
    begin();
    session.n_read = MCP_FLOOD_BYTES - 3;
    reads("{}\n");
    CHECK_HEARD("{}\n");
    reads("\n");
    CHECK_HEARD("fails: it sends without end\n");
    finish();
}

static void test_ends(void)
{
    static const struct {
        const char *errors, *said, *heard;
    } ROWS[] = {{"", "", "fails: its program has ended\n"},
                {"first\nlast line \r\n\n", "last line", "fails: its program has ended: last line\n"},
                {"  \n", "", "fails: its program has ended\n"},
                {"one", "one", "fails: its program has ended: one\n"},
                {"a\tb\x01", "ab", "fails: its program has ended: ab\n"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        begin();
        put(child_errors, ROWS[i].errors);
        end_other(&from_child);
        mcp_pipe_ready(&session, true, false, false);
        CHECK_STR(session.said, ROWS[i].said);
        CHECK_HEARD(ROWS[i].heard);
        CHECK(session.child.errors >= 0);
        finish();
    }
    /* Errors are read when they come; what is said last stays; their end is not that of the program. */
    begin();
    put(child_errors, "one\n");
    mcp_pipe_ready(&session, false, false, false);
    CHECK_STR(session.said, "");
    mcp_pipe_ready(&session, false, false, true);
    CHECK_STR(session.said, "one");
    put(child_errors, "\n");
    mcp_pipe_ready(&session, false, false, true);
    CHECK_STR(session.said, "one");
    const int fd = session.child.errors;
    end_other(&child_errors);
    mcp_pipe_ready(&session, false, false, true);
    CHECK_INT(session.child.errors, -1);
    CHECK(fcntl(fd, F_GETFD) < 0);
    mcp_pipe_ready(&session, false, false, true);
    CHECK_HEARD("");
    finish();
    /* A line that is longer than what is kept of it. */
    begin();
    char line[1000];
    memset(line, 'l', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    put(child_errors, line);
    mcp_pipe_ready(&session, false, false, true);
    CHECK(strlen(session.said) >= sizeof session.said - 8 && strlen(session.said) < sizeof session.said);
    end_other(&from_child);
    mcp_pipe_ready(&session, true, false, false);
    char expected[512];
    snprintf(expected, sizeof expected, "fails: its program has ended: %.200s\n", session.said);
    CHECK_HEARD(expected);
    finish();
}

static void test_writing(void)
{
    char text[256];
    begin();
    mcp_pipe_send(&session, "{\"a\":1}", 7);
    mcp_pipe_send(&session, "{\"b\":2}xx", 7);
    CHECK_INT(read(to_child, text, sizeof text), 16);
    CHECK(memcmp(text, "{\"a\":1}\n{\"b\":2}\n", 16) == 0);
    CHECK_INT(session.out.len, 0);
    /* More than the pipe takes waits, and goes on when there is room. */
    static char large[300000], got[sizeof large + 1];
    memset(large, 'x', sizeof large);
    mcp_pipe_send(&session, large, sizeof large);
    CHECK(session.out.len > 0 && session.out.len < sizeof large);
    size_t n = 0;
    for (ssize_t m; n < sizeof got; n += (size_t)m) {
        m = read(to_child, got + n, sizeof got - n);
        if (m <= 0) {
            mcp_pipe_ready(&session, true, false, true); /* not to be written to */
            CHECK(read(to_child, got + n, 1) < 0 && errno == EAGAIN);
            mcp_pipe_ready(&session, false, true, false);
            m = read(to_child, got + n, sizeof got - n);
        }
        if (m <= 0) {
            break;
        }
    }
    CHECK_INT(n, sizeof got);
    CHECK(memcmp(got, large, sizeof large) == 0 && got[sizeof large] == '\n');
    CHECK_INT(session.out.len, 0);
    CHECK_HEARD("");
    /* One that has closed its input. */
    end_other(&to_child);
    mcp_pipe_send(&session, "{}", 2);
    CHECK_HEARD("fails: it has closed its input\n");
    mcp_pipe_send(&session, "{}", 2); /* nothing is written any more, nor said */
    CHECK_HEARD("");
    finish();
    begin();
    put(child_errors, "no memory\n");
    mcp_pipe_ready(&session, false, false, true);
    end_other(&to_child);
    mcp_pipe_send(&session, "{}", 2);
    CHECK_HEARD("fails: it has closed its input: no memory\n");
    finish();
    /* One that never reads. */
    begin();
    const size_t most = (size_t)32 << 20;
    while (session.out.len + sizeof large < most && !heard[0]) {
        mcp_pipe_send(&session, large, sizeof large);
    }
    CHECK_HEARD("");
    mcp_pipe_send(&session, large, sizeof large);
    CHECK_HEARD("fails: it does not read what it is sent\n");
    finish();
}

/* ---- threads ---- */

static atomic_int n_wakes, n_working;

void http_client_wake(http_client *c)
{
    CHECK((void *)c == (void *)&heard);
    atomic_fetch_add(&n_wakes, 1);
}

/* Answers with its request; {"waits":..}: once nobody waits any more. */
void mcp_builtin_answer(const mcp_server_config *c, const json *request, bytes *out,
                        bool (*may_go_on)(void *ctx), void *ctx)
{
    CHECK(c == &config && may_go_on(ctx));
    atomic_fetch_add(&n_working, 1);
    while (json_get(request, "waits") && may_go_on(ctx)) {
        usleep(200);
    }
    json_write(out, request);
}

static mcp_ask *ask_with(const char *text)
{
    mcp_ask *ask = calloc(1, sizeof *ask);
    ask->s = &session;
    bytes_init(&ask->body, 1000);
    bytes_append_str(&ask->body, text);
    return ask;
}

static void free_ask(mcp_ask *ask)
{
    bytes_deinit(&ask->body);
    free(ask);
}

static void wait_for(atomic_int *what, int n)
{
    for (int i = 0; i < 50000 && atomic_load(what) < n; i++) {
        usleep(200);
    }
    CHECK_INT(atomic_load(what), n);
}

static void test_workers(void)
{
    session = (mcp_session){.all = &all, .config = &config};
    all.client = (http_client *)&heard;
    mcp_ask *one = ask_with("{\"one\":1}"), *bad = ask_with("{"), *waits[LIMIT_TOOL_THREADS];
    CHECK(mcp_worker_start(one));
    CHECK(one->worker && one->worker == all.workers);
    wait_for(&n_wakes, 1);
    CHECK_HEARD("");
    mcp_worker_collect(&all, false);
    CHECK_HEARD("reply {\"one\":1}\n");
    CHECK(!one->worker && !all.workers);
    CHECK(mcp_worker_start(bad)); /* no request */
    wait_for(&n_wakes, 2);
    mcp_worker_collect(&all, false);
    CHECK_HEARD("reply \n");
    for (int more = 0; more < 2; more++) { /* as deep as a request may be, and deeper */
        char deep[2 * (LIMIT_JSON_DEPTH + 8) + 16] = "", expected[sizeof deep + 16];
        const int n = LIMIT_JSON_DEPTH + 8 + more - 1;
        size_t at = (size_t)snprintf(deep, sizeof deep, "{\"d\":");
        for (int i = 0; i < 2 * n; i++) {
            deep[at++] = i < n ? '[' : ']';
        }
        deep[at++] = '}';
        deep[at] = '\0';
        mcp_ask *ask = ask_with(deep);
        CHECK(mcp_worker_start(ask));
        mcp_worker_collect(&all, true);
        snprintf(expected, sizeof expected, "reply %s\n", more ? "" : deep);
        CHECK_HEARD(expected);
        free_ask(ask);
    }
    atomic_store(&n_wakes, 2);
    atomic_store(&n_working, 0);
    for (int i = 0; i < LIMIT_TOOL_THREADS; i++) { /* as many as may be at work, and one more */
        waits[i] = ask_with(i == 2 ? "{\"two\":2}" : "{\"waits\":1}");
        CHECK(mcp_worker_start(waits[i]));
    }
    CHECK(!mcp_worker_start(one) && !one->worker);
    wait_for(&n_wakes, 3);
    wait_for(&n_working, LIMIT_TOOL_THREADS);
    mcp_worker_collect(&all, false); /* the one that is ready, between others */
    CHECK_HEARD("reply {\"two\":2}\n");
    CHECK(!waits[2]->worker && waits[1]->worker && waits[3]->worker);
    mcp_worker_cancel(waits[1]->worker); /* nobody hears of it */
    wait_for(&n_wakes, 4);
    CHECK(mcp_worker_start(one) && !mcp_worker_start(bad)); /* it has not been collected */
    wait_for(&n_wakes, 5);
    mcp_worker_collect(&all, false);
    CHECK_HEARD("reply {\"one\":1}\n");
    for (int i = 0; i < LIMIT_TOOL_THREADS; i++) {
        if (i != 1 && i != 2) {
            mcp_worker_cancel(waits[i]->worker);
        }
    }
    mcp_worker_collect(&all, true);
    CHECK_HEARD("");
    CHECK(!all.workers);
    CHECK_INT(atomic_load(&n_wakes), 2 + LIMIT_TOOL_THREADS + 1);
    for (int i = 0; i < LIMIT_TOOL_THREADS; i++) {
        free_ask(waits[i]);
    }
    free_ask(one);
    free_ask(bad);
}

int main(void)
{
    char folder[FOLDER_NAME];
    folder_make(folder);
    signal(SIGPIPE, SIG_IGN);
    test_lines();
    test_bounds();
    test_ends();
    test_writing();
    test_workers();
    CHECK_ALL_CLOSED();
    CHECK_DONE();
}
