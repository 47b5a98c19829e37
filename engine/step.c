/* step: the engine thread. Each turn: drop the cancelled, admit the waiting, ask the scheduler for a
 * plan, run it (a decode step of every answer; one vision unit or prefill chunk), push events.
 *
 * Decode and prefill are separate forward calls, so that an answer's arithmetic never depends on
 * what else runs: decode batches stay within NN_ROWS_EXACT rows, and a prompt is always cut at the
 * same places. A prefill chunk is interrupted between layers, so that answers need not wait for the
 * whole of it.
 */
#include "base/clock.h"
#include "base/log.h"
#include "engine/step.h"

static void admit(engine *e)
{
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        gen_request *r = NULL;
        if (s->req || s->load || !inbox_take(e->inbox, &r)) {
            continue;
        }
        err_detail detail = {0};
        err_code err = slot_start(e, s, r, &detail);
        if (err != ERR_OK) {
            slot_fail(e, s, err, &detail);
        } else if (!s->load && !s->awaits_prompt) {
            log_debug("eng", "req=%s begins prompt=%zu cached=%d queue=%.1fms", r->name, r->prompt.len,
                      s->prompt_done, s->timings.queue_ms);
            slot_emit_start(e, s);
        }
    }
}

static void drop_cancelled(engine *e)
{
    gen_request *r = NULL;
    while (inbox_take_cancelled(e->inbox, &r)) {
        gen_timings none = {.route = r->route};
        request_send_done(e, r, &none, GEN_FINISH_CANCELLED, ERR_CANCELLED, "cancelled while waiting");
    }
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        if (s->req && inbox_is_cancelled(e->inbox, s->req->id)) {
            slot_finish(e, s, GEN_FINISH_CANCELLED, ERR_CANCELLED, "cancelled");
        }
    }
}

/* Whoever waits for an answer may have had enough of its thoughts. */
static void end_thoughts(engine *e)
{
    for (int32_t i = 0; i < e->n_slots; i++) {
        slot *s = &e->slots[i];
        if (s->req && inbox_ends_thinking(e->inbox, s->req->id)) {
            think_end(&s->think);
        }
    }
}

/* ---- the loop ---- */

enum { FILLS_A_CHUNK = 4 };

static void count_steps(engine *e, uint64_t n_steps)
{
    pthread_mutex_lock(&e->status_lock);
    e->status.n_steps += n_steps;
    pthread_mutex_unlock(&e->status_lock);
    slot_count_cache(e);
}

/* Makes memory for states ready, where nobody waits for it; false: all is. */
static bool fill_spares(engine *e, int32_t n)
{
    bool more = !e->pressure.is_short;
    while (more && n-- > 0) {
        more = spares_fill(kv_pool_spares(e->pool));
    }
    return more;
}

/* Runs one step; false if no slot is in use. */
static bool step(engine *e)
{
    slot_view views[NN_ROWS_EXACT];
    bool any = false;
    for (int32_t i = 0; i < e->n_slots; i++) {
        const slot *s = &e->slots[i];
        views[i] = (slot_view){.used = s->req && !s->load && !s->names && !s->awaits_prompt &&
                                       !sparse_must_wait(e, s),
                               .phase = s->phase};
        if (views[i].used) {
            any = true;
            views[i].prompt_left = prefill_stop(e, s) - s->prompt_done;
            views[i].prompt_rest = (int32_t)s->req->prompt.len - s->prompt_done;
            views[i].since = s->req->submitted_ns;
            views[i].under_way = s->chunk > 0;
        }
    }
    if (!any) {
        return false;
    }
    step_plan plan = scheduler_plan(&e->scheduler, views, e->n_slots, e->prefill_chunk);
    const int64_t start = clock_ns();
    if (plan.decode) {
        decode_step(e);
    }
    if (plan.prompt_slot >= 0 && plan.vision) {
        vision_step(e, &e->slots[plan.prompt_slot]);
    } else if (plan.prompt_slot >= 0) {
        prefill_step(e, &e->slots[plan.prompt_slot], plan.n_tokens,
                     plan.decode ? ms_between(start, clock_ns()) : 0.0);
        const slot *s = &e->slots[plan.prompt_slot];
        /* Between the chunks of a long prompt: a short one, or a second token, would wait for it. */
        if (!plan.decode && s->req && s->phase == GEN_PHASE_PREFILL && s->chunk == 0) {
            fill_spares(e, FILLS_A_CHUNK);
        }
    }
    count_steps(e, 1);
    return true;
}

void *engine_thread(void *arg)
{
    engine *e = arg;
    compute_bind_caller(e->compute);
    for (;;) {
        if (atomic_exchange(&e->sweep_cache, false) && e->cache) {
            prefix_cache_sweep(e->cache);
            count_steps(e, 0);
        }
        cache_pressure_look(&e->pressure);
        disk_end_loads(e);
        disk_save_next(e);
        drop_cancelled(e);
        if (!inbox_is_closed(e->inbox)) {
            admit(e);
            slot_begin_shared(e);
            end_thoughts(e);
        }
        if (step(e) || (!inbox_is_closed(e->inbox) && fill_spares(e, 1))) {
            continue;
        }
        if (!inbox_wait(e->inbox, CACHE_PRESSURE_MS)) {
            break;
        }
    }
    drop_cancelled(e);
    disk_save_all(e);
    return NULL;
}
