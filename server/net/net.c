#include "server/net/net.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/net/net_lws.h"

enum { WATCHDOG_MS = 500, LATE_MS = 500, SOCKET_TIMEOUT_S = 20, FD_SPARE = 64, ACCEPTS = 16 };

net_conn *net_conn_of(struct lws *wsi)
{
    return lws_get_opaque_user_data(wsi);
}

net_conn *net_find(net *n, uint64_t id)
{
    return id_table_get(&n->conns, id);
}

bool net_conn_receive(net_conn *c, const void *data, size_t len, size_t max)
{
    net *n = c->net;
    if (n->inflight + len > n->opt.max_inflight || !ledger_try(&c->memory, len)) {
        return false;
    }
    c->in.max = max;
    bytes_append(&c->in, data, len);
    if (c->in.failed) {
        return false;
    }
    n->inflight += len;
    c->in_counted += len;
    return true;
}

void net_conn_drop_input(net_conn *c)
{
    c->net->inflight -= c->in_counted;
    c->in_counted = 0;
    bytes_deinit(&c->in);
    ledger_give_all(&c->memory);
}

/* ---- connections ---- */

static int connections_of(const net *n, const char *peer)
{
    int count = 0;
    for (size_t i = 0; i < n->conns.cap; i++) {
        const net_conn *c = id_table_at(&n->conns, i);
        count += c && strcmp(c->peer, peer) == 0;
    }
    return count;
}

static void conn_destroy(net_conn *c)
{
    net *n = c->net;
    if (c->announced) {
        c->announced = false;
        n->cb.on_close(n->cb.ctx, c->id);
    }
    net_conn_drop_input(c);
    bytes_deinit(&c->rx);
    bytes_deinit(&c->out);
    bytes_deinit(&c->piece);
    file_close(c->file);
    id_table_remove(&n->conns, c->id);
    n->n_conns--;
    if (c->wsi) {
        lws_set_opaque_user_data(c->wsi, NULL);
    }
    free(c);
}

/* NULL if a limit is reached or memory is short. */
static net_conn *conn_create(net *n, const char peer[LISTEN_PEER_MAX], bool is_unix)
{
    if (n->n_conns >= n->opt.max_connections ||
        (!is_unix && connections_of(n, peer) >= n->opt.max_connections_per_address)) {
        log_warn("net", "connection refused: limit reached (%d open)", n->n_conns);
        return NULL;
    }
    net_conn *c = calloc(1, sizeof *c);
    if (!c || !id_table_put(&n->conns, n->next_id + 1, c)) {
        free(c);
        return NULL;
    }
    c->id = ++n->next_id;
    c->net = n;
    c->file = -1;
    memcpy(c->peer, peer, sizeof c->peer);
    c->deadline_ns = clock_ns() + (int64_t)n->opt.header_timeout_s * NET_S_NS;
    bytes_init(&c->rx, SIZE_MAX);
    bytes_init(&c->in, n->opt.max_body);
    c->memory.ledger = n->opt.memory;
    bytes_init(&c->out, SIZE_MAX);
    bytes_init(&c->piece, SIZE_MAX);
    n->n_conns++;
    return c;
}

/* A connection was accepted; takes over fd. */
static void conn_open(net *n, int fd, const char peer[LISTEN_PEER_MAX], bool is_unix)
{
    net_conn *c = conn_create(n, peer, is_unix);
    if (!c) {
        close(fd);
        return;
    }
    const uint64_t id = c->id;
    const lws_adopt_desc_t plain = {
        .vh = n->vhost, .type = LWS_ADOPT_SOCKET, .fd = {.sockfd = fd}, .vh_prot_name = "http", .opaque = c};
    struct lws *wsi = lws_adopt_descriptor_vhost_via_info(&plain); /* closes fd if it fails */
    c = net_find(n, id);
    if (wsi && c) {
        c->wsi = wsi;
    } else if (c) {
        conn_destroy(c);
    }
}

/* A listening socket is readable: takes what waits, a few at a time. */
static void accept_waiting(net *n, const struct lws *listening)
{
    char peer[LISTEN_PEER_MAX];
    size_t i = 0;
    while (i < n->listeners.n && n->listening[i] != listening) {
        i++;
    }
    for (int k = 0; k < ACCEPTS && i < n->listeners.n; k++) {
        const int fd = listeners_accept(&n->listeners, i, peer);
        if (fd < 0) {
            return;
        }
        conn_open(n, fd, peer, n->listeners.items[i].is_unix);
    }
}

/* The plain socket's end goes with its descriptor, of which the WebSocket has a copy: nothing is
 * shut down. */
int net_upgrade(net_conn *c, const bytes *head)
{
    net *n = c->net;
    const uint64_t id = c->id;
    const int fd = fcntl(lws_get_socket_fd(c->wsi), F_DUPFD_CLOEXEC, 0);
    if (fd < 0 || head->failed) {
        file_close(fd);
        return -1;
    }
    lws_set_opaque_user_data(c->wsi, NULL);
    c->wsi = NULL;
    n->upgrading = c;
    lws_adopt_socket_vhost_readbuf(n->vhost, fd, head->data, head->len); /* closes fd if it fails */
    n->upgrading = NULL;
    c = net_find(n, id);
    if (c && !c->wsi) {
        conn_destroy(c);
    }
    return -1;
}

/* ---- libwebsockets callbacks ---- */

static int on_connection_event(net_conn *c, enum lws_callback_reasons reason, void *in, size_t len)
{
    switch (reason) {
    case LWS_CALLBACK_RAW_RX:
        return net_http_receive(c, in, len);
    case LWS_CALLBACK_RAW_WRITEABLE:
        return net_http_writable(c);
    case LWS_CALLBACK_ESTABLISHED:
        return net_ws_open(c);
    case LWS_CALLBACK_RECEIVE:
        return net_ws_receive(c, in, len);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return net_ws_writable(c);
    case LWS_CALLBACK_HTTP:
        return -1; /* an upgrade that libwebsockets does not take; only complete ones come to it */
    case LWS_CALLBACK_WSI_DESTROY: /* of each that was closed, at once */
        conn_destroy(c);
        break;
    default:
        break;
    }
    return 0;
}

static int on_lws(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
    (void)user;
    struct lws_context *context = lws_get_context(wsi);
    net *n = context ? lws_context_user(context) : NULL;
    if (!n) {
        return 0;
    }
    if (reason == LWS_CALLBACK_EVENT_WAIT_CANCELLED) {
        /* Comes once for each protocol; the first clears the flag. Cleared before the work, so that
         * a wake during it is not lost. */
        if (atomic_exchange(&n->wake_pending, false)) {
            n->cb.on_wake(n->cb.ctx);
        }
        return 0;
    }
    if (reason == LWS_CALLBACK_RAW_RX_FILE) {
        accept_waiting(n, wsi);
        return 0;
    }
    if (reason == LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED && n->upgrading) {
        n->upgrading->wsi = wsi;
        lws_set_opaque_user_data(wsi, n->upgrading);
        return 0;
    }
    /* NULL: a listening socket, or the plain one of a connection that became a WebSocket. */
    net_conn *c = net_conn_of(wsi);
    return c ? on_connection_event(c, reason, in, len) : 0;
}

/* The first protocol serves plain sockets and WebSockets that offer no sub-protocol. */
static const struct lws_protocols PROTOCOLS[] = {
    {.name = "http", .callback = on_lws, .rx_buffer_size = 65536},
    {.name = "parley.v1", .callback = on_lws, .rx_buffer_size = 65536},
    {0},
};

static void on_lws_log(int level, const char *line)
{
    size_t len = strlen(line);
    while (len > 0 && line[len - 1] == '\n') {
        len--;
    }
    if (strstr(line, "adopt_socket_readbuf: ")) {
        return; /* it says that all is well */
    }
    if (level & LLL_ERR) {
        /* Mostly a client's malformed request, so no error of ours. */
        log_info("net", "%.*s", (int)len, line);
    } else {
        log_warn("net", "%.*s", (int)len, line);
    }
}

/* ---- timers ---- */

static void on_timer(lws_sorted_usec_list_t *sul)
{
    net *n = lws_container_of(sul, net, timer);
    n->timer_at_ns = 0;
    n->cb.on_timer(n->cb.ctx);
}

void net_set_timer(net *n, int ms)
{
    int64_t at = clock_ns() + (int64_t)ms * NET_MS_NS;
    if (n->timer_at_ns && n->timer_at_ns <= at) {
        return;
    }
    n->timer_at_ns = at;
    lws_sul_schedule(n->context, 0, &n->timer, on_timer, (lws_usec_t)ms * NET_MS_US);
}

/* Whether a body arrives too slowly. Uploads are exempt: their deadline grows with their size. */
static bool is_too_slow(const net_conn *c, int64_t now)
{
    const int64_t counted_ns = now - c->body_ns - (int64_t)LIMIT_MIN_BODY_RATE_AFTER_S * NET_S_NS;
    return c->phase == CONN_BODY && !c->streams_body && counted_ns > 0 &&
           (double)c->in.len < (double)c->net->opt.min_body_rate * (double)counted_ns / 1e9;
}

/* Whether a client does not read what is sent to it. */
static bool is_unread(net_conn *c, int64_t now)
{
    const net_options *opt = &c->net->opt;
    if (c->phase != CONN_REPLY && c->phase != CONN_STREAM && c->phase != CONN_SOCKET) {
        c->unread.since_ns = 0;
        return false;
    }
    const bool has_more = c->out_pos < c->out.len || c->body_pos < c->body_bytes ||
                          (c->phase == CONN_SOCKET && lws_partial_buffered(c->wsi));
    return net_unread_look(&c->unread, lws_get_socket_fd(c->wsi), c->sent_bytes, has_more, now,
                           opt->send_timeout_s, opt->send_rate);
}

/* Whether what a client has sent waits to be read: then it is this program that was late, without a processor. */
static bool is_sent(const net_conn *c)
{
    const bool is_read = c->phase == CONN_HEAD || c->phase == CONN_IDLE || c->phase == CONN_BODY;
    int waiting = 0;
    return is_read && !c->is_paused && ioctl(lws_get_socket_fd(c->wsi), FIONREAD, &waiting) == 0 &&
           waiting > 0;
}

/* For so long nothing was looked at: this program had no processor, and could neither read what clients sent nor
 * send what they waited for. It counts against none of them. */
static void forgive(net *n, int64_t late_ns)
{
    for (size_t i = 0; i < n->conns.cap; i++) {
        net_conn *c = id_table_at(&n->conns, i);
        if (!c) {
            continue;
        }
        c->deadline_ns += c->deadline_ns ? late_ns : 0;
        c->unread.since_ns += c->unread.since_ns ? late_ns : 0;
        c->body_ns += late_ns;
        if (c->phase == CONN_SOCKET) {
            lws_validity_confirmed(c->wsi); /* its pong may wait to be read */
        }
    }
}

static void on_watchdog(lws_sorted_usec_list_t *sul)
{
    net *n = lws_container_of(sul, net, watchdog);
    int64_t now = clock_ns();
    const int64_t late_ns = now - n->looked_ns - (int64_t)WATCHDOG_MS * NET_MS_NS;
    if (n->looked_ns && late_ns > (int64_t)LATE_MS * NET_MS_NS) {
        forgive(n, late_ns);
    }
    n->looked_ns = now;
    for (size_t i = 0; i < n->conns.cap; i++) {
        net_conn *c = id_table_at(&n->conns, i);
        if (c && c->deadline_ns && (now > c->deadline_ns || is_too_slow(c, now))) {
            if (!is_sent(c)) {
                net_http_timeout(c);
            }
        } else if (c && is_unread(c, now)) {
            log_info("net", "a client does not read what is sent to it: hung up");
            net_abort(n, c->id);
        } else if (c) {
            net_http_look(c);
        }
    }
    lws_sul_schedule(n->context, 0, &n->watchdog, on_watchdog, (lws_usec_t)WATCHDOG_MS * NET_MS_US);
}

/* ---- opening and closing ---- */

static err_code open_listeners(net *n, err_detail *detail)
{
    const net_options *opt = &n->opt;
    err_code err = listeners_inherit(&n->listeners, detail);
    if (err == ERR_OK && n->listeners.n == 0) {
        listeners_close(&n->listeners);
        err = listeners_open(&n->listeners, opt->hosts, opt->n_hosts, opt->port, detail);
    }
    return err;
}

static err_code open_context(net *n, err_detail *detail)
{
    const net_options *opt = &n->opt;
    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    info.port = CONTEXT_PORT_NO_LISTEN_SERVER;
    info.user = n;
    /* -1, "stay who you are": of a signed type or an unsigned one, by the library's version. */
    memset(&info.gid, 0xff, sizeof info.gid);
    memset(&info.uid, 0xff, sizeof info.uid);
    info.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_VALIDATE_UTF8;
    info.pt_serv_buf_size = 65536;
    info.timeout_secs = SOCKET_TIMEOUT_S; /* of the closing of a WebSocket */
    info.fd_limit_per_thread = (unsigned)(opt->max_connections + FD_SPARE);
    n->idle_policy = (lws_retry_bo_t){.secs_since_valid_ping = (uint16_t)opt->ws_ping_s,
                                      .secs_since_valid_hangup = (uint16_t)(opt->ws_ping_s + opt->ws_pong_s)};
    info.retry_and_idle_policy = &n->idle_policy;
    n->context = lws_create_context(&info);
    if (n->context) {
        info.protocols = PROTOCOLS;
        n->vhost = lws_create_vhost(n->context, &info);
    }
    return n->vhost ? ERR_OK : err_set(detail, ERR_IO, "the network layer could not start");
}

/* libwebsockets waits for connections on a copy of each listening socket, and closes that copy
 * itself. */
static err_code watch_listeners(net *n, err_detail *detail)
{
    for (size_t i = 0; i < n->listeners.n; i++) {
        const lws_sock_file_fd_type fd = {.filefd = fcntl(n->listeners.items[i].fd, F_DUPFD_CLOEXEC, 0)};
        n->listening[i] = fd.filefd < 0 ? NULL
                                        : lws_adopt_descriptor_vhost(n->vhost, LWS_ADOPT_RAW_FILE_DESC, fd,
                                                                     PROTOCOLS[0].name, NULL);
        if (!n->listening[i]) {
            return err_set(detail, ERR_IO, "the listening socket cannot be watched");
        }
    }
    return ERR_OK;
}

err_code net_open(net **out, const net_options *opt, const net_callbacks *callbacks, err_detail *detail)
{
    *out = NULL;
    net *n = calloc(1, sizeof *n);
    if (!n) {
        return err_set(detail, ERR_NOMEM, "no memory for the server");
    }
    n->opt = *opt;
    n->cb = *callbacks;
    id_table_init(&n->conns);
    lws_set_log_level(LLL_ERR | LLL_WARN, on_lws_log);
    err_code err = open_listeners(n, detail);
    err = err == ERR_OK ? open_context(n, detail) : err;
    err = err == ERR_OK ? watch_listeners(n, detail) : err;
    if (err != ERR_OK) {
        net_close(n);
        return err;
    }
    on_watchdog(&n->watchdog);
    *out = n;
    return ERR_OK;
}

void net_close(net *n)
{
    if (!n) {
        return;
    }
    lws_sul_cancel(&n->timer);
    lws_sul_cancel(&n->watchdog);
    if (n->context) {
        lws_context_destroy(n->context);
    }
    listeners_close(&n->listeners);
    id_table_deinit(&n->conns);
    free(n);
}

bool net_is_local(const net *n)
{
    return listeners_are_local(&n->listeners);
}

int net_port(const net *n)
{
    return n->listeners.port;
}

int net_connections(const net *n)
{
    return n->n_conns;
}

bool net_is_sending(const net *n)
{
    for (size_t i = 0; i < n->conns.cap; i++) {
        const net_conn *c = id_table_at(&n->conns, i);
        if (c && (c->phase == CONN_REPLY || c->phase == CONN_STREAM ||
                  (c->phase == CONN_SOCKET && c->close_code && !c->is_closing))) {
            return true;
        }
    }
    return false;
}

void net_poll(net *n)
{
    lws_service(n->context, 0);
}

void net_wake(net *n)
{
    if (!atomic_exchange(&n->wake_pending, true)) {
        lws_cancel_service(n->context);
    }
}

void net_stop_listening(net *n)
{
    for (size_t i = 0; i < n->listeners.n; i++) {
        lws_set_timeout(n->listening[i], PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
        n->listening[i] = NULL;
    }
    listeners_close(&n->listeners);
}

void net_want_write(net *n, uint64_t conn)
{
    net_conn *c = net_find(n, conn);
    if (c && (c->phase == CONN_STREAM || c->phase == CONN_SOCKET)) {
        lws_callback_on_writable(c->wsi);
    }
}

void net_pause(net *n, uint64_t conn, bool is_paused)
{
    net_conn *c = net_find(n, conn);
    if (c && c->announced && c->is_paused != is_paused) {
        c->is_paused = is_paused;
        if (is_paused || c->phase == CONN_BODY || c->phase == CONN_SOCKET) { /* else its reply is next */
            lws_rx_flow_control(c->wsi, !is_paused);
        }
    }
}

void net_close_socket(net *n, uint64_t conn, int code, const char *reason)
{
    net_conn *c = net_find(n, conn);
    if (c && c->phase == CONN_SOCKET && !c->close_code) {
        c->close_code = code;
        snprintf(c->close_reason, sizeof c->close_reason, "%s", reason);
        lws_callback_on_writable(c->wsi);
    }
}

void net_abort(net *n, uint64_t conn)
{
    net_conn *c = net_find(n, conn);
    if (c) {
        lws_set_timeout(c->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    }
}
