#include "server/http_client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEAD_BYTES = 65536, CONNECTIONS_KEPT = 512 };

struct http_transfer {
    http_client *client;
    CURL *curl;
    struct curl_slist *headers;
    http_order order;
    size_t n_head;
    bool has_head, stopped;
    http_transfer *next, **at;
};

struct http_client {
    CURLM *multi;
    http_transfer *list;
};

http_client *http_client_create(void)
{
    http_client *c = calloc(1, sizeof *c);
    if (c) {
        c->multi = curl_multi_init();
    }
    /* Without descriptors to spare nothing could ever wake it: every order would wait for its poll. */
    if (!c || !c->multi || curl_multi_wakeup(c->multi) != CURLM_OK) {
        if (c && c->multi) {
            curl_multi_cleanup(c->multi);
        }
        free(c);
        return NULL;
    }
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    return c;
}

static void drop(http_transfer *t)
{
    curl_multi_remove_handle(t->client->multi, t->curl);
    curl_easy_cleanup(t->curl);
    curl_slist_free_all(t->headers);
    *t->at = t->next;
    if (t->next) {
        t->next->at = t->at;
    }
    free(t);
}

void http_client_stop(http_client *c, http_transfer *t)
{
    (void)c;
    drop(t);
}

void http_client_destroy(http_client *c)
{
    if (!c) {
        return;
    }
    for (http_transfer *t = c->list, *next; t; t = next) {
        next = t->next;
        drop(t);
    }
    curl_multi_cleanup(c->multi);
    free(c);
}

/* ---- what libcurl calls ---- */

static const char *header_of(const http_transfer *t, const char *name)
{
    struct curl_header *found = NULL;
    return curl_easy_header(t->curl, name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK ? found->value : NULL;
}

/* Where the reply leads, for curl_free; NULL: nowhere. libcurl itself tells it at the end only. */
static char *redirect_of(const http_transfer *t, long status)
{
    const char *at = status >= 300 && status < 400 ? header_of(t, "Location") : NULL;
    char *full = NULL;
    CURLU *url = at ? curl_url() : NULL;
    if (url && curl_url_set(url, CURLUPART_URL, t->order.url, 0) == CURLUE_OK &&
        curl_url_set(url, CURLUPART_URL, at, 0) == CURLUE_OK) {
        curl_url_get(url, CURLUPART_URL, &full, 0);
    }
    curl_url_cleanup(url);
    return full;
}

bool http_same_origin(const char *a, const char *b)
{
    static const CURLUPart PARTS[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    CURLU *urls[2] = {curl_url(), curl_url()};
    bool same = urls[0] && urls[1] && curl_url_set(urls[0], CURLUPART_URL, a, 0) == CURLUE_OK &&
                curl_url_set(urls[1], CURLUPART_URL, b, 0) == CURLUE_OK;
    for (size_t i = 0; same && i < ARRAY_LEN(PARTS); i++) {
        char *part[2] = {NULL, NULL};
        for (size_t k = 0; k < 2; k++) {
            (void)curl_url_get(urls[k], PARTS[i], &part[k], CURLU_DEFAULT_PORT);
        }
        same = part[0] && part[1] && strcasecmp(part[0], part[1]) == 0;
        curl_free(part[0]);
        curl_free(part[1]);
    }
    curl_url_cleanup(urls[0]);
    curl_url_cleanup(urls[1]);
    return same;
}

static http_head read_head(const http_transfer *t)
{
    long status = 0;
    curl_off_t wait_s = 0;
    const char *type = NULL, *range = header_of(t, "Content-Range");
    http_head head = {.range_from = -1,
                      .error_code = header_of(t, "X-Error-Code"),
                      .session = header_of(t, "Mcp-Session-Id")};
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_TYPE, &type);
    curl_easy_getinfo(t->curl, CURLINFO_RETRY_AFTER, &wait_s);
    head.status = (int)status;
    head.content_type = type ? type : "";
    head.retry_after_s = (int64_t)wait_s;
    if (range && strncmp(range, "bytes ", 6) == 0 && range[6] >= '0' && range[6] <= '9') {
        head.range_from = strtoll(range + 6, NULL, 10);
    }
    return head;
}

/* The head is complete when its empty line is there, or the end. */
static bool tell_head(http_transfer *t)
{
    if (!t->has_head) {
        t->has_head = true;
        http_head head = read_head(t);
        char *redirect = redirect_of(t, head.status);
        head.redirect = redirect;
        t->stopped = t->order.on_head && !t->order.on_head(t->order.ctx, &head);
        curl_free(redirect);
    }
    return !t->stopped;
}

/* Of a reply that streams, the head alone may come long before the first byte. */
static size_t on_header(char *data, size_t one, size_t n, void *ctx)
{
    http_transfer *t = ctx;
    long status = 0;
    t->n_head += one * n;
    const bool is_last = one * n <= 2 && (data[0] == '\r' || data[0] == '\n');
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    if (is_last && status >= 200) { /* not of 100 Continue */
        return tell_head(t) ? one * n : 0;
    }
    return t->n_head <= HEAD_BYTES ? one * n : 0;
}

static size_t on_data(char *data, size_t one, size_t n, void *ctx)
{
    http_transfer *t = ctx;
    t->stopped = t->order.on_data && !t->order.on_data(t->order.ctx, data, n);
    return t->stopped ? 0 : one * n;
}

/* ---- a transfer ---- */

static bool add_header(http_transfer *t, const char *text)
{
    struct curl_slist *more = curl_slist_append(t->headers, text);
    t->headers = more ? more : t->headers;
    return more != NULL;
}

static bool add_named(http_transfer *t, const char *name, const char *value)
{
    const size_t n = strlen(name) + strlen(value) + 1;
    char *text = malloc(n);
    bool ok = false;
    if (text) {
        snprintf(text, n, "%s%s", name, value);
        ok = add_header(t, text);
        memset(text, 0, n);
    }
    free(text);
    return ok;
}

static bool set_up(http_transfer *t)
{
    CURL *c = t->curl;
    const http_order *o = &t->order;
    bool ok = curl_easy_setopt(c, CURLOPT_URL, o->url) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_PIPEWAIT, 0L) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_USERAGENT, "parley/" PARLEY_VERSION) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_TCP_NODELAY, 1L) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)o->connect_s) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)o->timeout_s) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)o->silence_s) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_HEADERDATA, t) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_WRITEDATA, t) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_PRIVATE, t) == CURLE_OK;
    if (ok && o->ca_file) {
        ok = curl_easy_setopt(c, CURLOPT_CAINFO, o->ca_file) == CURLE_OK &&
             curl_easy_setopt(c, CURLOPT_CAPATH, NULL) == CURLE_OK;
    }
    ok = ok && (!o->unix_path || curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, o->unix_path) == CURLE_OK) &&
         ((o->uses_proxy && !o->unix_path) || curl_easy_setopt(c, CURLOPT_PROXY, "") == CURLE_OK) &&
         (!o->range || curl_easy_setopt(c, CURLOPT_RANGE, o->range) == CURLE_OK) &&
         (!o->key || add_named(t, "Authorization: Bearer ", o->key));
    for (size_t i = 0; i < o->n_headers && ok; i++) {
        ok = add_header(t, o->headers[i]);
    }
    ok = ok && (!o->method || curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, o->method) == CURLE_OK) &&
         (!o->accept || add_named(t, "Accept: ", o->accept));
    if (ok && o->body) {
        ok = add_header(t, "Content-Type: application/json") &&
             (o->accept || add_header(t, "Accept: text/event-stream")) && add_header(t, "Expect:") &&
             curl_easy_setopt(c, CURLOPT_POST, 1L) == CURLE_OK &&
             curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)o->n_body) == CURLE_OK &&
             curl_easy_setopt(c, CURLOPT_POSTFIELDS, o->body) == CURLE_OK;
    }
    return ok && curl_easy_setopt(c, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK;
}

http_transfer *http_client_start(http_client *c, const http_order *order)
{
    http_transfer *t = calloc(1, sizeof *t);
    if (!t) {
        return NULL;
    }
    *t = (http_transfer){
        .client = c, .order = *order, .curl = curl_easy_init(), .next = c->list, .at = &c->list};
    if (t->next) {
        t->next->at = &t->next;
    }
    c->list = t;
    if (!t->curl || !set_up(t) || curl_multi_add_handle(c->multi, t->curl) != CURLM_OK) {
        drop(t);
        return NULL;
    }
    return t;
}

/* ---- the loop ---- */

static http_end end_of(const http_transfer *t, CURLcode code)
{
    switch (code) {
    case CURLE_OK:
        return HTTP_DONE;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
        return HTTP_UNREACHABLE;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return HTTP_UNTRUSTED;
    case CURLE_SSL_CONNECT_ERROR:
        return HTTP_NO_TLS;
    case CURLE_OPERATION_TIMEDOUT: {
        long n_sent = 0;
        curl_easy_getinfo(t->curl, CURLINFO_REQUEST_SIZE, &n_sent);
        return n_sent > 0 ? HTTP_SILENT : HTTP_UNREACHABLE;
    }
    default:
        return HTTP_BROKEN;
    }
}

static void finish(http_transfer *t, CURLcode code)
{
    const http_order o = t->order;
    const http_end end = t->stopped ? HTTP_STOPPED : end_of(t, code);
    if (end == HTTP_DONE) {
        tell_head(t); /* of a reply without a body */
    }
    drop(t);
    o.on_end(o.ctx, end, code == CURLE_OK ? "" : curl_easy_strerror(code));
}

void http_client_poll(http_client *c, int timeout_ms)
{
    http_client_poll_with(c, NULL, 0, timeout_ms);
}

void http_client_poll_with(http_client *c, http_other *others, size_t n_others, int timeout_ms)
{
    enum { OTHERS = 128 };
    struct curl_waitfd fds[OTHERS];
    int n = 0;
    n_others = n_others < OTHERS ? n_others : OTHERS;
    for (size_t i = 0; i < n_others; i++) {
        fds[i] = (struct curl_waitfd){
            .fd = others[i].fd, .events = (short)(others[i].writes ? CURL_WAIT_POLLOUT : CURL_WAIT_POLLIN)};
    }
    curl_multi_perform(c->multi, &n);
    for (const CURLMsg *m = curl_multi_info_read(c->multi, &n); m; m = curl_multi_info_read(c->multi, &n)) {
        http_transfer *t = NULL;
        if (m->msg == CURLMSG_DONE) {
            const CURLcode code = m->data.result; /* m is gone with the handle */
            curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
            finish(t, code);
            timeout_ms = 0; /* what on_end started has not been looked at */
        }
    }
    curl_multi_poll(c->multi, fds, (unsigned)n_others, timeout_ms, &n);
    for (size_t i = 0; i < n_others; i++) {
        others[i].ready = fds[i].revents != 0;
    }
}

bool http_client_is_idle(const http_client *c)
{
    return c->list == NULL;
}

void http_client_wake(http_client *c)
{
    if (curl_multi_wakeup(c->multi) != CURLM_OK) { /* the thread would sleep on, perhaps for a minute */
        (void)curl_multi_wakeup(c->multi);
    }
}
