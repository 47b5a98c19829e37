/* service: what a service manager hears from the server, from a double of its socket: loading,
 * ready, signs of life, the end. The server runs in a child process, as it heeds signals. */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/notify.h"
#include "server/service/serve.h"
#include "tests/check.h"
#include "tests/cpu.h"

enum { DEADLINE_MS = 60000 };

/* A bound datagram socket; address.sun_path is its name. */
static int open_manager(struct sockaddr_un *address, bool is_abstract)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    snprintf(address->sun_path + is_abstract, sizeof address->sun_path - 1, "/tmp/parley_manager_%ld",
             (long)getpid());
    const size_t len = strlen(address->sun_path + is_abstract) + is_abstract;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd, (struct sockaddr *)address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) ==
          0);
    return fd;
}

/* Waits for a message that has the line; false at the deadline. What came is appended to heard. */
static bool hear(int fd, const char *line, char *heard, size_t cap)
{
    char text[1024];
    const double end = clock_ms() + DEADLINE_MS;
    while (clock_ms() < end) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n = poll(&p, 1, 1000) > 0 ? recv(fd, text, sizeof text - 1, 0) : -1;
        if (n < 0) {
            continue;
        }
        text[n] = '\0';
        const size_t len = strlen(heard);
        snprintf(heard + len, cap - len, "%s\n", text);
        if (strstr(text, line)) {
            return true;
        }
    }
    fprintf(stderr, "never heard %s, but: %s\n", line, heard);
    return false;
}

static int serve_model(const char *model)
{
    static const char template_file[] = PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja";
    engine_options engine_opt = {.model_dir = model,
                                 .template_file = template_file,
                                 .n_ctx = 512,
                                 .n_threads = 1,
                                 .cpu_mask = test_cpu_mask()};
    serve_options opt;
    gen_params_init(&engine_opt.defaults);
    serve_options_init(&opt);
    opt.engine = &engine_opt;
    opt.port = 0;
    opt.quiet = true;
    opt.drain_timeout_s = 3;
    log_set_level(LOG_WARN);
    return serve_run(&opt);
}

static void test_life(const char *model)
{
    struct sockaddr_un address;
    char heard[16384] = "";
    int status = 0;
    int fd = open_manager(&address, false);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", "200000", 1);
    pid_t child = fork();
    if (child == 0) {
        _exit(serve_model(model));
    }
    CHECK(hear(fd, "READY=1\nSTATUS=Ready: tiny", heard, sizeof heard));
    CHECK(strstr(heard, "STATUS=Loading: "));
    CHECK(hear(fd, "WATCHDOG=1", heard, sizeof heard));
    CHECK(hear(fd, "WATCHDOG=1", heard, sizeof heard));
    CHECK(!strstr(heard, "STOPPING=1"));
    kill(child, SIGTERM);
    CHECK(hear(fd, "STOPPING=1\nSTATUS=Ending: 0 answers open\nEXTEND_TIMEOUT_USEC=33000000", heard,
               sizeof heard));
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(fd);
    unlink(address.sun_path);
}

static void test_abstract(void)
{
    struct sockaddr_un address;
    char heard[1024] = "", name[128];
    notify n;
    int fd = open_manager(&address, true);
    snprintf(name, sizeof name, "@%s", address.sun_path + 1);
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "2000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    notify_open(&n);
    CHECK(n.is_open && n.watchdog_ms == 0.0);
    CHECK(!getenv("NOTIFY_SOCKET") && !getenv("WATCHDOG_USEC") && !getenv("WATCHDOG_PID"));
    notify_tick(&n, 1000.0, true);
    notify_tick(&n, 1001.0, true);
    notify_send(&n, "STATUS=%d", 7);
    CHECK(hear(fd, "STATUS=7", heard, sizeof heard));
    CHECK_STR(heard, "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=7\n");
    notify_close(&n);

    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "2000000", 1);
    notify_open(&n);
    CHECK_NEAR(n.watchdog_ms, 1000.0, 1e-9);
    notify_close(&n);

    char own[32]; /* twice as often as the manager wants to hear it, and not more often */
    snprintf(own, sizeof own, "%d", (int)getpid());
    setenv("NOTIFY_SOCKET", name, 1);
    setenv("WATCHDOG_USEC", "2000000", 1);
    setenv("WATCHDOG_PID", own, 1);
    notify_open(&n);
    static const double LOOKS[] = {0.0, 999.0, 1000.0, 1001.0, 1999.0, 2000.0, 6000.0};
    heard[0] = '\0';
    for (size_t i = 0; i < sizeof LOOKS / sizeof *LOOKS; i++) {
        char at[32];
        snprintf(at, sizeof at, "at %.0f", LOOKS[i]);
        notify_tick(&n, LOOKS[i], LOOKS[i] >= 999.0);
        notify_send(&n, "%s", at);
        CHECK(hear(fd, at, heard, sizeof heard));
    }
    CHECK_STR(heard,
              "WATCHDOG=1\nat 0\nEXTEND_TIMEOUT_USEC=60000000\nat 999\nWATCHDOG=1\nat 1000\nat 1001\nat "
              "1999\nWATCHDOG=1\nat 2000\nWATCHDOG=1\nEXTEND_TIMEOUT_USEC=60000000\nat 6000\n");
    notify_close(&n);
    static const char *const NONE[] = {"0", "-2000000", "x"};
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++) {
        setenv("NOTIFY_SOCKET", name, 1);
        setenv("WATCHDOG_USEC", NONE[i], 1);
        notify_open(&n);
        CHECK(n.is_open && n.watchdog_ms == 0.0);
        notify_close(&n);
    }
    close(fd);
    char longer[200]; /* an address has room for so many bytes */
    for (size_t len = sizeof n.address.sun_path - 1; len <= sizeof n.address.sun_path; len++) {
        snprintf(longer, sizeof longer, "/%0*d", (int)len - 1, 0);
        setenv("NOTIFY_SOCKET", longer, 1);
        notify_open(&n);
        CHECK_INT(n.is_open, len < sizeof n.address.sun_path);
        notify_close(&n);
    }

    static const char *const BAD[] = {"", "relative", "@", "/"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        setenv("NOTIFY_SOCKET", BAD[i], 1);
        notify_open(&n);
        CHECK(!n.is_open);
        notify_send(&n, "READY=1");
        notify_tick(&n, 1000.0, true);
        notify_close(&n);
    }
}

int main(void)
{
    test_life(check_data("tiny"));
    test_abstract();
    CHECK_DONE();
}
