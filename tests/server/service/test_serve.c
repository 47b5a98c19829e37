/* serve: the whole server in this process on a small checkpoint: start, one streamed chat, a second
 * server on the same port, a broken model, the end. (Everything else runs against the double, see
 * live_*.mjs.) */
#include "server/service/serve.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "tests/check.h"
#include "tests/cpu.h"

enum { DEADLINE_MS = 60000 };

/* Sends a request with Connection: close and reads to the end. */
static void exchange(bytes *reply, int port, const char *head, const char *body)
{
    bytes text;
    bytes_init(&text, 1 << 16);
    bytes_clear(reply);
    bytes_printf(&text, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n", head);
    if (body) {
        bytes_printf(&text, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    }
    bytes_printf(&text, "\r\n%s", body ? body : "");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        write(fd, text.data, text.len) == (ssize_t)text.len) {
        char piece[4096];
        for (ssize_t n; (n = read(fd, piece, sizeof piece)) > 0;) {
            bytes_append(reply, piece, (size_t)n);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    bytes_deinit(&text);
}

static bool wait_ready(bytes *reply, int port)
{
    double end = clock_ms() + DEADLINE_MS;
    while (clock_ms() < end) {
        exchange(reply, port, "GET /health", NULL);
        if (strstr(bytes_str(reply), "HTTP/1.1 200 ")) {
            return true;
        }
        usleep(20000);
    }
    return false;
}

static void test_server(serve_options *opt)
{
    bytes reply;
    int port = 0, other = 0;
    bytes_init(&reply, 1 << 20);
    opt->port = 0;
    serve_thread *t = serve_thread_start(opt, &port);
    CHECK(t != NULL && port > 0);
    if (t) {
        CHECK(wait_ready(&reply, port));
        exchange(&reply, port, "POST /v1/chat/completions",
                 "{\"stream\":true,\"max_tokens\":8,\"temperature\":0,\"messages\":[{\"role\":\"user\","
                 "\"content\":\"hi\"}]}");
        if (!strstr(bytes_str(&reply), "HTTP/1.1 200 OK")) {
            CHECK_STR(bytes_str(&reply), "HTTP/1.1 200 OK ...");
        }
        CHECK(strstr(bytes_str(&reply), "chat.completion.chunk"));
        CHECK(strstr(bytes_str(&reply), "\"finish_reason\":\""));
        CHECK(strstr(bytes_str(&reply), "data: [DONE]"));
        opt->port = port;
        CHECK(serve_thread_start(opt, &other) == NULL);
        CHECK_INT(other, -5);
        CHECK_INT(serve_thread_stop(t), 0);
    }
    bytes_deinit(&reply);
}

static void (*handler_of(int sig))(int)
{
    struct sigaction action = {0};
    CHECK_INT(sigaction(sig, NULL, &action), 0);
    return action.sa_handler;
}

/* The program ends by itself without its model, too; a client that is gone must not end it, and what a person or a manager
 * says must be heard. */
static void test_program(const serve_options *opt)
{
    static const int HEARD[] = {SIGINT, SIGTERM, SIGHUP};
    (void)signal(SIGPIPE, SIG_DFL);
    CHECK_INT(serve_run(opt), 3);
    CHECK(handler_of(SIGPIPE) == SIG_IGN);
    for (size_t i = 0; i < sizeof HEARD / sizeof *HEARD; i++) {
        CHECK(handler_of(HEARD[i]) != SIG_DFL && handler_of(HEARD[i]) != SIG_IGN);
        (void)signal(HEARD[i], SIG_DFL);
    }
}

int main(void)
{
    static char model[4096];
    snprintf(model, sizeof model, "%s", check_data("tiny"));
    static const char template_file[] = PARLEY_SOURCE_DIR "/tools/seedling/chat_template.jinja";
    engine_options engine_opt = {.model_dir = model,
                                 .template_file = template_file,
                                 .n_ctx = 512,
                                 .n_threads = 1,
                                 .cpu_mask = test_cpu_mask()};
    gen_params_init(&engine_opt.defaults);
    serve_options opt;
    serve_options_init(&opt);
    opt.engine = &engine_opt;
    opt.quiet = true;
    opt.drain_timeout_s = 5;
    log_set_level(LOG_WARN);
    test_server(&opt);

    int port = 0;
    engine_opt.model_dir = "/nowhere";
    opt.port = 0;
    log_set_level(LOG_OFF);
    serve_thread *t = serve_thread_start(&opt, &port);
    CHECK(t != NULL);
    if (t) {
        bytes reply;
        bytes_init(&reply, 1 << 16);
        const double end = clock_ms() + DEADLINE_MS;
        do { /* it ends by itself when it knows that there is no model */
            exchange(&reply, port, "GET /health", NULL);
        } while (reply.len > 0 && clock_ms() < end);
        bytes_deinit(&reply);
        CHECK_INT(serve_thread_stop(t), 3);
    }
    test_program(&opt);
    CHECK_DONE();
}
