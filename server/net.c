#include "server/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/net_lws.h"

enum { WATCHDOG_MS = 500, GAP_TIMEOUT_S = 20, KEEPALIVE_S = 30, FD_SPARE = 64 };

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
    if (c->in.len + len > max || n->inflight + len > n->opt.max_inflight) {
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

static int conn_create(net *n, struct lws *wsi)
{
    net_conn *c = calloc(1, sizeof *c);
    if (!c) {
        return -1;
    }
    lws_get_peer_simple(wsi, c->peer, sizeof c->peer);
    if (n->stopped || n->n_conns >= n->opt.max_connections ||
        connections_of(n, c->peer) >= n->opt.max_connections_per_address) {
        log_warn("net", "connection refused: limit reached (%d open)", n->n_conns);
        free(c);
        return -1;
    }
    c->id = ++n->next_id;
    c->net = n;
    c->wsi = wsi;
    c->deadline_ns = clock_ns() + (int64_t)n->opt.header_timeout_s * 1000000000;
    bytes_init(&c->in, n->opt.max_body);
    bytes_init(&c->out, SIZE_MAX / 2);
    bytes_init(&c->piece, SIZE_MAX / 2);
    if (!id_table_put(&n->conns, c->id, c)) {
        free(c);
        return -1;
    }
    n->n_conns++;
    lws_set_opaque_user_data(wsi, c);
    return 0;
}

static void conn_closed(net_conn *c)
{
    if (c->announced) {
        c->announced = false;
        c->net->cb.on_close(c->net->cb.ctx, c->id);
    }
}

static void conn_destroy(net_conn *c)
{
    net *n = c->net;
    conn_closed(c);
    net_conn_drop_input(c);
    bytes_deinit(&c->out);
    bytes_deinit(&c->piece);
    id_table_remove(&n->conns, c->id);
    n->n_conns--;
    lws_set_opaque_user_data(c->wsi, NULL);
    free(c);
}

/* ---- libwebsockets callbacks ---- */

static int on_connection_event(net_conn *c, enum lws_callback_reasons reason, void *in, size_t len)
{
    switch (reason) {
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
        return net_http_confirm_upgrade(c, in);
    case LWS_CALLBACK_HTTP:
        return net_http_head(c, in, len);
    case LWS_CALLBACK_HTTP_BODY:
        return net_http_body(c, in, len);
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
        return net_http_body_done(c);
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return net_http_writable(c);
    case LWS_CALLBACK_ESTABLISHED:
        return net_ws_open(c);
    case LWS_CALLBACK_RECEIVE:
        return net_ws_receive(c, in, len);
    case LWS_CALLBACK_SERVER_WRITEABLE:
        return net_ws_writable(c);
    case LWS_CALLBACK_CLOSED:
    case LWS_CALLBACK_CLOSED_HTTP:
        conn_closed(c);
        return 0;
    case LWS_CALLBACK_WSI_DESTROY:
        conn_destroy(c);
        return 0;
    default:
        return 0;
    }
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
        /* Comes once for each protocol; the first clears the flag. Cleared before the work, so that a wake during
         * it is not lost. */
        if (atomic_exchange(&n->wake_pending, false)) {
            n->cb.on_wake(n->cb.ctx);
        }
        return 0;
    }
    if (reason == LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED) {
        return conn_create(n, wsi);
    }
    net_conn *c = net_conn_of(wsi);
    if (c) {
        return on_connection_event(c, reason, in, len);
    }
    /* Only the listening socket has no connection; a request without one must not be served. */
    return reason == LWS_CALLBACK_HTTP || reason == LWS_CALLBACK_HTTP_CONFIRM_UPGRADE ||
                   reason == LWS_CALLBACK_ESTABLISHED
               ? -1
               : 0;
}

/* The first protocol serves HTTP and WebSockets that offer no sub-protocol. */
static const struct lws_protocols PROTOCOLS[] = {
    {.name = "http", .callback = on_lws, .rx_buffer_size = 65536},
    {.name = "parley.v1", .callback = on_lws, .rx_buffer_size = 65536},
    {0},
};

/* A peer that is silent for 20 s is pinged; one that stays silent is dropped at 45 s. */
static const lws_retry_bo_t IDLE_POLICY = {
    .secs_since_valid_ping = 20,
    .secs_since_valid_hangup = 45,
};

static void on_lws_log(int level, const char *line)
{
    size_t len = strlen(line);
    while (len > 0 && line[len - 1] == '\n') {
        len--;
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
    int64_t at = clock_ns() + (int64_t)ms * 1000000;
    if (n->timer_at_ns && n->timer_at_ns <= at) {
        return;
    }
    n->timer_at_ns = at;
    lws_sul_schedule(n->context, 0, &n->timer, on_timer, (lws_usec_t)ms * 1000);
}

/* libwebsockets re-arms its body timer at every piece, so a dripping body would live for ever without this. */
static void on_watchdog(lws_sorted_usec_list_t *sul)
{
    net *n = lws_container_of(sul, net, watchdog);
    int64_t now = clock_ns();
    for (size_t i = 0; i < n->conns.cap; i++) {
        net_conn *c = id_table_at(&n->conns, i);
        if (c && c->deadline_ns && now > c->deadline_ns) {
            net_http_timeout(c);
        }
    }
    lws_sul_schedule(n->context, 0, &n->watchdog, on_watchdog, (lws_usec_t)WATCHDOG_MS * 1000);
}

/* ---- opening and closing ---- */

/* Binds once on trial: libwebsockets would not say why it could not. */
static err_code check_address(const net_options *opt, bool *is_ipv6, err_detail *detail)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *info = NULL;
    char port[16];
    snprintf(port, sizeof port, "%d", opt->port);
    if (getaddrinfo(opt->host, port, &hints, &info) != 0) {
        return err_set(detail, ERR_INVALID, "host '%s' is not an IP address; try --host 127.0.0.1",
                       opt->host);
    }
    err_code err = ERR_OK;
    *is_ipv6 = info->ai_family == AF_INET6;
    int fd = socket(info->ai_family, SOCK_STREAM, 0);
    int on = 1;
    if (fd < 0) {
        err = err_set(detail, ERR_IO, "no socket: %s", strerror(errno));
    } else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
               bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, 1) != 0) {
        err = errno == EADDRINUSE
                  ? err_set(detail, ERR_BUSY, "port %d is in use; try --port %d", opt->port, opt->port + 1)
                  : err_set(detail, ERR_IO, "cannot listen on %s port %d: %s", opt->host, opt->port,
                            strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    freeaddrinfo(info);
    return err;
}

err_code net_open(net **out, const net_options *opt, const net_callbacks *callbacks, err_detail *detail)
{
    *out = NULL;
    bool is_ipv6 = false;
    net_options numeric = *opt;
    numeric.host = strcmp(opt->host, "localhost") == 0 ? "127.0.0.1" : opt->host;
    err_code err = check_address(&numeric, &is_ipv6, detail);
    if (err != ERR_OK) {
        return err;
    }
    net *n = calloc(1, sizeof *n);
    if (!n) {
        return err_set(detail, ERR_NOMEM, "no memory for the server");
    }
    n->opt = numeric;
    n->cb = *callbacks;
    id_table_init(&n->conns);
    lws_set_log_level(LLL_ERR | LLL_WARN, on_lws_log);

    struct lws_context_creation_info info;
    memset(&info, 0, sizeof info);
    info.port = CONTEXT_PORT_NO_LISTEN;
    info.user = n;
    info.gid = -1;
    info.uid = -1;
    info.options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_VALIDATE_UTF8 |
                   LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND |
                   (is_ipv6 ? 0 : LWS_SERVER_OPTION_DISABLE_IPV6);
    info.max_http_header_data = LIMIT_HEADER_BYTES;
    info.pt_serv_buf_size = 65536;
    info.timeout_secs = (unsigned)(opt->body_timeout_s < GAP_TIMEOUT_S ? opt->body_timeout_s : GAP_TIMEOUT_S);
    info.fd_limit_per_thread = (unsigned)(opt->max_connections + FD_SPARE);
    info.retry_and_idle_policy = &IDLE_POLICY;
    n->context = lws_create_context(&info);
    if (!n->context) {
        free(n);
        return err_set(detail, ERR_IO, "the network layer could not start");
    }
    info.port = opt->port;
    info.iface = numeric.host;
    info.protocols = PROTOCOLS;
    info.keepalive_timeout = KEEPALIVE_S;
    info.ka_time = 30;
    info.ka_probes = 3;
    info.ka_interval = 10;
    n->vhost = lws_create_vhost(n->context, &info);
    if (!n->vhost) {
        net_close(n);
        return err_set(detail, ERR_BUSY, "port %d is in use; try --port %d", opt->port, opt->port + 1);
    }
    n->port = opt->port ? opt->port : lws_get_vhost_listen_port(n->vhost);
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
    lws_context_destroy(n->context);
    id_table_deinit(&n->conns);
    free(n);
}

int net_port(const net *n)
{
    return n->port;
}

int net_connections(const net *n)
{
    return n->n_conns;
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
    n->stopped = true;
}

void net_want_write(net *n, uint64_t conn)
{
    net_conn *c = net_find(n, conn);
    if (c && (c->phase == CONN_STREAM || c->phase == CONN_SOCKET)) {
        lws_callback_on_writable(c->wsi);
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
