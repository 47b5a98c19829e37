#include "server/hub/hub_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    CONNECT_S = 15,
    SILENCE_S = 30,
    REDIRECTS_MAX = 8,
    TRIES_BEFORE_REPLY = 3, /* while the hub has never answered: no network */
    TRIES_MAX = 8,          /* in a row without a new byte */
    FIRST_PAUSE_MS = 250,
    LONGEST_WAIT_S = 900, /* a hub that asks for more is not waited for */
    OTHER_BYTES = 1 << 16,
    TICK_MS = 100
};

struct hub_client {
    const hub_place *place;
    http_client *http;
    bool has_answered;
};

hub_client *hub_client_create(const hub_place *place)
{
    hub_client *c = calloc(1, sizeof *c);
    if (c) {
        c->place = place;
        c->http = http_client_create();
    }
    if (!c || !c->http) {
        free(c);
        return NULL;
    }
    return c;
}

void hub_client_destroy(hub_client *c)
{
    if (c) {
        http_client_destroy(c->http);
        free(c);
    }
}

/* ---- where bytes go ---- */

/* How much is there before a transfer: none of a document, which is cleared where each begins. */
static int64_t there(const hub_task *t)
{
    return t->file ? t->blob.at : 0;
}

/* False: write_failed says why. */
static bool begin_anew(hub_task *t)
{
    t->at = 0;
    return !t->file || hub_blob_restart(&t->blob);
}

static const char *name_of(const hub_task *t)
{
    return t->file ? t->file->path : "the hub's answer";
}

static err_code fail(hub_task *t, err_code err)
{
    t->err = err;
    return err;
}

static bool write_failed(hub_task *t)
{
    if (t->blob.error == ENOSPC || t->blob.error == EDQUOT) {
        fail(t,
             err_set(
                 &t->detail, ERR_IO,
                 "the disk is full: %.100s is not whole; make room and say the same again, it goes on from "
                 "here",
                 t->file->path));
    } else if (t->blob.error) {
        fail(t, err_set(&t->detail, ERR_IO, "%.300s: %s", t->blob.part, strerror(t->blob.error)));
    }
    return t->blob.error != 0;
}

/* ---- what a transfer says ---- */

static bool on_head(void *ctx, const http_head *head)
{
    hub_task *t = ctx;
    t->client->has_answered = true;
    t->status = head->status;
    t->retry_after_s = head->retry_after_s;
    snprintf(t->error_code, sizeof t->error_code, "%s", head->error_code ? head->error_code : "");
    if (head->redirect) {
        t->has_redirect = strlen(head->redirect) < sizeof t->url;
        const bool stays = t->has_redirect && http_same_origin(t->url, head->redirect);
        const bool opens = strncmp(t->url, "https:", 6) == 0 && strncmp(head->redirect, "https:", 6) != 0;
        if (!t->has_redirect || opens || ++t->n_redirects > REDIRECTS_MAX) {
            fail(t, err_set(&t->detail, ERR_UPSTREAM, "%.100s: the hub redirects %s", name_of(t),
                            t->n_redirects > REDIRECTS_MAX ? "too often" : "to an address that is not safe"));
            return false;
        }
        t->at_hub = t->at_hub && stays;
        snprintf(t->url, sizeof t->url, "%s", head->redirect);
        return true;
    }
    t->takes_data = head->status == 200 || (head->status == 206 && head->range_from == there(t));
    if (head->status == 200 && there(t) > 0 && !begin_anew(t)) { /* it does not know ranges */
        return !write_failed(t);
    }
    return true;
}

static bool on_data(void *ctx, const char *data, size_t n)
{
    hub_task *t = ctx;
    if (!t->takes_data) {
        t->n_other += n;
        return t->n_other <= OTHER_BYTES;
    }
    if (t->file) {
        const bool ok = hub_blob_add(&t->blob, data, n);
        if (!ok && !write_failed(t)) {
            t->was_wrong = true;
            fail(t, err_set(&t->detail, ERR_CORRUPT,
                            "%.100s is larger than the hub lists it: it changed meanwhile", t->file->path));
        }
        t->at = t->blob.at;
        return ok;
    }
    const size_t room = t->first_bytes ? t->first_bytes - t->into->len : n;
    bytes_append(t->into, data, n < room ? n : room);
    t->at = (int64_t)t->into->len;
    t->is_full = t->first_bytes && t->into->len == t->first_bytes;
    if (t->into->failed) {
        fail(t, t->into->no_memory
                    ? err_set(&t->detail, ERR_NOMEM, "there is not enough memory for what the hub says")
                    : err_set(&t->detail, ERR_LIMIT, "what the hub says is too long"));
    }
    return !t->is_full && !t->into->failed;
}

/* ---- the end of a transfer ---- */

static void pause_task(hub_task *t, double ms, const char *why)
{
    t->phase = HUB_PAUSED;
    t->until_ms = clock_ms() + ms;
    snprintf(t->wait_why, sizeof t->wait_why, "%s", why);
}

/* Once more after a while; err is what it is if that was the last time. */
static void try_again(hub_task *t, const char *why, err_code err, const char *text)
{
    t->n_tries = t->at > t->most ? 1 : t->n_tries + 1; /* what begins anew each time brings nothing new */
    t->most = t->at > t->most ? t->at : t->most;
    if (t->n_tries >= (t->client->has_answered ? TRIES_MAX : TRIES_BEFORE_REPLY)) {
        fail(t, err_set(&t->detail, err, "%.100s: %s; %s", t->client->place->endpoint, text,
                        t->file ? "say the same again to go on from here" : "is the network there?"));
        return;
    }
    const double ms = FIRST_PAUSE_MS * (double)(1 << (t->n_tries - 1));
    const double asked = (double)t->retry_after_s * 1000.0;
    pause_task(t, asked > ms ? asked : ms, why);
}

/* What a status that is no file means. */
static void take_refusal(hub_task *t)
{
    const bool has_key = t->client->place->key[0] != '\0', is_gated = strcmp(t->error_code, "GatedRepo") == 0;
    char text[96];
    if (!t->at_hub && (t->status == 401 || t->status == 403 || t->status == 404 || t->status == 410)) {
        try_again(t, "asking the hub anew", ERR_UPSTREAM,
                  "the address that it redirects to refuses the file");
        return; /* such addresses hold for a while only */
    }
    switch (t->status) {
    case 401:
    case 403:
        fail(t, err_set(
                    &t->detail, ERR_NOT_FOUND, "%s",
                    is_gated ? "the model is gated: accept its terms on its page, then set HF_TOKEN to a key "
                               "of that account"
                    : has_key
                        ? "the hub refuses the key of HF_TOKEN for this model, or there is no such model"
                        : "the model is private, or there is no such model: set HF_TOKEN to a key that may "
                          "read it"));
        return;
    case 404:
        fail(t, strcmp(t->error_code, "RevisionNotFound") == 0
                    ? err_set(&t->detail, ERR_NOT_FOUND, "the model has no such revision")
                : t->file
                    ? err_set(&t->detail, ERR_NOT_FOUND, "%.100s is listed, but is not on the hub",
                              t->file->path)
                    : err_set(&t->detail, ERR_NOT_FOUND, "there is no such model or revision on the hub"));
        return;
    case 416: /* what is there is longer than what the hub has */
        if (!begin_anew(t)) {
            (void)write_failed(t);
            return;
        }
        try_again(t, "beginning anew", ERR_UPSTREAM, "it does not send the file");
        return;
    default:
        break;
    }
    if (t->retry_after_s > LONGEST_WAIT_S) {
        fail(t, err_set(&t->detail, ERR_BUSY, "the hub asks to come back in %lld minutes (%d)",
                        (long long)(t->retry_after_s + 59) / 60, t->status));
    } else if (t->status == 429 || t->status == 408 || t->status >= 500) {
        snprintf(text, sizeof text, "the hub %s (%d)", t->status == 429 ? "asks to wait" : "is not well",
                 t->status);
        try_again(t, text, ERR_UPSTREAM, text);
    } else {
        snprintf(text, sizeof text, "the hub answers with status %d", t->status);
        fail(t, err_set(&t->detail, ERR_UPSTREAM, "%.100s: %s", name_of(t), text));
    }
}

/* All bytes came: once more from the beginning if they are wrong, as what an earlier try left may be. */
static void take_whole(hub_task *t)
{
    const err_code err = t->file ? hub_blob_finish(&t->blob, &t->detail) : ERR_OK;
    if (!err) {
        hub_blob_close(&t->blob);
        t->phase = HUB_DONE;
        t->at = t->file ? t->file->size : t->at;
    } else if (err == ERR_CORRUPT && !t->was_wrong) {
        t->was_wrong = true;
        if (begin_anew(t)) {
            pause_task(t, 0.0, "beginning anew");
        } else {
            (void)write_failed(t);
        }
    } else {
        if (err == ERR_CORRUPT) {
            (void)begin_anew(t); /* nothing wrong is left behind */
        }
        fail(t, err);
    }
}

static void on_end(void *ctx, http_end end, const char *why)
{
    hub_task *t = ctx;
    char text[160];
    t->transfer = NULL;
    if (t->err) {
        if (t->was_wrong) {
            (void)begin_anew(t);
        }
        return;
    }
    if (t->is_full) {
        t->phase = HUB_DONE;
    } else if (end == HTTP_UNTRUSTED) {
        fail(t, err_set(&t->detail, ERR_UPSTREAM, "%.100s: its certificate cannot be verified (%.100s)",
                        t->client->place->endpoint, why));
    } else if (end != HTTP_DONE && end != HTTP_STOPPED) {
        snprintf(text, sizeof text, "%s (%.100s)",
                 end == HTTP_UNREACHABLE ? "cannot be reached"
                 : end == HTTP_SILENT    ? "says nothing any more"
                                         : "the connection broke",
                 why);
        try_again(t, "the connection broke", ERR_UPSTREAM, text);
    } else if (t->has_redirect) {
        pause_task(t, 0.0, "");
    } else if (!t->takes_data && t->status == 206) {
        try_again(t, "beginning anew", ERR_UPSTREAM, "it sends another part of the file than was asked for");
    } else if (!t->takes_data) {
        take_refusal(t);
    } else if (t->file && t->blob.at < t->file->size && t->status == 206) {
        try_again(t, "the connection broke", ERR_UPSTREAM, "it sends less than it said");
    } else {
        take_whole(t);
    }
}

/* ---- the beginning of one ---- */

static void start(hub_task *t)
{
    const hub_place *place = t->client->place;
    const bool follows = t->has_redirect;
    const int64_t at = there(t);
    if (t->file && at == t->file->size) {
        take_whole(t); /* an earlier try had all but the name */
        return;
    }
    if (!follows) {
        t->n_redirects = 0;
        t->at_hub = true;
        snprintf(t->url, sizeof t->url, "%s%s", place->endpoint, t->path);
    }
    t->range[0] = '\0';
    if (t->first_bytes) {
        snprintf(t->range, sizeof t->range, "0-%zu", t->first_bytes - 1);
    } else if (t->file && at > 0) {
        snprintf(t->range, sizeof t->range, "%lld-", (long long)at);
    }
    t->takes_data = t->has_redirect = t->is_full = false;
    t->status = 0;
    t->retry_after_s = 0;
    t->n_other = 0;
    t->phase = HUB_FETCHING;
    if (!t->file) {
        bytes_clear(t->into);
    }
    t->transfer = http_client_start(t->client->http,
                                    &(http_order){.url = t->url,
                                                  .key = t->at_hub && place->key[0] ? place->key : NULL,
                                                  .range = t->range[0] ? t->range : NULL,
                                                  .uses_proxy = true,
                                                  .connect_s = CONNECT_S,
                                                  .silence_s = SILENCE_S,
                                                  .on_head = on_head,
                                                  .on_data = on_data,
                                                  .on_end = on_end,
                                                  .ctx = t});
    if (!t->transfer) {
        fail(t, err_set(&t->detail, ERR_NOMEM, "there is not enough memory to fetch a file"));
    }
}

/* Takes a task a step further; true if there may be more to do at once. */
static bool step(hub_task *t)
{
    switch (t->phase) {
    case HUB_WAITING:
        if (t->file) {
            const err_code err = hub_blob_open(&t->blob, t->repo_dir, t->locks_dir, t->file, &t->detail);
            if (err) {
                fail(t, err);
                return false;
            }
        }
        t->phase = HUB_CHECKING;
        return true;
    case HUB_CHECKING:
        if (!hub_blob_check_some(&t->blob) &&
            !write_failed(t)) { /* without a file there is nothing to check */
            start(t);
        }
        t->at = t->phase == HUB_DONE ? t->at : there(t);
        return t->phase == HUB_CHECKING;
    case HUB_PAUSED:
        if (clock_ms() >= t->until_ms) {
            start(t);
        }
        return false;
    default:
        return false;
    }
}

err_code hub_client_run(hub_client *c, hub_task *tasks, size_t n, size_t at_once, void (*on_tick)(void *ctx),
                        void *ctx, err_detail *detail)
{
    size_t n_done = 0;
    err_code err = ERR_OK;
    double next_tick = 0.0;
    while (!err && n_done < n) {
        size_t n_open = 0;
        bool is_busy = false, is_paused = false;
        n_done = 0;
        for (size_t i = 0; !err && i < n && n_open < at_once; i++) {
            hub_task *t = &tasks[i];
            t->client = c;
            n_open += t->phase != HUB_DONE;
            is_busy = step(t) || is_busy;
            is_paused = is_paused || t->phase == HUB_PAUSED;
            n_done += t->phase == HUB_DONE;
            if (t->err) {
                err = t->err;
                if (detail) {
                    *detail = t->detail;
                }
            }
        }
        if (on_tick && clock_ms() >= next_tick) {
            on_tick(ctx);
            next_tick = clock_ms() + TICK_MS;
        }
        if (!err && n_done < n) {
            http_client_poll(c->http, is_busy ? 0 : is_paused ? TICK_MS / 5 : TICK_MS);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (tasks[i].transfer) {
            http_client_stop(c->http, tasks[i].transfer);
            tasks[i].transfer = NULL;
        }
        hub_blob_close(&tasks[i].blob);
    }
    if (on_tick) {
        on_tick(ctx);
    }
    return err;
}
