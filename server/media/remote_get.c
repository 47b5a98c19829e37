#include "server/media/remote_get.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "server/media/remote_host.h"

typedef struct hop {
    const remote_order *order;
    fetch_target target;
    remote_reach reach;
} hop;

static bool may_connect(void *ctx, const struct sockaddr *address)
{
    const hop *h = ctx;
    return remote_may_connect(h->reach, address);
}

static bool write_on(void *ctx, const void *data, size_t n)
{
    const hop *h = ctx;
    return h->order->write(h->order->ctx, data, n);
}

static bool is_cancelled(void *ctx)
{
    const hop *h = ctx;
    return h->order->cancelled(h->order->ctx);
}

/* Reads the address; whether a rule allows its host. */
static remote_end check(hop *h, const char *const *rules, size_t n_rules, const char *url)
{
    if (!fetch_parse(&h->target, url)) {
        return REMOTE_NO_URL;
    }
    h->reach = remote_host_reach(rules, n_rules, h->target.host);
    return h->reach == REMOTE_NOWHERE ? REMOTE_NO_RULE : REMOTE_DONE;
}

remote_end remote_check(const char *const *rules, size_t n_rules, const char *url, char *host)
{
    hop h = {0};
    const remote_end end = check(&h, rules, n_rules, url);
    snprintf(host, FETCH_HOST_MAX, "%s", h.target.host);
    return end;
}

static remote_end end_of(fetch_end end)
{
    switch (end) {
    case FETCH_DONE:
        return REMOTE_DONE;
    case FETCH_REDIRECT:
        return REMOTE_HOPS;
    case FETCH_STATUS:
        return REMOTE_STATUS;
    case FETCH_REFUSED:
        return REMOTE_NOT_PUBLIC;
    case FETCH_TOO_LARGE:
        return REMOTE_TOO_LARGE;
    case FETCH_TIMEOUT:
        return REMOTE_TIMEOUT;
    case FETCH_CANCELLED:
        return REMOTE_CANCELLED;
    case FETCH_UNWRITTEN:
        return REMOTE_UNWRITTEN;
    default:
        return REMOTE_FAILED;
    }
}

remote_end remote_get(remote_reply *out, const remote_order *order)
{
    hop h = {.order = order};
    fetch_reply reply = {0};
    bool was_secure = false;
    memset(out, 0, sizeof *out);
    snprintf(out->url, sizeof out->url, "%s", order->url);
    for (int n_hops = 0;; n_hops++) {
        const remote_end checked = strlen(order->url) < sizeof out->url
                                       ? check(&h, order->rules, order->n_rules, out->url)
                                       : REMOTE_NO_URL;
        snprintf(out->host, sizeof out->host, "%s", h.target.host);
        if (checked != REMOTE_DONE) {
            return checked;
        }
        if (was_secure && !h.target.is_secure) {
            return REMOTE_INSECURE;
        }
        const double rest_ms = order->end_ms - clock_ms();
        const fetch_order one = {.url = out->url,
                                 .timeout_ms = rest_ms < 1.0 ? 1 : (int)rest_ms,
                                 .max_bytes = order->max_bytes,
                                 .may_connect = may_connect,
                                 .write = write_on,
                                 .cancelled = is_cancelled,
                                 .ctx = &h};
        const fetch_end end = fetch_get(&reply, &one);
        out->status = reply.status;
        snprintf(out->type, sizeof out->type, "%s", reply.type);
        if (end != FETCH_REDIRECT || n_hops == LIMIT_REMOTE_HOPS) {
            return end_of(end);
        }
        was_secure = h.target.is_secure;
        snprintf(out->url, sizeof out->url, "%s", reply.redirect);
    }
}
