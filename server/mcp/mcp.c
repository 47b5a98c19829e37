#include "server/mcp/mcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/memory.h"
#include "server/mcp/mcp_state.h"

enum { LONGEST_MS = 60000, FDS_EACH = 3, GOODBYE_MS = 30, GOODBYES = 10 };

/* ---- what there is ---- */

static mcp_state state_of(const mcp_session *s)
{
    return s->config->is_off                           ? MCP_OFF
           : s->config->problem[0]                     ? MCP_DOWN
           : s->step == STEP_OPEN                      ? MCP_READY
           : s->step == STEP_CLOSED && s->n_failed > 0 ? MCP_DOWN
           : s->n_failed > 0 && s->why[0]              ? MCP_DOWN
                                                       : MCP_CONNECTING;
}

void mcp_publish(mcp *m)
{
    mcp_catalog *c = mcp_catalog_create(m->n_sessions);
    m->is_unpublished = !c;
    if (!c) {
        return; /* the one before stays until there is memory */
    }
    for (size_t i = 0; i < m->n_sessions; i++) {
        const mcp_session *s = &m->sessions[i];
        mcp_server_view *v = &c->servers[i];
        *v = (mcp_server_view){.config = s->config, .state = state_of(s), .offer = mcp_offer_take(s->offer)};
        const char *why = s->config->problem[0] ? s->config->problem
                          : s->config->is_off   ? "turned off"
                                                : s->why;
        snprintf(v->why, sizeof v->why, "%s", v->state == MCP_READY ? "" : why);
        snprintf(v->name, sizeof v->name, "%s", s->name);
        snprintf(v->version, sizeof v->version, "%s", s->version);
        snprintf(v->protocol, sizeof v->protocol, "%s", v->state == MCP_READY ? s->protocol : "");
    }
    pthread_mutex_lock(&m->lock);
    mcp_catalog *before = m->catalog;
    m->catalog = c;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    mcp_catalog_release(before);
    if (m->hooks.on_change) {
        m->hooks.on_change(m->hooks.ctx);
    }
}

mcp_catalog *mcp_take_catalog(mcp *m)
{
    mcp_catalog *c = NULL;
    if (m) {
        pthread_mutex_lock(&m->lock);
        c = mcp_catalog_take(m->catalog);
        pthread_mutex_unlock(&m->lock);
    }
    return c;
}

mcp_catalog *mcp_wait_catalog(mcp *m, const char *label, bool (*may_go_on)(void *ctx), void *ctx)
{
    const double until = clock_ms() + 1000.0 * LIMIT_MCP_WAIT_S;
    mcp_catalog *c = mcp_take_catalog(m);
    const mcp_server_view *v = mcp_catalog_find(c, label);
    while (v && v->state == MCP_CONNECTING && clock_ms() < until && (!may_go_on || may_go_on(ctx))) {
        struct timespec soon;
        clock_gettime(CLOCK_REALTIME, &soon);
        soon.tv_nsec += 100 * 1000000;
        soon.tv_sec += soon.tv_nsec / 1000000000;
        soon.tv_nsec %= 1000000000;
        pthread_mutex_lock(&m->lock);
        if (m->catalog == c) {
            pthread_cond_timedwait(&m->changed, &m->lock, &soon);
        }
        pthread_mutex_unlock(&m->lock);
        mcp_catalog_release(c);
        c = mcp_take_catalog(m);
        v = mcp_catalog_find(c, label);
    }
    return c;
}

/* ---- orders ---- */

static void free_job(mcp_job *job)
{
    if (job) {
        free(job->server);
        free(job->name);
        free(job->arguments);
        free(job);
    }
}

err_code mcp_call(mcp *m, const mcp_order *order, err_detail *d)
{
    mcp_job *job = calloc(1, sizeof *job);
    if (job) {
        job->order = *order;
        job->server = strdup(order->server);
        job->name = strdup(order->name);
        job->arguments = order->arguments ? strdup(order->arguments) : NULL;
        job->begun_ms = clock_ms();
    }
    if (!job || !job->server || !job->name || (order->arguments && !job->arguments)) {
        free_job(job);
        return err_set(d, ERR_NOMEM, "there is no memory for this call");
    }
    pthread_mutex_lock(&m->lock);
    const bool ok = m->n_orders < LIMIT_MCP_CALLS;
    if (ok) {
        m->n_orders++;
        *m->last_job = job;
        m->last_job = &job->next;
    }
    pthread_mutex_unlock(&m->lock);
    if (!ok) {
        free_job(job);
        return err_set(d, ERR_BUSY, "%d calls of tools are under way; try again later", LIMIT_MCP_CALLS);
    }
    http_client_wake(m->client);
    return ERR_OK;
}

void mcp_cancel(mcp *m, uint64_t owner)
{
    if (!m) {
        return;
    }
    pthread_mutex_lock(&m->lock);
    if (memory_grow(&m->cancels, &m->cap_cancels, m->n_cancels + 1, 16, sizeof *m->cancels)) {
        m->cancels[m->n_cancels++] = owner;
    } /* else they end by themselves */
    pthread_mutex_unlock(&m->lock);
    http_client_wake(m->client);
}

bool mcp_retry(mcp *m, const char *label)
{
    size_t i = 0;
    while (i < m->n_sessions && strcmp(m->sessions[i].config->label, label) != 0) {
        i++;
    }
    if (i == m->n_sessions) {
        return false;
    }
    pthread_mutex_lock(&m->lock);
    m->retries[i] = true;
    pthread_mutex_unlock(&m->lock);
    http_client_wake(m->client);
    return true;
}

static void forget_order(mcp *m)
{
    pthread_mutex_lock(&m->lock);
    m->n_orders--;
    pthread_mutex_unlock(&m->lock);
}

static bool is_closing(mcp *m)
{
    pthread_mutex_lock(&m->lock);
    const bool closing = m->closing;
    pthread_mutex_unlock(&m->lock);
    return closing;
}

mcp_result *mcp_last_result(mcp *m, uint64_t owner, uint32_t place)
{
    mcp_result *r = mcp_result_create(owner, place);
    while (!r && !is_closing(m)) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        r = mcp_result_create(owner, place);
    }
    return r;
}

void mcp_tell(mcp *m, mcp_result *result)
{
    forget_order(m);
    if (result) {
        m->hooks.on_result(m->hooks.ctx, result);
    }
}

/* ---- the thread ---- */

static void begin_job(mcp *m, mcp_job *job)
{
    for (size_t i = 0; i < m->n_sessions; i++) {
        if (strcmp(m->sessions[i].config->label, job->server) == 0) {
            mcp_session_work(&m->sessions[i], job);
            return;
        }
    }
    mcp_result *r = mcp_last_result(m, job->order.owner, job->order.place);
    if (r) {
        mcp_result_fail(r, "there is no server %.100s", job->server);
    }
    mcp_tell(m, r);
}

static void cancel_owner(mcp *m, uint64_t owner)
{
    for (bool found = true; found;) { /* telling a server may add to the list */
        found = false;
        for (mcp_ask *a = m->asks; a && !found; a = a->next) {
            if (a->purpose == MCP_WORK && a->owner == owner) {
                found = true;
                mcp_ask_drop(a, true);
                forget_order(m);
            }
        }
    }
}

/* Takes what other threads want; false at the end. */
static bool take_wishes(mcp *m)
{
    pthread_mutex_lock(&m->lock);
    const bool closing = m->closing;
    mcp_job *jobs = m->jobs;
    m->jobs = NULL;
    m->last_job = &m->jobs;
    uint64_t *cancels = m->cancels;
    const size_t n_cancels = m->n_cancels;
    m->cancels = NULL;
    m->n_cancels = m->cap_cancels = 0;
    for (size_t i = 0; i < m->n_sessions; i++) {
        mcp_session *s = &m->sessions[i];
        if (m->retries[i]) { /* where it is not closed that time counts for nothing */
            s->next_try_ms = 0.0;
        }
        m->retries[i] = false;
    }
    pthread_mutex_unlock(&m->lock);
    while (jobs) {
        mcp_job *next = jobs->next;
        if (!closing) {
            begin_job(m, jobs);
        }
        free_job(jobs);
        jobs = next;
    }
    for (size_t i = 0; i < n_cancels; i++) {
        cancel_owner(m, cancels[i]);
    }
    free(cancels);
    return !closing;
}

/* Waits for whatever comes first. */
static void wait_and_read(mcp *m, double next)
{
    http_other fds[MCP_SERVERS * FDS_EACH];
    size_t n = 0;
    for (size_t i = 0; i < m->n_sessions; i++) {
        const mcp_session *s = &m->sessions[i];
        const int each[FDS_EACH] = {s->child.out, s->child.errors, s->out.len > 0 ? s->child.in : -1};
        for (size_t k = 0; k < FDS_EACH; k++) {
            if (each[k] >= 0) {
                fds[n++] = (http_other){.fd = each[k], .writes = k == 2};
            }
        }
    }
    const double left = next - clock_ms();
    http_client_poll_with(m->client, fds, n, left <= 0.0 ? 0 : (int)left + 1);
    for (size_t i = 0; i < m->n_sessions; i++) {
        mcp_session *s = &m->sessions[i];
        bool can[FDS_EACH] = {false, false, false};
        const int each[FDS_EACH] = {s->child.out, s->child.errors, s->child.in};
        for (size_t f = 0; f < n; f++) {
            for (size_t k = 0; k < FDS_EACH; k++) {
                can[k] = can[k] || (fds[f].fd == each[k] && fds[f].ready);
            }
        }
        mcp_pipe_ready(s, can[0], can[2], can[1]);
    }
}

static void *loop(void *ctx)
{
    mcp *m = ctx;
    while (take_wishes(m)) {
        double next = clock_ms() + LONGEST_MS;
        if (m->is_unpublished) {
            mcp_publish(m);
        }
        for (size_t i = 0; i < m->n_sessions; i++) {
            const double at = mcp_session_tick(&m->sessions[i], clock_ms());
            next = at < next ? at : next;
        }
        wait_and_read(m, next);
        mcp_worker_collect(m, false);
    }
    for (size_t i = 0; i < m->n_sessions; i++) {
        if (m->sessions[i].config->kind == MCP_HTTP) {
            mcp_post_end(&m->sessions[i]);
        }
    }
    for (int i = 0; i < GOODBYES && !http_client_is_idle(m->client); i++) {
        http_client_poll(m->client, GOODBYE_MS);
    }
    return NULL;
}

/* ---- lifetime ---- */

err_code mcp_create(mcp **out, const mcp_config *config, mcp_spawner *spawner, const mcp_hooks *hooks,
                    err_detail *d)
{
    mcp *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m) {
        return err_set(d, ERR_NOMEM, "there is no memory for MCP servers");
    }
    m->config = config;
    m->spawner = spawner;
    m->hooks = *hooks;
    m->last_job = &m->jobs;
    m->n_sessions = config->n;
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    for (size_t i = 0; i < config->n; i++) {
        mcp_session *s = &m->sessions[i];
        *s = (mcp_session){.all = m, .config = &config->servers[i], .index = i, .child = {-1, -1, -1, -1}};
        bytes_init(&s->in, 0);
        bytes_init(&s->out, 0);
        for (size_t k = 0; k < ARRAY_LEN(s->lists); k++) {
            bytes_init(&s->lists[k], LIMIT_MCP_MESSAGE_BYTES);
        }
        if (s->config->problem[0]) {
            log_warn("mcp", "%s is left out: %s", s->config->label, s->config->problem);
        }
    }
    m->client = http_client_create();
    m->catalog = mcp_catalog_create(0);
    if (m->client && m->catalog) {
        mcp_publish(m);
        m->has_thread = pthread_create(&m->thread, NULL, loop, m) == 0;
    }
    if (!m->has_thread) {
        mcp_destroy(m);
        return err_set(d, ERR_NOMEM, "there is no memory for MCP servers");
    }
    *out = m;
    return ERR_OK;
}

void mcp_destroy(mcp *m)
{
    if (!m) {
        return;
    }
    if (m->has_thread) {
        pthread_mutex_lock(&m->lock);
        m->closing = true;
        pthread_mutex_unlock(&m->lock);
        http_client_wake(m->client);
        pthread_join(m->thread, NULL);
    }
    while (m->asks) {
        m->asks->owner = 0;
        mcp_ask_drop(m->asks, false);
    }
    mcp_worker_collect(m, true);
    for (size_t i = 0; i < m->n_sessions; i++) {
        mcp_session *s = &m->sessions[i];
        mcp_pipe_close(s);
        mcp_offer_release(s->offer);
        for (size_t k = 0; k < ARRAY_LEN(s->lists); k++) {
            bytes_deinit(&s->lists[k]);
        }
    }
    while (m->jobs) {
        mcp_job *next = m->jobs->next;
        free_job(m->jobs);
        m->jobs = next;
    }
    free(m->cancels);
    mcp_catalog_release(m->catalog);
    http_client_destroy(m->client);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
