/* The thread that speaks with the servers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/upstream/upstream_state.h"

/* A replica that fails so many answers in a row rests for a while, though it lists its models. */
enum { DOWN_CHECK_MS = 1000, CHECK_TIMEOUT_S = 10, BAD_ANSWERS = 3, EJECTED_MS = 10000 };
/* For so long the thread looks at no stream while nothing that may come would be passed on at once. */
enum { REST_MS = 8 };

static const char *name_of(const upstreams *u, size_t server)
{
    return u->config.servers[server].name;
}

/* What the end of a transfer means, for people. */
static const char *words_of(http_end end, const char *why)
{
    switch (end) {
    case HTTP_UNTRUSTED:
        return "its certificate does not verify (--upstream-ca names one to trust)";
    case HTTP_NO_TLS:
        return "it does not speak TLS (is it http:// rather than https://?)";
    case HTTP_SILENT:
        return "it does not answer in time";
    default:
        return why;
    }
}

/* ---- looking at servers ---- */

static void set_down(replica *r, const char *why)
{
    upstreams *u = r->all;
    pthread_mutex_lock(&u->lock);
    const bool is_news = r->state != REPLICA_DOWN || strcmp(r->why, why) != 0;
    r->state = REPLICA_DOWN;
    snprintf(r->why, sizeof r->why, "%s", why);
    pthread_mutex_unlock(&u->lock);
    if (is_news) {
        log_warn("upstream", "%s at %s: %s", name_of(u, r->server), r->url, why);
        u->hooks.on_change(u->hooks.ctx);
    }
}

/* A replica answers, and has these models. Both at once, so that no model of it is listed as one that failed. */
static void set_up(replica *r, upstream_models *fresh)
{
    upstreams *u = r->all;
    server_state *s = &u->servers[r->server];
    pthread_mutex_lock(&u->lock);
    const bool has_others = !s->was_reached || !upstream_models_equal(&s->models, fresh);
    const bool was_down = r->state != REPLICA_UP;
    const upstream_models old = s->models;
    s->models = *fresh;
    *fresh = old;
    s->was_reached = true;
    r->state = REPLICA_UP;
    r->why[0] = '\0';
    pthread_mutex_unlock(&u->lock);
    if (has_others) {
        log_info("upstream", "%s has %zu models", name_of(u, r->server), s->models.n);
    }
    if (was_down) {
        log_info("upstream", "%s answers at %s", name_of(u, r->server), r->url);
    }
    if (has_others || was_down) {
        u->hooks.on_change(u->hooks.ctx);
    }
}

static bool on_check_head(void *ctx, const http_head *head)
{
    ((replica *)ctx)->check_status = head->status;
    return true;
}

static bool on_check_data(void *ctx, const char *data, size_t n)
{
    replica *r = ctx;
    bytes_append(&r->check_body, data, n);
    return !r->check_body.failed;
}

static void on_check_end(void *ctx, http_end end, const char *why)
{
    replica *r = ctx;
    char text[UPSTREAM_WHY_MAX];
    err_detail d = {0};
    upstream_models fresh = {0};
    r->check = NULL;
    if (end == HTTP_STOPPED) {
        set_down(r, "its list of models is too large");
    } else if (end != HTTP_DONE) {
        set_down(r, words_of(end, why));
    } else if (r->check_status == 401 || r->check_status == 403) {
        set_down(r, "it refuses the key of this server (--upstream-key)");
    } else if (r->check_status != 200) {
        snprintf(text, sizeof text, "%s (%d)",
                 r->check_status >= 300 && r->check_status < 400
                     ? "it redirects elsewhere, which is not followed"
                     : "it does not list its models",
                 r->check_status);
        set_down(r, text);
    } else if (upstream_models_read(&fresh, bytes_str(&r->check_body), r->check_body.len, &d) != ERR_OK) {
        set_down(r, d.text);
    } else {
        set_up(r, &fresh);
    }
    upstream_models_deinit(&fresh);
    bytes_clear(&r->check_body);
    r->next_check_ms =
        clock_ms() + (r->state == REPLICA_UP ? LIMIT_UPSTREAM_CHECK_S * 1000.0 : DOWN_CHECK_MS);
}

static void start_check(upstreams *u, replica *r)
{
    const http_order order = {.url = r->models_url,
                              .key = u->config.servers[r->server].key,
                              .ca_file = u->config.ca_file,
                              .connect_s = u->config.connect_timeout_s,
                              .silence_s = CHECK_TIMEOUT_S,
                              .timeout_s = CHECK_TIMEOUT_S,
                              .on_head = on_check_head,
                              .on_data = on_check_data,
                              .on_end = on_check_end,
                              .ctx = r};
    r->check_status = 0;
    r->check = http_client_start(u->client, &order);
    r->next_check_ms = clock_ms() + DOWN_CHECK_MS;
}

/* Starts what is due; returns for how long nothing is. */
static int look_around(upstreams *u)
{
    double wait_ms = LIMIT_UPSTREAM_CHECK_S * 1000.0;
    const double now = clock_ms();
    for (size_t i = 0; i < u->config.n_servers; i++) {
        for (size_t j = 0; j < u->servers[i].n_replicas; j++) {
            replica *r = &u->servers[i].replicas[j];
            if (!r->check && now >= r->next_check_ms) {
                start_check(u, r);
            }
            const double left = r->next_check_ms - now;
            wait_ms = !r->check && left < wait_ms ? left : wait_ms;
        }
    }
    return wait_ms < 1.0 ? 1 : (int)wait_ms;
}

/* ---- events ---- */

/* Text and the end must arrive: without memory it waits for some. */
static gen_event *new_event(const upstream_run *run, gen_event_type type)
{
    gen_event *e;
    while (!(e = calloc(1, sizeof *e))) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    e->request_id = run->request->id;
    e->type = type;
    e->phase = GEN_PHASE_PREFILL;
    e->timings.route = run->request->info.route;
    e->timings.server = name_of(run->all, run->request->server);
    e->timings.rule = run->request->rule;
    e->timings.n_images = run->request->info.n_images;
    e->timings.n_videos = run->request->info.n_videos;
    e->timings.ttft_ms = e->timings.prompt_ms = run->first_ms > 0.0 ? run->first_ms - run->submitted_ms : 0.0;
    e->timings.predicted_ms = run->first_ms > 0.0 ? clock_ms() - run->first_ms : 0.0;
    return e;
}

static void say(upstream_run *run, gen_event *e)
{
    run->all->hooks.on_event(run->all->hooks.ctx, e);
}

static void say_text(upstream_run *run)
{
    gen_text *text = upstream_reply_take(&run->reply);
    if (text) {
        const double now = clock_ms();
        run->first_ms = run->first_ms > 0.0 ? run->first_ms : now;
        run->is_fast = text->n_tokens * REST_MS >= 2.0 * (now - run->said_ms);
        run->said_ms = now;
        gen_event *e = new_event(run, GEN_TEXT);
        e->text = text;
        say(run, e);
    }
}

/* The first text is said at once, what follows within gather_ms is gathered: a client is written to no more often, and
 * nothing is woken for what it would not get yet. */
static void gather_text(upstream_run *run)
{
    upstreams *u = run->all;
    const double due_ms = run->said_ms + u->hooks.gather_ms;
    if (clock_ms() >= due_ms) {
        say_text(run);
    } else if (run->reply.n_pieces > 0 && (u->due_ms <= 0.0 || due_ms < u->due_ms)) {
        u->due_ms = due_ms;
    }
}

/* Says what has waited long enough; returns for how long nothing is due, or most_ms. */
static int say_due(upstreams *u, int most_ms)
{
    if (u->due_ms > 0.0 && clock_ms() >= u->due_ms) {
        u->due_ms = 0.0;
        for (upstream_run *run = u->runs; run; run = run->next) {
            if (!run->has_ended) {
                gather_text(run);
            }
        }
    }
    const double left = u->due_ms - clock_ms();
    return u->due_ms <= 0.0 || left >= most_ms ? most_ms : left < 0.0 ? 0 : (int)left + 1;
}

/* The server has it no more. */
static void leave(upstream_run *run, bool has_failed)
{
    upstreams *u = run->all;
    pthread_mutex_lock(&u->lock);
    run->at->n_running--;
    run->at->n_failed += has_failed;
    pthread_mutex_unlock(&u->lock);
    run->at = NULL;
}

/* The end of an answer says something of who gave it. */
static void judge(replica *r, bool has_failed)
{
    r->n_bad = has_failed ? r->n_bad + 1 : 0;
    if (r->n_bad >= BAD_ANSWERS && r->state == REPLICA_UP && r->all->servers[r->server].n_replicas > 1) {
        set_down(r, "its answers fail");
        r->next_check_ms = clock_ms() + EJECTED_MS;
        r->n_bad = 0;
    }
}

static void end(upstream_run *run, gen_finish finish, err_code error, const char *name, const char *text)
{
    upstreams *u = run->all;
    gen_event *e = new_event(run, GEN_DONE);
    const gen_usage *usage = &run->reply.usage;
    const bool has_failed = error == ERR_UPSTREAM || error == ERR_TIMEOUT;
    judge(run->at, has_failed);
    leave(run, has_failed);
    e->finish = finish;
    e->error = error;
    snprintf(e->message, sizeof e->message, "%s", text);
    snprintf(e->error_name, sizeof e->error_name, "%s", name);
    e->usage = *usage;
    e->timings.cache_n = usage->cached;
    e->timings.prompt_n = usage->prompt - usage->cached;
    e->timings.predicted_n = usage->completion;
    run->has_ended = true;
    pthread_mutex_lock(&u->lock);
    u->n_open--;
    pthread_mutex_unlock(&u->lock);
    say(run, e);
}

static void drop_run(upstream_run *run)
{
    *run->link = run->next;
    if (run->next) {
        run->next->link = run->link;
    }
    upstream_reply_deinit(&run->reply);
    upstream_request_free(run->request);
    free(run);
}

/* ---- an answer ---- */

static void start(upstream_run *run);

/* The reply is complete, or good for nothing more. */
static void end_reply(upstream_run *run)
{
    upstream_reply_finish(&run->reply);
    say_text(run);
    end(run, run->reply.finish, run->reply.error, run->reply.detail.name, run->reply.detail.text);
}

static bool on_head(void *ctx, const http_head *head)
{
    upstream_run *run = ctx;
    upstream_reply_head(&run->reply, head->status, head->content_type);
    if (head->status == 200) {
        run->has_begun = true;
        say(run, new_event(run, GEN_PROGRESS));
    }
    return true;
}

static bool on_data(void *ctx, const char *data, size_t n)
{
    upstream_run *run = ctx;
    if (run->has_ended) { /* behind [DONE]: the connection is kept if it ends soon */
        return run->reply.error == ERR_OK && (run->reply.n_bytes += n) <= LIMIT_UPSTREAM_REPLY_BYTES;
    }
    const bool goes_on = upstream_reply_push(&run->reply, data, n);
    gather_text(run);
    if (!goes_on || run->reply.error != ERR_OK) {
        end_reply(run);
    }
    return run->reply.error == ERR_OK;
}

/* Whether a request that has not begun may go elsewhere. */
static bool may_retry(const upstream_run *run, http_end how)
{
    const int status = run->reply.status;
    const bool is_busy = how == HTTP_DONE && (status == 502 || status == 503 || status == 504);
    const server_state *s = &run->all->servers[run->request->server];
    return !run->has_begun &&
           (is_busy || how == HTTP_UNREACHABLE || how == HTTP_BROKEN || how == HTTP_UNTRUSTED ||
            how == HTTP_NO_TLS) &&
           run->tried != (1U << s->n_replicas) - 1;
}

static void on_end(void *ctx, http_end how, const char *why)
{
    upstream_run *run = ctx;
    upstreams *u = run->all;
    const char *name = name_of(u, run->request->server);
    char text[256];
    run->transfer = NULL;
    if (run->has_ended) {
        drop_run(run);
        return;
    }
    if (how != HTTP_DONE) {
        set_down(run->at, words_of(how, why));
        run->at->next_check_ms = clock_ms() + DOWN_CHECK_MS;
    }
    if (may_retry(run, how)) {
        log_info("upstream", "%s at %s has not taken a request: another one is asked", name, run->at->url);
        leave(run, true);
        start(run);
        return;
    }
    switch (how) {
    case HTTP_DONE:
        end_reply(run);
        break;
    case HTTP_UNREACHABLE:
    case HTTP_UNTRUSTED:
    case HTTP_NO_TLS:
        snprintf(text, sizeof text, "%s cannot be reached: %s", name, words_of(how, why));
        end(run, GEN_FINISH_ERROR, ERR_UPSTREAM, "upstream_unreachable", text);
        break;
    case HTTP_SILENT:
        snprintf(text, sizeof text, "%s has said nothing for %d s", name, u->config.silence_timeout_s);
        end(run, GEN_FINISH_ERROR, ERR_TIMEOUT, "upstream_timeout", text);
        break;
    default:
        snprintf(text, sizeof text, "%s %s (%s)", name,
                 run->has_begun ? "has ended in the middle of its answer" : "has gone without an answer",
                 why);
        end(run, GEN_FINISH_ERROR, ERR_UPSTREAM, "upstream_cut_off", text);
        break;
    }
    drop_run(run);
}

/* The one with the fewest answers, and of those the one that has got the fewest, of those that answer; where none
 * does, one that was not tried. */
static replica *least(const upstream_run *run)
{
    server_state *s = &run->all->servers[run->request->server];
    replica *best = NULL;
    for (size_t i = 0; i < s->n_replicas; i++) {
        replica *r = &s->replicas[i];
        if (run->tried & 1U << i) {
            continue;
        }
        const bool r_down = r->state == REPLICA_DOWN, best_down = best && best->state == REPLICA_DOWN;
        const bool has_less = best && (r->n_running < best->n_running ||
                                       (r->n_running == best->n_running && r->n_sent < best->n_sent));
        best = !best || (best_down && !r_down) || (best_down == r_down && has_less) ? r : best;
    }
    return best;
}

/* The one that has seen the conversation, unless it is gone or has more than its bounded share: then it gives
 * way. */
static replica *choose(const upstream_run *run)
{
    server_state *s = &run->all->servers[run->request->server];
    const int seen = affinity_find(run->all->affinity, &run->request->chain);
    int n_running = 0, n_up = 0;
    for (size_t i = 0; i < s->n_replicas; i++) {
        n_up += s->replicas[i].state != REPLICA_DOWN;
        n_running += s->replicas[i].n_running;
    }
    if (seen < 0 || (run->tried & 1U << seen) || s->replicas[seen].state == REPLICA_DOWN ||
        s->replicas[seen].n_running >= affinity_bound(n_running, n_up)) {
        return least(run);
    }
    return &s->replicas[seen];
}

static void start(upstream_run *run)
{
    upstreams *u = run->all;
    const upstream_request *q = run->request;
    replica *r = choose(run);
    const int index = (int)(r - u->servers[q->server].replicas);
    const bool follows = affinity_find(u->affinity, &q->chain) == index;
    run->tried |= 1U << index;
    affinity_put(u->affinity, &q->chain, index);
    upstream_reply_deinit(&run->reply);
    upstream_reply_init(&run->reply, name_of(u, q->server), u->config.servers[q->server].key, q->wire);
    pthread_mutex_lock(&u->lock);
    r->n_running++;
    r->n_sent++;
    r->n_followed += follows;
    r->n_ruled += q->rule != NULL;
    pthread_mutex_unlock(&u->lock);
    run->at = r;
    const http_order order = {.url = q->wire == UPSTREAM_CHAT ? r->chat_url : r->completions_url,
                              .key = u->config.servers[q->server].key,
                              .body = bytes_str(&q->body),
                              .n_body = q->body.len,
                              .ca_file = u->config.ca_file,
                              .connect_s = u->config.connect_timeout_s,
                              .silence_s = u->config.silence_timeout_s,
                              .on_head = on_head,
                              .on_data = on_data,
                              .on_end = on_end,
                              .ctx = run};
    run->transfer = http_client_start(u->client, &order);
    if (!run->transfer) {
        end(run, GEN_FINISH_ERROR, ERR_NOMEM, "", "");
        drop_run(run);
    }
}

/* ---- what other threads want ---- */

static void cancel(upstreams *u, uint64_t id)
{
    upstream_run *run = u->runs;
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what drop_run has freed is not in the list any more */
    while (run && (run->request->id != id || run->has_ended)) {
        run = run->next;
    }
    if (run) {
        http_client_stop(u->client, run->transfer);
        end(run, GEN_FINISH_CANCELLED, ERR_OK, "", "");
        drop_run(run);
    }
}

static void begin(upstreams *u, upstream_request *q)
{
    upstream_run *run;
    while (!(run = calloc(1, sizeof *run))) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    *run =
        (upstream_run){.all = u, .request = q, .submitted_ms = clock_ms(), .next = u->runs, .link = &u->runs};
    if (run->next) {
        run->next->link = &run->next;
    }
    u->runs = run;
    start(run);
}

/* False once the thread is to end. Requests go first, so that a cancel finds its own. */
static bool take_orders(upstreams *u)
{
    pthread_mutex_lock(&u->lock);
    const bool goes_on = !u->closing;
    upstream_request *q = u->waiting;
    uint64_t *cancels = u->cancels;
    const size_t n_cancels = u->n_cancels;
    u->waiting = NULL;
    u->last = &u->waiting;
    u->cancels = NULL;
    u->n_cancels = u->cap_cancels = 0;
    pthread_mutex_unlock(&u->lock);
    while (q) {
        upstream_request *next = upstream_request_detach(q);
        begin(u, q);
        q = next;
    }
    for (size_t i = 0; i < n_cancels; i++) {
        cancel(u, cancels[i]);
    }
    free(cancels);
    return goes_on;
}

/* For how long no stream need be looked at: all that runs has been passed on just now, and something of it comes so fast
 * that each piece would be a wake for nothing. 0: something may be waited for. */
static int rest_of(const upstreams *u)
{
    const double now = clock_ms();
    double rest_ms = REST_MS;
    bool is_fast = false;
    for (const upstream_run *run = u->runs; run && rest_ms > 0.0; run = run->next) {
        const double left = run->said_ms + u->hooks.gather_ms - now;
        rest_ms = run->has_ended || left >= rest_ms ? rest_ms : left;
        is_fast = is_fast || (run->is_fast && !run->has_ended);
    }
    return is_fast && rest_ms >= 1.0 ? (int)rest_ms : 0;
}

/* Only an order ends it. */
static void rest(upstreams *u, int ms)
{
    const struct timespec until = clock_deadline(ms);
    pthread_mutex_lock(&u->lock);
    while (!u->closing && !u->waiting && u->n_cancels == 0 &&
           pthread_cond_timedwait(&u->has_orders, &u->lock, &until) == 0) {
    }
    pthread_mutex_unlock(&u->lock);
}

void *upstream_loop(void *ctx)
{
    upstreams *u = ctx;
    while (take_orders(u)) {
        const int wait_ms = say_due(u, look_around(u)), rest_ms = rest_of(u);
        if (rest_ms > 0) {
            rest(u, rest_ms);
        }
        http_client_poll(u->client, rest_ms > 0 ? 0 : wait_ms);
    }
    while (u->runs) { /* their transfers end with the client */
        drop_run(u->runs);
    }
    return NULL;
}
