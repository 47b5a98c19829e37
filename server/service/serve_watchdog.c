/* Whether the engine can be used. Its thread may be stuck in a computation: nothing can stop that,
 * but the answers can be ended towards their clients, new ones refused, and whoever watches the
 * server told. When the thread comes back, it finds its requests cancelled and goes on with empty
 * slots. */
#include <stdio.h>

#include "base/log.h"
#include "server/service/serve_state.h"

/* A process that was stopped, or a machine that slept, did not compute either: a gap between two
 * looks counts as this. */
enum { LOOK_MS = 1000 };

bool serve_is_remote_only(const serve *s)
{
    return s->upstreams && s->opt->has_no_model;
}

void serve_on_upstreams(serve *s)
{
    err_code code;
    upstream_model m;
    if (serve_is_remote_only(s) && upstreams_find(s->upstreams, "", &m, &code, NULL) == UPSTREAM_FOUND) {
        snprintf(s->model_name, sizeof s->model_name, "%s", m.name);
        s->session_version++;
    }
    serve_status_changed(s);
}

bool serve_is_ready(const serve *s, api_error *e)
{
    if (s->phase == SERVE_DRAINING) {
        api_error_set(e, 503, "server_draining", NULL, "the server is shutting down");
        return false;
    }
    if (!s->engine && !serve_is_remote_only(s)) {
        const bool is_empty = s->phase == SERVE_EMPTY;
        api_error_set(e, 503, is_empty ? "no_model" : "model_loading", NULL,
                      is_empty ? "No model is loaded; name one of /v1/models" : "Loading model");
        return false;
    }
    if (s->is_stalled) {
        api_error_set(e, 503, "engine_stalled", NULL,
                      "a computation does not come to its end; try again later");
        return false;
    }
    if (s->is_prep_stalled) {
        api_error_set(e, 503, "preparation_stalled", NULL,
                      "the preparation of requests does not come to its end; try again later");
        return false;
    }
    return true;
}

void serve_end_answers(serve *s, answer_timeout why)
{
    for (size_t i = 0; i < s->answers.cap; i++) {
        answer *a = id_table_at(&s->answers, i);
        if (!a || a->state == ANSWER_FINISHED ||
            ((a->state != ANSWER_RUNNING || a->server) && why == ANSWER_STALLED)) {
            continue;
        }
        if (a->state == ANSWER_RUNNING) {
            gen_event event = {.request_id = a->id,
                               .type = GEN_DONE,
                               .finish = GEN_FINISH_ERROR,
                               .error = ERR_TIMEOUT,
                               .timings = a->timings};
            loop_message message = {.type = LOOP_EVENT, .id = a->id, .event = &event};
            a->timeout = why;
            serve_stop_answer(s, a->id);
            serve_handle_message(s, &message);
        } else {
            api_error e;
            serve_is_ready(s, &e);
            prep_ticket_cancel(a->ticket);
            serve_fail_answer(s, a, ERR_BUSY, &e);
        }
        i = (size_t)-1; /* the table may have moved: start again */
    }
}

void serve_watchdog_prep(serve *s, double now)
{
    prep_status status;
    prep_get_status(s->prep, &status);
    const double passed = now - s->prep_look_ms;
    s->prep_look_ms = now;
    if (status.silent_ms < passed) { /* something was heard since the last look */
        s->prep_silent_ms = status.silent_ms < LOOK_MS ? status.silent_ms : LOOK_MS;
    } else {
        s->prep_silent_ms += passed < LOOK_MS ? passed : LOOK_MS;
    }
    const bool stalls = s->prep_silent_ms > s->opt->step_timeout_s * 1000.0;
    if (stalls == s->is_prep_stalled) {
        return;
    }
    s->is_prep_stalled = stalls;
    if (stalls) {
        log_error("srv", "the preparation of requests stalls for %d s", s->opt->step_timeout_s);
    } else {
        log_warn("srv", "the preparation of requests goes on");
    }
    notify_send(&s->notify, "STATUS=%s", stalls ? "The preparation of requests stalls" : "Ready");
    serve_status_changed(s);
}

void serve_watchdog_engine(serve *s, const engine_status *status, double now)
{
    const bool moves = status->n_running == 0 || status->progress_counter != s->progress_counter;
    const double passed = now - s->progress_counter_ms;
    s->progress_counter = status->progress_counter;
    s->progress_counter_ms = now;
    s->stalled_ms = moves ? 0.0 : s->stalled_ms + (passed < LOOK_MS ? passed : LOOK_MS);
    if (s->is_stalled && moves) {
        log_warn("srv", "the computation goes on");
        s->is_stalled = false;
        notify_send(&s->notify, "STATUS=Ready: %s", s->model_name);
        serve_status_changed(s);
    } else if (!s->is_stalled && s->stalled_ms > s->opt->step_timeout_s * 1000.0) {
        log_error("srv", "the computation has been stalled for %d s; its answers are ended",
                  s->opt->step_timeout_s);
        s->is_stalled = true;
        notify_send(&s->notify, "STATUS=A computation is stalled");
        serve_end_answers(s, ANSWER_STALLED);
        serve_status_changed(s);
    }
}
