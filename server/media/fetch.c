#include "server/media/fetch.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"

enum { HEADER_BYTES = 65536, OTHER_BYTES = 65536 };

bool fetch_start(void)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

void fetch_stop(void)
{
    curl_global_cleanup();
}

bool fetch_parse(fetch_target *out, const char *url)
{
    char *scheme = NULL, *host = NULL;
    CURLU *parts = curl_url();
    out->is_short = !parts;
    bool ok = parts && strlen(url) < FETCH_URL_MAX &&
              curl_url_set(parts, CURLUPART_URL, url, CURLU_DISALLOW_USER) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK && strlen(host) < FETCH_HOST_MAX;
    if (ok) {
        const size_t len = strlen(host);
        const bool in_brackets = host[0] == '[' && host[len - 1] == ']';
        out->is_secure = strcasecmp(scheme, "https") == 0;
        ok = len > 0 && (out->is_secure || strcasecmp(scheme, "http") == 0);
        snprintf(out->host, sizeof out->host, "%.*s", (int)(in_brackets ? len - 2 : len), host + in_brackets);
        for (char *c = out->host; *c; c++) {
            *c = (char)tolower((unsigned char)*c);
        }
    }
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(parts);
    return ok;
}

/* ---- one request ---- */

typedef struct transfer {
    CURL *curl;
    const fetch_order *order;
    uint64_t n_bytes, n_other, n_header; /* of the file, of another reply's body, of heads */
    bool refused, connected, too_large, unwritten, cancelled;
} transfer;

static long status_of(const transfer *t)
{
    long status = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address)
{
    transfer *t = ctx;
    (void)purpose; /* HTTP only connects */
    if (!t->order->may_connect(t->order->ctx, &address->addr)) {
        t->refused = true;
        return CURL_SOCKET_BAD;
    }
    t->connected = true;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static size_t on_header(char *data, size_t one, size_t n, void *ctx)
{
    transfer *t = ctx;
    (void)data;
    t->n_header += one * n;
    return t->n_header <= HEADER_BYTES ? one * n : 0;
}

static size_t on_data(char *data, size_t one, size_t n, void *ctx)
{
    transfer *t = ctx;
    if (status_of(t) != 200) { /* what an error page says is nobody's concern */
        t->n_other += n;
        return t->n_other <= OTHER_BYTES ? one * n : 0;
    }
    t->too_large = n > t->order->max_bytes - t->n_bytes;
    t->unwritten = !t->too_large && !t->order->write(t->order->ctx, data, n);
    t->n_bytes += n;
    return t->too_large || t->unwritten ? 0 : one * n;
}

static int on_progress(void *ctx, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    transfer *t = ctx;
    (void)total, (void)now, (void)up_total, (void)up_now;
    t->cancelled = t->order->cancelled(t->order->ctx);
    return t->cancelled;
}

static bool set_up(transfer *t)
{
    CURL *c = t->curl;
    const fetch_order *o = t->order;
    return curl_easy_setopt(c, CURLOPT_URL, o->url) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_PROXY, "") == CURLE_OK && /* also none of the environment */
           curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_USERAGENT, "parley/" PARLEY_VERSION) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)o->timeout_ms) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)o->max_bytes) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, t) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_HEADERDATA, t) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_WRITEDATA, t) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_XFERINFODATA, t) == CURLE_OK &&
           curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L) == CURLE_OK;
}

/* What the end of a transfer means; the result alone does not tell who ended it. */
static fetch_end judge(const transfer *t, CURLcode result, fetch_reply *out)
{
    const char *redirect = NULL, *type = NULL;
    out->status = (int)status_of(t);
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_TYPE, &type);
    snprintf(out->type, sizeof out->type, "%s", type ? type : "");
    if (t->cancelled) {
        return FETCH_CANCELLED;
    }
    if (t->too_large || result == CURLE_FILESIZE_EXCEEDED) {
        return FETCH_TOO_LARGE;
    }
    if (t->unwritten) {
        return FETCH_UNWRITTEN;
    }
    if (result == CURLE_OPERATION_TIMEDOUT) {
        return FETCH_TIMEOUT;
    }
    if (result != CURLE_OK) {
        log_debug("media", "fetching: %s", curl_easy_strerror(result));
        return t->refused && !t->connected ? FETCH_REFUSED : FETCH_FAILED;
    }
    curl_easy_getinfo(t->curl, CURLINFO_REDIRECT_URL, &redirect);
    if (redirect && strlen(redirect) < sizeof out->redirect) {
        snprintf(out->redirect, sizeof out->redirect, "%s", redirect);
        return FETCH_REDIRECT;
    }
    return out->status == 200 ? FETCH_DONE : FETCH_STATUS;
}

fetch_end fetch_get(fetch_reply *out, const fetch_order *order)
{
    transfer t = {.curl = curl_easy_init(), .order = order};
    fetch_end end = FETCH_FAILED;
    memset(out, 0, sizeof *out);
    if (t.curl && set_up(&t)) {
        end = judge(&t, curl_easy_perform(t.curl), out);
    }
    curl_easy_cleanup(t.curl);
    return end;
}
