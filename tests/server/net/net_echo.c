/* An echo behind server/net/net.h, for the conformance tests of the WebSocket framing: net_echo. Prints
 * its port.
 *
 * A text message comes back with a T in front, a binary one as B and hexadecimal digits: so an
 * empty message shows, and so does what kind it was though the server writes text alone.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/net/net.h"

enum { MESSAGE_MAX = 4 << 20, CONNECTIONS_MAX = 256, TIMER_MS = 100 };

typedef struct message {
    struct message *next;
    uint64_t conn;
    bytes text;
} message;

typedef struct echo {
    net *net;
    message *first, **last;
} echo;

static volatile sig_atomic_t is_over;

static void on_signal(int number)
{
    (void)number;
    is_over = 1;
}

static bool on_head(void *ctx, uint64_t conn, const net_head *head, net_reply *refusal)
{
    (void)ctx, (void)conn;
    *refusal = (net_reply){.status = 426};
    return head->is_upgrade;
}

static void on_request(void *ctx, uint64_t conn, bytes *body)
{
    (void)ctx, (void)conn, (void)body; /* on_head lets none through */
}

static void on_open(void *ctx, uint64_t conn, bool extended)
{
    (void)ctx, (void)conn, (void)extended;
}

static bytes *add_message(echo *e, uint64_t conn)
{
    message *m = calloc(1, sizeof *m);
    if (!m) {
        abort();
    }
    m->conn = conn;
    bytes_init(&m->text, 2 * MESSAGE_MAX + 1);
    *e->last = m;
    e->last = &m->next;
    net_want_write(e->net, conn);
    return &m->text;
}

static void on_message(void *ctx, uint64_t conn, bytes *text)
{
    bytes *out = add_message(ctx, conn);
    bytes_append_str(out, "T");
    bytes_append(out, text->data, text->len);
}

static void on_binary(void *ctx, uint64_t conn, const void *data, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = data;
    bytes *out = add_message(ctx, conn);
    bytes_append_str(out, "B");
    for (size_t i = 0; i < n; i++) {
        bytes_append(out, &digits[from[i] >> 4], 1);
        bytes_append(out, &digits[from[i] & 15], 1);
    }
}

/* Takes the first message of conn out of the queue; NULL if there is none. */
static message *take(echo *e, uint64_t conn)
{
    for (message **at = &e->first; *at; at = &(*at)->next) {
        message *m = *at;
        if (m->conn == conn) {
            *at = m->next;
            if (e->last == &m->next) {
                e->last = at;
            }
            return m;
        }
    }
    return NULL;
}

static void message_free(message *m)
{
    bytes_deinit(&m->text);
    free(m);
}

static net_pull on_writable(void *ctx, uint64_t conn, bytes *out)
{
    message *m = take(ctx, conn);
    if (!m) {
        return NET_PULL_IDLE;
    }
    bytes_append(out, m->text.data, m->text.len);
    message_free(m);
    return NET_PULL_MORE;
}

static void on_done(void *ctx, uint64_t conn)
{
    (void)ctx, (void)conn;
}

static void on_close(void *ctx, uint64_t conn)
{
    for (message *m = take(ctx, conn); m; m = take(ctx, conn)) {
        message_free(m);
    }
}

static void on_wake(void *ctx)
{
    (void)ctx;
}

static void on_timer(void *ctx)
{
    net_set_timer(((echo *)ctx)->net, TIMER_MS); /* the loop turns and sees is_over */
}

int main(void)
{
    echo e = {.last = &e.first};
    const net_callbacks callbacks = {.ctx = &e,
                                     .on_head = on_head,
                                     .on_request = on_request,
                                     .on_open = on_open,
                                     .on_message = on_message,
                                     .on_binary = on_binary,
                                     .on_writable = on_writable,
                                     .on_done = on_done,
                                     .on_close = on_close,
                                     .on_wake = on_wake,
                                     .on_timer = on_timer};
    static const char *const LOCAL[] = {"127.0.0.1"};
    const net_options options = {.hosts = LOCAL,
                                 .n_hosts = 1,
                                 .max_body = 1 << 16,
                                 .max_message = MESSAGE_MAX,
                                 .max_binary = MESSAGE_MAX,
                                 .max_header = 8192,
                                 .max_inflight = (size_t)64 << 20,
                                 .max_connections = CONNECTIONS_MAX,
                                 .max_connections_per_address = CONNECTIONS_MAX,
                                 .header_timeout_s = 60,
                                 .body_timeout_s = 60};
    err_detail detail = {0};
    signal(SIGTERM, on_signal);
    if (net_open(&e.net, &options, &callbacks, &detail) != ERR_OK) {
        fprintf(stderr, "net_echo: %s\n", detail.text);
        return 1;
    }
    printf("port %d\n", net_port(e.net));
    fflush(stdout);
    on_timer(&e);
    while (!is_over) {
        net_poll(e.net);
    }
    net_close(e.net);
    return 0;
}
