/* answers: an engine for a test, and what its requests say. The engine thread puts events into a
 * mailbox, the test's thread collects them.
 *
 *     answers_begin(); engine *e = answers_open(&(engine_options){.model_dir = "DIR", .n_ctx = 2048});
 *     answers_submit(e, r, 7); answer a = {0}; answers_collect(&a, 7, 1);
 *     engine_close(e); answers_end();
 */
#ifndef PARLEY_TESTS_ENGINE_ANSWERS_H
#define PARLEY_TESTS_ENGINE_ANSWERS_H

#include <stdlib.h>
#include <string.h>

#include "base/mailbox.h"
#include "compute/nn.h"
#include "engine/engine.h"
#include "tests/check.h"
#include "tests/cpu.h"

enum { ANSWER_IDS = 256, ANSWER_EVENTS = 8192, ANSWER_WAIT_MS = 60000 };

/* What one request said. */
typedef struct answer {
    int32_t ids[ANSWER_IDS];
    float logprobs[ANSWER_IDS]; /* of those, where they were asked for */
    int32_t n;
    int32_t n_chunks; /* of the prompt */
    gen_timings timings;
} answer;

static mailbox *answer_events;

static inline void answers_begin(void)
{
    answer_events = mailbox_create(ANSWER_EVENTS);
    if (!answer_events) {
        exit(1);
    }
}

static inline void answers_end(void)
{
    mailbox_destroy(answer_events, NULL);
}

static inline void answers_on_event(void *ctx, gen_event *ev)
{
    (void)ctx;
    if (!mailbox_push(answer_events, ev)) {
        check_fail(__FILE__, __LINE__, "the event mailbox is full");
        gen_event_free(ev);
    }
}

/* The options with all instruction sets, greedy defaults and our mailbox. Ends the test if the
 * engine does not open. */
static inline engine *answers_open(const engine_options *options)
{
    engine_options opt = *options;
    opt.cpu_mask = test_cpu_mask();
    opt.on_event = answers_on_event;
    gen_params_init(&opt.defaults);
    opt.defaults.temperature = 0.0f;
    engine *e = NULL;
    err_detail d = {0};
    CHECK_OK(engine_open(&e, &opt, &d), d);
    if (!e) {
        exit(1);
    }
    return e;
}

static inline void answers_submit(engine *e, gen_request *r, uint64_t id)
{
    err_detail d = {0};
    CHECK_OK(engine_submit(e, r, id, &d), d);
}

/* Collects events until `n` requests with ids first_id .. are done. */
static inline void answers_collect(answer *answers, uint64_t first_id, size_t n)
{
    for (size_t done = 0; done < n;) {
        void *message = NULL;
        if (!mailbox_pop_wait(answer_events, &message, ANSWER_WAIT_MS)) {
            check_fail(__FILE__, __LINE__, "no event for a minute");
            exit(1);
        }
        gen_event *ev = message;
        answer *a = &answers[ev->request_id - first_id];
        CHECK(ev->request_id >= first_id && ev->request_id < first_id + n);
        if (ev->type == GEN_TOKENS) {
            for (int32_t i = 0; i < ev->n_tokens && a->n < ANSWER_IDS; i++) {
                a->logprobs[a->n] = ev->logprobs ? ev->logprobs[i].logprob : 0;
                a->ids[a->n++] = ev->tokens[i];
            }
        } else if (ev->type == GEN_PROGRESS && ev->phase == GEN_PHASE_PREFILL) {
            a->n_chunks += ev->processed > ev->timings.cache_n; /* the first one only says what was cached */
        } else if (ev->type == GEN_DONE) {
            a->timings = ev->timings;
            done++;
        }
        gen_event_free(ev);
    }
}

/* The greedy answer to n tokens, `length` of it whatever it says; id: of this request alone. */
static inline answer answers_to_tokens(engine *e, const int32_t *ids, size_t n, uint64_t scope,
                                       int32_t length, bool no_cache, uint64_t id)
{
    gen_params p;
    gen_params_init(&p);
    p.max_tokens = length;
    p.temperature = 0.0f;
    p.ignore_eos = true;
    p.no_cache = no_cache;
    gen_request *r = NULL;
    answer a = {0};
    err_detail d = {0};
    CHECK_OK(engine_prepare_tokens(e, &r, ids, n, scope, &p, &d), d);
    answers_submit(e, r, id);
    answers_collect(&a, id, 1);
    CHECK_INT(a.n, length);
    return a;
}

/* Whether a row of a prompt has the same bits whatever the other rows are. */
static inline bool answers_rows_are_exact(void)
{
    compute *c = NULL;
    err_detail d = {0};
    CHECK_OK(
        compute_create(&c, &(compute_options){.n_threads = 1, .cpu_mask = test_cpu_mask(), .fast = true}, &d),
        d);
    const bool exact = c && nn_many_is_exact(c);
    compute_destroy(c);
    return exact;
}

#endif
